/* backup_test.c - a folder is backed up while it is published to, event by event.
 *
 * The publisher runs inside the disk's hook, between any two calls of the backup: it appends, rolls
 * and lets segments expire at every place where another process could. What is restored must hold
 * all that was acknowledged before the backup began, as a prefix of what was published, and miss
 * nothing that the folder still has. */
#include "hub/backup_world.h"
#include "support/pace.h"

#define SEEDS (PACE > 1 ? 2 : 6)
#define ROUNDS 3
#define SEGMENT (1u << 20)

static void go_on(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct model *m = user;

    (void)disk, (void)call;
    if (!entering || m->busy || dice_roll(&m->dice, 8) != 0) return;
    m->busy = true;
    m->hooked++;
    model_publish_some(m, 1 + (int)dice_roll(&m->dice, 4));
    simclock_pass(&m->world.time, 5);
    if (dice_roll(&m->dice, 4) == 0)
        assert_int_equal(weir__namespace_step(m->world.ns, &m->world.err), 0);
    m->busy = false;
}

/* The restored folder against the model and against where the folder stood before and after. */
static void compare(struct model *m, const char *dir, const struct standing *before)
{
    struct standing after, restored;
    struct weir__backup_result result;

    assert_int_equal(model_restore(m, m->world.disk, dir, &result), 0);
    model_stand(m, m->world.ns, &after);
    model_check_folder(m, m->world.disk, dir, &restored);
    for (int i = 0; i < HUBS; i++)
        for (int p = 0; p < PARTITIONS; p++) {
            assert_true(restored.next[i][p] >= before->next[i][p]);
            assert_true(restored.next[i][p] <= after.next[i][p]);
            assert_true(restored.begin[i][p] >= before->begin[i][p]);
            assert_true(restored.begin[i][p] <= after.begin[i][p]);
        }
}

static void run_under_load(uint64_t seed, uint64_t retain_bytes)
{
    static struct model m;
    char dir[32];

    model_init(&m, seed, retain_bytes);
    model_publish_some(&m, 100);
    for (int round = 0; round < ROUNDS; round++) {
        struct weir__backup_result result;
        struct standing before;

        model_stand(&m, m.world.ns, &before);
        simfs_hook(m.world.disk, go_on, &m);
        assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
        simfs_hook(m.world.disk, NULL, NULL);
        assert_int_equal(result.damaged, 0);
        assert_int_equal(result.hubs, HUBS);
        snprintf(dir, sizeof dir, "r%d", round);
        compare(&m, dir, &before);
    }
    assert_true(m.hooked > 20);
    assert_int_equal(world_close(&m.world), 0);
    assert_int_equal(simfs_open_files(m.world.disk), 0);
    world_fini(&m.world);
}

static void under_load(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) run_under_load(seed, 0);
}

static void under_load_and_expiry(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) run_under_load(seed, (uint64_t)3 * SEGMENT);
}

/* So much at once, at one call of the backup, that the oldest segments expire and their files are
 * written again: under the hands of whoever copies them. */
struct burst {
    struct model *model;
    uint64_t calls, at;
};

static void publish_much(struct model *m, int batches)
{
    for (int i = 0; i < batches; i++) {
        model_publish(m, 0, 0, 150);
        assert_int_equal(weir__namespace_step(m->world.ns, &m->world.err), 0);
    }
}

static void burst_once(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct burst *b = user;

    (void)disk, (void)call;
    if (!entering || b->model->busy || ++b->calls != b->at) return;
    b->model->busy = true;
    publish_much(b->model, 75);
    b->model->busy = false;
}

static void written_again_while_copied(void **state)
{
    static struct model m;
    struct burst b = {.model = &m};

    (void)state;
    do {
        struct weir__backup_result result;
        struct standing before;

        model_init(&m, 1, (uint64_t)3 * SEGMENT);
        publish_much(&m, 150);
        model_stand(&m, m.world.ns, &before);
        assert_true(before.begin[0][0] > 0);
        b.calls = 0;
        b.at += (uint64_t)3 * PACE;
        simfs_hook(m.world.disk, burst_once, &b);
        assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
        simfs_hook(m.world.disk, NULL, NULL);
        assert_int_equal(result.damaged, 0);
        compare(&m, "r", &before);
        world_fini(&m.world);
    } while (b.calls >= b.at);
    assert_true(b.at > 60);
}

