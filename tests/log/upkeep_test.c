/* upkeep_test.c - when a log does by itself what time brings, to the millisecond, and how much. */
#include "log/stepped.h"

static int set_up(void **state)
{
    *state =
        world_new((struct weir__log_options){.partitions = 2, .segment_bytes_max = 16384 * KIB});
    return 0;
}

static int64_t wait_of(struct world *w)
{
    int64_t wait_ms;

    weir__mutex_lock(&w->log->lock);
    wait_ms = weir__upkeep_wait_ms(w->log);
    weir__mutex_unlock(&w->log->lock);
    return wait_ms;
}

/* So many milliseconds later upkeep looks. */
static void step(struct world *w, int64_t ms)
{
    struct weir_error err = {0};

    simclock_pass(&w->clock, ms);
    if (weir__log_step(w->log, &err) != 0) fail_msg("%s", err.text);
}

/* ---- when ---- */

/* The end of what was written is marked after a second, and memory goes after five. */
static void an_idle_log_comes_to_rest(void **state)
{
    struct world *w = *state;
    uint64_t writes;

    start(w);
    step(w, 0);
    assert_true(wait_of(w) == INT64_MAX);
    put(w, 8 * KIB);
    writes = simfs_calls(w->disk, SIMFS_WRITE);
    assert_int_equal(wait_of(w), 1000);
    step(w, 999);
    assert_int_equal(simfs_calls(w->disk, SIMFS_WRITE), writes);
    assert_int_equal(wait_of(w), 1);
    step(w, 1);
    assert_int_equal(simfs_calls(w->disk, SIMFS_WRITE), writes + 2); /* both copies */
    assert_int_equal(w->log->control.watermark, w->log->visible);
    assert_int_equal(wait_of(w), 4000);
    step(w, 3999);
    assert_int_equal(w->log->tail.count, 1);
    assert_int_equal(wait_of(w), 1);
    step(w, 1);
    assert_int_equal(w->log->tail.count, 0);
    assert_true(wait_of(w) == INT64_MAX);
    assert_int_equal(simfs_calls(w->disk, SIMFS_WRITE), writes + 2);
}

/* What is overdue is due now, not in the past. */
static void what_is_late_is_due(void **state)
{
    struct world *w = *state;

    start(w);
    put(w, 8 * KIB);
    simclock_pass(&w->clock, 1500);
    assert_int_equal(wait_of(w), 0);
    simclock_pass(&w->clock, 90000);
    assert_int_equal(wait_of(w), 0);
}

static void a_lazy_sync_is_due_in_time(void **state)
{
    struct world *w = *state;

    w->o.sync_ms = 300;
    start(w);
    step(w, 0);
    simclock_pass(&w->clock, 100);
    put(w, 8 * KIB);
    assert_int_equal(wait_of(w), 200);
    step(w, 200);
    assert_int_equal(w->log->synced, w->log->visible);
    assert_int_equal(wait_of(w), 800); /* the mark */
    put(w, 8 * KIB);
    assert_int_equal(wait_of(w), 300);
}

/* A roll that failed is tried again after a second. A log that has stopped only gives memory back. */
static void failures_are_tried_again(void **state)
{
    struct world *w = *state;

    start(w);
    put(w, 8 * KIB);
    step(w, 5000);
    assert_true(wait_of(w) == INT64_MAX);
    w->log->roll_rc = WEIR_ENOSPACE;
    assert_int_equal(wait_of(w), 1000);
    w->log->roll_rc = 0;
    put(w, 8 * KIB);
    simclock_pass(&w->clock, 100);
    assert_int_equal(wait_of(w), 900);
    w->log->failed = WEIR_EIO;
    assert_int_equal(wait_of(w), 4900);
    step(w, 4900);
    assert_true(wait_of(w) == INT64_MAX);
    assert_int_equal(w->log->tail.count, 0);
    w->log->failed = 0;
}

