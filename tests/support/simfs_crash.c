/* simfs_crash.c - copies of a simulated disk: as it is, or as a loss of power would leave it. */
#include <stdlib.h>

#include "support/dice.h"
#include "support/simfs_disk.h"

/* One way to choose, for every unit of a disk in a fixed order. */
struct choice {
    enum simfs_keep keep;
    uint64_t n;    /* unit or tick chosen, or the dice */
    uint64_t unit; /* the one that is next */
    uint64_t density;
};

/* Which of `count` versions stays: an index, or -1 for what is on the disk already. tick_of tells
 * when a version was written. */
static long choose(struct choice *c, size_t count, uint64_t (*tick_of)(const void *, size_t),
                   const void *versions)
{
    uint64_t unit = c->unit++;
    long newest = (long)count - 1;

    switch (c->keep) {
    case SIMFS_KEEP_NONE: return -1;
    case SIMFS_KEEP_ALL: return newest;
    case SIMFS_KEEP_ONE: return unit == c->n ? newest : -1;
    case SIMFS_KEEP_ALL_BUT: return unit == c->n ? -1 : newest;
    case SIMFS_KEEP_PREFIX:
        while (newest >= 0 && tick_of(versions, (size_t)newest) > c->n) newest--;
        return newest;
    case SIMFS_KEEP_RANDOM:
        if (dice_roll(&c->n, 16) >= c->density) return -1;
        return dice_roll(&c->n, 4) > 0 ? newest : (long)dice_roll(&c->n, count + 1) - 1;
    }
    return -1;
}

static uint64_t entry_tick(const void *at, size_t i)
{
    return ((const struct entry *)at)->versions[i].tick;
}

static uint64_t size_tick(const void *at, size_t i)
{
    return ((const struct node *)at)->sizes[i].tick;
}

/* The versions of one sector, oldest first. */
struct sector_history {
    const struct node *node;
    uint32_t *at;
    size_t count, cap;
};

static uint64_t sector_tick(const void *at, size_t i)
{
    const struct sector_history *h = at;

    return h->node->versions[h->at[i]].tick;
}

static void collect_history(struct sector_history *h, size_t index)
{
    const struct node *n = h->node;

    h->count = 0;
    for (uint32_t v = n->newest[index]; v > 0; v = n->versions[v - 1].older) {
        h->at = simfs__room(h->at, h->count, &h->cap, sizeof h->at[0]);
        h->at[h->count++] = v - 1;
    }
    for (size_t i = 0; i < h->count / 2; i++) {
        uint32_t swap = h->at[i];

        h->at[i] = h->at[h->count - 1 - i];
        h->at[h->count - 1 - i] = swap;
    }
}

/* The file's bytes after the crash, as `to`. Sectors behind the end that was kept are lost. */
static void crash_node(struct image *to, const struct node *n, struct choice *c)
{
    struct sector_history h = {.node = n};
    uint64_t size = n->disk.size;

    simfs__image_copy(to, n->is_lock ? &n->now : &n->disk);
    if (n->is_lock) return;
    if (n->sizes_count > 0) {
        long i = choose(c, n->sizes_count, size_tick, n);

        if (i >= 0) size = n->sizes[i].size;
    }
    simfs__image_resize(to, size);
    for (size_t index = 0; index < n->newest_count; index++) {
        long i;

        if (n->newest[index] == 0) continue;
        collect_history(&h, index);
        i = choose(c, h.count, sector_tick, &h);
        if (i >= 0 && index < to->count)
            simfs__image_set(to, index, simfs__sector_ref(n->versions[h.at[i]].sector));
    }
    free(h.at);
}

static uint64_t dirty_sectors(const struct node *n)
{
    uint64_t count = 0;

    for (size_t i = 0; i < n->newest_count; i++) count += n->newest[i] > 0;
    return count;
}

/* Nodes that a crash cannot leave behind have no say: no name, now or before, leads to them. */
static bool can_remain(const struct simfs *s, const struct node *n)
{
    for (size_t i = 0; i < s->entries_count; i++) {
        const struct entry *e = &s->entries[i];

        if (e->disk == n || e->now == n) return true;
        for (size_t v = 0; v < e->versions_count; v++)
            if (e->versions[v].node == n) return true;
    }
    return false;
}

