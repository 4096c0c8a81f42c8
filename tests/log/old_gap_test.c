/* old_gap_test.c - the control file is gone, or an older copy, and a segment behind it is lost, too: all
 * others are found and kept, and no number is given again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/backup.h"
#include "log/old_control.h"

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

/* It has no batch yet, but a header, which it gets only once the control file names the lost one. */
static void a_gap_in_front_of_an_empty_segment(void **state)
{
    struct workload *w = *state;
    struct weir__backup_log log = {simfs_fs(w->disk), WORKLOAD_DIR, w->options.hub_id};
    struct weir__backup_moment m;
    struct copy *c = test_calloc(1, sizeof *c);
    char lost[64];
    uint64_t next;

    open_log(w);
    put(w, 0, 5000);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    open_log(w);
    workload_roll(w);
    for (int i = 0; i < 5; i++) put(w, 1, 5000);
    snprintf(lost, sizeof lost, WORKLOAD_DIR "/%s", weir__log_active(w->log)->name);
    workload_roll(w);
    next = w->log->heads[1].next_sequence;
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    assert_int_equal(simfs_fs(w->disk)->ops->remove(simfs_fs(w->disk), lost, NULL), 0);
    assert_int_equal(weir__backup_moment_take(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_check_newer(&log, &m, NULL), WEIR_ECORRUPT);
    weir__backup_moment_fini(&m);
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(w->log->heads[1].next_sequence, next);
    history_check(w->history, w->log, true);
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

static void lose_header(struct simfs *disk, const char *path)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    uint64_t bytes = simfs_size(disk, path);

    simfs_poke(disk, path, zeros, sizeof zeros, 0);
    simfs_poke(disk, path, zeros, sizeof zeros, bytes - sizeof zeros);
}

struct faults {
    int lost; /* a segment */
    bool last_headless;
};

/* A segment is lost, and the control file is gone (copy NULL) or an older one. All others are served at
 * each opening, no number is given again, and no file goes. */
static void check_gap(struct workload *w, struct faults faults, const struct copy *copy)
{
    struct weir__fs *fs = simfs_fs(w->disk);
    uint64_t next = w->log->heads[0].next_sequence;
    char last[64];
    size_t files;

    snprintf(last, sizeof last, WORKLOAD_DIR "/%s", weir__log_active(w->log)->name);
    assert_int_equal(workload_close(w), 0);
    lose_segment(w->disk, faults.lost);
    if (faults.last_headless) lose_header(w->disk, last);
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
static void check_gap_over_old(struct workload *w, struct faults faults)
{
    struct copy *c = test_calloc(1, sizeof *c);

    open_log(w);
    fill_segments(w, 2);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    open_log(w);
    fill_segments(w, 3);
    check_gap(w, faults, c);
    test_free(c);
}

static void a_gap_at_the_end_of_an_old_control_file(void **state)
{
    check_gap_over_old(*state, (struct faults){.lost = 3});
}

static void a_gap_behind_an_old_control_file(void **state)
{
    check_gap_over_old(*state, (struct faults){.lost = 4});
}

static void a_gap_inside_an_old_control_file(void **state)
{
    check_gap_over_old(*state, (struct faults){.lost = 2});
}

/* Where it begins says what lies in front of it. */
static void a_gap_in_front_of_a_last_segment_without_header(void **state)
{
    check_gap_over_old(*state, (struct faults){.lost = 4, .last_headless = true});
}

static void a_lost_end_in_front_of_a_last_segment_without_header(void **state)
{
    check_gap_over_old(*state, (struct faults){.lost = 3, .last_headless = true});
}

static void check_gap_without_control(struct workload *w, struct faults faults)
{
    open_log(w);
    fill_segments(w, 5);
    check_gap(w, faults, NULL);
}

static void a_gap_without_a_control_file(void **state)
{
    check_gap_without_control(*state, (struct faults){.lost = 3});
}

/* Only one segment lies in front of it. */
static void a_gap_behind_the_first_segment_without_a_control_file(void **state)
{
    check_gap_without_control(*state, (struct faults){.lost = 2});
}

static void a_gap_without_a_control_file_and_the_last_header(void **state)
{
    check_gap_without_control(*state, (struct faults){.lost = 5, .last_headless = true});
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_gap_at_the_end_of_an_old_control_file),
        CASE(a_gap_behind_an_old_control_file),
        CASE(a_gap_inside_an_old_control_file),
        CASE(a_gap_in_front_of_a_last_segment_without_header),
        CASE(a_lost_end_in_front_of_a_last_segment_without_header),
        CASE(a_gap_without_a_control_file),
        CASE(a_gap_behind_the_first_segment_without_a_control_file),
        CASE(a_gap_without_a_control_file_and_the_last_header),
        CASE(a_gap_in_front_of_an_empty_segment),
        CASE(a_segment_from_nowhere_is_ignored),
        CASE(an_empty_segment_behind_an_old_control_file),
        CASE(a_damaged_segment_behind_an_old_control_file),
        CASE(an_old_control_file_whose_last_file_is_empty),
    };

    return cmocka_run_group_tests_name("old_gap", tests, NULL, NULL);
}
