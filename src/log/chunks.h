/* chunks.h - the bytes of a file in memory.
 *
 * They are charged for as a whole when they grow, against a budget that several share, so what was
 * grown is there when it is written; a chunk takes memory only when it is first written to. A
 * chunk that was released is not charged for until it is written to again. No locks but the
 * budget's own: whoever has chunks has one for them. */
#ifndef WEIR_LOG_CHUNKS_H
#define WEIR_LOG_CHUNKS_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/thread.h"

#define WEIR__CHUNK_BYTES (64u << 10)

struct weir__budget {
    struct weir__mutex lock;
    uint64_t used, max;
};

struct weir__chunks {
    uint8_t **at; /* NULL in it: all zeros */
    uint64_t size;
    size_t holes; /* of them were released */
    struct weir__budget *budget;
};

/* Longer, with zeros, or shorter. WEIR_ENOSPACE: the budget is used up, and nothing has changed. */
int weir__chunks_resize(struct weir__chunks *, uint64_t size, struct weir_error *);

/* Whole chunks in this range are zeros and are not charged for any more. Fill: they are again, all
 * of them. WEIR_ENOSPACE: the budget is used up, and nothing has changed. */
void weir__chunks_release(struct weir__chunks *, uint64_t at, uint64_t len);
int weir__chunks_fill(struct weir__chunks *, struct weir_error *);
uint64_t weir__chunks_used(const struct weir__chunks *); /* bytes charged for */

/* All of it lies within size. */
int weir__chunks_write(struct weir__chunks *, struct weir__bytes, uint64_t at, struct weir_error *);
void weir__chunks_read(const struct weir__chunks *, uint8_t *to, size_t len, uint64_t at);

void weir__chunks_fini(struct weir__chunks *);

#endif
