/* backup_damage_test.c - a folder that was damaged after it was backed up: what the backup had of it stays,
 * it stays a backup, and the other hubs are backed up. */
#include "hub/backup_manifest.h"
#include "hub/backup_world.h"

#define HUB "/hub-0000000000000001"
#define FIRST WORLD_DIR HUB "/00000001.seg"
#define SECOND WORLD_DIR HUB "/00000002.seg"

static struct model m;
static struct weir__backup_result result;
static struct standing before;
static const uint8_t zeros[4 << 20];

/* The newest segment of the first hub, by the name of its file. */
static const char *newest(struct simfs *disk)
{
    const char *path, *found = "";

    for (size_t i = 0; (path = simfs_path(disk, i)); i++)
        if (strncmp(path, WORLD_DIR HUB, strlen(WORLD_DIR HUB)) == 0 && strstr(path, ".seg") &&
            strcmp(path, found) > 0)
            found = path;
    return found;
}

static void publish_until_there(const char *path)
{
    for (int i = 0; simfs_size(m.world.disk, path) == 0; i++) model_publish(&m, 0, i % 2, 100);
    model_publish(&m, 0, 0, 100);
}

static int set_up(void **state)
{
    (void)state;
    model_init(&m, 1, 0);
    publish_until_there(WORLD_DIR HUB "/00000004.seg");
    model_publish(&m, 1, 0, 6);
    model_stand(&m, m.world.ns, &before);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

static void back_up(struct simfs *disk)
{
    if (model_backup(&m, disk, &result) != 0) fail_msg("%s", m.world.err.text);
}

/* Every event of both hubs, as they stood. */
static void check_restored(struct simfs *disk, const struct standing *was)
{
    struct standing is;

    if (model_restore(&m, disk, "r", &result) != 0) fail_msg("%s", m.world.err.text);
    model_check_folder(&m, disk, "r", &is);
    for (int i = 0; i < HUBS; i++)
        for (int p = 0; p < PARTITIONS; p++) {
            assert_int_equal(is.begin[i][p], was->begin[i][p]);
            assert_int_equal(is.next[i][p], was->next[i][p]);
        }
}

/* ---- files that are too short ---- */

static void a_sealed_segment_cut_short(void **state)
{
    static const size_t lengths[] = {0, 1, 100, 4096, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (int former = 0; former < 2; former++) {
            struct simfs *disk = simfs_clone(m.world.disk);

            if (former) back_up(disk);
            simfs_put(disk, SECOND, zeros, lengths[i]);
            back_up(disk);
            assert_int_equal(result.left_out, 0);
            if (!former) assert_in_range(result.damaged, 1, 2);
            back_up(disk);
            if (former) check_restored(disk, &before);
            if (!former) assert_int_equal(model_restore(&m, disk, "r", &result), 0);
            simfs_free(disk);
        }
}

/* One byte is missing, of a sealed segment or of the newest: no event was in it, and none is lost. */
static void a_segment_of_another_size(void **state)
{
    static uint8_t bytes[4 << 20];

    (void)state;
    for (int last = 0; last < 2; last++)
        for (int former = 0; former < 2; former++) {
            struct simfs *disk = simfs_clone(m.world.disk);
            const char *path = last ? newest(disk) : SECOND;
            long len = simfs_peek(disk, path, bytes, sizeof bytes, 0);

            if (former) back_up(disk);
            simfs_put(disk, path, bytes, (size_t)len - 1);
            back_up(disk);
            assert_int_equal(result.left_out, 0);
            assert_int_equal(result.damaged, 0);
            check_restored(disk, &before);
            simfs_put(disk, path, bytes, (size_t)len);
            back_up(disk);
            assert_int_equal(result.damaged, 0);
            assert_int_equal(result.left_out, 0);
            simfs_free(disk);
        }
}

/* ---- the newest segment ---- */

#define FIRST_HEADER (8192 + 20)
#define FIRST_BODY (8192 + 200)

static void back_up_and_damage(char path[64])
{
    back_up(m.world.disk);
    snprintf(path, 64, "%s", newest(m.world.disk));
    simfs_poke(m.world.disk, path, zeros, 100, FIRST_BODY);
}

/* Left out, and as the backup had it; the other hub goes on. */
static void check_left_out(void)
{
    before.next[1][0] = m.lines[1][0].next;
    for (int again = 0; again < 2; again++) {
        back_up(m.world.disk);
        assert_int_equal(result.left_out, 1);
        assert_int_equal(result.hubs, HUBS);
    }
    check_restored(m.world.disk, &before);
}

static void a_newest_segment_that_is_damaged(void **state)
{
    char path[64];

    (void)state;
    back_up_and_damage(path);
    back_up(m.world.disk);
    assert_int_equal(result.left_out, 0);
    check_restored(m.world.disk, &before);
}

static void a_newest_segment_of_zeros(void **state)
{
    const char *path = newest(m.world.disk);

    (void)state;
    assert_int_equal(world_close(&m.world), 0);
    back_up(m.world.disk);
    simfs_poke(m.world.disk, path, zeros, simfs_size(m.world.disk, path), 0);
    check_left_out();
}

static char told[512];

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)level, (void)room, (void)user;
    snprintf(told, sizeof told, "%s", line);
}

