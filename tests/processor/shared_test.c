/* shared_test.c - with which epoch a processor attaches when foreign owners share the hub: they all
 * come with 0, and one of ours must not lock them out. */
#include <string.h>

#include "processor/fleet.h"

/* Partition 0 is a foreign owner's. */
static void own_foreign(struct copy *c)
{
    struct weir_scope scope = {c->source->space, "h", "$default"};
    struct weir_record record = {.partition = 0};

    assert_ok(c->store->ops->claim(c->store, &scope, &record, "js", 0, &record, &err));
}

static int attach(struct fleet *f, int64_t epoch, struct weir_receiver **out)
{
    struct weir_receiver_options o = {.size = sizeof o,
                                      .exclusive = true,
                                      .epoch = epoch,
                                      .name = "js"};

    return weir_receiver_open(out, f->weir, "h", 1, &o, &err);
}

/* Until it reads partition 1. */
static void run_copy(struct fleet *f, struct copy *c)
{
    struct weir_processor_options o = copy_options(c);

    assert_ok(weir_processor_start(&c->processor, c->source, c->store, &o, &err));
    publish(f, 1, 1);
    fleet_await(f, f->next[1] == 1);
}

static void alone_it_locks_others_out(void **state)
{
    struct fleet *f = fleet_new(2);
    struct weir_receiver *r;
    struct copy c = {0};

    (void)state;
    copy_open(&c, f);
    run_copy(f, &c);
    assert_int_equal(attach(f, 0, &r), WEIR_EEPOCH);
    copy_stop(&c);
    fleet_free(f);
}

static void beside_foreign_owners_it_does_not(void **state)
{
    struct fleet *f = fleet_new(2);
    struct weir_receiver *r;
    struct copy c = {0};

    (void)state;
    copy_open(&c, f);
    own_foreign(&c);
    run_copy(f, &c);
    assert_ok(attach(f, 0, &r));
    weir_receiver_close(r);
    copy_stop(&c);
    fleet_free(f);
}

/* A link that is left from before, of a copy that had it with an epoch of its own. */
static void it_pushes_aside_what_is_left_of_its_own(void **state)
{
    struct fleet *f = fleet_new(2);
    struct weir_receiver *r;
    struct copy c = {0};

    (void)state;
    copy_open(&c, f);
    own_foreign(&c);
    assert_ok(attach(f, 1, &r));
    run_copy(f, &c);
    weir_receiver_close(r);
    copy_stop(&c);
    fleet_free(f);
}

/* Partition 1 becomes a foreign owner's, whoever had it. */
static void give_away(struct fleet *f, struct copy *c)
{
    struct weir_scope scope = {c->source->space, "h", "$default"};
    struct weir_store *store; /* a copy's handle is the copy's */
    struct weir_view view = {0};
    struct weir_record *row;

    assert_ok(weir_store_memory(&store, f->name, NULL, &err));
    assert_ok(store->ops->read(store, &scope, &view, &err));
    assert_int_equal(view.record_count, 2);
    row = &view.records[1];
    assert_ok(store->ops->claim(store, &scope, row, "js", 0, row, &err));
    weir_view_free(&view);
    weir_store_close(store);
}

/* A higher epoch in the way means that the records may have changed: they are read at once, long
 * before it is time to. */
static void where_it_may_not_open_it_looks_whose_it_is(void **state)
{
    struct fleet *f = fleet_new(2);
    struct weir_processor_options o;
    struct weir_receiver *r;
    struct copy c = {0};

    (void)state;
    assert_ok(attach(f, 1000, &r));
    o = copy_options(&c);
    o.strategy = WEIR_GREEDY;
    o.beat_ms = 20 * PATIENCE_MS;
    o.expire_ms = 0;
    copy_start_with(&c, f, &o);
    fleet_await(f, f->errors[WEIR_OPENING] > 0);
    fleet_lock(f); /* it tries again meanwhile */
    assert_int_equal(f->last_code, WEIR_EEPOCH);
    assert_int_equal(f->closes, 0);
    fleet_unlock(f);
    give_away(f, &c);
    fleet_await(f, f->reasons[WEIR_CLOSED_LOST] == 1);
    weir_receiver_close(r);
    copy_stop(&c);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_locks_others_out),
        cmocka_unit_test(beside_foreign_owners_it_does_not),
        cmocka_unit_test(it_pushes_aside_what_is_left_of_its_own),
        cmocka_unit_test(where_it_may_not_open_it_looks_whose_it_is),
    };
    return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
