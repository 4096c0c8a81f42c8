/* reading.h - a log with something in it, and readers that go through it. */
#ifndef WEIR_BENCH_READING_H
#define WEIR_BENCH_READING_H

#include "bench/load.h"

struct weir__reading;

/* Makes a log in dir and fills it with that many bytes of the load, to the partitions in turn.
 * cold: closes and opens it again, so that none of it is in the log's own memory. */
int weir__reading_open(struct weir__reading **out, const char *dir, struct weir__load *,
                       uint32_t partitions, uint64_t bytes, bool cold, struct weir_error *);
void weir__reading_close(struct weir__reading *);

/* Reads one partition from its beginning to its end, the next one in each run, after the files were
 * dropped from the page cache. */
int weir__reading_cold(struct weir__reading *, struct weir__bench_run *, struct weir_error *);

/* Reads what is in the log's memory so many times. It is an error when that touched the disk. */
int weir__reading_tail(struct weir__reading *, uint32_t times, struct weir__bench_run *,
                       struct weir_error *);

#endif
