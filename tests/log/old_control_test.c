/* old_control_test.c - the control file is an older copy, or that of a backup, as somebody's restore of
 * single files leaves it: what its segment holds behind that moment is found, kept, and gone on from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/backup.h"
#include "log/state.h"
#include "support/dice.h"
#include "support/format1.h"
#include "support/pace.h"
#include "support/workload.h"

#define CONTROL WORKLOAD_DIR "/control"
#define BACKUP_CONTROL "/backup-control"
#define CONTROL_BYTES (256u << 10)
#define ROUNDS (400 / PACE + 20)
#define COPIES 6
#define DAY_MS INT64_C(86400000)

struct copy {
    size_t len;
    uint8_t at[CONTROL_BYTES];
};

struct told {
    int old, others;
    char file[64]; /* of the last of the others */
};

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 11);
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

static void take_copy(struct simfs *disk, struct copy *c)
{
    long got = simfs_peek(disk, CONTROL, c->at, sizeof c->at, 0);

    assert_true(got > 0);
    c->len = (size_t)got;
}

/* The control file that a backup of now has. */
static void take_backup(struct workload *w, struct copy *c)
{
    struct weir__backup_log log = {simfs_fs(w->disk), WORKLOAD_DIR, w->options.hub_id};
    struct weir__rand rand = weir__rand_system();
    struct simfs *disk = simfs_new();
    struct weir__fs *other = simfs_fs(disk);
    struct weir__backup_moment m;
    struct weir__control control;
    struct weir__file *f = NULL;
    long got;

    assert_int_equal(weir__backup_moment_take(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_moment_settle(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_control(&m, m.control.first_segment, m.control.active.name, &rand,
                                          &control, NULL),
                     0);
    assert_int_equal(other->ops->open(other, BACKUP_CONTROL, WEIR__FS_CREATE, &f, NULL), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(weir__control_write(f, &control, true, NULL), 0);
    weir__file_close(f);
    got = simfs_peek(disk, BACKUP_CONTROL, c->at, sizeof c->at, 0);
    assert_true(got > 0);
    c->len = (size_t)got;
    simfs_free(disk);
    free(control.heads);
    weir__backup_moment_fini(&m);
}

static void put_copy(struct simfs *disk, const struct copy *c)
{
    simfs_put(disk, CONTROL, c->at, c->len);
}

static void hear(const struct weir__log_finding *f, void *user)
{
    struct told *told = user;

    if (f->kind == WEIR__LOG_SEGMENT) return;
    if (f->kind == WEIR__LOG_CONTROL && strstr(f->text, "it is older than the batch at ")) {
        told->old++;
        return;
    }
    told->others++;
    snprintf(told->file, sizeof told->file, "%s", f->file);
}

static void check_told(struct workload *w, int old)
{
    struct told told = {0};
    uint64_t damaged;

    assert_int_equal(weir__log_inspect(&w->options, hear, &told, &damaged, NULL), 0);
    assert_int_equal(told.old, old);
    assert_int_equal(told.others, 0);
    assert_int_equal(damaged, old);
}

static void open_and_close(struct workload *w, uint32_t batches)
{
    open_log(w);
    for (uint32_t i = 0; i < batches; i++) put(w, i % 5, 300 + i);
    assert_int_equal(workload_close(w), 0);
}

/* Nothing is given or written twice; told once, and then the control file is a new one. */
static void check_kept(bool backup)
{
    for (uint32_t before = 0; before < 3; before++)
        for (uint32_t openings = 1; openings < 4; openings++) {
            struct workload *w;
            struct copy *c = test_calloc(1, sizeof *c);

            set_up((void **)&w);
            open_and_close(w, before);
            if (backup)
                take_backup(w, c);
            else
                take_copy(w->disk, c);
            for (uint32_t i = 0; i < openings; i++) open_and_close(w, 7);
            put_copy(w->disk, c);
            check_told(w, 1);
            open_log(w);
            history_check(w->history, w->log, true);
            assert_true(w->log->epoch > 1 + openings);
            assert_int_equal(w->log->segment_count, 1);
            put(w, 1, 300);
            assert_int_equal(workload_close(w), 0);
            check_told(w, 0);
            open_log(w);
            history_check(w->history, w->log, true);
            test_free(c);
            assert_int_equal(tear_down((void **)&w), 0);
        }
}

static void what_came_later_is_kept(void **state)
{
    (void)state;
    check_kept(false);
}

static void what_came_behind_a_backup_is_kept(void **state)
{
    (void)state;
    check_kept(true);
}

/* Another copy of the same opening knows all that has to be known. */
static void check_this_opening(struct workload *w, bool backup)
{
    struct copy *c = test_calloc(1, sizeof *c);

    open_log(w);
    put(w, 0, 400);
    if (backup)
        take_backup(w, c);
    else
        take_copy(w->disk, c);
    for (uint32_t i = 0; i < 9; i++) put(w, i % 5, 400);
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    check_told(w, 0);
    open_log(w);
    history_check(w->history, w->log, true);
    put(w, 1, 300);
    test_free(c);
}

static void a_copy_of_this_opening_is_no_older(void **state)
{
    check_this_opening(*state, false);
}

static void a_backup_of_this_opening_is_no_older(void **state)
{
    check_this_opening(*state, true);
}

/* Behind the watermark of an old copy damage is known by what lies behind it, as ever. */
static void what_is_damaged_is_not_cut(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);
    struct told told = {0};
    uint64_t at, damaged;

    open_and_close(w, 2);
    take_copy(w->disk, c);
    open_log(w);
    at = w->log->tail.end + 30 - WEIR__LOG_ORIGIN;
    put(w, 3, 2000);
    for (uint32_t i = 0; i < 3; i++) put(w, i, 2000);
    assert_int_equal(workload_close(w), 0);
    simfs_flip(w->disk, WORKLOAD_DIR "/00000001.seg", at * 8);
    put_copy(w->disk, c);
    assert_int_equal(weir__log_inspect(&w->options, hear, &told, &damaged, NULL), 0);
    assert_int_equal(told.old, 1);
    assert_int_equal(told.others, 1);
    assert_string_equal(told.file, WORKLOAD_DIR "/00000001.seg");
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(w->log->damage_count, 1);
    history_check(w->history, w->log, true);
    put(w, 1, 300);
    test_free(c);
}

/* When the end is bad, and nobody knows whether that was acknowledged, it stays where it is. */
static void check_bad_end(struct workload *w, bool rolled, bool header)
{
    struct copy *c = test_calloc(1, sizeof *c);
    uint8_t was[500], is[500];
    char path[64];
    uint64_t at;

    open_and_close(w, 2);
    take_copy(w->disk, c);
    open_log(w);
    put(w, 3, 2000);
    if (rolled) {
        workload_roll(w);
        put(w, 3, 2000);
    }
    at = w->log->tail.end + 20;
    put(w, 3, 2000);
    if (!header) at = w->log->tail.end - 1000;
    at -= weir__log_active(w->log)->h.base;
    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", weir__log_active(w->log)->name);
    assert_int_equal(workload_close(w), 0);
    simfs_flip(w->disk, path, at * 8);
    simfs_peek(w->disk, path, was, sizeof was, at);
    put_copy(w->disk, c);
    w->history->may_damage = true;
    open_log(w);
    put(w, 1, 2000);
    put(w, 1, 2000);
    simfs_peek(w->disk, path, is, sizeof is, at);
    assert_memory_equal(was, is, sizeof was);
    test_free(c);
    w->history->violations = 0; /* its number is given again: what cannot be known */
}

static void a_bad_end_is_not_written_over(void **state)
{
    (void)state;
    for (int rolled = 0; rolled < 2; rolled++)
        for (int header = 0; header < 2; header++) {
            struct workload *w;

            set_up((void **)&w);
            check_bad_end(w, rolled, header);
            assert_int_equal(tear_down((void **)&w), 0);
        }
}

/* It has no secret, and yet the segments of version 2 behind it are known. */
static void a_control_file_of_version_1_is_old(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);

    history_free(w->history);
    w->history = history_new(5);
    w->options.partitions = 5;
    format1_write(w->disk, WORKLOAD_DIR, w->options.hub_id, w->clock.wall_ms - 100000, w->history);
    w->created = true;
    take_copy(w->disk, c);
    open_and_close(w, 7);
    put_copy(w->disk, c);
    for (int i = 0; i < 2; i++) {
        open_log(w);
        history_check(w->history, w->log, true);
        put(w, 1, 300);
        assert_int_equal(workload_close(w), 0);
    }
    test_free(c);
}

/* All that it names has expired: the log is what is there now. */
static void a_control_file_is_outlived(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);
    uint64_t first, next;

    w->options.retain_ms = DAY_MS;
    w->history->may_expire = true;
    open_and_close(w, 3);
    take_copy(w->disk, c);
    open_log(w);
    for (int half_days = 0; half_days < 6; half_days++) {
        for (uint32_t i = 0; i < 20; i++) put(w, i % 3, 30000);
        workload_roll(w);
        put(w, 0, 500);
        simclock_pass(&w->clock, DAY_MS / 2);
        for (int k = 0; k < 5; k++) weir__log_step(w->log, NULL);
    }
    first = w->log->segments[0]->h.number;
    next = w->log->heads[0].next_sequence;
    assert_true(first > 1);
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    for (int i = 0; i < 2; i++) {
        open_log(w);
        assert_int_equal(w->log->segments[0]->h.number, first);
        assert_int_equal(w->log->heads[0].next_sequence, next);
        history_check(w->history, w->log, false);
        put(w, 0, 500);
        next += 2;
        assert_int_equal(workload_close(w), 0);
    }
    test_free(c);
}

