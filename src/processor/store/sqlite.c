/* sqlite.c - a store in one SQLite file, for any number of processes of one machine: the seven
 * functions of weir/store.h. The file, its tables and its clock are sqlite_file.c's.
 *
 * Each call is one transaction: of reading, or one that takes the writer's lock at once. Whoever
 * finds it taken asks again every few milliseconds until call_ms is over: WEIR_ETIMEDOUT. A disk
 * that hangs is not bounded by that. While a call writes nobody else does, so what it has read is
 * still so when it writes; and what fails is rolled back as a whole. */
#include "processor/store/sqlite_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "processor/store/view.h"

enum statement {
    SCOPE_FIND,
    SCOPE_MAKE,
    SCOPE_CHANGE,
    MEMBER_FIND,
    MEMBER_PUT,
    MEMBER_LEFT,
    MEMBER_FORGET,
    MEMBER_LIST,
    RECORD_LIST,
    RECORD_FIND,
    RECORD_FIRST,
    RECORD_CLAIM,
    RECORD_DROP,
    RECORD_MARK,
    RECORD_SET,
    STATEMENTS
};

#define RECORD_COLUMNS                                                                             \
    "partition, owner, instance, epoch, acquired_ms, modified_ms, version, marked, mark_offset, "  \
    "mark_sequence, rewinds, turn"
/* The record is theirs already: a claim renews it. */
#define HAS_IT "owner = ?3 AND instance = ?4"

static const char *const statements[STATEMENTS] = {
    [SCOPE_FIND] =
        "SELECT id, change FROM scope WHERE space = ?1 AND hub = ?2 AND consumer_group = ?3",
    [SCOPE_MAKE] = "INSERT INTO scope (space, hub, consumer_group, change) VALUES (?1, ?2, ?3, ?4)",
    [SCOPE_CHANGE] = "UPDATE scope SET change = max(change + 1, ?2) WHERE id = ?1",
    [MEMBER_FIND] = "SELECT instance = ?3, expire_ms, ?4 - beat_ms FROM member"
                    " WHERE scope = ?1 AND id = ?2",
    [MEMBER_PUT] = "INSERT OR REPLACE INTO member VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [MEMBER_LEFT] = "UPDATE member SET expire_ms = -expire_ms"
                    " WHERE scope = ?1 AND id = ?2 AND instance = ?3 AND expire_ms > 0",
    [MEMBER_FORGET] = "DELETE FROM member WHERE scope = ?1"
                      " AND (?2 - beat_ms >= max(expire_ms, -expire_ms) * ?3"
                      " OR beat_ms - ?2 > max(expire_ms, -expire_ms))",
    [MEMBER_LIST] = "SELECT id, instance, weight, expire_ms, beat_ms FROM member WHERE scope = ?1"
                    " AND expire_ms > 0 ORDER BY id",
    [RECORD_LIST] = "SELECT " RECORD_COLUMNS " FROM record WHERE scope = ?1 ORDER BY partition",
    [RECORD_FIND] = "SELECT " RECORD_COLUMNS " FROM record WHERE scope = ?1 AND partition = ?2",
    [RECORD_FIRST] = "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, 0, '', 0, 0, 0)"
                     " RETURNING " RECORD_COLUMNS,
    [RECORD_CLAIM] = "UPDATE record SET owner = ?3, instance = ?4,"
                     " epoch = iif(" HAS_IT ", epoch, epoch + ?5),"
                     " acquired_ms = iif(" HAS_IT ", acquired_ms, ?6),"
                     " turn = iif(" HAS_IT ", turn, 0), modified_ms = ?6,"
                     " version = max(version + 1, ?7)"
                     " WHERE scope = ?1 AND partition = ?2 RETURNING " RECORD_COLUMNS,
    [RECORD_DROP] = "DELETE FROM record WHERE scope = ?1 AND partition = ?2",
    [RECORD_MARK] =
        "UPDATE record SET marked = 1, mark_offset = ?6, mark_sequence = ?7,"
        " modified_ms = ?8, turn = ?9 WHERE scope = ?1 AND partition = ?2 AND owner = ?3"
        " AND epoch = ?4 AND rewinds = ?5 AND owner <> '' AND turn < ?9",
    [RECORD_SET] = "INSERT INTO record VALUES (?1, ?2, '', 0, 0, ?3, ?3, ?7, ?4, ?5, ?6, 1, 0)"
                   " ON CONFLICT DO UPDATE SET modified_ms = ?3, marked = ?4, mark_offset = ?5,"
                   " mark_sequence = ?6, rewinds = rewinds + 1",
};

