/* When a loop that expects mail stays awake. It is seen by its turns: a loop that sleeps has one for each
 * post, one that stays awake has many in which nothing happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/state.h"

#define POSTS 50u
#define PATIENCE_NS INT64_C(20000000000)

struct talk {
    struct weir__loops *all;
    struct weir__loop *loop;
    struct weir__post expect, post;
    int expected;
    atomic_bool told, came;
    atomic_uint turns;
};

static void count_turn(void *user, struct weir__loop *loop)
{
    struct talk *t = user;

    (void)loop;
    atomic_fetch_add(&t->turns, 1);
}

static void on_expect(void *arg)
{
    struct talk *t = arg;

    weir__loop_expect_mail(t->loop, t->expected);
    atomic_store(&t->told, true);
}

/* It came soon, however busy the machine is. */
static void on_post(void *arg)
{
    struct talk *t = arg;

    t->loop->idle_ns = INT64_MAX;
    atomic_store(&t->came, true);
}

static void begin(struct talk *t, int expected)
{
    const struct weir__loops_options o = {.count = 1, .turn = count_turn, .user = t};

    *t = (struct talk){.expected = expected};
    assert_int_equal(weir__loops_start(&t->all, &o, NULL), 0);
    t->loop = weir__loops_at(t->all, 0);
    weir__post_init(&t->expect, on_expect, t);
    weir__post_init(&t->post, on_post, t);
    assert_int_equal(weir__loop_post(t->loop, &t->expect), 0);
    while (!atomic_load(&t->told)) sched_yield();
}

/* One post, and the loop has run it. The pause keeps the next one out of the turns behind it. */
static void post(struct talk *t)
{
    const struct timespec pause = {.tv_nsec = 5 * WEIR__LOOP_AWAKE_NS};

    atomic_store(&t->came, false);
    assert_int_equal(weir__loop_post(t->loop, &t->post), 0);
    while (!atomic_load(&t->came)) sched_yield();
    nanosleep(&pause, NULL);
}

/* A turn or more without a post behind each, but for a loop that loses its core just then. */
static void stays_awake_for_one_post_that_comes_soon(void **state)
{
    int64_t until_ns = weir__mono_ns() + PATIENCE_NS;
    struct talk t;

    (void)state;
    begin(&t, 1);
    for (unsigned posts = 0; atomic_load(&t.turns) < posts + POSTS; posts++) {
        assert_true(weir__mono_ns() < until_ns);
        post(&t);
    }
    weir__loops_free(t.all);
}

/* A turn for each post, one for what is said at the beginning, and one for stopping, which may take two. */
static void sleeps_through(int expected)
{
    struct talk t;

    begin(&t, expected);
    for (unsigned i = 0; i < POSTS; i++) post(&t);
    assert_in_range(atomic_load(&t.turns), 1, POSTS + 4);
    weir__loops_free(t.all);
}

static void sleeps_when_no_post_is_expected(void **state)
{
    (void)state;
    sleeps_through(0);
}

/* Many are there when the first one wakes it. */
static void sleeps_when_many_posts_are_expected(void **state)
{
    (void)state;
    sleeps_through(2);
}

/* The time before a turn decides, if something happened in it. */
static void knows_what_came_soon(void **state)
{
    static const struct {
        int64_t waited_ns;
        bool active, before, soon;
    } rows[] = {
        {0, true, false, true},
        {WEIR__LOOP_AWAKE_NS - 1, true, false, true},
        {WEIR__LOOP_AWAKE_NS, true, true, false},
        {0, false, false, false},
        {WEIR__LOOP_AWAKE_NS, false, true, true},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t now_ns = weir__mono_ns(), idle_ns = now_ns - rows[i].waited_ns;
        struct weir__loop l = {.active = rows[i].active,
                               .soon = rows[i].before,
                               .began_ns = now_ns,
                               .idle_ns = idle_ns};
        weir__loop_end_turn(&l);
        assert_int_equal(l.soon, rows[i].soon);
        assert_false(l.active);
        assert_true(rows[i].active ? l.idle_ns >= now_ns : l.idle_ns == idle_ns);
    }
}

static void stop_expecting(void *arg)
{
    struct talk *t = arg;

    weir__loop_expect_mail(t->loop, -1);
    weir__loop_expect_mail(t->loop, -1);
    on_post(arg);
}

static void sleeps_when_what_was_expected_has_come(void **state)
{
    struct talk t;
    unsigned before;

    (void)state;
    begin(&t, 2);
    weir__post_init(&t.expect, stop_expecting, &t);
    assert_int_equal(weir__loop_post(t.loop, &t.expect), 0);
    while (!atomic_load(&t.came)) sched_yield();
    before = atomic_load(&t.turns);
    for (unsigned i = 0; i < POSTS; i++) post(&t);
    assert_in_range(atomic_load(&t.turns), before, before + POSTS + 4);
    weir__loops_free(t.all);
}

/* However long it expects something: what does not come in time is waited for asleep. On a busy machine
 * that time may take longer to pass. */
static void does_not_stay_awake_for_ever(void **state)
{
    const struct timespec pause = {.tv_nsec = 50 * WEIR__LOOP_AWAKE_NS};
    int64_t until_ns = weir__mono_ns() + PATIENCE_NS;
    unsigned before, after;
    struct talk t;

    (void)state;
    begin(&t, 1);
    for (unsigned i = 0; i < POSTS; i++) post(&t);
    do {
        assert_true(weir__mono_ns() < until_ns);
        before = atomic_load(&t.turns);
        nanosleep(&pause, NULL);
        after = atomic_load(&t.turns);
    } while (after != before);
    weir__loops_free(t.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_awake_for_one_post_that_comes_soon),
        cmocka_unit_test(sleeps_when_no_post_is_expected),
        cmocka_unit_test(sleeps_when_many_posts_are_expected),
        cmocka_unit_test(knows_what_came_soon),
        cmocka_unit_test(sleeps_when_what_was_expected_has_come),
        cmocka_unit_test(does_not_stay_awake_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
