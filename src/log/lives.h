/* lives.h - which segments a file has been, by the batches in it.
 *
 * A batch says its log position, so with its place in the file it says where the segment began that it is
 * of. A file that was used again can hold batches of several. */
#ifndef WEIR_LOG_LIVES_H
#define WEIR_LOG_LIVES_H

#include "log/batch.h"

#define WEIR__LIVES_MAX 8 /* of one file, that are told apart */

/* Batches of one segment in a file. */
struct weir__life {
    uint64_t base;
    uint64_t secret; /* 0: of format version 1, where whoever sends can make one up */
    struct weir__batch_header first;
};

struct weir__lives {
    struct weir__life at[WEIR__LIVES_MAX];
    int count;
};

/* Reads a whole file for headers of the hub's batches: of those with its secret, and of those of format
 * version 1. */
int weir__lives_read(struct weir__file *, uint64_t hub_id, uint64_t secret, struct weir__lives *out,
                     struct weir_error *);

/* NULL: the file has none of that segment. */
const struct weir__life *weir__lives_of(const struct weir__lives *, uint64_t base, uint64_t secret);

/* The first of the segments with a secret that begin at `from` or behind it; NULL: there is none. A secret
 * of 0 is none. */
const struct weir__life *weir__lives_behind(const struct weir__lives *, uint64_t from,
                                            uint64_t secret);

#endif
