/* sqlite.c - a store in one SQLite file, for any number of processes of one machine.
 *
 * The file (mode 0600 when it is made here), application_id "Weir", user_version 1:
 *
 *   clock   boot, base_ms                     one row; see below
 *   scope   id, space, hub, consumer_group, change
 *   member  scope, id, instance, weight, expire_ms, beat_ms              key: scope, id
 *   record  scope, partition, owner, instance, epoch, acquired_ms, modified_ms, version,
 *           marked, mark_offset, mark_sequence, rewinds                  key: scope, partition
 *
 * Numbers that are unsigned in weir/store.h are kept as the signed ones of the same bits. A version
 * is a counter; `change` begins with the time, so that rows made anew never show an old number.
 *
 * Each call is one transaction: of reading, or one that takes the writer's lock at once (BEGIN
 * IMMEDIATE), so that nothing fails half-way for want of it. Whoever finds it taken asks again every
 * few milliseconds until call_ms is over: WEIR_ETIMEDOUT. A disk that hangs is not bounded by that.
 *
 * The journal is a write-ahead log with synchronous=NORMAL: a process that dies loses nothing, a power
 * cut may take back the last commits, in order, and never leaves half a one. That is enough, because
 * whoever could have seen what was taken back ran on this machine and is gone too: the copies start
 * again, claim again, and read again from an older checkpoint, which at-least-once allows.
 *
 * The store's clock is the machine's monotonic one plus base_ms, which is set when the file is first
 * opened after a boot: setting the clock or sleeping with a laptop lets nobody's beat grow old. So
 * stored times may lag behind the wall after a sleep; compare them with now_ms.
 *
 * A file that is moved away or replaced while it is open would be two stores; each call looks. */
#define _GNU_SOURCE
#include "processor/store/view.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define APPLICATION_ID 0x57656972 /* "Weir" */
#define FORMAT 1
#define BOOT_BYTES 37       /* a UUID and its NUL */
#define PAUSE_MIN_NS 500000 /* between two looks at a lock, growing to: */
#define PAUSE_MAX_NS 8000000

static const char *const tables =
    "CREATE TABLE clock (boot TEXT NOT NULL, base_ms INTEGER NOT NULL);"
    "INSERT INTO clock VALUES ('', 0);"
    "CREATE TABLE scope (id INTEGER PRIMARY KEY, space TEXT NOT NULL, hub TEXT NOT NULL,"
    " consumer_group TEXT NOT NULL, change INTEGER NOT NULL, UNIQUE (space, hub, consumer_group));"
    "CREATE TABLE member (scope INTEGER NOT NULL, id TEXT NOT NULL, instance INTEGER NOT NULL,"
    " weight INTEGER NOT NULL, expire_ms INTEGER NOT NULL, beat_ms INTEGER NOT NULL,"
    " PRIMARY KEY (scope, id)) WITHOUT ROWID;"
    "CREATE TABLE record (scope INTEGER NOT NULL, partition INTEGER NOT NULL, owner TEXT NOT NULL,"
    " instance INTEGER NOT NULL, epoch INTEGER NOT NULL, acquired_ms INTEGER NOT NULL,"
    " modified_ms INTEGER NOT NULL, version INTEGER NOT NULL, marked INTEGER NOT NULL,"
    " mark_offset TEXT NOT NULL, mark_sequence INTEGER NOT NULL, rewinds INTEGER NOT NULL,"
    " PRIMARY KEY (scope, partition)) WITHOUT ROWID;"
    "PRAGMA application_id = 0x57656972; PRAGMA user_version = 1;";

enum statement {
    BEGIN_READ,
    BEGIN_WRITE,
    COMMIT,
    ROLLBACK,
    SCOPE_FIND,
    SCOPE_MAKE,
    SCOPE_CHANGE,
    MEMBER_FIND,
    MEMBER_PUT,
    MEMBER_DROP,
    MEMBER_FORGET,
    MEMBER_LIST,
    RECORD_LIST,
    RECORD_FIRST,
    RECORD_CLAIM,
    RECORD_MARK,
    RECORD_SET,
    STATEMENTS
};

#define RECORD_COLUMNS                                                                             \
    "partition, owner, instance, epoch, acquired_ms, modified_ms, version, marked, mark_offset, "  \
    "mark_sequence, rewinds"

