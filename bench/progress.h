/* progress.h - a line on a terminal that says how far a run has come. */
#ifndef WEIR_BENCH_PROGRESS_H
#define WEIR_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct weir__progress {
    FILE *to; /* NULL: nobody looks */
    const char *what;
    uint64_t events_goal; /* whichever is reached first; 0: not one of them */
    int64_t time_goal_ns;
    int64_t began_ns, next_ns;
};

/* to is a terminal, or NULL. */
void weir__progress_begin(struct weir__progress *, FILE *to, const char *what, uint64_t events_goal,
                          int64_t time_goal_ns);

/* Draws it, but not more often than a few times a second. */
void weir__progress_show(struct weir__progress *, uint64_t events);

/* Leaves the line as it was before. */
void weir__progress_end(struct weir__progress *);

#endif
