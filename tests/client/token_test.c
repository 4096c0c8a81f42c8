/* Tokens: the reference's own vector, and what our server's side says to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/token.h"

#define NAME "RootManageSharedAccessKey"
#define KEY "SAS_KEY_VALUE"

static char token[WEIR__ACCESS_TOKEN_MAX + 1];
static struct weir_error err;

static void the_known_vector(void **state)
{
    (void)state;
    assert_int_equal(weir__token_make(token, "sb://localhost/eh1", NAME, KEY, 1700000000, &err), 0);
    assert_string_equal(token, "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&sig="
                               "bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&skn="
                               "RootManageSharedAccessKey");
    assert_int_equal(weir__token_expiry(token), 1700000000);
}

static int check(const char *key, const char *wanted, int64_t now_s)
{
    struct weir__rule rule = {.name = "r\xc3\xa9gle &=%", .rights = WEIR__RIGHTS_ALL};
    struct weir__access_rules row = {&rule, 1};
    struct weir__access_token parsed;
    struct weir__access_grant grant;
    struct weir__access_path path;

    strcpy(rule.key[0], KEY);
    strcpy(rule.key[1], "other");
    assert_int_equal(weir__token_make(token,
                                      "sb://h/h\xc3\xbc"
                                      "b one",
                                      rule.name, key, 1000, &err),
                     0);
    if (weir__access_token_parse(&parsed, weir__bytes_of(token, strlen(token)), &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(weir__access_path_parse(&path, weir__bytes_of(wanted, strlen(wanted)), false,
                                             &err),
                     0);
    return weir__access_token_check(&parsed, &row, 1, &path, now_s, &grant, &err);
}

static void ours_are_understood(void **state)
{
    (void)state;
    assert_int_equal(check(KEY,
                           "/h\xc3\xbc"
                           "b one",
                           999),
                     0);
    assert_int_equal(check("other",
                           "/h\xc3\xbc"
                           "b one/Partitions/1",
                           0),
                     0);
    assert_int_equal(check("wrong",
                           "/h\xc3\xbc"
                           "b one",
                           0),
                     WEIR_EDENIED);
    assert_int_equal(check(KEY,
                           "/h\xc3\xbc"
                           "b one",
                           1000),
                     WEIR_EDENIED);
    assert_int_equal(check(KEY, "/elsewhere", 0), WEIR_EDENIED);
}

static void limits_are_kept(void **state)
{
    char resource[WEIR__TOKEN_RESOURCE_MAX + 2];

    (void)state;
    memset(resource, '/', sizeof resource);
    resource[WEIR__TOKEN_RESOURCE_MAX + 1] = '\0';
    assert_int_equal(weir__token_make(token, resource, NAME, KEY, 1, &err), WEIR_ETOOBIG);
    assert_non_null(strstr(err.text, "a token for a name of "));
    resource[WEIR__TOKEN_RESOURCE_MAX] = '\0';
    assert_int_equal(weir__token_make(token, resource, NAME, KEY, INT64_MAX, &err), 0);
    assert_int_equal(weir__token_expiry(token), INT64_MAX);
    assert_int_equal(weir__token_expiry(""), 0);
}

/* The end stands behind its name, wherever that is among the parts, and nowhere else. */
static void the_end_is_found_by_its_name(void **state)
{
    static const struct {
        const char *text;
        int64_t end;
    } cases[] = {
        {"SharedAccessSignature sr=se=5&sig=x", 0},
        {"SharedAccessSignature sr=a&sig=x&se=1700000000", 1700000000},
        {"SharedAccessSignature se=12&sr=a", 12},
        {"SharedAccessSignature sr=base=5&se=6&skn=n", 6},
        {"SharedAccessSignature sr=se=se=5&se=7", 7},
        {"SharedAccessSignature sr=a&se=", 0},
        {"se=5", 0}, /* of no token */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(weir__token_expiry(cases[i].text), cases[i].end);
    assert_int_equal(weir__token_expiry(&" se=5"[1]), 0); /* what lies before it is not its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_vector),
        cmocka_unit_test(ours_are_understood),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(the_end_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
