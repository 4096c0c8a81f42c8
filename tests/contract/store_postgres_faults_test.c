/* store_postgres_faults_test.c - statements that the server refuses: the call fails with what it said
 * and where, and the next one goes on. Triggers in the tables make them fail. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libpq-fe.h>

#include "contract/sql.h"
#include "support/postgres.h"
#include "weir/store.h"

#define CALL_MS 30000
#define MARKS 3

static struct postgres_server server;
static struct weir_store *store;
static const struct weir_scope scope = {"s", "h", "g"};
static struct weir_error err;

#define assert_ok(rc)                                                                              \
    do {                                                                                           \
        int got_rc = (rc);                                                                         \
        if (got_rc != 0) fail_msg("%s: %s", weir_error_name(got_rc), err.text);                    \
    } while (0)

/* ---- the calls ---- */

static int beat(const struct weir_scope *in, uint64_t instance)
{
    struct weir_member m = {.id = "a", .instance = instance, .weight = 1, .expire_ms = 60000};

    return store->ops->beat(store, in, &m, &err);
}

static int call_beat(const struct weir_scope *in)
{
    return beat(in, 1);
}

static int call_leave(const struct weir_scope *in)
{
    struct weir_member m = {.id = "nobody", .instance = 1};

    return store->ops->leave(store, in, &m, &err);
}

static int call_read(const struct weir_scope *in)
{
    struct weir_view view = {0};
    int rc = store->ops->read(store, in, &view, &err);

    weir_view_free(&view);
    return rc;
}

static int call_claim(const struct weir_scope *in)
{
    static uint32_t next = 100;
    struct weir_record first = {.partition = next++}, got;

    return store->ops->claim(store, in, &first, "a", 1, &got, &err);
}

static struct weir_mark marks[MARKS]; /* of the first partitions, which are a's */

static int call_mark(const struct weir_scope *in)
{
    for (uint32_t i = 0; i < MARKS; i++) {
        marks[i].partition = i;
        marks[i].epoch = 1;
        marks[i].turn++;
        marks[i].rc = 1;
    }
    return store->ops->mark(store, in, "a", marks, MARKS, &err);
}

static int call_set(const struct weir_scope *in)
{
    return store->ops->set(store, in, 50, NULL, &err);
}

static const struct call {
    int (*call)(const struct weir_scope *);
    const char *what;
} calls[] = {
    {call_beat, "beating in PostgreSQL"},
    {call_leave, "leaving in PostgreSQL"},
    {call_read, "reading in PostgreSQL"},
    {call_claim, "claiming in PostgreSQL"},
    {call_mark, "writing checkpoints in PostgreSQL"},
    {call_set, "setting a checkpoint in PostgreSQL"},
};
#define CALLS (sizeof calls / sizeof calls[0])

static int set_up(void **state)
{
    struct weir_store_options o = {.size = sizeof o, .call_ms = CALL_MS};

    (void)state;
    run_sql(server.url, "DROP SCHEMA IF EXISTS weir CASCADE");
    memset(marks, 0, sizeof marks);
    assert_ok(weir_store_postgres(&store, server.url, &o, &err));
    assert_ok(call_beat(&scope));
    for (uint32_t p = 0; p < MARKS; p++) {
        struct weir_record r = {.partition = p}, got;

        assert_ok(store->ops->claim(store, &scope, &r, "a", 1, &got, &err));
    }
    for (size_t i = 0; i < CALLS; i++) assert_ok(calls[i].call(&scope)); /* all are prepared */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir_store_close(store);
    return 0;
}

/* ---- refusals ---- */

/* A trigger that fails with a state, at `when` ("BEFORE INSERT OR UPDATE ON weir.member ..."). */
static void fail_with(const char *state, const char *when)
{
    char sql[1024];

    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE FUNCTION weir.fail() RETURNS trigger AS $$ BEGIN"
             " RAISE EXCEPTION E'no luck\\nmore of it' USING ERRCODE = '%s'; END $$"
             " LANGUAGE plpgsql;"
             "CREATE %s FOR EACH ROW EXECUTE FUNCTION weir.fail()",
             state, when);
    run_sql(server.url, sql);
}

static void fail_no_more(const char *table)
{
    char sql[128];

    snprintf(sql, sizeof sql, "DROP TRIGGER fail ON weir.%s", table);
    run_sql(server.url, sql);
}

/* The server's process that our last call spoke with. */
static long backend(void)
{
    char text[32];

    ask_sql(server.url,
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'weir'"
            " ORDER BY backend_start DESC LIMIT 1",
            text, sizeof text);
    return strtol(text, NULL, 10);
}

static void hang_up(void)
{
    run_sql(server.url, "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
                        " WHERE application_name = 'weir'");
}

