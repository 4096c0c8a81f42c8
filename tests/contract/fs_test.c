/* fs_test.c - what every file system behind log/fs.h owes: the machine's, the one in memory, the
 * simulated one. */
#define _GNU_SOURCE
#include "log/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/simfs.h"
#include "support/tempdir.h"

#define BLOCK ((uint64_t)WEIR__FS_BLOCK)

struct world {
    struct weir__fs *fs;
    struct simfs *sim;
    bool memory;
    char root[TEMPDIR_BYTES];
};

static char *path_in(const struct world *w, const char *name)
{
    static char path[TEMPDIR_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s", w->root, name);
    return path;
}

static struct weir__file *open_ok(struct world *w, const char *name, unsigned flags)
{
    struct weir__file *f = NULL;
    struct weir_error err = {0};

    if (w->fs->ops->open(w->fs, path_in(w, name), flags, &f, &err) != 0)
        fail_msg("opening %s: %s", name, err.text);
    assert_non_null(f);
    return f;
}

static int open_rc(struct world *w, const char *name, unsigned flags, struct weir_error *err)
{
    struct weir__file *f = NULL;
    int rc = w->fs->ops->open(w->fs, path_in(w, name), flags, &f, err);

    assert_true(rc == 0 ? f != NULL : f == NULL);
    weir__file_close(f);
    return rc;
}

static void write_ok(struct weir__file *f, const void *at, size_t len, uint64_t offset)
{
    struct weir__bytes part = weir__bytes_of(at, len);
    struct weir_error err = {0};

    if (f->ops->write(f, &part, 1, offset, &err) != 0) fail_msg("%s", err.text);
}

static size_t read_ok(struct weir__file *f, void *to, size_t len, uint64_t offset)
{
    struct weir_error err = {0};
    size_t got = 0;

    if (f->ops->read(f, to, len, offset, &got, &err) != 0) fail_msg("%s", err.text);
    return got;
}

static uint64_t size_ok(struct weir__file *f)
{
    uint64_t size = 0;

    assert_int_equal(f->ops->size(f, &size, NULL), 0);
    return size;
}

static void make_and_find(void **state)
{
    struct world *w = *state;
    struct weir_error err = {0};

    assert_int_equal(open_rc(w, "f", 0, &err), WEIR_ENOTFOUND);
    assert_non_null(strstr(err.text, path_in(w, "f")));
    assert_int_equal(open_rc(w, "f", WEIR__FS_READ_ONLY, NULL), WEIR_ENOTFOUND);
    assert_int_equal(open_rc(w, "f", WEIR__FS_CREATE, &err), 0);
    assert_int_equal(open_rc(w, "f", WEIR__FS_CREATE, &err), WEIR_EEXIST);
    assert_int_equal(open_rc(w, "f", 0, &err), 0);
    assert_int_equal(open_rc(w, "none/f", WEIR__FS_CREATE, &err), WEIR_ENOTFOUND);
}

static void read_what_was_written(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    char to[32] = "";

    write_ok(f, "hello, world", 12, 0);
    assert_int_equal(read_ok(f, to, sizeof to, 0), 12);
    assert_memory_equal(to, "hello, world", 12);
    assert_int_equal(read_ok(f, to, 5, 7), 5);
    assert_memory_equal(to, "world", 5);
    assert_int_equal(read_ok(f, to, 5, 12), 0);
    assert_int_equal(read_ok(f, to, 5, 1 << 20), 0);
    assert_int_equal(read_ok(f, to, 0, 0), 0);
    assert_int_equal(size_ok(f), 12);
    assert_int_equal(f->ops->sync(f, NULL), 0);
    weir__file_close(f);

    f = open_ok(w, "f", WEIR__FS_READ_ONLY);
    f->ops->prefetch(f, 0, 1 << 20);
    assert_int_equal(read_ok(f, to, sizeof to, 0), 12);
    weir__file_close(f);
}

static void write_over_and_behind(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    uint8_t to[2000];

    write_ok(f, "aaaaaaaa", 8, 0);
    write_ok(f, "bb", 2, 3);
    write_ok(f, "end", 3, 1500);
    assert_int_equal(size_ok(f), 1503);
    assert_int_equal(read_ok(f, to, sizeof to, 0), 1503);
    assert_memory_equal(to, "aaabbaaa", 8);
    for (size_t i = 8; i < 1500; i++) assert_int_equal(to[i], 0);
    assert_memory_equal(to + 1500, "end", 3);
    weir__file_close(f);
}

static void write_many_parts(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    struct weir__bytes parts[WEIR__FS_PARTS_MAX];
    uint8_t from[WEIR__FS_PARTS_MAX * 3], to[sizeof from + 5];

    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(i * 7 + 1);
    for (size_t i = 0; i < WEIR__FS_PARTS_MAX; i++)
        parts[i] =
            weir__bytes_of(from + i * 3, i % 8 == 7 ? 0 : 3); /* empty ones are passed over */
    assert_int_equal(f->ops->write(f, parts, WEIR__FS_PARTS_MAX, 5, NULL), 0);
    assert_int_equal(f->ops->write(f, parts, 0, 5, NULL), 0);
    assert_int_equal(read_ok(f, to, sizeof to, 5), 56 * 3);
    for (size_t i = 0, at = 0; i < WEIR__FS_PARTS_MAX; at += parts[i++].len)
        assert_memory_equal(to + at, parts[i].at, parts[i].len);
    weir__file_close(f);
}

static void allocate_zeros(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    uint8_t to[4096];

    write_ok(f, "keep", 4, 0);
    assert_int_equal(f->ops->allocate(f, 1 << 20, NULL), 0);
    assert_int_equal(size_ok(f), 1 << 20);
    assert_int_equal(read_ok(f, to, sizeof to, (1 << 20) - 4096), 4096);
    for (size_t i = 0; i < sizeof to; i++) assert_int_equal(to[i], 0);
    assert_int_equal(read_ok(f, to, 5, 0), 5);
    assert_memory_equal(to, "keep\0", 5);

    assert_int_equal(f->ops->allocate(f, 2, NULL), 0);
    assert_int_equal(size_ok(f), 2);
    assert_int_equal(f->ops->allocate(f, 4, NULL), 0);
    assert_int_equal(f->ops->sync(f, NULL), 0);
    assert_int_equal(read_ok(f, to, 8, 0), 4);
    assert_memory_equal(to, "ke\0\0", 4);
    weir__file_close(f);
}

static uint64_t used_ok(struct weir__file *f)
{
    uint64_t used = 0;

    assert_int_equal(f->ops->used(f, &used, NULL), 0);
    return used;
}

/* What is released reads as zeros and takes no space; around it nothing changes; what is allocated
 * again has its space. */
static void release_gives_space_back(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE | WEIR__FS_DIRECT);
    uint64_t hole = (uint64_t)512 << 10, full;
    uint8_t *at = aligned_alloc(BLOCK, BLOCK);

    assert_non_null(at);
    assert_int_equal(f->ops->allocate(f, 1 << 20, NULL), 0);
    memset(at, 7, BLOCK);
    for (uint64_t b = 0; b < 1 << 20; b += BLOCK) write_ok(f, at, BLOCK, b);
    assert_int_equal(f->ops->sync(f, NULL), 0);
    full = used_ok(f);
    assert_true(full >= 1 << 20);
    assert_int_equal(f->ops->release(f, (uint64_t)256 << 10, hole, NULL), 0);
    assert_int_equal(size_ok(f), 1 << 20);
    assert_true(used_ok(f) <= full - hole);
    assert_int_equal(read_ok(f, at, BLOCK, (uint64_t)256 << 10), BLOCK);
    for (size_t i = 0; i < BLOCK; i++) assert_int_equal(at[i], 0);
    for (int side = 0; side < 2; side++) {
        read_ok(f, at, BLOCK, side ? (uint64_t)768 << 10 : ((uint64_t)256 << 10) - BLOCK);
        for (size_t i = 0; i < BLOCK; i++) assert_int_equal(at[i], 7);
    }
    write_ok(f, at, BLOCK, (uint64_t)300 << 10 & ~(BLOCK - 1));
    read_ok(f, at, BLOCK, (uint64_t)300 << 10 & ~(BLOCK - 1));
    assert_int_equal(at[5], 7);
    assert_int_equal(f->ops->allocate(f, 1 << 20, NULL), 0);
    assert_true(used_ok(f) >= 1 << 20);
    weir__file_close(f);
    free(at);
}

