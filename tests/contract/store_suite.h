/* store_suite.h - what every store behind weir/store.h owes. Included by one store_NAME_test.c for
 * each backend, which gives store_open and runs STORE_CASES beside cases of its own. */
#ifndef WEIR_TESTS_CONTRACT_STORE_SUITE_H
#define WEIR_TESTS_CONTRACT_STORE_SUITE_H

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "weir/store.h"

#define ROUNDS 1000
#define MARKS_MANY 2500
#define WAIT_MS_MAX 30000
#define EXPIRE_MS 60000 /* of those who shall not die in a test, however slow it is */

/* Another handle on the store of this program; call_ms of 0 is the default. */
static struct weir_store *store_open(int64_t call_ms);

/* Each case has a handle and a scope of its own. */
struct world {
    struct weir_store *store;
    const struct weir_store_ops *ops;
    struct weir_scope scope;
    char hub[32];
    struct weir_view view;
};

static struct weir_error err;

#define assert_ok(rc)                                                                              \
    do {                                                                                           \
        int got_rc = (rc);                                                                         \
        if (got_rc != 0) fail_msg("%s: %s", weir_error_name(got_rc), err.text);                    \
    } while (0)

static int world_open(void **state)
{
    static int count;
    struct world *w = calloc(1, sizeof *w);

    snprintf(w->hub, sizeof w->hub, "hub%d-%d", (int)getpid(), count++);
    w->scope = (struct weir_scope){"space.example", w->hub, "$default"};
    w->store = store_open(0);
    w->ops = w->store->ops;
    *state = w;
    return 0;
}

static int world_close(void **state)
{
    struct world *w = *state;

    weir_store_close(w->store);
    weir_view_free(&w->view);
    free(w);
    return 0;
}

static struct weir_member member_named(const char *id, uint64_t instance, int64_t expire_ms)
{
    struct weir_member m = {.instance = instance, .weight = 1, .expire_ms = expire_ms};

    snprintf(m.id, sizeof m.id, "%s", id);
    return m;
}

static int beat(struct world *w, const char *id, uint64_t instance, int64_t expire_ms)
{
    struct weir_member m = member_named(id, instance, expire_ms);

    return w->ops->beat(w->store, &w->scope, &m, &err);
}

static void read_ok(struct world *w)
{
    assert_ok(w->ops->read(w->store, &w->scope, &w->view, &err));
}

static const struct weir_member *member_of(struct world *w, const char *id)
{
    read_ok(w);
    for (size_t i = 0; i < w->view.member_count; i++)
        if (strcmp(w->view.members[i].id, id) == 0) return &w->view.members[i];
    return NULL;
}

static struct weir_record record_of(struct world *w, uint32_t partition)
{
    w->view.change = 0; /* also what marks alone have changed */
    read_ok(w);
    for (size_t i = 0; i < w->view.record_count; i++)
        if (w->view.records[i].partition == partition) return w->view.records[i];
    return (struct weir_record){.partition = partition};
}

static int claim(struct world *w, struct weir_record *r, const char *owner, uint64_t instance)
{
    return w->ops->claim(w->store, &w->scope, r, owner, instance, r, &err);
}

static struct weir_record claim_first(struct world *w, uint32_t partition, const char *owner)
{
    struct weir_record r = {.partition = partition};

    assert_ok(claim(w, &r, owner, 1));
    return r;
}

static struct weir_mark mark_of(const struct weir_record *r, uint64_t sequence)
{
    struct weir_mark m = {.partition = r->partition,
                          .epoch = r->epoch,
                          .rewinds = r->rewinds,
                          .sequence = sequence,
                          .rc = 1};

    snprintf(m.offset, sizeof m.offset, "%" PRIu64, sequence * 100);
    return m;
}

/* It gets the next turn of this program when it has none. */
static int mark_one(struct world *w, const char *owner, struct weir_mark m)
{
    static uint64_t turns;

    if (m.turn == 0) m.turn = ++turns;
    assert_ok(w->ops->mark(w->store, &w->scope, owner, &m, 1, &err));
    return m.rc;
}

/* Until the store's own clock says that a member has been silent for so long. */
static void await_silence(struct world *w, const char *id, int64_t ms)
{
    struct timespec pause = {.tv_nsec = 5000000};

    for (int i = 0; i < WAIT_MS_MAX / 5; i++) {
        const struct weir_member *m = member_of(w, id);

        assert_non_null(m);
        if (w->view.now_ms - m->beat_ms >= ms) return;
        nanosleep(&pause, NULL);
    }
    fail_msg("the store's clock stands still");
}

