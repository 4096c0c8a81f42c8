/* Outcomes: in ranges, out of order, first and second, and of links that are gone. */
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 1000, .trusted = true};

#define ACCEPTED "00 53 24 45"

/* A sender of ours with credit, as a server has it. */
static struct weir__amqp_link *sender(bool no_outcomes, const char *attach)
{
    manners.no_outcomes = no_outcomes;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, attach);
    peer_hear(&p, WEIR__AMQP_ATTACH);
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 70 00001000");
    p.side.taken = p.side.count;
    return p.side.told[2].link;
}

static void send_many(struct weir__amqp_link *l, unsigned count, bool settled)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(weir__amqp_send(l, weir__bytes_of("m", 1), 0, settled, NULL), 0);
    peer_listen(&p);
    for (unsigned i = 0; i < count; i++) peer_hear(&p, WEIR__AMQP_TRANSFER);
}

static void expect_range(uint32_t first, uint32_t last, enum weir__amqp_kind outcome)
{
    struct told *told = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);

    assert_int_equal(told->settle.first, first);
    assert_int_equal(told->settle.last, last);
    assert_int_equal(told->settle.outcome, outcome);
    assert_true(told->settle.settled);
}

/* Each delivery is told once, whatever ranges the peer names. */
static void ranges_are_cut_to_what_is_unsettled(void **state)
{
    struct weir__amqp_link *l = sender(false, SAY_RECEIVER);

    (void)state;
    send_many(l, 10, false);
    peer_say(&p, 0, "15: 41 52 03 40 41 " ACCEPTED);
    expect_range(3, 3, WEIR__AMQP_ACCEPTED);
    peer_say(&p, 0, "15: 41 52 02 52 05 41 00 53 26 45");
    expect_range(2, 2, WEIR__AMQP_RELEASED);
    expect_range(4, 5, WEIR__AMQP_RELEASED);
    peer_say(&p, 0, "15: 41 43 70 7fffffff 41 " ACCEPTED); /* and many that never were */
    expect_range(0, 1, WEIR__AMQP_ACCEPTED);
    expect_range(6, 9, WEIR__AMQP_ACCEPTED);
    peer_say(&p, 0, "15: 41 43 52 09 41 " ACCEPTED);
    peer_say(&p, 0, "15: 41 70 ffffff00 70 fffffff0 41 " ACCEPTED);
    peer_say(&p, 0, "15: 42 43 52 09 41 " ACCEPTED); /* of what the peer sent: nothing */
    expect_nothing(&p.side);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

static void settled_and_forgotten_ones_are_not_told(void **state)
{
    struct weir__amqp_link *l = sender(false, SAY_RECEIVER);

    (void)state;
    send_many(l, 2, true);
    send_many(l, 1, false);
    send_many(l, 1, true);
    peer_say(&p, 0, "15: 41 43 52 09 41 " ACCEPTED);
    expect_range(2, 2, WEIR__AMQP_ACCEPTED);
    expect_nothing(&p.side);
    peer_fini(&p);
    l = sender(true, SAY_RECEIVER);
    send_many(l, 2000, false); /* and the ring is never full */
    send_many(l, 48, false);
    peer_say(&p, 0, "15: 41 43 52 09 41 " ACCEPTED);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A receiver that settles second is answered, whether anybody waits for the outcome or not. */
static void second_is_answered_with_settled(void **state)
{
    static const char attach[] = "12: a1 01 'r' 52 01 41 50 00 50 01 00 53 28 45 00 53 29 45";
    struct weir__amqp_composite c, outcome;

    (void)state;
    for (int no_outcomes = 0; no_outcomes < 2; no_outcomes++) {
        struct weir__amqp_link *l = sender(no_outcomes, attach);
        send_many(l, 3, false);
        peer_say(&p, 0, "15: 41 43 52 ff 42 " ACCEPTED);
        c = peer_hear(&p, WEIR__AMQP_DISPOSITION);
        assert_int_equal(c.disposition.role.u, WEIR__AMQP_SENDER);
        assert_true(c.disposition.settled.u);
        assert_int_equal(c.disposition.first.u, 0);
        assert_int_equal(c.disposition.last.u, 2);
        assert_int_equal(weir__amqp_composite_of(&c.disposition.state, WEIR__AMQP_OUTCOMES,
                                                 &outcome, NULL),
                         0);
        assert_int_equal(outcome.kind, WEIR__AMQP_ACCEPTED);
        if (!no_outcomes) expect_range(0, 2, WEIR__AMQP_ACCEPTED);
        expect_nothing(&p.side);
        peer_fini(&p);
    }
}

/* Long enough for the short way that most messages take, which short ones do not. */
#define LONG_BODY "'a message of which there is more than the head of a frame has room for'"

/* The peer sends messages 0 to count - 1, long ones and short ones; handle 0. */
static void receive(unsigned count)
{
    char said[160];

    peer_open(&p, &(struct weir__amqp_options){.after.unsettled = 2048}, &manners);
    peer_say(&p, 0, SAY_SENDER);
    for (unsigned i = 0; i < count; i++) {
        snprintf(said, sizeof said, "14: 43 70 %08x a0 01 'x' 43 42 42 | %s", i,
                 i % 8 ? LONG_BODY : "'m'");
        peer_say(&p, 0, said);
    }
    p.heard_at = p.heard_len;
    p.side.taken = p.side.count;
}

static void hear_range(uint32_t first, uint32_t last, bool settled)
{
    struct weir__amqp_composite c = peer_hear(&p, WEIR__AMQP_DISPOSITION);

    assert_int_equal(c.disposition.role.u, WEIR__AMQP_RECEIVER);
    assert_int_equal(c.disposition.first.u, first);
    assert_int_equal(c.disposition.last.u, last);
    assert_int_equal(c.disposition.settled.u, settled);
}

static void equal_neighbours_share_a_frame(void **state)
{
    struct weir__amqp_error error = error_text(WEIR__AMQP_COND_NOT_ALLOWED, "no");
    struct weir__amqp_link *l;

    (void)state;
    receive(10);
    l = p.side.told[2].link;
    weir__amqp_settle(l, 0, 2, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(l, 3, 3, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(l, 5, 5, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(l, 6, 6, WEIR__AMQP_REJECTED, &error);
    weir__amqp_settle(l, 7, 7, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_detach(l, NULL); /* what was said before stays before */
    peer_listen(&p);
    hear_range(0, 3, true);
    hear_range(5, 5, true);
    hear_range(6, 6, true);
    hear_range(7, 7, true);
    peer_hear(&p, WEIR__AMQP_DETACH);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* One straggler holds the window; when it is settled the window opens again. */
static void the_window_follows_what_is_unsettled(void **state)
{
    struct weir__amqp_composite c;
    struct weir__amqp_link *l;

    (void)state;
    manners.credit = 5000;
    receive(2048);
    l = p.side.told[2].link;
    weir__amqp_settle(l, 1, 2047, WEIR__AMQP_ACCEPTED, NULL);
    peer_listen(&p);
    hear_range(1, 2047, true);
    peer_hear_nothing(&p);
    weir__amqp_settle(l, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    peer_listen(&p);
    hear_range(0, 0, true);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.incoming_window.u, 2048);
    assert_int_equal(c.flow.next_incoming_id.u, 2048);
    peer_fini(&p);

    receive(2048);
    peer_say(&p, 0, "14: 43 70 00000800 a0 01 'x' 43 42 42 | 'm'"); /* one more */
    c = peer_hear(&p, WEIR__AMQP_END);
    assert_condition(&c.end.error, WEIR__AMQP_COND_WINDOW);
    assert_string_equal(p.side.told[p.side.count - 1].text, "a transfer without a window");
    peer_fini(&p);

    receive(2048); /* and a link that goes takes its stragglers with it, and says so */
    peer_say(&p, 0, "16: 43 41");
    peer_hear(&p, WEIR__AMQP_DETACH);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.incoming_window.u, 2048);
    peer_fini(&p);
    manners.credit = 1000;
}

/* A session that began before trust remembers little; with the first link after it, more, and what
 * it remembers already stays. */
static void trust_opens_the_window(void **state)
{
    static const char second[] = "12: a1 01 't' 52 01 42 40 40 00 53 28 45 00 53 29 45 40 40 43";
    struct weir__amqp_options o = {.before.unsettled = 64, .after.unsettled = 256};
    struct manners shy = {.credit = 200};
    struct weir__amqp_composite c;
    char said[64];

    (void)state;
    peer_open(&p, &o, &shy);
    peer_say(&p, 0, SAY_SENDER);
    for (unsigned i = 0; i < 130; i++) {
        if (i == 40) {
            weir__amqp_trust(p.side.e);
            p.heard_at = p.heard_len;
            peer_say(&p, 0, second);
            peer_hear(&p, WEIR__AMQP_ATTACH);
            c = peer_hear(&p, WEIR__AMQP_FLOW);
            assert_int_equal(c.flow.incoming_window.u, 256 - 40);
        }
        snprintf(said, sizeof said, "14: 52 %02x 70 %08x a0 01 'x' 43 42 42 | 'm'", i >= 40, i);
        peer_say(&p, 0, said);
    }
    peer_listen(&p);
    p.heard_at = p.heard_len;
    p.side.taken = p.side.count;
    weir__amqp_settle(p.side.told[2].link, 0, 39, WEIR__AMQP_ACCEPTED, NULL);
    peer_listen(&p);
    hear_range(0, 39, true);
    peer_say(&p, 0, "15: 42 43 52 81 41"); /* the sender settles all: of the second link's */
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.first, 40);
    assert_int_equal(p.side.told[p.side.count - 1].settle.last, 129);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A sender that only says how it stands has not settled: it may still do so. */
static void a_sender_that_has_not_decided(void **state)
{
    struct told *told;

    (void)state;
    receive(2);
    peer_say(&p, 0, "15: 42 43 52 01 42 " ACCEPTED);
    peer_say(&p, 0, "15: 42 43 52 01");
    expect_nothing(&p.side);
    peer_say(&p, 0, "15: 42 43 52 01 41");
    told = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(told->settle.last, 1);
    peer_say(&p, 0, "15: 42 43 52 01 41");
    expect_nothing(&p.side);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* What a sender settles is told of the link that it came by, whose number may be any. */
static void each_delivery_has_its_link(void **state)
{
    static const char second[] = "12: a1 01 't' 52 01 42 40 40 00 53 28 45 00 53 29 45 40 40 43";
    struct weir__amqp_link *links[2];
    char said[160];

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){.after.unsettled = 64}, &manners);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, second);
    for (int i = 0; i < 2; i++) links[i] = expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link;
    for (unsigned i = 0; i < 8; i++) {
        snprintf(said, sizeof said, "14: 52 %02x 70 %08x a0 01 'x' 43 42 42 | %s", i / 2 % 2, i,
                 i < 4 ? LONG_BODY : "'m'");
        peer_say(&p, 0, said);
    }
    p.side.taken = p.side.count;
    peer_say(&p, 0, "15: 42 43 52 07 41");
    for (unsigned i = 0; i < 4; i++) {
        struct told *told = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);
        assert_ptr_equal(told->link, links[i % 2]);
        assert_int_equal(told->settle.first, 2 * i);
        assert_int_equal(told->settle.last, 2 * i + 1);
    }
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A sender that settles a delivery before its last frame: it is told as settled, and the delivery
 * that has its place in the ring by then is none of its business. */
static void settled_before_the_last_frame(void **state)
{
    static const char second[] = "12: a1 01 't' 52 01 42 40 40 00 53 28 45 00 53 29 45 40 40 43";
    struct weir__amqp_options o = {.after.unsettled = 64};
    struct manners m = {.credit = 200, .trusted = true};
    struct told *told;
    char said[64];

    (void)state;
    peer_open(&p, &o, &m);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, second);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'be'");
    peer_say(&p, 0, "15: 42 43 43 41"); /* settled by its sender */
    for (unsigned i = 1; i <= 64; i++) {
        snprintf(said, sizeof said, "14: 52 01 70 %08x a0 01 'x' 43 42 42 | 'm'", i);
        peer_say(&p, 0, said);
        if (i == 1) weir__amqp_settle(p.side.told[3].link, 1, 1, WEIR__AMQP_ACCEPTED, NULL);
    }
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'gun'");
    told = &p.side.told[p.side.count - 1];
    assert_int_equal(told->type, WEIR__AMQP_EVENT_TRANSFER);
    assert_int_equal(told->delivery.id, 0);
    assert_int_equal(told->delivery.size, 5);
    assert_true(told->delivery.settled);
    p.side.taken = p.side.count;
    peer_say(&p, 0, "15: 42 43 70 00000041 41"); /* 64 is there still */
    told = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(told->settle.first, 2);
    assert_int_equal(told->settle.last, 64);
    peer_fini(&p);
}

static void a_receiver_that_settles_second_waits(void **state)
{
    static const char attach[] = "12: a1 01 's' 43 42 50 00 50 01 00 53 28 45 00 53 29 45 40 40 43";
    struct told *told;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, attach);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
    p.heard_at = p.heard_len;
    p.side.taken = p.side.count;
    weir__amqp_settle(p.side.told[2].link, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    peer_listen(&p);
    hear_range(0, 0, false);
    peer_say(&p, 0, "15: 42 43 43 41 " ACCEPTED);
    told = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(told->settle.role, WEIR__AMQP_SENDER);
    assert_int_equal(told->settle.first, 0);
    peer_fini(&p);
}

/* When the window was half used it is opened again as soon as enough is settled, by either side. */
static void what_is_settled_opens_the_window(void **state)
{
    char said[160];

    (void)state;
    for (int ours = 0; ours < 2; ours++) {
        peer_open(&p, &(struct weir__amqp_options){.after.unsettled = 64}, &manners);
        peer_say(&p, 0, SAY_SENDER);
        for (unsigned i = 0; i < 33; i++) {
            snprintf(said, sizeof said, "14: 43 70 %08x a0 01 'x' 43 42 42 | 'm'", i);
            peer_say(&p, 0, said);
        }
        p.heard_at = p.heard_len;
        p.side.taken = p.side.count;
        if (ours)
            weir__amqp_settle(p.side.told[2].link, 0, 32, WEIR__AMQP_ACCEPTED, NULL);
        else
            peer_say(&p, 0, "15: 42 43 52 20 41");
        peer_listen(&p);
        if (ours) hear_range(0, 32, true);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.incoming_window.u, 64);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

/* By its sender, before its last frame has come; an earlier one is unsettled still. */
static void a_message_may_be_settled_on_its_way(void **state)
{
    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
    peer_say(&p, 0, "14: 43 52 01 a0 01 'y' 43 42 41 | 'half'");
    peer_say(&p, 0, "15: 42 52 01 52 01 41");
    p.side.taken = p.side.count;
    peer_say(&p, 0, "14: 43 40 40 40 40 42 | 'half'");
    assert_true(expect(&p.side, WEIR__AMQP_EVENT_TRANSFER)->delivery.settled);
    expect_nothing(&p.side);
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_cut_to_what_is_unsettled),
        cmocka_unit_test(settled_and_forgotten_ones_are_not_told),
        cmocka_unit_test(second_is_answered_with_settled),
        cmocka_unit_test(equal_neighbours_share_a_frame),
        cmocka_unit_test(the_window_follows_what_is_unsettled),
        cmocka_unit_test(trust_opens_the_window),
        cmocka_unit_test(a_sender_that_has_not_decided),
        cmocka_unit_test(each_delivery_has_its_link),
        cmocka_unit_test(settled_before_the_last_frame),
        cmocka_unit_test(a_receiver_that_settles_second_waits),
        cmocka_unit_test(what_is_settled_opens_the_window),
        cmocka_unit_test(a_message_may_be_settled_on_its_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