static const char *const statements[STATEMENTS] = {
    [BEGIN_READ] = "BEGIN",
    [BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [SCOPE_FIND] =
        "SELECT id, change FROM scope WHERE space = ?1 AND hub = ?2 AND consumer_group = ?3",
    [SCOPE_MAKE] = "INSERT INTO scope (space, hub, consumer_group, change) VALUES (?1, ?2, ?3, ?4)",
    [SCOPE_CHANGE] = "UPDATE scope SET change = change + 1 WHERE id = ?1",
    [MEMBER_FIND] = "SELECT instance = ?3, expire_ms, ?4 - beat_ms FROM member"
                    " WHERE scope = ?1 AND id = ?2",
    [MEMBER_PUT] = "INSERT OR REPLACE INTO member VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [MEMBER_DROP] = "DELETE FROM member WHERE scope = ?1 AND id = ?2 AND instance = ?3",
    [MEMBER_FORGET] = "DELETE FROM member WHERE scope = ?1 AND ?2 - beat_ms >= expire_ms * ?3",
    [MEMBER_LIST] = "SELECT id, instance, weight, expire_ms, beat_ms FROM member WHERE scope = ?1"
                    " ORDER BY id",
    [RECORD_LIST] = "SELECT " RECORD_COLUMNS " FROM record WHERE scope = ?1 ORDER BY partition",
    [RECORD_FIRST] = "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1, 0, '', 0, 0)"
                     " ON CONFLICT DO NOTHING RETURNING " RECORD_COLUMNS,
    [RECORD_CLAIM] = "UPDATE record SET owner = ?3, instance = ?4, epoch = epoch + ?5,"
                     " acquired_ms = ?6, modified_ms = ?6, version = version + 1"
                     " WHERE scope = ?1 AND partition = ?2 AND version = ?7"
                     " RETURNING " RECORD_COLUMNS,
    [RECORD_MARK] = "UPDATE record SET marked = 1, mark_offset = ?6, mark_sequence = ?7,"
                    " modified_ms = ?8 WHERE scope = ?1 AND partition = ?2 AND owner = ?3"
                    " AND epoch = ?4 AND rewinds = ?5 AND owner <> ''",
    [RECORD_SET] = "INSERT INTO record VALUES (?1, ?2, '', 0, 0, ?3, ?3, 1, ?4, ?5, ?6, 1)"
                   " ON CONFLICT DO UPDATE SET modified_ms = ?3, marked = ?4, mark_offset = ?5,"
                   " mark_sequence = ?6, rewinds = rewinds + 1",
};

struct sqlite {
    struct weir_store store;
    int64_t call_ms, deadline_ns; /* of the call under way */
    sqlite3 *db;                  /* NULL: it was lost, and the next call opens it again */
    sqlite3_stmt *prepared[STATEMENTS];
    dev_t device;
    ino_t file;
    int64_t base_ms;
    struct weir_view fresh; /* what read gathers */
    char *path;
};

/* ---- failing ---- */

static const struct code_row {
    int sqlite, weir;
} code_rows[] = {
    {SQLITE_BUSY, WEIR_ETIMEDOUT},   {SQLITE_LOCKED, WEIR_ETIMEDOUT},
    {SQLITE_FULL, WEIR_ENOSPACE},    {SQLITE_NOMEM, WEIR_ENOMEM},
    {SQLITE_CORRUPT, WEIR_ECORRUPT}, {SQLITE_NOTADB, WEIR_EINVAL},
    {SQLITE_READONLY, WEIR_EDENIED}, {SQLITE_PERM, WEIR_EDENIED},
    {SQLITE_AUTH, WEIR_EDENIED},     {SQLITE_CANTOPEN, WEIR_EUNREACHABLE},
};

static int fail_sqlite(struct sqlite *s, struct weir_error *err)
{
    int code = s->db ? sqlite3_errcode(s->db) & 0xff : SQLITE_NOMEM;
    int rc = WEIR_EIO;

    for (size_t i = 0; i < sizeof code_rows / sizeof code_rows[0]; i++)
        if (code_rows[i].sqlite == code) rc = code_rows[i].weir;
    if (rc == WEIR_ETIMEDOUT)
        return weir__fail(err, rc, "other processes held the file for more than %" PRId64 " ms",
                          s->call_ms);
    return weir__fail(err, rc, "%s", s->db ? sqlite3_errmsg(s->db) : "no memory for a database");
}

static int wrap(const struct sqlite *s, int rc, const char *what, struct weir_error *err)
{
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s in '%s'", what, s->path);
}

/* ---- statements ---- */

/* Asked by SQLite while another process holds a lock: 1 to try again. */
static int wait_for_lock(void *self, int tries)
{
    const struct sqlite *s = self;
    int64_t left = s->deadline_ns - weir__mono_ns();
    int64_t pause = PAUSE_MIN_NS * ((int64_t)tries + 1);
    struct timespec t = {0};

    if (left <= 0) return 0;
    if (pause > PAUSE_MAX_NS) pause = PAUSE_MAX_NS;
    t.tv_nsec = (long)(pause < left ? pause : left);
    nanosleep(&t, NULL);
    return 1;
}

/* A statement with its values: t text, i integer. Texts are borrowed until it is stepped. */
static sqlite3_stmt *ask(struct sqlite *s, enum statement which, const char *types, ...)
{
    sqlite3_stmt *q = s->prepared[which];
    va_list values;
    int rc = SQLITE_OK;

    sqlite3_reset(q);
    va_start(values, types);
    for (int i = 1; types[i - 1] && rc == SQLITE_OK; i++)
        rc = types[i - 1] == 't'
                 ? sqlite3_bind_text(q, i, va_arg(values, const char *), -1, SQLITE_STATIC)
                 : sqlite3_bind_int64(q, i, va_arg(values, int64_t));
    va_end(values);
    assert(rc == SQLITE_OK); /* every statement is written beside its values, and none is copied */
    return q;
}

/* 1: there is a row. 0: that was all. Else it failed. */
static int step(struct sqlite *s, sqlite3_stmt *q, struct weir_error *err)
{
    int rc = sqlite3_step(q);

    if (rc == SQLITE_ROW) return 1;
    if (rc == SQLITE_DONE) return 0;
    return fail_sqlite(s, err);
}

/* A statement without rows. */
static int run(struct sqlite *s, sqlite3_stmt *q, struct weir_error *err)
{
    int rc = step(s, q, err);

    sqlite3_reset(q);
    assert(rc <= 0);
    return rc;
}

static int64_t integer_of(sqlite3_stmt *q, int column, bool *bad)
{
    if (sqlite3_column_type(q, column) != SQLITE_INTEGER) *bad = true;
    return sqlite3_column_int64(q, column);
}

static struct weir__bytes text_of(sqlite3_stmt *q, int column, bool *bad)
{
    if (sqlite3_column_type(q, column) != SQLITE_TEXT) *bad = true;
    return weir__bytes_of(sqlite3_column_text(q, column), (size_t)sqlite3_column_bytes(q, column));
}

/* The row of RECORD_COLUMNS that q stands at. */
static bool record_of(sqlite3_stmt *q, struct weir_record *out)
{
    struct weir__store_row row = {0};
    bool unnamed = false;

    row.partition = integer_of(q, 0, &unnamed);
    row.owner = text_of(q, 1, &row.bad);
    row.instance = integer_of(q, 2, &row.bad);
    row.epoch = integer_of(q, 3, &row.bad);
    row.acquired_ms = integer_of(q, 4, &row.bad);
    row.modified_ms = integer_of(q, 5, &row.bad);
    row.version = integer_of(q, 6, &row.bad);
    row.marked = integer_of(q, 7, &row.bad);
    row.offset = text_of(q, 8, &row.bad);
    row.sequence = integer_of(q, 9, &row.bad);
    row.rewinds = integer_of(q, 10, &row.bad);
    return !unnamed && weir__store_record(&row, out);
}

static bool member_of(sqlite3_stmt *q, struct weir_member *out)
{
    bool bad = false;
    struct weir__bytes id = text_of(q, 0, &bad);
    int64_t instance = integer_of(q, 1, &bad), weight = integer_of(q, 2, &bad);
    int64_t expire_ms = integer_of(q, 3, &bad), beat_ms = integer_of(q, 4, &bad);

    return !bad && weir__store_member(id, instance, weight, expire_ms, beat_ms, out);
}

/* ---- the file ---- */

static void close_file(struct sqlite *s)
{
    for (size_t i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(s->prepared[i]);
        s->prepared[i] = NULL;
    }
    sqlite3_close(s->db);
    s->db = NULL;
}

/* Makes an empty file that only its owner may read. It gets its name when no descriptor of ours is
 * left on it: closing one would drop the locks of another handle in this process. */
static int make_file(const char *path, struct weir_error *err)
{
    char *made = NULL;
    int fd, rc = 0;

    if (access(path, F_OK) == 0) return 0;
    if (asprintf(&made, "%s.XXXXXX", path) < 0)
        return weir__fail(err, WEIR_ENOMEM, "no memory for a path");
    fd = mkostemp(made, O_CLOEXEC);
    if (fd < 0) {
        rc = weir__fail_errno(err, errno, "making it");
    } else {
        close(fd);
        if (link(made, path) != 0 && errno != EEXIST)
            rc = weir__fail_errno(err, errno, "making it");
        unlink(made);
    }
    free(made);
    return rc;
}

/* The first value of a query that has one. */
static int ask_number(struct sqlite *s, const char *sql, int64_t *out, struct weir_error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK ? step(s, q, err)
                                                                       : fail_sqlite(s, err);

    if (rc == 1) *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return rc < 0 ? rc : 0;
}

static int execute(struct sqlite *s, const char *sql, struct weir_error *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail_sqlite(s, err);
}

/* Makes the tables of an empty file, and refuses one that is somebody else's. */
static int check_format(struct sqlite *s, struct weir_error *err)
{
    int64_t id = 0, version = 0, things = 0;
    int rc = ask_number(s, "PRAGMA application_id", &id, err);

    if (rc == 0) rc = ask_number(s, "PRAGMA user_version", &version, err);
    if (rc == 0) rc = ask_number(s, "SELECT count(*) FROM sqlite_schema", &things, err);
    if (rc != 0) return rc;
    if (id == 0 && version == 0 && things == 0) return execute(s, tables, err);
    if (id != APPLICATION_ID)
        return weir__fail(err, WEIR_EINVAL, "it is another program's database, not a store");
    if (version != FORMAT)
        return weir__fail(err, WEIR_EVERSION,
                          "it is a store of format %" PRId64 ", this program knows format %d",
                          version, FORMAT);
    return 0;
}

/* Which boot of the machine this is; "" when it does not say. */
static void read_boot(char out[BOOT_BYTES])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, BOOT_BYTES - 1);

    out[n > 0 ? n : 0] = '\0';
    if (fd >= 0) close(fd);
}

