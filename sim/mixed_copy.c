/* mixed_copy.c - a copy of ours in a mixed group: its control, one call of the store at a time, and
 * handlers that finish within a moment. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/mixed_world.h"

#define CALL_MS 1000 /* then a call is given up */
#define DRAIN_MS 150 /* at most */
#define NEVER INT64_MAX
#define TOO_LONG_MS ((int64_t)1000 * 3600 * 1000) /* the sabotage's renewals */

static const struct weir_scope scope = {"sim", "hub", "$default"};

void weir__copy_start(struct mixed *m, struct mixed_copy *c, const char *id)
{
    struct weir__control_options o = {
        .weight = 1,
        .partitions = m->partitions,
        .beat_ms = MIXED_BEAT_MS,
        .expire_ms = MIXED_EXPIRE_MS,
        .settle_ms = 300,
        .start_ms = 2000,
        .handover_ms = 10000,
        .poll_ms = 50,
        .renew_ms = m->options.sabotage == WEIR__MIXED_NO_RENEWALS ? TOO_LONG_MS : 0,
        .foreign_expire_ms = m->options.sabotage == WEIR__MIXED_HASTY ? 10000 : 0,
    };
    int rc;

    assert(!c->up);
    memset(c, 0, sizeof *c);
    snprintf(c->id, sizeof c->id, "%s", id);
    c->up = true;
    c->instance = o.instance = ++m->instances;
    c->effect_ms = c->answer_ms = NEVER;
    c->wake_ms = m->now_ms;
    for (uint32_t p = 0; p < m->partitions; p++) c->drained_ms[p] = NEVER;
    o.id = c->id;
    rc = weir__control_new(&c->control, &o, NULL);
    assert(rc == 0);
    (void)rc;
    weir__mixed_trace(m, "%s starts", id);
}

void weir__copy_crash(struct mixed *m, struct mixed_copy *c)
{
    struct weir__control_counts counts;

    if (!c->up) return;
    weir__control_counts(c->control, &counts);
    m->result->lost += counts.lost;
    weir__control_free(c->control);
    c->control = NULL;
    c->up = false;
    c->effect_ms = NEVER;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t weir__copy_due(const struct mixed_copy *c)
{
    int64_t due = c->busy ? c->answer_ms : c->wake_ms;

    if (!c->up) return NEVER;
    for (uint32_t p = 0; p < WEIR__FOREIGN_PARTITIONS_MAX; p++)
        if (c->running[p]) due = least(due, c->drained_ms[p]);
    if (due < c->frozen_until_ms) due = c->frozen_until_ms;
    return least(due, c->effect_ms); /* a call under way arrives, whatever becomes of its sender */
}

static void take_effect(struct mixed *m, struct mixed_copy *c)
{
    struct weir_store *s = &m->store->base;
    struct mixed_call *call = &c->call;

    c->effect_ms = NEVER;
    switch (call->what) {
    case WEIR__CONTROL_BEAT: call->rc = s->ops->beat(s, &scope, &call->member, NULL); break;
    case WEIR__CONTROL_LEAVE: call->rc = s->ops->leave(s, &scope, &call->member, NULL); break;
    case WEIR__CONTROL_READ:
        call->rc = s->ops->read(s, &scope, call->view, NULL);
        weir__mixed_read(m, c);
        break;
    default: call->rc = weir__mixed_claim(m, c, &call->record, call->owner, call->instance);
    }
    if (call->unheard) call->rc = WEIR_ETIMEDOUT;
}

static void send(struct mixed *m, struct mixed_copy *c, const struct weir__control_step *s)
{
    bool lossy = m->now_ms < c->lossy_until_ms;
    int64_t fate = weir__mixed_roll(m, 0, 9);

    c->call.what = s->what;
    c->call.member = *s->member;
    c->call.view = s->view;
    if (s->what == WEIR__CONTROL_CLAIM) {
        c->call.record = *s->record;
        snprintf(c->call.owner, sizeof c->call.owner, "%s", s->owner);
        c->call.instance = s->instance;
    }
    c->beats += s->what != WEIR__CONTROL_CLAIM;
    c->claims += s->what == WEIR__CONTROL_CLAIM;
    c->busy = true;
    c->effect_ms = m->now_ms + weir__mixed_roll(m, 1, 4);
    c->answer_ms = c->effect_ms + weir__mixed_roll(m, 1, 4);
    c->call.unheard = lossy && fate < 4 && s->what != WEIR__CONTROL_READ;
    if (!lossy || fate > 3) return;
    c->answer_ms = m->now_ms + CALL_MS;
    if (fate > 1 && c->call.unheard) {
        weir__mixed_hit(m, MIXED_LOST_REPLY);
        return;
    }
    weir__mixed_hit(m, MIXED_LOST_REQUEST);
    c->effect_ms = NEVER;
    c->call.rc = WEIR_ETIMEDOUT;
}

/* Does what it is told. false: it has to wait. */
static bool follow(struct mixed *m, struct mixed_copy *c, const struct weir__control_step *s)
{
    switch (s->what) {
    case WEIR__CONTROL_WAIT: c->wake_ms = s->until_ms; return false;
    case WEIR__CONTROL_DONE: weir__copy_crash(m, c); return false;
    case WEIR__CONTROL_START: c->running[s->partition] = true; return true;
    case WEIR__CONTROL_DRAIN:
        c->drained_ms[s->partition] = m->now_ms + weir__mixed_roll(m, 0, DRAIN_MS);
        return true;
    case WEIR__CONTROL_STOP:
        c->running[s->partition] = false;
        c->drained_ms[s->partition] = NEVER;
        return true;
    case WEIR__CONTROL_REWIND:
    case WEIR__CONTROL_REPORT: return true;
    default: send(m, c, s); return false;
    }
}

void weir__copy_step(struct mixed *m, struct mixed_copy *c)
{
    struct weir__control_step s;

    if (c->effect_ms <= m->now_ms) take_effect(m, c);
    if (m->now_ms < c->frozen_until_ms) return;
    if (c->busy && c->answer_ms <= m->now_ms) {
        bool given = c->call.what == WEIR__CONTROL_CLAIM && c->call.rc == 0;
        c->busy = false;
        weir__control_answer(c->control, m->now_ms, c->call.rc, given ? &c->call.record : NULL);
    }
    for (uint32_t p = 0; p < m->partitions; p++) {
        if (!c->running[p] || c->drained_ms[p] > m->now_ms) continue;
        c->drained_ms[p] = NEVER;
        weir__control_drained(c->control, m->now_ms, p, 0);
    }
    if (c->busy) return;
    do {
        weir__control_next(c->control, m->now_ms, &s);
    } while (follow(m, c, &s));
}
