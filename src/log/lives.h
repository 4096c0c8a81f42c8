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

/* NULL: none was seen of that segment. */
const struct weir__life *weir__lives_of(const struct weir__lives *, uint64_t base, uint64_t secret);

/* What the file is now, of all that it has been: the newest of those with the secret. NULL: there is none, or
 * the secret is 0, which is none. */
const struct weir__life *weir__lives_newest(const struct weir__lives *, uint64_t secret);

#endif
