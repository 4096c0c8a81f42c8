/* receiver_told_test.c - what a receiver is told when it cannot have what it wants, and what is
 * counted of what it got. */
#include "hub/receiver.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"

#define ROOM 64
#define SEGMENT WORLD_DIR "/hub-0000000000000001/00000001.seg"

static struct world w;
static struct weir__hub *hub;
static struct weir__event events[ROOM];
static struct weir__receiver_take take;

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "homes", 2), 0);
    take = (struct weir__receiver_take){.events_max = ROOM, .events = events};
    return weir__namespace_use(w.ns, "homes", &hub, &w.err);
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

static void publish(const char *text, int count)
{
    assert_int_equal(world_publish(&w, hub, 0, text, count, NULL), 0);
}

static struct weir__receiver *attach(const char *group, int64_t sequence)
{
    struct weir__receiver_options o = {.group = group,
                                       .epoch = WEIR__EPOCH_NONE,
                                       .credit = WEIR__CREDIT_UNLIMITED,
                                       .from = {WEIR__FROM_SEQUENCE, true, sequence}};
    struct weir__receiver *r;

    assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
    return r;
}

static void refused(const struct weir__receiver_options *o, int code, const char *text)
{
    struct weir__receiver *r = (struct weir__receiver *)&w;

    assert_int_equal(weir__receiver_attach(&r, hub, o, &w.err), code);
    assert_null(r);
    assert_string_equal(w.err.text, text);
}

static void who_cannot_attach_is_told_why(void **state)
{
    char name[WEIR__RECEIVER_NAME_MAX + 2] = "";
    struct weir__receiver_options o = {.epoch = 1, .name = name};
    struct weir__hub_stats stats;
    struct weir__receiver *r;

    (void)state;
    memset(name, 'n', WEIR__RECEIVER_NAME_MAX + 1);
    refused(&o, WEIR_EINVAL, "a receiver's name has 65 bytes, the most is 64");
    name[WEIR__RECEIVER_NAME_MAX] = '\0';
    assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
    weir__receiver_close(r);
    o.group = "g";
    refused(&o, WEIR_ENOTFOUND, "hub 'homes' has no consumer group 'g'");
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 0);
    assert_int_equal(stats.receivers_attached, 1);
    assert_int_equal(stats.receivers_refused, 0); /* which is for those that others keep out */
    o.group = NULL;
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    refused(&o, WEIR_ENOTFOUND, "The messaging entity 'homes' could not be found.");
}

static void what_goes_is_named(void **state)
{
    struct weir__receiver *of_group, *of_hub = attach(NULL, 0);

    (void)state;
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), 0);
    of_group = attach("g", 0);
    assert_int_equal(weir__namespace_group_remove(w.ns, "homes", "G", &w.err), 0);
    assert_int_equal(weir__receiver_over(of_group, &w.err), WEIR_ENOTFOUND);
    assert_string_equal(w.err.text, "The messaging entity 'G' could not be found.");
    assert_int_equal(weir__receiver_over(of_hub, &w.err), 0);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "HOMES", &w.err), 0);
    assert_int_equal(weir__receiver_next(of_hub, &take, &w.err), WEIR_ENOTFOUND);
    assert_string_equal(w.err.text, "The messaging entity 'homes' could not be found.");
    weir__receiver_close(of_group);
    weir__receiver_close(of_hub);
}

/* More partitions are more places; who sits in one leaves it all the same, and five have room. */
static void places_move_when_there_become_more(void **state)
{
    struct weir__hub_changes four = {.given = WEIR__HUB_PARTITIONS, .partitions = 4};
    struct weir__receiver_options o = {.epoch = 5, .partition = 1};
    struct weir__receiver *first, *other, *five[5];

    (void)state;
    assert_int_equal(weir__receiver_attach(&first, hub, &o, &w.err), 0);
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &four, &w.err), 0);
    o.partition = 3;
    assert_int_equal(weir__receiver_attach(&other, hub, &o, &w.err), 0);
    o = (struct weir__receiver_options){.epoch = WEIR__EPOCH_NONE, .partition = 1};
    assert_int_equal(weir__receiver_attach(&five[0], hub, &o, &w.err), WEIR_EEPOCH);
    weir__receiver_close(first);
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir__receiver_attach(&five[i], hub, &o, &w.err), 0);
    for (int i = 0; i < 5; i++) weir__receiver_close(five[i]);
    weir__receiver_close(other);
}

