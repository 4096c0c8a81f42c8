#include "client/decode.h"

#include <string.h>

#include "client/annotations.h"

static struct weir_bytes outer(struct weir__bytes b)
{
    return weir_bytes(b.at, b.len);
}

/* What each type of AMQP becomes. */
static const enum weir_type types[WEIR__AMQP_TYPES] = {
    [WEIR__AMQP_NULL] = WEIR_NULL,          [WEIR__AMQP_BOOL] = WEIR_BOOL,
    [WEIR__AMQP_UBYTE] = WEIR_UINT,         [WEIR__AMQP_USHORT] = WEIR_UINT,
    [WEIR__AMQP_UINT] = WEIR_UINT,          [WEIR__AMQP_ULONG] = WEIR_UINT,
    [WEIR__AMQP_CHAR] = WEIR_UINT,          [WEIR__AMQP_BYTE] = WEIR_INT,
    [WEIR__AMQP_SHORT] = WEIR_INT,          [WEIR__AMQP_INT] = WEIR_INT,
    [WEIR__AMQP_LONG] = WEIR_INT,           [WEIR__AMQP_TIMESTAMP] = WEIR_TIME,
    [WEIR__AMQP_FLOAT] = WEIR_DOUBLE,       [WEIR__AMQP_DOUBLE] = WEIR_DOUBLE,
    [WEIR__AMQP_DECIMAL32] = WEIR_ENCODED,  [WEIR__AMQP_DECIMAL64] = WEIR_ENCODED,
    [WEIR__AMQP_DECIMAL128] = WEIR_ENCODED, [WEIR__AMQP_UUID] = WEIR_UUID,
    [WEIR__AMQP_BINARY] = WEIR_BINARY,      [WEIR__AMQP_STRING] = WEIR_TEXT,
    [WEIR__AMQP_SYMBOL] = WEIR_TEXT,        [WEIR__AMQP_LIST] = WEIR_ENCODED,
    [WEIR__AMQP_MAP] = WEIR_ENCODED,        [WEIR__AMQP_ARRAY] = WEIR_ENCODED,
    [WEIR__AMQP_DESCRIBED] = WEIR_ENCODED,
};

/* encoded: the value with its constructor, where it lies. */
static struct weir_value from_amqp(const struct weir__amqp_value *v, struct weir_bytes encoded)
{
    struct weir_value out = {.type = types[v->type]};

    switch (out.type) {
    case WEIR_NULL: break;
    case WEIR_BOOL: out.boolean = v->u != 0; break;
    case WEIR_INT: out.integer = v->i; break;
    case WEIR_UINT: out.natural = v->u; break;
    case WEIR_DOUBLE: out.real = v->type == WEIR__AMQP_FLOAT ? (double)v->f : v->d; break;
    case WEIR_TIME: out.time_ms = v->i; break;
    case WEIR_TEXT:
    case WEIR_BINARY:
    case WEIR_UUID: out.bytes = outer(v->bytes); break;
    case WEIR_ENCODED: out.bytes = encoded; break;
    }
    return out;
}

/* WEIR_EINVAL here and below: the message is unreadable; its text goes nowhere. */
static int decode_properties(const struct weir__amqp_message *m, struct weir__arena *arena,
                             struct weir_event *out)
{
    struct weir__amqp_value map = weir__amqp_message_map(m, WEIR__AMQP_APPLICATION_PROPERTIES);
    struct weir__amqp_value name, value;
    struct weir__amqp_items items;
    struct weir_property *properties;
    uint32_t count = map.count / 2;

    if (count == 0) return 0;
    if (count > map.bytes.len) return WEIR_EINVAL; /* a name takes a byte at least */
    properties = weir__arena_take(arena, count * sizeof *properties);
    if (!properties) return WEIR_ENOMEM;
    weir__amqp_items_init(&items, &map);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *start;
        if (!weir__amqp_items_next(&items, &name)) return WEIR_EINVAL;
        start = items.in.at;
        if (name.type != WEIR__AMQP_STRING && name.type != WEIR__AMQP_SYMBOL) return WEIR_EINVAL;
        if (!weir__amqp_items_next(&items, &value)) return WEIR_EINVAL;
        properties[i].name = outer(name.bytes);
        properties[i].value = from_amqp(&value, weir_bytes(start, (size_t)(items.in.at - start)));
    }
    out->properties = properties;
    out->property_count = count;
    return 0;
}

static struct weir_bytes bytes_of(const struct weir__amqp_value *v)
{
    if (v->type == WEIR__AMQP_NULL) return weir_bytes(NULL, 0);
    return outer(v->bytes);
}

static int decode_system(const struct weir__amqp_message *m, struct weir__arena *arena,
                         struct weir_event *out)
{
    struct weir_system_properties *s = weir__arena_take(arena, sizeof *s);
    struct weir__amqp_properties p;

