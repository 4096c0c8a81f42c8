/* content.c - the fields of a message, written and read by one table. */
#include "amqp/message.h"

#define SECTION_MESSAGE_ANNOTATIONS 0x72
#define SECTION_PROPERTIES 0x73
#define SECTION_APPLICATION_PROPERTIES 0x74

#define SECTION_HEAD_MAX (3u + WEIR__AMQP_VALUE_HEAD_MAX) /* 00 53 7x, then a list, map or binary */
#define NUMBER_MAX 9                                      /* a constructor and eight bytes */

#define STRING WEIR__AMQP_SET(WEIR__AMQP_STRING)
#define SYMBOL WEIR__AMQP_SET(WEIR__AMQP_SYMBOL)
#define BINARY WEIR__AMQP_SET(WEIR__AMQP_BINARY)
#define UINT WEIR__AMQP_SET(WEIR__AMQP_UINT)
#define TIMESTAMP WEIR__AMQP_SET(WEIR__AMQP_TIMESTAMP)
#define IDENTITY                                                                                   \
    (STRING | BINARY | WEIR__AMQP_SET(WEIR__AMQP_ULONG) | WEIR__AMQP_SET(WEIR__AMQP_UUID))

#define AT(member) offsetof(struct weir__amqp_properties, member)

/* In the order of the wire. */
static const struct field_row {
    const char *name;
    size_t offset; /* in struct weir__amqp_properties */
    uint32_t types;
} fields[] = {
    {"message-id", AT(message_id), IDENTITY},
    {"user-id", AT(user_id), BINARY},
    {"to", AT(to), STRING},
    {"subject", AT(subject), STRING},
    {"reply-to", AT(reply_to), STRING},
    {"correlation-id", AT(correlation_id), IDENTITY},
    {"content-type", AT(content_type), SYMBOL},
    {"content-encoding", AT(content_encoding), SYMBOL},
    {"absolute-expiry-time", AT(absolute_expiry_time), TIMESTAMP},
    {"creation-time", AT(creation_time), TIMESTAMP},
    {"group-id", AT(group_id), STRING},
    {"group-sequence", AT(group_sequence), UINT},
    {"reply-to-group-id", AT(reply_to_group_id), STRING},
};

#define FIELDS ((uint32_t)(sizeof fields / sizeof fields[0]))

static const struct weir__amqp_value *field_of(const struct weir__amqp_properties *p, uint32_t i)
{
    return (const struct weir__amqp_value *)(const void *)((const char *)p + fields[i].offset);
}

static int check_field(uint32_t i, const struct weir__amqp_value *v, struct weir_error *err)
{
    if (v->type == WEIR__AMQP_NULL || fields[i].types & WEIR__AMQP_SET(v->type)) return 0;
    return weir__fail(err, WEIR_EINVAL, "property %s must not be a %s", fields[i].name,
                      weir__amqp_type_name(v->type));
}

/* Fields after the last that is there are left out; without any, so is the section. */
static int write_properties(struct weir__amqp_writer *w, const struct weir__amqp_properties *p,
                            struct weir_error *err)
{
    uint32_t count = FIELDS;
    size_t mark;

    for (uint32_t i = 0; i < FIELDS; i++) {
        int rc = check_field(i, field_of(p, i), err);
        if (rc != 0) return rc;
    }
    while (count && field_of(p, count - 1)->type == WEIR__AMQP_NULL) count--;
    if (!count) return 0;
    weir__amqp_put_descriptor(w, SECTION_PROPERTIES);
    mark = weir__amqp_put_open(w);
    for (uint32_t i = 0; i < count; i++) weir__amqp_put(w, *field_of(p, i));
    weir__amqp_put_close(w, mark, WEIR__AMQP_LIST, count);
    return 0;
}

static void write_pairs(struct weir__amqp_writer *w, uint64_t section, enum weir__amqp_type key,
                        const struct weir__amqp_pair *pairs, uint32_t count)
{
    size_t mark;

    if (!count) return;
    weir__amqp_put_descriptor(w, section);
    mark = weir__amqp_put_open(w);
    for (uint32_t i = 0; i < count; i++) {
        weir__amqp_put(w, weir__amqp_bytes(key, pairs[i].name.at, pairs[i].name.len));
        weir__amqp_put(w, pairs[i].value);
    }
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, 2 * count);
}

