#include "log/chunks.h"

#include <assert.h>
#include <stdlib.h>

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

static int grow(struct weir__chunks *c, uint64_t size, struct weir_error *err)
{
    struct weir__budget *b = c->budget;
    size_t had = chunks_of(c->size);
    uint8_t **at;

    if (size > b->max || !charge(b, chunks_of(size) - had))
        return weir__fail(err, WEIR_ENOSPACE,
                          "all of the %llu MiB that may be kept in memory are used",
                          (unsigned long long)(b->max >> 20));
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
    size_t kept = size % WEIR__CHUNK_BYTES;

    for (size_t i = has; i < had; i++) free(c->at[i]);
    if (kept && c->at[has - 1]) memset(c->at[has - 1] + kept, 0, WEIR__CHUNK_BYTES - kept);
    give_back(c->budget, had - has);
    c->size = size;
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

        if (len > bytes.len) len = bytes.len;
        if (!*chunk) *chunk = calloc(1, WEIR__CHUNK_BYTES);
        if (!*chunk) return weir__fail(err, WEIR_ENOMEM, "out of memory");
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
        if (chunk)
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
