/* control_test.c - what one copy's control does, written down as place.h says. */
#include "processor/control.h"

#include "processor/place.h"

#define ALL_STARTED "0>a +0 1>a +1 2>a +2 3>a +3 "

/* ---- alone ---- */

static void alone_takes_all_when_it_has_looked_around(void **state)
{
    (void)state;
    start(4);
    pass(250, "");
    expect("");
    pass(250, "");
    expect(ALL_STARTED);
}

static void greedy_does_not_look_around(void **state)
{
    (void)state;
    start_paced(4, 0, 0);
    pass(0, "");
    expect(ALL_STARTED);
}

static void balanced_takes_one_in_a_beat(void **state)
{
    (void)state;
    start_paced(4, 300, 1000);
    pass(500, "");
    expect("0>a +0 ");
    pass(1000, "");
    expect("1>a +1 ");
    pass(1900, "");
    expect("2>a +2 3>a +3 ");
}

static void idle_it_calls_twice_in_a_beat(void **state)
{
    (void)state;
    start(4);
    pass(2000, "");
    w.beats = w.reads = 0;
    pass(10000, "");
    assert_in_range(w.beats, 9, 11);
    assert_in_range(w.reads, 9, 11);
}

static void takes_its_former_partitions_back(void **state)
{
    (void)state;
    own(0, "a", 77);
    own(1, "a", 77);
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
}

static void does_nothing_while_its_name_lives(void **state)
{
    (void)state;
    beat("a", 99, 1);
    w.beat_rc = WEIR_EEXIST;
    start(2);
    pass(5000, "");
    expect("");
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
    w.beat_rc = 0;
    pass(2000, "");
    expect("0>a +0 1>a +1 ");
}

/* ---- answers that do not come ---- */

static void finds_a_claim_done_that_was_not_answered(void **state)
{
    (void)state;
    start(1);
    w.lost_reply = true;
    pass(600, "");
    expect("0>a +0 ");
    assert_int_equal(w.rows[0].epoch, 1);
}

static void claims_again_what_was_not_done(void **state)
{
    (void)state;
    start(1);
    pass(250, "");
    w.away = true;
    pass(1000, "");
    assert_true(weir__control_unanswered_since(w.control) > 0);
    w.away = false;
    pass(2000, "");
    expect("0>a +0 ");
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
}

static void finds_a_gift_done_that_was_not_answered(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    beat("b", 1, 1);
    w.lost_reply = true;
    pass(3000, "b");
    expect("~1 1>b -1moved ");
    assert_int_equal(w.rows[1].epoch, 2);
}

static void keeps_what_it_has_while_the_store_is_away(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(2, "b", 1), own(3, "b", 1);
    start(4);
    pass(3000, "b");
    expect("0>a +0 1>a +1 ");
    w.away = true;
    pass(60000, "");
    w.away = false;
    pass(1500, ""); /* b is not heard yet */
    expect("");
    pass(20000, "b");
    expect("");
}

static void takes_from_the_dead_only_after_having_listened(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1);
    w.now_ms += 3600000; /* b has been silent for an hour, but who knows why */
    start(1);
    pass(3900, "");
    expect("");
    pass(300, "");
    expect("0>a +0 ");
}

static void sees_a_death_at_once(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "a", 1);
    start(2);
    pass(10000, "b");
    expect("+1 ");
    pass(2900, ""); /* its last beat was now */
    expect("");
    pass(150, "");
    expect("0>a +0 ");
}

static void a_frozen_copy_counts_nobody_dead(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "a", 1);
    start(2);
    pass(10000, "b");
    expect("+1 ");
    w.now_ms += 60000;
    pass(3000, ""); /* b was stopped with us, and thaws later */
    expect("");
    pass(10000, "b");
    expect("");
}

static void a_clock_that_is_set_kills_nobody(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "a", 1);
    start(2);
    pass(10000, "b");
    expect("+1 ");
    w.store_ms += 3600000;
    pass(10000, "b");
    w.store_ms -= 7200000;
    pass(10000, "b");
    expect("");
}

/* ---- moves ---- */

static void stops_what_another_has(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    beat("b", 1, 1);
    own(1, "b", 1);
    pass(1000, "b");
    expect("-1lost ");
}

static void starts_anew_what_came_back_with_another_epoch(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    own(0, "b", 1), own(0, "a", 1);
    pass(1000, "");
    expect("-0lost +0 ");
}

static void hands_over_directly(void **state)
{
    (void)state;
    start(4);
    pass(500, "");
    expect(ALL_STARTED);
    beat("b", 1, 1);
    pass(3000, "b");
    expect("~2 ~3 2>b -2moved 3>b -3moved ");
}

static void waits_for_members_to_settle_before_it_hands_over(void **state)
{
    (void)state;
    start(4);
    pass(550, "");
    expect(ALL_STARTED);
    w.now_ms = 5990;
    beat("b", 1, 1);
    pass(200, "b"); /* seen at the beat of 6,000 */
    beat("c", 1, 1);
    pass(2000, "bc");
    expect("~2 ~3 2>b -2moved 3>c -3moved ");
}

static void waits_until_it_is_given(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "b", 1);
    start(2);
    pass(2000, "b");
    expect("");
    w.reads = 0;
    pass(500, "b");
    assert_in_range(w.reads, 8, 12); /* it looks every poll_ms */
    own(1, "a", 1);
    pass(60, "b");
    expect("+1 ");
}

static void takes_what_is_not_given_in_time(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "b", 1);
    start(2);
    pass(11900, "b");
    expect("");
    pass(500, "b");
    expect("1>a +1 ");
}

