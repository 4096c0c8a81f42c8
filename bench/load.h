/* load.h - batches of equal events, prepared once and sent over and over.
 *
 * One thread sends. It keeps up to a number of batches under way and sleeps when they are, until
 * half of them have come back: a producer that does not care to be woken for each. */
#ifndef WEIR_BENCH_LOAD_H
#define WEIR_BENCH_LOAD_H

#include "bench/measure.h"
#include "bench/subject.h"

#define WEIR__LOAD_WAITS_MAX 4096u /* single operations in one run */

struct weir__load_options {
    uint32_t event_bytes;  /* of a body */
    uint32_t batch_events; /* 1: each event is sent alone, as a plain message */
    uint32_t in_flight;    /* batches under way at most */
};

struct weir__load;

int weir__load_new(struct weir__load **out, const struct weir__load_options *, struct weir_error *);
void weir__load_free(struct weir__load *);

/* How many batches hold so many bytes as they are sent. */
uint64_t weir__load_batches(const struct weir__load *, uint64_t bytes);

/* Sends that many batches to the partitions in turn, and ends when the last one is durable. */
int weir__load_flood(struct weir__load *, struct weir__subject *, uint32_t partitions,
                     uint64_t batches, struct weir__bench_run *, struct weir_error *);

/* Sends one batch after another, each when the one before is durable, and measures the time until
 * the call returns (wait) or until the completion runs (async). */
int weir__load_wait(struct weir__load *, struct weir__subject *, uint32_t batches,
                    struct weir__bench_run *, struct weir_error *);
int weir__load_async(struct weir__load *, struct weir__subject *, uint32_t batches,
                     struct weir__bench_run *, struct weir_error *);

/* One of the prepared batches. */
const struct weir__parcel *weir__load_parcel(const struct weir__load *, uint64_t number);

#endif
