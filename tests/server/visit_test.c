/* visit_test.c - a connection of HTTP whose request has to wait, for a log or for a worker, and a
 * client or a server that goes meanwhile. */
#include "server/visitor.h"

#define POST "POST /eh1/messages" HOST TOKEN "Content-Length: 5\r\n\r\nevent"
#define HEALTH "GET /health" HOST "\r\n"
#define WEBSOCKET                                                                                  \
    "GET /$servicebus/websocket" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n"              \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"                 \
    "Sec-WebSocket-Protocol: AMQPWSB10\r\n\r\n"
#define BUSY_MS WEIR__SERVER_BUSY_MS
#define RETRY_MS WEIR__SERVER_RETRY_MS
#define LARGE 8192 /* bytes of a body that the loop does not read */
#define STOPPING "<Detail>The server is stopping.</Detail>"
#define TOO_MUCH (WEIR__SERVER_UNFLUSHED_ALL_MAX + 1)

static void leave(int fd)
{
    struct linger at_once = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* ---- a busy log ---- */

/* As often as there is time for, and from the start with the next request. */
static void a_busy_log_is_asked_again(void **state)
{
    struct scene *s = *state;

    atomic_store(&s->server->unflushed, TOO_MUCH);
    for (int i = 0; i < 2; i++) {
        hurry_through(RETRY_MS);
        say(s, POST);
        assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
        assert_non_null(strstr(s->heard, "\r\nRetry-After: 4\r\n"));
        assert_int_equal(atomic_load(&hurry.count), BUSY_MS / RETRY_MS);
    }
    hurry_watch(RETRY_MS);
    say(s, POST);
    hurry_wait(2);
    atomic_store(&s->server->unflushed, TOO_MUCH - 1);
    assert_string_equal(hear(s, false), POSTED);
    atomic_fetch_sub(&s->server->unflushed, TOO_MUCH - 1);
}

static void who_leaves_a_busy_log_is_forgotten(void **state)
{
    struct scene *s = *state;

    atomic_store(&s->server->unflushed, TOO_MUCH);
    hurry_watch(RETRY_MS);
    say(s, POST);
    hurry_wait(1);
    leave(s->fd);
    s->fd = -1;
    expect_visits(s, 0);
    atomic_store(&s->server->unflushed, 0);
}

/* ---- a worker that takes its time ---- */

struct holding {
    struct weir__mutex lock;
    struct weir__cond changed;
    struct weir__post hold;
    bool let_go;
};

static void hold_worker(void *arg)
{
    struct holding *h = arg;

    weir__mutex_lock(&h->lock);
    while (!h->let_go) weir__cond_wait(&h->changed, &h->lock, INT64_MAX);
    weir__mutex_unlock(&h->lock);
}

static void prepare(struct holding *h)
{
    memset(h, 0, sizeof *h);
    weir__mutex_init(&h->lock);
    weir__cond_init(&h->changed);
    weir__post_init(&h->hold, hold_worker, h);
}

static void hold(struct holding *h, struct weir__worker *worker)
{
    prepare(h);
    assert_int_equal(weir__worker_post(worker, &h->hold), 0);
}

/* Asks for this, and returns when a worker, which does nothing, has it. */
static void ask_for(struct scene *s, const char *request)
{
    say(s, request);
    do {
        look_at_visit(s);
    } while (!atomic_load(&s->away));
}

static void ask_worker(struct scene *s, struct holding *h)
{
    hold(h, s->server->worker);
    ask_for(s, HEALTH);
}

/* An event of so many bytes. */
static const char *post_of(int bytes)
{
    static char text[2 * LARGE];

    snprintf(text, sizeof text, "%sContent-Length: %d\r\n\r\n%0*d", "POST /eh1/messages" HOST TOKEN,
             bytes, bytes, 1);
    return text;
}

static void ask_bodies(struct scene *s, struct holding *h)
{
    hold(h, s->server->bodies);
    ask_for(s, post_of(LARGE));
}

static void let_worker_go(struct holding *h)
{
    weir__mutex_lock(&h->lock);
    h->let_go = true;
    weir__cond_broadcast(&h->changed);
    weir__mutex_unlock(&h->lock);
}

static void who_leaves_the_worker_is_forgotten(void **state)
{
    struct scene *s = *state;
    struct holding h;
    int gone;

    ask_worker(s, &h);
    gone = s->fd;
    dial(s); /* it is accepted behind the other's end, which the loop sees first */
    leave(gone);
    say(s, "GET /livez" HOST "\r\n");
    assert_string_equal(hear(s, false), ALIVE);
    let_worker_go(&h);
    expect_visits(s, 1);
}

/* What the client says at once comes while the request in front of the WebSocket's is away. */
static void a_websocket_behind_a_request_is_read(void **state)
{
    static const char hello[] = {'\x82',  '\x88',    'k',       'e',       'y',
                                 's',     'A' ^ 'k', 'M' ^ 'e', 'Q' ^ 'y', 'P' ^ 's',
                                 3 ^ 'k', 1 ^ 'e',   'y',       's',       '\0'};
    struct scene *s = *state;
    struct holding h;
    char got[10];

    hold(&h, s->server->worker);
    ask_for(s, HEALTH WEBSOCKET);
    say(s, hello);
    do {
        look_at_visit(s);
    } while (!atomic_load(&s->held));
    let_worker_go(&h);
    assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_int_equal(strncmp(hear(s, true), "HTTP/1.1 101 ", 13), 0);
    assert_int_equal(patience_recv_all(s->fd, got, sizeof got), sizeof got);
    assert_memory_equal(got + 2, "AMQP\3\1\0\0", 8);
}

/* Its body is read by a worker; a smaller one is read by the loop, though the worker has no time. */
static void a_large_event_is_with_a_worker(void **state)
{
    struct scene *s = *state;
    struct holding h;
    int first;

    ask_bodies(s, &h);
    first = s->fd;
    dial(s);
    say(s, post_of(LARGE - 1));
    assert_string_equal(hear(s, false), POSTED);
    let_worker_go(&h);
    close(s->fd);
    s->fd = first;
    assert_string_equal(hear(s, false), POSTED);
    say(s, POST);
    assert_string_equal(hear(s, false), POSTED);
}

static void large_events_do_not_delay_others(void **state)
{
    static const char *const others[] = {HEALTH, "GET /metrics" HOST "\r\n"};
    struct scene *s = *state;
    struct holding h;
    int first;

    ask_bodies(s, &h);
    first = s->fd;
    dial(s);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        say(s, others[i]);
        assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 200 OK\r\n", 17), 0);
    }
    let_worker_go(&h);
    close(s->fd);
    s->fd = first;
    assert_string_equal(hear(s, false), POSTED);
}

