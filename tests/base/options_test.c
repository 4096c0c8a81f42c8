/* options_test.c - option structs of callers that are as old as we are, older, or newer. */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct options {
    size_t size;
    uint64_t first;
    uint64_t last;
};

struct later {
    struct options now;
    uint64_t wish;
};

static struct options got;
static struct weir_error err;

static int copy(const void *from)
{
    memset(&got, 0xee, sizeof got);
    return weir__options_copy(&got, sizeof got, from, &err);
}

static void of_our_age(void **state)
{
    struct options o = {sizeof o, UINT64_MAX, UINT64_MAX};

    (void)state;
    assert_int_equal(copy(&o), 0);
    assert_memory_equal(&got, &o, sizeof o);
    assert_int_equal(copy(NULL), 0);
    o = (struct options){0};
    assert_memory_equal(&got, &o, sizeof o);
}

static void older_ones_are_filled_up(void **state)
{
    struct options o = {offsetof(struct options, last), 7, 8};

    (void)state;
    assert_int_equal(copy(&o), 0);
    assert_int_equal(got.first, 7);
    assert_int_equal(got.last, 0);
    o.size = sizeof o.size;
    assert_int_equal(copy(&o), 0);
    assert_int_equal(got.first, 0);
    o.size = sizeof o.size - 1;
    assert_int_equal(copy(&o), WEIR_EINVAL);
    o.size = 0;
    assert_int_equal(copy(&o), WEIR_EINVAL);
}

/* As long as they ask for nothing that is not known here. */
static void later_ones_are_taken(void **state)
{
    struct later o = {{sizeof o, 7, 8}, 0};
    unsigned char *bytes = (unsigned char *)&o;

    (void)state;
    assert_int_equal(copy(&o), 0);
    assert_int_equal(got.last, 8);
    for (size_t i = sizeof got; i < sizeof o; i++) {
        bytes[i] = 1;
        assert_int_equal(copy(&o), WEIR_EINVAL);
        bytes[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_our_age),
        cmocka_unit_test(older_ones_are_filled_up),
        cmocka_unit_test(later_ones_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
