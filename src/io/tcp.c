/* tcp.c - the life of a connection:
 *
 *     DIALING > HANDSHAKE > OPEN > ENDING > GOODBYE > DRAINING > CLOSED
 *
 * An accepted one begins at HANDSHAKE or, without TLS, at OPEN; a failure leads from anywhere to
 * CLOSED. Poll events, timers and the owner's wishes only change the state and ask for a visit at
 * the end of the turn, where settle() writes, ends and disposes. So the owner is never called from
 * inside its own call, and what a turn produced leaves in one write. */
#define _GNU_SOURCE
#include "io/tcp.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/state.h"

static const struct weir__tcp_limits defaults = {
    .open_ms = 10000,
    .idle_ms = WEIR__TCP_NEVER,
    .stall_ms = 60000,
    .end_ms = 5000,
    .dead_ms = 30000,
};

/* Who owns a connection before anybody does. */

static void nobody_opened(void *owner, struct weir__tcp *c)
{
    (void)owner;
    (void)c;
}

static uint8_t *nobody_room(void *owner, size_t *room)
{
    (void)owner;
    *room = 0;
    return NULL;
}

static void nobody_moved(void *owner, size_t bytes)
{
    (void)owner;
    (void)bytes;
}

static void nobody_ended(void *owner)
{
    (void)owner;
}

static struct weir__bytes nobody_output(void *owner)
{
    (void)owner;
    return weir__bytes_of(NULL, 0);
}

static void nobody_closed(void *owner, const struct weir_error *why)
{
    (void)owner;
    (void)why;
}

static const struct weir__tcp_calls nobody = {nobody_opened, nobody_room,   nobody_moved,
                                              nobody_ended,  nobody_output, nobody_moved,
                                              nobody_closed};

void weir__tcp_visit(struct weir__tcp *c)
{
    weir__loop_defer(c->loop, &c->work);
}

/* Time. One timer serves all limits; it is set to the nearest and looks again when it rings, so
 * that moving bytes costs no timer. */

static int64_t limit_at(int64_t since_ms, uint32_t limit_ms)
{
    return limit_ms == WEIR__TCP_NEVER ? INT64_MAX : since_ms + limit_ms;
}

static int64_t next_limit(const struct weir__tcp *c, const char **what)
{
    int64_t at = INT64_MAX, idle;

    if (c->state <= WEIR__TCP_HANDSHAKE) {
        *what = c->state == WEIR__TCP_DIALING ? "connecting took too long"
                                              : "the TLS handshake took too long";
        return limit_at(c->since_ms, c->limits.open_ms);
    }
    if (c->state > WEIR__TCP_OPEN) {
        *what = "the last bytes took too long";
        return limit_at(c->since_ms, c->limits.end_ms);
    }
    if (c->blocked) at = limit_at(c->stall_ms, c->limits.stall_ms);
    *what = "the peer does not read";
    idle = limit_at(c->moved_ms, c->limits.idle_ms);
    if (idle >= at) return at;
    *what = "nothing came and nothing went";
    return idle;
}

void weir__tcp_arm(struct weir__tcp *c)
{
    const char *what;
    int64_t at = next_limit(c, &what);

    if (!c->timer.running || c->timer.at_ms > at) weir__loop_timer_start(c->loop, &c->timer, at);
}

static void on_limit(void *arg)
{
    struct weir__tcp *c = arg;
    const char *what;
    int64_t at = next_limit(c, &what);

    if (weir__loop_now_ms(c->loop) < at)
        weir__loop_timer_start(c->loop, &c->timer, at);
    else if (c->state == WEIR__TCP_DRAINING)
        weir__tcp_fail(c, 0, "the peer does not end");
    else
        weir__tcp_fail(c, WEIR_ETIMEDOUT, "%s", what);
}

void weir__tcp_set_state(struct weir__tcp *c, enum weir__tcp_state state)
{
    bool still_ending = c->state > WEIR__TCP_OPEN && state > WEIR__TCP_OPEN;

    c->state = state;
    c->moved_ms = weir__loop_now_ms(c->loop);
    if (!still_ending) c->since_ms = c->moved_ms;
    if (state != WEIR__TCP_CLOSED) weir__tcp_arm(c);
}

