/* postgres.c - a store in the tables of a PostgreSQL database: the seven functions of weir/store.h.
 * The line to the server, its deadlines and the tables are postgres_line.c's.
 *
 * Each call is one prepared statement, so one round trip and one snapshot; but a checkpoint that is
 * set by hand takes two. Marks are one each, sent together. Every claim and set moves its scope's
 * `change`, last, so whoever sees a change sees all that came before it. Locks are taken in
 * one order (record, then scope) and held for one call.
 *
 * Who waited for a row sees its WHERE looked at again with what is there then (read committed): of
 * two claims of one version the second finds none, and a mark that waited behind a later one is
 * late. */
#include "processor/store/postgres_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processor/store/view.h"

#define MARKS_MAX 1000 /* in one transaction */

enum statement {
    SCOPE_MAKE,
    MEMBER_BEAT,
    MEMBER_FIND,
    MEMBER_LEFT,
    READ,
    RECORD_CLAIM,
    RECORD_DROP,
    RECORD_MARK,
    RECORD_SET,
    STATEMENTS
};

/* The store's clock. It is the server's, and may be set: nobody's beat is counted as newer than now
 * by more than its own patience. */
#define NOW "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/* `version` and `change` are the time in microseconds when they were last moved, and at least one
 * more than before, so that a row that was removed and is made again does not show an old number. */
#define NOW_US "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
/* The first three values of every statement. */
#define SCOPE "scope.space = $1 AND scope.hub = $2 AND scope.consumer_group = $3"
#define RECORD_COLUMNS                                                                             \
    "partition, owner, instance, epoch, acquired_ms, modified_ms, version, marked, mark_offset, "  \
    "mark_sequence, rewinds, turn"
/* The record is theirs already: a claim renews it. */
#define HAS_IT "r.owner = $5 AND r.instance = $6"
/* What weir__store_record understands. A claim asks for it before it writes, so that it is refused
 * by what it finds and not by what it would have made of it. */
#define TIME "BETWEEN 0 AND 1::bigint << 48"
#define OWNER_BYTES WEIR__STORE_SQL(WEIR_OWNER_BYTES)
#define OFFSET_BYTES WEIR__STORE_SQL(WEIR_OFFSET_TEXT_BYTES)
#define SOUND                                                                                      \
    "(epoch >= 0 AND version >= 1 AND marked BETWEEN 0 AND 1 AND rewinds >= 0 AND turn >= 0"       \
    " AND acquired_ms " TIME " AND modified_ms " TIME " AND octet_length(owner) < " OWNER_BYTES    \
    " AND octet_length(mark_offset) < " OFFSET_BYTES ")"

