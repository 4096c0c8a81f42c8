#include "bench/histogram.h"

#include <assert.h>

/* Values below 2^BITS have a step each; above, the leading bits say which. */
static uint32_t step_of(uint64_t value)
{
    int shift;

    if (value >> WEIR__HISTOGRAM_BITS == 0) return (uint32_t)value;
    shift = 63 - __builtin_clzll(value) - WEIR__HISTOGRAM_BITS;
    return (uint32_t)shift * (1u << WEIR__HISTOGRAM_BITS) + (uint32_t)(value >> shift);
}

/* The largest value of a step. */
static uint64_t last_of(uint32_t step)
{
    uint32_t shift;

    if (step >> WEIR__HISTOGRAM_BITS == 0) return step;
    shift = (step >> WEIR__HISTOGRAM_BITS) - 1;
    step -= shift << WEIR__HISTOGRAM_BITS;
    return ((uint64_t)step << shift) + (((uint64_t)1 << shift) - 1);
}

void weir__histogram_add(struct weir__histogram *h, uint64_t value, uint64_t times)
{
    if (h->total == 0 || value < h->least) h->least = value;
    if (value > h->most) h->most = value;
    h->counts[step_of(value)] += times;
    h->total += times;
}

void weir__histogram_merge(struct weir__histogram *to, const struct weir__histogram *from)
{
    if (from->total == 0) return;
    if (to->total == 0 || from->least < to->least) to->least = from->least;
    if (from->most > to->most) to->most = from->most;
    for (uint32_t i = 0; i < WEIR__HISTOGRAM_STEPS; i++) to->counts[i] += from->counts[i];
    to->total += from->total;
}

uint64_t weir__histogram_at(const struct weir__histogram *h, double part)
{
    uint64_t rank, seen = 0, value;
    uint32_t step = 0;

    assert(part >= 0 && part <= 1);
    if (h->total == 0) return 0;
    if (part >= 1) return h->most;
    rank = (uint64_t)(part * (double)h->total);
    if ((double)rank < part * (double)h->total || rank == 0) rank++;
    while (step < WEIR__HISTOGRAM_STEPS && (seen += h->counts[step]) < rank) step++;
    if (step == WEIR__HISTOGRAM_STEPS) return h->most;
    value = last_of(step);
    if (value < h->least) return h->least;
    return value < h->most ? value : h->most;
}
