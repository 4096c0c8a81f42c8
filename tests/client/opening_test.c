/* A connection string and options become a connection that nobody has dialled yet: what is usual,
 * what it is called, where it is administered, and what may be wrong with the string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "client/weir.h"
#include "client/wire.h"
#include "client/wire_admin.h"

#define RULE ";SharedAccessKeyName=n;SharedAccessKey=k"
#define PLAIN RULE ";UseDevelopmentEmulator=true"
#define WS ";TransportType=AmqpWebSockets"

static struct weir_error err;

static struct weir__wire *open_wire(const char *text, const struct weir_options *o)
{
    const struct weir_options none = {.size = sizeof none};
    struct weir__backend *b;

    if (weir__wire_open(&b, text, o ? o : &none, &err) != 0) fail_msg("%s: %s", text, err.text);
    return (struct weir__wire *)b;
}

static void close_wire(struct weir__wire *w)
{
    assert_int_equal(w->base.ops->close(&w->base, &err), 0);
}

static void options_have_their_usual(void **state)
{
    struct weir_options o = {.size = sizeof o,
                             .token_s = 7,
                             .idle_ms = 8,
                             .patience_ms = 9,
                             .batch_bytes_max = 10,
                             .wait = true};
    struct weir__wire *w = open_wire("Endpoint=sb://h" PLAIN, NULL), *other;

    (void)state;
    assert_int_equal(w->token_s, 3600);
    assert_int_equal(w->idle_ms, 30000);
    assert_int_equal(w->patience_ms, 15000);
    assert_int_equal(w->http.timeout_ms, 15000);
    assert_int_equal(w->batch_bytes_max, 0);
    assert_false(w->wait);
    other = open_wire("Endpoint=sb://h" PLAIN, &o);
    assert_int_equal(other->token_s, 7);
    assert_int_equal(other->idle_ms, 8);
    assert_int_equal(other->patience_ms, 9);
    assert_int_equal(other->http.timeout_ms, 9);
    assert_int_equal(other->batch_bytes_max, 10);
    assert_true(other->wait);
    assert_int_equal(strlen(w->container), 5 + 32);
    assert_string_not_equal(w->container, other->container);
    close_wire(other);
    close_wire(w);
}

/* ---- spaces ---- */

static void a_space_is_called_by_its_host(void **state)
{
    static const struct {
        const char *text, *space;
    } cases[] = {
        {"Endpoint=sb://Host.AZ" RULE, "host.az"}, {"Endpoint=sb://h:5671" RULE, "h"},
        {"Endpoint=sb://h:5672" RULE, "h"},        {"Endpoint=sb://h:443" RULE, "h"},
        {"Endpoint=sb://h:5300" RULE, "h"},        {"Endpoint=sb://h:5301" RULE, "h:5301"},
        {"Endpoint=sb://h:44" RULE, "h:44"},       {"Endpoint=sb://[FE80::1]:9" RULE, "fe80::1:9"},
    };
    char space[WEIR_SPACE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir *w;
        assert_int_equal(weir_open(&w, cases[i].text, NULL, &err), 0);
        assert_int_equal(weir_space(w, space, &err), 0);
        assert_string_equal(space, cases[i].space);
        assert_int_equal(weir_close(w, &err), 0);
    }
}

