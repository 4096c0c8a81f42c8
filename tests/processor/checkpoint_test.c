/* checkpoint_test.c - the marks of one partition: what they refuse, how they coalesce. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "processor/checkpoint.h"

static const struct weir__checkpoint_policy manual;

static struct weir__checkpoint fresh(const struct weir__checkpoint_policy *policy)
{
    struct weir_record record = {.partition = 3, .epoch = 7, .rewinds = 2};
    struct weir__checkpoint c;

    weir__checkpoint_init(&c, &record, policy);
    return c;
}

/* One that begins at a stored checkpoint. */
static struct weir__checkpoint at(uint64_t sequence)
{
    struct weir_record record = {
        .partition = 3, .epoch = 7, .marked = true, .sequence = sequence, .offset = "o"};
    struct weir__checkpoint c;

    weir__checkpoint_init(&c, &record, &manual);
    return c;
}

static void assert_takes(struct weir__checkpoint *c, uint64_t sequence)
{
    struct weir_mark mark;

    assert_true(weir__checkpoint_take(c, 1, &mark));
    assert_int_equal(mark.sequence, sequence);
}

static void assert_takes_none(struct weir__checkpoint *c)
{
    struct weir_mark mark;

    assert_false(weir__checkpoint_take(c, 1, &mark));
}

static void a_mark_carries_the_owners_token(void **state)
{
    struct weir__checkpoint c = fresh(&manual);
    struct weir_mark mark;

    (void)state;
    weir__checkpoint_give(&c, 9, "900");
    assert_int_equal(weir__checkpoint_mark(&c, 3, 9, "900", NULL), 0);
    assert_true(weir__checkpoint_take(&c, 5, &mark));
    assert_int_equal(mark.partition, 3);
    assert_int_equal(mark.epoch, 7);
    assert_int_equal(mark.rewinds, 2);
    assert_int_equal(mark.turn, 5);
    assert_int_equal(mark.sequence, 9);
    assert_string_equal(mark.offset, "900");
}

static void wrong_marks_are_refused(void **state)
{
    struct weir__checkpoint c = at(4);
    struct weir_error err;

    (void)state;
    assert_int_equal(weir__checkpoint_mark(&c, 3, 5, NULL, &err), WEIR_EINVAL);
    weir__checkpoint_give(&c, 9, NULL);
    assert_int_equal(weir__checkpoint_mark(&c, 2, 6, NULL, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "partition 2"));
    assert_int_equal(weir__checkpoint_mark(&c, 3, 10, NULL, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "not given"));
    assert_int_equal(weir__checkpoint_mark(&c, 3, 3, NULL, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "rewind"));
    assert_takes_none(&c);
}

static void the_same_mark_twice_is_written_once(void **state)
{
    struct weir__checkpoint c = at(4);

    (void)state;
    weir__checkpoint_give(&c, 9, NULL);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 4, NULL, NULL), 0);
    assert_takes_none(&c);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 8, NULL, NULL), 0);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 8, NULL, NULL), 0);
    assert_takes(&c, 8);
    weir__checkpoint_answer(&c, 0);
    assert_takes_none(&c);
    assert_true(weir__checkpoint_settled(&c));
}

static void nothing_given_marks_nothing(void **state)
{
    struct weir__checkpoint c = fresh(&manual);

    (void)state;
    assert_int_equal(weir__checkpoint_mark_given(&c, NULL), 0);
    assert_takes_none(&c);
    assert_true(weir__checkpoint_settled(&c));
}

static void the_newest_mark_wins(void **state)
{
    struct weir__checkpoint c = fresh(&manual);

    (void)state;
    for (uint64_t i = 0; i < 5; i++) {
        weir__checkpoint_give(&c, i, NULL);
        weir__checkpoint_mark_given(&c, NULL);
        if (i == 1) assert_takes(&c, 1);
        if (i > 1) assert_takes_none(&c); /* one is on its way */
    }
    weir__checkpoint_answer(&c, 0);
    assert_int_equal(c.stored.sequence, 1);
    assert_false(weir__checkpoint_settled(&c));
    assert_takes(&c, 4);
    weir__checkpoint_answer(&c, 0);
    assert_true(weir__checkpoint_settled(&c));
    assert_int_equal(c.stored.sequence, 4);
}

