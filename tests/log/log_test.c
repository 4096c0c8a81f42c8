/* log_test.c - what log.h says of a log in good health: appending, looking, reading, keeping. */
#include "log/log.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/thread.h"
#include "support/workload.h"

#define WAIT weir__deadline_ns(20000)

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);
    struct weir_error err = {0};

    workload_init(w, 7);
    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
    *state = w;
    return 0;
}

/* Whatever a test did, everything it had acknowledged is there before and after a reopen. */
static int tear_down(void **state)
{
    struct workload *w = *state;
    int rc = 0;

    if (w->log) {
        history_check(w->history, w->log, false);
        rc = workload_close(w);
        if (rc == 0) rc = workload_open(w, NULL);
        if (rc == 0) history_check(w->history, w->log, true);
        rc |= workload_close(w);
    }
    if (w->history->violations > 0) print_error("%s\n", w->history->first);
    if (w->history->violations > 0 || simfs_open_files(w->disk) > 0) rc = -1;
    workload_fini(w);
    test_free(w);
    return rc;
}

static void put(struct workload *w, uint32_t partition, uint32_t bytes, uint32_t count)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = count};

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
}

static const struct weir__log_receipt *receipt(const struct workload *w, size_t index)
{
    return &w->history->batches[index].receipt;
}

static void reopen(struct workload *w)
{
    struct weir_error err = {0};

    assert_int_equal(workload_close(w), 0);
    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
}

static struct weir__log_partition_info info_of(struct workload *w, uint32_t partition)
{
    struct weir__log_partition_info info;

    assert_int_equal(weir__log_partition_info(w->log, partition, &info, NULL), 0);
    return info;
}

static uint64_t find(struct workload *w, uint32_t partition, enum weir__log_by by, uint64_t value,
                     bool inclusive)
{
    uint64_t sequence = UINT64_MAX;

    assert_int_equal(weir__log_find(w->log, partition, by, (int64_t)value, inclusive, &sequence,
                                    NULL),
                     0);
    return sequence;
}

/* ---- making and opening ---- */

static void empty_log_is_empty(void **state)
{
    struct workload *w = *state;
    struct weir__log_stats stats;

    for (int round = 0; round < 2; round++) {
        for (uint32_t p = 0; p < w->options.partitions; p++) {
            struct weir__log_partition_info info = info_of(w, p);

            assert_int_equal(info.begin_sequence, 0);
            assert_int_equal(info.next_sequence, 0);
            assert_int_equal(info.last_offset, 0);
            assert_int_equal(info.last_time_ms, 0);
        }
        assert_int_equal(find(w, 0, WEIR__LOG_BY_TIME, 0, true), 0);
        weir__log_stats(w->log, &stats);
        assert_int_equal(stats.events, 0);
        assert_int_equal(stats.unflushed_bytes, 0);
        assert_int_equal(weir__log_state(w->log, NULL), 0);
        reopen(w);
    }
}

static void wrong_options_are_refused(void **state)
{
    struct workload *w = *state;
    struct weir__log_options o = w->options;
    struct weir__log *log = NULL;
    struct weir_error err = {0};

    assert_int_equal(weir__log_create(&o, &err), WEIR_EEXIST);
    assert_int_equal(workload_close(w), 0);
    o.hub_id++;
    assert_int_equal(weir__log_open(&log, &o, &err), WEIR_EINVAL);
    assert_null(log);
    o = w->options;
    o.partitions = WEIR__LOG_PARTITIONS_MAX + 1;
    assert_int_equal(weir__log_open(&log, &o, &err), WEIR_EINVAL);
    o = w->options;
    o.segment_bytes_max = (1u << 20) + 1;
    assert_int_equal(weir__log_open(&log, &o, &err), WEIR_EINVAL);
    o = w->options;
    o.dir = "nothing-here";
    assert_int_equal(weir__log_open(&log, &o, &err), WEIR_ENOTFOUND);
    assert_int_equal(workload_open(w, NULL), 0);
}