static void direct_and_buffered_agree(void **state)
{
    struct world *w = *state;
    struct weir__file *direct = open_ok(w, "f", WEIR__FS_CREATE | WEIR__FS_DIRECT);
    struct weir__file *plain = open_ok(w, "f", WEIR__FS_READ_ONLY);
    size_t len = 4 * BLOCK;
    uint8_t *at = aligned_alloc(BLOCK, len), *to = aligned_alloc(BLOCK, len);

    assert_true(at && to);
    for (size_t i = 0; i < len; i++) at[i] = (uint8_t)(i * 31 + i / 512);
    assert_int_equal(direct->ops->allocate(direct, 8 * BLOCK, NULL), 0);
    write_ok(direct, at, len, BLOCK);
    assert_int_equal(read_ok(plain, to, len, BLOCK), len);
    assert_memory_equal(to, at, len);
    assert_int_equal(direct->ops->sync(direct, NULL), 0);
    memset(to, 0, len);
    assert_int_equal(read_ok(direct, to, len, BLOCK), len);
    assert_memory_equal(to, at, len);

    weir__file_close(direct);
    direct = open_ok(w, "f", WEIR__FS_READ_ONLY | WEIR__FS_DIRECT);
    assert_int_equal(read_ok(direct, to, len, 6 * BLOCK), 2 * BLOCK);
    assert_int_equal(read_ok(direct, to, len, 8 * BLOCK), 0);
    weir__file_close(direct);
    weir__file_close(plain);
    free(at);
    free(to);
}