/* ---- incremental ---- */

static void copies_what_is_new(void **state)
{
    static struct model m;
    struct weir__backup_result first, idle, more;
    struct standing restored;

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 120; i++) model_publish(&m, 0, 0, 150);
    model_publish(&m, 1, 1, 10);
    assert_int_equal(model_backup(&m, m.world.disk, &first), 0);
    assert_true(first.segments_copied >= 5);
    assert_true(first.bytes_copied > 4 * SEGMENT);
    assert_int_equal(first.segments_reused, 0);

    assert_int_equal(model_backup(&m, m.world.disk, &idle), 0);
    assert_int_equal(idle.segments_copied, 0);
    assert_int_equal(idle.bytes_copied, 0);
    assert_int_equal(idle.segments_reused, first.segments_copied);
    assert_int_equal(idle.bytes_reused, first.bytes_copied);
    assert_int_equal(idle.segments_removed, 0);

    model_publish(&m, 1, 0, 1); /* the newest segment of one hub has changed, nothing else */
    assert_int_equal(model_backup(&m, m.world.disk, &more), 0);
    assert_int_equal(more.segments_copied, 1);
    assert_int_equal(more.segments_removed, 1);
    assert_true(more.bytes_copied < 64 << 10);
    assert_int_equal(more.events, first.events + 1);
    assert_int_equal(model_restore(&m, m.world.disk, "r", &more), 0);
    model_check_folder(&m, m.world.disk, "r", &restored);
    assert_int_equal(restored.next[1][0], 1);
    world_fini(&m.world);
}

static void expire_all(struct model *m)
{
    for (int i = 0; i < 120; i++) {
        model_publish(m, 0, 0, 150);
        assert_int_equal(weir__namespace_step(m->world.ns, &m->world.err), 0);
    }
}

static void expired_go_or_stay(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result;
    struct standing restored, is;

    (void)state;
    model_init(&m, 1, (uint64_t)3 * SEGMENT);
    o = model_options(&m, m.world.disk);
    o.keep_expired = true;
    for (int i = 0; i < 20; i++) { /* often enough that every segment is seen sealed */
        for (int n = 0; n < 15; n++) model_publish(&m, 0, 0, 150);
        assert_int_equal(weir__namespace_step(m.world.ns, &m.world.err), 0);
        assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &result, &m.world.err), 0);
    }
    model_stand(&m, m.world.ns, &is);
    assert_true(is.begin[0][0] > 0);
    assert_int_equal(model_restore(&m, m.world.disk, "all", &result), 0);
    model_check_folder(&m, m.world.disk, "all", &restored);
    assert_int_equal(restored.begin[0][0], 0);

    expire_all(&m);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_true(result.segments_removed > 10);
    assert_int_equal(model_restore(&m, m.world.disk, "new", &result), 0);
    model_check_folder(&m, m.world.disk, "new", &restored);
    model_stand(&m, m.world.ns, &is);
    assert_int_equal(restored.begin[0][0], is.begin[0][0]);
    assert_int_equal(restored.next[0][0], is.next[0][0]);
    world_fini(&m.world);
}

/* ---- other files of a hub ---- */

static void assert_file(struct model *m, const char *path, const char *want)
{
    char got[64] = "";

    assert_int_equal(simfs_peek(m->world.disk, path, got, sizeof got, 0), (long)strlen(want));
    assert_string_equal(got, want);
}

/* A file that grows is in each backup as it was; the former backup's copy is not touched before the
 * new one counts. */
