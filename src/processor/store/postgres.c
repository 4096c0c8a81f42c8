/* postgres.c - a store in the tables of a PostgreSQL database.
 *
 * The schema `weir`, format 1:
 *
 *   weir.format  version
 *   weir.scope   id, space, hub, consumer_group, change
 *   weir.member  scope, id, instance, weight, expire_ms, beat_ms         key: scope, id
 *   weir.record  scope, partition, owner, instance, epoch, acquired_ms, modified_ms, version,
 *                marked, mark_offset, mark_sequence, rewinds             key: scope, partition
 *
 * The columns mean what they mean in sqlite.c. Only keys are indexed and pages are left half empty,
 * so a beat or a mark is written beside its old row (HOT) and the tables stay as small as they are.
 * Deleting a row of weir.scope deletes what belongs to it.
 *
 * Each call is one prepared statement, so one round trip and one snapshot; the first of a connection
 * prepares it. Marks are one each, sent together. Every claim and set adds 1 to its scope's `change`,
 * last, so whoever sees a change sees all that came before it. Locks are taken in one order (record,
 * then scope) and held for one call.
 *
 * The deadline holds whatever the network does: libpq is only ever asked for what it can do without
 * waiting, and poll waits. (Looking up a host name is the exception, which libpq leaves to the
 * system; and of several hosts in a URL the next is tried only when one refuses.) A call that was
 * not answered drops the connection, and the server drops the statement: statement_timeout is
 * call_ms as well. Whether it was done is then not known. A connection that ended while nothing was
 * under way is made again first, and nobody notices.
 *
 * A connection pooler between must keep a session on one server connection. */
#define _GNU_SOURCE
#include "processor/store/view.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

#define FORMAT 1
#define CREATION_LOCK "6297555593760958834" /* the bytes "WeirWeir" */
#define VALUES_MAX 12
#define INTEGER_BYTES 24
#define MARKS_MAX 1000 /* in one transaction */
#define DRAINS_MAX 16  /* looks at what came while nothing was under way */

/* The planner is told that every statement here is a short lookup by key: what it knows of tables that
 * are new or were emptied may be wrong. */
static const char *const session =
    "SET client_encoding = 'UTF8'; SET search_path = pg_catalog;"
    "SET default_transaction_isolation = 'read committed';"
    "SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off;"
    "SET enable_mergejoin = off;"
    "SET statement_timeout = %" PRId64 "; SET lock_timeout = %" PRId64 ";"
    "SELECT to_regclass('weir.format') IS NOT NULL";

/* Run as one transaction. Whoever comes second finds it done when the lock is free. */
static const char *const tables =
    "SELECT pg_advisory_xact_lock(" CREATION_LOCK ");"
    "CREATE SCHEMA IF NOT EXISTS weir;"
    "CREATE TABLE IF NOT EXISTS weir.format (version int NOT NULL);"
    "INSERT INTO weir.format SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM weir.format);"
    "CREATE TABLE IF NOT EXISTS weir.scope ("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, space text NOT NULL, hub text NOT NULL,"
    " consumer_group text NOT NULL, change bigint NOT NULL, UNIQUE (space, hub, consumer_group)"
    ") WITH (fillfactor = 50);"
    "CREATE TABLE IF NOT EXISTS weir.member ("
    " scope bigint NOT NULL REFERENCES weir.scope ON DELETE CASCADE,"
    " id text COLLATE \"C\" NOT NULL,"
    " instance bigint NOT NULL, weight bigint NOT NULL, expire_ms bigint NOT NULL,"
    " beat_ms bigint NOT NULL, PRIMARY KEY (scope, id)) WITH (fillfactor = 50);"
    "CREATE TABLE IF NOT EXISTS weir.record ("
    " scope bigint NOT NULL REFERENCES weir.scope ON DELETE CASCADE, partition bigint NOT NULL,"
    " owner text NOT NULL, instance bigint NOT NULL, epoch bigint NOT NULL,"
    " acquired_ms bigint NOT NULL, modified_ms bigint NOT NULL, version bigint NOT NULL,"
    " marked int NOT NULL, mark_offset text NOT NULL, mark_sequence bigint NOT NULL,"
    " rewinds bigint NOT NULL, PRIMARY KEY (scope, partition)) WITH (fillfactor = 50)";