static const struct weir__postgres_statement statements[STATEMENTS] = {
    [SCOPE_MAKE] = {"weir_scope_make", "INSERT INTO weir.scope (space, hub, consumer_group, change)"
                                       " VALUES ($1, $2, $3, " NOW_US ") ON CONFLICT DO NOTHING"},
    /* $4 id, $5 instance, $6 weight, $7 expire_ms, $8 WEIR__STORE_FORGET. Others that were silent
     * for so long, or whose beat lies further ahead than they may be silent (the clock was set
     * back), are forgotten; under our own name such a one gives way, and so does one that is dead.
     * No row: who is there lives, or the scope is gone. */
    [MEMBER_BEAT] = {"weir_member_beat",
                     "WITH t AS (SELECT " NOW " AS now),"
                     " gone AS (DELETE FROM weir.member m USING weir.scope, t"
                     " WHERE " SCOPE " AND m.scope = scope.id AND m.id <> $4"
                     " AND (t.now::numeric - m.beat_ms >= abs(m.expire_ms::numeric) * $8"
                     " OR m.beat_ms - t.now::numeric > abs(m.expire_ms::numeric)))"
                     "INSERT INTO weir.member AS m SELECT scope.id, $4, $5, $6, $7::bigint, t.now"
                     " FROM weir.scope, t WHERE " SCOPE
                     " ON CONFLICT (scope, id) DO UPDATE SET instance = excluded.instance,"
                     " weight = excluded.weight, expire_ms = excluded.expire_ms,"
                     " beat_ms = excluded.beat_ms WHERE CASE WHEN m.instance = excluded.instance"
                     " THEN m.expire_ms > 0"
                     " ELSE excluded.beat_ms::numeric - m.beat_ms >= m.expire_ms"
                     " OR m.beat_ms - excluded.beat_ms::numeric > m.expire_ms END RETURNING 1"},
    [MEMBER_FIND] = {"weir_member_find",
                     "SELECT " NOW
                     "::numeric - beat_ms, expire_ms, instance FROM weir.member m, weir.scope"
                     " WHERE " SCOPE " AND m.scope = scope.id AND m.id = $4"},
    [MEMBER_LEFT] =
        {"weir_member_left",
         "UPDATE weir.member m SET expire_ms = -m.expire_ms FROM weir.scope WHERE " SCOPE
         " AND m.scope = scope.id AND m.id = $4 AND m.instance = $5"
         " AND m.expire_ms > 0"},
    /* One row of kind 0: now, change. Of kind 1 the members, of kind 2 the records, these only when
     * change is not $4. All in the columns of a record. */
    [READ] = {"weir_read",
              "WITH s AS (SELECT id, change FROM weir.scope WHERE " SCOPE ")"
              "SELECT 0 AS kind, 0::bigint AS partition, '' COLLATE \"C\" AS owner,"
              " coalesce((SELECT change FROM s), 0) AS instance, " NOW " AS epoch,"
              " 0::bigint AS acquired_ms, 0::bigint AS modified_ms, 0::bigint AS version,"
              " 0 AS marked, '' AS mark_offset, 0::bigint AS mark_sequence, 0::bigint AS rewinds,"
              " 0::bigint AS turn"
              " UNION ALL SELECT 1, 0, m.id, m.instance, m.weight, m.expire_ms, m.beat_ms, 0, 0,"
              " '', 0, 0, 0 FROM s, weir.member m WHERE m.scope = s.id AND m.expire_ms > 0"
              " UNION ALL SELECT 2, " RECORD_COLUMNS " FROM s, weir.record r"
              " WHERE r.scope = s.id AND s.change <> $4::bigint"
              " ORDER BY kind, partition, owner"},
    /* $4 partition, $5 owner, $6 instance, $7 what the epoch grows by, $8 the version, 0: none. No
     * row: it is not what was expected. */
    [RECORD_CLAIM] =
        {"weir_record_claim",
         "WITH t AS (SELECT " NOW " AS now),"
         " made AS (INSERT INTO weir.record"
         " SELECT scope.id, $4::bigint, $5, $6::bigint, $7::bigint, t.now, t.now, " NOW_US ", 0,"
         " '', 0, 0, 0"
         " FROM weir.scope, t WHERE " SCOPE " AND $8::bigint = 0"
         " ON CONFLICT DO NOTHING RETURNING *),"
         " moved AS (UPDATE weir.record r SET owner = $5, instance = $6,"
         " epoch = CASE WHEN " HAS_IT " THEN epoch ELSE epoch + $7 END,"
         " acquired_ms = CASE WHEN " HAS_IT " THEN acquired_ms ELSE t.now END,"
         " turn = CASE WHEN " HAS_IT " THEN turn ELSE 0 END,"
         " modified_ms = t.now, version = greatest(version + 1, " NOW_US ") FROM weir.scope, t"
         " WHERE " SCOPE " AND r.scope = scope.id AND r.partition = $4 AND r.version = $8"
         " AND $8 <> 0 AND " SOUND " RETURNING r.*),"
         " done AS (SELECT * FROM made UNION ALL SELECT * FROM moved),"
         " told AS (UPDATE weir.scope SET change = greatest(change + 1, " NOW_US ") FROM done"
         " WHERE weir.scope.id = done.scope)"
         "SELECT 2, " RECORD_COLUMNS " FROM done"},
    /* $4 partition */
    [RECORD_DROP] = {"weir_record_drop",
                     "DELETE FROM weir.record r USING weir.scope WHERE " SCOPE
                     " AND r.scope = scope.id AND r.partition = $4 AND NOT " SOUND},
    /* $4 owner, $5 partition, $6 epoch, $7 rewinds, $8 offset, $9 sequence, $10 turn */
    [RECORD_MARK] = {"weir_record_mark",
                     "UPDATE weir.record SET marked = 1, mark_offset = $8, mark_sequence = $9,"
                     " turn = $10, modified_ms = " NOW
                     " WHERE scope = (SELECT id FROM weir.scope WHERE " SCOPE
                     ") AND partition = $5 AND owner = $4 AND owner <> '' AND epoch = $6"
                     " AND rewinds = $7 AND turn < $10"},
    /* $4 partition, $5 marked, $6 offset, $7 sequence */
    [RECORD_SET] = {"weir_record_set",
                    "WITH t AS (SELECT " NOW " AS now),"
                    " done AS (INSERT INTO weir.record AS r"
                    " SELECT scope.id, $4, '', 0, 0, t.now, t.now, " NOW_US ", $5, $6, $7, 1, 0"
                    " FROM weir.scope, t"
                    " WHERE " SCOPE " ON CONFLICT (scope, partition) DO UPDATE SET"
                    " modified_ms = excluded.modified_ms, marked = excluded.marked,"
                    " mark_offset = excluded.mark_offset, mark_sequence = excluded.mark_sequence,"
                    " rewinds = r.rewinds + 1 RETURNING r.scope),"
                    " told AS (UPDATE weir.scope SET change = greatest(change + 1, " NOW_US
                    ") FROM done"
                    " WHERE weir.scope.id = done.scope)"
                    "SELECT 1 FROM done"},
};

