#include "hub/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc.h"
#include "support/allocs.h"
#include "support/simfs.h"
#include "support/tempdir.h"

#define DIR "data"
#define HEADER_BYTES 32u
#define HEADER_BITS 256u

static struct weir_error err;

/* ---- samples ---- */

static void add_rule(struct weir__rule **rules, uint32_t *count, const char *name)
{
    struct weir__rule rule = {.rights = WEIR__RIGHT_SEND, .key = {"first", "second"}};

    snprintf(rule.name, sizeof rule.name, "%s", name);
    assert_int_equal(weir__catalog_add_rule(rules, count, &rule, &err), 0);
}

static void add_hub(struct weir__catalog *c, const char *name, uint32_t partitions)
{
    struct weir__catalog_hub *hub;

    assert_int_equal(weir__catalog_add_hub(c, &hub, &err), 0);
    snprintf(hub->name, sizeof hub->name, "%s", name);
    hub->id = c->next_hub_id++;
    hub->partitions = partitions;
    hub->created_ms = 1700000000000;
    hub->retain_ms = -1;
    hub->retain_bytes = 1u << 30;
    hub->producers = 2048;
    assert_int_equal(weir__catalog_add_group(hub, WEIR__GROUP_DEFAULT, &err), 0);
    assert_int_equal(weir__catalog_add_group(hub, "billing", &err), 0);
    add_rule(&hub->rules, &hub->rule_count, "sender");
}

static void fill(struct weir__catalog *c)
{
    weir__catalog_init(c);
    c->generation = 7;
    add_rule(&c->rules, &c->rule_count, "Root");
    add_hub(c, "Homes", 16);
    add_hub(c, "meters", 1024);
    c->next_hub_id = 9;
    assert_int_equal(weir__catalog_add_removed(c, 8, &err), 0);
    assert_int_equal(weir__catalog_add_removed(c, 3, &err), 0);
    assert_int_equal(weir__catalog_add_removed(c, 5, &err), 0);
}

static void assert_filled(const struct weir__catalog *c)
{
    const struct weir__catalog_hub *hub = weir__catalog_hub(c, "hOMES");

    assert_int_equal(c->generation, 7);
    assert_int_equal(c->next_hub_id, 9);
    assert_int_equal(c->hub_count, 2);
    assert_int_equal(c->removed_count, 3);
    assert_true(c->removed[0] == 3 && c->removed[1] == 5 && c->removed[2] == 8);
    assert_non_null(weir__catalog_rule(c->rules, c->rule_count, "ROOT"));
    assert_non_null(hub);
    assert_string_equal(hub->name, "Homes");
    assert_int_equal(hub->id, 1);
    assert_int_equal(hub->partitions, 16);
    assert_int_equal(hub->created_ms, 1700000000000);
    assert_int_equal(hub->retain_ms, -1);
    assert_int_equal(hub->retain_bytes, 1u << 30);
    assert_int_equal(hub->producers, 2048);
    assert_int_equal(hub->group_count, 2);
    assert_non_null(weir__catalog_group(hub, "$default"));
    assert_string_equal(weir__catalog_group(hub, "BILLING")->name, "billing");
    assert_int_equal(hub->rule_count, 1);
    assert_string_equal(hub->rules[0].key[WEIR__KEY_SECONDARY], "second");
    assert_int_equal(hub->rules[0].rights, WEIR__RIGHT_SEND);
}

/* ---- the value and its bytes ---- */

