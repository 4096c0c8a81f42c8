/* base64url.c - four characters of six bits are three bytes; the last group may be shorter. */
#include "base/base64url.h"

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool weir__base64url_decode(struct weir__bytes in, uint8_t *out, size_t room, size_t *len)
{
    uint32_t bits = 0;
    unsigned held = 0; /* bits that are not written yet */

    *len = 0;
    if (in.len % 4 == 1) return false;
    for (size_t i = 0; i < in.len; i++) {
        int value = value_of(in.at[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held < 8) continue;
        if (*len == room) return false;
        held -= 8;
        out[(*len)++] = (uint8_t)(bits >> held);
        bits &= (1u << held) - 1;
    }
    return bits == 0;
}
