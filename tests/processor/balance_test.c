/* balance_test.c - what weir__balance promises, over random groups, against a count made another
 * way: every choice of who gets rounded up is tried. */
#define _GNU_SOURCE
#include "processor/balance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/dice.h"

#define MEMBERS_MAX 9
#define PARTITIONS_MAX 60
#define ROUNDS 20000

struct group {
    uint32_t members, partitions;
    uint32_t weights[MEMBERS_MAX];
    uint32_t owner[PARTITIONS_MAX];
};

static uint64_t all_weights(const struct group *g)
{
    uint64_t all = 0;

    for (uint32_t m = 0; m < g->members; m++) all += g->weights[m];
    return all;
}

/* Weights are often all alike, as they are in life. */
static void make_group(struct group *g, uint64_t *dice)
{
    uint32_t kind = (uint32_t)dice_roll(dice, 3);

    memset(g, 0, sizeof *g);
    g->members = 1 + (uint32_t)dice_roll(dice, MEMBERS_MAX);
    g->partitions = 1 + (uint32_t)dice_roll(dice, PARTITIONS_MAX);
    for (uint32_t m = 0; m < g->members; m++)
        g->weights[m] = kind == 0 ? 1 : (uint32_t)dice_roll(dice, kind == 1 ? 2 : 7);
    for (uint32_t p = 0; p < g->partitions; p++) {
        uint32_t who = (uint32_t)dice_roll(dice, g->members + 1);
        if (dice_roll(dice, 3) == 0) who = 0; /* some have much more than their share */
        g->owner[p] = who == g->members ? WEIR__NOBODY : who;
    }
}

static void count_held(const struct group *g, const uint32_t *owner, uint32_t *held)
{
    memset(held, 0, MEMBERS_MAX * sizeof *held);
    for (uint32_t p = 0; p < g->partitions; p++)
        if (owner[p] != WEIR__NOBODY) held[owner[p]]++;
}

static uint32_t count_moves(const struct group *g, const uint32_t *out)
{
    uint32_t moves = 0;

    for (uint32_t p = 0; p < g->partitions; p++) moves += out[p] != g->owner[p];
    return moves;
}

/* The fewest partitions that must change hands, by trying every set of members to round up. */
static uint32_t fewest_moves(const struct group *g)
{
    uint64_t all = all_weights(g);
    uint32_t held[MEMBERS_MAX], best = UINT32_MAX;

    count_held(g, g->owner, held);
    for (uint32_t set = 0; set < 1u << g->members; set++) {
        uint32_t total = 0, kept = 0;
        bool fits = true;
        for (uint32_t m = 0; m < g->members; m++) {
            uint64_t quota = (uint64_t)g->partitions * g->weights[m];
            bool up = set >> m & 1;
            uint32_t size = (uint32_t)(quota / all) + up;
            fits = fits && !(up && quota % all == 0);
            total += size;
            kept += held[m] < size ? held[m] : size;
        }
        if (fits && total == g->partitions && g->partitions - kept < best)
            best = g->partitions - kept;
    }
    return best;
}

static void assert_fair(const struct group *g, const uint32_t *out)
{
    uint64_t all = all_weights(g);
    uint32_t held[MEMBERS_MAX];

    count_held(g, out, held);
    for (uint32_t p = 0; p < g->partitions; p++) assert_true(out[p] < g->members);
    for (uint32_t m = 0; m < g->members; m++) {
        uint64_t quota = (uint64_t)g->partitions * g->weights[m];
        assert_in_range(held[m], quota / all, (quota + all - 1) / all);
    }
}

static void balances_with_the_fewest_moves(void **state)
{
    uint64_t dice = 1;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct group g;
        uint32_t out[PARTITIONS_MAX], again[PARTITIONS_MAX];
        make_group(&g, &dice);
        if (all_weights(&g) == 0) continue;
        assert_int_equal(weir__balance(g.weights, g.members, g.owner, g.partitions, out, NULL), 0);
        assert_fair(&g, out);
        assert_int_equal(count_moves(&g, out), fewest_moves(&g));
        memcpy(again, g.owner, sizeof again); /* in place */
        weir__balance(g.weights, g.members, again, g.partitions, again, NULL);
        assert_memory_equal(out, again, g.partitions * sizeof *out);
        weir__balance(g.weights, g.members, out, g.partitions, again, NULL);
        assert_memory_equal(out, again, g.partitions * sizeof *out);
    }
}

/* Whichever of the moves are done already, the rest of the plan is the same. */
static void keeps_its_plan_while_it_is_carried_out(void **state)
{
    uint64_t dice = 2;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct group g;
        uint32_t out[PARTITIONS_MAX], again[PARTITIONS_MAX];
        make_group(&g, &dice);
        weir__balance(g.weights, g.members, g.owner, g.partitions, out, NULL);
        for (uint32_t p = 0; p < g.partitions; p++)
            if (dice_roll(&dice, 2) == 0) g.owner[p] = out[p];
        weir__balance(g.weights, g.members, g.owner, g.partitions, again, NULL);
        assert_memory_equal(out, again, g.partitions * sizeof *out);
    }
}