static void round_trip_and_copy(void **state)
{
    struct weir__catalog c, copy, back;
    struct weir__buf buf;

    (void)state;
    fill(&c);
    assert_filled(&c);
    assert_int_equal(weir__catalog_copy(&copy, &c, &err), 0);
    weir__catalog_fini(&c);
    assert_filled(&copy);
    weir__buf_init(&buf, WEIR__CATALOG_BYTES_MAX);
    assert_int_equal(weir__catalog_encode(&copy, &buf, &err), 0);
    assert_int_equal(weir__catalog_decode(&back, weir__buf_bytes(&buf), &err), 0);
    assert_filled(&back);
    weir__catalog_remove_hub(&back, weir__catalog_hub(&back, "homes"));
    assert_null(weir__catalog_hub(&back, "homes"));
    assert_string_equal(back.hubs[0].name, "meters");
    weir__catalog_remove_group(&back.hubs[0], weir__catalog_group(&back.hubs[0], "billing"));
    assert_int_equal(back.hubs[0].group_count, 1);
    weir__catalog_remove_rule(back.rules, &back.rule_count, back.rules);
    assert_int_equal(back.rule_count, 0);
    weir__catalog_drop_removed(&back, 5);
    weir__catalog_drop_removed(&back, 6); /* never was */
    assert_true(weir__catalog_is_removed(&back, 3) && weir__catalog_is_removed(&back, 8));
    assert_true(!weir__catalog_is_removed(&back, 5) && back.removed_count == 2);
    weir__catalog_fini(&copy);
    weir__catalog_fini(&back);
    weir__buf_fini(&buf);
}

static void refresh_checksums(uint8_t *at)
{
    weir__store32(at + 24, weir__crc32c(0, at + HEADER_BYTES, weir__load32(at + 12)));
    weir__store32(at + 28, weir__crc32c(0, at, 28));
}

static int decode_exactly(const uint8_t *at, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1); /* so that reading one byte too many is seen */
    struct weir__catalog c;
    int rc;

    memcpy(exact, at, len);
    rc = weir__catalog_decode(&c, weir__bytes_of(exact, len), &err);
    weir__catalog_fini(&c);
    free(exact);
    return rc;
}

static void damaged_bytes(void **state)
{
    struct weir__catalog c;
    struct weir__buf buf;
    size_t good = 0;

    (void)state;
    fill(&c);
    weir__buf_init(&buf, WEIR__CATALOG_BYTES_MAX);
    assert_int_equal(weir__catalog_encode(&c, &buf, &err), 0);
    for (size_t len = 0; len < buf.len; len++)
        assert_int_equal(decode_exactly(buf.at, len), WEIR_ECORRUPT);
    for (size_t bit = 0; bit < buf.len * 8; bit++) {
        buf.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(decode_exactly(buf.at, buf.len), WEIR_ECORRUPT);
        /* With good checksums too: an answer, whatever it is, and no crash. */
        if (bit >= HEADER_BITS) {
            refresh_checksums(buf.at);
            good += decode_exactly(buf.at, buf.len) == 0;
        }
        buf.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refresh_checksums(buf.at);
    }
    assert_true(good > 0 && good < (buf.len - HEADER_BYTES) * 8);
    weir__catalog_fini(&c);
    weir__buf_fini(&buf);
}

static void unknown_version_is_named(void **state)
{
    struct weir__catalog c;
    struct weir__buf buf;

    (void)state;
    fill(&c);
    weir__buf_init(&buf, WEIR__CATALOG_BYTES_MAX);
    assert_int_equal(weir__catalog_encode(&c, &buf, &err), 0);
    weir__store32(buf.at + 8, 3);
    refresh_checksums(buf.at);
    assert_int_equal(decode_exactly(buf.at, buf.len), WEIR_EVERSION);
    assert_string_equal(err.text, "catalogue version 3, this program knows 1 to 2");
    weir__store32(buf.at + 8, 0);
    refresh_checksums(buf.at);
    assert_int_equal(decode_exactly(buf.at, buf.len), WEIR_EVERSION);
    weir__catalog_fini(&c);
    weir__buf_fini(&buf);
}

/* Makes version 1 of a copy: without the ids of deleted hubs. */
static size_t make_old(uint8_t *at, size_t len)
{
    size_t from = HEADER_BYTES + 8, gone = 4 + 8 * (size_t)weir__load32(at + from);

    memmove(at + from, at + from + gone, len - from - gone);
    weir__store32(at + 8, 1);
    weir__store32(at + 12, (uint32_t)(len - gone - HEADER_BYTES));
    refresh_checksums(at);
    return len - gone;
}