/* Inside the transaction of opening: all handles of one boot agree on base_ms, and the store's time
 * does not go back over a boot. */
static int set_clock(struct sqlite *s, struct weir_error *err)
{
    struct weir__clock clock = weir__clock_system();
    int64_t mono = clock.mono_ms(clock.self), last = 0, here = 0;
    char boot[BOOT_BYTES], sql[256];
    int rc;

    read_boot(boot);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM clock WHERE boot = '%s' AND boot <> ''"
             " AND abs(base_ms) <= 1 << 48",
             boot);
    rc = ask_number(s, sql, &here, err);
    if (rc == 0 && here) return ask_number(s, "SELECT base_ms FROM clock", &s->base_ms, err);
    if (rc == 0)
        rc = ask_number(s,
                        "SELECT min(1 << 48, max(ifnull((SELECT max(beat_ms) FROM member), 0),"
                        " ifnull((SELECT max(modified_ms) FROM record), 0)))",
                        &last, err);
    if (rc != 0) return rc;
    s->base_ms = clock.wall_ms(clock.self) - mono;
    if (s->base_ms + mono < last) s->base_ms = last - mono;
    snprintf(sql, sizeof sql, "UPDATE clock SET boot = '%s', base_ms = %" PRId64, boot, s->base_ms);
    return execute(s, sql, err);
}

