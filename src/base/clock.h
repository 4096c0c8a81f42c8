/* clock.h - time as an argument. Rooms that need time are handed one of these; a test hands them
 * another. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>

struct weir__clock {
    int64_t (*wall_ms)(void *self); /* Unix time; may jump either way */
    int64_t (*mono_ms)(void *self); /* never runs backwards; its zero means nothing */
    void *self;

    /* How long the machine is up, its sleep included; NULL: mono_ms will do. boot names this run of
     * the machine: two readings with the same boot, unless it is 0, are of one time line, also when
     * two processes took them. NULL: 0. */
    int64_t (*up_ms)(void *self);
    uint64_t (*boot)(void *self);
};

/* The machine's own clocks. */
struct weir__clock weir__clock_system(void);

#endif
