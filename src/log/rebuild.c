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

    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++)
        if (r->found[i].h.number > 0) newest = &r->found[i];
    return newest;
}

/* A segment in front of a gap has not expired: another is lost. (Or it was just about to become the spare
 * when the process ended; then it is served once more.) An older control file names those that had not
 * expired then. */
static uint64_t oldest_of(const struct weir__recovery *r, uint64_t newest)
{
    uint64_t from = r->no_control ? 1 : r->log->control.first_segment, oldest = newest;

    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++) {
        uint64_t number = r->found[i].h.number;

        if (number >= from && number < oldest) oldest = number;
    }
    return oldest;
}

int weir__rebuild_refuse(struct weir__recovery *r)
{
    return weir__fail(r->err, WEIR_ECORRUPT,
                      "neither the control file nor the header of any segment can be read");
}

/* What all headers know, that of a spare among them. */
static void learn(struct weir__recovery *r, uint32_t *partitions)
{
    struct weir__control *c = &r->log->control;

    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++) {
        const struct weir__segment_header *h = &r->found[i].h;

        if (h->partitions > *partitions) *partitions = h->partitions;
        if (h->secret) c->secret = h->secret;
        if (h->epoch > c->epoch && h->epoch < UINT32_MAX / 2) c->epoch = h->epoch;
        if (h->keep.keep_ms > c->keep.keep_ms) c->keep.keep_ms = h->keep.keep_ms;
        if (h->keep.off_ms > c->keep.off_ms) c->keep.off_ms = h->keep.off_ms;
    }
}

/* With the secret, segments are known by their batches, too: when no header names any, they follow an empty
 * one. */
int weir__rebuild_control(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__control *c = &log->control;
    const struct weir__found *newest = newest_of(r);
    uint32_t partitions = log->o.partitions;

    learn(r, &partitions);
    if (!newest && c->secret == 0) return weir__rebuild_refuse(r);
    c->version = 2;
    c->last_segment = newest ? newest->h.number : 1;
    c->first_segment = oldest_of(r, c->last_segment);
    c->watermark = WEIR__LOG_ORIGIN;
    c->epoch_start = UINT64_MAX;
    r->unsure = true;
    weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                        "%s, and was made again from segments %" PRIu64 " to %" PRIu64,
                        r->no_control ? "it cannot be read" : "it is an older one",
                        c->first_segment, c->last_segment);
    return weir__log_size(log, partitions, r->err);
}
