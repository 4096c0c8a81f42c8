/* control.h - what must be known before a log's segments can be read: drawn in control.c. */
#ifndef WEIR_LOG_CONTROL_H
#define WEIR_LOG_CONTROL_H

#include <stdbool.h>

#include "log/fs.h"

/* By how much the epoch is raised when a control file had to be made again: more openings than can
 * have gone by unseen. */
#define WEIR__CONTROL_EPOCH_STEP 1024u

/* Where a partition stands. */
struct weir__head {
    uint64_t next_sequence;
    uint64_t last_offset; /* of the newest event, 0: none ever */
    int64_t last_time_ms; /* its enqueued time */
};

#define WEIR__HEAD_BYTES 24u

void weir__heads_encode(const struct weir__head *, uint32_t count, uint8_t *to);
void weir__heads_decode(const uint8_t *from, uint32_t count, struct weir__head *out);

/* A moment on retention's clock: how long the machine had been up, and off; see retention_clock.h. */
struct weir__keep_stamp {
    int64_t keep_ms, off_ms;
};

/* Retention's clock at some moment, and what the machine's clocks said then. */
struct weir__keep_time {
    int64_t keep_ms;
    int64_t wall_ms;
    int64_t up_ms;
    uint64_t boot; /* 0: not known */
    int64_t off_ms, owed_ms;
};

/* The segment being appended to, as its header has it: should both copies of that go bad, it can
 * still be read. All 0: not known. */
struct weir__control_active {
    uint64_t base, capacity;
    uint64_t data; /* log position of the first batch */
    uint64_t name; /* the number in its file's name */
};

struct weir__control {
    uint32_t version; /* of the copy that was read; what is written has the newest */
    uint64_t hub_id;
    uint64_t secret; /* of the hub; 0: of version 1, which had none */
    uint64_t generation;
    uint64_t first_segment; /* the oldest that is kept */
    uint64_t last_segment;  /* the one being appended to */
    uint64_t watermark;     /* every position below it is on disk */
    uint64_t epoch_start;   /* batches from here on carry the epoch or a later one */
    uint32_t epoch;
    uint32_t partitions;
    struct weir__keep_time keep;
    struct weir__control_active active;
    struct weir__head *heads; /* at the watermark, one per partition; the control's own */
    uint8_t *copy;     /* one copy as bytes, so that writing needs no memory; NULL: it does */
    uint64_t stale_at; /* where the file has a copy of version 1 to be erased; 0: nowhere */
};

/* Both counts of retention's clock, for the age of other things. */
static inline int64_t weir__control_keep_ms(const struct weir__control *c)
{
    return c->keep.keep_ms + c->keep.off_ms;
}

/* Room for the heads of this many partitions; new ones are zero. WEIR_ENOMEM. */
int weir__control_resize(struct weir__control *, uint32_t partitions, struct weir_error *);
void weir__control_fini(struct weir__control *);

/* Reads the newer good copy into *c, whose hub_id is set by the caller, 0: any. A bad copy beside a
 * good one is survived; *out_bad_copies counts. WEIR_ECORRUPT: neither is good. WEIR_EVERSION: of
 * another format version. WEIR_EINVAL: made
 * for another hub. */
int weir__control_read(struct weir__file *, struct weir__control *, int *out_bad_copies,
                       struct weir_error *);

/* Writes the next generation over the older copy, and syncs unless told not to. On error c is as
 * before and the older state still stands on disk. */
int weir__control_write(struct weir__file *, struct weir__control *, bool sync,
                        struct weir_error *);

#endif
