/* Messages in one frame and in many, credit, windows, drain, echo. */
#include "peer.h"

#define BIG 100000

static struct pair p;
static struct peer peer;

static struct weir__bytes text(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

/* The client's end and the server's end of one link. */
struct ends {
    struct weir__amqp_link *client, *server;
};

static struct ends join(const struct weir__amqp_options *c, const struct weir__amqp_options *s,
                        struct manners *m, struct weir__amqp_terms *t)
{
    struct weir__amqp_session *session;
    struct ends ends;

    pair_init(&p, c, s);
    p.server.on = be_kind;
    p.server.user = m;
    settle_down(&p);
    t->name = text("link");
    assert_int_equal(weir__amqp_begin(p.client.e, &session, NULL), 0);
    settle_down(&p);
    assert_int_equal(weir__amqp_attach(session, t, &ends.client, NULL), 0);
    settle_down(&p);
    ends.server = p.server.told[2].link;
    assert_int_equal(p.server.told[2].type, WEIR__AMQP_EVENT_ATTACH);
    p.client.taken = p.client.count;
    p.server.taken = p.server.count;
    return ends;
}

static const struct weir__amqp_options plain = {0};
static const struct weir__amqp_options small_frames = {.after.frame_bytes = 512};

/* Each frame holds 470 bytes of a message; all sizes around a frame, and a large one. */
static void messages_are_cut_and_joined(void **state)
{
    static const size_t sizes[] = {0, 1, 469, 470, 471, 939, 940, 941, 5000, BIG};
    struct manners m = {.credit = 100};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    static uint8_t payload[BIG];
    struct ends ends = join(&plain, &small_frames, &m, &t);

    (void)state;
    for (size_t i = 0; i < BIG; i++) payload[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct told *told;
        p.seed = i + 1;
        assert_int_equal(weir__amqp_send(ends.client, weir__bytes_of(payload, sizes[i]), 3, false,
                                         NULL),
                         0);
        settle_down(&p);
        told = expect(&p.server, WEIR__AMQP_EVENT_TRANSFER);
        assert_int_equal(told->delivery.size, sizes[i]);
        assert_int_equal(told->sum, sum_of(weir__bytes_of(payload, sizes[i])));
        assert_int_equal(told->delivery.format, 3);
        assert_int_equal(told->delivery.id, i);
        expect_nothing(&p.server);
    }
    pair_fini(&p);
}

/* A large message goes through a window that is smaller than it, and the next one waits. */
static void a_narrow_window_is_passed(void **state)
{
    struct weir__amqp_options narrow = {.after.frame_bytes = 512, .after.unsettled = 64};
    struct manners m = {.credit = 10};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    static uint8_t payload[BIG];
    struct ends ends = join(&plain, &narrow, &m, &t);

    (void)state;
    memset(payload, 'w', sizeof payload);
    assert_int_equal(weir__amqp_send(ends.client, weir__bytes_of(payload, BIG), 0, true, NULL), 0);
    assert_int_equal(weir__amqp_sendable(ends.client), 0);
    assert_int_equal(weir__amqp_send(ends.client, text("x"), 0, true, NULL), WEIR_EBUSY);
    settle_down(&p);
    assert_int_equal(expect(&p.server, WEIR__AMQP_EVENT_TRANSFER)->delivery.size, BIG);
    assert_int_equal(weir__amqp_send(ends.client, text("x"), 0, true, NULL), 0);
    settle_down(&p);
    assert_int_equal(expect(&p.server, WEIR__AMQP_EVENT_TRANSFER)->delivery.size, 1);
    pair_fini(&p);
}

/* A link keeps the room that its last message needed, but not when another link needs it: only
 * messages of which a part is still to come count against the limit. */
static void a_whole_message_leaves_room_for_others(void **state)
{
    struct weir__amqp_options narrow = {.after.frame_bytes = 512, .after.partial_bytes = 8192};
    struct manners m = {.credit = 10};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    static const uint8_t payload[5000];
    struct ends ends = join(&plain, &narrow, &m, &t);
    struct weir__amqp_session *session = p.client.told[1].session;
    struct weir__amqp_link *links[6] = {ends.client};

    (void)state;
    for (int i = 1; i < 6; i++) {
        t.name = weir__bytes_of(&"abcdef"[i], 1);
        assert_int_equal(weir__amqp_attach(session, &t, &links[i], NULL), 0);
    }
    settle_down(&p);
    p.server.taken = p.server.count;
    for (int i = 0; i < 12; i++) {
        assert_int_equal(weir__amqp_send(links[i % 6], weir__bytes_of(payload, sizeof payload), 0,
                                         false, NULL),
                         0);
        settle_down(&p);
        assert_int_equal(expect(&p.server, WEIR__AMQP_EVENT_TRANSFER)->delivery.payload.len, 5000);
    }
    pair_fini(&p);
}

static void too_large_is_told_not_punished(void **state)
{
    struct manners m = {.credit = 10, .max_message = 1000};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    static const uint8_t payload[3000];
    struct ends ends = join(&plain, &small_frames, &m, &t);
    struct weir__amqp_error error = error_text(WEIR__AMQP_COND_MESSAGE_SIZE, "too large");
    struct told *told;

    (void)state;
    assert_int_equal(weir__amqp_send(ends.client, weir__bytes_of(payload, 1001), 0, false, NULL),
                     0);
    assert_int_equal(weir__amqp_send(ends.client, weir__bytes_of(payload, 1000), 0, false, NULL),
                     0);
    settle_down(&p);
    told = expect(&p.server, WEIR__AMQP_EVENT_TRANSFER);
    assert_true(told->delivery.too_large && told->delivery.size == 1001);
    assert_int_equal(told->delivery.payload.len, 0);
    weir__amqp_settle(ends.server, 0, 0, WEIR__AMQP_REJECTED, &error);
    told = expect(&p.server, WEIR__AMQP_EVENT_TRANSFER);
    assert_true(!told->delivery.too_large && told->delivery.payload.len == 1000);
    settle_down(&p);
    told = expect(&p.client, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(told->settle.outcome, WEIR__AMQP_REJECTED);
    assert_string_equal(told->condition, WEIR__AMQP_COND_MESSAGE_SIZE);
    pair_fini(&p);
}

/* How much an owner has to give. */
static bool give_some(void *left, size_t more)
{
    size_t *bytes = left;

    if (more > *bytes) return false;
    *bytes -= more;
    return true;
}

/* Where the owner has no memory for a message its outcome says so; the link, and messages that there
 * is room for, go on. */
static void no_memory_is_told_not_punished(void **state)
{
    static const uint8_t payload[20000];
    size_t left = 30000;
    struct weir__amqp_options o = {.before.partial_bytes = 65536,
                                   .after.frame_bytes = 512,
                                   .reserve = give_some,
                                   .reserve_data = &left};
    struct manners m = {.credit = 10, .max_message = sizeof payload};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    struct ends ends = join(&plain, &o, &m, &t);
    struct told *told;

    (void)state;
    left = 6000;
    weir__amqp_send(ends.client, weir__bytes_of(payload, sizeof payload), 0, false, NULL);
    settle_down(&p);
    told = expect(&p.server, WEIR__AMQP_EVENT_TRANSFER);
    assert_true(told->delivery.too_large && told->delivery.size == sizeof payload);
    assert_true(told->delivery.size <= weir__amqp_link_max(ends.server));
    assert_int_equal(told->delivery.payload.len, 0);
    left = 100000;
    weir__amqp_send(ends.client, weir__bytes_of(payload, sizeof payload), 0, false, NULL);
    settle_down(&p);
    told = expect(&p.server, WEIR__AMQP_EVENT_TRANSFER);
    assert_true(!told->delivery.too_large && told->delivery.payload.len == sizeof payload);
    pair_fini(&p);
}

/* What a peer may have under way in all is limited; behind the limit nothing is told of it. */
static void too_much_under_way_ends_the_connection(void **state)
{
    struct weir__amqp_options narrow = {.after.frame_bytes = 512, .after.partial_bytes = 8192};
    struct manners m = {.credit = 10};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    static const uint8_t payload[20000];
    struct ends ends = join(&plain, &narrow, &m, &t);

    (void)state;
    weir__amqp_send(ends.client, weir__bytes_of(payload, sizeof payload), 0, false, NULL);
    settle_down(&p);
    expect(&p.server, WEIR__AMQP_EVENT_DETACH);
    expect(&p.server, WEIR__AMQP_EVENT_END);
    assert_string_equal(expect(&p.server, WEIR__AMQP_EVENT_CLOSE)->condition,
                        WEIR__AMQP_COND_LIMIT);
    expect_nothing(&p.server);
    pair_fini(&p);
}

static void credit_is_kept_topped_up(void **state)
{
    struct manners m = {.credit = 10, .accept_deliveries = true};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    struct ends ends = join(&plain, &plain, &m, &t);
    unsigned sent = 0;

    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        while (weir__amqp_send(ends.client, text("m"), 0, false, NULL) == 0) sent++;
        settle_down(&p);
    }
    assert_true(sent >= 50 * 5);
    assert_int_equal(weir__amqp_link_credit(ends.client), weir__amqp_link_credit(ends.server));
    pair_fini(&p);
}

static void drain_uses_up_the_credit(void **state)
{
    struct manners m = {0};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_RECEIVER};
    struct ends ends = join(&plain, &plain, &m, &t);

    (void)state;
    assert_int_equal(weir__amqp_flow(ends.client, 5, true), 0);
    settle_down(&p);
    expect(&p.server, WEIR__AMQP_EVENT_FLOW);
    assert_true(weir__amqp_link_drain(ends.server));
    assert_int_equal(weir__amqp_send(ends.server, text("only"), 0, true, NULL), 0);
    weir__amqp_drained(ends.server);
    settle_down(&p);
    expect(&p.client, WEIR__AMQP_EVENT_TRANSFER);
    expect(&p.client, WEIR__AMQP_EVENT_FLOW);
    assert_int_equal(weir__amqp_link_credit(ends.client), 0);
    assert_int_equal(weir__amqp_link_credit(ends.server), 0);
    assert_int_equal(weir__amqp_flow(ends.client, 2, false), 0);
    settle_down(&p);
    assert_int_equal(weir__amqp_sendable(ends.server), 2);
    assert_false(weir__amqp_link_drain(ends.server));
    pair_fini(&p);
}

