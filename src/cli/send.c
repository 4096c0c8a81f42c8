/* send.c - weir send: one event per line of standard input.
 *
 * Lines are sent in batches, each as soon as no more input is waiting, without waiting for the disk
 * in between; the library bounds how much is on its way. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/lines.h"
#include "cli/stop.h"

#define LINE_BYTES_MAX ((size_t)1 << 20)
#define BATCH_EVENTS_MAX 100u
#define BATCH_BYTES_MAX ((size_t)512 << 10)
#define EVENT_BYTES_EXTRA 64u /* what the encoding adds to a body, about */

struct send_options {
    struct weir__common common;
    const char *key;
    struct weir__args_number partition, timeout;
    struct weir__args_list properties;
};

static const struct weir__args_row send_rows[] = {
    WEIR__ARGS_CONNECT,
    {"key", WEIR__ARGS_TEXT, offsetof(struct send_options, key), "KEY",
     "send all lines to the partition of this key, in order"},
    {"partition", WEIR__ARGS_NUMBER, offsetof(struct send_options, partition), "N",
     "send all lines to this partition, in order"},
    {"property", WEIR__ARGS_LIST, offsetof(struct send_options, properties), "NAME=TEXT",
     "give every event this property; may be repeated"},
    {"timeout", WEIR__ARGS_DURATION, offsetof(struct send_options, timeout), "TIME",
     "give up when the disk takes longer, like 10s (default: wait)"},
    {0},
};

struct sending;

/* What a completion is about: a batch of `count` events. */
struct batch {
    struct sending *sending;
    uint32_t count;
};

struct sending {
    struct weir_producer *producer;
    int64_t timeout_ms;
    struct weir_property properties[WEIR__ARGS_LIST_MAX];
    struct weir_event template;
    struct weir_event events[BATCH_EVENTS_MAX];
    size_t count, bytes;                        /* in events, waiting to be sent */
    size_t extra_bytes;                         /* of each event, besides its body */
    struct batch batches[BATCH_EVENTS_MAX + 1]; /* one for each count */

    struct weir__mutex lock; /* for the hub's thread, which counts */
    uint64_t acknowledged, failed;
    struct weir_error first_error;
};

static void count_batch(void *user, int rc, const struct weir_receipt *receipt,
                        const struct weir_error *err)
{
    const struct batch *batch = user;
    struct sending *s = batch->sending;

    (void)receipt;
    weir__mutex_lock(&s->lock);
    if (rc == 0)
        s->acknowledged += batch->count;
    else if (s->failed == 0)
        s->first_error = *err;
    if (rc != 0) s->failed += batch->count;
    weir__mutex_unlock(&s->lock);
}

static int send_waiting(struct sending *s, struct weir_error *err)
{
    size_t count = s->count;

    s->count = s->bytes = 0;
    if (count == 0) return 0;
    return weir_producer_send_async(s->producer, s->events, count, s->timeout_ms, count_batch,
                                    &s->batches[count], err);
}

static int add_line(struct sending *s, struct weir__bytes line, struct weir_error *err)
{
    size_t bytes = line.len + s->extra_bytes;
    int rc = 0;

    if (s->count == BATCH_EVENTS_MAX || s->bytes + bytes > BATCH_BYTES_MAX)
        rc = send_waiting(s, err);
    s->events[s->count] = s->template;
    s->events[s->count].body = weir_bytes(line.at, line.len);
    s->count++;
    s->bytes += bytes;
    return rc;
}

/* Until the input ends, a signal comes or something fails. */
static int send_lines(struct sending *s, struct weir__lines *lines, struct weir_error *err)
{
    struct weir__bytes line;
    int rc = 0;

    while (rc == 0 && !lines->ended) {
        rc = weir__lines_fill(lines, err);
        while (rc == 0 && weir__lines_next(lines, &line)) rc = add_line(s, line, err);
        if (rc == 0) rc = send_waiting(s, err); /* the lines move with the next fill */
    }
    return rc;
}

