/* echo.h - a server that sends back what it gets, the state of its connections as a test sees it,
 * and plain blocking clients. */
#ifndef WEIR_TESTS_IO_ECHO_H
#define WEIR_TESTS_IO_ECHO_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/state.h"

#define ECHO_BUFFER 65536
#define PATIENCE_MS 20000

/* The lock guards all but what is set before the start. */
struct echo {
    struct weir__loops *loops;
    struct weir__listener *listener;
    size_t room_max;    /* bytes of room given at once, 0: all there is */
    size_t end_after;   /* bytes received, then the server ends; 0: when the client does */
    size_t abort_after; /* likewise, but without a word */
    size_t pause_after; /* bytes received, then the server reads no more */
    bool refuse;
    size_t mute_below;    /* less than so many bytes at once are not sent back */
    const char *farewell; /* sent instead of an echo, when end_after is reached */

    struct weir__mutex lock;
    struct weir__cond changed;
    unsigned opened, closed;
    unsigned on_loop[4];
    size_t held_max; /* bytes that a connection held */
    uint64_t received;
    struct weir_error why; /* of the last that was closed */
    char subject[WEIR__TLS_SUBJECT_MAX];
    struct weir__tls_identity identity;
    char peer[WEIR__TCP_ADDRESS_MAX];
    char congestion[16];      /* control of the last that was opened */
    unsigned failures;        /* told by the listener */
    struct weir_error failed; /* the last of them */
};

struct echo_connection {
    struct echo *echo;
    struct weir__tcp *tcp;
    size_t first, last; /* of what is held */
    size_t received;
    bool paused;
    uint8_t held[ECHO_BUFFER];
};

static uint8_t *echo_room(void *owner, size_t *room)
{
    struct echo_connection *c = owner;

    if (c->first == c->last) c->first = c->last = 0;
    *room = ECHO_BUFFER - c->last;
    if (c->echo->room_max && *room > c->echo->room_max) *room = c->echo->room_max;
    c->paused = *room == 0;
    return *room ? c->held + c->last : NULL;
}

static void echo_received(void *owner, size_t bytes)
{
    struct echo_connection *c = owner;
    struct echo *e = c->echo;

    if (bytes >= e->mute_below) c->last += bytes;
    c->received += bytes;
    weir__mutex_lock(&e->lock);
    e->received += bytes;
    if (c->last - c->first > e->held_max) e->held_max = c->last - c->first;
    weir__cond_broadcast(&e->changed);
    weir__mutex_unlock(&e->lock);
    if (e->abort_after && c->received >= e->abort_after) weir__tcp_abort(c->tcp, NULL);
    if (e->pause_after && c->received >= e->pause_after) weir__tcp_pause(c->tcp);
    if (e->end_after && c->received >= e->end_after) {
        if (e->farewell) {
            c->first = 0;
            c->last = strlen(e->farewell);
            memcpy(c->held, e->farewell, c->last);
        }
        weir__tcp_end(c->tcp);
    }
}

static void echo_ended(void *owner)
{
    weir__tcp_end(((struct echo_connection *)owner)->tcp);
}

static struct weir__bytes echo_output(void *owner)
{
    struct echo_connection *c = owner;

    return weir__bytes_of(c->held + c->first, c->last - c->first);
}

static void echo_sent(void *owner, size_t bytes)
{
    struct echo_connection *c = owner;

    c->first += bytes;
    if (c->paused && c->first == c->last) weir__tcp_resume(c->tcp);
}

static void echo_closed(void *owner, const struct weir_error *why)
{
    struct echo_connection *c = owner;
    struct echo *e = c->echo;

    weir__mutex_lock(&e->lock);
    e->closed++;
    e->why = *why;
    weir__cond_broadcast(&e->changed);
    weir__mutex_unlock(&e->lock);
    free(c);
}

static void echo_opened(void *owner, struct weir__tcp *tcp)
{
    (void)owner;
    (void)tcp;
    abort(); /* the listener says it */
}

static const struct weir__tcp_calls echo_calls = {echo_opened, echo_room, echo_received, echo_ended,
                                                  echo_output, echo_sent, echo_closed};

static bool echo_accepted(void *user, struct weir__tcp *tcp)
{
    struct echo *e = user;
    struct echo_connection *c;
    socklen_t len;

    if (e->refuse) return false;
    c = malloc(sizeof *c);
    if (!c) return false;
    memset(c, 0, offsetof(struct echo_connection, held));
    c->echo = e;
    c->tcp = tcp;
    weir__tcp_adopt(tcp, &echo_calls, c);
    weir__mutex_lock(&e->lock);
    e->opened++;
    e->on_loop[weir__loop_index(weir__tcp_loop(tcp))]++;
    snprintf(e->peer, sizeof e->peer, "%s", weir__tcp_peer(tcp));
    len = sizeof e->congestion;
    getsockopt(tcp->fd, IPPROTO_TCP, TCP_CONGESTION, e->congestion, &len);
    if (weir__tcp_tls(tcp)) weir__tls_subject(weir__tcp_tls(tcp), e->subject, sizeof e->subject);
    if (weir__tcp_tls(tcp)) weir__tls_identify(weir__tcp_tls(tcp), &e->identity);
    weir__cond_broadcast(&e->changed);
    weir__mutex_unlock(&e->lock);
    return true;
}

