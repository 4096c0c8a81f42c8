/* reader.c - a cursor on one partition.
 *
 * The cursor is a sequence number. The index says which batches come next; they are copied into the
 * reader's own memory, from the tail when they are there, else from the segment file, batches that
 * lie close together in one read and those further ahead asked for in advance. Every batch is
 * checked against its checksums and against the index before it is handed out; where its body goes
 * to somebody who checks it, that is left to them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/reader.h"

#define UNREAD_MS 10000 /* a batch that the disk does not give for this long is damaged */
#define READ_BYTES_DEFAULT (256u << 10)
#define NEAR_BYTES (16u << 10) /* batches closer than this are read together */
#define AHEAD_BYTES (4u << 20) /* asked for in advance, at most */

/* Entries to be read in one go: chunk[at .. at+count), and where each will lie in the buffer. */
struct plan {
    struct weir__segment *segment; /* pinned */
    uint32_t count;
    size_t bytes;
    size_t place[WEIR__INDEX_CHUNK];
    struct weir__tail_block *block[WEIR__INDEX_CHUNK]; /* held; NULL: from the file */
};

int weir__log_reader_open(struct weir__log_reader **out, struct weir__log *log, uint32_t partition,
                          uint64_t sequence, size_t bytes_max, struct weir_error *err)
{
    struct weir__log_reader *r;

    if (partition >= weir__log_partitions(log))
        return weir__fail(err, WEIR_EINVAL, "partition %u of %u", partition,
                          weir__log_partitions(log));
    r = calloc(1, sizeof *r);
    if (!r) return weir__fail(err, WEIR_ENOMEM, "opening a reader: out of memory");
    r->log = log;
    r->partition = partition;
    r->next = sequence;
    r->bytes_max = bytes_max ? bytes_max : READ_BYTES_DEFAULT;
    *out = r;
    return 0;
}

void weir__log_reader_close(struct weir__log_reader *r)
{
    if (!r) return;
    free(r->ahead);
    free(r->buffer);
    free(r);
}

void weir__log_reader_uncheck(struct weir__log_reader *r)
{
    r->unchecked = true;
}

void weir__log_reader_rest(struct weir__log_reader *r)
{
    free(r->buffer);
    r->buffer = NULL;
    r->cap = 0;
}

size_t weir__log_reader_memory(const struct weir__log_reader *r)
{
    return r->cap;
}

void weir__log_reader_damage(const struct weir__log_reader *r, uint64_t *out_first,
                             uint64_t *out_last)
{
    *out_first = r->damage_first;
    *out_last = r->damage_last;
}

uint64_t weir__log_reader_sequence(const struct weir__log_reader *r)
{
    return r->next;
}

void weir__log_reader_seek(struct weir__log_reader *r, uint64_t sequence)
{
    if (sequence < r->next) r->prefetched = 0;
    r->next = sequence;
}

static uint64_t end_of(const struct weir__index_entry *e)
{
    return e->position + weir__batch_bytes(e->body_bytes);
}

/* ---- planning; lock held ---- */

/* How many entries from `at` on can be taken together, within memory and what is visible. Batches
 * in the file that lie close together share a read, with what lies between them. */
static void plan_entries(struct weir__log_reader *r, uint32_t max, bool from_tail, struct plan *p)
{
    uint64_t run_end = 0, sequence = weir__reader_entry(r, r->at)->sequence;

    for (uint32_t i = r->at; i < r->chunk.count && p->count < max; i++) {
        const struct weir__index_entry *e = weir__reader_entry(r, i);
        bool near = !from_tail && run_end && e->position - run_end <= NEAR_BYTES;
        size_t more = near ? end_of(e) - run_end : end_of(e) - e->position;

        if (e->sequence != sequence || end_of(e) > r->log->visible) break;
        if (p->count > 0 && p->bytes + more > r->bytes_max) break;
        if (from_tail) {
            struct weir__tail_block *b = weir__tail_hold(&r->log->tail, e->position);

            if (!b) break;
            p->block[p->count] = b;
        }
        p->bytes += more;
        p->place[p->count++] = p->bytes - (end_of(e) - e->position);
        run_end = end_of(e);
        sequence += e->count;
    }
}

