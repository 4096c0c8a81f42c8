/* simfs.c - the operations of log/fs.h on a simulated disk, and what becomes of failing ones. */
#include "support/simfs.h"

#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/dice.h"
#include "support/simfs_disk.h"

#define PID_TEXT "4242\n"

struct sim_file {
    struct weir__file base;
    struct simfs *fs;
    struct node *node;
    unsigned flags;
    char path[];
};

static const struct weir__fs_ops fs_ops;
static const struct weir__file_ops file_ops;

static struct simfs *sim_of(struct weir__fs *fs)
{
    return (struct simfs *)(void *)fs;
}

static struct sim_file *file_of(struct weir__file *file)
{
    return (struct sim_file *)(void *)file;
}

/* Disks come and go by the thousand: what they and their logs had is used again, not given back. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

struct simfs *simfs_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct simfs *s = simfs__alloc(sizeof *s);

    pthread_once(&once, keep_memory);
    s->base.ops = &fs_ops;
    weir__mutex_init(&s->lock);
    return s;
}

struct weir__fs *simfs_fs(struct simfs *s)
{
    return &s->base;
}

/* ---- the frame of every call ---- */

static int call_bit(enum simfs_call kind)
{
    return __builtin_ctz((unsigned)kind);
}

/* Counts a call that a fault may strike; true when it does. */
static bool fault_strikes(struct simfs *s, enum simfs_call kind)
{
    const struct simfs_fault *f = &s->fault;

    if (f->at == 0 || !(f->kinds & kind)) return false;
    s->fault_calls++;
    if (s->fault_calls != f->at && !(f->persistent && s->fault_calls > f->at)) return false;
    s->fault_struck = true;
    return true;
}

/* Takes the lock. Not 0: the call fails; *out_struck when by a fault, which may leave traces. */
static int begin_call(struct simfs *s, enum simfs_call kind, const char *path, bool *out_struck,
                      struct weir_error *err)
{
    *out_struck = false;
    if (s->hook) s->hook(s, kind, true, s->hook_user);
    weir__mutex_lock(&s->lock);
    s->calls[call_bit(kind)]++;
    s->calls_total++;
    if (s->stop_at > 0 && s->calls_total >= s->stop_at)
        return weir__fail(err, WEIR_EIO, "%s: the simulated machine has stopped", path);
    *out_struck = fault_strikes(s, kind);
    return *out_struck ? weir__fail(err, s->fault.rc, "%s: simulated fault", path) : 0;
}

static int end_call(struct simfs *s, enum simfs_call kind, int rc)
{
    weir__mutex_unlock(&s->lock);
    if (s->hook) s->hook(s, kind, false, s->hook_user);
    return rc;
}

/* ---- files ---- */

static void check_direct(const struct sim_file *f, const void *at, size_t len, uint64_t offset)
{
    if (!(f->flags & WEIR__FS_DIRECT)) return;
    assert((uintptr_t)at % WEIR__FS_BLOCK == 0);
    assert(len % WEIR__FS_BLOCK == 0);
    assert(offset % WEIR__FS_BLOCK == 0);
}

/* Past the cache: what is clean in it is read from the disk. */
static size_t read_direct(const struct node *n, uint8_t *to, size_t len, uint64_t at)
{
    size_t got = simfs__image_read(&n->now, to, len, at);

    for (size_t done = 0; done < got; done += SIMFS_SECTOR) {
        size_t index = (size_t)((at + done) / SIMFS_SECTOR);
        size_t part = got - done < SIMFS_SECTOR ? got - done : SIMFS_SECTOR;

        if (index < n->newest_count && n->newest[index] > 0) continue;
        memset(to + done, 0, part);
        simfs__image_read(&n->disk, to + done, part, at + done);
    }
    return got;
}

