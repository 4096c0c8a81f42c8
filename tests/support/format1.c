/* format1.c - see format1.h. The bytes, little-endian:
 *
 *   control    0 "WCTL", 4 crc of the rest, 8 version 1, 12 partitions, 16 hub, 24 generation,
 *              32 first and 40 last segment, 48 watermark, 56 epoch start, 64 epoch, 72 keep time,
 *              80 heads; twice, one copy of whole blocks behind the other
 *   segment    0 "WSEG", 4 crc of the rest of the block, 8 version 1, 12 partitions, 16 hub, 24
 *              number, 32 base, 40 capacity, 48 end of the one before, 56 time, 64 epoch, 68 bytes of
 *              heads, 72 their crc; then heads and producers; at the end heads and header again
 *   batch      0 "WBAT", 4 crc of the hub and the rest, 8 position, 16 watermark, 24 epoch, 28 bytes,
 *              32 crc of the body, 36 partition, 38 attributes, 40 events, 44 producer epoch, 46 and
 *              76 the batch before, 48 sequence, 56 time, 64 producer, 72 its sequence */
#include "support/format1.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/index.h"

#define BLOCK 4096u
#define HEAD 24u
#define HEADER 80u
#define PRODUCER 48u
#define BATCHES_1 14
#define BATCHES_2 9
#define EPOCH 3u
#define MANY 64u /* partitions, of which the last one is to have events, too */

struct writer {
    struct simfs *disk;
    const char *dir;
    uint64_t hub_id, position;
    int64_t now_ms;
    struct history *h;
    struct weir__index *index;
    uint32_t before_partition, before_bytes, before_count;
    uint64_t next[WEIR__LOG_PARTITIONS_MAX], offset[WEIR__LOG_PARTITIONS_MAX];
    int64_t time_ms[WEIR__LOG_PARTITIONS_MAX]; /* of each partition's last batch */
    uint32_t producer_next;
    size_t producer_batch; /* in the history, + 1 */
};

static uint64_t round_up(uint64_t v, uint64_t unit)
{
    return (v + unit - 1) / unit * unit;
}

static void put_heads(const struct writer *w, uint8_t *to)
{
    for (uint32_t i = 0; i < w->h->partitions; i++, to += HEAD) {
        weir__store64(to, w->next[i]);
        weir__store64(to + 8, w->offset[i]);
        weir__store64(to + 16, (uint64_t)w->time_ms[i]);
    }
}

static void put_producer(const struct writer *w, uint8_t *to)
{
    const struct history_batch *b = &w->h->batches[w->producer_batch - 1];

    weir__store64(to, FORMAT1_PRODUCER);
    weir__store64(to + 8, b->receipt.sequence);
    weir__store64(to + 16, b->receipt.offset);
    weir__store64(to + 24, (uint64_t)b->receipt.time_ms);
    weir__store32(to + 32, b->partition);
    weir__store32(to + 36, w->producer_next);
    weir__store32(to + 40, b->count);
}

/* The header and heads of a segment, in both places of its file. Returns their bytes. */
static uint64_t put_front(const struct writer *w, uint8_t *file, uint64_t number, uint64_t base,
                          uint64_t previous_end)
{
    uint32_t heads = w->h->partitions * HEAD + (w->producer_batch ? PRODUCER : 0);
    uint64_t front = BLOCK + round_up(heads, BLOCK);
    uint8_t *tail = file + FORMAT1_SEGMENT_BYTES;

    put_heads(w, file + BLOCK);
    if (w->producer_batch) put_producer(w, file + BLOCK + (size_t)w->h->partitions * HEAD);
    weir__store32(file, 0x47455357u);
    weir__store32(file + 8, 1);
    weir__store32(file + 12, w->h->partitions);
    weir__store64(file + 16, w->hub_id);
    weir__store64(file + 24, number);
    weir__store64(file + 32, base);
    weir__store64(file + 40, FORMAT1_SEGMENT_BYTES);
    weir__store64(file + 48, previous_end);
    weir__store64(file + 56, (uint64_t)w->now_ms);
    weir__store32(file + 64, EPOCH);
    weir__store32(file + 68, heads);
    weir__store32(file + 72, weir__crc32c(0, file + BLOCK, heads));
    weir__store32(file + 4, weir__crc32c(0, file + 8, BLOCK - 8));
    memcpy(tail - front, file + BLOCK, front - BLOCK);
    memcpy(tail - BLOCK, file, BLOCK);
    return front;
}

static void put_header(const struct writer *w, const struct history_batch *b, uint64_t watermark,
                       uint8_t *to)
{
    uint32_t seed = weir__crc32c(0, &w->hub_id, sizeof w->hub_id);

    weir__store32(to, 0x54414257u);
    weir__store64(to + 8, b->receipt.offset);
    weir__store64(to + 16, watermark);
    weir__store32(to + 24, EPOCH);
    weir__store32(to + 28, b->bytes);
    weir__store32(to + 32, weir__crc32c(0, to + HEADER, b->bytes));
    weir__store16(to + 36, (uint16_t)b->partition);
    weir__store16(to + 38, b->attrs);
    weir__store32(to + 40, b->count);
    weir__store16(to + 46, (uint16_t)w->before_count);
    weir__store64(to + 48, b->receipt.sequence);
    weir__store64(to + 56, (uint64_t)b->receipt.time_ms);
    weir__store64(to + 64, b->producer.id);
    weir__store32(to + 72, b->producer.sequence);
    weir__store32(to + 76, w->before_bytes / 8 << 10 | w->before_partition);
    weir__store32(to + 4, weir__crc32c(seed, to + 8, HEADER - 8));
}

