#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void grows_and_keeps_its_bytes(void **state)
{
    struct weir__buf b;

    (void)state;
    weir__buf_init(&b, 10000);
    for (unsigned i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        assert_true(weir__buf_add(&b, &byte, 1));
    }
    assert_int_equal(b.len, 10000);
    for (unsigned i = 0; i < 10000; i++) assert_int_equal(b.at[i], (uint8_t)(i * 7));
    assert_true(b.cap <= b.max);
    weir__buf_fini(&b);
    assert_null(b.at);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.max, 10000);
    weir__buf_fini(&b);
}

static void stops_at_its_maximum(void **state)
{
    struct weir__buf b;

    (void)state;
    weir__buf_init(&b, 300);
    assert_true(weir__buf_add(&b, "0123456789", 10));
    assert_null(weir__buf_room(&b, 291));
    assert_null(weir__buf_room(&b, SIZE_MAX));
    assert_null(weir__buf_room(&b, SIZE_MAX - 5));
    assert_false(weir__buf_add(&b, "x", 300));
    assert_int_equal(b.len, 10);
    assert_memory_equal(b.at, "0123456789", 10);
    assert_non_null(weir__buf_room(&b, 290));
    assert_true(weir__buf_add(&b, "abc", 3));
    weir__buf_fini(&b);
}

static void room_does_not_move_the_end(void **state)
{
    struct weir__buf b;
    uint8_t *to;

    (void)state;
    weir__buf_init(&b, 64);
    to = weir__buf_room(&b, 64);
    assert_non_null(to);
    memset(to, 'x', 64);
    assert_int_equal(b.cap, 64);
    assert_int_equal(b.len, 0);
    b.len = 64;
    assert_int_equal(weir__buf_bytes(&b).len, 64);
    assert_null(weir__buf_room(&b, 1));
    weir__buf_clear(&b);
    assert_ptr_equal(weir__buf_room(&b, 64), to);
    weir__buf_fini(&b);
}

/* What it will grow by is what it then grows by: the server counts memory before it takes it. */
static void growth_is_known_before(void **state)
{
    static const struct {
        size_t len, cap;
    } steps[] = {{1, 256}, {256, 256}, {257, 512}, {600, 1024}, {1025, 1100}, {1100, 1100}};
    struct weir__buf b;

    (void)state;
    weir__buf_init(&b, 1100);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        size_t more = steps[i].len - b.len, cap = b.cap;
        assert_int_equal(weir__buf_growth(&b, more), steps[i].cap - cap);
        assert_non_null(weir__buf_room(&b, more));
        assert_int_equal(b.cap, steps[i].cap);
        b.len = steps[i].len;
    }
    assert_int_equal(weir__buf_growth(&b, 1), 0);
    weir__buf_clear(&b);
    assert_int_equal(weir__buf_growth(&b, 1101), 0);
    weir__buf_fini(&b);
    assert_int_equal(weir__buf_growth(&b, 1100), 1100);
    assert_int_equal(weir__buf_growth(&b, 1101), 0);
    assert_int_equal(b.cap, 0);
}

static void nothing_can_be_added(void **state)
{
    struct weir__buf b;

    (void)state;
    weir__buf_init(&b, 16);
    assert_true(weir__buf_add(&b, NULL, 0));
    assert_int_equal(b.len, 0);
    weir__buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_keeps_its_bytes),  cmocka_unit_test(stops_at_its_maximum),
        cmocka_unit_test(room_does_not_move_the_end), cmocka_unit_test(growth_is_known_before),
        cmocka_unit_test(nothing_can_be_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
