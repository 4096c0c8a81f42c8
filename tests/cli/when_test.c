#include "cli/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cli/from.h"

#define DAY_MS INT64_C(86400000)
#define YEAR_0_MS INT64_C(-62167219200000)
#define YEAR_9999_MS INT64_C(253402300799999)

static void expect_text(int64_t ms, const char *text)
{
    char out[WEIR__WHEN_BYTES];

    assert_string_equal(weir__when_text(ms, out), text);
}

static void expect_ms(const char *text, int64_t ms)
{
    int64_t out = -1;

    if (!weir__when_parse(text, &out)) fail_msg("refused: %s", text);
    if (out != ms) fail_msg("%s: %lld instead of %lld", text, (long long)out, (long long)ms);
}

static void times_have_their_milliseconds(void **state)
{
    (void)state;
    expect_text(0, "1970-01-01T00:00:00.000Z");
    expect_text(1, "1970-01-01T00:00:00.001Z");
    expect_text(-1, "1969-12-31T23:59:59.999Z");
    expect_text(-DAY_MS, "1969-12-31T00:00:00.000Z");
    expect_text(DAY_MS - 1, "1970-01-01T23:59:59.999Z");
    expect_text(INT64_C(1769848200125), "2026-01-31T08:30:00.125Z");
}

static void years_are_held_within_four_digits(void **state)
{
    (void)state;
    expect_text(YEAR_0_MS, "0000-01-01T00:00:00.000Z");
    expect_text(YEAR_0_MS - 1, "0000-01-01T00:00:00.000Z");
    expect_text(INT64_MIN, "0000-01-01T00:00:00.000Z");
    expect_text(YEAR_9999_MS, "9999-12-31T23:59:59.999Z");
    expect_text(YEAR_9999_MS + 1, "9999-12-31T23:59:59.999Z");
    expect_text(INT64_MAX, "9999-12-31T23:59:59.999Z");
}

static int length_of(int year, int month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : lengths[month - 1];
}

/* The first and the last day of a month, both ways; and no day behind the last. */
static void expect_month(int year, int month, int64_t first_ms)
{
    int length = length_of(year, month);
    int64_t none;
    char text[64];

    snprintf(text, sizeof text, "%04d-%02d-01T00:00:00.000Z", year, month);
    expect_text(first_ms, text);
    expect_ms(text, first_ms);
    snprintf(text, sizeof text, "%04d-%02d-%02dT23:59:59.999Z", year, month, length);
    expect_text(first_ms + length * DAY_MS - 1, text);
    expect_ms(text, first_ms + length * DAY_MS - 1);
    snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, length + 1);
    assert_false(weir__when_parse(text, &none));
}

/* Two eras of 400 years, and the last years that there are. */
static void every_month_has_its_days(void **state)
{
    int64_t ms = YEAR_0_MS;

    (void)state;
    for (int year = 0; year <= 9999; year++)
        for (int month = 1; month <= 12; month++) {
            if (year < 801 || (year > 1899 && year < 2101) || year > 9900)
                expect_month(year, month, ms);
            ms += length_of(year, month) * DAY_MS;
        }
    assert_true(ms == YEAR_9999_MS + 1);
}

