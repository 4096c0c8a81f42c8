/* backup_copy_test.c - what a copy of a file has of it: the bytes of both parts that count, and zeros
 * elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/backup.h"
#include "support/simfs.h"

#define BLOCK WEIR__FS_BLOCK
#define BUFFER (4u << 20) /* is copied at once */
#define FROM "from"
#define TO "to"

struct place {
    struct simfs *disk;
    struct weir__fs *fs;
    struct weir__backup_extent x;
    uint8_t *bytes;  /* of the file */
    uint8_t *wanted; /* of a copy */
    uint8_t *taken;
    size_t taken_len;
};

/* Blocks of bytes that differ; every third one is zero, and the last. */
static void fill(uint8_t *to, size_t len)
{
    for (size_t i = 0; i + BLOCK < len; i++)
        if (i / BLOCK % 3 != 1) to[i] = (uint8_t)(1 + (i * 7 + i / BLOCK) % 251);
}

static void *room(size_t len)
{
    return test_calloc(1, len);
}

static void place_init(struct place *p, uint64_t bytes, uint64_t used, uint64_t tail)
{
    *p = (struct place){.disk = simfs_new(), .x = {bytes, used, tail, 0}};
    p->fs = simfs_fs(p->disk);
    p->bytes = room(bytes);
    p->wanted = room(bytes);
    p->taken = room(bytes);
    fill(p->bytes, bytes);
    memcpy(p->wanted, p->bytes, used);
    memcpy(p->wanted + tail, p->bytes + tail, bytes - tail);
    simfs_put(p->disk, FROM, p->bytes, bytes);
}

static void place_fini(struct place *p)
{
    assert_int_equal(simfs_open_files(p->disk), 0);
    simfs_free(p->disk);
    test_free(p->bytes);
    test_free(p->wanted);
    test_free(p->taken);
}

static int take(void *user, const void *at, size_t len, struct weir_error *err)
{
    struct place *p = user;

    (void)err;
    assert_true(p->taken_len + len <= p->x.bytes);
    memcpy(p->taken + p->taken_len, at, len);
    p->taken_len += len;
    return 0;
}

static struct weir__backup_copied copy(struct place *p, const char *from, const char *to)
{
    struct weir__backup_sink sink = {take, p};
    struct weir__backup_copied copied;
    struct weir_error err = {0};

    p->taken_len = 0;
    if (weir__backup_copy(p->fs, from, to, &p->x, &sink, &copied, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(p->taken_len, p->x.used + p->x.bytes - p->x.tail);
    assert_memory_equal(p->taken, p->wanted, p->x.used);
    assert_memory_equal(p->taken + p->x.used, p->wanted + p->x.tail, p->x.bytes - p->x.tail);
    return copied;
}

static void check_copy(struct place *p)
{
    uint8_t *got = room(p->x.bytes);

    assert_int_equal(simfs_size(p->disk, TO), p->x.bytes);
    assert_int_equal(simfs_peek(p->disk, TO, got, p->x.bytes, 0), (long)p->x.bytes);
    assert_memory_equal(got, p->wanted, p->x.bytes);
    test_free(got);
}

static const struct {
    uint64_t bytes, used, tail;
} extents[] = {
    {8 * BLOCK, 8 * BLOCK, 8 * BLOCK},
    {8 * BLOCK, 3 * BLOCK, 6 * BLOCK},
    {8 * BLOCK, 2 * BLOCK + 100, 5 * BLOCK + 72},
    {8 * BLOCK, 3 * BLOCK - 1, 3 * BLOCK + 1},
    {3 * BUFFER, BUFFER + 5000, 2 * BUFFER - 3000},
    {2 * BUFFER, BUFFER, BUFFER},
};

/* Whoever reads the copy is given the same bytes and finds nothing between the parts; whoever reads the
 * file finds what is there. */
static void both_parts_are_copied(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        struct weir__backup_copied copied;
        struct place p;

        place_init(&p, extents[i].bytes, extents[i].used, extents[i].tail);
        copied = copy(&p, FROM, TO);
        assert_int_equal(copied.unreadable + copied.stray, 0);
        check_copy(&p);
        assert_int_equal(copy(&p, TO, NULL).stray, 0);
        assert_int_equal(copy(&p, FROM, NULL).stray > 0, p.x.used < p.x.tail);
        place_fini(&p);
    }
}

/* Blocks 0, 2 and 3, 5 and 6, and the last, which gives the copy its size. */
static void zeros_are_not_written(void **state)
{
    struct place p;

    (void)state;
    place_init(&p, 9 * BLOCK, 9 * BLOCK, 9 * BLOCK);
    copy(&p, FROM, TO);
    check_copy(&p);
    assert_int_equal(simfs_calls(p.disk, SIMFS_WRITE), 4);
    place_fini(&p);
}

/* A block that the disk does not give costs that block. */
static void unreadable_blocks_are_zeros(void **state)
{
    struct place p;

    (void)state;
    place_init(&p, 8 * BLOCK, 4 * BLOCK + 10, 6 * BLOCK);
    simfs_spoil(p.disk, FROM, 2 * BLOCK + 7, 1);
    simfs_spoil(p.disk, FROM, 6 * BLOCK, 1);
    memset(p.wanted + (size_t)2 * BLOCK, 0, BLOCK);
    memset(p.wanted + (size_t)6 * BLOCK, 0, BLOCK);
    assert_int_equal(copy(&p, FROM, TO).unreadable, 2 * BLOCK);
    check_copy(&p);
    assert_int_equal(copy(&p, TO, NULL).unreadable, 0);
    place_fini(&p);
}

static void expect_size(struct place *p, const char *to, const char *text)
{
    struct weir__backup_copied copied;
    struct weir_error err = {0};

    assert_int_equal(weir__backup_copy(p->fs, FROM, to, &p->x, NULL, &copied, &err), WEIR_ECORRUPT);
    assert_string_equal(err.text, text);
}

/* A file that is copied may have grown; a copy must be as long as it was. */
static void another_size_is_told(void **state)
{
    struct place p;

    (void)state;
    place_init(&p, 8 * BLOCK, 3 * BLOCK, 5 * BLOCK);
    simfs_put(p.disk, FROM, p.bytes, 7 * BLOCK);
    expect_size(&p, TO, "copying from: the file has 28672 bytes instead of 32768");
    expect_size(&p, NULL, "reading from: the file has 28672 bytes instead of 32768");
    p.x = (struct weir__backup_extent){6 * BLOCK, 3 * BLOCK, 5 * BLOCK, 0};
    expect_size(&p, NULL, "reading from: the file has 28672 bytes instead of 24576");
    copy(&p, FROM, TO);
    check_copy(&p);
    place_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_parts_are_copied),
        cmocka_unit_test(zeros_are_not_written),
        cmocka_unit_test(unreadable_blocks_are_zeros),
        cmocka_unit_test(another_size_is_told),
    };

    return cmocka_run_group_tests_name("backup_copy", tests, NULL, NULL);
}
