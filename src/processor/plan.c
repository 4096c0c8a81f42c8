/* plan.c - what a new view means: who should own what, and what there is to do about it.
 *
 * One pass over the partitions for each view that brings something new. Its result are the targets
 * and three queues; a queue only says where to look: what is done there is decided again, by
 * weir__plan_act, when its turn comes. */
#include <assert.h>
#include <string.h>

#include "processor/balance.h"
#include "processor/control_state.h"

/* A hand-over may take handover_ms from when its owner learns of it, which takes up to two beats. */
#define BEATS_TO_LEARN 2

void weir__queue_push(struct weir__control *c, int queue, uint32_t p)
{
    struct weir__queue *q = &c->queues[queue];

    if (c->parts[p].queued[queue]) return;
    assert(q->count < c->partitions);
    c->parts[p].queued[queue] = true;
    q->at[(q->head + q->count++) % c->partitions] = p;
}

bool weir__queue_pop(struct weir__control *c, int queue, uint32_t *out_p)
{
    struct weir__queue *q = &c->queues[queue];

    if (q->count == 0) return false;
    *out_p = q->at[q->head];
    q->head = (q->head + 1) % c->partitions;
    q->count--;
    c->parts[*out_p].queued[queue] = false;
    return true;
}

void weir__queue_clear(struct weir__control *c, int queue)
{
    uint32_t p;

    while (weir__queue_pop(c, queue, &p)) continue;
}

const struct weir_record *weir__plan_record(const struct weir__control *c, uint32_t p)
{
    uint32_t at = c->parts[p].record;

    return at == WEIR__NO_RECORD ? NULL : &c->view.records[at];
}

bool weir__plan_ours(const struct weir__control *c, const struct weir_record *r)
{
    return r && r->instance == c->self.instance && strcmp(r->owner, c->self.id) == 0;
}

/* Another start of a name that lives was replaced by it: what it had is for the new one at once, and
 * for the others as if it were silent. */
bool weir__plan_abandoned(const struct weir__control *c, const struct weir_record *r,
                          int64_t now_ms)
{
    uint32_t rank = weir__roster_owner(&c->roster, r);

    if (rank != WEIR__NOBODY && c->roster.alive[rank]->instance == r->instance) return false;
    return (rank != WEIR__NOBODY && rank == c->me) ||
           now_ms > weir__roster_dead_ms(&c->roster, r->owner);
}

/* Foreign owners do not hand over: what is ours of theirs is taken. */
static bool is_foreign(const struct weir__control *c, const struct weir_record *r)
{
    return weir__roster_foreign(&c->roster, weir__roster_owner(&c->roster, r)) != NULL;
}

bool weir__plan_free(const struct weir__control *c, const struct weir_record *r, int64_t now_ms)
{
    return !r || r->owner[0] == '\0' || weir__plan_abandoned(c, r, now_ms);
}

/* Until when its owner may take to hand a partition over that is wanted; as long as others come, or
 * since the store answers again, it has not begun. */
static int64_t overdue_at(const struct weir__control *c, const struct weir__part *part)
{
    int64_t since = part->wanted_ms;

    if (since < c->progress_ms) since = c->progress_ms;
    if (since < c->roster.series_ms) since = c->roster.series_ms;
    return since + c->options.handover_ms + BEATS_TO_LEARN * c->options.beat_ms;
}

static bool is_elsewhere(const struct weir__control *c, const struct weir__part *part)
{
    return c->me != WEIR__NOBODY && part->target != c->me && part->target != WEIR__NOBODY;
}

/* Who leaves waits until the others know, or they would give it back. */
static bool may_give(const struct weir__control *c)
{
    return !c->leaving || c->planned_leaving;
}

static enum weir__act act_on_open(const struct weir__control *c, const struct weir__part *part,
                                  const struct weir_record *r)
{
    if (!weir__plan_ours(c, r) || r->epoch != part->epoch) return WEIR__ACT_STOP;
    if (part->state == WEIR__PART_DRAINED && may_give(c)) return WEIR__ACT_GIVE;
    if (part->state != WEIR__PART_RUNNING || c->leaving) return WEIR__ACT_NONE;
    if (part->doubted || r->rewinds != part->rewinds) return WEIR__ACT_REWIND;
    return is_elsewhere(c, part) && c->settled ? WEIR__ACT_DRAIN : WEIR__ACT_NONE;
}

static enum weir__act act_on_idle(const struct weir__control *c, const struct weir__part *part,
                                  const struct weir_record *r, int64_t now_ms)
{
    bool ours = weir__plan_ours(c, r);

    if (ours && may_give(c) && (c->leaving || is_elsewhere(c, part))) return WEIR__ACT_GIVE;
    if (c->leaving || c->me == WEIR__NOBODY || now_ms < part->paused_until_ms)
        return WEIR__ACT_NONE;
    if (ours) return WEIR__ACT_START;
    if (part->target != c->me || !c->started || now_ms < c->take_due_ms) return WEIR__ACT_NONE;
    if (weir__plan_free(c, r, now_ms) || is_foreign(c, r)) return WEIR__ACT_TAKE;
    return part->wanted && now_ms >= overdue_at(c, part) ? WEIR__ACT_TAKE : WEIR__ACT_NONE;
}