static void version_1_is_read(void **state)
{
    struct weir__catalog c, old;
    struct weir__buf buf;
    size_t len;

    (void)state;
    fill(&c);
    weir__buf_init(&buf, WEIR__CATALOG_BYTES_MAX);
    assert_int_equal(weir__catalog_encode(&c, &buf, &err), 0);
    len = make_old(buf.at, buf.len);
    assert_int_equal(weir__catalog_decode(&old, weir__bytes_of(buf.at, len), &err), 0);
    assert_int_equal(old.removed_count, 0);
    for (uint32_t i = 0; i < c.removed_count; i++)
        assert_int_equal(weir__catalog_add_removed(&old, c.removed[i], &err), 0);
    assert_filled(&old); /* and nothing else is different */
    weir__catalog_fini(&old);
    weir__catalog_fini(&c);
    weir__buf_fini(&buf);
}

static void what_cannot_be_is_refused(void **state)
{
    struct weir__catalog c;
    struct weir__buf buf;

    (void)state;
    weir__buf_init(&buf, WEIR__CATALOG_BYTES_MAX);
    for (int i = 0; i < 11; i++) {
        struct weir__catalog_hub *hub;
        fill(&c);
        hub = &c.hubs[1];
        if (i == 0) hub->partitions = 0;
        if (i == 1) hub->partitions = 1025;
        if (i == 2) hub->id = 1; /* another hub's */
        if (i == 3) hub->id = 9; /* not given out yet */
        if (i == 4) memcpy(hub->name, "HOMES", 6);
        if (i == 5) weir__catalog_remove_group(hub, weir__catalog_group(hub, WEIR__GROUP_DEFAULT));
        if (i == 6) hub->rules[0].rights = 8;
        if (i == 7) hub->id = 5;        /* a deleted hub's */
        if (i == 8) c.removed[1] = 3;   /* twice */
        if (i == 9) c.removed[2] = 9;   /* not given out yet */
        if (i == 10) c.next_hub_id = 8; /* as well */
        assert_int_equal(weir__catalog_encode(&c, &buf, &err), 0);
        assert_int_equal(decode_exactly(buf.at, buf.len), WEIR_ECORRUPT);
        weir__catalog_fini(&c);
    }
    weir__buf_fini(&buf);
}

static void limits(void **state)
{
    struct weir__rule rule = {.name = "r", .rights = 1};
    struct weir__catalog_hub *hub;
    struct weir__catalog c;

    (void)state;
    weir__catalog_init(&c);
    for (int i = 0; i < WEIR__CATALOG_HUBS_MAX; i++)
        assert_int_equal(weir__catalog_add_hub(&c, &hub, &err), 0);
    assert_int_equal(weir__catalog_add_hub(&c, &hub, &err), WEIR_ELIMIT);
    hub = c.hubs;
    for (int i = 0; i < WEIR__CATALOG_GROUPS_MAX; i++)
        assert_int_equal(weir__catalog_add_group(hub, "g", &err), 0);
    assert_int_equal(weir__catalog_add_group(hub, "g", &err), WEIR_ELIMIT);
    for (int i = 0; i < WEIR__ACCESS_RULES_MAX; i++)
        assert_int_equal(weir__catalog_add_rule(&c.rules, &c.rule_count, &rule, &err), 0);
    assert_int_equal(weir__catalog_add_rule(&c.rules, &c.rule_count, &rule, &err), WEIR_ELIMIT);
    for (uint64_t i = 1; i <= WEIR__CATALOG_REMOVED_MAX; i++)
        assert_int_equal(weir__catalog_add_removed(&c, i, &err), 0);
    assert_int_equal(weir__catalog_add_removed(&c, 5000, &err), WEIR_ELIMIT);
    weir__catalog_fini(&c);
}

static void hubs_are_kept_in_the_order_of_their_ids(void **state)
{
    struct weir__catalog c;

    (void)state;
    weir__catalog_init(&c);
    add_hub(&c, "one", 1);
    add_hub(&c, "two", 1);
    add_hub(&c, "three", 1);
    c.hubs[1].id = 7;
    c.hubs[0].id = 5;
    assert_string_equal(weir__catalog_place_hub(&c)->name, "three");
    assert_string_equal(c.hubs[0].name, "three");
    assert_string_equal(c.hubs[1].name, "one");
    assert_string_equal(c.hubs[2].name, "two");
    assert_ptr_equal(weir__catalog_place_hub(&c), &c.hubs[2]);
    weir__catalog_fini(&c);
}