_Static_assert(STATEMENTS <= WEIR__POSTGRES_STATEMENTS_MAX, "the line has room for them");

struct postgres {
    struct weir_store store;
    struct weir__postgres_line line;
    char made[3][WEIR__STORE_NAME_MAX + 1]; /* the scope that is known to have its row, */
    uint64_t made_on;                       /* on this connection */
    struct weir_view fresh; /* what read gathers; kept, so that a beat allocates nothing */
};

/* ---- scopes ---- */

static void add_scope(struct weir__postgres_values *v, const struct weir_scope *scope)
{
    v->count = 0;
    weir__postgres_add_text(v, scope->space);
    weir__postgres_add_text(v, scope->hub);
    weir__postgres_add_text(v, scope->group);
}

/* Makes the row of a scope, unless this connection has seen to it: a beat is one round trip. */
static int make_scope(struct postgres *s, const struct weir_scope *scope, struct weir_error *err)
{
    struct weir__postgres_values v;
    int rc;

    if (s->made_on == s->line.number && strcmp(s->made[0], scope->space) == 0 &&
        strcmp(s->made[1], scope->hub) == 0 && strcmp(s->made[2], scope->group) == 0)
        return 0;
    add_scope(&v, scope);
    rc = weir__postgres_execute(&s->line, SCOPE_MAKE, &v, NULL, err);
    if (rc != 0) return rc;
    for (int i = 0; i < 3; i++) snprintf(s->made[i], sizeof s->made[i], "%s", v.at[i]);
    s->made_on = s->line.number;
    return 0;
}

/* The row of the scope was deleted under us. */
static int fail_scope(struct postgres *s, struct weir_error *err)
{
    s->made[0][0] = '\0';
    return weir__fail(err, WEIR_EBUSY, "the group's rows were removed; they are made again");
}

