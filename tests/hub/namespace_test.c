#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "hub/world.h"
#include "support/allocs.h"

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

static void created_hubs_are_there_after_a_reopen(void **state)
{
    static const char *const groups[] = {"billing", "$default", "Audit"};
    struct weir__hub_config config = {.name = "Homes",
                                      .partitions = 16,
                                      .retain_ms = 3600000,
                                      .retain_bytes = 1 << 20,
                                      .groups = groups,
                                      .group_count = 3};
    struct weir__catalog_hub row;

    (void)state;
    assert_int_equal(weir__namespace_hub_create(w.ns, &config, &w.err), 0);
    assert_int_equal(world_create(&w, "meters", 1024), 0);
    for (int round = 0; round < 2; round++, reopen()) {
        assert_int_equal(count_hubs(w.ns), 2);
        assert_int_equal(weir__namespace_hub_show(w.ns, "hOMES", copy_row, &row, &w.err), 0);
        assert_string_equal(row.name, "Homes");
        assert_int_equal(row.partitions, 16);
        assert_int_equal(row.retain_ms, 3600000);
        assert_int_equal(row.retain_bytes, 1 << 20);
        assert_int_equal(row.created_ms, 1700000000000);
        assert_int_equal(row.group_count, 3);
        assert_string_equal(row.groups[0].name, "$Default");
        assert_string_equal(row.groups[2].name, "Audit");
    }
    assert_int_equal(w.warnings, 0);
}

static void bad_configurations(void **state)
{
    static const char *const twice[] = {"a", "A"}, *const wrong[] = {"a/b"};
    struct weir__hub_config rows[] = {
        {.name = "a/b", .partitions = 1},
        {.name = NULL, .partitions = 1},
        {.name = "x", .partitions = 0},
        {.name = "x", .partitions = 1025},
        {.name = "x", .partitions = 1, .groups = wrong, .group_count = 1},
    };
    struct weir__hub_config dup = {.name = "x", .partitions = 1, .groups = twice, .group_count = 2};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(weir__namespace_hub_create(w.ns, &rows[i], &w.err), WEIR_EINVAL);
    rows[0].partitions = 0; /* its name comes first */
    assert_int_equal(weir__namespace_hub_create(w.ns, &rows[0], &w.err), WEIR_EINVAL);
    assert_null(strstr(w.err.text, "a hub has 1 to"));
    assert_int_equal(weir__namespace_hub_create(w.ns, &dup, &w.err), WEIR_EEXIST);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(world_create(&w, "HOMES", 1), WEIR_EEXIST);
    assert_int_equal(count_hubs(w.ns), 1);
    reopen();
    assert_int_equal(count_hubs(w.ns), 1);
}

static void deleted_hubs_are_gone_with_their_files(void **state)
{
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 4), 0);
    assert_true(has_folder(1));
    assert_int_equal(weir__namespace_hub_delete(w.ns, "none", &w.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_false(has_folder(1));
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), WEIR_ENOTFOUND);
    assert_non_null(strstr(w.err.text, "there is no hub 'homes'"));
    assert_int_equal(world_create(&w, "homes", 4), 0); /* the same name, another hub */
    assert_true(has_folder(2));
    reopen();
    assert_int_equal(count_hubs(w.ns), 1);
}

/* Who uses a deleted hub is told, and the last one out takes the files away. */
static void deleted_while_in_use(void **state)
{
    struct weir__receiver_options options = {.epoch = WEIR__EPOCH_NONE, .credit = 1};
    struct weir__event event;
    struct weir__receiver_take take = {.events_max = 1, .events = &event};
    struct weir__receiver *receiver, *late;
    struct weir__hub *hub, *other;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__receiver_attach(&receiver, hub, &options, &w.err), 0);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    assert_int_equal(weir__receiver_next(receiver, &take, &w.err), WEIR_ENOTFOUND);
    assert_int_equal(world_publish(&w, hub, 0, "x", 1, NULL), WEIR_ENOTFOUND);
    assert_int_equal(weir__receiver_attach(&late, hub, &options, &w.err), WEIR_ENOTFOUND);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &other, &w.err), 0);
    assert_int_equal(world_publish(&w, other, 0, "x", 1, NULL), 0);
    weir__hub_release(other);
    weir__hub_release(hub);
    assert_true(has_folder(1)); /* the receiver holds it still */
    weir__receiver_close(receiver);
    assert_false(has_folder(1));
    assert_true(has_folder(2));
}

