/* wire_row_test.c - what a row holds and gives back, and the chunks that wait for the next one. */
#include "client/wire_row.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ITEM_BYTES 1000u
#define ANY_BYTES ((size_t)1 << 30)

static struct weir__wire_pool pool;

static int set_up(void **state)
{
    (void)state;
    weir__wire_pool_init(&pool);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir__wire_pool_fini(&pool);
    return 0;
}

/* An item that is known by its number. */
static void put(struct weir__wire_row *r, uint32_t number)
{
    uint8_t at[ITEM_BYTES] = {0};

    weir__store32(at, number);
    if (!weir__wire_row_fits(r, ITEM_BYTES)) assert_true(weir__wire_row_begin(r, ITEM_BYTES));
    weir__wire_row_put(r, (struct weir__wire_item){weir__bytes_of(at, ITEM_BYTES),
                                                   .stored = number % 2});
}

static void fill(struct weir__wire_row *r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) put(r, i);
    weir__wire_row_show(r);
}

/* Reads what is there, which begins with 0; returns how many there were. */
static uint32_t drain(struct weir__wire_row *r)
{
    struct weir__wire_item item;
    uint32_t count = 0;

    for (weir__wire_row_look(r); weir__wire_row_peek(r, &item); count++) {
        assert_int_equal(item.bytes.len, ITEM_BYTES);
        assert_int_equal(weir__load32(item.bytes.at), count);
        assert_int_equal(item.stored, count % 2);
        weir__wire_row_pass(r, &item);
    }
    return count;
}

static void what_was_put_comes_in_order(void **state)
{
    struct weir__wire_row r;

    (void)state;
    weir__wire_row_init(&r, &pool, ANY_BYTES);
    assert_false(weir__wire_row_look(&r));
    for (uint32_t i = 0; i < 100; i++) put(&r, i);
    assert_true(weir__wire_row_hidden(&r) > 0);
    weir__wire_row_show(&r);
    assert_int_equal(weir__wire_row_hidden(&r), 0);
    assert_int_equal(r.held, 100 * (ITEM_BYTES + WEIR__WIRE_LENGTH_BYTES));
    assert_int_equal(drain(&r), 100);
    assert_int_equal(r.held_count, 100); /* what the caller has is there until it lets go of it */
    weir__wire_row_release(&r);
    assert_int_equal(r.held_count, 0);
    assert_int_equal(r.held, 0);
    weir__wire_row_fini(&r);
}

/* The last one that the caller may see, whether it has had it or not. */
static void the_newest_is_known(void **state)
{
    struct weir__wire_item item;
    struct weir__wire_row r;

    (void)state;
    weir__wire_row_init(&r, &pool, ANY_BYTES);
    assert_false(weir__wire_row_newest(&r, &item));
    put(&r, 0);
    assert_false(weir__wire_row_newest(&r, &item)); /* it is still hidden */
    weir__wire_row_show(&r);
    for (uint32_t i = 1; i < 100; i++) {
        put(&r, i);
        weir__wire_row_show(&r);
        assert_true(weir__wire_row_newest(&r, &item));
        assert_int_equal(item.bytes.len, ITEM_BYTES);
        assert_int_equal(weir__load32(item.bytes.at), i);
        assert_int_equal(item.stored, i % 2);
    }
    assert_int_equal(drain(&r), 100);
    assert_true(weir__wire_row_newest(&r, &item));
    weir__wire_row_release(&r);
    assert_false(weir__wire_row_newest(&r, &item));
    weir__wire_row_fini(&r);
}

/* A row that is read keeps nothing; what waits is there for the others, and is bounded. */
static void chunks_go_from_one_row_to_the_next(void **state)
{
    struct weir__wire_row first, second;
    size_t kept;

    (void)state;
    weir__wire_row_init(&first, &pool, ANY_BYTES);
    weir__wire_row_init(&second, &pool, ANY_BYTES);
    fill(&first, 1000);
    assert_int_equal(drain(&first), 1000);
    assert_int_equal(pool.bytes, 0);
    weir__wire_row_release(&first);
    kept = pool.bytes;
    assert_in_range(kept, 900 * ITEM_BYTES, 1100 * ITEM_BYTES);
    assert_null(first.first);
    fill(&second, 500);
    assert_true(pool.bytes < kept);
    assert_int_equal(drain(&second), 500);
    weir__wire_row_fini(&second);
    weir__wire_row_fini(&first);
}

