/* fs_posix.c - the machine's own file system behind fs.h.
 *
 * Short transfers and EINTR are gone on with, everything else is an error whose text names the
 * call and the path. Handles are closed on exec. Files and folders are the owner's alone: they
 * hold other people's events.
 *
 * Direct handles are opened plainly and switched over afterwards: a file system that cannot would
 * otherwise refuse the open after it had made the file. One that lets the handle be switched and
 * then refuses the transfer (EINVAL: larger blocks, a network, a layer that only says so then) gets
 * the same transfer once more without. */
#define _GNU_SOURCE
#include "log/fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/descriptor.h"

#define FILE_MODE 0600
#define DIR_MODE 0700
#define PID_BYTES 24 /* with its newline */
#define STAT_BLOCK_BYTES 512u

struct posix_file {
    struct weir__file base;
    int fd;
    bool direct;
    bool folder;
    bool locked; /* a file, which has our pid in it */
    char path[];
};

static struct posix_file *posix_of(struct weir__file *file)
{
    return (struct posix_file *)(void *)file;
}

static int fail_call(struct weir_error *err, int errnum, const char *call, const char *path)
{
    int code = weir__fail_errno(err, errnum, call);

    return weir__wrap(err, code, "%s", path);
}

static int fail_open(struct weir_error *err, int errnum, const char *path)
{
    int rc = fail_call(err, errnum, "open", path);
    size_t used = err ? strlen(err->text) : 0;

    if (err && errnum == EACCES)
        snprintf(err->text + used, sizeof err->text - used, " (run as the folder's owner)");
    return rc;
}

/* Whether a transfer that failed may work on a handle that is direct no longer. */
static bool leave_direct(struct posix_file *f, int errnum)
{
#ifdef O_DIRECT
    int flags;

    if (errnum != EINVAL || !f->direct) return false;
    flags = fcntl(f->fd, F_GETFL);
    if (flags < 0 || fcntl(f->fd, F_SETFL, flags & ~O_DIRECT) != 0) return false;
    f->direct = false;
    f->base.not_direct = true;
    return true;
#else
    (void)f, (void)errnum;
    return false;
#endif
}

/* ---- one file ---- */

static int read_file(struct weir__file *file, void *to, size_t len, uint64_t at, size_t *out_len,
                     struct weir_error *err)
{
    struct posix_file *f = posix_of(file);
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(f->fd, (char *)to + done, len - done, (off_t)(at + done));

        if (n < 0 && (errno == EINTR || leave_direct(f, errno))) continue;
        if (n < 0) return fail_call(err, errno, "pread", f->path);
        done += (size_t)n;
        /* A direct read that ends inside a block has met the end of the file, and the next one
         * would start where no direct read may. */
        if (n == 0 || (f->direct && (size_t)n % WEIR__FS_BLOCK != 0)) break;
    }
    *out_len = done;
    return 0;
}

/* Takes n written bytes off the front; returns how many parts are done with. */
static int skip_parts(struct iovec *parts, int count, size_t n)
{
    int i = 0;

    while (i < count && n >= parts[i].iov_len) n -= parts[i++].iov_len;
    if (i < count) {
        parts[i].iov_base = (char *)parts[i].iov_base + n;
        parts[i].iov_len -= n;
    }
    return i;
}

static int write_file(struct weir__file *file, const struct weir__bytes *bytes, int count,
                      uint64_t at, struct weir_error *err)
{
    struct posix_file *f = posix_of(file);
    struct iovec parts[WEIR__FS_PARTS_MAX];

    assert(count >= 0 && count <= WEIR__FS_PARTS_MAX);
    for (int i = 0; i < count; i++) {
        parts[i].iov_base = (void *)(uintptr_t)bytes[i].at; /* pwritev does not write to it */
        parts[i].iov_len = bytes[i].len;
    }
    for (int done = skip_parts(parts, count, 0); done < count;) {
        ssize_t n = pwritev(f->fd, parts + done, count - done, (off_t)at);

        if (n < 0 && (errno == EINTR || leave_direct(f, errno))) continue;
        if (n == 0) return fail_call(err, EIO, "pwritev wrote nothing", f->path);
        if (n < 0) return fail_call(err, errno, "pwritev", f->path);
        at += (uint64_t)n;
        done += skip_parts(parts + done, count - done, (size_t)n);
    }
    return 0;
}

