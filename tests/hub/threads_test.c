/* threads_test.c - everything at once, for the thread sanitizer to watch: publishers, receivers
 * that push each other out, cancels, and hubs that come and go. On a real disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "hub/namespace.h"
#include "hub/payload.h"
#include "hub/receiver.h"
#include "support/dice.h"
#include "support/tempdir.h"

#define PUBLISHERS 2
#define BATCHES 150 /* of each publisher */
#define BATCH_EVENTS 10
#define READERS 4
#define EVENTS 3000u /* of all publishers */

_Static_assert(EVENTS == PUBLISHERS * BATCHES * BATCH_EVENTS, "events");

static char dir[TEMPDIR_BYTES];
static struct weir__namespace *ns;
static struct weir__hub *hub;

static int set_up(void **state)
{
    struct weir__hub_config config = {.name = "homes", .partitions = 1};
    struct weir__namespace_options options = {.segment_bytes_max = 1 << 20};

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    assert_int_equal(weir__namespace_open(&ns, dir, &options, NULL), 0);
    assert_int_equal(weir__namespace_hub_create(ns, &config, NULL), 0);
    return weir__namespace_use(ns, "homes", &hub, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    weir__hub_release(hub);
    assert_int_equal(weir__namespace_close(ns, NULL), 0);
    tempdir_remove(dir);
    return 0;
}

static void *publish_batches(void *arg)
{
    struct payload *payload = malloc(sizeof *payload);
    struct weir__log_receipt receipt;
    struct weir__batch batch;

    (void)arg;
    payload_batch(payload, "key", "x", BATCH_EVENTS);
    for (int i = 0; i < BATCHES; i++)
        if (weir__batch_of_payload(&batch, WEIR__AMQP_FORMAT_BATCH, payload_bytes(payload), 0,
                                   NULL) != 0 ||
            weir__hub_publish_wait(hub, &batch, 0, NULL, INT64_MAX, &receipt, NULL) != 0)
            abort();
    free(payload);
    return NULL;
}

/* Where the receivers are together: who has the place goes on where the one before stopped. A
 * receiver that was pushed out may have been given events that another one gets again, so a
 * position is only ever moved forward. */
struct progress {
    atomic_uint_fast64_t next;
    atomic_int stolen;
};

static void advance(struct progress *p, uint64_t to)
{
    uint_fast64_t now = atomic_load(&p->next);

    while (now < to && !atomic_compare_exchange_weak(&p->next, &now, to)) {
    }
}

/* Reads until it is pushed out; false at the end of everything. */
static bool read_a_while(struct weir__receiver *r, struct progress *p)
{
    struct weir__event events[16];
    struct weir__receiver_take take = {.events_max = 16, .events = events};
    uint64_t expected = weir__receiver_sequence(r);

    for (;;) {
        int rc = weir__receiver_pull(r, &take, weir__deadline_ns(20000), NULL);
        if (rc == WEIR_ESTOLEN) {
            atomic_fetch_add(&p->stolen, 1);
            return true;
        }
        if (rc != 0) abort();
        for (uint32_t i = 0; i < take.count; i++)
            if (events[i].sequence != expected++ || events[i].key.len != 3) abort();
        advance(p, expected);
        if (expected == EVENTS) return false;
    }
}

static void *steal_and_read(void *arg)
{
    struct progress *p = arg;
    bool more = true;

    while (more && atomic_load(&p->next) < EVENTS) {
        struct weir__receiver_options o = {.epoch = 1,
                                           .credit = WEIR__CREDIT_UNLIMITED,
                                           .name = "thief"};
        struct weir__receiver *r;
        o.from = (struct weir__position){WEIR__FROM_SEQUENCE, true, (int64_t)atomic_load(&p->next)};
        if (weir__receiver_attach(&r, hub, &o, NULL) != 0) abort();
        more = read_a_while(r, p);
        weir__receiver_close(r);
    }
    return NULL;
}

static void receivers_steal_from_each_other(void **state)
{
    struct weir__thread threads[PUBLISHERS + READERS] = {{0}};
    struct weir__hub_stats stats;
    struct progress progress = {0};
    int n = 0;

    (void)state;
    for (int i = 0; i < READERS; i++)
        assert_int_equal(weir__thread_start(&threads[n++], "reader", steal_and_read, &progress,
                                            NULL),
                         0);
    for (int i = 0; i < PUBLISHERS; i++)
        assert_int_equal(weir__thread_start(&threads[n++], "publisher", publish_batches, NULL,
                                            NULL),
                         0);
    while (n > 0) weir__thread_join(&threads[--n]);
    assert_int_equal(atomic_load(&progress.next), EVENTS);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 0);
    assert_true(atomic_load(&progress.stolen) > 0);
    assert_true(stats.receivers_displaced >= (uint64_t)atomic_load(&progress.stolen));
    assert_true(stats.delivered_events >= EVENTS);
}

/* ---- cancel ---- */

struct waiter {
    struct weir__receiver *receiver;
    atomic_bool started;
    int rc; /* of its pull */
};

static void *wait_for_events(void *arg)
{
    struct waiter *w = arg;
    struct weir__event event;
    struct weir__receiver_take take = {.events_max = 1, .events = &event};

    atomic_store(&w->started, true);
    w->rc = weir__receiver_pull(w->receiver, &take, INT64_MAX, NULL);
    return NULL;
}

