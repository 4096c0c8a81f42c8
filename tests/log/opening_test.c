/* opening_test.c - a log opens with whatever there is: on a full disk, without some of its files,
 * with files that contradict it; and costs a moment only when the moment is bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/dice.h"
#include "support/format1.h"
#include "support/pace.h"
#include "support/workload.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define FULL_ROUNDS (60 / PACE + 5)
#define STEPS 12

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 9);
    *state = w;
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

static bool has_file(struct workload *w, const char *part)
{
    const char *path;

    for (size_t i = 0; (path = simfs_path(w->disk, i)) != NULL; i++)
        if (strstr(path, part)) return true;
    return false;
}

static void lose_file(struct workload *w, const char *name)
{
    char path[64];
    struct weir__fs *fs = simfs_fs(w->disk);

    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", name);
    assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
    assert_int_equal(fs->ops->sync_dir(fs, WORKLOAD_DIR, NULL), 0);
}

static uint32_t next_of(struct workload *w, uint32_t partition)
{
    struct weir__log_partition_info info;

    assert_int_equal(weir__log_partition_info(w->log, partition, &info, NULL), 0);
    return (uint32_t)info.next_sequence;
}

/* ---- a full disk ---- */

static void count_unsaved(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)level;
    (void)room;
    *(int *)user += strstr(line, "not saved: the disk is full") != NULL;
}

/* Power that goes when something was written and nothing is synced yet. */
struct cut {
    struct workload *w;
    uint64_t syncs, seed; /* until then */
    struct simfs *left;
};

static void lose_power(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    struct cut *c = user;

    if (!entering || kind != SIMFS_SYNC || c->left || c->syncs-- > 0) return;
    c->left = simfs_crash(disk, SIMFS_KEEP_RANDOM, c->seed);
    simfs_stop(disk, 1);
    c->w->history->may_fail = true;
}

/* What a loss of power left, torn tails among it, with not a block to spare. */
static void full_disk_at_every_open(void **state)
{
    int unsaved = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= FULL_ROUNDS; seed++) {
        struct workload w;
        struct cut c = {.w = &w, .syncs = seed % 7, .seed = seed};
        struct weir_error err = {0};
        int rc = 0;

        workload_init(&w, seed);
        w.small = seed % 2;
        w.options.logger = (struct weir__logger){count_unsaved, &unsaved};
        open_log(&w);
        simfs_hook(w.disk, lose_power, &c);
        for (int i = 0; i < STEPS && !c.left; i++) workload_step(&w);
        if (!c.left) c.left = simfs_crash(w.disk, SIMFS_KEEP_RANDOM, seed);
        simfs_hook(w.disk, NULL, NULL);
        simfs_capacity(c.left, simfs_used(c.left));
        workload_adopt(&w, c.left);
        assert_non_null(w.log);
        for (int i = 0; i < 40 && rc == 0; i++) {
            struct history_order o = {.partition = 1, .bytes = 40000, .count = 1};

            rc = history_append_wait(w.history, w.log, &o);
        }
        simfs_capacity(w.disk, 0);
        put(&w, 2, 40000); /* at the first try */
        assert_int_equal(workload_close(&w), 0);
        if (workload_open(&w, &err) != 0) fail_msg("%s", err.text);
        history_check(w.history, w.log, true);
        if (w.history->violations > 0) fail_msg("seed %d: %s", (int)seed, w.history->first);
        workload_fini(&w);
    }
    if (PACE == 1) assert_true(unsaved > 0);
}

