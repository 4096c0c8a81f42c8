/* backup_files_test.c - which files a backup takes, keeps and removes: by their names, to the letter. */
#include "hub/backup_manifest.h"
#include "hub/backup_world.h"
#include "hub/state.h"

#define HUB "/hub-0000000000000001"
#define FROM WORLD_DIR HUB "/"
#define COPY TO HUB "/"

static struct model m;
static struct weir__backup_result result;

static int set_up(void **state)
{
    (void)state;
    model_init(&m, 1, 0);
    model_publish(&m, 0, 0, 5);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

static void put(const char *path, const char *text)
{
    simfs_put(m.world.disk, path, text, strlen(text));
}

static bool is_there(const char *path)
{
    for (size_t i = 0; simfs_path(m.world.disk, i); i++)
        if (strcmp(simfs_path(m.world.disk, i), path) == 0) return true;
    return false;
}

static unsigned count(const char *begin, const char *part)
{
    unsigned n = 0;

    for (size_t i = 0; simfs_path(m.world.disk, i); i++) {
        const char *path = simfs_path(m.world.disk, i);
        n += strncmp(path, begin, strlen(begin)) == 0 && strstr(path, part) != NULL;
    }
    return n;
}

static void backup(void)
{
    if (model_backup(&m, m.world.disk, &result) != 0) fail_msg("%s", m.world.err.text);
}

/* Near misses are not copied, and are no harm. */
static void tables_are_known_by_their_names(void **state)
{
    static const char *const ours[] = {"producers-00000007.tab", "producers-.tab",
                                       "producers-3456789012345678901234567.tab"}; /* 39 bytes */
    static const char *const others[] = {"producers-00000007.tab.new",
                                         "Producers-00000007.tab",
                                         "producer-00000007.tab",
                                         ".tab",
                                         "xproducers-1.tab",
                                         "producers-34567890123456789012345678.tab"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, FROM "%s", ours[i]);
        put(path, "text");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(path, sizeof path, FROM "%s", others[i]);
        put(path, "text");
    }
    put(FROM "producers-00000008.tab", ""); /* nothing is in it yet */
    backup();
    assert_int_equal(count(COPY, ".tab"), 3);
    assert_int_equal(count(COPY, ".aux"), 3);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, COPY "%s", ours[i]);
        assert_true(is_there(path));
    }
}

static void find_aux(char out[128])
{
    assert_int_equal(count(COPY, ".aux"), 1);
    for (size_t i = 0; simfs_path(m.world.disk, i); i++)
        if (strstr(simfs_path(m.world.disk, i), ".aux"))
            snprintf(out, 128, "%s", simfs_path(m.world.disk, i));
}

/* What has not changed is not kept twice, nor under another name. */
static void a_table_that_is_the_same_stays(void **state)
{
    char first[128], then[128];

    (void)state;
    put(FROM "producers-00000007.tab", "text");
    backup();
    find_aux(first);
    backup();
    find_aux(then);
    assert_string_equal(then, first);
    put(FROM "producers-00000007.tab", "tixt");
    backup();
    find_aux(then);
    assert_string_not_equal(then, first);
    put(FROM "producers-00000007.tab", "tixty");
    backup();
    find_aux(first);
    assert_string_not_equal(then, first);
}

/* Two tables may say the same, and one may follow another: each has its name. */
static void tables_of_one_text_keep_their_names(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);
    struct weir__backup_options o = {.fs = fs};

    (void)state;
    put(FROM "producers-00000007.tab", "text");
    backup();
    put(FROM "producers-00000008.tab", "text");
    backup();
    assert_int_equal(count(COPY, ".aux"), 2);
    assert_int_equal(fs->ops->remove(fs, FROM "producers-00000007.tab", &m.world.err), 0);
    backup();
    assert_int_equal(count(COPY, ".aux"), 1);
    assert_false(is_there(COPY "producers-00000007.tab"));
    assert_true(is_there(COPY "producers-00000008.tab"));
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), 0);
    assert_int_equal(count("r", ".tab"), 1);
    assert_true(is_there("r" HUB "/producers-00000008.tab"));
}

