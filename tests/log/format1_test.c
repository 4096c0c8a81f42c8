/* format1_test.c - a log of the first format version is opened, kept whole, and upgraded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/dice.h"
#include "support/format1.h"
#include "support/workload.h"

#define CONTROL WORKLOAD_DIR "/control"
#define COPY_AT (64u << 10)
#define OLD_COPY_AT 4096u
#define THIRD WORKLOAD_DIR "/00000003.seg"

static void make_old(struct workload *w, bool forging)
{
    workload_init(w, 5);
    w->history->forging = forging;
    format1_write(w->disk, WORKLOAD_DIR, w->options.hub_id, w->clock.wall_ms - 100000, w->history);
    w->history->forging = false;
    w->created = true;
}

static void open_log(struct workload *w)
{
    struct weir_error err = {0};

    if (workload_open(w, &err) != 0) fail_msg("%s", err.text);
}

static void put(struct workload *w, uint32_t partition)
{
    struct history_order o = {.partition = partition, .bytes = 500, .count = 2};

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0);
}

static void finish(struct workload *w)
{
    if (w->history->violations > 0) fail_msg("%s", w->history->first);
    workload_fini(w);
}

static uint32_t word_at(struct workload *w, const char *path, uint64_t at)
{
    uint8_t bytes[4] = {0};

    assert_int_equal(simfs_peek(w->disk, path, bytes, sizeof bytes, at), sizeof bytes);
    return weir__load32(bytes);
}

/* Everything is there, producers too, and goes on; old segments serve until they expire. */
static void old_log_is_whole(void **state)
{
    struct weir__log_producer next = {0};
    struct workload w;

    (void)state;
    make_old(&w, false);
    open_log(&w);
    history_check(w.history, w.log, true);
    assert_int_equal(w.history->found, w.history->count);
    assert_int_equal(weir__log_producer_state(w.log, FORMAT1_PRODUCER_IN, FORMAT1_PRODUCER, &next,
                                              NULL),
                     0);
    assert_int_equal(history_repeat(w.history, w.log, FORMAT1_PRODUCER_IN, FORMAT1_PRODUCER), 0);
    for (uint32_t i = 0; i < 5; i++) put(&w, i);
    assert_int_equal(workload_close(&w), 0);
    open_log(&w);
    history_check(w.history, w.log, true);
    assert_int_equal(history_repeat(w.history, w.log, FORMAT1_PRODUCER_IN, FORMAT1_PRODUCER), 0);
    finish(&w);
}

/* What stands on disk names version 2 wherever an older weir would look, so that it refuses. */
static void old_log_is_upgraded(void **state)
{
    struct workload w;

    (void)state;
    make_old(&w, false);
    assert_int_equal(word_at(&w, CONTROL, 8), 1);
    open_log(&w);
    assert_int_equal(word_at(&w, CONTROL, 8), 2);
    assert_int_equal(word_at(&w, CONTROL, COPY_AT + 8), 2);
    assert_int_equal(word_at(&w, CONTROL, OLD_COPY_AT), 0);
    put(&w, 0);
    assert_int_equal(word_at(&w, THIRD, 0), 0x47455357u);
    assert_int_equal(word_at(&w, THIRD, 8), 2);
    assert_int_equal(word_at(&w, WORKLOAD_DIR "/00000002.seg", 8), 1);
    assert_int_equal(weir__log_active(w.log)->h.number, 3);
    finish(&w);
}

/* ---- power lost in the upgrade ---- */

struct watch {
    struct workload *w;
    uint64_t dice, disks;
    bool busy;
};

static void check_left(struct watch *m, struct simfs *left)
{
    struct workload w = *m->w;
    struct weir_error err = {0};

    w.disk = left;
    w.log = NULL;
    w.history = history_copy(m->w->history);
    m->disks++;
    if (workload_open(&w, &err) != 0) fail_msg("after a loss of power: %s", err.text);
    history_check(w.history, w.log, true);
    put(&w, 1);
    workload_crash(&w, SIMFS_KEEP_NONE, 0);
    assert_non_null(w.log);
    finish(&w);
}

static void lose_power(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    static const enum simfs_keep ways[] = {SIMFS_KEEP_NONE,    SIMFS_KEEP_ALL,    SIMFS_KEEP_ONE,
                                           SIMFS_KEEP_ALL_BUT, SIMFS_KEEP_PREFIX, SIMFS_KEEP_RANDOM,
                                           SIMFS_KEEP_RANDOM,  SIMFS_KEEP_RANDOM};
    struct watch *m = user;

    (void)kind;
    if (!entering || m->busy) return;
    m->busy = true;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        check_left(m, simfs_crash(disk, ways[i], dice_next(&m->dice)));
    m->busy = false;
}

/* Before every call of the opening and of the first append that follows. */
static void upgrade_survives_losses_of_power(void **state)
{
    struct workload w;
    struct watch m = {.w = &w, .dice = 3};

    (void)state;
    make_old(&w, false);
    simfs_hook(w.disk, lose_power, &m);
    open_log(&w);
    put(&w, 0);
    simfs_hook(w.disk, NULL, NULL);
    assert_true(m.disks > 100);
    finish(&w);
}

/* ---- forgeries, which the first version had nothing against ---- */

/* The header of a batch goes bad, and its body is full of others: they claim too much. */
static void forged_claims_are_not_believed(void **state)
{
    static const uint8_t bad[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    for (size_t back = 2; back < 8; back++) {
        struct workload w;
        const struct history_batch *b;

        make_old(&w, true);
        b = &w.history->batches[w.history->count - back];
        simfs_poke(w.disk, WORKLOAD_DIR "/00000002.seg", bad, sizeof bad,
                   b->receipt.offset - WEIR__LOG_ORIGIN - FORMAT1_SEGMENT_BYTES);
        w.history->may_damage = true;
        open_log(&w);
        history_check(w.history, w.log, true);
        assert_int_equal(w.history->damaged, b->count);
        put(&w, b->partition);
        finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_log_is_whole),
        cmocka_unit_test(old_log_is_upgraded),
        cmocka_unit_test(upgrade_survives_losses_of_power),
        cmocka_unit_test(forged_claims_are_not_believed),
    };

    return cmocka_run_group_tests_name("format1", tests, NULL, NULL);
}
