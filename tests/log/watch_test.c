/* watch_test.c - who is told of new events, how often, and on which thread. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/simfs.h"

#define MANY 500
#define WAIT weir__deadline_ns(30000)

struct watcher {
    struct weir__log_watch watch;
    atomic_int told;
    pthread_t by;
};

struct gate {
    struct weir__mutex lock;
    struct weir__cond change;
    bool entered, open;
};

struct world {
    struct simfs *disk;
    struct weir__log *log;
    struct watcher watchers[MANY];
    struct gate gate; /* opened at the end at the latest */
};

static void open_log(struct world *w, bool no_threads)
{
    struct weir__log_options o = {.fs = simfs_fs(w->disk),
                                  .dir = "log",
                                  .hub_id = 1,
                                  .partitions = 70,
                                  .segment_bytes_max = 1u << 20,
                                  .no_threads = no_threads};

    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&w->log, &o, NULL), 0);
}

static void open_gate(struct gate *g)
{
    weir__mutex_lock(&g->lock);
    g->open = true;
    weir__cond_broadcast(&g->change);
    weir__mutex_unlock(&g->lock);
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->disk = simfs_new();
    weir__mutex_init(&w->gate.lock);
    weir__cond_init(&w->gate.change);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    open_gate(&w->gate);
    weir__log_close(w->log, NULL);
    simfs_free(w->disk);
    weir__cond_fini(&w->gate.change);
    weir__mutex_fini(&w->gate.lock);
    test_free(w);
    return 0;
}

static void note(void *user)
{
    struct watcher *x = user;

    x->by = pthread_self();
    x->told++;
}

static struct watcher *watch(struct world *w, int i, uint32_t partition)
{
    struct watcher *x = &w->watchers[i];

    x->watch = (struct weir__log_watch){.fn = note, .user = x, .partition = partition};
    weir__log_watch(w->log, &x->watch);
    return x;
}

static int offer(struct world *w, uint32_t partition)
{
    struct weir__log_batch b = {.partition = partition,
                                .count = 1,
                                .body = {weir__bytes_of("some", 4)}};

    return weir__log_append(w->log, &b, WAIT, NULL, NULL, NULL);
}

static void put(struct world *w, uint32_t partition)
{
    assert_int_equal(offer(w, partition), 0);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
}

static void await(atomic_int *value, int least)
{
    int64_t deadline_ns = WAIT;

    while (*value < least && weir__mono_ns() < deadline_ns) sched_yield();
    assert_true(*value >= least);
}

static void told_once_until_it_watches_again(void **state)
{
    struct world *w = *state;
    struct watcher *x, *other;

    open_log(w, true);
    x = watch(w, 0, 69);
    other = watch(w, 1, 3);
    for (int i = 0; i < 10; i++) assert_int_equal(offer(w, 69), 0); /* one group */
    put(w, 69);
    put(w, 69);
    assert_int_equal(x->told, 1);
    assert_int_equal(other->told, 0);
    weir__log_watch(w->log, &x->watch);
    weir__log_watch(w->log, &x->watch); /* watching twice is watching */
    put(w, 69);
    assert_int_equal(x->told, 2);
    weir__log_watch(w->log, &x->watch);
    weir__log_unwatch(w->log, &x->watch);
    weir__log_unwatch(w->log, &x->watch);
    put(w, 69);
    put(w, 3);
    assert_int_equal(x->told, 2);
    assert_int_equal(other->told, 1);
}

/* A few are told by the thread that commits: no other has to wake up first. */
static void a_few_are_told_by_the_committing_thread(void **state)
{
    struct world *w = *state;
    struct weir__log_batch b = {.partition = 1, .count = 1, .body = {weir__bytes_of("some", 4)}};

    open_log(w, false);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 64; i++) watch(w, i, 1);
        assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, NULL, NULL), 0);
        for (int i = 0; i < 64; i++) {
            assert_int_equal(w->watchers[i].told, round);
            assert_true(pthread_equal(w->watchers[i].by, pthread_self()));
        }
    }
}