static int set_up(struct sqlite *s, struct weir_error *err)
{
    int64_t wal = 0;
    int rc = execute(s, "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE", err);

    if (rc != 0) return rc;
    rc = check_format(s, err);
    if (rc == 0) rc = set_clock(s, err);
    if (rc == 0) rc = execute(s, "COMMIT", err);
    if (rc != 0) return rc; /* closing rolls back */
    rc = ask_number(s, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &wal, err);
    return rc == 0 && !wal ? execute(s, "PRAGMA journal_mode = WAL", err) : rc;
}

static int prepare_all(struct sqlite *s, struct weir_error *err)
{
    for (size_t i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(s->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &s->prepared[i],
                               NULL) != SQLITE_OK)
            return fail_sqlite(s, err);
    return 0;
}

static int try_open(struct sqlite *s, struct weir_error *err)
{
    struct stat st;
    int rc = 0;

    if (stat(s->path, &st) != 0) return weir__fail_errno(err, errno, "looking for it");
    if (!S_ISREG(st.st_mode)) return weir__fail(err, WEIR_EINVAL, "it is not a file");
    s->device = st.st_dev;
    s->file = st.st_ino;
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        rc = fail_sqlite(s, err);
    if (rc == 0) {
        sqlite3_busy_handler(s->db, wait_for_lock, s);
        rc = set_up(s, err);
    }
    if (rc == 0) rc = prepare_all(s, err);
    if (rc != 0) close_file(s);
    return rc;
}

