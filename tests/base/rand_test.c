/* rand_test.c - chance that the machine hands out in pieces. */
#include "base/rand.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#define PIECE 5

/* Gives 1, 2, 3... in pieces; every call before it an interruption; then an error. */
static unsigned calls, calls_good, given;

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    size_t n = len < PIECE ? len : PIECE;

    assert_int_equal(flags, 0); /* waits until there is some */
    errno = calls >= calls_good ? ENOSYS : EINTR;
    if (++calls % 2 == 1 || errno == ENOSYS) return -1;
    for (size_t i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)++given;
    return (ssize_t)n;
}

static int fill(void *to, size_t len, unsigned good, struct weir_error *err)
{
    struct weir__rand r = weir__rand_system();

    calls = given = 0;
    calls_good = good;
    return r.fill(r.self, to, len, err);
}

static void pieces_are_put_behind_each_other(void **state)
{
    uint8_t bytes[2 * PIECE + 2];

    (void)state;
    memset(bytes, '#', sizeof bytes);
    assert_int_equal(fill(bytes, 2 * PIECE + 1, 100, NULL), 0);
    for (unsigned i = 0; i < sizeof bytes - 1; i++) assert_int_equal(bytes[i], i + 1);
    assert_int_equal(bytes[sizeof bytes - 1], '#');
    assert_int_equal(calls, 6);
    assert_int_equal(fill(bytes, 0, 0, NULL), 0);
    assert_int_equal(calls, 0);
}

static void a_failure_is_told(void **state)
{
    uint8_t bytes[2 * PIECE];
    struct weir_error err;

    (void)state;
    for (unsigned good = 0; good < 4; good++) {
        assert_int_equal(fill(bytes, sizeof bytes, good, &err), WEIR_EIO);
        assert_string_equal(err.text, "getrandom: Function not implemented");
        assert_int_equal(calls, good + 1);
    }
    assert_int_equal(fill(bytes, sizeof bytes, 4, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_put_behind_each_other),
        cmocka_unit_test(a_failure_is_told),
    };

    return cmocka_run_group_tests_name("rand", tests, NULL, NULL);
}
