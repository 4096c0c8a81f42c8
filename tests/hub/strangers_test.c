/* strangers_test.c - very many folders that the catalogue does not know: one opening looks at no more
 * than it may, and what it did not look at is not taken for gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "hub/state.h"
#include "hub/world.h"

#define STRANGERS_MAX 4096
#define FIRST 1000 /* the id of the first of them */

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

/* Folders of creations that were cut before there was anything in them. */
static void make_folders(uint64_t first, uint64_t count)
{
    struct weir__fs *fs = simfs_fs(w.disk);
    char dir[WEIR__HUB_PATH_BYTES];

    for (uint64_t id = first; id < first + count; id++) {
        weir__namespace_hub_dir(WORLD_DIR, id, dir);
        assert_int_equal(fs->ops->make_dir(fs, dir, NULL), 0);
    }
}

static int count_folder(const char *name, void *user)
{
    *(int *)user += strncmp(name, WEIR__HUB_PREFIX, strlen(WEIR__HUB_PREFIX)) == 0;
    return 0;
}

static int folders_left(void)
{
    struct weir__fs *fs = simfs_fs(w.disk);
    int count = 0;

    assert_int_equal(fs->ops->list(fs, WORLD_DIR, count_folder, &count, NULL), 0);
    return count;
}

/* A hub whose deletion is recorded, but whose folder somebody else has removed. */
static void delete_a_hub(void)
{
    struct simfs_fault fault = {.kinds = SIMFS_REMOVE, .at = 1, .rc = WEIR_EIO, .persistent = true};

    assert_int_equal(world_create(&w, "homes", 1), 0);
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_int_equal(world_close(&w), 0);
    simfs_fail(w.disk, NULL);
    assert_int_equal(weir__log_destroy(simfs_fs(w.disk), WORLD_DIR "/hub-0000000000000001", &w.err),
                     0);
}

/* When there may be more folders than were looked at, one that was not seen may be there: what is
 * known of it is not forgotten. */
static void one_opening_looks_at_so_many(void **state)
{
    (void)state;
    delete_a_hub();
    for (int more = 0; more < 2; more++) {
        make_folders(FIRST, STRANGERS_MAX + (uint64_t)more);
        assert_int_equal(world_open(&w), 0);
        assert_int_equal(folders_left(), more);
        assert_int_equal(w.ns->catalog.removed_count, 1);
        assert_int_equal(w.ns->catalog.next_hub_id, FIRST + STRANGERS_MAX + more);
        assert_int_equal(world_close(&w), 0);
    }
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(folders_left(), 0);
    assert_int_equal(w.ns->catalog.removed_count, 0);
}

/* A folder that was to go and is still there goes, and then there is nothing to be known of it. */
static void what_is_left_of_a_deletion_goes(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_REMOVE, .at = 1, .rc = WEIR_EIO, .persistent = true};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    for (int removable = 0; removable < 2; removable++) {
        assert_int_equal(world_close(&w), 0);
        if (removable) simfs_fail(w.disk, NULL);
        assert_int_equal(world_open(&w), 0);
        assert_int_equal(folders_left(), !removable);
        assert_int_equal(w.ns->catalog.removed_count, !removable);
    }
    assert_int_equal(w.ns->orphan_count, 0);
}

/* It is noted as long as the folder is there, and forgotten with the next change. */
static void what_was_deleted_is_forgotten(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_create(&w, "homes", 1), 0);
        assert_int_equal(w.ns->buried_count, 0);
        assert_int_equal(w.ns->catalog.removed_count, 0);
        assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
        assert_int_equal(w.ns->buried_count, 1);
        assert_int_equal(w.ns->catalog.removed_count, 1);
    }
}

/* Its id is not given to a hub, not even when it would have been the next. */
static void the_next_id_may_be_taken(void **state)
{
    uint64_t next = w.ns->catalog.next_hub_id;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_close(&w), 0);
        make_folders(next - 1 + (uint64_t)i, 1);
        assert_int_equal(world_open(&w), 0);
        assert_int_equal(w.ns->catalog.next_hub_id, next + (uint64_t)i);
    }
}

/* Without room to note that it was deleted, a hub stays: its folder would be taken for an orphan. */
static void what_cannot_be_noted_is_not_deleted(void **state)
{
    struct weir__catalog *c = &w.ns->catalog;
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    for (uint64_t id = FIRST; c->removed_count < WEIR__CATALOG_REMOVED_MAX; id++)
        assert_int_equal(weir__catalog_add_removed(c, id, &w.err), 0);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), WEIR_ELIMIT);
    assert_string_equal(w.err.text, "deleting hub 'homes': there are 1024 deleted hubs whose "
                                    "folders are to be removed already, and no more are allowed");
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(world_publish(&w, hub, 0, "x", 1, NULL), 0);
    assert_null(w.ns->pool); /* it was to have no threads */
    weir__hub_release(hub);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(w.ns->catalog.hub_count, 1);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_int_equal(folders_left(), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(one_opening_looks_at_so_many),        CASE(what_is_left_of_a_deletion_goes),
        CASE(what_was_deleted_is_forgotten),       CASE(the_next_id_may_be_taken),
        CASE(what_cannot_be_noted_is_not_deleted),
    };

    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