enum statement {
    SCOPE_MAKE,
    MEMBER_BEAT,
    MEMBER_FIND,
    MEMBER_DROP,
    READ,
    RECORD_CLAIM,
    RECORD_MARK,
    RECORD_SET,
    STATEMENTS
};

#define NOW "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/* The first three values of every statement. */
#define SCOPE "scope.space = $1 AND scope.hub = $2 AND scope.consumer_group = $3"
#define RECORD_COLUMNS                                                                             \
    "partition, owner, instance, epoch, acquired_ms, modified_ms, version, marked, mark_offset, "  \
    "mark_sequence, rewinds"

/* name and text */
static const char *const statements[STATEMENTS][2] = {
    [SCOPE_MAKE] = {"weir_scope_make", "INSERT INTO weir.scope (space, hub, consumer_group, change)"
                                       " VALUES ($1, $2, $3, " NOW ") ON CONFLICT DO NOTHING"},
    [MEMBER_BEAT] = {"weir_member_beat",
                     "WITH t AS (SELECT " NOW " AS now),"
                     " gone AS (DELETE FROM weir.member m USING weir.scope, t"
                     " WHERE " SCOPE " AND m.scope = scope.id AND m.id <> $4"
                     " AND t.now::numeric - m.beat_ms >= m.expire_ms::numeric * $8)"
                     "INSERT INTO weir.member AS m SELECT scope.id, $4, $5, $6, $7::bigint, t.now"
                     " FROM weir.scope, t WHERE " SCOPE
                     " ON CONFLICT (scope, id) DO UPDATE SET instance = excluded.instance,"
                     " weight = excluded.weight, expire_ms = excluded.expire_ms,"
                     " beat_ms = excluded.beat_ms WHERE m.instance = excluded.instance"
                     " OR excluded.beat_ms::numeric - m.beat_ms >= m.expire_ms RETURNING 1"},
    [MEMBER_FIND] = {"weir_member_find",
                     "SELECT " NOW "::numeric - beat_ms, expire_ms FROM weir.member m, weir.scope"
                     " WHERE " SCOPE " AND m.scope = scope.id AND m.id = $4"},
    [MEMBER_DROP] = {"weir_member_drop",
                     "DELETE FROM weir.member m USING weir.scope WHERE " SCOPE
                     " AND m.scope = scope.id AND m.id = $4 AND m.instance = $5"},
    /* One row of kind 0: now, change. Of kind 1 the members, of kind 2 the records, these only when
     * change is not $4. All in the columns of a record. */
    [READ] = {"weir_read",
              "WITH s AS (SELECT id, change FROM weir.scope WHERE " SCOPE ")"
              "SELECT 0 AS kind, 0::bigint AS partition, '' COLLATE \"C\" AS owner,"
              " coalesce((SELECT change FROM s), 0) AS instance, " NOW " AS epoch,"
              " 0::bigint AS acquired_ms, 0::bigint AS modified_ms, 0::bigint AS version,"
              " 0 AS marked, '' AS mark_offset, 0::bigint AS mark_sequence, 0::bigint AS rewinds"
              " UNION ALL SELECT 1, 0, m.id, m.instance, m.weight, m.expire_ms, m.beat_ms, 0, 0,"
              " '', 0, 0 FROM s, weir.member m WHERE m.scope = s.id"
              " UNION ALL SELECT 2, " RECORD_COLUMNS " FROM s, weir.record r"
              " WHERE r.scope = s.id AND s.change <> $4::bigint"
              " ORDER BY kind, partition, owner"},
    /* $4 partition, $5 owner, $6 instance, $7 what the epoch grows by, $8 the version, 0: none */
    [RECORD_CLAIM] =
        {"weir_record_claim",
         "WITH t AS (SELECT " NOW " AS now),"
         " made AS (INSERT INTO weir.record"
         " SELECT scope.id, $4::bigint, $5, $6::bigint, $7::bigint, t.now, t.now, 1, 0, '', 0, 0"
         " FROM weir.scope, t WHERE " SCOPE " AND $8::bigint = 0"
         " ON CONFLICT DO NOTHING RETURNING *),"
         " moved AS (UPDATE weir.record r SET owner = $5, instance = $6, epoch = epoch + $7,"
         " acquired_ms = t.now, modified_ms = t.now, version = version + 1 FROM weir.scope, t"
         " WHERE " SCOPE " AND r.scope = scope.id AND r.partition = $4 AND r.version = $8"
         " AND $8 <> 0 RETURNING r.*),"
         " done AS (SELECT * FROM made UNION ALL SELECT * FROM moved),"
         " told AS (UPDATE weir.scope SET change = change + 1 FROM done"
         " WHERE weir.scope.id = done.scope)"
         "SELECT 2, " RECORD_COLUMNS " FROM done"},
    /* $4 owner, $5 partition, $6 epoch, $7 rewinds, $8 offset, $9 sequence */
    [RECORD_MARK] = {"weir_record_mark",
                     "UPDATE weir.record SET marked = 1, mark_offset = $8, mark_sequence = $9,"
                     " modified_ms = " NOW " WHERE scope = (SELECT id FROM weir.scope WHERE " SCOPE
                     ") AND partition = $5 AND owner = $4 AND owner <> '' AND epoch = $6"
                     " AND rewinds = $7"},
    /* $4 partition, $5 marked, $6 offset, $7 sequence */
    [RECORD_SET] =
        {"weir_record_set",
         "WITH t AS (SELECT " NOW " AS now),"
         " done AS (INSERT INTO weir.record AS r"
         " SELECT scope.id, $4, '', 0, 0, t.now, t.now, 1, $5, $6, $7, 1 FROM weir.scope, t"
         " WHERE " SCOPE " ON CONFLICT (scope, partition) DO UPDATE SET"
         " modified_ms = excluded.modified_ms, marked = excluded.marked,"
         " mark_offset = excluded.mark_offset, mark_sequence = excluded.mark_sequence,"
         " rewinds = r.rewinds + 1 RETURNING r.scope),"
         " told AS (UPDATE weir.scope SET change = change + 1 FROM done"
         " WHERE weir.scope.id = done.scope)"
         "SELECT 1 FROM done"},
};

