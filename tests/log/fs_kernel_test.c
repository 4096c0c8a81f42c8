/* fs_kernel_test.c - a kernel that does less than it was asked for: transfers that are cut short,
 * interrupted or refused, space that cannot be reserved or given back. The linker puts this program's
 * calls in the place of the library's; reads and writes go through support/calls.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/fs.h"
#include "support/calls.h"
#include "support/tempdir.h"

#define BLOCK ((uint64_t)WEIR__FS_BLOCK)
#define LARGEST ((off_t)1 << 40) /* file that there can be */

/* Which call fails, with what, how many times; other calls are the kernel's. */
static struct {
    const char *call;
    int errnum;
    unsigned times, made;
} refused;

static void refuse(const char *call, int errnum, unsigned times)
{
    refused.call = call;
    refused.errnum = errnum;
    refused.times = times;
    refused.made = 0;
}

static bool is_refused(const char *call)
{
    if (!refused.call || strcmp(refused.call, call) != 0) return false;
    if (refused.made++ >= refused.times) return false;
    errno = refused.errnum;
    return true;
}

int __real_fallocate(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate(int fd, int mode, off_t at, off_t len);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_statvfs(const char *path, struct statvfs *out);

int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
    return is_refused("fallocate") ? -1 : __real_fallocate(fd, mode, at, len);
}

int __wrap_ftruncate(int fd, off_t size)
{
    errno = EFBIG;
    return size > LARGEST || is_refused("ftruncate") ? -1 : __real_ftruncate(fd, size);
}

int __wrap_fstat(int fd, struct stat *st)
{
    return is_refused("fstat") ? -1 : __real_fstat(fd, st);
}

/* A disk with some blocks that only the administrator may use. */
int __wrap_statvfs(const char *path, struct statvfs *out)
{
    (void)path;
    if (is_refused("statvfs")) return -1;
    *out = (struct statvfs){
        .f_bsize = 65536, .f_frsize = 512, .f_blocks = 1000, .f_bfree = 400, .f_bavail = 300};
    return 0;
}

struct place {
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 8];
    struct weir__fs *fs;
    struct weir__file *f;
};

static int begin(void **state)
{
    static struct place p;

    refuse(NULL, 0, 0);
    p.fs = weir__fs_posix();
    assert_int_equal(tempdir_make(p.dir), 0);
    snprintf(p.path, sizeof p.path, "%s/f", p.dir);
    assert_int_equal(p.fs->ops->open(p.fs, p.path, WEIR__FS_CREATE, &p.f, NULL), 0);
    *state = &p;
    return 0;
}

static int end(void **state)
{
    struct place *p = *state;

    calls_shorten(0);
    refuse(NULL, 0, 0);
    weir__file_close(p->f);
    tempdir_remove(p->dir);
    return 0;
}

static uint64_t size_of(struct place *p)
{
    uint64_t size = 0;

    assert_int_equal(p->f->ops->size(p->f, &size, NULL), 0);
    return size;
}

static uint64_t used_of(struct place *p)
{
    uint64_t used = 0;

    assert_int_equal(p->f->ops->used(p->f, &used, NULL), 0);
    return used;
}

static void write_ok(struct place *p, const char *text, uint64_t at)
{
    struct weir__bytes part = weir__bytes_of(text, strlen(text));

    assert_int_equal(p->f->ops->write(p->f, &part, 1, at, NULL), 0);
}

/* Fails as it should, with the path and the name of the call. */
static void expect(struct place *p, int rc, const struct weir_error *err, int code,
                   const char *call)
{
    char text[sizeof p->path + 64];

    assert_int_equal(rc, code);
    if (rc == 0) return;
    snprintf(text, sizeof text, "%s: %s: ", p->path, call);
    if (strncmp(err->text, text, strlen(text)) != 0) fail_msg("%s", err->text);
}

static void short_transfers_are_gone_on_with(void **state)
{
    static const size_t limits[] = {1, 2, 3, 7, 64, 1000};
    struct place *p = *state;
    uint8_t from[300], to[400];
    struct weir__bytes parts[] = {weir__bytes_of(from, 1), weir__bytes_of(from + 1, 0),
                                  weir__bytes_of(from + 1, 62), weir__bytes_of(from + 63, 237)};
    size_t got;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (size_t k = 0; k < sizeof from; k++) from[k] = (uint8_t)(k * 7 + i + 1);
        calls_shorten(limits[i]);
        assert_int_equal(p->f->ops->write(p->f, parts, 4, 5, NULL), 0);
        memset(to, 0, sizeof to);
        assert_int_equal(p->f->ops->read(p->f, to, sizeof to, 5, &got, NULL), 0);
        assert_int_equal(got, sizeof from);
        assert_memory_equal(to, from, sizeof from);
        assert_int_equal(p->f->ops->read(p->f, to, 100, 7, &got, NULL), 0);
        assert_int_equal(got, 100);
        assert_memory_equal(to, from + 2, 100);
        calls_shorten(0);
        assert_int_equal(size_of(p), 305);
    }
}

