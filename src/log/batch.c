/* batch.c - the header of a batch, little-endian, at a multiple of 8:
 *
 *    0  u32  magic: the low half of the hub's secret; "WBAT" in segments of format version 1
 *    4  u32  checksum: CRC-32C of the hub's id, the hub's secret (not in version 1) and bytes 8..79
 *    8  u64  log position of byte 0
 *   16  u64  watermark: every position below it was on disk when this was taken in
 *   24  u32  epoch: number of the opening of the log that wrote it; never decreases along the log
 *   28  u32  bytes of the body
 *   32  u32  CRC-32C of the body
 *   36  u16  partition
 *   38  u16  attributes, the hub's own
 *   40  u32  events in the body
 *   44  u16  producer epoch
 *   46  u16  the batch before this one: its events; 65535: that many or more
 *   48  u64  sequence number of the first event
 *   56  i64  enqueued time of all its events, Unix milliseconds
 *   64  u64  producer id, 0: none
 *   72  u32  producer sequence number of the first event
 *   76  u32  the batch before: 10 bits its partition, 22 bits its bytes / 8; 0: not told here
 *   80       body, then zeros up to a multiple of 8
 *
 * Position, hub and epoch are under the checksum, so bytes of another place, of another hub, or
 * left behind by an earlier life of the segment can never pass for this batch. The secret is random,
 * never leaves the folder and differs from hub to hub, so bytes that a sender chose cannot pass for
 * it either: a recovery that searches a segment believes only what the hub wrote. The batch before is
 * told so that, when its header goes bad, it is known whose events are gone and how many. It is not
 * told across segments and openings, where other records know as much. */
#include "log/batch.h"

#include <assert.h>

#include "base/crc.h"

#define MAGIC_VERSION_1 0x54414257u
#define PARTITION_BITS 10
#define COUNT_MANY 65535u

static_assert(WEIR__LOG_PARTITIONS_MAX <= 1u << PARTITION_BITS, "a partition fits");
static_assert((WEIR__LOG_BATCH_BYTES_MAX + 2 * WEIR__BATCH_HEADER_BYTES) / WEIR__BATCH_ALIGN <
                  1u << (32 - PARTITION_BITS),
              "the size of a batch fits");

struct weir__batch_stamp weir__batch_stamp(uint64_t hub_id, uint64_t secret)
{
    uint32_t seed = weir__crc32c(0, &hub_id, sizeof hub_id);

    if (secret == 0) return (struct weir__batch_stamp){MAGIC_VERSION_1, seed};
    return (struct weir__batch_stamp){(uint32_t)secret, weir__crc32c(seed, &secret, sizeof secret)};
}

static uint32_t header_crc(const uint8_t *at, const struct weir__batch_stamp *stamp)
{
    return weir__crc32c(stamp->seed, at + 8, WEIR__BATCH_HEADER_BYTES - 8);
}

void weir__batch_encode(const struct weir__batch_header *h, const struct weir__batch_stamp *stamp,
                        uint8_t *to)
{
    weir__store32(to, stamp->magic);
    weir__store64(to + 8, h->position);
    weir__store64(to + 16, h->watermark);
    weir__store32(to + 24, h->epoch);
    weir__store32(to + 28, h->body_bytes);
    weir__store32(to + 32, h->body_crc);
    weir__store16(to + 36, h->partition);
    weir__store16(to + 38, h->attrs);
    weir__store32(to + 40, h->count);
    weir__store16(to + 44, h->producer.epoch);
    weir__store16(to + 46, (uint16_t)(h->before.count < COUNT_MANY ? h->before.count : COUNT_MANY));
    weir__store64(to + 48, h->sequence);
    weir__store64(to + 56, (uint64_t)h->time_ms);
    weir__store64(to + 64, h->producer.id);
    weir__store32(to + 72, h->producer.sequence);
    weir__store32(to + 76,
                  h->before.bytes / WEIR__BATCH_ALIGN << PARTITION_BITS | h->before.partition);
    weir__store32(to + 4, header_crc(to, stamp));
}

static struct weir__batch_before decode_before(const uint8_t *from)
{
    uint32_t packed = weir__load32(from + 76), count = weir__load16(from + 46);
    struct weir__batch_before b = {.partition = packed & ((1u << PARTITION_BITS) - 1),
                                   .bytes = (packed >> PARTITION_BITS) * WEIR__BATCH_ALIGN};

    b.count = count < COUNT_MANY ? count : b.bytes;
    return b;
}

bool weir__batch_decode(const uint8_t *from, const struct weir__batch_stamp *stamp,
                        struct weir__batch_header *out)
{
    if (weir__load32(from) != stamp->magic) return false;
    if (weir__load32(from + 4) != header_crc(from, stamp)) return false;
    *out = (struct weir__batch_header){
        .position = weir__load64(from + 8),
        .watermark = weir__load64(from + 16),
        .epoch = weir__load32(from + 24),
        .body_bytes = weir__load32(from + 28),
        .body_crc = weir__load32(from + 32),
        .partition = weir__load16(from + 36),
        .attrs = weir__load16(from + 38),
        .count = weir__load32(from + 40),
        .sequence = weir__load64(from + 48),
        .time_ms = (int64_t)weir__load64(from + 56),
        .producer = {.id = weir__load64(from + 64),
                     .epoch = weir__load16(from + 44),
                     .sequence = weir__load32(from + 72)},
        .before = decode_before(from),
    };
    return out->count > 0 && out->count <= out->body_bytes &&
           out->body_bytes <= WEIR__LOG_BATCH_BYTES_MAX && out->watermark <= out->position &&
           out->time_ms >= 0 && out->sequence < WEIR__LOG_SEQUENCE_MAX;
}

bool weir__batch_begins(const uint8_t *from, const struct weir__batch_stamp *stamp,
                        uint64_t position)
{
    return weir__load32(from) == stamp->magic && weir__load64(from + 8) == position;
}
