/* state.h - what the files of this room share: the inside of a loop and of a connection. */
#ifndef WEIR_IO_STATE_H
#define WEIR_IO_STATE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <uv.h>

#include "io/listener.h"

/* Something that must be gone before its loop is. evict is called when the loop stops, again each
 * turn until it has left. */
struct weir__resident {
    void (*evict)(void *arg);
    void *arg;
    struct weir__resident *next, *prev;
    bool in;
};

struct weir__loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_timer_t alarm;
    int64_t alarm_ms;    /* what alarm is set to */
    int64_t expiring_ms; /* while timers are run: up to when; else INT64_MIN */
    struct weir__timers timers;
    struct weir__mailbox mail;
    struct weir__posts deferred;
    struct weir__posts late; /* for a turn that has time for them */
    struct weir__resident *residents;
    struct weir__post stop;
    struct weir__thread thread;
    struct weir__loops *all;
    unsigned index;
    bool stopping;
    bool active;     /* something happened in this turn */
    int64_t idle_ns; /* since when nothing has */
    bool soon;       /* what it waited for the last time came within WEIR__LOOP_AWAKE_NS */
    int expected;    /* posts that others are about to make */
    uint64_t turn;
    int64_t began_ns;                /* this turn; 0: it waits still */
    int64_t worked_ns, worked_at_ns; /* what the thread's clock said, and when */
    /* Written by the loop only. */
    atomic_ullong turn_buckets[WEIR__LOOP_TURN_BUCKETS];
    atomic_ullong turn_ns, long_turns;
};

/* turn.c: the first that happens in a turn begins it, and its end is counted. */
void weir__loop_begin_turn(struct weir__loop *);
void weir__loop_end_turn(struct weir__loop *);

void weir__loop_enter(struct weir__loop *, struct weir__resident *);
void weir__loop_leave(struct weir__loop *, struct weir__resident *);

/* "host:port" or "[host]:port" taken apart. */
#define WEIR__HOST_MAX 256 /* with its NUL */
#define WEIR__PORT_MAX 8
int weir__address_split(const char *address, char host[WEIR__HOST_MAX], char port[WEIR__PORT_MAX],
                        struct weir_error *);
void weir__address_format(const struct sockaddr *, char to[WEIR__TCP_ADDRESS_MAX]);
/* Whether both ends of a socket have one address, and so are on this machine. */
bool weir__address_shared(int fd);

/* bind.c: every address of a host is listened on. The name and the port are those of the first. On
 * failure there are none. */
struct weir__bound {
    int fd[WEIR__LISTENER_SOCKETS_MAX];
    unsigned count;
    unsigned port;
    char address[WEIR__TCP_ADDRESS_MAX];
};
int weir__bind(const char *address, int backlog, struct weir__bound *, struct weir_error *);

enum weir__tcp_state {
    WEIR__TCP_DIALING,   /* resolving, connecting */
    WEIR__TCP_HANDSHAKE, /* TLS */
    WEIR__TCP_OPEN,
    WEIR__TCP_ENDING,   /* output is written to its end */
    WEIR__TCP_GOODBYE,  /* TLS says that it was all */
    WEIR__TCP_DRAINING, /* the peer does the same */
    WEIR__TCP_CLOSED
};

struct weir__dial;

struct weir__tcp {
    struct weir__loop *loop;
    const struct weir__tcp_calls *calls;
    void *owner;
    struct weir__listener *listener; /* NULL: outgoing */
    struct weir__dial *dial;         /* outgoing, until connected */
    struct weir__tls_context *tls_context;
    struct weir__tls *tls;
    uv_poll_t poll;
    int fd;
    int events; /* what poll waits for */
    enum weir__tcp_state state;
    bool polled;               /* poll was initialised */
    bool paused;               /* by the owner */
    bool blocked;              /* output waits for the socket */
    bool ended;                /* the peer has sent its last byte */
    bool hung_up;              /* it seems so, but we do not read now */
    bool read_soon;            /* there may be bytes that poll does not know of */
    bool owes_ack;             /* a few bytes came, and nothing has gone out since */
    bool handshaking;          /* counted so by the listener */
    struct weir__post arrival; /* on its loop, from the listener's */
    struct weir__post work;    /* the visit at the end of the turn */
    struct weir__post late;    /* greets or reads, when a turn before had no time for it */
    struct weir__timer timer;
    struct weir__resident resident;
    struct weir__tcp_limits limits;
    int64_t since_ms; /* when the state began; ENDING to DRAINING are one */
    int64_t moved_ms; /* when bytes last moved */
    int64_t stall_ms; /* since when output waits, or last moved */
    uint64_t turn;    /* of the loop, for these two: */
    size_t may_read, may_write;
    size_t discarded;
    int code; /* why it was closed, and the text, NULL: that of the code */
    char *why;
    char peer[WEIR__TCP_ADDRESS_MAX];
};

/* tcp.c. A connection that is not on a loop yet. fd is taken, -1: none yet. */
struct weir__tcp *weir__tcp_new(struct weir__loop *, int fd, enum weir__tcp_state,
                                const struct weir__tcp_limits *);
void weir__tcp_free(struct weir__tcp *); /* one that never was on a loop */

/* Here. It has its socket: TLS, or else the owner, is next. */
void weir__tcp_start(struct weir__tcp *);
/* It can be used. */
void weir__tcp_become_open(struct weir__tcp *);
/* Asks for a visit at the end of the turn. */
void weir__tcp_visit(struct weir__tcp *);
void weir__tcp_set_state(struct weir__tcp *, enum weir__tcp_state);
/* Sees to it that the nearest limit of time is kept. */
void weir__tcp_arm(struct weir__tcp *);
/* The first reason counts; closed is called at the end of the turn. code 0: no reason. */
__attribute__((format(printf, 3, 4))) void weir__tcp_fail(struct weir__tcp *, int code,
                                                          const char *fmt, ...);
void weir__tcp_fail_by(struct weir__tcp *, const struct weir_error *);
void weir__tcp_fail_errno(struct weir__tcp *, int errnum);

/* flow.c */
void weir__tcp_read(struct weir__tcp *);
void weir__tcp_hear(struct weir__tcp *);         /* reads, or goes on with the handshake */
void weir__tcp_hear_in_turn(struct weir__tcp *); /* or later, when this one is over */
void weir__tcp_write(struct weir__tcp *);
void weir__tcp_discard(struct weir__tcp *);     /* reads and drops, without looking inside TLS */
void weir__tcp_acknowledge(struct weir__tcp *); /* what it owes */

/* greet.c: one step of the handshake, and the listener's count of them. */
void weir__tcp_greet(struct weir__tcp *);
void weir__tcp_greeted(struct weir__tcp *);

/* connect.c: nobody waits for it any more. NULL is fine. */
void weir__dial_forget(struct weir__dial *);

/* listener.c: what connections tell it. */
bool weir__listener_welcome(struct weir__listener *, struct weir__tcp *);
struct weir__bytes weir__listener_mistaken(struct weir__listener *, const char *peer,
                                           enum weir__sniff);
void weir__listener_failed(struct weir__listener *, const char *peer, const struct weir_error *);
void weir__listener_handshake_over(struct weir__listener *);
void weir__listener_gone(struct weir__listener *);

#endif
