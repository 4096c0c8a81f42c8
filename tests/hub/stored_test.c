/* The head of a stored batch on a wire: what is written is read again, and nothing else passes. */
#include "hub/stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"

#define BODY "\x00\x53\x75\xa0\x01x\x00\x53\x75\xa0\x01y\x00\x53\x75\xa0\x01z"
#define BODY_BYTES (sizeof BODY - 1)
#define FACTS_HEAD_BYTES (WEIR__STORED_HEAD_BYTES + WEIR__STORED_FACTS_BYTES)

static uint8_t payload[FACTS_HEAD_BYTES + BODY_BYTES];
static size_t payload_len;
static struct weir_error err;

static const struct weir__stored_facts facts = {.last_sequence = 9000,
                                                .last_offset = 70000,
                                                .last_time_ms = 1700000000123,
                                                .known_ms = 1700000000456};

static struct weir__log_view view_of_body(void)
{
    return (struct weir__log_view){.offset = 65536,
                                   .sequence = 41,
                                   .time_ms = 1234,
                                   .count = 3,
                                   .skip = 1,
                                   .attrs = 1,
                                   .body_crc = weir__crc32c(0, BODY, BODY_BYTES),
                                   .body = weir__bytes_of(BODY, BODY_BYTES)};
}

static void write_payload(const struct weir__stored_facts *f)
{
    struct weir__log_view view = view_of_body();
    size_t head = weir__stored_head(payload, &view, f);

    assert_int_equal(head, f ? FACTS_HEAD_BYTES : WEIR__STORED_HEAD_BYTES);
    memcpy(payload + head, BODY, BODY_BYTES);
    payload_len = head + BODY_BYTES;
}

static int check(void)
{
    return weir__stored_check(weir__bytes_of(payload, payload_len), &err);
}

/* The checksum of the head is right again. */
static void seal(void)
{
    weir__store32(payload, weir__crc32c(0, payload + 4, weir__load16(payload + 4) - 4u));
}

static void what_is_written_is_read(void **state)
{
    struct weir__stored_facts got;
    struct weir__log_view view;

    (void)state;
    for (int i = 0; i < 2; i++) {
        write_payload(i ? &facts : NULL);
        assert_int_equal(check(), 0);
        weir__stored_view(weir__bytes_of(payload, payload_len), &view);
        assert_int_equal(view.sequence, 41);
        assert_int_equal(view.offset, 65536);
        assert_int_equal(view.time_ms, 1234);
        assert_int_equal(view.count, 3);
        assert_int_equal(view.skip, 1);
        assert_int_equal(view.attrs, 1);
        assert_int_equal(view.body_crc, weir__crc32c(0, BODY, BODY_BYTES));
        assert_int_equal(view.body.len, BODY_BYTES);
        assert_memory_equal(view.body.at, BODY, BODY_BYTES);
        got = weir__stored_facts(weir__bytes_of(payload, payload_len));
        assert_int_equal(got.known_ms, i ? facts.known_ms : 0);
        assert_int_equal(got.last_sequence, i ? facts.last_sequence : 0);
        assert_int_equal(got.last_offset, i ? facts.last_offset : 0);
        assert_int_equal(got.last_time_ms, i ? facts.last_time_ms : 0);
    }
}

/* The bytes are what other programs read: docs/decisions/0010 draws them. */
static void the_layout_stays(void **state)
{
    static const uint8_t expected[] = {
        48,   0, 1, 0,               /* after the checksum: head, attributes */
        0,    0, 0, 0, 18, 0, 0, 0,  /* the body's checksum is set below; its bytes */
        3,    0, 0, 0, 1,  0, 0, 0,  /* events, not asked for */
        41,   0, 0, 0, 0,  0, 0, 0,  /* sequence number */
        0,    0, 1, 0, 0,  0, 0, 0,  /* offset */
        0xd2, 4, 0, 0, 0,  0, 0, 0}; /* time */

    (void)state;
    write_payload(NULL);
    assert_int_equal(weir__load32(payload + 8), weir__crc32c(0, BODY, BODY_BYTES));
    weir__store32(payload + 8, 0);
    assert_memory_equal(payload + 4, expected, sizeof expected);
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        write_payload(i ? &facts : NULL);
        for (size_t bit = 0; bit < payload_len * 8; bit++) {
            payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(check(), WEIR_ECORRUPT);
            payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_int_equal(check(), 0);
    }
}

