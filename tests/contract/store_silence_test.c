/* store_silence_test.c - the stores that have this machine's clock, to the millisecond: when who is
 * silent counts as dead, and when it is forgotten. The clock stands behind clock_gettime: the linker
 * puts it in front (tests/CMakeLists.txt). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/tempdir.h"
#include "weir/store.h"

#define WALL_MS INT64_C(1800000000000)
#define MONO_MS 5000
#define EXPIRE_MS 3000
#define FORGOTTEN_MS (100 * EXPIRE_MS)

static int64_t passed_ms, wall_ms;
static struct weir_store *store;
static struct weir_view view;
static struct weir_error err;
static char dir[TEMPDIR_BYTES];
static const struct weir_scope scope = {"space", "hub", "group"};

int __wrap_clock_gettime(clockid_t id, struct timespec *out);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    int64_t ms = id == CLOCK_REALTIME ? wall_ms : MONO_MS + passed_ms;

    *out = (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    return 0;
}

static int open_memory(void **state)
{
    (void)state;
    passed_ms = 0;
    wall_ms = WALL_MS;
    return weir_store_memory(&store, "silence", NULL, &err);
}

static int open_file(void **state)
{
    char path[TEMPDIR_BYTES + 16];

    (void)state;
    passed_ms = 0;
    wall_ms = WALL_MS;
    if (tempdir_make(dir) != 0) return -1;
    snprintf(path, sizeof path, "%s/store.db", dir);
    return weir_store_sqlite(&store, path, NULL, &err);
}

static int close_store(void **state)
{
    (void)state;
    weir_store_close(store);
    weir_view_free(&view);
    if (dir[0]) tempdir_remove(dir);
    dir[0] = '\0';
    return 0;
}

static struct weir_member member(const char *id, uint64_t instance)
{
    struct weir_member m = {.instance = instance, .weight = 1, .expire_ms = EXPIRE_MS};

    snprintf(m.id, sizeof m.id, "%s", id);
    return m;
}

static int beat(const char *id, uint64_t instance)
{
    struct weir_member m = member(id, instance);

    return store->ops->beat(store, &scope, &m, &err);
}

static void expect_members(size_t count)
{
    assert_int_equal(store->ops->read(store, &scope, &view, &err), 0);
    assert_int_equal(view.member_count, count);
}

/* Setting the machine's clock later moves nothing. */
static void its_time_is_the_machines_when_it_began(void **state)
{
    (void)state;
    expect_members(0);
    assert_true(view.now_ms == WALL_MS);
    passed_ms = 1234;
    wall_ms = 0;
    expect_members(0);
    assert_true(view.now_ms == WALL_MS + 1234);
    assert_int_equal(beat("a", 1), 0);
    expect_members(1);
    assert_true(view.members[0].beat_ms == WALL_MS + 1234);
}

static void a_name_is_free_when_its_time_is_over(void **state)
{
    (void)state;
    assert_int_equal(beat("a", 1), 0);
    passed_ms = EXPIRE_MS - 1;
    assert_int_equal(beat("a", 2), WEIR_EEXIST);
    assert_non_null(strstr(err.text, "last heard of 2999 ms ago; it counts as dead after 3000 ms"));
    passed_ms = EXPIRE_MS;
    assert_int_equal(beat("a", 2), 0);
    assert_int_equal(beat("a", 1), WEIR_EEXIST);
}

static void who_is_silent_for_a_hundred_times_as_long_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(beat("a", 1), 0);
    passed_ms = FORGOTTEN_MS - 1;
    assert_int_equal(beat("b", 1), 0);
    expect_members(2);
    passed_ms = FORGOTTEN_MS;
    assert_int_equal(beat("b", 1), 0);
    expect_members(1);
    assert_string_equal(view.members[0].id, "b");
}

/* Whoever has left is remembered for as long, so that a late beat does not bring it back. */
static void who_has_left_is_forgotten_likewise(void **state)
{
    struct weir_member m = member("a", 1);

    (void)state;
    assert_int_equal(beat("a", 1), 0);
    assert_int_equal(store->ops->leave(store, &scope, &m, &err), 0);
    passed_ms = FORGOTTEN_MS - 1;
    assert_int_equal(beat("a", 1), WEIR_EFENCED);
    assert_int_equal(store->ops->leave(store, &scope, &m, &err), 0); /* once is enough */
    expect_members(0);
    passed_ms = FORGOTTEN_MS;
    assert_int_equal(beat("a", 1), 0);
    expect_members(1);
}

/* A file's versions and changes are its time in microseconds, or one more than before. */
static void versions_are_times(void **state)
{
    struct weir_record r = {.partition = 1};
    char want[32];

    (void)state;
    for (int64_t more = 0; more < 3; more++) {
        passed_ms = more / 2 * 12345; /* twice in the same moment */
        assert_int_equal(store->ops->claim(store, &scope, &r, "a", 1, &r, &err), 0);
        snprintf(want, sizeof want, "%lld",
                 (long long)((WALL_MS + passed_ms) * 1000 + (more == 1 ? 1 : 0)));
        assert_string_equal(r.version, want);
        expect_members(0);
        assert_true(view.change ==
                    (uint64_t)(WALL_MS + passed_ms) * 1000 + (more == 2 ? 0 : (uint64_t)more + 1));
    }
}

#define IN_MEMORY(f) cmocka_unit_test_setup_teardown(f, open_memory, close_store)
#define IN_A_FILE(f) cmocka_unit_test_setup_teardown(f, open_file, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_MEMORY(its_time_is_the_machines_when_it_began),
        IN_A_FILE(its_time_is_the_machines_when_it_began),
        IN_MEMORY(a_name_is_free_when_its_time_is_over),
        IN_A_FILE(a_name_is_free_when_its_time_is_over),
        IN_MEMORY(who_is_silent_for_a_hundred_times_as_long_is_forgotten),
        IN_A_FILE(who_is_silent_for_a_hundred_times_as_long_is_forgotten),
        IN_MEMORY(who_has_left_is_forgotten_likewise),
        IN_A_FILE(who_has_left_is_forgotten_likewise),
        IN_A_FILE(versions_are_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
