/* told_test.c - when the disk refuses a call of the log, whoever caused the call hears of it; and what
 * is promised to be durable waits for no sync. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/refusal.h"

static int do_create(struct refusal_stage *s, struct weir_error *err)
{
    return weir__log_create(&s->o, err);
}

static int do_open(struct refusal_stage *s, struct weir_error *err)
{
    return weir__log_open(&s->log, &s->o, err);
}

/* An index that cannot be read is a finding, and the disks here have none that is bad. */
static void see_finding(const struct weir__log_finding *f, void *user)
{
    struct refusal_stage *s = user;

    if (f->kind == WEIR__LOG_INDEX) s->told = true;
}

static int do_inspect(struct refusal_stage *s, struct weir_error *err)
{
    uint64_t damaged;

    return weir__log_inspect(&s->o, see_finding, s, &damaged, err);
}

static int do_destroy(struct refusal_stage *s, struct weir_error *err)
{
    return weir__log_destroy(s->o.fs, REFUSAL_DIR, err);
}

static int do_append(struct refusal_stage *s, struct weir_error *err)
{
    struct weir__log_batch b = refusal_batch(2000);
    struct weir__log_receipt receipt;

    return weir__log_append_wait(s->log, &b, REFUSAL_WAIT, &receipt, err);
}

static uint64_t count_segments(struct refusal_stage *s)
{
    struct weir__log_stats stats;

    weir__log_stats(s->log, &stats);
    return stats.segments;
}

/* The next batch needs another segment. */
static void fill_segment(struct refusal_stage *s)
{
    uint64_t segments = count_segments(s);
    uint32_t number = 100, first;

    while (count_segments(s) == segments) refusal_append(s, number++, 1);
    for (first = number; count_segments(s) == segments + 1;) refusal_append(s, number++, 1);
    refusal_append(s, number, number - first - 1);
}

static void need_segment(struct refusal_stage *s)
{
    refusal_open(s);
    fill_segment(s);
}

/* One is ready. */
static void have_spare(struct refusal_stage *s)
{
    need_segment(s);
    assert_int_equal(weir__log_step(s->log, NULL), 0);
}

static void need_segment_lazily(struct refusal_stage *s)
{
    s->o.sync_ms = 100000;
    need_segment(s);
}

static void open_lazily(struct refusal_stage *s)
{
    s->o.sync_ms = 100;
    refusal_open(s);
    refusal_append(s, 100, 2);
}

static void append_and_leave(struct refusal_stage *s)
{
    struct weir__log_batch b = refusal_batch(100);

    refusal_open(s);
    refusal_append(s, 200, 1);
    assert_int_equal(weir__log_append(s->log, &b, REFUSAL_WAIT, NULL, NULL, NULL), 0);
}

static int do_flush(struct refusal_stage *s, struct weir_error *err)
{
    return weir__log_flush(s->log, REFUSAL_WAIT, err);
}

static int do_close(struct refusal_stage *s, struct weir_error *err)
{
    struct weir__log *log = s->log;

    s->log = NULL;
    return weir__log_close(log, err);
}

static int do_grow(struct refusal_stage *s, struct weir_error *err)
{
    return weir__log_grow(s->log, REFUSAL_PARTITIONS + 2, err);
}

static void wait_idle(struct refusal_stage *s)
{
    refusal_open(s);
    refusal_append(s, 100, 1);
    simclock_pass(&s->clock, 2000);
}

static void wait_lazily(struct refusal_stage *s)
{
    open_lazily(s);
    simclock_pass(&s->clock, 200);
}

/* Its segment has grown too old. */
static void wait_long(struct refusal_stage *s)
{
    s->o.retain_ms = 3600000;
    refusal_open(s);
    refusal_append(s, 100, 1);
    simclock_pass(&s->clock, 3600000 / 8);
}

static void let_expire(struct refusal_stage *s)
{
    s->o.retain_bytes = REFUSAL_SEGMENT_BYTES;
    refusal_open(s);
}

static void need_tidying(struct refusal_stage *s)
{
    s->o.producers_tidy_blocks = 1;
    refusal_open(s);
}

static int do_step(struct refusal_stage *s, struct weir_error *err)
{
    return weir__log_step(s->log, err);
}

/* And somebody's newest batch is not durable yet: the file gets the one before. */
static void need_tidying_and_wait(struct refusal_stage *s)
{
    struct weir__log_batch b = refusal_batch(0);

    need_tidying(s);
    b.producer.sequence = 1;
    assert_int_equal(weir__log_append(s->log, &b, REFUSAL_WAIT, NULL, NULL, NULL), 0);
}

