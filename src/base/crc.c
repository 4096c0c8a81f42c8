/* crc.c - CRC-32C three ways that agree.
 *
 * The processor's CRC instruction takes 8 bytes but answers three cycles later, and one may start
 * every cycle. So long inputs are cut into three lanes of equal length that are computed side by
 * side and then joined: the CRC of a lane followed by n bytes is its CRC times x^(8n) modulo the
 * polynomial, one carry-less multiplication by a constant. The polynomial is kept bit-reflected
 * throughout, as the instruction wants it. */
#include "base/crc.h"

#include <stdbool.h>

#include "base/bytes.h"

#define BYTE_MASK 0xffu

/* A CRC is linear over xor, so an entry of the table is the xor of the entries of its bits. */
#define ENTRY(i)                                                                                   \
    (((i)&0x01 ? 0xf26b8303u : 0) ^ ((i)&0x02 ? 0xe13b70f7u : 0) ^ ((i)&0x04 ? 0xc79a971fu : 0) ^  \
     ((i)&0x08 ? 0x8ad958cfu : 0) ^ ((i)&0x10 ? 0x105ec76fu : 0) ^ ((i)&0x20 ? 0x20bd8edeu : 0) ^  \
     ((i)&0x40 ? 0x417b1dbcu : 0) ^ ((i)&0x80 ? 0x82f63b78u : 0))
#define ENTRY4(i) ENTRY(i), ENTRY((i) + 1), ENTRY((i) + 2), ENTRY((i) + 3)
#define ENTRY16(i) ENTRY4(i), ENTRY4((i) + 4), ENTRY4((i) + 8), ENTRY4((i) + 12)
#define ENTRY64(i) ENTRY16(i), ENTRY16((i) + 16), ENTRY16((i) + 32), ENTRY16((i) + 48)

static const uint32_t table[256] = {ENTRY64(0), ENTRY64(64), ENTRY64(128), ENTRY64(192)};

uint32_t weir__crc32c_table(uint32_t crc, const void *at, size_t len)
{
    const uint8_t *p = at;

    crc = ~crc;
    for (size_t i = 0; i < len; i++) crc = crc >> 8 ^ table[(crc ^ p[i]) & BYTE_MASK];
    return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>
#include <wmmintrin.h>

#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))

/* Lane lengths, longest first, and what carries the first and the second lane to the end of the
 * third: x^(8n - 33) modulo the polynomial for n = 2 * lane_bytes and n = lane_bytes. 33 powers are
 * left out because the product of two reflected numbers is one bit short and the CRC instruction,
 * which reduces it, multiplies by x^32. Three lanes of the first row fill 4 KiB but for 16 bytes,
 * of the second 1 KiB but for 16. */
static const struct lane_row {
    size_t lane_bytes;
    uint32_t first, second;
} lane_rows[] = {
    {1360, 0x5aa1f3cf, 0x3f70cc6f},
    {336, 0xcec3662e, 0xa60ce07b},
    {80, 0x878a92a7, 0x39d3b296},
};

#define LANE_ROWS (sizeof lane_rows / sizeof lane_rows[0])

CRC_TARGET static inline uint64_t multiply(uint64_t a, uint32_t b)
{
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), _mm_cvtsi64_si128((long long)b), 0));
}

/* The next three lanes at p. The last word of the third takes the other two with it. */
CRC_TARGET static uint64_t add_lanes(uint64_t crc, const uint8_t *p, const struct lane_row *row)
{
    size_t lane = row->lane_bytes;
    uint64_t b = 0, c = 0, last;
    size_t i;

    for (i = 0; i < lane - 8; i += 8) {
        crc = _mm_crc32_u64(crc, weir__load64(p + i));
        b = _mm_crc32_u64(b, weir__load64(p + lane + i));
        c = _mm_crc32_u64(c, weir__load64(p + 2 * lane + i));
    }
    crc = _mm_crc32_u64(crc, weir__load64(p + i));
    b = _mm_crc32_u64(b, weir__load64(p + lane + i));
    last = weir__load64(p + 2 * lane + i);
    return _mm_crc32_u64(c, last ^ multiply(crc, row->first) ^ multiply(b, row->second));
}

CRC_TARGET static uint32_t crc_hardware(uint32_t start, const uint8_t *p, size_t len)
{
    uint64_t crc = ~start;

    for (size_t i = 0; i < LANE_ROWS && len >= 3 * lane_rows[LANE_ROWS - 1].lane_bytes; i++) {
        size_t step = 3 * lane_rows[i].lane_bytes;
        for (; len >= step; p += step, len -= step) crc = add_lanes(crc, p, &lane_rows[i]);
    }
    for (; len >= 8; p += 8, len -= 8) crc = _mm_crc32_u64(crc, weir__load64(p));
    if (len & 4) {
        crc = _mm_crc32_u32((uint32_t)crc, weir__load32(p));
        p += 4;
    }
    if (len & 2) {
        crc = _mm_crc32_u16((uint32_t)crc, weir__load16(p));
        p += 2;
    }
    if (len & 1) crc = _mm_crc32_u8((uint32_t)crc, *p);
    return ~(uint32_t)crc;
}

static bool have_hardware(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#elif defined(__ARM_FEATURE_CRC32)

#include <arm_acle.h>

static uint32_t crc_hardware(uint32_t start, const uint8_t *p, size_t len)
{
    uint32_t crc = ~start;

    for (; len >= 8; p += 8, len -= 8) crc = __crc32cd(crc, weir__load64(p));
    for (; len; p++, len--) crc = __crc32cb(crc, *p);
    return ~crc;
}

static bool have_hardware(void)
{
    return true;
}

#else

static uint32_t crc_hardware(uint32_t start, const uint8_t *p, size_t len)
{
    return weir__crc32c_table(start, p, len);
}

static bool have_hardware(void)
{
    return false;
}

#endif

uint32_t weir__crc32c(uint32_t crc, const void *at, size_t len)
{
    return have_hardware() ? crc_hardware(crc, at, len) : weir__crc32c_table(crc, at, len);
}
