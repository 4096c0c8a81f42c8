/* server_test.c - the server's side of a tunnel, whose owner has little room or much to say, and a
 * plain client at the other end. */
#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "http/websocket.h"
#include "io/state.h"
#include "support/patience.h"
#include "tunnel/tunnel.h"

#define PATIENCE_MS 20000
#define ROOM 1000       /* bytes that the owner holds */
#define MUCH (16 << 20) /* more than sockets hold */
#define BUFFER 65536    /* of the sockets */
#define HEAD "said in HTTP\r\n\r\n"

/* An owner that sends back what it gets; or that has `much` to say and ends at the first byte; or
 * that answers a close and ends when its answer is gone. */
struct server {
    struct weir__loops *loops;
    struct weir__listener *listener;
    struct weir__bytes rest;
    struct weir__tcp *tcp;
    const uint8_t *much;
    size_t much_len;
    uint8_t held[ROOM];
    size_t held_len;
    bool starved, answers;
    unsigned refused;
    unsigned ended; /* how often it was told */
    struct weir__post probe;
    atomic_int paused; /* what the probe saw: -1, not yet */

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    bool closed;
    struct weir_error why;
};

static void opened(void *arg, struct weir__tcp *tcp)
{
    (void)arg, (void)tcp;
    abort(); /* a tunnel does not call it */
}

static uint8_t *give_room(void *arg, size_t *room)
{
    struct server *s = arg;

    *room = ROOM - s->held_len;
    s->starved = *room == 0;
    if (s->starved) s->refused++;
    return s->starved && s->refused % 2 ? NULL
                                        : s->held + s->held_len; /* either way of having none */
}

static void received(void *arg, size_t bytes)
{
    struct server *s = arg;

    if (s->much)
        weir__tcp_end(s->tcp);
    else
        s->held_len += bytes;
}

static void ended(void *arg)
{
    struct server *s = arg;

    s->ended++;
    if (!s->answers) weir__tcp_end(s->tcp);
    if (s->answers) s->held_len = 1;
}

static struct weir__bytes output(void *arg)
{
    struct server *s = arg;

    return s->much ? weir__bytes_of(s->much, s->much_len) : weir__bytes_of(s->held, s->held_len);
}

static void sent(void *arg, size_t bytes)
{
    struct server *s = arg;

    if (s->much) {
        s->much += bytes;
        s->much_len -= bytes;
        return;
    }
    s->held_len -= bytes;
    memmove(s->held, s->held + bytes, s->held_len);
    if (s->starved) weir__tcp_resume(s->tcp);
    if (s->answers) weir__tcp_end(s->tcp);
}

static void closed(void *arg, const struct weir_error *why)
{
    struct server *s = arg;

    weir__mutex_lock(&s->lock);
    s->closed = true;
    s->why = *why;
    weir__cond_broadcast(&s->changed);
    weir__mutex_unlock(&s->lock);
}

static const struct weir__tcp_calls calls = {opened, give_room, received, ended,
                                             output, sent,      closed};

