#include "hub/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW 1699999999

/* Made by Microsoft's JavaScript client, and by its Go client, which writes escapes in lower case. */
#define TOKEN_JS                                                                                   \
    "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                         \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey"
#define TOKEN_GO                                                                                   \
    "SharedAccessSignature sr=sb%3a%2f%2flocalhost%2feh1&"                                         \
    "sig=My%2B6S%2F1Xe0Cb5DFsiLvDnpdkC3xvNXzYFb8uDQ8CeLA%3D&se=1700000000&"                        \
    "skn=RootManageSharedAccessKey"

static const struct weir__rule root = {"RootManageSharedAccessKey",
                                       WEIR__RIGHT_MANAGE,
                                       {"another key", "SAS_KEY_VALUE"}};

static struct weir_error err;

static struct weir__bytes text(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

static int check(const char *token_text, const struct weir__rule *rule, const char *wanted,
                 int64_t now_s, struct weir__access_grant *out)
{
    struct weir__access_rules row = {rule, rule ? 1 : 0};
    struct weir__access_token token;
    struct weir__access_path path;
    int rc = weir__access_token_parse(&token, text(token_text), &err);

    if (rc != 0) return rc;
    assert_int_equal(weir__access_path_parse(&path, text(wanted), false, NULL), 0);
    return weir__access_token_check(&token, &row, 1, &path, now_s, out, &err);
}

static void vectors(void **state)
{
    struct weir__access_grant grant = {0};

    (void)state;
    assert_int_equal(check(TOKEN_JS, &root, "sb://localhost/eh1", NOW, &grant), 0);
    assert_int_equal(grant.rights, WEIR__RIGHTS_ALL);
    assert_int_equal(grant.expires_s, 1700000000);
    assert_string_equal(grant.path.text, "eh1");
    assert_int_equal(check(TOKEN_GO, &root, "amqps://localhost:5671/EH1/$management", NOW, &grant),
                     0);
}

/* What a grant is worth by this rule. */
static unsigned worth(const struct weir__access_basis *basis, const struct weir__rule *rule)
{
    struct weir__access_rules row = {rule, 1};

    return weir__access_basis_rights(basis, &row, 1);
}

static void a_grant_rests_on_its_rule_and_key(void **state)
{
    struct weir__access_grant grant = {0};
    struct weir__access_basis certified = weir__access_basis_of(root.name, NULL, false);
    struct weir__rule other = root;

    (void)state;
    assert_int_equal(check(TOKEN_JS, &root, "sb://localhost/eh1", NOW, &grant), 0);
    assert_true(grant.basis.of_hub);
    assert_int_equal(worth(&grant.basis, &root), WEIR__RIGHTS_ALL);
    other.rights = WEIR__RIGHT_LISTEN;
    assert_int_equal(worth(&grant.basis, &other), WEIR__RIGHT_LISTEN);
    memcpy(other.key[WEIR__KEY_PRIMARY], "SAS_KEY_VALUE", 14);
    memcpy(other.key[WEIR__KEY_SECONDARY], "rotated", 8);
    assert_int_equal(worth(&grant.basis, &other), WEIR__RIGHT_LISTEN); /* it is the first now */
    memcpy(other.key[WEIR__KEY_PRIMARY], "rotated too", 12);
    assert_int_equal(worth(&grant.basis, &other), 0);
    assert_int_equal(worth(&certified, &other), WEIR__RIGHT_LISTEN);
    other = root;
    memcpy(other.name, "ROOTmanagesharedaccesskey", 26);
    assert_int_equal(worth(&grant.basis, &other), WEIR__RIGHTS_ALL);
    other.name[0] = 'X';
    assert_int_equal(worth(&grant.basis, &other), 0);
    assert_int_equal(worth(&certified, &other), 0);
}

static void a_grant_ends(void **state)
{
    struct weir__access_grant grant = {0};

    (void)state;
    assert_int_equal(check(TOKEN_JS, &root, "sb://localhost/eh1",
                           NOW - WEIR__ACCESS_GRANT_MAX_S - 100, &grant),
                     0);
    assert_int_equal(grant.expires_s, NOW - 100);
    assert_int_equal(weir__access_cap(INT64_MAX, NOW), NOW + WEIR__ACCESS_GRANT_MAX_S);
}

static void wrong_key_and_unknown_rule_look_alike(void **state)
{
    struct weir__rule wrong = root;
    struct weir__access_grant grant;
    char first[WEIR_ERROR_TEXT_BYTES];

    (void)state;
    memcpy(wrong.key[WEIR__KEY_SECONDARY], "SAS_KEY_VALUF", sizeof "SAS_KEY_VALUF");
    assert_int_equal(check(TOKEN_JS, &wrong, "/eh1", NOW, &grant), WEIR_EDENIED);
    memcpy(first, err.text, sizeof first);
    assert_string_equal(first, "InvalidSignature: The token has an invalid signature.");
    assert_int_equal(check(TOKEN_JS, NULL, "/eh1", NOW, &grant), WEIR_EDENIED);
    assert_string_equal(err.text, first);
    /* Rights of no rule are never given, even to who signs with what unknown rules are signed with. */
    assert_int_equal(check("SharedAccessSignature sr=%2Feh1&sig=" /* any 44 characters */
                           "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D&se=1700000000&skn=x",
                           &root, "/eh1", NOW, &grant),
                     WEIR_EDENIED);
}

static void what_was_signed_cannot_be_changed(void **state)
{
    static const char *const changed[] = {"localhost%2Feh1", "se=1700000000"};
    static const char *const to[] = {"localhost%2Feh2", "se=1800000000"};
    struct weir__access_grant grant;

    (void)state;
    for (int i = 0; i < 2; i++) {
        char token[] = TOKEN_JS;
        memcpy(strstr(token, changed[i]), to[i], strlen(to[i]));
        assert_int_equal(check(token, &root, "/eh2", NOW, &grant), WEIR_EDENIED);
        assert_non_null(strstr(err.text, "InvalidSignature"));
    }
}

static void expired(void **state)
{
    struct weir__access_grant grant;

    (void)state;
    assert_int_equal(check(TOKEN_JS, &root, "/eh1", 1700000000, &grant), WEIR_EDENIED);
    assert_string_equal(err.text, "ExpiredToken: The token is expired. Expiration time: "
                                  "'2023-11-14 22:13:20Z'");
}

static void wrong_audience(void **state)
{
    static const char *const others[] = {"/eh10", "/eh", "/", "sb://eh1", "/x/eh1", "/eh1%2Fx"};
    struct weir__access_grant grant;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(check(TOKEN_JS, &root, others[i], NOW, &grant), WEIR_EDENIED);
        assert_string_equal(err.text, "InvalidAudience: The authorization header contains a token "
                                      "with a wrong audience.");
    }
    assert_int_equal(check(TOKEN_JS, &root, "/eh1/ConsumerGroups/$Default/Partitions/0", NOW,
                           &grant),
                     0);
}