/* What is beside them under its own name is for whoever looks into the folder. */
static void a_restore_takes_the_copies(void **state)
{
    struct weir__backup_options o = {.fs = simfs_fs(m.world.disk)};
    char got[8] = "";

    (void)state;
    put(FROM "producers-00000007.tab", "text");
    backup();
    put(COPY "producers-00000007.tab", "tixt");
    if (weir__backup_restore(TO, "r", &o, &result, &m.world.err) != 0)
        fail_msg("%s", m.world.err.text);
    assert_int_equal(simfs_peek(m.world.disk, "r" HUB "/producers-00000007.tab", got, 7, 0), 4);
    assert_string_equal(got, "text");
}

/* Which a check looks at, too. */
static void a_check_reads_the_copies(void **state)
{
    struct weir__backup_options o = {.fs = simfs_fs(m.world.disk)};
    char path[128];

    (void)state;
    put(FROM "producers-00000007.tab", "text");
    backup();
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    find_aux(path);
    put(path, "tixt");
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), WEIR_ECORRUPT);
}

/* A segment that the backup has lost is copied again. */
static void a_lost_copy_is_made_again(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);

    (void)state;
    backup();
    assert_int_equal(fs->ops->remove(fs, COPY "00000001.seg", &m.world.err), 0);
    backup();
    assert_int_equal(result.segments_copied, 1);
    assert_int_equal(result.segments_reused, 1); /* of the other hub */
    put(COPY "00000002.seg", "short");           /* as is one that has become another */
    backup();
    assert_int_equal(result.segments_copied, 1);
    assert_int_equal(result.segments_reused, 1);
    assert_int_equal(count(COPY, ".seg"), 1);
}

/* As soon as one of two was begun to be copied, both are replaced by a third. */
static void replace_tables(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    bool *done = user;
    struct weir__fs *fs = simfs_fs(disk);

    (void)call;
    if (entering || *done || count(COPY, ".aux") == 0) return;
    *done = true;
    simfs_hook(disk, NULL, NULL);
    fs->ops->remove(fs, FROM "producers-00000001.tab", NULL);
    fs->ops->remove(fs, FROM "producers-00000002.tab", NULL);
    put(FROM "producers-00000003.tab", "three");
}

static void a_table_may_go_meanwhile(void **state)
{
    bool done = false;

    (void)state;
    put(FROM "producers-00000001.tab", "one");
    put(FROM "producers-00000002.tab", "two");
    simfs_hook(m.world.disk, replace_tables, &done);
    backup();
    simfs_hook(m.world.disk, NULL, NULL);
    assert_true(done);
    assert_int_equal(count(COPY, ".tab"), 1);
    assert_true(is_there(COPY "producers-00000003.tab"));
    assert_int_equal(count(COPY, ".aux"), 1);
}

/* Others may keep something in the folder of a backup, unless it is called as ours is. */
static void only_our_own_is_swept(void **state)
{
    static const char *const kept[] = {TO "/hub-000000000000000/letter",
                                       TO "/hub-00000000000000011/letter",
                                       TO "/hub-000000000000000G/letter",
                                       TO "/hub-000000000000000F/letter",
                                       TO "/hubs-0000000000000001/letter",
                                       TO "/hub-0000000000000000/letter",
                                       TO "/letter",
                                       TO "/00000001.seg"};
    static const char *const swept[] = {TO "/hub-00000000000000ff/letter",
                                        TO "/hub-00000000000000ff/00000001.seg",
                                        COPY "00000099.seg",
                                        COPY "00000001.seg.old",
                                        COPY "1",
                                        COPY "99999999.aux",
                                        COPY "producers-00000009.tab",
                                        COPY "controls",
                                        COPY "letter"};

    (void)state;
    backup();
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) put(kept[i], "text");
    for (size_t i = 0; i < sizeof swept / sizeof swept[0]; i++) put(swept[i], "text");
    backup();
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (!is_there(kept[i])) fail_msg("%s is gone", kept[i]);
    for (size_t i = 0; i < sizeof swept / sizeof swept[0]; i++)
        if (is_there(swept[i])) fail_msg("%s is there", swept[i]);
    assert_int_equal(count(COPY, ".seg"), 1);
    assert_int_equal(
        weir__backup_check(TO, &(struct weir__backup_options){.fs = simfs_fs(m.world.disk)},
                           &result, &m.world.err),
        0);
}