/* AMQP allows simple values only as application properties, so that they can be filtered on. */
static int check_application_properties(const struct weir__amqp_content *content,
                                        struct weir_error *err)
{
    for (uint32_t i = 0; i < content->application_property_count; i++) {
        const struct weir__amqp_pair *pair = &content->application_properties[i];
        if (pair->value.type >= WEIR__AMQP_LIST)
            return weir__fail(err, WEIR_EINVAL, "application property '%.*s' must not be a %s",
                              (int)(pair->name.len < 64 ? pair->name.len : 64),
                              (const char *)pair->name.at, weir__amqp_type_name(pair->value.type));
    }
    return 0;
}

static int write_data(struct weir__amqp_writer *w, struct weir__bytes data, struct weir_error *err)
{
    uint8_t head[WEIR__AMQP_DATA_HEAD_MAX];

    if (data.len > UINT32_MAX) return weir__fail(err, WEIR_EINVAL, "a body of 4 GiB or more");
    weir__amqp_put_raw(w, weir__bytes_of(head, weir__amqp_data_head(head, (uint32_t)data.len)));
    weir__amqp_put_raw(w, data);
    return 0;
}

int weir__amqp_message_write(struct weir__amqp_writer *w, const struct weir__amqp_content *content,
                             struct weir_error *err)
{
    int rc = check_application_properties(content, err);

    if (rc != 0) return rc;
    write_pairs(w, SECTION_MESSAGE_ANNOTATIONS, WEIR__AMQP_SYMBOL, content->annotations,
                content->annotation_count);
    if (content->properties) rc = write_properties(w, content->properties, err);
    if (rc != 0) return rc;
    write_pairs(w, SECTION_APPLICATION_PROPERTIES, WEIR__AMQP_STRING,
                content->application_properties, content->application_property_count);
    return write_data(w, content->data, err);
}

static size_t pairs_bound(const struct weir__amqp_pair *pairs, uint32_t count)
{
    size_t sum = SECTION_HEAD_MAX;

    for (uint32_t i = 0; i < count; i++)
        sum += pairs[i].name.len + pairs[i].value.bytes.len + WEIR__AMQP_VALUE_HEAD_MAX +
               WEIR__AMQP_VALUE_HEAD_MAX;
    return sum;
}

size_t weir__amqp_message_bound(const struct weir__amqp_content *content)
{
    size_t sum = content->data.len + SECTION_HEAD_MAX + SECTION_HEAD_MAX;

    _Static_assert(NUMBER_MAX <= WEIR__AMQP_VALUE_HEAD_MAX, "a head covers every number");
    sum += pairs_bound(content->annotations, content->annotation_count);
    sum += pairs_bound(content->application_properties, content->application_property_count);
    for (uint32_t i = 0; content->properties && i < FIELDS; i++)
        sum += field_of(content->properties, i)->bytes.len + WEIR__AMQP_VALUE_HEAD_MAX;
    return sum;
}

/* The value of a section that the scan has found to be whole and of the right type. */
static struct weir__amqp_value section_value(const struct weir__amqp_message *m,
                                             enum weir__amqp_section section,
                                             enum weir__amqp_type empty)
{
    const struct weir__amqp_span *span = &m->section[section];
    struct weir__amqp_value v = {.type = empty};
    struct weir__amqp_cursor c;

    if (!span->end) return v;
    c = weir__amqp_cursor_of(weir__bytes_of(m->raw.at + span->value, span->end - span->value));
    weir__amqp_read(&c, &v);
    return v;
}

struct weir__amqp_value weir__amqp_message_map(const struct weir__amqp_message *m,
                                               enum weir__amqp_section section)
{
    return section_value(m, section, WEIR__AMQP_MAP);
}

int weir__amqp_message_properties(const struct weir__amqp_message *m,
                                  struct weir__amqp_properties *out, struct weir_error *err)
{
    struct weir__amqp_value list = section_value(m, WEIR__AMQP_PROPERTIES, WEIR__AMQP_LIST), v;
    struct weir__amqp_items items;

    if (out) *out = (struct weir__amqp_properties){0};
    if (list.count > FIELDS)
        return weir__fail(err, WEIR_EINVAL, "properties: %u fields, there are %u", list.count,
                          FIELDS);
    weir__amqp_items_init(&items, &list);
    items.in.start = m->raw.at;
    for (uint32_t i = 0; weir__amqp_items_next(&items, &v); i++) {
        int rc = check_field(i, &v, err);
        if (rc != 0) return rc;
        if (out) memcpy((char *)out + fields[i].offset, &v, sizeof v);
    }
    if (items.in.why)
        return weir__fail(err, WEIR_EINVAL, "message section properties, byte %zu: %s",
                          weir__amqp_offset(&items.in), items.in.why);
    return 0;
}
