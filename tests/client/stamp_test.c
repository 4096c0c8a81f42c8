/* What a batch is on the wire, where a receiver begins, and what deliveries tell of a partition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/encode.h"
#include "client/wire.h"

static struct weir__encoder *enc;
static struct weir__batch batch;
static struct weir_error err;
static uint8_t *payload;
static size_t payload_len;

static int open_encoder(void **state)
{
    (void)state;
    return weir__encoder_new(&enc, 0, &err);
}

static int close_encoder(void **state)
{
    (void)state;
    free(payload);
    payload = NULL;
    weir__encoder_free(enc);
    return 0;
}

/* Into as much room as the bound says. */
static void stamp(const struct weir_event *events, size_t count,
                  const struct weir__log_producer *mark)
{
    size_t bound;

    assert_int_equal(weir__encoder_run(enc, events, count, true, &batch, &err), 0);
    bound = weir__wire_stamp_bound(&batch, mark);
    free(payload);
    payload = malloc(bound);
    assert_int_equal(weir__wire_stamp(&batch, mark, payload, bound, &payload_len, &err), 0);
    assert_true(payload_len <= bound);
}

static void assert_number(const struct weir__amqp_value *map, const char *name,
                          enum weir__amqp_type type, int64_t number)
{
    struct weir__amqp_value v;

    assert_true(weir__amqp_map_find(map, name, &v));
    assert_int_equal(v.type, type);
    assert_int_equal(v.i, number);
}

static void assert_key(const struct weir__amqp_value *map, struct weir_bytes key)
{
    struct weir__amqp_value v;

    if (!key.at) {
        assert_false(weir__amqp_map_find(map, "x-opt-partition-key", &v));
        return;
    }
    assert_true(weir__amqp_map_find(map, "x-opt-partition-key", &v));
    assert_int_equal(v.type, WEIR__AMQP_STRING);
    assert_int_equal(v.bytes.len, key.len);
    assert_memory_equal(v.bytes.at, key.at, key.len);
}

/* The annotations of the payload, and of each event in it: so many items. */
static void check(const struct weir_event *events, uint32_t count, struct weir_bytes common,
                  const struct weir__log_producer *mark)
{
    struct weir__amqp_batch_walk walk;
    struct weir__amqp_message m;
    struct weir__amqp_value map;
    struct weir__bytes one;

    assert_int_equal(weir__amqp_message_scan(&m, weir__bytes_of(payload, payload_len),
                                             WEIR__AMQP_DEEP, &err),
                     0);
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    assert_int_equal(map.count, common.at ? 2 : 0);
    assert_key(&map, common);
    assert_int_equal(weir__amqp_batch_start(&walk, m.raw, &err), 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(weir__amqp_batch_next(&walk, &one, &err), 0);
        assert_int_equal(weir__amqp_message_scan(&m, one, WEIR__AMQP_DEEP, &err), 0);
        map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
        assert_int_equal(map.count, (events[i].partition_key.at ? 2 : 0) + (mark ? 6 : 0));
        assert_key(&map, events[i].partition_key);
        assert_int_equal(m.data.len, events[i].body.len);
        assert_memory_equal(m.data.at, events[i].body.at, m.data.len);
        if (!mark) continue;
        assert_number(&map, "com.microsoft:producer-id", WEIR__AMQP_LONG, (int64_t)mark->id);
        assert_number(&map, "com.microsoft:producer-epoch",
                      mark->epoch > 32767 ? WEIR__AMQP_INT : WEIR__AMQP_SHORT, mark->epoch);
        assert_number(&map, "com.microsoft:producer-sequence-number", WEIR__AMQP_INT,
                      (int64_t)mark->sequence + 1 + i);
    }
    assert_int_equal(weir__amqp_batch_next(&walk, &one, &err), 0);
    assert_null(one.at);
}

#define EVENTS 3

