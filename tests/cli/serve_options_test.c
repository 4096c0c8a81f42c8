/* serve_options_test.c - what weir serve finds wrong with its options, before anything is made. */
#include "cli/commands.h"
#include "cli/said.h"

#define ISSUER "--issuer i --jwks none.json "
#define ROLE                                                                                       \
    "--role is NAME=RIGHTS with RIGHTS of send, listen and manage, like writers=send,listen, not "
#define TOGETHER "--issuer URL and --jwks FILE belong together"
#define WITH_ISSUER "--audience, --role-claim and --role go with --issuer"
#define RESERVED "--role-claim cannot be iss, aud, exp or nbf"
#define NO_KEYS                                                                                    \
    "--jwks none.json: No such file or directory; it must be a file with the issuer's public "     \
    "keys, the JSON that lies at the jwks_uri in its /.well-known/openid-configuration"

/* Runs it with the words of a line; the code. */
static int serve(const char *line)
{
    char copy[4096], *argv[64], *rest = NULL;
    int argc = 0, code;

    assert_true(strlen(line) < sizeof copy);
    memcpy(copy, line, strlen(line) + 1);
    for (char *t = strtok_r(copy, " ", &rest); t; t = strtok_r(NULL, " ", &rest)) argv[argc++] = t;
    said_begin();
    code = weir__command_serve.run(&weir__command_serve, argc, argv);
    said_end();
    return code;
}

/* A file that is not there ends it when nothing else does. */
static void expect(const char *line, int code, const char *why, const char *advice)
{
    char whole[4096], said[1024];
    int is;

    snprintf(whole, sizeof whole, "%s --config none.json", line);
    is = serve(whole);
    snprintf(said, sizeof said, "weir: serve: %s; %s\n", why, advice);
    if (is != code || strcmp(said_err, said) != 0 || *said_out)
        fail_msg("%s: code %d\n%s%s", line, is, said_out, said_err);
}

static void expect_refused(const char *line, const char *why)
{
    expect(line, 2, why, "try 'weir serve --help'");
}

static void expect_taken(const char *line)
{
    expect(line, 3, "none.json: No such file or directory", "check the path");
}

static void limits_have_bounds(void **state)
{
    static const struct {
        const char *refused, *taken, *why;
    } rows[] = {
        {"--in-memory --memory-max 8388607", "--in-memory --memory-max 8388608",
         "--memory-max must be 8M or more"},
        {"--buffers 8388607", "--buffers 8388608", "--buffers must be 8M or more"},
        {"--stranger-buffers 1048575", "--stranger-buffers 1048576",
         "--stranger-buffers must be 1M or more"},
        {"--strangers-per-address 0", "--strangers-per-address 1",
         "--strangers-per-address must be 1 or more"},
        {"--connections-max 0", "--connections-max 1", "--connections-max must be 1 or more"},
        {"--message-timeout 999ms", "--message-timeout 1000ms",
         "--message-timeout must be 1s or more"},
        {"--strangers-per-address 4294967296", "--strangers-per-address 4294967295",
         "--strangers-per-address must be 1 or more"},
        {"--connections-max 4294967296", "--connections-max 4294967295",
         "--connections-max must be 1 or more"},
        {"--message-timeout 4294967296ms", "--message-timeout 4294967295ms",
         "--message-timeout must be 1s or more"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_refused(rows[i].refused, rows[i].why);
        expect_taken(rows[i].taken);
    }
    expect_taken("");
    expect_taken("--in-memory");
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    expect_refused("--data d --in-memory", "--data and --in-memory exclude each other");
    expect_refused("--memory-max 64M", "--memory-max goes with --in-memory");
    setenv("WEIR_IN_MEMORY", "1", 1);
    expect_taken("--data d");
    expect_refused("--data d --memory-max 64M", "--memory-max goes with --in-memory");
    expect_taken("--memory-max 64M");
    unsetenv("WEIR_IN_MEMORY");
}

static void addresses_are_looked_at(void **state)
{
    static const char *const options[] = {"amqp", "amqps", "http", "https"};
    char line[64];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "--%s here", options[i]);
        expect_refused(line, "an address is HOST:PORT, not 'here'");
        snprintf(line, sizeof line, "--%s here:1", options[i]);
        expect_taken(line);
        snprintf(line, sizeof line, "--%s off", options[i]);
        if (i == 0)
            expect_refused(line, "an address is HOST:PORT, not 'off'");
        else
            expect_taken(line);
    }
}

static void the_log_has_its_words(void **state)
{
    (void)state;
    expect_refused("--log-format xml", "--log-format is text, logfmt or json, not 'xml'");
    expect_refused("--log-level loud", "--log-level is debug, info, warn or error, not 'loud'");
    expect_taken("--log-format text --log-level debug");
    expect_taken("--log-format logfmt --log-level info");
    expect_taken("--log-format json --log-level warn --trace");
    expect_taken("--log-level error");
}

static void an_issuer_is_whole_or_none(void **state)
{
    static const struct {
        const char *line, *why;
    } rows[] = {
        {"--issuer i", TOGETHER},
        {"--jwks none.json", TOGETHER},
        {"--audience a", WITH_ISSUER},
        {"--role-claim c", WITH_ISSUER},
        {"--role r=send", WITH_ISSUER},
        {ISSUER "--role-claim iss", RESERVED},
        {ISSUER "--role-claim aud", RESERVED},
        {ISSUER "--role-claim exp", RESERVED},
        {ISSUER "--role-claim nbf", RESERVED},
        {ISSUER "--role r", ROLE "'r'"},
        {ISSUER "--role r=", ROLE "'r='"},
        {ISSUER "--role =send", ROLE "'=send'"},
        {ISSUER "--role r=send=x", ROLE "'r=send=x'"},
        {ISSUER "--role good=send --role bad=all", ROLE "'bad=all'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_refused(rows[i].line, rows[i].why);
    expect_taken(ISSUER "--role-claim sub --role a=b=send --role c=listen,manage --audience a");
    expect_taken(ISSUER);
    assert_int_equal(serve(ISSUER), 3);
    assert_string_equal(said_err, "weir: serve: " NO_KEYS "; check the path\n");
}

static void texts_of_an_issuer_have_a_limit(void **state)
{
    static const struct {
        const char *before; /* of a text */
        int max;
        const char *why, *behind; /* of the text */
    } rows[] = {
        {"--jwks none.json --issuer=", 1024, "--issuer and --audience have 1 to 1024 characters",
         ""},
        {ISSUER "--audience=", 1024, "--issuer and --audience have 1 to 1024 characters", ""},
        {ISSUER "--role-claim=", 255, "--role-claim has 1 to 255 characters", ""},
        {ISSUER "--role=", 1019, NULL, "=send"},
    };
    char line[2048], text[1025], why[512];

    (void)state;
    memset(text, 'x', sizeof text);
    snprintf(why, sizeof why, ROLE "'%.256s'", text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(line, sizeof line, "%s%.*s%s", rows[i].before, rows[i].max, text, rows[i].behind);
        expect_taken(line);
        snprintf(line, sizeof line, "%s%.*s%s", rows[i].before, rows[i].max + 1, text,
                 rows[i].behind);
        expect_refused(line, rows[i].why ? rows[i].why : why);
        if (rows[i].why) expect_refused(rows[i].before, rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_have_bounds),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(addresses_are_looked_at),
        cmocka_unit_test(the_log_has_its_words),
        cmocka_unit_test(an_issuer_is_whole_or_none),
        cmocka_unit_test(texts_of_an_issuer_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
