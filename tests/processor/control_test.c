/* control_test.c - one copy's control against a store of eight rows, step by step. What it does
 * besides beats and reads is written down: "0>b" is a claim of 0 for b, "+0" a start, "~0" a drain,
 * "-0moved" a stop, "<0" a rewind, "?0" a report. */
#include "processor/control.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 8
#define ALL_STARTED "0>a +0 1>a +1 2>a +2 3>a +3 "

static struct place {
    struct weir__control *control;
    int64_t now_ms, store_ms; /* its clock, behind ours */
    struct weir_record rows[ROWS];
    struct weir_member members[4];
    size_t member_count;
    uint64_t change;
    bool away;        /* calls are not answered */
    bool lost_reply;  /* the next claim is done, and not answered */
    int beat_rc;      /* what beats are answered with */
    int beats, reads; /* that were asked for */
    bool done, slow_handlers;
    char log[2048];
} w;

static void start_paced(uint32_t partitions, int64_t settle_ms, int64_t take_gap_ms)
{
    struct weir__control_options o = {.id = "a",
                                      .instance = 1,
                                      .weight = 1,
                                      .partitions = partitions,
                                      .beat_ms = 1000,
                                      .expire_ms = 3000,
                                      .settle_ms = settle_ms,
                                      .start_ms = 2000,
                                      .handover_ms = 10000,
                                      .poll_ms = 50,
                                      .take_gap_ms = take_gap_ms};

    assert_int_equal(weir__control_new(&w.control, &o, NULL), 0);
}

static void start(uint32_t partitions)
{
    start_paced(partitions, 300, 0);
}

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.now_ms = 5000;
    w.store_ms = 1000000;
    w.change = 1;
    for (uint32_t p = 0; p < ROWS; p++) w.rows[p].partition = p;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir__control_free(w.control);
    return 0;
}

/* ---- the store ---- */

static void beat(const char *id, uint64_t instance, uint32_t weight)
{
    size_t i = 0;

    while (i < w.member_count && strcmp(w.members[i].id, id) != 0) i++;
    if (i == w.member_count) w.member_count++;
    assert_true(w.member_count <= 4);
    w.members[i] = (struct weir_member){.instance = instance, .weight = weight, .expire_ms = 3000};
    snprintf(w.members[i].id, sizeof w.members[i].id, "%s", id);
    w.members[i].beat_ms = w.now_ms + w.store_ms;
}

static void own(uint32_t p, const char *owner, uint64_t instance)
{
    struct weir_record *r = &w.rows[p];

    snprintf(r->owner, sizeof r->owner, "%s", owner);
    r->instance = instance;
    if (owner[0]) r->epoch++;
    snprintf(r->version, sizeof r->version, "%" PRIu64, ++w.change);
}

static void read_rows(struct weir_view *v)
{
    if (!v->members) v->members = calloc(4, sizeof *v->members);
    if (!v->records) v->records = calloc(ROWS, sizeof *v->records);
    assert_true(v->members && v->records);
    memcpy(v->members, w.members, sizeof w.members);
    v->member_count = w.member_count;
    v->now_ms = w.now_ms + w.store_ms;
    if (v->change == w.change) return;
    v->change = w.change;
    v->record_count = 0;
    for (uint32_t p = 0; p < ROWS; p++)
        if (w.rows[p].version[0] || w.rows[p].rc != 0) v->records[v->record_count++] = w.rows[p];
}

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
    size_t len = strlen(w.log);
    va_list args;

    va_start(args, fmt);
    vsnprintf(w.log + len, sizeof w.log - len, fmt, args);
    va_end(args);
}

static int claim(const struct weir__control_step *s)
{
    note("%u>%s ", s->partition, s->owner[0] ? s->owner : "nobody");
    if (w.away) return WEIR_ETIMEDOUT;
    if (strcmp(w.rows[s->partition].version, s->record->version) != 0) return WEIR_EFENCED;
    own(s->partition, s->owner, s->instance);
    if (!w.lost_reply) return 0;
    w.lost_reply = false;
    return WEIR_ETIMEDOUT;
}

