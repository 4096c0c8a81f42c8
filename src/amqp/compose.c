/* compose.c - a stored event as a receiver gets it.
 *
 * What the hub knows of an event (sequence number, time, offset) is not stored with it, because it
 * is known only when the batch has its place. It becomes three message annotations on the way out,
 * 94 bytes for a 16-digit offset, which are copied from a template and filled in:
 *
 *   a3 15 "x-opt-sequence-number"  81 SSSSSSSS
 *   a3 13 "x-opt-enqueued-time"    83 TTTTTTTT
 *   a3 0c "x-opt-offset"           a1 LL text
 *   a3 13 "x-opt-partition-key"    a1 LL text     when the stamp has a key and the sender none
 *
 * The sender's annotations stand before them. */
#include "amqp/message.h"

#define NAME_SEQUENCE "x-opt-sequence-number"
#define NAME_TIME "x-opt-enqueued-time"
#define NAME_OFFSET "x-opt-offset"
#define NAME_KEY "x-opt-partition-key"

static const uint8_t section_head[3] = {0x00, 0x53, 0x72};
static const char own_template[] = "\xa3\x15" NAME_SEQUENCE "\x81"
                                   "........"
                                   "\xa3\x13" NAME_TIME "\x83"
                                   "........"
                                   "\xa3\x0c" NAME_OFFSET "\xa1";

#define OWN_BYTES (sizeof own_template - 1)
#define OWN_SEQUENCE_AT (2 + sizeof NAME_SEQUENCE)
#define OWN_TIME_AT (OWN_SEQUENCE_AT + 8 + 2 + sizeof NAME_TIME)
#define OWN_ITEMS 6

#define KEY_HEAD_MAX (2 + sizeof NAME_KEY - 1 + 5) /* the name, then a1 LL or b1 LLLLLLLL */
#define STRING_SMALL_MAX 255

#define MAP_HEAD_SMALL 3 /* c1 size count */
#define MAP_HEAD 9       /* d1 size count, four bytes each */
#define MAP_SMALL_MAX 254

/* The annotations of the sender: which are kept, and whether the key is among them. */
struct kept {
    uint8_t *at; /* where the next goes */
    uint32_t items;
    bool has_key;
};

static bool is_named(const struct weir__amqp_value *key, const char *name, size_t len)
{
    return key->bytes.len == len && !memcmp(key->bytes.at, name, len);
}

/* A name of ours, whether it came as a symbol, as it must, or as a string. */
static bool is_ours(const struct weir__amqp_value *key)
{
    return is_named(key, NAME_SEQUENCE, sizeof NAME_SEQUENCE - 1) ||
           is_named(key, NAME_TIME, sizeof NAME_TIME - 1) ||
           is_named(key, NAME_OFFSET, sizeof NAME_OFFSET - 1);
}

static int copy_kept(struct kept *kept, const struct weir__amqp_value *map, struct weir_error *err)
{
    struct weir__amqp_value key, value;
    struct weir__amqp_items items;
    const uint8_t *at;

    weir__amqp_items_init(&items, map);
    while (at = items.in.at, weir__amqp_items_pair(&items, &key, &value)) {
        size_t len = (size_t)(items.in.at - at);
        if (is_ours(&key)) continue;
        if (is_named(&key, NAME_KEY, sizeof NAME_KEY - 1)) kept->has_key = true;
        memcpy(kept->at, at, len);
        kept->at += len;
        kept->items += 2;
    }
    if (items.in.why)
        return weir__fail(err, WEIR_EINVAL, "message-annotations, byte %zu: %s",
                          weir__amqp_offset(&items.in), items.in.why);
    return 0;
}

static uint8_t *put_own(uint8_t *to, const struct weir__amqp_stamp *stamp)
{
    memcpy(to, own_template, OWN_BYTES);
    weir__store_be64(to + OWN_SEQUENCE_AT, (uint64_t)stamp->sequence);
    weir__store_be64(to + OWN_TIME_AT, (uint64_t)stamp->enqueued_ms);
    to += OWN_BYTES;
    *to++ = (uint8_t)stamp->offset.len;
    memcpy(to, stamp->offset.at, stamp->offset.len);
    return to + stamp->offset.len;
}

