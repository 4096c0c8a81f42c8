/* grow_test.c - a log gets more partitions while it is open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "log/log.h"
#include "support/simfs.h"

#define HUB_ID 77u

struct grown {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options options;
    struct weir__log *log;
};

static void open_log(struct grown *g)
{
    struct weir_error err = {0};

    g->options.fs = simfs_fs(g->disk);
    g->options.clock = simclock(&g->clock);
    if (weir__log_open(&g->log, &g->options, &err) != 0) fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    struct grown *g = test_calloc(1, sizeof *g);

    g->disk = simfs_new();
    g->clock.wall_ms = 1700000000000;
    g->options = (struct weir__log_options){.fs = simfs_fs(g->disk),
                                            .clock = simclock(&g->clock),
                                            .dir = "log",
                                            .hub_id = HUB_ID,
                                            .partitions = 2,
                                            .no_threads = true};
    assert_int_equal(weir__log_create(&g->options, NULL), 0);
    open_log(g);
    *state = g;
    return 0;
}

static int tear_down(void **state)
{
    struct grown *g = *state;
    int rc = weir__log_close(g->log, NULL);

    if (simfs_open_files(g->disk) > 0) rc = -1;
    simfs_free(g->disk);
    test_free(g);
    return rc;
}

static int put(struct grown *g, uint32_t partition, const char *text)
{
    struct weir__log_batch batch = {
        .partition = partition,
        .count = 1,
        .body = {weir__bytes_of((const uint8_t *)text, strlen(text))},
    };

    return weir__log_append_wait(g->log, &batch, weir__deadline_ns(20000), NULL, NULL);
}

/* Reads a partition from its beginning and joins the bodies with commas. */
static void joined(struct grown *g, uint32_t partition, char out[256])
{
    struct weir__log_reader *r = NULL;
    struct weir__log_view views[8];
    struct weir_error err = {0};
    uint32_t count = 1;
    uint64_t missed;

    out[0] = '\0';
    assert_int_equal(weir__log_reader_open(&r, g->log, partition, 0, 0, NULL), 0);
    while (count > 0) {
        if (weir__log_reader_next(r, views, 8, &count, &missed, &err) != 0)
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < count; i++)
            snprintf(out + strlen(out), 256 - strlen(out), "%.*s,", (int)views[i].body.len,
                     (const char *)views[i].body.at);
    }
    weir__log_reader_close(r);
}

static void assert_holds(struct grown *g, uint32_t partition, const char *expected)
{
    char out[256];

    joined(g, partition, out);
    assert_string_equal(out, expected);
}

static void crash(struct grown *g)
{
    struct simfs *left = simfs_crash(g->disk, SIMFS_KEEP_NONE, 0);

    assert_int_equal(weir__log_close(g->log, NULL), 0);
    simfs_free(g->disk);
    g->disk = left;
    open_log(g);
}

static void new_partitions_take_events(void **state)
{
    struct grown *g = *state;

    assert_int_equal(put(g, 1, "old"), 0);
    assert_int_equal(put(g, 2, "too early"), WEIR_EINVAL);
    assert_int_equal(weir__log_grow(g->log, 200, NULL), 0);
    assert_int_equal(put(g, 2, "first"), 0);
    assert_int_equal(put(g, 199, "last"), 0);
    assert_int_equal(put(g, 200, "too far"), WEIR_EINVAL);
    assert_int_equal(put(g, 1, "new"), 0);
    for (int round = 0; round < 2; round++) {
        assert_holds(g, 1, "old,new,");
        assert_holds(g, 2, "first,");
        assert_holds(g, 199, "last,");
        assert_holds(g, 0, "");
        crash(g);
    }
}

/* Power is lost right after growing: the partitions are there, and so are the events. */
static void growing_is_durable(void **state)
{
    struct grown *g = *state;

    assert_int_equal(put(g, 0, "a"), 0);
    assert_int_equal(weir__log_grow(g->log, 5, NULL), 0);
    crash(g);
    assert_holds(g, 0, "a,");
    assert_holds(g, 4, "");
    assert_int_equal(put(g, 4, "b"), 0);
    crash(g);
    assert_holds(g, 4, "b,");
}

static void they_never_become_fewer(void **state)
{
    struct grown *g = *state;

    assert_int_equal(weir__log_grow(g->log, WEIR__LOG_PARTITIONS_MAX + 1, NULL), WEIR_EINVAL);
    assert_int_equal(weir__log_grow(g->log, 1, NULL), 0);
    assert_int_equal(put(g, 1, "x"), 0);
    assert_int_equal(put(g, 2, "x"), WEIR_EINVAL);
}

static void wake(void *user)
{
    ++*(int *)user;
}

/* Watches stay where they are while their lists move. */
static void watches_outlive_growing(void **state)
{
    struct grown *g = *state;
    int told = 0;
    struct weir__log_watch first = {.fn = wake, .user = &told, .partition = 1}, second = first;

    weir__log_watch(g->log, &first);
    weir__log_watch(g->log, &second);
    assert_int_equal(weir__log_grow(g->log, 1024, NULL), 0);
    assert_int_equal(put(g, 1, "x"), 0);
    assert_int_equal(told, 2);
    weir__log_watch(g->log, &first);
    weir__log_watch(g->log, &second);
    weir__log_unwatch(g->log, &second);
    assert_int_equal(put(g, 1, "y"), 0);
    assert_int_equal(told, 3);
    weir__log_unwatch(g->log, &first);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(new_partitions_take_events),
        CASE(growing_is_durable),
        CASE(they_never_become_fewer),
        CASE(watches_outlive_growing),
    };

    return cmocka_run_group_tests_name("log_grow", tests, NULL, NULL);
}
