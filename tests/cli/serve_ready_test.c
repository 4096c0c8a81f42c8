/* serve_ready_test.c - a server that begins: its ports, what it prints, and its sign in the folder. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/thread.h"
#include "cli/begun.h"
#include "cli/serving.h"

#define STRING                                                                                     \
    "Endpoint=sb://localhost:P;SharedAccessKeyName=RootManageSharedAccessKey;"                     \
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"

/* Digits become P behind "127.0.0.1:" and "localhost:", and N behind "after ". */
static void mask(char *text)
{
    static const char *const before[] = {"127.0.0.1:", "localhost:", "after "};

    for (size_t i = 0; i < 3; i++) {
        for (char *at = text; (at = strstr(at, before[i])); at++) {
            char *number = at + strlen(before[i]);
            size_t digits = strspn(number, "0123456789");
            if (digits == 0 || digits > 5) continue;
            *number = i < 2 ? 'P' : 'N';
            memmove(number + 1, number + digits, strlen(number + digits) + 1);
        }
    }
}

/* ---- ready ---- */

static void listen_there(void)
{
    assert_int_equal(choose(), 0);
    assert_int_equal(weir__serve_open_tls(s, &err), 0);
    assert_int_equal(weir__serve_listen(s, &err), 0);
}

static void expect_ready(const char *text)
{
    s->began_ns = weir__mono_ns() - 1000000;
    said_begin();
    weir__serve_print_ready(s);
    said_end();
    mask(said_out);
    assert_string_equal(said_out, text);
    assert_string_equal(said_err, "");
}

static void little_is_served(void **state)
{
    char text[2048];

    (void)state;
    open_namespace(false);
    listen_there();
    snprintf(text, sizeof text,
             "weir is ready, after N ms.\n\n"
             "  amqp    127.0.0.1:P\n"
             "  amqps   not served\n"
             "  health  not served\n"
             "  hubs    none yet: --hub NAME:PARTITIONS makes one\n"
             "  data    %s\n\n"
             "connection string for every Event Hubs client:\n\n  " STRING "\n\n"
             "try:  weir serve --help\n"
             "      weir key --help\n\nCtrl-C stops it.\n",
             dir);
    expect_ready(text);
    s->o.json = true;
    expect_ready("{\"ready\":true,\"amqp\":\"127.0.0.1:P\",\"amqps\":null,\"http\":null,"
                 "\"connection_string\":\"" STRING "\"}\n");
}

static void all_is_served(void **state)
{
    char text[2048];

    (void)state;
    s->o.amqps = s->o.http = s->o.https = "127.0.0.1:0";
    s->o.memory_max.value = (64 << 20) + 1;
    open_namespace(true);
    add_hub("a");
    add_hub("b");
    listen_there();
    snprintf(text, sizeof text,
             "weir is ready, after N ms.\n\n"
             "  amqp    127.0.0.1:P\n"
             "  amqps   127.0.0.1:P\n"
             "  health  http://127.0.0.1:P/health\n"
             "  https   127.0.0.1:P\n"
             "  hubs    2\n"
             "  data    in memory, at most 64 MiB: nothing is kept\n\n"
             "connection string for every Event Hubs client:\n\n  " STRING "\n\n"
             "try:  curl http://127.0.0.1:P/health\n"
             "      weir trust --authority %s    (what clients need for TLS)\n\nCtrl-C stops it.\n",
             authority);
    expect_ready(text);
    s->o.json = true;
    said_begin();
    weir__warn(&s->warnings, "\"one\"");
    weir__warn(&s->warnings, "two");
    said_end();
    assert_string_equal(said_err, "weir: serve: \"one\"\nweir: serve: two\n");
    expect_ready("{\"ready\":true,\"amqp\":\"127.0.0.1:P\",\"amqps\":\"127.0.0.1:P\",\"http\":"
                 "\"127.0.0.1:P\",\"https\":\"127.0.0.1:P\",\"connection_string\":\"" STRING
                 "\",\"warnings\":[\"\\\"one\\\"\",\"two\"]}\n");
}

/* ---- certificates and ports ---- */

