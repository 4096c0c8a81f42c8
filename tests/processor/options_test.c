/* options_test.c - a processor's options at their limits, what becomes of them, and what a program can
 * ask about its partitions. Times are exact, as stage.h says. */
#include "processor/stage.h"
#include "support/allocs.h"

#define REFUSED(member, value, words)                                                              \
    do {                                                                                           \
        struct weir_processor_options o_ = s.options;                                              \
        struct weir_error err_;                                                                    \
        o_.member = value;                                                                         \
        assert_int_equal(weir_processor_start(&s.processor, &s.source, s.store, &o_, &err_),       \
                         WEIR_EINVAL);                                                             \
        assert_null(s.processor);                                                                  \
        assert_string_equal(err_.text, "starting a processor: " words);                            \
    } while (0)

#define TAKEN(member, value)                                                                       \
    do {                                                                                           \
        struct weir_processor_options o_ = s.options;                                              \
        o_.member = value;                                                                         \
        assert_int_equal(weir_processor_start(&s.processor, &s.source, s.store, &o_, NULL), 0);    \
        assert_int_equal(weir_processor_stop(s.processor, 1000, NULL), 0);                         \
        s.processor = NULL;                                                                        \
        s.now_ns += INT64_C(1000000000) * 1000000; /* nobody of that name lives */                 \
    } while (0)

static void numbers_have_their_limits(void **state)
{
    (void)state;
    TAKEN(beat_ms, 10);
    REFUSED(beat_ms, 9, "beat_ms is 9, not 10 to 3600000");
    TAKEN(beat_ms, 3600000);
    REFUSED(beat_ms, 3600001, "beat_ms is 3600001, not 10 to 3600000");
    TAKEN(receive_ms, 1);
    TAKEN(receive_ms, INT64_MAX / 4);
    REFUSED(receive_ms, -1, "receive_ms is -1, not 1 to 2305843009213693951");
    REFUSED(receive_ms, INT64_MAX / 4 + 1,
            "receive_ms is 2305843009213693952, not 1 to 2305843009213693951");
    TAKEN(expire_ms, 2000);
    TAKEN(expire_ms, 86400000);
    REFUSED(expire_ms, 1999, "expire_ms is less than 2 times beat_ms");
    REFUSED(expire_ms, 86400001, "expire_ms is 86400001, not 0 to 86400000");
    TAKEN(handover_ms, 1);
    TAKEN(handover_ms, 86400000);
    REFUSED(handover_ms, 86400001, "handover_ms is 86400001, not 1 to 86400000");
    TAKEN(mark_ms, INT64_MAX / 4);
    REFUSED(mark_ms, -1, "mark_ms is -1, not 0 to 2305843009213693951");
    TAKEN(handler_ms, INT64_MAX / 4);
    REFUSED(handler_ms, -1, "handler_ms is -1, not 0 to 2305843009213693951");
}

static void choices_have_their_limits(void **state)
{
    (void)state;
    REFUSED(handler.events, NULL, "there is no handler for events");
    TAKEN(failure, WEIR_GIVE_UP);
    REFUSED(failure, (enum weir_failure)(WEIR_GIVE_UP + 1), "failure is none of enum weir_failure");
    REFUSED(failure, WEIR_DEAD_LETTER,
            "WEIR_DEAD_LETTER with neither dead_letter nor dead_letters");
    REFUSED(strategy, (enum weir_strategy)(WEIR_GREEDY + 1),
            "strategy is none of enum weir_strategy");
    TAKEN(overdue, WEIR_OVERDUE_ABORT);
    REFUSED(overdue, (enum weir_overdue)(WEIR_OVERDUE_ABORT + 1),
            "overdue is none of enum weir_overdue");
    REFUSED(threads, -2, "threads is -2, not -1 to 256");
    REFUSED(threads, 257, "threads is 257, not -1 to 256");
    TAKEN(batch_max, 4096);
    REFUSED(batch_max, 4097, "batch_max is 4097, the most is 4096");
    TAKEN(prefetch_events, 1000);
    REFUSED(prefetch_events, 999, "prefetch_events is 999, less than batch_max");
    TAKEN(prefetch_bytes, 16384);
    REFUSED(prefetch_bytes, 16383, "prefetch_bytes is 16383, the least is 16384");
    s.options.batch_max = 10;
    TAKEN(prefetch_events, 10);
    REFUSED(prefetch_events, 9, "prefetch_events is 9, less than batch_max");
}

