/* backup_crash_test.c - a backup that is cut off, on a disk that fails, or that rots.
 *
 * A second backup is stopped at each of its calls, and the disk keeps some of what was not synced.
 * Whatever is kept, the former backup or the new one can be restored whole, the folder that was
 * read is untouched, and the next run succeeds. The same for a first backup, which may also be no
 * backup yet; for calls that fail; and for a restore, which leaves its folder as it was. */
#include "hub/backup_world.h"

#define IMAGES 2
#define FLIPS 150
#define CHANGES_MAX 400

/* A folder with a backup of its first part. */
struct scene {
    struct model model;
    struct standing former, now;
};

static void scene_init(struct scene *s, bool has_former)
{
    struct weir__backup_result result;

    model_init(&s->model, 7, 0);
    for (int i = 0; i < 35; i++) model_publish(&s->model, 0, 0, 150); /* more than a segment */
    model_publish_some(&s->model, 4);
    model_stand(&s->model, s->model.world.ns, &s->former);
    if (has_former) assert_int_equal(model_backup(&s->model, s->model.world.disk, &result), 0);
    model_publish_some(&s->model, 6);
    model_stand(&s->model, s->model.world.ns, &s->now);
    assert_int_equal(world_close(&s->model.world), 0);
}

static bool stands(const struct standing *a, const struct standing *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* What the backup on a disk holds must be all of one of the two. */
static void check_backup(struct scene *s, struct simfs *disk, bool has_former, bool must_be_new)
{
    struct weir__backup_result result;
    struct standing restored;
    int rc = model_restore(&s->model, disk, "restored", &result);

    if (!has_former && !must_be_new && (rc == WEIR_ENOTFOUND || rc == WEIR_ECORRUPT)) return;
    assert_int_equal(rc, 0);
    model_check_folder(&s->model, disk, "restored", &restored);
    if (must_be_new || !has_former) {
        assert_true(stands(&restored, &s->now));
        return;
    }
    assert_true(stands(&restored, &s->former) || stands(&restored, &s->now));
}

/* The next run makes it whole, whatever was left. */
static void check_next(struct scene *s, struct simfs *disk)
{
    struct weir__backup_options o = model_options(&s->model, disk);
    struct weir__backup_result result;
    struct weir_error err = {0};
    uint64_t named = 0, there = 0;

    assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &result, &err), 0);
    assert_int_equal(weir__backup_check(TO, &o, &result, &err), 0);
    named = result.segments_copied;
    for (size_t i = 0; simfs_path(disk, i); i++)
        there += strncmp(simfs_path(disk, i), TO "/", sizeof TO) == 0 &&
                 strstr(simfs_path(disk, i), ".seg") != NULL;
    assert_int_equal(there, named); /* nothing is left over */
}

static void crash_at(struct scene *s, uint64_t call, bool has_former)
{
    static const enum simfs_keep kinds[] = {SIMFS_KEEP_NONE, SIMFS_KEEP_ALL, SIMFS_KEEP_RANDOM,
                                            SIMFS_KEEP_PREFIX};
    struct simfs *disk = simfs_clone(s->model.world.disk);
    struct weir__backup_result result;

    simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + call);
    assert_int_not_equal(model_backup(&s->model, disk, &result), 0);
    assert_int_equal(simfs_open_files(disk), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (uint64_t n = 0; n < (i < 2 ? 1 : IMAGES); n++) {
            struct simfs *image = simfs_crash(disk, kinds[i], n + call * IMAGES);

            check_backup(s, image, has_former, false);
            check_next(s, image);
            simfs_free(image);
        }
    simfs_free(disk);
}

/* The calls of a backup that change something: only there a crash finds another disk. */
struct changes {
    uint64_t at[CHANGES_MAX];
    size_t count;
    uint64_t calls;
};

static void note_change(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct changes *c = user;

    (void)disk;
    if (!entering) return;
    c->calls++;
    if ((call & SIMFS_CHANGES) && c->count < CHANGES_MAX) c->at[c->count++] = c->calls;
}