static int sync_folder(int fd, const char *path, struct weir_error *err)
{
    while (fsync(fd) != 0)
        if (errno != EINTR) return fail_call(err, errno, "fsync folder", path);
    return 0;
}

static int sync_file(struct weir__file *file, struct weir_error *err)
{
    struct posix_file *f = posix_of(file);
    int rc;

    if (f->folder) return sync_folder(f->fd, f->path, err);
    do {
#ifdef F_FULLFSYNC
        rc = fcntl(f->fd, F_FULLFSYNC);
#else
        rc = fdatasync(f->fd);
#endif
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : fail_call(err, errno, "fdatasync", f->path);
}

static int size_file(struct weir__file *file, uint64_t *out, struct weir_error *err)
{
    struct posix_file *f = posix_of(file);
    struct stat st;

    if (fstat(f->fd, &st) != 0) return fail_call(err, errno, "fstat", f->path);
    *out = (uint64_t)st.st_size;
    return 0;
}

static int used_file(struct weir__file *file, uint64_t *out, struct weir_error *err)
{
    struct posix_file *f = posix_of(file);
    struct stat st;

    if (fstat(f->fd, &st) != 0) return fail_call(err, errno, "fstat", f->path);
    *out = (uint64_t)st.st_blocks * STAT_BLOCK_BYTES;
    return 0;
}

static int truncate_file(struct posix_file *f, uint64_t size, struct weir_error *err)
{
    while (ftruncate(f->fd, (off_t)size) != 0)
        if (errno != EINTR) return fail_call(err, errno, "ftruncate", f->path);
    return 0;
}

/* Reserves by writing: whole blocks of zeros from the first block behind `from`, so that direct
 * handles can do it too; what they overhang is cut off again. */
static int write_zeros(struct posix_file *f, uint64_t from, uint64_t to, struct weir_error *err)
{
    static const _Alignas(WEIR__FS_BLOCK) uint8_t zeros[WEIR__FS_BLOCK];
    struct weir__bytes parts[WEIR__FS_PARTS_MAX];
    int rc = truncate_file(f, to, err);

    for (int i = 0; i < WEIR__FS_PARTS_MAX; i++) parts[i] = weir__bytes_of(zeros, sizeof zeros);
    for (uint64_t at = weir__round_up(from, WEIR__FS_BLOCK); rc == 0 && at < to;) {
        uint64_t blocks = weir__round_up(to - at, WEIR__FS_BLOCK) / WEIR__FS_BLOCK;
        int count = blocks < WEIR__FS_PARTS_MAX ? (int)blocks : WEIR__FS_PARTS_MAX;

        rc = write_file(&f->base, parts, count, at, err);
        at += (uint64_t)count * WEIR__FS_BLOCK;
    }
    return rc == 0 ? truncate_file(f, to, err) : rc;
}

/* Space is given back when there was not enough of it. A file that has its size already may have
 * holes. */
static int allocate_file(struct weir__file *file, uint64_t size, struct weir_error *err)
{
    struct posix_file *f = posix_of(file);
    uint64_t old = 0;
    int rc = size_file(file, &old, err);

    if (rc != 0) return rc;
    if (size < old) return truncate_file(f, size, err);
#ifdef __linux__
    do {
        rc = fallocate(f->fd, 0, 0, (off_t)size);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        rc = fail_call(err, errno, "fallocate", f->path);
    else
#endif
        rc = write_zeros(f, old, size, err);
    if (rc != 0) truncate_file(f, old, NULL);
    return rc;
}

static int release_file(struct weir__file *file, uint64_t at, uint64_t len, struct weir_error *err)
{
    struct posix_file *f = posix_of(file);

    assert(at % WEIR__FS_BLOCK == 0 && len % WEIR__FS_BLOCK == 0);
#ifdef FALLOC_FL_PUNCH_HOLE
    while (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)len) !=
           0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) return 0;
        if (errno != EINTR) return fail_call(err, errno, "fallocate", f->path);
    }