struct postgres {
    struct weir_store store;
    int64_t call_ms, deadline_ns; /* of the call under way */
    PGconn *conn;                 /* NULL: the next call connects */
    bool prepared[STATEMENTS];
    char made[3][WEIR__STORE_NAME_MAX + 1]; /* the scope that is known to have its row */
    struct weir_view fresh;                 /* what read gathers */
    char *url;
};

/* ---- failing ---- */

/* What a server says, by the beginning of its SQLSTATE; the first row that fits. */
static const struct code_row {
    const char *state;
    int rc;
    bool drop; /* the connection is of no use any more */
} code_rows[] = {
    {"57014", WEIR_ETIMEDOUT, false},   /* statement_timeout */
    {"55P03", WEIR_ETIMEDOUT, false},   /* lock_timeout */
    {"57P", WEIR_EUNREACHABLE, true},   /* it is stopping or starting */
    {"08", WEIR_EUNREACHABLE, true},    /* connection lost */
    {"25006", WEIR_EUNREACHABLE, true}, /* a standby, which only reads */
    {"26000", WEIR_EUNREACHABLE, true}, /* somebody dropped our statements */
    {"0A000", WEIR_EUNREACHABLE, true}, /* or changed the tables under them */
    {"53100", WEIR_ENOSPACE, false},    /* disk full */
    {"53", WEIR_EUNREACHABLE, true},    /* too many connections, no memory */
    {"40", WEIR_EBUSY, false},          /* deadlock or serialization: nothing was done */
    {"28", WEIR_EDENIED, true},         /* user or password */
    {"42501", WEIR_EDENIED, false},     /* rights */
    {"3D000", WEIR_ENOTFOUND, true},    /* no such database */
    {"42P01", WEIR_ENOTFOUND, true},    /* the tables are gone; connecting makes them again */
    {"3F000", WEIR_ENOTFOUND, true},    /* so is the schema */
    {"42703", WEIR_EVERSION, true},     /* tables of that name, but not these */
    {"22", WEIR_EINVAL, false},         /* a name that is not UTF-8 */
    {"XX", WEIR_ECORRUPT, false},       /* the database is damaged */
};

