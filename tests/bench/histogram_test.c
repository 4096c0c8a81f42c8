/* A histogram beside the sorted values themselves. */
#include "bench/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VALUES 10000

static struct weir__histogram h;

static void clear(void)
{
    memset(&h, 0, sizeof h);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void nothing_has_no_percentiles(void **state)
{
    (void)state;
    clear();
    assert_int_equal(weir__histogram_at(&h, 0.5), 0);
    assert_int_equal(weir__histogram_at(&h, 1), 0);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    clear();
    for (uint64_t v = 1; v <= 100; v++) weir__histogram_add(&h, v, 1);
    assert_int_equal(weir__histogram_at(&h, 0), 1);
    assert_int_equal(weir__histogram_at(&h, 0.5), 50);
    assert_int_equal(weir__histogram_at(&h, 0.99), 99);
    assert_int_equal(weir__histogram_at(&h, 1), 100);
    assert_int_equal(h.total, 100);
}

static void the_ends_are_as_they_were(void **state)
{
    static const uint64_t values[] = {0,         127, 128, 129, 255, 256, 1000003, UINT64_MAX - 1,
                                      UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        clear();
        weir__histogram_add(&h, values[i], 3);
        assert_true(weir__histogram_at(&h, 0) == values[i]);
        assert_true(weir__histogram_at(&h, 0.5) == values[i]);
        assert_true(weir__histogram_at(&h, 1) == values[i]);
    }
}

/* Never too small, and too large by less than a 128th. */
static void percentiles_are_near(void **state)
{
    static const double parts[] = {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999};
    static uint64_t values[VALUES];
    uint64_t chance = 88172645463325252;

    (void)state;
    clear();
    for (size_t i = 0; i < VALUES; i++) {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        values[i] = chance >> (chance % 64);
        weir__histogram_add(&h, values[i], 1);
    }
    qsort(values, VALUES, sizeof values[0], compare);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t want = values[(size_t)(parts[i] * VALUES + 0.5) - 1];
        uint64_t found = weir__histogram_at(&h, parts[i]);

        assert_true(found >= want);
        assert_true(found - want <= want / 128);
    }
}

static void two_become_one(void **state)
{
    static struct weir__histogram other, empty;

    (void)state;
    clear();
    weir__histogram_merge(&h, &empty);
    assert_int_equal(weir__histogram_at(&h, 0.5), 0);
    weir__histogram_add(&other, 7, 30);
    weir__histogram_merge(&h, &other);
    weir__histogram_add(&h, 5, 10);
    assert_int_equal(h.total, 40);
    assert_int_equal(weir__histogram_at(&h, 0.25), 5);
    assert_int_equal(weir__histogram_at(&h, 0.26), 7);
    assert_int_equal(weir__histogram_at(&h, 1), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_no_percentiles),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(the_ends_are_as_they_were),
        cmocka_unit_test(percentiles_are_near),
        cmocka_unit_test(two_become_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