/* An id is 32 hexadecimal digits; what is something else counts as none. */
static void ids_are_taken_whole_or_not(void **state)
{
    static const struct {
        const char *id;
        bool taken;
    } rows[] = {{"0123456789abcdef0123456789abcdef", true},
                {"0123456789abcdef0123456789abcde", false},
                {"0123456789abcdef0123456789abcdeg", false},
                {"0123456789ABCDEF0123456789abcdef", false},
                {"", false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct simfs *disk = simfs_clone(m.world.disk);
        char got[64] = "";

        simfs_put(disk, WORLD_DIR "/id", rows[i].id, strlen(rows[i].id));
        if (model_backup(&m, disk, &result) != 0) fail_msg("%s", m.world.err.text);
        simfs_peek(disk, TO "/id", got, sizeof got - 1, 0);
        assert_string_equal(got, rows[i].taken ? rows[i].id : "");
        /* A folder that has lost its id, or got one late, is no other folder. */
        simfs_put(disk, WORLD_DIR "/id", rows[!rows[i].taken ? 0 : 4].id,
                  strlen(rows[!rows[i].taken ? 0 : 4].id));
        assert_int_equal(model_backup(&m, disk, &result), 0);
        simfs_free(disk);
    }
}

/* The folder of a backup outlives a crash that follows at once. */
static void a_new_folder_is_durable(void **state)
{
    static const char *const dirs[] = {"new", "around/new"};
    struct weir__fs *fs = simfs_fs(m.world.disk);

    (void)state;
    assert_int_equal(weir__backup_make_dir(fs, "around", &m.world.err), 0);
    for (int i = 0; i < 2; i++) {
        struct simfs *after;

        assert_int_equal(weir__backup_make_dir(fs, dirs[i], &m.world.err), 0);
        after = simfs_crash(m.world.disk, SIMFS_KEEP_NONE, 0);
        assert_int_equal(simfs_fs(after)->ops->make_dir(simfs_fs(after), dirs[i], NULL),
                         WEIR_EEXIST);
        simfs_free(after);
    }
    put("locked/lock", ""); /* is as good as empty */
    if (weir__backup_run(WORLD_DIR, "locked", &(struct weir__backup_options){.fs = fs}, &result,
                         &m.world.err) != 0)
        fail_msg("%s", m.world.err.text);
}

/* A folder whose files cannot be listed is told, also when what is to be removed is elsewhere. */
static void what_cannot_be_listed_is_told(void **state)
{
    struct weir__manifest none = {0};
    uint64_t removed;

    (void)state;
    backup();
    simfs_fail(m.world.disk, &(struct simfs_fault){.kinds = SIMFS_LIST, .at = 1, .rc = WEIR_EIO});
    assert_int_equal(weir__backup_sweep(simfs_fs(m.world.disk), TO, &none, &removed, &m.world.err),
                     WEIR_EIO);
    simfs_fail(m.world.disk, NULL);
    assert_string_equal(m.world.err.text,
                        "removing old files from " TO ": " TO ": simulated fault");
}

/* What cannot be removed is told, in the folder of a hub that is kept and in one that is not. */
static void what_cannot_be_removed_is_told(void **state)
{
    static const char *const paths[] = {COPY "00000099.seg",
                                        TO "/hub-00000000000000ff/00000001.seg"};

    (void)state;
    backup();
    for (int i = 0; i < 2; i++) {
        put(paths[i], "text");
        simfs_fail(m.world.disk,
                   &(struct simfs_fault){.kinds = SIMFS_REMOVE, .at = 1, .rc = WEIR_EIO});
        assert_int_equal(model_backup(&m, m.world.disk, &result), WEIR_EIO);
        assert_true(simfs_failed(m.world.disk));
        simfs_fail(m.world.disk, NULL);
        assert_ptr_equal(strstr(m.world.err.text, "removing old files from " TO ": "),
                         m.world.err.text);
        assert_true(is_there(paths[i]));
        backup();
        assert_false(is_there(paths[i]));
    }
}

/* A path that is too long is not cut short and taken for another one. */
static void a_name_that_is_too_long_is_told(void **state)
{
    struct weir__manifest none = {0};
    char dir[WEIR__CATALOG_DIR_MAX + 1] = "", path[2 * WEIR__BACKUP_PATH_BYTES], name[201];
    int room;

    (void)state;
    memset(dir, 'd', sizeof dir - 1);
    memset(name, 'n', sizeof name);
    room =
        WEIR__BACKUP_PATH_BYTES - 1 - snprintf(path, sizeof path, "%s/hub-00000000000000ff/", dir);
    for (int more = 0; more < 2; more++) {
        snprintf(path, sizeof path, "%s/hub-00000000000000ff/%.*s", dir, room + more, name);
        put(path, "text");
        assert_int_equal(weir__backup_sweep(simfs_fs(m.world.disk), dir, &none, NULL, &m.world.err),
                         more ? WEIR_ETOOBIG : 0);
        assert_int_equal(is_there(path), more);
    }
}

/* Old files are gone for good; the folders of hubs that had none are left alone. */
static void what_was_swept_stays_away(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);
    struct weir__manifest manifest;
    enum weir__manifest_other other;
    uint64_t syncs, removed;
    struct simfs *after;

    (void)state;
    backup();
    assert_int_equal(weir__manifest_load(fs, TO, &manifest, &other, &m.world.err), 0);
    put(COPY "00000099.seg", "text");
    put(COPY "letter", "text");
    syncs = simfs_calls(m.world.disk, SIMFS_SYNC_DIR);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(weir__backup_sweep(fs, TO, &manifest, &removed, &m.world.err), 0);
        assert_int_equal(removed, i == 1);
        assert_int_equal(simfs_calls(m.world.disk, SIMFS_SYNC_DIR), syncs + 1);
    }
    after = simfs_crash(m.world.disk, SIMFS_KEEP_NONE, 0);
    assert_int_equal(simfs_peek(after, COPY "00000099.seg", &syncs, 1, 0), -1);
    assert_int_equal(simfs_peek(after, COPY "letter", &syncs, 1, 0), -1);
    simfs_free(after);
    weir__manifest_fini(&manifest);
}