/* ---- rows ---- */

/* A row of a kind and RECORD_COLUMNS. Types are the columns' own; values may be anybody's. */
static bool record_of(const PGresult *result, int at, struct weir_record *out)
{
    struct weir__store_row row = {
        .partition = weir__postgres_integer(result, at, 1),
        .owner = weir__postgres_text(result, at, 2),
        .instance = weir__postgres_integer(result, at, 3),
        .epoch = weir__postgres_integer(result, at, 4),
        .acquired_ms = weir__postgres_integer(result, at, 5),
        .modified_ms = weir__postgres_integer(result, at, 6),
        .version = weir__postgres_integer(result, at, 7),
        .marked = weir__postgres_integer(result, at, 8),
        .offset = weir__postgres_text(result, at, 9),
        .sequence = weir__postgres_integer(result, at, 10),
        .rewinds = weir__postgres_integer(result, at, 11),
        .turn = weir__postgres_integer(result, at, 12),
    };

    return weir__store_record(&row, out);
}

static bool member_of(const PGresult *result, int at, struct weir_member *out)
{
    return weir__store_member(weir__postgres_text(result, at, 2),
                              weir__postgres_integer(result, at, 3),
                              weir__postgres_integer(result, at, 4),
                              weir__postgres_integer(result, at, 5),
                              weir__postgres_integer(result, at, 6), out);
}

static int wrap(int rc, const char *what, struct weir_error *err)
{
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s in PostgreSQL", what);
}

/* ---- the port ---- */

/* Why a beat wrote nothing. */
static int fail_beat(struct postgres *s, const struct weir_scope *scope,
                     const struct weir_member *m, struct weir_error *err)
{
    PGresult *result;
    struct weir__postgres_values v;
    int rc;

    add_scope(&v, scope);
    weir__postgres_add_text(&v, m->id);
    rc = weir__postgres_execute(&s->line, MEMBER_FIND, &v, &result, err);
    if (rc != 0) return rc;
    if (PQntuples(result) != 1)
        rc = fail_scope(s, err);
    else if ((uint64_t)weir__postgres_integer(result, 0, 2) == m->instance)
        rc = weir__store_fail_left(err, m->id);
    else
        rc = weir__store_fail_alive(err, m->id, weir__postgres_integer(result, 0, 0),
                                    weir__postgres_integer(result, 0, 1));
    PQclear(result);
    return rc;
}

static int beat(struct postgres *s, const struct weir_scope *scope, const struct weir_member *m,
                struct weir_error *err)
{
    PGresult *result;
    struct weir__postgres_values v;
    int rc = make_scope(s, scope, err);

    if (rc != 0) return rc;
    add_scope(&v, scope);
    weir__postgres_add_text(&v, m->id);
    weir__postgres_add_integer(&v, (int64_t)m->instance);
    weir__postgres_add_integer(&v, m->weight);
    weir__postgres_add_integer(&v, m->expire_ms);
    weir__postgres_add_integer(&v, WEIR__STORE_FORGET);
    rc = weir__postgres_execute(&s->line, MEMBER_BEAT, &v, &result, err);
    if (rc != 0) return rc;
    if (PQntuples(result) == 0) rc = fail_beat(s, scope, m, err);
    PQclear(result);
    return rc;
}

static int postgres_beat(struct weir_store *store, const struct weir_scope *scope,
                         const struct weir_member *m, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    int rc = weir__store_check_member(scope, m, err);

    if (rc == 0) rc = weir__postgres_begin(&s->line, err);
    if (rc == 0) rc = beat(s, scope, m, err);
    return wrap(rc, "beating", err);
}

