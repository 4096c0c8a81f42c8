#include "bench/wire_client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/wire_cbs.h"
#include "io/tcp.h"

#define IDLE_MS 60000u /* announced; more than twice the silence that is a failure */
#define TEXT_BYTES 512
#define HANDLE_MAX 255 /* as the server has it: 256 links to a session */

enum phase { CONNECTING, READY, DONE, CLOSED };

struct weir__bench_wire_client {
    const struct weir__bench_wire_target *target;
    const struct weir__bench_wire_calls *calls;
    void *mode;
    struct weir__loop *loop;
    struct weir__tcp *tcp; /* NULL: not yet, or no more */
    struct weir__amqp *engine;
    struct weir__bench_wire_cbs cbs;
    struct weir__timer timer;
    struct weir__post dial, go, end;
    bool running; /* between go and the first failure, or the end */
    bool failed;

    struct weir__mutex lock; /* for what follows */
    struct weir__cond changed;
    enum phase phase;
    bool left; /* the loop has done the last that it was asked */
    int rc;
    struct weir_error why;
};

/* Everything a client needs is within these from the first byte on: there is nobody to distrust. */
static const struct weir__amqp_limits limits = {
    .frame_bytes = 65536,
    .input_bytes = 262144,
    .output_bytes = 262144,
    .partial_bytes = 4194304,
    .sessions = 2,
    .links = HANDLE_MAX + 3, /* two for $cbs */
    .unsettled = 32768,
};

/* ---- what the caller's thread sees ---- */

static void reach(struct weir__bench_wire_client *c, enum phase phase, int rc, const char *why)
{
    weir__mutex_lock(&c->lock);
    if (phase > c->phase) c->phase = phase;
    if (rc != 0 && c->rc == 0) c->rc = weir__fail(&c->why, rc, "%s", why);
    weir__cond_broadcast(&c->changed);
    weir__mutex_unlock(&c->lock);
}

/* The phase is reached, or there is no way to it. */
static int wait_for(struct weir__bench_wire_client *c, enum phase phase, struct weir_error *err)
{
    int rc;

    weir__mutex_lock(&c->lock);
    while (c->phase < phase && c->rc == 0) weir__cond_wait(&c->changed, &c->lock, INT64_MAX);
    rc = c->rc;
    if (rc != 0 && err) *err = c->why;
    weir__mutex_unlock(&c->lock);
    return rc;
}

static void wait_closed(struct weir__bench_wire_client *c)
{
    weir__mutex_lock(&c->lock);
    while (c->phase < CLOSED || !c->left) weir__cond_wait(&c->changed, &c->lock, INT64_MAX);
    weir__mutex_unlock(&c->lock);
}

void weir__bench_wire_client_ready(struct weir__bench_wire_client *c)
{
    reach(c, READY, 0, NULL);
}

void weir__bench_wire_client_done(struct weir__bench_wire_client *c)
{
    reach(c, DONE, 0, NULL);
}

void weir__bench_wire_client_fail(struct weir__bench_wire_client *c, int code, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->running = false;
    c->failed = true;
    reach(c, CONNECTING, code, text);
}

static void fail_by(struct weir__bench_wire_client *c, const char *what,
                    const struct weir__amqp_error *e)
{
    if (!e->condition.at)
        weir__bench_wire_client_fail(c, WEIR_ECLOSED, "%s without a reason", what);
    else
        weir__bench_wire_client_fail(c, WEIR_ECLOSED, "%s: %.*s: %.*s", what, (int)e->condition.len,
                                     (const char *)e->condition.at, (int)e->description.len,
                                     e->description.at ? (const char *)e->description.at : "");
}

/* ---- events ---- */

static int on_cbs_event(struct weir__bench_wire_client *c, const struct weir__amqp_event *ev,
                        struct weir_error *err)
{
    struct weir__amqp_session *session;
    bool accepted = false;
    int rc = weir__bench_wire_cbs_event(&c->cbs, c->target, ev, &accepted, err);

    if (rc != 0 || !accepted) return rc;
    rc = weir__amqp_begin(c->engine, &session, err);
    return rc == 0 ? c->calls->attach(c->mode, session, err) : rc;
}

static void on_event(struct weir__bench_wire_client *c, const struct weir__amqp_event *ev)
{
    struct weir_error err = {0};
    int rc = 0;

    switch (ev->type) {
    case WEIR__AMQP_EVENT_OPEN: rc = weir__bench_wire_cbs_attach(&c->cbs, c->engine, &err); break;
    case WEIR__AMQP_EVENT_PROTOCOL:
        weir__bench_wire_client_fail(c, WEIR_EUNREACHABLE,
                                     "the other side does not speak AMQP 1.0");
        break;
    case WEIR__AMQP_EVENT_DETACH: fail_by(c, "the link was detached", &ev->error); break;
    case WEIR__AMQP_EVENT_CLOSE: fail_by(c, "the connection was closed", &ev->error); break;
    case WEIR__AMQP_EVENT_SASL:
    case WEIR__AMQP_EVENT_PAUSE:
    case WEIR__AMQP_EVENT_BEGIN:
    case WEIR__AMQP_EVENT_END: break;
    default:
        if (weir__bench_wire_cbs_owns(&c->cbs, ev->link))
            rc = on_cbs_event(c, ev, &err);
        else
            c->calls->event(c->mode, ev);
    }
    if (rc != 0) weir__bench_wire_client_fail(c, rc, "%s", err.text);
}

static void take_events(struct weir__bench_wire_client *c)
{
    struct weir__amqp_event ev;

    while (weir__amqp_next(c->engine, &ev)) on_event(c, &ev);
}