static void restarts_what_nobody_wants_any_more(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    w.slow_handlers = true;
    beat("b", 1, 1);
    pass(2000, "b");
    expect("~1 ");
    w.member_count = 1; /* b leaves before it is given anything */
    pass(2000, "");
    weir__control_drained(w.control, w.now_ms, 1, 0);
    pass(100, "");
    expect("1>a -1moved +1 ");
    assert_int_equal(w.rows[1].epoch, 1); /* it was never another's */
}

/* ---- records ---- */

static void leaves_alone_what_it_cannot_read(void **state)
{
    (void)state;
    w.rows[1].rc = WEIR_ECORRUPT;
    start(3);
    pass(5000, "");
    expect("?1 0>a +0 2>a +2 ");
    w.rows[1].rc = 0;
    w.change++;
    pass(2000, "");
    expect("1>a +1 ");
}

static void stops_what_it_cannot_give_away(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    w.rows[0].rc = WEIR_ECORRUPT;
    w.change++;
    pass(2000, "");
    expect("?0 "); /* it goes on */
    weir__control_drained(w.control, w.now_ms, 0, 1000);
    run();
    expect("-0released ");
}

static void goes_where_a_checkpoint_was_set(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    w.rows[0].rewinds++;
    w.change++;
    pass(3000, "");
    expect("<0 ");
}

static void in_doubt_it_looks(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    weir__control_doubt(w.control, w.now_ms, 1);
    run();
    expect("<1 ");
    beat("b", 1, 1);
    own(1, "b", 1);
    weir__control_doubt(w.control, w.now_ms, 1);
    run();
    expect("-1lost ");
}

/* ---- giving up ---- */

/* Released while the store is away, for so long, and when it was given up at last. */
static int64_t give_up_later(int64_t pause_ms)
{
    int64_t began_ms;

    set_up(NULL);
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    began_ms = w.now_ms;
    w.away = true;
    weir__control_drained(w.control, w.now_ms, 0, pause_ms);
    pass(1000, "");
    w.away = false;
    w.log[0] = '\0';
    while (!strchr(w.log, '>')) pass(1, "");
    return w.now_ms - began_ms;
}

/* It is taken back at once when its rest is over to the millisecond. */
static void what_has_rested_is_not_given_up(void **state)
{
    int64_t took_ms;

    (void)state;
    took_ms = give_up_later(60000);
    assert_non_null(strstr(w.log, "0>nobody "));
    for (int64_t more = 0; more < 2; more++) {
        tear_down(NULL);
        assert_int_equal(give_up_later(took_ms + more), took_ms);
        assert_non_null(strstr(w.log, more ? "0>nobody " : "0>a "));
    }
}

static void what_is_released_rests(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    weir__control_drained(w.control, w.now_ms, 1, 5000);
    pass(4900, "");
    expect("1>nobody -1released ");
    pass(200, "");
    expect("1>a +1 ");
}

static void leaves_everything_to_the_others(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1);
    start(3);
    pass(3000, "b");
    expect("1>a +1 2>a +2 ");
    weir__control_leave(w.control, w.now_ms);
    run();
    expect("~1 ~2 1>b -1shutdown 2>b -2shutdown leave ");
    assert_true(w.done);
    assert_int_equal(w.members[1].weight, 0);
}

static void alone_it_leaves_to_nobody(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    weir__control_leave(w.control, w.now_ms);
    run();
    expect("0>a +0 ~0 0>nobody -0shutdown leave ");
    assert_true(w.done);
}

static void takes_more_when_there_is_more(void **state)
{
    struct weir__control_counts counts;

    (void)state;
    start(1);
    pass(500, "");
    assert_int_equal(weir__control_grow(w.control, 3, NULL), 0);
    pass(100, "");
    expect("0>a +0 1>a +1 2>a +2 ");
    weir__control_counts(w.control, &counts);
    assert_int_equal(counts.claims, 3);
    assert_int_equal(counts.starts, 3);
    assert_int_equal(counts.fenced + counts.takeovers + counts.steals + counts.lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(alone_takes_all_when_it_has_looked_around),
        TEST(greedy_does_not_look_around),
        TEST(balanced_takes_one_in_a_beat),
        TEST(idle_it_calls_twice_in_a_beat),
        TEST(takes_its_former_partitions_back),
        TEST(does_nothing_while_its_name_lives),
        TEST(finds_a_claim_done_that_was_not_answered),
        TEST(claims_again_what_was_not_done),
        TEST(finds_a_gift_done_that_was_not_answered),
        TEST(keeps_what_it_has_while_the_store_is_away),
        TEST(takes_from_the_dead_only_after_having_listened),
        TEST(sees_a_death_at_once),
        TEST(a_frozen_copy_counts_nobody_dead),
        TEST(a_clock_that_is_set_kills_nobody),
        TEST(stops_what_another_has),
        TEST(starts_anew_what_came_back_with_another_epoch),
        TEST(hands_over_directly),
        TEST(waits_for_members_to_settle_before_it_hands_over),
        TEST(waits_until_it_is_given),
        TEST(takes_what_is_not_given_in_time),
        TEST(restarts_what_nobody_wants_any_more),
        TEST(leaves_alone_what_it_cannot_read),
        TEST(stops_what_it_cannot_give_away),
        TEST(goes_where_a_checkpoint_was_set),
        TEST(in_doubt_it_looks),
        TEST(what_has_rested_is_not_given_up),
        TEST(what_is_released_rests),
        TEST(leaves_everything_to_the_others),
        TEST(alone_it_leaves_to_nobody),
        TEST(takes_more_when_there_is_more),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
