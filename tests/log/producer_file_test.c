/* producer_file_test.c - what is known of producers when segments roll, expire and are opened
 * again, when disks fill up and bytes go bad, and of logs of format version 1. */
#include "producers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/segment.h"
#include "log/state.h"
#include "support/dice.h"

#define LEFT_FILES 100u

static void expiry_of_all_its_segments_forgets_nobody(void **state)
{
    struct bench *b = *state;

    b->w.options.retain_ms = DAY_MS;
    start(b);
    for (uint64_t id = 1; id <= 300; id++) put(b, id, 0);
    for (int day = 0; day < 4; day++) {
        put(b, 1000 + (uint64_t)day, 0);
        roll(b);
    }
    for (int round = 0; round < 3; round++) {
        for (uint64_t id = 1; id <= 300; id++) assert_true(known(b, id, 0));
        for (uint64_t id = 1000; id < 1004; id++) assert_true(known(b, id, 0));
        if (round == 0) reopen(b);
        if (round == 1) workload_crash(&b->w, SIMFS_KEEP_NONE, 0);
    }
    assert_int_equal(b->warnings, 0);
    assert_int_equal(stats_of(b).producers, 304);
    assert_int_equal(stats_of(b).producers_forgotten, 0);
}

static void without_producers_nothing_is_written(void **state)
{
    struct bench *b = *state;
    struct history_order o = {.bytes = 100, .count = 1};

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(history_append_wait(b->w.history, b->w.log, &o), 0);
        roll(b);
    }
    assert_int_equal(files_of(b), 0);
    put(b, 1, 0);
    roll(b);
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), 2 * BLOCK);
    assert_int_equal(history_append_wait(b->w.history, b->w.log, &o), 0);
    roll(b); /* nobody has published: nothing is written */
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), 2 * BLOCK);
}

/* What was read from the file is not written to it again. */
static void only_the_new_is_written(void **state)
{
    struct bench *b = *state;

    start(b);
    for (uint64_t id = 1; id <= PER_BLOCK + 1; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), 3 * BLOCK);
    reopen(b);
    put(b, 1000, 0);
    roll(b);
    assert_int_equal(simfs_size(b->w.disk, file_of(b)), 4 * BLOCK);
}

static void too_many_forget_the_silent_one(void **state)
{
    struct bench *b = *state;

    b->w.options.producers_max = 100;
    start(b);
    for (uint64_t id = 1; id <= 100; id++) put(b, id, 0);
    simclock_pass(&b->w.clock, 60000);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    put(b, 1, 1); /* a minute later: no longer the one that was silent longest */
    roll(b);
    put(b, 2, 1);
    put(b, 101, 0); /* the 3rd has been silent longest */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(stats_of(b).producers, 100);
        assert_int_equal(stats_of(b).producers_forgotten, 1);
        for (uint64_t id = 1; id <= 101; id++) assert_int_equal(remembered(b, id), id != 3);
        if (round == 0) reopen(b); /* the file has it, but 100 others are newer */
    }
    assert_false(known(b, 3, 0));
}

static void seven_days_are_remembered(void **state)
{
    struct bench *b = *state;
    struct history_order o = {.bytes = 100, .count = 1};

    start(b);
    put(b, 1, 0);
    workload_roll(&b->w); /* into the file, which knows when it was */
    for (int i = 0; i < 7 * 24; i++) {
        simclock_pass(&b->w.clock, DAY_MS / 24);
        assert_int_equal(weir__log_step(b->w.log, NULL), 0);
        assert_int_equal(history_append_wait(b->w.history, b->w.log, &o), 0);
    }
    assert_true(remembered(b, 1));
    reopen(b);
    assert_true(remembered(b, 1));
    simclock_pass(&b->w.clock, 2 * 60000);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_false(remembered(b, 1));
    assert_int_equal(stats_of(b).producers_forgotten, 1);
    reopen(b);
    assert_false(remembered(b, 1)); /* though the file still has it */
}

