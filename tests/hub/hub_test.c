#include "hub/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/world.h"

#define NO_PARTITION                                                                               \
    "The specified partition is invalid for an EventHub partition sender or receiver. It should "  \
    "be between 0 and 7."

static struct world w;
static struct weir__hub *hub;

static void use_hub(void)
{
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
}

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "homes", 8), 0);
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
    use_hub();
}

static struct payload payload;

static void make_batch(struct weir__batch *batch, const char *key, const char *text, int count)
{
    payload_batch(&payload, key, text, count);
    assert_int_equal(weir__batch_of_payload(batch, WEIR__AMQP_FORMAT_BATCH, payload_bytes(&payload),
                                            0, &w.err),
                     0);
}

static void properties_of_the_hub(void **state)
{
    (void)state;
    assert_string_equal(weir__hub_name(hub), "homes");
    assert_int_equal(weir__hub_partitions(hub), 8);
    assert_int_equal(weir__hub_created_ms(hub), 1700000000000);
    assert_int_equal(weir__hub_batch_bytes_max(hub), 64 << 10);
    assert_int_equal(weir__hub_state(hub, &w.err), 0);
}

static void routes(void **state)
{
    struct weir__batch keyed, plain;
    struct payload second;
    uint32_t partition, first;

    (void)state;
    make_batch(&keyed, "alphabet", "x", 1);
    assert_int_equal(weir__hub_route(hub, &keyed, WEIR__PARTITION_ANY, &partition, &w.err), 0);
    assert_int_equal(partition, 6); /* Azure's own answer for 8 partitions */
    assert_int_equal(weir__hub_route(hub, &keyed, 2, &partition, &w.err), 0);
    assert_int_equal(partition, 2);
    assert_int_equal(weir__hub_route(hub, &keyed, 8, &partition, &w.err), WEIR_EINVAL);
    assert_string_equal(w.err.text, NO_PARTITION);
    payload_batch(&second, NULL, "x", 1);
    assert_int_equal(weir__batch_of_payload(&plain, WEIR__AMQP_FORMAT_BATCH, payload_bytes(&second),
                                            0, &w.err),
                     0);
    assert_int_equal(weir__hub_route(hub, &plain, WEIR__PARTITION_ANY, &first, &w.err), 0);
    for (uint32_t i = 1; i < 20; i++) {
        assert_int_equal(weir__hub_route(hub, &plain, WEIR__PARTITION_ANY, &partition, &w.err), 0);
        assert_int_equal(partition, (first + i) % 8);
    }
}

static void batches_lie_side_by_side(void **state)
{
    struct weir__log_receipt receipt = {0};
    struct weir__partition_properties p;

    (void)state;
    assert_int_equal(weir__hub_partition_properties(hub, 3, &p, &w.err), 0);
    assert_int_equal(p.begin_sequence, 0);
    assert_int_equal(p.last_sequence, -1);
    assert_int_equal(p.last_offset, -1);
    assert_true(p.empty);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(world_publish(&w, hub, 3, "x", 10, &receipt), 0);
        assert_int_equal(receipt.sequence, i * 10);
        assert_true(receipt.offset >= WEIR__LOG_ORIGIN);
        assert_int_equal(receipt.time_ms, w.time.wall_ms);
    }
    assert_int_equal(weir__hub_partition_properties(hub, 3, &p, &w.err), 0);
    assert_int_equal(p.last_sequence, 29);
    assert_int_equal(p.last_offset, receipt.offset + 9);
    assert_int_equal(p.last_time_ms, w.time.wall_ms);
    assert_false(p.empty);
    assert_int_equal(weir__hub_partition_properties(hub, 2, &p, &w.err), 0);
    assert_true(p.empty);
    assert_int_equal(weir__hub_partition_properties(hub, 8, &p, &w.err), WEIR_EINVAL);
}

/* -1 is before the first, and what is before that is nowhere. */
static void positions_have_bounds(void **state)
{
    static const enum weir__position_kind kinds[] = {WEIR__FROM_OFFSET, WEIR__FROM_SEQUENCE};
    struct weir__position from = {.kind = WEIR__FROM_EARLIEST};
    uint64_t at;

    (void)state;
    assert_int_equal(weir__position_find(hub, 8, &from, &at, &w.err), WEIR_EINVAL);
    assert_string_equal(w.err.text, NO_PARTITION);
    for (int filled = 0; filled < 2; filled++) {
        if (filled) assert_int_equal(world_publish(&w, hub, 3, "x", 10, NULL), 0);
        for (int i = 0; i < 4; i++) {
            from = (struct weir__position){kinds[i / 2], .inclusive = i % 2, .value = -1};
            at = 99;
            assert_int_equal(weir__position_find(hub, 3, &from, &at, &w.err), 0);
            assert_int_equal(at, 0);
            from.value = -2;
            assert_int_equal(weir__position_find(hub, 3, &from, &at, &w.err), WEIR_EINVAL);
            assert_non_null(strstr(w.err.text, "'-2' is invalid."));
        }
    }
    from = (struct weir__position){WEIR__FROM_SEQUENCE, .inclusive = false, .value = 0};
    assert_int_equal(weir__position_find(hub, 3, &from, &at, &w.err), 0);
    assert_int_equal(at, 1);
}

