#define _GNU_SOURCE /* memmem */
#include "hub/receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/thread.h"
#include "hub/world.h"

#define ROOM 64

static struct world w;
static struct weir__hub *hub;
static struct weir__event events[ROOM];
static struct weir__receiver_take take;

static int set_up_hub(const struct weir__hub_config *config)
{
    world_init(&w, simfs_new());
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_hub_create(w.ns, config, &w.err), 0);
    take = (struct weir__receiver_take){.events_max = ROOM, .events = events};
    return weir__namespace_use(w.ns, "homes", &hub, &w.err);
}

static int set_up(void **state)
{
    (void)state;
    return set_up_hub(&(struct weir__hub_config){.name = "homes", .partitions = 2});
}

static int tear_down(void **state)
{
    (void)state;
    weir__hub_release(hub);
    hub = NULL;
    world_fini(&w);
    return 0;
}

static void reopen(void)
{
    weir__hub_release(hub);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
}

static int attach(struct weir__receiver **out, enum weir__position_kind kind, int64_t value,
                  bool inclusive)
{
    struct weir__receiver_options options = {.from = {kind, inclusive, value},
                                             .epoch = WEIR__EPOCH_NONE,
                                             .credit = WEIR__CREDIT_UNLIMITED};

    return weir__receiver_attach(out, hub, &options, &w.err);
}

/* For batches as they lie, from the beginning. */
static int attach_batches(struct weir__receiver **out)
{
    struct weir__receiver_options options = {.from = {.kind = WEIR__FROM_EARLIEST},
                                             .epoch = WEIR__EPOCH_NONE,
                                             .credit = WEIR__CREDIT_UNLIMITED,
                                             .batches = true};

    return weir__receiver_attach(out, hub, &options, &w.err);
}

static int attach_as(struct weir__receiver **out, int64_t epoch, const char *name)
{
    struct weir__receiver_options options = {.epoch = epoch, .name = name, .credit = 100};

    return weir__receiver_attach(out, hub, &options, &w.err);
}

static int next(struct weir__receiver *r)
{
    return weir__receiver_next(r, &take, &w.err);
}

static void publish(const char *text, int count)
{
    assert_int_equal(world_publish(&w, hub, 0, text, count, NULL), 0);
}

static void events_in_order_across_batches(void **state)
{
    struct weir__receiver *r;
    uint64_t seen = 0;

    (void)state;
    for (int i = 0; i < 40; i++) publish("x", 1 + i % 7);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    for (;;) {
        assert_int_equal(next(r), 0);
        if (take.count == 0) break;
        for (uint32_t i = 0; i < take.count; i++) {
            assert_int_equal(events[i].sequence, seen++);
            assert_null(events[i].key.at);
        }
        assert_int_equal(weir__receiver_sequence(r), seen);
    }
    assert_int_equal(seen, 155);
    publish("later", 1);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 1);
    assert_true(world_is_event(&events[0], "later", 0));
    weir__receiver_close(r);
}

/* Sequence number of the first event after a position; -1: none yet. */
static int64_t first_from(enum weir__position_kind kind, int64_t value, bool inclusive)
{
    struct weir__receiver *r;
    int64_t first;

    assert_int_equal(attach(&r, kind, value, inclusive), 0);
    assert_int_equal(next(r), 0);
    first = take.count ? (int64_t)events[0].sequence : -1;
    weir__receiver_close(r);
    return first;
}

static void positions(void **state)
{
    struct weir__log_receipt receipt[3] = {{0}};
    int64_t at[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_publish(&w, hub, 0, "x", 10, &receipt[i]), 0);
        at[i] = (int64_t)receipt[i].offset;
        simclock_pass(&w.time, 1000);
    }
    assert_int_equal(first_from(WEIR__FROM_EARLIEST, 0, false), 0);
    assert_int_equal(first_from(WEIR__FROM_LATEST, 0, false), -1);
    assert_int_equal(first_from(WEIR__FROM_OFFSET, -1, false), 0);
    assert_int_equal(first_from(WEIR__FROM_OFFSET, at[1] + 5, true), 15);
    assert_int_equal(first_from(WEIR__FROM_OFFSET, at[1] + 5, false), 16);
    assert_int_equal(first_from(WEIR__FROM_OFFSET, at[2] + 9, false), -1);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, -1, false), 0);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, 0, true), 0);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, 12, true), 12);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, 12, false), 13);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, 29, false), -1);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, 30, true), -1); /* the next one to come */
    assert_int_equal(first_from(WEIR__FROM_TIME, receipt[1].time_ms, true), 10);
    assert_int_equal(first_from(WEIR__FROM_TIME, receipt[1].time_ms, false), 20);
    assert_int_equal(first_from(WEIR__FROM_TIME, 0, false), 0);
    assert_int_equal(first_from(WEIR__FROM_TIME, receipt[2].time_ms + 5, false), -1);
}