static void every_allocation_fails_once(void **state)
{
    struct weir__catalog c, copy;
    uint64_t at = 0;
    int rc;

    (void)state;
    fill(&c);
    do {
        allocs_fail(++at);
        rc = weir__catalog_copy(&copy, &c, &err);
        allocs_fail(0);
        assert_true(rc == 0 || rc == WEIR_ENOMEM);
        weir__catalog_fini(&copy);
    } while (rc != 0);
    assert_true(at > 5);
    weir__catalog_fini(&c);
}

/* To its last byte. */
static void a_large_number_is_copied(void **state)
{
    const uint64_t large = UINT64_C(0x7d7c7b7a79787776);
    struct weir__catalog c, copy;

    (void)state;
    weir__catalog_init(&c);
    assert_int_equal(weir__catalog_add_removed(&c, large, &err), 0);
    assert_int_equal(weir__catalog_copy(&copy, &c, &err), 0);
    assert_true(weir__catalog_is_removed(&copy, large));
    weir__catalog_fini(&c);
    weir__catalog_fini(&copy);
}

/* ---- the two files ---- */

struct lines {
    int warnings, errors;
};

static void listen(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)room;
    (void)line;
    if (level == WEIR__WARN) ((struct lines *)user)->warnings++;
    if (level == WEIR__ERROR) ((struct lines *)user)->errors++;
}

static int load(struct simfs *disk, struct weir__catalog *c, struct weir__catalog_store *s,
                struct lines *lines)
{
    struct weir__logger logger = {listen, lines};

    *lines = (struct lines){0};
    assert_int_equal(weir__catalog_store_init(s, simfs_fs(disk), DIR, &logger, &err), 0);
    return weir__catalog_load(s, c, &err);
}

/* A disk with a catalogue of generation 7 in both copies. */
static struct simfs *saved_disk(void)
{
    struct simfs *disk = simfs_new();
    struct weir__catalog_store s;
    struct weir__catalog c;

    assert_int_equal(simfs_fs(disk)->ops->make_dir(simfs_fs(disk), DIR, &err), 0);
    assert_int_equal(simfs_fs(disk)->ops->sync_dir(simfs_fs(disk), ".", &err), 0);
    assert_int_equal(weir__catalog_store_init(&s, simfs_fs(disk), DIR, NULL, &err), 0);
    fill(&c);
    assert_int_equal(weir__catalog_save(&s, &c, &err), 0);
    weir__catalog_fini(&c);
    return disk;
}

static void one_bad_copy_is_survived_and_healed(void **state)
{
    static const char *const paths[] = {DIR "/catalog.0", DIR "/catalog.1"};
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};
    uint64_t calls;

    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        struct simfs *disk = saved_disk();
        assert_int_equal(load(disk, &c, &s, &lines), 0);
        assert_int_equal(lines.warnings, 0);
        assert_int_equal(weir__catalog_heal(&s, &c, &err), 0); /* nothing to heal */
        weir__catalog_fini(&c);
        simfs_flip(disk, paths[bad], 320);
        assert_int_equal(load(disk, &c, &s, &lines), 0);
        assert_int_equal(lines.warnings, 1);
        assert_int_equal(lines.errors, 0);
        assert_false(s.stale); /* its header says that it has nothing newer */
        assert_filled(&c);
        assert_int_equal(weir__catalog_heal(&s, &c, &err), 0);
        calls = simfs_calls(disk, SIMFS_ANY);
        assert_int_equal(weir__catalog_heal(&s, &c, &err), 0); /* which has been done */
        assert_int_equal(simfs_calls(disk, SIMFS_ANY), calls);
        weir__catalog_fini(&c);
        simfs_flip(disk, paths[1 - bad], 320);
        assert_int_equal(load(disk, &c, &s, &lines), 0);
        assert_filled(&c);
        weir__catalog_fini(&c);
        simfs_free(disk);
    }
}

