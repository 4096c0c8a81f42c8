/* state.h - the inside of a connection, shared by its reading side (http.c) and its writing side
 * (response.c).
 *
 * Input. The head of the request in work stays at the front of the buffer while there is one, so
 * that the request can borrow from it; its body passes through the window behind:
 *
 *     | head ... | taken ... | not looked at ... | room |
 *     0       head_len      at                 len
 */
#ifndef WEIR_HTTP_STATE_H
#define WEIR_HTTP_STATE_H

#include "base/buf.h"
#include "http/http.h"

enum weir__http_state {
    WEIR__HTTP_AT_HEAD,
    WEIR__HTTP_AT_BODY,  /* by length */
    WEIR__HTTP_AT_SIZE,  /* the line before a chunk */
    WEIR__HTTP_AT_CHUNK, /* its bytes */
    WEIR__HTTP_AT_CHUNK_END,
    WEIR__HTTP_AT_TRAILER,
    WEIR__HTTP_AT_END,    /* the request is whole, and nobody knows yet */
    WEIR__HTTP_ANSWERING, /* the request is whole, its response is not */
    WEIR__HTTP_REFUSED,   /* nobody knows yet */
    WEIR__HTTP_CLOSED,
    WEIR__HTTP_UPGRADED,
    WEIR__HTTP_STATES
};

enum weir__http_phase {
    WEIR__HTTP_NOT_TIMED,
    WEIR__HTTP_IDLE,
    WEIR__HTTP_IN_HEAD,
    WEIR__HTTP_IN_BODY
};

struct weir__http {
    struct weir__http_limits limits;
    enum weir__http_state state;

    struct weir__buf in;
    size_t head_len, at;
    size_t seen;         /* of a head or trailer: how far we have looked for its end */
    uint64_t left;       /* of the body, or of the chunk */
    uint64_t body_bytes; /* of the body so far */
    bool rested;         /* the one empty line that may stand before a request was there */
    bool no_more;        /* the client has sent its last byte */
    bool skipping;       /* what remains of the body is wanted by nobody */
    bool continued;      /* 100 was sent */
    struct weir__http_refusal refusal;
    struct weir__http_request request;

    struct weir__buf out;
    size_t out_at;          /* written up to here */
    bool responding;        /* a response has begun */
    bool bare;              /* it has no body on the wire */
    bool chunked;           /* its body is */
    bool close;             /* behind it */
    bool upgrade;           /* it says 101 */
    uint64_t response_left; /* of its body, unless of unknown length */

    enum weir__http_phase phase;
    int64_t phase_ms;  /* since when */
    uint64_t requests; /* so far; tells one phase from the next of its kind */
    uint64_t phase_request;
};

/* response.c: what the codec says by itself. */
void weir__http_say_refusal(struct weir__http *);
void weir__http_say_continue(struct weir__http *);

/* http.c: the response is finished. */
void weir__http_answered(struct weir__http *);

#endif
