#include "server/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir_error err;

static int parse(const char *text, struct weir__address *out)
{
    return weir__address_parse(out, weir__bytes_of(text, strlen(text)), &err);
}

static void all_forms(void **state)
{
    static const struct {
        const char *text;
        enum weir__address_kind kind;
        const char *hub, *group, *partition;
    } rows[] = {
        {"$cbs", WEIR__ADDRESS_CBS, "", "", ""},
        {"/$cbs", WEIR__ADDRESS_CBS, "", "", ""},
        {"amqps://host:5671/$cbs", WEIR__ADDRESS_CBS, "", "", ""},
        {"$management", WEIR__ADDRESS_MANAGEMENT, "", "", ""},
        {"eh1/$management", WEIR__ADDRESS_MANAGEMENT, "eh1", "", ""},
        {"eh1", WEIR__ADDRESS_PUBLISH, "eh1", "", ""},
        {"/eh1", WEIR__ADDRESS_PUBLISH, "eh1", "", ""},
        {"eh1/", WEIR__ADDRESS_PUBLISH, "eh1", "", ""},
        {"eh1/Partitions/3", WEIR__ADDRESS_PUBLISH, "eh1", "", "3"},
        {"$nothing", WEIR__ADDRESS_PUBLISH, "$nothing", "", ""},
        {"eh1/Publishers/me", WEIR__ADDRESS_PUBLISH, "eh1", "", ""},
        {"eh1/Publishers/Partitions", WEIR__ADDRESS_PUBLISH, "eh1", "", ""},
        {"Partitions/Publishers/me", WEIR__ADDRESS_PUBLISH, "Partitions", "", ""},
        {"Partitions/Partitions/3", WEIR__ADDRESS_PUBLISH, "Partitions", "", "3"},
        {"e%68", WEIR__ADDRESS_PUBLISH, "e%68", "", ""}, /* nothing is escaped */
        {"amqps://host/e%zz", WEIR__ADDRESS_PUBLISH, "e%zz", "", ""},
        {"amqps://host/eh1/Partitions/3", WEIR__ADDRESS_PUBLISH, "eh1", "", "3"},
        {"eh1/ConsumerGroups/cg/Partitions/0", WEIR__ADDRESS_RECEIVE, "eh1", "cg", "0"},
        {"/EH1/consumergroups/$Default/PARTITIONS/x", WEIR__ADDRESS_RECEIVE, "EH1", "$Default",
         "x"},
        {"amqp://h:5672/eh1/ConsumerGroups/cg/Partitions/0", WEIR__ADDRESS_RECEIVE, "eh1", "cg",
         "0"},
        {"", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"/", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"amqps://host", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"eh1/ConsumerGroups/cg", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"eh1/Partitions", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"eh1/ConsumerGroups/cg/Partitions/0/x", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"eh1/ConsumerGroups/cg/Partitions/0/x/y", WEIR__ADDRESS_UNKNOWN, "", "", ""},
        {"a/b/c/d/e/f/g/h/i/j", WEIR__ADDRESS_UNKNOWN, "", "", ""},
    };
    struct weir__address a;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].text, &a), 0);
        assert_int_equal(a.kind, rows[i].kind);
        assert_string_equal(a.hub, rows[i].hub);
        assert_string_equal(a.group, rows[i].group);
        assert_string_equal(a.partition, rows[i].partition);
    }
}

static void too_long(void **state)
{
    static char text[4096];
    struct weir__address a;

    (void)state;
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(parse(text, &a), WEIR_EINVAL);
    text[WEIR__HUB_NAME_MAX + 1] = '\0';
    assert_int_equal(parse(text, &a), WEIR_EINVAL);
    text[WEIR__HUB_NAME_MAX] = '\0';
    assert_int_equal(parse(text, &a), 0);
    assert_int_equal(strlen(a.hub), WEIR__HUB_NAME_MAX);
    assert_int_equal(parse("eh1/ConsumerGroups/"
                           "123456789012345678901234567890123456789012345678901/Partitions/0",
                           &a),
                     WEIR_EINVAL);
}

static void partitions(void **state)
{
    static const char *const none[] = {"",   "-1",  "+1",  "01",          "1 ",
                                       " 1", "1.0", "0x1", "99999999999", "XYZ"};

    (void)state;
    assert_int_equal(weir__address_partition("0"), 0);
    assert_int_equal(weir__address_partition("31"), 31);
    assert_int_equal(weir__address_partition("999999999"), 999999999);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(weir__address_partition(none[i]), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),
        cmocka_unit_test(too_long),
        cmocka_unit_test(partitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
