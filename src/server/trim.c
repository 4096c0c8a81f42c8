/* trim.c - gives memory back to the system.
 *
 * What was freed stays with the allocator, which cannot know that the crowd is gone. When the budget
 * is TRIM_BYTES below what it was, the worker asks it to let go, after TRIM_MS: a crowd that comes
 * back at once finds everything in place. The loops are not held up by more than a lock. */
#include <malloc.h>

#include "server/state.h"

#define TRIM_BYTES ((size_t)4 << 20)
#define TRIM_MS 2000

static bool is_worth_it(struct weir__budget *b)
{
    size_t peak = atomic_load(&b->peak), used = atomic_load(&b->used);

    return peak > used && peak - used >= TRIM_BYTES;
}

/* On the worker. */
static void do_trim(void *arg)
{
    struct weir__server *s = arg;

    atomic_store(&s->budget.peak, atomic_load(&s->budget.used));
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    atomic_store(&s->trim_asked, false);
}

/* On the first loop. */
static void start_timer(void *arg)
{
    struct weir__server *s = arg;
    struct weir__loop *home = weir__loops_at(s->loops, 0);

    weir__loop_timer_start(home, &s->trim_timer, weir__loop_now_ms(home) + TRIM_MS);
}

static void on_timer(void *arg)
{
    struct weir__server *s = arg;

    if (weir__worker_post(s->worker, &s->trim) != 0) atomic_store(&s->trim_asked, false);
}

void weir__trim_prepare(struct weir__server *s)
{
    weir__post_init(&s->trim_soon, start_timer, s);
    weir__post_init(&s->trim, do_trim, s);
    weir__timer_init(&s->trim_timer, on_timer, s);
}

void weir__trim_ask(struct weir__server *s)
{
    if (!is_worth_it(&s->budget) || atomic_exchange(&s->trim_asked, true)) return;
    weir__loop_post(weir__loops_at(s->loops, 0), &s->trim_soon);
}
