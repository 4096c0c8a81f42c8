#include "client/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define CHUNK_BYTES_MIN 4096u

struct weir__arena_chunk {
    struct weir__arena_chunk *next;
    size_t room;
    alignas(max_align_t) unsigned char at[];
};

void weir__arena_init(struct weir__arena *a, size_t total_max)
{
    *a = (struct weir__arena){.total_max = total_max};
}

void weir__arena_fini(struct weir__arena *a)
{
    while (a->first) {
        struct weir__arena_chunk *next = a->first->next;
        free(a->first);
        a->first = next;
    }
}

void weir__arena_reset(struct weir__arena *a)
{
    a->now = a->first;
    a->used = 0;
}

/* A chunk of at least len behind `now`: the next one when it is large enough, else a new one, twice
 * as large as all together were, so that there are few. */
static struct weir__arena_chunk *next_chunk(struct weir__arena *a, size_t len)
{
    struct weir__arena_chunk **link = a->now ? &a->now->next : &a->first;
    struct weir__arena_chunk *c = *link;
    size_t room = a->total > CHUNK_BYTES_MIN ? a->total : CHUNK_BYTES_MIN;

    if (c && c->room >= len) return c;
    if (room < len) room = len;
    if (room > a->total_max - a->total) room = len;
    if (room > a->total_max - a->total) return NULL;
    c = malloc(sizeof *c + room);
    if (!c) return NULL;
    c->room = room;
    c->next = *link;
    *link = c;
    a->total += room;
    return c;
}

void *weir__arena_take(struct weir__arena *a, size_t len)
{
    size_t unit = alignof(max_align_t);
    struct weir__arena_chunk *c = a->now;

    if (len > a->total_max) return NULL;
    len = (len + unit - 1) / unit * unit;
    if (!c || len > c->room - a->used) {
        c = next_chunk(a, len);
        if (!c) return NULL;
        a->now = c;
        a->used = 0;
    }
    a->used += len;
    return c->at + a->used - len;
}
