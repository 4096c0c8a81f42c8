/* hub.h - one hub: partitions that take events in, and numbers about them.
 *
 * A hub is had from its namespace (weir__namespace_use) and given back with weir__hub_release; a
 * deleted hub stays in memory until the last user has let it go. Reading is in receiver.h.
 *
 * Threads: everything here may be called from any thread. A hub has one lock, which guards its
 * groups and who sits in their places; publishing does not take it. Completions are the log's: on
 * threads that all hubs of the folder share, one of a hub at a time, in log order, each exactly once.
 * One that blocks keeps a thread from the other hubs. */
#ifndef WEIR_HUB_HUB_H
#define WEIR_HUB_HUB_H

#include "hub/batch.h"
#include "log/log.h"

struct weir__hub;

/* Every use is let go once; not from inside a completion. The last one out of a deleted hub closes
 * its log and removes its files. NULL is allowed. */
void weir__hub_release(struct weir__hub *);

const char *weir__hub_name(const struct weir__hub *);
uint32_t weir__hub_partitions(const struct weir__hub *);
int64_t weir__hub_created_ms(const struct weir__hub *);
size_t weir__hub_batch_bytes_max(const struct weir__hub *); /* of an encoded message */

/* ---- publishing ---- */

#define WEIR__PARTITION_ANY UINT32_MAX

/* Where a batch goes: to the wanted partition, or by its key, or to the next one in turn.
 * WEIR_EINVAL: there is no such partition. */
int weir__hub_route(struct weir__hub *, const struct weir__batch *, uint32_t wanted,
                    uint32_t *out_partition, struct weir_error *);

/* Appends a batch to a partition; its events lie there one behind another or not at all. The bytes
 * are copied and its place is final when this returns 0; done fires once it is durable. On error
 * done never fires. producer may be NULL. Deadlines and errors are those of weir__log_append;
 * besides: WEIR_EINVAL, no such partition; WEIR_ENOTFOUND, the hub was deleted. */
int weir__hub_publish(struct weir__hub *, const struct weir__batch *, uint32_t partition,
                      const struct weir__log_producer *producer, int64_t deadline_ns,
                      weir__log_done_fn done, void *user, struct weir_error *);

/* The same, and returns when it is durable. Past the deadline: WEIR_EUNKNOWN. */
int weir__hub_publish_wait(struct weir__hub *, const struct weir__batch *, uint32_t partition,
                           const struct weir__log_producer *producer, int64_t deadline_ns,
                           struct weir__log_receipt *out, struct weir_error *);

/* Returns when everything published before the call is durable or has failed. */
int weir__hub_flush(struct weir__hub *, int64_t deadline_ns, struct weir_error *);

/* ---- idempotent producers ---- */

/* An id that this hub never gave out before, over restarts too; from 1, below 2^53. */
int weir__hub_producer_new(struct weir__hub *, uint64_t *out_id, struct weir_error *);

/* Begins an epoch of a producer: see weir__log_producer_begin. */
int weir__hub_producer_begin(struct weir__hub *, uint32_t partition, uint64_t id, uint16_t epoch,
                             struct weir__log_producer *out_next, struct weir_error *);

/* The epoch of a producer in a partition and the sequence number that must come next; epoch 0 and
 * sequence 0 when nothing is known of it. */
int weir__hub_producer_state(struct weir__hub *, uint32_t partition, uint64_t id,
                             struct weir__log_producer *out_next, struct weir_error *);

/* ---- looking ---- */

struct weir__partition_properties {
    int64_t begin_sequence; /* of the oldest event that is kept */
    int64_t last_sequence;  /* of the newest ever; -1 when there never was one */
    int64_t last_offset;    /* likewise -1 */
    int64_t last_time_ms;   /* likewise 0 */
    bool empty;             /* nothing is kept now */
};

int weir__hub_partition_properties(struct weir__hub *, uint32_t partition,
                                   struct weir__partition_properties *out, struct weir_error *);

struct weir__hub_stats {
    struct weir__log_stats log;
    uint64_t refused;             /* batches that were not taken in */
    uint64_t delivered_events;    /* handed to receivers */
    uint64_t delivered_bytes;     /* of their messages */
    uint64_t receivers;           /* attached now */
    uint64_t receivers_attached;  /* ever, as the two below */
    uint64_t receivers_refused;   /* by the rules of epoch.h */
    uint64_t receivers_displaced; /* pushed out by an epoch */
};

/* A copy, each number right for itself. */
void weir__hub_stats(struct weir__hub *, struct weir__hub_stats *out);

/* 0, or the error that stopped the hub for good: see weir__log_state. */
int weir__hub_state(struct weir__hub *, struct weir_error *);

/* Whether it takes events in now: see weir__log_ready. */
int weir__hub_ready(struct weir__hub *, struct weir_error *);

/* With no_threads: lets the log do what is due. */
int weir__hub_step(struct weir__hub *, struct weir_error *);

#endif
