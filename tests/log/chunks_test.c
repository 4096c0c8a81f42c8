/* chunks_test.c - the bytes of a file in memory: what they are charged for, what was released, and what
 * reads as zeros. */
#include "log/chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CHUNK ((uint64_t)WEIR__CHUNK_BYTES)
#define BUDGET (16 * CHUNK) /* 1 MiB */

struct place {
    struct weir__budget budget;
    struct weir__chunks a, b; /* of one budget */
    struct weir_error err;
};

static int set_up(void **state)
{
    struct place *p = test_calloc(1, sizeof *p);

    weir__mutex_init(&p->budget.lock);
    p->budget.max = BUDGET;
    p->a.budget = p->b.budget = &p->budget;
    *state = p;
    return 0;
}

/* Everything is given back in the end. */
static int tear_down(void **state)
{
    struct place *p = *state;

    weir__chunks_fini(&p->a);
    weir__chunks_fini(&p->b);
    assert_int_equal(p->budget.used, 0);
    weir__mutex_fini(&p->budget.lock);
    test_free(p);
    return 0;
}

static void resize(struct weir__chunks *c, uint64_t size)
{
    assert_int_equal(weir__chunks_resize(c, size, NULL), 0);
    assert_int_equal(c->size, size);
}

/* So many chunks are charged for, of these bytes and of all. */
static void expect(const struct place *p, uint64_t a, uint64_t all)
{
    assert_int_equal(weir__chunks_used(&p->a), a * CHUNK);
    assert_int_equal(p->budget.used, all * CHUNK);
}

static int put(struct weir__chunks *c, const char *text, uint64_t at, struct weir_error *err)
{
    return weir__chunks_write(c, weir__bytes_of(text, strlen(text)), at, err);
}

static void expect_text(const struct weir__chunks *c, const char *text, uint64_t at)
{
    char got[16] = "";

    weir__chunks_read(c, (uint8_t *)got, strlen(text), at);
    assert_string_equal(got, text);
}

/* All of these bytes are zeros. */
static void expect_zeros(const struct weir__chunks *c, uint64_t from, uint64_t to)
{
    uint8_t *got = test_malloc(to - from);

    memset(got, 'x', to - from);
    weir__chunks_read(c, got, to - from, from);
    for (uint64_t i = 0; i < to - from; i++)
        if (got[i] != 0) fail_msg("byte %d is %d", (int)(from + i), got[i]);
    test_free(got);
}

static void expect_full(const struct place *p)
{
    assert_string_equal(p->err.text, "all of the 1 MiB that may be kept in memory are used");
}

/* A part of a chunk is charged for as a whole one, once. */
static void whole_chunks_are_charged_for(void **state)
{
    static const struct {
        uint64_t size, chunks;
    } steps[] = {{1, 1},         {CHUNK - 1, 1},     {CHUNK, 1},
                 {CHUNK + 1, 2}, {2 * CHUNK, 2},     {5 * CHUNK + 1, 6},
                 {5 * CHUNK, 5}, {4 * CHUNK + 1, 5}, {1, 1},
                 {0, 0},         {BUDGET, 16}};
    struct place *p = *state;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        resize(&p->a, steps[i].size);
        expect(p, steps[i].chunks, steps[i].chunks);
    }
}

/* What there is no budget for changes nothing, however much it is. */
static void too_much_changes_nothing(void **state)
{
    static const uint64_t sizes[] = {9 * CHUNK + 1, BUDGET, BUDGET + 1, UINT64_MAX - CHUNK,
                                     UINT64_MAX};
    struct place *p = *state;

    resize(&p->b, 7 * CHUNK);
    assert_int_equal(weir__chunks_resize(&p->a, UINT64_MAX, NULL), WEIR_ENOSPACE);
    expect(p, 0, 7);
    resize(&p->a, CHUNK);
    assert_int_equal(put(&p->a, "kept", 3, NULL), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(weir__chunks_resize(&p->a, sizes[i], &p->err), WEIR_ENOSPACE);
        expect_full(p);
        assert_int_equal(p->a.size, CHUNK);
        expect(p, 1, 8);
    }
    resize(&p->a, 9 * CHUNK);
    expect(p, 9, 16);
    expect_text(&p->a, "kept", 3);
}

/* Only chunks that lie in the range as a whole are released, and each once. */
static void whole_chunks_are_released(void **state)
{
    static const struct {
        uint64_t at, end, chunks; /* so many are left of eight */
    } ranges[] = {
        {0, 0, 8},
        {1, 2 * CHUNK - 1, 8},
        {1, 2 * CHUNK, 7},
        {CHUNK, 2 * CHUNK, 7},
        {CHUNK - 1, 3 * CHUNK - 1, 7},
        {CHUNK - 1, 3 * CHUNK, 6},
        {5 * CHUNK, 8 * CHUNK - 100, 6},
        {0, 8 * CHUNK - 100, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        void *made;
        struct place *p;

        set_up(&made);
        p = made;
        resize(&p->a, 8 * CHUNK - 100);
        for (int round = 0; round < 2; round++) {
            weir__chunks_release(&p->a, ranges[i].at, ranges[i].end - ranges[i].at);
            expect(p, ranges[i].chunks, ranges[i].chunks);
        }
        tear_down(&made);
    }
}

/* What was released reads as zeros, and what lies around it stays. */
static void what_was_released_is_zero(void **state)
{
    struct place *p = *state;

    resize(&p->a, 4 * CHUNK);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(put(&p->a, "begin", i * CHUNK, NULL), 0);
        assert_int_equal(put(&p->a, "end", (i + 1) * CHUNK - 3, NULL), 0);
    }
    weir__chunks_release(&p->a, CHUNK, 2 * CHUNK);
    expect_text(&p->a, "end", CHUNK - 3);
    expect_zeros(&p->a, CHUNK, 3 * CHUNK);
    expect_text(&p->a, "begin", 3 * CHUNK);
    assert_int_equal(put(&p->a, "again", 2 * CHUNK - 2, NULL), 0); /* both of them */
    expect(p, 4, 4);
    expect_zeros(&p->a, CHUNK, 2 * CHUNK - 2);
    expect_text(&p->a, "again", 2 * CHUNK - 2);
    expect_zeros(&p->a, 2 * CHUNK + 3, 3 * CHUNK);
}

