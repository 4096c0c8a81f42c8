/* wire_connection.c - the socket and the engine: connected when somebody needs it, and again when it
 * was lost, after a pause that grows with every failure and shrinks when something was carried.
 *
 *   DOWN > DIALING > READY > (lost) > RESTING > DIALING > ...
 *
 * What is lost with a connection: its links, sessions, tokens and unanswered requests. They are told
 * in this order, and ask for the next connection by themselves. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/wire.h"
#include "tunnel/tunnel.h"

#define FRAME_BYTES WEIR__AMQP_FRAME_LARGE /* a stored batch in one piece */
#define INPUT_BYTES 262144
#define OUTPUT_BYTES ((uint32_t)1 << 20)
#define PARTIAL_BYTES ((uint32_t)64 << 20) /* the largest message that can be received */
#define LINKS_MAX 65535
#define LINE_BYTES 512

/* The same before trust as after it: we have chosen whom to talk to. */
static const struct weir__amqp_limits limits = {
    .frame_bytes = FRAME_BYTES,
    .input_bytes = INPUT_BYTES,
    .output_bytes = OUTPUT_BYTES,
    .partial_bytes = PARTIAL_BYTES,
    .sessions = 1024,
    .links = LINKS_MAX,
    .unsettled = 8192, /* the window, too: twice the credit of a source */
};

void weir__wire_log(struct weir__wire *w, enum weir__level level, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;

    if (!w->logger.fn) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    w->logger.fn(level, "client", line, w->logger.user);
}

static void set_trouble(struct weir__wire *w, const struct weir_error *why)
{
    weir__mutex_lock(&w->lock);
    w->trouble = *why;
    weir__mutex_unlock(&w->lock);
}

/* The same, with a line of the log: once, however often it is tried again, and none for what the
 * callers are told themselves. */
static void tell_trouble(struct weir__wire *w, const struct weir_error *why)
{
    bool known = weir__wire_is_final(w, why) || strcmp(w->trouble.text, why->text) == 0;

    weir__wire_log(w, known ? WEIR__DEBUG : WEIR__WARN, "%s: %s", w->to.address, why->text);
    set_trouble(w, why);
}

static bool is_needed(struct weir__wire *w)
{
    if (w->queries) return true;
    for (struct weir__wire_link *l = w->links; l; l = l->next)
        if (l->calls->wanted(l)) return true;
    return false;
}

/* Who waits for a first answer is told that there will be none. What was open before goes on trying:
 * the other side was let in then. */
static void fail_waiting(struct weir__wire *w, const struct weir_error *why)
{
    struct weir__wire_link *l, *next;

    for (l = w->links; l; l = next) {
        next = l->next;
        if (weir__wire_link_opening(l)) weir__wire_link_fail(l, why);
    }
    while (w->queries) weir__wire_query_end(w->queries, why);
}

void weir__wire_advance_all(struct weir__wire *w)
{
    struct weir__wire_link *l, *next_link;
    struct weir__wire_query *q, *next_query;
    struct weir_error none = {0};

    if (w->stage == WEIR__WIRE_DIALING && weir__wire_desk_ready(&w->cbs)) {
        w->stage = WEIR__WIRE_READY;
        set_trouble(w, &none);
    }
    for (l = w->links; l; l = next_link) {
        next_link = l->next;
        weir__wire_link_advance(l);
    }
    for (q = w->queries; q; q = next_query) {
        next_query = q->next;
        weir__wire_query_advance(q);
    }
}

void weir__wire_write_soon(struct weir__wire *w)
{
    if (w->tcp) weir__tcp_flush(w->tcp);
}

void weir__wire_break(struct weir__wire *w, const char *why)
{
    if (w->tcp) weir__tcp_abort(w->tcp, why);
}

/* ---- events ---- */

static void on_open(struct weir__wire *w)
{
    struct weir_error err;

    w->told = (struct weir__wire_told){0};
    w->met = true;
    if (weir__wire_desk_open(&w->cbs, w, "$cbs", &err) != 0) weir__wire_break(w, err.text);
}

