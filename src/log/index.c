/* index.c - the index of one segment, stored behind its batches:
 *
 *   chunks    per partition that has batches: its chunk headers in a row, then its entries' bytes
 *   folder    per partition 16 bytes: u64 file offset of its chunk headers, u32 how many,
 *             u32 CRC-32C of the stamp, the partition and these 12 bytes
 *   trailer   the last 4096 bytes: u32 magic "WIDX", u32 CRC-32C of bytes 8..47,
 *             u64 segment number, u64 file offset of the folder, u32 partitions, u32 zero,
 *             u64 bytes in all, u64 log position behind the last batch; zeros
 *
 * The stamp is segment number and position, and the checksums of trailer, folder and chunk headers
 * start from the seed of the hub's batches: no part of an index that an earlier attempt to seal the
 * segment left here, and no bytes that a sender chose, can pass for this one's.
 *
 * Chunk header, 40 bytes:
 *    0  u64 position of its first batch     8  u64 sequence of it      16  i64 time of it
 *   24  u32 where its entries begin behind the partition's chunk headers
 *   28  u16 entries      30  u16 bytes of them
 *   32  u32 CRC-32C of the entries' bytes  36  u32 CRC-32C of the stamp and bytes 0..35
 *
 * Entry, four varints: gap to the end of the batch before in units of 8 bytes, bytes of its body,
 * its events, milliseconds since the batch before. The first of a chunk has gap 0 and time 0. */
#include "log/index.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/crc.h"
#include "log/batch.h"

#define INDEX_MAGIC 0x58444957u
#define CHUNK_HEADER_BYTES 40u
#define FOLDER_ENTRY_BYTES 16u
#define TRAILER_BYTES WEIR__FS_BLOCK
#define TRAILER_USED_BYTES 48u
#define ENTRY_BYTES_MAX 30u /* four varints: of at most 10, 5, 5 and 10 bytes */
#define CHUNK_BYTES_MAX (WEIR__INDEX_CHUNK * ENTRY_BYTES_MAX)
#define PARTITION_BYTES_MAX (256u << 20)

struct chunk {
    uint64_t position, sequence;
    int64_t time_ms;
    uint32_t bytes_at; /* in the partition's bytes */
    uint16_t count, bytes;
};

struct part {
    struct chunk *chunks;
    uint32_t count, cap;
    uint32_t reserved; /* batches that will be added and have their room */
    struct weir__buf bytes;
    uint64_t end;         /* position behind the last batch */
    uint64_t next;        /* sequence behind it */
    int64_t last_time_ms; /* of the last batch */
};

struct weir__index {
    uint32_t partitions;
    uint64_t bytes; /* chunk headers and entries of all */
    struct part parts[];
};

struct weir__index *weir__index_new(uint32_t partitions)
{
    struct weir__index *x = calloc(1, sizeof *x + partitions * sizeof x->parts[0]);

    if (!x) return NULL;
    x->partitions = partitions;
    for (uint32_t i = 0; i < partitions; i++)
        weir__buf_init(&x->parts[i].bytes, PARTITION_BYTES_MAX);
    return x;
}

void weir__index_free(struct weir__index *x)
{
    if (!x) return;
    for (uint32_t i = 0; i < x->partitions; i++) {
        free(x->parts[i].chunks);
        weir__buf_fini(&x->parts[i].bytes);
    }
    free(x);
}

