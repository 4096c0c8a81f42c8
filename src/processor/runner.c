/* runner.c - who does it: one driver, some workers, one teller; or the program's own loop.
 *
 * Partitions that have something to do stand in a ring, first come, first served; a worker takes one,
 * runs its turn and puts it back when there is more to do. A partition is in the ring at most once and
 * never while it runs, which is why its calls never overlap. What happens meanwhile (events came,
 * orders, its time) is noted as `again`.
 *
 * The driver makes the store's calls and watches the clocks. The teller calls the program about what
 * concerns no partition, so that a program that takes its time there delays no beat.
 *
 * When a handler does not return in the time that stop has, its thread is left behind: it may use the
 * processor's memory, and the last such thread frees that, but neither store nor source. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "processor/state.h"

#define STOP_GRACE_MS 200 /* of stop's time, to close what could not be handed over */
#define STOP_GRACE_PART 4 /* but not more than this part of it */

int64_t weir__now_ms(void)
{
    return weir__mono_ns() / 1000000;
}

static int64_t deadline_ns(int64_t at_ms)
{
    return at_ms >= INT64_MAX / 1000000 ? INT64_MAX : at_ms * 1000000;
}

/* The driver has something to look at: now, or before it waits. */
static void poke(struct weir_processor *x)
{
    x->poked = true;
    weir__cond_signal(&x->work);
}

/* ---- the ring ---- */

void weir__runner_push(struct weir_processor *x, struct weir_partition *p)
{
    if (p->running) {
        p->again = true;
        return;
    }
    if (p->queued) return;
    p->queued = true;
    p->next_ready = NULL;
    if (x->ring_last)
        x->ring_last->next_ready = p;
    else
        x->ring_first = p;
    x->ring_last = p;
    if (x->worker_count > 0)
        weir__cond_signal(&x->ready);
    else
        poke(x);
}

static struct weir_partition *pop(struct weir_processor *x)
{
    struct weir_partition *p = x->ring_first;

    if (!p) return NULL;
    x->ring_first = p->next_ready;
    if (!x->ring_first) x->ring_last = NULL;
    p->queued = p->again = false;
    p->running = true;
    p->due_ms = INT64_MAX;
    return p;
}

void weir__runner_note(struct weir_processor *x)
{
    x->noted = true;
    poke(x);
}

void weir__runner_marks(struct weir_processor *x, bool urgent)
{
    bool news = !x->marks_wanted || (urgent && !x->marks_urgent);

    x->marks_wanted = true;
    x->marks_urgent = x->marks_urgent || urgent;
    if (news) poke(x);
}

void weir__runner_due(struct weir_processor *x, int64_t ms)
{
    if (ms >= x->next_due_ms) return;
    x->next_due_ms = ms;
    poke(x);
}

int weir__runner_place(struct weir_processor *x, const struct weir_record *record)
{
    struct weir__checkpoint_policy policy = {x->options.mark_events, x->options.mark_ms};
    struct weir_partition *p = calloc(1, sizeof *p);

    if (!p) return WEIR_ENOMEM;
    assert(!x->slots[record->partition].live);
    p->processor = x;
    p->id = record->partition;
    p->epoch = record->epoch;
    p->shared = x->slots[record->partition].shared;
    p->due_ms = INT64_MAX;
    weir__checkpoint_init(&p->checkpoint, record, &policy);
    x->slots[record->partition].live = p;
    x->live_count++;
    x->stats.owned++;
    weir__runner_push(x, p);
    return 0;
}

/* It is closed; the lock is held. Another one may have been waiting for that. */
static void remove_partition(struct weir_processor *x, struct weir_partition *p)
{
    struct weir__slot *slot = &x->slots[p->id];

    assert(slot->live == p && !p->queued);
    slot->live = NULL;
    x->live_count--;
    x->stats.owned--;
    free(p);
    if (slot->pending && weir__runner_place(x, &slot->record) == 0) slot->pending = false;
    weir__cond_broadcast(&x->ended);
}

