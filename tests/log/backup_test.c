/* backup_test.c - where a log ends, seen from outside while it is open; and what of its files
 * counts. Each test shows one thing that must not move the end: an unfinished write, bytes of an
 * earlier opening, damage, a header that is gone, segments that expire. */
#include "log/backup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/state.h"
#include "support/allocs.h"
#include "support/simfs.h"

#define DIR "log"
#define PARTITIONS 3
#define WAIT weir__deadline_ns(20000)

struct place {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log;
    struct weir__backup_log outside;
    uint64_t end; /* offset behind the newest event, where a batch of one event lies */
};

static void place_open(struct place *p)
{
    assert_int_equal(weir__log_open(&p->log, &p->o, NULL), 0);
}

static void place_init(struct place *p)
{
    *p = (struct place){.disk = simfs_new(), .clock = {.wall_ms = 1700000000000, .mono_ms = 1000}};
    p->o = (struct weir__log_options){.fs = simfs_fs(p->disk),
                                      .clock = simclock(&p->clock),
                                      .dir = DIR,
                                      .hub_id = 5,
                                      .partitions = PARTITIONS,
                                      .segment_bytes_max = 1 << 20,
                                      .retain_ms = -1,
                                      .no_threads = true};
    p->outside = (struct weir__backup_log){p->o.fs, DIR, 5};
    assert_int_equal(weir__log_create(&p->o, NULL), 0);
    place_open(p);
}

static void place_fini(struct place *p)
{
    weir__log_close(p->log, NULL);
    assert_int_equal(simfs_open_files(p->disk), 0);
    simfs_free(p->disk);
}

/* Opens the log as its process would leave it that dies now. */
static void place_die(struct place *p)
{
    struct simfs *left = simfs_clone(p->disk);

    weir__log_close(p->log, NULL);
    simfs_free(p->disk);
    p->disk = left;
    p->o.fs = p->outside.fs = simfs_fs(left);
    place_open(p);
}

/* Where the next batch will lie, when the segment has room for it. */
static uint64_t append(struct weir__log *log, uint32_t partition, uint32_t bytes)
{
    uint8_t *body = calloc(1, bytes);
    struct weir__log_batch batch = {.partition = partition,
                                    .count = 1,
                                    .body = {weir__bytes_of(body, bytes)}};
    struct weir__log_receipt receipt;

    memset(body, 'x', bytes);
    assert_int_equal(weir__log_append_wait(log, &batch, WAIT, &receipt, NULL), 0);
    free(body);
    return receipt.offset + weir__batch_bytes(bytes);
}

static void take(struct place *p, struct weir__backup_moment *m)
{
    struct weir_error err = {0};

    if (weir__backup_moment_take(&p->outside, m, &err) != 0) fail_msg("%s", err.text);
    if (weir__backup_moment_settle(&p->outside, m, &err) != 0) fail_msg("%s", err.text);
}

static uint64_t end_of(struct place *p)
{
    struct weir__backup_moment m;
    uint64_t end;

    take(p, &m);
    assert_false(m.damaged);
    end = m.end;
    weir__backup_moment_fini(&m);
    return end;
}

static void sees_what_was_acknowledged(void **state)
{
    struct weir__log_partition_info info;
    struct weir__backup_moment m;
    struct place p;
    uint64_t end;

    (void)state;
    place_init(&p);
    for (uint32_t i = 0; i < 400; i++) { /* over three segments, batches up to two windows long */
        end = append(p.log, i % PARTITIONS, i == 200 ? 900000 : 5000 + i);
        if (i % 50 == 0) assert_int_equal(end_of(&p), end);
    }
    take(&p, &m);
    assert_int_equal(m.end, end);
    assert_true(m.control.watermark < end);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        assert_int_equal(weir__log_partition_info(p.log, i, &info, NULL), 0);
        assert_int_equal(m.heads[i].next_sequence, info.next_sequence);
        assert_int_equal(m.heads[i].last_offset, info.last_offset);
        assert_int_equal(m.heads[i].last_time_ms, info.last_time_ms);
    }
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

