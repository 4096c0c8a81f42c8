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

/* A server whose stop gives its clients no time; whether it waits for the disk, and whether it has
 * come beyond that: to the last answers, or without them to the end of the loops. */
static struct {
    _Atomic(struct weir__server *) server;
    atomic_bool waits, beyond;
} ending;

void __real_weir__loops_free(struct weir__loops *);
void __wrap_weir__loops_free(struct weir__loops *);

void __wrap_weir__loops_free(struct weir__loops *all)
{
    atomic_store(&ending.beyond, true);
    __real_weir__loops_free(all);
}

bool __real_weir__cond_wait(struct weir__cond *, struct weir__mutex *, int64_t);
bool __wrap_weir__cond_wait(struct weir__cond *, struct weir__mutex *, int64_t);

bool __wrap_weir__cond_wait(struct weir__cond *c, struct weir__mutex *m, int64_t deadline_ns)
{
    struct weir__server *v = atomic_load(&ending.server);

    if (v && c == &v->changed) {
        if (deadline_ns != INT64_MAX) return false;
        if (atomic_load(&v->sealed))
            atomic_store(atomic_load(&v->unflushed) > 0 ? &ending.waits : &ending.beyond, true);
    }
    return __real_weir__cond_wait(c, m, deadline_ns);
}

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

/* Stops a server whose clients have no time; returns when it gives the logs nothing more, and waits
 * for its workers. */
static struct weir__thread begin_end(struct scene *s)
{
    struct weir__thread thread;

    atomic_store(&ending.waits, false);
    atomic_store(&ending.beyond, false);
    atomic_store(&ending.server, s->server);
    thread = begin_stop(s);
    while (!atomic_load(&s->server->sealed)) poll(NULL, 0, 1);
    return thread;
}

static void join_end(struct scene *s, struct weir__thread *stopping)
{
    weir__thread_join(stopping);
    atomic_store(&ending.server, NULL);
    s->server = NULL;
}

/* How many events the hub has. */
static uint64_t count_events(struct scene *s)
{
    struct weir__hub_stats stats;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->ns, "eh1", &hub, NULL), 0);
    weir__hub_stats(hub, &stats);
    weir__hub_release(hub);
    return stats.log.events;
}

static void what_still_waits_for_a_worker_at_the_end_is_refused(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;
    struct holding h;

    ask_bodies(s, &h);
    stopping = begin_end(s);
    let_worker_go(&h);
    expect_last_words(s, STOPPING);
    join_end(s, &stopping);
    assert_int_equal(count_events(s), 0);
}

/* The loop finds the answer together with whatever it is to do at the end. */
static void the_last_answers_are_sent(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;
    struct holding h, busy;

    ask_bodies(s, &h);
    stopping = begin_end(s);
    prepare(&busy);
    assert_int_equal(weir__loop_post(weir__loops_at(s->server->loops, 0), &busy.hold), 0);
    let_worker_go(&h);
    while (!atomic_load(&ending.beyond)) poll(NULL, 0, 1);
    let_worker_go(&busy);
    expect_last_words(s, STOPPING);
    join_end(s, &stopping);
}

static void what_still_waits_to_be_changed_at_the_end_stays(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;
    struct holding h;

    hold(&h, s->server->worker);
    ask_for(s, "DELETE /$weir/hubs/eh1" HOST TOKEN "\r\n");
    stopping = begin_end(s);
    let_worker_go(&h);
    expect_last_words(s, "\"detail\":\"The server is stopping.\"");
    join_end(s, &stopping);
    assert_int_equal(count_events(s), 0); /* it is there */
}

/* Its last byte comes to the loop when the server waits for its workers. */
static void what_comes_at_the_end_is_refused(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;
    struct holding h;

    hold(&h, s->server->worker);
    say(s, "POST /eh1/messages" HOST TOKEN "Content-Length: 5\r\n\r\neven");
    do {
        look_at_visit(s);
    } while (!atomic_load(&s->asked));
    stopping = begin_end(s);
    say(s, "t");
    assert_int_equal(strncmp(hear(s, false), "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
    assert_non_null(strstr(s->heard, STOPPING));
    let_worker_go(&h);
    join_end(s, &stopping);
    assert_int_equal(count_events(s), 0);
}

/* A worker that has just given something to a log, which takes its time. */
struct gift {
    struct holding holding;
    struct weir__post give, done;
    struct weir__server *server;
    bool in_time; /* it was done before the loops were told to send the last answers */
};

static void give(void *arg)
{
    struct gift *g = arg;

    hold_worker(&g->holding);
    atomic_fetch_add(&g->server->unflushed, 1);
}

/* On the loop. */
static void be_done(void *arg)
{
    struct gift *g = arg;
    struct weir__server *v = g->server;

    g->in_time = v->loops_sent == 0 && !v->at[0].sent.in;
    weir__mutex_lock(&v->lock);
    atomic_fetch_sub(&v->unflushed, 1);
    weir__cond_broadcast(&v->changed);
    weir__mutex_unlock(&v->lock);
}

static void what_a_worker_gave_to_a_log_at_the_end_is_waited_for(void **state)
{
    struct scene *s = *state;
    struct gift g = {.server = s->server};
    struct weir__loop *loop = weir__loops_at(s->server->loops, 0);
    struct weir__thread stopping;

    prepare(&g.holding);
    weir__post_init(&g.give, give, &g);
    weir__post_init(&g.done, be_done, &g);
    assert_int_equal(weir__worker_post(s->server->bodies, &g.give), 0);
    stopping = begin_end(s);
    let_worker_go(&g.holding);
    while (!atomic_load(&ending.waits)) poll(NULL, 0, 1);
    assert_int_equal(weir__loop_post(loop, &g.done), 0);
    join_end(s, &stopping);
    assert_true(g.in_time);
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
        TEST(what_still_waits_for_a_worker_at_the_end_is_refused),
        TEST(the_last_answers_are_sent),
        TEST(what_still_waits_to_be_changed_at_the_end_stays),
        TEST(what_comes_at_the_end_is_refused),
        TEST(what_a_worker_gave_to_a_log_at_the_end_is_waited_for),
        TEST(a_server_that_stops_waits_for_no_busy_log),
        TEST(who_asks_for_nothing_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("visit", tests, NULL, NULL);
}
