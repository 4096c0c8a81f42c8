/* trouble_test.c - what a partition makes of thefts, refusals and handlers that fail: what is told
 * and what is not, and that it begins again. Times are exact, as stage.h says. */
#include "processor/stage.h"

#include "processor/state.h"

/* What the handler fails with: none of our codes. */
#define BAD 77
#define STEADY_MS 60000 /* a stream that lasts longer was not taken in a quarrel */

/* The store says that somebody has a partition. */
static void let_own(uint32_t partition, const char *owner)
{
    struct weir_record r = {.partition = partition}, got;
    struct weir_view v = {0};

    assert_int_equal(s.behind->read(s.store, &s.scope, &v, NULL), 0);
    for (size_t i = 0; i < v.record_count; i++)
        if (v.records[i].partition == partition) r = v.records[i];
    weir_view_free(&v);
    assert_int_equal(s.behind->claim(s.store, &s.scope, &r, owner, 0, &got, NULL), 0);
}

static void set_by_hand(uint64_t sequence)
{
    struct weir_mark mark = {.sequence = sequence};

    assert_int_equal(s.behind->set(s.store, &s.scope, 0, &mark, NULL), 0);
}

static void steal(void)
{
    s.opened.wake(s.opened.user, WEIR_ESTOLEN);
}

/* ---- thefts ---- */

/* However it is noticed. A stream that lasted for longer was not taken in a quarrel. */
static void the_second_theft_is_told(void **state)
{
    (void)state;
    stage_start();
    stage_pass(500);
    steal();
    stage_pass(STEADY_MS);
    expect_told("");
    stage_clear();
    steal();
    stage_pass(0);
    expect_told("0 receiving: another reader took partition 0 2 times, though the store says that "
                "it is ours: do others read this group with another store?\n");
    stage_pass(50 + STEADY_MS + 1); /* it was left to the other for a moment */
    steal();
    stage_pass(1000);
    expect_told("");
    assert_int_equal(s.opens, 4);
}

/* Neither is a checkpoint that somebody sets, nor an epoch that is in the way. */
static void what_is_no_theft_is_not_called_one(void **state)
{
    (void)state;
    s.end[0] = 5;
    stage_start();
    stage_pass(500);
    for (int i = 0; i < 3; i++) {
        set_by_hand(1);
        stage_pass(1000);
    }
    assert_int_equal(s.opens, 4);
    steal();
    stage_pass(1000);
    set_by_hand(1);
    stage_pass(1000);
    expect_told("");
    s.open_rc = WEIR_EEPOCH;
    set_by_hand(1);
    stage_pass(3000);
    assert_non_null(strstr(s.told, "opening: not opened\n"));
    assert_null(strstr(s.told, "another reader"));
}

static bool revoked[2];
static int calls;

static int be_robbed_and_fail(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e, (void)n;
    if (calls++ > 0) {
        revoked[1] = weir_partition_revoked(p);
        return 0;
    }
    steal();
    revoked[0] = weir_partition_revoked(p);
    return BAD;
}

/* It has lost its events: that it fails says nothing. When it has them again it is not revoked. */
static void a_handler_that_is_robbed_may_fail(void **state)
{
    (void)state;
    calls = 0;
    s.end[0] = 2;
    s.act = be_robbed_and_fail;
    stage_start();
    stage_pass(100);
    expect_log("0 +0 0 0:0-1 0 0:0-1 ");
    expect_told("");
    assert_int_equal(stats_now().handler_failures, 0);
    assert_true(revoked[0]);
    assert_false(revoked[1]);
}

/* With a new stream its attempts are counted from the first. */
static void attempts_begin_with_the_stream(void **state)
{
    (void)state;
    s.end[0] = 1;
    s.rc = BAD;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 2;
    stage_start();
    stage_pass(10);
    steal();
    stage_pass(30);
    assert_int_equal(stats_now().dropped, 0);
    stage_pass(100);
    expect_log("0 +0 0 0:0-0 10 0:0-0 60 0:0-0 ");
    assert_int_equal(stats_now().dropped, 1);
}

/* ---- beside foreign owners ---- */

static struct weir_source_ops other_ops;
static int zeros, others;

static int refuse_zero(struct weir_source *source, uint32_t partition,
                       const struct weir_stream_options *o, struct weir_stream **out,
                       struct weir_error *err)
{
    zeros += o->epoch == 0;
    others += o->epoch != 0;
    if (o->epoch == 0) return weir__fail(err, WEIR_EEPOCH, "an epoch is in the way");
    return stage_source_ops.open(source, partition, o, out, err);
}