/* Credit that is to be used up is not given back meanwhile, and who asks is told that. */
static void a_link_that_drains_is_not_topped_up(void **state)
{
    struct manners m = {.credit = 10, .accept_deliveries = true};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    struct ends ends = join(&plain, &plain, &m, &t);

    (void)state;
    assert_int_equal(weir__amqp_flow(ends.server, 10, true), 0);
    settle_down(&p);
    assert_true(weir__amqp_link_drain(ends.server) && weir__amqp_link_drain(ends.client));
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(weir__amqp_send(ends.client, text("m"), 0, false, NULL), 0);
        settle_down(&p);
    }
    assert_int_equal(weir__amqp_link_credit(ends.client), 2);
    assert_int_equal(weir__amqp_link_credit(ends.server), 2);
    assert_int_equal(weir__amqp_flow(ends.server, 10, false), 0);
    settle_down(&p);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(weir__amqp_send(ends.client, text("m"), 0, false, NULL), 0);
        settle_down(&p);
    }
    assert_true(weir__amqp_link_credit(ends.client) > 2);
    pair_fini(&p);

    peer_open(&peer, &plain, &m);
    peer_say(&peer, 0, SAY_SENDER);
    peer_hear(&peer, WEIR__AMQP_ATTACH);
    peer_hear(&peer, WEIR__AMQP_FLOW);
    assert_int_equal(weir__amqp_flow(expect(&peer.side, WEIR__AMQP_EVENT_ATTACH)->link, 10, true),
                     0);
    peer_listen(&peer);
    assert_int_equal(peer_hear(&peer, WEIR__AMQP_FLOW).flow.drain.u, 1);
    peer_say(&peer, 0, "13: 43 43 43 43 43 43 52 0a 40 42 41");
    assert_int_equal(peer_hear(&peer, WEIR__AMQP_FLOW).flow.drain.u, 1);
    peer_fini(&peer);
}

