/* tail.c - weir tail: print the events of one partition, or of all of them.
 *
 * Each partition is a stream with the events of its last receive. The oldest event at hand, by
 * enqueued time and then by offset, is printed next; a stream that ran dry is asked for more
 * without waiting. Only when all are dry does tail wait. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/from.h"
#include "cli/home.h"
#include "cli/json.h"
#include "cli/stop.h"
#include "client/weir.h"

#define RECEIVE_EVENTS_MAX 1000u
#define MEMORY_BYTES ((size_t)16 << 20) /* for all streams together */
#define STREAM_BYTES_MIN ((size_t)16 << 10)
#define WAIT_MS 50         /* for one of many streams, before it is another's turn */
#define READER_LOOK_MS 500 /* while nothing comes, between looks whether our reader is there */

struct tail_options {
    struct weir__common common;
    const char *from, *group;
    struct weir__args_number partition, count, timeout;
    bool until_end, json;
};

static const struct weir__args_row tail_rows[] = {
    WEIR__ARGS_CONNECT,
    {"from", WEIR__ARGS_TEXT, offsetof(struct tail_options, from), "WHERE",
     "earliest (default), latest, offset:X, sequence:N, time:T"},
    {"partition", WEIR__ARGS_NUMBER, offsetof(struct tail_options, partition), "N",
     "this partition only (default: all of them)"},
    {"group", WEIR__ARGS_TEXT, offsetof(struct tail_options, group), "NAME",
     "read as this consumer group (default $Default)"},
    {"count", WEIR__ARGS_NUMBER, offsetof(struct tail_options, count), "N",
     "stop after so many events"},
    {"until-end", WEIR__ARGS_FLAG, offsetof(struct tail_options, until_end), NULL,
     "stop at the present end instead of following"},
    {"timeout", WEIR__ARGS_DURATION, offsetof(struct tail_options, timeout), "TIME",
     "stop after so long, with exit code 5, like 10s"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct tail_options, json), NULL,
     "print everything about an event, as one line of JSON"},
    {0},
};

struct stream {
    struct weir_receiver *receiver;
    uint32_t partition;
    struct weir_received got;
    size_t next;   /* of got: to be printed */
    uint64_t at;   /* sequence number of the next one, or the smallest that it can have */
    uint64_t end;  /* stop in front of this sequence number */
    bool at_known; /* not before the first event, when it is an offset or a time to begin at */
    bool done;
};

struct tailing {
    const struct tail_options *options;
    struct weir *weir;
    bool wire; /* not a folder */
    struct weir__stop *stop;
    struct stream *streams;
    uint32_t count, turn;
    uint64_t left; /* events to print */
    int64_t deadline_ns;
    bool damaged;
    struct weir_error err;
};

/* ---- one stream ---- */

static const struct weir_event *peek(const struct stream *s)
{
    return s->next < s->got.count ? &s->got.events[s->next] : NULL;
}

/* Damage is reported and passed over: the events behind it are good. */
static int pass_damage(struct tailing *t, struct stream *s)
{
    uint64_t first, last;
    int rc;

    weir__exit_error(WEIR_ECORRUPT, &t->err, "tail: partition %" PRIu32, s->partition);
    t->damaged = true;
    rc = weir_receiver_skip(s->receiver, &first, &last, &t->err);
    if (rc != 0) return rc;
    s->at = last + 1;
    s->at_known = true;
    return 0;
}

/* A server passes over damage by itself, and AMQP cannot say which of the two it was. */
static void tell_missed(const struct tailing *t, const struct stream *s, uint64_t missed)
{
    uint64_t next = s->got.events[0].sequence;

    fprintf(stderr,
            "weir: tail: partition %" PRIu32 ": events %" PRIu64 " to %" PRIu64
            " are missing: %s\n",
            s->partition, next - missed, next - 1,
            t->wire ? "they expired, or are damaged; the server's log tells damage"
                    : "they expired before they could be read");
}

/* Where the partition begins by now, as far as the server says. */
static void pass_expired(const struct tailing *t, struct stream *s)
{
    struct weir_partition_info info;

    if (weir_partition_info(t->weir, t->options->common.word[0], s->partition, &info, NULL) == 0 &&
        info.begin_sequence > s->at)
        s->at = info.begin_sequence;
}

