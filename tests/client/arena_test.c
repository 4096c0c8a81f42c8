/* What is taken from an arena lies apart, is kept for the next time, and has an end. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/arena.h"

#define TOTAL ((size_t)100000)
#define PIECES 400

static unsigned char *at[PIECES];

static size_t length_of(unsigned i)
{
    return 1 + i * 37 % 500;
}

/* All at a time, each full of its own number. */
static unsigned take_pieces(struct weir__arena *a)
{
    unsigned count = 0;

    while (count < PIECES && (at[count] = weir__arena_take(a, length_of(count))) != NULL) {
        assert_int_equal((uintptr_t)at[count] % alignof(max_align_t), 0);
        memset(at[count], (int)count, length_of(count));
        count++;
    }
    for (unsigned i = 0; i < count; i++)
        for (size_t n = 0; n < length_of(i); n++) assert_int_equal(at[i][n], i & 0xff);
    return count;
}

static void pieces_lie_apart_and_are_kept(void **state)
{
    struct weir__arena a;
    size_t total;

    (void)state;
    weir__arena_init(&a, 1 << 20);
    assert_int_equal(take_pieces(&a), PIECES);
    total = a.total;
    assert_in_range(total, PIECES * 250, 4 * PIECES * 250); /* of what was asked for */
    for (int round = 0; round < 3; round++) {
        void *first = at[0];
        weir__arena_reset(&a);
        assert_int_equal(take_pieces(&a), PIECES);
        assert_ptr_equal(at[0], first);
        assert_int_equal(a.total, total); /* the memory of before was enough */
    }
    weir__arena_fini(&a);
}

/* Up to the maximum, to the byte, and what does not fit leaves the rest as it was. */
static void an_arena_has_an_end(void **state)
{
    size_t unit = alignof(max_align_t);
    struct weir__arena a;

    (void)state;
    weir__arena_init(&a, TOTAL);
    assert_null(weir__arena_take(&a, TOTAL + 1));
    assert_null(weir__arena_take(&a, SIZE_MAX));
    assert_int_equal(a.total, 0);
    assert_non_null(weir__arena_take(&a, TOTAL / unit * unit));
    assert_null(weir__arena_take(&a, unit));
    weir__arena_fini(&a);
    weir__arena_init(&a, TOTAL);
    assert_non_null(weir__arena_take(&a, 60000));
    assert_null(weir__arena_take(&a, 40001)); /* which would be 40016 */
    assert_non_null(weir__arena_take(&a, 40000));
    assert_int_equal(a.total, TOTAL);
    weir__arena_reset(&a);
    assert_non_null(weir__arena_take(&a, 60000));
    assert_non_null(weir__arena_take(&a, 40000));
    weir__arena_fini(&a);
}

/* A chunk that is too small for what comes next does not get lost. */
static void small_chunks_wait_for_small_pieces(void **state)
{
    struct weir__arena a;
    size_t total;

    (void)state;
    weir__arena_init(&a, TOTAL);
    assert_non_null(weir__arena_take(&a, 4096));
    assert_non_null(weir__arena_take(&a, 4096));
    total = a.total;
    assert_int_equal(total, 8192); /* as much again as there was */
    weir__arena_reset(&a);
    assert_non_null(weir__arena_take(&a, 4096));
    assert_non_null(weir__arena_take(&a, 5000));
    assert_int_equal(a.total, total + 8192);
    assert_non_null(weir__arena_take(&a, 4096)); /* the one from before: nothing is new */
    assert_int_equal(a.total, total + 8192);
    weir__arena_fini(&a);
}

/* What is left may be just what a new chunk would take: then it takes all of it, and else no more
 * than it needs. */
static void the_last_chunk_takes_what_is_left(void **state)
{
    struct weir__arena a;

    (void)state;
    weir__arena_init(&a, 8192);
    assert_non_null(weir__arena_take(&a, 1));
    assert_int_equal(a.total, 4096);
    assert_non_null(weir__arena_take(&a, 4096));
    assert_int_equal(a.total, 8192);
    assert_null(weir__arena_take(&a, 1));
    weir__arena_fini(&a);
    weir__arena_init(&a, 8191);
    assert_non_null(weir__arena_take(&a, 4096));
    assert_non_null(weir__arena_take(&a, 1));
    assert_true(a.total > 4096 && a.total < 4096 + 256);
    weir__arena_fini(&a);
    weir__arena_init(&a, 8192);
    assert_non_null(weir__arena_take(&a, 4096));
    assert_non_null(weir__arena_take(&a, 1));
    assert_int_equal(a.total, 8192);
    weir__arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_lie_apart_and_are_kept),
        cmocka_unit_test(an_arena_has_an_end),
        cmocka_unit_test(small_chunks_wait_for_small_pieces),
        cmocka_unit_test(the_last_chunk_takes_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
