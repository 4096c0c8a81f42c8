/* connect_test.c - a client's tunnel, and a blocking peer at the other end that says what the test
 * wants it to say. */
#include "tunnel/tunnel.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "http/knock.h"
#include "io/state.h"
#include "support/allocs.h"

#define PATIENCE_MS 20000
#define BYTES 4096

/* ---- the peer ---- */

struct peer {
    int listening;
    unsigned port;
    pthread_t thread;
    const char *answer; /* with %s for the accept; NULL: none, it hangs up */
    bool silent;        /* it neither answers nor hangs up */
    size_t piece;       /* bytes of the answer at once, 0: all */
    size_t head_bytes;  /* of the answer, 0: as it is */
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

/* Makes a head as long as is wanted, by one more field. */
static size_t pad(char *head, size_t len, size_t wanted)
{
    if (!wanted) return len;
    memset(head + len - 2, 'x', wanted - len - 2);
    head[len] = ':';
    memcpy(head + wanted - 4, "\r\n\r\n", 4);
    return wanted;
}

static void say(struct peer *p, int fd)
{
    static char text[WEIR__KNOCK_ANSWER_MAX + 1024];
    char accept[WEIR__WEBSOCKET_ACCEPT_BYTES] = "";
    const char *key = strstr(p->request, "Sec-WebSocket-Key: ");
    size_t len, n;
    int on = 1;

    if (key) weir__websocket_accept(weir__bytes_of(key + 19, WEIR__WEBSOCKET_KEY_BYTES), accept);
    len = (size_t)snprintf(text, sizeof text, p->answer, accept);
    len = pad(text, len, p->head_bytes);
    if (p->behind.len) memcpy(text + len, p->behind.at, p->behind.len);
    len += p->behind.len;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (size_t at = 0; at < len; at += n) {
        n = p->piece && p->piece < len - at ? p->piece : len - at;
        send(fd, text + at, n, MSG_NOSIGNAL);
    }
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
    const char *path;
    uint32_t open_ms;
    size_t wants;
    const char *says;
    size_t said;
    uint8_t got[BYTES];
    size_t got_len;
    bool opened;
    unsigned timers;  /* that run on the loop when it is closed */
    uint64_t without; /* which of the loop's allocations fails; 0: none */
    bool failed;      /* there was such an allocation */

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    unsigned closed;
    struct weir_error why;
};

static unsigned count_timers(const struct weir__timer *t)
{
    return t ? 1 + count_timers(t->child) + count_timers(t->next) : 0;
}

static void opened(void *arg, struct weir__tcp *tcp)
{
    struct owner *o = arg;

    if (tcp != o->tcp || o->opened) abort();
    o->opened = true;
    if (count_timers(tcp->loop->timers.top) > 1) abort(); /* the connection has one */
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

    o->failed = allocs_failed();
    allocs_fail(0);
    weir__mutex_lock(&o->lock);
    o->closed++;
    o->timers = count_timers(weir__loops_at(o->loops, 0)->timers.top);
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
        .path = owner->path ? owner->path : "/here",
        .protocols = protocols,
    };
    struct weir_error err;

    owner->tcp = (struct weir__tcp *)owner; /* not yet one */
    allocs_fail(owner->without);
    if (weir__tunnel_connect(&owner->tcp, weir__loops_at(owner->loops, 0), &o, &calls, owner,
                             &err) != 0)
        closed(owner, &err);
}