/* ---- members ---- */

static void nothing_is_there_at_first(void **state)
{
    struct world *w = *state;

    read_ok(w);
    assert_int_equal(w->view.member_count, 0);
    assert_int_equal(w->view.record_count, 0);
    assert_true(w->view.now_ms > 1700000000000);
}

static void members_beat(void **state)
{
    struct world *w = *state;
    struct weir_member m = member_named("b", UINT64_MAX, EXPIRE_MS);
    const struct weir_member *got;
    int64_t first;

    assert_ok(beat(w, "c", 3, EXPIRE_MS));
    assert_ok(w->ops->beat(w->store, &w->scope, &m, &err));
    assert_ok(beat(w, "B", 1, EXPIRE_MS));
    got = member_of(w, "b");
    assert_non_null(got);
    assert_true(got->instance == UINT64_MAX);
    assert_int_equal(got->weight, 1);
    assert_int_equal(got->expire_ms, EXPIRE_MS);
    assert_in_range(w->view.now_ms - got->beat_ms, 0, EXPIRE_MS);
    first = got->beat_ms;

    await_silence(w, "b", 2);
    m.weight = 0;
    m.expire_ms = EXPIRE_MS + 1;
    assert_ok(w->ops->beat(w->store, &w->scope, &m, &err));
    got = member_of(w, "b");
    assert_int_equal(got->weight, 0);
    assert_int_equal(got->expire_ms, EXPIRE_MS + 1);
    assert_true(got->beat_ms > first);

    assert_int_equal(w->view.member_count, 3);
    assert_string_equal(w->view.members[0].id, "B"); /* by id, as bytes */
    assert_string_equal(w->view.members[1].id, "b");
    assert_string_equal(w->view.members[2].id, "c");
}

static void a_living_name_is_taken(void **state)
{
    struct world *w = *state;
    int64_t silent_ms = -1, expire_ms = -1;
    const char *text;

    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    await_silence(w, "a", 5);
    assert_int_equal(beat(w, "a", 2, EXPIRE_MS), WEIR_EEXIST);
    assert_int_equal(err.code, WEIR_EEXIST);
    text = strstr(err.text, "a copy named 'a'");
    assert_non_null(text);
    sscanf(text,
           "a copy named 'a' is in the group already, last heard of %" SCNd64
           " ms ago; it counts as dead after %" SCNd64 " ms of silence",
           &silent_ms, &expire_ms);
    assert_in_range(silent_ms, 5, EXPIRE_MS);
    assert_int_equal(expire_ms, EXPIRE_MS);
    assert_int_equal(member_of(w, "a")->instance, 1);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    assert_int_equal(beat(w, "a", 2, 1), WEIR_EEXIST); /* its own expiry counts, not ours */
}

static void a_dead_name_is_free(void **state)
{
    struct world *w = *state;

    assert_ok(beat(w, "a", 1, 30));
    await_silence(w, "a", 30);
    assert_ok(beat(w, "a", 2, EXPIRE_MS));
    assert_int_equal(member_of(w, "a")->instance, 2);
    assert_int_equal(w->view.member_count, 1);
    assert_int_equal(beat(w, "a", 1, EXPIRE_MS), WEIR_EEXIST);
}

static void the_long_dead_are_forgotten(void **state)
{
    static const char *const dead[] = {"a", "gone", "z"}; /* the first, one between, the last */
    struct world *w = *state;
    struct weir_member left = member_named("left", 1, 1);
    int64_t beat_ms;

    assert_ok(beat(w, "silent", 1, EXPIRE_MS));
    assert_ok(w->ops->beat(w->store, &w->scope, &left, &err));
    assert_ok(w->ops->leave(w->store, &w->scope, &left, &err));
    for (size_t i = 0; i < 3; i++) assert_ok(beat(w, dead[i], 1, 1));
    await_silence(w, "z", 1);
    beat_ms = member_of(w, "z")->beat_ms;
    assert_ok(beat(w, "b", 1, EXPIRE_MS));
    if (member_of(w, "z"))
        await_silence(w, "z", 100);
    else /* so slow is this machine */
        assert_true(w->view.now_ms - beat_ms >= 100);
    assert_ok(beat(w, "b", 1, EXPIRE_MS));
    for (size_t i = 0; i < 3; i++) assert_null(member_of(w, dead[i]));
    assert_int_equal(w->view.member_count, 2);
    left.expire_ms = EXPIRE_MS;
    assert_ok(w->ops->beat(w->store, &w->scope, &left, &err)); /* nobody knows it any more */
    assert_non_null(member_of(w, "left"));
}

