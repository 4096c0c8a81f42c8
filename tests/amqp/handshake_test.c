/* Headers, SASL, open, and what time does to a peer that does not come to the point. */
#include "amqp/state.h"
#include "peer.h"

#define SASL(hex) peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0, hex)

static struct peer p;

static void offer(uint32_t mechanisms, bool required)
{
    struct weir__amqp_options o = {.mechanisms = mechanisms, .sasl_required = required};
    static struct manners manners;

    peer_init(&p, &o, &manners);
}

static struct weir__amqp_event last_event;

static void remember(struct side *s, const struct weir__amqp_event *ev)
{
    last_event = *ev;
    be_kind(s, ev);
}

static void mechanisms_are_offered_in_order(void **state)
{
    static const char *const names[] = {"MSSBCBS", "PLAIN", "EXTERNAL", "ANONYMOUS"};
    struct weir__amqp_composite c;
    struct weir__amqp_items items;
    struct weir__amqp_value v;

    (void)state;
    offer(15, false);
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    peer_hear_header(&p, 3);
    c = peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
    weir__amqp_items_init(&items, &c.sasl_mechanisms.mechanisms);
    for (size_t i = 0; i < 4; i++) {
        assert_true(weir__amqp_items_next(&items, &v));
        assert_int_equal(v.type, WEIR__AMQP_SYMBOL);
        assert_bytes(v.bytes, weir__bytes_of(names[i], strlen(names[i])));
    }
    assert_false(weir__amqp_items_next(&items, &v));
    peer_fini(&p);
}

/* With a response, with an empty one, without one; header and open follow in the same packet. */
static void anonymous_comes_in_whatever_it_says(void **state)
{
    static const char *const inits[] = {"41: a3 09 'ANONYMOUS' a0 04 00 'key' a1 09 'localhost'",
                                        "41: a3 09 'ANONYMOUS' a0 00", "41: a3 09 'ANONYMOUS'",
                                        "41: a3 07 'MSSBCBS'"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        offer(0, true);
        p.side.on = remember;
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        SASL(inits[i]);
        assert_int_equal(last_event.type, WEIR__AMQP_EVENT_SASL);
        assert_int_equal(last_event.mechanism, i == 3 ? WEIR__AMQP_MSSBCBS : WEIR__AMQP_ANONYMOUS);
        assert_int_equal(last_event.bytes.at != NULL, i < 2);
        peer_say_raw(&p, "'AMQP' 00 01 00 00 00000011 02 00 0000 00 53 10 c0 04 01 a1 01 'c'");
        peer_hear_header(&p, 3);
        peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_SASL_OUTCOME).sasl_outcome.code.u, 0);
        peer_hear_header(&p, 0);
        peer_hear(&p, WEIR__AMQP_OPEN);
        expect(&p.side, WEIR__AMQP_EVENT_SASL);
        expect(&p.side, WEIR__AMQP_EVENT_OPEN);
        assert_int_equal(last_event.mechanism, i == 3 ? WEIR__AMQP_MSSBCBS : WEIR__AMQP_ANONYMOUS);
        peer_fini(&p);
    }
}

/* All that was traced, by direction. */
struct traced {
    uint8_t bytes[2][256];
    size_t len[2];
};

static void note_trace(void *user, bool outgoing, struct weir__bytes frame)
{
    struct traced *t = user;

    assert_true(frame.len <= sizeof t->bytes[0] - t->len[outgoing]);
    memcpy(t->bytes[outgoing] + t->len[outgoing], frame.at, frame.len);
    t->len[outgoing] += frame.len;
}

/* Headers, SASL and AMQP: what is traced is what went over the wire, byte for byte. Our open is made
 * first, and waits. */