    if (!s) return WEIR_ENOMEM;
    if (weir__amqp_message_properties(m, &p, NULL) != 0) return WEIR_EINVAL;
    *s = (struct weir_system_properties){
        .message_id = from_amqp(&p.message_id, weir_bytes(NULL, 0)),
        .correlation_id = from_amqp(&p.correlation_id, weir_bytes(NULL, 0)),
        .user_id = bytes_of(&p.user_id),
        .to = bytes_of(&p.to),
        .subject = bytes_of(&p.subject),
        .reply_to = bytes_of(&p.reply_to),
        .content_type = bytes_of(&p.content_type),
        .content_encoding = bytes_of(&p.content_encoding),
        .group_id = bytes_of(&p.group_id),
        .reply_to_group_id = bytes_of(&p.reply_to_group_id),
        .creation_time_ms = p.creation_time.i,
        .absolute_expiry_time_ms = p.absolute_expiry_time.i,
        .group_sequence = (uint32_t)p.group_sequence.u,
        .has_group_sequence = p.group_sequence.type != WEIR__AMQP_NULL,
    };
    out->system = s;
    return 0;
}

/* Several data sections are one body in parts. */
static int join_data(const struct weir__amqp_message *m, struct weir__arena *arena,
                     struct weir_event *out)
{
    struct weir__amqp_batch_walk walk;
    struct weir__bytes part;
    char *to = weir__arena_take(arena, m->raw.len);
    size_t len = 0;

    if (!to) return WEIR_ENOMEM;
    if (weir__amqp_batch_start(&walk, m->raw, NULL) != 0) return WEIR_EINVAL;
    for (;;) {
        if (weir__amqp_batch_next(&walk, &part, NULL) != 0) return WEIR_EINVAL;
        if (!part.at) break;
        memcpy(to + len, part.at, part.len);
        len += part.len;
    }
    out->body = weir_bytes(to, len);
    return 0;
}

static int decode_body(const struct weir__amqp_message *m, struct weir__arena *arena,
                       struct weir_event *out)
{
    const struct weir__amqp_span *span = &m->section[WEIR__AMQP_BODY];

    switch (m->body) {
    case WEIR__AMQP_BODY_NONE: break;
    case WEIR__AMQP_BODY_DATA:
        if (m->body_count > 1) return join_data(m, arena, out);
        out->body = outer(m->data);
        break;
    case WEIR__AMQP_BODY_VALUE:
        out->body_type = WEIR_BODY_VALUE;
        out->body = weir_bytes(m->raw.at + span->value, span->end - span->value);
        break;
    case WEIR__AMQP_BODY_SEQUENCE:
        out->body_type = WEIR_BODY_SEQUENCE;
        out->body = weir_bytes(m->raw.at + span->at, span->end - span->at);
        break;
    }
    return 0;
}

/* The key in the message itself goes before the batch's. */
static void decode_key(struct weir__bytes items, uint32_t count, struct weir_event *out)
{
    struct weir__annotations a = {.has_sequence = false};

    weir__annotations_read(&a, items, count);
    if (a.key.at) out->partition_key = outer(a.key);
}

static int decode_message(struct weir__bytes raw, struct weir__arena *arena, struct weir_event *out)
{
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    int rc;

    if (weir__amqp_message_scan(&m, raw, WEIR__AMQP_SHALLOW, NULL) != 0) return WEIR_EINVAL;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    if (map.count) decode_key(map.bytes, map.count, out);
    rc = decode_body(&m, arena, out);
    if (rc == 0 && m.section[WEIR__AMQP_APPLICATION_PROPERTIES].end)
        rc = decode_properties(&m, arena, out);
    if (rc == 0 && m.section[WEIR__AMQP_PROPERTIES].end) rc = decode_system(&m, arena, out);
    return rc;
}

/* frame: what is known besides the message. */
static int decode_slowly(struct weir__bytes message, const struct weir_event *frame,
                         struct weir__arena *arena, struct weir_event *out, struct weir_error *err)
{
    int rc;

    *out = *frame;
    rc = decode_message(message, arena, out);
    if (rc == WEIR_ENOMEM) return weir__fail(err, rc, "no memory to decode an event");
    if (rc != 0) {
        *out = *frame;
        out->body_type = WEIR_BODY_UNREADABLE;
        out->body = outer(message);
    }
    return 0;
}

/* ---- the usual message ---- */

/* 00 53 72 c1, 00 53 75 a0 and 00 53 75 b0, as a little-endian load gives them. */
#define ANNOTATIONS_MAP8 0xc1725300u
#define DATA_BINARY8 0xa0755300u
#define DATA_BINARY32 0xb0755300u