/* Not even the control file can be written: it is read, and begins when there is room. */
static void opening_waits_for_room(void **state)
{
    struct workload *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_WRITE | SIMFS_ALLOCATE,
                                .at = 1,
                                .rc = WEIR_ENOSPACE,
                                .persistent = true};
    struct history_order o = {.partition = 1, .bytes = 300, .count = 1};

    open_log(w);
    fill_segments(w, 2);
    for (fault.at = 1; fault.at <= 2; fault.at++) {
        workload_crash(w, SIMFS_KEEP_NONE, 0);
        assert_int_equal(workload_close(w), 0);
        simfs_fail(w->disk, &fault);
        open_log(w);
        assert_int_equal(w->log->opening, WEIR__LOG_EPOCH_WAITS);
        history_check(w->history, w->log, true);
        for (int i = 0; i < 3; i++)
            assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_ENOSPACE);
        assert_int_equal(weir__log_state(w->log, NULL), 0);
        assert_int_equal(weir__log_ready(w->log, NULL), WEIR_ENOSPACE);
        if (fault.at == 2) assert_int_equal(workload_close(w), 0);
        if (fault.at == 2) open_log(w);
        simfs_fail(w->disk, NULL);
        put(w, 0, 100);
        assert_int_equal(w->log->opening, WEIR__LOG_EPOCH_BEGUN);
        assert_int_equal(weir__log_ready(w->log, NULL), 0);
        put(w, 1, 100);
    }
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_non_null(w->log);
}

/* An old log has to write more than it has room for. */
static void old_log_on_a_full_disk(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 1, .bytes = 300, .count = 1};

    format1_write(w->disk, WORKLOAD_DIR, w->options.hub_id, w->clock.wall_ms - 100000, w->history);
    w->created = true;
    simfs_capacity(w->disk, simfs_used(w->disk));
    open_log(w);
    assert_int_equal(w->log->opening, WEIR__LOG_EPOCH_WAITS);
    history_check(w->history, w->log, true);
    assert_int_equal(w->history->found, w->history->count);
    assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_ENOSPACE);
    simfs_capacity(w->disk, 0);
    put(w, 1, 300);
    assert_int_equal(segments_of(w), 3);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_non_null(w->log);
}

/* ---- files that are gone ---- */

/* An old segment: its events are one range in each partition. */
static void lost_segment_is_one_range(void **state)
{
    struct workload *w = *state;
    uint64_t events = 0;

    open_log(w);
    fill_segments(w, 2);
    for (uint32_t p = 0; p < 5; p++) events -= next_of(w, p);
    fill_segments(w, 3);
    for (uint32_t p = 0; p < 5; p++) events += next_of(w, p);
    put(w, 3, 100);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, "00000002.seg");
    w->history->may_damage = true;
    open_log(w);
    history_check(w->history, w->log, true);
    assert_in_range(w->history->damaged, events - 4, events + 4); /* the batch that rolled */
    put(w, 0, 100);
    assert_int_equal(segments_of(w), 3);
}

/* Reads a partition from the oldest event up to the first that is damaged, and steps over it. */
static void read_to_damage(struct workload *w, uint32_t partition, struct weir__log_reader **out,
                           struct weir_error *err)
{
    struct weir__log_view v;
    uint32_t count = 1;
    uint64_t missed, first, last;
    int rc = 0;

    if (!*out) assert_int_equal(weir__log_reader_open(out, w->log, partition, 0, 0, NULL), 0);
    while (rc == 0 && count > 0) rc = weir__log_reader_next(*out, &v, 1, &count, &missed, err);
    assert_int_equal(rc, WEIR_ECORRUPT);
    weir__log_reader_damage(*out, &first, &last);
    weir__log_reader_seek(*out, last + 1);
}

static void assert_lost(const struct weir_error *err, int segment)
{
    char want[64];

    snprintf(want, sizeof want, WORKLOAD_DIR ": segment %d is lost: events ", segment);
    if (strncmp(err->text, want, strlen(want)) != 0) fail_msg("%s", err->text);
    assert_null(strstr(err->text, ".seg"));
}

/* No file is to blame for what was in another, whether it went before the opening or behind it. */
static void lost_segment_is_called_lost(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir_error err = {0};

    open_log(w);
    fill_segments(w, 5);
    for (uint32_t p = 0; p < 5; p++) put(w, p, 100);
    assert_int_equal(workload_close(w), 0);
    w->history->may_damage = true;
    lose_file(w, "00000002.seg");
    lose_file(w, "00000005.seg"); /* the last one */
    open_log(w);
    lose_file(w, "00000004.seg");
    for (uint32_t p = 0; p < 5; p++) {
        read_to_damage(w, p, &r, &err);
        assert_lost(&err, 2);
        read_to_damage(w, p, &r, &err);
        assert_lost(&err, 4);
        weir__log_reader_close(r);
        r = NULL;
    }
    put(w, 0, 100); /* in a new one */
    read_to_damage(w, 0, &r, &err);
    assert_lost(&err, 2);
    weir__log_reader_close(r);
}