static void a_trace_has_every_byte(void **state)
{
    static const char said[] = "'AMQP' 03 01 00 00 "
                               "00000019 02 01 0000 00 53 41 c0 0c 01 a3 09 'ANONYMOUS' "
                               "'AMQP' 00 01 00 00 "
                               "00000019 02 00 0000 00 53 10 c0 0c 05 a1 01 'c' 40 40 40 "
                               "70 000003e8 00000008 02 00 0000";
    struct weir__bytes b = sample_hex(said);
    struct traced traced = {0};
    struct weir__amqp_options o = {.trace = note_trace, .trace_data = &traced};
    struct manners manners = {0};
    size_t open;

    (void)state;
    peer_init(&p, &o, &manners);
    peer_say_bytes(&p, b);
    expect(&p.side, WEIR__AMQP_EVENT_SASL);
    expect(&p.side, WEIR__AMQP_EVENT_OPEN);
    weir__amqp_tick(p.side.e, 1);
    weir__amqp_tick(p.side.e, 1000); /* a sign of life */
    peer_listen(&p);
    assert_int_equal(weir__load_be32(p.heard + p.heard_len - 8), 8);
    p.heard_len -= 8;
    traced.len[1] -= 8;
    assert_memory_equal(traced.bytes[1] + traced.len[1], p.heard + p.heard_len, 8);
    assert_bytes(weir__bytes_of(traced.bytes[0], traced.len[0]), b);
    open = weir__load_be32(traced.bytes[1]);
    assert_true(p.heard_len > open);
    assert_int_equal(traced.len[1], p.heard_len);
    assert_memory_equal(traced.bytes[1], p.heard + p.heard_len - open, open);
    assert_memory_equal(traced.bytes[1] + open, p.heard, p.heard_len - open);
    peer_fini(&p);
    sample_free(b);
}

static void sasl_may_be_skipped_unless_required(void **state)
{
    (void)state;
    offer(0, false);
    p.side.on = remember;
    peer_say_raw(&p, "'AMQP' 00 01 00 00 00000011 02 00 0000 00 53 10 c0 04 01 a1 01 'c'");
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    assert_int_equal(last_event.mechanism, WEIR__AMQP_NO_SASL);
    weir__amqp_sasl_answer(p.side.e, false); /* nobody asked */
    peer_listen(&p);
    peer_hear_nothing(&p);
    assert_false(weir__amqp_closed(p.side.e));
    peer_fini(&p);

    offer(0, true);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_hear_header(&p, 3); /* what is spoken here */
    expect(&p.side, WEIR__AMQP_EVENT_PROTOCOL);
    expect(&p.side, WEIR__AMQP_EVENT_CLOSE);
    peer_fini(&p);
}

static void plain_is_taken_apart(void **state)
{
    static const char *const bad[] = {"41: a3 05 'PLAIN'",
                                      "41: a3 05 'PLAIN' a0 03 'abc'",
                                      "41: a3 05 'PLAIN' a0 04 00 'abc'",
                                      "41: a3 04 'NONE'",
                                      "41: a3 05 'PLAIM' a0 04 00 'a' 00 'b'",
                                      "41: a3 09 'ANONYMOUS'"};

    (void)state;
    offer(WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN), false);
    p.side.on = NULL;
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    SASL("41: a3 05 'PLAIN' a0 0b 'as' 00 'user' 00 'key'");
    expect(&p.side, WEIR__AMQP_EVENT_SASL);
    peer_say_raw(&p, "'AMQP' 00 01 00 00"); /* waits for the answer */
    peer_hear_header(&p, 3);
    peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
    peer_hear_nothing(&p);
    weir__amqp_sasl_answer(p.side.e, false);
    take_events(&p.side);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_SASL_OUTCOME).sasl_outcome.code.u, 1);
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->condition,
                        WEIR__AMQP_COND_UNAUTHORIZED);
    peer_fini(&p);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        offer(WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN), false);
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        SASL(bad[i]);
        peer_hear_header(&p, 3);
        peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_SASL_OUTCOME).sasl_outcome.code.u, 1);
        expect(&p.side, WEIR__AMQP_EVENT_CLOSE);
        peer_fini(&p);
    }
}

