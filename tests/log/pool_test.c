/* pool_test.c - logs that share threads: turns, an idle log's rest, threads that cannot be started. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/calls.h"
#include "support/simfs.h"

#define LOGS 40
#define BATCHES 50
#define WAIT weir__deadline_ns(30000)

struct world {
    struct simfs *disk;
    struct weir__log_pool *pool;
    struct weir__log *logs[LOGS];
    struct count {
        atomic_int acked, out_of_order;
        atomic_int running; /* completions of this log at this moment */
        uint64_t next;      /* sequence */
    } counts[LOGS];
    struct weir_error err;
};

static struct weir__log_options options_of(struct world *w, int i, char dir[16])
{
    snprintf(dir, 16, "log%d", i);
    return (struct weir__log_options){.fs = simfs_fs(w->disk),
                                      .dir = dir,
                                      .hub_id = (uint64_t)i + 1,
                                      .partitions = 2,
                                      .segment_bytes_max = 1u << 20,
                                      .pool = w->pool};
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->disk = simfs_new();
    assert_int_equal(weir__log_pool_new(&w->pool, WEIR__LOG_POOL_FLUSHERS, &w->err), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    calls_limit_threads(-1);
    for (int i = 0; i < LOGS; i++) weir__log_close(w->logs[i], NULL);
    weir__log_pool_free(w->pool);
    simfs_free(w->disk);
    test_free(w);
    return 0;
}

static int try_open(struct world *w, int i)
{
    char dir[16];
    struct weir__log_options o = options_of(w, i, dir);

    return weir__log_open(&w->logs[i], &o, &w->err);
}

static void make(struct world *w, int i)
{
    char dir[16];
    struct weir__log_options o = options_of(w, i, dir);

    assert_int_equal(weir__log_create(&o, &w->err), 0);
    if (try_open(w, i) != 0) fail_msg("%s", w->err.text);
}

static void note_ack(void *user, int rc, const struct weir__log_receipt *r,
                     const struct weir_error *err)
{
    struct count *c = user;

    (void)err;
    if (atomic_fetch_add(&c->running, 1) != 0) c->out_of_order++;
    if (rc != 0 || r->sequence != c->next++) c->out_of_order++;
    atomic_fetch_sub(&c->running, 1);
    c->acked++;
}

static int append(struct world *w, int i, weir__log_done_fn done, void *user)
{
    static const uint8_t body[100];
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of(body, sizeof body)}};

    return weir__log_append(w->logs[i], &b, WAIT, done, user, &w->err);
}

static void await(atomic_int *value, int least)
{
    int64_t deadline_ns = WAIT;

    while (*value < least && weir__mono_ns() < deadline_ns) sched_yield();
    assert_true(*value >= least);
}

/* ---- jobs ---- */

#define MEETINGS 50
#define MEETING_MS 5000

/* A job that waits for another one to run as well. */
struct meeting {
    struct weir__mutex lock;
    struct weir__pool_job job;
    atomic_int *met;
    atomic_bool done, alone;
};

static void run_meeting(void *owner)
{
    struct meeting *m = owner;
    int64_t deadline_ns = weir__deadline_ns(MEETING_MS);

    weir__mutex_lock(&m->lock);
    m->job.state = WEIR__JOB_RUNNING;
    ++*m->met;
    while (*m->met < 2 && weir__mono_ns() < deadline_ns) sched_yield();
    m->alone = *m->met < 2;
    m->job.state = WEIR__JOB_IDLE;
    m->done = true;
    weir__mutex_unlock(&m->lock);
}

static void put_job(struct weir__log_pool *pool, struct meeting *m)
{
    weir__mutex_lock(&m->lock);
    m->done = false;
    weir__pool_put(pool, &m->job);
    weir__mutex_unlock(&m->lock);
}

static void await_job(struct meeting *m)
{
    while (!m->done) sched_yield();
    weir__mutex_lock(&m->lock); /* it has let go of it */
    weir__mutex_unlock(&m->lock);
}

