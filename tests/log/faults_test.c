/* faults_test.c - a disk that says no: EIO, ENOSPC, short writes and failed syncs at every outside
 * call of a workload, once and for ever; and a disk that is really full.
 *
 * Whatever happens, nothing crashes or leaks, what was acknowledged can be read at once and after a
 * reopen, a log that stopped takes nothing in, and what a reopen serves survives a loss of power.
 *
 *   log_faults_test            every call of a few workloads
 *   log_faults_test WORKLOADS  of so many; prints counts */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/dice.h"
#include "support/pace.h"
#include "support/workload.h"

#define STEPS 25
#define CALLS_MAX 2000
#define RETAIN_MS INT64_C(129600000) /* a day and a half */
#define WAIT weir__deadline_ns(20000)

static const struct {
    const char *name;
    struct simfs_fault fault;
} kinds[] = {
    {"EIO", {.kinds = SIMFS_ANY, .rc = WEIR_EIO}},
    {"EIO for ever", {.kinds = SIMFS_ANY, .rc = WEIR_EIO, .persistent = true}},
    {"ENOSPC", {.kinds = SIMFS_CHANGES | SIMFS_OPEN, .rc = WEIR_ENOSPACE}},
    {"ENOSPC for ever",
     {.kinds = SIMFS_CHANGES | SIMFS_OPEN, .rc = WEIR_ENOSPACE, .persistent = true}},
    {"short write", {.kinds = SIMFS_WRITE, .rc = WEIR_EIO, .short_write = true}},
    {"short write, full", {.kinds = SIMFS_WRITE, .rc = WEIR_ENOSPACE, .short_write = true}},
    {"failed sync, cache keeps", {.kinds = SIMFS_SYNC, .rc = WEIR_EIO}},
    {"failed sync, cache drops",
     {.kinds = SIMFS_SYNC, .rc = WEIR_EIO, .failed_sync = SIMFS_CACHE_DROPS}},
    {"failed sync, full", {.kinds = SIMFS_SYNC, .rc = WEIR_ENOSPACE}},
    {"failed sync for ever", {.kinds = SIMFS_SYNC, .rc = WEIR_EIO, .persistent = true}},
};

/* The fault is over: what was acknowledged is readable as the log stands, stopped or not. */
static void check_standing(struct workload *w)
{
    struct history_order o = {.partition = 1, .bytes = 700, .count = 2};
    struct weir_error err = {0};
    int rc;

    w->history->may_fail = false;
    history_check(w->history, w->log, false);
    if (weir__log_state(w->log, &err) == 0) return;
    rc = history_append_wait(w->history, w->log, &o);
    if (rc != WEIR_EFAILED) history_violation(w->history, "a stopped log says %d", rc);
    if (err.text[0] == '\0') history_violation(w->history, "a stopped log does not say why");
}

static bool open_again(struct workload *w)
{
    struct weir_error err = {0};

    if (!w->created) weir__log_destroy(simfs_fs(w->disk), WORKLOAD_DIR, NULL);
    if (workload_open(w, &err) == 0) return true;
    history_violation(w->history, "reopening after the fault: %s", err.text);
    return false;
}

/* Reopens on the same machine, appends, then loses power: what was served must still be there. */
static void check_after(struct workload *w)
{
    struct history_order o = {.partition = 2, .bytes = 800, .count = 3};

    w->history->may_fail = false;
    workload_close(w);
    if (simfs_open_files(w->disk) > 0) history_violation(w->history, "a file was left open");
    if (!open_again(w)) return;
    history_check(w->history, w->log, true);
    workload_crash(w, SIMFS_KEEP_NONE, 0);
    if (w->log && history_append_wait(w->history, w->log, &o) != 0)
        history_violation(w->history, "no append after the fault was over");
    if (w->log) workload_crash(w, SIMFS_KEEP_NONE, 0);
}

static void ignore_finding(const struct weir__log_finding *f, void *user)
{
    (void)f;
    (void)user;
}

/* Ends with an inspection of the closed folder, unless the log has stopped. */
static void run_workload(struct workload *w)
{
    int rc = workload_open(w, NULL);

    for (int i = 0; i < STEPS && w->log && rc != WEIR_EFAILED; i++) rc = workload_step(w);
    if (w->log && weir__log_state(w->log, NULL) == 0) {
        uint64_t damaged = 0;

        workload_close(w);
        weir__log_inspect(&w->options, ignore_finding, NULL, &damaged, NULL);
    }
}