_Static_assert(STATEMENTS <= WEIR__SQLITE_STATEMENTS_MAX, "the file has room for them");

struct sqlite {
    struct weir_store store;
    struct weir__sqlite_file file;
    struct weir_view fresh; /* what read gathers; kept, so that a beat allocates nothing */
};

static int wrap(const struct sqlite *s, int rc, const char *what, struct weir_error *err)
{
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s in '%s'", what, s->file.path);
}

/* ---- rows ---- */

/* SQLite keeps what it is given whatever the column is declared as, so types are looked at too. */
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
    row.turn = integer_of(q, 11, &row.bad);
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

/* ---- scopes ---- */

/* What has no row yet is not an error: *id is 0 then, and no row of anything has that scope. */
static int find_scope(struct weir__sqlite_file *f, const struct weir_scope *scope, int64_t *id,
                      int64_t *change, struct weir_error *err)
{
    sqlite3_stmt *q =
        weir__sqlite_ask(f, SCOPE_FIND, "ttt", scope->space, scope->hub, scope->group);
    int rc = weir__sqlite_step(f, q, err);

    *id = rc == 1 ? sqlite3_column_int64(q, 0) : 0;
    *change = rc == 1 ? sqlite3_column_int64(q, 1) : 0;
    sqlite3_reset(q);
    return rc < 0 ? rc : 0;
}

/* Finds it or makes it; its change is the time, see sqlite_file.c. */
static int take_scope(struct weir__sqlite_file *f, const struct weir_scope *scope, int64_t *id,
                      struct weir_error *err)
{
    int64_t change;
    int rc = find_scope(f, scope, id, &change, err);

    if (rc != 0 || *id != 0) return rc;
    rc = weir__sqlite_run(f,
                          weir__sqlite_ask(f, SCOPE_MAKE, "ttti", scope->space, scope->hub,
                                           scope->group, weir__sqlite_now_us(f)),
                          err);
    *id = sqlite3_last_insert_rowid(f->db);
    return rc;
}

static int tell_change(struct weir__sqlite_file *f, int64_t id, struct weir_error *err)
{
    return weir__sqlite_run(f, weir__sqlite_ask(f, SCOPE_CHANGE, "ii", id, weir__sqlite_now_us(f)),
                            err);
}

/* ---- the port ---- */

/* Those that are gone for good are forgotten first, and those whose beat lies further ahead than
 * they may be silent: they would be alive until the clock has caught up. Then whoever is left under
 * the name and is another instance lives, unless it was silent for too long. */
static int beat(struct weir__sqlite_file *f, const struct weir_scope *scope,
                const struct weir_member *m, struct weir_error *err)
{
    int64_t id, now = weir__sqlite_now_ms(f);
    sqlite3_stmt *q;
    int rc = take_scope(f, scope, &id, err);

    if (rc == 0)
        rc = weir__sqlite_run(f,
                              weir__sqlite_ask(f, MEMBER_FORGET, "iii", id, now,
                                               (int64_t)WEIR__STORE_FORGET),
                              err);
    if (rc != 0) return rc;
    q = weir__sqlite_ask(f, MEMBER_FIND, "itii", id, m->id, (int64_t)m->instance, now);
    rc = weir__sqlite_step(f, q, err);
    if (rc < 0) return rc;
    if (rc == 1 && sqlite3_column_int(q, 0) && sqlite3_column_int64(q, 1) < 0)
        return weir__store_fail_left(err, m->id);
    if (rc == 1 && !sqlite3_column_int(q, 0) &&
        sqlite3_column_int64(q, 2) < sqlite3_column_int64(q, 1))
        return weir__store_fail_alive(err, m->id, sqlite3_column_int64(q, 2),
                                      sqlite3_column_int64(q, 1));
    sqlite3_reset(q);
    q = weir__sqlite_ask(f, MEMBER_PUT, "itiiii", id, m->id, (int64_t)m->instance,
                         (int64_t)m->weight, m->expire_ms, now);
    return weir__sqlite_run(f, q, err);
}

static int sqlite_beat(struct weir_store *store, const struct weir_scope *scope,
                       const struct weir_member *m, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = weir__store_check_member(scope, m, err);

    if (rc == 0) {
        rc = weir__sqlite_begin(&s->file, true, err);
        if (rc == 0) rc = weir__sqlite_end(&s->file, beat(&s->file, scope, m, err), err);
    }
    return wrap(s, rc, "beating", err);
}

