/* many_test.c - many hubs in one folder and many receivers on one partition: they share threads, and
 * each receiver that is woken as a server's is gets every event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "hub/namespace.h"
#include "hub/payload.h"
#include "hub/receiver.h"
#include "support/calls.h"
#include "support/tempdir.h"

#define HUBS 30
#define RECEIVERS 300
#define PER_GROUP 5
#define EVENTS 400
#define THREADS_MAX 7 /* four flushers, a keeper, this one, and a sanitizer's */
#define WAIT weir__deadline_ns(60000)

struct waiter {
    struct world *w;
    struct weir__receiver *in;
    struct waiter *next;
    bool ready; /* lock */
    uint64_t seen;
};

struct world {
    char root[TEMPDIR_BYTES];
    struct weir__namespace *ns;
    struct weir_error err;
    struct weir__mutex lock;
    struct weir__cond change;
    struct waiter *first, **last; /* lock; those that were woken */
    struct waiter waiters[RECEIVERS];
};

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    weir__mutex_init(&w->lock);
    weir__cond_init(&w->change);
    w->last = &w->first;
    assert_int_equal(tempdir_make(w->root), 0);
    assert_int_equal(weir__namespace_open(&w->ns, w->root, NULL, &w->err), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    calls_limit_threads(-1);
    weir__namespace_close(w->ns, NULL);
    tempdir_remove(w->root);
    weir__cond_fini(&w->change);
    weir__mutex_fini(&w->lock);
    test_free(w);
    return 0;
}

static int threads_now(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[128];
    int count = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &count) == 1) break;
    if (f) fclose(f);
    return count;
}

static int publish(struct weir__hub *hub, bool wait)
{
    static const uint8_t message[] = {0x00, 0x53, 0x75, 0xa0, 3, 'o', 'n', 'e'};
    struct weir__batch batch;
    int rc = weir__batch_of_payload(&batch, 0, weir__bytes_of(message, sizeof message), 0, NULL);

    if (rc != 0) return rc;
    if (wait) return weir__hub_publish_wait(hub, &batch, 0, NULL, WAIT, NULL, NULL);
    return weir__hub_publish(hub, &batch, 0, NULL, WAIT, NULL, NULL, NULL);
}

static void make_hub(struct world *w, const char *name)
{
    struct weir__hub_config config = {.name = name, .partitions = 2};

    assert_int_equal(weir__namespace_hub_create(w->ns, &config, &w->err), 0);
}

static void many_hubs_share_a_few_threads(void **state)
{
    struct world *w = *state;
    uint32_t failed = 1;
    char name[16];

    for (int i = 0; i < HUBS; i++) {
        snprintf(name, sizeof name, "hub%d", i);
        make_hub(w, name);
    }
    weir__namespace_open_hubs(w->ns, &failed);
    assert_int_equal(failed, 0);
    for (int i = 0; i < HUBS; i++) {
        struct weir__hub *hub;

        snprintf(name, sizeof name, "hub%d", i);
        assert_int_equal(weir__namespace_use(w->ns, name, &hub, &w->err), 0);
        for (int n = 0; n < 5; n++) assert_int_equal(publish(hub, n == 4), 0);
        weir__hub_release(hub);
    }
    assert_in_range(threads_now(), 3, THREADS_MAX);
}

/* A hub that could not get its threads for a moment is not bad for ever. */
static void a_hub_without_threads_opens_later(void **state)
{
    struct world *w = *state;
    struct weir__hub *hub = NULL;

    make_hub(w, "h");
    calls_limit_threads(0);
    assert_int_equal(weir__namespace_use(w->ns, "h", &hub, &w->err), WEIR_EBUSY);
    calls_limit_threads(-1);
    assert_int_equal(weir__namespace_use(w->ns, "h", &hub, &w->err), 0);
    assert_int_equal(publish(hub, true), 0);
    weir__hub_release(hub);
}

/* ---- receivers ---- */

static void wake(void *user)
{
    struct waiter *x = user;
    struct world *w = x->w;

    weir__mutex_lock(&w->lock);
    if (!x->ready) {
        x->ready = true;
        x->next = NULL;
        *w->last = x;
        w->last = &x->next;
        weir__cond_signal(&w->change);
    }
    weir__mutex_unlock(&w->lock);
}

static struct waiter *take_woken(struct world *w)
{
    struct waiter *x;

    weir__mutex_lock(&w->lock);
    while (!w->first)
        if (!weir__cond_wait(&w->change, &w->lock, WAIT)) break;
    x = w->first;
    if (x) {
        w->first = x->next;
        if (!w->first) w->last = &w->first;
        x->ready = false;
    }
    weir__mutex_unlock(&w->lock);
    return x;
}

static void attach(struct world *w, struct weir__hub *hub, int i)
{
    struct weir__receiver_options o = {.epoch = WEIR__EPOCH_NONE,
                                       .credit = WEIR__CREDIT_UNLIMITED,
                                       .wake = wake,
                                       .user = &w->waiters[i]};
    char group[16];

    snprintf(group, sizeof group, "g%d", i / PER_GROUP);
    if (i % PER_GROUP == 0)
        assert_int_equal(weir__namespace_group_add(w->ns, "h", group, &w->err), 0);
    o.group = group;
    o.from.kind = WEIR__FROM_EARLIEST;
    w->waiters[i].w = w;
    assert_int_equal(weir__receiver_attach(&w->waiters[i].in, hub, &o, &w->err), 0);
}

static void *run_publisher(void *arg)
{
    for (int i = 0; i < EVENTS; i++)
        if (publish(arg, i % 7 == 0) != 0) abort();
    return NULL;
}

/* Reads until nothing is there, as told; true: it has all of them. */
static bool serve(struct waiter *x)
{
    struct weir__event events[16];
    struct weir__receiver_take take = {.events_max = 16, .events = events};

    do {
        assert_int_equal(weir__receiver_next(x->in, &take, NULL), 0);
        for (uint32_t i = 0; i < take.count; i++) assert_int_equal(events[i].sequence, x->seen++);
    } while (take.count > 0);
    return x->seen == EVENTS;
}

static void each_of_many_receivers_gets_everything(void **state)
{
    struct world *w = *state;
    struct weir__thread publisher = {0};
    struct weir__hub *hub;
    int left = RECEIVERS;

    make_hub(w, "h");
    assert_int_equal(weir__namespace_use(w->ns, "h", &hub, &w->err), 0);
    for (int i = 0; i < RECEIVERS; i++) attach(w, hub, i);
    assert_int_equal(weir__thread_start(&publisher, "publisher", run_publisher, hub, NULL), 0);
    while (left > 0) {
        struct waiter *x = take_woken(w);
        bool had_all;

        assert_non_null(x);
        had_all = x->seen == EVENTS;
        if (serve(x) && !had_all) left--;
    }
    weir__thread_join(&publisher);
    for (int i = 0; i < RECEIVERS; i++) weir__receiver_close(w->waiters[i].in);
    weir__hub_release(hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_hubs_share_a_few_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hub_without_threads_opens_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_of_many_receivers_gets_everything, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