/* Three messages of two frames each, and place for the rests of two. */
static void a_rest_that_was_sent_leaves_its_place(void **state)
{
    struct weir__amqp_options o = {.after.partial_bytes = 150000};
    struct manners m = {.trusted = true};
    static const uint8_t payload[100000];
    struct weir__bytes message = weir__bytes_of(payload, sizeof payload);
    struct weir__amqp_link *links[3];

    (void)state;
    peer_open(&peer, &o, &m);
    for (uint16_t i = 0; i < 3; i++) {
        if (i) peer_say(&peer, i, SAY_BEGIN);
        if (i) expect(&peer.side, WEIR__AMQP_EVENT_BEGIN);
        peer_say(&peer, i, SAY_RECEIVER);
        links[i] = expect(&peer.side, WEIR__AMQP_EVENT_ATTACH)->link;
        peer_say(&peer, i, "13: 43 52 01 43 43 52 01 43 52 01"); /* a window and a credit of 1 */
        expect(&peer.side, WEIR__AMQP_EVENT_FLOW);
    }
    assert_int_equal(weir__amqp_send(links[0], message, 0, true, NULL), 0);
    assert_int_equal(weir__amqp_send(links[1], message, 0, true, NULL), 0);
    assert_int_equal(weir__amqp_send(links[2], message, 0, true, NULL), WEIR_EBUSY);
    peer_listen(&peer);
    assert_int_equal(weir__amqp_send(links[2], message, 0, true, NULL), WEIR_EBUSY);
    peer_say(&peer, 0, "13: 52 01 52 08 43 43");
    assert_int_equal(weir__amqp_send(links[2], message, 0, true, NULL), 0);
    peer_fini(&peer);
}

