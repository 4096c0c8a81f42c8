/* old_control_test.c - the control file is an older copy, or that of a backup, as somebody's restore of
 * single files leaves it: what its segment holds behind that moment is found, kept, and gone on from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/backup.h"
#include "log/old_control.h"
#include "support/dice.h"
#include "support/format1.h"
#include "support/pace.h"

#define BACKUP_CONTROL "/backup-control"
#define ROUNDS (400 / PACE + 20)
#define COPIES 6
#define DAY_MS INT64_C(86400000)

struct told {
    int old, others;
    char file[64]; /* of the last of the others */
};

/* The control file that a backup of now has. */
static void take_backup(struct workload *w, struct copy *c)
{
    struct weir__backup_log log = {simfs_fs(w->disk), WORKLOAD_DIR, w->options.hub_id};
    struct weir__rand rand = weir__rand_system();
    struct simfs *disk = simfs_new();
    struct weir__fs *other = simfs_fs(disk);
    struct weir__backup_moment m;
    struct weir__control control;
    struct weir__file *f = NULL;
    long got;

    assert_int_equal(weir__backup_moment_take(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_moment_settle(&log, &m, NULL), 0);
    assert_int_equal(weir__backup_control(&m, m.control.first_segment, m.control.active.name, &rand,
                                          &control, NULL),
                     0);
    assert_int_equal(other->ops->open(other, BACKUP_CONTROL, WEIR__FS_CREATE, &f, NULL), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(weir__control_write(f, &control, true, NULL), 0);
    weir__file_close(f);
    got = simfs_peek(disk, BACKUP_CONTROL, c->at, sizeof c->at, 0);
    assert_true(got > 0);
    c->len = (size_t)got;
    simfs_free(disk);
    free(control.heads);
    weir__backup_moment_fini(&m);
}

static void hear(const struct weir__log_finding *f, void *user)
{
    struct told *told = user;

    if (f->kind == WEIR__LOG_SEGMENT) return;
    if (f->kind == WEIR__LOG_CONTROL && strstr(f->text, "it is older than the batch at ")) {
        told->old++;
        return;
    }
    told->others++;
    snprintf(told->file, sizeof told->file, "%s", f->file);
}

static void check_told(struct workload *w, int old)
{
    struct told told = {0};
    uint64_t damaged;

    assert_int_equal(weir__log_inspect(&w->options, hear, &told, &damaged, NULL), 0);
    assert_int_equal(told.old, old);
    assert_int_equal(told.others, 0);
    assert_int_equal(damaged, old);
}

static void open_and_close(struct workload *w, uint32_t batches)
{
    open_log(w);
    for (uint32_t i = 0; i < batches; i++) put(w, i % 5, 300 + i);
    assert_int_equal(workload_close(w), 0);
}

/* Nothing is given or written twice; told once, and then the control file is a new one. */
static void check_kept(bool backup)
{
    for (uint32_t before = 0; before < 3; before++)
        for (uint32_t openings = 1; openings < 4; openings++) {
            struct workload *w;
            struct copy *c = test_calloc(1, sizeof *c);

            set_up((void **)&w);
            open_and_close(w, before);
            if (backup)
                take_backup(w, c);
            else
                take_copy(w->disk, c);
            for (uint32_t i = 0; i < openings; i++) open_and_close(w, 7);
            put_copy(w->disk, c);
            check_told(w, 1);
            open_log(w);
            history_check(w->history, w->log, true);
            assert_true(w->log->epoch > 1 + openings);
            assert_int_equal(w->log->segment_count, 1);
            put(w, 1, 300);
            assert_int_equal(workload_close(w), 0);
            check_told(w, 0);
            open_log(w);
            history_check(w->history, w->log, true);
            test_free(c);
            assert_int_equal(tear_down((void **)&w), 0);
        }
}

static void what_came_later_is_kept(void **state)
{
    (void)state;
    check_kept(false);
}

static void what_came_behind_a_backup_is_kept(void **state)
{
    (void)state;
    check_kept(true);
}

/* Another copy of the same opening knows all that has to be known. */
static void check_this_opening(struct workload *w, bool backup)
{
    struct copy *c = test_calloc(1, sizeof *c);

    open_log(w);
    put(w, 0, 400);
    if (backup)
        take_backup(w, c);
    else
        take_copy(w->disk, c);
    for (uint32_t i = 0; i < 9; i++) put(w, i % 5, 400);
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    check_told(w, 0);
    open_log(w);
    history_check(w->history, w->log, true);
    put(w, 1, 300);
    test_free(c);
}

static void a_copy_of_this_opening_is_no_older(void **state)
{
    check_this_opening(*state, false);
}

static void a_backup_of_this_opening_is_no_older(void **state)
{
    check_this_opening(*state, true);
}

/* Behind the watermark of an old copy damage is known by what lies behind it, as ever. */
static void what_is_damaged_is_not_cut(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);
    struct told told = {0};
    uint64_t at, damaged;

    open_and_close(w, 2);
    take_copy(w->disk, c);
    open_log(w);
    at = w->log->tail.end + 30 - WEIR__LOG_ORIGIN;
    put(w, 3, 2000);
    for (uint32_t i = 0; i < 3; i++) put(w, i, 2000);
    assert_int_equal(workload_close(w), 0);
    simfs_flip(w->disk, WORKLOAD_DIR "/00000001.seg", at * 8);
    put_copy(w->disk, c);
    assert_int_equal(weir__log_inspect(&w->options, hear, &told, &damaged, NULL), 0);
    assert_int_equal(told.old, 1);
    assert_int_equal(told.others, 1);
    assert_string_equal(told.file, WORKLOAD_DIR "/00000001.seg");
    w->history->may_damage = true;
    open_log(w);
    assert_int_equal(w->log->damage_count, 1);
    history_check(w->history, w->log, true);
    put(w, 1, 300);
    test_free(c);
}

/* What of the last batch is bad. */
enum bad_end {
    BAD_BODY,     /* a bit */
    BAD_HEADER,   /* a bit */
    BLANK_HEADER, /* the rest of the block that it begins in is zeros */
};

/* When the end is bad, and nobody knows whether that was acknowledged, it stays where it is. */
static void check_bad_end(struct workload *w, bool rolled, enum bad_end what, bool again)
{
    struct copy *c = test_calloc(1, sizeof *c);
    uint8_t was[500], is[500];
    static const uint8_t zeros[WEIR__FS_BLOCK];
    char path[64];
    uint64_t at, first;

    open_and_close(w, 2);
    take_copy(w->disk, c);
    open_log(w);
    put(w, 3, 2000);
    if (rolled) {
        workload_roll(w);
        put(w, 3, 2000);
    }
    at = w->log->tail.end + 20;
    first = w->log->tail.end - weir__log_active(w->log)->h.base;
    put(w, 3, 20000);
    if (what != BAD_HEADER) at = w->log->tail.end - 1000;
    at -= weir__log_active(w->log)->h.base;
    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", weir__log_active(w->log)->name);
    assert_int_equal(workload_close(w), 0);
    if (what == BLANK_HEADER)
        simfs_poke(w->disk, path, zeros, WEIR__FS_BLOCK - first % WEIR__FS_BLOCK, first);
    else
        simfs_flip(w->disk, path, at * 8);
    simfs_peek(w->disk, path, was, sizeof was, at);
    put_copy(w->disk, c);
    w->history->may_damage = true;
    open_log(w);
    if (again) { /* the control file is a new one now */
        assert_int_equal(workload_close(w), 0);
        open_log(w);
    }
    put(w, 1, 2000);
    put(w, 1, 2000);
    simfs_peek(w->disk, path, is, sizeof is, at);
    assert_memory_equal(was, is, sizeof was);
    test_free(c);
    w->history->violations = 0; /* its number is given again: what cannot be known */
}

static void a_bad_end_is_not_written_over(void **state)
{
    (void)state;
    for (int rolled = 0; rolled < 2; rolled++)
        for (int what = 2 * BAD_BODY; what <= 2 * BLANK_HEADER + 1; what++) {
            struct workload *w;

            set_up((void **)&w);
            check_bad_end(w, rolled, (enum bad_end)(what / 2), what % 2);
            assert_int_equal(tear_down((void **)&w), 0);
        }
}

/* What is done to a log that has no room to begin, and writes the control file. */
enum meanwhile { NOTHING, MARK, GROW, EXPIRE };

/* It may have been acknowledged: an opening without room to leave its segment says nothing of the end. */
static void check_bad_end_without_room(struct workload *w, enum meanwhile what)
{
    struct copy *c = test_calloc(1, sizeof *c);
    uint8_t was[5000], is[5000];
    char path[64];
    uint64_t at;

    w->options.retain_ms = DAY_MS;
    w->history->may_expire = w->history->may_damage = true;
    open_and_close(w, 20);
    open_log(w);
    workload_roll(w);
    assert_int_equal(workload_close(w), 0);
    take_copy(w->disk, c);
    open_log(w);
    put(w, 1, 5000);
    at = w->log->tail.end - weir__log_active(w->log)->h.base;
    put(w, 2, 5000);
    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", weir__log_active(w->log)->name);
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    simfs_flip(w->disk, path, (at + 4000) * 8);
    simfs_peek(w->disk, path, was, sizeof was, at);
    simfs_capacity(w->disk, simfs_used(w->disk));
    if (what == EXPIRE) simclock_pass(&w->clock, 2 * DAY_MS);
    open_log(w);
    assert_int_equal(w->log->opening, WEIR__LOG_EPOCH_WAITS);
    simclock_pass(&w->clock, 2000);
    if (what == MARK) weir__log_step(w->log, NULL);
    if (what == GROW) assert_int_equal(weir__log_grow(w->log, w->log->partitions + 1, NULL), 0);
    if (what == EXPIRE) weir__log_step(w->log, NULL);
    assert_int_equal(workload_close(w), 0);
    simfs_capacity(w->disk, 0);
    open_log(w);
    put(w, 1, 9000);
    simfs_peek(w->disk, path, is, sizeof is, at);
    assert_memory_equal(was, is, sizeof was);
    test_free(c);
    w->history->violations = 0; /* its number is given again: what cannot be known */
}

static void a_bad_end_is_not_named_without_room(void **state)
{
    (void)state;
    for (int what = NOTHING; what <= EXPIRE; what++) {
        struct workload *w;

        set_up((void **)&w);
        check_bad_end_without_room(w, (enum meanwhile)what);
        assert_int_equal(tear_down((void **)&w), 0);
    }
}

/* It has no secret, and yet the segments of version 2 behind it are known. */
static void a_control_file_of_version_1_is_old(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);

    history_free(w->history);
    w->history = history_new(5);
    w->options.partitions = 5;
    format1_write(w->disk, WORKLOAD_DIR, w->options.hub_id, w->clock.wall_ms - 100000, w->history);
    w->created = true;
    take_copy(w->disk, c);
    open_and_close(w, 7);
    put_copy(w->disk, c);
    for (int i = 0; i < 2; i++) {
        open_log(w);
        history_check(w->history, w->log, true);
        put(w, 1, 300);
        assert_int_equal(workload_close(w), 0);
    }
    test_free(c);
}