/* One between two others leaves the list whole, also when it comes back. */
static void one_in_the_middle_leaves_and_comes_back(void **state)
{
    struct world *w = *state;
    struct watcher *middle;

    open_log(w, true);
    watch(w, 0, 1);
    middle = watch(w, 1, 1);
    watch(w, 2, 1);
    weir__log_unwatch(w->log, &middle->watch);
    weir__log_watch(w->log, &middle->watch);
    put(w, 1);
    for (int i = 0; i < 3; i++) assert_int_equal(w->watchers[i].told, 1);
    assert_int_equal(w->log->watches.armed, 0);
}

/* One group with events of several partitions; the next group is of another. */
static void only_those_with_news_are_told(void **state)
{
    static const uint32_t partitions[] = {0, 1, 63, 64, 69};
    struct world *w = *state;

    open_log(w, true);
    for (int i = 0; i < 5; i++) watch(w, i, partitions[i]);
    watch(w, 5, 2);
    for (int i = 0; i < 5; i++) assert_int_equal(offer(w, partitions[i]), 0);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    for (int i = 0; i < 6; i++) assert_int_equal(w->watchers[i].told, i < 5);
    for (int i = 0; i < 5; i++) weir__log_watch(w->log, &w->watchers[i].watch);
    put(w, 2);
    for (int i = 0; i < 6; i++) assert_int_equal(w->watchers[i].told, 1);
}

/* Many are not: what they cost is not the publisher's. Of whichever partition they are. */
static void many_are_told_by_the_pool(void **state)
{
    static const uint32_t partitions[] = {0, 1, 63, 64, 69};
    struct world *w = *state;
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("some", 4)}};

    open_log(w, false);
    for (int round = 1; round <= 5; round++) {
        b.partition = partitions[round - 1];
        for (int i = 0; i < MANY; i++) watch(w, i, b.partition);
        assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, NULL, NULL), 0);
        for (int i = 0; i < MANY; i++) await(&w->watchers[i].told, round);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(w->watchers[i].told, round);
            assert_false(pthread_equal(w->watchers[i].by, pthread_self()));
        }
    }
}

static void enter(struct gate *g)
{
    weir__mutex_lock(&g->lock);
    g->entered = true;
    weir__cond_broadcast(&g->change);
    while (!g->open) weir__cond_wait(&g->change, &g->lock, INT64_MAX);
    weir__mutex_unlock(&g->lock);
}

static void await_entry(struct gate *g)
{
    weir__mutex_lock(&g->lock);
    while (!g->entered) weir__cond_wait(&g->change, &g->lock, INT64_MAX);
    weir__mutex_unlock(&g->lock);
}

static void hold_completion(void *user, int rc, const struct weir__log_receipt *r,
                            const struct weir_error *err)
{
    (void)rc, (void)r, (void)err;
    enter(user);
}

/* 65 of two partitions are many. While the pool has no thread for them, others come: all are told when
 * it has one. Afterwards a few are a few again. */
static void many_of_several_partitions_wait_for_the_pool(void **state)
{
    struct world *w = *state;
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("some", 4)}};

    open_log(w, false);
    assert_int_equal(weir__log_append(w->log, &b, WAIT, hold_completion, &w->gate, NULL), 0);
    await_entry(&w->gate); /* the only thread there is */
    for (uint32_t round = 0; round < 2; round++) {
        for (int i = 0; i < 65; i++) watch(w, (int)round * 65 + i, 10 * round + (uint32_t)i % 2);
        for (b.partition = 10 * round; b.partition < 10 * round + 2; b.partition++)
            assert_int_equal(weir__log_append(w->log, &b, WAIT, NULL, NULL, NULL), 0);
        assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
        for (int i = 0; i < 130; i++) assert_int_equal(w->watchers[i].told, 0);
    }
    open_gate(&w->gate);
    for (int i = 0; i < 130; i++) await(&w->watchers[i].told, 1);
    for (int i = 0; i < 64; i++) watch(w, i, 1);
    b.partition = 1;
    assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, NULL, NULL), 0);
    for (int i = 0; i < 64; i++) assert_true(pthread_equal(w->watchers[i].by, pthread_self()));
}

/* ---- calls under way ---- */

struct door {
    atomic_int gone; /* unwatch has returned */
    struct world *w;
    struct weir__log_watch watch;
};

static void wait_at_door(void *user)
{
    struct door *d = user;

    enter(&d->w->gate);
}

