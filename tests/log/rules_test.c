/* rules_test.c - the rules of the log's design, each by what can be seen of it. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/batch.h"
#include "support/dice.h"
#include "support/workload.h"

#define WAIT weir__deadline_ns(20000)
#define DAY_MS INT64_C(86400000)
#define BLOCK_BODY (WEIR__FS_BLOCK - WEIR__BATCH_HEADER_BYTES) /* a batch of exactly one block */
#define FIRST_SEGMENT WORKLOAD_DIR "/00000001.seg"

/* ---- common ground ---- */

static struct workload *start(struct workload *w)
{
    struct weir_error err = {0};

    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
    return w;
}

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 5);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct workload *w = *state;
    int rc = 0;

    if (w->log) history_check(w->history, w->log, false);
    if (w->history->violations > 0) {
        print_error("%s\n", w->history->first);
        rc = -1;
    }
    workload_fini(w);
    test_free(w);
    return rc;
}

static void put(struct workload *w, uint32_t partition, uint32_t bytes, uint32_t count)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = count};

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
}

static void put_later(struct workload *w, uint32_t partition, uint32_t bytes, uint32_t count)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = count};

    assert_int_equal(history_append(w->history, w->log, &o), 0);
}

static void step(struct workload *w)
{
    struct weir_error err = {0};

    if (weir__log_step(w->log, &err) != 0) fail_msg("%s", err.text);
}

static void reopen(struct workload *w)
{
    assert_int_equal(workload_close(w), 0);
    start(w);
    history_check(w->history, w->log, true);
}

static struct weir__log_partition_info info_of(struct workload *w, uint32_t partition)
{
    struct weir__log_partition_info info;

    assert_int_equal(weir__log_partition_info(w->log, partition, &info, NULL), 0);
    return info;
}

static struct weir__log_stats stats_of(struct workload *w)
{
    struct weir__log_stats stats;

    weir__log_stats(w->log, &stats);
    return stats;
}

/* Files whose name ends so. */
static int count_files(struct workload *w, const char *suffix)
{
    const char *path;
    int count = 0;

    for (size_t i = 0; (path = simfs_path(w->disk, i)) != NULL; i++)
        count += strlen(path) > strlen(suffix) &&
                 strcmp(path + strlen(path) - strlen(suffix), suffix) == 0;
    return count;
}

/* The file that holds a batch, and where its header begins in it. */
static const char *file_of(struct workload *w, size_t index, uint64_t *out_at)
{
    const struct history_batch *b = &w->history->batches[index];
    uint8_t *body = test_malloc(b->bytes);
    const char *path, *found = NULL;

    history_body(index + 1, b->partition, body, b->bytes);
    for (size_t i = 0; !found && (path = simfs_path(w->disk, i)) != NULL; i++) {
        uint64_t size = simfs_size(w->disk, path);
        uint8_t *all = test_malloc(size), *hit;

        assert_int_equal(simfs_peek(w->disk, path, all, size, 0), size);
        hit = memmem(all, size, body, b->bytes);
        if (hit) {
            found = path;
            *out_at = (uint64_t)(hit - all) - WEIR__BATCH_HEADER_BYTES;
        }
        test_free(all);
    }
    test_free(body);
    return found;
}

/* Cuts the power while the n-th sync from now runs. */
struct cut {
    struct workload *w;
    int syncs;
    enum simfs_keep keep;
    uint64_t n;
    struct simfs *left;
};

static void cut_power(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    struct cut *c = user;

    if (!entering || kind != SIMFS_SYNC || --c->syncs != 0) return;
    c->left = simfs_crash(disk, c->keep, c->n);
    simfs_stop(disk, 1);
}

/* Comes up again on what the cut left. */
static void come_up(struct workload *w, struct cut *c)
{
    assert_non_null(c->left);
    simfs_hook(w->disk, NULL, NULL);
    workload_adopt(w, c->left);
    assert_non_null(w->log);
}

