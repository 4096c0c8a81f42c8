/* copy.c - one copy of the program: a processor for each job. Started five times, the copies share
 * the partitions of both; each may die at any moment. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "home.h"

#define SAVE_MS 250
#define STOP_MS 20000

struct copy {
    const char *dir;
    enum job job;
    struct weir_source *source;
    struct weir_store *store;
    struct weir_processor *processor;
};

struct work {
    struct aggregate aggregate;
    int64_t saved_ms;
    bool changed;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int on_open(struct weir_partition *p, void **state, void *user)
{
    struct copy *c = user;
    struct work *w = calloc(1, sizeof *w);

    if (w && aggregate_open(&w->aggregate, c->dir, c->job, weir_partition_id(p),
                            weir_partition_epoch(p)) == 0) {
        *state = w;
        return 0;
    }
    fprintf(stderr, "%s of partition %u: %s\n", job_names[c->job], weir_partition_id(p),
            strerror(errno));
    free(w);
    return WEIR_EIO;
}

/* First the sums, then the mark: a crash in between repeats events that the file knows. */
static int save(struct weir_partition *p, struct work *w)
{
    if (!w->changed) return 0;
    if (aggregate_save(&w->aggregate) != 0) return WEIR_EIO;
    w->changed = false;
    w->saved_ms = now_ms();
    return weir_checkpoint(p, NULL);
}

/* The handler's own decision what counts: `routing` keeps alarms, `storage` everything. */
static void count(struct work *w, enum job job, const struct weir_event *e)
{
    enum sensor sensor;
    bool alarm;

    w->changed = true;
    if ((int64_t)e->sequence <= w->aggregate.last) return; /* it came again */
    w->aggregate.last = (int64_t)e->sequence;
    if (!report_read(e->body, &sensor, &alarm)) return;
    if (job == STORAGE || alarm) tally_add(&w->aggregate.tally, sensor, alarm);
}

static int on_events(struct weir_partition *p, const struct weir_event *events, size_t n,
                     void *user)
{
    struct copy *c = user;
    struct work *w = weir_partition_state(p);

    for (size_t i = 0; i < n; i++) count(w, c->job, &events[i]);
    return n == 0 || now_ms() - w->saved_ms >= SAVE_MS ? save(p, w) : 0;
}

static void on_error(struct weir_partition *p, enum weir_action action,
                     const struct weir_error *err, void *user)
{
    struct copy *c = user;

    fprintf(stderr, "%s %s: %s: %s\n", weir_processor_name(c->processor), job_names[c->job],
            weir_action_text(action), err->text);
    (void)p;
}

static void on_close(struct weir_partition *p, enum weir_close_reason reason, void *user)
{
    struct work *w = weir_partition_state(p);

    (void)user;
    if (w && reason != WEIR_CLOSED_LOST) save(p, w);
    free(w);
}

static int start(struct copy *c, struct weir *weir, const char *name, struct weir_error *err)
{
    struct weir_processor_options o = {
        .size = sizeof o,
        .handler = {on_open, on_events, on_error, on_close},
        .user = c,
        .name = name,
        .receive_ms = SAVE_MS,
        .invoke_when_idle = true,
    };
    char path[512];
    int rc = weir_source_hub(&c->source, weir, HUB, job_names[c->job], err);

    snprintf(path, sizeof path, "%s/owners.db", c->dir);
    if (rc == 0) rc = weir_store_sqlite(&c->store, path, NULL, err);
    if (rc == 0) rc = weir_processor_start(&c->processor, c->source, c->store, &o, err);
    return rc;
}

int copy_run(const char *where, const char *dir, const char *name)
{
    struct copy copies[JOBS] = {{dir, STORAGE, NULL, NULL, NULL}, {dir, ROUTING, NULL, NULL, NULL}};
    struct weir_error err;
    struct weir *weir = NULL;
    sigset_t signals;
    int signal, rc = weir_open(&weir, where, NULL, &err);

    for (int i = 0; rc == 0 && i < JOBS; i++) rc = start(&copies[i], weir, name, &err);
    if (rc == 0) {
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigwait(&signals, &signal);
    }
    for (int i = 0; i < JOBS; i++) {
        int stopped = weir_processor_stop(copies[i].processor, STOP_MS, rc == 0 ? &err : NULL);

        if (rc == 0) rc = stopped;
        weir_store_close(copies[i].store);
        weir_source_close(copies[i].source);
    }
    if (rc != 0) complain(name, &err);
    weir_close(weir, NULL);
    return rc != 0;
}
