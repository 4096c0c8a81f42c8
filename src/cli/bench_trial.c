/* bench_trial.c - weir bench send, receive and e2e: what the library does with a hub, on a folder, a
 * server or Azure. The work is in bench/trial.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/trial.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/stop.h"

#define SECONDS_MAX ((uint64_t)1 << 32)

struct options {
    struct weir__common common;
    const char *group;
    struct weir__args_number size, batch, partitions, rate, count, seconds;
    bool create, json;
};

#define ROW_GROUP                                                                                  \
    {                                                                                              \
        "group", WEIR__ARGS_TEXT, offsetof(struct options, group), "NAME",                         \
            "the consumer group to read in (default $Default)"                                     \
    }
#define ROWS_SENDING                                                                               \
    {"size", WEIR__ARGS_BYTES, offsetof(struct options, size), "BYTES",                            \
     "of an event's body (default 100)"},                                                          \
        {"batch", WEIR__ARGS_NUMBER, offsetof(struct options, batch), "N",                         \
         "events sent as one (default 100)"},                                                      \
        {"rate", WEIR__ARGS_NUMBER, offsetof(struct options, rate), "N",                           \
         "events per second (default: as many as are taken)"},                                     \
    {                                                                                              \
        "create", WEIR__ARGS_FLAG, offsetof(struct options, create), NULL,                         \
            "make the hub first, with --partitions; it stays"                                      \
    }
#define ROWS_COMMON                                                                                \
    {"partitions", WEIR__ARGS_NUMBER, offsetof(struct options, partitions), "N",                   \
     "the first N of the hub (default: all, up to 256)"},                                          \
        {"count", WEIR__ARGS_NUMBER, offsetof(struct options, count), "N", "events in all"},       \
        {"seconds", WEIR__ARGS_NUMBER, offsetof(struct options, seconds), "N",                     \
         "end after this time, or with the count"},                                                \
    {                                                                                              \
        "json", WEIR__ARGS_FLAG, offsetof(struct options, json), NULL, "print a JSON object"       \
    }

static const struct weir__args_row send_rows[] = {
    WEIR__ARGS_CONNECT, WEIR__ARGS_ADMIN, ROWS_SENDING, ROWS_COMMON, {0}};
static const struct weir__args_row receive_rows[] = {WEIR__ARGS_CONNECT,
                                                     ROW_GROUP,
                                                     ROWS_COMMON,
                                                     {0}};
static const struct weir__args_row e2e_rows[] = {WEIR__ARGS_CONNECT, WEIR__ARGS_ADMIN, ROWS_SENDING,
                                                 ROW_GROUP,          ROWS_COMMON,      {0}};

/* Too large a number is one that is out of range. */
static uint32_t small(const struct weir__args_number *n)
{
    return n->value < UINT32_MAX ? (uint32_t)n->value : UINT32_MAX;
}

static bool is_stopped(void *user)
{
    return weir__stop_asked(user);
}

/* A hub that is there already is somebody's, and left alone. */
static int create_hub(const struct weir__command *self, const struct options *o)
{
    struct weir_hub_options options = {.size = sizeof options, .partitions = small(&o->partitions)};
    struct weir__home home;
    struct weir_error err;
    int code = weir__home_reach(&home, self, &o->common, WEIR__HOME_ADMIN | WEIR__HOME_MAKE), rc;

    if (code != 0) return code;
    rc = weir_hub_create(home.weir, o->common.word[0], &options, &err);
    if (rc != 0) code = weir__exit_error(rc, &err, "--create");
    return weir__home_leave(&home, code);
}

static int run_trial(const struct weir__command *self, enum weir__trial_mode mode,
                     const struct options *o, struct weir *to, struct weir *from,
                     struct weir__stop *stop)
{
    struct weir__trial_options options = {
        .mode = mode,
        .to = to,
        .from = from,
        .hub = o->common.word[0],
        .group = o->group,
        .size = small(&o->size),
        .batch = small(&o->batch),
        .partitions = small(&o->partitions),
        .rate = small(&o->rate),
        .count = o->count.value,
        .time_ms =
            (int64_t)(o->seconds.value < SECONDS_MAX ? o->seconds.value : SECONDS_MAX) * 1000,
        .progress = isatty(STDERR_FILENO) ? stderr : NULL,
        .stopped = is_stopped,
        .user = stop,
    };
    struct weir__trial *trial = malloc(sizeof *trial);
    struct weir_error err;
    int rc, code = WEIR__EXIT_OK;

