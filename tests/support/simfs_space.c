/* simfs_space.c - how much of a simulated disk is used, and the holes in its files. */
#include <stdlib.h>

#include "support/simfs_disk.h"

static uint64_t blocks_of(uint64_t size)
{
    return weir__round_up(size, WEIR__FS_BLOCK);
}

uint64_t simfs__node_used(const struct node *n)
{
    return blocks_of(n->now.size) - n->holes_set * (uint64_t)WEIR__FS_BLOCK;
}

uint64_t simfs__used(const struct simfs *s)
{
    uint64_t used = 0;

    for (const struct node *n = s->nodes; n; n = n->next)
        if (n->names > 0 || n->opens > 0) used += simfs__node_used(n);
    return used;
}

bool simfs__has_room(const struct simfs *s, uint64_t more)
{
    return s->capacity == 0 || more == 0 || simfs__used(s) + more <= s->capacity;
}

/* Blocks of the range that were released take space again, all of them or none. */
int simfs__fill_holes(struct simfs *s, struct node *n, uint64_t at, uint64_t end,
                      struct weir_error *err)
{
    size_t first = (size_t)(at / WEIR__FS_BLOCK), count = (size_t)(blocks_of(end) / WEIR__FS_BLOCK);
    size_t set = 0;

    if (count > n->holes_count) count = n->holes_count;
    for (size_t i = first; i < count; i++) set += n->holes[i];
    if (!simfs__has_room(s, set * WEIR__FS_BLOCK))
        return weir__fail(err, WEIR_ENOSPACE, "the simulated disk is full");
    for (size_t i = first; i < count; i++) n->holes[i] = false;
    n->holes_set -= set;
    return 0;
}

/* A place per block to note its holes in; those behind the end are forgotten. */
void simfs__track_holes(struct node *n)
{
    size_t count = (size_t)(blocks_of(n->now.size) / WEIR__FS_BLOCK);
    bool *holes = simfs__alloc(count * sizeof *holes);

    if (n->holes) memcpy(holes, n->holes, count < n->holes_count ? count : n->holes_count);
    free(n->holes);
    n->holes = holes;
    n->holes_count = count;
    n->holes_set = 0;
    for (size_t i = 0; i < count; i++) n->holes_set += holes[i];
}

void simfs__make_hole(struct node *n, uint64_t at, uint64_t len)
{
    simfs__track_holes(n);
    for (uint64_t i = at / WEIR__FS_BLOCK; i < (at + len) / WEIR__FS_BLOCK; i++) {
        n->holes_set += !n->holes[i];
        n->holes[i] = true;
    }
}
