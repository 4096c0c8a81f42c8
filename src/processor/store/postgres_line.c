/* postgres_line.c - see postgres_line.h.
 *
 * The schema `weir`, format 2:
 *
 *   weir.format  version
 *   weir.scope   id, space, hub, consumer_group, change
 *   weir.member  scope, id, instance, weight, expire_ms, beat_ms         key: scope, id
 *   weir.record  scope, partition, owner, instance, epoch, acquired_ms, modified_ms, version,
 *                marked, mark_offset, mark_sequence, rewinds, turn       key: scope, partition
 *
 * The columns mean what they mean in sqlite_file.c. Only keys are indexed and pages are left half
 * empty, so a beat or a mark is written beside its old row (HOT) and the tables stay as small as
 * they are. Deleting a row of weir.scope deletes what belongs to it.
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
#include "processor/store/postgres_line.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "processor/store/view.h"

#define FORMAT 2
#define FORMAT_TEXT WEIR__STORE_SQL(FORMAT)
#define CREATION_LOCK "6297555593760958834" /* the bytes "WeirWeir" */
#define DRAINS_MAX 16                       /* looks at what came while nothing was under way */

/* The planner is told that every statement here is a short lookup by key: what it knows of tables
 * that are new or were emptied may be wrong. A server that waits for the rest of a row of marks holds
 * their locks, and statement_timeout does not count that: so it looks whether we are still there, or
 * a copy that was cut off would keep its partitions from the others until TCP gives up. */
static const char *const session =
    "SET client_encoding = 'UTF8'; SET search_path = pg_catalog;"
    "SET default_transaction_isolation = 'read committed';"
    "SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off;"
    "SET enable_mergejoin = off;"
    "SET statement_timeout = %" PRId64 "; SET lock_timeout = %" PRId64 ";"
    "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2;"
    "SELECT to_regclass('weir.format') IS NOT NULL";

/* Run as one transaction. Whoever comes second finds it done when the lock is free. */
static const char *const tables =
    "SELECT pg_advisory_xact_lock(" CREATION_LOCK ");"
    "CREATE SCHEMA IF NOT EXISTS weir;"
    "CREATE TABLE IF NOT EXISTS weir.format (version int NOT NULL);"
    "INSERT INTO weir.format SELECT " FORMAT_TEXT " WHERE NOT EXISTS (SELECT 1 FROM weir.format);"
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
    " rewinds bigint NOT NULL, turn bigint NOT NULL, PRIMARY KEY (scope, partition)"
    ") WITH (fillfactor = 50)";

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

/* The next call connects again, and prepares again what it needs. */
static void drop_connection(struct weir__postgres_line *l)
{
    PQfinish(l->conn);
    l->conn = NULL;
    l->hung_up = false;
    memset(l->prepared, 0, sizeof l->prepared);
}

/* The first line of what libpq or the server said, which never has a password in it. */
static int fail_saying(struct weir_error *err, int rc, const char *text)
{
    return weir__fail(err, rc, "%.*s", (int)strcspn(text, "\n"), text);
}

/* By the table, or `otherwise`; drops the connection when it is of no use any more. */
static int fail_state(struct weir__postgres_line *l, const char *state, const char *text,
                      int otherwise, struct weir_error *err)
{
    const struct code_row *row = code_rows, *end = row + sizeof code_rows / sizeof *row;
    int rc;

    while (row < end && strncmp(row->state, state, strlen(row->state)) != 0) row++;
    rc = fail_saying(err, row < end ? row->rc : otherwise, text);
    if (row < end && row->drop) drop_connection(l);
    return rc;
}

static int fail_result(struct weir__postgres_line *l, const PGresult *result,
                       struct weir_error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    /* Without a state it was libpq that failed, and not the statement. */
    return fail_state(l, state ? state : "08", text ? text : PQresultErrorMessage(result), WEIR_EIO,
                      err);
}