static void a_damaged_segment_that_grew(void **state)
{
    char path[64];

    (void)state;
    back_up_and_damage(path);
    model_publish(&m, 0, 0, 5);
    model_publish(&m, 1, 0, 5);
    m.world.options.logger = (struct weir__logger){listen, NULL};
    check_left_out();
    m.world.options.logger = (struct weir__logger){0};
    assert_string_equal(told, "hub a: segment 4 is damaged, and " TO HUB
                              "/00000001.seg has the good copy of what it was. For what was added "
                              "since, back up into a new folder, and keep both");
}

static void a_damaged_segment_that_was_sealed(void **state)
{
    char path[64];

    (void)state;
    back_up_and_damage(path);
    publish_until_there(WORLD_DIR HUB "/00000005.seg");
    check_left_out();
}

static void check_lost(bool successor)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);
    char path[64];

    back_up_and_damage(path);
    publish_until_there(WORLD_DIR HUB "/00000006.seg");
    assert_int_equal(world_close(&m.world), 0);
    assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
    if (successor) assert_int_equal(fs->ops->remove(fs, WORLD_DIR HUB "/00000005.seg", NULL), 0);
    check_left_out();
}

static void a_lost_segment_that_grew(void **state)
{
    (void)state;
    check_lost(false);
}

static void a_lost_segment_that_grew_and_its_successor(void **state)
{
    (void)state;
    check_lost(true);
}

/* Where a damaged segment ends, its successor would say, which is lost as well: the backup has both. */
static void a_damaged_segment_and_its_successor_lost(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);

    (void)state;
    back_up(m.world.disk);
    assert_int_equal(world_close(&m.world), 0);
    simfs_poke(m.world.disk, WORLD_DIR HUB "/00000002.seg", zeros, 100, FIRST_BODY);
    assert_int_equal(fs->ops->remove(fs, WORLD_DIR HUB "/00000003.seg", NULL), 0);
    check_left_out();
}

/* What the copy has is whole in the folder, too. */
static void damage_behind_what_was_copied(void **state)
{
    uint64_t at = simfs_size(m.world.disk, newest(m.world.disk));
    uint8_t byte = 0;

    (void)state;
    back_up(m.world.disk);
    for (at -= 8193; byte == 0; at--) simfs_peek(m.world.disk, newest(m.world.disk), &byte, 1, at);
    for (int i = 0; i < 2; i++) model_publish(&m, 0, 0, 5);
    simfs_poke(m.world.disk, newest(m.world.disk), zeros, 50, at + 200);
    back_up(m.world.disk);
    assert_int_equal(result.left_out, 0);
    assert_int_equal(result.damaged, 1);
}

/* ---- an older control file ---- */

static uint8_t old[1 << 20];

static void check_older_control(long len)
{
    model_stand(&m, m.world.ns, &before);
    for (int former = 0; former < 2; former++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        if (former) back_up(disk);
        simfs_put(disk, WORLD_DIR HUB "/control", old, (size_t)len);
        back_up(disk);
        assert_int_equal(result.left_out, 1);
        assert_int_equal(result.hubs, 1 + former);
        if (former) check_restored(disk, &before);
        simfs_free(disk);
    }
}

static void segments_that_the_control_file_does_not_know(void **state)
{
    long len = simfs_peek(m.world.disk, WORLD_DIR HUB "/control", old, sizeof old, 0);

    (void)state;
    publish_until_there(WORLD_DIR HUB "/00000006.seg");
    check_older_control(len);
}

