/* reader_test.c - how much a reader takes at once, with how much memory, what it asks for in advance, and
 * how many files it leaves open. */
#include "log/reader.h"
#include "log/stepped.h"

#define VIEWS 64

static int set_up(void **state)
{
    struct world *w = world_new((struct weir__log_options){.partitions = 2,
                                                           .segment_bytes_min = 8 * MIB,
                                                           .segment_bytes_max = 8 * MIB});

    start(w);
    *state = w;
    return 0;
}

/* From now on what was written is read from files. */
static void reopen(struct world *w)
{
    assert_int_equal(weir__log_close(w->log, NULL), 0);
    assert_int_equal(weir__log_open(&w->log, &w->o, NULL), 0);
}

static struct weir__log_reader *open_reader(struct world *w, size_t bytes_max)
{
    struct weir__log_reader *r = NULL;

    assert_int_equal(weir__log_reader_open(&r, w->log, 0, 0, bytes_max, NULL), 0);
    return r;
}

static uint32_t next(struct weir__log_reader *r, uint32_t max)
{
    struct weir__log_view views[VIEWS];
    struct weir_error err = {0};
    uint64_t missed;
    uint32_t count;

    if (weir__log_reader_next(r, views, max, &count, &missed, &err) != 0) fail_msg("%s", err.text);
    return count;
}

/* As many batches as memory has room for, at least one, and no more than were asked for; from memory
 * and from files alike. */
static void memory_says_how_many(void **state)
{
    const struct {
        size_t bytes_max;
        uint32_t max, count;
    } cases[] = {{16 * KIB, VIEWS, 2},    {16 * KIB - 1, VIEWS, 1}, {24 * KIB - 1, VIEWS, 2},
                 {24 * KIB, VIEWS, 3},    {24 * KIB, 2, 2},         {1, VIEWS, 1},
                 {0, VIEWS, 32}, /* 256 KiB */
                 {1024 * KIB, VIEWS, 40}, {1024 * KIB, 0, 0}};
    struct world *w = *state;

    for (int i = 0; i < 40; i++) put_into(w, 0, 8 * KIB);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct weir__log_reader *r = open_reader(w, cases[i].bytes_max);

            assert_int_equal(weir__log_reader_memory(r), 0);
            assert_int_equal(next(r, cases[i].max), cases[i].count);
            assert_int_equal(weir__log_reader_memory(r), 8 * KIB * cases[i].count);
            assert_int_equal(weir__log_reader_sequence(r), cases[i].count);
            weir__log_reader_close(r);
        }
        reopen(w);
    }
}

/* Memory that one large batch needed goes with the next small one, or when the reader rests. */
static void memory_is_given_back(void **state)
{
    const uint32_t sizes[] = {8 * KIB, 40 * KIB, 16 * KIB, 8 * KIB, 40 * KIB, 8 * KIB};
    const uint32_t memory[] = {8 * KIB, 40 * KIB, 16 * KIB, 16 * KIB, 40 * KIB, 8 * KIB};
    struct world *w = *state;
    struct weir__log_reader *r;

    for (int i = 0; i < 6; i++) put_into(w, 0, sizes[i]);
    r = open_reader(w, 16 * KIB);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(next(r, 1), 1);
        assert_int_equal(weir__log_reader_memory(r), memory[i]);
    }
    weir__log_reader_rest(r);
    assert_int_equal(weir__log_reader_memory(r), 0);
    weir__log_reader_seek(r, 0);
    assert_int_equal(next(r, 1), 1);
    assert_int_equal(weir__log_reader_memory(r), 8 * KIB);
    weir__log_reader_close(r);
}

/* Batches of a partition that lie 16 KiB apart are read in one go, with what lies between them; those
 * further apart one by one. */
