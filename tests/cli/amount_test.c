#include "cli/amount.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static void sizes_have_one_decimal(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1023, "1023 bytes"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {UINT64_C(1) << 20, "1.0 MiB"},
        {UINT64_C(39) << 17, "4.9 MiB"},
        {UINT64_C(1) << 30, "1.0 GiB"},
        {UINT64_C(1) << 40, "1.0 TiB"},
        {UINT64_C(1) << 50, "1024.0 TiB"},
        {UINT64_C(1) << 63, "8388608.0 TiB"},
    };
    char out[WEIR__AMOUNT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(weir__amount_size(cases[i].bytes, out), cases[i].text);
}

static void spans_have_their_two_largest_units(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "0ms"},        {999, "999ms"},          {SECOND, "1s"},  {MINUTE - 1, "59s"},
        {MINUTE, "1m 0s"}, {HOUR - 1, "59m 59s"},   {HOUR, "1h 0m"}, {DAY - 1, "23h 59m"},
        {DAY, "1d 0h"},    {7 * DAY - 1, "6d 23h"},
    };
    char out[WEIR__AMOUNT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(weir__amount_span(cases[i].ms, out), cases[i].text);
}

static void limits_are_exact(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1023, "1023 bytes"},
        {1024, "1K"},
        {1025, "1025 bytes"},
        {1536, "1536 bytes"},
        {UINT64_C(10) << 20, "10M"},
        {(UINT64_C(10) << 20) + 1024, "10241K"},
        {UINT64_C(3) << 30, "3G"},
        {UINT64_C(2) << 40, "2048G"},
    };
    char out[WEIR__AMOUNT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(weir__amount_limit(cases[i].bytes, out), cases[i].text);
}

static void ages_are_exact(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {-1, "for ever"},     {0, "0d"},
        {1, "1ms"},           {1500, "1500ms"},
        {90 * SECOND, "90s"}, {90 * MINUTE, "90m"},
        {12 * HOUR, "12h"},   {7 * DAY, "7d"},
        {36 * HOUR, "36h"},   {DAY + 1, "86400001ms"},
    };
    char out[WEIR__AMOUNT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(weir__amount_age(cases[i].ms, out), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_one_decimal),
        cmocka_unit_test(spans_have_their_two_largest_units),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(ages_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