#else
    (void)f, (void)err;
#endif
    return 0;
}

static void prefetch_file(struct weir__file *file, uint64_t at, uint64_t len)
{
#ifdef POSIX_FADV_WILLNEED
    posix_fadvise(posix_of(file)->fd, (off_t)at, (off_t)len, POSIX_FADV_WILLNEED);
#else
    (void)file, (void)at, (void)len;
#endif
}

/* The pid is a courtesy to whoever is refused: the lock holds without it, also on a full disk.
 * Always the same bytes in number, so that the block the file has is enough. */
static void write_pid(struct posix_file *f, long pid)
{
    char text[PID_BYTES + 1];
    struct weir__bytes part = weir__bytes_of(text, PID_BYTES);

    if (pid > 0)
        snprintf(text, sizeof text, "%-*ld\n", PID_BYTES - 1, pid);
    else
        snprintf(text, sizeof text, "%-*s\n", PID_BYTES - 1, "");
    write_file(&f->base, &part, 1, 0, NULL);
}

/* A lock's pid goes before the lock does, so that it never names somebody who has left. */
static void close_file(struct weir__file *file)
{
    struct posix_file *f = posix_of(file);

    if (f->locked) write_pid(f, 0);
    close(f->fd);
    free(f);
}

static const struct weir__file_ops file_ops = {
    .version = WEIR__FS_VERSION,
    .read = read_file,
    .write = write_file,
    .sync = sync_file,
    .allocate = allocate_file,
    .release = release_file,
    .size = size_file,
    .used = used_file,
    .prefetch = prefetch_file,
    .close = close_file,
};

/* ---- opening and locking ---- */

static void go_direct(struct posix_file *f)
{
#ifdef O_DIRECT
    int flags = fcntl(f->fd, F_GETFL);

    f->direct = flags >= 0 && fcntl(f->fd, F_SETFL, flags | O_DIRECT) == 0;
#else
    (void)f;
#endif
}

/* Belongs to this handle, not to the process: a second one in the same process is refused too. */
static int lock_fd(int fd)
{
#ifdef F_OFD_SETLK
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &whole);
#else
    return flock(fd, LOCK_EX | LOCK_NB);
#endif
}

/* The process that holds the flock on this descriptor's inode, as the kernel lists it; 0: unknown.
 * A line is "1: FLOCK  ADVISORY  WRITE 4242 08:01:131 0 EOF". */
static long holder_of_flock(int fd)
{
    FILE *list = fopen("/proc/locks", "re");
    struct stat st;
    char line[128];
    long pid, found = 0;
    unsigned long long inode;
    unsigned device[2];

    if (list && fstat(fd, &st) == 0)
        while (found == 0 && fgets(line, sizeof line, list))
            if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%llu", &pid, &device[0], &device[1],
                       &inode) == 4 &&
                device[0] == major(st.st_dev) && device[1] == minor(st.st_dev) &&
                inode == (unsigned long long)st.st_ino)
                found = pid;
    if (list) fclose(list);
    return found;
}

