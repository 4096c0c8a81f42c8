/* instructions.c - what the log does for one event, to be counted by callgrind (no test runs it).
 *
 *   instructions batch|single|read|threads EVENTS
 *
 * Files are in memory, so that only the log's own work is counted. `threads` publishes to a log
 * with its own threads; the others do everything on the calling one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

#include "log/log.h"

#define EVENT_BYTES 100u
#define EVENTS_PER_BATCH 100u
#define BATCHES_PER_FLUSH 32u
#define DISK_BYTES ((uint64_t)1 << 30)
#define VIEWS 64u

static void done(void *user, int rc, const struct weir__log_receipt *r, const struct weir_error *e)
{
    (void)r, (void)e;
    assert(rc == 0);
    ++*(uint64_t *)user;
}

static void append_one(struct weir__log *log, uint32_t count, uint64_t *acked)
{
    static const uint8_t body[EVENT_BYTES * EVENTS_PER_BATCH];
    struct weir__log_batch b = {.count = count, .body[0] = {body, (size_t)count * EVENT_BYTES}};
    int rc = weir__log_append(log, &b, INT64_MAX, done, acked, NULL);

    assert(rc == 0);
    (void)rc;
}

static void publish(struct weir__log *log, uint64_t events, uint32_t per_batch)
{
    uint64_t acked = 0, batches = events / per_batch;

    for (uint64_t i = 1; i <= batches; i++) {
        append_one(log, per_batch, &acked);
        if (i % BATCHES_PER_FLUSH == 0) weir__log_flush(log, INT64_MAX, NULL);
    }
    weir__log_flush(log, INT64_MAX, NULL);
}

static void read_all(struct weir__log *log, uint64_t events)
{
    struct weir__log_view views[VIEWS];
    struct weir__log_reader *r;
    uint64_t seen = 0, missed;
    uint32_t count;
    int rc = weir__log_reader_open(&r, log, 0, 0, 0, NULL);

    while (rc == 0 && seen < events) {
        rc = weir__log_reader_next(r, views, VIEWS, &count, &missed, NULL);
        for (uint32_t i = 0; rc == 0 && i < count; i++) seen += views[i].count;
    }
    assert(rc == 0);
    weir__log_reader_close(r);
}

int main(int argc, char **argv)
{
    struct weir__log_options o = {.dir = "log", .hub_id = 1, .partitions = 4, .retain_ms = -1};
    const char *way = argc > 1 ? argv[1] : "batch";
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
    struct weir__log *log;
    int rc = weir__fs_memory_new(&o.fs, DISK_BYTES, NULL);

    o.no_threads = strcmp(way, "threads") != 0;
    if (rc == 0) rc = weir__log_create(&o, NULL);
    if (rc == 0) rc = weir__log_open(&log, &o, NULL);
    assert(rc == 0);
    if (strcmp(way, "read") == 0) publish(log, events, EVENTS_PER_BATCH);
    CALLGRIND_TOGGLE_COLLECT;
    if (strcmp(way, "read") == 0)
        read_all(log, events);
    else
        publish(log, events, strcmp(way, "single") == 0 ? 1 : EVENTS_PER_BATCH);
    CALLGRIND_TOGGLE_COLLECT;
    weir__log_close(log, NULL);
    weir__fs_memory_free(o.fs);
    return 0;
}
