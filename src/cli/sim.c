/* sim.c - weir sim: simulated copies of a program share partitions while everything goes wrong. The
 * work is in sim/. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "sim/churn.h"
#include "sim/mixed.h"
#include "sim/sim.h"

#define SEEDS_MAX ((uint64_t)1 << 32)
#define MINUTES_MAX 100000
#define CHURN_HOSTS_MAX 2000
#define MIXED_HOSTS_MAX 4
#define CHURN_PARTITIONS_MAX 100000

struct options {
    struct weir__common common;
    struct weir__args_number hosts, partitions, seed, seeds, minutes, hours;
    const char *sabotage;
    bool trace, churn, mixed;
};

static const struct weir__args_row rows[] = {
    {"hosts", WEIR__ARGS_NUMBER, offsetof(struct options, hosts), "N",
     "copies to begin with, 3 to 10 (default: 3 to 6, by the seed)"},
    {"partitions", WEIR__ARGS_NUMBER, offsetof(struct options, partitions), "N",
     "up to 64 (default: 5 to 24, by the seed)"},
    {"seed", WEIR__ARGS_NUMBER, offsetof(struct options, seed), "N",
     "the first run's; the same seed gives the same run (default 1)"},
    {"seeds", WEIR__ARGS_NUMBER, offsetof(struct options, seeds), "N",
     "how many runs, each with the next seed (default 1)"},
    {"hours", WEIR__ARGS_NUMBER, offsetof(struct options, hours), "N",
     "runs until so many hours were simulated"},
    {"minutes", WEIR__ARGS_NUMBER, offsetof(struct options, minutes), "N",
     "simulated in each run, at least (default 10)"},
    {"sabotage", WEIR__ARGS_TEXT, offsetof(struct options, sabotage), "WHAT",
     "does one thing wrong: fence-off, local-clock, steal-unseen or turns-off; with --mixed "
     "no-renewals or hasty"},
    {"trace", WEIR__ARGS_FLAG, offsetof(struct options, trace), NULL, "print what happens"},
    {"churn", WEIR__ARGS_FLAG, offsetof(struct options, churn), NULL,
     "instead: hosts (1,000) come, go and die by the tenth, nothing fails"},
    {"mixed", WEIR__ARGS_FLAG, offsetof(struct options, mixed), NULL,
     "instead: hosts (0 to 4) share with 1 to 4 that balance as the Azure SDKs do"},
    {NULL, WEIR__ARGS_FLAG, 0, NULL, NULL}};

static void print_sum(const struct weir__sim_result *r)
{
    for (size_t i = 0; i < WEIR__SIM_FAULTS; i++)
        printf("  %-26s %10" PRIu64 "\n", weir__sim_fault_name(i), r->faults[i]);
    printf("%" PRIu64 " starts, %" PRIu64 " hand-overs, %" PRIu64 " takeovers, %" PRIu64
           " steals, %" PRIu64 " lost; %" PRIu64 " marks stored, %" PRIu64 " refused\n",
           r->starts, r->handovers, r->takeovers, r->steals, r->lost, r->marks, r->marks_fenced);
    printf("in balance at most %.1f s after the faults\n", (double)r->settle_worst_ms / 1000);
    printf("%" PRIu64 " runs, %.1f simulated hours, %" PRIu64 " steps, %" PRIu64 " violations\n",
           r->runs, (double)r->simulated_ms / 3.6e6, r->steps, r->violations);
}

/* Runs one seed after the other, and ends with the first that fails. */
static int run_seeds(struct weir__sim_options *one, uint64_t seeds, uint64_t hours)
{
    struct weir__sim_result sum = {0};
    int64_t end_ms = (int64_t)hours * 3600000;

    for (uint64_t i = 0; i < seeds || sum.simulated_ms < end_ms; i++, one->seed++) {
        struct weir__sim_result result;
        weir__sim_run(one, &result);
        weir__sim_add(&sum, &result);
        if (result.violations == 0) continue;
        printf("seed %" PRIu64 ", after %.3f s: %s\n", one->seed,
               (double)result.violation_ms / 1000, result.violation);
        break;
    }
    print_sum(&sum);
    return weir__exit_printed(sum.violations == 0 ? WEIR__EXIT_OK : WEIR__EXIT_FAILURE);
}

static void print_mixed(const struct weir__mixed_result *r)
{
    for (size_t i = 0; i < WEIR__MIXED_FAULTS; i++)
        printf("  %-26s %10" PRIu64 "\n", weir__mixed_fault_name(i), r->faults[i]);
    for (size_t i = 0; i < WEIR__FOREIGN_DIALECTS; i++)
        printf("  %-26s %10" PRIu64 " hosts\n", weir__foreign_dialects[i].name, r->dialects[i]);
    printf("%" PRIu64 " moves, %" PRIu64 " of them taken from living foreign owners, %" PRIu64
           " lost to others; %" PRIu64 " hosts out of balance by their own rules\n",
           r->moves, r->stolen, r->lost, r->uneven);
    printf("the last move at most %.1f s after the last change and %.1f rounds after the dead could"
           " be given up,\n%.1f or more before it had to be\n",
           (double)r->settle_worst_ms / 1000, r->rounds_worst, r->rounds_spare);
    if (r->minutes_ours > 0)
        printf("%.2f calls for each partition and minute, besides the beats\n",
               (double)r->calls_ours / (double)r->minutes_ours);
    printf("%" PRIu64 " runs, %.1f simulated hours, %" PRIu64 " violations\n", r->runs,
           (double)r->simulated_ms / 3.6e6, r->violations);
}

