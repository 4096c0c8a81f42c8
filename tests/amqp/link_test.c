/* Attach, refusal, detach, and the settle modes. */
#include "peer.h"

static struct peer p;

static void keep_quiet(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    (void)ev;
}

static const struct weir__amqp_error stolen = {{(const uint8_t *)"amqp:link:stolen", 16},
                                               {(const uint8_t *)"another came", 12}};

static void refuse_plainly(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_equal(weir__amqp_refuse(ev->link, &stolen, WEIR__AMQP_ECHO_NONE, NULL), 0);
}

static void refuse_echoed(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_equal(weir__amqp_refuse(ev->link, &stolen, WEIR__AMQP_ECHO_BOTH, NULL), 0);
}

static void refuse_half_echoed(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_equal(weir__amqp_refuse(ev->link, &stolen, WEIR__AMQP_ECHO_THEIRS, NULL), 0);
}

/* What the peer has is repeated, what we would have is not there. */
static void a_refusal_may_repeat_the_peers_end(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    p.side.on = refuse_half_echoed;
    peer_say(&p, 0, SAY_RECEIVER);
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.source.type, WEIR__AMQP_NULL);
    assert_int_equal(c.attach.target.type, WEIR__AMQP_DESCRIBED);
    peer_hear(&p, WEIR__AMQP_DETACH);
    peer_say(&p, 0, SAY_SENDER);
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.source.type, WEIR__AMQP_DESCRIBED);
    assert_int_equal(c.attach.target.type, WEIR__AMQP_NULL);
    peer_hear(&p, WEIR__AMQP_DETACH);
    peer_fini(&p);
}

/* Source and target null, or the peer's; a closing detach with the error right behind it; and one
 * DETACH event when the peer has answered, with a closing detach or not. */
static void a_refusal_is_an_attach_and_a_detach(void **state)
{
    static const char *const answers[] = {"16: 52 01 41", "16: 52 01"};

    (void)state;
    for (int echoed = 0; echoed < 2; echoed++) {
        struct weir__amqp_composite c;
        peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
        p.side.on = echoed ? refuse_echoed : refuse_plainly;
        peer_say(&p, 0, SAY_RECEIVER);
        c = peer_hear(&p, WEIR__AMQP_ATTACH);
        assert_int_equal(c.attach.source.type, echoed ? WEIR__AMQP_DESCRIBED : WEIR__AMQP_NULL);
        assert_int_equal(c.attach.target.type, echoed ? WEIR__AMQP_DESCRIBED : WEIR__AMQP_NULL);
        assert_bytes(c.attach.name.bytes, weir__bytes_of("r", 1));
        assert_int_equal(c.attach.handle.u, 1);
        assert_int_equal(c.attach.role.u, WEIR__AMQP_SENDER);
        c = peer_hear(&p, WEIR__AMQP_DETACH);
        assert_true(c.detach.closed.u && c.detach.handle.u == 1);
        assert_condition(&c.detach.error, WEIR__AMQP_COND_STOLEN);
        peer_hear_nothing(&p);
        peer_say(&p, 0, "13: 43 43 43 43 52 01 43 52 09"); /* it did not know yet */
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        assert_null(expect(&p.side, WEIR__AMQP_EVENT_FLOW)->link); /* its window counts */
        expect_nothing(&p.side);
        peer_say(&p, 0, answers[echoed]);
        assert_true(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->local);
        peer_hear_nothing(&p);
        peer_say(&p, 0, SAY_RECEIVER); /* the handle is free again */
        peer_hear(&p, WEIR__AMQP_ATTACH);
        peer_fini(&p);
    }
}

static void accept_with_terms(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms t = {.max_message_size = 1048576, .credit = 1000};

    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_equal(weir__amqp_accept(ev->link, &t, NULL), 0);
}

static void accept_settled(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms t = {.credit = 10, .settled = true};

    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_equal(weir__amqp_accept(ev->link, &t, NULL), 0);
}

/* What clients fail without: both ends not null, a maximum, a delivery-count, credit in the same
 * flight. */