static void flush_into_cut(struct workload *w, enum simfs_keep keep, uint64_t n)
{
    struct cut c = {.w = w, .syncs = 1, .keep = keep, .n = n};

    simfs_hook(w->disk, cut_power, &c);
    assert_int_not_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    come_up(w, &c);
}

/* ---- the rules ---- */

/* A torn group leaves its last batch intact; equal batches grow up to it; then power fails again
 * while the block behind them is still the old one. */
static void raise_ghosts(struct workload *w)
{
    start(w);
    put(w, 0, BLOCK_BODY, 3);
    put_later(w, 0, BLOCK_BODY, 3);
    put_later(w, 0, BLOCK_BODY, 3);
    flush_into_cut(w, SIMFS_KEEP_ALL_BUT, 0); /* the first sector of the group is missing */
    assert_int_equal(w->history->batches[1].fate, HISTORY_GONE);
    assert_int_equal(w->history->batches[2].fate, HISTORY_GONE);
    put_later(w, 0, BLOCK_BODY, 3);
    flush_into_cut(w, SIMFS_KEEP_PREFIX, WEIR__FS_BLOCK / SIMFS_SECTOR - 1);
}

static void rule_01_no_ghosts_in_the_same_segment(void **state)
{
    struct workload *w = *state;

    raise_ghosts(w);
    assert_int_equal(w->history->violations, 0);
    assert_int_equal(w->history->batches[3].fate, HISTORY_ACKED);
    assert_int_equal(info_of(w, 0).next_sequence, 6);
}

/* The same without the epoch: the ghost must show, or the test above would prove nothing. */
static void rule_01_ghosts_do_appear_without_the_epoch(void **state)
{
    struct workload *w = *state;

    w->options.sabotage = WEIR__LOG_SKIP_EPOCH;
    raise_ghosts(w);
    assert_true(w->history->violations > 0);
    w->history->violations = 0;
    workload_close(w);
}

/* Once a second has passed, or the log was closed, damage to the last batch is told, not cut. */
static void rule_02_watermark_reaches_the_last_group(void **state)
{
    struct workload *w = *state;
    uint64_t at = 0;
    const char *path;

    for (int closed = 0; closed < 2; closed++) {
        start(w);
        put(w, 0, 500, 3);
        put(w, 1, 500, 2);
        if (closed)
            assert_int_equal(workload_close(w), 0);
        else
            simclock_pass(&w->clock, 1001), step(w);
        path = file_of(w, w->history->count - 1, &at);
        assert_non_null(path);
        simfs_flip(w->disk, path, (at + 200) * 8);
        w->history->may_damage = true;
        if (closed)
            start(w), history_check(w->history, w->log, true);
        else
            workload_crash(w, SIMFS_KEEP_NONE, 0);
        assert_int_equal(w->history->damaged, 2);
        assert_int_equal(info_of(w, 1).next_sequence, 2);
        assert_int_equal(workload_close(w), 0);
        assert_int_equal(weir__log_destroy(simfs_fs(w->disk), WORKLOAD_DIR, NULL), 0);
        w->created = false;
        w->history->count = 0;
    }
}

static void rule_02_cut_tail_is_kept_aside(void **state)
{
    struct workload *w = *state;
    uint8_t body[BLOCK_BODY], all[3 * WEIR__FS_BLOCK];
    const char *path, *cut = NULL;
    long got;

    start(w);
    put(w, 0, BLOCK_BODY, 1);
    put_later(w, 0, BLOCK_BODY, 1);
    put_later(w, 0, BLOCK_BODY, 1);
    flush_into_cut(w, SIMFS_KEEP_ALL_BUT, 0);
    for (size_t i = 0; (path = simfs_path(w->disk, i)) != NULL; i++)
        if (strstr(path, "/cut-")) cut = path;
    assert_non_null(cut);
    got = simfs_peek(w->disk, cut, all, sizeof all, 0);
    history_body(3, 0, body, sizeof body); /* the batch that was whole, behind the torn one */
    assert_true(got >= 2 * (long)WEIR__FS_BLOCK);
    assert_non_null(memmem(all, (size_t)got, body, sizeof body));
}

