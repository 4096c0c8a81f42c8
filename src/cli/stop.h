/* stop.h - Ctrl-C and SIGTERM as an orderly end, and what SIGHUP asks of a server.
 *
 * A thread waits for the signals, so no code runs inside a handler. The first one is noted; a
 * second, unless it comes in the same moment, ends the process at once, for whoever cannot wait.
 * Start it before any other thread, so that they inherit the blocked signals. */
#ifndef WEIR_CLI_STOP_H
#define WEIR_CLI_STOP_H

#include <stdbool.h>

#include "base/error.h"

struct weir__stop;

/* fn runs on the stop thread at the first signal; it may be NULL. */
int weir__stop_start(struct weir__stop **out, void (*fn)(void *user), void *user,
                     struct weir_error *);

/* The same for a server, which SIGHUP does not end: it reads its files again. Unless its terminal is
 * what has gone, which is a reason to end. */
int weir__stop_start_server(struct weir__stop **out, struct weir_error *);

/* Whether SIGHUP came since the last call. The descriptor below becomes readable for it. */
bool weir__stop_take_hup(struct weir__stop *);

bool weir__stop_asked(const struct weir__stop *);

/* Becomes readable at the first signal. */
int weir__stop_fd(const struct weir__stop *);

/* After this fn does not run any more. NULL is allowed. */
void weir__stop_end(struct weir__stop *);

#endif