static void only_the_own_instance_leaves(void **state)
{
    struct world *w = *state;
    struct weir_member one = member_named("a", 1, EXPIRE_MS), two = member_named("a", 2, EXPIRE_MS);

    assert_ok(w->ops->leave(w->store, &w->scope, &one, &err)); /* it never came */
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    assert_ok(w->ops->leave(w->store, &w->scope, &two, &err));
    assert_non_null(member_of(w, "a"));
    assert_ok(w->ops->leave(w->store, &w->scope, &one, &err));
    assert_null(member_of(w, "a"));
    assert_ok(w->ops->leave(w->store, &w->scope, &one, &err));  /* again, and nothing happens */
    assert_int_equal(beat(w, "a", 1, EXPIRE_MS), WEIR_EFENCED); /* a late one */
    assert_null(member_of(w, "a"));
    assert_ok(beat(w, "a", 2, EXPIRE_MS));
    assert_int_equal(member_of(w, "a")->instance, 2);
}

/* ---- owners ---- */

static void a_claim_makes_the_record(void **state)
{
    struct world *w = *state;
    struct weir_record r = {.partition = 7}, seen;

    assert_ok(claim(w, &r, "a", UINT64_MAX));
    assert_int_equal(r.partition, 7);
    assert_int_equal(r.rc, 0);
    assert_string_equal(r.owner, "a");
    assert_true(r.instance == UINT64_MAX);
    assert_int_equal(r.epoch, 1);
    assert_true(r.version[0] != '\0');
    assert_false(r.marked);
    assert_int_equal(r.rewinds, 0);
    seen = record_of(w, 7);
    assert_memory_equal(&seen.version, &r.version, sizeof r.version);
    assert_string_equal(seen.owner, "a");
    assert_int_equal(seen.epoch, 1);
    assert_int_equal(seen.acquired_ms, r.acquired_ms);
    assert_in_range(w->view.now_ms - seen.acquired_ms, 0, WAIT_MS_MAX);
    assert_int_equal(w->view.record_count, 1);
}

static void a_claim_names_what_it_saw(void **state)
{
    struct world *w = *state;
    struct weir_record first = claim_first(w, 0, "a"), old = first, none = {.partition = 0};
    struct weir_record never = {.partition = 1, .version = "1"};
    struct weir_record strange = {.partition = 0, .version = "nonsense"};
    uint64_t change;

    assert_ok(claim(w, &first, "b", 2));
    assert_int_equal(first.epoch, 2);
    read_ok(w);
    change = w->view.change;
    assert_int_equal(claim(w, &old, "c", 3), WEIR_EFENCED);
    assert_int_equal(err.code, WEIR_EFENCED);
    assert_int_equal(claim(w, &none, "c", 3), WEIR_EFENCED);
    assert_int_equal(claim(w, &never, "c", 3), WEIR_EFENCED);
    assert_int_equal(claim(w, &strange, "c", 3), WEIR_EFENCED);
    assert_string_equal(old.owner, "a"); /* a refusal leaves *out alone */
    read_ok(w);
    assert_int_equal(w->view.change, change); /* and the store */
    assert_string_equal(record_of(w, 0).owner, "b");
    assert_int_equal(w->view.record_count, 1);
}

static void a_claim_keeps_the_checkpoint(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");

    assert_int_equal(mark_one(w, "a", mark_of(&r, 41)), 0);
    assert_ok(claim(w, &r, "b", 9)); /* for another, as in a hand-over */
    assert_string_equal(r.owner, "b");
    assert_int_equal(r.instance, 9);
    assert_int_equal(r.epoch, 2);
    assert_true(r.marked);
    assert_int_equal(r.sequence, 41);
    assert_string_equal(r.offset, "4100");
    assert_int_equal(mark_one(w, "a", mark_of(&r, 42)), WEIR_EFENCED);
    assert_int_equal(mark_one(w, "b", mark_of(&r, 42)), 0);
}

static void a_release_keeps_the_epoch(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a"), held = r;

    assert_ok(claim(w, &r, "", 0));
    assert_string_equal(r.owner, "");
    assert_int_equal(r.instance, 0);
    assert_int_equal(r.epoch, 1);
    assert_true(r.acquired_ms >= held.acquired_ms);
    assert_int_equal(mark_one(w, "a", mark_of(&held, 1)), WEIR_EFENCED);
    assert_int_equal(claim(w, &held, "c", 1), WEIR_EFENCED);
    assert_ok(claim(w, &r, "b", 1));
    assert_int_equal(r.epoch, 2);
}

