/* retention_clock_test.c - retention's clock, by itself. */
#include "log/retention_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define WALL INT64_C(1700000000000)

struct world {
    struct weir__machine_time m;
    struct weir__retention_clock c;
    int64_t jump_ms; /* of the wall clock, when the next process begins */
};

static struct world begin(void)
{
    struct world w = {.m = {.wall_ms = WALL, .up_ms = 5000, .boot = 7}};
    struct weir__keep_time never = {0};

    w.c = weir__retention_clock_start(&never, &w.m);
    return w;
}

static void pass(struct world *w, int64_t ms)
{
    w->m.wall_ms += ms;
    w->m.up_ms += ms;
    weir__retention_clock_move(&w->c, &w->m);
}

static int64_t age(const struct world *w, struct weir__keep_stamp s)
{
    return weir__retention_clock_age(&w->c, &s);
}

static struct weir__keep_stamp stamp(const struct world *w)
{
    return weir__retention_clock_stamp(&w->c);
}

/* The process ends; another begins after so long, in the same boot unless told otherwise. */
static void restart(struct world *w, int64_t off_ms, uint64_t boot)
{
    struct weir__keep_time saved = weir__retention_clock_save(&w->c, &w->m);

    w->m.wall_ms += off_ms + w->jump_ms;
    w->jump_ms = 0;
    w->m.up_ms = boot == w->m.boot && boot != 0 ? w->m.up_ms + off_ms : 100;
    w->m.boot = boot;
    w->c = weir__retention_clock_start(&saved, &w->m);
}

static void it_begins_at_the_wall_clock(void **state)
{
    struct world w = begin();

    (void)state;
    assert_int_equal(stamp(&w).keep_ms, WALL);
    assert_int_equal(stamp(&w).off_ms, 0);
}

static void it_follows_the_machine(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp s = stamp(&w);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        w.m.wall_ms += (i % 2 ? 1 : -1) * 3650 * DAY_MS; /* back and forth */
        pass(&w, 1234);
    }
    assert_int_equal(age(&w, s), 1234000);
    w.m.wall_ms += 365 * DAY_MS; /* one that stays */
    pass(&w, DAY_MS);
    assert_int_equal(age(&w, s), 1234000 + DAY_MS);
}

static void another_process_goes_on_exactly(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp s = stamp(&w);

    (void)state;
    pass(&w, HOUR_MS);
    w.m.wall_ms -= 400 * DAY_MS;
    restart(&w, 5 * HOUR_MS, 7);
    assert_int_equal(age(&w, s), 6 * HOUR_MS);
    w.m.wall_ms += 4000 * DAY_MS;
    restart(&w, HOUR_MS, 7);
    assert_int_equal(age(&w, s), 7 * HOUR_MS);
}

/* What was there ages at most so fast; what comes later does not. */
static void time_off_is_paid_slowly(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp old = stamp(&w), young;

    (void)state;
    restart(&w, 5 * DAY_MS, 8);
    assert_int_equal(age(&w, old), 0);
    young = stamp(&w);
    pass(&w, HOUR_MS);
    assert_int_equal(age(&w, old), WEIR__RETENTION_RATE * HOUR_MS);
    assert_int_equal(age(&w, young), HOUR_MS);
    for (int i = 0; i < 47; i++) pass(&w, HOUR_MS);
    assert_int_equal(age(&w, old), 5 * DAY_MS + 48 * HOUR_MS);
    assert_int_equal(age(&w, young), 48 * HOUR_MS);
    assert_int_equal(w.c.owed_ms, 0);
}

static void a_clock_that_is_set_right_stops_it(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp old = stamp(&w), young;

    (void)state;
    w.jump_ms = 3650 * DAY_MS;
    restart(&w, 2 * HOUR_MS, 8);
    young = stamp(&w);
    pass(&w, 60000);
    assert_int_equal(age(&w, old), HOUR_MS);
    w.m.wall_ms -= 3650 * DAY_MS;
    for (int i = 0; i < 10; i++) pass(&w, HOUR_MS);
    assert_int_equal(age(&w, old), 2 * HOUR_MS + 60000 + 10 * HOUR_MS); /* off, and up */
    assert_int_equal(age(&w, young), 60000 + 10 * HOUR_MS);
    w.m.wall_ms += 3650 * DAY_MS; /* it is not believed again */
    pass(&w, HOUR_MS);
    assert_int_equal(age(&w, old), 2 * HOUR_MS + 60000 + 11 * HOUR_MS);
}

static void a_clock_that_was_not_set_is_no_debt(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp old = stamp(&w);

    (void)state;
    w.m.wall_ms = 3000; /* as a machine without a battery begins */
    pass(&w, HOUR_MS);
    w.jump_ms = WALL - 3000; /* set right meanwhile */
    restart(&w, DAY_MS, 8);
    assert_int_equal(w.c.owed_ms, DAY_MS);
    pass(&w, DAY_MS);
    assert_int_equal(age(&w, old), HOUR_MS + 2 * DAY_MS);
}

static void what_is_owed_outlives_a_process(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp old = stamp(&w);

    (void)state;
    restart(&w, 5 * DAY_MS, 8);
    pass(&w, HOUR_MS);
    restart(&w, HOUR_MS, 8);
    pass(&w, DAY_MS);
    assert_int_equal(age(&w, old), 6 * DAY_MS + 2 * HOUR_MS);
    restart(&w, DAY_MS, 0); /* a boot that has no name */
    restart(&w, DAY_MS, 0);
    pass(&w, DAY_MS);
    assert_int_equal(age(&w, old), 9 * DAY_MS + 2 * HOUR_MS);
}