/* One workload with one fault. False: the fault came too late to strike. */
static bool survive(struct simfs_fault fault, uint64_t seed, char first[512])
{
    struct workload w;
    bool struck;

    workload_init(&w, seed);
    w.history->may_fail = true;
    if (seed % 2 == 1) w.options.retain_ms = RETAIN_MS;
    fault.seed = dice_mix(fault.at);
    simfs_fail(w.disk, &fault);
    run_workload(&w);
    struck = simfs_failed(w.disk);
    simfs_fail(w.disk, NULL);
    if (w.log) check_standing(&w);
    check_after(&w);
    if (w.history->violations > 0)
        snprintf(first, 512, "seed %" PRIu64 ", call %" PRIu64 ": %s", seed, fault.at,
                 w.history->first);
    workload_fini(&w);
    return struck;
}

/* How many calls there were to fail. */
static uint64_t survive_everywhere(size_t kind, uint64_t seed, char first[512])
{
    struct simfs_fault fault = kinds[kind].fault;

    first[0] = '\0';
    for (fault.at = 1; fault.at < CALLS_MAX; fault.at += PACE)
        if (!survive(fault, seed, first) || first[0] != '\0') break;
    return fault.at - 1;
}

static void every_call_may_fail(void **state)
{
    static const uint64_t seeds[] = {3, 4, 9,
                                     11}; /* with rolls, retention and repeats among them */
    char first[512];

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
            uint64_t calls = survive_everywhere(i, seeds[k], first);

            if (first[0]) fail_msg("%s: %s", kinds[i].name, first);
            assert_in_range(calls, 10, CALLS_MAX - 2);
        }
}

/* ---- a full disk ---- */

static void fill_disk(struct workload *w, int *out_rc)
{
    struct history_order o = {.partition = 3, .bytes = 50000, .count = 4};

    do {
        *out_rc = history_append_wait(w->history, w->log, &o);
        weir__log_step(w->log, NULL); /* may find no room for a spare: nobody waits for it */
    } while (*out_rc == 0 && w->history->count < 1000);
}

static void full_disk_refuses_and_recovers(void **state)
{
    struct workload w;
    struct history_order o = {.partition = 0, .bytes = 50000, .count = 1};
    struct weir_error err = {0};
    int rc = 0;

    (void)state;
    workload_init(&w, 3);
    assert_int_equal(workload_open(&w, NULL), 0);
    simfs_capacity(w.disk, 4u << 20);
    for (int round = 0; round < 3; round++) {
        fill_disk(&w, &rc);
        assert_int_equal(rc, WEIR_ENOSPACE);
        assert_int_equal(weir__log_state(w.log, NULL), 0);
        history_check(w.history, w.log, false);
        assert_int_equal(history_append_wait(w.history, w.log, &o), WEIR_ENOSPACE);
        if (round == 1) { /* a full disk can be opened, too */
            assert_int_equal(workload_close(&w), 0);
            if (workload_open(&w, &err) != 0) fail_msg("%s", err.text);
            history_check(w.history, w.log, true);
            assert_int_equal(history_append_wait(w.history, w.log, &o), WEIR_ENOSPACE);
        }
        simfs_capacity(w.disk, (6u + 2u * (unsigned)round) << 20);
        assert_int_equal(history_append_wait(w.history, w.log, &o), 0);
    }
    workload_crash(&w, SIMFS_KEEP_NONE, 0);
    if (w.history->violations > 0) fail_msg("%s", w.history->first);
    assert_true(w.history->acked > 60);
    workload_fini(&w);
}

/* A read that fails is an error of that read, with the events it was about: the next one goes
 * through. One that fails once is tried again at once, and nobody notices. */