/* Copies the bytes that the log wrote on another disk for a batch at `end` over this disk's. */
static void plant(struct place *p, struct simfs *from, uint64_t end, size_t len)
{
    uint8_t *bytes = malloc(len);
    const char *path = DIR "/00000001.seg";

    assert_int_equal(simfs_peek(from, path, bytes, len, end - WEIR__LOG_ORIGIN), (long)len);
    simfs_poke(p->disk, path, bytes, len, end - WEIR__LOG_ORIGIN);
    free(bytes);
}

/* The same log on a copy of the disk, with one batch more. */
static struct simfs *one_more(struct place *p, uint32_t bytes)
{
    struct simfs *disk = simfs_clone(p->disk);
    struct weir__log_options o = p->o;
    struct weir__log *log;

    o.fs = simfs_fs(disk);
    o.sabotage = WEIR__LOG_SKIP_EPOCH; /* as if the first opening went on */
    assert_int_equal(weir__log_open(&log, &o, NULL), 0);
    append(log, 1, bytes);
    weir__log_close(log, NULL);
    return disk;
}

static void unfinished_write(void **state)
{
    struct simfs *ahead;
    struct place p;
    uint64_t end;

    (void)state;
    place_init(&p);
    end = append(p.log, 0, 3000);
    ahead = one_more(&p, 20000);
    plant(&p, ahead, end, 10000); /* its header is whole, its body is not */
    assert_int_equal(end_of(&p), end);
    plant(&p, ahead, end, 80 + 20000);
    assert_int_equal(end_of(&p), end + weir__batch_bytes(20000));
    simfs_free(ahead);
    place_fini(&p);
}

static void bytes_of_an_earlier_opening(void **state)
{
    struct weir__log_partition_info info;
    struct simfs *ahead;
    struct place p;
    uint64_t end;

    (void)state;
    place_init(&p);
    end = append(p.log, 0, 3000);
    ahead = one_more(&p, 20000);
    weir__log_close(p.log, NULL);
    place_open(&p); /* batches from here on carry another epoch */
    plant(&p, ahead, end, 80 + 20000);
    assert_int_equal(end_of(&p), end);
    place_die(&p);
    assert_int_equal(weir__log_partition_info(p.log, 1, &info, NULL), 0);
    assert_int_equal(info.next_sequence, 0);
    simfs_free(ahead);
    place_fini(&p);
}

/* A damaged batch in front of readable ones: the end lies behind them, and the copy's control file
 * leaves it to the opening what was lost. */
