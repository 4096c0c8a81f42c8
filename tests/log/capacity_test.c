/* capacity_test.c - how large segments become, and what fits into them, byte by byte.
 *
 * A segment of a few partitions has 8 KiB in front and the same again at its end; its index takes
 * 8 KiB, and 4 KiB more when one more entry must find room. */
#include "log/stepped.h"

#define FRONT 8192u

static int set_up(void **state)
{
    *state = world_new((struct weir__log_options){.partitions = 3,
                                                  .batch_bytes_max = 16 * KIB,
                                                  .segment_bytes_max = 1024 * KIB});
    return 0;
}

/* The least that holds a batch: two fronts, an index that grows, and the batch in whole blocks. */
static void the_least_holds_one_batch(void **state)
{
    struct world *w = *state;

    start(w);
    assert_int_equal(weir__capacity_least(w->log, 0), 64 * KIB);
    assert_int_equal(weir__capacity_least(w->log, 36 * KIB), 64 * KIB);
    assert_int_equal(weir__capacity_least(w->log, 36 * KIB + 1), 128 * KIB);
    assert_int_equal(weir__capacity_least(w->log, 100 * KIB), 128 * KIB);
    assert_int_equal(weir__capacity_least(w->log, 100 * KIB + 1), 256 * KIB);
    assert_true(weir__log_fits(w->log, 2, 36 * KIB));
    assert_false(weir__log_fits(w->log, 2, 36 * KIB + 1));
}

static void what_fits_is_said(void **state)
{
    struct world *w = *state;
    struct weir__segment *seg;

    start(w);
    seg = weir__log_active(w->log);
    put(w, 8 * KIB);
    assert_true(weir__log_fits(w->log, 2, 28 * KIB));
    assert_false(weir__log_fits(w->log, 2, 28 * KIB + 1));
    assert_false(weir__log_fits(w->log, 3, 8));
    seg->hole_at = FRONT + 12 * KIB;
    seg->hole_len = 16 * KIB; /* its space has gone back */
    assert_true(weir__log_fits(w->log, 0, 4 * KIB));
    assert_false(weir__log_fits(w->log, 0, 4 * KIB + 1));
    seg->hole_len = 0;
    w->log->must_roll = true;
    assert_false(weir__log_fits(w->log, 0, 8));
    w->log->must_roll = false;
    seg->h.version = 1;
    assert_false(weir__log_fits(w->log, 0, 8));
    seg->h.version = 2;
    assert_true(weir__log_fits(w->log, 0, 8));
}

/* Each batch that waits may need an entry of 80 bytes; 4 KiB has room for 51 of them. */
static void those_that_wait_need_room(void **state)
{
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
    struct world *w = *state;
    const uint64_t each = 88;

    start(w);
    for (uint32_t i = 1; i <= 51; i++) {
        uint64_t left = 36 * KIB - (i - 1) * each;

        assert_true(weir__log_fits(w->log, 0, left));
        assert_false(weir__log_fits(w->log, 0, left + 1));
        assert_int_equal(weir__log_append(w->log, &b, 0, NULL, NULL, NULL), 0);
    }
    assert_true(weir__log_fits(w->log, 0, 32 * KIB - 51 * each));
    assert_false(weir__log_fits(w->log, 0, 32 * KIB - 51 * each + 1));
}

/* Those that are stored need no more than their entries. */
static void those_that_are_stored_do_not_wait(void **state)
{
    struct world *w = *state;
    const uint64_t left = 36 * KIB - 60 * 88;

    start(w);
    for (int i = 0; i < 60; i++) put(w, 88);
    assert_true(weir__log_fits(w->log, 0, left));
    assert_false(weir__log_fits(w->log, 0, left + 1));
}

/* A full segment makes the next one twice as large, and eight times when it was full within a
 * second, or the one before it was. */
