/* Backups that were damaged, file by file, and restores that cannot be finished. */
#include "backup_world.h"
#include "hub/backup_manifest.h"

static struct model m;
static struct weir__backup_options o;
static struct weir__backup_result result;
static char last_line[512];

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)room;
    (void)user;
    if (level >= WEIR__WARN) snprintf(last_line, sizeof last_line, "%s", line);
}

static int set_up(void **state)
{
    struct weir__hub *hub;
    uint64_t id;

    (void)state;
    model_init(&m, 3, 0);
    assert_int_equal(weir__namespace_id(m.world.ns, (char[WEIR__NAMESPACE_ID_BYTES]){0},
                                        &m.world.err),
                     0);
    model_publish_some(&m, 6);
    assert_int_equal(weir__namespace_use(m.world.ns, "a", &hub, &m.world.err), 0);
    assert_int_equal(weir__hub_producer_new(hub, &id, &m.world.err), 0);
    weir__hub_release(hub);
    assert_int_equal(world_close(&m.world), 0);
    o = model_options(&m, m.world.disk);
    o.logger = (struct weir__logger){listen, NULL};
    return weir__backup_run(WORLD_DIR, TO, &o, &result, &m.world.err);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

static bool has(const char *path, const char *part)
{
    return strstr(path, part) != NULL;
}

/* Whether there is anything below a folder. */
static bool is_there(struct simfs *disk, const char *dir)
{
    for (size_t i = 0; simfs_path(disk, i); i++)
        if (strncmp(simfs_path(disk, i), dir, strlen(dir)) == 0) return true;
    return false;
}

static int check_on(struct simfs *disk)
{
    o.fs = simfs_fs(disk);
    last_line[0] = m.world.err.text[0] = '\0';
    return weir__backup_check(TO, &o, &result, &m.world.err);
}

static void assert_bad_manifest(int bad)
{
    char want[200];

    snprintf(want, sizeof want,
             "damage in " TO ": manifest.%d is bad, manifest.%d serves; the next run repairs it",
             bad, 1 - bad);
    assert_string_equal(last_line, want);
    assert_int_equal(result.damaged, 1);
}

/* A flipped bit in any file but the lock: a bad manifest has its other copy, everything else is told
 * by its name. What follows from the manifest is not needed to restore; the rest is, and without it
 * nothing is made. */
static void each_damaged_file_is_named(void **state)
{
    unsigned seen = 0;

    (void)state;
    for (size_t i = 0; simfs_path(m.world.disk, i); i++) {
        const char *path = simfs_path(m.world.disk, i);
        struct simfs *disk;
        bool needed = has(path, ".seg") || has(path, ".aux");
        int rc;

        if (strncmp(path, TO "/", strlen(TO "/")) != 0 || simfs_size(m.world.disk, path) < 8)
            continue;
        disk = simfs_clone(m.world.disk);
        simfs_flip(disk, path, 9);
        rc = check_on(disk);
        if (has(path, "manifest.")) {
            assert_int_equal(rc, 0);
            assert_bad_manifest(path[strlen(path) - 1] - '0');
        } else {
            assert_int_equal(rc, WEIR_ECORRUPT);
            if (!has(m.world.err.text, path)) fail_msg("%s: %s", path, m.world.err.text);
        }
        rc = weir__backup_restore(TO, "r", &o, &result, &m.world.err);
        assert_int_equal(rc, needed ? WEIR_ECORRUPT : 0);
        assert_int_equal(is_there(disk, "r/"), !needed);
        if (rc == 0) {
            struct standing is;
            assert_int_equal(result.events, m.lines[0][0].next + m.lines[0][1].next +
                                                m.lines[1][0].next + m.lines[1][1].next);
            model_check_folder(&m, disk, "r", &is);
        }
        seen |= 1u << (has(path, "manifest.")  ? 0
                       : has(path, ".seg")     ? 1
                       : has(path, "control")  ? 2
                       : has(path, "/catalog") ? 3
                       : has(path, "/id")      ? 4
                                               : 5);
        simfs_free(disk);
    }
    assert_int_equal(seen & 31, 31);
}

/* A manifest that is missing is one of a run that did not get to its end, where the files that follow
 * from it may be older; everything else is missed. */
static void each_missing_file_is_missed(void **state)
{
    (void)state;
    for (size_t i = 0; simfs_path(m.world.disk, i); i++) {
        const char *path = simfs_path(m.world.disk, i);
        struct simfs *disk;
        int rc;

        if (strncmp(path, TO "/", strlen(TO "/")) != 0 || simfs_size(m.world.disk, path) < 8)
            continue;
        disk = simfs_clone(m.world.disk);
        assert_int_equal(simfs_fs(disk)->ops->remove(simfs_fs(disk), path, &m.world.err), 0);
        rc = check_on(disk);
        assert_int_equal(rc, has(path, "manifest.") ? 0 : WEIR_ECORRUPT);
        if (rc == 0) {
            assert_int_equal(result.damaged, 0);
            simfs_flip(disk, TO "/id", 9);
            assert_int_equal(check_on(disk), 0);
            assert_string_equal(last_line, "the last run into " TO " did not get to its end; the "
                                           "next one will tidy up");
        } else if (has(path, ".seg")) {
            assert_memory_equal(m.world.err.text, "a file is missing: ", 19);
        }
        simfs_free(disk);
    }
}

static void what_the_disk_cannot_read_is_told(void **state)
{
    char want[200];

    (void)state;
    for (size_t i = 0; simfs_path(m.world.disk, i); i++) {
        const char *path = simfs_path(m.world.disk, i);
        if (strncmp(path, TO "/", strlen(TO "/")) != 0 || !has(path, ".seg")) continue;
        simfs_spoil(m.world.disk, path, 8192, 512);
        assert_int_equal(check_on(m.world.disk), WEIR_ECORRUPT);
        snprintf(want, sizeof want, "%s: the disk cannot read all of it", path);
        assert_string_equal(m.world.err.text, want);
        return;
    }
    fail();
}

static void assert_fails(int rc, int want, const char *text)
{
    assert_int_equal(rc, want);
    assert_string_equal(m.world.err.text, text);
}

static void refusals_say_why(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);
    struct weir__manifest none;

    (void)state;
    weir__manifest_init(&none);
    assert_int_equal(weir__backup_make_dir(fs, "begun", &m.world.err), 0);
    assert_int_equal(weir__manifest_write(fs, "begun", &none, false, &m.world.err), 0);
    assert_fails(weir__backup_check("begun", &o, &result, &m.world.err), WEIR_ENOTFOUND,
                 "no backup into begun was ever finished");
    assert_fails(weir__backup_check("nowhere", &o, &result, &m.world.err), WEIR_ENOTFOUND,
                 "nowhere is not a backup");
    assert_fails(weir__backup_restore("nowhere", "r", &o, &result, &m.world.err), WEIR_ENOTFOUND,
                 "nowhere is not a backup");
    assert_fails(weir__backup_restore(TO, WORLD_DIR, &o, &result, &m.world.err), WEIR_EEXIST,
                 WORLD_DIR " is not empty; restore into a new folder");
    simfs_put(m.world.disk, "locked/lock", "", 0); /* which is as good as empty */
    assert_int_equal(weir__backup_restore(TO, "locked", &o, &result, &m.world.err), 0);
}

