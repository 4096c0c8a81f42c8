#include "io/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define THREADS 4
#define POSTS_EACH 20000
#define RING 64 /* posts that each thread has */

static struct weir__loops *start(unsigned count)
{
    struct weir__loops_options o = {.count = count};
    struct weir__loops *all;

    assert_int_equal(weir__loops_start(&all, &o, NULL), 0);
    return all;
}

struct sender {
    struct weir__loop *to;
    struct weir__thread thread;
    struct weir__post posts[RING];
    atomic_bool busy[RING];
    atomic_uint ran;
    unsigned wrong_thread;
    struct slot {
        struct sender *sender;
        unsigned index;
    } slots[RING];
};

static void on_post(void *arg)
{
    struct slot *slot = arg;
    struct sender *s = slot->sender;

    if (!weir__loop_here(s->to)) s->wrong_thread++;
    atomic_fetch_add(&s->ran, 1);
    atomic_store(&s->busy[slot->index], false);
}

static void *send_posts(void *arg)
{
    struct sender *s = arg;

    for (unsigned i = 0; i < POSTS_EACH; i++) {
        unsigned at = i % RING;
        while (atomic_load(&s->busy[at])) sched_yield();
        atomic_store(&s->busy[at], true);
        if (weir__loop_post(s->to, &s->posts[at]) != 0) abort();
    }
    return NULL;
}