/* How many events are missing in front of what was received. A receiver does not know it of its first. */
static uint64_t missed_by(const struct tailing *t, struct stream *s)
{
    uint64_t first = s->got.events[0].sequence;

    if (s->got.missed > 0 || !t->wire || !s->at_known || first <= s->at) return s->got.missed;
    pass_expired(t, s);
    return first > s->at ? first - s->at : 0;
}

/* The server has sent all there is in front of the end that --until-end stops at, or has passed over it,
 * and some did not come: that is damaged, unless it expired meanwhile. Whether there was anything to tell. */
static bool tell_end(struct tailing *t, struct stream *s)
{
    if (!t->wire || s->at >= s->end) return false;
    pass_expired(t, s);
    if (s->at >= s->end) return false;
    t->damaged = true;
    fprintf(stderr, "weir: tail: partition %" PRIu32 ": events ", s->partition);
    if (s->at_known)
        fprintf(stderr, "%" PRIu64 " to", s->at);
    else
        fprintf(stderr, "up to");
    fprintf(stderr, " %" PRIu64 " are missing: they are damaged; the server's log tells more\n",
            s->end - 1);
    return true;
}

/* Nothing comes now. In a folder there is nothing more; over a connection it may be under way. */
static void reach_end(struct tailing *t, struct stream *s)
{
    s->done = t->options->until_end && weir__receiver_ended(s->receiver);
    if (s->done) tell_end(t, s);
}

/* What was received begins behind a gap, perhaps, and may be behind the end. */
static void look_at_first(struct tailing *t, struct stream *s)
{
    uint64_t missed;

    if (s->got.events[0].sequence >= s->end) {
        s->done = true;
        if (tell_end(t, s)) return;
    }
    missed = missed_by(t, s);
    if (missed > 0) tell_missed(t, s, missed);
}

/* Asks a dry stream for more. WEIR_ETIMEDOUT is no error here, nor a cancel. */
static int fill(struct tailing *t, struct stream *s, int64_t timeout_ms)
{
    int rc;

    if (s->done || peek(s)) return 0;
    s->next = 0;
    rc = weir_receiver_receive(s->receiver, RECEIVE_EVENTS_MAX, timeout_ms, &s->got, &t->err);
    if (rc == 0) look_at_first(t, s);
    if (rc == WEIR_ECORRUPT) return pass_damage(t, s);
    if (rc == WEIR_ECANCELED) return 0;
    if (rc == WEIR_ETIMEDOUT) reach_end(t, s);
    if (s->done) s->got.count = 0;
    return rc == WEIR_ETIMEDOUT ? 0 : rc;
}

static void print_next(struct tailing *t, struct stream *s)
{
    const struct weir_event *e = peek(s);

    if (t->options->json) {
        weir__json_event(stdout, e);
    } else {
        fwrite(e->body.at, 1, e->body.len, stdout);
        putchar('\n');
    }
    t->left--;
    s->next++;
    s->at = e->sequence + 1;
    s->at_known = true;
    if (e->sequence + 1 >= s->end) {
        s->done = true;
        s->got.count = 0;
    }
}

/* ---- all of them ---- */

static int fill_all(struct tailing *t, uint32_t *out_open)
{
    int rc = 0;

    *out_open = 0;
    for (uint32_t i = 0; rc == 0 && i < t->count; i++) {
        rc = fill(t, &t->streams[i], 0);
        *out_open += !t->streams[i].done;
    }
    return rc;
}

static bool is_before(const struct weir_event *a, const struct weir_event *b)
{
    if (a->enqueued_time_ms != b->enqueued_time_ms)
        return a->enqueued_time_ms < b->enqueued_time_ms;
    return a->offset < b->offset;
}

static struct stream *oldest(struct tailing *t)
{
    struct stream *best = NULL;

    for (uint32_t i = 0; i < t->count; i++) {
        const struct weir_event *e = peek(&t->streams[i]);
        if (e && (!best || is_before(e, peek(best)))) best = &t->streams[i];
    }
    return best;
}

