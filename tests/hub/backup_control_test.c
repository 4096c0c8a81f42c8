/* backup_control_test.c - a control file of a backup that reads well and says something else than the
 * manifest. */
#include "hub/backup_manifest.h"
#include "hub/backup_world.h"

#define CONTROL TO "/hub-0000000000000001/control"

static struct model m;
static struct weir__backup_options o;
static struct weir__backup_result result;

static int set_up(void **state)
{
    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 4; i++) model_publish(&m, 0, 0, 150); /* more than a segment */
    o = model_options(&m, m.world.disk);
    return model_backup(&m, m.world.disk, &result);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

#define HIGHEST(number) ((uint8_t *)&(number) + sizeof(number) - 1)

/* The lowest byte of a number of a control file, or the last byte of a row of them; NULL: there are no
 * more. */
static void *field_of(struct weir__control *c, size_t i)
{
    void *const fields[] = {&c->secret,
                            &c->first_segment,
                            &c->last_segment,
                            &c->watermark,
                            &c->epoch_start,
                            &c->epoch,
                            &c->keep.keep_ms,
                            &c->keep.wall_ms,
                            &c->keep.up_ms,
                            &c->keep.boot,
                            &c->keep.off_ms,
                            &c->keep.owed_ms,
                            &c->active.base,
                            &c->active.capacity,
                            &c->active.data,
                            &c->active.name,
                            &c->heads[0].next_sequence,
                            &c->heads[PARTITIONS - 1].last_time_ms,
                            HIGHEST(c->active.name),
                            HIGHEST(c->heads[PARTITIONS - 1].last_time_ms)};

    return i < sizeof fields / sizeof fields[0] ? fields[i] : NULL;
}

/* Writes both copies again, with one number higher. False: there is no such number. */
static bool change_control(struct simfs *disk, size_t field)
{
    struct weir__fs *fs = simfs_fs(disk);
    struct weir__control c = {0};
    struct weir__file *f;
    uint8_t *number;
    int bad;

    assert_int_equal(fs->ops->open(fs, CONTROL, 0, &f, &m.world.err), 0);
    assert_int_equal(weir__control_read(f, &c, &bad, &m.world.err), 0);
    number = field_of(&c, field);
    if (number) ++*number;
    for (int i = 0; i < 2; i++) assert_int_equal(weir__control_write(f, &c, true, &m.world.err), 0);
    weir__control_fini(&c);
    weir__file_close(f);
    return number != NULL;
}

static void each_number_is_compared(void **state)
{
    bool changed = true;
    size_t i = 0;

    (void)state;
    for (; changed; i++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        changed = change_control(disk, i);
        o.fs = simfs_fs(disk);
        m.world.err.text[0] = '\0';
        assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err),
                         changed ? WEIR_ECORRUPT : 0);
        assert_string_equal(m.world.err.text,
                            changed ? CONTROL ": it is not what was backed up" : "");
        simfs_free(disk);
    }
    assert_int_equal(i, 21);
}

/* One partition less, and the others as they were. */
static void partitions_are_compared(void **state)
{
    struct weir__fs *fs = simfs_fs(m.world.disk);
    struct weir__control c = {0};
    struct weir__file *f;
    int bad;

    (void)state;
    assert_int_equal(fs->ops->open(fs, CONTROL, 0, &f, &m.world.err), 0);
    assert_int_equal(weir__control_read(f, &c, &bad, &m.world.err), 0);
    assert_int_equal(weir__control_resize(&c, PARTITIONS - 1, &m.world.err), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(weir__control_write(f, &c, true, &m.world.err), 0);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), WEIR_ECORRUPT);
    assert_string_equal(m.world.err.text, CONTROL ": it is not what was backed up");
    weir__control_fini(&c);
    weir__file_close(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_number_is_compared),
        TEST(partitions_are_compared),
    };

    return cmocka_run_group_tests_name("backup_control", tests, NULL, NULL);
}