static size_t files_of(struct simfs *disk)
{
    size_t count = 0;
    const char *path;

    for (size_t i = 0; (path = simfs_path(disk, i)); i++) count += strstr(path, ".seg") != NULL;
    return count;
}

static void lose_segment(struct simfs *disk, int number)
{
    struct weir__fs *fs = simfs_fs(disk);
    char path[64];

    snprintf(path, sizeof path, WORKLOAD_DIR "/%08d.seg", number);
    assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
}

static void fill_segments(struct workload *w, int count)
{
    for (int i = 0; i < count; i++) {
        for (uint32_t k = 0; k < 5; k++) put(w, k % 3, 2000);
        workload_roll(w);
        put(w, 0, 500);
    }
}

/* Over an older control file every event that came later is there, and no number is given again. */
static void check_later(struct workload *w, const struct copy *copy, uint64_t next)
{
    put_copy(w->disk, copy);
    for (int i = 0; i < 2; i++) {
        open_log(w);
        assert_true(w->log->heads[0].next_sequence >= next);
        history_check(w->history, w->log, true);
        assert_int_equal(w->history->violations, 0);
        put(w, 0, 500);
        next = w->log->heads[0].next_sequence;
        assert_int_equal(workload_close(w), 0);
    }
}

/* One that has no batch, or none that can be read, between those that it names and the newest. */
static void check_without_batches_between(struct workload *w, bool damaged)
{
    struct copy *c = test_calloc(1, sizeof *c);
    uint64_t at, next;
    char path[64];

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    open_log(w);
    workload_roll(w);
    at = weir__log_active(w->log)->data - weir__log_active(w->log)->h.base;
    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", weir__log_active(w->log)->name);
    if (damaged) put(w, 1, 500);
    workload_roll(w);
    put(w, 0, 500);
    next = w->log->heads[0].next_sequence;
    assert_int_equal(workload_close(w), 0);
    if (damaged) simfs_flip(w->disk, path, 8 * (at + 20)); /* in the header of the batch */
    w->history->may_damage = damaged;
    check_later(w, c, next);
    test_free(c);
}