/* A direct read that meets an end inside a block gives what there is. */
static void direct_read_of_odd_size(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    uint8_t *to = aligned_alloc(BLOCK, 2 * BLOCK);

    assert_non_null(to);
    write_ok(f, "tail", 4, BLOCK);
    weir__file_close(f);
    f = open_ok(w, "f", WEIR__FS_READ_ONLY | WEIR__FS_DIRECT);
    assert_int_equal(read_ok(f, to, 2 * BLOCK, 0), BLOCK + 4);
    assert_memory_equal(to + BLOCK, "tail", 4);
    weir__file_close(f);
    free(to);
}

struct names {
    char text[256];
    int count, stop_at;
};

static int note_name(const char *name, void *user)
{
    struct names *n = user;

    snprintf(n->text + strlen(n->text), sizeof n->text - strlen(n->text), "[%s]", name);
    return ++n->count == n->stop_at ? 77 : 0;
}

static void list_and_remove(void **state)
{
    struct world *w = *state;
    struct names all = {0}, some = {.stop_at = 2}, left = {0};
    struct weir_error err = {0};
    char dir[TEMPDIR_BYTES + 64];

    snprintf(dir, sizeof dir, "%s", path_in(w, "d"));
    assert_int_equal(w->fs->ops->list(w->fs, dir, note_name, &all, &err), WEIR_ENOTFOUND);
    assert_int_equal(w->fs->ops->make_dir(w->fs, dir, NULL), 0);
    assert_int_equal(w->fs->ops->make_dir(w->fs, dir, NULL), WEIR_EEXIST);
    assert_int_equal(w->fs->ops->make_dir(w->fs, path_in(w, "no/d"), NULL), WEIR_ENOTFOUND);
    assert_int_equal(open_rc(w, "d/a", WEIR__FS_CREATE, NULL), 0);
    assert_int_equal(open_rc(w, "d/b", WEIR__FS_CREATE, NULL), 0);
    assert_int_equal(open_rc(w, "d/.c", WEIR__FS_CREATE, NULL), 0);
    assert_int_equal(w->fs->ops->make_dir(w->fs, path_in(w, "d/e"), NULL), 0);
    assert_int_equal(open_rc(w, "d/e/deep", WEIR__FS_CREATE, NULL), 0);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, dir, NULL), 0);
    assert_int_equal(w->fs->ops->list(w->fs, dir, note_name, &all, NULL), 0);
    assert_int_equal(all.count, 4);
    assert_true(strstr(all.text, "[a]") && strstr(all.text, "[b]"));
    assert_true(strstr(all.text, "[.c]") && strstr(all.text, "[e]"));
    assert_int_equal(w->fs->ops->list(w->fs, dir, note_name, &some, NULL), 77);
    assert_int_equal(some.count, 2);

    assert_int_equal(w->fs->ops->remove(w->fs, dir, NULL), WEIR_EIO); /* not empty */
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/a"), NULL), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/a"), NULL), WEIR_ENOTFOUND);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/b"), NULL), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/.c"), NULL), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/e/deep"), NULL), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/e"), NULL), 0);
    assert_int_equal(w->fs->ops->list(w->fs, dir, note_name, &left, NULL), 0);
    assert_int_equal(left.count, 0);
    assert_int_equal(w->fs->ops->remove(w->fs, dir, NULL), 0);
    assert_int_equal(w->fs->ops->sync_dir(w->fs, dir, &err), WEIR_ENOTFOUND);
}