static void what_could_not_be_written_is_tried_again(void **state)
{
    struct weir__checkpoint c = fresh(&manual);

    (void)state;
    weir__checkpoint_give(&c, 5, NULL);
    weir__checkpoint_mark_given(&c, NULL);
    assert_takes(&c, 5);
    weir__checkpoint_answer(&c, WEIR_EUNREACHABLE);
    assert_false(weir__checkpoint_settled(&c));
    assert_false(c.stored.known);
    weir__checkpoint_give(&c, 6, NULL);
    weir__checkpoint_mark_given(&c, NULL);
    assert_takes(&c, 6);
}

static void fenced_is_the_end(void **state)
{
    struct weir__checkpoint c = fresh(&manual);

    (void)state;
    weir__checkpoint_give(&c, 5, NULL);
    weir__checkpoint_mark_given(&c, NULL);
    assert_takes(&c, 5);
    weir__checkpoint_answer(&c, WEIR_EFENCED);
    assert_true(weir__checkpoint_settled(&c));
    weir__checkpoint_give(&c, 6, NULL);
    assert_int_equal(weir__checkpoint_mark_given(&c, NULL), WEIR_EFENCED);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 6, NULL, NULL), WEIR_EFENCED);
    assert_int_equal(weir__checkpoint_rewind(&c, 1, NULL), WEIR_EFENCED);
    assert_takes_none(&c);
}

static void a_lost_partition_waits_for_its_write_only(void **state)
{
    struct weir__checkpoint c = fresh(&manual);

    (void)state;
    weir__checkpoint_give(&c, 5, NULL);
    weir__checkpoint_mark_given(&c, NULL);
    assert_takes(&c, 5);
    weir__checkpoint_give(&c, 6, NULL);
    weir__checkpoint_mark_given(&c, NULL);
    weir__checkpoint_fence(&c);
    assert_false(weir__checkpoint_settled(&c));
    weir__checkpoint_answer(&c, 0);
    assert_true(weir__checkpoint_settled(&c));
    assert_takes_none(&c);
}

static void a_rewind_goes_back_and_on(void **state)
{
    struct weir__checkpoint c = at(4);

    (void)state;
    weir__checkpoint_give(&c, 9, "900");
    weir__checkpoint_mark_given(&c, NULL);
    assert_takes(&c, 9);
    assert_int_equal(weir__checkpoint_rewind(&c, 2, NULL), 0);
    weir__checkpoint_answer(&c, 0); /* of the mark before it */
    assert_takes(&c, 2);
    assert_string_equal(c.writing.offset, "");
    weir__checkpoint_answer(&c, 0);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 3, NULL, NULL), WEIR_EINVAL);
    weir__checkpoint_give(&c, 3, NULL);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 3, NULL, NULL), 0);
    assert_int_equal(weir__checkpoint_rewind(&c, 50, NULL), 0);
    assert_takes(&c, 50);
}

/* It was doubted whether the partition is ours. */
static void reopening_keeps_what_nobody_changed(void **state)
{
    struct weir_record same = {.partition = 3, .epoch = 7, .marked = true, .sequence = 4};
    struct weir_record later = {
        .partition = 3, .epoch = 7, .rewinds = 1, .marked = true, .sequence = 2};
    struct weir__checkpoint c = at(4);

    (void)state;
    weir__checkpoint_give(&c, 6, NULL);
    weir__checkpoint_handled(&c, 0, 2);
    weir__checkpoint_give(&c, 9, NULL);
    weir__checkpoint_fence(&c);
    weir__checkpoint_reopen(&c, &same);
    assert_int_equal(weir__checkpoint_resume(&c)->sequence, 6);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 9, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir__checkpoint_mark_given(&c, NULL), 0);
    assert_takes(&c, 6);
    weir__checkpoint_reopen(&c, &later);
    assert_int_equal(weir__checkpoint_resume(&c)->sequence, 2);
    assert_true(weir__checkpoint_settled(&c));
}

