/* moment_test.c - what runs out for a moment costs that moment: memory, a disk that is busy, direct
 * transfers; and memory that an idle log does not need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/allocs.h"
#include "support/calls.h"
#include "support/tempdir.h"
#include "support/workload.h"

#define WAIT weir__deadline_ns(20000)

/* The disk's own memory never fails. */
static void spare_disk(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    (void)disk, (void)kind, (void)user;
    if (entering)
        allocs_pause();
    else
        allocs_resume();
}

static int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 7);
    simfs_hook(w->disk, spare_disk, NULL);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct workload *w = *state;
    int rc;

    allocs_fail(0);
    allocs_pause();
    simfs_fail(w->disk, NULL);
    workload_close(w);
    rc = workload_open(w, NULL);
    if (rc == 0) history_check(w->history, w->log, true);
    if (w->history->violations > 0) print_error("%s\n", w->history->first);
    if (w->history->violations > 0) rc = -1;
    workload_fini(w);
    test_free(w);
    return rc;
}

static int put(struct workload *w, uint32_t partition, uint32_t bytes)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = 1};

    return history_append_wait(w->history, w->log, &o);
}

static int put_as(struct workload *w, uint64_t producer, uint32_t bytes)
{
    struct history_order o = {.partition = 1, .bytes = bytes, .count = 1, .producer_id = producer};

    return history_append_wait(w->history, w->log, &o);
}

/* ---- memory ---- */

/* The first or the second allocation of every append fails, whatever it is for: a block of the tail,
 * a producer, more of the index. The append says so, the log goes on, and the next one works. */
static void appending_without_memory_costs_that_append(void **state)
{
    struct workload *w = *state;
    int failures = 0;

    assert_int_equal(workload_open(w, NULL), 0);
    w->history->may_fail = true;
    for (uint32_t i = 0; i < 1200; i++) {
        int rc;

        allocs_fail(1 + i % 2);
        rc = i % 10 ? put(w, i % 2, i % 50 ? 100 : 30000) : put_as(w, 1 + i, 100);
        allocs_fail(0);
        if (rc != 0) assert_int_equal(rc, WEIR_ENOMEM);
        failures += rc != 0;
        assert_int_equal(weir__log_state(w->log, NULL), 0);
        if (rc != 0) assert_int_equal(put(w, i % 2, 100), 0);
    }
    assert_true(failures > 10);
}

/* A write that the system has no memory or no time for leaves nothing behind. */
static void a_write_that_fails_for_now_is_taken_back(void **state)
{
    struct workload *w = *state;
    const int codes[] = {WEIR_ENOMEM, WEIR_EBUSY};

    assert_int_equal(workload_open(w, NULL), 0);
    assert_int_equal(put_as(w, 9, 100), 0);
    for (size_t i = 0; i < 2; i++) {
        struct simfs_fault fault = {.kinds = SIMFS_WRITE, .at = 1, .rc = codes[i]};

        w->history->may_fail = true;
        simfs_fail(w->disk, &fault);
        assert_int_equal(put_as(w, 9, 3000), codes[i]);
        simfs_fail(w->disk, NULL);
        w->history->may_fail = false;
        assert_int_equal(weir__log_state(w->log, NULL), 0);
        assert_int_equal(put_as(w, 9, 3000), 0);
    }
}

/* Room that was reserved for a batch and taken back with it is there for the next: however many
 * there are, no more of it is needed. */
static void what_is_taken_back_keeps_no_room(void **state)
{
    struct workload *w = *state;

    assert_int_equal(workload_open(w, NULL), 0);
    assert_int_equal(put(w, 0, 100), 0);
    w->history->may_fail = true;
    allocs_fail(0);
    for (int i = 0; i < 300; i++) {
        struct simfs_fault fault = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};

        simfs_fail(w->disk, &fault);
        assert_int_equal(put(w, 0, 100), WEIR_ENOSPACE);
    }
    assert_int_equal(allocs_counted(), 0);
    simfs_fail(w->disk, NULL);
    assert_int_equal(put(w, 0, 100), 0);
}