static void a_shorter_one_is_found(void **state)
{
    (void)state;
    write_payload(&facts);
    for (size_t len = payload_len; len-- > 0;) {
        uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees who reads on */
        assert_non_null(exact);
        memcpy(exact, payload, len);
        assert_int_equal(weir__stored_check(weir__bytes_of(exact, len), &err), WEIR_ECORRUPT);
        free(exact);
    }
}

static void set32(size_t at, uint32_t v, int expected)
{
    write_payload(NULL);
    weir__store32(payload + at, v);
    seal();
    assert_int_equal(check(), expected);
}

static void set64(size_t at, uint64_t v, int expected)
{
    write_payload(NULL);
    weir__store64(payload + at, v);
    seal();
    assert_int_equal(check(), expected);
}

/* With a checksum that is right. */
static void contradictions_are_found(void **state)
{
    (void)state;
    set32(12, BODY_BYTES - 1, WEIR_ECORRUPT);
    set32(12, BODY_BYTES + 1, WEIR_ECORRUPT);
    set32(16, 0, WEIR_ECORRUPT);
    set32(16, BODY_BYTES / 5 + 1, WEIR_ECORRUPT); /* more than there can be */
    set32(16, UINT32_MAX, WEIR_ECORRUPT);
    set32(20, 3, WEIR_ECORRUPT);
    set32(20, 2, 0);
    set32(28, UINT32_MAX, WEIR_ECORRUPT); /* the high half of the sequence number */
    set32(36, UINT32_MAX, WEIR_ECORRUPT);
    set32(44, UINT32_MAX, WEIR_ECORRUPT);
    set64(24, WEIR__LOG_SEQUENCE_MAX, WEIR_ECORRUPT);
    set64(24, WEIR__LOG_SEQUENCE_MAX - 1, 0);
    set64(32, (uint64_t)INT64_MAX + 1, WEIR_ECORRUPT);
    set64(32, INT64_MAX, 0);
    set64(40, (uint64_t)INT64_MAX + 1, WEIR_ECORRUPT);
    set64(40, INT64_MAX, 0);
    write_payload(NULL);
    weir__store16(payload + 6, 2);
    seal();
    assert_int_equal(check(), WEIR_EVERSION);
}

static void assert_says(const char *text)
{
    assert_int_not_equal(check(), 0);
    assert_string_equal(err.text, text);
}

/* In this order: what stands first is not believed before what stands behind it was looked at. */
static void what_is_wrong_is_said(void **state)
{
    (void)state;
    write_payload(&facts);
    payload_len = WEIR__STORED_HEAD_BYTES - 1;
    assert_says("a stored batch ends inside its head");
    payload_len = FACTS_HEAD_BYTES - 1;
    assert_says("a stored batch ends inside its head");
    write_payload(&facts);
    payload[FACTS_HEAD_BYTES]++;
    assert_says("a stored batch has a body that fails its checksum");
    weir__store32(payload + 12, 1);
    seal();
    assert_says("a stored batch contradicts itself");
    weir__store16(payload + 6, 0x8002);
    seal();
    assert_says("a stored batch has unknown attributes 0x8002");
    payload[0]++;
    assert_says("a stored batch has a head that fails its checksum");
    payload[4]++;
    assert_says("a stored batch has a head of unknown length");
}

static void later_attributes_stay_at_home(void **state)
{
    struct weir__log_view view = view_of_body();

    (void)state;
    for (uint32_t attrs = 0; attrs <= UINT16_MAX; attrs++) {
        view.attrs = (uint16_t)attrs;
        assert_int_equal(weir__stored_can(&view), attrs <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),       cmocka_unit_test(the_layout_stays),
        cmocka_unit_test(every_flipped_bit_is_found),    cmocka_unit_test(a_shorter_one_is_found),
        cmocka_unit_test(contradictions_are_found),      cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(later_attributes_stay_at_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
