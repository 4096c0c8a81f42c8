/* driver.c - what is between the control and the store.
 *
 * One step does at most one call of the store. Steps of the control and writes of marks take turns,
 * so that neither many claims nor many marks keep a beat waiting for longer than one call. Marks
 * are gathered for a moment and written together, at once when somebody waits for them, and not at
 * all while the store does not answer the control. Each that is sent has a turn of its own, also
 * when it is sent again: the first try may still be on its way, and must not come behind the
 * second. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processor/state.h"

#define MARKS_GAP_MS 20
#define LEAVE_SLACK 10      /* a beat and a tenth: then everybody has seen that we leave */
#define TELL_MS 10000       /* between words about one and the same failure */
#define START_PAUSE_MS 1000 /* when there is no memory for a partition */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- failures of the store ---- */

static void tell_failure(struct weir_processor *x, enum weir_action action, int64_t now_ms, int rc,
                         const struct weir_error *err)
{
    bool again = rc == x->told_code && now_ms - x->told_ms < TELL_MS;

    weir__mutex_lock(&x->lock);
    x->stats.store_failures++;
    weir__mutex_unlock(&x->lock);
    if (again) return;
    x->told_code = rc;
    x->told_ms = now_ms;
    weir__runner_tell(x, action, err);
}

static void count_call(struct weir_processor *x)
{
    weir__mutex_lock(&x->lock);
    x->stats.store_calls++;
    weir__mutex_unlock(&x->lock);
}

/* ---- marks ---- */

static size_t take_marks(struct weir_processor *x)
{
    size_t count = 0;
    bool more = false;

    weir__mutex_lock(&x->lock);
    for (uint32_t i = 0; i < x->slot_count && !more; i++) {
        struct weir_partition *p = x->slots[i].live;
        if (!p || !weir__checkpoint_dirty(&p->checkpoint)) continue;
        more = count == WEIR__MARKS_MAX;
        if (!more) weir__checkpoint_take(&p->checkpoint, ++x->turns, &x->marks[count++]);
    }
    x->marks_wanted = more;
    x->marks_urgent = x->marks_urgent && more;
    weir__mutex_unlock(&x->lock);
    return count;
}

/* One mark has its answer; the lock is held. */
static void settle_mark(struct weir_processor *x, const struct weir_mark *mark, int rc)
{
    struct weir_partition *p = x->slots[mark->partition].live;

    if (rc == 0) x->stats.marks_stored++;
    if (rc == WEIR_EFENCED) x->stats.marks_fenced++;
    if (!p || p->checkpoint.epoch != mark->epoch || p->checkpoint.rewinds != mark->rewinds) return;
    weir__checkpoint_answer(&p->checkpoint, rc);
    if (rc == WEIR_EFENCED) {
        p->doubted = p->tell_doubt = true;
        atomic_store(&p->revoked, true);
        atomic_store(&p->called, true);
        weir__runner_note(x);
    }
    if (rc != 0 && rc != WEIR_EFENCED) x->marks_wanted = true;
    if (rc == WEIR_EFENCED || p->drain) weir__runner_push(x, p);
}

void weir__driver_flush(struct weir_processor *x, int64_t now_ms)
{
    size_t count = take_marks(x);
    struct weir_error err;
    int rc;

    if (count == 0) return;
    count_call(x);
    rc = x->store->ops->mark(x->store, &x->scope, x->name, x->marks, count, &err);
    now_ms = weir__now_ms();
    x->marks_due_ms = now_ms + (rc == 0 ? MARKS_GAP_MS : x->options.beat_ms);
    weir__mutex_lock(&x->lock);
    for (size_t i = 0; i < count; i++) settle_mark(x, &x->marks[i], rc == 0 ? x->marks[i].rc : rc);
    weir__cond_broadcast(&x->stored);
    weir__mutex_unlock(&x->lock);
    if (rc != 0) tell_failure(x, WEIR_CHECKPOINTING, now_ms, rc, &err);
}

/* When marks should be written next; INT64_MAX: there are none, or the store is silent. */
static int64_t marks_due(struct weir_processor *x, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;

    weir__mutex_lock(&x->lock);
    if (x->marks_wanted) due_ms = x->marks_due_ms;
    /* A write that was not answered waits all the same. */
    if (x->marks_wanted && x->marks_urgent && due_ms <= now_ms + MARKS_GAP_MS) due_ms = now_ms;
    weir__mutex_unlock(&x->lock);
    return weir__control_unanswered_since(x->control) != 0 ? INT64_MAX : due_ms;
}