/* Two of them leave one each to us; streams are opened with epoch 0 there. */
static void live_beside_foreign_owners(void)
{
    s.partitions = 2;
    stage_start();
    stage_pass(100);
    let_own(0, "js");
    stage_pass(1000);
    let_own(1, "");
    stage_clear();
}

/* A copy that had it before may still be attached: then it is opened as it was. */
static void an_epoch_in_the_way_is_answered_with_another(void **state)
{
    (void)state;
    zeros = others = 0;
    live_beside_foreign_owners();
    other_ops = stage_source_ops;
    other_ops.open = refuse_zero;
    s.source.ops = &other_ops;
    stage_pass(2000);
    assert_int_equal(zeros, 1);
    assert_int_equal(others, 1);
    expect_told("");
}

static void another_refusal_is_told(void **state)
{
    (void)state;
    live_beside_foreign_owners();
    s.open_rc = WEIR_EUNREACHABLE;
    stage_pass(2000);
    assert_non_null(strstr(s.told, "opening: not opened\n"));
    assert_int_equal(s.opened.epoch, 0);
}

/* Only a hub that does not have the place of a checkpoint is told to have none. */
static void a_refused_place_is_told_where_there_is_one(void **state)
{
    (void)state;
    s.end[0] = 3;
    s.open_rc = WEIR_EINVAL;
    stage_start();
    stage_pass(0);
    expect_told("0 opening: not opened\n"); /* it was not by a checkpoint */
    s.open_rc = 0;
    stage_pass(100);
    expect_log("0 +0 50 0:0-2 ");
    s.open_rc = WEIR_EUNREACHABLE;
    steal();
    stage_pass(0);
    expect_told("100 opening: not opened\n");
    s.open_rc = WEIR_EINVAL;
    stage_pass(50);
    expect_told("150 opening: the checkpoint at 2 of partition 0 is not in the hub (weir checkpoint"
                " set, or delete, puts it right): not opened\n");
}

/* ---- failures ---- */

/* A program need not hear of errors. */
static void without_somebody_to_tell_it_goes_on(void **state)
{
    (void)state;
    s.options.handler.error = NULL;
    s.end[0] = 1;
    s.rc = BAD;
    stage_start();
    stage_pass(10);
    s.store_rc = WEIR_EUNREACHABLE;
    stage_pass(1500);
    s.store_rc = s.rc = 0;
    stage_pass(2000);
    s.log[0] = '\0';
    stage_publish(0, 1);
    stage_pass(0);
    expect_log("3510 0:1-1 ");
    assert_true(stats_now().handler_failures > 1);
    assert_true(stats_now().store_failures > 1);
}

static int fail_idle_and_first(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)p, (void)e;
    return n == 0 || calls++ == 0 ? BAD : 0;
}

/* An idle call that failed says nothing of the events that come. */
static void a_failed_idle_call_is_no_attempt(void **state)
{
    (void)state;
    calls = 0;
    s.options.invoke_when_idle = true;
    s.options.receive_ms = 100;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 2;
    s.act = fail_idle_and_first;
    stage_start();
    stage_pass(110);
    stage_publish(0, 1);
    stage_pass(80);
    expect_log("0 +0 100 0:idle 110 0:0-0 160 0:0-0 ");
    assert_int_equal(stats_now().dropped, 0);
}

/* What is dropped is one event that is done with, no more. */
static void a_dropped_event_counts_as_one(void **state)
{
    (void)state;
    s.end[0] = 1;
    s.rc = BAD;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 1;
    s.options.mark_events = 2;
    stage_start();
    stage_pass(100);
    assert_int_equal(stats_now().dropped, 1);
    assert_null(strstr(s.calls, "mark"));
    stage_publish(0, 1);
    stage_pass(100);
    assert_int_equal(stats_now().dropped, 2);
    assert_non_null(strstr(s.calls, "100 mark1 "));
}

static int fail_read(struct weir_store *store, const struct weir_scope *scope, struct weir_view *v,
                     struct weir_error *err)
{
    (void)store, (void)scope, (void)v;
    return weir__fail(err, WEIR_EDENIED, "not shown");
}