/* ---- turns ---- */

/* The lock is held at the beginning and at the end, and not meanwhile. false: abandoned. */
static bool run_turn(struct weir_processor *x, struct weir_partition *p)
{
    enum weir__pump next;
    int64_t due_ms;

    weir__mutex_unlock(&x->lock);
    next = weir__pump_turn(p, &due_ms);
    weir__mutex_lock(&x->lock);
    if (next == WEIR__PUMP_ABANDONED) return false;
    p->running = false;
    if (next == WEIR__PUMP_GONE) {
        remove_partition(x, p);
        return true;
    }
    p->due_ms = due_ms;
    if (next == WEIR__PUMP_AGAIN || p->again)
        weir__runner_push(x, p);
    else
        weir__runner_due(x, due_ms);
    return true;
}

/* How many partitions there are; likewise. */
static void run_count(struct weir_processor *x)
{
    struct weir_error err;
    uint32_t count = 0;
    int rc;

    x->count_wanted = false;
    weir__mutex_unlock(&x->lock);
    rc = x->source->ops->count(x->source, &count, &err);
    if (rc != 0) weir__runner_tell(x, WEIR_RECEIVING, &err);
    weir__mutex_lock(&x->lock);
    if (rc != 0 || count <= x->slot_count) return;
    x->counted = count;
    weir__runner_note(x);
}

static void *run_worker(void *arg)
{
    struct weir__worker *w = arg;
    struct weir_processor *x = w->processor;
    bool last;

    weir__mutex_lock(&x->lock);
    while (!x->quitting) {
        if (x->count_wanted) {
            run_count(x);
        } else if ((w->at = pop(x))) {
            if (!run_turn(x, w->at)) break;
            w->at = NULL;
        } else {
            weir__cond_wait(&x->ready, &x->lock, INT64_MAX);
        }
    }
    last = x->abandoned && w->at && --x->behind == 0;
    weir__mutex_unlock(&x->lock);
    if (last) weir__processor_free(x);
    return NULL;
}

static void *run_driver(void *arg)
{
    struct weir_processor *x = arg;
    int64_t due_ms, now_ms;

    for (;;) {
        now_ms = weir__now_ms();
        due_ms = weir__driver_step(x, now_ms);
        weir__mutex_lock(&x->lock);
        if (due_ms > now_ms && !x->poked && !x->halted && !x->done)
            weir__cond_wait(&x->work, &x->lock, deadline_ns(due_ms));
        if (x->halted || x->done) break;
        weir__mutex_unlock(&x->lock);
    }
    weir__mutex_unlock(&x->lock);
    return NULL;
}

/* ---- errors about no partition ---- */

void weir__runner_tell(struct weir_processor *x, enum weir_action action,
                       const struct weir_error *err)
{
    const struct weir_processor_options *o = &x->options;
    uint32_t at;

    if (!o->handler.error) return;
    if (x->worker_count == 0) {
        o->handler.error(NULL, action, err, o->user);
        return;
    }
    weir__mutex_lock(&x->lock);
    if (x->tell_count < WEIR__TELLS_MAX) {
        at = (x->tell_first + x->tell_count++) % WEIR__TELLS_MAX;
        x->tells[at] = (struct weir__tell){.action = action, .err = *err};
        weir__cond_signal(&x->telling);
    }
    weir__mutex_unlock(&x->lock);
}

static void *run_teller(void *arg)
{
    struct weir_processor *x = arg;
    struct weir__tell t;

    weir__mutex_lock(&x->lock);
    while (!x->quitting || x->tell_count > 0) {
        if (x->tell_count == 0) {
            weir__cond_wait(&x->telling, &x->lock, INT64_MAX);
            continue;
        }
        t = x->tells[x->tell_first];
        x->tell_first = (x->tell_first + 1) % WEIR__TELLS_MAX;
        x->tell_count--;
        weir__mutex_unlock(&x->lock);
        x->options.handler.error(NULL, t.action, &t.err, x->options.user);
        weir__mutex_lock(&x->lock);
    }
    weir__mutex_unlock(&x->lock);
    return NULL;
}

