/* fs_memory.c - files that live in memory and go with the process, behind fs.h.
 *
 *   memory > entry, entry ...   a path and what it names
 *            node               a folder, or a file's bytes; lives while it has a name or a handle
 *   file   > node               a handle
 *
 * Files are charged for their size, but for what was released (chunks.h); above the maximum growing
 * is WEIR_ENOSPACE.
 *
 * Locks: a node's guards its bytes, the memory's guards names and references. Nobody holds both. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log/chunks.h"
#include "log/fs.h"

#define PID_BYTES 24

struct node {
    struct weir__mutex lock;
    struct weir__chunks bytes;
    bool folder;
    bool locked;   /* the memory's lock guards this, */
    unsigned refs; /* and this: its name, and each handle */
};

struct entry {
    struct entry *next;
    struct node *node;
    char path[];
};

struct memory {
    struct weir__fs base;
    struct weir__budget budget;
    struct weir__mutex lock;
    struct entry *entries;
    struct node root; /* for its handles and their lock */
    unsigned open;    /* handles */
};

struct memory_file {
    struct weir__file base;
    struct memory *memory;
    struct node *node;
    unsigned flags;
    char path[];
};

static struct memory *memory_of(struct weir__fs *fs)
{
    return (struct memory *)(void *)fs;
}

static struct memory_file *file_of(struct weir__file *file)
{
    return (struct memory_file *)(void *)file;
}

/* ---- one file ---- */

static int read_file(struct weir__file *file, void *to, size_t len, uint64_t at, size_t *out_len,
                     struct weir_error *err)
{
    struct node *n = file_of(file)->node;

    (void)err;
    weir__mutex_lock(&n->lock);
    if (at > n->bytes.size) at = n->bytes.size;
    if (len > n->bytes.size - at) len = (size_t)(n->bytes.size - at);
    weir__chunks_read(&n->bytes, to, len, at);
    weir__mutex_unlock(&n->lock);
    *out_len = len;
    return 0;
}

static int write_parts(struct weir__chunks *bytes, const struct weir__bytes *parts, int count,
                       uint64_t at, struct weir_error *err)
{
    uint64_t end = at;
    int rc = 0;

    assert(count >= 0 && count <= WEIR__FS_PARTS_MAX);
    for (int i = 0; i < count; i++)
        if (__builtin_add_overflow(end, parts[i].len, &end))
            return weir__fail(err, WEIR_EINVAL, "a file cannot be so long");
    if (end > at && end > bytes->size) rc = weir__chunks_resize(bytes, end, err);
    for (int i = 0; rc == 0 && i < count; at += parts[i++].len)
        if (parts[i].len) rc = weir__chunks_write(bytes, parts[i], at, err);
    return rc;
}

static int write_file(struct weir__file *file, const struct weir__bytes *parts, int count,
                      uint64_t at, struct weir_error *err)
{
    struct memory_file *f = file_of(file);
    int rc;

    if (f->flags & WEIR__FS_READ_ONLY)
        return weir__fail(err, WEIR_EIO, "%s: opened for reading", f->path);
    weir__mutex_lock(&f->node->lock);
    rc = write_parts(&f->node->bytes, parts, count, at, err);
    weir__mutex_unlock(&f->node->lock);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", f->path);
}

static int sync_file(struct weir__file *file, struct weir_error *err)
{
    (void)file, (void)err; /* it is as durable as it will ever be */
    return 0;
}

static int allocate_file(struct weir__file *file, uint64_t size, struct weir_error *err)
{
    struct memory_file *f = file_of(file);
    int rc;

    weir__mutex_lock(&f->node->lock);
    rc = weir__chunks_resize(&f->node->bytes, size, err);
    if (rc == 0) rc = weir__chunks_fill(&f->node->bytes, err);
    weir__mutex_unlock(&f->node->lock);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", f->path);
}

static int release_file(struct weir__file *file, uint64_t at, uint64_t len, struct weir_error *err)
{
    struct node *n = file_of(file)->node;

    (void)err;
    weir__mutex_lock(&n->lock);
    weir__chunks_release(&n->bytes, at, len);
    weir__mutex_unlock(&n->lock);
    return 0;
}

static int used_file(struct weir__file *file, uint64_t *out, struct weir_error *err)
{
    struct node *n = file_of(file)->node;

    (void)err;
    weir__mutex_lock(&n->lock);
    *out = weir__chunks_used(&n->bytes);
    weir__mutex_unlock(&n->lock);
    return 0;
}

static int size_file(struct weir__file *file, uint64_t *out, struct weir_error *err)
{
    struct node *n = file_of(file)->node;

    (void)err;
    weir__mutex_lock(&n->lock);
    *out = n->bytes.size;
    weir__mutex_unlock(&n->lock);
    return 0;
}

static void prefetch_file(struct weir__file *file, uint64_t at, uint64_t len)
{
    (void)file, (void)at, (void)len;
}

static void free_node(struct node *n)
{
    weir__chunks_fini(&n->bytes);
    weir__mutex_fini(&n->lock);
    free(n);
}

