/* backup_busy_test.c - a catalogue that changes while a backup looks at the folder: it looks again, and
 * gives up when there is never any rest. */
#include "hub/backup_world.h"

#define LOOKS 20 /* of one attempt, */
#define ATTEMPTS 5

/* Adds or removes a group at each of the next so many listings of a folder. */
struct unrest {
    struct model *model;
    int left, done;
    bool there;
};

static void change_groups(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct unrest *u = user;
    struct world *w = &u->model->world;

    (void)disk;
    if (call != SIMFS_LIST || !entering || u->model->busy || u->left == 0) return;
    u->model->busy = true;
    u->left--;
    u->done++;
    assert_int_equal(u->there ? weir__namespace_group_remove(w->ns, "a", "g", &w->err)
                              : weir__namespace_group_add(w->ns, "a", "g", &w->err),
                     0);
    u->there = !u->there;
    u->model->busy = false;
}

static int backup_in_unrest(struct unrest *u, int changes, struct weir__backup_result *out)
{
    struct simfs *disk = u->model->world.disk;
    int rc;

    u->left = changes;
    u->done = 0;
    simfs_hook(disk, change_groups, u);
    rc = model_backup(u->model, disk, out);
    simfs_hook(disk, NULL, NULL);
    return rc;
}

static bool is_there(struct simfs *disk, const char *dir)
{
    for (size_t i = 0; simfs_path(disk, i); i++)
        if (strncmp(simfs_path(disk, i), dir, strlen(dir)) == 0) return true;
    return false;
}

static void a_catalogue_that_never_rests(void **state)
{
    static struct model m;
    struct unrest u = {.model = &m};
    struct weir__backup_result result;
    struct standing restored;

    (void)state;
    model_init(&m, 1, 0);
    model_publish(&m, 0, 0, 5);
    assert_int_equal(backup_in_unrest(&u, 10000, &result), WEIR_EBUSY);
    assert_string_equal(m.world.err.text, "hubs of " WORLD_DIR " come and go too fast");
    assert_int_equal(u.done,
                     1 + LOOKS * ATTEMPTS + 2); /* its own folder: once before, then to clear it */
    assert_false(is_there(m.world.disk, TO));

    /* It comes to rest just in time for the very last look. */
    assert_int_equal(backup_in_unrest(&u, LOOKS * ATTEMPTS, &result), 0);
    assert_int_equal(u.left, 0);
    assert_int_equal(result.hubs, HUBS);
    assert_int_equal(result.events, 5);
    assert_int_equal(model_restore(&m, m.world.disk, "r", &result), 0);
    model_check_folder(&m, m.world.disk, "r", &restored);
    assert_int_equal(restored.next[0][0], 5);
    assert_int_equal(world_close(&m.world), 0);
    assert_int_equal(simfs_open_files(m.world.disk), 0);
    world_fini(&m.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_catalogue_that_never_rests)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
