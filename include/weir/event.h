/* event.h - what is published and what is received.
 *
 * An event is a plain struct of borrowed bytes; zero what you do not use:
 *
 *     struct weir_event e = {.body = weir_text("{\"door\":\"open\"}"),
 *                            .partition_key = weir_text("home-7")};
 *
 * Publishing copies everything it needs before it returns. What a receiver gives points into the
 * receiver's memory and lives until the next receive or close on that receiver; the struct may be
 * copied and edited, and sent again as long as the bytes live.
 *
 * Events are kept in AMQP 1.0's own encoding, so what other clients of a hub wrote can be read here
 * and the other way round. */
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "weir/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that belong to somebody else; text has no NUL at its end. */
struct weir_bytes {
    const char *at;
    size_t len;
};

static inline struct weir_bytes weir_bytes(const void *at, size_t len)
{
    struct weir_bytes b = {(const char *)at, len};
    return b;
}

/* The bytes of a C string; NULL is allowed and gives none. */
static inline struct weir_bytes weir_text(const char *text)
{
    return weir_bytes(text, text ? strlen(text) : 0);
}

/* The types of a value. When an event was written by another client, AMQP's narrower numbers are
 * given widened, symbols as text, and what has no place here as its AMQP encoding. */
enum weir_type {
    WEIR_NULL, /* so that a zeroed value is absent */
    WEIR_BOOL,
    WEIR_INT,    /* AMQP long, int, short, byte */
    WEIR_UINT,   /* AMQP ulong, uint, ushort, ubyte, char */
    WEIR_DOUBLE, /* AMQP double, float */
    WEIR_TIME,   /* milliseconds since 1970 */
    WEIR_TEXT,   /* UTF-8 */
    WEIR_BINARY,
    WEIR_UUID,   /* 16 bytes */
    WEIR_ENCODED /* anything else, as it is encoded */
};

struct weir_value {
    enum weir_type type;
    union {
        bool boolean;
        int64_t integer;
        uint64_t natural;
        double real;
        int64_t time_ms;
        struct weir_bytes bytes; /* text, binary, uuid, encoded */
    };
};

static inline struct weir_value weir_value_text(const char *text)
{
    struct weir_value v = {WEIR_TEXT, {false}};
    v.bytes = weir_text(text);
    return v;
}

static inline struct weir_value weir_value_int(int64_t integer)
{
    struct weir_value v = {WEIR_INT, {false}};
    v.integer = integer;
    return v;
}

static inline struct weir_value weir_value_double(double real)
{
    struct weir_value v = {WEIR_DOUBLE, {false}};
    v.real = real;
    return v;
}

static inline struct weir_value weir_value_bool(bool boolean)
{
    struct weir_value v = {WEIR_BOOL, {false}};
    v.boolean = boolean;
    return v;
}

/* One application property. */
struct weir_property {
    struct weir_bytes name;
    struct weir_value value;
};

/* The properties that AMQP defines for every message. All are optional and none means anything to
 * the hub; bytes with at == NULL, values of type WEIR_NULL and times of 0 are absent. */
struct weir_system_properties {
    struct weir_value message_id;     /* WEIR_TEXT, WEIR_UINT, WEIR_UUID or WEIR_BINARY */
    struct weir_value correlation_id; /* likewise */
    struct weir_bytes user_id;        /* bytes; the others are text */
    struct weir_bytes to;
    struct weir_bytes subject;
    struct weir_bytes reply_to;
    struct weir_bytes content_type; /* ASCII, as content_encoding */
    struct weir_bytes content_encoding;
    struct weir_bytes group_id;
    struct weir_bytes reply_to_group_id;
    int64_t creation_time_ms;
    int64_t absolute_expiry_time_ms;
    uint32_t group_sequence;
    bool has_group_sequence;
};

/* What the body is. Events of this library and of nearly every other client are WEIR_BODY_DATA,
 * and only those can be published here. A message without a body, or with one that its sender left
 * null, is given as WEIR_BODY_DATA of no bytes. */
enum weir_body {
    WEIR_BODY_DATA,      /* bytes */
    WEIR_BODY_VALUE,     /* an AMQP value, as it is encoded */
    WEIR_BODY_SEQUENCE,  /* AMQP lists: their sections, as encoded */
    WEIR_BODY_UNREADABLE /* what its sender encoded badly: the whole message, nothing taken out */
};

struct weir_event {
    struct weir_bytes body;
    enum weir_body body_type;
    uint32_t property_count;
    const struct weir_property *properties;      /* the application's own, in their order */
    const struct weir_system_properties *system; /* NULL: none */

    /* Events with one key land in one partition, in order. At most 128 characters; at == NULL: no
     * key. */
    struct weir_bytes partition_key;

    /* Given by the hub; not looked at when publishing. */
    uint32_t partition;
    uint64_t sequence;        /* dense in its partition, from 0 */
    uint64_t offset;          /* grows in its partition, with gaps; see weir_event_offset_text */
    int64_t enqueued_time_ms; /* when it was taken in, since 1970; never less than one before it */
};

/* The most that weir_event_offset_text writes, its NUL included. */
#define WEIR_OFFSET_TEXT_BYTES 64

/* The offset as Azure's clients show and store it: decimal text. Returns out. */
WEIR_API const char *weir_event_offset_text(const struct weir_event *,
                                            char out[WEIR_OFFSET_TEXT_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