/* The connection is gone, and with it the answer. */
static int fail_lost(struct weir__postgres_line *l, struct weir_error *err)
{
    int rc = fail_saying(err, WEIR_EUNREACHABLE, PQerrorMessage(l->conn));

    drop_connection(l);
    return rc;
}

/* ---- waiting ---- */

/* Until the socket has `events` or the deadline is over, and then the connection is dropped. */
static int await(struct weir__postgres_line *l, short events, struct weir_error *err)
{
    struct pollfd p = {.fd = PQsocket(l->conn), .events = events};
    int n;

    do {
        int64_t left_ms = (l->deadline_ns - weir__mono_ns() + 999999) / 1000000;

        n = left_ms <= 0 ? 0 : poll(&p, 1, (int)left_ms);
    } while (n < 0 && errno == EINTR);
    if (n > 0) return 0;
    drop_connection(l);
    return n < 0 ? weir__fail_errno(err, errno, "poll")
                 : weir__fail(err, WEIR_ETIMEDOUT, "no answer within %" PRId64 " ms", l->call_ms);
}

/* Sends what libpq has buffered, and takes in what comes meanwhile: a server that waits for us to
 * read would not read either. */
static int flush(struct weir__postgres_line *l, struct weir_error *err)
{
    int left, rc;

    while ((left = PQflush(l->conn)) == 1) {
        rc = await(l, POLLIN | POLLOUT, err);
        if (rc != 0) return rc;
        if (!PQconsumeInput(l->conn)) return fail_lost(l, err);
    }
    return left == 0 ? 0 : fail_lost(l, err);
}

/* The next result of what was sent; *out is NULL when it was the last. */
static int next_result(struct weir__postgres_line *l, PGresult **out, struct weir_error *err)
{
    while (PQisBusy(l->conn)) {
        int rc = await(l, POLLIN, err);

        if (rc != 0) return rc;
        if (!PQconsumeInput(l->conn)) return fail_lost(l, err);
    }
    *out = PQgetResult(l->conn);
    return 0;
}

