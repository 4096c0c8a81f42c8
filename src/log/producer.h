/* producer.h - what is remembered of idempotent producers: per (partition, id) the last batch.
 *
 * Bounded: when WEIR__PRODUCERS_MAX are known the one that was silent longest is forgotten. */
#ifndef WEIR_LOG_PRODUCER_H
#define WEIR_LOG_PRODUCER_H

#include <stdbool.h>

#include "log/log.h"

#define WEIR__PRODUCERS_MAX 4096u
#define WEIR__PRODUCER_BYTES 48u /* stored form */

struct weir__producer {
    uint64_t id;               /* 0: free place */
    uint64_t sequence, offset; /* of the last batch's first event in the log */
    int64_t time_ms;
    uint32_t partition;
    uint32_t next;  /* the producer sequence that may come next */
    uint32_t count; /* events of the last batch; 0: none yet */
    uint16_t epoch;
};

struct weir__producers {
    struct weir__producer *at; /* NULL until the first */
    uint32_t count, cap;
};

void weir__producers_fini(struct weir__producers *);

/* NULL when unknown. Valid until the next put. */
struct weir__producer *weir__producers_find(struct weir__producers *, uint32_t partition,
                                            uint64_t id);

/* Makes a place for a producer, or gives the one it has. NULL: out of memory. */
struct weir__producer *weir__producers_put(struct weir__producers *, uint32_t partition,
                                           uint64_t id);

/* Forgets one, e.g. when what made it known was undone. */
void weir__producers_drop(struct weir__producers *, uint32_t partition, uint64_t id);

/* Judges a batch against what is known (NULL: nothing): 0 it may be stored, *out_duplicate: it is
 * the last batch once more; else WEIR_EFENCED or WEIR_ESEQUENCE with text. */
int weir__producer_check(const struct weir__producer *, const struct weir__log_producer *,
                         uint32_t count, bool *out_duplicate, struct weir_error *);

void weir__producer_encode(const struct weir__producer *, uint8_t *to);
void weir__producer_decode(const uint8_t *from, struct weir__producer *out);

#endif