/* By what the server said, its first line; a connection that is of no use any more is made again. */
static void states_have_codes(void **state)
{
    static const struct {
        const char *state;
        int rc;
        bool again;
    } cases[] = {
        {"57014", WEIR_ETIMEDOUT, false},   {"55P03", WEIR_ETIMEDOUT, false},
        {"57P01", WEIR_EUNREACHABLE, true}, {"08006", WEIR_EUNREACHABLE, true},
        {"25006", WEIR_EUNREACHABLE, true}, {"26000", WEIR_EUNREACHABLE, true},
        {"0A000", WEIR_EUNREACHABLE, true}, {"53100", WEIR_ENOSPACE, false},
        {"53200", WEIR_EUNREACHABLE, true}, {"40001", WEIR_EBUSY, false},
        {"28000", WEIR_EDENIED, true},      {"42501", WEIR_EDENIED, false},
        {"3D000", WEIR_ENOTFOUND, true},    {"42P01", WEIR_ENOTFOUND, true},
        {"3F000", WEIR_ENOTFOUND, true},    {"42703", WEIR_EVERSION, true},
        {"22021", WEIR_EINVAL, false},      {"XX001", WEIR_ECORRUPT, false},
        {"23514", WEIR_EIO, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long before = backend();

        fail_with(cases[i].state, "TRIGGER fail BEFORE INSERT OR UPDATE ON weir.member");
        if (call_beat(&scope) != cases[i].rc) fail_msg("%s: %s", cases[i].state, err.text);
        assert_int_equal(err.code, cases[i].rc);
        assert_string_equal(err.text, "beating in PostgreSQL: no luck");
        fail_no_more("member");
        assert_ok(call_beat(&scope));
        if ((backend() != before) != cases[i].again)
            fail_msg("the connection of %s", cases[i].state);
    }
}

/* Wherever it fails in a row of marks, and at its very end: none of them is stored, and the next row
 * is. */
static void marks_are_stored_together(void **state)
{
    static const char *const when[] = {
        "TRIGGER fail BEFORE UPDATE ON weir.record",
        "CONSTRAINT TRIGGER fail AFTER UPDATE ON weir.record DEFERRABLE INITIALLY DEFERRED",
    };
    char stored[32];

    (void)state;
    for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
        run_sql(server.url, "UPDATE weir.record SET mark_sequence = 1");
        fail_with("53100", when[i]);
        for (uint32_t p = 0; p < MARKS; p++) marks[p].sequence = 7;
        assert_int_equal(call_mark(&scope), WEIR_ENOSPACE);
        assert_string_equal(err.text, "writing checkpoints in PostgreSQL: no luck");
        ask_sql(server.url, "SELECT count(*) FROM weir.record WHERE mark_sequence = 7", stored,
                sizeof stored);
        assert_string_equal(stored, "0");
        fail_no_more("record");
        assert_ok(call_mark(&scope));
        for (uint32_t p = 0; p < MARKS; p++) assert_int_equal(marks[p].rc, 0);
        ask_sql(server.url, "SELECT count(*) FROM weir.record WHERE mark_sequence = 7", stored,
                sizeof stored);
        assert_string_equal(stored, "3");
    }
}

/* The row of a scope is made once on a connection: calls are one round trip. */
static void a_scope_is_made_once(void **state)
{
    static const struct weir_scope others[] = {{"x", "h", "g"}, {"s", "x", "g"}, {"s", "h", "x"}};

    (void)state;
    fail_with("P0001", "TRIGGER fail BEFORE INSERT ON weir.scope");
    for (size_t i = 0; i < CALLS; i++) assert_ok(calls[i].call(&scope));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(call_beat(&others[i]), WEIR_EIO);
        assert_int_equal(call_set(&others[i]), WEIR_EIO);
        assert_string_equal(err.text, "setting a checkpoint in PostgreSQL: no luck");
    }
    assert_ok(call_beat(&scope)); /* what failed is not taken for made */
    hang_up();
    assert_int_equal(call_beat(&scope), WEIR_EIO); /* it may have gone meanwhile */
    assert_string_equal(err.text, "beating in PostgreSQL: no luck");
    fail_no_more("scope");
    assert_ok(call_beat(&scope));
}

static void a_checkpoint_that_cannot_be_set_is_told(void **state)
{
    (void)state;
    fail_with("53100", "TRIGGER fail BEFORE INSERT OR UPDATE ON weir.record");
    assert_int_equal(call_set(&scope), WEIR_ENOSPACE);
    assert_string_equal(err.text, "setting a checkpoint in PostgreSQL: no luck");
    fail_no_more("record");
    assert_ok(call_set(&scope));
}

/* A record that cannot be understood is removed first. */
static void a_record_that_cannot_be_removed_is_told(void **state)
{
    (void)state;
    run_sql(server.url, "UPDATE weir.record SET epoch = -1");
    fail_with("53100", "TRIGGER fail BEFORE DELETE ON weir.record");
    assert_int_equal(call_set(&scope), WEIR_ENOSPACE);
    assert_string_equal(err.text, "setting a checkpoint in PostgreSQL: no luck");
    fail_no_more("record");
    assert_ok(call_set(&scope));
}

