/* mistakes_test.c - records that say what cannot be: told, with what to do, and put right by hand. */
#include "processor/fleet.h"

#define SOON_MS 1000 /* well within the pause below */

/* A fleet of two partitions with ten events each, and a store whose record of the first says it is
 * done up to there. */
struct mistaken {
    struct fleet *fleet;
    struct copy hand, copy;
    struct weir_scope scope;
};

static int set(struct mistaken *m, uint64_t sequence)
{
    struct weir_mark mark = {.sequence = sequence};

    return m->hand.store->ops->set(m->hand.store, &m->scope, 0, &mark, &err);
}

static void begin(struct mistaken *m, uint64_t sequence)
{
    m->fleet = fleet_new(2);
    publish_all(m->fleet, 10);
    copy_open(&m->hand, m->fleet);
    m->scope = (struct weir_scope){m->hand.source->space, "h", "$default"};
    assert_ok(set(m, sequence));
    copy_start(&m->copy, m->fleet);
}

static void end(struct mistaken *m)
{
    copy_stop(&m->copy);
    copy_close(&m->hand);
    assert_orderly(m->fleet);
    fleet_free(m->fleet);
}

/* It is tried less and less often, and all the same at once when somebody has put it right. */
static void what_is_put_right_is_tried_at_once(void **state)
{
    struct mistaken m = {0};
    int64_t set_ns;

    (void)state;
    begin(&m, 5000);
    fleet_await(m.fleet, m.fleet->errors[WEIR_OPENING] >= 6); /* now it pauses for 1,600 ms */
    assert_ok(set(&m, 7));
    set_ns = weir__mono_ns();
    fleet_await(m.fleet, m.fleet->next[0] == 10);
    assert_true(weir__mono_ns() - set_ns < INT64_C(1000000) * SOON_MS);
    assert_given(m.fleet, 0, 0, 8, 0);
    assert_given(m.fleet, 0, 8, 10, 1);
    assert_given(m.fleet, 1, 0, 10, 1);
    end(&m);
}

/* As a damaged store may give it: taken for a number below 0 it would mean the beginning. */
static void a_number_that_no_hub_has_is_beyond_the_end(void **state)
{
    struct mistaken m = {0};

    (void)state;
    begin(&m, UINT64_MAX - 4);
    fleet_await(m.fleet, m.fleet->errors[WEIR_OPENING] > 0 && m.fleet->next[1] == 10);
    fleet_lock(m.fleet);
    assert_int_equal(m.fleet->last_code, WEIR_EINVAL);
    assert_non_null(strstr(m.fleet->last_error, "18446744073709551611 of partition 0"));
    assert_non_null(strstr(m.fleet->last_error, "weir checkpoint set"));
    fleet_unlock(m.fleet);
    assert_given(m.fleet, 0, 0, 10, 0);
    assert_ok(m.hand.store->ops->set(m.hand.store, &m.scope, 0, NULL, &err));
    fleet_await(m.fleet, m.fleet->next[0] == 10);
    assert_given(m.fleet, 0, 0, 10, 1);
    end(&m);
}

static void a_group_that_is_not_there_is_named(void **state)
{
    struct fleet *f = fleet_new(2);
    struct weir_source *source;

    (void)state;
    assert_int_equal(weir_source_hub(&source, f->weir, "h", "nobody", &err), WEIR_ENOTFOUND);
    assert_null(source);
    assert_non_null(strstr(err.text, "consumer group 'nobody' of hub 'h'"));
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_right_is_tried_at_once),
        cmocka_unit_test(a_number_that_no_hub_has_is_beyond_the_end),
        cmocka_unit_test(a_group_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