/* A bad length in the middle hides what follows; what follows proves that it was on disk. */
static void rule_03_search_behind_the_first_bad_batch(void **state)
{
    struct workload *w = *state;
    uint64_t at = 0;

    start(w);
    for (uint32_t i = 0; i < 20; i++) put(w, i % 5, 300 + i, 2);
    assert_string_equal(file_of(w, 8, &at), FIRST_SEGMENT);
    simfs_flip(w->disk, FIRST_SEGMENT, (at + 28) * 8 + 5); /* the length of its body */
    w->history->may_damage = true;
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(w->history->violations, 0);
    assert_int_equal(w->history->found, 19);
    assert_int_equal(w->history->damaged, 2);
    assert_non_null(strstr(w->history->damage, FIRST_SEGMENT));
}

/* The writer was killed, the machine lives: what an open serves must survive the machine, too. */
static void rule_04_recovered_is_not_durable(void **state)
{
    struct workload *w = *state;
    struct cut c = {.w = w, .syncs = 1};

    start(w);
    put(w, 0, 500, 1);
    put_later(w, 1, 500, 2);
    simfs_hook(w->disk, cut_power, &c);
    weir__log_flush(w->log, WAIT, NULL);
    assert_int_equal(w->history->batches[1].fate, HISTORY_UNKNOWN);
    simfs_free(c.left);
    c.left = simfs_clone(w->disk); /* with its cache */
    assert_true(simfs_pending(c.left) > 0);
    come_up(w, &c);
    assert_int_equal(w->history->batches[1].fate, HISTORY_ACKED);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(w->history->found, 2);
}

/* After a failed sync the cache shows what the disk lacks: the reopen must not believe it. */
static void rule_04_verification_looks_past_the_cache(void **state)
{
    struct workload *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct history_order o = {.partition = 1, .bytes = 3000, .count = 2};

    for (fault.seed = 0; fault.seed < 12; fault.seed++) {
        start(w);
        put(w, 0, 500, 1);
        simfs_fail(w->disk, &fault);
        assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_EUNKNOWN);
        assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_EFAILED);
        assert_int_not_equal(weir__log_state(w->log, NULL), 0);
        history_check(w->history, w->log, false);
        workload_close(w);
        start(w);
        history_check(w->history, w->log, true);
        workload_crash(w, SIMFS_KEEP_NONE, 0);
        assert_int_equal(w->history->violations, 0);
        assert_int_equal(workload_close(w), 0);
    }
}

static void rule_05_expiry_forgets_nobody(void **state)
{
    struct workload *w = *state;
    struct history_order quiet = {.partition = 4, .bytes = 100, .count = 7, .producer_id = 12};
    struct weir__log_partition_info before, after;
    struct weir__log_producer next = {0};

    w->options.retain_ms = 2 * DAY_MS;
    start(w);
    assert_int_equal(history_append_wait(w->history, w->log, &quiet), 0);
    before = info_of(w, 4);
    for (int day = 0; day < 6; day++) { /* in less than a producer is remembered */
        simclock_pass(&w->clock, DAY_MS);
        put(w, 0, 100, 1);
        step(w);
    }
    for (int round = 0; round < 2; round++) {
        after = info_of(w, 4);
        assert_int_equal(after.begin_sequence, 7); /* gone, */
        assert_int_equal(after.next_sequence, 7);  /* and not forgotten */
        assert_int_equal(after.last_offset, before.last_offset);
        assert_int_equal(after.last_time_ms, before.last_time_ms);
        assert_int_equal(weir__log_producer_state(w->log, 4, 12, &next, NULL), 0);
        assert_int_equal(next.sequence, 7);
        w->latest_ms = w->clock.wall_ms;
        reopen(w);
    }
    assert_int_equal(history_append_wait(w->history, w->log, &quiet), 0);
    assert_int_equal(info_of(w, 4).next_sequence, 14);
}