static void reading_again_is_short(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 3, "a");

    claim_first(w, 1, "a");
    read_ok(w);
    assert_int_equal(w->view.record_count, 2);
    assert_int_equal(w->view.records[0].partition, 1); /* in order */
    if (w->view.change == 0) skip();
    w->view.records[0].epoch = 4711;
    assert_int_equal(mark_one(w, "a", mark_of(&r, 5)), 0);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    read_ok(w);
    assert_int_equal(w->view.record_count, 2);
    assert_int_equal(w->view.records[0].epoch, 4711); /* not touched */
    assert_int_equal(w->view.member_count, 1);        /* but members are */

    assert_ok(w->ops->set(w->store, &w->scope, 2, NULL, &err));
    read_ok(w);
    assert_int_equal(w->view.record_count, 3);
    assert_int_equal(w->view.records[0].epoch, 1);
    assert_int_equal(w->view.records[2].sequence, 5);
}

static void a_renewal_is_no_new_owner(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a"), first = r, seen;
    struct weir_mark m = mark_of(&r, 5);
    uint64_t change;

    m.turn = 7;
    assert_int_equal(mark_one(w, "a", m), 0);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    await_silence(w, "a", 2); /* the clock moves on */
    change = w->view.change;
    assert_ok(claim(w, &r, "a", 1));
    assert_string_equal(r.owner, "a");
    assert_int_equal(r.instance, 1);
    assert_int_equal(r.epoch, first.epoch);
    assert_int_equal(r.acquired_ms, first.acquired_ms);
    assert_true(r.modified_ms > first.modified_ms);
    assert_string_not_equal(r.version, first.version);
    assert_int_equal(r.sequence, 5);
    seen = record_of(w, 0);
    assert_string_equal(seen.version, r.version);
    assert_int_equal(seen.modified_ms, r.modified_ms);
    assert_true(w->view.change > change || w->view.change == 0);
    assert_int_equal(claim(w, &first, "b", 1), WEIR_EFENCED);
    m.sequence = 4;
    assert_int_equal(mark_one(w, "a", m), WEIR_EFENCED); /* turns go on where they were */
    m.turn = 8;
    assert_int_equal(mark_one(w, "a", m), 0);

    assert_ok(claim(w, &r, "a", 2)); /* another start of it is another owner */
    assert_int_equal(r.epoch, first.epoch + 1);
    assert_true(r.acquired_ms > first.acquired_ms);
    assert_ok(claim(w, &r, "", 0));
    seen = r;
    assert_ok(claim(w, &r, "", 0)); /* nobody has it for as long as before */
    assert_int_equal(r.epoch, seen.epoch);
    assert_int_equal(r.acquired_ms, seen.acquired_ms);
}

/* ---- checkpoints ---- */

static void marks_are_fenced(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a"), seen;
    struct weir_mark m = mark_of(&r, 10), other;

    assert_int_equal(mark_one(w, "a", m), 0);
    assert_int_equal(mark_one(w, "b", m), WEIR_EFENCED);
    assert_int_equal(mark_one(w, "A", m), WEIR_EFENCED);
    other = m;
    other.sequence = 11;
    other.epoch = 2;
    assert_int_equal(mark_one(w, "a", other), WEIR_EFENCED);
    other.epoch = 0;
    assert_int_equal(mark_one(w, "a", other), WEIR_EFENCED);
    other.epoch = 1;
    other.rewinds = 1;
    assert_int_equal(mark_one(w, "a", other), WEIR_EFENCED);
    other.rewinds = 0;
    other.partition = 1;
    assert_int_equal(mark_one(w, "a", other), WEIR_EFENCED);

    seen = record_of(w, 0);
    assert_true(seen.marked);
    assert_int_equal(seen.sequence, 10);
    assert_string_equal(seen.offset, "1000");
    assert_string_equal(seen.version, r.version); /* which is the owner's */
    assert_true(seen.modified_ms >= r.modified_ms);
    assert_int_equal(w->view.record_count, 1);
    assert_int_equal(mark_one(w, "a", mark_of(&r, 9)), 0); /* the owner may go back */
    assert_int_equal(record_of(w, 0).sequence, 9);
}

/* As mark_one, with a turn of the caller's choice. */
static int mark_in_turn(struct world *w, const char *owner, const struct weir_record *r,
                        uint64_t turn, uint64_t sequence)
{
    struct weir_mark m = mark_of(r, sequence);

    m.turn = turn;
    assert_ok(w->ops->mark(w->store, &w->scope, owner, &m, 1, &err));
    return m.rc;
}

