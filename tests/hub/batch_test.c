#include "hub/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/payload.h"

static struct payload payload;
static uint8_t stored[PAYLOAD_MAX];
static struct weir_error err;

/* What the log would hold of a batch. */
static struct weir__log_view store(const struct weir__batch *b)
{
    struct weir__log_view view = {.offset = WEIR__LOG_ORIGIN + 100,
                                  .sequence = 41,
                                  .time_ms = 1234,
                                  .count = b->count,
                                  .attrs = b->attrs};
    size_t len = 0;

    assert_true(b->parts <= WEIR__LOG_BODY_PARTS_MAX);
    for (uint32_t i = 0; i < b->parts; i++) {
        assert_true(len + b->body[i].len <= sizeof stored);
        memcpy(stored + len, b->body[i].at, b->body[i].len);
        len += b->body[i].len;
    }
    view.body = weir__bytes_of(stored, len);
    return view;
}

static void assert_event(const struct weir__event *e, uint64_t n, const char *key)
{
    struct payload expected = {.len = 0};

    payload_event(&expected, "x", (int)n);
    assert_int_equal(e->message.len, expected.len);
    assert_memory_equal(e->message.at, expected.at, expected.len);
    assert_int_equal(e->sequence, 41 + n);
    assert_int_equal(e->offset, WEIR__LOG_ORIGIN + 100 + n);
    assert_int_equal(e->time_ms, 1234);
    assert_int_equal(e->key.at != NULL, key != NULL);
    if (key) {
        assert_int_equal(e->key.len, strlen(key));
        assert_memory_equal(e->key.at, key, strlen(key));
    }
}

/* Taken some at a time, where that can be done. */
static void assert_same_by_some(const struct weir__log_view *view, const char *key)
{
    struct weir__event some[3];
    struct weir__batch_walk walk;
    uint32_t at = view->skip;

    assert_int_equal(weir__batch_walk_start(&walk, view, &err), 0);
    while (at < view->count) {
        uint32_t count = weir__batch_walk_some(&walk, some, 3);

        assert_true(count <= 3);
        if (count == 0) {
            assert_int_equal(weir__batch_walk_next(&walk, some, &err), 1);
            count = 1;
        }
        for (uint32_t i = 0; i < count; i++) assert_event(&some[i], at++, key);
        assert_int_equal(walk.left, view->count - at);
    }
    assert_int_equal(weir__batch_walk_some(&walk, some, 3), 0);
    assert_int_equal(weir__batch_walk_next(&walk, some, &err), 0);
}

static void assert_events(const struct weir__log_view *view, const char *key)
{
    struct weir__batch_walk walk;
    struct weir__event e;

    assert_int_equal(weir__batch_walk_start(&walk, view, &err), 0);
    for (uint32_t i = view->skip; i < view->count; i++) {
        assert_int_equal(weir__batch_walk_next(&walk, &e, &err), 1);
        assert_event(&e, i, key);
    }
    assert_int_equal(weir__batch_walk_next(&walk, &e, &err), 0);
    assert_same_by_some(view, key);
}

static int take(struct weir__batch *b, uint32_t format)
{
    return weir__batch_of_payload(b, format, payload_bytes(&payload), 0, &err);
}

static void batch_in_and_out(void **state)
{
    static const char *const keys[] = {NULL, "home-7", ""};
    struct weir__batch b;

    (void)state;
    for (int k = 0; k < 3; k++) {
        payload_batch(&payload, keys[k], "x", 100);
        assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
        assert_int_equal(b.count, 100);
        struct weir__log_view view = store(&b);
        assert_events(&view, keys[k]);
        view.skip = 99;
        assert_events(&view, keys[k]);
    }
}

static void sections_are_stored_as_they_came(void **state)
{
    struct weir__batch b;
    struct weir__log_view view;
    size_t envelope;

    (void)state;
    payload_batch(&payload, NULL, "x", 0);
    envelope = payload.len;
    payload_batch(&payload, NULL, "x", 3);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    view = store(&b);
    assert_int_equal(view.body.len, payload.len - envelope);
    assert_memory_equal(view.body.at, payload.at + envelope, view.body.len);
    assert_ptr_equal(b.body[0].at, payload.at + envelope); /* and were not copied on the way */
}

