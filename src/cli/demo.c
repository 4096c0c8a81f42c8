/* demo.c - weir demo: the main job, with what exists, before your eyes. See demo.h. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "cli/demo.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/stop.h"

#define PUBLISHERS 2u
#define HOMES_DEFAULT 100000u
#define MINUTES_DEFAULT 60u
#define LIVE_MS 100
#define LINE_MS 1000
#define BAR 24

struct demo_options {
    struct weir__common common;
    struct weir__args_number homes, minutes;
};

static const struct weir__args_row demo_rows[] = {
    {"homes", WEIR__ARGS_NUMBER, offsetof(struct demo_options, homes), "N",
     "how many homes report (default 100000)"},
    {"minutes", WEIR__ARGS_NUMBER, offsetof(struct demo_options, minutes), "N",
     "how many minutes they do, one event each (default 60)"},
    {0},
};

/* ---- threads ---- */

struct worker {
    struct weir__thread thread;
    struct weir__demo *demo;
    uint32_t number; /* publishers first, then one reader per partition */
};

#define WORKERS (PUBLISHERS + WEIR__DEMO_PARTITIONS)

static void *work(void *arg)
{
    struct worker *w = arg;
    struct weir__demo *d = w->demo;

    if (w->number < PUBLISHERS)
        weir__demo_publish(d, w->number, PUBLISHERS);
    else
        weir__demo_read(d, w->number - PUBLISHERS);
    weir__mutex_lock(&d->lock);
    d->running--;
    weir__cond_broadcast(&d->changed);
    weir__mutex_unlock(&d->lock);
    return NULL;
}

static void stop_all(void *user)
{
    struct weir__demo *d = user;

    atomic_store(&d->stop, true);
    for (uint32_t i = 0; i < WEIR__DEMO_PARTITIONS; i++)
        if (d->receiver[i]) weir_receiver_cancel(d->receiver[i]);
}

void weir__demo_fail(struct weir__demo *d, const struct weir_error *err)
{
    weir__mutex_lock(&d->lock);
    if (!d->failed) d->error = *err;
    d->failed = true;
    weir__mutex_unlock(&d->lock);
    stop_all(d);
}

/* ---- what it prints ---- */

/* 1234567 as "1,234,567". */
static const char *commas(uint64_t n, char out[32])
{
    char plain[24];
    int len = snprintf(plain, sizeof plain, "%" PRIu64, n), to = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) out[to++] = ',';
        out[to++] = plain[i];
    }
    out[to] = '\0';
    return out;
}

struct pace {
    int64_t at_ns;
    uint64_t published, read;
};

static uint64_t rate(uint64_t events, int64_t ns)
{
    return ns <= 0 ? 0 : (uint64_t)((double)events * 1e9 / (double)ns);
}

static void print_pace(const struct weir__demo *d, struct pace *last, int64_t start_ns, bool live)
{
    struct pace now = {weir__mono_ns(), atomic_load(&d->published), atomic_load(&d->read)};
    uint64_t total = (uint64_t)d->homes * d->minutes;
    int done = (int)(now.read * BAR / total);
    char in[32], out[32];

    printf("%s  %5.1f s  [%.*s%.*s] %3d %%   in %11s/s   out %11s/s%s", live ? "\r" : "",
           (double)(now.at_ns - start_ns) / 1e9, done, "########################", BAR - done,
           "........................", (int)(now.read * 100 / total),
           commas(rate(now.published - last->published, now.at_ns - last->at_ns), in),
           commas(rate(now.read - last->read, now.at_ns - last->at_ns), out), live ? "  " : "\n");
    fflush(stdout);
    *last = now;
}

/* Until all threads are done. The first line comes after a step: rates need one. */
static void watch(struct weir__demo *d, int64_t start_ns)
{
    bool live = isatty(STDOUT_FILENO);
    int64_t step_ns = (live ? LIVE_MS : LINE_MS) * INT64_C(1000000), next_ns = start_ns + step_ns;
    struct pace last = {.at_ns = start_ns};

    weir__mutex_lock(&d->lock);
    while (d->running > 0) {
        if (weir__cond_wait(&d->changed, &d->lock, next_ns)) continue;
        print_pace(d, &last, start_ns, live);
        next_ns += step_ns;
    }
    weir__mutex_unlock(&d->lock);
    if (live) fputs("\r\033[K", stdout);
}

