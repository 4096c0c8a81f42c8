/* vault_test.c - a folder for keys: who may have access to it, what is left behind by a failure, and
 * that no descriptor stays open. */
#define _GNU_SOURCE
#include "io/vault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH_BYTES 256

ssize_t __real_read(int fd, void *to, size_t room);
ssize_t __wrap_read(int fd, void *to, size_t room);
ssize_t __real_write(int fd, const void *at, size_t len);
ssize_t __wrap_write(int fd, const void *at, size_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

enum call { NO_CALL, READ, WRITE, FSYNC_FILE, FSYNC_FOLDER, FLOCK };

static struct {
    size_t most; /* bytes that are read or written at once; 0: all */
    bool interrupted;
    enum call call; /* that fails, again and again, with: */
    int errnum;
    unsigned times; /* so often, when it is not for ever */
} machine;

/* Every other call is interrupted by a signal. */
static bool is_interrupted(void)
{
    if (!machine.most) return false;
    machine.interrupted = !machine.interrupted;
    if (machine.interrupted) errno = EINTR;
    return machine.interrupted;
}

static bool fails(enum call call)
{
    if (machine.call != call) return false;
    if (machine.times > 0 && --machine.times == 0) machine.call = NO_CALL;
    errno = machine.errnum;
    return true;
}

ssize_t __wrap_read(int fd, void *to, size_t room)
{
    if (is_interrupted() || fails(READ)) return -1;
    return __real_read(fd, to, machine.most && room > machine.most ? machine.most : room);
}

ssize_t __wrap_write(int fd, const void *at, size_t len)
{
    if (is_interrupted() || fails(WRITE)) return -1;
    return __real_write(fd, at, machine.most && len > machine.most ? machine.most : len);
}

int __wrap_fsync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) return -1;
    return fails(S_ISDIR(st.st_mode) ? FSYNC_FOLDER : FSYNC_FILE) ? -1 : __real_fsync(fd);
}

int __wrap_flock(int fd, int how)
{
    return fails(FLOCK) ? -1 : __real_flock(fd, how);
}

struct fixture {
    char top[64], dir[PATH_BYTES]; /* dir does not exist at the beginning */
    unsigned descriptors;
    mode_t mask;
    struct weir__vault v;
    struct weir_error err;
};

static unsigned count_entries(const char *path)
{
    DIR *d = opendir(path);
    unsigned count = 0;

    assert_non_null(d);
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *tmp = getenv("TMPDIR");

    assert_non_null(f);
    snprintf(f->top, sizeof f->top, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->top));
    snprintf(f->dir, sizeof f->dir, "%s/deep/keys", f->top);
    f->descriptors = count_entries("/proc/self/fd");
    f->mask = umask(0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[PATH_BYTES + 16];

    memset(&machine, 0, sizeof machine);
    umask(f->mask);
    weir__vault_close(&f->v);
    assert_true(f->v.dir == -1 && f->v.lock == -1); /* so that twice is fine */
    assert_int_equal(count_entries("/proc/self/fd"), f->descriptors);
    snprintf(command, sizeof command, "rm -r '%s'", f->top);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the path is ours */
    free(f);
    return 0;
}

/* The path of a name inside, "" for the folder itself. */
static const char *path_of(const struct fixture *f, const char *name)
{
    static char path[2 * PATH_BYTES];

    snprintf(path, sizeof path, "%s%s%s", f->dir, *name ? "/" : "", name);
    return path;
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void make(struct fixture *f)
{
    if (weir__vault_make(&f->v, f->dir, 0, &f->err) != 0) fail_msg("%s", f->err.text);
}

/* The text begins with the path. */
static void expect_failure(const struct fixture *f, int rc, int code, const char *name,
                           const char *text)
{
    char whole[3 * PATH_BYTES];

    snprintf(whole, sizeof whole, "%s%s", path_of(f, name), text);
    assert_string_equal(f->err.text, whole);
    assert_int_equal(rc, code);
}

static int put(struct fixture *f, const char *name, bool secret, const char *text)
{
    return weir__vault_write(&f->v, name, secret, weir__bytes_of(text, strlen(text)), &f->err);
}

static void expect_file(struct fixture *f, const char *name, const char *text)
{
    struct weir__vault_file got;

    assert_int_equal(weir__vault_read(&f->v, name, false, &got, &f->err), 0);
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.bytes, text, got.len);
}

