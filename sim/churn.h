/* churn.h - very many hosts share very many partitions, and hosts come, go and die by the dozen.
 *
 * The real control of every host runs against one store; a call takes a millisecond, handlers finish
 * at once, nothing fails. What is looked at is how many rounds (beats) it takes until everything is
 * in balance again, how many partitions changed hands, and what one plan costs. */
#ifndef WEIR_SIM_CHURN_H
#define WEIR_SIM_CHURN_H

#include <stdint.h>

enum weir__churn_event {
    WEIR__CHURN_START, /* all hosts, within a quarter of a second */
    WEIR__CHURN_JOIN,  /* a tenth more */
    WEIR__CHURN_LEAVE, /* a tenth leaves */
    WEIR__CHURN_CRASH, /* a tenth dies; its death is seen after three rounds */
    WEIR__CHURN_HALF,  /* half of the hosts die */
    WEIR__CHURN_EVENTS
};

struct weir__churn_row {
    const char *name;
    int64_t ms;    /* until all was in balance */
    double rounds; /* the same in beats */
    uint64_t moves, needed;
};

struct weir__churn_result {
    struct weir__churn_row rows[WEIR__CHURN_EVENTS];
    double plan_ms_max, plan_ms_mean; /* CPU, of one view that brought something new */
    uint64_t plans, plans_slow;       /* slow: of more than 10 ms */
    const char *violation;            /* NULL: none */
};

/* hosts are to be 10 or more. */
void weir__churn_run(uint32_t hosts, uint32_t partitions, struct weir__churn_result *out);

#endif