/* While a run is at the backup, or somebody else at the target. */
static void what_somebody_is_at_is_left_alone(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);
    struct weir__file *lock;

    (void)state;
    assert_int_equal(fs->ops->open(fs, TO "/lock", WEIR__FS_LOCK, &lock, &m.world.err), 0);
    assert_int_equal(check_on(m.world.disk), WEIR_ELOCKED);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), WEIR_ELOCKED);
    assert_false(is_there(m.world.disk, "r/"));
    weir__file_close(lock);
    assert_int_equal(check_on(m.world.disk), 0);
    simfs_put(m.world.disk, "r/lock", "", 0);
    assert_int_equal(fs->ops->open(fs, "r/lock", WEIR__FS_LOCK, &lock, &m.world.err), 0);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), WEIR_ELOCKED);
    assert_true(is_there(m.world.disk, "r/lock"));
    assert_false(is_there(m.world.disk, "r/hub"));
    weir__file_close(lock);
    assert_int_equal(simfs_open_files(m.world.disk), 0);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), 0);
}

/* A path of a data folder, or of a backup, has 1024 bytes at most; a longer one is refused before anything is
 * made. */
static void paths_have_a_length(void **state)
{
    char path[1026] = "";

    (void)state;
    memset(path, 'p', 1025);
    assert_fails(weir__backup_restore(TO, path, &o, &result, &m.world.err), WEIR_ETOOBIG,
                 "the folder's path is too long");
    assert_false(is_there(m.world.disk, "ppp"));
    assert_fails(weir__backup_restore(path, "target", &o, &result, &m.world.err), WEIR_ETOOBIG,
                 "the folder's path is too long");
    assert_false(is_there(m.world.disk, "target"));
    assert_fails(weir__backup_run(WORLD_DIR, path, &o, &result, &m.world.err), WEIR_ETOOBIG,
                 "the folder's path is too long");
    assert_false(is_there(m.world.disk, "ppp"));
    assert_fails(weir__backup_run(path, "target", &o, &result, &m.world.err), WEIR_ETOOBIG,
                 "the folder's path has 1025 bytes, the most is 1024");
    assert_false(is_there(m.world.disk, "target"));
    path[1024] = '\0';
    assert_int_equal(weir__backup_restore(TO, path, &o, &result, &m.world.err), 0);
    path[0] = 'q';
    assert_int_equal(weir__backup_run(WORLD_DIR, path, &o, &result, &m.world.err), 0);
    assert_int_equal(weir__backup_check(path, &o, &result, &m.world.err), 0);
}