/* The certificate says who it is; the response may say it once more. Not offered, not taken. */
static void external_may_say_its_name(void **state)
{
    static const char *const inits[] = {"41: a3 08 'EXTERNAL'", "41: a3 08 'EXTERNAL' a0 00",
                                        "41: a3 08 'EXTERNAL' a0 05 'alice'"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        offer(WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_EXTERNAL), true);
        p.side.on = remember;
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        SASL(inits[i]);
        assert_int_equal(last_event.type, WEIR__AMQP_EVENT_SASL);
        assert_int_equal(last_event.mechanism, WEIR__AMQP_EXTERNAL);
        assert_int_equal(last_event.bytes.len, i == 2 ? 5 : 0);
        peer_hear_header(&p, 3);
        peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_SASL_OUTCOME).sasl_outcome.code.u, 0);
        peer_fini(&p);
    }
    offer(0, true);
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    SASL(inits[0]);
    peer_hear_header(&p, 3);
    peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_SASL_OUTCOME).sasl_outcome.code.u, 1);
    peer_fini(&p);
}

static void plain_credentials(struct side *s, const struct weir__amqp_event *ev)
{
    if (ev->type == WEIR__AMQP_EVENT_SASL) {
        assert_int_equal(ev->mechanism, WEIR__AMQP_PLAIN);
        assert_bytes(ev->user, weir__bytes_of("user", 4));
        assert_bytes(ev->password, weir__bytes_of("p w", 3));
    }
    be_kind(s, ev);
}

static void the_client_gives_what_it_has(void **state)
{
    struct weir__amqp_options c = {.mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                   .user = "user",
                                   .password = "p w",
                                   .hostname = "here"};
    struct weir__amqp_options s = {.mechanisms = 15}, none = {0};
    static struct pair pair;

    (void)state;
    pair_init(&pair, &c, &s);
    pair.server.on = plain_credentials;
    pair.server.user = &(struct manners){0};
    settle_down(&pair);
    expect(&pair.client, WEIR__AMQP_EVENT_OPEN);
    assert_int_equal(pair.client.e->early.cap, 0); /* what it said before the login was written */
    pair_fini(&pair);

    pair_init(&pair, &c, &none); /* which does not offer PLAIN */
    settle_down(&pair);
    assert_string_equal(expect(&pair.client, WEIR__AMQP_EVENT_CLOSE)->condition,
                        WEIR__AMQP_COND_UNAUTHORIZED);
    pair_fini(&pair);

    pair_init(&pair, &none, &none); /* no SASL at all */
    settle_down(&pair);
    expect(&pair.client, WEIR__AMQP_EVENT_OPEN);
    expect(&pair.server, WEIR__AMQP_EVENT_OPEN);
    pair_fini(&pair);
}

/* A server may name one mechanism, or many; names that only look alike are others. */
static void the_client_finds_its_mechanism(void **state)
{
    static const struct {
        bool found;
        const char *hex;
    } rows[] = {
        {true, "40: a3 05 'PLAIN'"},
        {true, "40: e0 0e 02 a3 05 'PLAIM' 05 'PLAIN'"},
        {true, "40: e0 0e 02 a3 05 'PLAIN' 05 'PLAIM'"},
        {false, "40: a3 05 'PLAIM'"},
        {false, "40: a3 06 'PLAINS'"},
        {false, "40: e0 08 01 a3 05 'PLAIM'"},
        {false, "40: e0 08 01 a3 05 'QLAIN'"},
        {false, "40: e0 09 01 a3 06 'PLAINS'"},
        {false, "40: e0 07 01 a3 04 'PLAI'"},
        {false, "40: e0 02 00 a3"},
    };
    struct weir__amqp_options o = {.client = true,
                                   .mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN)};
    struct manners manners = {0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        peer_init(&p, &o, &manners);
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        SASL(rows[i].hex);
        peer_hear_header(&p, 3);
        if (rows[i].found) {
            struct weir__amqp_composite c = peer_hear(&p, WEIR__AMQP_SASL_INIT);
            assert_bytes(c.sasl_init.mechanism.bytes, weir__bytes_of("PLAIN", 5));
        } else {
            assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->condition,
                                WEIR__AMQP_COND_UNAUTHORIZED);
        }
        peer_hear_nothing(&p);
        expect_nothing(&p.side);
        peer_fini(&p);
    }
}

