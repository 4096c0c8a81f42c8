/* backup_busy_test.c - a folder that changes while a backup looks at it: it looks again, and gives up
 * when there is never any rest. */
#include "hub/backup_manifest.h"
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

/* However often they were looked for. */
static void an_orphan_is_counted_once(void **state)
{
    static struct model m;
    struct unrest u = {.model = &m};
    struct weir__backup_result result;

    (void)state;
    model_init(&m, 1, 0);
    simfs_put(m.world.disk, WORLD_DIR "/hub-0000000000000063/control", "garbage", 7);
    assert_int_equal(backup_in_unrest(&u, LOOKS + 3, &result), 0);
    assert_int_equal(u.left, 0);
    assert_int_equal(result.left_out, 1);
    assert_int_equal(result.hubs, HUBS);
    world_fini(&m.world);
}

static void let_time_pass(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    (void)disk, (void)call;
    if (entering) simclock_pass(user, 1000);
}

/* The moment of a backup is when the last of its hubs was looked at; how long that took is told. */
static void a_moment_has_its_time(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result, checked;
    struct weir__manifest manifest;
    enum weir__manifest_other other;
    int64_t began, ended;

    (void)state;
    model_init(&m, 1, 0);
    began = m.world.time.wall_ms;
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.moment_ms, began);
    assert_int_equal(result.spread_ms, 0);
    simfs_hook(m.world.disk, let_time_pass, &m.world.time);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    simfs_hook(m.world.disk, NULL, NULL);
    ended = m.world.time.wall_ms;
    assert_in_range(result.moment_ms, began + 10000, ended - 10000);
    assert_in_range(result.spread_ms, HUBS * 1000, (result.moment_ms - began) / 2);
    o = model_options(&m, m.world.disk);
    assert_int_equal(weir__backup_check(TO, &o, &checked, &m.world.err), 0);
    assert_int_equal(checked.moment_ms, result.moment_ms);
    assert_int_equal(weir__manifest_load(o.fs, TO, &manifest, &other, &m.world.err), 0);
    assert_in_range(manifest.began_ms, began + 1000, result.moment_ms - result.spread_ms - 1000);
    weir__manifest_fini(&manifest);
    world_fini(&m.world);
}

/* What a backup has was copied by this run, or was there. */
static void assert_counted(struct model *m, const struct weir__backup_result *r)
{
    enum weir__manifest_other other;
    struct weir__manifest manifest;
    uint64_t segments = 0, bytes = 0;

    assert_int_equal(weir__manifest_load(simfs_fs(m->world.disk), TO, &manifest, &other,
                                         &m->world.err),
                     0);
    for (uint32_t i = 0; i < manifest.hub_count; i++)
        for (uint32_t k = 0; k < manifest.hubs[i].segment_count; k++) {
            const struct weir__backup_extent *x = &manifest.hubs[i].segments[k].extent;

            segments++;
            bytes += x->used + x->bytes - x->tail;
        }
    weir__manifest_fini(&manifest);
    assert_int_equal(r->segments_copied + r->segments_reused, segments);
    assert_int_equal(r->bytes_copied + r->bytes_reused, bytes);
    assert_int_equal(r->damaged, 0);
}

/* A segment that was copied in its middle, then went on, and has expired since is not lost. */
static void what_has_expired_is_not_missed(void **state)
{
    static struct model m;
    struct weir__backup_result result;
    struct standing is;

    (void)state;
    model_init(&m, 1, 2 << 20);
    model_publish(&m, 0, 0, 3);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    do {
        model_publish(&m, 0, 0, 150);
        assert_int_equal(weir__namespace_step(m.world.ns, &m.world.err), 0);
        model_stand(&m, m.world.ns, &is);
    } while (is.begin[0][0] < 3);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.left_out, 0);
    assert_counted(&m, &result);
    assert_int_equal(result.events, is.next[0][0] - is.begin[0][0]);
    world_fini(&m.world);
}

/* Also what has expired meanwhile and is kept. */
static void everything_is_counted(void **state)
{
    static struct model m;
    struct weir__backup_result result;
    struct weir__backup_options o;
    struct standing is;

    (void)state;
    model_init(&m, 1, 2 << 20);
    o = model_options(&m, m.world.disk);
    o.keep_expired = true;
    for (int i = 0; i < 8; i++) {
        for (int n = 0; n < 15; n++) model_publish(&m, 0, 0, 150);
        assert_int_equal(weir__namespace_step(m.world.ns, &m.world.err), 0);
        assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &result, &m.world.err), 0);
        assert_counted(&m, &result);
        assert_int_equal(result.events, m.lines[0][0].next);
        assert_int_equal(result.segments_removed > 0, i > 0); /* the copy of the one that grew */
    }
    model_stand(&m, m.world.ns, &is);
    assert_true(is.begin[0][0] > 0);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_counted(&m, &result);
    assert_int_equal(result.events, is.next[0][0] - is.begin[0][0]);
    world_fini(&m.world);
}

/* ---- files that are written while they are read ---- */

#define CATALOG_TRIES 50
#define COPIES 3 /* of the catalogue, and the sign of a restore that was cut off */

/* Both copies of the catalogue are bad until a file is opened for the so many-th time. */
struct sickness {
    uint64_t opens, until;
};

static void flip_catalog(struct simfs *disk)
{
    simfs_flip(disk, WORLD_DIR "/catalog.0", 100);
    simfs_flip(disk, WORLD_DIR "/catalog.1", 100);
}

