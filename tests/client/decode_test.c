/* Messages as other clients write them, byte by byte. */
#include "client/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir__arena arena;
static struct weir_event got;

static int open_arena(void **state)
{
    (void)state;
    weir__arena_init(&arena, 1 << 20);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    weir__arena_fini(&arena);
    return 0;
}

static int decode(const char *bytes, size_t len)
{
    struct weir__event e = {.message = weir__bytes_of(bytes, len), .sequence = 7, .offset = 9};

    return weir__decode_events(&e, 1, 3, &arena, &got, NULL) == 1 ? 0 : WEIR_ENOMEM;
}

#define DECODE(bytes) assert_int_equal(decode(bytes, sizeof bytes - 1), 0)

static void assert_text(struct weir_bytes b, const char *text)
{
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.at, text, b.len);
}

static void a_body_in_parts_is_joined(void **state)
{
    (void)state;
    DECODE("\x00\x53\x75\xa0\x02"
           "ab"
           "\x00\x53\x75\xa0\x00"
           "\x00\x53\x75\xb0\x00\x00\x00\x03"
           "cde");
    assert_int_equal(got.body_type, WEIR_BODY_DATA);
    assert_text(got.body, "abcde");
    assert_int_equal(got.partition, 3);
    assert_int_equal(got.sequence, 7);
}

static void a_value_and_a_sequence_stay_encoded(void **state)
{
    (void)state;
    DECODE("\x00\x53\x77\xa1\x02hi");
    assert_int_equal(got.body_type, WEIR_BODY_VALUE);
    assert_text(got.body, "\xa1\x02hi");
    DECODE("\x00\x53\x76\xc0\x02\x01\x41\x00\x53\x76\x45");
    assert_int_equal(got.body_type, WEIR_BODY_SEQUENCE);
    assert_int_equal(got.body.len, 11);
}

static void no_body_is_an_empty_one(void **state)
{
    (void)state;
    DECODE("\x00\x53\x73\x45");
    assert_int_equal(got.body_type, WEIR_BODY_DATA);
    assert_int_equal(got.body.len, 0);
    assert_non_null(got.system);
    DECODE("\x00\x53\x75\x40"); /* as the JavaScript client writes null */
    assert_int_equal(got.body_type, WEIR_BODY_DATA);
    assert_int_equal(got.body.len, 0);
    DECODE("\x00\x53\x75\x40\x00\x53\x75\xa0\x01z");
    assert_text(got.body, "z");
}

static void narrow_types_are_widened(void **state)
{
    static const char message[] = "\x00\x53\x74\xd1\x00\x00\x00\x34\x00\x00\x00\x10"
                                  "\xa1\x01z\x40"         /* null */
                                  "\xa1\x01u\x50\xff"     /* ubyte */
                                  "\xa1\x01s\x61\xff\xfe" /* short */
                                  "\xa1\x01i\x54\xfd"     /* smallint */
                                  "\xa3\x01y\xa3\x03sym"  /* symbol under a symbol */
                                  "\xa1\x01"
                                  "f\x72\x3f\x80\0\0" /* float */
                                  "\xa1\x01t\x42"     /* false */
                                  "\xa1\x01"
                                  "d\x74\0\0\0\1"; /* decimal32 */

    (void)state;
    DECODE(message);
    assert_int_equal(got.property_count, 8);
    assert_int_equal(got.properties[0].value.type, WEIR_NULL);
    assert_int_equal(got.properties[1].value.type, WEIR_UINT);
    assert_int_equal(got.properties[1].value.natural, 255);
    assert_int_equal(got.properties[2].value.type, WEIR_INT);
    assert_int_equal(got.properties[2].value.integer, -2);
    assert_int_equal(got.properties[3].value.integer, -3);
    assert_text(got.properties[4].name, "y");
    assert_int_equal(got.properties[4].value.type, WEIR_TEXT);
    assert_text(got.properties[4].value.bytes, "sym");
    assert_true(got.properties[5].value.real > 0.99 && got.properties[5].value.real < 1.01);
    assert_int_equal(got.properties[6].value.type, WEIR_BOOL);
    assert_false(got.properties[6].value.boolean);
    assert_int_equal(got.properties[7].value.type, WEIR_ENCODED);
    assert_int_equal(got.properties[7].value.bytes.len, 5);
}