static void on_close(struct weir__wire *w, const struct weir__amqp_event *ev)
{
    enum weir__wire_cure cure;
    struct weir_error why;

    w->fallen = true;
    if (w->stage == WEIR__WIRE_CLOSING || w->known) return;
    cure = weir__wire_error(&ev->error, &why);
    weir__wrap(&why, why.code, "the connection was closed");
    if (cure == WEIR__WIRE_CLAIM && w->stage == WEIR__WIRE_DIALING)
        fail_waiting(w, &why);
    else
        why.code = WEIR_EUNREACHABLE;
    weir__wire_explain(w, WEIR__WIRE_NOT_AMQP, &why);
    tell_trouble(w, &why);
}

static void on_protocol(struct weir__wire *w)
{
    struct weir_error why;

    weir__fail(&why, WEIR_EUNREACHABLE, "%s does not speak AMQP 1.0", w->to.address);
    weir__wire_explain(w, WEIR__WIRE_NOT_AMQP, &why);
    w->fallen = true;
    tell_trouble(w, &why);
}

static void pump_all(struct weir__wire *w)
{
    for (struct weir__wire_link *l = w->links; l; l = l->next)
        if (l->state == WEIR__WIRE_LINK_OPEN && !l->fresh) l->calls->pump(l);
}

static void on_begin(struct weir__wire *w, const struct weir__amqp_event *ev)
{
    struct weir__wire_session *s = w->sessions;

    while (s && s->session != ev->session) s = s->next;
    if (s) {
        s->answered = true;
        weir__wire_advance_all(w);
    } else if (ev->fields->begin.handle_max.u == 0) { /* a desk's, which has two */
        weir__wire_break(w, "a session takes one link only, and requests need two");
    }
}

/* Its links have been told before. */
static void end_session(struct weir__wire *w, struct weir__amqp_session *gone)
{
    struct weir__wire_session **at = &w->sessions, *s;

    while (*at && (*at)->session != gone) at = &(*at)->next;
    if (!*at) return;
    s = *at;
    *at = s->next;
    for (struct weir__wire_link *l = w->links; l; l = l->next) {
        if (l->session != s) continue;
        l->session = NULL;
        if (l->cure == WEIR__WIRE_FATAL) l->cure = WEIR__WIRE_AGAIN;
    }
    free(s);
}

static void on_event(struct weir__wire *w, const struct weir__amqp_event *ev)
{
    struct weir__wire_end *end = ev->link ? weir__amqp_link_user(ev->link) : NULL;

    switch (ev->type) {
    case WEIR__AMQP_EVENT_PROTOCOL: on_protocol(w); break;
    case WEIR__AMQP_EVENT_OPEN: on_open(w); break;
    case WEIR__AMQP_EVENT_BEGIN: on_begin(w, ev); break;
    case WEIR__AMQP_EVENT_END: end_session(w, ev->session); break;
    case WEIR__AMQP_EVENT_CLOSE: on_close(w, ev); break;
    case WEIR__AMQP_EVENT_SASL: break;
    default:
        if (end)
            end->event(end, ev);
        else if (ev->type == WEIR__AMQP_EVENT_FLOW && !ev->link)
            pump_all(w);
    }
}

static void take_events(struct weir__wire *w)
{
    struct weir__amqp_event ev;
    struct weir__wire_link *l, *next;

    while (weir__amqp_next(w->engine, &ev)) on_event(w, &ev);
    if (!w->any_fresh) return;
    w->any_fresh = false;
    for (l = w->links; l; l = next) {
        next = l->next;
        if (l->fresh || l->ended) weir__wire_link_round(l);
    }
}

static void serve(struct weir__wire *w)
{
    int64_t at;

    take_events(w);
    at = weir__amqp_tick(w->engine, weir__loop_now_ms(w->loop));
    take_events(w);
    weir__loop_timer_start(w->loop, &w->tick, at);
    if (!w->tcp) return;
    weir__tcp_flush(w->tcp);
    if (weir__amqp_closed(w->engine))
        weir__tcp_end(w->tcp);
    else
        weir__tcp_resume(w->tcp);
}

