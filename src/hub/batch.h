/* batch.h - events on their way into and out of the log.
 *
 * What a producer sent at once is stored at once: the events' AMQP messages, each in a data section
 * as it came, and the partition key once in front of them. The stored form is drawn in batch.c.
 *
 *   wire payload   > weir__batch_of_payload  > struct weir__batch > log    (no copy)
 *   event contents > struct weir__batch_writer > struct weir__batch > log
 *   log > struct weir__log_view > struct weir__batch_walk > struct weir__event, one after another
 *
 * No locks and no I/O: one thread at a time per struct. */
#ifndef WEIR_HUB_BATCH_H
#define WEIR_HUB_BATCH_H

#include "amqp/message.h"
#include "base/buf.h"
#include "log/log.h"

#define WEIR__BATCH_BYTES_MAX (1u << 20) /* of an encoded message, unless the hub says otherwise */
#define WEIR__BATCH_KEY_MAX 512          /* bytes: Azure's 128 characters at their longest */
#define WEIR__BATCH_HEAD_BYTES 2         /* the key's length */
#define WEIR__BATCH_ATTRS 1u             /* the attributes that are known: see batch.c */

/* A batch ready to be stored. It borrows what it was made from, and the log reads two of its parts
 * out of the struct itself: do not copy it, and keep it and its sources until it is published. */
struct weir__batch {
    uint32_t count; /* events */
    uint16_t attrs;
    struct weir__bytes key; /* at is NULL: no key */
    uint32_t parts;
    struct weir__bytes body[WEIR__LOG_BODY_PARTS_MAX];
    uint8_t head[WEIR__BATCH_HEAD_BYTES];
    uint8_t section[WEIR__AMQP_DATA_HEAD_MAX];
};

/* From what came over a wire: format 0 (one event) or WEIR__AMQP_FORMAT_BATCH. Each event's
 * sections are examined, not what is in them. The key is the annotation x-opt-partition-key of the
 * envelope, or else of the first event. WEIR_EINVAL: not a message, or no event in it.
 * WEIR_ETOOBIG: larger than bytes_max (0: WEIR__BATCH_BYTES_MAX), or its key is too long. */
int weir__batch_of_payload(struct weir__batch *, uint32_t format, struct weir__bytes payload,
                           size_t bytes_max, struct weir_error *);

/* Builds a batch from contents. */
struct weir__batch_writer {
    struct weir__buf body;
    size_t bytes_max;
    uint32_t count;
    bool has_key; /* it is at the head of body */
    size_t key_len;
};

/* bytes_max as above; it counts what the batch would be on a wire. */
void weir__batch_writer_init(struct weir__batch_writer *, size_t bytes_max);
void weir__batch_writer_fini(struct weir__batch_writer *);

/* Empties it and gives it a key, which is copied; key.at NULL: none. Called first, and to reuse it.
 * WEIR_ETOOBIG: a longer key than WEIR__BATCH_KEY_MAX. */
int weir__batch_writer_start(struct weir__batch_writer *, struct weir__bytes key,
                             struct weir_error *);

/* Whether its key is this one, or none when key.at is NULL. */
bool weir__batch_writer_has_key(const struct weir__batch_writer *, struct weir__bytes key);

/* Adds one event. WEIR_ETOOBIG when it does not fit; after any error the batch is as it was. */
int weir__batch_writer_add(struct weir__batch_writer *, const struct weir__amqp_content *,
                           struct weir_error *);

/* The same for a message that is encoded already. */
int weir__batch_writer_add_message(struct weir__batch_writer *, struct weir__bytes message,
                                   struct weir_error *);

/* What was written so far, borrowed until the next call on the writer. WEIR_EINVAL when empty. */
int weir__batch_writer_batch(const struct weir__batch_writer *, struct weir__batch *out,
                             struct weir_error *);

/* One stored event. Bytes are borrowed from the view it was found in. */
struct weir__event {
    struct weir__bytes message; /* an AMQP message, as it was sent */
    struct weir__bytes key;     /* at is NULL: none */
    uint64_t sequence;
    uint64_t offset;
    int64_t time_ms; /* enqueued */
};

/* Walks the events of a view, beginning behind view->skip. */
struct weir__batch_walk {
    struct weir__amqp_batch_walk in;
    struct weir__event next; /* key, sequence, offset and time of the next one */
    uint32_t left;
};

/* WEIR_ECORRUPT when the body is not what batch.c draws; WEIR_EVERSION for flags of a later one. */
int weir__batch_walk_start(struct weir__batch_walk *, const struct weir__log_view *,
                           struct weir_error *);

/* 1: out is an event. 0: there are no more. WEIR_ECORRUPT as above. out means nothing then. */
int weir__batch_walk_next(struct weir__batch_walk *, struct weir__event *out, struct weir_error *);

/* The events that come next, up to max and WEIR__BATCH_SOME of them, while nothing about them is
 * unusual; how many they were. 0: weir__batch_walk_next knows why. */
#define WEIR__BATCH_SOME 64u
uint32_t weir__batch_walk_some(struct weir__batch_walk *, struct weir__event *out, uint32_t max);

#endif
