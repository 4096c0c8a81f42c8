/* producer.c - the stored form of a producer, in a segment's heads:
 *
 *    0  u64 id           8  u64 log sequence of its last batch
 *   16  u64 offset of it 24 i64 its time
 *   32  u32 partition    36 u32 next producer sequence
 *   40  u32 events in it 44 u16 epoch, 46 u16 zero */
#include "log/producer.h"

#include <stdlib.h>

#define PRODUCERS_FIRST 16u

void weir__producers_fini(struct weir__producers *all)
{
    free(all->at);
    *all = (struct weir__producers){0};
}

struct weir__producer *weir__producers_find(struct weir__producers *all, uint32_t partition,
                                            uint64_t id)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].id == id && all->at[i].partition == partition) return &all->at[i];
    return NULL;
}

static struct weir__producer *oldest_of(struct weir__producers *all)
{
    struct weir__producer *oldest = &all->at[0];

    for (uint32_t i = 1; i < all->count; i++)
        if (all->at[i].offset < oldest->offset) oldest = &all->at[i];
    return oldest;
}

static bool grow(struct weir__producers *all)
{
    uint32_t cap = all->cap ? all->cap * 2 : PRODUCERS_FIRST;
    struct weir__producer *at = realloc(all->at, cap * sizeof *at);

    if (!at) return false;
    all->at = at;
    all->cap = cap;
    return true;
}

struct weir__producer *weir__producers_put(struct weir__producers *all, uint32_t partition,
                                           uint64_t id)
{
    struct weir__producer *p = weir__producers_find(all, partition, id);

    if (p) return p;
    if (all->count == WEIR__PRODUCERS_MAX) {
        p = oldest_of(all);
    } else {
        if (all->count == all->cap && !grow(all)) return NULL;
        p = &all->at[all->count++];
    }
    *p = (struct weir__producer){.id = id, .partition = partition};
    return p;
}

void weir__producers_drop(struct weir__producers *all, uint32_t partition, uint64_t id)
{
    struct weir__producer *p = weir__producers_find(all, partition, id);

    if (p) *p = all->at[--all->count];
}

int weir__producer_check(const struct weir__producer *known, const struct weir__log_producer *mark,
                         uint32_t count, bool *out_duplicate, struct weir_error *err)
{
    *out_duplicate = false;
    if (!known || known->count == 0 || mark->epoch > known->epoch) return 0;
    if (mark->epoch < known->epoch)
        return weir__fail(err, WEIR_EFENCED,
                          "producer %llu: a newer epoch took over. Received:%u Current:%u",
                          (unsigned long long)mark->id, mark->epoch, known->epoch);
    if (mark->sequence == known->next) return 0;
    if (mark->sequence == known->next - known->count && count == known->count) {
        *out_duplicate = true;
        return 0;
    }
    return weir__fail(err, WEIR_ESEQUENCE, "producer %llu: %s sequence number %u, expected %u",
                      (unsigned long long)mark->id,
                      (int32_t)(mark->sequence - known->next) < 0 ? "old sequence:" : "gap before",
                      mark->sequence, known->next);
}

void weir__producer_encode(const struct weir__producer *p, uint8_t *to)
{
    weir__store64(to, p->id);
    weir__store64(to + 8, p->sequence);
    weir__store64(to + 16, p->offset);
    weir__store64(to + 24, (uint64_t)p->time_ms);
    weir__store32(to + 32, p->partition);
    weir__store32(to + 36, p->next);
    weir__store32(to + 40, p->count);
    weir__store16(to + 44, p->epoch);
    weir__store16(to + 46, 0);
}

void weir__producer_decode(const uint8_t *from, struct weir__producer *out)
{
    *out = (struct weir__producer){
        .id = weir__load64(from),
        .sequence = weir__load64(from + 8),
        .offset = weir__load64(from + 16),
        .time_ms = (int64_t)weir__load64(from + 24),
        .partition = weir__load32(from + 32),
        .next = weir__load32(from + 36),
        .count = weir__load32(from + 40),
        .epoch = weir__load16(from + 44),
    };
}