static void options_without_a_size(void **state)
{
    struct weir_store_options o = {.call_ms = 1};
    struct weir_store *none;

    (void)state;
    assert_int_equal(weir_store_postgres(&none, server.url, &o, &err), WEIR_EINVAL);
    assert_null(none);
}

/* Statements are prepared when they are needed, and that may fail. */
static void a_table_that_is_gone_is_told(void **state)
{
    (void)state;
    hang_up();
    assert_ok(call_beat(&scope));
    run_sql(server.url, "ALTER TABLE weir.record RENAME TO gone");
    for (size_t i = 2; i < CALLS; i++) {
        assert_int_equal(calls[i].call(&scope), WEIR_ENOTFOUND);
        assert_non_null(strstr(err.text, "relation \"weir.record\" does not exist"));
    }
    run_sql(server.url, "ALTER TABLE weir.gone RENAME TO record");
    for (size_t i = 0; i < CALLS; i++) assert_ok(calls[i].call(&scope));
    run_sql(server.url, "ALTER TABLE weir.format RENAME COLUMN version TO gone");
    hang_up();
    assert_int_equal(call_beat(&scope), WEIR_EVERSION);
    assert_string_equal(err.text, "beating in PostgreSQL: column \"version\" does not exist");
}

/* An operator has emptied the tables under a copy that knows its scope. */
static void a_removed_scope_is_made_again(void **state)
{
    static const struct call *const these[] = {&calls[0], &calls[CALLS - 1]}; /* beat, set */
    char text[128];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s: the group's rows were removed; they are made again",
                 these[i]->what);
        run_sql(server.url, "DELETE FROM weir.scope");
        assert_int_equal(these[i]->call(&scope), WEIR_EBUSY);
        assert_string_equal(err.text, text);
        assert_ok(these[i]->call(&scope));
    }
}

/* ---- what is said ---- */

static void every_call_looks_at_its_scope(void **state)
{
    static const struct weir_scope bad[] = {{"", "h", "g"}, {"s", "", "g"}, {"s", "h", ""}};
    static const char *const names[] = {"namespace", "hub", "consumer group"};
    char text[128];

    (void)state;
    for (size_t i = 0; i < CALLS; i++)
        for (size_t b = 0; b < 3; b++) {
            snprintf(text, sizeof text, "%s: the %s has no name", calls[i].what, names[b]);
            assert_int_equal(calls[i].call(&bad[b]), WEIR_EINVAL);
            assert_string_equal(err.text, text);
        }
}

static void who_lives_under_the_name_is_told(void **state)
{
    int64_t silent_ms, expire_ms;

    (void)state;
    run_sql(server.url, "UPDATE weir.member SET beat_ms = beat_ms - 20000, expire_ms = 77777777");
    assert_int_equal(beat(&scope, 2), WEIR_EEXIST);
    assert_int_equal(sscanf(err.text,
                            "beating in PostgreSQL: a copy named 'a' is in the group already, last"
                            " heard of %" SCNd64 " ms ago; it counts as dead after %" SCNd64
                            " ms of silence",
                            &silent_ms, &expire_ms),
                     2);
    assert_in_range(silent_ms, 20000, 20000 + 4 * CALL_MS);
    assert_int_equal(expire_ms, 77777777);
}

/* Its own calls are what the server gives up after call_ms, too. */
static void the_server_knows_the_deadline(void **state)
{
    (void)state;
    run_sql(server.url,
            "CREATE FUNCTION weir.tell() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION '% %',"
            " current_setting('statement_timeout'), current_setting('lock_timeout'); END $$"
            " LANGUAGE plpgsql;"
            "CREATE TRIGGER fail BEFORE UPDATE ON weir.member FOR EACH ROW"
            " EXECUTE FUNCTION weir.tell()");
    assert_int_equal(call_beat(&scope), WEIR_EIO);
    assert_string_equal(err.text, "beating in PostgreSQL: 30s 30s");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(states_have_codes),
                                       TEST(marks_are_stored_together),
                                       TEST(a_scope_is_made_once),
                                       TEST(a_checkpoint_that_cannot_be_set_is_told),
                                       TEST(a_record_that_cannot_be_removed_is_told),
                                       TEST(options_without_a_size),
                                       TEST(a_table_that_is_gone_is_told),
                                       TEST(a_removed_scope_is_made_again),
                                       TEST(every_call_looks_at_its_scope),
                                       TEST(who_lives_under_the_name_is_told),
                                       TEST(the_server_knows_the_deadline)};
    const char *why = postgres_make(&server);
    int failed;

    if (why) {
        print_message("%s\n[  PASSED  ] 0 test(s).\n[  SKIPPED ] %zu test(s).\n", why,
                      sizeof tests / sizeof tests[0]);
        return 0;
    }
    failed = postgres_start(&server) != 0 || cmocka_run_group_tests(tests, NULL, NULL);
    postgres_remove(&server);
    return failed;
}