/* Of a newer weir, perhaps: it is said what is unknown, also behind events that were read. */
static void a_batch_with_unknown_flags_is_told(void **state)
{
    static const uint8_t section[] = {0x00, 0x53, 0x75, 0xa0, 0x05, 0x00, 0x53, 0x75, 0xa0, 0x00};
    struct weir__batch foreign = {.count = 1,
                                  .attrs = 4,
                                  .parts = 1,
                                  .body = {{section, sizeof section}}};
    struct weir__log_receipt receipt = {0};
    struct weir__receiver *r = attach(NULL, 0);
    uint64_t first, last;

    (void)state;
    publish("before", 2);
    assert_int_equal(weir__hub_publish_wait(hub, &foreign, 0, NULL, INT64_MAX, &receipt, &w.err),
                     0);
    publish("after", 1);
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 2);
    for (int i = 0; i < 2; i++) {
        w.err = (struct weir_error){0};
        assert_int_equal(weir__receiver_next(r, &take, &w.err), WEIR_EVERSION);
        assert_int_equal(w.err.code, WEIR_EVERSION);
        assert_string_equal(w.err.text, "the batch at sequence 2 has unknown flags 0x4");
        assert_int_equal(take.count, 0);
    }
    weir__receiver_skip(r, &first, &last);
    assert_int_equal(first, 2);
    assert_int_equal(last, 2);
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 1);
    assert_true(world_is_event(&events[0], "after", 0));
    weir__receiver_close(r);
}

static void count_wake(void *user)
{
    ++*(int *)user;
}

/* Once until it looks again, as those are who take events. */
static void who_takes_batches_is_woken(void **state)
{
    int wakes = 0;
    struct weir__receiver_options o = {.epoch = 0,
                                       .batches = true,
                                       .wake = count_wake,
                                       .user = &wakes};
    const struct weir__log_view *view;
    struct weir__receiver *r;

    (void)state;
    assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
    for (int round = 1; round < 4; round++) {
        publish("x", 1);
        publish("x", 1);
        assert_int_equal(wakes, round);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
            assert_int_equal(view != NULL, i < 2);
        }
    }
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_int_equal(wakes, 4);
    assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), WEIR_ENOTFOUND);
    assert_string_equal(w.err.text, "The messaging entity 'homes' could not be found.");
    assert_null(view);
    weir__receiver_close(r);
}

/* Nothing of the last time is left in it. */
static void what_is_not_given_is_not_told(void **state)
{
    struct weir__receiver *r = attach(NULL, 0);

    (void)state;
    for (int over = 0; over < 2; over++) {
        take.count = 7;
        take.missed = 7;
        if (over) assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
        assert_int_equal(weir__receiver_next(r, &take, &w.err), over ? WEIR_ENOTFOUND : 0);
        assert_int_equal(take.count, 0);
        assert_int_equal(take.missed, 0);
    }
    weir__receiver_close(r);
}

/* Neither who is cancelled nor who waits in vain keeps what it was given before. */
static void a_wait_in_vain_gives_nothing(void **state)
{
    struct weir__receiver *r = attach(NULL, 0);

    (void)state;
    publish("x", 2);
    assert_int_equal(weir__receiver_pull(r, &take, INT64_MAX, &w.err), 0);
    assert_int_equal(take.count, 2);
    take.missed = 7;
    weir__receiver_cancel(r);
    assert_int_equal(weir__receiver_pull(r, &take, INT64_MAX, &w.err), WEIR_ECANCELED);
    assert_string_equal(w.err.text, "the wait was cancelled");
    assert_true(take.count == 0 && take.missed == 0);
    take.count = 2;
    assert_int_equal(weir__receiver_pull(r, &take, 0, &w.err), WEIR_ETIMEDOUT);
    assert_string_equal(w.err.text, "no event came in time");
    assert_int_equal(take.count, 0);
    weir__receiver_close(r);
}

/* Events one by one, and a batch as it lies, of which the first event was not asked for. */
static void what_is_given_is_counted(void **state)
{
    const struct weir__log_view *view;
    struct weir__hub_stats stats;
    struct payload one = {.len = 0};
    struct weir__receiver *r;

    (void)state;
    publish("x", 5);
    payload_event(&one, "x", 0);
    r = attach(NULL, 1);
    take.bytes_max = 3 * one.len;
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 3);
    weir__receiver_close(r);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.delivered_events, 3);
    assert_int_equal(stats.delivered_bytes, 3 * one.len);
    r = attach(NULL, 1);
    assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
    assert_non_null(view);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.delivered_events, 3 + 4);
    assert_int_equal(stats.delivered_bytes, 3 * one.len + view->body.len);
    weir__receiver_close(r);
}