/* A medium that cannot be written to, so that no lock can be taken: the third file that is opened. */
static void a_backup_without_a_lock_is_read(void **state)
{
    (void)state;
    simfs_fail(m.world.disk, &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = 3, .rc = WEIR_EIO});
    assert_int_equal(check_on(m.world.disk), 0);
    assert_true(simfs_failed(m.world.disk));
    simfs_fail(m.world.disk, NULL);
    assert_int_equal(result.hubs, 2);
    assert_int_equal(result.damaged, 0);
    assert_string_equal(last_line, "");
}

/* A folder that the run made goes with it; one that was there, empty, is not its to remove. */
static void an_empty_folder_stays_when_a_run_fails(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);

    (void)state;
    for (int there = 0; there < 2; there++) {
        simfs_fail(m.world.disk,
                   &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = 6, .rc = WEIR_EIO});
        assert_fails(weir__backup_run(WORLD_DIR, "mine", &o, &result, &m.world.err), WEIR_EIO,
                     "mine/lock: simulated fault");
        simfs_fail(m.world.disk, NULL);
        assert_int_equal(fs->ops->make_dir(fs, "mine", NULL), there ? WEIR_EEXIST : 0);
    }
}

static int backup(const char *dir, const char *to)
{
    return weir__backup_run(dir, to, &o, &result, &m.world.err);
}

static void runs_that_are_refused_say_why(void **state)
{
    const struct weir__hub_config config = {.name = "a", .partitions = 2};
    struct weir__namespace *ns;

    (void)state;
    simfs_put(m.world.disk, "taken/letter", "x", 1);
    assert_fails(backup(WORLD_DIR, "taken"), WEIR_EINVAL,
                 "taken is not empty and not a backup; choose a new folder, or one that 'weir "
                 "backup' made");
    assert_fails(backup(WORLD_DIR, WORLD_DIR), WEIR_EINVAL,
                 WORLD_DIR " is a data folder, not a backup; choose a new folder, or one that "
                           "'weir backup' made");
    assert_fails(backup(WORLD_DIR, "no/such"), WEIR_EINVAL,
                 "no/such cannot be made: the folder around it is missing");
    assert_fails(backup("nowhere", "other"), WEIR_ENOTFOUND,
                 "no good catalogue: nowhere/catalog.0: no such file or folder; "
                 "nowhere/catalog.1: no such file or folder");
    assert_fails(backup(TO, "other"), WEIR_EINVAL,
                 "this is a backup, and using it would change it: make a folder of it with 'weir "
                 "restore'");
    assert_false(is_there(m.world.disk, "other"));
    assert_int_equal(weir__namespace_open(&ns, "second", &m.world.options, &m.world.err), 0);
    assert_int_equal(weir__namespace_id(ns, (char[WEIR__NAMESPACE_ID_BYTES]){0}, &m.world.err), 0);
    weir__namespace_close(ns, NULL);
    assert_fails(backup("second", TO), WEIR_EINVAL,
                 TO " is a backup of another folder than second; choose a new one");
    assert_int_equal(weir__namespace_open(&ns, "third", &m.world.options, &m.world.err), 0);
    assert_int_equal(weir__namespace_hub_create(ns, &config, &m.world.err), 0);
    weir__namespace_close(ns, NULL);
    assert_fails(backup("third", TO), WEIR_EINVAL, /* without an id, but with a hub of its own */
                 TO " is a backup of another folder than third; choose a new one");
    assert_int_equal(check_on(m.world.disk), 0); /* which none of them has changed */
}

