/* timing_test.c - when one copy's control calls the store, also when calls take long or fail. */
#include "processor/control.h"

#include "processor/place.h"
#include "support/allocs.h"

static struct weir__control_step s; /* the last */
static uint64_t change_asked;       /* with the last read: what the view held */

/* The next call that is asked for, without its answer; time passes until it is due. */
static enum weir__control_do next_call(void)
{
    for (int steps = 0; steps < 100; steps++) {
        weir__control_next(w.control, w.now_ms, &s);
        if (s.what == WEIR__CONTROL_DONE) return s.what;
        if (s.what == WEIR__CONTROL_READ) {
            change_asked = s.view->change;
            read_rows(s.view);
        }
        if (s.what >= WEIR__CONTROL_BEAT && s.what <= WEIR__CONTROL_LEAVE) return s.what;
        if (s.what == WEIR__CONTROL_WAIT)
            w.now_ms = s.until_ms;
        else
            follow(&s);
    }
    fail_msg("it asks for nothing");
    return WEIR__CONTROL_WAIT;
}

static void answer(int64_t after_ms, int rc)
{
    bool given = rc == 0 && s.what == WEIR__CONTROL_CLAIM;

    w.now_ms += after_ms;
    if (given) own(s.partition, s.owner, s.instance);
    weir__control_answer(w.control, w.now_ms, rc, given ? &w.rows[s.partition] : NULL);
}

/* Answers whatever is asked, until a beat is. */
static void await_beat(void)
{
    while (next_call() != WEIR__CONTROL_BEAT) answer(0, 0);
}

static void tries_again_less_and_less_often(void **state)
{
    static const int64_t pauses[] = {50, 100, 200, 400, 800, 1000, 1000, 1000};

    (void)state;
    start(1);
    for (int times = 0; times < 2; times++) {
        int64_t asked_ms;
        await_beat();
        assert_int_equal(weir__control_unanswered_since(w.control), 0);
        asked_ms = w.now_ms;
        for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
            int64_t before = w.now_ms;
            answer(0, WEIR_EUNREACHABLE);
            assert_true(weir__control_unanswered_since(w.control) == asked_ms);
            assert_int_equal(next_call(), WEIR__CONTROL_BEAT);
            assert_int_equal(w.now_ms - before, pauses[i]);
        }
        answer(0, 0);
        assert_int_equal(next_call(), WEIR__CONTROL_READ);
        answer(0, 0);
    }
}

/* A pause counts from when it was asked; only a short one is added to a call that took longer. */
static void a_slow_failure_is_part_of_its_pause(void **state)
{
    int64_t asked_ms;

    (void)state;
    start(1);
    await_beat();
    for (int i = 0; i < 5; i++) {
        answer(0, WEIR_ETIMEDOUT);
        next_call();
    }
    asked_ms = w.now_ms;
    answer(700, WEIR_ETIMEDOUT);
    assert_int_equal(next_call(), WEIR__CONTROL_BEAT);
    assert_int_equal(w.now_ms - asked_ms, 1000);
    asked_ms = w.now_ms;
    answer(949, WEIR_ETIMEDOUT);
    next_call();
    assert_int_equal(w.now_ms - asked_ms, 1000);
    asked_ms = w.now_ms;
    answer(2000, WEIR_ETIMEDOUT);
    next_call();
    assert_int_equal(w.now_ms - asked_ms, 2050);
}

static void a_store_without_an_answer_at_time_0_is_noticed(void **state)
{
    (void)state;
    w.now_ms = 0;
    start(1);
    assert_int_equal(next_call(), WEIR__CONTROL_BEAT);
    answer(10, WEIR_EUNREACHABLE);
    assert_int_equal(weir__control_unanswered_since(w.control), 1);
}

/* Beats count from when they were asked for; a slow store gets half a beat for other calls. */
static void beats_are_a_beat_apart(void **state)
{
    static const struct {
        int64_t takes_ms, apart_ms;
    } cases[] = {{0, 1000}, {100, 1000}, {500, 1000}, {501, 1001}, {800, 1300}};

    (void)state;
    start(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t asked_ms;
        await_beat();
        asked_ms = w.now_ms;
        answer(cases[i].takes_ms, 0);
        beat("a", 1, 1);
        assert_int_equal(next_call(), WEIR__CONTROL_READ);
        assert_true(w.now_ms == asked_ms + cases[i].takes_ms);
        answer(0, 0);
        await_beat();
        assert_int_equal(w.now_ms - asked_ms, cases[i].apart_ms);
        answer(0, 0);
    }
}

/* A name that is taken is an answer, and a claim that came too late is one. */
static void a_refusal_is_an_answer(void **state)
{
    (void)state;
    start(1);
    await_beat();
    answer(0, WEIR_EEXIST);
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
    assert_int_equal(next_call(), WEIR__CONTROL_READ);
    answer(0, WEIR_EEXIST);
    assert_true(weir__control_unanswered_since(w.control) == w.now_ms);
}

static void a_lost_claim_is_looked_at_soon(void **state)
{
    struct weir__control_counts counts;
    int64_t claimed_ms;

    (void)state;
    start(1);
    beat("a", 1, 1);
    while (next_call() != WEIR__CONTROL_CLAIM) {
        beat("a", 1, 1);
        answer(0, 0);
    }
    claimed_ms = w.now_ms;
    answer(0, WEIR_EFENCED);
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
    assert_int_equal(next_call(), WEIR__CONTROL_READ);
    assert_int_equal(w.now_ms - claimed_ms, 50);
    assert_true(change_asked == 0); /* the records are read again */
    weir__control_counts(w.control, &counts);
    assert_int_equal(counts.fenced, 1);
}

