/* source.h - where a processor's events come from: a port.
 *
 * A source is a set of numbered partitions, each an ordered stream that can be opened at a position.
 * weir_source_hub is a hub behind weir_open, in a folder or over a connection; others (a RabbitMQ
 * stream, Kafka) are the same five functions. tests/contract/source_* is what one has to pass.
 *
 * Any thread may call, but each stream is used by one at a time. */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include "weir/weir.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SOURCE_VERSION 1

struct weir_source;
struct weir_stream;

/* The end of a partition. */
struct weir_partition_tail {
    bool known;             /* else the rest is 0: not asked for, or no event has told it yet */
    uint64_t last_sequence; /* of its newest event */
    int64_t last_time_ms;   /* when that was enqueued */
    int64_t heard_ms;       /* when we heard of it, by this machine's wall clock */
};

struct weir_stream_options {
    struct weir_position position;
    int64_t epoch;       /* of the owner: a later owner's shuts out an earlier's */
    const char *owner;   /* for the texts of other readers' errors */
    size_t bytes_max;    /* memory for what is read ahead */
    uint32_t events_max; /* of these; 0: as many as fit */
    bool metrics;        /* tail is wanted: over a connection it makes each event larger */
    void (*wake)(void *user, int over); /* as in struct weir_receiver_options; never NULL */
    void *user;
};

struct weir_source_ops {
    int version; /* WEIR_SOURCE_VERSION */

    /* How many partitions there are now; they never become fewer. */
    int (*count)(struct weir_source *, uint32_t *out, struct weir_error *);

    /* As weir_receiver_open. */
    int (*open)(struct weir_source *, uint32_t partition, const struct weir_stream_options *,
                struct weir_stream **out, struct weir_error *);

    /* As weir_receiver_receive without waiting: WEIR_ETIMEDOUT when nothing is there. */
    int (*receive)(struct weir_stream *, size_t max, struct weir_received *out,
                   struct weir_error *);

    /* What the end of the partition was when it was last heard of. */
    void (*tail)(struct weir_stream *, struct weir_partition_tail *out);

    void (*shut)(struct weir_stream *); /* NULL is allowed */
    void (*close)(struct weir_source *);
};

/* First member of each source's own struct; a stream is wholly its own. */
struct weir_source {
    const struct weir_source_ops *ops;
    char space[WEIR_SPACE_BYTES]; /* for the scope of its records, in lower case */
    char hub[257];
    char group[64];
};

/* A hub and a consumer group (NULL: "$Default") of what was opened with weir_open, which must stay
 * open. WEIR_ENOTFOUND: there is no such hub. */
WEIR_API int weir_source_hub(struct weir_source **out, struct weir *, const char *hub,
                             const char *group, struct weir_error *);

/* Frees it. NULL is allowed. */
WEIR_API void weir_source_close(struct weir_source *);

#ifdef __cplusplus
}
#endif
#endif
