/* turn_test.c - what a partition's program is called with, and when: pauses after failures, poison,
 * idle calls, turns. Times are exact, as stage.h says. */
#include "processor/stage.h"

/* What the handler fails with: none of our codes. */
#define BAD 77

/* Steps until one of these counts has grown, and returns the time. */
static int64_t next_change(const int *count)
{
    int was = *count;

    for (int64_t end = stage_ms() + 100000; *count == was && stage_ms() < end;)
        assert_int_equal(weir_processor_step(s.processor, 100000, NULL), 0);
    assert_int_equal(*count, was + 1);
    return stage_ms();
}

/* ---- handlers that fail ---- */

static int handled;

static int fail_and_count(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)p, (void)e, (void)n;
    handled++;
    return s.rc;
}

static void a_failing_handler_is_called_less_and_less_often(void **state)
{
    int64_t pause = 50;
    int64_t before;

    (void)state;
    s.end[0] = 5;
    s.rc = BAD;
    s.act = fail_and_count;
    stage_start();
    before = next_change(&handled);
    for (int i = 0; i < 80; i++) {
        int64_t now = next_change(&handled);
        assert_int_equal(now - before, pause);
        before = now;
        pause = pause * 2 < 30000 ? pause * 2 : 30000;
    }
    s.rc = 0;
    next_change(&handled);
    s.rc = BAD;
    stage_publish(0, 1);
    before = next_change(&handled);
    assert_int_equal(next_change(&handled) - before, 50); /* what went well counts */
}

/* What it marked before it failed is not given again, and does not keep the rest from being so. */
static int mark_two_and_fail(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    if (e[n - 1].sequence == 9) return 0;
    assert_int_equal(weir_checkpoint(p, n > 2 ? &e[1] : &e[n - 1]), 0);
    return BAD;
}

static void what_a_failing_handler_marked_is_done(void **state)
{
    (void)state;
    s.end[0] = 5;
    s.act = mark_two_and_fail;
    stage_start();
    stage_pass(1000);
    expect_log("0 +0 0 0:0-4 50 0:2-4 150 0:4-4 ");
    expect_told("0 handling: the handler of partition 0 returned 77\n"
                "50 handling: the handler of partition 0 returned 77\n"
                "150 handling: the handler of partition 0 returned 77\n");
    stage_publish(0, 5);
    stage_pass(1000);
    expect_log("1000 0:5-9 ");
}

static uint64_t poison;

static int fail_on_poison(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (e[i].sequence == poison) return BAD;
    return weir_checkpoint(p, NULL);
}

/* Together until `attempts` have failed, then one by one; the one that fails alone is offered to the
 * dead letters until they take it. */
static void poison_is_found_and_taken_out(void **state)
{
    struct weir_processor_stats stats;

    (void)state;
    poison = 2;
    s.end[0] = 5;
    s.act = fail_on_poison;
    s.letter_refusals = 2;
    s.options.failure = WEIR_DEAD_LETTER;
    s.options.attempts = 3;
    s.options.dead_letter = stage_bury;
    stage_start();
    stage_pass(1000);
    expect_log("0 +0 0 0:0-4 50 0:0-4 150 0:0-4 150 0:0-0 150 0:1-1 150 0:2-2 "
               "150 0:refused2 200 0:refused2 300 0:dead2 300 0:3-3 300 0:4-4 ");
    assert_non_null(strstr(s.told, "dead: the handler of partition 0 returned 77\n"));
    weir_processor_stats(s.processor, &stats);
    assert_int_equal(stats.dead_letters, 1);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.handler_failures, 4);
    assert_int_equal(stats.events, 4);
    assert_int_equal(stats.batches, 8);
    s.log[0] = '\0';
    poison = 7;
    s.letter_refusals = 2;
    stage_publish(0, 3); /* together again, and with as many attempts as before */
    stage_pass(1000);
    expect_log("1000 0:5-7 1050 0:5-7 1150 0:5-7 1150 0:5-5 1150 0:6-6 1150 0:7-7 "
               "1150 0:refused7 1200 0:refused7 1300 0:dead7 ");
    poison = 9;
    stage_publish(0, 2); /* also behind one that was the last */
    stage_pass(1000);
    expect_log("2000 0:8-9 2050 0:8-9 2150 0:8-9 2150 0:8-8 2150 0:9-9 2150 0:dead9 ");
}

