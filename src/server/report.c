/* report.c - what is logged of connections, and how much of it.
 *
 *   debug   each connection, its end
 *   info    those that logged in, their end, and why
 *   warn    logins that were refused: the first few, then how many more */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/printable.h"
#include "server/state.h"

#define TEXT_BYTES 1024

/* "127.0.0.1:1234: Connection reset by peer" without its beginning. */
static const char *skip_peer(const char *text, const char *peer)
{
    size_t len = strlen(peer);

    if (strncmp(text, peer, len) != 0) return text;
    return text + len + strspn(text + len, ": ");
}

void weir__report(const struct weir__server *s, enum weir__level level, const char *room,
                  uint64_t connection, const char *peer, const char *fmt, ...)
{
    struct weir__server_about about = {connection, peer};
    char text[TEXT_BYTES], line[TEXT_BYTES];
    const char *rest;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rest = skip_peer(text, peer);
    if (!s->about) {
        weir__log_line(&s->logger, level, room, "%s: %s", peer, rest);
        return;
    }
    weir__printable(line, sizeof line, weir__bytes_of(rest, strlen(rest)));
    s->about(level, room, &about, line, s->logger.user);
}

/* ---- refused logins ---- */

static void tell_silent(struct weir__server *s, uint32_t silent)
{
    if (silent)
        weir__log_line(&s->logger, WEIR__WARN, "server",
                       "%" PRIu32 " more logins were refused within %d s", silent,
                       WEIR__SERVER_REFUSALS_MS / 1000);
}

/* How many were silent; from here on they are told again. */
static uint32_t begin_again(struct weir__server *s, int64_t now_ms)
{
    uint32_t silent = s->refusals.silent;

    s->refusals.began_ms = now_ms;
    s->refusals.said = s->refusals.silent = 0;
    return silent;
}

static void end_time(void *server)
{
    struct weir__server *s = server;
    uint32_t silent;

    weir__mutex_lock(&s->lock);
    silent = begin_again(s, s->clock.mono_ms(s->clock.self));
    weir__mutex_unlock(&s->lock);
    tell_silent(s, silent);
}

static void watch(void *server)
{
    struct weir__server *s = server;
    struct weir__loop *loop = weir__loops_at(s->loops, 0);

    weir__loop_timer_start(loop, &s->refusals.end,
                           weir__loop_now_ms(loop) + WEIR__SERVER_REFUSALS_MS);
}

/* Whether this one is logged. */
static bool may_say(struct weir__server *s)
{
    struct weir__refusals *r = &s->refusals;
    int64_t now_ms = s->clock.mono_ms(s->clock.self);
    uint32_t silent = 0;
    bool first = false, may;

    weir__mutex_lock(&s->lock);
    if (now_ms - r->began_ms >= WEIR__SERVER_REFUSALS_MS) silent = begin_again(s, now_ms);
    may = r->said < WEIR__SERVER_REFUSALS_MAX;
    if (may)
        r->said++;
    else
        first = r->silent++ == 0;
    weir__mutex_unlock(&s->lock);
    tell_silent(s, silent);
    if (first) weir__loop_post(weir__loops_at(s->loops, 0), &r->watch);
    return may;
}

void weir__report_refused(struct weir__server *s, const char *room, uint64_t connection,
                          const char *peer, const char *why)
{
    atomic_fetch_add(&s->logins_refused, 1);
    if (may_say(s)) weir__report(s, WEIR__WARN, room, connection, peer, "refused: %s", why);
}

void weir__report_init(struct weir__server *s)
{
    s->refusals.began_ms = INT64_MIN / 2;
    weir__post_init(&s->refusals.watch, watch, s);
    weir__timer_init(&s->refusals.end, end_time, s);
}

void weir__report_fini(struct weir__server *s)
{
    tell_silent(s, s->refusals.silent);
}
