/* connection_test.c - one connection of AMQP to a server with a clock of the test's: how long it is
 * waited for, when it is not read, and how it ends. */
#include "amqp/state.h"
#include "server/guest.h"

/* ---- the server's side ---- */

#define AS_IT_IS SIZE_MAX
#define FLOWS 500 /* their answers are more than a stranger's output holds */
#define MANY 256u
#define FRAME_MS 30000 /* from the first byte of a frame to its last */

static struct {
    struct weir__server *server;
    struct weir__post post;
    size_t unflushed; /* what it is to be */
    bool held, stopping, closing;
    bool part; /* the input holds one, of a frame */
    atomic_bool done;
} probe;

/* On the loop: visits the connection, which sets its timer again. */
static void touch_connection(void *arg)
{
    struct weir__connection *c = probe.server->at[0].connections;

    (void)arg;
    probe.held = c->held;
    probe.stopping = c->stopping;
    probe.closing = c->closing;
    probe.part = c->engine->in_head != c->engine->in_tail;
    if (probe.unflushed != AS_IT_IS) {
        c->unflushed = probe.unflushed;
        weir__loop_timer_stop(c->loop, &c->timer);
        weir__connection_visit(c);
    }
    atomic_store(&probe.done, true);
}

static void run_here(struct scene *s, void (*fn)(void *))
{
    probe.server = s->server;
    atomic_store(&probe.done, false);
    weir__post_init(&probe.post, fn, NULL);
    assert_int_equal(weir__loop_post(weir__loops_at(s->server->loops, 0), &probe.post), 0);
    for (int i = 0; !atomic_load(&probe.done); i++) {
        assert_true(i < 1000 * PATIENCE_S);
        poll(NULL, 0, 1);
    }
}

static void touch(struct scene *s, size_t unflushed)
{
    probe.unflushed = unflushed;
    run_here(s, touch_connection);
}

/* Messages have to wait while the test says so. */
static struct {
    atomic_bool hold;
    atomic_uint asked;
} turns;

bool __wrap_weir__turn_queue_wait(struct weir__connection *, size_t);

bool __wrap_weir__turn_queue_wait(struct weir__connection *c, size_t bytes)
{
    (void)c, (void)bytes;
    atomic_fetch_add(&turns.asked, 1);
    return atomic_load(&turns.hold);
}

static void expect_connections(struct scene *s, unsigned count)
{
    unsigned there = 0;

    for (int i = 0; there != count; i++) {
        assert_true(i < 1000 * PATIENCE_S);
        weir__mutex_lock(&s->server->lock);
        there = s->server->connections;
        weir__mutex_unlock(&s->server->lock);
        if (there != count) poll(NULL, 0, 1);
    }
}

/* Sends so many events at once, settled or not; they wait until the test lets them. */
static void send_waiting(struct scene *s, struct weir__amqp_link *link, unsigned count,
                         bool settled)
{
    static const char event[] = "\0\x53\x75\xa0\1x";

    atomic_store(&turns.hold, true);
    atomic_store(&turns.asked, 0);
    while (count--)
        assert_int_equal(weir__amqp_send(link, weir__bytes_of(event, 6), 0, settled, NULL), 0);
    speak(s);
    while (atomic_load(&turns.asked) == 0) poll(NULL, 0, 1);
}

/* The connection is looked after again in so many milliseconds. */
static void expect_pause(struct scene *s, int64_t ms)
{
    hurry_watch(ms);
    touch(s, 0);
    hurry_wait(1);
}

/* Lets so much time pass, in which nothing happens. */
static void pass_time(struct scene *s, int64_t ms)
{
    atomic_fetch_add(&hurry.ahead_ms, ms);
    touch(s, 0);
}

/* ---- how long it is waited for ---- */

static void a_token_has_its_time(void **state)
{
    struct scene *s = *state;

    come_in(s, ANONYMOUS);
    pass_time(s, WEIR__AMQP_REST_MS);
    expect_pause(s, WEIR__SERVER_TOKEN_MS - WEIR__AMQP_REST_MS);
    pass_time(s, WEIR__SERVER_TOKEN_MS - WEIR__AMQP_REST_MS - 1);
    begin();
    await(s, &client.begun);
    pass_time(s, 1);
    await(s, &client.closed);
    assert_string_equal(client.condition, "amqp:unauthorized-access");
    assert_string_equal(client.text,
                        "Unauthorized access. No token was presented within 20 seconds.");
}

/* A token that waits for a turn has come in time. */
static void a_token_that_waits_is_not_late(void **state)
{
    struct scene *s = *state;

    come_in(s, ANONYMOUS);
    send_waiting(s, attach_to(s, "l", "$cbs"), 1, true);
    pass_time(s, WEIR__SERVER_TOKEN_MS);
    for (int i = 0; i < 2; i++, touch(s, AS_IT_IS)) assert_false(probe.closing);
    atomic_store(&turns.hold, false); /* it is not one */
    await(s, &client.closed);
    assert_string_equal(client.condition, "amqp:unauthorized-access");
}

/* What lies behind a message that waits for a turn is not counted as the peer's delay, nor is the time
 * until then. */
