#include "cli/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/rights.h"
#include "hub/access.h"

#define LOCAL_KEY                                                                                  \
    ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"                \
    "UseDevelopmentEmulator=true"

static void addresses_are_told_from_other_text(void **state)
{
    static const char *const good[] = {"h:0", "localhost:65535", "[::1]:5672", "10.0.0.1:1"};
    static const char *const bad[] = {"", "h", ":1", "h:", "h:65536", "h:x", "h:1x", "h:-1"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!weir__connection_is_address(good[i])) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (weir__connection_is_address(bad[i])) fail_msg("taken: %s", bad[i]);
}

static void only_this_machine_is_local(void **state)
{
    static const char *const local[] = {"127.0.0.1:5672", "127.255.1.2:1", "[::1]:5672",
                                        "localhost:5672"};
    static const char *const open[] = {"0.0.0.0:5672", "126.0.0.1:1",  "128.0.0.1:1",
                                       "[::]:5672",    "[::2]:5672",   "localhost.example:1",
                                       "example:5672", "[127.0.0.1:1", "127.0.0.1.example:1"};
    char longest[300];

    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (!weir__connection_is_local(local[i])) fail_msg("not local: %s", local[i]);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        if (weir__connection_is_local(open[i])) fail_msg("local: %s", open[i]);
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "localhost", 9);
    memcpy(longest + 290, ":5672", 6);
    assert_false(weir__connection_is_local(longest));
}

static void expect_own(const char *address, const char *own)
{
    char out[WEIR__CONNECTION_ADDRESS_BYTES];

    weir__connection_own(out, address);
    assert_string_equal(out, own);
}

static void every_address_is_reached_by_the_machines_own(void **state)
{
    (void)state;
    expect_own("0.0.0.0:5672", "127.0.0.1:5672");
    expect_own("[::]:5300", "[::1]:5300");
    expect_own("10.0.0.1:5672", "10.0.0.1:5672");
    expect_own("[::2]:5672", "[::2]:5672");
}

static void expect_clients_string(const char *address, const char *hub, const char *endpoint,
                                  const char *path)
{
    char out[WEIR__CONNECTION_BYTES], whole[WEIR__CONNECTION_BYTES];

    weir__connection_string(out, address, hub, "rule", "key");
    snprintf(whole, sizeof whole,
             "Endpoint=sb://%s;SharedAccessKeyName=rule;SharedAccessKey=key;"
             "UseDevelopmentEmulator=true;%s",
             endpoint, path);
    assert_string_equal(out, whole);
}

/* Clients take localhost for what has no TLS, and 5672 for the port. */
static void strings_are_as_clients_take_them(void **state)
{
    (void)state;
    expect_clients_string("127.0.0.1:5672", NULL, "localhost", "");
    expect_clients_string("127.0.0.1:5673", "h", "localhost:5673", "EntityPath=h;");
    expect_clients_string("0.0.0.0:5672", NULL, "localhost", "");
    expect_clients_string("[::]:5672", NULL, "localhost", "");
    expect_clients_string("[::1]:56720", NULL, "localhost:56720", "");
    expect_clients_string("10.0.0.1:5672", NULL, "10.0.0.1", "");
    expect_clients_string("[fe80::1]:99", NULL, "[fe80::1]:99", "");
    expect_clients_string("example", NULL, "example", "");
}

static void expect_expanded(const char *text, const char *whole)
{
    static char out[WEIR__CONNECTION_TEXT_BYTES];

    if (!weir__connection_expand(out, text)) fail_msg("refused: %s", text);
    assert_string_equal(out, whole);
}

