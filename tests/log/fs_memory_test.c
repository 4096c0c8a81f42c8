/* fs_memory_test.c - what the file system in memory has beyond the contract: its limit, and many
 * threads. tests/contract/fs_test.c has the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "log/chunks.h"
#include "log/fs.h"
#include "log/log.h"

#define CHUNK ((uint64_t)WEIR__CHUNK_BYTES)

static struct weir__fs *memory_of(uint64_t bytes_max)
{
    struct weir__fs *fs = NULL;

    assert_int_equal(weir__fs_memory_new(&fs, bytes_max, NULL), 0);
    return fs;
}

static struct weir__file *make(struct weir__fs *fs, const char *path)
{
    struct weir__file *f = NULL;

    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_CREATE, &f, NULL), 0);
    return f;
}

static int put(struct weir__file *f, const char *text, uint64_t at, struct weir_error *err)
{
    struct weir__bytes part = weir__bytes_of(text, strlen(text));

    return f->ops->write(f, &part, 1, at, err);
}

/* What cannot be had changes nothing; what was allocated is there; what is given back can be used
 * again, by whoever comes. */
static void the_limit_is_kept(void **state)
{
    struct weir__fs *fs = memory_of(4 * CHUNK);
    struct weir__file *a = make(fs, "a"), *b = make(fs, "b");
    struct weir_error err = {0};
    uint64_t size;

    (void)state;
    assert_int_equal(a->ops->allocate(a, 3 * CHUNK, NULL), 0);
    assert_int_equal(put(b, "x", CHUNK, &err), WEIR_ENOSPACE);
    assert_non_null(strstr(err.text, "b: all of the 0 MiB"));
    assert_int_equal(b->ops->size(b, &size, NULL), 0);
    assert_int_equal(size, 0);
    assert_int_equal(put(b, "x", CHUNK - 1, NULL), 0);
    assert_int_equal(put(b, "x", UINT64_MAX - 1, NULL), WEIR_ENOSPACE);
    assert_int_equal(put(b, "xy", UINT64_MAX - 1, NULL), WEIR_EINVAL);
    assert_int_equal(put(a, "full", 3 * CHUNK - 4, NULL), 0);
    assert_int_equal(a->ops->allocate(a, 3 * CHUNK + 1, NULL), WEIR_ENOSPACE);

    assert_int_equal(a->ops->allocate(a, CHUNK + 1, NULL), 0);
    assert_int_equal(b->ops->allocate(b, 2 * CHUNK, NULL), 0);
    assert_int_equal(fs->ops->remove(fs, "a", NULL), 0);
    assert_int_equal(b->ops->allocate(b, 3 * CHUNK, NULL), WEIR_ENOSPACE); /* a is still open */
    weir__file_close(a);
    assert_int_equal(b->ops->allocate(b, 4 * CHUNK, NULL), 0);
    weir__file_close(b);
    weir__fs_memory_free(fs);
}

/* What is released is somebody else's, until it is written to or allocated again. */
static void released_memory_can_be_used(void **state)
{
    struct weir__fs *fs = memory_of(4 * CHUNK);
    struct weir__file *a = make(fs, "a"), *b = make(fs, "b");

    (void)state;
    assert_int_equal(a->ops->allocate(a, 4 * CHUNK, NULL), 0);
    assert_int_equal(a->ops->release(a, CHUNK / 2, 2 * CHUNK, NULL), 0); /* one of them whole */
    assert_int_equal(b->ops->allocate(b, 2 * CHUNK, NULL), WEIR_ENOSPACE);
    assert_int_equal(b->ops->allocate(b, CHUNK, NULL), 0);
    assert_int_equal(put(a, "x", CHUNK, NULL), WEIR_ENOSPACE);
    assert_int_equal(a->ops->allocate(a, 4 * CHUNK, NULL), WEIR_ENOSPACE);
    assert_int_equal(b->ops->allocate(b, 0, NULL), 0);
    assert_int_equal(put(a, "x", CHUNK, NULL), 0);
    assert_int_equal(b->ops->allocate(b, 1, NULL), WEIR_ENOSPACE);
    weir__file_close(a);
    weir__file_close(b);
    weir__fs_memory_free(fs);
}

static void a_reader_cannot_write(void **state)
{
    struct weir__fs *fs = memory_of(CHUNK);
    struct weir__file *f = make(fs, "f");

    (void)state;
    weir__file_close(f);
    assert_int_equal(fs->ops->open(fs, "f", WEIR__FS_READ_ONLY, &f, NULL), 0);
    assert_int_equal(put(f, "x", 0, NULL), WEIR_EIO);
    weir__file_close(f);
    weir__fs_memory_free(fs);
}