static void positions_beyond_the_end(void **state)
{
    struct weir__log_receipt receipt = {0};
    struct weir__receiver *r;
    char expected[256];

    (void)state;
    assert_int_equal(attach(&r, WEIR__FROM_OFFSET, 5, false), WEIR_EINVAL);
    assert_string_equal(w.err.text, "The supplied offset '5' is invalid. The last offset in the "
                                    "system is '-1'");
    assert_int_equal(attach(&r, WEIR__FROM_SEQUENCE, -2, true), WEIR_EINVAL);
    assert_int_equal(world_publish(&w, hub, 0, "x", 10, &receipt), 0);
    assert_int_equal(attach(&r, WEIR__FROM_SEQUENCE, 10, false), WEIR_EINVAL);
    assert_string_equal(w.err.text, "The supplied sequence number '10' is invalid. The last "
                                    "sequence number in the system is '9'");
    assert_int_equal(attach(&r, WEIR__FROM_SEQUENCE, 11, true), WEIR_EINVAL);
    assert_int_equal(attach(&r, WEIR__FROM_OFFSET, (int64_t)receipt.offset + 10, true),
                     WEIR_EINVAL);
    snprintf(expected, sizeof expected,
             "The supplied offset '%llu' is invalid. The last offset in the system is '%llu'",
             (unsigned long long)receipt.offset + 10, (unsigned long long)receipt.offset + 9);
    assert_string_equal(w.err.text, expected);
    assert_int_equal(attach(&r, WEIR__POSITION_KINDS, 0, true), WEIR_EINVAL);
}

static void credit_bounds_what_is_given(void **state)
{
    struct weir__receiver_options options = {.epoch = WEIR__EPOCH_NONE};
    struct weir__receiver *r;

    (void)state;
    publish("x", 10);
    assert_int_equal(weir__receiver_attach(&r, hub, &options, &w.err), 0);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 0);
    weir__receiver_credit_add(r, 4);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 4);
    assert_int_equal(weir__receiver_credit(r), 0);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 0);
    weir__receiver_credit_set(r, WEIR__CREDIT_UNLIMITED);
    weir__receiver_credit_add(r, 1);
    take.events_max = 3;
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 3);
    assert_int_equal(events[0].sequence, 4);
    assert_true(weir__receiver_credit(r) == WEIR__CREDIT_UNLIMITED);
    weir__receiver_close(r);
}

static void bytes_bound_what_is_given(void **state)
{
    struct weir__receiver *r;
    struct payload one = {.len = 0};

    (void)state;
    publish("x", 10);
    payload_event(&one, "x", 0);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    take.bytes_max = 2 * one.len;
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 2);
    take.bytes_max = 1; /* one is given even when it is larger */
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 1);
    assert_int_equal(events[0].sequence, 2);
    take.bytes_max = 0;
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 7);
    assert_int_equal(events[0].sequence, 3);
    weir__receiver_close(r);
}

/* ---- epochs ---- */

