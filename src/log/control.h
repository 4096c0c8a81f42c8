/* control.h - what must be known before a log's segments can be read: drawn in control.c. */
#ifndef WEIR_LOG_CONTROL_H
#define WEIR_LOG_CONTROL_H

#include <stdbool.h>

#include "log/fs.h"

/* Where a partition stands. */
struct weir__head {
    uint64_t next_sequence;
    uint64_t last_offset; /* of the newest event, 0: none ever */
    int64_t last_time_ms; /* its enqueued time */
};

#define WEIR__HEAD_BYTES 24u

void weir__heads_encode(const struct weir__head *, uint32_t count, uint8_t *to);
void weir__heads_decode(const uint8_t *from, uint32_t count, struct weir__head *out);

struct weir__control {
    uint64_t hub_id;
    uint64_t generation;
    uint64_t first_segment; /* the oldest that is kept */
    uint64_t last_segment;  /* the one being appended to */
    uint64_t watermark;     /* every position below it is on disk */
    uint64_t epoch_start;   /* batches from here on carry the epoch or a later one */
    int64_t keep_ms;        /* how far retention's clock has come */
    uint32_t epoch;
    uint32_t partitions;
    struct weir__head *heads; /* at the watermark; the caller's, one per partition */
};

/* Reads the newer good copy into *c, whose partitions and heads are set by the caller. A bad copy
 * beside a good one is survived; *out_bad_copies counts. WEIR_EVERSION: of another format version.
 * WEIR_EINVAL: made with other partitions or for another hub. */
int weir__control_read(struct weir__file *, struct weir__control *, int *out_bad_copies,
                       struct weir_error *);

/* Writes the next generation over the older copy, and syncs unless told not to. On error c is as
 * before and the older state still stands on disk. */
int weir__control_write(struct weir__file *, struct weir__control *, bool sync,
                        struct weir_error *);

#endif
