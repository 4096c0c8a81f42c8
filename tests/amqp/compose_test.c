#include "amqp/message.h"

#include <inttypes.h>
#include <stdio.h>

#include "sample.h"

#define OFFSET "1000000000012345"
#define OWN                                                                                        \
    "a3 1b 'x-opt-sequence-number-epoch' 54 ff "                                                   \
    "a3 15 'x-opt-sequence-number' 81 0000000000000029 "                                           \
    "a3 13 'x-opt-enqueued-time' 83 0000018bcfe56800 "                                             \
    "a3 0c 'x-opt-offset' a1 10 '" OFFSET "' "

static struct weir__amqp_stamp stamp(const char *key)
{
    return (struct weir__amqp_stamp){.sequence = 41,
                                     .enqueued_ms = 1700000000000,
                                     .offset = 1000000000012345,
                                     .partition_key = weir__bytes_of(key, key ? strlen(key) : 0)};
}

/* Composes into memory of exactly the bound. The caller frees. */
static int compose(struct weir__bytes stored, struct weir__amqp_stamp *st, struct weir__bytes *out,
                   struct weir_error *err)
{
    size_t room = weir__amqp_compose_bound(stored.len, st), len = 0;
    uint8_t *to = malloc(room);
    int rc;

    assert_non_null(to);
    memset(to, 0xee, room);
    rc = weir__amqp_compose(stored, st, to, room, &len, err);
    assert_true(len <= room);
    *out = weir__bytes_of(to, len);
    return rc;
}

static void check_composed(const char *stored_hex, const char *key, const char *want_hex)
{
    struct weir__bytes stored = sample_hex(stored_hex), want = sample_hex(want_hex), got;
    struct weir__amqp_stamp st = stamp(key);
    struct weir__amqp_message m;

    assert_int_equal(compose(stored, &st, &got, NULL), 0);
    assert_bytes(got, want);
    assert_int_equal(weir__amqp_message_scan(&m, got, WEIR__AMQP_DEEP, NULL), 0);
    sample_free(stored);
    sample_free(want);
    sample_free(got);
}

static void plain_event(void **state)
{
    (void)state;
    check_composed("00 53 75 a0 02 'hi'", NULL, "00 53 72 c1 7e 08 " OWN "00 53 75 a0 02 'hi'");
}

/* As the service does. */
static void header_is_dropped(void **state)
{
    (void)state;
    check_composed("00 53 70 d0 00000005 00000001 41  00 53 73 45  00 53 75 a0 00", NULL,
                   "00 53 72 c1 7e 08 " OWN "00 53 73 45  00 53 75 a0 00");
}

/* What belongs in front is found wherever it stands; the rest keeps the sender's order. */
static void sections_are_kept_in_any_order(void **state)
{
    (void)state;
    check_composed("00 53 78 c1 01 00  00 53 75 a0 01 'x'", NULL,
                   "00 53 72 c1 7e 08 " OWN "00 53 78 c1 01 00  00 53 75 a0 01 'x'");
    check_composed("00 53 75 a0 01 'x'  00 53 71 c1 05 02 a3 01 'd' 41", NULL,
                   "00 53 72 c1 7e 08 " OWN "00 53 75 a0 01 'x'  00 53 71 c1 05 02 a3 01 'd' 41");
    check_composed("00 53 75 b0 00000001 'x'  00 53 72 c1 05 02 a3 01 'a' 41  00 53 73 45", NULL,
                   "00 53 72 c1 82 0a a3 01 'a' 41 " OWN "00 53 75 b0 00000001 'x'  00 53 73 45");
    /* the first byte of the body is as large as the event without its beginning */
    check_composed("00 53 75 a0 01 0b  00 53 72 c1 05 02 a3 01 'a' 41", NULL,
                   "00 53 72 c1 82 0a a3 01 'a' 41 " OWN "00 53 75 a0 01 0b");
    check_composed("00 53 73 45  00 53 77 40  00 53 70 45  00 53 72 c1 05 02 a3 01 'a' 41", NULL,
                   "00 53 72 c1 82 0a a3 01 'a' 41 " OWN "00 53 73 45  00 53 77 40");
}

/* However long the body in front of them is. */
static void annotations_behind_a_body_are_found(void **state)
{
    static const uint8_t behind[] = {0x00, 0x53, 0x72, 0xc1, 0x05, 0x02, 0xa3, 0x01, 'a', 0x41};
    static const uint8_t front[] = {0x00, 0x53, 0x72, 0xc1, 0x82, 0x0a, 0xa3, 0x01, 'a', 0x41};

    (void)state;
    for (unsigned len = 0; len < 256; len++) {
        uint8_t stored[5 + 255 + sizeof behind] = {0x00, 0x53, 0x75, 0xa0, (uint8_t)len};
        struct weir__amqp_stamp st = stamp(NULL);
        struct weir__bytes got;

        memset(stored + 5, 'x', len);
        memcpy(stored + 5 + len, behind, sizeof behind);
        assert_int_equal(compose(weir__bytes_of(stored, 5 + len + sizeof behind), &st, &got, NULL),
                         0);
        assert_memory_equal(got.at, front, sizeof front);
        assert_memory_equal(got.at + got.len - 5 - len, stored, 5 + len);
        sample_free(got);
    }
}

