/* mark.h - idempotent producers: the mark that such a client puts on its batches, so that one that
 * is sent twice is stored once.
 *
 * On attach the client asks for it by a capability, and says which producer it is, or leaves that
 * to us; we answer with id, epoch and the last sequence number, in properties of the link. Each
 * event then carries the three as annotations:
 *
 *   com.microsoft:producer-id               long
 *   com.microsoft:producer-epoch            short
 *   com.microsoft:producer-sequence-number  int */
#ifndef WEIR_SERVER_MARK_H
#define WEIR_SERVER_MARK_H

#include "amqp/engine.h"
#include "hub/hub.h"
#include "server/errors.h"

#define WEIR__MARK_CAPABILITY "com.microsoft:idempotent-producer"
#define WEIR__MARK_BYTES 160 /* of the properties */

struct weir__mark {
    int64_t id, epoch, sequence; /* the last that was published */
};

/* From the properties of an attach to a partition: from here on older epochs of the producer are
 * refused. WEIR_EINVAL: out of range. WEIR_EFENCED: a newer epoch was there. */
int weir__mark_open(struct weir__mark *, const struct weir__amqp_value *properties,
                    struct weir__hub *, uint32_t partition, struct weir__refusal *);

/* The properties of our answer. */
struct weir__amqp_value weir__mark_properties(const struct weir__mark *,
                                              uint8_t to[WEIR__MARK_BYTES]);

/* What a message is marked with: its first event. id is 0 when it is not. */
int weir__mark_read(uint32_t format, struct weir__bytes payload, struct weir__log_producer *out,
                    struct weir_error *);

#endif
