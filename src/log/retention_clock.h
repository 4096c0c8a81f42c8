/* retention_clock.h - the clock by which events grow old.
 *
 * It counts two things. How long the machine was up goes on by itself: whatever is done to the wall
 * clock expires nothing early and keeps nothing for ever. From one process to the next of the same
 * boot the machine's own count goes on. How long the machine was off, between two boots, only the
 * wall clock can tell, and it may be wrong: that time is owed first. It is paid slowly, at most so
 * that what is old ages WEIR__RETENTION_RATE times as fast as time passes, and only while the wall
 * clock still says so: there is time to set it right.
 *
 * A stamp has both counts, with what was owed then: what is stamped after the machine came up does
 * not grow older by the time it was off.
 *
 * Pure: the caller reads the machine's clocks. */
#ifndef WEIR_LOG_RETENTION_CLOCK_H
#define WEIR_LOG_RETENTION_CLOCK_H

#include "log/control.h"

#define WEIR__RETENTION_RATE 60

struct weir__retention_clock {
    int64_t keep_ms; /* the first count, */
    int64_t off_ms;  /* and the second, as far as it is paid, */
    int64_t up_ms;   /* when the machine was up for so long */
    int64_t wall_ms; /* the wall clock then, less what was owed */
    int64_t owed_ms;
};

/* What the machine's clocks show. */
struct weir__machine_time {
    int64_t wall_ms, up_ms;
    uint64_t boot; /* 0: not known */
};

/* Goes on from what the control file remembers; zeros: from the wall clock. */
struct weir__retention_clock weir__retention_clock_start(const struct weir__keep_time *,
                                                         const struct weir__machine_time *);

/* Moves it on. Its counts never run backwards. */
void weir__retention_clock_move(struct weir__retention_clock *, const struct weir__machine_time *);

/* What is made at this moment gets this. */
struct weir__keep_stamp weir__retention_clock_stamp(const struct weir__retention_clock *);

int64_t weir__retention_clock_age(const struct weir__retention_clock *,
                                  const struct weir__keep_stamp *);

/* The least time that can pass until what has the stamp is so old; 0: it is. */
int64_t weir__retention_clock_until(const struct weir__retention_clock *,
                                    const struct weir__keep_stamp *, int64_t age_ms);

/* For the control file, as at the last move. */
struct weir__keep_time weir__retention_clock_save(const struct weir__retention_clock *,
                                                  const struct weir__machine_time *);

#endif
