/* decode.h - from a stored message to the caller's event. */
#ifndef WEIR_CLIENT_DECODE_H
#define WEIR_CLIENT_DECODE_H

#include "client/arena.h"
#include "hub/batch.h"
#include "weir/event.h"

/* Points into the messages where it can and into the arena where it must. A message that its sender
 * encoded badly becomes an event of WEIR_BODY_UNREADABLE: it must not stop the partition.
 *
 * Decodes up to the first event that does not follow the one before it in the partition. Returns how
 * many were decoded; 0 when there is no memory for the first: WEIR_ENOMEM. */
uint32_t weir__decode_events(const struct weir__event *, uint32_t count, uint32_t partition,
                             struct weir__arena *, struct weir_event *out, struct weir_error *);

/* The same for one message as a hub delivers it: sequence number, offset and time are among its
 * annotations. 0 or WEIR_ENOMEM. */
int weir__decode_delivery(struct weir__bytes message, uint32_t partition, struct weir__arena *,
                          struct weir_event *out, struct weir_error *);

#endif