static void an_epoch_pushes_out_and_tells(void **state)
{
    struct weir__receiver *first, *second, *low;
    struct weir__hub_stats stats;

    (void)state;
    publish("x", 1);
    assert_int_equal(attach_as(&first, 1, "a"), 0);
    assert_int_equal(attach_as(&low, 0, "b"), WEIR_EEPOCH);
    assert_non_null(strstr(w.err.text, "Receiver 'a' with a higher epoch '1' already exists."));
    assert_int_equal(next(first), 0);
    assert_int_equal(attach_as(&second, 1, "c"), 0);
    for (int i = 0; i < 2; i++) { /* from now on, however often it asks */
        assert_int_equal(next(first), WEIR_ESTOLEN);
        assert_string_equal(w.err.text,
                            "New receiver 'c' with higher epoch of '1' is created hence current "
                            "receiver 'a' with epoch '1' is getting disconnected. If you are "
                            "recreating the receiver, make sure a higher epoch is used.");
    }
    assert_int_equal(next(second), 0);
    assert_int_equal(take.count, 1);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 1);
    assert_int_equal(stats.receivers_attached, 2);
    assert_int_equal(stats.receivers_refused, 1);
    assert_int_equal(stats.receivers_displaced, 1);
    assert_int_equal(stats.delivered_events, 2);
    weir__receiver_close(first); /* leaves nobody's place but its own */
    assert_int_equal(next(second), 0);
    weir__receiver_close(second);
    assert_int_equal(attach_as(&low, 0, "b"), 0); /* the place is free at once */
    weir__receiver_close(low);
}

static void groups_and_partitions_are_places_of_their_own(void **state)
{
    struct weir__receiver_options o = {.epoch = 5, .credit = 1};
    struct weir__receiver *r[3];

    (void)state;
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), 0);
    assert_int_equal(weir__receiver_attach(&r[0], hub, &o, &w.err), 0);
    o.partition = 1;
    o.epoch = WEIR__EPOCH_NONE;
    assert_int_equal(weir__receiver_attach(&r[1], hub, &o, &w.err), 0);
    o.partition = 0;
    o.group = "g";
    assert_int_equal(weir__receiver_attach(&r[2], hub, &o, &w.err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next(r[i]), 0);
        weir__receiver_close(r[i]);
    }
    o.partition = 2;
    assert_int_equal(weir__receiver_attach(&r[0], hub, &o, &w.err), WEIR_EINVAL);
}

static void six_without_epoch(void **state)
{
    struct weir__receiver *r[5], *sixth, *owner;

    (void)state;
    for (int i = 0; i < 5; i++) assert_int_equal(attach_as(&r[i], WEIR__EPOCH_NONE, "n"), 0);
    assert_int_equal(attach_as(&sixth, WEIR__EPOCH_NONE, NULL), WEIR_ELIMIT);
    weir__receiver_close(r[0]);
    assert_int_equal(attach_as(&r[0], WEIR__EPOCH_NONE, NULL), 0);
    assert_int_equal(attach_as(&owner, 0, "o"), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(next(r[i]), WEIR_ESTOLEN);
        weir__receiver_close(r[i]);
    }
    assert_int_equal(attach_as(&sixth, WEIR__EPOCH_NONE, NULL), WEIR_EEPOCH);
    weir__receiver_close(owner);
}

/* A receiver that is refused for its position does not push anybody out. */
static void a_bad_position_steals_nothing(void **state)
{
    struct weir__receiver_options bad = {.epoch = 9,
                                         .credit = 1,
                                         .from = {WEIR__FROM_SEQUENCE, false, 77}};
    struct weir__receiver *holder, *thief;

    (void)state;
    assert_int_equal(attach_as(&holder, 1, NULL), 0);
    assert_int_equal(weir__receiver_attach(&thief, hub, &bad, &w.err), WEIR_EINVAL);
    bad.from = (struct weir__position){0};
    bad.name = "a name of sixty-five characters, which is one more than is allowed";
    assert_int_equal(weir__receiver_attach(&thief, hub, &bad, &w.err), WEIR_EINVAL);
    assert_int_equal(next(holder), 0);
    weir__receiver_close(holder);
}

/* ---- waiting ---- */

static void count_wake(void *user)
{
    (*(int *)user)++;
}

static void wakes_once_until_it_is_looked_at(void **state)
{
    int wakes = 0;
    struct weir__receiver_options o = {.epoch = 0,
                                       .credit = 100,
                                       .wake = count_wake,
                                       .user = &wakes};
    struct weir__receiver *r, *thief;

    (void)state;
    assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
    publish("x", 1);
    publish("x", 1);
    assert_int_equal(wakes, 1);
    assert_int_equal(next(r), 0);
    assert_int_equal(world_publish(&w, hub, 1, "x", 1, NULL), 0); /* another partition */
    assert_int_equal(wakes, 1);
    publish("x", 1);
    assert_int_equal(wakes, 2);
    assert_int_equal(next(r), 0);
    assert_int_equal(attach_as(&thief, 0, NULL), 0);
    assert_int_equal(wakes, 3);
    weir__receiver_close(r);
    weir__receiver_close(thief);
}

