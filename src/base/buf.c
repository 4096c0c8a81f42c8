#include "base/buf.h"

#include <stdlib.h>

#define BUF_FIRST_BYTES 256

void weir__buf_init(struct weir__buf *b, size_t max)
{
    *b = (struct weir__buf){.max = max};
}

void weir__buf_fini(struct weir__buf *b)
{
    free(b->at);
    *b = (struct weir__buf){.max = b->max};
}

static size_t cap_for(const struct weir__buf *b, size_t want)
{
    size_t cap = b->cap ? b->cap : BUF_FIRST_BYTES;

    if (cap > b->max) cap = b->max;
    while (cap < want) cap = cap > b->max / 2 ? b->max : cap * 2;
    return cap;
}

size_t weir__buf_growth(const struct weir__buf *b, size_t more)
{
    if (more > b->max || b->len > b->max - more) return 0;
    return cap_for(b, b->len + more) - b->cap;
}

uint8_t *weir__buf_room(struct weir__buf *b, size_t more)
{
    size_t want, cap;
    uint8_t *at;

    if (more > b->max || b->len > b->max - more) return NULL;
    want = b->len + more;
    if (want <= b->cap && b->at) return b->at + b->len;
    cap = cap_for(b, want);
    at = realloc(b->at, cap);
    if (!at) return NULL;
    b->at = at;
    b->cap = cap;
    return at + b->len;
}

bool weir__buf_add(struct weir__buf *b, const void *at, size_t len)
{
    uint8_t *to = weir__buf_room(b, len);

    if (!to) return false;
    if (len) memcpy(to, at, len);
    b->len += len;
    return true;
}