static void single_message_in_and_out(void **state)
{
    struct weir__batch b;
    struct weir__log_view view;
    struct weir__batch_walk walk;
    struct weir__event e;

    (void)state;
    payload.len = 0;
    payload_key(&payload, "k1");
    payload_event(&payload, "alone", 1);
    assert_int_equal(take(&b, 0), 0);
    assert_int_equal(b.count, 1);
    assert_memory_equal(b.key.at, "k1", 2);
    view = store(&b);
    assert_int_equal(weir__batch_walk_start(&walk, &view, &err), 0);
    assert_int_equal(weir__batch_walk_next(&walk, &e, &err), 1);
    assert_int_equal(e.message.len, payload.len);
    assert_memory_equal(e.message.at, payload.at, payload.len);
    assert_memory_equal(e.key.at, "k1", 2);
    assert_int_equal(weir__batch_walk_next(&walk, &e, &err), 0);
}

/* Without a key in the envelope, that of the first event counts. */
static void key_of_the_first_event(void **state)
{
    struct payload event = {.len = 0};
    struct weir__batch b;

    (void)state;
    payload_key(&event, "inner");
    payload_event(&event, "x", 0);
    payload.len = 0;
    payload_data(&payload, event.at, event.len);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    assert_int_equal(b.key.len, 5);
    assert_memory_equal(b.key.at, "inner", 5);
    payload.len = 0;
    payload_key(&payload, "outer");
    payload_data(&payload, event.at, event.len);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    assert_memory_equal(b.key.at, "outer", 5);
    payload_batch(&payload, NULL, "x", 1); /* that of the second does not */
    payload_data(&payload, event.at, event.len);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    assert_null(b.key.at);
}

/* The envelope's annotations may stand behind the events. */
static void key_behind_the_events(void **state)
{
    static const char wrong[] = "\x00\x53\x72\xc1\x18\x02\xa3\x13"
                                "x-opt-partition-key\x52\x07";
    struct weir__batch b;

    (void)state;
    payload_batch(&payload, NULL, "x", 2);
    payload_key(&payload, "late");
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.key.len, 4);
    assert_memory_equal(b.key.at, "late", 4);
    payload_batch(&payload, NULL, "x", 2);
    payload_raw(&payload, wrong, sizeof wrong - 1);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_string_equal(err.text, "x-opt-partition-key is a uint, not a string");
}

/* It counts before that of an event, so a bad one is not passed over for a good one there. */
static void a_bad_key_of_the_envelope_is_refused(void **state)
{
    static const char wrong[] = "\x00\x53\x72\xc1\x18\x02\xa3\x13"
                                "x-opt-partition-key\x52\x07";
    struct payload event = {.len = 0};
    struct weir__batch b;

    (void)state;
    payload_key(&event, "inner");
    payload_event(&event, "x", 0);
    payload.len = 0;
    payload_raw(&payload, wrong, sizeof wrong - 1);
    payload_data(&payload, event.at, event.len);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_string_equal(err.text, "x-opt-partition-key is a uint, not a string");
}

/* While one of an event that does not count is not even looked at. */
static void a_bad_key_behind_a_good_one_is_passed_over(void **state)
{
    static const char wrong[] = "\x00\x53\x72\xc1\x18\x02\xa3\x13"
                                "x-opt-partition-key\x52\x07";
    struct payload event = {.len = 0};
    struct weir__batch b;

    (void)state;
    payload_raw(&event, wrong, sizeof wrong - 1);
    payload_event(&event, "x", 0);
    payload.len = 0;
    payload_key(&payload, "outer");
    for (int i = 0; i < 2; i++) payload_data(&payload, event.at, event.len);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.key.len, 5);
    assert_memory_equal(b.key.at, "outer", 5);
}

