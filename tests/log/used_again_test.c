/* used_again_test.c - a file that was one segment and is another, or a spare: what it was is not believed,
 * whoever may be asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/backup.h"
#include "log/old_control.h"

#define BYTES 50000u /* of a batch; a segment has room for twenty */
#define SPARES_FROM 400
#define ROUNDS 4
#define SEGMENTS_MAX 40

static void step(struct workload *w)
{
    struct weir_error err = {0};

    if (weir__log_step(w->log, &err) != 0) fail_msg("%s", err.text);
}

/* Retention has begun, and a segment that expired is the spare. */
static void run_to_spare(struct workload *w)
{
    w->options.retain_bytes = 8u << 20;
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX;
    if (!w->log) open_log(w);
    for (int i = 0; i < SPARES_FROM || !w->log->spare; i++) {
        put(w, 0, BYTES);
        step(w);
    }
}

static void path_of(const struct weir__segment *seg, char path[64])
{
    snprintf(path, 64, WORKLOAD_DIR "/%s", seg->name);
}

static void lose_header(struct simfs *disk, const char *path)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    uint64_t bytes = simfs_size(disk, path);

    simfs_poke(disk, path, zeros, sizeof zeros, 0);
    simfs_poke(disk, path, zeros, sizeof zeros, bytes - sizeof zeros);
}

static void lose_control(struct workload *w)
{
    assert_int_equal(simfs_fs(w->disk)->ops->remove(simfs_fs(w->disk), CONTROL, NULL), 0);
}

static void count_findings(const struct weir__log_finding *f, void *user)
{
    *(int *)user += f->kind != WEIR__LOG_SEGMENT;
}

static int findings_of(struct workload *w)
{
    uint64_t damaged;
    int count = 0;

    assert_int_equal(weir__log_inspect(&w->options, count_findings, &count, &damaged, NULL), 0);
    return count;
}

static size_t files_of(struct simfs *disk)
{
    size_t count = 0;
    const char *path;

    for (size_t i = 0; (path = simfs_path(disk, i)); i++) count += strstr(path, ".seg") != NULL;
    return count;
}

/* Without a control file, or over one that names the file of the spare, only what was kept is there. */
static void a_spare_is_no_segment(void **state)
{
    for (int old = 0; old < 2; old++) {
        struct workload *w = *state;
        struct copy *c = test_calloc(1, sizeof *c);
        uint64_t first;

        if (old) {
            open_log(w);
            assert_int_equal(workload_close(w), 0);
            take_copy(w->disk, c);
        }
        run_to_spare(w);
        first = w->log->segments[0]->h.number;
        assert_int_equal(workload_close(w), 0);
        if (old)
            put_copy(w->disk, c);
        else
            lose_control(w);
        assert_int_equal(findings_of(w), 1);
        open_log(w);
        assert_int_equal(w->log->segments[0]->h.number, first);
        assert_int_equal(w->log->stats.damaged_ranges, 0);
        history_check(w->history, w->log, true);
        test_free(c);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

/* An event that says to be a batch of format version 1, far ahead: anybody can send it. */
static void send_made_up(struct workload *w)
{
    static uint8_t body[BYTES];
    struct weir__batch_stamp stamp = weir__batch_stamp(w->options.hub_id, 0);
    struct weir__batch_header h = {.position = w->log->tail.end + 80 + (UINT64_C(1) << 44),
                                   .count = 1,
                                   .body_bytes = 8};
    struct weir__log_batch b = {.partition = 0,
                                .count = 1,
                                .body = {weir__bytes_of(body, sizeof body)}};

    weir__batch_encode(&h, &stamp, body);
    assert_int_equal(weir__log_append_wait(w->log, &b, weir__deadline_ns(20000), NULL, NULL), 0);
}

/* Each opening lets go of the spare, whatever events were in it. */
static void a_spare_with_made_up_batches_goes(void **state)
{
    struct workload *w = *state;

    w->options.retain_bytes = 8u << 20;
    open_log(w);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SPARES_FROM || !w->log->spare; i++) {
            send_made_up(w);
            step(w);
        }
        assert_int_equal(workload_close(w), 0);
        assert_int_equal(findings_of(w), 0);
        open_log(w);
        assert_int_equal(files_of(w->disk), w->log->segment_count);
    }
}

