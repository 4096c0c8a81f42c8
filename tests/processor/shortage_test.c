/* shortage_test.c - one allocation fails while a copy runs, each of them in turn: what it was for is
 * tried again, and nothing is lost or leaked. Times are exact, as stage.h says. */
#include "processor/stage.h"
#include "support/allocs.h"

#define EVENTS 5

static int mark_all(struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)e, (void)n;
    return weir_checkpoint(p, NULL);
}

/* When the program's open of a partition was called; -1: never. */
static int64_t opened_ms(uint32_t partition)
{
    char want[16];
    const char *at;

    snprintf(want, sizeof want, " +%u ", partition);
    at = strstr(s.log, want);
    if (!at) return -1;
    while (at > s.log && at[-1] != ' ') at--;
    return strtoll(at, NULL, 10);
}

static void expect_given_once(uint32_t partition)
{
    char want[16];
    const char *at;

    snprintf(want, sizeof want, " %u:0-%d ", partition, EVENTS - 1);
    at = strstr(s.log, want);
    if (!at || strstr(at + 1, want)) fail_msg("%s in %s", want, s.log);
}

static void expect_stored(uint32_t partitions)
{
    struct weir_scope scope = {"space", "h", "g"};
    struct weir_view view = {0};

    assert_int_equal(s.behind->read(s.store, &scope, &view, NULL), 0);
    assert_int_equal(view.record_count, partitions);
    for (uint32_t i = 0; i < partitions; i++) {
        assert_true(view.records[i].marked);
        assert_int_equal(view.records[i].sequence, EVENTS - 1);
        assert_string_equal(view.records[i].owner, "");
    }
    weir_view_free(&view);
}

/* The hub has two partitions, and ten beats later four. */
static void run_short_of(uint64_t at, int64_t *first_ms, int64_t *last_ms)
{
    s.partitions = 2;
    s.act = mark_all;
    for (int i = 0; i < 4; i++) s.end[i] = EVENTS;
    stage_start();
    allocs_fail(at);
    stage_pass(5000);
    s.partitions = 4;
    stage_pass(20000);
    for (uint32_t i = 0; i < 4; i++) expect_given_once(i);
    *first_ms = opened_ms(0) > opened_ms(1) ? opened_ms(0) : opened_ms(1);
    *last_ms = opened_ms(2) > opened_ms(3) ? opened_ms(2) : opened_ms(3);
    assert_int_equal(weir_processor_stop(s.processor, 10000, NULL), 0);
    s.processor = NULL;
    assert_int_equal(s.opens, s.shuts);
}

/* A partition without memory is begun a second later; partitions that could not be counted in are
 * counted again after ten beats; the store is asked again at once. */
static void what_fails_for_want_of_memory_is_tried_again(void **state)
{
    int late_starts = 0, late_counts = 0, reads = 0, claims = 0;
    int64_t first_ms, last_ms;
    uint64_t at = 0;
    bool failed;

    do {
        stage_set_up(state);
        run_short_of(++at, &first_ms, &last_ms);
        failed = allocs_failed();
        allocs_fail(0);
        assert_true(first_ms <= STAGE_BEAT_MS / 20 || first_ms == 1000);
        late_starts += first_ms == 1000;
        late_counts += last_ms == 20000;
        assert_true(last_ms <= 10000 + STAGE_BEAT_MS / 20 || last_ms == 11000 || last_ms == 20000);
        reads += strstr(s.told, "nobody, reading the store: no memory for 16 members or") != NULL;
        claims += strstr(s.told, "nobody, claiming: no memory for 16 members or") != NULL;
        expect_stored(4);
        stage_tear_down(state);
    } while (failed);
    assert_int_equal(first_ms, 0);
    assert_int_equal(last_ms, 10000);
    assert_int_equal(late_starts, 2);
    assert_true(late_counts > 1);
    assert_true(reads > 1);
    assert_int_equal(claims, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_for_want_of_memory_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
