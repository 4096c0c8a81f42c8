/* The two files of a manifest: which is read, and which is written. */
#include "manifest_sample.h"

#include "support/simfs.h"

#define DIR "backup"

/* What stands in a copy: nothing, a generation, bytes that are none, another version. */
enum { NONE = 0, BAD = -1, NEWER = -2 };

static void put_copy(struct simfs *disk, int copy, int what)
{
    char path[32];

    snprintf(path, sizeof path, DIR "/manifest.%d", copy);
    if (what == NONE) return;
    if (what == BAD) {
        simfs_put(disk, path, "bad", 3);
        return;
    }
    made.generation = what == NEWER ? 9 : (uint64_t)what;
    assert_int_equal(weir__manifest_encode(&made, &bytes, &err), 0);
    if (what == NEWER) bytes.at[4] = 2;
    simfs_put(disk, path, bytes.at, bytes.len);
}

static void the_newer_good_copy_is_read(void **state)
{
    static const char version[] = "backup format version 2 is not known here (this weir writes 1)";
    static const struct {
        int what[2], rc, copy;
        enum weir__manifest_other other;
        const char *text; /* behind the path of the copy */
    } rows[] = {
        {{5, 5}, 0, 0, WEIR__MANIFEST_EQUAL, ""},
        {{4, 5}, 0, 1, WEIR__MANIFEST_OLDER, ""},
        {{6, 5}, 0, 0, WEIR__MANIFEST_OLDER, ""},
        {{5, NONE}, 0, 0, WEIR__MANIFEST_OLDER, ""},
        {{NONE, 5}, 0, 1, WEIR__MANIFEST_OLDER, ""},
        {{5, BAD}, 0, 0, WEIR__MANIFEST_BAD, ""},
        {{BAD, 5}, 0, 1, WEIR__MANIFEST_BAD, ""},
        {{NEWER, 5}, WEIR_EVERSION, 0, WEIR__MANIFEST_BAD, version},
        {{5, NEWER}, WEIR_EVERSION, 1, WEIR__MANIFEST_BAD, version},
        {{NEWER, BAD}, WEIR_EVERSION, 0, WEIR__MANIFEST_BAD, version},
        {{BAD, NEWER}, WEIR_EVERSION, 1, WEIR__MANIFEST_BAD, version},
        {{BAD, BAD}, WEIR_ECORRUPT, 1, WEIR__MANIFEST_BAD, "not a manifest"},
        {{BAD, NONE}, WEIR_ECORRUPT, 0, WEIR__MANIFEST_BAD, "not a manifest"},
        {{NONE, BAD}, WEIR_ECORRUPT, 1, WEIR__MANIFEST_BAD, "not a manifest"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct simfs *disk = simfs_new();
        enum weir__manifest_other other;
        struct weir__manifest got;
        char want[200];
        for (int copy = 0; copy < 2; copy++) put_copy(disk, copy, rows[i].what[copy]);
        err.text[0] = '\0';
        assert_int_equal(weir__manifest_load(simfs_fs(disk), DIR, &got, &other, &err), rows[i].rc);
        assert_int_equal(other, rows[i].other);
        snprintf(want, sizeof want, DIR "/manifest.%d: %s", rows[i].copy, rows[i].text);
        assert_string_equal(err.text, rows[i].rc ? want : "");
        assert_int_equal(got.hub_count, rows[i].rc == 0);
        if (rows[i].rc == 0) {
            assert_int_equal(got.copy, rows[i].copy);
            assert_int_equal(got.generation, rows[i].what[rows[i].copy]);
        }
        weir__manifest_fini(&got);
        simfs_free(disk);
    }
}

/* What cannot be read for the moment says nothing, so the other copy does not stand in for it; what
 * the disk cannot read is bad. */
static void a_short_want_is_no_damage(void **state)
{
    static const unsigned steps[] = {SIMFS_OPEN, SIMFS_SIZE, SIMFS_READ};
    struct simfs *disk = simfs_new();
    enum weir__manifest_other other;
    struct weir__manifest got;
    char want[100];

    (void)state;
    for (int copy = 0; copy < 2; copy++) put_copy(disk, copy, 4 + copy);
    for (int i = 0; i < 12; i++) {
        int which = i % 2, rc = i < 6 ? WEIR_EBUSY : WEIR_EIO;
        struct simfs_fault fault = {.kinds = steps[i / 2 % 3], .at = 1 + (uint64_t)which, .rc = rc};

        simfs_fail(disk, &fault);
        rc = weir__manifest_load(simfs_fs(disk), DIR, &got, &other, &err);
        simfs_fail(disk, NULL);
        assert_int_equal(other, WEIR__MANIFEST_BAD);
        assert_int_equal(rc, i < 6 ? WEIR_EBUSY : 0);
        snprintf(want, sizeof want, DIR "/manifest.%d: " DIR "/manifest.%d: simulated fault", which,
                 which);
        if (rc != 0) assert_string_equal(err.text, want);
        assert_int_equal(got.generation, rc != 0 ? 0 : 5 - which);
        weir__manifest_fini(&got);
    }
    assert_int_equal(simfs_open_files(disk), 0);
    simfs_free(disk);
}

/* The first copy of a generation is the one of its parity; a shorter one leaves nothing behind it. */
static void copies_are_written_in_turn(void **state)
{
    struct simfs *disk = simfs_new();
    struct weir__fs *fs = simfs_fs(disk);
    struct weir__manifest got;
    enum weir__manifest_other other;

    (void)state;
    assert_int_equal(weir__backup_make_dir(fs, DIR, &err), 0);
    assert_int_equal(weir__manifest_write(fs, DIR, &made, false, &err), 0);
    assert_int_equal(simfs_size(disk, DIR "/manifest.1"), bytes.len);
    assert_int_equal(weir__manifest_load(fs, DIR, &got, &other, &err), 0);
    assert_int_equal(other, WEIR__MANIFEST_OLDER);
    weir__manifest_fini(&got);
    assert_int_equal(weir__manifest_write(fs, DIR, &made, true, &err), 0);
    assert_int_equal(simfs_size(disk, DIR "/manifest.0"), bytes.len);
    weir__manifest_hub_fini(made.hubs);
    made.hub_count = 0;
    made.generation++;
    assert_int_equal(weir__manifest_write(fs, DIR, &made, false, &err), 0);
    assert_int_equal(weir__manifest_load(fs, DIR, &got, &other, &err), 0);
    assert_int_equal(got.copy, 0);
    assert_int_equal(got.generation, 6);
    weir__manifest_fini(&got);
    for (unsigned kind = 0; kind < 3; kind++) {
        static const unsigned kinds[] = {SIMFS_WRITE, SIMFS_SYNC, SIMFS_SYNC_DIR};
        simfs_fail(disk, &(struct simfs_fault){.kinds = kinds[kind], .at = 1, .rc = WEIR_EIO});
        assert_int_equal(weir__manifest_write(fs, DIR, &made, false, &err), WEIR_EUNKNOWN);
        assert_true(simfs_failed(disk));
        assert_memory_equal(err.text, "writing " DIR "/manifest.0: ", 27);
    }
    simfs_free(disk);
}

/* A path that is too long is not cut short. */
static void a_long_path_is_refused(void **state)
{
    struct simfs *disk = simfs_new();
    char dir[WEIR__BACKUP_PATH_BYTES] = "";

    (void)state;
    memset(dir, 'd', sizeof dir - sizeof "/manifest.");
    assert_int_equal(weir__manifest_write(simfs_fs(disk), dir, &made, false, &err), WEIR_ETOOBIG);
    assert_int_equal(simfs_calls(disk, SIMFS_ANY), 0);
    simfs_free(disk);
}

/* The copy that is there may be the only one. */
static void what_could_not_be_read_is_not_written(void **state)
{
    struct simfs *disk = simfs_new();

    (void)state;
    made.hubs[0].segments[0].extent = (struct weir__backup_extent){0};
    assert_int_equal(weir__manifest_write(simfs_fs(disk), DIR, &made, false, &err), WEIR_ECORRUPT);
    assert_string_equal(err.text, "writing " DIR "/manifest.1: hub 1 cannot be read");
    assert_int_equal(simfs_calls(disk, SIMFS_ANY), 0);
    simfs_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_newer_good_copy_is_read),
        TEST(a_short_want_is_no_damage),
        TEST(copies_are_written_in_turn),
        TEST(a_long_path_is_refused),
        TEST(what_could_not_be_read_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