/* Nearly every message is a data section, with or without annotations before it, in these forms.
 * false: this one is something else, or broken; a scan tells. */
static inline bool split_usual(struct weir__bytes raw, struct weir__bytes *items, uint32_t *count,
                               struct weir__bytes *body)
{
    const uint8_t *p = raw.at;
    size_t left = raw.len, head;

    *count = 0;
    *items = weir__bytes_of(NULL, 0);
    if (left >= 6 && weir__load32(p) == ANNOTATIONS_MAP8) {
        size_t size = p[4]; /* the count's byte is in it */
        *count = p[5];
        if (size > left - 5 || *count >= size || *count % 2) return false;
        *items = weir__bytes_of(p + 6, size - 1);
        p += 5 + size;
        left -= 5 + size;
    }
    if (left < 8) return false;
    head = weir__load32(p) == DATA_BINARY8 ? 5 : 8;
    if (head == 8 && weir__load32(p) != DATA_BINARY32) return false;
    *body = weir__bytes_of(p + head, left - head);
    return body->len == (head == 5 ? p[4] : weir__load_be32(p + 4));
}

/* An event with annotations of its own, or in no usual form. */
static __attribute__((noinline)) int decode_rest(const struct weir__event *e, uint32_t partition,
                                                 struct weir__arena *arena, struct weir_event *out,
                                                 struct weir_error *err)
{
    struct weir_event frame = {
        .partition_key = outer(e->key),
        .partition = partition,
        .sequence = e->sequence,
        .offset = e->offset,
        .enqueued_time_ms = e->time_ms,
    };
    struct weir__bytes items, body;
    uint32_t count;

    if (!split_usual(e->message, &items, &count, &body))
        return decode_slowly(e->message, &frame, arena, out, err);
    decode_key(items, count, &frame);
    frame.body = outer(body);
    *out = frame;
    return 0;
}

/* Each member is written once and none is read again, which would wait for the writing. */
static inline int decode_event(const struct weir__event *e, uint32_t partition,
                               struct weir__arena *arena, struct weir_event *out,
                               struct weir_error *err)
{
    struct weir__bytes items, body;
    uint32_t count;

    if (!split_usual(e->message, &items, &count, &body) || count)
        return decode_rest(e, partition, arena, out, err);
    out->body = outer(body);
    out->body_type = WEIR_BODY_DATA;
    out->property_count = 0;
    out->properties = NULL;
    out->system = NULL;
    out->partition_key = outer(e->key);
    out->partition = partition;
    out->sequence = e->sequence;
    out->offset = e->offset;
    out->enqueued_time_ms = e->time_ms;
    return 0;
}

uint32_t weir__decode_events(const struct weir__event *e, uint32_t count, uint32_t partition,
                             struct weir__arena *arena, struct weir_event *out,
                             struct weir_error *err)
{
    uint32_t done = 0;

    while (done < count && e[done].sequence == e[0].sequence + done &&
           decode_event(&e[done], partition, arena, &out[done], err) == 0)
        done++;
    return done;
}

/* A delivery that has more to it than the stamp of our own hub, or came from another one. */
static __attribute__((noinline)) int deliver_slowly(struct weir__bytes message, uint32_t partition,
                                                    struct weir__arena *arena,
                                                    struct weir_event *out, struct weir_error *err)
{
    struct weir__annotations a = {.has_sequence = false};
    struct weir_event frame = {.partition = partition};
    struct weir__bytes items, body;
    uint32_t count;
    bool usual = split_usual(message, &items, &count, &body);

    if (usual)
        weir__annotations_read(&a, items, count);
    else
        weir__annotations_find(&a, message);
    frame.sequence = a.sequence;
    frame.offset = a.offset;
    frame.enqueued_time_ms = a.time_ms;
    if (!usual) return decode_slowly(message, &frame, arena, out, err);
    frame.body = outer(body);
    frame.partition_key = outer(a.key);
    *out = frame;
    return 0;
}

int weir__decode_delivery(struct weir__bytes message, uint32_t partition, struct weir__arena *arena,
                          struct weir_event *out, struct weir_error *err)
{
    struct weir__bytes items, body;
    uint64_t sequence, offset;
    int64_t time_ms;
    uint32_t count;

    if (!split_usual(message, &items, &count, &body))
        return deliver_slowly(message, partition, arena, out, err);
    weir__stamp_pass_epoch(&items, &count);
    if (count != WEIR__STAMP_ITEMS || items.len != WEIR__STAMP_BYTES ||
        !weir__stamp_read(items.at, &sequence, &time_ms, &offset))
        return deliver_slowly(message, partition, arena, out, err);
    *out = (struct weir_event){
        .body = outer(body),
        .partition = partition,
        .sequence = sequence,
        .offset = offset,
        .enqueued_time_ms = time_ms,
    };
    return 0;
}