static void an_attach_is_answered_in_full(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    p.side.on = accept_with_terms;
    peer_say(&p, 0, "12: a1 03 'eh1' 43 42 40 40 40 00 53 29 c0 06 01 a1 03 'eh1' 40 40 43");
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.source.type, WEIR__AMQP_DESCRIBED); /* it was null */
    assert_int_equal(c.attach.target.type, WEIR__AMQP_DESCRIBED);
    assert_int_equal(c.attach.role.u, WEIR__AMQP_RECEIVER);
    assert_int_equal(c.attach.max_message_size.u, 1048576);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_MIXED);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.link_credit.u, 1000);
    assert_int_equal(c.flow.delivery_count.type, WEIR__AMQP_UINT);
    assert_int_equal(c.flow.next_incoming_id.type, WEIR__AMQP_UINT);
    assert_int_equal(c.flow.incoming_window.u, 256);
    peer_say(&p, 0, "12: a1 01 'r' 52 07 41 50 01 50 01 00 53 28 45 00 53 29 45");
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.initial_delivery_count.type, WEIR__AMQP_UINT);
    assert_int_equal(c.attach.initial_delivery_count.u, 0);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_SETTLED);
    assert_int_equal(c.attach.rcv_settle_mode.u, WEIR__AMQP_RECEIVE_SECOND);
    assert_true(weir__amqp_link_settled(p.side.told[p.side.count - 1].link));
    peer_fini(&p);
}

/* An owner may insist on settled deliveries, in both directions, and the attach says so. */
static void an_owner_may_insist_on_settled(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    p.side.on = accept_settled;
    peer_say(&p, 0, "12: a1 01 's' 43 42 50 02 50 01 00 53 28 45 00 53 29 45 40 40 43");
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_MIXED);
    assert_int_equal(c.attach.rcv_settle_mode.u, WEIR__AMQP_RECEIVE_FIRST);
    peer_hear(&p, WEIR__AMQP_FLOW);
    peer_say(&p, 0, "12: a1 01 'r' 52 01 41 50 02 50 01 00 53 28 45 00 53 29 45");
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_SETTLED);
    assert_int_equal(c.attach.rcv_settle_mode.u, WEIR__AMQP_RECEIVE_SECOND);
    peer_fini(&p);
}

static void the_peers_detach_is_answered(void **state)
{
    static const char *const detaches[] = {"16: 43 41", "16: 43 42"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct weir__amqp_composite c;
        peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
        peer_say(&p, 0, SAY_SENDER);
        peer_hear(&p, WEIR__AMQP_ATTACH);
        peer_say(&p, 0, detaches[i]);
        c = peer_hear(&p, WEIR__AMQP_DETACH);
        assert_int_equal(c.detach.closed.u, i == 0);
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        assert_false(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->local);
        peer_fini(&p);
    }
}

/* A link that the owner has not answered when the peer takes it back. */
static void an_attach_may_be_taken_back(void **state)
{
    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    p.side.on = keep_quiet;
    peer_say(&p, 0, SAY_SENDER);
    peer_hear_nothing(&p);
    peer_say(&p, 0, "16: 43 41");
    peer_hear(&p, WEIR__AMQP_ATTACH);
    peer_hear(&p, WEIR__AMQP_DETACH);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    expect(&p.side, WEIR__AMQP_EVENT_DETACH);
    peer_fini(&p);
}

/* An owner that has to ask somebody first can still say no. */
static void a_refusal_may_come_late(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    p.side.on = keep_quiet;
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, SAY_RECEIVER);
    assert_int_equal(weir__amqp_flow(p.side.told[2].link, 5, false), WEIR_EINVAL);
    weir__amqp_detach(p.side.told[2].link, &stolen);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.target.type, WEIR__AMQP_NULL);
    c = peer_hear(&p, WEIR__AMQP_DETACH);
    assert_condition(&c.detach.error, WEIR__AMQP_COND_STOLEN);
    peer_fini(&p);
}

/* Numbers of the two sides are their own. */
static void channels_and_handles_need_not_agree(void **state)
{
    struct weir__amqp_terms t = {.name = weir__bytes_of("mine", 4), .role = WEIR__AMQP_RECEIVER};
    struct weir__amqp_session *s;
    struct weir__amqp_link *l;
    struct told *told;

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){.client = true}, &(struct manners){0});
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, SAY_OPEN);
    assert_int_equal(weir__amqp_begin(p.side.e, &s, NULL), 0);
    assert_int_equal(weir__amqp_attach(s, &t, &l, NULL), 0);
    peer_say(&p, 77, "11: 60 0000 43 70 00000800 70 00000800");
    peer_say(&p, 77, "12: a1 05 'other' 52 05 41 40 40 00 53 28 45 00 53 29 45");
    peer_say(&p, 77, "12: a1 04 'mine' 52 09 42 40 40 00 53 28 45 00 53 29 45 40 40 52 07");
    expect(&p.side, WEIR__AMQP_EVENT_OPEN);
    assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_BEGIN)->session, s);
    assert_true(expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->incoming);
    assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link, l);
    assert_int_equal(weir__amqp_flow(l, 1, false), 0);
    peer_say(&p, 77, "14: 52 09 52 64 a0 01 'x' 43 41 42 | 'hi'");
    told = expect(&p.side, WEIR__AMQP_EVENT_TRANSFER);
    assert_ptr_equal(told->link, l);
    assert_int_equal(told->delivery.id, 100);
    peer_fini(&p);
}