/* The holder may not have written its pid yet. */
static long pid_in_file(int fd)
{
    char text[PID_BYTES + 1] = "";
    ssize_t n = pread(fd, text, PID_BYTES, 0);

    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static int fail_locked(struct posix_file *f, struct weir_error *err)
{
    long pid = f->folder ? holder_of_flock(f->fd) : pid_in_file(f->fd);

    if (pid <= 0)
        return weir__fail(err, WEIR_ELOCKED, "%s: folder is in use by another process", f->path);
    return weir__fail(err, WEIR_ELOCKED, "%s: folder is in use by process %ld", f->path, pid);
}

static int lock_file(struct posix_file *f, struct weir_error *err)
{
    while (lock_fd(f->fd) != 0) {
        if (errno == EAGAIN || errno == EACCES) return fail_locked(f, err);
        if (errno != EINTR) return fail_call(err, errno, "lock", f->path);
    }
    f->locked = true;
    write_pid(f, (long)getpid());
    return 0;
}

/* A file system that has no such lock (NFS wants a handle to write for it) is used without: the
 * lock file still keeps honest processes apart. */
static int lock_folder(struct posix_file *f, struct weir_error *err)
{
    while (flock(f->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return fail_locked(f, err);
        if (errno != EINTR) return 0;
    }
    return 0;
}

static int open_flags(unsigned flags)
{
    /* A symbolic link in the place of a file would make us write elsewhere, and a pipe wait. */
    int oflags =
        O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (flags & WEIR__FS_READ_ONLY ? O_RDONLY : O_RDWR);

    if (flags & WEIR__FS_DIR) return O_CLOEXEC | O_RDONLY | O_DIRECTORY;
    if (flags & WEIR__FS_LOCK) return oflags | O_CREAT;
    return flags & WEIR__FS_CREATE ? oflags | O_CREAT | O_EXCL : oflags;
}

static int check_regular(const struct posix_file *f, struct weir_error *err)
{
    struct stat st;

    if (f->folder) return 0;
    if (fstat(f->fd, &st) != 0) return fail_call(err, errno, "fstat", f->path);
    if (S_ISREG(st.st_mode)) return 0;
    return weir__fail(err, WEIR_ECORRUPT, "%s: not a regular file", f->path);
}

static int open_file(struct weir__fs *fs, const char *path, unsigned flags, struct weir__file **out,
                     struct weir_error *err)
{
    size_t len = strlen(path) + 1;
    struct posix_file *f = malloc(sizeof *f + len);
    int rc = 0;

    (void)fs;
    *out = NULL;
    if (!f) return weir__fail(err, WEIR_ENOMEM, "%s: out of memory", path);
    *f = (struct posix_file){.base.ops = &file_ops, .folder = flags & WEIR__FS_DIR};
    memcpy(f->path, path, len);
    do {
        f->fd = weir__descriptor_move(open(path, open_flags(flags), FILE_MODE));
    } while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0) {
        rc = fail_open(err, errno, path);
        free(f);
        return rc;
    }
    rc = check_regular(f, err);
    if (rc == 0 && flags & WEIR__FS_LOCK) rc = f->folder ? lock_folder(f, err) : lock_file(f, err);
    if (flags & WEIR__FS_DIRECT) go_direct(f);
    if (rc != 0) {
        close_file(&f->base);
        return rc;
    }
    *out = &f->base;
    return 0;
}

/* ---- folders ---- */

static int list_dir(struct weir__fs *fs, const char *path, weir__fs_name_fn fn, void *user,
                    struct weir_error *err)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int rc = 0;

    (void)fs;
    if (!dir) return fail_call(err, errno, "opendir", path);
    while (rc == 0) {
        errno = 0;
        entry = readdir(dir);
        if (!entry) {
            if (errno != 0) rc = fail_call(err, errno, "readdir", path);
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = fn(entry->d_name, user);
    }
    closedir(dir);
    return rc;
}

static int remove_path(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    (void)fs;
    return remove(path) == 0 ? 0 : fail_call(err, errno, "remove", path);
}

static int make_dir(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    (void)fs;
    return mkdir(path, DIR_MODE) == 0 ? 0 : fail_call(err, errno, "mkdir", path);
}

static int sync_dir(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    int fd, rc;

    (void)fs;
    do {
        fd = weir__descriptor_move(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return fail_call(err, errno, "open folder", path);
    rc = sync_folder(fd, path, err);
    close(fd);
    return rc;
}

static int space(struct weir__fs *fs, const char *dir, struct weir__fs_space *out,
                 struct weir_error *err)
{
    struct statvfs disk;
    int rc;

    (void)fs;
    do {
        rc = statvfs(dir, &disk);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return fail_call(err, errno, "statvfs", dir);
    out->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    out->size_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
    return 0;
}

static const struct weir__fs_ops fs_ops = {
    .version = WEIR__FS_VERSION,
    .open = open_file,
    .list = list_dir,
    .remove = remove_path,
    .make_dir = make_dir,
    .sync_dir = sync_dir,
    .space = space,
};

struct weir__fs *weir__fs_posix(void)
{
    static const struct weir__fs machine = {.ops = &fs_ops};

    return (struct weir__fs *)(uintptr_t)&machine; /* has no state to write to */
}