    if (!trial) return weir__exit_error(WEIR_ENOMEM, NULL, "%s", self->name);
    rc = weir__trial_run(trial, &options, &err);
    if (trial->sent.events || trial->received.events || rc == 0)
        weir__trial_print(trial, stdout, o->json);
    if (rc == WEIR_EINVAL && !trial->sent.events && !trial->received.events)
        code = weir__exit_usage(self->name, "%s", err.text);
    else if (rc != 0)
        code = weir__exit_error(rc, &err, "%s", self->name);
    free(trial);
    return weir__exit_printed(code);
}

/* Each side of e2e has a connection of its own; a folder is held once. */
static int run_there(const struct weir__command *self, enum weir__trial_mode mode,
                     const struct options *o, struct weir__stop *stop)
{
    struct weir__home to, from = {0};
    int code = o->create ? create_hub(self, o) : 0;

    if (code == 0) code = weir__home_reach(&to, self, &o->common, WEIR__HOME_EVENTS);
    if (code != 0) return code;
    if (to.wire && mode == WEIR__TRIAL_E2E)
        code = weir__home_reach(&from, self, &o->common, WEIR__HOME_EVENTS);
    if (code == 0) code = run_trial(self, mode, o, to.weir, from.weir ? from.weir : to.weir, stop);
    return weir__home_leave(&to, weir__home_leave(&from, code));
}

/* Load is put nowhere by default. */
static bool is_named(const struct weir__common *c)
{
    const char *connect = getenv("WEIR_CONNECT");

    return c->connect || c->data_named || (connect && *connect);
}

static int run(const struct weir__command *self, enum weir__trial_mode mode, int argc, char **argv)
{
    struct options o = {0};
    struct weir__stop *stop;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (!is_named(&o.common))
        return weir__exit_usage(self->name, "--connect CONNSTR (or WEIR_CONNECT) is needed, as "
                                            "'weir serve' prints it, or --data DIR for a folder");
    rc = weir__stop_start(&stop, NULL, NULL, &err);
    if (rc != 0) return weir__exit_error(rc, &err, "%s", self->name);
    code = run_there(self, mode, &o, stop);
    weir__stop_end(stop);
    return code;
}

static int run_send(const struct weir__command *self, int argc, char **argv)
{
    return run(self, WEIR__TRIAL_SEND, argc, argv);
}

static int run_receive(const struct weir__command *self, int argc, char **argv)
{
    return run(self, WEIR__TRIAL_RECEIVE, argc, argv);
}

static int run_e2e(const struct weir__command *self, int argc, char **argv)
{
    return run(self, WEIR__TRIAL_E2E, argc, argv);
}

#define PROMISE                                                                                    \
    "Works on any hub that the connection string or the folder opens. The events that are sent\n"  \
    "stay there; nothing is deleted, and no other receiver is pushed aside."

const struct weir__command weir__command_bench_send = {
    .name = "bench send",
    .words = "HUB",
    .summary = "measure sending with this library",
    .more = "Batches go to the partitions in turn, up to 4 MiB of them under way; each is timed\n"
            "until it is acknowledged. Without --count and --seconds a million events are sent,\n"
            "or, at a --rate, as many as come in ten seconds.\n\n" PROMISE,
    .rows = send_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_send,
};

const struct weir__command weir__command_bench_receive = {
    .name = "bench receive",
    .words = "HUB",
    .summary = "measure receiving with this library",
    .more = "Reads what the hub holds when it begins, from the oldest events on, a thread to each\n"
            "partition, and ends there, or sooner with --count or --seconds.\n\n" PROMISE,
    .rows = receive_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_receive,
};

const struct weir__command weir__command_bench_e2e = {
    .name = "bench e2e",
    .words = "HUB",
    .summary = "measure from sending to receiving with this library",
    .more =
        "Sends as 'bench send' does, and receives it over a second connection; an event is timed\n"
        "from when it should have been sent, at that --rate, until it is received. CPU is told\n"
        "for each side. Events of others are counted, and passed over.\n\n" PROMISE,
    .rows = e2e_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_e2e,
};
