/* json_test.c - events as lines of JSON, and back. */
#include "cli/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/parse_event.h"
#include "support/allocs.h"

static char *printed;
static size_t printed_len;

static void expect_printed(const struct weir_event *e, const char *line)
{
    FILE *to = open_memstream(&printed, &printed_len);

    assert_non_null(to);
    weir__json_event(to, e);
    fclose(to);
    assert_string_equal(printed, line);
    free(printed);
}

static void expect_quoted(struct weir_bytes text, const char *quoted)
{
    FILE *to = open_memstream(&printed, &printed_len);

    assert_non_null(to);
    weir__json_text(to, text);
    fclose(to);
    assert_string_equal(printed, quoted);
    free(printed);
}

static void text_is_escaped_as_little_as_may_be(void **state)
{
    (void)state;
    expect_quoted(weir_text(""), "\"\"");
    expect_quoted(weir_text("a/b~ \x7f"), "\"a/b~ \x7f\"");
    expect_quoted(weir_text("\"\\"), "\"\\\"\\\\\"");
    expect_quoted(weir_text("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\"");
    expect_quoted(weir_bytes("\0\1\37\40", 4), "\"\\u0000\\u0001\\u001f \"");
    expect_quoted(weir_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

/* Each byte that begins no character stands for itself: U+FFFD. */
static void what_is_not_utf8_is_replaced(void **state)
{
    (void)state;
    expect_quoted(weir_text("a\xff"
                            "b"),
                  "\"a\xef\xbf\xbd"
                  "b\"");
    expect_quoted(weir_text("\xc3"), "\"\xef\xbf\xbd\"");
    expect_quoted(weir_text("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    expect_quoted(weir_bytes("\xc3\xa9", 1), "\"\xef\xbf\xbd\"");
    expect_quoted(weir_bytes("a\xc3\xa9", 2), "\"a\xef\xbf\xbd\"");
}

static void values_keep_their_kind(void **state)
{
    struct weir_property p[] = {
        {weir_text("null"), {.type = WEIR_NULL}},
        {weir_text("yes"), weir_value_bool(true)},
        {weir_text("no"), weir_value_bool(false)},
        {weir_text("int"), weir_value_int(INT64_MIN)},
        {weir_text("uint"), {.type = WEIR_UINT, .natural = UINT64_MAX}},
        {weir_text("half"), weir_value_double(0.5)},
        {weir_text("whole"), weir_value_double(3)},
        {weir_text("large"), weir_value_double(1e300)},
        {weir_text("inf"), weir_value_double(-INFINITY)},
        {weir_text("time"), {.type = WEIR_TIME, .time_ms = 1}},
        {weir_text("text"), weir_value_text("t")},
        {weir_text("uuid"), {.type = WEIR_UUID, .bytes = weir_bytes("0123456789abcdef", 16)}},
        {weir_text("b0"), {.type = WEIR_BINARY, .bytes = weir_bytes("", 0)}},
        {weir_text("b1"), {.type = WEIR_BINARY, .bytes = weir_bytes("\xff", 1)}},
        {weir_text("b2"), {.type = WEIR_BINARY, .bytes = weir_bytes("\xff\xef", 2)}},
        {weir_text("b3"), {.type = WEIR_ENCODED, .bytes = weir_bytes("\xff\xef\xbe\1", 4)}},
    };
    struct weir_event e = {.body = weir_text("b"),
                           .properties = p,
                           .property_count = sizeof p / sizeof p[0],
                           .partition = 3,
                           .sequence = 41};

    (void)state;
    e.offset = 7;
    expect_printed(
        &e,
        "{\"partition\":\"3\",\"sequence\":41,\"offset\":\"7\",\"enqueued_time\":"
        "\"1970-01-01T00:00:00.000Z\",\"key\":null,\"body\":\"b\",\"properties\":{\"null\":null,"
        "\"yes\":true,\"no\":false,\"int\":-9223372036854775808,\"uint\":18446744073709551615,"
        "\"half\":0.5,\"whole\":3.0,\"large\":1.0000000000000001e+300,\"inf\":\"-inf\","
        "\"time\":\"1970-01-01T00:00:00.001Z\",\"text\":\"t\","
        "\"uuid\":\"30313233-3435-3637-3839-616263646566\",\"b0\":\"\",\"b1\":\"/w==\","
        "\"b2\":\"/+8=\",\"b3\":\"/+++AQ==\"}}\n");
}

static void bodies_say_what_they_are(void **state)
{
    static const char *const members[] = {"\"body_base64\":\"/w==\"",
                                          "\"body_type\":\"value\",\"body_base64\":\"/w==\"",
                                          "\"body_type\":\"sequence\",\"body_base64\":\"/w==\"",
                                          "\"body_type\":\"unreadable\",\"body_base64\":\"/w==\""};
    struct weir_event e = {.body = weir_text("\xff"), .partition_key = weir_text("k")};
    char line[512];

    (void)state;
    for (int type = WEIR_BODY_DATA; type <= WEIR_BODY_UNREADABLE; type++) {
        e.body_type = (enum weir_body)type;
        snprintf(line, sizeof line,
                 "{\"partition\":\"0\",\"sequence\":0,\"offset\":\"0\",\"enqueued_time\":"
                 "\"1970-01-01T00:00:00.000Z\",\"key\":\"k\",%s,\"properties\":{}}\n",
                 members[type]);
        expect_printed(&e, line);
    }
    e = (struct weir_event){.body = weir_text("text"), .body_type = WEIR_BODY_VALUE};
    expect_printed(&e, "{\"partition\":\"0\",\"sequence\":0,\"offset\":\"0\",\"enqueued_time\":"
                       "\"1970-01-01T00:00:00.000Z\",\"key\":null,\"body_type\":\"value\","
                       "\"body_base64\":\"dGV4dA==\",\"properties\":{}}\n");
}

/* ---- and back ---- */

static struct weir__parsed_event parsed;
static struct weir_error err;

static int parse(const char *line)
{
    err = (struct weir_error){0};
    return weir__parse_event(&parsed, weir__bytes_of(line, strlen(line)), &err);
}

/* Also when a shorter line was taken before. */
static void no_memory_for_a_line_is_told(void **state)
{
    char line[300] = "{\"body\":\"";

    (void)state;
    weir__parse_event_fini(&parsed);
    parsed = (struct weir__parsed_event){0};
    memset(line + 9, 'x', sizeof line - 12);
    memcpy(line + sizeof line - 3, "\"}", 3);
    for (int i = 0; i < 2; i++) {
        allocs_fail(1);
        assert_int_equal(parse(line), WEIR_ENOMEM);
        assert_string_equal(err.text, "a line of JSON");
        assert_true(allocs_failed());
        allocs_fail(0);
        assert_int_equal(parse("{\"body\":\"\"}"), 0);
    }
    assert_int_equal(parse(line), 0);
    assert_int_equal(parsed.event.body.len, sizeof line - 12);
}

/* One line that has everything, given and printed again. */
static void what_is_read_is_printed_the_same(void **state)
{
    static const char *const lines[] = {
        "{\"body\":\"\",\"properties\":{},\"system_properties\":{}}",
        "{\"key\":\"k\",\"body_base64\":\"/wD+\",\"properties\":{\"\":\"\",\"n\":null,\"t\":true,"
        "\"f\":false,\"i\":9223372036854775807,\"m\":-9223372036854775808,"
        "\"u\":9223372036854775808,\"d\":-2.5}}",
        "{\"body_base64\":\"/w==\",\"properties\":{}}",
        "{\"body_base64\":\"//8=\",\"properties\":{}}",
        "{\"key\":\"k\",\"body\":\"b\",\"properties\":{},\"system_properties\":{\"message_id\":"
        "\"m\","
        "\"correlation_id\":7,\"user_id\":\"AQID\",\"to\":\"t\",\"subject\":\"s\",\"reply_to\":"
        "\"r\","
        "\"content_type\":\"c\",\"content_encoding\":\"e\","
        "\"absolute_expiry_time\":\"2030-01-01T00:00:00.000Z\","
        "\"creation_time\":\"2026-01-31T08:30:00.125Z\",\"group_id\":\"g\","
        "\"group_sequence\":4294967295,\"reply_to_group_id\":\"q\"}}",
    };
    static const char head[] = "{\"partition\":\"0\",\"sequence\":0,\"offset\":\"0\","
                               "\"enqueued_time\":\"1970-01-01T00:00:00.000Z\",\"key\":";
    char line[2048];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bool key = strncmp(lines[i], "{\"key\":", 7) == 0;
        if (parse(lines[i]) != 0) fail_msg("%s: %s", lines[i], err.text);
        snprintf(line, sizeof line, "%s%s%s\n", head, key ? "" : "null,", lines[i] + (key ? 7 : 1));
        expect_printed(&parsed.event, line);
        assert_int_equal(parse(line), 0); /* with what the hub gives passed over */
        expect_printed(&parsed.event, line);
    }
}

/* What the hub gives is passed over whatever it is, and nothing stays of the line before. */
static void a_line_stands_for_itself(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"key\":\"k\",\"body\":\"\",\"properties\":{\"a\":1},"
                           "\"system_properties\":{\"to\":\"t\",\"group_sequence\":1}}"),
                     0);
    assert_true(parsed.system.has_group_sequence);
    assert_int_equal(parse("{\"partition\":{\"body\":[1]},\"sequence\":[{}],\"offset\":null,"
                           "\"enqueued_time\":{},\"system_properties\":{},\"body\":\"b\"}"),
                     0);
    assert_null(parsed.event.partition_key.at);
    assert_int_equal(parsed.event.property_count, 0);
    assert_null(parsed.system.to.at);
    assert_false(parsed.system.has_group_sequence);
    assert_int_equal(parsed.event.body.len, 1);
}

static void lines_that_are_no_event_are_refused(void **state)
{
    static const struct {
        const char *line, *why;
    } bad[] = {
        {"[]", "column 1: an object must stand here"},
        {"{}", "it has no body"},
        {"{\"body\":null}", "it has no body"},
        {"{\"body\":7}", "column 9: it must be text"},
        {"{\"body\":nope}", "column 9: a value should be here"},
        {"{\"body\":", "column 9: a value should be here, but the text ends"},
        {"{\"sequence\":nope}", "column 13: a value should be here"},
        {"{\"body\":{}}", "column 9: text, a number, true, false or null must stand here"},
        {"{\"x\":1}", "column 2: there is no such member"},
        {"{\"bodyx\":1}", "column 2: there is no such member"},
        {"{\"body\":\"\",\"body\":\"\"}", "column 12: this name is there twice"},
        {"{\"body\":\"\",\"body_base64\":\"\"}", "column 12: there are two bodies"},
        {"{\"body_base64\":\"\",\"body\":\"\"}", "column 19: there are two bodies"},
        {"{\"body_base64\":\"AAA\"}", "column 16: it is not base64"},
        {"{\"body_base64\":\"A===\"}", "column 16: it is not base64"},
        {"{\"body_base64\":\"AA?=\"}", "column 16: it is not base64"},
        {"{\"body_base64\":\"=AAA\"}", "column 16: it is not base64"},
        {"{\"body_base64\":\"AAA\\u0000\"}", "column 16: it is not base64"},
        {"{\"body\\u0000\":\"\"}", "column 2: there is no such member"},
        {"{\"properties\":7}", "column 15: an object must stand here"},
        {"{\"properties\":{\"a\":1,\"b\":2,\"\\u0061\":3}}", "column 28: this name is there twice"},
        {"{\"system_properties\":[]}", "column 22: an object must stand here"},
        {"{\"system_properties\":{\"to\":\"\",\"to\":\"\"}}",
         "column 31: this name is there twice"},
        {"{\"offset\":[1}", "column 13: ',' or ']' should be here"},
        {"{\"body\":\"\"", "column 11: ',' or '}' should be here, but the text ends"},
        {"{\"body\":\"\"} x", "column 13: something follows the end"},
        {"{\"body\":\"\",\"body_type\":\"value\"}",
         "column 12: a body of another type than data cannot be published"},
        {"{\"system_properties\":{\"x\":1}}", "column 23: there is no such system property"},
        {"{\"system_properties\":{\"group_sequence\":4294967296}}",
         "column 40: it must be a number of 32 bits"},
        {"{\"system_properties\":{\"group_sequence\":-1}}",
         "column 40: it must be a number of 32 bits"},
        {"{\"system_properties\":{\"group_sequence\":\"1\"}}",
         "column 40: it must be a number of 32 bits"},
        {"{\"system_properties\":{\"group_sequence\":9223372036854775808}}",
         "column 40: it must be a number of 32 bits"},
        {"{\"system_properties\":{\"creation_time\":null}}",
         "column 39: it must be a time like 2026-01-31T08:30:00Z"},
        {"{\"system_properties\":{\"creation_time\":\"now\"}}",
         "column 39: it must be a time like 2026-01-31T08:30:00Z"},
        {"{\"system_properties\":{\"creation_time\":\"2026-01-31\\u0000\"}}",
         "column 39: it must be a time like 2026-01-31T08:30:00Z"},
        {"{\"properties\":{\"a\":18446744073709551616}}", "column 20: the number is too large"},
        {"{\"properties\":{\"a\":-9223372036854775809}}", "column 20: the number is too large"},
        {"{\"properties\":{\"a\":1e400}}", "column 20: the number is too large"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse(bad[i].line) != WEIR_EINVAL) fail_msg("taken: %s", bad[i].line);
        if (strcmp(err.text, bad[i].why) != 0) fail_msg("%s: %s", bad[i].line, err.text);
    }
}

static int parse_properties(int count)
{
    char line[2048] = "{\"body\":\"\",\"properties\":{";
    size_t len = strlen(line);

    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, "%s\"p%d\":%d", i ? "," : "", i, i);
    snprintf(line + len, sizeof line - len, "}}");
    return parse(line);
}

static void properties_are_64_at_most(void **state)
{
    (void)state;
    assert_int_equal(parse_properties(64), 0);
    assert_int_equal(parsed.event.property_count, 64);
    assert_int_equal(parsed.event.properties[63].value.integer, 63);
    assert_int_equal(parse_properties(65), WEIR_EINVAL);
    assert_non_null(strstr(err.text, ": more than 64 properties"));
}

static int free_parsed(void **state)
{
    (void)state;
    weir__parse_event_fini(&parsed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped_as_little_as_may_be),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(values_keep_their_kind),
        cmocka_unit_test(bodies_say_what_they_are),
        cmocka_unit_test(no_memory_for_a_line_is_told),
        cmocka_unit_test(what_is_read_is_printed_the_same),
        cmocka_unit_test(a_line_stands_for_itself),
        cmocka_unit_test(lines_that_are_no_event_are_refused),
        cmocka_unit_test(properties_are_64_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, free_parsed);
}
