/* fs_posix_test.c - a kernel that says no: what the machine's own file system makes of it. The
 * linker puts this program's fsync and fdatasync in the place of the library's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/fs.h"
#include "log/log.h"
#include "support/descriptors.h"
#include "support/tempdir.h"

#define PLAN_MAX 4

/* What the next calls answer: an errno each, then 0 for good. */
static struct {
    int answers[PLAN_MAX];
    unsigned calls;
    ino_t synced; /* by the last fsync */
} plan;

int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

static int follow_plan(void)
{
    unsigned at = plan.calls++;

    errno = at < PLAN_MAX ? plan.answers[at] : 0;
    return errno ? -1 : 0;
}

int __wrap_fsync(int fd)
{
    struct stat st = {0};

    assert_int_equal(fstat(fd, &st), 0);
    plan.synced = st.st_ino;
    return follow_plan();
}

int __wrap_fdatasync(int fd)
{
    (void)fd;
    return follow_plan();
}

struct failing {
    int answers[PLAN_MAX];
    int rc;
    unsigned calls;
};

/* An interrupted call is made again; an error is told, once, and the call is not made again. */
static const struct failing cases[] = {
    {{0}, 0, 1},
    {{EINTR, 0}, 0, 2},
    {{EINTR, EINTR, 0}, 0, 3},
    {{EIO, 0}, WEIR_EIO, 1},
    {{EINTR, EIO, 0}, WEIR_EIO, 2},
    {{ENOSPC, 0}, WEIR_ENOSPACE, 1},
};

#define CASES (sizeof cases / sizeof cases[0])

static void begin_case(size_t i)
{
    for (unsigned k = 0; k < PLAN_MAX; k++) plan.answers[k] = cases[i].answers[k];
    plan.calls = 0;
}

static void end_case(size_t i, int rc, const struct weir_error *err, const char *path)
{
    assert_int_equal(rc, cases[i].rc);
    assert_int_equal(plan.calls, cases[i].calls);
    if (rc != 0 && !strstr(err->text, path)) fail_msg("%zu: %s", i, err->text);
}

static void a_folder_that_is_not_durable_is_told(void **state)
{
    struct weir__fs *fs = weir__fs_posix();
    char dir[TEMPDIR_BYTES];
    unsigned before;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    begin_case(0);
    assert_int_equal(fs->ops->sync_dir(fs, dir, NULL), 0);
    before = descriptors_count();
    for (size_t i = 0; i < CASES; i++) {
        struct weir_error err = {0};
        int rc;
        begin_case(i);
        rc = fs->ops->sync_dir(fs, dir, &err);
        end_case(i, rc, &err, dir);
    }
    assert_int_equal(descriptors_count(), before);
    tempdir_remove(dir);
}

static void a_file_that_is_not_durable_is_told(void **state)
{
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 8];
    struct weir__fs *fs = weir__fs_posix();
    struct weir__file *f;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(path, sizeof path, "%s/f", dir);
    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_CREATE, &f, NULL), 0);
    for (size_t i = 0; i < CASES; i++) {
        struct weir_error err = {0};
        int rc;
        begin_case(i);
        rc = f->ops->sync(f, &err);
        end_case(i, rc, &err, path);
    }
    weir__file_close(f);
    tempdir_remove(dir);
}

static void what_is_not_there_is_not_synced(void **state)
{
    struct weir__fs *fs = weir__fs_posix();
    struct weir_error err = {0};

    (void)state;
    plan.calls = 0;
    assert_int_equal(fs->ops->sync_dir(fs, "/nowhere/at/all", &err), WEIR_ENOTFOUND);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    assert_int_equal(plan.calls, 0);
}

/* Whoever opened a pipe would wait until somebody writes into it. */
static void pipes_are_not_waited_for(void **state)
{
    static const unsigned ways[] = {0, WEIR__FS_READ_ONLY, WEIR__FS_LOCK, WEIR__FS_DIRECT};
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 8], want[TEMPDIR_BYTES + 64];
    struct weir__fs *fs = weir__fs_posix();
    unsigned before = descriptors_count();

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(path, sizeof path, "%s/f", dir);
    snprintf(want, sizeof want, "%s: not a regular file", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct weir_error err = {0};
        struct weir__file *f;

        assert_int_equal(fs->ops->open(fs, path, ways[i], &f, &err), WEIR_ECORRUPT);
        assert_null(f);
        assert_string_equal(err.text, want);
    }
    assert_int_equal(descriptors_count(), before);
    tempdir_remove(dir);
}

