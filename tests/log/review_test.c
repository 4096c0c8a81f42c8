/* review_test.c - mistakes that a close reading of the log found, each with the shortest run that
 * showed it. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/workload.h"

#define WAIT weir__deadline_ns(20000)
#define DAY_MS (INT64_C(24) * 3600 * 1000)

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 7);
    *state = w;
    return 0;
}

/* Whatever a test did, everything it had acknowledged is there after a reopen. */
static int tear_down(void **state)
{
    struct workload *w = *state;
    int rc = 0;

    simfs_hook(w->disk, NULL, NULL);
    simfs_fail(w->disk, NULL);
    workload_close(w);
    if (w->created) {
        rc = workload_open(w, NULL);
        if (rc == 0) history_check(w->history, w->log, true);
        rc |= workload_close(w);
    }
    if (w->history->violations > 0) print_error("%s\n", w->history->first);
    if (w->history->violations > 0 || simfs_open_files(w->disk) > 0) rc = -1;
    workload_fini(w);
    test_free(w);
    return rc;
}

static void open_log(struct workload *w)
{
    struct weir_error err = {0};

    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
}

static void reopen(struct workload *w)
{
    workload_close(w);
    open_log(w);
}

static void put(struct workload *w, uint32_t partition, uint32_t bytes)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = 2};

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
}

static int offer(struct workload *w, uint32_t partition, uint32_t bytes)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = 2};

    return history_append(w->history, w->log, &o);
}

static struct weir__log_stats stats_of(struct workload *w)
{
    struct weir__log_stats stats;

    weir__log_stats(w->log, &stats);
    return stats;
}

/* Appends until the active segment has no room for one more. */
static void fill_segment(struct workload *w)
{
    while (weir__log_fits(w->log, 0, weir__batch_bytes(50000))) put(w, 0, 50000);
}

static void fill_segments(struct workload *w, uint64_t count)
{
    while (stats_of(w).segments < count) put(w, 0, 50000);
}

/* Both copies of its header go bad. */
static void lose_segment(struct workload *w, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", name);
    simfs_flip(w->disk, path, 100);
    simfs_flip(w->disk, path, 8 * ((UINT64_C(1) << 20) - 100));
    w->history->may_damage = true;
}

static void refuse(struct workload *w, unsigned kinds, uint64_t at, int rc, bool persistent)
{
    struct simfs_fault fault = {.kinds = kinds, .at = at, .rc = rc, .persistent = persistent};

    simfs_fail(w->disk, &fault);
}

/* ---- threads ---- */

/* Holds one outside call until somebody waits. */
struct gate {
    struct weir__log *log;
    enum simfs_call at;
    const int *waiters; /* of the log; read under its lock */
    int reached;        /* atomic */
};

static void hold_call(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct gate *g = user;
    int64_t deadline_ns = weir__deadline_ns(3000);
    bool go_on = false;

    (void)disk;
    if (!entering || call != g->at || __atomic_exchange_n(&g->reached, 1, __ATOMIC_SEQ_CST)) return;
    while (!go_on && weir__mono_ns() < deadline_ns) {
        weir__mutex_lock(&g->log->lock);
        go_on = *g->waiters > 0;
        weir__mutex_unlock(&g->log->lock);
    }
}

static void await(const int *flag)
{
    int64_t deadline_ns = weir__deadline_ns(3000);

    while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST) && weir__mono_ns() < deadline_ns) sched_yield();
}

/* Closing while the flusher writes: the closer must be woken when that is done. */
static void close_waits_for_a_group(void **state)
{
    struct workload *w = *state;
    struct gate gate = {.at = SIMFS_SYNC};

    w->options.no_threads = false;
    open_log(w);
    gate.log = w->log;
    gate.waiters = &w->log->room_waiters;
    simfs_hook(w->disk, hold_call, &gate);
    assert_int_equal(offer(w, 0, 100), 0);
    await(&gate.reached);
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(w->history->acked, 1);
}

static void *run_step(void *arg)
{
    struct workload *w = arg;

    weir__log_step(w->log, NULL);
    return NULL;
}