/* Both copies say version 3, under good checksums. */
static void unknown_version_is_refused(void **state)
{
    struct workload *w = *state;
    const char *paths[] = {WORKLOAD_DIR "/control", WORKLOAD_DIR "/00000001.seg"};

    for (size_t i = 0; i < 2; i++) {
        uint64_t size = simfs_size(w->disk, paths[i]);
        struct weir_error err = {0};
        uint8_t block[WEIR__FS_BLOCK];
        struct simfs *disk;
        struct weir__log_options o = w->options;
        struct weir__log *log = NULL;

        disk = simfs_clone(w->disk);
        o.fs = simfs_fs(disk);
        for (uint64_t at = 0; at < size; at += size - sizeof block) {
            assert_int_equal(simfs_peek(disk, paths[i], block, sizeof block, at), sizeof block);
            weir__store32(block + 8, 3);
            weir__store32(block + 4, weir__crc32c(0, block + 8, sizeof block - 8));
            simfs_poke(disk, paths[i], block, sizeof block, at);
        }
        assert_int_equal(weir__log_open(&log, &o, &err), WEIR_EVERSION);
        assert_non_null(strstr(err.text, "version 3"));
        assert_int_equal(simfs_open_files(disk), 0);
        simfs_free(disk);
    }
}

static void destroyed_log_leaves_nothing(void **state)
{
    struct workload *w = *state;

    put(w, 0, 100, 1);
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(weir__log_destroy(simfs_fs(w->disk), WORKLOAD_DIR, NULL), 0);
    assert_null(simfs_path(w->disk, 0));
    assert_int_equal(weir__log_destroy(simfs_fs(w->disk), WORKLOAD_DIR, NULL), 0);
    assert_int_equal(weir__log_create(&w->options, NULL), 0);
    w->history->count = 0;
    assert_int_equal(workload_open(w, NULL), 0);
}

/* ---- appending ---- */

static void sequences_are_dense_per_partition(void **state)
{
    struct workload *w = *state;
    uint64_t next[5] = {0}, end = WEIR__LOG_ORIGIN;

    for (uint32_t i = 0; i < 40; i++) {
        uint32_t partition = i * 7 % 5, count = 1 + i % 9;

        put(w, partition, 20 + i * 31, count);
        assert_int_equal(receipt(w, i)->sequence, next[partition]);
        assert_true(receipt(w, i)->offset >= end);
        next[partition] += count;
        end = receipt(w, i)->offset + count;
        assert_int_equal(info_of(w, partition).next_sequence, next[partition]);
        assert_int_equal(info_of(w, partition).last_offset, end - 1);
    }
}

static void assert_refused(struct workload *w, const struct weir__log_batch *b, int rc)
{
    struct weir__log_receipt r;

    assert_int_equal(weir__log_append_wait(w->log, b, WAIT, &r, NULL), rc);
    assert_int_equal(weir__log_append(w->log, b, 0, NULL, NULL, NULL), rc);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
}

static void bad_batches_are_refused(void **state)
{
    struct workload *w = *state;
    uint8_t *big = calloc(1, w->options.batch_bytes_max + 1);
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of(big, 10)}};

    assert_non_null(big);
    b.partition = w->options.partitions;
    assert_refused(w, &b, WEIR_EINVAL);
    b.partition = 0;
    b.count = 0;
    assert_refused(w, &b, WEIR_EINVAL);
    b.count = 11; /* more events than bytes */
    assert_refused(w, &b, WEIR_EINVAL);
    b.count = 1;
    b.body[0].len = w->options.batch_bytes_max + 1;
    assert_refused(w, &b, WEIR_ETOOBIG);
    b.body[0].len = w->options.batch_bytes_max;
    b.body[1] = weir__bytes_of(big, 1);
    assert_refused(w, &b, WEIR_ETOOBIG);
    assert_int_equal(info_of(w, 0).next_sequence, 0);
    free(big);
    put(w, 0, w->options.batch_bytes_max, 1);
    put(w, 0, 16, 16);
}

