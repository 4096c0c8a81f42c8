/* sqlite_file.h - the SQLite file under a store: found or made, checked, opened again when another
 * one has taken its name; transactions with a deadline, statements with their values, the clock.
 *
 * What is said in SQL is the owner's (sqlite.c): it gives its statements as texts and names them by
 * their number. They are prepared whenever the file is opened. */
#ifndef WEIR_PROCESSOR_STORE_SQLITE_FILE_H
#define WEIR_PROCESSOR_STORE_SQLITE_FILE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "weir/error.h"

#define WEIR__SQLITE_STATEMENTS_MAX 24

struct weir__sqlite_file {
    char *path;
    int64_t call_ms, deadline_ns; /* of the call under way */
    const char *const *statements;
    size_t statement_count;

    sqlite3 *db; /* NULL: it was lost, and the next call opens it again */
    sqlite3_stmt *prepared[WEIR__SQLITE_STATEMENTS_MAX];
    dev_t device; /* which file it was when it was opened */
    ino_t inode;
    int64_t base_ms; /* the store's time when the monotonic clock was 0 */
};

/* Makes the file when it is missing, and its tables when it is empty. WEIR_EINVAL: there is no
 * path, or it is somebody else's database. WEIR_EVERSION: a store of another format.
 * WEIR_ETIMEDOUT: others held it for call_ms. `statements` is borrowed for as long as the file is
 * open. After a failure it is as closed. */
int weir__sqlite_open(struct weir__sqlite_file *, const char *path, int64_t call_ms,
                      const char *const *statements, size_t count, struct weir_error *);

/* One that is all zero, or closed, is allowed. */
void weir__sqlite_close(struct weir__sqlite_file *);

/* Begins a call: its deadline, and its transaction, which has the writer's lock from the start when
 * it is to write, so that nothing fails half-way for want of it. A file that was moved away is
 * WEIR_EUNREACHABLE; one that came in its place is opened. */
int weir__sqlite_begin(struct weir__sqlite_file *, bool write, struct weir_error *);

/* Ends it: commits when rc is 0, else nothing of it was done. Returns rc, or why it could not be
 * committed. A transaction that cannot be ended leaves with the connection. */
int weir__sqlite_end(struct weir__sqlite_file *, int rc, struct weir_error *);

/* A statement with its values, one letter of `types` each: t text, i int64_t. Texts are borrowed
 * until it has been stepped to its end or the call has ended. */
sqlite3_stmt *weir__sqlite_ask(struct weir__sqlite_file *, size_t which, const char *types, ...);

/* 1: the statement stands at a row. 0: that was all. Else it failed. */
int weir__sqlite_step(struct weir__sqlite_file *, sqlite3_stmt *, struct weir_error *);

/* A statement without rows, done and reset. */
int weir__sqlite_run(struct weir__sqlite_file *, sqlite3_stmt *, struct weir_error *);

/* The store's clock: the same for all processes of this machine, never set, never going back. */
int64_t weir__sqlite_now_ms(const struct weir__sqlite_file *);
int64_t weir__sqlite_now_us(const struct weir__sqlite_file *);

#endif
