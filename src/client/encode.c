#include "client/encode.h"

#include <stdlib.h>
#include <string.h>

#define KEY_NAME "x-opt-partition-key"

static struct weir__bytes inner(struct weir_bytes b)
{
    return weir__bytes_of(b.at, b.len);
}

static bool is_text(struct weir_bytes b)
{
    return weir__amqp_utf8(inner(b));
}

/* An encoded value that was received is sent as it is; nobody else vouches for it, so look. */
static bool read_encoded(struct weir_bytes bytes, struct weir__amqp_value *out)
{
    struct weir__amqp_cursor check = weir__amqp_cursor_of(inner(bytes)), in = check;

    return weir__amqp_check(&check) && weir__amqp_left(&check) == 0 && weir__amqp_read(&in, out);
}

static bool to_amqp(const struct weir_value *v, struct weir__amqp_value *out)
{
    switch (v->type) {
    case WEIR_NULL: *out = (struct weir__amqp_value){0}; return true;
    case WEIR_BOOL: *out = weir__amqp_unsigned(WEIR__AMQP_BOOL, v->boolean); return true;
    case WEIR_INT: *out = weir__amqp_signed(WEIR__AMQP_LONG, v->integer); return true;
    case WEIR_UINT: *out = weir__amqp_unsigned(WEIR__AMQP_ULONG, v->natural); return true;
    case WEIR_DOUBLE:
        *out = (struct weir__amqp_value){.type = WEIR__AMQP_DOUBLE, .d = v->real};
        return true;
    case WEIR_TIME: *out = weir__amqp_signed(WEIR__AMQP_TIMESTAMP, v->time_ms); return true;
    case WEIR_TEXT:
        *out = weir__amqp_bytes(WEIR__AMQP_STRING, v->bytes.at, v->bytes.len);
        return is_text(v->bytes);
    case WEIR_BINARY:
        *out = weir__amqp_bytes(WEIR__AMQP_BINARY, v->bytes.at, v->bytes.len);
        return true;
    case WEIR_UUID:
        *out = weir__amqp_bytes(WEIR__AMQP_UUID, v->bytes.at, v->bytes.len);
        return v->bytes.len == 16;
    case WEIR_ENCODED: return read_encoded(v->bytes, out);
    }
    return false;
}

static int refuse(struct weir_error *err, const char *what)
{
    return weir__fail(err, WEIR_EINVAL, "%s is malformed", what);
}

static int refuse_text(struct weir_error *err, const char *what)
{
    return weir__fail(err, WEIR_EINVAL, "%s is not UTF-8", what);
}

/* ---- system properties ---- */

static bool id_to_amqp(const struct weir_value *v, struct weir__amqp_value *out)
{
    bool allowed = v->type == WEIR_NULL || v->type == WEIR_TEXT || v->type == WEIR_UINT ||
                   v->type == WEIR_UUID || v->type == WEIR_BINARY;

    return allowed && to_amqp(v, out);
}

static bool is_ascii(struct weir_bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if ((unsigned char)b.at[i] > 127) return false;
    return true;
}

/* Absent when there are no bytes. */
static bool bytes_to_amqp(struct weir_bytes b, enum weir__amqp_type type,
                          struct weir__amqp_value *out)
{
    if (!b.at) return true;
    *out = weir__amqp_bytes(type, b.at, b.len);
    if (type == WEIR__AMQP_SYMBOL) return is_ascii(b);
    return type == WEIR__AMQP_BINARY || is_text(b);
}

static void time_to_amqp(int64_t time_ms, struct weir__amqp_value *out)
{
    if (time_ms != 0) *out = weir__amqp_signed(WEIR__AMQP_TIMESTAMP, time_ms);
}

static int system_to_amqp(const struct weir_system_properties *s, struct weir__amqp_properties *out,
                          struct weir_error *err)
{
    *out = (struct weir__amqp_properties){0};
    if (!id_to_amqp(&s->message_id, &out->message_id)) return refuse(err, "message_id");
    if (!id_to_amqp(&s->correlation_id, &out->correlation_id)) return refuse(err, "correlation_id");
    if (!bytes_to_amqp(s->user_id, WEIR__AMQP_BINARY, &out->user_id) ||
        !bytes_to_amqp(s->to, WEIR__AMQP_STRING, &out->to) ||
        !bytes_to_amqp(s->subject, WEIR__AMQP_STRING, &out->subject) ||
        !bytes_to_amqp(s->reply_to, WEIR__AMQP_STRING, &out->reply_to) ||
        !bytes_to_amqp(s->content_type, WEIR__AMQP_SYMBOL, &out->content_type) ||
        !bytes_to_amqp(s->content_encoding, WEIR__AMQP_SYMBOL, &out->content_encoding) ||
        !bytes_to_amqp(s->group_id, WEIR__AMQP_STRING, &out->group_id) ||
        !bytes_to_amqp(s->reply_to_group_id, WEIR__AMQP_STRING, &out->reply_to_group_id))
        return refuse(err, "the text of a system property");
    time_to_amqp(s->creation_time_ms, &out->creation_time);
    time_to_amqp(s->absolute_expiry_time_ms, &out->absolute_expiry_time);
    if (s->has_group_sequence)
        out->group_sequence = weir__amqp_unsigned(WEIR__AMQP_UINT, s->group_sequence);
    return 0;
}

/* ---- application properties ---- */

