/* backup_faults_test.c - the disk fails once, at each call of a backup, of a check and of a restore: either
 * that is told, or everything was done all the same. */
#include "hub/backup_world.h"

#include <openssl/evp.h>

static struct model m;

static int set_up(void **state)
{
    struct weir__backup_result result;

    (void)state;
    model_init(&m, 3, 0);
    for (int i = 0; i < 2; i++) model_publish(&m, 0, 0, 150); /* more than a segment */
    simfs_put(m.world.disk, WORLD_DIR "/hub-0000000000000001/producers-00000001.tab", "text", 4);
    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
    model_publish(&m, 0, 0, 150);
    simfs_put(m.world.disk, WORLD_DIR "/hub-0000000000000001/producers-00000001.tab", "more", 4);
    simfs_put(m.world.disk, WORLD_DIR "/id", "0123456789abcdef0123456789abcdef", 32);
    return world_close(&m.world);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&m.world);
    return 0;
}

typedef int (*work_fn)(const struct weir__backup_options *, struct weir__backup_result *,
                       struct weir_error *);

static int back_up(const struct weir__backup_options *o, struct weir__backup_result *out,
                   struct weir_error *err)
{
    return weir__backup_run(WORLD_DIR, TO, o, out, err);
}

static int check(const struct weir__backup_options *o, struct weir__backup_result *out,
                 struct weir_error *err)
{
    return weir__backup_check(TO, o, out, err);
}

static int restore(const struct weir__backup_options *o, struct weir__backup_result *out,
                   struct weir_error *err)
{
    return weir__backup_restore(TO, "r", o, out, err);
}

#define TABLE "hub-0000000000000001/producers-00000001.tab"

/* As if nothing had been. */
static void check_done(struct simfs *disk, const char *table)
{
    struct weir__backup_options o = model_options(&m, disk);
    struct weir__backup_result r = {0};
    struct weir_error err = {0};
    char got[8] = "";

    if (check(&o, &r, &err) != 0) fail_msg("%s", err.text);
    assert_int_equal(r.hubs, HUBS);
    assert_int_equal(simfs_peek(disk, table, got, sizeof got - 1, 0), 4);
    assert_string_equal(got, "more");
}

/* How often nothing was told. */
static unsigned fail_each(work_fn work, unsigned kinds, const char *table)
{
    unsigned untold = 0;
    bool struck = true;

    for (uint64_t at = 1; struck; at++) {
        struct simfs *disk = simfs_clone(m.world.disk);
        struct weir__backup_options o = model_options(&m, disk);
        struct weir__backup_result r = {0};
        struct weir_error err = {0};
        int rc;

        simfs_fail(disk, &(struct simfs_fault){.kinds = kinds, .at = at, .rc = WEIR_EIO});
        rc = work(&o, &r, &err);
        struck = simfs_failed(disk);
        simfs_fail(disk, NULL);
        if (rc == 0 && r.left_out == 0) check_done(disk, table);
        if (rc != 0) assert_true(strlen(err.text) > 0);
        if (rc != 0 && work == restore) assert_int_equal(r.hubs, 0);
        untold += struck && rc == 0;
        assert_int_equal(simfs_open_files(disk), 0);
        simfs_free(disk);
    }
    return untold;
}

struct row {
    unsigned kinds, untold;
};

static void expect(work_fn work, const struct row *rows, size_t count, const char *table)
{
    for (size_t i = 0; i < count; i++) {
        unsigned untold = fail_each(work, rows[i].kinds, table);

        if (rows[i].kinds != SIMFS_READ && untold != rows[i].untold)
            fail_msg("calls of kind %u: %u errors are not told, not %u", rows[i].kinds, untold,
                     rows[i].untold);
    }
}

/* There are two copies of the catalogue, of a control file and of a manifest. What cannot be read of the
 * source is told in the result. */