/* Turning the journal into a write-ahead log is refused at once while others look at the file, so
 * opening is tried again until the deadline. */
static int open_file(struct sqlite *s, struct weir_error *err)
{
    int rc = try_open(s, err);

    for (int tries = 0; rc == WEIR_ETIMEDOUT && wait_for_lock(s, tries); tries++)
        rc = try_open(s, err);
    return rc;
}

/* ---- calls ---- */

static int64_t now_ms(const struct sqlite *s)
{
    struct weir__clock clock = weir__clock_system();

    return s->base_ms + clock.mono_ms(clock.self);
}

/* Whether the open file is still the one of that name. */
static int check_place(struct sqlite *s, struct weir_error *err)
{
    struct stat st;

    if (stat(s->path, &st) != 0)
        return weir__fail(err, WEIR_EUNREACHABLE, "the file cannot be found: %s", strerror(errno));
    if (!s->db || st.st_dev != s->device || st.st_ino != s->file) {
        close_file(s);
        return open_file(s, err);
    }
    return 0;
}

static int begin(struct sqlite *s, enum statement how, struct weir_error *err)
{
    int rc;

    s->deadline_ns = weir__deadline_ns(s->call_ms);
    rc = check_place(s, err);
    return rc == 0 ? run(s, ask(s, how, ""), err) : rc;
}

/* Commits when rc is 0. A transaction that cannot be ended leaves with the connection. */
static int end(struct sqlite *s, int rc, struct weir_error *err)
{
    for (size_t i = 0; i < STATEMENTS; i++) {
        sqlite3_reset(s->prepared[i]);
        sqlite3_clear_bindings(s->prepared[i]);
    }
    if (rc == 0) rc = run(s, ask(s, COMMIT, ""), err);
    if (rc != 0 && !sqlite3_get_autocommit(s->db) && run(s, ask(s, ROLLBACK, ""), NULL) != 0)
        close_file(s);
    return rc;
}

/* *id is 0 when there is no such scope. */
static int find_scope(struct sqlite *s, const struct weir_scope *scope, int64_t *id,
                      int64_t *change, struct weir_error *err)
{
    sqlite3_stmt *q = ask(s, SCOPE_FIND, "ttt", scope->space, scope->hub, scope->group);
    int rc = step(s, q, err);

    *id = rc == 1 ? sqlite3_column_int64(q, 0) : 0;
    *change = rc == 1 ? sqlite3_column_int64(q, 1) : 0;
    sqlite3_reset(q);
    return rc < 0 ? rc : 0;
}

static int take_scope(struct sqlite *s, const struct weir_scope *scope, int64_t *id,
                      struct weir_error *err)
{
    int64_t change;
    int rc = find_scope(s, scope, id, &change, err);

    if (rc != 0 || *id != 0) return rc;
    rc = run(s, ask(s, SCOPE_MAKE, "ttti", scope->space, scope->hub, scope->group, now_ms(s)), err);
    *id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

/* ---- the port ---- */

static int beat(struct sqlite *s, const struct weir_scope *scope, const struct weir_member *m,
                struct weir_error *err)
{
    int64_t id, now = now_ms(s);
    sqlite3_stmt *q;
    int rc = take_scope(s, scope, &id, err);

