/* denied_test.c - calls that the system denies: what cannot begin says why and leaves nothing behind,
 * and a listener goes on for those who come later. */
#define _GNU_SOURCE
#include <openssl/ssl.h>
#include <pthread.h>

#include "caller.h"

#include "certificate.h"
#include "io/holder.h"
#include "io/notify.h"
#include "io/worker.h"

enum call {
    NO_CALL,
    LOOP_INIT,
    ASYNC_INIT,
    POLL_INIT,
    POLL_START,
    THREAD,
    TLS,
    PEEK,
    SOCKET,
    ACCEPT,
    POST,
    HOLDER
};

static struct {
    atomic_int call;       /* that is denied, once */
    atomic_uint skip;      /* so many are not, before */
    int code;              /* what it fails with */
    struct weir__loop *on; /* POST: from this thread only */
    atomic_uint pauses;    /* of the listener */
    atomic_bool started;   /* its poll, which is this: */
    uv_poll_t *poll;
    uv_poll_cb knock;
} denied;

static void deny(enum call call, unsigned skip, int code)
{
    denied.code = code;
    atomic_store(&denied.skip, skip);
    atomic_store(&denied.call, call);
}

static bool is_denied(enum call call)
{
    int expected = (int)call;

    if (atomic_load(&denied.call) != (int)call) return false;
    if (atomic_load(&denied.skip) > 0) {
        atomic_fetch_sub(&denied.skip, 1);
        return false;
    }
    return atomic_compare_exchange_strong(&denied.call, &expected, NO_CALL);
}

#define WRAP(type, name, parameters)                                                               \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

WRAP(int, uv_loop_init, (uv_loop_t * l))
{
    return is_denied(LOOP_INIT) ? denied.code : __real_uv_loop_init(l);
}

WRAP(int, uv_async_init, (uv_loop_t * l, uv_async_t *a, uv_async_cb cb))
{
    return is_denied(ASYNC_INIT) ? denied.code : __real_uv_async_init(l, a, cb);
}

WRAP(int, uv_poll_init, (uv_loop_t * l, uv_poll_t *p, int fd))
{
    return is_denied(POLL_INIT) ? denied.code : __real_uv_poll_init(l, p, fd);
}

WRAP(int, uv_poll_start, (uv_poll_t * p, int events, uv_poll_cb cb))
{
    if (is_denied(POLL_START)) return denied.code;
    if (!atomic_load(&denied.started)) {
        denied.poll = p;
        denied.knock = cb;
        atomic_store(&denied.started, true);
    }
    return __real_uv_poll_start(p, events, cb);
}

WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *arg))
{
    return is_denied(THREAD) ? denied.code : __real_pthread_create(t, a, fn, arg);
}

WRAP(SSL *, SSL_new, (SSL_CTX * c))
{
    return is_denied(TLS) ? NULL : __real_SSL_new(c);
}

static bool fails(enum call call)
{
    bool is = is_denied(call);

    if (is) errno = denied.code;
    return is;
}

WRAP(ssize_t, recv, (int fd, void *to, size_t room, int flags))
{
    return (flags & MSG_PEEK) && fails(PEEK) ? -1 : __real_recv(fd, to, room, flags);
}

WRAP(int, socket, (int domain, int type, int protocol))
{
    return fails(SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags))
{
    return fails(ACCEPT) ? -1 : __real_accept4(fd, from, len, flags);
}

WRAP(int, weir__loop_post, (struct weir__loop * l, struct weir__post *p))
{
    if (denied.on && weir__loop_here(denied.on) && is_denied(POST)) return WEIR_ECLOSED;
    return __real_weir__loop_post(l, p);
}

WRAP(void, weir__loop_timer_start, (struct weir__loop * l, struct weir__timer *t, int64_t at_ms))
{
    if (at_ms - weir__loop_now_ms(l) == WEIR__LISTENER_PAUSE_MS)
        atomic_fetch_add(&denied.pauses, 1);
    __real_weir__loop_timer_start(l, t, at_ms);
}

WRAP(bool, weir__holder_of_port, (unsigned port, char *to, size_t room))
{
    return is_denied(HOLDER) ? false : __real_weir__holder_of_port(port, to, room);
}

/* ---- what cannot begin ---- */

