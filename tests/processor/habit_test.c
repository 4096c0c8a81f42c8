/* habit_test.c - programs that mark every single event, and do it quickly, are told so once. */
#include "processor/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct weir__checkpoint_policy manual = {0};
static const struct weir_record record = {.partition = 3, .epoch = 1};

static struct weir__checkpoint fresh(void)
{
    struct weir__checkpoint c;

    weir__checkpoint_init(&c, &record, &manual);
    weir__checkpoint_give(&c, 10000, NULL);
    return c;
}

static void marks_of_every_event_are_noticed_once(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate = 0, told = 0, told_at = 0;

    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(weir__checkpoint_mark(&c, 3, i, NULL, NULL), 0);
        told += weir__checkpoint_chatty(&c, (int64_t)i, &rate);
        if (told == 0) told_at = i + 1;
    }
    assert_int_equal(told, 1);
    assert_int_equal(told_at, 1000);
    assert_in_range(rate, 900, 1100);
}

static void slow_single_marks_are_no_habit(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate;

    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(weir__checkpoint_mark(&c, 3, i, NULL, NULL), 0);
        assert_false(weir__checkpoint_chatty(&c, (int64_t)i * 10, &rate));
    }
}

/* A thousand marks behind the first, and the last of them at this time. */
static bool is_habit(struct weir__checkpoint *c, int64_t last_ms, uint64_t *rate)
{
    bool told = false;

    for (uint64_t i = 0; i <= 1000; i++) {
        assert_int_equal(weir__checkpoint_mark(c, 3, i, NULL, NULL), 0);
        told = weir__checkpoint_chatty(c, i < 1000 ? 0 : last_ms, rate);
        if (i < 1000) assert_false(told);
    }
    return told;
}

static void five_hundred_a_second_are_a_habit(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate;

    (void)state;
    assert_true(is_habit(&c, 2000, &rate));
    assert_int_equal(rate, 500);
    c = fresh();
    assert_false(is_habit(&c, 2005, &rate));
    assert_int_equal(rate, 498);
    c = fresh();
    assert_true(is_habit(&c, 0, &rate)); /* all in one moment */
    assert_int_equal(rate, 1000000);
}

/* A pause behind the first mark counts, too. */
static void a_habit_is_timed_from_its_first_mark(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate;

    (void)state;
    for (uint64_t i = 0; i <= 1000; i++) {
        assert_int_equal(weir__checkpoint_mark(&c, 3, i, NULL, NULL), 0);
        assert_false(weir__checkpoint_chatty(&c, i == 0 ? 0 : 5000, &rate));
    }
}

static void a_rewind_is_no_part_of_a_habit(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) weir__checkpoint_mark(&c, 3, i, NULL, NULL);
    assert_int_equal(weir__checkpoint_rewind(&c, 500, NULL), 0);
    weir__checkpoint_give(&c, 600, NULL);
    assert_int_equal(weir__checkpoint_mark(&c, 3, 501, NULL, NULL), 0);
    assert_false(weir__checkpoint_chatty(&c, 1, &rate));
}

static void marks_of_batches_are_no_habit(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate;

    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(weir__checkpoint_mark(&c, 3, 2 * i, NULL, NULL), 0);
        assert_false(weir__checkpoint_chatty(&c, (int64_t)i, &rate));
    }
}

/* Slow ones before it do not hide it. */
static void a_habit_that_begins_later_is_noticed(void **state)
{
    struct weir__checkpoint c = fresh();
    uint64_t rate = 0, told_at = 0;
    int64_t now_ms = 0;

    (void)state;
    for (uint64_t i = 0; i < 3002 && told_at == 0; i++) {
        now_ms += i <= 1000 ? 10 : 1;
        assert_int_equal(weir__checkpoint_mark(&c, 3, i, NULL, NULL), 0);
        if (weir__checkpoint_chatty(&c, now_ms, &rate)) told_at = i;
    }
    assert_in_range(told_at, 2000, 2002);
    assert_in_range(rate, 900, 1100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_of_every_event_are_noticed_once),
        cmocka_unit_test(slow_single_marks_are_no_habit),
        cmocka_unit_test(marks_of_batches_are_no_habit),
        cmocka_unit_test(a_habit_that_begins_later_is_noticed),
        cmocka_unit_test(five_hundred_a_second_are_a_habit),
        cmocka_unit_test(a_habit_is_timed_from_its_first_mark),
        cmocka_unit_test(a_rewind_is_no_part_of_a_habit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