/* The first place that was spoilt in these bytes, widened to units of some size; -1: none. */
static int spoilt_in(const struct sim_file *f, uint64_t at, uint64_t len, uint64_t unit)
{
    uint64_t from = weir__round_down(at, unit), to = weir__round_up(at + len, unit);

    for (int i = 0; i < f->fs->spoilt_count; i++)
        if (f->fs->spoilt[i].node == f->node && from < f->fs->spoilt[i].to &&
            to > f->fs->spoilt[i].from)
            return i;
    return -1;
}

static int read_file(struct weir__file *file, void *to, size_t len, uint64_t at, size_t *out_len,
                     struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    bool struck;
    int rc = begin_call(f->fs, SIMFS_READ, f->path, &struck, err);

    check_direct(f, to, len, at);
    if (rc == 0 && spoilt_in(f, at, len, 1) >= 0)
        rc = weir__fail(err, WEIR_EIO, "%s: simulated bad sector", f->path);
    if (rc == 0 && f->flags & WEIR__FS_DIRECT)
        *out_len = read_direct(f->node, to, len, at);
    else if (rc == 0)
        *out_len = simfs__image_read(&f->node->now, to, len, at);
    return end_call(f->fs, SIMFS_READ, rc);
}

/* A place per sector to note its newest version in. */
static void track_sectors(struct node *n)
{
    uint32_t *newest;

    if (n->newest_count >= n->now.count) return;
    newest = simfs__alloc(n->now.count * sizeof *newest);
    if (n->newest_count > 0) memcpy(newest, n->newest, n->newest_count * sizeof *newest);
    free(n->newest);
    n->newest = newest;
    n->newest_count = n->now.count;
}

static void push_version(struct simfs *s, struct node *n, size_t index, struct sector *sector)
{
    n->versions =
        simfs__room(n->versions, n->versions_count, &n->versions_cap, sizeof n->versions[0]);
    n->versions[n->versions_count++] = (struct sector_version){
        .tick = ++s->tick,
        .index = index,
        .older = n->newest[index],
        .sector = simfs__sector_ref(sector),
    };
    n->newest[index] = (uint32_t)n->versions_count;
}

/* What lies behind a new, nearer end is zeros should the file grow again. */
static void forget_behind(struct simfs *s, struct node *n)
{
    static const uint8_t zeros[SIMFS_SECTOR];
    size_t used = n->now.size % SIMFS_SECTOR, last = n->now.count - 1;

    if (used > 0 && n->now.at[last]) {
        n->now.size = n->now.count * SIMFS_SECTOR; /* for the length of the write */
        simfs__image_write(&n->now, zeros, SIMFS_SECTOR - used, n->now.size - SIMFS_SECTOR + used);
        n->now.size -= SIMFS_SECTOR - used;
        push_version(s, n, last, n->now.at[last]);
    }
    for (size_t i = n->now.count; i < n->newest_count; i++)
        if (n->newest[i] > 0 || (i < n->disk.count && n->disk.at[i])) push_version(s, n, i, NULL);
}

int simfs__set_size(struct simfs *s, struct node *n, uint64_t size, struct weir_error *err)
{
    uint64_t had = weir__round_up(n->now.size, WEIR__FS_BLOCK);
    uint64_t has = weir__round_up(size, WEIR__FS_BLOCK), more = has > had ? has - had : 0;
    bool shorter = size < n->now.size;

    if (size == n->now.size) return 0;
    if (!simfs__has_room(s, more))
        return weir__fail(err, WEIR_ENOSPACE, "the simulated disk is full");
    track_sectors(n); /* those that go and those that come */
    simfs__image_resize(&n->now, size);
    track_sectors(n);
    if (shorter) forget_behind(s, n);
    if (n->holes) simfs__track_holes(n);
    n->sizes = simfs__room(n->sizes, n->sizes_count, &n->sizes_cap, sizeof n->sizes[0]);
    n->sizes[n->sizes_count++] = (struct size_version){++s->tick, size};
    return 0;
}

/* Zeros over zeros are no version. */
static void add_version(struct simfs *s, struct node *n, size_t index)
{
    struct sector *now = n->now.at[index];

    if (index < n->disk.count && n->disk.at[index] == now && n->newest[index] == 0) return;
    push_version(s, n, index, now);
}

