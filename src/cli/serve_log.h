/* serve_log.h - the log of weir serve, on standard error: one line each, with its time and level.
 *
 *   text     2026-11-16T20:01:02.345Z WARN server #17 127.0.0.1:40112: refused: InvalidSignature: ...
 *   logfmt   time=2026-11-16T20:01:02.345Z level=warn room=server connection=17 peer=127.0.0.1:40112
 *            message="refused: ..."
 *   json     {"time":"...","level":"warn","room":"server","connection":17,"peer":"...","message":"..."}
 *
 * Connection and peer are there when a line is about one. Nobody waits for a reader that has stopped
 * reading: lines that do not fit into its pipe are dropped, and the next one that does says how many. */
#ifndef WEIR_CLI_SERVE_LOG_H
#define WEIR_CLI_SERVE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include "server/server.h"

enum weir__serve_log_format { WEIR__SERVE_LOG_TEXT, WEIR__SERVE_LOG_LOGFMT, WEIR__SERVE_LOG_JSON };

struct weir__serve_log {
    enum weir__serve_log_format format;
    enum weir__level level; /* and above */
    atomic_ullong lost;
};

/* The words of the options; NULL: the default. false: no such word. */
bool weir__serve_log_format(struct weir__serve_log *, const char *word);
bool weir__serve_log_level(struct weir__serve_log *, const char *word);

/* For a struct weir__logger, and about connections; user is the log. */
void weir__serve_log_line(enum weir__level, const char *room, const char *line, void *user);
void weir__serve_log_about(enum weir__level, const char *room, const struct weir__server_about *,
                           const char *line, void *user);

#endif
