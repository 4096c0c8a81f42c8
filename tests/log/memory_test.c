/* memory_test.c - every allocation of a workload fails once.
 *
 * The call that needed the memory says so, or the log stops; nothing crashes, nothing leaks, and
 * what was acknowledged is there afterwards. Run it with a leak checker to hear about leaks. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/allocs.h"
#include "support/workload.h"

#define STEPS 30
#define ALLOCATIONS_MAX 20000

/* The disk's own memory never fails. */
static void spare_disk(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    (void)disk;
    (void)kind;
    (void)user;
    if (entering)
        allocs_pause();
    else
        allocs_resume();
}

static void count_finding(const struct weir__log_finding *f, void *user)
{
    (void)f;
    ++*(int *)user;
}

/* Several segments, so that footers are written and read; then reading, closing, inspecting. */
static void run_workload(struct workload *w)
{
    struct history_order big = {.partition = 1, .bytes = 60000, .count = 2};
    uint64_t damaged = 0;
    int findings = 0;

    if (workload_open(w, NULL) != 0) return;
    for (int i = 0; i < STEPS && w->log; i++)
        if (workload_step(w) == WEIR_EFAILED) break;
    for (int i = 0; i < 20 && w->log; i++)
        if (history_append_wait(w->history, w->log, &big) == WEIR_EFAILED) break;
    if (w->log) history_check(w->history, w->log, false);
    if (w->log) workload_close(w);
    weir__log_inspect(&w->options, count_finding, &findings, &damaged, NULL);
    if (damaged > 0) history_violation(w->history, "inspect calls want of memory damage");
    if (!w->log && simfs_open_files(w->disk) > 0)
        history_violation(w->history, "a file was left open");
}

static void check_after(struct workload *w)
{
    struct weir_error err = {0};

    w->history->may_fail = false;
    if (!w->created) weir__log_destroy(simfs_fs(w->disk), WORKLOAD_DIR, NULL);
    if (workload_open(w, &err) != 0)
        history_violation(w->history, "reopening: %s", err.text);
    else
        history_check(w->history, w->log, true);
    if (w->log) workload_crash(w, SIMFS_KEEP_NONE, 0);
}

/* False: the workload makes fewer allocations than that. */
static bool survive(uint64_t at)
{
    struct workload w;
    bool struck;

    workload_init(&w, 31);
    w.history->may_fail = true;
    simfs_hook(w.disk, spare_disk, NULL);
    allocs_fail(at);
    run_workload(&w);
    struck = allocs_failed();
    allocs_fail(0);
    if (w.log) workload_close(&w);
    check_after(&w);
    if (w.history->violations > 0) fail_msg("allocation %" PRIu64 ": %s", at, w.history->first);
    allocs_pause();
    workload_fini(&w);
    return struck;
}

static void every_allocation_may_fail(void **state)
{
    uint64_t at = 1;

    (void)state;
    while (at < ALLOCATIONS_MAX && survive(at)) at++;
    assert_in_range(at, 50, ALLOCATIONS_MAX - 1);
    print_message("%" PRIu64 " allocations failed, one per run\n", at - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
