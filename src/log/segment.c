/* segment.c - a segment file:
 *
 *   0                header (one block of 4096)
 *   4096             heads, rounded up to blocks
 *   data             batches (batch.c), one behind another
 *                    ... whatever was here in an earlier life ...
 *                    index and its trailer (index.c), once sealed
 *   -front bytes     heads again, rounded up to blocks
 *   -4096            header again
 *
 * Header:
 *    0  u32  magic "WSEG"
 *    4  u32  CRC-32C of bytes 8..4095
 *    8  u32  format version, 2
 *   12  u32  partitions
 *   16  u64  hub id
 *   24  u64  segment number, from 1; 0: a spare, of which only capacity and secret count
 *   32  u64  base: log position of byte 0
 *   40  u64  capacity: bytes of the file
 *   48  u64  end of the batches of the segment before, a log position
 *   56  i64  newest enqueued time before this segment
 *   64  u32  epoch of the opening that made it
 *   68  u32  bytes of heads
 *   72  u32  CRC-32C of the heads
 *   76  u32  zero
 *   80  u64  the hub's secret (version 1: zero)
 *   88  i64  retention's clock when the segment was made (version 1: zero)
 *   96  i64  its other count: how long the machine had been off
 *  104  u64  the last append to the file of producers before it (producer_file.c), 0: none
 *  112       zeros
 *
 * Heads: per partition as in control.c, as they stood before the first batch here: with them
 * sequence numbers and times outlive the expiry of every batch that made them. In version 1
 * producers follow, as in producer.c; now they have a file of their own. */
#include "log/segment.h"

#include <stdlib.h>

#include "base/crc.h"
#include "log/blocks.h"

#define SEGMENT_MAGIC 0x47455357u
#define HEADER_BYTES WEIR__FS_BLOCK
#define NAME_DIGITS_MIN 8
#define NAME_DIGITS_MAX 19