static void a_folder_is_made_with_those_above_it(void **state)
{
    struct fixture *f = *state;
    char above[PATH_BYTES];

    expect_failure(f, weir__vault_open(&f->v, f->dir, &f->err), WEIR_ENOTFOUND, "",
                   ": open: No such file or directory");
    make(f);
    snprintf(above, sizeof above, "%s/deep", f->top);
    assert_int_equal(mode_of(above), 0700);
    assert_int_equal(mode_of(f->dir), 0700);
    assert_int_equal(mode_of(path_of(f, "lock")), 0600);
    weir__vault_close(&f->v);
    assert_int_equal(weir__vault_open(&f->v, f->dir, &f->err), 0);
    weir__vault_close(&f->v);
    assert_int_not_equal(weir__vault_make(&f->v, "", 0, &f->err), 0);
}

/* The longest is one that the system does not take, either. */
static void a_path_may_be_too_long(void **state)
{
    static const size_t lengths[] = {PATH_MAX - 1, PATH_MAX, 4 * PATH_MAX};
    struct fixture *f = *state;
    char path[4 * PATH_MAX + 1];

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(path, 'x', lengths[i]);
        path[lengths[i]] = '\0';
        assert_int_equal(weir__vault_make(&f->v, path, 0, &f->err), WEIR_EIO);
        assert_memory_equal(f->err.text, "xxx", 3);
    }
}

/* Each of the bits by which others could write; those by which they read do not matter. */
static void a_folder_is_nobody_elses(void **state)
{
    struct fixture *f = *state;

    make(f);
    weir__vault_close(&f->v);
    for (unsigned bit = 1; bit < 0100; bit <<= 1) {
        bool bad = bit & 022;
        int rc;
        assert_int_equal(chmod(f->dir, 0700 | bit), 0);
        rc = weir__vault_open(&f->v, f->dir, &f->err);
        if (bad)
            expect_failure(f, rc, WEIR_EDENIED, "",
                           ": other users can write to the folder: chmod 700 it");
        assert_int_equal(rc, bad ? WEIR_EDENIED : 0);
        weir__vault_close(&f->v);
    }
    assert_int_equal(chmod(f->dir, 0700), 0);
    if (chown(f->dir, 12345, (gid_t)-1) != 0) {
        print_message("only root can give a folder away\n");
        return;
    }
    expect_failure(f, weir__vault_open(&f->v, f->dir, &f->err), WEIR_EDENIED, "",
                   ": the folder belongs to user 12345, not to 0");
}

static void a_lock_is_waited_for_and_no_link(void **state)
{
    struct fixture *f = *state;
    struct weir__vault other;

    make(f);
    expect_failure(f, weir__vault_make(&other, f->dir, 20, &f->err), WEIR_ELOCKED, "lock",
                   ": another process is at it for 20 ms");
    weir__vault_close(&other);
    weir__vault_close(&f->v);
    assert_int_equal(unlink(path_of(f, "lock")), 0);
    assert_int_equal(symlink("elsewhere", path_of(f, "lock")), 0);
    expect_failure(
        f, weir__vault_make(&f->v, f->dir, 0, &f->err), WEIR_EIO, "lock",
        ": open: Too many levels of symbolic links (it is a symbolic link, and those are not "
        "followed here)");
}

static void files_are_written_whole(void **state)
{
    struct fixture *f = *state;

    make(f);
    assert_int_equal(put(f, "a.key.new", true, "left by a crash, and longer"), 0);
    assert_int_equal(put(f, "a.key", true, "first"), 0);
    assert_int_equal(put(f, "a.key", true, "second one"), 0);
    assert_int_equal(put(f, "a.pem", false, ""), 0);
    expect_file(f, "a.key", "second one");
    expect_file(f, "a.pem", "");
    assert_int_equal(mode_of(path_of(f, "a.key")), 0600);
    assert_int_equal(mode_of(path_of(f, "a.pem")), 0644);
    assert_int_equal(count_entries(f->dir), 2 + 3); /* with the lock: nothing else is left */
}

