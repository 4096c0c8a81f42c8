/* cut_test.c - unfinished writes that are saved aside, and which of them go with the segments of their
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "log/state.h"
#include "support/simfs.h"

#define BELOW 5000u
#define MANY 70

struct world {
    struct simfs *disk;
    struct weir__log *log;
};

static void put(struct world *w, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "log/%s", name);
    simfs_put(w->disk, path, "x", 1);
}

static int count_cuts(struct world *w)
{
    const char *path;
    int count = 0;

    for (size_t i = 0; (path = simfs_path(w->disk, i)) != NULL; i++)
        count += strstr(path, "/cut") != NULL;
    return count;
}

static bool has(struct world *w, const char *name)
{
    char path[256];
    uint8_t byte;

    snprintf(path, sizeof path, "log/%s", name);
    return simfs_peek(w->disk, path, &byte, 1, 0) >= 0;
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);
    struct weir__log_options o = {
        .dir = "log", .hub_id = 1, .partitions = 1, .retain_ms = -1, .no_threads = true};

    w->disk = simfs_new();
    o.fs = simfs_fs(w->disk);
    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&w->log, &o, NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    weir__log_close(w->log, NULL);
    simfs_free(w->disk);
    test_free(w);
    return 0;
}

/* Only what is named as one, of an older position. A name of 64 letters is too long for one. */
static void only_old_cuts_go(void **state)
{
    static const struct {
        const char *name;
        bool stays;
    } cases[] = {
        {"cut-4999-1.bin", false},
        {"cut-5000-1.bin", true},
        {"cut-5001-1.bin", true},
        {"cut-49999-1.bin", true},
        {"cut-7-1.bin", false},
        {"cut-8.bin", true},
        {"cut_7-1.bin", true},
        {"cuts-7-1.bin", true},
        {"cut-7-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"cut-8-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
    };
    struct world *w = *state;
    size_t count = sizeof cases / sizeof cases[0];

    assert_int_equal(strlen(cases[count - 1].name), 64);
    for (size_t i = 0; i < count; i++) put(w, cases[i].name);
    weir__cut_expire(w->log, BELOW);
    for (size_t i = 0; i < count; i++)
        if (has(w, cases[i].name) != cases[i].stays) fail_msg("%s", cases[i].name);
}

/* Very many take more than one look. */
static void many_go_in_turns(void **state)
{
    struct world *w = *state;
    char name[32];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "cut-%d-1.bin", 100 + i);
        put(w, name);
    }
    weir__cut_expire(w->log, BELOW);
    assert_int_equal(count_cuts(w), MANY - 64);
    weir__cut_expire(w->log, BELOW);
    assert_int_equal(count_cuts(w), 0);
}

/* ---- saving ---- */

#define SAVED "log/cut-1000000000008200-1.bin"
#define SAVED_AT 8200u                          /* in the segment: in the middle of a block */
#define SAVED_BYTES (65536u - 8192u - SAVED_AT) /* all that there can be behind it */

/* Saves what lies behind a place in a segment full of letters. */
static int save(struct world *w, uint8_t letters[SAVED_BYTES])
{
    struct weir__segment *seg = weir__log_active(w->log);
    struct weir__scan scan = weir__scan_active(w->log, false);
    int rc;

    assert_int_equal(seg->h.capacity, 65536);
    w->log->control.epoch = 1;
    for (size_t i = 0; i < SAVED_BYTES; i++) letters[i] = (uint8_t)('a' + i % 23);
    simfs_poke(w->disk, "log/00000001.seg", letters, SAVED_BYTES, SAVED_AT);
    scan.file = seg->file;
    assert_int_equal(weir__scan_init(&scan, NULL), 0);
    rc = weir__cut_save(w->log, &scan, seg->h.base + SAVED_AT, false, NULL);
    weir__scan_fini(&scan);
    return rc;
}

/* All of it outlives a loss of power; so does one that takes the place of one that was begun. */
static void what_is_saved_is_durable(void **state)
{
    static uint8_t want[SAVED_BYTES], got[SAVED_BYTES + 1];
    struct world *w = *state;

    for (int round = 0; round < 2; round++) {
        struct simfs *after;

        assert_int_equal(save(w, want), 0);
        after = simfs_crash(w->disk, SIMFS_KEEP_NONE, 0);
        assert_int_equal(simfs_peek(after, SAVED, got, sizeof got, 0), SAVED_BYTES);
        assert_memory_equal(got, want, SAVED_BYTES);
        simfs_free(after);
        simfs_put(w->disk, SAVED, "begun", 5);
    }
}

#define LARGE "log/cut-1000000000008200-2.bin"
#define GROUP WEIR__LOG_GROUP_BYTES_MAX

