/* raw.h - what the disk itself can do, with nothing of ours in between.
 *
 * A raw is one file that was written once and is then written over, which is the best case of a
 * durable write: no block is allocated and no journal is involved. */
#ifndef WEIR_BENCH_RAW_H
#define WEIR_BENCH_RAW_H

#include <stdbool.h>

#include "bench/measure.h"

#define WEIR__RAW_WRITE_BYTES_MAX (1u << 20)

struct weir__raw;

/* Makes a file of `bytes`, a multiple of 1 MiB, and writes all of it. */
int weir__raw_open(struct weir__raw **out, const char *path, uint64_t bytes, struct weir_error *);
void weir__raw_close(struct weir__raw *); /* the file stays */

/* Writes over the file, write_bytes at a time (a multiple of 4 KiB), fdatasync after each; goes
 * round at its end. direct: past the page cache, where the file system can. */
int weir__raw_overwrite(struct weir__raw *, bool direct, size_t write_bytes, uint32_t writes,
                        struct weir__bench_run *, struct weir_error *);

/* As weir__raw_overwrite past the page cache, from the beginning and without going round, into
 * blocks that the file system calls unwritten: those the file has, or, `anew`, others that the disk
 * has not seen for this file either. Afterwards the file is one that was written once. */
int weir__raw_write_fresh(struct weir__raw *, bool anew, size_t write_bytes, uint32_t writes,
                          struct weir__bench_run *, struct weir_error *);

/* Reads the whole file from its beginning through the page cache, 1 MiB at a time, after its pages
 * were dropped. */
int weir__raw_read(struct weir__raw *, struct weir__bench_run *, struct weir_error *);

#endif
