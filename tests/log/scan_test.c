/* scan_test.c - walking a segment that is larger than what is read of it at once: with nothing but its
 * batches to go by, and with one of them bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/backup.h"
#include "log/state.h"
#include "support/simfs.h"

#define WAIT weir__deadline_ns(20000)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define FRONT 8192u
#define SEGMENT "log/00000001.seg"
#define CONTROL "log/control"

/* Bytes in the log. The first 4 MiB from the first batch on, which are read at once, end within the
 * header of the third. */
static const uint32_t sizes[] = {3 * MIB, 1 * MIB - 40, 88, 4 * KIB,   1 * MIB + 8, 1 * MIB,
                                 88,      300 * KIB,    88, 700 * KIB, 16 * KIB,    8 * KIB};
#define BATCHES (sizeof sizes / sizeof sizes[0])

struct world {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    uint64_t at[BATCHES + 1]; /* in the file */
};

static void append_all(struct world *w)
{
    uint8_t *body = malloc(3 * MIB);
    struct weir__log *log;

    assert_non_null(body);
    for (size_t i = 0; i < 3 * MIB; i++) body[i] = (uint8_t)(i % 251);
    assert_int_equal(weir__log_create(&w->o, NULL), 0);
    assert_int_equal(weir__log_open(&log, &w->o, NULL), 0);
    w->at[0] = FRONT;
    for (size_t i = 0; i < BATCHES; i++) {
        struct weir__log_batch b = {.count = 1,
                                    .body = {weir__bytes_of(body + i,
                                                            sizes[i] - WEIR__BATCH_HEADER_BYTES)}};
        struct weir__log_receipt receipt = {0};

        assert_int_equal(weir__log_append_wait(log, &b, WAIT, &receipt, NULL), 0);
        assert_int_equal(receipt.offset - WEIR__LOG_ORIGIN, w->at[i]);
        w->at[i + 1] = w->at[i] + sizes[i];
    }
    assert_int_equal(weir__log_close(log, NULL), 0);
    free(body);
}

/* The control file is as it was before the first batch, as after the end of a process. */
static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);
    struct weir__control c = {.hub_id = 1};
    struct weir__file *f = NULL;
    int bad;

    w->disk = simfs_new();
    w->clock = (struct simclock){.wall_ms = 1700000000000, .mono_ms = 1000};
    w->o = (struct weir__log_options){.fs = simfs_fs(w->disk),
                                      .clock = simclock(&w->clock),
                                      .dir = "log",
                                      .hub_id = 1,
                                      .partitions = 1,
                                      .batch_bytes_max = 4 * MIB,
                                      .segment_bytes_min = 8 * MIB,
                                      .segment_bytes_max = 8 * MIB,
                                      .retain_ms = -1,
                                      .no_threads = true};
    append_all(w);
    assert_int_equal(w->o.fs->ops->open(w->o.fs, CONTROL, 0, &f, NULL), 0);
    assert_int_equal(weir__control_read(f, &c, &bad, NULL), 0);
    c.watermark = c.epoch_start = WEIR__LOG_ORIGIN + FRONT;
    c.heads[0] = (struct weir__head){0};
    for (int copy = 0; copy < 2; copy++)
        assert_int_equal(weir__control_write(f, &c, true, NULL), 0);
    weir__control_fini(&c);
    weir__file_close(f);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    simfs_free(w->disk);
    test_free(w);
    return 0;
}

/* Opens a copy of the disk; this byte of the batch `bad` is spoilt first. */
static void open_copy(struct world *w, size_t bad, uint64_t byte, struct simfs **disk,
                      struct weir__log **log)
{
    struct weir__log_options o = w->o;
    struct weir_error err = {0};

    *disk = simfs_clone(w->disk);
    o.fs = simfs_fs(*disk);
    if (bad < BATCHES) simfs_flip(*disk, SEGMENT, (w->at[bad] + byte) * 8);
    if (weir__log_open(log, &o, &err) != 0) fail_msg("%s", err.text);
}

static void all_of_it_is_found(void **state)
{
    struct world *w = *state;
    struct weir__log_stats stats;
    struct weir__log *log;
    struct simfs *disk;

    open_copy(w, BATCHES, 0, &disk, &log);
    weir__log_stats(log, &stats);
    assert_int_equal(stats.damaged_ranges, 0);
    assert_int_equal(stats.stored_bytes, w->at[BATCHES] - FRONT);
    assert_int_equal(log->visible - WEIR__LOG_ORIGIN, w->at[BATCHES]);
    assert_int_equal(log->heads[0].next_sequence, BATCHES);
    assert_int_equal(weir__log_close(log, NULL), 0);
    simfs_free(disk);
}

