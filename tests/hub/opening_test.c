/* opening_test.c - which folders an opening takes for hubs of its own, and what is said when a data folder
 * cannot be opened, kept up or closed. */
#define _GNU_SOURCE
#include "hub/namespace.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/thread.h"
#include "hub/world.h"
#include "support/calls.h"
#include "support/tempdir.h"

#define PATIENCE_MS 20000 /* for what must happen */

static struct world w;

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    return world_open(&w);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&w);
    return 0;
}

static void assert_fails(int rc, int want, const char *text)
{
    assert_int_equal(rc, want);
    assert_int_equal(w.err.code, want);
    assert_string_equal(w.err.text, text);
}

static bool is_there(const char *path)
{
    return simfs_peek(w.disk, path, &(char){0}, 1, 0) >= 0;
}

/* One that was never used goes, when its name is one that we give. */
static void folders_are_known_by_their_names(void **state)
{
    static const struct {
        const char *file;
        bool ours;
    } rows[] = {{WORLD_DIR "/hub-0000000000000001/00000001.seg", true},
                {WORLD_DIR "/hub-00000000000000af/00000001.seg", true},
                {WORLD_DIR "/hub-0000000000000000/00000001.seg", false},
                {WORLD_DIR "/hub-00000000000000aF/00000001.seg", false},
                {WORLD_DIR "/hub-00000000000000ag/00000001.seg", false},
                {WORLD_DIR "/hub-000000000000001/00000001.seg", false},
                {WORLD_DIR "/hub-00000000000000011/00000001.seg", false},
                {WORLD_DIR "/bub-0000000000000001/00000001.seg", false},
                {WORLD_DIR "/hub0-000000000000001/00000001.seg", false},
                {WORLD_DIR "/hub-8000000000000000/00000001.seg", false}};

    (void)state;
    assert_int_equal(world_close(&w), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        simfs_put(w.disk, rows[i].file, "x", 1);
    assert_int_equal(world_open(&w), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (is_there(rows[i].file) == rows[i].ours) fail_msg("%s", rows[i].file);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_true(
        is_there(WORLD_DIR "/hub-00000000000000b0/control")); /* behind all that were there */
}

/* Ids are not used again, so the largest is the end of them. */
static void the_largest_id_is_the_last(void **state)
{
    (void)state;
    assert_int_equal(world_close(&w), 0);
    simfs_put(w.disk, WORLD_DIR "/hub-7fffffffffffffff/00000001.seg", "x", 1);
    assert_int_equal(world_open(&w), 0);
    assert_false(is_there(WORLD_DIR "/hub-7fffffffffffffff/00000001.seg"));
    assert_fails(world_create(&w, "homes", 1), WEIR_ELIMIT,
                 "creating hub 'homes': every hub id has been used");
}

/* An orphan that somebody asks for is told of until they have had enough. */
static int take_two(const struct weir__orphan *orphan, void *user)
{
    (void)orphan;
    return ++*(int *)user == 2 ? 77 : 0;
}

static void a_list_ends_when_told_to(void **state)
{
    int seen = 0;

    (void)state;
    assert_int_equal(world_close(&w), 0);
    for (int i = 1; i < 4; i++) {
        char path[64];

        snprintf(path, sizeof path, WORLD_DIR "/hub-%016d/control", i);
        simfs_put(w.disk, path, "garbage", 7);
    }
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_orphan_each(w.ns, take_two, &seen), 77);
    assert_int_equal(seen, 2);
}

static void batches_have_a_ceiling(void **state)
{
    (void)state;
    assert_int_equal(world_close(&w), 0);
    w.options.batch_bytes_max = (19 << 20) + 1;
    assert_fails(world_open(&w), WEIR_EINVAL,
                 "opening " WORLD_DIR ": batch_bytes_max is 19922945, the most is 19922944");
    w.options.batch_bytes_max = 19 << 20;
    assert_int_equal(world_open(&w), 0);
}

/* An opening that makes nothing looks twice, and tells once. */
static void a_bad_copy_is_told_once(void **state)
{
    (void)state;
    w.options.must_exist = true;
    for (int which = 0; which < 2; which++) {
        assert_int_equal(world_close(&w), 0);
        simfs_put(w.disk, which ? WORLD_DIR "/catalog.1" : WORLD_DIR "/catalog.0", "garbage", 7);
        w.warnings = w.errors = 0;
        assert_int_equal(world_open(&w), 0);
        assert_int_equal(w.warnings + w.errors, 1);
    }
}

/* A folder that has lost its catalogue is not one that is not there. */
static void a_lost_catalogue_is_told(void **state)
{
    static const char *const paths[] = {WORLD_DIR "/catalog.0", WORLD_DIR "/catalog.1"};

    (void)state;
    w.options.must_exist = true;
    for (int hubs = 0; hubs < 2; hubs++) {
        if (hubs) assert_int_equal(world_create(&w, "homes", 1), 0);
        assert_int_equal(world_close(&w), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(w.options.fs->ops->remove(w.options.fs, paths[i], NULL), 0);
        assert_fails(world_open(&w), hubs ? WEIR_ECORRUPT : WEIR_ENOTFOUND,
                     hubs ? "opening " WORLD_DIR
                            ": there are hubs, but: no good catalogue: " WORLD_DIR
                            "/catalog.0: no such file or folder; " WORLD_DIR
                            "/catalog.1: no such file or folder"
                          : "opening " WORLD_DIR ": no good catalogue: " WORLD_DIR
                            "/catalog.0: no such file or folder; " WORLD_DIR
                            "/catalog.1: no such file or folder");
        w.options.must_exist = hubs;
        if (!hubs) assert_int_equal(world_open(&w), 0);
        w.options.must_exist = true;
    }
}

static void assert_equal_copies(void)
{
    static uint8_t copy[2][8192];
    long len = simfs_peek(w.disk, WORLD_DIR "/catalog.0", copy[0], sizeof copy[0], 0);

    assert_in_range(len, 1, sizeof copy[0] - 1);
    assert_int_equal(simfs_peek(w.disk, WORLD_DIR "/catalog.1", copy[1], sizeof copy[1], 0), len);
    assert_memory_equal(copy[0], copy[1], (size_t)len);
}

/* Two hubs with something to write down. */
static void publish_to_both(void)
{
    static const char *const names[] = {"homes", "meters"};

    for (int i = 0; i < 2; i++) {
        struct weir__hub *hub;

        assert_int_equal(world_create(&w, names[i], 1), 0);
        assert_int_equal(weir__namespace_use(w.ns, names[i], &hub, &w.err), 0);
        assert_int_equal(world_publish(&w, hub, 0, "x", 1, NULL), 0);
        weir__hub_release(hub);
    }
}

/* Without threads none is needed, for whatever is done. */
static void a_namespace_without_threads_starts_none(void **state)
{
    uint32_t failed = 9;

    (void)state;
    calls_limit_threads(0);
    publish_to_both();
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    weir__namespace_open_hubs(w.ns, &failed);
    assert_int_equal(failed, 0);
    assert_int_equal(weir__namespace_step(w.ns, &w.err), 0);
    assert_int_equal(world_close(&w), 0);
    calls_limit_threads(-1);
}

/* Whoever comes to the disk waits there until a helper has come, too. */
struct meeting {
    struct weir__mutex lock;
    struct weir__cond changed;
    int64_t deadline_ns;
    bool came;
};

static void await_helper(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct meeting *m = user;
    char name[16] = "";

    (void)disk, (void)call;
    if (!entering) return;
    pthread_getname_np(pthread_self(), name, sizeof name);
    weir__mutex_lock(&m->lock);
    m->came = m->came || strcmp(name, "weir-open") == 0;
    if (m->came) weir__cond_broadcast(&m->changed);
    while (!m->came && weir__cond_wait(&m->changed, &m->lock, m->deadline_ns)) continue;
    weir__mutex_unlock(&m->lock);
}

/* One waits for the disk while another does. */
static void several_hubs_are_opened_at_once(void **state)
{
    struct meeting m = {.deadline_ns = weir__deadline_ns(PATIENCE_MS)};
    uint32_t failed = 9;

    (void)state;
    weir__mutex_init(&m.lock);
    weir__cond_init(&m.changed);
    publish_to_both();
    assert_int_equal(world_close(&w), 0);
    w.options.no_threads = false;
    assert_int_equal(world_open(&w), 0);
    simfs_hook(w.disk, await_helper, &m);
    weir__namespace_open_hubs(w.ns, &failed);
    assert_int_equal(world_close(&w), 0); /* ends every thread that may wait there */
    simfs_hook(w.disk, NULL, NULL);
    assert_int_equal(failed, 0);
    assert_true(m.came);
    weir__cond_fini(&m.changed);
    weir__mutex_fini(&m.lock);
}

/* As they were made, and $Default. */
static void groups_are_there_after_a_reopen(void **state)
{
    static const char *const groups[] = {"one", "two", "three"};
    const struct weir__hub_config config = {.name = "homes",
                                            .partitions = 1,
                                            .groups = groups,
                                            .group_count = 3};
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(weir__namespace_hub_create(w.ns, &config, &w.err), 0);
    for (int reopened = 0; reopened < 2; reopened++) {
        assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
        for (int i = 0; i < 4; i++) {
            const struct weir__receiver_options o = {.group = i < 3 ? groups[i] : NULL};
            struct weir__receiver *r;

            assert_int_equal(weir__receiver_attach(&r, hub, &o, &w.err), 0);
            weir__receiver_close(r);
        }
        weir__hub_release(hub);
        assert_int_equal(world_close(&w), 0);
        assert_int_equal(world_open(&w), 0);
    }
}

/* The first catalogue, too, is there twice. */
static void a_first_catalogue_is_made_up_for(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_WRITE, .at = 3, .rc = WEIR_EIO};

    (void)state;
    assert_int_equal(world_close(&w), 0);
    simfs_free(w.disk);
    world_init(&w, simfs_new());
    simfs_fail(w.disk, &fault);
    assert_int_equal(world_open(&w), 0);
    assert_true(simfs_failed(w.disk));
    assert_int_equal(w.warnings, 1);
    assert_equal_copies();
}

/* Nothing can be missing from a first catalogue, so the one copy of it is not an old one. */
static void one_copy_of_a_first_catalogue_is_enough(void **state)
{
    static const char *const paths[] = {WORLD_DIR "/catalog.0", WORLD_DIR "/catalog.1"};

    (void)state;
    for (int changed = 0; changed < 2; changed++) {
        if (changed) assert_int_equal(world_create(&w, "homes", 1), 0);
        for (int i = 0; i < 2; i++) {
            w.warnings = w.errors = 0;
            assert_int_equal(world_close(&w), 0);
            assert_int_equal(w.options.fs->ops->remove(w.options.fs, paths[i], NULL), 0);
            assert_int_equal(world_open(&w), 0);
            assert_int_equal(w.warnings, !changed);
            assert_int_equal(w.errors, changed);
            assert_equal_copies();
        }
    }
}

/* In a folder of the machine, with slashes as somebody may write them. */
static void a_folder_is_made_inside_another(void **state)
{
    static const char *const names[] = {"a", "b/", "c//", "/d"};
    struct weir__namespace *made;
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 8];

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    w.options.fs = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(weir__namespace_open(&made, path, &w.options, &w.err), 0);
        assert_int_equal(weir__namespace_close(made, &w.err), 0);
    }
    tempdir_remove(dir);
}

