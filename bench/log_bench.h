/* log_bench.h - `weir bench log`: our durable append and our reading, beside what the disk can do
 * and beside the least that could be done, in one run on one disk. */
#ifndef WEIR_BENCH_LOG_BENCH_H
#define WEIR_BENCH_LOG_BENCH_H

/* argv[0] is the command's name. Prints to stdout, complains to stderr, and returns an exit code:
 * 0, 1 when something broke or, with --strict, when a goal was missed, 2 for wrong usage. */
int weir__bench_log(int argc, char **argv);

#endif