/* Also when some of it has been moved already. */
static void failed_transfers_are_told(void **state)
{
    static const struct {
        int errnum, rc;
    } cases[] = {{EIO, WEIR_EIO}, {ENOSPC, WEIR_ENOSPACE}};
    struct place *p = *state;
    struct weir__bytes part = weir__bytes_of("some bytes", 10);
    struct weir_error err;
    uint8_t to[10];
    size_t got;

    write_ok(p, "some bytes", 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int after = 0; after < 8; after += 2) { /* every other one is interrupted */
            calls_shorten(2);
            calls_fail(after, cases[i].errnum);
            expect(p, p->f->ops->read(p->f, to, 10, 0, &got, &err), &err, cases[i].rc, "pread");
            assert_true(calls_failed());
            calls_fail(after, cases[i].errnum);
            expect(p, p->f->ops->write(p->f, &part, 1, 0, &err), &err, cases[i].rc, "pwritev");
            assert_true(calls_failed());
        }
    calls_fail(0, 0);
    expect(p, p->f->ops->write(p->f, &part, 1, 0, &err), &err, WEIR_EIO, "pwritev wrote nothing");
}

/* A handle that left direct transfers is as good as one that never had them: short reads go on, and what
 * is refused then is told. */
static void direct_transfers_are_left_for_good(void **state)
{
    static uint8_t to[WEIR__FS_BLOCK] __attribute__((aligned(WEIR__FS_BLOCK)));
    struct place *p = *state;
    uint64_t before = calls_refused_direct();
    struct weir_error err;
    struct weir__file *f;
    size_t got;

    assert_int_equal(p->f->ops->allocate(p->f, BLOCK, NULL), 0);
    write_ok(p, "some bytes", BLOCK - 10);
    assert_int_equal(p->fs->ops->open(p->fs, p->path, WEIR__FS_DIRECT, &f, NULL), 0);
    calls_refuse_direct(true);
    assert_int_equal(f->ops->read(f, to, BLOCK, 0, &got, NULL), 0);
    calls_refuse_direct(false);
    if (calls_refused_direct() == before) print_message("no direct handles here\n");
    assert_int_equal(f->not_direct, calls_refused_direct() != before);
    if (f->not_direct) {
        calls_shorten(1000);
        assert_int_equal(f->ops->read(f, to, BLOCK, 0, &got, NULL), 0);
        assert_int_equal(got, BLOCK);
        calls_fail(0, EINVAL);
        expect(p, f->ops->read(f, to, BLOCK, 0, &got, &err), &err, WEIR_EIO, "pread");
        assert_true(calls_failed());
    }
    weir__file_close(f);
}

/* Where space cannot be reserved it is written: what was there stays, and what is new is zeros. */
static void space_is_written_where_it_cannot_be_reserved(void **state)
{
    static const int answers[] = {EOPNOTSUPP, ENOSYS};
    static const uint64_t sizes[] = {4,         5,         BLOCK - 1,       BLOCK,
                                     BLOCK + 1, 2 * BLOCK, 64 * BLOCK + 10, 70 * BLOCK};
    struct place *p = *state;
    uint8_t *to = malloc(70 * BLOCK + 1);
    size_t got;

    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t size = sizes[i / 2];

        write_ok(p, "keep", 0);
        assert_int_equal(p->f->ops->allocate(p->f, 4, NULL), 0);
        refuse("fallocate", answers[i % 2], 1);
        assert_int_equal(p->f->ops->allocate(p->f, size, NULL), 0);
        assert_int_equal(refused.made, 1);
        assert_int_equal(size_of(p), size);
        assert_true(used_of(p) >= size);
        assert_int_equal(p->f->ops->read(p->f, to, 70 * BLOCK + 1, 0, &got, NULL), 0);
        assert_int_equal(got, size);
        assert_memory_equal(to, "keep", 4);
        for (size_t k = 4; k < got; k++) assert_int_equal(to[k], 0);
    }
    free(to);
}