/* Upkeep that waited for a roll by somebody else must not take the flusher's wake-up with it. */
static void upkeep_leaves_no_work_behind(void **state)
{
    struct workload *w = *state;
    struct weir__thread upkeep = {0};
    struct gate gate = {.at = SIMFS_ALLOCATE};
    int64_t deadline_ns;
    int rc;

    w->options.no_threads = false;
    open_log(w);
    fill_segment(w);
    gate.log = w->log;
    gate.waiters = &w->log->lead_waiters;
    simfs_hook(w->disk, hold_call, &gate);
    weir__mutex_lock(&w->log->lock); /* as a day later */
    w->log->active_since_ms -= 2 * DAY_MS;
    weir__mutex_unlock(&w->log->lock);
    assert_int_equal(offer(w, 0, 50000), WEIR_EBUSY); /* the flusher rolls */
    await(&gate.reached);
    assert_int_equal(weir__thread_start(&upkeep, "upkeep", run_step, w, NULL), 0);
    while ((rc = offer(w, 0, 50000)) == WEIR_EBUSY) sched_yield();
    assert_int_equal(rc, 0);
    weir__thread_join(&upkeep);
    deadline_ns = weir__deadline_ns(1000);
    while (stats_of(w).unflushed_bytes > 0 && weir__mono_ns() < deadline_ns) sched_yield();
    assert_int_equal(stats_of(w).unflushed_bytes, 0);
    assert_int_equal(workload_close(w), 0); /* its threads use the gate */
}

static void count_wake(void *user)
{
    ++*(int *)user;
}

static void closing_wakes_watchers(void **state)
{
    struct workload *w = *state;
    int wakes = 0;
    struct weir__log_watch watch = {.fn = count_wake, .user = &wakes, .partition = 1};

    open_log(w);
    weir__log_watch(w->log, &watch);
    assert_int_equal(workload_close(w), 0);
    assert_true(wakes > 0);
}

/* ---- a group taken back ---- */

/* A batch that was refused may have made an empty block behind what is taken back. */
static void taking_back_over_an_empty_block(void **state)
{
    struct workload *w = *state;
    static const uint8_t body[400000];
    struct history_order known = {.partition = 1, .bytes = 16, .count = 1, .producer_id = 9};
    struct weir__log_batch bad = {.partition = 1,
                                  .count = 1,
                                  .producer = {9, 0, 77},
                                  .body = {weir__bytes_of(body, sizeof body)}};

    w->options.batch_bytes_max = 1u << 20;
    w->options.segment_bytes_min = w->options.segment_bytes_max = 8u << 20;
    open_log(w);
    put(w, 0, 500000);
    put(w, 0, 100);
    assert_int_equal(history_append_wait(w->history, w->log, &known), 0);
    assert_int_equal(offer(w, 0, 300000), 0);
    assert_int_equal(weir__log_append(w->log, &bad, 0, NULL, NULL, NULL), WEIR_ESEQUENCE);
    refuse(w, SIMFS_WRITE, 1, WEIR_ENOSPACE, false);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), WEIR_ENOSPACE);
    put(w, 0, 100);
    put(w, 0, 500000);
}

static void append_once_more(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct workload *w = user;

    if (!entering || call != SIMFS_WRITE || !simfs_failed(disk)) return;
    simfs_hook(disk, NULL, NULL);
    offer(w, 1, 100);
}

/* A batch that comes while the new epoch is being written belongs to neither. */
static void append_while_a_group_is_taken_back(void **state)
{
    struct workload *w = *state;

    open_log(w);
    put(w, 0, 100);
    assert_int_equal(offer(w, 0, 100), 0);
    simfs_hook(w->disk, append_once_more, w);
    refuse(w, SIMFS_WRITE, 1, WEIR_ENOSPACE, false);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), WEIR_ENOSPACE);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    put(w, 0, 100);
    put(w, 1, 100);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
}