/* It is marked once it is known that nobody else had the partition. */
static void what_came_due_while_fenced_is_marked(void **state)
{
    struct weir__checkpoint_policy policy = {.events = 2};
    struct weir_record same = {.partition = 3, .epoch = 7};
    struct weir__checkpoint c;

    (void)state;
    weir__checkpoint_init(&c, &same, &policy);
    weir__checkpoint_give(&c, 6, NULL);
    weir__checkpoint_fence(&c);
    weir__checkpoint_handled(&c, 0, 2);
    weir__checkpoint_tick(&c, 50);
    assert_takes_none(&c);
    weir__checkpoint_reopen(&c, &same);
    weir__checkpoint_tick(&c, 60);
    assert_takes(&c, 6);
}

static void the_policy_counts_events(void **state)
{
    struct weir__checkpoint_policy policy = {.events = 10};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_handled(&c, 0, 9);
    assert_takes_none(&c);
    weir__checkpoint_give(&c, 12, NULL);
    weir__checkpoint_handled(&c, 0, 4);
    assert_takes(&c, 12);
    weir__checkpoint_answer(&c, 0);
    weir__checkpoint_give(&c, 20, NULL);
    weir__checkpoint_handled(&c, 0, 8);
    assert_takes_none(&c);
}

static void the_policy_counts_time(void **state)
{
    struct weir__checkpoint_policy policy = {.ms = 100};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    assert_int_equal(weir__checkpoint_due_ms(&c), INT64_MAX);
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_handled(&c, 1000, 9);
    weir__checkpoint_give(&c, 9, NULL);
    weir__checkpoint_handled(&c, 1050, 1);
    assert_int_equal(weir__checkpoint_due_ms(&c), 1100);
    weir__checkpoint_tick(&c, 1099);
    assert_takes_none(&c);
    weir__checkpoint_tick(&c, 1100);
    assert_takes(&c, 9);
    assert_int_equal(weir__checkpoint_due_ms(&c), INT64_MAX);
}

static void the_policy_leaves_the_programs_marks_alone(void **state)
{
    struct weir__checkpoint_policy policy = {.events = 1, .ms = 1};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    weir__checkpoint_give(&c, 8, NULL);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 8, NULL, NULL), 0);
    assert_takes(&c, 8);
    weir__checkpoint_answer(&c, 0);
    weir__checkpoint_handled(&c, 1000, 9);
    assert_takes_none(&c);
    assert_int_equal(weir__checkpoint_due_ms(&c), INT64_MAX);
}

static void the_policy_never_marks_what_is_in_hand(void **state)
{
    struct weir__checkpoint_policy policy = {.ms = 100};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_handled(&c, 1000, 9);
    weir__checkpoint_give(&c, 20, NULL);
    weir__checkpoint_tick(&c, 1200);
    assert_takes(&c, 8);
}

static void what_failed_was_not_given_in_the_end(void **state)
{
    struct weir__checkpoint_policy policy = {.events = 100};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    assert_null(weir__checkpoint_resume(&c));
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_finish(&c);
    assert_takes_none(&c);
    assert_null(weir__checkpoint_resume(&c));
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_handled(&c, 1000, 9);
    weir__checkpoint_give(&c, 20, NULL);
    weir__checkpoint_finish(&c);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 20, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir__checkpoint_mark_given(&c, NULL), 0);
    assert_takes(&c, 8);
    assert_int_equal(weir__checkpoint_resume(&c)->sequence, 8);
}

