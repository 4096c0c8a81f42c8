/* pages_test.c - by which names a server is asked on its own machine, and for whose pages. */
#define _GNU_SOURCE /* gethostname */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/state.h"
#include "server/web.h"
#include "support/patience.h"
#include "support/tempdir.h"

#define PATIENCE_S 20
#define TWENTY "xxxxxxxxxxxxxxxxxxxx"
#define X200 TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__namespace *ns;
    struct weir__server *server;
    char answer[4096];
};

static int set_up(void **state)
{
    static const char *const names[] = {"one.example", "two.example", "z"};
    struct scene *s = calloc(1, sizeof *s);
    struct weir__server_options o = {.http = "127.0.0.1:0",
                                     .loops = 1,
                                     .http_names = names,
                                     .http_name_count = 3};

    assert_non_null(s);
    assert_int_equal(tempdir_make(s->dir), 0);
    assert_int_equal(weir__namespace_open(&s->ns, s->dir, NULL, NULL), 0);
    o.ns = s->ns;
    assert_int_equal(weir__server_start(&s->server, &o, NULL), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__server_stop(s->server);
    weir__namespace_close(s->ns, NULL);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

/* The status of the answer, which is kept whole. */
static int ask(struct scene *s, const char *host, const char *origin)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[2048];
    int len = snprintf(text, sizeof text,
                       "GET /livez HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n%s%s%s\r\n", host,
                       origin ? "Origin: " : "", origin ? origin : "", origin ? "\r\n" : "");

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port =
        htons((uint16_t)strtoul(strrchr(weir__server_http(s->server), ':') + 1, NULL, 10));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
    memset(s->answer, 0, sizeof s->answer);
    patience_recv_all(fd, s->answer, sizeof s->answer - 1);
    close(fd);
    assert_int_equal(strncmp(s->answer, "HTTP/1.1 ", 9), 0);
    return atoi(s->answer + 9);
}

static void expect_body(const struct scene *s, const char *field, const char *value,
                        const char *why)
{
    const char *body = strstr(s->answer, "\r\n\r\n");
    char text[1024];

    snprintf(text, sizeof text, "<Error><Code>403</Code><Detail>%s '%s': %s</Detail></Error>",
             field, value, why);
    assert_non_null(body);
    assert_string_equal(body + 4, text);
}

static void who_is_on_this_machine(void **state)
{
    static const struct {
        const char *peer;
        bool is_local;
    } rows[] = {
        {"127.0.0.1:5", true},
        {"127.255.0.1:5", true},
        {"[::1]:5", true},
        {"[::ffff:127.0.0.1]:5", true},
        {"128.0.0.1:5", false},
        {"12.7.0.1:5", false},
        {"[::2]:5", false},
        {"[::11]:5", false},
        {"[::ffff:128.0.0.1]:5", false},
        {"[::ffff:12.0.0.1]:5", false},
    };
    static struct weir__tcp tcp;
    const struct weir__visit visit = {.tcp = &tcp};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(tcp.peer, sizeof tcp.peer, "%s", rows[i].peer);
        if (weir__visit_is_local(&visit) != rows[i].is_local) fail_msg("%s", rows[i].peer);
    }
}

/* Browsers elsewhere are not deceived about whom they ask: they know no key. */
static void others_may_call_it_anything(void **state)
{
    static struct weir__tcp tcp = {.peer = "128.0.0.1:5"};
    static const struct weir__http_request request = {
        .host = {(const uint8_t *)"evil.example", 12},
        .field_count = 1,
        .fields = {{{(const uint8_t *)"Origin", 6}, {(const uint8_t *)"http://evil.example", 19}}}};
    struct weir__visit visit = {.tcp = &tcp, .request = &request};

    (void)state;
    assert_true(weir__page_allowed(&visit));
    assert_int_equal(visit.answer.status, 0);
}

#define NO_NAME "That is no name of this machine; weir serve --http-name NAME adds one."
#define NO_PAGE "Pages of other machines are not answered here."

static void names_of_this_machine(void **state)
{
    static const char *const ours[] = {
        "localhost", "LOCALHOST:0", "localhost:9",     "localhost:",      "127.0.0.1",
        "127.0.0.0", "127.9.0.9",   "127.0.0.255",     "127.255.255.255", "[::1]",
        "[::1]:80",  "a.localhost", "a.b.LOCALHOST:1", "one.example",     "Two.Example:8",
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (ask(s, ours[i], NULL) != 200) fail_msg("%s: %s", ours[i], s->answer);
}

static void the_name_that_the_machine_was_given(void **state)
{
    struct scene *s = *state;
    char own[256] = "";

    assert_int_equal(gethostname(own, sizeof own - 8), 0);
    if (!*own) skip();
    assert_int_equal(ask(s, own, NULL), 200);
    memcpy(own + strlen(own), ".evil", 6);
    assert_int_equal(ask(s, own, NULL), 403);
}

static void names_of_others(void **state)
{
    static const char *const others[] = {
        "localhos",      "localhosts",    ".localhost",   "alocalhost",    "xlocalhost.",
        "127.0.0.256",   "127.0.0.300",   "127.0.0.0001", "127.0.0.",      "127..0.1",
        "127.0.0.1.",    "127.0.0.0.1",   "127.0.0",      "127.",          "127",
        "128.0.0.1",     "126.0.0.1",     "127.0.0.a",    "127.0.0.-1",    "[::2]",
        "[::1]x",        "one.exampl",    "one.examples", "localhost:80a", "localhost:a",
        "127.0.0.1:8.8", "three.example", X200,
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (ask(s, others[i], NULL) != 403) fail_msg("%s: %s", others[i], s->answer);
        expect_body(s, "Host", others[i], NO_NAME);
    }
    assert_int_equal(ask(s, "evil.example:80", NULL), 403);
    expect_body(s, "Host", "evil.example", NO_NAME);
    assert_int_equal(ask(s, X200 "y", NULL), 403);
    expect_body(s, "Host", X200, NO_NAME);
}

static void pages(void **state)
{
    static const char *const ours[] = {"http://localhost", "https://localhost:3000", "//localhost",
                                       "http://[::1]:80",  "x://two.example",        "http://z"};
    static const char *const others[] = {"null",
                                         "http:/localhost",
                                         "http:localhost",
                                         "/",
                                         "//",
                                         "http://",
                                         "http://:80",
                                         "http:/xlocalhost",
                                         "http://evil.example",
                                         "http://localhost/",
                                         "http://localhost@evil.example"};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (ask(s, "localhost", ours[i]) != 200) fail_msg("%s: %s", ours[i], s->answer);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (ask(s, "localhost", others[i]) != 403) fail_msg("%s: %s", others[i], s->answer);
        expect_body(s, "Origin", others[i], NO_PAGE);
    }
    assert_int_equal(ask(s, "evil.example", "http://evil.example"), 403);
    expect_body(s, "Origin", "http://evil.example", NO_PAGE); /* without TLS it proves nothing */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_on_this_machine),
        cmocka_unit_test(others_may_call_it_anything),
        TEST(names_of_this_machine),
        TEST(the_name_that_the_machine_was_given),
        TEST(names_of_others),
        TEST(pages),
    };

    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
