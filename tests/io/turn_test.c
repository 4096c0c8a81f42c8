/* turn_test.c - how turns are measured, by clocks that stand still unless the test moves them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "io/state.h"

#define US INT64_C(1000)

static int64_t now_ns, worked_ns; /* the machine's clock and the thread's own */

int __wrap_clock_gettime(clockid_t which, struct timespec *to);

int __wrap_clock_gettime(clockid_t which, struct timespec *to)
{
    int64_t ns = which == CLOCK_THREAD_CPUTIME_ID ? worked_ns : now_ns;

    *to = (struct timespec){ns / INT64_C(1000000000), ns % INT64_C(1000000000)};
    return 0;
}

/* A turn of a loop that had been away; what the thread worked of it. */
static void turn(struct weir__loop *l, int64_t ns, int64_t work_ns)
{
    now_ns += 10 * INT64_C(1000000000);
    weir__loop_begin_turn(l);
    now_ns += ns;
    worked_ns += work_ns;
    weir__loop_end_turn(l);
}

static int begin(void **state)
{
    static struct weir__loop loop;

    loop = (struct weir__loop){.turn = 0};
    now_ns = 123456 * INT64_C(1000000007);
    worked_ns = 7 * INT64_C(1000000000) + 5;
    *state = &loop;
    return 0;
}

/* A turn belongs to the first bound that it does not pass, the longest to the bucket without one. */
static void a_turn_is_counted_by_its_length(void **state)
{
    static const uint32_t bounds_us[] = {50,   100,   250,   500,   1000,   2500,
                                         5000, 10000, 25000, 50000, 100000, 1000000};
    enum { BOUNDS = sizeof bounds_us / sizeof bounds_us[0] };
    struct weir__loop *l = *state;
    uint64_t sum = 0;

    assert_int_equal(WEIR__LOOP_TURN_BUCKETS, BOUNDS + 1);
    for (unsigned b = 0; b < BOUNDS; b++) {
        assert_int_equal(weir__loop_turn_bound_us(b), bounds_us[b]);
        turn(l, bounds_us[b] * US, 0);
        assert_int_equal(l->turn_buckets[b], b ? 2 : 1);
        turn(l, bounds_us[b] * US + 1, 0);
        assert_int_equal(l->turn_buckets[b + 1], 1);
        sum += 2 * (uint64_t)bounds_us[b] * 1000 + 1;
    }
    assert_int_equal(weir__loop_turn_bound_us(BOUNDS), 0);
    assert_int_equal(l->turn_ns, sum);
    assert_int_equal(l->long_turns, 0);
}

static void a_turn_begins_with_the_first_that_happens(void **state)
{
    struct weir__loop *l = *state;

    weir__loop_begin_turn(l);
    now_ns += 30 * US;
    weir__loop_begin_turn(l);
    now_ns += WEIR__LOOP_TURN_NS - 30 * US - 1;
    assert_false(weir__loop_turn_over(l));
    now_ns += 1;
    assert_true(weir__loop_turn_over(l));
    weir__loop_end_turn(l);
    assert_int_equal(l->turn_ns, WEIR__LOOP_TURN_NS);
    assert_int_equal(l->began_ns, 0);
}

/* Long by both clocks. */
static void a_long_turn_is_one_of_work(void **state)
{
    const int64_t limit_ns = WEIR__LOOP_LONG_US * US;
    struct weir__loop *l = *state;

    turn(l, limit_ns + 1, limit_ns);
    turn(l, limit_ns, limit_ns + 1);
    assert_int_equal(l->long_turns, 0);
    turn(l, limit_ns + 1, limit_ns + 1);
    assert_int_equal(l->long_turns, 1);
    turn(l, limit_ns + 1, limit_ns + 1);
    assert_int_equal(l->long_turns, 2);
}

/* The thread's clock is read again when the last reading is a millisecond old, not before. */
static void a_reading_is_used_for_a_millisecond(void **state)
{
    struct weir__loop *l = *state;
    int64_t first_ns = worked_ns;

    weir__loop_begin_turn(l);
    assert_int_equal(l->worked_ns, first_ns);
    now_ns += 999999;
    worked_ns += 500;
    weir__loop_end_turn(l);
    weir__loop_begin_turn(l);
    assert_int_equal(l->worked_ns, first_ns);
    now_ns += 1;
    weir__loop_end_turn(l);
    weir__loop_begin_turn(l);
    assert_int_equal(l->worked_ns, first_ns + 500);
    worked_ns += 500;
    weir__loop_end_turn(l);
    weir__loop_begin_turn(l); /* at the same moment */
    assert_int_equal(l->worked_ns, first_ns + 500);
}

static struct weir__loop loops[2];

unsigned __wrap_weir__loops_count(const struct weir__loops *all);
struct weir__loop *__wrap_weir__loops_at(struct weir__loops *all, unsigned index);

unsigned __wrap_weir__loops_count(const struct weir__loops *all)
{
    (void)all;
    return 2;
}

struct weir__loop *__wrap_weir__loops_at(struct weir__loops *all, unsigned index)
{
    (void)all;
    return &loops[index];
}

static void turns_of_all_loops_are_summed(void **state)
{
    const int64_t long_ns = 2000000 * US; /* longer than any bound */
    struct weir__loop_turns sum = {.ns = 0};

    (void)state;
    turn(&loops[0], 1, 0);
    turn(&loops[0], long_ns, long_ns);
    turn(&loops[1], 2, 0);
    turn(&loops[1], long_ns, long_ns);
    turn(&loops[1], long_ns, 0);
    weir__loops_turns(NULL, &sum);
    assert_int_equal(sum.buckets[0], 2);
    for (unsigned b = 1; b < WEIR__LOOP_TURN_BUCKETS - 1; b++) assert_int_equal(sum.buckets[b], 0);
    assert_int_equal(sum.buckets[WEIR__LOOP_TURN_BUCKETS - 1], 3);
    assert_int_equal(sum.ns, 3 * long_ns + 3);
    assert_int_equal(sum.worked_long, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_turn_is_counted_by_its_length, begin),
        cmocka_unit_test_setup(a_turn_begins_with_the_first_that_happens, begin),
        cmocka_unit_test_setup(a_long_turn_is_one_of_work, begin),
        cmocka_unit_test_setup(a_reading_is_used_for_a_millisecond, begin),
        cmocka_unit_test_setup(turns_of_all_loops_are_summed, begin),
    };

    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