void weir__bench_wire_client_tick(struct weir__bench_wire_client *c)
{
    int64_t at = weir__amqp_tick(c->engine, weir__loop_now_ms(c->loop));

    take_events(c);
    if (!c->timer.running || c->timer.at_ms > at) weir__loop_timer_start(c->loop, &c->timer, at);
}

bool weir__bench_wire_client_running(const struct weir__bench_wire_client *c)
{
    return c->running;
}

void weir__bench_wire_client_flush(struct weir__bench_wire_client *c)
{
    if (c->tcp) weir__tcp_flush(c->tcp);
}

static void serve(struct weir__bench_wire_client *c)
{
    take_events(c);
    weir__bench_wire_client_tick(c);
    if (!c->tcp) return;
    weir__tcp_flush(c->tcp);
    if (weir__amqp_closed(c->engine))
        weir__tcp_end(c->tcp);
    else
        weir__tcp_resume(c->tcp);
}

static void do_timer(void *arg)
{
    serve(arg);
}

/* ---- the socket ---- */

static void opened(void *owner, struct weir__tcp *tcp)
{
    (void)tcp;
    serve(owner);
}

static uint8_t *give_room(void *owner, size_t *room)
{
    return weir__amqp_input(((struct weir__bench_wire_client *)owner)->engine, room);
}

static void received(void *owner, size_t bytes)
{
    struct weir__bench_wire_client *c = owner;

    weir__amqp_received(c->engine, bytes);
    serve(c);
}

static void ended(void *owner)
{
    struct weir__bench_wire_client *c = owner;

    weir__amqp_lost(c->engine);
    take_events(c);
    weir__tcp_end(c->tcp);
}

static struct weir__bytes output(void *owner)
{
    struct weir__bench_wire_client *c = owner;
    struct weir__bytes out = weir__amqp_output(c->engine);

    if (out.len || !c->running || !c->calls->pump) return out;
    c->calls->pump(c->mode);
    return weir__amqp_output(c->engine);
}

static void sent(void *owner, size_t bytes)
{
    struct weir__bench_wire_client *c = owner;

    if (weir__amqp_sent(c->engine, bytes)) weir__bench_wire_client_tick(c);
}

static void closed(void *owner, const struct weir_error *why)
{
    struct weir__bench_wire_client *c = owner;

    c->tcp = NULL;
    c->running = false;
    weir__loop_timer_stop(c->loop, &c->timer);
    reach(c, CLOSED, why->code, why->text);
}

static const struct weir__tcp_calls calls = {
    .opened = opened,
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

/* ---- lives ---- */

static void do_dial(void *arg)
{
    struct weir__bench_wire_client *c = arg;
    struct weir__tcp_options o = {.address = c->target->address,
                                  .limits = {.idle_ms = WEIR__BENCH_WIRE_SILENCE_MS}};
    struct weir_error err;
    int rc = weir__tcp_connect(&c->tcp, c->loop, &o, &calls, c, &err);

    if (rc != 0) reach(c, CLOSED, rc, err.text);
}

static void do_go(void *arg)
{
    struct weir__bench_wire_client *c = arg;

    if (!c->tcp || c->failed) return;
    c->running = true;
    if (c->calls->begin) c->calls->begin(c->mode);
    weir__tcp_flush(c->tcp);
}

static void do_end(void *arg)
{
    struct weir__bench_wire_client *c = arg;

    c->running = false;
    if (c->tcp) {
        weir__amqp_close(c->engine, NULL);
        serve(c);
    }
    weir__mutex_lock(&c->lock);
    c->left = true;
    weir__cond_broadcast(&c->changed);
    weir__mutex_unlock(&c->lock);
}

int weir__bench_wire_client_open(struct weir__bench_wire_client **out, struct weir__loop *loop,
                                 const struct weir__bench_wire_target *target,
                                 const struct weir__bench_wire_calls *mode_calls, void *mode,
                                 struct weir_error *err)
{
    struct weir__amqp_options o = {
        .client = true,
        .container_id = "weir-bench",
        .hostname = target->address,
        .mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_ANONYMOUS),
        .user = target->rule,
        .idle_ms = IDLE_MS,
        .handle_max = HANDLE_MAX,
        .before = limits,
        .after = limits,
    };
    struct weir__bench_wire_client *c = calloc(1, sizeof *c);
    int rc;

    *out = NULL;
    if (!c) return weir__fail(err, WEIR_ENOMEM, "a connection of %zu bytes", sizeof *c);
    c->target = target;
    c->calls = mode_calls;
    c->mode = mode;
    c->loop = loop;
    weir__mutex_init(&c->lock);
    weir__cond_init(&c->changed);
    weir__timer_init(&c->timer, do_timer, c);
    weir__post_init(&c->dial, do_dial, c);
    weir__post_init(&c->go, do_go, c);
    weir__post_init(&c->end, do_end, c);
    *out = c;
    rc = weir__amqp_new(&c->engine, &o, err);
    if (rc == 0) rc = weir__loop_post(loop, &c->dial);
    if (rc != 0) {
        c->phase = CLOSED;
        return rc;
    }
    rc = wait_for(c, READY, err);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", target->address);
}

void weir__bench_wire_client_go(struct weir__bench_wire_client *c)
{
    weir__loop_post(c->loop, &c->go);
}

int weir__bench_wire_client_wait(struct weir__bench_wire_client *c, struct weir_error *err)
{
    return wait_for(c, DONE, err);
}

void weir__bench_wire_client_close(struct weir__bench_wire_client *c)
{
    if (!c) return;
    weir__loop_post(c->loop, &c->end);
    wait_closed(c);
    weir__amqp_free(c->engine);
    weir__cond_fini(&c->changed);
    weir__mutex_fini(&c->lock);
    free(c);
}
