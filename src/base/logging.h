/* logging.h - one line to whoever listens. The library itself prints nothing. */
#ifndef WEIR_BASE_LOGGING_H
#define WEIR_BASE_LOGGING_H

enum weir__level { WEIR__DEBUG, WEIR__INFO, WEIR__WARN, WEIR__ERROR };

/* line has no newline and lives for the call. Called from any thread, never under a lock that the
 * listener could need. A NULL fn is silence. */
struct weir__logger {
    void (*fn)(enum weir__level, const char *room, const char *line, void *user);
    void *user;
};

__attribute__((format(printf, 4, 5))) void weir__log_line(const struct weir__logger *,
                                                          enum weir__level, const char *room,
                                                          const char *fmt, ...);

#endif