/* The group may be on disk, and that it does not count could not be written. */
static void group_that_cannot_be_taken_back_is_unknown(void **state)
{
    struct workload *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_WRITE,
                                .at = 1,
                                .rc = WEIR_ENOSPACE,
                                .persistent = true,
                                .short_write = true};

    for (fault.seed = 1; fault.seed < 9; fault.seed++) {
        open_log(w);
        for (int i = 0; i < 8; i++) assert_int_equal(offer(w, 0, 1000), 0);
        simfs_fail(w->disk, &fault);
        assert_int_equal(weir__log_flush(w->log, WAIT, NULL), WEIR_EFAILED);
        simfs_fail(w->disk, NULL);
        reopen(w);
        history_check(w->history, w->log, true);
        workload_close(w);
    }
}

/* ---- segments ---- */

/* A stopped log does nothing more, also when a roll was due. */
static void stopped_log_does_not_roll(void **state)
{
    struct workload *w = *state;

    open_log(w);
    while (offer(w, 0, 50000) == 0) continue;
    refuse(w, SIMFS_SYNC, 1, WEIR_EIO, false);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), WEIR_EFAILED);
    assert_int_equal(weir__log_ready(w->log, NULL), WEIR_EFAILED);
    assert_int_equal(stats_of(w).segments, 1);
}

/* A roll that failed has left an index; the next one's may be lost with the power. */
static void index_of_an_earlier_roll_is_not_believed(void **state)
{
    struct workload *w = *state;

    w->options.retain_ms = 8 * DAY_MS;
    open_log(w);
    put(w, 0, 100);
    simclock_pass(&w->clock, 2 * DAY_MS);
    refuse(w, SIMFS_ALLOCATE, 1, WEIR_ENOSPACE, true);
    assert_int_equal(weir__log_step(w->log, NULL), WEIR_ENOSPACE);
    simfs_fail(w->disk, NULL);
    reopen(w);
    put(w, 0, 100);
    simclock_pass(&w->clock, 2 * DAY_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(stats_of(w).segments, 2);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
}

/* Leaves a segment behind that has the next number and is not of the log. */
static void lose_power_in_a_roll(struct workload *w)
{
    fill_segment(w);
    refuse(w, SIMFS_WRITE, 4, WEIR_EIO, false); /* index, header, header, control */
    assert_int_equal(offer(w, 0, 50000), WEIR_EBUSY);
    weir__log_flush(w->log, WAIT, NULL);
    assert_true(simfs_failed(w->disk));
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_non_null(w->log);
}

/* Its name must be gone for good before another file gets its number. */
static void stray_does_not_come_back(void **state)
{
    struct workload *w = *state;
    void *zeros = test_calloc(1, 1u << 20);
    char path[64];

    open_log(w);
    for (int round = 0; round < 6;
         round++) { /* which one becomes the spare is the folder's choice */
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, WORKLOAD_DIR "/%08d.seg", 100 * round + 50 + i);
            simfs_put(w->disk, path, zeros, 1u << 20);
        }
        lose_power_in_a_roll(w);
        fill_segments(w, stats_of(w).segments + 1);
        workload_crash(w, SIMFS_KEEP_NONE, 0);
        assert_non_null(w->log);
    }
    test_free(zeros);
}

static void stray_goes_though_a_segment_is_lost(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 3);
    workload_close(w);
    lose_segment(w, "00000002.seg");
    open_log(w);
    lose_power_in_a_roll(w);
    fill_segments(w, 4);
    reopen(w);
}

/* The same when the file was given up in the same life of the log. */
static void refused_segment_does_not_come_back(void **state)
{
    struct workload *w = *state;

    w->options.retain_bytes = 2u << 20;
    open_log(w);
    fill_segments(w, 3);
    fill_segment(w);
    assert_int_equal(offer(w, 0, 50000), WEIR_EBUSY);
    refuse(w, SIMFS_SYNC, 2, WEIR_EIO, false); /* the new file, its header */
    weir__log_flush(w->log, WAIT, NULL);
    assert_true(simfs_failed(w->disk));
    simfs_fail(w->disk, NULL);
    assert_int_equal(weir__log_step(w->log, NULL), 0); /* the oldest becomes the spare */
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
}

