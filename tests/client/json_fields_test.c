/* JSON into structs: what a table knows goes where it says, and what is wrong is named with its
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "client/json_fields.h"

#define ROOM 4 /* of a text, with its NUL */

struct thing {
    int64_t number;
    char text[ROOM];
    char behind; /* the text */
    unsigned texts;
    char last[32];
};

static struct weir_error err;
static struct thing got;

static int take(void *out, const char *text, struct weir_error *why)
{
    struct thing *t = out;

    if (strcmp(text, "stop") == 0) return weir__fail(why, WEIR_ELIMIT, "stopped");
    t->texts++;
    snprintf(t->last, sizeof t->last, "%s", text);
    return 0;
}

static const struct weir__json_field fields[] = {
    {"number", WEIR__JSON_FIELD_NUMBER, offsetof(struct thing, number), 0, NULL},
    {"text", WEIR__JSON_FIELD_TEXT, offsetof(struct thing, text), ROOM, NULL},
    {"texts", WEIR__JSON_FIELD_TEXTS, 0, 0, take},
    {0},
};

static int read_thing(const char *text)
{
    got = (struct thing){.number = 7, .text = "old", .behind = '!'};
    return weir__json_fields_read(weir__bytes_of(text, strlen(text)), fields, &got, &err);
}

static void what_is_known_is_read(void **state)
{
    static const struct {
        const char *text;
        struct thing thing;
    } cases[] = {
        {"{}", {7, "old", '!', 0, ""}},
        {"{\"number\":-1,\"text\":\"abc\",\"texts\":[\"x\",\"y\"]}", {-1, "abc", '!', 2, "y"}},
        {"{\"text\":\"\",\"texts\":[]}", {7, "", '!', 0, ""}},
        {"{\"number\":null,\"text\":null,\"texts\":null}", {7, "old", '!', 0, ""}},
        {"{\"new\":{\"number\":1},\"num\":[2],\"numbers\":3,\"number\":4}", {4, "old", '!', 0, ""}},
        {"{\"number\":9223372036854775807}", {INT64_MAX, "old", '!', 0, ""}},
        {"{\"number\":-9223372036854775808}", {INT64_MIN, "old", '!', 0, ""}},
        {"{\"text\":\" ~\"}", {7, " ~", '!', 0, ""}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (read_thing(cases[i].text) != 0) fail_msg("%zu: %s", i, err.text);
        assert_int_equal(got.number, cases[i].thing.number);
        assert_string_equal(got.text, cases[i].thing.text);
        assert_int_equal(got.behind, '!');
        assert_int_equal(got.texts, cases[i].thing.texts);
        assert_string_equal(got.last, cases[i].thing.last);
    }
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "line 1, column 1: an object is expected"},
        {"", "line 1, column 1: a value should be here, but the text ends"},
        {"{\"number\":", "line 1, column 11: a value should be here, but the text ends"},
        {"{\"other\":", "line 1, column 10: a value should be here, but the text ends"},
        {"{}\n {}", "line 2, column 2: something follows the end"},
        {"{\"number\":\"1\"}", "line 1, column 11: a number is expected"},
        {"{\"number\":1.5}", "line 1, column 11: a whole number is expected"},
        {"{\"number\":9223372036854775808}", "line 1, column 11: a whole number is expected"},
        {"{\"text\":1}", "line 1, column 9: a string is expected"},
        {"{\"text\":\"abcd\"}", "line 1, column 9: the text is too long"},
        {"{\"text\":\"\\u001f\"}", "line 1, column 9: there are control characters in it"},
        {"{\"text\":\"a\\u007f\"}", "line 1, column 9: there are control characters in it"},
        {"{\"texts\":\"x\"}", "line 1, column 10: an array is expected"},
        {"{\"texts\":[\"x\",\n1]}", "line 2, column 1: strings are expected"},
        {"{\"texts\":[\"x\\n\"]}", "line 1, column 11: there are control characters in it"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(read_thing(cases[i].text), WEIR_EINVAL);
        assert_string_equal(err.text, cases[i].says);
    }
    assert_int_equal(read_thing("{\"texts\":[\"x\",\"stop\",\"y\"],\"number\":1}"), WEIR_ELIMIT);
    assert_int_equal(got.texts, 1);
    assert_int_equal(got.number, 7);
}

/* What is not JSON at all is said by the reader, wherever it ends. */
static void half_a_text_is_none(void **state)
{
    static const char whole[] =
        "{\"a\":[{}],\"number\":5,\"text\":\"abc\",\"texts\":[\"x\",\"y\"]}";

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        got = (struct thing){0};
        assert_int_equal(weir__json_fields_read(weir__bytes_of(whole, len), fields, &got, &err),
                         WEIR_EINVAL);
    }
    assert_int_equal(read_thing(whole), 0);
}

/* ---- lists ---- */

struct shown {
    unsigned count, until;
    int64_t sum;
};

static int show(void *out, void *user)
{
    struct shown *s = user;

    assert_ptr_equal(out, &got);
    s->sum += got.number;
    assert_string_equal(got.text, s->count == 0 ? "a" : ""); /* nothing is left of the last one */
    assert_int_equal(((const unsigned char *)&got)[sizeof got - 1], 0);
    memset(&got, 0xff, sizeof got);
    return ++s->count == s->until ? 5 : 0;
}

static int list(const char *text, struct shown *s)
{
    return weir__json_fields_list(weir__bytes_of(text, strlen(text)), "things", fields, &got,
                                  sizeof got, show, s, &err);
}

#define TWO "{\"things\":[{\"number\":1,\"text\":\"a\"},{\"number\":2}]"

static void each_of_a_list_is_shown(void **state)
{
    struct shown s = {0};

    (void)state;
    assert_int_equal(list(TWO "}", &s), 0);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.sum, 3);
    s = (struct shown){0};
    assert_int_equal(list(TWO ",\"more\":1}", &s), 0); /* what a later release may add */
    s = (struct shown){.until = 1};
    assert_int_equal(list(TWO "}", &s), 5);
    assert_int_equal(s.count, 1);
    s = (struct shown){0};
    assert_int_equal(list("{\"things\":[]}", &s), 0);
    assert_int_equal(s.count, 0);
}

static void what_is_no_list_is_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "line 1, column 1: an object is expected"},
        {"{}", "line 1, column 2: a member is expected"},
        {"{\"thing\":[]}", "line 1, column 2: it is another member"},
        {"{\"things\":{}}", "line 1, column 11: an array is expected"},
        {"{\"things\":[1]}", "line 1, column 12: an object is expected"},
        {"{\"things\":[{\"number\":\"\"}]}", "line 1, column 22: a number is expected"},
    };
    struct shown s = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(list(cases[i].text, &s), WEIR_EINVAL);
        assert_string_equal(err.text, cases[i].says);
    }
    assert_int_equal(s.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_is_read),    cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(half_a_text_is_none),      cmocka_unit_test(each_of_a_list_is_shown),
        cmocka_unit_test(what_is_no_list_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
