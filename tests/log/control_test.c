/* control_test.c - which copy of a control file counts, how many are bad, and what a write leaves that
 * fails. Copies of version 1 are made here, after the drawing in control.c. */
#include "log/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/log.h"
#include "support/simfs.h"

#define PATH "control"
#define HUB 77u
#define MAGIC 0x4c544357u
#define COPY_AT (64u << 10)
#define BLOCK WEIR__FS_BLOCK
#define OLD_FIXED 80u

struct place {
    struct simfs *disk;
    struct weir__file *file;
    struct weir__control c;
    int bad;
    struct weir_error err;
};

static int set_up(void **state)
{
    static const uint8_t zeros[2 * COPY_AT];
    struct place *p = test_calloc(1, sizeof *p);
    struct weir__fs *fs;

    p->disk = simfs_new();
    fs = simfs_fs(p->disk);
    simfs_put(p->disk, PATH, zeros, sizeof zeros);
    assert_int_equal(fs->ops->open(fs, PATH, 0, &p->file, NULL), 0);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    weir__control_fini(&p->c);
    weir__file_close(p->file);
    simfs_free(p->disk);
    test_free(p);
    return 0;
}

/* What a log may say of itself. */
static void make_control(struct place *p, uint32_t partitions)
{
    weir__control_fini(&p->c);
    p->c = (struct weir__control){.version = 2,
                                  .hub_id = HUB,
                                  .secret = 5,
                                  .first_segment = 1,
                                  .last_segment = 2,
                                  .watermark = WEIR__LOG_ORIGIN,
                                  .epoch = 3,
                                  .keep = {.keep_ms = 1, .boot = 2, .off_ms = 3},
                                  .active = {4, 5, 6, 7}};
    assert_int_equal(weir__control_resize(&p->c, partitions, NULL), 0);
    for (uint32_t i = 0; i < partitions; i++) p->c.heads[i].next_sequence = 100 + i;
}

static void write_control(struct place *p)
{
    if (weir__control_write(p->file, &p->c, true, &p->err) != 0) fail_msg("%s", p->err.text);
}

static int read_control(struct place *p)
{
    weir__control_fini(&p->c);
    p->c = (struct weir__control){.hub_id = HUB};
    p->bad = -1;
    return weir__control_read(p->file, &p->c, &p->bad, &p->err);
}

static size_t old_bytes(uint32_t partitions)
{
    return (OLD_FIXED + partitions * WEIR__HEAD_BYTES + BLOCK - 1) / BLOCK * BLOCK;
}

static void put_old(struct place *p, uint64_t at, uint32_t partitions, uint64_t generation)
{
    size_t len = old_bytes(partitions);
    uint8_t *copy = test_calloc(1, len);

    weir__store32(copy, MAGIC);
    weir__store32(copy + 8, 1);
    weir__store32(copy + 12, partitions);
    weir__store64(copy + 16, HUB);
    weir__store64(copy + 24, generation);
    weir__store64(copy + 32, 1);
    weir__store64(copy + 40, 2);
    weir__store64(copy + 48, WEIR__LOG_ORIGIN);
    weir__store32(copy + 64, 9);
    weir__store64(copy + OLD_FIXED + (partitions - 1) * WEIR__HEAD_BYTES, 1234);
    weir__store32(copy + 4, weir__crc32c(0, copy + 8, len - 8));
    simfs_poke(p->disk, PATH, copy, len, at);
    test_free(copy);
}

/* Reads an old copy: nothing that version 1 did not have is left from elsewhere. */
static void expect_old(struct place *p, uint32_t partitions, uint64_t generation, int bad)
{
    static const struct weir__control_active nothing;

    if (read_control(p) != 0) fail_msg("%u: %s", partitions, p->err.text);
    assert_int_equal(p->bad, bad);
    assert_int_equal(p->c.version, 1);
    assert_int_equal(p->c.generation, generation);
    assert_int_equal(p->c.partitions, partitions);
    assert_int_equal(p->c.epoch, 9);
    assert_int_equal(p->c.heads[partitions - 1].next_sequence, 1234);
    assert_int_equal(p->c.stale_at, old_bytes(partitions));
    assert_int_equal(p->c.secret, 0);
    assert_int_equal(p->c.keep.boot, 0);
    assert_int_equal(p->c.keep.off_ms, 0);
    assert_memory_equal(&p->c.active, &nothing, sizeof nothing);
}

