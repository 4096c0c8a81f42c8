/* memory_test.c - a server that has no memory: to start, and for who comes. Whatever cannot be had,
 * the client is answered or its connection ends, nothing is left behind, and the next one is served. */
#include "server/visitor.h"

#define POST                                                                                       \
    "POST /eh1/messages" HOST "Connection: close\r\n" TOKEN "Content-Length: 5\r\n\r\nevent"
#define NO_MEMORY "HTTP/1.1 503 "
#define WEBSOCKET                                                                                  \
    "GET /$servicebus/websocket" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n"              \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"                 \
    "Sec-WebSocket-Protocol: AMQPWSB10\r\n\r\n"
#define HEADER_SENT "\x82\x88\0\0\0\0AMQP\0\1\0\0" /* in a frame with a mask of zeros */
#define HEADER_HEARD                                                                               \
    "\x82\x08"                                                                                     \
    "AMQP\0\1\0\0"

/* All that the server says to one client, without memory for the loop's at-th allocation. true: there
 * was such an allocation. */
static bool ask_without(struct scene *s, uint64_t at, const char *request, size_t len)
{
    size_t got;

    close(s->fd);
    expect_nothing_left(s);
    set_shortage(s, at);
    dial(s);
    send(s->fd, request, len, MSG_NOSIGNAL); /* to who may have hung up already */
    shutdown(s->fd, SHUT_WR);
    got = patience_recv_all(s->fd, s->heard, sizeof s->heard - 1);
    s->heard[got] = '\0';
    return set_shortage(s, 0);
}

/* Has the server serve the one who came first: nobody is on the way in then. */
static int set_up_served(void **state)
{
    int rc = set_up(state);

    say(*state, "GET /livez" HOST "\r\n");
    assert_string_equal(hear(*state, false), ALIVE);
    return rc;
}

/* ---- the tests ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void no_memory_for_an_event(void **state)
{
    struct scene *s = *state;
    unsigned silent = 0, told = 0;

    for (uint64_t at = 1; ask_without(s, at, POST, strlen(POST)); at++) {
        if (begins(s->heard, "HTTP/1.1 201 ")) continue; /* it could do without */
        silent += !*s->heard;
        told += begins(s->heard, NO_MEMORY);
        if (*s->heard && !begins(s->heard, NO_MEMORY)) fail_msg("%s", s->heard);
    }
    assert_true(begins(s->heard, "HTTP/1.1 201 "));
    assert_true(silent >= 2 && told >= 2);
}

/* An answer that was begun and has no memory for the rest is another one. */
static void no_memory_for_an_answer(void **state)
{
    static const char request[] = "GET /livez" HOST "Connection: close\r\n\r\n";
    struct scene *s = *state;
    unsigned silent = 0, told = 0;

    for (uint64_t at = 1; ask_without(s, at, request, strlen(request)); at++) {
        bool failed = begins(s->heard, "HTTP/1.1 500 "), good = begins(s->heard, "HTTP/1.1 200 ");
        silent += !*s->heard;
        told += failed;
        if (*s->heard && !failed && !good && !begins(s->heard, NO_MEMORY)) fail_msg("%s", s->heard);
        if (failed) assert_non_null(strstr(s->heard, "<Detail>The answer is too large.</Detail>"));
    }
    assert_true(begins(s->heard, "HTTP/1.1 200 "));
    assert_true(silent >= 2 && told >= 1);
}

static void no_memory_for_a_websocket(void **state)
{
    static const char request[] = WEBSOCKET HEADER_SENT;
    struct scene *s = *state;
    unsigned silent = 0;
    const char *rest;

    s->server->token_ms = 100; /* after which who found no room is read again: the clock stands */
    look_at_visit(s);
    for (uint64_t at = 1; ask_without(s, at, request, sizeof request - 1); at++) {
        silent += !*s->heard;
        if (*s->heard && !begins(s->heard, "HTTP/1.1 101 ") && !begins(s->heard, NO_MEMORY))
            fail_msg("%s", s->heard);
    }
    assert_true(silent >= 4);
    assert_true(begins(s->heard, "HTTP/1.1 101 "));
    rest = strstr(s->heard, "\r\n\r\n");
    assert_non_null(rest);
    assert_memory_equal(rest + 4, HEADER_HEARD, sizeof HEADER_HEARD - 1);
}

/* On the thread that starts it. */
static void no_memory_to_start(void **state)
{
    struct scene *s = *state;
    struct weir__server_options o = {.ns = s->ns,
                                     .amqp = "127.0.0.1:0",
                                     .http = "127.0.0.1:0",
                                     .loops = 2};
    struct weir__server *server = NULL;
    struct weir_error err;
    unsigned refused = 0;
    bool failed = true;

    close(s->fd);
    expect_nothing_left(s);
    weir__server_stop(s->server);
    s->server = NULL;
    for (uint64_t at = 1; failed; at++) {
        int rc;
        allocs_fail(at);
        rc = weir__server_start(&server, &o, &err);
        failed = allocs_failed();
        allocs_fail(0);
        refused += rc != 0;
        if (rc != 0) {
            assert_true(failed);
            assert_null(server);
            assert_int_equal(rc, WEIR_ENOMEM);
            assert_int_equal(err.code, WEIR_ENOMEM);
        }
        weir__server_stop(server);
        server = NULL;
    }
    assert_true(refused >= 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_served, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(no_memory_for_an_event),
        TEST(no_memory_for_an_answer),
        TEST(no_memory_for_a_websocket),
        TEST(no_memory_to_start),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
