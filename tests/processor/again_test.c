/* again_test.c - partitions that come to one copy's control a second time: nothing is left of the
 * first. And how long it waits for what is to come. Written down as place.h says. */
#include "processor/control.h"

#include "processor/place.h"

/* ---- nothing is left of before ---- */

static void a_start_is_where_the_checkpoint_is(void **state)
{
    (void)state;
    w.rows[0].rewinds = 3;
    own(0, "", 0);
    start(1);
    pass(5000, "");
    expect("0>a +0 ");
}

static void what_was_doubted_before_is_not_now(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    own(0, "b", 1);
    weir__control_doubt(w.control, w.now_ms, 0);
    run();
    own(0, "a", 1);
    pass(3000, "");
    expect("0>a +0 -0lost +0 ");
}

static void what_was_released_before_is_not_now(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    weir__control_drained(w.control, w.now_ms, 0, 1000);
    pass(3000, "");
    weir__control_leave(w.control, w.now_ms);
    run();
    expect("0>a +0 0>nobody -0released 0>a +0 ~0 0>nobody -0shutdown leave ");
}

static void what_was_given_before_is_lost_now(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    beat("b", 1, 1);
    w.lost_reply = true;
    pass(3000, "b");
    expect("0>a +0 1>a +1 ~1 1>b -1moved ");
    own(1, "a", 1);
    w.member_count = 1;
    pass(1000, "");
    beat("b", 1, 1);
    own(1, "b", 1);
    pass(1000, "b");
    expect("+1 -1lost ");
}

static void what_cannot_be_read_again_is_told_again(void **state)
{
    (void)state;
    start(1);
    for (int i = 0; i < 3; i++) {
        w.rows[0].rc = i % 2 == 0 ? WEIR_ECORRUPT : 0;
        w.change++;
        pass(2000, "");
    }
    expect("?0 0>a +0 ?0 ");
}

/* Whoever finishes is not sent elsewhere: the next owner begins there. */
static void what_is_drained_is_not_sent_elsewhere(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    w.slow_handlers = true;
    beat("b", 1, 1);
    pass(2000, "b");
    expect("0>a +0 1>a +1 ~1 ");
    w.rows[1].rewinds++;
    w.change++;
    pass(2000, "b");
    expect("");
    weir__control_drained(w.control, w.now_ms, 1, 0);
    pass(100, "b");
    expect("1>b -1moved ");
}

/* Before the store has shown what we claimed it is looked at again, at once. */
static void what_is_released_at_once_is_given_at_once(void **state)
{
    (void)state;
    start(1);
    pass(300, "");
    expect("0>a +0 ");
    weir__control_drained(w.control, w.now_ms, 0, 60000);
    run();
    expect("0>nobody -0released ");
}

/* ---- how long it waits ---- */

/* b has two that should be ours; how long until it is taken from it? */
static int64_t wait_for_take(void)
{
    int64_t began_ms = w.now_ms;

    while (!strstr(w.log, ">a") && w.now_ms - began_ms < 100000) pass(50, "b");
    return w.now_ms - began_ms;
}

static void as_long_as_others_come_it_waits(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < 4; p++) own(p, "b", 1);
    beat("b", 1, 1);
    start(4);
    pass(10000, "b");
    own(3, "a", 1);
    pass(50, "b");
    expect("+3 ");
    assert_in_range(wait_for_take(), 11900, 12100);
}

static void since_the_store_answers_again_it_waits(void **state)
{
    (void)state;
    own(0, "b", 1), own(1, "b", 1);
    beat("b", 1, 1);
    start(2);
    pass(10000, "b");
    w.away = true;
    pass(1500, "");
    w.away = false;
    assert_in_range(wait_for_take(), 11900, 13100);
}

/* It is not wanted before its rest is over: not looked for every moment, and not overdue then. */
static void what_rests_is_not_waited_for(void **state)
{
    (void)state;
    own(0, "b", 1), own(1, "a", 1);
    beat("b", 1, 1);
    start(2);
    pass(1000, "b");
    weir__control_drained(w.control, w.now_ms, 1, 30000);
    run();
    own(1, "b", 1);
    pass(2000, "b");
    expect("+1 1>nobody -1released ");
    w.reads = 0;
    pass(20000, "b");
    assert_in_range(w.reads, 15, 25);
    assert_in_range(wait_for_take(), 7900 + 12000, 8100 + 12000);
}

