/* store_sql_suite.h - what a store owes that lies in a database: it is shared by processes, and others
 * can write into its tables. Beside store_suite.h; the backend's test gives store_sql. */
#ifndef WEIR_TESTS_CONTRACT_STORE_SQL_SUITE_H
#define WEIR_TESTS_CONTRACT_STORE_SQL_SUITE_H

#include <sys/wait.h>

#include "contract/store_suite.h"

#define CHILDREN_MAX 16
#define LONG_TEXT "0123456789012345678901234567890123456789012345678901234567890123"

/* Runs SQL behind the store's back, with %s for what stands before the names of its tables. */
static void store_sql(const char *sql);

/* ---- what somebody else wrote ---- */

static void one_bad_record_is_one_bad_record(void **state)
{
    static const char *const garbage[] = {
        "UPDATE %srecord SET epoch = -1 WHERE partition = 501",
        "UPDATE %srecord SET owner = '" LONG_TEXT LONG_TEXT LONG_TEXT "' WHERE partition = 502",
        "UPDATE %srecord SET marked = 2 WHERE partition = 503",
        "UPDATE %srecord SET version = 0 WHERE partition = 504",
        "UPDATE %srecord SET mark_offset = '" LONG_TEXT "' WHERE partition = 505",
        "UPDATE %srecord SET modified_ms = 9223372036854775807 WHERE partition = 506",
    };
    size_t bad = sizeof garbage / sizeof garbage[0];
    struct world *w = *state;
    struct weir_record r = {0}, none = {.partition = 501};

    for (uint32_t p = 500; p <= 507; p++) r = claim_first(w, p, "a");
    for (size_t i = 0; i < bad; i++) store_sql(garbage[i]);
    for (uint32_t p = 501; p < 501 + bad; p++) {
        r = record_of(w, p);
        assert_int_equal(r.rc, WEIR_ECORRUPT);
        assert_string_equal(r.version, "");
        assert_string_equal(r.owner, "");
    }
    assert_int_equal(w->view.record_count, 8);
    assert_string_equal(record_of(w, 500).owner, "a");
    r = record_of(w, 507);
    assert_int_equal(r.rc, 0);
    assert_int_equal(mark_one(w, "a", mark_of(&r, 1)), 0);
    assert_int_equal(claim(w, &none, "b", 1), WEIR_EFENCED); /* nobody takes it for a new one */
    store_sql("DELETE FROM %srecord WHERE partition >= 501 AND partition <= 506");
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

/* An operator emptied the tables while copies run: they come back by themselves. */
static void removed_rows_are_made_again(void **state)
{
    struct world *w = *state;
    struct weir_record r = claim_first(w, 0, "a");
    uint64_t change;
    int rc;

    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    read_ok(w);
    change = w->view.change;
    store_sql("DELETE FROM %smember");
    store_sql("DELETE FROM %srecord");
    store_sql("DELETE FROM %sscope");
    assert_int_equal(claim(w, &r, "b", 1), WEIR_EFENCED);
    rc = beat(w, "a", 1, EXPIRE_MS);
    if (rc != 0) assert_int_equal(rc, WEIR_EBUSY);
    if (rc != 0) assert_ok(beat(w, "a", 1, EXPIRE_MS));
    read_ok(w);
    assert_int_equal(w->view.member_count, 1);
    assert_int_equal(w->view.record_count, 0);
    claim_first(w, 0, "b");
    read_ok(w);
    assert_true(w->view.change > change); /* no old view takes it for what it holds */
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
    STORE_CASE(one_bad_record_is_one_bad_record), STORE_CASE(a_bad_member_is_left_out),            \
        STORE_CASE(removed_rows_are_made_again), STORE_CASE(one_process_wins)

#endif