/* Nothing is left of a file that could not take its place. */
static void a_failure_to_write_is_told(void **state)
{
    struct fixture *f = *state;

    make(f);
    assert_int_equal(mkdir(path_of(f, "a.key"), 0700), 0);
    expect_failure(f, put(f, "a.key", true, "x"), WEIR_EIO, "a.key", ": rename: Is a directory");
    assert_int_equal(count_entries(f->dir), 2 + 2);
    assert_int_equal(mkdir(path_of(f, "b.key.new"), 0700), 0);
    expect_failure(f, put(f, "b.key", true, "x"), WEIR_EEXIST, "b.key.new", ": open: File exists");
}

static void a_secret_is_read_by_nobody_else(void **state)
{
    struct fixture *f = *state;
    struct weir__vault_file got;
    char text[128];

    make(f);
    assert_int_equal(put(f, "a.key", true, "secret"), 0);
    for (unsigned bit = 1; bit < 0100; bit <<= 1) {
        assert_int_equal(chmod(path_of(f, "a.key"), 0600 | bit), 0);
        snprintf(text, sizeof text,
                 ": other users can read this key (mode %04o): chmod 600 it, or remove it when "
                 "somebody may have read it",
                 0600 | bit);
        expect_failure(f, weir__vault_read(&f->v, "a.key", true, &got, &f->err), WEIR_EDENIED,
                       "a.key", text);
        expect_file(f, "a.key", "secret");
    }
    assert_int_equal(chmod(path_of(f, "a.key"), 0600), 0);
    assert_int_equal(weir__vault_read(&f->v, "a.key", true, &got, &f->err), 0);
}

static void what_is_read_is_a_small_file(void **state)
{
    static char large[WEIR__VAULT_FILE_MAX + 1];
    struct fixture *f = *state;
    struct weir__vault_file got;

    make(f);
    expect_failure(f, weir__vault_read(&f->v, "none", false, &got, &f->err), WEIR_ENOTFOUND, "none",
                   ": open: No such file or directory");
    expect_failure(f, weir__vault_read(&f->v, ".", false, &got, &f->err), WEIR_ECORRUPT, ".",
                   " is not a file");
    memset(large, 'x', WEIR__VAULT_FILE_MAX - 1);
    assert_int_equal(put(f, "large", false, large), 0);
    expect_file(f, "large", large);
    large[WEIR__VAULT_FILE_MAX - 1] = 'x';
    assert_int_equal(put(f, "large", false, large), 0);
    expect_failure(f, weir__vault_read(&f->v, "large", false, &got, &f->err), WEIR_ECORRUPT,
                   "large", " has 16384 bytes or more, too many for a key");
}

