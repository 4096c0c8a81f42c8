/* format1.h - a small log as the first format version had it, written by hand: what this weir reads
 * of its predecessor must not depend on what it writes itself. */
#ifndef WEIR_SUPPORT_FORMAT1_H
#define WEIR_SUPPORT_FORMAT1_H

#include "support/history.h"
#include "support/simfs.h"

#define FORMAT1_PRODUCER 7u    /* has published to partition FORMAT1_PRODUCER_IN */
#define FORMAT1_PRODUCER_IN 1u /* in the first segment only */
#define FORMAT1_SEGMENT_BYTES (1u << 20)

/* Two segments, the first sealed with its index; control file; everything durable. The batches are
 * noted in the history as acknowledged, with their places. */
void format1_write(struct simfs *, const char *dir, uint64_t hub_id, int64_t now_ms,
                   struct history *);

#endif