static int postgres_leave(struct weir_store *store, const struct weir_scope *scope,
                          const struct weir_member *m, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    struct weir__postgres_values v;
    int rc = weir__store_check_owner(scope, m->id, err);

    if (rc == 0) rc = weir__postgres_begin(&s->line, err);
    if (rc == 0) {
        add_scope(&v, scope);
        weir__postgres_add_text(&v, m->id);
        weir__postgres_add_integer(&v, (int64_t)m->instance);
        rc = weir__postgres_execute(&s->line, MEMBER_LEFT, &v, NULL, err);
    }
    return wrap(rc, "leaving", err);
}

/* The rows of READ into s->fresh. What cannot be told from others is left out. */
static int gather(struct postgres *s, const PGresult *result, struct weir_error *err)
{
    struct weir_member m;
    struct weir_record r;
    int rc = 0;

    s->fresh.member_count = s->fresh.record_count = 0;
    for (int i = 0, n = PQntuples(result); i < n && rc == 0; i++) {
        int64_t kind = weir__postgres_integer(result, i, 0);

        if (kind == 0) {
            s->fresh.change = (uint64_t)weir__postgres_integer(result, i, 3);
            s->fresh.now_ms = weir__postgres_integer(result, i, 4);
        } else if (kind == 1 && member_of(result, i, &m)) {
            rc = weir__view_add_member(&s->fresh, &m, err);
        } else if (kind == 2 && record_of(result, i, &r)) {
            rc = weir__view_add_record(&s->fresh, &r, err);
        }
    }
    return rc;
}

static int postgres_read(struct weir_store *store, const struct weir_scope *scope,
                         struct weir_view *view, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    PGresult *result;
    struct weir__postgres_values v;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = weir__postgres_begin(&s->line, err);
    if (rc == 0) {
        add_scope(&v, scope);
        weir__postgres_add_integer(&v, (int64_t)view->change);
        rc = weir__postgres_execute(&s->line, READ, &v, &result, err);
    }
    if (rc == 0) {
        rc = gather(s, result, err);
        PQclear(result);
    }
    if (rc == 0) weir__view_take(view, &s->fresh);
    return wrap(rc, "reading", err);
}

static int claim(struct postgres *s, const struct weir__postgres_values *v, uint32_t partition,
                 struct weir_record *out, struct weir_error *err)
{
    struct weir_record got;
    PGresult *result;
    int rc = weir__postgres_execute(&s->line, RECORD_CLAIM, v, &result, err);

    if (rc != 0) return rc;
    if (PQntuples(result) == 0)
        rc = weir__store_fail_moved(err, partition);
    else if (!record_of(result, 0, &got) || got.rc != 0) /* SOUND is not what C understands */
        rc = weir__fail(err, WEIR_ECORRUPT, "the record of partition %" PRIu32, partition);
    else
        *out = got;
    PQclear(result);
    return rc;
}

static int postgres_claim(struct weir_store *store, const struct weir_scope *scope,
                          const struct weir_record *expected, const char *owner, uint64_t instance,
                          struct weir_record *out, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    struct weir__postgres_values v;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = weir__postgres_begin(&s->line, err);
    if (rc == 0) rc = make_scope(s, scope, err);
    if (rc == 0) {
        add_scope(&v, scope);
        weir__postgres_add_integer(&v, expected->partition);
        weir__postgres_add_text(&v, owner);
        weir__postgres_add_integer(&v, (int64_t)instance);
        weir__postgres_add_integer(&v, owner[0] != '\0');
        weir__postgres_add_integer(&v, weir__store_version(expected->version));
        rc = claim(s, &v, expected->partition, out, err);
    }
    return wrap(rc, "claiming", err);
}

/* The marks of one call, or some of them. */
struct marking {
    const struct weir_scope *scope;
    const char *owner;
    struct weir_mark *marks;
};

