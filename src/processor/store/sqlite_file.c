/* sqlite_file.c - see sqlite_file.h.
 *
 * The file (mode 0600 when it is made here), application_id "Weir", user_version 2:
 *
 *   clock   boot, base_ms                     one row; see below
 *   scope   id, space, hub, consumer_group, change
 *   member  scope, id, instance, weight, expire_ms, beat_ms              key: scope, id
 *   record  scope, partition, owner, instance, epoch, acquired_ms, modified_ms, version,
 *           marked, mark_offset, mark_sequence, rewinds, turn            key: scope, partition
 *
 * Numbers that are unsigned in weir/store.h are kept as the signed ones of the same bits. `version`
 * and `change` are the store's time in microseconds when they were last moved, and at least one more
 * than before. No two transactions end in one microsecond, so a row that was removed and is made
 * again never shows an old number. `turn` is that of the last mark of the present owner and epoch. The expire_ms of a member
 * that has left is negative, see view.h. A file of another format is refused.
 *
 * The journal is a write-ahead log with synchronous=NORMAL: a process that dies loses nothing, a
 * power cut may take back the last commits, in order, and never leaves half a one. That is enough,
 * because whoever could have seen what was taken back ran on this machine and is gone too: the
 * copies start again, claim again, and read again from an older checkpoint, which at-least-once
 * allows.
 *
 * The store's clock is the machine's monotonic one plus base_ms, which is set when the file is
 * first opened after a boot: setting the clock or sleeping with a laptop lets nobody's beat grow
 * old. It does not go back: whoever opens the file first after a boot begins no earlier than the
 * latest time in it. So stored times may lag behind the wall after a sleep; compare them with
 * now_ms. */
#define _GNU_SOURCE
#include "processor/store/sqlite_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "processor/store/view.h"

#define APPLICATION_ID 0x57656972 /* "Weir" */
#define APPLICATION_ID_TEXT WEIR__STORE_SQL(APPLICATION_ID)
#define FORMAT 2
#define FORMAT_TEXT WEIR__STORE_SQL(FORMAT)
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
    " turn INTEGER NOT NULL, PRIMARY KEY (scope, partition)) WITHOUT ROWID;"
    "PRAGMA application_id = " APPLICATION_ID_TEXT "; PRAGMA user_version = " FORMAT_TEXT;

/* ---- failing ---- */

/* What SQLite says by its primary code; anything else is WEIR_EIO. */
static const struct code_row {
    int sqlite, weir;
} code_rows[] = {
    {SQLITE_BUSY, WEIR_ETIMEDOUT},   {SQLITE_LOCKED, WEIR_ETIMEDOUT},
    {SQLITE_FULL, WEIR_ENOSPACE},    {SQLITE_NOMEM, WEIR_ENOMEM},
    {SQLITE_CORRUPT, WEIR_ECORRUPT}, {SQLITE_NOTADB, WEIR_EINVAL},
    {SQLITE_READONLY, WEIR_EDENIED}, {SQLITE_PERM, WEIR_EDENIED},
    {SQLITE_AUTH, WEIR_EDENIED},     {SQLITE_CANTOPEN, WEIR_EUNREACHABLE},
};

static int fail_sqlite(struct weir__sqlite_file *f, struct weir_error *err)
{
    int code = f->db ? sqlite3_errcode(f->db) & 0xff : SQLITE_NOMEM;
    int rc = WEIR_EIO;

    for (size_t i = 0; i < sizeof code_rows / sizeof code_rows[0]; i++)
        if (code_rows[i].sqlite == code) rc = code_rows[i].weir;
    if (rc == WEIR_ETIMEDOUT)
        return weir__fail(err, rc, "other processes held the file for more than %" PRId64 " ms",
                          f->call_ms);
    return weir__fail(err, rc, "%s", f->db ? sqlite3_errmsg(f->db) : "no memory for a database");
}

/* ---- statements ---- */

/* Asked by SQLite while another process holds a lock: 1 to try again. Its own waiting would not
 * know our deadline. */
static int wait_for_lock(void *self, int tries)
{
    const struct weir__sqlite_file *f = self;
    int64_t left = f->deadline_ns - weir__mono_ns();
    int64_t pause = PAUSE_MIN_NS * ((int64_t)tries + 1);
    struct timespec t = {0};

    if (left <= 0) return 0;
    if (pause > PAUSE_MAX_NS) pause = PAUSE_MAX_NS;
    t.tv_nsec = (long)(pause < left ? pause : left);
    nanosleep(&t, NULL);
    return 1;
}