    if (rc == 0)
        rc = run(s, ask(s, MEMBER_FORGET, "iii", id, now, (int64_t)WEIR__STORE_FORGET), err);
    if (rc != 0) return rc;
    q = ask(s, MEMBER_FIND, "itii", id, m->id, (int64_t)m->instance, now);
    rc = step(s, q, err);
    if (rc < 0) return rc;
    if (rc == 1 && !sqlite3_column_int(q, 0) &&
        sqlite3_column_int64(q, 2) < sqlite3_column_int64(q, 1))
        return weir__store_fail_alive(err, m->id, sqlite3_column_int64(q, 2),
                                      sqlite3_column_int64(q, 1));
    sqlite3_reset(q);
    q = ask(s, MEMBER_PUT, "itiiii", id, m->id, (int64_t)m->instance, (int64_t)m->weight,
            m->expire_ms, now);
    return run(s, q, err);
}

static int sqlite_beat(struct weir_store *store, const struct weir_scope *scope,
                       const struct weir_member *m, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = weir__store_check_member(scope, m, err);

    if (rc == 0) {
        rc = begin(s, BEGIN_WRITE, err);
        if (rc == 0) rc = end(s, beat(s, scope, m, err), err);
    }
    return wrap(s, rc, "beating", err);
}

static int sqlite_leave(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_member *m, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int64_t id, change;
    int rc = weir__store_check_owner(scope, m->id, err);

    if (rc == 0) rc = begin(s, BEGIN_WRITE, err);
    if (rc == 0) {
        rc = find_scope(s, scope, &id, &change, err);
        if (rc == 0) rc = run(s, ask(s, MEMBER_DROP, "iti", id, m->id, (int64_t)m->instance), err);
        rc = end(s, rc, err);
    }
    return wrap(s, rc, "leaving", err);
}

static int read_members(struct sqlite *s, int64_t id, struct weir_error *err)
{
    sqlite3_stmt *q = ask(s, MEMBER_LIST, "i", id);
    struct weir_member m;
    int rc, failed = 0;

    while (failed == 0 && (rc = step(s, q, err)) != 0)
        failed = rc < 0 ? rc : member_of(q, &m) ? weir__view_add_member(&s->fresh, &m, err) : 0;
    return failed;
}

static int read_records(struct sqlite *s, int64_t id, struct weir_error *err)
{
    sqlite3_stmt *q = ask(s, RECORD_LIST, "i", id);
    struct weir_record r;
    int rc, failed = 0;

    while (failed == 0 && (rc = step(s, q, err)) != 0)
        failed = rc < 0 ? rc : record_of(q, &r) ? weir__view_add_record(&s->fresh, &r, err) : 0;
    return failed;
}

static int sqlite_read(struct weir_store *store, const struct weir_scope *scope,
                       struct weir_view *view, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int64_t id, change;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = begin(s, BEGIN_READ, err);
    if (rc == 0) {
        s->fresh.member_count = s->fresh.record_count = 0;
        rc = find_scope(s, scope, &id, &change, err);
        s->fresh.now_ms = now_ms(s);
        s->fresh.change = (uint64_t)change;
        if (rc == 0) rc = read_members(s, id, err);
        if (rc == 0 && (change == 0 || s->fresh.change != view->change))
            rc = read_records(s, id, err);
        rc = end(s, rc, err);
        if (rc == 0) weir__view_take(view, &s->fresh);
    }
    return wrap(s, rc, "reading", err);
}

static int claim(struct sqlite *s, const struct weir_scope *scope,
                 const struct weir_record *expected, const char *owner, uint64_t instance,
                 struct weir_record *out, struct weir_error *err)
{
    int64_t id, version = weir__store_version(expected->version);
    sqlite3_stmt *q;
    int rc = take_scope(s, scope, &id, err);

