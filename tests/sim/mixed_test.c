/* mixed_test.c - copies of ours among hosts of the other libraries: some hundred seeds without a
 * violation, each sabotage seen, and what the dialects do by themselves. WEIR_SEED says where the
 * seeds begin. */
#include "sim/mixed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 60 /* they look for other mistakes, and slowly */
#else
#define SEEDS 300
#endif
#define FOREIGN_SEEDS 100
#define SABOTAGE_SEEDS 100

static uint64_t first_seed(void)
{
    const char *text = getenv("WEIR_SEED");

    return text ? strtoull(text, NULL, 10) : 1;
}

static void keeps_its_promises(void **state)
{
    struct weir__mixed_result sum = {0};

    (void)state;
    for (uint64_t i = 0; i < SEEDS; i++) {
        struct weir__mixed_options o = {.seed = first_seed() + i};
        struct weir__mixed_result r;
        weir__mixed_run(&o, &r);
        if (r.violations > 0)
            fail_msg("weir sim --mixed --seed %lu: %s", (unsigned long)o.seed, r.violation);
        assert_true(r.simulated_ms >= 3600000);
        weir__mixed_add(&sum, &r);
    }
    for (size_t i = 0; i < WEIR__MIXED_FAULTS; i++) assert_true(sum.faults[i] > 0);
    for (size_t i = 0; i < WEIR__FOREIGN_DIALECTS; i++) assert_true(sum.dialects[i] > 0);
    assert_true(sum.stolen > 0 && sum.lost > 0);
    print_message("%.0f simulated hours, %lu moves, %.2f calls for a partition and minute\n",
                  (double)sum.simulated_ms / 3.6e6, (unsigned long)sum.moves,
                  (double)sum.calls_ours / (double)sum.minutes_ours);
}

static void is_the_same_again(void **state)
{
    struct weir__mixed_options o = {.seed = first_seed() + 7};
    struct weir__mixed_result once, again;

    (void)state;
    weir__mixed_run(&o, &once);
    weir__mixed_run(&o, &again);
    assert_memory_equal(&once, &again, sizeof once);
    o.seed++;
    weir__mixed_run(&o, &again);
    assert_true(memcmp(&once, &again, sizeof once) != 0);
}

static void sees_sabotage(void **state)
{
    (void)state;
    for (int sabotage = WEIR__MIXED_HONEST + 1; sabotage < WEIR__MIXED_SABOTAGES; sabotage++) {
        uint64_t tried = 0, violations = 0;
        while (tried < SABOTAGE_SEEDS && violations == 0) {
            struct weir__mixed_options o = {.seed = first_seed() + tried++,
                                            .sabotage = (enum weir__mixed_sabotage)sabotage};
            struct weir__mixed_result r;
            weir__mixed_run(&o, &r);
            violations = r.violations;
        }
        print_message("sabotage %d: seen after %lu seeds\n", sabotage, (unsigned long)tried);
        assert_int_equal(violations, 1);
    }
}

/* What is excused in mixed groups happens without us, too, and nothing else does. */
static void the_dialects_settle_by_themselves(void **state)
{
    struct weir__mixed_result sum = {0};

    (void)state;
    for (uint64_t i = 0; i < FOREIGN_SEEDS; i++) {
        struct weir__mixed_options o = {.seed = first_seed() + i, .foreign_only = true};
        struct weir__mixed_result r;
        weir__mixed_run(&o, &r);
        if (r.violations > 0)
            fail_msg("weir sim --mixed --hosts 0 --seed %lu: %s", (unsigned long)o.seed,
                     r.violation);
        weir__mixed_add(&sum, &r);
    }
    assert_true(sum.uneven > 0);
}

/* ---- the dialects, one round ---- */

static struct weir_record records[8];

/* A letter for each partition's owner; '-': nobody yet, '.': released, in capitals: long ago. */
static void lay_out(const char *owners)
{
    memset(records, 0, sizeof records);
    for (uint32_t p = 0; owners[p]; p++) {
        bool old = owners[p] >= 'A' && owners[p] <= 'Z';
        records[p].partition = p;
        records[p].modified_ms = old ? 0 : 1000000;
        if (owners[p] == '-') continue;
        records[p].version[0] = '1';
        records[p].owner[0] = (char)(owners[p] == '.' ? '\0' : old ? owners[p] + 32 : owners[p]);
    }
}

