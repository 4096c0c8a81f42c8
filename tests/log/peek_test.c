/* peek_test.c - a folder is called unused only when no batch was ever appended to it, and a creation
 * that was cut always is. */
#include "log/peek.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/log.h"
#include "support/allocs.h"
#include "support/simfs.h"

#define DIR_NAME "log"
#define CONTROL DIR_NAME "/control"
#define CHOICES 24

static struct weir__log_options options_on(struct simfs *disk, uint32_t partitions)
{
    static struct simclock time = {.wall_ms = 1700000000000, .mono_ms = 1000};

    return (struct weir__log_options){.fs = simfs_fs(disk),
                                      .clock = simclock(&time),
                                      .dir = DIR_NAME,
                                      .hub_id = 77,
                                      .partitions = partitions,
                                      .no_threads = true,
                                      .segment_bytes_max = 1 << 20};
}

static struct weir__log_peek peek(struct simfs *disk)
{
    struct weir__log_peek out;
    struct weir_error err = {0};

    if (weir__log_peek(simfs_fs(disk), DIR_NAME, &out, &err) != 0) fail_msg("%s", err.text);
    return out;
}

/* A log that was opened; with an event in it, when wanted. */
static struct simfs *used_disk(uint32_t partitions, bool with_event)
{
    struct simfs *disk = simfs_new();
    struct weir__log_options o = options_on(disk, partitions);
    struct weir__log_batch batch = {.count = 1, .body = {weir__bytes_of("event", 5)}};
    struct weir__log *log;

    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&log, &o, NULL), 0);
    if (with_event) assert_int_equal(weir__log_append_wait(log, &batch, INT64_MAX, NULL, NULL), 0);
    assert_int_equal(weir__log_close(log, NULL), 0);
    return disk;
}

/* The simulated disk's own memory never runs out. */
static void spare_disk(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    (void)disk, (void)kind, (void)user;
    if (entering)
        allocs_pause();
    else
        allocs_resume();
}

/* The power fails at every call of a creation, and the disk keeps any part of it. */
static void a_cut_creation_is_unused(void **state)
{
    uint64_t images = 0, at = 0;
    int rc;

    (void)state;
    do {
        struct simfs *disk = simfs_new();
        struct weir__log_options o = options_on(disk, 700);
        simfs_stop(disk, ++at);
        rc = weir__log_create(&o, NULL);
        for (int keep = SIMFS_KEEP_NONE; keep <= SIMFS_KEEP_RANDOM; keep++)
            for (uint64_t n = 0; n < CHOICES; n++, images++) {
                struct simfs *left = simfs_crash(disk, (enum simfs_keep)keep, n);
                struct weir__log_peek out = {.used = true};
                int peeked = weir__log_peek(simfs_fs(left), DIR_NAME, &out, NULL);
                assert_true(peeked == 0 || peeked == WEIR_ENOTFOUND);
                assert_true(peeked != 0 || !out.used);
                simfs_free(left);
            }
        simfs_free(disk);
    } while (rc != 0);
    assert_true(at > 8 && images > 1000);
}

static void what_it_holds_is_told(void **state)
{
    static const uint32_t partitions[] = {1, 166, 1024}; /* copies of one block, two, seven */

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int bad = 0; bad < 3; bad++) {
            struct simfs *disk = used_disk(partitions[i], false);
            struct weir__log_peek out;
            if (bad)
                simfs_flip(disk, CONTROL, bad == 1 ? 200 : simfs_size(disk, CONTROL) * 4 + 200);
            out = peek(disk);
            assert_int_equal(out.hub_id, 77);
            assert_int_equal(out.partitions, partitions[i]);
            assert_int_equal(out.version, WEIR__LOG_FORMAT);
            assert_true(out.used); /* it was opened: there may have been events */
            simfs_free(disk);
        }
}

/* Whatever becomes of the control file, one event is enough. */
static void events_are_never_overlooked(void **state)
{
    static const uint8_t zeros[128 << 10];
    struct simfs *disk;

    (void)state;
    for (int i = 0; i < 4; i++) {
        disk = used_disk(4, true);
        assert_in_range(simfs_size(disk, CONTROL), 1, sizeof zeros);
        if (i == 0) simfs_put(disk, CONTROL, "", 0);
        if (i == 1) simfs_put(disk, CONTROL, zeros, simfs_size(disk, CONTROL));
        if (i == 2) simfs_put(disk, CONTROL, "garbage", 7);
        if (i == 3) simfs_fs(disk)->ops->remove(simfs_fs(disk), CONTROL, NULL);
        assert_true(peek(disk).used);
        assert_int_equal(peek(disk).partitions, 0);
        simfs_free(disk);
    }
}