static int try_open(struct weir__fs *fs, const char *path, unsigned flags, struct weir_error *err)
{
    struct weir__file *f = NULL;
    int rc = fs->ops->open(fs, path, flags, &f, err);

    weir__file_close(f);
    return rc;
}

static int join_names(const char *name, void *user)
{
    strcat(strcat(user, name), " ");
    return 0;
}

/* A name is one by all of its letters, and lies in a folder that is one. */
static void names_are_told_apart(void **state)
{
    static const struct {
        const char *path;
        unsigned flags;
        int rc;
        const char *text;
    } cases[] = {
        {"d/f", WEIR__FS_CREATE, WEIR_EEXIST, "d/f: it exists already (in memory)"},
        {"d/", 0, WEIR_ENOTFOUND, "d/: no such thing (in memory)"},
        {"d/ff", 0, WEIR_ENOTFOUND, "d/ff: no such thing (in memory)"},
        {"d/f/x", WEIR__FS_CREATE, WEIR_ENOTFOUND, "d/f/x: no such thing (in memory)"},
        {"ddd/x", WEIR__FS_CREATE, WEIR_ENOTFOUND, "ddd/x: no such thing (in memory)"},
        {"d", 0, WEIR_EIO, "d: input/output error (in memory)"},
        {"d/f", WEIR__FS_DIR, WEIR_EIO, "d/f: input/output error (in memory)"},
        {"ddd", WEIR__FS_DIR | WEIR__FS_LOCK, WEIR_ENOTFOUND, "ddd: no such thing (in memory)"},
        {"d/f", 0, 0, ""},
        {"d", WEIR__FS_DIR, 0, ""},
        {".", WEIR__FS_DIR | WEIR__FS_LOCK, 0, ""},
    };
    struct weir__fs *fs = memory_of(CHUNK);
    char names[32] = "";

    (void)state;
    assert_int_equal(fs->ops->make_dir(fs, "d", NULL), 0);
    assert_int_equal(fs->ops->make_dir(fs, "deep", NULL), 0);
    weir__file_close(make(fs, "d/f"));
    weir__file_close(make(fs, "deep/g"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_error err = {0};

        assert_int_equal(try_open(fs, cases[i].path, cases[i].flags, &err), cases[i].rc);
        assert_string_equal(err.text, cases[i].text);
    }
    assert_int_equal(fs->ops->list(fs, "d", join_names, names, NULL), 0);
    assert_string_equal(names, "f ");
    assert_int_equal(fs->ops->list(fs, "d/f", join_names, names, NULL), WEIR_ENOTFOUND);
    assert_int_equal(fs->ops->sync_dir(fs, ".", NULL), 0);
    assert_int_equal(fs->ops->sync_dir(fs, "d", NULL), 0);
    assert_int_equal(fs->ops->sync_dir(fs, "d/f", NULL), WEIR_ENOTFOUND);
    weir__fs_memory_free(fs);
}

/* A folder goes when it is empty, and then can be made again; a file goes whatever others are called. */
static void only_empty_folders_go(void **state)
{
    struct weir__fs *fs = memory_of(CHUNK);
    struct weir_error err = {0};

    (void)state;
    assert_int_equal(fs->ops->make_dir(fs, "d", NULL), 0);
    assert_int_equal(fs->ops->make_dir(fs, "d/e", NULL), 0);
    weir__file_close(make(fs, "d/f"));
    assert_int_equal(fs->ops->remove(fs, "d", &err), WEIR_EIO);
    assert_string_equal(err.text, "d: the folder is not empty");
    assert_int_equal(fs->ops->remove(fs, "d/e", NULL), 0);
    assert_int_equal(fs->ops->remove(fs, "d", NULL), WEIR_EIO);
    assert_int_equal(fs->ops->remove(fs, "d/f", NULL), 0);
    assert_int_equal(fs->ops->remove(fs, "d", NULL), 0);
    assert_int_equal(fs->ops->remove(fs, "d", &err), WEIR_ENOTFOUND);
    assert_string_equal(err.text, "d: no such thing (in memory)");
    assert_int_equal(fs->ops->make_dir(fs, "d", NULL), 0);
    assert_int_equal(fs->ops->make_dir(fs, "d", NULL), WEIR_EEXIST);
    weir__fs_memory_free(fs);
}

/* What was cut off is not there any more when the file grows again, to the last byte. */
static void what_is_cut_off_is_zero(void **state)
{
    struct weir__fs *fs = memory_of(2 * CHUNK);
    struct weir__file *f = make(fs, "f");
    uint8_t *bytes = test_malloc(CHUNK), *seen = test_malloc(CHUNK);
    struct weir__bytes part = weir__bytes_of(bytes, CHUNK);
    size_t got = 0;

    (void)state;
    memset(bytes, 'x', CHUNK);
    assert_int_equal(f->ops->write(f, &part, 1, 0, NULL), 0);
    assert_int_equal(f->ops->allocate(f, 10, NULL), 0);
    assert_int_equal(f->ops->allocate(f, CHUNK, NULL), 0);
    assert_int_equal(f->ops->read(f, seen, CHUNK, 0, &got, NULL), 0);
    assert_int_equal(got, CHUNK);
    memset(bytes + 10, 0, CHUNK - 10);
    assert_memory_equal(seen, bytes, CHUNK);
    test_free(bytes);
    test_free(seen);
    weir__file_close(f);
    weir__fs_memory_free(fs);
}

static int count_name(const char *name, void *user)
{
    int *left = user;

    assert_in_range(strlen(name), 1, 12);
    return --*left == 0 ? 77 : 0;
}

/* Every name is told, however long the others are, until whoever listens has heard enough. */
static void names_are_told_until_somebody_stops(void **state)
{
    static const char *const paths[] = {"d/a", "d/long-name", "d/b", "d/x", "d/longer-names"};
    struct weir__fs *fs = memory_of(CHUNK);
    char names[64] = "";

    (void)state;
    assert_int_equal(fs->ops->make_dir(fs, "d", NULL), 0);
    assert_int_equal(fs->ops->list(fs, "d", join_names, names, NULL), 0);
    assert_string_equal(names, "");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        weir__file_close(make(fs, paths[i]));
    assert_int_equal(fs->ops->list(fs, "d", join_names, names, NULL), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_non_null(strstr(names, paths[i] + 2));
    assert_int_equal(strlen(names), strlen("longer-names x b long-name a "));
    for (int most = 1; most <= 5; most++) {
        int left = most;

        assert_int_equal(fs->ops->list(fs, "d", count_name, &left, NULL), 77);
        assert_int_equal(left, 0);
    }
    weir__fs_memory_free(fs);
    weir__fs_memory_free(NULL);
}

/* Whoever locks is the only one until then, and says who that is; other handles do not matter. */
static void a_lock_is_held_until_it_is_closed(void **state)
{
    struct weir__fs *fs = memory_of(CHUNK);
    struct weir__file *lock = NULL, *other = NULL;
    struct weir_error err = {0};
    char text[32] = "", want[64];
    size_t got = 0;

    (void)state;
    assert_int_equal(fs->ops->open(fs, "lock", WEIR__FS_LOCK, &lock, NULL), 0);
    for (int round = 0; round < 2; round++) {
        snprintf(want, sizeof want, "lock: folder is in use by process %ld", (long)getpid());
        assert_int_equal(try_open(fs, "lock", WEIR__FS_LOCK, &err), WEIR_ELOCKED);
        assert_string_equal(err.text, want);
        assert_int_equal(fs->ops->open(fs, "lock", WEIR__FS_READ_ONLY, &other, NULL), 0);
        assert_int_equal(other->ops->read(other, text, sizeof text, 0, &got, NULL), 0);
        weir__file_close(other);
    }
    snprintf(want, sizeof want, "%-23ld\n", (long)getpid());
    assert_int_equal(got, 24);
    assert_memory_equal(text, want, 24);
    weir__file_close(lock);
    assert_int_equal(try_open(fs, "lock", WEIR__FS_LOCK, NULL), 0);
    assert_int_equal(try_open(fs, "lock", WEIR__FS_LOCK, NULL), 0);
    weir__fs_memory_free(fs);
}

/* A read ends with the file, wherever it begins. */
static void reads_end_with_the_file(void **state)
{
    static const struct {
        uint64_t at;
        size_t len, got;
    } cases[] = {{0, 10, 10}, {0, 11, 10}, {8, 2, 2},  {8, 3, 2},
                 {7, 9, 3},   {10, 1, 0},  {11, 1, 0}, {UINT64_MAX, 5, 0}};
    struct weir__fs *fs = memory_of(CHUNK);
    struct weir__file *f = make(fs, "f");

    (void)state;
    assert_int_equal(put(f, "0123456789", 0, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char to[16] = "";
        size_t got = 99;

        assert_int_equal(f->ops->read(f, to, cases[i].len, cases[i].at, &got, NULL), 0);
        assert_int_equal(got, cases[i].got);
        if (got) assert_memory_equal(to, &"0123456789"[cases[i].at], got);
        assert_int_equal(to[cases[i].got], 0);
    }
    weir__file_close(f);
    weir__fs_memory_free(fs);
}

/* What is free is the maximum without what files have; a write of nothing makes none longer. */
static void space_is_counted(void **state)
{
    struct weir__fs *fs = memory_of(4 * CHUNK);
    struct weir__file *f = make(fs, "f");
    struct weir__fs_space space = {0};
    uint64_t size = 9;

    (void)state;
    assert_int_equal(put(f, "", CHUNK, NULL), 0);
    assert_int_equal(f->ops->size(f, &size, NULL), 0);
    assert_int_equal(size, 0);
    assert_int_equal(f->ops->allocate(f, CHUNK, NULL), 0);
    assert_int_equal(fs->ops->space(fs, ".", &space, NULL), 0);
    assert_int_equal(space.size_bytes, 4 * CHUNK);
    assert_int_equal(space.free_bytes, 3 * CHUNK);
    assert_int_equal(fs->ops->space(fs, "d", &space, NULL), WEIR_ENOTFOUND);
    weir__file_close(f);
    weir__fs_memory_free(fs);
}

struct worker {
    struct weir__fs *fs;
    struct weir__file *shared;
    struct weir__thread thread;
    unsigned number, bad;
};

/* Its own file over and over, and its own place in one that all have open. */
static void *work(void *arg)
{
    struct worker *w = arg;
    char name[16], text[24], seen[16];
    struct weir__file *own;
    size_t got;

    snprintf(name, sizeof name, "own-%u", w->number);
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof text, "%05u-%05d", w->number, i);
        w->bad += put(w->shared, text, w->number * (CHUNK - 3), NULL) != 0;
        w->bad +=
            w->shared->ops->read(w->shared, seen, 11, w->number * (CHUNK - 3), &got, NULL) != 0;
        w->bad += got != 11 || memcmp(seen, text, 11) != 0;
        w->bad += w->fs->ops->open(w->fs, name, WEIR__FS_CREATE, &own, NULL) != 0;
        w->bad += own->ops->allocate(own, CHUNK, NULL) != 0;
        w->bad += w->fs->ops->remove(w->fs, name, NULL) != 0;
        weir__file_close(own);
    }
    return NULL;
}

static void threads_do_not_meet(void **state)
{
    struct weir__fs *fs = memory_of(16 * CHUNK);
    struct weir__file *shared = make(fs, "shared");
    struct worker workers[4] = {{0}};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        workers[i] = (struct worker){.fs = fs, .shared = shared, .number = i};
        assert_int_equal(weir__thread_start(&workers[i].thread, "worker", work, &workers[i], NULL),
                         0);
    }
    for (unsigned i = 0; i < 4; i++) {
        weir__thread_join(&workers[i].thread);
        assert_int_equal(workers[i].bad, 0);
    }
    weir__file_close(shared);
    weir__fs_memory_free(fs);
}

