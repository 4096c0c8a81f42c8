/* heads_test.c - where partitions stand is copied whole, to the last byte of the last partition: the
 * clock shows a time that has something in each of its bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/simfs.h"

#define FAR_MS INT64_C(0x0102030405060708)
#define PARTITIONS 3u
#define LAST (PARTITIONS - 1)
#define BODY_BYTES 6000u
#define BLOCK WEIR__FS_BLOCK
#define WAIT weir__deadline_ns(20000)

struct place {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log;
};

static void open_log(struct place *p)
{
    struct weir_error err = {0};

    if (weir__log_open(&p->log, &p->o, &err) != 0) fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof *p);

    p->disk = simfs_new();
    p->clock = (struct simclock){.wall_ms = FAR_MS, .mono_ms = 1000};
    p->o = (struct weir__log_options){.fs = simfs_fs(p->disk),
                                      .clock = simclock(&p->clock),
                                      .dir = "log",
                                      .hub_id = 5,
                                      .partitions = PARTITIONS,
                                      .segment_bytes_max = 65536,
                                      .retain_ms = -1,
                                      .no_threads = true};
    assert_int_equal(weir__log_create(&p->o, NULL), 0);
    open_log(p);
    *state = p;
    return 0;
}

static void close_log(struct place *p)
{
    assert_int_equal(weir__log_close(p->log, NULL), 0);
    p->log = NULL;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    close_log(p);
    simfs_free(p->disk);
    test_free(p);
    return 0;
}

static int append(struct place *p, uint32_t partition)
{
    static const uint8_t body[BODY_BYTES];
    struct weir__log_batch batch = {.partition = partition,
                                    .count = 1,
                                    .body = {weir__bytes_of(body, sizeof body)}};

    simclock_pass(&p->clock, 1);
    return weir__log_append_wait(p->log, &batch, WAIT, NULL, NULL);
}

/* Another partition's batches, until the log has come to this segment. */
static void fill_to(struct place *p, uint64_t number)
{
    while (p->log->control.last_segment < number) assert_int_equal(append(p, 0), 0);
}

static void expect_head(const struct weir__head *h, const struct weir__head *as)
{
    assert_int_equal(h->next_sequence, as->next_sequence);
    assert_int_equal(h->last_offset, as->last_offset);
    assert_int_equal(h->last_time_ms, as->last_time_ms);
}

/* Where the last partition stands, which has one event. */
static struct weir__head last_of(struct place *p)
{
    struct weir__log_partition_info info;

    assert_int_equal(weir__log_partition_info(p->log, LAST, &info, NULL), 0);
    return (struct weir__head){info.next_sequence, info.last_offset, info.last_time_ms};
}

static void heads_of(struct place *p, uint64_t number, struct weir__head out[PARTITIONS])
{
    struct weir__segment *seg;

    memset(out, 0x77, PARTITIONS * sizeof *out);
    weir__mutex_lock(&p->log->lock);
    seg = weir__log_segment_numbered(p->log, number);
    assert_non_null(seg);
    weir__log_pin(seg);
    assert_int_equal(weir__log_heads_of(p->log, seg, out, NULL), 0);
    weir__log_unpin(p->log, seg);
    weir__mutex_unlock(&p->log->lock);
}

/* At a roll, at the next opening, and when what came before has expired. */
static void times_are_kept_whole(void **state)
{
    const struct weir__head none = {0};
    struct weir__head last, heads[PARTITIONS];
    struct place *p = *state;

    assert_int_equal(append(p, LAST), 0);
    last = last_of(p);
    assert_int_equal(last.last_time_ms, FAR_MS + 1);
    close_log(p);
    open_log(p);
    last = last_of(p);
    assert_int_equal(last.last_time_ms, FAR_MS + 1);
    fill_to(p, 4);
    expect_head(&p->log->control.heads[LAST], &last);
    expect_head(&p->log->start_heads[LAST], &last);
    heads_of(p, 1, heads);
    for (uint32_t i = 0; i < PARTITIONS; i++) expect_head(&heads[i], &none);
    for (uint64_t n = 2; n <= 4; n++) {
        heads_of(p, n, heads);
        expect_head(&heads[LAST], &last);
    }
    weir__log_set_retention(p->log, -1, 1);
    while (p->log->segments[0]->h.number == 1) assert_int_equal(weir__log_step(p->log, NULL), 0);
    expect_head(&p->log->begin_heads[LAST], &last);
    close_log(p);
    open_log(p);
    expect_head(&p->log->start_heads[LAST], &last);
    expect_head(&p->log->begin_heads[LAST], &last);
    last = last_of(p);
    assert_int_equal(last.last_time_ms, FAR_MS + 1);
}

