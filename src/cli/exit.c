#include "cli/exit.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct ending {
    int code;
    enum weir__exit exit;
    const char *advice; /* NULL: the text says it all */
};

static const struct ending endings[] = {
    {WEIR_EINVAL, WEIR__EXIT_USAGE, NULL},
    {WEIR_ENOTFOUND, WEIR__EXIT_NOT_FOUND,
     "'weir hub list' and 'weir hub show HUB' show what is there"},
    {WEIR_ETIMEDOUT, WEIR__EXIT_TIMED_OUT, "a longer --timeout may help"},
    {WEIR_ELOCKED, WEIR__EXIT_UNREACHABLE, "stop that process, or name another --data"},
    {WEIR_EUNREACHABLE, WEIR__EXIT_UNREACHABLE, NULL},
    {WEIR_EEXIST, WEIR__EXIT_FAILURE, "choose another name or delete it first"},
    {WEIR_ENOSPACE, WEIR__EXIT_FAILURE, "make room on the disk and try again"},
    {WEIR_ECORRUPT, WEIR__EXIT_FAILURE, "'weir inspect' shows the extent; nothing was deleted"},
    {WEIR_EVERSION, WEIR__EXIT_FAILURE, "use the release that wrote it, or a newer one"},
    {WEIR_EFAILED, WEIR__EXIT_FAILURE, "check the disk, then start again"},
};

static const struct ending *ending_of(int code)
{
    static const struct ending other = {0, WEIR__EXIT_FAILURE, NULL};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (endings[i].code == code) return &endings[i];
    return &other;
}

static void print_error(int rc, const struct weir_error *err, const char *advice, const char *what,
                        va_list args)
{
    const char *why = err && err->code == rc ? err->text : weir_error_text(rc);
    size_t len = strlen(why);

    while (len > 0 && why[len - 1] == '.') len--; /* the advice follows */
    fflush(stdout);
    fputs("weir: ", stderr);
    vfprintf(stderr, what, args);
    fprintf(stderr, ": %.*s", (int)len, why);
    if (advice) fprintf(stderr, "; %s", advice);
    fputc('\n', stderr);
}

int weir__exit_error(int rc, const struct weir_error *err, const char *what, ...)
{
    const struct ending *end = ending_of(rc);
    va_list args;

    va_start(args, what);
    print_error(rc, err, end->advice, what, args);
    va_end(args);
    return (int)end->exit;
}

int weir__exit_advise(int rc, const struct weir_error *err, const char *advice, const char *what,
                      ...)
{
    const struct ending *end = ending_of(rc);
    va_list args;

    va_start(args, what);
    print_error(rc, err, advice ? advice : end->advice, what, args);
    va_end(args);
    return (int)end->exit;
}

int weir__exit_usage(const char *command, const char *why, ...)
{
    va_list args;

    fprintf(stderr, "weir: %s%s", command, *command ? ": " : "");
    va_start(args, why);
    vfprintf(stderr, why, args);
    va_end(args);
    fprintf(stderr, "; try 'weir %s%s--help'\n", command, *command ? " " : "");
    return WEIR__EXIT_USAGE;
}

/* The errno of a write that stdio made in between is lost; the pipe itself still knows. */
bool weir__exit_reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

int weir__exit_printed(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    if (weir__exit_reader_left()) return code;
    fprintf(stderr, "weir: the output could not be written; what is in the hub is not concerned\n");
    return WEIR__EXIT_FAILURE;
}