    if (rc != 0) return rc;
    q = ask(s, version == 0 ? RECORD_FIRST : RECORD_CLAIM, "iitiii", id,
            (int64_t)expected->partition, owner, (int64_t)instance, (int64_t)(owner[0] != '\0'),
            now_ms(s));
    if (version != 0) sqlite3_bind_int64(q, 7, version);
    rc = step(s, q, err);
    if (rc < 0) return rc;
    if (rc == 0) return weir__store_fail_moved(err, expected->partition);
    if (!record_of(q, out) || out->rc != 0)
        return weir__fail(err, WEIR_ECORRUPT, "the record of partition %" PRIu32,
                          expected->partition);
    sqlite3_reset(q);
    return run(s, ask(s, SCOPE_CHANGE, "i", id), err);
}

static int sqlite_claim(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_record *expected, const char *owner, uint64_t instance,
                        struct weir_record *out, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    struct weir_record got;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = begin(s, BEGIN_WRITE, err);
    if (rc == 0) rc = end(s, claim(s, scope, expected, owner, instance, &got, err), err);
    if (rc == 0) *out = got;
    return wrap(s, rc, "claiming", err);
}

static int mark(struct sqlite *s, const struct weir_scope *scope, const char *owner,
                struct weir_mark *marks, size_t count, struct weir_error *err)
{
    int64_t id, change, now = now_ms(s);
    int rc = find_scope(s, scope, &id, &change, err);

    for (size_t i = 0; i < count && rc == 0; i++) {
        struct weir_mark *m = &marks[i];

        rc = run(s,
                 ask(s, RECORD_MARK, "iitiitii", id, (int64_t)m->partition, owner, m->epoch,
                     (int64_t)m->rewinds, m->offset, (int64_t)m->sequence, now),
                 err);
        m->rc = sqlite3_changes(s->db) == 1 ? 0 : WEIR_EFENCED;
    }
    return rc;
}

static int sqlite_mark(struct weir_store *store, const struct weir_scope *scope, const char *owner,
                       struct weir_mark *marks, size_t count, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = begin(s, BEGIN_WRITE, err);
    if (rc == 0) rc = end(s, mark(s, scope, owner, marks, count, err), err);
    return wrap(s, rc, "writing checkpoints", err);
}

static int set(struct sqlite *s, const struct weir_scope *scope, uint32_t partition,
               const struct weir_mark *m, struct weir_error *err)
{
    int64_t id;
    int rc = take_scope(s, scope, &id, err);

    if (rc == 0)
        rc = run(s,
                 ask(s, RECORD_SET, "iiiiti", id, (int64_t)partition, now_ms(s),
                     (int64_t)(m != NULL), m ? m->offset : "",
                     m ? (int64_t)m->sequence : INT64_C(0)),
                 err);
    return rc == 0 ? run(s, ask(s, SCOPE_CHANGE, "i", id), err) : rc;
}

static int sqlite_set(struct weir_store *store, const struct weir_scope *scope, uint32_t partition,
                      const struct weir_mark *m, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = begin(s, BEGIN_WRITE, err);
    if (rc == 0) rc = end(s, set(s, scope, partition, m, err), err);
    return wrap(s, rc, "setting a checkpoint", err);
}

static void sqlite_close(struct weir_store *store)
{
    struct sqlite *s = (struct sqlite *)store;

    close_file(s);
    weir_view_free(&s->fresh);
    free(s->path);
    free(s);
}

static const struct weir_store_ops sqlite_ops = {
    .version = WEIR_STORE_VERSION,
    .beat = sqlite_beat,
    .leave = sqlite_leave,
    .read = sqlite_read,
    .claim = sqlite_claim,
    .mark = sqlite_mark,
    .set = sqlite_set,
    .close = sqlite_close,
};

int weir_store_sqlite(struct weir_store **out, const char *path,
                      const struct weir_store_options *options, struct weir_error *err)
{
    struct sqlite *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a store");
    s->store.ops = &sqlite_ops;
    rc = weir__store_options(options, &s->call_ms, err);
    s->deadline_ns = weir__deadline_ns(s->call_ms);
    if (rc == 0 && !(path && path[0])) rc = weir__fail(err, WEIR_EINVAL, "it has no path");
    if (rc == 0) rc = make_file(path, err);
    if (rc == 0) {
        s->path = realpath(path, NULL); /* also so that SQLite sees nothing special in it */
        rc = s->path ? open_file(s, err) : weir__fail_errno(err, errno, "looking for it");
    }
    if (rc != 0) {
        sqlite_close(&s->store);
        return weir__wrap(err, rc, "opening the store '%s'", path ? path : "");
    }
    *out = &s->store;
    return 0;
}