/* Without memory nothing is written over. */
static void healing_without_memory(void **state)
{
    struct simfs *disk = saved_disk();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};
    uint64_t before;

    (void)state;
    simfs_flip(disk, DIR "/catalog.0", 320);
    assert_int_equal(load(disk, &c, &s, &lines), 0);
    before = simfs_hash(disk);
    allocs_fail(1);
    assert_int_equal(weir__catalog_heal(&s, &c, &err), WEIR_ENOMEM);
    allocs_fail(0);
    assert_int_equal(simfs_hash(disk), before);
    assert_int_equal(weir__catalog_heal(&s, &c, &err), 0);
    assert_int_not_equal(simfs_hash(disk), before);
    weir__catalog_fini(&c);
    simfs_free(disk);
}

static void two_bad_copies_are_named(void **state)
{
    struct simfs *disk = saved_disk();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};

    (void)state;
    simfs_flip(disk, DIR "/catalog.0", 320);
    simfs_flip(disk, DIR "/catalog.1", 328);
    assert_int_equal(load(disk, &c, &s, &lines), WEIR_ECORRUPT);
    assert_string_equal(err.text, "no good catalogue: " DIR
                                  "/catalog.0: the catalogue fails its checksum; " DIR
                                  "/catalog.1: the catalogue fails its checksum");
    simfs_free(disk);
}

static void neither_copy_is_not_found(void **state)
{
    struct simfs *disk = simfs_new();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};

    (void)state;
    assert_int_equal(load(disk, &c, &s, &lines), WEIR_ENOTFOUND);
    assert_string_equal(err.text,
                        "no good catalogue: " DIR "/catalog.0: no such file or folder; " DIR
                        "/catalog.1: no such file or folder");
    simfs_free(disk);
}

/* One that was never written, and one that is bad: there is none, and both are named. */
static void one_bad_copy_and_no_other(void **state)
{
    struct simfs *disk = saved_disk();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};

    (void)state;
    simfs_fs(disk)->ops->remove(simfs_fs(disk), DIR "/catalog.1", NULL);
    simfs_put(disk, DIR "/catalog.0", "x", 1);
    assert_int_equal(load(disk, &c, &s, &lines), WEIR_ENOTFOUND);
    assert_string_equal(err.text, "no good catalogue: " DIR "/catalog.0: not a catalogue; " DIR
                                  "/catalog.1: no such file or folder");
    simfs_free(disk);
}

/* What one copy holds is not known: this is no folder without a catalogue. */
static void one_unreadable_copy_and_no_other(void **state)
{
    struct simfs *disk = saved_disk();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};

    (void)state;
    simfs_spoil(disk, DIR "/catalog.1", 0, 512);
    simfs_fs(disk)->ops->remove(simfs_fs(disk), DIR "/catalog.0", NULL);
    assert_int_equal(load(disk, &c, &s, &lines), WEIR_EIO);
    assert_string_equal(err.text,
                        "the catalogue cannot be read: " DIR "/catalog.1: simulated bad sector");
    simfs_free(disk);
}

/* The administrator may read everything, and becomes somebody else for this. */
static int load_as_stranger(const char *dir, const char *path)
{
    bool root = geteuid() == 0;
    struct weir__catalog_store s;
    struct weir__catalog c;
    int rc;

    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(weir__catalog_store_init(&s, weir__fs_posix(), dir, NULL, &err), 0);
    if (root) assert_int_equal(seteuid(65534), 0);
    rc = weir__catalog_load(&s, &c, &err);
    if (root) assert_int_equal(seteuid(0), 0);
    return rc;
}

/* It is as good as ever: nobody is to be told to put another one in its place. */
static void a_catalogue_of_somebody_else(void **state)
{
    char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 16], want[TEMPDIR_BYTES + 128];
    struct weir__catalog_store s;
    struct weir__catalog c;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(path, sizeof path, "%s/catalog.0", dir);
    assert_int_equal(weir__catalog_store_init(&s, weir__fs_posix(), dir, NULL, &err), 0);
    fill(&c);
    assert_int_equal(weir__catalog_save(&s, &c, &err), 0);
    weir__catalog_fini(&c);
    snprintf(want, sizeof want, "%s/catalog.1", dir);
    assert_int_equal(chmod(want, 0), 0);
    assert_int_equal(load_as_stranger(dir, path), WEIR_EIO);
    snprintf(
        want, sizeof want,
        "the catalogue cannot be read: %s: open: Permission denied (run as the folder's owner)",
        path);
    assert_string_equal(err.text, want);
    tempdir_remove(dir);
}

