/* due_test.c - when the engine wants to be asked again, to the millisecond. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10, .trusted = true};

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

/* Neither one that has ended nor a link without one is waited for. */
static void nothing_under_way_is_not_waited_for(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        say_alive(1000);
        peer_say(&p, 0, SAY_SENDER);
        if (whole) {
            peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one'");
            peer_say(&p, 0, "14: 43 40 40 40 42 42 | 'two'");
        } else {
            peer_say(&p, 0, "16: 43 41");
        }
        say_alive(41000);
        say_alive(81000);
        assert_int_equal(weir__amqp_tick(p.side.e, 82000), 126000);
        assert_false(weir__amqp_closed(p.side.e));
        peer_fini(&p);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_time_is_the_first),
        cmocka_unit_test(the_first_message_under_way_counts),
        cmocka_unit_test(nothing_under_way_is_not_waited_for),
        cmocka_unit_test(a_frame_is_slow_while_we_read),
    };

    return cmocka_run_group_tests_name("due", tests, NULL, NULL);
}
