/* store_sqlite_faults_test.c - statements that fail in the middle of a call: the call fails with what
 * SQLite says and where, and nothing of it is done. Triggers in the file make them fail. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "support/tempdir.h"
#include "weir/store.h"

static char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 16];
static struct weir_store *store;
static const struct weir_scope old = {"s", "old", "g"}, new = {"s", "new", "g"};
static struct weir_error err;

static void sql(const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 30000);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int beat(const struct weir_scope *scope)
{
    struct weir_member m = {.id = "a", .instance = 1, .weight = 1, .expire_ms = 60000};

    return store->ops->beat(store, scope, &m, &err);
}

static int leave(const struct weir_scope *scope)
{
    struct weir_member m = {.id = "a", .instance = 1, .weight = 1, .expire_ms = 60000};

    return store->ops->leave(store, scope, &m, &err);
}

static int read_view(const struct weir_scope *scope)
{
    struct weir_view view = {0};
    int rc = store->ops->read(store, scope, &view, &err);

    weir_view_free(&view);
    return rc;
}

/* Partition 0 has a record, as it was last seen; partition 1 has none. */
static struct weir_record seen;

static int claim_again(const struct weir_scope *scope)
{
    struct weir_record got;

    return store->ops->claim(store, scope, &seen, "b", 2, &got, &err);
}

static int claim_first(const struct weir_scope *scope)
{
    struct weir_record first = {.partition = 1}, got;

    return store->ops->claim(store, scope, &first, "b", 2, &got, &err);
}

static int mark(const struct weir_scope *scope)
{
    struct weir_mark m = {.epoch = seen.epoch, .turn = 1, .sequence = 5, .offset = "500"};

    return store->ops->mark(store, scope, "a", &m, 1, &err);
}

static int set(const struct weir_scope *scope)
{
    return store->ops->set(store, scope, 0, NULL, &err);
}

static int64_t number(const char *text)
{
    sqlite3_stmt *q;
    int64_t value;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 30000);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    value = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return value;
}

/* All that the file holds, as one number; times aside. */
static int64_t sum(void)
{
    return number(
        "SELECT (SELECT count(*) FROM scope) * 1000000 + (SELECT count(*) FROM member) * 100000 +"
        " (SELECT sum(expire_ms > 0) FROM member) * 10000 + (SELECT count(*) FROM record) * 1000 +"
        " (SELECT sum(epoch + marked * 10 + rewinds * 100) FROM record)");
}

static const struct fault {
    const char *when; /* of the trigger */
    int (*call)(const struct weir_scope *);
    const struct weir_scope *scope;
    const char *doing;
} faults[] = {
    {"INSERT ON scope", beat, &new, "beating"},
    {"INSERT ON member", beat, &old, "beating"},
    {"DELETE ON member", beat, &old, "beating"},
    {"UPDATE ON member", leave, &old, "leaving"},
    {"INSERT ON scope", claim_first, &new, "claiming"},
    {"INSERT ON record", claim_first, &old, "claiming"},
    {"UPDATE ON scope", claim_first, &old, "claiming"},
    {"UPDATE ON record", claim_again, &old, "claiming"},
    {"UPDATE ON scope", claim_again, &old, "claiming"},
    {"UPDATE ON record", mark, &old, "writing checkpoints"},
    {"INSERT ON scope", set, &new, "setting a checkpoint"},
    {"INSERT ON record", set, &new, "setting a checkpoint"},
    {"UPDATE ON record", set, &old, "setting a checkpoint"},
    {"UPDATE ON scope", set, &old, "setting a checkpoint"},
};

static void what_fails_is_not_done(void **state)
{
    int64_t before = sum();

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const struct fault *f = &faults[i];
        char text[1024];

        snprintf(text, sizeof text,
                 "CREATE TRIGGER fault BEFORE %s BEGIN SELECT raise(ABORT, 'no luck'); END",
                 f->when);
        sql(text);
        assert_int_equal(f->call(f->scope), WEIR_EIO);
        snprintf(text, sizeof text, "%s in '%s': no luck", f->doing, path);
        assert_string_equal(err.text, text);
        sql("DROP TRIGGER fault");
        assert_int_equal(sum(), before);
    }
}

/* And a call that does not find its table, until it is there again. */
static void what_cannot_be_read_is_told(void **state)
{
    static const struct {
        const char *table;
        int (*call)(const struct weir_scope *);
        const char *doing;
    } cases[] = {
        {"scope", beat, "beating"},
        {"scope", leave, "leaving"},
        {"scope", read_view, "reading"},
        {"member", read_view, "reading"},
        {"record", read_view, "reading"},
        {"scope", claim_first, "claiming"},
        {"record", claim_first, "claiming"},
        {"scope", mark, "writing checkpoints"},
        {"scope", set, "setting a checkpoint"},
        {"record", set, "setting a checkpoint"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];

        snprintf(text, sizeof text, "ALTER TABLE %s RENAME TO gone", cases[i].table);
        sql(text);
        assert_int_equal(cases[i].call(&old), WEIR_EIO);
        snprintf(text, sizeof text, "%s in '%s': no such table: %s", cases[i].doing, path,
                 cases[i].table);
        assert_string_equal(err.text, text);
        snprintf(text, sizeof text, "ALTER TABLE gone RENAME TO %s", cases[i].table);
        sql(text);
        assert_int_equal(read_view(&old), 0);
    }
}

