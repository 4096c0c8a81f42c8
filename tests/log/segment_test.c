/* segment_test.c - the two copies of a segment's header and heads: which of them serves, and what segments of
 * version 1 have in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/producer.h"
#include "log/segment.h"
#include "support/simfs.h"

#define HUB 77u
#define BLOCK WEIR__FS_BLOCK
#define FILE_BYTES 65536u
#define PARTITIONS 3u
#define HEADS_BYTES (PARTITIONS * WEIR__HEAD_BYTES)
#define TIME_MS INT64_C(1700000000000)

struct place {
    struct simfs *disk;
    struct weir__file *file;
    struct weir__segment_header h;
    struct weir__head heads[PARTITIONS];
    struct weir_error err;
};

static void write_segment(struct place *p)
{
    uint8_t heads[HEADS_BYTES];

    weir__heads_encode(p->heads, PARTITIONS, heads);
    assert_int_equal(weir__segment_write_header(p->file, &p->h, HUB, heads, NULL), 0);
}

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof *p);
    struct weir__fs *fs;

    p->disk = simfs_new();
    fs = simfs_fs(p->disk);
    assert_int_equal(fs->ops->open(fs, "f", WEIR__FS_CREATE, &p->file, NULL), 0);
    assert_int_equal(p->file->ops->allocate(p->file, FILE_BYTES, NULL), 0);
    p->h = (struct weir__segment_header){.version = 2,
                                         .partitions = PARTITIONS,
                                         .secret = 5,
                                         .number = 9,
                                         .base = WEIR__LOG_ORIGIN,
                                         .capacity = FILE_BYTES,
                                         .previous_end = WEIR__LOG_ORIGIN,
                                         .time_ms = TIME_MS,
                                         .heads_bytes = HEADS_BYTES};
    for (uint32_t i = 0; i < PARTITIONS; i++)
        p->heads[i] = (struct weir__head){100 + i, 200 + i, 300 + i};
    write_segment(p);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    weir__file_close(p->file);
    simfs_free(p->disk);
    test_free(p);
    return 0;
}

static int read_heads(struct place *p, struct weir__head *out, struct weir__producers *producers)
{
    memset(out, 'x', PARTITIONS * sizeof *out);
    return weir__segment_read_heads(p->file, &p->h, PARTITIONS, out, producers, &p->err);
}

static void damaged(struct place *p)
{
    assert_string_equal(p->err.text, "heads of segment 9 are damaged");
}

/* A byte of each part: header and heads in front, heads and header behind. A copy is good when both of its
 * parts are, and one good copy is enough. */
static void one_good_copy_serves(void **state)
{
    static const uint64_t parts[] = {100, BLOCK + 5, FILE_BYTES - 2 * BLOCK + 5,
                                     FILE_BYTES - BLOCK + 100};
    struct place *p = *state;

    for (unsigned bad = 0; bad < 16; bad++) {
        bool front = (bad & 3) == 0, behind = (bad & 12) == 0;
        struct weir__segment_header h;
        struct weir__head heads[PARTITIONS];
        int count = -1, headers = -1;

        for (int i = 0; i < 4; i++)
            if (bad & 1u << i) simfs_flip(p->disk, "f", 8 * parts[i]);
        assert_int_equal(read_heads(p, heads, NULL), front || behind ? 0 : WEIR_ECORRUPT);
        if (front || behind)
            assert_memory_equal(heads, p->heads, sizeof heads);
        else
            damaged(p);
        assert_int_equal(weir__segment_check_copies(p->file, &p->h, &count, NULL), 0);
        assert_int_equal(count, 2 - front - behind);
        assert_int_equal(weir__segment_read_header(p->file, HUB, &h, &headers, NULL),
                         bad & 1 && bad & 8 ? WEIR_ECORRUPT : 0);
        assert_int_equal(headers, !(bad & 1) ? 0
                                  : bad & 8  ? 2
                                             : 1); /* one that is good is enough */
        for (int i = 0; i < 4; i++)
            if (bad & 1u << i) simfs_flip(p->disk, "f", 8 * parts[i]);
    }
}