/* A reader that stands in a segment which expires and is written over is moved, and reads nothing
 * but what was meant for it. */
static void rule_06_recycled_bytes_are_never_served(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v;
    uint32_t count = 0;
    uint64_t missed = 0, next = 0;
    uint8_t body[40000];

    w->options.retain_bytes = 2u << 20;
    start(w);
    for (int i = 0; i < 30; i++) put(w, 0, 40000, 2);
    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 0, 0, NULL), 0);
    for (int i = 0; i < 200; i++) {
        put(w, 0, 40000, 2);
        step(w);
        if (i % 20 != 0) continue;
        assert_int_equal(weir__log_reader_next(r, &v, 1, &count, &missed, NULL), 0);
        assert_int_equal(count, 1);
        assert_int_equal(v.sequence, next + missed);
        next = v.sequence + v.count;
        history_body(weir__load64(v.body.at), 0, body, sizeof body);
        assert_memory_equal(body, v.body.at, sizeof body);
    }
    assert_true(info_of(w, 0).begin_sequence > 100);
    weir__log_reader_close(r);
    assert_in_range(count_files(w, ".seg"), 8, 14);
}

/* Once retention bites, old files become the next segments: nothing is allocated any more. */
static void rule_07_segments_are_recycled(void **state)
{
    struct workload *w = *state;
    uint64_t allocated = 0, segments = 0;

    w->options.retain_bytes = 2u << 20;
    start(w);
    for (int i = 0; i < 1500; i++) {
        put(w, 0, 8000, 1);
        step(w);
        if (i != 500) continue;
        allocated = simfs_calls(w->disk, SIMFS_ALLOCATE);
        segments = stats_of(w).segments;
    }
    assert_int_equal(simfs_calls(w->disk, SIMFS_ALLOCATE), allocated);
    assert_in_range(stats_of(w).segments, segments, segments + 1);
}

/* A body lies on disk in one piece, as it came, with a header and nothing else around it. */
static void rule_08_bytes_are_stored_as_they_came(void **state)
{
    struct workload *w = *state;
    uint64_t first = 0, second = 0;

    start(w);
    put(w, 0, 801, 100);
    put(w, 3, 500, 50);
    assert_string_equal(file_of(w, 0, &first), FIRST_SEGMENT);
    assert_string_equal(file_of(w, 1, &second), FIRST_SEGMENT);
    assert_int_equal(second - first, weir__batch_bytes(801));
    assert_in_range(weir__batch_bytes(801) - 801, 0, 90);
}

static void rule_09_offsets_are_log_positions(void **state)
{
    struct workload *w = *state;
    uint64_t last = 0;
    char text[32];

    start(w);
    for (uint32_t i = 0; i < 60; i++) {
        const struct weir__log_receipt *r;

        put(w, i % 5, 40000, 3);
        r = &w->history->batches[i].receipt;
        assert_true(r->offset >= UINT64_C(1000000000000000) && r->offset < UINT64_C(1) << 53);
        assert_int_equal(snprintf(text, sizeof text, "%" PRIu64, r->offset), 16);
        assert_true(r->offset > last); /* over all partitions and segments */
        last = r->offset + 2;
    }
    assert_true(stats_of(w).segments > 1);
}

