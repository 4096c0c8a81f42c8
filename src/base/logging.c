#include "base/logging.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES_MAX 1024

/* What is logged may be what a stranger sent: it must not look like two lines, or steer a terminal. */
static void replace_controls(char *line)
{
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 0x7f) *line = '?';
}

void weir__log_line(const struct weir__logger *to, enum weir__level level, const char *room,
                    const char *fmt, ...)
{
    char line[LINE_BYTES_MAX];
    va_list args;

    if (!to || !to->fn) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    replace_controls(line);
    to->fn(level, room, line, to->user);
}