static int do_call(const struct weir__control_step *s)
{
    w.beats += s->what == WEIR__CONTROL_BEAT;
    w.reads += s->what == WEIR__CONTROL_READ;
    if (s->what == WEIR__CONTROL_CLAIM) return claim(s);
    if (w.away) return WEIR_EUNREACHABLE;
    if (s->what == WEIR__CONTROL_READ) read_rows(s->view);
    if (s->what == WEIR__CONTROL_LEAVE) note("leave ");
    if (s->what == WEIR__CONTROL_BEAT && w.beat_rc == 0)
        beat(s->member->id, s->member->instance, s->member->weight);
    return s->what == WEIR__CONTROL_BEAT ? w.beat_rc : 0;
}

/* ---- the driver ---- */

static void follow(const struct weir__control_step *s)
{
    static const char *const reasons[] = {"", "shutdown", "lost", "moved", "error", "released"};

    switch (s->what) {
    case WEIR__CONTROL_START:
        assert_int_equal(s->record->epoch, w.rows[s->partition].epoch);
        note("+%u ", s->partition);
        break;
    case WEIR__CONTROL_DRAIN:
        note("~%u ", s->partition);
        if (!w.slow_handlers) weir__control_drained(w.control, w.now_ms, s->partition, 0);
        break;
    case WEIR__CONTROL_STOP: note("-%u%s ", s->partition, reasons[s->reason]); break;
    case WEIR__CONTROL_REWIND: note("<%u ", s->partition); break;
    case WEIR__CONTROL_REPORT: note("?%u ", s->partition); break;
    default: fail();
    }
}

/* Steps until there is nothing to do before the returned time. */
static int64_t run(void)
{
    struct weir__control_step s;

    for (int steps = 0; steps < 1000; steps++) {
        weir__control_next(w.control, w.now_ms, &s);
        w.done = s.what == WEIR__CONTROL_DONE;
        if (s.what == WEIR__CONTROL_WAIT || w.done) {
            if (!w.done) assert_true(s.until_ms > w.now_ms);
            return w.done ? INT64_MAX : s.until_ms;
        }
        if (s.what >= WEIR__CONTROL_START) {
            follow(&s);
        } else {
            int rc = do_call(&s);
            weir__control_answer(w.control, w.now_ms, rc,
                                 s.what == WEIR__CONTROL_CLAIM && rc == 0 ? &w.rows[s.partition]
                                                                          : NULL);
        }
    }
    fail_msg("it does not come to rest");
    return 0;
}

/* Lets time pass; `others` beat every 500 ms meanwhile. */
static void pass(int64_t ms, const char *others)
{
    int64_t end = w.now_ms + ms;

    for (;;) {
        int64_t until = run(), next = (w.now_ms / 500 + 1) * 500;
        if (until > end) until = end;
        if (w.now_ms >= end) return;
        if (others[0] && next < until) until = next;
        w.now_ms = until;
        for (const char *o = others; *o && !w.away && w.now_ms % 500 == 0; o++)
            beat((char[]){*o, '\0'}, 1, 1);
    }
}

static void expect(const char *log)
{
    assert_string_equal(w.log, log);
    w.log[0] = '\0';
}

/* ---- alone ---- */

static void alone_takes_all_when_it_has_looked_around(void **state)
{
    (void)state;
    start(4);
    pass(250, "");
    expect("");
    pass(250, "");
    expect(ALL_STARTED);
}

static void greedy_does_not_look_around(void **state)
{
    (void)state;
    start_paced(4, 0, 0);
    pass(0, "");
    expect(ALL_STARTED);
}

static void balanced_takes_one_in_a_beat(void **state)
{
    (void)state;
    start_paced(4, 300, 1000);
    pass(500, "");
    expect("0>a +0 ");
    pass(1000, "");
    expect("1>a +1 ");
    pass(1900, "");
    expect("2>a +2 3>a +3 ");
}

static void idle_it_calls_twice_in_a_beat(void **state)
{
    (void)state;
    start(4);
    pass(2000, "");
    w.beats = w.reads = 0;
    pass(10000, "");
    assert_in_range(w.beats, 9, 11);
    assert_in_range(w.reads, 9, 11);
}

static void takes_its_former_partitions_back(void **state)
{
    (void)state;
    own(0, "a", 77);
    own(1, "a", 77);
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
}

static void does_nothing_while_its_name_lives(void **state)
{
    (void)state;
    beat("a", 99, 1);
    w.beat_rc = WEIR_EEXIST;
    start(2);
    pass(5000, "");
    expect("");
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
    w.beat_rc = 0;
    pass(2000, "");
    expect("0>a +0 1>a +1 ");
}

/* ---- answers that do not come ---- */

