#include "bench/measure.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/thread.h"

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Seconds that all cores together were not idle since boot, in steps of a clock tick; time a
 * hypervisor took away is counted as busy. 0 where there is no such file. The line is
 * "cpu user nice system idle iowait irq softirq steal ...". */
static double machine_busy(void)
{
    static const bool counts[] = {true, true, true, false, false, true, true, true};
    unsigned long long ticks = 0;
    char line[256], *at = line + 3;
    FILE *f = fopen("/proc/stat", "r");

    if (!f) return 0;
    if (!fgets(line, sizeof line, f) || strncmp(line, "cpu", 3) != 0) at = NULL;
    fclose(f);
    for (size_t i = 0; at && i < sizeof counts / sizeof *counts; i++) {
        unsigned long long value = strtoull(at, &at, 10);

        if (counts[i]) ticks += value;
    }
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void weir__bench_begin(struct weir__bench_mark *mark)
{
    struct rusage u;

    mark->busy_s = machine_busy();
    getrusage(RUSAGE_SELF, &u);
    mark->user_s = seconds_of(u.ru_utime);
    mark->system_s = seconds_of(u.ru_stime);
    mark->at_ns = weir__mono_ns();
}

void weir__bench_end(const struct weir__bench_mark *mark, struct weir__bench_run *run)
{
    struct rusage u;

    run->seconds = (double)(weir__mono_ns() - mark->at_ns) / 1e9;
    getrusage(RUSAGE_SELF, &u);
    run->user_s = seconds_of(u.ru_utime) - mark->user_s;
    run->system_s = seconds_of(u.ru_stime) - mark->system_s;
    run->busy_s = machine_busy() - mark->busy_s;
}

double weir__bench_cpu_ns(const struct weir__bench_run *run)
{
    return run->events ? (run->user_s + run->system_s) * 1e9 / (double)run->events : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double weir__bench_percentile(double *values, size_t count, double part)
{
    assert(count > 0 && part >= 0 && part <= 1);
    qsort(values, count, sizeof *values, compare);
    return values[(size_t)((double)(count - 1) * part + 0.5)];
}

bool weir__bench_interrupted(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

static int run_side(const struct weir__bench_side *side, struct weir__bench_run *out,
                    struct weir_error *err)
{
    int rc;

    if (!side) return 0;
    if (weir__bench_interrupted()) return weir__fail(err, WEIR_ECANCELED, "interrupted");
    *out = (struct weir__bench_run){0};
    rc = side->run(side->self, out, err);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", side->name);
}

int weir__bench_take_turns(struct weir__bench_pairs *out, uint32_t rounds,
                           const struct weir__bench_side *ours,
                           const struct weir__bench_side *reference, struct weir_error *err)
{
    struct weir__bench_run warm;
    int rc;

    assert(rounds > 0 && rounds <= WEIR__BENCH_ROUNDS_MAX);
    out->rounds = rounds;
    rc = run_side(reference, &warm, err);
    if (rc == 0) rc = run_side(ours, &warm, err);
    for (uint32_t i = 0; i < rounds && rc == 0; i++) {
        if (i % 2 == 0) rc = run_side(reference, &out->reference[i], err);
        if (rc == 0) rc = run_side(ours, &out->ours[i], err);
        if (rc == 0 && i % 2 == 1) rc = run_side(reference, &out->reference[i], err);
    }
    return rc;
}

static double value_of(const struct weir__bench_run *run, enum weir__bench_metric metric)
{
    switch (metric) {
    case WEIR__BENCH_EVENTS: return (double)run->events / run->seconds;
    case WEIR__BENCH_BATCHES: return (double)run->batches / run->seconds;
    case WEIR__BENCH_BYTES: return (double)run->bytes / run->seconds;
    case WEIR__BENCH_CPU: return weir__bench_cpu_ns(run);
    case WEIR__BENCH_P50: return run->p50_us;
    }
    return 0;
}

/* From all runs together: a single one is too short for the ticks that the machine counts in. */
static double other_percent(const struct weir__bench_pairs *pairs)
{
    double others = 0, available = 0;

    for (uint32_t i = 0; i < pairs->rounds; i++) {
        const struct weir__bench_run *r = &pairs->ours[i];

        others += r->busy_s - r->user_s - r->system_s;
        available += r->seconds * (double)sysconf(_SC_NPROCESSORS_ONLN);
    }
    return others > 0 && available > 0 ? others / available * 100 : 0;
}

void weir__bench_summarize(const struct weir__bench_pairs *pairs, enum weir__bench_metric metric,
                           bool has_reference, struct weir__bench_summary *out)
{
    double ours[WEIR__BENCH_ROUNDS_MAX], reference[WEIR__BENCH_ROUNDS_MAX];
    double ratios[WEIR__BENCH_ROUNDS_MAX];
    uint32_t n = pairs->rounds;

    *out = (struct weir__bench_summary){.other_percent = other_percent(pairs)};
    for (uint32_t i = 0; i < n; i++) {
        ours[i] = value_of(&pairs->ours[i], metric);
        out->files_made += pairs->ours[i].files_made;
        if (!has_reference) continue;
        reference[i] = value_of(&pairs->reference[i], metric);
        ratios[i] = ours[i] / reference[i];
    }
    out->ours = weir__bench_percentile(ours, n, 0.5);
    if (!has_reference) return;
    out->reference = weir__bench_percentile(reference, n, 0.5);
    out->ratio = weir__bench_percentile(ratios, n, 0.5);
    out->lowest = ratios[0];
    out->highest = ratios[n - 1];
}
