/* trim_test.c - when memory goes back to the system. */
#include <malloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/hurry.h"
#include "server/state.h"

#define WORTH_BYTES ((size_t)4 << 20)
#define PAUSE_MS 2000
#define PATIENCE_MS 20000

static struct {
    struct weir__server server;
    unsigned trims;
} scene;

int __wrap_malloc_trim(size_t pad);

int __wrap_malloc_trim(size_t pad)
{
    scene.trims++; /* the worker's, read when it has been waited for */
    return pad == 0;
}

static int set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof scene);
    weir__budget_init(&scene.server.budget, &(struct weir__budget_limits){0});
    assert_int_equal(weir__loops_start(&scene.server.loops,
                                       &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    assert_int_equal(weir__worker_start(&scene.server.worker, "worker", NULL), 0);
    weir__trim_prepare(&scene.server);
    hurry_through(PAUSE_MS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir__loops_free(scene.server.loops);
    weir__worker_free(scene.server.worker);
    weir__budget_fini(&scene.server.budget);
    return 0;
}

/* Asks when so much was held, and so much is. */
static void ask(size_t peak, size_t used)
{
    atomic_store(&scene.server.budget.peak, peak);
    atomic_store(&scene.server.budget.used, used);
    weir__trim_ask(&scene.server);
}

static void expect_done(void)
{
    for (int64_t waited = 0; atomic_load(&scene.server.trim_asked); waited++) {
        if (waited > PATIENCE_MS) fail_msg("it is still waited for");
        poll(NULL, 0, 1);
    }
}

/* After a pause, and as often as it is worth it. */
static void much_goes_back(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 2; i++) {
        ask(WORTH_BYTES + 5, 5);
        expect_done();
        assert_int_equal(scene.trims, i);
        assert_int_equal(atomic_load(&hurry.count), i);
        assert_int_equal(atomic_load(&scene.server.budget.peak), 5);
    }
}

static void little_stays(void **state)
{
    (void)state;
    ask(WORTH_BYTES + 4, 5);
    assert_false(atomic_load(&scene.server.trim_asked));
    ask(5, WORTH_BYTES + 5);
    assert_false(atomic_load(&scene.server.trim_asked));
    ask(5, 5);
    assert_false(atomic_load(&scene.server.trim_asked));
}

/* Whoever waits for the pause is enough. */
static void it_is_asked_for_once(void **state)
{
    (void)state;
    atomic_store(&scene.server.trim_asked, true);
    ask(WORTH_BYTES, 0);
    weir__loops_free(scene.server.loops); /* which runs what was posted */
    scene.server.loops = NULL;
    assert_int_equal(atomic_load(&hurry.count), 0);
}

/* Something that the worker is busy with, and a timer behind the one that is waited for. */
struct holding {
    struct weir__post hold, begin;
    struct weir__timer behind;
    atomic_bool fired, let_go;
};

static void hold_worker(void *arg)
{
    struct holding *h = arg;

    while (!atomic_load(&h->let_go)) poll(NULL, 0, 1);
}

static void note_fired(void *arg)
{
    struct holding *h = arg;

    atomic_store(&h->fired, true);
}

static void start_behind(void *arg)
{
    struct holding *h = arg;
    struct weir__loop *home = weir__loops_at(scene.server.loops, 0);

    weir__loop_timer_start(home, &h->behind, weir__loop_now_ms(home) + 1);
}

/* While it waits for the worker it is not asked for again. */
static void a_worker_that_is_busy_is_waited_for(void **state)
{
    static struct holding h;

    (void)state;
    weir__post_init(&h.hold, hold_worker, &h);
    weir__post_init(&h.begin, start_behind, &h);
    weir__timer_init(&h.behind, note_fired, &h);
    assert_int_equal(weir__worker_post(scene.server.worker, &h.hold), 0);
    ask(WORTH_BYTES, 0);
    hurry_wait(1);
    assert_int_equal(weir__loop_post(weir__loops_at(scene.server.loops, 0), &h.begin), 0);
    for (int waited = 0; !atomic_load(&h.fired); waited++) {
        if (waited > PATIENCE_MS) fail_msg("the timer does not fire");
        poll(NULL, 0, 1);
    }
    assert_true(atomic_load(&scene.server.trim_asked));
    ask(WORTH_BYTES, 0);
    atomic_store(&h.let_go, true);
    expect_done();
    assert_int_equal(scene.trims, 1);
    assert_int_equal(atomic_load(&hurry.count), 1);
}

static void a_worker_that_has_stopped_is_not_waited_for(void **state)
{
    (void)state;
    weir__worker_stop(scene.server.worker);
    ask(WORTH_BYTES, 0);
    expect_done();
    assert_int_equal(atomic_load(&hurry.count), 1);
    assert_int_equal(scene.trims, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(much_goes_back),
        TEST(little_stays),
        TEST(it_is_asked_for_once),
        TEST(a_worker_that_is_busy_is_waited_for),
        TEST(a_worker_that_has_stopped_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("trim", tests, NULL, NULL);
}
