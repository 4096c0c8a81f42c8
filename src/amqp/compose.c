/* compose.c - a stored event as a receiver gets it.
 *
 * What the hub knows of an event (sequence number, time, offset) is not stored with it, because it
 * is known only when the batch has its place. It becomes four message annotations on the way out,
 * 125 bytes for a 16-digit offset, which are copied from a template and filled in:
 *
 *   a3 1b "x-opt-sequence-number-epoch"  54 ff        -1: there is no geo-replication
 *   a3 15 "x-opt-sequence-number"  81 SSSSSSSS
 *   a3 13 "x-opt-enqueued-time"    83 TTTTTTTT
 *   a3 0c "x-opt-offset"           a1 LL text
 *   a3 13 "x-opt-partition-key"    a1 LL text     when the stamp has a key and the sender none
 *
 * The sender's annotations stand before them. Annotations come first, then the sender's sections in
 * the order in which they came, without the header: the service drops it, too. */
#include "amqp/dialect.h"
#include "amqp/message.h"

/* As most events get it, which have no annotations of their own: a map8 of eight items, and an
 * offset of 16 digits. What stands behind the head is put behind a sender's annotations, too. */
static const char template[] = "\x00\x53\x72\xc1\x7e\x08"
                               "\xa3\x1b" WEIR__EH_SEQUENCE_EPOCH "\x54\xff"
                               "\xa3\x15" WEIR__EH_SEQUENCE "\x81"
                               "........"
                               "\xa3\x13" WEIR__EH_TIME "\x83"
                               "........"
                               "\xa3\x0c" WEIR__EH_OFFSET "\xa1\x10"
                               "................";

#define DIGITS 16
#define LAST_DIGIT 56 /* where it begins in the word of the last eight */
#define TEMPLATE_BYTES (sizeof template - 1)
#define TEMPLATE_HEAD 6
#define OWN (template + TEMPLATE_HEAD)
#define OWN_EPOCH_BYTES (2 + sizeof WEIR__EH_SEQUENCE_EPOCH + 1)
#define OWN_SEQUENCE_AT (OWN_EPOCH_BYTES + 2 + sizeof WEIR__EH_SEQUENCE)
#define OWN_TIME_AT (OWN_SEQUENCE_AT + 8 + 2 + sizeof WEIR__EH_TIME)
#define OWN_OFFSET_AT (OWN_TIME_AT + 8 + 2 + sizeof WEIR__EH_OFFSET + 1)
#define OWN_BYTES_MAX (OWN_OFFSET_AT + DECIMAL_MAX)
#define OWN_ITEMS 8

#define DECIMAL_MAX 20                /* of 64 bits */
#define DIGITS_LEAST 1000000000000000 /* the first number of 16 digits */
#define DIGITS_END (10 * (uint64_t)DIGITS_LEAST)

#define SECTION_HEAD 3                                 /* 00 53 72 */
#define KEY_HEAD_MAX (2 + sizeof WEIR__EH_KEY - 1 + 5) /* the name, then a1 LL or b1 LLLLLLLL */
#define STRING_SMALL_MAX 255

#define MAP_HEAD_SMALL 3 /* c1 size count */
#define MAP_HEAD 9       /* d1 size count, four bytes each */
#define MAP_SMALL_MAX 254

_Static_assert(TEMPLATE_BYTES == TEMPLATE_HEAD + OWN_OFFSET_AT + DIGITS, "the places above");
_Static_assert(SECTION_HEAD + MAP_HEAD + OWN_BYTES_MAX + KEY_HEAD_MAX <= WEIR__AMQP_STAMP_BYTES,
               "the bound is one");

/* The annotations of the sender: which are kept, and whether the key is among them. */
struct kept {
    uint8_t *at; /* where the next goes */
    uint32_t items;
    bool has_key;
};

/* Whether it came as a symbol, as it must, or as a string. */
static bool is_named(const struct weir__amqp_value *key, const char *name, size_t len)
{
    return (key->type == WEIR__AMQP_SYMBOL || key->type == WEIR__AMQP_STRING) &&
           key->bytes.len == len && !memcmp(key->bytes.at, name, len);
}

/* A name of ours. */
static bool is_ours(const struct weir__amqp_value *key)
{
    return is_named(key, WEIR__EH_SEQUENCE, sizeof WEIR__EH_SEQUENCE - 1) ||
           is_named(key, WEIR__EH_TIME, sizeof WEIR__EH_TIME - 1) ||
           is_named(key, WEIR__EH_OFFSET, sizeof WEIR__EH_OFFSET - 1) ||
           is_named(key, WEIR__EH_SEQUENCE_EPOCH, sizeof WEIR__EH_SEQUENCE_EPOCH - 1);
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
        if (is_named(&key, WEIR__EH_KEY, sizeof WEIR__EH_KEY - 1)) kept->has_key = true;
        memcpy(kept->at, at, len);
        kept->at += len;
        kept->items += 2;
    }
    if (items.in.why)
        return weir__fail(err, WEIR_EINVAL, "message-annotations, byte %zu: %s",
                          weir__amqp_offset(&items.in), items.in.why);
    return 0;
}