/* ---- what partitions have to say, and clocks ---- */

/* The source has more partitions than before; the lock is held. Without memory it is asked again. */
static void grow(struct weir_processor *x, uint32_t count)
{
    struct weir__slot *slots = realloc(x->slots, count * sizeof *slots);

    if (!slots) return;
    x->slots = slots;
    for (uint32_t i = x->slot_count; i < count; i++) slots[i] = (struct weir__slot){0};
    if (weir__control_grow(x->control, count, NULL) == 0)
        x->slot_count = x->stats.partitions = count;
}

/* What one has to say after its STOP would be taken for its successor's. */
static void take_notes(struct weir_processor *x, int64_t now_ms)
{
    weir__mutex_lock(&x->lock);
    for (uint32_t i = 0; x->noted && i < x->slot_count; i++) {
        struct weir_partition *p = x->slots[i].live;
        if (!p) continue;
        if (p->tell_drained && !p->stop) weir__control_drained(x->control, now_ms, i, p->pause_ms);
        if (p->tell_doubt && !p->stop) weir__control_doubt(x->control, now_ms, i);
        p->tell_drained = p->tell_doubt = false;
    }
    x->noted = false;
    if (x->counted > x->slot_count) grow(x, x->counted);
    x->counted = 0;
    weir__mutex_unlock(&x->lock);
}

/* A call of the program takes too long; the lock is held. What to say, or nothing. */
static bool judge_overdue(struct weir_processor *x, struct weir_partition *p, int64_t now_ms,
                          struct weir_error *out)
{
    if (x->options.overdue == WEIR_OVERDUE_ABORT) abort();
    p->overdue = true;
    x->stats.overdue++;
    if (x->options.overdue == WEIR_OVERDUE_RELEASE && !p->drain && !p->stop) {
        /* It is given away under the handler's feet, and what that marks is refused. */
        p->drain = WEIR_CLOSED_RELEASED;
        p->pause_ms = x->options.handler_ms;
        p->drained = p->tell_drained = true;
        weir__checkpoint_fence(&p->checkpoint);
        atomic_store(&p->revoked, true);
        atomic_store(&p->called, true);
        x->noted = true;
    }
    weir__fail(out, WEIR_ETIMEDOUT,
               "the handler of partition %" PRIu32 " has been running for %" PRId64 " ms%s", p->id,
               now_ms - p->handling_ms,
               x->options.overdue == WEIR_OVERDUE_RELEASE ? ": the partition is given away" : "");
    return true;
}

/* Puts what is due into the ring. */
static void look_at_clocks(struct weir_processor *x, int64_t now_ms)
{
    struct weir_error err;
    bool told = false;

    weir__mutex_lock(&x->lock);
    if (now_ms >= x->count_due_ms) {
        x->count_wanted = true;
        x->count_due_ms = now_ms + WEIR__COUNT_BEATS * x->options.beat_ms;
        weir__cond_signal(&x->ready);
    }
    if (now_ms < x->next_due_ms) {
        weir__mutex_unlock(&x->lock);
        return;
    }
    x->next_due_ms = INT64_MAX;
    for (uint32_t i = 0; i < x->slot_count; i++) {
        struct weir_partition *p = x->slots[i].live;
        int64_t late_ms;
        if (!p) continue;
        if (p->due_ms <= now_ms) {
            p->due_ms = INT64_MAX;
            weir__runner_push(x, p);
        }
        x->next_due_ms = least(x->next_due_ms, p->due_ms);
        if (!p->handling || p->overdue || x->options.handler_ms == 0) continue;
        late_ms = p->handling_ms + x->options.handler_ms;
        if (late_ms <= now_ms)
            told = judge_overdue(x, p, now_ms, &err);
        else
            x->next_due_ms = least(x->next_due_ms, late_ms);
    }
    weir__mutex_unlock(&x->lock);
    if (told) weir__runner_tell(x, WEIR_HANDLING, &err);
}

/* ---- the control's steps ---- */