/* Until 0 is claimed; with a look at the store in every millisecond, or only when one is due. */
static void wait_for_claim(bool often)
{
    for (int64_t end = w.now_ms + 10000; w.now_ms < end; w.now_ms++) {
        w.log[0] = '\0';
        if (often) weir__control_doubt(w.control, w.now_ms, 1);
        run();
        if (strstr(w.log, "0>a")) return;
    }
}

/* Looked at every millisecond or only when it is due, a death is seen in the same one. */
static void a_death_has_its_millisecond(void **state)
{
    for (int often = 0; often < 2; often++) {
        int64_t last_ms;
        tear_down(state);
        set_up(state);
        own(0, "b", 1), own(1, "a", 1);
        beat("b", 1, 1);
        start(2);
        pass(10000, "b");
        expect("+1 ");
        last_ms = w.now_ms; /* when it was last heard */
        wait_for_claim(often);
        assert_int_equal(w.now_ms - last_ms, 3001);
    }
}

/* So is that of one that has a record and was never heard: a beat later. */
static void an_owner_that_is_not_known_has_its_millisecond(void **state)
{
    for (int often = 0; often < 2; often++) {
        int64_t began_ms;
        tear_down(state);
        set_up(state);
        began_ms = w.now_ms;
        own(0, "b", 1), own(1, "a", 1);
        start(2);
        wait_for_claim(often);
        assert_int_equal(w.now_ms - began_ms, 4001);
    }
}

/* What another start of a living name had is first for that one. */
static void what_a_former_start_had_is_waited_for(void **state)
{
    (void)state;
    own(0, "b", 7), own(1, "b", 7);
    beat("b", 1, 1);
    start(2);
    pass(4000, "b");
    expect("");
    pass(100, "b");
    expect("1>a +1 ");
}

/* ---- what is left for a foreign owner ---- */

/* js has 3 of 4; 2 was just given up for it. */
static void give_up_one(void)
{
    start(4);
    pass(1000, "");
    own(3, "js", 0);
    pass_renewed(3000);
    assert_non_null(strstr(w.log, "~2 2>nobody -2moved "));
    w.log[0] = '\0';
}

/* What was written again meanwhile was somebody's, and lies there since then. */
static void the_pause_begins_when_it_was_last_owned(void **state)
{
    (void)state;
    give_up_one();
    pass_renewed(30000);
    own(2, "", 0);
    pass_renewed(55000);
    assert_null(strstr(w.log, "+2"));
    pass_renewed(10000);
    assert_non_null(strstr(w.log, "2>a +2s "));
}

/* Also what is written again and again in the very moment in which it is looked at. */
static void what_is_written_now_does_not_lie_there(void **state)
{
    (void)state;
    give_up_one();
    for (int i = 0; i < 700; i++, w.now_ms += 100) {
        if (i % 100 == 0) renew("js");
        own(2, "", 0);
        weir__control_doubt(w.control, w.now_ms, 0);
        run();
        assert_null(strstr(w.log, "2>a"));
        w.log[0] = '\0';
    }
}

/* A time that cannot be says nothing. */
static void what_was_written_in_the_future_lies_there_all_the_same(void **state)
{
    static const int64_t times[] = {INT64_MAX / 2, INT64_MIN};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        tear_down(state);
        set_up(state);
        give_up_one();
        w.rows[2].modified_ms = times[i];
        w.change++;
        pass_renewed(50000);
        assert_null(strstr(w.log, "+2"));
        pass_renewed(15000);
        assert_non_null(strstr(w.log, "2>a +2s "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_start_is_where_the_checkpoint_is),
        TEST(what_was_doubted_before_is_not_now),
        TEST(what_was_released_before_is_not_now),
        TEST(what_was_given_before_is_lost_now),
        TEST(what_cannot_be_read_again_is_told_again),
        TEST(what_is_drained_is_not_sent_elsewhere),
        TEST(what_is_released_at_once_is_given_at_once),
        TEST(as_long_as_others_come_it_waits),
        TEST(since_the_store_answers_again_it_waits),
        TEST(what_rests_is_not_waited_for),
        TEST(a_death_has_its_millisecond),
        TEST(an_owner_that_is_not_known_has_its_millisecond),
        TEST(what_a_former_start_had_is_waited_for),
        TEST(the_pause_begins_when_it_was_last_owned),
        TEST(what_is_written_now_does_not_lie_there),
        TEST(what_was_written_in_the_future_lies_there_all_the_same),
    };
    return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
