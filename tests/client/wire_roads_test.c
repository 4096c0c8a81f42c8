/* Connections that the other side closes, cuts or forgets: how long the client waits before the next
 * one, what it says in the log, and what becomes of its links. */
#include "client/hasty.h"

#include "amqp/message.h"
#include "client/weir.h"
#include "client/wire.h"

#define FORCED "amqp:connection:forced"
#define DENIED "amqp:unauthorized-access"
#define MESSAGE_BYTES 256

/* ---- the server ---- */

enum moment {
    NEVER,
    OPENED,  /* as the connection is open */
    TAKEN,   /* as the first link is attached */
    FLOWED,  /* as it gives credit */
    CARRIED, /* and one event has been sent by it */
};

/* How a connection ends, one after the other; those behind the last stay. */
struct road {
    enum moment end;
    const char *condition; /* NULL: it is cut */
};

static const struct road *roads;
static unsigned road_count, ended; /* the last that has ended */
static int64_t events;             /* that were sent */
static atomic_uint flows;          /* that came in all */

static enum moment end_of(const struct moody *by)
{
    if (by->connections > road_count || by->connections == ended) return NEVER;
    return roads[by->connections - 1].end;
}

static void end_road(struct moody *by)
{
    const char *condition = roads[by->connections - 1].condition;
    struct weir__amqp_error why;

    ended = by->connections;
    if (!condition) {
        by->cut = true;
        return;
    }
    why = weir__amqp_error_of(condition, "bye");
    weir__amqp_close(by->engine, &why);
}

static void on_open(struct moody *by)
{
    if (end_of(by) == OPENED) end_road(by);
}

static void on_taken(struct moody *by, struct weir__amqp_link *l)
{
    (void)l;
    if (end_of(by) == TAKEN) end_road(by);
}

static void send_event(struct weir__amqp_link *l)
{
    static const char stored[] = "\x00\x53\x75\xa0\x01x";
    struct weir__amqp_stamp stamp = {.sequence = events++};
    uint8_t message[MESSAGE_BYTES];
    size_t len;

    if (weir__amqp_compose(weir__bytes_of(stored, sizeof stored - 1), &stamp, message,
                           sizeof message, &len, NULL) != 0 ||
        weir__amqp_send(l, weir__bytes_of(message, len), 0, true, NULL) != 0)
        abort();
}

static void on_flow(struct moody *by, struct weir__amqp_link *l)
{
    atomic_fetch_add(&flows, 1);
    if (end_of(by) == CARRIED) send_event(l);
    if (end_of(by) >= FLOWED) end_road(by);
}

static int start(void **state)
{
    hasty_set_up(state);
    road_count = ended = 0;
    events = 0;
    atomic_store(&flows, 0);
    m.opened = on_open;
    m.taken = on_taken;
    m.flowed = on_flow;
    return 0;
}

static void open_by(const struct road *all, unsigned count)
{
    roads = all;
    road_count = count;
    hasty_open();
}

#define OPEN_BY(all) open_by(all, sizeof(all) / sizeof *(all))

static void await_flows(unsigned count)
{
    while (atomic_load(&flows) < count) sched_yield();
}

/* ---- the next connection ---- */

#define CLOSED "the connection was closed: bye (" FORCED ")"

static void assert_told(unsigned number, const char *text)
{
    char line[HASTY_LINE_BYTES];

    snprintf(line, sizeof line, "warn client: %s: %s", m.address, text);
    hasty_assert_line(number, line);
}

/* Pauses grow until something was carried. What is wrong is told once, and again when all was well
 * in between; every connection is shown the token. */