void weir__wire_do_tick(void *arg)
{
    struct weir__wire *w = arg;

    if (w->engine) serve(w);
}

/* The output has room again. */
void weir__wire_do_work(void *arg)
{
    struct weir__wire *w = arg;

    if (!w->engine) return;
    w->starved = false;
    pump_all(w);
    serve(w);
}

/* ---- the socket ---- */

static void opened(void *owner, struct weir__tcp *tcp)
{
    (void)tcp;
    serve(owner);
}

/* Without room nothing is read before the next tick, which may be far when there was no memory. */
static uint8_t *give_room(void *owner, size_t *room)
{
    struct weir__wire *w = owner;
    uint8_t *to = weir__amqp_input(w->engine, room);

    if (*room == 0)
        weir__loop_timer_start(w->loop, &w->tick, weir__loop_now_ms(w->loop) + WEIR__AMQP_REST_MS);
    return to;
}

static void received(void *owner, size_t bytes)
{
    struct weir__wire *w = owner;

    weir__amqp_received(w->engine, bytes);
    serve(w);
}

/* The other side says nothing more, and frames of it may lie in the input: they had to wait for room
 * in the output, which nobody reads any more. The output is dropped, so that they are taken: they may
 * tell what was accepted, and why it left. Every round takes frames of the input, or rests of messages
 * that were begun, and neither grows. */
static void hear_out(struct weir__wire *w)
{
    while (weir__amqp_choked(w->engine)) {
        w->deaf = true;
        weir__amqp_sent(w->engine, weir__amqp_output(w->engine).len);
        take_events(w);
    }
}

static void lose(struct weir__wire *w)
{
    hear_out(w);
    weir__amqp_lost(w->engine);
    take_events(w);
}

/* Behind output that was dropped nothing is written: the other side has a part of a frame. */
static void ended(void *owner)
{
    struct weir__wire *w = owner;

    lose(w);
    if (w->deaf)
        weir__tcp_abort(w->tcp, "the other side left without reading");
    else
        weir__tcp_end(w->tcp);
}

static struct weir__bytes output(void *owner)
{
    return weir__amqp_output(((struct weir__wire *)owner)->engine);
}

static void sent(void *owner, size_t bytes)
{
    struct weir__wire *w = owner;

    if (weir__amqp_sent(w->engine, bytes) || w->starved) weir__loop_defer(w->loop, &w->work);
}

/* Says goodbye to everything that lived on the connection. */
static void clear(struct weir__wire *w)
{
    if (w->engine) {
        lose(w);
        weir__amqp_free(w->engine);
    }
    w->engine = NULL;
    w->starved = false;
    while (w->sessions) end_session(w, w->sessions->session);
    weir__loop_timer_stop(w->loop, &w->tick);
    weir__wire_claims_lost(w);
    weir__wire_desk_lost(&w->cbs);
    weir__wire_desk_lost(&w->management);
}

static void finish_close(struct weir__wire *w)
{
    weir__loop_timer_stop(w->loop, &w->retry);
    weir__wire_claims_free(w);
    weir__mutex_lock(&w->lock);
    w->closed = true;
    weir__cond_broadcast(&w->changed);
    weir__mutex_unlock(&w->lock);
}

/* The connection is gone, or never was: another one is tried when somebody needs it. */
static void rest(struct weir__wire *w)
{
    if (w->useful) w->attempts = 0;
    w->useful = false;
    w->stage = WEIR__WIRE_DOWN;
    if (!is_needed(w)) return;
    w->stage = WEIR__WIRE_RESTING;
    weir__loop_timer_start(w->loop, &w->retry,
                           weir__loop_now_ms(w->loop) + weir__wire_delay_ms(++w->attempts));
}

/* TLS fails for many reasons; only a certificate that is not good stays so. */
static bool is_stranger(const struct weir_error *why)
{
    return why->code == WEIR_EDENIED && strstr(why->text, "certificate is not good");
}