static void refused(void **state)
{
    struct weir__batch b;

    (void)state;
    payload_batch(&payload, NULL, "x", 0);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    payload.len = 0;
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_int_equal(take(&b, 0), WEIR_EINVAL);
    payload_data(&payload, "", 0); /* an event of no bytes */
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_string_equal(err.text, "event 0 of the batch is empty");
    payload.len = 0;
    payload_raw(&payload, "\x00\x53\x75\x40", 4); /* and no event at all */
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_int_equal(take(&b, 0), 0); /* while a message may have null as its body */
    payload.len = 0;
    payload_data(&payload, "not a message", 13);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "event 0 of the batch"));
    assert_int_equal(take(&b, 7), WEIR_EINVAL);
    assert_string_equal(err.text, "unknown message format 0x00000007");
}

/* What a receiver could not be given: each is refused alone, and inside a batch where it is not the
 * first. */
static void what_cannot_be_delivered_is_refused(void **state)
{
    static const struct {
        const char *at;
        size_t len;
    } rows[] = {
        {"\0\x53\x72\xc1\3\2\xff\xff", 8},         /* annotations: items that are none */
        {"\0\x53\x72\xc1\2\2\x40", 7},             /* one item of two */
        {"\0\x53\x72\xc1\6\2\xa3\1k\xa1\x20", 11}, /* a value that ends behind the map */
        {"\0\x53\x73\xc0\3\2\xff\xff", 8},         /* properties, */
        {"\0\x53\x74\xc1\3\2\xff\xff", 8},         /* application properties */
    };
    struct payload event;
    struct weir__batch b;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        payload.len = 0;
        payload_raw(&payload, rows[i].at, rows[i].len);
        payload_data(&payload, "x", 1);
        event = payload;
        assert_int_equal(take(&b, 0), WEIR_EINVAL);
        payload_batch(&payload, NULL, "good", 2);
        payload_data(&payload, event.at, event.len);
        assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
        assert_non_null(strstr(err.text, "event 2 of the batch"));
    }
}

static void limits(void **state)
{
    struct weir__batch b;
    char key[WEIR__BATCH_KEY_MAX + 1];
    struct weir__batch_writer w;

    (void)state;
    payload_batch(&payload, NULL, "x", 10);
    assert_int_equal(weir__batch_of_payload(&b, WEIR__AMQP_FORMAT_BATCH, payload_bytes(&payload),
                                            payload.len, &err),
                     0);
    assert_int_equal(weir__batch_of_payload(&b, WEIR__AMQP_FORMAT_BATCH, payload_bytes(&payload),
                                            payload.len - 1, &err),
                     WEIR_ETOOBIG);
    weir__batch_writer_init(&w, 0);
    memset(key, 'k', sizeof key);
    assert_int_equal(weir__batch_writer_start(&w, weir__bytes_of(key, sizeof key - 1), &err), 0);
    assert_int_equal(weir__batch_writer_start(&w, weir__bytes_of(key, sizeof key), &err),
                     WEIR_ETOOBIG);
    weir__batch_writer_fini(&w);
}

/* Cut anywhere, flipped anywhere: an answer, never a crash, and what is taken can be walked. */
static void hostile_payloads(void **state)
{
    (void)state;
    for (int flip = 0; flip < 2; flip++) {
        payload_batch(&payload, "key", "x", 4);
        for (size_t i = 0; i < payload.len * (flip ? 8 : 1); i++) {
            size_t len = flip ? payload.len : i;
            uint8_t *exact = malloc(len ? len : 1);
            struct weir__batch b;
            memcpy(exact, payload.at, len);
            if (flip) exact[i / 8] ^= (uint8_t)(1 << i % 8);
            if (weir__batch_of_payload(&b, WEIR__AMQP_FORMAT_BATCH, weir__bytes_of(exact, len), 0,
                                       &err) == 0) {
                struct weir__log_view view = store(&b);
                struct weir__batch_walk walk;
                struct weir__event e;
                uint32_t count = 0;
                assert_int_equal(weir__batch_walk_start(&walk, &view, &err), 0);
                while (weir__batch_walk_next(&walk, &e, &err) == 1) count++;
                assert_int_equal(count, b.count);
            }
            free(exact);
        }
    }
}

