/* wire_link.c - a link's life, the same for senders and sources.
 *
 *   IDLE > (connection, claim) > ATTACHING > OPEN > (lost) > IDLE ...
 *                                  | refused      | detached with an error
 *                                  RESTING > IDLE, or failed: what cannot be cured is told
 *
 * A caller's thread makes a link, waits until it is open, and gives it back to the loop by closing
 * it; between these it only sets members under the lock and asks for a visit. */
#include <stdio.h>
#include <stdlib.h>

#include "client/wire.h"

#define SENDERS_PER_SESSION 16u
#define SOURCES_PER_SESSION 200u
#define NAME_BYTES (WEIR__WIRE_ADDRESS_BYTES + 32)

/* ---- sessions ---- */

static struct weir__wire_session *make_session(struct weir__wire *w, bool sends,
                                               struct weir_error *err)
{
    struct weir__wire_session *s = calloc(1, sizeof *s);

    if (!s) {
        weir__fail(err, WEIR_ENOMEM, "no memory for a session");
        return NULL;
    }
    if (weir__amqp_begin(w->engine, &s->session, err) != 0) {
        free(s);
        return NULL;
    }
    s->sends = sends;
    s->next = w->sessions;
    w->sessions = s;
    return s;
}

/* How many links a session takes is known when it was answered. One it takes in any case; the
 * others wait for the answer: WEIR_EBUSY. */
struct weir__wire_session *weir__wire_session_use(struct weir__wire *w, bool sends,
                                                  struct weir_error *err)
{
    unsigned max = sends ? SENDERS_PER_SESSION : SOURCES_PER_SESSION;
    struct weir__wire_session *s = w->sessions;
    bool awaited = false;

    for (; s; s = s->next) {
        if (s->sends != sends || s->full || s->links >= max) continue;
        if (s->answered || s->links == 0) break;
        awaited = true;
    }
    if (!s && awaited) {
        weir__fail(err, WEIR_EBUSY, "a session that was not answered yet");
        return NULL;
    }
    if (!s) s = make_session(w, sends, err);
    if (s) s->links++;
    return s;
}

void weir__wire_session_release(struct weir__wire_session *s)
{
    if (!s) return;
    s->links--;
    s->full = false;
}

bool weir__wire_link_opening(struct weir__wire_link *l)
{
    bool opening;

    weir__mutex_lock(&l->lock);
    opening = l->opening;
    weir__mutex_unlock(&l->lock);
    return opening;
}

static bool is_closing(struct weir__wire_link *l)
{
    bool closing;

    weir__mutex_lock(&l->lock);
    closing = l->closing;
    weir__mutex_unlock(&l->lock);
    return closing;
}

/* ---- attaching, on the loop ---- */

static void rest(struct weir__wire_link *l, int64_t delay_ms)
{
    l->state = WEIR__WIRE_LINK_RESTING;
    weir__loop_timer_start(l->wire->loop, &l->timer, weir__loop_now_ms(l->wire->loop) + delay_ms);
}

/* WEIR_ELIMIT: the session has no handle left, and is not used before a link of it has gone. */
static int attach_in(struct weir__wire_link *l, struct weir__wire_session *s,
                     const struct weir__amqp_terms *terms, struct weir_error *err)
{
    int rc = weir__amqp_attach(s->session, terms, &l->end.link, err);

    if (rc == 0) {
        l->session = s;
        return 0;
    }
    weir__wire_session_release(s);
    s->full = rc == WEIR_ELIMIT;
    return rc;
}

static int attach(struct weir__wire_link *l, struct weir_error *err)
{
    uint8_t space[WEIR__WIRE_TERMS_BYTES];
    struct weir__amqp_terms terms = {.role =
                                         l->calls->sends ? WEIR__AMQP_SENDER : WEIR__AMQP_RECEIVER};
    struct weir__wire_session *s;
    char name[NAME_BYTES];
    int rc, len = snprintf(name, sizeof name, "%s;%llu", l->address,
                           (unsigned long long)++l->wire->numbers);

    terms.name = weir__bytes_of(name, (size_t)len);
    l->calls->terms(l, &terms, space);
    do {
        s = weir__wire_session_use(l->wire, l->calls->sends, err);
        if (!s) return err->code;
        rc = attach_in(l, s, &terms, err);
    } while (rc == WEIR_ELIMIT && s->links > 0); /* an empty one means that there is no other */
    if (rc != 0) return rc;
    weir__amqp_link_set_user(l->end.link, &l->end);
    l->state = WEIR__WIRE_LINK_ATTACHING;
    weir__wire_write_soon(l->wire);
    return 0;
}