static void the_pool_has_a_bound(void **state)
{
    struct weir__wire_row r;
    uint32_t many = (uint32_t)(2 * WEIR__WIRE_POOL_BYTES / ITEM_BYTES);

    (void)state;
    weir__wire_row_init(&r, &pool, ANY_BYTES);
    fill(&r, many);
    assert_int_equal(drain(&r), many);
    weir__wire_row_release(&r);
    assert_int_equal(pool.bytes, WEIR__WIRE_POOL_BYTES);
    weir__wire_row_fini(&r);
}

/* Puts one item of this size, reads it, and lets go of it. Returns what it needed of the pool. */
static size_t pass_one(struct weir__wire_row *r, size_t bytes)
{
    static uint8_t at[WEIR__WIRE_POOL_BYTES];
    size_t before = pool.bytes, took;
    struct weir__wire_item item = {weir__bytes_of(at, bytes), .stored = true};

    assert_true(weir__wire_row_begin(r, bytes));
    took = before - pool.bytes;
    weir__wire_row_put(r, item);
    weir__wire_row_show(r);
    assert_true(weir__wire_row_look(r) && weir__wire_row_peek(r, &item));
    assert_int_equal(item.bytes.len, bytes);
    weir__wire_row_pass(r, &item);
    weir__wire_row_release(r);
    return took;
}

static void a_large_item_finds_the_chunk_of_the_last_one(void **state)
{
    struct weir__wire_row r;

    (void)state;
    weir__wire_row_init(&r, &pool, ANY_BYTES);
    assert_int_equal(pass_one(&r, 300000), 0);
    assert_int_equal(pool.bytes, 5 * 65536);
    assert_int_equal(pass_one(&r, 5 * 65536 - WEIR__WIRE_LENGTH_BYTES), 5 * 65536);
    assert_int_equal(pass_one(&r, 2 * 65536 + 1), 5 * 65536); /* three, of which five is enough */
    assert_int_equal(pool.bytes, 5 * 65536);
    weir__wire_row_fini(&r);
}

/* Neither a chunk that is too small nor one that is far too large is taken. Both wait on, until
 * there are too many. */
static void what_does_not_suit_makes_way(void **state)
{
    struct weir__wire_row r;

    (void)state;
    weir__wire_row_init(&r, &pool, ANY_BYTES);
    assert_int_equal(pass_one(&r, 300000), 0);
    assert_int_equal(pass_one(&r, 5 * 65536), 0); /* needs six */
    assert_int_equal(pass_one(&r, 65536), 0);     /* two */
    assert_int_equal(pool.bytes, (5 + 6 + 2) * 65536);
    assert_int_equal(pass_one(&r, 51 * 65536 - WEIR__WIRE_LENGTH_BYTES), 0);
    assert_int_equal(pool.bytes, WEIR__WIRE_POOL_BYTES);
    assert_int_equal(pass_one(&r, 19 * 65536), 0);
    assert_int_equal(pool.bytes, (5 + 6 + 2 + 20) * 65536);
    assert_int_equal(pass_one(&r, WEIR__WIRE_POOL_BYTES), 0); /* is not kept */
    assert_int_equal(pool.bytes, (5 + 6 + 2 + 20) * 65536);
    weir__wire_row_fini(&r);
}

/* One of several is found, whichever was given back last. */
static void chunks_of_several_sizes_wait_side_by_side(void **state)
{
    struct weir__wire_row r[3];
    size_t bytes[3] = {70000, 300000, 1000000};

    (void)state;
    for (int i = 0; i < 3; i++) {
        weir__wire_row_init(&r[i], &pool, ANY_BYTES);
        assert_true(weir__wire_row_begin(&r[i], bytes[i]));
    }
    for (int i = 0; i < 3; i++) weir__wire_row_release(&r[i]);
    assert_int_equal(pool.bytes, 0); /* they are being filled */
    for (int i = 0; i < 3; i++) {
        weir__wire_row_show(&r[i]);
        weir__wire_row_release(&r[i]);
    }
    assert_int_equal(pool.bytes, (2 + 5 + 16) * 65536);
    for (int i = 0; i < 9; i++) assert_true(pass_one(&r[i % 3], bytes[i % 3]) >= bytes[i % 3]);
    assert_int_equal(pool.bytes, (2 + 5 + 16) * 65536);
    for (int i = 0; i < 3; i++) weir__wire_row_fini(&r[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_newest_is_known),
        TEST(what_was_put_comes_in_order),
        TEST(chunks_go_from_one_row_to_the_next),
        TEST(the_pool_has_a_bound),
        TEST(a_large_item_finds_the_chunk_of_the_last_one),
        TEST(what_does_not_suit_makes_way),
        TEST(chunks_of_several_sizes_wait_side_by_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
