#include "cli/warning.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES_MAX 2048

void weir__print_line(const char *room, const char *line)
{
    char text[LINE_BYTES_MAX];
    size_t len = 0;

    for (; line[len] && len + 1 < sizeof text; len++) {
        text[len] = line[len];
        if ((unsigned char)line[len] < ' ' || line[len] == 127) text[len] = '?';
    }
    text[len] = '\0';
    fprintf(stderr, "weir: %s: %s\n", room, text);
}

void weir__warn(struct weir__warnings *w, const char *fmt, ...)
{
    char text[WEIR_ERROR_TEXT_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (w->logger.fn)
        weir__log_line(&w->logger, WEIR__WARN, "serve", "%s", text);
    else
        weir__print_line("serve", text);
    if (w->count < WEIR__WARNINGS_MAX) snprintf(w->text[w->count++], sizeof w->text[0], "%s", text);
}