static bool in_tail(struct weir__log *log, uint64_t position)
{
    struct weir__tail_block *b = weir__tail_hold(&log->tail, position);

    if (b) weir__tail_release(&log->tail, b);
    return b != NULL;
}

static bool make_buffer(struct weir__log_reader *r, size_t bytes)
{
    size_t want = weir__round_up(bytes, WEIR__FS_BLOCK);

    if (bytes <= r->cap && !(r->cap > r->bytes_max && want <= r->bytes_max)) return true;
    free(r->buffer);
    r->buffer = malloc(want);
    r->cap = r->buffer ? want : 0;
    return r->buffer != NULL;
}

/* ---- reading; without the lock ---- */

static void copy_tail(struct weir__log_reader *r, const struct plan *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const struct weir__index_entry *e = weir__reader_entry(r, r->at + i);
        const struct weir__tail_block *b = p->block[i];

        memcpy(r->buffer + p->place[i], b->at + (e->position - b->base), end_of(e) - e->position);
    }
}

/* A stretch of the file that is being put together for one request. */
struct stretch {
    uint64_t from, to;
};

static void ask(const struct plan *p, struct stretch *s)
{
    struct weir__file *f = p->segment->read;

    if (s->to) f->ops->prefetch(f, s->from - p->segment->h.base, s->to - s->from);
    s->to = 0;
}

/* Adds the entries from `first` on that were not asked for yet, while `*left` bytes remain. */
static void ask_entries(struct weir__log_reader *r, const struct plan *p,
                        const struct weir__index_chunk *chunk, uint32_t first, struct stretch *s,
                        uint64_t *left)
{
    for (uint32_t i = first; i<chunk->count && * left> 0; i++) {
        const struct weir__index_entry *e = &chunk->entries[i];
        uint64_t bytes = end_of(e) - e->position;

        *left -= bytes < *left ? bytes : *left;
        if (e->position < r->prefetched) continue;
        if (s->to && e->position - s->to > NEAR_BYTES) ask(p, s);
        if (!s->to) s->from = e->position;
        s->to = r->prefetched = end_of(e);
    }
}

/* Whether the partition's batches lie one behind another here, more or less. */
static bool dense(const struct weir__log_reader *r)
{
    const struct weir__index_entry *now = weir__reader_entry(r, r->at);
    const struct weir__index_entry *last = weir__reader_entry(r, r->chunk.count - 1);
    uint64_t between = (r->chunk.count - 1 - r->at) * (end_of(now) - now->position);

    return last->position - now->position <= between + NEAR_BYTES;
}

/* Asks for what will be read now and for what comes behind it, so that the disk works on all of it
 * at once and ahead of us. Where we read straight on, the kernel does that with less work. */
static void prefetch(struct weir__log_reader *r, const struct plan *p)
{
    uint64_t left = AHEAD_BYTES;
    struct stretch s = {0, 0};

    if (dense(r)) return;
    ask_entries(r, p, &r->chunk, r->at, &s, &left);
    if (r->ahead) ask_entries(r, p, r->ahead, 0, &s, &left);
    ask(p, &s);
}

/* The entries first to last, which lie one behind another in the file. What the file does not have
 * reads as zeros. */
static int read_run(struct weir__log_reader *r, const struct plan *p, uint32_t first, uint32_t last,
                    struct weir_error *err)
{
    struct weir__file *f = p->segment->read;
    const struct weir__index_entry *e = weir__reader_entry(r, r->at + first);
    size_t len = end_of(weir__reader_entry(r, r->at + last)) - e->position, got = 0;
    int rc = f->ops->read(f, r->buffer + p->place[first], len, e->position - p->segment->h.base,
                          &got, err);

    if (rc != 0) return weir__wrap(err, rc, "reading segment %s", p->segment->name);
    if (got < len) memset(r->buffer + p->place[first] + got, 0, len - got);
    return 0;
}