static const struct weir__foreign_dialect *dialect_of(const char *name)
{
    for (size_t i = 0; i < WEIR__FOREIGN_DIALECTS; i++)
        if (strcmp(weir__foreign_dialects[i].name, name) == 0) return &weir__foreign_dialects[i];
    fail();
    return NULL;
}

/* How many it claims beside its own, as 'm'; all of them have to be `from` somebody of these. */
static uint32_t wants(const char *name, const char *owners, const char *from)
{
    uint64_t chance = first_seed();
    struct weir__foreign_round r = {.records = records,
                                    .partitions = (uint32_t)strlen(owners),
                                    .now_ms = 1001000,
                                    .self = "m",
                                    .chance = &chance};

    lay_out(owners);
    weir__foreign_plan(dialect_of(name), &r);
    for (uint32_t i = 0; i < r.claim_count; i++)
        assert_non_null(strchr(i < r.renewals ? "mM" : from, owners[r.claims[i]]));
    return r.died ? UINT32_MAX : r.claim_count - r.renewals;
}

static void the_dialects_do_as_described(void **state)
{
    static const struct {
        const char *name, *owners, *from;
        uint32_t wants;
    } rows[] = {
        {"dotnet", "aaaa----", "-", 1},     /* one in a round */
        {"dotnet", "aaaaaabm", "a", 1},     /* from who has more than min + 1 */
        {"dotnet", "aaabbbmm", "", 0},      /* nobody has */
        {"dotnet", "aaabbbbm", "b", 1},     /* below min: from min + 1, if nobody has more */
        {"js", "--------", "-", 1},         /* one of all */
        {"js-greedy", "--------", "-", 8},  /* the stampede */
        {"js-greedy", "aaaaaaa-", "a-", 4}, /* what is free first */
        {"js-greedy", "aaaabbbb", "ab", 2}, /* leaving three and three */
        {"js", "aaaabbbb", "ab", 1},        /* one of these */
        {"js", "aaabbbmm", "", 0},          /* balanced */
        {"python", "aaaa----", "-", 4},     /* up to the larger share */
        {"python-balanced", "aaaa----", "-", 1},
        {"python", "aaaaaaaa", "a", 1}, /* steals one only */
        {"python", "aaaabbmm", "", 0},  /* content with the smaller share */
        {"java", "aaaabbmm", "a", 1},   /* one of the least */
        {"java", "aaabbbmm", "", 0},    /* balanced */
        {"java", "aaabbcmm", "", 0},    /* neither below min nor the least */
        {"go", "aaaabbbb", "ab", 1},    /* below min: from who has more than that */
        {"go", "aaabbbmm", "", 0},
        {"go-greedy", "aaaaaa--", "a-", 4}, /* up to min */
        {"go-greedy", "aaaabbmm", "a", 1},  /* and then one more */
        {"cpp", "aaaabbb-", "a-", 2},       /* one that is free, and one that is not */
        {"cpp", "aaabbbmm", "", 0},
        {"cpp", "aaabbbm", "", 0},           /* below min, and nobody is above the larger share */
        {"cpp", "aaaabbb.", "", UINT32_MAX}, /* a released one ends it */
        {"js", "AAAAmmmm", "A", 1},          /* one that has expired is free */
        {"python", "MMMMaaaa", "", 0},       /* its own are renewed all the same */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t got = wants(rows[i].name, rows[i].owners, rows[i].from);
        if (got != rows[i].wants) fail_msg("%s wants %u of %s", rows[i].name, got, rows[i].owners);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_its_promises),
        cmocka_unit_test(is_the_same_again),
        cmocka_unit_test(sees_sabotage),
        cmocka_unit_test(the_dialects_settle_by_themselves),
        cmocka_unit_test(the_dialects_do_as_described),
    };
    return cmocka_run_group_tests_name("mixed", tests, NULL, NULL);
}