/* Nobody can say that there are no batches in them. */
static void segments_that_cannot_be_read(void **state)
{
    long len = simfs_peek(m.world.disk, WORLD_DIR HUB "/control", old, sizeof old, 0);

    (void)state;
    publish_until_there(WORLD_DIR HUB "/00000006.seg");
    simfs_spoil(m.world.disk, WORLD_DIR HUB "/00000005.seg", FIRST_BODY, UINT32_MAX);
    simfs_spoil(m.world.disk, WORLD_DIR HUB "/00000006.seg", FIRST_BODY, UINT32_MAX);
    model_stand(&m, m.world.ns, &before);
    simfs_put(m.world.disk, WORLD_DIR HUB "/control", old, (size_t)len);
    m.world.options.logger = (struct weir__logger){listen, NULL};
    back_up(m.world.disk);
    m.world.options.logger = (struct weir__logger){0};
    assert_int_equal(result.left_out, 1);
    assert_non_null(strstr(told, "which may be newer than the control file"));
}

#define FIFTH WORLD_DIR HUB "/00000005.seg"

enum beginning {
    HEADERS_UNREAD,
    HEADERS_ZERO,
    FIRST_BATCH_BAD,
    BOTH_BAD, /* headers and the first batch; others follow */
    ALL_UNREAD,
    BEGINNINGS
};

static void damage_beginning(enum beginning what)
{
    uint64_t size = simfs_size(m.world.disk, FIFTH);

    if (what == FIRST_BATCH_BAD || what == BOTH_BAD)
        simfs_flip(m.world.disk, FIFTH, 8 * FIRST_HEADER);
    if (what == HEADERS_ZERO || what == BOTH_BAD) {
        simfs_poke(m.world.disk, FIFTH, zeros, WEIR__FS_BLOCK, 0);
        simfs_poke(m.world.disk, FIFTH, zeros, 2 * WEIR__FS_BLOCK, size - 2 * WEIR__FS_BLOCK);
    }
    if (what == HEADERS_UNREAD || what == ALL_UNREAD) {
        simfs_spoil(m.world.disk, FIFTH, 0, 1);
        simfs_spoil(m.world.disk, FIFTH, size - 2 * WEIR__FS_BLOCK, 2 * WEIR__FS_BLOCK);
    }
    if (what == ALL_UNREAD) simfs_spoil(m.world.disk, FIFTH, FIRST_BODY, 1);
}

/* Whatever is wrong where it begins, a segment with batches in it is not left out in silence. */
static void a_segment_that_the_control_file_does_not_know_is_damaged(void **state)
{
    for (int i = 0; i < 2 * BEGINNINGS; i++) {
        bool former = i % 2;
        long len = simfs_peek(m.world.disk, WORLD_DIR HUB "/control", old, sizeof old, 0);

        publish_until_there(FIFTH);
        for (int k = 0; k < 5; k++) model_publish(&m, 0, 0, 10);
        model_stand(&m, m.world.ns, &before);
        if (former) back_up(m.world.disk);
        damage_beginning((enum beginning)(i / 2));
        simfs_put(m.world.disk, WORLD_DIR HUB "/control", old, (size_t)len);
        back_up(m.world.disk);
        assert_int_equal(result.left_out, 1);
        if (former) check_restored(m.world.disk, &before);
        simfs_spoil(m.world.disk, FIFTH, 0, 0);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void batches_that_the_control_file_does_not_know(void **state)
{
    long len = simfs_peek(m.world.disk, WORLD_DIR HUB "/control", old, sizeof old, 0);

    (void)state;
    assert_int_equal(world_close(&m.world), 0);
    assert_int_equal(world_open(&m.world), 0);
    model_publish(&m, 0, 0, 5);
    check_older_control(len);
}

/* ---- two backups at once ---- */

/* Another backup locks the folder that this one has just made. */
static void come_between(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    (void)user;
    if (call != SIMFS_MAKE_DIR || entering) return;
    simfs_hook(disk, NULL, NULL);
    simfs_put(disk, TO "/lock", "", 0);
    simfs_put(disk, TO "/manifest.0", "its", 3);
    simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = 1, .rc = WEIR_ELOCKED});
}

