#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* One character for each token, with the text of those that have one: {'a':1} */
static int tell(struct weir__json *j, char *to, size_t room, struct weir_error *err)
{
    static const char marks[] = "${}[]:\"#tfn";
    enum weir__json_token token;
    size_t len = 0;
    int rc;

    do {
        rc = weir__json_next(j, &token, err);
        if (rc != 0) return rc;
        len += (size_t)snprintf(to + len, room - len, "%c", marks[token]);
        if (token == WEIR__JSON_NAME || token == WEIR__JSON_TEXT || token == WEIR__JSON_NUMBER)
            len += (size_t)snprintf(to + len, room - len, "%s ", j->text);
        assert_true(len < room);
    } while (token != WEIR__JSON_END);
    return 0;
}

static void expect_tokens(const char *text, const char *tokens)
{
    struct weir__json j;
    struct weir_error err = {0};
    char told[4096] = "";

    weir__json_init(&j, weir__bytes_of(text, strlen(text)));
    if (tell(&j, told, sizeof told, &err) != 0) fail_msg("%s: %s", text, err.text);
    assert_string_equal(told, tokens);
}

static void every_kind_of_token(void **state)
{
    (void)state;
    expect_tokens("{}", "{}$");
    expect_tokens("[]", "[]$");
    expect_tokens(" \"a\" ", "\"a $");
    expect_tokens("true", "t$");
    expect_tokens("\xef\xbb\xbfnull", "n$");
    expect_tokens("{\"a\":1,\"b\":[false,null,{}],\"\":\"\"}", "{:a #1 :b [fn{}]: \" }$");
    expect_tokens("[\n[\t[\r\n]\r],0]", "[[[]]#0 ]$");
    expect_tokens("[\"longer\",7]", "[\"longer #7 ]$");
    expect_tokens("[0,-0,10,1.50,-2e7,3E+08,4.0e-1]", "[#0 #-0 #10 #1.50 #-2e7 #3E+08 #4.0e-1 ]$");
}

