/* Connection strings: every part that can be wrong is named, and no key is ever repeated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/connstr.h"
#include "weir/weir.h"

#define KEY "hush-hush="
#define RULE "SharedAccessKeyName=root;SharedAccessKey=" KEY

static struct weir__connstr c;
static struct weir_error err;

static void good_ones_are_taken_apart(void **state)
{
    static const struct {
        const char *text, *host, *address;
        bool plain, websocket;
    } cases[] = {
        {"Endpoint=sb://ns.servicebus.windows.net/;" RULE, "ns.servicebus.windows.net",
         "ns.servicebus.windows.net:5671", false, false},
        {"Endpoint=sb://localhost;" RULE ";UseDevelopmentEmulator=true;", "localhost",
         "localhost:5672", true, false},
        {" endpoint = SB://h:1/ ; " RULE "; usedevelopmentemulator = TRUE ;;", "h", "h:1", true,
         false},
        {RULE ";UseDevelopmentEmulator=false;Endpoint=sb://10.0.0.1:65535", "10.0.0.1",
         "10.0.0.1:65535", false, false},
        {"Endpoint=sb://[::1]:5672/;" RULE ";Later=word", "::1", "[::1]:5672", false, false},
        {"Endpoint=sb://[fe80::1%eth0];" RULE, "fe80::1%eth0", "[fe80::1%eth0]:5671", false, false},
        {"Endpoint=sb://h;" RULE ";TransportType=AmqpWebSockets", "h", "h:443", false, true},
        {"transporttype=amqpwebsockets;UseDevelopmentEmulator=true;Endpoint=sb://h;" RULE, "h",
         "h:5300", true, true},
        {"Endpoint=sb://h:8443;" RULE ";TransportType=AmqpWebSockets", "h", "h:8443", false, true},
        {"Endpoint=sb://h;" RULE ";TransportType=AmqpTcp", "h", "h:5671", false, false},
        {"Endpoint=sb://h;" RULE ";TransportType=Amqp", "h", "h:5671", false, false},
        {"\tEndpoint=\tsb://a-b_c.9:00080/\n;" RULE, "a-b_c.9", "a-b_c.9:00080", false, false},
        {";; " RULE " ;Endpoint=sb://h", "h", "h:5671", false, false},
        {" ; \t;" RULE ";Endpoint = sb://h ;\n", "h", "h:5671", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(weir__connstr_is(cases[i].text));
        if (weir__connstr_parse(&c, cases[i].text, &err) != 0) fail_msg("%zu: %s", i, err.text);
        assert_string_equal(c.host, cases[i].host);
        assert_string_equal(c.address, cases[i].address);
        assert_int_equal(c.plain, cases[i].plain);
        assert_int_equal(c.websocket, cases[i].websocket);
        assert_string_equal(c.key_name, "root");
        assert_string_equal(c.key, KEY);
        assert_string_equal(c.hub, "");
    }
}

static void a_signature_stands_for_a_key(void **state)
{
    (void)state;
    assert_int_equal(weir__connstr_parse(&c,
                                         "Endpoint=sb://h/;EntityPath=eh1;SharedAccessSignature="
                                         "SharedAccessSignature sr=a&sig=b%3D&se=1&skn=root",
                                         &err),
                     0);
    assert_string_equal(c.signature, "SharedAccessSignature sr=a&sig=b%3D&se=1&skn=root");
    assert_string_equal(c.hub, "eh1");
    assert_string_equal(c.key, "");
}

#define TEN "aaaaaaaaaa"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG HUNDRED HUNDRED HUNDRED

/* What the text must say. */
static void bad_ones_say_what_is_wrong(void **state)
{
    static const char endpoint[] = "Endpoint is malformed: expected sb://HOST[:PORT]/";
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"Endpoint", "part 1 has no '=': expected NAME=VALUE"},
        {RULE ";" KEY "hush;" KEY, "Endpoint"},
        {"Endpoint=sb://h/;" RULE ";hush-hush", "part 4 has no '='"},
        {RULE, "there is no Endpoint: expected Endpoint=sb://HOST[:PORT]/"},
        {"Endpoint=;" RULE, endpoint},
        {"Endpoint= \t ;" RULE, endpoint},
        {"Endpoint=https://h/;" RULE, endpoint},
        {"Endpoint=sb:///;" RULE, endpoint},
        {"Endpoint=sb://h:/;" RULE, endpoint},
        {"Endpoint=sb://h:0/;" RULE, endpoint},
        {"Endpoint=sb://h:65536/;" RULE, endpoint},
        {"Endpoint=sb://h:5672/path;" RULE, endpoint},
        {"Endpoint=sb://h h/;" RULE, endpoint},
        {"Endpoint=sb://[::1;" RULE, endpoint},
        {"Endpoint=sb://[]:1;" RULE, endpoint},
        {"Endpoint=sb://" LONG ";" RULE, endpoint},
        {"Endpoint=sb://hush-hush=;" RULE, endpoint},
        {"Endpoint=sb:/;" RULE, endpoint},
        {"Endpoint=amqp1host;" RULE, endpoint}, /* a good host, had it its sb:// */
        {"Endpoint=sb://h//;" RULE, endpoint},
        {"Endpoint=sb://h:5a/;" RULE, endpoint},
        {"Endpoint=sb://h:005672;" RULE, endpoint},
        {"Endpoint=sb://h:1:2;" RULE, endpoint},
        {"Endpoint=sb://[::1]5672;" RULE, endpoint},
        {"Endpoint=sb://[a-b];" RULE, endpoint},
        {"Endpoint=sb://h%1;" RULE, endpoint},
        {"Endpoint=sb://h;Endpoint=sb://h;" RULE, "Endpoint is there twice"},
        {"Endpoint=sb://h;SharedAccessKey=" KEY, "there is no SharedAccessKeyName"},
        {"Endpoint=sb://h;SharedAccessKeyName=root", "there is no SharedAccessKey"},
        {"Endpoint=sb://h;SharedAccessKeyName=root;SharedAccessKey=",
         "SharedAccessKey is malformed"},
        {"Endpoint=sb://h;SharedAccessKeyName=" LONG, "SharedAccessKeyName is malformed"},
        {"Endpoint=sb://h;SharedAccessKey=" KEY LONG, "SharedAccessKey is malformed"},
        {"Endpoint=sb://h;EntityPath=" LONG, "EntityPath is malformed: expected the name of a hub"},
        {"Endpoint=sb://h;" RULE ";UseDevelopmentEmulator=maybe",
         "UseDevelopmentEmulator is malformed: expected true or false"},
        {"Endpoint=sb://h;" RULE ";TransportType=NetMessaging",
         "TransportType is malformed: expected Amqp, AmqpTcp or AmqpWebSockets"},
        {"Endpoint=sb://h;SharedAccessSignature=sr=" KEY, "SharedAccessSignature is malformed"},
        {"Endpoint=sb://h;" RULE ";SharedAccessSignature=SharedAccessSignature sr=a",
         "expected either a signature or a key"},
        {"Endpoint=sb://h;SharedAccessKey=k;SharedAccessSignature=SharedAccessSignature sr=a",
         "expected either a signature or a key"},
        {"Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessSignature=SharedAccessSignature sr=a",
         "expected either a signature or a key"},
        {"Endpoint=sb://h;SharedAccessSignature=SharedAccessSignature_sr=a",
         "SharedAccessSignature is malformed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(weir__connstr_parse(&c, cases[i].text, &err), WEIR_EINVAL);
        if (!strstr(err.text, cases[i].says)) fail_msg("%zu: %s", i, err.text);
        assert_memory_equal(err.text, "connection string: ", 19);
        assert_null(strstr(err.text, "hush"));
    }
}

