/* metrics.c - GET /metrics: numbers in Prometheus' text format, version 0.0.4.
 *
 * Those of a hub count since its log was opened. Nobody is asked for a token on this machine;
 * others show one with Manage, as Prometheus does with `authorization: {type:
 * SharedAccessSignature, credentials: "sr=..."}`. On the worker. */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/census.h"
#include "server/web.h"

#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"

struct hub_row {
    char name[WEIR__HUB_NAME_MAX + 1];
    uint64_t up;
    struct weir__hub_stats stats;
};

struct hub_rows {
    struct hub_row *at;
    uint32_t count, cap;
};

static bool note_hub(const char *name, struct weir__hub *hub, void *user)
{
    struct hub_rows *rows = user;
    struct hub_row *row;

    if (rows->count == rows->cap) {
        uint32_t cap = rows->cap ? rows->cap * 2 : 8;
        row = realloc(rows->at, cap * sizeof *row);
        if (!row) return false;
        rows->at = row;
        rows->cap = cap;
    }
    row = &rows->at[rows->count++];
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "%s", name);
    if (!hub) return true;
    row->up = weir__hub_ready(hub, NULL) == 0;
    weir__hub_stats(hub, &row->stats);
    return true;
}

static void write_head(struct weir__answer *a, const char *name, const char *type, const char *help)
{
    weir__answer_add(a, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* ---- hubs ---- */

#define AT(member) offsetof(struct hub_row, member)

static const struct family {
    const char *name, *type, *help;
    size_t offset; /* of a uint64_t in struct hub_row */
} families[] = {
    {"weir_hub_up", "gauge", "Whether the hub takes events.", AT(up)},
    {"weir_hub_events_in_total", "counter", "Events that became durable.", AT(stats.log.events)},
    {"weir_hub_bytes_in_total", "counter", "Bytes of those events, as stored.",
     AT(stats.log.bytes)},
    {"weir_hub_batches_in_total", "counter", "Batches they came in.", AT(stats.log.batches)},
    {"weir_hub_batches_refused_total", "counter", "Batches that were not taken in.",
     AT(stats.refused)},
    {"weir_hub_events_out_total", "counter", "Events handed to receivers.",
     AT(stats.delivered_events)},
    {"weir_hub_bytes_out_total", "counter", "Bytes of those events.", AT(stats.delivered_bytes)},
    {"weir_hub_receivers", "gauge", "Receivers that are attached.", AT(stats.receivers)},
    {"weir_hub_receivers_displaced_total", "counter", "Receivers pushed out by an epoch.",
     AT(stats.receivers_displaced)},
    {"weir_hub_unflushed_bytes", "gauge", "Bytes that are not durable yet.",
     AT(stats.log.unflushed_bytes)},
    {"weir_hub_log_bytes", "gauge", "Bytes of the log's files.", AT(stats.log.log_bytes)},
    {"weir_hub_log_segments", "gauge", "Files of the log.", AT(stats.log.segments)},
    {"weir_hub_reads_memory_total", "counter", "Reads served from memory.",
     AT(stats.log.tail_reads)},
    {"weir_hub_reads_disk_total", "counter", "Reads served from files.", AT(stats.log.disk_reads)},
    {"weir_hub_producers", "gauge", "Idempotent producers that are remembered, per partition.",
     AT(stats.log.producers)},
    {"weir_hub_producers_forgotten_total", "counter",
     "Those forgotten because they were too many or silent for too long.",
     AT(stats.log.producers_forgotten)},
    {"weir_hub_damaged_ranges", "gauge", "Ranges of events that cannot be served.",
     AT(stats.log.damaged_ranges)},
};

static void write_families(struct weir__answer *a, const struct hub_rows *rows)
{
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        write_head(a, families[f].name, families[f].type, families[f].help);
        for (uint32_t i = 0; i < rows->count; i++) {
            uint64_t value;
            memcpy(&value, (const char *)&rows->at[i] + families[f].offset, sizeof value);
            weir__answer_add(a, "%s{hub=\"%s\"} %" PRIu64 "\n", families[f].name, rows->at[i].name,
                             value);
        }
    }
}

/* Buckets of Prometheus count what is below them, too. */
static void write_flushes(struct weir__answer *a, const struct hub_rows *rows)
{
    static const char name[] = "weir_hub_flush_seconds";

    write_head(a, name, "histogram", "How long the disk took to make a group of batches durable.");
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct weir__log_stats *log = &rows->at[i].stats.log;
        const char *hub = rows->at[i].name;
        uint64_t sum = 0;
        for (unsigned b = 0; b < WEIR__LOG_FLUSH_BUCKETS - 1; b++) {
            sum += log->flush_buckets[b];
            weir__answer_add(a, "%s_bucket{hub=\"%s\",le=\"%.9g\"} %" PRIu64 "\n", name, hub,
                             (double)(UINT64_C(1) << b) * WEIR__LOG_FLUSH_FIRST_US / 1e6, sum);
        }
        sum += log->flush_buckets[WEIR__LOG_FLUSH_BUCKETS - 1];
        weir__answer_add(a, "%s_bucket{hub=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, hub, sum);
        weir__answer_add(a, "%s_sum{hub=\"%s\"} %.9f\n%s_count{hub=\"%s\"} %" PRIu64 "\n", name,
                         hub, (double)log->flush_ns / 1e9, name, hub, sum);
    }
}

/* ---- the server ---- */

static void write_budget(struct weir__answer *a, struct weir__budget *b)
{
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        {"weir_buffer_bytes", "gauge", "Memory held for what clients send and are sent.",
         atomic_load(&b->used)},
        {"weir_buffer_limit_bytes", "gauge",
         "How much that may be; requests are refused a 64th before.", b->limits.bytes},
        {"weir_buffer_refused_total", "counter", "Times that there was no room for more.",
         atomic_load(&b->refused)},
        {"weir_stranger_buffer_bytes", "gauge", "The part held for those without a good token.",
         atomic_load(&b->strangers)},
        {"weir_stranger_buffer_limit_bytes", "gauge", "How much that may be.",
         b->limits.stranger_bytes},
        {"weir_strangers", "gauge", "Connections without a good token.", weir__budget_strangers(b)},
        {"weir_strangers_evicted_total", "counter", "Those that had to go for others.",
         atomic_load(&b->evicted)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_head(a, rows[i].name, rows[i].type, rows[i].help);
        weir__answer_add(a, "%s %" PRIu64 "\n", rows[i].name, rows[i].value);
    }
}

static void write_turns(struct weir__answer *a, struct weir__server *s)
{
    static const char name[] = "weir_loop_turn_seconds", busy[] = "weir_loop_busy_turns_total";
    struct weir__loop_turns turns = {0};
    uint64_t sum = 0;

    weir__loops_turns(s->loops, &turns);
    write_head(a, name, "histogram", "How long the loops' turns took, waiting left out.");
    for (unsigned b = 0; b < WEIR__LOOP_TURN_BUCKETS; b++) {
        uint32_t bound_us = weir__loop_turn_bound_us(b);
        sum += turns.buckets[b];
        if (bound_us)
            weir__answer_add(a, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name, bound_us / 1e6, sum);
        else
            weir__answer_add(a, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, sum);
    }
    weir__answer_add(a, "%s_sum %.9f\n%s_count %" PRIu64 "\n", name, (double)turns.ns / 1e9, name,
                     sum);
    write_head(a, busy, "counter", "Turns in which a loop itself worked for more than 5 ms.");
    weir__answer_add(a, "%s %" PRIu64 "\n", busy, turns.worked_long);
}

static void write_server(struct weir__answer *a, struct weir__server *s)
{
    uint32_t connections, visits;

    weir__mutex_lock(&s->lock);
    connections = s->connections;
    visits = s->visits;
    weir__mutex_unlock(&s->lock);
    write_head(a, "weir_connections", "gauge", "Connections that are open.");
    weir__answer_add(a, "weir_connections{protocol=\"amqp\"} %" PRIu32 "\n", connections);
    weir__answer_add(a, "weir_connections{protocol=\"http\"} %" PRIu32 "\n", visits);
    write_head(a, "weir_links", "gauge", "AMQP links that are attached.");
    weir__answer_add(a, "weir_links %u\n", atomic_load(&s->links));
    write_head(a, "weir_logins_refused_total", "counter", "Logins and tokens that were refused.");
    weir__answer_add(a, "weir_logins_refused_total %llu\n",
                     (unsigned long long)atomic_load(&s->logins_refused));
    write_head(a, "weir_unflushed_bytes", "gauge", "Bytes of clients that are not durable yet.");
    weir__answer_add(a, "weir_unflushed_bytes %zu\n", atomic_load(&s->unflushed));
}

static void write_disk(struct weir__answer *a, struct weir__server *s)
{
    struct weir__fs_space disk;

    if (weir__namespace_space(s->ns, &disk, NULL) != 0) return;
    write_head(a, "weir_disk_free_bytes", "gauge", "Free bytes where the data folder lies.");
    weir__answer_add(a, "weir_disk_free_bytes %" PRIu64 "\n", disk.free_bytes);
    write_head(a, "weir_disk_size_bytes", "gauge", "All bytes there.");
    weir__answer_add(a, "weir_disk_size_bytes %" PRIu64 "\n", disk.size_bytes);
}

/* ---- the process, by the names that everybody uses ---- */

static double resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re"); /* pages: all, resident, ... */
    char line[128] = "", *rest = line;
    unsigned long pages;

    if (!f) return 0;
    if (!fgets(line, sizeof line, f)) line[0] = '\0';
    fclose(f);
    strtoul(line, &rest, 10);
    pages = strtoul(rest, NULL, 10);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    if (!dir) return 0;
    while (readdir(dir)) count++;
    closedir(dir);
    return count > 3 ? count - 3 : 0; /* ".", ".." and our own */
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void write_process(struct weir__answer *a)
{
    struct rusage usage = {0};
    struct rlimit files = {0};

    getrusage(RUSAGE_SELF, &usage);
    getrlimit(RLIMIT_NOFILE, &files);
    write_head(a, "process_cpu_seconds_total", "counter", "User and system time.");
    weir__answer_add(a, "process_cpu_seconds_total %.6f\n",
                     seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    write_head(a, "process_resident_memory_bytes", "gauge", "Memory that is in use.");
    weir__answer_add(a, "process_resident_memory_bytes %.0f\n", resident_bytes());
    write_head(a, "process_open_fds", "gauge", "Files and sockets that are open.");
    weir__answer_add(a, "process_open_fds %u\n", open_descriptors());
    write_head(a, "process_max_fds", "gauge", "Files and sockets that may be open.");
    weir__answer_add(a, "process_max_fds %ju\n", (uintmax_t)files.rlim_cur);
}

bool weir__metrics_answer(struct weir__visit *v)
{
    struct hub_rows rows = {0};

    if (!weir__census(v->server->ns, note_hub, &rows)) {
        weir__answer_error(v, 503, "There is no memory for all hubs.");
    } else {
        write_families(&v->answer, &rows);
        write_flushes(&v->answer, &rows);
        write_server(&v->answer, v->server);
        write_budget(&v->answer, &v->server->budget);
        write_turns(&v->answer, v->server);
        write_disk(&v->answer, v->server);
        write_process(&v->answer);
        weir__answer_json(v, 200);
        v->answer.type = TYPE_TEXT;
    }
    free(rows.at);
    return true;
}
