/* fault.c - a table of what may go wrong. Each row tries; it says whether it found somebody to hit. */
#include "sim/fault.h"

#include <stdio.h>

#include "sim/oracle.h"
#include "sim/world.h"

#define TRIES_MAX 20

static const struct weir_scope scope = {"sim", "hub", "$default"};

void weir__fault_hit(struct world *w, enum fault fault)
{
    w->result->faults[fault]++;
}

/* ---- whom to hit ---- */

static uint32_t count_up(const struct world *w)
{
    uint32_t up = 0;

    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) up += w->hosts[i].up && !w->hosts[i].leaving;
    return up;
}

/* Any host that runs, is not frozen and does not leave. */
static bool pick_up(struct world *w, uint32_t *out)
{
    uint32_t first = (uint32_t)weir__world_roll(w, 0, WEIR__SIM_HOSTS_MAX - 1);

    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) {
        const struct host *h = &w->hosts[ *out = (first + i) % WEIR__SIM_HOSTS_MAX];
        if (h->up && !h->paused && !h->leaving) return true;
    }
    return false;
}

/* A place for another host; `named`: one where there was one before. */
static bool pick_down(struct world *w, bool named, uint32_t *out)
{
    uint32_t first = (uint32_t)weir__world_roll(w, 0, WEIR__SIM_HOSTS_MAX - 1);

    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) {
        const struct host *h = &w->hosts[ *out = (first + i) % WEIR__SIM_HOSTS_MAX];
        if (!h->up && (!named || h->id[0])) return true;
    }
    return false;
}

static bool is_name_up(const struct world *w, const char *id)
{
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++)
        if (w->hosts[i].up && strcmp(w->hosts[i].id, id) == 0) return true;
    return false;
}

static void start_new(struct world *w, uint32_t host)
{
    char id[16];

    snprintf(id, sizeof id, "%c%c-%u", (char)weir__world_roll(w, 'a', 'z'),
             (char)weir__world_roll(w, 'a', 'z'), w->names++);
    weir__host_start(w, host, id);
}

/* ---- hosts ---- */

static bool crash(struct world *w)
{
    uint32_t host;

    if (count_up(w) < 2 || !pick_up(w, &host)) return false;
    weir__host_crash(w, host);
    return true;
}

static bool restart_name(struct world *w)
{
    char id[16];
    uint32_t host;

    if (pick_down(w, true, &host) && !is_name_up(w, w->hosts[host].id)) {
        if (count_up(w) >= w->hosts_wanted + 2) return false;
    } else {
        if (!pick_up(w, &host)) return false;
        weir__host_crash(w, host);
    }
    snprintf(id, sizeof id, "%s", w->hosts[host].id);
    weir__host_start(w, host, id);
    return true;
}

static bool restart_new(struct world *w)
{
    uint32_t host;

    if (!pick_up(w, &host)) return false;
    weir__host_crash(w, host);
    start_new(w, host);
    return true;
}

static bool join(struct world *w)
{
    uint32_t host;

    if (count_up(w) >= w->hosts_wanted + 2 || !pick_down(w, false, &host)) return false;
    start_new(w, host);
    return true;
}

static bool leave(struct world *w)
{
    uint32_t host;

    if (count_up(w) < 2 || !pick_up(w, &host)) return false;
    weir__world_trace(w, "%s leaves", w->hosts[host].id);
    weir__host_leave(w, host);
    return true;
}

static bool pause_for(struct world *w, int64_t least, int64_t most, bool suspended)
{
    uint32_t host;

    if (!pick_up(w, &host)) return false;
    weir__host_pause(w, host, weir__world_roll(w, least, most), suspended);
    return true;
}

static bool pause_short(struct world *w)
{
    return pause_for(w, 200, EXPIRE_MS, false);
}

static bool pause_long(struct world *w)
{
    return pause_for(w, EXPIRE_MS + BEAT_MS, 8 * EXPIRE_MS, false);
}

static bool suspend(struct world *w)
{
    return pause_for(w, 200, 8 * EXPIRE_MS, true);
}

static bool twin(struct world *w)
{
    uint32_t host, other;

    if (count_up(w) >= w->hosts_wanted + 2 || !pick_up(w, &host) || !pick_down(w, false, &other))
        return false;
    weir__host_pause(w, host, weir__world_roll(w, 2 * EXPIRE_MS, 8 * EXPIRE_MS), false);
    weir__host_start(w, other, w->hosts[host].id);
    return true;
}

