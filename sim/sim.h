/* sim.h - copies of a program share partitions in a world that can be run again.
 *
 * The hosts run the real balance, control and checkpoint code. Time, chance, the store, the hub and
 * the wires between them are simulated, and fail in every way that fault.h lists. A run is a
 * function of its options alone: the same seed gives the same run, event by event.
 *
 * After every step it is checked (oracle.h) that
 *   - only the owner of a partition moves its checkpoint, never back, never beyond what was handled;
 *   - no event is left out by everybody;
 *   - nobody loses a partition who could be heard, whatever the store and the clocks do;
 *   - starts, drains and stops follow each other as control.h promises;
 * and whenever the faults pause
 *   - that everything is owned, running and in balance again within SETTLE_MS_MAX;
 *   - that nothing moves from then on, with two calls of the store for each host and beat;
 *   - that one host that comes, goes or dies then costs exactly the moves it must. */
#ifndef WEIR_SIM_SIM_H
#define WEIR_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR__SIM_HOSTS_MAX 12
#define WEIR__SIM_PARTITIONS_MAX 64
#define WEIR__SIM_FAULTS 22 /* kinds: fault.h */

enum weir__sim_sabotage {
    WEIR__SIM_HONEST,
    WEIR__SIM_FENCE_OFF,    /* the store takes marks from anybody */
    WEIR__SIM_LOCAL_CLOCK,  /* a member's death is judged by the host's clock */
    WEIR__SIM_STEAL_UNSEEN, /* the store's outage counts as everybody's death */
    WEIR__SIM_TURNS_OFF,    /* the store takes an owner's marks in any order */
    WEIR__SIM_SABOTAGES
};

struct weir__sim_options {
    uint64_t seed;
    uint32_t hosts;      /* 0: 3 to 6, by the seed */
    uint32_t partitions; /* 0: 5 to 24, by the seed */
    uint32_t minutes;    /* 0: 10 */
    enum weir__sim_sabotage sabotage;
    bool trace; /* every happening to standard output */
};

struct weir__sim_result {
    char violation[256];  /* "": none */
    int64_t violation_ms; /* in the run's time */
    int64_t simulated_ms; /* summed by weir__sim_add, like all that follows */
    uint64_t runs, violations;
    uint64_t faults[WEIR__SIM_FAULTS];
    uint64_t steps; /* of the world */
    uint64_t claims, fenced, starts, handovers, takeovers, steals, lost;
    uint64_t marks, marks_fenced;
    int64_t settle_worst_ms; /* from the end of the faults until all is in balance */
};

void weir__sim_run(const struct weir__sim_options *, struct weir__sim_result *out);

/* Adds one run to a sum; the first violation of all stays. */
void weir__sim_add(struct weir__sim_result *sum, const struct weir__sim_result *);

const char *weir__sim_fault_name(size_t fault);

#endif