struct writes {
    unsigned count;
    uint64_t waiting; /* for a sync before the last of them */
};

static void see_write(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct writes *w = user;

    if (call != SIMFS_WRITE || !entering) return;
    w->count++;
    w->waiting = simfs_pending(disk);
}

/* The head comes last, when all that it vouches for is on disk; only the file's name is not. */
static int do_tidy_in_order(struct refusal_stage *s, struct weir_error *err)
{
    struct writes w = {0};
    int rc;

    simfs_hook(s->disk, see_write, &w);
    rc = weir__log_step(s->log, err);
    simfs_hook(s->disk, NULL, NULL);
    if (rc != 0 || (w.count == 4 && w.waiting == 1)) return rc;
    return weir__fail(err, WEIR_EINVAL, "the head is write %u, with %u things before it to sync",
                      w.count, (unsigned)w.waiting);
}

static void open_reader(struct refusal_stage *s)
{
    refusal_open(s);
    assert_int_equal(weir__log_reader_open(&s->reader, s->log, 1, 0, 0, NULL), 0);
}

static int do_read(struct refusal_stage *s, struct weir_error *err)
{
    struct weir__log_view views[16];
    uint32_t count = 0;
    uint64_t missed;
    int rc;

    do {
        rc = weir__log_reader_next(s->reader, views, 16, &count, &missed, err);
    } while (rc == 0 && count > 0);
    return rc;
}

static int do_find(struct refusal_stage *s, struct weir_error *err)
{
    uint64_t sequence;

    return weir__log_find(s->log, 1, WEIR__LOG_BY_OFFSET, 100000, true, &sequence, err);
}

/* Untold are: what is read only to be told about, and old files that stay a while longer. Waiting are:
 * names of files that were removed, and the index of a segment that was left. */
static const struct refusal_deed deeds[] = {
    {"create", refusal_empty, NULL, do_create, 0, 0},
    {"open", refusal_filled, NULL, do_open, 3, 0},
    {"open after an unfinished write", refusal_torn, NULL, do_open, 3, 0},
    {"open among other files", refusal_mixed, NULL, do_open, 3, 0},
    {"open without a control file", refusal_lost, NULL, do_open, 3, 0},
    {"open without a header", refusal_headless, NULL, do_open, 3, 0},
    {"inspect", refusal_filled, NULL, do_inspect, 0, 0},
    {"inspect after an unfinished write", refusal_torn, NULL, do_inspect, 0, 0},
    {"inspect among other files", refusal_mixed, NULL, do_inspect, 0, 0},
    {"inspect without a control file", refusal_lost, NULL, do_inspect, 0, 0},
    {"inspect without a header", refusal_headless, NULL, do_inspect, 0, 0},
    {"destroy", refusal_filled, NULL, do_destroy, 1, 11},
    {"refusal_append", refusal_filled, refusal_open, do_append, 0, 0},
    {"append to a new segment", refusal_filled, need_segment, do_append, 0, 2},
    {"append to the spare", refusal_filled, have_spare, do_append, 0, 2},
    {"append to a new segment, lazily", refusal_filled, need_segment_lazily, do_append, 0, 0},
    {"flush", refusal_filled, append_and_leave, do_flush, 0, 0},
    {"close", refusal_filled, append_and_leave, do_close, 0, 0},
    {"close lazily", refusal_filled, open_lazily, do_close, 0, 0},
    {"grow", refusal_filled, refusal_open, do_grow, 0, 0},
    {"mark the end", refusal_filled, wait_idle, do_step, 0, 0},
    {"sync lazily", refusal_filled, wait_lazily, do_step, 0, 0},
    {"prepare a spare", refusal_filled, need_segment, do_step, 0, 0},
    {"leave an old segment", refusal_filled, wait_long, do_step, 0, 2},
    {"expire", refusal_filled, let_expire, do_step, 15, 5},
    {"tidy producers", refusal_filled, need_tidying, do_step, 1, 1},
    {"tidy producers while a batch waits", refusal_filled, need_tidying_and_wait, do_tidy_in_order,
     1, 1},
    {"read", refusal_filled, open_reader, do_read, 0, 0},
    {"find", refusal_filled, refusal_open, do_find, 0, 0},
};

static void what_fails_is_told(void **state)
{
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        if (!refusal_try(&deeds[i], text)) fail_msg("%s: %s", deeds[i].name, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
