/* producer.c - the table of idempotent producers, and the stored form of one:
 *
 *    0  u64 id           8  u64 log sequence of its last batch
 *   16  u64 offset of it 24 i64 its time
 *   32  u32 partition    36 u32 next producer sequence
 *   40  u32 events in it 44 u16 epoch
 *   46  u16 minutes from its last batch to this writing, by retention's clock (65535: or more)
 *
 * The table is a linear hash: a new place brings a new bucket, which takes its share from one other
 * bucket. So it grows by one step at a time, and nobody ever waits for all of it to be arranged
 * again. */
#include "log/producer.h"

#include <assert.h>
#include <stdlib.h>

#define PAGES_FIRST 4u
#define FORGET_AT_ONCE 2 /* of the too old, for one that comes: they go faster than they come */

static_assert(sizeof(struct weir__producer_place) == 64, "a place is a cache line");
static_assert(WEIR__LOG_PARTITIONS_MAX <= UINT16_MAX, "a partition fits");

void weir__producers_init(struct weir__producers *all, uint32_t max, uint64_t seed)
{
    *all = (struct weir__producers){.max = max, .seed = seed};
}

void weir__producers_fini(struct weir__producers *all)
{
    for (uint32_t i = 0; i < all->page_count; i++) free(all->pages[i]);
    free(all->pages);
    *all = (struct weir__producers){0};
}

static struct weir__producer_place *place(const struct weir__producers *all, uint32_t number)
{
    return weir__producers_place(all, number);
}

