/* mixed.h - copies of ours and hosts of the Azure SDKs' dialects (foreign.h) share one store.
 *
 * The copies run the real control. Hosts of both kinds come, leave, crash and freeze, and calls of
 * the copies are lost; then all are left alone. A run is a function of its options. Seen as wrong
 * is
 *   - a copy that takes from a foreign owner that was heard of in the last 120 s, unless that has
 *     more than the larger share or the copy less than the smaller, and not more than it lacks;
 *   - a copy that claims a free partition beyond the larger share, unless it has lain there for a
 *     minute, or that claims anything in a foreign owner's name;
 *   - shares that differ by more than one, or a partition that nobody has, when the dead could have
 *     been given up and after that as many rounds of the slowest have passed as the largest share
 *     has partitions, and three. What a dialect's own rules lead to without us is excused, by name:
 *     C++ may stay below its share, and an owner above it beside a Python that has the smaller one;
 *   - one record that changes its owner in the hour that follows, or a copy that calls the store
 *     more than twice in a beat and 3.1 times in a minute for each partition that it has. */
#ifndef WEIR_SIM_MIXED_H
#define WEIR_SIM_MIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/foreign.h"

#define WEIR__MIXED_FAULTS 13

enum weir__mixed_sabotage {
    WEIR__MIXED_HONEST,
    WEIR__MIXED_NO_RENEWALS, /* copies do not renew their records */
    WEIR__MIXED_HASTY,       /* they give a foreign owner up after 10 s */
    WEIR__MIXED_SABOTAGES
};

struct weir__mixed_options {
    uint64_t seed;
    uint32_t copies;     /* 0: 1 to 4, by the seed */
    uint32_t foreigns;   /* likewise */
    uint32_t partitions; /* 0: 4 to 40, by the seed */
    bool foreign_only;   /* no copies: what the dialects do among themselves */
    enum weir__mixed_sabotage sabotage;
    bool trace;
};

struct weir__mixed_result {
    char violation[256]; /* "": none */
    int64_t violation_ms;
    uint64_t runs, violations; /* summed by weir__mixed_add, like all that follows */
    int64_t simulated_ms;
    uint64_t faults[WEIR__MIXED_FAULTS];
    uint64_t dialects[WEIR__FOREIGN_DIALECTS]; /* hosts that were started */
    uint64_t moves;                            /* records that changed their owner */
    uint64_t stolen, lost;                     /* taken from living foreign owners; by them */
    uint64_t calls_ours, minutes_ours;         /* in the quiet hour, without beats: per partition */
    int64_t settle_worst_ms;                   /* from the last change to the last move */
    double rounds_worst; /* of the slowest, from when the dead were given up to the last move */
    double rounds_spare; /* the fewest that were left then */
    uint64_t uneven;     /* foreign hosts out of balance by their own rules */
};

void weir__mixed_run(const struct weir__mixed_options *, struct weir__mixed_result *out);
void weir__mixed_add(struct weir__mixed_result *sum, const struct weir__mixed_result *);
const char *weir__mixed_fault_name(size_t fault);

#endif