/* Both places get the newest copy with another number at an offset, and a checksum to go with it. */
static void forge(struct place *p, size_t offset, uint32_t number)
{
    uint8_t copy[BLOCK];

    simfs_peek(p->disk, PATH, copy, sizeof copy, p->c.generation % 2 * COPY_AT);
    weir__store32(copy + offset, number);
    weir__store32(copy + 4, weir__crc32c(0, copy + 8, sizeof copy - 8));
    for (uint64_t i = 0; i < 2; i++) simfs_poke(p->disk, PATH, copy, sizeof copy, i * COPY_AT);
}

/* ---- reading ---- */

static void any_number_of_partitions_is_read(void **state)
{
    static const uint32_t counts[] = {1, 2, WEIR__LOG_PARTITIONS_MAX};
    struct place *p = *state;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        make_control(p, counts[i]);
        write_control(p);
        write_control(p);
        assert_int_equal(read_control(p), 0);
        assert_int_equal(p->bad, 0);
        assert_int_equal(p->c.partitions, counts[i]);
        for (uint32_t k = 0; k < counts[i]; k++)
            assert_int_equal(p->c.heads[k].next_sequence, 100 + k);
    }
    make_control(p, WEIR__LOG_PARTITIONS_MAX + 1);
    write_control(p);
    write_control(p);
    assert_int_equal(read_control(p), WEIR_ECORRUPT);
    assert_int_equal(p->bad, 2);
    make_control(p, 1);
    write_control(p);
    forge(p, 12, 0);
    assert_int_equal(read_control(p), WEIR_ECORRUPT);
    assert_int_equal(p->bad, 2);
}

/* The second copy of version 1 begins where the first ends. It is found without the first, and nowhere
 * else. */
static void an_old_copy_has_one_place(void **state)
{
    static const uint32_t counts[] = {1, 164, 168, WEIR__LOG_PARTITIONS_MAX};
    static const uint8_t zeros[COPY_AT];
    struct place *p = *state;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t at = old_bytes(counts[i]);

        put_old(p, at, counts[i], 7);
        expect_old(p, counts[i], 7, 1);
        put_old(p, 0, counts[i], 6);
        expect_old(p, counts[i], 7, 0);
        simfs_flip(p->disk, PATH, 8 * (at + 100));
        expect_old(p, counts[i], 6, 1);
        simfs_poke(p->disk, PATH, zeros, sizeof zeros, 0);
        put_old(p, at + BLOCK, counts[i], 7);
        assert_int_equal(read_control(p), WEIR_ECORRUPT);
        assert_int_equal(p->bad, 2);
        simfs_poke(p->disk, PATH, zeros, sizeof zeros, 0);
    }
}

/* A copy with a good checksum that says what cannot be is bad, and the other one serves. */
static void a_copy_that_cannot_be_is_passed_over(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    write_control(p);
    p->c.first_segment = 0;
    write_control(p);
    assert_int_equal(read_control(p), 0);
    assert_int_equal(p->c.generation, 1);
    assert_int_equal(p->c.first_segment, 1);
    assert_int_equal(p->bad, 1);
}

static void so_is_one_in_front_of_an_old_copy(void **state)
{
    static const uint8_t zeros[BLOCK];
    struct place *p = *state;

    make_control(p, 3);
    p->c.generation = 7;
    p->c.first_segment = 0;
    write_control(p);
    simfs_poke(p->disk, PATH, zeros, sizeof zeros, COPY_AT);
    put_old(p, BLOCK, 3, 5);
    expect_old(p, 3, 5, 1);
}

static void refusals_say_why(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    p->c.hub_id = HUB + 1;
    write_control(p);
    assert_int_equal(read_control(p), WEIR_EINVAL);
    assert_string_equal(p->err.text, "control file is of another hub");
    make_control(p, 3);
    write_control(p);
    forge(p, 8, 3);
    assert_int_equal(read_control(p), WEIR_EVERSION);
    assert_int_equal(p->bad, 0);
    assert_string_equal(p->err.text, "log format version 3 is not known here (this weir writes 2)");
}