/* A whole log on it: full is a refusal, not the end. */
static void a_log_is_told_when_it_is_full(void **state)
{
    static uint8_t body[256 << 10];
    struct weir__fs *fs = memory_of(8 << 20);
    struct weir__log_options o = {
        .fs = fs, .dir = "log", .hub_id = 1, .partitions = 2, .segment_bytes_max = 4 << 20};
    struct weir__log_batch batch = {.count = 1, .body = {weir__bytes_of(body, sizeof body)}};
    struct weir__log_partition_info info;
    struct weir__log *log;
    struct weir_error err = {0};
    unsigned taken = 0;
    int rc = 0;

    (void)state;
    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&log, &o, NULL), 0);
    while (rc == 0 && taken < 100) {
        rc = weir__log_append_wait(log, &batch, weir__deadline_ns(10000), NULL, &err);
        if (rc == 0) taken++;
    }
    assert_int_equal(rc, WEIR_ENOSPACE);
    assert_non_null(strstr(err.text, "all of the 8 MiB"));
    assert_in_range(taken, 8, 31);
    assert_int_equal(weir__log_state(log, NULL), 0);
    assert_int_equal(weir__log_close(log, NULL), 0);

    assert_int_equal(weir__log_open(&log, &o, NULL), 0);
    assert_int_equal(weir__log_partition_info(log, 0, &info, NULL), 0);
    assert_int_equal(info.next_sequence, taken);
    assert_int_equal(weir__log_close(log, NULL), 0);
    weir__fs_memory_free(fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_kept),
        cmocka_unit_test(released_memory_can_be_used),
        cmocka_unit_test(a_reader_cannot_write),
        cmocka_unit_test(only_empty_folders_go),
        cmocka_unit_test(what_is_cut_off_is_zero),
        cmocka_unit_test(names_are_told_apart),
        cmocka_unit_test(names_are_told_until_somebody_stops),
        cmocka_unit_test(a_lock_is_held_until_it_is_closed),
        cmocka_unit_test(reads_end_with_the_file),
        cmocka_unit_test(space_is_counted),
        cmocka_unit_test(threads_do_not_meet),
        cmocka_unit_test(a_log_is_told_when_it_is_full),
    };

    return cmocka_run_group_tests_name("fs_memory", tests, NULL, NULL);
}