/* All that it names has expired: the log is what is there now. */
static void a_control_file_is_outlived(void **state)
{
    struct workload *w = *state;
    struct copy *c = test_calloc(1, sizeof *c);
    uint64_t first, next;

    w->options.retain_ms = DAY_MS;
    w->history->may_expire = true;
    open_and_close(w, 3);
    take_copy(w->disk, c);
    open_log(w);
    for (int half_days = 0; half_days < 6; half_days++) {
        for (uint32_t i = 0; i < 20; i++) put(w, i % 3, 30000);
        workload_roll(w);
        put(w, 0, 500);
        simclock_pass(&w->clock, DAY_MS / 2);
        for (int k = 0; k < 5; k++) weir__log_step(w->log, NULL);
    }
    first = w->log->segments[0]->h.number;
    next = w->log->heads[0].next_sequence;
    assert_true(first > 1);
    assert_int_equal(workload_close(w), 0);
    put_copy(w->disk, c);
    for (int i = 0; i < 2; i++) {
        open_log(w);
        assert_int_equal(w->log->segments[0]->h.number, first);
        assert_int_equal(w->log->heads[0].next_sequence, next);
        history_check(w->history, w->log, false);
        put(w, 0, 500);
        next += 2;
        assert_int_equal(workload_close(w), 0);
    }
    test_free(c);
}

