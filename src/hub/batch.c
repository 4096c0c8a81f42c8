/* batch.c - the body of a stored batch.
 *
 *   attrs & 1 (KEY):  key bytes (u16, little-endian) | key
 *   always:           data section | data section | ...       one per event, at least one
 *
 *   data section:     00 53 75 | a0 length (1 byte) or b0 length (4 bytes, big-endian) | message
 *
 * The sections are those of the sender's batch, byte for byte, without the envelope around them; a
 * message that came alone (format 0) is put into one. The other bits of attrs are 0. How many
 * events there are, their numbers and their time are in the log's own batch header. */
#include "hub/batch.h"

#define ATTR_KEY 1u

#define ANNOTATION_KEY "x-opt-partition-key"

/* What a key takes in an envelope besides its own bytes: section, map, annotation and string. */
#define WIRE_KEY_BYTES 40

/* Room in a writer beyond its limit: how large a message is shows when it is written. */
#define WRITER_SLACK_BYTES (64u << 10)

static size_t limit_or_default(size_t bytes_max)
{
    return bytes_max ? bytes_max : WEIR__BATCH_BYTES_MAX;
}

static int fail_key_length(size_t len, struct weir_error *err)
{
    return weir__fail(err, WEIR_ETOOBIG, "the partition key has %zu bytes, at most %d are allowed",
                      len, WEIR__BATCH_KEY_MAX);
}

static int fail_too_big(size_t bytes, size_t bytes_max, struct weir_error *err)
{
    return weir__fail(err, WEIR_ETOOBIG, "the message has %zu bytes, at most %zu are allowed",
                      bytes, bytes_max);
}

static void add_part(struct weir__batch *b, const void *at, size_t len)
{
    b->body[b->parts++] = weir__bytes_of(at, len);
}

/* Takes the key out of message-annotations, when these are there, unless there is one already. */
static int find_key(struct weir__batch *b, struct weir__bytes annotations, struct weir_error *err)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(annotations);
    struct weir__amqp_value map, value;

    if (b->key.at || !annotations.at || !weir__amqp_read(&c, &map)) return 0;
    if (!weir__amqp_map_find(&map, ANNOTATION_KEY, &value) || value.type == WEIR__AMQP_NULL)
        return 0;
    if (value.type != WEIR__AMQP_STRING && value.type != WEIR__AMQP_SYMBOL)
        return weir__fail(err, WEIR_EINVAL, "%s is a %s, not a string", ANNOTATION_KEY,
                          weir__amqp_type_name(value.type));
    if (value.bytes.len > WEIR__BATCH_KEY_MAX) return fail_key_length(value.bytes.len, err);
    b->key = value.bytes;
    return 0;
}

static void put_key(struct weir__batch *b)
{
    if (!b->key.at) return;
    b->attrs = ATTR_KEY;
    weir__store16(b->head, (uint16_t)b->key.len);
    add_part(b, b->head, sizeof b->head);
    add_part(b, b->key.at, b->key.len);
}

static int check_event(struct weir__batch *b, struct weir__bytes raw, struct weir_error *err)
{
    struct weir__bytes annotations;
    int rc = weir__amqp_message_check(raw, &annotations, err);

    if (rc != 0) return rc;
    return b->count++ == 0 ? find_key(b, annotations, err) : 0;
}

static int check_event_of_batch(struct weir__batch *b, struct weir__bytes raw,
                                struct weir_error *err)
{
    int rc;

    if (raw.len == 0)
        return weir__fail(err, WEIR_EINVAL, "event %u of the batch is empty", b->count);
    rc = check_event(b, raw, err);
    return rc == WEIR_EINVAL ? weir__wrap(err, rc, "event %u of the batch", b->count) : rc;
}

static int take_message(struct weir__batch *b, struct weir__bytes payload, struct weir_error *err)
{
    int rc = check_event(b, payload, err);

    if (rc != 0) return rc;
    put_key(b);
    add_part(b, b->section, weir__amqp_data_head(b->section, (uint32_t)payload.len));
    add_part(b, payload.at, payload.len);
    return 0;
}

/* The key of the envelope, as far as this was read. */
static int find_envelope_key(struct weir__batch *b, const struct weir__amqp_message *envelope,
                             struct weir_error *err)
{
    const struct weir__amqp_span *span = &envelope->section[WEIR__AMQP_MESSAGE_ANNOTATIONS];

    if (!span->end) return 0;
    return find_key(b, weir__bytes_of(envelope->raw.at + span->value, span->end - span->value),
                    err);
}

