/* clock_test.c - what is made of the machine's time, which the test gives: the clock stands behind
 * clock_gettime, the linker puts it in front (tests/CMakeLists.txt). */
#define _GNU_SOURCE
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "base/thread.h"

static struct timespec wall, mono, up;

int __wrap_clock_gettime(clockid_t id, struct timespec *out);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    *out = id == CLOCK_REALTIME ? wall : id == CLOCK_MONOTONIC ? mono : up;
    return 0;
}

/* A millisecond that is not over does not count. */
static void each_clock_has_its_milliseconds(void **state)
{
    struct weir__clock c = weir__clock_system();

    (void)state;
    wall = (struct timespec){1800000000, 999999999};
    mono = (struct timespec){7, 1000000};
    up = (struct timespec){9, 999999};
    assert_true(c.wall_ms(c.self) == INT64_C(1800000000999));
    assert_true(c.mono_ms(c.self) == 7001);
    assert_true(c.up_ms(c.self) == 9000);
    wall.tv_nsec = mono.tv_nsec = up.tv_nsec = 998999999;
    assert_true(c.wall_ms(c.self) == INT64_C(1800000000998));
    assert_true(c.mono_ms(c.self) == 7998);
    assert_true(c.up_ms(c.self) == 9998);
}

/* The last one that can be said, and one that cannot, which is never. */
static void deadlines_reach_to_the_end_of_time(void **state)
{
    int64_t most_ms;

    (void)state;
    mono = (struct timespec){1000, 123456789};
    assert_true(weir__mono_ns() == INT64_C(1000123456789));
    most_ms = (INT64_MAX - INT64_C(1000123456789)) / 1000000;
    assert_true(weir__deadline_ns(most_ms) == INT64_C(1000123456789) + most_ms * 1000000);
    assert_true(weir__deadline_ns(most_ms + 1) == INT64_MAX);
    assert_true(weir__deadline_ns(0) == INT64_C(1000123456789));
    assert_true(weir__deadline_ns(1) == INT64_C(1000124456789));
}

/* Without a descriptor for it there is no number. */
static void a_machine_may_not_tell_its_run(void **state)
{
    struct weir__clock c = weir__clock_system();
    struct rlimit was, none;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_true(c.boot(c.self) == 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_clock_has_its_milliseconds),
        cmocka_unit_test(deadlines_reach_to_the_end_of_time),
        cmocka_unit_test(a_machine_may_not_tell_its_run),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