static void an_empty_segment_behind_an_old_control_file(void **state)
{
    check_without_batches_between(*state, false);
}

static void a_damaged_segment_behind_an_old_control_file(void **state)
{
    check_without_batches_between(*state, true);
}

/* The file of the last segment that it names is there by its name alone. */
static void an_old_control_file_whose_last_file_is_empty(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);
    uint64_t next;

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    open_log(w);
    fill_segments(w, 3);
    next = w->log->heads[0].next_sequence;
    assert_int_equal(workload_close(w), 0);
    lose_segment(w->disk, 3);
    simfs_put(w->disk, WORKLOAD_DIR "/00000003.seg", "", 0);
    w->history->may_damage = true;
    check_later(w, c, next);
    test_free(c);
}

/* A file that says to be a segment so far ahead that no log comes there. */
static void a_segment_from_nowhere_is_ignored(void **state)
{
    static uint8_t bytes[1 << 21];
    static const uint8_t heads[4096];
    struct workload *w = *state;
    struct weir__fs *fs = simfs_fs(w->disk);
    struct weir__segment_header h;
    struct weir__file *f = NULL;
    long len;
    int bad;

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    len = simfs_peek(w->disk, WORKLOAD_DIR "/00000003.seg", bytes, sizeof bytes, 0);
    simfs_put(w->disk, WORKLOAD_DIR "/00000099.seg", bytes, (size_t)len);
    assert_int_equal(fs->ops->open(fs, WORKLOAD_DIR "/00000099.seg", 0, &f, NULL), 0);
    assert_int_equal(weir__segment_read_header(f, w->options.hub_id, &h, &bad, NULL), 0);
    h.number = 2000000;
    assert_in_range(h.heads_bytes, 1, sizeof heads);
    assert_int_equal(weir__segment_write_header(f, &h, w->options.hub_id, heads, NULL), 0);
    weir__file_close(f);
    open_log(w);
    assert_int_equal(w->log->segments[0]->h.number, 1);
    assert_int_equal(weir__log_active(w->log)->h.number, 3);
    history_check(w->history, w->log, true);
    assert_true(simfs_size(w->disk, WORKLOAD_DIR "/00000099.seg") > 0);
}

/* A segment is lost, and the control file is gone (copy NULL) or an older one. All others are served at
 * each opening, no number is given again, and no file goes. */
