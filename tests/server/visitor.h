/* visitor.h - a server with one loop and a hub, and a client that speaks HTTP to it byte by byte. The
 * loop's clock is the test's (hurry.h), and so is the wall's. */
#ifndef WEIR_TESTS_SERVER_VISITOR_H
#define WEIR_TESTS_SERVER_VISITOR_H

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/hurry.h"
#include "server/web.h"
#include "support/allocs.h"
#include "support/patience.h"
#include "support/tempdir.h"

#define PATIENCE_S 20

/* Made by Microsoft's JavaScript client for sb://localhost/eh1, good until second 1700000000. */
#define TOKEN                                                                                      \
    "Authorization: SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                          \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey\r\n"
#define NOW_MS INT64_C(1699999000000)

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__namespace *ns;
    struct weir__server *server;
    struct weir__post look;
    atomic_bool looked;
    atomic_bool asked;      /* the newest connection has a request in work, */
    atomic_bool away, held; /* which is with others; it is not read */
    atomic_size_t used;     /* memory of all */
    int fd;
    char heard[65536];
};

/* ---- the scene ---- */

static atomic_int_fast64_t wall_ahead_ms;

static inline int64_t tell_time(void *self)
{
    (void)self;
    return NOW_MS + atomic_load(&wall_ahead_ms);
}

/* On the loop. */
static inline void look(void *arg)
{
    struct scene *s = arg;
    const struct weir__visit *newest = s->server->at[0].visits;

    atomic_store(&s->asked, newest && newest->request);
    atomic_store(&s->away, newest && newest->away);
    atomic_store(&s->held, newest && newest->held);
    atomic_store(&s->used, atomic_load(&s->server->budget.used));
    atomic_store(&s->looked, true);
}

/* Has the loop look at the newest connection. */
static inline void look_at_visit(struct scene *s)
{
    atomic_store(&s->looked, false);
    assert_int_equal(weir__loop_post(weir__loops_at(s->server->loops, 0), &s->look), 0);
    for (int i = 0; !atomic_load(&s->looked); i++) {
        assert_true(i < 1000 * PATIENCE_S);
        poll(NULL, 0, 1);
    }
}

/* Before anybody comes; the loop has seen it when this returns. */
static inline void stop_clock(struct scene *s)
{
    s->server->clock = (struct weir__clock){.wall_ms = tell_time, .mono_ms = tell_time};
    weir__post_init(&s->look, look, s);
    look_at_visit(s);
}

static inline void dial_at(struct scene *s, const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = PATIENCE_S};

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(s->fd, (struct sockaddr *)&to, sizeof to), 0);
}

static inline void dial(struct scene *s)
{
    dial_at(s, weir__server_http(s->server));
}

static inline int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir__rule rule = {"RootManageSharedAccessKey", WEIR__RIGHTS_ALL, {"SAS_KEY_VALUE", ""}};
    struct weir__hub_config hub = {.name = "eh1", .partitions = 2};
    struct weir__server_options o = {.amqp = "127.0.0.1:0", .http = "127.0.0.1:0", .loops = 1};

    assert_int_equal(tempdir_make(s->dir), 0);
    assert_int_equal(weir__namespace_open(&s->ns, s->dir, NULL, NULL), 0);
    assert_int_equal(weir__namespace_rule_add(s->ns, NULL, &rule, NULL), 0);
    assert_int_equal(weir__namespace_hub_create(s->ns, &hub, NULL), 0);
    o.ns = s->ns;
    hurry_watch(0);
    atomic_store(&wall_ahead_ms, 0);
    assert_int_equal(weir__server_start(&s->server, &o, NULL), 0);
    stop_clock(s);
    dial(s);
    *state = s;
    return 0;
}

static inline void expect_visits(struct scene *s, unsigned count)
{
    int64_t deadline = weir__deadline_ns(1000 * PATIENCE_S);
    struct weir__server *v = s->server;

    weir__mutex_lock(&v->lock);
    while (v->visits > count && weir__cond_wait(&v->changed, &v->lock, deadline)) continue;
    assert_int_equal(v->visits, count);
    weir__mutex_unlock(&v->lock);
}

/* All connections are gone, and have left nothing behind. */
static inline void expect_nothing_left(struct scene *s)
{
    int64_t deadline = weir__deadline_ns(1000 * PATIENCE_S);
    struct weir__server *v = s->server;

    expect_visits(s, 0);
    weir__mutex_lock(&v->lock);
    while (v->connections > 0 && weir__cond_wait(&v->changed, &v->lock, deadline)) continue;
    assert_int_equal(v->connections, 0);
    weir__mutex_unlock(&v->lock);
    assert_int_equal(atomic_load(&v->budget.used), 0);
    assert_int_equal(atomic_load(&v->budget.strangers), 0);
    assert_int_equal(weir__budget_strangers(&v->budget), 0);
    assert_int_equal(atomic_load(&v->unflushed), 0);
}

static inline int tear_down(void **state)
{
    struct scene *s = *state;

    close(s->fd);
    if (s->server) expect_nothing_left(s);
    weir__server_stop(s->server);
    weir__namespace_close(s->ns, NULL);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

/* ---- a client ---- */

static inline void say(struct scene *s, const char *text)
{
    size_t len = strlen(text);
    ssize_t n;

    for (; len > 0; text += n, len -= (size_t)n) {
        n = send(s->fd, text, len, MSG_NOSIGNAL);
        assert_true(n > 0);
    }
}

/* One answer: its head, and the body that it announces unless it is bare. */
static inline const char *hear(struct scene *s, bool bare)
{
    const char *length;
    size_t got = 0, rest;

    while (got < 4 || memcmp(s->heard + got - 4, "\r\n\r\n", 4) != 0) {
        assert_true(got < sizeof s->heard - 1);
        assert_int_equal(patience_recv(s->fd, s->heard + got, 1), 1);
        s->heard[++got] = '\0';
    }
    length = strstr(s->heard, "Content-Length: ");
    rest = length && !bare ? strtoul(length + strlen("Content-Length: "), NULL, 10) : 0;
    assert_true(got + rest < sizeof s->heard);
    assert_int_equal(patience_recv_all(s->fd, s->heard + got, rest), rest);
    s->heard[got + rest] = '\0';
    return s->heard;
}

/* ---- the loop's memory ---- */

static struct {
    struct weir__post post;
    uint64_t at;
    bool failed;
    atomic_bool done;
} shortage;

static inline void change_shortage(void *arg)
{
    (void)arg;
    shortage.failed = allocs_failed();
    allocs_fail(shortage.at);
    atomic_store(&shortage.done, true);
}

/* The loop's at-th allocation from here on fails; 0: none. Returns whether one has failed that was to. */
static inline bool set_shortage(struct scene *s, uint64_t at)
{
    shortage.at = at;
    atomic_store(&shortage.done, false);
    weir__post_init(&shortage.post, change_shortage, NULL);
    assert_int_equal(weir__loop_post(weir__loops_at(s->server->loops, 0), &shortage.post), 0);
    for (int i = 0; !atomic_load(&shortage.done); i++) {
        assert_true(i < 1000 * PATIENCE_S);
        poll(NULL, 0, 1);
    }
    return shortage.failed;
}

/* ---- what is said ---- */

#define HOST " HTTP/1.1\r\nHost: localhost\r\n"
#define JSON "Content-Type: application/json\r\nContent-Length: "
#define ALIVE "HTTP/1.1 200 OK\r\n" JSON "18\r\n\r\n{\"status\":\"alive\"}"
#define POSTED "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"

#endif