static void a_peer_is_not_slow_while_we_are(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link;

    come_in(s, PLAIN);
    link = attach(s, "l");
    send_waiting(s, link, 2, false);
    pass_time(s, FRAME_MS + 1);
    pass_time(s, FRAME_MS + 1);
    atomic_store(&turns.hold, false);
    await(s, &client.settled);
    assert_true(client.accepted);
    assert_int_equal(client.closed, 0);
    while (atomic_load(&s->server->unflushed) > 0)
        poll(NULL, 0, 1); /* if the second was not with it */
}

/* Afterwards it is. */
static void a_peer_is_slow_when_nothing_waits(void **state)
{
    static const char half[] = "\0\0\0\x10\2\0";
    struct scene *s = *state;

    come_in(s, PLAIN);
    send_waiting(s, attach(s, "l"), 1, false);
    atomic_store(&turns.hold, false);
    await(s, &client.settled);
    assert_int_equal(send(s->fd, half, sizeof half - 1, MSG_NOSIGNAL), sizeof half - 1);
    do {
        touch(s, AS_IT_IS);
        poll(NULL, 0, 1);
    } while (!probe.part);
    pass_time(s, 0);
    pass_time(s, FRAME_MS);
    await(s, &client.closed);
    assert_string_equal(client.text, "a frame took longer than 30000 ms");
}

/* The wall's clock may jump, so it is looked at every hour. */
static void the_end_of_rights_is_waited_for(void **state)
{
    const int64_t grant_ms = WEIR__ACCESS_GRANT_MAX_S * 1000;
    struct scene *s = *state;

    come_in(s, PLAIN);
    attach(s, "l");
    pass_time(s, WEIR__AMQP_REST_MS);
    expect_pause(s, 3600001);
    atomic_store(&wall_ahead_ms, grant_ms - 3601000);
    expect_pause(s, 3600001);
    atomic_store(&wall_ahead_ms, grant_ms - 3599000);
    expect_pause(s, 3599001);
    atomic_store(&wall_ahead_ms, grant_ms - 1);
    expect_pause(s, 1001);
    assert_int_equal(client.detached, 0);
    atomic_store(&wall_ahead_ms, grant_ms);
    touch(s, 0);
    await(s, &client.detached);
    assert_string_equal(client.text, "ExpiredToken: The token of this link is expired.");
}

/* ---- when it is not read ---- */

/* What is with the log counts, its own and that of all others, to the byte. */
static void who_has_much_with_the_log_waits(void **state)
{
    static const struct {
        size_t own, all;
        bool waits;
    } rows[] = {
        {WEIR__SERVER_UNFLUSHED_MAX, 0, false},
        {WEIR__SERVER_UNFLUSHED_MAX + 1, 0, true},
        {WEIR__SERVER_UNFLUSHED_FAIR, WEIR__SERVER_UNFLUSHED_ALL_MAX + 1, false},
        {WEIR__SERVER_UNFLUSHED_FAIR + 1, WEIR__SERVER_UNFLUSHED_ALL_MAX, false},
        {WEIR__SERVER_UNFLUSHED_FAIR + 1, WEIR__SERVER_UNFLUSHED_ALL_MAX + 1, true},
    };
    struct scene *s = *state;

    come_in(s, PLAIN);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store(&s->server->unflushed, rows[i].all);
        touch(s, rows[i].own);
        begin();
        speak(s);
        for (probe.held = false; rows[i].waits && !probe.held;) touch(s, AS_IT_IS);
        if (rows[i].waits) touch(s, 0);
        await(s, &client.begun);
    }
    atomic_store(&s->server->unflushed, 0);
    touch(s, 0);
}

/* An event for which there is no place among those with the log has its turn a little later. */
static void an_event_without_a_place_comes_again(void **state)
{
    static const char event[] = "\0\x53\x75\xa0\1x";
    struct scene *s = *state;
    unsigned refused = 0, again = 0;
    bool failed = true;
    char name[16];

    come_in(s, PLAIN);
    for (uint64_t at = 1; failed; at++) {
        struct weir__amqp_link *link;
        snprintf(name, sizeof name, "%u", (unsigned)at);
        link = attach(s, name);
        hurry_watch(WEIR__SERVER_RETRY_MS);
        set_shortage(s, at);
        assert_int_equal(weir__amqp_send(link, weir__bytes_of(event, 6), 0, false, NULL), 0);
        await(s, &client.settled);
        failed = set_shortage(s, 0);
        refused += !client.accepted;
        if (atomic_load(&hurry.count) > 0) again += client.accepted;
    }
    assert_true(again >= 1);
    assert_true(refused >= 1);
}

static int64_t last_sequence(struct scene *s)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->ns, "eh1", &hub, NULL), 0);
    assert_int_equal(weir__hub_partition_properties(hub, 0, &p, NULL), 0);
    weir__hub_release(hub);
    return p.last_sequence;
}

static void end_peer(void *arg)
{
    (void)arg;
    weir__connection_calls.ended(probe.server->at[0].connections);
    atomic_store(&probe.done, true);
}