static int sqlite_leave(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_member *m, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int64_t id, change;
    int rc = weir__store_check_owner(scope, m->id, err);

    if (rc == 0) rc = weir__sqlite_begin(&s->file, true, err);
    if (rc == 0) {
        rc = find_scope(&s->file, scope, &id, &change, err);
        if (rc == 0)
            rc = weir__sqlite_run(&s->file,
                                  weir__sqlite_ask(&s->file, MEMBER_LEFT, "iti", id, m->id,
                                                   (int64_t)m->instance),
                                  err);
        rc = weir__sqlite_end(&s->file, rc, err);
    }
    return wrap(s, rc, "leaving", err);
}

/* Into s->fresh, as read_records: a row that cannot be told from others is left out. */
static int read_members(struct sqlite *s, int64_t id, struct weir_error *err)
{
    sqlite3_stmt *q = weir__sqlite_ask(&s->file, MEMBER_LIST, "i", id);
    struct weir_member m;
    int rc, failed = 0;

    while (failed == 0 && (rc = weir__sqlite_step(&s->file, q, err)) != 0)
        failed = rc < 0 ? rc : member_of(q, &m) ? weir__view_add_member(&s->fresh, &m, err) : 0;
    return failed;
}

static int read_records(struct sqlite *s, int64_t id, struct weir_error *err)
{
    sqlite3_stmt *q = weir__sqlite_ask(&s->file, RECORD_LIST, "i", id);
    struct weir_record r;
    int rc, failed = 0;

    while (failed == 0 && (rc = weir__sqlite_step(&s->file, q, err)) != 0)
        failed = rc < 0 ? rc : record_of(q, &r) ? weir__view_add_record(&s->fresh, &r, err) : 0;
    return failed;
}

/* Members, records and change are of one moment, because they are of one transaction. */
static int sqlite_read(struct weir_store *store, const struct weir_scope *scope,
                       struct weir_view *view, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int64_t id, change;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = weir__sqlite_begin(&s->file, false, err);
    if (rc == 0) {
        s->fresh.member_count = s->fresh.record_count = 0;
        rc = find_scope(&s->file, scope, &id, &change, err);
        s->fresh.now_ms = weir__sqlite_now_ms(&s->file);
        s->fresh.change = (uint64_t)change;
        if (rc == 0) rc = read_members(s, id, err);
        if (rc == 0 && (change == 0 || s->fresh.change != view->change))
            rc = read_records(s, id, err);
        rc = weir__sqlite_end(&s->file, rc, err);
        if (rc == 0) weir__view_take(view, &s->fresh);
    }
    return wrap(s, rc, "reading", err);
}

/* The record as it is; one without a version when there is none. */
static int find_record(struct weir__sqlite_file *f, int64_t id, uint32_t partition,
                       struct weir_record *out, struct weir_error *err)
{
    sqlite3_stmt *q = weir__sqlite_ask(f, RECORD_FIND, "ii", id, (int64_t)partition);
    int rc = weir__sqlite_step(f, q, err);

    *out = (struct weir_record){.partition = partition};
    if (rc == 1) record_of(q, out);
    sqlite3_reset(q);
    return rc < 0 ? rc : 0;
}

/* One that cannot be understood has no version, so nobody can have meant it. What a claim would
 * make of it says nothing: SQLite adds 1 to any text, and -1 and 1 are 0. */
static int claim(struct weir__sqlite_file *f, const struct weir_scope *scope,
                 const struct weir_record *expected, const char *owner, uint64_t instance,
                 struct weir_record *out, struct weir_error *err)
{
    int64_t id;
    sqlite3_stmt *q;
    int rc = take_scope(f, scope, &id, err);

    if (rc == 0) rc = find_record(f, id, expected->partition, out, err);
    if (rc != 0) return rc;
    if (out->rc != 0 || strcmp(out->version, expected->version) != 0)
        return weir__store_fail_moved(err, expected->partition);
    q = weir__sqlite_ask(f, out->version[0] ? RECORD_CLAIM : RECORD_FIRST, "iitiiii", id,
                         (int64_t)expected->partition, owner, (int64_t)instance,
                         (int64_t)(owner[0] != '\0'), weir__sqlite_now_ms(f),
                         weir__sqlite_now_us(f));
    rc = weir__sqlite_step(f, q, err);
    if (rc < 0) return rc;
    if (!record_of(q, out) || out->rc != 0) /* a number was the last one there is */
        return weir__fail(err, WEIR_ECORRUPT, "the record of partition %" PRIu32,
                          expected->partition);
    sqlite3_reset(q);
    return tell_change(f, id, err);
}