/* What the disk does not give is bad, and another error is no answer. */
static void errors_are_no_damage(void **state)
{
    struct place *p = *state;
    struct weir__segment_header h;
    struct weir__head heads[PARTITIONS];
    int count;

    simfs_spoil(p->disk, "f", 0, 1);
    assert_int_equal(read_heads(p, heads, NULL), 0);
    assert_memory_equal(heads, p->heads, sizeof heads);
    assert_int_equal(weir__segment_check_copies(p->file, &p->h, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(weir__segment_read_header(p->file, HUB, &h, &count, NULL), 0);
    assert_int_equal(count, 1);
    simfs_spoil(p->disk, "", 0, 0);
    for (int copy = 0; copy < 2; copy++) {
        struct simfs_fault fault = {.kinds = SIMFS_READ, .at = 1, .rc = WEIR_EBUSY};

        if (copy) simfs_flip(p->disk, "f", 8 * 100);
        fault.at += (uint64_t)copy;
        simfs_fail(p->disk, &fault);
        assert_int_equal(read_heads(p, heads, NULL), WEIR_EBUSY);
        simfs_fail(p->disk, &fault);
        assert_int_equal(weir__segment_check_copies(p->file, &p->h, &count, NULL), WEIR_EBUSY);
        simfs_fail(p->disk, &fault);
        assert_int_equal(weir__segment_read_header(p->file, HUB, &h, &count, NULL), WEIR_EBUSY);
        simfs_fail(p->disk, NULL);
    }
}

/* Heads of a segment of another number are not this one's, nor are more of them. */
static void heads_are_of_their_header(void **state)
{
    struct place *p = *state;
    struct weir__head heads[PARTITIONS];
    int count;

    p->h.number++;
    assert_int_equal(read_heads(p, heads, NULL), WEIR_ECORRUPT);
    assert_string_equal(p->err.text, "heads of segment 10 are damaged");
    assert_int_equal(weir__segment_check_copies(p->file, &p->h, &count, NULL), 0);
    assert_int_equal(count, 2);
    p->h.number--;
    p->h.heads_bytes += WEIR__HEAD_BYTES;
    assert_int_equal(read_heads(p, heads, NULL), WEIR_ECORRUPT);
    damaged(p);
}

/* Of each partition, what no log can have come to. */
static void heads_that_cannot_be_are_not_believed(void **state)
{
    struct place *p = *state;
    struct weir__head heads[PARTITIONS];

    for (uint32_t i = 0; i < PARTITIONS; i++) {
        const struct weir__head good = p->heads[i];

        p->heads[i].next_sequence = WEIR__LOG_SEQUENCE_MAX;
        write_segment(p);
        assert_int_equal(read_heads(p, heads, NULL), 0);
        assert_memory_equal(heads, p->heads, sizeof heads);
        p->heads[i].next_sequence++;
        write_segment(p);
        assert_int_equal(read_heads(p, heads, NULL), WEIR_ECORRUPT);
        assert_string_equal(p->err.text, "heads of segment 9 contradict themselves");
        p->heads[i] = good;
        p->heads[i].last_time_ms = -1;
        write_segment(p);
        assert_int_equal(read_heads(p, heads, NULL), WEIR_ECORRUPT);
        p->heads[i] = good;
    }
}

/* The header in front is enough, however little there is behind it. */
static void a_file_needs_one_header(void **state)
{
    struct place *p = *state;
    struct weir__segment_header h;
    int bad;

    assert_int_equal(p->file->ops->allocate(p->file, BLOCK, NULL), 0);
    assert_int_equal(weir__segment_read_header(p->file, HUB, &h, &bad, NULL), 0);
    assert_int_equal(h.number, 9);
    assert_int_equal(h.capacity, FILE_BYTES);
    assert_int_equal(bad, 0);
    simfs_flip(p->disk, "f", 8 * 100);
    assert_int_equal(weir__segment_read_header(p->file, HUB, &h, &bad, NULL), WEIR_ECORRUPT);
    assert_int_equal(bad, 2);
    assert_int_equal(p->file->ops->allocate(p->file, BLOCK - 1, NULL), 0);
    assert_int_equal(weir__segment_read_header(p->file, HUB, &h, &bad, &p->err), WEIR_ECORRUPT);
    assert_int_equal(bad, 0);
    assert_string_equal(p->err.text, "segment file is only 4095 bytes long");
}

/* ---- version 1 ---- */

#define PRODUCERS 2u

/* Makes both copies those of version 1, which had no secret, and producers behind the heads. */
static void age(struct place *p, const struct weir__producer *producers)
{
    static uint8_t front[2 * BLOCK];
    uint32_t bytes = HEADS_BYTES + PRODUCERS * WEIR__PRODUCER_BYTES;

    assert_int_equal(simfs_peek(p->disk, "f", front, sizeof front, 0), sizeof front);
    for (uint32_t i = 0; i < PRODUCERS; i++)
        weir__producer_encode(&producers[i], producers[i].used + 3,
                              front + BLOCK + HEADS_BYTES + (size_t)i * WEIR__PRODUCER_BYTES);
    weir__store32(front + 8, 1);
    memset(front + 80, 0, 8);
    weir__store32(front + 68, bytes);
    weir__store32(front + 72, weir__crc32c(0, front + BLOCK, bytes));
    weir__store32(front + 4, weir__crc32c(0, front + 8, BLOCK - 8));
    simfs_poke(p->disk, "f", front, sizeof front, 0);
    simfs_poke(p->disk, "f", front + BLOCK, BLOCK, FILE_BYTES - 2 * BLOCK);
    simfs_poke(p->disk, "f", front, BLOCK, FILE_BYTES - BLOCK);
}

static void expect_producer(const struct weir__producers *all, const struct weir__producer *want)
{
    const struct weir__producer *got = weir__producers_find(all, want->partition, want->id);

    assert_non_null(got);
    assert_int_equal(got->sequence, want->sequence);
    assert_int_equal(got->offset, want->offset);
    assert_int_equal(got->time_ms, want->time_ms);
    assert_int_equal(got->next, want->next);
    assert_int_equal(got->count, want->count);
    assert_int_equal(got->epoch, want->epoch);
    assert_int_equal(got->used, weir__producer_minutes(want->time_ms));
}

/* Its producers are as old as their last batch, and have to be written again. Its clock is the time of the
 * newest batch before it. */
static void version_1_has_producers_in_it(void **state)
{
    const struct weir__producer producers[PRODUCERS] = {
        {.id = 11,
         .sequence = 12,
         .offset = 13,
         .time_ms = TIME_MS,
         .next = 14,
         .count = 1,
         .partition = 1,
         .epoch = 15},
        {.id = 21,
         .sequence = 22,
         .offset = 23,
         .time_ms = TIME_MS + 600000,
         .next = 24,
         .count = 2,
         .partition = 2,
         .epoch = 25},
    };
    struct place *p = *state;
    struct weir__producers all;
    struct weir__head heads[PARTITIONS];
    uint32_t dirty;
    int bad;

    p->h.keep = (struct weir__keep_stamp){1, 2};
    p->h.producers = 3;
    write_segment(p);
    age(p, producers);
    assert_int_equal(weir__segment_read_header(p->file, HUB, &p->h, &bad, NULL), 0);
    assert_int_equal(bad, 0);
    assert_int_equal(p->h.version, 1);
    assert_int_equal(p->h.secret, 0);
    assert_int_equal(p->h.producers, 0);
    assert_int_equal(p->h.keep.keep_ms, TIME_MS);
    assert_int_equal(p->h.keep.off_ms, 0);
    weir__producers_init(&all, 100, 1);
    assert_int_equal(read_heads(p, heads, &all), 0);
    assert_memory_equal(heads, p->heads, sizeof heads);
    assert_int_equal(all.count, PRODUCERS);
    weir__producers_dirty(&all, &dirty);
    assert_int_equal(dirty, PRODUCERS);
    for (uint32_t i = 0; i < PRODUCERS; i++) expect_producer(&all, &producers[i]);
    weir__producers_fini(&all);
}

/* Later versions have none there. */
static void version_2_has_none(void **state)
{
    struct place *p = *state;
    struct weir__producers all;
    struct weir__head heads[PARTITIONS];

    weir__producers_init(&all, 100, 1);
    assert_int_equal(read_heads(p, heads, &all), 0);
    assert_int_equal(all.count, 0);
    weir__producers_fini(&all);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(one_good_copy_serves),      CASE(errors_are_no_damage),
        CASE(heads_are_of_their_header), CASE(heads_that_cannot_be_are_not_believed),
        CASE(a_file_needs_one_header),   CASE(version_1_has_producers_in_it),
        CASE(version_2_has_none),
    };

    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