sqlite3_stmt *weir__sqlite_ask(struct weir__sqlite_file *f, size_t which, const char *types, ...)
{
    sqlite3_stmt *q = f->prepared[which];
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

int weir__sqlite_step(struct weir__sqlite_file *f, sqlite3_stmt *q, struct weir_error *err)
{
    int rc = sqlite3_step(q);

    if (rc == SQLITE_ROW) return 1;
    if (rc == SQLITE_DONE) return 0;
    return fail_sqlite(f, err);
}

int weir__sqlite_run(struct weir__sqlite_file *f, sqlite3_stmt *q, struct weir_error *err)
{
    int rc = weir__sqlite_step(f, q, err);

    sqlite3_reset(q);
    assert(rc <= 0);
    return rc;
}

/* ---- the file ---- */

/* The connection, not the struct: the next call opens it again. */
static void close_file(struct weir__sqlite_file *f)
{
    for (size_t i = 0; i < f->statement_count; i++) {
        sqlite3_finalize(f->prepared[i]);
        f->prepared[i] = NULL;
    }
    sqlite3_close(f->db);
    f->db = NULL;
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
static int ask_number(struct weir__sqlite_file *f, const char *sql, int64_t *out,
                      struct weir_error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(f->db, sql, -1, &q, NULL) == SQLITE_OK
                 ? weir__sqlite_step(f, q, err)
                 : fail_sqlite(f, err);

    if (rc == 1) *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return rc < 0 ? rc : 0;
}

static int execute(struct weir__sqlite_file *f, const char *sql, struct weir_error *err)
{
    return sqlite3_exec(f->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail_sqlite(f, err);
}

/* Makes the tables of an empty file, and refuses one that is somebody else's or of another format:
 * who runs with an older program beside us would not keep what the newer one promises. */
static int check_format(struct weir__sqlite_file *f, struct weir_error *err)
{
    int64_t id = 0, version = 0, things = 0;
    int rc = ask_number(f, "PRAGMA application_id", &id, err);

    if (rc == 0) rc = ask_number(f, "PRAGMA user_version", &version, err);
    if (rc == 0) rc = ask_number(f, "SELECT count(*) FROM sqlite_schema", &things, err);
    if (rc != 0) return rc;
    if (id == 0 && version == 0 && things == 0) return execute(f, tables, err);
    if (id != APPLICATION_ID)
        return weir__fail(err, WEIR_EINVAL, "it is another program's database, not a store");
    if (version != FORMAT)
        return weir__fail(err, WEIR_EVERSION,
                          "it is a store of format %" PRId64 ", this program knows format %d:"
                          " use another file, or the program that made this one",
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
static int set_clock(struct weir__sqlite_file *f, struct weir_error *err)
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
    rc = ask_number(f, sql, &here, err);
    if (rc == 0 && here) return ask_number(f, "SELECT base_ms FROM clock", &f->base_ms, err);
    if (rc == 0)
        rc = ask_number(f,
                        "SELECT min(1 << 48, max(ifnull((SELECT max(beat_ms) FROM member), 0),"
                        " ifnull((SELECT max(modified_ms) FROM record), 0)))",
                        &last, err);
    if (rc != 0) return rc;
    f->base_ms = clock.wall_ms(clock.self) - mono;
    if (f->base_ms + mono < last) f->base_ms = last - mono;
    snprintf(sql, sizeof sql, "UPDATE clock SET boot = '%s', base_ms = %" PRId64, boot, f->base_ms);
    return execute(f, sql, err);
}

/* The tables before the journal: a file that is not ours is left as it is. */
static int set_up(struct weir__sqlite_file *f, struct weir_error *err)
{
    int64_t wal = 0;
    int rc = execute(f, "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE", err);

    if (rc != 0) return rc;
    rc = check_format(f, err);
    if (rc == 0) rc = set_clock(f, err);
    if (rc == 0) rc = execute(f, "COMMIT", err);
    if (rc != 0) return rc; /* closing rolls back */
    rc = ask_number(f, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &wal, err);
    return rc == 0 && !wal ? execute(f, "PRAGMA journal_mode = WAL", err) : rc;
}

static int prepare_all(struct weir__sqlite_file *f, struct weir_error *err)
{
    for (size_t i = 0; i < f->statement_count; i++)
        if (sqlite3_prepare_v3(f->db, f->statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &f->prepared[i], NULL) != SQLITE_OK)
            return fail_sqlite(f, err);
    return 0;
}

static int try_open(struct weir__sqlite_file *f, struct weir_error *err)
{
    struct stat st;
    int rc = 0;

    if (stat(f->path, &st) != 0) return weir__fail_errno(err, errno, "looking for it");
    if (!S_ISREG(st.st_mode)) return weir__fail(err, WEIR_EINVAL, "it is not a file");
    f->device = st.st_dev;
    f->inode = st.st_ino;
    if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        rc = fail_sqlite(f, err);
    if (rc == 0) {
        sqlite3_busy_handler(f->db, wait_for_lock, f);
        rc = set_up(f, err);
    }
    if (rc == 0) rc = prepare_all(f, err);
    if (rc != 0) close_file(f);
    return rc;
}

/* Turning the journal into a write-ahead log is refused at once while others look at the file, so
 * opening is tried again until the deadline. */
static int open_file(struct weir__sqlite_file *f, struct weir_error *err)
{
    int rc = try_open(f, err);

    for (int tries = 0; rc == WEIR_ETIMEDOUT && wait_for_lock(f, tries); tries++)
        rc = try_open(f, err);
    return rc;
}

/* ---- calls ---- */

int64_t weir__sqlite_now_ms(const struct weir__sqlite_file *f)
{
    struct weir__clock clock = weir__clock_system();

    return f->base_ms + clock.mono_ms(clock.self);
}

int64_t weir__sqlite_now_us(const struct weir__sqlite_file *f)
{
    return f->base_ms * 1000 + weir__mono_ns() / 1000;
}

/* Whether the open file is still the one of that name: one that was moved away or replaced while it
 * is open would be two stores. */
static int check_place(struct weir__sqlite_file *f, struct weir_error *err)
{
    struct stat st;

    if (stat(f->path, &st) != 0)
        return weir__fail(err, WEIR_EUNREACHABLE, "the file cannot be found: %s", strerror(errno));
    if (!f->db || st.st_dev != f->device || st.st_ino != f->inode) {
        close_file(f);
        return open_file(f, err);
    }
    return 0;
}

int weir__sqlite_begin(struct weir__sqlite_file *f, bool write, struct weir_error *err)
{
    int rc;

    f->deadline_ns = weir__deadline_ns(f->call_ms);
    rc = check_place(f, err);
    return rc == 0 ? execute(f, write ? "BEGIN IMMEDIATE" : "BEGIN", err) : rc;
}

int weir__sqlite_end(struct weir__sqlite_file *f, int rc, struct weir_error *err)
{
    for (size_t i = 0; i < f->statement_count; i++) {
        sqlite3_reset(f->prepared[i]);
        sqlite3_clear_bindings(f->prepared[i]);
    }
    if (rc == 0) rc = execute(f, "COMMIT", err);
    if (rc != 0 && !sqlite3_get_autocommit(f->db) && execute(f, "ROLLBACK", NULL) != 0)
        close_file(f);
    return rc;
}

/* ---- open and close ---- */

int weir__sqlite_open(struct weir__sqlite_file *f, const char *path, int64_t call_ms,
                      const char *const *statements, size_t count, struct weir_error *err)
{
    int rc;

    assert(count <= WEIR__SQLITE_STATEMENTS_MAX);
    *f = (struct weir__sqlite_file){.call_ms = call_ms,
                                    .statements = statements,
                                    .statement_count = count};
    f->deadline_ns = weir__deadline_ns(call_ms);
    if (!(path && path[0])) return weir__fail(err, WEIR_EINVAL, "it has no path");
    rc = make_file(path, err);
    if (rc != 0) return rc;
    f->path = realpath(path, NULL); /* also so that SQLite sees nothing special in it */
    rc = f->path ? open_file(f, err) : weir__fail_errno(err, errno, "looking for it");
    if (rc != 0) weir__sqlite_close(f);
    return rc;
}

void weir__sqlite_close(struct weir__sqlite_file *f)
{
    close_file(f);
    free(f->path);
    f->path = NULL;
}