void weir__wire_link_advance(struct weir__wire_link *l)
{
    struct weir__wire *w = l->wire;
    struct weir_error err;
    int rc;

    if (l->state != WEIR__WIRE_LINK_IDLE || w->stage == WEIR__WIRE_CLOSING || !l->calls->wanted(l))
        return;
    weir__wire_connect(w);
    if (w->stage != WEIR__WIRE_READY) return;
    if (!l->claim) l->claim = weir__wire_claim_use(w, l->audience);
    if (l->claim && !weir__wire_claim_ready(l->claim)) return;
    rc = l->claim ? attach(l, &err) : WEIR_ENOMEM;
    if (rc != 0 && rc != WEIR_EBUSY) rest(l, weir__wire_delay_ms(++l->attempts));
}

void weir__wire_link_fail(struct weir__wire_link *l, const struct weir_error *why)
{
    weir__loop_timer_stop(l->wire->loop, &l->timer);
    l->state = WEIR__WIRE_LINK_IDLE;
    weir__mutex_lock(&l->lock);
    l->why = *why;
    l->opening = false;
    weir__cond_broadcast(&l->changed);
    weir__mutex_unlock(&l->lock);
    l->calls->failed(l, why);
    if (is_closing(l)) weir__wire_link_visit(l);
}

/* What was sent and has no outcome when the detach is answered is lost, as with a connection. */
void weir__wire_link_again(struct weir__wire_link *l, int64_t pause_ms)
{
    if (!l->end.link || l->again_ms) return;
    l->again_ms = pause_ms;
    weir__amqp_detach(l->end.link, NULL);
    weir__wire_write_soon(l->wire);
}

/* By our own doing, for good. */
void weir__wire_link_end(struct weir__wire_link *l, const struct weir_error *why)
{
    if (l->end.link) {
        weir__amqp_link_set_user(l->end.link, NULL);
        weir__amqp_detach(l->end.link, NULL);
        l->end.link = NULL;
    }
    l->fresh = false;
    weir__wire_session_release(l->session);
    l->session = NULL;
    weir__wire_link_fail(l, why);
}

/* ---- leaving, on the loop ---- */

static void unlist(struct weir__wire_link *l)
{
    if (!l->listed) return;
    l->listed = false;
    if (l->prev)
        l->prev->next = l->next;
    else
        l->wire->links = l->next;
    if (l->next) l->next->prev = l->prev;
}

/* The loop has no more to do with it. */
static void let_go(struct weir__wire_link *l)
{
    bool waited;

    if (l->end.link) weir__amqp_link_set_user(l->end.link, NULL);
    weir__wire_session_release(l->session);
    weir__wire_claim_release(l->claim);
    weir__loop_timer_stop(l->wire->loop, &l->timer);
    weir__loop_unpost(l->wire->loop, &l->post);
    weir__loop_unpost(l->wire->loop, &l->wake);
    unlist(l);
    weir__mutex_lock(&l->lock);
    waited = l->waited;
    l->gone = true;
    weir__cond_broadcast(&l->changed);
    weir__mutex_unlock(&l->lock);
    if (!waited) l->calls->free(l);
}

static void leave(struct weir__wire_link *l)
{
    if (l->state == WEIR__WIRE_LINK_LEAVING || l->ended || !l->calls->idle(l)) return;
    if (!l->end.link) {
        let_go(l);
        return;
    }
    l->state = WEIR__WIRE_LINK_LEAVING;
    l->fresh = false;
    weir__amqp_detach(l->end.link, NULL);
    weir__wire_write_soon(l->wire);
    weir__loop_timer_start(l->wire->loop, &l->timer,
                           weir__loop_now_ms(l->wire->loop) + WEIR__WIRE_LEAVE_MS);
}

