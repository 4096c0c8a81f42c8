/* ending_test.c - the last turns of a loop. What was posted before its mailbox closed runs, however
 * much it is, and so does all that follows from it. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/state.h"

#define MANY (2 * WEIR__LOOP_POSTS_PER_TURN) /* the last are behind the closed mailbox */
#define ROUNDS (3 * WEIR__LOOP_FLUSHES_PER_TURN)

struct end {
    struct weir__loop *loop;
    struct weir__post hold, posts[MANY], last, deferred, mail;
    struct weir__resident resident;
    atomic_bool held, let_go;
    bool enters; /* somebody, before the loop stops */
    unsigned ran, mailed, rounds, evicted;
    int mail_rc;
    bool closed; /* the mailbox, when the last post ran */
};

static void hold(void *arg)
{
    struct end *e = arg;

    if (e->enters) weir__loop_enter(e->loop, &e->resident);
    atomic_store(&e->held, true);
    while (!atomic_load(&e->let_go)) sched_yield();
}

static void count(void *arg)
{
    ((struct end *)arg)->ran++;
}

static void count_mail(void *arg)
{
    ((struct end *)arg)->mailed++;
}

static void defer_again(void *arg)
{
    struct end *e = arg;

    if (++e->rounds < ROUNDS) weir__loop_defer(e->loop, &e->deferred);
}

static void defer_last(void *arg)
{
    struct end *e = arg;

    e->closed = e->loop->mail.closed;
    weir__loop_defer(e->loop, &e->deferred);
}

static void leave_late(void *arg)
{
    struct end *e = arg;

    if (++e->evicted < ROUNDS) return;
    e->mail_rc = weir__loop_post(e->loop, &e->mail);
    weir__loop_leave(e->loop, &e->resident);
}

static void enter_last(void *arg)
{
    struct end *e = arg;

    e->closed = e->loop->mail.closed;
    weir__loop_enter(e->loop, &e->resident);
}

static void post(struct end *e, struct weir__post *p, void (*fn)(void *))
{
    weir__post_init(p, fn, e);
    assert_int_equal(weir__loop_post(e->loop, p), 0);
}

/* Everything is there before the loop sees that it shall stop. */
static void run_to_the_end(struct end *e, void (*last)(void *))
{
    struct weir__loops *all;

    assert_int_equal(weir__loops_start(&all, &(struct weir__loops_options){.count = 1}, NULL), 0);
    e->loop = weir__loops_at(all, 0);
    e->resident = (struct weir__resident){.evict = leave_late, .arg = e};
    weir__post_init(&e->deferred, defer_again, e);
    weir__post_init(&e->mail, count_mail, e);
    post(e, &e->hold, hold);
    while (!atomic_load(&e->held)) sched_yield();
    assert_int_equal(weir__loop_post(e->loop, &e->loop->stop), 0);
    for (unsigned i = 0; i < MANY; i++) post(e, &e->posts[i], count);
    post(e, &e->last, last);
    atomic_store(&e->let_go, true);
    weir__loops_stop(all);
    weir__post_init(&e->hold, hold, e);
    assert_int_equal(weir__loop_post(e->loop, &e->hold), WEIR_ECLOSED);
    weir__loops_free(all);
    assert_int_equal(e->ran, MANY + (last == count));
}

static void the_last_posts_run(void **state)
{
    (void)state;
    run_to_the_end(&(struct end){.ran = 0}, count);
}

static void what_they_defer_runs(void **state)
{
    struct end e = {.ran = 0};

    (void)state;
    run_to_the_end(&e, defer_last);
    assert_true(e.closed);
    assert_int_equal(e.rounds, ROUNDS);
}

/* It is asked to go until it has gone. */
static void what_they_bring_to_life_goes(void **state)
{
    struct end e = {.ran = 0};

    (void)state;
    run_to_the_end(&e, enter_last);
    assert_true(e.closed);
    assert_int_equal(e.evicted, ROUNDS);
    assert_int_equal(e.mail_rc, WEIR_ECLOSED);
    assert_int_equal(e.mailed, 0);
}

/* The mailbox stays open for those who are still there when the loop is to stop. */
static void who_was_there_before_gets_mail(void **state)
{
    struct end e = {.enters = true};

    (void)state;
    run_to_the_end(&e, count);
    assert_int_equal(e.evicted, ROUNDS);
    assert_int_equal(e.mail_rc, 0);
    assert_int_equal(e.mailed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_posts_run),
        cmocka_unit_test(what_they_defer_runs),
        cmocka_unit_test(what_they_bring_to_life_goes),
        cmocka_unit_test(who_was_there_before_gets_mail),
    };

    return cmocka_run_group_tests_name("ending", tests, NULL, NULL);
}
