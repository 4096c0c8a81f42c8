/* headers_test.c - what a header may say. Each of these has a good checksum and one number that no
 * log comes to: it is not believed. The largest and the smallest number that may be there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/batch.h"
#include "log/control.h"
#include "log/segment.h"
#include "support/simfs.h"

#define HUB 77u
#define FILE_BYTES 65536u
#define PARTITIONS 3u
#define TIME_MAX (INT64_C(1) << 53)
#define BLOCK WEIR__FS_BLOCK

#define SAYS(expected, change)                                                                     \
    do {                                                                                           \
        h = plain;                                                                                 \
        change;                                                                                    \
        if (TRY != (expected)) fail_msg("%s", #change);                                            \
    } while (0)

static struct weir__file *make_file(struct simfs *disk)
{
    struct weir__file *f = NULL;
    struct weir__fs *fs = simfs_fs(disk);

    assert_int_equal(fs->ops->open(fs, "f", WEIR__FS_CREATE, &f, NULL), 0);
    assert_int_equal(f->ops->allocate(f, FILE_BYTES, NULL), 0);
    return f;
}

/* ---- batches ---- */

static bool believed(const struct weir__batch_header *h)
{
    struct weir__batch_stamp stamp = weir__batch_stamp(HUB, 5), other = weir__batch_stamp(HUB, 6);
    struct weir__batch_header out;
    uint8_t bytes[WEIR__BATCH_HEADER_BYTES];

    weir__batch_encode(h, &stamp, bytes);
    if (weir__batch_decode(bytes, &other, &out)) fail_msg("a header of another hub");
    return weir__batch_decode(bytes, &stamp, &out);
}

static void batches(void **state)
{
    const struct weir__batch_header plain = {
        .position = 5000, .watermark = 5000, .body_bytes = 100, .count = 100, .partition = 1};
    struct weir__batch_header h;

    (void)state;
#define TRY believed(&h)
    SAYS(true, (void)0);
    SAYS(false, h.count = 0);
    SAYS(true, h.count = 1);
    SAYS(false, h.count = 101);
    SAYS(true, h.body_bytes = WEIR__LOG_BATCH_BYTES_MAX);
    SAYS(false, h.body_bytes = WEIR__LOG_BATCH_BYTES_MAX + 1);
    SAYS(false, h.watermark = 5001);
    SAYS(true, h.watermark = 0);
    SAYS(false, h.time_ms = -1);
    SAYS(true, h.time_ms = INT64_MAX);
    SAYS(true, h.sequence = WEIR__LOG_SEQUENCE_MAX - 1);
    SAYS(false, h.sequence = WEIR__LOG_SEQUENCE_MAX);
#undef TRY
}

/* Whichever byte of a header is another, it is none; this one's stamp and checksum are what tell. */
static void a_byte_of_a_batch_is_another(void **state)
{
    const struct weir__batch_header h = {
        .position = 5000, .watermark = 5000, .body_bytes = 100, .count = 100, .partition = 1};
    struct weir__batch_stamp stamp = weir__batch_stamp(HUB, 5);
    uint8_t bytes[WEIR__BATCH_HEADER_BYTES];
    struct weir__batch_header out;

    (void)state;
    weir__batch_encode(&h, &stamp, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        if (weir__batch_decode(bytes, &stamp, &out)) fail_msg("byte %zu", i);
        bytes[i] ^= 1;
    }
    assert_true(weir__batch_decode(bytes, &stamp, &out));
}

/* The count of very many events is not told exactly; never too few. */
static void neighbours(void **state)
{
    static const uint32_t counts[] = {0, 1, 65534, 65535, 65536, 8 * 1000000};
    struct weir__batch_stamp stamp = weir__batch_stamp(HUB, 5);

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct weir__batch_header out, h = {.body_bytes = 1, .count = 1};
        uint8_t bytes[WEIR__BATCH_HEADER_BYTES];

        h.before =
            (struct weir__batch_before){WEIR__LOG_PARTITIONS_MAX - 1, 8 * 1000000, counts[i]};
        weir__batch_encode(&h, &stamp, bytes);
        assert_true(weir__batch_decode(bytes, &stamp, &out));
        assert_int_equal(out.before.partition, WEIR__LOG_PARTITIONS_MAX - 1);
        assert_int_equal(out.before.bytes, 8 * 1000000);
        assert_int_equal(out.before.count, counts[i] < 65535 ? counts[i] : 8 * 1000000);
    }
}

