/* knock.h - how a client asks for a WebSocket (RFC 6455, 4.1), with no I/O in it: the request, and
 * whether the answer is a yes.
 *
 *     weir__knock_write(&k, &options, &rand, request, err);   what to write first
 *     weir__knock_read(&k, what_came, &used, err);            as often as more came
 *
 * A yes is 101 with Upgrade, Connection, the Sec-WebSocket-Accept that only our key gives, one of the
 * protocols that we offered and no extension, of which we offer none. */
#ifndef WEIR_HTTP_KNOCK_H
#define WEIR_HTTP_KNOCK_H

#include "base/buf.h"
#include "base/error.h"
#include "base/rand.h"
#include "http/websocket.h"

#define WEIR__KNOCK_REQUEST_MAX 1024u
#define WEIR__KNOCK_ANSWER_MAX 16384u /* bytes of its head */

struct weir__knock_options {
    const char *host;             /* of the Host field: HOST, or HOST:PORT */
    const char *path;             /* begins with '/' */
    const char *const *protocols; /* the best first; ends with NULL; borrowed until the answer */
};

struct weir__knock {
    char accept[WEIR__WEBSOCKET_ACCEPT_BYTES]; /* the answer to our key */
    const char *const *protocols;
    const char *protocol; /* after a yes: which one */
    size_t seen;          /* of the answer */
};

/* Adds the request, with a new key, to what is in the buffer. WEIR_EINVAL: it would be longer than
 * WEIR__KNOCK_REQUEST_MAX, or than the buffer may be. WEIR_ENOMEM. */
int weir__knock_write(struct weir__knock *, const struct weir__knock_options *,
                      const struct weir__rand *, struct weir__buf *out, struct weir_error *);

/* All that came so far. 0: *used bytes of it were a yes, and what is behind them is frames; or, with
 * *used 0, it is not whole yet. WEIR_EUNREACHABLE: a no, or no answer at all; the text says which. */
int weir__knock_read(struct weir__knock *, struct weir__bytes got, size_t *used,
                     struct weir_error *);

#endif