/* What is recent is in memory, up to a limit; what is older is on disk. */
static void rule_10_the_tail_is_bounded(void **state)
{
    struct workload *w = *state;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v;
    uint32_t count = 0;
    uint64_t missed, disk;

    w->options.tail_bytes = 2u << 20;
    start(w);
    for (int i = 0; i < 100; i++) put(w, 0, 50000, 1);
    disk = stats_of(w).disk_reads;
    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 99, 0, NULL), 0);
    assert_int_equal(weir__log_reader_next(r, &v, 1, &count, &missed, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(stats_of(w).disk_reads, disk);
    weir__log_reader_seek(r, 0);
    assert_int_equal(weir__log_reader_next(r, &v, 1, &count, &missed, NULL), 0);
    assert_int_equal(count, 1);
    assert_true(stats_of(w).disk_reads > disk);
    weir__log_reader_close(r);
}

static void rule_11_a_lone_append_commits_itself(void **state)
{
    struct workload *w = *state;
    uint64_t writes, syncs, all;

    start(w);
    put(w, 0, 100, 1);
    for (int i = 0; i < 10; i++) {
        writes = simfs_calls(w->disk, SIMFS_WRITE);
        syncs = simfs_calls(w->disk, SIMFS_SYNC);
        all = simfs_calls(w->disk, SIMFS_ANY);
        put(w, 0, 100 + 900 * (uint32_t)i, 1);
        assert_int_equal(simfs_calls(w->disk, SIMFS_WRITE), writes + 1);
        assert_int_equal(simfs_calls(w->disk, SIMFS_SYNC), syncs + 1);
        assert_int_equal(simfs_calls(w->disk, SIMFS_ANY), all + 2);
    }
}

/* And many together are one group. */
static void rule_11_many_appends_commit_together(void **state)
{
    struct workload *w = *state;
    uint64_t all;

    start(w);
    for (uint32_t i = 0; i < 50; i++) put_later(w, i % 5, 200, 1);
    all = simfs_calls(w->disk, SIMFS_ANY);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(simfs_calls(w->disk, SIMFS_ANY), all + 2);
    assert_int_equal(stats_of(w).groups, 1);
    assert_int_equal(w->history->acked, 50);
}

static void count_findings(const struct weir__log_finding *f, void *user)
{
    ((int *)user)[f->kind]++;
}

/* The footer of a sealed segment is wiped out, as if it had never been written. */
static void rule_12_a_bad_index_is_rebuilt(void **state)
{
    struct workload *w = *state;
    uint64_t at = 0, sequence = 0, damaged = 9, size = 1u << 20, end = 0;
    int kinds[16] = {0};
    const char *path;

    start(w);
    for (uint32_t i = 0; i < 60; i++) put(w, i % 5, 40000, 2);
    assert_true(stats_of(w).segments >= 3);
    assert_int_equal(workload_close(w), 0);
    path = file_of(w, 0, &at);
    for (size_t i = 0; i < w->history->count; i++) { /* the last batch in that file */
        const char *other = file_of(w, i, &at);

        if (strcmp(other, path) == 0) end = at + weir__batch_bytes(40000);
    }
    size = simfs_size(w->disk, path);
    for (uint64_t b = weir__round_up(end, WEIR__FS_BLOCK);
         b + WEIR__FS_BLOCK < size - WEIR__FS_BLOCK; b += SIMFS_SECTOR) {
        uint8_t zeros[SIMFS_SECTOR] = {0};

        simfs_poke(w->disk, path, zeros, sizeof zeros, b);
    }
    assert_int_equal(weir__log_inspect(&w->options, count_findings, kinds, &damaged, NULL), 0);
    assert_int_equal(damaged, 0);
    assert_int_equal(kinds[WEIR__LOG_INDEX], 1);
    start(w);
    history_check(w->history, w->log, true);
    assert_int_equal(w->history->found, 60);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(weir__log_find(w->log, (uint32_t)i % 5, WEIR__LOG_BY_OFFSET,
                                        (int64_t)w->history->batches[i].receipt.offset, true,
                                        &sequence, NULL),
                         0);
        assert_int_equal(sequence, w->history->batches[i].receipt.sequence);
    }
}