/* ---- an idle log ---- */

/* Its blocks go, and the bytes around its end are still right when it goes on. */
static void an_idle_log_gives_its_memory_back(void **state)
{
    struct workload *w = *state;

    assert_int_equal(workload_open(w, NULL), 0);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 30; i++) assert_int_equal(put(w, 0, 50000 + (uint32_t)round), 0);
        assert_true(w->log->tail.bytes > 0);
        assert_int_equal(weir__log_step(w->log, NULL), 0);
        assert_true(w->log->tail.bytes > 0);
        simclock_pass(&w->clock, WEIR__LOG_IDLE_MS);
        assert_int_equal(weir__log_step(w->log, NULL), 0);
        assert_int_equal(w->log->tail.bytes, 0);
        assert_null(w->log->tail.idle);
        assert_int_equal(w->log->queue_cap, WEIR__LOG_QUEUE_FIRST);
        history_check(w->history, w->log, false);
    }
}

/* What is not durable stays, and so does what a reader holds. */
static void memory_in_use_is_not_given_back(void **state)
{
    struct workload *w = *state;
    struct history_order o = {.partition = 0, .bytes = 100, .count = 1};
    struct weir__tail_block *held;

    assert_int_equal(workload_open(w, NULL), 0);
    assert_int_equal(put(w, 0, 100), 0);
    held = weir__tail_hold(&w->log->tail, w->log->visible - 8);
    if (!held) held = weir__tail_hold(&w->log->tail, w->log->tail.blocks[0]->start);
    assert_non_null(held);
    simclock_pass(&w->clock, WEIR__LOG_IDLE_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->tail.count, 1);
    weir__tail_release(&w->log->tail, held);
    assert_int_equal(history_append(w->history, w->log, &o), 0);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->tail.count, 1);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
}

/* ---- direct transfers ---- */

static void count_lines(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)level, (void)room;
    *(int *)user += strstr(line, "direct=refused") != NULL;
}

/* A file system that says no to the first direct write, or to the first direct read: all goes on,
 * and it is said once. */
static void direct_transfers_refused_late(void **state)
{
    char root[TEMPDIR_BYTES], dir[TEMPDIR_BYTES + 8];
    struct weir__log_options o = {.hub_id = 3, .partitions = 2, .segment_bytes_max = 1u << 20};
    struct history *history = history_new(2);
    struct history_order order = {.partition = 1, .bytes = 60000, .count = 2};
    struct weir__log *log = NULL;
    int lines = 0;

    (void)state;
    assert_int_equal(tempdir_make(root), 0);
    snprintf(dir, sizeof dir, "%s/log", root);
    o.dir = dir;
    o.logger = (struct weir__logger){count_lines, &lines};
    assert_int_equal(weir__log_create(&o, NULL), 0);
    calls_refuse_direct(true);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(weir__log_open(&log, &o, NULL), 0);
        for (int i = 0; i < 40; i++) assert_int_equal(history_append_wait(history, log, &order), 0);
        history_check(history, log, true);
        assert_int_equal(weir__log_close(log, NULL), 0);
        assert_int_equal(lines, round + 1);
    }
    calls_refuse_direct(false);
    if (calls_refused_direct() == 0) print_message("no direct handles here\n");
    if (history->violations > 0) fail_msg("%s", history->first);
    history_free(history);
    tempdir_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appending_without_memory_costs_that_append, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_write_that_fails_for_now_is_taken_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_taken_back_keeps_no_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_log_gives_its_memory_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_in_use_is_not_given_back, set_up, tear_down),
        cmocka_unit_test(direct_transfers_refused_late),
    };

    return cmocka_run_group_tests_name("moment", tests, NULL, NULL);
}
