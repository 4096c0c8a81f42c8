/* sim.c - a run: the hosts start, then faults and calm by turns. */
#include "sim/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/oracle.h"
#include "sim/world.h"

#define START_MS 250        /* within which the hosts are started */
#define FAULTY_MS 100000    /* how long faults follow each other */
#define FAULT_GAP_MS 6000   /* at most, between two */
#define SETTLE_MS_MAX 20000 /* then everything must be in balance */
#define QUIET_MS 10000      /* in which nothing may move */
#define LOOK_MS 250

/* Lets time pass until all is in balance. */
static void settle(struct world *w, const char *after)
{
    int64_t begun = w->now_ms;

    while (!weir__oracle_settled(w) && !weir__world_broken(w)) {
        if (w->now_ms - begun > SETTLE_MS_MAX)
            weir__world_violate(w, "not in balance %d s after %s", SETTLE_MS_MAX / 1000, after);
        weir__world_run(w, w->now_ms + LOOK_MS);
    }
    if (w->now_ms - begun > w->result->settle_worst_ms)
        w->result->settle_worst_ms = w->now_ms - begun;
}

/* Nothing moves, and the hosts call the store twice in a beat. */
static void stay_quiet(struct world *w)
{
    uint64_t before[WEIR__SIM_HOSTS_MAX], most = 2 * (QUIET_MS / BEAT_MS + 1);

    /* A beat that comes late is a sign of life from the dead: they get partitions once more. */
    weir__world_run(w, w->now_ms + LATE_MS + EXPIRE_MS + 3 * BEAT_MS);
    w->claims = 0;
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) before[i] = w->hosts[i].control_calls;
    weir__world_run(w, w->now_ms + QUIET_MS);
    if (w->claims > 0) weir__world_violate(w, "%" PRIu64 " claims in a quiet time", w->claims);
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++)
        if (w->hosts[i].up && w->hosts[i].control_calls - before[i] > most)
            weir__world_violate(w, "%s made %" PRIu64 " calls in %d quiet s", w->hosts[i].id,
                                w->hosts[i].control_calls - before[i], QUIET_MS / 1000);
}

/* One host comes, goes or dies: it costs what it must. */
static void change_one(struct world *w)
{
    uint32_t must;

    w->claims = 0;
    weir__fault_single(w);
    must = weir__oracle_moves(w);
    settle(w, "one host changed");
    weir__world_run(w, w->now_ms + EXPIRE_MS);
    if (w->claims != must)
        weir__world_violate(w, "%" PRIu64 " claims where %u moves were needed", w->claims, must);
}

static void start_hosts(struct world *w)
{
    for (uint32_t i = 0; i < w->hosts_wanted; i++) {
        char id[16];
        weir__world_run(w, w->now_ms + weir__world_roll(w, 0, START_MS / w->hosts_wanted));
        snprintf(id, sizeof id, "%c-%u", (char)weir__world_roll(w, 'a', 'z'), w->names++);
        weir__host_start(w, i, id);
    }
    settle(w, "the start");
    weir__world_run(w, w->now_ms + EXPIRE_MS);
    if (w->claims != w->partitions)
        weir__world_violate(w, "%" PRIu64 " claims to start with, for %u partitions", w->claims,
                            w->partitions);
}

static void init_world(struct world *w, const struct weir__sim_options *o,
                       struct weir__sim_result *out)
{
    w->options = *o;
    w->result = out;
    w->chance = o->seed;
    weir__chance_next(&w->chance);
    w->hosts_wanted = o->hosts ? o->hosts : (uint32_t)weir__world_roll(w, 3, 6);
    w->partitions = o->partitions ? o->partitions : (uint32_t)weir__world_roll(w, 5, 24);
    assert(w->hosts_wanted + 2 <= WEIR__SIM_HOSTS_MAX);
    assert(w->partitions <= WEIR__SIM_PARTITIONS_MAX);
    w->store = weir__simstore_new(w->partitions);
    w->store->fence_off = o->sabotage == WEIR__SIM_FENCE_OFF;
    w->store->turns_off = o->sabotage == WEIR__SIM_TURNS_OFF;
    w->clock_ms = w->store_skew_ms = weir__world_roll(w, 0, INT64_C(1) << 40);
    w->skew_ms = weir__chance_one_in(&w->chance, 2) ? 2 * EXPIRE_MS : 7200000;
}

void weir__sim_run(const struct weir__sim_options *o, struct weir__sim_result *out)
{
    struct world *w = calloc(1, sizeof *w);
    int64_t end_ms = (int64_t)(o->minutes ? o->minutes : 10) * 60000;

    assert(w);
    memset(out, 0, sizeof *out);
    init_world(w, o, out);
    start_hosts(w);
    while (w->now_ms < end_ms && !weir__world_broken(w)) {
        int64_t calm_ms = w->now_ms + FAULTY_MS;
        while (w->now_ms < calm_ms && !weir__world_broken(w)) {
            weir__fault_inject(w);
            weir__world_run(w, w->now_ms + weir__world_roll(w, 0, FAULT_GAP_MS));
        }
        weir__fault_heal(w);
        settle(w, "the faults ended");
        stay_quiet(w);
        change_one(w);
    }
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) weir__host_crash(w, i);
    out->runs = 1;
    out->simulated_ms = w->now_ms;
    w->store->base.ops->close(&w->store->base);
    free(w->events);
    free(w);
}

void weir__sim_add(struct weir__sim_result *sum, const struct weir__sim_result *one)
{
    if (sum->violation[0] == '\0') {
        memcpy(sum->violation, one->violation, sizeof sum->violation);
        sum->violation_ms = one->violation_ms;
    }
    sum->runs += one->runs;
    sum->violations += one->violations;
    sum->simulated_ms += one->simulated_ms;
    for (size_t i = 0; i < WEIR__SIM_FAULTS; i++) sum->faults[i] += one->faults[i];
    sum->steps += one->steps;
    sum->claims += one->claims;
    sum->fenced += one->fenced;
    sum->starts += one->starts;
    sum->handovers += one->handovers;
    sum->takeovers += one->takeovers;
    sum->steals += one->steals;
    sum->lost += one->lost;
    sum->marks += one->marks;
    sum->marks_fenced += one->marks_fenced;
    if (one->settle_worst_ms > sum->settle_worst_ms) sum->settle_worst_ms = one->settle_worst_ms;
}
