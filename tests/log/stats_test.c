/* stats_test.c - what the numbers of a log say of what was done with it. */
#include "log/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define BATCHES 20

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_flush_is_in_one_bucket)};

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
