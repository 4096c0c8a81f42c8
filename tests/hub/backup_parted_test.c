/* backup_parted_test.c - a segment of the backup stands in for one that the folder has lost, damaged or let
 * expire, when it is of the folder's own line, and only then. A restored folder and the one that it came from
 * are two lines. */
#include "hub/backup_world.h"
#include "log/batch.h"
#include "log/segment.h"
#include "support/format1.h"
#include "support/pace.h"

#define HUB "/hub-0000000000000001"
#define FIRST WORLD_DIR HUB "/00000001.seg"
#define NUMBER_AT 24 /* of a segment, in its file */
#define HEADS_BYTES_AT 68
#define SECRET_AT 80

#define SEEDS (PACE > 1 ? 5 : 15)

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

/* An open that fails once for want of a descriptor: the backup fails, or tells the lost segment. */
static void an_error_that_passes_proves_nothing(void **state)
{
    static struct model m;
    struct weir__namespace *first;
    bool struck = true;

    (void)state;
    part(&m, &first);
    remove_file(m.world.disk, "other" HUB "/00000002.seg");
    for (uint64_t at = 1; struck; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);
        struct weir__backup_options o = model_options(&m, disk);
        struct weir__backup_result r;
        int rc;

        simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = at, .rc = WEIR_EBUSY});
        rc = weir__backup_run("other", TO, &o, &r, &m.world.err);
        struck = simfs_failed(disk);
        assert_true(rc != 0 || r.damaged > 0 || r.left_out > 0);
        simfs_free(disk);
    }
    weir__namespace_close(first, NULL);
    world_fini(&m.world);
}

/* ---- one line, and damage ---- */

static uint64_t number_of(struct simfs *disk, const char *path)
{
    uint8_t bytes[8] = {0};

    simfs_peek(disk, path, bytes, sizeof bytes, NUMBER_AT);
    return weir__load64(bytes);
}

static bool is_segment_in(const char *path, const char *dir)
{
    return !strncmp(path, dir, strlen(dir)) && strstr(path, ".seg");
}

static const char *copy_of(struct simfs *disk, uint64_t number)
{
    const char *path;

    for (size_t i = 0; (path = simfs_path(disk, i)); i++)
        if (is_segment_in(path, TO HUB) && number_of(disk, path) == number) return path;
    fail_msg("segment %llu is not in the backup", (unsigned long long)number);
    return NULL;
}

/* Where the header of a partition's last batch lies in a segment's file. */
static uint64_t last_batch(struct simfs *disk, const char *path, uint32_t partition)
{
    static uint8_t bytes[2 << 20];
    struct weir__batch_stamp stamp;
    struct weir__batch_header h;
    uint64_t found = 0, at, len = simfs_size(disk, path);

    assert_in_range(len, 1, sizeof bytes);
    assert_int_equal(simfs_peek(disk, path, bytes, len, 0), len);
    stamp = weir__batch_stamp(weir__load64(bytes + 16), weir__load64(bytes + SECRET_AT));
    at = weir__segment_front_bytes(weir__load32(bytes + HEADS_BYTES_AT));
    while (at + WEIR__BATCH_HEADER_BYTES < len && weir__batch_decode(bytes + at, &stamp, &h)) {
        if (h.partition == partition) found = at;
        at += weir__batch_bytes(h.body_bytes);
    }
    assert_true(found > 0);
    return found;
}

#define IN_HEADER 20 /* a byte of it that its checksum covers */

static void damage_batch(struct simfs *disk, const char *path, uint32_t partition)
{
    simfs_flip(disk, path, 8 * (last_batch(disk, path, partition) + IN_HEADER));
}

/* The only copy that is left of a segment. */
static void a_rotten_copy_stays(void **state)
{
    (void)state;
    for (int unreadable = 0; unreadable < 2; unreadable++) {
        static struct model m;
        struct weir__backup_result r;
        const char *path;

        model_init(&m, 1, 0);
        for (int i = 0; i < 20; i++) model_publish(&m, 0, i % 2, 100);
        assert_int_equal(model_backup(&m, m.world.disk, &r), 0);
        path = copy_of(m.world.disk, 1);
        if (unreadable)
            simfs_spoil(m.world.disk, path, last_batch(m.world.disk, path, 0), 80);
        else
            damage_batch(m.world.disk, path, 0);
        remove_file(m.world.disk, FIRST);
        assert_int_equal(model_backup(&m, m.world.disk, &r), 0);
        assert_int_equal(r.damaged, 0);
        assert_int_equal(r.segments_removed, 0);
        world_fini(&m.world);
    }
}

