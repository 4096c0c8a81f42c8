/* receiver.h - reading one partition of a hub, in order.
 *
 * A receiver belongs to a consumer group and starts at a position of its choice; the hub keeps no
 * record of what was read. Who may read at a time, per hub, group and partition:
 *
 *   - up to 5 receivers without an epoch; each gets every event;
 *   - or one with an epoch. A new one with the same or a higher epoch takes the place, also from
 *     those without: their next receive is WEIR_ESTOLEN. One with a lower epoch, or without, is
 *     refused while the place is held: WEIR_EEPOCH. Closing frees the place at once.
 *
 * A receiver is used by one thread at a time; cancel may be called by any. */
#ifndef WEIR_RECEIVER_H
#define WEIR_RECEIVER_H

#include "weir/error.h"
#include "weir/event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir;
struct weir_receiver;

enum weir_from {
    WEIR_FROM_EARLIEST, /* the oldest event that is kept */
    WEIR_FROM_LATEST,   /* what is published from now on */
    WEIR_FROM_OFFSET,
    WEIR_FROM_SEQUENCE,
    WEIR_FROM_TIME /* milliseconds since 1970 */
};

/* Where to start. What is no longer kept is passed over. */
struct weir_position {
    enum weir_from from;
    bool after;    /* begin behind the event at value, not with it */
    int64_t value; /* of an offset, a sequence number or a time */
};

struct weir_receiver_options {
    size_t size;
    const char *group; /* NULL: "$Default" */
    struct weir_position position;
    bool exclusive;      /* with this epoch */
    int64_t epoch;       /* 0 or more */
    const char *name;    /* for the texts of other receivers' errors; NULL: none */
    size_t bytes_max;    /* memory for what is read at once; 0: 256 KiB. A larger batch still comes,
                            alone. A connection keeps up to 4 MiB more for its receivers */
    uint32_t events_max; /* over a connection: no more than so many are asked for ahead of receive;
                            0: as many as fit into bytes_max, up to 4,096 */
    bool metrics; /* for weir_receiver_metrics; over a connection each event is some 150 bytes
                         larger */

    /* For a program that waits for many receivers at once: called by a thread of the library when,
     * after a receive that gave WEIR_ETIMEDOUT, another would give something else; once for each
     * such receive, or, seldom, without need. And at any time when all is over: then `over` is the
     * error that every receive will give, else 0. It runs under locks of the library: it may note
     * something and wake somebody, and must not call the library. NULL: none. */
    void (*wake)(void *user, int over);
    void *user;
};

/* WEIR_ENOTFOUND: no such hub, group or partition. WEIR_EINVAL: the offset or sequence number lies
 * beyond the newest event; the text has that one. WEIR_EEPOCH as above. WEIR_ELIMIT: five are
 * there. */
WEIR_API int weir_receiver_open(struct weir_receiver **out, struct weir *, const char *hub,
                                uint32_t partition, const struct weir_receiver_options *,
                                struct weir_error *);

/* What one receive gave: lives until the next receive or close on the receiver. */
struct weir_received {
    const struct weir_event *events;
    size_t count;    /* 1 or more after 0, else 0 */
    uint64_t missed; /* events just before these that expired before they could be read, or that a
                        server passed over because they are damaged */
};

/* Waits for events and gives what is there, up to max of them.
 * WEIR_ETIMEDOUT: there was none before the deadline. WEIR_ECANCELED: see below.
 * WEIR_ESTOLEN: the place went to another receiver; WEIR_ENOTFOUND: the hub or group was deleted.
 *   Only close is left.
 * WEIR_ECORRUPT: the next events are damaged on disk; the text names file, byte and sequence range.
 *   The receiver stays in front of them until weir_receiver_skip. */
WEIR_API int weir_receiver_receive(struct weir_receiver *, size_t max, int64_t timeout_ms,
                                   struct weir_received *out, struct weir_error *);

/* What was newest in the partition when the last event was given, or sent to us: so a reader knows
 * how far behind it is without asking the hub. */
struct weir_receiver_metrics {
    uint64_t last_sequence; /* of the newest event, as the next two */
    uint64_t last_offset;
    int64_t last_time_ms; /* enqueued */
    int64_t retrieved_ms; /* when it was so; 0: no event has told it yet */
};

/* As of the last receive that gave something. WEIR_EINVAL: the receiver's options did not have
 * metrics. */
WEIR_API int weir_receiver_metrics(const struct weir_receiver *, struct weir_receiver_metrics *out,
                                   struct weir_error *);

/* After WEIR_ECORRUPT: steps over the damaged range and says which it was. */
WEIR_API int weir_receiver_skip(struct weir_receiver *, uint64_t *out_first, uint64_t *out_last,
                                struct weir_error *);

/* From any thread: the receive that is waiting, or else the next one, returns WEIR_ECANCELED. */
WEIR_API void weir_receiver_cancel(struct weir_receiver *);

/* Frees the place and the memory. NULL is allowed. */
WEIR_API void weir_receiver_close(struct weir_receiver *);

#ifdef __cplusplus
}
#endif
#endif