static void other_protocols_are_guessed(void **state)
{
    static const struct {
        enum weir__amqp_guess want;
        bool answered;
        const char *hex;
    } rows[] = {
        {WEIR__AMQP_GUESS_TLS, false, "16 03 01 02 00 01 00 01 fc 03 03"},
        {WEIR__AMQP_GUESS_HTTP, false, "'GET / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'POST /eh1/messages HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'PUT /eh1 HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'HEAD / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'OPTIONS / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'DELETE / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'PATCH / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'CONNECT here HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'TRACE / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_HTTP, false, "'PRI * HTTP/2.0'"},
        {WEIR__AMQP_GUESS_AMQP, true, "'AMQP' 00 00 09 01"},
        {WEIR__AMQP_GUESS_AMQP, true, "'AMQP' 02 01 00 00"},
        {WEIR__AMQP_GUESS_AMQP, true, "'AMQP' 01 01 00 0a"},
        {WEIR__AMQP_GUESS_AMQP, true, "'AMQP' 00 01 00 01"},
        {WEIR__AMQP_GUESS_AMQP, true, "'AMQP' 00 01 01 00"},
        {WEIR__AMQP_GUESS_AMQP, true, "'AMQP' 00 02 00 00"},
        {WEIR__AMQP_GUESS_OTHER, false, "'AMQX' 00 01 00 00"},
        {WEIR__AMQP_GUESS_OTHER, false, "'GETS / HTTP/1.1'"},
        {WEIR__AMQP_GUESS_OTHER, false, "16 02 01 02 00 01 00 01"},
        {WEIR__AMQP_GUESS_OTHER, false, "17 03 01 02 00 01 00 01"},
        {WEIR__AMQP_GUESS_OTHER, false, "'SSH-2.0-OpenSSH'"},
        {WEIR__AMQP_GUESS_OTHER, false, "00 00 00 00 00 00 00 00"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].hex);
        struct weir__amqp_event ev;
        size_t room;

        offer(0, false);
        memcpy(weir__amqp_input(p.side.e, &room), b.at, b.len);
        weir__amqp_received(p.side.e, b.len);
        assert_true(weir__amqp_next(p.side.e, &ev));
        assert_int_equal(ev.type, WEIR__AMQP_EVENT_PROTOCOL);
        assert_int_equal(ev.guess, rows[i].want);
        assert_bytes(ev.bytes, weir__bytes_of(b.at, 8));
        assert_true(weir__amqp_next(p.side.e, &ev) && ev.type == WEIR__AMQP_EVENT_CLOSE);
        assert_false(weir__amqp_next(p.side.e, &ev));
        peer_listen(&p);
        if (rows[i].answered) peer_hear_header(&p, 0);
        peer_hear_nothing(&p);
        peer_fini(&p);
        sample_free(b);
    }
}

static void open_says_how_many_sessions_there_may_be(void **state)
{
    struct weir__amqp_options o = {.after.sessions = 7};
    struct manners manners = {0};
    struct weir__amqp_composite c;

    (void)state;
    for (int given = 0; given < 2; given++) {
        o.channel_max = given ? 3 : 0;
        peer_init(&p, &o, &manners);
        peer_say_raw(&p, "'AMQP' 00 01 00 00");
        peer_hear_header(&p, 0);
        peer_say(&p, 0, SAY_OPEN);
        c = peer_hear(&p, WEIR__AMQP_OPEN);
        assert_int_equal(c.open.channel_max.u, given ? 3 : 6);
        peer_fini(&p);
    }
}