static void groups_come_and_go(void **state)
{
    struct weir__receiver_options options = {.group = "billing",
                                             .epoch = WEIR__EPOCH_NONE,
                                             .credit = 1};
    struct weir__event event;
    struct weir__receiver_take take = {.events_max = 1, .events = &event};
    struct weir__receiver *receiver;
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 2), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__receiver_attach(&receiver, hub, &options, &w.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "Billing", &w.err), 0);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "billing", &w.err), WEIR_EEXIST);
    assert_int_equal(weir__namespace_group_add(w.ns, "none", "billing", &w.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "a b", &w.err), WEIR_EINVAL);
    assert_int_equal(weir__receiver_attach(&receiver, hub, &options, &w.err), 0);
    assert_int_equal(weir__namespace_group_remove(w.ns, "homes", "BILLING", &w.err), 0);
    assert_int_equal(weir__receiver_next(receiver, &take, &w.err), WEIR_ENOTFOUND);
    weir__receiver_close(receiver);
    assert_int_equal(weir__namespace_group_remove(w.ns, "homes", "billing", &w.err),
                     WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_group_remove(w.ns, "homes", "$default", &w.err), WEIR_EDENIED);
    weir__hub_release(hub);
}

/* ---- access ---- */

static void rules_are_kept_and_rotated(void **state)
{
    struct weir__rule rule = {.name = "app", .rights = WEIR__RIGHT_MANAGE};
    struct weir__rule given = {.name = "dev", .rights = WEIR__RIGHT_SEND, .key = {"SAS_KEY_VALUE"}};
    struct weir__rule before[2], after[2];
    uint32_t count;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_rule_add(w.ns, NULL, &rule, &w.err), 0);
    assert_int_equal(weir__namespace_rule_add(w.ns, NULL, &rule, &w.err), WEIR_EEXIST);
    assert_int_equal(weir__namespace_rule_add(w.ns, "homes", &given, &w.err), 0);
    assert_int_equal(weir__namespace_rule_add(w.ns, "none", &given, &w.err), WEIR_ENOTFOUND);
    rule.rights = 0;
    assert_int_equal(weir__namespace_rule_add(w.ns, "homes", &rule, &w.err), WEIR_EINVAL);
    assert_int_equal(weir__namespace_rules(w.ns, NULL, before, 2, &count, &w.err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(before[0].rights, WEIR__RIGHTS_ALL);
    assert_int_equal(strlen(before[0].key[WEIR__KEY_PRIMARY]), 44);
    assert_string_not_equal(before[0].key[WEIR__KEY_PRIMARY], before[0].key[WEIR__KEY_SECONDARY]);
    assert_int_equal(weir__namespace_rule_rotate(w.ns, NULL, "APP", WEIR__KEY_PRIMARY, NULL,
                                                 &w.err),
                     0);
    assert_int_equal(weir__namespace_rule_rotate(w.ns, "homes", "dev", WEIR__KEY_SECONDARY, "k2",
                                                 &w.err),
                     0);
    assert_int_equal(weir__namespace_rule_rotate(w.ns, NULL, "none", WEIR__KEY_PRIMARY, NULL,
                                                 &w.err),
                     WEIR_ENOTFOUND);
    reopen();
    assert_int_equal(weir__namespace_rules(w.ns, NULL, after, 2, &count, &w.err), 0);
    assert_string_not_equal(after[0].key[WEIR__KEY_PRIMARY], before[0].key[WEIR__KEY_PRIMARY]);
    assert_string_equal(after[0].key[WEIR__KEY_SECONDARY], before[0].key[WEIR__KEY_SECONDARY]);
    assert_int_equal(weir__namespace_rules(w.ns, "homes", after, 2, &count, &w.err), 0);
    assert_string_equal(after[0].key[WEIR__KEY_PRIMARY], "SAS_KEY_VALUE");
    assert_string_equal(after[0].key[WEIR__KEY_SECONDARY], "k2");
    assert_int_equal(weir__namespace_rule_remove(w.ns, "homes", "dev", &w.err), 0);
    assert_int_equal(weir__namespace_rules(w.ns, "homes", NULL, 0, &count, &w.err), 0);
    assert_int_equal(count, 0);
}

/* A token of part 5 of the protocol reference: signed with SAS_KEY_VALUE for eh1. */
static int verify(const char *resource, struct weir__access_grant *grant)
{
    static const char token[] = "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"
                                "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&"
                                "se=1700000000&skn=RootManageSharedAccessKey";

    return weir__namespace_verify(w.ns, weir__bytes_of(token, strlen(token)),
                                  weir__bytes_of(resource, strlen(resource)), 1699999999, grant,
                                  &w.err);
}

static void tokens_are_checked_where_they_belong(void **state)
{
    struct weir__rule rule = {.name = "RootManageSharedAccessKey",
                              .rights = WEIR__RIGHT_LISTEN,
                              .key = {"x", "SAS_KEY_VALUE"}};
    struct weir__access_grant grant;

    (void)state;
    assert_int_equal(world_create(&w, "eh1", 1), 0);
    assert_int_equal(world_create(&w, "eh2", 1), 0);
    assert_int_equal(verify("sb://localhost/eh1", &grant), WEIR_EDENIED);
    assert_int_equal(weir__namespace_rule_add(w.ns, "eh2", &rule, &w.err), 0);
    assert_int_equal(verify("sb://localhost/eh1", &grant), WEIR_EDENIED); /* another hub's rule */
    assert_int_equal(weir__namespace_rule_add(w.ns, "eh1", &rule, &w.err), 0);
    assert_int_equal(verify("sb://localhost/eh1/ConsumerGroups/$Default/Partitions/0", &grant), 0);
    assert_int_equal(grant.rights, WEIR__RIGHT_LISTEN);
    assert_int_equal(verify("sb://localhost/eh2", &grant), WEIR_EDENIED);
    assert_int_equal(weir__namespace_rule_remove(w.ns, "eh1", rule.name, &w.err), 0);
    assert_int_equal(weir__namespace_rule_add(w.ns, NULL, &rule, &w.err), 0);
    assert_int_equal(verify("sb://localhost/eh1", &grant), 0);
}

static int verify_owner(const char *key, const char *resource, struct weir__access_grant *grant)
{
    static const char text[] = "sb%3A%2F%2Flocalhost%2F\n1700000000";
    unsigned char mac[32];
    char base64[48], token[256];
    unsigned len = sizeof mac;

    assert_non_null(HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text,
                         sizeof text - 1, mac, &len));
    EVP_EncodeBlock((unsigned char *)base64, mac, (int)len);
    snprintf(token, sizeof token,
             "SharedAccessSignature sr=sb%%3A%%2F%%2Flocalhost%%2F&sig=%s&se=1700000000&skn=%s",
             base64, WEIR__NAMESPACE_OWNER);
    return weir__namespace_verify(w.ns, weir__bytes_of(token, strlen(token)),
                                  weir__bytes_of(resource, strlen(resource)), 1699999999, grant,
                                  &w.err);
}

