/* rebuild.c - a control file from the segments, when both of its copies are gone, or it is an older one
 * of which no segment is left at its end.
 *
 * What the headers know is taken over; what they cannot know is taken for the least that is proven:
 * on disk is what can be walked to, and the epoch is one that no opening can have had. */
#include <inttypes.h>

#include "log/recover.h"

static const struct weir__found *newest_of(const struct weir__recovery *r)
{
    const struct weir__found *newest = NULL;

    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++) newest = &r->found[i];
    return newest;
}

static bool has_number(const struct weir__recovery *r, uint64_t number)
{
    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++)
        if (r->found[i].h.number == number) return true;
    return false;
}

/* The numbers that lead up to the newest without a gap; a file without a header may be in one. */
static uint64_t first_number(const struct weir__recovery *r, uint64_t last)
{
    uint64_t first = last, gaps = 0;

    for (size_t i = 0; i < r->found_count; i++) gaps += !r->found[i].readable;
    for (uint64_t n = last; n-- > 1;) {
        if (has_number(r, n))
            first = n;
        else if (gaps-- == 0)
            break;
    }
    return first;
}

/* Whether a segment may belong in front of the row that leads up to the newest. */
static bool may_precede(const struct weir__recovery *r, const struct weir__found *f, uint64_t first)
{
    const struct weir__control *c = &r->log->control;

    return f->h.number < first && (r->no_control || f->h.number >= c->first_segment);
}

/* What lies in front of a gap has not expired, only because another segment is lost, and would be removed
 * if the row did not begin with it. The spare may be one that has: its header says what it was. An older
 * control file names those that had not expired then; without one a single segment is taken for the
 * spare. */
static uint64_t first_kept(const struct weir__recovery *r, uint64_t first)
{
    uint64_t lowest = first;
    size_t count = 0;

    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++) {
        const struct weir__found *f = &r->found[i];

        if (!may_precede(r, f, first)) continue;
        if (f->h.number < lowest) lowest = f->h.number;
        count++;
    }
    return count > (r->no_control ? 1 : 0) ? lowest : first;
}

int weir__rebuild_control(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__control *c = &log->control;
    const struct weir__found *newest = newest_of(r);
    uint32_t partitions = log->o.partitions;

    if (!newest)
        return weir__fail(r->err, WEIR_ECORRUPT,
                          "neither the control file nor the header of any segment can be read");
    c->version = 2;
    c->last_segment = newest->h.number;
    c->first_segment = first_kept(r, first_number(r, c->last_segment));
    c->watermark = WEIR__LOG_ORIGIN;
    c->epoch_start = UINT64_MAX;
    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++) {
        const struct weir__segment_header *h = &r->found[i].h;

        if (h->partitions > partitions) partitions = h->partitions;
        if (h->secret) c->secret = h->secret;
        if (h->epoch > c->epoch && h->epoch < UINT32_MAX / 2) c->epoch = h->epoch;
        if (h->keep.keep_ms > c->keep.keep_ms) c->keep.keep_ms = h->keep.keep_ms;
        if (h->keep.off_ms > c->keep.off_ms) c->keep.off_ms = h->keep.off_ms;
    }
    r->unsure = true;
    weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                        "%s, and was made again from segments %" PRIu64 " to %" PRIu64,
                        r->no_control ? "it cannot be read" : "it is an older one",
                        c->first_segment, c->last_segment);
    return weir__log_size(log, partitions, r->err);
}