static void a_place_is_enough(void **state)
{
    static char out[WEIR__CONNECTION_TEXT_BYTES], text[WEIR__CONNECTION_TEXT_BYTES + 1];
    const char *given = "Endpoint=sb://h;SharedAccessKeyName=a;SharedAccessKey=b:1";

    (void)state;
    expect_expanded("h:99", "Endpoint=sb://h:99" LOCAL_KEY);
    expect_expanded("sb://h", "Endpoint=sb://h" LOCAL_KEY);
    expect_expanded("SB://h:7", "Endpoint=sb://h:7" LOCAL_KEY);
    expect_expanded(given, given);
    assert_false(weir__connection_expand(out, "h"));
    assert_false(weir__connection_expand(out, "./folder"));
    assert_false(weir__connection_expand(out, ""));
    memset(text, 'k', sizeof text - 1);
    memcpy(text, given, strlen(given));
    assert_false(weir__connection_expand(out, text));
    text[sizeof text - 2] = '\0';
    expect_expanded(text, text);
}

/* ---- another key of the same place ---- */

static void expect_like(const char *like, const char *hub, const char *whole)
{
    char out[WEIR__CONNECTION_BYTES];

    assert_true(weir__connection_like(out, like, hub, "r", "k"));
    assert_string_equal(out, whole);
}

static void the_place_stays_and_the_key_changes(void **state)
{
    (void)state;
    expect_like("Endpoint=sb://h:1;SharedAccessKeyName=a;SharedAccessKey=b", NULL,
                "Endpoint=sb://h:1;SharedAccessKeyName=r;SharedAccessKey=k;");
    expect_like("SharedAccessKeyName=a;SharedAccessKey=b; endpoint =sb://h/ ;EntityPath=x", "hub",
                "endpoint =sb://h/ ;SharedAccessKeyName=r;SharedAccessKey=k;EntityPath=hub;");
    expect_like("UseDevelopmentEmulator=true;;TransportType=AmqpWebSockets;Endpoint=sb://h;", NULL,
                "Endpoint=sb://h;SharedAccessKeyName=r;SharedAccessKey=k;"
                "UseDevelopmentEmulator=true;TransportType=AmqpWebSockets;");
    expect_like("EndpointX=1;Endpoint=sb://h", NULL,
                "Endpoint=sb://h;SharedAccessKeyName=r;SharedAccessKey=k;");
}

/* Of each length of the last part, whole or refused: never cut. */
static void a_string_that_is_too_long_is_refused(void **state)
{
    static const char *const forms[] = {"Endpoint=sb://h;TransportType=%s",
                                        "UseDevelopmentEmulator=%s;Endpoint=sb://h",
                                        "Endpoint=sb://%s"};
    static char like[2000], name[1400], out[WEIR__CONNECTION_BYTES];
    const char *rest = "SharedAccessKeyName=r;SharedAccessKey=k;";

    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        for (size_t len = 1100; len < sizeof name; len++) {
            memset(name, 'x', len);
            name[len] = '\0';
            snprintf(like, sizeof like, forms[f], name);
            size_t whole = strlen(like) + 1 + strlen(rest);
            bool good = weir__connection_like(out, like, NULL, "r", "k");
            assert_int_equal(good, whole < sizeof out);
            if (good) assert_int_equal(strlen(out), whole);
        }
}

/* ---- rights ---- */

static void rights_are_named(void **state)
{
    static const char *const bad[] = {"", "sen", "sends", "send,", ",send", "send listen", "Send"};
    unsigned rights;

    (void)state;
    assert_true(weir__rights_parse("send", &rights) && rights == WEIR__RIGHT_SEND);
    assert_true(weir__rights_parse("listen,send", &rights) &&
                rights == (WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN));
    assert_true(weir__rights_parse("manage,manage", &rights) && (rights & WEIR__RIGHT_MANAGE));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (weir__rights_parse(bad[i], &rights)) fail_msg("taken: %s", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_told_from_other_text),
        cmocka_unit_test(only_this_machine_is_local),
        cmocka_unit_test(every_address_is_reached_by_the_machines_own),
        cmocka_unit_test(strings_are_as_clients_take_them),
        cmocka_unit_test(a_place_is_enough),
        cmocka_unit_test(the_place_stays_and_the_key_changes),
        cmocka_unit_test(a_string_that_is_too_long_is_refused),
        cmocka_unit_test(rights_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