static void near_ones_are_read_together(void **state)
{
    const struct {
        uint32_t between, reads, memory;
    } cases[] = {{16 * KIB, 1, 32 * KIB}, {16 * KIB + 8, 2, 16 * KIB}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = *state;
        struct weir__log_reader *r;
        struct weir__log_stats stats;
        uint64_t reads;

        put_into(w, 0, 8 * KIB);
        put_into(w, 1, cases[i].between);
        put_into(w, 0, 8 * KIB);
        reopen(w);
        r = open_reader(w, cases[i].memory);
        reads = simfs_calls(w->disk, SIMFS_READ);
        assert_int_equal(next(r, VIEWS), 2);
        assert_int_equal(simfs_calls(w->disk, SIMFS_READ) - reads, cases[i].reads);
        assert_int_equal(weir__log_reader_memory(r), cases[i].memory);
        weir__log_stats(w->log, &stats);
        assert_int_equal(stats.disk_reads, 1);
        assert_int_equal(stats.tail_reads, 0);
        weir__log_reader_close(r);
        r = open_reader(w, cases[i].memory - 1);
        assert_int_equal(next(r, VIEWS), 1);
        weir__log_reader_close(r);
        tear_down(state);
        set_up(state);
    }
}

/* What a call says of damage is of that call. */
static void damage_is_over_behind_it(void **state)
{
    struct world *w = *state;
    struct weir__log_reader *r;
    struct weir__log_view view;
    uint64_t first, last, missed;
    uint32_t count;

    for (int i = 0; i < 3; i++) put_into(w, 0, 8 * KIB);
    simfs_flip(w->disk, "log/00000001.seg",
               (weir__log_active(w->log)->data - WEIR__LOG_ORIGIN + 9 * KIB) * 8);
    reopen(w);
    r = open_reader(w, 8 * KIB);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(next(r, 1), 1);
        weir__log_reader_damage(r, &first, &last);
        assert_true(first > last);
        assert_int_equal(weir__log_reader_next(r, &view, 1, &count, &missed, NULL), WEIR_ECORRUPT);
        weir__log_reader_damage(r, &first, &last);
        assert_int_equal(first, 1);
        assert_int_equal(last, 1);
        weir__log_reader_seek(r, 2);
        assert_int_equal(next(r, 1), 1);
        weir__log_reader_damage(r, &first, &last);
        assert_true(first > last);
        weir__log_reader_seek(r, 0);
    }
    weir__log_reader_close(r);
}

/* A reader of very many segments leaves the files of some of them open for the next one. */
static void some_files_stay_open(void **state)
{
    struct world *w = *state;
    struct weir__log_reader *r;
    int before;

    w->log->o.segment_bytes_max = 64 * KIB;
    for (int i = 0; i < WEIR__LOG_READ_FILES_MAX + 8; i++) {
        put_into(w, 0, 8 * KIB);
        weir__mutex_lock(&w->log->lock);
        w->log->want_roll = true;
        assert_int_equal(weir__log_lead(w->log, NULL), 0);
        weir__mutex_unlock(&w->log->lock);
    }
    reopen(w);
    before = simfs_open_files(w->disk);
    r = open_reader(w, 0);
    for (int i = 0; i < WEIR__LOG_READ_FILES_MAX + 8; i++) {
        assert_int_equal(next(r, VIEWS), 1);
        assert_in_range(simfs_open_files(w->disk) - before, 1, WEIR__LOG_READ_FILES_MAX);
    }
    assert_int_equal(w->log->read_files, WEIR__LOG_READ_FILES_MAX);
    assert_int_equal(simfs_open_files(w->disk) - before, WEIR__LOG_READ_FILES_MAX);
    weir__log_reader_close(r);
}

/* ---- asking in advance ---- */

#define ASKED_MAX 8

struct asked {
    uint64_t count, bytes;
    uint64_t at[ASKED_MAX], len[ASKED_MAX]; /* of the first ones */
};

static void note_asked(uint64_t at, uint64_t len, void *user)
{
    struct asked *a = user;

    if (a->count < ASKED_MAX) a->at[a->count] = at;
    if (a->count < ASKED_MAX) a->len[a->count] = len;
    a->count++;
    a->bytes += len;
}

/* What the next call asks for. */
static struct asked asked_by_next(struct world *w, struct weir__log_reader *r)
{
    struct asked a = {0};

    simfs_on_prefetch(w->disk, note_asked, &a);
    assert_int_equal(next(r, 1), 1);
    simfs_on_prefetch(w->disk, NULL, NULL);
    return a;
}

/* Batches of 8 KiB that lie close together are left to the kernel; others are asked for, those with at
 * most 16 KiB between them as one stretch. */