static void damage_at(uint64_t byte)
{
    struct weir__rand rand = weir__rand_system();
    struct weir__backup_moment m;
    struct weir__control c;
    struct place p;
    uint64_t bad, end = 0;

    place_init(&p);
    bad = append(p.log, 0, 3000);
    for (uint32_t i = 0; i < 5; i++) end = append(p.log, i % PARTITIONS, 3000);
    simfs_flip(p.disk, DIR "/00000001.seg", (bad - WEIR__LOG_ORIGIN + byte) * 8);
    assert_int_equal(weir__backup_moment_take(&p.outside, &m, NULL), 0);
    assert_int_equal(m.end, bad);
    assert_int_equal(weir__backup_moment_settle(&p.outside, &m, NULL), 0);
    assert_true(m.damaged);
    assert_int_equal(m.end, end);
    assert_int_equal(weir__backup_control(&m, 1, 1, &rand, &c, NULL), 0);
    assert_int_equal(c.watermark, m.control.watermark);
    assert_int_equal(c.epoch_start, m.control.epoch_start);
    assert_int_equal(c.epoch, m.control.epoch);
    assert_memory_equal(c.heads, m.control.heads, PARTITIONS * sizeof *c.heads);
    assert_int_not_equal(c.heads[0].next_sequence, m.heads[0].next_sequence);
    weir__control_fini(&c);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

static void damage_in_front_of_the_end(void **state)
{
    (void)state;
    damage_at(10);                              /* of its header */
    damage_at(WEIR__BATCH_HEADER_BYTES + 1000); /* of its body */
}

/* A batch that would be the next one of its partition, and lies where it was not written. */
static void a_batch_in_another_place_is_none(void **state)
{
    struct weir__log_partition_info info;
    struct simfs *ahead;
    uint8_t bytes[1080];
    struct place p;
    uint64_t end;

    (void)state;
    place_init(&p);
    end = append(p.log, 0, 3000);
    ahead = one_more(&p, 1000);
    assert_int_equal(simfs_peek(ahead, DIR "/00000001.seg", bytes, sizeof bytes,
                                end - WEIR__LOG_ORIGIN),
                     sizeof bytes);
    end = append(p.log, 0, 500);
    simfs_poke(p.disk, DIR "/00000001.seg", bytes, sizeof bytes, end - WEIR__LOG_ORIGIN);
    assert_int_equal(end_of(&p), end);
    simfs_free(ahead);
    place_die(&p);
    assert_int_equal(weir__log_partition_info(p.log, 1, &info, NULL), 0);
    assert_int_equal(info.next_sequence, 0);
    for (size_t i = 0; simfs_path(p.disk, i); i++) /* nor is it one that was not finished */
        assert_null(strstr(simfs_path(p.disk, i), "/cut-"));
    place_fini(&p);
}

/* A batch of a partition that there is not, though its checksums are good. */
static void a_batch_of_no_partition_is_none(void **state)
{
    static const uint8_t body[8] = "nobody's";
    uint8_t bytes[WEIR__BATCH_HEADER_BYTES + sizeof body];
    struct weir__batch_header h = {.body_bytes = sizeof body, .count = 1};
    struct place p;

    (void)state;
    place_init(&p);
    h.position = append(p.log, 0, 3000);
    h.epoch = p.log->epoch;
    h.body_crc = weir__crc32c(0, body, sizeof body);
    memcpy(bytes + WEIR__BATCH_HEADER_BYTES, body, sizeof body);
    for (int i = 1; i >= 0; i--) {
        h.partition = (uint16_t)(PARTITIONS - 1 + i);
        weir__batch_encode(&h, &weir__log_active(p.log)->stamp, bytes);
        simfs_poke(p.disk, DIR "/00000001.seg", bytes, sizeof bytes, h.position - WEIR__LOG_ORIGIN);
        assert_int_equal(end_of(&p), i ? h.position : h.position + weir__batch_bytes(sizeof body));
    }
    place_fini(&p);
}

/* ---- what the disk does not give ---- */

/* The disk's own memory never fails. */
static void spare_disk(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    (void)disk, (void)kind, (void)user;
    if (entering)
        allocs_pause();
    else
        allocs_resume();
}

/* The next read of the batch that lies `past` bytes behind the first one that is not known to be durable
 * fails, until simfs_spoil says otherwise. Returns its position. */
static uint64_t spoil_behind(struct place *p, uint64_t past)
{
    struct weir__backup_moment m;
    char path[sizeof DIR + WEIR__SEGMENT_NAME_BYTES];
    uint64_t at;

    assert_int_equal(weir__backup_moment_take(&p->outside, &m, NULL), 0);
    at = m.control.watermark > m.last.data ? m.control.watermark : m.last.data;
    snprintf(path, sizeof path, DIR "/%s", m.last.name);
    simfs_spoil(p->disk, path, at + past - m.last.h.base, 1);
    weir__backup_moment_fini(&m);
    return at + past;
}

/* A moment at which the disk did not give the first batch behind the watermark. */
static void take_unread(struct place *p, struct weir__backup_moment *m)
{
    uint64_t at = spoil_behind(p, 0);

    assert_int_equal(weir__backup_moment_take(&p->outside, m, NULL), 0);
    assert_true(m->unread);
    assert_int_equal(m->end, at);
    simfs_spoil(p->disk, "", 0, 0);
}

/* Batches that can be read count up to the very block that cannot. */
static void what_lies_in_front_of_unread_counts(void **state)
{
    const uint64_t first = weir__batch_bytes(WEIR__FS_BLOCK);
    struct weir__backup_moment m;
    struct place p;
    uint64_t at;

    (void)state;
    place_init(&p);
    append(p.log, 0, WEIR__FS_BLOCK);
    append(p.log, 1, WEIR__FS_BLOCK);
    append(p.log, 2, 100);
    at = spoil_behind(&p, first + WEIR__FS_BLOCK) - WEIR__FS_BLOCK;
    assert_int_equal(weir__backup_moment_take(&p.outside, &m, NULL), 0);
    assert_true(m.unread);
    assert_int_equal(m.end, at);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

/* Settling tries again, and either comes to the end or tells that it could not. */
static void what_was_unread_is_tried_again(void **state)
{
    struct weir__backup_moment m;
    bool struck = true;
    struct place p;
    uint64_t end;

    (void)state;
    place_init(&p);
    append(p.log, 0, 3000);
    end = append(p.log, 1, 3000);
    simfs_hook(p.disk, spare_disk, NULL);
    for (uint64_t at = 1; struck; at++) {
        int rc;

        take_unread(&p, &m);
        assert_true(m.end < end);
        allocs_fail(at);
        rc = weir__backup_moment_settle(&p.outside, &m, NULL);
        struck = allocs_failed();
        allocs_fail(0);
        assert_int_equal(rc, struck ? WEIR_ENOMEM : 0);
        if (rc == 0) assert_int_equal(m.end, end);
        assert_false(m.damaged);
        weir__backup_moment_fini(&m);
    }
    place_fini(&p);
}

/* The control file knows of the last segment all that is needed to read it. */
static void last_header_is_gone(void **state)
{
    static const uint8_t zeros[4096];
    const char *path = DIR "/00000001.seg";
    struct weir__backup_moment whole, m;
    struct place p;
    uint64_t end;

    (void)state;
    place_init(&p);
    end = append(p.log, 0, 3000);
    simfs_poke(p.disk, path, zeros, sizeof zeros, 0);
    assert_int_equal(end_of(&p), end);
    take(&p, &whole);
    assert_false(whole.last.lost);
    simfs_poke(p.disk, path, zeros, sizeof zeros, simfs_size(p.disk, path) - sizeof zeros);
    assert_int_equal(end_of(&p), end);
    take(&p, &m);
    assert_true(m.last.lost);
    assert_string_equal(m.last.name, whole.last.name);
    assert_int_equal(m.last.data, whole.last.data);
    assert_int_equal(m.last.stamp.seed, whole.last.stamp.seed);
    assert_int_equal(m.last.h.version, whole.last.h.version);
    assert_int_equal(m.last.h.partitions, PARTITIONS);
    assert_int_equal(m.last.h.secret, whole.last.h.secret);
    assert_int_equal(m.last.h.number, 1);
    assert_int_equal(m.last.h.base, whole.last.h.base);
    assert_int_equal(m.last.h.capacity, whole.last.h.capacity);
    assert_int_equal(m.last.h.previous_end, whole.last.h.previous_end);
    assert_int_equal(weir__backup_limit(&m.last), weir__backup_limit(&whole.last));
    assert_int_equal(weir__segment_front_bytes(m.last.h.heads_bytes), m.last.data - m.last.h.base);
    weir__backup_moment_fini(&whole);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

/* ---- a control file that is being written ---- */

#define CONTROL_TRIES 200u
#define CONTROL_COPIES 2
#define CONTROL_COPY_BYTES (64u << 10)

struct writer {
    unsigned reads, last; /* of the control file; with the last one it is whole again */
};

static void flip_control(struct simfs *disk)
{
    for (uint64_t i = 0; i < CONTROL_COPIES; i++)
        simfs_flip(disk, DIR "/control", (i * CONTROL_COPY_BYTES + 100) * 8);
}

static void mend_control(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    struct writer *w = user;

    if (kind == SIMFS_READ && entering && ++w->reads == w->last) flip_control(disk);
}

/* So many times it is read before it counts as damaged. */
static void a_control_file_is_read_again(void **state)
{
    (void)state;
    for (unsigned last = CONTROL_TRIES; last <= CONTROL_TRIES + 1; last++) {
        struct writer w = {.last = last};
        struct weir__backup_moment m;
        struct weir_error err = {0};
        struct place p;
        int rc;

        place_init(&p);
        flip_control(p.disk);
        simfs_hook(p.disk, mend_control, &w);
        rc = weir__backup_moment_take(&p.outside, &m, &err);
        simfs_hook(p.disk, NULL, NULL);
        assert_int_equal(rc, last == CONTROL_TRIES ? 0 : WEIR_ECORRUPT);
        if (rc != 0) assert_int_equal(w.reads, CONTROL_TRIES);
        if (rc != 0)
            assert_non_null(strstr(err.text, "both copies in the control file are damaged"));
        weir__backup_moment_fini(&m);
        place_fini(&p);
    }
}

/* ---- the control file of a copy ---- */

static int fill_in_order(void *self, void *out, size_t len, struct weir_error *err)
{
    uint64_t *next = self;

    (void)err;
    memset(out, (int)(*next)++, len);
    return 0;
}

static void check_active(const struct weir__control *c, const struct weir__segment *last)
{
    assert_int_equal(c->active.base, last->h.base);
    assert_int_equal(c->active.capacity, last->h.capacity);
    assert_int_equal(c->active.data, last->data);
    assert_int_equal(c->active.name, 9);
}

/* What is not of the moment is the log's. */
static void control_of_a_copy(void **state)
{
    uint64_t next = 0;
    struct weir__rand rand = {fill_in_order, &next};
    struct weir__backup_moment m;
    struct weir__control c;
    struct place p;

    (void)state;
    place_init(&p);
    p.clock.wall_ms = INT64_C(0x0102030405060708); /* something in each of its bytes */
    append(p.log, PARTITIONS - 1, 100);
    while (p.log->control.last_segment < 4) append(p.log, 1, 60000);
    append(p.log, 0, 100);
    take(&p, &m);
    assert_int_equal(m.heads[PARTITIONS - 1].last_time_ms, p.clock.wall_ms);
    m.control.stale_at = 4096;
    m.control.keep = (struct weir__keep_time){1, 2, 3, 4, 5, 6};
    assert_int_equal(weir__backup_control(&m, 3, 9, &rand, &c, NULL), 0);
    assert_null(c.copy);
    assert_int_equal(c.stale_at, 0);
    assert_int_equal(c.version, m.control.version);
    assert_int_equal(c.hub_id, 5);
    assert_int_equal(c.secret, m.control.secret);
    assert_int_equal(next, 0);
    assert_int_equal(c.generation, m.control.generation);
    assert_int_equal(c.first_segment, 3);
    assert_int_equal(c.last_segment, 4);
    assert_true(m.control.watermark < m.end && m.control.epoch_start < m.end);
    assert_int_equal(c.watermark, m.end);
    assert_int_equal(c.epoch_start, m.end);
    assert_int_equal(c.epoch, m.control.epoch);
    assert_int_equal(c.partitions, PARTITIONS);
    assert_memory_equal(&c.keep, &m.control.keep, sizeof c.keep);
    check_active(&c, &m.last);
    assert_memory_equal(c.heads, m.heads, PARTITIONS * sizeof *c.heads);
    weir__control_fini(&c);
    m.control.secret = 0; /* as of version 1: it gets one, which is not 0 */
    assert_int_equal(weir__backup_control(&m, 3, 9, &rand, &c, NULL), 0);
    assert_int_equal(next, 2);
    assert_int_equal(c.secret, 0x0101010101010101);
    weir__control_fini(&c);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

/* Openings in between do not matter, as long as nothing of the moment was taken back. */
static void opened_meanwhile(void **state)
{
    struct weir__backup_moment m, later;
    struct simfs *ahead;
    struct place p;
    uint64_t end, first = 0;

    (void)state;
    place_init(&p);
    end = append(p.log, 0, 3000);
    ahead = one_more(&p, 20000);
    weir__log_close(p.log, NULL); /* opened again, the log would go on behind `end` */
    take(&p, &m);
    plant(&p, ahead, end, 80 + 20000);
    take(&p, &later);
    assert_true(later.end > m.end);
    for (int i = 0; i < 3; i++) {
        place_open(&p);
        append(p.log, 0, 100);
        weir__log_close(p.log, NULL);
    }
    assert_int_equal(weir__backup_moment_still(&p.outside, &m, &first, NULL), 0);
    assert_int_equal(weir__backup_moment_still(&p.outside, &later, &first, NULL), 0);
    simfs_flip(p.disk, DIR "/00000001.seg", (end - WEIR__LOG_ORIGIN + 10) * 8);
    assert_int_equal(weir__backup_moment_still(&p.outside, &later, &first, NULL), WEIR_EBUSY);
    simfs_flip(p.disk, DIR "/00000001.seg", (end - WEIR__LOG_ORIGIN + 10) * 8);
    weir__backup_moment_fini(&m);
    weir__backup_moment_fini(&later);
    place_open(&p);
    simfs_free(ahead);
    place_fini(&p);
}

/* What was there and is not any more when the log is opened: its place goes to somebody else. */
static void taken_back_meanwhile(void **state)
{
    static const uint8_t zeros[80 + 20000];
    struct weir__backup_moment m, later;
    struct simfs *ahead;
    struct place p;
    uint64_t end, first = 0;

    (void)state;
    place_init(&p);
    end = append(p.log, 0, 3000);
    ahead = one_more(&p, 20000);
    weir__log_close(p.log, NULL);
    take(&p, &m);
    plant(&p, ahead, end, sizeof zeros);
    take(&p, &later);
    assert_true(later.end > m.end);
    simfs_poke(p.disk, DIR "/00000001.seg", zeros, sizeof zeros, end - WEIR__LOG_ORIGIN);
    place_open(&p);
    assert_int_equal(append(p.log, 0, 100), end + weir__batch_bytes(100));
    assert_int_equal(weir__backup_moment_still(&p.outside, &m, &first, NULL), 0);
    assert_int_equal(weir__backup_moment_still(&p.outside, &later, &first, NULL), WEIR_EBUSY);
    weir__backup_moment_fini(&m);
    weir__backup_moment_fini(&later);
    simfs_free(ahead);
    place_fini(&p);
}

static void expired_meanwhile(void **state)
{
    struct weir__backup_moment m;
    struct weir__backup_row row;
    struct place p;
    uint64_t first = 0;

    (void)state;
    place_init(&p);
    weir__log_close(p.log, NULL);
    p.o.retain_bytes = 2 << 20;
    place_open(&p);
    for (uint32_t i = 0; i < 40; i++) append(p.log, 0, 60000);
    take(&p, &m);
    assert_int_equal(weir__backup_moment_still(&p.outside, &m, &first, NULL), 0);
    assert_int_equal(weir__backup_row_read(&p.outside, &m, &row, NULL), 0);
    assert_int_equal(row.missing, 0);
    assert_int_equal(row.at[row.count - 1].h.number, m.control.last_segment);
    weir__backup_row_fini(&row);
    for (uint32_t i = 0; i < 100; i++) {
        append(p.log, 0, 60000);
        assert_int_equal(weir__log_step(p.log, NULL), 0);
    }
    assert_int_equal(weir__backup_moment_still(&p.outside, &m, &first, NULL), WEIR_EBUSY);
    assert_int_equal(weir__backup_row_read(&p.outside, &m, &row, NULL), WEIR_EBUSY);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

static void expect_row(struct place *p, const struct weir__backup_moment *m,
                       const uint64_t *numbers, size_t count, uint64_t missing)
{
    struct weir__backup_row row;

    assert_int_equal(weir__backup_row_read(&p->outside, m, &row, NULL), 0);
    assert_int_equal(row.missing, missing);
    assert_int_equal(row.count, count);
    for (size_t i = 0; i < count; i++) {
        const struct weir__segment *seg = &row.at[i];
        uint64_t limit = i + 1 < count ? weir__backup_limit(seg) : m->end;
        bool known = i + 1 < count && numbers[i] && numbers[i + 1] == numbers[i] + 1;

        assert_int_equal(seg->h.number, numbers[i]);
        assert_int_equal(seg->lost, numbers[i] == 0);
        assert_int_equal(seg->end, known ? row.at[i + 1].h.previous_end : limit);
        if (known) assert_in_range(seg->end, seg->data, limit);
    }
    weir__backup_row_fini(&row);
}

static void remove_numbered(struct place *p, const struct weir__backup_moment *m, uint64_t number)
{
    struct weir__backup_row row;
    char path[64];

    assert_int_equal(weir__backup_row_read(&p->outside, m, &row, NULL), 0);
    for (size_t i = 0; i < row.count; i++) {
        snprintf(path, sizeof path, DIR "/%s", row.at[i].name);
        if (row.at[i].h.number == number)
            assert_int_equal(p->o.fs->ops->remove(p->o.fs, path, NULL), 0);
    }
    weir__backup_row_fini(&row);
}

/* What has expired since is left out, though its file is there; while one is missing, a file without a
 * header may be it. Other files are none of the row. */
static void what_is_missing_may_be_a_file_without_a_header(void **state)
{
    static const uint8_t zeros[16384];
    const uint64_t all[] = {1, 2, 3, 4, 5, 6}, kept[] = {3, 4, 5, 6}, rest[] = {0, 3, 5, 6};
    struct weir__backup_moment m;
    struct place p;

    (void)state;
    place_init(&p);
    while (p.log->control.last_segment < 6) append(p.log, 0, 60000);
    take(&p, &m);
    simfs_put(p.disk, DIR "/cut-1-1.bin", zeros, sizeof zeros);
    simfs_put(p.disk, DIR "/00000090.seg", zeros, sizeof zeros);
    expect_row(&p, &m, all, 6, 0);
    p.log->control.first_segment = 3;
    assert_int_equal(weir__log_write_control(p.log, NULL), 0);
    expect_row(&p, &m, kept, 4, 0);
    remove_numbered(&p, &m, 4);
    expect_row(&p, &m, rest, 4, 1);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

/* A file that was used before has old bytes behind its batches: they do not count. */
static void old_bytes_are_left_behind(void **state)
{
    struct weir__backup_extent x;
    struct weir__backup_copied copied;
    struct weir__backup_moment m;
    struct weir__segment last;
    char path[64];
    struct place p;

    (void)state;
    place_init(&p);
    weir__log_close(p.log, NULL);
    p.o.retain_bytes = 2 << 20;
    place_open(&p);
    do {
        append(p.log, 0, 60000);
        assert_int_equal(weir__log_step(p.log, NULL), 0);
        take(&p, &m);
        last = m.last;
        last.end = m.end;
        weir__backup_moment_fini(&m);
    } while (last.h.number < 20 || last.end - last.data > 200000);
    assert_int_equal(weir__backup_measure(&p.outside, &last, last.end, false, &x, NULL), 0);
    snprintf(path, sizeof path, DIR "/%s", last.name);
    assert_int_equal(x.used, last.end - last.h.base);
    assert_int_equal(weir__backup_copy(p.o.fs, path, NULL, &x, NULL, &copied, NULL), 0);
    assert_true(copied.stray > 0);
    assert_int_equal(weir__backup_copy(p.o.fs, path, "copy", &x, NULL, &copied, NULL), 0);
    assert_int_equal(weir__backup_copy(p.o.fs, "copy", NULL, &x, NULL, &copied, NULL), 0);
    assert_int_equal(copied.stray, 0);
    place_fini(&p);
}

static struct weir__backup_extent measure(struct place *p, const struct weir__segment *seg,
                                          uint64_t end, bool sealed)
{
    struct weir__backup_extent x;

    assert_int_equal(weir__backup_measure(&p->outside, seg, end, sealed, &x, NULL), 0);
    return x;
}

static uint64_t index_bytes(struct place *p, const struct weir__segment *seg, const char *path)
{
    struct weir__index_source s = {.stamp = weir__segment_stamp(seg),
                                   .end = weir__backup_limit(seg) - seg->h.base,
                                   .partitions = PARTITIONS};
    uint64_t bytes = 0;

    assert_int_equal(p->o.fs->ops->open(p->o.fs, path, WEIR__FS_READ_ONLY, &s.file, NULL), 0);
    assert_int_equal(weir__index_bytes(&s, &bytes, NULL), 0);
    weir__file_close(s.file);
    return bytes;
}

/* The mark with one byte of the file changed. */
static uint64_t mark_with(struct place *p, const struct weir__segment *seg, const char *path,
                          uint64_t at)
{
    uint64_t mark;

    simfs_flip(p->disk, path, at * 8);
    mark = measure(p, seg, seg->end, true).mark;
    simfs_flip(p->disk, path, at * 8);
    return mark;
}

/* The index of a sealed segment counts, when there is one. Of both parts the last 64 KiB are marked. */
static void index_of_a_sealed_segment_counts(void **state)
{
    char path[64];
    const struct weir__segment *seg;
    struct weir__backup_extent x;
    struct weir__backup_moment m;
    struct weir__backup_row row;
    struct place p;
    uint64_t limit, index, again;

    (void)state;
    place_init(&p);
    while (p.log->control.last_segment < 5) append(p.log, 1, 60000);
    take(&p, &m);
    assert_int_equal(weir__backup_row_read(&p.outside, &m, &row, NULL), 0);
    seg = &row.at[row.count - 2];
    snprintf(path, sizeof path, DIR "/%s", seg->name);
    limit = weir__backup_limit(seg) - seg->h.base;
    index = index_bytes(&p, seg, path);
    x = measure(&p, seg, seg->end, true);
    assert_int_equal(x.bytes, seg->h.capacity);
    assert_int_equal(x.used, seg->end - seg->h.base);
    assert_int_equal(x.tail, limit - index);
    assert_true(x.used > 128 << 10 && x.used < x.tail);
    assert_int_equal(measure(&p, seg, seg->end, false).tail, limit);
    assert_int_equal(measure(&p, seg, seg->h.base + x.tail + 8, true).tail, x.tail + 8);
    assert_int_equal(mark_with(&p, seg, path, 0), x.mark);
    assert_int_equal(mark_with(&p, seg, path, x.used - (64 << 10) - 1), x.mark);
    assert_int_equal(mark_with(&p, seg, path, x.used), x.mark);
    again = mark_with(&p, seg, path, x.used - (64 << 10));
    assert_true(again >> 32 != x.mark >> 32 && (uint32_t)again == (uint32_t)x.mark);
    again = mark_with(&p, seg, path, x.used - 1);
    assert_true(again >> 32 != x.mark >> 32 && (uint32_t)again == (uint32_t)x.mark);
    again = mark_with(&p, seg, path, x.bytes - 1);
    assert_true(again >> 32 == x.mark >> 32 && (uint32_t)again != (uint32_t)x.mark);
    again = mark_with(&p, seg, path, x.tail);
    assert_true(again >> 32 == x.mark >> 32 && (uint32_t)again != (uint32_t)x.mark);
    simfs_flip(p.disk, path, (limit - WEIR__FS_BLOCK) * 8);
    assert_int_equal(measure(&p, seg, seg->end, true).tail, limit); /* no index */
    weir__backup_row_fini(&row);
    weir__backup_moment_fini(&m);
    place_fini(&p);
}

/* There can have been more files than eight digits count. */
static void names_grow(void **state)
{
    (void)state;
    assert_true(weir__backup_is_segment("00000001.seg"));
    assert_true(weir__backup_is_segment("123456789.seg"));
    assert_false(weir__backup_is_segment("1234567.seg"));
    assert_false(weir__backup_is_segment("12345678.tab"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_what_was_acknowledged),
        cmocka_unit_test(unfinished_write),
        cmocka_unit_test(bytes_of_an_earlier_opening),
        cmocka_unit_test(damage_in_front_of_the_end),
        cmocka_unit_test(last_header_is_gone),
        cmocka_unit_test(a_control_file_is_read_again),
        cmocka_unit_test(control_of_a_copy),
        cmocka_unit_test(expired_meanwhile),
        cmocka_unit_test(what_is_missing_may_be_a_file_without_a_header),
        cmocka_unit_test(a_batch_in_another_place_is_none),
        cmocka_unit_test(a_batch_of_no_partition_is_none),
        cmocka_unit_test(what_was_unread_is_tried_again),
        cmocka_unit_test(what_lies_in_front_of_unread_counts),
        cmocka_unit_test(opened_meanwhile),
        cmocka_unit_test(taken_back_meanwhile),
        cmocka_unit_test(old_bytes_are_left_behind),
        cmocka_unit_test(index_of_a_sealed_segment_counts),
        cmocka_unit_test(names_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
