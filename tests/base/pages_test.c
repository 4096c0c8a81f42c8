/* pages_test.c - memory that is taken from the machine in pages, and given back. */
#define _GNU_SOURCE
#include "base/pages.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PAGES_BYTES ((size_t)1 << 20)

static void pages_are_zero_and_can_be_written(void **state)
{
    unsigned char *at = weir__pages_new(PAGES_BYTES);

    (void)state;
    assert_non_null(at);
    for (size_t i = 0; i < PAGES_BYTES; i++) assert_int_equal(at[i], 0);
    at[0] = at[PAGES_BYTES - 1] = 7;
    assert_int_equal(at[0] + at[PAGES_BYTES - 1], 14);
    weir__pages_free(at, PAGES_BYTES);
    errno = 0;
    assert_int_equal(msync(at, PAGES_BYTES, MS_ASYNC), -1); /* nothing is there any more */
    assert_int_equal(errno, ENOMEM);
}

static void more_than_there_can_be_is_refused(void **state)
{
    (void)state;
    assert_null(weir__pages_new(SIZE_MAX / 2));
    weir__pages_free(NULL, PAGES_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_zero_and_can_be_written),
        cmocka_unit_test(more_than_there_can_be_is_refused),
    };

    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