/* The disk does not give a run as a whole: as many of its batches as it gives one by one. The first
 * one's failure is told, with its events: whoever asks again will be told again, until the disk
 * gives it or the reader is moved behind it. */
static int read_singly(struct weir__log_reader *r, struct plan *p, uint32_t first, uint32_t last,
                       struct weir_error *err)
{
    const struct weir__index_entry *e = weir__reader_entry(r, r->at + first);
    uint32_t i = first;
    int rc = 0;

    while (i <= last && (rc = read_run(r, p, i, i, i == 0 ? err : NULL)) == 0) i++;
    p->count = rc == 0 ? p->count : i;
    if (rc == 0 || i > 0) return 0;
    if (rc == WEIR_EIO) {
        weir__reader_set_damage(r, e->sequence + e->count - 1);
        r->unread = e->position;
    }
    return weir__wrap(err, rc,
                      "byte %" PRIu64 ", events %" PRIu64 " to %" PRIu64 " of partition %u",
                      e->position - p->segment->h.base, e->sequence, e->sequence + e->count - 1,
                      r->partition);
}

static int read_file(struct weir__log_reader *r, struct plan *p, struct weir_error *err)
{
    uint32_t first = 0;

    prefetch(r, p);
    while (first < p->count) {
        const struct weir__index_entry *e = weir__reader_entry(r, r->at + first);
        uint32_t last = first;
        int rc;

        /* One run: places and positions advance together. */
        while (last + 1 < p->count &&
               p->place[last + 1] - p->place[first] ==
                   weir__reader_entry(r, r->at + last + 1)->position - e->position)
            last++;
        rc = read_run(r, p, first, last, err);
        if (rc == WEIR_EIO) rc = read_singly(r, p, first, last, err);
        if (rc != 0) return rc;
        first = last + 1;
    }
    return 0;
}

/* Checks one batch against its checksums, or that of its head alone, and its index entry. */
static bool check(const struct weir__log_reader *r, const struct plan *p,
                  const struct weir__index_entry *e, const uint8_t *at, struct weir__log_view *out)
{
    struct weir__batch_header h;

    if (!weir__batch_decode(at, &p->segment->stamp, &h)) return false;
    if (h.position != e->position || h.sequence != e->sequence || h.count != e->count ||
        h.body_bytes != e->body_bytes || h.partition != r->partition)
        return false;
    at += WEIR__BATCH_HEADER_BYTES;
    if (!r->unchecked && weir__crc32c(0, at, h.body_bytes) != h.body_crc) return false;
    *out = (struct weir__log_view){
        .offset = h.position,
        .sequence = h.sequence,
        .time_ms = h.time_ms,
        .count = h.count,
        .skip = r->next > h.sequence ? (uint32_t)(r->next - h.sequence) : 0,
        .attrs = h.attrs,
        .body_crc = h.body_crc,
        .producer = h.producer,
        .body = weir__bytes_of(at, h.body_bytes),
    };
    return true;
}

static int deliver(struct weir__log_reader *r, const struct plan *p, struct weir__log_view *out,
                   uint32_t *out_count, struct weir_error *err)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const struct weir__index_entry *e = weir__reader_entry(r, r->at);

        if (!check(r, p, e, r->buffer + p->place[i], &out[i])) {
            if (i > 0) return 0; /* the good ones first; the next call meets the bad one */
            return weir__reader_damaged(r, p->segment, e->sequence + e->count - 1,
                                        e->position - p->segment->h.base, err);
        }
        r->next = e->sequence + e->count;
        r->at++;
        (*out_count)++;
    }
    return 0;
}

/* Opens the chunk behind the current one; when that fails, only the asking in advance is lost. */
static void look_ahead(struct weir__log_reader *r, struct weir__segment *seg)
{
    if (r->ahead_known || r->chunk.count < WEIR__INDEX_CHUNK) return;
    r->ahead_known = true;
    if (!r->ahead) r->ahead = calloc(1, sizeof *r->ahead);
    if (!r->ahead) return; /* it is a hint */
    if (weir__log_index_chunk(r->log, seg, r->partition, r->chunk.number + 1, r->ahead, NULL) != 0)
        r->ahead->count = 0;
}

