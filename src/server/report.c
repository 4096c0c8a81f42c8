/* report.c - what is logged of connections, and how much of it.
 *
 *   debug   each connection, its end
 *   info    those that logged in, their end, and why
 *           links, connections and requests that went wrong; of strangers as below
 *   warn    logins that were refused: the first few, then how many more */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/printable.h"
#include "server/state.h"

#define TEXT_BYTES 1024

const char *weir__report_skip(const char *text, const char *peer)
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
    rest = weir__report_skip(text, peer);
    if (!s->about) {
        weir__log_line(&s->logger, level, room, "%s: %s", peer, rest);
        return;
    }
    weir__printable(line, sizeof line, weir__bytes_of(rest, strlen(rest)));
    s->about(level, room, &about, line, s->logger.user);
}

/* ---- what strangers can cause ---- */

static void tell_silent(struct weir__refusals *r, uint32_t silent)
{
    if (silent)
        weir__log_line(&r->server->logger, r->level, "server", "%" PRIu32 " more %s within %d s",
                       silent, r->what, WEIR__SERVER_REFUSALS_MS / 1000);
}

/* How many were silent; from here on they are told again. */
static uint32_t begin_again(struct weir__refusals *r, int64_t now_ms)
{
    uint32_t silent = r->silent;

    r->began_ms = now_ms;
    r->said = r->silent = 0;
    return silent;
}

static void end_time(void *refusals)
{
    struct weir__refusals *r = refusals;
    struct weir__server *s = r->server;
    uint32_t silent;

    weir__mutex_lock(&s->lock);
    silent = begin_again(r, s->clock.mono_ms(s->clock.self));
    weir__mutex_unlock(&s->lock);
    tell_silent(r, silent);
}

static void watch(void *refusals)
{
    struct weir__refusals *r = refusals;
    struct weir__loop *loop = weir__loops_at(r->server->loops, 0);

    weir__loop_timer_start(loop, &r->end, weir__loop_now_ms(loop) + WEIR__SERVER_REFUSALS_MS);
}

/* Whether this one is logged. */
static bool may_say(struct weir__refusals *r)
{
    struct weir__server *s = r->server;
    int64_t now_ms = s->clock.mono_ms(s->clock.self);
    uint32_t silent = 0;
    bool first = false, may;

    weir__mutex_lock(&s->lock);
    if (now_ms - r->began_ms >= WEIR__SERVER_REFUSALS_MS) silent = begin_again(r, now_ms);
    may = r->said < WEIR__SERVER_REFUSALS_MAX;
    if (may)
        r->said++;
    else
        first = r->silent++ == 0;
    weir__mutex_unlock(&s->lock);
    tell_silent(r, silent);
    if (first) weir__loop_post(weir__loops_at(s->loops, 0), &r->watch);
    return may;
}

bool weir__report_allows(struct weir__server *s, bool trusted)
{
    return trusted || may_say(&s->mishaps);
}

void weir__report_refused(struct weir__server *s, const char *room, uint64_t connection,
                          const char *peer, const char *why)
{
    atomic_fetch_add(&s->logins_refused, 1);
    if (may_say(&s->refusals))
        weir__report(s, WEIR__WARN, room, connection, peer, "refused: %s", why);
}

static void init_refusals(struct weir__refusals *r, struct weir__server *s, enum weir__level level,
                          const char *what)
{
    r->server = s;
    r->level = level;
    r->what = what;
    r->began_ms = INT64_MIN / 2;
    weir__post_init(&r->watch, watch, r);
    weir__timer_init(&r->end, end_time, r);
}

void weir__report_init(struct weir__server *s)
{
    init_refusals(&s->refusals, s, WEIR__WARN, "logins were refused");
    init_refusals(&s->mishaps, s, WEIR__INFO, "lines about clients without a login were left out");
}

void weir__report_fini(struct weir__server *s)
{
    tell_silent(&s->refusals, s->refusals.silent);
    tell_silent(&s->mishaps, s->mishaps.silent);
}
