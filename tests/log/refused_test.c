/* refused_test.c - what the log does not take, at its limits and with the words that are told; and the
 * last that it does take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "log/batch.h"
#include "log/log.h"
#include "support/simfs.h"

#define DIR_NAME "log"
#define SEGMENT_1 DIR_NAME "/00000001.seg"
#define PARTITIONS 2u
#define BODY_MAX 8000u
#define KIB 1024u
#define FRONT (2 * (uint64_t)WEIR__FS_BLOCK) /* a header and the heads */
#define WAIT weir__deadline_ns(20000)

struct scene {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log;
    struct weir_error err;
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->disk = simfs_new();
    s->clock = (struct simclock){.wall_ms = 1700000000000, .mono_ms = 1000};
    s->o = (struct weir__log_options){.fs = simfs_fs(s->disk),
                                      .clock = simclock(&s->clock),
                                      .dir = DIR_NAME,
                                      .hub_id = 5,
                                      .partitions = PARTITIONS,
                                      .batch_bytes_max = BODY_MAX,
                                      .segment_bytes_max = 64 * KIB,
                                      .retain_ms = -1,
                                      .no_threads = true};
    assert_int_equal(weir__log_create(&s->o, NULL), 0);
    assert_int_equal(weir__log_open(&s->log, &s->o, NULL), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__log_close(s->log, NULL);
    simfs_free(s->disk);
    free(s);
    return 0;
}

/* text NULL: it works. */
static void expect(struct scene *s, int rc, int code, const char *text)
{
    if (rc != 0 && text && strcmp(s->err.text, text) != 0) fail_msg("%s", s->err.text);
    if (rc != 0 && !text) fail_msg("%s", s->err.text);
    assert_int_equal(rc, code);
}

/* ---- options ---- */

static void options_have_limits(void **state)
{
    static const struct {
        uint32_t partitions, batch_bytes_max;
        uint64_t min, max;
        const char *text;
    } cases[] = {
        {1, 0, 0, 64 * KIB, NULL},
        {WEIR__LOG_PARTITIONS_MAX, 0, 0, 256 * KIB, NULL},
        {1, WEIR__LOG_BATCH_BYTES_MAX, 0, 64 * KIB, NULL},
        {1, 0, 128 * KIB, 128 * KIB, NULL},
        {0, 0, 0, 0, "0 partitions: 1 to 1024 are possible"},
        {1025, 0, 0, 0, "1025 partitions: 1 to 1024 are possible"},
        {1, WEIR__LOG_BATCH_BYTES_MAX + 1, 0, 0,
         "batches of 20971521 bytes: at most 20971520 are possible"},
        {1, 0, 128 * KIB, 64 * KIB,
         "segments of 131072 to 65536 bytes: powers of two, at least 65536, are needed"},
        {1, 0, 32 * KIB, 64 * KIB,
         "segments of 32768 to 65536 bytes: powers of two, at least 65536, are needed"},
        {1, 0, 64 * KIB, 96 * KIB,
         "segments of 65536 to 98304 bytes: powers of two, at least 65536, are needed"},
        {1, 0, 96 * KIB, 128 * KIB,
         "segments of 98304 to 131072 bytes: powers of two, at least 65536, are needed"},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__log_options o = s->o;
        char dir[16];

        snprintf(dir, sizeof dir, "other%zu", i);
        o.dir = dir;
        o.partitions = cases[i].partitions;
        o.batch_bytes_max = cases[i].batch_bytes_max;
        o.segment_bytes_min = cases[i].min;
        o.segment_bytes_max = cases[i].max;
        expect(s, weir__log_create(&o, &s->err), cases[i].text ? WEIR_EINVAL : 0, cases[i].text);
    }
}

/* ---- batches ---- */

static int append(struct scene *s, const struct weir__log_batch *b)
{
    return weir__log_append_wait(s->log, b, WAIT, NULL, &s->err);
}

static struct weir__log_batch batch_of(uint32_t partition, uint32_t bytes, uint32_t count)
{
    static const uint8_t body[BODY_MAX + 1];