static void drop_connection(struct postgres *s)
{
    PQfinish(s->conn);
    s->conn = NULL;
    memset(s->prepared, 0, sizeof s->prepared);
    s->made[0][0] = '\0';
}

/* The first line of what libpq or the server said, which never has a password in it. */
static int fail_saying(struct weir_error *err, int rc, const char *text)
{
    return weir__fail(err, rc, "%.*s", (int)strcspn(text, "\n"), text);
}

static int fail_state(struct postgres *s, const char *state, const char *text, int otherwise,
                      struct weir_error *err)
{
    const struct code_row *row = code_rows, *end = row + sizeof code_rows / sizeof *row;
    int rc;

    while (row < end && strncmp(row->state, state, strlen(row->state)) != 0) row++;
    rc = fail_saying(err, row < end ? row->rc : otherwise, text);
    if (row < end && row->drop) drop_connection(s);
    return rc;
}

static int fail_result(struct postgres *s, const PGresult *result, struct weir_error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    /* Without a state it was libpq that failed, and not the statement. */
    return fail_state(s, state ? state : "08", text ? text : PQresultErrorMessage(result), WEIR_EIO,
                      err);
}

/* The connection is gone, and with it the answer. */
static int fail_lost(struct postgres *s, struct weir_error *err)
{
    int rc = fail_saying(err, WEIR_EUNREACHABLE, PQerrorMessage(s->conn));

    drop_connection(s);
    return rc;
}

/* ---- waiting ---- */

/* Until the socket has `events` or the deadline is over, and then the connection is dropped. */
static int await(struct postgres *s, short events, struct weir_error *err)
{
    struct pollfd p = {.fd = PQsocket(s->conn), .events = events};
    int n;

    do {
        int64_t left_ms = (s->deadline_ns - weir__mono_ns() + 999999) / 1000000;

        n = left_ms <= 0 ? 0 : poll(&p, 1, (int)left_ms);
    } while (n < 0 && errno == EINTR);
    if (n > 0) return 0;
    drop_connection(s);
    return n < 0 ? weir__fail_errno(err, errno, "poll")
                 : weir__fail(err, WEIR_ETIMEDOUT, "no answer within %" PRId64 " ms", s->call_ms);
}

static int flush(struct postgres *s, struct weir_error *err)
{
    int left, rc;

    while ((left = PQflush(s->conn)) == 1) {
        rc = await(s, POLLIN | POLLOUT, err);
        if (rc != 0) return rc;
        if (!PQconsumeInput(s->conn)) return fail_lost(s, err);
    }
    return left == 0 ? 0 : fail_lost(s, err);
}

static int next_result(struct postgres *s, PGresult **out, struct weir_error *err)
{
    while (PQisBusy(s->conn)) {
        int rc = await(s, POLLIN, err);

        if (rc != 0) return rc;
        if (!PQconsumeInput(s->conn)) return fail_lost(s, err);
    }
    *out = PQgetResult(s->conn);
    return 0;
}

