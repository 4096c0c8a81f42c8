/* simfs_disk.c - sectors, images, nodes and names of a simulated disk. */
#include "support/simfs_disk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/dice.h"

#define IMAGE_BYTES_MAX ((uint64_t)4 << 30)

void *simfs__alloc(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);

    if (!p) {
        fprintf(stderr, "simfs: out of memory\n");
        abort();
    }
    return p;
}

void *simfs__room(void *array, size_t count, size_t *cap, size_t size)
{
    if (count < *cap) return array;
    *cap = *cap > 0 ? *cap * 2 : 16;
    array = realloc(array, *cap * size);
    if (!array) {
        fprintf(stderr, "simfs: out of memory\n");
        abort();
    }
    return array;
}

/* ---- sectors ---- */

struct sector *simfs__sector_new(const uint8_t bytes[SIMFS_SECTOR])
{
    struct sector *s;
    uint64_t hash = 0, any = 0;

    for (size_t i = 0; i < SIMFS_SECTOR; i += 8) {
        uint64_t word = weir__load64(bytes + i);

        any |= word;
        hash = dice_mix(hash ^ word) + i;
    }
    if (any == 0) return NULL;
    s = simfs__alloc(sizeof *s);
    s->refs = 1;
    s->hash = hash;
    memcpy(s->bytes, bytes, SIMFS_SECTOR);
    return s;
}

struct sector *simfs__sector_ref(struct sector *s)
{
    if (s) __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

/* Sectors are shared by disks, which threads may use side by side. */
void simfs__sector_unref(struct sector *s)
{
    if (s && __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) == 0) free(s);
}

/* ---- images ---- */

static size_t sectors_of(uint64_t size)
{
    assert(size <= IMAGE_BYTES_MAX);
    return (size_t)((size + SIMFS_SECTOR - 1) / SIMFS_SECTOR);
}

void simfs__image_set(struct image *im, size_t index, struct sector *s)
{
    assert(index < im->count);
    simfs__sector_unref(im->at[index]);
    im->at[index] = s;
}

void simfs__image_resize(struct image *im, uint64_t size)
{
    size_t count = sectors_of(size);

    for (size_t i = count; i < im->count; i++) simfs__sector_unref(im->at[i]);
    if (count != im->count) {
        struct sector **at = simfs__alloc(count * sizeof *at);

        if (im->count > 0) memcpy(at, im->at, (count < im->count ? count : im->count) * sizeof *at);
        free(im->at);
        im->at = at;
    }
    im->count = count;
    im->size = size;
}

size_t simfs__image_read(const struct image *im, void *to, size_t len, uint64_t at)
{
    size_t done = 0;

    if (at >= im->size) return 0;
    if (len > im->size - at) len = (size_t)(im->size - at);
    while (done < len) {
        size_t skip = (at + done) % SIMFS_SECTOR, n = SIMFS_SECTOR - skip;
        const struct sector *s = im->at[(at + done) / SIMFS_SECTOR];

        if (n > len - done) n = len - done;
        if (s)
            memcpy((uint8_t *)to + done, s->bytes + skip, n);
        else
            memset((uint8_t *)to + done, 0, n);
        done += n;
    }
    return len;
}

/* Inside the image only. */
void simfs__image_write(struct image *im, const void *from, size_t len, uint64_t at)
{
    assert(at + len <= im->size);
    for (size_t done = 0; done < len;) {
        size_t index = (size_t)((at + done) / SIMFS_SECTOR);
        size_t skip = (at + done) % SIMFS_SECTOR, n = SIMFS_SECTOR - skip;
        uint8_t bytes[SIMFS_SECTOR] = {0};

        if (n > len - done) n = len - done;
        if (im->at[index]) memcpy(bytes, im->at[index]->bytes, SIMFS_SECTOR);
        memcpy(bytes + skip, (const uint8_t *)from + done, n);
        simfs__image_set(im, index, simfs__sector_new(bytes));
        done += n;
    }
}

void simfs__image_copy(struct image *to, const struct image *from)
{
    simfs__image_resize(to, 0);
    simfs__image_resize(to, from->size);
    for (size_t i = 0; i < from->count; i++) to->at[i] = simfs__sector_ref(from->at[i]);
}

