#include "server/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define OFFSET "amqp.annotation.x-opt-offset"
#define SEQUENCE "amqp.annotation.x-opt-sequence-number"
#define TIME "amqp.annotation.x-opt-enqueued-time"

static struct weir_error err;

static int parse(const char *text, struct weir__position *out)
{
    return weir__selector_parse(weir__bytes_of(text, strlen(text)), out, &err);
}

/* As clients write them: quoted by most, unquoted by .NET, without a space by C++. */
static void all_forms(void **state)
{
    static const struct {
        const char *text;
        struct weir__position want;
    } rows[] = {
        {OFFSET " > '-1'", {WEIR__FROM_EARLIEST, false, -1}},
        {OFFSET " > -1", {WEIR__FROM_EARLIEST, false, -1}},
        {OFFSET " > '@latest'", {WEIR__FROM_LATEST, false, 0}},
        {OFFSET " > @latest", {WEIR__FROM_LATEST, false, 0}},
        {OFFSET " > '1000000000008192'", {WEIR__FROM_OFFSET, false, 1000000000008192}},
        {OFFSET " > ''", {WEIR__FROM_EARLIEST, false, 0}},
        {OFFSET " >= '12'", {WEIR__FROM_OFFSET, true, 12}},
        {OFFSET " >'12'", {WEIR__FROM_OFFSET, false, 12}},
        {OFFSET ">='12'", {WEIR__FROM_OFFSET, true, 12}},
        {SEQUENCE " > '0'", {WEIR__FROM_SEQUENCE, false, 0}},
        {SEQUENCE " >= 7", {WEIR__FROM_SEQUENCE, true, 7}},
        {SEQUENCE " > '-1'", {WEIR__FROM_EARLIEST, false, -1}},
        {SEQUENCE " > 9223372036854775807", {WEIR__FROM_SEQUENCE, false, INT64_MAX}},
        {TIME " > '1700000000000'", {WEIR__FROM_TIME, false, 1700000000000}},
        {TIME " >= '-62135596800000'", {WEIR__FROM_TIME, true, -62135596800000}},
        {"  " TIME "\t> 5 ", {WEIR__FROM_TIME, false, 5}},
    };
    struct weir__position got;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].text, &got), 0);
        assert_int_equal(got.kind, rows[i].want.kind);
        assert_int_equal(got.inclusive, rows[i].want.inclusive);
        assert_int_equal(got.value, rows[i].want.value);
    }
}

static void nonsense(void **state)
{
    static const char *const rows[] = {
        "",
        "color = 'red'",
        OFFSET,
        OFFSET " ",
        OFFSET " < '5'",
        OFFSET " > ",
        OFFSET " > '5",
        OFFSET " > 5'",
        SEQUENCE " > ''",
        OFFSET " > '",
        OFFSET " > '-'",
        OFFSET " > 'x'",
        OFFSET " > '5' OR 1 = 1",
        OFFSET " > '2:12:3'",
        OFFSET " > '9223372036854775808'",
        SEQUENCE " > '@latest'",
        TIME " > '@latest'",
        "amqp.annotation.x-opt-offsets > '5'",
        "x-opt-offset > '5'",
    };
    struct weir__position got;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(parse(rows[i], &got), WEIR_EINVAL);
    assert_int_equal(parse(OFFSET " > 'x'", &got), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "expected a number at character 33"));
}

static void too_long(void **state)
{
    char text[WEIR__SELECTOR_BYTES_MAX + 2];
    struct weir__position got;

    (void)state;
    memset(text, ' ', sizeof text);
    assert_int_equal(weir__selector_parse(weir__bytes_of(text, sizeof text - 1), &got, &err),
                     WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
