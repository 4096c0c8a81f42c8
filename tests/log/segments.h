/* segments.h - a log of a few full segments on a simulated disk, closed, to be inspected. */
#ifndef WEIR_TESTS_LOG_SEGMENTS_H
#define WEIR_TESTS_LOG_SEGMENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "log/batch.h"
#include "log/log.h"
#include "support/simfs.h"

#define DIR_NAME "log"
#define SEGMENT_1 DIR_NAME "/00000001.seg"
#define SEGMENT_BYTES 65536u
#define PER_SEGMENT 6u /* batches */
#define BODY_BYTES 6000u

struct segments {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
};

/* One to three events, in one of the first two partitions, of a producer of its own if of any. */
static inline void segments_put(struct weir__log *log, uint32_t number, bool producers)
{
    static uint8_t body[BODY_BYTES];
    struct weir__log_batch b = {.partition = number % 2,
                                .count = 1 + number % 3,
                                .producer = {.id = producers ? 1 + number : 0},
                                .body = {weir__bytes_of(body, BODY_BYTES)}};

    memset(body, 'x', sizeof body);
    assert_int_equal(weir__log_append_wait(log, &b, weir__deadline_ns(20000), NULL, NULL), 0);
}

static inline void segments_init(struct segments *s, uint32_t partitions, uint32_t batches,
                                 bool producers)
{
    struct weir__log *log;

    s->disk = simfs_new();
    s->clock = (struct simclock){.wall_ms = 1700000000000, .mono_ms = 1000};
    s->o = (struct weir__log_options){.fs = simfs_fs(s->disk),
                                      .clock = simclock(&s->clock),
                                      .dir = DIR_NAME,
                                      .hub_id = 5,
                                      .partitions = partitions,
                                      .segment_bytes_max = SEGMENT_BYTES,
                                      .retain_ms = -1,
                                      .no_threads = true};
    assert_int_equal(weir__log_create(&s->o, NULL), 0);
    assert_int_equal(weir__log_open(&log, &s->o, NULL), 0);
    for (uint32_t i = 0; i < batches; i++) segments_put(log, i, producers);
    assert_int_equal(weir__log_close(log, NULL), 0);
}

static inline void segments_fini(struct segments *s)
{
    simfs_free(s->disk);
}

#endif
