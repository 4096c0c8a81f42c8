/* send.c - weir send: one event per line of standard input or of a file, or one text.
 *
 * Lines are sent in batches, each as soon as no more input is waiting, without waiting for the disk
 * in between; the library bounds how much is on its way. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/lines.h"
#include "cli/parse_event.h"
#include "cli/stop.h"

#define LINE_BYTES_MAX ((size_t)1 << 20)
#define JSON_BYTES_MAX ((size_t)8 << 20) /* of a line, in which a byte may be six */
#define BATCH_EVENTS_MAX 100u
#define BATCH_BYTES_MAX ((size_t)512 << 10)
#define PARSED_MAX (BATCH_EVENTS_MAX + 1) /* those of a batch, and the next line */
#define EVENT_BYTES_EXTRA 64u             /* what the encoding adds to a body, about */

struct send_options {
    struct weir__common common;
    const char *key, *key_separator, *file;
    struct weir__args_number partition, timeout;
    struct weir__args_list properties;
    bool json;
};

static const struct weir__args_row send_rows[] = {
    WEIR__ARGS_CONNECT,
    {"key", WEIR__ARGS_TEXT, offsetof(struct send_options, key), "KEY",
     "send all lines to the partition of this key, in order"},
    {"key-separator", WEIR__ARGS_TEXT, offsetof(struct send_options, key_separator), "TEXT",
     "each line begins with its own key, and this follows the key"},
    {"partition", WEIR__ARGS_NUMBER, offsetof(struct send_options, partition), "N",
     "send all lines to this partition, in order"},
    {"property", WEIR__ARGS_LIST, offsetof(struct send_options, properties), "NAME=TEXT",
     "give every event this property; may be repeated"},
    {"file", WEIR__ARGS_TEXT, offsetof(struct send_options, file), "FILE",
     "the lines of this file instead of standard input"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct send_options, json), NULL,
     "each line is an event as weir tail --json prints it: body, key, properties"},
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
    const char *key_separator;         /* NULL: lines have no keys */
    struct weir__parsed_event *parsed; /* what events point to, in turn; NULL: lines are bodies */
    size_t parsed_next;
    size_t count, bytes; /* in events, waiting to be sent */
    uint64_t sent;       /* lines, from the first on */
    bool cut;            /* there are others */
    bool refused;        /* some of them at once, before they were on the way */
    size_t extra_bytes;  /* of each event, besides its body */
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

static bool has_failed(struct sending *s)
{
    bool failed;

    weir__mutex_lock(&s->lock);
    failed = s->failed > 0;
    weir__mutex_unlock(&s->lock);
    return failed;
}

/* Behind what was refused nothing is sent: it would stand before that when somebody sends it again. */
static int send_waiting(struct sending *s, struct weir_error *err)
{
    size_t count = s->count;
    int rc;

    s->count = s->bytes = 0;
    if (count == 0 || has_failed(s) || s->refused) return 0;
    rc = weir_producer_send_async(s->producer, s->events, count, s->timeout_ms, count_batch,
                                  &s->batches[count], err);
    if (rc == 0) s->sent += count;
    s->refused = rc != 0;
    return rc;
}

/* "home-7|door open" */
static int split_key(const struct sending *s, struct weir_event *e, struct weir_error *err)
{
    size_t len = strlen(s->key_separator);
    const char *at = memmem(e->body.at, e->body.len, s->key_separator, len);
    size_t key = at ? (size_t)(at - e->body.at) : 0;

    if (key == 0)
        return weir__fail(err, WEIR_EINVAL, "there is no key before '%s'", s->key_separator);
    e->partition_key = weir_bytes(e->body.at, key);
    e->body = weir_bytes(at + len, e->body.len - key - len);
    return 0;
}

