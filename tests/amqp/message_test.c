#include <stdio.h>

#include "amqp/message.h"

#include "sample.h"

#define SEEDS 3000
#define PAIRS_MAX 8

/* The batch that @azure/event-hubs 6.0.4 sends: an envelope and two events. */
#define GOLDEN_EVENT_1                                                                             \
    "00 53 70 d0 00000005 00000001 41 "                                                            \
    "00 53 72 d1 0000001d 00000002 a3 13 'x-opt-partition-key' a1 02 'pk' "                        \
    "00 53 73 d0 0000001f 00000007 a1 02 'm1' 40 40 40 40 40 a3 10 'application/json' "            \
    "00 53 74 d1 00000010 00000002 a1 01 'n' 81 0000000000000005 "                                 \
    "00 53 75 a0 07 '{\"a\":1}'"
#define GOLDEN_EVENT_2                                                                             \
    "00 53 70 d0 00000005 00000001 41 "                                                            \
    "00 53 72 d1 0000001d 00000002 a3 13 'x-opt-partition-key' a1 02 'pk' "                        \
    "00 53 73 45 00 53 75 a0 03 '\"x\"'"
#define GOLDEN_ENVELOPE                                                                            \
    "00 53 72 d1 0000001d 00000002 a3 13 'x-opt-partition-key' a1 02 'pk' 00 53 73 45 "

static int scan_hex(const char *hex, enum weir__amqp_depth depth, struct weir_error *err)
{
    struct weir__bytes b = sample_hex(hex);
    struct weir__amqp_message m;
    int rc = weir__amqp_message_scan(&m, b, depth, err);

    sample_free(b);
    return rc;
}

static int check_hex(const char *hex)
{
    struct weir__bytes b = sample_hex(hex), annotations;
    int rc = weir__amqp_message_check(b, &annotations, NULL);

    sample_free(b);
    return rc;
}

static void golden_event(void **state)
{
    struct weir__bytes b = sample_hex(GOLDEN_EVENT_1);
    struct weir__amqp_properties p;
    struct weir__amqp_message m;
    struct weir__amqp_value map, v;

    (void)state;
    assert_int_equal(weir__amqp_message_scan(&m, b, WEIR__AMQP_DEEP, NULL), 0);
    assert_int_equal(m.section[WEIR__AMQP_HEADER].at, 0);
    assert_int_equal(m.section[WEIR__AMQP_HEADER].value, 3);
    assert_int_equal(m.section[WEIR__AMQP_HEADER].end, 13);
    assert_int_equal(m.section[WEIR__AMQP_DELIVERY_ANNOTATIONS].end, 0);
    assert_int_equal(m.section[WEIR__AMQP_MESSAGE_ANNOTATIONS].at, 13);
    assert_int_equal(m.section[WEIR__AMQP_BODY].end, b.len);
    assert_int_equal(m.body, WEIR__AMQP_BODY_DATA);
    assert_int_equal(m.body_count, 1);
    assert_bytes(m.data, weir__bytes_of("{\"a\":1}", 7));

    assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
    assert_bytes(p.message_id.bytes, weir__bytes_of("m1", 2));
    assert_int_equal(p.content_type.type, WEIR__AMQP_SYMBOL);
    assert_bytes(p.content_type.bytes, weir__bytes_of("application/json", 16));
    assert_int_equal(p.reply_to_group_id.type, WEIR__AMQP_NULL);

    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    assert_true(weir__amqp_map_find(&map, "x-opt-partition-key", &v));
    assert_bytes(v.bytes, weir__bytes_of("pk", 2));
    map = weir__amqp_message_map(&m, WEIR__AMQP_APPLICATION_PROPERTIES);
    assert_true(weir__amqp_map_find(&map, "n", &v));
    assert_int_equal(v.i, 5);
    map = weir__amqp_message_map(&m, WEIR__AMQP_FOOTER);
    assert_int_equal(map.type, WEIR__AMQP_MAP);
    assert_int_equal(map.count, 0);
    sample_free(b);
}