/* Calls that were given up and come behind others, of the same owner. */
static void late_marks_are_refused(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");

    assert_int_equal(mark_in_turn(w, "a", &r, 0, 1), WEIR_EFENCED); /* they begin at 1 */
    assert_int_equal(mark_in_turn(w, "a", &r, 2, 20), 0);
    assert_int_equal(mark_in_turn(w, "a", &r, 1, 10), WEIR_EFENCED);
    assert_int_equal(mark_in_turn(w, "a", &r, 2, 20), WEIR_EFENCED); /* a call that came twice */
    assert_int_equal(record_of(w, 0).sequence, 20);
    assert_int_equal(mark_in_turn(w, "a", &r, 4, 5), 0); /* it goes back on purpose */
    assert_int_equal(mark_in_turn(w, "a", &r, 3, 20), WEIR_EFENCED);
    assert_int_equal(record_of(w, 0).sequence, 5);
    assert_int_equal(mark_in_turn(w, "a", &r, 5, 5), 0); /* the same again is no late one */
    assert_int_equal(mark_in_turn(w, "a", &r, INT64_MAX, 6), 0);
}

/* Whose turns count: those of the present owner and epoch, whatever others have sent. */
static void turns_begin_with_the_owner(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a"), old = r;

    assert_int_equal(mark_in_turn(w, "a", &r, 100, 10), 0);
    assert_ok(claim(w, &r, "b", 1));
    assert_int_equal(mark_in_turn(w, "a", &old, 101, 11), WEIR_EFENCED);
    assert_int_equal(mark_in_turn(w, "b", &r, 1, 12), 0);
    assert_int_equal(mark_in_turn(w, "b", &r, 1, 13), WEIR_EFENCED);
    assert_ok(claim(w, &r, "", 0));
    assert_int_equal(mark_in_turn(w, "b", &r, 2, 14), WEIR_EFENCED);
    assert_ok(claim(w, &r, "a", 1)); /* the one that was there before: its epoch is another */
    assert_int_equal(mark_in_turn(w, "a", &old, 102, 15), WEIR_EFENCED);
    assert_int_equal(mark_in_turn(w, "a", &r, 1, 16), 0);
    assert_int_equal(record_of(w, 0).sequence, 16);
}

static void late_marks_do_not_undo_a_hand(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a"), seen;
    struct weir_mark by_hand = {.offset = "77", .sequence = 7};

    assert_int_equal(mark_in_turn(w, "a", &r, 3, 30), 0);
    assert_ok(w->ops->set(w->store, &w->scope, 0, &by_hand, &err));
    assert_int_equal(mark_in_turn(w, "a", &r, 4, 40), WEIR_EFENCED);
    seen = record_of(w, 0);
    assert_int_equal(seen.sequence, 7);
    assert_int_equal(mark_in_turn(w, "a", &seen, 3, 8), WEIR_EFENCED); /* turns go on */
    assert_int_equal(mark_in_turn(w, "a", &seen, 4, 8), 0);
    assert_int_equal(record_of(w, 0).sequence, 8);
}

static void marks_are_each_for_itself(void **state)
{
    struct world *w = *state;
    struct weir_mark *marks = calloc(MARKS_MANY, sizeof *marks);
    struct weir_record r = {0};

    for (uint32_t p = 0; p < 6; p++) r = claim_first(w, p, p == 2 ? "b" : "a");
    for (uint32_t i = 0; i < MARKS_MANY; i++) { /* all but six have no record */
        r.partition = i;
        marks[i] = mark_of(&r, i + 1);
        marks[i].epoch = i == 4 ? 2 : 1;
        marks[i].turn = i + 1;
    }
    assert_ok(w->ops->mark(w->store, &w->scope, "a", marks, MARKS_MANY, &err));
    for (uint32_t i = 0; i < MARKS_MANY; i++)
        assert_int_equal(marks[i].rc, i < 6 && i != 2 && i != 4 ? 0 : WEIR_EFENCED);
    assert_int_equal(record_of(w, 5).sequence, 6);
    assert_false(record_of(w, 2).marked);
    assert_false(record_of(w, 4).marked);
    assert_int_equal(w->view.record_count, 6);
    assert_ok(w->ops->mark(w->store, &w->scope, "a", marks, 0, &err));
    free(marks);
}