static void spare_that_is_too_small_makes_place(void **state)
{
    struct workload *w = *state;

    w->options.batch_bytes_max = 4u << 20;
    w->options.segment_bytes_max = 16u << 20;
    open_log(w);
    for (int i = 0; i < 6; i++) put(w, 0, 100000);
    simclock_pass(&w->clock, 2000);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(stats_of(w).log_bytes, (1u + 2u) << 20);
    put(w, 0, 3000000);
    assert_int_equal(stats_of(w).log_bytes, (1u + 2u + 4u) << 20);
    simclock_pass(&w->clock, 2000);
    for (int i = 0; i < 2; i++) assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(stats_of(w).log_bytes, (1u + 4u + 8u) << 20);
}

static void spare_outlives_a_failed_roll(void **state)
{
    struct workload *w = *state;

    w->options.sync_ms = 1000;
    open_log(w);
    fill_segment(w);
    assert_int_equal(weir__log_step(w->log, NULL), 0); /* prepares it */
    refuse(w, SIMFS_SYNC, 1, WEIR_EIO, false);
    assert_int_equal(offer(w, 0, 50000), WEIR_EBUSY);
    weir__log_flush(w->log, WAIT, NULL);
    assert_int_equal(weir__log_state(w->log, NULL), WEIR_EFAILED);
    w->history->may_lose = w->history->count;
    workload_close(w);
    assert_int_equal(simfs_open_files(w->disk), 0);
}

/* ---- a full disk ---- */

/* No room to roll by age: what is there is used, and retention goes on. */
static void full_disk_does_not_stop_upkeep(void **state)
{
    struct workload *w = *state;
    struct weir__log_partition_info info;

    w->options.retain_ms = 8 * DAY_MS;
    open_log(w);
    fill_segments(w, 2);
    simclock_pass(&w->clock, 20 * DAY_MS);
    refuse(w, SIMFS_ALLOCATE, 1, WEIR_ENOSPACE, true);
    assert_int_equal(weir__log_step(w->log, NULL), WEIR_ENOSPACE);
    put(w, 1, 100);
    assert_int_equal(weir__log_partition_info(w->log, 0, &info, NULL), 0);
    assert_true(info.begin_sequence > 0);
}

struct said {
    unsigned warnings, infos;
    char last[256];
};

static void hear_upkeep(enum weir__level level, const char *room, const char *line, void *user)
{
    struct said *said = user;

    (void)room;
    if (strncmp(line, "upkeep ", 7) != 0) return;
    said->warnings += level == WEIR__WARN;
    said->infos += level == WEIR__INFO;
    snprintf(said->last, sizeof said->last, "%s", line);
}

/* The keeper comes so many times, a second apart. */
static void keep_for(struct workload *w, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        simclock_pass(&w->clock, 1000);
        w->log->upkeep.keep(w->log->upkeep.owner);
    }
}

/* A disk stays full for hours: its error is told once, then once a minute, and so is its end. */
static void full_disk_is_told_once_a_minute(void **state)
{
    struct workload *w = *state;
    struct said said = {0};

    w->options.logger = (struct weir__logger){hear_upkeep, &said};
    w->options.retain_ms = 8 * DAY_MS;
    open_log(w);
    put(w, 0, 100);
    simclock_pass(&w->clock, 2 * DAY_MS);
    refuse(w, SIMFS_ALLOCATE, 1, WEIR_ENOSPACE, true);
    keep_for(w, 60);
    assert_int_equal(said.warnings, 1);
    keep_for(w, 1);
    assert_int_equal(said.warnings, 2);
    simfs_fail(w->disk, NULL);
    simfs_capacity(w->disk, simfs_used(w->disk)); /* the same code with another text */
    keep_for(w, 10);
    assert_int_equal(said.warnings, 3);
    assert_non_null(strstr(said.last, "the simulated disk is full"));
    assert_int_equal(said.infos, 0);
    simfs_capacity(w->disk, 0);
    keep_for(w, 10);
    assert_int_equal(said.infos, 1);
    assert_string_equal(said.last, "upkeep dir=" WORKLOAD_DIR ": it works again");
    refuse(w, SIMFS_ALLOCATE, 1, WEIR_ENOSPACE, true);
    put(w, 0, 100);
    simclock_pass(&w->clock, 2 * DAY_MS);
    keep_for(w, 2);
    assert_int_equal(said.warnings, 4);
    w->options.logger = (struct weir__logger){0};
    assert_int_equal(workload_close(w), 0);
}