static void fill_mark(void *self, size_t i, struct weir__postgres_values *v)
{
    const struct marking *these = self;
    const struct weir_mark *m = &these->marks[i];

    add_scope(v, these->scope);
    weir__postgres_add_text(v, these->owner);
    weir__postgres_add_integer(v, m->partition);
    weir__postgres_add_integer(v, m->epoch);
    weir__postgres_add_integer(v, (int64_t)m->rewinds);
    weir__postgres_add_text(v, m->offset);
    weir__postgres_add_integer(v, (int64_t)m->sequence);
    weir__postgres_add_integer(v, (int64_t)m->turn);
}

static void hear_mark(void *self, size_t i, int64_t rows)
{
    const struct marking *these = self;

    these->marks[i].rc = rows == 1 ? 0 : WEIR_EFENCED;
}

/* Each MARKS_MAX are a transaction of their own: some may be stored when the call fails, as the
 * port says of every call that was not answered. */
static int postgres_mark(struct weir_store *store, const struct weir_scope *scope,
                         const char *owner, struct weir_mark *marks, size_t count,
                         struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = weir__postgres_begin(&s->line, err);
    for (size_t i = 0; i < count && rc == 0; i += MARKS_MAX) {
        struct marking these = {scope, owner, marks + i};
        struct weir__postgres_series series = {&these,
                                               count - i < MARKS_MAX ? count - i : MARKS_MAX,
                                               fill_mark, hear_mark};

        rc = weir__postgres_execute_all(&s->line, RECORD_MARK, &series, err);
    }
    return wrap(rc, "writing checkpoints", err);
}

/* Owner and turn stay as they are: what fences marks under way is rewinds. A record that cannot be
 * understood is removed first, and made anew without an owner: that is how an operator gets rid of
 * it. */
static int set(struct postgres *s, const struct weir_scope *scope, uint32_t partition,
               const struct weir_mark *m, struct weir_error *err)
{
    PGresult *result;
    struct weir__postgres_values v;
    int rc = make_scope(s, scope, err);

    if (rc != 0) return rc;
    add_scope(&v, scope);
    weir__postgres_add_integer(&v, partition);
    rc = weir__postgres_execute(&s->line, RECORD_DROP, &v, NULL, err);
    if (rc != 0) return rc;
    weir__postgres_add_integer(&v, m != NULL);
    weir__postgres_add_text(&v, m ? m->offset : "");
    weir__postgres_add_integer(&v, m ? (int64_t)m->sequence : 0);
    rc = weir__postgres_execute(&s->line, RECORD_SET, &v, &result, err);
    if (rc != 0) return rc;
    if (PQntuples(result) == 0) rc = fail_scope(s, err);
    PQclear(result);
    return rc;
}

static int postgres_set(struct weir_store *store, const struct weir_scope *scope,
                        uint32_t partition, const struct weir_mark *m, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = weir__postgres_begin(&s->line, err);
    if (rc == 0) rc = set(s, scope, partition, m, err);
    return wrap(rc, "setting a checkpoint", err);
}

static void postgres_close(struct weir_store *store)
{
    struct postgres *s = (struct postgres *)store;

    weir__postgres_close(&s->line);
    weir_view_free(&s->fresh);
    free(s);
}

static const struct weir_store_ops postgres_ops = {
    .version = WEIR_STORE_VERSION,
    .beat = postgres_beat,
    .leave = postgres_leave,
    .read = postgres_read,
    .claim = postgres_claim,
    .mark = postgres_mark,
    .set = postgres_set,
    .close = postgres_close,
};

int weir_store_postgres(struct weir_store **out, const char *url,
                        const struct weir_store_options *options, struct weir_error *err)
{
    struct postgres *s = calloc(1, sizeof *s);
    int64_t call_ms;
    int rc;

    *out = NULL;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a store");
    s->store.ops = &postgres_ops;
    rc = weir__store_options(options, &call_ms, err);
    if (rc == 0) rc = weir__postgres_open(&s->line, url, call_ms, statements, STATEMENTS, err);
    if (rc != 0) {
        postgres_close(&s->store);
        return rc;
    }
    *out = &s->store;
    return 0;
}