static uint8_t *put_key(uint8_t *to, struct weir__bytes key)
{
    static const char name[] = "\xa3\x13" NAME_KEY;

    memcpy(to, name, sizeof name - 1);
    to += sizeof name - 1;
    if (key.len <= STRING_SMALL_MAX) {
        *to++ = 0xa1;
        *to++ = (uint8_t)key.len;
    } else {
        *to++ = 0xb1;
        weir__store_be32(to, (uint32_t)key.len);
        to += 4;
    }
    if (key.len) memcpy(to, key.at, key.len);
    return to + key.len;
}

/* The small head is taken when it will do whatever the sender's annotations turn out to be. */
static int put_annotations(uint8_t **to, const struct weir__amqp_value *map,
                           const struct weir__amqp_stamp *stamp, struct weir_error *err)
{
    size_t most = map->bytes.len + OWN_BYTES + 1 + stamp->offset.len +
                  (stamp->partition_key.at ? KEY_HEAD_MAX + stamp->partition_key.len : 0);
    size_t head = most <= MAP_SMALL_MAX ? MAP_HEAD_SMALL : MAP_HEAD, size;
    uint8_t *at = *to;
    struct kept kept = {.at = at + sizeof section_head + head};
    int rc = map->count ? copy_kept(&kept, map, err) : 0;

    if (rc != 0) return rc;
    kept.at = put_own(kept.at, stamp);
    kept.items += OWN_ITEMS;
    if (stamp->partition_key.at && !kept.has_key) {
        kept.at = put_key(kept.at, stamp->partition_key);
        kept.items += 2;
    }
    memcpy(at, section_head, sizeof section_head);
    at += sizeof section_head;
    size = (size_t)(kept.at - at) - head;
    if (head == MAP_HEAD_SMALL) {
        at[0] = 0xc1;
        at[1] = (uint8_t)(size + 1);
        at[2] = (uint8_t)kept.items;
    } else {
        at[0] = 0xd1;
        weir__store_be32(at + 1, (uint32_t)(size + 4));
        weir__store_be32(at + 5, kept.items);
    }
    *to = kept.at;
    return 0;
}

size_t weir__amqp_compose_bound(size_t stored_bytes, const struct weir__amqp_stamp *stamp)
{
    return stored_bytes + stamp->delivery_annotations.len + sizeof section_head + MAP_HEAD +
           OWN_BYTES + 1 + stamp->offset.len + KEY_HEAD_MAX + stamp->partition_key.len;
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *at, size_t len)
{
    if (len) memcpy(to, at, len);
    return to + len;
}

/* Whether the first section comes after the annotations, so that there is nothing to look at. */
static bool begins_late(struct weir__bytes stored)
{
    return stored.len > 3 && stored.at[0] == 0x00 && stored.at[1] == 0x53 && stored.at[2] >= 0x73 &&
           stored.at[2] <= 0x78;
}

int weir__amqp_compose(struct weir__bytes stored, const struct weir__amqp_stamp *stamp, uint8_t *to,
                       size_t room, size_t *out_bytes, struct weir_error *err)
{
    size_t bound = weir__amqp_compose_bound(stored.len, stamp);
    const struct weir__amqp_span *header;
    struct weir__amqp_cursor rest;
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    uint8_t *at = to;
    int rc;

    if (stamp->offset.len > WEIR__AMQP_OFFSET_MAX)
        return weir__fail(err, WEIR_EINVAL, "an offset of %zu bytes", stamp->offset.len);
    if (bound > room || bound > UINT32_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "composing may need %zu bytes", bound);
    rest = weir__amqp_cursor_of(stored);
    map = (struct weir__amqp_value){.type = WEIR__AMQP_MAP};
    if (!begins_late(stored)) {
        rc = weir__amqp_message_scan_until(&m, stored, WEIR__AMQP_PROPERTIES, &rest, err);
        if (rc != 0) return rc;
        header = &m.section[WEIR__AMQP_HEADER];
        at = put_bytes(at, stored.at + header->at, header->end - header->at);
        map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    }
    at = put_bytes(at, stamp->delivery_annotations.at, stamp->delivery_annotations.len);
    rc = put_annotations(&at, &map, stamp, err);
    if (rc != 0) return rc;
    at = put_bytes(at, rest.at, weir__amqp_left(&rest));
    *out_bytes = (size_t)(at - to);
    return 0;
}