static void put_event(struct weir__buf *batch, const char *hex)
{
    struct weir__bytes event = sample_hex(hex);
    uint8_t head[WEIR__AMQP_DATA_HEAD_MAX];

    assert_true(weir__buf_add(batch, head, weir__amqp_data_head(head, (uint32_t)event.len)));
    assert_true(weir__buf_add(batch, event.at, event.len));
    sample_free(event);
}

static void golden_batch(void **state)
{
    struct weir__bytes envelope = sample_hex(GOLDEN_ENVELOPE), event, want;
    struct weir__amqp_batch_walk walk;
    struct weir__amqp_message m;
    struct weir__buf batch;

    (void)state;
    weir__buf_init(&batch, 4096);
    assert_true(weir__buf_add(&batch, envelope.at, envelope.len));
    put_event(&batch, GOLDEN_EVENT_1);
    put_event(&batch, GOLDEN_EVENT_2);

    assert_int_equal(weir__amqp_batch_start(&walk, weir__buf_bytes(&batch), NULL), 0);
    assert_true(walk.envelope.there & 1u << WEIR__AMQP_MESSAGE_ANNOTATIONS);
    assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), 0);
    want = sample_hex(GOLDEN_EVENT_1);
    assert_bytes(event, want);
    assert_int_equal(weir__amqp_message_scan(&m, event, WEIR__AMQP_DEEP, NULL), 0);
    sample_free(want);
    assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), 0);
    assert_int_equal(weir__amqp_message_scan(&m, event, WEIR__AMQP_DEEP, NULL), 0);
    assert_bytes(m.data, weir__bytes_of("\"x\"", 3));
    assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), 0);
    assert_null(event.at);
    assert_int_equal(walk.envelope.body_count, 2);
    assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), 0);
    assert_null(event.at);
    sample_free(envelope);
    weir__buf_fini(&batch);
}

/* Counts the data sections, or gives the failure. */
static int walk_hex(const char *hex, struct weir_error *err)
{
    struct weir__bytes b = sample_hex(hex), event;
    struct weir__amqp_batch_walk walk;
    int rc = weir__amqp_batch_start(&walk, b, err), count = 0;
    bool started = rc == 0;

    while (rc == 0) {
        rc = weir__amqp_batch_next(&walk, &event, err);
        if (rc != 0 || !event.at) break;
        count++;
    }
    if (started && rc != 0)
        assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), rc); /* it sticks */
    sample_free(b);
    return rc == 0 ? count : rc;
}

