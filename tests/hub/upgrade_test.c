/* upgrade_test.c - a folder of format version 1 becomes one of the newest, all of it at once. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "hub/world.h"
#include "support/format1.h"

#define REMOVED_AT                                                                                 \
    40u /* in a catalogue: the number of deleted hubs, which version 1 does not have */

static struct world w;
static struct history *history;

static uint32_t word_at(const char *path, uint64_t at)
{
    uint8_t bytes[4] = {0};

    assert_int_equal(simfs_peek(w.disk, path, bytes, sizeof bytes, at), sizeof bytes);
    return weir__load32(bytes);
}

static void make_catalog_old(const char *path)
{
    uint8_t file[4096];
    long len = simfs_peek(w.disk, path, file, sizeof file, 0);

    assert_in_range(len, REMOVED_AT + 4, sizeof file - 1);
    assert_int_equal(weir__load32(file + REMOVED_AT), 0);
    memmove(file + REMOVED_AT, file + REMOVED_AT + 4, (size_t)len - REMOVED_AT - 4);
    weir__store32(file + 8, 1);
    weir__store32(file + 12, (uint32_t)len - 36);
    weir__store32(file + 24, weir__crc32c(0, file + 32, (size_t)len - 36));
    weir__store32(file + 28, weir__crc32c(0, file, 28));
    simfs_put(w.disk, path, file, (size_t)len - 4);
}

/* Three hubs; the logs of the first two are old, and so is the catalogue. The name of the third is as
 * long as can be. */
static int set_up(void **state)
{
    char longest[WEIR__HUB_NAME_MAX + 1] = "";

    (void)state;
    memset(longest, 'n', WEIR__HUB_NAME_MAX);
    world_init(&w, simfs_new());
    history = history_new(5);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "homes", 5), 0);
    assert_int_equal(world_create(&w, "meters", 5), 0);
    assert_int_equal(world_create(&w, longest, 1), 0);
    assert_int_equal(world_close(&w), 0);
    format1_write(w.disk, WORLD_DIR "/hub-0000000000000001", 1, w.time.wall_ms - 1000, history);
    format1_write(w.disk, WORLD_DIR "/hub-0000000000000002", 2, w.time.wall_ms - 1000, history);
    make_catalog_old(WORLD_DIR "/catalog.0");
    make_catalog_old(WORLD_DIR "/catalog.1");
    return world_open(&w);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&w);
    history_free(history);
    return 0;
}

static void expect(int rc, uint32_t upgraded, uint32_t failed, bool catalog)
{
    struct weir__upgrade done;

    assert_int_equal(weir__namespace_upgrade(w.ns, &done, &w.err), rc);
    assert_int_equal(done.hubs, 3);
    assert_int_equal(done.hubs_upgraded, upgraded);
    assert_int_equal(done.hubs_failed, failed);
    assert_int_equal(done.catalog_upgraded, catalog);
}

static void everything_becomes_new(void **state)
{
    (void)state;
    assert_int_equal(word_at(WORLD_DIR "/catalog.0", 8), 1);
    expect(0, 2, 0, true);
    assert_int_equal(word_at(WORLD_DIR "/catalog.0", 8), 2);
    assert_int_equal(word_at(WORLD_DIR "/catalog.1", 8), 2);
    assert_int_equal(word_at(WORLD_DIR "/hub-0000000000000001/control", 8), 2);
    assert_int_equal(word_at(WORLD_DIR "/hub-0000000000000002/control", 8), 2);
    expect(0, 0, 0, false);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    expect(0, 0, 0, false);
}

/* The one that fails is told, and the catalogue waits for it. */
static void one_that_fails_stops_no_other(void **state)
{
    static const uint8_t strange[4] = {9};
    const char *control = WORLD_DIR "/hub-0000000000000001/control";
    uint8_t copy[4096];

    (void)state;
    for (uint64_t at = 0; at < 2 * sizeof copy; at += sizeof copy) {
        simfs_poke(w.disk, control, strange, sizeof strange, at + 8);
        simfs_peek(w.disk, control, copy, sizeof copy, at);
        weir__store32(copy + 4, weir__crc32c(0, copy + 8, sizeof copy - 8));
        simfs_poke(w.disk, control, copy, sizeof copy, at);
    }
    expect(WEIR_EVERSION, 1, 1, false);
    assert_non_null(strstr(w.err.text, "version 9"));
    assert_int_equal(word_at(WORLD_DIR "/catalog.0", 8), 1);
    assert_int_equal(word_at(WORLD_DIR "/hub-0000000000000002/control", 8), 2);
}

/* A log opens on a full disk, and is not new: that is said, and works when there is room. */
static void full_disk_upgrades_nothing(void **state)
{
    struct simfs_fault full = {.kinds = SIMFS_WRITE,
                               .at = 1,
                               .rc = WEIR_ENOSPACE,
                               .persistent = true};

    (void)state;
    simfs_fail(w.disk, &full);
    expect(WEIR_ENOSPACE, 0, 2, false);
    assert_non_null(strstr(w.err.text, "hub 'homes' is still of format version 1"));
    simfs_fail(w.disk, NULL);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    expect(0, 2, 0, true);
}

/* The sync of the new header fails: see catalog_file.c. */
static void expect_unknown_save(void)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 2, .rc = WEIR_EIO};

    simfs_fail(w.disk, &fault);
    expect(WEIR_EUNKNOWN, 0, 0, false);
    assert_true(simfs_failed(w.disk));
    simfs_fail(w.disk, NULL);
}

/* Then nobody knows which catalogue is there, so nothing may be put in its place before the folder
 * is opened again. */
static void no_catalogue_is_written_after_one_of_unknown_outcome(void **state)
{
    struct weir__upgrade done;

    (void)state;
    expect(0, 2, 0, true); /* the logs are new from here on */
    make_catalog_old(WORLD_DIR "/catalog.0");
    make_catalog_old(WORLD_DIR "/catalog.1");
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    weir__namespace_open_hubs(w.ns, NULL); /* so that only the catalogue is written */
    expect_unknown_save();
    assert_int_equal(weir__namespace_upgrade(w.ns, &done, &w.err), WEIR_EFAILED);
    assert_non_null(strstr(w.err.text, "has an unknown outcome"));
    assert_false(done.catalog_upgraded);
    assert_int_equal(word_at(WORLD_DIR "/catalog.0", 8), 1);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_upgrade(w.ns, &done, &w.err), 0);
    assert_int_equal(word_at(WORLD_DIR "/catalog.0", 8), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_becomes_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_fails_stops_no_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_disk_upgrades_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_catalogue_is_written_after_one_of_unknown_outcome,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests_name("upgrade", tests, NULL, NULL);
}