static void pauses_grow_until_something_is_carried(void **state)
{
    static const struct road all[] = {{CARRIED, FORCED}, {OPENED, FORCED},  {FLOWED, FORCED},
                                      {OPENED, NULL},    {CARRIED, FORCED}, {OPENED, FORCED}};
    struct weir_receiver *r;

    (void)state;
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    hasty_expect(200, 400);
    hasty_expect(400, 800);
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    OPEN_BY(all);
    r = hasty_open_on("h");
    for (uint64_t i = 0; i < 2; i++) assert_int_equal(receive_one(r).sequence, i);
    hasty_assert_passed(6);
    await_flows(4);
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.connections, 7);
    assert_int_equal(atomic_load(&m.tokens), 4); /* the others had ended before */
    assert_int_equal(hasty_line_count, 4);
    assert_told(0, CLOSED);
    assert_told(1, CLOSED);
    assert_null(strstr(hasty_lines[2], CLOSED)); /* cut */
    assert_told(3, CLOSED);
}

/* A question alone is reason enough for the next connection. */
static void who_asks_needs_a_connection(void **state)
{
    static const struct road all[] = {{OPENED, NULL}, {OPENED, FORCED}};

    (void)state;
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    OPEN_BY(all);
    assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_ENOTSUP); /* it is a stranger */
    hasty_assert_passed(2);
    hasty_close();
    assert_int_equal(m.connections, 3);
}

/* A batch that has its outcome is something, too. */
static void an_outcome_is_carried(void **state)
{
    static const struct road all[] = {{FLOWED, FORCED}, {OPENED, FORCED}};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;
    struct weir_receiver *r;

    (void)state;
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    hasty_expect(50, 100);
    m.steps = 2;
    m.script[1] = MOODY_CUT;
    OPEN_BY(all);
    r = hasty_open_on("h");
    hasty_assert_passed(2);
    await_flows(2);
    p = open_pinned(w, 0);
    send_text(p, "stored");
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EUNKNOWN);
    hasty_assert_passed(3);
    await_flows(3);
    close_producer(p);
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.connections, 4);
}

/* ---- who waits ---- */

/* At once, when it is not let in; whoever comes next tries again. */
static void who_is_not_let_in_is_told(void **state)
{
    static const struct road all[] = {{OPENED, DENIED}, {OPENED, DENIED}};
    struct weir_producer_options o = {.size = sizeof o, .pinned = true};
    struct weir_hub_info info;
    struct weir_producer *p;

    (void)state;
    OPEN_BY(all);
    assert_int_equal(weir_hub_info(w, "h", &info, &err), WEIR_EDENIED);
    assert_string_equal(err.text, "hub 'h': the connection was closed: bye (" DENIED ")");
    assert_int_equal(weir_producer_open(&p, w, "h", &o, &err), WEIR_EDENIED);
    assert_string_equal(err.text,
                        "a link to h/Partitions/0: the connection was closed: bye (" DENIED ")");
    close_producer(open_pinned(w, 0));
    hasty_close();
    assert_int_equal(m.connections, 3);
}

/* Any other end is waited out, and so is that of somebody who had been let in. */
static void who_was_let_in_waits(void **state)
{
    static const struct road all[] = {{OPENED, FORCED}, {TAKEN, DENIED}};

    (void)state;
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    OPEN_BY(all);
    close_producer(open_pinned(w, 0));
    hasty_assert_passed(2);
    hasty_close();
    assert_int_equal(m.connections, 3);
}

/* Whatever it was closed for, nobody is reached; and the trouble is known until somebody is. */
static void who_waited_in_vain_is_told_why(void **state)
{
    static const struct road all[] = {{FLOWED, "amqp:not-found"}};
    char text[WEIR_ERROR_TEXT_BYTES];
    struct weir_receiver *r;

    (void)state;
    m.mute = 2;
    hasty_expect(50, 100);
    OPEN_BY(all);
    r = hasty_open_on("h");
    hasty_assert_passed(1);
    assert_int_equal(weir__wire_late((struct weir__wire *)w->backend, 7, &err), WEIR_EUNREACHABLE);
    snprintf(text, sizeof text,
             "no answer from %s within 7 ms: the connection was closed: bye (amqp:not-found)",
             m.address);
    assert_string_equal(err.text, text);
    weir_receiver_close(r);
    hasty_close();
}

