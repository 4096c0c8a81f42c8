/* subject.h - what is put under load: something that takes batches in and says when they are
 * durable.
 *
 * Four of them, from the least that can be done to what a program really calls; the distance
 * between two neighbours is what the layer between them costs:
 *
 *   floor   checksum, copy, one write and one sync for a group: what this machine allows
 *   log     log/log.h
 *   hub     hub/hub.h, with what came over a wire: the sections of every event are examined
 *   api     weir/producer.h, with event structs: every event is encoded first */
#ifndef WEIR_BENCH_SUBJECT_H
#define WEIR_BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "weir/event.h"

/* A batch, prepared in each form that a subject may want. Borrowed. */
struct weir__parcel {
    struct weir__bytes payload; /* an AMQP message */
    uint32_t format;            /* of payload */
    uint32_t count;             /* events */
    const struct weir_event *events;
};

/* Counts what is under way; see load.h. */
struct weir__window;

/* So many more batches have come to their end. */
void weir__window_done(struct weir__window *, uint32_t batches, int rc);

struct weir__subject_options {
    const char *dir;
    bool existing;  /* log and hub: it is there already; else open makes it */
    bool unwritten; /* floor: on blocks that are reserved, but were never written before */
    uint32_t partitions;
    uint64_t segment_bytes; /* 0: the default */
    uint64_t retain_bytes;  /* 0: no limit */
};

struct weir__subject;

struct weir__subject_ops {
    const char *name;

    int (*open)(struct weir__subject **out, const struct weir__subject_options *,
                struct weir_error *);

    /* Takes a batch in, waiting for room; the window is told when it is durable. */
    int (*send)(struct weir__subject *, const struct weir__parcel *, uint32_t partition,
                struct weir__window *, struct weir_error *);

    /* Returns when the batch is durable. */
    int (*send_wait)(struct weir__subject *, const struct weir__parcel *, uint32_t partition,
                     struct weir_error *);

    int (*close)(struct weir__subject *, struct weir_error *);
};

/* First member of each subject's own struct. */
struct weir__subject {
    const struct weir__subject_ops *ops;
};

extern const struct weir__subject_ops weir__subject_floor;
extern const struct weir__subject_ops weir__subject_log;
extern const struct weir__subject_ops weir__subject_hub;
extern const struct weir__subject_ops weir__subject_api;

/* The log that a log subject has open. */
struct weir__log;
struct weir__log *weir__subject_log_of(struct weir__subject *);

/* close that takes NULL. */
static inline int weir__subject_close(struct weir__subject *subject, struct weir_error *err)
{
    return subject ? subject->ops->close(subject, err) : 0;
}

#endif