static void a_view_that_cannot_be_used_was_not_read(void **state)
{
    (void)state;
    start(1);
    while (next_call() != WEIR__CONTROL_READ) answer(0, 0);
    allocs_fail(1);
    answer(0, 0);
    assert_true(allocs_failed());
    allocs_fail(0);
    assert_true(weir__control_unanswered_since(w.control) == w.now_ms);
    assert_int_equal(next_call(), WEIR__CONTROL_READ);
    answer(0, 0);
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
}

/* An owner that is silent while our own calls fail may only have the same trouble. */
static void a_failed_call_puts_deaths_off(void **state)
{
    (void)state;
    own(0, "b", 1);
    beat("b", 1, 1);
    start(1);
    pass(1990, "");
    w.away = true;
    pass(310, ""); /* from the last view to the next it is shorter than what is a break by itself */
    w.away = false;
    pass(4050, "");
    expect("");
    pass(1, "");
    expect("0>a +0 ");
}

/* Then the others wait until it has expired. */
static void leaving_is_tried_three_times(void **state)
{
    int64_t at_ms[4];
    int tries = 0;

    (void)state;
    start(1);
    await_beat();
    weir__control_leave(w.control, w.now_ms);
    answer(0, 0);
    for (;;) {
        enum weir__control_do what = next_call();
        if (what == WEIR__CONTROL_DONE) break;
        if (what == WEIR__CONTROL_LEAVE) at_ms[tries++] = w.now_ms;
        if (what == WEIR__CONTROL_BEAT) beat("a", 1, 0);
        answer(0, what == WEIR__CONTROL_LEAVE ? WEIR_EUNREACHABLE : 0);
    }
    assert_int_equal(tries, 3);
    assert_int_equal(at_ms[1] - at_ms[0], 50);
    assert_int_equal(at_ms[2] - at_ms[1], 100);
}

/* The record that comes then has its newest checkpoint, of which no change tells. */
static void in_doubt_everything_is_read_again(void **state)
{
    (void)state;
    beat("a", 1, 1);
    start(1);
    while (next_call() != WEIR__CONTROL_CLAIM) answer(0, 0);
    answer(0, 0);
    await_beat();
    answer(0, 0);
    assert_int_equal(next_call(), WEIR__CONTROL_READ);
    assert_true(change_asked != 0);
    answer(0, 0);
    weir__control_doubt(w.control, w.now_ms, 0);
    assert_int_equal(next_call(), WEIR__CONTROL_READ);
    assert_int_equal(change_asked, 0);
}

/* Until they have settled there is nothing to see that was not seen. */
static void who_comes_is_looked_at_when_it_has_settled(void **state)
{
    (void)state;
    start(4);
    pass(990, "");
    beat("b", 1, 1);
    w.reads = 0;
    pass(309, "");
    assert_int_equal(w.reads, 1);
    pass(1, "");
    assert_int_equal(w.reads, 2);
}

static void more_partitions_do_not_hurry_a_silent_store(void **state)
{
    int reads;

    (void)state;
    start(1);
    pass(990, "");
    w.away = true;
    pass(1100, "");
    reads = w.reads;
    assert_int_equal(weir__control_grow(w.control, 2, NULL), 0);
    run();
    assert_int_equal(w.reads, reads);
}

/* One at a time and in turn: when the store takes too long for all of them, none is left out. */
static void renew_slowly(int64_t takes_ms)
{
    int renewed[ROWS] = {0};

    for (uint32_t p = 0; p < 8; p++) own(p, p < 4 ? "js" : "a", p < 4 ? 0 : 1);
    beat("a", 1, 1);
    start(8);
    for (int calls = 0; calls < 100; calls++) {
        enum weir__control_do what = next_call();
        if (what == WEIR__CONTROL_BEAT) beat("a", 1, 1);
        if (what == WEIR__CONTROL_CLAIM) renewed[s.partition]++;
        answer(what == WEIR__CONTROL_CLAIM ? takes_ms : 0, 0);
        for (uint32_t p = 0; p < 4; p++) own(p, "js", 0);
    }
    for (uint32_t p = 4; p < 8; p++) assert_in_range(renewed[p], renewed[4] - 1, renewed[4]);
    assert_true(renewed[7] > 2);
}

static void slow_renewals_come_in_turn(void **state)
{
    renew_slowly(10000);
    tear_down(state);
    set_up(state);
    renew_slowly(30000); /* all of them are too old then */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tries_again_less_and_less_often),
        TEST(a_slow_failure_is_part_of_its_pause),
        TEST(a_store_without_an_answer_at_time_0_is_noticed),
        TEST(beats_are_a_beat_apart),
        TEST(a_refusal_is_an_answer),
        TEST(a_lost_claim_is_looked_at_soon),
        TEST(a_view_that_cannot_be_used_was_not_read),
        TEST(a_failed_call_puts_deaths_off),
        TEST(leaving_is_tried_three_times),
        TEST(in_doubt_everything_is_read_again),
        TEST(who_comes_is_looked_at_when_it_has_settled),
        TEST(more_partitions_do_not_hurry_a_silent_store),
        TEST(slow_renewals_come_in_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