/* Where nobody can see whether there are hubs, no first catalogue is made. */
static void a_folder_that_cannot_be_listed_is_not_begun(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_LIST, .at = 1, .rc = WEIR_EIO};
    struct weir__namespace *fresh;

    (void)state;
    for (int told = 0; told < 2; told++) {
        simfs_fail(w.disk, &fault);
        assert_int_equal(weir__namespace_open(&fresh, "fresh", &w.options, told ? &w.err : NULL),
                         WEIR_EIO);
        assert_true(simfs_failed(w.disk));
        simfs_fail(w.disk, NULL);
        assert_false(is_there("fresh/catalog.0"));
    }
    assert_string_equal(w.err.text, "opening fresh: fresh: simulated fault");
}

/* Whichever it was: the next change writes it first, and no third. */
static void a_copy_that_could_not_be_written_is_made_up_for(void **state)
{
    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    for (int i = 0; i < 4; i++) {
        char group[] = {'g', (char)('0' + i), 0};

        w.warnings = 0;
        simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_WRITE, .at = 3, .rc = WEIR_EIO});
        assert_int_equal(weir__namespace_group_add(w.ns, "homes", group, &w.err), 0);
        assert_true(simfs_failed(w.disk));
        simfs_fail(w.disk, NULL);
        assert_int_equal(w.warnings, 1);
        group[0] = 'h';
        assert_int_equal(weir__namespace_group_add(w.ns, "homes", group, &w.err), 0);
        assert_equal_copies();
        assert_false(is_there(WORLD_DIR "/catalog.2"));
        if (i == 1) assert_int_equal(world_close(&w), 0);
        if (i == 1) assert_int_equal(world_open(&w), 0);
    }
}

