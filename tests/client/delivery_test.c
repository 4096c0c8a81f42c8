/* Messages as a hub delivers them: decoding finds what a walk over the annotations finds, whatever
 * the bytes are, and reads none that are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "amqp/message.h"
#include "client/annotations.h"
#include "client/decode.h"

#define MESSAGE_BYTES 512
#define OFFSET 1234567890123456u

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

static void decode(const void *at, size_t len)
{
    assert_int_equal(weir__decode_delivery(weir__bytes_of(at, len), 3, &arena, &got, NULL), 0);
}

static void assert_text(struct weir_bytes b, const char *text)
{
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.at, text, b.len);
}

/* A message as our own hub delivers it. */
static size_t compose(uint8_t to[MESSAGE_BYTES], const char *stored, size_t len, const char *key,
                      uint64_t offset)
{
    struct weir__amqp_stamp stamp = {.sequence = 77,
                                     .enqueued_ms = 1700000000123,
                                     .offset = offset};
    size_t bytes;

    if (key) stamp.partition_key = weir__bytes_of(key, strlen(key));
    assert_int_equal(weir__amqp_compose(weir__bytes_of(stored, len), &stamp, to, MESSAGE_BYTES,
                                        &bytes, NULL),
                     0);
    return bytes;
}

static void assert_place(uint64_t offset)
{
    assert_int_equal(got.partition, 3);
    assert_int_equal(got.sequence, 77);
    assert_int_equal(got.offset, offset);
    assert_int_equal(got.enqueued_time_ms, 1700000000123);
}

#define DATA "\x00\x53\x75\xa0\x05hello"
#define LONG_DATA "\x00\x53\x75\xb0\x00\x00\x00\x05hello"
#define KEYED "\x00\x53\x72\xc1\x1c\x02\xa3\x13x-opt-partition-key\xa1\x04mine" DATA
#define PROPERTY "\x00\x53\x74\xc1\x07\x02\xa1\x01k\xa1\x01v" DATA

static void our_own_hub(void **state)
{
    uint8_t m[MESSAGE_BYTES];

    (void)state;
    decode(m, compose(m, DATA, sizeof DATA - 1, NULL, OFFSET));
    assert_place(OFFSET);
    assert_text(got.body, "hello");
    assert_null(got.partition_key.at);
    decode(m, compose(m, LONG_DATA, sizeof LONG_DATA - 1, NULL, 42));
    assert_place(42);
    assert_text(got.body, "hello");
    decode(m, compose(m, DATA, sizeof DATA - 1, "batch", OFFSET));
    assert_place(OFFSET);
    assert_text(got.partition_key, "batch");
    decode(m, compose(m, KEYED, sizeof KEYED - 1, "batch", UINT64_MAX));
    assert_place(UINT64_MAX);
    assert_text(got.partition_key, "mine");
    assert_text(got.body, "hello");
}

static void what_is_between_annotations_and_body(void **state)
{
    uint8_t m[MESSAGE_BYTES];

    (void)state;
    decode(m, compose(m, PROPERTY, sizeof PROPERTY - 1, "batch", OFFSET));
    assert_place(OFFSET);
    assert_text(got.partition_key, "batch");
    assert_int_equal(got.property_count, 1);
    assert_text(got.properties[0].name, "k");
    assert_text(got.body, "hello");
}

/* Another order, small numbers, an offset that is none, and an annotation that nobody knows. */
static void another_hub(void **state)
{
    static const char m[] = "\x00\x53\x72\xc1\x54\x08"
                            "\xa3\x0cx-opt-offset\xa1\x05none!"
                            "\xa3\x15x-opt-sequence-number\x55\x09"
                            "\xa3\x01z\xc0\x02\x01\x40"
                            "\xa3\x13x-opt-enqueued-time\x83\x00\x00\x00\x00\x00\x00\x00\x07" DATA;
    static const char none[] = DATA;

    (void)state;
    assert_int_equal((uint8_t)m[4] + 5 + sizeof DATA - 1, sizeof m - 1);
    decode(m, sizeof m - 1);
    assert_int_equal(got.sequence, 9);
    assert_int_equal(got.offset, 0);
    assert_int_equal(got.enqueued_time_ms, 7);
    assert_text(got.body, "hello");
    decode(none, sizeof none - 1);
    assert_int_equal(got.sequence, 0);
    assert_text(got.body, "hello");
}

