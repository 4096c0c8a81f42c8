/* Silence, slowness and rest, on a clock that the test turns. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10};

static void open_at(int64_t now_ms, const char *open)
{
    struct weir__amqp_options o = {.idle_ms = 30000};

    peer_init(&p, &o, &manners);
    weir__amqp_tick(p.side.e, now_ms);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, open);
    weir__amqp_tick(p.side.e, now_ms);
    peer_hear_header(&p, 0);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_OPEN).open.idle_time_out.u, 30000);
    expect(&p.side, WEIR__AMQP_EVENT_OPEN);
}

/* However the ticks fall, the peer hears something at least twice in its time. */
static void the_peer_hears_from_us_in_time(void **state)
{
    static const uint32_t idles[] = {30000, 60000, 1000, 240000};
    uint64_t seed = 7;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char open[64];
        int64_t now = 500, next = now, last = now;
        snprintf(open, sizeof open, "10: a1 01 'p' 40 40 40 70 %08x", idles[i]);
        open_at(now, open);
        for (int n = 0; n < 500; n++) {
            uint64_t wait = next > now ? (uint64_t)(next - now) : 1;
            now += (int64_t)(wait > 20 ? 1 + random_below(&seed, wait) : wait);
            peer_say_raw(&p, "00000008 02 00 0000");
            next = weir__amqp_tick(p.side.e, now);
            if (weir__amqp_output(p.side.e).len) {
                assert_true(now - last <= idles[i] / 2);
                last = now;
            }
            p.heard_len = p.heard_at = 0;
            peer_listen(&p);
        }
        assert_true(now - last <= idles[i] / 2);
        peer_fini(&p);
    }
}

/* After two fifths of the peer's time, but not more often than every 100 ms; and not to a peer that
 * does not ask for it, or that was told something else meanwhile. */
static void empty_frames_come_when_they_are_due(void **state)
{
    static const struct {
        uint32_t idle;
        int64_t every;
    } rows[] = {{60000, 24000}, {252, 100}, {255, 102}, {1, 100}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char open[64];
        int64_t now = 500;
        snprintf(open, sizeof open, "10: a1 01 'p' 40 40 40 70 %08x", rows[i].idle);
        open_at(now, open);
        for (int n = 0; n < 3; n++) {
            weir__amqp_tick(p.side.e, now + rows[i].every - 1);
            assert_int_equal(weir__amqp_output(p.side.e).len, 0);
            now += rows[i].every;
            peer_say_raw(&p, "00000008 02 00 0000");
            assert_int_equal(weir__amqp_tick(p.side.e, now),
                             now + (rows[i].every < 1000 ? rows[i].every : 1000));
            peer_listen(&p);
            assert_int_equal(p.heard_len - p.heard_at, 8);
            assert_memory_equal(p.heard + p.heard_at, "\0\0\0\010\2\0\0\0", 8);
            p.heard_at = p.heard_len;
        }
        weir__amqp_tick(p.side.e, now += 50);
        peer_say(&p, 0, SAY_BEGIN); /* whose answer is as good as an empty frame */
        peer_hear(&p, WEIR__AMQP_BEGIN);
        weir__amqp_tick(p.side.e, now + rows[i].every - 1);
        peer_listen(&p);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
    open_at(500, SAY_OPEN);
    weir__amqp_tick(p.side.e, 40000);
    assert_int_equal(weir__amqp_output(p.side.e).len, 0);
    peer_fini(&p);
}

static void a_silent_peer_is_closed(void **state)
{
    struct weir__amqp_composite c;
    int64_t next;

    (void)state;
    open_at(1000, SAY_OPEN);
    next = weir__amqp_tick(p.side.e, 20000);
    assert_true(next <= 46000);
    peer_say_raw(&p, "00000008 02 00 0000"); /* heard at the latest now */
    weir__amqp_tick(p.side.e, 40000);
    weir__amqp_tick(p.side.e, 84999);
    take_events(&p.side);
    expect_nothing(&p.side);
    weir__amqp_tick(p.side.e, 85000);
    take_events(&p.side);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_FORCED); /* which clients come back from */
    expect(&p.side, WEIR__AMQP_EVENT_CLOSE);
    peer_fini(&p);
}