/* So many jobs one after another come first. */
static void meet(struct weir__log_pool *pool, int before)
{
    atomic_int met = 1;
    struct meeting two[2];

    for (int i = 0; i < 2; i++) {
        two[i] =
            (struct meeting){.job = {.state = WEIR__JOB_IDLE, .run = run_meeting}, .met = &met};
        two[i].job.owner = &two[i];
        weir__mutex_init(&two[i].lock);
    }
    for (int i = 0; i < before; i++) {
        put_job(pool, &two[0]);
        await_job(&two[0]);
    }
    for (int i = 0; i < 100; i++) sched_yield(); /* its thread waits for work again, most times */
    met = 0;
    for (int i = 0; i < 2; i++) put_job(pool, &two[i]);
    for (int i = 0; i < 2; i++) await_job(&two[i]);
    assert_false(two[0].alone);
    for (int i = 0; i < 2; i++) weir__mutex_fini(&two[i].lock);
}

/* Two jobs at once: one for the thread that waits for work, another thread for the other. */
static void waiting_thread_counts_once(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < MEETINGS; i++) {
        struct weir__log_pool *pool = NULL;

        assert_int_equal(weir__log_pool_new(&pool, 2, &w->err), 0);
        meet(pool, 1);
        weir__log_pool_free(pool);
    }
}

/* The same when the thread is still awake, because work came soon the last times. */
static void lingering_thread_counts_once(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < MEETINGS; i++) {
        struct weir__log_pool *pool = NULL;

        assert_int_equal(weir__log_pool_new(&pool, 2, &w->err), 0);
        meet(pool, 10);
        meet(pool, 10);
        weir__log_pool_free(pool);
    }
}

static int threads_now(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[128];
    int count = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &count) == 1) break;
    if (f) fclose(f);
    return count;
}

static void logs_share_a_few_threads(void **state)
{
    struct world *w = *state;
    int before = threads_now();

    for (int i = 0; i < LOGS; i++) make(w, i);
    for (int n = 0; n < BATCHES; n++)
        for (int i = 0; i < LOGS; i++) assert_int_equal(append(w, i, note_ack, &w->counts[i]), 0);
    for (int i = 0; i < LOGS; i++) await(&w->counts[i].acked, BATCHES);
    for (int i = 0; i < LOGS; i++) assert_int_equal(w->counts[i].out_of_order, 0);
    /* The flushers and the keeper; a sanitizer may have one of its own. */
    assert_in_range(threads_now() - before, 2, (int)WEIR__LOG_POOL_FLUSHERS + 2);
}

/* Closing one of them, with much on its way, has its own completions run, and nobody else's. */
static void closing_one_leaves_the_others(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 4; i++) make(w, i);
    for (int round = 0; round < 20; round++) {
        for (int n = 0; n < BATCHES; n++)
            for (int i = 0; i < 4; i++) assert_int_equal(append(w, i, note_ack, &w->counts[i]), 0);
        assert_int_equal(weir__log_close(w->logs[0], NULL), 0);
        w->logs[0] = NULL;
        assert_int_equal(w->counts[0].acked, (round + 1) * BATCHES);
        assert_int_equal(try_open(w, 0), 0);
    }
    for (int i = 0; i < 4; i++) await(&w->counts[i].acked, 20 * BATCHES);
    for (int i = 0; i < 4; i++) assert_int_equal(w->counts[i].out_of_order, 0);
}

/* ---- turns ---- */

struct restless {
    struct world *w;
    int log;
    atomic_int stop, rounds, ended;
};

/* Appends again from its own completion, so that its log always has work. */
static void append_again(void *user, int rc, const struct weir__log_receipt *r,
                         const struct weir_error *err)
{
    struct restless *x = user;

    (void)rc, (void)r, (void)err;
    x->rounds++;
    if (x->stop || append(x->w, x->log, append_again, x) != 0) x->ended = 1;
}

