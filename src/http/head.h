/* head.h - the head of a request: its line and its fields, checked against RFC 9110 and 9112 by the
 * letter, because whatever two programs read differently can be smuggled between them. And that of
 * an answer, as far as a WebSocket's client needs it.
 *
 * Refused, each with a status and a sentence: line ends that are not CR LF, folded lines, space
 * before a colon, characters that do not belong, two lengths or a length beside an encoding, a
 * missing or double Host. Nothing is mended. */
#ifndef WEIR_HTTP_HEAD_H
#define WEIR_HTTP_HEAD_H

#include <stdbool.h>

#include "base/bytes.h"

#define WEIR__HTTP_FIELDS_MAX 64 /* 431 */

enum weir__http_method {
    WEIR__HTTP_GET,
    WEIR__HTTP_HEAD,
    WEIR__HTTP_POST,
    WEIR__HTTP_PUT,
    WEIR__HTTP_DELETE,
    WEIR__HTTP_PATCH,
    WEIR__HTTP_OPTIONS,
    WEIR__HTTP_METHODS
};

struct weir__http_field {
    struct weir__bytes name; /* as it came; compare without regard to case */
    struct weir__bytes value;
};

struct weir__http_request {
    enum weir__http_method method;
    unsigned minor;            /* of HTTP/1.x: 0 or 1 */
    struct weir__bytes target; /* as it came */
    struct weir__bytes host;   /* of the target, or else of Host; may be empty */
    struct weir__bytes path;   /* not decoded; begins with '/', or is "*" */
    struct weir__bytes query;  /* not decoded, without '?'; at is NULL when there is none */
    bool keep_alive;           /* as the client wishes */
    bool chunked;
    bool expects_continue;
    uint64_t length; /* of the body, unless chunked */
    size_t field_count;
    struct weir__http_field fields[WEIR__HTTP_FIELDS_MAX];
};

struct weir__http_head_limits {
    size_t target_bytes;
    uint64_t body_bytes;
};

/* Why not: a status and a sentence that lives for ever. */
struct weir__http_refusal {
    unsigned status;
    const char *text;
};

/* How long a head or a trailer is, empty line included; *len 0: not all is there yet. *seen is how
 * far we have looked, 0 at first. false: a line does not end with CR LF. */
bool weir__http_head_end(const uint8_t *at, size_t there, size_t *seen, size_t *len,
                         struct weir__http_refusal *);

/* Parses a whole head, empty line included; the request borrows from it. false: refused. */
bool weir__http_head_parse(struct weir__http_request *out, const uint8_t *head, size_t len,
                           const struct weir__http_head_limits *, struct weir__http_refusal *);

/* What another server said to us. */
struct weir__http_answer {
    unsigned status;
    size_t field_count;
    struct weir__http_field fields[WEIR__HTTP_FIELDS_MAX];
};

/* The same for the head of an answer; status and text are then for our own log. */
bool weir__http_answer_parse(struct weir__http_answer *out, const uint8_t *head, size_t len,
                             struct weir__http_refusal *);

/* Fields of a trailer, empty line included: checked as fields are, and forgotten. */
bool weir__http_trailer_check(const uint8_t *at, size_t len, struct weir__http_refusal *);

/* Whether these may be the name and the value of a field. */
bool weir__http_is_name(struct weir__bytes);
bool weir__http_is_value(struct weir__bytes);

/* The value of the first field of that name (in lower case); at is NULL when there is none. */
struct weir__bytes weir__http_field(const struct weir__http_request *, const char *name);
struct weir__bytes weir__http_answer_field(const struct weir__http_answer *, const char *name);

/* Whether a comma-separated value has this token (in lower case), in any case. */
bool weir__http_has_token(struct weir__bytes value, const char *token);

const char *weir__http_method_name(enum weir__http_method);

/* "Not Found"; never NULL. */
const char *weir__http_status_text(unsigned status);

#endif
