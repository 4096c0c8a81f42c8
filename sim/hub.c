/* hub.c - the hub: for each partition the receiver with the highest epoch is served, and who is
 * pushed aside hears of it. */
#include "sim/oracle.h"
#include "sim/world.h"

#define REATTACH_MS 500

/* A receiver that was refused, or cannot get there, tries again as long as it is wanted. */
static void attach(struct world *w, uint32_t host, uint32_t p)
{
    struct host *h = &w->hosts[host];
    struct pump *pump = &h->pumps[p];
    struct truth *t = &w->truths[p];

    if (w->now_ms < h->hub_cut_until_ms || pump->epoch < t->reader_epoch) {
        if (w->now_ms >= h->hub_cut_until_ms)
            weir__control_doubt(h->control, weir__host_clock(w, h), p);
        weir__world_push(w, REATTACH_MS, EVENT_ATTACH, host, p);
        weir__host_run(w, host);
        return;
    }
    if (t->reader != 0 && t->reader != h->instance && w->hosts[t->reader_host].up &&
        w->hosts[t->reader_host].instance == t->reader &&
        w->hosts[t->reader_host].pumps[p].open == t->reader_open)
        weir__world_push(w, weir__world_roll(w, 1, 20), EVENT_STOLEN, t->reader_host, p);
    t->reader = h->instance;
    t->reader_epoch = pump->epoch;
    t->reader_host = host;
    t->reader_open = pump->open;
    pump->linked = true;
}

/* A frozen host hears it when it thaws, one that is cut off when it attaches again. */
static void hear_stolen(struct world *w, uint32_t host, uint32_t p)
{
    struct host *h = &w->hosts[host];
    struct pump *pump = &h->pumps[p];

    if (h->paused) {
        pump->stolen = true;
        return;
    }
    if (!pump->linked) return;
    pump->linked = false;
    weir__control_doubt(h->control, weir__host_clock(w, h), p);
    weir__host_run(w, host);
}

void weir__hub_event(struct world *w, const struct event *e)
{
    struct host *h = &w->hosts[e->host];
    struct pump *pump = &h->pumps[e->partition];

    if (!h->up || !pump->started || pump->open != e->open) return;
    if (e->kind == EVENT_STOLEN)
        hear_stolen(w, e->host, e->partition);
    else if (!h->paused && !pump->linked)
        attach(w, e->host, e->partition);
}

/* Every handler of a host that has a receiver is given what there is. One that was pushed aside and
 * has not heard of it may still have events in hand. */
void weir__hub_work(struct world *w, uint32_t host)
{
    struct host *h = &w->hosts[host];
    uint64_t end = weir__world_end(w);

    for (uint32_t p = 0; p < w->partitions; p++) {
        struct pump *pump = &h->pumps[p];
        if (!pump->started || pump->draining || !pump->linked || pump->position >= end) continue;
        weir__oracle_handled(w, p, pump->position, end);
        pump->position = end;
        weir__checkpoint_give(&pump->checkpoint, end - 1, NULL);
        if (!weir__chance_one_in(&w->chance, 8))
            weir__checkpoint_mark_given(&pump->checkpoint, NULL);
    }
}
