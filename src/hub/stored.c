/* stored.c - the head in front of a batch on a wire, little-endian:
 *
 *    0  u32  CRC-32C of the head from byte 4 on
 *    4  u16  bytes of the head: 48, or 80 with the facts of the partition
 *    6  u16  attributes of the body, as batch.c has them
 *    8  u32  CRC-32C of the body
 *   12  u32  bytes of the body
 *   16  u32  events in the body
 *   20  u32  events at its beginning that were not asked for
 *   24  u64  sequence number of the first event
 *   32  u64  offset of the first event
 *   40  i64  enqueued time of all its events, Unix milliseconds
 *   48  i64  of the partition: last sequence number
 *   56  i64  last offset
 *   64  i64  last enqueued time
 *   72  i64  when that was so, by the server's clock
 *
 * The body's checksum is the log's own, so it covers the way from the publisher to the reader. */
#include "hub/stored.h"

#include "base/crc.h"
#include "hub/batch.h"

#define EVENT_BYTES_MIN 5u /* a data section around an empty message */

bool weir__stored_can(const struct weir__log_view *view)
{
    return (view->attrs & ~WEIR__BATCH_ATTRS) == 0;
}

static void put_facts(uint8_t *to, const struct weir__stored_facts *f)
{
    weir__store64(to, (uint64_t)f->last_sequence);
    weir__store64(to + 8, (uint64_t)f->last_offset);
    weir__store64(to + 16, (uint64_t)f->last_time_ms);
    weir__store64(to + 24, (uint64_t)f->known_ms);
}

size_t weir__stored_head(uint8_t *to, const struct weir__log_view *view,
                         const struct weir__stored_facts *facts)
{
    size_t bytes = WEIR__STORED_HEAD_BYTES + (facts ? WEIR__STORED_FACTS_BYTES : 0);

    weir__store16(to + 4, (uint16_t)bytes);
    weir__store16(to + 6, view->attrs);
    weir__store32(to + 8, view->body_crc);
    weir__store32(to + 12, (uint32_t)view->body.len);
    weir__store32(to + 16, view->count);
    weir__store32(to + 20, view->skip);
    weir__store64(to + 24, view->sequence);
    weir__store64(to + 32, view->offset);
    weir__store64(to + 40, (uint64_t)view->time_ms);
    if (facts) put_facts(to + WEIR__STORED_HEAD_BYTES, facts);
    weir__store32(to, weir__crc32c(0, to + 4, bytes - 4));
    return bytes;
}

static int fail_batch(const char *why, struct weir_error *err)
{
    return weir__fail(err, WEIR_ECORRUPT, "a stored batch %s", why);
}

/* Lengths and counts that fit each other, and numbers that a log can have. */
static bool is_sound(const uint8_t *p, size_t head, size_t len)
{
    size_t body = weir__load32(p + 12);
    uint32_t count = weir__load32(p + 16), skip = weir__load32(p + 20);

    return body == len - head && count <= body / EVENT_BYTES_MIN && skip < count &&
           weir__load64(p + 24) < WEIR__LOG_SEQUENCE_MAX && weir__load64(p + 32) <= INT64_MAX &&
           weir__load64(p + 40) <= INT64_MAX;
}

int weir__stored_check(struct weir__bytes payload, struct weir_error *err)
{
    const uint8_t *p = payload.at;
    size_t head;

    if (payload.len < WEIR__STORED_HEAD_BYTES) return fail_batch("ends inside its head", err);
    head = weir__load16(p + 4);
    if (head != WEIR__STORED_HEAD_BYTES &&
        head != WEIR__STORED_HEAD_BYTES + WEIR__STORED_FACTS_BYTES)
        return fail_batch("has a head of unknown length", err);
    if (head > payload.len) return fail_batch("ends inside its head", err);
    if (weir__crc32c(0, p + 4, head - 4) != weir__load32(p))
        return fail_batch("has a head that fails its checksum", err);
    if (weir__load16(p + 6) & ~WEIR__BATCH_ATTRS)
        return weir__fail(err, WEIR_EVERSION, "a stored batch has unknown attributes 0x%x",
                          weir__load16(p + 6));
    if (!is_sound(p, head, payload.len)) return fail_batch("contradicts itself", err);
    if (weir__crc32c(0, p + head, payload.len - head) != weir__load32(p + 8))
        return fail_batch("has a body that fails its checksum", err);
    return 0;
}

void weir__stored_view(struct weir__bytes payload, struct weir__log_view *out)
{
    const uint8_t *p = payload.at;
    size_t head = weir__load16(p + 4);

    *out = (struct weir__log_view){
        .offset = weir__load64(p + 32),
        .sequence = weir__load64(p + 24),
        .time_ms = (int64_t)weir__load64(p + 40),
        .count = weir__load32(p + 16),
        .skip = weir__load32(p + 20),
        .attrs = weir__load16(p + 6),
        .body_crc = weir__load32(p + 8),
        .body = weir__bytes_of(p + head, payload.len - head),
    };
}

struct weir__stored_facts weir__stored_facts(struct weir__bytes payload)
{
    const uint8_t *p = payload.at + WEIR__STORED_HEAD_BYTES;

    if (weir__load16(payload.at + 4) == WEIR__STORED_HEAD_BYTES)
        return (struct weir__stored_facts){0};
    return (struct weir__stored_facts){
        .last_sequence = (int64_t)weir__load64(p),
        .last_offset = (int64_t)weir__load64(p + 8),
        .last_time_ms = (int64_t)weir__load64(p + 16),
        .known_ms = (int64_t)weir__load64(p + 24),
    };
}