static void finds_a_claim_done_that_was_not_answered(void **state)
{
    (void)state;
    start(1);
    w.lost_reply = true;
    pass(600, "");
    expect("0>a +0 ");
    assert_int_equal(w.rows[0].epoch, 1);
}

static void claims_again_what_was_not_done(void **state)
{
    (void)state;
    start(1);
    pass(250, "");
    w.away = true;
    pass(1000, "");
    assert_true(weir__control_unanswered_since(w.control) > 0);
    w.away = false;
    pass(2000, "");
    expect("0>a +0 ");
    assert_int_equal(weir__control_unanswered_since(w.control), 0);
}

static void finds_a_gift_done_that_was_not_answered(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    beat("b", 1, 1);
    w.lost_reply = true;
    pass(3000, "b");
    expect("~1 1>b -1moved ");
    assert_int_equal(w.rows[1].epoch, 2);
}

static void keeps_what_it_has_while_the_store_is_away(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(2, "b", 1), own(3, "b", 1);
    start(4);
    pass(3000, "b");
    expect("0>a +0 1>a +1 ");
    w.away = true;
    pass(60000, "");
    w.away = false;
    pass(1500, ""); /* b is not heard yet */
    expect("");
    pass(20000, "b");
    expect("");
}

static void takes_from_the_dead_only_after_having_listened(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1);
    w.now_ms += 3600000; /* b has been silent for an hour, but who knows why */
    start(1);
    pass(3900, "");
    expect("");
    pass(300, "");
    expect("0>a +0 ");
}

static void sees_a_death_at_once(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "a", 1);
    start(2);
    pass(10000, "b");
    expect("+1 ");
    pass(2900, ""); /* its last beat was now */
    expect("");
    pass(150, "");
    expect("0>a +0 ");
}

static void a_frozen_copy_counts_nobody_dead(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "a", 1);
    start(2);
    pass(10000, "b");
    expect("+1 ");
    w.now_ms += 60000;
    pass(3000, ""); /* b was stopped with us, and thaws later */
    expect("");
    pass(10000, "b");
    expect("");
}

static void a_clock_that_is_set_kills_nobody(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "a", 1);
    start(2);
    pass(10000, "b");
    expect("+1 ");
    w.store_ms += 3600000;
    pass(10000, "b");
    w.store_ms -= 7200000;
    pass(10000, "b");
    expect("");
}

/* ---- moves ---- */

static void stops_what_another_has(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    beat("b", 1, 1);
    own(1, "b", 1);
    pass(1000, "b");
    expect("-1lost ");
}

static void starts_anew_what_came_back_with_another_epoch(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    own(0, "b", 1), own(0, "a", 1);
    pass(1000, "");
    expect("-0lost +0 ");
}

static void hands_over_directly(void **state)
{
    (void)state;
    start(4);
    pass(500, "");
    expect(ALL_STARTED);
    beat("b", 1, 1);
    pass(3000, "b");
    expect("~2 ~3 2>b -2moved 3>b -3moved ");
}

static void waits_for_members_to_settle_before_it_hands_over(void **state)
{
    (void)state;
    start(4);
    pass(550, "");
    expect(ALL_STARTED);
    w.now_ms = 5990;
    beat("b", 1, 1);
    pass(200, "b"); /* seen at the beat of 6,000 */
    beat("c", 1, 1);
    pass(2000, "bc");
    expect("~2 ~3 2>b -2moved 3>c -3moved ");
}

static void waits_until_it_is_given(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "b", 1);
    start(2);
    pass(2000, "b");
    expect("");
    w.reads = 0;
    pass(500, "b");
    assert_in_range(w.reads, 8, 12); /* it looks every poll_ms */
    own(1, "a", 1);
    pass(60, "b");
    expect("+1 ");
}

static void takes_what_is_not_given_in_time(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1), own(1, "b", 1);
    start(2);
    pass(11900, "b");
    expect("");
    pass(500, "b");
    expect("1>a +1 ");
}

static void restarts_what_nobody_wants_any_more(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    w.slow_handlers = true;
    beat("b", 1, 1);
    pass(2000, "b");
    expect("~1 ");
    w.member_count = 1; /* b leaves before it is given anything */
    pass(2000, "");
    weir__control_drained(w.control, w.now_ms, 1, 0);
    pass(100, "");
    expect("1>a -1moved +1 ");
    assert_int_equal(w.rows[1].epoch, 2);
}

