/* place.h - one copy's control against a store of eight rows, step by step. What it does besides
 * beats and reads is written down: "0>b" is a claim of 0 for b, "+0" a start, "~0" a drain, "-0moved"
 * a stop, "<0" a rewind, "?0" a report; "+0s" and "<0s" while foreign owners live. */
#ifndef WEIR_TESTS_PROCESSOR_PLACE_H
#define WEIR_TESTS_PROCESSOR_PLACE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "processor/control.h"
#include "support/allocs.h"

#define ROWS 8

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

static inline void start_paced(uint32_t partitions, int64_t settle_ms, int64_t take_gap_ms)
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

static inline void start(uint32_t partitions)
{
    start_paced(partitions, 300, 0);
}

static inline int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.now_ms = 5000;
    w.store_ms = 1000000;
    w.change = 1;
    for (uint32_t p = 0; p < ROWS; p++) w.rows[p].partition = p;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    weir__control_free(w.control);
    return 0;
}

/* ---- the store ---- */

static inline void beat(const char *id, uint64_t instance, uint32_t weight)
{
    size_t i = 0;

    while (i < w.member_count && strcmp(w.members[i].id, id) != 0) i++;
    if (i == w.member_count) w.member_count++;
    assert_true(w.member_count <= 4);
    w.members[i] = (struct weir_member){.instance = instance, .weight = weight, .expire_ms = 3000};
    snprintf(w.members[i].id, sizeof w.members[i].id, "%s", id);
    w.members[i].beat_ms = w.now_ms + w.store_ms;
}

static inline void own(uint32_t p, const char *owner, uint64_t instance)
{
    struct weir_record *r = &w.rows[p];

    bool renewal = strcmp(r->owner, owner) == 0 && r->instance == instance;

    snprintf(r->owner, sizeof r->owner, "%s", owner);
    r->instance = instance;
    r->modified_ms = w.now_ms + w.store_ms;
    if (owner[0] && !renewal) r->epoch++;
    snprintf(r->version, sizeof r->version, "%" PRIu64, ++w.change);
}

static inline void read_rows(struct weir_view *v)
{
    allocs_pause(); /* what fails is the control's */
    if (!v->members) v->members = calloc(4, sizeof *v->members);
    if (!v->records) v->records = calloc(ROWS, sizeof *v->records);
    allocs_resume();
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

__attribute__((format(printf, 1, 2))) static inline void note(const char *fmt, ...)
{
    size_t len = strlen(w.log);
    va_list args;

    va_start(args, fmt);
    vsnprintf(w.log + len, sizeof w.log - len, fmt, args);
    va_end(args);
}

static inline int claim(const struct weir__control_step *s)
{
    note("%u>%s ", s->partition, s->owner[0] ? s->owner : "nobody");
    if (w.away) return WEIR_ETIMEDOUT;
    if (strcmp(w.rows[s->partition].version, s->record->version) != 0) return WEIR_EFENCED;
    own(s->partition, s->owner, s->instance);
    if (!w.lost_reply) return 0;
    w.lost_reply = false;
    return WEIR_ETIMEDOUT;
}

static inline int do_call(const struct weir__control_step *s)
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

static inline void follow(const struct weir__control_step *s)
{
    static const char *const reasons[] = {"", "shutdown", "lost", "moved", "error", "released"};

    switch (s->what) {
    case WEIR__CONTROL_START:
        assert_int_equal(s->record->epoch, w.rows[s->partition].epoch);
        note(s->shared ? "+%us " : "+%u ", s->partition);
        break;
    case WEIR__CONTROL_DRAIN:
        note("~%u ", s->partition);
        if (!w.slow_handlers) weir__control_drained(w.control, w.now_ms, s->partition, 0);
        break;
    case WEIR__CONTROL_STOP: note("-%u%s ", s->partition, reasons[s->reason]); break;
    case WEIR__CONTROL_REWIND: note(s->shared ? "<%us " : "<%u ", s->partition); break;
    case WEIR__CONTROL_REPORT: note("?%u ", s->partition); break;
    default: fail();
    }
}

/* Steps until there is nothing to do before the returned time. */
static inline int64_t run(void)
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
static inline void pass(int64_t ms, const char *others)
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

/* A foreign owner renews all that it has. */
static inline void renew(const char *owner)
{
    for (uint32_t p = 0; p < ROWS; p++)
        if (strcmp(w.rows[p].owner, owner) == 0 && w.rows[p].instance == 0) own(p, owner, 0);
}

/* Lets time pass; js renews every 10 s. */
static inline void pass_renewed(int64_t ms)
{
    for (int64_t end = w.now_ms + ms; w.now_ms < end;) {
        int64_t left = end - w.now_ms;
        pass(left < 10000 ? left : 10000, "");
        renew("js");
    }
}

static inline void expect(const char *log)
{
    assert_string_equal(w.log, log);
    w.log[0] = '\0';
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
