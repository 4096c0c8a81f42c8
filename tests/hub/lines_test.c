/* lines_test.c - what is logged about a data folder, word for word. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"

#define LINES_MAX 16
#define FOLDER_7 WORLD_DIR "/hub-0000000000000007"
#define FOLDER_9 WORLD_DIR "/hub-0000000000000009"

static struct world w;
static char lines[LINES_MAX][512];
static int line_count;

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};

    (void)user;
    if (strcmp(room, "hub") != 0) return; /* the log has words of its own */
    assert_true(line_count < LINES_MAX);
    snprintf(lines[line_count++], sizeof lines[0], "%s %s", levels[level], line);
}

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    w.options.logger = (struct weir__logger){listen, NULL};
    line_count = 0;
    return world_open(&w);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&w);
    return 0;
}

static void assert_line(const char *line)
{
    assert_int_equal(line_count, 1);
    assert_string_equal(lines[0], line);
    line_count = 0;
}

static void assert_silence(void)
{
    if (line_count) fail_msg("%s", lines[0]);
}

static void reopen(void)
{
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
}

static void fail_at(unsigned kinds, uint64_t at, int rc)
{
    simfs_fail(w.disk,
               &(struct simfs_fault){.kinds = kinds, .at = at, .persistent = true, .rc = rc});
}

/* A folder that was never used goes: at once, or at the next opening, or when it is sure. */
static void what_is_left_over(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        assert_int_equal(world_create(&w, way == 2 ? "homes" : "x", 1), 0);
        if (way < 2) assert_int_equal(weir__namespace_hub_delete(w.ns, "x", &w.err), 0);
        assert_int_equal(world_close(&w), 0);
        simfs_put(w.disk, FOLDER_7 "/00000001.seg", "x", 1);
        if (way == 1) fail_at(SIMFS_REMOVE, 1, WEIR_EIO);
        if (way == 2) simfs_flip(w.disk, WORLD_DIR "/catalog.0", 8 * 17);
        assert_int_equal(world_open(&w), 0);
        simfs_fail(w.disk, NULL);
        if (way == 0) assert_line("info removed " FOLDER_7 ", left over");
        if (way == 1)
            assert_line("warn removing what is left over: removing log " FOLDER_7 ": " FOLDER_7
                        "/00000001.seg: simulated fault");
        if (way == 2) {
            assert_int_equal(line_count, 2);
            assert_string_equal(lines[0],
                                "error a copy of the catalogue is bad, and the other, which is "
                                "used, may be older: changes of hubs, groups and keys may be "
                                "missing; nothing is removed: " WORLD_DIR
                                "/catalog.0: the catalogue's header fails its checksum");
            assert_string_equal(lines[1], "info left over, kept for now: " FOLDER_7);
        }
        line_count = 0;
    }
    reopen();
    assert_line("info removed " FOLDER_7 ", left over");
    reopen();
    assert_silence();
}

static void a_bad_copy_of_the_catalogue(void **state)
{
    (void)state;
    assert_int_equal(world_close(&w), 0);
    simfs_flip(w.disk, WORLD_DIR "/catalog.1", 8 * 40);
    assert_int_equal(world_open(&w), 0);
    assert_line("warn a copy of the catalogue is bad, the other is used: " WORLD_DIR
                "/catalog.1: the catalogue fails its checksum");
    fail_at(SIMFS_WRITE, 3, WEIR_EIO); /* of the second copy */
    assert_int_equal(weir__namespace_rule_add(w.ns, NULL,
                                              &(struct weir__rule){.name = "app",
                                                                   .rights = WEIR__RIGHT_SEND},
                                              &w.err),
                     0);
    simfs_fail(w.disk, NULL);
    assert_line("warn the catalogue is stored once only: writing " WORLD_DIR
                "/catalog.0: " WORLD_DIR "/catalog.0: simulated fault");
    reopen();
    assert_silence(); /* the other copy is older, and was not bad */
}

static void make_orphan(const char *control, size_t len)
{
    assert_int_equal(world_close(&w), 0);
    simfs_put(w.disk, FOLDER_9 "/control", control, len);
    assert_int_equal(world_open(&w), 0);
}

#define ORPHAN "warn orphan " FOLDER_9 ": no hub has this folder, and it "
#define KEPT ": it is kept; 'weir hub adopt 9 NAME' makes a hub of it again, or remove it by hand"

static void orphans(void **state)
{
    static char control[256 << 10];
    struct weir__hub *hub;
    long len;

    (void)state;
    make_orphan("garbage", 7);
    assert_line(ORPHAN "cannot be read" KEPT);
    assert_int_equal(weir__namespace_adopt(w.ns, 9, "found", &w.err), WEIR_ECORRUPT);
    assert_string_equal(w.err.text, "adopting hub 'found': hub-0000000000000009: its control file "
                                    "cannot be read, or is of another hub");
    assert_int_equal(world_create(&w, "homes", 1), 0); /* it has the next id, 10 */
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_int_equal(world_publish(&w, hub, 0, "x", 1, NULL), 0);
    weir__hub_release(hub);
    len = simfs_peek(w.disk, WORLD_DIR "/hub-000000000000000a/control", control, sizeof control, 0);
    assert_in_range(len, 1, sizeof control);
    make_orphan(control, (size_t)len); /* another hub's */
    assert_line(ORPHAN "cannot be read" KEPT);
}

static void a_hub_that_opens_late(void **state)
{
    struct weir__hub *hub;

    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    fail_at(SIMFS_OPEN, 1, WEIR_EBUSY);
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), WEIR_EBUSY);
    simfs_fail(w.disk, NULL);
    assert_int_equal(line_count, 1);
    assert_memory_equal(lines[0], "error opening hub 'homes': ", 27);
    assert_string_equal(lines[0] + 6, w.err.text);
    line_count = 0;
    assert_int_equal(weir__namespace_use(w.ns, "homes", &hub, &w.err), 0);
    assert_line("warn hub 'homes' is open at last");
    weir__hub_release(hub);
}

static void a_deleted_hub_that_stays(void **state)
{
    (void)state;
    assert_int_equal(world_create(&w, "homes", 1), 0);
    fail_at(SIMFS_REMOVE, 1, WEIR_EIO);
    assert_int_equal(weir__namespace_hub_delete(w.ns, "homes", &w.err), 0);
    simfs_fail(w.disk, NULL);
    assert_int_equal(line_count, 1);
    assert_memory_equal(lines[0], "warn removing deleted hub 'homes': ", 35);
    line_count = 0;
    reopen();
    assert_line("info removed " WORLD_DIR "/hub-0000000000000001, left over");
}

static void an_owner_s_key_that_is_not_kept(void **state)
{
    struct weir__rule owner;

    (void)state;
    fail_at(SIMFS_WRITE, 1, WEIR_ENOSPACE);
    assert_int_equal(weir__namespace_own(w.ns, &owner, &w.err), 0);
    simfs_fail(w.disk, NULL);
    assert_line("warn the owner's key is good until the folder is closed, and not kept: " WORLD_DIR
                "/owner: simulated fault");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_left_over),
        TEST(a_bad_copy_of_the_catalogue),
        TEST(orphans),
        TEST(a_hub_that_opens_late),
        TEST(a_deleted_hub_that_stays),
        TEST(an_owner_s_key_that_is_not_kept),
    };

    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