/* The longest name, and one byte more: theirs, and ours. */
static void a_name_has_its_longest(void **state)
{
    static char name[WEIR__AMQP_NAME_MAX + 1], attach[3 * WEIR__AMQP_NAME_MAX];
    struct weir__amqp_terms t = {.role = WEIR__AMQP_RECEIVER};
    struct manners m = {.trusted = true};

    (void)state;
    memset(name, 'n', sizeof name);
    for (uint32_t len = WEIR__AMQP_NAME_MAX; len <= WEIR__AMQP_NAME_MAX + 1; len++) {
        struct weir__amqp_composite c;
        struct weir__amqp_link *ours;
        bool good = len == WEIR__AMQP_NAME_MAX;
        snprintf(attach, sizeof attach,
                 "00 53 12 d0 %08x 00000007 b1 %08x '%.*st' 43 42 40 40 00 53 28 45 00 53 29 45",
                 4 + 5 + len + 12, len, (int)len - 1, name);
        peer_open(&p, &(struct weir__amqp_options){0}, &m);
        t.name = weir__bytes_of(name, len);
        assert_int_equal(weir__amqp_attach(p.side.told[1].session, &t, &ours, NULL),
                         good ? 0 : WEIR_ETOOBIG);
        peer_listen(&p);
        if (good) peer_hear(&p, WEIR__AMQP_ATTACH);
        peer_say(&p, 0, attach);
        c = peer_hear(&p, good ? WEIR__AMQP_ATTACH : WEIR__AMQP_END);
        if (!good) assert_condition(&c.end.error, WEIR__AMQP_COND_LIMIT);
        peer_fini(&p);
    }
}

/* Everything that was begun ends, in order, when the road is lost. */
static void all_ends_when_the_road_is_lost(void **state)
{
    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, SAY_RECEIVER);
    peer_say(&p, 1, SAY_BEGIN);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    weir__amqp_lost(p.side.e);
    take_events(&p.side);
    expect(&p.side, WEIR__AMQP_EVENT_END);
    expect(&p.side, WEIR__AMQP_EVENT_DETACH);
    expect(&p.side, WEIR__AMQP_EVENT_DETACH);
    expect(&p.side, WEIR__AMQP_EVENT_END);
    assert_false(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->local);
    expect_nothing(&p.side);
    peer_fini(&p);
}

static void refuse_in_vain(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_not_equal(weir__amqp_refuse(ev->link, &stolen, WEIR__AMQP_ECHO_NONE, NULL), 0);
}

/* Here because the name alone fills the peer's frame, elsewhere because memory has run out: the peer
 * is not left waiting for an answer that never comes. */
static void a_refusal_that_cannot_be_written_closes(void **state)
{
    static char name[WEIR__AMQP_NAME_MAX + 1], attach[3 * WEIR__AMQP_NAME_MAX];
    struct weir__amqp_composite c;

    (void)state;
    memset(name, 'n', WEIR__AMQP_NAME_MAX);
    snprintf(attach, sizeof attach,
             "00 53 12 d0 %08x 00000007 b1 %08x '%s' 43 42 40 40 00 53 28 45 00 53 29 45",
             4 + 5 + WEIR__AMQP_NAME_MAX + 12, WEIR__AMQP_NAME_MAX, name);
    peer_init(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    weir__amqp_trust(p.side.e);
    p.side.on = refuse_in_vain;
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 70 00000200");
    peer_say(&p, 0, SAY_BEGIN);
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    peer_hear(&p, WEIR__AMQP_BEGIN);
    peer_say(&p, 0, attach);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_INTERNAL);
    assert_true(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_an_attach_and_a_detach),
        cmocka_unit_test(a_refusal_may_repeat_the_peers_end),
        cmocka_unit_test(an_attach_is_answered_in_full),
        cmocka_unit_test(an_owner_may_insist_on_settled),
        cmocka_unit_test(the_peers_detach_is_answered),
        cmocka_unit_test(an_attach_may_be_taken_back),
        cmocka_unit_test(a_refusal_may_come_late),
        cmocka_unit_test(a_refusal_that_cannot_be_written_closes),
        cmocka_unit_test(channels_and_handles_need_not_agree),
        cmocka_unit_test(a_name_has_its_longest),
        cmocka_unit_test(all_ends_when_the_road_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
