/* moves_test.c - how partitions come and go is counted, and one that goes does not keep another. */
#include "processor/control.h"

#include "processor/place.h"

static struct weir__control_counts counts(void)
{
    struct weir__control_counts c;

    weir__control_counts(w.control, &c);
    return c;
}

/* ---- what is counted ---- */

static void what_is_given_away_is_a_hand_over(void **state)
{
    (void)state;
    start(4);
    pass(500, "");
    beat("b", 1, 1);
    pass(2000, "b");
    assert_int_equal(counts().handovers, 2);
    assert_int_equal(counts().claims, 6);
    assert_int_equal(counts().lost + counts().takeovers + counts().steals + counts().fenced, 0);
}

static void what_is_given_to_nobody_is_no_hand_over(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    weir__control_leave(w.control, w.now_ms);
    pass(100, "");
    expect("0>a +0 ~0 0>nobody -0shutdown leave ");
    assert_int_equal(counts().handovers + counts().lost, 0);
}

static void what_was_a_dead_ones_is_a_take_over(void **state)
{
    (void)state;
    own(0, "b", 1);
    start(1);
    pass(6000, "");
    expect("0>a +0 ");
    assert_int_equal(counts().takeovers, 1);
    assert_int_equal(counts().handovers + counts().lost + counts().steals, 0);
}

static void what_is_not_given_is_a_theft(void **state)
{
    (void)state;
    own(0, "b", 1);
    own(1, "b", 1);
    beat("b", 1, 1);
    start(2);
    pass(14000, "b");
    expect("1>a +1 ");
    assert_int_equal(counts().steals, 1);
    w.reads = 0;
    pass(2000, "b"); /* it waits for nothing any more */
    assert_in_range(w.reads, 2, 4);
    assert_int_equal(counts().takeovers + counts().handovers + counts().lost, 0);
}

static void what_another_has_is_a_loss(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    own(1, "c", 1);
    pass(1000, "");
    expect("0>a +0 1>a +1 -1lost ");
    assert_int_equal(counts().lost, 1);
    assert_int_equal(counts().handovers + counts().takeovers + counts().steals, 0);
}

/* ---- what comes together ---- */

/* What the program has released leaves room for others to be drained. */
static void what_was_released_is_over(void **state)
{
    (void)state;
    start(4);
    pass(500, "");
    expect("0>a +0 1>a +1 2>a +2 3>a +3 ");
    weir__control_drained(w.control, w.now_ms, 0, 100);
    pass(400, "");
    expect("0>nobody -0released 0>a +0 ");
    beat("b", 1, 1);
    pass(2000, "b");
    expect("~2 ~3 2>b -2moved 3>b -3moved ");
}

/* They come while three are waiting to be claimed, in a ring that has gone round. */
static void more_partitions_forget_none_that_waits(void **state)
{
    struct weir__control_step s;

    (void)state;
    own(0, "a", 1);
    start(4);
    pass(500, "");
    expect("+0 1>a +1 2>a +2 3>a +3 ");
    for (uint32_t p = 1; p < 4; p++) own(p, "", 0);
    weir__control_doubt(w.control, w.now_ms, 0);
    weir__control_next(w.control, w.now_ms, &s);
    assert_int_equal(s.what, WEIR__CONTROL_READ);
    read_rows(s.view);
    weir__control_answer(w.control, w.now_ms, 0, NULL);
    for (int i = 0; i < 4; i++) {
        weir__control_next(w.control, w.now_ms, &s);
        follow(&s);
    }
    expect("<0 -1lost -2lost -3lost ");
    assert_int_equal(weir__control_grow(w.control, ROWS, NULL), 0);
    pass(100, "");
    expect("1>a +1 2>a +2 3>a +3 4>a +4 5>a +5 6>a +6 7>a +7 ");
}

/* They also come while stops are waiting to be told. */
static void more_partitions_forget_none_that_is_to_stop(void **state)
{
    struct weir__control_step s;

    (void)state;
    own(0, "a", 1), own(1, "a", 1);
    start(4);
    pass(500, "");
    expect("+0 +1 2>a +2 3>a +3 ");
    for (uint32_t p = 0; p < 4; p++) own(p, "b", 1);
    beat("b", 1, 1);
    weir__control_doubt(w.control, w.now_ms, 0);
    weir__control_next(w.control, w.now_ms, &s);
    assert_int_equal(s.what, WEIR__CONTROL_READ);
    read_rows(s.view);
    weir__control_answer(w.control, w.now_ms, 0, NULL);
    weir__control_next(w.control, w.now_ms, &s);
    follow(&s);
    expect("-0lost ");
    assert_int_equal(weir__control_grow(w.control, ROWS, NULL), 0);
    run();
    assert_memory_equal(w.log, "-1lost -2lost -3lost ", 21);
}

/* As many are to go elsewhere as are to be drained: all of it is done. */
static void drains_and_rewinds_come_together(void **state)
{
    (void)state;
    start(4);
    pass(990, "");
    beat("b", 1, 1);
    pass(309, "");
    expect("0>a +0 1>a +1 2>a +2 3>a +3 ");
    w.rows[0].rewinds++;
    w.rows[1].rewinds++;
    w.change++;
    pass(1, "");
    expect("<0 <1 ~2 ~3 2>b -2moved 3>b -3moved ");
}

/* ---- who has no weight ---- */

/* It takes nothing, and goes on with what it has while nobody else wants it; when it leaves it gives
 * that up like any other. */
static void without_weight_it_leaves_all_the_same(void **state)
{
    struct weir__control_options o = {.id = "a",
                                      .instance = 1,
                                      .partitions = 2,
                                      .beat_ms = 1000,
                                      .expire_ms = 3000,
                                      .settle_ms = 300,
                                      .start_ms = 2000,
                                      .handover_ms = 10000,
                                      .poll_ms = 50};

    (void)state;
    own(0, "a", 1);
    assert_int_equal(weir__control_new(&w.control, &o, NULL), 0);
    pass(5000, "");
    expect("+0 ");
    weir__control_leave(w.control, w.now_ms);
    pass(100, "");
    expect("~0 0>nobody -0shutdown leave ");
    assert_true(w.done);
}

/* ---- at its own pace ---- */

/* The next one is taken when the gap is over, not at the next beat, also when the one before was lost
 * meanwhile. */
static void the_gap_is_over_to_the_millisecond(void **state)
{
    (void)state;
    start_paced(2, 300, 5000);
    pass(500, "");
    expect("0>a +0 ");
    own(0, "b", 1);
    pass(4799, "b");
    expect("-0lost ");
    pass(1, "b");
    expect("1>a +1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_away_is_a_hand_over),
        TEST(what_is_given_to_nobody_is_no_hand_over),
        TEST(what_was_a_dead_ones_is_a_take_over),
        TEST(what_is_not_given_is_a_theft),
        TEST(what_another_has_is_a_loss),
        TEST(what_was_released_is_over),
        TEST(more_partitions_forget_none_that_waits),
        TEST(more_partitions_forget_none_that_is_to_stop),
        TEST(drains_and_rewinds_come_together),
        TEST(without_weight_it_leaves_all_the_same),
        TEST(the_gap_is_over_to_the_millisecond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
