/* control.c - the control file: two copies. A change goes over the older one, is synced, and then
 * over the other: at any moment one is whole, and afterwards either can be lost.
 *
 *    0  u32  magic "WCTL"
 *    4  u32  CRC-32C of everything behind it in the copy
 *    8  u32  format version, 1
 *   12  u32  partitions
 *   16  u64  hub id
 *   24  u64  generation; the copy is generation % 2
 *   32  u64  number of the oldest segment kept
 *   40  u64  number of the segment being appended to
 *   48  u64  watermark
 *   56  u64  position from which on batches carry this epoch
 *   64  u32  epoch
 *   68  u32  zero
 *   72  i64  retention's clock, Unix milliseconds
 *   80       per partition: u64 next sequence, u64 last offset, i64 last time: as at the watermark
 *
 * A copy takes a multiple of 4096 bytes; the second begins where the first ends. The heads are here
 * so that a damaged tail cannot hide which events were lost with it. */
#include "log/control.h"

#include <stdlib.h>

#include "base/crc.h"
#include "log/log.h"

#define CONTROL_MAGIC 0x4c544357u
#define CONTROL_VERSION 1u
#define CONTROL_FIXED_BYTES 80u
#define KEEP_MS_MAX (INT64_C(1) << 53) /* far from where adding to it overflows */

void weir__heads_encode(const struct weir__head *heads, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++, to += WEIR__HEAD_BYTES) {
        weir__store64(to, heads[i].next_sequence);
        weir__store64(to + 8, heads[i].last_offset);
        weir__store64(to + 16, (uint64_t)heads[i].last_time_ms);
    }
}

void weir__heads_decode(const uint8_t *from, uint32_t count, struct weir__head *out)
{
    for (uint32_t i = 0; i < count; i++, from += WEIR__HEAD_BYTES) {
        out[i].next_sequence = weir__load64(from);
        out[i].last_offset = weir__load64(from + 8);
        out[i].last_time_ms = (int64_t)weir__load64(from + 16);
    }
}

static size_t copy_bytes(uint32_t partitions)
{
    return weir__round_up(CONTROL_FIXED_BYTES + (uint64_t)partitions * WEIR__HEAD_BYTES,
                          WEIR__FS_BLOCK);
}

static void encode(const struct weir__control *c, uint8_t *to, size_t len)
{
    memset(to, 0, len);
    weir__store32(to, CONTROL_MAGIC);
    weir__store32(to + 8, CONTROL_VERSION);
    weir__store32(to + 12, c->partitions);
    weir__store64(to + 16, c->hub_id);
    weir__store64(to + 24, c->generation);
    weir__store64(to + 32, c->first_segment);
    weir__store64(to + 40, c->last_segment);
    weir__store64(to + 48, c->watermark);
    weir__store64(to + 56, c->epoch_start);
    weir__store32(to + 64, c->epoch);
    weir__store64(to + 72, (uint64_t)c->keep_ms);
    weir__heads_encode(c->heads, c->partitions, to + CONTROL_FIXED_BYTES);
    weir__store32(to + 4, weir__crc32c(0, to + 8, len - 8));
}

enum copy_state { COPY_BAD, COPY_GOOD, COPY_OTHER_VERSION };

static enum copy_state look(const uint8_t *at, size_t len)
{
    if (weir__load32(at) != CONTROL_MAGIC) return COPY_BAD;
    if (weir__load32(at + 4) != weir__crc32c(0, at + 8, len - 8)) return COPY_BAD;
    return weir__load32(at + 8) == CONTROL_VERSION ? COPY_GOOD : COPY_OTHER_VERSION;
}

static int decode(const uint8_t *at, struct weir__control *c, struct weir_error *err)
{
    if (weir__load32(at + 12) != c->partitions)
        return weir__fail(err, WEIR_EINVAL, "control file is of %u partitions, not %u",
                          weir__load32(at + 12), c->partitions);
    if (weir__load64(at + 16) != c->hub_id)
        return weir__fail(err, WEIR_EINVAL, "control file is of another hub");
    c->generation = weir__load64(at + 24);
    c->first_segment = weir__load64(at + 32);
    c->last_segment = weir__load64(at + 40);
    c->watermark = weir__load64(at + 48);
    c->epoch_start = weir__load64(at + 56);
    c->epoch = weir__load32(at + 64);
    c->keep_ms = (int64_t)weir__load64(at + 72);
    weir__heads_decode(at + CONTROL_FIXED_BYTES, c->partitions, c->heads);
    if (c->first_segment == 0 || c->first_segment > c->last_segment ||
        c->watermark < WEIR__LOG_ORIGIN || c->epoch == UINT32_MAX || c->keep_ms < 0 ||
        c->keep_ms > KEEP_MS_MAX)
        return weir__fail(err, WEIR_ECORRUPT, "control file contradicts itself");
    return 0;
}

int weir__control_read(struct weir__file *f, struct weir__control *c, int *out_bad_copies,
                       struct weir_error *err)
{
    size_t len = copy_bytes(c->partitions), got = 0;
    uint8_t *both = calloc(2, len);
    enum copy_state a, b;
    int rc;

    if (!both) return weir__fail(err, WEIR_ENOMEM, "reading control file: out of memory");
    for (size_t copy = 0; copy < 2; copy++) { /* one at a time: a bad sector costs one of them */
        rc = f->ops->read(f, both + copy * len, len, copy * len, &got, err);
        if (rc != 0 && rc != WEIR_EIO) goto out;
    }
    a = look(both, len);
    b = look(both + len, len);
    *out_bad_copies = (a == COPY_BAD) + (b == COPY_BAD);
    if (a == COPY_OTHER_VERSION || b == COPY_OTHER_VERSION) {
        uint32_t version = weir__load32((a == COPY_OTHER_VERSION ? both : both + len) + 8);
        rc = weir__fail(err, WEIR_EVERSION,
                        "log format version %u is not known here (this weir writes %u)", version,
                        CONTROL_VERSION);
    } else if (a == COPY_BAD && b == COPY_BAD) {
        rc = weir__fail(err, WEIR_ECORRUPT, "both copies in the control file are damaged");
    } else if (b == COPY_BAD ||
               (a == COPY_GOOD && weir__load64(both + 24) > weir__load64(both + len + 24))) {
        rc = decode(both, c, err);
    } else {
        rc = decode(both + len, c, err);
    }
out:
    free(both);
    return rc;
}

int weir__control_write(struct weir__file *f, struct weir__control *c, bool sync,
                        struct weir_error *err)
{
    size_t len = copy_bytes(c->partitions);
    uint8_t *copy = malloc(len);
    struct weir__bytes part;
    int rc;

    if (!copy) return weir__fail(err, WEIR_ENOMEM, "writing control file: out of memory");
    c->generation++;
    encode(c, copy, len);
    part = weir__bytes_of(copy, len);
    rc = f->ops->write(f, &part, 1, (c->generation % 2) * len, err);
    if (rc == 0 && sync) rc = f->ops->sync(f, err);
    if (rc != 0) c->generation--;
    free(copy);
    return rc == 0 ? 0 : weir__wrap(err, rc, "writing control file");
}
