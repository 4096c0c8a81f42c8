#include "base/logging.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES_MAX 1024

void weir__log_line(const struct weir__logger *to, enum weir__level level, const char *room,
                    const char *fmt, ...)
{
    char line[LINE_BYTES_MAX];
    va_list args;

    if (!to || !to->fn) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    to->fn(level, room, line, to->user);
}