static bool cut_store(struct world *w)
{
    uint32_t host;

    if (!pick_up(w, &host)) return false;
    w->hosts[host].store_cut_until_ms = w->now_ms + weir__world_roll(w, 500, 15000);
    w->hosts[host].refused = weir__chance_one_in(&w->chance, 2);
    weir__world_trace(w, "%s is cut from the store", w->hosts[host].id);
    return true;
}

static bool cut_hub(struct world *w)
{
    uint32_t host;

    if (!pick_up(w, &host)) return false;
    weir__host_cut_hub(w, host, weir__world_roll(w, 500, 15000));
    return true;
}

static bool make_lossy(struct world *w)
{
    uint32_t host;

    if (!pick_up(w, &host)) return false;
    w->hosts[host].lossy_until_ms = w->now_ms + weir__world_roll(w, 2000, 15000);
    weir__world_trace(w, "%s loses calls", w->hosts[host].id);
    return true;
}

/* Counted when a hand-over meets it. */
static bool make_lazy(struct world *w)
{
    uint32_t host;

    if (!pick_up(w, &host)) return false;
    w->hosts[host].lazy_until_ms = w->now_ms + weir__world_roll(w, 5000, 30000);
    return true;
}

static bool release(struct world *w)
{
    uint32_t host, p = (uint32_t)weir__world_roll(w, 0, w->partitions - 1);
    struct pump *pump;

    if (!pick_up(w, &host)) return false;
    pump = &w->hosts[host].pumps[p];
    if (!pump->started || pump->draining) return false;
    weir__world_trace(w, "%s releases %u", w->hosts[host].id, p);
    pump->draining = true;
    pump->drain_ms = w->now_ms;
    pump->rest_ms = weir__world_roll(w, 1, 5000);
    weir__world_push(w, weir__world_roll(w, 0, 150), EVENT_DRAINED, host, p);
    return true;
}

/* ---- the store ---- */

static bool put_out(struct world *w)
{
    if (w->now_ms >= w->outage_until_ms) w->outage_ms = w->now_ms;
    w->outage_until_ms = w->now_ms + weir__world_roll(w, 500, 40000);
    w->outage_refused = weir__chance_one_in(&w->chance, 2);
    weir__world_trace(w, "the store is away until %.3f", (double)w->outage_until_ms / 1000);
    return true;
}

static bool slow_down(struct world *w)
{
    w->slow_until_ms = w->now_ms + weir__world_roll(w, 2000, 15000);
    w->slow_ms = weir__world_roll(w, 50, 1500);
    weir__world_trace(w, "the store is slow");
    return true;
}

static bool set_clock(struct world *w)
{
    w->store_skew_ms += weir__world_roll(w, -7200000, 7200000);
    weir__world_trace(w, "the store's clock is set");
    return true;
}

static bool corrupt(struct world *w)
{
    uint32_t p = (uint32_t)weir__world_roll(w, 0, w->partitions - 1);

    if (w->corrupt_until_ms[p] > 0) return false;
    w->corrupt_until_ms[p] = w->now_ms + weir__world_roll(w, 1000, 15000);
    weir__simstore_corrupt(w->store, p, true);
    weir__world_trace(w, "record %u cannot be read", p);
    return true;
}

static void repair(struct world *w, bool all)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        if (w->corrupt_until_ms[p] == 0 || (w->corrupt_until_ms[p] > w->now_ms && !all)) continue;
        w->corrupt_until_ms[p] = 0;
        weir__simstore_corrupt(w->store, p, false);
    }
}

static bool rewind_by_hand(struct world *w)
{
    uint32_t p = (uint32_t)weir__world_roll(w, 0, w->partitions - 1);
    uint64_t next = (uint64_t)weir__world_roll(w, 0, (int64_t)w->truths[p].stored);
    struct weir_mark m = {.partition = p, .sequence = next - 1};
    struct weir_store *s = &w->store->base;

    if (w->corrupt_until_ms[p] > 0) return false;
    s->ops->set(s, &scope, p, next > 0 ? &m : NULL, NULL);
    weir__oracle_rewound(w, p, next);
    weir__world_trace(w, "checkpoint %u is set to %u", p, (unsigned)next);
    return true;
}

/* ---- all of them ---- */

