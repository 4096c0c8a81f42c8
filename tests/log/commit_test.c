/* commit_test.c - what a log says that has stopped, when a lazy one is synced, how many
 * completions run at once, and who commits after somebody has waited for the lead. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/simfs.h"

#define WAIT weir__deadline_ns(30000)
#define CAUSE "segment 00000001.seg: log/00000001.seg: simulated fault"

struct world {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log;
    char stopped[256]; /* the last line that says so, */
    int stops;         /* and how many there were */
    int held;          /* atomic: a sync has waited for somebody */
    int done;          /* atomic: completions that ran */
};

static void hear(enum weir__level level, const char *room, const char *line, void *user)
{
    struct world *w = user;

    (void)room;
    if (level != WEIR__ERROR) return;
    w->stops++;
    snprintf(w->stopped, sizeof w->stopped, "%s", line);
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->disk = simfs_new();
    w->clock = (struct simclock){.wall_ms = 1700000000000, .mono_ms = 1000};
    w->o = (struct weir__log_options){.fs = simfs_fs(w->disk),
                                      .clock = simclock(&w->clock),
                                      .logger = {hear, w},
                                      .dir = "log",
                                      .hub_id = 1,
                                      .partitions = 2,
                                      .segment_bytes_max = 1u << 20,
                                      .no_threads = true};
    assert_int_equal(weir__log_create(&w->o, NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    simfs_hook(w->disk, NULL, NULL);
    simfs_fail(w->disk, NULL);
    weir__log_close(w->log, NULL);
    simfs_free(w->disk);
    test_free(w);
    return 0;
}

static void open_log(struct world *w)
{
    assert_int_equal(weir__log_open(&w->log, &w->o, NULL), 0);
}

static const struct weir__log_batch some = {.count = 1, .body = {{(const uint8_t *)"some", 4}}};

static int append_wait(struct world *w, struct weir_error *err)
{
    struct weir__log_receipt receipt;

    return weir__log_append_wait(w->log, &some, WAIT, &receipt, err);
}

/* Whoever asks is told the first cause, and the logger is told once. */
static void a_stopped_log_says_why(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct world *w = *state;
    struct weir_error err = {0};

    open_log(w);
    simfs_fail(w->disk, &fault);
    assert_int_equal(append_wait(w, &err), WEIR_EUNKNOWN);
    assert_string_equal(err.text, "the outcome is unknown: " CAUSE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__log_state(w->log, &err), WEIR_EFAILED);
        assert_string_equal(err.text, "the log stopped and must be opened anew: " CAUSE);
        assert_string_equal(w->stopped, "stopped dir=log: " CAUSE);
        assert_int_equal(append_wait(w, NULL), WEIR_EFAILED);
        assert_int_equal(weir__log_flush(w->log, WAIT, NULL), WEIR_EFAILED);
        assert_int_equal(weir__log_grow(w->log, 3, NULL), WEIR_EFAILED);
        assert_int_equal(weir__log_step(w->log, NULL), 0);
    }
    assert_int_equal(w->stops, 1);
}

/* After a write for which there was no space, the first sync fails: that of the new epoch. */
static void fail_next_sync(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    const struct simfs_fault *fault = user;

    if (call != SIMFS_WRITE || entering || !simfs_failed(disk)) return;
    simfs_hook(disk, NULL, NULL);
    simfs_fail(disk, fault);
}

/* What could not be taken back stops the log, for the reason for which it could not. */
static void the_second_failure_is_the_cause(void **state)
{
    static struct simfs_fault sync = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};
    const char *why = "syncing the control file: log/control: simulated fault";
    struct world *w = *state;
    struct weir_error err = {0};
    char text[256];

    open_log(w);
    simfs_hook(w->disk, fail_next_sync, &sync);
    simfs_fail(w->disk, &full);
    assert_int_equal(append_wait(w, &err), WEIR_EUNKNOWN);
    snprintf(text, sizeof text, "the outcome is unknown: %s", why);
    assert_string_equal(err.text, text);
    assert_int_equal(w->log->failed, WEIR_EFAILED);
    assert_int_equal(w->log->failure.code, WEIR_EFAILED);
    snprintf(text, sizeof text, "stopped dir=log: %s", why);
    assert_string_equal(w->stopped, text);
    assert_int_equal(w->stops, 1);
}

static uint64_t syncs_after(struct world *w, int64_t ms)
{
    struct weir__log_stats stats;

    simclock_pass(&w->clock, ms);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    weir__log_stats(w->log, &stats);
    return stats.syncs;
}

/* So many milliseconds after the sync before, when there is something to sync. */
static void a_lazy_log_is_synced_in_time(void **state)
{
    struct world *w = *state;

    w->o.sync_ms = 100;
    open_log(w);
    assert_int_equal(append_wait(w, NULL), 0);
    assert_int_equal(syncs_after(w, 99), 0);
    assert_int_equal(syncs_after(w, 1), 1);
    assert_int_equal(append_wait(w, NULL), 0);
    assert_int_equal(syncs_after(w, 0), 1);
    assert_int_equal(syncs_after(w, 99), 1);
    assert_int_equal(syncs_after(w, 1), 2);
    assert_int_equal(syncs_after(w, 1000), 2);
}

static void note_done(void *user, int rc, const struct weir__log_receipt *r,
                      const struct weir_error *err)
{
    struct world *w = user;

    (void)rc, (void)r, (void)err;
    __atomic_fetch_add(&w->done, 1, __ATOMIC_SEQ_CST);
}

