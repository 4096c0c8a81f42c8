/* segment.h - one file of the log's row: header, batches, index. The bytes are drawn in segment.c.
 *
 * A segment's name means nothing; its header says which number it is. Numbers grow by one, and
 * base positions by the capacity of the one before. */
#ifndef WEIR_LOG_SEGMENT_H
#define WEIR_LOG_SEGMENT_H

#include "log/batch.h"
#include "log/control.h"
#include "log/producer.h"

#define WEIR__SEGMENT_VERSION 2u
#define WEIR__SEGMENT_BYTES_MIN (64u << 10)
#define WEIR__SEGMENT_NAME_BYTES 32

struct weir__index;

struct weir__segment_header {
    uint32_t version;             /* format; what is written has the newest */
    uint32_t partitions;          /* of the log when it was made */
    uint64_t secret;              /* the hub's; 0: of version 1 */
    uint64_t number;              /* 0: a spare, which is nothing yet, whatever it was before */
    uint64_t base;                /* log position of the file's byte 0 */
    uint64_t capacity;            /* bytes of the file, when nobody has changed its length */
    uint64_t previous_end;        /* log position where the batches of the segment before end */
    int64_t time_ms;              /* the newest enqueued time before this segment */
    struct weir__keep_stamp keep; /* when it was made; of version 1: time_ms */
    uint32_t epoch;               /* of the opening that made it */
    uint32_t heads_bytes;         /* heads of all partitions; of version 1: then producers */
    uint64_t producers;           /* the last append to the file of producers before it; 0: none */
};

struct weir__segment {
    struct weir__segment_header h;
    struct weir__batch_stamp stamp; /* of its batches */
    char name[WEIR__SEGMENT_NAME_BYTES];
    uint64_t data;              /* log position of the first batch */
    uint64_t end;               /* log position behind the last batch */
    uint64_t disk_bytes;        /* that its file takes */
    uint64_t hole_at, hole_len; /* in the file: released, or to be; 0: nothing */
    int64_t first_ms;           /* enqueued time of its first batch; 0: not known, or none */
    struct weir__file *file;    /* for writing, direct; of the active one, the spare, and one that
                                  has something to release */
    struct weir__file *read;    /* buffered; opened when needed */
    struct weir__index *index;  /* in memory: the active one's, or one that had to be rebuilt */
    uint32_t pins;              /* readers in the file right now */
    struct weir__head *start;   /* where its partitions begin, when that had to be worked out */
    uint32_t start_count;       /* partitions that start knows */
    bool headless; /* both header copies are bad: its batches are found by searching for them */
    bool lost;     /* there is no file with it: nothing in it can be served */
    bool spoilt;   /* some of it behind its end cannot be read, or its file is not as long as its
                      header says: it is not written to any more */
    bool removed;  /* no longer of the log: the last pin frees it */
};

/* Whether a file's name is that of a segment: NNNNNNNN.seg, with more digits once there were so many
 * files. */
bool weir__segment_named(const char *name, uint64_t *out_number);

/* Bytes a header and its heads take at the front of a segment, rounded to blocks. The same again
 * is kept at the end, behind the index. */
uint64_t weir__segment_front_bytes(uint32_t heads_bytes);

uint32_t weir__segment_heads_bytes(uint32_t partitions);

/* Writes both copies of header and heads. heads holds h->heads_bytes bytes. */
int weir__segment_write_header(struct weir__file *, const struct weir__segment_header *,
                               uint64_t hub_id, const uint8_t *heads, struct weir_error *);

/* Puts the header of a spare in the place of both copies; syncs it. The batches behind it stay. */
int weir__segment_mark_spare(struct weir__file *, uint64_t capacity, uint64_t hub_id,
                             uint64_t secret, struct weir_error *);

/* Reads the header alone, of whichever copy is good: that at the front, however long the file is, or
 * that at the end. WEIR_ECORRUPT: neither is. WEIR_EVERSION. */
int weir__segment_read_header(struct weir__file *, uint64_t hub_id,
                              struct weir__segment_header *out, int *out_bad_copies,
                              struct weir_error *);

/* Reads the heads as they were before the segment's first batch, for this many partitions: those
 * that the segment does not know had not begun. A segment of version 1 has producers, too; NULL:
 * they are not wanted. WEIR_ECORRUPT: neither copy is good. */
int weir__segment_read_heads(struct weir__file *, const struct weir__segment_header *,
                             uint32_t partitions, struct weir__head *out,
                             struct weir__producers *producers, struct weir_error *);

/* What a partition is like behind a batch. */
static inline struct weir__head weir__batch_head(const struct weir__batch_header *h)
{
    return (struct weir__head){h->sequence + h->count, h->position + h->count - 1, h->time_ms};
}

/* How many of the two copies of header and heads are bad. */
int weir__segment_check_copies(struct weir__file *, const struct weir__segment_header *,
                               int *out_bad, struct weir_error *);

#endif
