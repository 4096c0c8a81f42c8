/* oracle.h - what must be true in a world, checked from outside. */
#ifndef WEIR_SIM_ORACLE_H
#define WEIR_SIM_ORACLE_H

#include "sim/world.h"

/* The store has taken a claim; its record is as it is now. The caller may have died since. */
void weir__oracle_claimed(struct world *, const struct call *);

/* The store has taken a mark. */
void weir__oracle_marked(struct world *, const struct call *, const struct weir_mark *);

/* A handler was given the events from `from` up to but not including `to`. */
void weir__oracle_handled(struct world *, uint32_t partition, uint64_t from, uint64_t to);

/* A partition is started, at its record's checkpoint. */
void weir__oracle_started(struct world *, const struct host *, const struct weir_record *);

/* Somebody set a checkpoint by hand: the next event is this one. */
void weir__oracle_rewound(struct world *, uint32_t partition, uint64_t next);

/* Whether everything is owned, running where it is owned, and in balance. */
bool weir__oracle_settled(const struct world *);

/* How many partitions must move for the hosts that run now, from who owns what now. */
uint32_t weir__oracle_moves(const struct world *);

#endif