/* ---- reading ---- */

static void read_one(struct weir__log_reader *r, int want)
{
    struct weir__log_view v;
    uint32_t count = 0;
    uint64_t missed;

    assert_int_equal(weir__log_reader_next(r, &v, 1, &count, &missed, NULL), want);
    assert_int_equal(count, want == 0);
}

/* The segment a cursor stands in expires, and the one behind it has no header: where partitions
 * begin is worked out, and nothing passes for damaged that is there. */
static void cursor_in_a_segment_that_went(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;

    open_log(w);
    fill_segments(w, 4);
    workload_close(w);
    lose_segment(w, "00000002.seg");
    w->options.retain_bytes = 1u << 20;
    open_log(w);
    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 0, 0, NULL), 0);
    read_one(r, 0);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    read_one(r, 0);
    weir__log_reader_close(r);
    history_check(w->history, w->log, false);
    assert_int_equal(w->history->damaged, 0);
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
}

static void expire_at_open(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct workload *w = user;

    if (!entering || call != SIMFS_OPEN) return;
    simfs_hook(disk, NULL, NULL);
    weir__log_step(w->log, NULL);
}

/* A segment that expires while a reader opens its file is passed over, not an error. */
static void segment_expires_under_a_reader(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;

    w->options.retain_bytes = 128u << 10;
    w->options.tail_bytes = 1u << 20;
    open_log(w);
    put(w, 0, 1000);
    put(w, 0, 1000);
    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 0, 0, NULL), 0);
    read_one(r, 0);
    fill_segments(w, 4);
    simfs_hook(w->disk, expire_at_open, w);
    read_one(r, 0);
    assert_true(weir__log_reader_sequence(r) > 4);
    weir__log_reader_close(r);
}

/* Where partitions begin could not be read: then nothing expires yet. */
static void retention_waits_for_the_disk(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;

    w->options.retain_bytes = 2u << 20;
    open_log(w);
    fill_segments(w, 3);
    put(w, 0, 50000);
    refuse(w, SIMFS_READ, 1, WEIR_ENOMEM, false);
    weir__log_step(w->log, NULL);
    simfs_fail(w->disk, NULL);
    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 0, 0, NULL), 0);
    read_one(r, 0);
    weir__log_reader_close(r);
}

/* Looking for a time must not pass over the segment before a lost one, nor may that one go early. */
static void lost_segment_hides_no_times(void **state)
{
    struct workload *w = *state;
    int64_t middle_ms;
    uint64_t sequence = 0;

    open_log(w);
    for (int i = 0; i < 10; i++) {
        put(w, 0, 50000);
        simclock_pass(&w->clock, DAY_MS);
    }
    middle_ms = w->history->batches[5].receipt.time_ms;
    fill_segments(w, 3);
    workload_close(w);
    lose_segment(w, "00000002.seg");
    w->options.retain_ms = 5 * DAY_MS;
    open_log(w);
    assert_int_equal(weir__log_find(w->log, 0, WEIR__LOG_BY_TIME, middle_ms, true, &sequence, NULL),
                     0);
    assert_int_equal(sequence, w->history->batches[5].receipt.sequence);
    simclock_pass(&w->clock, 2000);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(weir__log_find(w->log, 0, WEIR__LOG_BY_TIME, 1, true, &sequence, NULL), 0);
    assert_int_equal(sequence, 0);
}

/* One sector of one of two copies cannot be read. */
static void one_copy_is_enough(void **state)
{
    struct workload *w = *state;

    open_log(w);
    put(w, 0, 100);
    for (uint64_t at = 1; at <= 3; at++) { /* control, header, heads */
        workload_close(w);
        refuse(w, SIMFS_READ, at, WEIR_EIO, false);
        open_log(w);
        assert_true(simfs_failed(w->disk));
    }
}