static uint32_t hash_of(const struct weir__producers *all, uint32_t partition, uint64_t id)
{
    uint64_t h = (id ^ all->seed) + partition * UINT64_C(0x9e3779b97f4a7c15);

    h = (h ^ h >> 32) * ((all->seed << 1 | 1) ^ UINT64_C(0xd6e8feb86659fd92));
    return (uint32_t)((h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

static uint32_t *bucket(const struct weir__producers *all, uint32_t number)
{
    return &all->pages[number / WEIR__PRODUCERS_PAGE]->bucket[number % WEIR__PRODUCERS_PAGE];
}

/* A bucket that is not there yet has its share in the one of half the mask. */
static uint32_t *bucket_of(const struct weir__producers *all, uint32_t hash)
{
    uint32_t number = hash & all->mask;

    return bucket(all, number < all->places ? number : number & all->mask >> 1);
}

static uint32_t number_of(const struct weir__producers *all, uint32_t partition, uint64_t id)
{
    const struct weir__producer_place *at;
    uint32_t n;

    if (all->places == 0) return 0;
    for (n = *bucket_of(all, hash_of(all, partition, id)); n; n = at->chain) {
        at = place(all, n);
        if (at->p.id == id && at->p.partition == partition) break;
    }
    return n;
}

struct weir__producer *weir__producers_find(const struct weir__producers *all, uint32_t partition,
                                            uint64_t id)
{
    struct weir__producer_place *at;
    uint32_t n = all->newest;

    if (n == 0) return NULL;
    at = place(all, n); /* who published last often publishes next */
    if (at->p.id == id && at->p.partition == partition) return &at->p;
    n = number_of(all, partition, id);
    return n ? &place(all, n)->p : NULL;
}

/* ---- the order of last use ---- */

static void unlink_place(struct weir__producers *all, uint32_t number)
{
    const struct weir__producer_place *at = place(all, number);

    if (all->cursor == number) all->cursor = at->newer;
    if (at->newer)
        place(all, at->newer)->older = at->older;
    else
        all->newest = at->older;
    if (at->older)
        place(all, at->older)->newer = at->newer;
    else
        all->oldest = at->newer;
}

static void link_newest(struct weir__producers *all, uint32_t number)
{
    struct weir__producer_place *at = place(all, number);

    at->newer = 0;
    at->older = all->newest;
    if (all->newest)
        place(all, all->newest)->newer = number;
    else
        all->oldest = number;
    all->newest = number;
}

static void link_oldest(struct weir__producers *all, uint32_t number)
{
    struct weir__producer_place *at = place(all, number);

    at->older = 0;
    at->newer = all->oldest;
    if (all->oldest)
        place(all, all->oldest)->older = number;
    else
        all->newest = number;
    all->oldest = number;
}

/* ---- making and forgetting ---- */

static bool add_page(struct weir__producers *all)
{
    struct weir__producer_page *page;

    if (all->page_count == all->page_cap) {
        uint32_t cap = all->page_cap ? all->page_cap * 2 : PAGES_FIRST;
        struct weir__producer_page **pages =
            realloc(all->pages, cap * sizeof(struct weir__producer_page *));

        if (!pages) return false;
        all->pages = pages;
        all->page_cap = cap;
    }
    page = malloc(sizeof *page); /* what is not used of it stays untouched */
    if (!page) return false;
    all->pages[all->page_count++] = page;
    return true;
}

/* Another bucket, with the share that is its own now. */
static void add_bucket(struct weir__producers *all)
{
    uint32_t number = all->places++, keep = 0, move = 0, next;
    uint32_t *from;

    if (number > all->mask) all->mask = 2 * all->mask + 1;
    if (number > 0) {
        from = bucket(all, number & all->mask >> 1);
        for (uint32_t n = *from; n; n = next) {
            struct weir__producer_place *at = place(all, n);
            bool moves = (hash_of(all, at->p.partition, at->p.id) & all->mask) == number;

            next = at->chain;
            at->chain = moves ? move : keep;
            *(moves ? &move : &keep) = n;
        }
        *from = keep;
    }
    *bucket(all, number) = move;
}

/* A place that is in no bucket and in no order. 0: out of memory. */
static uint32_t take_place(struct weir__producers *all)
{
    uint32_t number = all->free;

    if (number) {
        all->free = place(all, number)->chain;
        return number;
    }
    number = all->places + 1;
    if (number / WEIR__PRODUCERS_PAGE >= all->page_count && !add_page(all)) return 0;
    add_bucket(all);
    return number;
}

static void enter(struct weir__producers *all, uint32_t number, const struct weir__producer *p,
                  bool dirty)
{
    struct weir__producer_place *at = place(all, number);
    uint32_t *first = bucket_of(all, hash_of(all, p->partition, p->id));

    at->p = *p;
    at->dirty = dirty;
    at->chain = *first;
    *first = number;
    all->count++;
}

/* Out of its bucket, whose first place is returned. */
static uint32_t *unchain(struct weir__producers *all, uint32_t number)
{
    const struct weir__producer_place *at = place(all, number);
    uint32_t *first = bucket_of(all, hash_of(all, at->p.partition, at->p.id)), *link = first;

    while (*link != number) link = &place(all, *link)->chain;
    *link = at->chain;
    return first;
}

static void drop(struct weir__producers *all, uint32_t number)
{
    struct weir__producer_place *at = place(all, number);

    unchain(all, number);
    unlink_place(all, number);
    at->p.id = 0;
    at->chain = all->free;
    all->free = number;
    all->count--;
}

void weir__producers_forget(struct weir__producers *all, uint32_t now, uint32_t most)
{
    for (; most > 0 && all->oldest; most--) {
        uint32_t used = place(all, all->oldest)->p.used;

        if (now <= used || now - used <= WEIR__PRODUCER_AGE_MIN) return;
        drop(all, all->oldest);
        all->forgotten++;
    }
}

/* A new one, the newest. *out_evicted has whom it made forgotten. 0: out of memory. */
static uint32_t add(struct weir__producers *all, const struct weir__producer *p, bool dirty,
                    struct weir__producer *out_evicted)
{
    uint32_t number;

    *out_evicted = (struct weir__producer){0};
    if (all->count >= all->max) {
        *out_evicted = place(all, all->oldest)->p;
        drop(all, all->oldest);
        all->forgotten++;
    }
    number = take_place(all);
    if (number == 0) return 0;
    enter(all, number, p, dirty);
    link_newest(all, number);
    return number;
}

struct weir__producer *weir__producers_add(struct weir__producers *all, uint32_t partition,
                                           uint64_t id, uint32_t now,
                                           struct weir__producer *out_evicted)
{
    struct weir__producer p = {.id = id, .partition = (uint16_t)partition, .used = now};
    uint32_t number;

    weir__producers_forget(all, now, FORGET_AT_ONCE);
    number = add(all, &p, true, out_evicted);
    return number ? &place(all, number)->p : NULL;
}

void weir__producers_touch(struct weir__producers *all, struct weir__producer *known, uint32_t now)
{
    struct weir__producer_place *at = (struct weir__producer_place *)known;

    known->used = now;
    at->dirty = true;
    if (at->newer) {
        uint32_t number = place(all, at->newer)->older;
        uint32_t *first = unchain(all, number); /* to its front: the busy are found first */

        at->chain = *first;
        *first = number;
        unlink_place(all, number);
        link_newest(all, number);
    }
}

void weir__producers_undo(struct weir__producers *all, uint32_t partition, uint64_t id,
                          const struct weir__producer *before)
{
    uint32_t number = number_of(all, partition, id);

    all->undone++;
    if (before->id == id && before->partition == partition) {
        if (number) place(all, number)->p = *before; /* dirty all the same: it is among them */
        return;
    }
    if (number) drop(all, number);
    if (before->id == 0) return;
    number = take_place(all); /* the one that was just left */
    if (number == 0) return;
    enter(all, number, before, all->oldest && place(all, all->oldest)->dirty);
    link_oldest(all, number);
    all->forgotten--;
}

bool weir__producers_learn(struct weir__producers *all, const struct weir__producer *p, bool dirty)
{
    uint32_t number = number_of(all, p->partition, p->id);
    struct weir__producer evicted;

    if (p->offset > all->top) all->top = p->offset;
    if (number == 0) return add(all, p, dirty, &evicted) != 0;
    if (place(all, number)->p.offset > p->offset) return true;
    unlink_place(all, number);
    link_newest(all, number);
    place(all, number)->p = *p;
    place(all, number)->dirty = dirty;
    return true;
}

bool weir__producers_learn_batch(struct weir__producers *all, const struct weir__batch_header *h,
                                 int64_t keep_ms)
{
    struct weir__producer p = {.id = h->producer.id,
                               .partition = h->partition,
                               .epoch = h->producer.epoch,
                               .next = h->producer.sequence + h->count,
                               .count = h->count,
                               .sequence = h->sequence,
                               .offset = h->position,
                               .time_ms = h->time_ms,
                               .used = weir__producer_minutes(keep_ms ? keep_ms : h->time_ms)};

    return h->producer.id == 0 || weir__producers_learn(all, &p, true);
}

void weir__producers_cut(struct weir__producers *all, uint64_t offset)
{
    uint32_t next;

    if (all->top < offset) return;
    for (uint32_t n = all->oldest; n; n = next) {
        next = place(all, n)->newer;
        if (place(all, n)->p.offset >= offset) drop(all, n);
    }
    all->top = offset;
}

uint32_t weir__producers_dirty(const struct weir__producers *all, uint32_t *out_count)
{
    uint32_t first = 0;

    *out_count = 0;
    for (uint32_t n = all->newest; n && place(all, n)->dirty; n = place(all, n)->older) {
        first = n;
        (*out_count)++;
    }
    return first;
}

void weir__producers_clean(struct weir__producers *all)
{
    for (uint32_t n = all->newest; n && place(all, n)->dirty; n = place(all, n)->older)
        place(all, n)->dirty = false;
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

void weir__producer_encode(const struct weir__producer *p, uint32_t minutes, uint8_t *to)
{
    uint32_t age = minutes > p->used ? minutes - p->used : 0;

    weir__store64(to, p->id);
    weir__store64(to + 8, p->sequence);
    weir__store64(to + 16, p->offset);
    weir__store64(to + 24, (uint64_t)p->time_ms);
    weir__store32(to + 32, p->partition);
    weir__store32(to + 36, p->next);
    weir__store32(to + 40, p->count);
    weir__store16(to + 44, p->epoch);
    weir__store16(to + 46, (uint16_t)(age < UINT16_MAX ? age : UINT16_MAX));
}

void weir__producer_decode(const uint8_t *from, uint32_t minutes, struct weir__producer *out)
{
    uint32_t age = weir__load16(from + 46);

    *out = (struct weir__producer){
        .id = weir__load64(from),
        .sequence = weir__load64(from + 8),
        .offset = weir__load64(from + 16),
        .time_ms = (int64_t)weir__load64(from + 24),
        .partition = (uint16_t)weir__load32(from + 32),
        .next = weir__load32(from + 36),
        .count = weir__load32(from + 40),
        .epoch = weir__load16(from + 44),
        .used = minutes > age ? minutes - age : 0,
    };
}