/* What a line says, in the place of the next event. */
static int read_line(struct sending *s, struct weir__bytes line, struct weir_error *err)
{
    struct weir_event *e = &s->events[s->count];
    int rc = 0;

    *e = s->template;
    e->body = weir_bytes(line.at, line.len);
    if (s->key_separator) rc = split_key(s, e, err);
    if (!s->parsed) return rc;
    rc = weir__parse_event(&s->parsed[s->parsed_next], line, err);
    if (rc == 0) *e = s->parsed[s->parsed_next].event;
    s->parsed_next = (s->parsed_next + 1) % PARSED_MAX;
    return rc;
}

static bool is_same(struct weir_bytes a, struct weir_bytes b)
{
    return !a.at == !b.at && a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* The events of a batch have one key. */
static int add_line(struct sending *s, struct weir__bytes line, struct weir_error *err)
{
    size_t bytes = line.len + s->extra_bytes, at;
    int rc = 0;

    if (s->count == BATCH_EVENTS_MAX || s->bytes + bytes > BATCH_BYTES_MAX)
        rc = send_waiting(s, err);
    if (rc == 0) rc = read_line(s, line, err);
    if (rc != 0) return rc;
    at = s->count;
    if (at > 0 && !is_same(s->events[at].partition_key, s->events[0].partition_key)) {
        rc = send_waiting(s, err); /* as it was before this one */
        s->events[0] = s->events[at];
    }
    s->count++;
    s->bytes += bytes;
    return rc;
}

/* Until the input ends, a signal comes or something fails. */
static int send_lines(struct sending *s, struct weir__lines *lines, struct weir_error *err)
{
    struct weir__bytes line;
    int rc = 0, sent;

    while (rc == 0 && !lines->ended && !has_failed(s)) {
        rc = weir__lines_fill(lines, err);
        while (rc == 0 && weir__lines_next(lines, &line)) {
            rc = add_line(s, line, err);
            if (rc == WEIR_EINVAL) rc = weir__wrap(err, rc, "line %" PRIu64, lines->count);
        }
        /* The lines move with the next fill. Those before a bad one are sent, too. */
        sent = send_waiting(s, rc == 0 ? err : NULL);
        if (rc == 0) rc = sent;
    }
    s->cut = !lines->ended || s->sent < lines->count;
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
    s->key_separator = o->key_separator;
    s->extra_bytes = EVENT_BYTES_EXTRA;
    for (uint32_t i = 0; i <= BATCH_EVENTS_MAX; i++) s->batches[i] = (struct batch){s, i};
    weir__mutex_init(&s->lock);
}

static void tell_cut(const struct sending *s)
{
    if (!s->cut || (s->failed == 0 && !s->refused)) return;
    if (s->sent > 0)
        fprintf(stderr, "weir: send: nothing behind line %" PRIu64 " was sent\n", s->sent);
    else
        fprintf(stderr, "weir: send: no line was sent\n");
}

/* Says what was acknowledged, whatever came before. */
static int report(struct sending *s, int rc, const struct weir_error *err)
{
    int code = WEIR__EXIT_OK;

    printf("acknowledged %" PRIu64 " event%s\n", s->acknowledged, s->acknowledged == 1 ? "" : "s");
    fflush(stdout);
    if (s->failed > 0)
        code = weir__exit_error(s->first_error.code, &s->first_error,
                                "send: %" PRIu64 " event%s not acknowledged", s->failed,
                                s->failed == 1 ? " was" : "s were");
    if (rc != 0) code = weir__exit_error(rc, err, "send");
    tell_cut(s);
    return weir__exit_printed(code);
}

/* From here on Ctrl-C ends the input; before, while a server is waited for, the command. */
static int send_input(struct sending *s, int fd, struct weir_error *err)
{
    struct weir__lines lines;
    struct weir__stop *stop;
    int rc = weir__stop_start(&stop, NULL, NULL, err);

    if (rc != 0) return rc;
    weir__lines_init(&lines, fd, weir__stop_fd(stop), s->parsed ? JSON_BYTES_MAX : LINE_BYTES_MAX);
    rc = send_lines(s, &lines, err);
    weir__lines_fini(&lines);
    weir__stop_end(stop);
    return rc;
}

static int send_text(struct sending *s, const char *text, struct weir_error *err)
{
    int rc = add_line(s, weir__bytes_of(text, strlen(text)), err);

    return rc == 0 ? send_waiting(s, err) : rc;
}

static int send_all(struct weir *w, const struct send_options *o, int fd, struct sending *s)
{
    struct weir_producer_options options = {.size = sizeof options,
                                            .pinned = o->partition.given,
                                            .partition = (uint32_t)o->partition.value};
    struct weir_error err;
    int rc = weir_producer_open(&s->producer, w, o->common.word[0], &options, &err), end;

    if (rc != 0) return weir__exit_error(rc, &err, "send");
    rc = o->common.words > 1 ? send_text(s, o->common.word[1], &err) : send_input(s, fd, &err);
    end = weir_producer_flush(s->producer, s->timeout_ms, rc == 0 ? &err : NULL);
    if (rc == 0) rc = end;
    weir_producer_close(s->producer, 0, NULL);
    return report(s, rc, &err);
}

/* What does not go together; NULL: everything does. */
static const char *find_conflict(const struct send_options *o)
{
    if (o->key && o->partition.given) return "--key and --partition exclude each other";
    if (o->key_separator && (o->key || o->partition.given))
        return "--key-separator excludes --key and --partition";
    if (o->key_separator && !*o->key_separator) return "--key-separator is empty";
    if (o->json && (o->key || o->key_separator || o->properties.count))
        return "with --json each line has its own key and properties";
    if (o->file && o->common.words > 1) return "--file and a TEXT exclude each other";
    return o->partition.value > UINT32_MAX ? "--partition is too large" : NULL;
}

static int open_input(const struct send_options *o, int *fd)
{
    struct weir_error err = {.code = WEIR_EIO};

    *fd = o->file ? open(o->file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (*fd >= 0) return 0;
    err.code = errno == ENOENT ? WEIR_ENOTFOUND : WEIR_EIO;
    snprintf(err.text, sizeof err.text, "%s", strerror(errno));
    return weir__exit_advise(err.code, &err, "check --file", "send: %s", o->file);
}

static int send_from(const struct weir__command *self, const struct send_options *o,
                     struct sending *s, int fd)
{
    struct weir__home home;
    int code = weir__home_reach(&home, self, &o->common, WEIR__HOME_EVENTS);

    return code != 0 ? code : weir__home_leave(&home, send_all(home.weir, o, fd, s));
}

static int run_send(const struct weir__command *self, int argc, char **argv)
{
    struct send_options o = {0};
    struct sending s = {0};
    const char *conflict;
    int code, fd;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    conflict = find_conflict(&o);
    if (conflict) return weir__exit_usage(self->name, "%s", conflict);
    prepare(&s, &o);
    if (!take_properties(&s, &o.properties))
        return weir__exit_usage(self->name, "--property must be NAME=TEXT");
    if (o.json && !(s.parsed = calloc(PARSED_MAX, sizeof *s.parsed)))
        return weir__exit_error(WEIR_ENOMEM, NULL, "send");
    code = open_input(&o, &fd);
    if (code == 0) code = send_from(self, &o, &s, fd);
    if (o.file && fd >= 0) close(fd);
    for (size_t i = 0; s.parsed && i < PARSED_MAX; i++) weir__parse_event_fini(&s.parsed[i]);
    free(s.parsed);
    return code;
}

const struct weir__command weir__command_send = {
    .name = "send",
    .words = "HUB [TEXT]",
    .summary = "publish a text, or the lines of standard input, one event each",
    .more =
        "Lines may hold any byte but a newline; an event has up to 1 MiB with its key, its\n"
        "properties and some bytes of its encoding. Without a key and --partition they\n"
        "go to the partitions in turn, up to 100 lines at a time; each such batch is stored as\n"
        "a whole or not at all. Ends with what was acknowledged, which is on disk; when\n"
        "anything was not, the exit code says so. Ctrl-C ends the input.",
    .rows = send_rows,
    .words_min = 1,
    .words_max = 2,
    .run = run_send,
};
