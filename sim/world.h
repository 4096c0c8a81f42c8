/* world.h - everything that exists in one run. */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

#include "processor/checkpoint.h"
#include "processor/control.h"
#include "sim/chance.h"
#include "sim/fault.h"
#include "sim/sim.h"
#include "sim/simstore.h"

#define BEAT_MS 1000
#define EXPIRE_MS 3000
#define HANDOVER_MS 10000
#define CALL_MS 1000 /* a store's handle gives up; more than a beat, and one lost call is a death */
#define LATE_MS 4000 /* what comes late is under way for at most so long */
#define LATE_MAX 64  /* calls on their way to the store whose caller does not wait any more */

enum event_kind {
    EVENT_EFFECT, /* a call reaches the store */
    EVENT_ANSWER, /* its answer the host */
    EVENT_LATE,   /* a call reaches the store after its caller gave up; `partition` is its number */
    EVENT_WAKE,   /* a control wanted to be asked again */
    EVENT_WORK,   /* handlers get events */
    EVENT_DRAINED,
    EVENT_ATTACH, /* a receiver reaches the hub */
    EVENT_STOLEN, /* a host hears that its receiver was pushed aside */
    EVENT_RESUME,
    EVENT_KINDS
};

/* `life` says for which run of a host, `open` for which opening of a partition it is meant. */
struct event {
    int64_t at_ms;
    uint64_t order;
    enum event_kind kind;
    uint32_t host, partition, life, open;
};

struct call {
    enum weir__control_do what; /* WAIT: marks */
    struct weir_member member;  /* who calls */
    struct weir_record record;  /* expected, then given */
    char owner[WEIR_OWNER_BYTES];
    uint64_t instance;
    struct weir_view *view;
    struct weir_mark marks[WEIR__SIM_PARTITIONS_MAX];
    uint32_t opens[WEIR__SIM_PARTITIONS_MAX]; /* whose marks */
    size_t mark_count;
    int rc;
};

/* One opening of a partition, from START to STOP. */
struct pump {
    bool started, draining;
    bool finished;   /* the handler is idle for good */
    bool drained;    /* and control knows */
    int64_t rest_ms; /* the program released it and does not want it back for so long */
    bool linked;     /* its receiver is attached */
    bool stolen;     /* heard while the host was frozen */
    uint32_t open;
    int64_t epoch;
    int64_t drain_ms;  /* since when */
    uint64_t position; /* the next event */
    struct weir__checkpoint checkpoint;
};

struct host {
    bool up, paused, leaving;
    uint32_t life;
    char id[16];
    uint64_t instance;
    struct weir__control *control;
    int64_t skew_ms; /* of its clock against the world's */

    /* Faults last until then. */
    int64_t pause_until_ms, store_cut_until_ms, hub_cut_until_ms, lossy_until_ms, lazy_until_ms;
    bool suspended;   /* its clock stands still while it is paused */
    bool refused;     /* its store says no at once instead of nothing */
    int64_t pause_ms; /* since when */
    int64_t able_ms;  /* since when nothing kept it from being heard but the store itself */
    int64_t leave_by_ms;

    struct call call;
    bool busy;      /* with the call */
    bool answered;  /* its answer is here */
    bool to_mark;   /* there may be marks to be sent */
    uint64_t turns; /* marks that were ever sent */
    int64_t wake_ms;
    uint64_t control_calls;
    struct pump pumps[WEIR__SIM_PARTITIONS_MAX];
};

/* What is true of a partition, whatever the hosts believe. */
struct truth {
    uint64_t owner; /* instance; 0: nobody */
    int64_t epoch;
    uint64_t handled; /* all events before this one were, by somebody */
    uint64_t stored;  /* the checkpoint: all before it are done */
    uint64_t rewinds;
    uint64_t reader; /* instance whose receiver the hub serves; 0: nobody's */
    int64_t reader_epoch;
    uint32_t reader_host, reader_open;
};

struct world {
    struct weir__sim_options options;
    struct weir__sim_result *result;
    uint64_t chance;
    int64_t now_ms;
    uint64_t order;
    struct event *events; /* a heap */
    size_t event_count, event_cap;

    uint32_t partitions, hosts_wanted;
    struct weir__simstore *store;
    int64_t store_skew_ms;
    int64_t clock_ms, skew_ms; /* where clocks begin, and how far those of hosts are from it */
    int64_t outage_ms, outage_until_ms, slow_until_ms;
    bool outage_refused;
    int64_t slow_ms;
    struct call late[LATE_MAX];
    uint32_t late_next;

    struct host hosts[WEIR__SIM_HOSTS_MAX];
    uint64_t instances;
    struct truth truths[WEIR__SIM_PARTITIONS_MAX];
    uint64_t claims; /* that the store took, since the count was last set to 0 */
    uint32_t names;  /* given to hosts */
    int64_t corrupt_until_ms[WEIR__SIM_PARTITIONS_MAX];
};

/* world.c */
void weir__world_push(struct world *, int64_t in_ms, enum event_kind, uint32_t host,
                      uint32_t partition);
void weir__world_run(struct world *, int64_t until_ms);
__attribute__((format(printf, 2, 3))) void weir__world_violate(struct world *, const char *, ...);
__attribute__((format(printf, 2, 3))) void weir__world_trace(const struct world *, const char *,
                                                             ...);
bool weir__world_broken(const struct world *);
int64_t weir__world_roll(struct world *, int64_t least, int64_t most);
uint64_t weir__world_end(const struct world *); /* of each partition: the next event to come */

/* host.c */
void weir__host_start(struct world *, uint32_t host, const char *id);
void weir__host_crash(struct world *, uint32_t host);
void weir__host_leave(struct world *, uint32_t host);
void weir__host_pause(struct world *, uint32_t host, int64_t ms, bool suspended);
void weir__host_cut_hub(struct world *, uint32_t host, int64_t ms);
void weir__host_event(struct world *, const struct event *);
void weir__host_run(struct world *, uint32_t host);
int64_t weir__host_clock(const struct world *, const struct host *);

/* line.c: the wire between a host and the store */
void weir__line_send(struct world *, struct host *);
void weir__line_event(struct world *, const struct event *);

/* hub.c: the hub's receivers, and what they get */
void weir__hub_event(struct world *, const struct event *);
void weir__hub_work(struct world *, uint32_t host);

#endif