static void keys_and_marks_are_in_each_event(void **state)
{
    static const struct weir__log_producer marks[] = {
        {.id = 1, .epoch = 0, .sequence = 0},
        {.id = INT64_MAX, .epoch = 32767, .sequence = INT32_MAX - EVENTS},
        {.id = 300, .epoch = 32768, .sequence = 70000},
        {.id = 5, .epoch = UINT16_MAX, .sequence = 7},
    };
    static char longest[512];
    struct weir_event e[EVENTS] = {{.body = weir_text("a")},
                                   {.body = weir_text("two")},
                                   {.body = weir_bytes(longest, 300)}};
    const struct weir_bytes keys[] = {{NULL, 0}, {"", 0}, {"k", 1}, {longest, 512}};

    (void)state;
    for (size_t i = 0; i < 512; i += 4) memcpy(longest + i, "\xf0\x9f\x98\x80", 4);
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < EVENTS; i++) e[i].partition_key = keys[k];
        stamp(e, EVENTS, NULL);
        check(e, EVENTS, keys[k], NULL);
        for (size_t m = 0; m < sizeof marks / sizeof marks[0]; m++) {
            stamp(e, EVENTS, &marks[m]);
            check(e, EVENTS, keys[k], &marks[m]);
        }
    }
    e[1].partition_key = weir_text("own");
    e[2].partition_key = weir_bytes(NULL, 0);
    stamp(e, EVENTS, NULL);
    check(e, EVENTS, weir_bytes(NULL, 0), NULL);
    stamp(e, EVENTS, &marks[0]);
    check(e, EVENTS, weir_bytes(NULL, 0), &marks[0]);
}

/* One byte less than it needs is refused, not written over. */
static void a_payload_needs_its_room(void **state)
{
    const struct weir__log_producer mark = {.id = 1};
    struct weir_event e = {.body = weir_text("x"), .partition_key = weir_text("k")};
    size_t len;

    (void)state;
    stamp(&e, 1, &mark);
    len = payload_len;
    assert_int_equal(weir__wire_stamp(&batch, &mark, payload, len, &payload_len, &err), 0);
    assert_int_equal(payload_len, len);
    payload_len = 77;
    assert_int_not_equal(weir__wire_stamp(&batch, &mark, payload, len - 1, &payload_len, &err), 0);
    assert_int_equal(payload_len, 77);
}

/* An event that is no message has no place for a mark. */
static void what_is_no_message_is_not_stamped(void **state)
{
    static const uint8_t broken[] = {0x00, 0x53, 0x75, 0xa0, 0x03, 0x01, 0x02, 0x03};
    const struct weir__log_producer mark = {.id = 1};
    struct weir__batch b = {.count = 1,
                            .parts = 1,
                            .body = {weir__bytes_of(broken, sizeof broken)}};
    uint8_t space[512];
    size_t len = 77;

    (void)state;
    err = (struct weir_error){0};
    assert_int_equal(weir__wire_stamp(&b, &mark, space, sizeof space, &len, &err), WEIR_EINVAL);
    assert_int_equal(err.code, WEIR_EINVAL);
    assert_int_equal(len, 77);
}

/* ---- positions ---- */

#define AT "amqp.annotation.x-opt-"

static void positions_are_selectors(void **state)
{
    static const struct {
        struct weir_position position;
        const char *selector;
    } cases[] = {
        {{.from = WEIR_FROM_EARLIEST}, AT "offset > '-1'"},
        {{.from = WEIR_FROM_EARLIEST, .after = true, .value = 5}, AT "offset > '-1'"},
        {{.from = WEIR_FROM_SEQUENCE}, AT "offset > '-1'"},
        {{.from = WEIR_FROM_SEQUENCE, .after = true}, AT "sequence-number > '0'"},
        {{.from = WEIR_FROM_SEQUENCE, .value = 1}, AT "sequence-number > '0'"},
        {{.from = WEIR_FROM_SEQUENCE, .value = INT64_MIN},
         AT "sequence-number > '-9223372036854775808'"},
        {{.from = WEIR_FROM_SEQUENCE, .after = true, .value = INT64_MAX},
         AT "sequence-number > '9223372036854775807'"},
        {{.from = WEIR_FROM_OFFSET}, AT "offset >= '0'"},
        {{.from = WEIR_FROM_OFFSET, .after = true, .value = 7}, AT "offset > '7'"},
        {{.from = WEIR_FROM_TIME, .value = 7}, AT "enqueued-time >= '7'"},
        {{.from = WEIR_FROM_TIME, .after = true, .value = -7}, AT "enqueued-time > '-7'"},
    };
    char selector[WEIR__WIRE_SELECTOR_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir__wire_selector(&cases[i].position, selector);
        assert_string_equal(selector, cases[i].selector);
    }
}