/* The last message is only half sent when the owner looks; nobody may ask it to look again. */
static void the_end_of_a_message_answers_a_drain(void **state)
{
    struct manners m = {.trusted = true};
    static const uint8_t payload[150000]; /* three frames */
    struct weir__amqp_composite c;
    struct weir__amqp_link *link;

    (void)state;
    peer_open(&peer, &plain, &m);
    peer_say(&peer, 0, SAY_RECEIVER);
    peer_hear(&peer, WEIR__AMQP_ATTACH);
    link = expect(&peer.side, WEIR__AMQP_EVENT_ATTACH)->link;
    peer_say(&peer, 0, "13: 43 52 01 43 43 52 01 43 52 01 40 41"); /* a window and a credit of 1 */
    assert_int_equal(weir__amqp_send(link, weir__bytes_of(payload, sizeof payload), 0, true, NULL),
                     0);
    weir__amqp_drained(link);
    peer_listen(&peer);
    peer_hear(&peer, WEIR__AMQP_TRANSFER);
    peer_hear_nothing(&peer);
    peer_say(&peer, 0, "13: 52 01 52 08 43 43");
    peer_hear(&peer, WEIR__AMQP_TRANSFER);
    peer_hear(&peer, WEIR__AMQP_TRANSFER);
    c = peer_hear(&peer, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.drain.u, 1);
    assert_int_equal(c.flow.link_credit.u, 0);
    assert_int_equal(c.flow.delivery_count.u, 1);
    weir__amqp_drained(link);
    peer_listen(&peer);
    peer_hear_nothing(&peer);
    peer_fini(&peer);
}