/* Nor is a lost segment to blame for what is damaged in the file before it. The index is, too, so that
 * there is a hole where the batch was. */
static void damage_before_a_lost_segment_has_a_file(void **state)
{
    static const char path[] = WORKLOAD_DIR "/00000001.seg";
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir_error err = {0};
    char want[64];
    uint64_t at;

    open_log(w);
    for (int i = 0; i < 3; i++) put(w, 1, 100);
    at = w->history->batches[1].receipt.offset - WEIR__LOG_ORIGIN;
    fill_segments(w, 3);
    put(w, 1, 100);
    assert_int_equal(workload_close(w), 0);
    w->history->may_damage = true;
    simfs_flip(w->disk, path, (at + 10) * 8);
    for (uint64_t i = 64; i <= 16384; i += 64)
        simfs_flip(w->disk, path, (simfs_size(w->disk, path) - i) * 8);
    lose_file(w, "00000002.seg");
    open_log(w);
    read_to_damage(w, 1, &r, &err);
    snprintf(want, sizeof want, "%s byte %d: damaged: events 2 to 3 of", path, (int)at);
    if (strncmp(err.text, want, strlen(want)) != 0) fail_msg("%s, not %s", err.text, want);
    read_to_damage(w, 1, &r, &err);
    assert_lost(&err, 2);
    weir__log_reader_close(r);
}

/* The one that was being appended to: no number, and no offset, is given again. */
static void lost_active_segment_is_left(void **state)
{
    struct workload *w = *state;
    uint32_t before[5];
    uint64_t offset;

    open_log(w);
    fill_segments(w, 3);
    for (uint32_t p = 0; p < 5; p++) put(w, p, 100);
    for (uint32_t p = 0; p < 5; p++) before[p] = next_of(w, p);
    offset = w->history->batches[w->history->count - 1].receipt.offset;
    assert_int_equal(workload_close(w), 0);
    lose_file(w, "00000003.seg");
    w->history->may_damage = true;
    open_log(w);
    history_check(w->history, w->log, true);
    for (uint32_t p = 0; p < 5; p++) {
        put(w, p, 100);
        assert_true(w->history->batches[w->history->count - 1].receipt.sequence >= before[p]);
        assert_true(w->history->batches[w->history->count - 1].receipt.offset > offset);
    }
    assert_int_equal(workload_close(w), 0);
    open_log(w);
    history_check(w->history, w->log, true);
}

/* Upkeep has nothing to do with it, however long nobody appends. */
static void lost_active_segment_rests(void **state)
{
    struct workload *w = *state;
    struct weir_error err = {0};

    open_log(w);
    fill_segments(w, 3);
    put(w, 1, 100);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, "00000003.seg");
    w->history->may_damage = true;
    open_log(w);
    simclock_pass(&w->clock, 60000);
    if (weir__log_step(w->log, &err) != 0) fail_msg("%s", err.text);
    put(w, 1, 100);
    history_check(w->history, w->log, true);
}

/* While it is open: what is asked for then is damage, not an error for ever. */
static void file_that_goes_while_open(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 4);
    assert_int_equal(workload_close(w), 0);
    open_log(w);
    lose_file(w, "00000002.seg");
    w->history->may_damage = true;
    history_check(w->history, w->log, false);
    assert_true(w->history->damaged > 10);
}

static void lost_control_is_made_again(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 3);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(workload_close(w), 0);
        lose_file(w, "control");
        open_log(w);
        history_check(w->history, w->log, true);
        for (uint32_t p = 0; p < 5; p++) put(w, p, 100);
        workload_crash(w, SIMFS_KEEP_NONE, 0);
        assert_non_null(w->log);
        assert_true(has_file(w, "/control"));
    }
}

