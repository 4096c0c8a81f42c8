#include "client/wire_row.h"

#include <assert.h>
#include <stdlib.h>

#define CHUNK_BYTES_MIN 4096u
#define CHUNK_BYTES 65536u
#define STORED_BIT 0x80000000u /* of a length: the item is a batch */

static_assert(WEIR__WIRE_LENGTH_BYTES == sizeof(uint32_t), "lengths are stored as such");

/* Lengths stand apart, from the end backwards, so that who looks for the next item does not need the
 * one before it in its cache. */
struct weir__wire_chunk {
    struct weir__wire_chunk *next;
    size_t cap, len; /* bytes; len of items that the caller may see */
    uint32_t count;  /* items likewise */
    uint32_t read;   /* the caller's: those of them that it had */
    size_t read_len; /* and bytes of these */
    uint8_t at[];
};

void weir__wire_row_init(struct weir__wire_row *r, struct weir__wire_pool *pool, size_t bytes_max)
{
    *r = (struct weir__wire_row){.pool = pool, .bytes_max = bytes_max};
}

static void free_chunks(struct weir__wire_chunk *c)
{
    while (c) {
        struct weir__wire_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void weir__wire_row_fini(struct weir__wire_row *r)
{
    free_chunks(r->first);
}

/* Where the length of a chunk's i-th item stands. */
static uint8_t *length_at(struct weir__wire_chunk *c, uint32_t i)
{
    return c->at + c->cap - WEIR__WIRE_LENGTH_BYTES * ((size_t)i + 1);
}

static struct weir__wire_item item_at(struct weir__wire_chunk *c, uint32_t i, size_t from)
{
    uint32_t length = weir__load32(length_at(c, i));

    return (struct weir__wire_item){weir__bytes_of(c->at + from, length & ~STORED_BIT),
                                    (length & STORED_BIT) != 0};
}

/* Whether one more item fits behind so many. */
static bool has_room(const struct weir__wire_chunk *c, size_t len, uint32_t count, size_t bytes)
{
    return bytes + WEIR__WIRE_LENGTH_BYTES <=
           c->cap - len - WEIR__WIRE_LENGTH_BYTES * (size_t)count;
}

/* ---- chunks that wait for use ---- */

void weir__wire_pool_init(struct weir__wire_pool *p)
{
    *p = (struct weir__wire_pool){.chunks = NULL};
    weir__mutex_init(&p->lock);
}

void weir__wire_pool_fini(struct weir__wire_pool *p)
{
    free_chunks(p->chunks);
    weir__mutex_fini(&p->lock);
}

/* Large enough, and not so large that a small item would hold much of nothing. */
static bool suits(const struct weir__wire_chunk *c, size_t cap)
{
    return c->cap >= cap && c->cap / 2 <= cap;
}

/* One that was used before, or NULL. */
static struct weir__wire_chunk *find_chunk(struct weir__wire_pool *p, size_t cap)
{
    struct weir__wire_chunk **at = &p->chunks, *c;

    weir__mutex_lock(&p->lock);
    while (*at && !suits(*at, cap)) at = &(*at)->next;
    c = *at;
    if (c) {
        *at = c->next;
        p->bytes -= c->cap;
    }
    weir__mutex_unlock(&p->lock);
    return c;
}

/* Those of the usual size and larger are kept; what is too much then makes way. */
static void give_chunk(struct weir__wire_pool *p, struct weir__wire_chunk *c)
{
    struct weir__wire_chunk *excess = NULL;

    c->next = NULL;
    if (c->cap < CHUNK_BYTES || c->cap > WEIR__WIRE_POOL_BYTES) {
        free(c);
        return;
    }
    weir__mutex_lock(&p->lock);
    while (c->cap > WEIR__WIRE_POOL_BYTES - p->bytes) {
        struct weir__wire_chunk *out = p->chunks;

        p->chunks = out->next;
        p->bytes -= out->cap;
        out->next = excess;
        excess = out;
    }
    c->next = p->chunks;
    p->chunks = c;
    p->bytes += c->cap;
    weir__mutex_unlock(&p->lock);
    free_chunks(excess);
}

static struct weir__wire_chunk *take_chunk(struct weir__wire_row *r, size_t cap)
{
    struct weir__wire_chunk *c = cap >= CHUNK_BYTES ? find_chunk(r->pool, cap) : NULL;

    if (c)
        cap = c->cap;
    else
        c = malloc(sizeof *c + cap);
    if (c) *c = (struct weir__wire_chunk){.cap = cap};
    return c;
}

/* ---- a row's chunks, with the lock ---- */

/* Room for an item at the end of the row. */
static struct weir__wire_chunk *make_room(struct weir__wire_row *r, size_t bytes)
{
    size_t cap = r->held < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : CHUNK_BYTES;
    struct weir__wire_chunk *c = r->tail;

    if (c && has_room(c, c->len, c->count, bytes)) return c;
    bytes += WEIR__WIRE_LENGTH_BYTES;
    if (bytes > CHUNK_BYTES) bytes = weir__round_up(bytes, CHUNK_BYTES);
    c = take_chunk(r, cap > bytes ? cap : bytes);
    if (!c) return NULL;
    if (r->tail)
        r->tail->next = c;
    else
        r->first = c;
    r->tail = c;
    return c;
}

/* ---- the loop ---- */

bool weir__wire_row_fits(const struct weir__wire_row *r, size_t bytes)
{
    return r->filling && has_room(r->filling, r->filled, r->filled_count, bytes);
}

bool weir__wire_row_begin(struct weir__wire_row *r, size_t bytes)
{
    weir__wire_row_show(r);
    r->filling = make_room(r, bytes);
    if (!r->filling) return false;
    r->filled = r->filling->len;
    r->filled_count = r->filling->count;
    return true;
}

void weir__wire_row_put(struct weir__wire_row *r, struct weir__wire_item item)
{
    assert(item.bytes.len < STORED_BIT);
    memcpy(r->filling->at + r->filled, item.bytes.at, item.bytes.len);
    weir__store32(length_at(r->filling, r->filled_count),
                  (uint32_t)item.bytes.len | (item.stored ? STORED_BIT : 0));
    r->filled += item.bytes.len;
    r->filled_count++;
}

uint32_t weir__wire_row_hidden(const struct weir__wire_row *r)
{
    return r->filling ? r->filled_count - r->filling->count : 0;
}

size_t weir__wire_row_hidden_bytes(const struct weir__wire_row *r)
{
    if (!r->filling) return 0;
    return r->filled - r->filling->len + WEIR__WIRE_LENGTH_BYTES * (size_t)weir__wire_row_hidden(r);
}

void weir__wire_row_show(struct weir__wire_row *r)
{
    if (!r->filling) return;
    r->held += weir__wire_row_hidden_bytes(r);
    r->held_count += weir__wire_row_hidden(r);
    r->filling->len = r->filled;
    r->filling->count = r->filled_count;
    r->filling = NULL;
}

bool weir__wire_row_newest(const struct weir__wire_row *r, struct weir__wire_item *out)
{
    struct weir__wire_chunk *c = r->tail;

    if (!c || c->count == 0) return false;
    *out = item_at(c, c->count - 1, 0);
    out->bytes.at = c->at + c->len - out->bytes.len;
    return true;
}

/* ---- the caller ---- */

void weir__wire_row_release(struct weir__wire_row *r)
{
    r->held -= r->given;
    r->held_count -= r->given_count;
    r->given = r->given_count = 0;
    while (r->first && r->first != r->filling && r->first->read == r->first->count) {
        struct weir__wire_chunk *c = r->first;
        r->first = c->next;
        if (!r->first) r->tail = NULL;
        give_chunk(r->pool, c);
    }
    r->at = r->last = NULL;
}

bool weir__wire_row_look(struct weir__wire_row *r)
{
    struct weir__wire_item item;

    if (!r->at) r->at = r->first;
    r->last = r->tail;
    r->last_count = r->tail ? r->tail->count : 0;
    return weir__wire_row_peek(r, &item);
}

/* Chunks before the last stay as they are; of the last one so many items do. */
bool weir__wire_row_peek(struct weir__wire_row *r, struct weir__wire_item *out)
{
    while (r->at && r->at->read == (r->at == r->last ? r->last_count : r->at->count)) {
        if (r->at == r->last) return false;
        r->at = r->at->next;
    }
    if (!r->at) return false;
    *out = item_at(r->at, r->at->read, r->at->read_len);
    return true;
}

void weir__wire_row_pass(struct weir__wire_row *r, const struct weir__wire_item *item)
{
    r->at->read++;
    r->at->read_len += item->bytes.len;
    r->given += WEIR__WIRE_LENGTH_BYTES + item->bytes.len;
    r->given_count++;
}
