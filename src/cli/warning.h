/* warning.h - what a server has to say on standard error while it goes on. */
#ifndef WEIR_CLI_WARNING_H
#define WEIR_CLI_WARNING_H

#include "base/logging.h"
#include "weir/error.h"

#define WEIR__WARNINGS_MAX 16 /* that are kept; more are only printed */

/* Of a server that starts: kept for the line that says it is ready. */
struct weir__warnings {
    struct weir__logger logger; /* gets them as well; nobody: they are printed */
    char text[WEIR__WARNINGS_MAX][WEIR_ERROR_TEXT_BYTES];
    unsigned count;
};

__attribute__((format(printf, 2, 3))) void weir__warn(struct weir__warnings *, const char *fmt,
                                                      ...);

/* "weir: room: line". The line may hold what strangers sent: nothing in it reaches the terminal but
 * as text. */
void weir__print_line(const char *room, const char *line);

#endif
