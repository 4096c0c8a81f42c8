/* hurry.h - loops whose clock stands still behind weir__loop_now_ms and weir__loop_timer_start
 * (tests/CMakeLists.txt). Pauses of exactly the length that the test names are counted; they pass at
 * once and put the clock forward, if it wants that. Any other takes as long as it takes. */
#ifndef WEIR_TESTS_SERVER_HURRY_H
#define WEIR_TESTS_SERVER_HURRY_H

#include <poll.h>
#include <stdatomic.h>

#include "io/loop.h"

/* Far before the true time, whatever that is, so that every timer of the loop counts as later than what
 * a connection asks for. */
#define HURRY_BEGAN_MS (-INT64_C(1000000000000))
#define HURRY_PATIENCE_MS 20000

static struct {
    atomic_int_fast64_t pause_ms; /* that is counted; 0: none */
    atomic_bool passes;
    atomic_bool endless; /* no pause ends that begins now */
    atomic_int_fast64_t ahead_ms;
    atomic_uint count;
} hurry;

int64_t __real_weir__loop_now_ms(const struct weir__loop *);
int64_t __wrap_weir__loop_now_ms(const struct weir__loop *);
void __real_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t);
void __wrap_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t);

int64_t __wrap_weir__loop_now_ms(const struct weir__loop *l)
{
    (void)l;
    return HURRY_BEGAN_MS + atomic_load(&hurry.ahead_ms);
}

void __wrap_weir__loop_timer_start(struct weir__loop *l, struct weir__timer *t, int64_t at_ms)
{
    int64_t pause_ms;

    if (at_ms == INT64_MAX || atomic_load(&hurry.endless)) {
        __real_weir__loop_timer_start(l, t, INT64_MAX);
        return;
    }
    pause_ms = at_ms - __wrap_weir__loop_now_ms(l);
    if (pause_ms > 0 && pause_ms == atomic_load(&hurry.pause_ms)) {
        atomic_fetch_add(&hurry.count, 1);
        if (atomic_load(&hurry.passes)) {
            atomic_fetch_add(&hurry.ahead_ms, pause_ms);
            pause_ms = 0;
        }
    }
    __real_weir__loop_timer_start(l, t, __real_weir__loop_now_ms(l) + pause_ms);
}

/* Counts pauses from here on. */
static inline void hurry_watch(int64_t pause_ms)
{
    atomic_store(&hurry.passes, false);
    atomic_store(&hurry.count, 0);
    atomic_store(&hurry.pause_ms, pause_ms);
}

/* And they pass. */
static inline void hurry_through(int64_t pause_ms)
{
    hurry_watch(pause_ms);
    atomic_store(&hurry.passes, true);
}

/* Waits until there were so many. */
static inline void hurry_wait(unsigned count)
{
    for (int waited = 0; atomic_load(&hurry.count) < count; waited++) {
        if (waited > HURRY_PATIENCE_MS) fail_msg("%u of %u", atomic_load(&hurry.count), count);
        poll(NULL, 0, 1);
    }
}

#endif
