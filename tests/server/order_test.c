/* order_test.c - what the administration is asked for, and how it is told of mistakes. */
#include "server/order.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int read(struct weir__order *o, const char *text, unsigned known, struct weir_error *err)
{
    errno = ERANGE; /* what went wrong before is nobody's business */
    return weir__order_read(o, weir__bytes_of(text, strlen(text)), known, err);
}

static void a_hub_is_read(void **state)
{
    struct weir__order o;

    (void)state;
    assert_int_equal(read(&o,
                          "{\"partitions\":8,\"retain_ms\":-1,\"retain_bytes\":1073741824,"
                          "\"groups\":[\"a\",\"$Default\"]}",
                          WEIR__ORDER_HUB, NULL),
                     0);
    assert_int_equal(o.given, WEIR__ORDER_HUB & ~(unsigned)WEIR__ORDER_ADOPT);
    assert_true(o.partitions == 8 && o.retain_ms == -1 && o.retain_bytes == 1073741824);
    assert_int_equal(o.group_count, 2);
    assert_string_equal(o.groups[0].name, "a");
    weir__order_fini(&o);
    assert_int_equal(read(&o, "{\"adopt\":\"2a\"}", WEIR__ORDER_HUB, NULL), 0);
    assert_int_equal(o.given, WEIR__ORDER_ADOPT);
    assert_int_equal(o.adopt, 0x2a);
    assert_int_equal(read(&o, "{\"adopt\":\"ffffffffffffffff\"}", WEIR__ORDER_HUB, NULL), 0);
    assert_true(o.adopt == UINT64_MAX);
    assert_int_equal(read(&o, "", WEIR__ORDER_HUB, NULL), 0);
    assert_int_equal(o.given, 0);
    assert_int_equal(read(&o, " {} ", WEIR__ORDER_HUB, NULL), 0);
    assert_int_equal(o.given, 0);
    assert_int_equal(read(&o, "{\"retain_bytes\":0}", WEIR__ORDER_HUB, NULL), 0);
    assert_int_equal(o.given, WEIR__ORDER_RETAIN_BYTES); /* no limit, and that was said */
    assert_int_equal(o.retain_bytes, 0);
    weir__order_fini(&o);
}

static void an_order_can_end_twice(void **state)
{
    struct weir__order o;

    (void)state;
    assert_int_equal(read(&o, "{\"groups\":[\"a\"]}", WEIR__ORDER_HUB, NULL), 0);
    for (int i = 0; i < 2; i++) {
        weir__order_fini(&o);
        assert_null(o.groups);
        assert_int_equal(o.group_count, 0);
    }
}

static void a_rule_is_read(void **state)
{
    struct weir__order o;

    (void)state;
    assert_int_equal(
        read(&o,
             "{\"rights\":[\"send\",\"manage\"],\"primary_key\":\"k1\",\"secondary_key\":\"k2\"}",
             WEIR__ORDER_RULE, NULL),
        0);
    assert_int_equal(o.given, WEIR__ORDER_RULE);
    assert_int_equal(o.rights, WEIR__RIGHT_SEND | WEIR__RIGHT_MANAGE);
    assert_string_equal(o.key[WEIR__KEY_PRIMARY], "k1");
    assert_string_equal(o.key[WEIR__KEY_SECONDARY], "k2");
    weir__order_fini(&o);
}

/* One that is longer does not reach into what lies behind it. */
static void a_key_has_64_bytes(void **state)
{
    char body[128];
    struct weir__order o;

    (void)state;
    for (int more = 0; more < 3; more++) {
        snprintf(body, sizeof body, "{\"primary_key\":\"%0*d\"}", WEIR__ACCESS_KEY_MAX + more, 1);
        assert_int_equal(read(&o, body, WEIR__ORDER_RULE, NULL), more ? WEIR_EINVAL : 0);
        assert_int_equal(strlen(o.key[WEIR__KEY_PRIMARY]), more ? 0 : WEIR__ACCESS_KEY_MAX);
        assert_string_equal(o.key[WEIR__KEY_SECONDARY], "");
        weir__order_fini(&o);
    }
}