static bool has_table(struct simfs *disk)
{
    const char *path;

    for (size_t i = 0; (path = simfs_path(disk, i)); i++)
        if (strncmp(path, "r/", 2) == 0 && strstr(path, "/producers-00000007.tab")) return true;
    return false;
}

/* Whatever fails on the way: a restore that says that it is done has brought the tables, and they outlive a
 * crash that follows at once. */
static void a_restored_table_is_durable(void **state)
{
    bool failed = true;

    (void)state;
    put(FROM "producers-00000007.tab", "ours");
    backup();
    for (uint64_t at = 1; failed; at++) {
        struct simfs *disk = simfs_clone(m.world.disk), *after;
        struct weir__backup_options o = {.fs = simfs_fs(disk)};

        simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_CHANGES, .at = at, .rc = WEIR_EIO});
        if (weir__backup_restore(TO, "r", &o, &result, &m.world.err) == 0) {
            after = simfs_crash(disk, SIMFS_KEEP_NONE, 0);
            if (!has_table(after)) fail_msg("call %d: the table is lost", (int)at);
            simfs_free(after);
        }
        failed = simfs_failed(disk);
        simfs_free(disk);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tables_are_known_by_their_names), TEST(a_table_that_is_the_same_stays),
        TEST(a_restore_takes_the_copies),      TEST(tables_of_one_text_keep_their_names),
        TEST(a_lost_copy_is_made_again),       TEST(a_check_reads_the_copies),
        TEST(a_table_may_go_meanwhile),        TEST(only_our_own_is_swept),
        TEST(ids_are_taken_whole_or_not),      TEST(a_new_folder_is_durable),
        TEST(a_restored_table_is_durable),     TEST(what_cannot_be_listed_is_told),
        TEST(what_cannot_be_removed_is_told),  TEST(a_name_that_is_too_long_is_told),
        TEST(what_was_swept_stays_away),
    };

    return cmocka_run_group_tests_name("backup_files", tests, NULL, NULL);
}
