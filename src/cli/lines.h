/* lines.h - lines from a file descriptor, many at a time.
 *
 * A fill reads what is there and gives every complete line of it, so that what a person types is
 * seen at once and what a pipe pours comes by the hundred. Lines may hold any byte but '\n'. */
#ifndef WEIR_CLI_LINES_H
#define WEIR_CLI_LINES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct weir__lines {
    int fd;
    int stop_fd; /* readable: end as if the input had ended; -1: none */
    bool ended;
    size_t line_max;
    struct weir__buf buf;
    size_t given;   /* of buf: lines that were taken */
    size_t looked;  /* of buf: no newline between given and here */
    uint64_t count; /* lines taken */
};

void weir__lines_init(struct weir__lines *, int fd, int stop_fd, size_t line_max);
void weir__lines_fini(struct weir__lines *);

/* Waits and reads once. The lines taken before are gone afterwards. WEIR_ETOOBIG: a line is longer
 * than line_max. `ended` is set when there is nothing more to read. */
int weir__lines_fill(struct weir__lines *, struct weir_error *);

/* The next complete line, without its '\n', or false: fill again. After the end the last line comes
 * also when nothing ends it. */
bool weir__lines_next(struct weir__lines *, struct weir__bytes *out);

#endif