/* A message that waits for a turn is not lost when its peer ends meanwhile, as it may in a WebSocket: the
 * connection goes behind it. */
static void a_message_that_waits_is_taken_before_the_end(void **state)
{
    struct scene *s = *state;

    come_in(s, PLAIN);
    send_waiting(s, attach_to(s, "l", "eh1/Partitions/0"), 1, true);
    run_here(s, end_peer);
    touch(s, AS_IT_IS);
    assert_int_equal(last_sequence(s), -1);
    atomic_store(&turns.hold, false);
    while (listen_once(s)) continue;
    close(s->fd);
    s->fd = -1;
    expect_connections(s, 0);
    while (atomic_load(&s->server->unflushed) > 0) poll(NULL, 0, 1); /* until the log has told */
    assert_int_equal(last_sequence(s), 0);
}

/* Frames that want an answer wait while the output is full. They are taken when it was sent, though the
 * peer says no more and no time passes. */
static void what_waits_for_the_output_is_taken(void **state)
{
    static const uint8_t flow[] = {0x00, 0x00, 0x00, 0x1d, 0x02, 0x00, 0x00, 0x00, 0x00, 0x53,
                                   0x13, 0xc0, 0x10, 0x0a, 0x43, 0x70, 0x00, 0x00, 0x08, 0x00,
                                   0x43, 0x52, 0x01, 0x40, 0x40, 0x40, 0x40, 0x40, 0x41};
    static uint8_t said[FLOWS * sizeof flow + 1024];
    struct scene *s = *state;
    struct weir__bytes last;
    ssize_t bytes;

    for (size_t i = 0; i < FLOWS; i++) memcpy(said + i * sizeof flow, flow, sizeof flow);
    come_in(s, ANONYMOUS);
    atomic_store(&hurry.endless, true);
    touch(s, 0);
    begin();
    last = weir__amqp_output(client.engine);
    memcpy(said + FLOWS * sizeof flow, last.at, last.len);
    bytes = (ssize_t)(FLOWS * sizeof flow + last.len);
    assert_int_equal(send(s->fd, said, (size_t)bytes, MSG_NOSIGNAL), bytes);
    weir__amqp_sent(client.engine, last.len);
    await(s, &client.begun);
    atomic_store(&hurry.endless, false);
}

/* ---- how it ends ---- */

/* The connections of a loop are looked at a part at a time: here the last has the link. */
static void a_rule_that_changes_is_for_all_of_many(void **state)
{
    struct scene *s = *state;
    int own, others[MANY];

    come_in(s, PLAIN);
    attach(s, "l");
    own = s->fd;
    for (unsigned i = 0; i < MANY; i++) {
        dial_at(s, weir__server_amqp(s->server));
        others[i] = s->fd;
    }
    s->fd = own;
    expect_connections(s, MANY + 1);
    assert_int_equal(weir__namespace_rule_rotate(s->ns, NULL, "RootManageSharedAccessKey",
                                                 WEIR__KEY_PRIMARY, "new", NULL),
                     0);
    await(s, &client.detached);
    assert_string_equal(client.text, "Unauthorized access. The access rule or key of this link was "
                                     "removed or changed.");
    for (unsigned i = 0; i < MANY; i++) close(others[i]);
}

static void who_says_its_last_byte_is_let_go(void **state)
{
    struct scene *s = *state;

    come_in(s, PLAIN);
    shutdown(s->fd, SHUT_WR);
    while (listen_once(s)) continue;
    close(s->fd);
    s->fd = -1;
    expect_nothing_left(s);
}

static void *stop(void *server)
{
    weir__server_stop(server);
    return NULL;
}

/* What it sent is on disk before it is told; then its answer is waited for. */
static void a_server_that_stops_says_so(void **state)
{
    struct scene *s = *state;
    struct weir__thread stopping;

    come_in(s, PLAIN);
    touch(s, 1);
    assert_int_equal(weir__thread_start(&stopping, "stop", stop, s->server, NULL), 0);
    do {
        touch(s, AS_IT_IS);
    } while (!probe.stopping);
    assert_false(probe.closing);
    touch(s, 0);
    await(s, &client.closed);
    assert_string_equal(client.condition, "amqp:connection:forced");
    assert_string_equal(client.text, "The server is stopping.");
    speak(s);
    while (listen_once(s)) continue;
    close(s->fd);
    s->fd = -1;
    weir__thread_join(&stopping);
    s->server = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_client)
    const struct CMUnitTest tests[] = {
        TEST(a_token_has_its_time),
        TEST(a_token_that_waits_is_not_late),
        TEST(a_peer_is_not_slow_while_we_are),
        TEST(a_peer_is_slow_when_nothing_waits),
        TEST(the_end_of_rights_is_waited_for),
        TEST(who_has_much_with_the_log_waits),
        TEST(an_event_without_a_place_comes_again),
        TEST(a_message_that_waits_is_taken_before_the_end),
        TEST(what_waits_for_the_output_is_taken),
        TEST(a_rule_that_changes_is_for_all_of_many),
        TEST(who_says_its_last_byte_is_let_go),
        TEST(a_server_that_stops_says_so),
    };

    return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