/* A folder with hubs in it has lost its catalogue, which is another matter than that there is none. */
static void a_folder_without_its_catalogue_is_refused(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);

    (void)state;
    assert_int_equal(fs->ops->remove(fs, WORLD_DIR "/catalog.0", NULL), 0);
    assert_int_equal(fs->ops->remove(fs, WORLD_DIR "/catalog.1", NULL), 0);
    assert_fails(backup(WORLD_DIR, "other"), WEIR_ECORRUPT,
                 "there are hubs, but: no good catalogue: " WORLD_DIR
                 "/catalog.0: no such file or folder; " WORLD_DIR
                 "/catalog.1: no such file or folder");
    assert_false(is_there(m.world.disk, "other"));
}

static void lose_power(void)
{
    struct simfs *after = simfs_crash(m.world.disk, SIMFS_KEEP_NONE, 0);

    simfs_free(m.world.disk);
    m.world.disk = after;
    o = model_options(&m, after);
    m.world.options.fs = simfs_fs(after);
}

/* Power is lost as soon as a run says that it is done: all that it made is on the disk. */
static void what_is_done_outlives_a_crash(void **state)
{
    struct standing is;

    (void)state;
    for (int run = 0; run < 2; run++) {
        lose_power();
        assert_int_equal(check_on(m.world.disk), 0);
        assert_int_equal(result.damaged, 0);
        assert_int_equal(world_open(&m.world), 0);
        model_publish_some(&m, 3);
        assert_int_equal(world_create(&m.world, run ? "d" : "c", 1), 0);
        assert_int_equal(world_close(&m.world), 0);
        assert_int_equal(backup(WORLD_DIR, TO), 0);
    }
    lose_power();
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), 0);
    lose_power();
    model_check_folder(&m, m.world.disk, "r", &is);
    assert_int_equal(is.next[0][0], m.lines[0][0].next);
    assert_int_equal(is.next[1][1], m.lines[1][1].next);
}

static void assert_restorable(struct simfs *disk, uint64_t stopped_at)
{
    o = model_options(&m, disk);
    if (weir__backup_restore(TO, "r", &o, &result, &m.world.err) != 0)
        fail_msg("call %d: %s", (int)stopped_at, m.world.err.text);
    simfs_free(disk);
}

/* The manifest that a run would write over may be the only good one: wherever the run ends, there is a
 * backup. */
static void a_bad_manifest_is_made_good_first(void **state)
{
    bool stopped = true;
    uint64_t at;

    (void)state;
    assert_int_equal(world_open(&m.world), 0); /* so that the next manifest is another */
    model_publish_some(&m, 6);
    assert_int_equal(world_create(&m.world, "c", 1), 0);
    assert_int_equal(world_close(&m.world), 0);
    for (at = 1; stopped; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        simfs_put(disk, TO "/manifest.1", "garbage", 7); /* where generation 1 was written first */
        simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + at);
        o = model_options(&m, disk);
        stopped = weir__backup_run(WORLD_DIR, TO, &o, &result, &m.world.err) != 0;
        for (uint64_t n = 0; n < 4; n++)
            assert_restorable(simfs_crash(disk, SIMFS_KEEP_RANDOM, n), at);
        simfs_free(disk);
    }
    assert_true(at > 40);
}