static void it_tells_how_long(void **state)
{
    struct world w = begin();
    struct weir__keep_stamp old = stamp(&w), young;

    (void)state;
    assert_int_equal(weir__retention_clock_until(&w.c, &old, DAY_MS), DAY_MS);
    restart(&w, 12 * HOUR_MS, 8);
    young = stamp(&w);
    assert_int_equal(weir__retention_clock_until(&w.c, &old, DAY_MS), 12 * HOUR_MS);
    assert_int_equal(weir__retention_clock_until(&w.c, &old, 10 * HOUR_MS), 10 * HOUR_MS / 60);
    assert_int_equal(weir__retention_clock_until(&w.c, &young, HOUR_MS), HOUR_MS);
    pass(&w, 10 * HOUR_MS / 60);
    assert_int_equal(age(&w, old), 10 * HOUR_MS);
    assert_int_equal(weir__retention_clock_until(&w.c, &old, 10 * HOUR_MS), 0);
}

/* To the millisecond: what is owed is paid with 59 for each that passes. */
static void it_tells_how_long_to_the_millisecond(void **state)
{
    static const struct {
        int64_t left_ms, owed_ms, wait_ms;
    } cases[] = {{0, 0, 0},   {1, 0, 1},    {60, 59, 1}, {61, 59, 2},  {62, 59, 3},
                 {62, 61, 2}, {60, 600, 1}, {1, 600, 1}, {61, 600, 2}, {120, 119, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w = begin();
        struct weir__keep_stamp old = stamp(&w);

        restart(&w, cases[i].owed_ms, 8);
        assert_int_equal(w.c.owed_ms, cases[i].owed_ms);
        assert_int_equal(weir__retention_clock_until(&w.c, &old, cases[i].left_ms),
                         cases[i].wait_ms);
    }
}

/* A machine that was off owes what its wall clock shows beyond the later of the two clocks, and never
 * more than 2^53 in all. */
static void what_is_owed_has_limits(void **state)
{
    const int64_t most = INT64_C(1) << 53;
    const struct {
        struct weir__keep_time saved;
        int64_t wall_ms, owed_ms;
    } cases[] = {
        {{.keep_ms = WALL, .off_ms = DAY_MS, .wall_ms = 3000}, WALL + DAY_MS + HOUR_MS, HOUR_MS},
        {{.keep_ms = WALL, .off_ms = DAY_MS, .wall_ms = 3000}, WALL + DAY_MS, 0},
        {{.keep_ms = WALL, .off_ms = DAY_MS, .wall_ms = 3000}, WALL, 0},
        {{.keep_ms = WALL, .wall_ms = WALL + DAY_MS}, WALL + DAY_MS + 5, 5},
        {{.keep_ms = WALL, .wall_ms = WALL, .owed_ms = 7}, WALL + 5, 12},
        {{.keep_ms = WALL, .wall_ms = WALL, .owed_ms = most}, WALL + 5, most},
        {{.keep_ms = WALL, .wall_ms = WALL, .owed_ms = most - 5}, WALL + 5, most},
        {{.keep_ms = 1}, INT64_MAX, most - 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__machine_time now = {.wall_ms = cases[i].wall_ms, .up_ms = 100, .boot = 8};
        struct weir__retention_clock c = weir__retention_clock_start(&cases[i].saved, &now);

        assert_int_equal(c.owed_ms, cases[i].owed_ms);
        assert_int_equal(c.keep_ms, cases[i].saved.keep_ms);
        assert_int_equal(c.off_ms, cases[i].saved.off_ms);
    }
}

/* Also when it is set before anybody has looked. */
static void a_clock_that_is_set_right_at_once_stops_it(void **state)
{
    struct world w = begin();

    (void)state;
    restart(&w, 5 * DAY_MS, 8);
    assert_int_equal(w.c.owed_ms, 5 * DAY_MS);
    w.m.wall_ms -= 3 * DAY_MS;
    pass(&w, 0);
    assert_int_equal(w.c.owed_ms, 2 * DAY_MS);
}

static void wild_clocks_do_no_harm(void **state)
{
    struct world w = begin();
    struct weir__keep_time saved = {.keep_ms = 1, .wall_ms = INT64_MIN, .up_ms = INT64_MAX / 2};
    struct weir__machine_time wild = {.wall_ms = INT64_MAX, .up_ms = -5, .boot = 7};

    (void)state;
    weir__retention_clock_move(&w.c, &wild);
    assert_int_equal(w.c.keep_ms, WALL);
    w.c = weir__retention_clock_start(&saved, &wild);
    wild.wall_ms = INT64_MIN;
    weir__retention_clock_move(&w.c, &wild);
    assert_int_equal(w.c.keep_ms, 1);
    assert_int_equal(w.c.owed_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_at_the_wall_clock),
        cmocka_unit_test(it_follows_the_machine),
        cmocka_unit_test(another_process_goes_on_exactly),
        cmocka_unit_test(time_off_is_paid_slowly),
        cmocka_unit_test(a_clock_that_is_set_right_stops_it),
        cmocka_unit_test(a_clock_that_was_not_set_is_no_debt),
        cmocka_unit_test(what_is_owed_outlives_a_process),
        cmocka_unit_test(it_tells_how_long),
        cmocka_unit_test(it_tells_how_long_to_the_millisecond),
        cmocka_unit_test(what_is_owed_has_limits),
        cmocka_unit_test(a_clock_that_is_set_right_at_once_stops_it),
        cmocka_unit_test(wild_clocks_do_no_harm),
    };

    return cmocka_run_group_tests_name("retention_clock", tests, NULL, NULL);
}