/* Every right, everywhere, as long as the folder is open, and in no list. */
static void an_owner_is_nobody_s_rule(void **state)
{
    struct weir__rule owner, again, listed[2];
    struct weir__access_grant grant;
    uint32_t count;

    (void)state;
    assert_int_equal(world_create(&w, "eh1", 1), 0);
    assert_int_equal(verify_owner("", "sb://localhost/", &grant), WEIR_EDENIED);
    assert_int_equal(weir__namespace_own(w.ns, &owner, &w.err), 0);
    assert_int_equal(weir__namespace_own(w.ns, &again, &w.err), 0);
    assert_memory_equal(&owner, &again, sizeof owner);
    assert_int_equal(verify_owner("", "sb://localhost/", &grant), WEIR_EDENIED);
    assert_int_equal(verify_owner(owner.key[WEIR__KEY_PRIMARY], "sb://localhost/eh1", &grant), 0);
    assert_int_equal(grant.rights, WEIR__RIGHTS_ALL);
    assert_int_equal(weir__namespace_rules(w.ns, NULL, listed, 2, &count, &w.err), 0);
    assert_int_equal(count, 0);
    assert_int_equal(weir__namespace_rule_add(w.ns, NULL, &owner, &w.err), WEIR_EINVAL);
    reopen();
    assert_int_equal(verify_owner(owner.key[WEIR__KEY_PRIMARY], "sb://localhost/", &grant),
                     WEIR_EDENIED);
}

/* ---- opening ---- */