static void names_have_their_limits(void **state)
{
    char name[WEIR_OWNER_BYTES + 1];

    (void)state;
    memset(name, 'n', sizeof name);
    name[WEIR_OWNER_BYTES] = '\0';
    REFUSED(name, name, "a copy's name has 1 to 128 bytes");
    REFUSED(name, "", "a copy's name has 1 to 128 bytes");
    name[WEIR_OWNER_BYTES - 1] = '\0';
    TAKEN(name, name);
    TAKEN(name, " ~\xc3\xa4");
    REFUSED(name, "a\x1f", "a copy's name has no control characters");
    REFUSED(name, "a\x7f", "a copy's name has no control characters");
}

static void without_partitions_there_is_nothing_to_do(void **state)
{
    struct weir_error err;

    (void)state;
    s.partitions = 0;
    assert_int_equal(weir_processor_start(&s.processor, &s.source, s.store, &s.options, &err),
                     WEIR_ENOTFOUND);
    assert_string_equal(err.text, "starting a processor: there are no partitions");
    s.partitions = 1;
    s.count_rc = WEIR_EUNREACHABLE;
    assert_int_equal(weir_processor_start(&s.processor, &s.source, s.store, &s.options, &err),
                     WEIR_EUNREACHABLE);
    assert_string_equal(err.text, "starting a processor: not counted");
    s.count_rc = 0;
    s.store_rc = WEIR_EIO;
    assert_int_equal(weir_processor_start(&s.processor, &s.source, s.store, &s.options, &err),
                     WEIR_EIO);
    assert_string_equal(err.text, "starting a processor: nobody answers");
}

static void without_memory_nothing_starts(void **state)
{
    struct weir_error err;
    uint64_t at = 0;
    int rc;

    (void)state;
    do {
        allocs_fail(++at);
        rc = weir_processor_start(&s.processor, &s.source, s.store, &s.options, &err);
        allocs_fail(0);
        if (rc != 0) assert_int_equal(rc, WEIR_ENOMEM);
        if (rc != 0) assert_null(s.processor);
        s.now_ns += INT64_C(1000000000) * 1000000;
    } while (rc != 0);
    assert_true(at > 5);
}

/* ---- what becomes of them ---- */

