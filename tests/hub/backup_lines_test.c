/* backup_lines_test.c - what a backup says, word for word, about a folder that is not whole, and about a
 * backup that is not. */
#include "hub/backup_manifest.h"
#include "hub/backup_world.h"

#define HUB "/hub-0000000000000001"
#define LINES_MAX 8

static struct model m;
static struct weir__backup_options o;
static struct weir__backup_result result;
static char lines[LINES_MAX][512];
static int line_count;

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)user;
    if (level < WEIR__WARN) return;
    assert_string_equal(room, "backup");
    assert_true(line_count < LINES_MAX);
    snprintf(lines[line_count++], sizeof lines[0], "%s", line);
}

static int set_up(void **state)
{
    (void)state;
    model_init(&m, 1, 0);
    model_publish(&m, 0, 0, 5);
    model_publish(&m, 1, 0, 6);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

static int backup(struct simfs *disk)
{
    o = model_options(&m, disk);
    o.logger = (struct weir__logger){listen, NULL};
    line_count = 0;
    return weir__backup_run(WORLD_DIR, TO, &o, &result, &m.world.err);
}

static void assert_lines(int count, const char *first)
{
    assert_int_equal(line_count, count);
    assert_string_equal(lines[0], first);
}

/* ---- a folder that is older than its backup ---- */

static void an_older_folder_does_not_replace_a_newer_backup(void **state)
{
    struct standing before, is;

    (void)state;
    assert_int_equal(backup(m.world.disk), 0);
    assert_int_equal(model_restore(&m, m.world.disk, "older", &result), 0);
    model_publish(&m, 0, 0, 5);
    model_stand(&m, m.world.ns, &before);
    assert_int_equal(backup(m.world.disk), 0);
    line_count = 0;
    assert_int_equal(weir__backup_run("older", TO, &o, &result, &m.world.err), 0);
    assert_int_equal(result.left_out, 1);
    assert_int_equal(line_count, 2);
    assert_non_null(strstr(lines[1], "an older backup was restored, or its end is lost"));
    assert_int_equal(model_restore(&m, m.world.disk, "r", &result), 0);
    model_check_folder(&m, m.world.disk, "r", &is);
    assert_int_equal(is.next[0][0], before.next[0][0]);
    assert_int_equal(is.next[1][0], before.next[1][0]);
}

/* ---- a hub that cannot be read ---- */

enum loss { ZEROED, REMOVED, ANOTHERS, LOSSES };

static void lose_control(struct simfs *disk, enum loss how)
{
    static uint8_t bytes[256 << 10];
    const char *path = WORLD_DIR HUB "/control";
    long len = (long)simfs_size(disk, path);

    assert_in_range(len, 1, sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    if (how == ANOTHERS)
        len = simfs_peek(disk, WORLD_DIR "/hub-0000000000000002/control", bytes, sizeof bytes, 0);
    if (how == REMOVED)
        assert_int_equal(simfs_fs(disk)->ops->remove(simfs_fs(disk), path, NULL), 0);
    else
        simfs_put(disk, path, bytes, (size_t)len);
}

/* What a folder has: each of the two hubs, or the second alone. */
static void check_restored(struct simfs *disk, bool both)
{
    struct weir__namespace_options options = m.world.options;
    struct weir__namespace *ns;
    struct standing is;
    struct weir__hub *hub;

    assert_int_equal(model_restore(&m, disk, "r", &result), 0);
    if (both) {
        model_check_folder(&m, disk, "r", &is);
        assert_int_equal(is.next[0][0], 5);
        assert_int_equal(is.next[1][0], 6);
        return;
    }
    options.fs = simfs_fs(disk);
    assert_int_equal(weir__namespace_open(&ns, "r", &options, &m.world.err), 0);
    assert_int_equal(weir__namespace_use(ns, "a", &hub, &m.world.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_use(ns, "b", &hub, &m.world.err), 0);
    weir__hub_release(hub);
    assert_int_equal(weir__namespace_close(ns, &m.world.err), 0);
}

/* It does not keep the others from being backed up; the backup has it as it was, or not at all. */
static void a_hub_that_cannot_be_read(void **state)
{
    static const char *const texts[] = {"hub a cannot be read: it is not in the backup",
                                        "hub a cannot be read: the backup keeps what it had of it"};

    (void)state;
    for (int former = 0; former < 2; former++) {
        if (former) assert_int_equal(backup(m.world.disk), 0);
        for (int how = 0; how < LOSSES; how++) {
            struct simfs *disk = simfs_clone(m.world.disk);

            lose_control(disk, (enum loss)how);
            assert_int_equal(backup(disk), 0);
            assert_lines(2, texts[former]);
            assert_non_null(strstr(lines[1], "hub a: " WORLD_DIR HUB));
            assert_int_equal(result.left_out, 1);
            assert_int_equal(result.damaged, 0);
            assert_int_equal(result.hubs, 1 + former);
            check_restored(disk, former);
            simfs_free(disk);
        }
    }
}

/* A file that the disk cannot open is one hub's damage, wherever that can be told. */
static void a_file_that_cannot_be_opened(void **state)
{
    int left_out = 0;
    bool struck = true;

    (void)state;
    for (uint64_t at = 1; struck; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = at, .rc = WEIR_EIO});
        left_out += backup(disk) == 0 && result.left_out == 1 && line_count == 2;
        struck = simfs_failed(disk);
        simfs_free(disk);
    }
    assert_true(left_out >= HUBS);
}

/* A file that has gone when it is to be opened is no damage of what was copied: the run begins again,
 * leaves the hub out, or fails, and what it calls a backup can be restored. */
static void a_file_that_has_gone(void **state)
{
    int whole = 0;
    bool struck = true;

    (void)state;
    for (uint64_t at = 1; struck; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);
        struct simfs_fault fault = {.kinds = SIMFS_OPEN, .at = at, .rc = WEIR_ENOTFOUND};

        simfs_fail(disk, &fault);
        if (backup(disk) == 0) {
            struck = simfs_failed(disk);
            simfs_fail(disk, NULL);
            assert_int_equal(result.damaged, 0);
            assert_int_equal(result.hubs + result.left_out, HUBS);
            assert_int_equal(line_count, 2 * result.left_out);
            whole += result.left_out == 0;
            if (result.left_out == 0) assert_int_equal(result.segments_copied, HUBS); /* once */
            assert_int_equal(model_restore(&m, disk, "r", &result), 0);
        } else if (!strstr(m.world.err.text,
                           "manifest")) { /* which would be made when it has gone */
            assert_int_equal(m.world.err.code, WEIR_ENOTFOUND);
        }
        simfs_free(disk);
    }
    assert_true(whole > 30);
}