/* The control does not hear of the weight that we have announced before it leaves itself. */
static void look_at_members(struct weir_processor *x, struct weir_view *v)
{
    x->others = 0;
    for (size_t i = 0; i < v->member_count; i++) {
        struct weir_member *m = &v->members[i];
        bool alive = v->now_ms - m->beat_ms <= m->expire_ms;
        bool self = strcmp(m->id, x->name) == 0;
        x->others += alive && m->weight > 0 && !self;
        if (self && x->announced && !x->left) m->weight = x->options.weight;
    }
    weir__mutex_lock(&x->lock);
    x->stats.members = (uint32_t)v->member_count;
    weir__mutex_unlock(&x->lock);
}

static void call_store(struct weir_processor *x, const struct weir__control_step *s)
{
    const struct weir_store_ops *ops = x->store->ops;
    enum weir_action action = WEIR_BEATING;
    struct weir_record record;
    struct weir_error err;
    int rc = 0;

    count_call(x);
    switch (s->what) {
    case WEIR__CONTROL_BEAT:
        x->self = *s->member;
        if (x->announced) x->self.weight = 0;
        rc = ops->beat(x->store, &x->scope, &x->self, &err);
        break;
    case WEIR__CONTROL_LEAVE: rc = ops->leave(x->store, &x->scope, s->member, &err); break;
    case WEIR__CONTROL_READ:
        action = WEIR_READING_STORE;
        rc = ops->read(x->store, &x->scope, s->view, &err);
        break;
    default:
        action = WEIR_CLAIMING;
        rc = ops->claim(x->store, &x->scope, s->record, s->owner, s->instance, &record, &err);
    }
    if (s->what == WEIR__CONTROL_READ && rc == 0) look_at_members(x, s->view);
    weir__control_answer(x->control, weir__now_ms(), rc, rc == 0 ? &record : NULL);
    if (rc == 0) x->told_code = 0;
    if (rc != 0 && rc != WEIR_EFENCED) tell_failure(x, action, weir__now_ms(), rc, &err);
}

static void start(struct weir_processor *x, const struct weir_record *record, bool shared)
{
    struct weir__slot *slot = &x->slots[record->partition];
    int rc = 0;

    weir__mutex_lock(&x->lock);
    slot->shared = shared;
    if (slot->live) {
        slot->pending = true;
        slot->record = *record;
    } else {
        rc = weir__runner_place(x, record);
    }
    weir__mutex_unlock(&x->lock);
    if (rc != 0)
        weir__control_drained(x->control, weir__now_ms(), record->partition, START_PAUSE_MS);
}

static void drain(struct weir_processor *x, uint32_t partition)
{
    struct weir__slot *slot = &x->slots[partition];
    struct weir_partition *p;
    bool never;

    weir__mutex_lock(&x->lock);
    p = slot->live;
    never = slot->pending || !p;
    slot->pending = false;
    if (!never) {
        if (!p->drain) p->drain = x->leaving ? WEIR_CLOSED_SHUTDOWN : WEIR_CLOSED_MOVED;
        atomic_store(&p->revoked, true);
        atomic_store(&p->called, true);
        weir__runner_push(x, p);
    }
    weir__mutex_unlock(&x->lock);
    if (never) weir__control_drained(x->control, weir__now_ms(), partition, 0);
}

static void stop(struct weir_processor *x, uint32_t partition, enum weir_close_reason reason)
{
    struct weir__slot *slot = &x->slots[partition];
    struct weir_partition *p;

    weir__mutex_lock(&x->lock);
    p = slot->pending ? NULL : slot->live;
    slot->pending = false;
    if (p && !p->stop) { /* else it is for one that was drained before it began */
        p->stop = reason;
        weir__checkpoint_fence(&p->checkpoint); /* it is somebody else's, or nobody's */
        atomic_store(&p->revoked, true);
        atomic_store(&p->called, true);
        weir__runner_push(x, p);
        weir__cond_broadcast(&x->stored);
    }
    weir__mutex_unlock(&x->lock);
}

static void rewind_to(struct weir_processor *x, const struct weir_record *record, bool shared)
{
    struct weir__slot *slot = &x->slots[record->partition];
    struct weir_partition *p;

    weir__mutex_lock(&x->lock);
    p = slot->live;
    slot->record = *record;
    slot->shared = shared;
    if (p && !slot->pending) {
        p->reopen = true;
        p->doubted = false;
        atomic_store(&p->called, true);
        weir__runner_push(x, p);
    }
    weir__mutex_unlock(&x->lock);
}

