/* connect_test.c - a client's tunnel, and a blocking peer at the other end that says what the test
 * wants it to say. */
#include "tunnel/tunnel.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "http/websocket.h"

#define PATIENCE_MS 20000
#define BYTES 4096

/* ---- the peer ---- */

struct peer {
    int listening;
    unsigned port;
    pthread_t thread;
    const char *answer; /* with %s for the accept; NULL: none, it hangs up */
    bool silent;        /* it neither answers nor hangs up */
    struct weir__bytes behind;
    char request[BYTES]; /* what it heard: */
    uint8_t frames[BYTES];
    size_t frames_len;
};

static void hear_request(struct peer *p, int fd)
{
    size_t len = 0;
    ssize_t n;

    while (!strstr(p->request, "\r\n\r\n") && len + 1 < sizeof p->request &&
           (n = recv(fd, p->request + len, sizeof p->request - 1 - len, 0)) > 0)
        len += (size_t)n;
}

static void say(struct peer *p, int fd)
{
    char text[1024], accept[WEIR__WEBSOCKET_ACCEPT_BYTES] = "";
    const char *key = strstr(p->request, "Sec-WebSocket-Key: ");
    int len;

    if (key) weir__websocket_accept(weir__bytes_of(key + 19, WEIR__WEBSOCKET_KEY_BYTES), accept);
    len = snprintf(text, sizeof text, p->answer, accept);
    if (p->behind.len) memcpy(text + len, p->behind.at, p->behind.len);
    send(fd, text, (size_t)len + p->behind.len, MSG_NOSIGNAL);
}

static void *serve_one(void *arg)
{
    struct peer *p = arg;
    int fd = accept(p->listening, NULL, NULL);
    ssize_t n;

    hear_request(p, fd);
    if (p->answer) say(p, fd);
    while ((p->answer || p->silent) && p->frames_len < sizeof p->frames &&
           (n = recv(fd, p->frames + p->frames_len, sizeof p->frames - p->frames_len, 0)) > 0)
        p->frames_len += (size_t)n;
    close(fd);
    return NULL;
}

static void start_peer(struct peer *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(p->listening, 1), 0);
    assert_int_equal(getsockname(p->listening, (struct sockaddr *)&at, &len), 0);
    p->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, serve_one, p), 0);
}

static void join_peer(struct peer *p)
{
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    close(p->listening);
}

/* ---- the owner inside the tunnel: says hello and, when it got so many bytes, ends ---- */

struct owner {
    struct weir__loops *loops;
    struct weir__tcp *tcp;
    struct weir__post begin;
    char address[64];
    uint32_t open_ms;
    size_t wants;
    const char *says;
    size_t said;
    uint8_t got[BYTES];
    size_t got_len;
    bool opened;

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    unsigned closed;
    struct weir_error why;
};

static void opened(void *arg, struct weir__tcp *tcp)
{
    struct owner *o = arg;

    if (tcp != o->tcp || o->opened) abort();
    o->opened = true;
    weir__tcp_flush(tcp);
}

static uint8_t *give_room(void *arg, size_t *room)
{
    struct owner *o = arg;

    if (!o->opened) abort();
    *room = sizeof o->got - o->got_len;
    return o->got + o->got_len;
}

static void received(void *arg, size_t bytes)
{
    struct owner *o = arg;

    o->got_len += bytes;
    if (o->got_len >= o->wants) weir__tcp_end(o->tcp);
}

static void ended(void *arg)
{
    weir__tcp_end(((struct owner *)arg)->tcp);
}

static struct weir__bytes output(void *arg)
{
    struct owner *o = arg;

    if (!o->opened) abort();
    return weir__bytes_of(o->says + o->said, strlen(o->says) - o->said);
}

static void sent(void *arg, size_t bytes)
{
    ((struct owner *)arg)->said += bytes;
}

static void closed(void *arg, const struct weir_error *why)
{
    struct owner *o = arg;

    weir__mutex_lock(&o->lock);
    o->closed++;
    o->why = *why;
    weir__cond_broadcast(&o->changed);
    weir__mutex_unlock(&o->lock);
}

static const struct weir__tcp_calls calls = {opened, give_room, received, ended,
                                             output, sent,      closed};

