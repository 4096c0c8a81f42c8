/* buf.h - bytes that we own and that grow, up to a maximum given at birth. */
#ifndef WEIR_BASE_BUF_H
#define WEIR_BASE_BUF_H

#include <stdbool.h>

#include "base/bytes.h"

struct weir__buf {
    uint8_t *at;
    size_t len;
    size_t cap;
    size_t max;
};

void weir__buf_init(struct weir__buf *, size_t max);
void weir__buf_fini(struct weir__buf *);

/* Makes room for `more` bytes behind len and returns where they go; len does not move.
 * NULL when the maximum or memory is exhausted: the buffer is then as it was. */
uint8_t *weir__buf_room(struct weir__buf *, size_t more);

/* By how much weir__buf_room would make it grow; 0 when the maximum is exhausted. */
size_t weir__buf_growth(const struct weir__buf *, size_t more);

/* Appends; false when there is no room. */
bool weir__buf_add(struct weir__buf *, const void *at, size_t len);

static inline void weir__buf_clear(struct weir__buf *b)
{
    b->len = 0;
}

static inline struct weir__bytes weir__buf_bytes(const struct weir__buf *b)
{
    return (struct weir__bytes){b->at, b->len};
}

#endif
