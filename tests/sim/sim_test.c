/* sim_test.c - a thousand seeds without a violation, and each sabotage seen. WEIR_SEED says where the
 * seeds begin. */
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/churn.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 100 /* they look for other mistakes, and slowly */
#else
#define SEEDS 1000
#endif
#define SABOTAGE_SEEDS 1000
#define FAULTS_MIN 20 /* that a run must meet */

static uint64_t first_seed(void)
{
    const char *text = getenv("WEIR_SEED");

    return text ? strtoull(text, NULL, 10) : 1;
}

static uint64_t count_faults(const struct weir__sim_result *r)
{
    uint64_t faults = 0;

    for (size_t i = 0; i < WEIR__SIM_FAULTS; i++) faults += r->faults[i];
    return faults;
}

static void keeps_its_promises(void **state)
{
    struct weir__sim_result sum = {0};

    (void)state;
    for (uint64_t i = 0; i < SEEDS; i++) {
        struct weir__sim_options o = {.seed = first_seed() + i};
        struct weir__sim_result r;
        weir__sim_run(&o, &r);
        if (r.violations > 0)
            fail_msg("weir sim --seed %lu: %s", (unsigned long)o.seed, r.violation);
        assert_true(r.simulated_ms >= 10 * 60000);
        assert_true(count_faults(&r) >= FAULTS_MIN);
        weir__sim_add(&sum, &r);
    }
    for (size_t i = 0; i < WEIR__SIM_FAULTS; i++) {
        print_message("%-26s %8lu\n", weir__sim_fault_name(i), (unsigned long)sum.faults[i]);
        assert_true(sum.faults[i] > 0);
    }
    assert_true(sum.marks_fenced > 0 && sum.fenced > 0 && sum.steals > 0 && sum.lost > 0);
    print_message("%.0f simulated hours, in balance at most %.1f s after the faults\n",
                  (double)sum.simulated_ms / 3.6e6, (double)sum.settle_worst_ms / 1000);
}

static void is_the_same_again(void **state)
{
    struct weir__sim_options o = {.seed = first_seed() + 7};
    struct weir__sim_result once, again;

    (void)state;
    weir__sim_run(&o, &once);
    weir__sim_run(&o, &again);
    assert_memory_equal(&once, &again, sizeof once);
    o.seed++;
    weir__sim_run(&o, &again);
    assert_true(once.steps != again.steps);
}

static void sees_sabotage(void **state)
{
    (void)state;
    for (int sabotage = WEIR__SIM_HONEST + 1; sabotage < WEIR__SIM_SABOTAGES; sabotage++) {
        uint64_t tried = 0, violations = 0;
        while (tried < SABOTAGE_SEEDS && violations == 0) {
            struct weir__sim_options o = {.seed = first_seed() + tried++,
                                          .sabotage = (enum weir__sim_sabotage)sabotage};
            struct weir__sim_result r;
            weir__sim_run(&o, &r);
            violations = r.violations;
        }
        print_message("sabotage %d: seen after %lu seeds\n", sabotage, (unsigned long)tried);
        assert_int_equal(violations, 1);
    }
}

/* A fifth of the size that is promised; `weir sim --churn` does the whole. */
static void converges_with_the_moves_it_needs(void **state)
{
    struct weir__churn_result r;

    (void)state;
    weir__churn_run(200, 2000, &r);
    assert_null(r.violation);
    for (size_t i = 0; i < WEIR__CHURN_EVENTS; i++) {
        print_message("%-8s %.2f rounds, %lu moves of %lu\n", r.rows[i].name, r.rows[i].rounds,
                      (unsigned long)r.rows[i].moves, (unsigned long)r.rows[i].needed);
        assert_true(r.rows[i].rounds <= 5);
        assert_int_equal(r.rows[i].moves, r.rows[i].needed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_its_promises),
        cmocka_unit_test(is_the_same_again),
        cmocka_unit_test(sees_sabotage),
        cmocka_unit_test(converges_with_the_moves_it_needs),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