static int take_envelope(struct weir__batch *b, struct weir__bytes payload, struct weir_error *err)
{
    struct weir__amqp_batch_walk walk;
    struct weir__bytes event;
    const uint8_t *first, *end; /* of the data sections, which lie side by side */
    int rc = weir__amqp_batch_start(&walk, payload, err);

    if (rc == 0) rc = find_envelope_key(b, &walk.envelope, err);
    if (rc != 0) return rc;
    for (first = walk.rest.at;;) {
        if (b->count) b->count += weir__amqp_batch_pass(&walk); /* the first may have the key */
        end = walk.rest.at;
        rc = weir__amqp_batch_next(&walk, &event, err);
        if (rc == 0 && !event.at) break;
        if (rc == 0) rc = check_event_of_batch(b, event, err);
        if (rc != 0) return rc;
    }
    if (b->count == 0) return weir__fail(err, WEIR_EINVAL, "the batch has no events");
    rc = find_envelope_key(b, &walk.envelope, err); /* which may stand behind the events */
    if (rc != 0) return rc;
    put_key(b);
    add_part(b, first, (size_t)(end - first));
    return 0;
}

int weir__batch_of_payload(struct weir__batch *b, uint32_t format, struct weir__bytes payload,
                           size_t bytes_max, struct weir_error *err)
{
    size_t limit = limit_or_default(bytes_max);

    b->count = b->parts = b->attrs = 0;
    b->key = weir__bytes_of(NULL, 0);
    if (payload.len > limit) return fail_too_big(payload.len, limit, err);
    if (format == 0) return take_message(b, payload, err);
    if (format == WEIR__AMQP_FORMAT_BATCH) return take_envelope(b, payload, err);
    return weir__fail(err, WEIR_EINVAL, "unknown message format 0x%08x", format);
}

void weir__batch_writer_init(struct weir__batch_writer *w, size_t bytes_max)
{
    *w = (struct weir__batch_writer){.bytes_max = limit_or_default(bytes_max)};
    weir__buf_init(&w->body, 2 * w->bytes_max + WRITER_SLACK_BYTES);
}

void weir__batch_writer_fini(struct weir__batch_writer *w)
{
    weir__buf_fini(&w->body);
}

int weir__batch_writer_start(struct weir__batch_writer *w, struct weir__bytes key,
                             struct weir_error *err)
{
    uint8_t head[WEIR__BATCH_HEAD_BYTES];

    weir__buf_clear(&w->body);
    w->count = 0;
    w->has_key = false;
    if (!key.at) return 0;
    if (key.len > WEIR__BATCH_KEY_MAX) return fail_key_length(key.len, err);
    weir__store16(head, (uint16_t)key.len);
    if (!weir__buf_add(&w->body, head, sizeof head) || !weir__buf_add(&w->body, key.at, key.len)) {
        weir__buf_clear(&w->body);
        return weir__fail(err, WEIR_ENOMEM, "out of memory for a batch");
    }
    w->has_key = true;
    w->key_len = key.len;
    return 0;
}

bool weir__batch_writer_has_key(const struct weir__batch_writer *w, struct weir__bytes key)
{
    if (!w->has_key || !key.at) return !w->has_key && !key.at;
    return w->key_len == key.len &&
           (key.len == 0 || memcmp(w->body.at + WEIR__BATCH_HEAD_BYTES, key.at, key.len) == 0);
}

/* Room for a data section around up to `bytes` of message, or NULL and why there is none. */
static uint8_t *make_room(struct weir__batch_writer *w, size_t bytes, int *why,
                          struct weir_error *err)
{
    uint8_t *room = NULL;

    *why = 0;
    if (bytes > w->bytes_max + WRITER_SLACK_BYTES / 2)
        *why = fail_too_big(bytes, w->bytes_max, err);
    else
        room = weir__buf_room(&w->body, WEIR__AMQP_DATA_HEAD_MAX + bytes);
    if (!room && *why == 0) *why = weir__fail(err, WEIR_ENOMEM, "out of memory for a batch");
    return room;
}

/* One event more, when the batch stays within its limit. */
static int count_in(struct weir__batch_writer *w, size_t section_bytes, struct weir_error *err)
{
    size_t wire = w->body.len + section_bytes + (w->has_key ? WIRE_KEY_BYTES : 0);

    if (wire > w->bytes_max) return fail_too_big(wire, w->bytes_max, err);
    w->body.len += section_bytes;
    w->count++;
    return 0;
}

/* The message lies behind WEIR__AMQP_DATA_HEAD_MAX bytes of room: puts its section head in front,
 * closes the gap when that is shorter, and counts it in. */
static int add_section(struct weir__batch_writer *w, uint8_t *room, size_t message_bytes,
                       struct weir_error *err)
{
    size_t head = weir__amqp_data_head(room, (uint32_t)message_bytes);
    int rc = count_in(w, head + message_bytes, err);

    if (rc == 0 && head < WEIR__AMQP_DATA_HEAD_MAX)
        memmove(room + head, room + WEIR__AMQP_DATA_HEAD_MAX, message_bytes);
    return rc;
}

int weir__batch_writer_add(struct weir__batch_writer *w, const struct weir__amqp_content *content,
                           struct weir_error *err)
{
    size_t bound = weir__amqp_message_bound(content);
    struct weir__amqp_writer writer;
    struct weir__bytes message;
    int rc;
    uint8_t *room = make_room(w, bound, &rc, err);

