/* simfs_test.c - that the simulated disk forgets, tears and reorders as it says. A disk that was
 * too kind would let every crash test pass. */
#include "support/simfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define S ((uint64_t)SIMFS_SECTOR)

struct world {
    struct simfs *disk;
    struct weir__fs *fs;
    struct weir__file *f; /* "d/f", six sectors of 'a', durable */
};

static void fill(struct weir__file *f, char c, unsigned first, unsigned count)
{
    uint8_t bytes[8 * S];
    struct weir__bytes part = weir__bytes_of(bytes, count * S);

    memset(bytes, c, sizeof bytes);
    assert_int_equal(f->ops->write(f, &part, 1, first * S, NULL), 0);
}

/* The first byte of each sector, '-' for zero; "none" without a file. */
static const char *look(struct simfs *disk)
{
    static char text[16];
    uint64_t sectors = (simfs_size(disk, "d/f") + S - 1) / S;
    char bytes[S];

    memset(text, 0, sizeof text);
    for (uint64_t i = 0; i < sectors; i++) {
        assert_true(simfs_peek(disk, "d/f", bytes, S, i * S) > 0);
        for (unsigned k = 1; k < S; k++) assert_int_equal(bytes[k], bytes[0]); /* never mixed */
        text[i] = '-';
        if (bytes[0]) text[i] = bytes[0];
    }
    return simfs_peek(disk, "d/f", bytes, 0, 0) < 0 ? "none" : text;
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->disk = simfs_new();
    w->fs = simfs_fs(w->disk);
    assert_int_equal(w->fs->ops->make_dir(w->fs, "d", NULL), 0);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, "", NULL), 0);
    assert_int_equal(w->fs->ops->open(w->fs, "d/f", WEIR__FS_CREATE, &w->f, NULL), 0);
    fill(w->f, 'a', 0, 6);
    assert_int_equal(w->f->ops->sync(w->f, NULL), 0);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, "d", NULL), 0);
    assert_int_equal(simfs_pending(w->disk), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    weir__file_close(w->f);
    assert_int_equal(simfs_open_files(w->disk), 0);
    simfs_free(w->disk);
    test_free(w);
    return 0;
}

static void expect_left(struct world *w, enum simfs_keep keep, uint64_t n, const char *expected)
{
    struct simfs *left = simfs_crash(w->disk, keep, n);

    assert_string_equal(look(left), expected);
    assert_int_equal(simfs_pending(left), 0);
    simfs_free(left);
}

static void unsynced_sectors_are_a_choice(void **state)
{
    struct world *w = *state;

    fill(w->f, 'b', 1, 4);
    assert_string_equal(look(w->disk), "abbbba");
    assert_int_equal(simfs_pending(w->disk), 4);
    expect_left(w, SIMFS_KEEP_NONE, 0, "aaaaaa");
    expect_left(w, SIMFS_KEEP_ALL, 0, "abbbba");
    expect_left(w, SIMFS_KEEP_ONE, 2, "aaabaa");
    expect_left(w, SIMFS_KEEP_ALL_BUT, 0, "aabbba");
    expect_left(w, SIMFS_KEEP_PREFIX, 0, "abaaaa");
    expect_left(w, SIMFS_KEEP_PREFIX, 2, "abbbaa");
    assert_int_equal(w->f->ops->sync(w->f, NULL), 0);
    expect_left(w, SIMFS_KEEP_NONE, 0, "abbbba");
}

/* All 3 x 3 combinations of two sectors with two unsynced versions each, and no other. */
static void any_older_version_may_stay(void **state)
{
    struct world *w = *state;
    bool seen[3][3] = {{false}};
    int count = 0;

    fill(w->f, 'b', 0, 2);
    fill(w->f, 'c', 0, 2);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct simfs *left = simfs_crash(w->disk, SIMFS_KEEP_RANDOM, seed);
        const char *text = look(left);

        assert_string_equal(text + 2, "aaaa");
        assert_in_range(text[0], 'a', 'c');
        assert_in_range(text[1], 'a', 'c');
        if (!seen[text[0] - 'a'][text[1] - 'a']) count++;
        seen[text[0] - 'a'][text[1] - 'a'] = true;
        simfs_free(left);
    }
    assert_int_equal(count, 9);
}

