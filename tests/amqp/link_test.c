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
    struct weir__amqp_composite c, inner;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    p.side.on = accept_with_terms;
    peer_say(&p, 0, "12: a1 03 'eh1' 43 42 40 40 40 00 53 29 c0 06 01 a1 03 'eh1' 40 40 43");
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.source.type, WEIR__AMQP_DESCRIBED); /* it was null */
    assert_int_equal(weir__amqp_composite_of(&c.attach.target,
                                             WEIR__AMQP_KIND_SET(WEIR__AMQP_TARGET), &inner, NULL),
                     0);
    assert_bytes(inner.target.address.bytes, weir__bytes_of("eh1", 3)); /* as it was */
    assert_int_equal(c.attach.role.u, WEIR__AMQP_RECEIVER);
    assert_int_equal(c.attach.max_message_size.u, 1048576);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_MIXED);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.link_credit.u, 1000);
    assert_int_equal(c.flow.delivery_count.type, WEIR__AMQP_UINT);
    assert_int_equal(c.flow.next_incoming_id.type, WEIR__AMQP_UINT);
    assert_int_equal(c.flow.incoming_window.u, 256);
    peer_say(&p, 0, "12: a1 01 'r' 52 07 41 50 01 50 01 00 53 28 c0 06 01 a1 03 'eh2' 00 53 29 45");
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(weir__amqp_composite_of(&c.attach.source,
                                             WEIR__AMQP_KIND_SET(WEIR__AMQP_SOURCE), &inner, NULL),
                     0);
    assert_bytes(inner.source.address.bytes, weir__bytes_of("eh2", 3));
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

static void accept_in_vain(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms t = {.credit = 10};

    (void)s;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_not_equal(weir__amqp_accept(ev->link, &t, NULL), 0);
}

/* An attach that does not fit a frame of the peer's, theirs or ours: the owner learns it, and the
 * peer hears nothing of the link, and no credit for it. */
static void an_attach_that_cannot_be_written(void **state)
{
    static char name[WEIR__AMQP_NAME_MAX + 1], attach[3 * WEIR__AMQP_NAME_MAX];
    struct weir__amqp_terms t = {.role = WEIR__AMQP_RECEIVER, .credit = 10};
    struct weir__amqp_link *ours;

    (void)state;
    memset(name, 'n', WEIR__AMQP_NAME_MAX);
    snprintf(attach, sizeof attach,
             "00 53 12 d0 %08x 00000007 b1 %08x '%s' 43 42 40 40 00 53 28 45 00 53 29 45",
             4 + 5 + WEIR__AMQP_NAME_MAX + 12, WEIR__AMQP_NAME_MAX, name);
    peer_init(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    weir__amqp_trust(p.side.e);
    p.side.on = accept_in_vain;
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 70 00000200");
    peer_say(&p, 0, SAY_BEGIN);
    p.heard_at = p.heard_len;
    peer_say(&p, 0, attach);
    peer_hear_nothing(&p);

    t.name = weir__bytes_of(name, WEIR__AMQP_NAME_MAX);
    assert_int_not_equal(weir__amqp_attach(p.side.told[1].session, &t, &ours, NULL), 0);
    peer_listen(&p);
    peer_hear_nothing(&p);
    t.name = weir__bytes_of(name, 1);
    assert_int_equal(weir__amqp_attach(p.side.told[1].session, &t, &ours, NULL), 0);
    peer_listen(&p);
    peer_hear(&p, WEIR__AMQP_ATTACH);
    peer_hear(&p, WEIR__AMQP_FLOW);
    peer_hear_nothing(&p);
    peer_say(&p, 0, "16: 43 41"); /* of a link that was never answered, and cannot be */
    peer_hear_nothing(&p);
    assert_true(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

/* An answer belongs to the link of its name; one letter more or another is another link. */
static void an_answer_finds_its_link_by_name(void **state)
{
    static const char *const names[] = {"link", "linj", "lin", "links"};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    struct weir__amqp_link *ours[4];
    char attach[160];

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){.trusted = true});
    for (size_t i = 0; i < 4; i++) {
        t.name = weir__bytes_of(names[i], strlen(names[i]));
        assert_int_equal(weir__amqp_attach(p.side.told[1].session, &t, &ours[i], NULL), 0);
    }
    peer_listen(&p);
    for (size_t i = 0; i < 4; i++) {
        size_t at = i ^ 1;
        snprintf(attach, sizeof attach,
                 "12: a1 %02zx '%s' 52 %02zx 41 40 40 00 53 28 45 00 53 29 45", strlen(names[at]),
                 names[at], i);
        peer_say(&p, 0, attach);
        assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link, ours[at]);
    }
    peer_fini(&p);
}

/* What links and sessions need is counted while they are there, and no longer. */
static void memory_is_counted_while_it_is_used(void **state)
{
    static const char attach[] = "12: a1 20 'a name of thirty-two bytes, long' 43 42 40 40 "
                                 "00 53 28 45 00 53 29 45 40 40 43";
    static const uint8_t body[3000];
    struct weir__amqp_link *l;
    size_t before = 0, buffered;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0},
              &(struct manners){.credit = 10, .trusted = true});
    for (int round = 0; round < 5; round++) {
        size_t in_session, in_link;
        peer_say(&p, 1, SAY_BEGIN);
        in_session = weir__amqp_memory(p.side.e);
        peer_say(&p, 1, attach);
        in_link = weir__amqp_memory(p.side.e);
        assert_true(in_link >= in_session + 32);
        peer_say(&p, 1, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
        peer_say(&p, 1, "16: 43 41");
        peer_say(&p, 1, SAY_END);
        p.heard_at = p.heard_len = 0;
        if (round == 1) before = weir__amqp_memory(p.side.e);
        if (round > 1) assert_int_equal(weir__amqp_memory(p.side.e), before);
        if (round > 1) assert_true(in_session > before);
    }
    peer_say(&p, 0, SAY_RECEIVER);
    l = p.side.told[(p.side.count - 1) % PAIR_EVENTS_MAX].link;
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 70 00001000");
    before = weir__amqp_memory(p.side.e);
    buffered = weir__amqp_buffered(p.side.e);
    for (int i = 0; i < 10; i++)
        assert_int_equal(weir__amqp_send(l, weir__bytes_of(body, sizeof body), 0, true, NULL), 0);
    assert_in_range(weir__amqp_memory(p.side.e), before + 8 * sizeof body, before + 100000);
    assert_int_equal(weir__amqp_memory(p.side.e) - before,
                     weir__amqp_buffered(p.side.e) - buffered);
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
        cmocka_unit_test(an_attach_that_cannot_be_written),
        cmocka_unit_test(an_answer_finds_its_link_by_name),
        cmocka_unit_test(memory_is_counted_while_it_is_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
