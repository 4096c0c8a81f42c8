/* listening_test.c - when a listener looks for those who come, and what it says of those it turns away. Its
 * clock and its polls are the test's. */
#define _GNU_SOURCE
#include "echo.h"

#include "certificate.h"

int64_t __real_weir__loop_now_ms(const struct weir__loop *);
int64_t __wrap_weir__loop_now_ms(const struct weir__loop *);
int __real_uv_poll_start(uv_poll_t *, int events, uv_poll_cb);
int __wrap_uv_poll_start(uv_poll_t *, int events, uv_poll_cb);
int __real_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags);
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);

static int backlog_given;   /* to the last that listens */
static atomic_llong now_ms; /* 0: what it is */
static atomic_bool no_memory;
static atomic_uint denied; /* calls of accept4 */
static struct weir__mutex lock;
static uv_poll_t *first; /* that was started: a listener's */
static unsigned starts;  /* of that one */

int64_t __wrap_weir__loop_now_ms(const struct weir__loop *l)
{
    int64_t now = atomic_load(&now_ms);

    return now ? now : __real_weir__loop_now_ms(l);
}

int __wrap_uv_poll_start(uv_poll_t *p, int events, uv_poll_cb cb)
{
    weir__mutex_lock(&lock);
    if (!first) first = p;
    starts += first == p;
    weir__mutex_unlock(&lock);
    return __real_uv_poll_start(p, events, cb);
}

int __wrap_listen(int fd, int backlog)
{
    backlog_given = backlog;
    return __real_listen(fd, backlog);
}

int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
    if (!atomic_load(&no_memory)) return __real_accept4(fd, from, len, flags);
    atomic_fetch_add(&denied, 1);
    errno = ENOMEM;
    return -1;
}

static unsigned count_starts(void)
{
    unsigned count;

    weir__mutex_lock(&lock);
    count = starts;
    weir__mutex_unlock(&lock);
    return count;
}

static void start(struct echo *e, struct weir__listener_options o)
{
    first = NULL;
    starts = 0;
    echo_start(e, o);
}

/* A loop that waits here until it is let go: what came meanwhile is seen in one turn. */
struct hold {
    struct weir__post post;
    atomic_bool held, let_go;
};

static void hold_loop(void *arg)
{
    struct hold *h = arg;

    atomic_store(&h->held, true);
    while (!atomic_load(&h->let_go)) sched_yield();
}

static void hold(struct hold *h, struct echo *e)
{
    *h = (struct hold){.held = false};
    weir__post_init(&h->post, hold_loop, h);
    assert_int_equal(weir__loop_post(weir__loops_at(e->loops, 0), &h->post), 0);
    while (!atomic_load(&h->held)) sched_yield();
}

static void let_go(struct hold *h)
{
    atomic_store(&h->let_go, true);
}