/* A view is as it was when reading fails. */
static void what_was_read_stays(void **state)
{
    static const char *const tables[] = {"member", "record"};
    struct weir_view view = {0}, was;

    (void)state;
    assert_int_equal(store->ops->read(store, &old, &view, &err), 0);
    assert_int_equal(view.record_count, 1);
    was = view;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char text[64];

        view.change = i; /* so that records are read, too */
        snprintf(text, sizeof text, "ALTER TABLE %s RENAME TO gone", tables[i]);
        sql(text);
        assert_int_equal(store->ops->read(store, &old, &view, &err), WEIR_EIO);
        assert_int_equal(view.change, i);
        assert_ptr_equal(view.members, was.members);
        assert_int_equal(view.member_count, was.member_count);
        assert_ptr_equal(view.records, was.records);
        assert_int_equal(view.record_count, 1);
        snprintf(text, sizeof text, "ALTER TABLE gone RENAME TO %s", tables[i]);
        sql(text);
    }
    weir_view_free(&view);
}

/* Opening waits for a writer no longer than for any call, and says so. */
static void what_is_locked_is_not_opened(void **state)
{
    struct weir_store_options o = {.size = sizeof o, .call_ms = 1};
    struct weir_store *other;
    sqlite3 *db;

    (void)state;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(weir_store_sqlite(&other, path, &o, &err), WEIR_ETIMEDOUT);
    assert_null(other);
    sqlite3_close(db);
}

static void what_cannot_be_made_is_told(void **state)
{
    struct weir_store_options o = {.call_ms = 1};
    char away[TEMPDIR_BYTES + 16], text[2 * TEMPDIR_BYTES + 128];
    struct weir_store *other;

    (void)state;
    snprintf(away, sizeof away, "%s/no/store.db", dir);
    assert_int_equal(weir_store_sqlite(&other, away, NULL, &err), WEIR_ENOTFOUND);
    snprintf(text, sizeof text, "opening the store '%s': making it: No such file or directory",
             away);
    assert_string_equal(err.text, text);
    assert_int_equal(weir_store_sqlite(&other, path, &o, &err), WEIR_EINVAL);
    assert_null(other);
}

/* The first opening after a start of the machine looks for the newest time there is. */
static void time_that_cannot_be_read_is_told(void **state)
{
    static const char *const tables[] = {"member", "record"};
    struct weir_store *other;

    (void)state;
    sql("UPDATE clock SET boot = 'another'");
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char text[64];

        snprintf(text, sizeof text, "ALTER TABLE %s RENAME TO gone", tables[i]);
        sql(text);
        assert_int_equal(weir_store_sqlite(&other, path, NULL, &err), WEIR_EIO);
        snprintf(text, sizeof text, "no such table: %s", tables[i]);
        assert_non_null(strstr(err.text, text));
        assert_int_equal(number("SELECT boot = 'another' FROM clock"), 1); /* nothing was written */
        snprintf(text, sizeof text, "ALTER TABLE gone RENAME TO %s", tables[i]);
        sql(text);
    }
    assert_int_equal(weir_store_sqlite(&other, path, NULL, &err), 0);
    weir_store_close(other);
}

/* A record that cannot be understood is removed before a new one is made. */
static void what_cannot_be_removed_stays(void **state)
{
    (void)state;
    sql("UPDATE record SET epoch = 'many'; CREATE TRIGGER fault BEFORE DELETE ON record"
        " BEGIN SELECT raise(ABORT, 'no luck'); END");
    assert_int_equal(set(&old), WEIR_EIO);
    sql("DROP TRIGGER fault");
    assert_int_equal(set(&old), 0);
}

/* One member lives, one is long dead and is to be forgotten; one record. */
static int set_up(void **state)
{
    struct weir_record first = {0};

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    snprintf(path, sizeof path, "%s/store.db", dir);
    assert_int_equal(weir_store_sqlite(&store, path, NULL, &err), 0);
    assert_int_equal(beat(&old), 0);
    assert_int_equal(store->ops->claim(store, &old, &first, "a", 1, &seen, &err), 0);
    sql("INSERT INTO member SELECT scope, 'dead', 9, 1, 1, 0 FROM member");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir_store_close(store);
    tempdir_remove(dir);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_fails_is_not_done),       TEST(what_cannot_be_read_is_told),
        TEST(what_was_read_stays),          TEST(what_is_locked_is_not_opened),
        TEST(what_cannot_be_made_is_told),  TEST(time_that_cannot_be_read_is_told),
        TEST(what_cannot_be_removed_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