static void a_key_in_the_message_goes_before_the_batch(void **state)
{
    static const char message[] = "\x00\x53\x72\xc1\x1c\x02\xa3\x13x-opt-partition-key\xa1\x04mine"
                                  "\x00\x53\x75\xa0\x00";
    struct weir__event e = {.message = weir__bytes_of(message, sizeof message - 1),
                            .key = weir__bytes_of("batch", 5)};

    (void)state;
    assert_int_equal(weir__decode_events(&e, 1, 0, &arena, &got, NULL), 1);
    assert_text(got.partition_key, "mine");
    e.message = weir__bytes_of("\x00\x53\x75\xa0\x00", 5);
    assert_int_equal(weir__decode_events(&e, 1, 0, &arena, &got, NULL), 1);
    assert_text(got.partition_key, "batch");
}

/* What lies behind a gap is for another call: the gap is told in front of it. */
static void several_are_decoded_up_to_a_gap(void **state)
{
    struct weir__event e[4];
    struct weir_event out[4];

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        e[i] = (struct weir__event){.message = weir__bytes_of("\x00\x53\x75\xa0\x00", 5),
                                    .sequence = i < 3 ? 7 + i : 11};
    assert_int_equal(weir__decode_events(e, 2, 0, &arena, out, NULL), 2);
    assert_int_equal(weir__decode_events(e, 4, 0, &arena, out, NULL), 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(out[i].sequence, 7 + i);
    assert_int_equal(weir__decode_events(e + 3, 1, 0, &arena, out, NULL), 1);
    assert_int_equal(out[0].sequence, 11);
}

static void what_is_malformed_is_given_whole(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"\x00\x53\x75\xa0\x05x", 6},                                      /* ends too early */
        {"\x00\x53\x74\xc1\x04\x02\x54\x01\x41\x00\x53\x75\xa0\x00", 14},  /* a number as a name */
        {"\x00\x53\x74\xc1\x05\x04\xa1\x01x\x41\x00\x53\x75\xa0\x00", 15}, /* a pair is missing */
        {"\x00\x53\x73\xc0\x03\x01\x54\x01\x00\x53\x75\xa0\x00", 13}, /* message-id is an int */
        {"garbage", 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(decode(bad[i].bytes, bad[i].len), 0);
        assert_int_equal(got.body_type, WEIR_BODY_UNREADABLE);
        assert_int_equal(got.body.len, bad[i].len);
        assert_int_equal(got.property_count, 0);
        assert_null(got.system);
        assert_int_equal(got.sequence, 7);
    }
}

static void the_arena_has_an_end(void **state)
{
    struct weir__arena small;

    (void)state;
    weir__arena_init(&small, 10000);
    for (int round = 0; round < 3; round++) { /* what was taken back is given again */
        char *a = weir__arena_take(&small, 5000), *b = weir__arena_take(&small, 1);
        assert_non_null(a);
        assert_non_null(b);
        assert_true((uintptr_t)b % 16 == 0);
        memset(a, 1, 5000);
        assert_null(weir__arena_take(&small, 9000));
        assert_null(weir__arena_take(&small, SIZE_MAX));
        weir__arena_reset(&small);
    }
    weir__arena_fini(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_body_in_parts_is_joined, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(a_value_and_a_sequence_stay_encoded, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(no_body_is_an_empty_one, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(narrow_types_are_widened, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(a_key_in_the_message_goes_before_the_batch, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(several_are_decoded_up_to_a_gap, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(what_is_malformed_is_given_whole, open_arena, close_arena),
        cmocka_unit_test(the_arena_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