/* Somebody who has no credit does not look at the events; that it is over it hears all the same, and
 * need not ask for events to know why. */
static void the_end_wakes_behind_news_that_wait(void **state)
{
    static const int codes[] = {WEIR_ESTOLEN, WEIR_ENOTFOUND, WEIR_ENOTFOUND};
    int wakes = 0;
    struct weir__receiver_options o = {.group = "g", .wake = count_wake, .user = &wakes};
    struct weir__receiver *r, *thief = NULL;

    (void)state;
    for (int i = 0; i < 3; i++, wakes = 0) {
        weir__namespace_group_add(w.ns, "homes", "g", NULL);
        assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
        publish("x", 1);
        assert_int_equal(wakes, 1);
        assert_int_equal(weir__receiver_over(r, &w.err), 0);
        if (i == 0) assert_int_equal(weir__receiver_attach(&thief, hub, &o, &w.err), 0);
        if (i == 1) assert_int_equal(weir__namespace_group_remove(w.ns, "homes", "g", &w.err), 0);
        if (i == 2) assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
        assert_int_equal(wakes, 2);
        assert_int_equal(weir__receiver_over(r, &w.err), codes[i]);
        assert_true(strlen(w.err.text) > 0);
        weir__receiver_close(r);
        if (i == 0) weir__receiver_close(thief);
    }
}

static void pull_gives_up_at_its_deadline_and_when_cancelled(void **state)
{
    struct weir__receiver *r;

    (void)state;
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    assert_int_equal(weir__receiver_pull(r, &take, 0, &w.err), WEIR_ETIMEDOUT);
    assert_int_equal(weir__receiver_pull(r, &take, weir__deadline_ns(5), &w.err), WEIR_ETIMEDOUT);
    weir__receiver_cancel(r);
    assert_int_equal(weir__receiver_pull(r, &take, INT64_MAX, &w.err), WEIR_ECANCELED);
    publish("x", 1); /* and it goes on */
    assert_int_equal(weir__receiver_pull(r, &take, INT64_MAX, &w.err), 0);
    assert_int_equal(take.count, 1);
    weir__receiver_close(r);
}

/* ---- what the log may have to say ---- */

static void expired_events_are_told(void **state)
{
    struct weir__hub_config config = {.name = "homes", .partitions = 1, .retain_bytes = 1 << 20};
    struct weir__partition_properties p;
    struct weir__receiver *r;

    (void)state;
    tear_down(NULL);
    assert_int_equal(set_up_hub(&config), 0);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    do {
        for (int i = 0; i < 50; i++) publish("a text of some length to fill the segments", 500);
        simclock_pass(&w.time, 60000);
        assert_int_equal(weir__namespace_step(w.ns, &w.err), 0);
        assert_int_equal(weir__hub_partition_properties(hub, 0, &p, &w.err), 0);
        assert_true(p.last_sequence < 1000000);
    } while (p.begin_sequence == 0);
    assert_int_equal(next(r), 0);
    assert_true(take.count > 0);
    assert_int_equal(take.missed, p.begin_sequence);
    assert_int_equal(events[0].sequence, p.begin_sequence);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.missed, 0);
    weir__receiver_close(r);
    assert_int_equal(first_from(WEIR__FROM_SEQUENCE, 0, true), p.begin_sequence);
    assert_int_equal(first_from(WEIR__FROM_OFFSET, WEIR__LOG_ORIGIN, true), p.begin_sequence);
}

/* Flips a bit so many bytes in front of the stored text of an event. */
static void damage_before(const char *text, size_t bytes)
{
    for (size_t i = 0; simfs_path(w.disk, i); i++) {
        const char *path = simfs_path(w.disk, i);
        uint64_t size = simfs_size(w.disk, path);
        uint8_t *content = malloc(size + 1), *at;
        assert_true(simfs_peek(w.disk, path, content, size, 0) == (long)size);
        at = memmem(content, size, text, strlen(text));
        if (at) simfs_flip(w.disk, path, ((uint64_t)(at - content) - bytes) * 8);
        free(content);
        if (at) return;
    }
    fail_msg("'%s' is not on the disk", text);
}