struct seen {
    int fired, rc;
    struct weir__log_receipt receipt;
};

static void note(void *user, int rc, const struct weir__log_receipt *receipt,
                 const struct weir_error *err)
{
    struct seen *seen = user;

    (void)err;
    seen->fired++;
    seen->rc = rc;
    seen->receipt = *receipt;
}

static void completions_fire_once_and_in_order(void **state)
{
    struct weir__batch batch;
    struct seen seen[5] = {{0}};

    (void)state;
    make_batch(&batch, NULL, "x", 2);
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir__hub_publish(hub, &batch, 1, NULL, INT64_MAX, note, &seen[i], &w.err),
                         0);
    assert_int_equal(weir__hub_flush(hub, INT64_MAX, &w.err), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen[i].fired, 1);
        assert_int_equal(seen[i].rc, 0);
        assert_int_equal(seen[i].receipt.sequence, 2 * i);
    }
}

/* What was not flushed by hand is flushed, and answered, by closing. */
static void completions_fire_before_close_returns(void **state)
{
    struct weir__batch batch;
    struct seen seen = {0};

    (void)state;
    make_batch(&batch, NULL, "x", 1);
    assert_int_equal(weir__hub_publish(hub, &batch, 0, NULL, INT64_MAX, note, &seen, &w.err), 0);
    reopen();
    assert_int_equal(seen.fired, 1);
    assert_int_equal(seen.rc, 0);
}

static void refused_batches_are_counted(void **state)
{
    struct weir__batch batch;
    struct weir__hub_stats stats;
    struct seen seen = {0};

    (void)state;
    make_batch(&batch, NULL, "x", 1);
    assert_int_equal(weir__hub_publish(hub, &batch, 9, NULL, 0, note, &seen, &w.err), WEIR_EINVAL);
    assert_string_equal(w.err.text, NO_PARTITION);
    assert_int_equal(seen.fired, 0);
    assert_int_equal(world_publish(&w, hub, 8, "x", 1, NULL), WEIR_EINVAL);
    assert_string_equal(w.err.text, NO_PARTITION);
    assert_int_equal(world_publish(&w, hub, 0, "x", 7, NULL), 0);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.refused, 2);
    assert_int_equal(stats.log.events, 7);
    assert_int_equal(stats.log.batches, 1);
    assert_int_equal(stats.receivers, 0);
}

static void assert_not_found(int rc)
{
    assert_int_equal(rc, WEIR_ENOTFOUND);
    assert_string_equal(w.err.text, "The messaging entity 'homes' could not be found.");
    w.err = (struct weir_error){0};
}

/* A link that still has it learns at every turn that it is gone, and nothing gets in any more. */
static void a_deleted_hub_takes_nothing(void **state)
{
    struct weir__log_producer next;
    struct weir__partition_properties p;
    struct weir__position from = {.kind = WEIR__FROM_EARLIEST};
    struct weir__log_receipt receipt;
    struct weir__hub_stats stats;
    struct weir__batch batch;
    struct seen seen = {0};
    uint32_t partition;
    uint64_t at;

    (void)state;
    make_batch(&batch, NULL, "x", 1);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_not_found(weir__hub_route(hub, &batch, WEIR__PARTITION_ANY, &partition, &w.err));
    assert_not_found(weir__hub_publish(hub, &batch, 1, NULL, INT64_MAX, note, &seen, &w.err));
    assert_not_found(weir__hub_publish_wait(hub, &batch, 1, NULL, INT64_MAX, &receipt, &w.err));
    assert_not_found(weir__hub_producer_begin(hub, 1, 7, 0, &next, &w.err));
    assert_not_found(weir__hub_producer_state(hub, 1, 7, &next, &w.err));
    assert_not_found(weir__hub_partition_properties(hub, 1, &p, &w.err));
    assert_not_found(weir__position_find(hub, 1, &from, &at, &w.err));
    assert_int_equal(weir__hub_flush(hub, INT64_MAX, &w.err), 0);
    assert_int_equal(seen.fired, 0);
    for (int another = 0; another < 2; another++) { /* of the same name */
        if (another) assert_int_equal(world_create(&w, "homes", 1), 0);
        assert_int_equal(weir__hub_producer_new(hub, &at, &w.err), WEIR_ENOTFOUND);
        assert_string_equal(w.err.text, "there is no hub 'homes'");
    }
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.refused, 2);
    assert_int_equal(stats.log.events, 0);
}

/* ---- idempotent producers ---- */

static int publish_as(uint64_t id, uint16_t epoch, uint32_t sequence, struct weir__log_receipt *out)
{
    struct weir__log_producer producer = {.id = id, .epoch = epoch, .sequence = sequence};
    struct weir__batch batch;

    make_batch(&batch, NULL, "x", 10);
    return weir__hub_publish_wait(hub, &batch, 4, &producer, INT64_MAX, out, &w.err);
}

