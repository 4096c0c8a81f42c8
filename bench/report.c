#include "bench/report.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define VALUE_BYTES 32
#define MODEL_BYTES 80

static const struct metric {
    const char *name; /* in JSON, where values have no prefix */
    const char *unit;
    bool scaled; /* k, M, G */
} metrics[] = {
    [WEIR__BENCH_EVENTS] = {"events_per_second", "ev/s", true},
    [WEIR__BENCH_BATCHES] = {"batches_per_second", "batches/s", true},
    [WEIR__BENCH_BYTES] = {"bytes_per_second", "B/s", true},
    [WEIR__BENCH_CPU] = {"cpu_ns_per_event", "ns CPU", false},
    [WEIR__BENCH_P50] = {"p50_us", "us p50", false},
};

static const struct kind {
    const char *name;
    bool ratio, at_least;
} kinds[] = {
    [WEIR__GOAL_NONE] = {"none", false, true},
    [WEIR__GOAL_AT_LEAST] = {"at_least", false, true},
    [WEIR__GOAL_AT_MOST] = {"at_most", false, false},
    [WEIR__GOAL_RATIO_AT_LEAST] = {"ratio_at_least", true, true},
    [WEIR__GOAL_RATIO_AT_MOST] = {"ratio_at_most", true, false},
};

/* "14.8 Mev/s", "104 us p50". */
static const char *format_value(char out[VALUE_BYTES], double value, enum weir__bench_metric m)
{
    static const char *const prefixes[] = {"", "k", "M", "G"};
    size_t prefix = 0;

    while (metrics[m].scaled && value >= 1000 && prefix < 3) {
        value /= 1000;
        prefix++;
    }
    snprintf(out, VALUE_BYTES, "%.*f %s%s",
             value < 10    ? 2
             : value < 100 ? 1
                           : 0,
             value, prefixes[prefix], metrics[m].unit);
    return out;
}

static bool is_met(const struct weir__goal *goal, const struct weir__bench_summary *s)
{
    double value = kinds[goal->kind].ratio ? s->ratio : s->ours;

    if (goal->kind == WEIR__GOAL_NONE) return true;
    return kinds[goal->kind].at_least ? value >= goal->value : value <= goal->value;
}

static void print_text(struct weir__report *r, const struct weir__report_case *c,
                       const struct weir__goal *goal, const struct weir__bench_summary *s, bool met)
{
    char ours[VALUE_BYTES], beside[VALUE_BYTES + 16] = "", value[VALUE_BYTES];
    char ratio[VALUE_BYTES] = "", wish[VALUE_BYTES + 4] = "";

    format_value(ours, s->ours, goal->metric);
    if (c->reference) {
        snprintf(beside, sizeof beside, "%-8s %s", c->reference,
                 format_value(value, s->reference, goal->metric));
        snprintf(ratio, sizeof ratio, "%.2f (%.2f-%.2f)", s->ratio, s->lowest, s->highest);
    }
    if (kinds[goal->kind].ratio)
        snprintf(wish, sizeof wish, "%s %.2f x",
                 kinds[goal->kind].at_least ? ">=" : "<=", goal->value);
    else if (goal->kind != WEIR__GOAL_NONE)
        snprintf(wish, sizeof wish, "%s %s", kinds[goal->kind].at_least ? ">=" : "<=",
                 format_value(value, goal->value, goal->metric));
    fprintf(r->out, "%-16s %-40s %14s   %-24s %-18s %-18s %-5s %4.0f %%\n", c->name, c->text, ours,
            beside, ratio, wish,
            goal->kind == WEIR__GOAL_NONE ? ""
            : met                         ? "ok"
                                          : "short",
            s->other_percent);
}

static void print_json(struct weir__report *r, const struct weir__report_case *c,
                       const struct weir__goal *goal, const struct weir__bench_summary *s, bool met)
{
    fprintf(r->out, "{\"case\":\"%s\",\"what\":\"%s\",\"metric\":\"%s\",\"ours\":%.6g", c->name,
            c->text, metrics[goal->metric].name, s->ours);
    if (c->reference)
        fprintf(r->out,
                ",\"beside\":\"%s\",\"reference\":%.6g,\"ratio\":%.4f,\"ratio_lowest\":%.4f,"
                "\"ratio_highest\":%.4f",
                c->reference, s->reference, s->ratio, s->lowest, s->highest);
    if (goal->kind != WEIR__GOAL_NONE)
        fprintf(r->out, ",\"goal\":\"%s\",\"goal_value\":%.6g,\"met\":%s", kinds[goal->kind].name,
                goal->value, met ? "true" : "false");
    fprintf(r->out, ",\"rounds\":%u,\"files_made\":%u,\"other_cpu_percent\":%.1f}\n",
            c->pairs->rounds, s->files_made, s->other_percent);
}

