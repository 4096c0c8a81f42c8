/* process.c - weir process: one more copy that shares the partitions of a hub.
 *
 * Events are printed, or fed to one CMD for each partition (feeder.h). What was printed, or what CMD
 * says is done, is marked. With --json everything that happens is one line. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/feeder.h"
#include "cli/group.h"
#include "cli/json.h"
#include "cli/stop.h"
#include "cli/when.h"

#define STOP_MS 30000
#define FEED_IDLE_MS 100 /* between looks at what a CMD has printed */

struct process_options {
    struct weir__common common;
    const char *group, *store, *name, *exec;
    bool json;
};

static const struct weir__args_row process_rows[] = {
    WEIR__ARGS_CONNECT,
    {"group", WEIR__ARGS_TEXT, offsetof(struct process_options, group), "NAME",
     "the consumer group (default $Default)"},
    {"store", WEIR__ARGS_TEXT, offsetof(struct process_options, store), "URL",
     "sqlite:PATH, postgres://... (on a folder: sqlite:DIR/processor.db)"},
    {"name", WEIR__ARGS_TEXT, offsetof(struct process_options, name), "NAME",
     "of this copy; no two of a group have the same (default: random)"},
    {"exec", WEIR__ARGS_TEXT, offsetof(struct process_options, exec), "CMD",
     "run CMD for each partition and feed it the events"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct process_options, json), NULL,
     "print one line of JSON for everything that happens"},
    {0},
};

struct processing {
    const struct process_options *options;
    struct weir__mutex lock; /* one line at a time */
};

/* ---- lines ---- */

/* The head of a line, without its end; the lock is held. */
static void begin_line(const char *type, const struct weir_partition *p)
{
    struct weir__clock clock = weir__clock_system();
    char when[WEIR__WHEN_BYTES];

    printf("{\"type\":\"%s\",\"time\":\"%s\"", type,
           weir__when_text(clock.wall_ms(clock.self), when));
    if (!p) return;
    printf(",\"partition\":\"%" PRIu32 "\",\"owner\":", weir_partition_id(p));
    weir__json_text(stdout, weir_text(weir_partition_owner(p)));
    printf(",\"epoch\":%" PRId64, weir_partition_epoch(p));
}

static void end_line(void)
{
    printf("}\n");
    fflush(stdout);
}

static void say_checkpoint(struct processing *x, struct weir_partition *p, uint64_t sequence)
{
    if (!x->options->json) return;
    weir__mutex_lock(&x->lock);
    begin_line("checkpoint", p);
    printf(",\"sequence\":%" PRIu64, sequence);
    end_line();
    weir__mutex_unlock(&x->lock);
}

/* ---- the handlers ---- */

static int on_open(struct weir_partition *p, void **state, void *user)
{
    struct processing *x = user;
    struct weir_error err;
    int rc = 0;

    if (x->options->exec)
        rc = weir__feeder_open((struct weir__feeder **)state, x->options->exec, p, &err);
    weir__mutex_lock(&x->lock);
    if (rc != 0) weir__exit_error(rc, &err, "process: partition %" PRIu32, weir_partition_id(p));
    if (x->options->json) {
        begin_line("open", p);
        end_line();
    } else {
        fprintf(stderr, "weir: partition %" PRIu32 " opened, epoch %" PRId64 "\n",
                weir_partition_id(p), weir_partition_epoch(p));
    }
    weir__mutex_unlock(&x->lock);
    return rc;
}

static void print_events(struct processing *x, struct weir_partition *p, const struct weir_event *e,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (x->options->json) {
            begin_line("event", p);
            weir__json_members(stdout, &e[i]);
            printf("}\n");
        } else if (!x->options->exec) {
            fwrite(e[i].body.at, 1, e[i].body.len, stdout);
            putchar('\n');
        }
    }
}

static int on_events(struct weir_partition *p, const struct weir_event *e, size_t count, void *user)
{
    struct processing *x = user;
    uint64_t marked;
    bool printed;
    int rc;

    weir__mutex_lock(&x->lock);
    print_events(x, p, e, count);
    printed = fflush(stdout) == 0 && !ferror(stdout);
    weir__mutex_unlock(&x->lock);
    if (!printed) return WEIR_EIO; /* nobody reads: it is not done */
    if (x->options->exec) {
        rc = weir__feeder_feed(weir_partition_state(p), p, e, count, &marked);
        if (rc > 0) say_checkpoint(x, p, marked);
        return rc < 0 ? rc : 0;
    }
    rc = weir_checkpoint(p, NULL);
    if (rc == 0) say_checkpoint(x, p, e[count - 1].sequence);
    return rc;
}

static void on_error(struct weir_partition *p, enum weir_action action,
                     const struct weir_error *err, void *user)
{
    struct processing *x = user;
    struct weir_error ended;
    char how[WEIR__FEEDER_WHY_BYTES];

    if (x->options->exec && p && action == WEIR_HANDLING &&
        weir__feeder_failed(weir_partition_state(p), how)) {
        weir__fail(&ended, err->code, "the command of partition %" PRIu32 " %s",
                   weir_partition_id(p), how);
        err = &ended;
    }
    weir__mutex_lock(&x->lock);
    if (x->options->json) {
        begin_line("error", p);
        printf(",\"action\":\"%s\",\"code\":\"%s\",\"reason\":", weir_action_text(action),
               weir_error_name(err->code));
        weir__json_text(stdout, weir_text(err->text));
        end_line();
    } else {
        fprintf(stderr, "weir: %s: %s\n", weir_action_text(action), err->text);
    }
    weir__mutex_unlock(&x->lock);
}