static void a_checkpoint_is_set_by_hand(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a"), seen;
    struct weir_mark by_hand = {.partition = 99, .offset = "77", .sequence = 7};
    uint64_t change;

    assert_int_equal(mark_one(w, "a", mark_of(&r, 50)), 0);
    read_ok(w);
    change = w->view.change;
    assert_ok(w->ops->set(w->store, &w->scope, 0, &by_hand, &err));
    read_ok(w);
    assert_true(w->view.change > change || w->view.change == 0);
    seen = record_of(w, 0);
    assert_int_equal(seen.rewinds, 1);
    assert_int_equal(seen.sequence, 7);
    assert_string_equal(seen.offset, "77");
    assert_string_equal(seen.owner, "a");
    assert_string_equal(seen.version, r.version);
    assert_int_equal(mark_one(w, "a", mark_of(&r, 51)), WEIR_EFENCED); /* it was under way */
    assert_int_equal(mark_one(w, "a", mark_of(&seen, 8)), 0);
    assert_ok(claim(w, &r, "b", 1));
    assert_int_equal(r.rewinds, 1);

    assert_ok(w->ops->set(w->store, &w->scope, 0, NULL, &err));
    seen = record_of(w, 0);
    assert_int_equal(seen.rewinds, 2);
    assert_false(seen.marked);
    assert_string_equal(seen.owner, "b");
}

static void a_checkpoint_is_set_before_anybody_came(void **state)
{
    struct world *w = *state;
    struct weir_mark by_hand = {.offset = "1", .sequence = UINT64_MAX};
    struct weir_record r = {.partition = 4};

    assert_ok(w->ops->set(w->store, &w->scope, 4, &by_hand, &err));
    assert_int_equal(claim(w, &r, "a", 1), WEIR_EFENCED); /* there is a record now */
    r = record_of(w, 4);
    assert_string_equal(r.owner, "");
    assert_int_equal(r.epoch, 0);
    assert_true(r.version[0] != '\0');
    assert_true(r.marked && r.sequence == UINT64_MAX);
    assert_ok(claim(w, &r, "a", 1));
    assert_int_equal(r.epoch, 1);
    assert_int_equal(r.rewinds, 1);
    assert_true(r.marked && r.sequence == UINT64_MAX);
}

/* Whatever the order was in which they were made. */
static void records_are_in_the_order_of_partitions(void **state)
{
    static const uint32_t order[] = {5, 9, 1, 7, 3, UINT32_MAX, 0, 8};
    static const uint32_t sorted[] = {0, 1, 3, 5, 7, 8, 9, UINT32_MAX};
    struct world *w = *state;
    char name[16];

    for (size_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "o%" PRIu32, order[i]);
        claim_first(w, order[i], name);
    }
    read_ok(w);
    assert_int_equal(w->view.record_count, 8);
    for (size_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "o%" PRIu32, sorted[i]);
        assert_int_equal(w->view.records[i].partition, sorted[i]);
        assert_string_equal(w->view.records[i].owner, name);
        assert_int_equal(w->view.records[i].epoch, 1);
    }
}

/* Until the store's clock is past that. */
static void await_after(struct world *w, int64_t ms)
{
    int64_t deadline = time(NULL) + WAIT_MS_MAX / 1000;

    do read_ok(w);
    while (w->view.now_ms <= ms && time(NULL) < deadline);
    assert_true(w->view.now_ms > ms);
}

/* A record that is made has both times, whoever made it; marks and hands move the second only. */
static void records_know_when(void **state)
{
    struct world *w = *state;
    struct weir_mark by_hand = {.offset = "77", .sequence = 7};
    struct weir_record r = {0}, seen;
    int64_t before;

    assert_ok(claim(w, &r, "", 0)); /* nobody's from the beginning */
    assert_int_equal(r.epoch, 0);
    assert_true(r.acquired_ms > 0);
    assert_int_equal(r.modified_ms, r.acquired_ms);
    read_ok(w);
    before = w->view.now_ms;
    assert_ok(w->ops->set(w->store, &w->scope, 1, &by_hand, &err));
    r = record_of(w, 1);
    assert_in_range(r.acquired_ms, before, w->view.now_ms);
    assert_in_range(r.modified_ms, r.acquired_ms, w->view.now_ms);

    await_after(w, r.modified_ms);
    assert_ok(w->ops->set(w->store, &w->scope, 1, NULL, &err));
    seen = record_of(w, 1);
    assert_int_equal(seen.acquired_ms, r.acquired_ms);
    assert_true(seen.modified_ms > r.modified_ms);
    assert_int_equal(seen.sequence, 0);
    assert_string_equal(seen.offset, "");

    assert_ok(claim(w, &seen, "a", 1));
    await_after(w, seen.modified_ms);
    assert_int_equal(mark_one(w, "a", mark_of(&seen, 9)), 0);
    r = record_of(w, 1);
    assert_int_equal(r.acquired_ms, seen.acquired_ms);
    assert_true(r.modified_ms > seen.modified_ms);
}

