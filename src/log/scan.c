/* scan.c - walking the batches of one segment without an index.
 *
 * A bad checksum alone does not say whether a write was never finished or whether something that
 * was on disk has gone bad. So where no good batch begins, the rest of the segment is searched for
 * one: a batch whose watermark lies behind the bad place proves that it had been on disk. Then the
 * range is damage, and the walk goes on behind it. Without such a proof the walk ends there.
 *
 * What a search may believe: a header with the hub's secret under its checksum, of the place where
 * it stands, that gives no sequence number a second time. It proves nothing above its own place,
 * for its watermark lies there or below. Segments of format version 1 have no secret, and their
 * headers can be forged by whoever may send: there a header that was searched for must also follow
 * from what was walked before (see follows).
 *
 * An opening writes its epoch to the control file before its first batch. So a batch of a later
 * epoch, behind the watermark, shows that the control file is an older copy: what it says of the
 * end is too little. Such a batch is walked like any other, and by the same proofs. */
#include <stdlib.h>

#include "base/crc.h"
#include "log/state.h"

#define WINDOW_BYTES (4u << 20)
#define PIECE_BYTES (1u << 20) /* a body is checked in pieces of at most this */
#define VERSION_1_AHEAD_MS (INT64_C(24) * 3600 * 1000) /* a clock may have been wrong by this */

struct weir__scan weir__scan_sealed(const struct weir__segment *seg, int64_t latest_ms)
{
    bool known = weir__segment_end_known(seg);

    return (struct weir__scan){.segment = seg,
                               .limit = known ? seg->end : weir__segment_limit(seg),
                               .proof = known ? seg->end : seg->data,
                               .epoch_start = UINT64_MAX,
                               .epoch = UINT32_MAX,
                               .later_from = UINT64_MAX,
                               .partitions = seg->h.partitions,
                               .latest_ms = latest_ms};
}

struct weir__scan weir__scan_active(struct weir__log *log, bool unsure)
{
    const struct weir__segment *seg = weir__log_active(log);
    const struct weir__control *c = &log->control;
    int64_t now_ms = log->o.clock.wall_ms(log->o.clock.self);

    if (c->keep.keep_ms > now_ms) now_ms = c->keep.keep_ms;
    return (struct weir__scan){.segment = seg,
                               .limit = weir__segment_limit(seg),
                               .proof = unsure ? seg->data : c->watermark,
                               .epoch_start = unsure ? UINT64_MAX : c->epoch_start,
                               .epoch = unsure ? UINT32_MAX : c->epoch,
                               .later_from = seg->h.version > 1 ? c->watermark : UINT64_MAX,
                               .partitions = seg->h.partitions,
                               .latest_ms = now_ms + VERSION_1_AHEAD_MS};
}

int weir__scan_init(struct weir__scan *s, struct weir_error *err)
{
    s->window_cap = WINDOW_BYTES;
    s->window_len = 0;
    s->window = aligned_alloc(WEIR__FS_BLOCK, s->window_cap);
    s->next = calloc(s->partitions, sizeof *s->next);
    if (!s->window || !s->next)
        return weir__fail(err, WEIR_ENOMEM, "scanning a segment: out of memory");
    for (uint32_t i = 0; s->start && i < s->partitions; i++) s->next[i] = s->start[i].next_sequence;
    return 0;
}

void weir__scan_fini(struct weir__scan *s)
{
    free(s->window);
    free(s->next);
    s->window = NULL;
    s->next = NULL;
}

/* The len bytes at a log position, in one piece; *out NULL when the file ends before. */
static int look_at(struct weir__scan *s, uint64_t position, size_t len, const uint8_t **out,
                   struct weir_error *err)
{
    uint64_t at = position - s->segment->h.base, begin, end = s->segment->h.capacity;
    size_t got = 0, want = s->window_cap;
    int rc;

    *out = NULL;
    if (at + len > end) return 0;
    if (s->window_len == 0 || at < s->window_at || at + len > s->window_at + s->window_len) {
        begin = weir__round_down(at, WEIR__FS_BLOCK);
        if (s->limit > position)
            end = weir__round_up(s->limit - s->segment->h.base, WEIR__FS_BLOCK);
        if (want > end - begin && end - begin >= at + len - begin) want = end - begin;
        rc = weir__blocks_read(s->file, s->window, want, begin, &got, &s->bad, err);
        if (rc != 0) return rc;
        s->window_at = begin;
        s->window_len = got;
        if (at + len > begin + got) return 0;
    }
    *out = s->window + (at - s->window_at);
    return 0;
}

static bool plausible(const struct weir__scan *s, const struct weir__batch_header *h,
                      uint64_t position)
{
    if (h->position != position || h->partition >= s->partitions) return false;
    if (h->epoch > s->epoch && position < s->later_from) return false;
    if (h->epoch < s->last_epoch) return false;
    if (position >= s->epoch_start && h->epoch < s->epoch) return false;
    if (h->sequence < s->next[h->partition]) return false; /* it was given already */
    return position + weir__batch_bytes(h->body_bytes) <= s->limit;
}

/* A forged header of format version 1 must not raise the epoch by being found. */
static void note_epoch(struct weir__scan *s, const struct weir__batch_header *h)
{
    if (s->segment->h.version < 2) return;
    if (h->epoch > s->found_epoch) s->found_epoch = h->epoch;
    if (h->epoch > s->epoch && s->later_at == 0) s->later_at = h->position;
}