/* ---- segments ---- */

static int read_segment(const struct weir__segment_header *h, uint64_t hub_id, uint64_t longer)
{
    struct simfs *disk = simfs_new();
    struct weir__file *f = make_file(disk);
    uint8_t *heads = calloc(1, h->heads_bytes + 1);
    struct weir__segment_header out;
    int bad = 0, rc;

    assert_int_equal(f->ops->allocate(f, h->capacity + longer, NULL), 0);
    assert_int_equal(weir__segment_write_header(f, h, hub_id, heads, NULL), 0);
    rc = weir__segment_read_header(f, HUB, &out, &bad, NULL);
    assert_int_equal(bad, rc == 0 ? 0 : 2);
    if (rc == 0) assert_memory_equal(&out, h, sizeof out);
    free(heads);
    weir__file_close(f);
    simfs_free(disk);
    return rc;
}

static struct weir__segment_header plain_segment(void)
{
    struct weir__segment_header h;

    memset(&h, 0, sizeof h); /* also what lies between the members */
    h.version = WEIR__SEGMENT_VERSION;
    h.partitions = PARTITIONS;
    h.secret = 5;
    h.number = 1;
    h.base = h.previous_end = WEIR__LOG_ORIGIN;
    h.capacity = FILE_BYTES;
    h.epoch = 9;
    h.heads_bytes = weir__segment_heads_bytes(PARTITIONS);
    h.producers = 4;
    return h;
}

static void give_partitions(struct weir__segment_header *h, uint32_t partitions)
{
    h->partitions = partitions;
    h->heads_bytes = weir__segment_heads_bytes(partitions);
    h->capacity = (uint64_t)2 * FILE_BYTES;
}

static void segments(void **state)
{
    const struct weir__segment_header plain = plain_segment();
    struct weir__segment_header h;
    uint64_t hub = HUB, longer = 0;

    (void)state;
#define TRY read_segment(&h, hub, longer)
    SAYS(0, (void)0);
    SAYS(WEIR_ECORRUPT, hub = HUB + 1);
    hub = HUB;
    SAYS(WEIR_ECORRUPT, h.partitions = 0);
    SAYS(WEIR_ECORRUPT, h.partitions = PARTITIONS + 1); /* heads are missing */
    SAYS(WEIR_ECORRUPT, h.heads_bytes += 1);
    SAYS(0, give_partitions(&h, WEIR__LOG_PARTITIONS_MAX));
    SAYS(WEIR_ECORRUPT, give_partitions(&h, WEIR__LOG_PARTITIONS_MAX + 1));
    SAYS(WEIR_ECORRUPT, h.secret = 0);
    SAYS(WEIR_ECORRUPT, h.keep.keep_ms = -1);
    SAYS(WEIR_ECORRUPT, h.keep.off_ms = -1);
    SAYS(WEIR_ECORRUPT, h.time_ms = -1);
    SAYS(0, h.number = 0); /* a spare */
    SAYS(0, h.number = WEIR__LOG_SEGMENT_NUMBER_MAX);
    SAYS(WEIR_ECORRUPT, h.number = WEIR__LOG_SEGMENT_NUMBER_MAX + 1);
    SAYS(WEIR_ECORRUPT, h.base = h.previous_end = plain.base - BLOCK);
    SAYS(0, h.base = WEIR__LOG_POSITION_MAX);
    SAYS(WEIR_ECORRUPT, h.base = WEIR__LOG_POSITION_MAX + BLOCK);
    SAYS(WEIR_ECORRUPT, h.base += 8);
    SAYS(0, h.previous_end = 0);
    SAYS(WEIR_ECORRUPT, h.previous_end = h.base + 1);
    SAYS(0, h.capacity = 5 * BLOCK); /* two headers with heads, and a block */
    SAYS(WEIR_ECORRUPT, h.capacity = 4 * BLOCK);
    SAYS(WEIR_ECORRUPT, h.capacity += 8);
    SAYS(0, longer = BLOCK); /* the copy at the front is good */
#undef TRY
}

/* What a newer weir wrote has a checksum of its own: it is told by its version, when both copies have the
 * same. */
