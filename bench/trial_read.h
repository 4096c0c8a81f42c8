/* trial_read.h - the receiving side of a trial: a thread for each partition. */
#ifndef WEIR_BENCH_TRIAL_READ_H
#define WEIR_BENCH_TRIAL_READ_H

#include "bench/trial.h"

struct weir__trial_readers;

/* Opens a receiver for each partition that has something to give: for e2e behind its newest event.
 * run is what own events begin with. */
int weir__trial_readers_open(struct weir__trial_readers **out, const struct weir__trial_options *,
                             uint64_t run, struct weir_error *);

int weir__trial_readers_start(struct weir__trial_readers *, struct weir_error *);

/* So many have been received. */
uint64_t weir__trial_readers_count(struct weir__trial_readers *);

/* Waits until all readers have come to their end, or have so many events together (for receive, 0
 * is no limit), or until nothing came for a while: WEIR_ETIMEDOUT. Shows progress. Then stops them and
 * fills trial->received but for its CPU, others and times. The first failure of a reader counts. */
int weir__trial_readers_finish(struct weir__trial_readers *, uint64_t expected,
                               struct weir__trial *, struct weir_error *);

void weir__trial_readers_close(struct weir__trial_readers *); /* NULL is fine */

#endif
