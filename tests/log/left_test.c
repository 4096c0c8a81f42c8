/* left_test.c - a log that cannot go on where it ended: its last segment is lost or damaged, the
 * disk is full, or its files say what cannot be. It neither stands still nor writes where it must
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/workload.h"

#define PATIENCE_S 60 /* of a test: what hangs fails */
#define SEGMENT_BYTES (1u << 20)
#define IDLE_MS 61000
#define MANY_SEGMENTS 100000u

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 11);
    *state = w;
    alarm(PATIENCE_S);
    return 0;
}

static int tear_down(void **state)
{
    struct workload *w = *state;
    int rc = w->history->violations > 0 ? -1 : 0;

    if (rc != 0) print_error("%s\n", w->history->first);
    workload_close(w);
    if (simfs_open_files(w->disk) > 0) rc = -1;
    workload_fini(w);
    test_free(w);
    alarm(0);
    return rc;
}

static void open_log(struct workload *w)
{
    struct weir_error err = {0};

    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
}

static void put(struct workload *w, uint32_t partition, uint32_t bytes)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = 2};

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
}

static uint64_t segments_of(struct workload *w)
{
    struct weir__log_stats stats;

    weir__log_stats(w->log, &stats);
    return stats.segments;
}

static void fill_segments(struct workload *w, uint64_t count)
{
    for (uint32_t i = 0; segments_of(w) < count; i++) put(w, i % 5, 50000);
}

static void lose_file(struct workload *w, const char *path)
{
    struct weir__fs *fs = simfs_fs(w->disk);

    assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
    assert_int_equal(fs->ops->sync_dir(fs, WORKLOAD_DIR, NULL), 0);
}

static void lose_header(struct workload *w, const char *path)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];

    simfs_poke(w->disk, path, zeros, sizeof zeros, 0);
    simfs_poke(w->disk, path, zeros, sizeof zeros, SEGMENT_BYTES - sizeof zeros);
}

/* Nothing is appended for long enough, and upkeep looks. */
static void rest(struct workload *w)
{
    simclock_pass(&w->clock, IDLE_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
}

/* ---- an opening that waits for room ---- */

/* With threads: they do not try again and again, an append is told why, and the log closes. */
static void opening_that_waits_lets_threads_rest(void **state)
{
    struct workload *w = *state;
    struct simfs_fault full = {.kinds = SIMFS_WRITE | SIMFS_ALLOCATE,
                               .at = 1,
                               .rc = WEIR_ENOSPACE,
                               .persistent = true};
    struct history_order o = {.partition = 1, .bytes = 300, .count = 1};

    w->options.no_threads = false;
    open_log(w);
    put(w, 1, 300);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(workload_close(w), 0);
        simfs_fail(w->disk, &full);
        open_log(w);
        assert_int_equal(w->log->opening, WEIR__LOG_EPOCH_WAITS);
        if (round == 0) continue;
        for (int i = 0; i < 3; i++)
            assert_int_equal(history_append(w->history, w->log, &o), WEIR_ENOSPACE);
        assert_false(weir__log_has_work(w->log));
    }
    simfs_fail(w->disk, NULL);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->opening, WEIR__LOG_EPOCH_BEGUN);
    put(w, 1, 300);
}

/* ---- a last segment that has to be left ---- */

static void append_on_a_full_disk(struct workload *w)
{
    struct history_order o = {.partition = 1, .bytes = 300, .count = 1};

    simfs_capacity(w->disk, simfs_used(w->disk));
    w->history->may_damage = true;
    open_log(w);
    for (int i = 0; i < 3; i++)
        assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_ENOSPACE);
    assert_int_equal(w->log->must_roll, true);
    simfs_capacity(w->disk, 0);
    put(w, 1, 300);
    assert_int_equal(w->log->must_roll, false);
    assert_int_equal(segments_of(w), 3);
}

/* A roll that failed does not make it one that can be appended to. */
static void lost_segment_on_a_full_disk(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, WORKLOAD_DIR "/00000002.seg");
    append_on_a_full_disk(w);
}