/* When the checkpoint is set by hand, nothing is left of what was found out about the events. */
static void what_is_read_again_comes_together(void **state)
{
    struct weir_mark mark = {.sequence = 0};

    (void)state;
    poison = 2;
    s.end[0] = 5;
    s.act = fail_on_poison;
    s.letter_refusals = 1000;
    s.options.failure = WEIR_DEAD_LETTER;
    s.options.attempts = 1;
    s.options.dead_letter = stage_bury;
    stage_start();
    stage_pass(60);
    expect_log("0 +0 0 0:0-4 0 0:0-0 0 0:1-1 0 0:2-2 0 0:refused2 50 0:refused2 ");
    poison = UINT64_MAX;
    assert_int_equal(s.behind->set(s.store, &s.scope, 0, &mark, NULL), 0);
    stage_pass(50);
    s.log[0] = '\0';
    stage_pass(1000);
    assert_non_null(strstr(s.log, "1000 0:1-4 "));
}

/* The last of a batch is poison, or all of it: what comes behind comes together. */
static void poison_at_the_end_is_dropped(void **state)
{
    struct weir_processor_stats stats;

    (void)state;
    poison = 1;
    s.end[0] = 2;
    s.act = fail_on_poison;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 1;
    stage_start();
    stage_pass(100);
    expect_log("0 +0 0 0:0-1 0 0:0-0 0 0:1-1 ");
    stage_publish(0, 2);
    stage_pass(100);
    expect_log("100 0:2-3 ");
    poison = 4;
    stage_publish(0, 1);
    stage_pass(100);
    expect_log("200 0:4-4 "); /* alone already */
    stage_publish(0, 2);
    stage_pass(100);
    expect_log("300 0:5-6 ");
    weir_processor_stats(s.processor, &stats);
    assert_int_equal(stats.dropped, 2);
    assert_int_equal(stats.dead_letters, 0);
    assert_int_equal(stats.events, 5);
}

/* A poison event that was passed is not given to whoever reads next. */
static void what_was_dropped_is_behind_the_mark(void **state)
{
    struct weir_view view = {0};

    (void)state;
    s.end[0] = 1;
    s.act = fail_on_poison;
    poison = 0;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 1;
    s.options.mark_events = 1;
    stage_start();
    stage_pass(100);
    assert_int_equal(s.behind->read(s.store, &s.scope, &view, NULL), 0);
    assert_true(view.records[0].marked);
    assert_int_equal(view.records[0].sequence, 0);
    assert_string_equal(view.records[0].offset, "0");
    weir_view_free(&view);
}

/* After five attempts, if nothing else was said; and not before five seconds again. */
static void who_gives_up_comes_back_later(void **state)
{
    (void)state;
    s.end[0] = 1;
    s.rc = BAD;
    s.options.failure = WEIR_GIVE_UP;
    stage_start();
    stage_pass(5749);
    expect_log("0 +0 0 0:0-0 50 0:0-0 150 0:0-0 350 0:0-0 750 0:0-0 750 -0error ");
    stage_pass(1);
    expect_log("5750 +0 5750 0:0-0 ");
}

static void an_open_that_fails_is_tried_later(void **state)
{
    (void)state;
    s.open_handler_rc = BAD;
    stage_start();
    stage_pass(4999);
    expect_log("0 +0 0 -0error ");
    expect_told("0 handling: the handler's open returned 77\n");
    assert_int_equal(s.opens, 0);
    stage_pass(1);
    expect_log("5000 +0 5000 -0error ");
}

static int release(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e, (void)n;
    weir_partition_release(p);
    return 0;
}

static void what_is_released_comes_back_later(void **state)
{
    struct weir_processor_stats stats;

    (void)state;
    s.end[0] = 1;
    s.act = release;
    stage_start();
    stage_pass(4999);
    expect_log("0 +0 0 0:0-0 0 -0released ");
    weir_processor_stats(s.processor, &stats);
    assert_int_equal(stats.opened, 1);
    assert_int_equal(stats.closed, 1);
    assert_int_equal(stats.owned, 0);
    stage_pass(1);
    expect_log("5000 +0 5000 0:0-0 5000 -0released ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_failing_handler_is_called_less_and_less_often),
        TEST(what_a_failing_handler_marked_is_done),
        TEST(poison_is_found_and_taken_out),
        TEST(what_is_read_again_comes_together),
        TEST(poison_at_the_end_is_dropped),
        TEST(what_was_dropped_is_behind_the_mark),
        TEST(who_gives_up_comes_back_later),
        TEST(an_open_that_fails_is_tried_later),
        TEST(what_is_released_comes_back_later),
    };
    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
