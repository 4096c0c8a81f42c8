/* backup_row_test.c - which files of a folder are the segments of a moment, in which order, and where each of
 * them ends. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/backup.h"
#include "log/state.h"
#include "support/simfs.h"

#define HUB 5u
#define BYTES 65536u
#define FRONT 8192u /* of a header and few heads; the same again is at the end */
#define HEADS_BYTES 72u

struct place {
    struct simfs *disk;
    struct weir__backup_log log;
    struct weir__backup_moment m;
    struct weir__backup_row row;
    struct weir_error err;
};

static uint64_t base_of(uint64_t number)
{
    return WEIR__LOG_ORIGIN + number * BYTES;
}

static struct weir__file *open_file(struct place *p, const char *name, unsigned flags)
{
    struct weir__file *f = NULL;

    assert_int_equal(weir__log_open_name(p->log.fs, "log", name, flags, &f, NULL), 0);
    return f;
}

/* A segment of this number, behind one whose batches end there; of another hub it has no header that can be
 * read. */
static struct weir__segment put(struct place *p, uint64_t hub_id, uint64_t name, uint64_t number,
                                uint64_t base, uint64_t previous_end)
{
    struct weir__segment seg = {.h = {.version = 2,
                                      .partitions = 3,
                                      .secret = 7,
                                      .number = number,
                                      .base = base,
                                      .capacity = BYTES,
                                      .previous_end = previous_end,
                                      .heads_bytes = HEADS_BYTES},
                                .data = base + FRONT};
    const uint8_t heads[HEADS_BYTES] = {0};
    struct weir__file *f;

    snprintf(seg.name, sizeof seg.name, "%08" PRIu64 ".seg", name);
    f = open_file(p, seg.name, WEIR__FS_CREATE);
    assert_int_equal(f->ops->allocate(f, BYTES, NULL), 0);
    assert_int_equal(weir__segment_write_header(f, &seg.h, hub_id, heads, NULL), 0);
    weir__file_close(f);
    return seg;
}

/* One whose predecessor ends so many bytes behind its first batch. */
static struct weir__segment put_behind(struct place *p, uint64_t number, uint64_t bytes)
{
    return put(p, HUB, 1000 - number, number, base_of(number), base_of(number - 1) + FRONT + bytes);
}

static void write_control(struct place *p)
{
    struct weir__file *f = open_file(p, "control", 0);

    for (int copy = 0; copy < 2; copy++)
        assert_int_equal(weir__control_write(f, &p->m.control, true, NULL), 0);
    weir__file_close(f);
}

/* The moment ends in the last of them. */
static void begin(struct place *p, uint64_t first, uint64_t last)
{
    struct weir__control *c = &p->m.control;

    *c = (struct weir__control){.version = 2,
                                .hub_id = HUB,
                                .secret = 7,
                                .first_segment = first,
                                .last_segment = last,
                                .watermark = WEIR__LOG_ORIGIN,
                                .epoch = 3};
    assert_int_equal(weir__control_resize(c, 3, NULL), 0);
    weir__file_close(open_file(p, "control", WEIR__FS_CREATE));
    write_control(p);
    p->m.last = put_behind(p, last, 800);
    p->m.end = p->m.last.data + 4321;
}

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof *p);

    p->disk = simfs_new();
    p->log = (struct weir__backup_log){simfs_fs(p->disk), "log", HUB};
    assert_int_equal(p->log.fs->ops->make_dir(p->log.fs, "log", NULL), 0);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    weir__backup_row_fini(&p->row);
    weir__backup_moment_fini(&p->m);
    assert_int_equal(simfs_open_files(p->disk), 0);
    simfs_free(p->disk);
    test_free(p);
    return 0;
}

static void read_row(struct place *p, size_t count, uint64_t missing)
{
    weir__backup_row_fini(&p->row);
    if (weir__backup_row_read(&p->log, &p->m, &p->row, &p->err) != 0) fail_msg("%s", p->err.text);
    assert_int_equal(p->row.count, count);
    assert_int_equal(p->row.missing, missing);
}

/* Of a number, and where its batches end, behind its first one. */
static void expect(const struct place *p, size_t i, uint64_t number, uint64_t bytes)
{
    const struct weir__segment *seg = &p->row.at[i];

    assert_int_equal(seg->h.number, number);
    assert_int_equal(seg->lost, number == 0);
    assert_int_equal(seg->end - seg->data, bytes);
}

#define TO_LIMIT (BYTES - 2 * FRONT)

/* However their files are called, and however many there are. */
static void segments_are_in_order(void **state)
{
    struct place *p = *state;

    begin(p, 1, 50);
    for (uint64_t n = 1; n < 50; n++) put_behind(p, n, n < 2 ? 0 : 8 * n);
    read_row(p, 50, 0);
    for (uint64_t n = 1; n < 49; n++) expect(p, n - 1, n, 8 * (n + 1));
    expect(p, 48, 49, 800);
    expect(p, 49, 50, 4321);
}

