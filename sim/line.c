/* line.c - the wire between a host and the store: a call is sent, reaches the store or does not, and
 * is answered or not. A host has one call under way; who gives up waiting does not know whether it
 * was done. */
#include <assert.h>
#include <string.h>

#include "sim/oracle.h"
#include "sim/world.h"

static const struct weir_scope scope = {"sim", "hub", "$default"};

static struct weir__simstore *store_now(struct world *w)
{
    w->store->now_ms = w->now_ms + w->store_skew_ms;
    return w->store;
}

static void do_claim(struct world *w, struct call *call)
{
    struct weir_store *s = &store_now(w)->base;

    call->rc =
        s->ops->claim(s, &scope, &call->record, call->owner, call->instance, &call->record, NULL);
    if (call->rc == 0) weir__oracle_claimed(w, call);
}

static void do_marks(struct world *w, struct call *call)
{
    struct weir_store *s = &store_now(w)->base;

    call->rc = s->ops->mark(s, &scope, call->member.id, call->marks, call->mark_count, NULL);
    for (size_t i = 0; i < call->mark_count; i++) {
        if (call->marks[i].rc == 0)
            weir__oracle_marked(w, call, &call->marks[i]);
        else
            w->result->marks_fenced++;
    }
}

/* What the store does when a call arrives. */
static void take_effect(struct world *w, struct call *call)
{
    struct weir_store *s = &store_now(w)->base;

    switch (call->what) {
    case WEIR__CONTROL_BEAT: call->rc = s->ops->beat(s, &scope, &call->member, NULL); break;
    case WEIR__CONTROL_LEAVE: call->rc = s->ops->leave(s, &scope, &call->member, NULL); break;
    case WEIR__CONTROL_READ: call->rc = s->ops->read(s, &scope, call->view, NULL); break;
    case WEIR__CONTROL_CLAIM: do_claim(w, call); break;
    default: do_marks(w, call); break;
    }
}

static uint32_t index_of(const struct world *w, const struct host *h)
{
    return (uint32_t)(h - w->hosts);
}

/* A read that nobody waits for is not written down, and a leave is the last call of its host. */
static bool may_be_late(const struct call *call)
{
    return call->what == WEIR__CONTROL_BEAT || call->what == WEIR__CONTROL_CLAIM ||
           call->what == WEIR__CONTROL_WAIT;
}

static void send_late(struct world *w, struct host *h)
{
    uint32_t slot = w->late_next++ % LATE_MAX;

    w->late[slot] = h->call;
    weir__fault_hit(w, FAULT_LATE_EFFECT);
    weir__world_push(w, weir__world_roll(w, CALL_MS, LATE_MS), EVENT_LATE, index_of(w, h), slot);
}

/* Whether the store cannot be reached at all. */
static bool is_away(const struct world *w, const struct host *h)
{
    return w->now_ms < h->store_cut_until_ms || w->now_ms < w->outage_until_ms;
}

/* A lossy wire. Returns whether the call goes its normal way. */
static bool survives(struct world *w, struct host *h)
{
    int64_t fate = weir__world_roll(w, 0, 9);

    if (fate > 5) return true;
    h->call.rc = WEIR_ETIMEDOUT;
    if (fate > 3 && h->call.what != WEIR__CONTROL_READ) {
        weir__fault_hit(w, FAULT_LOST_REPLY);
        take_effect(w, &h->call);
        h->call.rc = WEIR_ETIMEDOUT;
    } else if (fate > 1 && may_be_late(&h->call)) {
        send_late(w, h);
    } else {
        weir__fault_hit(w, FAULT_LOST_REQUEST);
    }
    weir__world_push(w, CALL_MS, EVENT_ANSWER, index_of(w, h), 0);
    return false;
}

/* The call on h->call goes out. */
void weir__line_send(struct world *w, struct host *h)
{
    int64_t way = weir__world_roll(w, 1, 4);

    assert(!h->busy);
    h->busy = true;
    h->answered = false;
    if (w->now_ms < h->lossy_until_ms && !is_away(w, h) && !survives(w, h)) return;
    if (w->now_ms < w->slow_until_ms) way = weir__world_roll(w, 1, w->slow_ms);
    weir__world_push(w, way, EVENT_EFFECT, index_of(w, h), 0);
}

static void arrive(struct world *w, struct host *h)
{
    bool cut = w->now_ms < h->store_cut_until_ms, out = w->now_ms < w->outage_until_ms;
    bool refused = (cut && h->refused) || (out && w->outage_refused);

    if (cut || out) {
        h->call.rc = refused ? WEIR_EUNREACHABLE : WEIR_ETIMEDOUT;
        weir__world_push(w, refused ? 1 : CALL_MS, EVENT_ANSWER, index_of(w, h), 0);
        return;
    }
    take_effect(w, &h->call);
    weir__world_push(w, weir__world_roll(w, 1, 4), EVENT_ANSWER, index_of(w, h), 0);
}

void weir__line_event(struct world *w, const struct event *e)
{
    struct host *h = &w->hosts[e->host];

    if (e->kind == EVENT_LATE) {
        if (w->now_ms >= w->outage_until_ms) take_effect(w, &w->late[e->partition]);
    } else if (e->kind == EVENT_EFFECT) {
        arrive(w, h);
    } else {
        h->answered = true;
        if (!h->paused) weir__host_run(w, e->host);
    }
}