/* ---- orphans ---- */

static void copy_folder(uint64_t to)
{
    static const char *const files[] = {"control", "00000001.seg"};
    static uint8_t bytes[4 << 20];
    char path[128];

    for (int i = 0; i < 2; i++) {
        long len;

        snprintf(path, sizeof path, WORLD_DIR HUB "/%s", files[i]);
        len = simfs_peek(m.world.disk, path, bytes, sizeof bytes, 0);
        assert_in_range(len, 1, sizeof bytes - 1);
        snprintf(path, sizeof path, WORLD_DIR "/hub-%016llx/%s", (unsigned long long)to, files[i]);
        simfs_put(m.world.disk, path, bytes, (size_t)len);
    }
}

/* The catalogue does not know the hub any more, and not that it was deleted either. */
static void forget_hub(const char *name)
{
    struct weir__catalog_store store;
    struct weir__catalog c;

    assert_int_equal(world_close(&m.world), 0);
    assert_int_equal(weir__catalog_store_init(&store, simfs_fs(m.world.disk), WORLD_DIR, NULL,
                                              &m.world.err),
                     0);
    assert_int_equal(weir__catalog_load(&store, &c, &m.world.err), 0);
    weir__catalog_remove_hub(&c, weir__catalog_hub(&c, name));
    assert_int_equal(weir__catalog_save(&store, &c, &m.world.err), 0);
    weir__catalog_fini(&c);
}

