/* sim_test.c - weir sim: what it takes, and what it prints and returns with and without a violation.
 * The runs themselves are tried out in tests/sim. */
#include "sim/sim.h"

#include <inttypes.h>

#include "cli/steps.h"
#include "sim/churn.h"
#include "sim/mixed.h"

#define SABOTAGE_SEEDS 100 /* that show each, at most */

static char expected[SAID_BYTES];

static void expect(const char *form, ...)
{
    size_t len = strlen(expected);
    va_list args;

    va_start(args, form);
    vsnprintf(expected + len, sizeof expected - len, form, args);
    va_end(args);
}

static void expect_sum(const struct weir__sim_result *r)
{
    for (size_t i = 0; i < WEIR__SIM_FAULTS; i++)
        expect("  %-26s %10" PRIu64 "\n", weir__sim_fault_name(i), r->faults[i]);
    expect("%" PRIu64 " starts, %" PRIu64 " hand-overs, %" PRIu64 " takeovers, %" PRIu64
           " steals, %" PRIu64 " lost; %" PRIu64 " marks stored, %" PRIu64 " refused\n"
           "in balance at most %.1f s after the faults\n",
           r->starts, r->handovers, r->takeovers, r->steals, r->lost, r->marks, r->marks_fenced,
           (double)r->settle_worst_ms / 1000);
    expect("%" PRIu64 " runs, %.1f simulated hours, %" PRIu64 " steps, %" PRIu64 " violations\n",
           r->runs, (double)r->simulated_ms / 3.6e6, r->steps, r->violations);
}

static void expect_printed(const char *line, int code)
{
    int got = run(&weir__command_sim, line);

    assert_string_equal(said_err, "");
    assert_string_equal(said_out, expected);
    assert_int_equal(got, code);
}