static void note(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

/* Its loop has done what was posted before, and has looked for those who come. */
static void pass(struct echo *e)
{
    for (int i = 0; i < 2; i++) {
        atomic_bool passed = false;
        struct weir__post post;
        weir__post_init(&post, note, &passed);
        assert_int_equal(weir__loop_post(weir__loops_at(e->loops, 0), &post), 0);
        while (!atomic_load(&passed)) sched_yield();
    }
}

/* ---- those it turns away ---- */

static void expect_turned_away(struct echo *e, unsigned failures, const char *text)
{
    char byte;
    int fd = echo_client(e);

    assert_true(client_receive(fd, &byte, 1) <= 0);
    close(fd);
    weir__mutex_lock(&e->lock);
    assert_int_equal(e->failures, failures);
    assert_int_equal(e->failed.code, WEIR_ELIMIT);
    assert_string_equal(e->failed.text, text);
    weir__mutex_unlock(&e->lock);
}

#define TURNED_AWAY(n)                                                                             \
    "turned away: there are as many connections as may be (1 connections are open, " #n            \
    " were turned away)"

static void a_limit_is_told_once_in_a_while(void **state)
{
    struct echo e = {.room_max = 0};
    int fd;

    (void)state;
    start(&e, (struct weir__listener_options){.connections_max = 1});
    fd = echo_client(&e);
    echo_wait(&e, 1, 0);
    atomic_store(&now_ms, 1);
    expect_turned_away(&e, 1, TURNED_AWAY(1));
    atomic_store(&now_ms, WEIR__LISTENER_TELL_MS);
    expect_turned_away(&e, 1, TURNED_AWAY(1));
    atomic_store(&now_ms, 1 + WEIR__LISTENER_TELL_MS);
    expect_turned_away(&e, 2, TURNED_AWAY(3));
    atomic_store(&now_ms, 2 * WEIR__LISTENER_TELL_MS);
    expect_turned_away(&e, 2, TURNED_AWAY(3));
    atomic_store(&now_ms, 1 + 2 * WEIR__LISTENER_TELL_MS);
    expect_turned_away(&e, 3, TURNED_AWAY(5));
    atomic_store(&now_ms, 0);
    assert_int_equal(weir__listener_counts(e.listener).refused, 5);
    close(fd);
    echo_wait(&e, 1, 1);
    echo_stop(&e);
}

/* ---- when it looks ---- */

static struct identity self;

static struct weir__tls_context *make_tls(void)
{
    struct weir__tls_options o;
    struct weir__tls_context *tls;

    identity_make(&self, "self", "DNS:localhost", NULL, 1);
    o = (struct weir__tls_options){.certificate = pem_bytes(self.certificate_pem),
                                   .key = pem_bytes(self.key_pem)};
    assert_int_equal(weir__tls_context_new(&tls, &o, NULL), 0);
    return tls;
}

/* Two come, and there is room for one handshake: the listener waits for its end. */
static void fill_handshakes(struct echo *e, int fd[2])
{
    struct hold h;

    hold(&h, e);
    for (int i = 0; i < 2; i++) fd[i] = echo_client(e);
    let_go(&h);
    listener_wait(e, 1, 1);
    pass(e);
    assert_int_equal(count_starts(), 1);
}

#define HANDSHAKES 256 /* when nobody says how many */

static void limits_have_their_usual_values(void **state)
{
    struct weir__tls_context *tls = make_tls();
    struct echo e = {.room_max = 0};
    int fd[HANDSHAKES + 1];

    (void)state;
    start(&e, (struct weir__listener_options){.tls = tls});
    assert_int_equal(backlog_given, 1024);
    for (int i = 0; i <= HANDSHAKES; i++) fd[i] = echo_client(&e);
    listener_wait(&e, HANDSHAKES, HANDSHAKES);
    pass(&e);
    assert_int_equal(weir__listener_counts(e.listener).accepted, HANDSHAKES);
    for (int i = 0; i <= HANDSHAKES; i++) close(fd[i]);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
    start(&e, (struct weir__listener_options){.backlog = 7});
    assert_int_equal(backlog_given, 7);
    echo_stop(&e);
    weir__tls_context_free(tls);
    identity_free(&self);
}

static void the_end_of_a_handshake_lets_it_look_again(void **state)
{
    struct weir__tls_context *tls = make_tls();
    struct echo e = {.room_max = 0};
    int fd[2];

    (void)state;
    start(&e, (struct weir__listener_options){.tls = tls, .handshakes_max = 1});
    fill_handshakes(&e, fd);
    close(fd[0]);
    while (weir__listener_counts(e.listener).accepted < 2) sched_yield();
    assert_int_equal(count_starts(), 2);
    close(fd[1]);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
    weir__tls_context_free(tls);
    identity_free(&self);
}

static void closed_it_looks_no_more(void **state)
{
    struct weir__tls_context *tls = make_tls();
    struct echo e = {.room_max = 0};
    int fd[2];

    (void)state;
    start(&e, (struct weir__listener_options){.tls = tls, .handshakes_max = 1});
    fill_handshakes(&e, fd);
    weir__listener_close(e.listener);
    pass(&e);
    close(fd[0]);
    listener_wait(&e, 0, 0);
    pass(&e);
    assert_int_equal(count_starts(), 1);
    assert_int_equal(weir__listener_counts(e.listener).accepted, 1);
    close(fd[1]);
    echo_stop(&e);
    weir__tls_context_free(tls);
    identity_free(&self);
}

/* It begins again when the pause is over, and not before; closed meanwhile, it leaves no timer. */
static void a_pause_ends_with_the_listener(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct echo e = {.room_max = 0};
        char byte = 'p';
        int fd;
        start(&e, (struct weir__listener_options){.backlog = 10});
        atomic_store(&denied, 0);
        atomic_store(&no_memory, true);
        fd = echo_client(&e);
        while (atomic_load(&denied) == 0) sched_yield();
        pass(&e);
        if (ends) weir__listener_close(e.listener);
        atomic_store(&no_memory, false);
        if (ends) {
            pass(&e);
            assert_int_equal(weir__timers_next(&weir__loops_at(e.loops, 0)->timers), INT64_MAX);
        } else {
            client_send(fd, &byte, 1);
            assert_int_equal(client_receive(fd, &byte, 1), 1);
            assert_int_equal(count_starts(), 1 + atomic_load(&denied));
        }
        close(fd);
        if (!ends) echo_wait(&e, 1, 1);
        echo_stop(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_told_once_in_a_while),
        cmocka_unit_test(limits_have_their_usual_values),
        cmocka_unit_test(the_end_of_a_handshake_lets_it_look_again),
        cmocka_unit_test(closed_it_looks_no_more),
        cmocka_unit_test(a_pause_ends_with_the_listener),
        cmocka_unit_test(no_descriptor_is_left),
    };

    weir__mutex_init(&lock);
    note_descriptors();
    return cmocka_run_group_tests_name("listening", tests, NULL, NULL);
}
