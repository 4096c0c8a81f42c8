/* source.h - what every source of a processor promises. The place is a test program's own, with a
 * hub "h" of two partitions behind it; see client/contract/place.h. */
#ifndef WEIR_TESTS_CONTRACT_SOURCE_H
#define WEIR_TESTS_CONTRACT_SOURCE_H

#include "contract/source_tap.h"

static void a_source_says_what_it_is(void **state)
{
    struct weir_source *s;
    uint32_t partitions = 0;

    make_hub(*state, 2);
    s = source_of(*state);
    assert_int_equal(s->ops->version, WEIR_SOURCE_VERSION);
    assert_string_equal(s->hub, "h");
    assert_string_equal(s->group, "$Default");
    assert_true(strlen(s->space) > 0);
    for (const char *c = s->space; *c; c++) assert_false(*c >= 'A' && *c <= 'Z');
    assert_ok(s->ops->count(s, &partitions, &err));
    assert_int_equal(partitions, 2);
    weir_source_close(s);
}

static void what_is_not_there_is_said(void **state)
{
    struct weir_source *s;

    make_hub(*state, 2);
    assert_int_equal(weir_source_hub(&s, *state, "nope", NULL, &err), WEIR_ENOTFOUND);
    assert_null(s);
    assert_int_equal(weir_source_hub(&s, *state, "h", "nope", &err), WEIR_ENOTFOUND);
    assert_null(s);
    assert_int_equal(weir_source_hub(&s, *state, "", NULL, &err), WEIR_EINVAL);
}