static void size_is_a_choice_of_its_own(void **state)
{
    struct world *w = *state;

    fill(w->f, 'b', 6, 2);
    assert_int_equal(simfs_pending(w->disk), 3);
    expect_left(w, SIMFS_KEEP_NONE, 0, "aaaaaa");
    expect_left(w, SIMFS_KEEP_ONE, 0, "aaaaaa--"); /* the size alone */
    expect_left(w, SIMFS_KEEP_ONE, 1, "aaaaaa");   /* a sector behind the old end is lost */
    expect_left(w, SIMFS_KEEP_ALL_BUT, 1, "aaaaaa-b");
    expect_left(w, SIMFS_KEEP_ALL, 0, "aaaaaabb");
}

/* Syncing a file does not make its name durable; syncing the folder does not make bytes durable. */
static void names_need_their_folder(void **state)
{
    struct world *w = *state;
    struct weir__file *g = NULL;
    struct simfs *left;
    uint8_t byte;

    assert_int_equal(w->fs->ops->open(w->fs, "d/g", WEIR__FS_CREATE, &g, NULL), 0);
    fill(g, 'g', 0, 1);
    assert_int_equal(g->ops->sync(g, NULL), 0);
    left = simfs_crash(w->disk, SIMFS_KEEP_NONE, 0);
    assert_int_equal(simfs_peek(left, "d/g", &byte, 1, 0), -1);
    simfs_free(left);
    left = simfs_crash(w->disk, SIMFS_KEEP_ALL, 0);
    assert_int_equal(simfs_peek(left, "d/g", &byte, 1, 0), 1);
    simfs_free(left);

    fill(g, 'h', 0, 1);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, "d", NULL), 0);
    left = simfs_crash(w->disk, SIMFS_KEEP_NONE, 0);
    assert_int_equal(simfs_peek(left, "d/g", &byte, 1, 0), 1);
    assert_int_equal(byte, 'g');
    simfs_free(left);
    weir__file_close(g);
}

static void removal_needs_its_folder(void **state)
{
    struct world *w = *state;

    assert_int_equal(w->fs->ops->remove(w->fs, "d/f", NULL), 0);
    assert_string_equal(look(w->disk), "none");
    expect_left(w, SIMFS_KEEP_NONE, 0, "aaaaaa");
    expect_left(w, SIMFS_KEEP_ALL, 0, "none");
    assert_int_equal(w->fs->ops->sync_dir(w->fs, "d", NULL), 0);
    expect_left(w, SIMFS_KEEP_NONE, 0, "none");
}

/* A folder's handle settles the names in it, those of the root too, and no others. */
static void names_are_synced_through_a_handle(void **state)
{
    struct world *w = *state;
    struct weir__file *dir = NULL, *root = NULL;

    assert_int_equal(w->fs->ops->open(w->fs, "d", WEIR__FS_DIR, &dir, NULL), 0);
    assert_int_equal(w->fs->ops->open(w->fs, ".", WEIR__FS_DIR, &root, NULL), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, "d/f", NULL), 0);
    assert_int_equal(root->ops->sync(root, NULL), 0);
    expect_left(w, SIMFS_KEEP_NONE, 0, "aaaaaa");
    assert_int_equal(dir->ops->sync(dir, NULL), 0);
    expect_left(w, SIMFS_KEEP_NONE, 0, "none");
    assert_int_equal(simfs_calls(w->disk, SIMFS_SYNC), 1); /* of set_up's file */
    weir__file_close(dir);
    weir__file_close(root);
}

