/* budget.h - what peers can make the server hold: memory by sum, and places.
 *
 * Each connection, of AMQP or HTTP, has an account. All buffers whose size a peer decides are booked
 * there: messages of which not all frames came, requests and their answers, bodies, input and output, and
 * what was read from the log for a receiver.
 * The accounts of one server draw from one budget. What would go beyond it is refused, and those who
 * have not shown a good token (strangers) have only a share of it.
 *
 * Strangers are known by their age and address. When there are too many of one address, or when all
 * places are taken, the oldest goes. When their share is used up, the oldest go until what the
 * others hold is within it: one who holds nothing makes no room.
 *
 *   WEIR__BUDGET_BYTES            of all, a 64th of it for what is not asked for, such as output: a
 *                                 message is refused as server-busy, a body with 503
 *   WEIR__BUDGET_STRANGER_BYTES   of strangers, but no more than a quarter of all: the oldest go
 *   WEIR__BUDGET_PER_ADDRESS      strangers of one address (IPv6: of one /64): its oldest goes
 *
 * Any thread may call everything here, but for what is said to be the owner's. */
#ifndef WEIR_SERVER_BUDGET_H
#define WEIR_SERVER_BUDGET_H

#include <stdatomic.h>

#include "base/thread.h"
#include "io/loop.h"

#define WEIR__BUDGET_BYTES ((size_t)256 << 20)
#define WEIR__BUDGET_STRANGER_BYTES ((size_t)32 << 20)
#define WEIR__BUDGET_PER_ADDRESS 1024u
#define WEIR__BUDGET_ORIGINS 1024u /* heads of lists of addresses */

struct weir__origin;
struct weir__account;

struct weir__newcomer {
    struct weir__newcomer *next, *prev;       /* the younger, the older */
    struct weir__newcomer *at_next, *at_prev; /* the same, of its address */
    struct weir__origin *origin;              /* NULL: it is not on the lists */
    struct weir__loop *loop;
    const struct weir__account *account;
    size_t leaving; /* what it held when it was told to go */
    struct weir__post evict;
};

/* Zero means the default. */
struct weir__budget_limits {
    size_t bytes, stranger_bytes;
    unsigned per_address;
};

struct weir__budget {
    struct weir__budget_limits limits;
    atomic_size_t used, peak; /* peak: since memory was last given back to the system */
    atomic_size_t strangers;  /* the part of used that is theirs */
    atomic_size_t leaving;    /* the part of that whose owners were told to go */
    atomic_ullong refused;    /* messages and bodies for which there was no room */
    atomic_ullong evicted;

    struct weir__mutex lock; /* for the lists; a loop's mailbox is posted to with it */
    struct weir__newcomer *oldest, *youngest;
    unsigned count;
    struct weir__origin *origins[WEIR__BUDGET_ORIGINS];
};

void weir__budget_init(struct weir__budget *, const struct weir__budget_limits *);
void weir__budget_fini(struct weir__budget *); /* when there are no strangers and no accounts */

/* More than half of it is used: what can be had again is not kept. */
bool weir__budget_is_tight(const struct weir__budget *);

/* Sends the oldest stranger away; false: there is none. */
bool weir__budget_make_room(struct weir__budget *);

unsigned weir__budget_strangers(struct weir__budget *);

/* Somebody came, from "127.0.0.1:49152", whose account outlives its stay. When it has to go, evict
 * runs on its loop, which is the caller's. Without memory for that it is never sent away. */
void weir__newcomer_enter(struct weir__newcomer *, const struct weir__account *,
                          struct weir__loop *, const char *peer, void (*evict)(void *arg),
                          void *arg);
/* It is known now, or gone. The owner's, on its loop; also for one that never entered. */
void weir__newcomer_leave(struct weir__newcomer *, struct weir__budget *);

/* The owner's, on its loop; others only look at the bytes. */
struct weir__account {
    struct weir__budget *budget;
    atomic_size_t bytes;
    bool stranger;
};

/* Whether there is room for so much more, which is then booked. */
bool weir__account_grow(struct weir__account *, size_t more);
/* What it is now, whether there is room or not. Strangers above their share lose their
 * oldest. */
void weir__account_set(struct weir__account *, size_t bytes);
/* It is no stranger's any more. */
void weir__account_trust(struct weir__account *);

#endif