static void full_segments_grow(void **state)
{
    struct world *w = *state;

    start(w);
    simclock_pass(&w->clock, 999);
    assert_int_equal(weir__capacity_next(w->log, true, 0), 512 * KIB);
    simclock_pass(&w->clock, 1);
    assert_int_equal(weir__capacity_next(w->log, true, 0), 128 * KIB);
    w->log->filling_fast = true;
    assert_int_equal(weir__capacity_next(w->log, true, 0), 512 * KIB);
    assert_int_equal(weir__capacity_enough(w->log), 128 * KIB);
    w->log->o.segment_bytes_max = 256 * KIB;
    assert_int_equal(weir__capacity_next(w->log, true, 0), 256 * KIB);
    w->log->o.segment_bytes_max = 64 * KIB;
    assert_int_equal(weir__capacity_next(w->log, true, 0), 64 * KIB);
    assert_int_equal(weir__capacity_next(w->log, true, 36 * KIB + 1), 128 * KIB);
    assert_int_equal(weir__capacity_enough(w->log), 64 * KIB);
}

/* One that was left half empty for a large batch says nothing of how much there is. */
static void a_large_batch_does_not_make_them_grow(void **state)
{
    struct world *w = *state;

    start(w);
    simclock_pass(&w->clock, 1000);
    put(w, 4 * KIB); /* 28 KiB are used */
    assert_int_equal(weir__capacity_next(w->log, true, 8), 64 * KIB);
    assert_int_equal(weir__capacity_next(w->log, true, 40 * KIB), 128 * KIB);
    assert_int_equal(weir__capacity_next(w->log, true, 0), 128 * KIB);
    put(w, 88); /* 32 KiB are */
    assert_int_equal(weir__capacity_next(w->log, true, 8), 128 * KIB);
}

/* One that is left for its age makes the next as large as what it held, in powers of two. */
static void old_segments_shrink(void **state)
{
    struct world *w = *state;

    w->o.segment_bytes_min = 256 * KIB;
    start(w);
    w->log->o.segment_bytes_min = 64 * KIB;
    assert_int_equal(weir__capacity_next(w->log, false, 0), 64 * KIB);
    put(w, 16 * KIB);
    put(w, 16 * KIB);
    put(w, 8 * KIB); /* with 16 KiB around it, and an index of 8 KiB */
    assert_int_equal(weir__capacity_next(w->log, false, 0), 64 * KIB);
    put(w, 88);
    assert_int_equal(weir__capacity_next(w->log, false, 0), 128 * KIB);
    w->log->o.segment_bytes_min = 512 * KIB;
    assert_int_equal(weir__capacity_next(w->log, false, 0), 512 * KIB);
}

/* None is larger than an eighth of the limit in bytes, but for what one batch needs. */
static void a_limit_keeps_them_small(void **state)
{
    struct world *w = *state;

    start(w);
    w->log->filling_fast = true;
    assert_int_equal(weir__capacity_most(w->log), 1024 * KIB);
    w->log->o.retain_bytes = 2048 * KIB;
    assert_int_equal(weir__capacity_most(w->log), 256 * KIB);
    assert_int_equal(weir__capacity_next(w->log, true, 0), 256 * KIB);
    w->log->o.retain_bytes--;
    assert_int_equal(weir__capacity_most(w->log), 128 * KIB);
    assert_int_equal(weir__capacity_next(w->log, true, 0), 128 * KIB);
    w->log->o.retain_bytes = 1;
    assert_int_equal(weir__capacity_most(w->log), 64 * KIB);
    w->log->o.batch_bytes_max = 36 * KIB - WEIR__BATCH_HEADER_BYTES;
    assert_int_equal(weir__capacity_most(w->log), 64 * KIB);
    w->log->o.batch_bytes_max++;
    assert_int_equal(weir__capacity_most(w->log), 128 * KIB);
}

/* A file that is ready to be the next is of use when it is twice to eight times as large. */
static void spares_of_some_sizes_suit(void **state)
{
    struct world *w = *state;

    start(w);
    assert_false(weir__capacity_suits(w->log, 64 * KIB));
    assert_true(weir__capacity_suits(w->log, 128 * KIB));
    assert_true(weir__capacity_suits(w->log, 512 * KIB));
    assert_false(weir__capacity_suits(w->log, 1024 * KIB));
    w->log->o.segment_bytes_max = 64 * KIB;
    assert_true(weir__capacity_suits(w->log, 64 * KIB));
    assert_false(weir__capacity_suits(w->log, 128 * KIB));
}

