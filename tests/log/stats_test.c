/* stats_test.c - what the numbers of a log say of what was done with it. */
#include "log/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/batch.h"

#define BATCHES 20

static int64_t step_ns; /* not 0: the clock goes on by so much whenever somebody looks */

int64_t __real_weir__mono_ns(void); // NOLINT(bugprone-reserved-identifier)
int64_t __wrap_weir__mono_ns(void); // NOLINT(bugprone-reserved-identifier)

int64_t __wrap_weir__mono_ns(void)
{
    static int64_t now_ns = 1;

    return step_ns ? now_ns += step_ns : __real_weir__mono_ns();
}

static void every_flush_is_in_one_bucket(void **state)
{
    struct weir__log_options options = {.dir = "log", .hub_id = 1, .partitions = 1};
    struct weir__log_batch batch = {.count = 1, .body = {weir__bytes_of("event", 5)}};
    struct weir__log_stats stats;
    struct weir__log *log;
    uint64_t sum = 0;

    (void)state;
    assert_int_equal(weir__fs_memory_new(&options.fs, 64 << 20, NULL), 0);
    assert_int_equal(weir__log_create(&options, NULL), 0);
    assert_int_equal(weir__log_open(&log, &options, NULL), 0);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(weir__log_append_wait(log, &batch, INT64_MAX, NULL, NULL), 0);
    weir__log_stats(log, &stats);
    for (int i = 0; i < WEIR__LOG_FLUSH_BUCKETS; i++) sum += stats.flush_buckets[i];
    assert_int_equal(sum, stats.syncs);
    assert_int_equal(sum, BATCHES);
    assert_true(stats.flush_ns > 0 && stats.flush_ns < INT64_C(60) * 1000 * 1000 * 1000);
    assert_int_equal(stats.events, BATCHES);
    assert_int_equal(weir__log_close(log, NULL), 0);
    weir__fs_memory_free(options.fs);
}

/* The first is of those that took at most 64 us, each of up to twice as much as the one before it, and
 * the last of all others. */
static void a_flush_is_in_the_bucket_of_its_time(void **state)
{
    const struct {
        int64_t ns;
        int bucket;
    } cases[] = {{1, 0},
                 {64000, 0},
                 {64001, 1},
                 {128000, 1},
                 {128001, 2},
                 {INT64_C(64000) << 15, 15},
                 {(INT64_C(64000) << 15) + 1, 16},
                 {INT64_C(64000) << 17, 16}};
    struct weir__log_options options = {.dir = "log",
                                        .hub_id = 1,
                                        .partitions = 1,
                                        .no_threads = true};
    struct weir__log_batch batch = {.count = 1, .body = {weir__bytes_of("event", 5)}};
    struct weir__log_stats before, stats;
    struct weir__log *log;

    (void)state;
    assert_int_equal(weir__fs_memory_new(&options.fs, 64 << 20, NULL), 0);
    assert_int_equal(weir__log_create(&options, NULL), 0);
    assert_int_equal(weir__log_open(&log, &options, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir__log_stats(log, &before);
        step_ns = cases[i].ns;
        assert_int_equal(weir__log_append_wait(log, &batch, INT64_MAX, NULL, NULL), 0);
        step_ns = 0;
        weir__log_stats(log, &stats);
        assert_int_equal(stats.flush_ns - before.flush_ns, cases[i].ns);
        for (int k = 0; k < WEIR__LOG_FLUSH_BUCKETS; k++)
            assert_int_equal(stats.flush_buckets[k] - before.flush_buckets[k],
                             k == cases[i].bucket);
    }
    assert_int_equal(weir__log_close(log, NULL), 0);
    weir__fs_memory_free(options.fs);
}

/* What was appended counts once it is durable; a repeat stores nothing. */
static void what_is_stored_is_counted(void **state)
{
    static const uint8_t body[1000] = {'x'};
    struct weir__log_options options = {
        .dir = "log", .hub_id = 1, .partitions = 2, .segment_bytes_max = 65536, .no_threads = true};
    struct weir__log_batch batch = {.count = 3,
                                    .producer = {.id = 9},
                                    .body = {weir__bytes_of(body, 600), weir__bytes_of(body, 400)}};
    uint64_t stored = weir__batch_bytes(1000);
    struct weir__log_stats stats;
    struct weir__log *log;

    (void)state;
    assert_int_equal(weir__fs_memory_new(&options.fs, 64 << 20, NULL), 0);
    assert_int_equal(weir__log_create(&options, NULL), 0);
    assert_int_equal(weir__log_open(&log, &options, NULL), 0);
    weir__log_stats(log, &stats);
    assert_int_equal(stats.segments, 1);
    assert_int_equal(stats.log_bytes, 65536);
    assert_int_equal(stats.stored_bytes, 0);
    assert_int_equal(stats.begin_time_ms, 0);
    assert_int_equal(stats.next_expiry_bytes, 0);
    assert_int_equal(stats.next_expiry_ms, -1);
    for (uint32_t i = 0; i < 2; i++) {
        batch.partition = i;
        assert_int_equal(weir__log_append(log, &batch, 0, NULL, NULL, NULL), 0);
    }
    weir__log_stats(log, &stats);
    assert_int_equal(stats.unflushed_bytes, 2 * stored);
    assert_int_equal(stats.batches + stats.events + stats.bytes + stats.groups + stats.syncs, 0);
    assert_int_equal(weir__log_flush(log, INT64_MAX, NULL), 0);
    assert_int_equal(weir__log_append_wait(log, &batch, INT64_MAX, NULL, NULL), 0);
    weir__log_stats(log, &stats);
    assert_int_equal(stats.unflushed_bytes, 0);
    assert_int_equal(stats.batches, 2);
    assert_int_equal(stats.events, 6);
    assert_int_equal(stats.bytes, 2000);
    assert_int_equal(stats.syncs, 1);
    assert_int_equal(stats.stored_bytes, 2 * stored);
    assert_int_equal(stats.next_expiry_bytes, 2 * stored);
    assert_in_range(stats.begin_time_ms, 1, stats.last_time_ms);
    assert_int_equal(stats.producers, 2);
    assert_int_equal(stats.producers_forgotten, 0);
    assert_int_equal(stats.disk_bytes_max, 0);
    assert_int_equal(weir__log_close(log, NULL), 0);
    weir__fs_memory_free(options.fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flush_is_in_one_bucket),
        cmocka_unit_test(a_flush_is_in_the_bucket_of_its_time),
        cmocka_unit_test(what_is_stored_is_counted),
    };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