/* A newer program wrote one copy: falling back to the other would undo what it did. */
static void newer_version_beside_a_good_copy(void **state)
{
    struct simfs *disk = saved_disk();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};
    uint8_t file[4096];
    long len = simfs_peek(disk, DIR "/catalog.1", file, sizeof file, 0);

    (void)state;
    assert_true(len > HEADER_BYTES);
    weir__store32(file + 8, 9);
    refresh_checksums(file);
    simfs_poke(disk, DIR "/catalog.1", file, (size_t)len, 0);
    assert_int_equal(load(disk, &c, &s, &lines), WEIR_EVERSION);
    assert_string_equal(err.text, DIR "/catalog.1: catalogue version 9, this program knows 1 to 2");
    simfs_free(disk);
}

/* Saves generation 8, which lacks a hub, and returns what came of it. */
static int save_next(struct simfs *disk)
{
    struct weir__catalog_store s;
    struct weir__catalog c;
    int rc;

    assert_int_equal(weir__catalog_store_init(&s, simfs_fs(disk), DIR, NULL, &err), 0);
    rc = weir__catalog_load(&s, &c, &err);
    if (rc != 0) return rc;
    c.generation++;
    weir__catalog_remove_hub(&c, weir__catalog_hub(&c, "meters"));
    rc = weir__catalog_save(&s, &c, &err);
    weir__catalog_fini(&c);
    return rc;
}

/* The generation that a disk holds; the value must be that of the generation. */
static uint64_t generation_of(struct simfs *disk)
{
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};
    uint64_t generation;

    assert_int_equal(load(disk, &c, &s, &lines), 0);
    generation = c.generation;
    assert_false(s.stale); /* a write that was cut is told from damage */
    assert_int_equal(c.hub_count, generation == 7 ? 2 : 1);
    weir__catalog_fini(&c);
    return generation;
}

/* A copy that was left behind, and its partner: the newer one wins, and when that is bad, what the
 * older one lacks is not taken for deleted. */
static void copies_of_different_age(void **state)
{
    static const char *const paths[] = {DIR "/catalog.0", DIR "/catalog.1"};
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};
    uint8_t old[4096];

    (void)state;
    for (int newer = 0; newer < 2; newer++)
        for (int how = 0; how < 5; how++) { /* good, body bad, header bad, unreadable, missing */
            struct simfs *disk = saved_disk();
            long len = simfs_peek(disk, paths[1 - newer], old, sizeof old, 0);
            assert_int_equal(save_next(disk), 0);
            simfs_put(disk, paths[1 - newer], old, (size_t)len);
            if (how == 1) simfs_flip(disk, paths[newer], 8 * 40);
            if (how == 2) simfs_flip(disk, paths[newer], 8 * 17);
            if (how == 3) simfs_spoil(disk, paths[newer], 0, 512);
            if (how == 4) simfs_fs(disk)->ops->remove(simfs_fs(disk), paths[newer], NULL);
            assert_int_equal(load(disk, &c, &s, &lines), 0);
            assert_int_equal(c.generation, how == 0 ? 8 : 7);
            assert_int_equal(s.stale, how != 0);
            assert_int_equal(lines.errors, how != 0);
            weir__catalog_fini(&c);
            simfs_free(disk);
        }
}

/* What cannot be read for the moment, at whichever step and of whichever copy, is no reason to take
 * an older copy. */
