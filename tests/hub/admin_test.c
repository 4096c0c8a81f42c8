/* What is said when a hub or a group cannot be made, changed or found, and when numbers are used up. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/catalog.h"
#include "hub/world.h"

#define HUB_ID_LAST ((uint64_t)INT64_MAX)

static struct world w;

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    if (world_open(&w) != 0) return -1;
    return world_create(&w, "homes", 2);
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
    assert_string_equal(w.err.text, text);
}

static int create(const char *name, uint32_t partitions, const char *const *groups, uint32_t count)
{
    struct weir__hub_config config = {.name = name,
                                      .partitions = partitions,
                                      .groups = groups,
                                      .group_count = count};

    return weir__namespace_hub_create(w.ns, &config, &w.err);
}

static void hubs_that_cannot_be_made(void **state)
{
    static const char *const twice[] = {"a", "A"}, *const wrong[] = {"a", "a/b"};
    static const char *const fine[] = {"a", "$default", "b"};

    (void)state;
    assert_fails(create("x", 0, NULL, 0), WEIR_EINVAL, "a hub has 1 to 1024 partitions, not 0");
    assert_fails(create("x", 1025, NULL, 0), WEIR_EINVAL,
                 "a hub has 1 to 1024 partitions, not 1025");
    assert_fails(create("x", 1, twice, 2), WEIR_EEXIST,
                 "creating hub 'x': consumer group 'A' exists already");
    assert_fails(
        create("x", 1, wrong, 2), WEIR_EINVAL,
        "consumer group name: '/' at position 2 is not a letter, a digit, '.', '-' or '_'");
    assert_fails(create("HOMES", 1, NULL, 0), WEIR_EEXIST,
                 "creating hub 'HOMES': hub 'HOMES' exists already");
    assert_int_equal(create("x", 1024, fine, 3), 0);
}

static int update(const char *name, uint32_t partitions)
{
    struct weir__hub_changes changes = {.given = WEIR__HUB_PARTITIONS, .partitions = partitions};

    return weir__namespace_hub_update(w.ns, name, &changes, &w.err);
}

static void changes_that_cannot_be_made(void **state)
{
    (void)state;
    assert_fails(update("homes", 1), WEIR_EINVAL,
                 "changing hub 'homes': it has 2 partitions, which cannot become 1: they can only "
                 "become more");
    assert_fails(update("homes", 1025), WEIR_EINVAL,
                 "changing hub 'homes': a hub has 1 to 1024 partitions, not 1025");
    assert_int_equal(update("homes", 2), 0);
    assert_int_equal(update("homes", 1024), 0);
    assert_fails(weir__namespace_adopt(w.ns, 9, "x", &w.err), WEIR_ENOTFOUND,
                 "adopting hub 'x': there is no orphan hub-0000000000000009");
}

static void what_is_not_there(void **state)
{
    (void)state;
    assert_fails(update("none", 3), WEIR_ENOTFOUND, "changing hub 'none': there is no hub 'none'");
    assert_fails(weir__namespace_hub_delete(w.ns, "none", &w.err), WEIR_ENOTFOUND,
                 "deleting hub 'none': there is no hub 'none'");
    assert_fails(weir__namespace_group_add(w.ns, "none", "g", &w.err), WEIR_ENOTFOUND,
                 "there is no hub 'none'");
    assert_fails(weir__namespace_group_remove(w.ns, "none", "g", &w.err), WEIR_ENOTFOUND,
                 "there is no hub 'none'");
    assert_fails(weir__namespace_group_remove(w.ns, "homes", "g", &w.err), WEIR_ENOTFOUND,
                 "hub 'homes' has no consumer group 'g'");
    assert_fails(weir__namespace_group_remove(w.ns, "homes", "$DEFAULT", &w.err), WEIR_EDENIED,
                 "$Default is always there");
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), 0);
    assert_fails(weir__namespace_group_add(w.ns, "homes", "G", &w.err), WEIR_EEXIST,
                 "consumer group 'G' exists already");
}

/* Opens the folder again with other numbers in its catalogue. */
static void set_numbers(uint64_t next_hub_id, uint64_t producers)
{
    struct weir__catalog_store store;
    struct weir__catalog c;

    assert_int_equal(world_close(&w), 0);
    assert_int_equal(weir__catalog_store_init(&store, simfs_fs(w.disk), WORLD_DIR, NULL, &w.err),
                     0);
    assert_int_equal(weir__catalog_load(&store, &c, &w.err), 0);
    c.next_hub_id = next_hub_id;
    c.hubs[0].producers = producers;
    assert_int_equal(weir__catalog_save(&store, &c, &w.err), 0);
    weir__catalog_fini(&c);
    if (world_open(&w) != 0) fail_msg("%s", w.err.text);
}

