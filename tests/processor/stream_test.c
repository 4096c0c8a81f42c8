/* stream_test.c - what a partition does with its stream, and when: one that cannot be opened or read,
 * events that are gone, idle times, turns among partitions. Times are exact, as stage.h says. */
#include "processor/stage.h"

static void wait_for_open(void)
{
    int was = s.opens;

    for (int64_t end = stage_ms() + 100000; s.opens == was && stage_ms() < end;)
        assert_int_equal(weir_processor_step(s.processor, 100000, NULL), 0);
    assert_int_equal(s.opens, was + 1);
}

/* What may mend itself is tried every 5 s at least, the rest every 30 s. */
static void a_stream_is_tried_less_and_less_often(void **state)
{
    static const struct {
        int rc;
        int64_t most_ms;
    } cases[] = {{WEIR_EUNREACHABLE, 5000}, {WEIR_EDENIED, 30000}};

    (void)state;
    s.open_rc = WEIR_EUNREACHABLE;
    stage_start();
    wait_for_open();
    expect_told("0 opening: not opened\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t pause = 50, before = stage_ms();
        s.open_rc = cases[i].rc;
        for (int tries = 1; tries < 15; tries++) {
            wait_for_open();
            assert_int_equal(stage_ms() - before, pause);
            before = stage_ms();
            pause = pause * 2 < cases[i].most_ms ? pause * 2 : cases[i].most_ms;
        }
        s.open_rc = 0;
        wait_for_open();
        s.receive_rc = s.open_rc = WEIR_EUNREACHABLE; /* and now it counts from the start */
        s.opened.wake(s.opened.user, 0);
        stage_pass(0);
        s.receive_rc = 0;
    }
}

/* It is opened again, behind what was handled. */
static void a_stream_that_breaks_is_opened_again(void **state)
{
    (void)state;
    s.end[0] = 3;
    stage_start();
    stage_pass(100);
    s.receive_rc = WEIR_EIO;
    stage_publish(0, 2);
    stage_pass(10);
    assert_int_equal(s.shuts, 1);
    expect_told("100 receiving: not received\n");
    s.receive_rc = 0;
    stage_pass(100);
    expect_log("0 +0 0 0:0-2 150 0:3-4 ");
    assert_int_equal(s.opened.position.from, WEIR_FROM_SEQUENCE);
    assert_int_equal(s.opened.position.value, 2);
    assert_true(s.opened.position.after);
    assert_int_equal(s.opens, 2);
}

/* Nothing is passed over, and the stream stays where it is. */
static void damaged_events_are_waited_at(void **state)
{
    (void)state;
    s.end[0] = 3;
    s.receive_rc = WEIR_ECORRUPT;
    stage_start();
    stage_pass(200);
    expect_told(
        "0 receiving: partition 0 (weir checkpoint set goes on behind them): not received\n"
        "50 receiving: partition 0 (weir checkpoint set goes on behind them): not received\n"
        "150 receiving: partition 0 (weir checkpoint set goes on behind them): not received\n");
    s.receive_rc = 0;
    stage_pass(200);
    expect_log("0 +0 350 0:0-2 ");
    assert_int_equal(s.opens, 1);
    assert_int_equal(s.shuts, 0);
}

static void events_that_are_gone_are_told(void **state)
{
    (void)state;
    s.end[0] = 3;
    s.missed = 7;
    stage_start();
    stage_pass(100);
    expect_told(
        "0 receiving: 7 events of partition 0 are gone: they expired (a longer retention, or"
        " more copies, would have them), or a server found them damaged, which its log tells;"
        " going on at 0\n");
    expect_log("0 +0 0 0:0-2 ");
}

static void a_thief_is_looked_after_at_once(void **state)
{
    (void)state;
    s.end[0] = 1;
    stage_start();
    stage_pass(500);
    stage_clear();
    s.receive_rc = WEIR_ESTOLEN;
    stage_publish(0, 1);
    assert_int_equal(weir_processor_step(s.processor, 0, NULL), 0);
    s.receive_rc = 0;
    stage_pass(100);
    assert_string_equal(s.calls, "0 read "); /* whose is it? still ours */
    expect_log("0 0:1-1 ");
    expect_told("");
    assert_int_equal(s.opens, 2);
}

