#include "http/target.h"

bool weir__http_take_segment(struct weir__bytes *path, struct weir__bytes *out)
{
    const uint8_t *end;

    if (path->len < 2 || path->at[0] != '/') return false;
    path->at++;
    path->len--;
    end = memchr(path->at, '/', path->len);
    *out = weir__bytes_of(path->at, end ? (size_t)(end - path->at) : path->len);
    *path = weir__bytes_of(path->at + out->len, path->len - out->len);
    return true;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool weir__http_unescape(struct weir__bytes in, char *out, size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i < in.len; i++) {
        int c = in.at[i];
        if (c == '%') {
            int high = in.len - i < 3 ? -1 : hex_digit(in.at[i + 1]);
            int low = high < 0 ? -1 : hex_digit(in.at[i + 2]);
            if (low < 0) return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c == 0 || used + 1 >= room) return false;
        out[used++] = (char)c;
    }
    if (room == 0) return false;
    out[used] = '\0';
    return true;
}

bool weir__http_find_query(struct weir__bytes query, const char *name, struct weir__bytes *out)
{
    size_t len = strlen(name), at = 0;

    while (at < query.len) {
        const uint8_t *word = query.at + at, *end = memchr(word, '&', query.len - at);
        size_t word_len = end ? (size_t)(end - word) : query.len - at;
        bool alone = word_len == len;
        at += word_len + 1;
        if (word_len < len || memcmp(word, name, len) != 0 || (!alone && word[len] != '='))
            continue;
        *out = alone ? weir__bytes_of(word + len, 0)
                     : weir__bytes_of(word + len + 1, word_len - len - 1);
        return true;
    }
    return false;
}
