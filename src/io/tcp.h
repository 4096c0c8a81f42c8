/* tcp.h - connections, plain or with TLS inside. A connection lives on one loop, from its first
 * byte to its last.
 *
 * It works for an owner, who has an engine without I/O: the connection asks where to put bytes,
 * says how many came, asks what to write, says how many went. So there are no buffers here, and
 * what is unread or unsent is bounded by the owner's own limits:
 *
 *     no room               reading stops until weir__tcp_resume: TCP holds the sender back
 *     a peer does not read  output stays with the owner; after stall_ms the connection is closed
 *
 * All calls here are made on the connection's loop. None of them calls the owner back at once:
 * output and the end come at the end of the turn. In one turn a connection moves at most
 * WEIR__TCP_BYTES_PER_TURN each way, then others have theirs. */
#ifndef WEIR_IO_TCP_H
#define WEIR_IO_TCP_H

#include "io/loop.h"
#include "io/tls.h"

#define WEIR__TCP_BYTES_PER_TURN ((size_t)512 * 1024)
#define WEIR__TCP_DISCARD_MAX ((size_t)256 * 1024) /* read and dropped after our last byte */
#define WEIR__TCP_ADDRESS_MAX 64                   /* bytes of "[IPv6]:port" with its NUL */

struct weir__tcp;

/* What an owner does for its connection. All but closed may call anything below. */
struct weir__tcp_calls {
    /* It can be used: connected, and TLS is agreed on. Never the first call for an accepted
     * connection: there the listener's `accepted` is. */
    void (*opened)(void *owner, struct weir__tcp *);
    /* Where the next bytes go. NULL or no room: not now, come again after weir__tcp_resume. */
    uint8_t *(*room)(void *owner, size_t *room);
    void (*received)(void *owner, size_t bytes);
    /* The peer has sent its last byte, and may still be listening. The connection stays until the
     * owner ends it. */
    void (*ended)(void *owner);
    /* What to write, empty: nothing now. Asked after received and after weir__tcp_flush. */
    struct weir__bytes (*output)(void *owner);
    void (*sent)(void *owner, size_t bytes);
    /* The last call, once; the connection is gone when it returns. why->code is 0 after
     * weir__tcp_end came to its end, WEIR_ECANCELED after weir__tcp_abort and weir__loops_stop,
     * WEIR_EUNREACHABLE when the road broke or was never there, WEIR_ETIMEDOUT when a limit of time
     * passed, WEIR_EDENIED when TLS was not agreed on. */
    void (*closed)(void *owner, const struct weir_error *why);
};

/* Zero means the default, WEIR__TCP_NEVER none at all. */
#define WEIR__TCP_NEVER UINT32_MAX
struct weir__tcp_limits {
    uint32_t open_ms;  /* to resolve, connect and agree on TLS: 10000 */
    uint32_t idle_ms;  /* nothing came and nothing went: never */
    uint32_t stall_ms; /* output waits and the peer takes none of it: 60000 */
    uint32_t end_ms;   /* from weir__tcp_end to the end: 5000 */
    uint32_t dead_ms;  /* the peer's machine acknowledges nothing: 30000. Also the time after which
                          silence is probed */
};

/* Outgoing. Strings are copied, tls is borrowed for the connection's life. Here. */
struct weir__tcp_options {
    const char *address;           /* "host:port", "[::1]:5671" */
    struct weir__tls_context *tls; /* NULL: plain */
    const char *tls_name;          /* NULL: the host of address */
    struct weir__tcp_limits limits;
};

/* Every address of the host is tried in turn. Ends in opened or in closed. */
int weir__tcp_connect(struct weir__tcp **out, struct weir__loop *, const struct weir__tcp_options *,
                      const struct weir__tcp_calls *, void *owner, struct weir_error *);

/* Changes the owner, for instance when another protocol takes over. calls is borrowed. */
void weir__tcp_adopt(struct weir__tcp *, const struct weir__tcp_calls *, void *owner);

/* Reading stops and goes on. Both may be said at any time and as often as wanted. */
void weir__tcp_pause(struct weir__tcp *);
void weir__tcp_resume(struct weir__tcp *);

/* There is something to write: output will be asked at the end of this turn. */
void weir__tcp_flush(struct weir__tcp *);

/* Writes what output gives until it is empty, says goodbye, and waits for the peer to do the same;
 * what it still sends is dropped. Then closed. */
void weir__tcp_end(struct weir__tcp *);

/* Closes without writing anything. The text is for closed, NULL: "aborted". */
void weir__tcp_abort(struct weir__tcp *, const char *why);

/* It was told to end, and writes what is left. */
bool weir__tcp_ending(const struct weir__tcp *);

struct weir__loop *weir__tcp_loop(const struct weir__tcp *);
const char *weir__tcp_peer(const struct weir__tcp *);            /* "127.0.0.1:49152" */
const struct weir__tls *weir__tcp_tls(const struct weir__tcp *); /* NULL: plain */

#endif
