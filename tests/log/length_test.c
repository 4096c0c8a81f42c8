/* length_test.c - a segment whose file is not as long as it was, or longer: it is still that segment,
 * nothing that is left of it is lost, nothing is written to it, and what comes later is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/backup.h"
#include "log/state.h"
#include "support/workload.h"

#define SEGMENT_BYTES UINT64_C(1048576)
#define FIRST WORKLOAD_DIR "/00000001.seg"
#define SECOND WORKLOAD_DIR "/00000002.seg"

/* What an inspection told. */
struct told {
    int damages,
        others;        /* but for segments, which are no finding, and copies, which cost nothing */
    uint64_t from, to; /* of the damage, in the file */
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

static void fill_segments(struct workload *w, size_t count)
{
    for (uint32_t i = 0; w->log->segment_count < count; i++) put(w, i % 5, 50000);
}

/* Ends the file there, or makes it go on with zeros. */
static void resize(struct workload *w, const char *path, uint64_t bytes)
{
    uint8_t *all = test_calloc(1, bytes);

    assert_true(simfs_peek(w->disk, path, all, bytes, 0) > 0);
    simfs_put(w->disk, path, all, bytes);
    test_free(all);
}

static void hear(const struct weir__log_finding *f, void *user)
{
    struct told *told = user;

    if (f->kind == WEIR__LOG_SEGMENT || f->kind == WEIR__LOG_COPY) return;
    told->others += f->kind != WEIR__LOG_DAMAGE;
    if (f->kind != WEIR__LOG_DAMAGE) return;
    if (told->damages++ == 0) told->from = f->at;
    told->to = f->at + f->len;
}

static struct told inspect(struct workload *w)
{
    struct told told = {0};
    uint64_t damaged;

    assert_int_equal(weir__log_inspect(&w->options, hear, &told, &damaged, NULL), 0);
    return told;
}

/* Whatever becomes of the log, its segments begin at blocks. */
static void check_row(const struct weir__log *log)
{
    for (size_t i = 0; i < log->segment_count; i++) {
        assert_int_equal(log->segments[i]->h.base % WEIR__FS_BLOCK, 0);
        assert_int_equal(log->segments[i]->h.capacity % WEIR__FS_BLOCK, 0);
    }
}

/* Every opening finds what there is, and takes in more, which the next one finds as well. */
static void go_on(struct workload *w)
{
    for (int round = 0; round < 3; round++) {
        open_log(w);
        history_check(w->history, w->log, true);
        put(w, 1, 300);
        fill_segments(w, w->log->segment_count + 1);
        put(w, 2, 300);
        check_row(w->log);
        assert_int_equal(workload_close(w), 0);
    }
}

static const uint64_t lengths[] = {SEGMENT_BYTES - 1,    SEGMENT_BYTES - 512,
                                   SEGMENT_BYTES - 4096, SEGMENT_BYTES - 61440,
                                   SEGMENT_BYTES / 2,    400000,
                                   SEGMENT_BYTES + 1,    SEGMENT_BYTES + 70000,
                                   2 * SEGMENT_BYTES};

/* Only space that was reserved is gone: nothing is told, and nothing is missed. */
static void check_reserved(size_t segments, const char *path)
{
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct workload *w;
        struct told told;

        set_up((void **)&w);
        open_log(w);
        fill_segments(w, segments);
        for (uint32_t k = 0; k < 5; k++) put(w, k, 3000);
        assert_int_equal(workload_close(w), 0);
        resize(w, path, lengths[i]);
        told = inspect(w);
        if (told.damages + told.others > 0) fail_msg("a file of %d bytes", (int)lengths[i]);
        go_on(w);
        told = inspect(w);
        assert_int_equal(told.damages + told.others, 0);
        assert_int_equal(simfs_size(w->disk, path), lengths[i]);
        if (tear_down((void **)&w) != 0) fail_msg("a file of %d bytes", (int)lengths[i]);
    }
}

static void the_only_one_has_another_length(void **state)
{
    (void)state;
    check_reserved(1, FIRST);
}

static void the_last_one_has_another_length(void **state)
{
    (void)state;
    check_reserved(2, SECOND);
}

