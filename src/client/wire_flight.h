/* wire_flight.h - a sender and its batches on their way, as wire_sender.c (callers' threads) and
 * wire_flight.c (the loop) see them. */
#ifndef WEIR_CLIENT_WIRE_FLIGHT_H
#define WEIR_CLIENT_WIRE_FLIGHT_H

#include "client/wire.h"

enum weir__wire_flight_state { WEIR__WIRE_WAITING, WEIR__WIRE_SENT, WEIR__WIRE_STORED };

/* Somebody who waits for a flight, on its own stack. */
struct weir__wire_waiter {
    struct weir__cond landed;
    bool done;
    int rc;
    struct weir_error why;
};

struct weir__wire_flight {
    struct weir__wire_flight *next, *prev;
    enum weir__wire_flight_state state;
    bool was_sent;    /* at least once */
    bool was_doubted; /* it was out of sequence, with none before it, */
    uint32_t doubted; /* when this was the other side's last sequence number */
    uint32_t id;      /* of the delivery, when WEIR__WIRE_SENT */
    uint32_t last;    /* sequence number on the wire of its last event: idempotent only */
    int64_t since_ms; /* of the loop's clock */
    struct weir__wire_waiter *waiter;
    weir__log_done_fn done; /* or this; neither: nobody cares any more */
    void *user;
    size_t len;
    uint8_t bytes[];
};

struct weir__wire_sender {
    struct weir__wire_link link;
    struct weir__sender base;
    uint32_t partition;  /* WEIR_PARTITION_UNKNOWN: any */
    uint32_t partitions; /* of the hub, when any */
    bool idempotent;
    struct weir__timer patience;

    struct weir__wire_flight *first, *tail, *unsent;
    size_t bytes;
    unsigned waiting;    /* for room */
    unsigned rejections; /* since a batch was accepted: idempotent only, as the next */
    bool known;          /* the other side has a batch of ours */
    size_t message_bytes_max;
    struct weir__log_producer mark; /* as the other side has it; sequence: its last */
};

/* Takes a flight out of the line; the lock is held. */
void weir__wire_flight_out(struct weir__wire_sender *, struct weir__wire_flight *);

extern const struct weir__wire_link_calls weir__wire_sender_calls;
void weir__wire_sender_patience(void *arg); /* its timer's */

#endif