/* Either copy of the control file knows the epoch and the last segment. */
static void old_copy_of_the_control_serves(void **state)
{
    struct workload *w = *state;

    open_log(w);
    put(w, 0, 100);
    fill_segments(w, 2);
    for (uint64_t copy = 0; copy < 2; copy++) {
        put(w, 0, 100);
        simfs_flip(w->disk, WORKLOAD_DIR "/control", 8 * ((64u << 10) * copy + 100));
        workload_crash(w, SIMFS_KEEP_NONE, 0);
        assert_non_null(w->log);
    }
}

/* What contradicts the segments, or cannot be counted on from, is not believed though its checksum
 * is good: the older copy serves, or the segments do. */
static void forged_control_is_not_believed(void **state)
{
    struct workload *w = *state;
    struct weir__control good = {.hub_id = w->options.hub_id}, bad;
    struct weir__file *f = NULL;
    struct weir__fs *fs = simfs_fs(w->disk);
    int copies;

    open_log(w);
    put(w, 0, 100);
    for (int i = 0; i < 8; i++) {
        workload_close(w);
        assert_int_equal(fs->ops->open(fs, WORKLOAD_DIR "/control", 0, &f, NULL), 0);
        assert_int_equal(weir__control_read(f, &good, &copies, NULL), 0);
        bad = good;
        if (i % 4 == 0) bad.watermark += 1u << 20;
        if (i % 4 == 1) bad.keep.keep_ms = INT64_MIN;
        if (i % 4 == 2) bad.epoch = UINT32_MAX;
        if (i % 4 == 3) bad.last_segment = bad.first_segment - 1;
        for (int k = 0; k < 1 + i / 4; k++)
            assert_int_equal(weir__control_write(f, &bad, true, NULL), 0);
        weir__control_fini(&good);
        weir__file_close(f);
        open_log(w);
        put(w, 0, 100);
        history_check(w->history, w->log, true);
    }
}

/* ---- time ---- */

/* One jump of the clock deletes nothing, also when the log is opened anew. */
static void clock_jump_and_reopen(void **state)
{
    struct workload *w = *state;
    struct weir__log_partition_info info;

    w->options.retain_ms = 7 * DAY_MS;
    open_log(w);
    fill_segments(w, 2);
    w->clock.wall_ms += 30 * DAY_MS;
    put(w, 0, 100);
    workload_close(w);
    w->clock.wall_ms -= 30 * DAY_MS;
    open_log(w);
    simclock_pass(&w->clock, 2000);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(weir__log_partition_info(w->log, 0, &info, NULL), 0);
    assert_int_equal(info.begin_sequence, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(close_waits_for_a_group),
        CASE(upkeep_leaves_no_work_behind),
        CASE(closing_wakes_watchers),
        CASE(taking_back_over_an_empty_block),
        CASE(append_while_a_group_is_taken_back),
        CASE(group_that_cannot_be_taken_back_is_unknown),
        CASE(stopped_log_does_not_roll),
        CASE(index_of_an_earlier_roll_is_not_believed),
        CASE(stray_does_not_come_back),
        CASE(stray_goes_though_a_segment_is_lost),
        CASE(refused_segment_does_not_come_back),
        CASE(spare_that_is_too_small_makes_place),
        CASE(spare_outlives_a_failed_roll),
        CASE(full_disk_does_not_stop_upkeep),
        CASE(full_disk_is_told_once_a_minute),
        CASE(cursor_in_a_segment_that_went),
        CASE(segment_expires_under_a_reader),
        CASE(retention_waits_for_the_disk),
        CASE(lost_segment_hides_no_times),
        CASE(one_copy_is_enough),
        CASE(old_copy_of_the_control_serves),
        CASE(forged_control_is_not_believed),
        CASE(clock_jump_and_reopen),
    };

    return cmocka_run_group_tests_name("log_review", tests, NULL, NULL);
}