static void a_busy_log_leaves_turns_to_others(void **state)
{
    struct world *w = *state;
    struct restless x = {.w = w, .log = 0};

    weir__log_pool_free(w->pool);
    assert_int_equal(weir__log_pool_new(&w->pool, 1, NULL), 0);
    make(w, 0);
    make(w, 1);
    assert_int_equal(append(w, 0, append_again, &x), 0);
    await(&x.rounds, 10);
    assert_int_equal(append(w, 1, note_ack, &w->counts[1]), 0);
    await(&w->counts[1].acked, 1);
    assert_int_equal(x.ended, 0);
    x.stop = 1;
    await(&x.ended, 1);
}

/* ---- threads that cannot be started ---- */

static void opening_without_threads_may_be_tried_again(void **state)
{
    struct world *w = *state;
    char dir[16];
    struct weir__log_options o = options_of(w, 0, dir);

    assert_int_equal(weir__log_create(&o, NULL), 0);
    for (int threads = 0; threads < 2; threads++) { /* none, and then one of the two it needs */
        calls_limit_threads(threads);
        assert_int_equal(try_open(w, 0), WEIR_EBUSY);
        assert_int_equal(weir_error_class(w->err.code), WEIR_CLASS_RETRY);
        assert_null(w->logs[0]);
    }
    calls_limit_threads(-1);
    assert_int_equal(try_open(w, 0), 0);
    assert_int_equal(append(w, 0, note_ack, &w->counts[0]), 0);
    await(&w->counts[0].acked, 1);
}

/* One flusher must do, and the others come when they can. */
static void a_pool_goes_on_with_what_it_has(void **state)
{
    struct world *w = *state;

    calls_limit_threads(2); /* a flusher and the keeper */
    for (int i = 0; i < LOGS; i++) make(w, i);
    for (int n = 0; n < BATCHES; n++)
        for (int i = 0; i < LOGS; i++) assert_int_equal(append(w, i, note_ack, &w->counts[i]), 0);
    for (int i = 0; i < LOGS; i++) await(&w->counts[i].acked, BATCHES);
}

/* ---- the keeper ---- */

static bool rests(struct weir__log *log)
{
    bool resting;

    weir__mutex_lock(&log->lock);
    resting = log->resting;
    weir__mutex_unlock(&log->lock);
    return resting;
}

static void await_rest(struct weir__log *log)
{
    int64_t deadline_ns = WAIT;

    while (!rests(log) && weir__mono_ns() < deadline_ns) sched_yield();
    assert_true(rests(log));
}

/* When the keeper will look at it: asked while it cannot come. */
static int64_t due_of(struct world *w, struct weir__log *log)
{
    int64_t due_ns;

    weir__pool_leave(w->pool, &log->upkeep);
    due_ns = log->upkeep.due_ns;
    assert_int_equal(weir__pool_join(w->pool, &log->upkeep, due_ns, NULL), 0);
    return due_ns;
}

/* An idle log is looked at rarely, and soon after it was written to; its end is marked then. */
static void an_idle_log_is_left_alone(void **state)
{
    struct world *w = *state;
    struct weir__log *log;
    uint64_t marked;

    make(w, 0);
    log = w->logs[0];
    await_rest(log);
    weir__mutex_lock(&log->lock);
    marked = log->marked;
    weir__mutex_unlock(&log->lock);
    assert_true(due_of(w, log) > weir__deadline_ns(WEIR__LOG_REST_MS / 2));
    assert_int_equal(append(w, 0, note_ack, &w->counts[0]), 0);
    await(&w->counts[0].acked, 1);
    assert_false(rests(log));
    await_rest(log); /* now only its memory is left to be given back */
    assert_true(due_of(w, log) < weir__deadline_ns(WEIR__LOG_IDLE_MS));
    weir__mutex_lock(&log->lock);
    assert_true(log->marked > marked);
    assert_int_equal(log->marked, log->visible);
    weir__mutex_unlock(&log->lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logs_share_a_few_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closing_one_leaves_the_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_busy_log_leaves_turns_to_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opening_without_threads_may_be_tried_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_pool_goes_on_with_what_it_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_log_is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_thread_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lingering_thread_counts_once, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
