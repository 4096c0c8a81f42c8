/* postgres_line.h - the line to a PostgreSQL server: connected when it is needed, and again when it
 * broke; prepared statements with their values, one answer or many, never beyond the deadline.
 *
 * What is said in SQL is the owner's (postgres.c): it gives its statements and names them by their
 * number. The tables are made here, when a connection finds none. */
#ifndef WEIR_PROCESSOR_STORE_POSTGRES_LINE_H
#define WEIR_PROCESSOR_STORE_POSTGRES_LINE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "weir/error.h"

#define WEIR__POSTGRES_STATEMENTS_MAX 16
#define WEIR__POSTGRES_VALUES_MAX 12
#define WEIR__POSTGRES_INTEGER_BYTES 24

struct weir__postgres_statement {
    const char *name, *text;
};

/* The values of a statement, all as text. Begins with a count of 0; texts are borrowed. */
struct weir__postgres_values {
    const char *at[WEIR__POSTGRES_VALUES_MAX];
    char integers[WEIR__POSTGRES_VALUES_MAX][WEIR__POSTGRES_INTEGER_BYTES];
    int count;
};

void weir__postgres_add_text(struct weir__postgres_values *, const char *);
void weir__postgres_add_integer(struct weir__postgres_values *, int64_t);

struct weir__postgres_line {
    char *url;
    int64_t call_ms, deadline_ns; /* of the call under way */
    const struct weir__postgres_statement *statements;
    size_t statement_count;

    PGconn *conn;    /* NULL: the next call connects */
    bool hung_up;    /* the server has said good-bye on it */
    uint64_t number; /* grows with each connection: what was known of the last may not hold */
    bool prepared[WEIR__POSTGRES_STATEMENTS_MAX];
};

/* Looks at the URL, copies it, and does not connect yet. WEIR_EINVAL, in words that never repeat
 * what may be a password. `statements` is borrowed for as long as the line is open. */
int weir__postgres_open(struct weir__postgres_line *, const char *url, int64_t call_ms,
                        const struct weir__postgres_statement *statements, size_t count,
                        struct weir_error *);

void weir__postgres_close(struct weir__postgres_line *);

/* Begins a call: its deadline, and a connection. WEIR_EVERSION: tables of another format. */
int weir__postgres_begin(struct weir__postgres_line *, struct weir_error *);

/* One statement, one round trip; the first on a connection also prepares it. *out is for PQclear;
 * out may be NULL. When nothing was heard the connection is dropped, and it may have been done. */
int weir__postgres_execute(struct weir__postgres_line *, size_t which,
                           const struct weir__postgres_values *, PGresult **out,
                           struct weir_error *);

/* The same statement `count` times in one transaction, all sent before the first is answered:
 * `fill` gives the values of number i, `hear` is told how many rows it changed. Whatever goes wrong
 * drops the connection, and all of it may have been done or nothing. */
struct weir__postgres_series {
    void *self;
    size_t count;
    void (*fill)(void *self, size_t i, struct weir__postgres_values *);
    void (*hear)(void *self, size_t i, int64_t rows);
};

int weir__postgres_execute_all(struct weir__postgres_line *, size_t which,
                               const struct weir__postgres_series *, struct weir_error *);

/* A value of an answer; a text is borrowed from it. */
int64_t weir__postgres_integer(const PGresult *, int row, int column);
struct weir__bytes weir__postgres_text(const PGresult *, int row, int column);

#endif