static mode_t mode_of(const char *path)
{
    struct stat st = {0};

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

/* They hold other people's events. A link in the place of a file leads nowhere. */
static void files_are_the_owners_alone(void **state)
{
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 8], other[TEMPDIR_BYTES + 8];
    struct weir__fs *fs = weir__fs_posix();
    mode_t mask = umask(0);
    struct weir_error err = {0};
    struct weir__file *f;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(path, sizeof path, "%s/f", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_CREATE, &f, NULL), 0);
    weir__file_close(f);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(fs->ops->make_dir(fs, other, NULL), 0);
    assert_int_equal(mode_of(other), 0700);
    assert_int_equal(fs->ops->remove(fs, other, NULL), 0);
    assert_int_equal(symlink(path, other), 0);
    assert_int_not_equal(fs->ops->open(fs, other, 0, &f, &err), 0);
    assert_non_null(strstr(err.text, other));
    assert_int_not_equal(fs->ops->open(fs, other, WEIR__FS_LOCK, &f, &err), 0);
    umask(mask);
    tempdir_remove(dir);
}

/* Nor do they follow a program that this one starts. */
static void handles_are_closed_on_exec(void **state)
{
    static const unsigned ways[] = {0, WEIR__FS_READ_ONLY, WEIR__FS_LOCK};
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 8];
    struct weir__fs *fs = weir__fs_posix();
    struct weir__file *f;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(path, sizeof path, "%s/f", dir);
    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_CREATE, &f, NULL), 0);
    weir__file_close(f);
    for (size_t i = 0; i <= sizeof ways / sizeof ways[0]; i++) {
        bool folder = i == sizeof ways / sizeof ways[0];
        int next = dup(0), flags;

        close(next); /* the number that the handle gets */
        assert_int_equal(fs->ops->open(fs, folder ? dir : path, folder ? WEIR__FS_DIR : ways[i], &f,
                                       NULL),
                         0);
        flags = fcntl(next, F_GETFD);
        assert_true(flags >= 0 && (flags & FD_CLOEXEC));
        weir__file_close(f);
    }
    tempdir_remove(dir);
}

/* However its path is written, a new log is a name in the folder above, which is synced last. */
static void the_folder_above_a_log_is_synced(void **state)
{
    static const char *const names[] = {"/log",     "//log",  "/log/",     "/log///",
                                        "///log//", "/x/log", "//x//log//"};
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 16], above[TEMPDIR_BYTES + 8];
    struct weir__log_options o = {.dir = path,
                                  .hub_id = 1,
                                  .partitions = 1,
                                  .segment_bytes_max = 64 << 10};
    struct stat st = {0};

    (void)state;
    begin_case(0);
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(above, sizeof above, "%s/x", dir);
    assert_int_equal(mkdir(above, 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct weir_error err = {0};

        snprintf(path, sizeof path, "%s%s", dir, names[i]);
        if (weir__log_create(&o, &err) != 0) fail_msg("%s: %s", path, err.text);
        assert_int_equal(stat(strchr(names[i], 'x') ? above : dir, &st), 0);
        if (plan.synced != st.st_ino) fail_msg("%s: another folder was synced", path);
        assert_int_equal(weir__log_destroy(NULL, path, &err), 0);
    }
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_that_is_not_durable_is_told),
        cmocka_unit_test(a_file_that_is_not_durable_is_told),
        cmocka_unit_test(what_is_not_there_is_not_synced),
        cmocka_unit_test(pipes_are_not_waited_for),
        cmocka_unit_test(files_are_the_owners_alone),
        cmocka_unit_test(handles_are_closed_on_exec),
        cmocka_unit_test(the_folder_above_a_log_is_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