static void batches(void **state)
{
    static const struct {
        const char *hex, *text;
        int want;
    } rows[] = {
        {"00 53 75 a0 01 'a' 00 53 75 b0 00000001 'b' 00 53 75 a0 00", NULL, 3},
        {"00 80 0000000000000075 a0 01 'a'", NULL, 1},
        {"00 a3 10 'amqp:data:binary' a0 01 'a'", NULL, 1},
        {"00 53 75 a0 01 'a' 00 53 78 c1 01 00", NULL, 1},
        {"00 53 72 c1 01 00", NULL, 0},
        {"00 53 75 40 00 53 75 a0 01 'a' 00 53 75 40", NULL, 3},
        {"00 53 75 a0 01 'a' 00 53 78 c1 01 00 00 53 75 a0 01 'b'",
         "message section data, byte 12: a second body", WEIR_EINVAL},
        {"00 53 75 a0 01 'a' 00 53 73 45", NULL, 1}, /* at any place, */
        {"00 53 78 c1 01 00 00 53 75 a0 01 'a' 00 53 75 a0 01 'b' 00 53 70 45", NULL, 2},
        {"00 53 75 a0 01 'a' 00 53 73 45 00 53 73 45", /* but once */
         "message section properties, byte 10: it comes twice", WEIR_EINVAL},
        {"00 53 77 a0 01 'a'",
         "message section amqp-value, byte 0: a batch consists of data sections", WEIR_EINVAL},
        {"00 53 75 a0 05 'a'", "message section data, byte 5: ends too early", WEIR_EINVAL},
        {"00 53 75 a0 01 'a' 00 53 75 b0 ffffffff 'b'",
         "message section data, byte 14: ends too early", WEIR_EINVAL},
        {"00 53 75 a0 01 'a' ff",
         "message section ?, byte 6: found a byte of no meaning, but a section must "
         "begin with 00",
         WEIR_EINVAL},
        {"", "a message without a section", WEIR_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_error err = {0};
        assert_int_equal(walk_hex(rows[i].hex, &err), rows[i].want);
        if (rows[i].text) assert_string_equal(err.text, rows[i].text);
    }
}

static void bodies(void **state)
{
    static const struct {
        const char *hex;
        enum weir__amqp_body body;
        uint32_t count;
    } rows[] = {
        {"00 53 75 a0 00", WEIR__AMQP_BODY_DATA, 1},
        {"00 53 75 40", WEIR__AMQP_BODY_DATA, 1},
        {"00 53 73 45 00 53 75 40 00 53 75 a0 01 'b'", WEIR__AMQP_BODY_DATA, 2},
        {"00 53 75 a0 01 'a' 00 53 75 a0 01 'b'", WEIR__AMQP_BODY_DATA, 2},
        {"00 53 76 45 00 53 76 c0 02 01 40 00 53 78 d1 00000004 00000000", WEIR__AMQP_BODY_SEQUENCE,
         2},
        {"00 53 77 a1 01 'x'", WEIR__AMQP_BODY_VALUE, 1},
        {"00 53 77 40", WEIR__AMQP_BODY_VALUE, 1},
        {"00 53 77 00 a3 01 'd' c0 01 00", WEIR__AMQP_BODY_VALUE, 1},
        {"00 53 70 45", WEIR__AMQP_BODY_NONE, 0},
        {"00 53 78 c1 01 00 00 53 75 a0 01 'a' 00 53 75 a0 01 'b' 00 53 71 c1 01 00",
         WEIR__AMQP_BODY_DATA, 2},
        {"00 53 77 40 00 53 73 45 00 53 72 c1 01 00 00 53 70 45", WEIR__AMQP_BODY_VALUE, 1},
        {"00 a3 11 'amqp:amqp-value:*' 41", WEIR__AMQP_BODY_VALUE, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].hex);
        struct weir__amqp_message m;
        assert_int_equal(weir__amqp_message_scan(&m, b, WEIR__AMQP_DEEP, NULL), 0);
        assert_int_equal(m.body, rows[i].body);
        assert_int_equal(m.body_count, rows[i].count);
        sample_free(b);
    }
}