/* Why there is no connection, as far as on_close and on_protocol have not told. */
static void judge_end(struct weir__wire *w, const struct weir_error *why)
{
    struct weir_error said = *why;
    enum weir__wire_failure failure = is_stranger(why)            ? WEIR__WIRE_STRANGER
                                      : why->code == WEIR_EDENIED ? WEIR__WIRE_NOT_TLS
                                                                  : WEIR__WIRE_BROKEN;

    w->known = true;
    if (w->fallen) return;
    if (why->code == 0) weir__fail(&said, WEIR_EUNREACHABLE, "the other side hung up");
    if (failure != WEIR__WIRE_STRANGER && why->code != WEIR_ENOMEM) said.code = WEIR_EUNREACHABLE;
    weir__wire_explain(w, failure, &said);
    tell_trouble(w, &said);
}

static void closed(void *owner, const struct weir_error *why)
{
    struct weir__wire *w = owner;
    bool closing = w->stage == WEIR__WIRE_CLOSING;

    w->tcp = NULL;
    hear_out(w);
    if (!closing) judge_end(w, why);
    clear(w);
    if (closing) {
        finish_close(w);
        return;
    }
    if (is_stranger(why) || weir__wire_is_final(w, &w->trouble)) fail_waiting(w, &w->trouble);
    rest(w);
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

/* ---- dialling ---- */

static int make_engine(struct weir__wire *w, struct weir_error *err)
{
    struct weir__amqp_options o = {
        .client = true,
        .container_id = w->container,
        .hostname = w->to.host,
        .mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_ANONYMOUS),
        .user = *w->to.key_name ? w->to.key_name : NULL,
        .idle_ms = w->idle_ms,
        .before = limits,
        .after = limits,
    };

    return weir__amqp_new(&w->engine, &o, err);
}

static int make_road(struct weir__wire *w, struct weir_error *err)
{
    static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};
    struct weir__tunnel_options o = {
        .tcp = {.address = w->to.address,
                .tls = w->tls,
                .tls_name = w->to.host,
                .limits = {.dead_ms = w->idle_ms, .stall_ms = 2 * w->idle_ms}},
        .path = "/$servicebus/websocket",
        .protocols = protocols,
    };

    if (w->to.websocket) return weir__tunnel_connect(&w->tcp, w->loop, &o, &calls, w, err);
    return weir__tcp_connect(&w->tcp, w->loop, &o.tcp, &calls, w, err);
}

static void dial(struct weir__wire *w)
{
    struct weir_error err;
    int rc = make_engine(w, &err);

    w->stage = WEIR__WIRE_DIALING;
    w->fallen = w->known = w->deaf = false;
    if (rc == 0) rc = make_road(w, &err);
    if (rc == 0) return;
    w->known = true;
    set_trouble(w, &err);
    clear(w);
    if (weir__wire_is_final(w, &err)) fail_waiting(w, &err);
    rest(w);
}

void weir__wire_connect(struct weir__wire *w)
{
    if (w->stage == WEIR__WIRE_DOWN) dial(w);
}

/* The pause is over; or, while closing, the other side's time to say goodbye. */
void weir__wire_do_retry(void *arg)
{
    struct weir__wire *w = arg;

    if (w->stage == WEIR__WIRE_CLOSING) {
        weir__wire_break(w, "closing took too long");
        return;
    }
    w->stage = WEIR__WIRE_DOWN;
    if (is_needed(w)) dial(w);
}

void weir__wire_do_close(void *arg)
{
    struct weir__wire *w = arg;
    struct weir_error why;

    weir__fail(&why, WEIR_ECANCELED, "the place was closed");
    w->stage = WEIR__WIRE_CLOSING;
    while (w->queries) weir__wire_query_end(w->queries, &why);
    while (w->links) weir__wire_link_drop(w->links);
    if (!w->tcp) {
        clear(w);
        finish_close(w);
        return;
    }
    weir__loop_timer_start(w->loop, &w->retry, weir__loop_now_ms(w->loop) + WEIR__WIRE_LEAVE_MS);
    weir__amqp_close(w->engine, NULL);
    serve(w);
}
