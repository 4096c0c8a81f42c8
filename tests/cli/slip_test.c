#include "cli/slip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void slips_are_counted(void **state)
{
    static const struct {
        const char *a, *b;
        unsigned slips;
    } cases[] = {
        {"", "", 0},           {"", "ab", 2},         {"ab", "", 2},
        {"serve", "serve", 0}, {"serve", "srve", 1},  {"serve", "serrve", 1},
        {"serve", "sarve", 1}, {"serve", "evres", 3}, {"tail", "tial", 1},
        {"ab", "ba", 1},       {"abc", "cab", 2},     {"abcd", "badc", 2},
        {"send", "end", 1},    {"send", "sends", 1},  {"kitten", "sitting", 3},
    };
    char longest[WEIR__SLIP_BYTES + 2];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (weir__slip_distance(cases[i].a, cases[i].b) != cases[i].slips)
            fail_msg("%s, %s: %u", cases[i].a, cases[i].b,
                     weir__slip_distance(cases[i].a, cases[i].b));
    memset(longest, 'z', sizeof longest);
    longest[WEIR__SLIP_BYTES] = '\0';
    assert_int_equal(weir__slip_distance("z", longest), WEIR__SLIP_BYTES - 1);
    longest[WEIR__SLIP_BYTES] = 'z';
    longest[WEIR__SLIP_BYTES + 1] = '\0';
    assert_int_equal(weir__slip_distance("z", longest), WEIR__SLIP_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slips_are_counted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