static void assert_delivered(uint64_t count, uint64_t bytes)
{
    struct weir__hub_stats stats;

    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.delivered_events, count);
    assert_int_equal(stats.delivered_bytes, bytes);
}

/* What comes back costs no credit, and is not counted when it is given again. */
static void what_comes_back_is_counted_once(void **state)
{
    struct payload one = {.len = 0};
    struct weir__receiver *r = attach(NULL, 0);

    (void)state;
    payload_event(&one, "x", 0);
    publish("x", 5);
    weir__receiver_credit_set(r, 10);
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    events[5].message.len = 1000; /* of somebody else */
    weir__receiver_return(r, events + 3, 2);
    assert_int_equal(weir__receiver_credit(r), 7);
    assert_int_equal(weir__receiver_sequence(r), 3);
    for (uint64_t n = 5; n < 7; n++) {
        assert_delivered(5, 5 * one.len);
        assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
        assert_int_equal(take.count, n == 5 ? 2 : 1);
        if (n == 5) publish("x", 1);
    }
    assert_delivered(6, 6 * one.len);
    assert_int_equal(weir__receiver_credit(r), 4);
    weir__receiver_close(r);
}

/* Nor a batch, of which only what was asked for was counted. */
static void a_batch_that_comes_back_is_counted_once(void **state)
{
    const struct weir__log_view *view;
    struct weir__receiver *r;
    uint64_t bytes = 0;

    (void)state;
    publish("x", 5);
    publish("y", 2);
    r = attach(NULL, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
        assert_int_equal(view->skip, 1);
        assert_int_equal(weir__receiver_sequence(r), 5);
        bytes = view->body.len;
        if (i == 0) weir__receiver_return_batch(r, view);
        if (i == 0) assert_int_equal(weir__receiver_sequence(r), 1);
        assert_delivered(4, bytes);
    }
    assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
    assert_delivered(6, bytes + view->body.len);
    weir__receiver_close(r);
}

/* Nothing is damaged, so nothing is passed over. */
static void a_skip_without_damage_moves_nothing(void **state)
{
    struct weir__receiver *r = attach(NULL, 0);
    uint64_t first = 0, last = 0;

    (void)state;
    publish("x", 3);
    weir__receiver_skip(r, &first, &last);
    assert_true(first > last);
    assert_int_equal(weir__receiver_sequence(r), 0);
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 3);
    weir__receiver_close(r);
}

/* Some batches lie on a sector that the disk does not read any more. */
static void what_the_disk_cannot_read_is_passed_over_when_told_to(void **state)
{
    uint64_t first = 0, last = 0, next = 0, lost = 0;
    struct weir__receiver *r;

    (void)state;
    for (int i = 0; i < 100; i++) publish("a text of some length, many times over", 10);
    reopen(); /* so that nothing comes from memory */
    simfs_spoil(w.disk, SEGMENT, 32768, SIMFS_SECTOR);
    r = attach(NULL, 0);
    while (next < 1000) {
        int rc = weir__receiver_next(r, &take, &w.err);
        if (rc == 0) {
            assert_true(take.count > 0);
            assert_int_equal(events[0].sequence, next);
            next += take.count;
            continue;
        }
        assert_int_equal(rc, WEIR_EIO);
        weir__receiver_skip(r, &first, &last);
        assert_int_equal(first, next);
        assert_true(last > first);
        next = last + 1;
        lost += next - first;
        assert_int_equal(weir__receiver_sequence(r), next);
    }
    assert_true(lost > 0 && lost <= 30 && lost % 10 == 0);
    weir__receiver_close(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_cannot_attach_is_told_why),
        TEST(what_goes_is_named),
        TEST(places_move_when_there_become_more),
        TEST(a_batch_with_unknown_flags_is_told),
        TEST(a_wait_in_vain_gives_nothing),
        TEST(who_takes_batches_is_woken),
        TEST(what_is_not_given_is_not_told),
        TEST(what_is_given_is_counted),
        TEST(what_comes_back_is_counted_once),
        TEST(a_batch_that_comes_back_is_counted_once),
        TEST(a_skip_without_damage_moves_nothing),
        TEST(what_the_disk_cannot_read_is_passed_over_when_told_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