static void broken_messages(void **state)
{
    static const struct {
        const char *hex, *text;
    } rows[] = {
        {"", "a message without a section"},
        {"40", "message section ?, byte 0: found a null, but a section must begin with 00"},
        {"d1 00000004 00000000",
         "message section ?, byte 0: found a map, but a section must begin with 00"},
        {"00", "message section ?, byte 1: ends too early"},
        {"00 53", "message section ?, byte 2: ends too early"},
        {"00 53 79 45", "message section ?, byte 0: no section has this descriptor"},
        {"00 53 6f 45 40 40", "message section ?, byte 0: no section has this descriptor"},
        {"00 a3 03 'foo' 45", "message section ?, byte 0: no section has this descriptor"},
        {"00 a3 10 'amqp:data:binarz' a0 00",
         "message section ?, byte 0: no section has this descriptor"},
        {"00 a3 11 'amqp:data:binarys' a0 00",
         "message section ?, byte 0: no section has this descriptor"},
        {"00 52 70 45", "message section ?, byte 1: a value of another type than belongs here"},
        {"00 53 70", "message section header, byte 3: ends too early"},
        {"00 53 70 c1 01 00",
         "message section header, byte 3: a value of another type than belongs here"},
        {"00 53 72 40",
         "message section message-annotations, byte 3: a value of another type than belongs here"},
        {"00 53 75 a1 01 'a'",
         "message section data, byte 3: a value of another type than belongs here"},
        {"00 53 73 45 00 53 70 45 00 53 70 45", "message section header, byte 8: it comes twice"},
        {"00 53 73 45 00 53 73 45", "message section properties, byte 4: it comes twice"},
        {"00 53 77 40 00 53 77 40", "message section amqp-value, byte 4: a second body"},
        {"00 53 75 a0 00 00 53 76 45", "message section amqp-sequence, byte 5: a second body"},
        {"00 53 75 a0 00 00 53 70 45 00 53 75 a0 00",
         "message section data, byte 9: a second body"},
        {"00 53 72 c1 ff 00 40 40",
         "message section message-annotations, byte 4: a size that is beyond the end"},
        {"00 53 72 c1 00 00 40 40",
         "message section message-annotations, byte 4: a size that is smaller than its count"},
        {"00 53 72 c1 03 01 40 40",
         "message section message-annotations, byte 5: a map with a key that has no value"},
        {"00 53 72 d1 fffffffe 00000000",
         "message section message-annotations, byte 4: a size that is beyond the end"},
        {"00 53 73 c0 02 05 40", "message section properties, byte 5: more items than bytes"},
        {"00 53 75 b0 ffffffff 'abcdefghijkl'", "message section data, byte 8: ends too early"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_error err = {0};
        assert_int_equal(scan_hex(rows[i].hex, WEIR__AMQP_SHALLOW, &err), WEIR_EINVAL);
        assert_string_equal(err.text, rows[i].text);
        assert_int_equal(check_hex(rows[i].hex), WEIR_EINVAL);
    }
}

/* The shallow scan lets these pass, the deep one says where they are broken. */
static void broken_inside(void **state)
{
    static const struct {
        const char *hex, *text;
    } rows[] = {
        {"00 53 72 c1 05 02 a3 01 'k' 46",
         "message section message-annotations, byte 9: an unknown constructor"},
        {"00 53 72 c1 05 02 a3 09 'k' 40",
         "message section message-annotations, byte 8: ends too early"},
        {"00 53 70 c0 03 01 41 41", "message section header, byte 7: bytes after the last item"},
        {"00 53 77 f0 00000005 ffffffff 40",
         "message section amqp-value, byte 12: too many items without bytes in an array"},
        {"00 53 73 c0 03 02 40 a1", "message section properties, byte 8: ends too early"},
        {"00 53 73 c0 03 01 52 01", "property message-id must not be a uint"},
        {"00 53 73 c0 05 02 40 a1 01 'x'", "property user-id must not be a string"},
        {"00 53 73 c0 0f 0e 40404040404040404040404040 40", "properties: 14 fields, there are 13"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_error err = {0};
        assert_int_equal(scan_hex(rows[i].hex, WEIR__AMQP_SHALLOW, &err), 0);
        assert_int_equal(scan_hex(rows[i].hex, WEIR__AMQP_DEEP, &err), WEIR_EINVAL);
        assert_string_equal(err.text, rows[i].text);
    }
}

/* Usual and unusual forms of the same message are found at the same places. */
static void forms_agree(void **state)
{
    static const char *const hex[] = {
        "00 53 72 c1 05 02 a3 01 'k' 40   00 53 73 c0 04 01 a1 01 'm'   00 53 75 a0 02 'hi'",
        "00 53 72 d1 00000008 00000002 a3 01 'k' 40   00 53 73 d0 00000007 00000001 a1 01 'm'   "
        "00 53 75 b0 00000002 'hi'",
        "00 80 0000000000000072 c1 05 02 a3 01 'k' 40   00 a3 14 'amqp:properties:list' "
        "c0 04 01 a1 01 'm'   00 80 0000000000000075 b0 00000002 'hi'",
    };

    (void)state;
    for (size_t i = 0; i < sizeof hex / sizeof hex[0]; i++) {
        struct weir__bytes b = sample_hex(hex[i]);
        struct weir__amqp_properties p;
        struct weir__amqp_message m;
        struct weir__amqp_value map, v;

        assert_int_equal(weir__amqp_message_scan(&m, b, WEIR__AMQP_DEEP, NULL), 0);
        assert_bytes(m.data, weir__bytes_of("hi", 2));
        map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
        assert_true(weir__amqp_map_find(&map, "k", &v));
        assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
        assert_bytes(p.message_id.bytes, weir__bytes_of("m", 1));
        assert_int_equal(m.section[WEIR__AMQP_PROPERTIES].at,
                         m.section[WEIR__AMQP_MESSAGE_ANNOTATIONS].end);
        assert_int_equal(m.section[WEIR__AMQP_BODY].at, m.section[WEIR__AMQP_PROPERTIES].end);
        sample_free(b);
    }
}

struct random_content {
    struct weir__amqp_content content;
    struct weir__amqp_properties properties;
    struct weir__amqp_pair annotations[PAIRS_MAX], application[PAIRS_MAX];
};

static struct weir__amqp_value random_of(uint64_t *seed, uint32_t types)
{
    struct weir__amqp_value v;

    if (!random_below(seed, 2)) return (struct weir__amqp_value){0};
    do v = random_simple(seed);
    while (!(types & WEIR__AMQP_SET(v.type)));
    return v;
}

static void fill_random(struct random_content *r, uint64_t *seed)
{
    const uint32_t string = WEIR__AMQP_SET(WEIR__AMQP_STRING),
                   symbol = WEIR__AMQP_SET(WEIR__AMQP_SYMBOL),
                   binary = WEIR__AMQP_SET(WEIR__AMQP_BINARY),
                   time = WEIR__AMQP_SET(WEIR__AMQP_TIMESTAMP),
                   identity = string | binary | WEIR__AMQP_SET(WEIR__AMQP_ULONG) |
                              WEIR__AMQP_SET(WEIR__AMQP_UUID);

    *r = (struct random_content){0};
    r->properties = (struct weir__amqp_properties){
        random_of(seed, identity), random_of(seed, binary),
        random_of(seed, string),   random_of(seed, string),
        random_of(seed, string),   random_of(seed, identity),
        random_of(seed, symbol),   random_of(seed, symbol),
        random_of(seed, time),     random_of(seed, time),
        random_of(seed, string),   random_of(seed, WEIR__AMQP_SET(WEIR__AMQP_UINT)),
        random_of(seed, string)};
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        r->annotations[i] = (struct weir__amqp_pair){random_bytes(seed), random_simple(seed)};
        r->application[i] = (struct weir__amqp_pair){random_bytes(seed), random_simple(seed)};
    }
    r->content.properties = random_below(seed, 4) ? &r->properties : NULL;
    r->content.annotations = r->annotations;
    r->content.annotation_count = (uint32_t)random_below(seed, PAIRS_MAX);
    r->content.application_properties = r->application;
    r->content.application_property_count = (uint32_t)random_below(seed, PAIRS_MAX);
    r->content.data = random_bytes(seed);
}

static uint32_t read_pairs(const struct weir__amqp_message *m, enum weir__amqp_section section,
                           struct weir__amqp_pair *out, const struct weir__amqp_pair *want)
{
    struct weir__amqp_value map = weir__amqp_message_map(m, section), key, v;
    struct weir__amqp_items items;
    uint32_t n = 0;

    weir__amqp_items_init(&items, &map);
    for (; weir__amqp_items_pair(&items, &key, &v); n++) {
        assert_bytes(key.bytes, want[n].name);
        assert_value(&v, &want[n].value);
        out[n] = (struct weir__amqp_pair){key.bytes, v};
    }
    assert_null(items.in.why);
    return n;
}

/* Written, read, compared, written again from what was read: the same bytes. */
static void random_messages_round_trip(void **state)
{
    (void)state;
    for (uint64_t run = 1; run <= SEEDS; run++) {
        struct random_content first, again = {0};
        struct weir__amqp_message m;
        struct weir__amqp_writer w;
        struct weir__bytes out, out_again;
        uint64_t seed = run * 0x94d049bb133111eb;
        size_t bound;
        uint8_t *room, *room_again;

        fill_random(&first, &seed);
        bound = weir__amqp_message_bound(&first.content);
        room = malloc(bound);
        room_again = malloc(bound);
        assert_true(room && room_again);
        weir__amqp_writer_init(&w, room, bound);
        assert_int_equal(weir__amqp_message_write(&w, &first.content, NULL), 0);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);

        assert_int_equal(weir__amqp_message_scan(&m, out, WEIR__AMQP_DEEP, NULL), 0);
        assert_bytes(m.data, first.content.data);
        assert_int_equal(weir__amqp_message_properties(&m, &again.properties, NULL), 0);
        again.content.properties = &again.properties;
        again.content.data = m.data;
        again.content.annotations = again.annotations;
        again.content.annotation_count =
            read_pairs(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS, again.annotations, first.annotations);
        again.content.application_properties = again.application;
        again.content.application_property_count =
            read_pairs(&m, WEIR__AMQP_APPLICATION_PROPERTIES, again.application, first.application);
        assert_int_equal(again.content.annotation_count, first.content.annotation_count);
        assert_int_equal(again.content.application_property_count,
                         first.content.application_property_count);

        weir__amqp_writer_init(&w, room_again, bound);
        assert_int_equal(weir__amqp_message_write(&w, &again.content, NULL), 0);
        assert_int_equal(weir__amqp_writer_finish(&w, &out_again, NULL), 0);
        assert_bytes(out_again, out);
        free(room);
        free(room_again);
    }
}