enum weir__act weir__plan_act(const struct weir__control *c, uint32_t p, int64_t now_ms)
{
    const struct weir__part *part = &c->parts[p];
    const struct weir_record *r = weir__plan_record(c, p);

    if (part->stale) return WEIR__ACT_NONE;
    if (part->corrupt && !part->reported) return WEIR__ACT_REPORT;
    if (part->corrupt) return part->state == WEIR__PART_DRAINED ? WEIR__ACT_STOP : WEIR__ACT_NONE;
    if (part->state != WEIR__PART_IDLE) return act_on_open(c, part, r);
    return act_on_idle(c, part, r, now_ms);
}

/* Finds each partition's record, and leaves alone what cannot be understood. Returns how many take
 * part in the balance. */
static uint32_t take_view(struct weir__control *c)
{
    uint32_t count = 0;

    for (uint32_t p = 0; p < c->partitions; p++) {
        c->parts[p].record = WEIR__NO_RECORD;
        c->parts[p].stale = false;
    }
    for (size_t i = 0; i < c->view.record_count; i++) {
        uint32_t p = c->view.records[i].partition;
        if (p < c->partitions) c->parts[p].record = (uint32_t)i;
    }
    for (uint32_t p = 0; p < c->partitions; p++) {
        const struct weir_record *r = weir__plan_record(c, p);
        c->parts[p].target = WEIR__NOBODY;
        c->parts[p].corrupt = r && r->rc != 0;
        if (c->parts[p].corrupt) continue;
        c->parts[p].reported = false;
        c->numbers[count] = p;
        c->owners[count++] = r && r->owner[0] ? weir__roster_owner(&c->roster, r) : WEIR__NOBODY;
    }
    return count;
}

void weir__plan_look(struct weir__control *c, int64_t at_ms, int64_t now_ms)
{
    if (at_ms > now_ms && at_ms < c->look_ms) c->look_ms = at_ms;
}

/* Whether it is to come to us, and when to look at it again if nothing changes before. */
static void expect(struct weir__control *c, uint32_t p, int64_t now_ms)
{
    struct weir__part *part = &c->parts[p];
    const struct weir_record *r = weir__plan_record(c, p);
    bool ours = !part->corrupt && weir__plan_ours(c, r);
    bool coming = r && !part->corrupt && r->owner[0] && !ours && !c->leaving &&
                  c->me != WEIR__NOBODY && part->target == c->me;
    bool gone = coming && weir__plan_abandoned(c, r, now_ms);
    bool living =
        coming && !gone && !is_foreign(c, r) && weir__roster_owner(&c->roster, r) != WEIR__NOBODY;

    weir__plan_look(c, part->paused_until_ms, now_ms);
    if (part->state == WEIR__PART_IDLE && part->target == c->me)
        weir__plan_look(c, c->take_due_ms, now_ms);
    if (coming && !gone) weir__plan_look(c, weir__roster_dead_ms(&c->roster, r->owner) + 1, now_ms);
    if (living && !part->wanted) part->wanted_ms = now_ms;
    if (ours && part->wanted) c->progress_ms = now_ms;
    part->wanted = living && now_ms >= part->paused_until_ms;
    if (part->wanted) {
        c->waiting++;
        weir__plan_look(c, overdue_at(c, part), now_ms);
    }
}

void weir__plan_enqueue(struct weir__control *c, uint32_t p, int64_t now_ms)
{
    enum weir__act act = weir__plan_act(c, p, now_ms);

    if (act == WEIR__ACT_NONE) return;
    weir__queue_push(c,
                     act < WEIR__ACT_DRAIN    ? WEIR__QUEUE_TELLS
                     : act == WEIR__ACT_DRAIN ? WEIR__QUEUE_DRAINS
                                              : WEIR__QUEUE_CALLS,
                     p);
}

int weir__plan(struct weir__control *c, int64_t now_ms)
{
    struct weir__roster *roster = &c->roster;
    uint32_t count;
    int rc;

    for (int q = 0; q < WEIR__QUEUES; q++) weir__queue_clear(c, q);
    c->me = weir__roster_find(roster, c->self.id);
    if (c->me != WEIR__NOBODY && roster->alive[c->me]->instance != c->self.instance)
        c->me = WEIR__NOBODY;
    c->planned_leaving = c->leaving && c->announced;
    if (c->leaving && c->me != WEIR__NOBODY) roster->weights[c->me] = 0;
    count = take_view(c);
    rc = weir__balance(roster->weights, roster->count, c->owners, count, c->owners, NULL);
    if (rc != 0) return rc;
    for (uint32_t i = 0; i < count; i++) c->parts[c->numbers[i]].target = c->owners[i];
    c->waiting = 0;
    c->look_ms = INT64_MAX;
    c->renew_due_ms = now_ms;
    if (roster->foreign_alive > 0) rc = weir__plan_foreign(c, now_ms);
    if (rc != 0) return rc;
    for (uint32_t p = 0; p < c->partitions; p++) {
        expect(c, p, now_ms);
        weir__plan_enqueue(c, p, now_ms);
    }
    return 0;
}