static void runs_are_summed(void **state)
{
    static const struct {
        const char *line;
        uint64_t runs;
        struct weir__sim_options options;
    } cases[] = {
        {"--seed 7", 1, {.seed = 7}},
        {"--minutes 3", 1, {.seed = 1, .minutes = 3}},
        {"--seed 7 --seeds 3 --hosts 3 --partitions 5",
         3,
         {.seed = 7, .hosts = 3, .partitions = 5}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__sim_result sum = {0}, one;
        struct weir__sim_options o = cases[i].options;
        for (uint64_t n = 0; n < cases[i].runs; n++, o.seed++) {
            weir__sim_run(&o, &one);
            weir__sim_add(&sum, &one);
        }
        *expected = '\0';
        expect_sum(&sum);
        expect_printed(cases[i].line, 0);
    }
}

/* As many runs as one hour takes, and not one more. */
static void hours_are_filled(void **state)
{
    struct weir__sim_options o = {.seed = 4};
    struct weir__sim_result sum = {0}, one;

    (void)state;
    for (; sum.simulated_ms < 3600000; o.seed++) {
        weir__sim_run(&o, &one);
        weir__sim_add(&sum, &one);
    }
    *expected = '\0';
    expect_sum(&sum);
    expect_printed("--seed 4 --hours 1", 0);
}

/* It ends with the first seed that shows what was done wrong, and names it. */
static void the_first_violation_ends_it(void **state)
{
    static const char *const words[] = {"", "fence-off", "local-clock", "steal-unseen",
                                        "turns-off"};
    char line[128];

    (void)state;
    for (int s = WEIR__SIM_HONEST + 1; s < WEIR__SIM_SABOTAGES; s++) {
        struct weir__sim_options o = {.seed = 1, .sabotage = (enum weir__sim_sabotage)s};
        struct weir__sim_result sum = {0}, one;
        for (;; o.seed++) {
            weir__sim_run(&o, &one);
            weir__sim_add(&sum, &one);
            if (one.violations > 0) break;
            assert_true(o.seed < SABOTAGE_SEEDS);
        }
        *expected = '\0';
        expect("seed %" PRIu64 ", after %.3f s: %s\n", o.seed, (double)one.violation_ms / 1000,
               one.violation);
        expect_sum(&sum);
        snprintf(line, sizeof line, "--seeds 100 --sabotage %s", words[s]);
        expect_printed(line, 1);
    }
}

/* ---- among hosts of the other libraries ---- */

static void expect_mixed(const struct weir__mixed_result *r)
{
    for (size_t i = 0; i < WEIR__MIXED_FAULTS; i++)
        expect("  %-26s %10" PRIu64 "\n", weir__mixed_fault_name(i), r->faults[i]);
    for (size_t i = 0; i < WEIR__FOREIGN_DIALECTS; i++)
        expect("  %-26s %10" PRIu64 " hosts\n", weir__foreign_dialects[i].name, r->dialects[i]);
    expect("%" PRIu64 " moves, %" PRIu64 " of them taken from living foreign owners, %" PRIu64
           " lost to others; %" PRIu64 " hosts out of balance by their own rules\n",
           r->moves, r->stolen, r->lost, r->uneven);
    expect("the last move at most %.1f s after the last change and %.1f rounds after the dead could"
           " be given up,\n%.1f or more before it had to be\n",
           (double)r->settle_worst_ms / 1000, r->rounds_worst, r->rounds_spare);
    if (r->minutes_ours > 0)
        expect("%.2f calls for each partition and minute, besides the beats\n",
               (double)r->calls_ours / (double)r->minutes_ours);
    expect("%" PRIu64 " runs, %.1f simulated hours, %" PRIu64 " violations\n", r->runs,
           (double)r->simulated_ms / 3.6e6, r->violations);
}

static void mixed_runs_are_summed(void **state)
{
    static const struct {
        const char *line;
        uint64_t runs;
        struct weir__mixed_options options;
    } cases[] = {
        {"--mixed", 1, {.seed = 1}},
        {"--mixed --seed 5 --seeds 3 --hosts 2 --partitions 9",
         3,
         {.seed = 5, .copies = 2, .partitions = 9}},
        {"--mixed --hosts 0", 1, {.seed = 1, .foreign_only = true}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__mixed_result sum = {0}, one;
        struct weir__mixed_options o = cases[i].options;
        for (uint64_t n = 0; n < cases[i].runs; n++, o.seed++) {
            weir__mixed_run(&o, &one);
            weir__mixed_add(&sum, &one);
        }
        assert_int_equal(sum.minutes_ours == 0, o.foreign_only);
        *expected = '\0';
        expect_mixed(&sum);
        expect_printed(cases[i].line, 0);
    }
}

static void the_first_violation_among_others_ends_it(void **state)
{
    static const char *const words[] = {"", "no-renewals", "hasty"};
    char line[128];

    (void)state;
    for (int s = WEIR__MIXED_HONEST + 1; s < WEIR__MIXED_SABOTAGES; s++) {
        struct weir__mixed_options o = {.seed = 1, .sabotage = (enum weir__mixed_sabotage)s};
        struct weir__mixed_result sum = {0}, one;
        for (;; o.seed++) {
            weir__mixed_run(&o, &one);
            weir__mixed_add(&sum, &one);
            if (one.violations > 0) break;
            assert_true(o.seed < SABOTAGE_SEEDS);
        }
        *expected = '\0';
        expect("seed %" PRIu64 ", after %.3f s: %s\n", o.seed, (double)one.violation_ms / 1000,
               one.violation);
        expect_mixed(&sum);
        snprintf(line, sizeof line, "--mixed --seeds 100 --sabotage %s", words[s]);
        expect_printed(line, 1);
    }
}

/* ---- very many hosts ---- */

/* The last line has times of this machine. */
static void churn_is_a_table(void **state)
{
    struct weir__churn_result r;
    unsigned long slow, plans;
    int code, read = 0;
    char *last;

    (void)state;
    weir__churn_run(10, 20, &r);
    *expected = '\0';
    expect("20 partitions, 10 hosts    rounds    moves   needed\n");
    for (size_t i = 0; i < WEIR__CHURN_EVENTS; i++)
        expect("  %-26s %7.2f %8" PRIu64 " %8" PRIu64 "\n", r.rows[i].name, r.rows[i].rounds,
               r.rows[i].moves, r.rows[i].needed);
    code = run(&weir__command_sim, "--churn --hosts 10 --partitions 20");
    last = strstr(said_out, "a plan takes ");
    assert_non_null(last);
    sscanf(last,
           "a plan takes %*[0-9.] ms of CPU; the longest took %*[0-9.], %lu of %lu more than 10%n",
           &slow, &plans, &read);
    assert_string_equal(last + read, "\n");
    assert_int_equal(plans, r.plans);
    *last = '\0';
    assert_string_equal(said_out, expected);
    assert_int_equal(code, 0);
}

/* ---- what it takes ---- */

#define TRY "; try 'weir sim --help'\n"
#define GOOD "weir: sim: --sabotage: there is no 'x'" TRY /* which is looked at last */
#define BAD(what) "weir: sim: " what " out of range" TRY
#define AMOUNTS "--minutes, --seeds or --hours is"

static void every_number_has_its_range(void **state)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"--hosts 2", BAD("--hosts is")},
        {"--hosts 3", GOOD},
        {"--hosts 10", GOOD},
        {"--hosts 11", BAD("--hosts is")},
        {"--mixed --hosts 0", GOOD},
        {"--mixed --hosts 4", GOOD},
        {"--mixed --hosts 5", BAD("--hosts is")},
        {"--churn --hosts 9", BAD("--hosts is")},
        {"--churn --hosts 10", GOOD},
        {"--churn --hosts 2000", GOOD},
        {"--churn --hosts 2001", BAD("--hosts is")},
        {"--partitions 0", BAD("--partitions is")},
        {"--partitions 1", GOOD},
        {"--partitions 64", GOOD},
        {"--partitions 65", BAD("--partitions is")},
        {"--mixed --partitions 65", BAD("--partitions is")},
        {"--churn --partitions 0", BAD("--partitions is")},
        {"--churn --partitions 100000", GOOD},
        {"--churn --partitions 100001", BAD("--partitions is")},
        {"--minutes 0", BAD(AMOUNTS)},
        {"--minutes 1", GOOD},
        {"--minutes 100000", GOOD},
        {"--minutes 100001", BAD(AMOUNTS)},
        {"--seeds 0", BAD(AMOUNTS)},
        {"--seeds 1", GOOD},
        {"--seeds 4294967296", GOOD},
        {"--seeds 4294967297", BAD(AMOUNTS)},
        {"--hours 0", BAD(AMOUNTS)},
        {"--hours 1", GOOD},
        {"--hours 4294967296", GOOD},
        {"--hours 4294967297", BAD(AMOUNTS)},
    };
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code;
        snprintf(line, sizeof line, "%s --sabotage x", cases[i].line);
        code = run(&weir__command_sim, line);
        if (code != 2 || strcmp(said_err, cases[i].said) != 0 || *said_out)
            fail_msg("%s: %d, %s%s", cases[i].line, code, said_err, said_out);
    }
}