void weir__tcp_fail(struct weir__tcp *c, int code, const char *fmt, ...)
{
    va_list args;

    if (c->state == WEIR__TCP_CLOSED) return;
    c->code = code;
    va_start(args, fmt);
    if (vasprintf(&c->why, fmt, args) < 0) c->why = NULL;
    va_end(args);
    weir__tcp_set_state(c, WEIR__TCP_CLOSED);
    weir__tcp_visit(c);
}

void weir__tcp_fail_by(struct weir__tcp *c, const struct weir_error *err)
{
    weir__tcp_fail(c, err->code, "%s", err->text);
}

void weir__tcp_fail_errno(struct weir__tcp *c, int errnum)
{
    struct weir_error err;

    weir__fail_errno(&err, errnum, c->peer);
    weir__tcp_fail(c, WEIR_EUNREACHABLE, "%s", err.text);
}

/* What to wait for. A wish that has gone is dropped only when its event comes, because most of them
 * return before that, and changing them costs system calls. While paused we still want to know of a
 * peer that vanishes, once. */

static int wanted_events(const struct weir__tcp *c)
{
    bool wants_write = c->blocked || (c->tls && weir__tls_wants_write(c->tls));
    int want = wants_write ? UV_WRITABLE : 0;

    switch (c->state) {
    case WEIR__TCP_HANDSHAKE: return wants_write ? UV_WRITABLE : UV_READABLE;
    case WEIR__TCP_DIALING:
    case WEIR__TCP_CLOSED: return 0;
    default: break;
    }
    if (c->ended) return want;
    if (c->state == WEIR__TCP_OPEN && c->paused) return c->hung_up ? want : want | UV_DISCONNECT;
    return want | UV_READABLE;
}

static void on_event(uv_poll_t *p, int status, int events);

static void wait_for(struct weir__tcp *c, int events)
{
    int rc = 0;

    if (events == c->events) return;
    if (events)
        rc = uv_poll_start(&c->poll, events, on_event);
    else
        uv_poll_stop(&c->poll);
    c->events = events;
    if (rc != 0) weir__tcp_fail(c, WEIR_EIO, "waiting for a socket: %s", uv_strerror(rc));
}

/* The end, step by step. */

static void say_goodbye(struct weir__tcp *c)
{
    enum weir__flow flow = c->tls ? weir__tls_end(c->tls, NULL) : WEIR__FLOW_MOVED;

    c->blocked = flow == WEIR__FLOW_WAIT;
    if (c->blocked) return;
    shutdown(c->fd, SHUT_WR);
    weir__tcp_set_state(c, WEIR__TCP_DRAINING);
}

static void on_poll_closed(uv_handle_t *h)
{
    free(h->data);
}

static void dispose(struct weir__tcp *c)
{
    struct weir_error why = {.code = c->code};
    bool in_tls = c->tls != NULL;

    snprintf(why.text, sizeof why.text, "%s", c->why ? c->why : weir_error_text(c->code));
    weir__loop_unpost(c->loop, &c->work);
    weir__loop_unpost(c->loop, &c->late);
    weir__loop_timer_stop(c->loop, &c->timer);
    weir__loop_leave(c->loop, &c->resident);
    weir__dial_forget(c->dial);
    weir__tcp_greeted(c);
    weir__tls_free(c->tls);
    if (c->polled) uv_close((uv_handle_t *)&c->poll, on_poll_closed);
    if (c->fd >= 0) close(c->fd);
    c->calls->closed(c->owner, &why);
    if (c->listener && c->calls == &nobody &&
        (c->code == WEIR_EDENIED || c->code == WEIR_ETIMEDOUT ||
         (c->code == WEIR_EUNREACHABLE && in_tls)))
        weir__listener_failed(c->listener, c->peer, &why);
    if (c->listener) weir__listener_gone(c->listener);
    free(c->why);
    if (!c->polled) free(c);
}

