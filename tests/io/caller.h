/* caller.h - a client that sends one message, reads it back and ends. */
#ifndef WEIR_TESTS_IO_CALLER_H
#define WEIR_TESTS_IO_CALLER_H

#include <fcntl.h>
#include <stdio.h>

#include "echo.h"

#define MESSAGE 5000

struct caller {
    struct weir__loops *loops;
    struct weir__tcp_options options;
    struct weir__post begin, give_up;
    struct weir__tcp *tcp;
    uint8_t out[MESSAGE], in[MESSAGE];
    size_t sent, got;
    bool abort_at_once, end_at_once;
    char peer[WEIR__TCP_ADDRESS_MAX]; /* when it was opened */
    bool waits;                       /* calls on its socket would */

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    bool opened, closed;
    int rc;
    struct weir_error why;
};

static inline void caller_opened(void *owner, struct weir__tcp *tcp)
{
    struct caller *c = owner;

    if (tcp != c->tcp) abort();
    snprintf(c->peer, sizeof c->peer, "%s", weir__tcp_peer(tcp));
    c->waits = !(fcntl(tcp->fd, F_GETFL) & O_NONBLOCK);
    weir__mutex_lock(&c->lock);
    c->opened = true;
    weir__cond_broadcast(&c->changed);
    weir__mutex_unlock(&c->lock);
}

static inline uint8_t *caller_room(void *owner, size_t *room)
{
    struct caller *c = owner;

    *room = MESSAGE - c->got;
    return c->in + c->got;
}

static inline void caller_received(void *owner, size_t bytes)
{
    struct caller *c = owner;

    c->got += bytes;
    if (c->got == MESSAGE) weir__tcp_end(c->tcp);
}

static inline void caller_ended(void *owner)
{
    weir__tcp_end(((struct caller *)owner)->tcp);
}

static inline struct weir__bytes caller_output(void *owner)
{
    struct caller *c = owner;

    return weir__bytes_of(c->out + c->sent, MESSAGE - c->sent);
}

static inline void caller_sent(void *owner, size_t bytes)
{
    ((struct caller *)owner)->sent += bytes;
}

static inline void caller_closed(void *owner, const struct weir_error *why)
{
    struct caller *c = owner;

    weir__mutex_lock(&c->lock);
    c->closed = true;
    c->why = *why;
    weir__cond_broadcast(&c->changed);
    weir__mutex_unlock(&c->lock);
}

static const struct weir__tcp_calls caller_calls = {caller_opened, caller_room,   caller_received,
                                                    caller_ended,  caller_output, caller_sent,
                                                    caller_closed};

static inline void begin_call(void *arg)
{
    struct caller *c = arg;
    struct weir_error err = {0};
    int rc = weir__tcp_connect(&c->tcp, weir__loops_at(c->loops, 0), &c->options, &caller_calls, c,
                               &err);

    if (rc == 0 && c->end_at_once) weir__tcp_end(c->tcp);
    if (rc == 0 && c->abort_at_once) weir__tcp_abort(c->tcp, "changed my mind");
    if (rc == 0) return;
    caller_closed(c, &err);
}

static inline void call(struct caller *c)
{
    weir__mutex_init(&c->lock);
    weir__cond_init(&c->changed);
    fill_pattern(c->out, MESSAGE, 21);
    weir__post_init(&c->begin, begin_call, c);
    assert_int_equal(weir__loop_post(weir__loops_at(c->loops, 0), &c->begin), 0);
}

static inline void hang_up(struct caller *c)
{
    weir__mutex_lock(&c->lock);
    while (!c->closed)
        assert_true(weir__cond_wait(&c->changed, &c->lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&c->lock);
    weir__cond_fini(&c->changed);
    weir__mutex_fini(&c->lock);
}

static inline void address_of(struct echo *e, char *to, size_t room, const char *host)
{
    snprintf(to, room, "%s:%u", host, weir__listener_port(e->listener));
}

static inline void expect_failure(struct caller *c, struct echo *e, int code, const char *text)
{
    c->loops = e->loops;
    call(c);
    hang_up(c);
    assert_false(c->opened);
    assert_int_equal(c->why.code, code);
    if (!strstr(c->why.text, text)) fail_msg("'%s' lacks '%s'", c->why.text, text);
}

#endif
