/* What cannot be sent is refused with a text that names the event and what is wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "client/encode.h"

static struct weir__encoder *enc;
static struct weir__batch batch;
static struct weir_error err;

static int open_encoder(void **state)
{
    (void)state;
    return weir__encoder_new(&enc, 0, &err);
}

static int close_encoder(void **state)
{
    (void)state;
    weir__encoder_free(enc);
    weir__encoder_free(NULL);
    return 0;
}

/* The event stands behind a good one. */
static void assert_refused(const struct weir_event *e, const char *says)
{
    struct weir_event events[2] = {{.body = weir_text("good")}, *e};

    assert_int_equal(weir__encoder_run(enc, events, 2, true, &batch, &err), WEIR_EINVAL);
    assert_string_equal(err.text, says);
}

static void assert_taken(const struct weir_event *e)
{
    if (weir__encoder_run(enc, e, 1, false, &batch, &err) != 0) fail_msg("%s", err.text);
    assert_int_equal(batch.count, 1);
}

#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"

static void properties_are_looked_at(void **state)
{
    static const struct {
        struct weir_property property;
        const char *says;
    } cases[] = {
        {{{"\xff", 1}, {.type = WEIR_NULL}}, "event 1: the name of a property is not UTF-8"},
        {{{"x", 1}, {.type = WEIR_TEXT, .bytes = {"\xff", 1}}},
         "event 1: property 'x' is not UTF-8"},
        {{{"x", 1}, {.type = WEIR_UUID, .bytes = {"0123456789abcde", 15}}},
         "event 1: property 'x' is malformed"},
        {{{"x", 1}, {.type = WEIR_UUID, .bytes = {"0123456789abcdefg", 17}}},
         "event 1: property 'x' is malformed"},
        {{{"x", 1}, {.type = WEIR_ENCODED, .bytes = {"\x40\x40", 2}}},
         "event 1: property 'x' is malformed"},
        {{{"x", 1}, {.type = WEIR_ENCODED, .bytes = {"\xa1", 1}}},
         "event 1: property 'x' is malformed"},
        {{{"x", 1}, {.type = (enum weir_type)99}}, "event 1: property 'x' is malformed"},
        {{{SIXTY_FOUR "cut", 67}, {.type = (enum weir_type)99}},
         "event 1: property '" SIXTY_FOUR "' is malformed"},
    };
    static const struct weir_value good[] = {
        {.type = WEIR_TEXT, .bytes = {"\xc3\xa9", 2}},
        {.type = WEIR_BINARY, .bytes = {"\xff", 1}},
        {.type = WEIR_UUID, .bytes = {"0123456789abcdef", 16}},
        {.type = WEIR_ENCODED, .bytes = {"\x40", 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_event e = {.property_count = 1, .properties = &cases[i].property};
        assert_refused(&e, cases[i].says);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct weir_property p = {{"x", 1}, good[i]};
        struct weir_event e = {.property_count = 1, .properties = &p};
        assert_taken(&e);
    }
}

static void ids_are_of_few_types(void **state)
{
    static const struct weir_value good[] = {{.type = WEIR_NULL},
                                             {.type = WEIR_TEXT, .bytes = {"id", 2}},
                                             {.type = WEIR_UINT, .natural = 1},
                                             {.type = WEIR_UUID, .bytes = {"0123456789abcdef", 16}},
                                             {.type = WEIR_BINARY, .bytes = {"\xff", 1}}};
    static const struct weir_value bad[] = {{.type = WEIR_INT, .integer = 1},
                                            {.type = WEIR_BOOL, .boolean = true},
                                            {.type = WEIR_DOUBLE, .real = 1},
                                            {.type = WEIR_TIME, .time_ms = 1},
                                            {.type = WEIR_ENCODED, .bytes = {"\x40", 1}},
                                            {.type = WEIR_TEXT, .bytes = {"\xff", 1}}};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct weir_system_properties s = {.message_id = good[i], .correlation_id = good[i]};
        assert_taken(&(struct weir_event){.system = &s});
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_system_properties m = {.message_id = bad[i]}, c = {.correlation_id = bad[i]};
        assert_refused(&(struct weir_event){.system = &m}, "event 1: message_id is malformed");
        assert_refused(&(struct weir_event){.system = &c}, "event 1: correlation_id is malformed");
    }
}

/* Symbols are ASCII, texts are UTF-8, and a user's id is what it is. */
static void system_texts_are_looked_at(void **state)
{
    static const size_t texts[] = {offsetof(struct weir_system_properties, to),
                                   offsetof(struct weir_system_properties, subject),
                                   offsetof(struct weir_system_properties, reply_to),
                                   offsetof(struct weir_system_properties, group_id),
                                   offsetof(struct weir_system_properties, reply_to_group_id),
                                   offsetof(struct weir_system_properties, content_type),
                                   offsetof(struct weir_system_properties, content_encoding)};
    struct weir_system_properties s = {.user_id = weir_bytes("\xff", 1)};
    struct weir_event e = {.system = &s};

    (void)state;
    assert_taken(&e);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct weir_bytes *text = (struct weir_bytes *)(void *)((char *)&s + texts[i]);
        *text = weir_bytes("a\xff", 2);
        assert_refused(&e, "event 1: the text of a system property is malformed");
        *text = weir_text("\x01\x7f");
        assert_taken(&e);
        *text = weir_text("\xc3\xa9");
        if (i < 5)
            assert_taken(&e);
        else
            assert_refused(&e, "event 1: the text of a system property is malformed");
        *text = weir_bytes(NULL, 0);
    }
}