static void orphans_are_told_of(void **state)
{
    (void)state;
    assert_int_equal(backup(m.world.disk), 0);
    assert_int_equal(line_count, 0);
    for (uint64_t i = 1; i < 3; i++) {
        copy_folder(8 + i);
        assert_int_equal(backup(m.world.disk), 0);
        assert_lines(1,
                     "orphans of " WORLD_DIR " are not in the backup; 'weir hub list' shows them");
        assert_int_equal(result.left_out, i);
    }
    forget_hub("b");
    assert_int_equal(backup(m.world.disk), WEIR_EINVAL);
    assert_string_equal(
        m.world.err.text,
        "hub-0000000000000002 is an orphan in " WORLD_DIR
        " and a hub of the backup, which would lose it: adopt it ('weir hub adopt 2 "
        "NAME'), remove it by hand, or choose a new folder");
    assert_int_equal(line_count, 0);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    assert_int_equal(result.hubs, HUBS);
}

/* ---- damage ---- */

static int backup_unread(const char *to)
{
    o = model_options(&m, m.world.disk);
    o.logger = (struct weir__logger){listen, NULL};
    o.no_verify = true;
    line_count = 0;
    return weir__backup_run(WORLD_DIR, to, &o, &result, &m.world.err);
}

#define DAMAGE "damage hub=a file=" WORLD_DIR HUB "/00000001.seg "
#define FLIPPED 20000u

/* Where it lies, in bytes of the file. */
static void damage_has_a_place(void **state)
{
    const char *path = WORLD_DIR HUB "/00000001.seg";
    struct simfs *disk;
    unsigned long long at, len;
    uint64_t segments;
    char text[200];

    (void)state;
    for (int i = 0; i < 60; i++) model_publish(&m, 0, 0, 150);
    disk = simfs_clone(m.world.disk);
    simfs_flip(disk, path, (uint64_t)8 * FLIPPED);
    assert_int_equal(backup(disk), 0);
    assert_int_equal(line_count, 1);
    assert_int_equal(sscanf(lines[0], DAMAGE "byte=%llu bytes=%llu: %199[^\n]", &at, &len, text),
                     3);
    assert_true(at <= FLIPPED && FLIPPED < at + len && len < 1 << 20);
    assert_int_equal(result.damaged, 1);
    segments = result.segments_copied;
    assert_int_equal(backup(disk), 0); /* which is known now, and does not pass for good */
    assert_int_equal(line_count, 0);
    assert_int_equal(result.damaged, 1);
    assert_int_equal(result.segments_reused, segments);
    assert_int_equal(result.segments_copied, 0);
    simfs_free(disk);
    simfs_spoil(m.world.disk, path, 40960, 1);
    simfs_spoil(m.world.disk, path, 49152, 1);
    assert_int_equal(backup(m.world.disk), 0);
    assert_true(line_count > 1);
    assert_string_equal(lines[0], DAMAGE "byte=0 bytes=8192: the disk cannot read all of it");
    assert_int_equal(result.damaged, line_count);
}

/* Of what is not read again, only that is known which shows by its length. */
static void a_cut_file_shows_without_reading(void **state)
{
    static uint8_t bytes[2 << 20];
    const char *path = WORLD_DIR HUB "/00000001.seg";
    char want[200];
    long len;

    (void)state;
    for (int i = 0; i < 120; i++) model_publish(&m, 0, 0, 150);
    len = simfs_peek(m.world.disk, path, bytes, sizeof bytes, 0);
    assert_in_range(len, 1, sizeof bytes - 1);
    assert_int_equal(backup_unread("whole"), 0);
    assert_int_equal(line_count, 0);
    assert_int_equal(result.damaged, 0);
    simfs_put(m.world.disk, path, bytes, (size_t)len - 4096);
    assert_int_equal(backup_unread("cut"), 0);
    snprintf(want, sizeof want, DAMAGE "byte=%ld bytes=4096: the file was cut", len - 4096);
    assert_lines(1, want);
    assert_int_equal(result.damaged, 1);
    assert_int_equal(weir__backup_check("cut", &o, &result, &m.world.err), 0);
    assert_int_equal(result.damaged, 1);
}