static void segments_of_a_newer_weir(void **state)
{
    static const struct {
        uint8_t first, second;
        int rc;
    } rows[] = {
        {WEIR__SEGMENT_VERSION + 1, WEIR__SEGMENT_VERSION + 1, WEIR_EVERSION},
        {WEIR__SEGMENT_VERSION + 1, WEIR__SEGMENT_VERSION + 2, WEIR_ECORRUPT},
        {WEIR__SEGMENT_VERSION - 1, WEIR__SEGMENT_VERSION - 1, WEIR_ECORRUPT},
        {WEIR__SEGMENT_VERSION + 1, WEIR__SEGMENT_VERSION, 0}, /* the other copy is good */
    };
    const struct weir__segment_header h = plain_segment();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct simfs *disk = simfs_new();
        struct weir__file *f = make_file(disk);
        uint8_t heads[256] = {0};
        struct weir__segment_header out;
        int bad;
        assert_in_range(h.heads_bytes, 1, sizeof heads);
        assert_int_equal(weir__segment_write_header(f, &h, HUB, heads, NULL), 0);
        simfs_poke(disk, "f", &rows[i].first, 1, 8);
        simfs_poke(disk, "f", &rows[i].second, 1, FILE_BYTES - BLOCK + 8);
        assert_int_equal(weir__segment_read_header(f, HUB, &out, &bad, NULL), rows[i].rc);
        assert_int_equal(bad, rows[i].rc == 0 ? 1 : 2);
        weir__file_close(f);
        simfs_free(disk);
    }
}

/* Of a partition that the segment does not know nothing is told, and of none too many: what lies behind
 * the heads in the file is not one, and what lies behind those that are wanted is not touched. */
static void heads_of_more_or_fewer_partitions(void **state)
{
    const struct weir__head all[PARTITIONS] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, none = {0};
    const struct weir__segment_header h = plain_segment();
    struct simfs *disk = simfs_new();
    struct weir__file *f = make_file(disk);
    uint8_t heads[PARTITIONS * WEIR__HEAD_BYTES], other[2 * WEIR__HEAD_BYTES];
    struct weir__head out[PARTITIONS + 3], fill;

    (void)state;
    memset(other, 0x11, sizeof other);
    memset(&fill, 0x77, sizeof fill);
    weir__heads_encode(all, PARTITIONS, heads);
    assert_int_equal(weir__segment_write_header(f, &h, HUB, heads, NULL), 0);
    simfs_poke(disk, "f", other, sizeof other, BLOCK + sizeof heads);
    simfs_poke(disk, "f", other, sizeof other, FILE_BYTES - 2 * BLOCK + sizeof heads);
    for (uint32_t wanted = 1; wanted < PARTITIONS + 3; wanted++) {
        for (uint32_t i = 0; i < PARTITIONS + 3; i++) out[i] = fill;
        assert_int_equal(weir__segment_read_heads(f, &h, wanted, out, NULL, NULL), 0);
        for (uint32_t i = 0; i < PARTITIONS + 3; i++) {
            const struct weir__head *as = i >= wanted ? &fill : i < PARTITIONS ? &all[i] : &none;

            assert_memory_equal(&out[i], as, sizeof *as);
        }
    }
    weir__file_close(f);
    simfs_free(disk);
}

