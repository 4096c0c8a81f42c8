#include "base/logging.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

#define LINE_BYTES_MAX 1024

void weir__log_line(const struct weir__logger *to, enum weir__level level, const char *room,
                    const char *fmt, ...)
{
    char text[LINE_BYTES_MAX], line[LINE_BYTES_MAX];
    va_list args;

    if (!to || !to->fn) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    /* It may be what a stranger sent: it must not look like two lines, or steer a terminal. */
    weir__printable(line, sizeof line, weir__bytes_of(text, strlen(text)));
    to->fn(level, room, line, to->user);
}
