/* amqp_fuzz.c - any bytes as a value, as a message, as a batch.
 *
 * Beyond not crashing: the scan agrees with a slow walker written here, batch and message agree
 * about the body, and what is accepted can be written again and composed for delivery with nothing
 * lost. */
#include "fuzz.h"

#include <stdlib.h>

#include "amqp/message.h"

#define SEQUENCE 0x0102030405060708
#define TIME_MS 1700000000000
#define OFFSET "1000000000012345"
#define OFFSET_NUMBER 1000000000012345

static bool same_bytes(struct weir__bytes a, struct weir__bytes b)
{
    return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

/* In a buf of its own; *value then borrows from it. */
static void write_and_read(struct weir__buf *buf, struct weir__amqp_value *value)
{
    struct weir__amqp_writer w;
    struct weir__amqp_cursor c;

    weir__amqp_writer_append(&w, buf);
    weir__amqp_put(&w, *value);
    ORACLE(weir__amqp_writer_finish(&w, NULL, NULL) == 0);
    c = weir__amqp_cursor_of(weir__buf_bytes(buf));
    ORACLE(weir__amqp_check(&c) && c.at == c.end);
    c = weir__amqp_cursor_of(weir__buf_bytes(buf));
    ORACLE(weir__amqp_read(&c, value) && c.at == c.end);
}

/* A value that passes the check can be walked and written; what is written is not longer, and
 * writing it once more changes nothing. */
static void try_value(struct weir__bytes b)
{
    struct weir__amqp_cursor checked = weir__amqp_cursor_of(b), c = checked;
    struct weir__amqp_value v, item;
    struct weir__amqp_items items;
    struct weir__buf first, second;

    if (!weir__amqp_check(&checked)) {
        ORACLE(checked.why && checked.at == checked.end);
        weir__amqp_skip(&c);
        return;
    }
    ORACLE(weir__amqp_read(&c, &v) && c.at == checked.at);
    if (v.type == WEIR__AMQP_LIST || v.type == WEIR__AMQP_MAP || v.type == WEIR__AMQP_ARRAY) {
        uint32_t count = 0;
        weir__amqp_items_init(&items, &v);
        while (weir__amqp_items_next(&items, &item)) count++;
        ORACLE(!items.in.why && count == v.count);
    }
    weir__buf_init(&first, b.len + 16);
    weir__buf_init(&second, b.len + 16);
    write_and_read(&first, &v);
    ORACLE(first.len <= weir__amqp_offset(&checked));
    write_and_read(&second, &v);
    ORACLE(same_bytes(weir__buf_bytes(&first), weir__buf_bytes(&second)));
    weir__buf_fini(&first);
    weir__buf_fini(&second);
}

/* The number of a section by its descriptor, 0 when there is none. */
static unsigned slow_descriptor(const struct weir__amqp_value *d)
{
    static const char *const symbols[] = {"amqp:header:list",
                                          "amqp:delivery-annotations:map",
                                          "amqp:message-annotations:map",
                                          "amqp:properties:list",
                                          "amqp:application-properties:map",
                                          "amqp:data:binary",
                                          "amqp:amqp-sequence:list",
                                          "amqp:amqp-value:*",
                                          "amqp:footer:map"};

    if (d->type == WEIR__AMQP_ULONG) return d->u >= 0x70 && d->u <= 0x78 ? (unsigned)d->u : 0;
    for (unsigned i = 0; d->type == WEIR__AMQP_SYMBOL && i < 9; i++)
        if (same_bytes(d->bytes, weir__bytes_of(symbols[i], strlen(symbols[i])))) return 0x70 + i;
    return 0;
}

/* The three kinds of body are one. */
static unsigned slow_place(unsigned code)
{
    return code == 0x76 || code == 0x77 ? 5 : code - 0x70;
}

/* Whether b is a message, asked in the plainest way. */
static bool slow_scan(struct weir__bytes b, uint32_t *data_sections)
{
    static const char kinds[] = "lmmlmbl*m";
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
    struct weir__amqp_value d, v;
    unsigned last = 0, seen = 0;

    *data_sections = 0;
    while (c.at < c.end) {
        unsigned code;
        char kind;
        if (weir__amqp_load8(&c) != 0 || !weir__amqp_read(&c, &d)) return false;
        code = slow_descriptor(&d);
        if (!code || !weir__amqp_read(&c, &v)) return false;
        kind = kinds[code - 0x70];
        if ((kind == 'l' && v.type != WEIR__AMQP_LIST) ||
            (kind == 'm' && v.type != WEIR__AMQP_MAP) ||
            (kind == 'b' && v.type != WEIR__AMQP_BINARY && v.type != WEIR__AMQP_NULL))
            return false;
        if (seen >> slow_place(code) & 1 && (code != last || (code != 0x75 && code != 0x76)))
            return false;
        if (code == 0x75) ++*data_sections;
        seen |= 1u << slow_place(code);
        last = code;
    }
    return b.len > 0;
}

/* As a batch: the same verdict as the scan, the same events. */
static void try_batch(struct weir__bytes b, const struct weir__amqp_message *m, bool good)
{
    struct weir__amqp_batch_walk walk;
    struct weir__bytes event;
    uint32_t count = 0;
    int rc = weir__amqp_batch_start(&walk, b, NULL);

    while (rc == 0 && (rc = weir__amqp_batch_next(&walk, &event, NULL)) == 0 && event.at) {
        struct weir__amqp_message inner;
        if (!count++ && good) ORACLE(same_bytes(event, m->data));
        weir__amqp_message_scan(&inner, event, WEIR__AMQP_DEEP, NULL);
    }
    if (good && (m->body == WEIR__AMQP_BODY_DATA || m->body == WEIR__AMQP_BODY_NONE))
        ORACLE(rc == 0 && count == m->body_count);
    else
        ORACLE(rc == WEIR_EINVAL);
}

static void check_stamp(const struct weir__amqp_message *m, struct weir__bytes key)
{
    struct weir__amqp_value map = weir__amqp_message_map(m, WEIR__AMQP_MESSAGE_ANNOTATIONS), v;

    ORACLE(weir__amqp_map_find(&map, "x-opt-sequence-number", &v) && v.i == SEQUENCE);
    ORACLE(weir__amqp_map_find(&map, "x-opt-enqueued-time", &v) && v.i == TIME_MS);
    ORACLE(weir__amqp_map_find(&map, "x-opt-offset", &v));
    ORACLE(same_bytes(v.bytes, weir__bytes_of(OFFSET, 16)));
    if (key.at) ORACLE(weir__amqp_map_find(&map, "x-opt-partition-key", &v));
}

static struct weir__bytes section_of(const struct weir__amqp_message *m, unsigned i)
{
    if (!(m->there >> i & 1)) return weir__bytes_of(NULL, 0);
    return weir__bytes_of(m->raw.at + m->section[i].at, m->section[i].end - m->section[i].at);
}

/* Composed, a good event is a good event with our annotations and the rest as it was. */
static void try_compose(struct weir__bytes b, const struct weir__amqp_message *m, bool deep)
{
    struct weir__amqp_stamp stamp = {.sequence = SEQUENCE,
                                     .enqueued_ms = TIME_MS,
                                     .offset = OFFSET_NUMBER};
    struct weir__amqp_message composed;
    size_t room, len = 0;
    uint8_t *to;
    int rc;

    if (b.len % 2)
        stamp.partition_key = weir__bytes_of(b.at, b.len % 300 < b.len ? b.len % 300 : 1);
    room = weir__amqp_compose_bound(b.len, &stamp);
    to = malloc(room);
    ORACLE(to);
    rc = weir__amqp_compose(b, &stamp, to, room, &len, NULL);
    ORACLE(len <= room && (rc == 0 || !deep));
    if (rc == 0 && deep) {
        ORACLE(weir__amqp_message_scan(&composed, weir__bytes_of(to, len), WEIR__AMQP_DEEP, NULL) ==
               0);
        check_stamp(&composed, stamp.partition_key);
        for (unsigned i = WEIR__AMQP_PROPERTIES; i < WEIR__AMQP_SECTIONS; i++)
            ORACLE(same_bytes(section_of(&composed, i), section_of(m, i)));
    }
    free(to);
}

/* The properties that were read can be written, and are read as the same again. */
static void try_properties(const struct weir__amqp_message *m)
{
    struct weir__amqp_properties p, again;
    struct weir__amqp_content content = {.properties = &p, .data = m->data};
    struct weir__amqp_message written;
    struct weir__amqp_writer w;
    struct weir__bytes out;
    size_t bound;
    uint8_t *to;

    ORACLE(weir__amqp_message_properties(m, &p, NULL) == 0);
    bound = weir__amqp_message_bound(&content);
    to = malloc(bound);
    ORACLE(to);
    weir__amqp_writer_init(&w, to, bound);
    ORACLE(weir__amqp_message_write(&w, &content, NULL) == 0);
    ORACLE(weir__amqp_writer_finish(&w, &out, NULL) == 0);
    ORACLE(weir__amqp_message_scan(&written, out, WEIR__AMQP_DEEP, NULL) == 0);
    ORACLE(weir__amqp_message_properties(&written, &again, NULL) == 0);
    ORACLE(p.message_id.type == again.message_id.type && p.message_id.u == again.message_id.u);
    ORACLE(same_bytes(p.message_id.bytes, again.message_id.bytes));
    ORACLE(same_bytes(p.content_type.bytes, again.content_type.bytes));
    ORACLE(same_bytes(p.reply_to_group_id.bytes, again.reply_to_group_id.bytes));
    ORACLE(p.creation_time.i == again.creation_time.i && same_bytes(m->data, written.data));
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__bytes b = weir__bytes_of(at, len);
    struct weir__amqp_message m, again;
    uint32_t data_sections;
    bool good, deep;

    try_value(b);
    good = weir__amqp_message_scan(&m, b, WEIR__AMQP_SHALLOW, NULL) == 0;
    deep = weir__amqp_message_scan(&again, b, WEIR__AMQP_DEEP, NULL) == 0;
    ORACLE(good == slow_scan(b, &data_sections) && (good || !deep));
    if (good && m.body == WEIR__AMQP_BODY_DATA) ORACLE(m.body_count == data_sections);
    try_batch(b, &m, good);
    try_compose(b, &m, deep);
    if (deep) try_properties(&m);
    weir__amqp_utf8(b);
    return 0;
}
