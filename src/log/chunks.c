#include "log/chunks.h"

#include <assert.h>
#include <stdlib.h>

/* Stands for a chunk that was released. */
static uint8_t hole[1];

static size_t chunks_of(uint64_t size)
{
    return (size_t)(weir__round_up(size, WEIR__CHUNK_BYTES) / WEIR__CHUNK_BYTES);
}

static bool charge(struct weir__budget *b, size_t chunks)
{
    uint64_t bytes = (uint64_t)chunks * WEIR__CHUNK_BYTES;
    bool fits;

    weir__mutex_lock(&b->lock);
    fits = bytes <= b->max - b->used;
    if (fits) b->used += bytes;
    weir__mutex_unlock(&b->lock);
    return fits;
}

static void give_back(struct weir__budget *b, size_t chunks)
{
    uint64_t bytes = (uint64_t)chunks * WEIR__CHUNK_BYTES;

    weir__mutex_lock(&b->lock);
    assert(b->used >= bytes);
    b->used -= bytes;
    weir__mutex_unlock(&b->lock);
}

static int fail_full(const struct weir__budget *b, struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOSPACE, "all of the %llu MiB that may be kept in memory are used",
                      (unsigned long long)(b->max >> 20));
}

static int grow(struct weir__chunks *c, uint64_t size, struct weir_error *err)
{
    struct weir__budget *b = c->budget;
    size_t had = chunks_of(c->size);
    uint8_t **at;

    if (size > b->max || !charge(b, chunks_of(size) - had)) return fail_full(b, err);
    at = realloc(c->at, chunks_of(size) * sizeof *at);
    if (!at) {
        give_back(b, chunks_of(size) - had);
        return weir__fail(err, WEIR_ENOMEM, "out of memory");
    }
    for (size_t i = had; i < chunks_of(size); i++) at[i] = NULL;
    c->at = at;
    c->size = size;
    return 0;
}

/* What is cut off reads as zeros should they grow again. */
static void shrink(struct weir__chunks *c, uint64_t size)
{
    size_t had = chunks_of(c->size), has = chunks_of(size);
    size_t kept = size % WEIR__CHUNK_BYTES, holes = 0;

    for (size_t i = has; i < had; i++) {
        holes += c->at[i] == hole;
        if (c->at[i] != hole) free(c->at[i]);
    }
    if (kept && c->at[has - 1] && c->at[has - 1] != hole)
        memset(c->at[has - 1] + kept, 0, WEIR__CHUNK_BYTES - kept);
    give_back(c->budget, had - has - holes);
    c->holes -= holes;
    c->size = size;
}

void weir__chunks_release(struct weir__chunks *c, uint64_t at, uint64_t len)
{
    size_t first = chunks_of(at), end = (size_t)((at + len) / WEIR__CHUNK_BYTES), holes = 0;

    assert(at + len <= c->size);
    for (size_t i = first; i < end; i++) {
        if (c->at[i] == hole) continue;
        free(c->at[i]);
        c->at[i] = hole;
        holes++;
    }
    c->holes += holes;
    give_back(c->budget, holes);
}

int weir__chunks_fill(struct weir__chunks *c, struct weir_error *err)
{
    if (c->holes == 0) return 0;
    if (!charge(c->budget, c->holes)) return fail_full(c->budget, err);
    for (size_t i = 0; i < chunks_of(c->size); i++)
        if (c->at[i] == hole) c->at[i] = NULL;
    c->holes = 0;
    return 0;
}

uint64_t weir__chunks_used(const struct weir__chunks *c)
{
    return (uint64_t)(chunks_of(c->size) - c->holes) * WEIR__CHUNK_BYTES;
}

/* A chunk to write to. */
static int open_chunk(struct weir__chunks *c, uint8_t **chunk, struct weir_error *err)
{
    uint8_t *fresh;

    if (*chunk && *chunk != hole) return 0;
    fresh = calloc(1, WEIR__CHUNK_BYTES);
    if (!fresh) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    if (*chunk == hole && !charge(c->budget, 1)) {
        free(fresh);
        return fail_full(c->budget, err);
    }
    c->holes -= *chunk == hole;
    *chunk = fresh;
    return 0;
}

int weir__chunks_resize(struct weir__chunks *c, uint64_t size, struct weir_error *err)
{
    if (size > c->size) return grow(c, size, err);
    shrink(c, size);
    return 0;
}

int weir__chunks_write(struct weir__chunks *c, struct weir__bytes bytes, uint64_t at,
                       struct weir_error *err)
{
    assert(at <= c->size && bytes.len <= c->size - at);
    while (bytes.len > 0) {
        uint8_t **chunk = &c->at[at / WEIR__CHUNK_BYTES];
        size_t skip = at % WEIR__CHUNK_BYTES, len = WEIR__CHUNK_BYTES - skip;
        int rc = open_chunk(c, chunk, err);

        if (rc != 0) return rc;
        if (len > bytes.len) len = bytes.len;
        memcpy(*chunk + skip, bytes.at, len);
        bytes = weir__bytes_of(bytes.at + len, bytes.len - len);
        at += len;
    }
    return 0;
}

void weir__chunks_read(const struct weir__chunks *c, uint8_t *to, size_t len, uint64_t at)
{
    assert(at <= c->size && len <= c->size - at);
    while (len > 0) {
        const uint8_t *chunk = c->at[at / WEIR__CHUNK_BYTES];
        size_t skip = at % WEIR__CHUNK_BYTES, part = WEIR__CHUNK_BYTES - skip;

        if (part > len) part = len;
        if (chunk && chunk != hole)
            memcpy(to, chunk + skip, part);
        else
            memset(to, 0, part);
        to += part;
        at += part;
        len -= part;
    }
}

void weir__chunks_fini(struct weir__chunks *c)
{
    shrink(c, 0);
    free(c->at);
    c->at = NULL;
}