static void mistakes_are_named(void **state)
{
    static const struct {
        unsigned known;
        const char *body, *text;
    } rows[] = {
        {WEIR__ORDER_HUB, "[]", "JSON object"},
        {WEIR__ORDER_HUB, "{", "line 1"},
        {WEIR__ORDER_HUB, "{} 1", "line 1"},
        {WEIR__ORDER_HUB, "{\"partition\":1}", "no member 'partition'"},
        {WEIR__ORDER_HUB, "{\"rights\":[]}", "no member 'rights'"},
        {WEIR__ORDER_RULE, "{\"partitions\":1}", "no member 'partitions'"},
        {WEIR__ORDER_HUB, "{\"partitions\":\"1\"}", "partitions: it must be a number"},
        {WEIR__ORDER_HUB, "{\"partitions\":x}", "partitions: line 1, column 15"},
        {WEIR__ORDER_RULE, "{\"primary_key\":\"k", "primary_key: line 1"},
        {WEIR__ORDER_HUB, "{\"partitions\":1.5}", "partitions: 1.5 is no whole number"},
        {WEIR__ORDER_HUB, "{\"partitions\":99999999999999999999}", "too large"},
        {WEIR__ORDER_HUB, "{\"partitions\":1,\"partitions\":1}", "twice"},
        {WEIR__ORDER_HUB, "{\"retain_bytes\":-1}", "retain_bytes: -1 bytes"},
        {WEIR__ORDER_HUB, "{\"partitions\":}", "partitions: line 1, column 15: "},
        {WEIR__ORDER_HUB, "{\"groups\":[\"a\",", "groups: line 1, column 16: "},
        {WEIR__ORDER_HUB, "{\"adopt\":2}", "adopt: it must be a text"},
        {WEIR__ORDER_HUB, "{\"adopt\":\"\"}", "adopt: '' is not the id of a folder"},
        {WEIR__ORDER_HUB, "{\"adopt\":\"2A\"}", "adopt: '2A' is not the id of a folder"},
        {WEIR__ORDER_HUB, "{\"adopt\":\"00000000000000001\"}", "is not the id of a folder"},
        {WEIR__ORDER_CHANGES, "{\"adopt\":\"1\"}", "no member 'adopt'"},
        {WEIR__ORDER_CHANGES, "{\"groups\":[]}", "no member 'groups'"},
        {WEIR__ORDER_HUB, "{\"groups\":\"a\"}", "groups: it must be an array of texts"},
        {WEIR__ORDER_HUB, "{\"groups\":[1]}", "groups: it must be an array of texts"},
        {WEIR__ORDER_HUB, "{\"groups\":[\"a/b\"]}", "groups: "},
        {WEIR__ORDER_RULE, "{\"rights\":[\"all\"]}", "'all' is none of send, listen and manage"},
        {WEIR__ORDER_RULE, "{\"primary_key\":\"a b\"}", "primary_key: character 2"},
        {WEIR__ORDER_RULE, "{\"primary_key\":\"\"}", "primary_key: a key has"},
    };
    struct weir__order o;
    struct weir_error err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rc = read(&o, rows[i].body, rows[i].known, &err);
        if (rc != WEIR_EINVAL || !strstr(err.text, rows[i].text))
            fail_msg("'%s' gave %d: %s", rows[i].body, rc, err.text);
        weir__order_fini(&o);
    }
}

/* "{"groups":["0001","0002",...]}", with zeros before each to be so long. */
static const char *name_groups(int count, int digits)
{
    static char body[65536];
    size_t len = (size_t)snprintf(body, sizeof body, "{\"groups\":[");

    for (int i = 1; i <= count; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s\"%0*d\"", i > 1 ? "," : "",
                                digits, i);
    snprintf(body + len, sizeof body - len, "]}");
    return body;
}

static void groups_have_a_limit(void **state)
{
    const int max = WEIR__CATALOG_GROUPS_MAX;
    struct weir_error err;
    struct weir__order o;

    (void)state;
    assert_int_equal(read(&o, name_groups(max, WEIR__GROUP_NAME_MAX), WEIR__ORDER_HUB, &err), 0);
    assert_int_equal(o.group_count, max);
    for (int i = 0; i < max; i++) {
        assert_int_equal(strlen(o.groups[i].name), WEIR__GROUP_NAME_MAX);
        assert_int_equal(strtol(o.groups[i].name, NULL, 10), i + 1);
    }
    weir__order_fini(&o);
    assert_int_equal(read(&o, name_groups(1, WEIR__GROUP_NAME_MAX + 1), WEIR__ORDER_HUB, &err),
                     WEIR_EINVAL);
    weir__order_fini(&o);
    assert_int_equal(read(&o, name_groups(max + 1, 4), WEIR__ORDER_HUB, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the body: groups: there are more than 1000");
    weir__order_fini(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hub_is_read),       cmocka_unit_test(a_rule_is_read),
        cmocka_unit_test(a_key_has_64_bytes),  cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(groups_have_a_limit), cmocka_unit_test(an_order_can_end_twice),
    };

    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