/* As on a disk that is full: what was there before stays, and nothing of the new beside it. */
static void what_cannot_be_written_whole_is_not_there(void **state)
{
    struct fixture *f = *state;
    struct rlimit usual, small;
    int rc;

    assert_int_equal(weir__vault_make(&f->v, f->dir, 0, &f->err), 0);
    assert_int_equal(put(f, "key", true, "old"), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = usual;
    small.rlim_cur = 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    rc = put(f, "key", true, "new and longer");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_not_equal(rc, 0);
    assert_non_null(strstr(f->err.text, "key.new: write"));
    assert_int_not_equal(access(path_of(f, "key.new"), F_OK), 0);
    expect_file(f, "key", "old");
}

/* Signals may interrupt it, too. */
static void a_file_may_go_and_come_in_pieces(void **state)
{
    struct fixture *f = *state;

    make(f);
    for (size_t most = 1; most < 4; most++) {
        machine.most = most;
        assert_int_equal(put(f, "key", true, "every byte in its place"), 0);
        expect_file(f, "key", "every byte in its place");
    }
}

/* No more is read than there is room for, in whatever pieces. */
static void a_large_file_in_pieces_is_refused(void **state)
{
    struct weir__vault_file got[2] = {{.len = 0}};
    struct fixture *f = *state;
    FILE *large;

    make(f);
    large = fopen(path_of(f, "large"), "w");
    assert_non_null(large);
    for (size_t i = 0; i < 2 * sizeof got[0].bytes; i++) putc('x', large);
    assert_int_equal(fclose(large), 0);
    machine.most = sizeof got[0].bytes / 2 + 100;
    assert_int_equal(weir__vault_read(&f->v, "large", false, got, &f->err), WEIR_ECORRUPT);
    assert_int_equal(got[0].len, sizeof got[0].bytes);
    assert_int_equal(got[1].len, 0);
    assert_int_equal(got[1].bytes[0], 0);
}

/* One that may not be on disk is not renamed; one that was is there. */
static void a_call_that_fails_is_named(void **state)
{
    static const struct {
        enum call call;
        const char *name, *text, *left;
    } rows[] = {
        {WRITE, "key.new", ": write: Input/output error", "old"},
        {FSYNC_FILE, "key.new", ": write: Input/output error", "old"},
        {FSYNC_FOLDER, "", ": fsync: Input/output error", "new"},
    };
    struct fixture *f = *state;
    struct weir__vault_file got;

    make(f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rc;
        assert_int_equal(put(f, "key", true, "old"), 0);
        machine.call = rows[i].call;
        machine.errnum = EIO;
        rc = put(f, "key", true, "new");
        machine.call = NO_CALL;
        expect_failure(f, rc, WEIR_EIO, rows[i].name, rows[i].text);
        assert_int_not_equal(access(path_of(f, "key.new"), F_OK), 0);
        expect_file(f, "key", rows[i].left);
    }
    machine.call = READ;
    expect_failure(f, weir__vault_read(&f->v, "key", true, &got, &f->err), WEIR_EIO, "key",
                   ": read: Input/output error");
}

/* Whatever else is the matter with the lock is told at once. */
static void a_lock_is_asked_for_again(void **state)
{
    static const int again[] = {EINTR, EWOULDBLOCK};
    struct fixture *f = *state;
    int rc;

    for (size_t i = 0; i < 2; i++) {
        machine.call = FLOCK;
        machine.errnum = again[i];
        machine.times = 2;
        assert_int_equal(weir__vault_make(&f->v, f->dir, 20, &f->err), 0);
        assert_int_equal(machine.call, NO_CALL);
        weir__vault_close(&f->v);
        machine.call = FLOCK;
        machine.times = 3;
        rc = weir__vault_make(&f->v, f->dir, 20, &f->err);
        expect_failure(f, rc, WEIR_ELOCKED, "lock", ": another process is at it for 20 ms");
        assert_int_equal(machine.call, NO_CALL);
        weir__vault_close(&f->v);
    }
    machine.call = FLOCK;
    machine.errnum = ENOLCK;
    rc = weir__vault_make(&f->v, f->dir, 1000000, &f->err);
    expect_failure(f, rc, WEIR_EIO, "lock", ": flock: No locks available");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_path_may_be_too_long),
        TEST(a_folder_is_made_with_those_above_it),
        TEST(a_folder_is_nobody_elses),
        TEST(a_lock_is_waited_for_and_no_link),
        TEST(files_are_written_whole),
        TEST(a_failure_to_write_is_told),
        TEST(a_secret_is_read_by_nobody_else),
        TEST(what_is_read_is_a_small_file),
        TEST(what_cannot_be_written_whole_is_not_there),
        TEST(a_file_may_go_and_come_in_pieces),
        TEST(a_large_file_in_pieces_is_refused),
        TEST(a_call_that_fails_is_named),
        TEST(a_lock_is_asked_for_again),
    };

    return cmocka_run_group_tests_name("vault", tests, NULL, NULL);
}