/* A first run knows its own folder again wherever the one before ended. */
static void a_first_run_that_ends_anywhere_is_done_again(void **state)
{
    bool stopped = true;
    uint64_t at;

    (void)state;
    for (at = 1; stopped; at++) {
        struct simfs *disk = simfs_clone(m.world.disk), *after;

        simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + at);
        o = model_options(&m, disk);
        stopped = weir__backup_run(WORLD_DIR, "first", &o, &result, &m.world.err) != 0;
        for (uint64_t n = 0; n < 4; n++) {
            after = simfs_crash(disk, SIMFS_KEEP_RANDOM, n);
            o = model_options(&m, after);
            if (weir__backup_run(WORLD_DIR, "first", &o, &result, &m.world.err) != 0)
                fail_msg("call %d: %s", (int)at, m.world.err.text);
            simfs_free(after);
        }
        simfs_free(disk);
    }
    assert_true(at > 40);
}

/* What is out of reach for a restored hub is left alone: its ids would end. */
static void the_last_ids_of_producers_stay(void **state)
{
    static const uint64_t last = UINT64_C(1) << 52;
    struct weir__catalog_store store;
    struct weir__catalog c;

    (void)state;
    for (uint64_t less = 0; less < 2; less++) {
        const char *to = less ? "less" : "last", *dir = less ? "r1" : "r0";

        assert_int_equal(weir__catalog_store_init(&store, o.fs, WORLD_DIR, NULL, NULL), 0);
        assert_int_equal(weir__catalog_load(&store, &c, &m.world.err), 0);
        c.hubs[0].producers = last - less;
        c.generation++;
        assert_int_equal(weir__catalog_save(&store, &c, &m.world.err), 0);
        weir__catalog_fini(&c);
        assert_int_equal(weir__backup_run(WORLD_DIR, to, &o, &result, &m.world.err), 0);
        assert_int_equal(weir__backup_restore(to, dir, &o, &result, &m.world.err), 0);
        assert_int_equal(weir__catalog_store_init(&store, o.fs, dir, NULL, NULL), 0);
        assert_int_equal(weir__catalog_load(&store, &c, &m.world.err), 0);
        assert_int_equal(c.hubs[0].producers, less ? last - 1 + (1 << 20) : last);
        weir__catalog_fini(&c);
    }
}

/* Whoever published after the moment keeps its id for itself. */
static void ids_of_producers_are_passed_over(void **state)
{
    struct weir__namespace *ns;
    struct weir__hub *hub;
    uint64_t id;

    (void)state;
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), 0);
    assert_int_equal(weir__namespace_open(&ns, "r", &m.world.options, &m.world.err), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__namespace_use(ns, hub_names[i], &hub, &m.world.err), 0);
        assert_int_equal(weir__hub_producer_new(hub, &id, &m.world.err), 0);
        if (i == 0) assert_true(id >= UINT64_C(1) << 20);
        if (i == 1) assert_true(id < 1024); /* a hub that never had one */
        weir__hub_release(hub);
    }
    weir__namespace_close(ns, NULL);
}

/* Wherever a restore fails, it takes away what it has made; a folder that was there stays. */
static void what_fails_leaves_nothing(void **state)
{
    int rc = WEIR_EIO;
    uint64_t at = 1;

    (void)state;
    for (; rc != 0; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);
        bool there = at % 2;
        o.fs = simfs_fs(disk);
        if (there) assert_int_equal(weir__backup_make_dir(o.fs, "r", &m.world.err), 0);
        simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_CHANGES, .at = at, .rc = WEIR_EIO});
        rc = weir__backup_restore(TO, "r", &o, &result, &m.world.err);
        if (rc != 0 && (is_there(disk, "r/hub") || is_there(disk, "r/cat")))
            fail_msg("call %d left something", (int)at);
        simfs_fail(disk, NULL);
        if (rc != 0) assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), 0);
        simfs_free(disk);
    }
    assert_true(at > 20);
}

/* As a hand would do it that believes that only the catalogue is missing. */
static void put_catalogue(struct simfs *disk)
{
    for (int i = 0; i < WEIR__CATALOG_COPIES; i++) {
        static uint8_t bytes[64 << 10];
        char from[64], to[64];
        long len;

        snprintf(from, sizeof from, TO "/catalog.%d", i);
        snprintf(to, sizeof to, "r/catalog.%d", i);
        len = simfs_peek(disk, from, bytes, sizeof bytes, 0);
        assert_in_range(len, 1, sizeof bytes);
        simfs_put(disk, to, bytes, (size_t)len);
    }
}

