/* listener.h - takes connections in and deals them out over the loops, one after the other.
 *
 * Too many are answered, never piled up:
 *
 *     connections_max   the next one is accepted and closed at once, unless make_room sends somebody
 *                       else away, whose place is free a little later
 *     descriptor_max    the same, when its descriptor has this number or a higher one. The kernel
 *                       gives the lowest that is free, so those above are left to the files of this
 *                       process, whatever listeners it has and whoever knocks
 *     handshakes_max    accepting waits; the kernel holds `backlog` of them, then drops
 *     no descriptors    one kept in reserve is used to accept and close one; then a pause of
 *                       WEIR__LISTENER_PAUSE_MS */
#ifndef WEIR_IO_LISTENER_H
#define WEIR_IO_LISTENER_H

#include "io/sniff.h"
#include "io/tcp.h"

#define WEIR__LISTENER_SOCKETS_MAX 4 /* addresses of one host name that are listened on */
#define WEIR__LISTENER_ACCEPTS_PER_TURN 64
#define WEIR__LISTENER_PAUSE_MS 100
#define WEIR__LISTENER_TELL_MS 10000

struct weir__listener;

/* Zero means the default. Strings are copied, tls is borrowed for the listener's life. */
struct weir__listener_options {
    const char *address; /* "127.0.0.1:5672", "[::1]:5672", "localhost:0"; port 0: a free one */
    struct weir__tls_context *tls; /* NULL: plain */
    unsigned connections_max;      /* 16384 */
    unsigned descriptor_max;       /* no limit */
    unsigned handshakes_max;       /* TLS: not agreed on yet, at once: 256 */
    int backlog;                   /* 1024 */
    struct weir__tcp_limits limits;

    /* On the connection's loop, when it can be used. Gives it an owner by weir__tcp_adopt and
     * returns true, or returns false and the connection is closed. */
    bool (*accepted)(void *user, struct weir__tcp *);
    /* On a loop: all places are taken. true: somebody was sent away, and the next may come in. NULL:
     * nobody ever is. */
    bool (*make_room)(void *user);
    /* On a loop: with TLS, somebody spoke something else. What is returned is sent to them as it
     * is, and lives as long as the listener. NULL: nothing is sent. */
    struct weir__bytes (*mistaken)(void *user, const char *peer, enum weir__sniff);
    /* On a loop: one that was never accepted was closed, since TLS was not agreed on or took too
     * long. Or, with WEIR_ELIMIT, some were turned away for a limit of the above; this is said once
     * in WEIR__LISTENER_TELL_MS. NULL: nobody wants to know. */
    void (*failed)(void *user, const char *peer, const struct weir_error *why);
    void *user;
};

/* Takes the port: whoever connects waits until weir__listener_begin. A port that is taken:
 * WEIR_EEXIST, and the text names the process that holds it where that can be known. */
int weir__listener_open(struct weir__listener **out, struct weir__loops *,
                        const struct weir__listener_options *, struct weir_error *);

/* Accepts from now on. Once, and not from a loop: it waits for one. */
int weir__listener_begin(struct weir__listener *, struct weir_error *);

/* Changes descriptor_max, for those who come from now on. Any thread. */
void weir__listener_keep(struct weir__listener *, unsigned descriptor_max);

/* Stops accepting; connections that are there stay. Any thread, also twice. */
void weir__listener_close(struct weir__listener *);

/* After weir__loops_stop. NULL is fine. */
void weir__listener_free(struct weir__listener *);

const char *weir__listener_address(const struct weir__listener *); /* "127.0.0.1:5672" */
unsigned weir__listener_port(const struct weir__listener *);

struct weir__listener_counts {
    uint64_t accepted;   /* in all */
    uint64_t refused;    /* for connections_max, descriptors or memory */
    unsigned open;       /* now, handshakes included */
    unsigned handshakes; /* now */
};

/* Any thread. */
struct weir__listener_counts weir__listener_counts(const struct weir__listener *);

#endif
