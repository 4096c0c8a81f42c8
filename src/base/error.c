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

bool weir__error_known(int code)
{
    return row_of(code) != &unknown_row;
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

/* What is not here is WEIR_EIO. Where something has run out for the moment, which says nothing of
 * the thing that was asked for, the text says what it is and what helps. */
static const struct errno_row {
    int errnum, code;
    const char *hint;
} errno_rows[] = {
    {ENOSPC, WEIR_ENOSPACE, ""},
    {EDQUOT, WEIR_ENOSPACE, ""},
    {ENOENT, WEIR_ENOTFOUND, ""},
    {EEXIST, WEIR_EEXIST, ""},
    {ENOMEM, WEIR_ENOMEM, ""},
    {EMFILE, WEIR_EBUSY, " (this process has no file descriptor left: raise ulimit -n)"},
    {ENFILE, WEIR_EBUSY, " (the machine has no file descriptor left: raise fs.file-max)"},
    {EBUSY, WEIR_EBUSY, ""},
    {ELOOP, WEIR_EIO, " (it is a symbolic link, and those are not followed here)"},
    {EAGAIN, WEIR_EBUSY, " (the machine is short of it for now: threads, memory or locks)"},
};

int weir__fail_errno(struct weir_error *err, int errnum, const char *what)
{
    struct errno_row row = {errnum, WEIR_EIO, ""};
    char text[128] = "";

    for (size_t i = 0; i < sizeof errno_rows / sizeof errno_rows[0]; i++)
        if (errno_rows[i].errnum == errnum) row = errno_rows[i];
    if (strerror_r(errnum, text, sizeof text) != 0) snprintf(text, sizeof text, "errno %d", errnum);
    return weir__fail(err, row.code, "%s: %s%s", what, text, row.hint);
}
