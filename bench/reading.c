#include "bench/reading.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/place.h"
#include "log/log.h"

#define VIEWS 64u

struct weir__reading {
    struct weir__subject *subject;
    struct weir__log *log; /* the subject's */
    char dir[WEIR__PLACE_PATH_BYTES];
    uint32_t partitions;
    uint32_t partition; /* the next one to be read */
    uint32_t event_bytes;
};

static int open_log(struct weir__reading *r, bool existing, struct weir_error *err)
{
    struct weir__subject_options options = {.dir = r->dir,
                                            .existing = existing,
                                            .partitions = r->partitions};
    int rc = weir__subject_log.open(&r->subject, &options, err);

    if (rc == 0) r->log = weir__subject_log_of(r->subject);
    return rc;
}

static int close_log(struct weir__reading *r, struct weir_error *err)
{
    int rc = weir__subject_close(r->subject, err);

    r->subject = NULL;
    return rc;
}

int weir__reading_open(struct weir__reading **out, const char *dir, struct weir__load *load,
                       uint32_t partitions, uint64_t bytes, bool cold, struct weir_error *err)
{
    struct weir__reading *r = calloc(1, sizeof *r);
    struct weir__bench_run run;
    int rc;

    if (!r) return weir__fail(err, WEIR_ENOMEM, "reading");
    r->partitions = partitions;
    r->event_bytes = (uint32_t)weir__load_parcel(load, 0)->events[0].body.len;
    snprintf(r->dir, sizeof r->dir, "%s", dir);
    rc = open_log(r, false, err);
    if (rc == 0)
        rc = weir__load_flood(load, r->subject, partitions, weir__load_batches(load, bytes), &run,
                              err);
    if (rc == 0 && cold) {
        rc = close_log(r, err);
        if (rc == 0) rc = open_log(r, true, err);
    }
    if (rc != 0) {
        weir__reading_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void weir__reading_close(struct weir__reading *r)
{
    if (!r) return;
    (void)close_log(r, NULL);
    free(r);
}

/* Reads to the end of what is durable and counts. The log checks every batch that it gives out. */
static int read_through(struct weir__log_reader *reader, struct weir__bench_run *run,
                        struct weir_error *err)
{
    struct weir__log_view views[VIEWS];
    uint64_t missed;
    uint32_t count;
    int rc;

    do {
        rc = weir__log_reader_next(reader, views, VIEWS, &count, &missed, err);
        if (rc != 0) return rc;
        if (missed > 0) return weir__fail(err, WEIR_EIO, "events expired while being read");
        for (uint32_t i = 0; i < count; i++) run->events += views[i].count;
        run->batches += count;
    } while (count > 0);
    return 0;
}

static int read_partition(struct weir__reading *r, uint32_t partition, uint32_t times,
                          struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__log_partition_info info;
    struct weir__log_reader *reader;
    struct weir__bench_mark mark;
    int rc = weir__log_partition_info(r->log, partition, &info, err);

    if (rc != 0) return rc;
    weir__bench_begin(&mark);
    rc = weir__log_reader_open(&reader, r->log, partition, info.begin_sequence, 0, err);
    if (rc != 0) return rc;
    for (uint32_t i = 0; i < times && rc == 0; i++) {
        weir__log_reader_seek(reader, info.begin_sequence);
        rc = read_through(reader, run, err);
    }
    weir__log_reader_close(reader);
    weir__bench_end(&mark, run);
    run->bytes = run->events * r->event_bytes;
    if (rc == 0 && run->events != times * (info.next_sequence - info.begin_sequence))
        rc = weir__fail(err, WEIR_EIO, "%llu events were read, not all",
                        (unsigned long long)run->events);
    return rc;
}

int weir__reading_cold(struct weir__reading *r, struct weir__bench_run *run, struct weir_error *err)
{
    int rc = weir__place_cool(r->dir, err);

    if (rc == 0) rc = read_partition(r, r->partition, 1, run, err);
    r->partition = (r->partition + 1) % r->partitions;
    return rc;
}

int weir__reading_tail(struct weir__reading *r, uint32_t times, struct weir__bench_run *run,
                       struct weir_error *err)
{
    struct weir__log_stats before, after;
    int rc;

    weir__log_stats(r->log, &before);
    rc = read_partition(r, 0, times, run, err);
    weir__log_stats(r->log, &after);
    if (rc == 0 && after.disk_reads != before.disk_reads)
        rc = weir__fail(err, WEIR_EIO, "reading at the tail touched the disk");
    return rc;
}
