/* flow_test.c - how much a connection moves in one turn of its loop, to the byte, and how much it
 * drops after its own end. The socket under test has as much to give, and takes as much, as the test
 * says: a kernel's buffers end too early. */
#define _GNU_SOURCE
#include <openssl/ssl.h>
#include <poll.h>

#include "echo.h"

#include "certificate.h"

#define SHARE WEIR__TCP_BYTES_PER_TURN
#define LITTLE 100u
#define ROOM 60000u /* so that a share is not made of whole ones */
#define TURNS_MAX 16

ssize_t __real_recv(int fd, void *to, size_t room, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t room, int flags);
ssize_t __real_send(int fd, const void *at, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *at, size_t len, int flags);

static struct {
    size_t to_give; /* bytes that the socket has beside its own */
    size_t to_say;  /* of our output */
    bool patient;   /* the socket waits for its peer until a share has come */
    bool ends;      /* with the first byte that comes */
    bool full;      /* the socket takes nothing */
    bool no_room;   /* the owner takes nothing */
    bool resumes;   /* it stops reading and goes on when it has had its share */
    bool resumed;
    bool owed;    /* the kernel was to acknowledge what came first */
    bool pressed; /* it was asked again and again in one turn */
    bool stays;   /* the owner does not end when its peer does */
    uint64_t asked_turn;
    unsigned asked; /* in that turn */

    struct weir__tcp *tcp;
    uint64_t turn; /* of the loop, the last one in which something moved */
    size_t moved[TURNS_MAX];
    unsigned turns;
    uint8_t room[ROOM];

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    size_t given, received, sent;
    size_t ended;        /* how often the owner was told so */
    size_t asked_behind; /* how often the owner was asked for room when it had resumed */
    bool closed;
    struct weir_error why;
} w;

static atomic_int ours = -1; /* the socket under test */
static atomic_uint rooms;    /* how often its owner was asked for some */

static bool is_ours(int fd)
{
    return fd == ours;
}

ssize_t __wrap_recv(int fd, void *to, size_t room, int flags)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t n;

    if (is_ours(fd) && w.to_give > w.given) {
        size_t left = w.to_give - w.given;
        n = (ssize_t)(room < left ? room : left);
        memset(to, 'x', (size_t)n);
        w.given += (size_t)n;
        return n;
    }
    while ((n = __real_recv(fd, to, room, flags)) < 0 && errno == EAGAIN && is_ours(fd) &&
           w.patient && w.received < SHARE)
        poll(&ready, 1, PATIENCE_MS);
    return n;
}

/* A socket that takes nothing, unless it is pressed. */
static bool is_full(void)
{
    if (w.asked_turn != w.tcp->loop->turn) w.asked = 0;
    w.asked_turn = w.tcp->loop->turn;
    if (++w.asked > 9) w.pressed = true;
    return !w.pressed;
}

ssize_t __wrap_send(int fd, const void *at, size_t len, int flags)
{
    if (is_ours(fd) && w.full && is_full()) {
        errno = EAGAIN;
        return -1;
    }
    if (is_ours(fd) && w.to_say && !w.tcp->tls) return (ssize_t)len;
    return __real_send(fd, at, len, flags);
}

static void count(size_t bytes)
{
    if (w.turns == 0 || w.turn != w.tcp->loop->turn) w.turns++;
    w.turn = w.tcp->loop->turn;
    if (w.turns <= TURNS_MAX) w.moved[w.turns - 1] += bytes;
}

static uint8_t *give_room(void *owner, size_t *room)
{
    (void)owner;
    *room = w.no_room ? 0 : w.patient ? 1000 : ROOM;
    atomic_fetch_add(&rooms, 1);
    if (!w.resumed) return w.room;
    weir__mutex_lock(&w.lock);
    w.asked_behind++;
    weir__cond_broadcast(&w.changed);
    weir__mutex_unlock(&w.lock);
    return w.room;
}