/* A cut message is broken, unless it was cut between two sections. */
static void truncation_at_every_byte(void **state)
{
    struct weir__bytes whole = sample_hex(GOLDEN_EVENT_1);
    struct weir__amqp_message m;
    unsigned good = 0;

    (void)state;
    assert_int_equal(weir__amqp_message_scan(&m, whole, WEIR__AMQP_DEEP, NULL), 0);
    for (size_t len = 1; len < whole.len; len++) {
        struct weir__bytes cut = sample_copy(weir__bytes_of(whole.at, len));
        struct weir__amqp_message part;
        bool at_end = false;

        for (size_t i = 0; i < WEIR__AMQP_SECTIONS; i++) at_end |= m.section[i].end == len;
        assert_int_equal(weir__amqp_message_scan(&part, cut, WEIR__AMQP_SHALLOW, NULL),
                         at_end ? 0 : WEIR_EINVAL);
        assert_int_equal(weir__amqp_message_scan(&part, cut, WEIR__AMQP_DEEP, NULL),
                         at_end ? 0 : WEIR_EINVAL);
        good += at_end;
        sample_free(cut);
    }
    assert_int_equal(good, 4);
    sample_free(whole);
}

/* Events in all their forms, with a byte or two changed: the quick check says of each what the deep
 * scan says, and finds the same annotations. In a batch, as many are passed over as are good, up to
 * the first that is not usual. */
