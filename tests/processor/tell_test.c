/* tell_test.c - errors about no partition: one after another, in order, by a thread that nobody waits
 * for; when the program takes its time, some wait and the rest are dropped. */
#include <sched.h>

#include "processor/fleet.h"
#include "processor/state.h"

#define TOLD_MAX 200

/* What the program was told, and where it waits. */
static struct {
    struct weir__mutex lock;
    struct weir__cond changed;
    bool closed; /* it does not return */
    int inside, count;
    int64_t numbers[TOLD_MAX];
} told;

static void hear(struct weir_partition *p, enum weir_action action, const struct weir_error *why,
                 void *user)
{
    (void)user;
    if (p || action != WEIR_BEATING) return;
    weir__mutex_lock(&told.lock);
    assert_true(told.count < TOLD_MAX);
    told.numbers[told.count++] = strtoll(why->text, NULL, 10);
    told.inside++;
    weir__cond_broadcast(&told.changed);
    while (told.closed) weir__cond_wait(&told.changed, &told.lock, INT64_MAX);
    told.inside--;
    weir__mutex_unlock(&told.lock);
}

static void set_closed(bool closed)
{
    weir__mutex_lock(&told.lock);
    told.closed = closed;
    weir__cond_broadcast(&told.changed);
    weir__mutex_unlock(&told.lock);
}

static void tell(struct copy *c, int64_t number)
{
    struct weir_error e = {.code = WEIR_EIO};

    snprintf(e.text, sizeof e.text, "%lld", (long long)number);
    weir__runner_tell(c->processor, WEIR_BEATING, &e);
}

static void await_told(int count, int inside)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);

    weir__mutex_lock(&told.lock);
    while ((told.count < count || told.inside != inside) && weir__mono_ns() < deadline_ns)
        weir__cond_wait(&told.changed, &told.lock, weir__deadline_ns(LOOK_MS));
    assert_int_equal(told.count, count);
    assert_int_equal(told.inside, inside);
    weir__mutex_unlock(&told.lock);
}

/* Lets the program return when the threads of a copy were asked to end. */
static void *open_late(void *arg)
{
    struct weir_processor *x = arg;
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    bool quitting = false;

    while (!quitting && weir__mono_ns() < deadline_ns) {
        weir__mutex_lock(&x->lock);
        quitting = x->quitting;
        weir__mutex_unlock(&x->lock);
        sched_yield();
    }
    set_closed(false);
    return NULL;
}

/* In rounds, so that the ring is gone around. The last of them is told when all else has ended. */
static void what_waits_is_told_in_order(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);
    struct weir__thread late;
    int count = 0;

    (void)state;
    weir__mutex_init(&told.lock);
    weir__cond_init(&told.changed);
    o.handler.error = hear;
    copy_start_with(&a, f, &o);
    for (int round = 0; round < 5; round++) {
        int waiting = round % 2 == 0 ? WEIR__TELLS_MAX : 5;

        set_closed(true);
        tell(&a, round * 1000);
        await_told(count + 1, 1); /* the program has it, and none waits */
        for (int i = 1; i <= waiting; i++) tell(&a, round * 1000 + i);
        if (waiting == WEIR__TELLS_MAX) tell(&a, -1);
        if (round < 4) {
            set_closed(false);
            await_told(count + 1 + waiting, 0);
        } else {
            assert_ok(weir__thread_start(&late, "late", open_late, a.processor, &err));
            copy_stop(&a);
            weir__thread_join(&late);
        }
        assert_int_equal(told.count, count + 1 + waiting);
        for (int i = 0; i <= waiting; i++)
            assert_int_equal(told.numbers[count + i], round * 1000 + i);
        count += 1 + waiting;
    }
    weir__cond_fini(&told.changed);
    weir__mutex_fini(&told.lock);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_waits_is_told_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