static void on_received(void *owner, size_t bytes)
{
    (void)owner;
    if (w.to_say)
        weir__tcp_flush(w.tcp);
    else
        count(bytes);
    if (w.ends) weir__tcp_end(w.tcp);
    if (w.received == 0) w.owed = w.tcp->owes_ack;
    if (w.resumes && !w.tcp->may_read) {
        w.resumed = true;
        weir__tcp_pause(w.tcp);
        weir__tcp_resume(w.tcp);
    }
    weir__mutex_lock(&w.lock);
    w.received += bytes;
    weir__cond_broadcast(&w.changed);
    weir__mutex_unlock(&w.lock);
}

static void on_ended(void *owner)
{
    (void)owner;
    weir__mutex_lock(&w.lock);
    w.ended++;
    weir__cond_broadcast(&w.changed);
    weir__mutex_unlock(&w.lock);
    if (!w.stays) weir__tcp_end(w.tcp);
}

static struct weir__bytes give_output(void *owner)
{
    static uint8_t bytes[4 * SHARE];

    (void)owner;
    return weir__bytes_of(bytes, w.to_say - w.sent);
}

static void on_sent(void *owner, size_t bytes)
{
    (void)owner;
    count(bytes);
    weir__mutex_lock(&w.lock);
    w.sent += bytes;
    weir__cond_broadcast(&w.changed);
    weir__mutex_unlock(&w.lock);
}

static void on_closed(void *owner, const struct weir_error *why)
{
    (void)owner;
    weir__mutex_lock(&w.lock);
    ours = -1;
    w.closed = true;
    w.why = *why;
    weir__cond_broadcast(&w.changed);
    weir__mutex_unlock(&w.lock);
}

static const struct weir__tcp_calls calls = {echo_opened, give_room, on_received, on_ended,
                                             give_output, on_sent,   on_closed};

static bool accept_one(void *user, struct weir__tcp *tcp)
{
    (void)user;
    w.tcp = tcp;
    ours = tcp->fd;
    weir__tcp_adopt(tcp, &calls, &w);
    return true;
}

struct server {
    struct weir__loops *loops;
    struct weir__listener *listener;
};