/* A backup of a log that is in use finds the same end. */
static void a_backup_finds_all_of_it(void **state)
{
    struct world *w = *state;
    struct weir__backup_log from = {w->o.fs, "log", 1};
    struct weir__backup_moment m;

    assert_int_equal(weir__backup_moment_take(&from, &m, NULL), 0);
    assert_int_equal(m.end - WEIR__LOG_ORIGIN, w->at[BATCHES]);
    assert_int_equal(m.walked, BATCHES);
    assert_int_equal(m.heads[0].next_sequence, BATCHES);
    weir__backup_moment_fini(&m);
}

/* The range that is lost is just that batch: what lies behind it proves that it was there. */
static void one_bad_batch_is_one_range(void **state)
{
    const uint64_t bytes[] = {20, WEIR__BATCH_HEADER_BYTES}; /* of the header, of the body */
    struct world *w = *state;

    for (size_t i = 0; i + 1 < BATCHES; i++)
        for (int k = 0; k < 1 + (i % 4 == 1); k++) {
            struct weir__log *log;
            struct simfs *disk;

            open_copy(w, i, bytes[k], &disk, &log);
            assert_int_equal(log->damage_count, 1);
            assert_int_equal(log->damages[0].at, w->at[i]);
            assert_int_equal(log->damages[0].to - log->damages[0].from, sizes[i]);
            assert_int_equal(log->visible - WEIR__LOG_ORIGIN, w->at[BATCHES]);
            assert_int_equal(log->heads[0].next_sequence, BATCHES);
            assert_int_equal(weir__log_close(log, NULL), 0);
            simfs_free(disk);
        }
}

/* ---- batches that were written by hand ---- */

#define HAND_BYTES 65536u
#define HAND_BATCHES 3

struct by_hand {
    uint32_t epoch, partition;
    uint64_t sequence;
    uint32_t count;
};

static int count_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    (void)err;
    assert_true(b->body_good);
    ++*(int *)user;
    return 0;
}

static int no_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    (void)user, (void)from, (void)to, (void)err;
    fail_msg("nothing proves that anything was here");
    return 0;
}

static struct weir__segment segment_by_hand(uint16_t version, uint64_t secret)
{
    return (struct weir__segment){.h = {.version = version,
                                        .partitions = 2,
                                        .base = WEIR__LOG_ORIGIN,
                                        .capacity = HAND_BYTES},
                                  .stamp = weir__batch_stamp(1, secret),
                                  .data = WEIR__LOG_ORIGIN + FRONT,
                                  .end = WEIR__LOG_ORIGIN + HAND_BYTES};
}

static struct weir__file *write_by_hand(struct simfs *disk, const struct weir__segment *seg,
                                        const struct by_hand *batches)
{
    struct weir__fs *fs = simfs_fs(disk);
    struct weir__file *f = NULL;

    assert_int_equal(fs->ops->open(fs, "f", WEIR__FS_CREATE, &f, NULL), 0);
    assert_int_equal(f->ops->allocate(f, HAND_BYTES, NULL), 0);
    for (uint64_t i = 0; i < HAND_BATCHES; i++) {
        const struct by_hand *b = &batches[i];
        static const uint8_t body[8];
        struct weir__batch_header h = {.position = seg->data + i * weir__batch_bytes(sizeof body),
                                       .watermark = seg->data,
                                       .sequence = b->sequence,
                                       .epoch = b->epoch,
                                       .body_bytes = sizeof body,
                                       .body_crc = weir__crc32c(0, body, sizeof body),
                                       .count = b->count,
                                       .partition = (uint16_t)b->partition};
        uint8_t bytes[WEIR__BATCH_HEADER_BYTES];

        weir__batch_encode(&h, &seg->stamp, bytes);
        simfs_poke(disk, "f", bytes, sizeof bytes, h.position - seg->h.base);
    }
    return f;
}

/* A batch whose epoch is over, or whose numbers were given already, is what a file that is used again
 * held before: the walk ends in front of it. */