static void a_spare_goes_while_a_segment_is_lost(void **state)
{
    struct workload *w = *state;
    char path[64];

    run_to_spare(w);
    path_of(w->log->segments[3], path);
    assert_int_equal(workload_close(w), 0);
    assert_int_equal(simfs_fs(w->disk)->ops->remove(simfs_fs(w->disk), path, NULL), 0);
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(files_of(w->disk) + 1, w->log->segment_count);
}

/* The older control file names its file as another segment, and its own header is gone. */
static void the_newest_segment_is_not_what_its_file_was(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);
    char path[64], now[64] = "";
    uint64_t next;

    open_log(w);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    run_to_spare(w);
    snprintf(path, sizeof path, WORKLOAD_DIR "/00000001.seg");
    while (strcmp(now, path) != 0) {
        put(w, 0, BYTES);
        step(w);
        path_of(weir__log_active(w->log), now);
    }
    for (int i = 0; i < 5; i++) put(w, 1, BYTES);
    next = w->log->heads[1].next_sequence;
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    lose_header(w->disk, path);
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(w->log->heads[1].next_sequence, next);
    history_check(w->history, w->log, true);
    test_free(c);
}

/* It knows the secret, and with it all others are known by their batches. */
static void the_header_of_a_spare_may_be_all_that_is_left(void **state)
{
    struct workload *w = *state;
    char paths[SEGMENTS_MAX][64];
    size_t count;
    uint64_t next;

    run_to_spare(w);
    count = w->log->segment_count;
    next = w->log->heads[0].next_sequence;
    assert_in_range(count, 2, SEGMENTS_MAX);
    for (size_t i = 0; i < count; i++) path_of(w->log->segments[i], paths[i]);
    assert_int_equal(workload_close(w), 0);
    lose_control(w);
    for (size_t i = 0; i < count; i++) lose_header(w->disk, paths[i]);
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(w->log->heads[0].next_sequence, next);
    history_check(w->history, w->log, true);
}

/* And when nothing else is, nobody knows where to go on: the log does not begin anew. */
static void a_spare_alone_is_no_log(void **state)
{
    struct workload *w = *state;
    struct weir__fs *fs = simfs_fs(w->disk);
    struct weir_error err = {0};
    char path[64];

    run_to_spare(w);
    for (size_t i = w->log->segment_count; i-- > 0;) {
        path_of(w->log->segments[i], path);
        assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
    }
    assert_int_equal(workload_close(w), 0);
    lose_control(w);
    assert_int_equal(weir__log_open(&w->log, &w->options, &err), WEIR_ECORRUPT);
    assert_non_null(strstr(err.text, "neither the control file nor the header of any segment"));
}

/* Nor is it a file without a header, one of which may be a segment that is missing. */
static void a_bad_spare_is_nothing_to_a_backup(void **state)
{
    struct workload *w = *state;
    struct weir__backup_log log = {simfs_fs(w->disk), WORKLOAD_DIR, w->options.hub_id};
    struct weir__backup_moment m;
    struct weir__backup_row row;
    char path[64];

    run_to_spare(w);
    path_of(w->log->spare, path);
    simfs_spoil(w->disk, path, 2 * WEIR__FS_BLOCK, WEIR__FS_BLOCK);
    assert_int_equal(weir__backup_moment_take(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_check_newer(&log, &m, NULL), 0);
    weir__backup_moment_fini(&m);
    path_of(w->log->segments[3], path);
    assert_int_equal(simfs_fs(w->disk)->ops->remove(simfs_fs(w->disk), path, NULL), 0);
    assert_int_equal(weir__backup_moment_take(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_row_read(&log, &m, &row, NULL), 0);
    assert_int_equal(row.missing, 1);
    assert_int_equal(row.count, w->log->segment_count - 1);
    weir__backup_row_fini(&row);
    weir__backup_moment_fini(&m);
    w->history->may_damage = true;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_spare_is_no_segment),
        CASE(a_spare_with_made_up_batches_goes),
        CASE(a_spare_goes_while_a_segment_is_lost),
        CASE(the_newest_segment_is_not_what_its_file_was),
        CASE(the_header_of_a_spare_may_be_all_that_is_left),
        CASE(a_spare_alone_is_no_log),
        CASE(a_bad_spare_is_nothing_to_a_backup),
    };

    return cmocka_run_group_tests_name("used_again", tests, NULL, NULL);
}