/* ---- metrics ---- */

#define NAMED(length, name) "\xa3" length name
#define LAST NAMED("\x1d", "last_enqueued_sequence_number") "\x55\x05"
#define TIME NAMED("\x16", "last_enqueued_time_utc") "\x83\0\0\0\0\0\0\0\x06"
#define KNOWN NAMED("\x1f", "runtime_info_retrieval_time_utc") "\x83\0\0\0\0\0\0\0\x07"
#define UNKNOWN NAMED("\x1f", "runtime_info_retrieval_time_utC") "\x83\0\0\0\0\0\0\0\x07"
#define OFFSET NAMED("\x14", "last_enqueued_offset")
#define BODY "\x00\x53\x75\xa0\x00"

/* A map of four pairs among the delivery annotations, read over what was there. */
static struct weir_receiver_metrics measure(const char *pairs, size_t len)
{
    struct weir_receiver_metrics got = {.last_sequence = 99, .last_offset = 98};
    uint8_t message[512] = "\x00\x53\x71\xc1";

    assert_true(len + 1 < 256);
    message[4] = (uint8_t)(len + 1);
    message[5] = 8;
    memcpy(message + 6, pairs, len);
    memcpy(message + 6 + len, BODY, sizeof BODY - 1);
    weir__wire_measure(weir__bytes_of(message, 6 + len + sizeof BODY - 1), &got);
    return got;
}

#define MEASURE(pairs) measure(pairs, sizeof(pairs) - 1)

static void metrics_come_with_deliveries(void **state)
{
    struct weir_receiver_metrics got = MEASURE(LAST TIME KNOWN OFFSET "\xa1\x04"
                                                                      "4321");

    (void)state;
    assert_int_equal(got.last_sequence, 5);
    assert_int_equal(got.last_offset, 4321);
    assert_int_equal(got.last_time_ms, 6);
    assert_int_equal(got.retrieved_ms, 7);
    got = MEASURE(LAST TIME KNOWN OFFSET "\xa1\x02-1"); /* an empty partition */
    assert_int_equal(got.last_offset, 0);
    got = MEASURE(LAST TIME KNOWN OFFSET "\xa1\x00");
    assert_int_equal(got.last_offset, 0);
    got = MEASURE(LAST TIME KNOWN OFFSET "\xa1\x17"
                                         "00000000000000000000042"); /* the longest that is read */
    assert_int_equal(got.last_offset, 42);
    got = MEASURE(LAST TIME KNOWN OFFSET "\xa1\x18"
                                         "000000000000000000000042");
    assert_int_equal(got.last_offset, 0);
    got = MEASURE(LAST TIME UNKNOWN OFFSET "\xa1\x01"
                                           "1"); /* without a time it is left */
    assert_int_equal(got.last_sequence, 99);
    assert_int_equal(got.last_offset, 98);
    got = (struct weir_receiver_metrics){.last_sequence = 97};
    weir__wire_measure(weir__bytes_of("\x00\x53", 2), &got);
    assert_int_equal(got.last_sequence, 97);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_encoder, close_encoder)
    const struct CMUnitTest tests[] = {
        TEST(keys_and_marks_are_in_each_event),
        TEST(a_payload_needs_its_room),
        cmocka_unit_test(what_is_no_message_is_not_stamped),
        cmocka_unit_test(positions_are_selectors),
        cmocka_unit_test(metrics_come_with_deliveries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
