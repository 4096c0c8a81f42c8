#define _GNU_SOURCE
#include "io/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"

#define FOLDER_MODE 0700
#define SECRET_MODE 0600
#define PUBLIC_MODE 0644
#define OTHERS (S_IRWXG | S_IRWXO)
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)
#define LOCK_NAME "lock"
#define LOCK_STEP_MS 10
#define NAME_BYTES 64 /* of a file, with its NUL */

static int fail_call(struct weir_error *err, const struct weir__vault *v, const char *name,
                     const char *call)
{
    int code = weir__fail_errno(err, errno, call);

    return weir__wrap(err, code, "%s%s%s", v->path, name ? "/" : "", name ? name : "");
}

/* Whoever may write here could put a key of his own in the place of ours. */
static int check_folder(const struct weir__vault *v, struct weir_error *err)
{
    struct stat st;

    if (fstat(v->dir, &st) != 0) return fail_call(err, v, NULL, "fstat");
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return weir__fail(err, WEIR_EDENIED, "%s: the folder belongs to user %u, not to %u",
                          v->path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & OTHERS_WRITE)
        return weir__fail(err, WEIR_EDENIED,
                          "%s: other users can write to the folder: chmod 700 it", v->path);
    return 0;
}

int weir__vault_open(struct weir__vault *v, const char *path, struct weir_error *err)
{
    *v = (struct weir__vault){.path = path, .dir = -1, .lock = -1};
    v->dir = weir__descriptor_move(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (v->dir < 0) return fail_call(err, v, NULL, "open");
    return check_folder(v, err);
}

/* Every folder of the path that is missing; the open that follows finds out what is wrong. */
static void make_folders(const char *path)
{
    char part[PATH_MAX];
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof part) return;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, FOLDER_MODE) != 0 && errno != EEXIST) return;
    }
}

static int wait_for_lock(const struct weir__vault *v, int wait_ms, struct weir_error *err)
{
    const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};

    for (int waited = 0; flock(v->lock, LOCK_EX | LOCK_NB) != 0; waited += LOCK_STEP_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR) return fail_call(err, v, LOCK_NAME, "flock");
        if (waited >= wait_ms)
            return weir__fail(err, WEIR_ELOCKED, "%s/%s: another process is at it for %d ms",
                              v->path, LOCK_NAME, wait_ms);
        nanosleep(&step, NULL);
    }
    return 0;
}

int weir__vault_make(struct weir__vault *v, const char *path, int wait_ms, struct weir_error *err)
{
    int rc;

    make_folders(path);
    rc = weir__vault_open(v, path, err);
    if (rc != 0) return rc;
    v->lock = weir__descriptor_move(
        openat(v->dir, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, SECRET_MODE));
    if (v->lock < 0) return fail_call(err, v, LOCK_NAME, "open");
    return wait_for_lock(v, wait_ms, err);
}

void weir__vault_close(struct weir__vault *v)
{
    if (v->lock >= 0) close(v->lock);
    if (v->dir >= 0) close(v->dir);
    v->lock = v->dir = -1;
}

static int check_file(const struct weir__vault *v, const char *name, bool secret, int fd,
                      struct weir_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0) return fail_call(err, v, name, "fstat");
    if (!S_ISREG(st.st_mode))
        return weir__fail(err, WEIR_ECORRUPT, "%s/%s is not a file", v->path, name);
    if (secret && (st.st_mode & OTHERS))
        return weir__fail(err, WEIR_EDENIED,
                          "%s/%s: other users can read this key (mode %04o): chmod 600 it, or "
                          "remove it when somebody may have read it",
                          v->path, name, (unsigned)(st.st_mode & 07777));
    return 0;
}

static int read_whole(const struct weir__vault *v, const char *name, int fd,
                      struct weir__vault_file *f, struct weir_error *err)
{
    f->len = 0;
    while (f->len < sizeof f->bytes) {
        ssize_t n = read(fd, f->bytes + f->len, sizeof f->bytes - f->len);

        if (n == 0) return 0;
        if (n < 0 && errno != EINTR) return fail_call(err, v, name, "read");
        if (n > 0) f->len += (size_t)n;
    }
    return weir__fail(err, WEIR_ECORRUPT, "%s/%s has %zu bytes or more, too many for a key",
                      v->path, name, sizeof f->bytes);
}

int weir__vault_read(const struct weir__vault *v, const char *name, bool secret,
                     struct weir__vault_file *f, struct weir_error *err)
{
    int fd = openat(v->dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

    if (fd < 0) return fail_call(err, v, name, "open");
    rc = check_file(v, name, secret, fd, err);
    if (rc == 0) rc = read_whole(v, name, fd, f, err);
    close(fd);
    return rc;
}

static int write_whole(int fd, struct weir__bytes b)
{
    while (b.len) {
        ssize_t n = write(fd, b.at, b.len);

        if (n < 0 && errno != EINTR) return -1;
        if (n > 0) b = weir__bytes_of(b.at + n, b.len - (size_t)n);
    }
    return fsync(fd);
}

/* What a crash left under the other name goes first: we hold the lock, so nobody is writing it. */
int weir__vault_write(const struct weir__vault *v, const char *name, bool secret,
                      struct weir__bytes b, struct weir_error *err)
{
    char fresh[NAME_BYTES];
    int fd, rc;

    snprintf(fresh, sizeof fresh, "%s.new", name);
    unlinkat(v->dir, fresh, 0);
    fd = weir__descriptor_move(openat(v->dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                      secret ? SECRET_MODE : PUBLIC_MODE));
    if (fd < 0) return fail_call(err, v, fresh, "open");
    rc = write_whole(fd, b) == 0 ? 0 : fail_call(err, v, fresh, "write");
    close(fd);
    if (rc == 0 && renameat(v->dir, fresh, v->dir, name) != 0)
        rc = fail_call(err, v, name, "rename");
    if (rc == 0 && fsync(v->dir) != 0) rc = fail_call(err, v, NULL, "fsync");
    if (rc != 0) unlinkat(v->dir, fresh, 0);
    return rc;
}