static void event_without_body(void **state)
{
    (void)state;
    check_composed("00 53 70 45", NULL, "00 53 72 c1 7e 08 " OWN);
}

static void senders_annotations_are_kept(void **state)
{
    (void)state;
    check_composed("00 53 72 d1 0000000b 00000004 a3 01 'a' 41 53 05 40  00 53 77 40", NULL,
                   "00 53 72 c1 85 0c a3 01 'a' 41 53 05 40 " OWN "00 53 77 40");
}

/* Names that are nearly the hub's are not. */
static void similar_names_are_kept(void **state)
{
    (void)state;
    check_composed("00 53 72 c1 12 02 a3 0c 'x-opt-offseT' a1 01 '0'  00 53 75 a0 00", NULL,
                   "00 53 72 c1 8f 0a a3 0c 'x-opt-offseT' a1 01 '0' " OWN "00 53 75 a0 00");
    check_composed("00 53 72 c1 13 02 a3 0d 'x-opt-offsets' a1 01 '0'  00 53 75 a0 00", NULL,
                   "00 53 72 c1 90 0a a3 0d 'x-opt-offsets' a1 01 '0' " OWN "00 53 75 a0 00");
    check_composed("00 53 72 c1 19 02 a3 13 'x-opt-enqueued-timE' a1 01 '0'  00 53 75 a0 00", NULL,
                   "00 53 72 c1 96 0a a3 13 'x-opt-enqueued-timE' a1 01 '0' " OWN "00 53 75 a0 00");
    check_composed("00 53 72 c1 1b 02 a3 15 'x-opt-sequence-numbeR' a1 01 '0'  00 53 75 a0 00",
                   NULL,
                   "00 53 72 c1 98 0a a3 15 'x-opt-sequence-numbeR' a1 01 '0' " OWN
                   "00 53 75 a0 00");
    check_composed("00 53 72 c1 19 02 a3 13 'x-opt-partition-keY' a1 01 '0'  00 53 75 a0 00", "pk",
                   "00 53 72 c1 af 0c a3 13 'x-opt-partition-keY' a1 01 '0' " OWN
                   "a3 13 'x-opt-partition-key' a1 02 'pk' 00 53 75 a0 00");
}

static void senders_claims_are_dropped(void **state)
{
    (void)state;
    check_composed("00 53 72 c1 4b 0a a3 15 'x-opt-sequence-number' 55 07  a3 01 'a' 41 "
                   "b3 0000000c 'x-opt-offset' a1 01 '0'  a3 13 'x-opt-enqueued-time' 40 "
                   "53 05 40  00 53 75 a0 00",
                   NULL, "00 53 72 c1 85 0c a3 01 'a' 41 53 05 40 " OWN "00 53 75 a0 00");
    check_composed("00 53 72 c1 20 02 a3 1b 'x-opt-sequence-number-epoch' 54 05  00 53 75 a0 00",
                   NULL, "00 53 72 c1 7e 08 " OWN "00 53 75 a0 00");
    check_composed("00 53 72 c1 12 02 a1 0c 'x-opt-offset' a1 01 '0'  00 53 75 a0 00", NULL,
                   "00 53 72 c1 7e 08 " OWN "00 53 75 a0 00"); /* a string, which it may be */
    check_composed("00 53 72 c1 12 02 a0 0c 'x-opt-offset' a1 01 '0'  00 53 75 a0 00", NULL,
                   "00 53 72 c1 8f 0a a0 0c 'x-opt-offset' a1 01 '0' " OWN
                   "00 53 75 a0 00"); /* bytes are no name */
}

static void key_is_added_once(void **state)
{
    (void)state;
    check_composed("00 53 75 a0 00", "pk",
                   "00 53 72 c1 97 0a " OWN
                   "a3 13 'x-opt-partition-key' a1 02 'pk' 00 53 75 a0 00");
    check_composed("00 53 75 a0 00", "",
                   "00 53 72 c1 95 0a " OWN "a3 13 'x-opt-partition-key' a1 00 00 53 75 a0 00");
    check_composed("00 53 72 c1 1a 02 a3 13 'x-opt-partition-key' a1 02 'me' 00 53 75 a0 00", "pk",
                   "00 53 72 c1 97 0a a3 13 'x-opt-partition-key' a1 02 'me' " OWN
                   "00 53 75 a0 00");
}