/* What has grown takes the place of its copy, unless it is damaged: nobody has looked where. */
static void a_cut_file_that_grew_is_not_taken(void **state)
{
    static uint8_t bytes[2 << 20];
    const char *path = WORLD_DIR HUB "/00000001.seg";
    long len;

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        assert_int_equal(backup_unread(TO), 0);
        assert_int_equal(result.left_out, 0);
        assert_int_equal(result.events, 11 + cut * 3);
        model_publish(&m, 0, 0, 3);
    }
    len = simfs_peek(m.world.disk, path, bytes, sizeof bytes, 0);
    simfs_put(m.world.disk, path, bytes, (size_t)len - 4096);
    assert_int_equal(backup_unread(TO), 0);
    assert_int_equal(result.left_out, 1);
    assert_int_equal(line_count, 3);
    assert_string_equal(lines[1], "hub a cannot be read: the backup keeps what it had of it");
    assert_non_null(strstr(lines[2], "hub a: segment 1 is damaged, and " TO HUB));
    assert_int_equal(result.events, 14);
}

/* A header that is there twice and bad once is told, and its segment taken: nothing of it is lost. */
static void a_segment_with_one_good_header_is_taken(void **state)
{
    (void)state;
    assert_int_equal(backup(m.world.disk), 0);
    model_publish(&m, 0, 0, 3);
    simfs_flip(m.world.disk, WORLD_DIR HUB "/00000001.seg", 8 * 20);
    assert_int_equal(backup(m.world.disk), 0);
    assert_int_equal(result.left_out, 0);
    assert_int_equal(result.damaged, 1);
    assert_int_equal(result.events, 14);
    assert_int_equal(line_count, 1);
    assert_memory_equal(lines[0], DAMAGE "byte=0 ", strlen(DAMAGE "byte=0 "));
}

/* The second backup has what the folder has lost. */
static void lost_segments_are_counted(void **state)
{
    static const char none[] =
        "damage hub=a: 1 segments of " WORLD_DIR HUB " have no readable file";
    struct weir__fs *fs = simfs_fs(m.world.disk);
    uint64_t reused;

    (void)state;
    for (int i = 0; i < 120; i++) model_publish(&m, 0, 0, 150);
    assert_int_equal(backup(m.world.disk), 0);
    assert_int_equal(backup(m.world.disk), 0);
    reused = result.bytes_reused;
    assert_int_equal(fs->ops->remove(fs, WORLD_DIR HUB "/00000001.seg", NULL), 0);
    assert_int_equal(backup(m.world.disk), 0);
    assert_lines(2, none);
    assert_string_equal(lines[1], "hub=a: segment 1 stays as the backup has it, which is good");
    assert_int_equal(result.damaged, 0);
    assert_int_equal(result.bytes_reused, reused);
    assert_int_equal(result.segments_copied, 0);
    assert_int_equal(weir__backup_run(WORLD_DIR, "second", &o, &result, &m.world.err), 0);
    assert_int_equal(result.damaged, 1);
    assert_int_equal(line_count, 3);
    assert_string_equal(lines[2], none);
}

/* ---- a backup that is not whole ---- */

static void spoil_manifests(int version)
{
    for (int i = 0; i < 2; i++) {
        char path[32];
        uint8_t word[4];

        snprintf(path, sizeof path, TO "/manifest.%d", i);
        weir__store32(word, (uint32_t)version);
        simfs_poke(m.world.disk, path, word, 4, version ? 4 : 0);
    }
}