static void other_files(void **state)
{
    static struct model m;
    const char *hub = "hub-0000000000000001", *name = "producers-00000001.tab";
    struct weir__backup_options o;
    struct weir__backup_result result;
    char source[96], copy[96], restored[96];

    (void)state;
    model_init(&m, 1, 0);
    o = model_options(&m, m.world.disk);
    snprintf(source, sizeof source, WORLD_DIR "/%s/%s", hub, name);
    snprintf(copy, sizeof copy, TO "/%s/%s", hub, name);
    snprintf(restored, sizeof restored, "r/%s/%s", hub, name);
    simfs_put(m.world.disk, source, "one", 3);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_file(&m, copy, "one");
    simfs_put(m.world.disk, source, "one two", 7);
    simfs_fail(m.world.disk, &(struct simfs_fault){
                                 .kinds = SIMFS_SYNC, .at = 2, .persistent = true, .rc = WEIR_EIO});
    assert_int_not_equal(model_backup(&m, m.world.disk, &result), 0);
    simfs_fail(m.world.disk, NULL);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_file(&m, copy, "one two");
    assert_int_equal(model_restore(&m, m.world.disk, "r", &result), 0);
    assert_file(&m, restored, "one two");
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    simfs_flip(m.world.disk, copy, 9);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), WEIR_ECORRUPT);
    world_fini(&m.world);
}

/* ---- what is refused ---- */

static void refusals(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result;
    struct weir__namespace_options options;
    struct weir__namespace *ns;
    struct weir__file *lock;
    struct weir__fs *fs;

    (void)state;
    model_init(&m, 1, 0);
    fs = simfs_fs(m.world.disk);
    o = model_options(&m, m.world.disk);
    assert_int_equal(weir__backup_run("nowhere", TO, &o, &result, &m.world.err), WEIR_ENOTFOUND);
    assert_int_equal(weir__backup_run(WORLD_DIR, WORLD_DIR, &o, &result, &m.world.err),
                     WEIR_EINVAL);
    simfs_put(m.world.disk, "taken/letter", "x", 1);
    assert_int_equal(weir__backup_run(WORLD_DIR, "taken", &o, &result, &m.world.err), WEIR_EINVAL);
    assert_int_equal(simfs_size(m.world.disk, "taken/lock"), 0);
    assert_int_equal(weir__backup_restore(TO, "r", &o, &result, &m.world.err), WEIR_ENOTFOUND);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(weir__backup_restore(TO, "taken", &o, &result, &m.world.err), WEIR_EEXIST);

    assert_int_equal(fs->ops->open(fs, TO "/lock", WEIR__FS_LOCK, &lock, &m.world.err), 0);
    assert_int_equal(model_backup(&m, m.world.disk, &result), WEIR_ELOCKED);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), WEIR_ELOCKED);
    weir__file_close(lock);

    options = m.world.options; /* a backup is not opened for use */
    assert_int_equal(weir__namespace_open(&ns, TO, &options, &m.world.err), WEIR_EINVAL);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);

    options.must_exist = false; /* of another folder, whose hub has the same number */
    assert_int_equal(weir__namespace_open(&ns, "second", &options, &m.world.err), 0);
    assert_int_equal(
        weir__namespace_hub_create(ns, &(struct weir__hub_config){.name = "a", .partitions = 2},
                                   &m.world.err),
        0);
    assert_int_equal(weir__backup_run("second", TO, &o, &result, &m.world.err), WEIR_EINVAL);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    weir__namespace_close(ns, NULL);
    world_fini(&m.world);
}

/* Every file of a backup, with a bit that turned or gone altogether: a check notices. One copy of the
 * manifest is enough; the lock is no part of it. */
static void a_check_notices_every_damage(void **state)
{
    static struct model m;
    struct weir__backup_result result;
    struct weir__backup_options o;
    struct simfs *good;
    unsigned files = 0;

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 60; i++) model_publish(&m, i % 2, 0, 150);
    for (int i = 0; i < 2; i++) assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    good = m.world.disk;
    for (size_t i = 0; simfs_path(good, i); i++) {
        const char *path = simfs_path(good, i);
        if (strncmp(path, TO "/", strlen(TO) + 1) != 0 || !strcmp(path, TO "/lock")) continue;
        for (int gone = 0; gone < 2; gone++) {
            struct simfs *bad = simfs_clone(good);
            struct weir__fs *fs = simfs_fs(bad);
            int rc;
            if (gone) assert_int_equal(fs->ops->remove(fs, path, NULL), 0);
            if (!gone) simfs_flip(bad, path, 8 * 100);
            o = model_options(&m, bad);
            rc = weir__backup_check(TO, &o, &result, &m.world.err);
            if (strstr(path, "/manifest.") && rc == 0 && !gone) assert_int_equal(result.damaged, 1);
            if (!strstr(path, "/manifest.") && rc == 0)
                fail_msg("%s is %s, and nobody noticed", path, gone ? "gone" : "another");
            simfs_free(bad);
        }
        files++;
    }
    assert_true(files >= 6);
    world_fini(&m.world);
}