static void a_backup(void **state)
{
    static const struct row rows[] = {{SIMFS_OPEN, 38},    {SIMFS_LIST, 4},     {SIMFS_REMOVE, 0},
                                      {SIMFS_MAKE_DIR, 0}, {SIMFS_SYNC_DIR, 0}, {SIMFS_READ, 0},
                                      {SIMFS_WRITE, 2},    {SIMFS_SYNC, 2},     {SIMFS_ALLOCATE, 0},
                                      {SIMFS_SIZE, 25}};

    (void)state;
    expect(back_up, rows, sizeof rows / sizeof rows[0], TO "/" TABLE);
}

/* The table of the former backup cannot be removed: nothing is copied onto it. */
static void a_table_that_stays(void **state)
{
    struct weir__backup_options o = model_options(&m, m.world.disk);
    struct simfs_fault first = {.kinds = SIMFS_REMOVE, .at = 1, .rc = WEIR_EIO};
    struct weir__backup_result r = {0};
    struct weir_error err = {0};
    char got[8] = "";

    (void)state;
    simfs_fail(m.world.disk, &first);
    assert_int_equal(back_up(&o, &r, &err), WEIR_EIO);
    assert_true(simfs_failed(m.world.disk));
    simfs_fail(m.world.disk, NULL);
    assert_non_null(strstr(err.text, TABLE ": simulated fault"));
    simfs_peek(m.world.disk, TO "/" TABLE, got, sizeof got - 1, 0);
    assert_string_equal(got, "text");
}

static void make_backup(void)
{
    struct weir__backup_result result;

    assert_int_equal(model_backup(&m, m.world.disk, &result), 0);
}

static void a_check(void **state)
{
    static const struct row rows[] = {{SIMFS_OPEN, 5}, {SIMFS_READ, 0}, {SIMFS_SIZE, 4}};

    (void)state;
    make_backup();
    expect(check, rows, sizeof rows / sizeof rows[0], TO "/" TABLE);
}

static void a_restore(void **state)
{
    static const struct row rows[] = {{SIMFS_OPEN, 7},     {SIMFS_LIST, 0}, {SIMFS_MAKE_DIR, 0},
                                      {SIMFS_SYNC_DIR, 1}, {SIMFS_READ, 0}, {SIMFS_WRITE, 2},
                                      {SIMFS_SYNC, 2},     {SIMFS_SIZE, 4}};

    (void)state;
    make_backup();
    expect(restore, rows, sizeof rows / sizeof rows[0], "r/" TABLE);
}

/* ---- no memory ---- */

static unsigned digest_that_fails; /* of those that follow; 0: none, or it has failed */

EVP_MD_CTX *__real_EVP_MD_CTX_new(void);
EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void);

EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void)
{
    return digest_that_fails && --digest_that_fails == 0 ? NULL : __real_EVP_MD_CTX_new();
}

/* How many there are. */
static unsigned fail_each_digest(work_fn work, const char *table)
{
    bool struck = true;
    unsigned at = 0;

    while (struck) {
        struct simfs *disk = simfs_clone(m.world.disk);
        struct weir__backup_options o = model_options(&m, disk);
        struct weir__backup_result r = {0};
        int rc;

        digest_that_fails = ++at;
        rc = work(&o, &r, NULL);
        struck = digest_that_fails == 0;
        digest_that_fails = 0;
        if (!struck || rc != WEIR_ENOMEM) assert_int_equal(rc, 0);
        if (rc == 0) check_done(disk, table);
        assert_int_equal(simfs_open_files(disk), 0);
        simfs_free(disk);
    }
    return at - 1;
}

/* Of a manifest, of a segment or of another file. */
static void checksums_without_memory(void **state)
{
    (void)state;
    assert_in_range(fail_each_digest(back_up, TO "/" TABLE), 4, 50);
    make_backup();
    assert_in_range(fail_each_digest(check, TO "/" TABLE), 4, 50);
    assert_in_range(fail_each_digest(restore, "r/" TABLE), 4, 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backup),  TEST(a_table_that_stays),       TEST(a_check),
        TEST(a_restore), TEST(checksums_without_memory),
    };

    return cmocka_run_group_tests_name("backup_faults", tests, NULL, NULL);
}
