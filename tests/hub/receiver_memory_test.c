/* receiver_memory_test.c - a receiver that gives back its memory, or what it gave and nobody used, gives
 * every event all the same, once. */
#include "hub/receiver.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"

#define EACH 10 /* events of a batch */
#define BATCHES 3
#define CREDIT 100

static struct world w;
static struct weir__hub *hub;
static struct weir__event events[EACH * BATCHES];
static struct weir__receiver_take take;

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(world_publish(&w, hub, 0, "event", EACH, NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir__hub_release(hub);
    world_fini(&w);
    return 0;
}

static struct weir__receiver *attach(bool batches, int64_t from, uint64_t credit)
{
    struct weir__receiver_options o = {.epoch = WEIR__EPOCH_NONE,
                                       .credit = credit,
                                       .batches = batches,
                                       .from = {WEIR__FROM_SEQUENCE, true, from}};
    struct weir__receiver *r;

    assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
    return r;
}

/* Takes as many, and they are those. */
static void next_is(struct weir__receiver *r, uint32_t count, uint64_t first)
{
    take = (struct weir__receiver_take){.events_max = count, .events = events};
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(events[i].sequence, first + i);
        assert_true(world_is_event(&events[i], "event", (int)((first + i) % EACH)));
    }
    assert_int_equal(weir__receiver_sequence(r), first + count);
}

static struct weir__hub_stats delivered(void)
{
    struct weir__hub_stats stats;

    weir__hub_stats(hub, &stats);
    return stats;
}

static void delivered_are(uint64_t count)
{
    assert_int_equal(delivered().delivered_events, count);
}

static void rest(struct weir__receiver *r)
{
    assert_true(weir__receiver_memory(r) > 0);
    weir__receiver_rest(r);
    assert_int_equal(weir__receiver_memory(r), 0);
}

static void after_a_rest_it_goes_on(void **state)
{
    struct weir__receiver *r = attach(false, 0, CREDIT);

    (void)state;
    assert_int_equal(weir__receiver_memory(r), 0);
    next_is(r, 4, 0); /* in the middle of a batch */
    rest(r);
    next_is(r, EACH - 4, 4); /* at the end of one, with others that were read */
    rest(r);
    next_is(r, 1, EACH);
    next_is(r, EACH * BATCHES - EACH - 1, EACH + 1);
    rest(r); /* at the end of all */
    take = (struct weir__receiver_take){.events_max = 1, .events = events};
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 0);
    assert_int_equal(weir__receiver_credit(r), CREDIT - EACH * BATCHES);
    delivered_are(EACH * BATCHES);
    weir__receiver_close(r);
}

/* An event that did not fit into the last take is not forgotten, either. */
static void what_did_not_fit_comes_after_a_rest(void **state)
{
    struct weir__receiver *r = attach(false, 0, CREDIT);

    (void)state;
    take = (struct weir__receiver_take){.events_max = 9, .bytes_max = 1, .events = events};
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 1);
    rest(r);
    next_is(r, EACH, 1);
    weir__receiver_close(r);
}

static void events_that_come_back_are_given_again(void **state)
{
    struct weir__receiver *r = attach(false, 0, CREDIT);

    (void)state;
    next_is(r, 15, 0);
    weir__receiver_return(r, events + 15, 0); /* all were used */
    delivered_are(15);
    weir__receiver_return(r, events + 12, 3);
    delivered_are(15); /* it never falls */
    assert_int_equal(weir__receiver_credit(r), CREDIT - 12);
    next_is(r, EACH * BATCHES - 12, 12);
    weir__receiver_return(r, events, EACH * BATCHES - 12);
    rest(r);
    next_is(r, EACH * BATCHES - 12, 12);
    assert_int_equal(weir__receiver_credit(r), CREDIT - EACH * BATCHES);
    delivered_are(EACH * BATCHES);
    weir__receiver_close(r);
}