/* What is read ahead is divided among the partitions; a stream has its own limits. */
static void partitions_share_what_is_read_ahead(void **state)
{
    static const struct {
        size_t bytes, events;
        uint32_t partitions;
        size_t bytes_each;
        uint32_t events_each;
    } cases[] = {
        {0, 0, 1, 4 << 20, 0},         {0, 0, 32, 2 << 20, 0},
        {16 << 10, 0, 1, 16 << 10, 0}, {40 << 10, 0, 2, 20 << 10, 0},
        {40 << 10, 0, 4, 16 << 10, 0}, {64 << 20, 1000, 3, 4 << 20, 333},
        {0, 1000, 300, 223696, 3},     {0, (size_t)5 << 32, 1, 4 << 20, UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        s.options.prefetch_bytes = cases[i].bytes;
        s.options.prefetch_events = cases[i].events;
        s.partitions = cases[i].partitions;
        stage_start();
        stage_pass(100);
        assert_int_equal(s.opened.bytes_max, cases[i].bytes_each);
        assert_int_equal(s.opened.events_max, cases[i].events_each);
        assert_int_equal(weir_processor_stop(s.processor, 10000, NULL), 0);
        s.processor = NULL;
        s.now_ns += INT64_C(1000000000) * 1000000;
    }
}

/* Fewer than there are partitions: one each. */
static void a_stream_reads_one_ahead_at_least(void **state)
{
    (void)state;
    s.options.batch_max = 10;
    s.options.prefetch_events = 10;
    s.partitions = 11;
    stage_start();
    stage_pass(100);
    assert_int_equal(s.opened.events_max, 1);
    assert_string_equal(s.opened.owner, "a");
    assert_false(s.opened.metrics);
}

static void a_batch_has_1000_events(void **state)
{
    (void)state;
    s.end[0] = 1001;
    stage_start();
    stage_pass(10);
    expect_log("0 +0 0 0:0-999 0 0:1000-1000 ");
}

/* Hubs and groups have no case; their records are found by whoever writes them otherwise. */
static void records_are_kept_in_lower_case(void **state)
{
    (void)state;
    snprintf(s.source.hub, sizeof s.source.hub, "@AZ[az");
    snprintf(s.source.group, sizeof s.source.group, "$Default");
    snprintf(s.source.space, sizeof s.source.space, "Space.NET");
    stage_start();
    assert_string_equal(s.scope.hub, "@az[az");
    assert_string_equal(s.scope.group, "$default");
    assert_string_equal(s.scope.space, "space.net");
}

static void strategies_have_their_pace(void **state)
{
    static const struct {
        enum weir_strategy strategy;
        const char *log;
    } cases[] = {
        {WEIR_GREEDY, "0 +0 0 +1 0 +2 "},
        {WEIR_STICKY, "300 +0 300 +1 300 +2 "},
        {WEIR_BALANCED, "300 +0 1300 +1 2300 +2 "},
    };

    (void)state;
    s.partitions = 3;
    for (size_t i = 0; i < 3; i++) {
        s.options.strategy = cases[i].strategy;
        stage_clear();
        stage_start();
        stage_pass(250);
        if (i > 0) expect_calls("0 beat 0 read 50 read 100 read 150 read 200 read 250 read ");
        stage_pass(4000);
        expect_log(cases[i].log);
        assert_int_equal(weir_processor_stop(s.processor, 10000, NULL), 0);
        s.processor = NULL;
        s.now_ns += INT64_C(1000000000) * 1000000;
    }
}

/* While it looks around it looks twenty times in a beat, but not more often than every millisecond. */
static void short_beats_have_looks_between_them(void **state)
{
    static const struct {
        int64_t beat_ms;
        const char *calls;
    } cases[] = {
        {10, "0 beat 0 read 1 read 2 read 3 read 3 claim "},
        {19, "0 beat 0 read 1 read 2 read 3 read 4 read 5 read 5 claim "},
        {20, "0 beat 0 read 1 read 2 read 3 read 4 read 5 read 6 read 6 claim "},
        {40, "0 beat 0 read 2 read 4 read 6 read 8 read 10 read 12 read 12 claim "},
    };

    (void)state;
    s.options.strategy = WEIR_STICKY;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        s.options.beat_ms = cases[i].beat_ms;
        stage_clear();
        stage_start();
        stage_pass(cases[i].beat_ms - 1);
        expect_calls(cases[i].calls);
        assert_int_equal(weir_processor_stop(s.processor, 10000, NULL), 0);
        s.processor = NULL;
        s.now_ns += INT64_C(1000000000) * 1000000;
    }
}

static void words_for_everything(void **state)
{
    static const char *const reasons[] = {"unknown", "shutdown", "lost",   "moved",
                                          "error",   "released", "unknown"};
    static const char *const actions[] = {"unknown",   "beating",       "reading the store",
                                          "claiming",  "checkpointing", "opening",
                                          "receiving", "handling",      "unknown"};

    (void)state;
    for (int i = 0; i < 7; i++)
        assert_string_equal(weir_close_reason_text((enum weir_close_reason)i), reasons[i]);
    for (int i = 0; i < 9; i++)
        assert_string_equal(weir_action_text((enum weir_action)i), actions[i]);
    assert_string_equal(weir_action_text((enum weir_action) - 1), "unknown");
}

/* ---- in and about a partition ---- */

static struct weir_partition_lag lags[2];

