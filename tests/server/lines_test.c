/* lines_test.c - what a server logs of a connection from its beginning to its end. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "server/server.h"
#include "support/patience.h"
#include "support/tempdir.h"

#define PATIENCE_S 20
#define AMQP "AMQP\0\1\0\0"
#define OPEN "\0\0\0\x12\2\0\0\0\0\x53\x10\xc0\5\1\xa1\2me"
#define CLOSE "\0\0\0\x0c\2\0\0\0\0\x53\x18\x45"
#define CLOSE_WHY "\0\0\0\x1c\2\0\0\0\0\x53\x18\xc0\x0f\1\0\x53\x1d\xc0\x09\2\xa3\1c\xa1\3why"
#define CLOSE_CUT "\0\0\0\x0e\2\0\0\0\0\x53\x18\xc0\1\1" /* a list of one, without it */

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__namespace *ns;
    struct weir__server *server;
    struct weir__mutex lock;
    struct weir__cond changed;
    char log[4096]; /* each line with its level and room, but without the peer */
    int fd;
};

static void keep_line(enum weir__level level, const char *room, const char *line, void *user)
{
    static const char *const levels[] = {[WEIR__ERROR] = "error",
                                         [WEIR__WARN] = "warn",
                                         [WEIR__INFO] = "info",
                                         [WEIR__DEBUG] = "debug"};
    struct scene *s = user;
    size_t len, peer;

    weir__mutex_lock(&s->lock);
    len = strlen(s->log);
    peer = strcspn(line, " ") - 1; /* "127.0.0.1:1234: connected" */
    snprintf(s->log + len, sizeof s->log - len, "%s %s %s\n", levels[level], room,
             strlen(line) > peer ? line + peer : line);
    weir__cond_signal(&s->changed);
    weir__mutex_unlock(&s->lock);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir__server_options o = {.amqp = "127.0.0.1:0",
                                     .http = "127.0.0.1:0",
                                     .loops = 1,
                                     .logger = {.fn = keep_line, .user = s}};

    assert_non_null(s);
    assert_int_equal(tempdir_make(s->dir), 0);
    weir__mutex_init(&s->lock);
    weir__cond_init(&s->changed);
    assert_int_equal(weir__namespace_open(&s->ns, s->dir, NULL, NULL), 0);
    o.ns = s->ns;
    assert_int_equal(weir__server_start(&s->server, &o, NULL), 0);
    *state = s;
    return 0;
}

static void stop(struct scene *s)
{
    weir__server_stop(s->server);
    s->server = NULL;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    close(s->fd);
    stop(s);
    weir__namespace_close(s->ns, NULL);
    weir__cond_fini(&s->changed);
    weir__mutex_fini(&s->lock);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

static void dial(struct scene *s, const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = PATIENCE_S};

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(s->fd, (struct sockaddr *)&to, sizeof to), 0);
}

#define SAY(s, text) say(s, text, sizeof text - 1)

static void say(struct scene *s, const char *at, size_t len)
{
    assert_int_equal(send(s->fd, at, len, MSG_NOSIGNAL), len);
}

/* "ended after 0.1 s" without its number. */
static void expect_lines(struct scene *s, const char *lines)
{
    char *at = strstr(s->log, "ended after ");

    if (at) {
        at += strlen("ended after ");
        memmove(at, at + strspn(at, "0123456789."), strlen(at + strspn(at, "0123456789.")) + 1);
    }
    assert_string_equal(s->log, lines);
}

static void a_client_that_closes_with_an_error(void **state)
{
    struct scene *s = *state;
    uint8_t heard[512];

    dial(s, weir__server_amqp(s->server));
    SAY(s, AMQP OPEN CLOSE_WHY);
    assert_true(patience_recv_all(s->fd, heard, sizeof heard) > 20);
    stop(s);
    expect_lines(s, "debug server : connected\n"
                    "info server : closed by the client: c, why\n"
                    "debug server : ended after  s\n");
}

static void a_client_that_closes(void **state)
{
    struct scene *s = *state;
    uint8_t heard[512];

    dial(s, weir__server_amqp(s->server));
    SAY(s, AMQP OPEN CLOSE);
    assert_true(patience_recv_all(s->fd, heard, sizeof heard) > 20);
    stop(s);
    expect_lines(s, "debug server : connected\n"
                    "debug server : ended after  s\n");
}

static void a_client_that_makes_a_mistake(void **state)
{
    struct scene *s = *state;
    uint8_t heard[512];

    dial(s, weir__server_amqp(s->server));
    SAY(s, AMQP OPEN CLOSE_CUT CLOSE);
    assert_true(patience_recv_all(s->fd, heard, sizeof heard) > 20);
    stop(s);
    expect_lines(s, "debug server : connected\n"
                    "info server : closed by us: amqp:decode-error, byte 5: more items than "
                    "bytes\n"
                    "debug server : ended after  s\n");
}

/* Without a word, and with something unread. */
static void reset(struct scene *s)
{
    struct linger at_once = {.l_onoff = 1};

    setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(s->fd);
    s->fd = -1;
}

/* Returns when there are so many lines. */
static void wait_for_lines(struct scene *s, int count)
{
    int64_t deadline = weir__deadline_ns(1000 * PATIENCE_S);
    int lines = 0;

    weir__mutex_lock(&s->lock);
    do {
        lines = 0;
        for (const char *at = s->log; (at = strchr(at, '\n')); at++) lines++;
    } while (lines < count && weir__cond_wait(&s->changed, &s->lock, deadline));
    weir__mutex_unlock(&s->lock);
    assert_int_equal(lines, count);
}

/* The peer is named once. */
static void a_client_that_breaks_off(void **state)
{
    struct scene *s = *state;
    uint8_t heard[8];

    dial(s, weir__server_amqp(s->server));
    SAY(s, AMQP);
    assert_int_equal(patience_recv_all(s->fd, heard, sizeof heard), sizeof heard);
    reset(s);
    wait_for_lines(s, 2);
    expect_lines(s, "debug server : connected\n"
                    "debug server : ended after  s: Connection reset by peer\n");
}

static void requests_that_are_broken_off(void **state)
{
    struct scene *s = *state;
    char heard[13];

    dial(s, weir__server_http(s->server));
    SAY(s, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(patience_recv_all(s->fd, heard, sizeof heard), sizeof heard);
    assert_memory_equal(heard, "HTTP/1.1 200 ", sizeof heard);
    reset(s);
    wait_for_lines(s, 2);
    expect_lines(s, "debug http : connected\n"
                    "debug http : ended: Connection reset by peer\n");
}

static void requests_by_http(void **state)
{
    struct scene *s = *state;
    char heard[1024] = "";

    dial(s, weir__server_http(s->server));
    SAY(s, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n");
    patience_recv_all(s->fd, heard, sizeof heard - 1);
    assert_int_equal(strncmp(heard, "HTTP/1.1 200 ", 13), 0);
    assert_non_null(strstr(heard, "HTTP/1.1 400 "));
    stop(s);
    expect_lines(s, "debug http : connected\n"
                    "info http : 400: a request line has three words\n"
                    "debug http : ended\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_client_that_closes_with_an_error),
        TEST(a_client_that_closes),
        TEST(a_client_that_makes_a_mistake),
        TEST(a_client_that_breaks_off),
        TEST(requests_by_http),
        TEST(requests_that_are_broken_off),
    };

    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
