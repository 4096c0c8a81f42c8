/* rebuild_test.c - what a control file is made of, when there are only the headers of segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/recover.h"
#include "support/simfs.h"

#define FOUND_MAX 4

struct world {
    struct simfs *disk;
    struct weir__log *log;
    char said[128];
};

static void hear(void *user, enum weir__log_finding_kind kind, const char *file, const char *text)
{
    struct world *w = user;

    assert_int_equal(kind, WEIR__LOG_CONTROL);
    assert_string_equal(file, "control");
    snprintf(w->said, sizeof w->said, "%s", text);
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->disk = simfs_new();
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    if (w->log) weir__log_free(w->log);
    simfs_free(w->disk);
    test_free(w);
    return 0;
}

/* From the headers of `count` files, and so many files without one. An older control file, if there is
 * one, named segments from old_first on; 0: there is none. */
static int rebuild_over(struct world *w, uint64_t old_first, uint32_t partitions,
                        const struct weir__segment_header *headers, size_t count, size_t without)
{
    struct weir__log_options o = {.fs = simfs_fs(w->disk),
                                  .dir = "log",
                                  .hub_id = 5,
                                  .partitions = partitions,
                                  .no_threads = true};
    struct weir__found found[FOUND_MAX] = {{.readable = false}};
    struct weir__recovery r = {.found = found,
                               .found_count = count + without,
                               .no_control = old_first == 0};
    int rc;

    for (size_t i = 0; i < r.found_count; i++) {
        found[i].readable = i < count;
        found[i].h = headers[i < count ? i : count];
    }
    if (w->log) weir__log_free(w->log);
    assert_int_equal(weir__log_new(&w->log, &o, NULL), 0);
    w->log->control.first_segment = old_first;
    r.log = w->log;
    r.tell = hear;
    r.user = w;
    rc = weir__rebuild_control(&r);
    if (rc == 0) assert_true(r.unsure);
    return rc;
}

static int rebuild(struct world *w, uint32_t partitions, const struct weir__segment_header *headers,
                   size_t count, size_t without)
{
    return rebuild_over(w, 0, partitions, headers, count, without);
}

/* The last one stands for what lies in a file whose header cannot be read: it is not believed. */
static const struct weir__segment_header
    more = {.number = 1, .partitions = 3, .secret = 5, .epoch = 9, .keep = {100, 7}},
    less = {.number = 2, .partitions = 2, .epoch = 8, .keep = {99, 6}},
    none = {.number = 3, .partitions = 9, .secret = 9, .epoch = 99, .keep = {999, 9}};

/* No opening had a later epoch, retention's clock never goes back, and no partition is left out. */
static void the_most_that_a_header_knows_is_taken_over(void **state)
{
    const struct weir__segment_header orders[][3] = {{more, less, none}, {less, more, none}};
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        const struct weir__control *c;

        assert_int_equal(rebuild(w, 1, orders[i], 2, 1), 0);
        c = &w->log->control;
        assert_int_equal(c->version, 2);
        assert_int_equal(w->log->partitions, 3);
        assert_int_equal(c->partitions, 3);
        assert_int_equal(c->secret, 5);
        assert_int_equal(c->epoch, 9);
        assert_int_equal(c->keep.keep_ms, 100);
        assert_int_equal(c->keep.off_ms, 7);
        assert_int_equal(c->watermark, WEIR__LOG_ORIGIN);
        assert_true(c->epoch_start == UINT64_MAX);
    }
    assert_int_equal(rebuild(w, 4, orders[0], 2, 1), 0);
    assert_int_equal(w->log->partitions, 4);
}

/* One that nobody can come to would leave no later one for those who open it. */
static void an_epoch_that_cannot_be_is_passed_over(void **state)
{
    struct weir__segment_header h[2] = {more, less};
    struct world *w = *state;

    h[1].epoch = UINT32_MAX / 2 - 1;
    assert_int_equal(rebuild(w, 1, h, 2, 0), 0);
    assert_int_equal(w->log->control.epoch, UINT32_MAX / 2 - 1);
    h[1].epoch = UINT32_MAX / 2;
    assert_int_equal(rebuild(w, 1, h, 2, 0), 0);
    assert_int_equal(w->log->control.epoch, 9);
}

/* Whatever has a header is of the log, however wide the gap behind it. */
static void the_row_begins_with_the_oldest_header(void **state)
{
    static const struct {
        uint64_t numbers[FOUND_MAX];
        size_t count, without;
        const char *from_to;
    } cases[] = {
        {{1}, 1, 0, "1 to 1"},          {{7}, 1, 3, "7 to 7"},       {{1, 2, 3}, 3, 0, "1 to 3"},
        {{3, 4, 6}, 3, 0, "3 to 6"},    {{3, 4, 6}, 3, 1, "3 to 6"}, {{2, 5}, 2, 1, "2 to 5"},
        {{2, 5}, 2, 2, "2 to 5"},       {{1, 3}, 2, 1, "1 to 3"},    {{1, 2, 7, 8}, 4, 0, "1 to 8"},
        {{1, 6, 7, 8}, 4, 0, "1 to 8"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__segment_header h[FOUND_MAX + 1] = {{.number = 0}};
        char want[128];

        for (size_t k = 0; k < FOUND_MAX; k++) h[k].number = cases[i].numbers[k];
        h[cases[i].count] = none;
        assert_int_equal(rebuild(w, 2, h, cases[i].count, cases[i].without), 0);
        snprintf(want, sizeof want, "it cannot be read, and was made again from segments %s",
                 cases[i].from_to);
        assert_string_equal(w->said, want);
    }
}

/* It named those that had not expired then. */
static void what_an_older_control_file_named_is_kept(void **state)
{
    static const struct {
        uint64_t old_first;
        const char *from_to;
    } cases[] = {{1, "1 to 8"}, {2, "3 to 8"}, {3, "3 to 8"}, {4, "6 to 8"}};
    const struct weir__segment_header h[] = {
        {.number = 1}, {.number = 3}, {.number = 6}, {.number = 8}, none};
    struct world *w = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char want[128];

        assert_int_equal(rebuild_over(w, cases[i].old_first, 2, h, 4, 0), 0);
        snprintf(want, sizeof want, "it is an older one, and was made again from segments %s",
                 cases[i].from_to);
        assert_string_equal(w->said, want);
    }
}

static void without_any_header_there_is_nothing_to_go_by(void **state)
{
    struct world *w = *state;

    assert_int_equal(rebuild(w, 1, &none, 0, 2), WEIR_ECORRUPT);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_most_that_a_header_knows_is_taken_over),
        CASE(an_epoch_that_cannot_be_is_passed_over),
        CASE(the_row_begins_with_the_oldest_header),
        CASE(what_an_older_control_file_named_is_kept),
        CASE(without_any_header_there_is_nothing_to_go_by),
    };

    return cmocka_run_group_tests_name("rebuild", tests, NULL, NULL);
}
