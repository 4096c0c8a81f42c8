/* retention_clock.c - see retention_clock.h. */
#include "log/retention_clock.h"

/* All clocks show less than this, so that adding cannot overflow. */
#define TIME_MS_MAX (INT64_C(1) << 53)

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

struct weir__retention_clock weir__retention_clock_start(const struct weir__keep_time *saved,
                                                         const struct weir__machine_time *now)
{
    struct weir__retention_clock c = {.keep_ms = saved->keep_ms,
                                      .off_ms = saved->off_ms,
                                      .up_ms = now->up_ms,
                                      .owed_ms = saved->owed_ms};
    int64_t wall_ms = clamp(now->wall_ms, 0, TIME_MS_MAX);
    int64_t then_ms = saved->keep_ms + saved->off_ms;

    /* A wall clock that showed less than this one had not been set yet. */
    if (saved->wall_ms > then_ms) then_ms = saved->wall_ms;
    if (c.keep_ms == 0) {
        c = (struct weir__retention_clock){.keep_ms = wall_ms, .up_ms = now->up_ms};
    } else if (saved->boot != 0 && saved->boot == now->boot && now->up_ms >= saved->up_ms) {
        c.keep_ms += now->up_ms - saved->up_ms;
    } else {
        c.owed_ms += clamp(wall_ms - then_ms, 0, TIME_MS_MAX);
        c.owed_ms = clamp(c.owed_ms, 0, TIME_MS_MAX);
    }
    c.wall_ms = wall_ms - c.owed_ms;
    return c;
}

/* What the wall clock says is owed, before anything is paid for the time that has passed. It may
 * have been set since: the least counts. */
static int64_t owed_by(const struct weir__retention_clock *c, int64_t wall_ms, int64_t passed_ms)
{
    return clamp(wall_ms - c->wall_ms - passed_ms, 0, c->owed_ms);
}

void weir__retention_clock_move(struct weir__retention_clock *c,
                                const struct weir__machine_time *now)
{
    int64_t wall_ms = clamp(now->wall_ms, -TIME_MS_MAX, TIME_MS_MAX);
    int64_t passed_ms = clamp(now->up_ms - c->up_ms, 0, TIME_MS_MAX / WEIR__RETENTION_RATE);
    int64_t owed_ms = owed_by(c, wall_ms, passed_ms);
    int64_t paid_ms = clamp(owed_ms, 0, passed_ms * (WEIR__RETENTION_RATE - 1));

    c->keep_ms += passed_ms;
    c->off_ms += paid_ms;
    c->up_ms += passed_ms;
    c->owed_ms = owed_ms - paid_ms;
    c->wall_ms = wall_ms - c->owed_ms;
}

struct weir__keep_stamp weir__retention_clock_stamp(const struct weir__retention_clock *c)
{
    return (struct weir__keep_stamp){c->keep_ms, c->off_ms + c->owed_ms};
}

int64_t weir__retention_clock_age(const struct weir__retention_clock *c,
                                  const struct weir__keep_stamp *s)
{
    return c->keep_ms - s->keep_ms + clamp(c->off_ms - s->off_ms, 0, TIME_MS_MAX);
}

int64_t weir__retention_clock_until(const struct weir__retention_clock *c,
                                    const struct weir__keep_stamp *s, int64_t age_ms)
{
    int64_t left_ms = age_ms - weir__retention_clock_age(c, s);
    int64_t from_ms = c->off_ms > s->off_ms ? c->off_ms : s->off_ms;
    int64_t owed_ms = clamp(c->off_ms + c->owed_ms - from_ms, 0, TIME_MS_MAX);

    if (left_ms <= 0) return 0;
    if (left_ms / WEIR__RETENTION_RATE * (WEIR__RETENTION_RATE - 1) >= owed_ms)
        return left_ms - owed_ms;
    return (left_ms + WEIR__RETENTION_RATE - 1) / WEIR__RETENTION_RATE;
}

struct weir__keep_time weir__retention_clock_save(const struct weir__retention_clock *c,
                                                  const struct weir__machine_time *now)
{
    return (struct weir__keep_time){.keep_ms = c->keep_ms,
                                    .off_ms = c->off_ms,
                                    .owed_ms = c->owed_ms,
                                    .wall_ms = now->wall_ms,
                                    .up_ms = c->up_ms,
                                    .boot = now->boot};
}
