/* gaps_test.c - which sequence numbers are passed over for ranges that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/recover.h"

#define PARTITIONS 2u
#define WATERMARK 1000u
#define STEPS_MAX 5

/* A range that cannot be read, or a batch that can be. */
struct step {
    uint64_t from, to;                /* from 0: a batch at `to`, */
    uint16_t partition;               /* of this one, */
    struct weir__batch_before before; /* which tells this of the one in front of it */
};

#define RANGE(a, b)                                                                                \
    {                                                                                              \
        .from = (a), .to = (b)                                                                     \
    }
#define BATCH(at, p, ...)                                                                          \
    {                                                                                              \
        .to = (at), .partition = (p), .before = { __VA_ARGS__ }                                    \
    }

/* Each partition has 10 events, the last at this offset; so many numbers are passed over. */
static const struct {
    struct step steps[STEPS_MAX];
    uint64_t last_offset[PARTITIONS];
    uint64_t passed[PARTITIONS];
} cases[] = {
    {{RANGE(900, 1000)}, {800, 800}, {0, 0}}, /* the control file knows what was in it */
    {{RANGE(900, 1000), BATCH(1000, 0, 1, 100, 3)}, {800, 800}, {0, 0}},
    {{RANGE(900, 1001)}, {899, 900}, {1, 0}}, /* all but one byte of it */
    {{RANGE(1000, 1100)}, {999, 1000}, {100, 0}},
    {{RANGE(1000, 1100), BATCH(1100, 0, 1, 100, 3)}, {800, 800}, {0, 3}},
    {{RANGE(1000, 1100), BATCH(1100, 1, 1, 100, 3)}, {800, 800}, {0, 0}}, /* its number says it */
    {{RANGE(1000, 1100), BATCH(1100, 0, 1, 99, 3)}, {800, 1200}, {100, 0}},
    {{RANGE(1000, 1100), BATCH(1100, 0, 1, 101, 3)}, {800, 1200}, {100, 0}},
    {{RANGE(1000, 1100), BATCH(1100, 0, 2, 100, 3)}, {800, 1200}, {100, 0}}, /* no such partition */
    {{RANGE(1000, 1100), BATCH(1108, 0, 1, 100, 3)}, {800, 1200}, {100, 0}}, /* of another place */
    {{RANGE(1000, 1050), RANGE(1050, 1100), BATCH(1100, 0, 1, 100, 3)}, {800, 800}, {0, 3}},
    {{RANGE(1000, 1050), RANGE(1060, 1100), BATCH(1100, 0, 1, 40, 2)}, {999, 1000}, {50, 2}},
    {{RANGE(1000, 1050), RANGE(1060, 1100)}, {1059, 1060}, {90, 0}},
    {{RANGE(1000, 1100), BATCH(1100, 0, 1, 100, 3), RANGE(1200, 1300), BATCH(1300, 0, 1, 100, 4)},
     {1200, 800},
     {0, 7}},
    {{RANGE(1000, 1100), BATCH(1100, 0, 1, 100, 3), BATCH(1200, 0, 0, 100, 9)},
     {1200, 800},
     {0, 3}},
};

static void run(struct weir__gaps *g, const struct step *s)
{
    struct weir__batch_header h = {.position = s->to,
                                   .partition = s->partition,
                                   .before = s->before};

    if (s->from)
        weir__gaps_damage(g, s->from, s->to);
    else if (s->to)
        weir__gaps_batch(g, &h);
}

static void numbers_are_passed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__head heads[PARTITIONS], known[PARTITIONS] = {{0}};
        struct weir__gaps gaps;

        assert_int_equal(weir__gaps_init(&gaps, PARTITIONS, WATERMARK, NULL), 0);
        for (int k = 0; k < STEPS_MAX; k++) run(&gaps, &cases[i].steps[k]);
        for (uint32_t p = 0; p < PARTITIONS; p++)
            heads[p] = (struct weir__head){10, cases[i].last_offset[p], 5};
        weir__gaps_pass(&gaps, known, heads);
        for (uint32_t p = 0; p < PARTITIONS; p++)
            if (heads[p].next_sequence != 10 + cases[i].passed[p])
                fail_msg("case %zu, partition %u: %d numbers passed over", i, p,
                         (int)heads[p].next_sequence - 10);
        weir__gaps_fini(&gaps);
    }
}