/* After a PQsend, `sent` being what it returned: the last result of what was sent, for PQclear. */
static int answer(struct weir__postgres_line *l, int sent, PGresult **out, struct weir_error *err)
{
    PGresult *last = NULL, *next = NULL;
    ExecStatusType status;
    int rc = sent ? flush(l, err) : fail_lost(l, err);

    while (rc == 0 && (rc = next_result(l, &next, err)) == 0 && next) {
        PQclear(last);
        last = next;
    }
    status = PQresultStatus(last);
    if (rc == 0 && status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        rc = last ? fail_result(l, last, err) : fail_lost(l, err);
    if (rc == 0 && out)
        *out = last;
    else
        PQclear(last);
    return rc;
}

/* ---- connecting ---- */

/* What the server says without being asked. Before it closes a connection it says why, and the end
 * of the connection itself may come a moment later. */
static void hear_notice(void *self, const PGresult *notice)
{
    struct weir__postgres_line *l = self;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        l->hung_up = true;
}

/* libpq has no field for the SQLSTATE of a refused connection; a verbose message has it in it:
 * "... FATAL:  28P01: password authentication failed ...". */
static int fail_connect(struct weir__postgres_line *l, struct weir_error *err)
{
    const char *text = PQerrorMessage(l->conn), *at = strstr(text, ":  ");
    char state[6] = "";
    int rc;

    if (at && strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5)
        memcpy(state, at + 3, sizeof state - 1);
    if (PQconnectionNeedsPassword(l->conn)) memcpy(state, "28P01", sizeof state);
    rc = fail_state(l, state, text, WEIR_EUNREACHABLE, err);
    drop_connection(l);
    return rc;
}

int64_t weir__postgres_integer(const PGresult *result, int row, int column)
{
    return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

/* An older program beside us would not keep what the newer one promises: only our own will do. */
static int check_format(struct weir__postgres_line *l, struct weir_error *err)
{
    PGresult *result;
    int rc = answer(l, PQsendQuery(l->conn, "SELECT version FROM weir.format"), &result, err);
    int64_t version;

    if (rc != 0) return rc;
    version = PQntuples(result) == 1 ? weir__postgres_integer(result, 0, 0) : -1;
    PQclear(result);
    if (version == FORMAT) return 0;
    drop_connection(l);
    return weir__fail(err, WEIR_EVERSION,
                      "schema weir is a store of format %" PRId64
                      ", this program knows format %d: use another database, or the program that"
                      " made this one",
                      version, FORMAT);
}

static int set_up(struct weir__postgres_line *l, struct weir_error *err)
{
    char sql[512];
    PGresult *result;
    bool there;
    int rc;

    snprintf(sql, sizeof sql, session, l->call_ms, l->call_ms);
    rc = answer(l, PQsendQuery(l->conn, sql), &result, err);
    if (rc != 0) return rc;
    there = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    if (!there) rc = answer(l, PQsendQuery(l->conn, tables), NULL, err);
    return rc == 0 ? check_format(l, err) : rc;
}

/* Within what is left of the call's deadline, the tables included. */
static int connect_server(struct weir__postgres_line *l, struct weir_error *err)
{
    const char *const names[] = {"dbname", "fallback_application_name", NULL};
    const char *const values[] = {l->url, "weir", NULL};
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    int rc = 0;

    l->conn = PQconnectStartParams(names, values, 1);
    if (!l->conn) return weir__fail(err, WEIR_ENOMEM, "no memory for a connection");
    PQsetNoticeReceiver(l->conn, hear_notice, l);
    PQsetErrorVerbosity(l->conn, PQERRORS_VERBOSE);
    if (PQstatus(l->conn) == CONNECTION_BAD) return fail_connect(l, err);
    while (rc == 0 && next != PGRES_POLLING_OK) {
        rc = await(l, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, err);
        if (rc == 0) next = PQconnectPoll(l->conn);
        if (rc == 0 && next == PGRES_POLLING_FAILED) rc = fail_connect(l, err);
    }
    if (rc != 0) return rc;
    PQsetErrorVerbosity(l->conn, PQERRORS_DEFAULT);
    if (PQsetnonblocking(l->conn, 1) != 0) return fail_lost(l, err);
    rc = set_up(l, err);
    if (rc != 0) drop_connection(l);
    l->number++;
    return rc;
}

/* Whether the server has hung up since the last call. */
static bool is_alive(struct weir__postgres_line *l)
{
    struct pollfd p = {.fd = PQsocket(l->conn), .events = POLLIN};

    for (int i = 0; i < DRAINS_MAX && poll(&p, 1, 0) > 0; i++)
        if (!PQconsumeInput(l->conn)) return false;
    return PQstatus(l->conn) == CONNECTION_OK && !PQisBusy(l->conn) && !l->hung_up;
}

int weir__postgres_begin(struct weir__postgres_line *l, struct weir_error *err)
{
    l->deadline_ns = weir__deadline_ns(l->call_ms);
    if (l->conn && is_alive(l)) return 0;
    drop_connection(l);
    return connect_server(l, err);
}

/* ---- statements ---- */

void weir__postgres_add_text(struct weir__postgres_values *v, const char *text)
{
    assert(v->count < WEIR__POSTGRES_VALUES_MAX);
    v->at[v->count++] = text;
}

void weir__postgres_add_integer(struct weir__postgres_values *v, int64_t n)
{
    char *text = v->integers[v->count];

    assert(v->count < WEIR__POSTGRES_VALUES_MAX);
    snprintf(text, WEIR__POSTGRES_INTEGER_BYTES, "%" PRId64, n);
    weir__postgres_add_text(v, text);
}

static int prepare(struct weir__postgres_line *l, size_t which, struct weir_error *err)
{
    const struct weir__postgres_statement *q = &l->statements[which];
    int rc = 0;

    if (!l->prepared[which])
        rc = answer(l, PQsendPrepare(l->conn, q->name, q->text, 0, NULL), NULL, err);
    if (rc == 0) l->prepared[which] = true;
    return rc;
}

static int send_values(struct weir__postgres_line *l, size_t which,
                       const struct weir__postgres_values *v)
{
    return PQsendQueryPrepared(l->conn, l->statements[which].name, v->count, v->at, NULL, NULL, 0);
}

struct weir__bytes weir__postgres_text(const PGresult *result, int row, int column)
{
    return weir__bytes_of(PQgetvalue(result, row, column),
                          (size_t)PQgetlength(result, row, column));
}

int weir__postgres_execute(struct weir__postgres_line *l, size_t which,
                           const struct weir__postgres_values *v, PGresult **out,
                           struct weir_error *err)
{
    int rc = prepare(l, which, err);

    return rc == 0 ? answer(l, send_values(l, which, v), out, err) : rc;
}

static int send_all(struct weir__postgres_line *l, size_t which,
                    const struct weir__postgres_series *series)
{
    int sent = PQenterPipelineMode(l->conn);

    for (size_t i = 0; i < series->count && sent; i++) {
        struct weir__postgres_values v = {.count = 0};

        series->fill(series->self, i, &v);
        sent = send_values(l, which, &v);
    }
    return sent && PQpipelineSync(l->conn);
}

/* What became of one: a result, and the NULL that ends it. */
static int hear_one(struct weir__postgres_line *l, const struct weir__postgres_series *series,
                    size_t i, struct weir_error *err)
{
    PGresult *result = NULL, *none = NULL;
    int rc = next_result(l, &result, err);

    if (rc != 0) return rc;
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        rc = fail_result(l, result, err);
    else
        series->hear(series->self, i, strtoll(PQcmdTuples(result), NULL, 10));
    PQclear(result);
    return rc == 0 ? next_result(l, &none, err) : rc;
}

int weir__postgres_execute_all(struct weir__postgres_line *l, size_t which,
                               const struct weir__postgres_series *series, struct weir_error *err)
{
    PGresult *end = NULL;
    int rc = prepare(l, which, err);

    if (rc != 0) return rc;
    rc = send_all(l, which, series) ? flush(l, err) : fail_lost(l, err);
    for (size_t i = 0; i < series->count && rc == 0; i++) rc = hear_one(l, series, i, err);
    if (rc == 0) rc = next_result(l, &end, err);
    if (rc == 0 && PQresultStatus(end) != PGRES_PIPELINE_SYNC) rc = fail_result(l, end, err);
    if (rc == 0 && !PQexitPipelineMode(l->conn)) rc = fail_lost(l, err);
    PQclear(end);
    if (rc != 0) drop_connection(l);
    return rc;
}

/* ---- open and close ---- */

/* What libpq says of a URL it cannot read may quote it, password and all; and a password with a
 * bare '@' or '/' ends up in the host, the port or the database, which later messages quote. So
 * none of that is passed on. */
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

int weir__postgres_open(struct weir__postgres_line *l, const char *url, int64_t call_ms,
                        const struct weir__postgres_statement *statements, size_t count,
                        struct weir_error *err)
{
    int rc = check_url(url, err);

    assert(count <= WEIR__POSTGRES_STATEMENTS_MAX);
    *l = (struct weir__postgres_line){.call_ms = call_ms,
                                      .statements = statements,
                                      .statement_count = count};
    if (rc != 0) return rc;
    l->url = strdup(url);
    return l->url ? 0 : weir__fail(err, WEIR_ENOMEM, "no memory for a URL");
}

void weir__postgres_close(struct weir__postgres_line *l)
{
    drop_connection(l);
    if (l->url) explicit_bzero(l->url, strlen(l->url));
    free(l->url);
    l->url = NULL;
}