/* Ids are not used twice, so they can be used up. The largest of a producer is the largest number
 * that a double has exactly; they are reserved 1024 at a time. */
static void numbers_end(void **state)
{
    const uint64_t last = (UINT64_C(1) << 53) - 1;
    struct weir__hub *hub;
    uint64_t id;

    (void)state;
    set_numbers(HUB_ID_LAST, last - 1024);
    assert_int_equal(create("x", 1, NULL, 0), 0);
    assert_fails(create("y", 1, NULL, 0), WEIR_ELIMIT,
                 "creating hub 'y': every hub id has been used");
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    for (int i = 0; i < 1024; i++) assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), 0);
    assert_true(id <= last);
    assert_fails(weir__hub_producer_new(hub, &id, &w.err), WEIR_ELIMIT,
                 "all producer ids of hub 'homes' are used");
    weir__hub_release(hub);
    set_numbers(HUB_ID_LAST + 1, last - 1023);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__hub_producer_new(hub, &id, &w.err), WEIR_ELIMIT);
    weir__hub_release(hub);
}

static bool has_folder(const char *folder)
{
    for (size_t i = 0; simfs_path(w.disk, i); i++)
        if (strncmp(simfs_path(w.disk, i), folder, strlen(folder)) == 0) return true;
    return false;
}

static bool has_id(uint64_t id)
{
    char folder[64];

    snprintf(folder, sizeof folder, WORLD_DIR "/hub-%016llx/", (unsigned long long)id);
    return has_folder(folder);
}

/* Whatever there is no room for: a hub that was not made leaves no folder, and its id to nobody. */
static void a_hub_that_was_not_made_leaves_nothing(void **state)
{
    uint64_t id = 2, failures = 0;
    char name[16];

    (void)state;
    for (uint64_t at = 1;; at++) {
        struct simfs_fault fault = {.kinds = SIMFS_CHANGES, .at = at, .rc = WEIR_ENOSPACE};
        int rc;

        simfs_fail(w.disk, &fault);
        rc = create("x", 1, NULL, 0);
        simfs_fail(w.disk, NULL);
        if (rc != WEIR_ENOSPACE) break; /* it is made, or unknown: the next open decides */
        assert_false(has_id(id++));
        snprintf(name, sizeof name, "y%llu", (unsigned long long)at);
        assert_int_equal(create(name, 1, NULL, 0), 0);
        failures += has_id(id++);
    }
    assert_true(failures > 3);
    assert_int_equal(id, 2 + 2 * failures);
}

/* Its catalogue knows the hub, so that its files are gone is damage. */
static void a_hub_without_files_is_damaged(void **state)
{
    struct weir__fs *fs = simfs_fs(w.disk);
    struct weir__hub *hub;
    uint32_t failed = 0;

    (void)state;
    assert_int_equal(world_close(&w), 0);
    for (size_t i = 0; simfs_path(w.disk, i);)
        if (strncmp(simfs_path(w.disk, i), WORLD_DIR "/hub-", 9) == 0)
            assert_int_equal(fs->ops->remove(fs, simfs_path(w.disk, i), &w.err), 0);
        else
            i++;
    assert_int_equal(fs->ops->remove(fs, WORLD_DIR "/hub-0000000000000001", &w.err), 0);
    assert_int_equal(world_open(&w), 0);
    weir__namespace_open_hubs(w.ns, NULL);
    weir__namespace_open_hubs(w.ns, &failed);
    assert_int_equal(failed, 1);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), WEIR_ECORRUPT);
    assert_int_equal(w.err.code, WEIR_ECORRUPT);
    assert_non_null(strstr(w.err.text, "opening hub 'homes': "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hubs_that_cannot_be_made),
        TEST(changes_that_cannot_be_made),
        TEST(what_is_not_there),
        TEST(numbers_end),
        TEST(a_hub_that_was_not_made_leaves_nothing),
        TEST(a_hub_without_files_is_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
