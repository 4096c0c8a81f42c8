/* edges_test.c - numbers at their edge: the last one that is taken, and the first one that is not; and
 * times to the millisecond. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10, .trusted = true};

static struct weir__amqp_link *last_link(void)
{
    return p.side.told[p.side.count - 1].link;
}

/* ---- limits ---- */

/* As engine.h has them. */
static void limits_have_their_defaults(void **state)
{
    static const struct weir__amqp_limits before = {8192, 8192, 2048, 4096, 64, 8, 256};
    static const struct weir__amqp_limits after = {.frame_bytes = 65536,
                                                   .input_bytes = 262144,
                                                   .output_bytes = 1048576,
                                                   .partial_bytes = 16777216,
                                                   .sessions = 2048,
                                                   .links = 4096,
                                                   .unsettled = 8192};

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    assert_memory_equal(&p.side.e->limits, &before, sizeof before);
    weir__amqp_trust(p.side.e);
    assert_memory_equal(&p.side.e->limits, &after, sizeof after);
    peer_fini(&p);
}

/* Where all that there was room for was used, there is twice as much the next time, up to the limit. */
static void the_input_grows_when_it_is_full(void **state)
{
    size_t room, want = 4096;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_tick(p.side.e, 0); /* gives back what there was */
    for (int i = 0; i < 9; i++) {
        uint8_t *to = weir__amqp_input(p.side.e, &room);
        assert_int_equal(room, want);
        for (size_t at = 0; at < room; at += 8)
            weir__amqp_frame_head(to + at, 8, WEIR__AMQP_FRAME_AMQP, 0);
        weir__amqp_received(p.side.e, i == 3 ? room - 8 : room);
        take_events(&p.side);
        if (i != 3 && want < 262144) want *= 2;
    }
    assert_int_equal(want, 262144);
    assert_false(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

/* The peer's last channel can be used; when it is taken, the lowest that is free. */
static void the_peers_last_channel_is_used(void **state)
{
    static const struct {
        uint16_t theirs, ours;
    } rows[] = {{2, 2}, {5, 0}, {2000, 1}};

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 40 60 0002");
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        peer_say(&p, rows[i].theirs, SAY_BEGIN);
        assert_int_equal(weir__load_be16(p.heard + p.heard_at + 6), rows[i].ours);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_BEGIN).begin.remote_channel.u, rows[i].theirs);
    }
    peer_say(&p, 3, SAY_BEGIN);
    assert_string_equal(p.side.told[p.side.count - 1].text,
                        "no channel or no memory for a session");
    peer_fini(&p);
}

/* Numbers of the peer's may be behind ours by half of all that there are. */
static void numbers_wrap_at_half(void **state)
{
    static const struct {
        const char *said, *text;
    } rows[] = {
        {"13: 70 80000001 70 00000800 43 43", NULL},
        {"13: 70 80000000 70 00000800 43 43", "flow.next-incoming-id 2147483648, the next is 0"},
        {"13: 43 70 00000800 43 43 52 01 70 80000001 52 09", NULL},
        {"13: 43 70 00000800 43 43 52 01 70 80000000 52 09",
         "flow.delivery-count 2147483648, ours is 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, 0, SAY_RECEIVER);
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        peer_say(&p, 0, rows[i].said);
        if (!rows[i].text) {
            expect(&p.side, WEIR__AMQP_EVENT_FLOW);
        } else {
            assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->text, rows[i].text);
            if (i == 1) expect(&p.side, WEIR__AMQP_EVENT_END);
        }
        expect_nothing(&p.side);
        peer_fini(&p);
    }
}

/* ---- what is remembered, and what is passed over ---- */