static void writer_builds_what_the_wire_brings(void **state)
{
    struct weir__batch_writer w;
    struct weir__batch b;
    struct weir__log_view view;
    struct payload event;

    (void)state;
    weir__batch_writer_init(&w, 0);
    for (int round = 0; round < 2; round++) { /* it can be used again */
        assert_int_equal(weir__batch_writer_start(&w, weir__bytes_of("key", 3), &err), 0);
        assert_int_equal(weir__batch_writer_batch(&w, &b, &err), WEIR_EINVAL); /* empty */
        for (int i = 0; i < 20; i++) {
            event.len = 0;
            payload_event(&event, "x", i);
            assert_int_equal(weir__batch_writer_add_message(&w, payload_bytes(&event), &err), 0);
        }
        assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
        assert_int_equal(b.count, 20);
        view = store(&b);
        assert_events(&view, "key");
    }
    weir__batch_writer_fini(&w);
}

static void writer_encodes_contents(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 247, 248, 249, 250, 251, 252, 255, 256, 300, 5000};
    static uint8_t data[5000];
    struct weir__amqp_message m;
    struct weir__batch_writer w;
    struct weir__batch_walk walk;
    struct weir__log_view view;
    struct weir__batch b;
    struct weir__event e;

    (void)state;
    memset(data, 'd', sizeof data);
    weir__batch_writer_init(&w, 0);
    assert_int_equal(weir__batch_writer_start(&w, (struct weir__bytes){0}, &err), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir__amqp_content content = {.data = weir__bytes_of(data, sizes[i])};
        assert_int_equal(weir__batch_writer_add(&w, &content, &err), 0);
    }
    assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
    view = store(&b);
    assert_int_equal(weir__batch_walk_start(&walk, &view, &err), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(weir__batch_walk_next(&walk, &e, &err), 1);
        assert_null(e.key.at);
        assert_int_equal(weir__amqp_message_scan(&m, e.message, WEIR__AMQP_DEEP, &err), 0);
        assert_int_equal(m.data.len, sizes[i]);
        if (sizes[i]) assert_memory_equal(m.data.at, data, sizes[i]);
    }
    assert_int_equal(weir__batch_walk_next(&walk, &e, &err), 0);
    weir__batch_writer_fini(&w);
}

/* What does not fit leaves the batch as it was; all that was promised does fit. */
static void writer_fills_up(void **state)
{
    static uint8_t data[1000];
    struct weir__amqp_content content = {.data = weir__bytes_of(data, sizeof data)};
    struct weir__batch_writer w;
    struct weir__batch b;
    uint32_t count = 0;

    (void)state;
    weir__batch_writer_init(&w, 10000);
    assert_int_equal(weir__batch_writer_start(&w, (struct weir__bytes){0}, &err), 0);
    while (weir__batch_writer_add(&w, &content, &err) == 0) count++;
    assert_int_equal(err.code, WEIR_ETOOBIG);
    assert_int_equal(count, 9);
    content.data.len = 10;
    assert_int_equal(weir__batch_writer_add(&w, &content, &err), 0);
    assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
    assert_int_equal(b.count, 10);
    assert_true(b.body[0].len <= 10000);
    content.data.len = SIZE_MAX / 2;
    assert_int_equal(weir__batch_writer_add(&w, &content, &err), WEIR_ETOOBIG);
    weir__batch_writer_fini(&w);
}

static void a_batch_that_is_cut_is_told(void **state)
{
    struct weir__batch b;

    (void)state;
    payload_batch(&payload, NULL, "x", 2);
    payload_raw(&payload,
                "\x00\x53\x75\xa0\x05"
                "ab",
                7);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), WEIR_EINVAL);
    assert_string_equal(err.text, "message section data, byte 43: ends too early");
}

/* As many as are asked for, as there are, and as go at once. */
static void ordinary_events_are_taken_together(void **state)
{
    static const struct {
        uint32_t max, want;
    } rows[] = {{1, 1}, {3, 3}, {100, 64}, {64, 64}, {65, 64}, {10, 4}, {10, 0}};
    struct weir__event some[100];
    struct weir__batch_walk walk;
    struct weir__log_view view;
    struct weir__batch b;
    uint32_t at = 0;

    (void)state;
    payload_batch(&payload, "key", "x", 200);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    view = store(&b);
    assert_int_equal(weir__batch_walk_start(&walk, &view, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weir__batch_walk_some(&walk, some, rows[i].max), rows[i].want);
        for (uint32_t k = 0; k < rows[i].want; k++) assert_event(&some[k], at++, "key");
        assert_int_equal(walk.left, 200 - at);
    }
    assert_int_equal(at, 200);
}