/* "name=text" */
static bool take_properties(struct sending *s, const struct weir__args_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->at[i], '=');
        if (!equals || equals == list->at[i]) return false;
        s->properties[i].name = weir_bytes(list->at[i], (size_t)(equals - list->at[i]));
        s->properties[i].value = weir_value_text(equals + 1);
        s->extra_bytes += strlen(list->at[i]) + 8;
    }
    s->template.properties = s->properties;
    s->template.property_count = list->count;
    return true;
}

static void prepare(struct sending *s, const struct send_options *o)
{
    s->timeout_ms = o->timeout.given ? (int64_t)o->timeout.value : -1;
    s->template.partition_key = weir_text(o->key);
    s->extra_bytes = EVENT_BYTES_EXTRA;
    for (uint32_t i = 0; i <= BATCH_EVENTS_MAX; i++) s->batches[i] = (struct batch){s, i};
    weir__mutex_init(&s->lock);
}

/* Says what was acknowledged, whatever came before. */
static int report(struct sending *s, int rc, const struct weir_error *err)
{
    int code = WEIR__EXIT_OK;

    printf("acknowledged %" PRIu64 " event%s\n", s->acknowledged, s->acknowledged == 1 ? "" : "s");
    fflush(stdout);
    if (s->failed > 0)
        code = weir__exit_error(s->first_error.code, &s->first_error,
                                "send: %" PRIu64 " events were not acknowledged", s->failed);
    if (rc != 0) code = weir__exit_error(rc, err, "send");
    return weir__exit_printed(code);
}

/* From here on Ctrl-C ends the input; before, while a server is waited for, the command. */
static int send_input(struct sending *s, struct weir_error *err)
{
    struct weir__lines lines;
    struct weir__stop *stop;
    int rc = weir__stop_start(&stop, NULL, NULL, err), end;

    if (rc != 0) return rc;
    weir__lines_init(&lines, STDIN_FILENO, weir__stop_fd(stop), LINE_BYTES_MAX);
    rc = send_lines(s, &lines, err);
    end = weir_producer_flush(s->producer, s->timeout_ms, rc == 0 ? err : NULL);
    weir__lines_fini(&lines);
    weir__stop_end(stop);
    return rc != 0 ? rc : end;
}

static int send_all(struct weir *w, const struct send_options *o, struct sending *s)
{
    struct weir_producer_options options = {.size = sizeof options,
                                            .pinned = o->partition.given,
                                            .partition = (uint32_t)o->partition.value};
    struct weir_error err;
    int rc = weir_producer_open(&s->producer, w, o->common.word[0], &options, &err);

    if (rc != 0) return weir__exit_error(rc, &err, "send");
    rc = send_input(s, &err);
    weir_producer_close(s->producer, 0, NULL);
    return report(s, rc, &err);
}

static int run_send(const struct weir__command *self, int argc, char **argv)
{
    struct send_options o = {0};
    struct sending s = {0};
    struct weir__home home;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.key && o.partition.given)
        return weir__exit_usage(self->name, "--key and --partition exclude each other");
    if (o.partition.value > UINT32_MAX)
        return weir__exit_usage(self->name, "--partition is too large");
    prepare(&s, &o);
    if (!take_properties(&s, &o.properties))
        return weir__exit_usage(self->name, "--property must be NAME=TEXT");
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_EVENTS);
    if (code != 0) return code;
    return weir__home_leave(&home, send_all(home.weir, &o, &s));
}

const struct weir__command weir__command_send = {
    .name = "send",
    .words = "HUB",
    .summary = "publish the lines of standard input, one event each",
    .more =
        "Lines may hold any byte but a newline, up to 1 MiB. Without --key and --partition they\n"
        "go to the partitions in turn, up to 100 lines at a time; each such batch is stored as\n"
        "a whole or not at all. Ends with what was acknowledged, which is on disk; when\n"
        "anything was not, the exit code says so. Ctrl-C ends the input.",
    .rows = send_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_send,
};
