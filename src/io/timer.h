/* timer.h - timers in a heap, with no clock of their own.
 *
 * A timer is embedded in what it is about; starting and stopping never fail and never allocate.
 * The heap is a pairing heap: start is O(1), stop and expiry are O(log n) over time. */
#ifndef WEIR_IO_TIMER_H
#define WEIR_IO_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct weir__timer {
    void (*fn)(void *arg); /* may start, stop or free any timer, this one too */
    void *arg;
    int64_t at_ms;
    struct weir__timer *child, *next; /* first child; next sibling */
    struct weir__timer *prev;         /* previous sibling, or the parent of a first child */
    bool running;
};

struct weir__timers {
    struct weir__timer *top;
};

static inline void weir__timer_init(struct weir__timer *t, void (*fn)(void *arg), void *arg)
{
    *t = (struct weir__timer){.fn = fn, .arg = arg};
}

/* Started again, it moves. Stopping what does not run does nothing. */
void weir__timers_start(struct weir__timers *, struct weir__timer *, int64_t at_ms);
void weir__timers_stop(struct weir__timers *, struct weir__timer *);

/* When the next one is due, INT64_MAX: none runs. */
int64_t weir__timers_next(const struct weir__timers *);

/* Stops and returns the earliest that is due at now_ms, NULL: none is. */
struct weir__timer *weir__timers_due(struct weir__timers *, int64_t now_ms);

#endif