static bool accepted(void *user, struct weir__tcp *tcp)
{
    struct server *s = user;
    struct weir__tunnel *t;
    int small = BUFFER;

    s->tcp = tcp;
    setsockopt(tcp->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    if (weir__tunnel_new(&t, NULL, weir__bytes_of(HEAD, strlen(HEAD)), s->rest, NULL) != 0)
        return false;
    weir__tunnel_start(t, tcp, &calls, s);
    return true;
}

/* Returns a client's socket, which is connected. */
static int start(struct server *s)
{
    struct weir__listener_options o = {.address = "127.0.0.1:0", .accepted = accepted, .user = s};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = BUFFER;

    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    weir__mutex_init(&s->lock);
    weir__cond_init(&s->changed);
    assert_int_equal(weir__loops_start(&s->loops, &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    assert_int_equal(weir__listener_open(&s->listener, s->loops, &o, NULL), 0);
    assert_int_equal(weir__listener_begin(s->listener, NULL), 0);
    to.sin_port = htons((uint16_t)weir__listener_port(s->listener));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void stop(struct server *s, int fd)
{
    close(fd);
    weir__mutex_lock(&s->lock);
    while (!s->closed)
        assert_true(weir__cond_wait(&s->changed, &s->lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&s->lock);
    weir__listener_close(s->listener);
    weir__loops_stop(s->loops);
    weir__listener_free(s->listener);
    weir__loops_free(s->loops);
    weir__cond_fini(&s->changed);
    weir__mutex_fini(&s->lock);
    assert_int_equal(s->why.code, 0);
}

/* ---- the client ---- */

/* A frame with a mask of zeros; len is below 65536. */
static size_t frame(uint8_t *to, uint8_t first, const uint8_t *at, size_t len)
{
    size_t head = len < 126 ? 2 : 4;

    to[0] = first;
    to[1] = (uint8_t)(0x80 | (len < 126 ? len : 126));
    to[2] = (uint8_t)(len >> 8); /* or the mask's */
    to[3] = (uint8_t)len;
    memset(to + head, 0, 4);
    if (len) memcpy(to + head + 4, at, len);
    return head + 4 + len;
}

static void hear(int fd, void *to, size_t len)
{
    assert_int_equal(patience_recv_all(fd, to, len), len);
}

static void hear_head(int fd)
{
    char head[sizeof HEAD] = "";

    hear(fd, head, strlen(HEAD));
    assert_string_equal(head, HEAD);
}

/* The payload of a server's next frame, which begins with this byte; its length. */
static size_t hear_frame(int fd, uint8_t first, uint8_t *to, size_t room)
{
    uint8_t head[2], more[8] = {0};
    size_t len, extra;

    hear(fd, head, 2);
    assert_int_equal(head[0], first);
    extra = head[1] == 126 ? 2 : head[1] == 127 ? 8 : 0;
    if (extra) hear(fd, more, extra);
    len = extra ? 0 : head[1];
    for (size_t i = 0; i < extra; i++) len = len << 8 | more[i];
    assert_true(len <= room);
    hear(fd, to, len);
    return len;
}

static void hear_payload(int fd, const uint8_t *expected, size_t len)
{
    uint8_t *got = malloc(len);

    assert_non_null(got);
    for (size_t at = 0; at < len;) at += hear_frame(fd, 0x82, got + at, len - at);
    assert_memory_equal(got, expected, len);
    free(got);
}

static void hear_end(int fd)
{
    uint8_t code[2], byte;

    assert_int_equal(hear_frame(fd, 0x88, code, 2), 2);
    assert_int_equal(code[0] << 8 | code[1], 1000);
    assert_int_equal(patience_recv(fd, &byte, 1), 0);
}

struct pump {
    int fd;
    const uint8_t *at;
    size_t len;
    struct weir__thread thread;
};

static void *pump_out(void *arg)
{
    struct pump *p = arg;
    ssize_t n;

    for (size_t at = 0; at < p->len; at += (size_t)n)
        if ((n = send(p->fd, p->at + at, p->len - at, MSG_NOSIGNAL)) <= 0) break;
    return NULL;
}

static uint8_t data[MUCH], wire[2 << 20];

static int fill_data(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)((seed = seed * 69069 + 1) >> 24);
    return 0;
}

/* Frames of every size from one byte up: the first of them came with the request, more than the
 * tunnel reads at once, the others over the socket; an owner with little room stops it often. */
static void a_small_owner_gets_every_byte(void **state)
{
    size_t len = 0, used = 0, early = 0;
    struct server s = {.ended = 0};
    struct pump p;

    (void)state;
    for (size_t n = 1; n < 800; used += n++) {
        len += frame(wire + len, 0x82, data + used, n);
        if (len < 20000) early = len;
    }
    s.rest = weir__bytes_of(wire, early);
    p = (struct pump){.fd = start(&s), .at = wire + early, .len = len - early};
    assert_int_equal(weir__thread_start(&p.thread, "pump", pump_out, &p, NULL), 0);
    hear_head(p.fd);
    hear_payload(p.fd, data, used);
    weir__thread_join(&p.thread);
    len = frame(wire, 0x88, (const uint8_t *)"\x03\xe8", 2);
    assert_int_equal(send(p.fd, wire, len, 0), len);
    hear_end(p.fd);
    stop(&s, p.fd);
    assert_int_equal(s.ended, 1);
}

/* All that it had to say comes before the close. */
static void a_talker_is_heard_to_its_end(void **state)
{
    struct server s = {.much = data, .much_len = sizeof data};
    int fd = start(&s);
    size_t len = frame(wire, 0x82, data, 1);

    (void)state;
    assert_int_equal(send(fd, wire, len, 0), len);
    hear_head(fd);
    hear_payload(fd, data, sizeof data);
    hear_end(fd);
    stop(&s, fd);
    assert_int_equal(s.ended, 0);
}

static void look(void *arg)
{
    struct server *s = arg;

    atomic_store(&s->paused, s->tcp->paused);
}

/* Waits until the server does not read. */
static void wait_paused(struct server *s)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);

    do {
        assert_true(weir__mono_ns() < deadline_ns);
        atomic_store(&s->paused, -1);
        weir__post_init(&s->probe, look, s);
        assert_int_equal(weir__loop_post(weir__loops_at(s->loops, 0), &s->probe), 0);
        while (atomic_load(&s->paused) < 0) sched_yield();
    } while (!atomic_load(&s->paused));
}

/* Pongs that are not read stop the reading of pings, and none is lost. */
static void a_client_that_reads_late_gets_its_pongs(void **state)
{
    enum { PINGS = 15000, BYTES = 120 };
    struct server s = {.ended = 0};
    struct pump p;
    size_t len = 0;
    uint8_t pong[BYTES];

    (void)state;
    for (int i = 0; i < PINGS; i++) len += frame(wire + len, 0x89, data + i, BYTES);
    p = (struct pump){.fd = start(&s), .at = wire, .len = len};
    assert_int_equal(weir__thread_start(&p.thread, "pump", pump_out, &p, NULL), 0);
    hear_head(p.fd);
    wait_paused(&s);
    for (int i = 0; i < PINGS; i++) {
        assert_int_equal(hear_frame(p.fd, 0x8a, pong, BYTES), BYTES);
        assert_memory_equal(pong, data + i, BYTES);
    }
    weir__thread_join(&p.thread);
    shutdown(p.fd, SHUT_WR);
    hear_end(p.fd);
    stop(&s, p.fd);
    assert_int_equal(s.ended, 1);
}

/* What the client says behind its close is not read, and what the owner answers is not sent; it is
 * told once. */
static void nothing_comes_behind_a_close(void **state)
{
    struct server s = {.answers = true};
    int fd = start(&s);
    size_t len = frame(wire, 0x88, (const uint8_t *)"\x03\xe8", 2);

    (void)state;
    len += frame(wire + len, 0x82, data, 10 * WEIR__WEBSOCKET_INPUT_BYTES);
    assert_int_equal(send(fd, wire, len, 0), len);
    hear_head(fd);
    hear_end(fd);
    stop(&s, fd);
    assert_int_equal(s.ended, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_owner_gets_every_byte),
        cmocka_unit_test(a_talker_is_heard_to_its_end),
        cmocka_unit_test(a_client_that_reads_late_gets_its_pongs),
        cmocka_unit_test(nothing_comes_behind_a_close),
    };

    return cmocka_run_group_tests_name("server", tests, fill_data, NULL);
}
