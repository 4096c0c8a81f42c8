/* entering_test.c - who comes in by SASL: with a key of a rule, or with a certificate that has the name of
 * one; and what is then claimed. */
#include "server/links.h"

#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void add_rule(struct scene *s, const char *name, unsigned rights, const char *first,
                     const char *second)
{
    struct weir__rule rule = {.rights = rights};

    snprintf(rule.name, sizeof rule.name, "%s", name);
    snprintf(rule.key[0], sizeof rule.key[0], "%s", first);
    snprintf(rule.key[1], sizeof rule.key[1], "%s", second);
    assert_int_equal(weir__namespace_rule_add(s->world.ns, NULL, &rule, NULL), 0);
}

static void add_rules(struct scene *s)
{
    add_rule(s, "all", WEIR__RIGHTS_ALL, "a", "bb");
    add_rule(s, "till", WEIR__RIGHT_SEND, "key", "other");
    add_rule(s, "shop", WEIR__RIGHT_LISTEN, "key", "third");
}

static struct weir__bytes bytes(const char *text)
{
    return weir__bytes_of(text, strlen(text));
}

static bool login(struct scene *s, const char *rule, const char *key)
{
    weir__claims_fini(&s->c.claims);
    s->c.trusted = false;
    return weir__cbs_login(&s->c, bytes(rule), bytes(key));
}

/* What is claimed now is for everything, and ends with its time. */
static void expect_claim(struct scene *s, unsigned rights, int64_t expires_s)
{
    const struct weir__claim_kept *claim;

    assert_true(s->c.trusted);
    assert_int_equal(s->c.claims.count, 1);
    claim = s->c.claims.at[0];
    assert_string_equal(claim->path, "");
    assert_int_equal(claim->rights, rights);
    assert_true(claim->expires_s == expires_s);
    assert_false(claim->basis.of_hub);
}

static unsigned worth(struct scene *s)
{
    const struct weir__access_path path = {.text = "eh1"};

    return weir__namespace_rights(s->world.ns, &s->c.claims.at[0]->basis, &path);
}

static void either_key_is_good_to_the_letter(void **state)
{
    static const struct {
        const char *rule, *key;
        unsigned rights; /* 0: no */
    } rows[] = {
        {"till", "key", WEIR__RIGHT_SEND},
        {"till", "other", WEIR__RIGHT_SEND},
        {"shop", "key", WEIR__RIGHT_LISTEN},
        {"all", "a", WEIR__RIGHTS_ALL},
        {"all", "bb", WEIR__RIGHTS_ALL},
        {"till", "", 0},
        {"till", "ke", 0},
        {"till", "kex", 0},
        {"till", "xey", 0},
        {"till", "keykey", 0},
        {"till", "keyk", 0},
        {"till", "third", 0},
        {"all", "aa", 0},
        {"all", "b", 0},
        {"all", "", 0},
        {"", "key", 0},
        {"tills", "key", 0},
        {"til", "key", 0},
        {"nobody", "key", 0},
    };
    const int64_t now_s = INT64_C(1700000000);
    struct scene *s = *state;

    add_rules(s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (login(s, rows[i].rule, rows[i].key) != (rows[i].rights != 0))
            fail_msg("%s %s", rows[i].rule, rows[i].key);
        if (rows[i].rights) {
            expect_claim(s, rows[i].rights, weir__access_cap(INT64_MAX, now_s));
        } else {
            assert_false(s->c.trusted);
            assert_int_equal(s->c.claims.count, 0);
        }
    }
}

/* Only the key that was shown is what counts from there on. */
static void a_login_rests_on_its_key(void **state)
{
    struct scene *s = *state;

    add_rules(s);
    for (int second = 0; second < 2; second++) {
        assert_true(login(s, "till", second ? "other" : "key"));
        assert_int_equal(s->c.claims.at[0]->basis.ground, WEIR__GROUND_KEY);
        assert_int_equal(worth(s), WEIR__RIGHT_SEND);
        assert_int_equal(weir__namespace_rule_rotate(s->world.ns, NULL, "till",
                                                     second ? WEIR__KEY_PRIMARY
                                                            : WEIR__KEY_SECONDARY,
                                                     second ? "1" : "2", NULL),
                         0);
        assert_int_equal(worth(s), WEIR__RIGHT_SEND);
        assert_int_equal(weir__namespace_rule_rotate(s->world.ns, NULL, "till",
                                                     second ? WEIR__KEY_SECONDARY
                                                            : WEIR__KEY_PRIMARY,
                                                     "3", NULL),
                         0);
        assert_int_equal(worth(s), 0);
        assert_int_equal(weir__namespace_rule_rotate(s->world.ns, NULL, "till", WEIR__KEY_SECONDARY,
                                                     "other", NULL),
                         0);
    }
}

static void a_rule_that_is_gone_lets_nobody_in(void **state)
{
    struct scene *s = *state;

    add_rules(s);
    assert_true(login(s, "shop", "key"));
    assert_int_equal(weir__namespace_rule_remove(s->world.ns, NULL, "shop", NULL), 0);
    assert_int_equal(worth(s), 0);
    assert_false(login(s, "shop", "key"));
    assert_true(login(s, "till", "key"));
}

#define OF(whose, as) "the certificate is of '" whose "', not of '" as "'"
#define NO_RULE(name) "the certificate is of '" name "', and there is no access rule of this name"

static void a_certificate_has_the_name_of_a_rule(void **state)
{
    static const struct {
        const char *name, *as;
        unsigned rights;
        const char *text;
    } rows[] = {
        {"till", "", WEIR__RIGHT_SEND, NULL},
        {"shop", "shop", WEIR__RIGHT_LISTEN, NULL},
        {"all", "all", WEIR__RIGHTS_ALL, NULL},
        {"till", "shop", 0, OF("till", "shop")},
        {"till", "Till", 0, OF("till", "Till")},
        {"till", X63, 0, OF("till", X63)},
        {"till", X63 "y", 0, OF("till", X63 "y")},
        {"till", X63 "yz", 0, OF("till", X63 "y")},
        {"bar", "", 0, NO_RULE("bar")},
        {"bar", "bar", 0, NO_RULE("bar")},
    };
    struct scene *s = *state;

    add_rules(s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__tls_identity who = {.until_s = 1700000500};
        struct weir_error err = {0};
        snprintf(who.name, sizeof who.name, "%s", rows[i].name);
        weir__claims_fini(&s->c.claims);
        s->c.trusted = false;
        assert_int_equal(weir__cbs_login_certified(&s->c, &who, bytes(rows[i].as), &err),
                         rows[i].text ? WEIR_EDENIED : 0);
        if (rows[i].text) {
            assert_string_equal(err.text, rows[i].text);
            assert_false(s->c.trusted);
            continue;
        }
        expect_claim(s, rows[i].rights, 1700000500);
        assert_int_equal(s->c.claims.at[0]->basis.ground, WEIR__GROUND_RULE);
        assert_int_equal(worth(s), rows[i].rights);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(either_key_is_good_to_the_letter),
        TEST(a_login_rests_on_its_key),
        TEST(a_certificate_has_the_name_of_a_rule),
        TEST(a_rule_that_is_gone_lets_nobody_in),
    };

    return cmocka_run_group_tests_name("entering", tests, NULL, NULL);
}
