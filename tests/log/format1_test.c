/* format1_test.c - a log of the first format version is opened, kept whole, and upgraded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/state.h"
#include "support/dice.h"
#include "support/format1.h"
#include "support/pace.h"
#include "support/workload.h"

#define CONTROL WORKLOAD_DIR "/control"
#define COPY_AT (64u << 10)
#define OLD_COPY_AT 4096u /* with few partitions */
#define OLD_FIXED 80u
#define CONTROL_MAGIC 0x4c544357u
#define THIRD WORKLOAD_DIR "/00000003.seg"

static void make_old_of(struct workload *w, uint32_t partitions, bool forging)
{
    workload_init(w, 5);
    history_free(w->history);
    w->history = history_new(partitions);
    w->options.partitions = partitions;
    w->history->forging = forging;
    format1_write(w->disk, WORKLOAD_DIR, w->options.hub_id, w->clock.wall_ms - 100000, w->history);
    w->history->forging = false;
    w->created = true;
}

static void make_old(struct workload *w, bool forging)
{
    make_old_of(w, 5, forging);
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
    put(&w, 0);
    assert_int_equal(word_at(&w, CONTROL, OLD_COPY_AT), 0);
    assert_int_equal(word_at(&w, THIRD, 0), 0x47455357u);
    assert_int_equal(word_at(&w, THIRD, 8), 2);
    assert_int_equal(word_at(&w, WORKLOAD_DIR "/00000002.seg", 8), 1);
    assert_int_equal(weir__log_active(w.log)->h.number, 3);
    finish(&w);
}

/* ---- an older weir on the same folder ---- */

/* It reads as many bytes as it would have written. When they are good and of another version, it
 * refuses, whatever its other copy is. */
static void check_refusal(struct workload *w)
{
    size_t len = weir__round_up(OLD_FIXED + (uint64_t)w->history->partitions * WEIR__HEAD_BYTES,
                                WEIR__FS_BLOCK);
    uint8_t *copy = calloc(1, len);

    assert_non_null(copy);
    assert_int_equal(simfs_peek(w->disk, CONTROL, copy, len, 0), len);
    assert_int_equal(weir__load32(copy), CONTROL_MAGIC);
    assert_int_equal(weir__load32(copy + 4), weir__crc32c(0, copy + 8, len - 8));
    assert_int_equal(weir__load32(copy + 8), 2);
    free(copy);
}

/* Also where a copy of version 2 is a block longer than one of version 1. */
static void older_weir_finds_the_version(void **state)
{
    static const uint32_t partitions[] = {4, 162, 163, 165, 167, 168, 334, 1024};

    (void)state;
    for (size_t i = 0; i < sizeof partitions / sizeof partitions[0]; i++) {
        struct workload w;

        make_old_of(&w, partitions[i], false);
        open_log(&w);
        check_refusal(&w);
        put(&w, partitions[i] - 1);
        assert_int_equal(workload_close(&w), 0);
        check_refusal(&w);
        open_log(&w);
        history_check(w.history, w.log, true);
        finish(&w);
    }
}

/* Past the end of what a copy of version 1 would have, a bit is found to be wrong as well. */
static void rest_of_a_copy_is_checked(void **state)
{
    struct workload w;
    struct weir__control c = {0};
    struct weir__file *f = NULL;
    struct weir_error err = {0};
    int bad = 0;

    (void)state;
    make_old_of(&w, 167, false);
    open_log(&w);
    assert_int_equal(workload_close(&w), 0);
    simfs_flip(w.disk, CONTROL, 8 * (OLD_COPY_AT + 100));
    assert_int_equal(w.options.fs->ops->open(w.options.fs, CONTROL, 0, &f, &err), 0);
    assert_int_equal(weir__control_read(f, &c, &bad, &err), 0);
    assert_int_equal(bad, 1);
    weir__control_fini(&c);
    weir__file_close(f);
    finish(&w);
}

/* What the control file was, with the first write of an upgrade in it. */
static void end_after_first_write(struct workload *w, uint8_t file[COPY_AT + WEIR__FS_BLOCK])
{
    memset(file, 0, COPY_AT + WEIR__FS_BLOCK);
    simfs_peek(w->disk, CONTROL, file, 2 * OLD_COPY_AT, 0);
    open_log(w);
    simfs_peek(w->disk, CONTROL, file + COPY_AT, WEIR__FS_BLOCK, COPY_AT);
    assert_int_equal(weir__load32(file + COPY_AT + 8), 2);
}

/* One more write of an older weir, which has begun another epoch: over the older of its copies. */
static void go_on(uint8_t *file, uint64_t generation, uint32_t epoch)
{
    uint8_t *to = file + generation % 2 * OLD_COPY_AT;

    memcpy(to, file + (generation + 1) % 2 * OLD_COPY_AT, OLD_COPY_AT);
    weir__store64(to + 24, generation);
    weir__store64(to + 56, weir__load64(to + 48)); /* it begins at the watermark */
    weir__store32(to + 64, epoch);
    weir__store32(to + 4, weir__crc32c(0, to + 8, OLD_COPY_AT - 8));
}