/* A segment's time begins with its first event, however long ago upkeep has looked. */
static void a_segment_is_as_old_as_its_first_event(void **state)
{
    const int64_t day_ms = 24 * 3600 * 1000;
    struct world *w = *state;
    struct weir__log_stats stats;

    w->o.retain_ms = 8 * day_ms; /* an eighth of that is one segment's time */
    start(w);
    simclock_pass(&w->clock, day_ms / 2);
    put(w, 8 * KIB);
    step(w, day_ms - 1);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.segments, 1);
    step(w, 1);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.segments, 2);
}

/* Time that has passed since upkeep has looked is not lost with the machine. */
static void a_closed_log_keeps_its_time(void **state)
{
    const int64_t hour_ms = 3600 * 1000;
    struct world *w = *state;
    int64_t before_ms;

    w->clock.boot = 1;
    start(w);
    before_ms = weir__log_keep_ms(w->log);
    put(w, 8 * KIB);
    simclock_pass(&w->clock, hour_ms);
    assert_int_equal(weir__log_close(w->log, NULL), 0);
    w->clock.boot = 2;
    w->clock.mono_ms = 1000;
    assert_int_equal(weir__log_open(&w->log, &w->o, NULL), 0);
    assert_int_equal(weir__log_keep_ms(w->log) - before_ms, hour_ms);
}

/* ---- the next segment ---- */

/* It is made once the active one is half full, and goes when nothing was appended for a minute. */
static void a_spare_is_there_when_it_is_needed(void **state)
{
    struct world *w = *state;
    struct weir__log_stats stats;

    start(w);
    step(w, 2000);
    put(w, 24 * KIB - 88); /* behind 8 KiB of header */
    step(w, 5000);
    assert_null(w->log->spare);
    assert_true(wait_of(w) == INT64_MAX);
    put(w, 88);
    assert_int_equal(wait_of(w), 0);
    step(w, 0);
    assert_non_null(w->log->spare);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.log_bytes, (64 + 128) * KIB);
    assert_int_equal(stats.disk_bytes, (64 + 128) * KIB);
    step(w, 5000);
    assert_int_equal(wait_of(w), 55000);
    step(w, 54999);
    assert_non_null(w->log->spare);
    assert_int_equal(wait_of(w), 1);
    step(w, 1);
    assert_null(w->log->spare);
    assert_true(wait_of(w) == INT64_MAX);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.log_bytes, 64 * KIB);
    assert_int_equal(stats.disk_bytes, 64 * KIB);
}

