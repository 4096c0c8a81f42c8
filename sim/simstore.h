/* simstore.h - a store of one scope in memory whose clock is set from outside. It never fails by
 * itself: calls are lost and delayed on the way (host.c). */
#ifndef WEIR_SIM_SIMSTORE_H
#define WEIR_SIM_SIMSTORE_H

#include <stdbool.h>

#include "weir/store.h"

#define WEIR__SIMSTORE_LEFT 64

/* The last mark of a partition; when the record's epoch is another its owner has sent none yet. */
struct weir__simstore_turn {
    int64_t epoch;
    uint64_t turn;
};

struct weir__simstore {
    struct weir_store base;
    int64_t now_ms;
    uint64_t change;
    struct weir_member *members;
    size_t member_count, member_cap;
    uint64_t left[WEIR__SIMSTORE_LEFT]; /* the last instances that left: a beat may come late */
    size_t left_count;
    struct weir_record
        *records; /* by partition; one without a version and a checkpoint is absent */
    struct weir__simstore_turn *turns; /* by partition */
    uint32_t partitions;
    bool fence_off; /* sabotage: marks are taken from anybody */
    bool turns_off; /* likewise: from their owner in any order */
};

struct weir__simstore *weir__simstore_new(uint32_t partitions);

/* Makes a record unreadable, or readable again. */
void weir__simstore_corrupt(struct weir__simstore *, uint32_t partition, bool corrupt);

#endif