/* What has expired meanwhile is left out, whether a file without a header is there or not. */
static void what_has_expired_is_left_out(void **state)
{
    struct place *p = *state;

    begin(p, 1, 7);
    for (uint64_t n = 1; n < 7; n++) put_behind(p, n, 8 * n);
    put(p, HUB + 1, 2000, 4, base_of(4), base_of(3));
    read_row(p, 7, 0);
    p->m.control.first_segment = 4;
    write_control(p);
    p->m.control.first_segment = 1;
    read_row(p, 4, 0);
    for (uint64_t n = 4; n < 7; n++) expect(p, n - 4, n, n == 6 ? 800 : 8 * (n + 1));
    assert_int_equal(p->log.fs->ops->remove(p->log.fs, "log/00000995.seg", NULL),
                     0); /* the fifth */
    read_row(p, 4, 1);
    expect(p, 0, 0, TO_LIMIT);
    expect(p, 1, 4, TO_LIMIT);
    expect(p, 2, 6, 800);
    expect(p, 3, 7, 4321);
}

/* Where the next one says; where that cannot be, or is missing, at the limit. */
static void each_ends_where_the_next_one_says(void **state)
{
    struct place *p = *state;

    begin(p, 1, 9);
    put_behind(p, 1, 0);
    put_behind(p, 2, 0);
    put_behind(p, 3, TO_LIMIT);
    put_behind(p, 4, TO_LIMIT - 8);
    put_behind(p, 5, TO_LIMIT + 8);
    put(p, HUB, 3000, 6, base_of(6), base_of(5) + FRONT - 8);
    /* the seventh is missing; the one behind it names a place in the sixth */
    put(p, HUB, 3001, 8, base_of(8), base_of(6) + FRONT + 16);
    read_row(p, 8, 1);
    expect(p, 0, 1, 0);
    expect(p, 1, 2, TO_LIMIT);
    expect(p, 2, 3, TO_LIMIT - 8);
    expect(p, 3, 4, TO_LIMIT);
    expect(p, 4, 5, TO_LIMIT);
    expect(p, 5, 6, TO_LIMIT);
    expect(p, 6, 8, 800);
    expect(p, 7, 9, 4321);
}

/* A file whose header cannot be read says nothing, neither its number nor where it ends. An empty one is
 * none. */
static void a_file_without_a_header_says_nothing(void **state)
{
    struct place *p = *state;

    begin(p, 1, 3);
    put(p, HUB + 1, 500, 2, base_of(0), base_of(0));
    simfs_put(p->disk, "log/00000600.seg", "", 0);
    simfs_put(p->disk, "log/00000601.seg", "", 0);
    simfs_put(p->disk, "log/00000700.seg", "x", 1);
    put(p, HUB, 999, 1, base_of(1), base_of(0) + FRONT + 80);
    read_row(p, 4, 1);
    assert_int_equal(p->row.at[0].h.number, 0);
    assert_int_equal(p->row.at[1].h.number, 0);
    for (int i = 0; i < 2; i++) {
        assert_true(p->row.at[i].lost);
        assert_int_equal(p->row.at[i].end, weir__backup_limit(&p->row.at[i]));
    }
    expect(p, 2, 1, TO_LIMIT);
    put_behind(p, 2, 8);
    read_row(p, 3, 0);
    expect(p, 0, 1, 8);
}

/* A file that is gone by the time it is opened was removed; another error is told, and leaves nothing. */
static void only_what_was_removed_is_passed_over(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_OPEN, .at = 1, .rc = WEIR_ENOTFOUND};
    struct place *p = *state;

    begin(p, 1, 3);
    put_behind(p, 1, 0);
    put_behind(p, 2, 8);
    simfs_fail(p->disk, &fault);
    read_row(p, 2, 1);
    for (uint64_t at = 1; at <= 3; at++) { /* two segments, and the control file */
        fault = (struct simfs_fault){.kinds = SIMFS_OPEN, .at = at, .rc = WEIR_EIO};
        weir__backup_row_fini(&p->row);
        simfs_fail(p->disk, &fault);
        assert_int_equal(weir__backup_row_read(&p->log, &p->m, &p->row, &p->err), WEIR_EIO);
        assert_memory_equal(p->err.text, "log: ", 5);
        assert_null(p->row.at);
        assert_int_equal(p->row.count, 0);
    }
    simfs_fail(p->disk, NULL);
    read_row(p, 3, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(segments_are_in_order),
        CASE(what_has_expired_is_left_out),
        CASE(each_ends_where_the_next_one_says),
        CASE(a_file_without_a_header_says_nothing),
        CASE(only_what_was_removed_is_passed_over),
    };

    return cmocka_run_group_tests_name("backup_row", tests, NULL, NULL);
}
