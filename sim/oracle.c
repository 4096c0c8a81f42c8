/* oracle.c - see oracle.h. */
#include "sim/oracle.h"

#include <inttypes.h>
#include <string.h>

/* Who could be heard for so long has been: a call gives up after CALL_MS, the next one comes at once
 * and is read within a beat; a claim may be that much older than its effect, and one that comes late
 * is under way for 5 s. */
#define ABLE_MS 12000

static const struct host *find_host(const struct world *w, uint64_t instance)
{
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++)
        if (w->hosts[i].up && w->hosts[i].instance == instance) return &w->hosts[i];
    return NULL;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Two that live under one name, because one was frozen when the other was started, take turns. */
static bool has_twin(const struct world *w, const struct host *h)
{
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++)
        if (&w->hosts[i] != h && w->hosts[i].up && strcmp(w->hosts[i].id, h->id) == 0) return true;
    return false;
}

/* Whether a host has had every chance to be heard: an outage of the store or a change of its clock
 * is no excuse for taking what it has. Only one that others may not have met, as short as it was, is:
 * with the call that it cost a host may have been silent for too long. */
static bool is_able(const struct world *w, const struct host *h)
{
    int64_t since =
        later(later(h->able_ms, w->slow_until_ms), later(h->store_cut_until_ms, h->lossy_until_ms));

    if (w->outage_until_ms - w->outage_ms < EXPIRE_MS) since = later(since, w->outage_until_ms);
    return !h->paused && w->now_ms - since >= ABLE_MS && !has_twin(w, h);
}

/* A host that was suspended does not know that its view is old: its clock stood still. */
static bool just_woke(const struct world *w, uint64_t instance)
{
    const struct host *h = find_host(w, instance);

    return h && h->suspended && w->now_ms - h->able_ms < ABLE_MS;
}

void weir__oracle_claimed(struct world *w, const struct call *call)
{
    const struct weir_record *r = &call->record;
    struct truth *t = &w->truths[r->partition];
    const struct host *had = find_host(w, t->owner);
    const struct pump *pump = had ? &had->pumps[r->partition] : NULL;
    bool overdue = pump && pump->started && pump->draining &&
                   w->now_ms - pump->drain_ms >= HANDOVER_MS - BEAT_MS;

    weir__world_trace(w,
                      "store: %u was %" PRIu64 "'s, %" PRIu64 " gives it to %" PRIu64
                      ", epoch %" PRId64,
                      r->partition, t->owner, call->member.instance, r->instance, r->epoch);
    w->claims++;
    if (r->epoch != t->epoch + (r->owner[0] != '\0' && r->instance != t->owner))
        weir__world_violate(w, "epoch of %u is %" PRId64 " behind %" PRId64, r->partition, r->epoch,
                            t->epoch);
    if (had && call->member.instance != t->owner && is_able(w, had) && !overdue &&
        !just_woke(w, call->member.instance))
        weir__world_violate(w, "%s takes %u from %s, who could be heard", call->member.id,
                            r->partition, had->id);
    t->owner = r->instance;
    t->epoch = r->epoch;
}

void weir__oracle_marked(struct world *w, const struct call *call, const struct weir_mark *m)
{
    struct truth *t = &w->truths[m->partition];
    uint64_t next = m->sequence + 1;

    w->result->marks++;
    if (t->owner != call->member.instance || t->epoch != m->epoch)
        weir__world_violate(w, "%s marks %u with epoch %" PRId64 ", but it is another's",
                            call->member.id, m->partition, m->epoch);
    if (next < t->stored && m->rewinds == t->rewinds)
        weir__world_violate(w, "%s sets %u back from %" PRIu64 " to %" PRIu64, call->member.id,
                            m->partition, t->stored, next);
    if (next > t->handled)
        weir__world_violate(w, "%s marks %u up to %" PRIu64 ", handled were %" PRIu64,
                            call->member.id, m->partition, next, t->handled);
    t->stored = next;
}

void weir__oracle_handled(struct world *w, uint32_t p, uint64_t from, uint64_t to)
{
    struct truth *t = &w->truths[p];

    if (from > t->handled)
        weir__world_violate(w, "events %" PRIu64 " to %" PRIu64 " of %u are left out", t->handled,
                            from - 1, p);
    if (to > t->handled) t->handled = to;
}

void weir__oracle_started(struct world *w, const struct host *h, const struct weir_record *r)
{
    const struct truth *t = &w->truths[r->partition];
    uint64_t next = r->marked ? r->sequence + 1 : 0;

    if (t->owner == h->instance && t->epoch == r->epoch && t->rewinds == r->rewinds &&
        next != t->stored)
        weir__world_violate(w, "%s starts %u at %" PRIu64 ", stored is %" PRIu64, h->id,
                            r->partition, next, t->stored);
}

void weir__oracle_rewound(struct world *w, uint32_t p, uint64_t next)
{
    struct truth *t = &w->truths[p];

    t->rewinds++;
    t->stored = next;
    if (next > t->handled) t->handled = next;
}

/* How many partitions each host owns, as the store has it. Returns how many hosts there are. */
static uint32_t count_owned(const struct world *w, uint32_t owned[WEIR__SIM_HOSTS_MAX])
{
    uint32_t hosts = 0;

    memset(owned, 0, WEIR__SIM_HOSTS_MAX * sizeof *owned);
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct host *h = find_host(w, w->truths[p].owner);
        if (h) owned[h - w->hosts]++;
    }
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++)
        hosts += w->hosts[i].up && !w->hosts[i].leaving;
    return hosts;
}

/* Whether the store counts a host among the living. */
static bool is_member(const struct world *w, const struct host *h)
{
    for (size_t i = 0; i < w->store->member_count; i++) {
        const struct weir_member *m = &w->store->members[i];
        int64_t silent = w->now_ms + w->store_skew_ms - m->beat_ms;
        if (m->instance == h->instance && silent >= 0 && silent <= EXPIRE_MS) return true;
    }
    return false;
}

bool weir__oracle_settled(const struct world *w)
{
    uint32_t owned[WEIR__SIM_HOSTS_MAX], hosts = count_owned(w, owned);

    if (hosts == 0) return false;
    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) {
        const struct host *h = &w->hosts[i];
        uint32_t least = w->partitions / hosts, most = (w->partitions + hosts - 1) / hosts;
        if (!h->up) continue;
        if (h->leaving || !is_member(w, h) || owned[i] < least || owned[i] > most) return false;
    }
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct truth *t = &w->truths[p];
        const struct host *h = find_host(w, t->owner);
        const struct pump *pump = h ? &h->pumps[p] : NULL;
        if (!pump || !pump->started || pump->draining || !pump->linked || pump->epoch != t->epoch)
            return false;
    }
    return true;
}

uint32_t weir__oracle_moves(const struct world *w)
{
    uint32_t owned[WEIR__SIM_HOSTS_MAX], hosts = count_owned(w, owned);
    uint32_t least = w->partitions / hosts, more = w->partitions % hosts, kept = 0;

    for (uint32_t i = 0; i < WEIR__SIM_HOSTS_MAX; i++) {
        if (!w->hosts[i].up || w->hosts[i].leaving) continue;
        kept += owned[i] < least ? owned[i] : least;
        if (owned[i] > least && more > 0) {
            kept++;
            more--;
        }
    }
    return w->partitions - kept;
}