/* Takes the batches from `at` on. Lock held; let go of for the copying. */
static int take(struct weir__log_reader *r, struct weir__log_view *out, uint32_t max,
                uint32_t *out_count, struct weir_error *err)
{
    struct weir__log *log = r->log;
    bool tail = in_tail(log, weir__reader_entry(r, r->at)->position);
    struct plan p = {.segment = weir__log_segment_numbered(log, r->segment)};
    int rc = 0;

    weir__log_pin(p.segment);
    plan_entries(r, max, tail, &p);
    if (p.count > 0 && !tail) rc = weir__log_open_read(log, p.segment, err);
    if (p.count > 0 && !tail && rc == 0) look_ahead(r, p.segment);
    if (p.count > 0 && rc == 0) {
        if (tail)
            log->stats.tail_reads++;
        else
            log->stats.disk_reads++;
        weir__mutex_unlock(&log->lock);
        if (!make_buffer(r, p.bytes))
            rc = weir__fail(err, WEIR_ENOMEM, "reading: out of memory");
        else if (tail)
            copy_tail(r, &p);
        else
            rc = read_file(r, &p, err);
        if (rc == 0) rc = deliver(r, &p, out, out_count, err);
        weir__mutex_lock(&log->lock);
    }
    for (uint32_t i = 0; tail && i < p.count; i++) weir__tail_release(&log->tail, p.block[i]);
    weir__log_unpin(log, p.segment);
    return rc;
}

/* A read that fails may pass: it is told as such for a while, then as damage. Lock held. */
static int judge_unread(struct weir__log_reader *r, int rc, struct weir_error *err)
{
    struct weir__log *log = r->log;
    int64_t now_ms = log->o.clock.mono_ms(log->o.clock.self);
    uint32_t i = 0, known = log->unread_count < WEIR__LOG_UNREAD_MAX ? log->unread_count
                                                                     : WEIR__LOG_UNREAD_MAX;

    while (i < known && log->unread[i].position != r->unread) i++;
    if (i == known)
        log->unread[log->unread_count++ % WEIR__LOG_UNREAD_MAX] =
            (struct weir__log_unread){r->unread, now_ms};
    else if (now_ms - log->unread[i].since_mono_ms >= UNREAD_MS)
        rc = weir__wrap(err, WEIR_ECORRUPT, "the disk has not given it for %d s", UNREAD_MS / 1000);
    r->unread = 0;
    return rc;
}

/* The segment went before its file could be opened, or its file did: then it is lost. */
static bool segment_went(struct weir__log_reader *r)
{
    const struct weir__segment *seg = weir__log_segment_numbered(r->log, r->segment);
    bool went = !seg || seg->lost;

    if (went) r->segment = 0;
    return went;
}

int weir__log_reader_next(struct weir__log_reader *r, struct weir__log_view *out, uint32_t max,
                          uint32_t *out_count, uint64_t *out_missed, struct weir_error *err)
{
    struct weir__log *log = r->log;
    int rc = 0;

    *out_count = 0;
    *out_missed = 0;
    r->damage_first = r->damage_last + 1; /* none */
    weir__mutex_lock(&log->lock);
    while (rc == 0) { /* the heads may have moved with every call that lets go of the lock */
        const struct weir__head *end = &log->durable_heads[r->partition];
        const struct weir__head *begin = &log->begin_heads[r->partition];

        if (r->next < begin->next_sequence) {
            *out_missed += begin->next_sequence - r->next;
            r->next = begin->next_sequence;
        }
        if (max == 0 || r->next >= end->next_sequence) break;
        rc = weir__reader_locate(r, err);
        if (rc == 0) continue;
        if (rc == 1) rc = take(r, out, max, out_count, err);
        if (rc != WEIR_ENOTFOUND || !segment_went(r)) break;
        rc = 0;
    }
    if (r->unread) rc = judge_unread(r, rc, err);
    weir__mutex_unlock(&log->lock);
    return rc;
}