static void write_lock(const char *text)
{
    const char *path = WORLD_DIR "/" WEIR__NAMESPACE_LOCK;
    struct weir__bytes part = weir__bytes_of(text, strlen(text));
    struct weir__file *file = NULL;

    if (is_there(path)) assert_int_equal(w.options.fs->ops->remove(w.options.fs, path, NULL), 0);
    assert_int_equal(w.options.fs->ops->open(w.options.fs, path, WEIR__FS_CREATE, &file, &w.err),
                     0);
    assert_int_equal(file->ops->write(file, &part, 1, 0, &w.err), 0);
    weir__file_close(file);
}

/* By the number in the lock file, where there is one; what the system says otherwise has the folder's
 * name. */
static void who_has_the_folder_is_named(void **state)
{
    static const char by_system[] =
        "opening " WORLD_DIR ": " WORLD_DIR ": folder is in use by process 4242";
    static const struct {
        const char *text, *want;
        bool unreadable;
    } rows[] = {
        {"777\n", "opening " WORLD_DIR ": " WORLD_DIR "/lock: folder is in use by process 777",
         false},
        {"1", "opening " WORLD_DIR ": " WORLD_DIR "/lock: folder is in use by process 1", false},
        {"", by_system, false},
        {"0\n", by_system, false},
        {"-5\n", by_system, false},
        {"nobody\n", by_system, false},
        {"777\n", by_system, true},
    };
    struct weir__namespace *second;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_lock(rows[i].text);
        if (rows[i].unreadable)
            simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_READ,
                                                     .at = 1,
                                                     .persistent = true,
                                                     .rc = WEIR_EIO});
        assert_fails(weir__namespace_open(&second, WORLD_DIR, &w.options, &w.err), WEIR_ELOCKED,
                     rows[i].want);
        simfs_fail(w.disk, NULL);
        assert_null(second);
    }
}