/* The upper end of the bucket in which this part of all batches lies. */
static double latency_ms(const struct weir__demo *d, double part)
{
    uint64_t wanted = (uint64_t)((double)d->batches * part), count = 0;
    uint32_t i = 0;

    while (i < WEIR__DEMO_BUCKETS - 1 && (count += d->latency[i]) <= wanted) i++;
    if (i < 8) return (double)(i + 1) / 1000;
    return (double)((uint64_t)(8 + i % 8 + 1) << (i / 8 - 1)) / 1000;
}

static void print_spread(const struct weir__demo *d)
{
    uint32_t low = UINT32_MAX, high = 0;
    char a[32], b[32];

    for (uint32_t i = 0; i < WEIR__DEMO_PARTITIONS; i++) {
        uint32_t n = d->first[i + 1] - d->first[i];
        if (n < low) low = n;
        if (n > high) high = n;
    }
    printf("  partitions    %u, with %s to %s homes each\n", WEIR__DEMO_PARTITIONS, commas(low, a),
           commas(high, b));
}

static void print_summary(const struct weir__demo *d, int64_t start_ns, int64_t end_ns)
{
    uint64_t total = (uint64_t)d->homes * d->minutes;
    int64_t in_ns = atomic_load(&d->published_ns) - start_ns, out_ns = end_ns - start_ns;
    char events[32], per_s[32];

    printf("  published     %s events in %.1f s, %s events/s, %.0f MB/s of bodies\n",
           commas(total, events), (double)in_ns / 1e9, commas(rate(total, in_ns), per_s),
           (double)atomic_load(&d->bytes) * 1e3 / (double)in_ns);
    printf("  durable       yes: each was on disk before it was counted\n");
    printf("  acknowledged  p50 %.1f ms, p99 %.1f ms after sending, in batches of up to 250\n",
           latency_ms(d, 0.5), latency_ms(d, 0.99));
    printf("  read back     %s events in %.1f s, %s events/s, while they were published\n", events,
           (double)out_ns / 1e9, commas(rate(total, out_ns), per_s));
    print_spread(d);
    printf("  verified      every home's %" PRIu32 " events seen exactly once, in order, in the "
           "partition of its key\n",
           d->minutes);
}

/* ---- beginning and end ---- */

/* Sorts the homes by the partition of their key. */
static int place_homes(struct weir__demo *d)
{
    uint32_t at[WEIR__DEMO_PARTITIONS];
    char key[WEIR__DEMO_KEY_BYTES];

    d->home = calloc(d->homes, sizeof *d->home);
    d->seen = calloc(d->homes, sizeof *d->seen);
    if (!d->home || !d->seen) return WEIR_ENOMEM;
    for (uint32_t h = 0; h < d->homes; h++)
        d->first[weir_partition_of_key(weir__demo_key(h, key), WEIR__DEMO_PARTITIONS) + 1]++;
    for (uint32_t i = 0; i < WEIR__DEMO_PARTITIONS; i++) {
        d->first[i + 1] += d->first[i];
        at[i] = d->first[i];
    }
    for (uint32_t h = 0; h < d->homes; h++)
        d->home[at[weir_partition_of_key(weir__demo_key(h, key), WEIR__DEMO_PARTITIONS)]++] = h;
    return 0;
}

static int open_hub(struct weir__demo *d, struct weir_error *err)
{
    struct weir_hub_options hub = {.size = sizeof hub, .partitions = WEIR__DEMO_PARTITIONS};
    struct weir_receiver_options from = {.size = sizeof from, .name = "weir demo"};
    int rc = weir_hub_create(d->weir, WEIR__DEMO_HUB, &hub, err);

    for (uint32_t i = 0; rc == 0 && i < WEIR__DEMO_PARTITIONS; i++)
        rc = weir_receiver_open(&d->receiver[i], d->weir, WEIR__DEMO_HUB, i, &from, err);
    return rc;
}