/* What is behind the catalogue is found whatever its length is. */
static void catalogues_of_every_length(void **state)
{
    static struct model m;
    struct weir__backup_result result;
    struct weir__backup_options o;
    char name[16] = "";

    (void)state;
    model_init(&m, 1, 0);
    model_publish(&m, 0, 0, 5);
    o = model_options(&m, m.world.disk);
    for (size_t len = 2; len < 12; len++) {
        struct weir__hub_config config = {.name = name, .partitions = 1};
        memset(name, 'n', len);
        assert_int_equal(weir__namespace_hub_create(m.world.ns, &config, &m.world.err), 0);
        assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
        assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
        assert_int_equal(result.hubs, HUBS + len - 1);
    }
    world_fini(&m.world);
}

/* A folder that the catalogue does not know is not backed up, and that is told. */
static void orphans_are_left_out(void **state)
{
    static const char *const files[] = {"control", "00000001.seg"};
    static uint8_t bytes[4 << 20];
    static struct model m;
    struct weir__backup_result result;
    char path[128];

    (void)state;
    model_init(&m, 1, 0);
    model_publish(&m, 0, 0, 5);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.left_out, 0);
    for (int i = 0; i < 2; i++) {
        long len;
        snprintf(path, sizeof path, WORLD_DIR "/hub-0000000000000001/%s", files[i]);
        len = simfs_peek(m.world.disk, path, bytes, sizeof bytes, 0);
        assert_in_range(len, 1, sizeof bytes - 1);
        snprintf(path, sizeof path, WORLD_DIR "/hub-0000000000000009/%s", files[i]);
        simfs_put(m.world.disk, path, bytes, (size_t)len);
    }
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.left_out, 1);
    world_fini(&m.world);
}

/* A hub that cannot be read does not keep the others from being backed up. */
static void hub_without_control(void **state)
{
    static const uint8_t zeros[256 << 10];
    static struct model m;
    struct weir__backup_result result;
    const char *control = WORLD_DIR "/hub-0000000000000001/control";
    struct standing restored;

    (void)state;
    model_init(&m, 1, 0);
    model_publish(&m, 0, 0, 5);
    model_publish(&m, 1, 0, 6);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    model_publish(&m, 0, 0, 7);
    model_publish(&m, 1, 0, 8);
    simfs_poke(m.world.disk, control, zeros, simfs_size(m.world.disk, control), 0);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.left_out, 1);
    assert_true(m.world.errors > 0);
    assert_int_equal(model_restore(&m, m.world.disk, "r", &result), 0);
    model_check_folder(&m, m.world.disk, "r", &restored);
    assert_int_equal(restored.next[0][0], 5);
    assert_int_equal(restored.next[1][0], 14);
    world_fini(&m.world);
}

/* Damage of the folder is told, copied and restored as it is. */
static void damage_is_told(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result;
    const char *path = WORLD_DIR "/hub-0000000000000001/00000001.seg";

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 60; i++) model_publish(&m, 0, 0, 150);
    simfs_flip(m.world.disk, path, (uint64_t)8 * 20000);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.damaged, 1);
    assert_int_equal(m.world.errors, 1);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    assert_int_equal(result.damaged, 1); /* known from before */
    o = model_options(&m, m.world.disk);
    assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
    assert_int_equal(result.damaged, 1);
    simfs_spoil(m.world.disk, path, 40000, 512);
    simfs_flip(m.world.disk, path, (uint64_t)8 * 20000); /* so that it is copied again */
    simfs_flip(m.world.disk, path, (uint64_t)8 * 1000);
    assert_int_equal(weir__backup_run(WORLD_DIR, "second", &o, &result, &m.world.err), 0);
    assert_true(result.damaged >= 2);
    world_fini(&m.world);
}

