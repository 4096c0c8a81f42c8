/* target_test.c - segments of a path, escapes, words of a query. */
#include "http/target.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir__bytes text(const char *t)
{
    return weir__bytes_of(t, strlen(t));
}

/* "a|b|" for "/a/b". */
static void expect_segments(const char *path, const char *wanted)
{
    struct weir__bytes rest = text(path), one;
    char got[64] = "";
    size_t len = 0;

    while (weir__http_take_segment(&rest, &one))
        len += (size_t)snprintf(got + len, sizeof got - len, "%.*s|", (int)one.len,
                                (const char *)one.at);
    assert_string_equal(got, wanted);
}

static void paths_have_segments(void **state)
{
    (void)state;
    expect_segments("/a/b", "a|b|");
    expect_segments("/a/b/", "a|b|");
    expect_segments("/", "");
    expect_segments("", "");
    expect_segments("/a", "a|");
    expect_segments("*", "");
    expect_segments("/a//b", "a||b|");
    expect_segments("//a", "|a|");
    expect_segments("/%2F/x", "%2F|x|");
}

static void escapes_are_undone_once(void **state)
{
    char out[8];

    (void)state;
    assert_true(weir__http_unescape(text("a%2Fb+%25"), out, sizeof out));
    assert_string_equal(out, "a/b+%");
    assert_true(weir__http_unescape(text("%c3%A9"), out, sizeof out));
    assert_string_equal(out, "\xc3\xa9");
    assert_true(weir__http_unescape(text("1234567"), out, sizeof out));
    assert_false(weir__http_unescape(text("12345678"), out, sizeof out));
    assert_true(weir__http_unescape(text("%31%32%33%34%35%36%37"), out, sizeof out));
    assert_string_equal(out, "1234567");
    assert_false(weir__http_unescape(text("%00"), out, sizeof out));
    assert_false(weir__http_unescape(text("%"), out, sizeof out));
    assert_false(weir__http_unescape(text("%4"), out, sizeof out));
    assert_false(weir__http_unescape(weir__bytes_of("%41", 2), out, sizeof out));
    assert_false(weir__http_unescape(weir__bytes_of("x%41", 3), out, sizeof out));
    assert_false(weir__http_unescape(weir__bytes_of("x%41", 2), out, sizeof out));
    assert_false(weir__http_unescape(text("%4g"), out, sizeof out));
    assert_false(weir__http_unescape(text("%g4"), out, sizeof out));
    assert_false(weir__http_unescape(text("%+1"), out, sizeof out));
    assert_false(weir__http_unescape(text(""), out, 0));
}

/* Every byte in both places: two digits are good in either case of letters, and nothing else. */
static void only_two_digits_are_an_escape(void **state)
{
    char in[] = "%..", out[4];

    (void)state;
    for (int high = 1; high < 256; high++)
        for (int low = 1; low < 256; low++) {
            bool good = isxdigit(high) && isxdigit(low) && (high != '0' || low != '0');
            in[1] = (char)high;
            in[2] = (char)low;
            assert_int_equal(weir__http_unescape(text(in), out, sizeof out), good);
            if (good) assert_int_equal((uint8_t)out[0], strtoul(in + 1, NULL, 16));
        }
}

static void expect_word(const char *query, const char *name, const char *wanted)
{
    struct weir__bytes got = {0};
    bool found = weir__http_find_query(text(query), name, &got);

    assert_int_equal(found, wanted != NULL);
    if (!wanted) return;
    assert_int_equal(got.len, strlen(wanted));
    assert_memory_equal(got.at, wanted, got.len);
}

static void queries_have_words(void **state)
{
    (void)state;
    expect_word("timeout=60&api-version=2014-01", "timeout", "60");
    expect_word("timeout=60&api-version=2014-01", "api-version", "2014-01");
    expect_word("timeout=60", "time", NULL);
    expect_word("timeout=60", "timeouts", NULL);
    expect_word("rotate", "rotate", "");
    expect_word("rotate=", "rotate", "");
    expect_word("a=1&&rotate=x&rotate=y", "rotate", "x");
    expect_word("a=rotate", "rotate", NULL);
    expect_word("", "rotate", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_have_segments),
        cmocka_unit_test(escapes_are_undone_once),
        cmocka_unit_test(only_two_digits_are_an_escape),
        cmocka_unit_test(queries_have_words),
    };

    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