/* ---- records ---- */

static void leaves_alone_what_it_cannot_read(void **state)
{
    (void)state;
    w.rows[1].rc = WEIR_ECORRUPT;
    start(3);
    pass(5000, "");
    expect("?1 0>a +0 2>a +2 ");
    w.rows[1].rc = 0;
    w.change++;
    pass(2000, "");
    expect("1>a +1 ");
}

static void stops_what_it_cannot_give_away(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    w.rows[0].rc = WEIR_ECORRUPT;
    w.change++;
    pass(2000, "");
    expect("?0 "); /* it goes on */
    weir__control_drained(w.control, w.now_ms, 0, 1000);
    run();
    expect("-0released ");
}

static void goes_where_a_checkpoint_was_set(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    expect("0>a +0 ");
    w.rows[0].rewinds++;
    w.change++;
    pass(3000, "");
    expect("<0 ");
}

static void in_doubt_it_looks(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    weir__control_doubt(w.control, w.now_ms, 1);
    run();
    expect("<1 ");
    beat("b", 1, 1);
    own(1, "b", 1);
    weir__control_doubt(w.control, w.now_ms, 1);
    run();
    expect("-1lost ");
}

/* ---- giving up ---- */

static void what_is_released_rests(void **state)
{
    (void)state;
    start(2);
    pass(500, "");
    expect("0>a +0 1>a +1 ");
    weir__control_drained(w.control, w.now_ms, 1, 5000);
    pass(4900, "");
    expect("1>nobody -1released ");
    pass(200, "");
    expect("1>a +1 ");
}

static void leaves_everything_to_the_others(void **state)
{
    (void)state;
    beat("b", 1, 1);
    own(0, "b", 1);
    start(3);
    pass(3000, "b");
    expect("1>a +1 2>a +2 ");
    weir__control_leave(w.control, w.now_ms);
    run();
    expect("~1 ~2 1>b -1shutdown 2>b -2shutdown leave ");
    assert_true(w.done);
    assert_int_equal(w.members[1].weight, 0);
}

static void alone_it_leaves_to_nobody(void **state)
{
    (void)state;
    start(1);
    pass(500, "");
    weir__control_leave(w.control, w.now_ms);
    run();
    expect("0>a +0 ~0 0>nobody -0shutdown leave ");
    assert_true(w.done);
}

static void takes_more_when_there_is_more(void **state)
{
    struct weir__control_counts counts;

    (void)state;
    start(1);
    pass(500, "");
    assert_int_equal(weir__control_grow(w.control, 3, NULL), 0);
    pass(100, "");
    expect("0>a +0 1>a +1 2>a +2 ");
    weir__control_counts(w.control, &counts);
    assert_int_equal(counts.claims, 3);
    assert_int_equal(counts.starts, 3);
    assert_int_equal(counts.fenced + counts.takeovers + counts.steals + counts.lost, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(alone_takes_all_when_it_has_looked_around),
        TEST(greedy_does_not_look_around),
        TEST(balanced_takes_one_in_a_beat),
        TEST(idle_it_calls_twice_in_a_beat),
        TEST(takes_its_former_partitions_back),
        TEST(does_nothing_while_its_name_lives),
        TEST(finds_a_claim_done_that_was_not_answered),
        TEST(claims_again_what_was_not_done),
        TEST(finds_a_gift_done_that_was_not_answered),
        TEST(keeps_what_it_has_while_the_store_is_away),
        TEST(takes_from_the_dead_only_after_having_listened),
        TEST(sees_a_death_at_once),
        TEST(a_frozen_copy_counts_nobody_dead),
        TEST(a_clock_that_is_set_kills_nobody),
        TEST(stops_what_another_has),
        TEST(starts_anew_what_came_back_with_another_epoch),
        TEST(hands_over_directly),
        TEST(waits_for_members_to_settle_before_it_hands_over),
        TEST(waits_until_it_is_given),
        TEST(takes_what_is_not_given_in_time),
        TEST(restarts_what_nobody_wants_any_more),
        TEST(leaves_alone_what_it_cannot_read),
        TEST(stops_what_it_cannot_give_away),
        TEST(goes_where_a_checkpoint_was_set),
        TEST(in_doubt_it_looks),
        TEST(what_is_released_rests),
        TEST(leaves_everything_to_the_others),
        TEST(alone_it_leaves_to_nobody),
        TEST(takes_more_when_there_is_more),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