/* Clients that look at their links only must learn of it, and with the reason. */
static void a_silent_peers_links_and_sessions_end(void **state)
{
    static const char text[] = "The connection was inactive for more than the allowed 5000 "
                               "milliseconds and is closed by container 'us'.";
    struct weir__amqp_options o = {.idle_ms = 2000, .silence_ms = 5000, .container_id = "us"};
    struct weir__amqp_composite c, error;

    (void)state;
    peer_open(&p, &o, &manners);
    weir__amqp_tick(p.side.e, 1000);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, SAY_RECEIVER);
    weir__amqp_tick(p.side.e, 1000);
    for (int i = 0; i < 3; i++) peer_hear(&p, i == 1 ? WEIR__AMQP_FLOW : WEIR__AMQP_ATTACH);
    weir__amqp_tick(p.side.e, 5999);
    peer_hear_nothing(&p);
    weir__amqp_tick(p.side.e, 6000);
    take_events(&p.side);
    peer_listen(&p);
    for (int i = 0; i < 2; i++) {
        c = peer_hear(&p, WEIR__AMQP_DETACH);
        assert_true(c.detach.closed.u);
        assert_condition(&c.detach.error, WEIR__AMQP_COND_FORCED);
    }
    c = peer_hear(&p, WEIR__AMQP_END);
    assert_condition(&c.end.error, WEIR__AMQP_COND_FORCED);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_int_equal(weir__amqp_composite_of(&c.close.error, WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR),
                                             &error, NULL),
                     0);
    assert_bytes(error.error.description.bytes, weir__bytes_of(text, sizeof text - 1));
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* Neither its silence nor a frame of which half has come: while the owner does not read, nothing
 * that the peer says can be heard. Its time begins anew behind that. */
static void who_is_not_listened_to_is_not_silent(void **state)
{
    static const struct {
        const char *said;
        int64_t patience_ms;
    } rows[] = {{"00000008 02 00 0000", 45000}, {"00000010 02 00 0000 40", 30000}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t now = 1000;
        open_at(now, SAY_OPEN);
        peer_say_raw(&p, rows[i].said);
        weir__amqp_hold(p.side.e, true);
        for (; now < 200000; now += 20000) assert_true(weir__amqp_tick(p.side.e, now) > now);
        weir__amqp_tick(p.side.e, now);
        weir__amqp_hold(p.side.e, false);
        weir__amqp_tick(p.side.e, now + rows[i].patience_ms - 1);
        take_events(&p.side);
        expect_nothing(&p.side);
        weir__amqp_tick(p.side.e, now + rows[i].patience_ms);
        take_events(&p.side);
        assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->condition,
                            WEIR__AMQP_COND_FORCED);
        peer_fini(&p);
    }
}

static void hands_are_shaken_in_time(void **state)
{
    static const char *const beginnings[] = {"'A'", "'AMQP' 03 01 00 00",
                                             "'AMQP' 00 01 00 00 00000030 02 00"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        peer_init(&p, &(struct weir__amqp_options){0}, &manners);
        assert_int_equal(weir__amqp_tick(p.side.e, 70), 10070);
        peer_say_raw(&p, beginnings[i]);
        weir__amqp_tick(p.side.e, 10069);
        take_events(&p.side);
        expect_nothing(&p.side);
        weir__amqp_tick(p.side.e, 10070);
        take_events(&p.side);
        assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->text,
                            "no open within 10000 ms");
        peer_fini(&p);
    }
}