static size_t put_varint(uint8_t *to, uint64_t v)
{
    size_t n = 0;

    while (v >= 0x80) {
        to[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    to[n++] = (uint8_t)v;
    return n;
}

static bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t b = *(*at)++;

        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static struct chunk *grow_chunks(struct part *p)
{
    uint32_t cap = p->cap ? p->cap * 2 : 4;
    struct chunk *chunks = realloc(p->chunks, cap * sizeof *chunks);

    if (!chunks) return NULL;
    p->chunks = chunks;
    p->cap = cap;
    return chunks;
}

bool weir__index_reserve(struct weir__index *x, uint32_t partition)
{
    struct part *p = &x->parts[partition];
    size_t room = p->bytes.cap - p->bytes.len;

    if (room / ENTRY_BYTES_MAX <= p->reserved &&
        !weir__buf_room(&p->bytes, (size_t)(p->reserved + 1) * ENTRY_BYTES_MAX))
        return false;
    /* One chunk more than they fill: the first of them may begin another. */
    while (p->cap - p->count < p->reserved / WEIR__INDEX_CHUNK + 2)
        if (!grow_chunks(p)) return false;
    p->reserved++;
    return true;
}

void weir__index_unreserve(struct weir__index *x, uint32_t partition)
{
    x->parts[partition].reserved--;
}

bool weir__index_add(struct weir__index *x, uint32_t partition, const struct weir__index_entry *e)
{
    struct part *p = &x->parts[partition];
    /* Sequence numbers are summed up along a chunk, so a hole in them begins another. */
    bool fresh = p->count == 0 || p->chunks[p->count - 1].count == WEIR__INDEX_CHUNK ||
                 e->sequence != p->next;
    uint8_t *to = p->bytes.cap - p->bytes.len < ENTRY_BYTES_MAX
                      ? weir__buf_room(&p->bytes, ENTRY_BYTES_MAX)
                      : p->bytes.at + p->bytes.len;
    struct chunk *c;
    size_t n;

    if (!to || (fresh && p->count == p->cap && !grow_chunks(p))) return false;
    if (p->reserved) p->reserved--;
    if (fresh) {
        p->chunks[p->count++] = (struct chunk){.position = e->position,
                                               .sequence = e->sequence,
                                               .time_ms = e->time_ms,
                                               .bytes_at = (uint32_t)p->bytes.len};
        x->bytes += CHUNK_HEADER_BYTES;
    }
    c = &p->chunks[p->count - 1];
    n = put_varint(to, fresh ? 0 : (e->position - p->end) / WEIR__BATCH_ALIGN);
    n += put_varint(to + n, e->body_bytes);
    n += put_varint(to + n, e->count);
    n += put_varint(to + n, fresh ? 0 : (uint64_t)(e->time_ms - p->last_time_ms));
    p->bytes.len += n;
    c->bytes = (uint16_t)(c->bytes + n);
    c->count++;
    x->bytes += n;
    p->end = e->position + weir__batch_bytes(e->body_bytes);
    p->next = e->sequence + e->count;
    p->last_time_ms = e->time_ms;
    return true;
}

uint64_t weir__index_stored_bytes(const struct weir__index *x)
{
    return weir__round_up(x->bytes + (uint64_t)x->partitions * FOLDER_ENTRY_BYTES, WEIR__FS_BLOCK) +
           TRAILER_BYTES;
}

uint64_t weir__index_empty_bytes(uint32_t partitions)
{
    return weir__round_up((uint64_t)partitions * FOLDER_ENTRY_BYTES, WEIR__FS_BLOCK) +
           TRAILER_BYTES;
}

/* ---- storing ---- */

static uint32_t crc_of(const struct weir__index_stamp *stamp, const uint8_t *at, size_t len)
{
    uint32_t crc = weir__crc32c(stamp->seed, &stamp->segment_number, sizeof stamp->segment_number);

    return weir__crc32c(weir__crc32c(crc, &stamp->behind, sizeof stamp->behind), at, len);
}

static uint32_t folder_crc(const struct weir__index_stamp *stamp, uint32_t partition,
                           const uint8_t *at)
{
    return weir__crc32c(crc_of(stamp, (const uint8_t *)&partition, sizeof partition), at, 12);
}

static void encode_chunk(const struct part *p, const struct chunk *c,
                         const struct weir__index_stamp *stamp, uint8_t *to)
{
    weir__store64(to, c->position);
    weir__store64(to + 8, c->sequence);
    weir__store64(to + 16, (uint64_t)c->time_ms);
    weir__store32(to + 24, c->bytes_at);
    weir__store16(to + 28, c->count);
    weir__store16(to + 30, c->bytes);
    weir__store32(to + 32, weir__crc32c(0, p->bytes.at + c->bytes_at, c->bytes));
    weir__store32(to + 36, crc_of(stamp, to, 36));
}

/* Lays one partition out at `to` and its folder entry at `folder`; returns the bytes taken. */
static size_t encode_part(const struct weir__index *x, uint32_t partition,
                          const struct weir__index_stamp *stamp, uint64_t file_offset, uint8_t *to,
                          uint8_t *folder)
{
    const struct part *p = &x->parts[partition];
    size_t headers = (size_t)p->count * CHUNK_HEADER_BYTES;

    weir__store64(folder, file_offset);
    weir__store32(folder + 8, p->count);
    weir__store32(folder + 12, folder_crc(stamp, partition, folder));
    for (uint32_t i = 0; i < p->count; i++)
        encode_chunk(p, &p->chunks[i], stamp, to + (size_t)i * CHUNK_HEADER_BYTES);
    if (p->bytes.len) memcpy(to + headers, p->bytes.at, p->bytes.len);
    return headers + p->bytes.len;
}

int weir__index_store(const struct weir__index *x, struct weir__file *f,
                      const struct weir__index_stamp *stamp, uint64_t end, struct weir_error *err)
{
    uint64_t bytes = weir__index_stored_bytes(x);
    uint8_t *at = aligned_alloc(WEIR__FS_BLOCK, bytes);
    uint64_t start = end - bytes;
    size_t folder = x->bytes, used = 0;
    struct weir__bytes part;
    uint8_t *trailer;
    int rc;

    if (!at) return weir__fail(err, WEIR_ENOMEM, "storing an index: out of memory");
    memset(at, 0, bytes);
    for (uint32_t i = 0; i < x->partitions; i++)
        used += encode_part(x, i, stamp, start + used, at + used,
                            at + folder + (size_t)i * FOLDER_ENTRY_BYTES);
    trailer = at + bytes - TRAILER_BYTES;
    weir__store32(trailer, INDEX_MAGIC);
    weir__store64(trailer + 8, stamp->segment_number);
    weir__store64(trailer + 16, start + folder);
    weir__store32(trailer + 24, x->partitions);
    weir__store64(trailer + 32, bytes);
    weir__store64(trailer + 40, stamp->behind);
    weir__store32(trailer + 4, weir__crc32c(stamp->seed, trailer + 8, TRAILER_USED_BYTES - 8));
    part = weir__bytes_of(at, bytes);
    rc = f->ops->write(f, &part, 1, start, err);
    free(at);
    return rc;
}

/* ---- looking: the same three questions to memory and to the file ---- */

struct folder_entry {
    uint64_t at;
    uint32_t count;
    struct weir__index_stamp stamp; /* as the trailer has it */
};

static int bad_index(const struct weir__index_source *s, struct weir_error *err)
{
    return weir__fail(err, WEIR_ECORRUPT, "index of segment %llu is damaged",
                      (unsigned long long)s->stamp.segment_number);
}

static int read_exactly(const struct weir__index_source *s, void *to, size_t len, uint64_t at,
                        struct weir_error *err)
{
    size_t got = 0;
    int rc;

    if (at > s->end || len > s->end - at) return bad_index(s, err);
    rc = s->file->ops->read(s->file, to, len, at, &got, err);
    if (rc == WEIR_EIO) return bad_index(s, err); /* it can be made again from the batches */
    if (rc != 0) return rc;
    return got == len ? 0 : bad_index(s, err);
}

static int read_trailer(const struct weir__index_source *s, uint8_t t[TRAILER_USED_BYTES],
                        struct weir__index_stamp *out, struct weir_error *err)
{
    int rc = read_exactly(s, t, TRAILER_USED_BYTES, s->end - TRAILER_BYTES, err);

    if (rc != 0) return rc;
    *out = (struct weir__index_stamp){weir__load64(t + 8), weir__load64(t + 40), s->stamp.seed};
    if (weir__load32(t) != INDEX_MAGIC ||
        weir__load32(t + 4) != weir__crc32c(out->seed, t + 8, TRAILER_USED_BYTES - 8) ||
        out->segment_number != s->stamp.segment_number ||
        (s->stamp.behind && out->behind != s->stamp.behind) ||
        weir__load32(t + 24) != s->partitions)
        return bad_index(s, err);
    return 0;
}

int weir__index_bytes(const struct weir__index_source *s, uint64_t *out, struct weir_error *err)
{
    uint8_t t[TRAILER_USED_BYTES];
    struct weir__index_stamp stamp;
    int rc = read_trailer(s, t, &stamp, err);

    if (rc != 0) return rc;
    *out = weir__load64(t + 32);
    return *out <= s->end ? 0 : bad_index(s, err);
}

static int open_folder(const struct weir__index_source *s, uint32_t partition,
                       struct folder_entry *out, struct weir_error *err)
{
    uint8_t t[TRAILER_USED_BYTES], e[FOLDER_ENTRY_BYTES];
    struct weir__index_stamp stamp;
    uint64_t folder;
    int rc;

    if (s->memory) {
        *out = (struct folder_entry){.count = s->memory->parts[partition].count};
        return 0;
    }
    rc = read_trailer(s, t, &stamp, err);
    if (rc != 0) return rc;
    folder = weir__load64(t + 16);
    rc = read_exactly(s, e, sizeof e, folder + (uint64_t)partition * FOLDER_ENTRY_BYTES, err);
    if (rc != 0) return rc;
    if (weir__load32(e + 12) != folder_crc(&stamp, partition, e)) return bad_index(s, err);
    *out = (struct folder_entry){weir__load64(e), weir__load32(e + 8), stamp};
    return 0;
}

static int chunk_at(const struct weir__index_source *s, uint32_t partition,
                    const struct folder_entry *folder, uint32_t number, struct chunk *out,
                    uint32_t *out_crc, struct weir_error *err)
{
    uint8_t h[CHUNK_HEADER_BYTES];
    int rc;

    if (s->memory) {
        *out = s->memory->parts[partition].chunks[number];
        return 0;
    }
    rc = read_exactly(s, h, sizeof h, folder->at + (uint64_t)number * CHUNK_HEADER_BYTES, err);
    if (rc != 0) return rc;
    if (weir__load32(h + 36) != crc_of(&folder->stamp, h, 36)) return bad_index(s, err);
    *out = (struct chunk){.position = weir__load64(h),
                          .sequence = weir__load64(h + 8),
                          .time_ms = (int64_t)weir__load64(h + 16),
                          .bytes_at = weir__load32(h + 24),
                          .count = weir__load16(h + 28),
                          .bytes = weir__load16(h + 30)};
    *out_crc = weir__load32(h + 32);
    if (out->count == 0 || out->count > WEIR__INDEX_CHUNK || out->bytes > CHUNK_BYTES_MAX)
        return bad_index(s, err);
    return 0;
}

static bool decode_entries(const struct chunk *c, const uint8_t *at, struct weir__index_chunk *out)
{
    const uint8_t *end = at + c->bytes;
    uint64_t position = c->position, sequence = c->sequence;
    int64_t time_ms = c->time_ms;

    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t gap, body, count, later;

        if (!get_varint(&at, end, &gap) || !get_varint(&at, end, &body) ||
            !get_varint(&at, end, &count) || !get_varint(&at, end, &later))
            return false;
        if (body > WEIR__LOG_BATCH_BYTES_MAX || count == 0 || count > body) return false;
        position += gap * WEIR__BATCH_ALIGN;
        time_ms = (int64_t)((uint64_t)time_ms + later);
        out->entries[i] = (struct weir__index_entry){position, sequence, time_ms, (uint32_t)count,
                                                     (uint32_t)body};
        position += weir__batch_bytes((uint32_t)body);
        sequence += count;
    }
    return at == end;
}

static int open_chunk(const struct weir__index_source *s, uint32_t partition,
                      const struct folder_entry *folder, uint32_t number,
                      struct weir__index_chunk *out, struct weir_error *err)
{
    uint8_t bytes[CHUNK_BYTES_MAX];
    const uint8_t *at = bytes;
    struct chunk c;
    uint32_t crc = 0;
    int rc;

    out->number = number;
    out->count = 0;
    if (number >= folder->count) return 0;
    rc = chunk_at(s, partition, folder, number, &c, &crc, err);
    if (rc != 0) return rc;
    if (s->memory) {
        at = s->memory->parts[partition].bytes.at + c.bytes_at;
    } else {
        rc = read_exactly(s, bytes, c.bytes,
                          folder->at + (uint64_t)folder->count * CHUNK_HEADER_BYTES + c.bytes_at,
                          err);
        if (rc != 0) return rc;
        if (weir__crc32c(0, bytes, c.bytes) != crc) return bad_index(s, err);
    }
    if (!decode_entries(&c, at, out)) return bad_index(s, err);
    out->count = c.count;
    return 0;
}

static uint64_t key_of(const struct chunk *c, enum weir__log_by by)
{
    if (by == WEIR__LOG_BY_OFFSET) return c->position;
    if (by == WEIR__LOG_BY_SEQUENCE) return c->sequence;
    return (uint64_t)c->time_ms;
}

int weir__index_find(const struct weir__index_source *s, uint32_t partition, enum weir__log_by by,
                     uint64_t value, struct weir__index_chunk *out, struct weir_error *err)
{
    struct folder_entry folder;
    uint32_t low = 0, high, crc;
    struct chunk c;
    int rc = open_folder(s, partition, &folder, err);

    out->count = 0;
    if (rc != 0) return rc;
    high = folder.count; /* chunks below low begin at or before value, those from high on behind */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        rc = chunk_at(s, partition, &folder, mid, &c, &crc, err);
        if (rc != 0) return rc;
        if (key_of(&c, by) <= value)
            low = mid + 1;
        else
            high = mid;
    }
    return open_chunk(s, partition, &folder, low ? low - 1 : 0, out, err);
}

int weir__index_chunk(const struct weir__index_source *s, uint32_t partition, uint32_t number,
                      struct weir__index_chunk *out, struct weir_error *err)
{
    struct folder_entry folder;
    int rc = open_folder(s, partition, &folder, err);

    out->count = 0;
    return rc != 0 ? rc : open_chunk(s, partition, &folder, number, out, err);
}
