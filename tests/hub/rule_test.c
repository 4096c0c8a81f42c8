/* What rules are worth to those who came in by them, and who is told that they are worth less. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/state.h"
#include "hub/world.h"

static struct world w;
static int told;

static void count_told(void *user)
{
    assert_ptr_equal(user, &w);
    told++;
}

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    told = 0;
    if (world_open(&w) != 0 || world_create(&w, "eh1", 1) != 0) return -1;
    return world_create(&w, "eh2", 1);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&w);
    return 0;
}

static struct weir__rule rule_of(const char *name, unsigned rights)
{
    struct weir__rule rule = {.rights = rights, .key = {"key one", "key two"}};

    for (int i = 0; i < WEIR__KEYS; i++) rule.key[i][3] = '-'; /* no spaces in keys */
    memcpy(rule.name, name, strlen(name) + 1);
    return rule;
}

static void add(const char *hub, const char *name, unsigned rights)
{
    struct weir__rule rule = rule_of(name, rights);

    assert_int_equal(weir__namespace_rule_add(w.ns, hub, &rule, &w.err), 0);
}

/* What a grant for a path that rests on this rule's first key is worth. */
static unsigned worth(const char *name, const char *key, bool of_hub, const char *path)
{
    struct weir__access_basis basis = weir__access_basis_of(name, key, of_hub);
    struct weir__access_path where;

    assert_int_equal(weir__access_path_parse(&where, weir__bytes_of(path, strlen(path)), false,
                                             NULL),
                     0);
    return weir__namespace_rights(w.ns, &basis, &where);
}

static void rights_are_those_of_now(void **state)
{
    struct weir__rule owner;

    (void)state;
    assert_int_equal(worth("app", "key-one", true, "/eh1"), 0);
    add(NULL, "app", WEIR__RIGHT_SEND);
    add("eh1", "app", WEIR__RIGHT_LISTEN);
    add("eh2", "own", WEIR__RIGHT_LISTEN);
    assert_int_equal(worth("app", "key-one", true, "/eh1/x"),
                     WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN);
    assert_int_equal(worth("app", "key-two", true, "/eh2"), WEIR__RIGHT_SEND);
    assert_int_equal(worth("app", "key-one", false, "/eh1"), WEIR__RIGHT_SEND);
    assert_int_equal(worth("app", "key-one", true, "/none"), WEIR__RIGHT_SEND);
    assert_int_equal(worth("app", "key-one", true, "/"), WEIR__RIGHT_SEND);
    assert_int_equal(worth("app", "key-six", true, "/eh1"), 0);
    assert_int_equal(worth("app", NULL, true, "/eh2"), WEIR__RIGHT_SEND); /* by a certificate */
    assert_int_equal(worth("own", "key-one", true, "/eh1"), 0);
    assert_int_equal(worth("own", "key-one", true, "/EH2"), WEIR__RIGHT_LISTEN);
    assert_int_equal(worth("", "key-one", true, "/"), 0);
    assert_int_equal(weir__namespace_own(w.ns, &owner, &w.err), 0);
    assert_int_equal(worth(owner.name, owner.key[WEIR__KEY_PRIMARY], false, "/eh1"),
                     WEIR__RIGHTS_ALL);
    assert_int_equal(weir__namespace_rule_remove(w.ns, NULL, "app", &w.err), 0);
    assert_int_equal(worth("app", "key-one", true, "/eh1"), WEIR__RIGHT_LISTEN);
}

static void assert_told(int rc, int times)
{
    assert_int_equal(rc, 0);
    assert_int_equal(told, times);
    told = 0;
}

/* The first rule of a hub, or a change of something else, takes nothing from anybody; what happens to
 * rules that were there may. */