/* An open that fails once must not cost the only copy. */
static void an_error_that_passes_costs_no_copy(void **state)
{
    static struct model m;
    struct weir__backup_result r;
    bool struck = true;

    (void)state;
    model_init(&m, 1, 0);
    for (int i = 0; i < 20; i++) model_publish(&m, 0, i % 2, 100);
    assert_int_equal(model_backup(&m, m.world.disk, &r), 0);
    remove_file(m.world.disk, FIRST);
    for (uint64_t at = 1; struck; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        simfs_fail(disk, &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = at, .rc = WEIR_EBUSY});
        model_backup(&m, disk, &r);
        struck = simfs_failed(disk);
        simfs_fail(disk, NULL);
        assert_int_equal(model_backup(&m, disk, &r), 0);
        assert_int_equal(r.damaged, 0);
        simfs_free(disk);
    }
    world_fini(&m.world);
}

static void read_control(struct model *m, struct weir__control *out)
{
    struct weir__fs *fs = simfs_fs(m->world.disk);
    struct weir__file *f;
    int bad;

    *out = (struct weir__control){.hub_id = 1};
    assert_int_equal(fs->ops->open(fs, WORLD_DIR HUB "/control", WEIR__FS_READ_ONLY, &f,
                                   &m->world.err),
                     0);
    assert_int_equal(weir__control_read(f, out, &bad, &m->world.err), 0);
    weir__file_close(f);
    weir__control_fini(out);
}

static void rotten_copies_of_what_has_expired_stay(void **state)
{
    static struct model m;
    struct weir__backup_options o;
    struct weir__backup_result before, r;
    struct weir__control control;

    (void)state;
    model_init(&m, 1, (uint64_t)3 << 20);
    o = model_options(&m, m.world.disk);
    o.keep_expired = true;
    for (int i = 0; i < 20; i++) {
        for (int n = 0; n < 15; n++) model_publish(&m, 0, 0, 150);
        assert_int_equal(weir__namespace_step(m.world.ns, &m.world.err), 0);
        assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &before, &m.world.err), 0);
    }
    read_control(&m, &control);
    assert_true(control.first_segment > 2);
    damage_batch(m.world.disk, copy_of(m.world.disk, control.first_segment - 1), 0);
    assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &r, &m.world.err), 0);
    assert_int_equal(r.segments_removed, 0);
    assert_int_equal(r.events, before.events);
    world_fini(&m.world);
}

static void crash(struct model *m, enum simfs_keep keep, uint64_t n)
{
    struct simfs *disk = simfs_crash(m->world.disk, keep, n);

    weir__namespace_close(m->world.ns, NULL);
    simfs_free(m->world.disk);
    m->world.disk = disk;
    m->world.options.fs = simfs_fs(disk);
}

/* A backup of the first segment while it is written to; then the machine stops. */
static void back_up_and_crash(struct model *m)
{
    static const int partitions[] = {0, 1, 1, 0, 0};
    struct weir__backup_result r;

    model_init(m, 1, 0);
    for (int i = 0; i < 5; i++) model_publish(m, 0, partitions[i], 3);
    assert_int_equal(model_backup(m, m->world.disk, &r), 0);
    assert_int_equal(r.events, 15);
    crash(m, SIMFS_KEEP_ALL, 0);
}

static void open_damaged(struct model *m)
{
    struct standing is;

    assert_int_equal(world_open(&m->world), 0);
    model_stand(m, m->world.ns, &is); /* opens the logs */
}

/* The folder has lost events of a partition before it went on in the next segment, which knows less of
 * that partition than the copy has. */
static void a_copy_that_knows_more_stays(void **state)
{
    static const uint8_t zeros[4096];
    static struct model m;
    struct weir__backup_result r;
    uint64_t len;

    (void)state;
    back_up_and_crash(&m);
    damage_batch(m.world.disk, FIRST, 1);
    len = simfs_size(m.world.disk, FIRST);
    simfs_poke(m.world.disk, FIRST, zeros, sizeof zeros, 0);
    simfs_poke(m.world.disk, FIRST, zeros, sizeof zeros, len - sizeof zeros);
    open_damaged(&m);
    model_publish(&m, 0, 0, 7);
    assert_int_equal(model_backup(&m, m.world.disk, &r), 0);
    assert_int_equal(r.events, 15 + 7);
    assert_int_equal(r.segments_reused, 2); /* one is the other hub's */
    world_fini(&m.world);
}