static void a_space_may_be_named(void **state)
{
    char name[WEIR_SPACE_BYTES + 1], space[WEIR_SPACE_BYTES];
    struct weir_options o = {.size = sizeof o, .space = "A-Z@[`{"};
    struct weir *w;

    (void)state;
    assert_int_equal(weir_open(&w, "Endpoint=sb://h:1" RULE, &o, &err), 0);
    assert_int_equal(weir_space(w, space, &err), 0);
    assert_string_equal(space, "a-z@[`{");
    assert_int_equal(weir_close(w, &err), 0);
    memset(name, 'x', sizeof name);
    name[WEIR_SPACE_BYTES] = '\0';
    o.space = name;
    assert_int_equal(weir_open(&w, "Endpoint=sb://h:1" RULE, &o, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "options: the space has more than 271 bytes");
    name[WEIR_SPACE_BYTES - 1] = '\0';
    assert_int_equal(weir_open(&w, "Endpoint=sb://h:1" RULE, &o, &err), 0);
    assert_int_equal(weir_space(w, space, &err), 0);
    assert_string_equal(space, name);
    assert_int_equal(weir_close(w, &err), 0);
}

/* ---- administration ---- */

static void administration_is_where_it_was_said(void **state)
{
    static const struct {
        const char *text, *admin, *url, *address;
        bool secure;
    } cases[] = {
        {"Endpoint=sb://h" PLAIN, NULL, "", "", false},
        {"Endpoint=sb://h" RULE, NULL, "", "", false},
        {"Endpoint=sb://h" PLAIN WS, NULL, "http://h:5300", "h:5300", false},
        {"Endpoint=sb://h" RULE WS, NULL, "https://h:443", "h:443", true},
        {"Endpoint=sb://[::1]:9" RULE WS, NULL, "https://[::1]:9", "[::1]:9", true},
        {"Endpoint=sb://h" RULE WS, "http://a", "http://a", "a:80", false},
        {"Endpoint=sb://h" PLAIN, "https://a:1/", "https://a:1", "a:1", true},
        {"Endpoint=sb://h" RULE, "https://a", "https://a", "a:443", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_options o = {.size = sizeof o, .admin = cases[i].admin};
        struct weir__wire *w = open_wire(cases[i].text, &o);
        bool own = cases[i].secure && w->to.plain; /* trust that AMQP has no use for */
        assert_string_equal(w->http.url, cases[i].url);
        assert_string_equal(w->http.address, cases[i].address);
        assert_int_equal(w->http.secure, cases[i].secure);
        assert_int_equal(w->http.tls != NULL, cases[i].secure);
        assert_ptr_equal(w->http.tls, cases[i].secure ? (own ? w->http_tls : w->tls) : NULL);
        assert_int_equal(w->http_tls != NULL, own);
        close_wire(w);
    }
}

static void urls_have_a_host_and_nothing_else(void **state)
{
    static const char *const bad[] = {
        "",           "h",          "ftp://h",     "http:/h",     "http://",       "https://",
        "http:///",   "http://h/p", "http://h//",  "http://h?q",  "http://h#f",    "http://u@h",
        "http://h%1", "http://h h", "http://h\\p", "http://h\tp", "https://h\r\n", "HTTP://h",
    };
    char host[WEIR__HTTP_CLIENT_HOST_MAX + 16] = "https://", says[512];
    struct weir__http_client c = {.timeout_ms = 1};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(says, sizeof says, "'%s' is not http://HOST[:PORT] or https://HOST[:PORT]",
                 bad[i]);
        assert_int_equal(weir__http_client_set_url(&c, bad[i], &err), WEIR_EINVAL);
        assert_string_equal(err.text, says);
    }
    memset(host + 8, 'h', WEIR__HTTP_CLIENT_HOST_MAX);
    assert_int_equal(weir__http_client_set_url(&c, host, &err), WEIR_EINVAL);
    host[8 + WEIR__HTTP_CLIENT_HOST_MAX - 1] = '\0';
    assert_int_equal(weir__http_client_set_url(&c, host, &err), 0);
    assert_string_equal(c.url, host);
    assert_memory_equal(c.address, host + 8, WEIR__HTTP_CLIENT_HOST_MAX - 1);
    assert_string_equal(c.address + WEIR__HTTP_CLIENT_HOST_MAX - 1, ":443");
    assert_int_equal(weir__http_client_set_url(&c, "http://[::1]", &err), 0);
    assert_string_equal(c.address, "[::1]:80");
    assert_int_equal(weir__http_client_set_url(&c, "http://[::1]:7/", &err), 0);
    assert_string_equal(c.address, "[::1]:7");
}

static void a_bad_place_of_administration_is_named(void **state)
{
    struct weir_options o = {.size = sizeof o, .admin = "h:1"};
    struct weir *w;

    (void)state;
    assert_int_equal(weir_open(&w, "Endpoint=sb://h" PLAIN, &o, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "admin: 'h:1' is not http://HOST[:PORT] or https://HOST[:PORT]");
}

/* ---- what may be wrong ---- */

#define FLAG "UseDevelopmentEmulator=true"
#define TRIED "; TLS was tried: " FLAG " may be missing in the connection string"
#define TRUST                                                                                      \
    "; " FLAG " may be missing in the connection string; else 'weir trust' shows whom to trust"

static void hints_are_given_where_they_help(void **state)
{
    static const struct {
        const char *text;
        enum weir__wire_failure failure;
        const char *hint;
    } cases[] = {
        {"Endpoint=sb://localhost" PLAIN, WEIR__WIRE_BROKEN, ""},
        {"Endpoint=sb://localhost" PLAIN, WEIR__WIRE_NOT_AMQP,
         "; " FLAG " means AMQP without TLS: leave it out if TLS is spoken there"},
        {"Endpoint=sb://far.away" RULE, WEIR__WIRE_BROKEN, ""},
        {"Endpoint=sb://far.away" RULE, WEIR__WIRE_STRANGER, ""},
        {"Endpoint=sb://far.away" RULE, WEIR__WIRE_NOT_TLS,
         "; TLS is not spoken there: " FLAG " may be missing in the connection string"},
        {"Endpoint=sb://LOCALHOST" RULE, WEIR__WIRE_BROKEN, TRIED},
        {"Endpoint=sb://127.0.0.1" RULE, WEIR__WIRE_NOT_AMQP, TRIED},
        {"Endpoint=sb://127.255.0.1" RULE, WEIR__WIRE_BROKEN, TRIED},
        {"Endpoint=sb://126.0.0.1" RULE, WEIR__WIRE_BROKEN, ""},
        {"Endpoint=sb://128.0.0.1" RULE, WEIR__WIRE_BROKEN, ""},
        {"Endpoint=sb://[::1]" RULE, WEIR__WIRE_STRANGER, TRUST},
        {"Endpoint=sb://[::2]" RULE, WEIR__WIRE_STRANGER, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__wire *w = open_wire(cases[i].text, NULL);
        char want[256];
        snprintf(want, sizeof want, "why%s", cases[i].hint);
        weir__fail(&err, WEIR_EUNREACHABLE, "why");
        weir__wire_explain(w, cases[i].failure, &err);
        assert_string_equal(err.text, want);
        w->met = true; /* somebody has answered there: the string is good */
        weir__fail(&err, WEIR_EUNREACHABLE, "why");
        weir__wire_explain(w, cases[i].failure, &err);
        assert_string_equal(err.text, "why");
        close_wire(w);
    }
}

static void only_the_first_failure_is_final(void **state)
{
    struct weir__wire *w = open_wire("Endpoint=sb://h" PLAIN, NULL);
    struct weir_error refused = {.code = WEIR_EUNREACHABLE}, memory = {.code = WEIR_ENOMEM};

    (void)state;
    assert_true(weir__wire_is_final(w, &refused));
    assert_false(weir__wire_is_final(w, &memory));
    w->wait = true;
    assert_false(weir__wire_is_final(w, &refused));
    w->wait = false;
    w->met = true;
    assert_false(weir__wire_is_final(w, &refused));
    close_wire(w);
}

static void who_waited_in_vain_is_told_why(void **state)
{
    struct weir__wire *w = open_wire("Endpoint=sb://h:7" PLAIN, NULL);

    (void)state;
    assert_int_equal(weir__wire_late(w, 20, &err), WEIR_ETIMEDOUT);
    assert_string_equal(err.text, "no answer from h:7 within 20 ms");
    weir__fail(&w->trouble, WEIR_EUNREACHABLE, "it is cut");
    assert_int_equal(weir__wire_late(w, 20, &err), WEIR_EUNREACHABLE);
    assert_string_equal(err.text, "no answer from h:7 within 20 ms: it is cut");
    close_wire(w);
}

/* A token that somebody else made is shown as it is, to its last byte. */
static void a_signature_is_a_token(void **state)
{
    static const char front[] = "Endpoint=sb://h;SharedAccessSignature=";
    char text[sizeof front + WEIR__ACCESS_TOKEN_MAX] = "", token[WEIR__ACCESS_TOKEN_MAX + 1];
    struct weir__wire *w;
    int64_t expires_s = 0;

    (void)state;
    memset(text, 's', sizeof text - 1);
    memcpy(text, front, sizeof front - 1);
    memcpy(text + sizeof front - 1, "SharedAccessSignature se=77&", 28);
    memset(token, 't', sizeof token);
    w = open_wire(text, NULL);
    assert_int_equal(weir__wire_token(w, "sb://h/h", &expires_s, token, &err), 0);
    assert_string_equal(token, text + sizeof front - 1);
    assert_int_equal(expires_s, 77);
    close_wire(w);
}

/* What no group can be called is not asked for. */
static void a_group_has_its_longest(void **state)
{
    char group[64], says[128];
    struct weir_receiver_options o = {.size = sizeof o, .group = group};
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    memset(group, 'g', sizeof group);
    assert_int_equal(weir_open(&w, "Endpoint=sb://127.0.0.1:1" PLAIN, NULL, &err), 0);
    group[WEIR__GROUP_NAME_MAX + 1] = '\0';
    assert_int_equal(weir_receiver_open(&r, w, "h", 0, &o, &err), WEIR_ENOTFOUND);
    snprintf(says, sizeof says, "no group has a name of %d bytes", WEIR__GROUP_NAME_MAX + 1);
    assert_string_equal(err.text, says);
    group[WEIR__GROUP_NAME_MAX] = '\0';
    assert_int_equal(weir_receiver_open(&r, w, "h", 0, &o, &err), WEIR_EUNREACHABLE);
    assert_int_equal(weir_close(w, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_have_their_usual),
        cmocka_unit_test(a_space_is_called_by_its_host),
        cmocka_unit_test(a_space_may_be_named),
        cmocka_unit_test(administration_is_where_it_was_said),
        cmocka_unit_test(urls_have_a_host_and_nothing_else),
        cmocka_unit_test(a_bad_place_of_administration_is_named),
        cmocka_unit_test(hints_are_given_where_they_help),
        cmocka_unit_test(only_the_first_failure_is_final),
        cmocka_unit_test(who_waited_in_vain_is_told_why),
        cmocka_unit_test(a_signature_is_a_token),
        cmocka_unit_test(a_group_has_its_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
