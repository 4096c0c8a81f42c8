#include "io/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TIMERS 512
#define STEPS 40000

static uint32_t chance(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

static int64_t earliest(const struct weir__timer *t)
{
    int64_t at = INT64_MAX;

    for (int i = 0; i < TIMERS; i++)
        if (t[i].running && t[i].at_ms < at) at = t[i].at_ms;
    return at;
}

/* Against the plainest list: any order of start, move, stop and expiry. */
static void agrees_with_a_plain_list(void **state)
{
    static struct weir__timer t[TIMERS];
    struct weir__timers all = {NULL};
    uint32_t seed = 2463534242;
    int64_t now = 0;

    (void)state;
    for (int i = 0; i < TIMERS; i++) weir__timer_init(&t[i], NULL, NULL);
    for (int step = 0; step < STEPS; step++) {
        struct weir__timer *one = &t[chance(&seed) % TIMERS], *due;
        uint32_t what = chance(&seed) % 8;
        if (what < 4) {
            weir__timers_start(&all, one, now + chance(&seed) % 1000);
        } else if (what < 6) {
            weir__timers_stop(&all, one);
            assert_false(one->running);
        } else {
            int64_t first = earliest(t);
            now += chance(&seed) % 50;
            due = weir__timers_due(&all, now);
            assert_true((due != NULL) == (first <= now));
            if (due) assert_int_equal(due->at_ms, first);
            if (due) assert_false(due->running);
        }
        assert_int_equal(weir__timers_next(&all), earliest(t));
    }
}

static void gives_them_in_order_of_time(void **state)
{
    static struct weir__timer t[TIMERS];
    struct weir__timers all = {NULL};
    struct weir__timer *due;
    uint32_t seed = 7;
    int64_t last = 0;
    int count = 0;

    (void)state;
    assert_int_equal(weir__timers_next(&all), INT64_MAX);
    for (int i = 0; i < TIMERS; i++) {
        weir__timer_init(&t[i], NULL, NULL);
        weir__timers_start(&all, &t[i], chance(&seed) % 100);
    }
    assert_null(weir__timers_due(&all, -1));
    while ((due = weir__timers_due(&all, 1000))) {
        assert_true(due->at_ms >= last);
        last = due->at_ms;
        count++;
    }
    assert_int_equal(count, TIMERS);
}

static void one_is_due_at_its_very_moment(void **state)
{
    struct weir__timers all = {NULL};
    struct weir__timer t;

    (void)state;
    weir__timer_init(&t, NULL, NULL);
    weir__timers_start(&all, &t, 100);
    assert_null(weir__timers_due(&all, 99));
    assert_ptr_equal(weir__timers_due(&all, 100), &t);
    assert_null(weir__timers_due(&all, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_plain_list),
        cmocka_unit_test(gives_them_in_order_of_time),
        cmocka_unit_test(one_is_due_at_its_very_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