/* A header is larger than what lies between it and the first event. */
#define HEADER_BEFORE 40u

/* Three batches of 3, 4 and 5 events, of which the one with this text is damaged while the hub is
 * closed, so many bytes in front of it. */
static void damage_batch(const char *text, size_t bytes_before)
{
    publish("before", 3);
    publish("in the middle", 4);
    publish("after", 5);
    weir__hub_release(hub);
    assert_int_equal(world_close(&w), 0);
    damage_before(text, bytes_before);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
}

static void damage_middle(size_t bytes_before)
{
    damage_batch("in the middle", bytes_before);
}

static void damaged_events_are_passed_over_when_told_to(void **state)
{
    struct weir__receiver *r;
    uint64_t first = 0, last = 0;

    (void)state;
    damage_middle(0);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 3);
    for (int i = 0; i < 2; i++) assert_int_equal(next(r), WEIR_ECORRUPT);
    weir__receiver_skip(r, &first, &last);
    assert_int_equal(first, 3);
    assert_int_equal(last, 6);
    assert_int_equal(weir__receiver_sequence(r), 7);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 5);
    assert_true(world_is_event(&events[0], "after", 0));
    weir__receiver_skip(r, &first, &last); /* nothing is damaged here: nothing moves */
    assert_true(first > last);
    assert_int_equal(weir__receiver_sequence(r), 12);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 0);
    weir__receiver_close(r);
}

/* Also when they are the first of all. */
static void damage_at_the_beginning_is_passed_over_once(void **state)
{
    struct weir__receiver *r;
    uint64_t first = 7, last = 0;

    (void)state;
    damage_batch("before", 0);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    assert_int_equal(next(r), WEIR_ECORRUPT);
    weir__receiver_skip(r, &first, &last);
    assert_int_equal(first, 0);
    assert_int_equal(last, 2);
    for (int i = 0; i < 2; i++) {
        weir__receiver_skip(r, &first, &last);
        assert_true(first > last);
        assert_int_equal(weir__receiver_sequence(r), 3);
    }
    assert_int_equal(next(r), 0);
    assert_true(world_is_event(&events[0], "in the middle", 0));
    weir__receiver_close(r);
}

/* The batch that comes next has these numbers. */
static void assert_batch(struct weir__receiver *r, uint64_t sequence, uint32_t count, uint32_t skip)
{
    const struct weir__log_view *view;

    assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
    assert_non_null(view);
    assert_int_equal(view->sequence, sequence);
    assert_int_equal(view->count, count);
    assert_int_equal(view->skip, skip);
    assert_int_equal(view->body_crc, weir__crc32c(0, view->body.at, view->body.len));
    assert_int_equal(weir__receiver_sequence(r), sequence + count);
}

static void batches_come_as_they_lie(void **state)
{
    const struct weir__log_view *view;
    struct weir__receiver *r, *first, *second;

    (void)state;
    for (int i = 0; i < 100; i++) publish("x", 3); /* more than one read of the log gives */
    assert_int_equal(attach(&r, WEIR__FROM_SEQUENCE, 4, true), 0);
    assert_batch(r, 3, 3, 1);
    for (uint64_t i = 2; i < 100; i++) assert_batch(r, 3 * i, 3, 0);
    assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
    assert_null(view);
    publish("later", 1);
    assert_batch(r, 300, 1, 0);
    weir__receiver_close(r);
    assert_int_equal(attach_as(&first, 1, "first"), 0);
    assert_int_equal(attach_as(&second, 2, "second"), 0);
    assert_int_equal(weir__receiver_next_batch(first, &view, &w.err), WEIR_ESTOLEN);
    weir__receiver_close(first);
    weir__receiver_close(second);
}

static void damaged_batches_are_for_whoever_gets_them(void **state)
{
    const struct weir__log_view *view;
    struct weir__receiver *r;

    (void)state;
    damage_middle(0);
    assert_int_equal(attach_batches(&r), 0);
    assert_batch(r, 0, 3, 0);
    assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
    assert_int_equal(view->sequence, 3);
    assert_int_not_equal(view->body_crc, weir__crc32c(0, view->body.at, view->body.len));
    assert_batch(r, 7, 5, 0);
    weir__receiver_close(r);
}