/* Refused for what it is, by whoever opens it or restores into it; or every event is there. */
static bool is_refused(struct simfs *disk)
{
    struct weir__namespace_options options = m.world.options;
    struct weir__namespace *ns;
    struct standing is;

    options.fs = o.fs = simfs_fs(disk);
    options.must_exist = true;
    if (weir__namespace_open(&ns, "r", &options, &m.world.err) == 0) {
        assert_int_equal(weir__namespace_close(ns, &m.world.err), 0);
        model_check_folder(&m, disk, "r", &is);
        for (int p = 0; p < PARTITIONS; p++) assert_int_equal(is.next[0][p], m.lines[0][p].next);
        return false;
    }
    assert_string_equal(m.world.err.text, "opening r: " WEIR__CATALOG_RESTORING_TEXT);
    assert_fails(weir__backup_restore(TO, "r", &o, &result, &m.world.err), WEIR_EEXIST,
                 "r: " WEIR__CATALOG_RESTORING_TEXT);
    return true;
}

/* At any call, by a kill or by a loss of power. */
static void a_restore_that_is_cut_off_is_refused(void **state)
{
    int rc = WEIR_EIO, refused = 0;

    (void)state;
    for (uint64_t at = 1; rc != 0; at++) {
        struct simfs *disk = simfs_clone(m.world.disk), *left;

        simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + at);
        o.fs = simfs_fs(disk);
        rc = weir__backup_restore(TO, "r", &o, &result, &m.world.err);
        left = at % 2 ? simfs_clone(disk) : simfs_crash(disk, SIMFS_KEEP_RANDOM, at);
        if (is_there(left, "r/hub")) {
            put_catalogue(left);
            refused += is_refused(left);
        }
        simfs_free(left);
        simfs_free(disk);
    }
    assert_true(refused > 20);
}

/* A disk that says that it has written, and has something else. */
static void spoil_once(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    bool *done = user;

    if (*done || entering || call != SIMFS_SYNC_DIR) return;
    for (size_t i = 0; simfs_path(disk, i); i++) {
        const char *path = simfs_path(disk, i);
        if (strncmp(path, "r/", 2) != 0 || !has(path, ".seg")) continue;
        *done = true;
        simfs_flip(disk, path, 9);
        return;
    }
}

static void the_copy_is_read_again(void **state)
{
    bool done = false;

    (void)state;
    simfs_hook(m.world.disk, spoil_once, &done);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), WEIR_ECORRUPT);
    simfs_hook(m.world.disk, NULL, NULL);
    assert_true(done && has(m.world.err.text, "r/hub-"));
    assert_false(is_there(m.world.disk, "r/"));
}

/* Each segment once, and as many bytes as were backed up. */
static void what_was_read_is_counted(void **state)
{
    uint64_t segments = 0, bytes = result.bytes_copied;

    (void)state;
    for (size_t i = 0; simfs_path(m.world.disk, i); i++)
        segments +=
            has(simfs_path(m.world.disk, i), TO "/") && has(simfs_path(m.world.disk, i), ".seg");
    assert_int_equal(result.segments_copied, segments);
    assert_true(bytes > 0);
    assert_int_equal(check_on(m.world.disk), 0);
    assert_int_equal(result.segments_copied, segments);
    assert_int_equal(result.bytes_copied, bytes);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), 0);
    assert_int_equal(result.segments_copied, segments);
    assert_int_equal(result.bytes_copied, bytes);
    assert_int_equal(result.hubs, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_damaged_file_is_named),
        TEST(each_missing_file_is_missed),
        TEST(what_the_disk_cannot_read_is_told),
        TEST(refusals_say_why),
        TEST(runs_that_are_refused_say_why),
        TEST(what_is_done_outlives_a_crash),
        TEST(a_bad_manifest_is_made_good_first),
        TEST(a_first_run_that_ends_anywhere_is_done_again),
        TEST(a_folder_without_its_catalogue_is_refused),
        TEST(ids_of_producers_are_passed_over),
        TEST(the_last_ids_of_producers_stay),
        TEST(what_fails_leaves_nothing),
        TEST(the_copy_is_read_again),
        TEST(a_restore_that_is_cut_off_is_refused),
        TEST(what_was_read_is_counted),
        TEST(what_somebody_is_at_is_left_alone),
        TEST(paths_have_a_length),
        TEST(an_empty_folder_stays_when_a_run_fails),
        TEST(a_backup_without_a_lock_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