/* From the beginning to the end; the peer's too, if there is one. */
static void run(struct owner *o, struct peer *p)
{
    struct weir__loops_options one = {.count = 1};

    if (p) start_peer(p);
    if (!o->says) o->says = "hello";
    if (p) snprintf(o->address, sizeof o->address, "127.0.0.1:%u", p->port);
    weir__mutex_init(&o->lock);
    weir__cond_init(&o->changed);
    assert_int_equal(weir__loops_start(&o->loops, &one, NULL), 0);
    weir__post_init(&o->begin, begin, o);
    assert_int_equal(weir__loop_post(weir__loops_at(o->loops, 0), &o->begin), 0);
    weir__mutex_lock(&o->lock);
    while (!o->closed)
        assert_true(weir__cond_wait(&o->changed, &o->lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&o->lock);
    if (p) join_peer(p);
    weir__loops_free(o->loops);
    assert_int_equal(o->closed, 1);
    assert_int_equal(o->timers, 0);
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
        const char *says;
    } rows[] = {
        {{.answer = "HTTP/1.1 403 Forbidden\r\n\r\n"}, "403 Forbidden"},
        {{.answer = "AMQP\3\1\r\n\r\n"}, "no WebSocket"},
        {{.answer = "HTTP/1.1 101 \r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Accept: %sx\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"},
         "Sec-WebSocket-Accept"},
        {{.answer = NULL}, "hung up"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct peer p = rows[i].peer;
        struct owner o = {.opened = false};
        run(&o, &p);
        assert_false(o.opened);
        assert_int_not_equal(o.why.code, 0);
        if (!strstr(o.why.text, rows[i].says)) fail_msg("row %zu: %s", i, o.why.text);
    }
}

/* In pieces, and as long as it may be; longer is refused, however much of it there is. */
static void an_answer_may_have_any_length_up_to_the_limit(void **state)
{
    static const struct {
        size_t piece, bytes;
    } rows[] = {{1, 0}, {1000, WEIR__KNOCK_ANSWER_MAX}, {0, WEIR__KNOCK_ANSWER_MAX + 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes early = weir__bytes_of("\x82\x05"
                                                  "early",
                                                  7);
        struct peer p = {.answer = YES,
                         .behind = early,
                         .piece = rows[i].piece,
                         .head_bytes = rows[i].bytes};
        struct owner o = {.wants = 5};
        bool good = rows[i].bytes <= WEIR__KNOCK_ANSWER_MAX;
        run(&o, &p);
        assert_int_equal(o.opened, good);
        assert_int_equal(o.got_len, good ? 5 : 0);
        if (!good)
            assert_string_equal(o.why.text, "the answer is no WebSocket's: its head is too long");
    }
}

static void the_time_for_an_answer_is_the_one_to_open(void **state)
{
    int64_t began_ns = weir__mono_ns();
    struct peer p = {.silent = true};
    struct owner o = {.open_ms = 100};

    (void)state;
    run(&o, &p);
    assert_int_equal(o.why.code, WEIR_ECANCELED);
    assert_string_equal(o.why.text, "asked for a WebSocket, it did not answer in time");
    assert_in_range(weir__mono_ns() - began_ns, 99000000, 9000000000); /* less than the default */
}

static void what_cannot_be_asked_is_not(void **state)
{
    char path[WEIR__KNOCK_REQUEST_MAX + 1] = "/";
    struct owner nowhere = {.address = "nowhere"}, far = {.address = "127.0.0.1:1", .path = path};

    (void)state;
    run(&nowhere, NULL);
    assert_int_equal(nowhere.why.code, WEIR_EINVAL);
    assert_null(nowhere.tcp);
    memset(path + 1, 'x', sizeof path - 2);
    run(&far, NULL);
    assert_int_equal(far.why.code, WEIR_EINVAL);
    assert_string_equal(far.why.text, "the request for a WebSocket is too long");
    assert_null(far.tcp);
}

/* Nobody listens there, so that it ends in any case. */
static void without_memory_nothing_is_asked(void **state)
{
    bool failed = true;
    uint64_t at = 1;

    (void)state;
    for (; failed; at++) {
        struct owner o = {.address = "127.0.0.1:1", .without = at};
        run(&o, NULL);
        failed = o.failed;
        assert_int_equal(o.why.code, failed ? WEIR_ENOMEM : WEIR_EUNREACHABLE);
        if (failed) assert_null(o.tcp);
    }
    assert_true(at > 3);
}

static void a_host_has_no_port_that_is_usual(void **state)
{
    static const struct {
        const char *address;
        bool tls;
        const char *host;
    } rows[] = {
        {"weir.example:80", false, "weir.example"},
        {"weir.example:443", true, "weir.example"},
        {"weir.example:80", true, "weir.example:80"},
        {"weir.example:443", false, "weir.example:443"},
        {"weir.example:8080", false, "weir.example:8080"},
        {"weir.example:180", false, "weir.example:180"},
        {"weir.example:1443", true, "weir.example:1443"},
        {"[::1]:443", true, "[::1]"},
        {"x:80", false, "x"},
        {":80", false, ":80"}, /* there would be nothing left */
        {"80", false, "80"},
    };
    char host[WEIR__TUNNEL_HOST_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir__tunnel_host(host, rows[i].address, rows[i].tls);
        assert_string_equal(host, rows[i].host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways),
        cmocka_unit_test(the_peers_close_ends_it),
        cmocka_unit_test(without_a_yes_nothing_is_opened),
        cmocka_unit_test(an_answer_may_have_any_length_up_to_the_limit),
        cmocka_unit_test(the_time_for_an_answer_is_the_one_to_open),
        cmocka_unit_test(what_cannot_be_asked_is_not),
        cmocka_unit_test(without_memory_nothing_is_asked),
        cmocka_unit_test(a_host_has_no_port_that_is_usual),
    };

    return cmocka_run_group_tests_name("connect", tests, NULL, NULL);
}