static void a_refused_backup_leaves_the_folder_alone(void **state)
{
    (void)state;
    simfs_hook(m.world.disk, come_between, NULL);
    assert_int_equal(model_backup(&m, m.world.disk, &result), WEIR_ELOCKED);
    assert_true(simfs_failed(m.world.disk));
    simfs_fail(m.world.disk, NULL);
    assert_int_equal(simfs_size(m.world.disk, TO "/manifest.0"), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- the end of the newest segment, while the log is open ---- */

#define BATCHES 10

enum hurt { FLIPPED, UNREADABLE, CUT };

/* Where the text of an event lies in the only segment. */
static uint64_t find_event(struct simfs *disk, uint64_t first)
{
    static uint8_t bytes[1 << 20];
    char text[240];
    long len = simfs_peek(disk, FIRST, bytes, sizeof bytes, 0);

    event_text(text, 0, 0, first);
    for (long i = 0; i + 20 < len; i++)
        if (memcmp(bytes + i, text, 20) == 0) return (uint64_t)i;
    fail();
    return 0;
}

static void hurt_at(struct simfs *disk, enum hurt how, uint64_t at)
{
    static uint8_t bytes[1 << 20];

    if (how == FLIPPED) simfs_flip(disk, FIRST, 8 * at);
    if (how == UNREADABLE) simfs_spoil(disk, FIRST, at, 1);
    if (how != CUT) return;
    simfs_peek(disk, FIRST, bytes, (size_t)at, 0);
    simfs_put(disk, FIRST, bytes, (size_t)at);
}

/* Nobody can tell what lay behind from what is left; the backup does, or did see it. */
static void check_hurt_end(enum hurt how, uint32_t backed_up, bool no_verify, uint32_t hurt)
{
    static struct model end;
    struct weir__backup_options o;
    struct standing restored;

    model_init(&end, 1, 0);
    for (uint32_t i = 0; i < BATCHES; i++) {
        if (backed_up > 0 && i == backed_up)
            assert_int_equal(model_backup(&end, end.world.disk, &result), 0);
        model_publish(&end, 0, 0, 10);
    }
    if (backed_up == BATCHES) assert_int_equal(model_backup(&end, end.world.disk, &result), 0);
    hurt_at(end.world.disk, how, find_event(end.world.disk, 10 * hurt));
    o = model_options(&end, end.world.disk);
    o.no_verify = no_verify;
    assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &result, &end.world.err), 0);
    if (result.damaged + result.left_out == 0)
        fail_msg("way %d, %u backed up: nothing is told", (int)how, backed_up);
    simfs_spoil(end.world.disk, FIRST, 0, 0);
    if (backed_up > 0) {
        assert_int_equal(model_restore(&end, end.world.disk, "r", &result), 0);
        model_check_folder(&end, end.world.disk, "r", &restored);
        assert_true(restored.next[0][0] >= 10 * backed_up);
    }
    world_fini(&end.world);
}

static void an_end_that_is_hurt_is_told(void **state)
{
    (void)state;
    check_hurt_end(UNREADABLE, 0, false, BATCHES - 1);
    for (int how = FLIPPED; how <= CUT; how++)
        check_hurt_end((enum hurt)how, BATCHES, false, BATCHES - 1);
    check_hurt_end(CUT, BATCHES, true, 3);
    check_hurt_end(CUT, BATCHES / 2, false, BATCHES / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sealed_segment_cut_short),
        TEST(a_segment_of_another_size),
        TEST(a_newest_segment_that_is_damaged),
        TEST(a_newest_segment_of_zeros),
        TEST(a_damaged_segment_that_grew),
        TEST(a_damaged_segment_that_was_sealed),
        TEST(a_lost_segment_that_grew),
        TEST(a_lost_segment_that_grew_and_its_successor),
        TEST(a_damaged_segment_and_its_successor_lost),
        TEST(damage_behind_what_was_copied),
        TEST(segments_that_the_control_file_does_not_know),
        TEST(segments_that_cannot_be_read),
        TEST(a_segment_that_the_control_file_does_not_know_is_damaged),
        TEST(batches_that_the_control_file_does_not_know),
        TEST(a_refused_backup_leaves_the_folder_alone),
        TEST(an_end_that_is_hurt_is_told),
    };

    return cmocka_run_group_tests_name("backup_damage", tests, NULL, NULL);
}
