#include "base/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t system_wall_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_REALTIME);
}

static int64_t system_mono_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_MONOTONIC);
}

struct weir__clock weir__clock_system(void)
{
    return (struct weir__clock){system_wall_ms, system_mono_ms, NULL};
}