/* A batch lies whole in one file, also the largest there is. */
static void rule_13_batches_never_span_segments(void **state)
{
    struct workload *w = *state;
    uint64_t at = 0;

    w->options.batch_bytes_max = WEIR__LOG_BATCH_BYTES_MAX;
    start(w);
    for (uint32_t i = 0; i < 40; i++) put(w, i % 5, 50000 + i * 100, 1);
    put(w, 0, 1500000, 1);
    put(w, 1, 100, 1);
    put(w, 2, WEIR__LOG_BATCH_BYTES_MAX, 1);
    put(w, 3, 100, 1);
    for (size_t i = 0; i < w->history->count; i++) {
        const char *path = file_of(w, i, &at);

        assert_non_null(path);
        assert_true(simfs_size(w->disk, path) > w->history->batches[i].bytes + at);
    }
    reopen(w);
}

/* A year-old clock that jumps ten years ahead deletes nothing; time that really passes does. */
static void rule_14_a_clock_jump_deletes_nothing(void **state)
{
    struct workload *w = *state;

    w->options.retain_ms = 7 * DAY_MS;
    start(w);
    for (int day = 0; day < 5; day++) {
        put(w, 0, 100, 1);
        simclock_pass(&w->clock, DAY_MS);
        step(w);
    }
    assert_true(stats_of(w).segments >= 4); /* a slow hub rolls by age */
    w->clock.wall_ms += 3650 * DAY_MS;
    for (int i = 0; i < 100; i++) {
        simclock_pass(&w->clock, 1000);
        step(w);
    }
    assert_int_equal(info_of(w, 0).begin_sequence, 0);
    reopen(w);
    for (int i = 0; i < 10; i++) {
        simclock_pass(&w->clock, 1000);
        step(w);
    }
    assert_int_equal(info_of(w, 0).begin_sequence, 0);
    for (int day = 0; day < 10; day++) {
        simclock_pass(&w->clock, DAY_MS);
        step(w);
    }
    assert_true(info_of(w, 0).begin_sequence >= 4);
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
}

static void rule_14_a_clock_that_runs_back_stops_time(void **state)
{
    struct workload *w = *state;

    start(w);
    put(w, 0, 100, 1);
    w->clock.wall_ms -= 1000 * DAY_MS;
    put(w, 1, 100, 1);
    assert_int_equal(w->history->batches[1].receipt.time_ms,
                     w->history->batches[0].receipt.time_ms);
    reopen(w);
    put(w, 2, 100, 1);
    assert_int_equal(w->history->batches[2].receipt.time_ms,
                     w->history->batches[0].receipt.time_ms);
}

static void rule_15_small_hubs_are_small(void **state)
{
    struct workload *w = *state;
    uint64_t seen[16] = {0};
    int count = 0;

    w->options.segment_bytes_min = 0;
    w->options.segment_bytes_max = 1u << 20;
    start(w);
    for (int i = 0; i < 20; i++) {
        simclock_pass(&w->clock, 60000);
        step(w);
    }
    assert_int_equal(count_files(w, ".seg"), 1); /* nothing ahead of traffic */
    assert_int_equal(simfs_size(w->disk, FIRST_SEGMENT), 64u << 10);
    assert_true(simfs_used(w->disk) <= 256u << 10);
    for (int i = 0; i < 600; i++) { /* each that was full makes the next twice as large */
        simclock_pass(&w->clock, 2000);
        put(w, 0, 8000, 1);
    }
    for (size_t i = 0; simfs_path(w->disk, i); i++)
        if (strstr(simfs_path(w->disk, i), ".seg"))
            seen[count++] = simfs_size(w->disk, simfs_path(w->disk, i));
    assert_in_range(count, 6, 10);
    for (int i = 0; i < count; i++)
        assert_int_equal(seen[i], i < 4 ? (uint64_t)(64u << 10) << i : 1u << 20);
}