/* What is no message leaves the batch as it was. */
static void writer_refuses_what_is_no_message(void **state)
{
    struct weir__amqp_pair list = {{(const uint8_t *)"p", 1}, {.type = WEIR__AMQP_LIST}};
    struct weir__amqp_properties subject = {.subject = {.type = WEIR__AMQP_UINT}};
    const struct weir__amqp_content of_list = {.application_properties = &list,
                                               .application_property_count = 1},
                                    of_number = {.properties = &subject}, plain = {0};
    struct weir__batch_writer w;
    struct weir__batch b;
    size_t bytes;

    (void)state;
    weir__batch_writer_init(&w, 0);
    assert_int_equal(weir__batch_writer_start(&w, (struct weir__bytes){0}, &err), 0);
    assert_int_equal(weir__batch_writer_add(&w, &plain, &err), 0);
    assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
    bytes = b.body[0].len;
    assert_int_equal(weir__batch_writer_add(&w, &of_list, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "application property 'p' must not be a list");
    assert_int_equal(weir__batch_writer_add(&w, &of_number, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "property subject must not be a uint");
    assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.body[0].len, bytes);
    weir__batch_writer_fini(&w);
}

static void damaged_bodies(void **state)
{
    struct weir__batch_walk walk;
    struct weir__log_view view;
    struct weir__batch b;
    struct weir__event e;
    char want[128];
    int rc;

    (void)state;
    payload_batch(&payload, "key", "x", 3);
    assert_int_equal(take(&b, WEIR__AMQP_FORMAT_BATCH), 0);
    view = store(&b);
    view.attrs = 2;
    assert_int_equal(weir__batch_walk_start(&walk, &view, &err), WEIR_EVERSION);
    view.attrs = b.attrs;
    for (int wrong = -1; wrong <= 1; wrong += 2) { /* too many and too few for the header */
        view.count = (uint32_t)(3 + wrong);
        assert_int_equal(weir__batch_walk_start(&walk, &view, &err), 0);
        while ((rc = weir__batch_walk_next(&walk, &e, &err)) == 1) {
        }
        assert_int_equal(rc, WEIR_ECORRUPT);
        snprintf(want, sizeof want,
                 "the batch at sequence %llu has not as many events as its header says",
                 (unsigned long long)view.sequence + (wrong < 0 ? 2 : 3));
        assert_string_equal(err.text, want);
    }
    view.count = 3;
    for (size_t len = 0; len < view.body.len; len++) {
        struct weir__log_view cut = view;
        uint8_t *exact = malloc(len ? len : 1);
        memcpy(exact, view.body.at, len);
        cut.body = weir__bytes_of(exact, len);
        rc = weir__batch_walk_start(&walk, &cut, &err);
        while (rc == 0 && (rc = weir__batch_walk_next(&walk, &e, &err)) == 1) rc = 0;
        assert_int_equal(rc, WEIR_ECORRUPT);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_in_and_out),
        cmocka_unit_test(sections_are_stored_as_they_came),
        cmocka_unit_test(single_message_in_and_out),
        cmocka_unit_test(key_of_the_first_event),
        cmocka_unit_test(key_behind_the_events),
        cmocka_unit_test(a_bad_key_of_the_envelope_is_refused),
        cmocka_unit_test(a_bad_key_behind_a_good_one_is_passed_over),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_batch_that_is_cut_is_told),
        cmocka_unit_test(what_cannot_be_delivered_is_refused),
        cmocka_unit_test(limits),
        cmocka_unit_test(hostile_payloads),
        cmocka_unit_test(writer_builds_what_the_wire_brings),
        cmocka_unit_test(writer_encodes_contents),
        cmocka_unit_test(writer_fills_up),
        cmocka_unit_test(ordinary_events_are_taken_together),
        cmocka_unit_test(writer_refuses_what_is_no_message),
        cmocka_unit_test(damaged_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