/* What the program has marked is done, though the handler has not returned. */
static void reading_goes_on_behind_the_later_of_both(void **state)
{
    struct weir__checkpoint c = at(4);

    (void)state;
    assert_int_equal(weir__checkpoint_resume(&c)->sequence, 4);
    weir__checkpoint_give(&c, 9, NULL);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 7, NULL, NULL), 0);
    assert_int_equal(weir__checkpoint_resume(&c)->sequence, 7);
    weir__checkpoint_handled(&c, 0, 5);
    assert_int_equal(weir__checkpoint_resume(&c)->sequence, 9);
}

/* The shortest policy is one, and nothing is due when all is marked. */
static void the_end_leaves_nothing_due(void **state)
{
    struct weir__checkpoint_policy policy = {.ms = 1};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    weir__checkpoint_give(&c, 0, NULL);
    weir__checkpoint_handled(&c, 1000, 1);
    assert_int_equal(weir__checkpoint_due_ms(&c), 1001);
    for (int i = 0; i < 2; i++) {
        weir__checkpoint_finish(&c);
        assert_int_equal(weir__checkpoint_due_ms(&c), INT64_MAX);
    }
    assert_takes(&c, 0); /* the first event of all */
    weir__checkpoint_answer(&c, 0);
    assert_true(weir__checkpoint_settled(&c));
}

/* A mark of the program's own is one: the policy counts from there. */
static void the_policy_counts_behind_the_programs_marks(void **state)
{
    struct weir__checkpoint_policy policy = {.events = 10};
    struct weir__checkpoint c = fresh(&policy);

    (void)state;
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_handled(&c, 1000, 9);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 8, NULL, NULL), 0);
    assert_takes(&c, 8);
    weir__checkpoint_answer(&c, 0);
    weir__checkpoint_give(&c, 10, NULL);
    weir__checkpoint_handled(&c, 1000, 2);
    assert_takes_none(&c);
    weir__checkpoint_give(&c, 18, NULL);
    weir__checkpoint_handled(&c, 1000, 8);
    assert_takes(&c, 18);
}

static void without_a_policy_nothing_is_marked_in_the_end(void **state)
{
    struct weir__checkpoint c = fresh(&manual);

    (void)state;
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_finish(&c); /* it failed: nothing was given */
    assert_int_equal(weir__checkpoint_mark(&c, 3, 0, NULL, NULL), WEIR_EINVAL);
    weir__checkpoint_give(&c, 8, NULL);
    weir__checkpoint_handled(&c, 1000, 9);
    weir__checkpoint_finish(&c);
    assert_takes_none(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_carries_the_owners_token),
        cmocka_unit_test(wrong_marks_are_refused),
        cmocka_unit_test(the_same_mark_twice_is_written_once),
        cmocka_unit_test(nothing_given_marks_nothing),
        cmocka_unit_test(the_newest_mark_wins),
        cmocka_unit_test(what_could_not_be_written_is_tried_again),
        cmocka_unit_test(fenced_is_the_end),
        cmocka_unit_test(a_lost_partition_waits_for_its_write_only),
        cmocka_unit_test(a_rewind_goes_back_and_on),
        cmocka_unit_test(reopening_keeps_what_nobody_changed),
        cmocka_unit_test(what_came_due_while_fenced_is_marked),
        cmocka_unit_test(the_policy_counts_events),
        cmocka_unit_test(the_policy_counts_time),
        cmocka_unit_test(the_policy_leaves_the_programs_marks_alone),
        cmocka_unit_test(the_policy_never_marks_what_is_in_hand),
        cmocka_unit_test(what_failed_was_not_given_in_the_end),
        cmocka_unit_test(reading_goes_on_behind_the_later_of_both),
        cmocka_unit_test(the_end_leaves_nothing_due),
        cmocka_unit_test(the_policy_counts_behind_the_programs_marks),
        cmocka_unit_test(without_a_policy_nothing_is_marked_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