/* Retention's clock is in the control file; without it the age of events is not made up. */
static void lost_control_expires_nothing(void **state)
{
    struct workload *w = *state;
    struct weir__log_partition_info info;

    w->options.retain_ms = 8 * DAY_MS;
    open_log(w);
    fill_segments(w, 3);
    assert_int_equal(workload_close(w), 0);
    simclock_pass(&w->clock, DAY_MS);
    lose_file(w, "control");
    open_log(w);
    simclock_pass(&w->clock, 6 * DAY_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(weir__log_partition_info(w->log, 0, &info, NULL), 0);
    assert_int_equal(info.begin_sequence, 0);
    simclock_pass(&w->clock, 10 * DAY_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(weir__log_partition_info(w->log, 0, &info, NULL), 0);
    assert_true(info.begin_sequence > 0);
}

/* Without the control file, and where the last segment no longer says how the partitions stood when it
 * began, the segments before it tell where each of them ends. */
static void ends_are_found_in_older_segments(void **state)
{
    struct workload *w = *state;
    struct weir__log_partition_info before[5], after;

    open_log(w);
    put(w, 1, 100);
    while (segments_of(w) < 2) put(w, 0, 50000);
    put(w, 2, 100);
    for (int i = 0; i < 3; i++, simclock_pass(&w->clock, 10)) put(w, 3, 100);
    while (segments_of(w) < 3) put(w, 0, 50000);
    for (uint32_t p = 0; p < 5; p++)
        assert_int_equal(weir__log_partition_info(w->log, p, &before[p], NULL), 0);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, "control");
    simfs_flip(w->disk, WORKLOAD_DIR "/00000003.seg", 8 * (4096 + 10));
    simfs_flip(w->disk, WORKLOAD_DIR "/00000003.seg", 8 * ((1u << 20) - 8192 + 10));
    w->history->may_damage = true;
    open_log(w);
    for (uint32_t p = 0; p < 5; p++) {
        assert_int_equal(weir__log_partition_info(w->log, p, &after, NULL), 0);
        assert_int_equal(after.begin_sequence, before[p].begin_sequence);
        assert_int_equal(after.next_sequence, before[p].next_sequence);
        assert_int_equal(after.last_offset, before[p].last_offset);
        assert_int_equal(after.last_time_ms, before[p].last_time_ms);
        put(w, p, 100);
    }
    history_check(w->history, w->log, true);
}

/* Nothing to go by: then nothing is touched. */
static void nothing_to_go_by(void **state)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    struct workload *w = *state;
    uint64_t hash;

    open_log(w);
    put(w, 0, 100);
    assert_int_equal(workload_close(w), 0);
    lose_file(w, "control");
    simfs_poke(w->disk, WORKLOAD_DIR "/00000001.seg", zeros, sizeof zeros, 0);
    simfs_poke(w->disk, WORKLOAD_DIR "/00000001.seg", zeros, sizeof zeros,
               (1u << 20) - sizeof zeros);
    hash = simfs_hash(w->disk);
    assert_int_equal(workload_open(w, NULL), WEIR_ECORRUPT);
    assert_int_equal(simfs_hash(w->disk), hash);
}

/* ---- files that are too many ---- */

/* Two files say to be one segment: the right one serves, the other stays. */
static void second_file_of_a_number_is_kept(void **state)
{
    struct workload *w = *state;
    uint8_t *bytes = test_malloc(1u << 20);

    open_log(w);
    fill_segments(w, 3);
    assert_int_equal(workload_close(w), 0);
    for (int name = 2; name <= 3; name++) {
        char path[64];

        snprintf(path, sizeof path, WORKLOAD_DIR "/%08d.seg", name);
        simfs_peek(w->disk, path, bytes, 1u << 20, 0);
        snprintf(path, sizeof path, WORKLOAD_DIR "/%08d.seg", 40 + name);
        simfs_put(w->disk, path, bytes, 1u << 20);
    }
    test_free(bytes);
    open_log(w);
    history_check(w->history, w->log, true);
    assert_true(has_file(w, "00000042.seg") && has_file(w, "00000043.seg"));
    fill_segments(w, 4);
    assert_true(has_file(w, "00000044.seg"));
}

