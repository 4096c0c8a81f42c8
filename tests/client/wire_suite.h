/* wire_suite.h - the contract over a connection to `weir serve`, and what only connections do. */
#ifndef WEIR_TESTS_CLIENT_WIRE_SUITE_H
#define WEIR_TESTS_CLIENT_WIRE_SUITE_H

#include "client/contract/contract.h"
#include "client/wire_place.h"

int contract_open(void **state)
{
    if (place_start() != 0) return -1;
    return place_open((struct weir **)state, NULL);
}

int contract_close(void **state)
{
    int rc = weir_close(*state, &err);

    return place_stop() != 0 ? -1 : rc;
}

const bool contract_lists_keys = false; /* each is told once, when it is made */

/* Only a server that counts bytes answers. */
bool contract_knows_ends(void)
{
    return !place.serve.events_only;
}

/* Another client of the server, with a rule's first key. */
static struct weir *open_with_rule(const struct weir_rule *rule)
{
    char text[SERVE_CONNECTION_BYTES + WEIR_NAME_BYTES + WEIR_KEY_BYTES];
    const char *port = strrchr(place_address(), ':');
    struct weir *w;

    snprintf(text, sizeof text,
             "Endpoint=sb://localhost%s/;SharedAccessKeyName=%s;SharedAccessKey=%s%s%s", port,
             rule->name, rule->key[WEIR_PRIMARY_KEY],
             place.tls ? "" : ";UseDevelopmentEmulator=true",
             place.websocket ? ";TransportType=AmqpWebSockets" : "");
    assert_ok(weir_open(&w, text, &place.options, &err));
    return w;
}

/* The key that was told opens what its rights say, and nothing else, until it is taken away. */
static void a_key_that_was_made_lets_in(void **state)
{
    struct weir_rule rule = {.name = "till", .rights = WEIR_SEND};
    struct weir *w = *state, *till;
    struct weir_producer *p;
    struct weir_hub_info info;

    make_hub(w, 1);
    assert_ok(weir_rule_create(w, NULL, &rule, &err));
    till = open_with_rule(&rule);
    p = open_producer(till);
    send_text(p, "sold");
    close_producer(p);
    assert_ok(weir_hub_info(till, "h", &info, &err));
    assert_int_equal(info.groups, 1);
    assert_int_equal(weir_hub_create(till, "more", NULL, &err), WEIR_EDENIED);
    assert_non_null(strstr(err.text, "'Manage' claim"));
    assert_int_equal(weir_rule_list(till, NULL, NULL, NULL, &err), WEIR_EDENIED);
    assert_ok(weir_close(till, &err));
    assert_ok(weir_rule_delete(w, NULL, "till", &err));
    till = open_with_rule(&rule);
    assert_int_equal(weir_producer_open(&p, till, "h", NULL, &err), WEIR_EDENIED);
    assert_int_equal(weir_group_create(till, "h", "g", &err), WEIR_EDENIED);
    assert_ok(weir_close(till, &err));
}

/* A rule of one hub manages that hub. */
static void a_key_of_a_hub_is_for_that_hub(void **state)
{
    struct weir_rule rule = {.name = "boss", .rights = WEIR_MANAGE};
    struct weir *w = *state, *boss;

    make_hub(w, 1);
    assert_ok(weir_hub_create(w, "other", NULL, &err));
    assert_ok(weir_rule_create(w, "h", &rule, &err));
    assert_int_equal(rule.rights, WEIR_SEND | WEIR_LISTEN | WEIR_MANAGE);
    boss = open_with_rule(&rule);
    assert_ok(weir_group_create(boss, "h", "mine", &err));
    assert_int_equal(weir_group_create(boss, "other", "mine", &err), WEIR_EDENIED);
    assert_int_equal(weir_hub_list(boss, NULL, NULL, &err), WEIR_EDENIED);
    assert_ok(weir_close(boss, &err));
}

/* The last key that opens everything stays: nobody could make another one. */
static void the_last_manager_stays(void **state)
{
    assert_int_equal(weir_rule_delete(*state, NULL, "RootManageSharedAccessKey", &err),
                     WEIR_EDENIED);
    assert_non_null(strstr(err.text, "make another one first"));
}

static void *make_groups(void *arg)
{
    struct weir_error own;
    char name[32];
    int rc = 0;

    for (int i = 0; rc == 0 && i < 5; i++) {
        snprintf(name, sizeof name, "g%lu-%d", (unsigned long)pthread_self() % 100000, i);
        rc = weir_group_create(arg, "h", name, &own);
    }
    return rc == 0 ? arg : NULL;
}