/* One byte now and then keeps a peer alive, but not its frame. */
static void a_frame_must_not_take_for_ever(void **state)
{
    int64_t now = 1000;

    (void)state;
    open_at(now, SAY_OPEN);
    peer_say_raw(&p, "00000080 02 00 0000");
    for (; now < 30000; now += 1000) {
        peer_say_raw(&p, "40");
        assert_true(weir__amqp_tick(p.side.e, now) <= 31000);
    }
    weir__amqp_tick(p.side.e, 30999);
    take_events(&p.side);
    expect_nothing(&p.side);
    assert_int_equal(weir__amqp_tick(p.side.e, 31000), 31000); /* come again at once */
    take_events(&p.side);
    assert_string_equal(p.side.told[p.side.count - 1].text, "a frame took longer than 30000 ms");
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->condition, WEIR__AMQP_COND_FORCED);
    assert_int_equal(weir__amqp_tick(p.side.e, 31001), INT64_MAX); /* never again */
    peer_fini(&p);
}

/* Nor is slow what we do not read, because the owner has not judged the peer yet. */
static void a_frame_that_is_not_read_is_not_slow(void **state)
{
    struct weir__amqp_options o = {.mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                   .handshake_ms = 100000};

    (void)state;
    peer_init(&p, &o, &manners);
    p.side.on = NULL;
    weir__amqp_tick(p.side.e, 1000);
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0, "41: a3 05 'PLAIN' a0 04 00 'a' 00 'b'");
    peer_say_raw(&p, "'AMQP' 00 01");
    weir__amqp_tick(p.side.e, 1000);
    weir__amqp_tick(p.side.e, 50000);
    take_events(&p.side);
    expect(&p.side, WEIR__AMQP_EVENT_SASL);
    expect_nothing(&p.side);
    weir__amqp_sasl_answer(p.side.e, true);
    weir__amqp_tick(p.side.e, 60000);
    weir__amqp_tick(p.side.e, 89999);
    take_events(&p.side);
    expect_nothing(&p.side);
    weir__amqp_tick(p.side.e, 90000);
    take_events(&p.side);
    expect(&p.side, WEIR__AMQP_EVENT_CLOSE);
    peer_fini(&p);
}

static void expect_forced(void)
{
    take_events(&p.side);
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_CLOSE)->condition, WEIR__AMQP_COND_FORCED);
}

/* Nor may a message, of which a frame comes now and then; another one that is whole changes
 * nothing. The time in which the owner does not read is not counted. */
static void a_message_must_not_take_for_ever(void **state)
{
    int64_t now = 1000, next;

    (void)state;
    for (int held = 0; held < 2; held++, now = 1000) {
        open_at(now, SAY_OPEN);
        peer_say(&p, 0, SAY_BEGIN);
        peer_say(&p, 0, SAY_SENDER);
        weir__amqp_tick(p.side.e, now);
        peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'first'");
        p.side.taken = p.side.count;
        if (held) {
            weir__amqp_hold(p.side.e, true);
            weir__amqp_tick(p.side.e, now += 100000);
            weir__amqp_hold(p.side.e, false);
        }
        for (int i = 0; i < 59; i++) {
            peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'more'");
            next = weir__amqp_tick(p.side.e, now += 1000);
            assert_true(next <= (held ? 161000 : 61000));
        }
        weir__amqp_tick(p.side.e, now += 999);
        take_events(&p.side);
        expect_nothing(&p.side);
        weir__amqp_tick(p.side.e, now += 1);
        take_events(&p.side);
        assert_string_equal(p.side.told[p.side.count - 1].text,
                            "a message took longer than 60000 ms");
        expect(&p.side, WEIR__AMQP_EVENT_DETACH);
        expect(&p.side, WEIR__AMQP_EVENT_END);
        expect_forced();
        peer_fini(&p);
    }
}

