/* simfs.h - a disk in memory that behaves as badly as a real one may.
 *
 * It stands behind log/fs.h. Reads see what was written (the cache); a crash sees what was synced,
 * plus whatever the test chooses of what was not. The unit of choice is
 *   a sector of 512 bytes   old, new, or any version written in between; never a mixture
 *   the size of a file      likewise
 *   a name in a folder      likewise; settled by sync_dir only, never by syncing the file
 * so dropping, tearing and reordering of writes are all the same thing: a choice per unit.
 *
 * A direct read sees the disk where the cache is clean. That differs from the cache only after a
 * failed sync, which marks everything clean, as kernels do.
 *
 * Every operation but close and prefetch is an outside call; calls are counted from 1. One lock
 * makes a disk safe for threads; hooks run outside of it. The same calls with the same seeds give
 * the same disk. Out of memory ends the test. */
#ifndef WEIR_SUPPORT_SIMFS_H
#define WEIR_SUPPORT_SIMFS_H

#include <stdbool.h>

#include "base/clock.h"
#include "log/fs.h"

#define SIMFS_SECTOR 512u
#define SIMFS_SPOILT_MAX 16

enum simfs_call {
    SIMFS_OPEN = 1,
    SIMFS_LIST = 2,
    SIMFS_REMOVE = 4,
    SIMFS_MAKE_DIR = 8,
    SIMFS_SYNC_DIR = 16,
    SIMFS_READ = 32,
    SIMFS_WRITE = 64,
    SIMFS_SYNC = 128,
    SIMFS_ALLOCATE = 256,
    SIMFS_SIZE = 512, /* size and used */
    SIMFS_RELEASE = 1024,
    SIMFS_CHANGES = SIMFS_REMOVE | SIMFS_MAKE_DIR | SIMFS_SYNC_DIR | SIMFS_WRITE | SIMFS_SYNC |
                    SIMFS_ALLOCATE | SIMFS_RELEASE,
    SIMFS_ANY = 2047
};

struct simfs;

struct simfs *simfs_new(void);
void simfs_free(struct simfs *); /* takes NULL; files that are still open must not be touched */
struct weir__fs *simfs_fs(struct simfs *);

/* Another disk in the same state, cache and unsynced writes included; nothing open or locked. */
struct simfs *simfs_clone(struct simfs *);

/* ---- watching ---- */

/* Called before (entering) and after every outside call, outside the lock. The hook may clone and
 * crash the disk. */
typedef void (*simfs_hook_fn)(struct simfs *, enum simfs_call, bool entering, void *user);

void simfs_hook(struct simfs *, simfs_hook_fn, void *user);
void simfs_hook_copy(struct simfs *to, const struct simfs *from);

/* Called with what a file is asked for in advance. */
typedef void (*simfs_prefetch_fn)(uint64_t at, uint64_t len, void *user);
void simfs_on_prefetch(struct simfs *, simfs_prefetch_fn, void *user);

uint64_t simfs_calls(struct simfs *, unsigned kinds); /* a set of enum simfs_call */
int simfs_open_files(struct simfs *);

/* ---- crashing ---- */

/* From call number `at` on every call fails and changes nothing. 0: never. */
void simfs_stop(struct simfs *, uint64_t at);

enum simfs_keep {
    SIMFS_KEEP_NONE,
    SIMFS_KEEP_ALL,
    SIMFS_KEEP_ONE,     /* the newest of one unit, the old of the others; n chooses */
    SIMFS_KEEP_ALL_BUT, /* the old of one unit, the newest of the others; n chooses */
    SIMFS_KEEP_PREFIX,  /* what was written up to one moment; n chooses */
    SIMFS_KEEP_RANDOM   /* any version of each; n is the seed */
};

/* How many units wait for a sync, and how many versions they have between them. */
uint64_t simfs_pending(struct simfs *);
uint64_t simfs_pending_versions(struct simfs *);

/* The disk after a loss of power: a new one, everything on it synced. n is taken modulo the number
 * of choices there are. */
struct simfs *simfs_crash(struct simfs *, enum simfs_keep, uint64_t n);

/* Of what a crash with SIMFS_KEEP_NONE would leave. Equal disks, equal hashes. */
uint64_t simfs_hash(struct simfs *);

/* ---- faults ---- */

enum simfs_failed_sync {
    SIMFS_CACHE_KEEPS, /* reads go on to show bytes that the disk lacks */
    SIMFS_CACHE_DROPS  /* reads show the disk */
};

struct simfs_fault {
    unsigned kinds;   /* which calls count, a set of enum simfs_call */
    uint64_t at;      /* which of them fails, from 1, counted since simfs_fail; 0: none */
    bool persistent;  /* and all that follow */
    int rc;           /* WEIR_EIO, WEIR_ENOSPACE, ... */
    bool short_write; /* a write leaves some of its sectors behind */
    enum simfs_failed_sync failed_sync; /* a sync loses some of its units for good */
    uint64_t seed;
};

void simfs_fail(struct simfs *, const struct simfs_fault *); /* copied; NULL: no more faults */
bool simfs_failed(struct simfs *); /* the fault has struck at least once */

/* Bytes of all files together, in blocks of 4 KiB; those that were released and not written since
 * do not count. 0: no limit. */
void simfs_capacity(struct simfs *, uint64_t bytes);
uint64_t simfs_used(struct simfs *);

/* ---- hands on the platters; none of these is an outside call ---- */

/* Makes or replaces a file, durably. Its folders are made. */
void simfs_put(struct simfs *, const char *path, const void *at, size_t len);

/* Copies up to len bytes at `at`, returns how many; -1 when there is no such file. */
long simfs_peek(struct simfs *, const char *path, void *to, size_t len, uint64_t at);

/* Overwrites bytes inside the file, in cache and on disk. */
void simfs_poke(struct simfs *, const char *path, const void *from, size_t len, uint64_t at);
void simfs_flip(struct simfs *, const char *path, uint64_t bit);

/* From now on a read that touches these bytes is WEIR_EIO, as others that were spoilt before; at most
 * SIMFS_SPOILT_MAX places. len 0: all of them are good again. */
void simfs_spoil(struct simfs *, const char *path, uint64_t at, uint64_t len);
/* Writes to 4 KiB blocks of this file with such bytes. */
uint64_t simfs_spoilt_writes(struct simfs *, const char *path);

/* The files there are, one path each, in the order of their names; NULL past the last. */
const char *simfs_path(struct simfs *, size_t index);
uint64_t simfs_size(struct simfs *, const char *path);

/* ---- a clock to go with it ---- */

struct simclock {
    int64_t wall_ms;
    int64_t mono_ms; /* also how long the machine is up */
    uint64_t boot;   /* 0: it has no name */
};

struct weir__clock simclock(struct simclock *);

/* Both clocks go on. */
void simclock_pass(struct simclock *, int64_t ms);

#endif