/* Prints what is at hand. A stream that was dry before is asked again in the next round, which
 * comes after RECEIVE_EVENTS_MAX events at the latest. */
static int print_round(struct tailing *t, bool *out_any)
{
    struct stream *s;
    int rc = 0;

    *out_any = false;
    for (uint32_t i = 0; i < RECEIVE_EVENTS_MAX && rc == 0 && t->left > 0; i++) {
        s = oldest(t);
        if (!s) break;
        print_next(t, s);
        *out_any = true;
        rc = fill(t, s, 0);
    }
    return rc;
}

static int64_t milliseconds_left(const struct tailing *t)
{
    int64_t now = weir__mono_ns();

    if (t->deadline_ns == INT64_MAX) return -1;
    return now >= t->deadline_ns ? 0 : (t->deadline_ns - now) / 1000000 + 1;
}

/* Waits at one stream; a signal cancels that when it is the only one. */
static int wait_for_more(struct tailing *t)
{
    int64_t wait_ms = milliseconds_left(t), most_ms = t->count > 1 ? WAIT_MS : READER_LOOK_MS;

    if (wait_ms < 0 || wait_ms > most_ms) wait_ms = most_ms;
    t->turn = (t->turn + 1) % t->count;
    return fill(t, &t->streams[t->turn], wait_ms);
}

/* Until there is nothing more to print, by whichever of the rules. */
static int follow(struct tailing *t)
{
    uint32_t open = 1;
    bool any;
    int rc = 0;

    while (rc == 0 && open > 0 && t->left > 0 && !weir__stop_asked(t->stop)) {
        rc = fill_all(t, &open);
        if (rc == 0) rc = print_round(t, &any);
        if (rc != 0 || any) continue;
        if (fflush(stdout) != 0 || ferror(stdout) || weir__exit_reader_left()) break;
        if (open > 0 && milliseconds_left(t) == 0)
            return weir__fail(&t->err, WEIR_ETIMEDOUT, "the end was not reached in time");
        if (open > 0) rc = wait_for_more(t);
    }
    return rc;
}

/* ---- beginning and end ---- */

/* One position is asked of all partitions; those that end before it begin at their end. */
static void hold_in_range(struct weir_position *p, const struct weir_partition_info *info)
{
    if ((p->from == WEIR_FROM_SEQUENCE && (uint64_t)p->value >= info->next_sequence) ||
        (p->from == WEIR_FROM_OFFSET && (uint64_t)p->value > info->last_offset))
        *p = (struct weir_position){.from = WEIR_FROM_LATEST};
}

/* Whether there is nothing between a position and the present end. */
static bool is_at_end(const struct weir_position *p, const struct weir_partition_info *info)
{
    uint64_t value = (uint64_t)p->value + p->after;

    if (info->begin_sequence == info->next_sequence || p->from == WEIR_FROM_LATEST) return true;
    if (p->from == WEIR_FROM_SEQUENCE) return value >= info->next_sequence;
    if (p->from == WEIR_FROM_OFFSET) return value > info->last_offset;
    return p->from == WEIR_FROM_TIME && (int64_t)value > info->last_time_ms;
}

/* The first number that a position can stand for. */
static uint64_t first_at(const struct weir_position *p, const struct weir_partition_info *info)
{
    uint64_t value = (uint64_t)p->value + p->after;

    if (p->from == WEIR_FROM_SEQUENCE && value > info->begin_sequence) return value;
    return p->from == WEIR_FROM_LATEST ? info->next_sequence : info->begin_sequence;
}

static int open_stream(struct tailing *t, struct weir *w, struct stream *s, uint32_t partition,
                       struct weir_position position)
{
    const char *hub = t->options->common.word[0];
    struct weir_receiver_options options = {.size = sizeof options, .group = t->options->group};
    struct weir_partition_info info;
    int rc = weir_partition_info(w, hub, partition, &info, &t->err);