/* The first of two, and the second, for which something is there already. */
static void loops_that_cannot_be_made(void **state)
{
    static const struct {
        enum call call;
        int code, rc;
        const char *text;
    } rows[] = {
        {LOOP_INIT, UV_EMFILE, WEIR_EIO, "making a loop: too many open files"},
        {LOOP_INIT, UV_ENOMEM, WEIR_ENOMEM, "making a loop: not enough memory"},
        {ASYNC_INIT, UV_EMFILE, WEIR_EIO, "making a loop: too many open files"},
        {ASYNC_INIT, UV_ENOMEM, WEIR_ENOMEM, "making a loop: not enough memory"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        const unsigned before = count_descriptors();
        struct weir__loops *all = (struct weir__loops *)&all;
        struct weir_error err;
        deny(rows[i / 2].call, i % 2, rows[i / 2].code);
        assert_int_equal(weir__loops_start(&all, &(struct weir__loops_options){.count = 2}, &err),
                         rows[i / 2].rc);
        assert_string_equal(err.text, rows[i / 2].text);
        assert_null(all);
        assert_int_equal(count_descriptors(), before);
    }
}

/* Those whose threads had begun are stopped; the others never ran. */
static void threads_that_cannot_be_started(void **state)
{
    struct weir_error err;

    (void)state;
    for (unsigned skip = 0; skip < 2; skip++) {
        const unsigned before = count_descriptors();
        struct weir__loops *all = (struct weir__loops *)&all;
        deny(THREAD, skip, EAGAIN);
        assert_true(weir__loops_start(&all, &(struct weir__loops_options){.count = 2}, &err) < 0);
        assert_null(all);
        assert_int_equal(count_descriptors(), before);
    }
    struct weir__worker *worker = (struct weir__worker *)&worker;
    deny(THREAD, 0, EAGAIN);
    assert_true(weir__worker_start(&worker, "worker", &err) < 0);
    assert_null(worker);
}

/* With the first of two addresses, or the second. */
static void a_listener_that_cannot_listen(void **state)
{
    static const enum call calls[] = {POLL_INIT, POLL_START};
    struct echo e = {.room_max = 0};
    struct weir__listener_options o = {.address = "localhost:0",
                                       .accepted = echo_accepted,
                                       .user = &e};

    (void)state;
    assert_int_equal(weir__loops_start(&e.loops, NULL, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct weir_error err;
        assert_int_equal(weir__listener_open(&e.listener, e.loops, &o, NULL), 0);
        deny(calls[i], 0, UV_ENOMEM);
        assert_int_equal(weir__listener_begin(e.listener, &err), WEIR_EIO);
        assert_string_equal(err.text, "listening: not enough memory");
        weir__listener_free(e.listener); /* nothing of it is on the loop */
    }
    weir__loops_free(e.loops);
}

static void a_port_that_nobody_is_known_to_hold(void **state)
{
    struct echo e = {.room_max = 0};
    struct weir__listener_options o = {.accepted = echo_accepted};
    char address[64], text[160];
    struct weir__listener *other;
    struct weir_error err;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.backlog = 1});
    address_of(&e, address, sizeof address, "127.0.0.1");
    o.address = address;
    deny(HOLDER, 0, 0);
    assert_int_equal(weir__listener_open(&other, e.loops, &o, &err), WEIR_EEXIST);
    snprintf(text, sizeof text, "listening on %s: another process holds port %u", address,
             weir__listener_port(e.listener));
    assert_string_equal(err.text, text);
    echo_stop(&e);
}

static void a_notice_without_a_socket(void **state)
{
    struct weir_error err;

    (void)state;
    deny(SOCKET, 0, EMFILE);
    assert_true(weir__notify_send("/nowhere", "READY=1", &err) < 0);
    assert_non_null(strstr(err.text, "notifying the service manager: socket: "));
    assert_true(weir__notify_send("/nowhere", "READY=1", &err) < 0); /* nor is there anybody */
    assert_non_null(strstr(err.text, "notifying the service manager: sendto: "));
}

/* ---- those who come ---- */

/* Sends a byte and gets it back. */
static void expect_service(struct echo *e)
{
    int fd = echo_client(e);
    char got;

    client_send(fd, "x", 1);
    assert_int_equal(client_receive(fd, &got, 1), 1);
    close(fd);
}

/* It is closed, and counted so; the next one is served. */
static void a_connection_that_cannot_be_watched(void **state)
{
    struct echo e = {.room_max = 0};
    char got;
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.backlog = 10});
    deny(POLL_INIT, 0, UV_ENOMEM);
    fd = echo_client(&e);
    assert_true(client_receive(fd, &got, 1) <= 0);
    close(fd);
    listener_wait(&e, 0, 0);
    assert_int_equal(e.opened, 0);
    expect_service(&e);
    echo_stop(&e);
}

/* The loop that it was for has closed its mailbox. */
static void a_connection_that_no_loop_takes(void **state)
{
    struct echo e = {.room_max = 0};
    char got;
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.backlog = 10});
    expect_service(&e); /* on the listener's own loop; the next is for the other one */
    denied.on = weir__loops_at(e.loops, 0);
    deny(POST, 0, 0);
    fd = echo_client(&e);
    assert_true(client_receive(fd, &got, 1) <= 0);
    close(fd);
    listener_wait(&e, 0, 0);
    denied.on = NULL;
    assert_int_equal(weir__listener_counts(e.listener).accepted, 2);
    expect_service(&e);
    echo_stop(&e);
}

