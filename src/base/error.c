#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct error_row {
    int code;
    enum weir_error_class class;
    const char *name;
    const char *text;
};

static const struct error_row rows[] = {
#define WEIR_X(name, value, class, text) {value, WEIR_CLASS_##class, #name, text},
    WEIR_ERRORS(WEIR_X)
#undef WEIR_X
};

static const struct error_row unknown_row = {0, WEIR_CLASS_FATAL, "WEIR_E?", "unknown error code"};

static const struct error_row *row_of(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code) return &rows[i];
    return &unknown_row;
}

enum weir_error_class weir_error_class(int code)
{
    return row_of(code)->class;
}

const char *weir_error_text(int code)
{
    return row_of(code)->text;
}

const char *weir_error_name(int code)
{
    return row_of(code)->name;
}

void weir__fail_text(struct weir_error *err, int code, const char *fmt, ...)
{
    va_list args;

    if (!err) return;
    err->code = code;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
}

void weir__wrap_text(struct weir_error *err, int code, const char *fmt, ...)
{
    char inner[WEIR_ERROR_TEXT_BYTES];
    va_list args;
    size_t used;
    int n;

    if (!err) return;
    memcpy(inner, err->text, sizeof inner);
    inner[sizeof inner - 1] = '\0';
    err->code = code;
    va_start(args, fmt);
    n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    used = n < 0 ? 0 : (size_t)n;
    if (used + 3 < sizeof err->text) {
        memcpy(err->text + used, ": ", 2);
        used += 2;
        snprintf(err->text + used, sizeof err->text - used, "%.*s",
                 (int)(sizeof err->text - used - 1), inner);
    }
}

int weir__fail_errno(struct weir_error *err, int errnum, const char *what)
{
    char text[128] = "";
    int code = WEIR_EIO;

    if (errnum == ENOSPC || errnum == EDQUOT) code = WEIR_ENOSPACE;
    if (errnum == ENOENT) code = WEIR_ENOTFOUND;
    if (errnum == EEXIST) code = WEIR_EEXIST;
    if (errnum == ENOMEM) code = WEIR_ENOMEM;
    if (errnum == EAGAIN || errnum == EBUSY) code = WEIR_EBUSY; /* over in a moment */
    if (strerror_r(errnum, text, sizeof text) != 0) snprintf(text, sizeof text, "errno %d", errnum);
    return weir__fail(err, code, "%s: %s", what, text);
}
