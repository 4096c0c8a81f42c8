/* annotations.h - what a hub has written into a message that it delivers: where the event lies, and
 * its key. */
#ifndef WEIR_CLIENT_ANNOTATIONS_H
#define WEIR_CLIENT_ANNOTATIONS_H

#include "amqp/codec.h"
#include "amqp/dialect.h"

struct weir__annotations {
    uint64_t sequence, offset;
    int64_t time_ms;
    struct weir__bytes key; /* at is NULL: none */
    bool has_sequence;
};

/* Reads so many items of a map, keys and values counted. What is not there, or has another type than
 * belongs there, stays as it was; what cannot be read ends the reading. */
void weir__annotations_read(struct weir__annotations *, struct weir__bytes items, uint32_t count);

/* The same for a whole message, of which only the sections up to the annotations are looked at. */
void weir__annotations_find(struct weir__annotations *, struct weir__bytes message);

/* ---- the stamp: the three in the order and the forms that our own hub writes them ----
 *
 * Before it stands the epoch of geo-replication, which is always the same; hubs of older versions do
 * not write it. */

#define WEIR__STAMP_ITEMS 6
#define WEIR__STAMP_BYTES 94
#define WEIR__STAMP_EPOCH "\xa3\x1b" WEIR__EH_SEQUENCE_EPOCH "\x54\xff"
#define WEIR__STAMP_EPOCH_BYTES (sizeof WEIR__STAMP_EPOCH - 1)
#define WEIR__STAMP_SEQUENCE "\xa3\x15" WEIR__EH_SEQUENCE "\x81"
#define WEIR__STAMP_TIME "\xa3\x13" WEIR__EH_TIME "\x83"
#define WEIR__STAMP_OFFSET "\xa3\x0c" WEIR__EH_OFFSET "\xa1\x10"
#define WEIR__STAMP_TIME_AT (sizeof WEIR__STAMP_SEQUENCE - 1 + 8)
#define WEIR__STAMP_OFFSET_AT (WEIR__STAMP_TIME_AT + sizeof WEIR__STAMP_TIME - 1 + 8)
#define WEIR__STAMP_DIGITS_AT (WEIR__STAMP_OFFSET_AT + sizeof WEIR__STAMP_OFFSET - 1)

_Static_assert(WEIR__STAMP_DIGITS_AT + 16 == WEIR__STAMP_BYTES, "an offset of 16 digits");

#define WEIR__STAMP_HAS(at, text) (memcmp(at, text, sizeof text - 1) == 0)

/* Eight decimal digits, as they stand in memory: neighbours are put together, then the pairs, then
 * the fours, all at once. false: they are not all digits. */
static inline bool weir__eight_digits(const uint8_t *at, uint64_t *out)
{
    uint64_t v = weir__load64(at);

    if ((v & (v + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) != 0x3030303030303030) return false;
    v = (v & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    v = (v & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    *out = (v & 0x0000ffff0000ffff) * 42949672960001 >> 32;
    return true;
}

/* Takes the epoch off the front of so many items, when it is there in its usual form. */
static inline bool weir__stamp_pass_epoch(struct weir__bytes *items, uint32_t *count)
{
    if (*count < 2 || items->len < WEIR__STAMP_EPOCH_BYTES ||
        !WEIR__STAMP_HAS(items->at, WEIR__STAMP_EPOCH))
        return false;
    items->at += WEIR__STAMP_EPOCH_BYTES;
    items->len -= WEIR__STAMP_EPOCH_BYTES;
    *count -= 2;
    return true;
}

/* Reads the stamp at p, where WEIR__STAMP_BYTES are. false: it is something else. Here, so that what
 * is read stays in registers: nearly every event that is received comes this way. */
static inline bool weir__stamp_read(const uint8_t *p, uint64_t *sequence, int64_t *time_ms,
                                    uint64_t *offset)
{
    uint64_t high, low;

    if (!WEIR__STAMP_HAS(p, WEIR__STAMP_SEQUENCE) ||
        !WEIR__STAMP_HAS(p + WEIR__STAMP_TIME_AT, WEIR__STAMP_TIME) ||
        !WEIR__STAMP_HAS(p + WEIR__STAMP_OFFSET_AT, WEIR__STAMP_OFFSET) ||
        !weir__eight_digits(p + WEIR__STAMP_DIGITS_AT, &high) ||
        !weir__eight_digits(p + WEIR__STAMP_DIGITS_AT + 8, &low))
        return false;
    *sequence = weir__load_be64(p + sizeof WEIR__STAMP_SEQUENCE - 1);
    *time_ms = (int64_t)weir__load_be64(p + WEIR__STAMP_TIME_AT + sizeof WEIR__STAMP_TIME - 1);
    *offset = high * 100000000 + low;
    return true;
}

#endif