static void a_certificate_has_its_key(void **state)
{
    FILE *f;
    int rc;

    (void)state;
    s->o.key = "k";
    assert_int_equal(weir__serve_open_tls(s, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "--tls-certificate and --tls-key belong together");
    s->o.key = NULL;
    s->o.certificate = "c";
    assert_int_equal(weir__serve_open_tls(s, &err), WEIR_EINVAL);
    s->o.certificate = NULL;
    f = fopen(authority, "w"); /* which is no folder */
    assert_non_null(f);
    fclose(f);
    assert_int_equal(weir__serve_open_tls(s, &err), 0); /* nobody needs it */
    s->o.amqps = "127.0.0.1:0";
    s->o.amqps_given = true;
    assert_int_not_equal(weir__serve_open_tls(s, &err), 0);
    s->o.amqps_given = false;
    s->o.https = "127.0.0.1:0";
    assert_int_not_equal(weir__serve_open_tls(s, &err), 0);
    assert_int_equal(s->warnings.count, 0);
    s->o.https = NULL;
    said_begin();
    rc = weir__serve_open_tls(s, &err);
    said_end();
    assert_int_equal(rc, 0);
    assert_null(s->o.amqps);
    assert_null(s->tls);
    assert_int_equal(s->warnings.count, 1);
    assert_memory_equal(s->warnings.text[0], "no TLS: ", 8);
}

/* Takes a port; its address is written to out. */
static int take_port(char out[64])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    snprintf(out, 64, "127.0.0.1:%u", ntohs(in.sin_port));
    return fd;
}

static void a_port_that_is_taken_is_done_without(void **state)
{
    char address[64], want[256];
    int fd = take_port(address), code, rc;

    (void)state;
    open_namespace(true);
    assert_int_equal(choose(), 0);
    s->o.http = address;
    s->o.http_given = true;
    assert_int_equal(weir__serve_listen(s, &err), WEIR_EEXIST);
    said_begin();
    code = weir__serve_port_taken(&err);
    said_end();
    assert_int_equal(code, 1);
    snprintf(want, sizeof want, "weir: serve: listening on %s: ", address);
    assert_memory_equal(said_err, want, strlen(want));
    mask(said_err);
    assert_non_null(strstr(said_err, "; stop that process, or choose another port with --amqp, "
                                     "--amqps, --http or --https, like --amqp 127.0.0.1:P (port 0 "
                                     "picks a free one): the connection string that is printed "
                                     "then names it\n"));
    s->o.http_given = false;
    said_begin();
    rc = weir__serve_listen(s, &err);
    said_end();
    assert_int_equal(rc, 0);
    assert_null(s->o.http);
    assert_int_equal(s->warnings.count, 1);
    snprintf(want, sizeof want, "listening on %s: ", address);
    assert_memory_equal(s->warnings.text[0], want, strlen(want));
    assert_non_null(strstr(s->warnings.text[0], "; going on without it"));
    close(fd);
}

/* ---- the sign ---- */

/* scheme: of the address for the administration, "" when there is none. */
static void expect_sign(const char *scheme)
{
    char string[128], admin[64] = "";
    struct weir__serving sign;
    const char *http;
    int rc;

    listen_there();
    http =
        weir__server_http(s->server) ? weir__server_http(s->server) : weir__server_https(s->server);
    snprintf(string, sizeof string,
             "Endpoint=sb://%s;SharedAccessKeyName=", weir__server_amqp(s->server));
    if (*scheme) snprintf(admin, sizeof admin, "%s://127.0.0.1%s", scheme, strchr(http, ':'));
    weir__serve_put_up_sign(s);
    assert_false(s->sign_missing);
    rc = weir__serving_read(dir, &sign, &err);
    assert_int_equal(rc, 0);
    assert_memory_equal(sign.connect, string, strlen(string));
    assert_string_equal(sign.admin, admin);
    assert_int_equal(strlen(sign.space), WEIR__NAMESPACE_ID_BYTES - 1);
    weir__serve_take_down_sign(s);
    assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ENOTFOUND);
    weir__server_stop(s->server);
    s->server = NULL;
}

static void the_sign_says_where_it_is_administered(void **state)
{
    (void)state;
    open_namespace(false);
    expect_sign("");
    s->o.https = "127.0.0.1:0";
    expect_sign("https");
    weir__tls_context_free(s->tls);
    s->o.http = "0.0.0.0:0";
    s->o.allow_development_key = true;
    expect_sign("http");
}

static void a_sign_that_cannot_be_is_told_once(void **state)
{
    (void)state;
    open_namespace(false);
    listen_there();
    s->o.common.data = "/nowhere/at/all";
    for (int i = 0; i < 2; i++) {
        said_begin();
        weir__serve_put_up_sign(s);
        said_end();
        assert_true(s->sign_missing);
        assert_int_equal(s->warnings.count, 1);
    }
    assert_string_equal(s->warnings.text[0],
                        "commands on the folder do not find this server yet, and need --connect: "
                        "/nowhere/at/all/serving: No such file or directory");
    s->o.in_memory = true; /* which has no folder */
    weir__serve_put_up_sign(s);
    assert_false(s->sign_missing);
    s->o.in_memory = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEGUN_CASE(little_is_served),
        BEGUN_CASE(all_is_served),
        BEGUN_CASE(a_certificate_has_its_key),
        BEGUN_CASE(a_port_that_is_taken_is_done_without),
        BEGUN_CASE(the_sign_says_where_it_is_administered),
        BEGUN_CASE(a_sign_that_cannot_be_is_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
