/* watch.c - telling those who wait for events.
 *
 * A commit only notes, under the log's lock, which partitions have something new, and tells behind
 * it, under the watchers' own lock. A few are told right there; many are told by a thread of the
 * pool, and what is committed meanwhile is part of its next round. A watcher is told once and then
 * forgotten until it watches again: one that has not looked since costs nothing.
 *
 *   waiting   to be told of the next news; weir__log_watch puts it here
 *   telling   of the round that goes on: it was waiting when the round began
 *
 * Calls are made under the lock, CALLS_PER_HOLD at a time: when unwatch has the lock, none is under
 * way. */
#include <stdlib.h>

#include "log/state.h"

#define TOLD_BY_COMMIT_MAX 64 /* more of them are left to the pool */
#define CALLS_PER_HOLD 32     /* of the lock */
#define HOLDS_PER_TURN 32     /* of a pool's thread; then others have theirs */

static struct weir__log_watch **head_of(struct weir__watch_list *l, const struct weir__log_watch *w)
{
    return w->round == l->round ? &l->waiting : &l->telling;
}

static void arm(struct weir__watches *x, struct weir__log_watch *w)
{
    struct weir__watch_list *l = &x->lists[w->partition];

    w->armed = true;
    w->round = l->round;
    w->prev = NULL;
    w->next = l->waiting;
    if (w->next) w->next->prev = w;
    l->waiting = w;
    l->count++;
    __atomic_store_n(&x->armed, x->armed + 1, __ATOMIC_RELAXED);
}

static void disarm(struct weir__watches *x, struct weir__log_watch *w)
{
    struct weir__watch_list *l = &x->lists[w->partition];

    if (w->next) w->next->prev = w->prev;
    if (w->prev)
        w->prev->next = w->next;
    else
        *head_of(l, w) = w->next;
    if (w->round == l->round) l->count--;
    w->armed = false;
    __atomic_store_n(&x->armed, x->armed - 1, __ATOMIC_RELAXED);
}

void weir__log_watch(struct weir__log *log, struct weir__log_watch *w)
{
    struct weir__watches *x = &log->watches;

    weir__mutex_lock(&x->lock);
    if (!w->armed) arm(x, w);
    weir__mutex_unlock(&x->lock);
}

void weir__log_unwatch(struct weir__log *log, struct weir__log_watch *w)
{
    struct weir__watches *x = &log->watches;

    weir__mutex_lock(&x->lock);
    if (w->armed) disarm(x, w);
    weir__mutex_unlock(&x->lock);
}

bool weir__watch_size(struct weir__log *log, uint32_t partitions)
{
    struct weir__watches *x = &log->watches;
    struct weir__watch_list *lists;

    weir__mutex_lock(&x->lock);
    lists = realloc(x->lists, partitions * sizeof *lists);
    if (lists) {
        memset(lists + log->partitions, 0, (partitions - log->partitions) * sizeof *lists);
        x->lists = lists;
    }
    weir__mutex_unlock(&x->lock);
    return lists != NULL;
}

static void tell(struct weir__watches *x, struct weir__log_watch *w)
{
    disarm(x, w);
    w->fn(w->user);
}

/* ---- many: rounds of the pool ---- */

/* The list that the round is at, or the next one with news; NULL: all are told. */
static struct weir__watch_list *next_list(struct weir__watches *x)
{
    struct weir__watch_list *l = &x->lists[x->at];

    if (l->telling) return l;
    for (uint32_t i = 0; i < WEIR__WATCH_WORDS; i++) {
        if (x->news[i] == 0) continue;
        x->at = i * 64 + (uint32_t)__builtin_ctzll(x->news[i]);
        x->news[i] &= x->news[i] - 1;
        l = &x->lists[x->at];
        l->telling = l->waiting;
        l->waiting = NULL;
        l->count = 0;
        l->round++;
        return l;
    }
    return NULL;
}

static void run_job(void *owner)
{
    struct weir__log *log = owner;
    struct weir__watches *x = &log->watches;
    struct weir__watch_list *l;

    weir__mutex_lock(&x->lock);
    x->job.state = WEIR__JOB_RUNNING;
    for (int holds = 0; holds < HOLDS_PER_TURN && (l = next_list(x)); holds++) {
        for (int i = 0; i < CALLS_PER_HOLD && l->telling; i++) tell(x, l->telling);
        weir__mutex_unlock(&x->lock);
        weir__mutex_lock(&x->lock);
    }
    if (next_list(x)) {
        weir__pool_put_back(log->pool, &x->job);
    } else {
        x->job.state = WEIR__JOB_IDLE;
        weir__cond_broadcast(&x->told);
    }
    weir__mutex_unlock(&x->lock);
}

/* ---- behind a commit ---- */

void weir__watch_note_all(struct weir__log *log)
{
    for (uint32_t i = 0; i < log->partitions; i++) weir__watch_note(log, i);
}

static uint32_t count_waiting(const struct weir__watches *x, const uint64_t *fresh)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < WEIR__WATCH_WORDS; i++)
        for (uint64_t bits = fresh[i]; bits; bits &= bits - 1)
            count += x->lists[i * 64 + (uint32_t)__builtin_ctzll(bits)].count;
    return count;
}

static void tell_now(struct weir__watches *x, const uint64_t *fresh)
{
    for (uint32_t i = 0; i < WEIR__WATCH_WORDS; i++)
        for (uint64_t bits = fresh[i]; bits; bits &= bits - 1) {
            struct weir__watch_list *l = &x->lists[i * 64 + (uint32_t)__builtin_ctzll(bits)];

            while (l->waiting) tell(x, l->waiting);
        }
}

void weir__watch_tell(struct weir__log *log)
{
    struct weir__watches *x = &log->watches;
    uint64_t fresh[WEIR__WATCH_WORDS];

    if (!log->any_fresh) return;
    memcpy(fresh, log->fresh, sizeof fresh);
    memset(log->fresh, 0, sizeof log->fresh);
    log->any_fresh = false;
    weir__mutex_unlock(&log->lock);
    weir__mutex_lock(&x->lock);
    if (x->job.state == WEIR__JOB_NONE || count_waiting(x, fresh) <= TOLD_BY_COMMIT_MAX) {
        tell_now(x, fresh);
    } else {
        for (uint32_t i = 0; i < WEIR__WATCH_WORDS; i++) x->news[i] |= fresh[i];
        if (x->job.state == WEIR__JOB_IDLE) weir__pool_put(log->pool, &x->job);
    }
    weir__mutex_unlock(&x->lock);
    weir__mutex_lock(&log->lock);
}

void weir__watch_start(struct weir__log *log)
{
    log->watches.job = (struct weir__pool_job){.run = run_job, .owner = log};
    if (log->pool) log->watches.job.state = WEIR__JOB_IDLE;
}

void weir__watch_stop(struct weir__log *log)
{
    struct weir__watches *x = &log->watches;

    weir__mutex_lock(&x->lock);
    while (x->job.state == WEIR__JOB_QUEUED || x->job.state == WEIR__JOB_RUNNING)
        weir__cond_wait(&x->told, &x->lock, INT64_MAX);
    x->job.state = WEIR__JOB_NONE;
    weir__mutex_unlock(&x->lock);
}