/* Eight decimal digits of v, which has no more, as text in the order of memory: split into halves
 * until each byte has its digit, all halves at once. */
static uint64_t eight_digits(uint32_t v)
{
    uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t high = (fours * 10486 >> 20) & 0x0000007f0000007f;
    uint64_t twos = high | (fours - 100 * high) << 16;
    uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;

    return (tens | (twos - 10 * tens) << 8) | 0x3030303030303030;
}

/* The events of a batch follow one another, and nearly always only the last digit changes. The text
 * is kept in two words and never in bytes: a word that is read just after one of its bytes was
 * written waits for it, longer than all the rest takes. */
static inline void put_digits(uint8_t to[DIGITS], struct weir__amqp_stamp *stamp)
{
    uint64_t v = stamp->offset, high = stamp->digits[0], low = stamp->digits[1];

    if (v == stamp->digits_of + 1 && low >> LAST_DIGIT < '9') {
        low += (uint64_t)1 << LAST_DIGIT;
    } else {
        stamp->digits[0] = high = eight_digits((uint32_t)(v / 100000000));
        low = eight_digits((uint32_t)(v % 100000000));
    }
    stamp->digits[1] = low;
    stamp->digits_of = v;
    weir__store64(to, high);
    weir__store64(to + 8, low);
}

static inline bool has_digits(uint64_t v)
{
    return v - DIGITS_LEAST < DIGITS_END - DIGITS_LEAST;
}

/* The offset of an event is a number of 16 digits, unless somebody else has made it. */
static uint8_t *put_offset(uint8_t *to, struct weir__amqp_stamp *stamp)
{
    uint8_t text[DECIMAL_MAX], *at = text + sizeof text;
    uint64_t v = stamp->offset;

    if (has_digits(v)) {
        put_digits(to + 1, stamp);
        return to + 1 + DIGITS; /* the length is the template's */
    }
    do *--at = (uint8_t)('0' + v % 10);
    while (v /= 10);
    *to++ = (uint8_t)(text + sizeof text - at);
    while (at < text + sizeof text) *to++ = *at++;
    return to;
}

static uint8_t *put_own(uint8_t *to, struct weir__amqp_stamp *stamp)
{
    memcpy(to, OWN, OWN_OFFSET_AT);
    weir__store_be64(to + OWN_SEQUENCE_AT, (uint64_t)stamp->sequence);
    weir__store_be64(to + OWN_TIME_AT, (uint64_t)stamp->enqueued_ms);
    return put_offset(to + OWN_OFFSET_AT - 1, stamp);
}

static uint8_t *put_key(uint8_t *to, struct weir__bytes key)
{
    static const char name[] = "\xa3\x13" WEIR__EH_KEY;

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
                           struct weir__amqp_stamp *stamp, struct weir_error *err)
{
    size_t most = map->bytes.len + OWN_BYTES_MAX +
                  (stamp->partition_key.at ? KEY_HEAD_MAX + stamp->partition_key.len : 0);
    size_t head = most <= MAP_SMALL_MAX ? MAP_HEAD_SMALL : MAP_HEAD, size;
    uint8_t *at = *to;
    struct kept kept = {.at = at + SECTION_HEAD + head};
    int rc = map->count ? copy_kept(&kept, map, err) : 0;

    if (rc != 0) return rc;
    kept.at = put_own(kept.at, stamp);
    kept.items += OWN_ITEMS;
    if (stamp->partition_key.at && !kept.has_key) {
        kept.at = put_key(kept.at, stamp->partition_key);
        kept.items += 2;
    }
    memcpy(at, template, SECTION_HEAD);
    at += SECTION_HEAD;
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

static uint8_t *put_bytes(uint8_t *to, const uint8_t *at, size_t len)
{
    if (len) memcpy(to, at, len);
    return to + len;
}

/* The head of a map32 section: 00 53 71 d1, size and count. */
#define SECTION_MAP_HEAD (SECTION_HEAD + MAP_HEAD)

/* The sender's delivery annotations and the hub's, in one section. The hub's come last. */
static uint8_t *merge_delivery_annotations(uint8_t *to, const struct weir__amqp_value *sent,
                                           struct weir__bytes section)
{
    struct weir__amqp_cursor c =
        weir__amqp_cursor_of(weir__bytes_of(section.at + SECTION_HEAD, section.len - SECTION_HEAD));
    struct weir__amqp_value ours = {0};
    uint8_t *at = to + SECTION_MAP_HEAD;