static void heal(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct sickness *s = user;

    if (call == SIMFS_OPEN && entering && ++s->opens == s->until) flip_catalog(disk);
}

/* It is looked at first of all, and nothing is made when it cannot be read. */
static void a_catalogue_is_read_so_often(void **state)
{
    static struct model m;
    struct sickness never = {0}, last = {.until = (CATALOG_TRIES - 1) * COPIES + 1};
    struct weir__backup_result result;

    (void)state;
    model_init(&m, 1, 0);
    flip_catalog(m.world.disk);
    simfs_hook(m.world.disk, heal, &never);
    assert_int_equal(model_backup(&m, m.world.disk, &result), WEIR_ECORRUPT);
    assert_int_equal(never.opens, CATALOG_TRIES * COPIES);
    assert_false(is_there(m.world.disk, TO));
    simfs_hook(m.world.disk, heal, &last);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_true(last.opens > last.until);
    simfs_hook(m.world.disk, NULL, NULL);
    world_fini(&m.world);
}

/* The catalogue changes while it is looked at, and both copies are bad when it is looked at again. */
struct decay {
    struct unrest unrest;
    int opens;
};

static void decay(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct decay *d = user;

    if (d->unrest.model->busy) return;
    change_groups(disk, call, entering, &d->unrest);
    if (d->unrest.left == 0 && call == SIMFS_OPEN && entering && d->opens++ == COPIES)
        flip_catalog(disk);
}

static void a_second_look_that_fails_is_told(void **state)
{
    static struct model m;
    struct decay d = {.unrest = {.model = &m, .left = 2}}; /* once for the backup's own folder */
    struct weir__backup_result result;

    (void)state;
    model_init(&m, 1, 0);
    simfs_hook(m.world.disk, decay, &d);
    assert_int_equal(model_backup(&m, m.world.disk, &result), WEIR_ECORRUPT);
    simfs_hook(m.world.disk, NULL, NULL);
    assert_non_null(strstr(m.world.err.text, "no good catalogue"));
    assert_true(d.opens > COPIES);
    assert_false(is_there(m.world.disk, TO));
    flip_catalog(m.world.disk);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    world_fini(&m.world);
}

#define ID_TRIES 50

static uint64_t reads_of_backup(struct model *m, const char *id)
{
    struct simfs *disk = simfs_clone(m->world.disk);
    struct weir__backup_result result;
    uint64_t reads;

    if (id) simfs_put(disk, WORLD_DIR "/id", id, strlen(id));
    reads = simfs_calls(disk, SIMFS_READ);
    assert_int_equal(model_backup(m, disk, &result), 0);
    reads = simfs_calls(disk, SIMFS_READ) - reads;
    simfs_free(disk);
    return reads;
}

/* One that was made and not yet written may come; a whole one is read once. */
static void an_id_is_waited_for(void **state)
{
    static struct model m;
    uint64_t without;

    (void)state;
    model_init(&m, 1, 0);
    without = reads_of_backup(&m, NULL);
    assert_int_equal(reads_of_backup(&m, "0123456789abcdef0123456789abcdef"), without + 1);
    assert_int_equal(reads_of_backup(&m, ""), without + ID_TRIES);
    world_fini(&m.world);
}

#define LIST_TRIES 20
#define TABLE WORLD_DIR "/hub-0000000000000001/producers-%08d.tab"

/* The hub's table is replaced by another one each time its name was listed. */
struct fleeing {
    int folders; /* that the backup has made */
    bool listed;
    int left, done;
};

static void put_table(struct simfs *disk, int number)
{
    char path[64];

    snprintf(path, sizeof path, TABLE, number);
    simfs_put(disk, path, "table", 5);
}

static void flee(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct fleeing *f = user;
    char path[64];

    f->folders += call == SIMFS_MAKE_DIR && !entering;
    if (!entering || f->folders < 2) return; /* its own, and the hub's in it */
    if (call == SIMFS_LIST) f->listed = true;
    if (call != SIMFS_OPEN || !f->listed || f->left == 0) return;
    f->listed = false;
    f->left--;
    snprintf(path, sizeof path, TABLE, 1 + f->done++);
    simfs_hook(disk, NULL, NULL);
    assert_int_equal(simfs_fs(disk)->ops->remove(simfs_fs(disk), path, NULL), 0);
    simfs_hook(disk, flee, f);
    put_table(disk, 1 + f->done);
}

static void a_table_is_looked_for_so_often(void **state)
{
    static struct model m;
    struct weir__backup_result result;

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 2; i++) {
        struct simfs *disk = simfs_clone(m.world.disk);
        struct fleeing f = {.left = i ? LIST_TRIES - 1 : 10000};

        put_table(disk, 1);
        simfs_hook(disk, flee, &f);
        assert_int_equal(model_backup(&m, disk, &result), i ? 0 : WEIR_ENOTFOUND);
        assert_int_equal(f.done, i ? LIST_TRIES - 1 : LIST_TRIES);
        simfs_hook(disk, NULL, NULL);
        simfs_free(disk);
    }
    world_fini(&m.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_catalogue_that_never_rests),
        cmocka_unit_test(an_orphan_is_counted_once),
        cmocka_unit_test(a_moment_has_its_time),
        cmocka_unit_test(what_has_expired_is_not_missed),
        cmocka_unit_test(everything_is_counted),
        cmocka_unit_test(a_catalogue_is_read_so_often),
        cmocka_unit_test(a_second_look_that_fails_is_told),
        cmocka_unit_test(an_id_is_waited_for),
        cmocka_unit_test(a_table_is_looked_for_so_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