/* A chunk that was released is charged for when it is written to, if there is budget. */
static void a_write_needs_budget_again(void **state)
{
    struct place *p = *state;

    resize(&p->a, 4 * CHUNK);
    weir__chunks_release(&p->a, 0, 2 * CHUNK);
    resize(&p->b, 14 * CHUNK);
    assert_int_equal(put(&p->a, "x", CHUNK, &p->err), WEIR_ENOSPACE);
    expect_full(p);
    expect(p, 2, 16);
    expect_zeros(&p->a, 0, 2 * CHUNK);
    assert_int_equal(put(&p->a, "x", 2 * CHUNK, NULL), 0); /* that one is charged for */
    resize(&p->b, 13 * CHUNK);
    assert_int_equal(put(&p->a, "yz", CHUNK, NULL), 0);
    expect(p, 3, 16);
    assert_int_equal(put(&p->a, "x", CHUNK, NULL), 0);
    expect(p, 3, 16);
    expect_text(&p->a, "xz", CHUNK);
}

/* All of them at once, or none. */
static void filling_needs_budget_for_all(void **state)
{
    struct place *p = *state;

    resize(&p->a, 4 * CHUNK);
    weir__chunks_release(&p->a, CHUNK, 2 * CHUNK);
    resize(&p->b, 13 * CHUNK);
    assert_int_equal(weir__chunks_fill(&p->a, &p->err), WEIR_ENOSPACE);
    expect_full(p);
    expect(p, 2, 15);
    resize(&p->b, 12 * CHUNK);
    assert_int_equal(weir__chunks_fill(&p->a, NULL), 0);
    expect(p, 4, 16);
    assert_int_equal(weir__chunks_fill(&p->a, NULL), 0); /* there is nothing left to fill */
    expect(p, 4, 16);
    assert_int_equal(put(&p->a, "x", CHUNK, NULL), 0);
    assert_int_equal(put(&p->a, "x", 2 * CHUNK, NULL), 0);
    expect(p, 4, 16);
}

/* Shorter, some of what is cut off was released, and some of what stays. */
static void cutting_off_what_was_released_gives_nothing_back(void **state)
{
    struct place *p = *state;

    resize(&p->a, 6 * CHUNK);
    weir__chunks_release(&p->a, CHUNK, 3 * CHUNK);
    expect(p, 3, 3);
    resize(&p->a, 2 * CHUNK + 5); /* the last chunk of it was released */
    expect(p, 1, 1);
    expect_zeros(&p->a, 0, 2 * CHUNK + 5);
    resize(&p->a, 5 * CHUNK);
    expect(p, 3, 3);
    expect_zeros(&p->a, CHUNK, 5 * CHUNK);
    assert_int_equal(weir__chunks_fill(&p->a, NULL), 0);
    expect(p, 5, 5);
    weir__chunks_release(&p->a, 0, 5 * CHUNK);
    expect(p, 0, 0);
    resize(&p->a, 0);
    expect(p, 0, 0);
}

/* Down to the last byte that stays. */
static void what_was_cut_off_is_gone(void **state)
{
    struct place *p = *state;

    resize(&p->a, 3 * CHUNK);
    assert_int_equal(put(&p->a, "abcdefgh", CHUNK - 4, NULL), 0);
    assert_int_equal(put(&p->a, "ijkl", 2 * CHUNK, NULL), 0);
    resize(&p->a, CHUNK + 2);
    resize(&p->a, 3 * CHUNK);
    expect_text(&p->a, "abcdef", CHUNK - 4);
    expect_zeros(&p->a, CHUNK + 2, 3 * CHUNK);
    resize(&p->a, CHUNK);
    resize(&p->a, CHUNK + 1);
    expect_text(&p->a, "abcd", CHUNK - 4);
    expect_zeros(&p->a, CHUNK, CHUNK + 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(whole_chunks_are_charged_for),
        CASE(too_much_changes_nothing),
        cmocka_unit_test(whole_chunks_are_released),
        CASE(what_was_released_is_zero),
        CASE(a_write_needs_budget_again),
        CASE(filling_needs_budget_for_all),
        CASE(cutting_off_what_was_released_gives_nothing_back),
        CASE(what_was_cut_off_is_gone),
    };

    return cmocka_run_group_tests_name("chunks", tests, NULL, NULL);
}
