/* sql.h - statements of a test's own to a PostgreSQL server, beside a store's. */
#ifndef WEIR_TESTS_CONTRACT_SQL_H
#define WEIR_TESTS_CONTRACT_SQL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <libpq-fe.h>

/* Runs it and keeps the first value that it gives, or "". */
static inline void ask_sql(const char *url, const char *sql, char *to, size_t cap)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *result;
    ExecStatusType status;

    PQclear(PQexec(conn, "SET client_min_messages = warning; SET lock_timeout = '30s'"));
    result = PQexec(conn, sql);
    status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    snprintf(to, cap, "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
}

static inline void run_sql(const char *url, const char *sql)
{
    char none[64];

    ask_sql(url, sql, none, sizeof none);
}

#endif
