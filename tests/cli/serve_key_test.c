/* serve_key_test.c - who may come in when nobody said: the first key, and the well-known one. */
#include "cli/begun.h"

static bool is_known(void)
{
    return strcmp(s->rule.key[WEIR__KEY_PRIMARY], "SAS_KEY_VALUE") == 0;
}

static void a_key_of_its_own_where_others_can_come(void **state)
{
    const char **addresses[] = {&s->o.amqp, &s->o.amqps, &s->o.http, &s->o.https};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const char *usual = *addresses[i];
        for (int open = 0; open < 2; open++) {
            *addresses[i] = open ? "0.0.0.0:7" : "127.0.0.1:7";
            open_namespace(true);
            assert_int_equal(choose(), 0);
            assert_string_equal(s->rule.name, "RootManageSharedAccessKey");
            assert_string_equal(s->rule_hub, "");
            assert_int_equal(is_known(), !open);
            forget_namespace();
        }
        *addresses[i] = usual;
    }
    assert_int_equal(s->warnings.count, 0);
}

static void the_known_key_is_for_this_machine(void **state)
{
    struct weir__rule rule = {.name = "r", .rights = WEIR__RIGHT_SEND};

    (void)state;
    open_namespace(true);
    add_hub("h");
    memcpy(rule.key[WEIR__KEY_SECONDARY], "SAS_KEY_VALUE", sizeof "SAS_KEY_VALUE");
    assert_int_equal(weir__namespace_rule_add(s->ns, "h", &rule, &err), 0);
    assert_int_equal(choose(), 0);
    assert_string_equal(s->rule.name, "r"); /* who has a rule gets no other */
    assert_string_equal(s->rule_hub, "h");
    s->o.http = "0.0.0.0:7";
    s->o.https = "0.0.0.0:8";
    assert_int_equal(choose(), WEIR_EDENIED);
    assert_string_equal(err.text,
                        "the folder accepts the well-known key SAS_KEY_VALUE, which is for this "
                        "machine only: listen on 127.0.0.1, make it go with 'weir key rotate' "
                        "(twice) or 'weir key remove', or give --allow-development-key");
    assert_int_equal(s->warnings.count, 0);
    s->o.allow_development_key = true;
    assert_int_equal(choose(), 0);
    assert_int_equal(s->warnings.count, 1);
    assert_string_equal(s->warnings.text[0],
                        "WHOEVER CAN REACH 0.0.0.0:7 CAN READ AND WRITE EVERY HUB, with the "
                        "well-known key SAS_KEY_VALUE: that is what --allow-development-key means");
    forget_namespace();
    open_namespace(true);
    assert_int_equal(choose(), 0); /* and a new one gets it */
    assert_true(is_known());
    assert_int_equal(s->warnings.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEGUN_CASE(a_key_of_its_own_where_others_can_come),
        BEGUN_CASE(the_known_key_is_for_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
