/* receiver.h - reading one partition for a consumer group.
 *
 * A receiver begins at a position, is let in by the rules of epoch.h, and hands out events as far
 * as its credit goes. It is pulled: next never waits, pull waits with a deadline.
 *
 *   attach > next > next > ... > (pushed out: WEIR_ESTOLEN from now on) > close
 *
 * Threads: one thread at a time calls next, pull, credit, skip and close; cancel may be called from
 * any thread until close is called. A receiver that was pushed out, or whose group or hub was
 * deleted, has left its place at once and stays only to say so until it is closed. */
#ifndef WEIR_HUB_RECEIVER_H
#define WEIR_HUB_RECEIVER_H

#include "hub/epoch.h"
#include "hub/hub.h"
#include "hub/position.h"

#define WEIR__CREDIT_UNLIMITED UINT64_MAX

struct weir__receiver_options {
    const char *group; /* NULL: $Default */
    uint32_t partition;
    struct weir__position from;
    int64_t epoch;       /* 0 or more, or WEIR__EPOCH_NONE: set it, zero is an epoch */
    const char *name;    /* copied; NULL: none */
    uint64_t credit;     /* events that may be given before more is granted */
    size_t memory_bytes; /* of its reader; 0: the log's default */
    bool batches;        /* only next_batch is used, and never next */

    /* Called when there is news since next last looked: events, or being pushed out. Once until it
     * looks again, so call next until it gives nothing. From any thread and under locks: it only
     * wakes somebody up and calls nothing here. NULL: none. */
    void (*wake)(void *user);
    void *user;
};

struct weir__receiver;

/* Holds a use of the hub until it is closed. WEIR_ENOTFOUND: no such group. WEIR_EINVAL: no such
 * partition, or a position beyond the end; the text has the last one. WEIR_EEPOCH, WEIR_ELIMIT:
 * refused by the rules. Those that it pushes out have been told when this returns. */
int weir__receiver_attach(struct weir__receiver **out, struct weir__hub *,
                          const struct weir__receiver_options *, struct weir_error *);

/* Leaves its place and frees. No thread may be in pull. NULL is allowed. */
void weir__receiver_close(struct weir__receiver *);

struct weir__receiver_take {
    uint32_t events_max; /* 1 or more: room in `events` */
    size_t bytes_max;    /* of messages, 0: any; one event is given even when it is larger */
    struct weir__event *events;
    uint32_t count;  /* given */
    uint64_t missed; /* events before these that expired unread and were passed over */
};

/* Gives events without waiting; it may give fewer than there are, but count 0 only when there is
 * none, or no credit. The events' bytes live until the next call on this receiver.
 * WEIR_ESTOLEN, WEIR_ENOTFOUND: it was pushed out, or its group or hub was deleted; so from now on.
 * WEIR_ECORRUPT: events are damaged; so until weir__receiver_skip. Others: as the log says. */
int weir__receiver_next(struct weir__receiver *, struct weir__receiver_take *, struct weir_error *);

/* Gives the next stored batch as it lies, without waiting: the whole of it, of which view->skip says
 * how much lies before the position. *out is NULL when there is none; it lives until the next call on
 * this receiver. Its body is not checked, that is left to whoever it goes to: it has view->body_crc.
 * Credit is not counted. Errors are those of next. */
int weir__receiver_next_batch(struct weir__receiver *, const struct weir__log_view **out,
                              struct weir_error *);

/* As next, but waits for the first event until deadline_ns: WEIR_ETIMEDOUT, or WEIR_ECANCELED. */
int weir__receiver_pull(struct weir__receiver *, struct weir__receiver_take *, int64_t deadline_ns,
                        struct weir_error *);

/* Gives back the memory of what it read; what was not given yet is read again. Events and batches that it
 * gave are gone. */
void weir__receiver_rest(struct weir__receiver *);
/* The memory that rest would give back. */
size_t weir__receiver_memory(const struct weir__receiver *);

/* Takes back what it gave last and nobody used: the events from the first of these on, or the batch. It
 * is read and given again, and counts once as delivered. */
void weir__receiver_return(struct weir__receiver *, const struct weir__event *, uint32_t count);
void weir__receiver_return_batch(struct weir__receiver *, const struct weir__log_view *);

/* Makes the pull that waits now, or else the next one, return WEIR_ECANCELED, once. */
void weir__receiver_cancel(struct weir__receiver *);

/* Whether it was pushed out, or its group or hub deleted, without looking for events: 0, or as
 * weir__receiver_next would say. */
int weir__receiver_over(struct weir__receiver *, struct weir_error *);

/* Grants this many events more, or this many in all. */
void weir__receiver_credit_add(struct weir__receiver *, uint64_t events);
void weir__receiver_credit_set(struct weir__receiver *, uint64_t events);
uint64_t weir__receiver_credit(const struct weir__receiver *);

/* After WEIR_ECORRUPT, or a WEIR_EIO of the disk: passes over the damaged events and says which they
 * were. first > last: there are none, and nothing moves. It never moves back. */
void weir__receiver_skip(struct weir__receiver *, uint64_t *out_first, uint64_t *out_last);

/* Sequence number of the event that next will give first. */
uint64_t weir__receiver_sequence(const struct weir__receiver *);

#endif