/* Counted from the attach: a message is begun below the limit, and may end above it. */
static void bytes_may_be_limited(void **state)
{
    struct manners m = {0};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_RECEIVER};
    struct ends ends = join(&plain, &plain, &m, &t);

    (void)state;
    weir__amqp_limit(ends.client, 10);
    assert_int_equal(weir__amqp_flow(ends.client, 5, false), 0);
    settle_down(&p);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__amqp_sendable(ends.server), 5 - i);
        assert_int_equal(weir__amqp_send(ends.server, text("eight by"), 0, true, NULL), 0);
    }
    assert_int_equal(weir__amqp_sendable(ends.server), 0);
    assert_int_equal(weir__amqp_send(ends.server, text("no"), 0, true, NULL), WEIR_EBUSY);
    weir__amqp_limit(ends.client, 16); /* as much as was sent */
    settle_down(&p);
    assert_int_equal(weir__amqp_flow(ends.client, 3, false), 0);
    settle_down(&p);
    assert_int_equal(weir__amqp_sendable(ends.server), 0);
    weir__amqp_limit(ends.client, 17);
    assert_int_equal(weir__amqp_flow(ends.client, 3, false), 0);
    settle_down(&p);
    assert_int_equal(weir__amqp_sendable(ends.server), 3);
    pair_fini(&p);
}

static void echo_is_answered(void **state)
{
    struct manners m = {.credit = 7, .no_outcomes = true};
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&peer, &plain, &m);
    peer_say(&peer, 0, SAY_SENDER);
    peer_hear(&peer, WEIR__AMQP_ATTACH);
    peer_hear(&peer, WEIR__AMQP_FLOW);
    peer_say(&peer, 0, "13: 43 43 43 43 40 40 40 40 40 41");
    c = peer_hear(&peer, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.handle.type, WEIR__AMQP_NULL);
    peer_say(&peer, 0, "13: 43 43 43 43 43 43 52 07 40 42 41");
    c = peer_hear(&peer, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.handle.u, 0);
    assert_int_equal(c.flow.link_credit.u, 7);
    peer_hear_nothing(&peer);
    peer_fini(&peer);
}

/* Nothing is told of an aborted message, and what comes behind it is as if it had not been. */
static void aborted_messages_are_forgotten(void **state)
{
    struct manners m = {.credit = 100};
    struct told *told;

    (void)state;
    peer_open(&peer, &plain, &m);
    peer_say(&peer, 0, SAY_SENDER);
    peer_say(&peer, 0, "14: 43 52 0a a0 01 'x' 43 42 41 | 'half'");
    peer_say(&peer, 0, "14: 43 40 40 40 40 42 40 40 40 41 | 'junk'");
    peer_say(&peer, 0, "14: 43 52 0b a0 01 'x' 43 42 42 40 40 40 41 | 'junk'"); /* at once */
    peer_say(&peer, 0, "14: 43 52 0c a0 03 'tag' 43 42 41 | 'to'");
    peer_say(&peer, 0, "14: 43 40 40 40 40 41 | 'get'"); /* nothing repeated */
    peer_say(&peer, 0, "14: 43 52 0c a0 03 'tag' 43 41 42 | 'her'");
    expect(&peer.side, WEIR__AMQP_EVENT_ATTACH);
    told = expect(&peer.side, WEIR__AMQP_EVENT_TRANSFER);
    assert_int_equal(told->sum, sum_of(text("together")));
    assert_int_equal(told->delivery.id, 12);
    assert_bytes(told->delivery.tag, text("tag"));
    assert_true(told->delivery.settled); /* said only at the end */
    expect_nothing(&peer.side);
    peer_fini(&peer);
}

