#include "base/logging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char heard[2048];

static void hear(enum weir__level level, const char *room, const char *line, void *user)
{
    assert_int_equal(level, WEIR__WARN);
    assert_string_equal(room, "room");
    assert_ptr_equal(user, heard);
    strcpy(heard, line);
}

static const struct weir__logger logger = {hear, heard};

static void a_line_is_one_line(void **state)
{
    (void)state;
    weir__log_line(&logger, WEIR__WARN, "room", "%s",
                   "gr\xc3\xbc\xc3\x9f"
                   "e");
    assert_string_equal(heard, "gr\xc3\xbc\xc3\x9f"
                               "e");
    weir__log_line(&logger, WEIR__WARN, "room", "%s", "a\nweir: b\r\t\x1b[2Jc\x7f");
    assert_string_equal(heard, "a\\x0aweir: b\\x0d\\x09\\x1b[2Jc\\x7f");
}

/* C1 and what turns the direction of text: as characters, and as bytes that are no UTF-8. */
static void nothing_steers_a_terminal(void **state)
{
    static const char *const rows[][2] = {
        {"a\xc2\x9b"
         "2Jb",
         "a\\u009b2Jb"},
        {"a\x9b"
         "2Jb",
         "a\\x9b2Jb"},
        {"x\xe2\x80\xaegpj", "x\\u202egpj"},
        {"\xef\xbb\xbfx\xe2\x81\xa6", "\\ufeffx\\u2066"},
        {"\xc0\x8a\xe0\x80\x8a", "\\xc0\\x8a\\xe0\\x80\\x8a"},
        {"\xed\xa0\x80 \xf4\x90\x80\x80", "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80"},
        {"\xf0\x9f\x8c\x8a\xc2\xa0\xe2\x82", "\xf0\x9f\x8c\x8a\xc2\xa0\\xe2\\x82"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir__log_line(&logger, WEIR__WARN, "room", "%s", rows[i][0]);
        assert_string_equal(heard, rows[i][1]);
    }
}

static void a_long_line_is_cut(void **state)
{
    (void)state;
    weir__log_line(&logger, WEIR__WARN, "room", "%2000d", 7);
    assert_int_equal(strlen(heard), 1023);
}

static void nobody_need_listen(void **state)
{
    (void)state;
    weir__log_line(NULL, WEIR__WARN, "room", "%d", 1);
    weir__log_line(&(struct weir__logger){NULL, NULL}, WEIR__WARN, "room", "%d", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_one_line),
        cmocka_unit_test(nothing_steers_a_terminal),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(nobody_need_listen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