static void bodies_are_looked_at(void **state)
{
    static const char *const types = "event 1: only bodies of WEIR_BODY_DATA can be published";
    struct weir_event e = {.body_type = WEIR_BODY_VALUE};

    (void)state;
    assert_refused(&e, types);
    e.body_type = WEIR_BODY_UNREADABLE;
    assert_refused(&e, types);
    e = (struct weir_event){.body = weir_bytes(NULL, 5)};
    assert_refused(&e, "event 1: a body of 5 bytes that are nowhere");
    assert_int_equal(weir__encoder_run(enc, &e, 0, true, &batch, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a batch without events");
    assert_int_equal(weir__encoder_run(enc, NULL, 1, true, &batch, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a batch without events");
    e.body = weir_bytes(NULL, 0);
    assert_taken(&e);
}

/* ---- keys ---- */

static void keys_have_their_longest(void **state)
{
    char key[WEIR__ENCODER_KEY_CHARS_MAX * 4 + 4];
    struct weir_event e[2] = {{.body = weir_text("a")}, {.body = weir_text("b")}};

    (void)state;
    for (size_t i = 0; i < sizeof key; i += 4) memcpy(key + i, "\xf0\x9f\x98\x80", 4);
    e[0].partition_key = e[1].partition_key = weir_bytes(key, sizeof key - 4);
    assert_int_equal(weir__encoder_run(enc, e, 2, false, &batch, &err), 0);
    assert_int_equal(batch.key.len, 512);
    e[0].partition_key = weir_bytes(key, sizeof key);
    assert_int_equal(weir__encoder_run(enc, e, 1, false, &batch, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, "a partition key of more than 128 characters");
    assert_int_equal(weir__encoder_run(enc, e, 2, true, &batch, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, "event 0: a partition key of more than 128 characters");
    e[0].partition_key = weir_bytes(key, 7);
    assert_int_equal(weir__encoder_run(enc, e, 1, false, &batch, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the partition key is not UTF-8");
}

/* Keys are the same when their bytes are, wherever these lie; none is not an empty one. */
static void one_batch_has_one_key(void **state)
{
    static const char abab[] = "abab";
    static const struct {
        struct weir_bytes first, other;
        bool same;
    } cases[] = {
        {{NULL, 0}, {NULL, 0}, true},     {{NULL, 0}, {NULL, 3}, true},
        {{abab, 2}, {abab, 2}, true},     {{abab, 2}, {abab + 2, 2}, true},
        {{abab, 2}, {abab, 3}, false},    {{abab, 2}, {abab + 1, 2}, false},
        {{NULL, 0}, {abab, 0}, false},    {{abab, 0}, {NULL, 0}, false},
        {{abab, 0}, {abab + 1, 0}, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_event e[3] = {{.partition_key = cases[i].first},
                                  {.partition_key = cases[i].first},
                                  {.partition_key = cases[i].other}};
        int rc = weir__encoder_run(enc, e, 3, false, &batch, &err);
        assert_int_equal(rc, cases[i].same ? 0 : WEIR_EINVAL);
        if (rc != 0)
            assert_string_equal(err.text,
                                "event 2 has another partition key than the first of its batch");
        assert_int_equal(weir__encoder_run(enc, e, 3, true, &batch, &err), 0);
        assert_int_equal(batch.count, 3);
        assert_int_equal(batch.key.at != NULL, cases[i].same && cases[i].first.at);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_encoder, close_encoder)
    const struct CMUnitTest tests[] = {
        TEST(properties_are_looked_at),   TEST(ids_are_of_few_types),
        TEST(system_texts_are_looked_at), TEST(bodies_are_looked_at),
        TEST(keys_have_their_longest),    TEST(one_batch_has_one_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