static void *run_unwatch(void *arg)
{
    struct door *d = arg;

    weir__log_unwatch(d->w->log, &d->watch);
    d->gone = 1;
    return NULL;
}

/* When unwatch returns the call is over; and appending does not wait for it. */
static void unwatch_waits_for_the_call(void **state)
{
    struct world *w = *state;
    struct door d = {.w = w};
    struct weir__thread t = {0};

    open_log(w, false);
    d.watch = (struct weir__log_watch){.fn = wait_at_door, .user = &d, .partition = 1};
    weir__log_watch(w->log, &d.watch);
    assert_int_equal(offer(w, 1), 0);
    await_entry(&w->gate);
    assert_int_equal(weir__thread_start(&t, "unwatch", run_unwatch, &d, NULL), 0);
    for (int i = 0; i < 100; i++) assert_int_equal(offer(w, 1), 0);
    for (int i = 0; i < 1000; i++) sched_yield();
    assert_int_equal(d.gone, 0);
    open_gate(&w->gate);
    weir__thread_join(&t);
    assert_int_equal(d.gone, 1);
}

struct restless {
    struct world *w;
    int first;
    atomic_int stop;
    struct weir__thread thread;
};

/* Comes and goes all the time, as receivers do. */
static void *run_restless(void *arg)
{
    struct restless *x = arg;

    while (!x->stop)
        for (int i = x->first; i < x->first + MANY / 2; i++) {
            watch(x->w, i, 1);
            if (i % 3 == 0) weir__log_watch(x->w->log, &x->w->watchers[i].watch);
            weir__log_unwatch(x->w->log, &x->w->watchers[i].watch);
        }
    return NULL;
}

/* Half of them come and go beside rounds that tell them; the other half misses nothing. */
static void watchers_come_and_go_beside_a_round(void **state)
{
    struct world *w = *state;
    struct restless x = {.w = w, .first = MANY / 2};

    open_log(w, false);
    assert_int_equal(weir__thread_start(&x.thread, "restless", run_restless, &x, NULL), 0);
    for (int round = 1; round <= 50; round++) {
        for (int i = 0; i < MANY / 2; i++) watch(w, i, 1);
        put(w, 1);
        for (int i = 0; i < MANY / 2; i++) await(&w->watchers[i].told, round);
    }
    x.stop = 1;
    weir__thread_join(&x.thread);
    assert_int_equal(w->log->watches.armed, 0);
}

static void the_last_of_very_many_partitions_has_news(void **state)
{
    struct world *w = *state;
    struct watcher *x, *other;

    open_log(w, true);
    assert_int_equal(weir__log_grow(w->log, WEIR__LOG_PARTITIONS_MAX, NULL), 0);
    x = watch(w, 0, WEIR__LOG_PARTITIONS_MAX - 1);
    other = watch(w, 1, WEIR__LOG_PARTITIONS_MAX - 2);
    put(w, 0);
    assert_int_equal(x->told + other->told, 0);
    put(w, WEIR__LOG_PARTITIONS_MAX - 1);
    assert_int_equal(x->told, 1);
    put(w, WEIR__LOG_PARTITIONS_MAX - 2);
    assert_int_equal(x->told, 1);
    assert_int_equal(other->told, 1);
    weir__log_watch(w->log, &x->watch);
    put(w, 0);
    assert_int_equal(x->told, 1); /* its news are old */
    put(w, WEIR__LOG_PARTITIONS_MAX - 1);
    assert_int_equal(x->told, 2);
}

/* Those who wait hear of the end, also when they are many. */
static void closing_tells_many(void **state)
{
    struct world *w = *state;

    open_log(w, false);
    for (int i = 0; i < MANY; i++) watch(w, i, (uint32_t)i % 70);
    assert_int_equal(weir__log_close(w->log, NULL), 0);
    w->log = NULL;
    for (int i = 0; i < MANY; i++) assert_int_equal(w->watchers[i].told, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(told_once_until_it_watches_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_few_are_told_by_the_committing_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_in_the_middle_leaves_and_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_those_with_news_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_are_told_by_the_pool, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_of_several_partitions_wait_for_the_pool, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(unwatch_waits_for_the_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(watchers_come_and_go_beside_a_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_of_very_many_partitions_has_news, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(closing_tells_many, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