static void names_of_segments(void **state)
{
    static const struct {
        const char *name;
        bool is;
        uint64_t number;
    } cases[] = {
        {"00000000.seg", true, 0},
        {"00000019.seg", true, 19},
        {"90000000.seg", true, 90000000},
        {"0000001.seg", false, 0},
        {"123456789.seg", true, 123456789},
        {"1234567890123456789.seg", true, 1234567890123456789},
        {"12345678901234567890.seg", false, 0},
        {"0000000/.seg", false, 0},
        {"0000000:.seg", false, 0},
        {"00000001.segs", false, 0},
        {"00000001.se", false, 0},
        {"00000001", false, 0},
        {"", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 0;

        if (weir__segment_named(cases[i].name, &number) != cases[i].is)
            fail_msg("%s", cases[i].name);
        if (cases[i].is) assert_int_equal(number, cases[i].number);
    }
}

/* ---- the control file ---- */

static int read_control(const struct weir__control *written)
{
    struct simfs *disk = simfs_new();
    struct weir__file *f = make_file(disk);
    struct weir__control c = *written, out = {.hub_id = HUB};
    struct weir_error err = {0};
    int bad = 0, rc;

    for (int copy = 0; copy < 2; copy++)
        assert_int_equal(weir__control_write(f, &c, true, NULL), 0);
    rc = weir__control_read(f, &out, &bad, &err);
    if (rc == 0) {
        assert_int_equal(bad, 0);
        assert_int_equal(out.generation, 2);
        assert_int_equal(out.first_segment, c.first_segment);
        assert_int_equal(out.last_segment, c.last_segment);
        assert_int_equal(out.watermark, c.watermark);
        assert_int_equal(out.epoch_start, c.epoch_start);
        assert_int_equal(out.epoch, c.epoch);
        assert_memory_equal(&out.keep, &c.keep, sizeof c.keep);
        assert_memory_equal(&out.active, &c.active, sizeof c.active);
        assert_memory_equal(out.heads, c.heads, PARTITIONS * sizeof *c.heads);
    } else if (rc == WEIR_ECORRUPT) {
        assert_int_equal(bad, 2);
        assert_string_equal(err.text, "both copies in the control file are damaged");
    }
    weir__control_fini(&out);
    weir__file_close(f);
    simfs_free(disk);
    return rc;
}

static void controls(void **state)
{
    struct weir__head heads[PARTITIONS] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
    const struct weir__control plain = {.hub_id = HUB,
                                        .secret = 5,
                                        .first_segment = 3,
                                        .last_segment = 3,
                                        .watermark = WEIR__LOG_ORIGIN,
                                        .epoch_start = 11,
                                        .epoch = 12,
                                        .partitions = PARTITIONS,
                                        .keep = {13, 14, 15, 16, 17, 18},
                                        .active = {19, 20, 21, 22},
                                        .heads = heads};
    struct weir__control h;

    (void)state;
#define TRY read_control(&h)
    SAYS(0, (void)0);
    SAYS(WEIR_EINVAL, h.hub_id = HUB + 1);
    SAYS(WEIR_ECORRUPT, h.first_segment = 0);
    SAYS(0, h.first_segment = 1);
    SAYS(WEIR_ECORRUPT, h.first_segment = 4);
    SAYS(0, h.last_segment = WEIR__LOG_SEGMENT_NUMBER_MAX);
    SAYS(WEIR_ECORRUPT, h.last_segment = WEIR__LOG_SEGMENT_NUMBER_MAX + 1);
    SAYS(WEIR_ECORRUPT, h.watermark = WEIR__LOG_ORIGIN - 1);
    SAYS(0, h.watermark = WEIR__LOG_POSITION_MAX);
    SAYS(WEIR_ECORRUPT, h.watermark = WEIR__LOG_POSITION_MAX + 1);
    SAYS(0, h.active.base = WEIR__LOG_POSITION_MAX);
    SAYS(WEIR_ECORRUPT, h.active.base = WEIR__LOG_POSITION_MAX + 1);
    SAYS(0, h.active.capacity = WEIR__LOG_POSITION_MAX);
    SAYS(WEIR_ECORRUPT, h.active.capacity = WEIR__LOG_POSITION_MAX + 1);
    SAYS(0, h.epoch = UINT32_MAX - WEIR__CONTROL_EPOCH_STEP - 1);
    SAYS(WEIR_ECORRUPT, h.epoch = UINT32_MAX - WEIR__CONTROL_EPOCH_STEP);
    SAYS(0, h.keep.keep_ms = TIME_MAX);
    SAYS(WEIR_ECORRUPT, h.keep.keep_ms = TIME_MAX + 1);
    SAYS(WEIR_ECORRUPT, h.keep.keep_ms = -1);
    SAYS(WEIR_ECORRUPT, h.keep.off_ms = TIME_MAX + 1);
    SAYS(WEIR_ECORRUPT, h.keep.off_ms = -1);
    SAYS(WEIR_ECORRUPT, h.keep.owed_ms = TIME_MAX + 1);
    SAYS(WEIR_ECORRUPT, h.keep.owed_ms = -1);
    heads[PARTITIONS - 1].next_sequence = WEIR__LOG_SEQUENCE_MAX;
    SAYS(0, (void)0);
    heads[PARTITIONS - 1].next_sequence++;
    SAYS(WEIR_ECORRUPT, (void)0);
    heads[PARTITIONS - 1] = (struct weir__head){.last_time_ms = -1};
    SAYS(WEIR_ECORRUPT, (void)0);
#undef TRY
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(segments),
        cmocka_unit_test(segments_of_a_newer_weir),
        cmocka_unit_test(a_byte_of_a_batch_is_another),
        cmocka_unit_test(heads_of_more_or_fewer_partitions),
        cmocka_unit_test(names_of_segments),
        cmocka_unit_test(controls),
    };

    return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
