/* simfs_disk.h - what a simulated disk is made of; for the files of simfs only.
 *
 *   entry   a path, what it names now, what it names on disk, and every name it had in between
 *   node    a file or folder: its bytes now, its bytes on disk, and every unsynced version of each
 *           sector and of the size, in the order they were written
 *   sector  512 bytes that never change once they stand in an image; shared by count.
 *           NULL stands for zeros
 */
#ifndef WEIR_SUPPORT_SIMFS_DISK_H
#define WEIR_SUPPORT_SIMFS_DISK_H

#include "base/thread.h"
#include "support/simfs.h"

struct sector {
    uint32_t refs;
    uint64_t hash;
    uint8_t bytes[SIMFS_SECTOR];
};

struct image {
    struct sector **at;
    size_t count;
    uint64_t size;
};

/* tick: one clock for the whole disk, so that versions of different units have an order. */
struct sector_version {
    uint64_t tick;
    size_t index;
    uint32_t older; /* the version before it of the same sector, + 1; 0: none */
    struct sector *sector;
};

struct size_version {
    uint64_t tick;
    uint64_t size;
};

struct node {
    struct node *next;
    struct node *copy; /* while a disk is being copied */
    uint64_t refs;     /* entries, their versions, and open files */
    int names;         /* entries that name it now */
    int opens;
    bool is_dir;
    bool is_lock; /* its bytes are no part of any promise: always as they are now */
    bool locked;
    struct image now, disk;
    struct sector_version *versions;
    size_t versions_count, versions_cap;
    uint32_t *newest; /* per sector: its newest version, + 1; 0: clean */
    size_t newest_count;
    struct size_version *sizes;
    size_t sizes_count, sizes_cap;
    bool *holes; /* per block: it was released, and not written since */
    size_t holes_count, holes_set;
};

struct entry_version {
    uint64_t tick;
    struct node *node; /* NULL: no such name */
};

struct entry {
    char *path;
    struct node *now, *disk;
    struct entry_version *versions;
    size_t versions_count, versions_cap;
};

struct simfs {
    struct weir__fs base;
    struct weir__mutex lock;
    struct node *nodes;
    struct node *root;     /* made for its first handle; it has no entry */
    struct entry *entries; /* sorted by path */
    size_t entries_count, entries_cap;
    uint64_t tick;
    uint64_t calls[11]; /* by bit of enum simfs_call */
    uint64_t calls_total;
    uint64_t stop_at;
    uint64_t capacity;
    int open_files;
    struct simfs_fault fault;
    uint64_t fault_calls;
    bool fault_struck;
    struct {
        const struct node *node;
        uint64_t from, to; /* its bytes that cannot be read */
        uint64_t writes;   /* to their blocks */
    } spoilt[SIMFS_SPOILT_MAX];
    int spoilt_count;
    simfs_hook_fn hook;
    void *hook_user;
    simfs_prefetch_fn prefetch;
    void *prefetch_user;
};

/* Memory or the end of the test. Grows an array to hold one more. */
void *simfs__alloc(size_t bytes);
void *simfs__room(void *array, size_t count, size_t *cap, size_t size);

struct sector *simfs__sector_new(const uint8_t bytes[SIMFS_SECTOR]); /* NULL for zeros */
struct sector *simfs__sector_ref(struct sector *);
void simfs__sector_unref(struct sector *);

void simfs__image_set(struct image *, size_t index, struct sector *); /* the reference is taken */
void simfs__image_resize(struct image *, uint64_t size);
size_t simfs__image_read(const struct image *, void *to, size_t len, uint64_t at);
void simfs__image_write(struct image *, const void *from, size_t len, uint64_t at);
void simfs__image_copy(struct image *to, const struct image *from);

struct node *simfs__node_new(struct simfs *, bool is_dir);
void simfs__node_unref(struct simfs *, struct node *);
void simfs__node_settle(struct node *); /* as after a sync: what is now is on the disk */
void simfs__node_clean(struct node *);  /* forgets the versions, leaves both images */

/* The entry of a path, made when missing. Pointers live until the next one is made. */
struct entry *simfs__entry(struct simfs *, const char *path);
struct entry *simfs__entry_find(struct simfs *, const char *path); /* or NULL */
void simfs__entry_set(struct simfs *, struct entry *, struct node *now);
void simfs__entry_settle(struct simfs *, struct entry *);

/* simfs.c; the lock is held */
int simfs__set_size(struct simfs *, struct node *, uint64_t size,
                    struct weir_error *); /* unsynced */
struct node *simfs__add_node(struct simfs *, const char *path, bool is_dir);
bool simfs__is_dir(struct simfs *, const char *path, size_t len);

/* simfs_space.c; the lock is held */
uint64_t simfs__used(const struct simfs *);
uint64_t simfs__node_used(const struct node *);
bool simfs__has_room(const struct simfs *, uint64_t more);
void simfs__track_holes(struct node *); /* after its size has changed */
void simfs__make_hole(struct node *, uint64_t at, uint64_t len);
/* Blocks of the range that were released take space again, all of them or none. */
int simfs__fill_holes(struct simfs *, struct node *, uint64_t at, uint64_t end,
                      struct weir_error *);

/* Length of the folder part of a path; 0: the root. */
size_t simfs__parent_len(const char *path);

#endif