/* After a PQsend, `sent` being what it returned: the last result of what was sent, for PQclear. */
static int answer(struct postgres *s, int sent, PGresult **out, struct weir_error *err)
{
    PGresult *last = NULL, *next = NULL;
    ExecStatusType status;
    int rc = sent ? flush(s, err) : fail_lost(s, err);

    while (rc == 0 && (rc = next_result(s, &next, err)) == 0 && next) {
        PQclear(last);
        last = next;
    }
    status = PQresultStatus(last);
    if (rc == 0 && status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        rc = last ? fail_result(s, last, err) : fail_lost(s, err);
    if (rc == 0 && out)
        *out = last;
    else
        PQclear(last);
    return rc;
}

/* ---- connecting ---- */

static void hear_notice(void *self, const PGresult *notice)
{
    (void)self;
    (void)notice;
}

/* libpq has no field for the SQLSTATE of a refused connection; a verbose message has it in it:
 * "... FATAL:  28P01: password authentication failed ...". */
static int fail_connect(struct postgres *s, struct weir_error *err)
{
    const char *text = PQerrorMessage(s->conn), *at = strstr(text, ":  ");
    char state[6] = "";
    int rc;

    if (at && strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5)
        memcpy(state, at + 3, sizeof state - 1);
    if (PQconnectionNeedsPassword(s->conn)) memcpy(state, "28P01", sizeof state);
    rc = fail_state(s, state, text, WEIR_EUNREACHABLE, err);
    drop_connection(s);
    return rc;
}

static int64_t integer_of(const PGresult *result, int row, int column)
{
    return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

static int check_format(struct postgres *s, struct weir_error *err)
{
    PGresult *result;
    int rc = answer(s, PQsendQuery(s->conn, "SELECT version FROM weir.format"), &result, err);
    int64_t version;

    if (rc != 0) return rc;
    version = PQntuples(result) == 1 ? integer_of(result, 0, 0) : -1;
    PQclear(result);
    if (version == FORMAT) return 0;
    drop_connection(s);
    return weir__fail(err, WEIR_EVERSION,
                      "schema weir is a store of format %" PRId64 ", this program knows format %d",
                      version, FORMAT);
}

static int set_up(struct postgres *s, struct weir_error *err)
{
    char sql[512];
    PGresult *result;
    bool there;
    int rc;

    snprintf(sql, sizeof sql, session, s->call_ms, s->call_ms);
    rc = answer(s, PQsendQuery(s->conn, sql), &result, err);
    if (rc != 0) return rc;
    there = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    if (!there) rc = answer(s, PQsendQuery(s->conn, tables), NULL, err);
    return rc == 0 ? check_format(s, err) : rc;
}

static int connect_server(struct postgres *s, struct weir_error *err)
{
    const char *const names[] = {"dbname", "fallback_application_name", NULL};
    const char *const values[] = {s->url, "weir", NULL};
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    int rc = 0;

    s->conn = PQconnectStartParams(names, values, 1);
    if (!s->conn) return weir__fail(err, WEIR_ENOMEM, "no memory for a connection");
    PQsetNoticeReceiver(s->conn, hear_notice, NULL);
    PQsetErrorVerbosity(s->conn, PQERRORS_VERBOSE);
    if (PQstatus(s->conn) == CONNECTION_BAD) return fail_connect(s, err);
    while (rc == 0 && next != PGRES_POLLING_OK) {
        rc = await(s, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, err);
        if (rc == 0) next = PQconnectPoll(s->conn);
        if (rc == 0 && next == PGRES_POLLING_FAILED) rc = fail_connect(s, err);
    }
    if (rc != 0) return rc;
    PQsetErrorVerbosity(s->conn, PQERRORS_DEFAULT);
    if (PQsetnonblocking(s->conn, 1) != 0) return fail_lost(s, err);
    rc = set_up(s, err);
    if (rc != 0) drop_connection(s);
    return rc;
}

/* Whether the server has hung up since the last call. */
static bool is_alive(struct postgres *s)
{
    struct pollfd p = {.fd = PQsocket(s->conn), .events = POLLIN};

    for (int i = 0; i < DRAINS_MAX && poll(&p, 1, 0) > 0; i++)
        if (!PQconsumeInput(s->conn)) return false;
    return PQstatus(s->conn) == CONNECTION_OK && !PQisBusy(s->conn);
}

static int begin(struct postgres *s, struct weir_error *err)
{
    s->deadline_ns = weir__deadline_ns(s->call_ms);
    if (s->conn && is_alive(s)) return 0;
    drop_connection(s);
    return connect_server(s, err);
}

/* ---- statements ---- */

struct values {
    const char *at[VALUES_MAX];
    char integers[VALUES_MAX][INTEGER_BYTES];
    int count;
};

static void add_text(struct values *v, const char *text)
{
    v->at[v->count++] = text;
}

static void add_integer(struct values *v, int64_t n)
{
    snprintf(v->integers[v->count], INTEGER_BYTES, "%" PRId64, n);
    v->at[v->count] = v->integers[v->count];
    v->count++;
}

static void add_scope(struct values *v, const struct weir_scope *scope)
{
    v->count = 0;
    add_text(v, scope->space);
    add_text(v, scope->hub);
    add_text(v, scope->group);
}

static int prepare(struct postgres *s, enum statement which, struct weir_error *err)
{
    const char *name = statements[which][0], *text = statements[which][1];
    int rc = 0;

    if (!s->prepared[which]) rc = answer(s, PQsendPrepare(s->conn, name, text, 0, NULL), NULL, err);
    if (rc == 0) s->prepared[which] = true;
    return rc;
}

static int execute(struct postgres *s, enum statement which, const struct values *v, PGresult **out,
                   struct weir_error *err)
{
    const char *name = statements[which][0];
    int rc = prepare(s, which, err);

    if (rc != 0) return rc;
    return answer(s, PQsendQueryPrepared(s->conn, name, v->count, v->at, NULL, NULL, 0), out, err);
}

/* Makes the row of a scope, unless this connection has seen to it before. */
static int make_scope(struct postgres *s, const struct weir_scope *scope, struct weir_error *err)
{
    struct values v;
    int rc;

    if (strcmp(s->made[0], scope->space) == 0 && strcmp(s->made[1], scope->hub) == 0 &&
        strcmp(s->made[2], scope->group) == 0)
        return 0;
    add_scope(&v, scope);
    rc = execute(s, SCOPE_MAKE, &v, NULL, err);
    if (rc != 0) return rc;
    for (int i = 0; i < 3; i++) snprintf(s->made[i], sizeof s->made[i], "%s", v.at[i]);
    return 0;
}

/* The row of the scope was deleted under us. */
static int fail_scope(struct postgres *s, struct weir_error *err)
{
    s->made[0][0] = '\0';
    return weir__fail(err, WEIR_EBUSY, "the group's rows were removed; they are made again");
}

static struct weir__bytes text_of(const PGresult *result, int row, int column)
{
    return weir__bytes_of(PQgetvalue(result, row, column),
                          (size_t)PQgetlength(result, row, column));
}

/* A row of a kind and RECORD_COLUMNS. */
static bool record_of(const PGresult *result, int at, struct weir_record *out)
{
    struct weir__store_row row = {
        .partition = integer_of(result, at, 1),
        .owner = text_of(result, at, 2),
        .instance = integer_of(result, at, 3),
        .epoch = integer_of(result, at, 4),
        .acquired_ms = integer_of(result, at, 5),
        .modified_ms = integer_of(result, at, 6),
        .version = integer_of(result, at, 7),
        .marked = integer_of(result, at, 8),
        .offset = text_of(result, at, 9),
        .sequence = integer_of(result, at, 10),
        .rewinds = integer_of(result, at, 11),
    };

    return weir__store_record(&row, out);
}

static bool member_of(const PGresult *result, int at, struct weir_member *out)
{
    return weir__store_member(text_of(result, at, 2), integer_of(result, at, 3),
                              integer_of(result, at, 4), integer_of(result, at, 5),
                              integer_of(result, at, 6), out);
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
    struct values v;
    int rc;

    add_scope(&v, scope);
    add_text(&v, m->id);
    rc = execute(s, MEMBER_FIND, &v, &result, err);
    if (rc != 0) return rc;
    rc = PQntuples(result) == 1 ? weir__store_fail_alive(err, m->id, integer_of(result, 0, 0),
                                                         integer_of(result, 0, 1))
                                : fail_scope(s, err);
    PQclear(result);
    return rc;
}

static int beat(struct postgres *s, const struct weir_scope *scope, const struct weir_member *m,
                struct weir_error *err)
{
    PGresult *result;
    struct values v;
    int rc = make_scope(s, scope, err);

    if (rc != 0) return rc;
    add_scope(&v, scope);
    add_text(&v, m->id);
    add_integer(&v, (int64_t)m->instance);
    add_integer(&v, m->weight);
    add_integer(&v, m->expire_ms);
    add_integer(&v, WEIR__STORE_FORGET);
    rc = execute(s, MEMBER_BEAT, &v, &result, err);
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

    if (rc == 0) rc = begin(s, err);
    if (rc == 0) rc = beat(s, scope, m, err);
    return wrap(rc, "beating", err);
}

static int postgres_leave(struct weir_store *store, const struct weir_scope *scope,
                          const struct weir_member *m, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    struct values v;
    int rc = weir__store_check_owner(scope, m->id, err);

    if (rc == 0) rc = begin(s, err);
    if (rc == 0) {
        add_scope(&v, scope);
        add_text(&v, m->id);
        add_integer(&v, (int64_t)m->instance);
        rc = execute(s, MEMBER_DROP, &v, NULL, err);
    }
    return wrap(rc, "leaving", err);
}

static int gather(struct postgres *s, const PGresult *result, struct weir_error *err)
{
    struct weir_member m;
    struct weir_record r;
    int rc = 0;

    s->fresh.member_count = s->fresh.record_count = 0;
    for (int i = 0, n = PQntuples(result); i < n && rc == 0; i++) {
        int64_t kind = integer_of(result, i, 0);

        if (kind == 0) {
            s->fresh.change = (uint64_t)integer_of(result, i, 3);
            s->fresh.now_ms = integer_of(result, i, 4);
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
    struct values v;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = begin(s, err);
    if (rc == 0) {
        add_scope(&v, scope);
        add_integer(&v, (int64_t)view->change);
        rc = execute(s, READ, &v, &result, err);
    }
    if (rc == 0) {
        rc = gather(s, result, err);
        PQclear(result);
    }
    if (rc == 0) weir__view_take(view, &s->fresh);
    return wrap(rc, "reading", err);
}

static int claim(struct postgres *s, const struct values *v, uint32_t partition,
                 struct weir_record *out, struct weir_error *err)
{
    struct weir_record got;
    PGresult *result;
    int rc = execute(s, RECORD_CLAIM, v, &result, err);

    if (rc != 0) return rc;
    if (PQntuples(result) == 0)
        rc = weir__store_fail_moved(err, partition);
    else if (!record_of(result, 0, &got) || got.rc != 0)
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
    struct values v;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = begin(s, err);
    if (rc == 0) rc = make_scope(s, scope, err);
    if (rc == 0) {
        add_scope(&v, scope);
        add_integer(&v, expected->partition);
        add_text(&v, owner);
        add_integer(&v, (int64_t)instance);
        add_integer(&v, owner[0] != '\0');
        add_integer(&v, weir__store_version(expected->version));
        rc = claim(s, &v, expected->partition, out, err);
    }
    return wrap(rc, "claiming", err);
}

static int send_marks(struct postgres *s, const struct weir_scope *scope, const char *owner,
                      const struct weir_mark *marks, size_t count)
{
    const char *name = statements[RECORD_MARK][0];
    struct values v;
    int sent = PQenterPipelineMode(s->conn);

    for (size_t i = 0; i < count && sent; i++) {
        add_scope(&v, scope);
        add_text(&v, owner);
        add_integer(&v, marks[i].partition);
        add_integer(&v, marks[i].epoch);
        add_integer(&v, (int64_t)marks[i].rewinds);
        add_text(&v, marks[i].offset);
        add_integer(&v, (int64_t)marks[i].sequence);
        sent = PQsendQueryPrepared(s->conn, name, v.count, v.at, NULL, NULL, 0);
    }
    return sent && PQpipelineSync(s->conn);
}

/* What became of one mark: a result, and the NULL that ends it. */
static int hear_mark(struct postgres *s, struct weir_mark *mark, struct weir_error *err)
{
    PGresult *result = NULL, *none = NULL;
    int rc = next_result(s, &result, err);

    if (rc != 0) return rc;
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        rc = fail_result(s, result, err);
    else
        mark->rc = strcmp(PQcmdTuples(result), "1") == 0 ? 0 : WEIR_EFENCED;
    PQclear(result);
    return rc == 0 ? next_result(s, &none, err) : rc;
}

/* One transaction and one round trip. Whatever goes wrong in it ends with the connection. */
static int mark_some(struct postgres *s, const struct weir_scope *scope, const char *owner,
                     struct weir_mark *marks, size_t count, struct weir_error *err)
{
    PGresult *end = NULL;
    int rc = prepare(s, RECORD_MARK, err);

    if (rc != 0) return rc;
    rc = send_marks(s, scope, owner, marks, count) ? flush(s, err) : fail_lost(s, err);
    for (size_t i = 0; i < count && rc == 0; i++) rc = hear_mark(s, &marks[i], err);
    if (rc == 0) rc = next_result(s, &end, err);
    if (rc == 0 && PQresultStatus(end) != PGRES_PIPELINE_SYNC) rc = fail_result(s, end, err);
    if (rc == 0 && !PQexitPipelineMode(s->conn)) rc = fail_lost(s, err);
    PQclear(end);
    if (rc != 0) drop_connection(s);
    return rc;
}

static int postgres_mark(struct weir_store *store, const struct weir_scope *scope,
                         const char *owner, struct weir_mark *marks, size_t count,
                         struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    int rc = weir__store_check_owner(scope, owner, err);

    if (rc == 0) rc = begin(s, err);
    for (size_t i = 0; i < count && rc == 0; i += MARKS_MAX)
        rc = mark_some(s, scope, owner, marks + i, count - i < MARKS_MAX ? count - i : MARKS_MAX,
                       err);
    return wrap(rc, "writing checkpoints", err);
}

static int postgres_set(struct weir_store *store, const struct weir_scope *scope,
                        uint32_t partition, const struct weir_mark *m, struct weir_error *err)
{
    struct postgres *s = (struct postgres *)store;
    PGresult *result;
    struct values v;
    int rc = weir__store_check_scope(scope, err);

    if (rc == 0) rc = begin(s, err);
    if (rc == 0) rc = make_scope(s, scope, err);
    if (rc == 0) {
        add_scope(&v, scope);
        add_integer(&v, partition);
        add_integer(&v, m != NULL);
        add_text(&v, m ? m->offset : "");
        add_integer(&v, m ? (int64_t)m->sequence : 0);
        rc = execute(s, RECORD_SET, &v, &result, err);
    }
    if (rc == 0) {
        if (PQntuples(result) == 0) rc = fail_scope(s, err);
        PQclear(result);
    }
    return wrap(rc, "setting a checkpoint", err);
}

static void postgres_close(struct weir_store *store)
{
    struct postgres *s = (struct postgres *)store;

    drop_connection(s);
    weir_view_free(&s->fresh);
    if (s->url) explicit_bzero(s->url, strlen(s->url));
    free(s->url);
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

/* What libpq says of a URL it cannot read may quote it, password and all; and a password with a bare
 * '@' or '/' ends up in the host, the port or the database, which later messages quote. So none of
 * that is passed on. */
static int check_url(const char *url, struct weir_error *err)
{
    PQconninfoOption *options = NULL;
    bool ok =
        url && (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0);

    if (ok) ok = (options = PQconninfoParse(url, NULL)) != NULL;
    for (PQconninfoOption *o = options; ok && o->keyword; o++) {
        if (!o->val) continue;
        if (strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "dbname") == 0)
            ok = !strchr(o->val, '@');
        if (strcmp(o->keyword, "port") == 0) ok = !o->val[strspn(o->val, "0123456789,")];
    }
    PQconninfoFree(options);
    if (ok) return 0;
    return weir__fail(
        err, WEIR_EINVAL,
        "the store's URL should look like postgres://USER:PASSWORD@HOST:PORT/DATABASE,"
        " with %%40, %%2F and %%3A for @, / and : in a password");
}

int weir_store_postgres(struct weir_store **out, const char *url,
                        const struct weir_store_options *options, struct weir_error *err)
{
    struct postgres *s;
    int64_t call_ms;
    int rc = check_url(url, err);

    *out = NULL;
    if (rc == 0) rc = weir__store_options(options, &call_ms, err);
    if (rc != 0) return rc;
    s = calloc(1, sizeof *s);
    if (s) s->url = strdup(url);
    if (!s || !s->url) {
        free(s);
        return weir__fail(err, WEIR_ENOMEM, "no memory for a store");
    }
    s->store.ops = &postgres_ops;
    s->call_ms = call_ms;
    *out = &s->store;
    return 0;
}
