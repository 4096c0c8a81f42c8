/* backup_parted_test.c - a restored folder and the one that it came from are two lines: what the backup has of
 * one of them does not stand in for a segment of the other. */
#include "hub/backup_world.h"

/* ---- two lines ---- */

static void remove_file(struct simfs *disk, const char *path)
{
    assert_int_equal(simfs_fs(disk)->ops->remove(simfs_fs(disk), path, NULL), 0);
}

/* The model follows the other line, which begins behind the first batch, from here on. */
static void follow_other(struct model *m, struct weir__namespace *ns)
{
    m->lines[0][0].next = 3;
    m->lines[0][0].count = 1;
    m->world.ns = ns;
    simclock_pass(&m->world.time, 1000);
}

/* The other line's copy of a segment must not stand in for one that is damaged or lost. */
static void check_damage_of_parted(struct model *m, struct simfs *parted, bool lost)
{
    for (int i = 1; i <= 2; i++) {
        struct simfs *disk = simfs_clone(parted);
        struct weir__backup_options o = model_options(m, disk);
        struct weir__backup_result result;
        char path[64];

        snprintf(path, sizeof path, "other/hub-0000000000000001/0000000%d.seg", i);
        if (lost)
            remove_file(disk, path);
        else
            simfs_flip(disk, path, (uint64_t)8 * 20000);
        assert_int_equal(weir__backup_run("other", TO, &o, &result, &m->world.err), 0);
        assert_int_equal(result.damaged, 1);
        assert_int_equal(result.segments_reused, 1);
        simfs_free(disk);
    }
}

/* "other" is restored from a backup and opened; both lines go on, and the backup is of the first. */
static void part(struct model *m, struct weir__namespace **out_first)
{
    struct weir__backup_result result;
    struct weir__namespace *ns;

    model_init(m, 1, 0);
    model_publish(m, 0, 0, 3);
    assert_int_equal(model_backup(m, m->world.disk, &result), 0);
    assert_int_equal(model_restore(m, m->world.disk, "other", &result), 0);
    assert_int_equal(weir__namespace_open(&ns, "other", &m->world.options, &m->world.err), 0);
    *out_first = m->world.ns;
    for (int i = 0; i < 60; i++) model_publish(m, 0, 0, 150);
    assert_int_equal(model_backup(m, m->world.disk, &result), 0);
    follow_other(m, ns);
    for (int i = 0; i < 60; i++) model_publish(m, 0, 0, 150);
}

/* A restored folder goes on otherwise than the one it came from. A segment that both filled, with
 * the same number, place and length, must not be taken for the same. */
static void lines_that_part(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result;
    struct weir__namespace *first;
    struct standing restored;
    struct simfs *parted;

    (void)state;
    part(&m, &first);
    o = model_options(&m, m.world.disk);
    parted = simfs_clone(m.world.disk);
    assert_int_equal(weir__backup_run("other", TO, &o, &result, &m.world.err), 0);
    assert_int_equal(result.segments_reused, 1); /* of the hub that is still the same */
    assert_int_equal(model_restore(&m, m.world.disk, "third", &result), 0);
    model_check_folder(&m, m.world.disk, "third", &restored);
    assert_int_equal(restored.next[0][0], m.lines[0][0].next);
    check_damage_of_parted(&m, parted, false);
    check_damage_of_parted(&m, parted, true);
    simfs_free(parted);
    weir__namespace_close(first, NULL);
    world_fini(&m.world);
}

/* What has expired is kept in front of its own line only. */
static void expired_of_another_line_go(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result;
    struct weir__namespace *ns, *first;
    struct standing is;

    (void)state;
    model_init(&m, 1, (uint64_t)3 << 20);
    o = model_options(&m, m.world.disk);
    o.keep_expired = true;
    model_publish(&m, 0, 0, 3);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(model_restore(&m, m.world.disk, "other", &result), 0);
    assert_int_equal(weir__namespace_open(&ns, "other", &m.world.options, &m.world.err), 0);
    first = m.world.ns;
    for (int line = 0; line < 2; line++) {
        for (int i = 0; i < 20; i++) {
            for (int n = 0; n < 15; n++) model_publish(&m, 0, 0, 150);
            assert_int_equal(weir__namespace_step(m.world.ns, &m.world.err), 0);
            if (line == 0)
                assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &result, &m.world.err), 0);
        }
        if (line == 1) break;
        assert_true(result.segments_reused > 2); /* of both hubs, and expired ones */
        follow_other(&m, ns);
    }
    model_stand(&m, ns, &is);
    assert_true(is.begin[0][0] > 0);
    assert_int_equal(weir__backup_run("other", TO, &o, &result, &m.world.err), 0);
    assert_int_equal(result.segments_reused, 1); /* of the hub that is still the same */
    weir__namespace_close(first, NULL);
    world_fini(&m.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_part),
        cmocka_unit_test(expired_of_another_line_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