bool weir__segment_named(const char *name, uint64_t *out_number)
{
    uint64_t n = 0;
    int i = 0;

    for (; i < NAME_DIGITS_MAX && name[i] >= '0' && name[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(name[i] - '0');
    *out_number = n;
    return i >= NAME_DIGITS_MIN && strcmp(name + i, ".seg") == 0;
}

uint64_t weir__segment_front_bytes(uint32_t heads_bytes)
{
    return HEADER_BYTES + weir__round_up(heads_bytes, WEIR__FS_BLOCK);
}

uint32_t weir__segment_heads_bytes(uint32_t partitions)
{
    return partitions * WEIR__HEAD_BYTES;
}

/* Into zeros. */
static void encode(const struct weir__segment_header *h, uint64_t hub_id, uint32_t heads_crc,
                   uint8_t *to)
{
    weir__store32(to, SEGMENT_MAGIC);
    weir__store32(to + 8, WEIR__SEGMENT_VERSION);
    weir__store32(to + 12, h->partitions);
    weir__store64(to + 16, hub_id);
    weir__store64(to + 24, h->number);
    weir__store64(to + 32, h->base);
    weir__store64(to + 40, h->capacity);
    weir__store64(to + 48, h->previous_end);
    weir__store64(to + 56, (uint64_t)h->time_ms);
    weir__store32(to + 64, h->epoch);
    weir__store32(to + 68, h->heads_bytes);
    weir__store32(to + 72, heads_crc);
    weir__store64(to + 80, h->secret);
    weir__store64(to + 88, (uint64_t)h->keep.keep_ms);
    weir__store64(to + 96, (uint64_t)h->keep.off_ms);
    weir__store64(to + 104, h->producers);
    weir__store32(to + 4, weir__crc32c(0, to + 8, HEADER_BYTES - 8));
}

int weir__segment_write_header(struct weir__file *f, const struct weir__segment_header *h,
                               uint64_t hub_id, const uint8_t *heads, struct weir_error *err)
{
    uint64_t front = weir__segment_front_bytes(h->heads_bytes);
    uint8_t *copy = aligned_alloc(WEIR__FS_BLOCK, front);
    struct weir__bytes parts[2];
    int rc;

    if (!copy) return weir__fail(err, WEIR_ENOMEM, "writing segment header: out of memory");
    memset(copy, 0, front);
    encode(h, hub_id, weir__crc32c(0, heads, h->heads_bytes), copy);
    memcpy(copy + HEADER_BYTES, heads, h->heads_bytes);
    parts[0] = weir__bytes_of(copy, front);
    rc = f->ops->write(f, parts, 1, 0, err);
    if (rc == 0) {
        parts[0] = weir__bytes_of(copy + HEADER_BYTES, front - HEADER_BYTES);
        parts[1] = weir__bytes_of(copy, HEADER_BYTES);
        rc = f->ops->write(f, parts, 2, h->capacity - front, err);
    }
    free(copy);
    return rc;
}

int weir__segment_mark_spare(struct weir__file *f, uint64_t capacity, uint64_t hub_id,
                             uint64_t secret, struct weir_error *err)
{
    struct weir__segment_header h = {.partitions = 1,
                                     .secret = secret,
                                     .base = WEIR__LOG_ORIGIN,
                                     .previous_end = WEIR__LOG_ORIGIN,
                                     .capacity = capacity,
                                     .heads_bytes = weir__segment_heads_bytes(1)};
    uint8_t *copy = aligned_alloc(WEIR__FS_BLOCK, HEADER_BYTES);
    struct weir__bytes part;
    int rc;

    if (!copy) return weir__fail(err, WEIR_ENOMEM, "marking a spare: out of memory");
    memset(copy, 0, HEADER_BYTES);
    encode(&h, hub_id, 0, copy);
    part = weir__bytes_of(copy, HEADER_BYTES);
    rc = f->ops->write(f, &part, 1, 0, err);
    if (rc == 0) rc = f->ops->write(f, &part, 1, capacity - HEADER_BYTES, err);
    if (rc == 0) rc = f->ops->sync(f, err);
    free(copy);
    return rc;
}

static uint32_t heads_bytes_max(uint32_t version, uint32_t partitions)
{
    uint32_t producers = version == 1 ? WEIR__PRODUCERS_OF_VERSION_1 : 0;

    return weir__segment_heads_bytes(partitions) + producers * WEIR__PRODUCER_BYTES;
}

/* 0 and *out, WEIR_ECORRUPT, or WEIR_EVERSION; says nothing about the heads. capacity: what it must
 * be, 0: whatever the header says. */
static int decode(const uint8_t *at, uint64_t hub_id, uint64_t capacity,
                  struct weir__segment_header *out, struct weir_error *err)
{
    uint32_t version = weir__load32(at + 8), partitions = weir__load32(at + 12);

    if (weir__load32(at) != SEGMENT_MAGIC ||
        weir__load32(at + 4) != weir__crc32c(0, at + 8, HEADER_BYTES - 8))
        return weir__fail(err, WEIR_ECORRUPT, "segment header is damaged");
    if (version != 1 && version != WEIR__SEGMENT_VERSION)
        return weir__fail(err, WEIR_EVERSION,
                          "segment format version %u is not known here (this weir writes %u)",
                          version, WEIR__SEGMENT_VERSION);
    *out = (struct weir__segment_header){
        .version = version,
        .partitions = partitions,
        .secret = version == 1 ? 0 : weir__load64(at + 80),
        .keep = {(int64_t)weir__load64(at + (version == 1 ? 56 : 88)),
                 version == 1 ? 0 : (int64_t)weir__load64(at + 96)},
        .number = weir__load64(at + 24),
        .base = weir__load64(at + 32),
        .capacity = weir__load64(at + 40),
        .previous_end = weir__load64(at + 48),
        .time_ms = (int64_t)weir__load64(at + 56),
        .epoch = weir__load32(at + 64),
        .heads_bytes = weir__load32(at + 68),
        .producers = version == 1 ? 0 : weir__load64(at + 104),
    };
    if (partitions == 0 || partitions > WEIR__LOG_PARTITIONS_MAX ||
        weir__load64(at + 16) != hub_id || (version > 1 && out->secret == 0) ||
        out->keep.keep_ms < 0 || out->keep.off_ms < 0 ||
        out->number > WEIR__LOG_SEGMENT_NUMBER_MAX || (capacity && out->capacity != capacity) ||
        out->capacity > WEIR__LOG_POSITION_MAX || out->capacity % WEIR__FS_BLOCK != 0 ||
        out->base < WEIR__LOG_ORIGIN || out->base > WEIR__LOG_POSITION_MAX ||
        out->base % WEIR__FS_BLOCK != 0 || out->previous_end > out->base || out->time_ms < 0 ||
        out->heads_bytes < weir__segment_heads_bytes(partitions) ||
        out->heads_bytes > heads_bytes_max(version, partitions) ||
        2 * weir__segment_front_bytes(out->heads_bytes) + WEIR__FS_BLOCK > out->capacity)
        return weir__fail(err, WEIR_ECORRUPT,
                          "segment header is of another log, or contradicts "
                          "its file");
    return 0;
}

/* Whether both copies, though damaged, name the same version that is not known here: then a newer
 * weir made the file, and what it wrote is not ours to judge. */
static uint32_t foreign_version(const uint8_t *block)
{
    uint32_t version = weir__load32(block + 8);

    if (weir__load32(block) != SEGMENT_MAGIC || version <= WEIR__SEGMENT_VERSION) return 0;
    return version;
}

static int read_block(struct weir__file *f, uint8_t *block, uint64_t at, struct weir_error *err)
{
    struct weir__bad_blocks bad = {0};
    size_t got = 0;
    int rc = weir__blocks_read(f, block, HEADER_BYTES, at, &got, &bad, err);

    if (rc == 0) memset(block + got, 0, HEADER_BYTES - got);
    return rc;
}

int weir__segment_read_header(struct weir__file *f, uint64_t hub_id,
                              struct weir__segment_header *out, int *out_bad_copies,
                              struct weir_error *err)
{
    uint8_t *block = aligned_alloc(WEIR__FS_BLOCK, HEADER_BYTES);
    uint32_t foreign[2] = {0, 0};
    uint64_t bytes = 0;
    int rc;

    *out_bad_copies = 0;
    if (!block) return weir__fail(err, WEIR_ENOMEM, "reading segment header: out of memory");
    rc = f->ops->size(f, &bytes, err);
    if (rc == 0 && bytes < HEADER_BYTES)
        rc = weir__fail(err, WEIR_ECORRUPT, "segment file is only %llu bytes long",
                        (unsigned long long)bytes);
    for (int copy = 0; rc == 0 && copy < 2; copy++) {
        rc = read_block(f, block, copy ? weir__round_down(bytes, WEIR__FS_BLOCK) - HEADER_BYTES : 0,
                        err);
        if (rc == 0) rc = decode(block, hub_id, copy ? bytes : 0, out, err);
        if (rc != WEIR_ECORRUPT) break;
        foreign[copy] = foreign_version(block);
        (*out_bad_copies)++;
        if (copy == 0) rc = 0;
    }
    free(block);
    if (rc == WEIR_ECORRUPT && foreign[0] && foreign[0] == foreign[1])
        return weir__fail(err, WEIR_EVERSION,
                          "segment format version %u is not known here (this weir writes %u)",
                          foreign[0], WEIR__SEGMENT_VERSION);
    return rc;
}

static int decode_heads(const uint8_t *at, const struct weir__segment_header *h,
                        uint32_t partitions, struct weir__head *out,
                        struct weir__producers *producers, struct weir_error *err)
{
    uint32_t known = h->partitions < partitions ? h->partitions : partitions;
    uint32_t count = (h->heads_bytes - h->partitions * WEIR__HEAD_BYTES) / WEIR__PRODUCER_BYTES;
    const uint8_t *from = at + (size_t)h->partitions * WEIR__HEAD_BYTES;

    weir__heads_decode(at, known, out);
    for (uint32_t i = 0; i < known; i++)
        if (out[i].next_sequence > WEIR__LOG_SEQUENCE_MAX || out[i].last_time_ms < 0)
            return weir__fail(err, WEIR_ECORRUPT, "heads of segment %llu contradict themselves",
                              (unsigned long long)h->number);
    memset(out + known, 0, (partitions - known) * sizeof *out);
    for (uint32_t i = 0; producers && i < count; i++, from += WEIR__PRODUCER_BYTES) {
        struct weir__producer one;

        weir__producer_decode(from, 0, &one);
        one.used = weir__producer_minutes(one.time_ms);
        if (!weir__producers_learn(producers, &one, true))
            return weir__fail(err, WEIR_ENOMEM, "reading producers: out of memory");
    }
    return 0;
}

/* Reads one copy of header and heads; *out_heads points into `at`, which holds both. */
static int read_copy(struct weir__file *f, const struct weir__segment_header *h, int copy,
                     uint8_t *at, const uint8_t **out_heads, struct weir_error *err)
{
    uint64_t front = weir__segment_front_bytes(h->heads_bytes);
    const uint8_t *header = copy ? at + front - HEADER_BYTES : at;
    struct weir__segment_header again = {0};
    struct weir__bad_blocks bad = {0};
    size_t got;
    int rc = weir__blocks_read(f, at, front, copy ? h->capacity - front : 0, &got, &bad, err);

    if (rc != 0) return rc;
    memset(at + got, 0, front - got);
    *out_heads = copy ? at : at + HEADER_BYTES;
    rc = decode(header, weir__load64(header + 16), h->capacity, &again, err);
    if (rc == 0 && again.number == h->number && again.heads_bytes == h->heads_bytes &&
        weir__load32(header + 72) == weir__crc32c(0, *out_heads, h->heads_bytes))
        return 0;
    return weir__fail(err, WEIR_ECORRUPT, "heads of segment %llu are damaged",
                      (unsigned long long)h->number);
}

int weir__segment_read_heads(struct weir__file *f, const struct weir__segment_header *h,
                             uint32_t partitions, struct weir__head *out,
                             struct weir__producers *producers, struct weir_error *err)
{
    uint8_t *at = aligned_alloc(WEIR__FS_BLOCK, weir__segment_front_bytes(h->heads_bytes));
    const uint8_t *heads;
    int rc = WEIR_ECORRUPT;

    if (!at) return weir__fail(err, WEIR_ENOMEM, "reading segment heads: out of memory");
    for (int copy = 0; rc == WEIR_ECORRUPT && copy < 2; copy++)
        rc = read_copy(f, h, copy, at, &heads, err);
    if (rc == 0) rc = decode_heads(heads, h, partitions, out, producers, err);
    free(at);
    return rc;
}

int weir__segment_check_copies(struct weir__file *f, const struct weir__segment_header *h,
                               int *out_bad, struct weir_error *err)
{
    uint8_t *at = aligned_alloc(WEIR__FS_BLOCK, weir__segment_front_bytes(h->heads_bytes));
    const uint8_t *heads;
    int rc = 0;

    *out_bad = 0;
    if (!at) return weir__fail(err, WEIR_ENOMEM, "reading segment heads: out of memory");
    for (int copy = 0; rc == 0 && copy < 2; copy++) {
        rc = read_copy(f, h, copy, at, &heads, err);
        if (rc != WEIR_ECORRUPT) continue;
        (*out_bad)++;
        rc = 0;
    }
    free(at);
    return rc;
}
