/* answer.c - what the answer to a call means: when the next calls are due, whether the members have
 * settled, whether there is to be a new plan. */
#include <assert.h>

#include "processor/control_state.h"

#define LEAVE_TRIES_MAX 3 /* then the others wait until we have expired */
#define BACKOFF_SHIFT_MAX 10

/* The call was not answered. From one try to the next the pauses grow from poll_ms to beat_ms; the
 * time that the call itself took is part of them, so that we are heard soon after an outage. */
static void fail(struct weir__control *c, int64_t now_ms)
{
    uint32_t shift = c->failures < BACKOFF_SHIFT_MAX ? c->failures : BACKOFF_SHIFT_MAX;
    int64_t pause = c->options.poll_ms << shift, again;

    if (c->failures++ == 0) c->unanswered_since_ms = c->asked_ms == 0 ? 1 : c->asked_ms;
    if (pause > c->options.beat_ms) pause = c->options.beat_ms;
    again = c->asked_ms + pause;
    if (again < now_ms + c->options.poll_ms) again = now_ms + c->options.poll_ms;
    weir__control_drop_plan(c);
    c->roster.broken = true;
    c->read_due_ms = again;
    if (c->asked == WEIR__CONTROL_BEAT) c->beat_due_ms = again;
    if (c->asked == WEIR__CONTROL_LEAVE) c->leave_due_ms = again;
}

/* WEIR_EEXIST: another start of our name lives; what is still ours by the records goes on. */
static void answer_beat(struct weir__control *c, int64_t now_ms)
{
    int64_t half = now_ms + c->options.beat_ms / 2; /* a slow store must get other calls, too */

    c->beat_due_ms = c->asked_ms + c->options.beat_ms;
    if (c->beat_due_ms < half) c->beat_due_ms = half;
    c->read_due_ms = now_ms;
    c->announced = c->leaving && c->said.weight == 0;
}

/* Sees how long the members have been the same. */
static void settle(struct weir__control *c, int64_t now_ms, bool first)
{
    const struct weir__control_options *o = &c->options;
    bool was = c->settled;

    if (first || c->roster.print != c->print) {
        if (first || c->settled) c->unrest_ms = now_ms;
        c->stable_ms = now_ms;
        c->dirty = true;
    }
    c->print = c->roster.print;
    c->settled = now_ms - c->stable_ms >= o->settle_ms || now_ms - c->unrest_ms >= o->start_ms;
    c->started = c->started || c->settled;
    if (c->settled && !was) c->dirty = true;
}

/* Plans, if the view brought anything new. WEIR_ENOMEM. */
static int plan_from_view(struct weir__control *c, int64_t now_ms)
{
    bool first = !c->roster.seen;
    int rc = weir__roster_update(&c->roster, &c->view, now_ms, NULL);

    if (rc != 0) return rc;
    settle(c, now_ms, first);
    if (c->roster.series_ms == now_ms) c->dirty = true; /* who was dead may not be any more */
    if (!c->dirty && c->view.change != 0 && c->view.change == c->change && now_ms < c->look_ms)
        return 0;
    c->dirty = false;
    c->change = c->view.change;
    return weir__plan(c, now_ms);
}

static void answer_read(struct weir__control *c, int64_t now_ms)
{
    if (plan_from_view(c, now_ms) != 0) {
        fail(c, now_ms); /* a view that cannot be used was not read */
        return;
    }
    c->read_due_ms = INT64_MAX;
    if (!c->started || c->waiting > 0) weir__control_read_soon(c, now_ms + c->options.poll_ms);
    if (!c->settled) weir__control_read_soon(c, c->stable_ms + c->options.settle_ms);
    if (c->look_ms < INT64_MAX) weir__control_read_soon(c, c->look_ms);
    if (c->roster.due_ms < INT64_MAX) weir__control_read_soon(c, c->roster.due_ms);
    if (c->read_due_ms <= now_ms) c->read_due_ms = now_ms + c->options.poll_ms;
}

static void answer_claim(struct weir__control *c, int64_t now_ms, int rc,
                         const struct weir_record *record)
{
    struct weir__part *part = &c->parts[c->claimed];

    if (c->renewing && rc == 0) {
        assert(record && part->record != WEIR__NO_RECORD);
        c->view.records[part->record] = *record;
        c->counts.renewals++;
        return;
    }
    part->stale = true;
    c->dirty = true;
    if (rc == WEIR_EFENCED) {
        c->counts.fenced++;
        c->view.change = 0; /* the view is wrong about it, even if nobody claimed or set anything */
        weir__control_read_soon(c, now_ms + c->options.poll_ms);
        return;
    }
    if (rc != 0) {
        part->offered = part->offered || (part->state != WEIR__PART_IDLE && !c->renewing);
        return;
    }
    assert(record);
    c->given = *record;
    c->to_stop = part->state != WEIR__PART_IDLE;
    c->to_start = c->claimed_for_us && !c->leaving;
    if (c->counted) (*c->counted)++;
}

void weir__control_answer(struct weir__control *c, int64_t now_ms, int rc,
                          const struct weir_record *record)
{
    enum weir__control_do asked = c->asked;
    bool spoke = rc == 0 || (asked == WEIR__CONTROL_CLAIM && rc == WEIR_EFENCED) ||
                 (asked == WEIR__CONTROL_BEAT && rc == WEIR_EEXIST);

    assert(asked != WEIR__CONTROL_WAIT);
    if (spoke) {
        c->failures = 0;
        c->unanswered_since_ms = 0;
    } else {
        fail(c, now_ms);
    }
    c->asked = WEIR__CONTROL_WAIT;
    if (asked == WEIR__CONTROL_CLAIM) answer_claim(c, now_ms, rc, record);
    if (asked == WEIR__CONTROL_BEAT && spoke) answer_beat(c, now_ms);
    if (asked == WEIR__CONTROL_READ && spoke) answer_read(c, now_ms);
    if (asked == WEIR__CONTROL_LEAVE) c->done = rc == 0 || ++c->leave_tries >= LEAVE_TRIES_MAX;
}