/* The usual forms of a transfer and every other are read alike. */
static void all_forms_of_a_transfer_are_one(void **state)
{
    static const char *const forms[] = {
        "14: 43 43 a0 04 '0123' 43 42 42 | '%s'",
        "14: 70 00000000 70 00000000 a0 04 '0123' 70 00000000 42 42 40 40 40 40 40 | '%s'",
        "14: 70 00000000 70 00000000 a0 04 '0123' 70 00000000 42 42 40 40 40 40 41 | '%s'",
        "14: 52 00 52 00 a0 04 '0123' 52 00 40 40 | '%s'",
        "14: 43 43 b0 00000004 '0123' 43 56 00 56 00 | '%s'",
        "14: 43 43 a0 04 '0123' 40 40 40 50 00 40 42 42 41 | '%s'",
        "14: 43 43 a0 04 '0123' | '%s'",
        /* the descriptor in its other forms: a long number, and its name */
        "00 80 0000000000000014 c0 0a 04 43 43 a0 04 '0123' 43 '%s'",
        "00 a3 12 'amqp:transfer:list' c0 0a 04 43 43 a0 04 '0123' 43 '%s'",
        "00 b3 00000012 'amqp:transfer:list' d0 0000000d 00000004 43 43 a0 04 '0123' 43 '%s'",
    };
    char said[400], filler[101];

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (size_t len = 0; len <= 100; len += 50) {
            struct told *told;
            memset(filler, 'f', sizeof filler);
            filler[len] = '\0';
            /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
            snprintf(said, sizeof said, "%.*s%s'", (int)(strlen(forms[i]) - 3), forms[i], filler);
            peer_open(&peer, &plain, &(struct manners){.credit = 10});
            peer_say(&peer, 0, SAY_SENDER);
            peer_say(&peer, 0, said);
            expect(&peer.side, WEIR__AMQP_EVENT_ATTACH);
            told = expect(&peer.side, WEIR__AMQP_EVENT_TRANSFER);
            assert_int_equal(told->delivery.size, len);
            assert_int_equal(told->sum, sum_of(text(filler)));
            assert_int_equal(told->delivery.tag.len, 4);
            assert_int_equal(told->delivery.format, 0);
            assert_false(told->delivery.settled);
            peer_fini(&peer);
        }
}

/* Whatever is named by a symbol is what it says, not a transfer; also a name that is as long as that of
 * one and has its first letters, which nothing has. */
static void other_performatives_may_be_named_too(void **state)
{
    struct manners m = {0};
    struct weir__amqp_link *link;
    struct told *told;

    (void)state;
    peer_open(&peer, &plain, &m);
    peer_say(&peer, 0, SAY_RECEIVER);
    link = expect(&peer.side, WEIR__AMQP_EVENT_ATTACH)->link;
    peer_hear(&peer, WEIR__AMQP_ATTACH);
    peer_say(&peer, 0, "00 a3 0e 'amqp:flow:list' c0 0b 07 43 52 08 43 43 52 01 43 52 05");
    expect(&peer.side, WEIR__AMQP_EVENT_FLOW);
    assert_int_equal(weir__amqp_sendable(link), 5);
    assert_int_equal(weir__amqp_send(link, text("one"), 0, false, NULL), 0);
    peer_listen(&peer);
    peer_hear(&peer, WEIR__AMQP_TRANSFER);
    peer_say(&peer, 0, "00 b3 00000015 'amqp:disposition:list' c0 09 05 41 43 43 41 00 53 24 45");
    told = expect(&peer.side, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(told->settle.outcome, WEIR__AMQP_ACCEPTED);
    peer_say(&peer, 0, "00 a3 10 'amqp:detach:list' c0 04 02 52 01 41");
    expect(&peer.side, WEIR__AMQP_EVENT_DETACH);
    peer_hear(&peer, WEIR__AMQP_DETACH);
    peer_say(&peer, 0, "00 a3 12 'amqp:transfer:lost' c0 0a 04 43 43 a0 04 '0123' 43");
    expect(&peer.side, WEIR__AMQP_EVENT_END);
    told = expect(&peer.side, WEIR__AMQP_EVENT_CLOSE);
    assert_string_equal(told->condition, WEIR__AMQP_COND_INVALID_FIELD);
    peer_fini(&peer);
}

/* Azure's old JavaScript client makes the tag of a message-id: 36 bytes. */
static void long_tags_are_taken(void **state)
{
    static const unsigned lengths[] = {0, 32, 33, 36, 255, 256};
    char said[800];

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char tag[257] = "";
        memset(tag, 't', lengths[i]);
        snprintf(said, sizeof said, "14; 43 43 b0 %08x '%s' 43 42 42 | 'body'", lengths[i], tag);
        peer_open(&peer, &plain, &(struct manners){.credit = 10});
        peer_say(&peer, 0, SAY_SENDER);
        peer_say(&peer, 0, said);
        expect(&peer.side, WEIR__AMQP_EVENT_ATTACH);
        peer_hear(&peer, WEIR__AMQP_ATTACH);
        peer_hear(&peer, WEIR__AMQP_FLOW);
        if (lengths[i] <= 255)
            assert_int_equal(expect(&peer.side, WEIR__AMQP_EVENT_TRANSFER)->delivery.tag.len,
                             lengths[i]);
        else
            peer_hear(&peer, WEIR__AMQP_END);
        if (lengths[i] > 255)
            assert_string_equal(expect(&peer.side, WEIR__AMQP_EVENT_DETACH)->text,
                                "a delivery-tag of 256 bytes, at most 255 are taken");
        peer_fini(&peer);
    }
}

