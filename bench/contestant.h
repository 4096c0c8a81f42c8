/* contestant.h - who can be measured: ways to spend a run.
 *
 * A case lets two of them take turns. A trial is what one of them needs for that: it begins once,
 * runs many times and ends once. */
#ifndef WEIR_BENCH_CONTESTANT_H
#define WEIR_BENCH_CONTESTANT_H

#include "bench/load.h"
#include "bench/place.h"
#include "bench/raw.h"
#include "bench/reading.h"
#include "bench/subject.h"

/* What all trials share. */
struct weir__arena {
    struct weir__place place;
    struct weir__raw *raw;
    struct weir__subject *floor;
    struct weir__subject *hub; /* with one partition and recycled segments; NULL until wanted */
    uint32_t haste;            /* volumes are divided by it */
};

/* Makes the place and what the disk's own contestants work on. */
int weir__arena_open(struct weir__arena *, const char *under, struct weir_error *);
void weir__arena_close(struct weir__arena *);

/* What they are to do. */
struct weir__task {
    const struct weir__load_options *load; /* NULL: the disk needs none */
    uint64_t bytes;                        /* as sent, of one run; or of what is there to be read */
    uint32_t partitions;
    const struct weir__subject_ops *subject;
};

struct weir__trial {
    struct weir__arena *arena;
    const struct weir__task *task;
    struct weir__load *load;
    struct weir__subject *subject; /* its own, or the arena's hub */
    struct weir__reading *reading;
    uint32_t partitions;
    char dir[WEIR__PLACE_PATH_BYTES]; /* of the subject */
};

struct weir__contestant {
    const char *name;                                        /* when it stands beside ours */
    int (*begin)(struct weir__trial *, struct weir_error *); /* NULL: nothing to prepare */
    int (*run)(void *trial, struct weir__bench_run *, struct weir_error *);
};

/* The disk alone. Writes go over written blocks, 1 MiB with a sync each, or 4 KiB. */
extern const struct weir__contestant weir__contestant_raw_write;
extern const struct weir__contestant weir__contestant_raw_write_buffered;
extern const struct weir__contestant weir__contestant_raw_unwritten;
extern const struct weir__contestant weir__contestant_raw_new;
extern const struct weir__contestant weir__contestant_raw_sync;
extern const struct weir__contestant weir__contestant_raw_sync_buffered;
extern const struct weir__contestant weir__contestant_raw_read; /* buffered, sequential, cold */

/* The task's load on the floor; fresh: on blocks that were never written, one pass. */
extern const struct weir__contestant weir__contestant_floor;
extern const struct weir__contestant weir__contestant_floor_fresh;

/* The task's load on its subject. Fresh: a new folder each time, no block was written before. Hot:
 * on recycled segments whose old bytes are in the page cache, as readers leave them. Cold: on
 * recycled segments that are not. */
extern const struct weir__contestant weir__contestant_fresh;
extern const struct weir__contestant weir__contestant_hot;
extern const struct weir__contestant weir__contestant_cold;
extern const struct weir__contestant
    weir__contestant_one_partition; /* hot, whatever the task says */

/* One batch at a time on recycled segments: the time until the call returns, or the completion. */
extern const struct weir__contestant weir__contestant_waiting;
extern const struct weir__contestant weir__contestant_async;

extern const struct weir__contestant weir__contestant_tail_reader; /* what is in the log's memory */
extern const struct weir__contestant weir__contestant_cold_reader; /* one partition, from disk */

/* name is that of a folder in the place; ended also after an error. */
int weir__trial_begin(struct weir__trial *, const struct weir__contestant *, struct weir__arena *,
                      const struct weir__task *, const char *name, struct weir_error *);
void weir__trial_end(struct weir__trial *);

#endif
