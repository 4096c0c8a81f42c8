/* trial_report.c - what a trial found, for people and for programs. */
#include <inttypes.h>

#include "bench/trial.h"

static const struct {
    const char *name, *json;
    double part;
} points[] = {
    {"p50", "p50_us", 0.5},       {"p90", "p90_us", 0.9}, {"p99", "p99_us", 0.99},
    {"p99.9", "p99_9_us", 0.999}, {"max", "max_us", 1},
};

#define POINTS (sizeof points / sizeof points[0])

static const struct {
    const char *name, *timed;
} modes[] = {
    [WEIR__TRIAL_SEND] = {"send", "until a batch is acknowledged"},
    [WEIR__TRIAL_RECEIVE] = {"receive", "from one receive to the next"},
    [WEIR__TRIAL_E2E] = {"e2e", "from sending to receiving"},
};

static double per_second(const struct weir__trial_side *s, uint64_t n)
{
    return s->seconds > 0 ? (double)n / s->seconds : 0;
}

static double per_event_ns(const struct weir__trial_side *s, double seconds)
{
    return s->events ? seconds * 1e9 / (double)s->events : 0;
}

static void print_side(const char *what, const struct weir__trial_side *s, uint32_t partitions,
                       FILE *out)
{
    if (!s->events) return;
    fprintf(out,
            "%-9s %" PRIu64 " events, %.1f MB, %" PRIu32
            " partition%s, %.3f s: %.0f events/s, %.1f MB/s\n",
            what, s->events, (double)s->bytes / 1e6, partitions, partitions == 1 ? "" : "s",
            s->seconds, per_second(s, s->events), per_second(s, s->bytes) / 1e6);
    fprintf(out, "          CPU of this side: %.0f ns an event", per_event_ns(s, s->cpu_s));
    if (s->user_s + s->system_s > 0)
        fprintf(out, " (%.0f user, %.0f system)", per_event_ns(s, s->user_s),
                per_event_ns(s, s->system_s));
    fputc('\n', out);
}

static void print_lines(const struct weir__trial *t, FILE *out)
{
    print_side("sent", &t->sent, t->o.partitions, out);
    print_side("received", &t->received, t->o.partitions, out);
    if (t->times.total) {
        fprintf(out, "%s:", modes[t->o.mode].timed);
        for (size_t i = 0; i < POINTS; i++)
            fprintf(out, " %s %.3f ms", points[i].name,
                    (double)weir__histogram_at(&t->times, points[i].part) / 1e6);
        fputc('\n', out);
    }
    if (t->failed) fprintf(out, "%" PRIu64 " events were not acknowledged\n", t->failed);
    if (t->missing)
        fprintf(out, "%" PRIu64 " events were acknowledged and not received\n", t->missing);
    if (t->others) fprintf(out, "%" PRIu64 " events of others were passed over\n", t->others);
    if (!t->sent.events && !t->received.events) fputs("nothing was moved\n", out);
}

static void print_side_json(const char *what, const struct weir__trial_side *s, FILE *out)
{
    if (!s->events) return;
    fprintf(out,
            ",\"%s\":{\"events\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"seconds\":%.6f,\"events_per_s\":%.0f,\"cpu_ns\":%.1f",
            what, s->events, s->bytes, s->seconds, per_second(s, s->events),
            per_event_ns(s, s->cpu_s));
    if (s->user_s + s->system_s > 0)
        fprintf(out, ",\"user_ns\":%.1f,\"system_ns\":%.1f", per_event_ns(s, s->user_s),
                per_event_ns(s, s->system_s));
    fputc('}', out);
}

static void print_json(const struct weir__trial *t, FILE *out)
{
    fprintf(out, "{\"mode\":\"%s\",\"partitions\":%" PRIu32, modes[t->o.mode].name,
            t->o.partitions);
    if (t->o.mode != WEIR__TRIAL_RECEIVE)
        fprintf(out, ",\"size\":%" PRIu32 ",\"batch\":%" PRIu32 ",\"rate\":%" PRIu32, t->o.size,
                t->o.batch, t->o.rate);
    print_side_json("sent", &t->sent, out);
    print_side_json("received", &t->received, out);
    fprintf(out, ",\"failed\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"others\":%" PRIu64, t->failed,
            t->missing, t->others);
    for (size_t i = 0; t->times.total && i < POINTS; i++)
        fprintf(out, ",\"%s\":%.1f", points[i].json,
                (double)weir__histogram_at(&t->times, points[i].part) / 1e3);
    fputs("}\n", out);
}

void weir__trial_print(const struct weir__trial *t, FILE *out, bool json)
{
    if (json)
        print_json(t, out);
    else
        print_lines(t, out);
}
