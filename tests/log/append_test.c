/* append_test.c - how many batches may wait for the disk, which of them are written together, what
 * one that is refused leaves, and what a completion must not do. */
#include "log/stepped.h"

#include "support/allocs.h"

static int set_up(void **state)
{
    struct world *w = world_new((struct weir__log_options){.partitions = 2,
                                                           .batch_bytes_max = 5 * MIB,
                                                           .segment_bytes_min = 16 * MIB,
                                                           .segment_bytes_max = 16 * MIB});

    start(w);
    *state = w;
    return 0;
}

/* A batch that takes so many bytes, not waited for. */
static int append(struct world *w, uint32_t bytes, struct weir_error *err)
{
    static const uint8_t body[5 * MIB];
    struct weir__log_batch b = {.count = 1,
                                .body = {weir__bytes_of(body, bytes - WEIR__BATCH_HEADER_BYTES)}};

    return weir__log_append(w->log, &b, 0, NULL, NULL, err);
}

static void so_many_may_wait(void **state)
{
    struct world *w = *state;
    struct weir__log_stats stats;
    struct weir_error err = {0};

    for (uint32_t i = 0; i < WEIR__LOG_PENDING_MAX; i++) assert_int_equal(append(w, 88, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(append(w, 88, &err), WEIR_EBUSY);
        assert_string_equal(err.text,
                            "too much is waiting for the disk: 5767168 bytes in 65536 batches");
    }
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.batches, WEIR__LOG_PENDING_MAX);
    assert_int_equal(stats.groups, 2);
    assert_int_equal(append(w, 88, NULL), 0);
    simclock_pass(&w->clock, WEIR__LOG_IDLE_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->queue_cap, WEIR__LOG_PENDING_MAX); /* one waits in it */
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    simclock_pass(&w->clock, WEIR__LOG_IDLE_MS);
    assert_int_equal(weir__log_step(w->log, NULL), 0);
    assert_int_equal(w->log->queue_cap, WEIR__LOG_QUEUE_FIRST);
}

static void count_told(void *user, int rc, const struct weir__log_receipt *receipt,
                       const struct weir_error *err)
{
    (void)receipt, (void)err;
    assert_int_equal(rc, 0);
    ++*(uint64_t *)user;
}

/* Batches that are on disk and were not told of keep their places. An append that does not wait is refused,
 * one that waits tells of them first. */
static void who_waits_makes_room(void **state)
{
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
    struct world *w = *state;
    uint64_t told = 0;

    for (uint32_t i = 0; i < WEIR__LOG_PENDING_MAX; i++)
        assert_int_equal(weir__log_append(w->log, &b, 0, count_told, &told, NULL), 0);
    weir__mutex_lock(&w->log->lock);
    assert_int_equal(weir__log_lead(w->log, NULL), 0);
    weir__mutex_unlock(&w->log->lock);
    assert_int_equal(weir__log_append(w->log, &b, 0, count_told, &told, NULL), WEIR_EBUSY);
    assert_int_equal(told, 0);
    assert_int_equal(weir__log_append(w->log, &b, WAIT, count_told, &told, NULL), 0);
    assert_int_equal(told, WEIR__LOG_PENDING_MAX);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(told, WEIR__LOG_PENDING_MAX + 1);
}

/* Batches that were told of, and those whose turn it was not. */
static uint32_t next_told, disorder;

static void note_told(void *user, int rc, const struct weir__log_receipt *receipt,
                      const struct weir_error *err)
{
    (void)receipt, (void)err;
    disorder += rc != 0 || *(uint32_t *)user != next_told++;
}

/* A queue that cannot grow is full. What it holds already is told of once and in order, and so is what
 * comes when there is room again. */
static void no_memory_for_a_longer_queue_is_no_room(void **state)
{
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
    uint32_t numbers[WEIR__LOG_QUEUE_FIRST + 1];
    struct world *w = *state;
    int rc;

    next_told = disorder = 0;
    for (uint32_t i = 0; i <= WEIR__LOG_QUEUE_FIRST; i++) numbers[i] = i;
    for (uint32_t i = 0; i < WEIR__LOG_QUEUE_FIRST; i++)
        assert_int_equal(weir__log_append(w->log, &b, 0, note_told, &numbers[i], NULL), 0);
    allocs_fail(1);
    rc = weir__log_append(w->log, &b, 0, note_told, &numbers[WEIR__LOG_QUEUE_FIRST], NULL);
    assert_true(allocs_failed());
    allocs_fail(0);
    assert_int_equal(rc, WEIR_EBUSY);
    assert_int_equal(w->log->queue_cap, WEIR__LOG_QUEUE_FIRST);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(next_told, WEIR__LOG_QUEUE_FIRST);
    rc = weir__log_append(w->log, &b, 0, note_told, &numbers[WEIR__LOG_QUEUE_FIRST], NULL);
    assert_int_equal(rc, 0);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    assert_int_equal(next_told, WEIR__LOG_QUEUE_FIRST + 1);
    assert_int_equal(disorder, 0);
}