static void a_busy_log_is_asked_again_for_a_large_event(void **state)
{
    struct scene *s = *state;

    atomic_store(&s->server->unflushed, TOO_MUCH);
    hurry_through(RETRY_MS);
    say(s, post_of(LARGE));
    assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
    assert_int_equal(atomic_load(&hurry.count), BUSY_MS / RETRY_MS);
    hurry_watch(RETRY_MS);
    say(s, post_of(LARGE));
    hurry_wait(2);
    atomic_store(&s->server->unflushed, TOO_MUCH - 1);
    assert_string_equal(hear(s, false), POSTED);
    atomic_fetch_sub(&s->server->unflushed, TOO_MUCH - 1);
}

/* The log turns out to be busy when nobody waits for it any more: it is not asked again. */
static void who_leaves_the_worker_with_an_event_is_forgotten(void **state)
{
    struct scene *s = *state;
    struct holding h;
    int gone;

    hurry_watch(RETRY_MS);
    for (int busy = 0; busy < 2; busy++) {
        atomic_store(&s->server->unflushed, busy ? TOO_MUCH : 0);
        ask_bodies(s, &h);
        gone = s->fd;
        dial(s);
        leave(gone);
        say(s, "GET /livez" HOST "\r\n");
        assert_string_equal(hear(s, false), ALIVE);
        let_worker_go(&h);
        expect_visits(s, 1);
        if (!busy)
            while (atomic_load(&s->server->unflushed)) poll(NULL, 0, 1);
    }
    assert_int_equal(atomic_load(&hurry.count), 0);
    atomic_store(&s->server->unflushed, 0);
}

