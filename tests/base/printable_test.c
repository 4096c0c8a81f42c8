#include "base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void expect_text(const char *text, const char *shown)
{
    char to[256];

    assert_int_equal(weir__printable(to, sizeof to, weir__bytes_of(text, strlen(text))),
                     strlen(shown));
    assert_string_equal(to, shown);
}

/* The first and the last of each range, and their neighbours. */
static void what_steers_a_terminal_is_spelled_out(void **state)
{
    (void)state;
    expect_text("\x01\x1f ~\x7f", "\\x01\\x1f ~\\x7f");
    expect_text("\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0");
    expect_text("\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\u061c\xd8\x9d");
    expect_text("\xe2\x80\x8a\xe2\x80\x8b\xe2\x80\x8f\xe2\x80\x90",
                "\xe2\x80\x8a\\u200b\\u200f\xe2\x80\x90");
    expect_text("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf",
                "\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf");
    expect_text("\xe2\x81\x9f\xe2\x81\xa0\xe2\x81\xaf\xe2\x81\xb0",
                "\xe2\x81\x9f\\u2060\\u206f\xe2\x81\xb0");
    expect_text("\xef\xbb\xbe\xef\xbb\xbf\xef\xbc\x80", "\xef\xbb\xbe\\ufeff\xef\xbc\x80");
    expect_text("\xef\xbf\xb8\xef\xbf\xb9\xef\xbf\xbb\xef\xbf\xbc",
                "\xef\xbf\xb8\\ufff9\\ufffb\xef\xbf\xbc");
}

/* The shortest and the largest form of each length, and those just outside. */
static void what_is_no_utf8_is_spelled_out(void **state)
{
    static const char *const good[] = {
        "\xdf\xbf",         "\xe0\xa0\x80",     "\xed\x9f\xbf",     "\xee\x80\x80",
        "\xf0\x90\x80\x80", "\xf3\xbf\xbf\xbf", "\xf4\x8f\xbf\xbf",
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) expect_text(good[i], good[i]);
    expect_text("\xc1\xbf", "\\xc1\\xbf");
    expect_text("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");
    expect_text("\xed\xbf\xbf", "\\xed\\xbf\\xbf");
    expect_text("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
    expect_text("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
    expect_text("\xe2\x82x", "\\xe2\\x82x");
    expect_text("\xf0\x9f\x8c", "\\xf0\\x9f\\x8c");
    assert_int_equal(weir__printable((char[8]){0}, 8, weir__bytes_of("a\0b", 3)), 6);
    assert_int_equal(weir__printable((char[8]){0}, 8, weir__bytes_of("\xc3\xa9", 1)), 4);
}

/* A character or an escape is there as a whole or not at all, and so is the NUL. */
static void as_much_as_there_is_room_for(void **state)
{
    static const char text[] = "a\n\xc3\xa9z", shown[] = "a\\x0a\xc3\xa9z";
    static const size_t lengths[] = {0, 0, 1, 1, 1, 1, 5, 5, 7, 8, 8};
    char to[16];

    (void)state;
    for (size_t room = 1; room < sizeof lengths / sizeof lengths[0]; room++) {
        memset(to, '#', sizeof to);
        assert_int_equal(weir__printable(to, room, weir__bytes_of(text, strlen(text))),
                         lengths[room]);
        assert_memory_equal(to, shown, lengths[room]);
        assert_int_equal(to[lengths[room]], '\0');
        for (size_t i = room; i < sizeof to; i++) assert_int_equal(to[i], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steers_a_terminal_is_spelled_out),
        cmocka_unit_test(what_is_no_utf8_is_spelled_out),
        cmocka_unit_test(as_much_as_there_is_room_for),
    };

    return cmocka_run_group_tests_name("printable", tests, NULL, NULL);
}