static void whoever_watches_is_told_of_losses(void **state)
{
    struct weir__rule rule = rule_of("new", WEIR__RIGHT_SEND);

    (void)state;
    add(NULL, "app", WEIR__RIGHT_SEND);
    add("eh1", "app", WEIR__RIGHT_SEND);
    add("eh1", "other", WEIR__RIGHT_SEND);
    weir__namespace_watch_rules(w.ns, count_told, &w);
    assert_told(weir__namespace_group_add(w.ns, "eh1", "g", &w.err), 0);
    assert_told(world_create(&w, "eh3", 1), 0);
    assert_told(weir__namespace_rule_add(w.ns, "eh2", &rule, &w.err), 0); /* its first */
    assert_told(weir__namespace_rule_rotate(w.ns, "eh1", "app", WEIR__KEY_PRIMARY, "k", &w.err), 1);
    assert_told(weir__namespace_rule_rotate(w.ns, NULL, "app", WEIR__KEY_SECONDARY, "k", &w.err),
                1);
    assert_told(weir__namespace_rule_rotate(w.ns, NULL, "app", WEIR__KEY_SECONDARY, "k", &w.err),
                0); /* as it was */
    assert_told(weir__namespace_rule_remove(w.ns, "eh1", "other", &w.err), 1);
    assert_told(weir__namespace_rule_remove(w.ns, NULL, "app", &w.err), 1);
    assert_told(weir__namespace_hub_delete(w.ns, "eh3", &w.err), 0); /* it had no rules */
    assert_told(weir__namespace_hub_delete(w.ns, "eh1", &w.err), 1);
    weir__namespace_watch_rules(w.ns, NULL, NULL);
    assert_told(weir__namespace_hub_delete(w.ns, "eh2", &w.err), 0);
}

/* Two catalogues, of which the second differs in one thing. */
static void each_loss_is_seen(void **state)
{
    struct weir__rule rules[2][2] = {{rule_of("a", WEIR__RIGHT_SEND), rule_of("b", 1)},
                                     {rule_of("a", WEIR__RIGHT_SEND), rule_of("b", 1)}};
    struct weir__catalog_hub hubs[2] = {
        {.id = 7, .name = "eh1", .rules = rules[0], .rule_count = 2},
        {.id = 7, .name = "eh1", .rules = rules[1], .rule_count = 2}};
    struct weir__catalog before = {.hubs = &hubs[0], .hub_count = 1};
    struct weir__catalog after = {.hubs = &hubs[1], .hub_count = 1};

    (void)state;
    assert_false(weir__rules_lost(&before, &after));
    rules[1][1].rights = WEIR__RIGHT_LISTEN;
    assert_true(weir__rules_lost(&before, &after));
    rules[1][1] = rule_of("c", 1);
    assert_true(weir__rules_lost(&before, &after));
    rules[1][1] = rule_of("b", 1);
    rules[1][1].key[WEIR__KEY_SECONDARY][0]++;
    assert_true(weir__rules_lost(&before, &after));
    rules[1][1] = rule_of("b", 1);
    hubs[1].id = 8; /* another of the same name */
    assert_true(weir__rules_lost(&before, &after));
    hubs[1].id = 7;
    hubs[1].rule_count = 1;
    assert_true(weir__rules_lost(&before, &after));
    hubs[0].rule_count = 0; /* it had none */
    assert_false(weir__rules_lost(&before, &after));
    hubs[0].rule_count = hubs[1].rule_count = 2;
    assert_false(weir__rules_lost(&before, &after));
}

static void assert_fails(int rc, int want, const char *text)
{
    assert_int_equal(rc, want);
    assert_string_equal(w.err.text, text);
}

static void refusals_say_why(void **state)
{
    struct weir__rule app = rule_of("app", WEIR__RIGHT_SEND), bad = app;
    static const char need[] = "a rule needs one of Send, Listen and Manage";

    (void)state;
    add(NULL, "APP", WEIR__RIGHT_SEND);
    assert_fails(weir__namespace_rule_add(w.ns, NULL, &app, &w.err), WEIR_EEXIST,
                 "access rule 'app' exists already");
    bad.rights = 0;
    bad.name[0] = '/';
    assert_int_equal(weir__namespace_rule_add(w.ns, "eh1", &bad, &w.err), WEIR_EINVAL);
    assert_string_not_equal(w.err.text, need); /* the name comes first */
    bad.name[0] = 'a';
    assert_fails(weir__namespace_rule_add(w.ns, "eh1", &bad, &w.err), WEIR_EINVAL, need);
    bad.rights = WEIR__RIGHTS_ALL + 1;
    assert_fails(weir__namespace_rule_add(w.ns, "eh1", &bad, &w.err), WEIR_EINVAL, need);
    bad.rights = WEIR__RIGHTS_ALL;
    bad.key[WEIR__KEY_SECONDARY][0] = ' ';
    assert_fails(weir__namespace_rule_add(w.ns, "eh1", &bad, &w.err), WEIR_EINVAL,
                 "character 1 of the key is not printable ASCII");
    assert_fails(weir__namespace_rule_rotate(w.ns, NULL, "app", WEIR__KEY_PRIMARY, " ", &w.err),
                 WEIR_EINVAL, "character 1 of the key is not printable ASCII");
    assert_fails(weir__namespace_rule_rotate(w.ns, "eh1", "app", WEIR__KEY_PRIMARY, "k", &w.err),
                 WEIR_ENOTFOUND, "there is no access rule 'app'");
    assert_fails(weir__namespace_rule_remove(w.ns, "eh1", "x", &w.err), WEIR_ENOTFOUND,
                 "there is no access rule 'x'");
}

