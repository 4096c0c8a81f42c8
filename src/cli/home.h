/* home.h - the folder that a command works on, or the server. */
#ifndef WEIR_CLI_HOME_H
#define WEIR_CLI_HOME_H

#include "cli/args.h"
#include "weir/weir.h"

/* Opens it with the library's warnings and errors going to standard error. On failure says why and
 * returns an exit code; 0 is success. */
int weir__home_open(struct weir **out, const char *data, bool must_exist);

/* The connection string of --connect, else of WEIR_CONNECT unless --data was given; NULL: the folder
 * it is. */
const char *weir__home_connect(const struct weir__common *, const char *connect);
/* Opens that, or the folder, which must exist. */
int weir__home_reach(struct weir **out, const char *connect, const char *data);

/* Says that there is nothing, and returns the exit code for that. */
int weir__home_missing(const char *data);

/* Closes it; code is how the command ended so far. Returns how it ends. */
int weir__home_close(struct weir *, int code);

#endif