static void find_changes(struct scene *s, struct changes *out)
{
    struct simfs *disk = simfs_clone(s->model.world.disk);
    struct weir__backup_result result;

    memset(out, 0, sizeof *out);
    simfs_hook(disk, note_change, out);
    assert_int_equal(model_backup(&s->model, disk, &result), 0);
    simfs_hook(disk, NULL, NULL);
    assert_in_range(out->count, 20, CHANGES_MAX - 1);
    check_backup(s, disk, true, true);
    simfs_free(disk);
}

static void crashes(bool has_former)
{
    static struct scene s;
    static struct changes changes;

    scene_init(&s, has_former);
    find_changes(&s, &changes);
    for (size_t i = 0; i < changes.count; i++) crash_at(&s, changes.at[i], has_former);
    world_fini(&s.model.world);
}

static void second_is_cut_off(void **state)
{
    (void)state;
    crashes(true);
}

static void first_is_cut_off(void **state)
{
    (void)state;
    crashes(false);
}

/* ---- calls that fail ---- */

static void fail_backup(struct scene *s, const struct simfs_fault *fault, bool has_former)
{
    struct simfs *disk = simfs_clone(s->model.world.disk);
    struct weir__backup_result result;
    int rc;

    simfs_fail(disk, fault);
    rc = model_backup(&s->model, disk, &result);
    simfs_fail(disk, NULL);
    assert_int_equal(simfs_open_files(disk), 0);
    if (rc != 0 || (result.damaged == 0 && result.left_out == 0))
        check_backup(s, disk, has_former, rc == 0);
    check_next(s, disk);
    simfs_free(disk);
}

static void every_call_fails(void **state)
{
    static const int codes[] = {WEIR_EIO, WEIR_ENOSPACE};
    static struct scene s;
    static struct changes changes;

    (void)state;
    scene_init(&s, true);
    find_changes(&s, &changes);
    for (size_t i = 0; i < 2; i++)
        for (uint64_t at = 1; at <= (i ? changes.count : changes.calls); at++)
            fail_backup(&s,
                        &(struct simfs_fault){.kinds = i ? SIMFS_CHANGES : SIMFS_ANY,
                                              .at = at,
                                              .rc = codes[i],
                                              .persistent = at % 2 == 1},
                        true);
    world_fini(&s.model.world);
}

/* No space: nothing is half done. Before the manifest is there, a folder that this run made is gone
 * again; once it is, the backup is whole. */
static void disk_is_full(void **state)
{
    static struct scene s;
    struct weir__backup_result result;
    uint64_t used;

    (void)state;
    scene_init(&s, false);
    used = simfs_used(s.model.world.disk);
    for (uint64_t room = 0; room < 3 << 20; room += 100 << 10) {
        struct simfs *disk = simfs_clone(s.model.world.disk);
        int rc;

        simfs_capacity(disk, used + room);
        rc = model_backup(&s.model, disk, &result);
        if (rc != 0) {
            assert_int_equal(rc, WEIR_ENOSPACE);
            if (simfs_size(disk, TO "/manifest.0") + simfs_size(disk, TO "/manifest.1") == 0) {
                assert_int_equal(simfs_used(disk), used);
            } else { /* it counts already; what follows from it is written by the next run */
                simfs_capacity(disk, 0);
                assert_int_equal(model_backup(&s.model, disk, &result), 0);
            }
        }
        simfs_free(disk);
    }
    world_fini(&s.model.world);
}

static bool is_empty(struct simfs *disk, const char *dir)
{
    size_t len = strlen(dir);

    for (size_t i = 0; simfs_path(disk, i); i++)
        if (strncmp(simfs_path(disk, i), dir, len) == 0 && simfs_path(disk, i)[len] == '/')
            return false;
    return true;
}

static void restore_fails(void **state)
{
    static struct scene s;
    struct weir__backup_result result;
    struct simfs *disk;
    int rc = -1;

    (void)state;
    scene_init(&s, true);
    for (uint64_t at = 1; rc != 0; at++) {
        disk = simfs_clone(s.model.world.disk);
        simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_ANY, .at = at, .rc = WEIR_EIO});
        rc = model_restore(&s.model, disk, "r", &result);
        if (simfs_failed(disk) && rc == 0) rc = 1; /* it did not matter */
        simfs_fail(disk, NULL);
        assert_int_equal(simfs_open_files(disk), 0);
        if (rc < 0) {
            assert_true(is_empty(disk, "r"));
            assert_int_equal(model_restore(&s.model, disk, "r", &result), 0);
        }
        simfs_free(disk);
    }
    world_fini(&s.model.world);
}

