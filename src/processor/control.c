/* control.c - what to do next.
 *
 * Steps come from four places, in this order: what the answer to a claim still demands; the queues
 * of the plan that are told (stops before starts, as one partition may need both); BEAT and READ when
 * they are due; the claims of the plan; renewals, if foreign owners need them. A call that is not
 * answered ends the plan, and the next view makes another: nothing is remembered of what was under
 * way but that it may have been done.
 *
 * The view is what the store said, never what we think it says by now. A partition that we claimed
 * since is `stale` and left alone until the next view; one that we renewed is known. */
#include "processor/control.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processor/balance.h"
#include "processor/control_state.h"

#define FOREIGN_EXPIRE_MS 120000
#define RENEW_MS 20000 /* a third of the shortest time after which others give an owner up */

/* ---- new, free, grow ---- */

/* Makes room for what the partitions need. What was there stays. */
static int resize(struct weir__control *c, uint32_t count, struct weir_error *err)
{
    struct weir__part *parts = realloc(c->parts, count * sizeof *parts);
    uint32_t **rows[] = {&c->owners, &c->numbers, &c->queues[0].at, &c->queues[1].at,
                         &c->queues[2].at};
    bool ok = parts != NULL;

    if (parts) c->parts = parts;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t *row = realloc(*rows[i], count * sizeof *row);
        if (row) *rows[i] = row;
        ok = ok && row;
    }
    if (!ok) return weir__fail(err, WEIR_ENOMEM, "sharing %u partitions", count);
    for (uint32_t p = c->partitions; p < count; p++)
        c->parts[p] = (struct weir__part){.record = WEIR__NO_RECORD,
                                          .target = WEIR__NOBODY,
                                          .paused_until_ms = INT64_MIN};
    c->partitions = c->roster.partitions = count;
    return 0;
}

int weir__control_new(struct weir__control **out, const struct weir__control_options *options,
                      struct weir_error *err)
{
    struct weir__control *c = calloc(1, sizeof *c);
    int rc;

    *out = NULL;
    if (!c) return weir__fail(err, WEIR_ENOMEM, "sharing partitions");
    assert(options->partitions > 0 && options->beat_ms > 0 && options->poll_ms > 0);
    assert(options->expire_ms >= 2 * options->beat_ms);
    c->options = *options;
    c->options.id = c->self.id;
    snprintf(c->self.id, sizeof c->self.id, "%s", options->id);
    c->self.instance = options->instance;
    c->self.weight = options->weight;
    c->self.expire_ms = options->expire_ms;
    c->roster.beat_ms = options->beat_ms;
    c->roster.expire_ms = options->expire_ms;
    if (c->options.foreign_expire_ms == 0) c->options.foreign_expire_ms = FOREIGN_EXPIRE_MS;
    if (c->options.renew_ms == 0) c->options.renew_ms = RENEW_MS;
    c->roster.foreign_expire_ms = c->options.foreign_expire_ms;
    c->roster.local_clock = options->sabotage_local_clock;
    c->roster.unseen = options->sabotage_steal_unseen;
    c->me = WEIR__NOBODY;
    c->dirty = true;
    c->look_ms = c->read_due_ms = INT64_MAX;
    c->beat_due_ms = c->leave_due_ms = c->progress_ms = INT64_MIN;
    rc = resize(c, options->partitions, err);
    if (rc != 0)
        weir__control_free(c);
    else
        *out = c;
    return rc;
}

void weir__control_free(struct weir__control *c)
{
    if (!c) return;
    weir_view_free(&c->view);
    weir__roster_free(&c->roster);
    for (int q = 0; q < WEIR__QUEUES; q++) free(c->queues[q].at);
    free(c->owners);
    free(c->numbers);
    free(c->shares);
    free(c->parts);
    free(c);
}

/* ---- when ---- */

void weir__control_read_soon(struct weir__control *c, int64_t at_ms)
{
    if (at_ms < c->read_due_ms) c->read_due_ms = at_ms;
}

void weir__control_drop_plan(struct weir__control *c)
{
    for (int q = 0; q < WEIR__QUEUES; q++) weir__queue_clear(c, q);
    c->dirty = true;
}

/* Whether the last view may still be acted upon. When it may not, another is due. */
static bool is_fresh(struct weir__control *c, int64_t now_ms)
{
    if (c->failures == 0 && c->roster.seen &&
        now_ms - c->roster.seen_ms <= weir__roster_patience(&c->roster))
        return true;
    weir__control_drop_plan(c);
    if (c->failures == 0) weir__control_read_soon(c, now_ms);
    return false;
}

