/* producer_tidy_test.c - a new file of producers, when most of the old one is of no use: nobody is
 * forgotten for it, whatever comes meanwhile. */
#include "producers.h"

#include "log/state.h"

static void old_records_are_tidied_away(void **state)
{
    struct bench *b = *state;
    uint64_t most = 0;

    b->w.options.producers_tidy_blocks = 8;
    start(b);
    for (uint32_t turn = 0; turn < 40; turn++) {
        for (uint64_t id = 1; id <= 200; id++)
            if (id % 5 == turn % 5) put(b, id, turn / 5);
        roll(b);
        assert_int_equal(weir__log_step(b->w.log, NULL), 0);
        if (simfs_size(b->w.disk, file_of(b)) > most) most = simfs_size(b->w.disk, file_of(b));
        if (turn % 9 == 8) reopen(b);
    }
    assert_in_range(most, 6 * BLOCK, 10 * BLOCK);
    assert_int_equal(files_of(b), 1);
    assert_null(strstr(file_of(b), "-00000001."));
    for (int round = 0; round < 2; round++) {
        for (uint64_t id = 1; id <= 200; id++) {
            uint32_t last = 39 - (39 - (uint32_t)(id % 5)) % 5;

            assert_true(known(b, id, last / 5));
        }
        reopen(b);
    }
    assert_int_equal(b->warnings, 0);
}

/* A disk that says no once while a new generation is written: that is told, the old one serves, and
 * the next try is a good one. */
static void tidying_that_fails_forgets_nobody(void **state)
{
    struct bench *b = *state;
    struct simfs_fault once = {.kinds = SIMFS_WRITE | SIMFS_SYNC | SIMFS_SYNC_DIR,
                               .rc = WEIR_ENOSPACE};
    struct simfs *good;
    bool struck = true;

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    for (uint32_t turn = 0; turn < 4; turn++) {
        for (uint64_t id = 1; id <= 10; id++) put(b, id, turn);
        roll(b);
    }
    assert_int_equal(workload_close(&b->w), 0);
    good = b->w.disk;
    b->w.options.producers_tidy_blocks = 3;
    for (once.at = 1; struck; once.at++) {
        int rc;

        b->w.disk = simfs_clone(good);
        start(b);
        simfs_fail(b->w.disk, &once);
        rc = weir__log_step(b->w.log, NULL);
        struck = simfs_failed(b->w.disk);
        assert_int_equal(rc != 0, struck);
        simfs_fail(b->w.disk, NULL);
        workload_crash(&b->w, SIMFS_KEEP_NONE, 0);
        for (uint64_t id = 1; id <= 10; id++) assert_true(known(b, id, 3));
        assert_int_equal(workload_close(&b->w), 0);
        simfs_free(b->w.disk);
    }
    assert_true(once.at > 5);
    b->w.disk = good;
}

static void answer(void *user, int rc, const struct weir__log_receipt *r,
                   const struct weir_error *err)
{
    (void)user, (void)rc, (void)r, (void)err;
}

/* A new generation is written while somebody's batch waits for the disk, and that is lost with the
 * power: what he had published before is known, from the new file. */
static void tidying_knows_what_is_on_its_way(void **state)
{
    struct bench *b = *state;
    struct weir__log_batch batch = {.partition = 3,
                                    .count = 2,
                                    .producer = {3, 1, 2},
                                    .body = {{(const uint8_t *)"12345678", 8}}};
    struct simfs_fault no_file = {.kinds = SIMFS_OPEN,
                                  .at = 2,
                                  .rc = WEIR_ENOSPACE,
                                  .persistent = true};

    b->w.options.producers_tidy_blocks = 3;
    b->w.options.retain_ms = 8 * DAY_MS; /* an eighth of that is one segment's time */
    start(b);
    put(b, 3, 0);
    roll(b);
    put(b, 4, 0);
    roll(b);
    put(b, 5, 0);
    simclock_pass(&b->w.clock, DAY_MS + 60000);
    simfs_fail(b->w.disk, &no_file); /* not now: a roll commits everything before */
    assert_int_equal(weir__log_step(b->w.log, NULL), WEIR_ENOSPACE);
    simfs_fail(b->w.disk, NULL);
    assert_non_null(strstr(file_of(b), "-00000001."));
    simclock_pass(&b->w.clock, 120000);
    assert_int_equal(weir__log_append(b->w.log, &batch, 0, answer, NULL, NULL), 0);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(files_of(b), 1);
    assert_null(strstr(file_of(b), "-00000001."));
    workload_crash(&b->w, SIMFS_KEEP_NONE, 0);
    assert_true(known(b, 3, 0));
    assert_int_equal(b->warnings, 0);
}

/* One batch of each of them, not yet written. */
static void publish_all(struct bench *b, uint64_t count, uint32_t turn)
{
    for (uint64_t id = 1; id <= count; id++) {
        struct weir__log_batch batch = {.partition = (uint32_t)(id % 5),
                                        .count = 2,
                                        .producer = {id, 1, turn * 2},
                                        .body = {{(const uint8_t *)"12345678", 8}}};

        assert_int_equal(weir__log_append(b->w.log, &batch, 0, answer, NULL, NULL), 0);
    }
}

