/* calls_test.c - when a copy calls its store, and what it says about calls that fail: beats, marks,
 * counts, its leave. Times are exact, as stage.h says. */
#include "processor/stage.h"

static int mark_all(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e, (void)n;
    return weir_checkpoint(p, NULL);
}

static void a_quiet_copy_calls_twice_in_a_beat(void **state)
{
    (void)state;
    stage_start();
    stage_pass(2000);
    expect_calls("0 beat 0 read 0 claim 1000 beat 1000 read 2000 beat 2000 read ");
    assert_int_equal(stats_now().store_calls, 7);
    assert_int_equal(stats_now().store_failures, 0);
    assert_int_equal(stats_now().members, 1);
    assert_int_equal(stats_now().opened, 1);
    assert_int_equal(stats_now().closed, 0);
}

/* ---- marks ---- */

/* At once, and those of the next 20 ms together. */
static void marks_are_gathered_for_a_moment(void **state)
{
    (void)state;
    s.act = mark_all;
    s.partitions = 2;
    stage_start();
    stage_pass(100);
    stage_clear();
    stage_publish(0, 1);
    stage_pass(5);
    expect_calls("0 mark1 ");
    stage_publish(0, 1);
    stage_pass(5);
    stage_publish(1, 1);
    stage_publish(0, 1);
    stage_pass(100);
    expect_calls("20 mark2 ");
    assert_int_equal(stats_now().marks_stored, 3);
    assert_int_equal(stats_now().marks_fenced, 0);
}

static void no_more_than_256_marks_are_in_one_call(void **state)
{
    (void)state;
    s.act = mark_all;
    s.partitions = 300;
    stage_start();
    for (int i = 0; i < 20; i++) stage_pass(10); /* one claim in a step */
    assert_int_equal(stats_now().owned, 300);
    stage_clear();
    for (uint32_t p = 0; p < 300; p++) stage_publish(p, 1);
    stage_pass(100);
    expect_calls("0 mark256 20 mark44 ");
    assert_int_equal(stats_now().marks_stored, 300);
}

static void a_mark_that_fails_is_written_a_beat_later(void **state)
{
    (void)state;
    s.act = mark_all;
    stage_start();
    stage_pass(100);
    stage_clear();
    s.mark_rc = WEIR_EUNREACHABLE;
    stage_publish(0, 1);
    stage_pass(1500);
    expect_calls("0 mark1 900 beat 900 read 1000 mark1 ");
    expect_told("0 nobody, checkpointing: not marked\n1000 nobody, checkpointing: not marked\n");
    assert_int_equal(stats_now().store_failures, 2);
    s.mark_rc = 0;
    stage_pass(500);
    assert_int_equal(stats_now().marks_stored, 1);
}

/* Somebody has set the checkpoint: that holds, and is looked for at once. */
static void a_refused_mark_is_looked_after_at_once(void **state)
{
    struct weir_mark mark = {.sequence = 1};

    (void)state;
    s.act = mark_all;
    s.end[0] = 5;
    stage_start();
    stage_pass(100);
    stage_clear();
    assert_int_equal(s.behind->set(s.store, &s.scope, 0, &mark, NULL), 0);
    stage_publish(0, 1);
    stage_pass(50);
    expect_calls("0 mark1 0 read 20 mark1 ");
    expect_log("0 0:5-5 0 0:2-5 ");
    assert_int_equal(stats_now().marks_fenced, 1);
}

static struct weir_error why;

static int mark_and_wait(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)n;
    return weir_checkpoint_wait(p, e, 1000, &why);
}

static void who_waits_for_a_mark_hears_what_became_of_it(void **state)
{
    struct weir_mark mark = {.sequence = 0};

    (void)state;
    s.options.one_by_one = true;
    s.options.failure = WEIR_DROP;
    s.options.attempts = 1;
    s.act = mark_and_wait;
    stage_start();
    stage_pass(100);
    s.mark_rc = WEIR_EUNREACHABLE;
    stage_publish(0, 1);
    stage_pass(0);
    assert_int_equal(why.code, WEIR_ETIMEDOUT);
    assert_string_equal(why.text, "the checkpoint is not stored yet");
    s.mark_rc = 0;
    assert_int_equal(s.behind->set(s.store, &s.scope, 0, &mark, NULL), 0);
    stage_publish(0, 1);
    stage_pass(0);
    expect_log("0 +0 100 0:0-0 100 0:1-1 100 0:1-1 "); /* once more, when it is known to be ours */
    assert_int_equal(why.code, WEIR_EFENCED);
    assert_string_equal(why.text, "the partition is not ours any more");
    assert_int_equal(stats_now().marks_stored, 1); /* when it was given again */
}

/* ---- failures ---- */

/* The same is told every ten seconds, another at once. */
static void a_silent_store_is_not_told_all_the_time(void **state)
{
    (void)state;
    stage_start();
    stage_pass(500);
    stage_clear();
    s.store_rc = WEIR_EUNREACHABLE;
    stage_pass(15000);
    expect_told("500 nobody, beating: nobody answers\n"
                "11050 nobody, beating: nobody answers\n");
    assert_in_range(stats_now().store_failures, 18, 40);
    assert_int_equal(stats_now().store_silent_ms, 14500);
    s.store_rc = WEIR_ETIMEDOUT;
    stage_pass(1000);
    assert_non_null(strstr(s.told, "nobody answers\n"));
    s.store_rc = 0;
    stage_pass(1000);
    assert_int_equal(stats_now().store_silent_ms, 0);
    s.told[0] = '\0';
    s.store_rc = WEIR_ETIMEDOUT; /* an answer lay between */
    stage_pass(1000);
    assert_non_null(strstr(s.told, "nobody answers\n"));
}