static int sqlite_claim(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_record *expected, const char *owner, uint64_t instance,
                        struct weir_record *out, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    struct weir_record got;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = weir__sqlite_begin(&s->file, true, err);
    if (rc == 0)
        rc = weir__sqlite_end(&s->file,
                              claim(&s->file, scope, expected, owner, instance, &got, err), err);
    if (rc == 0) *out = got;
    return wrap(s, rc, "claiming", err);
}

/* All marks are one transaction, and each is refused for itself by its own WHERE. A scope that has
 * no row has no records: all are refused. */
static int mark(struct weir__sqlite_file *f, const struct weir_scope *scope, const char *owner,
                struct weir_mark *marks, size_t count, struct weir_error *err)
{
    int64_t id, change, now = weir__sqlite_now_ms(f);
    int rc = find_scope(f, scope, &id, &change, err);

    for (size_t i = 0; i < count && rc == 0; i++) {
        struct weir_mark *m = &marks[i];

        rc = weir__sqlite_run(f,
                              weir__sqlite_ask(f, RECORD_MARK, "iitiitiii", id,
                                               (int64_t)m->partition, owner, m->epoch,
                                               (int64_t)m->rewinds, m->offset, (int64_t)m->sequence,
                                               now, (int64_t)m->turn),
                              err);
        m->rc = sqlite3_changes(f->db) == 1 ? 0 : WEIR_EFENCED;
    }
    return rc;
}

static int sqlite_mark(struct weir_store *store, const struct weir_scope *scope, const char *owner,
                       struct weir_mark *marks, size_t count, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = weir__sqlite_begin(&s->file, true, err);
    if (rc == 0)
        rc = weir__sqlite_end(&s->file, mark(&s->file, scope, owner, marks, count, err), err);
    return wrap(s, rc, "writing checkpoints", err);
}

/* Owner and turn stay as they are: what fences marks under way is rewinds. A record that cannot be
 * understood is made anew, without an owner: that is how an operator gets rid of it. */
static int set(struct weir__sqlite_file *f, const struct weir_scope *scope, uint32_t partition,
               const struct weir_mark *m, struct weir_error *err)
{
    struct weir_record r;
    int64_t id, part = partition;
    int rc = take_scope(f, scope, &id, err);

    if (rc == 0) rc = find_record(f, id, partition, &r, err);
    if (rc == 0 && r.rc != 0)
        rc = weir__sqlite_run(f, weir__sqlite_ask(f, RECORD_DROP, "ii", id, part), err);
    if (rc == 0)
        rc = weir__sqlite_run(f,
                              weir__sqlite_ask(f, RECORD_SET, "iiiitii", id, part,
                                               weir__sqlite_now_ms(f), (int64_t)(m != NULL),
                                               m ? m->offset : "",
                                               m ? (int64_t)m->sequence : INT64_C(0),
                                               weir__sqlite_now_us(f)),
                              err);
    return rc == 0 ? tell_change(f, id, err) : rc;
}

static int sqlite_set(struct weir_store *store, const struct weir_scope *scope, uint32_t partition,
                      const struct weir_mark *m, struct weir_error *err)
{
    struct sqlite *s = (struct sqlite *)store;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = weir__sqlite_begin(&s->file, true, err);
    if (rc == 0) rc = weir__sqlite_end(&s->file, set(&s->file, scope, partition, m, err), err);
    return wrap(s, rc, "setting a checkpoint", err);
}

static void sqlite_close(struct weir_store *store)
{
    struct sqlite *s = (struct sqlite *)store;

    weir__sqlite_close(&s->file);
    weir_view_free(&s->fresh);
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
    int64_t call_ms;
    int rc;

    *out = NULL;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a store");
    s->store.ops = &sqlite_ops;
    rc = weir__store_options(options, &call_ms, err);
    if (rc == 0) rc = weir__sqlite_open(&s->file, path, call_ms, statements, STATEMENTS, err);
    if (rc != 0) {
        sqlite_close(&s->store);
        return weir__wrap(err, rc, "opening the store '%s'", path ? path : "");
    }
    *out = &s->store;
    return 0;
}
