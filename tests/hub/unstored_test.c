/* unstored_test.c - a change for which the disk had no room has not happened: nobody is told of it, and it
 * can be made when there is room. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"

#define ORPHAN 9

static struct world w;
static struct weir__hub *hub;
static struct weir__receiver *receiver; /* of group g */

static int set_up(void **state)
{
    struct weir__receiver_options o = {.group = "g", .epoch = WEIR__EPOCH_NONE, .credit = 1};
    struct weir__rule rule = {.name = "app", .rights = WEIR__RIGHT_SEND, .key = {"one", "two"}};

    (void)state;
    world_init(&w, simfs_new());
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(world_create(&w, "homes", 1), 0);
    assert_int_equal(weir__namespace_group_add(w.ns, "homes", "g", &w.err), 0);
    assert_int_equal(weir__namespace_rule_add(w.ns, "homes", &rule, &w.err), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    return weir__receiver_attach(&receiver, hub, &o, &w.err);
}

static int tear_down(void **state)
{
    (void)state;
    weir__receiver_close(receiver);
    weir__hub_release(hub);
    world_fini(&w);
    return 0;
}

/* ---- the changes, and whether each has happened ---- */

static int add_group(void)
{
    return weir__namespace_group_add(w.ns, "homes", "h", &w.err);
}

static bool has_group_h(void)
{
    struct weir__receiver_options o = {.group = "h", .epoch = WEIR__EPOCH_NONE};
    struct weir__receiver *r;
    int rc = weir__receiver_attach(&r, hub, &o, &w.err);

    weir__receiver_close(r);
    return rc == 0;
}

static int remove_group(void)
{
    return weir__namespace_group_remove(w.ns, "homes", "g", &w.err);
}

static bool receiver_is_over(void)
{
    return weir__receiver_over(receiver, &w.err) != 0;
}

static int delete_hub(void)
{
    return weir__namespace_hub_delete(w.ns, "homes", &w.err);
}

static bool hub_is_gone(void)
{
    struct weir__hub *same;
    int rc = weir__namespace_use(w.ns, "homes", &same, &w.err);

    weir__hub_release(same);
    return rc != 0 && receiver_is_over();
}

static int add_rule(void)
{
    struct weir__rule rule = {.name = "b", .rights = WEIR__RIGHT_SEND};

    return weir__namespace_rule_add(w.ns, "homes", &rule, &w.err);
}

static int remove_rule(void)
{
    return weir__namespace_rule_remove(w.ns, "homes", "app", &w.err);
}

static int rotate_key(void)
{
    return weir__namespace_rule_rotate(w.ns, "homes", "app", WEIR__KEY_PRIMARY, "new", &w.err);
}

static bool rules_are_others(void)
{
    struct weir__rule rules[2];
    uint32_t count;

    assert_int_equal(weir__namespace_rules(w.ns, "homes", rules, 2, &count, &w.err), 0);
    return count != 1 || strcmp(rules[0].key[WEIR__KEY_PRIMARY], "one") != 0;
}

static int shorten(void)
{
    struct weir__hub_changes c = {.given = WEIR__HUB_RETAIN_MS, .retain_ms = 5000};

    return weir__namespace_hub_update(w.ns, "homes", &c, &w.err);
}

static int copy_row(const struct weir__catalog_hub *row, void *user)
{
    *(struct weir__catalog_hub *)user = *row;
    return 0;
}

static bool is_shorter(void)
{
    struct weir__catalog_hub row = {0};

    assert_int_equal(weir__namespace_hub_show(w.ns, "homes", copy_row, &row, &w.err), 0);
    return row.retain_ms == 5000;
}

static void what_was_not_stored_has_not_happened(void **state)
{
    static const struct {
        int (*change)(void);
        bool (*has_happened)(void);
    } rows[] = {{add_group, has_group_h},       {shorten, is_shorter},
                {rotate_key, rules_are_others}, {remove_rule, rules_are_others},
                {add_rule, rules_are_others},   {remove_group, receiver_is_over},
                {delete_hub, hub_is_gone}};
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        simfs_fail(w.disk, &full);
        assert_int_equal(rows[i].change(), WEIR_ENOSPACE);
        assert_true(simfs_failed(w.disk));
        simfs_fail(w.disk, NULL);
        assert_false(rows[i].has_happened());
        assert_int_equal(rows[i].change(), 0);
        assert_true(rows[i].has_happened());
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

/* ---- ids that must not be given twice ---- */

static void a_producer_has_its_id_alone(void **state)
{
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};
    uint64_t first = 0, second = 0;

    (void)state;
    simfs_fail(w.disk, &full);
    assert_int_equal(weir__hub_producer_new(hub, &first, &w.err), WEIR_ENOSPACE);
    simfs_fail(w.disk, NULL);
    assert_int_equal(weir__hub_producer_new(hub, &first, &w.err), 0);
    weir__receiver_close(receiver);
    weir__hub_release(hub);
    receiver = NULL;
    hub = NULL;
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(weir__hub_producer_new(hub, &second, &w.err), 0);
    assert_true(second > first);
}

static int count_orphan(const struct weir__orphan *orphan, void *user)
{
    assert_int_equal(orphan->id, ORPHAN);
    ++*(int *)user;
    return 0;
}

static int count_orphans(void)
{
    int count = 0;

    assert_int_equal(weir__namespace_orphan_each(w.ns, count_orphan, &count), 0);
    return count;
}

/* The folder of another data folder's ninth hub, which this one's catalogue does not know. */
static void make_orphan(void)
{
    static const char *const files[] = {"control", "00000001.seg"};
    static uint8_t bytes[2 << 20];
    struct weir__hub_config config = {.name = "lost", .partitions = 1};
    struct weir__namespace *other;
    struct weir__hub *lost;

    assert_int_equal(weir__namespace_open(&other, "other", &w.options, &w.err), 0);
    for (int i = 0; i < ORPHAN; i++) {
        if (i > 0) assert_int_equal(weir__namespace_hub_delete(other, "lost", &w.err), 0);
        assert_int_equal(weir__namespace_hub_create(other, &config, &w.err), 0);
    }
    assert_int_equal(weir__namespace_use(other, "lost", &lost, &w.err), 0);
    assert_int_equal(world_publish(&w, lost, 0, "x", 1, NULL), 0);
    weir__hub_release(lost);
    assert_int_equal(weir__namespace_close(other, &w.err), 0);
    for (int i = 0; i < 2; i++) {
        char path[64];
        long len;

        snprintf(path, sizeof path, "other/hub-0000000000000009/%s", files[i]);
        len = simfs_peek(w.disk, path, bytes, sizeof bytes, 0);
        assert_in_range(len, 1, sizeof bytes - 1);
        snprintf(path, sizeof path, WORLD_DIR "/hub-0000000000000009/%s", files[i]);
        simfs_put(w.disk, path, bytes, (size_t)len);
    }
}

static void an_orphan_that_was_not_adopted_is_one(void **state)
{
    struct simfs_fault full = {.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE};

    (void)state;
    weir__receiver_close(receiver);
    weir__hub_release(hub);
    receiver = NULL;
    hub = NULL;
    assert_int_equal(world_close(&w), 0);
    make_orphan();
    assert_int_equal(world_open(&w), 0);
    assert_int_equal(count_orphans(), 1);
    simfs_fail(w.disk, &full);
    assert_int_equal(weir__namespace_adopt(w.ns, ORPHAN, "found", &w.err), WEIR_ENOSPACE);
    simfs_fail(w.disk, NULL);
    assert_string_equal(w.err.text, "adopting hub 'found': writing " WORLD_DIR
                                    "/catalog.1: " WORLD_DIR "/catalog.1: simulated fault");
    assert_int_equal(count_orphans(), 1);
    assert_int_equal(weir__namespace_adopt(w.ns, ORPHAN, "found", &w.err), 0);
    assert_int_equal(count_orphans(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_stored_has_not_happened),
        TEST(a_producer_has_its_id_alone),
        TEST(an_orphan_that_was_not_adopted_is_one),
    };

    return cmocka_run_group_tests_name("unstored", tests, NULL, NULL);
}