/* A session that began before trust remembers more after it, and what it knew. */
static void deliveries_are_known_in_a_larger_ring(void **state)
{
    static const char second[] = "12: a1 01 't' 52 02 42 40 40 00 53 28 45 00 53 29 45 40 40 43";
    const struct told *t;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){.credit = 10});
    peer_say(&p, 0, SAY_SENDER);
    for (unsigned id = 254; id < 259; id++) { /* beyond the end of the smaller ring */
        char text[64];
        snprintf(text, sizeof text, "14: 43 70 %08x a0 01 'x' 43 42 42 | 'y'", id);
        peer_say(&p, 0, text);
    }
    weir__amqp_trust(p.side.e);
    peer_say(&p, 0, second);
    p.side.taken = p.side.count;
    peer_say(&p, 0, "15: 42 70 000000ff 70 00000101 41"); /* it settles three of them */
    t = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(t->settle.first, 255);
    assert_int_equal(t->settle.last, 257);
    assert_int_equal(weir__amqp_link_name(t->link).at[0], 's');
    peer_say(&p, 0, "15: 42 43 70 00001000 41"); /* and the others */
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.first, 254);
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.last, 258);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A receiver that has neither settled nor said what it thinks. */
static void no_outcome_is_no_event(void **state)
{
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    l = last_link();
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    assert_int_equal(weir__amqp_send(l, weir__bytes_of("x", 1), 0, false, NULL), 0);
    peer_listen(&p);
    p.side.taken = p.side.count;
    p.heard_at = p.heard_len;
    peer_say(&p, 0, "15: 41 43 43 42");
    expect_nothing(&p.side);
    peer_hear_nothing(&p);
    peer_say(&p, 0, "15: 41 43 43 41");
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.outcome, WEIR__AMQP_KINDS);
    peer_fini(&p);
}

/* ---- the output ---- */

/* A link to send on, and so many bytes of output, of which some were sent. */
static struct weir__amqp_link *open_output(size_t bytes, size_t sent)
{
    static const uint8_t zeros[8192];
    struct weir__amqp_link *l;

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    l = last_link();
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    weir__buf_fini(&p.side.e->out);
    bytes -= WEIR__AMQP_TRANSFER_HEAD;
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(zeros, bytes), 0, true, NULL), 0);
    weir__amqp_sent(p.side.e, sent);
    return l;
}

/* What was sent makes way when there is no other place, or when that is less than what was sent. */
static void what_was_sent_makes_way(void **state)
{
    static const struct {
        size_t sent, max, cap;
    } rows[] = {
        {600, 1024, 1024},                      /* at the maximum: it must */
        {400, 1024, 1024},  {600, 65536, 1024}, /* more was sent than waits: it is worth it */
        {500, 65536, 1024}, {499, 65536, 2048}, /* less: the buffer grows instead */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *l = open_output(1000, rows[i].sent);
        assert_int_equal(p.side.e->out.cap, 1024);
        p.side.e->out.max = rows[i].max;
        assert_int_equal(weir__amqp_send(l, weir__bytes_of("a", 1), 0, true, NULL), 0);
        assert_int_equal(p.side.e->out.cap, rows[i].cap);
        assert_int_equal(weir__amqp_output(p.side.e).len,
                         1000 - rows[i].sent + WEIR__AMQP_TRANSFER_HEAD + 1);
        peer_fini(&p);
    }
}

/* ---- time ---- */

static int64_t say_alive(int64_t now_ms)
{
    peer_say_raw(&p, "00000008 02 00 0000");
    return weir__amqp_tick(p.side.e, now_ms);
}