/* ---- the program's own loop ---- */

/* One turn of each that was ready when we came. false: there was none. */
static bool work_once(struct weir_processor *x)
{
    struct weir_partition *p, *last;
    bool any;

    weir__mutex_lock(&x->lock);
    any = x->ring_first || x->count_wanted;
    if (x->count_wanted) run_count(x);
    last = x->ring_last;
    while ((p = pop(x))) {
        bool was_last = p == last;
        run_turn(x, p);
        if (was_last) break;
    }
    weir__mutex_unlock(&x->lock);
    return any;
}

int weir__runner_step(struct weir_processor *x, int64_t wait_ms)
{
    int64_t end_ms = weir__now_ms() + wait_ms, due_ms, now_ms;
    bool any = false;

    do {
        now_ms = weir__now_ms();
        due_ms = weir__driver_step(x, now_ms);
        any = work_once(x) || due_ms <= now_ms;
        weir__mutex_lock(&x->lock);
        any = any || x->done;
        if (!any && !x->poked && now_ms < end_ms)
            weir__cond_wait(&x->work, &x->lock, deadline_ns(due_ms < end_ms ? due_ms : end_ms));
        weir__mutex_unlock(&x->lock);
    } while (!any && weir__now_ms() < end_ms);
    return 0;
}

/* ---- start ---- */

static int start_threads(struct weir_processor *x, struct weir_error *err)
{
    int rc = 0;

    x->workers = calloc(x->worker_count, sizeof *x->workers);
    if (!x->workers) return weir__fail(err, WEIR_ENOMEM, "no memory for threads");
    for (uint32_t i = 0; rc == 0 && i < x->worker_count; i++) {
        x->workers[i].processor = x;
        rc = weir__thread_start(&x->workers[i].thread, "weir-worker", run_worker, &x->workers[i],
                                err);
    }
    if (rc == 0) rc = weir__thread_start(&x->teller, "weir-teller", run_teller, x, err);
    if (rc == 0) rc = weir__thread_start(&x->driver, "weir-driver", run_driver, x, err);
    return rc;
}

static void end_threads(struct weir_processor *x)
{
    weir__mutex_lock(&x->lock);
    x->halted = x->quitting = true;
    weir__cond_broadcast(&x->ready);
    weir__cond_broadcast(&x->work);
    weir__cond_broadcast(&x->telling);
    weir__mutex_unlock(&x->lock);
    weir__thread_join(&x->driver);
    weir__thread_join(&x->teller);
}

static void join_workers(struct weir_processor *x)
{
    for (uint32_t i = 0; i < x->worker_count && x->workers; i++)
        weir__thread_join(&x->workers[i].thread);
}

int weir__runner_start(struct weir_processor *x, struct weir_error *err)
{
    int rc = x->worker_count > 0 ? start_threads(x, err) : 0;

    if (rc == 0) return 0;
    end_threads(x);
    join_workers(x);
    return rc;
}

/* ---- stop ---- */

/* Asks everything that is still open to close at once; the lock is held. */
static void force(struct weir_processor *x)
{
    x->halted = true;
    for (uint32_t i = 0; i < x->slot_count; i++) {
        struct weir_partition *p = x->slots[i].live;
        x->slots[i].pending = false;
        if (!p) continue;
        if (!p->stop) p->stop = WEIR_CLOSED_SHUTDOWN;
        weir__checkpoint_fence(&p->checkpoint);
        atomic_store(&p->revoked, true);
        atomic_store(&p->called, true);
        weir__runner_push(x, p);
    }
    weir__cond_broadcast(&x->stored);
    weir__cond_broadcast(&x->work);
}

/* Whether all that is left is inside the program; the lock is held. */
static bool all_stuck(const struct weir_processor *x)
{
    for (uint32_t i = 0; i < x->slot_count; i++)
        if (x->slots[i].live && !x->slots[i].live->handling) return false;
    return true;
}