void weir__wire_link_drop(struct weir__wire_link *l)
{
    struct weir_error why;

    weir__fail(&why, WEIR_ECANCELED, "the place was closed before it was sent");
    l->calls->lost(l);
    l->calls->failed(l, &why);
    let_go(l);
}

/* ---- events ---- */

/* A token that was refused is no answer when it had ended by then; else a new one may help, but not
 * twice in a row. */
static enum weir__wire_cure judge_claim(struct weir__wire_link *l)
{
    bool late = weir__wire_claim_late(l->claim);

    weir__wire_claim_doubt(l->claim);
    return l->was_open || late || l->denied++ == 0 ? WEIR__WIRE_AGAIN : WEIR__WIRE_FATAL;
}

/* Before it is attached again. */
static int64_t pause_of(struct weir__wire_link *l, int64_t again_ms)
{
    if (l->cure == WEIR__WIRE_BUSY) return WEIR__WIRE_BUSY_MS;
    return again_ms ? again_ms : weir__wire_delay_ms(++l->attempts);
}

/* What to do after an end. */
static void judge(struct weir__wire_link *l)
{
    struct weir_error *why = &l->ended_why;
    int64_t again_ms = l->again_ms;

    l->ended = false;
    l->again_ms = 0;
    weir__wire_session_release(l->session);
    l->session = NULL;
    if (l->wire->fallen) { /* the next connection is what it waits for */
        l->state = WEIR__WIRE_LINK_IDLE;
        return;
    }
    if (l->was_open && !again_ms)
        weir__wire_log(l->wire, WEIR__INFO, "%s: %s", l->address, why->text);
    if (l->cure == WEIR__WIRE_CLAIM) l->cure = judge_claim(l);
    if (!l->was_open && why->code == WEIR_ESTOLEN) why->code = WEIR_EEPOCH;
    if (l->cure == WEIR__WIRE_FATAL)
        weir__wire_link_fail(l, why);
    else
        rest(l, pause_of(l, again_ms));
}

static void confirm(struct weir__wire_link *l)
{
    l->fresh = false;
    l->attempts = 0;
    l->denied = 0;
    weir__mutex_lock(&l->lock);
    l->why.code = 0;
    l->opening = false;
    l->opened = true;
    weir__cond_broadcast(&l->changed);
    weir__mutex_unlock(&l->lock);
    l->calls->pump(l);
}

/* A link is known to be open when nothing speaks against it behind its attach. */
void weir__wire_link_round(struct weir__wire_link *l)
{
    if (l->ended) judge(l);
    if (l->fresh) confirm(l);
    if (is_closing(l)) weir__wire_link_visit(l);
}

static bool is_refusal(const struct weir__wire_link *l, const struct weir__amqp_composite *f)
{
    return (l->calls->sends ? f->attach.target : f->attach.source).type == WEIR__AMQP_NULL;
}

static void on_attach(struct weir__wire_link *l, const struct weir__amqp_event *ev)
{
    if (l->state != WEIR__WIRE_LINK_ATTACHING || is_refusal(l, ev->fields)) return;
    l->state = WEIR__WIRE_LINK_OPEN;
    l->fresh = l->wire->any_fresh = true;
    l->calls->attached(l, ev->fields);
}

/* The other side, or the road, has ended it. What is done about it waits until the events of this
 * round are through: when its whole session went, the error was not about this link. */
static void on_detach(struct weir__wire_link *l, const struct weir__amqp_event *ev)
{
    l->end.link = NULL;
    if (l->state == WEIR__WIRE_LINK_LEAVING) {
        let_go(l);
        return;
    }
    l->was_open = l->state == WEIR__WIRE_LINK_OPEN && !l->fresh;
    l->state = WEIR__WIRE_LINK_RESTING;
    l->fresh = false;
    l->ended = l->wire->any_fresh = true;
    l->cure = weir__wire_error(&ev->error, &l->ended_why);
    l->calls->lost(l);
}