static uint64_t count_unit(uint64_t versions_count, bool versions)
{
    return versions || versions_count == 0 ? versions_count : 1;
}

static uint64_t count_pending(const struct simfs *s, bool versions)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->entries_count; i++)
        count += count_unit(s->entries[i].versions_count, versions);
    for (const struct node *n = s->nodes; n; n = n->next) {
        if (n->is_lock || !can_remain(s, n)) continue;
        count += versions ? n->versions_count : dirty_sectors(n);
        count += count_unit(n->sizes_count, versions);
    }
    return count;
}

uint64_t simfs_pending(struct simfs *s)
{
    uint64_t count;

    weir__mutex_lock(&s->lock);
    count = count_pending(s, false);
    weir__mutex_unlock(&s->lock);
    return count;
}

uint64_t simfs_pending_versions(struct simfs *s)
{
    uint64_t count;

    weir__mutex_lock(&s->lock);
    count = count_pending(s, true);
    weir__mutex_unlock(&s->lock);
    return count;
}

/* The tick of the n-th version of all, so that prefixes are chosen among moments that differ. */
static uint64_t nth_tick(const struct simfs *s, uint64_t n)
{
    uint64_t total = count_pending(s, true), first = UINT64_MAX;

    for (size_t i = 0; i < s->entries_count; i++)
        if (s->entries[i].versions_count > 0 && s->entries[i].versions[0].tick < first)
            first = s->entries[i].versions[0].tick;
    for (const struct node *node = s->nodes; node; node = node->next) {
        if (node->versions_count > 0 && node->versions[0].tick < first)
            first = node->versions[0].tick;
        if (node->sizes_count > 0 && node->sizes[0].tick < first) first = node->sizes[0].tick;
    }
    if (total == 0) return 0;
    return first + n % (s->tick - first + 1);
}

static struct choice make_choice(const struct simfs *s, enum simfs_keep keep, uint64_t n)
{
    struct choice c = {.keep = keep, .n = n};
    uint64_t units = count_pending(s, false);

    if (keep == SIMFS_KEEP_ONE || keep == SIMFS_KEEP_ALL_BUT) c.n = units > 0 ? n % units : 0;
    if (keep == SIMFS_KEEP_PREFIX) c.n = nth_tick(s, n);
    if (keep == SIMFS_KEEP_RANDOM) c.density = 1 + dice_roll(&c.n, 15);
    return c;
}

static bool dir_remains(struct simfs *to, const char *path)
{
    size_t len = simfs__parent_len(path);
    char *parent;
    struct entry *e;

    if (len == 0) return true;
    parent = simfs__alloc(len + 1);
    memcpy(parent, path, len);
    e = simfs__entry_find(to, parent);
    free(parent);
    return e && e->now && e->now->is_dir;
}

/* Gives a name in the copy, durable at once. The node's reference stays with the caller. */
static void name_node(struct simfs *to, const char *path, struct node *n)
{
    struct entry *e = simfs__entry(to, path);

    simfs__entry_set(to, e, n);
    simfs__entry_settle(to, e);
}

static struct node *copy_of(struct simfs *to, struct node *n)
{
    if (!n->copy) {
        n->copy = simfs__node_new(to, n->is_dir);
        n->copy->is_lock = n->is_lock;
    }
    return n->copy;
}

/* Names are sorted, so a folder comes before what is in it. */
static void crash_names(struct simfs *s, struct simfs *to, struct choice *c)
{
    for (size_t i = 0; i < s->entries_count; i++) {
        struct entry *e = &s->entries[i];
        struct node *n = e->disk;

        if (e->versions_count > 0) {
            long v = choose(c, e->versions_count, entry_tick, e);

            if (v >= 0) n = e->versions[v].node;
        }
        if (n && dir_remains(to, e->path)) name_node(to, e->path, copy_of(to, n));
    }
}

/* What was released is, as soon as the call returns. */
static void copy_holes(struct node *to, const struct node *n)
{
    if (!n->holes || to->now.size != n->now.size) return;
    to->holes = simfs__alloc(n->holes_count * sizeof n->holes[0]);
    memcpy(to->holes, n->holes, n->holes_count * sizeof n->holes[0]);
    to->holes_count = n->holes_count;
    to->holes_set = n->holes_set;
}

