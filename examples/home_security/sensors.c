/* sensors.c - the homes. Every sensor reports once a minute, spread evenly over it.
 *
 * Events are sorted by the partition of their home's key and sent there by a producer of its own
 * that stores each batch once, whatever happens to the connection. What the hub has acknowledged is
 * counted, and written to DIR/sent-0.json at the end: that is what the jobs have to arrive at.
 *
 * SIGUSR1 gives every home a carbon-monoxide detector. SIGTERM ends it. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "home.h"

#define TICK_MS 100
#define TICKS (MINUTE_MS / TICK_MS)
#define BATCH_MAX 512u
#define WAIT_MS 30000

/* The batch of one partition that is being put together. */
struct batch {
    struct weir_producer *producer;
    struct tally tally; /* acknowledged; completions of one hub run one at a time */
    uint32_t count;
    struct weir_event events[BATCH_MAX];
    struct tally of_batch;
    char bodies[BATCH_MAX][REPORT_BYTES];
    char keys[BATCH_MAX][24];
};

struct sending {
    struct batch *batch;
    struct tally tally;
};

static atomic_bool failed;

static void sent(void *user, int rc, const struct weir_receipt *receipt,
                 const struct weir_error *err)
{
    struct sending *s = user;

    (void)receipt;
    for (int i = 0; rc == 0 && i < SENSORS; i++) s->batch->tally.events[i] += s->tally.events[i];
    if (rc == 0)
        s->batch->tally.alarms += s->tally.alarms;
    else if (!atomic_exchange(&failed, true))
        complain("the hub did not take a batch", err);
    free(s);
}

static int send_batch(struct batch *b)
{
    struct weir_error err;
    struct sending *s;
    int rc;

    if (b->count == 0) return 0;
    s = malloc(sizeof *s);
    if (!s) return 1;
    *s = (struct sending){b, b->of_batch};
    rc = weir_producer_send_async(b->producer, b->events, b->count, WAIT_MS, sent, s, &err);
    b->count = 0;
    b->of_batch = (struct tally){{0}, 0};
    if (rc == 0) return 0;
    free(s);
    return complain("sending", &err);
}

/* One in so many reports is an alarm; the same ones in every run. */
static bool is_alarm(uint32_t home, enum sensor sensor, uint32_t minute)
{
    uint32_t x = (home * 2654435761u) ^ (minute * 40503u) ^ ((uint32_t)sensor * 97u);

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return sensor >= GLASS && x % 5000 == 0;
}

static int report(struct batch *batches, uint32_t home, enum sensor sensor, uint32_t minute)
{
    char key[24];
    int len = snprintf(key, sizeof key, "home-%u", home);
    struct batch *b = &batches[weir_partition_of_key(weir_bytes(key, (size_t)len), PARTITIONS)];
    bool alarm = is_alarm(home, sensor, minute);
    uint32_t i = b->count++;

    memcpy(b->keys[i], key, sizeof key);
    b->events[i] = (struct weir_event){
        .body = weir_bytes(b->bodies[i], report_write(b->bodies[i], home, sensor, alarm)),
        .partition_key = weir_bytes(b->keys[i], (size_t)len),
    };
    tally_add(&b->of_batch, sensor, alarm);
    return b->count == BATCH_MAX ? send_batch(b) : 0;
}

/* All homes whose turn it is in this tick of the minute. */
static int tick(struct batch *batches, uint32_t homes, uint32_t number, bool monoxide)
{
    int rc = 0;

    for (uint32_t home = number % TICKS; rc == 0 && home < homes; home += TICKS)
        for (int s = 0; rc == 0 && s < (monoxide ? SENSORS : MONOXIDE); s++)
            rc = report(batches, home, (enum sensor)s, number / TICKS);
    for (uint32_t p = 0; rc == 0 && p < PARTITIONS; p++) rc = send_batch(&batches[p]);
    return rc;
}

static int write_sums(const struct batch *batches, const char *dir)
{
    struct aggregate a = {.epoch = 0, .last = -1};

    snprintf(a.path, sizeof a.path, "%s/sent-0.json", dir);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        for (int i = 0; i < SENSORS; i++) a.tally.events[i] += batches[p].tally.events[i];
        a.tally.alarms += batches[p].tally.alarms;
    }
    if (aggregate_save(&a) == 0) return 0;
    perror(a.path);
    return 1;
}

static int live(struct batch *batches, uint32_t homes, double speed)
{
    struct timespec due, now;
    bool monoxide = false;
    sigset_t signals;
    int rc = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (uint32_t number = 0; rc == 0 && !atomic_load(&failed); number++) {
        struct timespec wait = {0, 0};
        int64_t left_ns;
        int signal;

        rc = tick(batches, homes, number, monoxide);
        due.tv_nsec += (long)(TICK_MS * 1e6 / speed);
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        clock_gettime(CLOCK_MONOTONIC, &now);
        left_ns = (due.tv_sec - now.tv_sec) * 1000000000LL + due.tv_nsec - now.tv_nsec;
        if (left_ns > 0) wait.tv_sec = left_ns / 1000000000, wait.tv_nsec = left_ns % 1000000000;
        while ((signal = sigtimedwait(&signals, NULL, &wait)) < 0 && errno == EINTR) continue;
        if (signal == SIGUSR1) monoxide = true;
        if (signal == SIGTERM || signal == SIGINT) break;
    }
    return rc || atomic_load(&failed);
}

int sensors_run(const char *where, const char *dir, uint32_t homes, double speed)
{
    struct batch *batches = calloc(PARTITIONS, sizeof *batches);
    struct weir_error err;
    struct weir *weir = NULL;
    int rc;

    if (!batches) return perror("sensors"), 1;
    rc = weir_open(&weir, where, NULL, &err);
    for (uint32_t p = 0; rc == 0 && p < PARTITIONS; p++) {
        struct weir_producer_options o = {.size = sizeof o,
                                          .pinned = true,
                                          .partition = p,
                                          .idempotent = true};

        rc = weir_producer_open(&batches[p].producer, weir, HUB, &o, &err);
    }
    rc = rc != 0 ? complain("sensors", &err) : live(batches, homes, speed);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (weir_producer_close(batches[p].producer, WAIT_MS, &err) != 0)
            rc = complain("sensors", &err);
    if (rc == 0) rc = write_sums(batches, dir);
    weir_close(weir, NULL);
    free(batches);
    return rc;
}
