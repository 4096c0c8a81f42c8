/* locate.c - where the batch lies that a reader's cursor stands in, and what is said when it cannot be
 * found: which events are damaged, missing or lost with their segment. The log's lock is held. */
#include <assert.h>
#include <inttypes.h>

#include "log/reader.h"

static const struct weir__index_entry *entry_of_ahead(const struct weir__log_reader *r)
{
    return &r->ahead->entries[0];
}

static bool holds(const struct weir__index_entry *e, uint64_t sequence)
{
    return sequence >= e->sequence && sequence - e->sequence < e->count;
}

void weir__reader_set_damage(struct weir__log_reader *r, uint64_t last)
{
    assert(last >= r->next);
    if (r->log->o.sabotage & WEIR__LOG_SKIP_BACK) return;
    r->damage_first = r->next;
    r->damage_last = last;
}

int weir__reader_damaged(struct weir__log_reader *r, const struct weir__segment *seg, uint64_t last,
                         uint64_t at, struct weir_error *err)
{
    const struct weir__log *log = r->log;
    const char *name = seg->name;

    /* The place, when a walk found it. */
    for (uint32_t i = 0; at == 0 && i < log->damage_count; i++)
        if (log->damages[i].from >= seg->h.base &&
            log->damages[i].from < seg->h.base + seg->h.capacity) {
            name = log->damages[i].name;
            at = log->damages[i].at;
        }
    weir__reader_set_damage(r, last);
    return weir__fail(err, WEIR_ECORRUPT,
                      "%s/%s byte %" PRIu64 ": damaged: events %" PRIu64 " to %" PRIu64
                      " of partition %u cannot be read",
                      log->dir, name, at, r->next, last, r->partition);
}

static int lost(struct weir__log_reader *r, const struct weir__segment *seg, uint64_t last,
                struct weir_error *err)
{
    const struct weir__log *log = r->log;
    char guess[WEIR__GUESS_BYTES] = "";

    if (seg->h.number == log->sure_segment && r->partition < log->sure_count)
        weir__guess_text(guess, r->next, log->sure_heads[r->partition].next_sequence, last);
    weir__reader_set_damage(r, last);
    return weir__fail(err, WEIR_ECORRUPT,
                      "%s: segment %" PRIu64 " is lost: events %" PRIu64 " to %" PRIu64
                      " of partition %u cannot be read%s",
                      log->dir, seg->h.number, r->next, last, r->partition, guess);
}

/* A hole in the sequence numbers from next to `last`, and the segment in which what is behind it
 * was looked for: names the segment in which they would lie. Where a lost segment began is not
 * known, so its events seem to lie in the one before. */
static int missing(struct weir__log_reader *r, uint64_t last, uint64_t behind,
                   struct weir_error *err)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = NULL;
    uint64_t number;

    if (weir__log_segment_of(log, r->partition, r->next, &number, NULL) == 0) {
        seg = weir__log_segment_numbered(log, number);
        for (; number <= behind; number++) {
            const struct weir__segment *at = weir__log_segment_numbered(log, number);
            if (at && at->lost) return lost(r, at, last, err);
        }
    }
    return weir__reader_damaged(r, seg ? seg : weir__log_active(log), last, 0, err);
}

/* Puts `at` on the entry that holds next: 1. 0: the chunk has nothing from next on. WEIR_ECORRUPT:
 * there is a hole before what it has, up to *out_last. */
static int place_cursor(struct weir__log_reader *r, uint64_t *out_last)
{
    for (r->at = 0; r->at < r->chunk.count; r->at++) {
        const struct weir__index_entry *e = weir__reader_entry(r, r->at);

        if (holds(e, r->next)) return 1;
        if (e->sequence <= r->next) continue;
        *out_last = e->sequence - 1;
        return WEIR_ECORRUPT;
    }
    return 0;
}