/* A flood is not made to stand still for small segments. */
static void rule_15_segments_grow_fast_under_load(void **state)
{
    struct workload *w = *state;
    const uint64_t sizes[] = {64u << 10, 512u << 10, 4u << 20};
    int count = 0;

    w->options.segment_bytes_min = 0;
    w->options.segment_bytes_max = 64u << 20;
    start(w);
    for (int i = 0; i < 300; i++) put(w, 0, 8000, 1);
    for (size_t i = 0; simfs_path(w->disk, i); i++) {
        if (!strstr(simfs_path(w->disk, i), ".seg")) continue;
        assert_in_range(count, 0, 2);
        assert_int_equal(simfs_size(w->disk, simfs_path(w->disk, i)), sizes[count++]);
    }
    assert_int_equal(count, 3);
}

/* A full disk is met when a segment is made, before a batch is taken in; and it passes. */
static void rule_16_no_space_shows_at_the_roll(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 0, .bytes = 60000, .count = 1};
    struct weir_error err = {0};
    struct weir__log_batch batch = {.count = 1};
    uint8_t *body = test_calloc(1, 60000);
    int rc;

    start(w);
    simfs_capacity(w->disk, simfs_used(w->disk));
    do {
        rc = history_append_wait(w->history, w->log, &o);
    } while (rc == 0);
    assert_int_equal(rc, WEIR_ENOSPACE);
    assert_true(w->history->acked >= 14); /* the first segment was used up */
    batch.body[0] = weir__bytes_of(body, 60000);
    assert_int_equal(weir__log_append_wait(w->log, &batch, WAIT, NULL, &err), WEIR_ENOSPACE);
    assert_non_null(strstr(err.text, "segment"));
    history_check(w->history, w->log, false);
    simfs_capacity(w->disk, 0);
    put(w, 0, 60000, 1);
    test_free(body);
}

static void rule_16_no_space_from_a_sync_is_final(void **state)
{
    struct workload *w = *state;
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_ENOSPACE};
    struct history_order o = {.partition = 0, .bytes = 600, .count = 1};

    start(w);
    put(w, 0, 600, 1);
    simfs_fail(w->disk, &fault);
    assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_EUNKNOWN);
    assert_int_equal(history_append_wait(w->history, w->log, &o), WEIR_EFAILED);
    workload_close(w);
    start(w);
    history_check(w->history, w->log, true);
    put(w, 0, 600, 1);
}

/* Batches that share a block with what is being written: whichever sector of it is old or new
 * after a crash, they are whole. */
static void rule_17_sectors_are_old_or_new(void **state)
{
    struct workload *w = *state;

    start(w);
    for (uint32_t i = 0; i < 8; i++) put(w, i % 5, 300, 1);
    for (uint64_t sector = 0; sector < 8; sector++) {
        put_later(w, 0, 300, 1);
        put_later(w, 1, 300, 1);
        flush_into_cut(w, sector % 2 ? SIMFS_KEEP_ALL_BUT : SIMFS_KEEP_ONE, sector / 2);
        assert_int_equal(w->history->violations, 0);
    }
}

struct chain {
    struct weir__log *log;
    struct weir__log_batch batch;
    uint64_t last_offset;
    int fired, out_of_order, refused, to_send;
};

static void append_again(void *user, int rc, const struct weir__log_receipt *r,
                         const struct weir_error *err)
{
    struct chain *c = user;

    (void)err;
    if (rc != 0 || r->offset <= c->last_offset) c->out_of_order++;
    c->last_offset = r->offset;
    c->fired++;
    if (weir__log_append_wait(c->log, &c->batch, WAIT, NULL, NULL) == WEIR_EDEADLOCK) c->refused++;
    if (c->to_send-- > 0) weir__log_append(c->log, &c->batch, 0, append_again, c, NULL);
}