/* What lies behind the end of a file is nothing, whatever was read before. */
static void a_file_that_was_cut_has_less(void **state)
{
    static const struct {
        uint64_t bytes;
        int rc, bad;
    } cases[] = {{2 * COPY_AT, 0, 0},     {COPY_AT + BLOCK, 0, 0}, {COPY_AT + BLOCK - 1, 0, 0},
                 {COPY_AT + 1, 0, 1},     {COPY_AT, 0, 1},         {BLOCK, 0, 1},
                 {100, WEIR_ECORRUPT, 2}, {0, WEIR_ECORRUPT, 2}};
    struct place *p = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_control(p, 3);
        assert_int_equal(p->file->ops->allocate(p->file, 2 * COPY_AT, NULL), 0);
        write_control(p);
        write_control(p);
        for (int round = 0; round < 3; round++) assert_int_equal(read_control(p), 0);
        assert_int_equal(p->file->ops->allocate(p->file, cases[i].bytes, NULL), 0);
        assert_int_equal(read_control(p), cases[i].rc);
        assert_int_equal(p->bad, cases[i].bad);
    }
}

/* An upgrade that ended after its first write was none: an older weir may have gone on since. */
static void an_upgrade_that_was_not_finished_is_none(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    p->c.generation = 6;
    write_control(p); /* the seventh, in the second place */
    put_old(p, 0, 3, 6);
    expect_old(p, 3, 6, 1);
    put_old(p, BLOCK, 3, 5);
    expect_old(p, 3, 6, 0);
    put_old(p, BLOCK, 3, 7);
    expect_old(p, 3, 7, 0);
    simfs_flip(p->disk, PATH, 8 * 100); /* of two that are as new, the old one was written later */
    expect_old(p, 3, 7, 0);
    put_old(p, BLOCK, 3, 6);
    assert_int_equal(read_control(p), 0);
    assert_int_equal(p->c.version, 2);
    assert_int_equal(p->c.generation, 7);
    assert_int_equal(p->c.stale_at, BLOCK);
}

/* Partitions that come are empty, whatever was there before. */
static void more_partitions_are_empty(void **state)
{
    static const struct weir__head empty;
    struct place *p = *state;

    make_control(p, 5);
    assert_int_equal(weir__control_resize(&p->c, 2, NULL), 0);
    assert_int_equal(p->c.partitions, 2);
    assert_int_equal(weir__control_resize(&p->c, 5, NULL), 0);
    assert_int_equal(p->c.partitions, 5);
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(p->c.heads[i].next_sequence, 100 + i);
    for (uint32_t i = 2; i < 5; i++) assert_memory_equal(&p->c.heads[i], &empty, sizeof empty);
    write_control(p);
    weir__control_fini(&p->c);
    weir__control_fini(&p->c); /* there is nothing left */
}

/* Of each partition. */
static void heads_that_cannot_be_are_not_believed(void **state)
{
    struct place *p = *state;

    for (uint32_t i = 0; i < 3; i++) {
        make_control(p, 3);
        p->c.heads[i].next_sequence = WEIR__LOG_SEQUENCE_MAX + 1;
        write_control(p);
        write_control(p);
        assert_int_equal(read_control(p), WEIR_ECORRUPT);
        make_control(p, 3);
        p->c.heads[i].last_time_ms = -1;
        write_control(p);
        write_control(p);
        assert_int_equal(read_control(p), WEIR_ECORRUPT);
        assert_string_equal(p->err.text, "both copies in the control file are damaged");
    }
}

/* A reader that does not know the hub is told which one it is. */
static void the_hub_is_told(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    write_control(p);
    write_control(p);
    weir__control_fini(&p->c);
    p->c = (struct weir__control){.stale_at = 5};
    assert_int_equal(weir__control_read(p->file, &p->c, &p->bad, &p->err), 0);
    assert_int_equal(p->c.hub_id, HUB);
    assert_int_equal(p->c.stale_at, 0);
}

/* A newer weir's copy is refused, also beside an old one. */
static void a_newer_copy_beside_an_old_one_is_refused(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    write_control(p);
    forge(p, 8, 3);
    put_old(p, 0, 3, 6);
    put_old(p, BLOCK, 3, 5);
    assert_int_equal(read_control(p), WEIR_EVERSION);
}

/* A disk that is busy says nothing of the copies; what it does not give is bad. */
static void an_error_is_no_damage(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_READ, .at = 1, .rc = WEIR_EBUSY};
    struct place *p = *state;

    make_control(p, 3);
    write_control(p);
    write_control(p);
    simfs_fail(p->disk, &fault);
    assert_int_equal(read_control(p), WEIR_EBUSY);
    assert_int_equal(p->bad, 0);
    simfs_fail(p->disk, NULL);
    simfs_spoil(p->disk, PATH, COPY_AT, 1);
    assert_int_equal(read_control(p), 0);
    assert_int_equal(p->c.generation, 2);
    assert_int_equal(p->bad, 1);
    simfs_spoil(p->disk, PATH, 0, 1);
    assert_int_equal(read_control(p), WEIR_ECORRUPT);
    assert_int_equal(p->bad, 2);
}

