/* route.c - Azure's partition-key hash: Bob Jenkins' lookup3 in its little-endian, two-result form
 * (hashlittle2) with both seeds 0, its two results folded by xor into a signed 16-bit number. The
 * remainder keeps the sign of the hash and is then made positive, as C# and Java have it. */
#include "hub/route.h"

#include <stdlib.h>

#define LOOKUP3_START 0xdeadbeefu
#define BLOCK_BYTES 12

static uint32_t rotate(uint32_t v, int by)
{
    return v << by | v >> (32 - by);
}

struct state {
    uint32_t a, b, c;
};

static void mix(struct state *s)
{
    s->a = (s->a - s->c) ^ rotate(s->c, 4);
    s->c += s->b;
    s->b = (s->b - s->a) ^ rotate(s->a, 6);
    s->a += s->c;
    s->c = (s->c - s->b) ^ rotate(s->b, 8);
    s->b += s->a;
    s->a = (s->a - s->c) ^ rotate(s->c, 16);
    s->c += s->b;
    s->b = (s->b - s->a) ^ rotate(s->a, 19);
    s->a += s->c;
    s->c = (s->c - s->b) ^ rotate(s->b, 4);
    s->b += s->a;
}

static void finish(struct state *s)
{
    s->c = (s->c ^ s->b) - rotate(s->b, 14);
    s->a = (s->a ^ s->c) - rotate(s->c, 11);
    s->b = (s->b ^ s->a) - rotate(s->a, 25);
    s->c = (s->c ^ s->b) - rotate(s->b, 16);
    s->a = (s->a ^ s->c) - rotate(s->c, 4);
    s->b = (s->b ^ s->a) - rotate(s->a, 14);
    s->c = (s->c ^ s->b) - rotate(s->b, 24);
}

static void add_block(struct state *s, const uint8_t *p)
{
    s->a += weir__load32(p);
    s->b += weir__load32(p + 4);
    s->c += weir__load32(p + 8);
}

int16_t weir__route_hash(struct weir__bytes key)
{
    uint32_t start = LOOKUP3_START + (uint32_t)key.len;
    struct state s = {start, start, start};
    uint8_t rest[BLOCK_BYTES] = {0};
    const uint8_t *p = key.at;
    size_t left = key.len;

    if (left == 0) return 0;
    for (; left > BLOCK_BYTES; p += BLOCK_BYTES, left -= BLOCK_BYTES) {
        add_block(&s, p);
        mix(&s);
    }
    memcpy(rest, p, left);
    add_block(&s, rest);
    finish(&s);
    return (int16_t)(uint16_t)(s.c ^ s.b);
}

uint32_t weir__route_key(struct weir__bytes key, uint32_t partitions)
{
    return (uint32_t)abs(weir__route_hash(key) % (int)partitions);
}

uint32_t weir__route_next(struct weir__route_turn *turn, uint32_t partitions)
{
    return atomic_fetch_add_explicit(&turn->next, 1, memory_order_relaxed) % partitions;
}