/* In a flood of large segments it is made at once. */
static void a_flood_has_its_spare_at_once(void **state)
{
    const struct {
        uint32_t bytes;
        bool fast, made;
    } cases[] = {{2048 * KIB, true, false}, {4096 * KIB, true, true}, {4096 * KIB, false, false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = *state;

        w->o.segment_bytes_min = cases[i].bytes;
        start(w);
        w->log->filling_fast = cases[i].fast;
        put(w, 8 * KIB);
        step(w, 0);
        assert_int_equal(w->log->spare != NULL, cases[i].made);
        tear_down(state);
        set_up(state);
    }
}

/* One that nobody could make is tried again a second later, and is no error: a roll tells. */
static void a_refused_spare_is_tried_again(void **state)
{
    struct world *w = *state;

    start(w);
    put(w, 25 * KIB);
    step(w, 2000);
    assert_non_null(w->log->spare);
    weir__log_remove_segment(w->log, w->log->spare);
    w->log->spare = NULL;
    simfs_capacity(w->disk, simfs_used(w->disk));
    assert_int_equal(wait_of(w), 0);
    step(w, 0);
    assert_null(w->log->spare);
    assert_int_equal(wait_of(w), 1000);
    simfs_capacity(w->disk, 0);
    step(w, 0);
    assert_non_null(w->log->spare);
}

/* ---- space that goes back ---- */

/* All but 256 KiB behind the end, when that is more than 256 KiB; 24 KiB at the end stay for the
 * index and the second header. */
static void a_resting_log_gives_space_back(void **state)
{
    const struct {
        uint32_t batch;
        uint64_t at, len; /* len 0: nothing goes back */
    } cases[] = {{4 * KIB, 268 * KIB, 732 * KIB},
                 {4 * KIB + 8, 272 * KIB, 728 * KIB},
                 {476 * KIB, 740 * KIB, 260 * KIB},
                 {476 * KIB + 8, 0, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = *state;
        const struct weir__segment *seg;

        w->o.segment_bytes_min = w->o.segment_bytes_max = 1024 * KIB;
        start(w);
        seg = weir__log_active(w->log);
        put(w, cases[i].batch);
        step(w, 59999);
        assert_int_equal(seg->hole_len, 0);
        assert_true(wait_of(w) == (cases[i].len ? 1 : INT64_MAX));
        step(w, 1);
        assert_int_equal(seg->hole_len, cases[i].len);
        if (cases[i].len) assert_int_equal(seg->hole_at, cases[i].at);
        assert_int_equal(seg->disk_bytes, 1024 * KIB - cases[i].len);
        assert_true(wait_of(w) == INT64_MAX);
        tear_down(state);
        set_up(state);
    }
}

/* One that nobody has appended to since it was opened rests at once. */
static void an_unused_log_rests_at_once(void **state)
{
    struct world *w = *state;

    w->o.segment_bytes_min = 1024 * KIB;
    start(w);
    assert_int_equal(wait_of(w), 0);
    step(w, 0);
    assert_int_equal(weir__log_active(w->log)->hole_len, 736 * KIB);
    assert_true(wait_of(w) == INT64_MAX);
}

/* ---- errors ---- */

static uint64_t segments_of(struct world *w)
{
    struct weir__log_stats stats;

    weir__log_stats(w->log, &stats);
    return stats.segments;
}

/* The mark fails, or, before it is time for one, the first expiry does: that is told. Without a mark
 * segments expire all the same, which makes room. */
static void expiry_follows_a_failed_mark(void **state)
{
    const struct {
        int64_t ms;
        uint64_t left;
    } cases[] = {{1000, 4}, {999, 6}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct simfs_fault fault = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};
        struct weir_error err = {0};
        struct world *w = *state;

        w->o.segment_bytes_max = 64 * KIB;
        w->o.retain_bytes = 64 * KIB;
        start(w);
        for (int k = 0; k < 6; k++) put(w, 30 * KIB);
        assert_int_equal(segments_of(w), 6);
        simclock_pass(&w->clock, cases[i].ms);
        simfs_fail(w->disk, &fault);
        assert_int_equal(weir__log_step(w->log, &err), WEIR_ENOSPACE);
        assert_string_equal(err.text, "writing control file: log/control: simulated fault");
        assert_int_equal(segments_of(w), cases[i].left);
        simfs_fail(w->disk, NULL);
        assert_int_equal(weir__log_step(w->log, &err), 0);
        assert_int_equal(segments_of(w), 4); /* 60 KiB between the oldest and the active one */
        tear_down(state);
        set_up(state);
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_idle_log_comes_to_rest),
        CASE(what_is_late_is_due),
        CASE(a_lazy_sync_is_due_in_time),
        CASE(failures_are_tried_again),
        CASE(a_segment_is_as_old_as_its_first_event),
        CASE(a_closed_log_keeps_its_time),
        CASE(a_spare_is_there_when_it_is_needed),
        CASE(a_flood_has_its_spare_at_once),
        CASE(a_refused_spare_is_tried_again),
        CASE(a_resting_log_gives_space_back),
        CASE(an_unused_log_rests_at_once),
        CASE(expiry_follows_a_failed_mark),
    };

    return cmocka_run_group_tests_name("upkeep", tests, NULL, NULL);
}