static void unsynced_folder_takes_everything_along(void **state)
{
    struct world *w = *state;
    struct weir__file *g = NULL;
    struct simfs *left;
    uint8_t byte;

    assert_int_equal(w->fs->ops->make_dir(w->fs, "e", NULL), 0);
    assert_int_equal(w->fs->ops->open(w->fs, "e/g", WEIR__FS_CREATE, &g, NULL), 0);
    fill(g, 'g', 0, 1);
    assert_int_equal(g->ops->sync(g, NULL), 0);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, "e", NULL), 0);
    weir__file_close(g);
    left = simfs_crash(w->disk, SIMFS_KEEP_NONE, 0);
    assert_int_equal(simfs_peek(left, "e/g", &byte, 1, 0), -1);
    simfs_free(left);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, "", NULL), 0);
    left = simfs_crash(w->disk, SIMFS_KEEP_NONE, 0);
    assert_int_equal(simfs_peek(left, "e/g", &byte, 1, 0), 1);
    simfs_free(left);
}

/* After a failed sync the cache may show what the disk lacks, and no later sync helps. */
static void failed_sync_lies(void **state)
{
    struct world *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    uint8_t *direct = aligned_alloc(WEIR__FS_BLOCK, WEIR__FS_BLOCK);
    struct weir__file *d = NULL;
    struct simfs *left;
    size_t got = 0;
    char kept[16];

    assert_non_null(direct);
    fill(w->f, 'b', 0, 6);
    simfs_fail(w->disk, &fault);
    assert_int_equal(w->f->ops->sync(w->f, NULL), WEIR_EIO);
    assert_true(simfs_failed(w->disk));
    assert_int_equal(w->f->ops->sync(w->f, NULL), 0);
    assert_string_equal(look(w->disk), "bbbbbb");
    left = simfs_crash(w->disk, SIMFS_KEEP_ALL, 0);
    memcpy(kept, look(left), sizeof kept);
    simfs_free(left);
    assert_non_null(strchr(kept, 'a'));

    assert_int_equal(w->fs->ops->open(w->fs, "d/f", WEIR__FS_READ_ONLY | WEIR__FS_DIRECT, &d, NULL),
                     0);
    assert_int_equal(d->ops->read(d, direct, WEIR__FS_BLOCK, 0, &got, NULL), 0);
    for (size_t i = 0; i < 6; i++) assert_int_equal(direct[i * S], kept[i]);
    weir__file_close(d);
    free(direct);

    fault.failed_sync = SIMFS_CACHE_DROPS;
    fill(w->f, 'c', 0, 6);
    simfs_fail(w->disk, &fault);
    assert_int_equal(w->f->ops->sync(w->f, NULL), WEIR_EIO);
    memcpy(kept, look(w->disk), sizeof kept);
    expect_left(w, SIMFS_KEEP_ALL, 0, kept);
}