/* ---- names ---- */

static void names_grow_beyond_eight_digits(void **state)
{
    static const uint8_t zeros[2 * WEIR__FS_BLOCK];
    struct workload *w = *state;

    open_log(w);
    put(w, 0, 100);
    assert_int_equal(workload_close(w), 0);
    simfs_put(w->disk, WORKLOAD_DIR "/99999999.seg", zeros, sizeof zeros);
    open_log(w);
    fill_segments(w, 3);
    assert_true(has_file(w, "/100000000.seg") && has_file(w, "/100000001.seg"));
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(segments_of(w), 3);
    put(w, 0, 100);
}

/* What was cut goes with the events of its time. */
static void cuts_expire(void **state)
{
    struct workload *w = *state;
    char name[64];

    w->options.retain_ms = 4 * DAY_MS;
    open_log(w);
    put(w, 0, 100);
    snprintf(name, sizeof name, WORKLOAD_DIR "/cut-%llu-1.bin",
             (unsigned long long)(WEIR__LOG_ORIGIN + 9000));
    simfs_put(w->disk, name, "x", 1);
    simfs_put(w->disk, WORKLOAD_DIR "/cut-1000000999999999-1.bin", "x", 1);
    for (int day = 0; day < 12; day++) {
        put(w, 0, 100);
        simclock_pass(&w->clock, DAY_MS);
        weir__log_step(w->log, NULL);
        if (day == 1) assert_true(has_file(w, name));
    }
    assert_false(has_file(w, name));
    assert_true(has_file(w, "/cut-1000000999999999"));
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
}

/* ---- moments ---- */

static void one_writer(void **state)
{
    struct workload *w = *state;
    struct weir__log *second = NULL;

    open_log(w);
    assert_int_equal(weir__log_open(&second, &w->options, NULL), WEIR_ELOCKED);
    put(w, 0, 100);
}

/* No descriptor left, at any call: that is said, nothing is changed, and a moment later it opens. */
static void no_descriptors_cost_a_moment(void **state)
{
    struct workload *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_OPEN | SIMFS_LIST, .rc = WEIR_EBUSY};
    int refused = 0;

    open_log(w);
    fill_segments(w, 4);
    workload_crash(w, SIMFS_KEEP_ALL, 0);
    assert_int_equal(workload_close(w), 0);
    for (fault.at = 1; fault.at < 100; fault.at++) {
        uint64_t hash = simfs_hash(w->disk);
        int rc;

        simfs_fail(w->disk, &fault);
        rc = workload_open(w, NULL);
        if (rc != 0) {
            assert_int_equal(rc, WEIR_EBUSY);
            assert_int_equal(simfs_hash(w->disk), hash);
            refused++;
        }
        if (!simfs_failed(w->disk)) break;
        simfs_fail(w->disk, NULL);
        if (rc != 0) open_log(w);
        history_check(w->history, w->log, true);
        assert_int_equal(workload_close(w), 0);
    }
    assert_in_range(refused, 5, 50);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_disk_at_every_open),
        CASE(opening_waits_for_room),
        CASE(old_log_on_a_full_disk),
        CASE(lost_segment_is_one_range),
        CASE(lost_segment_is_called_lost),
        CASE(damage_before_a_lost_segment_has_a_file),
        CASE(lost_active_segment_is_left),
        CASE(lost_active_segment_rests),
        CASE(file_that_goes_while_open),
        CASE(lost_control_is_made_again),
        CASE(lost_control_expires_nothing),
        CASE(ends_are_found_in_older_segments),
        CASE(nothing_to_go_by),
        CASE(second_file_of_a_number_is_kept),
        CASE(names_grow_beyond_eight_digits),
        CASE(cuts_expire),
        CASE(one_writer),
        CASE(no_descriptors_cost_a_moment),
    };

    return cmocka_run_group_tests_name("log_opening", tests, NULL, NULL);
}