/* A server with one connection, which has sent one byte when there is no TLS. */
static int start(struct server *s, struct weir__tls_context *tls)
{
    struct weir__listener_options o = {.address = "127.0.0.1:0",
                                       .accepted = accept_one,
                                       .tls = tls};
    int fd;

    weir__mutex_init(&w.lock);
    weir__cond_init(&w.changed);
    assert_int_equal(weir__loops_start(&s->loops, &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    assert_int_equal(weir__listener_open(&s->listener, s->loops, &o, NULL), 0);
    assert_int_equal(weir__listener_begin(s->listener, NULL), 0);
    fd = client_connect(weir__listener_port(s->listener));
    if (!tls) client_send(fd, "x", 1);
    return fd;
}

static void stop(struct server *s, int fd)
{
    close(fd);
    weir__listener_close(s->listener);
    weir__loops_stop(s->loops);
    weir__listener_free(s->listener);
    weir__loops_free(s->loops);
    weir__cond_fini(&w.changed);
    weir__mutex_fini(&w.lock);
}

static void wait_for(const size_t *what, size_t bytes)
{
    weir__mutex_lock(&w.lock);
    while (*what < bytes)
        assert_true(weir__cond_wait(&w.changed, &w.lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&w.lock);
}

static void clear(void)
{
    memset(&w, 0, sizeof w);
}

static void a_turn_reads_a_share(void **state)
{
    struct server s;
    int fd;

    (void)state;
    clear();
    w.to_give = 3 * SHARE;
    fd = start(&s, NULL);
    wait_for(&w.received, 3 * SHARE + 1); /* the socket's own byte is the last */
    stop(&s, fd);
    for (int i = 0; i < 3; i++) assert_int_equal(w.moved[i], SHARE);
    assert_int_equal(w.moved[3], 1);
}

static void a_turn_writes_a_share(void **state)
{
    struct server s;
    int fd;

    (void)state;
    clear();
    w.to_say = 3 * SHARE + LITTLE;
    fd = start(&s, NULL);
    wait_for(&w.sent, w.to_say);
    stop(&s, fd);
    for (int i = 0; i < 3; i++) assert_int_equal(w.moved[i], SHARE);
    assert_int_equal(w.moved[3], LITTLE);
}

#define LONG_AGO_MS (-INT64_C(1000000000000))
#define LATER_MS INT64_C(1000000000000)

/* On the loop: what a visit makes of a stall that began at stall_ms. */
struct visit {
    bool full;
    int64_t stall_ms, before_ms, after_ms, since_ms, now_ms;
    struct weir__post begin, end;
    atomic_bool done;
};

static void end_visit(void *arg)
{
    struct visit *v = arg;

    v->after_ms = w.tcp->stall_ms;
    v->now_ms = weir__loop_now_ms(w.tcp->loop);
    atomic_store(&v->done, true);
}

static void begin_visit(void *arg)
{
    struct visit *v = arg;

    v->before_ms = w.tcp->stall_ms;
    v->since_ms = weir__loop_now_ms(w.tcp->loop);
    w.tcp->stall_ms = v->stall_ms;
    w.to_say = LITTLE;
    w.full = v->full;
    weir__tcp_flush(w.tcp);
    weir__loop_defer(w.tcp->loop, &v->end); /* behind that */
}

static struct visit visit(struct server *s, bool full, int64_t stall_ms)
{
    struct visit v = {.full = full, .stall_ms = stall_ms};

    weir__post_init(&v.begin, begin_visit, &v);
    weir__post_init(&v.end, end_visit, &v);
    assert_int_equal(weir__loop_post(weir__loops_at(s->loops, 0), &v.begin), 0);
    while (!atomic_load(&v.done)) sched_yield();
    return v;
}

/* A peer's time to read begins when the socket first takes nothing. Another try does not restart it; a
 * byte that goes does. */
static void a_stall_is_counted_from_its_beginning(void **state)
{
    struct server s;
    struct visit v;
    int64_t began_ms;
    int fd;

    (void)state;
    clear();
    fd = start(&s, NULL);
    wait_for(&w.received, 1);
    v = visit(&s, true, LONG_AGO_MS);
    assert_true(v.since_ms <= v.after_ms && v.after_ms <= v.now_ms);
    began_ms = v.after_ms;
    v = visit(&s, true, LATER_MS);
    assert_int_equal(v.before_ms, began_ms);
    assert_int_equal(v.after_ms, LATER_MS);
    v = visit(&s, false, LATER_MS);
    assert_true(v.since_ms <= v.after_ms && v.after_ms <= v.now_ms);
    wait_for(&w.sent, LITTLE);
    stop(&s, fd);
}

/* Small messages are acknowledged at once: 128 bytes are one. */
static void few_bytes_are_acknowledged(void **state)
{
    (void)state;
    for (size_t len = 127; len < 131; len++) {
        struct server s;
        int fd;
        clear();
        w.to_give = len;
        fd = start(&s, NULL);
        wait_for(&w.received, len);
        stop(&s, fd);
        assert_int_equal(w.owed, len <= 128);
    }
}

/* It is asked again when it says so, however often the loop turns. */
static void an_owner_without_room_is_asked_once(void **state)
{
    struct server s;
    int fd;

    (void)state;
    clear();
    atomic_store(&rooms, 0);
    w.no_room = true;
    fd = start(&s, NULL);
    while (atomic_load(&rooms) == 0) sched_yield();
    for (int i = 0; i < 20; i++) visit(&s, true, LATER_MS);
    stop(&s, fd);
    assert_int_equal(atomic_load(&rooms), 1);
}

/* The end of a peer is told once, however often the loop turns; what is to be said goes out after it. */
static void an_end_is_told_once(void **state)
{
    struct server s;
    int fd;

    (void)state;
    clear();
    w.stays = true;
    fd = start(&s, NULL);
    shutdown(fd, SHUT_WR);
    wait_for(&w.ended, 1);
    for (int i = 0; i < 5; i++) visit(&s, true, LATER_MS);
    visit(&s, false, LATER_MS);
    wait_for(&w.sent, LITTLE);
    stop(&s, fd);
    assert_int_equal(w.ended, 1);
}

static void give_share(void *arg)
{
    (void)arg;
    w.to_give = SHARE;
    weir__tcp_pause(w.tcp);
    weir__tcp_resume(w.tcp);
}

/* It may have put bytes by that it takes now, and the socket has no more that would call it. */
static void an_owner_that_resumes_is_asked_in_the_next_turn(void **state)
{
    struct weir__post give;
    struct server s;
    int fd;

    (void)state;
    clear();
    w.resumes = true;
    fd = start(&s, NULL);
    wait_for(&w.received, 1); /* the socket's own byte */
    weir__post_init(&give, give_share, NULL);
    assert_int_equal(weir__loop_post(weir__loops_at(s.loops, 0), &give), 0);
    wait_for(&w.asked_behind, 1);
    stop(&s, fd);
}

/* A peer that goes on sending to one that has ended is not read for ever. */
static void what_comes_after_the_end_has_a_limit(void **state)
{
    struct server s;
    int fd;

    (void)state;
    clear();
    w.to_give = (size_t)64 << 20;
    w.ends = true;
    fd = start(&s, NULL);
    weir__mutex_lock(&w.lock);
    while (!w.closed)
        assert_true(weir__cond_wait(&w.changed, &w.lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&w.lock);
    stop(&s, fd);
    assert_int_equal(w.why.code, 0);
    assert_int_equal(w.received, ROOM);
    assert_int_equal(w.given - w.received, WEIR__TCP_DISCARD_MAX);
}

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

static SSL *greet(SSL_CTX *context, int fd)
{
    SSL *ssl = SSL_new(context);

    SSL_set_fd(ssl, fd);
    assert_int_equal(SSL_connect(ssl), 1);
    return ssl;
}

/* A share that ends inside a record: the rest of it is in memory, and no socket tells of it. */
static void what_tls_holds_is_read_in_the_next_turn(void **state)
{
    static uint8_t much[SHARE];
    struct weir__tls_context *tls;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct server s;
    SSL *ssl;
    int fd;

    (void)state;
    tls = make_tls();
    clear();
    w.patient = true;
    fd = start(&s, tls);
    ssl = greet(context, fd);
    assert_int_equal(SSL_write(ssl, much, LITTLE), LITTLE);
    assert_int_equal(SSL_write(ssl, much, SHARE), SHARE);
    wait_for(&w.received, SHARE + LITTLE);
    SSL_free(ssl);
    stop(&s, fd);
    SSL_CTX_free(context);
    weir__tls_context_free(tls);
    identity_free(&self);
    assert_int_equal(w.moved[w.turns - 1], LITTLE);
    assert_int_equal(w.moved[w.turns - 2], SHARE);
}

/* Nor is a socket that takes nothing asked again before it says that it does. */
static void tls_waits_for_its_socket(void **state)
{
    struct weir__tls_context *tls = make_tls();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    uint8_t got[LITTLE];
    struct server s;
    SSL *ssl;
    int fd;

    (void)state;
    clear();
    fd = start(&s, tls);
    ssl = greet(context, fd);
    assert_int_equal(SSL_write(ssl, "x", 1), 1);
    wait_for(&w.received, 1);
    visit(&s, true, LONG_AGO_MS);
    assert_int_equal(visit(&s, true, LATER_MS).after_ms, LATER_MS);
    visit(&s, false, LATER_MS);
    wait_for(&w.sent, LITTLE);
    assert_int_equal(SSL_read(ssl, got, sizeof got), LITTLE);
    SSL_free(ssl);
    stop(&s, fd);
    SSL_CTX_free(context);
    weir__tls_context_free(tls);
    identity_free(&self);
    assert_false(w.pressed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_reads_a_share),
        cmocka_unit_test(a_turn_writes_a_share),
        cmocka_unit_test(a_stall_is_counted_from_its_beginning),
        cmocka_unit_test(few_bytes_are_acknowledged),
        cmocka_unit_test(an_owner_without_room_is_asked_once),
        cmocka_unit_test(an_end_is_told_once),
        cmocka_unit_test(an_owner_that_resumes_is_asked_in_the_next_turn),
        cmocka_unit_test(what_comes_after_the_end_has_a_limit),
        cmocka_unit_test(what_tls_holds_is_read_in_the_next_turn),
        cmocka_unit_test(tls_waits_for_its_socket),
    };

    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