/* proton-j, in Azure's Java client, takes what it finds out of order for the body. */
static void delivery_annotations_stand_first(void **state)
{
    (void)state;
    check_composed("00 53 71 c1 05 02 a3 01 'd' 41  00 53 72 c1 05 02 a3 01 'a' 41  00 53 73 45",
                   NULL,
                   "00 53 71 c1 05 02 a3 01 'd' 41  00 53 72 c1 82 0a a3 01 'a' 41 " OWN
                   "00 53 73 45");
    check_composed("00 53 72 c1 01 00  00 53 71 c1 05 02 a3 01 'd' 41  00 53 75 a0 00", NULL,
                   "00 53 71 c1 05 02 a3 01 'd' 41  00 53 72 c1 7e 08 " OWN "00 53 75 a0 00");
    check_composed("00 53 71 c1 05 02 a3 01 'd' 41", NULL,
                   "00 53 71 c1 05 02 a3 01 'd' 41  00 53 72 c1 7e 08 " OWN);
}

/* The sender's delivery annotations stay; with the hub's they are one section. */
static void delivery_annotations_are_merged(void **state)
{
    struct weir__bytes stored =
        sample_hex("00 53 70 45 00 53 71 c1 05 02 a3 01 'x' 40 00 53 77 40");
    struct weir__bytes plain = sample_hex("00 53 77 40"), got, want;
    struct weir__bytes data = sample_hex("00 53 75 a0 00");
    struct weir__bytes ours = sample_hex("00 53 71 c1 05 02 a3 01 'y' 41");
    struct weir__amqp_stamp st = stamp(NULL);

    (void)state;
    check_composed("00 53 70 45 00 53 71 c1 05 02 a3 01 'x' 40 00 53 77 40", NULL,
                   "00 53 71 c1 05 02 a3 01 'x' 40 00 53 72 c1 7e 08 " OWN "00 53 77 40");
    st.delivery_annotations = ours;
    assert_int_equal(compose(stored, &st, &got, NULL), 0);
    want = sample_hex("00 53 71 d1 0000000c 00000004 a3 01 'x' 40 a3 01 'y' 41 "
                      "00 53 72 c1 7e 08 " OWN "00 53 77 40");
    assert_bytes(got, want);
    sample_free(got);
    sample_free(want);
    assert_int_equal(compose(plain, &st, &got, NULL), 0);
    want = sample_hex("00 53 71 c1 05 02 a3 01 'y' 41 00 53 72 c1 7e 08 " OWN "00 53 77 40");
    assert_bytes(got, want);
    sample_free(got);
    sample_free(want);
    assert_int_equal(compose(data, &st, &got, NULL), 0);
    want = sample_hex("00 53 71 c1 05 02 a3 01 'y' 41 00 53 72 c1 7e 08 " OWN "00 53 75 a0 00");
    assert_bytes(got, want);
    sample_free(data);
    sample_free(plain);
    sample_free(stored);
    sample_free(ours);
    sample_free(got);
    sample_free(want);
}

/* Where the map no longer fits a map8, for keys of every length around it. */
static void map_grows(void **state)
{
    char key[400];

    (void)state;
    memset(key, 'k', sizeof key);
    for (size_t len = 0; len < sizeof key; len++) {
        struct weir__bytes stored = sample_hex("00 53 75 a0 02 'hi'"), got;
        struct weir__amqp_stamp st = stamp(NULL);
        struct weir__amqp_message m;
        struct weir__amqp_value map, v;

        st.partition_key = weir__bytes_of(key, len);
        assert_int_equal(compose(stored, &st, &got, NULL), 0);
        assert_int_equal(weir__amqp_message_scan(&m, got, WEIR__AMQP_DEEP, NULL), 0);
        map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
        assert_int_equal(map.count, 10);
        assert_true(weir__amqp_map_find(&map, "x-opt-partition-key", &v));
        assert_bytes(v.bytes, st.partition_key);
        assert_true(weir__amqp_map_find(&map, "x-opt-sequence-number", &v));
        assert_true(v.type == WEIR__AMQP_LONG && v.i == 41);
        assert_true(weir__amqp_map_find(&map, "x-opt-enqueued-time", &v));
        assert_true(v.type == WEIR__AMQP_TIMESTAMP && v.i == 1700000000000);
        assert_true(weir__amqp_map_find(&map, "x-opt-offset", &v));
        assert_int_equal(v.type, WEIR__AMQP_STRING);
        assert_bytes(v.bytes, weir__bytes_of(OFFSET, 16));
        assert_bytes(m.data, weir__bytes_of("hi", 2));
        sample_free(stored);
        sample_free(got);
    }
}

