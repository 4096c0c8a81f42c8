#include "server/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ID "com.microsoft:producer-id"
#define EPOCH "com.microsoft:producer-epoch"
#define SEQUENCE "com.microsoft:producer-sequence-number"

static struct weir__amqp_pair pair(const char *name, enum weir__amqp_type type, int64_t i)
{
    return (struct weir__amqp_pair){weir__bytes_of(name, strlen(name)), weir__amqp_signed(type, i)};
}

static struct weir__bytes event_of(const struct weir__amqp_pair *pairs, uint32_t count,
                                   struct weir__buf *buf)
{
    struct weir__amqp_content content = {.annotations = pairs,
                                         .annotation_count = count,
                                         .data = weir__bytes_of("x", 1)};
    struct weir__amqp_writer w;

    weir__buf_init(buf, 4096);
    weir__amqp_writer_append(&w, buf);
    assert_int_equal(weir__amqp_message_write(&w, &content, NULL), 0);
    assert_int_equal(weir__amqp_writer_finish(&w, NULL, NULL), 0);
    return weir__buf_bytes(buf);
}

static void of_an_event(void **state)
{
    struct weir__amqp_pair pairs[] = {pair(ID, WEIR__AMQP_LONG, 12),
                                      pair(EPOCH, WEIR__AMQP_SHORT, 3),
                                      pair(SEQUENCE, WEIR__AMQP_INT, 40)};
    struct weir__log_producer got;
    struct weir__buf buf;
    struct weir__bytes event = event_of(pairs, 3, &buf);

    (void)state;
    assert_int_equal(weir__mark_read(0, event, &got, NULL), 0);
    assert_int_equal(got.id, 12);
    assert_int_equal(got.epoch, 3);
    assert_int_equal(got.sequence, 40);
    weir__buf_fini(&buf);
}

static void of_the_first_of_a_batch(void **state)
{
    struct weir__amqp_pair pairs[] = {pair(ID, WEIR__AMQP_LONG, 12),
                                      pair(EPOCH, WEIR__AMQP_SHORT, 0),
                                      pair(SEQUENCE, WEIR__AMQP_INT, 1)};
    uint8_t head[WEIR__AMQP_DATA_HEAD_MAX];
    struct weir__log_producer got;
    struct weir__buf buf, batch;
    struct weir__bytes event = event_of(pairs, 3, &buf);

    (void)state;
    weir__buf_init(&batch, 4096);
    weir__buf_add(&batch, head, weir__amqp_data_head(head, (uint32_t)event.len));
    weir__buf_add(&batch, event.at, event.len);
    assert_int_equal(weir__mark_read(WEIR__AMQP_FORMAT_BATCH, weir__buf_bytes(&batch), &got, NULL),
                     0);
    assert_int_equal(got.id, 12);
    assert_int_equal(got.sequence, 1);
    weir__buf_fini(&buf);
    weir__buf_fini(&batch);
}

static void none_and_negative(void **state)
{
    struct weir__amqp_pair pairs[] = {pair(ID, WEIR__AMQP_LONG, 12),
                                      pair(EPOCH, WEIR__AMQP_SHORT, 3),
                                      pair(SEQUENCE, WEIR__AMQP_INT, -1)};
    struct weir__log_producer got;
    struct weir__buf buf;

    (void)state;
    assert_int_equal(weir__mark_read(0, event_of(pairs, 0, &buf), &got, NULL), 0);
    assert_int_equal(got.id, 0);
    weir__buf_fini(&buf);
    assert_int_equal(weir__mark_read(0, event_of(pairs, 2, &buf), &got, NULL), 0);
    assert_int_equal(got.id, 0);
    weir__buf_fini(&buf);
    assert_int_equal(weir__mark_read(0, event_of(pairs, 3, &buf), &got, NULL), WEIR_EINVAL);
    weir__buf_fini(&buf);
}

/* A mark is of three numbers, of any size and type; without one of them, or with 0 for the id, there
 * is none, and nothing is told. */