static void a_short_want_is_no_damage(void **state)
{
    static const unsigned steps[] = {SIMFS_OPEN, SIMFS_SIZE, SIMFS_READ};
    struct simfs *disk = saved_disk();
    struct weir__catalog_store s;
    struct weir__catalog c;
    struct lines lines = {0};
    char want[128];

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct simfs_fault fault = {.kinds = steps[i / 2],
                                    .at = 1 + (uint64_t)i % 2,
                                    .rc = WEIR_EBUSY};
        snprintf(want, sizeof want,
                 "the catalogue cannot be read: " DIR "/catalog.%d: simulated fault", i % 2);
        simfs_fail(disk, &fault);
        assert_int_equal(load(disk, &c, &s, &lines), WEIR_EBUSY);
        assert_string_equal(err.text, want);
        assert_int_equal(c.hub_count, 0);
        simfs_fail(disk, NULL);
    }
    assert_int_equal(lines.warnings + lines.errors, 0);
    assert_int_equal(simfs_open_files(disk), 0);
    assert_int_equal(load(disk, &c, &s, &lines), 0);
    weir__catalog_fini(&c);
    simfs_free(disk);
}

/* Power fails at every call of a save, and the disk keeps any part of what was not synced. */
static void crashes_while_saving(void **state)
{
    uint64_t images = 0, at = 0;
    int rc;

    (void)state;
    do {
        struct simfs *disk = saved_disk();
        simfs_stop(disk, simfs_calls(disk, SIMFS_ANY) + ++at);
        rc = save_next(disk);
        for (int keep = SIMFS_KEEP_NONE; keep <= SIMFS_KEEP_RANDOM; keep++) {
            for (uint64_t n = 0; n < 8; n++, images++) {
                struct simfs *after = simfs_crash(disk, (enum simfs_keep)keep, n);
                uint64_t generation = generation_of(after);
                assert_true(generation == 8 || (rc != 0 && generation == 7));
                simfs_free(after);
            }
        }
        simfs_free(disk);
    } while (rc != 0);
    assert_true(at > 8 && images > 400);
}

/* Each call fails once, and each write with all that follow it. What is called "not stored" is never
 * found later; what is called stored always is. */
static void faults_while_saving(void **state)
{
    static const int codes[] = {WEIR_EIO, WEIR_ENOSPACE};
    bool struck = true, any;

    (void)state;
    for (uint64_t at = 1; struck; at++, struck = any) {
        any = false;
        for (int k = 0; k < 4; k++) {
            struct simfs *disk = saved_disk(), *after;
            struct simfs_fault fault = {.kinds = k < 2 ? SIMFS_CHANGES : SIMFS_WRITE,
                                        .at = at,
                                        .persistent = k >= 2,
                                        .rc = codes[k % 2],
                                        .short_write = true,
                                        .seed = at};
            int rc;
            simfs_fail(disk, &fault);
            rc = save_next(disk);
            any |= simfs_failed(disk);
            simfs_fail(disk, NULL);
            for (uint64_t n = 0; n < 8; n++) {
                after = simfs_crash(disk, n ? SIMFS_KEEP_RANDOM : SIMFS_KEEP_ALL, n);
                if (rc == 0)
                    assert_int_equal(generation_of(after), 8);
                else if (rc != WEIR_EUNKNOWN)
                    assert_int_equal(generation_of(after), 7);
                else
                    assert_true(generation_of(after) >= 7);
                simfs_free(after);
            }
            simfs_free(disk);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip_and_copy),
        cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(unknown_version_is_named),
        cmocka_unit_test(version_1_is_read),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(limits),
        cmocka_unit_test(hubs_are_kept_in_the_order_of_their_ids),
        cmocka_unit_test(copies_of_different_age),
        cmocka_unit_test(a_short_want_is_no_damage),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(one_bad_copy_is_survived_and_healed),
        cmocka_unit_test(healing_without_memory),
        cmocka_unit_test(a_large_number_is_copied),
        cmocka_unit_test(two_bad_copies_are_named),
        cmocka_unit_test(neither_copy_is_not_found),
        cmocka_unit_test(one_bad_copy_and_no_other),
        cmocka_unit_test(one_unreadable_copy_and_no_other),
        cmocka_unit_test(a_catalogue_of_somebody_else),
        cmocka_unit_test(newer_version_beside_a_good_copy),
        cmocka_unit_test(crashes_while_saving),
        cmocka_unit_test(faults_while_saving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