/* Somebody with a store of his own takes it each time; once may be a mistake. */
static void a_quarrel_is_not_kept_up(void **state)
{
    static const char told[] = "receiving: another reader took partition 0 %d times, though the "
                               "store says that it is ours: do others read this group with another "
                               "store?\n";
    char all[4096] = "";
    int64_t at = 0;

    (void)state;
    stage_start();
    stage_pass(500);
    stage_clear();
    s.receive_rc = WEIR_ESTOLEN;
    s.opened.wake(s.opened.user, WEIR_ESTOLEN);
    stage_pass(600000);
    s.receive_rc = 0;
    for (int i = 2; at < 600000; i++) {
        if ((i & (i - 1)) == 0) stage_note(all, "%" PRId64 " ", at);
        if ((i & (i - 1)) == 0) stage_note(all, told, i);
        at += i - 2 < 10 ? 50 << (i - 2) : 30000;
    }
    expect_told(all);
    stage_pass(100000); /* it lasted: the next time is the first again */
    s.receive_rc = WEIR_ESTOLEN;
    s.opened.wake(s.opened.user, 0);
    assert_int_equal(weir_processor_step(s.processor, 0, NULL), 0);
    s.receive_rc = 0;
    stage_pass(100);
    expect_told("");
}

/* ---- nothing to read ---- */

/* A minute after the last events, if nothing else was said, and then every minute. */
static void the_idle_are_called_every_minute(void **state)
{
    (void)state;
    s.options.invoke_when_idle = true;
    s.end[0] = 1;
    stage_start();
    stage_pass(100000);
    stage_publish(0, 1);
    stage_pass(59999);
    expect_log("0 +0 0 0:0-0 60000 0:idle 100000 0:1-1 ");
    stage_pass(60001);
    expect_log("160000 0:idle 220000 0:idle ");
}

static int fail_idle(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)p, (void)e;
    return n == 0 ? 77 : 0;
}

/* There is nothing to be tried again, and nobody to blame. */
static void an_idle_call_may_fail(void **state)
{
    (void)state;
    s.options.invoke_when_idle = true;
    s.options.receive_ms = 100;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 1;
    s.act = fail_idle;
    stage_start();
    stage_pass(250);
    stage_publish(0, 2);
    stage_pass(10);
    expect_log("0 +0 100 0:idle 200 0:idle 250 0:0-1 ");
}

/* ---- turns ---- */

/* How many events in a row each partition got, "0:255 1:255 ...". */
static struct {
    char text[STAGE_LOG];
    uint32_t last;
    int count, takes_ms;
} turns;

static int note_turn(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e, (void)n;
    if (weir_partition_id(p) != turns.last && turns.count > 0) {
        stage_note(turns.text, "%u:%d ", turns.last, turns.count);
        turns.count = 0;
    }
    turns.last = weir_partition_id(p);
    turns.count++;
    s.now_ns += (int64_t)turns.takes_ms * 1000000;
    return 0;
}

static void take_turns(uint64_t events, int takes_ms)
{
    memset(&turns, 0, sizeof turns);
    turns.takes_ms = takes_ms;
    s.partitions = 2;
    s.options.one_by_one = true;
    s.act = note_turn;
    stage_start();
    stage_pass(100);
    stage_publish(0, events);
    stage_publish(1, events);
    stage_pass(100);
}

/* A turn has 256 steps; the first of them here is a receive. */
static void partitions_take_turns(void **state)
{
    (void)state;
    take_turns(600, 0);
    assert_string_equal(turns.text, "0:255 1:255 0:256 1:256 0:89 ");
    assert_int_equal(turns.count, 89);
}

static void a_slow_partition_has_a_turn_of_4_ms(void **state)
{
    (void)state;
    take_turns(9, 1);
    assert_string_equal(turns.text, "0:4 1:4 0:4 1:4 0:1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_is_tried_less_and_less_often),
        TEST(a_stream_that_breaks_is_opened_again),
        TEST(damaged_events_are_waited_at),
        TEST(events_that_are_gone_are_told),
        TEST(a_thief_is_looked_after_at_once),
        TEST(a_quarrel_is_not_kept_up),
        TEST(the_idle_are_called_every_minute),
        TEST(an_idle_call_may_fail),
        TEST(partitions_take_turns),
        TEST(a_slow_partition_has_a_turn_of_4_ms),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