static void removed_file_can_be_read_and_made_again(void **state)
{
    struct world *w = *state;
    struct weir__file *old = open_ok(w, "f", WEIR__FS_CREATE), *new;
    char to[4] = "";

    write_ok(old, "old", 3, 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "f"), NULL), 0);
    new = open_ok(w, "f", WEIR__FS_CREATE);
    write_ok(new, "new", 3, 0);
    assert_int_equal(read_ok(old, to, 3, 0), 3);
    assert_string_equal(to, "old");
    weir__file_close(old);
    assert_int_equal(read_ok(new, to, 3, 0), 3);
    assert_string_equal(to, "new");
    weir__file_close(new);
}

static void lock_holds_until_closed(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "LOCK", WEIR__FS_LOCK), *reader;
    struct weir_error err = {0};
    char text[64] = "", expected[64];
    long pid;

    assert_int_equal(open_rc(w, "LOCK", WEIR__FS_LOCK, &err), WEIR_ELOCKED);
    reader = open_ok(w, "LOCK", WEIR__FS_READ_ONLY);
    read_ok(reader, text, sizeof text - 1, 0);
    weir__file_close(reader);
    pid = strtol(text, NULL, 10);
    if (!w->sim) assert_int_equal(pid, getpid());
    snprintf(expected, sizeof expected, "in use by process %ld", pid);
    assert_non_null(strstr(err.text, expected));
    assert_non_null(strstr(err.text, path_in(w, "LOCK")));

    weir__file_close(f);
    f = open_ok(w, "LOCK", WEIR__FS_LOCK);
    weir__file_close(f);
}