static void write_bytes(struct simfs *s, struct node *n, struct weir__bytes part, uint64_t at)
{
    if (part.len == 0) return;
    simfs__image_write(&n->now, part.at, part.len, at);
    track_sectors(n);
    for (uint64_t i = at / SIMFS_SECTOR; i <= (at + part.len - 1) / SIMFS_SECTOR; i++)
        add_version(s, n, (size_t)i);
}

/* A sector that several parts share has a version per part: one of them is what a write that was
 * cut between them leaves. */
static int write_parts(struct sim_file *f, const struct weir__bytes *parts, int count, uint64_t at,
                       uint64_t limit, struct weir_error *err)
{
    uint64_t end = at;
    int rc;

    for (int i = 0; i < count; i++) end += parts[i].len;
    if (end - at > limit) end = at + limit;
    rc = end > f->node->now.size ? simfs__set_size(f->fs, f->node, end, err) : 0;
    if (rc == 0) rc = simfs__fill_holes(f->fs, f->node, at, end, err);
    for (int i = 0; i < count && rc == 0 && at < end; i++) {
        struct weir__bytes part = parts[i];

        if (part.len > end - at) part.len = (size_t)(end - at);
        write_bytes(f->fs, f->node, part, at);
        at += part.len;
    }
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", f->path);
}

/* How much of a failing write is there: up to the end of one of its sectors. */
static uint64_t short_limit(struct simfs *s, const struct weir__bytes *parts, int count,
                            uint64_t at)
{
    uint64_t len = 0, first = SIMFS_SECTOR - at % SIMFS_SECTOR, dice = s->fault.seed, sectors;

    for (int i = 0; i < count; i++) len += parts[i].len;
    if (len == 0) return 0;
    sectors = dice_roll(&dice, (at + len - 1) / SIMFS_SECTOR - at / SIMFS_SECTOR + 1);
    return sectors == 0 ? 0 : first + (sectors - 1) * SIMFS_SECTOR;
}

static uint64_t parts_bytes(const struct weir__bytes *parts, int count)
{
    uint64_t len = 0;

    for (int i = 0; i < count; i++) len += parts[i].len;
    return len;
}

static int write_file(struct weir__file *file, const struct weir__bytes *parts, int count,
                      uint64_t at, struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    bool struck;
    int spoilt, rc = begin_call(f->fs, SIMFS_WRITE, f->path, &struck, err);

    assert(!(f->flags & WEIR__FS_READ_ONLY));
    assert(count >= 0 && count <= WEIR__FS_PARTS_MAX);
    for (int i = 0; i < count; i++) check_direct(f, parts[i].at, parts[i].len, at);
    spoilt = spoilt_in(f, at, parts_bytes(parts, count), WEIR__FS_BLOCK);
    if (spoilt >= 0) f->fs->spoilt[spoilt].writes++;
    if (rc == 0)
        rc = write_parts(f, parts, count, at, UINT64_MAX, err);
    else if (struck && f->fs->fault.short_write)
        write_parts(f, parts, count, at, short_limit(f->fs, parts, count, at), NULL);
    return end_call(f->fs, SIMFS_WRITE, rc);
}

/* Some of what waited has reached the disk, the rest never will; the cache calls it all clean. */
static void fail_sync(struct simfs *s, struct node *n)
{
    uint64_t dice = s->fault.seed;
    bool sized = n->sizes_count > 0 && dice_roll(&dice, 2) > 0;

    if (sized) simfs__image_resize(&n->disk, n->now.size);
    for (size_t i = 0; i < n->versions_count; i++) {
        struct sector_version *v = &n->versions[i];

        if (dice_roll(&dice, 2) > 0 && v->index < n->disk.count)
            simfs__image_set(&n->disk, v->index, simfs__sector_ref(v->sector));
    }
    simfs__node_clean(n);
    if (s->fault.failed_sync == SIMFS_CACHE_DROPS) simfs__image_copy(&n->now, &n->disk);
}