/* ---- scopes and names ---- */

static void scopes_never_meet(void **state)
{
    struct world *w = *state;
    struct weir_scope here = w->scope;
    char other[64];
    struct weir_scope others[] = {{here.space, other, here.group},
                                  {here.space, here.hub, "other"},
                                  {"other.example", here.hub, here.group},
                                  {here.hub, here.space, here.group}};
    struct weir_record r = claim_first(w, 0, "a"), taken;

    snprintf(other, sizeof other, "%s.other", here.hub);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        w->scope = others[i];
        assert_null(member_of(w, "a"));
        taken = record_of(w, 0);
        assert_string_equal(taken.version, "");
        assert_int_equal(mark_one(w, "a", mark_of(&r, 5)), WEIR_EFENCED);
        assert_ok(beat(w, "a", 100 + i, EXPIRE_MS));
        assert_ok(claim(w, &taken, "b", 1));
        assert_int_equal(taken.epoch, 1);
        assert_ok(w->ops->set(w->store, &w->scope, 0, NULL, &err));
    }
    w->scope = here;
    assert_int_equal(member_of(w, "a")->instance, 1);
    taken = record_of(w, 0);
    assert_string_equal(taken.owner, "a");
    assert_string_equal(taken.version, r.version);
    assert_int_equal(taken.rewinds, 0);
}

static void fill(char *text, size_t len, const char *with)
{
    for (size_t i = 0; i < len; i++) text[i] = with[i % strlen(with)];
    text[len] = '\0';
}

static void names_reach_their_limits(void **state)
{
    struct world *w = *state;
    char space[258], hub[258], group[258], owner[WEIR_OWNER_BYTES];
    struct weir_record r = {.partition = UINT32_MAX}, seen;
    struct weir_mark m;

    fill(space, 256, "s.");
    fill(hub, 256, "h'\"\\%_");
    fill(group, 256, "g{},;-- ");
    fill(owner, sizeof owner - 1, "o\"'\\{},\xc3\xa4");
    owner[sizeof owner - 2] = '!'; /* not half a letter */
    w->scope = (struct weir_scope){space, hub, group};
    assert_ok(beat(w, owner, 1, EXPIRE_MS));
    assert_non_null(member_of(w, owner));
    r = record_of(w, UINT32_MAX);
    assert_ok(claim(w, &r, owner, 1));
    m = mark_of(&r, UINT64_MAX);
    fill(m.offset, sizeof m.offset - 1, "\\\"',{} ");
    assert_int_equal(mark_one(w, owner, m), 0);
    seen = record_of(w, UINT32_MAX);
    assert_string_equal(seen.owner, owner);
    assert_string_equal(seen.offset, m.offset);
    assert_true(seen.sequence == UINT64_MAX);

    fill(hub, 257, "h");
    assert_int_equal(beat(w, owner, 1, EXPIRE_MS), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "hub"));
    hub[0] = '\0';
    assert_int_equal(claim(w, &r, owner, 1), WEIR_EINVAL);
    w->scope.hub = w->hub;
    assert_int_equal(beat(w, "", 1, EXPIRE_MS), WEIR_EINVAL);
    assert_int_equal(beat(w, "a", 1, 0), WEIR_EINVAL);
}

static void every_call_looks_at_its_names(void **state)
{
    struct world *w = *state;
    struct weir_member m = member_named("a", 1, EXPIRE_MS), none = member_named("", 1, EXPIRE_MS);
    struct weir_scope good = w->scope, bad = {good.space, "", good.group};
    struct weir_record r = {.partition = 1}, got;
    struct weir_mark mark = {.partition = 1, .epoch = 1, .turn = 1};
    const struct weir_store_ops *ops = w->ops;

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        assert_int_equal(call, WEIR_EINVAL);                                                       \
        assert_int_equal(err.code, WEIR_EINVAL);                                                   \
        assert_non_null(strstr(err.text, "has no name"));                                          \
    } while (0)
    REFUSED(ops->beat(w->store, &bad, &m, &err));
    REFUSED(ops->leave(w->store, &bad, &m, &err));
    REFUSED(ops->read(w->store, &bad, &w->view, &err));
    REFUSED(ops->claim(w->store, &bad, &r, "a", 1, &got, &err));
    REFUSED(ops->mark(w->store, &bad, "a", &mark, 1, &err));
    REFUSED(ops->set(w->store, &bad, 1, &mark, &err));
    REFUSED(ops->beat(w->store, &good, &none, &err));