static void expect_old(struct workload *w, const uint8_t *file, uint64_t generation, uint32_t epoch)
{
    struct weir__control c = {0};
    struct weir__file *f = NULL;
    struct weir_error err = {0};
    int bad = 0;

    simfs_put(w->disk, CONTROL, file, COPY_AT + WEIR__FS_BLOCK);
    assert_int_equal(w->options.fs->ops->open(w->options.fs, CONTROL, 0, &f, &err), 0);
    assert_int_equal(weir__control_read(f, &c, &bad, &err), 0);
    assert_int_equal(c.version, 1);
    assert_int_equal(c.generation, generation);
    assert_int_equal(c.epoch, epoch);
    assert_int_equal(c.stale_at, OLD_COPY_AT);
    weir__control_fini(&c);
    weir__file_close(f);
}

/* An upgrade that ended after its first write has not happened: the older weir goes on with its own
 * copies, and what it wrote counts, however it ended. */
static void unfinished_upgrade_has_not_happened(void **state)
{
    static uint8_t file[COPY_AT + WEIR__FS_BLOCK];
    struct workload w, again;

    (void)state;
    make_old(&w, false);
    make_old(&again, false);
    end_after_first_write(&w, file);
    expect_old(&again, file, 5, 3);
    go_on(file, 6, 4); /* it was opened, and killed */
    expect_old(&again, file, 6, 4);
    go_on(file, 7, 4); /* closed: as new as what the upgrade wrote */
    expect_old(&again, file, 7, 4);
    memset(file, 0xee, 100); /* and killed in its next write */
    expect_old(&again, file, 7, 4);
    open_log(&again);
    history_check(again.history, again.log, true);
    assert_int_equal(workload_close(&again), 0);
    assert_int_equal(word_at(&again, CONTROL, OLD_COPY_AT), 0);
    finish(&again);
    finish(&w);
}

/* Whichever write an upgrade ended in, the second copy of version 1 goes in the end: it would pass
 * for the log's state if both others went bad. */
static void old_copy_is_erased_late(void **state)
{
    uint8_t old[2 * OLD_COPY_AT];
    struct workload w;

    (void)state;
    make_old(&w, false);
    simfs_peek(w.disk, CONTROL, old, sizeof old, 0);
    open_log(&w);
    assert_int_equal(workload_close(&w), 0);
    simfs_poke(w.disk, CONTROL, old + OLD_COPY_AT, OLD_COPY_AT, OLD_COPY_AT);
    open_log(&w);
    assert_int_equal(workload_close(&w), 0);
    assert_int_equal(word_at(&w, CONTROL, 8), 2);
    assert_int_equal(word_at(&w, CONTROL, OLD_COPY_AT), 0);
    finish(&w);
}

/* ---- power lost in the upgrade ---- */

struct watch {
    struct workload *w;
    uint64_t dice, calls, disks;
    bool busy;
};

static void ignore(const struct weir__log_finding *f, void *user)
{
    (void)f;
    (void)user;
}

/* Killed, but with everything on disk that was written: nothing may look damaged. */
static void check_sound(struct watch *m, struct simfs *left)
{
    struct weir__log_options o = m->w->options;
    struct weir_error err = {0};
    uint64_t damaged = 0;

    o.fs = simfs_fs(left);
    assert_int_equal(weir__log_inspect(&o, ignore, NULL, &damaged, &err), 0);
    assert_int_equal(damaged, 0);
}

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
    if (!entering || m->busy || m->calls++ % PACE != 0) return;
    m->busy = true;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct simfs *left = simfs_crash(disk, ways[i], dice_next(&m->dice));

        if (ways[i] == SIMFS_KEEP_ALL) check_sound(m, left);
        check_left(m, left);
    }
    m->busy = false;
}

/* Before every call of the opening and of the first append that follows; also where the longer copy of
 * version 2 lies over the second one of version 1. */
static void upgrade_survives_losses_of_power(void **state)
{
    static const uint32_t partitions[] = {5, 167};

    (void)state;
    for (size_t i = 0; i < sizeof partitions / sizeof partitions[0]; i++) {
        struct workload w;
        struct watch m = {.w = &w, .dice = 3};

        make_old_of(&w, partitions[i], false);
        simfs_hook(w.disk, lose_power, &m);
        open_log(&w);
        put(&w, 0);
        simfs_hook(w.disk, NULL, NULL);
        assert_true(m.disks > 100 / PACE);
        finish(&w);
    }
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
        cmocka_unit_test(older_weir_finds_the_version),
        cmocka_unit_test(rest_of_a_copy_is_checked),
        cmocka_unit_test(unfinished_upgrade_has_not_happened),
        cmocka_unit_test(old_copy_is_erased_late),
        cmocka_unit_test(upgrade_survives_losses_of_power),
        cmocka_unit_test(forged_claims_are_not_believed),
    };

    return cmocka_run_group_tests_name("format1", tests, NULL, NULL);
}