static void escapes_become_utf8(void **state)
{
    (void)state;
    expect_tokens("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\"\\/\b\f\n\r\t $");
    expect_tokens("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"",
                  "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 $");
    expect_tokens("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
                  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f $");
}

static void expect_failure(const char *text, size_t len, const char *why)
{
    struct weir__json j;
    struct weir_error err = {0};
    char told[65536];

    memset(&j, '#', sizeof j);
    weir__json_init(&j, weir__bytes_of(text, len));
    if (tell(&j, told, sizeof told, &err) != WEIR_EINVAL) fail_msg("taken: %s", text);
    if (!strstr(err.text, why)) fail_msg("%s: '%s' without '%s'", text, err.text, why);
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "line 1, column 1: a value should be here, but the text ends"},
        {"  ", "line 1, column 3"},
        {"{", "line 1, column 2: a name in quotes should be here"},
        {"[1,]", "line 1, column 4: a value should be here"},
        {"[,1]", "line 1, column 2"},
        {"[1 2]", "line 1, column 4: ',' or ']' should be here"},
        {"{\"a\":1,}", "line 1, column 8: a name in quotes"},
        {"{\"\\x\":1}", "line 1, column 4: an unknown escape"},
        {"{\"a\" 1}", "line 1, column 6: ':' should be here"},
        {"{\"a\":1]", "line 1, column 7: ',' or '}'"},
        {"{1:2}", "line 1, column 2"},
        {"{'a':2}", "line 1, column 2"},
        {"{}{}", "line 1, column 3: something follows the end"},
        {"{\n  \"a\": tru\n}", "line 2, column 8: a value should be here"},
        {"\n\n // no\n{}", "line 3, column 2"},
        {"[01]", "line 1, column 3"},
        {"[1.]", "line 1, column 4: a digit"},
        {"[.5]", "line 1, column 2"},
        {"[-]", "line 1, column 3"},
        {"[1e]", "line 1, column 4"},
        {"[+1]", "line 1, column 2"},
        {"[NaN]", "line 1, column 2"},
        {"\"ab", "line 1, column 4: a string ends with"},
        {"\"\xc3\xa9", "line 1, column 3: a string ends with"},
        {"\"a\nb\"", "line 1, column 3: a string ends with"},
        {"\"\\x\"", "line 1, column 3: an unknown escape"},
        {"\"\\u12g4\"", "line 1, column 6: \\u needs four"},
        {"\"\\u0000\"", "a NUL is not allowed"},
        {"\"\\ud800\"", "half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
        {"\"\\udc00\\ud800\"", "half of a surrogate pair"},
        {"\"\xc3\"", "bytes that are not UTF-8"},
        {"\"\xc0\x80\"", "bytes that are not UTF-8"},
        {"\"\xed\xa0\x80\"", "bytes that are not UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "bytes that are not UTF-8"},
        {"\"\xe2\x82\xac\xff\"", "line 1, column 3: bytes"}, /* columns are characters */
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_failure(bad[i].text, strlen(bad[i].text), bad[i].why);
    expect_failure("\"a\0b\"", 5, "line 1, column 3");
    expect_failure("\"\\\0\"", 4, "line 1, column 3: an unknown escape");
    expect_failure("\"\\u000\0\"", 8, "line 1, column 7: \\u needs four");
    expect_failure("[true]", 4, "line 1, column 2: a value should be here");
    expect_failure("[1 ", 2, "line 1, column 3: ',' or ']' should be here, but the text ends");
}

static void limits_are_kept(void **state)
{
    char text[WEIR__JSON_TEXT_MAX + 16];
    struct weir__json j;
    enum weir__json_token token;

    (void)state;
    memset(text, '[', sizeof text);
    memset(text + WEIR__JSON_DEPTH_MAX, ']', WEIR__JSON_DEPTH_MAX);
    memset(&j, '#', sizeof j);
    weir__json_init(&j, weir__bytes_of(text, (size_t)2 * WEIR__JSON_DEPTH_MAX));
    assert_string_equal(j.text, "");
    assert_int_equal(j.text_len, 0);
    do assert_int_equal(weir__json_next(&j, &token, NULL), 0);
    while (token != WEIR__JSON_END);
    assert_int_equal(weir__json_next(&j, &token, NULL), 0);
    assert_int_equal(token, WEIR__JSON_END);
    memset(text, '[', sizeof text);
    expect_failure(text, WEIR__JSON_DEPTH_MAX + 1, "too many levels");

    memset(text, '7', sizeof text);
    weir__json_init(&j, weir__bytes_of(text, WEIR__JSON_TEXT_MAX));
    assert_int_equal(weir__json_next(&j, &token, NULL), 0);
    assert_int_equal(j.text_len, WEIR__JSON_TEXT_MAX);
    expect_failure(text, WEIR__JSON_TEXT_MAX + 1, "longer than can be");
    text[0] = text[WEIR__JSON_TEXT_MAX + 2] = '"';
    expect_failure(text, WEIR__JSON_TEXT_MAX + 3, "longer than can be");
}

static void room_can_be_lent(void **state)
{
    char text[3 * WEIR__JSON_TEXT_MAX], room[sizeof text];
    enum weir__json_token token;
    struct weir__json j;

    (void)state;
    memset(text, 'x', sizeof text);
    text[0] = text[sizeof text - 1] = '"';
    weir__json_init(&j, weir__bytes_of(text, sizeof text));
    weir__json_lend(&j, room, sizeof text - 1);
    assert_int_equal(weir__json_next(&j, &token, NULL), 0);
    assert_int_equal(j.text_len, sizeof text - 2);
    assert_int_equal(strlen(room), sizeof text - 2);
    weir__json_init(&j, weir__bytes_of(text, sizeof text));
    weir__json_lend(&j, room, sizeof text - 2);
    assert_int_equal(weir__json_next(&j, &token, NULL), WEIR_EINVAL);
}

static void values_can_be_passed_over(void **state)
{
    static const char text[] = "[{\"a\":[1,{}],\"b\":2}, \"x\",\n [[]], 7]";
    struct weir__json j;
    enum weir__json_token token;
    unsigned line, column;

    (void)state;
    weir__json_init(&j, weir__bytes_of(text, sizeof text - 1));
    assert_int_equal(weir__json_next(&j, &token, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir__json_next(&j, &token, NULL), 0);
        assert_int_equal(weir__json_skip(&j, token, NULL), 0);
    }
    assert_int_equal(weir__json_next(&j, &token, NULL), 0);
    assert_int_equal(token, WEIR__JSON_NUMBER);
    assert_string_equal(j.text, "7");
    weir__json_place(&j, &line, &column);
    assert_int_equal(line, 2);
    assert_int_equal(column, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_token),
        cmocka_unit_test(escapes_become_utf8),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(room_can_be_lent),
        cmocka_unit_test(values_can_be_passed_over),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