static bool is_child(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return simfs__parent_len(path) == len && strncmp(path, dir, len) == 0 && *path;
}

/* "." is the root, as "" is. */
static const char *dir_of(const char *path)
{
    return strcmp(path, ".") == 0 ? "" : path;
}

static void settle_names(struct simfs *s, const char *dir)
{
    for (size_t i = 0; i < s->entries_count; i++)
        if (is_child(s->entries[i].path, dir)) simfs__entry_settle(s, &s->entries[i]);
}

/* Of a folder's handle: the same call as sync_dir, also when the folder's name is gone. */
static int sync_names(struct sim_file *f, struct weir_error *err)
{
    bool struck;
    int rc = begin_call(f->fs, SIMFS_SYNC_DIR, f->path, &struck, err);

    if (rc == 0 && (f->node == f->fs->root || f->node->names > 0))
        settle_names(f->fs, dir_of(f->path));
    return end_call(f->fs, SIMFS_SYNC_DIR, rc);
}

static int sync_file(struct weir__file *file, struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    bool struck;
    int rc;

    if (f->flags & WEIR__FS_DIR) return sync_names(f, err);
    rc = begin_call(f->fs, SIMFS_SYNC, f->path, &struck, err);
    if (rc == 0)
        simfs__node_settle(f->node);
    else if (struck)
        fail_sync(f->fs, f->node);
    return end_call(f->fs, SIMFS_SYNC, rc);
}

static int allocate_file(struct weir__file *file, uint64_t size, struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    bool struck;
    int rc = begin_call(f->fs, SIMFS_ALLOCATE, f->path, &struck, err);

    assert(!(f->flags & WEIR__FS_READ_ONLY));
    if (rc != 0) return end_call(f->fs, SIMFS_ALLOCATE, rc);
    rc = simfs__set_size(f->fs, f->node, size, err);
    if (rc == 0) rc = simfs__fill_holes(f->fs, f->node, 0, size, err);
    if (rc != 0) weir__wrap(err, rc, "%s", f->path);
    return end_call(f->fs, SIMFS_ALLOCATE, rc);
}

/* As a write of zeros, but that the space goes back. */
static int release_file(struct weir__file *file, uint64_t at, uint64_t len, struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    struct node *n = f->node;
    bool struck;
    int rc = begin_call(f->fs, SIMFS_RELEASE, f->path, &struck, err);

    assert(!(f->flags & WEIR__FS_READ_ONLY));
    assert(at % WEIR__FS_BLOCK == 0 && len % WEIR__FS_BLOCK == 0 && at + len <= n->now.size);
    if (rc != 0) return end_call(f->fs, SIMFS_RELEASE, rc);
    track_sectors(n);
    for (uint64_t i = at / SIMFS_SECTOR; i < (at + len) / SIMFS_SECTOR; i++) {
        simfs__image_set(&n->now, (size_t)i, NULL);
        add_version(f->fs, n, (size_t)i);
    }
    simfs__make_hole(n, at, len);
    return end_call(f->fs, SIMFS_RELEASE, 0);
}

static int used_file(struct weir__file *file, uint64_t *out, struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    bool struck;
    int rc = begin_call(f->fs, SIMFS_SIZE, f->path, &struck, err);

    if (rc == 0) *out = simfs__node_used(f->node);
    return end_call(f->fs, SIMFS_SIZE, rc);
}

static int size_file(struct weir__file *file, uint64_t *out, struct weir_error *err)
{
    struct sim_file *f = file_of(file);
    bool struck;
    int rc = begin_call(f->fs, SIMFS_SIZE, f->path, &struck, err);

    if (rc == 0) *out = f->node->now.size;
    return end_call(f->fs, SIMFS_SIZE, rc);
}

static void prefetch_file(struct weir__file *file, uint64_t at, uint64_t len)
{
    struct simfs *s = file_of(file)->fs;

    if (s->prefetch) s->prefetch(at, len, s->prefetch_user);
}