static void names_have_a_length(void **state)
{
    struct weir_source *s;
    char name[258];

    make_hub(*state, 2);
    memset(name, 'n', sizeof name);
    name[257] = '\0';
    assert_int_equal(weir_source_hub(&s, *state, name, NULL, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a hub's name has 1 to 256 bytes");
    assert_int_equal(weir_source_hub(&s, *state, NULL, NULL, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a hub's name has 1 to 256 bytes");
    name[256] = '\0';
    assert_int_equal(weir_source_hub(&s, *state, name, NULL, &err), WEIR_ENOTFOUND);
    name[64] = '\0';
    assert_int_equal(weir_source_hub(&s, *state, "h", name, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a group's name has 1 to 63 bytes");
    assert_int_equal(weir_source_hub(&s, *state, "h", "", &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a group's name has 1 to 63 bytes");
    name[63] = '\0'; /* that is for the hub to judge */
    assert_int_not_equal(weir_source_hub(&s, *state, "h", name, &err), 0);
    assert_memory_equal(err.text, "consumer group 'nnn", 19);
}

/* A look is no read: the owner goes on, and its name may be as long as it likes. */
static void a_source_is_opened_beside_an_owner(void **state)
{
    static const char *const owners[] = {
        "an owner with a name of its own that is far longer than what a hub takes of a receiver's "
        "name",
        NULL};
    struct weir_source *s;
    struct weir_producer *p;

    make_hub(*state, 2);
    s = source_of(*state);
    p = open_pinned(*state, 0);
    send_text(p, "zero");
    for (int i = 0; i < 2; i++) {
        struct tap t = {0};
        tap_owner = owners[i];
        tap_open(&t, s, 1 + i);
        weir_source_close(source_of(*state));
        assert_tapped(&t, 0, "zero");
        tap_close(&t);
    }
    tap_owner = "tester";
    close_producer(p);
    weir_source_close(s);
}

static void events_come_in_order_and_wake_their_reader(void **state)
{
    struct weir_source *s;
    struct weir_producer *p;
    struct weir_received got;
    struct tap t = {0};
    int wakes;

    make_hub(*state, 2);
    s = source_of(*state);
    p = open_pinned(*state, 0);
    tap_open(&t, s, 1);
    for (int i = 0; i < 3; i++) {
        char text[16];
        wakes = tap_wakes(&t);
        assert_int_equal(s->ops->receive(t.stream, 10, &got, &err), WEIR_ETIMEDOUT);
        assert_int_equal(got.count, 0);
        snprintf(text, sizeof text, "event %d", i);
        send_text(p, text);
        tap_wait(&t, wakes);
        assert_tapped(&t, (uint64_t)i, text);
    }
    tap_close(&t);
    close_producer(p);
    weir_source_close(s);
}

static void no_more_is_given_than_was_asked_for(void **state)
{
    struct weir_source *s;
    struct weir_producer *p;
    struct weir_event events[10] = {{.body = {"x", 1}}};
    struct weir_received got;
    struct tap t = {0};
    uint64_t next = 0;

    make_hub(*state, 2);
    for (int i = 1; i < 10; i++) events[i] = events[0];
    s = source_of(*state);
    p = open_pinned(*state, 0);
    assert_ok(weir_producer_send(p, events, 10, PATIENCE_MS, NULL, &err));
    tap_open(&t, s, 1);
    while (next < 10) {
        assert_ok(tap_receive(&t, 4, &got));
        assert_in_range(got.count, 1, 4);
        for (size_t i = 0; i < got.count; i++) assert_int_equal(got.events[i].sequence, next++);
    }
    tap_close(&t);
    close_producer(p);
    weir_source_close(s);
}

static void a_stream_begins_behind_a_checkpoint(void **state)
{
    struct weir_position at = {.from = WEIR_FROM_SEQUENCE, .after = true, .value = 1};
    struct weir_source *s;
    struct weir_producer *p;
    struct tap t = {0}, beyond = {0};

    make_hub(*state, 2);
    s = source_of(*state);
    p = open_pinned(*state, 0);
    send_text(p, "zero");
    send_text(p, "one");
    send_text(p, "two");
    assert_ok(tap_try(&t, s, 1, at));
    assert_tapped(&t, 2, "two");
    tap_close(&t);
    at.value = 2; /* at the end is good: nothing is there yet */
    assert_ok(tap_try(&t, s, 1, at));
    send_text(p, "three");
    assert_tapped(&t, 3, "three");
    tap_close(&t);
    at.value = 500;
    assert_int_equal(tap_try(&beyond, s, 1, at), WEIR_EINVAL);
    assert_null(beyond.stream);
    assert_int_equal(beyond.over, 0); /* what never was open has no end */
    close_producer(p);
    weir_source_close(s);
}

/* Also when it reads nothing at the moment, because its handler is busy. */
static void a_later_owner_shuts_out_an_earlier(void **state)
{
    struct weir_source *s;
    struct weir_producer *p;
    struct weir_received got;
    struct tap old = {0}, new = {0}, late = {0};
    int rc;

    make_hub(*state, 2);
    s = source_of(*state);
    p = open_pinned(*state, 0);
    send_text(p, "zero");
    tap_open(&old, s, 3);
    assert_tapped(&old, 0, "zero");
    tap_open(&new, s, 4);
    weir__mutex_lock(&old.lock);
    while (old.over == 0 &&
           weir__cond_wait(&old.changed, &old.lock, weir__deadline_ns(PATIENCE_MS)))
        continue;
    assert_int_equal(old.over, WEIR_ESTOLEN);
    weir__mutex_unlock(&old.lock);
    while ((rc = tap_receive(&old, 1, &got)) == 0) continue;
    assert_int_equal(rc, WEIR_ESTOLEN);
    assert_int_equal(tap_try(&late, s, 3, (struct weir_position){.from = WEIR_FROM_EARLIEST}),
                     WEIR_EEPOCH);
    assert_tapped(&new, 0, "zero");
    tap_close(&old);
    tap_close(&new);
    close_producer(p);
    weir_source_close(s);
}

static void the_end_is_known(void **state)
{
    struct weir_source *s;
    struct weir_producer *p;
    struct weir_partition_tail tail;
    struct tap t = {0};

    make_hub(*state, 2);
    s = source_of(*state);
    p = open_pinned(*state, 0);
    send_text(p, "zero");
    send_text(p, "one");
    tap_open(&t, s, 1);
    assert_tapped(&t, 0, "zero");
    s->ops->tail(t.stream, &tail);
    assert_true(tail.known);
    assert_int_equal(tail.last_sequence, 1);
    assert_true(tail.last_time_ms > 0);
    assert_true(tail.heard_ms > 0);
    tap_close(&t);
    close_producer(p);
    weir_source_close(s);
}

static void partitions_do_not_disturb_each_other(void **state)
{
    struct weir_source *s;
    struct weir_producer *p;
    struct weir_received got;
    struct tap t = {0};

    make_hub(*state, 2);
    s = source_of(*state);
    p = open_pinned(*state, 1);
    tap_open(&t, s, 1);
    send_text(p, "of the other");
    assert_int_equal(s->ops->receive(t.stream, 10, &got, &err), WEIR_ETIMEDOUT);
    tap_close(&t);
    s->ops->shut(NULL);
    close_producer(p);
    weir_source_close(s);
}

#define SOURCE_TEST(test) cmocka_unit_test_setup_teardown(test, contract_open, contract_close)

static int run_sources(void)
{
    const struct CMUnitTest tests[] = {
        SOURCE_TEST(a_source_says_what_it_is),
        SOURCE_TEST(what_is_not_there_is_said),
        SOURCE_TEST(names_have_a_length),
        SOURCE_TEST(a_source_is_opened_beside_an_owner),
        SOURCE_TEST(events_come_in_order_and_wake_their_reader),
        SOURCE_TEST(no_more_is_given_than_was_asked_for),
        SOURCE_TEST(a_stream_begins_behind_a_checkpoint),
        SOURCE_TEST(a_later_owner_shuts_out_an_earlier),
        SOURCE_TEST(the_end_is_known),
        SOURCE_TEST(partitions_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
