/* wire_row.h - what has come for a source: a row of chunks that the loop fills and the caller's thread
 * reads.
 *
 *   chunk: item | item | ...          ... | length | length (4 bytes each)
 *
 * An item is the payload of a delivery: a message, or a stored batch. While the deliveries of one turn
 * of the loop come, the loop fills the last chunk behind the caller's back, and shows what is in it
 * when the turn ends or the chunk is full. What a caller was given stays until its next call.
 *
 * The lock is the link's. Functions whose comments say so want it held. */
#ifndef WEIR_CLIENT_WIRE_ROW_H
#define WEIR_CLIENT_WIRE_ROW_H

#include "base/bytes.h"
#include "base/thread.h"

struct weir__wire_chunk;

/* One of a row's. */
struct weir__wire_item {
    struct weir__bytes bytes;
    bool stored; /* a batch; else a message */
};

/* Chunks that wait for use, for all rows of a connection: a row that is read to its end gives its own
 * away, so that those that only wait cost little. They are freed with the connection. */
#define WEIR__WIRE_POOL_BYTES ((size_t)4 << 20)

struct weir__wire_pool {
    struct weir__mutex lock; /* guards the others; taken last */
    struct weir__wire_chunk *chunks;
    size_t bytes; /* at most WEIR__WIRE_POOL_BYTES */
};

void weir__wire_pool_init(struct weir__wire_pool *);
void weir__wire_pool_fini(struct weir__wire_pool *);

struct weir__wire_row {
    struct weir__wire_pool *pool;
    size_t bytes_max; /* what may be held */

    /* The loop's. */
    size_t filled; /* bytes and items of `filling`, of which the caller sees only what was shown */
    uint32_t filled_count;

    /* The caller's. */
    struct weir__wire_chunk *at, *last; /* where it reads, and the last that it looked at, with */
    uint32_t last_count;                /* so many items */
    size_t given;                       /* bytes that it has had, until it releases them */
    uint32_t given_count;               /* and items */

    /* Under the lock. */
    struct weir__wire_chunk *first, *tail;
    struct weir__wire_chunk *filling; /* the last one, while the loop is at it */
    size_t held; /* bytes of items and lengths, those included that the caller has */
    uint32_t held_count;
};

#define WEIR__WIRE_LENGTH_BYTES 4u /* that an item takes besides its own */

void weir__wire_row_init(struct weir__wire_row *, struct weir__wire_pool *, size_t bytes_max);
void weir__wire_row_fini(struct weir__wire_row *);

/* ---- the loop ---- */

/* Whether the next item goes where the last one went: nobody needs to be told. */
bool weir__wire_row_fits(const struct weir__wire_row *, size_t bytes);

/* Makes room, when the next item does not fit, and shows what was filled before. With the lock. false:
 * no memory. */
bool weir__wire_row_begin(struct weir__wire_row *, size_t bytes);

/* Copies an item to where there is room for it. Without the lock. */
void weir__wire_row_put(struct weir__wire_row *, struct weir__wire_item);

/* Items that the caller does not see yet, and their bytes. */
uint32_t weir__wire_row_hidden(const struct weir__wire_row *);
size_t weir__wire_row_hidden_bytes(const struct weir__wire_row *);

/* Shows the caller what the loop has filled in. With the lock. */
void weir__wire_row_show(struct weir__wire_row *);

/* The newest item that was shown and is still there, read or not. With the lock. */
bool weir__wire_row_newest(const struct weir__wire_row *, struct weir__wire_item *out);

/* ---- the caller ---- */

/* What it had is free, bytes and items of it. With the lock. */
void weir__wire_row_release(struct weir__wire_row *);

/* Whether there is an item that the caller did not have yet. With the lock; what is there now can be
 * read without. */
bool weir__wire_row_look(struct weir__wire_row *);

/* The first one that it did not have, as of its last look. */
bool weir__wire_row_peek(struct weir__wire_row *, struct weir__wire_item *out);

/* It has had the item that it peeked at. */
void weir__wire_row_pass(struct weir__wire_row *, const struct weir__wire_item *);

#endif
