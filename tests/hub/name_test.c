#include "hub/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void good_names(void **state)
{
    static const char *const good[] = {"a", "7", "homes", "Homes-2", "a.b_c-d", "0-0", "x_9"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        for (int kind = 0; kind < WEIR__NAME_KINDS; kind++)
            assert_int_equal(weir__name_check((enum weir__name_kind)kind, good[i], NULL), 0);
}

static void bad_names_say_where(void **state)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"", "hub name: empty"},
        {NULL, "hub name: empty"},
        {"-a", "hub name: '-' at position 1 cannot begin it"},
        {"a.", "hub name: '.' at position 2 cannot end it"},
        {"_", "hub name: '_' at position 1 cannot begin it"},
        {"a/b", "hub name: '/' at position 2 is not a letter, a digit, '.', '-' or '_'"},
        {"a b", "hub name: byte 0x20 at position 2 is not a letter, a digit, '.', '-' or '_'"},
        {"h\xc3\xa9",
         "hub name: byte 0xc3 at position 2 is not a letter, a digit, '.', '-' or '_'"},
        {"$Default", "hub name: '$' at position 1 is not a letter, a digit, '.', '-' or '_'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_error err = {0};
        assert_int_equal(weir__name_check(WEIR__NAME_HUB, rows[i].name, &err), WEIR_EINVAL);
        assert_string_equal(err.text, rows[i].text);
    }
}

static void lengths(void **state)
{
    static const struct {
        enum weir__name_kind kind;
        size_t max;
        const char *text;
    } rows[] = {
        {WEIR__NAME_HUB, 256, "hub name: 257 bytes, at most 256 are allowed"},
        {WEIR__NAME_GROUP, 50, "consumer group name: 51 bytes, at most 50 are allowed"},
        {WEIR__NAME_RULE, 256, "access rule name: 257 bytes, at most 256 are allowed"},
    };
    struct weir_error err;
    char name[300];

    (void)state;
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weir__name_check_bytes(rows[i].kind, name, rows[i].max, NULL), 0);
        assert_int_equal(weir__name_check_bytes(rows[i].kind, name, rows[i].max + 1, &err),
                         WEIR_EINVAL);
        assert_string_equal(err.text, rows[i].text);
    }
}

static void default_group(void **state)
{
    (void)state;
    assert_int_equal(weir__name_check(WEIR__NAME_GROUP, "$Default", NULL), 0);
    assert_int_equal(weir__name_check(WEIR__NAME_GROUP, "$default", NULL), 0);
    assert_int_equal(weir__name_check(WEIR__NAME_GROUP, "$Defaul", NULL), WEIR_EINVAL);
    assert_int_equal(weir__name_check_bytes(WEIR__NAME_GROUP, "$Default/", 8, NULL), 0);
    assert_int_equal(weir__name_check_bytes(WEIR__NAME_GROUP, "$Default/", 9, NULL), WEIR_EINVAL);
    assert_int_equal(weir__name_check_bytes(WEIR__NAME_GROUP, "a\0b", 3, NULL), WEIR_EINVAL);
}

/* Every byte alone, in the middle, and compared with every other. */
static void each_byte_has_its_place(void **state)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz",
                      capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    (void)state;
    for (int c = 1; c < 256; c++) {
        char one[] = {(char)c, 0}, middle[] = {'a', (char)c, 'b', 0}, want[128];
        bool letter = strchr(letters, c) || strchr(capitals, c), digit = strchr("0123456789", c);
        bool inside = letter || digit || strchr(".-_", c);
        struct weir_error err = {0};

        assert_int_equal(weir__name_check(WEIR__NAME_RULE, one, NULL),
                         letter || digit ? 0 : WEIR_EINVAL);
        assert_int_equal(weir__name_check(WEIR__NAME_RULE, middle, &err), inside ? 0 : WEIR_EINVAL);
        snprintf(want, sizeof want,
                 c > ' ' && c < 0x7f ? "access rule name: '%c' at position 2 is not a letter, a "
                                       "digit, '.', '-' or '_'"
                                     : "access rule name: byte 0x%02x at position 2 is not a "
                                       "letter, a digit, '.', '-' or '_'",
                 c);
        assert_string_equal(err.text, inside ? "" : want);
        for (int d = 1; d < 256; d++) {
            bool alike = letter && (c | 32) == (d | 32); /* the bit between the cases */
            assert_int_equal(weir__name_equal(one, (char[]){(char)d, 0}), c == d || alike);
        }
    }
}

static void compared_without_case(void **state)
{
    (void)state;
    assert_true(weir__name_equal("Homes", "hOMES"));
    assert_true(weir__name_equal("$Default", "$default"));
    assert_false(weir__name_equal("homes", "home"));
    assert_false(weir__name_equal("a-b", "a_b"));
    assert_false(weir__name_equal("[", "{")); /* one bit apart, as letters of two cases are */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names),
        cmocka_unit_test(bad_names_say_where),
        cmocka_unit_test(lengths),
        cmocka_unit_test(default_group),
        cmocka_unit_test(each_byte_has_its_place),
        cmocka_unit_test(compared_without_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