static void nothing_is_seen_before_it_is_durable(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 1, .bytes = 500, .count = 4};
    struct weir__log_stats stats;

    assert_int_equal(history_append(w->history, w->log, &o), 0);
    assert_int_equal(w->history->completed, 0);
    assert_int_equal(info_of(w, 1).next_sequence, 0);
    weir__log_stats(w->log, &stats);
    assert_true(stats.unflushed_bytes >= 500);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(w->history->acked, 1);
    assert_int_equal(info_of(w, 1).next_sequence, 4);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.unflushed_bytes, 0);
    assert_int_equal(stats.events, 4);
    assert_int_equal(stats.batches, 1);
    assert_int_equal(stats.bytes, 500);
}

static void close_commits_and_completes(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 2, .bytes = 3000, .count = 2};

    for (int i = 0; i < 20; i++) assert_int_equal(history_append(w->history, w->log, &o), 0);
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(w->history->completed, 20);
    assert_int_equal(w->history->acked, 20);
    assert_int_equal(workload_open(w, NULL), 0);
    assert_int_equal(info_of(w, 2).next_sequence, 40);
}

/* Memory for what is not yet on disk is bounded, and so is the wait for it. */
static void full_tail_answers_busy(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 0, .bytes = 60000, .count = 1};
    int rc = 0, taken = 0;

    assert_int_equal(workload_close(w), 0);
    w->options.tail_bytes = 1u << 20;
    assert_int_equal(workload_open(w, NULL), 0);
    while (rc == 0 && taken < 1000) {
        rc = history_append(w->history, w->log, &o);
        taken += rc == 0;
    }
    assert_int_equal(rc, WEIR_EBUSY);
    assert_in_range(taken, 1, 40);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(w->history->acked, taken);
    put(w, 0, 60000, 1);
}

static void producers_are_idempotent(void **state)
{
    struct workload *w = *state;
    uint8_t body[64] = {1};
    struct weir__log_batch b = {.partition = 3,
                                .count = 5,
                                .producer = {9, 2, 100},
                                .body = {weir__bytes_of(body, sizeof body)}};
    struct weir__log_receipt first, again;
    struct weir__log_producer next;

    w->history->count = 0;
    assert_int_equal(weir__log_producer_state(w->log, 3, 9, &next, NULL), WEIR_ENOTFOUND);
    assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &first, NULL), 0);
    assert_false(first.duplicate);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &again, NULL), 0);
        assert_true(again.duplicate);
        assert_int_equal(again.sequence, first.sequence);
        assert_int_equal(again.offset, first.offset);
        assert_int_equal(again.time_ms, first.time_ms);
        assert_int_equal(weir__log_producer_state(w->log, 3, 9, &next, NULL), 0);
        assert_int_equal(next.epoch, 2);
        assert_int_equal(next.sequence, 105);
        assert_int_equal(weir__log_producer_state(w->log, 2, 9, &next, NULL), WEIR_ENOTFOUND);
        b.producer.sequence = 106; /* a gap */
        assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &again, NULL), WEIR_ESEQUENCE);
        b.producer.sequence = 99; /* older */
        assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &again, NULL), WEIR_ESEQUENCE);
        b.producer.sequence = 105;
        b.producer.epoch = 1;
        assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &again, NULL), WEIR_EFENCED);
        b.producer.sequence = 100;
        b.producer.epoch = 2;
        reopen(w);
    }
    assert_int_equal(info_of(w, 3).next_sequence, 5);
    b.producer.sequence = 105;
    assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &again, NULL), 0);
    assert_int_equal(again.sequence, 5);
    b.producer.epoch = 3; /* a new life of the producer begins where it likes */
    b.producer.sequence = 0;
    assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, &again, NULL), 0);
    assert_int_equal(again.sequence, 10);
    assert_int_equal(workload_close(w), 0);
}