static void short_writes_leave_a_prefix(void **state)
{
    struct world *w = *state;
    uint8_t bytes[4 * S];
    struct weir__bytes part = weir__bytes_of(bytes, sizeof bytes);
    bool seen[5] = {false};

    memset(bytes, 'z', sizeof bytes);
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct simfs_fault fault = {
            .kinds = SIMFS_WRITE, .at = 2, .rc = WEIR_ENOSPACE, .short_write = true, .seed = seed};
        size_t written;

        simfs_fail(w->disk, &fault);
        fill(w->f, 'a', 0, 6);
        assert_int_equal(w->f->ops->write(w->f, &part, 1, S, NULL), WEIR_ENOSPACE);
        written = strspn(look(w->disk) + 1, "z");
        assert_in_range(written, 0, 3);
        assert_int_equal(strspn(look(w->disk) + 1 + written, "a"), 5 - written);
        seen[written] = true;
        fill(w->f, 'a', 0, 6); /* it was once only */
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

static void faults_can_stay(void **state)
{
    struct world *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_ANY, .at = 2, .rc = WEIR_EIO, .persistent = true};
    uint64_t size;

    simfs_fail(w->disk, &fault);
    assert_int_equal(w->f->ops->size(w->f, &size, NULL), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(w->f->ops->size(w->f, &size, NULL), WEIR_EIO);
    simfs_fail(w->disk, NULL);
    assert_int_equal(w->f->ops->size(w->f, &size, NULL), 0);
}

static void stopped_machine_changes_nothing(void **state)
{
    struct world *w = *state;
    uint8_t byte = 'x';
    struct weir__bytes part = weir__bytes_of(&byte, 1);
    uint64_t hash = simfs_hash(w->disk);

    simfs_stop(w->disk, simfs_calls(w->disk, SIMFS_ANY) + 1);
    assert_int_equal(w->f->ops->write(w->f, &part, 1, 0, NULL), WEIR_EIO);
    assert_int_equal(w->f->ops->sync(w->f, NULL), WEIR_EIO);
    assert_int_equal(w->fs->ops->remove(w->fs, "d/f", NULL), WEIR_EIO);
    assert_int_equal(simfs_hash(w->disk), hash);
    assert_string_equal(look(w->disk), "aaaaaa");
}

static void capacity_can_be_raised(void **state)
{
    struct world *w = *state;

    simfs_capacity(w->disk, 8192);
    assert_int_equal(simfs_used(w->disk), WEIR__FS_BLOCK);
    assert_int_equal(w->f->ops->allocate(w->f, 8192, NULL), 0);
    assert_int_equal(w->f->ops->allocate(w->f, 8193, NULL), WEIR_ENOSPACE);
    simfs_capacity(w->disk, 12288);
    assert_int_equal(w->f->ops->allocate(w->f, 8193, NULL), 0);
}

static void clones_are_alike_and_apart(void **state)
{
    struct world *w = *state;
    struct simfs *clone;

    fill(w->f, 'b', 0, 3);
    clone = simfs_clone(w->disk);
    assert_int_equal(simfs_pending(clone), 3);
    assert_int_equal(simfs_hash(clone), simfs_hash(w->disk));
    fill(w->f, 'c', 3, 3);
    assert_string_equal(look(clone), "bbbaaa");
    simfs_flip(clone, "d/f", 5 * S * 8 + 3); /* one bit: the helper would call the sector mixed */
    assert_int_not_equal(simfs_hash(clone), simfs_hash(w->disk));
    expect_left(w, SIMFS_KEEP_ALL, 0, "bbbccc");
    simfs_free(clone);
}

static void count_entering(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    (void)disk;
    if (entering && kind == SIMFS_WRITE) ++*(int *)user;
}

static void calls_are_counted_and_watched(void **state)
{
    struct world *w = *state;
    uint64_t writes = simfs_calls(w->disk, SIMFS_WRITE), all = simfs_calls(w->disk, SIMFS_ANY);
    int seen = 0;

    simfs_hook(w->disk, count_entering, &seen);
    fill(w->f, 'b', 0, 1);
    assert_int_equal(w->f->ops->sync(w->f, NULL), 0);
    assert_int_equal(simfs_calls(w->disk, SIMFS_WRITE), writes + 1);
    assert_int_equal(simfs_calls(w->disk, SIMFS_ANY), all + 2);
    assert_int_equal(seen, 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(unsynced_sectors_are_a_choice),
        CASE(any_older_version_may_stay),
        CASE(size_is_a_choice_of_its_own),
        CASE(names_need_their_folder),
        CASE(removal_needs_its_folder),
        CASE(names_are_synced_through_a_handle),
        CASE(unsynced_folder_takes_everything_along),
        CASE(failed_sync_lies),
        CASE(short_writes_leave_a_prefix),
        CASE(faults_can_stay),
        CASE(stopped_machine_changes_nothing),
        CASE(capacity_can_be_raised),
        CASE(clones_are_alike_and_apart),
        CASE(calls_are_counted_and_watched),
    };

    return cmocka_run_group_tests_name("simfs", tests, NULL, NULL);
}
