/* connection_test.c - one connection of AMQP to a server with a clock of the test's: how long it is
 * waited for, when it is not read, and how it ends. */
#include "server/guest.h"

/* ---- the server's side ---- */

#define AS_IT_IS SIZE_MAX

static struct {
    struct weir__server *server;
    struct weir__post post;
    size_t unflushed; /* what it is to be */
    bool held, stopping, closing;
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
    if (probe.unflushed != AS_IT_IS) {
        c->unflushed = probe.unflushed;
        weir__loop_timer_stop(c->loop, &c->timer);
        weir__connection_visit(c);
    }
    atomic_store(&probe.done, true);
}

static void touch(struct scene *s, size_t unflushed)
{
    probe.server = s->server;
    probe.unflushed = unflushed;
    atomic_store(&probe.done, false);
    weir__post_init(&probe.post, touch_connection, NULL);
    assert_int_equal(weir__loop_post(weir__loops_at(s->server->loops, 0), &probe.post), 0);
    for (int i = 0; !atomic_load(&probe.done); i++) {
        assert_true(i < 1000 * PATIENCE_S);
        poll(NULL, 0, 1);
    }
}

/* Turns that are over when the test says so, for messages of the first connection. */
static struct {
    _Atomic(struct weir__server *) server; /* NULL: no turn is over */
    atomic_uint over;
} turns;

bool __wrap_weir__loop_turn_over(const struct weir__loop *);

bool __wrap_weir__loop_turn_over(const struct weir__loop *l)
{
    struct weir__server *server = atomic_load(&turns.server);

    (void)l;
    if (!server || server->at[0].connections->event.type != WEIR__AMQP_EVENT_TRANSFER) return false;
    if (atomic_load(&turns.over) == 0) return false;
    atomic_fetch_sub(&turns.over, 1);
    return true;
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

/* A large message that comes when a turn is over waits for another, 64 times at most. A busy log may let it
 * come again after that. */
static void a_large_message_waits_for_a_turn(void **state)
{
    static const struct {
        size_t len;
        unsigned over; /* so many times is the turn over; then it is not */
        unsigned least, most;
    } rows[] = {{65535, 3, 0, 0}, {65536, 3, 3, 3}, {65536, 1000, 64, 960}};
    static uint8_t event[65536] = "\0\x53\x75\xb0";
    struct scene *s = *state;
    struct weir__amqp_link *link;

    come_in(s, PLAIN);
    link = attach(s, "l");
    atomic_store(&turns.server, s->server);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir__store_be32(event + 4, (uint32_t)rows[i].len - 8);
        atomic_store(&turns.over, rows[i].over);
        assert_int_equal(weir__amqp_send(link, weir__bytes_of(event, rows[i].len), 0, false, NULL),
                         0);
        await(s, &client.settled);
        assert_string_equal(client.text, "");
        assert_in_range(rows[i].over - atomic_load(&turns.over), rows[i].least, rows[i].most);
    }
    atomic_store(&turns.server, NULL);
}

/* ---- how it ends ---- */

/* The connections of a loop are looked at a part at a time: here the last has the link. */
static void a_rule_that_changes_is_for_all_of_many(void **state)
{
    struct scene *s = *state;
    int own, others[WEIR__RIGHTS_SLICE];

    come_in(s, PLAIN);
    attach(s, "l");
    own = s->fd;
    for (unsigned i = 0; i < WEIR__RIGHTS_SLICE; i++) {
        dial_at(s, weir__server_amqp(s->server));
        others[i] = s->fd;
    }
    s->fd = own;
    expect_connections(s, WEIR__RIGHTS_SLICE + 1);
    assert_int_equal(weir__namespace_rule_rotate(s->ns, NULL, "RootManageSharedAccessKey",
                                                 WEIR__KEY_PRIMARY, "new", NULL),
                     0);
    await(s, &client.detached);
    assert_string_equal(client.text, "Unauthorized access. The access rule or key of this link was "
                                     "removed or changed.");
    for (unsigned i = 0; i < WEIR__RIGHTS_SLICE; i++) close(others[i]);
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
        TEST(the_end_of_rights_is_waited_for),
        TEST(who_has_much_with_the_log_waits),
        TEST(an_event_without_a_place_comes_again),
        TEST(a_large_message_waits_for_a_turn),
        TEST(a_rule_that_changes_is_for_all_of_many),
        TEST(who_says_its_last_byte_is_let_go),
        TEST(a_server_that_stops_says_so),
    };

    return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
