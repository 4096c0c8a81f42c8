#include "base/json_members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir_error err;

/* Walks an object; *names has the names, each with a space behind it. */
static int walk(const char *text, char names[1024])
{
    struct weir__json_members members;
    enum weir__json_token value;
    struct weir__json json;
    int rc;

    names[0] = '\0';
    weir__json_init(&json, weir__bytes_of(text, strlen(text)));
    assert_int_equal(weir__json_next(&json, &value, &err), 0);
    assert_int_equal(value, WEIR__JSON_OBJECT);
    weir__json_members_init(&members, &json);
    while ((rc = weir__json_members_next(&members, &value, &err)) == 0) {
        if (value == WEIR__JSON_OBJECT_END) return weir__json_next(&json, &value, &err);
        snprintf(names + strlen(names), 1024 - strlen(names), "%s ", members.name);
        rc = weir__json_skip(&json, value, &err);
        if (rc != 0) return rc;
    }
    return rc;
}

static void one_after_the_other(void **state)
{
    char names[1024];

    (void)state;
    assert_int_equal(walk("{}", names), 0);
    assert_string_equal(names, "");
    assert_int_equal(walk("{\"a\":1,\"b\":{\"a\":[{}]},\"\":\"x\",\"A\":[\"a\"]}", names), 0);
    assert_string_equal(names, "a b  A ");
}

static void no_name_twice(void **state)
{
    static const char *const bad[] = {
        "{\"a\":1,\"a\":1}",
        "{\"a\":{},\"b\":1,\"\\u0061\":1}",
        "{\"\":1,\"\":2}",
    };
    char names[1024];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(walk(bad[i], names), WEIR_EINVAL);
        assert_non_null(strstr(err.text, "a name is there twice"));
    }
    walk(bad[0], names);
    assert_string_equal(err.text, "line 1, column 8: a name is there twice");
}

/* What is left of one object says nothing about the next. */
static void another_object_may_have_the_same_name(void **state)
{
    static const char text[] = "[{\"a\":1},{\"a\":2}]";
    struct weir__json_members members;
    enum weir__json_token value;
    struct weir__json json;

    (void)state;
    weir__json_init(&json, weir__bytes_of(text, sizeof text - 1));
    assert_int_equal(weir__json_next(&json, &value, &err), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__json_next(&json, &value, &err), 0);
        assert_int_equal(value, WEIR__JSON_OBJECT);
        weir__json_members_init(&members, &json);
        assert_int_equal(weir__json_members_next(&members, &value, &err), 0);
        assert_string_equal(members.name, "a");
        assert_int_equal(weir__json_members_next(&members, &value, &err), 0);
        assert_int_equal(value, WEIR__JSON_OBJECT_END);
    }
}

static void limits(void **state)
{
    static char text[WEIR__JSON_MEMBERS_MAX * 16];
    char names[1024];
    size_t len = 1;

    (void)state;
    text[0] = '{';
    for (unsigned i = 0; i < WEIR__JSON_MEMBERS_MAX; i++)
        len += (size_t)sprintf(text + len, "\"%u\":0,", i);
    text[len - 1] = '}';
    assert_int_equal(walk(text, names), 0);
    strcpy(text + len - 1, ",\"x\":0}");
    assert_int_equal(walk(text, names), WEIR_EINVAL);
    snprintf(text, sizeof text, "{\"%0255d\":0}", 0);
    assert_int_equal(walk(text, names), 0);
    snprintf(text, sizeof text, "{\"%0256d\":0}", 0);
    assert_int_equal(walk(text, names), WEIR_EINVAL);
}

/* A name may fill what was lent for strings to the last byte. */
static void names_are_read_where_strings_are_lent(void **state)
{
    static const char text[] = "{\"abc\":1}";
    struct weir__json_members members;
    enum weir__json_token value;
    struct weir__json json;
    char *room = malloc(sizeof "abc");

    (void)state;
    assert_non_null(room);
    weir__json_init(&json, weir__bytes_of(text, sizeof text - 1));
    weir__json_lend(&json, room, sizeof "abc");
    assert_int_equal(weir__json_next(&json, &value, &err), 0);
    weir__json_members_init(&members, &json);
    assert_int_equal(weir__json_members_next(&members, &value, &err), 0);
    assert_string_equal(members.name, "abc");
    free(room);
}

static void what_is_no_json(void **state)
{
    char names[1024];

    (void)state;
    assert_int_equal(walk("{\"a\"", names), WEIR_EINVAL);
    assert_int_equal(walk("{\"a\":", names), WEIR_EINVAL);
    assert_int_equal(walk("{\"a\":1", names), WEIR_EINVAL);
    assert_int_equal(walk("{\"a\":1}x", names), WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(no_name_twice),
        cmocka_unit_test(another_object_may_have_the_same_name),
        cmocka_unit_test(limits),
        cmocka_unit_test(names_are_read_where_strings_are_lent),
        cmocka_unit_test(what_is_no_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
