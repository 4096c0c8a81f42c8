/* bench.c - weir bench: figures of this machine, and of a server. The work is in bench/. */
#include <stdio.h>

#include "bench/log_bench.h"
#include "bench/wire_bench.h"
#include "cli/commands.h"
#include "cli/exit.h"

/* The benchmark reads its own options, --help among them. */
static int run_bench_log(const struct weir__command *self, int argc, char **argv)
{
    (void)self;
    return weir__bench_log(argc + 1, argv - 1); /* it wants its name first */
}

const struct weir__command weir__command_bench_log = {
    .name = "bench log",
    .words = "",
    .summary = "measure durable appends and reads beside the raw disk",
    .run = run_bench_log,
};

/* ---- wire ---- */

struct wire_options {
    struct weir__common common;
    const char *connect, *hub;
    struct weir__args_number size, batch, events, partitions, in_flight, rate, server_pid;
    bool json;
};

static const struct weir__args_row wire_rows[] = {
    {"connect", WEIR__ARGS_TEXT, offsetof(struct wire_options, connect), "TEXT",
     "a connection string, or HOST:PORT of a server with the emulator's key"},
    {"hub", WEIR__ARGS_TEXT, offsetof(struct wire_options, hub), "NAME",
     "the hub, unless the connection string names it"},
    {"size", WEIR__ARGS_BYTES, offsetof(struct wire_options, size), "BYTES",
     "of an event's body (default 100; sync 1K; e2e 256)"},
    {"batch", WEIR__ARGS_NUMBER, offsetof(struct wire_options, batch), "N",
     "publish: events to a transfer (default 100)"},
    {"events", WEIR__ARGS_NUMBER, offsetof(struct wire_options, events), "N",
     "in all (default 1000000; sync 3000; e2e 50000)"},
    {"partitions", WEIR__ARGS_NUMBER, offsetof(struct wire_options, partitions), "N",
     "the first N of the hub, in turn (default 1)"},
    {"in-flight", WEIR__ARGS_NUMBER, offsetof(struct wire_options, in_flight), "N",
     "transfers not accepted yet (default: 4 MiB of them); receive: credit"},
    {"rate", WEIR__ARGS_NUMBER, offsetof(struct wire_options, rate), "N",
     "e2e: events per second (default 10000)"},
    {"server-pid", WEIR__ARGS_NUMBER, offsetof(struct wire_options, server_pid), "PID",
     "whose CPU and memory are told as the server's"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct wire_options, json), NULL,
     "one JSON object per line"},
    {0},
};

/* Too large a number is one that is out of range. */
static uint32_t small(const struct weir__args_number *n)
{
    return n->value < UINT32_MAX ? (uint32_t)n->value : UINT32_MAX;
}

static int run_bench_wire(const struct weir__command *self, int argc, char **argv)
{
    struct wire_options o = {0};
    struct weir__bench_wire_options wire;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    wire = (struct weir__bench_wire_options){
        .connect = o.connect,
        .hub = o.hub,
        .size = small(&o.size),
        .batch = small(&o.batch),
        .partitions = small(&o.partitions),
        .in_flight = small(&o.in_flight),
        .rate = small(&o.rate),
        .events = o.events.value,
        .server_pid = o.server_pid.value < INT32_MAX ? (int)o.server_pid.value : 0,
        .data = o.common.data_given ? o.common.data : NULL,
        .json = o.json,
    };
    rc = weir__bench_wire(o.common.word[0], &wire, stdout, &err);
    if (rc == WEIR_EINVAL) return weir__exit_usage(self->name, "%s", err.text);
    if (rc != 0) return weir__exit_error(rc, &err, "bench wire");
    return weir__exit_printed(WEIR__EXIT_OK);
}

const struct weir__command weir__command_bench_wire = {
    .name = "bench wire",
    .words = "MODE",
    .summary = "put load on a server over AMQP, and measure it",
    .more =
        "MODE is publish, receive (what was published, from the beginning), sync (one publish\n"
        "at a time) or e2e (from publishing to receiving, at a steady rate); or what the machine\n"
        "does without a server: loopback (one TCP stream), trip (a round trip on it) or flush\n"
        "(a block written and synced, in --data).\n\n"
        "Prints ROW,system,mode,size,events,seconds,ev/s,MB/s, CPU in ns per event of server\n"
        "(user,system) and client (user,system), the server's memory in KiB, and how many\n"
        "percent of the cores others used; then percentiles, where operations are timed.",
    .rows = wire_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_bench_wire,
};
