/* turn.c - how long the turns of a loop take.
 *
 * A turn begins with the first call that the wait for sockets, mail or timers leads to, so that the
 * wait is not counted, and ends when everything was done. It costs two looks at the clock.
 *
 * A turn is long by that clock also when the processor was given to others. So turns in which the loop
 * itself worked for long are counted separately, by the thread's own clock. Reading that one takes two
 * microseconds, so a reading up to a millisecond old is used for the start of a turn, and a turn may
 * be counted as that much longer than it was. */
#include <time.h>

#include "base/clock.h"
#include "io/state.h"

#define LONG_NS (WEIR__LOOP_LONG_US * INT64_C(1000))
#define FRESH_NS INT64_C(1000000)

static const uint32_t bounds_us[WEIR__LOOP_TURN_BUCKETS - 1] = {50,    100,   250,    500,
                                                                1000,  2500,  5000,   10000,
                                                                25000, 50000, 100000, 1000000};

uint32_t weir__loop_turn_bound_us(unsigned bucket)
{
    return bucket < WEIR__LOOP_TURN_BUCKETS - 1 ? bounds_us[bucket] : 0;
}

static int64_t worked_ns(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
               ? t.tv_sec * INT64_C(1000000000) + t.tv_nsec
               : 0;
}

void weir__loop_begin_turn(struct weir__loop *l)
{
    if (l->began_ns) return;
    l->began_ns = weir__mono_ns();
    if (l->began_ns - l->worked_at_ns < FRESH_NS) return;
    l->worked_at_ns = l->began_ns;
    l->worked_ns = worked_ns();
}

/* Nobody else writes, so nothing has to be locked. */
static void add(atomic_ullong *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* The time from the end of the last turn in which something happened to this one. */
static void note_idle(struct weir__loop *l, int64_t now_ns)
{
    if (!l->active) return;
    l->active = false;
    l->soon = l->began_ns - l->idle_ns < WEIR__LOOP_AWAKE_NS;
    l->idle_ns = now_ns;
}

void weir__loop_end_turn(struct weir__loop *l)
{
    int64_t now_ns = weir__mono_ns(), ns = now_ns - l->began_ns;
    unsigned b = 0;

    note_idle(l, now_ns);
    while (b < WEIR__LOOP_TURN_BUCKETS - 1 && ns > (int64_t)bounds_us[b] * 1000) b++;
    add(&l->turn_buckets[b], 1);
    add(&l->turn_ns, (uint64_t)ns);
    if (ns > LONG_NS && worked_ns() - l->worked_ns > LONG_NS) add(&l->long_turns, 1);
    l->began_ns = 0;
}

uint64_t weir__loop_turn(const struct weir__loop *l)
{
    return l->turn;
}

int64_t weir__loop_turn_ns(const struct weir__loop *l)
{
    return weir__mono_ns() - l->began_ns;
}

bool weir__loop_turn_over(const struct weir__loop *l)
{
    return weir__loop_turn_ns(l) >= WEIR__LOOP_TURN_NS;
}

void weir__loops_turns(struct weir__loops *all, struct weir__loop_turns *out)
{
    for (unsigned i = 0; i < weir__loops_count(all); i++) {
        const struct weir__loop *l = weir__loops_at(all, i);
        for (unsigned b = 0; b < WEIR__LOOP_TURN_BUCKETS; b++)
            out->buckets[b] += atomic_load_explicit(&l->turn_buckets[b], memory_order_relaxed);
        out->ns += atomic_load_explicit(&l->turn_ns, memory_order_relaxed);
        out->worked_long += atomic_load_explicit(&l->long_turns, memory_order_relaxed);
    }
}
