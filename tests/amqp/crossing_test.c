/* What the two sides begin at the same time: answers that come too late, names that both have, and what
 * is not known before the peer has answered. */
#include "peer.h"

static struct peer p;
static struct manners manners = {.trusted = true};

/* A session of ours, on channel 1, which the peer has not answered. */
static struct weir__amqp_session *begin_session(void)
{
    struct weir__amqp_session *s;

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    assert_int_equal(weir__amqp_begin(p.side.e, &s, NULL), 0);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_BEGIN).begin.remote_channel.type, WEIR__AMQP_NULL);
    return s;
}

#define ANSWER_BEGIN "11: 60 0001 52 2a 70 00000800 70 00000800"
#define ANSWER_AS_SENDER "12: a1 01 'n' 52 05 42 40 40 00 53 28 45 00 53 29 45 40 40 52 07"
#define ATTACH_AS_RECEIVER "12: a1 01 'n' 52 06 41 40 40 00 53 28 45 00 53 29 45 40 40 52 09"

static struct weir__amqp_link *attach_receiver(struct weir__amqp_session *s, uint32_t credit)
{
    struct weir__amqp_terms t = {.name = weir__bytes_of("n", 1),
                                 .role = WEIR__AMQP_RECEIVER,
                                 .credit = credit};
    struct weir__amqp_link *l;

    assert_int_equal(weir__amqp_attach(s, &t, &l, NULL), 0);
    peer_listen(&p);
    peer_hear(&p, WEIR__AMQP_ATTACH);
    return l;
}

/* The owner has ended it by then: it is told of the end alone. */
static void an_end_may_cross_the_answer(void **state)
{
    struct weir__amqp_session *s = begin_session();

    (void)state;
    weir__amqp_end(s, NULL);
    peer_say(&p, 7, ANSWER_BEGIN);
    expect_nothing(&p.side);
    peer_say(&p, 7, SAY_END);
    assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_END)->session, s);
    expect_nothing(&p.side);
    peer_fini(&p);
}

static void a_detach_may_cross_the_answer(void **state)
{
    struct weir__amqp_session *s = begin_session();
    struct weir__amqp_link *l;

    (void)state;
    peer_say(&p, 7, ANSWER_BEGIN);
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    l = attach_receiver(s, 0);
    weir__amqp_detach(l, NULL);
    peer_say(&p, 7, ANSWER_AS_SENDER);
    expect_nothing(&p.side);
    peer_say(&p, 7, "16: 52 05 41");
    assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->link, l);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A link of the peer's that has our name and our role is not the other end of ours. */
static void a_name_may_be_on_both_sides(void **state)
{
    struct weir__amqp_session *s = begin_session();
    struct weir__amqp_composite c;
    struct weir__amqp_link *l;
    struct told *told;

    (void)state;
    peer_say(&p, 7, ANSWER_BEGIN);
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    l = attach_receiver(s, 0);
    peer_say(&p, 7, ATTACH_AS_RECEIVER);
    told = expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    assert_true(told->incoming && told->link != l);
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.role.u, WEIR__AMQP_SENDER);
    assert_int_equal(c.attach.initial_delivery_count.u, 0); /* the sender's to say, so ours */
    peer_say(&p, 7, ANSWER_AS_SENDER);
    told = expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    assert_true(!told->incoming && told->link == l);
    peer_fini(&p);
}

/* How far the peer has counted is said only when it is known. */
static void what_is_not_known_is_not_said(void **state)
{
    struct weir__amqp_session *s = begin_session();
    struct weir__amqp_link *l = attach_receiver(s, 5);
    struct weir__amqp_composite c = peer_hear(&p, WEIR__AMQP_FLOW);

    (void)state;
    assert_int_equal(c.flow.link_credit.u, 5);
    assert_int_equal(c.flow.next_incoming_id.type, WEIR__AMQP_NULL);
    assert_int_equal(c.flow.delivery_count.type, WEIR__AMQP_NULL);
    peer_say(&p, 7, ANSWER_BEGIN);
    assert_int_equal(weir__amqp_flow(l, 6, false), 0);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.next_incoming_id.u, 42);
    assert_int_equal(c.flow.delivery_count.type, WEIR__AMQP_NULL);
    peer_say(&p, 7, ANSWER_AS_SENDER);
    assert_int_equal(weir__amqp_flow(l, 6, false), 0);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.delivery_count.type, WEIR__AMQP_UINT);
    assert_int_equal(c.flow.delivery_count.u, 7);
    peer_fini(&p);
}

/* A sender whose outcomes nobody waits for needs no memory for them: two bytes for each of 8192. */
static void outcomes_that_nobody_waits_for_cost_nothing(void **state)
{
    size_t memory[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct manners m = {.trusted = true, .no_outcomes = i};
        peer_open(&p, &(struct weir__amqp_options){0}, &m);
        peer_say(&p, 0, SAY_RECEIVER);
        memory[i] = weir__amqp_memory(p.side.e);
        peer_fini(&p);
    }
    assert_int_equal(memory[0] - memory[1], 8192 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_may_cross_the_answer),
        cmocka_unit_test(a_detach_may_cross_the_answer),
        cmocka_unit_test(a_name_may_be_on_both_sides),
        cmocka_unit_test(what_is_not_known_is_not_said),
        cmocka_unit_test(outcomes_that_nobody_waits_for_cost_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