/* Names are synced through a handle that is open already; there is nothing to read or write. */
static void folders_have_handles(void **state)
{
    struct world *w = *state;
    struct weir_error err = {0};
    struct weir__file *dir;

    assert_int_equal(w->fs->ops->make_dir(w->fs, path_in(w, "d"), NULL), 0);
    dir = open_ok(w, "d", WEIR__FS_DIR);
    assert_int_equal(open_rc(w, "d/f", WEIR__FS_CREATE, &err), 0);
    assert_int_equal(dir->ops->sync(dir, &err), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d/f"), NULL), 0);
    assert_int_equal(w->fs->ops->remove(w->fs, path_in(w, "d"), NULL), 0);
    assert_int_equal(dir->ops->sync(dir, &err), 0);
    weir__file_close(dir);
    assert_int_equal(w->fs->ops->open(w->fs, ".", WEIR__FS_DIR, &dir, &err), 0);
    weir__file_close(dir);
    assert_int_equal(open_rc(w, "f", WEIR__FS_CREATE, &err), 0);
    assert_int_equal(open_rc(w, "f", WEIR__FS_DIR, &err), WEIR_EIO);
    assert_int_equal(open_rc(w, "none", WEIR__FS_DIR, &err), WEIR_ENOTFOUND);
    assert_int_equal(open_rc(w, "none", WEIR__FS_DIR | WEIR__FS_LOCK, &err), WEIR_ENOTFOUND);
    assert_non_null(strstr(err.text, path_in(w, "none")));
}

/* A lock on the folder itself, that no removal of a name undoes. */
static void folder_lock_holds_until_closed(void **state)
{
    const unsigned flags = WEIR__FS_DIR | WEIR__FS_LOCK;
    struct world *w = *state;
    struct weir__file *dir, *free_one;
    struct weir_error err = {0};
    char expected[64];

    assert_int_equal(w->fs->ops->make_dir(w->fs, path_in(w, "d"), NULL), 0);
    dir = open_ok(w, "d", flags);
    assert_int_equal(open_rc(w, "d", flags, &err), WEIR_ELOCKED);
    snprintf(expected, sizeof expected, "in use by process %ld", w->sim ? 4242 : (long)getpid());
    if (!strstr(err.text, expected)) assert_non_null(strstr(err.text, "in use by another process"));
    assert_non_null(strstr(err.text, path_in(w, "d")));
    free_one = open_ok(w, "d", WEIR__FS_DIR); /* looking is free */
    assert_int_equal(free_one->ops->sync(free_one, &err), 0);
    weir__file_close(free_one);
    assert_int_equal(open_rc(w, "d", flags, &err), WEIR_ELOCKED);
    assert_int_equal(dir->ops->sync(dir, &err), 0);
    weir__file_close(dir);
    assert_int_equal(open_rc(w, "d", flags, &err), 0);
}

/* More than there can be, so that a real disk is not filled to its brim: it answers "too large". */
static void full_disk_is_told(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    struct weir_error err = {0};
    char to[8] = "";
    int rc;

    write_ok(f, "before", 6, 0);
    if (w->sim) simfs_capacity(w->sim, 1 << 20);
    rc = f->ops->allocate(f, (uint64_t)1 << 50, &err);
    assert_int_equal(rc, err.code);
    assert_true(w->sim || w->memory ? rc == WEIR_ENOSPACE : rc != 0);
    assert_int_equal(size_ok(f), 6);
    assert_int_equal(read_ok(f, to, sizeof to, 0), 6);
    weir__file_close(f);
}

/* Others use a real disk at the same time, so of that only what must be so. */
static void space_is_told(void **state)
{
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE);
    struct weir__fs_space before, after;

    if (w->sim) simfs_capacity(w->sim, 8 << 20);
    assert_int_equal(w->fs->ops->space(w->fs, w->root, &before, NULL), 0);
    assert_true(before.free_bytes > 0 && before.free_bytes <= before.size_bytes);
    assert_int_equal(f->ops->allocate(f, 1 << 20, NULL), 0);
    assert_int_equal(w->fs->ops->space(w->fs, w->root, &after, NULL), 0);
    assert_int_equal(after.size_bytes, before.size_bytes);
    if (w->sim || w->memory) assert_int_equal(before.free_bytes - after.free_bytes, 1 << 20);
    assert_int_equal(w->fs->ops->space(w->fs, path_in(w, "missing"), &after, NULL), WEIR_ENOTFOUND);
    weir__file_close(f);
}

static void assert_begins_with_path(const struct world *w, const char *name, int rc,
                                    const struct weir_error *err)
{
    char begin[TEMPDIR_BYTES + 68];

    snprintf(begin, sizeof begin, "%s: ", path_in(w, name));
    if (rc == 0 || rc != err->code || strncmp(err->text, begin, strlen(begin)) != 0)
        fail_msg("%d, and not of %s: %s", rc, begin, err->text);
}

static void errors_begin_with_the_path(void **state)
{
    struct world *w = *state;
    struct weir__file *lock = open_ok(w, "lock", WEIR__FS_LOCK), *f;
    const struct weir__fs_ops *ops = w->fs->ops;
    struct weir__fs_space space;
    struct weir_error err = {0};
    int rc;

    f = open_ok(w, "f", WEIR__FS_CREATE);
    assert_begins_with_path(w, "none", open_rc(w, "none", 0, &err), &err);
    assert_begins_with_path(w, "none", open_rc(w, "none", WEIR__FS_DIR, &err), &err);
    assert_begins_with_path(w, "f", open_rc(w, "f", WEIR__FS_CREATE, &err), &err);
    assert_begins_with_path(w, "f", open_rc(w, "f", WEIR__FS_DIR, &err), &err);
    if (w->sim || w->memory) /* the machine's locks are between processes */
        assert_begins_with_path(w, "lock", open_rc(w, "lock", WEIR__FS_LOCK, &err), &err);
    rc = ops->list(w->fs, path_in(w, "none"), NULL, NULL, &err);
    assert_begins_with_path(w, "none", rc, &err);
    rc = ops->remove(w->fs, path_in(w, "none"), &err);
    assert_begins_with_path(w, "none", rc, &err);
    rc = ops->make_dir(w->fs, path_in(w, "f"), &err);
    assert_begins_with_path(w, "f", rc, &err);
    rc = ops->sync_dir(w->fs, path_in(w, "none"), &err);
    assert_begins_with_path(w, "none", rc, &err);
    rc = ops->space(w->fs, path_in(w, "none"), &space, &err);
    assert_begins_with_path(w, "none", rc, &err);
    if (w->sim) simfs_capacity(w->sim, 1 << 20);
    assert_begins_with_path(w, "f", f->ops->allocate(f, (uint64_t)1 << 50, &err), &err);
    weir__file_close(f);
    weir__file_close(lock);
}