/* ---- telling ---- */

static enum weir_close_reason reason_of(const struct weir__control *c,
                                        const struct weir__part *part)
{
    if (part->released) return WEIR_CLOSED_RELEASED;
    return c->leaving ? WEIR_CLOSED_SHUTDOWN : WEIR_CLOSED_MOVED;
}

static void tell(enum weir__control_do what, uint32_t p, const struct weir_record *record,
                 struct weir__control_step *out)
{
    out->what = what;
    out->partition = p;
    out->record = record;
}

static void tell_start(struct weir__control *c, uint32_t p, const struct weir_record *r,
                       struct weir__control_step *out)
{
    struct weir__part *part = &c->parts[p];

    assert(part->state == WEIR__PART_IDLE);
    part->state = WEIR__PART_RUNNING;
    part->epoch = r->epoch;
    part->rewinds = r->rewinds;
    part->doubted = part->offered = part->released = false;
    c->open++;
    c->counts.starts++;
    tell(WEIR__CONTROL_START, p, r, out);
    out->shared = c->roster.foreign_alive > 0;
}

static void tell_drain(struct weir__control *c, uint32_t p, struct weir__control_step *out)
{
    assert(c->parts[p].state == WEIR__PART_RUNNING);
    c->parts[p].state = WEIR__PART_DRAINING;
    c->draining++;
    tell(WEIR__CONTROL_DRAIN, p, weir__plan_record(c, p), out);
}

static void tell_stop(struct weir__control *c, uint32_t p, enum weir_close_reason reason,
                      struct weir__control_step *out)
{
    struct weir__part *part = &c->parts[p];

    assert(part->state != WEIR__PART_IDLE);
    if (part->state != WEIR__PART_RUNNING) c->draining--;
    if (reason == WEIR_CLOSED_LOST) c->counts.lost++;
    part->state = WEIR__PART_IDLE;
    c->open--;
    tell(WEIR__CONTROL_STOP, p, weir__plan_record(c, p), out);
    out->reason = reason;
}

/* What the plan has to tell about one partition. There may be more behind it: a start behind a stop,
 * a drain behind a rewind. */
static bool tell_planned(struct weir__control *c, uint32_t p, int64_t now_ms,
                         struct weir__control_step *out)
{
    struct weir__part *part = &c->parts[p];
    const struct weir_record *r = weir__plan_record(c, p);
    bool meant = part->offered || part->corrupt;

    switch (weir__plan_act(c, p, now_ms)) {
    case WEIR__ACT_STOP: tell_stop(c, p, meant ? reason_of(c, part) : WEIR_CLOSED_LOST, out); break;
    case WEIR__ACT_START: tell_start(c, p, r, out); break;
    case WEIR__ACT_REWIND:
        part->rewinds = r->rewinds;
        part->doubted = false;
        tell(WEIR__CONTROL_REWIND, p, r, out);
        out->shared = c->roster.foreign_alive > 0;
        break;
    case WEIR__ACT_REPORT:
        part->reported = true;
        tell(WEIR__CONTROL_REPORT, p, r, out);
        break;
    default: return false; /* things have changed since it was queued */
    }
    weir__plan_enqueue(c, p, now_ms);
    return true;
}

/* What the answer to a claim demands: the stop of what was given away, the start of what we got. */
static bool tell_answer(struct weir__control *c, struct weir__control_step *out)
{
    if (c->to_stop) {
        c->to_stop = false;
        tell_stop(c, c->claimed, reason_of(c, &c->parts[c->claimed]), out);
        return true;
    }
    if (!c->to_start) return false;
    c->to_start = false;
    tell_start(c, c->claimed, &c->given, out);
    return true;
}

/* Leaving does not wait for the store: handlers are asked to finish at once. */
static bool tell_leaving(struct weir__control *c, struct weir__control_step *out)
{
    if (!c->leaving) return false;
    while (c->leave_next < c->partitions) {
        uint32_t p = c->leave_next++;
        if (c->parts[p].state != WEIR__PART_RUNNING) continue;
        tell_drain(c, p, out);
        return true;
    }
    return false;
}

