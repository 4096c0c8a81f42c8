/* bench.c - weir bench: figures of this machine. The work is in bench/. */
#include "bench/log_bench.h"
#include "cli/commands.h"

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