/* Of all that may become due, the first. */
static void the_next_time_is_the_first(void **state)
{
    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_tick(p.side.e, 1000);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'first'");
    assert_int_equal(weir__amqp_tick(p.side.e, 1000), 2000);  /* rest */
    assert_int_equal(weir__amqp_tick(p.side.e, 2000), 46000); /* the peer's silence */
    say_alive(30000);
    assert_int_equal(weir__amqp_tick(p.side.e, 31000), 61000); /* the message */
    peer_say_raw(&p, "00000080 02 00 0000");
    assert_int_equal(weir__amqp_tick(p.side.e, 31001), 61000);
    weir__amqp_hold(p.side.e, true);
    weir__amqp_tick(p.side.e, 41001);
    weir__amqp_hold(p.side.e, false);
    assert_int_equal(weir__amqp_tick(p.side.e, 41002), 71000); /* ten seconds did not count */
    peer_fini(&p);

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_tick(p.side.e, 1000);
    weir__amqp_tick(p.side.e, 2000);
    weir__amqp_close(p.side.e, NULL);
    assert_int_equal(weir__amqp_tick(p.side.e, 5000), 10000); /* the peer's close */
    assert_int_equal(weir__amqp_tick(p.side.e, 9999), 10000);
    peer_fini(&p);

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    p.side.e->peer_idle_ms = 5000;
    weir__amqp_tick(p.side.e, 1000);
    assert_int_equal(weir__amqp_tick(p.side.e, 2000), 3000); /* a sign of life from us */
    assert_int_equal(weir__amqp_tick(p.side.e, 3000), 5000);
    peer_listen(&p);
    peer_fini(&p);
}

/* Of two messages under way the first, whatever came later. */
static void the_first_message_under_way_counts(void **state)
{
    static const char second[] = "12: a1 01 't' 52 02 42 40 40 00 53 28 45 00 53 29 45 40 40 43";

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    say_alive(1000);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, second);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one'");
    say_alive(31000);
    peer_say(&p, 0, "14: 52 02 52 01 a0 01 'x' 43 42 41 | 'two'");
    say_alive(60999);
    assert_false(weir__amqp_closed(p.side.e));
    say_alive(61000);
    assert_true(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

/* A frame is slow while we read: up to as much output as may wait, and not with more. */
static void a_frame_is_slow_while_we_read(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        weir__amqp_tick(p.side.e, 1000);
        peer_say_raw(&p, "00000080 02 00 0000");
        weir__amqp_tick(p.side.e, 1000);
        weir__amqp_end(p.side.told[1].session, NULL);
        p.side.e->limits.output_bytes = (uint32_t)weir__amqp_output(p.side.e).len - more;
        assert_int_equal(weir__amqp_tick(p.side.e, 2000), more ? 46000 : 31000);
        peer_fini(&p);
    }
}

/* ---- SASL ---- */

/* What the client says first, with a name and a password of so many bytes together. */
static struct weir__bytes first_response(size_t bytes)
{
    static char user[1024], password[1024];
    struct weir__amqp_options o = {.client = true,
                                   .mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                   .user = user,
                                   .password = password};

    memset(user, 'u', 500);
    memset(password, 'p', bytes - 500);
    password[bytes - 500] = '\0';
    peer_init(&p, &o, &manners);
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0, "40: a3 05 'PLAIN'");
    peer_hear_header(&p, 3);
    return peer_hear(&p, WEIR__AMQP_SASL_INIT).sasl_init.initial_response.bytes;
}

/* A longer one is not said, and the server lets nobody in. */
static void a_name_and_a_password_have_1022_bytes(void **state)
{
    struct weir__bytes said = first_response(1022);

    (void)state;
    assert_int_equal(said.len, 1024);
    assert_int_equal(said.at[0], 0);
    assert_int_equal(said.at[1], 'u');
    assert_int_equal(said.at[501], 0);
    assert_int_equal(said.at[502], 'p');
    assert_int_equal(said.at[1023], 'p');
    peer_fini(&p);
    assert_int_equal(first_response(1023).len, 500);
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_have_their_defaults),
        cmocka_unit_test(the_input_grows_when_it_is_full),
        cmocka_unit_test(the_peers_last_channel_is_used),
        cmocka_unit_test(numbers_wrap_at_half),
        cmocka_unit_test(deliveries_are_known_in_a_larger_ring),
        cmocka_unit_test(no_outcome_is_no_event),
        cmocka_unit_test(what_was_sent_makes_way),
        cmocka_unit_test(the_next_time_is_the_first),
        cmocka_unit_test(the_first_message_under_way_counts),
        cmocka_unit_test(a_frame_is_slow_while_we_read),
        cmocka_unit_test(a_name_and_a_password_have_1022_bytes),
    };

    return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