/* A fault at any call may make it look used, never unused. */
static void faults_prove_nothing(void **state)
{
    bool struck = true;

    (void)state;
    for (uint64_t at = 1; struck; at++) {
        struct simfs_fault fault = {.kinds = SIMFS_ANY, .at = at, .rc = WEIR_EIO};
        struct simfs *disk = used_disk(4, true);
        struct weir__log_peek out = {.used = true};
        simfs_fail(disk, &fault);
        if (weir__log_peek(simfs_fs(disk), DIR_NAME, &out, NULL) == 0) assert_true(out.used);
        struck = simfs_failed(disk);
        simfs_free(disk);
    }
}

/* Nor when nothing at all can be read. */
static void an_unreadable_disk_proves_nothing(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_READ, .at = 1, .persistent = true, .rc = WEIR_EIO};
    static const uint8_t zeros[2 * WEIR__FS_BLOCK];
    struct simfs *disk = used_disk(2, true);

    (void)state;
    simfs_fail(disk, &fault);
    assert_true(peek(disk).used);
    assert_int_equal(peek(disk).hub_id, 0);
    simfs_put(disk, CONTROL, zeros, sizeof zeros); /* as of a creation that was cut */
    fault.kinds = SIMFS_SIZE;
    simfs_fail(disk, &fault);
    assert_true(peek(disk).used);
    simfs_free(disk);
}

static void strange_files_count_as_used(void **state)
{
    struct simfs *disk = simfs_new();
    struct weir_error err = {0};

    (void)state;
    simfs_put(disk, DIR_NAME "/00000001.seg", "", 0);
    assert_false(peek(disk).used);
    simfs_put(disk, CONTROL, "", 0);
    assert_false(peek(disk).used);
    simfs_put(disk, CONTROL, "garbage", 7); /* no creation leaves that */
    assert_true(peek(disk).used);
    simfs_put(disk, CONTROL, "", 0);
    simfs_put(disk, DIR_NAME "/notes", "", 0);
    assert_true(peek(disk).used);
    assert_int_equal(weir__log_peek(simfs_fs(disk), "none", &(struct weir__log_peek){0}, &err),
                     WEIR_ENOTFOUND);
    assert_memory_equal(err.text, "looking at log none: ", 21);
    simfs_free(disk);
}

/* One byte is enough, but for the places of a segment's two headers, and behind the first copy's place
 * in a control file that has nothing there. */
static void one_byte_makes_it_used(void **state)
{
    enum { BLOCK = WEIR__FS_BLOCK };
    static const struct {
        const char *name;
        size_t size, byte;
        bool used;
    } cases[] = {
        {"00000001.seg", 4 * BLOCK, 0, false},
        {"00000001.seg", 4 * BLOCK, BLOCK - 1, false},
        {"00000001.seg", 4 * BLOCK, BLOCK, true},
        {"00000001.seg", 4 * BLOCK, 2 * BLOCK, true},
        {"00000001.seg", 4 * BLOCK, 3 * BLOCK - 1, true},
        {"00000001.seg", 4 * BLOCK, 3 * BLOCK, false},
        {"00000001.seg", 2 * BLOCK, BLOCK, false},
        {"00000001.seg", 2 * BLOCK + 1, BLOCK, true},
        {"00000001.segs", 1, 0, true},
        {"control", 2 * BLOCK, 0, true},
        {"control", 2 * BLOCK, BLOCK - 1, true},
        {"control", 2 * BLOCK, BLOCK, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct simfs *disk = simfs_new();
        uint8_t bytes[4 * BLOCK] = {0};
        char path[64];

        snprintf(path, sizeof path, DIR_NAME "/%s", cases[i].name);
        bytes[cases[i].byte] = 1;
        simfs_put(disk, path, bytes, cases[i].size);
        if (peek(disk).used != cases[i].used) fail_msg("case %zu", i);
        simfs_free(disk);
    }
}

/* Want of memory is no answer. */
static void memory_is_wanted(void **state)
{
    struct simfs *disk = used_disk(4, false);
    struct weir__log_peek out;
    struct weir_error err = {0};
    uint64_t at = 0, failed = 0;
    int rc;

    (void)state;
    simfs_hook(disk, spare_disk, NULL);
    do {
        allocs_fail(++at);
        rc = weir__log_peek(simfs_fs(disk), DIR_NAME, &out, &err);
        failed += rc != 0;
        allocs_pause();
        if (allocs_failed()) {
            assert_int_equal(rc, WEIR_ENOMEM);
            assert_string_equal(err.text, "looking at log " DIR_NAME ": out of memory");
        }
        allocs_resume();
    } while (allocs_failed());
    allocs_fail(0);
    assert_int_equal(rc, 0);
    assert_true(failed >= 2 && out.used);
    simfs_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_creation_is_unused),
        cmocka_unit_test(what_it_holds_is_told),
        cmocka_unit_test(events_are_never_overlooked),
        cmocka_unit_test(faults_prove_nothing),
        cmocka_unit_test(an_unreadable_disk_proves_nothing),
        cmocka_unit_test(strange_files_count_as_used),
        cmocka_unit_test(one_byte_makes_it_used),
        cmocka_unit_test(memory_is_wanted),
    };

    return cmocka_run_group_tests_name("peek", tests, NULL, NULL);
}