static void close_file(struct weir__file *file)
{
    struct sim_file *f = file_of(file);
    struct simfs *s = f->fs;

    weir__mutex_lock(&s->lock);
    if (f->flags & WEIR__FS_LOCK) f->node->locked = false;
    f->node->opens--;
    s->open_files--;
    simfs__node_unref(s, f->node);
    weir__mutex_unlock(&s->lock);
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

/* ---- names ---- */

bool simfs__is_dir(struct simfs *s, const char *path, size_t len)
{
    char *name;
    struct entry *e;

    if (len == 0) return true;
    name = simfs__alloc(len + 1);
    memcpy(name, path, len);
    e = simfs__entry_find(s, name);
    free(name);
    return e && e->now && e->now->is_dir;
}

static int fail_missing(struct weir_error *err, const char *path)
{
    return weir__fail(err, WEIR_ENOTFOUND, "%s: no such file or folder", path);
}

struct node *simfs__add_node(struct simfs *s, const char *path, bool dir)
{
    struct node *n = simfs__node_new(s, dir);

    simfs__entry_set(s, simfs__entry(s, path), n);
    simfs__node_unref(s, n);
    return n;
}

static int fail_locked(struct weir_error *err, const char *path)
{
    return weir__fail(err, WEIR_ELOCKED, "%s: folder is in use by process 4242", path);
}

static int find_folder(struct simfs *s, const char *path, unsigned flags, struct node **out,
                       struct weir_error *err)
{
    struct entry *e = simfs__entry_find(s, path);

    if (!*path && !s->root) s->root = simfs__node_new(s, true);
    *out = *path ? e ? e->now : NULL : s->root;
    if (!*out) return fail_missing(err, path);
    if (!(*out)->is_dir) return weir__fail(err, WEIR_EIO, "%s: not a folder", path);
    return flags & WEIR__FS_LOCK && (*out)->locked ? fail_locked(err, path) : 0;
}

/* Finds or makes what the flags ask for. */
static int find_node(struct simfs *s, const char *path, unsigned flags, struct node **out,
                     struct weir_error *err)
{
    struct entry *e = simfs__entry_find(s, path);
    bool there = e && e->now;

    if (there && flags & WEIR__FS_CREATE)
        return weir__fail(err, WEIR_EEXIST, "%s: it exists already", path);
    if (there && e->now->is_dir) return weir__fail(err, WEIR_EIO, "%s: it is a folder", path);
    if (there && flags & WEIR__FS_LOCK && e->now->locked) return fail_locked(err, path);
    if (!there && !(flags & (WEIR__FS_CREATE | WEIR__FS_LOCK))) return fail_missing(err, path);
    if (!simfs__is_dir(s, path, simfs__parent_len(path))) return fail_missing(err, path);
    *out = there ? e->now : simfs__add_node(s, path, false);
    return 0;
}

static void lock_node(struct simfs *s, struct node *n)
{
    n->locked = true;
    if (n->is_dir) return;
    n->is_lock = true;
    if (simfs__set_size(s, n, sizeof PID_TEXT - 1, NULL) == 0)
        simfs__image_write(&n->now, PID_TEXT, sizeof PID_TEXT - 1, 0);
    simfs__node_clean(n);
}

static int open_file(struct weir__fs *fs, const char *path, unsigned flags, struct weir__file **out,
                     struct weir_error *err)
{
    struct simfs *s = sim_of(fs);
    struct node *n = NULL;
    struct sim_file *f;
    bool struck;
    int rc = begin_call(s, SIMFS_OPEN, path, &struck, err);

    *out = NULL;
    if (rc == 0)
        rc = flags & WEIR__FS_DIR ? find_folder(s, dir_of(path), flags, &n, err)
                                  : find_node(s, path, flags, &n, err);
    if (rc == 0) {
        f = simfs__alloc(sizeof *f + strlen(path) + 1);
        *f = (struct sim_file){.base.ops = &file_ops, .fs = s, .node = n, .flags = flags};
        memcpy(f->path, path, strlen(path) + 1);
        n->refs++;
        n->opens++;
        s->open_files++;
        if (flags & WEIR__FS_LOCK) lock_node(s, n);
        *out = &f->base;
    }
    return end_call(s, SIMFS_OPEN, rc);
}

/* Names are copied out first: fn may do as it likes. They begin at another place each time. */
static int list_dir(struct weir__fs *fs, const char *path, weir__fs_name_fn fn, void *user,
                    struct weir_error *err)
{
    struct simfs *s = sim_of(fs);
    const char *dir = dir_of(path);
    char **names = NULL;
    size_t count = 0, cap = 0;
    bool struck;
    int rc = begin_call(s, SIMFS_LIST, path, &struck, err);

    if (rc == 0 && !simfs__is_dir(s, dir, strlen(dir))) rc = fail_missing(err, path);
    for (size_t i = 0; i < s->entries_count && rc == 0; i++) {
        struct entry *e = &s->entries[(i + s->calls_total) % s->entries_count];
        const char *name = e->path + strlen(dir) + (*dir ? 1 : 0);

        if (!e->now || !is_child(e->path, dir)) continue;
        names = simfs__room(names, count, &cap, sizeof *names);
        names[count] = simfs__alloc(strlen(name) + 1);
        memcpy(names[count++], name, strlen(name) + 1);
    }
    rc = end_call(s, SIMFS_LIST, rc);
    for (size_t i = 0; i < count; i++) {
        if (rc == 0) rc = fn(names[i], user);
        free(names[i]);
    }
    free(names);
    return rc;
}

static int remove_path(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    struct simfs *s = sim_of(fs);
    struct entry *e;
    bool struck;
    int rc = begin_call(s, SIMFS_REMOVE, path, &struck, err);

    e = simfs__entry_find(s, path);
    if (rc == 0 && (!e || !e->now)) rc = fail_missing(err, path);
    for (size_t i = 0; i < s->entries_count && rc == 0 && e->now->is_dir; i++)
        if (s->entries[i].now && is_child(s->entries[i].path, path))
            rc = weir__fail(err, WEIR_EIO, "%s: folder is not empty", path);
    if (rc == 0) simfs__entry_set(s, e, NULL);
    return end_call(s, SIMFS_REMOVE, rc);
}

static int make_dir(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    struct simfs *s = sim_of(fs);
    struct entry *e;
    bool struck;
    int rc = begin_call(s, SIMFS_MAKE_DIR, path, &struck, err);

    e = simfs__entry_find(s, path);
    if (rc == 0 && e && e->now) rc = weir__fail(err, WEIR_EEXIST, "%s: it exists already", path);
    if (rc == 0 && !simfs__is_dir(s, path, simfs__parent_len(path))) rc = fail_missing(err, path);
    if (rc == 0) simfs__add_node(s, path, true);
    return end_call(s, SIMFS_MAKE_DIR, rc);
}

static int sync_dir(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    struct simfs *s = sim_of(fs);
    const char *dir = dir_of(path);
    bool struck;
    int rc = begin_call(s, SIMFS_SYNC_DIR, path, &struck, err);

    if (rc == 0 && !simfs__is_dir(s, dir, strlen(dir))) rc = fail_missing(err, path);
    if (rc == 0) settle_names(s, dir);
    return end_call(s, SIMFS_SYNC_DIR, rc);
}

static int space(struct weir__fs *fs, const char *path, struct weir__fs_space *out,
                 struct weir_error *err)
{
    struct simfs *s = sim_of(fs);
    const char *dir = dir_of(path);
    uint64_t used;

    if (!simfs__is_dir(s, dir, strlen(dir))) return fail_missing(err, path);
    used = simfs__used(s);
    out->size_bytes = s->capacity ? s->capacity : UINT64_MAX;
    out->free_bytes = out->size_bytes > used ? out->size_bytes - used : 0;
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
