/* descriptors_test.c - that a process gets as many descriptors as the system lets it have. */
#include "io/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

static void as_many_as_there_may_be(void **state)
{
    struct rlimit limit, now;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 64 ? limit.rlim_max : 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(weir__descriptors_raise(), limit.rlim_max);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, limit.rlim_max);
    assert_int_equal(now.rlim_max, limit.rlim_max);
}

/* They are only tried. */
static void what_is_left_is_counted(void **state)
{
    struct rlimit before, now;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(weir__descriptors_left(WEIR__DESCRIPTORS_TRIED_MAX));
    now = before;
    now.rlim_cur = 16; /* and 0, 1 and 2 are open */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_false(weir__descriptors_left(14));
    for (int i = 0; i < 100; i++) assert_true(weir__descriptors_left(1));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_there_may_be),
        cmocka_unit_test(what_is_left_is_counted),
    };

    return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