/* Several blocks; one bit of each in turn, somewhere or in the last byte. */
static void damage_costs_a_block_and_is_told(void **state)
{
    struct bench *b = *state;
    uint64_t size, generation;
    char path[64];

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    for (uint64_t id = 1; id <= 5 * PER_BLOCK; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
    snprintf(path, sizeof path, "%s", file_of(b));
    size = simfs_size(b->w.disk, path);
    assert_int_equal(size, 6 * BLOCK);
    for (uint64_t block = 0; block < 6; block++) {
        struct simfs *good = simfs_clone(b->w.disk);
        uint64_t lost = 0;

        simfs_flip(b->w.disk, path, (block * BLOCK + (block % 2 ? BLOCK - 1 : 777)) * 8 + 3);
        b->warnings = 0;
        start(b);
        assert_int_equal(stats_of(b).damaged_ranges, 1);
        assert_int_equal(b->warnings, 1);
        assert_non_null(strstr(b->warning, "could be stored twice"));
        for (uint64_t id = 1; id <= 5 * PER_BLOCK; id++) lost += !remembered(b, id);
        assert_int_equal(lost, block ? PER_BLOCK : 0);
        /* A new generation is free of it, and the last that is needed. */
        assert_int_equal(weir__log_step(b->w.log, NULL), 0);
        generation = b->w.log->producer_file.generation;
        assert_int_equal(weir__log_step(b->w.log, NULL), 0);
        assert_int_equal(b->w.log->producer_file.generation, generation);
        reopen(b);
        assert_int_equal(stats_of(b).damaged_ranges, 0);
        assert_int_equal(b->warnings, 1);
        assert_int_equal(stats_of(b).producers, 5 * PER_BLOCK - lost);
        assert_int_equal(workload_close(&b->w), 0);
        simfs_free(b->w.disk);
        b->w.disk = good;
    }
}

/* A block that the disk refuses may be readable tomorrow: it stays. */
static void unreadable_blocks_are_passed_over(void **state)
{
    struct bench *b = *state;
    struct simfs *good;

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    for (uint64_t id = 1; id <= 5 * PER_BLOCK; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
    good = simfs_clone(b->w.disk);
    simfs_spoil(b->w.disk, file_of(b), 2 * BLOCK + 512, 512);
    start(b);
    assert_int_equal(stats_of(b).damaged_ranges, 1);
    assert_int_equal(stats_of(b).producers, 4 * PER_BLOCK);
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(files_of(b), 1);
    assert_non_null(strstr(file_of(b), "-00000001."));
    assert_int_equal(workload_close(&b->w), 0);
    simfs_free(b->w.disk);
    b->w.disk = good;
}

/* A disk that says no once, to any call of an opening, is asked again or is an error: nobody is
 * forgotten, and the file is there afterwards. */
static void one_refused_call_forgets_nobody(void **state)
{
    struct bench *b = *state;
    struct simfs_fault once = {.kinds = SIMFS_OPEN | SIMFS_READ, .rc = WEIR_EIO};
    struct simfs *good;
    bool struck = true;

    start(b);
    for (uint64_t id = 1; id <= 10; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
    good = b->w.disk;
    for (once.at = 1; struck; once.at++) {
        b->w.disk = simfs_clone(good);
        simfs_fail(b->w.disk, &once);
        if (workload_open(&b->w, NULL) == 0) {
            assert_int_equal(stats_of(b).producers, 10);
            assert_int_equal(workload_close(&b->w), 0);
        }
        assert_int_equal(b->warnings, 0);
        struck = simfs_failed(b->w.disk);
        simfs_fail(b->w.disk, NULL);
        start(b);
        for (uint64_t id = 1; id <= 10; id++) assert_true(known(b, id, 0));
        assert_int_equal(workload_close(&b->w), 0);
        simfs_free(b->w.disk);
    }
    assert_true(once.at > 5);
    b->w.disk = good;
}

static void a_missing_file_is_told(void **state)
{
    struct bench *b = *state;
    struct weir__fs *fs;

    start(b);
    for (uint64_t id = 1; id <= 10; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
    fs = simfs_fs(b->w.disk);
    assert_int_equal(fs->ops->remove(fs, file_of(b), NULL), 0);
    start(b);
    assert_int_equal(b->warnings, 1);
    assert_int_equal(stats_of(b).damaged_ranges, 1);
    assert_int_equal(stats_of(b).producers, 0);
    put(b, 11, 0);
    roll(b);
    reopen(b);
    assert_true(remembered(b, 11));
    assert_int_equal(b->warnings, 1);
}

static void leave_file(struct bench *b, unsigned generation)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    char path[64];

    snprintf(path, sizeof path, WORKLOAD_DIR "/producers-%08u.tab", generation);
    simfs_put(b->w.disk, path, zeros, sizeof zeros);
}

/* However many unfinished ones could not be removed, the one in use is found among them. */
static void many_unfinished_files_forget_nobody(void **state)
{
    struct bench *b = *state;

    start(b);
    leave_file(b, LEFT_FILES);
    reopen(b);
    for (uint64_t id = 1; id <= 10; id++) put(b, id, 0);
    roll(b);
    assert_string_equal(file_of(b), WORKLOAD_DIR "/producers-00000101.tab");
    assert_int_equal(workload_close(&b->w), 0);
    for (unsigned i = 1; i <= LEFT_FILES; i++) leave_file(b, i);
    start(b);
    assert_int_equal(b->warnings, 0);
    assert_int_equal(stats_of(b).producers, 10);
    assert_int_equal(files_of(b), 1);
    for (uint64_t id = 1; id <= 10; id++) assert_true(known(b, id, 0));
}

/* Two openings of files in a row. */
struct refusal {
    unsigned first, opened;
};

static void refuse_two(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct simfs_fault once = {.kinds = SIMFS_OPEN, .at = 1, .rc = WEIR_EIO};
    struct refusal *r = user;

    if (!entering || call != SIMFS_OPEN) return;
    r->opened++;
    if (r->opened == r->first || r->opened == r->first + 1) simfs_fail(disk, &once);
}

/* Of two files, the one that was to be opened behind the other cannot be: it is not taken for the
 * other, and is there when the disk gives it again. */
static void a_refused_file_is_as_if_it_were_not_there(void **state)
{
    struct bench *b = *state;
    struct simfs *good;
    unsigned missing = 0;

    start(b);
    for (uint64_t id = 1; id <= 10; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
    leave_file(b, 2);
    good = b->w.disk;
    for (struct refusal r = {1, 0}; r.first <= r.opened + 1; r.first++) {
        b->w.disk = simfs_clone(good);
        b->warnings = 0;
        r.opened = 0;
        simfs_hook(b->w.disk, refuse_two, &r);
        if (workload_open(&b->w, NULL) == 0) assert_int_equal(workload_close(&b->w), 0);
        simfs_hook(b->w.disk, NULL, NULL);
        missing += b->warnings && strstr(b->warning, "/producers-00000001.tab: it is missing;");
        simfs_fail(b->w.disk, NULL);
        assert_int_equal(simfs_open_files(b->w.disk), 0);
        start(b);
        for (uint64_t id = 1; id <= 10; id++) assert_true(known(b, id, 0));
        assert_int_equal(workload_close(&b->w), 0);
        simfs_free(b->w.disk);
        b->w.disk = good;
    }
    assert_int_equal(missing, 1);
}

/* A roll that found no room for the next segment has told the file of its producers already. When the segment
 * is lost, so are its events; but who published them is known, as far as the log is known to have been
 * on disk. */
static void a_lost_segment_forgets_nobody_of_the_file(void **state)
{
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .rc = WEIR_ENOSPACE, .persistent = true};
    struct bench *b = *state;
    struct weir__fs *fs;
    char path[64];

    b->w.options.producers_tidy_blocks = 1000;
    b->w.options.retain_ms = 8 * DAY_MS; /* an eighth of that is one segment's time */
    start(b);
    put(b, 11, 0);
    roll(b);
    for (uint64_t id = 1; id <= 10; id++) put(b, id, 0);
    for (full.at = 1; simfs_size(b->w.disk, file_of(b)) < 3 * BLOCK; full.at++) {
        simclock_pass(&b->w.clock, DAY_MS + 60000);
        simfs_fail(b->w.disk, &full);
        assert_int_equal(weir__log_step(b->w.log, NULL), WEIR_ENOSPACE);
        simfs_fail(b->w.disk, NULL);
    }
    snprintf(path, sizeof path, WORKLOAD_DIR "/%s", weir__log_active(b->w.log)->name);
    assert_int_equal(workload_close(&b->w), 0);
    fs = simfs_fs(b->w.disk);
    assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
    start(b);
    for (uint64_t id = 1; id <= 11; id++) assert_true(known(b, id, 0));
}

/* ---- which of two files ---- */

#define FIRST 10u /* producers of the first append, which both files have */

/* A file of producers as it was at one time. */
struct kept_file {
    uint8_t bytes[8 * BLOCK];
    uint64_t size;
};

static void path_of(unsigned generation, char to[64])
{
    snprintf(to, 64, WORKLOAD_DIR "/producers-%08u.tab", generation);
}

static void keep_file(struct bench *b, unsigned generation, struct kept_file *out)
{
    char path[64];

    path_of(generation, path);
    out->size = simfs_size(b->w.disk, path);
    assert_in_range(out->size, 2 * BLOCK, sizeof out->bytes);
    assert_int_equal(simfs_peek(b->w.disk, path, out->bytes, out->size, 0), out->size);
}

static void bring_back(struct bench *b, unsigned generation, const struct kept_file *f)
{
    char path[64];

    path_of(generation, path);
    simfs_put(b->w.disk, path, f->bytes, f->size);
}

/* One more append, of one more producer: the one with the number FIRST + turn. */
static void append_one(struct bench *b, unsigned turn)
{
    start(b);
    put(b, FIRST + turn, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
}

/* Generation 1 with the first append, and both of them behind it: of 2 generations with the same
 * producers. `tidied`: generation 2 is in use. */
static void have_both(struct bench *b, bool tidied, struct kept_file kept[2])
{
    struct simfs *untidied;

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    for (uint64_t id = 1; id <= FIRST; id++) put(b, id, 0);
    roll(b);
    assert_int_equal(workload_close(&b->w), 0);
    keep_file(b, 1, &kept[0]);
    untidied = simfs_clone(b->w.disk);
    start(b);
    b->w.log->producer_file.damaged = true; /* reason enough to write it again */
    assert_int_equal(weir__log_step(b->w.log, NULL), 0);
    assert_int_equal(workload_close(&b->w), 0);
    keep_file(b, 2, &kept[1]);
    simfs_free(tidied ? untidied : b->w.disk);
    if (!tidied) b->w.disk = untidied;
}

/* The one that has the last append that the log knows of, be it the higher or the lower; and where
 * neither has that, the one that has the latest. */
static void the_file_with_the_last_append_is_taken(void **state)
{
    static const struct {
        unsigned used;    /* the generation to which was appended */
        unsigned appends; /* behind the first one */
        unsigned lost;    /* of these, in the end */
    } rows[] = {{1, 1, 0}, {2, 1, 0}, {1, 3, 0}, {2, 3, 0}, {1, 2, 1}, {2, 2, 1}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned used = rows[i].used, had = rows[i].appends - rows[i].lost;
        struct kept_file kept[2], last;
        struct bench *b = *state;

        have_both(b, used == 2, kept);
        for (unsigned turn = 1; turn <= rows[i].appends; turn++) {
            append_one(b, turn);
            if (turn == had) keep_file(b, used, &last);
        }
        bring_back(b, used, &last);
        bring_back(b, 3 - used, &kept[2 - used]);
        assert_int_equal(files_of(b), 2);
        start(b);
        for (uint64_t id = 1; id <= FIRST + rows[i].appends; id++)
            if (remembered(b, id) != (id <= FIRST + had))
                fail_msg("row %zu: producer %" PRIu64 " is%s known", i, id,
                         remembered(b, id) ? "" : " not");
        assert_int_equal(files_of(b), 1);
        assert_int_equal(b->w.log->producer_file.generation, used);
        assert_int_equal(b->warnings, rows[i].lost);
        teardown(state);
        setup(state);
    }
}

/* Power is lost while a roll appends: what is left of that is no damage. */
static void an_unfinished_append_is_silent(void **state)
{
    struct bench *b = *state;

    b->w.options.producers_tidy_blocks = 1000;
    start(b);
    put(b, 1, 0);
    roll(b);
    for (uint64_t id = 2; id <= 3 * PER_BLOCK; id++) put(b, id, 0);
    for (uint64_t call = 1; call < 40; call++) {
        struct simfs *left;

        simclock_pass(&b->w.clock, DAY_MS + 60000);
        simfs_stop(b->w.disk, call);
        if (weir__log_step(b->w.log, NULL) == 0 && weir__log_state(b->w.log, NULL) == 0) break;
        left = simfs_crash(b->w.disk, SIMFS_KEEP_RANDOM, call * 7919);
        workload_adopt(&b->w, left);
        assert_non_null(b->w.log);
        assert_int_equal(b->warnings, 0);
        for (uint64_t id = 1; id <= 3 * PER_BLOCK; id++) assert_true(known(b, id, 0));
    }
    assert_int_equal(b->warnings, 0);
    for (uint64_t id = 1; id <= 3 * PER_BLOCK; id++) assert_true(known(b, id, 0));
}

static void a_full_disk_only_puts_it_off(void **state)
{
    struct bench *b = *state;
    struct weir_error err = {0};

    b->w.options.retain_ms = DAY_MS; /* an eighth of that is one segment's time */
    start(b);
    for (uint64_t id = 1; id <= 500; id++) put(b, id, 0);
    for (uint64_t at = 1; at <= 12; at++) {
        struct simfs_fault full = {.kinds = SIMFS_OPEN | SIMFS_WRITE | SIMFS_ALLOCATE,
                                   .at = at,
                                   .rc = WEIR_ENOSPACE,
                                   .persistent = true};

        simclock_pass(&b->w.clock, DAY_MS / 8 + 60000);
        simfs_fail(b->w.disk, &full);
        weir__log_step(b->w.log, NULL);
        simfs_fail(b->w.disk, NULL);
        if (weir__log_state(b->w.log, &err) != 0) fail_msg("call %" PRIu64 ": %s", at, err.text);
        put(b, 600 + at, 0);
    }
    roll(b);
    reopen(b);
    for (uint64_t id = 1; id <= 500; id++) assert_true(known(b, id, 0));
    for (uint64_t at = 1; at <= 12; at++) assert_true(known(b, 600 + at, 0));
    assert_int_equal(b->warnings, 0);
}

/* A group for which there was no space never was: whoever was known before is known, also the one
 * that was forgotten for somebody in it. */
static void a_group_taken_back_is_forgotten(void **state)
{
    struct bench *b = *state;
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};
    struct weir__log_receipt r;

    b->w.options.producers_max = 10;
    start(b);
    for (uint64_t id = 1; id <= 10; id++) put(b, id, 0);
    simfs_fail(b->w.disk, &full);
    assert_int_equal(publish(b, 11, 0, &r), WEIR_ENOSPACE);
    simfs_fail(b->w.disk, &full);
    assert_int_equal(publish(b, 5, 1, &r), WEIR_ENOSPACE);
    simfs_fail(b->w.disk, NULL);
    assert_int_equal(stats_of(b).producers_forgotten, 0);
    assert_false(remembered(b, 11));
    for (uint64_t id = 1; id <= 10; id++) assert_true(known(b, id, 0));
    put(b, 5, 1);
    roll(b);
    reopen(b);
    for (uint64_t id = 1; id <= 10; id++) assert_true(known(b, id, id == 5 ? 1 : 0));
}

/* ---- format version 1 ---- */

#define OLD 80u /* producers; with the partitions' heads in one block */

/* Makes an empty segment one of version 1, with producers in its heads. */
static void age_segment(struct simfs *disk, const char *path)
{
    uint64_t size = simfs_size(disk, path);
    uint8_t front[2 * BLOCK];

    assert_int_equal(simfs_peek(disk, path, front, sizeof front, 0), sizeof front);
    for (uint32_t i = 0; i < OLD; i++) {
        struct weir__producer p = {.id = 1 + i,
                                   .partition = (uint16_t)((1 + i) % 5),
                                   .epoch = 1,
                                   .next = 2,
                                   .count = 2,
                                   .offset = WEIR__LOG_ORIGIN + i,
                                   .time_ms = INT64_C(1700000000000)};

        weir__producer_encode(&p, 0, front + BLOCK + 5 * WEIR__HEAD_BYTES + 48 * i);
    }
    weir__store32(front + 8, 1);
    weir__store32(front + 68, 5 * WEIR__HEAD_BYTES + 48 * OLD);
    weir__store32(front + 72, weir__crc32c(0, front + BLOCK, 5 * WEIR__HEAD_BYTES + 48 * OLD));
    memset(front + 80, 0, 24);
    weir__store32(front + 4, weir__crc32c(0, front + 8, BLOCK - 8));
    simfs_poke(disk, path, front, sizeof front, 0);
    simfs_poke(disk, path, front + BLOCK, BLOCK, size - 2 * BLOCK);
    simfs_poke(disk, path, front, BLOCK, size - BLOCK);
}

static void version_1_hands_over_its_producers(void **state)
{
    struct bench *b = *state;

    start(b);
    assert_int_equal(workload_close(&b->w), 0);
    age_segment(b->w.disk, "log/00000001.seg");
    for (int round = 0; round < 3; round++) {
        start(b);
        assert_int_equal(stats_of(b).producers, OLD + (round > 0));
        for (uint64_t id = 1; id <= OLD; id++) assert_true(known(b, id, 0));
        if (round == 0) put(b, 1000, 0); /* the first append is in a segment of version 2 */
        if (round == 0) assert_int_equal(files_of(b), 1);
        if (round == 1) roll(b);
        assert_int_equal(workload_close(&b->w), 0);
    }
    assert_int_equal(b->warnings, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(expiry_of_all_its_segments_forgets_nobody),
        CASE(without_producers_nothing_is_written),
        CASE(only_the_new_is_written),
        CASE(too_many_forget_the_silent_one),
        CASE(seven_days_are_remembered),
        CASE(damage_costs_a_block_and_is_told),
        CASE(unreadable_blocks_are_passed_over),
        CASE(one_refused_call_forgets_nobody),
        CASE(a_missing_file_is_told),
        CASE(many_unfinished_files_forget_nobody),
        CASE(a_refused_file_is_as_if_it_were_not_there),
        CASE(a_lost_segment_forgets_nobody_of_the_file),
        CASE(the_file_with_the_last_append_is_taken),
        CASE(an_unfinished_append_is_silent),
        CASE(a_full_disk_only_puts_it_off),
        CASE(a_group_taken_back_is_forgotten),
        CASE(version_1_hands_over_its_producers),
    };

    return cmocka_run_group_tests_name("producer_file", tests, NULL, NULL);
}