/* Looks for next in one segment, which is pinned: as place_cursor. */
static int look_in(struct weir__log_reader *r, struct weir__segment *seg, uint64_t *out_last,
                   struct weir_error *err)
{
    struct weir__log *log = r->log;
    int rc = weir__log_index_find(log, seg, r->partition, WEIR__LOG_BY_SEQUENCE, r->next, &r->chunk,
                                  err);

    r->segment = seg->h.number;
    if (rc == 0) rc = place_cursor(r, out_last);
    while (rc == 0 && r->chunk.count > 0) { /* a hole ends a chunk early: look at the next */
        rc = weir__log_index_chunk(log, seg, r->partition, r->chunk.number + 1, &r->chunk, err);
        if (rc == 0) rc = place_cursor(r, out_last);
    }
    return rc;
}

/* Nothing in the segment can be read, not even where its batches lie: what is passed over with it
 * are the events up to the next segment's. */
static int unreadable(struct weir__log_reader *r, struct weir__segment *seg, struct weir_error *err)
{
    struct weir__log *log = r->log;
    struct weir__segment *behind = weir__log_segment_numbered(log, seg->h.number + 1);
    uint64_t end = log->durable_heads[r->partition].next_sequence;

    if (behind && weir__log_start_sequence(log, behind, r->partition, &end, NULL) != 0)
        end = log->durable_heads[r->partition].next_sequence;
    if (end <= r->next) return 0; /* none of it is in there */
    weir__reader_set_damage(r, end - 1);
    r->unread = seg->h.base;
    return weir__wrap(err, WEIR_EIO, "events %" PRIu64 " to %" PRIu64 " of partition %u", r->next,
                      end - 1, r->partition);
}

/* Looks for the batch that holds next from a segment on. The lock is let go of for disk reads. */
static int walk_from(struct weir__log_reader *r, uint64_t number, struct weir_error *err)
{
    struct weir__log *log = r->log;
    uint64_t last = 0;
    int rc = 0;

    for (; rc == 0; number++) {
        struct weir__segment *seg = weir__log_segment_numbered(log, number);

        if (!seg) { /* behind the newest: all that is left is gone */
            last = log->durable_heads[r->partition].next_sequence - 1;
            rc = WEIR_ECORRUPT;
            break;
        }
        weir__log_pin(seg);
        rc = look_in(r, seg, &last, err);
        if (rc == WEIR_EIO) rc = unreadable(r, seg, err);
        weir__log_unpin(log, seg);
    }
    if (rc != 1) r->segment = 0;
    return rc == WEIR_ECORRUPT ? missing(r, last, number - 1, err) : rc;
}

int weir__reader_locate(struct weir__log_reader *r, struct weir_error *err)
{
    struct weir__log *log = r->log;
    uint64_t number;
    int rc;

    if (r->segment && !weir__log_segment_numbered(log, r->segment)) r->segment = 0;
    for (uint32_t i = r->at; r->segment && i < r->chunk.count; i++)
        if (holds(weir__reader_entry(r, i), r->next)) {
            r->at = i;
            return 1;
        }
    number = r->segment;
    if (number && r->ahead && r->ahead->count && holds(entry_of_ahead(r), r->next)) {
        r->chunk = *r->ahead;
        r->at = 0;
        r->ahead->count = 0;
        r->ahead_known = false;
        return 1;
    }
    if (r->ahead) r->ahead->count = 0;
    r->ahead_known = false;
    if (number == 0 || r->chunk.count == 0 || r->next < weir__reader_entry(r, 0)->sequence) {
        rc = weir__log_segment_of(log, r->partition, r->next, &number, err);
        if (rc != 0) return rc;
    }
    rc = walk_from(r, number, err);
    if (r->next < log->begin_heads[r->partition].next_sequence ||
        (rc == 1 && !weir__log_segment_numbered(log, r->segment))) {
        r->segment = 0;
        return 0;
    }
    return rc;
}