/* Runs everybody to the end. */
static void run_workers(struct weir__demo *d, int64_t start_ns)
{
    struct worker worker[WORKERS] = {0};
    struct weir_error err;

    for (uint32_t i = 0; i < WORKERS && !atomic_load(&d->stop); i++) {
        worker[i].demo = d;
        worker[i].number = i;
        weir__mutex_lock(&d->lock);
        d->running++;
        weir__mutex_unlock(&d->lock);
        if (weir__thread_start(&worker[i].thread, "weir-demo", work, &worker[i], &err) == 0)
            continue;
        weir__mutex_lock(&d->lock);
        d->running--;
        weir__mutex_unlock(&d->lock);
        weir__demo_fail(d, &err);
    }
    watch(d, start_ns);
    for (uint32_t i = 0; i < WORKERS; i++) weir__thread_join(&worker[i].thread);
}

static int play(struct weir__demo *d)
{
    struct weir__stop *stop = NULL;
    struct weir_error err = {0};
    int64_t start_ns = 0, end_ns;
    int rc = place_homes(d);

    if (rc == 0) rc = open_hub(d, &err);
    if (rc == 0) rc = weir__stop_start(&stop, stop_all, d, &err);
    if (rc != 0) return weir__exit_error(rc, &err, "demo");
    start_ns = weir__mono_ns();
    run_workers(d, start_ns);
    end_ns = weir__mono_ns();
    weir__stop_end(stop);
    if (d->failed) return weir__exit_error(d->error.code, &d->error, "demo");
    if (atomic_load(&d->stop)) {
        printf("stopped\n");
        return WEIR__EXIT_FAILURE;
    }
    print_summary(d, start_ns, end_ns);
    return WEIR__EXIT_OK;
}

static int play_in(struct weir__demo *d, const char *dir)
{
    int code = weir__home_open(&d->weir, dir, false);

    if (code != 0) return code;
    weir__mutex_init(&d->lock);
    weir__cond_init(&d->changed);
    code = play(d);
    for (uint32_t i = 0; i < WEIR__DEMO_PARTITIONS; i++) weir_receiver_close(d->receiver[i]);
    code = weir__home_close(d->weir, code);
    weir__cond_fini(&d->changed);
    weir__mutex_fini(&d->lock);
    free(d->home);
    free(d->seen);
    return code;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int play_in_temporary(struct weir__demo *d)
{
    const char *tmp = getenv("TMPDIR");
    char dir[1024];
    int code;

    snprintf(dir, sizeof dir, "%s/weir-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        fprintf(stderr, "weir: demo: cannot make a folder like %s; set TMPDIR or use --data\n",
                dir);
        return WEIR__EXIT_FAILURE;
    }
    printf("  folder        %s, removed at the end (--data DIR keeps it)\n", dir);
    code = play_in(d, dir);
    if (nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "weir: demo: %s could not be removed; remove it by hand\n", dir);
    return code;
}

static int run_demo(const struct weir__command *self, int argc, char **argv)
{
    struct demo_options o = {0};
    struct weir__demo d = {.homes = HOMES_DEFAULT, .minutes = MINUTES_DEFAULT};
    char homes[32];
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.homes.given && (o.homes.value < 1 || o.homes.value > WEIR__DEMO_HOMES_MAX))
        return weir__exit_usage(self->name, "--homes must be 1 to %u", WEIR__DEMO_HOMES_MAX);
    if (o.minutes.given && (o.minutes.value < 1 || o.minutes.value > WEIR__DEMO_MINUTES_MAX))
        return weir__exit_usage(self->name, "--minutes must be 1 to %u", WEIR__DEMO_MINUTES_MAX);
    if (o.homes.given) d.homes = (uint32_t)o.homes.value;
    if (o.minutes.given) d.minutes = (uint32_t)o.minutes.value;
    printf("weir demo: %s homes report their sensors for %" PRIu32 " minutes\n",
           commas(d.homes, homes), d.minutes);
    fflush(stdout);
    if (!o.common.data_given) return weir__exit_printed(play_in_temporary(&d));
    return weir__exit_printed(play_in(&d, o.common.data));
}

const struct weir__command weir__command_demo = {
    .name = "demo",
    .words = "",
    .summary = "watch a hub at work: homes report, everything is read back and checked",
    .more =
        "Makes the hub '" WEIR__DEMO_HUB "' with 16 partitions in a temporary folder, publishes "
        "and reads\nat the same time, prints the rates and removes the folder; with --data it "
        "is kept.",
    .rows = demo_rows,
    .run = run_demo,
};