static void headless_segment_on_a_full_disk(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    lose_header(w, WORKLOAD_DIR "/00000002.seg");
    append_on_a_full_disk(w);
}

/* Nor does getting its space again, when that had gone back. */
static void headless_segment_that_rested(void **state)
{
    struct workload *w = *state;

    open_log(w);
    put(w, 1, 300);
    rest(w);
    assert_true(weir__log_active(w->log)->hole_len > 0);
    assert_int_equal(workload_close(w), 0);
    lose_header(w, WORKLOAD_DIR "/00000001.seg");
    open_log(w);
    assert_true(weir__log_active(w->log)->hole_len > 0);
    put(w, 1, 50000);
    assert_int_equal(segments_of(w), 2);
    history_check(w->history, w->log, false);
}

/* It has no file whose space could go back. */
static void lost_segment_does_not_rest(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, WORKLOAD_DIR "/00000002.seg");
    w->history->may_damage = true;
    open_log(w);
    rest(w);
    put(w, 1, 300);
    rest(w);
    history_check(w->history, w->log, false);
}

/* What the disk does not give behind its end may be what was acknowledged: it is left alone, then
 * and by every later opening. */
static void spoilt_segment_keeps_its_bytes(void **state)
{
    struct workload *w = *state;
    uint64_t end;

    open_log(w);
    put(w, 1, 300);
    end = weir__round_up(weir__log_active(w->log)->end - WEIR__LOG_ORIGIN, WEIR__FS_BLOCK);
    assert_int_equal(workload_close(w), 0);
    simfs_spoil(w->disk, WORKLOAD_DIR "/00000001.seg", end, SEGMENT_BYTES / 2);
    open_log(w);
    assert_true(weir__log_active(w->log)->spoilt);
    rest(w);
    put(w, 1, 300);
    assert_int_equal(segments_of(w), 2);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(workload_close(w), 0);
    open_log(w);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->segments[0]->hole_len, 0);
    assert_int_equal(w->log->segments[0]->disk_bytes, SEGMENT_BYTES);
}

/* A log says that it takes nothing in before anybody has to find out: when its space has gone back
 * and the disk has none. As long as it has its space it needs no more. */
static void who_rests_on_a_full_disk_says_so(void **state)
{
    struct workload *w = *state;
    struct weir_error err = {0};
    uint64_t least;

    open_log(w);
    put(w, 1, 300);
    least = weir__capacity_least(w->log, 0);
    simfs_capacity(w->disk, simfs_used(w->disk));
    assert_int_equal(weir__log_ready(w->log, NULL), 0);
    rest(w);
    assert_true(weir__log_active(w->log)->hole_len > 0);
    simfs_capacity(w->disk, simfs_used(w->disk) + least - 1);
    assert_int_equal(weir__log_ready(w->log, &err), WEIR_ENOSPACE);
    assert_string_equal(err.text, "no new segment: no space left");
    simfs_capacity(w->disk, simfs_used(w->disk) + least);
    assert_int_equal(weir__log_ready(w->log, NULL), 0);
    put(w, 1, 300);
}

/* Producers of the segments before the lost one are in the producers' file. */
static void lost_segment_forgets_no_producer(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 2, .bytes = 300, .count = 3, .producer_id = 1};

    open_log(w);
    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, WORKLOAD_DIR "/00000002.seg");
    w->history->may_damage = true;
    for (int round = 0; round < 2; round++) {
        struct weir__log_producer next = {0};

        open_log(w);
        assert_int_equal(weir__log_producer_state(w->log, 2, 1, &next, NULL), 0);
        assert_int_equal(next.sequence, 3);
        put(w, 1, 300);
        assert_int_equal(workload_close(w), 0);
    }
    open_log(w);
}

/* ---- a spare whose name is not durable ---- */

/* The process is killed when the file has its size and the folder was not synced since. */
static void kill_before_names(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    struct simfs **left = user;

    if (entering || kind != SIMFS_SYNC || *left) return;
    if (simfs_size(disk, WORKLOAD_DIR "/00000002.seg") == SEGMENT_BYTES) *left = simfs_clone(disk);
}