/* What its file does not have any more is one range, from where it ends to where its batches did. */
static void check_cut(size_t segments, size_t which, const char *path)
{
    const uint64_t cuts[] = {4096, 5000, 8192, 20000, 40960, 100001};

    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct workload *w;
        struct told told;
        uint64_t end;

        set_up((void **)&w);
        open_log(w);
        fill_segments(w, segments);
        for (uint32_t k = 0; k < 4; k++) put(w, 3, 50000);
        end = w->log->segments[which]->end - w->log->segments[which]->h.base;
        assert_int_equal(workload_close(w), 0);
        resize(w, path, cuts[i]);
        told = inspect(w);
        assert_true(told.damages > 0);
        assert_true(told.from <= cuts[i] || told.from == 2 * WEIR__FS_BLOCK);
        assert_int_equal(told.to, end);
        w->history->may_damage = true;
        go_on(w);
        assert_true(w->log == NULL);
        assert_int_equal(simfs_size(w->disk, path), cuts[i]);
        if (tear_down((void **)&w) != 0) fail_msg("a file of %d bytes", (int)cuts[i]);
    }
}

static void the_only_one_is_cut(void **state)
{
    (void)state;
    check_cut(1, 0, FIRST);
}

static void the_last_one_is_cut(void **state)
{
    (void)state;
    check_cut(2, 1, SECOND);
}

static void one_in_front_is_cut(void **state)
{
    (void)state;
    check_cut(2, 0, FIRST);
}

/* A backup of it is as long, and has every event that is left. */
static void check_backup(uint64_t bytes)
{
    struct workload *w;
    struct weir__backup_log from = {.dir = WORKLOAD_DIR};
    struct weir__segment seg;
    struct weir__backup_extent extent;
    struct weir__backup_copied copied = {0};
    uint64_t end;
    uint8_t *whole = test_calloc(1, bytes), *copy = test_calloc(1, bytes);

    set_up((void **)&w);
    open_log(w);
    put(w, 1, 30000);
    end = w->log->tail.end;
    assert_int_equal(workload_close(w), 0);
    resize(w, FIRST, bytes);
    from.fs = simfs_fs(w->disk);
    from.hub_id = w->options.hub_id;
    assert_int_equal(weir__backup_segment_read(&from, "00000001.seg", &seg, NULL), 0);
    assert_int_equal(weir__backup_measure(&from, &seg, end, false, &extent, NULL), 0);
    assert_int_equal(weir__backup_copy(from.fs, FIRST, "copy", &extent, NULL, &copied, NULL), 0);
    assert_int_equal(simfs_size(w->disk, "copy"), bytes);
    simfs_peek(w->disk, FIRST, whole, bytes, 0);
    simfs_peek(w->disk, "copy", copy, bytes, 0);
    assert_memory_equal(whole, copy, bytes);
    test_free(whole);
    test_free(copy);
    assert_int_equal(tear_down((void **)&w), 0);
}

static void a_backup_is_as_long(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) check_backup(lengths[i]);
    check_backup(4096);
    check_backup(20000);
    check_backup(40000);
}

/* Its header is gone as well: then the length of its file is all that tells where the next begins, or
 * the control file does. */
static void check_headless(size_t segments, const char *path, bool control)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct workload *w;

        set_up((void **)&w);
        open_log(w);
        fill_segments(w, segments);
        for (uint32_t k = 0; k < 5; k++) put(w, k, 3000);
        assert_int_equal(workload_close(w), 0);
        resize(w, path, lengths[i]);
        simfs_poke(w->disk, path, zeros, sizeof zeros, 0);
        if (!control) {
            struct weir__fs *fs = simfs_fs(w->disk);

            assert_int_equal(fs->ops->remove(fs, WORKLOAD_DIR "/control", NULL), 0);
        }
        go_on(w);
        if (tear_down((void **)&w) != 0) fail_msg("a file of %d bytes", (int)lengths[i]);
    }
}

static void without_a_header_the_control_file_tells(void **state)
{
    (void)state;
    check_headless(1, FIRST, true);
    check_headless(2, SECOND, true);
}

static void without_both_its_blocks_tell(void **state)
{
    (void)state;
    check_headless(2, SECOND, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_only_one_has_another_length),
        cmocka_unit_test(the_last_one_has_another_length),
        cmocka_unit_test(the_only_one_is_cut),
        cmocka_unit_test(the_last_one_is_cut),
        cmocka_unit_test(one_in_front_is_cut),
        cmocka_unit_test(a_backup_is_as_long),
        cmocka_unit_test(without_a_header_the_control_file_tells),
        cmocka_unit_test(without_both_its_blocks_tell),
    };

    return cmocka_run_group_tests_name("length", tests, NULL, NULL);
}