/* Whatever else is the matter, it is not asked again at once. */
static void an_accept_that_fails_is_tried_later(void **state)
{
    static const struct {
        int code;
        unsigned pauses;
    } rows[] = {{ENOBUFS, 1}, {ENOMEM, 1}, {EINTR, 0}, {ECONNABORTED, 0}, {EPROTO, 0}, {EAGAIN, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct echo e = {.room_max = 0};
        echo_start(&e, (struct weir__listener_options){.backlog = 10});
        atomic_store(&denied.pauses, 0);
        deny(ACCEPT, 0, rows[i].code);
        expect_service(&e);
        assert_int_equal(atomic_load(&denied.pauses), rows[i].pauses);
        echo_stop(&e);
    }
}

static void knock_badly(void *arg)
{
    (void)arg;
    uv_poll_stop(denied.poll); /* as libuv does before it says so */
    denied.knock(denied.poll, UV_EBADF, 0);
}

static void a_poll_that_breaks_is_begun_again(void **state)
{
    struct echo e = {.room_max = 0};
    struct weir__post post;

    (void)state;
    atomic_store(&denied.started, false);
    echo_start(&e, (struct weir__listener_options){.backlog = 10});
    atomic_store(&denied.pauses, 0);
    weir__post_init(&post, knock_badly, NULL);
    assert_int_equal(weir__loop_post(weir__loops_at(e.loops, 0), &post), 0);
    expect_service(&e);
    assert_int_equal(atomic_load(&denied.pauses), 1);
    echo_stop(&e);
}

/* ---- TLS ---- */

static struct identity self;

static struct weir__tls_context *make_context(bool client)
{
    struct weir__tls_options o = {.client = client, .trust_anyone = client};
    struct weir__tls_context *tls;

    if (!client) o.certificate = pem_bytes(self.certificate_pem);
    if (!client) o.key = pem_bytes(self.key_pem);
    assert_int_equal(weir__tls_context_new(&tls, &o, NULL), 0);
    return tls;
}

static void a_handshake_that_cannot_begin(void **state)
{
    static const enum call calls[] = {TLS, PEEK};

    (void)state;
    identity_make(&self, "self", "DNS:localhost", NULL, 1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct weir__tls_context *tls = make_context(false);
        struct echo e = {.room_max = 0};
        char got;
        int fd;
        echo_start(&e, (struct weir__listener_options){.tls = tls,
                                                       .limits = {.open_ms = WEIR__TCP_NEVER}});
        deny(calls[i], 0, EIO);
        fd = echo_client(&e);
        client_send(fd, "\x16\x03\x01", 3);
        assert_true(client_receive(fd, &got, 1) <= 0);
        close(fd);
        listener_wait(&e, 0, 0);
        assert_int_equal(atomic_load(&denied.call), NO_CALL);
        assert_int_equal(e.opened, 0);
        echo_stop(&e);
        weir__tls_context_free(tls);
    }
    identity_free(&self);
}

static void a_call_without_memory_for_tls(void **state)
{
    struct echo e = {.room_max = 0};
    struct weir__tls_context *tls;
    char address[64];

    (void)state;
    tls = make_context(true);
    echo_start(&e, (struct weir__listener_options){.backlog = 10});
    address_of(&e, address, sizeof address, "127.0.0.1");
    deny(TLS, 0, 0);
    expect_failure(&(struct caller){.options = {.address = address, .tls = tls}}, &e, WEIR_ENOMEM,
                   "setting up TLS");
    echo_stop(&e);
    weir__tls_context_free(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_that_cannot_be_made),
        cmocka_unit_test(threads_that_cannot_be_started),
        cmocka_unit_test(a_listener_that_cannot_listen),
        cmocka_unit_test(a_port_that_nobody_is_known_to_hold),
        cmocka_unit_test(a_notice_without_a_socket),
        cmocka_unit_test(a_connection_that_cannot_be_watched),
        cmocka_unit_test(a_connection_that_no_loop_takes),
        cmocka_unit_test(an_accept_that_fails_is_tried_later),
        cmocka_unit_test(a_poll_that_breaks_is_begun_again),
        cmocka_unit_test(a_handshake_that_cannot_begin),
        cmocka_unit_test(a_call_without_memory_for_tls),
        cmocka_unit_test(no_descriptor_is_left),
    };

    note_descriptors();
    return cmocka_run_group_tests_name("denied", tests, NULL, NULL);
}