static void open_comes_first_and_only_once(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    offer(0, false);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, SAY_BEGIN);
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN); /* or the error would not be understood */
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_ILLEGAL_STATE);
    peer_fini(&p);

    offer(0, false);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 70 000001ff"); /* frames of 511 bytes */
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_INVALID_FIELD);
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->text,
                        "open.max-frame-size is 511, the least is 512");
    peer_fini(&p);
}

static void close_is_answered_or_forgotten(void **state)
{
    struct weir__amqp_error error = error_text(WEIR__AMQP_COND_FORCED, "going down");
    struct manners manners = {0};
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, "18: 00 53 1d c0 0a 02 a3 03 'x:y' a1 02 'no'");
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, "");
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_END)->condition, "x:y");
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->condition, "x:y");
    peer_fini(&p);

    for (int answered = 0; answered < 2; answered++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        weir__amqp_tick(p.side.e, 1000);
        weir__amqp_close(p.side.e, &error);
        peer_listen(&p);
        c = peer_hear(&p, WEIR__AMQP_CLOSE);
        assert_condition(&c.close.error, WEIR__AMQP_COND_FORCED);
        peer_say(&p, 0, SAY_SENDER); /* too late to matter */
        expect_nothing(&p.side);
        /* The time counts from the first tick behind it, however long ago the last one was. */
        assert_true(weir__amqp_tick(p.side.e, 20000) <= 25000);
        weir__amqp_tick(p.side.e, 24999);
        take_events(&p.side);
        expect_nothing(&p.side);
        if (answered)
            peer_say(&p, 0, SAY_CLOSE);
        else
            weir__amqp_tick(p.side.e, 25000);
        take_events(&p.side);
        expect(&p.side, WEIR__AMQP_EVENT_END);
        assert_string_equal(p.side.told[p.side.taken].text,
                            answered ? "" : "close was not answered");
        assert_true(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->local);
        peer_fini(&p);
    }
}

/* What the owner allows, and no more. */
static void only_what_is_allowed_is_offered(void **state)
{
    static const char *const names[] = {"MSSBCBS", "PLAIN", "EXTERNAL", "ANONYMOUS"};
    struct weir__amqp_composite c;
    struct weir__amqp_items items;
    struct weir__amqp_value item;
    static struct manners kind;
    static struct peer alone;

    (void)state;
    for (uint32_t set = 1; set < 16; set++) {
        peer_init(&alone, &(struct weir__amqp_options){.mechanisms = set}, &kind);
        peer_say_raw(&alone, "'AMQP' 03 01 00 00");
        peer_hear_header(&alone, 3);
        c = peer_hear(&alone, WEIR__AMQP_SASL_MECHANISMS);
        weir__amqp_items_init(&items, &c.sasl_mechanisms.mechanisms);
        for (unsigned m = 0; m < 4; m++) {
            if (!(set & WEIR__AMQP_MECHANISM_SET(m))) continue;
            assert_true(weir__amqp_items_next(&items, &item));
            assert_bytes(item.bytes, weir__bytes_of(names[m], strlen(names[m])));
        }
        assert_false(weir__amqp_items_next(&items, &item));
        peer_fini(&alone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mechanisms_are_offered_in_order),
        cmocka_unit_test(anonymous_comes_in_whatever_it_says),
        cmocka_unit_test(a_trace_has_every_byte),
        cmocka_unit_test(sasl_may_be_skipped_unless_required),
        cmocka_unit_test(plain_is_taken_apart),
        cmocka_unit_test(external_may_say_its_name),
        cmocka_unit_test(the_client_gives_what_it_has),
        cmocka_unit_test(the_client_finds_its_mechanism),
        cmocka_unit_test(other_protocols_are_guessed),
        cmocka_unit_test(open_says_how_many_sessions_there_may_be),
        cmocka_unit_test(open_comes_first_and_only_once),
        cmocka_unit_test(close_is_answered_or_forgotten),
        cmocka_unit_test(only_what_is_allowed_is_offered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