static void failed_read_is_not_damage(void **state)
{
    struct workload w;
    struct simfs_fault fault = {.kinds = SIMFS_READ, .at = 1, .rc = WEIR_EIO};
    struct history_order o = {.partition = 3, .bytes = 50000, .count = 4};
    struct weir__log_reader *r = NULL;
    struct weir__log_view v;
    uint32_t count;
    uint64_t missed, first, last;

    (void)state;
    workload_init(&w, 3);
    assert_int_equal(workload_open(&w, NULL), 0);
    for (int i = 0; i < 40; i++) assert_int_equal(history_append_wait(w.history, w.log, &o), 0);
    assert_int_equal(workload_close(&w), 0);
    assert_int_equal(workload_open(&w, NULL), 0);
    assert_int_equal(weir__log_reader_open(&r, w.log, 3, 0, 0, NULL), 0);
    for (int i = 0; i < 10; i++) {
        int rc;

        fault.at = 1 + (uint64_t)i % 3;
        fault.persistent = i % 2 == 0;
        simfs_fail(w.disk, &fault);
        do {
            rc = weir__log_reader_next(r, &v, 1, &count, &missed, NULL);
        } while (rc == 0 && count > 0 && !simfs_failed(w.disk));
        assert_int_equal(rc, fault.persistent ? WEIR_EIO : 0);
        weir__log_reader_damage(r, &first, &last);
        if (fault.persistent) assert_int_equal(first, weir__log_reader_sequence(r));
        assert_int_equal(first <= last, fault.persistent);
        assert_int_equal(weir__log_state(w.log, NULL), 0);
    }
    simfs_fail(w.disk, NULL);
    weir__log_reader_close(r);
    history_check(w.history, w.log, true);
    if (w.history->violations > 0) fail_msg("%s", w.history->first);
    assert_int_equal(w.history->found, 40);
    workload_fini(&w);
}

/* Reads on to the end or an error; returns the batches. */
static int read_on(struct weir__log_reader *r, struct weir_error *err, int *out_rc)
{
    struct weir__log_view v[16];
    uint32_t count = 0;
    uint64_t missed;
    int all = 0;

    do {
        *out_rc = weir__log_reader_next(r, v, 16, &count, &missed, err);
        all += (int)count;
    } while (*out_rc == 0 && count > 0);
    return all;
}

/* A sector that cannot be read any more takes its batch with it, and no other: what lies before it
 * is served, and a reader that is moved behind it goes on. */
static void bad_sector_costs_one_batch(void **state)
{
    struct workload w;
    struct history_order o = {.partition = 1, .bytes = 3000, .count = 3};
    struct weir__log_reader *r = NULL;
    struct weir_error err = {0};
    uint64_t first, last;
    int rc, before;

    (void)state;
    workload_init(&w, 3);
    assert_int_equal(workload_open(&w, NULL), 0);
    for (int i = 0; i < 600; i++) assert_int_equal(history_append_wait(w.history, w.log, &o), 0);
    assert_int_equal(workload_close(&w), 0); /* so that nothing comes from memory */
    assert_int_equal(workload_open(&w, NULL), 0);
    simfs_spoil(w.disk, WORKLOAD_DIR "/00000001.seg", 163840, SIMFS_SECTOR);
    assert_int_equal(weir__log_reader_open(&r, w.log, 1, 0, 0, NULL), 0);
    before = read_on(r, &err, &rc);
    assert_int_equal(rc, WEIR_EIO);
    assert_int_equal(weir__log_reader_sequence(r), 3 * before);
    assert_non_null(strstr(err.text, "00000001.seg"));
    assert_int_equal(read_on(r, &err, &rc), 0); /* it stays in front of it */
    assert_int_equal(rc, WEIR_EIO);
    simclock_pass(&w.clock, 10000);
    assert_int_equal(read_on(r, &err, &rc), 0);
    assert_int_equal(rc, WEIR_ECORRUPT); /* so long is no passing fault */
    weir__log_reader_damage(r, &first, &last);
    assert_int_equal(first, 3 * before);
    assert_int_equal(last, 3 * before + 2);
    weir__log_reader_seek(r, last + 1);
    assert_int_equal(read_on(r, &err, &rc), 600 - before - 1);
    assert_int_equal(rc, 0);
    weir__log_reader_close(r);
    simfs_spoil(w.disk, WORKLOAD_DIR "/00000001.seg", 0, 0);
    history_check(w.history, w.log, true); /* and it is back when the disk has it again */
    assert_int_equal(w.history->found, 600);
    workload_fini(&w);
}

/* ---- as a program ---- */

static int run_at_length(uint64_t workloads)
{
    int failures = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t calls = 0;
        char first[512] = "";

        for (uint64_t seed = 1; seed <= workloads && !first[0]; seed++)
            calls += survive_everywhere(i, seed, first);
        printf("%-26s %6" PRIu64 " calls failed, one per run: %s\n", kinds[i].name, calls,
               first[0] ? first : "nothing acknowledged was lost");
        if (first[0]) failures++;
    }
    return failures > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(full_disk_refuses_and_recovers),
        cmocka_unit_test(failed_read_is_not_damage),
        cmocka_unit_test(bad_sector_costs_one_batch),
    };

    if (argc > 1) return run_at_length(strtoull(argv[1], NULL, 10));
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
