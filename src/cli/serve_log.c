#include "cli/serve_log.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 4000 /* less than what a pipe takes at once */
#define END_BYTES 3     /* of these, for what ends a line */
#define TIME_BYTES 32

static const char *const levels[] = {"debug", "info", "warn", "error"};
static const char *const shouts[] = {"DEBUG", "INFO", "WARN", "ERROR"};
static const char *const formats[] = {"text", "logfmt", "json"};

static bool find_word(const char *const *words, size_t count, const char *word, unsigned *out)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) != 0) continue;
        *out = (unsigned)i;
        return true;
    }
    return false;
}

bool weir__serve_log_format(struct weir__serve_log *log, const char *word)
{
    unsigned at = WEIR__SERVE_LOG_TEXT;
    bool known = !word || find_word(formats, sizeof formats / sizeof formats[0], word, &at);

    log->format = (enum weir__serve_log_format)at;
    return known;
}

bool weir__serve_log_level(struct weir__serve_log *log, const char *word)
{
    unsigned at = WEIR__INFO;
    bool known = !word || find_word(levels, sizeof levels / sizeof levels[0], word, &at);

    log->level = (enum weir__level)at;
    return known;
}

/* ---- one line ---- */

struct line {
    char at[LINE_BYTES];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
    size_t room = sizeof l->at - END_BYTES - l->len;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(l->at + l->len, room, fmt, args);
    va_end(args);
    if (len > 0) l->len += (size_t)len < room ? (size_t)len : room - 1;
}

/* Between quotes. What is logged has no controls in it. A cut falls in front of a backslash or behind
 * what it stands for. */
static void add_quoted(struct line *l, const char *text)
{
    add(l, "\"");
    for (; *text && l->len + 2 < sizeof l->at - END_BYTES; text++)
        add(l, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    l->at[l->len++] = '"';
}

static void add_time(struct line *l)
{
    struct timespec now;
    char text[TIME_BYTES];
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    add(l, "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

static void write_text(struct line *l, enum weir__level level, const char *room,
                       const struct weir__server_about *about, const char *text)
{
    add_time(l);
    add(l, " %s %s", shouts[level], room);
    if (about) add(l, " #%" PRIu64 " %s", about->connection, about->peer);
    add(l, ": %s", text);
}

static void write_logfmt(struct line *l, enum weir__level level, const char *room,
                         const struct weir__server_about *about, const char *text)
{
    add(l, "time=");
    add_time(l);
    add(l, " level=%s room=%s", levels[level], room);
    if (about) add(l, " connection=%" PRIu64 " peer=%s", about->connection, about->peer);
    add(l, " message=");
    add_quoted(l, text);
}

static void write_json(struct line *l, enum weir__level level, const char *room,
                       const struct weir__server_about *about, const char *text)
{
    add(l, "{\"time\":\"");
    add_time(l);
    add(l, "\",\"level\":\"%s\",\"room\":\"%s\"", levels[level], room);
    if (about)
        add(l, ",\"connection\":%" PRIu64 ",\"peer\":\"%s\"", about->connection, about->peer);
    add(l, ",\"message\":");
    add_quoted(l, text);
    l->at[l->len++] = '}';
}

static void (*const writers[])(struct line *, enum weir__level, const char *room,
                               const struct weir__server_about *, const char *text) = {
    [WEIR__SERVE_LOG_TEXT] = write_text,
    [WEIR__SERVE_LOG_LOGFMT] = write_logfmt,
    [WEIR__SERVE_LOG_JSON] = write_json,
};

/* ---- standard error ---- */

static bool print(struct line *l)
{
    struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};

    l->at[l->len++] = '\n';
    return poll(&to, 1, 0) == 1 && (to.revents & POLLOUT) &&
           write(STDERR_FILENO, l->at, l->len) == (ssize_t)l->len;
}

static void tell_lost(struct weir__serve_log *log)
{
    unsigned long long lost = atomic_exchange(&log->lost, 0);
    struct line l = {.len = 0};
    char text[96];

    if (!lost) return;
    snprintf(text, sizeof text, "%llu lines of this log were lost: nobody read them", lost);
    writers[log->format](&l, WEIR__WARN, "log", NULL, text);
    if (!print(&l)) atomic_fetch_add(&log->lost, lost);
}

void weir__serve_log_about(enum weir__level level, const char *room,
                           const struct weir__server_about *about, const char *line, void *user)
{
    struct weir__serve_log *log = user;
    struct line l = {.len = 0};

    if (level < log->level) return;
    tell_lost(log);
    writers[log->format](&l, level, room, about, line);
    if (!print(&l)) atomic_fetch_add(&log->lost, 1);
}

void weir__serve_log_line(enum weir__level level, const char *room, const char *line, void *user)
{
    weir__serve_log_about(level, room, NULL, line, user);
}
