/* sample.h - bytes from hexadecimal text, and values from a seeded generator. */
#ifndef WEIR_TESTS_AMQP_SAMPLE_H
#define WEIR_TESTS_AMQP_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "amqp/message.h"

#define SAMPLE_BYTES_MAX ((size_t)1 << 20)

/* A copy in an allocation of exactly its size, so that a read past the end is seen. Freed by the
 * caller. */
static inline struct weir__bytes sample_copy(struct weir__bytes b)
{
    uint8_t *at = malloc(b.len ? b.len : 1);

    assert_non_null(at);
    if (b.len) memcpy(at, b.at, b.len);
    return weir__bytes_of(at, b.len);
}

static inline void sample_free(struct weir__bytes b)
{
    free((void *)b.at);
}

static inline uint8_t hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

    assert_non_null(at);
    return (uint8_t)(at - digits);
}

/* "00 53 75 a0 03 'abc'": hexadecimal digits, spaces, and text in single quotes. Allocated exactly;
 * freed by the caller. */
static inline struct weir__bytes sample_hex(const char *text)
{
    uint8_t *to = malloc(strlen(text) + 1);
    struct weir__bytes copy;
    size_t len = 0;

    assert_non_null(to);
    while (*text) {
        if (*text == '\'') {
            for (text++; *text != '\''; text++) to[len++] = (uint8_t)*text;
            text++;
        } else if (*text == ' ') {
            text++;
        } else {
            to[len++] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
            text += 2;
        }
    }
    copy = sample_copy(weir__bytes_of(to, len));
    free(to);
    return copy;
}

static inline void assert_bytes(struct weir__bytes got, struct weir__bytes want)
{
    assert_int_equal(got.len, want.len);
    if (want.len) assert_memory_equal(got.at, want.at, want.len);
}

static inline void assert_value(const struct weir__amqp_value *got,
                                const struct weir__amqp_value *want)
{
    assert_string_equal(weir__amqp_type_name(got->type), weir__amqp_type_name(want->type));
    assert_int_equal(got->count, want->count);
    assert_bytes(got->bytes, want->bytes);
    if (want->type == WEIR__AMQP_FLOAT)
        assert_memory_equal(&got->f, &want->f, sizeof got->f);
    else
        assert_int_equal(got->u, want->u);
}

/* Xorshift: the same numbers for the same seed everywhere. */
static inline uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static inline uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    return next_random(seed) % limit;
}

/* Numbers of every length, small ones as often as large ones. */
static inline uint64_t random_number(uint64_t *seed, unsigned bits)
{
    uint64_t v = next_random(seed) >> random_below(seed, 64);
    return bits < 64 ? v & (((uint64_t)1 << bits) - 1) : v;
}

static inline int64_t random_signed(uint64_t *seed, unsigned bits)
{
    return (int64_t)(random_number(seed, bits) << (64 - bits)) >> (64 - bits);
}

/* What a random string borrows from. */
static inline struct weir__bytes random_bytes(uint64_t *seed)
{
    static const char text[] =
        "In the reading of all these histories there is this to be marked, that the same things "
        "come again under other names; who has seen one river dammed knows the water of the rest. "
        "A weir lets the water pass and keeps the level, and nobody who drinks downstream needs "
        "to know how high it stood above, only that it came, and came in order, and was not lost.";
    size_t len = (size_t)random_below(seed, random_below(seed, 8) ? 24 : 300);
    size_t at = (size_t)random_below(seed, sizeof text - len);

    return weir__bytes_of(text + at, len);
}

/* Any value without items: null to symbol. */
static inline struct weir__amqp_value random_simple(uint64_t *seed)
{
    static const uint8_t bits[] = {
        [WEIR__AMQP_BOOL] = 1,  [WEIR__AMQP_UBYTE] = 8,     [WEIR__AMQP_USHORT] = 16,
        [WEIR__AMQP_UINT] = 32, [WEIR__AMQP_ULONG] = 64,    [WEIR__AMQP_CHAR] = 20,
        [WEIR__AMQP_BYTE] = 8,  [WEIR__AMQP_SHORT] = 16,    [WEIR__AMQP_INT] = 32,
        [WEIR__AMQP_LONG] = 64, [WEIR__AMQP_TIMESTAMP] = 64};
    static const uint8_t opaque[] = "0123456789abcdef";
    enum weir__amqp_type type = (enum weir__amqp_type)random_below(seed, WEIR__AMQP_LIST);
    struct weir__amqp_value v = {.type = type};

    if (type >= WEIR__AMQP_BINARY)
        v.bytes = random_bytes(seed);
    else if (type >= WEIR__AMQP_DECIMAL32)
        v.bytes = weir__bytes_of(opaque, type == WEIR__AMQP_DECIMAL32   ? 4
                                         : type == WEIR__AMQP_DECIMAL64 ? 8
                                                                        : 16);
    else if (type == WEIR__AMQP_FLOAT)
        v.f = (float)random_signed(seed, 24) / 16;
    else if (type == WEIR__AMQP_DOUBLE)
        v.d = (double)random_signed(seed, 50) / 1024;
    else if (type >= WEIR__AMQP_BYTE)
        v.i = random_signed(seed, bits[type]);
    else if (type != WEIR__AMQP_NULL)
        v.u = random_number(seed, bits[type]);
    return v;
}

#endif
