/* gaps.c - whose events were in unreadable ranges of the segment that was being appended to.
 *
 * No sequence number may be given twice, also when the batch that used it cannot be read. A range
 * below the watermark is covered by the heads in the control file. Above it, the batch behind the
 * range tells of the one before it; when that does not explain all of the range, each partition
 * without a later batch passes over as many numbers as can have been in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/recover.h"

int weir__gaps_init(struct weir__gaps *g, uint32_t partitions, uint64_t watermark,
                    struct weir_error *err)
{
    *g = (struct weir__gaps){.watermark = watermark, .partitions = partitions};
    g->lost = calloc(partitions, sizeof *g->lost);
    return g->lost ? 0 : weir__fail(err, WEIR_ENOMEM, "out of memory");
}

void weir__gaps_fini(struct weir__gaps *g)
{
    free(g->lost);
    g->lost = NULL;
}

/* Books the range that was met last: to the partition that the batch behind it names, when that
 * explains all of it, else to nobody. */
static void settle(struct weir__gaps *g, const struct weir__batch_before *before)
{
    uint64_t known = g->watermark, bytes = g->to - g->from;

    if (g->to > known && before && before->bytes == bytes && before->partition < g->partitions) {
        g->lost[before->partition] += before->count;
    } else if (g->to > known) {
        g->unknown_from = g->from;
        g->unknown_bytes += g->to - (g->from > known ? g->from : known);
    }
    g->from = g->to = 0;
}

void weir__gaps_batch(struct weir__gaps *g, const struct weir__batch_header *h)
{
    settle(g, h->position == g->to ? &h->before : NULL);
    g->lost[h->partition] = 0; /* its own number says how many are missing */
}

void weir__gaps_damage(struct weir__gaps *g, uint64_t from, uint64_t to)
{
    if (g->to != from) {
        settle(g, NULL);
        g->from = from;
    }
    g->to = to;
}

bool weir__gaps_lose(struct weir__gaps *g, const struct weir__control *c,
                     const struct weir__segment *seg)
{
    uint64_t end = seg->h.base + seg->h.capacity;

    if (c->watermark >= end || (c->active.capacity && c->active.name == 0)) return false;
    weir__gaps_damage(g, c->watermark, end);
    return true;
}

void weir__gaps_pass(struct weir__gaps *g, const struct weir__head *known, struct weir__head *heads)
{
    settle(g, NULL);
    for (uint32_t i = 0; i < g->partitions; i++) {
        struct weir__head *head = &heads[i];

        if (head->next_sequence < known[i].next_sequence) *head = known[i];
        if (g->unknown_bytes && head->last_offset < g->unknown_from)
            head->next_sequence += g->unknown_bytes; /* no batch holds more events than bytes */
        head->next_sequence += g->lost[i];
    }
}

void weir__guess_text(char out[WEIR__GUESS_BYTES], uint64_t first, uint64_t sure, uint64_t last)
{
    if (sure > first)
        snprintf(out, WEIR__GUESS_BYTES,
                 ": at least %" PRIu64 " to %" PRIu64 " were stored, and numbers up to %" PRIu64
                 " are not given again",
                 first, sure - 1, last);
    else
        snprintf(out, WEIR__GUESS_BYTES,
                 ": how many were stored is not known, and numbers up to %" PRIu64
                 " are not given again",
                 last);
}
