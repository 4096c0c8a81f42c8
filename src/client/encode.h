/* encode.h - from the caller's events to a batch.
 *
 * An encoder keeps its memory from batch to batch, so that encoding an event allocates nothing once
 * it has grown. One thread at a time. */
#ifndef WEIR_CLIENT_ENCODE_H
#define WEIR_CLIENT_ENCODE_H

#include "hub/batch.h"
#include "weir/event.h"

#define WEIR__ENCODER_PROPERTIES_MAX 4096 /* of one event; more is WEIR_ETOOBIG */
#define WEIR__ENCODER_KEY_CHARS_MAX 128   /* as in Azure */

struct weir__encoder {
    struct weir__batch_writer writer;
    struct weir__amqp_pair *pairs;
    uint32_t pair_room;
    struct weir__encoder *next; /* its owner's */
};

int weir__encoder_new(struct weir__encoder **out, size_t batch_bytes_max, struct weir_error *);
void weir__encoder_free(struct weir__encoder *);

/* out borrows from the encoder until its next use. With mixed_keys events may have keys of their
 * own, which then go into each message instead of once into the batch. WEIR_EINVAL names the event
 * and what is wrong with it: a malformed value, text that is not UTF-8, a key unlike the others. */
int weir__encoder_run(struct weir__encoder *, const struct weir_event *events, size_t count,
                      bool mixed_keys, struct weir__batch *out, struct weir_error *);

#endif