    return (struct weir__log_batch){.partition = partition,
                                    .count = count,
                                    .body = {weir__bytes_of(body, bytes / 2),
                                             weir__bytes_of(body, bytes - bytes / 2)}};
}

static void batches_have_limits(void **state)
{
    static const struct {
        uint32_t partition, bytes, count;
        int rc;
        const char *text;
    } cases[] = {
        {1, BODY_MAX, BODY_MAX, 0, NULL},
        {0, 1, 1, 0, NULL},
        {0, BODY_MAX + 1, 1, WEIR_ETOOBIG, "a batch of more than 8000 bytes"},
        {2, 10, 1, WEIR_EINVAL, "partition 2 of 2"},
        {0, 10, 0, WEIR_EINVAL, "0 events in 10 bytes"},
        {0, 10, 11, WEIR_EINVAL, "11 events in 10 bytes"},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__log_batch b = batch_of(cases[i].partition, cases[i].bytes, cases[i].count);

        expect(s, append(s, &b), cases[i].rc, cases[i].text);
        expect(s, weir__log_append(s->log, &b, WAIT, NULL, NULL, &s->err), cases[i].rc,
               cases[i].text);
    }
}

static void partitions_have_limits(void **state)
{
    struct scene *s = *state;
    struct weir__log_partition_info info;
    struct weir__log_reader *r = NULL;
    uint64_t sequence;

    for (uint32_t i = 1; i <= PARTITIONS; i++) {
        const char *text = i < PARTITIONS ? NULL : "partition 2 of 2";
        int rc = text ? WEIR_EINVAL : 0;

        expect(s, weir__log_partition_info(s->log, i, &info, &s->err), rc, text);
        expect(s, weir__log_find(s->log, i, WEIR__LOG_BY_TIME, 1, true, &sequence, &s->err), rc,
               text);
        expect(s, weir__log_reader_open(&r, s->log, i, 0, 0, &s->err), rc, text);
    }
    weir__log_reader_close(r);
    expect(s, weir__log_grow(s->log, WEIR__LOG_PARTITIONS_MAX + 1, &s->err), WEIR_EINVAL,
           "1025 partitions: 1 to 1024 are possible");
    expect(s, weir__log_grow(s->log, WEIR__LOG_PARTITIONS_MAX, &s->err), 0, NULL);
}

/* ---- producers ---- */

static int begin(struct scene *s, uint16_t epoch, uint32_t next)
{
    struct weir__log_producer got = {0};
    int rc = weir__log_producer_begin(s->log, 1, 7, epoch, &got, &s->err);

    if (rc != 0) return rc;
    assert_int_equal(got.id, 7);
    assert_int_equal(got.epoch, epoch);
    assert_int_equal(got.sequence, next);
    assert_int_equal(weir__log_producer_state(s->log, 1, 7, &got, &s->err), 0);
    assert_int_equal(got.id, 7);
    assert_int_equal(got.epoch, epoch);
    assert_int_equal(got.sequence, next);
    return 0;
}

/* Whoever has begun a newer epoch keeps the older ones out, before a batch of it has come. */
static void newer_epochs_take_over(void **state)
{
    static const char old[] = "producer 7: a newer epoch took over. Received:4 Current:5";
    struct scene *s = *state;
    struct weir__log_batch b = batch_of(1, 10, 3);
    struct weir__log_producer got;

    expect(s, weir__log_producer_state(s->log, 1, 7, &got, &s->err), WEIR_ENOTFOUND,
           "producer 7 is not known");
    expect(s, begin(s, 4, 0), 0, NULL);
    expect(s, begin(s, 5, 0), 0, NULL);
    expect(s, begin(s, 5, 0), 0, NULL);
    expect(s, begin(s, 4, 0), WEIR_EFENCED, old);
    b.producer = (struct weir__log_producer){7, 4, 0};
    expect(s, append(s, &b), WEIR_EFENCED, old);
    expect(s, weir__log_producer_state(s->log, 0, 7, &got, &s->err), WEIR_ENOTFOUND,
           "producer 7 is not known");
    b.producer.epoch = 5;
    expect(s, append(s, &b), 0, NULL);
    expect(s, begin(s, 5, 3), 0, NULL);
    expect(s, begin(s, 6, 3), 0, NULL);
    expect(s, begin(s, 4, 3), WEIR_EFENCED,
           "producer 7: a newer epoch took over. Received:4 Current:6");
    b.producer.epoch = 8; /* without having begun */
    expect(s, append(s, &b), 0, NULL);
    expect(s, begin(s, 7, 3), WEIR_EFENCED,
           "producer 7: a newer epoch took over. Received:7 Current:8");
    b.partition = 0; /* where nobody has begun */
    b.producer.epoch = 4;
    expect(s, append(s, &b), 0, NULL);
}

/* ---- what cannot be read ---- */

static int read_one(struct weir__log_reader *r, struct scene *s)
{
    struct weir__log_view v[4];
    uint32_t count;
    uint64_t missed;

    return weir__log_reader_next(r, v, 4, &count, &missed, &s->err);
}

/* A batch that the disk does not give is damaged after ten seconds, for every reader. */
static void ten_seconds_are_enough(void **state)
{
    static const char what[] =
        "byte 8192, events 0 to 2 of partition 1: reading segment 00000001.seg: ";
    struct scene *s = *state;
    struct weir__log_batch b = batch_of(1, 6000, 3);
    struct weir__log_reader *r[2];
    char late[256];

    expect(s, append(s, &b), 0, NULL);
    assert_int_equal(weir__log_close(s->log, NULL), 0);
    assert_int_equal(weir__log_open(&s->log, &s->o, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__log_reader_open(&r[i], s->log, 1, 0, 0, NULL), 0);
    simfs_spoil(s->disk, SEGMENT_1, FRONT + 3000, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_one(r[0], s), WEIR_EIO);
        assert_memory_equal(s->err.text, what, sizeof what - 1);
        simclock_pass(&s->clock, i ? 1 : 9999);
    }
    snprintf(late, sizeof late, "the disk has not given it for 10 s: %s", what);
    for (int i = 0; i < 2; i++) {
        uint64_t first, last;

        assert_int_equal(read_one(r[i], s), WEIR_ECORRUPT);
        assert_memory_equal(s->err.text, late, strlen(late));
        weir__log_reader_damage(r[i], &first, &last);
        assert_int_equal(first, 0);
        assert_int_equal(last, 2);
    }
    simfs_spoil(s->disk, SEGMENT_1, 0, 0); /* it was not lost after all */
    for (int i = 0; i < 2; i++) {
        expect(s, read_one(r[i], s), 0, NULL);
        weir__log_reader_close(r[i]);
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(options_have_limits),    CASE(batches_have_limits),    CASE(partitions_have_limits),
        CASE(newer_epochs_take_over), CASE(ten_seconds_are_enough),
    };

    return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
