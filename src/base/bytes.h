/* bytes.h - borrowed bytes, and little-endian loads and stores for what is stored on disk. */
#ifndef WEIR_BASE_BYTES_H
#define WEIR_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that belong to somebody else. */
struct weir__bytes {
    const uint8_t *at;
    size_t len;
};

static inline struct weir__bytes weir__bytes_of(const void *at, size_t len)
{
    return (struct weir__bytes){(const uint8_t *)at, len};
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored integers are little-endian; this host needs byte swaps in base/bytes.h"
#endif

static inline uint16_t weir__load16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t weir__load32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t weir__load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void weir__store16(void *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void weir__store32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void weir__store64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Rounds up or down to a power of two. */
static inline uint64_t weir__round_up(uint64_t v, uint64_t unit)
{
    return (v + unit - 1) & ~(unit - 1);
}

static inline uint64_t weir__round_down(uint64_t v, uint64_t unit)
{
    return v & ~(unit - 1);
}

#endif
