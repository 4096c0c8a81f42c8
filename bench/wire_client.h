/* wire_client.h - one connection of a load client: it connects, shows a token to $cbs as Azure's
 * clients do, and then does what a mode of the benchmark wants with it.
 *
 * The caller's thread opens it, says go, waits, and closes it; everything else happens on the
 * connection's loop. What is to be sent is asked for when the output has run empty (pump), so a
 * connection is never idle and never holds more than the socket will soon take. */
#ifndef WEIR_BENCH_WIRE_CLIENT_H
#define WEIR_BENCH_WIRE_CLIENT_H

#include "amqp/engine.h"
#include "bench/wire_target.h"
#include "io/loop.h"

/* Nothing came and nothing went for so long: the run has failed. */
#define WEIR__BENCH_WIRE_SILENCE_MS 20000u

struct weir__bench_wire_client;

/* What a mode does with its connection, all on its loop. begin and pump may be NULL. */
struct weir__bench_wire_calls {
    /* The token was accepted: attach links to the session. */
    int (*attach)(void *mode, struct weir__amqp_session *, struct weir_error *);
    /* Something of those links. A detach is an error already, and not told. */
    void (*event)(void *mode, const struct weir__amqp_event *);
    void (*begin)(void *mode); /* go was said */
    void (*pump)(void *mode);  /* while running: the output is empty, put something in */
};

/* Returns when the mode has said ready. target, calls and mode are borrowed for its life. */
int weir__bench_wire_client_open(struct weir__bench_wire_client **out, struct weir__loop *,
                                 const struct weir__bench_wire_target *,
                                 const struct weir__bench_wire_calls *, void *mode,
                                 struct weir_error *);
void weir__bench_wire_client_go(struct weir__bench_wire_client *);
/* Returns when the mode has said done, or something failed. */
int weir__bench_wire_client_wait(struct weir__bench_wire_client *, struct weir_error *);
/* Says goodbye; NULL is fine. */
void weir__bench_wire_client_close(struct weir__bench_wire_client *);

/* For a mode, on the loop. fail takes the first reason; done and ready may be said more than once. */
void weir__bench_wire_client_ready(struct weir__bench_wire_client *);
void weir__bench_wire_client_done(struct weir__bench_wire_client *);
__attribute__((format(printf, 3, 4))) void
weir__bench_wire_client_fail(struct weir__bench_wire_client *, int code, const char *fmt, ...);
/* Go was said and nothing has failed or ended since. Links may be gone when this is false. */
bool weir__bench_wire_client_running(const struct weir__bench_wire_client *);
/* There is something to write. */
void weir__bench_wire_client_flush(struct weir__bench_wire_client *);
/* Time passes for the engine; needed only by a mode that keeps the loop to itself. */
void weir__bench_wire_client_tick(struct weir__bench_wire_client *);

#endif