static int look_around(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)n;
    assert_string_equal(weir_partition_hub(p), "Hub");
    assert_string_equal(weir_partition_group(p), "g");
    assert_string_equal(weir_partition_owner(p), "a");
    assert_int_equal(weir_partition_id(p), 0);
    assert_int_equal(weir_partition_epoch(p), 1);
    assert_false(weir_partition_revoked(p));
    weir_partition_lag(p, &lags[e[0].sequence == 0 ? 0 : 1]);
    return 0;
}

static void a_program_can_look_around(void **state)
{
    (void)state;
    snprintf(s.source.hub, sizeof s.source.hub, "Hub");
    s.options.metrics = true;
    s.options.batch_max = 4;
    s.end[0] = 8;
    s.act = look_around;
    stage_start();
    stage_pass(10);
    assert_int_equal(lags[0].events, 4);
    assert_int_equal(lags[0].ms, 0); /* none was handled before */
    assert_int_equal(lags[1].events, 0);
    assert_int_equal(lags[1].ms, 4);
    assert_int_equal(lags[1].end.last_sequence, 7);
    assert_int_equal(s.opened.epoch, 1);
}

static int look_at_lag(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e;
    assert_int_equal(n, 0);
    weir_partition_lag(p, &lags[0]);
    return 0;
}

/* It is called because nothing comes, though there is something. */
static void who_was_given_nothing_lags_behind_all(void **state)
{
    (void)state;
    s.options.metrics = true;
    s.options.invoke_when_idle = true;
    s.options.receive_ms = 100;
    s.end[0] = 8;
    s.receive_rc = WEIR_ETIMEDOUT;
    s.act = look_at_lag;
    stage_start();
    stage_pass(100);
    expect_log("0 +0 100 0:idle ");
    assert_int_equal(lags[0].events, 8);
    assert_int_equal(lags[0].ms, 0);
    assert_true(lags[0].end.known);
}

static int rewinds_rc[3];

static int rewind_far(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)n;
    if (e[0].sequence > 0) return 0;
    rewinds_rc[0] = weir_checkpoint_rewind(p, (uint64_t)INT64_MAX + 1);
    rewinds_rc[1] = weir_checkpoint_rewind(p, INT64_MAX);
    rewinds_rc[2] = weir_checkpoint_rewind(p, 2);
    return 0;
}

static void a_rewind_goes_to_what_can_be(void **state)
{
    (void)state;
    s.end[0] = 5;
    s.act = rewind_far;
    stage_start();
    stage_pass(10);
    assert_int_equal(rewinds_rc[0], WEIR_EINVAL);
    assert_int_equal(rewinds_rc[1], 0);
    assert_int_equal(rewinds_rc[2], 0);
    expect_log("0 +0 0 0:0-4 0 0:3-4 ");
}

static void a_paused_partition_waits(void **state)
{
    (void)state;
    s.partitions = 2;
    stage_start();
    stage_pass(10);
    assert_int_equal(weir_processor_pause(s.processor, 2), WEIR_ENOTFOUND);
    assert_int_equal(weir_processor_pause(s.processor, 1), 0);
    stage_publish(0, 1);
    stage_publish(1, 1);
    stage_pass(10);
    expect_log("0 +0 0 +1 10 0:0-0 ");
    assert_int_equal(weir_processor_resume(s.processor, 1), 0);
    stage_pass(0);
    expect_log("20 1:0-0 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_have_their_limits),
        TEST(choices_have_their_limits),
        TEST(names_have_their_limits),
        TEST(without_partitions_there_is_nothing_to_do),
        TEST(without_memory_nothing_starts),
        TEST(partitions_share_what_is_read_ahead),
        TEST(a_stream_reads_one_ahead_at_least),
        TEST(a_batch_has_1000_events),
        TEST(records_are_kept_in_lower_case),
        TEST(strategies_have_their_pace),
        TEST(short_beats_have_looks_between_them),
        TEST(words_for_everything),
        TEST(a_program_can_look_around),
        TEST(who_was_given_nothing_lags_behind_all),
        TEST(a_rewind_goes_to_what_can_be),
        TEST(a_paused_partition_waits),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
