/* identity_test.c - what a folder is known by: its id, and the key of its owner. */
#include "hub/namespace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hub/world.h"

#define OWNER_FILE WORLD_DIR "/owner"

static struct world w;

static int set_up(void **state)
{
    (void)state;
    world_init(&w, simfs_new());
    return world_open(&w);
}

static int tear_down(void **state)
{
    (void)state;
    world_fini(&w);
    return 0;
}

static void reopen(void)
{
    assert_int_equal(world_close(&w), 0);
    assert_int_equal(world_open(&w), 0);
}

static struct weir__rule own(void)
{
    struct weir__rule owner;

    assert_int_equal(weir__namespace_own(w.ns, &owner, &w.err), 0);
    assert_string_equal(owner.name, WEIR__NAMESPACE_OWNER);
    assert_int_equal(strlen(owner.key[WEIR__KEY_PRIMARY]), 44);
    return owner;
}

static void assert_same_key(const struct weir__rule *a, const struct weir__rule *b, bool same)
{
    assert_int_equal(strcmp(a->key[WEIR__KEY_PRIMARY], b->key[WEIR__KEY_PRIMARY]) == 0, same);
}

static void they_stay_when_the_folder_is_closed(void **state)
{
    char id[WEIR__NAMESPACE_ID_BYTES], later[WEIR__NAMESPACE_ID_BYTES];
    struct weir__rule first = own(), again = own(), reopened;

    (void)state;
    assert_same_key(&first, &again, true);
    assert_int_equal(weir__namespace_id(w.ns, id, &w.err), 0);
    reopen();
    reopened = own();
    assert_same_key(&first, &reopened, true);
    assert_int_equal(weir__namespace_id(w.ns, later, &w.err), 0);
    assert_string_equal(id, later);
}

/* Whoever was told of them finds them again after a crash that follows at once. */
static void they_outlive_a_crash(void **state)
{
    char id[WEIR__NAMESPACE_ID_BYTES], got[64] = "";
    struct weir__rule owner = own();
    struct simfs *after;

    (void)state;
    assert_int_equal(weir__namespace_id(w.ns, id, &w.err), 0);
    after = simfs_crash(w.disk, SIMFS_KEEP_NONE, 0);
    assert_int_equal(simfs_peek(after, WORLD_DIR "/id", got, sizeof got - 1, 0), strlen(id));
    assert_string_equal(got, id);
    memset(got, 0, sizeof got);
    assert_int_equal(simfs_peek(after, OWNER_FILE, got, sizeof got - 1, 0), 44);
    assert_string_equal(got, owner.key[WEIR__KEY_PRIMARY]);
    simfs_free(after);
}

/* Nobody was told what an unfinished file says. */
static void an_unfinished_key_is_replaced(void **state)
{
    struct weir__rule first = own(), second, third;

    (void)state;
    assert_int_equal(world_close(&w), 0);
    simfs_poke(w.disk, OWNER_FILE, "\0", 1, 3);
    assert_int_equal(world_open(&w), 0);
    second = own();
    assert_same_key(&first, &second, false);
    reopen();
    third = own();
    assert_same_key(&second, &third, true);
}

/* Programs that have it come in as long as the folder is open, and are refused afterwards. */
static void a_key_that_cannot_be_kept_lasts_until_the_close(void **state)
{
    struct weir__rule first, again, later;

    (void)state;
    simfs_fail(w.disk, &(struct simfs_fault){
                           .kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE, .persistent = true});
    first = own();
    assert_true(simfs_failed(w.disk));
    simfs_fail(w.disk, NULL);
    again = own();
    assert_same_key(&first, &again, true);
    assert_int_equal(w.warnings, 1);
    reopen();
    later = own();
    assert_same_key(&first, &later, false);
    reopen();
    again = own();
    assert_same_key(&later, &again, true);
}

/* Nobody is told an id that the disk does not have; one that is damaged is another's as good as none. */
static void an_id_is_kept_or_not_given(void **state)
{
    static const char *const damaged[] = {"", "0123456789abcdef0123456789abcde",
                                          "0123456789abcdef0123456789abcdef0",
                                          "0123456789abcdef0123456789abcdeF"};
    char id[WEIR__NAMESPACE_ID_BYTES], again[WEIR__NAMESPACE_ID_BYTES];

    (void)state;
    simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_ENOSPACE});
    assert_int_equal(weir__namespace_id(w.ns, id, &w.err), WEIR_ENOSPACE);
    assert_string_equal(w.err.text, WORLD_DIR "/id: simulated fault");
    simfs_fail(w.disk, NULL);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        simfs_put(w.disk, WORLD_DIR "/id", damaged[i], strlen(damaged[i]));
        assert_int_equal(weir__namespace_id(w.ns, id, &w.err), 0);
        assert_int_equal(strlen(id), 32);
        assert_string_not_equal(id, damaged[i]);
        assert_int_equal(weir__namespace_id(w.ns, again, &w.err), 0);
        assert_string_equal(again, id);
    }
}

static bool chance_is_out;

static int scarce_chance(void *self, void *out, size_t len, struct weir_error *err)
{
    if (chance_is_out) return weir__fail(err, WEIR_EIO, "no chance");
    return world_chance(self, out, len, err);
}

/* What could be guessed is not made. */
static void without_chance_there_is_neither(void **state)
{
    char id[WEIR__NAMESPACE_ID_BYTES];
    struct weir__rule owner;

    (void)state;
    w.options.rand.fill = scarce_chance;
    reopen();
    chance_is_out = true;
    assert_int_equal(weir__namespace_id(w.ns, id, &w.err), WEIR_EIO);
    assert_string_equal(w.err.text, "no chance");
    assert_int_equal(weir__namespace_id(w.ns, id, NULL), WEIR_EIO);
    assert_int_equal(weir__namespace_own(w.ns, &owner, &w.err), WEIR_EIO);
    assert_string_equal(w.err.text, "making a key: no chance");
    assert_int_equal(simfs_peek(w.disk, WORLD_DIR "/id", id, 1, 0), -1);
    assert_int_equal(simfs_peek(w.disk, OWNER_FILE, id, 1, 0), -1);
    assert_int_equal(w.warnings, 0);
    chance_is_out = false;
    assert_int_equal(weir__namespace_id(w.ns, id, &w.err), 0);
    own();
    assert_int_equal(w.warnings, 0);
}

/* One that cannot be read is not replaced, and what stands in for it is as good. */
static void a_key_that_cannot_be_read_stays(void **state)
{
    struct weir__rule first = own(), other, again;

    (void)state;
    reopen();
    simfs_fail(w.disk, &(struct simfs_fault){.kinds = SIMFS_READ, .at = 1, .rc = WEIR_EIO});
    other = own();
    assert_true(simfs_failed(w.disk));
    simfs_fail(w.disk, NULL);
    assert_same_key(&first, &other, false);
    assert_int_equal(w.warnings, 1);
    reopen();
    again = own();
    assert_same_key(&first, &again, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(they_stay_when_the_folder_is_closed),
        TEST(they_outlive_a_crash),
        TEST(an_unfinished_key_is_replaced),
        TEST(a_key_that_cannot_be_kept_lasts_until_the_close),
        TEST(an_id_is_kept_or_not_given),
        TEST(without_chance_there_is_neither),
        TEST(a_key_that_cannot_be_read_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