static void roll(struct model *m)
{
    for (int day = 0; day < 60 && simfs_size(m->world.disk, WORLD_DIR HUB "/00000002.seg") == 0;
         day++) {
        simclock_pass(&m->world.time, (int64_t)24 * 3600 * 1000);
        assert_int_equal(weir__namespace_step(m->world.ns, &m->world.err), 0);
    }
}

/* The copy is of before the segment was sealed, and the damage lies near its end: the marks differ at both
 * ends. */
static void a_copy_of_before_the_seal_stays(void **state)
{
    static struct model m;
    struct weir__backup_result r;

    (void)state;
    back_up_and_crash(&m);
    damage_batch(m.world.disk, FIRST, 1);
    open_damaged(&m);
    roll(&m);
    model_publish(&m, 0, 0, 7);
    for (int lost = 0; lost < 2; lost++) {
        if (lost) remove_file(m.world.disk, FIRST);
        assert_int_equal(model_backup(&m, m.world.disk, &r), 0);
        assert_int_equal(r.damaged, 0);
        assert_int_equal(r.events, 15 + 7);
    }
    world_fini(&m.world);
}

#define HEADS 4096 /* in a segment's file; the second copy of them is its last block */

/* As before, but what the next segment knows of it cannot be read: nobody knows whether the two are of
 * one line, so the copy does not pass for what the damaged file was. */
static void what_cannot_be_compared_is_not_taken(void **state)
{
    static struct model m;
    struct weir__backup_result r;
    const char *next = WORLD_DIR HUB "/00000002.seg";
    uint64_t len;

    (void)state;
    back_up_and_crash(&m);
    damage_batch(m.world.disk, FIRST, 1);
    open_damaged(&m);
    roll(&m);
    model_publish(&m, 0, 0, 7);
    len = simfs_size(m.world.disk, next);
    simfs_flip(m.world.disk, next, 8 * (uint64_t)HEADS);
    simfs_flip(m.world.disk, next, 8 * (len - WEIR__FS_BLOCK));
    assert_int_equal(model_backup(&m, m.world.disk, &r), 0);
    assert_int_equal(r.left_out, 1); /* the hub stays as it was there */
    assert_int_equal(r.damaged, 0);
    assert_int_equal(r.events, 15);
    world_fini(&m.world);
}

/* ---- any history of one line ---- */

static void publish_few(struct model *m, uint64_t *dice, uint64_t most)
{
    for (uint64_t n = dice_roll(dice, most); n > 0; n--)
        model_publish(m, 0, (int)dice_roll(dice, PARTITIONS), 1 + (int)dice_roll(dice, 150));
}

static void pass_time(struct model *m, int64_t hours)
{
    simclock_pass(&m->world.time, hours * 3600 * 1000);
    assert_int_equal(weir__namespace_step(m->world.ns, &m->world.err), 0);
}

/* Grows the hub, and publishes to one of its new partitions. */
static void grow(struct model *m, uint64_t *dice, uint32_t *partitions)
{
    struct weir__hub_changes more = {.given = WEIR__HUB_PARTITIONS, .partitions = *partitions + 3};
    struct weir__hub *hub;

    if (*partitions < 40) {
        assert_int_equal(weir__namespace_hub_update(m->world.ns, "a", &more, &m->world.err), 0);
        *partitions += 3;
    }
    assert_int_equal(weir__namespace_use(m->world.ns, "a", &hub, &m->world.err), 0);
    assert_int_equal(world_publish(&m->world, hub,
                                   PARTITIONS + (uint32_t)dice_roll(dice, *partitions - PARTITIONS),
                                   "new", 4, NULL),
                     0);
    weir__hub_release(hub);
}

static void go_on(struct model *m, uint64_t *dice, uint32_t *partitions)
{
    switch (dice_roll(dice, 7)) {
    case 0: pass_time(m, (int64_t)dice_roll(dice, 50)); break;
    case 1:
        assert_int_equal(world_close(&m->world), 0);
        assert_int_equal(world_open(&m->world), 0);
        break;
    case 2:
        crash(m, dice_roll(dice, 2) ? SIMFS_KEEP_RANDOM : SIMFS_KEEP_NONE, dice_next(dice));
        assert_int_equal(world_open(&m->world), 0);
        break;
    case 3: grow(m, dice, partitions); break;
    default: publish_few(m, dice, 40); break;
    }
}

