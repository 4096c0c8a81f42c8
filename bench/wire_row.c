#include "bench/wire_row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define FIELDS_BEFORE_CPU 11 /* of /proc/PID/stat, between the name and utime */

/* "pid (name) state ppid ...": the name may hold anything, so the last parenthesis counts. */
static void read_cpu(int pid, struct weir__bench_wire_process *out)
{
    char path[64], line[LINE_BYTES], *at;
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    f = fopen(path, "r");
    if (!f) return;
    at = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    fclose(f);
    for (int i = 0; at && i <= FIELDS_BEFORE_CPU; i++) at = strchr(at + 1, ' ');
    if (!at) return;
    out->user_s = (double)strtoull(at, &at, 10) * tick_s;
    out->system_s = (double)strtoull(at, &at, 10) * tick_s;
}

static void read_memory(int pid, struct weir__bench_wire_process *out)
{
    char path[64], line[LINE_BYTES];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    f = fopen(path, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0) out->rss_kib = strtoull(line + 6, NULL, 10);
    fclose(f);
}

static struct weir__bench_wire_process look_at(int pid)
{
    struct weir__bench_wire_process p = {0};

    if (pid > 0) read_cpu(pid, &p);
    if (pid > 0) read_memory(pid, &p);
    return p;
}

void weir__bench_wire_meter_begin(struct weir__bench_wire_meter *m, int server_pid)
{
    m->server_pid = server_pid;
    m->server = look_at(server_pid);
    weir__bench_begin(&m->mark);
}

void weir__bench_wire_meter_end(const struct weir__bench_wire_meter *m,
                                struct weir__bench_wire_row *row)
{
    weir__bench_end(&m->mark, &row->run);
    row->server = look_at(m->server_pid);
    row->server.user_s -= m->server.user_s;
    row->server.system_s -= m->server.system_s;
}

/* What the machine did besides the two of us, in percent of all its cores. */
static double other_percent(const struct weir__bench_wire_row *row)
{
    const struct weir__bench_run *r = &row->run;
    double ours = r->user_s + r->system_s + row->server.user_s + row->server.system_s;
    double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);

    return (r->busy_s - ours) / (cores * r->seconds) * 100;
}

static double per_event_ns(const struct weir__bench_wire_row *row, double seconds)
{
    return seconds * 1e9 / (double)row->run.events;
}

static const struct {
    const char *name, *json;
    double part;
} points[] = {
    {"min", "min_us", 0},    {"p50", "p50_us", 0.5},       {"p90", "p90_us", 0.9},
    {"p99", "p99_us", 0.99}, {"p99.9", "p99_9_us", 0.999}, {"max", "max_us", 1},
};

#define POINTS (sizeof points / sizeof points[0])

static void print_plain(struct weir__bench_wire_row *row, FILE *out)
{
    const struct weir__bench_run *r = &row->run;

    fprintf(out,
            "ROW,%s,%s,%" PRIu32 ",%" PRIu64 ",%.3f,%.0f,%.2f,%.0f,%.0f,%.0f,%.0f,%" PRIu64
            ",%.0f\n",
            row->system, row->mode, row->size, r->events, r->seconds,
            (double)r->events / r->seconds, (double)r->bytes / r->seconds / 1e6,
            per_event_ns(row, row->server.user_s), per_event_ns(row, row->server.system_s),
            per_event_ns(row, r->user_s), per_event_ns(row, r->system_s), row->server.rss_kib,
            other_percent(row));
    if (!row->us && r->p50_us > 0)
        fprintf(out, "LAT %s %s sz=%" PRIu32 " n=%" PRIu64 " p50=%.1fus p99=%.1fus\n", row->system,
                row->mode, row->size, r->events, r->p50_us, r->p99_us);
    if (!row->us) return;
    fprintf(out, "LAT %s %s sz=%" PRIu32 " n=%zu", row->system, row->mode, row->size,
            row->us_count);
    for (size_t i = 0; i < POINTS; i++)
        fprintf(out, " %s=%.1fus", points[i].name,
                weir__bench_percentile(row->us, row->us_count, points[i].part));
    fputc('\n', out);
}

static void print_json(struct weir__bench_wire_row *row, FILE *out)
{
    const struct weir__bench_run *r = &row->run;

    fprintf(out,
            "{\"system\":\"%s\",\"mode\":\"%s\",\"size\":%" PRIu32 ",\"events\":%" PRIu64
            ",\"seconds\":%.6f,\"server_user_ns\":%.1f,\"server_system_ns\":%.1f"
            ",\"client_user_ns\":%.1f,\"client_system_ns\":%.1f,\"server_rss_kib\":%" PRIu64
            ",\"other_cpu_percent\":%.1f",
            row->system, row->mode, row->size, r->events, r->seconds,
            per_event_ns(row, row->server.user_s), per_event_ns(row, row->server.system_s),
            per_event_ns(row, r->user_s), per_event_ns(row, r->system_s), row->server.rss_kib,
            other_percent(row));
    if (!row->us && r->p50_us > 0)
        fprintf(out, ",\"p50_us\":%.1f,\"p99_us\":%.1f", r->p50_us, r->p99_us);
    for (size_t i = 0; row->us && i < POINTS; i++)
        fprintf(out, ",\"%s\":%.1f", points[i].json,
                weir__bench_percentile(row->us, row->us_count, points[i].part));
    fputs("}\n", out);
}

void weir__bench_wire_row_print(struct weir__bench_wire_row *row, FILE *out, bool json)
{
    if (json)
        print_json(row, out);
    else
        print_plain(row, out);
    fflush(out);
}

void weir__bench_wire_row_fini(struct weir__bench_wire_row *row)
{
    free(row->us);
    row->us = NULL;
}