/* A repeat that comes while the first is still in flight is answered when the first is durable. */
static void note_rc(void *user, int rc, const struct weir__log_receipt *r,
                    const struct weir_error *err)
{
    int *marks = user;

    (void)err;
    marks[marks[0]++] = rc == 0 ? (r->duplicate ? 2 : 1) : rc;
}

static void repeat_in_flight_waits(void **state)
{
    struct workload *w = *state;
    uint8_t body[64] = {1};
    struct weir__log_batch b = {.partition = 3,
                                .count = 5,
                                .producer = {9, 0, 0},
                                .body = {weir__bytes_of(body, sizeof body)}};
    int marks[4] = {1};

    assert_int_equal(weir__log_append(w->log, &b, 0, note_rc, marks, NULL), 0);
    assert_int_equal(weir__log_append(w->log, &b, 0, note_rc, marks, NULL), 0);
    assert_int_equal(marks[0], 1);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(marks[0], 3);
    assert_int_equal(marks[1], 1);
    assert_int_equal(marks[2], 2);
    assert_int_equal(info_of(w, 3).next_sequence, 5);
    assert_int_equal(workload_close(w), 0);
}

static void two_logs_in_one_process(void **state)
{
    struct workload *w = *state, other;

    workload_init(&other, 8);
    other.options.hub_id = 77;
    assert_int_equal(workload_open(&other, NULL), 0);
    for (uint32_t i = 0; i < 20; i++) {
        put(w, i % 5, 300 + i, 1);
        put(&other, i % 3, 400 + i, 2);
    }
    history_check(other.history, other.log, false);
    assert_int_equal(other.history->violations, 0);
    assert_int_equal(other.history->found, 20);
    workload_fini(&other);
}

/* ---- the lazy mode ---- */

/* Acknowledged when written, on disk every so often: a loss of power takes the newest, and nothing
 * from the middle. */
static void lazy_log_loses_only_its_end(void **state)
{
    struct workload *w = *state;
    uint64_t syncs;

    assert_int_equal(workload_close(w), 0);
    w->options.sync_ms = 500;
    assert_int_equal(workload_open(w, NULL), 0);
    put(w, 0, 1000, 1);
    syncs = simfs_calls(w->disk, SIMFS_SYNC);
    for (uint32_t i = 0; i < 5; i++) put(w, i, 1000, 1);
    assert_int_equal(simfs_calls(w->disk, SIMFS_SYNC), syncs);
    simclock_pass(&w->clock, 501);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_true(simfs_calls(w->disk, SIMFS_SYNC) > syncs);
    for (uint32_t i = 0; i < 7; i++) put(w, i % 5, 1000, 1);
    w->history->may_lose = 7;
    workload_crash(w, SIMFS_KEEP_RANDOM, 3);
    assert_in_range(w->history->found, 6, 13);
    w->history->may_lose = 0;
    put(w, 0, 1000, 1);
}

static void lazy_log_syncs_at_close(void **state)
{
    struct workload *w = *state;

    assert_int_equal(workload_close(w), 0);
    w->options.sync_ms = 60000;
    assert_int_equal(workload_open(w, NULL), 0);
    for (uint32_t i = 0; i < 60; i++) put(w, i % 5, 40000, 1); /* rolls as well */
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(workload_open(w, NULL), 0);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(w->history->found, 60);
}

/* ---- looking and reading ---- */