/* Without its header nobody knows what a batch is: that is damage for everybody. */
static void batches_without_a_header_are_passed_over_when_told_to(void **state)
{
    const struct weir__log_view *view;
    struct weir__receiver *r;
    uint64_t first = 0, last = 0;

    (void)state;
    damage_middle(HEADER_BEFORE);
    assert_int_equal(attach_batches(&r), 0);
    assert_batch(r, 0, 3, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), WEIR_ECORRUPT);
    weir__receiver_skip(r, &first, &last);
    assert_int_equal(first, 3);
    assert_int_equal(last, 6);
    assert_batch(r, 7, 5, 0);
    weir__receiver_close(r);
}

/* A body that passes its checksum and is not ours is damage as well. */
static void a_foreign_body_is_damage(void **state)
{
    static const uint8_t section[] = {0x00, 0x53, 0x75, 0xa0, 0x05, 0x00, 0x53, 0x75, 0xa0, 0x00};
    struct weir__batch foreign = {.count = 3, .parts = 1, .body = {{section, sizeof section}}};
    struct weir__log_receipt receipt = {0};
    struct weir__receiver *r;
    uint64_t first, last;

    (void)state;
    assert_int_equal(weir__hub_publish_wait(hub, &foreign, 0, NULL, INT64_MAX, &receipt, &w.err),
                     0);
    publish("after", 1);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    assert_int_equal(next(r), 0); /* its first event is whole */
    assert_int_equal(take.count, 1);
    for (int i = 0; i < 2; i++) assert_int_equal(next(r), WEIR_ECORRUPT);
    weir__receiver_skip(r, &first, &last);
    assert_int_equal(first, 1);
    assert_int_equal(last, 2);
    assert_int_equal(next(r), 0);
    assert_true(world_is_event(&events[0], "after", 0));
    weir__receiver_close(r);
}

/* When the log has stopped, what is durable is read, and then the reason is told. */
static void a_stopped_log_is_told(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO, .persistent = true};
    struct weir__receiver *r;

    (void)state;
    publish("x", 2);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    simfs_fail(w.disk, &fault);
    assert_true(world_publish(&w, hub, 0, "x", 1, NULL) < 0);
    simfs_fail(w.disk, NULL);
    assert_int_equal(weir__receiver_pull(r, &take, INT64_MAX, &w.err), 0);
    assert_int_equal(take.count, 2);
    assert_int_equal(weir__receiver_pull(r, &take, INT64_MAX, &w.err), WEIR_EFAILED);
    weir__receiver_close(r);
}

static void reading_goes_on_after_a_reopen(void **state)
{
    struct weir__receiver *r;

    (void)state;
    publish("x", 5);
    reopen();
    publish("y", 5);
    assert_int_equal(attach(&r, WEIR__FROM_EARLIEST, 0, false), 0);
    assert_int_equal(next(r), 0);
    assert_int_equal(take.count, 10);
    assert_true(world_is_event(&events[4], "x", 4));
    assert_true(world_is_event(&events[5], "y", 0));
    weir__receiver_close(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(events_in_order_across_batches),
        TEST(positions),
        TEST(positions_beyond_the_end),
        TEST(credit_bounds_what_is_given),
        TEST(bytes_bound_what_is_given),
        TEST(an_epoch_pushes_out_and_tells),
        TEST(groups_and_partitions_are_places_of_their_own),
        TEST(six_without_epoch),
        TEST(a_bad_position_steals_nothing),
        TEST(wakes_once_until_it_is_looked_at),
        TEST(the_end_wakes_behind_news_that_wait),
        TEST(pull_gives_up_at_its_deadline_and_when_cancelled),
        TEST(expired_events_are_told),
        TEST(damaged_events_are_passed_over_when_told_to),
        TEST(damage_at_the_beginning_is_passed_over_once),
        TEST(batches_come_as_they_lie),
        TEST(damaged_batches_are_for_whoever_gets_them),
        TEST(batches_without_a_header_are_passed_over_when_told_to),
        TEST(a_foreign_body_is_damage),
        TEST(a_stopped_log_is_told),
        TEST(reading_goes_on_after_a_reopen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