/* ---- writing ---- */

static void refuse(struct place *p, unsigned kinds)
{
    struct simfs_fault fault = {.kinds = kinds, .at = 1, .rc = WEIR_EIO};
    uint64_t generation = p->c.generation;
    char *said;

    simfs_fail(p->disk, &fault);
    assert_int_equal(weir__control_write(p->file, &p->c, true, &p->err), WEIR_EIO);
    simfs_fail(p->disk, NULL);
    said = strstr(p->err.text, "writing control file: ");
    assert_ptr_equal(said, p->err.text);
    assert_int_equal(p->c.generation, generation);
}

/* A write that failed is done again in the same place: the other copy is the one that is whole. */
static void a_failed_write_is_done_again_in_its_place(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    write_control(p);
    p->c.epoch = 4;
    refuse(p, SIMFS_WRITE);
    refuse(p, SIMFS_SYNC);
    write_control(p);
    assert_int_equal(read_control(p), 0);
    assert_int_equal(p->bad, 0);
    assert_int_equal(p->c.generation, 2);
    assert_int_equal(p->c.epoch, 4);
}

static uint32_t word_at(struct place *p, uint64_t at)
{
    uint8_t word[4] = {0};

    assert_int_equal(simfs_peek(p->disk, PATH, word, sizeof word, at), sizeof word);
    return weir__load32(word);
}

/* The second copy of version 1 goes with the third write; when that fails, with one that does not. */
static void an_old_copy_is_erased_once(void **state)
{
    struct place *p = *state;
    uint64_t writes;

    put_old(p, 0, 3, 4);
    put_old(p, BLOCK, 3, 5);
    expect_old(p, 3, 5, 0);
    p->c.secret = 5;
    refuse(p, SIMFS_WRITE);
    assert_int_equal(p->c.version, 1);
    write_control(p);
    assert_int_equal(p->c.version, 2);
    write_control(p);
    assert_int_equal(word_at(p, BLOCK), MAGIC);
    refuse(p, SIMFS_WRITE);
    assert_int_equal(word_at(p, BLOCK), MAGIC);
    write_control(p);
    assert_int_equal(word_at(p, BLOCK), 0);
    write_control(p);
    writes = simfs_calls(p->disk, SIMFS_WRITE);
    write_control(p);
    assert_int_equal(simfs_calls(p->disk, SIMFS_WRITE), writes + 1);
}

/* Where the first copy of today is longer, it lies over it. */
static void an_old_copy_that_is_covered_is_gone(void **state)
{
    struct place *p = *state;

    put_old(p, 0, 164, 4);
    put_old(p, BLOCK, 164, 5);
    expect_old(p, 164, 5, 0);
    p->c.secret = 5;
    for (int i = 0; i < 4; i++) write_control(p);
    assert_int_equal(p->c.stale_at, 0);
    assert_int_equal(read_control(p), 0);
    assert_int_equal(p->bad, 0);
    assert_int_equal(p->c.version, 2);
    assert_int_equal(p->c.generation, 10);
    assert_int_equal(p->c.heads[163].next_sequence, 1234);
}

static void a_write_is_synced_when_asked_to(void **state)
{
    struct place *p = *state;

    make_control(p, 3);
    assert_int_equal(weir__control_write(p->file, &p->c, false, NULL), 0);
    assert_int_equal(simfs_calls(p->disk, SIMFS_SYNC), 0);
    assert_int_equal(weir__control_write(p->file, &p->c, true, NULL), 0);
    assert_int_equal(simfs_calls(p->disk, SIMFS_SYNC), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(any_number_of_partitions_is_read),
        CASE(an_old_copy_has_one_place),
        CASE(a_copy_that_cannot_be_is_passed_over),
        CASE(so_is_one_in_front_of_an_old_copy),
        CASE(refusals_say_why),
        CASE(a_failed_write_is_done_again_in_its_place),
        CASE(a_file_that_was_cut_has_less),
        CASE(an_upgrade_that_was_not_finished_is_none),
        CASE(more_partitions_are_empty),
        CASE(heads_that_cannot_be_are_not_believed),
        CASE(the_hub_is_told),
        CASE(a_newer_copy_beside_an_old_one_is_refused),
        CASE(an_error_is_no_damage),
        CASE(an_old_copy_that_is_covered_is_gone),
        CASE(an_old_copy_is_erased_once),
        CASE(a_write_is_synced_when_asked_to),
    };

    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