/* What says where a folder is served goes with the next who takes the lock. */
static void no_sign_outlives_its_server(void **state)
{
    struct weir__fs *fs = w.options.fs;
    const char *path = WORLD_DIR "/" WEIR__NAMESPACE_SERVING;
    struct weir__file *file;

    (void)state;
    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_CREATE, &file, &w.err), 0);
    weir__file_close(file);
    reopen();
    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &file, &w.err), WEIR_ENOTFOUND);
}

static void one_process_at_a_time(void **state)
{
    struct weir__namespace *second;

    (void)state;
    assert_int_equal(weir__namespace_open(&second, WORLD_DIR, &w.options, &w.err), WEIR_ELOCKED);
    assert_null(second);
}

/* The folder itself is locked, so removing the lock file lets no second writer in. */
static void a_removed_lock_file_lets_nobody_in(void **state)
{
    struct weir__fs *fs = w.options.fs;
    struct weir__namespace *second;

    (void)state;
    assert_int_equal(fs->ops->remove(fs, WORLD_DIR "/" WEIR__NAMESPACE_LOCK, &w.err), 0);
    assert_int_equal(weir__namespace_open(&second, WORLD_DIR, &w.options, &w.err), WEIR_ELOCKED);
    assert_int_equal(simfs_size(w.disk, WORLD_DIR "/" WEIR__NAMESPACE_LOCK), 0); /* not made */
    reopen();
    assert_int_equal(weir__namespace_open(&second, WORLD_DIR, &w.options, &w.err), WEIR_ELOCKED);
}

static void must_exist_makes_nothing(void **state)
{
    struct weir__namespace_options options = w.options;
    struct weir__namespace *second;

    (void)state;
    options.must_exist = true;
    assert_int_equal(weir__namespace_open(&second, "elsewhere", &options, &w.err), WEIR_ENOTFOUND);
    for (size_t i = 0; simfs_path(w.disk, i); i++)
        assert_null(strstr(simfs_path(w.disk, i), "elsewhere"));
    simfs_put(w.disk, "other/letter", "x", 1); /* a folder, but none of ours */
    assert_int_equal(weir__namespace_open(&second, "other", &options, &w.err), WEIR_ENOTFOUND);
    for (size_t i = 0; simfs_path(w.disk, i); i++)
        assert_null(strstr(simfs_path(w.disk, i), "other/" WEIR__NAMESPACE_LOCK));
    assert_int_equal(world_close(&w), 0);
    w.options.must_exist = true;
    assert_int_equal(world_open(&w), 0);
}

static void a_folder_that_cannot_be_made_is_told(void **state)
{
    struct weir__namespace *second;

    (void)state;
    simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_MAKE_DIR, .at = 1, .rc = WEIR_EIO});
    assert_int_equal(weir__namespace_open(&second, "new", &w.options, &w.err), WEIR_EIO);
    assert_true(simfs_failed(w.disk));
    simfs_fail(w.disk, NULL);
    assert_non_null(strstr(w.err.text, "simulated fault"));
}

static void two_namespaces_in_one_process(void **state)
{
    struct weir__namespace *second;
    struct weir__hub *a, *b;
    struct weir__partition_properties p;

    (void)state;
    assert_int_equal(weir__namespace_open(&second, "second", &w.options, &w.err), 0);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(count_hubs(second), 0);
    assert_int_equal(weir__namespace_hub_create(second,
                                                &(struct weir__hub_config){.name = "homes",
                                                                           .partitions = 1},
                                                &w.err),
                     0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &a, &w.err), 0);
    assert_int_equal(weir__namespace_use(second, "homes", &b, &w.err), 0);
    assert_int_equal(world_publish(&w, a, 0, "x", 3, NULL), 0);
    assert_int_equal(weir__hub_partition_properties(b, 0, &p, &w.err), 0);
    assert_int_equal(p.last_sequence, -1);
    assert_true(p.empty);
    weir__hub_release(a);
    weir__hub_release(b);
    assert_int_equal(weir__namespace_close(second, &w.err), 0);
}

