/* producer_file.h - who published what last, on disk: drawn in producer_file.c.
 *
 * The active segment tells of the producers that published in it. Of all others the file does: it
 * is written at every roll, before the next segment is, with those that published in the segment
 * that is left. So it outlives the expiry of every batch it tells of. */
#ifndef WEIR_LOG_PRODUCER_FILE_H
#define WEIR_LOG_PRODUCER_FILE_H

#include "log/producer.h"

#define WEIR__PRODUCER_FILE_VERSION 1u
#define WEIR__PRODUCERS_TIDY_BLOCKS 256u
#define WEIR__PRODUCER_FILE_NAME_BYTES 40
#define WEIR__PRODUCERS_TURN_UNKNOWN UINT64_MAX /* of a segment whose header is lost */

struct weir__log;

/* A generation that is being written to take the place of the file. */
struct weir__producer_tidy {
    struct weir__file *file; /* NULL: none is */
    uint64_t generation, blocks;
    uint64_t from, to;   /* this pass takes whose last batch lies between these offsets */
    uint64_t undone;     /* of the table when it began */
    int64_t not_before;  /* monotonic: when the next one may begin, after a failure */
    uint8_t *rows;       /* blocks that are not written yet */
    uint32_t row_blocks; /* full ones, */
    uint32_t records;    /* and records in the one behind them */
};

struct weir__producer_file {
    struct weir__file *file; /* NULL: there is none; the leader's */
    uint64_t generation;
    uint64_t next_generation; /* atomic */
    uint64_t blocks;          /* of the file; atomic: the leader writes it without the lock */
    uint64_t turn;            /* times something was appended; the leader's */
    uint64_t covered;         /* every batch below it is in a frame; atomic */
    bool damaged;             /* some bytes of it are wrong: a new generation will not have them */
    struct weir__producer_tidy next;
};

/* A range of the file that is unreadable. */
typedef void (*weir__producer_damage_fn)(void *user, const char *name, uint64_t at, uint64_t len);

/* recover.c: everything the file knows, into the log's table, before the active segment is walked.
 * Damage is told and survived. */
int weir__producer_file_load(struct weir__log *, struct weir_error *);

/* roll.c: appends and syncs those that have published since the last time. The leader's, without
 * the lock, when everything taken in is durable. WEIR_ENOSPACE: nothing has changed. WEIR_EFAILED:
 * the sync failed, the log must stop. */
int weir__producer_file_append(struct weir__log *, struct weir_error *);

/* upkeep.c: forgets the too old, and writes a new generation when most of the file is of no use
 * any more. A bounded piece per call; with the lock held, which is let go of. */
int weir__producer_file_tidy(struct weir__log *, struct weir_error *);

/* inspect.c: reads everything, changes nothing. */
int weir__producer_file_check(struct weir__log *, weir__producer_damage_fn, void *user,
                              struct weir_error *);

void weir__producer_file_close(struct weir__producer_file *);

/* ---- between the files of it ---- */

#define WEIR__PRODUCER_ROWS 64u    /* blocks read or written at once */
#define WEIR__PRODUCER_RECORDS 84u /* in a block */

struct weir__producer_head {
    uint32_t version; /* what is written has the newest */
    uint64_t generation;
    uint64_t blocks; /* of the file when it was complete, */
    uint64_t turn;   /* with the records of all appends up to this one */
};

/* What a block says of itself. */
struct weir__producer_block {
    uint64_t generation, number;
    uint64_t turn;    /* number of the append it belongs to; 0: it was there before all of them */
    uint64_t covered; /* log position up to which that append told of all batches */
    int64_t keep_ms;  /* retention's clock then */
    uint32_t records;
    uint32_t follow; /* blocks of the same append behind this one */
};

void weir__producer_file_name(uint64_t generation, char out[WEIR__PRODUCER_FILE_NAME_BYTES]);

/* Both fill the 4096 bytes at `to`; of a block, the records are there already. */
void weir__producer_head_encode(const struct weir__log *, const struct weir__producer_head *,
                                uint8_t *to);
void weir__producer_block_encode(const struct weir__log *, const struct weir__producer_block *,
                                 uint8_t *to);
/* False: these bytes are no head, or not that block. */
bool weir__producer_head_decode(const struct weir__log *, const uint8_t *from,
                                struct weir__producer_head *out);
bool weir__producer_block_decode(const struct weir__log *, const uint8_t *from, uint64_t generation,
                                 uint64_t number, struct weir__producer_block *out);
uint8_t *weir__producer_record(uint8_t *block, uint32_t number);

/* A new, empty file of the next generation; its name is not synced. */
int weir__producer_file_make(struct weir__log *, uint64_t *out_generation, struct weir__file **out,
                             struct weir_error *);
int weir__producer_file_remove(struct weir__log *, uint64_t generation, struct weir_error *);

#endif