/* A peer that reads a little at a time never finds the output too full for an answer. */
static void a_slow_reader_is_served(void **state)
{
    struct manners m = {.trusted = true, .no_outcomes = true};
    struct weir__amqp_options o = {.after.output_bytes = 4096};
    static uint8_t payload[1000];
    struct weir__amqp_link *l;
    struct weir__bytes echo = peer_body("13: 40 70 00001000 43 43 52 01 43 70 00100000 40 42 41");
    uint8_t head[WEIR__AMQP_FRAME_HEAD];
    unsigned sent = 0;

    (void)state;
    peer_open(&peer, &o, &m);
    peer_say(&peer, 0, SAY_RECEIVER);
    peer_say(&peer, 0, "13: 40 70 00001000 43 43 52 01 43 70 00100000");
    l = peer.side.told[2].link;
    weir__amqp_frame_head(head, (uint32_t)(8 + echo.len), WEIR__AMQP_FRAME_AMQP, 0);
    for (int i = 0; i < 3000; i++) {
        struct weir__bytes out;
        size_t room;
        uint8_t *to = weir__amqp_input(peer.side.e, &room);
        while (weir__amqp_send(l, weir__bytes_of(payload, 1000), 0, true, NULL) == 0) sent++;
        if (room >= 8 + echo.len) {
            memcpy(to, head, 8);
            memcpy(to + 8, echo.at, echo.len);
            weir__amqp_received(peer.side.e, 8 + echo.len);
        }
        take_events(&peer.side);
        out = weir__amqp_output(peer.side.e);
        weir__amqp_sent(peer.side.e, out.len < 400 ? out.len : 400);
        assert_false(weir__amqp_closed(peer.side.e));
        assert_true(weir__amqp_output(peer.side.e).len <= 2 * 4096 + WEIR__AMQP_ANSWER_BYTES);
    }
    assert_true(sent > 500);
    peer_fini(&peer);
    sample_free(echo);
}

/* When the window was shut, no link is named: all may go on. */
static void an_open_window_is_for_everybody(void **state)
{
    struct manners m = {.no_outcomes = true};

    (void)state;
    peer_open(&peer, &plain, &m);
    peer_say(&peer, 0, SAY_RECEIVER);
    peer_say(&peer, 0, "13: 43 43 43 43 52 01 43 52 05"); /* credit, but no window */
    peer_say(&peer, 0, "13: 43 52 02 43 43 52 01 43 52 05");
    peer_say(&peer, 0, "13: 43 52 03 43 43 52 01 43 52 05");
    expect(&peer.side, WEIR__AMQP_EVENT_ATTACH);
    assert_non_null(expect(&peer.side, WEIR__AMQP_EVENT_FLOW)->link);
    assert_null(expect(&peer.side, WEIR__AMQP_EVENT_FLOW)->link);
    assert_non_null(expect(&peer.side, WEIR__AMQP_EVENT_FLOW)->link);
    peer_fini(&peer);
}

