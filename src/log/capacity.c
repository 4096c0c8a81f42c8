/* capacity.c - how large segments are, and what the disk may have to hold.
 *
 * Size follows use. A segment that was full makes the next one twice as large, or eight times when
 * it was full in no time, so that a flood does not stand still for small ones; one that was left
 * for its age makes the next as large as what it held. The smallest holds what one batch needs; the
 * largest is set by the options, and is at most an eighth of a limit in bytes: whole segments
 * expire, so this is how much more than the limit is kept. */
#include "log/state.h"

#define GROWTH 2u      /* of a full segment to the next */
#define GROWTH_FAST 8u /* the same, when it was full within FAST_MS */
#define FAST_MS 1000
#define PARTS_OF_LIMIT 8u
#define INDEX_PART 6u /* entries take at most this part of the smallest batches */
#define CHUNK_BYTES 40u
#define RELEASE_BYTES_MIN (16u << 10) /* less is not worth giving back, */
#define RELEASE_PART 16u              /* nor less than this part of a segment */
#define BLOCKS_LOST 2u /* at most: the end of the batches and of the index, rounded */

static uint64_t front_bytes(const struct weir__log *log)
{
    return weir__segment_front_bytes(weir__segment_heads_bytes(log->partitions));
}

static uint64_t round_to_power(uint64_t bytes, uint64_t least)
{
    uint64_t power = least;

    while (power < bytes) power *= 2;
    return power;
}

uint64_t weir__capacity_least(const struct weir__log *log, uint64_t batch_bytes)
{
    uint64_t index = weir__index_empty_bytes(log->partitions) + WEIR__INDEX_ENTRY_BYTES_MAX;

    return round_to_power(2 * front_bytes(log) + weir__round_up(index, WEIR__FS_BLOCK) +
                              weir__round_up(batch_bytes, WEIR__FS_BLOCK),
                          WEIR__SEGMENT_BYTES_MIN);
}

/* What use alone may make of a segment. */
static uint64_t capacity_limit(const struct weir__log *log)
{
    uint64_t cap = log->o.segment_bytes_max;

    while (log->o.retain_bytes && cap > WEIR__SEGMENT_BYTES_MIN &&
           cap > log->o.retain_bytes / PARTS_OF_LIMIT)
        cap /= 2;
    return cap;
}

uint64_t weir__capacity_most(const struct weir__log *log)
{
    uint64_t limit = capacity_limit(log);
    uint64_t least = weir__capacity_least(log, weir__batch_bytes(log->o.batch_bytes_max));

    return least > limit ? least : limit;
}

static uint64_t used_bytes(const struct weir__segment *seg)
{
    return 2 * weir__segment_front_bytes(seg->h.heads_bytes) +
           weir__round_up(weir__segment_stored(seg), WEIR__FS_BLOCK) +
           (seg->index ? weir__index_stored_bytes(seg->index) : 0);
}

static uint64_t follow(const struct weir__log *log, bool full, uint64_t batch_bytes)
{
    const struct weir__segment *seg = log->segments[log->segment_count - 1];
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    bool fast = log->filling_fast || mono_ms - log->active_mono_ms < FAST_MS;
    uint64_t used = used_bytes(seg);

    if (log->o.sabotage & WEIR__LOG_SIZE_BY_DOUBLING) return GROWTH * seg->h.capacity;
    if (!full) return round_to_power(used, log->o.segment_bytes_min);
    if (batch_bytes && used < seg->h.capacity / 2) return seg->h.capacity; /* it was too large */
    return (fast ? GROWTH_FAST : GROWTH) * seg->h.capacity;
}

uint64_t weir__capacity_next(const struct weir__log *log, bool full, uint64_t batch_bytes)
{
    uint64_t cap = log->segment_count ? follow(log, full, batch_bytes) : log->o.segment_bytes_min;
    uint64_t limit = capacity_limit(log), least = weir__capacity_least(log, batch_bytes);

    if (cap > limit) cap = limit;
    return cap < least ? least : cap;
}

static uint64_t grown(const struct weir__log *log, uint64_t times)
{
    uint64_t cap = times * log->segments[log->segment_count - 1]->h.capacity;
    uint64_t limit = capacity_limit(log), least = weir__capacity_least(log, 0);

    if (cap > limit) cap = limit;
    return cap < least ? least : cap;
}

uint64_t weir__capacity_enough(const struct weir__log *log)
{
    return grown(log, GROWTH);
}

bool weir__capacity_suits(const struct weir__log *log, uint64_t capacity)
{
    return capacity >= grown(log, GROWTH) && capacity <= grown(log, GROWTH_FAST);
}

bool weir__log_fits(const struct weir__log *log, uint32_t partition, uint64_t batch_bytes)
{
    const struct weir__segment *seg = log->segments[log->segment_count - 1];
    uint64_t waiting = log->queue_tail - log->queue_commit + 1;
    uint64_t index = weir__index_stored_bytes(seg->index) + waiting * WEIR__INDEX_ENTRY_BYTES_MAX;
    uint64_t limit = seg->h.base + seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes);
    uint64_t end = weir__round_up(log->tail.end + batch_bytes, WEIR__FS_BLOCK);

    if (log->must_roll) return false;
    if (partition >= seg->h.partitions) return false; /* made before there was such a partition */
    if (seg->h.version < WEIR__SEGMENT_VERSION) return false;
    if (seg->hole_len && end > seg->h.base + seg->hole_at)
        return false; /* it has to be had again */
    return end + weir__round_up(index, WEIR__FS_BLOCK) <= limit;
}

uint64_t weir__capacity_index_max(uint32_t partitions, uint64_t stored_bytes)
{
    return weir__round_up(weir__index_empty_bytes(partitions) + (uint64_t)partitions * CHUNK_BYTES +
                              stored_bytes / INDEX_PART,
                          WEIR__FS_BLOCK);
}

bool weir__capacity_worth(const struct weir__log *log, const struct weir__segment *seg,
                          uint64_t bytes)
{
    return bytes >= RELEASE_BYTES_MIN && bytes >= seg->h.capacity / RELEASE_PART &&
           !(log->o.sabotage & WEIR__LOG_SIZE_BY_DOUBLING);
}

/*   the limit
 * + the oldest segment, which goes only when those behind it reach the limit
 * + the active one and the spare, whose space is reserved
 * + per segment two copies of its header and heads, its index's fixed part, what rounding to blocks
 *   takes, and what is too little to be released
 * + entries of indexes, per batch
 *
 * No segment is made larger than weir__capacity_most; the oldest may be, from before the limit was
 * lowered. Where the file system cannot take space back, segments that were left before they were
 * full may hold more. */
uint64_t weir__log_disk_max(const struct weir__log *log)
{
    uint64_t fixed = weir__capacity_index_max(log->partitions, 0) +
                     BLOCKS_LOST * (uint64_t)WEIR__FS_BLOCK + RELEASE_BYTES_MIN;
    uint64_t most = log->o.retain_bytes + log->o.retain_bytes / INDEX_PART;
    uint64_t largest = weir__capacity_most(log), oldest = log->segments[0]->h.capacity;

    if (log->o.retain_bytes == 0) return 0;
    for (size_t i = 0; i < log->segment_count; i++)
        most += fixed + 2 * weir__segment_front_bytes(log->segments[i]->h.heads_bytes) +
                log->segments[i]->h.capacity / RELEASE_PART;
    return most + (oldest > largest ? oldest : largest) + 2 * largest;
}