static void malformed(void **state)
{
    static const char *const tokens[] = {
        "",
        "SharedAccessSignature",
        "SharedAccessSignature ",
        "Bearer sr=a&sig=b&se=1&skn=c",
        "SharedAccessSignature sr=a&se=1&skn=c",
        "SharedAccessSignature sr=a&sig=b&se=1&skn=c",
        "SharedAccessSignature sr=a&sr=b&sig=b&se=1&skn=c",
        "SharedAccessSignature sr&sig=b&se=1&skn=c",
        "SharedAccessSignature sr=a&sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=&skn=c",
        "SharedAccessSignature "
        "sr=a&sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1x&skn=",
        "SharedAccessSignature "
        "sr=%0&sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1&skn=",
        "SharedAccessSignature "
        "sr=%00&sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1&skn=",
        "SharedAccessSignature sr=a&sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&"
        "se=1000000000000000000&skn=c",
    };
    struct weir__access_token token;

    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        size_t len = strlen(tokens[i]);
        char *exact = malloc(len ? len : 1); /* no NUL behind it */
        memcpy(exact, tokens[i], len);
        assert_int_equal(weir__access_token_parse(&token, weir__bytes_of(exact, len), &err),
                         WEIR_EDENIED);
        assert_non_null(strstr(err.text, "MalformedToken"));
        free(exact);
    }
}

static void too_long_a_token(void **state)
{
    char *long_text = malloc(WEIR__ACCESS_TOKEN_MAX + 1);
    struct weir__access_token token;

    (void)state;
    memset(long_text, 'a', WEIR__ACCESS_TOKEN_MAX + 1);
    memcpy(long_text, TOKEN_JS "&x=", sizeof TOKEN_JS + 2);
    assert_int_equal(weir__access_token_parse(&token,
                                              weir__bytes_of(long_text, WEIR__ACCESS_TOKEN_MAX),
                                              &err),
                     0);
    assert_int_equal(weir__access_token_parse(&token,
                                              weir__bytes_of(long_text, WEIR__ACCESS_TOKEN_MAX + 1),
                                              &err),
                     WEIR_EDENIED);
    free(long_text);
}

