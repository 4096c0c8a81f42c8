#include "bench/progress.h"

#include <inttypes.h>

#include "base/thread.h"

#define EVERY_NS 100000000
#define WIDTH 30

static double fraction(const struct weir__progress *p, uint64_t events, int64_t ns)
{
    double by_events = p->events_goal ? (double)events / (double)p->events_goal : 0;
    double by_time = p->time_goal_ns ? (double)ns / (double)p->time_goal_ns : 0;
    double most = by_events > by_time ? by_events : by_time;

    return most < 1 ? most : 1;
}

void weir__progress_begin(struct weir__progress *p, FILE *to, const char *what,
                          uint64_t events_goal, int64_t time_goal_ns)
{
    int64_t now_ns = weir__mono_ns();

    *p = (struct weir__progress){.to = to,
                                 .what = what,
                                 .events_goal = events_goal,
                                 .time_goal_ns = time_goal_ns,
                                 .began_ns = now_ns,
                                 .next_ns = now_ns + EVERY_NS};
}

void weir__progress_show(struct weir__progress *p, uint64_t events)
{
    static const char full[] = "##############################",
                      none[] = "..............................";
    int64_t now_ns, ns;
    int done;

    if (!p->to || (now_ns = weir__mono_ns()) < p->next_ns) return;
    p->next_ns = now_ns + EVERY_NS;
    ns = now_ns - p->began_ns;
    done = (int)(fraction(p, events, ns) * WIDTH);
    fprintf(p->to, "\r%s [%.*s%.*s] %" PRIu64 " events, %.0f/s\x1b[K", p->what, done, full,
            WIDTH - done, none, events, (double)events * 1e9 / (double)ns);
    fflush(p->to);
}

void weir__progress_end(struct weir__progress *p)
{
    if (!p->to) return;
    fputs("\r\x1b[K", p->to);
    fflush(p->to);
}
