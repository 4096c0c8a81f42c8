/* home.h - the folder that a command works on. */
#ifndef WEIR_CLI_HOME_H
#define WEIR_CLI_HOME_H

#include "weir/weir.h"

/* Opens it with the library's warnings and errors going to standard error. On failure says why and
 * returns an exit code; 0 is success. */
int weir__home_open(struct weir **out, const char *data, bool must_exist);

/* Says that there is nothing, and returns the exit code for that. */
int weir__home_missing(const char *data);

/* Closes it; code is how the command ended so far. Returns how it ends. */
int weir__home_close(struct weir *, int code);

#endif