/* With other names for the members as much moves and as much is held. */
static void treats_members_alike(void **state)
{
    uint64_t dice = 3;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct group g, other;
        uint32_t out[PARTITIONS_MAX], turned[PARTITIONS_MAX], name[MEMBERS_MAX];
        make_group(&g, &dice);
        if (all_weights(&g) == 0) continue;
        other = g;
        for (uint32_t m = 0; m < g.members; m++) {
            uint32_t with = (uint32_t)dice_roll(&dice, m + 1);
            name[m] = name[with];
            name[with] = m;
        }
        for (uint32_t m = 0; m < g.members; m++) other.weights[name[m]] = g.weights[m];
        for (uint32_t p = 0; p < g.partitions; p++)
            if (g.owner[p] != WEIR__NOBODY) other.owner[p] = name[g.owner[p]];
        weir__balance(g.weights, g.members, g.owner, g.partitions, out, NULL);
        weir__balance(other.weights, g.members, other.owner, g.partitions, turned, NULL);
        assert_fair(&other, turned);
        assert_int_equal(count_moves(&g, out), count_moves(&other, turned));
    }
}

static void gives_nothing_without_weight(void **state)
{
    uint32_t weights[] = {0, 2, 0, 1}, none[] = {0, 0};
    uint32_t owner[] = {0, 0, 2, 1, WEIR__NOBODY, 3}, out[6];

    (void)state;
    assert_int_equal(weir__balance(weights, 4, owner, 6, out, NULL), 0);
    for (int p = 0; p < 6; p++) assert_true(out[p] == 1 || out[p] == 3);
    assert_int_equal(out[3], 1);
    assert_int_equal(out[5], 3);
    owner[2] = owner[3] = owner[5] = 1;
    assert_int_equal(weir__balance(none, 2, owner, 6, out, NULL), 0);
    for (int p = 0; p < 6; p++) assert_int_equal(out[p], WEIR__NOBODY);
    assert_int_equal(weir__balance(NULL, 0, NULL, 0, out, NULL), 0);
}

static void divides_by_weight(void **state)
{
    uint32_t weights[] = {UINT32_MAX, UINT32_MAX, 1}, uneven[] = {1, 2, 5};
    uint32_t owner[16], out[16], held[3] = {0};

    (void)state;
    memset(owner, 0xff, sizeof owner);
    weir__balance(weights, 3, owner, 16, out, NULL);
    for (int p = 0; p < 16; p++) assert_true(out[p] < 2);
    weir__balance(uneven, 3, owner, 16, out, NULL);
    for (int p = 0; p < 16; p++) held[out[p]]++;
    assert_int_equal(held[0], 2);
    assert_int_equal(held[1], 4);
    assert_int_equal(held[2], 10);
}

static void is_quick_for_many(void **state)
{
    enum { MANY_MEMBERS = 1000, MANY_PARTITIONS = 10000, TRIES = 20 };
    uint32_t *weights = calloc(MANY_MEMBERS, sizeof *weights);
    uint32_t *owner = calloc(MANY_PARTITIONS, sizeof *owner);
    uint64_t dice = 4;
    double best_ms = 1e9;

    (void)state;
    assert_true(weights && owner);
    for (int try = 0; try < TRIES; try++) {
        struct timespec begun, ended;
        double ms;
        for (int m = 0; m < MANY_MEMBERS; m++) weights[m] = 1 + (uint32_t)dice_roll(&dice, 3);
        for (int p = 0; p < MANY_PARTITIONS; p++)
            owner[p] = (uint32_t)dice_roll(&dice, MANY_MEMBERS);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
        weir__balance(weights, MANY_MEMBERS, owner, MANY_PARTITIONS, owner, NULL);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
        ms = (double)(ended.tv_sec - begun.tv_sec) * 1e3 +
             (double)(ended.tv_nsec - begun.tv_nsec) / 1e6;
        if (ms < best_ms) best_ms = ms;
    }
    print_message("10,000 partitions, 1,000 members: %.2f ms\n", best_ms);
    assert_true(best_ms <= 10.0);
    free(weights);
    free(owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balances_with_the_fewest_moves),
        cmocka_unit_test(keeps_its_plan_while_it_is_carried_out),
        cmocka_unit_test(treats_members_alike),
        cmocka_unit_test(gives_nothing_without_weight),
        cmocka_unit_test(divides_by_weight),
        cmocka_unit_test(is_quick_for_many),
    };
    return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