/* ---- whatever was done, and whenever the power went ---- */

static void step(struct workload *w)
{
    if (!w->log) open_log(w);
    workload_step(w);
}

/* Runs that lose power again and again; then an older control file is put there. */
static void whenever_the_power_went(void **state)
{
    struct copy *copies = test_calloc(COPIES, sizeof *copies);
    int put_back = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint64_t dice = seed;
        struct workload w;
        struct simfs *left;
        size_t taken = 0;

        workload_init(&w, seed);
        w.small = true;
        w.aligned = seed % 2;
        open_log(&w);
        for (int i = 0; i < COPIES; i++) {
            if (dice_roll(&dice, 3) == 0)
                take_backup(&w, &copies[taken++]);
            else
                take_copy(w.disk, &copies[taken++]);
            for (uint64_t k = dice_roll(&dice, 12); k > 0; k--) step(&w);
            if (!w.log) open_log(&w);
            workload_crash(&w, SIMFS_KEEP_RANDOM, seed * 31 + (uint64_t)i);
            if (!w.log) fail_msg("seed %d does not open", (int)seed);
        }
        for (uint64_t k = dice_roll(&dice, 12); k > 0; k--) step(&w);
        left = simfs_crash(w.disk, SIMFS_KEEP_RANDOM, seed);
        put_copy(left, &copies[dice_roll(&dice, taken)]);
        put_back++;
        workload_adopt(&w, left);
        if (!w.log) fail_msg("seed %d does not open", (int)seed);
        put(&w, 1, 300);
        history_check(w.history, w.log, true);
        workload_crash(&w, SIMFS_KEEP_RANDOM, seed);
        if (!w.log || w.history->violations > 0)
            fail_msg("seed %d: %s", (int)seed, w.history->first);
        workload_fini(&w);
    }
    assert_true(put_back > 0);
    test_free(copies);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_later_is_kept),
        cmocka_unit_test(what_came_behind_a_backup_is_kept),
        CASE(a_copy_of_this_opening_is_no_older),
        CASE(a_backup_of_this_opening_is_no_older),
        CASE(what_is_damaged_is_not_cut),
        cmocka_unit_test(a_bad_end_is_not_written_over),
        cmocka_unit_test(a_bad_end_is_not_named_without_room),
        CASE(a_control_file_of_version_1_is_old),
        CASE(a_control_file_is_outlived),
        cmocka_unit_test(whenever_the_power_went),
    };

    return cmocka_run_group_tests_name("old_control", tests, NULL, NULL);
}
