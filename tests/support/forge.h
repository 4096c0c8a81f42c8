/* forge.h - bodies of a sender who knows the log's format by heart.
 *
 * He knows where his batch will lie, the hub's id, the epoch and the sequence numbers, and puts
 * headers of batches into its body: of format version 1, which has no secret, and of version 2 with
 * guessed ones. A log that believes one after a loss of power serves what nobody sent. */
#ifndef WEIR_SUPPORT_FORGE_H
#define WEIR_SUPPORT_FORGE_H

#include "log/log.h"

struct forgery {
    uint64_t position; /* of the batch; 0: an honest one */
    uint64_t hub_id;
    uint64_t sequence; /* that comes next in the partition */
    uint32_t epoch;
    uint32_t partition;
};

/* What a batch to this partition that is appended now would have to know. */
struct forgery forge_plan(struct weir__log *, uint32_t partition);

/* Puts headers into a body, behind its first bytes. The same forgery makes the same bytes. */
void forge_body(const struct forgery *, uint8_t *body, size_t len);

#endif