static void what_lies_apart_is_asked_for(void **state)
{
    const struct {
        uint64_t between[2]; /* 0: there is nothing more */
        uint64_t len[3];
        int more; /* side by side with the first */
    } cases[] = {{{16 * KIB}, {0}, 0},
                 {{16 * KIB + 8}, {8 * KIB, 8 * KIB}, 0},
                 {{8 * KIB, 8 * KIB}, {0}, 0},
                 {{8 * KIB, 8 * KIB + 8}, {40 * KIB + 8}, 0},
                 {{16 * KIB, 16 * KIB}, {56 * KIB}, 0},
                 {{16 * KIB, 16 * KIB + 8}, {32 * KIB, 8 * KIB}, 0},
                 {{16 * KIB + 8, 16 * KIB + 8}, {8 * KIB, 8 * KIB, 8 * KIB}, 0},
                 {{16 * KIB + 8}, {16 * KIB, 8 * KIB}, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = *state;
        uint64_t at = weir__log_active(w->log)->data - weir__log_active(w->log)->h.base;
        struct weir__log_reader *r;
        struct asked a;

        for (int k = 0; k <= cases[i].more; k++) put_into(w, 0, 8 * KIB);
        for (int k = 0; k < 2 && cases[i].between[k]; k++) {
            put_into(w, 1, (uint32_t)cases[i].between[k]);
            put_into(w, 0, 8 * KIB);
        }
        reopen(w);
        r = open_reader(w, 8 * KIB);
        a = asked_by_next(w, r);
        for (uint64_t k = 0; k < 3 && cases[i].len[k]; k++) {
            assert_in_range(k + 1, 1, a.count);
            assert_int_equal(a.at[k], at);
            assert_int_equal(a.len[k], cases[i].len[k]);
            at += cases[i].len[k] + 16 * KIB + 8;
            assert_true(k + 1 == a.count || cases[i].len[k + 1]);
        }
        if (cases[i].len[0] == 0) assert_int_equal(a.count, 0);
        weir__log_reader_close(r);
        tear_down(state);
        set_up(state);
    }
}

/* What was asked for is not asked for again, unless the reader goes back; also of the index's next
 * chunk. */
static void each_is_asked_for_once(void **state)
{
    struct world *w = *state;
    struct weir__log_reader *r;

    for (uint32_t i = 0; i < WEIR__INDEX_CHUNK + 2; i++) {
        put_into(w, 0, 128);
        put_into(w, 1, 16 * KIB + 8);
    }
    reopen(w);
    r = open_reader(w, 8 * KIB);
    assert_int_equal(asked_by_next(w, r).count, WEIR__INDEX_CHUNK + 2);
    assert_int_equal(asked_by_next(w, r).count, 0);
    weir__log_reader_seek(r, 10);
    assert_int_equal(asked_by_next(w, r).count, 0);
    weir__log_reader_seek(r, 9);
    assert_int_equal(asked_by_next(w, r).count, WEIR__INDEX_CHUNK + 2 - 9);
    weir__log_reader_seek(r, WEIR__INDEX_CHUNK);
    assert_int_equal(asked_by_next(w, r).count, 0);
    weir__log_reader_close(r);
}

/* 4 MiB at most, and no more than one batch more with each that is read. */
static void no_more_is_asked_for_than_4_mib(void **state)
{
    struct world *w = *state;
    struct weir__log_reader *r;

    for (int i = 0; i < 110; i++) {
        put_into(w, 0, 40 * KIB);
        put_into(w, 1, 16 * KIB + 8);
    }
    reopen(w);
    r = open_reader(w, 8 * KIB);
    assert_int_equal(asked_by_next(w, r).bytes, 103 * 40 * KIB); /* the last one in part */
    assert_int_equal(asked_by_next(w, r).bytes, 40 * KIB);
    assert_int_equal(asked_by_next(w, r).bytes, 40 * KIB);
    weir__log_reader_close(r);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(memory_says_how_many),        CASE(memory_is_given_back),
        CASE(near_ones_are_read_together), CASE(damage_is_over_behind_it),
        CASE(some_files_stay_open),        CASE(what_lies_apart_is_asked_for),
        CASE(each_is_asked_for_once),      CASE(no_more_is_asked_for_than_4_mib),
    };

    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