static void what_cannot_be_understood_is_told_once(void **state)
{
    (void)state;
    assert_int_equal(s.behind->set(s.store, &(struct weir_scope){"space", "h", "g"}, 0, NULL, NULL),
                     0);
    s.corrupt = true;
    stage_start();
    stage_pass(3000);
    expect_told("0 nobody, reading the store: the store's record of partition 0 cannot be"
                " understood; the partition is not read by anybody (weir checkpoint delete makes a"
                " new one)\n");
    expect_log("");
}

/* ---- how many partitions there are ---- */

static void partitions_are_counted_every_ten_beats(void **state)
{
    (void)state;
    stage_start();
    assert_int_equal(s.counts, 1);
    stage_pass(9999);
    assert_int_equal(s.counts, 1);
    s.partitions = 3;
    stage_pass(1);
    assert_int_equal(s.counts, 2);
    expect_log("0 +0 10000 +1 10000 +2 ");
    assert_int_equal(stats_now().partitions, 3);
    s.partitions = 2; /* which cannot be */
    s.count_rc = WEIR_EUNREACHABLE;
    stage_pass(10000);
    expect_told("20000 nobody, receiving: not counted\n");
    s.count_rc = 0;
    stage_pass(10000);
    expect_told("");
    expect_log("");
    assert_int_equal(stats_now().partitions, 3);
    assert_int_equal(s.counts, 4);
}

/* ---- leaving ---- */

static int64_t stop(int64_t timeout_ms)
{
    stage_clear();
    assert_int_equal(weir_processor_stop(s.processor, timeout_ms, NULL), 0);
    s.processor = NULL;
    return stage_ms();
}

/* What it owns it says a beat before, and reads on, so that the others are ready. */
static void a_copy_says_before_that_it_leaves(void **state)
{
    (void)state;
    stage_start();
    stage_pass(100);
    let_live("b", 1, 60000);
    stage_pass(1000);
    assert_int_equal(stop(10000), 1100);
    expect_log("1100 -0shutdown ");
    expect_calls("0 beat0 900 beat0 900 read 1100 beat0 1100 read 1100 claim 1100 leave ");
}

static void it_says_so_for_a_quarter_of_its_time_at_most(void **state)
{
    (void)state;
    stage_start();
    stage_pass(100);
    let_live("b", 1, 60000);
    stage_pass(1000);
    assert_int_equal(stop(2000), 500);
}

/* Nobody needs to be told: those who leave themselves, or died, or have not been there. */
static void with_nobody_else_it_leaves_at_once(void **state)
{
    (void)state;
    stage_start();
    stage_pass(100);
    let_live("b", 0, 60000);
    let_live("c", 1, 2000);
    stage_pass(3100);
    assert_int_equal(stop(10000), 0);
    expect_calls("0 beat0 0 read 0 claim 0 leave ");
}

static void stop_without_an_answer_takes_its_time(void **state)
{
    struct weir_error err;

    (void)state;
    stage_start();
    stage_pass(100);
    stage_clear();
    s.store_rc = WEIR_EUNREACHABLE;
    assert_int_equal(weir_processor_stop(s.processor, 3000, &err), WEIR_EUNREACHABLE);
    s.processor = NULL;
    assert_string_equal(err.text, "the partitions could not be handed over in time; others have"
                                  " them when this copy has expired");
    assert_int_equal(stage_ms(), 3000);
    expect_log("0 -0shutdown ");
}

/* ---- names ---- */

/* By the number of its start, which stores keep as a positive one. */
static void a_copy_without_a_name_gets_one(void **state)
{
    (void)state;
    s.options.name = NULL;
    for (int i = 0; i < 20; i++) {
        const char *name;
        stage_start();
        name = weir_processor_name(s.processor);
        assert_memory_equal(name, "copy-", 5);
        assert_int_equal(strspn(name + 5, "0123456789abcdef"), 16);
        assert_int_equal(strlen(name), 21);
        assert_in_range(name[5], '0', '7');
        stop(1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_quiet_copy_calls_twice_in_a_beat),
        TEST(marks_are_gathered_for_a_moment),
        TEST(no_more_than_256_marks_are_in_one_call),
        TEST(a_mark_that_fails_is_written_a_beat_later),
        TEST(a_refused_mark_is_looked_after_at_once),
        TEST(who_waits_for_a_mark_hears_what_became_of_it),
        TEST(a_silent_store_is_not_told_all_the_time),
        TEST(what_cannot_be_understood_is_told_once),
        TEST(partitions_are_counted_every_ten_beats),
        TEST(a_copy_says_before_that_it_leaves),
        TEST(it_says_so_for_a_quarter_of_its_time_at_most),
        TEST(with_nobody_else_it_leaves_at_once),
        TEST(stop_without_an_answer_takes_its_time),
        TEST(a_copy_without_a_name_gets_one),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