/* One that takes beats and cannot be read is of no use: that is told to who starts. */
static void a_store_that_cannot_be_read_lets_nothing_start(void **state)
{
    struct weir_error err;

    (void)state;
    s.ops.read = fail_read;
    assert_int_equal(weir_processor_start(&s.processor, &s.source, s.store, &s.options, &err),
                     WEIR_EDENIED);
    assert_string_equal(err.text, "starting a processor: not shown");
    assert_null(s.processor);
}

/* ---- habits ---- */

static int mark_all(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e, (void)n;
    return weir_checkpoint(p, NULL);
}

static void mark_each_of(uint64_t events)
{
    s.act = mark_all;
    s.options.batch_max = 1;
    s.end[0] = events;
    stage_start();
    for (int i = 0; i < 10; i++) stage_pass(10);
    assert_int_equal(stats_now().events, events);
}

static void who_marks_every_event_is_told_once(void **state)
{
    (void)state;
    mark_each_of(3000);
    expect_told("0 checkpointing: every event of partition 0 is marked, 1000000 a second: mark the "
                "last of each batch\n");
}

/* It was asked for them one by one. */
static void one_by_one_is_no_habit(void **state)
{
    (void)state;
    s.options.one_by_one = true;
    mark_each_of(3000);
    expect_told("");
}

/* ---- in the middle of a turn ---- */

static int pause_at_once(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)n;
    if (e->sequence == 1) assert_int_equal(weir_processor_pause(s.processor, 0), 0);
    (void)p;
    return 0;
}

static void a_pause_ends_the_turn(void **state)
{
    (void)state;
    s.end[0] = 4;
    s.options.one_by_one = true;
    s.act = pause_at_once;
    stage_start();
    stage_pass(100);
    expect_log("0 +0 0 0:0-0 0 0:1-1 ");
    assert_int_equal(weir_processor_resume(s.processor, 0), 0);
    stage_pass(0);
    expect_log("100 0:2-2 100 0:3-3 ");
}

static bool late;

/* Events come when the stream has just said that there are none. */
static int receive_too_early(struct weir_stream *stream, size_t max, struct weir_received *out,
                             struct weir_error *err)
{
    int rc = stage_receive(stream, max, out, err);

    if (rc == WEIR_ETIMEDOUT && late) {
        late = false;
        stage_publish(0, 1);
    }
    return rc;
}

static void what_comes_at_the_end_of_a_turn_is_read_in_the_next(void **state)
{
    (void)state;
    other_ops = stage_source_ops;
    other_ops.receive = receive_too_early;
    s.source.ops = &other_ops;
    late = true;
    stage_start();
    stage_pass(10);
    assert_false(late);
    expect_log("0 +0 0 0:0-0 ");
}

/* A program that waits in a step is not left waiting when events come. */
static void what_comes_while_it_waits_ends_the_wait(void **state)
{
    (void)state;
    stage_start();
    stage_pass(10);
    assert_false(s.processor->poked);
    stage_publish(0, 1);
    assert_true(s.processor->poked);
    stage_pass(0);
    expect_log("0 +0 10 0:0-0 ");
}

static struct weir_partition_lag lag;

static int look_at_lag(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)n;
    if (e->sequence == 1) weir_partition_lag(p, &lag);
    return 0;
}

/* Also behind a batch of one event. */
static void lag_counts_from_the_last_event(void **state)
{
    (void)state;
    s.options.metrics = true;
    s.options.batch_max = 1;
    s.end[0] = 4;
    s.act = look_at_lag;
    stage_start();
    stage_pass(10);
    assert_int_equal(lag.events, 2);
    assert_int_equal(lag.ms, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_second_theft_is_told),
        TEST(what_is_no_theft_is_not_called_one),
        TEST(a_handler_that_is_robbed_may_fail),
        TEST(attempts_begin_with_the_stream),
        TEST(an_epoch_in_the_way_is_answered_with_another),
        TEST(another_refusal_is_told),
        TEST(a_refused_place_is_told_where_there_is_one),
        TEST(without_somebody_to_tell_it_goes_on),
        TEST(a_failed_idle_call_is_no_attempt),
        TEST(a_dropped_event_counts_as_one),
        TEST(a_store_that_cannot_be_read_lets_nothing_start),
        TEST(who_marks_every_event_is_told_once),
        TEST(one_by_one_is_no_habit),
        TEST(a_pause_ends_the_turn),
        TEST(what_comes_at_the_end_of_a_turn_is_read_in_the_next),
        TEST(what_comes_while_it_waits_ends_the_wait),
        TEST(lag_counts_from_the_last_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