/* The last reference to a node frees it, after the lock. */
static void close_file(struct weir__file *file)
{
    struct memory_file *f = file_of(file);
    bool last;

    weir__mutex_lock(&f->memory->lock);
    if (f->flags & WEIR__FS_LOCK) f->node->locked = false;
    last = --f->node->refs == 0;
    f->memory->open--;
    weir__mutex_unlock(&f->memory->lock);
    if (last) free_node(f->node);
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

/* ---- names; with the memory's lock held ---- */

static struct entry **find(struct memory *m, const char *path, size_t len)
{
    struct entry **at = &m->entries;

    while (*at && (strncmp((*at)->path, path, len) != 0 || (*at)->path[len])) at = &(*at)->next;
    return at;
}

/* The name's length when it lies right in the folder, else 0. */
static size_t name_in(const char *folder, const char *path)
{
    size_t len = strlen(folder);

    if (strncmp(path, folder, len) != 0 || path[len] != '/') return 0;
    return strchr(path + len + 1, '/') ? 0 : strlen(path + len + 1);
}

/* A path without a slash lies in the one folder that is always there. */
static bool has_parent(struct memory *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct entry *parent;

    if (!slash) return true;
    parent = *find(m, path, (size_t)(slash - path));
    return parent && parent->node->folder;
}

static int fail_path(struct weir_error *err, int code, const char *path)
{
    return weir__fail(err, code, "%s: %s (in memory)", path, weir_error_text(code));
}

static int add_entry(struct memory *m, const char *path, bool folder, struct entry **out,
                     struct weir_error *err)
{
    size_t bytes = strlen(path) + 1;
    struct entry *e;

    if (!has_parent(m, path)) return fail_path(err, WEIR_ENOTFOUND, path);
    e = malloc(sizeof *e + bytes);
    if (e) e->node = calloc(1, sizeof *e->node);
    if (!e || !e->node) {
        free(e);
        return fail_path(err, WEIR_ENOMEM, path);
    }
    weir__mutex_init(&e->node->lock);
    e->node->bytes.budget = &m->budget;
    e->node->folder = folder;
    e->node->refs = 1;
    memcpy(e->path, path, bytes);
    e->next = m->entries;
    m->entries = e;
    *out = e;
    return 0;
}

/* ---- opening ---- */

/* As on disk, where whoever is refused is told who has it. */
static void write_pid(struct memory_file *f)
{
    char text[PID_BYTES + 1];
    struct weir__bytes part = weir__bytes_of(text, PID_BYTES);

    snprintf(text, sizeof text, "%-*ld\n", PID_BYTES - 1, (long)getpid());
    write_file(&f->base, &part, 1, 0, NULL);
}

static int lock_node(struct memory_file *f, struct node *n, struct weir_error *err)
{
    if (n->locked)
        return weir__fail(err, WEIR_ELOCKED, "%s: folder is in use by process %ld", f->path,
                          (long)getpid());
    n->locked = true;
    return 0;
}

/* The one folder that is always there has no name. */
static bool is_root(const char *path)
{
    return strcmp(path, ".") == 0;
}

/* Finds or makes what f is to be a handle of. */
static int find_node(struct memory *m, struct memory_file *f, struct node **out,
                     struct weir_error *err)
{
    struct entry *e = *find(m, f->path, strlen(f->path));
    bool folder = f->flags & WEIR__FS_DIR;
    bool make = !folder && f->flags & (WEIR__FS_CREATE | WEIR__FS_LOCK);
    int rc = 0;

    *out = &m->root;
    if (folder && is_root(f->path)) return 0;
    if (e && f->flags & WEIR__FS_CREATE) return fail_path(err, WEIR_EEXIST, f->path);
    if (e && e->node->folder != folder) return fail_path(err, WEIR_EIO, f->path);
    if (!e)
        rc = make ? add_entry(m, f->path, false, &e, err) : fail_path(err, WEIR_ENOTFOUND, f->path);
    if (rc == 0) *out = e->node;
    return rc;
}

static int take_node(struct memory *m, struct memory_file *f, struct weir_error *err)
{
    int rc = find_node(m, f, &f->node, err);

    if (rc == 0 && f->flags & WEIR__FS_LOCK) rc = lock_node(f, f->node, err);
    if (rc != 0) return rc;
    f->node->refs++;
    m->open++;
    return 0;
}

static int open_file(struct weir__fs *fs, const char *path, unsigned flags, struct weir__file **out,
                     struct weir_error *err)
{
    struct memory *m = memory_of(fs);
    size_t bytes = strlen(path) + 1;
    struct memory_file *f = malloc(sizeof *f + bytes);
    int rc;

    *out = NULL;
    if (!f) return fail_path(err, WEIR_ENOMEM, path);
    *f = (struct memory_file){.base.ops = &file_ops, .memory = m, .flags = flags};
    memcpy(f->path, path, bytes);
    weir__mutex_lock(&m->lock);
    rc = take_node(m, f, err);
    weir__mutex_unlock(&m->lock);
    if (rc != 0) {
        free(f);
        return rc;
    }
    if (flags & WEIR__FS_LOCK && !(flags & WEIR__FS_DIR)) write_pid(f);
    *out = &f->base;
    return 0;
}

/* ---- folders ---- */

/* All paths right in the folder, one behind the other, each with its NUL. *out_bytes tells where
 * they end. */
static char *gather_names(struct memory *m, const char *dir, size_t *out_bytes)
{
    size_t room = 1, used = 0, len;
    char *names;

    for (struct entry *e = m->entries; e; e = e->next) {
        len = name_in(dir, e->path);
        if (len) room += len + 1;
    }
    names = malloc(room);
    for (struct entry *e = m->entries; names && e; e = e->next) {
        len = name_in(dir, e->path);
        if (len) memcpy(names + used, e->path + strlen(e->path) - len, len + 1);
        if (len) used += len + 1;
    }
    *out_bytes = used;
    return names;
}

static bool is_folder(struct memory *m, const char *path)
{
    struct entry *e = *find(m, path, strlen(path));

    return is_root(path) || (e && e->node->folder);
}

/* fn is called without the lock: it may call back. */
static int list_dir(struct weir__fs *fs, const char *path, weir__fs_name_fn fn, void *user,
                    struct weir_error *err)
{
    struct memory *m = memory_of(fs);
    size_t bytes = 0;
    char *names = NULL;
    bool there;
    int rc = 0;

    weir__mutex_lock(&m->lock);
    there = is_folder(m, path);
    if (there) names = gather_names(m, path, &bytes);
    weir__mutex_unlock(&m->lock);
    if (!names) return fail_path(err, there ? WEIR_ENOMEM : WEIR_ENOTFOUND, path);
    for (size_t at = 0; rc == 0 && at < bytes; at += strlen(names + at) + 1)
        rc = fn(names + at, user);
    free(names);
    return rc;
}

static bool is_empty(struct memory *m, const char *folder)
{
    for (struct entry *e = m->entries; e; e = e->next)
        if (name_in(folder, e->path)) return false;
    return true;
}

static int remove_path(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    struct memory *m = memory_of(fs);
    struct entry **at, *e;
    bool last = false;
    int rc = 0;

    weir__mutex_lock(&m->lock);
    at = find(m, path, strlen(path));
    e = *at;
    if (!e)
        rc = fail_path(err, WEIR_ENOTFOUND, path);
    else if (e->node->folder && !is_empty(m, path))
        rc = weir__fail(err, WEIR_EIO, "%s: the folder is not empty", path);
    if (rc == 0) {
        *at = e->next;
        last = --e->node->refs == 0;
    }
    weir__mutex_unlock(&m->lock);
    if (rc != 0) return rc;
    if (last) free_node(e->node);
    free(e);
    return 0;
}

static int make_dir(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    struct memory *m = memory_of(fs);
    struct entry *e;
    int rc;

    weir__mutex_lock(&m->lock);
    rc = *find(m, path, strlen(path)) ? fail_path(err, WEIR_EEXIST, path)
                                      : add_entry(m, path, true, &e, err);
    weir__mutex_unlock(&m->lock);
    return rc;
}

static int sync_dir(struct weir__fs *fs, const char *path, struct weir_error *err)
{
    struct memory *m = memory_of(fs);
    bool there;

    weir__mutex_lock(&m->lock);
    there = is_folder(m, path);
    weir__mutex_unlock(&m->lock);
    return there ? 0 : fail_path(err, WEIR_ENOTFOUND, path);
}

static int space(struct weir__fs *fs, const char *dir, struct weir__fs_space *out,
                 struct weir_error *err)
{
    struct memory *m = memory_of(fs);
    int rc = sync_dir(fs, dir, err);

    weir__mutex_lock(&m->budget.lock);
    out->size_bytes = m->budget.max;
    out->free_bytes = m->budget.max - m->budget.used;
    weir__mutex_unlock(&m->budget.lock);
    return rc;
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

int weir__fs_memory_new(struct weir__fs **out, uint64_t bytes_max, struct weir_error *err)
{
    struct memory *m = calloc(1, sizeof *m);

    *out = NULL;
    if (!m) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    m->base.ops = &fs_ops;
    m->budget.max = bytes_max;
    m->root.refs = 1;
    weir__mutex_init(&m->budget.lock);
    weir__mutex_init(&m->lock);
    *out = &m->base;
    return 0;
}

void weir__fs_memory_free(struct weir__fs *fs)
{
    struct memory *m = memory_of(fs);

    if (!m) return;
    assert(m->open == 0);
    while (m->entries) {
        struct entry *e = m->entries;
        m->entries = e->next;
        free_node(e->node);
        free(e);
    }
    assert(m->budget.used == 0);
    weir__mutex_fini(&m->lock);
    weir__mutex_fini(&m->budget.lock);
    free(m);
}