/* Every post of every thread runs once, on the loop's thread; the last ones before it stops. */
static void runs_posts_of_many_threads(void **state)
{
    struct weir__loops *all = start(2);
    struct sender *s = calloc(THREADS, sizeof *s);

    (void)state;
    assert_non_null(s);
    for (unsigned i = 0; i < THREADS; i++) {
        s[i].to = weir__loops_at(all, i % 2);
        for (unsigned k = 0; k < RING; k++) {
            s[i].slots[k] = (struct slot){&s[i], k};
            weir__post_init(&s[i].posts[k], on_post, &s[i].slots[k]);
        }
        assert_int_equal(weir__thread_start(&s[i].thread, "sender", send_posts, &s[i], NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) weir__thread_join(&s[i].thread);
    weir__loops_stop(all);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(atomic_load(&s[i].ran), POSTS_EACH);
        assert_int_equal(s[i].wrong_thread, 0);
        assert_int_equal(weir__loop_post(s[i].to, &s[i].posts[0]), WEIR_ECLOSED);
    }
    weir__loops_free(all);
    free(s);
}

/* What happens on a loop, told to the test's thread. */
struct story {
    struct weir__loops *all;
    struct weir__loop *loop;
    struct weir__mutex lock;
    struct weir__cond told;
    bool done;
    struct weir__post post, deferred, never;
    struct weir__timer early, late, stopped;
    int64_t began_ms;
    int ahead_ms, work_ms; /* when a timer is due, how long the turn that sets it goes on */
    unsigned turns;
    char order[16];
    size_t length;
};

static void note(struct story *s, char what)
{
    if (s->length < sizeof s->order - 1) s->order[s->length++] = what;
}

static void finish(struct story *s)
{
    weir__mutex_lock(&s->lock);
    s->done = true;
    weir__cond_signal(&s->told);
    weir__mutex_unlock(&s->lock);
}

static void tell(struct story *s, void (*fn)(void *))
{
    weir__mutex_init(&s->lock);
    weir__cond_init(&s->told);
    s->loop = weir__loops_at(s->all, 0);
    weir__post_init(&s->post, fn, s);
    assert_false(weir__loop_here(s->loop));
    assert_int_equal(weir__loop_post(s->loop, &s->post), 0);
    weir__mutex_lock(&s->lock);
    while (!s->done) assert_true(weir__cond_wait(&s->told, &s->lock, weir__deadline_ns(10000)));
    weir__mutex_unlock(&s->lock);
    weir__loops_free(s->all);
    weir__cond_fini(&s->told);
    weir__mutex_fini(&s->lock);
}

static void on_early(void *arg)
{
    note(arg, 'e');
}

static void on_stopped(void *arg)
{
    note(arg, '!');
}

static void on_late(void *arg)
{
    struct story *s = arg;

    note(s, 'l');
    if (weir__loop_now_ms(s->loop) < s->began_ms + 30) note(s, '?');
    finish(s);
}

static void start_timers(void *arg)
{
    struct story *s = arg;

    s->began_ms = weir__loop_now_ms(s->loop);
    weir__timer_init(&s->early, on_early, s);
    weir__timer_init(&s->late, on_late, s);
    weir__timer_init(&s->stopped, on_stopped, s);
    weir__loop_timer_start(s->loop, &s->late, s->began_ms + 5);
    weir__loop_timer_start(s->loop, &s->stopped, s->began_ms + 10);
    weir__loop_timer_start(s->loop, &s->early, s->began_ms + 20);
    weir__loop_timer_start(s->loop, &s->late, s->began_ms + 30);
    weir__loop_timer_stop(s->loop, &s->stopped);
}

static void timers_ring_in_order_and_not_early(void **state)
{
    struct story s = {.all = start(1)};

    (void)state;
    tell(&s, start_timers);
    assert_string_equal(s.order, "el");
}

static void on_due(void *arg)
{
    note(arg, 'd');
    finish(arg);
}

static void start_one(void *arg)
{
    struct story *s = arg;
    const struct timespec work = {.tv_nsec = s->work_ms * 1000000L};

    weir__timer_init(&s->early, on_due, s);
    weir__loop_timer_start(s->loop, &s->early, weir__loop_now_ms(s->loop) + s->ahead_ms);
    nanosleep(&work, NULL);
}

/* On a loop with nothing else to do: due when it is set, and due before the next poll begins. */
static void a_timer_that_is_due_already_rings(void **state)
{
    static const int rows[][2] = {{0, 0}, {-5, 0}, {5, 20}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct story s = {.all = start(1), .ahead_ms = rows[i][0], .work_ms = rows[i][1]};
        tell(&s, start_one);
        assert_string_equal(s.order, "d");
    }
}

/* Sets itself for the past again and again. */
static void on_persistent(void *arg)
{
    struct story *s = arg;

    if (!s->done) weir__loop_timer_start(s->loop, &s->early, s->began_ms - 1000);
}

static void start_persistent(void *arg)
{
    struct story *s = arg;

    s->began_ms = weir__loop_now_ms(s->loop);
    weir__timer_init(&s->early, on_persistent, s);
    weir__timer_init(&s->late, on_late, s);
    weir__loop_timer_start(s->loop, &s->late, s->began_ms + 30);
    weir__loop_timer_start(s->loop, &s->early, s->began_ms - 1000);
}

static void nobody_starves_the_timers(void **state)
{
    struct story s = {.all = start(1)};

    (void)state;
    tell(&s, start_persistent);
    assert_string_equal(s.order, "l");
}

static void on_deferred(void *arg)
{
    struct story *s = arg;

    note(s, 'd');
    if (s->length < 4)
        weir__loop_defer(s->loop, &s->deferred);
    else
        finish(s);
}

static void on_turn(void *user, struct weir__loop *l)
{
    struct story *s = user;

    if (s->loop == l && s->length) note(s, 't');
}

static void on_mail(void *arg)
{
    struct story *s = arg;

    note(s, 'm');
    weir__post_init(&s->deferred, on_deferred, s);
    weir__post_init(&s->never, on_stopped, s);
    weir__loop_defer(s->loop, &s->never);
    weir__loop_defer(s->loop, &s->deferred);
    weir__loop_defer(s->loop, &s->deferred); /* once is enough */
    weir__loop_unpost(s->loop, &s->never);
    weir__loop_post(s->loop, &s->never);
    weir__loop_unpost(s->loop, &s->never);
}

/* No turn has lasted long, however slow the machine is. */
int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *);

int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *l)
{
    (void)l;
    return 0;
}

/* Mail, then the owner's turn, then what was deferred, more of it in the same turn. */
static void a_turn_has_its_order(void **state)
{
    struct story s = {.loop = NULL};
    struct weir__loops_options o = {.count = 1, .turn = on_turn, .user = &s};

    (void)state;
    assert_int_equal(weir__loops_start(&s.all, &o, NULL), 0);
    tell(&s, on_mail);
    assert_memory_equal(s.order, "mtdd", 4);
}

static void has_limits_and_defaults(void **state)
{
    struct weir__loops_options o = {.count = WEIR__LOOPS_MAX + 1};
    struct weir__loops *all;
    struct weir_error err;

    (void)state;
    assert_int_equal(weir__loops_start(&all, &o, &err), WEIR_EINVAL);
    assert_null(all);
    assert_int_equal(weir__loops_start(&all, NULL, &err), 0);
    assert_true(weir__loops_count(all) >= 1);
    assert_int_equal(weir__loop_index(weir__loops_at(all, 0)), 0);
    weir__loops_free(all);
    weir__loops_free(NULL);
}

