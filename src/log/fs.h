/* fs.h - the log's only way to files.
 *
 * Two small tables of functions, so that a simulated disk and a fault injector can stand where the
 * kernel stands. Nothing here is atomic and nothing is durable until sync (a file's bytes and
 * size) or sync_dir, or sync on a folder's handle (names made or removed in a folder) has returned
 * 0. A failed sync is final: what it covered is in an unknown state, and calling it again proves
 * nothing. The text of every error begins with the path of what it is about, and ": ". */
#ifndef WEIR_LOG_FS_H
#define WEIR_LOG_FS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"

#define WEIR__FS_VERSION 1

/* Direct reads and writes: offset, length and memory are multiples of this. */
#define WEIR__FS_BLOCK 4096u

/* Parts of one write, at most. */
#define WEIR__FS_PARTS_MAX 64

enum weir__fs_flags {
    WEIR__FS_CREATE = 1,    /* make it; WEIR_EEXIST when there is one */
    WEIR__FS_READ_ONLY = 2, /* never written through this handle */
    WEIR__FS_DIRECT = 4,    /* past the page cache where the file system can, quietly not else */
    WEIR__FS_LOCK = 8,      /* ours alone until closed; made when missing; holds our pid as text.
                               WEIR_ELOCKED names the holder's pid */
    WEIR__FS_DIR = 16       /* a folder that is there, with no other flag but LOCK. Such a handle
                               has sync and close only; it needs no new descriptor at a sync. Its
                               lock cannot be removed while the folder is there, and WEIR_ELOCKED
                               names the holder's pid where the machine tells it. Where folders
                               cannot be locked, it is opened without a lock */
};

struct weir__fs;
struct weir__file;

struct weir__file_ops {
    int version;

    /* Reads len bytes at `at`. *out_len is less than len only at the end of the file. */
    int (*read)(struct weir__file *, void *to, size_t len, uint64_t at, size_t *out_len,
                struct weir_error *);

    /* Writes the parts one after another at `at`: all of them, or an error, after which any part
     * of them may be there. Short writes are gone on with inside. */
    int (*write)(struct weir__file *, const struct weir__bytes *parts, int count, uint64_t at,
                 struct weir_error *);

    /* Everything written and the size are on the disk when this returns 0. */
    int (*sync)(struct weir__file *, struct weir_error *);

    /* Makes the file `size` bytes long with its space reserved, also where it was released; new
     * bytes read as zeros. WEIR_ENOSPACE: nothing has changed. */
    int (*allocate)(struct weir__file *, uint64_t size, struct weir_error *);

    /* These bytes, whole blocks inside the file, are not needed any more: their space goes back
     * and they read as zeros, where the file system can do so; elsewhere nothing happens. */
    int (*release)(struct weir__file *, uint64_t at, uint64_t len, struct weir_error *);

    int (*size)(struct weir__file *, uint64_t *out, struct weir_error *);

    /* Bytes of the disk that the file takes, about: what was released is not counted. */
    int (*used)(struct weir__file *, uint64_t *out, struct weir_error *);

    /* These bytes will be read soon. A hint: it cannot fail. */
    void (*prefetch)(struct weir__file *, uint64_t at, uint64_t len);

    void (*close)(struct weir__file *);
};

/* Of the disk that a folder lies on, as this process may use it. */
struct weir__fs_space {
    uint64_t free_bytes, size_bytes;
};

/* name lives for the call. Return non-zero to stop; list then returns it. */
typedef int (*weir__fs_name_fn)(const char *name, void *user);

struct weir__fs_ops {
    int version;

    int (*open)(struct weir__fs *, const char *path, unsigned flags, struct weir__file **out,
                struct weir_error *);
    int (*list)(struct weir__fs *, const char *dir, weir__fs_name_fn, void *user,
                struct weir_error *); /* "." and ".." left out, any order */
    int (*remove)(struct weir__fs *, const char *path,
                  struct weir_error *); /* file, empty folder */
    int (*make_dir)(struct weir__fs *, const char *path, struct weir_error *);
    int (*sync_dir)(struct weir__fs *, const char *path, struct weir_error *);
    int (*space)(struct weir__fs *, const char *dir, struct weir__fs_space *out,
                 struct weir_error *);
};

/* First member of each implementation's own struct. */
struct weir__fs {
    const struct weir__fs_ops *ops;
};

struct weir__file {
    const struct weir__file_ops *ops;
    bool not_direct; /* WEIR__FS_DIRECT was asked for and granted, and then a transfer was refused:
                        from there on it goes through the page cache */
};

/* The machine's own file system. Lives for ever, has no state. */
struct weir__fs *weir__fs_posix(void);

/* Files in this process's memory, at most bytes_max of them: WEIR_ENOSPACE above. Paths are
 * relative. Freed, with all its files, when no handle is open; NULL is allowed. */
int weir__fs_memory_new(struct weir__fs **out, uint64_t bytes_max, struct weir_error *);
void weir__fs_memory_free(struct weir__fs *);

/* close that takes NULL. */
static inline void weir__file_close(struct weir__file *f)
{
    if (f) f->ops->close(f);
}

#endif