    if (rc != 0) return rc;
    s->partition = partition;
    if (t->count > 1) hold_in_range(&position, &info);
    s->at = first_at(&position, &info);
    s->at_known = position.from == WEIR_FROM_EARLIEST || position.from == WEIR_FROM_SEQUENCE;
    s->end = t->options->until_end ? info.next_sequence : UINT64_MAX;
    s->done = t->options->until_end && is_at_end(&position, &info);
    options.position = position;
    options.name = "weir tail";
    options.bytes_max = MEMORY_BYTES / t->count;
    if (options.bytes_max < STREAM_BYTES_MIN) options.bytes_max = STREAM_BYTES_MIN;
    return weir_receiver_open(&s->receiver, w, hub, partition, &options, &t->err);
}

static int open_streams(struct tailing *t, struct weir *w, struct weir_position position)
{
    const struct weir__args_number *only = &t->options->partition;
    struct weir_hub_info hub;
    int rc = weir_hub_info(w, t->options->common.word[0], &hub, &t->err);

    if (rc != 0) return rc;
    t->count = only->given ? 1 : hub.partitions;
    t->streams = calloc(t->count, sizeof *t->streams);
    if (!t->streams) return weir__fail(&t->err, WEIR_ENOMEM, "no memory");
    for (uint32_t i = 0; rc == 0 && i < t->count; i++)
        rc = open_stream(t, w, &t->streams[i], only->given ? (uint32_t)only->value : i, position);
    return rc;
}

static void cancel_wait(void *user)
{
    struct tailing *t = user;

    if (t->count == 1) weir_receiver_cancel(t->streams[0].receiver);
}

static int tail_hub(const struct weir__home *home, const struct tail_options *o,
                    struct weir_position position)
{
    struct tailing t = {.options = o,
                        .weir = home->weir,
                        .wire = home->wire,
                        .left = o->count.given ? o->count.value : UINT64_MAX};
    int code = WEIR__EXIT_OK, rc;

    t.deadline_ns = o->timeout.given ? weir__deadline_ns((int64_t)o->timeout.value) : INT64_MAX;
    rc = open_streams(&t, home->weir, position);
    if (rc == 0) rc = weir__stop_start(&t.stop, cancel_wait, &t, &t.err);
    if (rc == 0) rc = follow(&t);
    if (rc != 0) code = weir__exit_error(rc, &t.err, "tail");
    if (rc == 0 && t.damaged) code = WEIR__EXIT_FAILURE;
    weir__stop_end(t.stop);
    for (uint32_t i = 0; t.streams && i < t.count; i++) weir_receiver_close(t.streams[i].receiver);
    free(t.streams);
    return weir__exit_printed(code);
}

static int run_tail(const struct weir__command *self, int argc, char **argv)
{
    struct tail_options o = {0};
    struct weir_position position = {0};
    struct weir__home home;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.from && !weir__from_parse(o.from, &position))
        return weir__exit_usage(self->name, "--from '%s' is not a position", o.from);
    if (o.partition.value > UINT32_MAX)
        return weir__exit_usage(self->name, "--partition is too large");
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_EVENTS);
    if (code != 0) return code;
    return weir__home_leave(&home, tail_hub(&home, &o, position));
}

const struct weir__command weir__command_tail = {
    .name = "tail",
    .words = "HUB",
    .summary = "print events, and follow until Ctrl-C",
    .more =
        "Prints the body of each event and a newline, or with --json a line like\n"
        "  "
        "{\"partition\":\"3\",\"sequence\":41,\"offset\":\"1000000000004711\",\"enqueued_time\":\n"
        "   \"2026-01-31T08:30:00.125Z\",\"key\":null,\"body\":\"...\",\"properties\":{}}\n"
        "A body that is not UTF-8 text is \"body_base64\" instead. Damaged events are reported "
        "and\n"
        "passed over; from a folder they make the exit code 1, and so do those in front of the\n"
        "end that --until-end stops at.\n\n"
        "Partitions are merged by enqueued time as far as events are at hand; within a\n"
        "partition the order is always that of publishing. --from takes an event at that\n"
        "place or behind it; a time is ISO 8601 (2026-01-31T08:30Z), milliseconds since 1970,\n"
        "or so long ago: -90s, -1h, -2d.",
    .rows = tail_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_tail,
};