static void the_quick_check_agrees(void **state)
{
    static const char *const hex[] = {
        GOLDEN_EVENT_1,
        GOLDEN_EVENT_2,
        "00 53 72 c1 05 02 a3 01 'k' 40 00 53 73 c0 04 01 a1 01 'm' 00 53 75 a0 02 'hi'",
        "00 53 70 45 00 53 74 c1 05 02 a1 01 'k' 41 00 53 76 c0 02 01 41 00 53 76 45",
        "00 53 71 c1 01 00 00 53 77 a1 02 'hi' 00 53 78 c1 04 02 a3 00 40",
        "00 a3 10 'amqp:data:binary' a0 01 'a' 00 53 75 b0 00000002 'bc'",
        "00 53 75 40",
    };
    uint64_t seed = 11;
    unsigned good = 0;

    (void)state;
    for (unsigned run = 0; run < 40000; run++) {
        struct weir__bytes whole = sample_hex(hex[run % 7]);
        struct weir__bytes b = sample_copy(
            weir__bytes_of(whole.at, random_below(&seed, 4) ? whole.len
                                                            : random_below(&seed, whole.len + 1)));
        struct weir__bytes annotations, event;
        struct weir__amqp_batch_walk walk;
        struct weir__amqp_message m;
        struct weir__buf batch;
        uint8_t head[WEIR__AMQP_DATA_HEAD_MAX];
        struct weir__bytes some[4];
        uint32_t passed;
        int rc;

        for (uint64_t flips = random_below(&seed, 3); b.len && flips; flips--)
            ((uint8_t *)(uintptr_t)b.at)[random_below(&seed, b.len)] = (uint8_t)next_random(&seed);
        rc = weir__amqp_message_scan(&m, b, WEIR__AMQP_DEEP, NULL);
        assert_int_equal(weir__amqp_message_check(b, &annotations, NULL), rc);
        good += rc == 0;
        if (rc == 0 && m.section[WEIR__AMQP_MESSAGE_ANNOTATIONS].end)
            assert_ptr_equal(annotations.at,
                             b.at + m.section[WEIR__AMQP_MESSAGE_ANNOTATIONS].value);
        else
            assert_null(annotations.at);

        weir__buf_init(&batch, 4096);
        put_event(&batch, GOLDEN_EVENT_2);
        assert_true(weir__buf_add(&batch, head, weir__amqp_data_head(head, (uint32_t)b.len)));
        assert_true(weir__buf_add(&batch, b.at, b.len));
        put_event(&batch, GOLDEN_EVENT_1);
        assert_int_equal(weir__amqp_batch_start(&walk, weir__buf_bytes(&batch), NULL), 0);
        passed = weir__amqp_batch_pass(&walk);
        assert_true(passed == 1 || (passed == 3 && rc == 0));
        assert_int_equal(walk.envelope.body_count, passed);
        assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), 0);
        if (passed == 1)
            assert_bytes(event, b);
        else
            assert_null(event.at);

        assert_int_equal(weir__amqp_batch_start(&walk, weir__buf_bytes(&batch), NULL), 0);
        assert_int_equal(weir__amqp_batch_some(&walk, some, 2), 2);
        assert_bytes(some[1], b);
        assert_int_equal(walk.envelope.body_count, 2);
        assert_int_equal(weir__amqp_batch_some(&walk, some, 4), 1);
        assert_int_equal(weir__amqp_batch_some(&walk, some, 4), 0);
        assert_int_equal(weir__amqp_batch_next(&walk, &event, NULL), 0);
        assert_null(event.at);
        weir__buf_fini(&batch);
        sample_free(whole);
        sample_free(b);
    }
    assert_in_range(good, 10000, 30000);
}

