/* wire_stamp.c - from a batch to the payload of a transfer.
 *
 *   00 53 72 map   x-opt-partition-key          the batch's key, when it has one
 *   data section | data section | ...           one per event, each a whole message
 *
 * Each message has the same key among its annotations, as Azure's clients write it, and those of an
 * idempotent producer: com.microsoft:producer-id (long), producer-epoch (short) and
 * producer-sequence-number (int). The sequence number on the wire is one more than ours: a producer
 * that is new there begins with 1. */
#include "client/wire.h"

#define KEY "x-opt-partition-key"
#define ID "com.microsoft:producer-id"
#define EPOCH "com.microsoft:producer-epoch"
#define SEQUENCE "com.microsoft:producer-sequence-number"

#define KEY_BYTES 48   /* of the annotation besides the key itself, and the head of the map */
#define MARK_BYTES 144 /* of the three */

static void put_name(struct weir__amqp_writer *w, const char *name)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, name, strlen(name)));
}

static uint32_t put_key(struct weir__amqp_writer *w, struct weir__bytes key)
{
    if (!key.at) return 0;
    put_name(w, KEY);
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, key.at, key.len));
    return 2;
}

static uint32_t put_mark(struct weir__amqp_writer *w, const struct weir__log_producer *mark,
                         uint32_t event)
{
    if (!mark) return 0;
    put_name(w, ID);
    weir__amqp_put(w, weir__amqp_signed(WEIR__AMQP_LONG, (int64_t)mark->id));
    put_name(w, EPOCH);
    weir__amqp_put(w, weir__amqp_signed(mark->epoch > INT16_MAX ? WEIR__AMQP_INT : WEIR__AMQP_SHORT,
                                        mark->epoch));
    put_name(w, SEQUENCE);
    weir__amqp_put(w, weir__amqp_signed(WEIR__AMQP_INT, (int64_t)mark->sequence + 1 + event));
    return 6;
}

/* The sections of the events, behind the key that the encoder keeps in front. */
static struct weir__bytes sections_of(const struct weir__batch *b)
{
    const uint8_t *end = b->body[0].at + b->body[0].len;
    const uint8_t *at = b->key.at ? b->key.at + b->key.len : b->body[0].at;

    return weir__bytes_of(at, (size_t)(end - at));
}

size_t weir__wire_stamp_bound(const struct weir__batch *b, const struct weir__log_producer *mark)
{
    size_t each = 0, key = b->key.at ? KEY_BYTES + b->key.len : 0;

    if (key || mark) each = WEIR__AMQP_DATA_HEAD_MAX + KEY_BYTES + key + (mark ? MARK_BYTES : 0);
    return key + b->body[0].len + b->count * each;
}

/* One event with its annotations, those that it has first. */
static int put_event(struct weir__amqp_writer *w, const struct weir__batch *b,
                     const struct weir__log_producer *mark, struct weir__bytes message,
                     uint32_t event, struct weir_error *err)
{
    uint8_t space[WEIR__BATCH_KEY_MAX * 2 + KEY_BYTES + MARK_BYTES];
    uint8_t head[WEIR__AMQP_DATA_HEAD_MAX];
    struct weir__amqp_writer annotations;
    struct weir__amqp_cursor rest;
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    struct weir__bytes section;
    uint32_t count;
    size_t open;
    int rc = weir__amqp_message_scan_until(&m, message, WEIR__AMQP_PROPERTIES, &rest, err);

    if (rc != 0) return rc;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    weir__amqp_writer_init(&annotations, space, sizeof space);
    weir__amqp_put_descriptor(&annotations, 0x72);
    open = weir__amqp_put_open(&annotations);
    weir__amqp_put_raw(&annotations, map.bytes);
    count = map.count + put_key(&annotations, b->key) + put_mark(&annotations, mark, event);
    weir__amqp_put_close(&annotations, open, WEIR__AMQP_MAP, count);
    rc = weir__amqp_writer_finish(&annotations, &section, err);
    if (rc != 0) return rc;
    message = weir__bytes_of(rest.at, weir__amqp_left(&rest));
    weir__amqp_put_raw(
        w, weir__bytes_of(head, weir__amqp_data_head(head, (uint32_t)(section.len + message.len))));
    weir__amqp_put_raw(w, section);
    weir__amqp_put_raw(w, message);
    return 0;
}

static int put_events(struct weir__amqp_writer *w, const struct weir__batch *b,
                      const struct weir__log_producer *mark, struct weir_error *err)
{
    struct weir__amqp_batch_walk walk;
    struct weir__bytes message;
    int rc = weir__amqp_batch_start(&walk, sections_of(b), err);

    for (uint32_t i = 0; rc == 0; i++) {
        rc = weir__amqp_batch_next(&walk, &message, err);
        if (rc != 0 || !message.at) break;
        rc = put_event(w, b, mark, message, i, err);
    }
    return rc;
}

int weir__wire_stamp(const struct weir__batch *b, const struct weir__log_producer *mark,
                     uint8_t *to, size_t room, size_t *out_bytes, struct weir_error *err)
{
    struct weir__amqp_writer w;
    struct weir__bytes out;
    size_t open;
    int rc = 0;

    weir__amqp_writer_init(&w, to, room);
    if (b->key.at) {
        weir__amqp_put_descriptor(&w, 0x72);
        open = weir__amqp_put_open(&w);
        put_key(&w, b->key);
        weir__amqp_put_close(&w, open, WEIR__AMQP_MAP, 2);
    }
    if (b->key.at || mark)
        rc = put_events(&w, b, mark, err);
    else
        weir__amqp_put_raw(&w, b->body[0]);
    if (rc == 0) rc = weir__amqp_writer_finish(&w, &out, err);
    if (rc == 0) *out_bytes = out.len;
    return rc;
}