    weir__amqp_read(&c, &ours);
    at = put_bytes(at, sent->bytes.at, sent->bytes.len);
    at = put_bytes(at, ours.bytes.at, ours.bytes.len);
    memcpy(to, section.at, SECTION_HEAD);
    to[SECTION_HEAD] = 0xd1;
    weir__store_be32(to + SECTION_HEAD + 1, (uint32_t)(sent->bytes.len + ours.bytes.len + 4));
    weir__store_be32(to + SECTION_HEAD + 5, sent->count + ours.count);
    return at;
}

/* The section among `cut`, a set of those that do not follow the annotations, that begins first from
 * `at` on; NULL: none. */
static const struct weir__amqp_span *next_cut(const struct weir__amqp_message *m, uint32_t cut,
                                              size_t at)
{
    const struct weir__amqp_span *first = NULL;

    for (int s = WEIR__AMQP_HEADER; s <= WEIR__AMQP_MESSAGE_ANNOTATIONS; s++)
        if ((m->there & cut) >> s & 1 && m->section[s].at >= at &&
            (!first || m->section[s].at < first->at))
            first = &m->section[s];
    return first;
}

static uint8_t *put_others(uint8_t *to, const struct weir__amqp_message *m, uint32_t cut)
{
    size_t at = 0;

    for (;;) {
        const struct weir__amqp_span *span = next_cut(m, cut, at);
        size_t end = span ? span->at : m->raw.len;
        to = put_bytes(to, m->raw.at + at, end - at);
        if (!span) return to;
        at = span->end;
    }
}

/* The sender's delivery annotations when they stand where AMQP has them, before all that follows the
 * message annotations; else nothing. */
static struct weir__bytes find_early(const struct weir__amqp_message *m)
{
    const struct weir__amqp_span *own = &m->section[WEIR__AMQP_DELIVERY_ANNOTATIONS];

    for (int s = WEIR__AMQP_PROPERTIES; s <= WEIR__AMQP_FOOTER; s++)
        if (m->there >> s & 1 && m->section[s].at < own->at) return (struct weir__bytes){0};
    return weir__bytes_of(m->raw.at + own->at, own->end - own->at);
}

/* Those that come first: the hub's with the sender's, or the sender's alone. */
static uint8_t *put_delivery_annotations(uint8_t *to, const struct weir__amqp_message *m,
                                         struct weir__bytes ours)
{
    struct weir__amqp_value sent = weir__amqp_message_map(m, WEIR__AMQP_DELIVERY_ANNOTATIONS);
    struct weir__bytes early = find_early(m);

    if (!ours.len) return put_bytes(to, early.at, early.len);
    if (!sent.count) return put_bytes(to, ours.at, ours.len);
    return merge_delivery_annotations(to, &sent, ours);
}

/* Everything but the usual. */
static __attribute__((noinline)) int compose_slowly(struct weir__bytes stored,
                                                    struct weir__amqp_stamp *stamp, uint8_t *to,
                                                    size_t *out_bytes, struct weir_error *err)
{
    uint32_t cut = 1u << WEIR__AMQP_HEADER | 1u << WEIR__AMQP_MESSAGE_ANNOTATIONS;
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    uint8_t *at = to;
    int rc = weir__amqp_message_scan(&m, stored, WEIR__AMQP_SHALLOW, err);

    if (rc != 0) return rc;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    at = put_delivery_annotations(at, &m, stamp->delivery_annotations);
    if (at > to) cut |= 1u << WEIR__AMQP_DELIVERY_ANNOTATIONS;
    rc = put_annotations(&at, &map, stamp, err);
    if (rc != 0) return rc;
    at = put_others(at, &m, cut);
    *out_bytes = (size_t)(at - to);
    return 0;
}

/* 00 53 75 a0 and 00 53 75 b0, as a little-endian load gives them. */
#define DATA_BINARY8 0xa0755300u
#define DATA_BINARY32 0xb0755300u

/* Whether nothing of an event has to move for the hub's annotations. Most are a data section and no
 * more; for the others all of their sections are looked at. */
static inline bool is_usual(struct weir__bytes stored)
{
    if (stored.len >= 5 && weir__load32(stored.at) == DATA_BINARY8)
        return stored.len - 5 == stored.at[4] || weir__amqp_message_is_late(stored);
    if (stored.len >= 8 && weir__load32(stored.at) == DATA_BINARY32)
        return stored.len - 8 == weir__load_be32(stored.at + 4) ||
               weir__amqp_message_is_late(stored);
    return weir__amqp_message_is_late(stored);
}

int weir__amqp_compose(struct weir__bytes stored, struct weir__amqp_stamp *stamp, uint8_t *to,
                       size_t room, size_t *out_bytes, struct weir_error *err)
{
    size_t bound = weir__amqp_compose_bound(stored.len, stamp), before;
    uint8_t *own;

    if (bound > room || bound > UINT32_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "composing may need %zu bytes", bound);
    if (!is_usual(stored) || stamp->partition_key.at || !has_digits(stamp->offset))
        return compose_slowly(stored, stamp, to, out_bytes, err);
    before = stamp->delivery_annotations.len;
    if (before) memcpy(to, stamp->delivery_annotations.at, before);
    own = to + before + TEMPLATE_HEAD;
    memcpy(to + before, template, TEMPLATE_BYTES - DIGITS);
    weir__store_be64(own + OWN_SEQUENCE_AT, (uint64_t)stamp->sequence);
    weir__store_be64(own + OWN_TIME_AT, (uint64_t)stamp->enqueued_ms);
    put_digits(own + OWN_OFFSET_AT, stamp);
    memcpy(to + before + TEMPLATE_BYTES, stored.at, stored.len);
    *out_bytes = before + TEMPLATE_BYTES + stored.len;
    return 0;
}
