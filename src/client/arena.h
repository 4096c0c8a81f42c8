/* arena.h - memory for what lives until the next receive: given out piece by piece, taken back all
 * at once, and kept for the next time. */
#ifndef WEIR_CLIENT_ARENA_H
#define WEIR_CLIENT_ARENA_H

#include <stddef.h>

struct weir__arena_chunk;

struct weir__arena {
    struct weir__arena_chunk *first, *now; /* `now` is the one that is given from */
    size_t used;                           /* of `now` */
    size_t total, total_max;               /* bytes of all chunks */
};

void weir__arena_init(struct weir__arena *, size_t total_max);
void weir__arena_fini(struct weir__arena *);

/* Aligned for anything; NULL when the maximum or memory is exhausted. */
void *weir__arena_take(struct weir__arena *, size_t len);

void weir__arena_reset(struct weir__arena *);

#endif
