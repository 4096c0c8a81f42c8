/* store_sql_suite.h - what a store owes that lies in a database: it is shared by processes, and
 * others can write into its tables. Beside store_suite.h; the backend's test gives store_sql. */
#ifndef WEIR_TESTS_CONTRACT_STORE_SQL_SUITE_H
#define WEIR_TESTS_CONTRACT_STORE_SQL_SUITE_H

#include <sys/wait.h>

#include "contract/store_suite.h"

#define CHILDREN_MAX 16
#define REMOVALS 20
#define LONG_TEXT "0123456789012345678901234567890123456789012345678901234567890123"

/* Runs SQL behind the store's back, with %s for what stands before the names of its tables. */
static void store_sql(const char *sql);

/* ---- what somebody else wrote ---- */

/* Each makes a record that is "a"'s first one unreadable, and readable again; good is NULL where it is
 * the version that the record had. */
static const struct damage {
    const char *column, *bad, *good;
} damages[] = {
    {"epoch", "-1", "1"},
    {"owner", "'" LONG_TEXT LONG_TEXT LONG_TEXT "'", "'a'"},
    {"marked", "2", "0"},
    {"version", "0", NULL},
    {"mark_offset", "'" LONG_TEXT "'", "''"},
    {"acquired_ms", "-1", "modified_ms"},
    {"modified_ms", "9223372036854775807", "acquired_ms"},
    {"rewinds", "-1", "0"},
    {"turn", "-1", "0"},
};
#define DAMAGES (sizeof damages / sizeof damages[0])

static void write_column(uint32_t partition, const char *column, const char *value)
{
    char sql[512];

    snprintf(sql, sizeof sql, "UPDATE %%srecord SET %s = %s WHERE partition = %" PRIu32, column,
             value, partition);
    store_sql(sql);
}

static void one_bad_record_is_one_bad_record(void **state)
{
    struct world *w = *state;
    struct weir_record r = {0}, none = {.partition = 501};

    for (uint32_t p = 500; p <= 501 + DAMAGES; p++) r = claim_first(w, p, "a");
    for (uint32_t i = 0; i < DAMAGES; i++) write_column(501 + i, damages[i].column, damages[i].bad);
    for (uint32_t p = 501; p < 501 + DAMAGES; p++) {
        r = record_of(w, p);
        assert_int_equal(r.rc, WEIR_ECORRUPT);
        assert_string_equal(r.version, "");
        assert_string_equal(r.owner, "");
    }
    assert_int_equal(w->view.record_count, DAMAGES + 2);
    assert_string_equal(record_of(w, 500).owner, "a");
    r = record_of(w, 501 + DAMAGES);
    assert_int_equal(r.rc, 0);
    assert_int_equal(mark_one(w, "a", mark_of(&r, 1)), 0);
    assert_int_equal(claim(w, &none, "b", 1), WEIR_EFENCED); /* nobody takes it for a new one */
    store_sql("DELETE FROM %srecord WHERE partition >= 501");
}

/* Whoever read it before it was damaged does not get it, and does not make it readable either. */
static void a_bad_record_is_not_claimed(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < DAMAGES; i++) {
        struct weir_record r = claim_first(w, 700 + i, "a"), old = r, seen;
        uint64_t change;

        read_ok(w);
        change = w->view.change;
        write_column(r.partition, damages[i].column, damages[i].bad);
        assert_int_equal(claim(w, &r, "b", 2), WEIR_EFENCED);
        assert_int_equal(claim(w, &r, "a", 1), WEIR_EFENCED);
        assert_int_equal(record_of(w, r.partition).rc, WEIR_ECORRUPT);
        assert_int_equal(w->view.change, change);
        write_column(r.partition, damages[i].column,
                     damages[i].good ? damages[i].good : old.version);
        seen = record_of(w, r.partition);
        assert_string_equal(seen.owner, "a");
        assert_string_equal(seen.version, old.version);
        assert_int_equal(seen.epoch, 1);
        assert_ok(claim(w, &r, "b", 2));
    }
}

static void a_bad_record_is_made_anew_by_hand(void **state)
{
    struct weir_mark by_hand = {.offset = "77", .sequence = 7};
    struct world *w = *state;

    for (uint32_t i = 0; i < DAMAGES; i++) {
        struct weir_record r = claim_first(w, 800 + i, "a"), old = r;
        bool keep = i % 2 == 0;

        write_column(r.partition, damages[i].column, damages[i].bad);
        assert_ok(w->ops->set(w->store, &w->scope, r.partition, keep ? &by_hand : NULL, &err));
        read_ok(w);
        assert_int_equal(mark_one(w, "a", mark_of(&r, 9)), WEIR_EFENCED); /* it was under way */
        r = record_of(w, r.partition);
        assert_int_equal(r.rc, 0);
        assert_int_equal(r.marked, keep);
        assert_int_equal(r.sequence, keep ? 7 : 0);
        assert_ok(claim(w, &r, "b", 2));
        assert_int_equal(claim(w, &old, "c", 3), WEIR_EFENCED);
    }
}