static void threads_administer_at_a_time(void **state)
{
    pthread_t threads[4];
    struct weir_hub_info info;
    void *ended;

    make_hub(*state, 1);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, make_groups, *state);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &ended);
        assert_non_null(ended);
    }
    assert_ok(weir_hub_info(*state, "h", &info, &err));
    assert_int_equal(info.groups, 21);
}

static void hubs_are_described(void **state)
{
    struct weir *w = *state;
    struct weir_hub_info info;

    make_hub(w, 7);
    assert_ok(weir_hub_info(w, "H", &info, &err));
    assert_string_equal(info.name, "h");
    assert_int_equal(info.partitions, 7);
    assert_true(info.created_ms > 1700000000000);
    assert_int_equal(weir_hub_info(w, "nope", &info, &err), WEIR_ENOTFOUND);
}

/* A batch of the largest size, and one byte more. */
static void the_largest_batch_goes_through(void **state)
{
    struct weir *w = *state;
    static char large[1 << 20];
    struct weir_event e = {.body = weir_bytes(large, (1 << 20) - 64)};
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(w, 1);
    p = open_producer(w);
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    e.body.len = 1 << 20;
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    send_text(p, "after");
    r = open_receiver(w, 0);
    assert_int_equal(receive_one(r).body.len, (1 << 20) - 64);
    assert_next(r, "after");
    weir_receiver_close(r);
    close_producer(p);
}

/* No more events are asked for than events_max, beside those that the caller has. */
static void read_ahead_is_limited(void **state)
{
    static struct weir_event events[1000];
    const struct weir_receiver_options o = {.size = sizeof o, .events_max = 7};
    struct weir *w = *state;
    struct weir_received got;
    struct weir_producer *p;
    struct weir_receiver *r;
    uint64_t next = 0;

    make_hub(w, 1);
    for (size_t i = 0; i < 1000; i++) events[i].body = weir_text("one of many");
    p = open_producer(w);
    assert_ok(weir_producer_send(p, events, 1000, PATIENCE_MS, NULL, &err));
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    while (next < 1000) {
        assert_ok(weir_receiver_receive(r, 1000, PATIENCE_MS, &got, &err));
        assert_in_range(got.count, 1, 7);
        for (size_t i = 0; i < got.count; i++) assert_int_equal(got.events[i].sequence, next++);
    }
    weir_receiver_close(r);
    close_producer(p);
}

/* What was sent at once and lies together is given from the event on that was asked for. */
static void a_start_in_the_middle_of_a_batch(void **state)
{
    static struct weir_event events[100];
    struct weir_receiver_options o = {.size = sizeof o, .metrics = true};
    struct weir_receiver_metrics metrics;
    struct weir *w = *state;
    struct weir_received got;
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(w, 1);
    for (size_t i = 0; i < 100; i++) {
        events[i].body = weir_text("one of a hundred");
        events[i].partition_key = weir_text("key");
    }
    p = open_producer(w);
    for (int i = 0; i < 2; i++)
        assert_ok(weir_producer_send(p, events, 100, PATIENCE_MS, NULL, &err));
    for (uint64_t first = 0; first < 200; first += 33) {
        uint64_t next = first, offset = 0;
        o.position = (struct weir_position){.from = WEIR_FROM_SEQUENCE, .value = (int64_t)first};
        assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
        while (next < 200) {
            assert_ok(weir_receiver_receive(r, 7, PATIENCE_MS, &got, &err));
            assert_int_equal(got.missed, 0);
            for (size_t i = 0; i < got.count; i++) {
                assert_int_equal(got.events[i].sequence, next++);
                assert_true(got.events[i].offset > offset);
                assert_text(got.events[i].partition_key, "key");
                offset = got.events[i].offset;
            }
            assert_ok(weir_receiver_metrics(r, &metrics, &err));
            assert_int_equal(metrics.last_sequence, 199);
            assert_true(metrics.retrieved_ms > 1700000000000);
        }
        assert_nothing(r);
        weir_receiver_close(r);
    }
    close_producer(p);
}

static int run_suite(bool tls, bool websocket)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_EVENT_TESTS,
        CONTRACT_PRODUCER_TESTS,
        CONTRACT_RECEIVER_TESTS,
        CONTRACT_ADMIN_TESTS,
        CONTRACT_TEST(a_key_that_was_made_lets_in),
        CONTRACT_TEST(a_key_of_a_hub_is_for_that_hub),
        CONTRACT_TEST(the_last_manager_stays),
        CONTRACT_TEST(threads_administer_at_a_time),
        CONTRACT_TEST(hubs_are_described),
        CONTRACT_TEST(the_largest_batch_goes_through),
        CONTRACT_TEST(read_ahead_is_limited),
        CONTRACT_TEST(a_start_in_the_middle_of_a_batch),
    };

    place.tls = tls;
    place.websocket = websocket;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