static void times_are_read_in_every_form(void **state)
{
    const int64_t day = INT64_C(1769817600000); /* 2026-01-31 */

    (void)state;
    expect_ms("0", 0);
    expect_ms("1769848200125", INT64_C(1769848200125));
    expect_ms("2026-01-31", day);
    expect_ms("2026-01-31Z", day);
    expect_ms("2026-01-31T08:30", day + 30600000);
    expect_ms("2026-01-31T08:30Z", day + 30600000);
    expect_ms("2026-01-31T08:30:59", day + 30659000);
    expect_ms("2026-01-31T23:59:59.9", day + DAY_MS - 100);
    expect_ms("2026-01-31T00:00:00.12", day + 120);
    expect_ms("2026-01-31T00:00:00.1239", day + 123);
    expect_ms("2026-01-31T00:00:00.00099999999999", day);
    expect_ms("2026-01-31T00:00+01:00", day - 3600000);
    expect_ms("2026-01-31T00:00:00.5-23:59", day + 500 + 23 * 3600000 + 59 * 60000);
    expect_ms("2026-01-31T00:00:01+00:01", day + 1000 - 60000);
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const bad[] = {
        "2026-01-:30",
        "2026-01-01+:30",
        "2026-01-01T10:00-:30",
        "",
        "Z",
        "-1",
        "2026-1-31",
        "2026-01",
        "2026-00-01",
        "2026-13-01",
        "2026-01-00",
        "2026-01-32",
        "2026/01/31",
        "2026-01-31 08:30",
        "2026-01-31T",
        "2026-01-31T08",
        "2026-01-31T24:00",
        "2026-01-31T08:60",
        "2026-01-31T08:30:60",
        "2026-01-31T08:30:",
        "2026-01-31T08:30:00.",
        "2026-01-31T08:30:00.x",
        "2026-01-31T08:30:00,5",
        "2026-01-31T08:30ZZ",
        "2026-01-31T08:30z",
        "2026-01-31T08:30+",
        "2026-01-31T08:30+1:00",
        "2026-01-31T08:30+24:00",
        "2026-01-31T08:30+01:60",
        "2026-01-31T08:30+01",
        "2026-01-31T08:30+01:00Z",
        "2026-01-31T08:30 01:00",
        "2026-01-3:",
        "2026-01-3/",
        "9223372036854775808",
    };
    int64_t out;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (weir__when_parse(bad[i], &out)) fail_msg("taken: %s", bad[i]);
}

/* ---- positions ---- */

static void expect_from(const char *text, enum weir_from from, int64_t value)
{
    struct weir_position p = {.from = WEIR_FROM_TIME, .value = 99};

    if (!weir__from_parse(text, &p)) fail_msg("refused: %s", text);
    assert_int_equal(p.from, from);
    assert_true(p.value == value);
}

static void positions_are_read(void **state)
{
    static const char *const bad[] = {"",          "Earliest",    "earliest:", "latest1",
                                      "offset",    "offset:",     "offset:-1", "offset:1x",
                                      "sequence:", "sequence: 1", "time:",     "time:-",
                                      "time:-5",   "time:--5s"};
    struct weir_position p;

    (void)state;
    expect_from("earliest", WEIR_FROM_EARLIEST, 0);
    expect_from("latest", WEIR_FROM_LATEST, 0);
    expect_from("offset:1000000000000001", WEIR_FROM_OFFSET, INT64_C(1000000000000001));
    expect_from("sequence:0", WEIR_FROM_SEQUENCE, 0);
    expect_from("sequence:9223372036854775807", WEIR_FROM_SEQUENCE, INT64_MAX);
    expect_from("time:2026-01-31", WEIR_FROM_TIME, INT64_C(1769817600000));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (weir__from_parse(bad[i], &p)) fail_msg("taken: %s", bad[i]);
}

static void so_long_ago_is_counted_from_now(void **state)
{
    struct weir__clock clock = weir__clock_system();
    int64_t before = clock.wall_ms(clock.self);
    struct weir_position p;

    (void)state;
    assert_true(weir__from_parse("time:-90s", &p));
    assert_int_equal(p.from, WEIR_FROM_TIME);
    assert_true(p.value >= before - 90000);
    assert_true(p.value <= clock.wall_ms(clock.self) - 90000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_their_milliseconds),
        cmocka_unit_test(years_are_held_within_four_digits),
        cmocka_unit_test(every_month_has_its_days),
        cmocka_unit_test(times_are_read_in_every_form),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(positions_are_read),
        cmocka_unit_test(so_long_ago_is_counted_from_now),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