/* Only here can they be made to fail. */
static void simulated_faults_begin_with_the_path(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_ANY, .at = 1, .rc = WEIR_EIO, .persistent = true};
    struct world *w = *state;
    struct weir__file *f = open_ok(w, "f", WEIR__FS_CREATE), *dir;
    struct weir__bytes part = weir__bytes_of("x", 1);
    struct weir_error err = {0};
    uint64_t size;
    size_t got;
    char to;

    assert_int_equal(w->fs->ops->make_dir(w->fs, path_in(w, "d"), NULL), 0);
    dir = open_ok(w, "d", WEIR__FS_DIR);
    write_ok(f, "x", 1, 0);
    simfs_capacity(w->sim, BLOCK);
    assert_begins_with_path(w, "f", f->ops->write(f, &part, 1, BLOCK, &err), &err);
    simfs_spoil(w->sim, path_in(w, "f"), 0, 1);
    assert_begins_with_path(w, "f", f->ops->read(f, &to, 1, 0, &got, &err), &err);
    simfs_fail(w->sim, &fault);
    assert_begins_with_path(w, "f", f->ops->read(f, &to, 1, 0, &got, &err), &err);
    assert_begins_with_path(w, "f", f->ops->write(f, &part, 1, 0, &err), &err);
    assert_begins_with_path(w, "f", f->ops->sync(f, &err), &err);
    assert_begins_with_path(w, "f", f->ops->size(f, &size, &err), &err);
    assert_begins_with_path(w, "f", f->ops->release(f, 0, 0, &err), &err);
    assert_begins_with_path(w, "d", dir->ops->sync(dir, &err), &err);
    assert_begins_with_path(w, "f", open_rc(w, "f", 0, &err), &err);
    weir__file_close(dir);
    weir__file_close(f);
}

static int set_up_posix(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->fs = weir__fs_posix();
    if (tempdir_make(w->root) != 0) return -1;
    *state = w;
    return 0;
}

static int set_up_sim(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->sim = simfs_new();
    w->fs = simfs_fs(w->sim);
    snprintf(w->root, sizeof w->root, "root");
    *state = w;
    return w->fs->ops->make_dir(w->fs, w->root, NULL);
}

static int set_up_memory(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->memory = true;
    snprintf(w->root, sizeof w->root, "root");
    *state = w;
    if (weir__fs_memory_new(&w->fs, 64 << 20, NULL) != 0) return -1;
    return w->fs->ops->make_dir(w->fs, w->root, NULL);
}

static int tear_down(void **state)
{
    struct world *w = *state;

    if (w->memory)
        weir__fs_memory_free(w->fs);
    else if (!w->sim)
        tempdir_remove(w->root);
    simfs_free(w->sim);
    test_free(w);
    return 0;
}

#define ON_ALL(test)                                                                               \
    {#test " (posix)", test, set_up_posix, tear_down, NULL},                                       \
        {#test " (memory)", test, set_up_memory, tear_down, NULL},                                 \
    {                                                                                              \
#test " (simulated)", test, set_up_sim, tear_down, NULL                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(make_and_find),
        ON_ALL(read_what_was_written),
        ON_ALL(write_over_and_behind),
        ON_ALL(write_many_parts),
        ON_ALL(allocate_zeros),
        ON_ALL(release_gives_space_back),
        ON_ALL(direct_and_buffered_agree),
        ON_ALL(direct_read_of_odd_size),
        ON_ALL(list_and_remove),
        ON_ALL(removed_file_can_be_read_and_made_again),
        ON_ALL(lock_holds_until_closed),
        ON_ALL(folders_have_handles),
        ON_ALL(folder_lock_holds_until_closed),
        ON_ALL(full_disk_is_told),
        ON_ALL(space_is_told),
        ON_ALL(errors_begin_with_the_path),
        {"simulated_faults_begin_with_the_path", simulated_faults_begin_with_the_path, set_up_sim,
         tear_down, NULL},
    };

    return cmocka_run_group_tests_name("fs", tests, NULL, NULL);
}
