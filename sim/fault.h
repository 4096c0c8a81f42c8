/* fault.h - what goes wrong, by name. */
#ifndef WEIR_SIM_FAULT_H
#define WEIR_SIM_FAULT_H

#include <stdint.h>

struct world;

enum fault {
    FAULT_CRASH,        /* a host is gone */
    FAULT_RESTART_NAME, /* and comes back under its name */
    FAULT_RESTART_NEW,  /* or under another */
    FAULT_JOIN,         /* a host more */
    FAULT_LEAVE,        /* one leaves as it should */
    FAULT_PAUSE_SHORT,  /* a host is frozen, for less than its expiry */
    FAULT_PAUSE_LONG,   /* for more */
    FAULT_SUSPEND,      /* and its clock with it */
    FAULT_TWIN,         /* while one is frozen another is started under its name */
    FAULT_STORE_CUT,    /* a host cannot reach the store */
    FAULT_HUB_CUT,      /* or the hub */
    FAULT_LOSSY,        /* its calls get lost, see the next three */
    FAULT_LOST_REQUEST, /* a call never reached the store */
    FAULT_LOST_REPLY,   /* its answer never came */
    FAULT_LATE_EFFECT,  /* it reached the store after its caller had given up */
    FAULT_LAZY_HANDLER, /* takes longer to finish than a hand-over may */
    FAULT_RELEASE,      /* the program releases a partition */
    FAULT_OUTAGE,       /* nobody reaches the store */
    FAULT_SLOW_STORE,   /* calls take long */
    FAULT_STORE_CLOCK,  /* is set, by up to two hours */
    FAULT_CORRUPT,      /* a record cannot be read for a while */
    FAULT_REWIND,       /* a checkpoint is set by hand */
    FAULTS
};

void weir__fault_hit(struct world *, enum fault);

/* Lets one thing go wrong. */
void weir__fault_inject(struct world *);

/* Ends all that is wrong, and sees to it that at least two hosts run. */
void weir__fault_heal(struct world *);

/* One host comes, goes or dies, and nothing else. */
void weir__fault_single(struct world *);

#endif