/* A segment whose header is gone is copied all the same: what is in it may still be found. */
static void a_segment_without_header_is_told(void **state)
{
    static const uint8_t zeros[4096];
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result result;
    const char *path = WORLD_DIR "/hub-0000000000000001/00000001.seg";

    (void)state;
    for (int batches = 4; batches <= 120; batches += 116) { /* two segments, and several */
        model_init(&m, 1, 0);
        for (int i = 0; i < batches; i++) model_publish(&m, 0, 0, 150);
        simfs_poke(m.world.disk, path, zeros, sizeof zeros, 0);
        simfs_poke(m.world.disk, path, zeros, sizeof zeros,
                   simfs_size(m.world.disk, path) - sizeof zeros);
        assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
        assert_int_equal(m.world.errors, 2); /* the file, and that a segment is missing */
        assert_int_equal(result.damaged, 2);
        assert_int_equal(result.segments_copied == 3, batches == 4); /* one is the other hub's */
        assert_in_range(result.events, 1, batches * 150 - 1);        /* from the next segment on */
        o = model_options(&m, m.world.disk);
        assert_int_equal(weir__backup_check(TO, &o, &result, &m.world.err), 0);
        assert_int_equal(result.damaged, 1);
        world_fini(&m.world);
    }
}

/* The folder is damaged, or loses files, after a good backup: the next one tells it and keeps what it
 * has, and so do those after it. */
static void good_copies_stay(void **state)
{
    static const char *const lost[] = {WORLD_DIR "/hub-0000000000000001/00000001.seg",
                                       WORLD_DIR "/hub-0000000000000001/00000002.seg"};
    static struct model m;
    struct weir__backup_result result;
    struct standing standing;
    struct weir__fs *fs;

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 120; i++) model_publish(&m, 0, 0, 150);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    for (int round = 0; round < 4; round++) {
        fs = simfs_fs(m.world.disk);
        m.world.errors = 0;
        if (round == 0) simfs_flip(m.world.disk, lost[0], (uint64_t)8 * 20000);
        if (round == 2)
            for (int i = 0; i < 2; i++) assert_int_equal(fs->ops->remove(fs, lost[i], NULL), 0);
        model_publish(&m, 0, 1, 3);
        assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
        assert_int_equal(m.world.errors, 1);
        assert_int_equal(result.damaged, 0);
    }
    assert_int_equal(model_restore(&m, m.world.disk, "r", &result), 0);
    model_check_folder(&m, m.world.disk, "r", &standing);
    assert_int_equal(standing.begin[0][0], 0);
    assert_int_equal(standing.next[0][0], 120 * 150);
    assert_int_equal(standing.next[0][1], 4 * 3);
    world_fini(&m.world);
}

/* Also when the damage is in the first header, the last batch, or the last header. */
static void good_copies_stay_wherever_the_damage_is(void **state)
{
    static const unsigned places[] = {100, 20000, 41000, 65436};
    static struct model m;
    const char *path = WORLD_DIR "/hub-0000000000000001/00000001.seg";
    struct weir__backup_result result;

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 4; i++) model_publish(&m, 0, 0, 150);
    assert_int_equal(simfs_size(m.world.disk, path), 65536);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        simfs_flip(disk, path, (uint64_t)8 * places[i]);
        m.world.errors = 0;
        assert_int_equal(model_backup(&m, disk, &result), 0);
        assert_int_equal(m.world.errors, 1);
        assert_int_equal(result.damaged, 0);
        assert_int_equal(result.segments_reused, 3);
        simfs_free(disk);
    }
    world_fini(&m.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(under_load),
        cmocka_unit_test(under_load_and_expiry),
        cmocka_unit_test(copies_what_is_new),
        cmocka_unit_test(written_again_while_copied),
        cmocka_unit_test(expired_go_or_stay),
        cmocka_unit_test(refusals),
        cmocka_unit_test(hub_without_control),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(other_files),
        cmocka_unit_test(a_check_notices_every_damage),
        cmocka_unit_test(catalogues_of_every_length),
        cmocka_unit_test(orphans_are_left_out),
        cmocka_unit_test(good_copies_stay),
        cmocka_unit_test(good_copies_stay_wherever_the_damage_is),
        cmocka_unit_test(a_segment_without_header_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
