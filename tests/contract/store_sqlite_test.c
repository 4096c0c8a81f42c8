/* store_sqlite_test.c - the store in a SQLite file, and what only files do. */
#define _GNU_SOURCE
#include "contract/store_sql_suite.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/thread.h"
#include "support/descriptors.h"
#include "support/tempdir.h"

#define CHILDREN 8
#define TURNS 60
#define KILLS 25

static char dir[TEMPDIR_BYTES];

static char *path_of(const char *name)
{
    static _Thread_local char path[TEMPDIR_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static struct weir_store *open_path(const char *name, int64_t call_ms)
{
    struct weir_store_options o = {.size = sizeof o, .call_ms = call_ms};
    struct weir_store *s;

    if (weir_store_sqlite(&s, path_of(name), &o, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return s;
}

static struct weir_store *store_open(int64_t call_ms)
{
    return open_path("store.db", call_ms ? call_ms : WAIT_MS_MAX);
}

static void sql_in(const char *name, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path_of(name), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, WAIT_MS_MAX);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void store_sql(const char *sql)
{
    char filled[512];
    const char *at = strstr(sql, "%s");

    snprintf(filled, sizeof filled, "%.*s%s", at ? (int)(at - sql) : 0, sql, at ? at + 2 : sql);
    sql_in("store.db", filled);
}

/* ---- what only a file does ---- */

static int open_rc(const char *name)
{
    struct weir_store *s;
    int rc = weir_store_sqlite(&s, path_of(name), NULL, &err);

    assert_true(rc == 0 ? s != NULL : s == NULL);
    weir_store_close(s);
    if (rc != 0) assert_non_null(strstr(err.text, path_of(name)));
    return rc;
}

static void the_file_is_its_owners(void **state)
{
    const char *const names[] = {"store.db", "store.db-wal"};
    struct world *w = *state;
    struct stat st;

    claim_first(w, 0, "a");
    for (size_t i = 0; i < 2; i++) { /* a write-ahead log: it is there while a handle is open */
        assert_int_equal(stat(path_of(names[i]), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

/* The log that is written ahead goes with the last handle. */
static void a_close_leaves_the_file_alone(void **state)
{
    struct world *w = *state;
    unsigned before = descriptors_count();
    struct weir_store *s = open_path("closed.db", 0);
    struct weir_member m = member_named("a", 1, EXPIRE_MS);

    assert_ok(s->ops->beat(s, &w->scope, &m, &err));
    assert_int_equal(access(path_of("closed.db-wal"), F_OK), 0);
    weir_store_close(s);
    assert_int_equal(access(path_of("closed.db-wal"), F_OK), -1);
    assert_int_equal(descriptors_count(), before);
}

static void others_files_are_refused(void **state)
{
    FILE *f;

    (void)state;
    sql_in("theirs.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_int_equal(open_rc("theirs.db"), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "another program's"));
    sql_in("theirs.db", "INSERT INTO t VALUES (2)"); /* and nothing was done to it */

    open_rc("newer.db");
    sql_in("newer.db", "PRAGMA user_version = 7");
    assert_int_equal(open_rc("newer.db"), WEIR_EVERSION);
    assert_non_null(strstr(err.text, "format 7"));

    open_rc("older.db"); /* as it was before records had turns */
    sql_in("older.db", "ALTER TABLE record DROP COLUMN turn; PRAGMA user_version = 1");
    assert_int_equal(open_rc("older.db"), WEIR_EVERSION);
    assert_non_null(strstr(err.text, "format 1"));
    assert_non_null(strstr(err.text, "use another file"));
    sql_in("older.db", "INSERT INTO record VALUES (1, 2, '', 0, 0, 0, 0, 1, 0, '', 0, 0)");

    f = fopen(path_of("text.db"), "w");
    for (int i = 0; i < 1000; i++) fputs("this is not a database\n", f);
    fclose(f);
    assert_int_equal(open_rc("text.db"), WEIR_EINVAL);
    assert_int_equal(open_rc("no/such/folder.db"), WEIR_ENOTFOUND);
    assert_int_equal(open_rc(""), WEIR_EINVAL); /* the folder itself */
}

static void strange_names_are_paths(void **state)
{
    char here[4096];
    struct weir_store *s;

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    assert_ok(weir_store_sqlite(&s, ":memory:", NULL, &err));
    weir_store_close(s);
    assert_int_equal(access(path_of(":memory:"), F_OK), 0);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(weir_store_sqlite(&s, "", NULL, &err), WEIR_EINVAL);
    assert_int_equal(weir_store_sqlite(&s, NULL, NULL, &err), WEIR_EINVAL);
}

static void a_bad_type_is_a_bad_record(void **state)
{
    struct world *w = *state;
    struct weir_record bad = claim_first(w, 601, "a");

    claim_first(w, 602, "a");
    claim_first(w, 603, "a");
    store_sql("UPDATE %srecord SET epoch = 'many' WHERE partition = 601");
    store_sql("UPDATE %srecord SET owner = x'6100ff' WHERE partition = 602");
    assert_int_equal(record_of(w, 601).rc, WEIR_ECORRUPT);
    assert_int_equal(record_of(w, 602).rc, WEIR_ECORRUPT);
    assert_int_equal(record_of(w, 603).rc, 0);
    assert_int_equal(claim(w, &bad, "b", 1), WEIR_EFENCED); /* adding to it would make a number */
    assert_int_equal(record_of(w, 601).rc, WEIR_ECORRUPT);
    store_sql("UPDATE %srecord SET partition = 'none' WHERE partition = 602");
    record_of(w, 603);
    assert_int_equal(w->view.record_count, 2); /* one that cannot be named is left out */
    store_sql("DELETE FROM %srecord WHERE partition = 'none' OR partition = 601");
}

/* Another process that holds the writer's lock is waited for no longer than call_ms. */
static void a_held_lock_is_a_time_out(void **state)
{
    struct world *w = *state;
    struct weir_store *s = store_open(200);
    struct weir_member m = member_named("a", 1, EXPIRE_MS);
    int64_t began, took_ms;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path_of("store.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    began = weir__mono_ns();
    assert_int_equal(s->ops->beat(s, &w->scope, &m, &err), WEIR_ETIMEDOUT);
    took_ms = (weir__mono_ns() - began) / 1000000;
    assert_in_range(took_ms, 195, 5000);
    assert_ok(s->ops->read(s, &w->scope, &w->view, &err)); /* readers do not wait */
    sqlite3_close(db);
    assert_ok(s->ops->beat(s, &w->scope, &m, &err));
    weir_store_close(s);
}

static void a_file_that_is_gone_is_noticed(void **state)
{
    struct world *w = *state;
    char away[TEMPDIR_BYTES + 64];
    struct weir_record r;

    weir_store_close(w->store);
    w->store = open_path("moved.db", 0);
    r = claim_first(w, 0, "a");
    snprintf(away, sizeof away, "%s", path_of("away.db"));
    assert_int_equal(rename(path_of("moved.db"), away), 0);
    assert_int_equal(beat(w, "a", 1, EXPIRE_MS), WEIR_EUNREACHABLE);
    assert_int_equal(claim(w, &r, "b", 1), WEIR_EUNREACHABLE);
    assert_int_equal(access(path_of("moved.db"), F_OK), -1); /* nothing made in its place */
    assert_int_equal(rename(away, path_of("moved.db")), 0);
    assert_ok(claim(w, &r, "b", 1));

    open_rc("away.db"); /* another store takes its name */
    assert_int_equal(rename(away, path_of("moved.db")), 0);
    unlink(path_of("moved.db-wal"));
    unlink(path_of("moved.db-shm"));
    assert_int_equal(claim(w, &r, "c", 1), WEIR_EFENCED);
    assert_int_equal(record_of(w, 0).epoch, 0);
}

/* It is refused for as long as it is there; what comes behind it is taken. */
static void a_strangers_file_in_its_place_is_refused_each_time(void **state)
{
    struct world *w = *state;
    char place[TEMPDIR_BYTES + 64];

    weir_store_close(w->store);
    w->store = open_path("place.db", 0);
    claim_first(w, 0, "a");
    snprintf(place, sizeof place, "%s", path_of("place.db"));
    sql_in("stranger.db", "CREATE TABLE t (a)");
    assert_int_equal(rename(path_of("stranger.db"), place), 0);
    unlink(path_of("place.db-wal"));
    unlink(path_of("place.db-shm"));
    for (int i = 0; i < 3; i++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(beat(w, "a", 1, EXPIRE_MS), WEIR_EINVAL);
        assert_non_null(strstr(err.text, "another program's"));
    }
    open_rc("home.db");
    assert_int_equal(rename(path_of("home.db"), place), 0);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    assert_string_equal(record_of(w, 0).version, "");
    claim_first(w, 0, "a");
}

/* A beat, a look, a claim of the own partition, marks of it: nobody stands in another's way. */
static int work_in_child(int number, void *arg)
{
    const struct world *w = arg;
    struct weir_store *s = open_path("shared.db", WAIT_MS_MAX);
    struct weir_record r = {.partition = (uint32_t)number};
    struct weir_member m = member_named("", (uint64_t)number, EXPIRE_MS);
    struct weir_view view = {0};
    int rc = 0;

    snprintf(m.id, sizeof m.id, "m%d", number);
    for (int i = 0; i < TURNS && rc == 0; i++) {
        struct weir_mark mark;

        rc = s->ops->beat(s, &w->scope, &m, &err);
        if (rc == 0) rc = s->ops->read(s, &w->scope, &view, &err);
        if (rc == 0) rc = s->ops->claim(s, &w->scope, &r, m.id, (uint64_t)i, &r, &err);
        mark = mark_of(&r, (uint64_t)i);
        mark.turn = 1;
        if (rc == 0) rc = s->ops->mark(s, &w->scope, m.id, &mark, 1, &err);
        if (rc == 0) rc = mark.rc;
    }
    if (rc != 0) fprintf(stderr, "child %d: %s\n", number, err.text);
    weir_view_free(&view);
    weir_store_close(s);
    return rc == 0 ? 0 : 1;
}

static void many_processes_share_a_file(void **state)
{
    struct world *w = *state;

    run_children(CHILDREN, work_in_child, w); /* which also make it, all at once */
    weir_store_close(w->store);
    w->store = open_path("shared.db", 0);
    read_ok(w);
    assert_int_equal(w->view.member_count, CHILDREN);
    assert_int_equal(w->view.record_count, CHILDREN);
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(w->view.records[i].epoch, TURNS);
        assert_int_equal(w->view.records[i].sequence, TURNS - 1);
    }
}

/* Marks for ever, and tells each one that is stored. */
static void mark_until_killed(const struct world *w, uint64_t instance, int told)
{
    struct weir_store *s = open_path("killed.db", WAIT_MS_MAX);
    struct weir_view view = {0};
    struct weir_record r = {0};
    int rc = s->ops->read(s, &w->scope, &view, &err);

    if (rc == 0 && view.record_count) r = view.records[0];
    if (rc == 0) rc = s->ops->claim(s, &w->scope, &r, "a", instance, &r, &err);
    for (uint64_t i = r.sequence + 1; rc == 0; i++) {
        struct weir_mark m = mark_of(&r, i);

        m.turn = i;
        rc = s->ops->mark(s, &w->scope, "a", &m, 1, &err);
        if (rc == 0) rc = m.rc;
        if (rc == 0 && write(told, &i, sizeof i) != sizeof i) rc = WEIR_EIO;
    }
    fprintf(stderr, "%s\n", err.text);
}

static void a_killed_process_loses_nothing(void **state)
{
    struct world *w = *state;
    uint64_t told = 0, stored = 0;

    for (int64_t round = 1; round <= KILLS; round++) {
        int pipes[2], status;
        pid_t pid;

        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        if (pid == 0) {
            mark_until_killed(w, (uint64_t)round, pipes[1]);
            _exit(1);
        }
        close(pipes[1]);
        for (int i = 0; i < 20; i++)
            assert_int_equal(read(pipes[0], &told, sizeof told), sizeof told);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        while (read(pipes[0], &told, sizeof told) == sizeof told) continue;
        close(pipes[0]);

        weir_store_close(w->store);
        w->store = open_path("killed.db", 0);
        stored = record_of(w, 0).sequence;
        assert_true(stored == told || stored == told + 1); /* or one that it could not tell */
        assert_int_equal(record_of(w, 0).epoch, round);
    }
}

/* Over a boot, as the file sees it, and with a wall clock that was set back, time goes on. */
static void the_clock_never_goes_back(void **state)
{
    struct world *w = *state;
    int64_t before;

    weir_store_close(w->store);
    w->store = open_path("clock.db", 0);
    assert_ok(beat(w, "a", 1, EXPIRE_MS));
    before = member_of(w, "a")->beat_ms;
    weir_store_close(w->store);
    sql_in("clock.db", "UPDATE clock SET boot = 'another'; UPDATE member SET beat_ms = beat_ms +"
                       " 86400000");
    w->store = open_path("clock.db", 0);
    read_ok(w);
    assert_true(w->view.now_ms >= before + 86400000);
    assert_int_equal(beat(w, "a", 2, EXPIRE_MS), WEIR_EEXIST);
}

static int make_dir(void **state)
{
    (void)state;
    return tempdir_make(dir);
}

static int remove_dir(void **state)
{
    (void)state;
    tempdir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {STORE_CASES,
                                       STORE_SQL_CASES,
                                       STORE_CASE(the_file_is_its_owners),
                                       STORE_CASE(a_close_leaves_the_file_alone),
                                       STORE_CASE(others_files_are_refused),
                                       STORE_CASE(strange_names_are_paths),
                                       STORE_CASE(a_bad_type_is_a_bad_record),
                                       STORE_CASE(a_held_lock_is_a_time_out),
                                       STORE_CASE(a_file_that_is_gone_is_noticed),
                                       STORE_CASE(
                                           a_strangers_file_in_its_place_is_refused_each_time),
                                       STORE_CASE(many_processes_share_a_file),
                                       STORE_CASE(a_killed_process_loses_nothing),
                                       STORE_CASE(the_clock_never_goes_back)};

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