/* A file that cannot have all of it is as long as before. */
static void space_that_is_refused_is_told(void **state)
{
    struct place *p = *state;
    struct weir_error err;

    write_ok(p, "keep", 0);
    refuse("fallocate", ENOSPC, 1);
    expect(p, p->f->ops->allocate(p->f, 5 * BLOCK, &err), &err, WEIR_ENOSPACE, "fallocate");
    assert_int_equal(size_of(p), 4);
    for (int after = 0; after < 2; after++) { /* writes of 64 blocks each */
        refuse("fallocate", EOPNOTSUPP, 1);
        calls_fail(after, ENOSPC);
        expect(p, p->f->ops->allocate(p->f, 100 * BLOCK, &err), &err, WEIR_ENOSPACE, "pwritev");
        assert_true(calls_failed());
        assert_int_equal(size_of(p), 4);
        assert_true(used_of(p) <= BLOCK);
    }
    refuse("fallocate", EOPNOTSUPP, 1); /* too large for any disk: nothing is written */
    calls_fail(0, EIO);
    assert_true(p->f->ops->allocate(p->f, (uint64_t)LARGEST + 1, &err) != 0);
    assert_false(calls_failed());
    calls_fail(-1, 0);
    refuse("fallocate", EINTR, 3);
    assert_int_equal(p->f->ops->allocate(p->f, 5 * BLOCK, NULL), 0);
    assert_int_equal(refused.made, 4);
    assert_int_equal(size_of(p), 5 * BLOCK);
    refuse("ftruncate", EINTR, 2);
    assert_int_equal(p->f->ops->allocate(p->f, 10, NULL), 0);
    assert_int_equal(refused.made, 3);
    assert_int_equal(size_of(p), 10);
    refuse("ftruncate", EIO, 1);
    expect(p, p->f->ops->allocate(p->f, 4, &err), &err, WEIR_EIO, "ftruncate");
    refuse("fstat", EIO, 1);
    expect(p, p->f->ops->allocate(p->f, 4, &err), &err, WEIR_EIO, "fstat");
    assert_int_equal(size_of(p), 10);
}

/* Space that a file system cannot give back stays where it is; anything else is an error. */
static void space_that_stays_is_no_error(void **state)
{
    static const struct {
        int errnum, rc;
        unsigned times, made;
    } cases[] = {{EOPNOTSUPP, 0, 9, 1}, {ENOSYS, 0, 9, 1}, {EINTR, 0, 2, 3}, {EIO, WEIR_EIO, 9, 1}};
    struct place *p = *state;
    struct weir_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(p->f->ops->allocate(p->f, 4 * BLOCK, NULL), 0);
        refuse("fallocate", cases[i].errnum, cases[i].times);
        expect(p, p->f->ops->release(p->f, BLOCK, 2 * BLOCK, &err), &err, cases[i].rc, "fallocate");
        assert_int_equal(refused.made, cases[i].made);
        refuse(NULL, 0, 0);
        assert_int_equal(size_of(p), 4 * BLOCK);
    }
}

static void sizes_that_are_not_known_are_told(void **state)
{
    struct place *p = *state;
    struct weir_error err;
    uint64_t out;
    struct weir__file *other;

    refuse("fstat", EIO, 1);
    expect(p, p->f->ops->size(p->f, &out, &err), &err, WEIR_EIO, "fstat");
    refuse("fstat", EIO, 1);
    expect(p, p->f->ops->used(p->f, &out, &err), &err, WEIR_EIO, "fstat");
    refuse("fstat", EIO, 1);
    expect(p, p->fs->ops->open(p->fs, p->path, 0, &other, &err), &err, WEIR_EIO, "fstat");
    assert_null(other);
}

static void space_of_a_disk_is_what_we_may_use(void **state)
{
    struct place *p = *state;
    struct weir__fs_space space = {0};
    struct weir_error err;

    refuse("statvfs", EINTR, 2);
    assert_int_equal(p->fs->ops->space(p->fs, p->path, &space, NULL), 0);
    assert_int_equal(refused.made, 3);
    assert_int_equal(space.free_bytes, 300 * 512);
    assert_int_equal(space.size_bytes, 1000 * 512);
    refuse("statvfs", EIO, 1);
    expect(p, p->fs->ops->space(p->fs, p->path, &space, &err), &err, WEIR_EIO, "statvfs");
}

/* A lock that nobody holds names nobody. */
static void a_lock_that_is_let_go_of_has_no_pid(void **state)
{
    char text[32] = "", expected[32];
    struct place *p = *state;
    struct weir__file *lock;
    size_t got;

    assert_int_equal(p->fs->ops->open(p->fs, p->path, WEIR__FS_LOCK, &lock, NULL), 0);
    assert_int_equal(p->f->ops->read(p->f, text, sizeof text, 0, &got, NULL), 0);
    snprintf(expected, sizeof expected, "%-23ld\n", (long)getpid());
    assert_int_equal(got, 24);
    assert_memory_equal(text, expected, 24);
    weir__file_close(lock);
    assert_int_equal(p->f->ops->read(p->f, text, sizeof text, 0, &got, NULL), 0);
    snprintf(expected, sizeof expected, "%-23s\n", "");
    assert_int_equal(got, 24);
    assert_memory_equal(text, expected, 24);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(short_transfers_are_gone_on_with),
        TEST(failed_transfers_are_told),
        TEST(direct_transfers_are_left_for_good),
        TEST(space_is_written_where_it_cannot_be_reserved),
        TEST(space_that_is_refused_is_told),
        TEST(space_that_stays_is_no_error),
        TEST(sizes_that_are_not_known_are_told),
        TEST(space_of_a_disk_is_what_we_may_use),
        TEST(a_lock_that_is_let_go_of_has_no_pid),
    };

    return cmocka_run_group_tests_name("fs_kernel", tests, NULL, NULL);
}
