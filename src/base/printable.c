#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ESCAPE_BYTES 8 /* \u202e and a NUL */

/* Characters that do something instead of being something. */
static const struct {
    uint32_t first, last;
} controls[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
};

static bool is_control(uint32_t c)
{
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++)
        if (c >= controls[i].first && c <= controls[i].last) return true;
    return false;
}

/* The length of the character that a text begins with; 0: it is no UTF-8. */
static size_t read_character(struct weir__bytes text, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = text.at[0];
    size_t len = first < 0x80   ? 1
                 : first < 0xc2 ? 0
                 : first < 0xe0 ? 2
                 : first < 0xf0 ? 3
                 : first < 0xf5 ? 4
                                : 0;

    if (len == 0 || len > text.len) return 0;
    *out = len == 1 ? first : first & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((text.at[i] & 0xc0) != 0x80) return 0;
        *out = *out << 6 | (text.at[i] & 0x3f);
    }
    if (*out < least[len]) return 0;
    return *out > 0x10ffff || (*out >= 0xd800 && *out <= 0xdfff) ? 0 : len;
}

size_t weir__printable(char *to, size_t room, struct weir__bytes text)
{
    size_t used = 0;

    while (text.len > 0) {
        char escape[ESCAPE_BYTES];
        const void *piece = text.at;
        uint32_t c = 0;
        size_t len = read_character(text, &c), put = len;

        if (len == 0 || is_control(c)) {
            bool byte = len == 0 || c < 0x80;
            put = (size_t)snprintf(escape, sizeof escape, byte ? "\\x%02x" : "\\u%04x",
                                   byte ? text.at[0] : (unsigned)c & 0xffff);
            piece = escape;
        }
        if (len == 0) len = 1;
        if (used + put >= room) break;
        memcpy(to + used, piece, put);
        used += put;
        text.at += len;
        text.len -= len;
    }
    to[used] = '\0';
    return used;
}
