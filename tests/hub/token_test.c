/* What tokens and resources are made of: which are taken apart, and how others are refused. */
#include "hub/access.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir_error err;

static struct weir__bytes text(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

#define SIG "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D"

static void malformed(void **state)
{
    static const char begin[] = "The token does not begin with 'SharedAccessSignature '.",
                      field[] = "A field of the token is there twice or has no value.",
                      missing[] = "One of sr, sig, se and skn is missing.",
                      expiry[] = "se is not a number of seconds.",
                      sig[] = "sig is not a signature.", resource[] = "sr is not a resource.";
    static const struct {
        const char *token, *why;
    } rows[] = {
        {"", begin},
        {"SharedAccessSignature", begin},
        {"SharedAccessSignature ", missing},
        {"Bearer sr=a&sig=b&se=1&skn=c", begin},
        {"SharedAccessSignature\tsr=a&" SIG "&se=1&skn=c", begin},
        {"SharedAccessSignature sr=a&se=1&skn=c", missing},
        {"SharedAccessSignature " SIG "&se=1&skn=c", missing},
        {"SharedAccessSignature sr=a&" SIG "&skn=c", missing},
        {"SharedAccessSignature sr=a&" SIG "&se=1", missing},
        {"SharedAccessSignature sr=a&sig=b&se=1&skn=c", sig},
        {"SharedAccessSignature sr=a&" SIG "x&se=1&skn=c", sig},
        {"SharedAccessSignature sr=a&" SIG "%&se=1&skn=c", sig},
        {"SharedAccessSignature sr=a&sr=b&" SIG "&se=1&skn=c", field},
        {"SharedAccessSignature sr&" SIG "&se=1&skn=c", field},
        {"SharedAccessSignature sr=a&" SIG "&se=1&skn=c&skn", field},
        {"SharedAccessSignature sr=a&" SIG "&se=&skn=c", expiry},
        {"SharedAccessSignature sr=a&" SIG "&se=1x&skn=", expiry},
        {"SharedAccessSignature sr=a&" SIG "&se=/1&skn=", expiry},
        {"SharedAccessSignature sr=a&" SIG "&se=1:&skn=", expiry},
        {"SharedAccessSignature sr=a&" SIG "&se=1000000000000000000&skn=c", expiry},
        {"SharedAccessSignature sr=a&" SIG "&se=1&skn=%4", "skn is not the name of a rule."},
        {"SharedAccessSignature sr=%&" SIG "&se=1&skn=", resource},
        {"SharedAccessSignature sr=%0&" SIG "&se=1&skn=", resource},
        {"SharedAccessSignature sr=%00&" SIG "&se=1&skn=", resource},
    };
    struct weir__access_token token;
    char want[128];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].token);
        char *exact = malloc(len ? len : 1); /* no NUL behind it */
        memcpy(exact, rows[i].token, len);
        assert_int_equal(weir__access_token_parse(&token, weir__bytes_of(exact, len), &err),
                         WEIR_EDENIED);
        snprintf(want, sizeof want, "MalformedToken: %s", rows[i].why);
        assert_string_equal(err.text, want);
        free(exact);
    }
}

/* Fields of others, whose names begin as ours do, the largest numbers, and the longest name. */
static void well_formed(void **state)
{
    struct weir__access_token token;
    char name[WEIR__RULE_NAME_MAX + 2] = "", line[600];

    (void)state;
    memset(name, 'n', WEIR__RULE_NAME_MAX);
    snprintf(line, sizeof line,
             "SharedAccessSignature s=1&srx=2&x&&skn=%s&se=999999999999999999&sr=%%2Feh%%31&%s",
             name, SIG);
    assert_int_equal(weir__access_token_parse(&token, text(line), &err), 0);
    assert_string_equal(token.rule, name);
    assert_true(token.expires_s == INT64_C(999999999999999999));
    assert_string_equal(token.path.text, "eh1");
    assert_string_equal(token.signature, "bXwnzzxeV2PFlM+GaXaWproC2URqPYHFIhvxuIqXTAA=");
    name[WEIR__RULE_NAME_MAX] = 'n';
    snprintf(line, sizeof line, "SharedAccessSignature skn=%s&se=1&sr=a&%s", name, SIG);
    assert_int_equal(weir__access_token_parse(&token, text(line), &err), WEIR_EDENIED);
    assert_string_equal(err.text, "MalformedToken: skn is not the name of a rule.");
}

