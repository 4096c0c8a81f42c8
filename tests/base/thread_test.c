/* thread_test.c - deadlines, waiting until one, and threads that are joined. */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void deadlines(void **state)
{
    int64_t before = weir__mono_ns(), now = weir__deadline_ns(0), later = weir__deadline_ns(5);

    (void)state;
    assert_in_range(now, before, weir__mono_ns());
    assert_in_range(later, now + 5000000, weir__mono_ns() + 5000000);
    assert_int_equal(weir__deadline_ns(-1), INT64_MAX);
    assert_int_equal(weir__deadline_ns(INT64_MAX), INT64_MAX);
    assert_int_equal(weir__deadline_ns(INT64_MAX / 1000000), INT64_MAX);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    int64_t deadline_ns = weir__deadline_ns(20);
    struct weir__mutex lock;
    struct weir__cond never;

    (void)state;
    weir__mutex_init(&lock);
    weir__cond_init(&never);
    weir__mutex_lock(&lock);
    while (weir__cond_wait(&never, &lock, deadline_ns)) continue; /* woken for nothing */
    assert_true(weir__mono_ns() >= deadline_ns);
    assert_false(weir__cond_wait(&never, &lock, 0)); /* long over */
    weir__mutex_unlock(&lock);
    weir__cond_fini(&never);
    weir__mutex_fini(&lock);
}

struct world {
    struct weir__mutex lock;
    struct weir__cond changed;
    int turn;
    bool deaf; /* to signals */
};

static void *take_turns(void *arg)
{
    struct world *w = arg;
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    weir__mutex_lock(&w->lock);
    w->deaf = sigismember(&blocked, SIGTERM) == 1;
    for (int i = 1; i < 20; i += 2) {
        while (w->turn != i) weir__cond_wait(&w->changed, &w->lock, INT64_MAX);
        w->turn++;
        weir__cond_signal(&w->changed);
    }
    weir__mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static void threads_wake_each_other_and_are_joined(void **state)
{
    struct weir__thread thread = {0};
    struct world w = {.turn = 0};

    (void)state;
    weir__thread_join(&thread); /* which never was */
    weir__mutex_init(&w.lock);
    weir__cond_init(&w.changed);
    assert_int_equal(weir__thread_start(&thread, "turns", take_turns, &w, NULL), 0);
    weir__mutex_lock(&w.lock);
    for (int i = 0; i < 20; i += 2) {
        while (w.turn != i) weir__cond_wait(&w.changed, &w.lock, INT64_MAX);
        w.turn++;
        weir__cond_broadcast(&w.changed);
    }
    weir__mutex_unlock(&w.lock);
    weir__thread_join(&thread);
    weir__thread_join(&thread); /* a second time */
    assert_int_equal(w.turn, 20);
    assert_true(w.deaf);
    weir__cond_fini(&w.changed);
    weir__mutex_fini(&w.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(threads_wake_each_other_and_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