static void spare_of_a_killed_process(void **state)
{
    struct workload *w = *state;
    struct simfs *left = NULL;

    open_log(w);
    for (int i = 0; i < 12; i++) put(w, 1, 50000);
    simfs_hook(w->disk, kill_before_names, &left);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    simfs_hook(w->disk, NULL, NULL);
    assert_non_null(left);
    workload_adopt(w, left);
    assert_non_null(w->log);
    assert_int_equal(simfs_size(w->disk, WORKLOAD_DIR "/00000002.seg"), 0); /* it is gone */
    fill_segments(w, 2);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_non_null(w->log);
}

/* ---- files that say what cannot be ---- */

static struct weir__file *open_file(struct workload *w, const char *path)
{
    struct weir__fs *fs = simfs_fs(w->disk);
    struct weir__file *f = NULL;

    assert_int_equal(fs->ops->open(fs, path, 0, &f, NULL), 0);
    return f;
}

/* Changes the header of a segment, with a good checksum. */
static void forge_header(struct workload *w, const char *path, uint64_t number, uint32_t partitions)
{
    static const uint8_t heads[WEIR__LOG_PARTITIONS_MAX * WEIR__HEAD_BYTES];
    struct weir__file *f = open_file(w, path);
    struct weir__segment_header h;
    int bad;

    assert_int_equal(weir__segment_read_header(f, w->options.hub_id, &h, &bad, NULL), 0);
    h.number = number;
    h.partitions = partitions;
    h.heads_bytes = weir__segment_heads_bytes(partitions);
    assert_int_equal(weir__segment_write_header(f, &h, w->options.hub_id, heads, NULL), 0);
    assert_int_equal(f->ops->sync(f, NULL), 0);
    weir__file_close(f);
}

static void segment_of_the_last_number(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    forge_header(w, WORKLOAD_DIR "/00000002.seg", UINT64_MAX, 5);
    lose_file(w, WORKLOAD_DIR "/control");
    w->history->may_damage = true;
    open_log(w);
    history_check(w->history, w->log, true);
    put(w, 1, 300);
}

static void segment_that_knows_more_partitions(void **state)
{
    struct workload *w = *state;

    open_log(w);
    put(w, 4, 300);
    assert_int_equal(workload_close(w), 0);
    forge_header(w, WORKLOAD_DIR "/00000001.seg", 1, 1000);
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(weir__log_partitions(w->log), 1000);
    put(w, 4, 300);
}

/* A row of which nothing is left but its numbers. */
static void very_many_lost_segments(void **state)
{
    struct workload *w = *state;
    struct weir__control c = {.hub_id = w->options.hub_id};
    struct weir__file *f;
    int bad;

    open_log(w);
    put(w, 1, 300);
    assert_int_equal(workload_close(w), 0);
    f = open_file(w, WORKLOAD_DIR "/control");
    assert_int_equal(weir__control_read(f, &c, &bad, NULL), 0);
    c.first_segment = 2;
    c.last_segment = MANY_SEGMENTS;
    for (int copy = 0; copy < 2; copy++)
        assert_int_equal(weir__control_write(f, &c, true, NULL), 0);
    weir__control_fini(&c);
    weir__file_close(f);
    open_log(w);
    put(w, 1, 300);
    assert_int_equal(segments_of(w), MANY_SEGMENTS);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(opening_that_waits_lets_threads_rest),
        CASE(lost_segment_on_a_full_disk),
        CASE(headless_segment_on_a_full_disk),
        CASE(headless_segment_that_rested),
        CASE(lost_segment_does_not_rest),
        CASE(spoilt_segment_keeps_its_bytes),
        CASE(who_rests_on_a_full_disk_says_so),
        CASE(lost_segment_forgets_no_producer),
        CASE(spare_of_a_killed_process),
        CASE(segment_of_the_last_number),
        CASE(segment_that_knows_more_partitions),
        CASE(very_many_lost_segments),
    };

    return cmocka_run_group_tests_name("log_left", tests, NULL, NULL);
}