static void report(struct weir_processor *x, uint32_t partition)
{
    struct weir_error err;

    weir__fail(&err, WEIR_ECORRUPT,
               "the store's record of partition %" PRIu32
               " cannot be understood; the partition is not read by anybody"
               " (weir checkpoint delete makes a new one)",
               partition);
    weir__runner_tell(x, WEIR_READING_STORE, &err);
}

static void finish(struct weir_processor *x)
{
    weir__mutex_lock(&x->lock);
    x->done = true;
    weir__cond_broadcast(&x->ended);
    weir__mutex_unlock(&x->lock);
}

/* Does one step of the control. When the next is due. */
static int64_t step_control(struct weir_processor *x, int64_t now_ms)
{
    struct weir__control_step s;

    weir__control_next(x->control, now_ms, &s);
    switch (s.what) {
    case WEIR__CONTROL_WAIT: return s.until_ms;
    case WEIR__CONTROL_DONE: finish(x); return INT64_MAX;
    case WEIR__CONTROL_START: start(x, s.record, s.shared); break;
    case WEIR__CONTROL_DRAIN: drain(x, s.partition); break;
    case WEIR__CONTROL_STOP: stop(x, s.partition, s.reason); break;
    case WEIR__CONTROL_REWIND: rewind_to(x, s.record, s.shared); break;
    case WEIR__CONTROL_REPORT: report(x, s.partition); break;
    default: call_store(x, &s);
    }
    return now_ms;
}

/* A copy that leaves says so a beat before, by a weight of 0, and reads on meanwhile: those who will
 * get its partitions look out for them then, and need not wait for their next beat when they come.
 * When there is nobody else, or nothing to give, it leaves at once. true: the store was called. */
static bool begin_leaving(struct weir_processor *x, int64_t now_ms)
{
    int64_t beat_ms = x->options.beat_ms;
    bool leaving, empty;

    weir__mutex_lock(&x->lock);
    leaving = x->leaving;
    empty = x->live_count == 0;
    x->poked = false; /* before looking, so that what comes now is looked at again */
    weir__mutex_unlock(&x->lock);
    if (!leaving || x->left) return false;
    if (!x->announced && x->others > 0 && !empty) {
        x->announced = true;
        x->leave_ms = now_ms + least(beat_ms + beat_ms / LEAVE_SLACK, x->leave_max_ms);
        x->self.weight = 0;
        count_call(x);
        x->store->ops->beat(x->store, &x->scope, &x->self, NULL); /* the next one says it again */
        return true;
    }
    if (x->announced && !empty && x->others > 0 && now_ms < x->leave_ms) return false;
    x->left = true;
    weir__control_leave(x->control, now_ms);
    return false;
}

static void count_control(struct weir_processor *x)
{
    int64_t since_ms = weir__control_unanswered_since(x->control);
    struct weir__control_counts c;

    weir__control_counts(x->control, &c);
    weir__mutex_lock(&x->lock);
    x->stats.handovers = c.handovers;
    x->stats.takeovers = c.takeovers;
    x->stats.lost = c.lost;
    x->stats.store_silent_ms = since_ms ? weir__now_ms() - since_ms : 0;
    weir__mutex_unlock(&x->lock);
}

int64_t weir__driver_step(struct weir_processor *x, int64_t now_ms)
{
    int64_t due_ms, marks_ms;

    if (begin_leaving(x, now_ms)) return now_ms;
    look_at_clocks(x, now_ms);
    take_notes(x, now_ms);
    marks_ms = marks_due(x, now_ms);
    if (x->marks_turn && marks_ms <= now_ms) {
        x->marks_turn = false;
        weir__driver_flush(x, now_ms);
        return now_ms;
    }
    x->marks_turn = true;
    due_ms = least(step_control(x, now_ms), marks_ms);
    if (due_ms > now_ms) count_control(x);
    weir__mutex_lock(&x->lock);
    due_ms = least(due_ms, least(x->next_due_ms, x->count_due_ms));
    if (x->leaving && !x->left) due_ms = least(due_ms, x->announced ? x->leave_ms : now_ms);
    weir__mutex_unlock(&x->lock);
    return due_ms;
}