/* The visit at the end of the turn. */
static void settle(void *arg)
{
    struct weir__tcp *c = arg;

    if (c->state == WEIR__TCP_OPEN && c->read_soon) weir__tcp_hear_in_turn(c);
    if (c->state == WEIR__TCP_OPEN || c->state == WEIR__TCP_ENDING) weir__tcp_write(c);
    if (c->state == WEIR__TCP_OPEN && c->owes_ack) weir__tcp_acknowledge(c);
    if (c->state > WEIR__TCP_OPEN && c->state < WEIR__TCP_CLOSED && !c->ended) weir__tcp_discard(c);
    if (c->state == WEIR__TCP_ENDING && !c->blocked) weir__tcp_set_state(c, WEIR__TCP_GOODBYE);
    if (c->state == WEIR__TCP_GOODBYE) say_goodbye(c);
    if (c->state == WEIR__TCP_DRAINING && c->ended) weir__tcp_fail(c, 0, "ended");
    if (c->state == WEIR__TCP_CLOSED) {
        dispose(c);
        return;
    }
    if (c->polled && (wanted_events(c) & ~c->events)) wait_for(c, wanted_events(c));
}

static void hear_late(void *arg)
{
    struct weir__tcp *c = arg;

    weir__tcp_hear(c);
    weir__tcp_visit(c);
}

/* The beginning. */

void weir__tcp_become_open(struct weir__tcp *c)
{
    weir__tcp_greeted(c);
    weir__tcp_set_state(c, WEIR__TCP_OPEN);
    weir__tcp_visit(c);
    if (c->listener && !weir__listener_welcome(c->listener, c))
        weir__tcp_fail(c, WEIR_ECANCELED, "refused");
    else if (!c->listener)
        c->calls->opened(c->owner, c);
    /* OpenSSL may have read on beyond the handshake. */
    if (c->tls) c->read_soon = true;
}

/* A socket's error, or none: then the events are as good as any. */
static bool socket_failed(struct weir__tcp *c)
{
    int errnum = 0;
    socklen_t len = sizeof errnum;

    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
    if (errnum != 0) weir__tcp_fail_errno(c, errnum);
    return errnum != 0;
}

/* Whether an error is found by reading, behind what came before it. Who has dialled wants to know
 * all that the peer had to say: on a busy machine an answer and the end of the road are seen at the
 * same time. Who was called drops it: a peer that is gone will ask again, and should not find that
 * its old words have come in behind its new ones. */
static bool reads_to_the_end(const struct weir__tcp *c)
{
    return !c->listener && c->state == WEIR__TCP_OPEN && !c->paused && !c->ended;
}

static void on_event(uv_poll_t *p, int status, int events)
{
    struct weir__tcp *c = p->data;

    c->loop->active = true;
    weir__loop_begin_turn(c->loop);
    weir__tcp_visit(c);
    if (status < 0) { /* libuv has stopped watching */
        c->events = 0;
        if (!reads_to_the_end(c) && socket_failed(c)) return;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (events & UV_DISCONNECT) c->hung_up = true;
    if (c->state == WEIR__TCP_HANDSHAKE || c->tls || (events & UV_READABLE))
        weir__tcp_hear_in_turn(c);
    if (c->state != WEIR__TCP_CLOSED && (events & ~wanted_events(c))) wait_for(c, wanted_events(c));
}

/* There is no road between two ends on one machine, so none that could be congested. Linux's BBR,
 * where it is the default, paces such a connection all the same, with a timer for every few
 * packets; reno, which every Linux has, sends until the peer's window is full. */
static void spare_pacing(struct weir__tcp *c)
{
#ifdef TCP_CONGESTION
    static const char plain[] = "reno";

    if (weir__address_shared(c->fd))
        setsockopt(c->fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
#else
    (void)c;
#endif
}

static void set_options(struct weir__tcp *c)
{
    int on = 1, dead_s = (int)(c->limits.dead_ms / 1000), probe_s = dead_s / 3;
    unsigned dead_ms = c->limits.dead_ms, stall_ms = c->limits.stall_ms;

    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    spare_pacing(c);
    if (dead_ms == WEIR__TCP_NEVER) return;
    if (dead_s < 1) dead_s = 1;
    if (probe_s < 1) probe_s = 1;
    setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, &dead_s, sizeof dead_s);
    setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof probe_s);
    /* Also counts against a peer that is alive and does not read, for whom stall_ms is meant. */
    if (dead_ms < stall_ms && stall_ms != WEIR__TCP_NEVER) dead_ms = stall_ms;
    setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
}