/* What is taken back for want of space leaves the heads as they were. */
static void what_is_taken_back_changes_nothing(void **state)
{
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};
    struct place *p = *state;
    struct weir__head last;

    assert_int_equal(append(p, LAST), 0);
    last = last_of(p);
    p->clock.wall_ms += INT64_C(1) << 56;
    simfs_fail(p->disk, &full);
    assert_int_equal(append(p, LAST), WEIR_ENOSPACE);
    simfs_fail(p->disk, NULL);
    expect_head(&p->log->heads[LAST], &last);
    expect_head(&p->log->durable_heads[LAST], &last);
}

/* The second header of a segment ends its file. */
static void wipe_headers(struct place *p, const char *path)
{
    static const uint8_t zeros[BLOCK];

    simfs_poke(p->disk, path, zeros, BLOCK, 0);
    simfs_poke(p->disk, path, zeros, BLOCK, simfs_size(p->disk, path) - BLOCK);
}

/* Where a segment without a header begins is worked out, and the same when it is asked for again. */
static void what_was_worked_out_is_kept_whole(void **state)
{
    struct weir__head last, first[PARTITIONS], again[PARTITIONS];
    struct place *p = *state;
    char path[64];

    assert_int_equal(append(p, LAST), 0);
    last = last_of(p);
    fill_to(p, 4);
    snprintf(path, sizeof path, "log/%s", weir__log_segment_numbered(p->log, 2)->name);
    close_log(p);
    wipe_headers(p, path);
    open_log(p);
    assert_true(weir__log_segment_numbered(p->log, 2)->headless);
    heads_of(p, 2, first);
    expect_head(&first[LAST], &last);
    assert_non_null(weir__log_segment_numbered(p->log, 2)->start);
    heads_of(p, 2, again);
    for (uint32_t i = 0; i < PARTITIONS; i++) expect_head(&again[i], &first[i]);
}

/* Both copies of the heads say of the last partition what cannot be. */
static void forge_heads(struct place *p, const char *path, const struct weir__head *last)
{
    uint8_t heads[PARTITIONS * WEIR__HEAD_BYTES] = {0};
    struct weir__segment_header h;
    struct weir__file *f = NULL;
    int bad;

    weir__heads_encode(last, 1, heads + (size_t)LAST * WEIR__HEAD_BYTES);
    assert_int_equal(p->o.fs->ops->open(p->o.fs, path, 0, &f, NULL), 0);
    assert_int_equal(weir__segment_read_header(f, p->o.hub_id, &h, &bad, NULL), 0);
    assert_int_equal(weir__segment_write_header(f, &h, p->o.hub_id, heads, NULL), 0);
    assert_int_equal(f->ops->sync(f, NULL), 0);
    weir__file_close(f);
}

static void nothing_is_left_of_heads_that_are_not_believed(void **state)
{
    const struct weir__head none = {0},
                            impossible[] = {{0, 0, -1}, {UINT64_MAX, UINT64_MAX, INT64_MAX}};
    struct place *p = *state;
    struct weir__head last;

    assert_int_equal(append(p, 0), 0);
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        close_log(p);
        forge_heads(p, "log/00000001.seg", &impossible[i]);
        open_log(p);
        last = last_of(p);
        expect_head(&last, &none);
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(times_are_kept_whole),
        CASE(what_is_taken_back_changes_nothing),
        CASE(what_was_worked_out_is_kept_whole),
        CASE(nothing_is_left_of_heads_that_are_not_believed),
    };

    return cmocka_run_group_tests_name("heads", tests, NULL, NULL);
}
