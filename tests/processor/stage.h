/* stage.h - one copy without threads, on a clock that runs only while the copy waits, so that what it
 * does when can be compared to the millisecond. The clock stands behind clock_gettime, the waits
 * behind pthread_cond_timedwait: the linker puts them in front (tests/CMakeLists.txt).
 *
 * Its events lie in memory. What the program sees is written down with the time since stage_clear:
 * "0 +1" is an open of partition 1, "50 1:3-7" a call with its events 3 to 7, "1:idle" one without
 * any, "-1moved" a close. What it is told is in `told`, the store's calls are in `calls`. */
#ifndef WEIR_TESTS_PROCESSOR_STAGE_H
#define WEIR_TESTS_PROCESSOR_STAGE_H

#include "processor/stage_world.h"

/* ---- the program ---- */

static inline int stage_on_open(struct weir_partition *p, void **state, void *user)
{
    (void)user;
    *state = &s;
    stage_note(s.log, "%" PRId64 " +%u ", stage_ms(), weir_partition_id(p));
    return s.open_handler_rc;
}

static inline int stage_on_events(struct weir_partition *p, const struct weir_event *e,
                                  size_t count, void *user)
{
    (void)user;
    assert_ptr_equal(weir_partition_state(p), &s);
    if (count == 0)
        stage_note(s.log, "%" PRId64 " %u:idle ", stage_ms(), weir_partition_id(p));
    else
        stage_note(s.log, "%" PRId64 " %u:%" PRIu64 "-%" PRIu64 " ", stage_ms(),
                   weir_partition_id(p), e[0].sequence, e[count - 1].sequence);
    return s.act ? s.act(p, e, count) : s.rc;
}

static inline void stage_on_error(struct weir_partition *p, enum weir_action action,
                                  const struct weir_error *err, void *user)
{
    (void)user;
    stage_note(s.told, "%" PRId64 " %s%s: %s\n", stage_ms(), p ? "" : "nobody, ",
               weir_action_text(action), err->text);
}

static inline void stage_on_close(struct weir_partition *p, enum weir_close_reason why, void *user)
{
    (void)user;
    assert_true(weir_partition_revoked(p));
    stage_note(s.log, "%" PRId64 " -%u%s ", stage_ms(), weir_partition_id(p),
               weir_close_reason_text(why));
}

static inline int stage_bury(struct weir_partition *p, const struct weir_event *e,
                             const struct weir_error *why, void *user)
{
    bool refused = s.letter_refusals-- > 0;

    (void)user;
    stage_note(s.log, "%" PRId64 " %u:%s%" PRIu64 " ", stage_ms(), weir_partition_id(p),
               refused ? "refused" : "dead", e->sequence);
    stage_note(s.told, "dead: %s\n", why->text);
    return refused ? -1 : 0;
}

/* ---- one test ---- */

static inline int stage_set_up(void **state)
{
    (void)state;
    memset(&s, 0, sizeof s);
    s.now_ns = INT64_C(1000000000) * 1000;
    s.partitions = 1;
    s.source.ops = &stage_source_ops;
    snprintf(s.source.space, sizeof s.source.space, "space");
    snprintf(s.source.hub, sizeof s.source.hub, "h");
    snprintf(s.source.group, sizeof s.source.group, "g");
    assert_int_equal(weir_store_memory(&s.store, "stage", NULL, NULL), 0);
    s.behind = s.store->ops;
    s.ops = *s.store->ops;
    s.ops.beat = stage_beat;
    s.ops.leave = stage_leave;
    s.ops.read = stage_read;
    s.ops.claim = stage_claim;
    s.ops.mark = stage_mark;
    s.store->ops = &s.ops;
    s.options = (struct weir_processor_options){
        .size = sizeof s.options,
        .handler = {stage_on_open, stage_on_events, stage_on_error, stage_on_close},
        .name = "a",
        .threads = -1,
        .strategy = WEIR_GREEDY,
        .beat_ms = STAGE_BEAT_MS,
    };
    stage_clear();
    return 0;
}

/* Lets so much time pass; what is due at its end is done, too. */
static inline void stage_pass(int64_t ms)
{
    int64_t end = stage_ms() + ms;

    for (int left = STAGE_LAST_STEPS; left > 0; left -= stage_ms() >= end)
        assert_int_equal(weir_processor_step(s.processor, end - stage_ms(), NULL), 0);
}

static inline void stage_start(void)
{
    struct weir_error err;

    if (weir_processor_start(&s.processor, &s.source, s.store, &s.options, &err) != 0)
        fail_msg("%s", err.text);
}

static inline struct weir_processor_stats stats_now(void)
{
    struct weir_processor_stats stats;

    weir_processor_stats(s.processor, &stats);
    return stats;
}

/* Another copy lives in the group. */
static inline void let_live(const char *id, uint32_t weight, int64_t expire_ms)
{
    struct weir_member m = {.instance = 9, .weight = weight, .expire_ms = expire_ms};

    snprintf(m.id, sizeof m.id, "%s", id);
    assert_int_equal(s.behind->beat(s.store, &s.scope, &m, NULL), 0);
}

static inline int stage_tear_down(void **state)
{
    (void)state;
    s.store_rc = s.mark_rc = 0;
    if (s.processor) assert_int_equal(weir_processor_stop(s.processor, 10000, NULL), 0);
    weir_store_close(s.store);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, stage_set_up, stage_tear_down)

#endif