static int watch(struct weir__tcp *c)
{
    int rc = uv_poll_init(&c->loop->uv, &c->poll, c->fd);

    if (rc != 0) return rc;
    c->poll.data = c;
    c->polled = true;
    return 0;
}

void weir__tcp_start(struct weir__tcp *c)
{
    int rc;

    if (!c->resident.in) weir__loop_enter(c->loop, &c->resident);
    weir__tcp_visit(c);
    set_options(c);
    weir__tcp_set_state(c, c->tls_context ? WEIR__TCP_HANDSHAKE : WEIR__TCP_OPEN);
    if ((rc = watch(c)) != 0)
        weir__tcp_fail(c, WEIR_EIO, "watching a socket: %s", uv_strerror(rc));
    else if (!c->tls_context)
        weir__tcp_become_open(c);
    else if (!c->listener)
        weir__tcp_greet(c);
}

/* What the owner and the loop may ask for. */

static void evict(void *arg)
{
    weir__tcp_fail(arg, WEIR_ECANCELED, "the loop stops");
}

static uint32_t limit_or(uint32_t given, uint32_t otherwise)
{
    return given ? given : otherwise;
}

struct weir__tcp *weir__tcp_new(struct weir__loop *l, int fd, enum weir__tcp_state state,
                                const struct weir__tcp_limits *limits)
{
    struct weir__tcp *c = calloc(1, sizeof *c);

    if (!c) return NULL;
    c->loop = l;
    c->fd = fd;
    c->turn = UINT64_MAX; /* none yet */
    c->state = state;
    c->calls = &nobody;
    c->limits = (struct weir__tcp_limits){
        .open_ms = limit_or(limits->open_ms, defaults.open_ms),
        .idle_ms = limit_or(limits->idle_ms, defaults.idle_ms),
        .stall_ms = limit_or(limits->stall_ms, defaults.stall_ms),
        .end_ms = limit_or(limits->end_ms, defaults.end_ms),
        .dead_ms = limit_or(limits->dead_ms, defaults.dead_ms),
    };
    weir__post_init(&c->work, settle, c);
    weir__post_init(&c->late, hear_late, c);
    weir__timer_init(&c->timer, on_limit, c);
    c->resident = (struct weir__resident){.evict = evict, .arg = c};
    return c;
}

void weir__tcp_free(struct weir__tcp *c)
{
    if (c->fd >= 0) close(c->fd);
    free(c);
}

void weir__tcp_adopt(struct weir__tcp *c, const struct weir__tcp_calls *calls, void *owner)
{
    assert(weir__loop_here(c->loop));
    c->calls = calls;
    c->owner = owner;
}

void weir__tcp_pause(struct weir__tcp *c)
{
    assert(weir__loop_here(c->loop));
    c->paused = true;
}

void weir__tcp_resume(struct weir__tcp *c)
{
    assert(weir__loop_here(c->loop));
    if (!c->paused) return;
    c->paused = false;
    c->read_soon = true;
    weir__tcp_visit(c);
}

void weir__tcp_flush(struct weir__tcp *c)
{
    weir__tcp_visit(c);
}

void weir__tcp_end(struct weir__tcp *c)
{
    assert(weir__loop_here(c->loop));
    if (c->state < WEIR__TCP_OPEN) weir__tcp_fail(c, WEIR_ECANCELED, "ended before it was open");
    if (c->state != WEIR__TCP_OPEN) return;
    weir__tcp_set_state(c, WEIR__TCP_ENDING);
    weir__tcp_visit(c);
}

void weir__tcp_abort(struct weir__tcp *c, const char *why)
{
    assert(weir__loop_here(c->loop));
    weir__tcp_fail(c, WEIR_ECANCELED, "%s", why ? why : "aborted");
}

bool weir__tcp_ending(const struct weir__tcp *c)
{
    return c->state == WEIR__TCP_ENDING;
}

struct weir__loop *weir__tcp_loop(const struct weir__tcp *c)
{
    return c->loop;
}

const char *weir__tcp_peer(const struct weir__tcp *c)
{
    return c->peer;
}

const struct weir__tls *weir__tcp_tls(const struct weir__tcp *c)
{
    return c->tls;
}