/* ---- nodes ---- */

struct node *simfs__node_new(struct simfs *s, bool is_dir)
{
    struct node *n = simfs__alloc(sizeof *n);

    n->is_dir = is_dir;
    n->refs = 1;
    n->next = s->nodes;
    s->nodes = n;
    return n;
}

void simfs__node_clean(struct node *n)
{
    for (size_t i = 0; i < n->versions_count; i++) {
        n->newest[n->versions[i].index] = 0;
        simfs__sector_unref(n->versions[i].sector);
    }
    n->versions_count = 0;
    n->sizes_count = 0;
}

void simfs__node_settle(struct node *n)
{
    if (n->sizes_count > 0) simfs__image_resize(&n->disk, n->now.size);
    for (size_t i = 0; i < n->versions_count; i++) {
        struct sector_version *v = &n->versions[i];

        if (v->index < n->disk.count)
            simfs__image_set(&n->disk, v->index, simfs__sector_ref(v->sector));
    }
    simfs__node_clean(n);
}

void simfs__node_unref(struct simfs *s, struct node *n)
{
    struct node **link = &s->nodes;

    if (!n || --n->refs > 0) return;
    while (*link != n) link = &(*link)->next;
    *link = n->next;
    simfs__node_clean(n);
    simfs__image_resize(&n->now, 0);
    simfs__image_resize(&n->disk, 0);
    free(n->now.at);
    free(n->disk.at);
    free(n->versions);
    free(n->newest);
    free(n->sizes);
    free(n->holes);
    free(n);
}

/* ---- names ---- */

size_t simfs__parent_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

/* Where path is, or where it would go. */
static size_t entry_place(const struct simfs *s, const char *path)
{
    size_t low = 0, high = s->entries_count;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (strcmp(s->entries[mid].path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct entry *simfs__entry_find(struct simfs *s, const char *path)
{
    size_t i = entry_place(s, path);

    return i < s->entries_count && strcmp(s->entries[i].path, path) == 0 ? &s->entries[i] : NULL;
}

struct entry *simfs__entry(struct simfs *s, const char *path)
{
    size_t i = entry_place(s, path), len = strlen(path) + 1;
    struct entry *e = simfs__entry_find(s, path);

    if (e) return e;
    s->entries = simfs__room(s->entries, s->entries_count, &s->entries_cap, sizeof *e);
    e = &s->entries[i];
    memmove(e + 1, e, (s->entries_count - i) * sizeof *e);
    s->entries_count++;
    *e = (struct entry){.path = simfs__alloc(len)};
    memcpy(e->path, path, len);
    return e;
}

void simfs__entry_set(struct simfs *s, struct entry *e, struct node *now)
{
    if (e->now) e->now->names--;
    simfs__node_unref(s, e->now);
    e->now = now;
    if (now) now->names++, now->refs++;
    e->versions =
        simfs__room(e->versions, e->versions_count, &e->versions_cap, sizeof e->versions[0]);
    e->versions[e->versions_count++] = (struct entry_version){++s->tick, now};
    if (now) now->refs++;
}

void simfs__entry_settle(struct simfs *s, struct entry *e)
{
    struct node *was = e->disk;

    e->disk = e->now;
    if (e->disk) e->disk->refs++;
    simfs__node_unref(s, was);
    for (size_t i = 0; i < e->versions_count; i++) simfs__node_unref(s, e->versions[i].node);
    e->versions_count = 0;
}

/* ---- a disk ---- */

void simfs_free(struct simfs *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->entries_count; i++) {
        struct entry *e = &s->entries[i];

        simfs__entry_settle(s, e);
        simfs__node_unref(s, e->now);
        simfs__node_unref(s, e->disk);
        free(e->path);
        free(e->versions);
    }
    while (s->nodes) { /* those of files that were left open */
        s->nodes->refs = 1;
        simfs__node_unref(s, s->nodes);
    }
    free(s->entries);
    weir__mutex_fini(&s->lock);
    free(s);
}