/* Completions come in log order, may append, may not block, and all have come at close. */
static void rule_18_completions(void **state)
{
    struct workload *w = *state;
    uint8_t body[40] = {0};
    struct chain c = {.batch = {.count = 1, .body = {weir__bytes_of(body, sizeof body)}},
                      .to_send = 10};

    start(w);
    c.log = w->log;
    for (uint32_t i = 0; i < 20; i++) {
        c.batch.partition = i % 5;
        assert_int_equal(weir__log_append(w->log, &c.batch, 0, append_again, &c, NULL), 0);
    }
    assert_int_equal(c.fired, 0);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(c.fired, 20);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(c.fired, 30);
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir__log_append(w->log, &c.batch, 0, append_again, &c, NULL), 0);
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(c.fired, 35);
    assert_int_equal(c.refused, 35);
    assert_int_equal(c.out_of_order, 0);
}

/* The hub's time is restored at open, even when every event has expired. */
static void rule_18_time_never_runs_back(void **state)
{
    struct workload *w = *state;
    int64_t last_ms;

    w->options.retain_ms = DAY_MS;
    start(w);
    put(w, 0, 100, 1);
    for (int i = 0; i < 6; i++) {
        simclock_pass(&w->clock, DAY_MS);
        step(w);
    }
    put(w, 1, 100, 1);
    last_ms = w->history->batches[1].receipt.time_ms;
    for (int i = 0; i < 6; i++) {
        simclock_pass(&w->clock, DAY_MS);
        step(w);
    }
    w->latest_ms = w->clock.wall_ms;
    w->clock.wall_ms -= 400 * DAY_MS;
    reopen(w);
    assert_int_equal(info_of(w, 1).begin_sequence, 1);
    put(w, 2, 100, 1);
    assert_true(w->history->batches[2].receipt.time_ms >= last_ms);
}

/* The disk these tests stand on does lose what was not synced: killing the writer would not. */
static void rule_19_the_simulated_disk_forgets(void **state)
{
    struct workload *w = *state;

    w->options.sabotage = WEIR__LOG_SKIP_SYNC;
    start(w);
    put(w, 0, 600, 1);
    assert_true(simfs_pending(w->disk) > 0);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(w->history->violations, 1);
    assert_non_null(strstr(w->history->first, "is lost"));
    w->history->violations = 0;
    w->history->count = 0;
    workload_close(w);
}

int main(void)
{
#define RULE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RULE(rule_01_no_ghosts_in_the_same_segment),
        RULE(rule_01_ghosts_do_appear_without_the_epoch),
        RULE(rule_02_watermark_reaches_the_last_group),
        RULE(rule_02_cut_tail_is_kept_aside),
        RULE(rule_03_search_behind_the_first_bad_batch),
        RULE(rule_04_recovered_is_not_durable),
        RULE(rule_04_verification_looks_past_the_cache),
        RULE(rule_05_expiry_forgets_nobody),
        RULE(rule_06_recycled_bytes_are_never_served),
        RULE(rule_07_segments_are_recycled),
        RULE(rule_08_bytes_are_stored_as_they_came),
        RULE(rule_09_offsets_are_log_positions),
        RULE(rule_10_the_tail_is_bounded),
        RULE(rule_11_a_lone_append_commits_itself),
        RULE(rule_11_many_appends_commit_together),
        RULE(rule_12_a_bad_index_is_rebuilt),
        RULE(rule_13_batches_never_span_segments),
        RULE(rule_14_a_clock_jump_deletes_nothing),
        RULE(rule_14_a_clock_that_runs_back_stops_time),
        RULE(rule_15_small_hubs_are_small),
        RULE(rule_15_segments_grow_fast_under_load),
        RULE(rule_16_no_space_shows_at_the_roll),
        RULE(rule_16_no_space_from_a_sync_is_final),
        RULE(rule_17_sectors_are_old_or_new),
        RULE(rule_18_completions),
        RULE(rule_18_time_never_runs_back),
        RULE(rule_19_the_simulated_disk_forgets),
    };

    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
