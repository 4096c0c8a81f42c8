#include "server/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
        {OFFSET " > '0'\t", {WEIR__FROM_OFFSET, false, 0}},
        {OFFSET " >= ''", {WEIR__FROM_EARLIEST, true, 0}},
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
#define WANTED "amqp.annotation.x-opt-offset, -sequence-number or -enqueued-time"
    static const struct {
        const char *text, *expected;
        int at;
    } rows[] = {
        {"", WANTED, 1},
        {"color = 'red'", WANTED, 1},
        {" \tx-opt-offset > '5'", WANTED, 3},
        {"amqp.annotation.x-opt-offse", WANTED, 17},
        {"amqp.annotation.x-opt-offsets > '5'", "> or >=", 29},
        {OFFSET, "> or >=", 29},
        {OFFSET " ", "> or >=", 30},
        {OFFSET " < '5'", "> or >=", 30},
        {OFFSET " > ", "a number", 32},
        {OFFSET " > '", "a number", 33},
        {OFFSET " > '-'", "a number", 34},
        {OFFSET " > 'x'", "a number", 33},
        {OFFSET " > '9223372036854775808'", "a number", 51},
        {OFFSET " > '9223372036854775810'", "a number", 51},
        {SEQUENCE " > ''", "a number", 42},
        {SEQUENCE " > '@latest'", "a number", 42},
        {TIME " > '@latest'", "a number", 40},
        {OFFSET " > '5", "a closing quote", 34},
        {OFFSET " > '2:12:3'", "a closing quote", 34},
        {OFFSET " > '@latest", "a closing quote", 40},
        {OFFSET " > 5'", "the end", 33},
        {OFFSET " > '5' OR 1 = 1", "the end", 36},
    };
    struct weir__position got;
    char text[WEIR_ERROR_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].text, &got), WEIR_EINVAL);
        snprintf(text, sizeof text,
                 "The filter '%s' is not understood: expected %s at character %d.", rows[i].text,
                 rows[i].expected, rows[i].at);
        assert_string_equal(err.text, text);
    }
}

/* Of a long one only the beginning is repeated, and one that is too long is not looked at. */
static void long_ones(void **state)
{
    char filter[WEIR__SELECTOR_BYTES_MAX + 1], text[WEIR_ERROR_TEXT_BYTES];
    struct weir__position got;

    (void)state;
    memset(filter, ' ', sizeof filter);
    memcpy(filter + WEIR__SELECTOR_BYTES_MAX - strlen(OFFSET ">7"), OFFSET ">7",
           strlen(OFFSET ">7"));
    assert_int_equal(weir__selector_parse(weir__bytes_of(filter, WEIR__SELECTOR_BYTES_MAX), &got,
                                          &err),
                     0);
    assert_int_equal(got.value, 7);
    assert_int_equal(weir__selector_parse(weir__bytes_of(filter, sizeof filter), &got, &err),
                     WEIR_EINVAL);
    assert_string_equal(err.text, "The filter has 513 bytes, at most 512 are allowed.");
    memset(filter, 'x', 201);
    for (size_t len = 200; len <= 201; len++) {
        assert_int_equal(weir__selector_parse(weir__bytes_of(filter, len), &got, &err),
                         WEIR_EINVAL);
        snprintf(text, sizeof text,
                 "The filter '%.200s' is not understood: expected " WANTED " at character 1.",
                 filter);
        assert_string_equal(err.text, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(long_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