/* Somebody may still find something in it. */
static void a_damaged_backup_is_not_written_over(void **state)
{
    uint64_t before;

    (void)state;
    assert_int_equal(backup(m.world.disk), 0);
    spoil_manifests(2);
    before = simfs_hash(m.world.disk);
    assert_int_equal(backup(m.world.disk), WEIR_EVERSION);
    assert_string_equal(m.world.err.text,
                        TO "/manifest.0: backup format version 2 is not known here "
                           "(this weir writes 1)");
    assert_int_equal(simfs_hash(m.world.disk), before);
    spoil_manifests(0);
    before = simfs_hash(m.world.disk);
    assert_int_equal(backup(m.world.disk), WEIR_EINVAL);
    assert_string_equal(m.world.err.text,
                        "the backup is damaged: remove it, or choose a new folder: " TO
                        "/manifest.1: not a manifest");
    assert_int_equal(simfs_hash(m.world.disk), before);
    simfs_put(m.world.disk, "letters/manifest.0", "", 0); /* either of them is enough */
    simfs_put(m.world.disk, "letters/letter", "x", 1);
    simfs_put(m.world.disk, "data2/manifest.1", "", 0);
    simfs_put(m.world.disk, "data2/catalog.0", "x", 1);
    assert_int_equal(weir__backup_run(WORLD_DIR, "letters", &o, &result, &m.world.err),
                     WEIR_EINVAL);
    assert_int_equal(weir__backup_run(WORLD_DIR, "data2", &o, &result, &m.world.err), WEIR_EINVAL);
    assert_memory_equal(m.world.err.text, "the backup is damaged: ", 23);
    simfs_put(m.world.disk, "begun/manifest.0", "", 0); /* by a run that ended at once */
    assert_int_equal(weir__backup_run(WORLD_DIR, "begun", &o, &result, &m.world.err), 0);
}

/* Of the newer copy of a control file. */
static uint64_t control_generation(const char *path)
{
    uint8_t bytes[2][8] = {{0}};
    uint64_t a, b;

    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(simfs_peek(m.world.disk, path, bytes[i], 8, i * (64 << 10) + 24), 8);
    a = weir__load64(bytes[0]);
    b = weir__load64(bytes[1]);
    return a > b ? a : b;
}

/* Each run is a generation, which both copies of the manifest have at its end, and two of a control
 * file that it writes. */
static void runs_are_counted(void **state)
{
    struct weir__manifest manifest;
    enum weir__manifest_other other;

    (void)state;
    for (uint64_t run = 1; run < 4; run++) {
        assert_int_equal(backup(m.world.disk), 0);
        assert_int_equal(weir__manifest_load(simfs_fs(m.world.disk), TO, &manifest, &other,
                                             &m.world.err),
                         0);
        assert_int_equal(manifest.generation, run);
        assert_int_equal(other, WEIR__MANIFEST_EQUAL);
        weir__manifest_fini(&manifest);
        assert_int_equal(control_generation(TO HUB "/control"), 2 * run + 2);
        model_publish(&m, 0, 0, 1);
    }
}

/* An earlier run has ended between the manifest and what follows from it. */
static void an_unfinished_backup_is_finished(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);

    (void)state;
    assert_int_equal(backup(m.world.disk), 0);
    assert_int_equal(fs->ops->remove(fs, TO "/manifest.0", NULL),
                     0); /* generation 1 is the other */
    simfs_flip(m.world.disk, TO HUB "/control", 8 * 48);
    simfs_flip(m.world.disk, TO HUB "/control", 8 * ((64 << 10) + 48));
    assert_int_equal(backup(m.world.disk), 0);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_older_folder_does_not_replace_a_newer_backup),
        TEST(a_hub_that_cannot_be_read),
        TEST(a_file_that_cannot_be_opened),
        TEST(a_file_that_has_gone),
        TEST(orphans_are_told_of),
        TEST(damage_has_a_place),
        TEST(a_cut_file_shows_without_reading),
        TEST(a_cut_file_that_grew_is_not_taken),
        TEST(a_segment_with_one_good_header_is_taken),
        TEST(lost_segments_are_counted),
        TEST(a_damaged_backup_is_not_written_over),
        TEST(runs_are_counted),
        TEST(an_unfinished_backup_is_finished),
    };

    return cmocka_run_group_tests_name("backup_lines", tests, NULL, NULL);
}