/* A batch for which there is no memory makes room for its producer, and gives it back. */
static void a_refused_batch_lets_no_producer_be_forgotten(void **state)
{
    struct weir__log_batch first = {.count = 1,
                                    .producer = {.id = 7},
                                    .body = {weir__bytes_of("x", 1)}},
                           other = {.partition = 1,
                                    .count = 1,
                                    .producer = {.id = 8},
                                    .body = {weir__bytes_of("y", 1)}};
    struct weir__log_receipt receipt = {0};
    struct world *w = *state;
    int rc;

    w->log->producers.max = 1;
    assert_int_equal(weir__log_append_wait(w->log, &first, WAIT, NULL, NULL), 0);
    allocs_fail(1);
    rc = weir__log_append(w->log, &other, 0, NULL, NULL, NULL);
    assert_true(allocs_failed());
    allocs_fail(0);
    assert_int_equal(rc, WEIR_ENOMEM);
    assert_int_equal(weir__log_append_wait(w->log, &first, WAIT, &receipt, NULL), 0);
    assert_true(receipt.duplicate);
}

/* Up to 4 MiB together; a larger one alone. */
static void groups_have_a_limit(void **state)
{
    const struct {
        uint32_t bytes[4];
        uint64_t groups;
    } cases[] = {{{2 * MIB, 2 * MIB}, 1},
                 {{2 * MIB, 2 * MIB + 8}, 2},
                 {{2 * MIB, 2 * MIB, 88}, 2},
                 {{2 * MIB, 1 * MIB, 1 * MIB, 88}, 2},
                 {{4 * MIB + 8, 88, 88}, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = *state;
        struct weir__log_stats stats;

        for (int k = 0; k < 4 && cases[i].bytes[k]; k++)
            assert_int_equal(append(w, cases[i].bytes[k], NULL), 0);
        assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
        weir__log_stats(w->log, &stats);
        assert_int_equal(stats.groups, cases[i].groups);
        assert_int_equal(stats.syncs, cases[i].groups);
        tear_down(state);
        set_up(state);
    }
}

struct refusals {
    struct world *w;
    struct weir_error flush, append;
    int flush_rc, append_rc, later_rc;
    uint64_t stored;
};

static void wait_inside(void *user, int rc, const struct weir__log_receipt *receipt,
                        const struct weir_error *err)
{
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
    struct weir__log_stats stats;
    struct refusals *r = user;

    (void)rc, (void)receipt, (void)err;
    r->later_rc = weir__log_append(r->w->log, &b, WAIT, NULL, NULL, NULL);
    r->flush_rc = weir__log_flush(r->w->log, WAIT, &r->flush);
    r->append_rc = weir__log_append_wait(r->w->log, &b, WAIT, NULL, &r->append);
    weir__log_stats(r->w->log, &stats);
    r->stored = stats.batches;
}

/* A completion that waited for the log would wait for itself. */
static void completions_must_not_wait(void **state)
{
    struct weir__log_batch b = {.count = 1, .body = {weir__bytes_of("x", 1)}};
    struct refusals r = {.w = *state, .later_rc = -1};

    assert_int_equal(weir__log_append(r.w->log, &b, 0, wait_inside, &r, NULL), 0);
    assert_int_equal(weir__log_flush(r.w->log, WAIT, NULL), 0);
    assert_int_equal(r.flush_rc, WEIR_EDEADLOCK);
    assert_string_equal(r.flush.text, "a flush inside a completion");
    assert_int_equal(r.append_rc, WEIR_EDEADLOCK);
    assert_string_equal(r.append.text, "a blocking append inside a completion");
    assert_int_equal(r.later_rc, 0);
    assert_int_equal(r.stored, 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(so_many_may_wait),
        CASE(who_waits_makes_room),
        CASE(no_memory_for_a_longer_queue_is_no_room),
        CASE(a_refused_batch_lets_no_producer_be_forgotten),
        CASE(groups_have_a_limit),
        CASE(completions_must_not_wait),
    };

    return cmocka_run_group_tests_name("append", tests, NULL, NULL);
}