static void find_by_everything(void **state)
{
    struct workload *w = *state;

    for (uint32_t i = 0; i < 300; i++) { /* more than one chunk of the index */
        simclock_pass(&w->clock, 10);
        put(w, 2, 40 + i, 1 + i % 4);
        put(w, 3, 30, 1);
    }
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < w->history->count; i += 2) {
            const struct weir__log_receipt *r = receipt(w, i);
            uint64_t n = w->history->batches[i].count;

            for (uint64_t k = 0; k < n; k++) {
                assert_int_equal(find(w, 2, WEIR__LOG_BY_OFFSET, r->offset + k, true),
                                 r->sequence + k);
                assert_int_equal(find(w, 2, WEIR__LOG_BY_OFFSET, r->offset + k, false),
                                 r->sequence + k + 1);
                assert_int_equal(find(w, 2, WEIR__LOG_BY_SEQUENCE, r->sequence + k, true),
                                 r->sequence + k);
                assert_int_equal(find(w, 2, WEIR__LOG_BY_SEQUENCE, r->sequence + k, false),
                                 r->sequence + k + 1);
            }
            assert_int_equal(find(w, 2, WEIR__LOG_BY_TIME, (uint64_t)r->time_ms, true),
                             r->sequence);
            assert_int_equal(find(w, 2, WEIR__LOG_BY_TIME, (uint64_t)r->time_ms, false),
                             r->sequence + n);
            assert_int_equal(find(w, 2, WEIR__LOG_BY_TIME, (uint64_t)r->time_ms - 1, false),
                             r->sequence);
        }
        assert_int_equal(find(w, 2, WEIR__LOG_BY_OFFSET, 0, true), 0);
        assert_int_equal(find(w, 2, WEIR__LOG_BY_TIME, INT64_MAX, true),
                         info_of(w, 2).next_sequence);
        assert_int_equal(find(w, 4, WEIR__LOG_BY_OFFSET, 0, true), 0);
        reopen(w);
    }
}