/* The clock was set back: who died before would seem to be alive until it has caught up. */
static void a_beat_in_the_future_is_no_life(void **state)
{
    struct world *w = *state;

    assert_ok(beat(w, "ahead", 1, EXPIRE_MS));
    store_sql("UPDATE %smember SET beat_ms = beat_ms + 30000 WHERE id = 'ahead'");
    assert_int_equal(beat(w, "ahead", 2, EXPIRE_MS), WEIR_EEXIST); /* clocks differ by that much */
    store_sql("UPDATE %smember SET beat_ms = beat_ms + 3600000 WHERE id = 'ahead'");
    assert_ok(beat(w, "ahead", 2, EXPIRE_MS));
    assert_int_equal(member_of(w, "ahead")->instance, 2);
    assert_true(member_of(w, "ahead")->beat_ms <= w->view.now_ms);

    store_sql("UPDATE %smember SET beat_ms = beat_ms + 3600000 WHERE id = 'ahead'");
    assert_ok(beat(w, "other", 1, EXPIRE_MS));
    assert_null(member_of(w, "ahead"));
    assert_ok(beat(w, "ahead", 2, EXPIRE_MS)); /* it lives, and is back with its next beat */
    assert_non_null(member_of(w, "ahead"));
}

static void a_bad_member_is_left_out(void **state)
{
    struct world *w = *state;

    assert_ok(beat(w, "good", 1, EXPIRE_MS));
    assert_ok(beat(w, "bad", 1, EXPIRE_MS));
    store_sql("UPDATE %smember SET weight = -1 WHERE id = 'bad'");
    assert_null(member_of(w, "bad"));
    assert_non_null(member_of(w, "good"));
    assert_ok(beat(w, "bad", 1, EXPIRE_MS));
    assert_non_null(member_of(w, "bad"));
    store_sql("UPDATE %smember SET expire_ms = 9223372036854775807,"
              " beat_ms = -9223372036854775807 WHERE id = 'bad'");
    assert_ok(beat(w, "good", 1, EXPIRE_MS)); /* who is not hindered by it */
    assert_null(member_of(w, "bad"));
    assert_ok(beat(w, "bad", 1, EXPIRE_MS));
    assert_non_null(member_of(w, "bad"));
}

/* As an operator does who empties the tables while copies run. */
static void remove_rows(void)
{
    store_sql("DELETE FROM %smember");
    store_sql("DELETE FROM %srecord");
    store_sql("DELETE FROM %sscope");
}

static void beat_again(struct world *w)
{
    int rc = beat(w, "a", 1, EXPIRE_MS);

    if (rc != 0) assert_int_equal(rc, WEIR_EBUSY);
    if (rc != 0) assert_ok(beat(w, "a", 1, EXPIRE_MS));
}

/* Copies come back by themselves. */
static void removed_rows_are_made_again(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");

    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    read_ok(w);
    remove_rows();
    assert_int_equal(claim(w, &r, "b", 1), WEIR_EFENCED);
    beat_again(w);
    read_ok(w);
    assert_int_equal(w->view.member_count, 1);
    assert_int_equal(w->view.record_count, 0);
}

/* However fast it goes, and however often records were claimed before: no old view takes the new rows
 * for what it holds, and nobody who has read the old record gets the new one. */
static void rows_made_again_have_new_numbers(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < REMOVALS; i++) {
        struct weir_record r = claim_first(w, 0, "a"), old;
        uint64_t change;

        for (int n = 0; n < i % 2 * 100; n++) assert_ok(claim(w, &r, n % 2 ? "a" : "b", 1));
        old = r;
        read_ok(w);
        change = w->view.change;
        remove_rows();
        beat_again(w);
        r = claim_first(w, 0, "b");
        read_ok(w);
        assert_true(w->view.change > change);
        assert_string_equal(w->view.records[0].owner, "b");
        assert_string_not_equal(r.version, old.version);
        assert_int_equal(claim(w, &old, "c", 1), WEIR_EFENCED);
        remove_rows();
        beat_again(w);
    }
}

/* ---- processes ---- */

/* Runs `count` children and returns when all have returned 0. */
static void run_children(int count, int (*run)(int number, void *arg), void *arg)
{
    pid_t pids[CHILDREN_MAX];
    int status;

    assert_true(count <= CHILDREN_MAX);
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) _exit(run(i, arg));
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

static int race_in_child(int number, void *race)
{
    struct racer me = {race, number};

    run_racer(&me);
    return 0;
}

static void one_process_wins(void **state)
{
    struct world *w = *state;
    struct race *race = race_new(w, PTHREAD_PROCESS_SHARED);

    run_children(2, race_in_child, race);
    race_check(w, race);
}

#define STORE_SQL_CASES                                                                            \
    STORE_CASE(one_bad_record_is_one_bad_record), STORE_CASE(a_bad_record_is_not_claimed),         \
        STORE_CASE(a_bad_record_is_made_anew_by_hand), STORE_CASE(a_bad_member_is_left_out),       \
        STORE_CASE(a_beat_in_the_future_is_no_life), STORE_CASE(removed_rows_are_made_again),      \
        STORE_CASE(rows_made_again_have_new_numbers), STORE_CASE(one_process_wins)

#endif