static void echo_failed(void *user, const char *peer, const struct weir_error *why)
{
    struct echo *e = user;

    assert_int_equal(strncmp(peer, "127.0.0.1:", 10), 0);
    weir__mutex_lock(&e->lock);
    e->failures++;
    e->failed = *why;
    weir__mutex_unlock(&e->lock);
}

/* o may have limits, TLS and an address; the rest is filled in. */
static inline void echo_start(struct echo *e, struct weir__listener_options o)
{
    struct weir__loops_options lo = {.count = 2};
    struct weir_error err = {0};

    weir__mutex_init(&e->lock);
    weir__cond_init(&e->changed);
    assert_int_equal(weir__loops_start(&e->loops, &lo, NULL), 0);
    if (!o.address) o.address = "127.0.0.1:0";
    o.accepted = echo_accepted;
    o.failed = echo_failed;
    o.user = e;
    if (weir__listener_open(&e->listener, e->loops, &o, &err) != 0) fail_msg("%s", err.text);
    if (weir__listener_begin(e->listener, &err) != 0) fail_msg("%s", err.text);
}

/* Stops the loops: nothing waits for them any more. */
static inline void stop_loops(struct weir__loops *loops)
{
    weir__loops_stop(loops);
    for (unsigned i = 0; i < weir__loops_count(loops); i++) {
        struct weir__loop *l = weir__loops_at(loops, i);
        assert_int_equal(weir__timers_next(&l->timers), INT64_MAX);
        assert_null(l->residents);
        assert_null(l->deferred.first);
        assert_null(l->late.first);
    }
}

/* Every connection that was opened has been closed by the end. */
static inline void echo_stop(struct echo *e)
{
    weir__listener_close(e->listener);
    stop_loops(e->loops);
    assert_int_equal(e->opened, e->closed);
    assert_int_equal(weir__listener_counts(e->listener).open, 0);
    assert_int_equal(weir__listener_counts(e->listener).handshakes, 0);
    weir__listener_free(e->listener);
    weir__loops_free(e->loops);
    weir__cond_fini(&e->changed);
    weir__mutex_fini(&e->lock);
}

/* Waits until so many have been opened and closed. */
static inline void echo_wait(struct echo *e, unsigned opened, unsigned closed)
{
    int64_t deadline = weir__deadline_ns(PATIENCE_MS);

    weir__mutex_lock(&e->lock);
    while (e->opened < opened || e->closed < closed)
        if (!weir__cond_wait(&e->changed, &e->lock, deadline))
            fail_msg("%u of %u opened, %u of %u closed", e->opened, opened, e->closed, closed);
    weir__mutex_unlock(&e->lock);
}

static inline void echo_wait_received(struct echo *e, uint64_t bytes)
{
    int64_t deadline = weir__deadline_ns(PATIENCE_MS);

    weir__mutex_lock(&e->lock);
    while (e->received < bytes)
        if (!weir__cond_wait(&e->changed, &e->lock, deadline))
            fail_msg("%llu of %llu bytes", (unsigned long long)e->received,
                     (unsigned long long)bytes);
    weir__mutex_unlock(&e->lock);
}

/* The counts of the listener come a little later than what owners are told. */
static inline void listener_wait(struct echo *e, unsigned open, unsigned handshakes)
{
    int64_t deadline = weir__deadline_ns(PATIENCE_MS);
    struct weir__listener_counts n;

    do {
        n = weir__listener_counts(e->listener);
        if (weir__mono_ns() > deadline) fail_msg("%u open, %u handshakes", n.open, n.handshakes);
        sched_yield();
    } while (n.open != open || n.handshakes != handshakes);
}

/* A program that was stopped and goes on finds a call with a time limit interrupted (signal(7)). So
 * connecting has none. */
static inline int client_connect(unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return fd;
}

static inline int echo_client(struct echo *e)
{
    return client_connect(weir__listener_port(e->listener));
}

static inline void client_send(int fd, const void *at, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, (const char *)at + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        assert_true(n > 0);
        sent += (size_t)n;
    }
}

static inline ssize_t client_read(int fd, void *to, size_t room)
{
    ssize_t n;

    do {
        n = recv(fd, to, room, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Reads len bytes, or to the end; how many. -1: reset. */
static inline ssize_t client_receive(int fd, void *to, size_t len)
{
    size_t got = 0;

    while (got < len) {
        ssize_t n = client_read(fd, (char *)to + got, len - got);
        if (n == 0) break;
        if (n < 0 && errno == ECONNRESET) return -1;
        assert_true(n > 0);
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static inline void client_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static inline unsigned count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(d);
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

static unsigned descriptors_at_first;

/* The first loop of a process opens some that stay. */
static inline void note_descriptors(void)
{
    struct weir__loops *loops;

    assert_int_equal(weir__loops_start(&loops, NULL, NULL), 0);
    weir__loops_free(loops);
    descriptors_at_first = count_descriptors();
}

/* The last test of a file: whatever the others did, nothing of it is open. */
static inline void no_descriptor_is_left(void **state)
{
    (void)state;
    assert_int_equal(count_descriptors(), descriptors_at_first);
}

static inline void fill_pattern(uint8_t *to, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        to[i] = (uint8_t)(seed >> 24);
    }
}

#endif