/* A small buffer goes back at once, one that had to grow when the peer has been quiet. */
static void a_quiet_connection_gives_its_memory_back(void **state)
{
    char large[6000] = "14: 43 52 01 a0 01 'x' 43 42 42 | '";
    size_t busy;

    (void)state;
    memset(large + strlen(large), 'a', sizeof large - 2 - strlen(large));
    large[sizeof large - 2] = '\'';
    open_at(1000, SAY_OPEN);
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'first'");
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'last'");
    busy = weir__amqp_memory(p.side.e);
    weir__amqp_tick(p.side.e, 1100);
    assert_true(weir__amqp_memory(p.side.e) + 4096 < busy);
    peer_say(&p, 0, large);
    busy = weir__amqp_memory(p.side.e);
    weir__amqp_tick(p.side.e, 1500);
    assert_int_equal(weir__amqp_memory(p.side.e), busy);
    weir__amqp_tick(p.side.e, 2600);
    assert_true(weir__amqp_memory(p.side.e) + 5000 < busy);
    assert_true(weir__amqp_memory(p.side.e) < 6000);
    peer_say(&p, 0, "14: 43 52 02 a0 01 'x' 43 42 42 | 'again'");
    assert_int_equal(p.side.told[p.side.count - 1].sum, sum_of(weir__bytes_of("again", 5)));
    peer_fini(&p);
}

static int64_t hear_alive(int64_t now_ms)
{
    peer_say_raw(&p, "00000008 02 00 0000");
    return weir__amqp_tick(p.side.e, now_ms);
}

/* A second after the peer was last heard, to the millisecond, when nothing of it waits. */
static void an_empty_output_goes_back(void **state)
{
    static const uint8_t large[30000];
    const struct weir__buf *out;
    struct weir__amqp_link *l;

    (void)state;
    open_at(1000, SAY_OPEN);
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_RECEIVER);
    l = p.side.told[p.side.count - 1].link;
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(large, sizeof large), 0, true, NULL), 0);
    out = &p.side.e->out;
    peer_listen(&p);
    hear_alive(2000);
    assert_int_equal(weir__amqp_send(l, weir__bytes_of("x", 1), 0, true, NULL), 0);
    assert_int_equal(weir__amqp_tick(p.side.e, 9000), 47000); /* the peer's silence */
    assert_int_equal(weir__amqp_output(p.side.e).len, WEIR__AMQP_TRANSFER_HEAD + 1);
    peer_listen(&p);
    assert_int_equal(hear_alive(10000), 11000);
    assert_int_equal(weir__amqp_tick(p.side.e, 10999), 11000);
    assert_true(out->cap > sizeof large);
    assert_int_equal(weir__amqp_tick(p.side.e, 11000), 55000);
    assert_int_equal(out->cap, 0);
    assert_int_equal(weir__amqp_tick(p.side.e, 11001), 55000); /* there is none to give back */
    peer_fini(&p);
}

/* It is about to be used when an outcome was given that is not written yet. */
static void an_outcome_keeps_its_output(void **state)
{
    struct weir__amqp_link *l;

    (void)state;
    open_at(1000, SAY_OPEN);
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_SENDER);
    l = p.side.told[p.side.count - 1].link;
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'one'");
    weir__amqp_settle(l, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_tick(p.side.e, 2000);
    weir__amqp_tick(p.side.e, 4000);
    assert_true(p.side.e->out.cap > 0);
    p.heard_at = p.heard_len;
    peer_listen(&p);
    peer_hear(&p, WEIR__AMQP_DISPOSITION);
    weir__amqp_tick(p.side.e, 4001);
    assert_int_equal(p.side.e->out.cap, 0);
    peer_fini(&p);
}

/* What messages were put together in is given back when nothing more is coming in. */
static void a_link_keeps_its_place_while_frames_come(void **state)
{
    (void)state;
    open_at(1000, SAY_OPEN);
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one '");
    peer_say(&p, 0, "14: 43 40 40 40 42 42 | 'whole'");
    peer_say_raw(&p, "00000008 02");
    weir__amqp_tick(p.side.e, 1100);
    assert_true(p.side.e->partial_bytes > 0);
    peer_say_raw(&p, "00 0000");
    weir__amqp_tick(p.side.e, 1200);
    assert_int_equal(p.side.e->partial_bytes, 0);
    peer_fini(&p);
}

