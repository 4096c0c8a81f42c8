/* codec.h - AMQP 1.0 values, read from bytes where they lie.
 *
 * A value on the wire is a constructor byte and what it announces: nothing, a fixed number of
 * bytes, a size and bytes, or a size, a count and items. Reading gives one value and never enters
 * it: strings are borrowed, and a list, map or array is given as the bytes of its items, to be
 * walked with struct weir__amqp_items. Nothing here allocates, and nothing reads past its cursor.
 *
 * weir__amqp_read looks at one value only; weir__amqp_check looks at everything inside it too.
 * Writing is in writer.h. */
#ifndef WEIR_AMQP_CODEC_H
#define WEIR_AMQP_CODEC_H

#include "amqp/cursor.h"

/* How deep values may be nested, described values counted. */
#define WEIR__AMQP_DEPTH_MAX 32

/* How many items an array may have whose items take no bytes (null, true, an empty list): twelve
 * bytes could otherwise claim four thousand million of them. */
#define WEIR__AMQP_EMPTY_ITEMS_MAX 4096

enum weir__amqp_type {
    WEIR__AMQP_NULL, /* so that a zeroed value is null */
    WEIR__AMQP_BOOL,
    WEIR__AMQP_UBYTE,
    WEIR__AMQP_USHORT,
    WEIR__AMQP_UINT,
    WEIR__AMQP_ULONG,
    WEIR__AMQP_CHAR,
    WEIR__AMQP_BYTE,
    WEIR__AMQP_SHORT,
    WEIR__AMQP_INT,
    WEIR__AMQP_LONG,
    WEIR__AMQP_TIMESTAMP,
    WEIR__AMQP_FLOAT,
    WEIR__AMQP_DOUBLE,
    WEIR__AMQP_DECIMAL32,
    WEIR__AMQP_DECIMAL64,
    WEIR__AMQP_DECIMAL128,
    WEIR__AMQP_UUID,
    WEIR__AMQP_BINARY,
    WEIR__AMQP_STRING,
    WEIR__AMQP_SYMBOL,
    WEIR__AMQP_LIST,
    WEIR__AMQP_MAP,
    WEIR__AMQP_ARRAY,
    WEIR__AMQP_DESCRIBED,
    WEIR__AMQP_TYPES
};

/* A set of types, for "one of these is wanted here". */
#define WEIR__AMQP_SET(type) (1u << (type))

struct weir__amqp_value {
    enum weir__amqp_type type;
    uint32_t count; /* list, array: items; map: keys and values together */
    union {
        uint64_t u; /* bool, ubyte ... ulong, char */
        int64_t i;  /* byte ... long, timestamp (milliseconds since 1970) */
        float f;
        double d;
    };
    /* uuid (16), decimals (opaque), binary, string, symbol: their bytes.
     * list, map: their items. array: the constructor of the items and the items.
     * described: the descriptor and the value behind it. Empty for everything else, so that who
     * takes a number for a string gets an empty string. */
    struct weir__bytes bytes;
};

/* The items of a list or an array, or the keys and values of a map in turn. */
struct weir__amqp_items {
    struct weir__amqp_cursor in; /* in.why tells a failure from the end */
    uint32_t left;
    uint8_t code;                  /* of all items of an array, else 0 */
    struct weir__bytes descriptor; /* of all items of an array whose type is described */
};

/* Values to write, or to compare with. */
static inline struct weir__amqp_value weir__amqp_unsigned(enum weir__amqp_type type, uint64_t u)
{
    return (struct weir__amqp_value){.type = type, .u = u};
}

static inline struct weir__amqp_value weir__amqp_signed(enum weir__amqp_type type, int64_t i)
{
    return (struct weir__amqp_value){.type = type, .i = i};
}

static inline struct weir__amqp_value weir__amqp_bytes(enum weir__amqp_type type, const void *at,
                                                       size_t len)
{
    return (struct weir__amqp_value){.type = type, .bytes = weir__bytes_of(at, len)};
}

/* Reads the next value. false and a stopped cursor when there is none or its frame is broken. */
bool weir__amqp_read(struct weir__amqp_cursor *, struct weir__amqp_value *out);

/* The same, for a value whose type is one of a set made with WEIR__AMQP_SET. */
bool weir__amqp_read_one(struct weir__amqp_cursor *, uint32_t types, struct weir__amqp_value *out);

/* Steps over the next value, or over the next value with everything in it examined. */
bool weir__amqp_skip(struct weir__amqp_cursor *);
bool weir__amqp_check(struct weir__amqp_cursor *);

/* Begins to walk a list, a map or an array; anything else has no items and gives in.why. */
void weir__amqp_items_init(struct weir__amqp_items *, const struct weir__amqp_value *);

/* The next item. false at the end, and when the items are broken: in.why is then set. */
bool weir__amqp_items_next(struct weir__amqp_items *, struct weir__amqp_value *out);

/* The next key and value of a map. */
bool weir__amqp_items_pair(struct weir__amqp_items *, struct weir__amqp_value *key,
                           struct weir__amqp_value *value);

/* The first value of a map under this symbol or string; false when there is none. */
bool weir__amqp_map_find(const struct weir__amqp_value *map, const char *name,
                         struct weir__amqp_value *out);

/* Splits a described value. */
bool weir__amqp_described(const struct weir__amqp_value *, struct weir__amqp_value *descriptor,
                          struct weir__amqp_value *out);

/* Whether a string is UTF-8 as RFC 3629 has it (no surrogates, nothing overlong). Reading and
 * checking do not ask. */
bool weir__amqp_utf8(struct weir__bytes);

/* "ulong"; for messages. */
const char *weir__amqp_type_name(enum weir__amqp_type);
const char *weir__amqp_code_name(uint8_t constructor); /* of what it begins; NULL: nothing */

#endif
