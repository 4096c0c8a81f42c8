/* old_control.h - a log whose control file is kept aside, to be put back when it is an older one. */
#ifndef WEIR_TESTS_LOG_OLD_CONTROL_H
#define WEIR_TESTS_LOG_OLD_CONTROL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/workload.h"

#define CONTROL WORKLOAD_DIR "/control"
#define CONTROL_BYTES (256u << 10)

struct copy {
    size_t len;
    uint8_t at[CONTROL_BYTES];
};

static inline int set_up(void **state)
{
    struct workload *w = test_calloc(1, sizeof *w);

    workload_init(w, 11);
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct workload *w = *state;
    int rc = w->history->violations > 0 ? -1 : 0;

    if (rc != 0) print_error("%s\n", w->history->first);
    workload_close(w);
    if (simfs_open_files(w->disk) > 0) rc = -1;
    workload_fini(w);
    test_free(w);
    return rc;
}

static inline void open_log(struct workload *w)
{
    struct weir_error err = {0};

    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
}

static inline void put(struct workload *w, uint32_t partition, uint32_t bytes)
{
    struct history_order o = {.partition = partition, .bytes = bytes, .count = 2};

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
}

static inline void take_copy(struct simfs *disk, struct copy *c)
{
    long got = simfs_peek(disk, CONTROL, c->at, sizeof c->at, 0);

    assert_true(got > 0);
    c->len = (size_t)got;
}

static inline void put_copy(struct simfs *disk, const struct copy *c)
{
    simfs_put(disk, CONTROL, c->at, c->len);
}

#endif
