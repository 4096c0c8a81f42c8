/* keeper_test.c - the order in which the keeper of a pool comes to its members: whoever is due first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread.h"
#include "log/pool.h"
#include "support/dice.h"

#define MEMBERS 60
#define FIRST_NS (-1000) /* before all others */
#define PATIENCE_MS 20000

struct world {
    struct weir__log_pool *pool;
    struct weir__mutex lock;
    struct weir__cond changed;
    bool held, open;
    struct member {
        struct weir__pool_member m;
        struct world *w;
        int64_t due_ns;
    } gate, members[MEMBERS];
    int64_t order[2 * MEMBERS];
    int kept;
};

static int64_t keep(void *owner)
{
    struct member *self = owner;
    struct world *w = self->w;

    weir__mutex_lock(&w->lock);
    w->order[w->kept++] = self->due_ns;
    weir__cond_broadcast(&w->changed);
    weir__mutex_unlock(&w->lock);
    return INT64_MAX;
}

/* The first time it waits until all others have come. */
static int64_t keep_gate(void *owner)
{
    struct member *self = owner;
    struct world *w = self->w;
    bool first;

    weir__mutex_lock(&w->lock);
    first = !w->held;
    w->held = true;
    weir__cond_broadcast(&w->changed);
    while (!w->open) weir__cond_wait(&w->changed, &w->lock, INT64_MAX);
    weir__mutex_unlock(&w->lock);
    return first ? INT64_MAX : keep(owner);
}

static void join(struct world *w, struct member *m, int64_t (*fn)(void *), int64_t due_ns)
{
    m->w = w;
    m->due_ns = due_ns;
    m->m = (struct weir__pool_member){.keep = fn, .owner = m};
    assert_int_equal(weir__pool_join(w->pool, &m->m, due_ns, NULL), 0);
}

static void hold_keeper(struct world *w)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    bool held;

    join(w, &w->gate, keep_gate, 0);
    weir__mutex_lock(&w->lock);
    while (!w->held && weir__cond_wait(&w->changed, &w->lock, deadline_ns)) continue;
    held = w->held;
    weir__mutex_unlock(&w->lock);
    assert_true(held);
}

static void await_kept(struct world *w, int count)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    int kept;

    weir__mutex_lock(&w->lock);
    w->open = true;
    weir__cond_broadcast(&w->changed);
    while (w->kept < count && weir__cond_wait(&w->changed, &w->lock, deadline_ns)) continue;
    kept = w->kept;
    weir__mutex_unlock(&w->lock);
    assert_int_equal(kept, count);
}

static void make(struct world *w)
{
    *w = (struct world){0};
    weir__mutex_init(&w->lock);
    weir__cond_init(&w->changed);
    assert_int_equal(weir__log_pool_new(&w->pool, 1, NULL), 0);
    hold_keeper(w);
}

static void unmake(struct world *w)
{
    weir__pool_leave(w->pool, &w->gate.m);
    weir__log_pool_free(w->pool);
    weir__cond_fini(&w->changed);
    weir__mutex_fini(&w->lock);
}

/* While the keeper is held, all others come, each due at a moment of its own that is long past; some
 * leave again, and some become due earlier. */
static void try_order(uint64_t seed)
{
    struct world w;
    uint64_t dice = seed;
    int64_t due[MEMBERS];
    bool left[MEMBERS] = {false};
    int stay = MEMBERS + 1;

    make(&w);
    for (int i = 0; i < MEMBERS; i++) due[i] = 100 + 10 * i;
    for (int i = MEMBERS - 1; i > 0; i--) {
        int other = (int)dice_roll(&dice, (uint64_t)i + 1);
        int64_t swap = due[i];

        due[i] = due[other];
        due[other] = swap;
    }
    for (int i = 0; i < MEMBERS; i++) join(&w, &w.members[i], keep, due[i]);
    for (int i = 0; i < MEMBERS; i++) {
        if (dice_roll(&dice, 3) == 0) {
            weir__pool_leave(w.pool, &w.members[i].m);
            left[i] = true;
            stay--;
        } else if (dice_roll(&dice, 3) == 0) {
            w.members[i].due_ns = due[i] - (int64_t)(10 * dice_roll(&dice, 12)) - 5;
            weir__pool_due(w.pool, &w.members[i].m, w.members[i].due_ns);
        } else {
            weir__pool_due(w.pool, &w.members[i].m, due[i] + 1000); /* later: it stays as it is */
        }
    }
    w.gate.due_ns = FIRST_NS;
    weir__pool_due(w.pool, &w.gate.m, w.gate.due_ns); /* while it is being kept */
    await_kept(&w, stay);
    for (int i = 1; i < stay; i++) assert_true(w.order[i - 1] <= w.order[i]);
    assert_int_equal(w.order[0], FIRST_NS);
    for (int i = 0; i < MEMBERS; i++)
        if (!left[i]) weir__pool_leave(w.pool, &w.members[i].m);
    unmake(&w);
}

static void whoever_is_due_first_comes_first(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) try_order(seed);
}

/* A log that leaves is not looked after any more, even if it was the next one. */
static void who_left_is_not_kept(void **state)
{
    struct world w;

    (void)state;
    make(&w);
    for (int i = 0; i < 3; i++) join(&w, &w.members[i], keep, 10 + i);
    weir__pool_leave(w.pool, &w.members[0].m);
    weir__pool_leave(w.pool, &w.members[0].m);
    weir__pool_due(w.pool, &w.members[0].m, 1); /* it is out, so this is no wish */
    await_kept(&w, 2);
    assert_int_equal(w.order[0], 11);
    assert_int_equal(w.order[1], 12);
    for (int i = 1; i < 3; i++) weir__pool_leave(w.pool, &w.members[i].m);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_due_first_comes_first),
        cmocka_unit_test(who_left_is_not_kept),
    };

    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
