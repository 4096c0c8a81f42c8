#include "log/pool.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"

#define LINGER_NS 100000 /* how long a flusher stays awake without work */

struct weir__log_pool {
    struct weir__mutex lock; /* guards the rest */
    struct weir__cond work;  /* the flushers' */
    struct weir__cond time;  /* the keeper's */
    struct weir__cond left;  /* the keeper has finished with a member */
    bool closing;

    struct weir__thread flushers[WEIR__LOG_POOL_FLUSHERS_MAX], keeper;
    unsigned count, started; /* flushers: at most, running, */
    unsigned idle, called;   /* asleep, and of those, how many have work coming */
    atomic_bool lingering;   /* one is awake and has no work; putting some clears it */
    struct weir__pool_job *first, **last;

    struct weir__pool_member **heap; /* the next one due is heap[0] */
    size_t waiting, joined, cap;
};

int weir__log_pool_new(struct weir__log_pool **out, unsigned flushers, struct weir_error *err)
{
    struct weir__log_pool *p = calloc(1, sizeof *p);

    assert(flushers > 0 && flushers <= WEIR__LOG_POOL_FLUSHERS_MAX);
    *out = p;
    if (!p) return weir__fail(err, WEIR_ENOMEM, "the log's threads: out of memory");
    weir__mutex_init(&p->lock);
    weir__cond_init(&p->work);
    weir__cond_init(&p->time);
    weir__cond_init(&p->left);
    p->count = flushers;
    p->last = &p->first;
    return 0;
}

void weir__log_pool_free(struct weir__log_pool *p)
{
    if (!p) return;
    weir__mutex_lock(&p->lock);
    assert(!p->first && p->joined == 0);
    p->closing = true;
    weir__cond_broadcast(&p->work);
    weir__cond_broadcast(&p->time);
    weir__mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->started; i++) weir__thread_join(&p->flushers[i]);
    weir__thread_join(&p->keeper);
    weir__cond_fini(&p->left);
    weir__cond_fini(&p->time);
    weir__cond_fini(&p->work);
    weir__mutex_fini(&p->lock);
    free(p->heap);
    free(p);
}

/* ---- flushers ---- */

/* Waits for work awake, while other threads that have something to do go first. Waking a thread
 * takes 15 us and more, and whoever publishes batch after batch would wait for that each time. */
static void linger(struct weir__log_pool *p)
{
    int64_t until_ns = weir__mono_ns() + LINGER_NS;

    p->lingering = true;
    weir__mutex_unlock(&p->lock);
    while (p->lingering && weir__mono_ns() < until_ns) sched_yield();
    weir__mutex_lock(&p->lock);
    p->lingering = false;
}

static void sleep_until_called(struct weir__log_pool *p)
{
    p->idle++;
    weir__cond_wait(&p->work, &p->lock, INT64_MAX);
    p->idle--;
    if (p->called) p->called--;
}

/* Returns whether it came soon; if it did the last time, it is worth lingering. */
static bool await_work(struct weir__log_pool *p, bool soon)
{
    int64_t since_ns = weir__mono_ns();

    if (soon && !p->lingering) linger(p);
    if (!p->first && !p->closing) sleep_until_called(p);
    return weir__mono_ns() - since_ns < LINGER_NS;
}

static void *run_flusher(void *arg)
{
    struct weir__log_pool *p = arg;
    bool soon = false;

    weir__mutex_lock(&p->lock);
    while (!p->closing) {
        struct weir__pool_job *job = p->first;

        if (!job) {
            soon = await_work(p, soon);
            continue;
        }
        p->first = job->next;
        if (!p->first) p->last = &p->first;
        weir__mutex_unlock(&p->lock);
        job->run(job->owner);
        weir__mutex_lock(&p->lock);
    }
    weir__mutex_unlock(&p->lock);
    return NULL;
}

/* Another one, up to their number. Lock held. */
static int start_flusher(struct weir__log_pool *p, struct weir_error *err)
{
    int rc;

    if (p->started == p->count) return 0;
    rc = weir__thread_start(&p->flushers[p->started], "weir-flush", run_flusher, p, err);
    if (rc == 0) p->started++;
    return rc;
}

static void push(struct weir__log_pool *p, struct weir__pool_job *job)
{
    job->state = WEIR__JOB_QUEUED;
    job->next = NULL;
    *p->last = job;
    p->last = &job->next;
}

void weir__pool_put(struct weir__log_pool *p, struct weir__pool_job *job)
{
    assert(job->state == WEIR__JOB_IDLE);
    weir__mutex_lock(&p->lock);
    push(p, job);
    if (p->lingering) {
        p->lingering = false;
    } else if (p->idle > p->called) {
        p->called++;
        weir__cond_signal(&p->work);
    } else {
        start_flusher(p, NULL);
    }
    weir__mutex_unlock(&p->lock);
}

void weir__pool_put_back(struct weir__log_pool *p, struct weir__pool_job *job)
{
    assert(job->state == WEIR__JOB_RUNNING);
    weir__mutex_lock(&p->lock);
    push(p, job); /* the thread that ran it takes the next one */
    weir__mutex_unlock(&p->lock);
}