/* Random sends, credits, settlements and pieces of the stream: what a counter beside the engines
 * says may be sent can be, nothing more; and all of it arrives, in order, once. */
static void a_plain_model_agrees(void **state)
{
    struct weir__amqp_options s = {.after.frame_bytes = 1024, .after.unsettled = 64};
    struct manners m = {.accept_deliveries = true};
    static uint8_t sent[2000000], kept[2000000];

    (void)state;
    for (uint64_t round = 1; round <= 30; round++) {
        struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
        struct ends ends = join(&plain, &s, &m, &t);
        size_t sent_len = 0, granted = 0, used = 0;
        uint64_t seed = round * 977;

        p.seed = round;
        p.server.kept = kept;
        p.server.kept_len = 0;
        p.server.kept_max = sizeof kept;
        for (int step = 0; step < 400; step++) {
            size_t len = (size_t)random_below(&seed, random_below(&seed, 8) ? 300 : 9000);
            uint8_t *to;
            switch (random_below(&seed, 4)) {
            case 0:
                granted = used + random_below(&seed, 20);
                settle_down(&p);
                assert_int_equal(weir__amqp_flow(ends.server, (uint32_t)(granted - used), false),
                                 0);
                settle_down(&p);
                assert_int_equal(weir__amqp_link_credit(ends.client), granted - used);
                break;
            case 1: carry(&p, &p.client, &p.server); break;
            case 2: carry(&p, &p.server, &p.client); break;
            default:
                to = weir__amqp_deliver(ends.client, len);
                assert_true(!to || used < granted);
                if (!to || sent_len + len > sizeof sent) break;
                for (size_t i = 0; i < len; i++)
                    sent[sent_len + i] = to[i] = (uint8_t)next_random(&seed);
                weir__amqp_delivered(ends.client, len, 0, len % 2);
                sent_len += len;
                used++;
            }
        }
        settle_down(&p);
        assert_bytes(weir__bytes_of(kept, p.server.kept_len), weir__bytes_of(sent, sent_len));
        assert_int_equal(weir__amqp_link_credit(ends.client), granted - used);
        assert_int_equal(weir__amqp_link_credit(ends.server), granted - used);
        assert_false(weir__amqp_closed(p.client.e) || weir__amqp_closed(p.server.e));
        pair_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_cut_and_joined),
        cmocka_unit_test(a_narrow_window_is_passed),
        cmocka_unit_test(a_whole_message_leaves_room_for_others),
        cmocka_unit_test(too_large_is_told_not_punished),
        cmocka_unit_test(no_memory_is_told_not_punished),
        cmocka_unit_test(too_much_under_way_ends_the_connection),
        cmocka_unit_test(credit_is_kept_topped_up),
        cmocka_unit_test(drain_uses_up_the_credit),
        cmocka_unit_test(a_rest_that_was_sent_leaves_its_place),
        cmocka_unit_test(the_end_of_a_message_answers_a_drain),
        cmocka_unit_test(a_link_that_drains_is_not_topped_up),
        cmocka_unit_test(bytes_may_be_limited),
        cmocka_unit_test(echo_is_answered),
        cmocka_unit_test(aborted_messages_are_forgotten),
        cmocka_unit_test(all_forms_of_a_transfer_are_one),
        cmocka_unit_test(other_performatives_may_be_named_too),
        cmocka_unit_test(long_tags_are_taken),
        cmocka_unit_test(a_slow_reader_is_served),
        cmocka_unit_test(an_open_window_is_for_everybody),
        cmocka_unit_test(a_plain_model_agrees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
