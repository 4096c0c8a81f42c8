/* batch.h - the header in front of every stored batch. The bytes are drawn in batch.c. */
#ifndef WEIR_LOG_BATCH_H
#define WEIR_LOG_BATCH_H

#include <stdbool.h>

#include "log/log.h"

#define WEIR__BATCH_HEADER_BYTES 80u
#define WEIR__BATCH_ALIGN 8u

/* The neighbour in front, in the same segment. */
struct weir__batch_before {
    uint32_t partition;
    uint32_t bytes; /* in the log; 0: nothing is told */
    uint32_t count; /* of its events, or more when they are very many */
};

struct weir__batch_header {
    uint64_t position;
    uint64_t watermark; /* everything before it was on disk when this batch was taken in */
    uint64_t sequence;
    int64_t time_ms;
    struct weir__log_producer producer;
    uint32_t epoch;
    uint32_t body_bytes;
    uint32_t body_crc;
    uint32_t count;
    uint16_t partition;
    uint16_t attrs;
    struct weir__batch_before before;
};

/* What marks a header as written by this hub. Since format version 2 both parts come from the hub's
 * secret, so a sender who puts the bytes of a header into an event would have to guess 64 bits. */
struct weir__batch_stamp {
    uint32_t magic;
    uint32_t seed; /* of the checksum */
};

/* secret 0: of format version 1, which had none. */
struct weir__batch_stamp weir__batch_stamp(uint64_t hub_id, uint64_t secret);

void weir__batch_encode(const struct weir__batch_header *, const struct weir__batch_stamp *,
                        uint8_t *to);

/* False when these 80 bytes are not a header with this stamp. Checks the header alone. */
bool weir__batch_decode(const uint8_t *from, const struct weir__batch_stamp *,
                        struct weir__batch_header *out);

/* Bytes in the log of a batch with this body. */
static inline uint64_t weir__batch_bytes(uint32_t body_bytes)
{
    return weir__round_up(WEIR__BATCH_HEADER_BYTES + (uint64_t)body_bytes, WEIR__BATCH_ALIGN);
}

/* A quick look before the whole check: could a batch of this position begin here? */
bool weir__batch_begins(const uint8_t *from, const struct weir__batch_stamp *, uint64_t position);

#endif