/* Every pair of characters behind a percent sign: hexadecimal digits are one, others refused. */
static void escapes(void **state)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    struct weir__access_path path;

    (void)state;
    for (size_t len = 2; len < 4; len++) /* the digits that follow are not a part of it */
        assert_int_equal(weir__access_path_parse(&path, weir__bytes_of("/%41", len), true, NULL),
                         WEIR_EINVAL);
    for (int c = 1; c < 256; c++) {
        const char low[] = {'/', '%', '4', (char)c, 0}, high[] = {'/', '%', (char)c, '1', 0};
        bool good = strchr(digits, c);
        assert_int_equal(weir__access_path_parse(&path, text(low), true, &err),
                         good ? 0 : WEIR_EINVAL);
        if (good)
            assert_int_equal(path.text[0], 0x40 + strtol((char[]){(char)c, 0}, NULL, 16));
        else
            assert_string_equal(err.text, "the resource is too long or badly escaped");
        assert_int_equal(weir__access_path_parse(&path, text(high), true, NULL),
                         good ? 0 : WEIR_EINVAL);
        if (good)
            assert_int_equal((uint8_t)path.text[0],
                             1 + 16 * strtol((char[]){(char)c, 0}, NULL, 16));
    }
}

/* The longest resource, and one byte more. */
static void longest_path(void **state)
{
    struct weir__access_path path;
    char longest[sizeof path.text + 1] = "/";

    (void)state;
    memset(longest + 1, 'p', sizeof longest - 2);
    longest[sizeof path.text] = '\0';
    assert_int_equal(weir__access_path_parse(&path, text(longest), false, NULL), WEIR_EINVAL);
    longest[sizeof path.text - 1] = '\0';
    assert_int_equal(weir__access_path_parse(&path, text(longest), false, NULL), 0);
    assert_string_equal(path.text, longest + 1);
}

static void schemes(void **state)
{
    static const struct {
        const char *text;
        bool scheme;
    } rows[] = {{"sb://h", true},  {"a-z.A+Z09://", true}, {"://h", false},   {"sb:/", false},
                {"sb:/h/", false}, {"sb//:h", false},      {"s_b://", false}, {"s b://", false},
                {"{s://h", false}, {"`://h", false},       {"[://h", false},  {"@://h", false},
                {";://h", false},  {"z://", true},         {"Z://", true},    {"a://", true},
                {"A://", true},    {"0://", true},         {"9://", true},    {"/://", false},
                {",://", false},   {"sb", false},          {"", false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(weir__access_has_scheme(text(rows[i].text)), rows[i].scheme);
    for (size_t len = 0; len < 7; len++) /* what follows is not a part of it */
        assert_int_equal(weir__access_has_scheme(weir__bytes_of("amqp://", len)), false);
}

static void too_long_a_token(void **state)
{
    static const char token_text[] = "SharedAccessSignature sr=a&" SIG "&se=1&skn=c&x=";
    char *long_text = malloc(WEIR__ACCESS_TOKEN_MAX + 1);
    struct weir__access_token token;

    (void)state;
    memset(long_text, 'a', WEIR__ACCESS_TOKEN_MAX + 1);
    memcpy(long_text, token_text, sizeof token_text - 1);
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
        {"ns.SERVICEBUS.usgovcloudapi.net", false, ""},
        {"ns.servicebus.chinacloudapi.cn", false, ""},
        {"ns-servicebus.windows.net", false, "ns-servicebus.windows.net"},
        {"weir:5671", false, ""},
        {":5671", false, ":5671"},
        {"localhosts", false, "localhosts"},
        {"127.0.0.11", false, "127.0.0.11"},
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

/* Letters of both cases are alike, and nothing else that is as far apart as they are. */
static void paths_are_compared_without_case(void **state)
{
    (void)state;
    for (int a = 1; a < 128; a++)
        for (int b = 1; b < 128; b++) {
            struct weir__access_path x = {{(char)a, 'x'}}, y = {{(char)b, 'X', '/', 'y'}};
            bool alike = a == b || (isalpha(a) && tolower(a) == tolower(b));
            assert_int_equal(weir__access_path_covers(&x, &y), alike);
        }
}

static void the_longest_hub_of_a_path(void **state)
{
    struct weir__access_path path = {""};
    char hub[WEIR__HUB_NAME_MAX + 1];

    (void)state;
    memset(path.text, 'h', WEIR__HUB_NAME_MAX);
    memcpy(path.text + WEIR__HUB_NAME_MAX, "/x", 2);
    weir__access_path_hub(&path, hub);
    assert_int_equal(strlen(hub), WEIR__HUB_NAME_MAX);
    memcpy(path.text + WEIR__HUB_NAME_MAX, "h/", 2);
    weir__access_path_hub(&path, hub);
    assert_string_equal(hub, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed),
        cmocka_unit_test(well_formed),
        cmocka_unit_test(escapes),
        cmocka_unit_test(longest_path),
        cmocka_unit_test(schemes),
        cmocka_unit_test(too_long_a_token),
        cmocka_unit_test(paths),
        cmocka_unit_test(root_covers_everything),
        cmocka_unit_test(paths_are_compared_without_case),
        cmocka_unit_test(the_longest_hub_of_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