static void without_a_limit_there_is_no_credit_to_give_back(void **state)
{
    struct weir__receiver *r = attach(false, 0, WEIR__CREDIT_UNLIMITED);

    (void)state;
    next_is(r, 2, 0);
    weir__receiver_return(r, events, 2);
    assert_true(weir__receiver_credit(r) == WEIR__CREDIT_UNLIMITED);
    weir__receiver_close(r);
}

/* The first is given with what lies before the position, which was never asked for. */
static void a_batch_that_comes_back_is_given_again(void **state)
{
    struct weir__receiver *r = attach(true, 4, CREDIT);
    const struct weir__log_view *view;
    uint64_t bytes = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
        assert_int_equal(view->sequence, 0);
        assert_int_equal(view->skip, 4);
        delivered_are(EACH - 4);
        weir__receiver_return_batch(r, view);
        delivered_are(EACH - 4);
        rest(r);
    }
    for (uint64_t i = 0; i < BATCHES; i++) {
        assert_int_equal(weir__receiver_next_batch(r, &view, &w.err), 0);
        assert_int_equal(view->sequence, i * EACH);
        bytes += view->body.len;
    }
    delivered_are(EACH * BATCHES - 4);
    assert_int_equal(delivered().delivered_bytes, bytes);
    weir__receiver_close(r);
}

/* ---- batches that are not what they say, of somebody who knows the checksum ---- */

static const uint8_t two[] = {0, 0x53, 0x75, 0xa0, 5, 0, 0x53, 0x75, 0xa0, 0,
                              0, 0x53, 0x75, 0xa0, 5, 0, 0x53, 0x75, 0xa0, 0};

/* So many of the two, and a good one behind them. */
static void publish_foreign(size_t bytes, uint32_t count)
{
    struct weir__batch batch = {.count = count, .parts = 1, .body = {{two, bytes}}};
    struct weir__log_receipt receipt;

    assert_int_equal(weir__hub_publish_wait(hub, &batch, 0, NULL, INT64_MAX, &receipt, &w.err), 0);
    assert_int_equal(world_publish(&w, hub, 0, "last", 1, NULL), 0);
}

static void good_events_in_front_of_broken_ones_come_back(void **state)
{
    const uint32_t good = EACH * BATCHES + 1; /* one of the three is there */
    struct weir__receiver *r = attach(false, 0, CREDIT);
    static struct weir__event room[EACH * BATCHES + 8];
    uint64_t first, last;

    (void)state;
    publish_foreign(sizeof two / 2, 3);
    take = (struct weir__receiver_take){.events_max = EACH * BATCHES + 8, .events = room};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
        assert_int_equal(take.count, good);
        assert_int_equal(room[0].sequence, 0);
        if (i == 0) weir__receiver_return(r, room, take.count);
    }
    assert_int_equal(weir__receiver_next(r, &take, &w.err), WEIR_ECORRUPT);
    weir__receiver_skip(r, &first, &last);
    assert_int_equal(first, good);
    assert_int_equal(last, good + 1);
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 1);
    assert_int_equal(room[0].sequence, good + 2);
    weir__receiver_close(r);
}

static void what_lies_behind_the_last_event_is_passed_over(void **state)
{
    struct weir__receiver *r;

    (void)state;
    publish_foreign(sizeof two, 1);
    r = attach(false, EACH * BATCHES, CREDIT);
    take = (struct weir__receiver_take){.events_max = EACH, .events = events};
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 2);
    assert_int_equal(events[0].sequence, EACH * BATCHES);
    assert_true(world_is_event(&events[1], "last", 0));
    assert_int_equal(weir__receiver_next(r, &take, &w.err), 0);
    assert_int_equal(take.count, 0);
    weir__receiver_close(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(after_a_rest_it_goes_on),
        TEST(what_did_not_fit_comes_after_a_rest),
        TEST(events_that_come_back_are_given_again),
        TEST(without_a_limit_there_is_no_credit_to_give_back),
        TEST(a_batch_that_comes_back_is_given_again),
        TEST(good_events_in_front_of_broken_ones_come_back),
        TEST(what_lies_behind_the_last_event_is_passed_over),
    };

    return cmocka_run_group_tests_name("receiver_memory", tests, NULL, NULL);
}