static void begin(void *arg)
{
    static const char *const protocols[] = {"amqp", NULL};
    struct owner *owner = arg;
    struct weir__tunnel_options o = {
        .tcp = {.address = owner->address, .limits = {.open_ms = owner->open_ms}},
        .path = "/here",
        .protocols = protocols,
    };
    struct weir_error err;

    if (weir__tunnel_connect(&owner->tcp, weir__loops_at(owner->loops, 0), &o, &calls, owner,
                             &err) != 0)
        closed(owner, &err);
}

/* From the beginning to the end; the peer's too. */
static void run(struct owner *o, struct peer *p)
{
    struct weir__loops_options one = {.count = 1};

    start_peer(p);
    if (!o->says) o->says = "hello";
    snprintf(o->address, sizeof o->address, "127.0.0.1:%u", p->port);
    weir__mutex_init(&o->lock);
    weir__cond_init(&o->changed);
    assert_int_equal(weir__loops_start(&o->loops, &one, NULL), 0);
    weir__post_init(&o->begin, begin, o);
    assert_int_equal(weir__loop_post(weir__loops_at(o->loops, 0), &o->begin), 0);
    weir__mutex_lock(&o->lock);
    while (!o->closed)
        assert_true(weir__cond_wait(&o->changed, &o->lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&o->lock);
    join_peer(p);
    weir__loops_free(o->loops);
    assert_int_equal(o->closed, 1);
    weir__cond_fini(&o->changed);
    weir__mutex_fini(&o->lock);
}

#define YES                                                                                        \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"            \
    "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"

/* What came with the answer is read, what is said is masked, and the end is a close. */
static void bytes_go_both_ways(void **state)
{
    struct peer p = {.answer = YES,
                     .behind = {(const uint8_t *)"\x82\x05"
                                                 "early",
                                7}};
    struct owner o = {.wants = 5};
    char host[128];
    const uint8_t *f = p.frames;

    (void)state;
    run(&o, &p);
    assert_int_equal(o.why.code, 0);
    assert_int_equal(o.got_len, 5);
    assert_memory_equal(o.got, "early", 5);
    snprintf(host, sizeof host, "GET /here HTTP/1.1\r\nHost: %s\r\n", o.address);
    assert_memory_equal(p.request, host, strlen(host));
    assert_int_equal(p.frames_len, 6 + 5 + 6 + 2);
    assert_memory_equal(f, "\x82\x85", 2);
    for (int i = 0; i < 5; i++) assert_int_equal(f[6 + i] ^ f[2 + i % 4], "hello"[i]);
    assert_memory_equal(f + 11, "\x88\x82", 2);
    assert_int_equal((f[17] ^ f[13]) << 8 | (f[18] ^ f[14]), 1000);
}

/* Its close is an end, like the end of the bytes. */
static void the_peers_close_ends_it(void **state)
{
    struct peer p = {.answer = YES, .behind = {(const uint8_t *)"\x88\x02\x03\xe8", 4}};
    struct owner o = {.wants = BYTES};

    (void)state;
    run(&o, &p);
    assert_true(o.opened);
    assert_int_equal(o.why.code, 0);
    assert_int_equal(o.got_len, 0);
}

static void without_a_yes_nothing_is_opened(void **state)
{
    static const struct {
        struct peer peer;
        uint32_t open_ms;
        const char *says;
    } rows[] = {
        {{.answer = "HTTP/1.1 403 Forbidden\r\n\r\n"}, 0, "403 Forbidden"},
        {{.answer = "AMQP\3\1\r\n\r\n"}, 0, "no WebSocket"},
        {{.answer = "HTTP/1.1 101 \r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Accept: %sx\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"},
         0,
         "Sec-WebSocket-Accept"},
        {{.answer = NULL}, 0, "hung up"},
        {{.silent = true}, 100, "did not answer in time"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct peer p = rows[i].peer;
        struct owner o = {.open_ms = rows[i].open_ms};
        run(&o, &p);
        assert_false(o.opened);
        assert_int_not_equal(o.why.code, 0);
        if (!strstr(o.why.text, rows[i].says)) fail_msg("row %zu: %s", i, o.why.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways),
        cmocka_unit_test(the_peers_close_ends_it),
        cmocka_unit_test(without_a_yes_nothing_is_opened),
    };

    return cmocka_run_group_tests_name("connect", tests, NULL, NULL);
}