static void a_worker_that_has_stopped_answers_nobody(void **state)
{
    struct scene *s = *state;

    weir__worker_stop(s->server->worker);
    weir__worker_stop(s->server->bodies);
    for (int i = 0; i < 2; i++) {
        say(s, i ? post_of(LARGE) : HEALTH);
        assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
        assert_non_null(strstr(s->heard, STOPPING));
        assert_non_null(strstr(s->heard, "\r\nRetry-After: 4\r\n"));
    }
}

/* ---- a server that stops ---- */

static void *stop(void *server)
{
    weir__server_stop(server);
    return NULL;
}

/* Returns when the connections know of it. */
static struct weir__thread begin_stop(struct scene *s)
{
    struct weir__server *v = s->server;
    struct weir__thread thread;

    assert_int_equal(weir__thread_start(&thread, "stop", stop, v, NULL), 0);
    weir__mutex_lock(&v->lock);
    while (v->loops_stopping == 0) weir__cond_wait(&v->changed, &v->lock, INT64_MAX);
    weir__mutex_unlock(&v->lock);
    return thread;
}

static void expect_last_words(struct scene *s, const char *text)
{
    char byte;

    assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
    assert_non_null(strstr(s->heard, "\r\nConnection: close\r\n"));
    if (!strstr(s->heard, text)) fail_msg("%s", s->heard);
    assert_int_equal(patience_recv(s->fd, &byte, 1), 0);
    leave(s->fd); /* for which the server waits */
    s->fd = -1;
}

static void what_the_worker_has_is_answered_before_the_end(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;
    struct holding h;

    ask_worker(s, &h);
    stopping = begin_stop(s);
    let_worker_go(&h);
    expect_last_words(s, "\"message\":\"The server is stopping.\"");
    weir__thread_join(&stopping);
    s->server = NULL;
}

static void a_server_that_stops_waits_for_no_busy_log(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;

    atomic_store(&s->server->unflushed, TOO_MUCH);
    hurry_watch(RETRY_MS);
    say(s, POST);
    hurry_wait(1);
    stopping = begin_stop(s);
    expect_last_words(s, "<Code>503</Code>");
    weir__mutex_lock(&s->server->lock);
    atomic_store(&s->server->unflushed, 0);
    weir__cond_broadcast(&s->server->changed);
    weir__mutex_unlock(&s->server->lock);
    weir__thread_join(&stopping);
    s->server = NULL;
}

/* Those who come and go in whatever order, and one who stays and asks for nothing more. */
static void who_asks_for_nothing_is_not_waited_for(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;
    int64_t began;
    int fd[3];
    char byte;

    for (int i = 0; i < 3; i++) {
        if (i > 0) dial(s);
        fd[i] = s->fd;
        say(s, "GET /livez" HOST "\r\n");
        assert_string_equal(hear(s, false), ALIVE);
    }
    leave(fd[1]);
    expect_visits(s, 2);
    leave(fd[2]);
    expect_visits(s, 1);
    s->fd = fd[0];
    began = weir__mono_ns();
    stopping = begin_stop(s);
    assert_int_equal(patience_recv(s->fd, &byte, 1), 0);
    assert_true(weir__mono_ns() - began < INT64_C(1000000) * WEIR__SERVER_STOP_MS);
    leave(s->fd);
    s->fd = -1;
    weir__thread_join(&stopping);
    s->server = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_busy_log_is_asked_again),
        TEST(who_leaves_a_busy_log_is_forgotten),
        TEST(who_leaves_the_worker_is_forgotten),
        TEST(a_websocket_behind_a_request_is_read),
        TEST(a_large_event_is_with_a_worker),
        TEST(large_events_do_not_delay_others),
        TEST(a_busy_log_is_asked_again_for_a_large_event),
        TEST(who_leaves_the_worker_with_an_event_is_forgotten),
        TEST(a_worker_that_has_stopped_answers_nobody),
        TEST(what_the_worker_has_is_answered_before_the_end),
        TEST(a_server_that_stops_waits_for_no_busy_log),
        TEST(who_asks_for_nothing_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("visit", tests, NULL, NULL);
}