static const struct row {
    const char *name;
    bool (*inject)(struct world *); /* NULL: comes with another */
    bool counted;                   /* when it is injected; else where it strikes */
} rows[FAULTS] = {
    [FAULT_CRASH] = {"crash", crash, true},
    [FAULT_RESTART_NAME] = {"restart, same name", restart_name, true},
    [FAULT_RESTART_NEW] = {"restart, new name", restart_new, true},
    [FAULT_JOIN] = {"join", join, true},
    [FAULT_LEAVE] = {"leave", leave, true},
    [FAULT_PAUSE_SHORT] = {"frozen, short", pause_short, true},
    [FAULT_PAUSE_LONG] = {"frozen past expiry", pause_long, true},
    [FAULT_SUSPEND] = {"suspended with its clock", suspend, true},
    [FAULT_TWIN] = {"frozen and replaced", twin, true},
    [FAULT_STORE_CUT] = {"cut from the store", cut_store, true},
    [FAULT_HUB_CUT] = {"cut from the hub", cut_hub, true},
    [FAULT_LOSSY] = {"lossy wire", make_lossy, true},
    [FAULT_LOST_REQUEST] = {"lost request", NULL, false},
    [FAULT_LOST_REPLY] = {"lost reply", NULL, false},
    [FAULT_LATE_EFFECT] = {"late effect", NULL, false},
    [FAULT_LAZY_HANDLER] = {"handler past deadline", make_lazy, false},
    [FAULT_RELEASE] = {"released", release, true},
    [FAULT_OUTAGE] = {"store away", put_out, true},
    [FAULT_SLOW_STORE] = {"store slow", slow_down, true},
    [FAULT_STORE_CLOCK] = {"store's clock set", set_clock, true},
    [FAULT_CORRUPT] = {"unreadable record", corrupt, true},
    [FAULT_REWIND] = {"rewound by hand", rewind_by_hand, true},
};

_Static_assert(FAULTS == WEIR__SIM_FAULTS, "sim.h counts them");

const char *weir__sim_fault_name(size_t fault)
{
    return fault < FAULTS ? rows[fault].name : "";
}

void weir__fault_inject(struct world *w)
{
    repair(w, false);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        uint32_t fault = (uint32_t)weir__world_roll(w, 0, FAULTS - 1);
        if (!rows[fault].inject || !rows[fault].inject(w)) continue;
        if (rows[fault].counted) weir__fault_hit(w, fault);
        return;
    }
}

/* Of two that have one name the later stays. */
static void part_twins(struct world *w)
{
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++)
        for (uint32_t k = 0; k < WEIR__SIM_HOSTS_MAX; k++) {
            const struct host *a = &w->hosts[i], *b = &w->hosts[k];
            if (a->up && b->up && a->instance < b->instance && strcmp(a->id, b->id) == 0)
                weir__host_crash(w, i);
        }
}

static void end_at(int64_t *until_ms, int64_t now_ms)
{
    if (*until_ms > now_ms) *until_ms = now_ms;
}

void weir__fault_heal(struct world *w)
{
    uint32_t host;

    weir__world_trace(w, "all is well");
    repair(w, true);
    end_at(&w->outage_until_ms, w->now_ms);
    end_at(&w->slow_until_ms, w->now_ms);
    part_twins(w);
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) {
        struct host *h = &w->hosts[i];
        if (!h->up) continue;
        end_at(&h->store_cut_until_ms, w->now_ms);
        end_at(&h->hub_cut_until_ms, w->now_ms);
        end_at(&h->lossy_until_ms, w->now_ms);
        end_at(&h->lazy_until_ms, w->now_ms);
        end_at(&h->pause_until_ms, w->now_ms);
        if (h->paused) weir__world_push(w, 0, EVENT_RESUME, i, 0);
        for (uint32_t p = 0; p < w->partitions; p++)
            if (h->pumps[p].started && h->pumps[p].draining && !h->pumps[p].finished)
                weir__world_push(w, weir__world_roll(w, 1, 150), EVENT_DRAINED, i, p);
    }
    while (count_up(w) < 2 && pick_down(w, false, &host)) start_new(w, host);
}

void weir__fault_single(struct world *w)
{
    bool (*const single[])(struct world *) = {crash, leave, join};
    const enum fault fault[] = {FAULT_CRASH, FAULT_LEAVE, FAULT_JOIN};

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        int64_t i = weir__world_roll(w, 0, 2);
        if (!single[i](w)) continue;
        weir__fault_hit(w, fault[i]);
        return;
    }
}
