/* update_test.c - hubs are changed while they are in use. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"
#include "log/peek.h"

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

static uint32_t partitions_of(const char *name)
{
    struct weir__catalog_hub row = {0};

    assert_int_equal(weir__namespace_hub_show(w.ns, name, copy_row, &row, &w.err), 0);
    return row.partitions;
}

/* What stands in a change and is not given is nothing, to the log either. */
static void what_is_not_given_grows_no_log(void **state)
{
    struct weir__hub_changes changes = {.given = WEIR__HUB_RETAIN_MS, .partitions = 9};
    struct weir__log_peek seen;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 2), 0);
    publish_to("homes", "x");
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), 0);
    assert_int_equal(partitions_of("homes"), 2);
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(weir__log_peek(w.options.fs, WORLD_DIR "/hub-0000000000000001", &seen, &w.err),
                     0);
    assert_int_equal(seen.partitions, 2);
    assert_int_equal(world_open(&w), 0);
}

/* What is given changes, the rest stays, and both are there after a reopen. */
static void updates_are_durable(void **state)
{
    struct weir__hub_changes changes = {.retain_ms = 5000, .retain_bytes = 77, .partitions = 9};
    struct weir__catalog_hub row;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 2), 0);
    assert_int_equal(weir__namespace_hub_update(w.ns, "none", &changes, &w.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), 0);
    for (unsigned given = 1; given < 4; given++) {
        changes.given =
            (given & 1 ? WEIR__HUB_RETAIN_MS : 0u) | (given & 2 ? WEIR__HUB_RETAIN_BYTES : 0u);
        changes.retain_ms++;
        changes.retain_bytes++;
        assert_int_equal(weir__namespace_hub_update(w.ns, "HOMES", &changes, &w.err), 0);
        if (given == 3) reopen();
        assert_int_equal(weir__namespace_hub_show(w.ns, "homes", copy_row, &row, &w.err), 0);
        assert_int_equal(row.retain_ms, given == 2 ? 5001 : changes.retain_ms);
        assert_int_equal(row.retain_bytes, given == 1 ? 0 : changes.retain_bytes);
        assert_int_equal(row.partitions, 2);
    }
}

static uint64_t begin_of(const char *name)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(w.ns, name, &hub, &w.err), 0);
    assert_int_equal(weir__hub_partition_properties(hub, 0, &p, &w.err), 0);
    weir__hub_release(hub);
    return (uint64_t)p.begin_sequence;
}

static void pass_two_days(const char *name)
{
    for (int i = 0; i < 48; i++) {
        simclock_pass(&w.time, 3600000);
        publish_to(name, "later");
        assert_int_equal(weir__namespace_step(w.ns, &w.err), 0);
    }
}

/* An open log keeps what the update says, without being opened again. */
static void a_shorter_age_takes_effect_at_once(void **state)
{
    struct weir__hub_changes changes = {.given = WEIR__HUB_RETAIN_MS, .retain_ms = 3600000};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    publish_to("homes", "first");
    pass_two_days("homes");
    assert_int_equal(begin_of("homes"), 0); /* seven days are not over */
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), 0);
    pass_two_days("homes");
    assert_true(begin_of("homes") > 0);
}

static void partitions_only_become_more(void **state)
{
    struct weir__hub_changes changes = {.given = WEIR__HUB_PARTITIONS};

    (void)state;
    assert_int_equal(world_create(&w, "homes", 3), 0);
    for (uint32_t n = 0; n < 3; n++) {
        changes.partitions = n;
        assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), WEIR_EINVAL);
    }
    changes.partitions = 1025;
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), WEIR_EINVAL);
    changes.partitions = 3;
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), 0);
    reopen();
    assert_int_equal(partitions_of("homes"), 3);
}

static const struct weir__fs_ops *whole_ops;

static int refuse_control(struct weir__fs *fs, const char *path, unsigned flags,
                          struct weir__file **out, struct weir_error *err)
{
    if (strstr(path, "/control")) return weir__fail(err, WEIR_EIO, "the disk does not answer");
    return whole_ops->open(fs, path, flags, out, err);
}

/* The log is needed for more partitions alone: what else is asked for is saved without it. */
static void a_log_that_cannot_be_opened_is_not_in_the_way(void **state)
{
    struct weir__hub_changes changes = {.given = WEIR__HUB_PARTITIONS | WEIR__HUB_RETAIN_MS,
                                        .partitions = 4,
                                        .retain_ms = 5000};
    struct weir__fs *fs = simfs_fs(w.disk);
    struct weir__catalog_hub row = {0};
    struct weir__fs_ops ops = *fs->ops;
    int more, same;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 3), 0);
    reopen();
    whole_ops = fs->ops;
    ops.open = refuse_control;
    fs->ops = &ops;
    more = weir__namespace_hub_update(w.ns, "homes", &changes, &w.err);
    changes.partitions = 3;
    same = weir__namespace_hub_update(w.ns, "homes", &changes, &w.err);
    fs->ops = whole_ops;
    assert_int_equal(more, WEIR_EIO);
    assert_int_equal(same, 0);
    reopen();
    assert_int_equal(weir__namespace_hub_show(w.ns, "homes", copy_row, &row, &w.err), 0);
    assert_int_equal(row.retain_ms, 5000);
    assert_int_equal(row.partitions, 3);
}

/* New partitions take events and receivers at once, those who were there stay, and both are there
 * after a reopen. */
static void partitions_are_added(void **state)
{
    struct weir__hub_changes changes = {.given = WEIR__HUB_PARTITIONS, .partitions = 5};
    struct weir__receiver_options options = {.epoch = 1, .credit = 1};
    struct weir__receiver *old = NULL, *new = NULL, *next = NULL;
    struct weir__partition_properties p;
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 2), 0);
    publish_to("homes", "kept");
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__receiver_attach(&old, hub, &options, &w.err), 0);
    assert_int_equal(weir__namespace_hub_update(w.ns, "homes", &changes, &w.err), 0);
    assert_int_equal(weir__hub_partitions(hub), 5);
    options.partition = 4;
    assert_int_equal(weir__receiver_attach(&new, hub, &options, &w.err), 0);
    assert_int_equal(world_publish(&w, hub, 4, "new", 1, NULL), 0);
    options = (struct weir__receiver_options){.epoch = 0, .credit = 1}; /* still held by 1 */
    assert_int_equal(weir__receiver_attach(&next, hub, &options, &w.err), WEIR_EEPOCH);
    options.epoch = 2;
    assert_int_equal(weir__receiver_attach(&next, hub, &options, &w.err), 0);
    weir__receiver_close(old);
    weir__receiver_close(new);
    weir__receiver_close(next);
    weir__hub_release(hub);
    reopen();
    assert_int_equal(partitions_of("homes"), 5);
    assert_int_equal(last_sequence("homes"), 2);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__hub_partition_properties(hub, 4, &p, &w.err), 0);
    assert_int_equal(p.last_sequence, 0);
    weir__hub_release(hub);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(updates_are_durable),
        TEST(a_shorter_age_takes_effect_at_once),
        TEST(what_is_not_given_grows_no_log),
        TEST(partitions_only_become_more),
        TEST(a_log_that_cannot_be_opened_is_not_in_the_way),
        TEST(partitions_are_added),
    };

    return cmocka_run_group_tests_name("update", tests, NULL, NULL);
}
