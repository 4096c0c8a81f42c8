#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND_NS INT64_C(1000000000)

static int64_t monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static void the_clock_is_the_monotonic_one(void **state)
{
    int64_t before = monotonic_ns(), ours = weir__mono_ns(), after = monotonic_ns();

    (void)state;
    assert_true(before <= ours && ours <= after);
}

static void deadlines_are_of_the_monotonic_clock(void **state)
{
    int64_t before = weir__mono_ns(), deadline = weir__deadline_ns(2500);
    int64_t after = weir__mono_ns(), most_ms = (INT64_MAX - after) / 1000000 - 60000;

    (void)state;
    assert_true(deadline >= before + 2500 * (SECOND_NS / 1000));
    assert_true(deadline <= after + 2500 * (SECOND_NS / 1000));
    assert_true(weir__deadline_ns(0) >= after);
    assert_true(weir__deadline_ns(0) < INT64_MAX);
    assert_true(weir__deadline_ns(-1) == INT64_MAX);
    assert_true(weir__deadline_ns(INT64_MAX) == INT64_MAX);
    assert_true(weir__deadline_ns(INT64_MAX / 1000000) == INT64_MAX);
    assert_true(weir__deadline_ns(most_ms) < INT64_MAX);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    static const int64_t waits_ns[] = {-SECOND_NS / 2, 0, 1, 30 * SECOND_NS / 1000};
    struct weir__mutex lock;
    struct weir__cond cond;

    (void)state;
    weir__mutex_init(&lock);
    weir__cond_init(&cond);
    weir__mutex_lock(&lock);
    for (size_t i = 0; i < sizeof waits_ns / sizeof waits_ns[0]; i++) {
        int64_t deadline = weir__mono_ns() + waits_ns[i];
        while (weir__cond_wait(&cond, &lock, deadline)) {
        }
        assert_true(weir__mono_ns() >= deadline);
    }
    weir__mutex_unlock(&lock);
    weir__cond_fini(&cond);
    weir__mutex_fini(&lock);
}

/* A wait that ends at once, and until when it was to be. */
static int answer_of_wait = -1;
static struct timespec waited_until;

int __real_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int __wrap_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    waited_until = *until;
    return answer_of_wait < 0 ? __real_pthread_cond_timedwait(c, m, until) : answer_of_wait;
}

static void a_deadline_is_kept_to_the_nanosecond(void **state)
{
    static const struct timespec rows[] = {{0, 0}, {0, 1}, {7, 999999999}, {8, 0}, {4000000000, 5}};
    struct weir__mutex lock;
    struct weir__cond cond;

    (void)state;
    weir__mutex_init(&lock);
    weir__cond_init(&cond);
    weir__mutex_lock(&lock);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        answer_of_wait = i % 2 ? ETIMEDOUT : 0;
        assert_int_equal(weir__cond_wait(&cond, &lock,
                                         rows[i].tv_sec * SECOND_NS + rows[i].tv_nsec),
                         i % 2 == 0);
        assert_int_equal(waited_until.tv_sec, rows[i].tv_sec);
        assert_int_equal(waited_until.tv_nsec, rows[i].tv_nsec);
    }
    answer_of_wait = -1;
    weir__mutex_unlock(&lock);
    weir__cond_fini(&cond);
    weir__mutex_fini(&lock);
}

/* What a thread finds about itself, and the turns that it and the test take. */
struct talk {
    struct weir__mutex lock;
    struct weir__cond cond;
    int turn;
    char name[16];
    sigset_t blocked;
};

static void take_turn(struct talk *t, int turn)
{
    while (t->turn != turn) assert_true(weir__cond_wait(&t->cond, &t->lock, INT64_MAX));
    t->turn++;
    weir__cond_broadcast(&t->cond);
}

static void *answer(void *arg)
{
    struct talk *t = arg;

    weir__mutex_lock(&t->lock);
    take_turn(t, 1);
    pthread_getname_np(pthread_self(), t->name, sizeof t->name);
    pthread_sigmask(SIG_SETMASK, NULL, &t->blocked);
    weir__mutex_unlock(&t->lock);
    return NULL;
}

static void a_thread_has_a_name_and_no_signals(void **state)
{
    struct talk t = {0};
    struct weir__thread thread = {0};
    sigset_t ours;

    (void)state;
    weir__mutex_init(&t.lock);
    weir__cond_init(&t.cond);
    assert_int_equal(weir__thread_start(&thread, "weir-fifteen-by", answer, &t, NULL), 0);
    assert_true(thread.running);
    weir__mutex_lock(&t.lock);
    take_turn(&t, 0);
    take_turn(&t, 2);
    weir__mutex_unlock(&t.lock);
    weir__thread_join(&thread);
    assert_false(thread.running);
    weir__thread_join(&thread);
    weir__thread_detach(&thread);
    assert_string_equal(t.name, "weir-fifteen-by");
    assert_int_equal(sigismember(&t.blocked, SIGTERM), 1);
    assert_int_equal(sigismember(&t.blocked, SIGCHLD), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &ours);
    assert_int_equal(sigismember(&ours, SIGTERM), 0);
    weir__cond_fini(&t.cond);
    weir__mutex_fini(&t.lock);
}

static void *finish_late(void *arg)
{
    for (int i = 0; i < 1000; i++) sched_yield();
    *(bool *)arg = true;
    return NULL;
}

static void joining_waits_for_the_end(void **state)
{
    static bool finished;
    struct weir__thread thread = {0};

    (void)state;
    assert_int_equal(weir__thread_start(&thread, "late", finish_late, &finished, NULL), 0);
    weir__thread_join(&thread);
    assert_true(finished);
}

static void *raise_flag(void *arg)
{
    struct talk *t = arg;

    weir__mutex_lock(&t->lock);
    t->turn++;
    weir__cond_signal(&t->cond);
    weir__mutex_unlock(&t->lock);
    return NULL;
}

/* It may still be about to leave the lock when the test ends: what they share stays. */
static void a_detached_thread_runs_and_is_not_joined(void **state)
{
    static struct talk t;
    struct weir__thread thread = {0};
    pthread_attr_t attr;
    int how;

    (void)state;
    weir__mutex_init(&t.lock);
    weir__cond_init(&t.cond);
    weir__mutex_lock(&t.lock);
    assert_int_equal(weir__thread_start(&thread, "raise", raise_flag, &t, NULL), 0);
    weir__thread_detach(&thread);
    assert_false(thread.running);
    assert_int_equal(pthread_getattr_np(thread.t, &attr), 0); /* it waits for the lock */
    assert_int_equal(pthread_attr_getdetachstate(&attr, &how), 0);
    assert_int_equal(how, PTHREAD_CREATE_DETACHED); /* the system frees what it has */
    pthread_attr_destroy(&attr);
    weir__thread_join(&thread);
    while (t.turn == 0) assert_true(weir__cond_wait(&t.cond, &t.lock, INT64_MAX));
    weir__mutex_unlock(&t.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_is_the_monotonic_one),
        cmocka_unit_test(deadlines_are_of_the_monotonic_clock),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(a_deadline_is_kept_to_the_nanosecond),
        cmocka_unit_test(a_thread_has_a_name_and_no_signals),
        cmocka_unit_test(joining_waits_for_the_end),
        cmocka_unit_test(a_detached_thread_runs_and_is_not_joined),
    };

    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