/* As long as was said, with all that the log needs around it. */
static void the_largest_message_is_stored(void **state)
{
    static uint8_t message[1 << 20] = {0x00, 0x53, 0x75, 0xb0};
    struct weir__bytes payload = weir__bytes_of(message, sizeof message);
    struct weir__log_receipt receipt = {0};
    struct weir__batch batch;
    struct weir__hub *hub;

    (void)state;
    weir__store_be32(message + 4, sizeof message - 8);
    assert_int_equal(world_close(&w), 0);
    w.options.batch_bytes_max = sizeof message;
    w.options.segment_bytes_max = 8 << 20;
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__hub_batch_bytes_max(hub), sizeof message);
    assert_int_equal(weir__batch_of_payload(&batch, 0, payload, sizeof message - 1, &w.err),
                     WEIR_ETOOBIG);
    assert_int_equal(weir__batch_of_payload(&batch, 0, payload, sizeof message, &w.err), 0);
    assert_int_equal(weir__hub_publish_wait(hub, &batch, 0, NULL, INT64_MAX, &receipt, &w.err), 0);
    weir__hub_release(hub);
}

static void an_unknown_outcome_stops_changes(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 2, .rc = WEIR_EIO, .seed = 1};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), WEIR_EUNKNOWN);
    simfs_fail(w.disk, NULL);
    assert_fails(weir__namespace_group_add(w.ns, "homes", "h", &w.err), WEIR_EFAILED,
                 "an earlier change of the catalogue has an unknown outcome: reopen the folder "
                 "before the next one");
}