/* A hub that cannot be opened says why to whoever uses it, and does not stop the others. */
static void a_bad_hub_stays_alone(void **state)
{
    struct weir__hub *hub;
    uint32_t failed;
    int wiped = 0;

    (void)state;
    assert_int_equal(world_create(&w, "bad", 1), 0);
    assert_int_equal(world_create(&w, "good", 1), 0);
    assert_int_equal(world_close(&w), 0);
    for (size_t i = 0; simfs_path(w.disk, i); i++) {
        const char *path = simfs_path(w.disk, i);
        if (strncmp(path, WORLD_DIR "/hub-0000000000000001/", 26) != 0) continue;
        char zeros[4096] = {0};
        for (uint64_t at = 0; at < simfs_size(w.disk, path); at += sizeof zeros) {
            uint64_t left = simfs_size(w.disk, path) - at;
            simfs_poke(w.disk, path, zeros, left < sizeof zeros ? left : sizeof zeros, at);
        }
        wiped++;
    }
    assert_true(wiped > 0);
    assert_int_equal(world_open(&w), 0);
    for (int i = 0; i < 2; i++) {
        w.err = (struct weir_error){0};
        assert_int_equal(weir__namespace_use(w.ns, "bad", &hub, &w.err), WEIR_ECORRUPT);
        assert_int_equal(w.err.code, WEIR_ECORRUPT);
        assert_non_null(strstr(w.err.text, "opening hub 'bad'"));
    }
    assert_int_equal(weir__namespace_use(w.ns, "bad", &hub, NULL), WEIR_ECORRUPT);
    assert_int_equal(w.errors, 1); /* found once, kept */
    assert_int_equal(weir__namespace_use(w.ns, "good", &hub, &w.err), 0);
    weir__hub_release(hub);
    weir__namespace_open_hubs(w.ns, &failed);
    assert_int_equal(failed, 1);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "bad", &w.err), 0);
    assert_int_equal(count_hubs(w.ns), 1);
    assert_false(has_folder(1));
}

static int use(const char *name)
{
    struct weir__hub *hub;
    int rc = weir__namespace_use(w.ns, name, &hub, &w.err);

    weir__hub_release(hub);
    return rc;
}

/* What went wrong at the first use is tried again: a moment later when something had run out, after
 * a second when it looked like more. It is told once. */
static void an_error_at_first_use_does_not_stick(void **state)
{
    struct simfs_fault busy = {.kinds = SIMFS_OPEN, .at = 1, .rc = WEIR_EBUSY, .persistent = true};
    struct simfs_fault broken = {.kinds = SIMFS_READ,
                                 .at = 1,
                                 .rc = WEIR_EFAILED,
                                 .persistent = true};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    simfs_fail(w.disk, &busy);
    for (int i = 0; i < 3; i++) assert_int_equal(use("homes"), WEIR_EBUSY);
    assert_int_equal(w.errors, 1);
    simfs_fail(w.disk, NULL);
    assert_int_equal(use("homes"), 0);
    assert_int_equal(w.warnings, 1); /* that it works again */

    reopen();
    w.errors = w.warnings = 0;
    simfs_fail(w.disk, &broken);
    for (int i = 0; i < 5; i++, simclock_pass(&w.time, 1000))
        assert_int_equal(use("homes"), WEIR_EFAILED);
    assert_int_equal(use("homes"), WEIR_EFAILED);
    assert_int_equal(w.errors, 1);
    simfs_fail(w.disk, NULL); /* the disk is mended */
    simclock_pass(&w.time, 999);
    assert_int_equal(use("homes"), WEIR_EFAILED);
    simclock_pass(&w.time, 1);
    assert_int_equal(use("homes"), 0);
    assert_int_equal(w.warnings, 1);
}

static void a_strange_version_sticks(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_OPEN,
                                .at = 1,
                                .rc = WEIR_EVERSION,
                                .persistent = true};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    simfs_fail(w.disk, &fault);
    assert_int_equal(use("homes"), WEIR_EVERSION);
    simfs_fail(w.disk, NULL);
    simclock_pass(&w.time, 10000);
    assert_int_equal(use("homes"), WEIR_EVERSION);
    reopen();
    assert_int_equal(use("homes"), 0);
}

static void leftover_folders_are_removed(void **state)
{
    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(world_close(&w), 0);
    simfs_put(w.disk, WORLD_DIR "/hub-0000000000000007/00000001.seg", "x", 1);
    simfs_put(w.disk, WORLD_DIR "/hub-7/kept", "x", 1); /* not one of our names */
    assert_int_equal(world_open(&w), 0);
    assert_false(has_folder(7));
    assert_true(has_folder(1));
    assert_true(simfs_peek(w.disk, WORLD_DIR "/hub-7/kept", &(char){0}, 1, 0) == 1);
    assert_int_equal(world_create(&w, "meters", 1), 0);
    assert_true(has_folder(8)); /* its id is not used again */
}

