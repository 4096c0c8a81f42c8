#include "hub/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/hmac.h>

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

static bool no_signature;

unsigned char *__real_HMAC(const EVP_MD *, const void *, int, const unsigned char *, size_t,
                           unsigned char *, unsigned *);
unsigned char *__wrap_HMAC(const EVP_MD *, const void *, int, const unsigned char *, size_t,
                           unsigned char *, unsigned *);

unsigned char *__wrap_HMAC(const EVP_MD *type, const void *key, int key_len,
                           const unsigned char *at, size_t len, unsigned char *out, unsigned *n)
{
    return no_signature ? NULL : __real_HMAC(type, key, key_len, at, len, out, n);
}

/* What cannot be checked lets nobody in. */
static void no_memory_for_a_signature(void **state)
{
    struct weir__access_grant grant = {0};

    (void)state;
    no_signature = true;
    assert_int_equal(check(TOKEN_JS, &root, "sb://localhost/eh1", NOW, &grant), WEIR_EDENIED);
    no_signature = false;
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

/* The first half of its SHA-256, whole. */
static void a_key_is_known_by_its_digest(void **state)
{
    static const uint8_t of_abc[16] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                       0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23};
    static const uint8_t none[16] = {0};
    struct weir__access_basis with = weir__access_basis_of("r", "abc", true),
                              without = weir__access_basis_of("r", NULL, false);

    (void)state;
    assert_memory_equal(with.key, of_abc, sizeof with.key);
    assert_memory_equal(without.key, none, sizeof without.key);
    assert_true(with.of_hub && !without.of_hub);
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
    assert_int_equal(weir__access_cap(NOW + 1, NOW), NOW + 1);
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

static void every_character_of_a_signature_counts(void **state)
{
    struct weir__access_grant grant;
    char token[] = TOKEN_JS;

    (void)state;
    for (char *at = strstr(token, "sig=") + 4; *at != '&'; at++) {
        char before = *at;
        if (before == '%') continue;
        *at = before == 'A' ? 'B' : 'A';
        assert_int_equal(check(token, &root, "/eh1", NOW, &grant), WEIR_EDENIED);
        *at = before;
    }
    assert_int_equal(check(token, &root, "/eh1", NOW, &grant), 0);
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

/* Of three rows the first and the last have the rule, with two keys of which the token has one. */
static void rights_of_several_rows_add_up(void **state)
{
    struct weir__rule rules[3] = {root, root, root};
    const struct weir__access_rules rows[] = {{rules, 1}, {rules, 0}, {rules + 1, 2}};
    struct weir__access_token token;
    struct weir__access_path path;
    struct weir__access_grant grant;

    (void)state;
    rules[0].rights = WEIR__RIGHT_SEND;
    memcpy(rules[1].name, "other", sizeof "other");
    rules[2].rights = WEIR__RIGHT_LISTEN;
    memcpy(rules[2].key[0], "SAS_KEY_VALUE", sizeof "SAS_KEY_VALUE");
    assert_int_equal(weir__access_token_parse(&token, text(TOKEN_JS), &err), 0);
    assert_int_equal(weir__access_path_parse(&path, text("/eh1"), false, NULL), 0);
    assert_int_equal(weir__access_token_check(&token, rows, 3, &path, NOW, &grant, &err), 0);
    assert_int_equal(grant.rights, WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN);
    assert_int_equal(weir__access_basis_rights(&grant.basis, rows, 3), grant.rights);
    assert_int_equal(weir__access_basis_rights(&grant.basis, rows, 2), WEIR__RIGHT_SEND);
}

static int count_up(void *self, void *out, size_t len, struct weir_error *e)
{
    (void)self;
    (void)e;
    for (size_t i = 0; i < len; i++) ((uint8_t *)out)[i] = (uint8_t)i;
    return 0;
}

static int fail_to_fill(void *self, void *out, size_t len, struct weir_error *e)
{
    (void)self;
    (void)out;
    (void)len;
    return weir__fail(e, WEIR_EIO, "no chance");
}

static void keys(void **state)
{
    struct weir__rand rand = {count_up, NULL};
    char key[WEIR__ACCESS_KEY_MAX + 1], longest[WEIR__ACCESS_KEY_MAX + 2] = {0};

    (void)state;
    assert_int_equal(weir__access_key_make(&rand, key, NULL), 0);
    assert_string_equal(key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    assert_int_equal(weir__access_key_check(key, NULL), 0);
    assert_int_equal(weir__access_key_check("", &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a key has 1 to 64 characters, not 0");
    assert_int_equal(weir__access_key_check("!~", NULL), 0);
    for (int c = 1; c < 256; c++)
        assert_int_equal(weir__access_key_check((char[]){'k', (char)c, 0}, &err),
                         c > ' ' && c < 0x7f ? 0 : WEIR_EINVAL);
    assert_string_equal(err.text, "character 2 of the key is not printable ASCII");
    memset(longest, 'k', WEIR__ACCESS_KEY_MAX);
    assert_int_equal(weir__access_key_check(longest, NULL), 0);
    longest[WEIR__ACCESS_KEY_MAX] = 'k';
    assert_int_equal(weir__access_key_check(longest, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a key has 1 to 64 characters, not 65");
    rand.fill = fail_to_fill;
    assert_int_equal(weir__access_key_make(&rand, key, &err), WEIR_EIO);
    assert_string_equal(err.text, "making a key: no chance");
    assert_int_equal(weir__access_rights(WEIR__RIGHT_SEND), WEIR__RIGHT_SEND);
    assert_int_equal(weir__access_rights(WEIR__RIGHT_MANAGE), WEIR__RIGHTS_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_for_a_signature),
        cmocka_unit_test(vectors),
        cmocka_unit_test(a_grant_rests_on_its_rule_and_key),
        cmocka_unit_test(a_key_is_known_by_its_digest),
        cmocka_unit_test(a_grant_ends),
        cmocka_unit_test(wrong_key_and_unknown_rule_look_alike),
        cmocka_unit_test(every_character_of_a_signature_counts),
        cmocka_unit_test(what_was_signed_cannot_be_changed),
        cmocka_unit_test(expired),
        cmocka_unit_test(wrong_audience),
        cmocka_unit_test(rights_of_several_rows_add_up),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