static void cancel_from_another_thread(void **state)
{
    struct weir__receiver_options o = {.epoch = WEIR__EPOCH_NONE, .credit = 1};
    struct weir__thread thread = {0};
    struct waiter waiter = {0};

    (void)state;
    assert_int_equal(weir__receiver_attach(&waiter.receiver, hub, &o, NULL), 0);
    for (int i = 0; i < 200; i++) { /* before, while and as it begins to wait */
        atomic_store(&waiter.started, false);
        assert_int_equal(weir__thread_start(&thread, "waiter", wait_for_events, &waiter, NULL), 0);
        while (i % 2 && !atomic_load(&waiter.started)) {
        }
        weir__receiver_cancel(waiter.receiver);
        weir__thread_join(&thread);
        assert_int_equal(waiter.rc, WEIR_ECANCELED);
    }
    weir__receiver_close(waiter.receiver);
}

static void pushed_out_while_waiting(void **state)
{
    struct weir__receiver_options o = {.epoch = 0, .credit = 1};
    struct weir__thread thread = {0};
    struct weir__receiver *thief;
    struct waiter waiter = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir__receiver_attach(&waiter.receiver, hub, &o, NULL), 0);
        assert_int_equal(weir__thread_start(&thread, "waiter", wait_for_events, &waiter, NULL), 0);
        assert_int_equal(weir__receiver_attach(&thief, hub, &o, NULL), 0);
        weir__thread_join(&thread);
        assert_int_equal(waiter.rc, WEIR_ESTOLEN);
        weir__receiver_close(waiter.receiver);
        weir__receiver_close(thief);
    }
}

/* ---- administration beside use ---- */

static void *come_and_go(void *arg)
{
    const char *name = arg;
    struct weir__hub_config config = {.name = name, .partitions = 2};

    for (int i = 0; i < 5; i++)
        if (weir__namespace_hub_create(ns, &config, NULL) != 0 ||
            weir__namespace_group_add(ns, name, "g", NULL) != 0 ||
            weir__namespace_group_remove(ns, name, "g", NULL) != 0 ||
            weir__namespace_hub_delete(ns, name, NULL) != 0)
            abort();
    return NULL;
}

static atomic_bool administration_is_over;

static void *use_what_is_there(void *arg)
{
    struct weir__receiver_options o = {.epoch = 0, .credit = 1, .group = "g"};
    uint64_t id;

    while (!atomic_load(&administration_is_over)) {
        struct weir__receiver *r = NULL;
        struct weir__hub *found = NULL;
        int rc = weir__namespace_use(ns, arg, &found, NULL);
        if (rc == 0) rc = weir__hub_producer_new(found, &id, NULL);
        if (rc == 0) rc = weir__receiver_attach(&r, found, &o, NULL);
        weir__receiver_close(r);
        weir__hub_release(found);
        if (rc != 0 && rc != WEIR_ENOTFOUND) abort();
    }
    return NULL;
}

static void hubs_come_and_go_beside_their_users(void **state)
{
    static char names[2][8] = {"one", "two"};
    struct weir__thread admin[2] = {{0}}, users[2] = {{0}};

    (void)state;
    atomic_store(&administration_is_over, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__thread_start(&users[i], "user", use_what_is_there, names[i], NULL),
                         0);
        assert_int_equal(weir__thread_start(&admin[i], "admin", come_and_go, names[i], NULL), 0);
    }
    for (int i = 0; i < 2; i++) weir__thread_join(&admin[i]);
    atomic_store(&administration_is_over, true);
    for (int i = 0; i < 2; i++) weir__thread_join(&users[i]);
}

static void *change_rules(void *arg)
{
    struct weir__rule rule = {.name = "RootManageSharedAccessKey",
                              .rights = WEIR__RIGHT_LISTEN,
                              .key = {"x", "y"}};

    for (int i = 0; i < 20; i++)
        if (weir__namespace_rule_add(ns, NULL, &rule, NULL) != 0 ||
            weir__namespace_rule_remove(ns, NULL, rule.name, NULL) != 0)
            abort();
    atomic_store(&administration_is_over, true);
    return arg;
}

/* A token is compared with the rules while they change. */
static void rules_change_beside_their_tokens(void **state)
{
    static const char token[] = "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"
                                "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&"
                                "se=1700000000&skn=RootManageSharedAccessKey";
    struct weir__bytes resource = weir__bytes_of("sb://localhost/eh1", 18);
    struct weir__thread admin = {0};
    struct weir__access_grant grant;

    (void)state;
    atomic_store(&administration_is_over, false);
    assert_int_equal(weir__thread_start(&admin, "admin", change_rules, NULL, NULL), 0);
    while (!atomic_load(&administration_is_over))
        assert_int_equal(weir__namespace_verify(ns, weir__bytes_of(token, sizeof token - 1),
                                                resource, 1699999999, &grant, NULL),
                         WEIR_EDENIED);
    weir__thread_join(&admin);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(receivers_steal_from_each_other),  TEST(cancel_from_another_thread),
        TEST(pushed_out_while_waiting),         TEST(hubs_come_and_go_beside_their_users),
        TEST(rules_change_beside_their_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
