#include "log/tail.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pages.h"

int weir__tail_init(struct weir__tail *t, size_t bytes_max, struct weir_error *err)
{
    *t = (struct weir__tail){.bytes_max = bytes_max};
    t->partial = aligned_alloc(WEIR__FS_BLOCK, WEIR__FS_BLOCK);
    t->scratch = aligned_alloc(WEIR__FS_BLOCK, WEIR__FS_BLOCK);
    if (!t->partial || !t->scratch) {
        weir__tail_fini(t);
        return weir__fail(err, WEIR_ENOMEM, "making the log's tail: out of memory");
    }
    memset(t->partial, 0, WEIR__FS_BLOCK);
    return 0;
}

static void free_block(struct weir__tail_block *b)
{
    if (!b) return;
    weir__pages_free(b->at, b->cap);
    free(b);
}

void weir__tail_fini(struct weir__tail *t)
{
    for (int i = 0; i < t->count; i++) free_block(t->blocks[i]);
    free_block(t->idle);
    free(t->partial);
    free(t->scratch);
    *t = (struct weir__tail){0};
}

static struct weir__tail_block *new_block(size_t cap)
{
    struct weir__tail_block *b = calloc(1, sizeof *b);

    if (!b) return NULL;
    b->cap = cap;
    b->at = weir__pages_new(cap);
    if (b->at) return b;
    free(b);
    return NULL;
}

void weir__tail_release(struct weir__tail *t, struct weir__tail_block *b)
{
    if (--b->holds > 0) return;
    if (!t->idle && b->cap == WEIR__TAIL_BLOCK_BYTES)
        t->idle = b;
    else
        free_block(b);
}

/* Out of the tail, and out of its budget: what readers still hold is theirs. */
static void drop_block(struct weir__tail *t, int i)
{
    struct weir__tail_block *b = t->blocks[i];

    t->count--;
    memmove(t->blocks + i, t->blocks + i + 1, (size_t)(t->count - i) * sizeof t->blocks[0]);
    t->bytes -= b->cap;
    weir__tail_release(t, b);
}

static struct weir__tail_block *last_of(struct weir__tail *t)
{
    return t->count ? t->blocks[t->count - 1] : NULL;
}

/* Keeps the bytes of the 4 KiB block around the end where the next block's memory finds them. */
static void save_partial(struct weir__tail *t)
{
    struct weir__tail_block *b = last_of(t);
    uint64_t from = weir__round_down(t->end, WEIR__FS_BLOCK);

    if (b && b->end == t->end && from >= b->base)
        memcpy(t->partial, b->at + (from - b->base), t->end - from);
}

void weir__tail_jump(struct weir__tail *t, uint64_t position)
{
    t->end = position;
}

static struct weir__tail_block *take_block(struct weir__tail *t, size_t cap)
{
    struct weir__tail_block *b = t->idle;

    if (!b || b->cap != cap) return new_block(cap);
    t->idle = NULL;
    return b;
}

enum weir__tail_room weir__tail_room(struct weir__tail *t, size_t len, uint64_t durable)
{
    struct weir__tail_block *b = last_of(t);
    uint64_t base = weir__round_down(t->end, WEIR__FS_BLOCK);
    size_t need = weir__round_up(t->end - base + len, WEIR__FS_BLOCK), cap;

    if (b && b->end == t->end && t->end - b->base + len <= b->cap) return WEIR__TAIL_READY;
    cap = need > WEIR__TAIL_BLOCK_BYTES ? need : WEIR__TAIL_BLOCK_BYTES;
    save_partial(t);
    while (t->count && t->blocks[0]->end <= durable &&
           (t->bytes + cap > t->bytes_max || t->count == WEIR__TAIL_BLOCKS_MAX))
        drop_block(t, 0);
    if (t->count && (t->bytes + cap > t->bytes_max || t->count == WEIR__TAIL_BLOCKS_MAX))
        return WEIR__TAIL_FULL;
    b = take_block(t, cap);
    if (!b) return WEIR__TAIL_NOMEM;
    b->base = base;
    b->start = b->end = t->end;
    b->holds = 1;
    memcpy(b->at, t->partial, t->end - base);
    t->blocks[t->count++] = b;
    t->bytes += cap;
    return WEIR__TAIL_READY;
}

uint8_t *weir__tail_at(struct weir__tail *t)
{
    struct weir__tail_block *b = last_of(t);

    return b->at + (t->end - b->base);
}

void weir__tail_advance(struct weir__tail *t, size_t len)
{
    t->end += len;
    last_of(t)->end = t->end;
}

void weir__tail_cut(struct weir__tail *t, uint64_t position)
{
    struct weir__tail_block *b;

    /* The block that begins at the position, or holds it, stays: it has the bytes before it. */
    while ((b = last_of(t)) && b->start > position) drop_block(t, t->count - 1);
    if (b && b->end > position) b->end = position;
    t->end = position;
}

void weir__tail_trim(struct weir__tail *t, uint64_t durable)
{
    save_partial(t);
    for (int i = t->count; i-- > 0;)
        if (t->blocks[i]->end <= durable && t->blocks[i]->holds == 1) drop_block(t, i);
    free_block(t->idle);
    t->idle = NULL;
}

int weir__tail_parts(struct weir__tail *t, uint64_t from, uint64_t to,
                     struct weir__bytes parts[WEIR__FS_PARTS_MAX])
{
    uint64_t at = weir__round_down(from, WEIR__FS_BLOCK);
    uint64_t whole = weir__round_down(to, WEIR__FS_BLOCK);
    int n = 0;

    for (int i = 0; i < t->count && at < to; i++) {
        struct weir__tail_block *b = t->blocks[i];
        /* The 4 KiB around a block's end belongs to the next block, which has a copy of it. */
        uint64_t stop = i + 1 < t->count ? weir__round_down(b->end, WEIR__FS_BLOCK) : b->end;

        if (b->base > at) continue;
        if (stop > whole) stop = whole;
        if (stop > at) {
            parts[n++] = weir__bytes_of(b->at + (at - b->base), stop - at);
            at = stop;
        }
        if (at == whole && b->end >= to) {
            memcpy(t->scratch, b->at + (whole - b->base), to - whole);
            memset(t->scratch + (to - whole), 0, WEIR__FS_BLOCK - (to - whole));
            parts[n++] = weir__bytes_of(t->scratch, WEIR__FS_BLOCK);
            at = to;
        }
    }
    assert(at == to && n <= WEIR__FS_PARTS_MAX);
    return n;
}

struct weir__tail_block *weir__tail_hold(struct weir__tail *t, uint64_t position)
{
    for (int i = t->count - 1; i >= 0; i--) {
        struct weir__tail_block *b = t->blocks[i];

        if (position >= b->start && position < b->end) {
            b->holds++;
            return b;
        }
    }
    return NULL;
}