static void hubs_without_a_catalogue_are_not_thrown_away(void **state)
{
    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(w.options.fs->ops->remove(w.options.fs, WORLD_DIR "/catalog.0", NULL), 0);
    assert_int_equal(w.options.fs->ops->remove(w.options.fs, WORLD_DIR "/catalog.1", NULL), 0);
    assert_int_equal(world_open(&w), WEIR_ECORRUPT);
    assert_non_null(strstr(w.err.text, "there are hubs, but"));
    assert_true(has_folder(1));
}

static void changes_stop_when_an_outcome_is_unknown(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 2, .rc = WEIR_EIO, .seed = 1};
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    simfs_fail(w.disk, &fault);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), WEIR_EUNKNOWN);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "h", &w.err), WEIR_EFAILED);
    assert_int_equal(world_publish(&w, hub, 0, "x", 1, NULL), 0); /* data goes on */
    weir__hub_release(hub);
    reopen();
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "h", &w.err), 0);
}

/* A short life; the first error ends it. */
static int live(struct world *life)
{
    struct weir__receiver_options options = {.epoch = 0, .credit = 1, .group = "g"};
    struct weir__receiver *receiver = NULL;
    struct weir__hub *used = NULL;
    struct weir__event event;
    struct weir__receiver_take take = {.events_max = 1, .events = &event};
    int rc = world_open(life);

    if (rc == 0) rc = world_create(life, "homes", 2);
    if (rc == 0) rc = weir__namespace_group_add(life->ns, "homes", "g", &life->err);
    if (rc == 0) rc = weir__namespace_use(life->ns, "homes", &used, &life->err);
    if (rc == 0) rc = weir__receiver_attach(&receiver, used, &options, &life->err);
    if (rc == 0) rc = world_publish(life, used, 0, "x", 1, NULL);
    if (rc == 0) rc = weir__receiver_next(receiver, &take, &life->err);
    if (rc == 0) rc = weir__namespace_hub_delete(life->ns, "homes", &life->err);
    weir__receiver_close(receiver);
    weir__hub_release(used);
    weir__namespace_close(life->ns, NULL);
    life->ns = NULL;
    return rc;
}

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

/* Memory runs out at each allocation: an error, nothing lost, and the folder opens again. */
static void every_allocation_fails_once(void **state)
{
    uint64_t at = 0;
    bool struck;

    (void)state;
    do {
        struct world life;
        int rc;
        world_init(&life, simfs_new());
        simfs_hook(life.disk, spare_the_disk, NULL);
        allocs_fail(++at);
        rc = live(&life);
        struck = allocs_failed();
        allocs_fail(0);
        if (rc != 0 && rc != WEIR_ENOMEM && rc != WEIR_EUNKNOWN)
            fail_msg("allocation %d: %s", (int)at, life.err.text);
        assert_int_equal(simfs_open_files(life.disk), 0);
        assert_int_equal(world_open(&life), 0);
        world_fini(&life);
    } while (struck);
    assert_true(at > 30);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(created_hubs_are_there_after_a_reopen),
        TEST(bad_configurations),
        TEST(deleted_hubs_are_gone_with_their_files),
        TEST(deleted_while_in_use),
        TEST(groups_come_and_go),
        TEST(rules_are_kept_and_rotated),
        TEST(tokens_are_checked_where_they_belong),
        TEST(an_owner_is_nobody_s_rule),
        TEST(no_sign_outlives_its_server),
        TEST(one_process_at_a_time),
        TEST(a_removed_lock_file_lets_nobody_in),
        TEST(must_exist_makes_nothing),
        TEST(a_folder_that_cannot_be_made_is_told),
        TEST(two_namespaces_in_one_process),
        TEST(a_bad_hub_stays_alone),
        TEST(an_error_at_first_use_does_not_stick),
        TEST(a_strange_version_sticks),
        TEST(leftover_folders_are_removed),
        TEST(hubs_without_a_catalogue_are_not_thrown_away),
        TEST(changes_stop_when_an_outcome_is_unknown),
        TEST(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
