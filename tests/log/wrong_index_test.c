/* wrong_index_test.c - a stored index that is whole and does not say what the batches say: an inspection
 * tells of it, whichever field it is. */
#include "segments.h"

#include "log/index.h"
#include "log/segment.h"

#define PARTITIONS 2u
#define BATCHES (PER_SEGMENT + 1)
#define STEP weir__batch_bytes(BODY_BYTES)
#define FRONT (2 * (uint64_t)WEIR__FS_BLOCK) /* a header and the heads */

struct scene {
    struct segments at;
    int64_t wrong; /* the partition whose index was told of; -1: none */
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    segments_init(&s->at, PARTITIONS, BATCHES, false);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    segments_fini(&s->at);
    free(s);
    return 0;
}

static void note(const struct weir__log_finding *f, void *user)
{
    struct scene *s = user;

    if (f->kind == WEIR__LOG_INDEX) s->wrong = f->partition;
}

/* What is wrong with an index: something is added to the entry of one batch, or to all sequences of
 * its partition. */
struct fault {
    uint32_t batch; /* the one behind the last: there is an entry too many */
    struct weir__index_entry more;
};

static struct weir__index *make_index(const struct fault *fault)
{
    const struct weir__index_entry *more = &fault->more;
    struct weir__index *x = weir__index_new(PARTITIONS);
    uint64_t next[2] = {0};

    assert_non_null(x);
    for (uint32_t i = 0; i < PER_SEGMENT || i == fault->batch; i++) {
        struct weir__index_entry e = {WEIR__LOG_ORIGIN + FRONT + i * STEP,
                                      next[i % 2] + i % 2 * more->sequence, 1700000000000,
                                      1 + i % 3, BODY_BYTES};

        next[i % 2] += e.count;
        if (i == fault->batch)
            e = (struct weir__index_entry){e.position + more->position, e.sequence,
                                           e.time_ms + more->time_ms, e.count + more->count,
                                           e.body_bytes + more->body_bytes};
        if (e.count) assert_true(weir__index_add(x, i % 2, &e));
    }
    return x;
}

static void store_index(struct scene *s, const struct fault *fault)
{
    struct weir__index *x = make_index(fault);
    struct weir__index_stamp stamp = {1, WEIR__LOG_ORIGIN + FRONT + PER_SEGMENT * STEP, 0};
    struct weir__segment_header h;
    struct weir__file *f;
    int bad;

    assert_int_equal(s->at.o.fs->ops->open(s->at.o.fs, SEGMENT_1, 0, &f, NULL), 0);
    assert_int_equal(weir__segment_read_header(f, s->at.o.hub_id, &h, &bad, NULL), 0);
    stamp.seed = weir__batch_stamp(s->at.o.hub_id, h.secret).seed;
    assert_int_equal(weir__index_store(x, f, &stamp, SEGMENT_BYTES - FRONT, NULL), 0);
    weir__file_close(f);
    weir__index_free(x);
}

static void a_wrong_index_is_told(void **state)
{
    static const struct fault faults[] = {{5, {0}},
                                          {5, {.position = WEIR__BATCH_ALIGN}},
                                          {5, {.sequence = 1}},
                                          {5, {.time_ms = 1}},
                                          {5, {.count = 1}},
                                          {5, {.body_bytes = 1}},
                                          {5, {.count = UINT32_MAX - 2}}, /* it is left out */
                                          {1, {.position = WEIR__BATCH_ALIGN}},
                                          {PER_SEGMENT, {0}}};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        uint64_t damaged = 9;

        s->wrong = -1;
        store_index(s, &faults[i]);
        assert_int_equal(weir__log_inspect(&s->at.o, note, s, &damaged, NULL), 0);
        assert_int_equal(s->wrong, i == 0 ? -1 : (int)(faults[i].batch % PARTITIONS));
        assert_int_equal(damaged, 0);
    }
}

/* Reads the partition of the fifth batch up to it, which has two before it there. */
static int read_up_to_it(struct scene *s, struct weir__log_view *views, uint32_t *out_count)
{
    struct weir__log_reader *r;
    struct weir__log *log;
    uint64_t missed;
    uint32_t got = 1;
    int rc;

    *out_count = 0;
    assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
    assert_int_equal(weir__log_reader_open(&r, log, 1, 0, 0, NULL), 0);
    do {
        rc = weir__log_reader_next(r, views + *out_count, 3 - *out_count, &got, &missed, NULL);
        if (rc == 0) *out_count += got;
    } while (rc == 0 && got > 0 && *out_count < 3);
    weir__log_reader_close(r);
    assert_int_equal(weir__log_close(log, NULL), 0);
    return rc;
}

/* Nobody is given a batch that is not the one which the index promises. */
static void a_wrong_index_serves_nothing_else(void **state)
{
    static const struct fault faults[] = {{5, {0}},
                                          {5, {.sequence = 1}},
                                          {5, {.count = 1}},
                                          {5, {.body_bytes = 1}},
                                          {5, {.body_bytes = UINT32_MAX}}};
    struct weir__log_view views[3];
    struct scene *s = *state;
    uint32_t count;

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        store_index(s, &faults[i]);
        assert_int_equal(read_up_to_it(s, views, &count), i == 0 ? 0 : WEIR_ECORRUPT);
        assert_int_equal(count, i == 0 ? 3 : faults[i].more.sequence ? 0 : 2);
    }
    store_index(s, &faults[0]);
    simfs_flip(s->at.disk, SEGMENT_1, (FRONT + 5 * STEP + 20) * 8); /* of the batch's header */
    assert_int_equal(read_up_to_it(s, views, &count), WEIR_ECORRUPT);
    assert_int_equal(count, 2);
}

/* Every entry of a full chunk is compared, and nothing behind it. */
static void full_chunks_agree(void **state)
{
    struct scene *s = *state;
    struct weir__log_batch b = {.partition = 1, .count = 1, .body = {weir__bytes_of("x", 1)}};
    struct weir__log *log;
    uint64_t damaged = 9;

    assert_int_equal(weir__log_open(&log, &s->at.o, NULL), 0);
    for (uint32_t i = 0; i < 2 * WEIR__INDEX_CHUNK; i++)
        assert_int_equal(weir__log_append_wait(log, &b, weir__deadline_ns(20000), NULL, NULL), 0);
    for (uint32_t i = 0; i < PER_SEGMENT; i++) segments_put(log, 0, false);
    assert_int_equal(weir__log_close(log, NULL), 0);
    s->wrong = -1;
    assert_int_equal(weir__log_inspect(&s->at.o, note, s, &damaged, NULL), 0);
    assert_int_equal(s->wrong, -1);
    assert_int_equal(damaged, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wrong_index_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_index_serves_nothing_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_chunks_agree, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("wrong_index", tests, NULL, NULL);
}
