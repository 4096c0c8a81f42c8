/* histogram.h - how often which value was seen, in bounded memory however many there are: each
 * doubling of the value has 128 steps, so that a percentile is at most 0.8 % too large. */
#ifndef WEIR_BENCH_HISTOGRAM_H
#define WEIR_BENCH_HISTOGRAM_H

#include <stdint.h>

#define WEIR__HISTOGRAM_BITS 7 /* of a step within a doubling */
#define WEIR__HISTOGRAM_STEPS ((64 - WEIR__HISTOGRAM_BITS + 1) << WEIR__HISTOGRAM_BITS)

/* Zeroed it is empty. Some 58 KiB. */
struct weir__histogram {
    uint64_t counts[WEIR__HISTOGRAM_STEPS];
    uint64_t total;
    uint64_t least, most; /* as they were, when total is not 0 */
};

/* A value that was seen so many times, 1 or more. */
void weir__histogram_add(struct weir__histogram *, uint64_t value, uint64_t times);
void weir__histogram_merge(struct weir__histogram *to, const struct weir__histogram *from);

/* The value that this part, 0 to 1, of all values do not exceed; 0 when there are none. */
uint64_t weir__histogram_at(const struct weir__histogram *, double part);

#endif