/* "front", `count` times a letter, "back"; parsed. */
static int parse_long(const char *front, size_t count, const char *back)
{
    static char text[2 * WEIR__CONNSTR_BYTES_MAX];
    size_t len = strlen(front);

    assert_true(len + count + strlen(back) < sizeof text);
    memcpy(text, front, len);
    memset(text + len, 'x', count);
    strcpy(text + len + count, back);
    return weir__connstr_parse(&c, text, &err);
}

/* Each part is taken as long as it may be, and not one byte longer. */
static void each_part_has_its_longest(void **state)
{
    static const char rest[] = ";Endpoint=sb://h;" RULE;
    static const struct {
        const char *front, *back, *named;
        size_t max;
    } cases[] = {
        {"Endpoint=sb://", ";" RULE, "Endpoint", WEIR__CONNSTR_HOST_MAX},
        {"Endpoint=sb://h;SharedAccessKey=k;SharedAccessKeyName=", "", "SharedAccessKeyName", 256},
        {"Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=", "", "SharedAccessKey",
         WEIR__CONNSTR_KEY_MAX},
        {"Endpoint=sb://h;SharedAccessSignature=SharedAccessSignature ", "",
         "SharedAccessSignature", WEIR__ACCESS_TOKEN_MAX - 22},
        {"EntityPath=", rest, "EntityPath", 256},
        {"Later=", rest, "8192 bytes", WEIR__CONNSTR_BYTES_MAX - 6 - (sizeof rest - 1)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse_long(cases[i].front, cases[i].max, cases[i].back) != 0)
            fail_msg("%zu: %s", i, err.text);
        assert_int_equal(parse_long(cases[i].front, cases[i].max + 1, cases[i].back), WEIR_EINVAL);
        if (!strstr(err.text, cases[i].named)) fail_msg("%zu: %s", i, err.text);
    }
}

static void folders_are_not_taken_for_one(void **state)
{
    (void)state;
    assert_false(weir__connstr_is("data"));
    assert_false(weir__connstr_is("/var/lib/weir;a=b"));
    assert_false(weir__connstr_is("Endpoint"));
    assert_true(weir__connstr_is("sb://host/"));
    assert_true(weir__connstr_is("SharedAccessKey=x"));
    assert_true(weir__connstr_is("x=y; EntityPath=h"));
    assert_true(weir__connstr_is(";;entitypath =h"));
    assert_false(weir__connstr_is("EntityPath;x=y"));
    assert_false(weir__connstr_is("EntityPaths=h"));
    assert_false(weir__connstr_is("EntityPat=h"));
    assert_false(weir__connstr_is("a:/b"));
}

static void opening_says_the_same(void **state)
{
    struct weir *w;

    (void)state;
    assert_int_equal(weir_open(&w, RULE ";Endpoint=sb//h", NULL, &err), WEIR_EINVAL);
    assert_null(w);
    assert_non_null(strstr(err.text, "Endpoint is malformed"));
    assert_null(strstr(err.text, "hush"));
    assert_int_equal(weir_open(&w, "", NULL, &err), WEIR_EINVAL);
    assert_int_equal(weir_open(&w, NULL, NULL, NULL), WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_are_taken_apart),
        cmocka_unit_test(a_signature_stands_for_a_key),
        cmocka_unit_test(bad_ones_say_what_is_wrong),
        cmocka_unit_test(each_part_has_its_longest),
        cmocka_unit_test(folders_are_not_taken_for_one),
        cmocka_unit_test(opening_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
