/* cases.h - what `weir bench log` measures: a table of cases, each with its goals. */
#ifndef WEIR_BENCH_CASES_H
#define WEIR_BENCH_CASES_H

#include "bench/contestant.h"
#include "bench/report.h"

#define WEIR__CASE_GOALS_MAX 2

struct weir__case {
    const char *name, *text;
    const struct weir__contestant *ours, *beside; /* beside may be NULL */
    struct weir__task task;
    struct weir__goal goals[WEIR__CASE_GOALS_MAX]; /* the first is shown also without a value */
};

/* In the order they are run; ends with a name of NULL. */
extern const struct weir__case weir__cases[];

/* Lets the two take turns for so many rounds and reports. */
int weir__case_run(const struct weir__case *, struct weir__arena *, struct weir__report *,
                   uint32_t rounds, struct weir_error *);

#endif