static void idempotent_producer_survives_a_restart(void **state)
{
    struct weir__log_producer next;
    struct weir__log_receipt receipt = {0};
    struct weir__partition_properties p;
    uint64_t id;

    (void)state;
    assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), 0);
    next = (struct weir__log_producer){.id = 77, .epoch = 77, .sequence = 77};
    assert_int_equal(weir__hub_producer_state(hub, 4, id, &next, &w.err), 0);
    assert_int_equal(next.id, id);
    assert_int_equal(next.epoch, 0);
    assert_int_equal(next.sequence, 0);
    assert_int_equal(publish_as(id, 0, 0, &receipt), 0);
    assert_false(receipt.duplicate);
    assert_int_equal(publish_as(id, 0, 10, &receipt), 0);
    for (int round = 0; round < 2; round++, reopen()) {
        assert_int_equal(publish_as(id, 0, 10, &receipt), 0); /* the last one once more */
        assert_true(receipt.duplicate);
        assert_int_equal(receipt.sequence, 10);
        assert_int_equal(publish_as(id, 0, 0, &receipt), WEIR_ESEQUENCE);  /* an older one */
        assert_int_equal(publish_as(id, 0, 25, &receipt), WEIR_ESEQUENCE); /* a gap */
        assert_int_equal(weir__hub_producer_state(hub, 4, id, &next, &w.err), 0);
        assert_int_equal(next.sequence, 20);
        assert_int_equal(weir__hub_partition_properties(hub, 4, &p, &w.err), 0);
        assert_int_equal(p.last_sequence, 19);
    }
    assert_int_equal(publish_as(id, 1, 0, &receipt), 0); /* a newer epoch takes over */
    assert_int_equal(publish_as(id, 0, 20, &receipt), WEIR_EFENCED);
}

/* An epoch counts from its beginning, not from its first batch; over a restart from its first batch
 * on. */
static void a_new_epoch_fences_at_once(void **state)
{
    struct weir__log_producer next;
    struct weir__log_receipt receipt = {0};
    uint64_t id;

    (void)state;
    assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), 0);
    assert_int_equal(weir__hub_producer_begin(hub, 8, id, 0, &next, &w.err), WEIR_EINVAL);
    assert_string_equal(w.err.text, NO_PARTITION);
    w.err.text[0] = '\0';
    assert_int_equal(weir__hub_producer_state(hub, 8, id, &next, &w.err), WEIR_EINVAL);
    assert_string_equal(w.err.text, NO_PARTITION);
    assert_int_equal(weir__hub_producer_begin(hub, 4, id, 0, &next, &w.err), 0);
    assert_int_equal(publish_as(id, 0, 0, &receipt), 0);
    assert_int_equal(weir__hub_producer_begin(hub, 4, id, 2, &next, &w.err), 0);
    assert_int_equal(next.epoch, 2);
    assert_int_equal(next.sequence, 10);
    assert_int_equal(publish_as(id, 0, 10, &receipt), WEIR_EFENCED);
    assert_non_null(strstr(w.err.text, "Received:0 Current:2"));
    assert_int_equal(publish_as(id, 1, 0, &receipt), WEIR_EFENCED);
    assert_int_equal(weir__hub_producer_begin(hub, 4, id, 1, &next, &w.err), WEIR_EFENCED);
    assert_non_null(strstr(w.err.text, "Received:1 Current:2"));
    assert_int_equal(weir__hub_producer_begin(hub, 5, id, 1, &next, &w.err), 0); /* elsewhere */
    assert_int_equal(weir__hub_producer_state(hub, 4, id, &next, &w.err), 0);
    assert_int_equal(next.epoch, 2);
    reopen(); /* nothing was published under the new one: the old one may go on */
    assert_int_equal(publish_as(id, 0, 10, &receipt), 0);
    assert_int_equal(weir__hub_producer_begin(hub, 4, id, 2, &next, &w.err), 0);
    assert_int_equal(publish_as(id, 2, 20, &receipt), 0);
    reopen();
    assert_int_equal(publish_as(id, 0, 20, &receipt), WEIR_EFENCED);
    assert_int_equal(publish_as(id, 2, 30, &receipt), 0);
}

static void producer_ids_are_never_given_twice(void **state)
{
    uint64_t last = 0, id;

    (void)state;
    for (int round = 0; round < 4; round++, reopen())
        for (int i = 0; i < 1500; i++) {
            assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), 0);
            assert_true(id > last);
            last = id;
        }
    assert_true(last < 20000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(properties_of_the_hub),
        TEST(routes),
        TEST(batches_lie_side_by_side),
        TEST(positions_have_bounds),
        TEST(completions_fire_once_and_in_order),
        TEST(completions_fire_before_close_returns),
        TEST(refused_batches_are_counted),
        TEST(a_deleted_hub_takes_nothing),
        TEST(idempotent_producer_survives_a_restart),
        TEST(a_new_epoch_fences_at_once),
        TEST(producer_ids_are_never_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