void weir__report_line(struct weir__report *r, const struct weir__report_case *c,
                       const struct weir__goal *goal)
{
    struct weir__bench_summary s;
    bool met;

    weir__bench_summarize(c->pairs, goal->metric, c->reference != NULL, &s);
    met = is_met(goal, &s);
    if (goal->kind != WEIR__GOAL_NONE) *(met ? &r->met : &r->missed) += 1;
    (r->json ? print_json : print_text)(r, c, goal, &s, met);
    fflush(r->out);
}

static void print_row(struct weir__report *r, const char *who, const char *name,
                      const struct weir__bench_run *run)
{
    double events = run->events ? (double)run->events : 1;

    fprintf(r->out, "ROW,%s,%s,%llu,%.4f,%.0f,%.1f,%.1f,%.1f,%.1f,%.1f\n", who, name,
            (unsigned long long)run->events, run->seconds, events / run->seconds,
            (double)run->bytes / run->seconds / 1e6, run->user_s * 1e9 / events,
            run->system_s * 1e9 / events, run->p50_us, run->p99_us);
}

/* A spare may be made now and then, but not a file in each run. */
static void print_files_made(struct weir__report *r, const struct weir__bench_pairs *pairs)
{
    uint32_t made = 0;

    for (uint32_t i = 0; i < pairs->rounds; i++) made += pairs->ours[i].files_made;
    if (made > pairs->rounds)
        fprintf(r->out, "%-16s not all recycled: %u files were made in %u runs\n", "", made,
                pairs->rounds);
}

void weir__report_case_end(struct weir__report *r, const struct weir__report_case *c)
{
    if (!r->json) print_files_made(r, c->pairs);
    for (uint32_t i = 0; i < c->pairs->rounds && r->rows; i++) {
        print_row(r, "ours", c->name, &c->pairs->ours[i]);
        if (c->reference) print_row(r, c->reference, c->name, &c->pairs->reference[i]);
    }
    fflush(r->out);
}

/* What the processor calls itself. */
static const char *read_model(char out[MODEL_BYTES])
{
    char line[256], *value;
    FILE *f = fopen("/proc/cpuinfo", "r");

    snprintf(out, MODEL_BYTES, "unknown processor");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0 || !(value = strstr(line, ": "))) continue;
        value[strcspn(value, "\n\"\\")] = '\0';
        snprintf(out, MODEL_BYTES, "%.*s", MODEL_BYTES - 1, value + 2);
        break;
    }
    if (f) fclose(f);
    return out;
}

void weir__report_machine(struct weir__report *r, const char *disk)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char model[MODEL_BYTES], date[VALUE_BYTES];
    time_t now = time(NULL);
    struct utsname os;
    struct tm utc;

    if (uname(&os) < 0) memset(&os, 0, sizeof os);
    read_model(model);
    strftime(date, sizeof date, "%Y-%m-%d %H:%MZ", gmtime_r(&now, &utc));
    if (r->json)
        fprintf(r->out,
                "{\"date\":\"%s\",\"processor\":\"%s\",\"cores\":%ld,\"system\":\"%s %s\","
                "\"file_system\":\"%s\"}\n",
                date, model, cores, os.sysname, os.release, disk);
    else
        fprintf(r->out, "%s  %s, %ld cores, %s %s, %s\n", date, model, cores, os.sysname,
                os.release, disk);
    fflush(r->out); /* processes may be forked next */
}

void weir__report_head(struct weir__report *r, uint32_t rounds)
{
    if (r->json) return;
    fprintf(r->out,
            "Medians of %u interleaved pairs after one to warm up. Payload bytes; M and G are\n"
            "decimal. Ratio: median (lowest-highest) of ours to its neighbour in time. CPU of all\n"
            "threads. What was written was on disk (fdatasync). Right: CPU that others used.\n\n",
            rounds);
    fprintf(r->out, "%-16s %-40s %14s   %-24s %-18s %-18s\n", "case", "", "ours", "beside it",
            "ratio", "goal");
}

void weir__report_limit(struct weir__report *r, const char *name, const char *text, double value,
                        double limit, const char *unit)
{
    bool met = value <= limit;

    *(met ? &r->met : &r->missed) += 1;
    if (r->json)
        fprintf(r->out,
                "{\"case\":\"%s\",\"what\":\"%s\",\"ours\":%.6g,\"unit\":\"%s\","
                "\"goal\":\"at_most\",\"goal_value\":%.6g,\"met\":%s}\n",
                name, text, value, unit, limit, met ? "true" : "false");
    else
        fprintf(r->out, "%-16s %-64s %8.3g %-4s <= %g %-4s %s\n", name, text, value, unit, limit,
                unit, met ? "ok" : "short");
    fflush(r->out);
}

void weir__report_foot(struct weir__report *r)
{
    if (r->json) return;
    fprintf(r->out, "\n%u goals met, %u short\n", r->met, r->missed);
}
