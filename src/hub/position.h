/* position.h - where in a partition a receiver begins. */
#ifndef WEIR_HUB_POSITION_H
#define WEIR_HUB_POSITION_H

#include "hub/hub.h"

enum weir__position_kind {
    WEIR__FROM_EARLIEST, /* the oldest event that is kept */
    WEIR__FROM_LATEST,   /* the next one to come after attaching */
    WEIR__FROM_OFFSET,
    WEIR__FROM_SEQUENCE,
    WEIR__FROM_TIME, /* enqueued, milliseconds since 1970 */
    WEIR__POSITION_KINDS
};

/* The first event behind value, or at it when inclusive. -1 as an offset or a sequence number is
 * before the first. What has expired gives the oldest that is kept. */
struct weir__position {
    enum weir__position_kind kind;
    bool inclusive;
    int64_t value;
};

/* The sequence number that a position means now. The next event to come may be named by its
 * sequence number, too; anything further is WEIR_EINVAL, with Azure's words. */
int weir__position_find(struct weir__hub *, uint32_t partition, const struct weir__position *,
                        uint64_t *out_sequence, struct weir_error *);

#endif