/* ---- whatever the bytes are ---- */

static uint64_t slow_decimal(struct weir__bytes text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(text.at[i] - '0');
    return n;
}

static bool is_named(const struct weir__amqp_value *v, const char *name)
{
    return v->bytes.len == strlen(name) && !memcmp(v->bytes.at, name, v->bytes.len);
}

static void walk(struct weir__bytes message, struct weir__annotations *a)
{
    struct weir__amqp_value map, name, value;
    struct weir__amqp_cursor rest;
    struct weir__amqp_items items;
    struct weir__amqp_message m;

    if (weir__amqp_message_scan_until(&m, message, WEIR__AMQP_PROPERTIES, &rest, NULL) != 0) return;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    weir__amqp_items_init(&items, &map);
    while (weir__amqp_items_pair(&items, &name, &value)) {
        if (is_named(&name, "x-opt-sequence-number")) a->sequence = (uint64_t)value.i;
        if (is_named(&name, "x-opt-enqueued-time")) a->time_ms = value.i;
        if (is_named(&name, "x-opt-offset")) a->offset = slow_decimal(value.bytes);
        if (is_named(&name, "x-opt-partition-key") && value.type == WEIR__AMQP_STRING && !a->key.at)
            a->key = value.bytes;
    }
}

/* In memory of just its size, so that a sanitizer sees what is read beyond it. */
static void compare(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    struct weir__annotations want = {.has_sequence = false};
    struct weir__amqp_message m;
    struct weir__bytes raw = weir__bytes_of(copy, len);
    bool readable;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    walk(raw, &want);
    readable = weir__amqp_message_scan(&m, raw, WEIR__AMQP_SHALLOW, NULL) == 0;
    decode(copy, len);
    assert_true(got.sequence == want.sequence && got.offset == want.offset &&
                got.enqueued_time_ms == want.time_ms);
    assert_true(readable || got.body_type == WEIR_BODY_UNREADABLE);
    if (got.body_type != WEIR_BODY_UNREADABLE) {
        assert_true(readable);
        assert_true(got.partition_key.at == (const char *)want.key.at);
        assert_true(got.partition_key.len == want.key.len);
        if (m.body_count == 1 && m.body == WEIR__AMQP_BODY_DATA)
            assert_true(got.body.at == (const char *)m.data.at && got.body.len == m.data.len);
    } else {
        assert_true(got.body.at == (const char *)copy && got.body.len == len);
    }
    weir__arena_reset(&arena);
    free(copy);
}

static void compare_all(uint8_t *m, size_t len)
{
    for (size_t end = 0; end <= len; end++) compare(m, end);
    for (size_t i = 0; i < len; i++) {
        uint8_t kept = m[i];
        for (unsigned b = 0; b < 256; b++) {
            m[i] = (uint8_t)b;
            compare(m, len);
        }
        m[i] = kept;
    }
}

static void every_byte_may_be_another(void **state)
{
    uint8_t m[MESSAGE_BYTES];

    (void)state;
    compare_all(m, compose(m, DATA, sizeof DATA - 1, NULL, OFFSET));
    compare_all(m, compose(m, KEYED, sizeof KEYED - 1, NULL, OFFSET));
    compare_all(m, compose(m, LONG_DATA, sizeof LONG_DATA - 1, "key", 42));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(our_own_hub, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(what_is_between_annotations_and_body, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(another_hub, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(every_byte_may_be_another, open_arena, close_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