static void a_mark_has_three_numbers(void **state)
{
#define L WEIR__AMQP_LONG
#define TEXT                                                                                       \
    {                                                                                              \
        weir__bytes_of(EPOCH, sizeof EPOCH - 1), weir__amqp_bytes(WEIR__AMQP_STRING, "3", 1)       \
    }
    const struct {
        struct weir__amqp_pair pairs[3];
        uint64_t id; /* 0: none */
    } rows[] = {
        {{pair(ID, L, 1), pair(EPOCH, L, 3), pair(SEQUENCE, L, 7)}, 1},
        {{pair(ID, WEIR__AMQP_BYTE, 2), pair(EPOCH, WEIR__AMQP_BYTE, 3),
          pair(SEQUENCE, WEIR__AMQP_BYTE, 7)},
         2},
        {{pair(ID, L, 0), pair(EPOCH, L, 3), pair(SEQUENCE, L, 7)}, 0},
        {{pair(ID, L, 5), pair("epoch", L, 3), pair(SEQUENCE, L, 7)}, 0},
        {{pair(ID, L, 5), pair(EPOCH, L, 3), pair("sequence", L, 7)}, 0},
        {{pair("id", L, 5), pair(EPOCH, L, 3), pair(SEQUENCE, L, 7)}, 0},
        {{pair(ID, L, 5), TEXT, pair(SEQUENCE, L, 7)}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__log_producer got;
        struct weir__buf buf;
        assert_int_equal(weir__mark_read(0, event_of(rows[i].pairs, 3, &buf), &got, NULL), 0);
        assert_int_equal(got.id, rows[i].id);
        assert_int_equal(got.epoch, rows[i].id ? 3 : 0);
        assert_int_equal(got.sequence, rows[i].id ? 7 : 0);
        weir__buf_fini(&buf);
    }
}

static void of_a_batch_without_events(void **state)
{
    static const uint8_t header[] = {0x00, 0x53, 0x70, 0x45};
    struct weir__log_producer got;

    (void)state;
    memset(&got, 1, sizeof got);
    assert_int_equal(weir__mark_read(WEIR__AMQP_FORMAT_BATCH, weir__bytes_of(header, sizeof header),
                                     &got, NULL),
                     0);
    assert_int_equal(got.id, 0);
}

/* Each as large as can be, and larger by one. */
static void the_largest_numbers(void **state)
{
    static const struct {
        int64_t epoch, sequence;
        int rc;
    } rows[] = {
        {INT16_MAX, INT32_MAX, 0},
        {INT16_MAX + 1, INT32_MAX, WEIR_EINVAL},
        {INT16_MAX, INT64_C(1) + INT32_MAX, WEIR_EINVAL},
        {0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_pair pairs[] = {pair(ID, WEIR__AMQP_LONG, INT64_MAX),
                                          pair(EPOCH, WEIR__AMQP_LONG, rows[i].epoch),
                                          pair(SEQUENCE, WEIR__AMQP_LONG, rows[i].sequence)};
        struct weir__log_producer got;
        struct weir__buf buf;
        assert_int_equal(weir__mark_read(0, event_of(pairs, 3, &buf), &got, NULL), rows[i].rc);
        if (rows[i].rc == 0) {
            assert_int_equal(got.id, INT64_MAX);
            assert_int_equal(got.epoch, rows[i].epoch);
            assert_int_equal(got.sequence, rows[i].sequence);
        }
        weir__buf_fini(&buf);
    }
}

/* A message that is none has no mark, and says so. */
static void of_what_is_no_message(void **state)
{
    static const uint8_t bad[] = {0x00, 0x53, 0x75, 0xa0, 5, 'x'};
    static const uint8_t no_batch[] = {0x00, 0x53, 0x77, 0x40}; /* but a message */
    struct weir__log_producer got;
    struct weir_error err = {0};

    (void)state;
    assert_int_equal(weir__mark_read(0, weir__bytes_of(no_batch, sizeof no_batch), &got, &err), 0);
    assert_int_equal(weir__mark_read(WEIR__AMQP_FORMAT_BATCH,
                                     weir__bytes_of(no_batch, sizeof no_batch), &got, &err),
                     WEIR_EINVAL);
    assert_non_null(strstr(err.text, "a batch consists of data sections"));
    assert_int_equal(weir__mark_read(0, weir__bytes_of(bad, sizeof bad), &got, &err), WEIR_EINVAL);
    assert_int_equal(weir__mark_read(WEIR__AMQP_FORMAT_BATCH, weir__bytes_of(bad, sizeof bad), &got,
                                     &err),
                     WEIR_EINVAL);
}

static void answered_with_exact_types(void **state)
{
    struct weir__mark mark = {.id = 5, .epoch = 2, .sequence = 77};
    uint8_t space[WEIR__MARK_BYTES];
    struct weir__amqp_value map = weir__mark_properties(&mark, space), v;

    (void)state;
    assert_int_equal(map.type, WEIR__AMQP_MAP);
    assert_true(weir__amqp_map_find(&map, ID, &v));
    assert_int_equal(v.type, WEIR__AMQP_LONG);
    assert_int_equal(v.i, 5);
    assert_true(weir__amqp_map_find(&map, EPOCH, &v));
    assert_int_equal(v.type, WEIR__AMQP_SHORT);
    assert_int_equal(v.i, 2);
    assert_true(weir__amqp_map_find(&map, SEQUENCE, &v));
    assert_int_equal(v.type, WEIR__AMQP_INT);
    assert_int_equal(v.i, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_an_event),
        cmocka_unit_test(of_the_first_of_a_batch),
        cmocka_unit_test(none_and_negative),
        cmocka_unit_test(the_largest_numbers),
        cmocka_unit_test(a_mark_has_three_numbers),
        cmocka_unit_test(of_a_batch_without_events),
        cmocka_unit_test(of_what_is_no_message),
        cmocka_unit_test(answered_with_exact_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