static void reader_begins_inside_a_batch(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v[2];
    uint32_t count = 0;
    uint64_t missed = 9;

    put(w, 1, 100, 10);
    put(w, 1, 100, 10);
    assert_int_equal(weir__log_reader_open(&r, w->log, 1, 14, 0, NULL), 0);
    assert_int_equal(weir__log_reader_next(r, v, 2, &count, &missed, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(missed, 0);
    assert_int_equal(v[0].sequence, 10);
    assert_int_equal(v[0].skip, 4);
    assert_int_equal(v[0].count, 10);
    assert_int_equal(weir__log_reader_sequence(r), 20);

    weir__log_reader_seek(r, 0);
    assert_int_equal(weir__log_reader_next(r, v, 1, &count, &missed, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(v[0].sequence, 0);
    assert_int_equal(v[0].skip, 0);
    weir__log_reader_close(r);
}

static void count_wake(void *user)
{
    ++*(int *)user;
}

static void reader_at_the_end_is_woken(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v[4];
    struct weir__log_stats before, after;
    uint32_t count = 9;
    uint64_t missed;
    int wakes = 0;
    struct weir__log_watch watch = {.fn = count_wake, .user = &wakes, .partition = 1};

    weir__log_watch(w->log, &watch);
    assert_int_equal(weir__log_reader_open(&r, w->log, 1, 0, 0, NULL), 0);
    assert_int_equal(weir__log_reader_next(r, v, 4, &count, &missed, NULL), 0);
    assert_int_equal(count, 0);
    put(w, 0, 100, 1);
    assert_int_equal(wakes, 0);
    put(w, 1, 100, 1);
    assert_true(wakes > 0);
    weir__log_stats(w->log, &before);
    assert_int_equal(weir__log_reader_next(r, v, 4, &count, &missed, NULL), 0);
    assert_int_equal(count, 1);
    weir__log_stats(w->log, &after);
    assert_int_equal(after.disk_reads, before.disk_reads); /* the tail is in memory */
    assert_true(after.tail_reads > before.tail_reads);
    weir__log_unwatch(w->log, &watch);
    wakes = 0;
    put(w, 1, 100, 1);
    assert_int_equal(wakes, 0);
    weir__log_reader_close(r);
}

/* A batch larger than a reader's memory is read all the same, alone. */
static void small_reader_reads_large_batches(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v[8];
    uint32_t count = 0;
    uint64_t missed, seen = 0;

    for (int i = 0; i < 6; i++) put(w, 0, i % 2 ? 50000 : 30, 1);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(weir__log_reader_open(&r, w->log, 0, 0, 4096, NULL), 0);
        for (seen = 0; seen < 6; seen += count) {
            assert_int_equal(weir__log_reader_next(r, v, 8, &count, &missed, NULL), 0);
            assert_in_range(count, 1, 6);
            for (uint32_t i = 0; i < count; i++)
                assert_int_equal(v[i].body.len, (seen + i) % 2 ? 50000 : 30);
        }
        weir__log_reader_close(r);
        reopen(w);
    }
}

/* ---- keeping ---- */

static void many_segments_read_alike(void **state)
{
    struct workload *w = *state;
    struct weir__log_stats stats;

    for (uint32_t i = 0; i < 120; i++) {
        put(w, i % 5, 40000, 3);
        simclock_pass(&w->clock, 100);
        assert_int_equal(weir__log_step(w->log, NULL), 0);
    }
    weir__log_stats(w->log, &stats);
    assert_in_range(stats.segments, 5, 8);
    history_check(w->history, w->log, false);
    reopen(w);
    history_check(w->history, w->log, true);
    assert_int_equal(w->history->violations, 0);
    assert_int_equal(w->history->found, 120);
    for (size_t i = 0; i < w->history->count; i++)
        assert_int_equal(find(w, (uint32_t)i % 5, WEIR__LOG_BY_OFFSET, receipt(w, i)->offset, true),
                         receipt(w, i)->sequence);
}

static void slow_reader_is_moved_and_told(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v;
    uint32_t count = 0;
    uint64_t missed = 0, begin;

    assert_int_equal(workload_close(w), 0);
    w->options.retain_bytes = 2u << 20;
    assert_int_equal(workload_open(w, NULL), 0);
    put(w, 0, 5000, 10);
    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 3, 0, NULL), 0);
    for (int i = 0; i < 150; i++) {
        put(w, 0, 40000, 10);
        assert_int_equal(weir__log_step(w->log, NULL), 0);
    }
    begin = info_of(w, 0).begin_sequence;
    assert_true(begin > 3);
    assert_int_equal(weir__log_reader_next(r, &v, 1, &count, &missed, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(v.sequence, begin);
    assert_int_equal(missed, begin - 3);
    assert_int_equal(weir__log_reader_next(r, &v, 1, &count, &missed, NULL), 0);
    assert_int_equal(missed, 0);
    weir__log_reader_close(r);
}

static void count_findings(const struct weir__log_finding *f, void *user)
{
    ((int *)user)[f->kind]++;
}

static void inspect_of_a_sound_log(void **state)
{
    struct workload *w = *state;
    int kinds[8] = {0};
    uint64_t damaged = 9;

    for (uint32_t i = 0; i < 60; i++) put(w, i % 5, 40000, 3);
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(weir__log_inspect(&w->options, count_findings, kinds, &damaged, NULL), 0);
    assert_int_equal(damaged, 0);
    assert_in_range(kinds[WEIR__LOG_SEGMENT], 2, 4);
    assert_int_equal(kinds[WEIR__LOG_DAMAGE] + kinds[WEIR__LOG_TORN] + kinds[WEIR__LOG_INDEX], 0);
    assert_int_equal(workload_open(w, NULL), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(empty_log_is_empty),
        CASE(wrong_options_are_refused),
        CASE(unknown_version_is_refused),
        CASE(destroyed_log_leaves_nothing),
        CASE(sequences_are_dense_per_partition),
        CASE(bad_batches_are_refused),
        CASE(nothing_is_seen_before_it_is_durable),
        CASE(close_commits_and_completes),
        CASE(full_tail_answers_busy),
        CASE(producers_are_idempotent),
        CASE(repeat_in_flight_waits),
        CASE(two_logs_in_one_process),
        CASE(lazy_log_loses_only_its_end),
        CASE(lazy_log_syncs_at_close),
        CASE(find_by_everything),
        CASE(reader_begins_inside_a_batch),
        CASE(reader_at_the_end_is_woken),
        CASE(small_reader_reads_large_batches),
        CASE(many_segments_read_alike),
        CASE(slow_reader_is_moved_and_told),
        CASE(inspect_of_a_sound_log),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
