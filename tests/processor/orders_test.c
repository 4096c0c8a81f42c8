/* orders_test.c - what partitions tell their copy, and what that tells them: marks that somebody waits
 * for, hand-overs of many, foreign owners. Times are exact, as stage.h says. */
#include "processor/stage.h"

/* The store says that somebody has a partition. */
static void let_own(uint32_t partition, const char *owner, uint64_t instance)
{
    struct weir_record r = {.partition = partition}, got;
    struct weir_view v = {0};

    assert_int_equal(s.behind->read(s.store, &s.scope, &v, NULL), 0);
    for (size_t i = 0; i < v.record_count; i++)
        if (v.records[i].partition == partition) r = v.records[i];
    weir_view_free(&v);
    assert_int_equal(s.behind->claim(s.store, &s.scope, &r, owner, instance, &got, NULL), 0);
}

/* ---- marks ---- */

static int mark_or_release(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    int rc = weir_checkpoint(p, NULL);

    (void)e, (void)n;
    if (weir_partition_id(p) == 0) weir_partition_release(p);
    return rc;
}

/* What is released waits for its mark: that is written at once, and only that. */
static void a_mark_that_is_waited_for_is_not_gathered(void **state)
{
    (void)state;
    s.act = mark_or_release;
    s.partitions = 2;
    stage_start();
    stage_pass(100);
    stage_clear();
    stage_publish(1, 1);
    stage_pass(5);
    expect_calls("0 mark1 ");
    stage_publish(0, 1);
    stage_pass(2);
    expect_calls("5 mark1 5 read 5 claim ");
    expect_log("0 1:0-0 5 0:0-0 5 -0released ");
    stage_publish(1, 1);
    stage_pass(50);
    expect_calls("25 mark1 ");
    assert_int_equal(stats_now().store_calls, 9);
}

/* The other goes on as it was, though it was doubted once: its checkpoint was set by hand. */
static void what_is_released_disturbs_no_other(void **state)
{
    struct weir_mark mark = {.partition = 1, .sequence = 0};

    (void)state;
    s.act = mark_or_release;
    s.partitions = 2;
    stage_start();
    stage_pass(100);
    assert_int_equal(s.opens, 2);
    stage_publish(1, 1);
    stage_pass(100);
    assert_int_equal(s.behind->set(s.store, &s.scope, 1, &mark, NULL), 0);
    stage_publish(1, 1);
    stage_pass(100);
    assert_int_equal(s.opens, 3);
    stage_publish(0, 1);
    stage_pass(500);
    assert_int_equal(s.opens, 3);
    assert_int_equal(stats_now().owned, 1);
}

/* ---- many at once ---- */

static int closed_before;

static int count_closed(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_record *expected, const char *owner, uint64_t instance,
                        struct weir_record *out, struct weir_error *err)
{
    if (closed_before < 0 && strcmp(owner, "b") == 0) {
        closed_before = 0;
        for (const char *at = s.log; (at = strstr(at, "moved ")); at++) closed_before++;
    }
    return s.behind->claim(store, scope, expected, owner, instance, out, err);
}

/* The others are read on until it is their turn. */
static void no_more_than_64_move_at_once(void **state)
{
    (void)state;
    closed_before = -1;
    s.ops.claim = count_closed;
    s.partitions = 200;
    stage_start();
    for (int i = 0; i < 20; i++) stage_pass(10);
    assert_int_equal(stats_now().owned, 200);
    stage_clear();
    let_live("b", 1, 60000);
    for (int i = 0; i < 400; i++) stage_pass(10);
    assert_int_equal(closed_before, 64);
    assert_int_equal(stats_now().owned, 100);
    assert_int_equal(stats_now().handovers, 100);
}

/* ---- others ---- */

static void losses_and_take_overs_are_told(void **state)
{
    (void)state;
    s.partitions = 2;
    stage_start();
    stage_pass(100);
    let_live("b", 0, 2000);
    let_own(0, "b", 9);
    stage_pass(1000);
    assert_int_equal(stats_now().lost, 1);
    assert_int_equal(stats_now().takeovers, 0);
    stage_pass(5000);
    assert_int_equal(stats_now().takeovers, 1);
    assert_int_equal(stats_now().owned, 2);
}

/* They all read with epoch 0, and so does what is opened or goes elsewhere beside them. */
static void beside_foreign_owners_streams_have_no_epoch(void **state)
{
    struct weir_mark mark = {.sequence = 1};

    (void)state;
    s.partitions = 4;
    for (int i = 0; i < 4; i++) s.end[i] = 5;
    stage_start();
    stage_pass(100);
    assert_int_equal(s.opened.epoch, 1);
    let_own(3, "js", 0);
    let_own(2, "js", 0);
    stage_pass(1000);
    assert_int_equal(s.opens, 4);
    let_own(1, "", 0);
    stage_pass(1000);
    assert_int_equal(s.opens, 5);
    assert_int_equal(s.opened.epoch, 0);
    assert_int_equal(s.behind->set(s.store, &s.scope, 0, &mark, NULL), 0);
    stage_pass(1000);
    assert_int_equal(s.opens, 6);
    assert_int_equal(s.opened.epoch, 0);
}

static void who_is_silent_until_now_lives(void **state)
{
    (void)state;
    stage_start();
    let_live("b", 1, 2000);
    stage_pass(2000);
    stage_clear();
    assert_int_equal(weir_processor_stop(s.processor, 10000, NULL), 0);
    s.processor = NULL;
    assert_memory_equal(s.calls, "0 beat0 ", 8);
    assert_true(stage_ms() > 0);
}

static int hear_name(struct weir_store *store, const struct weir_scope *scope,
                     const struct weir_member *m, struct weir_error *err)
{
    assert_string_equal(m->id, "a");
    assert_int_equal(m->expire_ms, 3 * STAGE_BEAT_MS);
    return stage_beat(store, scope, m, err);
}

/* Before it has beaten a second time, too. */
static void who_leaves_soon_says_so(void **state)
{
    (void)state;
    s.ops.beat = hear_name;
    s.options.strategy = WEIR_STICKY;
    stage_start();
    let_live("b", 1, 60000);
    stage_pass(700);
    assert_int_equal(stats_now().owned, 1);
    stage_clear();
    assert_int_equal(weir_processor_stop(s.processor, 400, NULL), 0);
    s.processor = NULL;
    assert_memory_equal(s.calls, "0 beat0 ", 8);
}

/* Members that come and come are not waited for any longer. */
static void it_begins_after_two_beats(void **state)
{
    char id[8];

    (void)state;
    s.options.strategy = WEIR_STICKY;
    stage_start();
    for (int i = 0; i < 20; i++) {
        stage_pass(100);
        snprintf(id, sizeof id, "b%d", i);
        let_live(id, 0, 60000);
    }
    stage_pass(500);
    expect_log("2000 +0 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_mark_that_is_waited_for_is_not_gathered),
        TEST(what_is_released_disturbs_no_other),
        TEST(no_more_than_64_move_at_once),
        TEST(losses_and_take_overs_are_told),
        TEST(beside_foreign_owners_streams_have_no_epoch),
        TEST(who_is_silent_until_now_lives),
        TEST(who_leaves_soon_says_so),
        TEST(it_begins_after_two_beats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