/* A restore that is cut off cannot be taken for a folder. */
static void restore_is_cut_off(void **state)
{
    static struct scene s;
    struct weir__backup_result result;
    struct weir__namespace_options o;
    struct weir__namespace *ns;
    struct standing restored;
    int rc = -1;

    (void)state;
    scene_init(&s, true);
    for (uint64_t at = 1; rc != 0; at += 3) {
        struct simfs *disk = simfs_clone(s.model.world.disk), *image;

        simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + at);
        rc = model_restore(&s.model, disk, "r", &result);
        image = simfs_crash(disk, SIMFS_KEEP_RANDOM, at);
        o = s.model.world.options;
        o.fs = simfs_fs(image);
        o.must_exist = true;
        if (weir__namespace_open(&ns, "r", &o, &s.model.world.err) == 0) {
            weir__namespace_close(ns, NULL);
            model_check_folder(&s.model, image, "r", &restored);
            assert_true(stands(&restored, &s.former));
        }
        simfs_free(image);
        simfs_free(disk);
    }
    world_fini(&s.model.world);
}

/* ---- rot ---- */

/* Every flipped bit of a segment is found, and none of any file changes what is restored. */
static void flipped_bits(void **state)
{
    static struct scene s;
    uint64_t dice = 5;

    (void)state;
    scene_init(&s, true);
    for (int i = 0; i < FLIPS; i++) {
        struct simfs *disk = simfs_clone(s.model.world.disk);
        struct weir__backup_options o = model_options(&s.model, disk);
        struct weir__backup_result result;
        struct standing restored;
        struct weir_error err = {0};
        const char *path;
        uint64_t bit;
        int rc;

        do {
            size_t n = dice_roll(&dice, 40);

            while (n > 0 && !simfs_path(disk, n)) n--;
            path = simfs_path(disk, n);
        } while (strncmp(path, TO "/", sizeof TO) != 0 || simfs_size(disk, path) == 0);
        bit = dice_roll(&dice, simfs_size(disk, path) * 8);
        if (strstr(path, "manifest.") == NULL && i % 2) bit %= 8 * 8192;
        simfs_flip(disk, path, bit);
        rc = weir__backup_check(TO, &o, &result, &err);
        if (strstr(path, ".seg")) assert_int_equal(rc, WEIR_ECORRUPT);
        if (strstr(path, "manifest.")) assert_true(rc == 0 && result.damaged == 1);
        if (strstr(path, "catalog.")) assert_int_equal(rc, WEIR_ECORRUPT);
        rc = model_restore(&s.model, disk, "r", &result);
        assert_true(rc == 0 || rc == WEIR_ECORRUPT);
        if (strstr(path, ".seg")) assert_int_equal(rc, WEIR_ECORRUPT);
        if (rc == 0) {
            model_check_folder(&s.model, disk, "r", &restored);
            assert_true(stands(&restored, &s.former));
        }
        simfs_free(disk);
    }
    world_fini(&s.model.world);
}

/* The newest manifest has rotted: the next run must not write over the one that serves. */
static void rotten_manifest(void **state)
{
    static struct scene s;
    struct weir__backup_result result;

    (void)state;
    scene_init(&s, true);
    simfs_flip(s.model.world.disk, TO "/manifest.1", 999); /* generation 1 began there */
    for (uint64_t call = 1; call < 150; call += 2) {
        struct simfs *disk = simfs_clone(s.model.world.disk), *image;

        simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + call);
        (void)model_backup(&s.model, disk, &result);
        image = simfs_crash(disk, SIMFS_KEEP_RANDOM, call);
        check_backup(&s, image, true, false);
        simfs_free(image);
        simfs_free(disk);
    }
    world_fini(&s.model.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_is_cut_off), cmocka_unit_test(first_is_cut_off),
        cmocka_unit_test(every_call_fails),  cmocka_unit_test(disk_is_full),
        cmocka_unit_test(restore_fails),     cmocka_unit_test(restore_is_cut_off),
        cmocka_unit_test(flipped_bits),      cmocka_unit_test(rotten_manifest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
