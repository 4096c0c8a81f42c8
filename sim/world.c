/* world.c - what happens next: a heap of events by time, then by the order they were thought of. */
#include "sim/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS_PER_SECOND 50 /* that each partition gets */

bool weir__world_broken(const struct world *w)
{
    return w->result->violation[0] != '\0';
}

void weir__world_violate(struct world *w, const char *fmt, ...)
{
    va_list args;

    if (weir__world_broken(w)) return;
    va_start(args, fmt);
    vsnprintf(w->result->violation, sizeof w->result->violation, fmt, args);
    va_end(args);
    w->result->violation_ms = w->now_ms;
    w->result->violations++;
    weir__world_trace(w, "VIOLATION %s", w->result->violation);
}

void weir__world_trace(const struct world *w, const char *fmt, ...)
{
    va_list args;

    if (!w->options.trace) return;
    printf("%10.3f ", (double)w->now_ms / 1000);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

int64_t weir__world_roll(struct world *w, int64_t least, int64_t most)
{
    return weir__chance_between(&w->chance, least, most);
}

uint64_t weir__world_end(const struct world *w)
{
    return (uint64_t)w->now_ms * EVENTS_PER_SECOND / 1000;
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

void weir__world_push(struct world *w, int64_t in_ms, enum event_kind kind, uint32_t host,
                      uint32_t partition)
{
    const struct host *h = &w->hosts[host];
    bool about_one = kind == EVENT_DRAINED || kind == EVENT_ATTACH || kind == EVENT_STOLEN;
    struct event e = {.at_ms = w->now_ms + in_ms,
                      .order = w->order++,
                      .kind = kind,
                      .host = host,
                      .partition = partition,
                      .life = h->life,
                      .open = about_one ? h->pumps[partition].open : 0};
    size_t at = w->event_count++;

    if (w->event_count > w->event_cap) {
        w->event_cap = w->event_cap ? w->event_cap * 2 : 256;
        w->events = realloc(w->events, w->event_cap * sizeof *w->events);
        assert(w->events);
    }
    while (at > 0 && is_before(&e, &w->events[(at - 1) / 2])) {
        w->events[at] = w->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->events[at] = e;
}

static struct event pop(struct world *w)
{
    struct event first = w->events[0], last = w->events[--w->event_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->event_count) break;
        if (child + 1 < w->event_count && is_before(&w->events[child + 1], &w->events[child]))
            child++;
        if (!is_before(&w->events[child], &last)) break;
        w->events[at] = w->events[child];
        at = child;
    }
    w->events[at] = last;
    return first;
}

typedef void handle_fn(struct world *, const struct event *);

static handle_fn *const handlers[EVENT_KINDS] = {
    [EVENT_EFFECT] = weir__line_event, [EVENT_ANSWER] = weir__line_event,
    [EVENT_LATE] = weir__line_event,   [EVENT_WAKE] = weir__host_event,
    [EVENT_WORK] = weir__host_event,   [EVENT_DRAINED] = weir__host_event,
    [EVENT_RESUME] = weir__host_event, [EVENT_ATTACH] = weir__hub_event,
    [EVENT_STOLEN] = weir__hub_event,
};

void weir__world_run(struct world *w, int64_t until_ms)
{
    while (w->event_count > 0 && w->events[0].at_ms <= until_ms && !weir__world_broken(w)) {
        struct event e = pop(w);
        assert(e.at_ms >= w->now_ms);
        w->now_ms = e.at_ms;
        w->result->steps++;
        if (e.kind == EVENT_LATE || e.life == w->hosts[e.host].life) handlers[e.kind](w, &e);
    }
    if (w->now_ms < until_ms) w->now_ms = until_ms;
}