/* Also when more are on their way than are written at once. */
static void tidying_knows_very_many_on_their_way(void **state)
{
    const uint64_t many = WEIR__PRODUCER_ROWS * PER_BLOCK + 10;
    struct bench *b = *state;

    b->w.options.segment_bytes_min = b->w.options.segment_bytes_max = 4u << 20;
    b->w.options.tail_bytes = 4u << 20;
    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    publish_all(b, many, 0);
    assert_int_equal(weir__log_flush(b->w.log, WAIT, NULL), 0);
    workload_roll(&b->w);
    b->w.log->producer_file.damaged = true; /* reason enough to write it again */
    publish_all(b, many, 1);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(files_of(b), 1);
    assert_non_null(strstr(file_of(b), "-00000002."));
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), (1 + WEIR__PRODUCER_ROWS + 1) * BLOCK);
    workload_crash(&b->w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(stats_of(b).producers, many);
    publish_all(b, many, 0);
    assert_int_equal(weir__log_flush(b->w.log, WAIT, NULL), 0);
    assert_int_equal(stats_of(b).batches, 0); /* all of them are known */
    assert_int_equal(b->warnings, 0);
}

/* ---- what comes while the new file is written ---- */

#define MANY (2 * PER_BLOCK)
#define TURNS 4u

/* What happens when the new file is there and is going to be synced for the first time. */
struct meanwhile {
    struct bench *b;
    void (*happens)(struct bench *);
};

static void at_first_sync(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct meanwhile *m = user;
    void (*happens)(struct bench *) = m->happens;

    (void)disk;
    if (!happens || !entering || call != SIMFS_SYNC || files_of(m->b) != 2) return;
    m->happens = NULL;
    happens(m->b);
}

/* A file of which most is of no use, and one look of upkeep with something in between. */
static void tidy_while(struct bench *b, void (*happens)(struct bench *))
{
    struct meanwhile m = {b, happens};

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint64_t id = 1; id <= MANY; id++) put(b, id, turn);
        roll(b);
    }
    assert_int_equal(workload_close(&b->w), 0);
    b->w.options.producers_tidy_blocks = 3;
    start(b);
    simfs_hook(b->w.disk, at_first_sync, &m);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    simfs_hook(b->w.disk, NULL, NULL);
    assert_null(m.happens);
    assert_int_equal(files_of(b), 1);
}

static void everybody_is_known(struct bench *b)
{
    workload_crash(&b->w, SIMFS_KEEP_NONE, 0);
    for (uint64_t id = 1; id <= MANY; id++) assert_true(known(b, id, TURNS - 1));
    assert_int_equal(b->warnings, 0);
}

static void publish_and_roll(struct bench *b)
{
    put(b, MANY + 1, 0);
    workload_roll(&b->w);
}

/* Whoever published in the segment that was left is added, and nobody else a second time. */
static void a_roll_meanwhile_makes_another_pass(void **state)
{
    struct bench *b = *state;

    tidy_while(b, publish_and_roll);
    assert_null(strstr(file_of(b), "-00000001."));
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), (1 + 2 + 1) * BLOCK);
    everybody_is_known(b);
    assert_true(known(b, MANY + 1, 0));
}

static void publish_in_vain(struct bench *b)
{
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};
    struct weir__log_receipt r;

    simfs_fail(b->w.disk, &full);
    assert_int_equal(publish(b, 1, TURNS, &r), WEIR_ENOSPACE);
    simfs_fail(b->w.disk, NULL);
}

/* What was read before no longer holds: the file goes, and the next look makes another. */
static void a_group_taken_back_meanwhile_begins_it_again(void **state)
{
    struct bench *b = *state;

    tidy_while(b, publish_in_vain);
    assert_non_null(strstr(file_of(b), "-00000001."));
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(files_of(b), 1);
    assert_null(strstr(file_of(b), "-00000001."));
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), (1 + 2) * BLOCK);
    everybody_is_known(b);
}

#define BLOCKS_PER_LOOK 4096u

/* One look of upkeep writes so much of it; the old file serves until the last one. */
static void a_large_file_takes_more_than_one_look(void **state)
{
    const uint32_t blocks = BLOCKS_PER_LOOK + 100;
    struct bench *b = *state;

    start(b);
    put(b, 1, 0);
    roll(b);
    for (uint32_t i = 1; i < blocks * PER_BLOCK; i++) {
        struct weir__producer p = {.id = 1 + i,
                                   .next = 2,
                                   .count = 2,
                                   .offset = WEIR__LOG_ORIGIN + 1,
                                   .time_ms = b->w.clock.wall_ms,
                                   .used = weir__producer_minutes(weir__log_keep_ms(b->w.log))};

        assert_true(weir__producers_learn(&b->w.log->producers, &p, false));
    }
    b->w.log->producer_file.damaged = true; /* reason enough to write it again */
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(files_of(b), 2);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(files_of(b), 1);
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), (1 + blocks) * BLOCK);
    workload_crash(&b->w, SIMFS_KEEP_NONE, 0);
    assert_int_equal(stats_of(b).producers, blocks * PER_BLOCK);
    assert_int_equal(b->warnings, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(old_records_are_tidied_away),
        CASE(tidying_that_fails_forgets_nobody),
        CASE(tidying_knows_what_is_on_its_way),
        CASE(tidying_knows_very_many_on_their_way),
        CASE(a_roll_meanwhile_makes_another_pass),
        CASE(a_group_taken_back_meanwhile_begins_it_again),
        CASE(a_large_file_takes_more_than_one_look),
    };

    return cmocka_run_group_tests_name("producer_tidy", tests, NULL, NULL);
}
