/* memory_test.c - memory runs out at each allocation of a backup, of a restore and of changes to a folder:
 * that is an error, nothing is lost or held, and the same works afterwards. */
#include "hub/backup_world.h"
#include "support/allocs.h"

static struct model m;

/* The simulated disk has memory enough. */
static void spare_the_disk(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    (void)disk;
    (void)call;
    (void)user;
    if (entering)
        allocs_pause();
    else
        allocs_resume();
}

/* What is done with a disk; the first error ends it. */
typedef int (*life_fn)(struct simfs *, struct weir_error *);

/* Lives it with one allocation failing after another, each on a disk of its own, and once more without.
 * All but so many are told; those are done without. */
static void live_without_memory(life_fn live, unsigned least, unsigned spared)
{
    unsigned at = 0, untold = 0;
    bool struck;

    do {
        struct simfs *disk = simfs_clone(m.world.disk);
        struct weir_error err = {0};
        int rc;

        simfs_hook(disk, spare_the_disk, NULL);
        allocs_fail(++at);
        rc = live(disk, &err);
        struck = allocs_failed();
        allocs_fail(0);
        untold += struck && rc == 0;
        if (rc != 0 && rc != WEIR_ENOMEM && rc != WEIR_EUNKNOWN)
            fail_msg("allocation %u: %s", at, err.text);
        if (rc != 0) assert_true(strlen(err.text) > 0);
        assert_int_equal(simfs_open_files(disk), 0);
        if (rc != 0 && live(disk, &err) != 0) fail_msg("after allocation %u: %s", at, err.text);
        simfs_free(disk);
    } while (struck);
    assert_true(at > least);
    assert_int_equal(untold, spared);
}

static int set_up(void **state)
{
    struct weir__backup_result result;
    struct weir__hub *hub;
    uint64_t id;

    (void)state;
    model_init(&m, 3, 0);
    for (int i = 0; i < 2; i++) model_publish(&m, 0, 0, 150); /* more than a segment */
    simfs_put(m.world.disk, WORLD_DIR "/hub-0000000000000001/producers-00000001.tab", "text", 4);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    model_publish(&m, 0, 0, 150);
    assert_int_equal(weir__namespace_use(m.world.ns, "b", &hub, &m.world.err), 0);
    assert_int_equal(weir__hub_producer_new(hub, &id, &m.world.err), 0);
    weir__hub_release(hub);
    return world_close(&m.world);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

/* What was done is done whole: everything was counted, and nothing called bad. */
static int check_result(const struct weir__backup_result *r, struct weir_error *err)
{
    if (r->hubs == HUBS && r->damaged == 0 && r->left_out == 0 && r->events == m.lines[0][0].next)
        return 0;
    return weir__fail(err, WEIR_EFAILED, "%u hubs, %d events, %d damaged, %d left out", r->hubs,
                      (int)r->events, (int)r->damaged, (int)r->left_out);
}

static int back_up(struct simfs *disk, struct weir_error *err)
{
    struct weir__backup_options o = model_options(&m, disk);
    struct weir__backup_result result;
    int rc;

    o.keep_expired = true;
    rc = weir__backup_run(WORLD_DIR, TO, &o, &result, err);
    return rc == 0 ? check_result(&result, err) : rc;
}

static void a_backup_without_memory(void **state)
{
    (void)state;
    live_without_memory(back_up, 50, 3);
}

static int check(struct simfs *disk, struct weir_error *err)
{
    struct weir__backup_options o = model_options(&m, disk);
    struct weir__backup_result result;
    int rc = weir__backup_check(TO, &o, &result, err);

    return rc == 0 ? check_result(&result, err) : rc;
}

static void a_check_without_memory(void **state)
{
    struct weir_error err = {0};

    (void)state;
    assert_int_equal(back_up(m.world.disk, &err), 0);
    live_without_memory(check, 20, 0);
}

static int restore(struct simfs *disk, struct weir_error *err)
{
    struct weir__backup_options o = model_options(&m, disk);
    struct weir__backup_result result;

    return weir__backup_restore(TO, "r", &o, &result, err);
}

static void a_restore_without_memory(void **state)
{
    (void)state;
    live_without_memory(restore, 20, 0);
}

static int change_rules(struct weir__namespace *ns, struct weir_error *err)
{
    struct weir__rule rule = {.name = "app", .rights = WEIR__RIGHT_SEND};
    int rc = weir__namespace_rule_add(ns, "a", &rule, err);

    if (rc == WEIR_EEXIST) rc = 0; /* of a life that went on beyond it */
    if (rc == 0) rc = weir__namespace_rule_rotate(ns, "a", "app", WEIR__KEY_PRIMARY, NULL, err);
    if (rc == 0) rc = weir__namespace_rule_remove(ns, "a", "app", err);
    return rc;
}

static int change_much(struct simfs *disk, struct weir_error *err)
{
    struct weir__hub_changes more = {.given = WEIR__HUB_PARTITIONS, .partitions = PARTITIONS + 1};
    struct weir__namespace_options o = m.world.options;
    struct weir__namespace *ns = NULL;
    struct weir__upgrade upgrade;
    struct weir__rule owner;
    struct weir__hub *hub = NULL;
    uint64_t id;
    int rc;

    o.fs = simfs_fs(disk);
    rc = weir__namespace_open(&ns, WORLD_DIR, &o, err);
    if (rc == 0) rc = weir__namespace_own(ns, &owner, err);
    if (rc == 0) rc = change_rules(ns, err);
    if (rc == 0) rc = weir__namespace_hub_update(ns, "a", &more, err);
    if (rc == 0) rc = weir__namespace_upgrade(ns, &upgrade, err);
    if (rc == 0 && upgrade.hubs_upgraded != 0)
        rc = weir__fail(err, WEIR_EFAILED, "a hub of this version was upgraded");
    if (rc == 0) rc = weir__namespace_use(ns, "b", &hub, err);
    if (rc == 0) rc = weir__hub_producer_new(hub, &id, err);
    weir__hub_release(hub);
    if (rc == 0) rc = weir__namespace_group_add(ns, "b", "g", err);
    if (rc == WEIR_EEXIST) rc = 0;
    if (rc == 0) rc = weir__namespace_group_remove(ns, "b", "g", err);
    weir__namespace_close(ns, NULL);
    return rc;
}

static void changes_without_memory(void **state)
{
    (void)state;
    live_without_memory(change_much, 30, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backup_without_memory),
        TEST(a_check_without_memory),
        TEST(a_restore_without_memory),
        TEST(changes_without_memory),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