static int run_mixed(struct weir__mixed_options *one, uint64_t seeds)
{
    struct weir__mixed_result sum = {0};

    for (uint64_t i = 0; i < seeds; i++, one->seed++) {
        struct weir__mixed_result result;
        weir__mixed_run(one, &result);
        weir__mixed_add(&sum, &result);
        if (result.violations == 0) continue;
        printf("seed %" PRIu64 ", after %.3f s: %s\n", one->seed,
               (double)result.violation_ms / 1000, result.violation);
        break;
    }
    print_mixed(&sum);
    return weir__exit_printed(sum.violations == 0 ? WEIR__EXIT_OK : WEIR__EXIT_FAILURE);
}

static int run_churn(const struct options *o)
{
    uint32_t hosts = o->hosts.given ? (uint32_t)o->hosts.value : 1000;
    uint32_t partitions = o->partitions.given ? (uint32_t)o->partitions.value : 10000;
    struct weir__churn_result r;

    weir__churn_run(hosts, partitions, &r);
    printf("%u partitions, %u hosts    rounds    moves   needed\n", partitions, hosts);
    for (size_t i = 0; i < WEIR__CHURN_EVENTS; i++)
        printf("  %-26s %7.2f %8" PRIu64 " %8" PRIu64 "\n", r.rows[i].name, r.rows[i].rounds,
               r.rows[i].moves, r.rows[i].needed);
    printf("a plan takes %.2f ms of CPU; the longest took %.2f, %" PRIu64 " of %" PRIu64
           " more than 10\n",
           r.plan_ms_mean, r.plan_ms_max, r.plans_slow, r.plans);
    if (r.violation) printf("violation: %s\n", r.violation);
    return weir__exit_printed(r.violation ? WEIR__EXIT_FAILURE : WEIR__EXIT_OK);
}

static const char *const sabotages[] = {"", "fence-off", "local-clock", "steal-unseen",
                                        "turns-off"};
static const char *const mixed_sabotages[] = {"", "no-renewals", "hasty"};

/* count: there is no such word. */
static size_t find_word(const char *const *words, size_t count, const char *word)
{
    size_t i = 0;

    while (i < count && strcmp(words[i], word ? word : "") != 0) i++;
    return i;
}

static bool is_within(const struct weir__args_number *n, uint64_t least, uint64_t most)
{
    return !n->given || (n->value >= least && n->value <= most);
}

/* The range of a number depends on what is run. */
static const char *find_fault(const struct options *o)
{
    uint64_t hosts_min = o->churn ? 10 : o->mixed ? 0 : 3;
    uint64_t hosts_max = o->churn   ? CHURN_HOSTS_MAX
                         : o->mixed ? MIXED_HOSTS_MAX
                                    : WEIR__SIM_HOSTS_MAX - 2;

    if (!is_within(&o->hosts, hosts_min, hosts_max)) return "--hosts is out of range";
    if (!is_within(&o->partitions, 1, o->churn ? CHURN_PARTITIONS_MAX : WEIR__SIM_PARTITIONS_MAX))
        return "--partitions is out of range";
    if (!is_within(&o->minutes, 1, MINUTES_MAX) || !is_within(&o->seeds, 1, SEEDS_MAX) ||
        !is_within(&o->hours, 1, SEEDS_MAX))
        return "--minutes, --seeds or --hours is out of range";
    return NULL;
}

static int run(const struct weir__command *self, int argc, char **argv)
{
    struct options o = {0};
    size_t sabotage, words;
    uint64_t seed, seeds;
    const char *fault;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    fault = find_fault(&o);
    if (fault) return weir__exit_usage(self->name, "%s", fault);
    words = o.mixed ? WEIR__MIXED_SABOTAGES : WEIR__SIM_SABOTAGES;
    sabotage = find_word(o.mixed ? mixed_sabotages : sabotages, words, o.sabotage);
    if (sabotage == words)
        return weir__exit_usage(self->name, "--sabotage: there is no '%s'", o.sabotage);
    if (o.churn) return run_churn(&o);
    seed = o.seed.given ? o.seed.value : 1;
    seeds = o.seeds.given ? o.seeds.value : 1;
    if (o.mixed)
        return run_mixed(&(struct weir__mixed_options){.seed = seed,
                                                       .copies = (uint32_t)o.hosts.value,
                                                       .partitions = (uint32_t)o.partitions.value,
                                                       .foreign_only =
                                                           o.hosts.given && o.hosts.value == 0,
                                                       .sabotage =
                                                           (enum weir__mixed_sabotage)sabotage,
                                                       .trace = o.trace},
                         seeds);
    return run_seeds(&(struct weir__sim_options){.seed = seed,
                                                 .hosts = (uint32_t)o.hosts.value,
                                                 .partitions = (uint32_t)o.partitions.value,
                                                 .minutes = (uint32_t)o.minutes.value,
                                                 .sabotage = (enum weir__sim_sabotage)sabotage,
                                                 .trace = o.trace},
                     seeds, o.hours.value);
}

const struct weir__command weir__command_sim = {
    .name = "sim",
    .words = "",
    .summary = "simulate copies of a program that share partitions",
    .more = "The hosts run what 'weir process' runs; time, store, hub and wires are simulated and\n"
            "fail in every way that the table at the end lists. Exits with 1 when something was\n"
            "seen that must never be; --seed with --trace shows how it came to be.",
    .rows = rows,
    .run = run,
};