static int done_after(struct world *w, uint64_t most)
{
    weir__mutex_lock(&w->log->lock);
    weir__log_run_completions(w->log, most);
    weir__mutex_unlock(&w->log->lock);
    return w->done;
}

/* They are called by 64, until at least so many were. */
static void completions_run_for_a_while(void **state)
{
    struct world *w = *state;

    open_log(w);
    for (int i = 0; i < 200; i++)
        assert_int_equal(weir__log_append(w->log, &some, 0, note_done, w, NULL), 0);
    weir__mutex_lock(&w->log->lock);
    assert_int_equal(weir__log_lead(w->log, NULL), 0);
    weir__mutex_unlock(&w->log->lock);
    assert_int_equal(done_after(w, 0), 0);
    assert_int_equal(done_after(w, 64), 64);
    assert_int_equal(done_after(w, 65), 192);
    assert_int_equal(done_after(w, 1), 200);
}

/* ---- threads ---- */

static void hold_sync(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct world *w = user;
    int64_t deadline_ns = WAIT;
    bool waits = false;

    (void)disk;
    if (!entering || call != SIMFS_SYNC) return;
    if (__atomic_exchange_n(&w->held, 1, __ATOMIC_SEQ_CST)) return;
    while (!waits && weir__mono_ns() < deadline_ns) {
        sched_yield();
        weir__mutex_lock(&w->log->lock);
        waits = w->log->room_waiters > 0;
        weir__mutex_unlock(&w->log->lock);
    }
}

static void *run_append(void *arg)
{
    struct world *w = arg;

    return append_wait(w, NULL) == 0 ? arg : NULL;
}

static bool await(const int *flag)
{
    int64_t deadline_ns = weir__deadline_ns(10000);

    while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST) && weir__mono_ns() < deadline_ns) sched_yield();
    return __atomic_load_n(flag, __ATOMIC_SEQ_CST) != 0;
}

/* A thread that waits would lead when it wakes up, so the pool leaves the work to it. When it is gone
 * the pool commits again. */
static void the_pool_commits_after_somebody_waited(void **state)
{
    struct world *w = *state;
    struct weir__thread first = {0};

    w->o.no_threads = false;
    w->o.clock = (struct weir__clock){0};
    open_log(w);
    simfs_hook(w->disk, hold_sync, w);
    assert_int_equal(weir__thread_start(&first, "first", run_append, w, NULL), 0);
    assert_true(await(&w->held));
    assert_int_equal(append_wait(w, NULL), 0); /* waits for the first, whose sync waits for that */
    weir__thread_join(&first);
    assert_int_equal(weir__log_append(w->log, &some, WAIT, note_done, w, NULL), 0);
    assert_true(await(&w->done));
    assert_int_equal(w->log->lead_waiters, 0);
}

static void append_more(void *user, int rc, const struct weir__log_receipt *r,
                        const struct weir_error *err)
{
    struct world *w = user;

    (void)rc, (void)r, (void)err;
    if (weir__log_append(w->log, &some, 0, note_done, w, NULL) != 0) abort();
}

/* What comes while completions run is committed behind them, though nobody asks for it any more. */
static void what_completions_append_is_committed(void **state)
{
    struct world *w = *state;

    w->o.no_threads = false;
    w->o.clock = (struct weir__clock){0};
    open_log(w);
    weir__pool_leave(w->log->pool, &w->log->upkeep); /* which would come to it in the end */
    assert_int_equal(weir__log_append(w->log, &some, WAIT, append_more, w, NULL), 0);
    assert_true(await(&w->done));
}

static void *run_grow(void *arg)
{
    struct world *w = arg;

    return weir__log_grow(w->log, 3, NULL) == 0 ? arg : NULL;
}

static void await_waiter(struct weir__log *log)
{
    int64_t deadline_ns = WAIT;
    bool waits = false;

    while (!waits && weir__mono_ns() < deadline_ns) {
        sched_yield();
        weir__mutex_lock(&log->lock);
        waits = log->room_waiters > 0;
        weir__mutex_unlock(&log->lock);
    }
    assert_true(waits);
}

/* A thread that takes the lead for other work does not commit: the pool is told to. */
static void the_pool_commits_beside_somebody_who_waits(void **state)
{
    struct world *w = *state;
    struct weir__thread grows = {0};
    enum weir__job_state job;

    w->o.no_threads = false;
    w->o.clock = (struct weir__clock){0};
    open_log(w);
    weir__mutex_lock(&w->log->lock);
    weir__log_take_lead(w->log);
    weir__mutex_unlock(&w->log->lock);
    assert_int_equal(weir__thread_start(&grows, "grows", run_grow, w, NULL), 0);
    await_waiter(w->log);
    assert_int_equal(weir__log_append(w->log, &some, WAIT, note_done, w, NULL), 0);
    weir__mutex_lock(&w->log->lock);
    weir__log_give_lead(w->log);
    job = w->log->flush.state;
    weir__mutex_unlock(&w->log->lock);
    assert_int_equal(job, WEIR__JOB_QUEUED);
    assert_true(await(&w->done));
    weir__thread_join(&grows);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_stopped_log_says_why),
        CASE(the_second_failure_is_the_cause),
        CASE(a_lazy_log_is_synced_in_time),
        CASE(completions_run_for_a_while),
        CASE(the_pool_commits_after_somebody_waited),
        CASE(the_pool_commits_beside_somebody_who_waits),
        CASE(what_completions_append_is_committed),
    };

    return cmocka_run_group_tests_name("commit", tests, NULL, NULL);
}