    if (!room) return rc;
    weir__amqp_writer_init(&writer, room + WEIR__AMQP_DATA_HEAD_MAX, bound);
    rc = weir__amqp_message_write(&writer, content, err);
    if (rc == 0) rc = weir__amqp_writer_finish(&writer, &message, err);
    if (rc != 0) return rc;
    return add_section(w, room, message.len, err);
}

int weir__batch_writer_add_message(struct weir__batch_writer *w, struct weir__bytes message,
                                   struct weir_error *err)
{
    int rc;
    uint8_t *room = make_room(w, message.len, &rc, err);
    size_t head;

    if (!room) return rc;
    head = weir__amqp_data_head(room, (uint32_t)message.len);
    memcpy(room + head, message.at, message.len);
    return count_in(w, head + message.len, err);
}

int weir__batch_writer_batch(const struct weir__batch_writer *w, struct weir__batch *out,
                             struct weir_error *err)
{
    *out = (struct weir__batch){.count = w->count};
    if (w->count == 0) return weir__fail(err, WEIR_EINVAL, "the batch has no events");
    if (w->has_key) {
        out->attrs = ATTR_KEY;
        out->key = weir__bytes_of(w->body.at + WEIR__BATCH_HEAD_BYTES, w->key_len);
    }
    add_part(out, w->body.at, w->body.len);
    return 0;
}

/* The error of a body that passed its checksum and is still not ours. */
static int fail_body(uint64_t sequence, const char *why, struct weir_error *err)
{
    return weir__fail(err, WEIR_ECORRUPT, "the batch at sequence %llu %s",
                      (unsigned long long)sequence, why);
}

/* Takes the key off the front of a body. */
static int read_key(struct weir__bytes *body, uint16_t attrs, struct weir__bytes *key)
{
    size_t len;

    *key = (struct weir__bytes){0};
    if (!(attrs & ATTR_KEY)) return 0;
    if (body->len < WEIR__BATCH_HEAD_BYTES) return WEIR_ECORRUPT;
    len = weir__load16(body->at);
    if (len > WEIR__BATCH_KEY_MAX || len > body->len - WEIR__BATCH_HEAD_BYTES) return WEIR_ECORRUPT;
    *key = weir__bytes_of(body->at + WEIR__BATCH_HEAD_BYTES, len);
    body->at += WEIR__BATCH_HEAD_BYTES + len;
    body->len -= WEIR__BATCH_HEAD_BYTES + len;
    return 0;
}

int weir__batch_walk_start(struct weir__batch_walk *walk, const struct weir__log_view *view,
                           struct weir_error *err)
{
    struct weir__bytes body = view->body;
    struct weir__event skipped;
    int rc;

    walk->next = (struct weir__event){.sequence = view->sequence,
                                      .offset = view->offset,
                                      .time_ms = view->time_ms};
    walk->left = view->count;
    if (view->attrs & ~WEIR__BATCH_ATTRS)
        return weir__fail(err, WEIR_EVERSION, "the batch at sequence %llu has unknown flags 0x%x",
                          (unsigned long long)view->sequence, view->attrs);
    if (read_key(&body, view->attrs, &walk->next.key) != 0)
        return fail_body(view->sequence, "ends inside its key", err);
    rc = weir__amqp_batch_start(&walk->in, body, err);
    if (rc != 0) return weir__wrap(err, WEIR_ECORRUPT, "a stored batch");
    for (uint32_t i = 0; i < view->skip; i++) {
        rc = weir__batch_walk_next(walk, &skipped, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int weir__batch_walk_next(struct weir__batch_walk *walk, struct weir__event *out,
                          struct weir_error *err)
{
    if (weir__amqp_batch_next(&walk->in, &out->message, err) != 0)
        return weir__wrap(err, WEIR_ECORRUPT, "a stored batch");
    if (!out->message.at != (walk->left == 0))
        return fail_body(walk->next.sequence, "has not as many events as its header says", err);
    if (walk->left == 0) return 0;
    out->key = walk->next.key;
    out->sequence = walk->next.sequence++;
    out->offset = walk->next.offset++;
    out->time_ms = walk->next.time_ms;
    walk->left--;
    return 1;
}

uint32_t weir__batch_walk_some(struct weir__batch_walk *walk, struct weir__event *out, uint32_t max)
{
    struct weir__bytes messages[WEIR__BATCH_SOME];
    struct weir__event next = walk->next;
    uint32_t count;

    if (max > walk->left) max = walk->left;
    if (max > WEIR__BATCH_SOME) max = WEIR__BATCH_SOME;
    count = weir__amqp_batch_some(&walk->in, messages, max);
    for (uint32_t i = 0; i < count; i++) {
        next.message = messages[i];
        out[i] = next;
        next.sequence++;
        next.offset++;
    }
    walk->next.sequence = next.sequence;
    walk->next.offset = next.offset;
    walk->left -= count;
    return count;
}
