/* cursor.h - reading bytes that nobody vouches for.
 *
 * A cursor never leaves its bytes. The first failure sticks: it keeps its reason and its place,
 * and from then on there is nothing left to read, so a parser may read a whole header and ask once.
 * Everything in this room that reads goes through here; AMQP's integers are big-endian. */
#ifndef WEIR_AMQP_CURSOR_H
#define WEIR_AMQP_CURSOR_H

#include <stdbool.h>

#include "base/bytes.h"

struct weir__amqp_cursor {
    const uint8_t *start; /* offsets in messages count from here */
    const uint8_t *at;
    const uint8_t *end;
    const char *why; /* NULL, or what is wrong at `at` */
};

static inline uint16_t weir__load_be16(const void *p)
{
    return __builtin_bswap16(weir__load16(p));
}

static inline uint32_t weir__load_be32(const void *p)
{
    return __builtin_bswap32(weir__load32(p));
}

static inline uint64_t weir__load_be64(const void *p)
{
    return __builtin_bswap64(weir__load64(p));
}

static inline void weir__store_be32(void *p, uint32_t v)
{
    weir__store32(p, __builtin_bswap32(v));
}

static inline void weir__store_be64(void *p, uint64_t v)
{
    weir__store64(p, __builtin_bswap64(v));
}

static inline struct weir__amqp_cursor weir__amqp_cursor_of(struct weir__bytes b)
{
    /* No bytes may be at NULL, and NULL takes no offset. */
    return (struct weir__amqp_cursor){b.at, b.at, b.len ? b.at + b.len : b.at, NULL};
}

static inline size_t weir__amqp_left(const struct weir__amqp_cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* Where the cursor stands, or where it failed. */
static inline size_t weir__amqp_offset(const struct weir__amqp_cursor *c)
{
    return (size_t)(c->at - c->start);
}

/* why lives for ever. Returns false, so that a reader can end with it. */
static inline bool weir__amqp_stop(struct weir__amqp_cursor *c, const char *why)
{
    if (!c->why) c->why = why;
    c->end = c->at;
    return false;
}

/* The next len bytes, or NULL when there are fewer. */
static inline const uint8_t *weir__amqp_take(struct weir__amqp_cursor *c, size_t len)
{
    const uint8_t *p = c->at;

    if (__builtin_expect(len > weir__amqp_left(c), 0)) {
        weir__amqp_stop(c, "ends too early");
        return NULL;
    }
    c->at += len;
    return p;
}

/* Loads; 0 after a failure. */
static inline uint8_t weir__amqp_load8(struct weir__amqp_cursor *c)
{
    const uint8_t *p = weir__amqp_take(c, 1);
    return p ? *p : 0;
}

static inline uint32_t weir__amqp_load32(struct weir__amqp_cursor *c)
{
    const uint8_t *p = weir__amqp_take(c, 4);
    return p ? weir__load_be32(p) : 0;
}

#endif