/* What the control file knows counts where the walk found less, and nowhere else. */
static void a_known_end_is_not_forgotten(void **state)
{
    struct weir__head known[PARTITIONS] = {{10, 950, 60}, {10, 960, 70}};
    struct weir__head heads[PARTITIONS] = {{9, 900, 50}, {10, 940, 40}};
    struct weir__gaps gaps;

    (void)state;
    assert_int_equal(weir__gaps_init(&gaps, PARTITIONS, WATERMARK, NULL), 0);
    weir__gaps_pass(&gaps, known, heads);
    weir__gaps_fini(&gaps);
    assert_memory_equal(&heads[0], &known[0], sizeof heads[0]);
    assert_int_equal(heads[1].next_sequence, 10);
    assert_int_equal(heads[1].last_offset, 940);
    assert_int_equal(heads[1].last_time_ms, 40);
}

/* Of a last segment without a file all behind the watermark is lost, unless that is nothing, or an earlier
 * opening has passed over it and the control file names no file since. */
static void all_of_a_lost_segment_is_passed_over(void **state)
{
    static const struct {
        uint64_t watermark, capacity, name; /* of the segment that the control file names */
        bool lost;
        uint64_t passed;
    } lose[] = {{1000, 64, 3, true, 500}, {1499, 64, 3, true, 1},  {1500, 64, 3, false, 0},
                {1501, 64, 3, false, 0},  {1000, 0, 0, true, 500}, {1000, 64, 0, false, 0},
                {1000, 0, 3, true, 500}};
    const struct weir__segment seg = {.h = {.base = 500, .capacity = 1000}};

    (void)state;
    for (size_t i = 0; i < sizeof lose / sizeof lose[0]; i++) {
        const struct weir__control c = {.watermark = lose[i].watermark,
                                        .active = {.capacity = lose[i].capacity,
                                                   .name = lose[i].name}};
        struct weir__head heads[PARTITIONS] = {{10, 800, 5}, {20, 900, 5}};
        const struct weir__head known[PARTITIONS] = {{0}};
        struct weir__gaps gaps;

        assert_int_equal(weir__gaps_init(&gaps, PARTITIONS, c.watermark, NULL), 0);
        assert_int_equal(weir__gaps_lose(&gaps, &c, &seg), lose[i].lost);
        weir__gaps_pass(&gaps, known, heads);
        assert_int_equal(heads[0].next_sequence, 10 + lose[i].passed);
        assert_int_equal(heads[1].next_sequence, 20 + lose[i].passed);
        weir__gaps_fini(&gaps);
        weir__gaps_fini(&gaps);
    }
}

static void guess(const char *want, uint64_t first, uint64_t sure, uint64_t last)
{
    char text[WEIR__GUESS_BYTES];

    weir__guess_text(text, first, sure, last);
    assert_string_equal(text, want);
}

/* How many were stored at least is told when the control file knows of one; the longest text fits. */
static void what_is_sure_is_told(void **state)
{
    (void)state;
    guess(": at least 7 to 7 were stored, and numbers up to 9 are not given again", 7, 8, 9);
    guess(": at least 7 to 8 were stored, and numbers up to 9 are not given again", 7, 9, 9);
    guess(": how many were stored is not known, and numbers up to 9 are not given again", 7, 7, 9);
    guess(": how many were stored is not known, and numbers up to 9 are not given again", 7, 6, 9);
    guess(": at least 18446744073709551614 to 18446744073709551614 were stored, and numbers up to "
          "18446744073709551615 are not given again",
          UINT64_MAX - 1, UINT64_MAX, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_passed_over),
        cmocka_unit_test(all_of_a_lost_segment_is_passed_over),
        cmocka_unit_test(what_is_sure_is_told),
        cmocka_unit_test(a_known_end_is_not_forgotten),
    };

    return cmocka_run_group_tests_name("gaps", tests, NULL, NULL);
}
