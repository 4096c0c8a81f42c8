/* exit.h - how a command ends: an exit code that scripts can tell apart, and one line on standard
 * error that says what was tried, why it failed and what to do: "weir: what: why; what to do". */
#ifndef WEIR_CLI_EXIT_H
#define WEIR_CLI_EXIT_H

#include <stdbool.h>

#include "weir/error.h"

enum weir__exit {
    WEIR__EXIT_OK = 0,
    WEIR__EXIT_FAILURE = 1,
    WEIR__EXIT_USAGE = 2,
    WEIR__EXIT_NOT_FOUND = 3,
    WEIR__EXIT_UNREACHABLE = 4, /* for a folder: another process holds it */
    WEIR__EXIT_TIMED_OUT = 5
};

/* Prints the error of a library call made while doing `what`, with advice where there is any, and
 * returns the exit code for rc. */
__attribute__((format(printf, 3, 4))) int weir__exit_error(int rc, const struct weir_error *err,
                                                           const char *what, ...);

/* The same with advice of the command's own; NULL: the usual one. */
__attribute__((format(printf, 4, 5))) int
weir__exit_advise(int rc, const struct weir_error *err, const char *advice, const char *what, ...);

/* Prints what is wrong with the command line and returns WEIR__EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int weir__exit_usage(const char *command, const char *why,
                                                           ...);

/* Whether standard output is a pipe or a socket that nobody reads any more. For commands that print
 * only now and then: no write fails as long as there is nothing to write. */
bool weir__exit_reader_left(void);

/* The end of every command that prints: sees to it that standard output was written. Returns code,
 * also when the reader has left, who then had enough; else says so and returns
 * WEIR__EXIT_FAILURE. */
int weir__exit_printed(int code);

#endif
