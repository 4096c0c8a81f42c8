/* hashset.c - open addressing, half full at most; 0 stands for an empty place. */
#include "support/hashset.h"

#include <assert.h>
#include <stdlib.h>

struct hashset {
    uint64_t *at;
    size_t cap, count;
};

struct hashset *hashset_new(void)
{
    struct hashset *s = calloc(1, sizeof *s);

    assert(s);
    s->cap = 1024;
    s->at = calloc(s->cap, sizeof *s->at);
    assert(s->at);
    return s;
}

void hashset_free(struct hashset *s)
{
    if (!s) return;
    free(s->at);
    free(s);
}

static bool place(struct hashset *s, uint64_t hash)
{
    size_t i = (size_t)hash & (s->cap - 1);

    while (s->at[i] != 0 && s->at[i] != hash) i = (i + 1) & (s->cap - 1);
    if (s->at[i] == hash) return false;
    s->at[i] = hash;
    s->count++;
    return true;
}

static void grow(struct hashset *s)
{
    uint64_t *old = s->at;
    size_t cap = s->cap;

    s->cap = cap * 2;
    s->count = 0;
    s->at = calloc(s->cap, sizeof *s->at);
    assert(s->at);
    for (size_t i = 0; i < cap; i++)
        if (old[i] != 0) place(s, old[i]);
    free(old);
}

bool hashset_add(struct hashset *s, uint64_t hash)
{
    if (s->count * 2 >= s->cap) grow(s);
    return place(s, hash != 0 ? hash : 1);
}

size_t hashset_count(const struct hashset *s)
{
    return s->count;
}