#undef REFUSED
    assert_ok(ops->read(w->store, &good, &w->view, &err)); /* and goes on */
    assert_int_equal(w->view.member_count + w->view.record_count, 0);
}

/* ---- races ---- */

/* What two racers share; each round is one partition, or the one before once more. */
struct race {
    pthread_barrier_t gate;
    struct weir_scope scope;
    struct weir_record start[ROUNDS / 2], won[ROUNDS / 2];
    int rc[2][ROUNDS];
};

struct racer {
    struct race *race;
    int number;
};

static void *run_racer(void *arg)
{
    const struct racer *me = arg;
    struct race *race = me->race;
    struct weir_store *store = store_open(0);
    const char *name = me->number ? "b" : "a";

    for (int i = 0; i < ROUNDS; i++) {
        const struct weir_record *expected = i % 2 == 0 ? &race->start[i / 2] : &race->won[i / 2];
        struct weir_record out;

        pthread_barrier_wait(&race->gate);
        race->rc[me->number][i] =
            store->ops->claim(store, &race->scope, expected, name, (uint64_t)i, &out, NULL);
        pthread_barrier_wait(&race->gate);
        if (i % 2 == 0 && race->rc[me->number][i] == 0) race->won[i / 2] = out;
    }
    weir_store_close(store);
    return NULL;
}

static struct race *race_new(struct world *w, int shared)
{
    struct race *race =
        mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;

    assert_true(race != MAP_FAILED);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, shared);
    assert_int_equal(pthread_barrier_init(&race->gate, &attr, 2), 0);
    race->scope = w->scope;
    for (uint32_t p = 0; p < ROUNDS / 2; p++) race->start[p].partition = p;
    return race;
}

static void race_check(struct world *w, struct race *race)
{
    int wins[2] = {0};

    for (int i = 0; i < ROUNDS; i++) {
        int a = race->rc[0][i], b = race->rc[1][i];

        if (!((a == 0 && b == WEIR_EFENCED) || (b == 0 && a == WEIR_EFENCED)))
            fail_msg("round %d: %s and %s", i, weir_error_name(a), weir_error_name(b));
        wins[b == 0]++;
    }
    print_message("a won %d, b won %d\n", wins[0], wins[1]);
    record_of(w, 0);
    assert_int_equal(w->view.record_count, ROUNDS / 2);
    for (int p = 0; p < ROUNDS / 2; p++) {
        assert_int_equal(w->view.records[p].epoch, 2);
        assert_string_equal(w->view.records[p].owner, race->rc[1][2 * p + 1] == 0 ? "b" : "a");
    }
    munmap(race, sizeof *race);
}

static void one_thread_wins(void **state)
{
    struct world *w = *state;
    struct race *race = race_new(w, PTHREAD_PROCESS_PRIVATE);
    struct racer racers[2] = {{race, 0}, {race, 1}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_racer, &racers[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    race_check(w, race);
}

#define STORE_CASE(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
#define STORE_CASES                                                                                \
    STORE_CASE(nothing_is_there_at_first), STORE_CASE(members_beat),                               \
        STORE_CASE(a_living_name_is_taken), STORE_CASE(a_dead_name_is_free),                       \
        STORE_CASE(the_long_dead_are_forgotten), STORE_CASE(only_the_own_instance_leaves),         \
        STORE_CASE(a_claim_makes_the_record), STORE_CASE(a_claim_names_what_it_saw),               \
        STORE_CASE(a_claim_keeps_the_checkpoint), STORE_CASE(a_release_keeps_the_epoch),           \
        STORE_CASE(a_renewal_is_no_new_owner), STORE_CASE(reading_again_is_short),                 \
        STORE_CASE(marks_are_fenced), STORE_CASE(late_marks_are_refused),                          \
        STORE_CASE(turns_begin_with_the_owner), STORE_CASE(late_marks_do_not_undo_a_hand),         \
        STORE_CASE(marks_are_each_for_itself), STORE_CASE(a_checkpoint_is_set_by_hand),            \
        STORE_CASE(a_checkpoint_is_set_before_anybody_came),                                       \
        STORE_CASE(records_are_in_the_order_of_partitions), STORE_CASE(records_know_when),         \
        STORE_CASE(scopes_never_meet), STORE_CASE(names_reach_their_limits),                       \
        STORE_CASE(every_call_looks_at_its_names), STORE_CASE(one_thread_wins)

#endif
