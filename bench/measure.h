/* measure.h - what a run cost, and what many runs say together.
 *
 * A disk and a shared machine are never twice the same, so nothing here is measured alone: our run
 * and the run it is compared with take turns, and what counts is the median of the ratios of
 * neighbours. */
#ifndef WEIR_BENCH_MEASURE_H
#define WEIR_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WEIR__BENCH_ROUNDS_MAX 101u

/* One run of one load. */
struct weir__bench_run {
    uint64_t events, batches, bytes; /* bytes of event bodies only */
    double seconds;
    double user_s, system_s; /* CPU of all threads of this process */
    double busy_s;           /* CPU of the whole machine, this process included */
    double p50_us, p99_us;   /* 0 unless the load measures single operations */
    uint32_t files_made;     /* where all files should have been recycled */
};

struct weir__bench_mark {
    int64_t at_ns;
    double user_s, system_s, busy_s;
};

void weir__bench_begin(struct weir__bench_mark *);

/* Fills the time and CPU members of run with what went by since begin. */
void weir__bench_end(const struct weir__bench_mark *, struct weir__bench_run *run);

double weir__bench_cpu_ns(const struct weir__bench_run *); /* per event */

/* Sorts values; count is 1 or more, part between 0 and 1. */
double weir__bench_percentile(double *values, size_t count, double part);

/* Whether SIGINT or SIGTERM is waiting. A bench blocks them, so that it can clean up first. */
bool weir__bench_interrupted(void);

/* One of the two that take turns. run does its preparations, then one measured run. */
struct weir__bench_side {
    const char *name;
    int (*run)(void *self, struct weir__bench_run *out, struct weir_error *);
    void *self;
};

struct weir__bench_pairs {
    uint32_t rounds;
    struct weir__bench_run ours[WEIR__BENCH_ROUNDS_MAX];
    struct weir__bench_run reference[WEIR__BENCH_ROUNDS_MAX]; /* unless there is none */
};

/* Runs each side once to warm up, then both in each round, the first of a round in turn.
 * reference may be NULL. WEIR_ECANCELED when the process was asked to end meanwhile. */
int weir__bench_take_turns(struct weir__bench_pairs *out, uint32_t rounds,
                           const struct weir__bench_side *ours,
                           const struct weir__bench_side *reference, struct weir_error *);

/* What a run is judged by. */
enum weir__bench_metric {
    WEIR__BENCH_EVENTS,  /* per second */
    WEIR__BENCH_BATCHES, /* per second */
    WEIR__BENCH_BYTES,   /* per second */
    WEIR__BENCH_CPU,     /* ns per event */
    WEIR__BENCH_P50      /* us */
};

struct weir__bench_summary {
    double ours, reference;        /* medians; reference 0 when there is none */
    double ratio, lowest, highest; /* of ours to its neighbour: median, and the two ends */
    double other_percent;          /* of all cores, used by others during our runs */
    uint32_t files_made;           /* in all our runs */
};

void weir__bench_summarize(const struct weir__bench_pairs *, enum weir__bench_metric,
                           bool has_reference, struct weir__bench_summary *out);

#endif