struct busy {
    struct weir__loop *loop;
    bool over_at_first, over_at_last;
    atomic_bool done;
};

static void work_long(void *arg)
{
    struct busy *b = arg;
    int64_t until_ns = weir__mono_ns() + 3 * WEIR__LOOP_TURN_NS;

    b->over_at_first = weir__loop_turn_over(b->loop);
    while (weir__mono_ns() < until_ns) continue;
    b->over_at_last = weir__loop_turn_over(b->loop);
    atomic_store(&b->done, true);
}

static uint64_t turns_above(const struct weir__loop_turns *t, uint32_t us)
{
    uint64_t sum = 0;

    for (unsigned b = 0; b < WEIR__LOOP_TURN_BUCKETS; b++)
        if (b == WEIR__LOOP_TURN_BUCKETS - 1 || weir__loop_turn_bound_us(b) > us)
            sum += t->buckets[b];
    return sum;
}

/* A turn of three times the length that is allowed is counted as one of that length; the wait before
 * it is not counted. */
static void long_turns_are_told_and_counted(void **state)
{
    struct weir__loops *all = start(1);
    struct busy busy = {.loop = weir__loops_at(all, 0)};
    struct weir__loop_turns before = {0}, after = {0};
    const uint32_t us = 2 * WEIR__LOOP_TURN_NS / 1000;
    struct weir__post post;

    (void)state;
    weir__loops_turns(all, &before);
    weir__post_init(&post, work_long, &busy);
    assert_int_equal(weir__loop_post(busy.loop, &post), 0);
    while (!atomic_load(&busy.done)) sched_yield();
    /* The turn is counted when it is over, which is a little later. */
    while (turns_above(&after, us) == turns_above(&before, us)) {
        sched_yield();
        after = (struct weir__loop_turns){0};
        weir__loops_turns(all, &after);
    }
    assert_true(busy.over_at_last);
    weir__loops_stop(all);
    weir__loops_free(all);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void be_away(void *arg)
{
    (void)arg;
    sleep_ms(3 * WEIR__LOOP_LONG_US / 1000);
}

static void work_hard(void *arg)
{
    clock_t until = clock() + 3 * WEIR__LOOP_LONG_US * (CLOCKS_PER_SEC / 1000000);

    (void)arg;
    while (clock() < until) continue; /* of the whole process, whose other threads wait */
}

/* As a loop is whose processor was given to others, and as one is that has too much to do. */
static void only_work_makes_a_turn_busy(void **state)
{
    void (*const turns[])(void *) = {be_away, work_hard};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct weir__loops *all = start(1);
        struct weir__loop_turns seen;
        struct weir__post post;

        weir__post_init(&post, turns[i], NULL);
        assert_int_equal(weir__loop_post(weir__loops_at(all, 0), &post), 0);
        do {
            sleep_ms(1);
            seen = (struct weir__loop_turns){0};
            weir__loops_turns(all, &seen);
        } while (turns_above(&seen, WEIR__LOOP_LONG_US) == 0);
        weir__loops_stop(all); /* which waits for the end of the turn */
        seen = (struct weir__loop_turns){0};
        weir__loops_turns(all, &seen);
        assert_int_equal(seen.worked_long, i);
        weir__loops_free(all);
    }
}

/* What a loop waits is no part of a turn. */
static void the_wait_is_not_counted(void **state)
{
    struct weir__loops *all = start(1);
    struct busy busy = {.loop = weir__loops_at(all, 0)};
    struct weir__loop_turns turns = {0};
    int64_t began_ns = weir__mono_ns();
    struct weir__post post;

    (void)state;
    sleep_ms(200); /* nothing to do, so there is no condition to wait for */
    weir__post_init(&post, work_long, &busy);
    assert_int_equal(weir__loop_post(busy.loop, &post), 0);
    while (!atomic_load(&busy.done)) sched_yield();
    weir__loops_stop(all);
    weir__loops_turns(all, &turns);
    assert_true((int64_t)turns.ns < weir__mono_ns() - began_ns - INT64_C(100000000));
    weir__loops_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_posts_of_many_threads),
        cmocka_unit_test(timers_ring_in_order_and_not_early),
        cmocka_unit_test(a_timer_that_is_due_already_rings),
        cmocka_unit_test(nobody_starves_the_timers),
        cmocka_unit_test(a_turn_has_its_order),
        cmocka_unit_test(has_limits_and_defaults),
        cmocka_unit_test(only_work_makes_a_turn_busy),
        cmocka_unit_test(long_turns_are_told_and_counted),
        cmocka_unit_test(the_wait_is_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