/* What is asked of a hub that is not there is not done to the namespace. */
static void rules_of_no_hub_are_none(void **state)
{
    (void)state;
    add(NULL, "app", WEIR__RIGHT_SEND);
    assert_int_equal(weir__namespace_rule_rotate(w.ns, "none", "app", WEIR__KEY_PRIMARY, "k",
                                                 &w.err),
                     WEIR_ENOTFOUND);
    assert_non_null(strstr(w.err.text, "none"));
    assert_int_equal(weir__namespace_rule_remove(w.ns, "none", "app", &w.err), WEIR_ENOTFOUND);
    assert_non_null(strstr(w.err.text, "none"));
    assert_int_equal(worth("app", "key-one", false, "/"), WEIR__RIGHT_SEND);
}

/* Made by Microsoft's JavaScript client for sb://localhost/eh1, good until second 1700000000. */
#define TOKEN                                                                                      \
    "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                         \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey"

static int verify(const char *token, const char *resource)
{
    struct weir__access_grant grant;

    return weir__namespace_verify(w.ns, weir__bytes_of(token, strlen(token)),
                                  weir__bytes_of(resource, strlen(resource)), 1699999999, &grant,
                                  &w.err);
}

/* A token is escaped, and what it is shown for is not. */
static void a_token_is_for_its_resource(void **state)
{
    struct weir__rule root = {"RootManageSharedAccessKey", WEIR__RIGHTS_ALL, {"SAS_KEY_VALUE", ""}};
    static char longest[WEIR__ACCESS_PATH_MAX + 2];

    (void)state;
    assert_int_equal(weir__namespace_rule_add(w.ns, "eh1", &root, &w.err), 0);
    assert_int_equal(verify(TOKEN, "/eh1/Partitions/0"), 0);
    assert_int_equal(verify(TOKEN, "/eh2"), WEIR_EDENIED);
    assert_int_equal(verify(TOKEN, "/eh%31"), WEIR_EDENIED);
    memset(longest, 'x', sizeof longest - 1);
    assert_fails(verify(TOKEN, longest), WEIR_EINVAL, "the resource is too long or badly escaped");
    assert_fails(verify("", "/eh1"), WEIR_EDENIED,
                 "MalformedToken: The token does not begin with 'SharedAccessSignature '.");
}

/* As many as there is room for are given, and all are counted. */
static void more_rules_than_room(void **state)
{
    struct weir__rule out[3] = {{.name = ""}};
    uint32_t count;

    (void)state;
    add("eh1", "a", WEIR__RIGHT_SEND);
    add("eh1", "b", WEIR__RIGHT_MANAGE);
    add("eh1", "c", WEIR__RIGHT_SEND);
    assert_int_equal(weir__namespace_rules(w.ns, "eh1", out, 2, &count, &w.err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(out[0].name, "a");
    assert_string_equal(out[1].name, "b");
    assert_int_equal(out[1].rights, WEIR__RIGHTS_ALL);
    assert_string_equal(out[2].name, "");
    assert_int_equal(weir__namespace_rules(w.ns, "none", out, 2, &count, &w.err), WEIR_ENOTFOUND);
    assert_int_equal(count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rights_are_those_of_now),  TEST(whoever_watches_is_told_of_losses),
        TEST(each_loss_is_seen),        TEST(refusals_say_why),
        TEST(rules_of_no_hub_are_none), TEST(a_token_is_for_its_resource),
        TEST(more_rules_than_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