/* Removes some of the segments up to this number from a folder. */
static unsigned lose_some(struct simfs *disk, uint64_t *dice, uint64_t newest)
{
    unsigned lost = 0;
    const char *path;

    for (size_t i = 0; (path = simfs_path(disk, i)); i++) {
        uint64_t number = number_of(disk, path);

        if (!is_segment_in(path, WORLD_DIR HUB) || number == 0 || number > newest ||
            dice_roll(dice, 2))
            continue;
        remove_file(disk, path);
        lost++;
        i--;
    }
    return lost;
}

/* A segment that was sealed when the backup was made is in it; so is the newest one, if it was sealed as it
 * was. */
static unsigned back_up_and_lose(struct model *m, uint64_t *dice)
{
    struct weir__backup_options o = model_options(m, m->world.disk);
    struct weir__control then, now;
    struct weir__backup_result r;
    struct simfs *disk;
    unsigned lost;

    o.keep_expired = dice_roll(dice, 2);
    assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &r, &m->world.err), 0);
    assert_int_equal(r.damaged, 0);
    read_control(m, &then);
    if (dice_roll(dice, 2)) pass_time(m, 48);
    read_control(m, &now);
    publish_few(m, dice, 12);
    disk = simfs_clone(m->world.disk);
    lost = lose_some(disk, dice, then.last_segment - (now.last_segment == then.last_segment));
    o.fs = simfs_fs(disk);
    assert_int_equal(weir__backup_run(WORLD_DIR, TO, &o, &r, &m->world.err), 0);
    assert_int_equal(r.damaged, 0);
    simfs_free(disk);
    return lost;
}

static void one_line_is_filled(void **state)
{
    unsigned lost = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct model m;
        uint64_t dice = seed * 77;
        uint32_t partitions = PARTITIONS;

        model_init(&m, seed, seed % 2 ? 0 : (uint64_t)3 << 20);
        for (int i = 0; i < 60; i++)
            if (dice_roll(&dice, 3) == 0)
                lost += back_up_and_lose(&m, &dice);
            else
                go_on(&m, &dice, &partitions);
        world_fini(&m.world);
    }
    assert_true(lost > 10 * SEEDS);
}

/* ---- a folder of format version 1 ---- */

/* Two segments; the upgrade seals the second one and begins a third. */
static void back_up_and_upgrade(struct model *m, struct weir__backup_result *before)
{
    struct history *h = history_new(5);
    struct weir__hub *hub;

    memset(m, 0, sizeof *m);
    world_init(&m->world, simfs_new());
    assert_int_equal(world_open(&m->world), 0);
    assert_int_equal(world_create(&m->world, "a", 5), 0);
    assert_int_equal(world_close(&m->world), 0);
    format1_write(m->world.disk, WORLD_DIR HUB, 1, m->world.time.wall_ms - 1000, h);
    history_free(h);
    assert_int_equal(model_backup(m, m->world.disk, before), 0);
    assert_int_equal(before->segments_copied, 2);
    assert_int_equal(world_open(&m->world), 0);
    assert_int_equal(weir__namespace_use(m->world.ns, "a", &hub, &m->world.err), 0);
    assert_int_equal(world_publish(&m->world, hub, 0, "x", 3, NULL), 0);
    weir__hub_release(hub);
}

static void segments_of_version_1_are_filled(void **state)
{
    static struct model m;
    struct weir__backup_result before, r;

    (void)state;
    back_up_and_upgrade(&m, &before);
    for (unsigned lost = 1; lost <= 2; lost++) {
        struct simfs *disk = simfs_clone(m.world.disk);

        remove_file(disk, FIRST);
        if (lost == 2) remove_file(disk, WORLD_DIR HUB "/00000002.seg");
        assert_int_equal(model_backup(&m, disk, &r), 0);
        assert_int_equal(r.damaged, 0);
        assert_int_equal(r.segments_reused, lost);
        assert_int_equal(r.events, before.events + 3);
        simfs_free(disk);
    }
    world_fini(&m.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_part),
        cmocka_unit_test(expired_of_another_line_go),
        cmocka_unit_test(an_error_that_passes_proves_nothing),
        cmocka_unit_test(a_rotten_copy_stays),
        cmocka_unit_test(an_error_that_passes_costs_no_copy),
        cmocka_unit_test(rotten_copies_of_what_has_expired_stay),
        cmocka_unit_test(a_copy_that_knows_more_stays),
        cmocka_unit_test(a_copy_of_before_the_seal_stays),
        cmocka_unit_test(what_cannot_be_compared_is_not_taken),
        cmocka_unit_test(one_line_is_filled),
        cmocka_unit_test(segments_of_version_1_are_filled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
