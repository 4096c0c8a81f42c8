/* report.h - lines of a bench for people, or as JSON, one object per line, for programs. */
#ifndef WEIR_BENCH_REPORT_H
#define WEIR_BENCH_REPORT_H

#include <stdio.h>

#include "bench/measure.h"

struct weir__report {
    FILE *out;
    bool json;
    bool rows; /* also each single run, as comma-separated values */
    uint32_t met, missed;
};

enum weir__goal_kind {
    WEIR__GOAL_NONE,
    WEIR__GOAL_AT_LEAST, /* what we reach ourselves */
    WEIR__GOAL_AT_MOST,
    WEIR__GOAL_RATIO_AT_LEAST, /* ours to the reference */
    WEIR__GOAL_RATIO_AT_MOST
};

struct weir__goal {
    enum weir__bench_metric metric;
    enum weir__goal_kind kind;
    double value;
};

/* What was measured and against what; texts are borrowed. */
struct weir__report_case {
    const char *name;
    const char *text;
    const char *reference; /* NULL: nothing stands beside it */
    const struct weir__bench_pairs *pairs;
};

/* The machine, the disk (kind of file system) and the date; how the lines are to be read. */
void weir__report_machine(struct weir__report *, const char *disk);
void weir__report_head(struct weir__report *, uint32_t rounds);

/* One line: ours, what stood beside it, their ratio, the goal, and whether it is met. */
void weir__report_line(struct weir__report *, const struct weir__report_case *,
                       const struct weir__goal *);

/* After the lines of a case: what must be known about it, and its single runs as
 * ROW,who,case,events,seconds,events/s,MB/s,user ns,system ns of CPU per event,p50 us,p99 us */
void weir__report_case_end(struct weir__report *, const struct weir__report_case *);

/* A single number that must not be above a limit. */
void weir__report_limit(struct weir__report *, const char *name, const char *text, double value,
                        double limit, const char *unit);

void weir__report_foot(struct weir__report *);

#endif
