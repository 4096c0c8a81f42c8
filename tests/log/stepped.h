/* stepped.h - a log on a simulated disk, without threads: it does something when the test says so, and its
 * clock goes when the test lets time pass. */
#ifndef WEIR_TESTS_LOG_STEPPED_H
#define WEIR_TESTS_LOG_STEPPED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/simfs.h"

#define WAIT weir__deadline_ns(20000)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define PUT_BYTES_MAX (512 * KIB)

struct world {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log; /* NULL: not started */
};

/* The options say what is special. It is not started, so that a test can change more of them. */
static inline struct world *world_new(struct weir__log_options o)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->disk = simfs_new();
    w->clock = (struct simclock){.wall_ms = 1700000000000, .mono_ms = 1000};
    w->o = o;
    w->o.fs = simfs_fs(w->disk);
    w->o.clock = simclock(&w->clock);
    w->o.dir = "log";
    w->o.hub_id = 1;
    w->o.retain_ms = -1;
    w->o.no_threads = true;
    return w;
}

static inline void start(struct world *w)
{
    struct weir_error err = {0};

    assert_int_equal(weir__log_create(&w->o, NULL), 0);
    if (weir__log_open(&w->log, &w->o, &err) != 0) fail_msg("%s", err.text);
}

static inline int tear_down(void **state)
{
    struct world *w = *state;

    simfs_fail(w->disk, NULL);
    weir__log_close(w->log, NULL);
    simfs_free(w->disk);
    test_free(w);
    return 0;
}

/* A batch that takes so many bytes, in a partition. */
static inline void put_into(struct world *w, uint32_t partition, uint32_t bytes)
{
    static const uint8_t body[PUT_BYTES_MAX];
    struct weir__log_batch b = {.partition = partition,
                                .count = 1,
                                .body = {weir__bytes_of(body, bytes - WEIR__BATCH_HEADER_BYTES)}};

    assert_int_equal(weir__log_append_wait(w->log, &b, WAIT, NULL, NULL), 0);
}

static inline void put(struct world *w, uint32_t bytes)
{
    put_into(w, 0, bytes);
}

#endif
