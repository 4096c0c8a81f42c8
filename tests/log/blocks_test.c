/* blocks_test.c - what a failing disk still gives, byte by byte, and how it is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "log/blocks.h"
#include "support/simfs.h"

#define BLOCK ((uint64_t)WEIR__FS_BLOCK)
#define FILE_BYTES (5 * BLOCK - 96)
#define PATH "dir/file"

struct spoilt {
    uint64_t at, len;
};

/* The bytes that are spoilt, what is read, and what comes of it. */
static const struct {
    struct spoilt spoilt[2];
    uint64_t at;
    size_t len, got;
    struct weir__bad_blocks bad; /* how many, how many were read, and where the last bad one is */
    struct spoilt zeros[2];      /* in the file: what reads as zeros */
} cases[] = {
    {{{0}}, 0, 2 * BLOCK, 2 * BLOCK, {0, 1, 0}, {{0}}},
    {{{0}}, 4 * BLOCK, 2 * BLOCK, BLOCK - 96, {0, 1, 0}, {{0}}},
    {{{2 * BLOCK, 1}}, 0, 2 * BLOCK, 2 * BLOCK, {0, 1, 0}, {{0}}},
    {{{2 * BLOCK, 1}}, 0, 4 * BLOCK, 4 * BLOCK, {1, 3, 2 * BLOCK}, {{2 * BLOCK, BLOCK}}},
    {{{3 * BLOCK - 1, 1}}, 0, 4 * BLOCK, 4 * BLOCK, {1, 3, 2 * BLOCK}, {{2 * BLOCK, BLOCK}}},
    {{{BLOCK, 1}, {3 * BLOCK, 1}},
     0,
     4 * BLOCK,
     4 * BLOCK,
     {2, 2, 3 * BLOCK},
     {{BLOCK, BLOCK}, {3 * BLOCK, BLOCK}}},
    {{{0, 2 * BLOCK}}, 0, 2 * BLOCK, 2 * BLOCK, {2, 0, BLOCK}, {{0, 2 * BLOCK}}},
    {{{BLOCK, 10}}, 100, 9000, 9000, {1, 2, BLOCK}, {{BLOCK, BLOCK}}}, /* parts of blocks */
    {{{2 * BLOCK, 10}}, 100, 9000, 9000, {1, 2, 2 * BLOCK}, {{2 * BLOCK, BLOCK}}},
    {{{4000, 10}}, 100, 9000, 9000, {1, 2, 0}, {{100, BLOCK - 100}}},
    {{{3 * BLOCK, 1}},
     3 * BLOCK,
     3 * BLOCK,
     2 * BLOCK - 96,
     {1, 1, 3 * BLOCK},
     {{3 * BLOCK, BLOCK}}}, /* the file ends */
};

static uint8_t pattern(uint64_t at)
{
    return (uint8_t)(1 + at % 251);
}

static struct weir__file *make(struct simfs *disk)
{
    static uint8_t bytes[FILE_BYTES];
    struct weir__fs *fs = simfs_fs(disk);
    struct weir__file *f = NULL;

    for (size_t i = 0; i < FILE_BYTES; i++) bytes[i] = pattern(i);
    simfs_put(disk, PATH, bytes, sizeof bytes);
    assert_int_equal(fs->ops->open(fs, PATH, WEIR__FS_READ_ONLY, &f, NULL), 0);
    return f;
}

static bool in(const struct spoilt *s, uint64_t at)
{
    return at >= s->at && at - s->at < s->len;
}

static void all_but_bad_blocks_are_read(void **state)
{
    static uint8_t to[6 * BLOCK];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__bad_blocks bad = {0};
        struct simfs *disk = simfs_new();
        struct weir__file *f = make(disk);
        size_t got = 0;

        for (int k = 0; k < 2 && cases[i].spoilt[k].len; k++)
            simfs_spoil(disk, PATH, cases[i].spoilt[k].at, cases[i].spoilt[k].len);
        memset(to, 0xff, sizeof to);
        assert_int_equal(weir__blocks_read(f, to, cases[i].len, cases[i].at, &got, &bad, NULL), 0);
        if (got != cases[i].got || bad.count != cases[i].bad.count ||
            bad.read != cases[i].bad.read || (bad.count && bad.last != cases[i].bad.last))
            fail_msg("case %zu: %zu bytes, %d bad, %d good, the last at %d", i, got, (int)bad.count,
                     (int)bad.read, (int)bad.last);
        for (size_t k = 0; k < got; k++) {
            uint64_t at = cases[i].at + k;
            bool zero = in(&cases[i].zeros[0], at) || in(&cases[i].zeros[1], at);

            if (to[k] != (zero ? 0 : pattern(at))) fail_msg("case %zu: byte %zu", i, k);
        }
        weir__file_close(f);
        simfs_free(disk);
    }
}

/* Over several reads the counts add up, and the last is the one that lies furthest behind. */
static void counts_add_up(void **state)
{
    static uint8_t to[6 * BLOCK];
    struct weir__bad_blocks bad = {0};
    struct simfs *disk = simfs_new();
    struct weir__file *f = make(disk);
    size_t got;

    (void)state;
    simfs_spoil(disk, PATH, 3 * BLOCK, 1);
    simfs_spoil(disk, PATH, BLOCK, 1);
    assert_int_equal(weir__blocks_read(f, to, 2 * BLOCK, 2 * BLOCK, &got, &bad, NULL), 0);
    assert_int_equal(weir__blocks_read(f, to, 2 * BLOCK, 0, &got, &bad, NULL), 0);
    assert_int_equal(weir__blocks_read(f, to, BLOCK, 0, &got, &bad, NULL), 0);
    assert_int_equal(bad.count, 2);
    assert_int_equal(bad.read, 3);
    assert_int_equal(bad.last, 3 * BLOCK);
    weir__file_close(f);
    simfs_free(disk);
}

/* Another error is one: of the whole, and of a block of it. */
static void other_errors_are_told(void **state)
{
    static uint8_t to[6 * BLOCK];
    struct simfs *disk = simfs_new();
    struct weir__file *f = make(disk);
    size_t got;

    (void)state;
    simfs_spoil(disk, PATH, BLOCK, 1);
    for (uint64_t at = 1; at <= 3; at++) {
        struct simfs_fault fault = {.kinds = SIMFS_READ, .at = at, .rc = WEIR_EBUSY};
        struct weir__bad_blocks bad = {0};

        simfs_fail(disk, &fault);
        assert_int_equal(weir__blocks_read(f, to, 2 * BLOCK, 0, &got, &bad, NULL), WEIR_EBUSY);
        assert_int_equal(bad.read, at == 3);
        assert_int_equal(bad.count, 0);
    }
    weir__file_close(f);
    simfs_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_but_bad_blocks_are_read),
        cmocka_unit_test(counts_add_up),
        cmocka_unit_test(other_errors_are_told),
    };

    return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