/* Nor does it give back what a message needs of which more will come. */
static void a_message_keeps_what_has_come_of_it(void **state)
{
    static const char second[] = "12: a1 01 't' 52 01 42 40 40 00 53 28 45 00 53 29 45 40 40 43";

    (void)state;
    open_at(1000, SAY_OPEN);
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, second);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one '");
    peer_say(&p, 0, "14: 52 01 52 01 a0 01 'x' 43 42 41 | 'an'");
    peer_say(&p, 0, "14: 52 01 40 40 40 42 42 | 'other'");
    assert_int_equal(p.side.told[p.side.count - 1].sum, sum_of(weir__bytes_of("another", 7)));
    weir__amqp_tick(p.side.e, 1100);
    weir__amqp_tick(p.side.e, 5000);
    peer_say(&p, 0, "14: 43 40 40 40 42 42 | 'whole'");
    assert_int_equal(p.side.told[p.side.count - 1].sum, sum_of(weir__bytes_of("one whole", 9)));
    peer_fini(&p);
}

/* An owner that cannot take a message yet keeps the event, and with it the bytes. */
static void an_event_in_use_keeps_its_bytes(void **state)
{
    struct weir__amqp_event ev;
    size_t room;

    (void)state;
    open_at(1000, SAY_OPEN);
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_SENDER);
    for (int parts = 1; parts <= 2; parts++) {
        struct weir__bytes body = peer_body(parts == 1 ? "14: 43 43 a0 01 'x' 43 42 42 | 'kept'"
                                                       : "14: 43 52 01 40 40 40 42 | 'kept'");
        if (parts == 2) peer_say(&p, 0, "14: 43 52 01 a0 01 'x' 43 42 41");
        uint8_t *to = weir__amqp_input(p.side.e, &room);
        weir__amqp_frame_head(to, (uint32_t)(8 + body.len), WEIR__AMQP_FRAME_AMQP, 0);
        memcpy(to + 8, body.at, body.len);
        weir__amqp_received(p.side.e, 8 + body.len);
        assert_true(weir__amqp_next(p.side.e, &ev) && ev.type == WEIR__AMQP_EVENT_TRANSFER);
        weir__amqp_tick(p.side.e, INT64_C(10000) * parts);
        weir__amqp_tick(p.side.e, 10000 * parts + 5000);
        weir__amqp_input(p.side.e, &room);
        assert_int_equal(room, 0);
        assert_bytes(ev.delivery.payload, weir__bytes_of("kept", 4));
        assert_false(weir__amqp_next(p.side.e, &ev));
        assert_non_null(weir__amqp_input(p.side.e, &room));
        sample_free(body);
    }
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_hears_from_us_in_time),
        cmocka_unit_test(empty_frames_come_when_they_are_due),
        cmocka_unit_test(a_silent_peer_is_closed),
        cmocka_unit_test(a_silent_peers_links_and_sessions_end),
        cmocka_unit_test(who_is_not_listened_to_is_not_silent),
        cmocka_unit_test(hands_are_shaken_in_time),
        cmocka_unit_test(a_frame_must_not_take_for_ever),
        cmocka_unit_test(a_frame_that_is_not_read_is_not_slow),
        cmocka_unit_test(a_message_must_not_take_for_ever),
        cmocka_unit_test(a_quiet_connection_gives_its_memory_back),
        cmocka_unit_test(an_empty_output_goes_back),
        cmocka_unit_test(an_outcome_keeps_its_output),
        cmocka_unit_test(a_link_keeps_its_place_while_frames_come),
        cmocka_unit_test(a_message_keeps_what_has_come_of_it),
        cmocka_unit_test(an_event_in_use_keeps_its_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