static bool tell_next(struct weir__control *c, int64_t now_ms, struct weir__control_step *out)
{
    uint32_t p;

    if (tell_answer(c, out) || tell_leaving(c, out)) return true;
    if (c->queues[WEIR__QUEUE_TELLS].count + c->queues[WEIR__QUEUE_DRAINS].count == 0 ||
        !is_fresh(c, now_ms))
        return false;
    while (weir__queue_pop(c, WEIR__QUEUE_TELLS, &p))
        if (tell_planned(c, p, now_ms, out)) return true;
    while (c->draining < WEIR__DRAINING_MAX && weir__queue_pop(c, WEIR__QUEUE_DRAINS, &p)) {
        if (weir__plan_act(c, p, now_ms) != WEIR__ACT_DRAIN) continue;
        tell_drain(c, p, out);
        return true;
    }
    return false;
}

/* ---- asking ---- */

static void ask(struct weir__control *c, enum weir__control_do what, int64_t now_ms,
                struct weir__control_step *out)
{
    c->asked = what;
    c->asked_ms = now_ms;
    c->said = c->self; /* which may change while the driver is at it */
    out->what = what;
    out->member = &c->said;
    out->view = &c->view;
}

static void ask_claim(struct weir__control *c, uint32_t p, const struct weir_member *owner,
                      uint64_t *counted, int64_t now_ms, struct weir__control_step *out)
{
    const struct weir_record *r = weir__plan_record(c, p);

    if (!r) c->expected.partition = p;
    c->claimed = p;
    c->claimed_for_us = owner == &c->self;
    c->renewing = false;
    c->counted = counted;
    c->counts.claims++;
    ask(c, WEIR__CONTROL_CLAIM, now_ms, out);
    out->partition = p;
    out->record = r ? r : &c->expected;
    out->owner = owner ? owner->id : "";
    out->instance = owner ? owner->instance : 0;
}

/* To the target; to nobody when that is foreign, or us and the program does not want it for a
 * while. */
static void ask_give(struct weir__control *c, uint32_t p, int64_t now_ms,
                     struct weir__control_step *out)
{
    const struct weir__part *part = &c->parts[p];
    const struct weir_member *to = NULL;

    if (part->target != WEIR__NOBODY && !weir__roster_foreign(&c->roster, part->target))
        to = c->roster.alive[part->target];
    if (part->target == c->me && c->me != WEIR__NOBODY)
        to = now_ms < part->paused_until_ms ? NULL : &c->self;
    ask_claim(c, p, to, to && to != &c->self ? &c->counts.handovers : NULL, now_ms, out);
}

static void ask_take(struct weir__control *c, uint32_t p, int64_t now_ms,
                     struct weir__control_step *out)
{
    const struct weir_record *r = weir__plan_record(c, p);
    uint64_t *counted = NULL;

    if (r && r->owner[0])
        counted = weir__plan_abandoned(c, r, now_ms) ? &c->counts.takeovers : &c->counts.steals;
    ask_claim(c, p, &c->self, counted, now_ms, out);
    c->take_due_ms = now_ms + c->options.take_gap_ms;
}

static bool ask_planned(struct weir__control *c, int64_t now_ms, struct weir__control_step *out)
{
    uint32_t p;

    if (c->queues[WEIR__QUEUE_CALLS].count == 0 || !is_fresh(c, now_ms)) return false;
    while (weir__queue_pop(c, WEIR__QUEUE_CALLS, &p)) {
        enum weir__act act = weir__plan_act(c, p, now_ms);
        if (act != WEIR__ACT_GIVE && act != WEIR__ACT_TAKE) continue;
        if (act == WEIR__ACT_GIVE)
            ask_give(c, p, now_ms, out);
        else
            ask_take(c, p, now_ms, out);
        return true;
    }
    return false;
}

/* How long ago one of our records was written, by the store's clock, or how far it lies ahead. */
static int64_t age_of(const struct weir__control *c, const struct weir_record *r, int64_t now_ms)
{
    int64_t age;

    if (__builtin_sub_overflow(c->view.now_ms + now_ms - c->roster.seen_ms, r->modified_ms, &age) ||
        age == INT64_MIN)
        return INT64_MAX;
    return age < 0 ? -age : age;
}

/* Claims the next of our records that is too old in our own name. One at a time and in turn, so that
 * a store that is too slow for all of them starves none. */
