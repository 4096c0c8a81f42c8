/* simfs_hands.c - what a test does to a simulated disk from outside: watching, faults, and hands on
 * the platters. And the clock that goes with it. */
#include <assert.h>
#include <stdlib.h>

#include "support/simfs_disk.h"

/* ---- watching and failing ---- */

void simfs_hook(struct simfs *s, simfs_hook_fn fn, void *user)
{
    s->hook = fn;
    s->hook_user = user;
}

void simfs_hook_copy(struct simfs *to, const struct simfs *from)
{
    simfs_hook(to, from->hook, from->hook_user);
}

void simfs_on_prefetch(struct simfs *s, simfs_prefetch_fn fn, void *user)
{
    s->prefetch = fn;
    s->prefetch_user = user;
}

uint64_t simfs_calls(struct simfs *s, unsigned kinds)
{
    uint64_t sum = 0;

    weir__mutex_lock(&s->lock);
    for (unsigned i = 0; i < sizeof s->calls / sizeof s->calls[0]; i++)
        if (kinds & (1u << i)) sum += s->calls[i];
    weir__mutex_unlock(&s->lock);
    return sum;
}

int simfs_open_files(struct simfs *s)
{
    int count;

    weir__mutex_lock(&s->lock);
    count = s->open_files;
    weir__mutex_unlock(&s->lock);
    return count;
}

void simfs_stop(struct simfs *s, uint64_t at)
{
    weir__mutex_lock(&s->lock);
    s->stop_at = at;
    weir__mutex_unlock(&s->lock);
}

void simfs_fail(struct simfs *s, const struct simfs_fault *fault)
{
    weir__mutex_lock(&s->lock);
    s->fault = fault ? *fault : (struct simfs_fault){0};
    s->fault_calls = 0;
    s->fault_struck = false;
    weir__mutex_unlock(&s->lock);
}

bool simfs_failed(struct simfs *s)
{
    bool struck;

    weir__mutex_lock(&s->lock);
    struck = s->fault_struck;
    weir__mutex_unlock(&s->lock);
    return struck;
}

void simfs_capacity(struct simfs *s, uint64_t bytes)
{
    weir__mutex_lock(&s->lock);
    s->capacity = bytes;
    weir__mutex_unlock(&s->lock);
}

uint64_t simfs_used(struct simfs *s)
{
    uint64_t used;

    weir__mutex_lock(&s->lock);
    used = simfs__used(s);
    weir__mutex_unlock(&s->lock);
    return used;
}

/* ---- hands ---- */

static struct node *node_at(struct simfs *s, const char *path)
{
    struct entry *e = simfs__entry_find(s, path);

    return e && e->now && !e->now->is_dir ? e->now : NULL;
}

static void put_dirs(struct simfs *s, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        char *dir = simfs__alloc(len + 1);

        memcpy(dir, path, len);
        if (len > 0 && !simfs__is_dir(s, dir, len)) {
            simfs__add_node(s, dir, true);
            simfs__entry_settle(s, simfs__entry(s, dir));
        }
        free(dir);
    }
}

void simfs_put(struct simfs *s, const char *path, const void *at, size_t len)
{
    struct node *n;

    weir__mutex_lock(&s->lock);
    put_dirs(s, path);
    n = node_at(s, path);
    if (!n) n = simfs__add_node(s, path, false);
    simfs__entry_settle(s, simfs__entry(s, path));
    simfs__node_clean(n);
    simfs__image_resize(&n->now, 0);
    simfs__set_size(s, n, len, NULL);
    simfs__image_write(&n->now, at, len, 0);
    simfs__node_clean(n);
    simfs__image_copy(&n->disk, &n->now);
    weir__mutex_unlock(&s->lock);
}

long simfs_peek(struct simfs *s, const char *path, void *to, size_t len, uint64_t at)
{
    struct node *n;
    long got = -1;

    weir__mutex_lock(&s->lock);
    n = node_at(s, path);
    if (n) got = (long)simfs__image_read(&n->now, to, len, at);
    weir__mutex_unlock(&s->lock);
    return got;
}

void simfs_poke(struct simfs *s, const char *path, const void *from, size_t len, uint64_t at)
{
    struct node *n;

    weir__mutex_lock(&s->lock);
    n = node_at(s, path);
    assert(n);
    simfs__image_write(&n->now, from, len, at);
    if (at + len <= n->disk.size) simfs__image_write(&n->disk, from, len, at);
    weir__mutex_unlock(&s->lock);
}

void simfs_flip(struct simfs *s, const char *path, uint64_t bit)
{
    uint8_t byte = 0;
    long got = simfs_peek(s, path, &byte, 1, bit / 8);

    assert(got == 1);
    (void)got;
    byte = (uint8_t)(byte ^ (1u << (bit % 8)));
    simfs_poke(s, path, &byte, 1, bit / 8);
}

void simfs_spoil(struct simfs *s, const char *path, uint64_t at, uint64_t len)
{
    weir__mutex_lock(&s->lock);
    if (len == 0) s->spoilt_count = 0;
    assert(s->spoilt_count < SIMFS_SPOILT_MAX);
    s->spoilt[s->spoilt_count].node = node_at(s, path);
    s->spoilt[s->spoilt_count].from = at;
    s->spoilt[s->spoilt_count].to = at + len;
    s->spoilt[s->spoilt_count].writes = 0;
    if (len > 0) s->spoilt_count++;
    weir__mutex_unlock(&s->lock);
}

uint64_t simfs_spoilt_writes(struct simfs *s, const char *path)
{
    uint64_t count = 0;

    weir__mutex_lock(&s->lock);
    for (int i = 0; i < s->spoilt_count; i++)
        if (s->spoilt[i].node == node_at(s, path)) count += s->spoilt[i].writes;
    weir__mutex_unlock(&s->lock);
    return count;
}

const char *simfs_path(struct simfs *s, size_t index)
{
    const char *path = NULL;

    weir__mutex_lock(&s->lock);
    for (size_t i = 0; i < s->entries_count && !path; i++)
        if (s->entries[i].now && !s->entries[i].now->is_dir && index-- == 0)
            path = s->entries[i].path;
    weir__mutex_unlock(&s->lock);
    return path;
}

uint64_t simfs_size(struct simfs *s, const char *path)
{
    struct node *n;
    uint64_t size;

    weir__mutex_lock(&s->lock);
    n = node_at(s, path);
    size = n ? n->now.size : 0;
    weir__mutex_unlock(&s->lock);
    return size;
}

/* ---- clock ---- */

static int64_t wall_ms(void *self)
{
    return ((struct simclock *)self)->wall_ms;
}

static int64_t mono_ms(void *self)
{
    return ((struct simclock *)self)->mono_ms;
}

static uint64_t boot(void *self)
{
    return ((struct simclock *)self)->boot;
}

struct weir__clock simclock(struct simclock *clock)
{
    return (
        struct weir__clock){.wall_ms = wall_ms, .mono_ms = mono_ms, .self = clock, .boot = boot};
}

void simclock_pass(struct simclock *clock, int64_t ms)
{
    clock->wall_ms += ms;
    clock->mono_ms += ms;
}