/* Waits until what is open is closed; the lock is held. Past the deadline only for what is not in
 * the program's hands. */
static void wait_for_closes(struct weir_processor *x, int64_t end_ms)
{
    while (x->live_count > 0 && !(weir__now_ms() >= end_ms && all_stuck(x))) {
        int64_t until_ms = weir__now_ms() < end_ms ? end_ms : weir__now_ms() + STOP_GRACE_MS;
        weir__cond_wait(&x->ended, &x->lock, deadline_ns(until_ms));
    }
}

static void wait_in_threads(struct weir_processor *x, int64_t end_ms, int64_t grace_ms)
{
    weir__mutex_lock(&x->lock);
    poke(x);
    while (!(x->done && x->live_count == 0) && weir__now_ms() < end_ms - grace_ms)
        weir__cond_wait(&x->ended, &x->lock, deadline_ns(end_ms - grace_ms));
    if (x->live_count > 0) {
        force(x);
        wait_for_closes(x, end_ms);
    }
    x->abandoned = x->live_count > 0;
    x->behind = x->live_count + 1; /* this thread is one of those who use it */
    weir__mutex_unlock(&x->lock);
}

static void wait_in_steps(struct weir_processor *x, int64_t end_ms)
{
    bool through = false;

    while (!through && weir__now_ms() < end_ms) {
        weir__runner_step(x, end_ms - weir__now_ms());
        weir__mutex_lock(&x->lock);
        through = x->done && x->live_count == 0;
        weir__mutex_unlock(&x->lock);
    }
    weir__mutex_lock(&x->lock);
    if (x->live_count > 0) force(x);
    weir__mutex_unlock(&x->lock);
    while (x->live_count > 0 && work_once(x)) continue;
}

/* Whoever is inside the program is left there; the others have ended. The last one frees it. */
static void part(struct weir_processor *x)
{
    bool last;

    for (uint32_t i = 0; i < x->worker_count; i++) {
        bool stuck;
        weir__mutex_lock(&x->lock);
        stuck = x->abandoned && x->workers[i].at;
        weir__mutex_unlock(&x->lock);
        if (stuck)
            weir__thread_detach(&x->workers[i].thread);
        else
            weir__thread_join(&x->workers[i].thread);
    }
    weir__mutex_lock(&x->lock);
    last = !x->abandoned || --x->behind == 0;
    weir__mutex_unlock(&x->lock);
    if (last) weir__processor_free(x);
}

int weir__runner_stop(struct weir_processor *x, int64_t timeout_ms, struct weir_error *err)
{
    int64_t grace_ms = timeout_ms / STOP_GRACE_PART, end_ms = INT64_MAX / 1000000;
    uint32_t behind;
    bool done;

    if (grace_ms > STOP_GRACE_MS || timeout_ms < 0) grace_ms = STOP_GRACE_MS;
    if (timeout_ms >= 0) end_ms = weir__now_ms() + timeout_ms;
    weir__mutex_lock(&x->lock);
    x->leaving = true;
    x->leave_max_ms = timeout_ms < 0 ? INT64_MAX / 4 : timeout_ms / STOP_GRACE_PART;
    weir__mutex_unlock(&x->lock);
    if (x->worker_count > 0)
        wait_in_threads(x, end_ms, grace_ms);
    else
        wait_in_steps(x, end_ms);
    end_threads(x);
    weir__mutex_lock(&x->lock);
    done = x->done;
    behind = x->abandoned ? x->live_count : 0;
    weir__mutex_unlock(&x->lock);
    part(x);
    if (behind > 0)
        return weir__fail(err, WEIR_ETIMEDOUT, "%u handler%s did not return in time", behind,
                          behind == 1 ? "" : "s");
    if (!done)
        return weir__fail(err, WEIR_EUNREACHABLE,
                          "the partitions could not be handed over in time; others have them when"
                          " this copy has expired");
    return 0;
}