static void on_close(struct weir_partition *p, enum weir_close_reason reason, void *user)
{
    struct processing *x = user;
    uint64_t marked;

    if (x->options->exec && weir__feeder_close(weir_partition_state(p), p, &marked) > 0)
        say_checkpoint(x, p, marked);
    weir__mutex_lock(&x->lock);
    if (x->options->json) {
        begin_line("close", p);
        printf(",\"reason\":\"%s\"", weir_close_reason_text(reason));
        end_line();
    } else {
        fprintf(stderr, "weir: partition %" PRIu32 " closed: %s\n", weir_partition_id(p),
                weir_close_reason_text(reason));
    }
    weir__mutex_unlock(&x->lock);
}

/* ---- the command ---- */

/* Until a signal comes, or whoever reads what is printed has left. poll tells the latter unasked. */
static int wait_for_end(const struct process_options *o, struct weir__stop *stop)
{
    bool prints = o->json || !o->exec;
    struct pollfd fds[] = {{.fd = weir__stop_fd(stop), .events = POLLIN},
                           {.fd = prints ? STDOUT_FILENO : -1}};

    while (!weir__stop_asked(stop) && fds[1].revents == 0)
        if (poll(fds, 2, -1) < 0) fds[1].revents = 0;
    return 0;
}

static int process(struct weir__group_place *g, const struct process_options *o)
{
    struct processing x = {.options = o};
    struct weir_processor_options options = {
        .size = sizeof options,
        .handler = {on_open, on_events, on_error, on_close},
        .user = &x,
        .name = o->name,
        .invoke_when_idle = o->exec != NULL,
        .receive_ms = FEED_IDLE_MS,
        /* What a CMD had in hand when it failed comes again from the checkpoint. */
        .failure = o->exec ? WEIR_GIVE_UP : WEIR_RETRY_FOREVER,
        .attempts = 1,
    };
    struct weir_processor *processor = NULL;
    struct weir_source *source = NULL;
    struct weir__stop *stop = NULL;
    struct weir_error err;
    int rc = weir__stop_start(&stop, NULL, NULL, &err);

    weir__mutex_init(&x.lock);
    if (rc == 0) rc = weir_source_hub(&source, g->home.weir, g->hub, g->group, &err);
    if (rc == 0) rc = weir_processor_start(&processor, source, g->store, &options, &err);
    if (rc == 0) rc = wait_for_end(o, stop);
    if (processor) rc = weir_processor_stop(processor, STOP_MS, &err);
    weir_source_close(source);
    weir__stop_end(stop);
    weir__mutex_fini(&x.lock);
    if (rc == 0) return WEIR__EXIT_OK;
    return weir__exit_advise(rc, &err, weir__group_advice(rc), "process");
}

static int run_process(const struct weir__command *self, int argc, char **argv)
{
    struct process_options o = {0};
    char what[2 * WEIR_NAME_BYTES];
    struct weir__group_place g;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (strchr(o.common.word[0], '/') && o.group)
        return weir__exit_usage(self->name, "the group is named twice");
    if (snprintf(what, sizeof what, "%s%s%s", o.common.word[0], o.group ? "/" : "",
                 o.group ? o.group : "") >= (int)sizeof what)
        return weir__exit_usage(self->name, "the names are too long");
    code = weir__group_open(&g, self, &o.common, what, o.store, true);
    if (code != 0) return code;
    return weir__exit_printed(weir__group_close(&g, process(&g, &o)));
}

const struct weir__command weir__command_process = {
    .name = "process",
    .words = "HUB",
    .summary = "read a hub's partitions together with other copies, until Ctrl-C",
    .more =
        "Start it as often as you like with the same --store: the copies divide the\n"
        "partitions, and go on behind each other's checkpoints.\n\n"
        "Events are printed and then marked. With --exec, CMD is run by /bin/sh for each\n"
        "partition, with WEIR_PARTITION, WEIR_HUB and WEIR_GROUP in its environment. It reads\n"
        "events as lines of 'weir tail --json', and prints the sequence number up to which it\n"
        "is done, as often as it likes. When it ends with another code than 0, its partition is\n"
        "given up and read again from the checkpoint a little later.\n\n"
        "With --json each line is one of\n"
        "  {\"type\":\"open|event|checkpoint|error|close\",\"time\":...,\"partition\":\"3\",\n"
        "   \"owner\":...,\"epoch\":...,\"sequence\":...,\"reason\":...}\n"
        "and an event has what 'weir tail --json' prints: key, body, properties and so on.\n"
        "A checkpoint is told when it is marked, and stored soon after; see weir checkpoint.\n"
        "Ctrl-C and SIGTERM hand everything over; a second one aborts.",
    .rows = process_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_process,
};
