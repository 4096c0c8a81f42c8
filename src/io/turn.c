/* turn.c - how long the turns of a loop take.
 *
 * A turn begins with the first call that the wait for sockets, mail or timers leads to, so that the
 * wait is not counted, and ends when everything was done. It costs two looks at the clock. */
#include "base/clock.h"
#include "io/state.h"

static const uint32_t bounds_us[WEIR__LOOP_TURN_BUCKETS - 1] = {50,    100,   250,    500,
                                                                1000,  2500,  5000,   10000,
                                                                25000, 50000, 100000, 1000000};

uint32_t weir__loop_turn_bound_us(unsigned bucket)
{
    return bucket < WEIR__LOOP_TURN_BUCKETS - 1 ? bounds_us[bucket] : 0;
}

void weir__loop_begin_turn(struct weir__loop *l)
{
    if (!l->began_ns) l->began_ns = weir__mono_ns();
}

/* Nobody else writes, so nothing has to be locked. */
static void add(atomic_ullong *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void weir__loop_end_turn(struct weir__loop *l)
{
    int64_t ns = weir__mono_ns() - l->began_ns;
    unsigned b = 0;

    while (b < WEIR__LOOP_TURN_BUCKETS - 1 && ns > (int64_t)bounds_us[b] * 1000) b++;
    add(&l->turn_buckets[b], 1);
    add(&l->turn_ns, (uint64_t)ns);
    l->began_ns = 0;
}

bool weir__loop_turn_over(const struct weir__loop *l)
{
    return weir__mono_ns() - l->began_ns >= WEIR__LOOP_TURN_NS;
}

void weir__loops_turns(struct weir__loops *all, struct weir__loop_turns *out)
{
    for (unsigned i = 0; i < weir__loops_count(all); i++) {
        const struct weir__loop *l = weir__loops_at(all, i);
        for (unsigned b = 0; b < WEIR__LOOP_TURN_BUCKETS; b++)
            out->buckets[b] += atomic_load_explicit(&l->turn_buckets[b], memory_order_relaxed);
        out->ns += atomic_load_explicit(&l->turn_ns, memory_order_relaxed);
    }
}