static void check_gap(struct workload *w, int lost, const struct copy *copy)
{
    struct weir__fs *fs = simfs_fs(w->disk);
    uint64_t next = w->log->heads[0].next_sequence;
    size_t files;

    assert_int_equal(workload_close(w), 0);
    lose_segment(w->disk, lost);
    if (copy)
        put_copy(w->disk, copy);
    else
        assert_int_equal(fs->ops->remove(fs, CONTROL, NULL), 0);
    files = files_of(w->disk);
    w->history->may_damage = true;
    for (int i = 0; i < 2; i++) {
        open_log(w);
        assert_int_equal(w->log->segments[0]->h.number, 1);
        assert_true(w->log->heads[0].next_sequence >= next);
        history_check(w->history, w->log, true);
        assert_int_equal(w->history->violations, 0);
        put(w, 0, 500);
        next = w->log->heads[0].next_sequence;
        assert_int_equal(workload_close(w), 0);
        assert_true(files_of(w->disk) >= files);
    }
}

/* Segments 1 to 3 are those of the older one. */
static void check_gap_over_old(struct workload *w, int lost)
{
    struct copy *c = test_calloc(1, sizeof *c);

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    open_log(w);
    fill_segments(w, 3);
    check_gap(w, lost, c);
    test_free(c);
}

static void a_gap_at_the_end_of_an_old_control_file(void **state)
{
    check_gap_over_old(*state, 3);
}

static void a_gap_behind_an_old_control_file(void **state)
{
    check_gap_over_old(*state, 4);
}

static void a_gap_inside_an_old_control_file(void **state)
{
    check_gap_over_old(*state, 2);
}

static void a_gap_without_a_control_file(void **state)
{
    struct workload *w = *state;

    open_log(w);
    fill_segments(w, 5);
    check_gap(w, 3, NULL);
}

/* ---- whatever was done, and whenever the power went ---- */

static void step(struct workload *w)
{
    if (!w->log) open_log(w);
    workload_step(w);
}

/* Runs that lose power again and again; then an older control file is put there. */
static void whenever_the_power_went(void **state)
{
    struct copy *copies = test_calloc(COPIES, sizeof *copies);
    int put_back = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint64_t dice = seed;
        struct workload w;
        struct simfs *left;
        size_t taken = 0;

        workload_init(&w, seed);
        w.small = true;
        w.aligned = seed % 2;
        open_log(&w);
        for (int i = 0; i < COPIES; i++) {
            if (dice_roll(&dice, 3) == 0)
                take_backup(&w, &copies[taken++]);
            else
                take_copy(w.disk, &copies[taken++]);
            for (uint64_t k = dice_roll(&dice, 12); k > 0; k--) step(&w);
            if (!w.log) open_log(&w);
            workload_crash(&w, SIMFS_KEEP_RANDOM, seed * 31 + (uint64_t)i);
            if (!w.log) fail_msg("seed %d does not open", (int)seed);
        }
        for (uint64_t k = dice_roll(&dice, 12); k > 0; k--) step(&w);
        left = simfs_crash(w.disk, SIMFS_KEEP_RANDOM, seed);
        put_copy(left, &copies[dice_roll(&dice, taken)]);
        put_back++;
        workload_adopt(&w, left);
        if (!w.log) fail_msg("seed %d does not open", (int)seed);
        put(&w, 1, 300);
        history_check(w.history, w.log, true);
        workload_crash(&w, SIMFS_KEEP_RANDOM, seed);
        if (!w.log || w.history->violations > 0)
            fail_msg("seed %d: %s", (int)seed, w.history->first);
        workload_fini(&w);
    }
    assert_true(put_back > 0);
    test_free(copies);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_later_is_kept),
        cmocka_unit_test(what_came_behind_a_backup_is_kept),
        CASE(a_copy_of_this_opening_is_no_older),
        CASE(a_backup_of_this_opening_is_no_older),
        CASE(what_is_damaged_is_not_cut),
        cmocka_unit_test(a_bad_end_is_not_written_over),
        CASE(a_control_file_of_version_1_is_old),
        CASE(a_control_file_is_outlived),
        CASE(a_gap_at_the_end_of_an_old_control_file),
        CASE(a_gap_behind_an_old_control_file),
        CASE(a_gap_inside_an_old_control_file),
        CASE(a_gap_without_a_control_file),
        CASE(a_segment_from_nowhere_is_ignored),
        CASE(an_empty_segment_behind_an_old_control_file),
        CASE(a_damaged_segment_behind_an_old_control_file),
        CASE(an_old_control_file_whose_last_file_is_empty),
        cmocka_unit_test(whenever_the_power_went),
    };

    return cmocka_run_group_tests_name("old_control", tests, NULL, NULL);
}
