#include "client/annotations.h"

#include "amqp/message.h"

/* The key, in the form that nearly all clients write it; its length and text follow. */
#define KEY_HEAD "\xa3\x13" WEIR__EH_KEY "\xa1"
#define KEY_HEAD_BYTES (sizeof KEY_HEAD - 1)

/* Up to the first that is no digit; offsets of other kinds than ours have no number. */
static uint64_t read_decimal(struct weir__bytes text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(text.at[i] - '0');
    return n;
}

static bool is_named(const struct weir__amqp_value *name, const char *text)
{
    return name->bytes.len == strlen(text) && memcmp(name->bytes.at, text, name->bytes.len) == 0;
}

/* A key and its value in any form, from the beginning of what is left. */
static bool read_pair(struct weir__annotations *a, struct weir__amqp_cursor *c)
{
    struct weir__amqp_value name, value;

    if (!weir__amqp_read(c, &name) || !weir__amqp_read(c, &value)) return false;
    if (is_named(&name, WEIR__EH_SEQUENCE)) {
        a->sequence = (uint64_t)value.i;
        a->has_sequence = true;
    } else if (is_named(&name, WEIR__EH_TIME)) {
        a->time_ms = value.i;
    } else if (is_named(&name, WEIR__EH_OFFSET)) {
        a->offset = read_decimal(value.bytes);
    } else if (is_named(&name, WEIR__EH_KEY) && value.type == WEIR__AMQP_STRING) {
        if (!a->key.at) a->key = value.bytes;
    }
    return true;
}

/* The key in its usual form; false: it is not, or something else, and nothing was read. */
static bool read_key(struct weir__annotations *a, struct weir__amqp_cursor *c)
{
    const uint8_t *p = c->at;
    size_t left = weir__amqp_left(c);

    if (left < KEY_HEAD_BYTES + 1 || !WEIR__STAMP_HAS(p, KEY_HEAD)) return false;
    if (left - KEY_HEAD_BYTES - 1 < p[KEY_HEAD_BYTES]) return false;
    if (!a->key.at) a->key = weir__bytes_of(p + KEY_HEAD_BYTES + 1, p[KEY_HEAD_BYTES]);
    c->at += KEY_HEAD_BYTES + 1 + p[KEY_HEAD_BYTES];
    return true;
}

static bool read_stamp(struct weir__annotations *a, struct weir__amqp_cursor *c)
{
    if (weir__amqp_left(c) < WEIR__STAMP_BYTES ||
        !weir__stamp_read(c->at, &a->sequence, &a->time_ms, &a->offset))
        return false;
    a->has_sequence = true;
    c->at += WEIR__STAMP_BYTES;
    return true;
}

static bool read_epoch(struct weir__amqp_cursor *c, uint32_t *count)
{
    struct weir__bytes left = weir__bytes_of(c->at, weir__amqp_left(c));

    if (!weir__stamp_pass_epoch(&left, count)) return false;
    c->at = left.at;
    return true;
}

void weir__annotations_read(struct weir__annotations *a, struct weir__bytes items, uint32_t count)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(items);

    while (count >= 2) {
        if (read_epoch(&c, &count)) continue;
        if (count >= WEIR__STAMP_ITEMS && read_stamp(a, &c))
            count -= WEIR__STAMP_ITEMS;
        else if (read_key(a, &c) || read_pair(a, &c))
            count -= 2;
        else
            return;
    }
}

void weir__annotations_find(struct weir__annotations *a, struct weir__bytes message)
{
    struct weir__amqp_cursor rest;
    struct weir__amqp_message m;
    struct weir__amqp_value map;

    if (weir__amqp_message_scan_until(&m, message, WEIR__AMQP_PROPERTIES, &rest, NULL) != 0) return;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    weir__annotations_read(a, map.bytes, map.count);
}