static void put_body(struct history_batch *b, size_t number, uint8_t *to)
{
    history_body(number, b->partition, to, b->bytes);
    if (b->forgery.position) forge_body(&b->forgery, to, b->bytes);
}

/* One more batch at the writer's position, which lies at `to`; every one was waited for. */
static void put_batch(struct writer *w, const struct history_order *o, uint8_t *to)
{
    size_t index = history_note(w->h, o);
    struct history_batch *b = &w->h->batches[index];
    uint64_t bytes = round_up(HEADER + (uint64_t)o->bytes, 8);
    struct weir__index_entry e;

    b->fate = HISTORY_ACKED;
    w->h->acked++;
    b->producer.sequence = o->producer_id ? w->producer_next : 0;
    b->receipt = (struct weir__log_receipt){.offset = w->position,
                                            .sequence = w->next[o->partition],
                                            .time_ms = ++w->now_ms};
    if (w->h->forging)
        b->forgery = (struct forgery){.position = w->position,
                                      .hub_id = w->hub_id,
                                      .sequence = w->next[o->partition],
                                      .epoch = EPOCH,
                                      .partition = o->partition};
    put_body(b, index + 1, to + HEADER);
    put_header(w, b, w->position, to);
    e = (struct weir__index_entry){w->position, b->receipt.sequence, b->receipt.time_ms, b->count,
                                   b->bytes};
    if (!weir__index_add(w->index, o->partition, &e)) abort();
    if (o->producer_id) {
        w->producer_next += o->count;
        w->producer_batch = index + 1;
    }
    w->before_partition = o->partition;
    w->before_bytes = (uint32_t)bytes;
    w->before_count = o->count;
    w->next[o->partition] += o->count;
    w->offset[o->partition] = w->position + o->count - 1;
    w->time_ms[o->partition] = w->now_ms;
    w->position += bytes;
}

static void put_segment(struct writer *w, uint64_t number, uint64_t base, int batches, bool seal)
{
    uint8_t *file = calloc(1, FORMAT1_SEGMENT_BYTES);
    struct weir__index_stamp stamp = {.segment_number = number};
    struct weir__file *f = NULL;
    struct weir__fs *fs = simfs_fs(w->disk);
    char path[128];
    uint64_t front;

    if (!file) abort();
    front = put_front(w, file, number, base, number == 1 ? base : w->position);
    w->position = base + front;
    w->before_bytes = w->before_count = w->before_partition = 0;
    w->index = weir__index_new(w->h->partitions);
    for (int i = 0; i < batches; i++) {
        struct history_order o = {.partition = (uint32_t)(i * 3) % w->h->partitions,
                                  .bytes = 300 + (uint32_t)i * 277,
                                  .count = 1 + (uint32_t)i % 4};

        if (i % 4 == 3 && w->h->partitions > MANY) o.partition = w->h->partitions - 1;
        if (number == 1 && o.partition == FORMAT1_PRODUCER_IN) o.producer_id = FORMAT1_PRODUCER;
        put_batch(w, &o, file + (w->position - base));
    }
    snprintf(path, sizeof path, "%s/%08u.seg", w->dir, (unsigned)number);
    simfs_put(w->disk, path, file, FORMAT1_SEGMENT_BYTES);
    free(file);
    stamp.behind = w->position;
    if (seal && (fs->ops->open(fs, path, 0, &f, NULL) != 0 ||
                 weir__index_store(w->index, f, &stamp, FORMAT1_SEGMENT_BYTES - front, NULL) != 0 ||
                 f->ops->sync(f, NULL) != 0))
        abort();
    weir__file_close(f);
    weir__index_free(w->index);
}

/* The older copy is of an earlier opening, and of the first segment: it cannot stand in. */
static void put_control(const struct writer *w)
{
    size_t len = round_up(80 + (uint64_t)w->h->partitions * HEAD, BLOCK);
    uint8_t *file = calloc(2, len);
    char path[128];

    if (!file) abort();
    for (uint64_t generation = 4; generation < 6; generation++) {
        uint8_t *at = file + generation % 2 * len;
        bool newest = generation == 5;

        weir__store32(at, 0x4c544357u);
        weir__store32(at + 8, 1);
        weir__store32(at + 12, w->h->partitions);
        weir__store64(at + 16, w->hub_id);
        weir__store64(at + 24, generation);
        weir__store64(at + 32, 1);
        weir__store64(at + 40, newest ? 2 : 1);
        weir__store64(at + 48, newest ? w->position : WEIR__LOG_ORIGIN);
        weir__store64(at + 56, WEIR__LOG_ORIGIN);
        weir__store32(at + 64, newest ? EPOCH : EPOCH - 1);
        weir__store64(at + 72, (uint64_t)w->now_ms);
        if (newest) put_heads(w, at + 80);
        weir__store32(at + 4, weir__crc32c(0, at + 8, len - 8));
    }
    snprintf(path, sizeof path, "%s/control", w->dir);
    simfs_put(w->disk, path, file, 2 * len);
    free(file);
}

void format1_write(struct simfs *disk, const char *dir, uint64_t hub_id, int64_t now_ms,
                   struct history *h)
{
    struct writer *w = calloc(1, sizeof *w);

    if (!w) abort();
    *w = (struct writer){.disk = disk, .dir = dir, .hub_id = hub_id, .now_ms = now_ms, .h = h};
    put_segment(w, 1, WEIR__LOG_ORIGIN, BATCHES_1, true);
    put_segment(w, 2, WEIR__LOG_ORIGIN + FORMAT1_SEGMENT_BYTES, BATCHES_2, false);
    put_control(w);
    free(w);
}
