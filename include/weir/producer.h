/* producer.h - publishing events to a hub.
 *
 * A batch is atomic: all of its events are stored, one after another in one partition, or none is.
 * A single event is a batch of one. Where a batch goes: to the producer's own partition when it has
 * one, else to the partition of the events' key (the same partition that Azure's service chooses),
 * else to the partitions in turn.
 *
 * Any number of threads may publish through one producer; the batches of one thread keep their
 * order. Completions run on the hub's thread as weir.h says.
 *
 * Over a connection up to 4 MiB of a producer's batches are on their way at a time, and more wait
 * or are WEIR_EBUSY. A batch that could not be sent for a minute fails with what was in the way,
 * WEIR_EUNREACHABLE or WEIR_ETIMEDOUT. One of an idempotent producer does not: it is sent again,
 * over as many connections as it takes, until it has an outcome or the producer is closed. After
 * one of them failed, but for WEIR_EBUSY, those behind it fail as well (WEIR_ESEQUENCE): open a new
 * producer with its identity, which says how far the hub has come. */
#ifndef WEIR_PRODUCER_H
#define WEIR_PRODUCER_H

#include "weir/error.h"
#include "weir/event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir;
struct weir_producer;

struct weir_producer_options {
    size_t size;
    bool pinned; /* everything goes to `partition`, keys or not; a batch may then mix keys, as
                    programs do that sort events by weir_partition_of_key themselves */
    uint32_t partition;

    /* A batch that is sent again because its outcome was unknown is stored once. Needs `pinned`. The
     * hub remembers the last batch of each producer for seven days at least, also when the events
     * have expired, and of a million of them: when there are more, the one that was silent longest
     * is forgotten (producers_forgotten of weir_hub_stats), and a repeat of its last batch would be
     * stored again. */
    bool idempotent;
    uint16_t epoch; /* a higher one of the same id shuts out the lower: WEIR_EFENCED for that */
    uint64_t id;    /* 0: a new one; else who we were before, to go on where the hub is */
};

/* WEIR_ENOTFOUND: no such hub, or no such partition. */
WEIR_API int weir_producer_open(struct weir_producer **out, struct weir *, const char *hub,
                                const struct weir_producer_options *, struct weir_error *);

#define WEIR_UNPLACED UINT64_MAX          /* of a sequence number and an offset */
#define WEIR_PARTITION_UNKNOWN UINT32_MAX /* of a partition */

/* Where a batch came to lie. The protocol of Event Hubs tells a sender that its batch is stored, not
 * where: over a connection placed is false, sequence and offset are WEIR_UNPLACED, the time is 0,
 * duplicate is never set, and partition is known for a pinned producer and for events with a key
 * only. */
struct weir_receipt {
    uint32_t partition;
    uint64_t sequence; /* of its first event; the others follow by one */
    uint64_t offset;   /* of its first event */
    int64_t enqueued_time_ms;
    bool duplicate; /* an idempotent producer's last batch once more: it was there already */
    bool placed;    /* sequence, offset and time are known */
};

/* Publishes a batch and returns when it is on disk. receipt may be NULL.
 * WEIR_EBUSY: there was no room for it before the deadline, and nothing was done.
 * WEIR_EUNKNOWN: it was taken in, but is not known to be on disk. An idempotent producer repeats
 *   the very same batch until it has an answer; another batch in its place would be taken for it.
 *   Over a connection: it was sent, and the connection was lost before the answer; it may still be
 *   stored, behind batches that are sent after this call. An idempotent producer sends it again by
 *   itself, in its place, and this is what is left when the deadline passes first.
 * WEIR_ETOOBIG: more than batch_bytes_max of weir_open. WEIR_EINVAL: the events' keys differ, or
 *   one is malformed; the text says which.
 * WEIR_ENOSPACE: the disk is full; it works again when there is room.
 * WEIR_EFAILED: the disk failed this hub, which takes nothing in until the folder is opened
 *   anew.
 * WEIR_EDENIED, WEIR_EUNREACHABLE: over a connection only; it was not sent. */
WEIR_API int weir_producer_send(struct weir_producer *, const struct weir_event *events,
                                size_t count, int64_t timeout_ms, struct weir_receipt *out,
                                struct weir_error *);

/* The end of an asynchronous publish. rc is 0 when the batch is on disk, else as above. receipt is
 * NULL unless rc is 0, err is NULL unless it is not; both live for the call. */
typedef void (*weir_done_fn)(void *user, int rc, const struct weir_receipt *receipt,
                             const struct weir_error *err);

/* Takes a batch in and returns; done runs once it is on disk or has failed. When this returns an
 * error nothing was taken in and done does not run.
 * timeout_ms is how long to wait for room when too much is on its way to the disk: WEIR_EBUSY after
 * it, and WEIR_EDEADLOCK at once inside a completion unless it is 0. */
WEIR_API int weir_producer_send_async(struct weir_producer *, const struct weir_event *events,
                                      size_t count, int64_t timeout_ms, weir_done_fn done,
                                      void *user, struct weir_error *);

/* Returns when the completions of everything that was taken in before the call have run, whatever
 * they said. WEIR_ETIMEDOUT when they have not. */
WEIR_API int weir_producer_flush(struct weir_producer *, int64_t timeout_ms, struct weir_error *);

/* Who an idempotent producer is, to go on after a restart: open one with this id, and the hub's own
 * next_sequence tells how much of what was sent it has. All zero for others. */
struct weir_producer_identity {
    uint64_t id;
    uint16_t epoch;
    uint32_t next_sequence; /* of the next event in this producer's own count, from 0 */
};

WEIR_API void weir_producer_identity(struct weir_producer *, struct weir_producer_identity *out);

/* Flushes and frees; completions that publish again get WEIR_ECLOSED meanwhile. When the deadline
 * passes, the completions that are left run inside this call with WEIR_EUNKNOWN, which is then
 * returned. It is closed in every case but WEIR_EDEADLOCK: a completion cannot close. NULL is
 * allowed. */
WEIR_API int weir_producer_close(struct weir_producer *, int64_t timeout_ms, struct weir_error *);

#ifdef __cplusplus
}
#endif
#endif