static void a_sabotage_belongs_to_what_is_run(void **state)
{
    static const struct step steps[] = {
        {&weir__command_sim, "--sabotage hasty", 2,
         "weir: sim: --sabotage: there is no 'hasty'" TRY},
        {&weir__command_sim, "--mixed --sabotage fence-off", 2,
         "weir: sim: --sabotage: there is no 'fence-off'" TRY},
    };

    (void)state;
    TAKE(steps);
}

/* What happens comes before the table that is printed anyway. */
static void a_trace_comes_before_the_sum(void **state)
{
    static const char *const lines[] = {"--minutes 1", "--mixed"};
    char traced[64];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t len;
        assert_int_equal(run(&weir__command_sim, lines[i]), 0);
        snprintf(expected, sizeof expected, "%s", said_out);
        snprintf(traced, sizeof traced, "--trace %s", lines[i]);
        assert_int_equal(run(&weir__command_sim, traced), 0);
        len = strlen(said_out);
        assert_true(len > strlen(expected));
        assert_string_equal(said_out + len - strlen(expected), expected);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(runs_are_summed),
        CASE(hours_are_filled),
        CASE(the_first_violation_ends_it),
        CASE(mixed_runs_are_summed),
        CASE(the_first_violation_among_others_ends_it),
        CASE(churn_is_a_table),
        CASE(every_number_has_its_range),
        CASE(a_sabotage_belongs_to_what_is_run),
        CASE(a_trace_comes_before_the_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