/* Of a large segment, as much as one group can have written, or one batch that is larger. */
static void as_much_as_one_write_is_saved(void **state)
{
    static uint8_t letters[GROUP + 8192], got[GROUP + 8192];
    const uint64_t torn[] = {0, GROUP - 8, GROUP, GROUP + 16};
    struct weir__log_options o = {.dir = "log",
                                  .hub_id = 1,
                                  .partitions = 1,
                                  .segment_bytes_min = 4 * GROUP,
                                  .segment_bytes_max = 4 * GROUP,
                                  .no_threads = true};
    struct world large = {.disk = simfs_new()};

    (void)state;
    o.fs = simfs_fs(large.disk);
    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&large.log, &o, NULL), 0);
    for (size_t i = 0; i < sizeof letters; i++) letters[i] = (uint8_t)('a' + i % 23);
    simfs_poke(large.disk, "log/00000001.seg", letters, sizeof letters, SAVED_AT);
    for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
        struct weir__scan scan = weir__scan_active(large.log, false);
        uint64_t want = torn[i] > GROUP ? torn[i] : GROUP;

        large.log->control.epoch = 2;
        scan.file = weir__log_active(large.log)->file;
        scan.torn_bytes = torn[i];
        assert_int_equal(weir__scan_init(&scan, NULL), 0);
        assert_int_equal(weir__cut_save(large.log, &scan, WEIR__LOG_ORIGIN + SAVED_AT, false, NULL),
                         0);
        weir__scan_fini(&scan);
        assert_int_equal(simfs_peek(large.disk, LARGE, got, sizeof got, 0), want);
        assert_int_equal(memcmp(got, letters, want), 0);
    }
    weir__log_close(large.log, NULL);
    simfs_free(large.disk);
}

/* A full disk does without, and nothing half is left. Another error is told. */
static void a_full_disk_does_without(void **state)
{
    static uint8_t letters[SAVED_BYTES];
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct world *w = *state;

    simfs_capacity(w->disk, simfs_used(w->disk));
    assert_int_equal(save(w, letters), 0);
    assert_int_equal(count_cuts(w), 0);
    simfs_capacity(w->disk, 0);
    simfs_fail(w->disk, &fault);
    assert_int_equal(save(w, letters), WEIR_EIO);
    fault.kinds = SIMFS_WRITE;
    simfs_fail(w->disk, &fault);
    assert_int_equal(save(w, letters), WEIR_EIO);
    simfs_fail(w->disk, NULL);
    assert_int_equal(save(w, letters), 0);
}

/* What the file does not have any more cannot be saved; the rest is. */
static void as_much_as_there_is_is_saved(void **state)
{
    static const uint64_t sizes[] = {SAVED_AT + 5000, SAVED_AT + 1, SAVED_AT,
                                     SAVED_AT - 1,    8192,         0};
    static uint8_t letters[SAVED_BYTES], got[SAVED_BYTES];
    struct world *w = *state;
    struct weir__segment *seg = weir__log_active(w->log);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir__scan scan = weir__scan_active(w->log, false);
        uint64_t left = sizes[i] > SAVED_AT ? sizes[i] - SAVED_AT : 0;

        assert_int_equal(seg->file->ops->allocate(seg->file, seg->h.capacity, NULL), 0);
        assert_int_equal(save(w, letters), 0);
        assert_int_equal(w->log->fs->ops->remove(w->log->fs, SAVED, NULL), 0);
        assert_int_equal(seg->file->ops->allocate(seg->file, sizes[i], NULL), 0);
        scan.file = seg->file;
        assert_int_equal(weir__scan_init(&scan, NULL), 0);
        assert_int_equal(weir__cut_save(w->log, &scan, seg->h.base + SAVED_AT, false, NULL), 0);
        weir__scan_fini(&scan);
        assert_int_equal(simfs_peek(w->disk, SAVED, got, sizeof got, 0), (long)left);
        if (left) assert_memory_equal(got, letters, left);
    }
    assert_int_equal(seg->file->ops->allocate(seg->file, seg->h.capacity, NULL), 0);
}

/* Bytes that the disk does not give are zeros in what is saved; that it is busy, or does not make a file,
 * is told. No file stays open. */
static void errors_are_told(void **state)
{
    static const struct {
        unsigned kinds;
        int rc;
    } cases[] = {{SIMFS_READ, WEIR_EBUSY},
                 {SIMFS_OPEN, WEIR_EIO},
                 {SIMFS_WRITE, WEIR_EBUSY},
                 {SIMFS_SYNC_DIR, WEIR_EIO}};
    static uint8_t letters[SAVED_BYTES], got[SAVED_BYTES];
    struct world *w = *state;
    int open_files = simfs_open_files(w->disk);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct simfs_fault fault = {.kinds = cases[i].kinds, .at = 1, .rc = cases[i].rc};

        simfs_fail(w->disk, &fault);
        assert_int_equal(save(w, letters), cases[i].rc);
        assert_int_equal(simfs_open_files(w->disk), open_files);
    }
    simfs_fail(w->disk, NULL);
    simfs_spoil(w->disk, "log/00000001.seg", SAVED_AT + 10, 1);
    assert_int_equal(save(w, letters), 0);
    assert_int_equal(simfs_open_files(w->disk), open_files);
    assert_int_equal(simfs_peek(w->disk, SAVED, got, sizeof got, 0), SAVED_BYTES);
    memset(letters, 0, 12288 - SAVED_AT); /* up to the end of the block */
    assert_memory_equal(got, letters, SAVED_BYTES);
    simfs_spoil(w->disk, "", 0, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(only_old_cuts_go),         CASE(many_go_in_turns),
        CASE(what_is_saved_is_durable), CASE(as_much_as_one_write_is_saved),
        CASE(a_full_disk_does_without), CASE(as_much_as_there_is_is_saved),
        CASE(errors_are_told),
    };

    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
