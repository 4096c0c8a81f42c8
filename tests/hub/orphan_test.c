/* orphan_test.c - folders that the catalogue does not know: what goes, what stays, who is told. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"

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

static void reopen(void)
{
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
}

static int copy_row(const struct weir__catalog_hub *hub, void *user)
{
    *(struct weir__catalog_hub *)user = *hub;
    return 0;
}

static int count_hub(const struct weir__catalog_hub *hub, void *user)
{
    (void)hub;
    (*(int *)user)++;
    return 0;
}

static int count_hubs(struct weir__namespace *ns)
{
    int count = 0;

    weir__namespace_hub_each(ns, count_hub, &count);
    return count;
}

static bool has_folder(uint64_t id)
{
    char dir[WEIR__HUB_PATH_BYTES];

    weir__namespace_hub_dir(WORLD_DIR, id, dir);
    for (size_t i = 0; simfs_path(w.disk, i); i++)
        if (strncmp(simfs_path(w.disk, i), dir, strlen(dir)) == 0) return true;
    return false;
}

static void publish_to(const char *name, const char *text)
{
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(w.ns, name, &hub, &w.err), 0);
    assert_int_equal(world_publish(&w, hub, 0, text, 3, NULL), 0);
    weir__hub_release(hub);
}

static int64_t last_sequence(const char *name)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(w.ns, name, &hub, &w.err), 0);
    assert_int_equal(weir__hub_partition_properties(hub, 0, &p, &w.err), 0);
    weir__hub_release(hub);
    return p.last_sequence;
}

struct orphans {
    int count;
    struct weir__orphan last;
};

static int note_orphan(const struct weir__orphan *orphan, void *user)
{
    struct orphans *o = user;

    o->count++;
    o->last = *orphan;
    return 0;
}

static struct orphans orphans(void)
{
    struct orphans o = {0};

    weir__namespace_orphan_each(w.ns, note_orphan, &o);
    return o;
}

/* A copy of the catalogue from before hub 2 was made, and one bad byte in the other. */
static void age_catalogue(int bad)
{
    static const char *const paths[] = {WORLD_DIR "/catalog.0", WORLD_DIR "/catalog.1"};
    uint8_t old[4096];
    long len;

    assert_int_equal(world_create(&w, "homes", 1), 0);
    len = simfs_peek(w.disk, paths[1 - bad], old, sizeof old, 0);
    assert_int_equal(world_create(&w, "meters", 3), 0);
    publish_to("meters", "kept");
    assert_int_equal(world_close(&w), 0);
    simfs_put(w.disk, paths[1 - bad], old, (size_t)len);
    simfs_flip(w.disk, paths[bad], 8 * 50);
}

static void an_old_catalogue_deletes_no_events(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        age_catalogue(bad);
        for (int round = 0; round < 3; round++, reopen()) {
            if (!w.ns) assert_int_equal(world_open(&w), 0);
            assert_int_equal(count_hubs(w.ns), 1);
            assert_int_equal(orphans().count, 1);
            assert_int_equal(orphans().last.id, 2);
            assert_int_equal(orphans().last.partitions, 3);
            assert_true(has_folder(2));
            assert_int_equal(w.errors, 1);           /* told once that it may be old, */
            assert_int_equal(w.warnings, round + 1); /* and at each opening what is there */
        }
        assert_int_equal(world_create(&w, "meters", 2), 0); /* another hub, with another id */
        assert_true(has_folder(3));
        tear_down(NULL);
        assert_int_equal(set_up(NULL), 0);
    }
}

/* Under a catalogue that may be old nothing goes at all, not even what was never used and what is
 * recorded as deleted; the next opening sees to it. */
static void nothing_goes_when_the_catalogue_may_be_old(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_REMOVE, .at = 1, .rc = WEIR_EIO, .persistent = true};

    (void)state;
    assert_int_equal(world_create(&w, "deleted", 1), 0);
    publish_to("deleted", "gone");
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "deleted", &w.err), 0);
    simfs_fail(w.disk, NULL);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(world_close(&w), 0);
    simfs_put(w.disk, WORLD_DIR "/hub-0000000000000007/00000001.seg", "", 0);
    simfs_flip(w.disk, WORLD_DIR "/catalog.0", 8 * 17); /* its age is not known */
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(w.errors, 1);
    assert_int_equal(orphans().count, 0);
    assert_true(has_folder(1) && has_folder(2) && has_folder(7));
    reopen(); /* both copies are good now */
    assert_true(!has_folder(1) && has_folder(2) && !has_folder(7));
    assert_int_equal(w.errors, 1);
}