static void paths(void **state)
{
    static const struct {
        const char *resource;
        bool encoded;
        const char *path;
    } rows[] = {
        {"sb://host/eh1", false, "eh1"},
        {"amqps://host:5671//eh1//Partitions/0/", false, "eh1/Partitions/0"},
        {"host/eh1", false, "eh1"},
        {"/eh1", false, "eh1"},
        {"sb://host", false, ""},
        {"", false, ""},
        {"eh1", false, "eh1"}, /* not a host, which would be everything */
        {"eh1", true, "eh1"},
        {"eh1.x", false, "eh1.x"},
        {"localhost", false, ""}, /* what can only be a host */
        {"LocalHost", true, ""},
        {"127.0.0.1", false, ""},
        {"ns.servicebus.windows.net", true, ""},
        {"weir:5671", false, ""},
        {".servicebus.windows.net", false, ".servicebus.windows.net"},
        {"eh2/publishers/a://b", false, "publishers/a:/b"}, /* a scheme stands at the beginning */
        {"/eh2/publishers/a://b", false, "eh2/publishers/a:/b"},
        {"sb%3A%2F%2Fhost%2Feh1", true, "eh1"},
        {"sb%3a%2f%2fhost%2feh1", true, "eh1"},
        {"sb%3A%2F%2Fhost%2Feh1%252Fx", true, "eh1%2Fx"}, /* once, and only once */
        {"/eh1%2Fx", false, "eh1%2Fx"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__access_path path;
        assert_int_equal(weir__access_path_parse(&path, text(rows[i].resource), rows[i].encoded,
                                                 NULL),
                         0);
        assert_string_equal(path.text, rows[i].path);
    }
}

static void root_covers_everything(void **state)
{
    struct weir__access_path outer, inner;
    char hub[WEIR__HUB_NAME_MAX + 1];

    (void)state;
    assert_int_equal(weir__access_path_parse(&outer, text("sb://host/"), false, NULL), 0);
    assert_int_equal(weir__access_path_parse(&inner, text("/Eh1/x"), false, NULL), 0);
    assert_true(weir__access_path_covers(&outer, &inner));
    assert_false(weir__access_path_covers(&inner, &outer));
    weir__access_path_hub(&inner, hub);
    assert_string_equal(hub, "Eh1");
    weir__access_path_hub(&outer, hub);
    assert_string_equal(hub, "");
}

static int count_up(void *self, void *out, size_t len, struct weir_error *e)
{
    (void)self;
    (void)e;
    for (size_t i = 0; i < len; i++) ((uint8_t *)out)[i] = (uint8_t)i;
    return 0;
}

static void keys(void **state)
{
    struct weir__rand rand = {count_up, NULL};
    char key[WEIR__ACCESS_KEY_MAX + 1], longest[WEIR__ACCESS_KEY_MAX + 2] = {0};

    (void)state;
    assert_int_equal(weir__access_key_make(&rand, key, NULL), 0);
    assert_string_equal(key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    assert_int_equal(weir__access_key_check(key, NULL), 0);
    assert_int_equal(weir__access_key_check("", NULL), WEIR_EINVAL);
    assert_int_equal(weir__access_key_check("a b", NULL), WEIR_EINVAL);
    memset(longest, 'k', WEIR__ACCESS_KEY_MAX);
    assert_int_equal(weir__access_key_check(longest, NULL), 0);
    longest[WEIR__ACCESS_KEY_MAX] = 'k';
    assert_int_equal(weir__access_key_check(longest, NULL), WEIR_EINVAL);
    assert_int_equal(weir__access_rights(WEIR__RIGHT_SEND), WEIR__RIGHT_SEND);
    assert_int_equal(weir__access_rights(WEIR__RIGHT_MANAGE), WEIR__RIGHTS_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(a_grant_rests_on_its_rule_and_key),
        cmocka_unit_test(a_grant_ends),
        cmocka_unit_test(wrong_key_and_unknown_rule_look_alike),
        cmocka_unit_test(what_was_signed_cannot_be_changed),
        cmocka_unit_test(expired),
        cmocka_unit_test(wrong_audience),
        cmocka_unit_test(malformed),
        cmocka_unit_test(too_long_a_token),
        cmocka_unit_test(paths),
        cmocka_unit_test(root_covers_everything),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