static void what_was_there_before_is_not_walked(void **state)
{
    static const struct {
        struct by_hand batches[HAND_BATCHES];
        int good;
        uint64_t next[2];
        uint32_t epoch;
    } cases[] = {
        {{{5, 0, 0, 3}, {5, 0, 3, 1}, {6, 0, 4, 2}}, 3, {6, 0}, 6},
        {{{5, 0, 0, 3}, {4, 0, 3, 1}, {4, 0, 4, 2}}, 1, {3, 0}, 5},
        {{{5, 0, 0, 3}, {5, 0, 2, 1}, {5, 0, 2, 1}}, 1, {3, 0}, 5},
        {{{5, 0, 0, 3}, {5, 1, 0, 2}, {5, 1, 2, 2}}, 3, {3, 4}, 5},
        {{{5, 0, 0, 3}, {5, 1, 0, 2}, {5, 1, 1, 2}}, 2, {3, 2}, 5},
        {{{5, 0, 9, 3}, {5, 0, 20, 2}, {5, 0, 22, 1}}, 3, {23, 0}, 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__segment seg = segment_by_hand(WEIR__SEGMENT_VERSION, 5);
        struct weir__scan scan = weir__scan_sealed(&seg, 0);
        int good = 0;
        struct weir__scan_calls calls = {count_batch, no_damage, &good};
        struct simfs *disk = simfs_new();
        enum weir__scan_end how;
        uint64_t end;

        scan.file = write_by_hand(disk, &seg, cases[i].batches);
        assert_int_equal(weir__scan_init(&scan, NULL), 0);
        assert_int_equal(weir__scan_run(&scan, seg.data, &calls, &end, &how, NULL), 0);
        assert_int_equal(good, cases[i].good);
        assert_int_equal(end - seg.data, (uint64_t)good * weir__batch_bytes(8));
        assert_int_equal(how, WEIR__SCAN_END);
        assert_int_equal(scan.next[0], cases[i].next[0]);
        assert_int_equal(scan.next[1], cases[i].next[1]);
        assert_int_equal(scan.last_epoch, cases[i].epoch);
        weir__scan_fini(&scan);
        weir__file_close(scan.file);
        simfs_free(disk);
    }
}

/* A batch of a later epoch than the control file's shows that that is an older copy, behind its
 * watermark; of format version 1 anybody can have written it. */
static void a_later_epoch_is_walked_where_nobody_can_forge_it(void **state)
{
    static const struct by_hand batches[] = {{5, 0, 0, 3}, {6, 0, 3, 1}, {7, 0, 4, 2}};
    static const struct {
        uint16_t version;
        uint64_t from; /* later epochs may begin here, behind the first byte for batches */
        int good;
        uint32_t epoch;
        uint64_t later_at;
    } cases[] = {{2, 0, 3, 7, 88},
                 {2, 88, 3, 7, 88},
                 {2, 96, 1, 7, 176},
                 {1, 0, 3, 7, 0}, /* nobody asks for that */
                 {1, UINT64_MAX / 2, 1, 5, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__segment seg = segment_by_hand(cases[i].version, cases[i].version == 2 ? 5 : 0);
        struct weir__scan scan = weir__scan_sealed(&seg, 0);
        int good = 0;
        struct weir__scan_calls calls = {count_batch, no_damage, &good};
        struct simfs *disk = simfs_new();
        enum weir__scan_end how;
        uint64_t end;

        scan.file = write_by_hand(disk, &seg, batches);
        scan.proof = scan.epoch_start = seg.data;
        scan.epoch = 5;
        scan.later_from = seg.data + cases[i].from;
        assert_int_equal(weir__scan_init(&scan, NULL), 0);
        assert_int_equal(weir__scan_run(&scan, seg.data, &calls, &end, &how, NULL), 0);
        assert_int_equal(good, cases[i].good);
        assert_int_equal(scan.found_epoch, cases[i].epoch);
        assert_int_equal(scan.later_at, cases[i].later_at ? seg.data + cases[i].later_at : 0);
        weir__scan_fini(&scan);
        weir__file_close(scan.file);
        simfs_free(disk);
    }
}

static int pass_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    (void)user, (void)from, (void)to, (void)err;
    return 0;
}

/* Behind a bad batch of the first format version a header may claim as many events as there are bad bytes,
 * and no more. Later versions have other means. */
static void a_gap_of_version_1_hides_no_more_than_fits(void **state)
{
    static const struct {
        uint16_t version;
        uint64_t lost; /* events that the header behind the bad bytes tells of */
        int good;
    } cases[] = {{1, 88, 2}, {1, 89, 1}, {2, 89, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct by_hand batches[] = {{5, 0, 0, 3}, {5, 0, 3, 1}, {5, 0, 3 + cases[i].lost, 1}};
        const struct weir__head start[2] = {{0}};
        struct weir__segment seg = segment_by_hand(cases[i].version, 0);
        struct weir__scan scan = weir__scan_sealed(&seg, 0);
        int good = 0;
        struct weir__scan_calls calls = {count_batch, pass_damage, &good};
        struct simfs *disk = simfs_new();
        enum weir__scan_end how;
        uint64_t end;

        assert_int_equal(weir__batch_bytes(8), 88);
        scan.file = write_by_hand(disk, &seg, batches);
        scan.start = start;
        scan.proof = seg.data + HAND_BATCHES * weir__batch_bytes(8);
        simfs_flip(disk, "f", (FRONT + weir__batch_bytes(8)) * 8);
        assert_int_equal(weir__scan_init(&scan, NULL), 0);
        assert_int_equal(weir__scan_run(&scan, seg.data, &calls, &end, &how, NULL), 0);
        assert_int_equal(good, cases[i].good);
        assert_int_equal(end, scan.proof);
        weir__scan_fini(&scan);
        weir__file_close(scan.file);
        simfs_free(disk);
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(all_of_it_is_found),
        CASE(a_backup_finds_all_of_it),
        CASE(one_bad_batch_is_one_range),
        cmocka_unit_test(what_was_there_before_is_not_walked),
        cmocka_unit_test(a_later_epoch_is_walked_where_nobody_can_forge_it),
        cmocka_unit_test(a_gap_of_version_1_hides_no_more_than_fits),
    };

    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