static void an_orphan_is_adopted(void **state)
{
    struct weir__catalog_hub row;
    struct weir__hub *hub;
    uint64_t producer;

    (void)state;
    age_catalogue(0);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "third", 1), 0);
    assert_int_equal(weir__namespace_adopt(w.ns, 2, "third", &w.err), WEIR_EEXIST);
    assert_int_equal(weir__namespace_adopt(w.ns, 2, "a b", &w.err), WEIR_EINVAL);
    assert_int_equal(weir__namespace_adopt(w.ns, 1, "found", &w.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_adopt(w.ns, 2, "found", &w.err), 0);
    assert_int_equal(weir__namespace_adopt(w.ns, 2, "again", &w.err), WEIR_ENOTFOUND);
    for (int round = 0; round < 2; round++, reopen()) {
        assert_int_equal(orphans().count, 0);
        assert_int_equal(count_hubs(w.ns), 3);
        assert_int_equal(last_sequence("found"), 2);
        assert_int_equal(weir__namespace_hub_show(w.ns, "found", copy_row, &row, &w.err), 0);
        assert_int_equal(row.partitions, 3);
        assert_true(row.retain_ms < 0 && row.retain_bytes == 0); /* nothing goes by itself */
        assert_int_equal(row.group_count, 1);
    }
    assert_int_equal(weir__namespace_use(w.ns, "found", &hub, &w.err), 0);
    assert_int_equal(weir__hub_producer_new(hub, &producer, &w.err), 0);
    assert_true(producer > UINT64_C(1) << 40); /* far from those it had before */
    weir__hub_release(hub);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "found", &w.err), 0);
    assert_false(has_folder(2));
    assert_int_equal(world_create(&w, "fourth", 1), 0);
    assert_true(has_folder(4));
}

/* One that nobody can read is kept too, and not adopted. */
static void an_unreadable_orphan_is_kept(void **state)
{
    (void)state;
    assert_int_equal(world_close(&w), 0);
    simfs_put(w.disk, WORLD_DIR "/hub-0000000000000009/control", "garbage", 7);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(orphans().last.id, 9);
    assert_int_equal(orphans().last.partitions, 0);
    assert_int_equal(w.warnings, 1);
    assert_int_equal(weir__namespace_adopt(w.ns, 9, "found", &w.err), WEIR_ECORRUPT);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_true(has_folder(9) && has_folder(10));
}

/* Another hub's log under this name: its bytes are checked against the id they were written with. */
static void a_folder_of_another_hub_is_not_adopted(void **state)
{
    uint8_t control[64 << 10];
    long len;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    publish_to("homes", "kept");
    assert_int_equal(world_close(&w), 0);
    len = simfs_peek(w.disk, WORLD_DIR "/hub-0000000000000001/control", control, sizeof control, 0);
    simfs_put(w.disk, WORLD_DIR "/hub-0000000000000005/control", control, (size_t)len);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(orphans().count, 1);
    assert_int_equal(weir__namespace_adopt(w.ns, 5, "found", &w.err), WEIR_ECORRUPT);
}

/* The folder of a deleted hub goes, with its events, when its deletion is recorded. */
static void a_recorded_deletion_is_finished(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_REMOVE, .at = 1, .rc = WEIR_EIO, .persistent = true};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    publish_to("homes", "gone");
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_true(has_folder(1));
    for (int round = 0; round < 2; round++) {
        reopen();
        assert_true(has_folder(1));
        assert_int_equal(orphans().count, 0);
    }
    assert_int_equal(world_create(&w, "meters", 1), 0); /* saved meanwhile */
    simfs_fail(w.disk, NULL);
    reopen();
    assert_false(has_folder(1));
    assert_true(has_folder(2));
}

/* A thousand deletions leave nothing behind in the catalogue. */
static void deleted_ids_are_forgotten(void **state)
{
    (void)state;
    for (int i = 0; i < WEIR__CATALOG_REMOVED_MAX + 10; i++) {
        assert_int_equal(world_create(&w, "homes", 1), 0);
        if (weir__namespace_hub_delete(w.ns, "homes", &w.err) != 0) fail_msg("%s", w.err.text);
    }
    reopen();
    assert_int_equal(count_hubs(w.ns), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_old_catalogue_deletes_no_events),
        TEST(nothing_goes_when_the_catalogue_may_be_old),
        TEST(an_orphan_is_adopted),
        TEST(an_unreadable_orphan_is_kept),
        TEST(a_folder_of_another_hub_is_not_adopted),
        TEST(a_recorded_deletion_is_finished),
        TEST(deleted_ids_are_forgotten),
    };

    return cmocka_run_group_tests_name("orphan", tests, NULL, NULL);
}