static int make_pairs(struct weir__encoder *enc, uint32_t count, struct weir_error *err)
{
    struct weir__amqp_pair *pairs;

    if (count <= enc->pair_room) return 0;
    if (count > WEIR__ENCODER_PROPERTIES_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "%u properties are more than %d", count,
                          WEIR__ENCODER_PROPERTIES_MAX);
    pairs = realloc(enc->pairs, count * sizeof *pairs);
    if (!pairs) return weir__fail(err, WEIR_ENOMEM, "no memory for %u properties", count);
    enc->pairs = pairs;
    enc->pair_room = count;
    return 0;
}

static int properties_to_amqp(struct weir__encoder *enc, const struct weir_event *e,
                              struct weir_error *err)
{
    int rc = make_pairs(enc, e->property_count, err);

    if (rc != 0) return rc;
    for (uint32_t i = 0; i < e->property_count; i++) {
        const struct weir_property *p = &e->properties[i];
        enc->pairs[i].name = inner(p->name);
        if (!is_text(p->name)) return refuse_text(err, "the name of a property");
        if (!to_amqp(&p->value, &enc->pairs[i].value))
            return weir__fail(err, WEIR_EINVAL, "property '%.*s' is %s",
                              (int)(p->name.len < 64 ? p->name.len : 64), p->name.at,
                              p->value.type == WEIR_TEXT ? "not UTF-8" : "malformed");
    }
    return 0;
}

/* own_key: in the message itself, because its batch has none in common. */
static int add_event(struct weir__encoder *enc, const struct weir_event *e, bool own_key,
                     struct weir_error *err)
{
    struct weir__amqp_content content = {.data = inner(e->body)};
    struct weir__amqp_pair key = {.name = {(const uint8_t *)KEY_NAME, sizeof KEY_NAME - 1}};
    struct weir__amqp_properties properties;
    int rc;

    if (e->body_type != WEIR_BODY_DATA)
        return weir__fail(err, WEIR_EINVAL, "only bodies of WEIR_BODY_DATA can be published");
    if (e->system) {
        rc = system_to_amqp(e->system, &properties, err);
        if (rc != 0) return rc;
        content.properties = &properties;
    }
    if (e->property_count > 0) {
        rc = properties_to_amqp(enc, e, err);
        if (rc != 0) return rc;
        content.application_properties = enc->pairs;
        content.application_property_count = e->property_count;
    }
    if (own_key && e->partition_key.at) {
        key.value = weir__amqp_bytes(WEIR__AMQP_STRING, e->partition_key.at, e->partition_key.len);
        content.annotations = &key;
        content.annotation_count = 1;
    }
    return weir__batch_writer_add(&enc->writer, &content, err);
}

/* ---- batches ---- */

/* Characters, not bytes: all but the continuation bytes of UTF-8. */
static int check_key(struct weir_bytes key, struct weir_error *err)
{
    size_t chars = 0;

    if (!key.at) return 0;
    for (size_t i = 0; i < key.len; i++) chars += ((unsigned char)key.at[i] & 0xc0) != 0x80;
    if (chars > WEIR__ENCODER_KEY_CHARS_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "a partition key of more than %d characters",
                          WEIR__ENCODER_KEY_CHARS_MAX);
    return is_text(key) ? 0 : refuse_text(err, "the partition key");
}

static bool same_key(struct weir_bytes a, struct weir_bytes b)
{
    if (a.at == b.at) return a.len == b.len || !a.at;
    return a.at && b.at && a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* The first event whose key is not that of the batch, or count. */
static size_t find_other_key(const struct weir_event *events, size_t count)
{
    size_t i = 1;

    while (i < count && same_key(events[0].partition_key, events[i].partition_key)) i++;
    return i;
}

static int start_batch(struct weir__encoder *enc, const struct weir_event *events, size_t count,
                       bool mixed_keys, bool *out_mixed, struct weir_error *err)
{
    size_t other = find_other_key(events, count);
    struct weir_bytes key = events[0].partition_key;
    int rc;

    *out_mixed = other < count;
    if (*out_mixed && !mixed_keys)
        return weir__fail(err, WEIR_EINVAL,
                          "event %zu has another partition key than the first of its batch", other);
    if (*out_mixed) key = weir_bytes(NULL, 0);
    rc = check_key(key, err);
    if (rc != 0) return rc;
    return weir__batch_writer_start(&enc->writer, inner(key), err);
}

int weir__encoder_run(struct weir__encoder *enc, const struct weir_event *events, size_t count,
                      bool mixed_keys, struct weir__batch *out, struct weir_error *err)
{
    bool mixed;
    int rc;

    if (count == 0 || !events) return weir__fail(err, WEIR_EINVAL, "a batch without events");
    rc = start_batch(enc, events, count, mixed_keys, &mixed, err);
    if (rc != 0) return rc;
    for (size_t i = 0; i < count; i++) {
        if (!events[i].body.at && events[i].body.len)
            rc = weir__fail(err, WEIR_EINVAL, "a body of %zu bytes that are nowhere",
                            events[i].body.len);
        if (rc == 0 && mixed) rc = check_key(events[i].partition_key, err);
        if (rc == 0) rc = add_event(enc, &events[i], mixed, err);
        if (rc != 0) return weir__wrap(err, rc, "event %zu", i);
    }
    return weir__batch_writer_batch(&enc->writer, out, err);
}

int weir__encoder_new(struct weir__encoder **out, size_t batch_bytes_max, struct weir_error *err)
{
    struct weir__encoder *enc = calloc(1, sizeof *enc);

    if (!enc) return weir__fail(err, WEIR_ENOMEM, "no memory for an encoder");
    weir__batch_writer_init(&enc->writer, batch_bytes_max);
    *out = enc;
    return 0;
}

void weir__encoder_free(struct weir__encoder *enc)
{
    if (!enc) return;
    weir__batch_writer_fini(&enc->writer);
    free(enc->pairs);
    free(enc);
}