/* ---- goodbyes ---- */

static void go_mute(struct moody *by, struct weir__amqp_link *l)
{
    (void)l;
    by->mute = by->connections;
    atomic_fetch_add(&flows, 1);
}

/* A second each, for a link and for a connection, is what the other side is given. */
static void goodbyes_need_no_answer(void **state)
{
    struct weir_receiver *r;

    (void)state;
    m.flowed = go_mute;
    hasty_open();
    r = hasty_open_on("h");
    await_flows(1);
    hasty_expect(1000, 1000);
    weir_receiver_close(r);
    hasty_assert_passed(1);
    hasty_expect(1000, 1000);
    hasty_close();
    hasty_assert_passed(2);
}

/* ---- tokens ---- */

/* By which their answers come. */
static void detach_tokens(struct moody *by, struct weir__amqp_link *l)
{
    (void)l;
    if (atomic_fetch_add(&flows, 1) == 0) weir__amqp_detach(by->replies, NULL);
}

/* Without the links for tokens a connection is of no use, and another one is made at once. */
static void tokens_need_their_links(void **state)
{
    struct weir_receiver *r;

    (void)state;
    m.flowed = detach_tokens;
    hasty_expect(50, 100);
    hasty_open();
    r = hasty_open_on("h");
    hasty_assert_passed(1);
    await_flows(2);
    close_producer(open_pinned(w, 0));
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.connections, 2);
    assert_int_equal(atomic_load(&m.tokens), 3);
    assert_int_equal(hasty_line_count, 1);
    assert_told(0, "the link for tokens was detached");
}

/* ---- sessions ---- */

/* That of the second link as it is attached, and that of the first one's as it gives credit. */
static void end_session(struct moody *by, struct weir__amqp_link *l)
{
    struct weir__amqp_error why = weir__amqp_error_of("amqp:not-found", "bye");

    if (by->attaches == 2) weir__amqp_end(weir__amqp_link_session(l), &why);
}

static void end_first_session(struct moody *by, struct weir__amqp_link *l)
{
    struct weir__amqp_error why = weir__amqp_error_of("amqp:not-found", "bye");

    if (atomic_fetch_add(&flows, 1) == 0)
        weir__amqp_end(weir__amqp_link_session(l), &why);
    else
        send_event(l);
    (void)by;
}

/* What was wrong with a session is not wrong with its links: these are attached again, whatever it
 * was; and those of other sessions notice nothing. */
static void links_outlive_their_session(void **state)
{
    struct weir_receiver *r;

    (void)state;
    m.taken = end_session;
    hasty_open();
    r = hasty_open_on("h");
    await_flows(1);
    hasty_expect(50, 100);
    close_producer(open_pinned(w, 0));
    hasty_assert_passed(1);
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.connections, 1);
    assert_int_equal(m.attaches, 3);
    assert_int_equal(hasty_line_count, 0);
}

static void open_links_outlive_their_session(void **state)
{
    struct weir_receiver *r;

    (void)state;
    m.flowed = end_first_session;
    hasty_expect(50, 100);
    hasty_open();
    r = hasty_open_on("h");
    assert_int_equal(receive_one(r).sequence, 0);
    hasty_assert_passed(1);
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.connections, 1);
    assert_int_equal(m.attaches, 2);
    assert_int_equal(hasty_line_count, 1);
    hasty_assert_line(0, "info client: h/ConsumerGroups/$Default/Partitions/0: bye "
                         "(amqp:not-found)");
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pauses_grow_until_something_is_carried),
        TEST(who_asks_needs_a_connection),
        TEST(an_outcome_is_carried),
        TEST(who_is_not_let_in_is_told),
        TEST(who_was_let_in_waits),
        TEST(who_waited_in_vain_is_told_why),
        TEST(goodbyes_need_no_answer),
        TEST(tokens_need_their_links),
        TEST(links_outlive_their_session),
        TEST(open_links_outlive_their_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