/* Offsets of every length, on both ways through: with a key and without. */
static void offsets_are_decimal(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (unsigned run = 0; run < 20000; run++) {
        struct weir__bytes stored = sample_hex("00 53 77 40"), got;
        struct weir__amqp_stamp st = stamp(run % 2 ? "k" : NULL);
        struct weir__amqp_message m;
        struct weir__amqp_value map, v;
        char want[32];

        st.offset = run < 10000 ? random_below(&seed, UINT64_MAX) >> run % 64
                                : 1000000000000000u + random_below(&seed, 9000000000000000);
        if (run < 20) st.offset = run < 2 ? 0 : run < 4 ? UINT64_MAX : 999999999999990u + run;
        if (run >= 20 && run < 30) st.offset = 9999999999999975 + run;
        snprintf(want, sizeof want, "%" PRIu64, st.offset);
        assert_int_equal(compose(stored, &st, &got, NULL), 0);
        assert_int_equal(weir__amqp_message_scan(&m, got, WEIR__AMQP_DEEP, NULL), 0);
        map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
        assert_int_equal(map.count, run % 2 ? 10 : 8);
        assert_true(weir__amqp_map_find(&map, "x-opt-offset", &v));
        assert_bytes(v.bytes, weir__bytes_of(want, strlen(want)));
        sample_free(stored);
        sample_free(got);
    }
}

/* One stamp for a stream: steps of one, across every nine, and leaps. */
static void a_stamp_is_kept(void **state)
{
    struct weir__bytes stored = sample_hex("00 53 77 40"), got;
    struct weir__amqp_stamp st = stamp(NULL);
    const size_t at = 6 + 125 - 16; /* of the digits */
    char want[32];

    (void)state;
    st.offset = 1999999999999000;
    for (unsigned i = 0; i < 3000; i++) {
        st.offset += i % 100 == 99 ? i : i % 50 != 49;
        snprintf(want, sizeof want, "%" PRIu64, st.offset);
        assert_int_equal(compose(stored, &st, &got, NULL), 0);
        assert_memory_equal(got.at + at, want, 16);
        sample_free(got);
    }
    sample_free(stored);
}

static void failures(void **state)
{
    static const struct {
        const char *hex, *text;
    } rows[] = {
        {"", "a message without a section"},
        {"40", "message section ?, byte 0: found a null, but a section must begin with 00"},
        {"00 53 72 c1 05 02 a3 01 'k' 46 00 53 77 40",
         "message-annotations, byte 3: an unknown constructor"},
        {"00 53 72 c1 06 02 a3 01 'k' 40 40 00 53 77 40",
         "message-annotations, byte 4: bytes after the last item"},
        {"00 53 75 a0 02 'x'", "message section data, byte 5: ends too early"},
        {"00 53 75 a0 01 'xy'",
         "message section ?, byte 6: found a byte of no meaning, but a section must begin with 00"},
        {"00 53 75 b0 00000002 'x'", "message section data, byte 8: ends too early"},
        {"00 53 75 b0 00000001 'xy'",
         "message section ?, byte 9: found a byte of no meaning, but a section must begin with 00"},
        {"00 53 72 c1 01 00 00 53 70 45 00 53 72 c1 01 00",
         "message section message-annotations, byte 10: it comes twice"},
    };
    struct weir__bytes stored = sample_hex("00 53 77 40"), got;
    struct weir__amqp_stamp st = stamp(NULL);
    struct weir_error err;
    uint8_t room[256];
    size_t len, bound = weir__amqp_compose_bound(stored.len, &st);

    (void)state;
    assert_int_equal(weir__amqp_compose(stored, &st, room, bound - 1, &len, &err), WEIR_ETOOBIG);
    assert_int_equal(weir__amqp_compose(stored, &st, room, bound, &len, &err), 0);
    sample_free(stored);

    st = stamp(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stored = sample_hex(rows[i].hex);
        assert_int_equal(compose(stored, &st, &got, &err), WEIR_EINVAL);
        assert_string_equal(err.text, rows[i].text);
        sample_free(stored);
        sample_free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_event),
        cmocka_unit_test(header_is_dropped),
        cmocka_unit_test(sections_are_kept_in_any_order),
        cmocka_unit_test(annotations_behind_a_body_are_found),
        cmocka_unit_test(event_without_body),
        cmocka_unit_test(senders_annotations_are_kept),
        cmocka_unit_test(similar_names_are_kept),
        cmocka_unit_test(senders_claims_are_dropped),
        cmocka_unit_test(key_is_added_once),
        cmocka_unit_test(delivery_annotations_stand_first),
        cmocka_unit_test(delivery_annotations_are_merged),
        cmocka_unit_test(map_grows),
        cmocka_unit_test(offsets_are_decimal),
        cmocka_unit_test(a_stamp_is_kept),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