static void on_event(struct weir__wire_end *end, const struct weir__amqp_event *ev)
{
    struct weir__wire_link *l =
        (struct weir__wire_link *)((char *)end - offsetof(struct weir__wire_link, end));

    switch (ev->type) {
    case WEIR__AMQP_EVENT_ATTACH: on_attach(l, ev); break;
    case WEIR__AMQP_EVENT_DETACH: on_detach(l, ev); break;
    case WEIR__AMQP_EVENT_TRANSFER:
        l->wire->useful = true;
        if (l->calls->transfer) l->calls->transfer(l, &ev->delivery);
        break;
    case WEIR__AMQP_EVENT_SETTLE:
        l->wire->useful = true;
        if (l->calls->settle) l->calls->settle(l, &ev->settle);
        if (is_closing(l)) weir__wire_link_visit(l);
        break;
    case WEIR__AMQP_EVENT_FLOW:
        if (l->state == WEIR__WIRE_LINK_OPEN && !l->fresh) l->calls->pump(l);
        break;
    default: break;
    }
}

static void on_timer(void *arg)
{
    struct weir__wire_link *l = arg;

    if (l->state == WEIR__WIRE_LINK_LEAVING) {
        let_go(l);
        return;
    }
    if (l->state == WEIR__WIRE_LINK_RESTING) l->state = WEIR__WIRE_LINK_IDLE;
    weir__wire_link_advance(l);
}

static void do_wake(void *arg)
{
    struct weir__wire_link *l = arg;

    if (l->calls->woken) l->calls->woken(l); /* and shows what they wake up for */
    weir__mutex_lock(&l->lock);
    weir__cond_broadcast(&l->changed);
    weir__mutex_unlock(&l->lock);
}

static void do_visit(void *arg)
{
    struct weir__wire_link *l = arg;

    if (!l->listed) {
        l->listed = true;
        l->prev = NULL;
        l->next = l->wire->links;
        if (l->next) l->next->prev = l;
        l->wire->links = l;
    }
    if (l->wire->stage == WEIR__WIRE_CLOSING) {
        weir__wire_link_drop(l);
        return;
    }
    if (l->calls->visited) l->calls->visited(l);
    weir__wire_link_advance(l);
    if (l->state == WEIR__WIRE_LINK_OPEN && !l->fresh) l->calls->pump(l);
    if (is_closing(l)) leave(l);
}

/* ---- callers ---- */

void weir__wire_link_init(struct weir__wire_link *l, struct weir__wire *w,
                          const struct weir__wire_link_calls *calls)
{
    l->wire = w;
    l->calls = calls;
    l->end.event = on_event;
    weir__timer_init(&l->timer, on_timer, l);
    weir__post_init(&l->post, do_visit, l);
    weir__post_init(&l->wake, do_wake, l);
    weir__mutex_init(&l->lock);
    weir__cond_init(&l->changed);
}

void weir__wire_link_fini(struct weir__wire_link *l)
{
    weir__cond_fini(&l->changed);
    weir__mutex_fini(&l->lock);
}

void weir__wire_link_visit(struct weir__wire_link *l)
{
    weir__loop_post(l->wire->loop, &l->post);
}

int weir__wire_link_open(struct weir__wire_link *l, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(l->wire->patience_ms);
    struct weir_error why;
    bool late = false;

    l->opening = true;
    weir__wire_link_visit(l);
    weir__mutex_lock(&l->lock);
    while (l->opening && !late) late = !weir__cond_wait(&l->changed, &l->lock, deadline_ns);
    late = l->opening;
    why = l->why;
    if (l->opened) why.code = 0; /* what failed since is for the calls that follow */
    weir__mutex_unlock(&l->lock);
    if (late) return weir__wire_late(l->wire, l->wire->patience_ms, err);
    if (why.code != 0 && err) *err = why;
    return why.code;
}

void weir__wire_link_close(struct weir__wire_link *l, bool wait)
{
    wait = wait && !weir__loop_here(l->wire->loop);
    weir__mutex_lock(&l->lock);
    l->closing = true;
    l->opening = false;
    l->waited = wait;
    weir__mutex_unlock(&l->lock);
    weir__wire_link_visit(l);
    if (!wait) return;
    weir__mutex_lock(&l->lock);
    while (!l->gone) weir__cond_wait(&l->changed, &l->lock, INT64_MAX);
    weir__mutex_unlock(&l->lock);
    l->calls->free(l);
}