/* Ids of producers that are known to be given out are given out all the same. */
static void what_was_reserved_is_not_stopped(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 2, .rc = WEIR_EIO, .seed = 1};
    struct weir__hub *hub;
    uint64_t first = 0, id = 0;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__hub_producer_new(hub, &first, &w.err), 0);
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), WEIR_EUNKNOWN);
    simfs_fail(w.disk, NULL);
    for (uint64_t i = 1; i < 1024; i++) {
        assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), 0);
        assert_int_equal(id, first + i);
    }
    assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), WEIR_EFAILED);
    weir__hub_release(hub);
}

/* Both are closed, and the first is named. */
static void a_close_that_fails_names_the_hub(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        publish_to_both();
        simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_WRITE,
                                                 .at = both ? 1 : 3,
                                                 .persistent = true,
                                                 .rc = WEIR_EIO});
        assert_int_equal(world_close(&w), WEIR_EIO);
        simfs_fail(w.disk, NULL);
        assert_int_equal(simfs_open_files(w.disk), 0);
        if (both) assert_memory_equal(w.err.text, "closing hub 'homes': ", 21);
        if (!both) assert_memory_equal(w.err.text, "closing hub 'meters': ", 22);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

/* Upkeep of one hub that fails keeps no other from its own, and is told. */
static void a_step_that_fails_stops_no_other(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < 3; at++) {
        uint64_t written;

        publish_to_both();
        simclock_pass(&w.time, 60000);
        written = simfs_calls(w.disk, SIMFS_WRITE);
        simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_WRITE, .at = at, .rc = WEIR_EIO});
        assert_int_equal(weir__namespace_step(w.ns, &w.err), WEIR_EIO);
        simfs_fail(w.disk, NULL);
        assert_int_equal(w.err.code, WEIR_EIO);
        assert_true(simfs_calls(w.disk, SIMFS_WRITE) - written > 1);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folders_are_known_by_their_names),
        TEST(the_largest_id_is_the_last),
        TEST(a_list_ends_when_told_to),
        TEST(batches_have_a_ceiling),
        TEST(an_unknown_outcome_stops_changes),
        TEST(a_close_that_fails_names_the_hub),
        TEST(a_step_that_fails_stops_no_other),
        TEST(who_has_the_folder_is_named),
        TEST(a_bad_copy_is_told_once),
        TEST(a_folder_is_made_inside_another),
        TEST(the_largest_message_is_stored),
        TEST(one_copy_of_a_first_catalogue_is_enough),
        TEST(groups_are_there_after_a_reopen),
        TEST(a_namespace_without_threads_starts_none),
        TEST(several_hubs_are_opened_at_once),
        TEST(a_first_catalogue_is_made_up_for),
        TEST(a_folder_that_cannot_be_listed_is_not_begun),
        TEST(a_lost_catalogue_is_told),
        TEST(what_was_reserved_is_not_stopped),
        TEST(a_copy_that_could_not_be_written_is_made_up_for),
    };

    return cmocka_run_group_tests_name("opening", tests, NULL, NULL);
}
