/* wire_source.h - events of a partition, as they come: one by one, or a stored batch at a time when
 * the other side can do that. Each delivery says which it is.
 *
 * The loop checks and copies them into a row (wire_arrival.c, wire_row.h); the caller's thread reads
 * them there, and walks the batches (wire_source.c).
 *
 * Credit counts deliveries, memory counts bytes. A side that sends batches is told how many bytes may
 * come, so that what waits for the caller is never more than bytes_max and one batch, and a side that
 * sends more is left; what the caller works on does not count, for the next batch, which may be as
 * large as all that fits, comes meanwhile.
 * Other sides know credit only. It is what fits into bytes_max beside what is held, by a guess at the
 * next messages' size from those before them. The guess may be wrong once, by as much as the credit
 * that was given; it is never more than CREDIT_MAX, nor, with what is held, than events_max.
 *
 * When the connection is lost the next one begins behind the last event that came, whether or not
 * it was read: by its sequence number. A source that was stolen from is not attached again. */
#ifndef WEIR_CLIENT_WIRE_SOURCE_H
#define WEIR_CLIENT_WIRE_SOURCE_H

#include <stdatomic.h>

#include "client/wire.h"
#include "client/wire_row.h"
#include "hub/stored.h"

#define WEIR__WIRE_NAME_BYTES 256    /* of a receiver's name; a longer one is cut */
#define WEIR__WIRE_GUESS_FIRST 4096u /* bytes of a message before one was seen */
#define WEIR__WIRE_PART                                                                            \
    4 /* of bytes_max: so much is read before the other side hears of the room */

struct weir__wire_source {
    struct weir__wire_link link;
    struct weir__source base;
    uint32_t events_max;
    bool metrics;
    bool exclusive;
    int64_t epoch;
    char name[WEIR__WIRE_NAME_BYTES];
    char selector[WEIR__WIRE_SELECTOR_BYTES]; /* the first one */
    struct weir__wire_row row;

    /* The loop's. */
    size_t guess;
    bool desires; /* stored batches */
    bool limits;  /* and the other side offers them: it is told how many bytes may come */
    uint64_t carried, limit; /* bytes that came by this link, and that it may bring */
    uint64_t allowed;        /* the highest such limit so far */
    bool tells;              /* the other side has offered batches: it is a weir, which answers */
    bool drains;             /* when it is asked to say that it has sent all there is, as it was */
    bool has_came;
    uint64_t came; /* sequence number of the last event, when that came in a batch */

    /* The caller's. */
    struct weir__batch_walk walk; /* through `item` while walking */
    struct weir__wire_item item;
    bool walking;
    struct weir__stored_facts facts;
    size_t passed;       /* bytes of batches since the loop was last told */
    atomic_size_t taken; /* bytes that it has of what is held; the loop looks */

    /* Under the link's lock. */
    size_t freed; /* since credit was last looked at */
    bool low;     /* there was no more than half of what fits at most */
    bool has_last;
    uint64_t last; /* sequence number of the last that was read */
    bool cancelled;
    bool ending; /* the caller wants to know when all that is there has come, */
    bool ended;  /* and it has */
    bool opened; /* from here on its end is told to wake */
    bool asked;  /* wake is owed for the next delivery */
    void (*wake)(void *user, int over);
    void *user;
};

/* What a link does for a source, on the loop. */
extern const struct weir__wire_link_calls weir__wire_arrival_calls;

/* Where the next connection goes on: behind this message; the lock is held. */
void weir__wire_remember(struct weir__wire_source *, struct weir__bytes message);

#endif
