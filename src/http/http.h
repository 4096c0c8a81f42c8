/* http.h - the server's side of one HTTP/1.1 connection, with no I/O in it: bytes in, requests out;
 * responses in, bytes out.
 *
 *     to = weir__http_input(h, &room);         where to read into; no room: do not read now
 *     weir__http_received(h, n);               n bytes landed there
 *     while (weir__http_next(h, &event)) ...   what they said; responses may be given here
 *     out = weir__http_output(h);              what to write
 *     weir__http_sent(h, n);                   n bytes of it were written
 *     at = weir__http_tick(h, now_ms);         time passes; come again at `at`
 *
 * One thread at a time. Requests come one at a time: the next one of a pipeline is looked at when
 * the response to the one before has been finished, so call weir__http_next again after that.
 *
 * What the codec does by itself: refusals (400, 408, 413, 414, 431, 501, 505, then close), "100
 * Continue", Connection, Content-Length and Transfer-Encoding of responses, no body after HEAD.
 *
 * A request that is answered before its body is read: what remains of the body is skipped if it is
 * known to be small, else the connection is closed behind the response. */
#ifndef WEIR_HTTP_HTTP_H
#define WEIR_HTTP_HTTP_H

#include "base/error.h"
#include "http/head.h"

struct weir__http;

/* Zero means the default. */
struct weir__http_limits {
    uint32_t head_bytes;   /* of a request: 16384; more is 431 */
    uint32_t target_bytes; /* 8192; more is 414 */
    uint32_t window_bytes; /* of a body, at once: 16384 */
    uint32_t output_bytes; /* of responses waiting to be written: 262144; then WEIR_EBUSY */
    uint32_t skip_bytes;   /* of a body that nobody wants: 65536 */
    uint64_t body_bytes;   /* 1048576; more is 413 */
    uint32_t head_ms;      /* from a request's first byte to the end of its head: 10000, then 408 */
    uint32_t idle_ms;      /* between requests, and before the first: 60000, then closed */
    uint32_t body_rate;    /* bytes per second that a body makes after its first head_ms: 1024,
                              else 408 */
};

int weir__http_new(struct weir__http **out, const struct weir__http_limits *, struct weir_error *);
void weir__http_free(struct weir__http *); /* NULL is fine */

uint8_t *weir__http_input(struct weir__http *, size_t *room);
void weir__http_received(struct weir__http *, size_t bytes);
void weir__http_ended(struct weir__http *); /* the client has sent its last byte */

/* Valid until the next call that is not weir__http_sent. */
struct weir__bytes weir__http_output(struct weir__http *);
void weir__http_sent(struct weir__http *, size_t bytes);

/* Milliseconds of a clock that never runs backwards. Call it also when bytes came: what it has not
 * seen begin, it cannot measure. Returns when to come again, INT64_MAX: no need. A limit that has
 * passed shows in weir__http_next and weir__http_closed. */
int64_t weir__http_tick(struct weir__http *, int64_t now_ms);

/* Write what is left of the output, then close the road. */
bool weir__http_closed(const struct weir__http *);

enum weir__http_event_type {
    WEIR__HTTP_EVENT_REQUEST, /* request, valid until its response is finished */
    WEIR__HTTP_EVENT_BODY,    /* bytes, borrowed until the next weir__http_next */
    WEIR__HTTP_EVENT_END,    /* the request is whole. Follows every REQUEST that is not cut short by
                                 its own response or by the end of the connection */
    WEIR__HTTP_EVENT_REFUSED /* the codec answered by itself and the connection is closed: refusal,
                                 for the log. The request that was being read is over */
};

struct weir__http_event {
    enum weir__http_event_type type;
    const struct weir__http_request *request;
    struct weir__bytes bytes;
    struct weir__http_refusal refusal;
};

bool weir__http_next(struct weir__http *, struct weir__http_event *out);

#define WEIR__HTTP_CHUNKED                                                                         \
    UINT64_MAX /* the length is not known yet; not for HTTP/1.0, where the
                                         end of the connection ends the body */

struct weir__http_response {
    unsigned status;
    uint64_t length;                       /* of the body; or WEIR__HTTP_CHUNKED */
    const struct weir__http_field *fields; /* besides those the codec writes */
    size_t field_count;
    bool close; /* the connection, behind it */
};

/* The response to the current request, in three steps: its head, pieces of its body, its end. Body
 * bytes are counted also when none are sent (HEAD). WEIR_EBUSY: the output is full, write some and
 * come again. WEIR_EINVAL: there is no request to answer, a field has characters that do not
 * belong, or the body is not as long as was said. WEIR_ECLOSED: the connection is.
 * After status 101 the connection speaks another protocol: see weir__http_rest. */
int weir__http_respond(struct weir__http *, const struct weir__http_response *,
                       struct weir_error *);
int weir__http_write(struct weir__http *, struct weir__bytes piece, struct weir_error *);
int weir__http_finish(struct weir__http *, struct weir_error *);

/* All three at once. type NULL: no Content-Type. */
int weir__http_reply(struct weir__http *, unsigned status, const char *type,
                     struct weir__bytes body, struct weir_error *);

/* 101 was said, and what came behind the request. */
bool weir__http_upgraded(const struct weir__http *);
struct weir__bytes weir__http_rest(const struct weir__http *);

/* All memory that the connection holds now. */
size_t
weir__http_buffered(const struct weir__http *); /* the part that grows by what comes and goes */
size_t weir__http_memory(const struct weir__http *);

static inline struct weir__http_field weir__http_field_of(const char *name, const char *value)
{
    return (struct weir__http_field){weir__bytes_of(name, strlen(name)),
                                     weir__bytes_of(value, strlen(value))};
}

#endif
