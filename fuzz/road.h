/* road.h - a loop and a connection that are memory only: what io/loop.h and io/tcp.h promise, as
 * far as the server asks for it. A target that includes this is linked with these instead of the
 * ones that have threads and sockets, so a whole connection of the server can be driven from one
 * thread, and the same bytes always do the same.
 *
 * A turn does what a turn of a real loop does: mail, timers, output, and closing what has ended. */
#ifndef WEIR_FUZZ_ROAD_H
#define WEIR_FUZZ_ROAD_H

#include <stdio.h>

#include "base/buf.h"
#include "fuzz.h"
#include "io/loop.h"
#include "io/tcp.h"
#include "io/tls.h"

#define ROAD_POSTS_PER_TURN 1000
#define ROAD_TIMERS_PER_TURN 1000 /* more at one time, and somebody runs in circles */

struct weir__loop {
    struct weir__posts posts;
    struct weir__timers timers;
    int64_t now_ms;
    uint64_t turn;
};

struct weir__loops {
    struct weir__loop *only;
};

struct weir__tcp {
    struct weir__loop *loop;
    const struct weir__tcp_calls *calls;
    void *owner;
    bool paused; /* there was no room */
    bool ending;
    bool closed;
    bool slow;             /* the peer reads nothing */
    const char *certified; /* NULL: without TLS */
    void (*sink)(void *user, struct weir__bytes);
    void *user;
};

/* ---- io/loop.h ---- */

unsigned weir__loops_count(const struct weir__loops *all)
{
    (void)all;
    return 1;
}

struct weir__loop *weir__loops_at(struct weir__loops *all, unsigned index)
{
    ORACLE(index == 0);
    return all->only;
}

unsigned weir__loop_index(const struct weir__loop *l)
{
    (void)l;
    return 0;
}

int weir__loop_post(struct weir__loop *l, struct weir__post *p)
{
    weir__posts_put(&l->posts, p);
    return 0;
}

void weir__loop_expect_mail(struct weir__loop *l, int more)
{
    (void)l;
    (void)more;
}

void weir__loop_defer(struct weir__loop *l, struct weir__post *p)
{
    weir__posts_put(&l->posts, p);
}

void weir__loop_put_off(struct weir__loop *l, struct weir__post *p)
{
    weir__posts_put(&l->posts, p);
}

void weir__loop_unpost(struct weir__loop *l, struct weir__post *p)
{
    weir__posts_drop(&l->posts, p);
}

int64_t weir__loop_now_ms(const struct weir__loop *l)
{
    return l->now_ms;
}

uint64_t weir__loop_turn(const struct weir__loop *l)
{
    return l->turn;
}

/* Every third is over before it begins. */
int64_t weir__loop_turn_ns(const struct weir__loop *l)
{
    return l->turn % 3 == 2 ? 2 * WEIR__LOOP_TURN_NS : 0;
}

bool weir__loop_turn_over(const struct weir__loop *l)
{
    return weir__loop_turn_ns(l) >= WEIR__LOOP_TURN_NS;
}

void weir__loop_timer_start(struct weir__loop *l, struct weir__timer *t, int64_t at_ms)
{
    weir__timers_start(&l->timers, t, at_ms);
    if (at_ms == INT64_MAX) weir__timers_stop(&l->timers, t);
}

void weir__loop_timer_stop(struct weir__loop *l, struct weir__timer *t)
{
    weir__timers_stop(&l->timers, t);
}

/* ---- io/tcp.h ---- */

void weir__tcp_adopt(struct weir__tcp *t, const struct weir__tcp_calls *calls, void *owner)
{
    t->calls = calls;
    t->owner = owner;
}

void weir__tcp_pause(struct weir__tcp *t)
{
    t->paused = true;
}

void weir__tcp_resume(struct weir__tcp *t)
{
    t->paused = false;
}

/* Every turn asks for output anyway. */
void weir__tcp_flush(struct weir__tcp *t)
{
    ORACLE(!t->closed);
}

void weir__tcp_end(struct weir__tcp *t)
{
    t->ending = true;
}

void weir__tcp_abort(struct weir__tcp *t, const char *why)
{
    (void)why;
    t->ending = t->slow = true;
}

struct weir__loop *weir__tcp_loop(const struct weir__tcp *t)
{
    return t->loop;
}

const char *weir__tcp_peer(const struct weir__tcp *t)
{
    ORACLE(!t->closed);
    return "127.0.0.1:1";
}

/* There is no TLS here; what stands for it is the name in the peer's certificate. */
const struct weir__tls *weir__tcp_tls(const struct weir__tcp *t)
{
    return (const struct weir__tls *)t->certified;
}

bool weir__tls_identify(const struct weir__tls *tls, struct weir__tls_identity *who)
{
    snprintf(who->name, sizeof who->name, "%s", (const char *)tls);
    who->until_s = INT64_MAX;
    return true;
}

/* ---- driving them ---- */

static void road_close(struct weir__tcp *t, int code)
{
    struct weir_error why = {.code = code};

    if (t->closed) return;
    t->calls->closed(t->owner, &why);
    t->closed = true;
}

/* At most `max` bytes of output go to the peer. */
static void road_write(struct weir__tcp *t, size_t max)
{
    struct weir__bytes out;

    while (!t->closed && max > 0) {
        out = t->calls->output(t->owner);
        if (!out.len) break;
        if (out.len > max) out.len = max;
        t->sink(t->user, out);
        max -= out.len;
        t->calls->sent(t->owner, out.len);
    }
}

static void road_turn(struct weir__loop *l, struct weir__tcp *all, size_t count)
{
    struct weir__post *p;
    struct weir__timer *timer;
    int posts = 0, timers = 0;

    l->turn++;
    while (posts++ < ROAD_POSTS_PER_TURN && (p = weir__posts_take(&l->posts))) p->fn(p->arg);
    while ((timer = weir__timers_due(&l->timers, l->now_ms))) {
        ORACLE(timers++ < ROAD_TIMERS_PER_TURN);
        timer->fn(timer->arg);
    }
    for (size_t i = 0; i < count; i++) {
        if (!all[i].slow) road_write(&all[i], SIZE_MAX);
        if (all[i].ending) road_close(&all[i], 0);
    }
}

/* Bytes from the peer, as far as there is room; the rest is lost. */
static void road_feed(struct weir__tcp *t, struct weir__bytes b)
{
    while (b.len && !t->closed && !t->ending && !t->paused) {
        size_t room = 0, n;
        uint8_t *to = t->calls->room(t->owner, &room);
        n = b.len < room ? b.len : room;
        if (!to || !n) {
            t->paused = true;
            return;
        }
        memcpy(to, b.at, n);
        b.at += n;
        b.len -= n;
        t->calls->received(t->owner, n);
    }
}

#endif