/* At least 16 KiB, and a sixteenth of the segment. */
static void little_is_not_worth_giving_back(void **state)
{
    struct world *w = *state;
    struct weir__segment small = {.h.capacity = 64 * KIB}, large = {.h.capacity = 1024 * KIB};

    start(w);
    assert_false(weir__capacity_worth(w->log, &small, 16 * KIB - 1));
    assert_true(weir__capacity_worth(w->log, &small, 16 * KIB));
    assert_false(weir__capacity_worth(w->log, &large, 64 * KIB - 1));
    assert_true(weir__capacity_worth(w->log, &large, 64 * KIB));
}

/* Its folder and last block, a chunk for each partition, and a sixth of what it is of. */
static void an_index_takes_no_more(void **state)
{
    (void)state;
    assert_int_equal(weir__capacity_index_max(3, 0), 12 * KIB);
    assert_int_equal(weir__capacity_index_max(3, 6 * (4 * KIB - 120)), 12 * KIB);
    assert_int_equal(weir__capacity_index_max(3, 6 * (4 * KIB - 120 + 1)), 16 * KIB);
    assert_int_equal(weir__capacity_index_max(1024, 5), 60 * KIB);
    assert_int_equal(weir__capacity_index_max(1024, 6), 64 * KIB);
}

/* For a limit of 1 MiB, worked out by hand: the limit and a sixth of it; for each segment 36 KiB, two
 * fronts and a sixteenth of it; then the oldest and two of the largest, which may have 128 KiB. */
static void the_disk_holds_no_more(void **state)
{
    struct world *w = *state;

    w->o.segment_bytes_min = 256 * KIB;
    start(w);
    assert_int_equal(weir__log_disk_max(w->log), 0);
    w->log->o.retain_bytes = 1024 * KIB;
    assert_int_equal(weir__log_disk_max(w->log),
                     1048576 + 174762 + 36864 + 16384 + 16384 + 262144 + 2 * 131072);
    weir__log_active(w->log)->h.capacity = 64 * KIB;
    assert_int_equal(weir__log_disk_max(w->log),
                     1048576 + 174762 + 36864 + 16384 + 4096 + 131072 + 2 * 131072);
    weir__log_active(w->log)->h.capacity = 256 * KIB;
}

/* When the limit is lowered, a segment that is larger than it may be now is left at the next look. */
static void one_that_is_too_large_is_left(void **state)
{
    struct world *w = *state;
    uint64_t last;

    w->o.segment_bytes_min = 256 * KIB;
    start(w);
    put(w, 8 * KIB);
    last = w->log->control.last_segment;
    assert_int_equal(weir__log_active(w->log)->h.capacity, 256 * KIB);
    weir__log_set_retention(w->log, -1, 2048 * KIB);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->control.last_segment, last); /* it may just be so large */
    weir__log_set_retention(w->log, -1, 1024 * KIB);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->control.last_segment, last + 1);
    assert_in_range(weir__log_active(w->log)->h.capacity, 1, 128 * KIB);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->control.last_segment, last + 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_least_holds_one_batch),
        CASE(what_fits_is_said),
        CASE(those_that_wait_need_room),
        CASE(those_that_are_stored_do_not_wait),
        CASE(full_segments_grow),
        CASE(a_large_batch_does_not_make_them_grow),
        CASE(old_segments_shrink),
        CASE(a_limit_keeps_them_small),
        CASE(spares_of_some_sizes_suit),
        CASE(little_is_not_worth_giving_back),
        CASE(one_that_is_too_large_is_left),
        cmocka_unit_test(an_index_takes_no_more),
        CASE(the_disk_holds_no_more),
    };

    return cmocka_run_group_tests_name("capacity", tests, NULL, NULL);
}