bool weir__pool_here(struct weir__log_pool *p)
{
    bool here = false;

    weir__mutex_lock(&p->lock);
    for (unsigned i = 0; i < p->started; i++)
        if (pthread_equal(p->flushers[i].t, pthread_self())) here = true;
    weir__mutex_unlock(&p->lock);
    return here;
}

/* ---- the keeper ---- */

static void set_place(struct weir__log_pool *p, size_t at, struct weir__pool_member *m)
{
    p->heap[at] = m;
    m->at = at;
}

static void sift_up(struct weir__log_pool *p, struct weir__pool_member *m)
{
    size_t at = m->at;

    while (at > 0 && p->heap[(at - 1) / 2]->due_ns > m->due_ns) {
        set_place(p, at, p->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    set_place(p, at, m);
}

static void sift_down(struct weir__log_pool *p, struct weir__pool_member *m)
{
    size_t at = m->at, child;

    while ((child = 2 * at + 1) < p->waiting) {
        if (child + 1 < p->waiting && p->heap[child + 1]->due_ns < p->heap[child]->due_ns) child++;
        if (p->heap[child]->due_ns >= m->due_ns) break;
        set_place(p, at, p->heap[child]);
        at = child;
    }
    set_place(p, at, m);
}

static void put_in(struct weir__log_pool *p, struct weir__pool_member *m)
{
    m->state = WEIR__MEMBER_WAITS;
    set_place(p, p->waiting++, m);
    sift_up(p, m);
}

static void take_out(struct weir__log_pool *p, struct weir__pool_member *m)
{
    struct weir__pool_member *last = p->heap[--p->waiting];

    m->state = WEIR__MEMBER_OUT;
    if (last == m) return;
    set_place(p, m->at, last);
    sift_up(p, last);
    sift_down(p, last);
}

static void keep_first(struct weir__log_pool *p)
{
    struct weir__pool_member *m = p->heap[0];
    int64_t due_ns;

    take_out(p, m);
    m->state = WEIR__MEMBER_KEPT;
    m->due_ns = INT64_MAX; /* somebody may want it earlier while we are at it */
    weir__mutex_unlock(&p->lock);
    due_ns = m->keep(m->owner);
    weir__mutex_lock(&p->lock);
    if (due_ns < m->due_ns) m->due_ns = due_ns;
    put_in(p, m);
    weir__cond_broadcast(&p->left);
}

static void *run_keeper(void *arg)
{
    struct weir__log_pool *p = arg;

    weir__mutex_lock(&p->lock);
    while (!p->closing) {
        int64_t due_ns = p->waiting ? p->heap[0]->due_ns : INT64_MAX;

        if (due_ns > weir__mono_ns())
            weir__cond_wait(&p->time, &p->lock, due_ns);
        else
            keep_first(p);
    }
    weir__mutex_unlock(&p->lock);
    return NULL;
}

/* A place in the heap, so that putting it in cannot fail, and the threads. Lock held. */
static int make_ready(struct weir__log_pool *p, struct weir_error *err)
{
    size_t cap = p->cap ? p->cap * 2 : 16;
    int rc = 0;

    if (p->joined == p->cap) {
        struct weir__pool_member **heap = realloc(p->heap, cap * sizeof *heap);

        if (!heap) return weir__fail(err, WEIR_ENOMEM, "the log's threads: out of memory");
        p->heap = heap;
        p->cap = cap;
    }
    if (p->started == 0) rc = start_flusher(p, err);
    if (rc == 0 && !p->keeper.running)
        rc = weir__thread_start(&p->keeper, "weir-keep", run_keeper, p, err);
    return rc;
}

int weir__pool_join(struct weir__log_pool *p, struct weir__pool_member *m, int64_t due_ns,
                    struct weir_error *err)
{
    int rc;

    weir__mutex_lock(&p->lock);
    rc = make_ready(p, err);
    if (rc == 0) {
        p->joined++;
        m->due_ns = due_ns;
        put_in(p, m);
        if (p->heap[0] == m) weir__cond_signal(&p->time);
    }
    weir__mutex_unlock(&p->lock);
    return rc;
}

void weir__pool_leave(struct weir__log_pool *p, struct weir__pool_member *m)
{
    weir__mutex_lock(&p->lock);
    while (m->state == WEIR__MEMBER_KEPT) weir__cond_wait(&p->left, &p->lock, INT64_MAX);
    if (m->state == WEIR__MEMBER_WAITS) {
        take_out(p, m);
        p->joined--;
    }
    weir__mutex_unlock(&p->lock);
}

void weir__pool_due(struct weir__log_pool *p, struct weir__pool_member *m, int64_t due_ns)
{
    weir__mutex_lock(&p->lock);
    if (m->state != WEIR__MEMBER_OUT && due_ns < m->due_ns) {
        m->due_ns = due_ns;
        if (m->state == WEIR__MEMBER_WAITS) sift_up(p, m);
        if (p->heap[0] == m) weir__cond_signal(&p->time);
    }
    weir__mutex_unlock(&p->lock);
}
