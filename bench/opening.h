/* opening.h - `weir bench log --open`: how a large folder opens after its writer was killed. */
#ifndef WEIR_BENCH_OPENING_H
#define WEIR_BENCH_OPENING_H

#include "bench/report.h"

/* Fills a hub of 1,024 partitions with that many bytes of events, in a folder of its own below
 * `under`. Then, several times: another process publishes and is killed in the middle of it, the
 * caches are dropped, and a new process opens the hub. Reports the longest opening and its memory,
 * checks that nothing acknowledged is missing, and what an empty hub takes on disk.
 * Starts processes: call it while there is only one thread. */
int weir__bench_opening(struct weir__report *, const char *under, uint64_t bytes,
                        struct weir_error *);

#endif
