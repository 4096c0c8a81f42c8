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
    assert_string_equal(heard, "a?weir: b???[2Jc?");
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
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(nobody_need_listen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