static int header_at(struct weir__scan *s, uint64_t position, struct weir__batch_header *out,
                     bool *out_good, struct weir_error *err)
{
    const uint8_t *at;
    int rc = look_at(s, position, WEIR__BATCH_HEADER_BYTES, &at, err);

    *out_good = false;
    if (rc != 0 || !at) return rc;
    *out_good = weir__batch_decode(at, &s->segment->stamp, out) ||
                (s->trusted && weir__batch_decode(at, s->trusted, out));
    *out_good = *out_good && plausible(s, out, position);
    if (*out_good) note_epoch(s, out);
    return 0;
}

static int body_at(struct weir__scan *s, const struct weir__batch_header *h, bool *out_good,
                   struct weir_error *err)
{
    uint64_t p = h->position + WEIR__BATCH_HEADER_BYTES;
    uint32_t crc = 0, left = h->body_bytes;

    *out_good = false;
    while (left > 0) {
        uint32_t n = left < PIECE_BYTES ? left : PIECE_BYTES;
        const uint8_t *at;
        int rc = look_at(s, p, n, &at, err);

        if (rc != 0 || !at) return rc;
        crc = weir__crc32c(crc, at, n);
        p += n;
        left -= n;
    }
    *out_good = crc == h->body_crc;
    return 0;
}

/* Whether a header of format version 1 behind `gap` bytes of damage says no more than can have been
 * in them. */
static bool follows(const struct weir__scan *s, const struct weir__batch_header *h, uint64_t gap)
{
    if (s->segment->h.version > 1) return true;
    if (s->latest_ms && h->time_ms > s->latest_ms) return false;
    return !s->start || h->sequence - s->next[h->partition] <= gap;
}

/* The next good header at or behind `from`, when the bytes from `bad` on are bad; *out_found false
 * when there is none. */
static int search(struct weir__scan *s, uint64_t bad, uint64_t from, struct weir__batch_header *out,
                  bool *out_found, struct weir_error *err)
{
    int rc = 0;

    *out_found = false;
    for (uint64_t p = from; rc == 0 && p + WEIR__BATCH_HEADER_BYTES <= s->limit; p += 8) {
        const uint8_t *at;

        rc = look_at(s, p, WEIR__BATCH_HEADER_BYTES, &at, err);
        if (rc != 0 || !at) break;
        if (!s->trusted && !weir__batch_begins(at, &s->segment->stamp, p)) continue;
        rc = header_at(s, p, out, out_found, err);
        *out_found = *out_found && follows(s, out, p - bad);
        if (rc != 0 || *out_found) break;
    }
    return rc;
}

/* Whether anything from `from` on proves that the place before it had been on disk; *out_next is
 * the first good header from there on, 0 when there is none. */
static int look_behind(struct weir__scan *s, uint64_t bad, uint64_t from, uint64_t *out_next,
                       bool *out_proved, struct weir_error *err)
{
    struct weir__batch_header h;
    bool found = true;
    int rc = 0;

    *out_next = 0;
    *out_proved = bad < s->proof;
    for (uint64_t p = from; rc == 0 && found;) {
        rc = search(s, bad, p, &h, &found, err);
        if (rc != 0 || !found) break;
        if (*out_next == 0) *out_next = h.position;
        if (h.watermark > s->proof) s->proof = h.watermark;
        if (bad < s->proof) *out_proved = true;
        if (*out_proved) break;
        p = h.position + 8;
    }
    return rc;
}

int weir__scan_blank(struct weir__scan *s, uint64_t from, bool *out, struct weir_error *err)
{
    int rc = 0;

    *out = true;
    for (uint64_t p = from; rc == 0 && *out && p < s->limit; p += 8) {
        const uint8_t *at;

        rc = look_at(s, p, 8, &at, err);
        if (rc != 0 || !at) break;
        *out = weir__load64(at) == 0;
    }
    return rc;
}

/* One good header: tells about it, and whether its body is good. */
static int visit(struct weir__scan *s, const struct weir__scan_batch *b,
                 const struct weir__scan_calls *calls, struct weir_error *err)
{
    s->last_epoch = b->h.epoch;
    if (s->last_epoch > s->found_epoch) s->found_epoch = s->last_epoch;
    s->next[b->h.partition] = b->h.sequence + b->h.count;
    return calls->batch(calls->user, b, err);
}

int weir__scan_run(struct weir__scan *s, uint64_t from, const struct weir__scan_calls *calls,
                   uint64_t *out_end, enum weir__scan_end *out_how, struct weir_error *err)
{
    uint64_t p = from, next;
    bool good = false, proved;
    int rc = 0;

    *out_how = WEIR__SCAN_END;
    while (rc == 0 && p + WEIR__BATCH_HEADER_BYTES <= s->limit) {
        struct weir__scan_batch b;
        uint64_t behind;

        rc = header_at(s, p, &b.h, &good, err);
        if (rc == 0 && good) rc = body_at(s, &b.h, &b.body_good, err);
        if (rc != 0) break;
        behind = good ? p + weir__batch_bytes(b.h.body_bytes) : p + 8;
        if (good && (b.body_good || p < s->proof)) {
            rc = visit(s, &b, calls, err);
            p = behind;
            continue;
        }
        rc = look_behind(s, p, behind, &next, &proved, err);
        if (rc != 0) break;
        if (!proved) { /* what was begun here was never acknowledged */
            if (good || next) *out_how = WEIR__SCAN_TORN;
            s->torn_bytes = good ? behind - p : 0;
            break;
        }
        if (good) continue; /* its header tells what it was: visit it with a bad body */
        if (next == 0 || next > s->proof) next = s->proof > p ? s->proof : p + 8;
        rc = calls->damage(calls->user, p, next, err);
        p = next;
    }
    *out_end = p;
    return rc;
}
