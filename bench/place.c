#define _GNU_SOURCE
#include "bench/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

#define READ_BYTES (1u << 20)
#define DEPTH_MAX 8
#define DISK_UNIT 512u /* of st_blocks */

/* Called for each file or emptied folder below a path; returns 0 or a WEIR_E... code. */
typedef int (*visit_fn)(const char *path, const struct stat *, void *user, struct weir_error *);

/* A log may let a file go while we look at its folder. */
static int fail_unless_gone(struct weir_error *err, const char *path)
{
    return errno == ENOENT ? 0 : weir__fail_errno(err, errno, path);
}

static int walk(const char *path, int depth, visit_fn visit, void *user, struct weir_error *err)
{
    struct stat st;
    int rc = 0;

    if (depth > DEPTH_MAX) return weir__fail(err, WEIR_ELIMIT, "%s: too deep", path);
    if (lstat(path, &st) != 0) return fail_unless_gone(err, path);
    if (S_ISDIR(st.st_mode)) {
        struct dirent *entry;
        DIR *dir = opendir(path);

        if (!dir) return weir__fail_errno(err, errno, path);
        while (rc == 0 && (entry = readdir(dir)) != NULL) {
            char below[WEIR__PLACE_PATH_BYTES];

            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= (int)sizeof below)
                rc = weir__fail(err, WEIR_ELIMIT, "%s: its path is too long", entry->d_name);
            else
                rc = walk(below, depth + 1, visit, user, err);
        }
        closedir(dir);
    }
    return rc == 0 ? visit(path, &st, user, err) : rc;
}

int weir__place_open(struct weir__place *place, const char *under, uint64_t bytes_needed,
                     struct weir_error *err)
{
    struct statvfs fs;
    uint64_t room;

    place->path[0] = '\0';
    if (statvfs(under, &fs) != 0) return weir__fail_errno(err, errno, under);
    room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (room < bytes_needed)
        return weir__fail(err, WEIR_ENOSPACE, "%s: %llu MiB are free, %llu are needed", under,
                          (unsigned long long)(room >> 20),
                          (unsigned long long)(bytes_needed >> 20));
    if (snprintf(place->path, sizeof place->path, "%s/weir-bench-XXXXXX", under) >=
        (int)sizeof place->path) {
        place->path[0] = '\0';
        return weir__fail(err, WEIR_ELIMIT, "%s: the path is too long", under);
    }
    if (!mkdtemp(place->path)) {
        place->path[0] = '\0';
        return weir__fail_errno(err, errno, under);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *st, void *user, struct weir_error *err)
{
    (void)user;
    if ((S_ISDIR(st->st_mode) ? rmdir(path) : unlink(path)) != 0)
        return weir__fail_errno(err, errno, path);
    return 0;
}

void weir__place_remove(const char *path)
{
    (void)walk(path, 0, remove_one, NULL, NULL);
}

void weir__place_close(struct weir__place *place)
{
    if (place->path[0] == '\0') return;
    weir__place_remove(place->path);
    place->path[0] = '\0';
}

int weir__place_path(const struct weir__place *place, const char *name,
                     char out[WEIR__PLACE_PATH_BYTES], struct weir_error *err)
{
    if (snprintf(out, WEIR__PLACE_PATH_BYTES, "%s/%s", place->path, name) >= WEIR__PLACE_PATH_BYTES)
        return weir__fail(err, WEIR_ELIMIT, "%s: its path is too long", name);
    return 0;
}

static int cool_one(const char *path, const struct stat *st, void *user, struct weir_error *err)
{
    int fd, rc = 0;

    (void)user;
    if (!S_ISREG(st->st_mode)) return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_unless_gone(err, path);
    if (fsync(fd) != 0) rc = weir__fail_errno(err, errno, "fsync");
    if (rc == 0) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return rc;
}

int weir__place_cool(const char *path, struct weir_error *err)
{
    return walk(path, 0, cool_one, NULL, err);
}

static int heat_one(const char *path, const struct stat *st, void *user, struct weir_error *err)
{
    ssize_t n;
    int fd, rc = 0;

    if (!S_ISREG(st->st_mode)) return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_unless_gone(err, path);
    do n = read(fd, user, READ_BYTES);
    while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0) rc = weir__fail_errno(err, errno, path);
    close(fd);
    return rc;
}

int weir__place_heat(const char *path, struct weir_error *err)
{
    void *memory = malloc(READ_BYTES);
    int rc;

    if (!memory) return weir__fail(err, WEIR_ENOMEM, "reading %s", path);
    rc = walk(path, 0, heat_one, memory, err);
    free(memory);
    return rc;
}

static int count_one(const char *path, const struct stat *st, void *user, struct weir_error *err)
{
    uint64_t *sum = user;

    (void)path;
    (void)err;
    *sum += (uint64_t)st->st_blocks * DISK_UNIT;
    return 0;
}

uint64_t weir__place_disk_bytes(const char *path)
{
    uint64_t sum = 0;

    (void)walk(path, 0, count_one, &sum, NULL);
    return sum;
}

/* The clock that the file system's own times come from. */
int64_t weir__place_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct newcomers {
    int64_t since_ns;
    uint32_t count;
};

static int count_new(const char *path, const struct stat *st, void *user, struct weir_error *err)
{
    struct newcomers *n = user;
    struct statx x;

    (void)err;
    if (!S_ISREG(st->st_mode) || statx(AT_FDCWD, path, 0, STATX_BTIME, &x) != 0) return 0;
    if (!(x.stx_mask & STATX_BTIME)) return 0;
    if (x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec >= n->since_ns) n->count++;
    return 0;
}

uint32_t weir__place_files_since(const char *path, int64_t time_ns)
{
    struct newcomers n = {.since_ns = time_ns};

    (void)walk(path, 0, count_new, &n, NULL);
    return n.count;
}

static const struct kind {
    unsigned long magic;
    const char *name;
} kinds[] = {{0xef53, "ext4"},
             {0x58465342, "xfs"},
             {0x9123683e, "btrfs"},
             {0x2fc12fc1, "zfs"},
             {0x01021994, "tmpfs, no disk"},
             {0x794c7630, "overlay"},
             {0xf2f52010, "f2fs"},
             {0x6969, "nfs"}};

const char *weir__place_kind(const struct weir__place *place, char *out, size_t len)
{
    struct statfs fs;

    if (statfs(place->path, &fs) != 0) return "unknown";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].magic == (unsigned long)fs.f_type) return kinds[i].name;
    snprintf(out, len, "type %#lx", (unsigned long)fs.f_type);
    return out;
}