struct simfs *simfs_crash(struct simfs *s, enum simfs_keep keep, uint64_t n)
{
    struct simfs *to = simfs_new();
    struct choice c;

    weir__mutex_lock(&s->lock);
    c = make_choice(s, keep, n);
    crash_names(s, to, &c);
    for (struct node *node = s->nodes; node; node = node->next) {
        struct image left = {0};

        if (!can_remain(s, node)) continue;
        crash_node(&left, node, &c);
        if (node->copy) {
            simfs__image_copy(&node->copy->now, &left);
            simfs__image_copy(&node->copy->disk, &left);
            copy_holes(node->copy, node);
            simfs__node_unref(to, node->copy);
            node->copy = NULL;
        }
        simfs__image_resize(&left, 0);
        free(left.at);
    }
    to->capacity = s->capacity;
    weir__mutex_unlock(&s->lock);
    return to;
}

static void clone_node(struct simfs *to, struct node *n)
{
    struct node *copy = copy_of(to, n);

    simfs__image_copy(&copy->now, &n->now);
    simfs__image_copy(&copy->disk, &n->disk);
    copy->versions_count = copy->versions_cap = n->versions_count;
    copy->versions = simfs__alloc(n->versions_count * sizeof n->versions[0]);
    for (size_t i = 0; i < n->versions_count; i++) {
        copy->versions[i] = n->versions[i];
        simfs__sector_ref(n->versions[i].sector);
    }
    copy->newest_count = n->newest_count;
    copy->newest = simfs__alloc(n->newest_count * sizeof n->newest[0]);
    if (n->newest_count > 0) memcpy(copy->newest, n->newest, n->newest_count * sizeof n->newest[0]);
    copy->sizes_count = copy->sizes_cap = n->sizes_count;
    copy->sizes = simfs__alloc(n->sizes_count * sizeof n->sizes[0]);
    if (n->sizes_count > 0) memcpy(copy->sizes, n->sizes, n->sizes_count * sizeof n->sizes[0]);
    copy_holes(copy, n);
}

static void clone_entry(struct simfs *to, const struct entry *e)
{
    struct entry *copy = simfs__entry(to, e->path);

    copy->now = e->now ? e->now->copy : NULL;
    if (copy->now) copy->now->refs++, copy->now->names++;
    copy->disk = e->disk ? e->disk->copy : NULL;
    if (copy->disk) copy->disk->refs++;
    for (size_t i = 0; i < e->versions_count; i++) {
        struct entry_version v = {e->versions[i].tick, NULL};

        if (e->versions[i].node) v.node = e->versions[i].node->copy, v.node->refs++;
        copy->versions =
            simfs__room(copy->versions, copy->versions_count, &copy->versions_cap, sizeof v);
        copy->versions[copy->versions_count++] = v;
    }
}

struct simfs *simfs_clone(struct simfs *s)
{
    struct simfs *to = simfs_new();

    weir__mutex_lock(&s->lock);
    for (struct node *n = s->nodes; n; n = n->next) clone_node(to, n);
    for (size_t i = 0; i < s->entries_count; i++) clone_entry(to, &s->entries[i]);
    for (struct node *n = s->nodes; n; n = n->next) {
        simfs__node_unref(to, n->copy);
        n->copy = NULL;
    }
    to->tick = s->tick;
    to->capacity = s->capacity;
    weir__mutex_unlock(&s->lock);
    return to;
}

static uint64_t hash_image(const struct image *im, uint64_t hash)
{
    hash = dice_mix(hash ^ im->size);
    for (size_t i = 0; i < im->count; i++)
        if (im->at[i]) hash += dice_mix(im->at[i]->hash ^ ((uint64_t)i << 40) ^ hash);
    return dice_mix(hash);
}

uint64_t simfs_hash(struct simfs *s)
{
    uint64_t hash = 0;

    weir__mutex_lock(&s->lock);
    for (size_t i = 0; i < s->entries_count; i++) {
        const struct entry *e = &s->entries[i];

        if (!e->disk) continue;
        for (const char *p = e->path; *p; p++) hash = dice_mix(hash ^ (uint64_t)(uint8_t)*p);
        if (!e->disk->is_lock) hash = hash_image(&e->disk->disk, hash);
    }
    weir__mutex_unlock(&s->lock);
    return hash;
}
