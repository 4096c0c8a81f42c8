/* foreign.h - how the Azure SDKs' processors share partitions, for the simulator to mix with ours.
 *
 * Written from a description of what they do, not from their code: a round looks at all records,
 * drops those that are older than the dialect's expiry, counts what the others have and names the
 * partitions to be claimed. Pure, but for chance. Where the description says less than is needed
 * the comments in foreign.c say what was assumed. */
#ifndef WEIR_SIM_FOREIGN_H
#define WEIR_SIM_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "weir/store.h"

#define WEIR__FOREIGN_PARTITIONS_MAX 64
#define WEIR__FOREIGN_DIALECTS 11

struct weir__foreign_round {
    const struct weir_record *records; /* of each partition; one without a version is absent */
    uint32_t partitions;
    int64_t now_ms; /* of the clock by which it judges their age */
    const char *self;
    uint64_t *chance;

    /* out */
    uint32_t claims[WEIR__FOREIGN_PARTITIONS_MAX]; /* first what it renews */
    uint32_t claim_count, renewals;
    bool died; /* of a record that it cannot bear; there are no claims then */
};

struct weir__foreign_heads; /* foreign.c */

struct weir__foreign_dialect {
    const char *name;
    void (*choose)(struct weir__foreign_round *, const struct weir__foreign_heads *, bool greedy);
    bool greedy;
    bool blind;    /* claims what has no record without a condition */
    bool releases; /* what it has, when it leaves */
    bool fragile;  /* a record that was released ends it */
    bool timid;    /* below the smaller share it does not steal from who has the larger */
    bool content;  /* with the smaller share it takes only what is free */
    int64_t interval_ms, expire_ms;
    int64_t
        repeat_ms; /* the pause before the next round when this one wanted more; 0: the interval */
    int64_t first_ms;                     /* at most, before the first round */
    uint32_t least_percent, most_percent; /* of the interval, by chance in each round */
};

extern const struct weir__foreign_dialect weir__foreign_dialects[WEIR__FOREIGN_DIALECTS];

void weir__foreign_plan(const struct weir__foreign_dialect *, struct weir__foreign_round *);

/* Until the next round, if nothing is to be repeated. */
int64_t weir__foreign_pause(const struct weir__foreign_dialect *, uint64_t *chance);

#endif