static bool ask_renewal(struct weir__control *c, int64_t now_ms, struct weir__control_step *out)
{
    int64_t soonest = INT64_MAX;

    if (c->roster.foreign_alive == 0 || now_ms < c->renew_due_ms || !is_fresh(c, now_ms))
        return false;
    for (uint32_t i = 0; i < c->partitions; i++) {
        uint32_t p = (c->renew_next + i) % c->partitions;
        const struct weir_record *r = weir__plan_record(c, p);
        int64_t left;
        if (c->parts[p].stale || c->parts[p].corrupt || !weir__plan_ours(c, r)) continue;
        left = c->options.renew_ms - age_of(c, r, now_ms);
        if (left < soonest) soonest = left;
        if (left > 0) continue;
        c->renew_next = (p + 1) % c->partitions;
        ask_claim(c, p, &c->self, NULL, now_ms, out);
        c->renewing = true;
        return true;
    }
    c->renew_due_ms = soonest == INT64_MAX ? soonest : now_ms + soonest;
    return false;
}

/* Whether nothing is left to be stopped or given away. */
static bool may_leave(const struct weir__control *c)
{
    return c->leaving && c->open == 0 && c->queues[WEIR__QUEUE_CALLS].count == 0;
}

static bool ask_next(struct weir__control *c, int64_t now_ms, struct weir__control_step *out)
{
    if (may_leave(c) && c->leave_due_ms <= now_ms)
        ask(c, WEIR__CONTROL_LEAVE, now_ms, out);
    else if (c->beat_due_ms <= now_ms)
        ask(c, WEIR__CONTROL_BEAT, now_ms, out);
    else if (c->read_due_ms <= now_ms)
        ask(c, WEIR__CONTROL_READ, now_ms, out);
    else
        return ask_planned(c, now_ms, out) || ask_renewal(c, now_ms, out);
    return true;
}

void weir__control_next(struct weir__control *c, int64_t now_ms, struct weir__control_step *out)
{
    memset(out, 0, sizeof *out);
    assert(c->asked == WEIR__CONTROL_WAIT);
    if (!c->done && (tell_next(c, now_ms, out) || ask_next(c, now_ms, out))) return;
    out->what = c->done ? WEIR__CONTROL_DONE : WEIR__CONTROL_WAIT;
    out->until_ms = c->beat_due_ms < c->read_due_ms ? c->beat_due_ms : c->read_due_ms;
    if (may_leave(c) && c->leave_due_ms < out->until_ms) out->until_ms = c->leave_due_ms;
}

/* ---- what the driver says by itself ---- */

void weir__control_drained(struct weir__control *c, int64_t now_ms, uint32_t p, int64_t pause_ms)
{
    struct weir__part *part = &c->parts[p];

    assert(p < c->partitions);
    if (part->state != WEIR__PART_RUNNING && part->state != WEIR__PART_DRAINING) return;
    if (part->state == WEIR__PART_RUNNING) {
        part->released = true;
        c->draining++;
    }
    part->state = WEIR__PART_DRAINED;
    if (pause_ms > 0) part->paused_until_ms = now_ms + pause_ms;
    weir__plan_enqueue(c, p, now_ms);
    if (part->stale && c->failures == 0) weir__control_read_soon(c, now_ms);
}

/* The view is forgotten, so that the record comes with its newest checkpoint. */
void weir__control_doubt(struct weir__control *c, int64_t now_ms, uint32_t p)
{
    assert(p < c->partitions);
    if (c->parts[p].state == WEIR__PART_IDLE) return;
    c->parts[p].doubted = true;
    c->view.change = 0;
    c->dirty = true;
    if (c->failures == 0) weir__control_read_soon(c, now_ms);
}

void weir__control_leave(struct weir__control *c, int64_t now_ms)
{
    if (c->leaving) return;
    c->leaving = true;
    c->self.weight = 0;
    c->dirty = true;
    if (c->failures == 0) c->beat_due_ms = now_ms;
}

int weir__control_grow(struct weir__control *c, uint32_t partitions, struct weir_error *err)
{
    int rc;

    if (partitions <= c->partitions) return 0;
    weir__control_drop_plan(c); /* the rings must be empty when their size changes */
    rc = resize(c, partitions, err);
    if (rc == 0 && c->failures == 0 && c->roster.seen) c->read_due_ms = INT64_MIN;
    return rc;
}

int64_t weir__control_unanswered_since(const struct weir__control *c)
{
    return c->unanswered_since_ms;
}

void weir__control_counts(const struct weir__control *c, struct weir__control_counts *out)
{
    *out = c->counts;
}