static void wrong_types_are_not_written(void **state)
{
    struct weir__amqp_properties p = {0};
    struct weir__amqp_pair pair = {weir__bytes_of("k", 1), {.type = WEIR__AMQP_LIST}};
    struct weir__amqp_content content = {.properties = &p};
    struct weir__amqp_writer w;
    struct weir_error err;
    uint8_t room[64];
    char name[65];

    (void)state;
    p.content_type = weir__amqp_bytes(WEIR__AMQP_STRING, "text/plain", 10);
    weir__amqp_writer_init(&w, room, sizeof room);
    assert_int_equal(weir__amqp_message_write(&w, &content, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "property content-type must not be a string");

    content = (struct weir__amqp_content){.application_properties = &pair,
                                          .application_property_count = 1};
    weir__amqp_writer_init(&w, room, sizeof room);
    assert_int_equal(weir__amqp_message_write(&w, &content, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "application property 'k' must not be a list");
    content.properties = &(struct weir__amqp_properties){0};
    weir__amqp_writer_init(&w, room, sizeof room);
    assert_int_equal(weir__amqp_message_write(&w, &content, &err), WEIR_EINVAL);
    memset(name, 'n', sizeof name);
    for (size_t len = 63; len <= sizeof name; len++) { /* 64 of them are said */
        char text[128];
        snprintf(text, sizeof text, "application property '%.*s' must not be a list",
                 len < 64 ? (int)len : 64, name);
        pair.name = weir__bytes_of(name, len);
        weir__amqp_writer_init(&w, room, sizeof room);
        assert_int_equal(weir__amqp_message_write(&w, &content, &err), WEIR_EINVAL);
        assert_string_equal(err.text, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_event),
        cmocka_unit_test(golden_batch),
        cmocka_unit_test(batches),
        cmocka_unit_test(bodies),
        cmocka_unit_test(broken_messages),
        cmocka_unit_test(broken_inside),
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(random_messages_round_trip),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(the_quick_check_agrees),
        cmocka_unit_test(wrong_types_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
