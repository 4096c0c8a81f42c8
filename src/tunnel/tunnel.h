/* tunnel.h - a stream of bytes inside a WebSocket.
 *
 *   socket > io > websocket (frames off) > inner owner > websocket (frames on) > io > socket
 *
 * A tunnel stands between a TCP connection and the one who would own it without the tunnel: it is the
 * one's owner and behaves to the other as the first does, by the same calls. What the inner owner
 * asks of the TCP connection (flush, resume, end, abort) it asks directly. Messages have no meaning:
 * both sides are streams. It costs a few copies, and nothing else changes.
 *
 * Everything here is done on the connection's loop. */
#ifndef WEIR_TUNNEL_TUNNEL_H
#define WEIR_TUNNEL_TUNNEL_H

#include "base/rand.h"
#include "io/tcp.h"

struct weir__tunnel;

/* mask as for weir__websocket_new: NULL is the server's side. head is what is still to be written in
 * HTTP, rest what came behind it; both are copied. */
int weir__tunnel_new(struct weir__tunnel **out, const struct weir__rand *mask,
                     struct weir__bytes head, struct weir__bytes rest, struct weir_error *);
void weir__tunnel_free(struct weir__tunnel *); /* one that was not started; NULL is fine */

/* Becomes the connection's owner and lives until it is closed. calls is borrowed, opened is not
 * called. */
void weir__tunnel_start(struct weir__tunnel *, struct weir__tcp *, const struct weir__tcp_calls *,
                        void *inner);

struct weir__tunnel_options {
    struct weir__tcp_options tcp; /* open_ms is also the limit for the answer in HTTP */
    const char *path;
    const char *const *protocols; /* ends with NULL; lives as long as the connection */
};

/* As weir__tcp_connect, with a WebSocket inside: opened is called when the other side has agreed. */
int weir__tunnel_connect(struct weir__tcp **out, struct weir__loop *,
                         const struct weir__tunnel_options *, const struct weir__tcp_calls *,
                         void *owner, struct weir_error *);

/* HOST:PORT without the port that the scheme has anyway: some servers know themselves only so. */
#define WEIR__TUNNEL_HOST_MAX 300
void weir__tunnel_host(char to[WEIR__TUNNEL_HOST_MAX], const char *address, bool tls);

#endif
