/* cases.c - who is measured, beside whom, with what load, and which goals that has.
 *
 * The goals are part of what we promise about the log; docs/decisions/0001 says where they come
 * from. Raw and floor work on recycled blocks, which is what the disk does best, also where ours
 * begins on fresh ones; floor-fresh shows what that costs the floor. */
#include "bench/cases.h"

#include <stdlib.h>

#define MIB (1ull << 20)
#define RUN (384 * MIB) /* a run: a fifth of a second and more */

/* Bytes of an event, events in a batch, batches under way: some megabytes, as from many senders. */
static const struct weir__load_options small = {100, 100, 512};
static const struct weir__load_options kib = {1024, 100, 64}; /* batches of 100 KB */
static const struct weir__load_options kib_16 = {16384, 16, 32};
static const struct weir__load_options single = {100, 1, 1000};
static const struct weir__load_options single_kib = {1024, 1, 4096};

#define WHO(name) &weir__contestant_##name
#define HUB &weir__subject_hub
#define API &weir__subject_api

/* clang-format off */
#define SHOW(metric) {WEIR__BENCH_##metric, WEIR__GOAL_NONE, 0}
#define AT_LEAST(metric, value) {WEIR__BENCH_##metric, WEIR__GOAL_AT_LEAST, value}
#define AT_MOST(metric, value) {WEIR__BENCH_##metric, WEIR__GOAL_AT_MOST, value}
#define RATIO_AT_LEAST(metric, value) {WEIR__BENCH_##metric, WEIR__GOAL_RATIO_AT_LEAST, value}
#define RATIO_AT_MOST(metric, value) {WEIR__BENCH_##metric, WEIR__GOAL_RATIO_AT_MOST, value}

const struct weir__case weir__cases[] = {
    /* name and text, ours and beside, load, bytes, partitions and subject, goals */
    {"raw-write", "1 MiB overwrite + fdatasync, O_DIRECT",
     WHO(raw_write), WHO(raw_write_buffered), {NULL, 0, 1, NULL}, {SHOW(BYTES)}},
    {"raw-unwritten", "the same blocks, called unwritten",
     WHO(raw_unwritten), WHO(raw_write), {NULL, 0, 1, NULL}, {SHOW(BYTES)}},
    {"raw-new", "1 MiB + fdatasync into new blocks",
     WHO(raw_new), WHO(raw_write), {NULL, 0, 1, NULL}, {SHOW(BYTES)}},
    {"raw-sync", "4 KiB overwrite + fdatasync, O_DIRECT",
     WHO(raw_sync), WHO(raw_sync_buffered), {NULL, 0, 1, NULL}, {SHOW(P50)}},
    {"raw-read", "sequential buffered read, cold",
     WHO(raw_read), NULL, {NULL, 0, 1, NULL}, {SHOW(BYTES)}},

    {"floor-fresh", "100 B x 100, the floor on fresh blocks",
     WHO(floor_fresh), WHO(floor), {&small, RUN, 1, NULL}, {SHOW(EVENTS)}},

    {"encoded-hot", "100 B x 100 as from a wire, hot",
     WHO(hot), WHO(floor), {&small, RUN, 1, HUB},
     {RATIO_AT_LEAST(EVENTS, 0.7), AT_MOST(CPU, 100)}},
    {"encoded-cold", "100 B x 100 as from a wire, cold",
     WHO(cold), WHO(floor), {&small, RUN, 1, HUB},
     {RATIO_AT_LEAST(EVENTS, 0.7), AT_MOST(CPU, 100)}},
    {"encoded-fresh", "100 B x 100 as from a wire, fresh",
     WHO(fresh), WHO(floor), {&small, RUN, 1, HUB},
     {RATIO_AT_LEAST(EVENTS, 0.7), AT_MOST(CPU, 100)}},
    {"structs", "100 B x 100 from event structs, hot",
     WHO(hot), WHO(floor), {&small, RUN, 1, API}, {SHOW(EVENTS), AT_MOST(CPU, 250)}},

    {"1k-hot", "1 KiB x 100, hot",
     WHO(hot), WHO(raw_write), {&kib, RUN, 1, HUB}, {RATIO_AT_LEAST(BYTES, 0.7)}},
    {"1k-cold", "1 KiB x 100, cold",
     WHO(cold), WHO(raw_write), {&kib, RUN, 1, HUB}, {RATIO_AT_LEAST(BYTES, 0.5)}},
    {"1k-fresh", "1 KiB x 100, fresh",
     WHO(fresh), WHO(raw_write), {&kib, RUN, 1, HUB}, {RATIO_AT_LEAST(BYTES, 0.35)}},
    {"16k-hot", "16 KiB x 16, hot",
     WHO(hot), WHO(raw_write), {&kib_16, RUN, 1, HUB}, {RATIO_AT_LEAST(BYTES, 0.7)}},
    {"16k-cold", "16 KiB x 16, cold",
     WHO(cold), WHO(raw_write), {&kib_16, RUN, 1, HUB}, {RATIO_AT_LEAST(BYTES, 0.5)}},
    {"16k-fresh", "16 KiB x 16, fresh",
     WHO(fresh), WHO(raw_write), {&kib_16, RUN, 1, HUB}, {RATIO_AT_LEAST(BYTES, 0.35)}},

    {"singles", "100 B alone, 1,000 under way",
     WHO(hot), WHO(floor), {&single, 64 * MIB, 1, HUB}, {AT_LEAST(EVENTS, 1e6)}},
    {"partitions-256", "100 B x 100 to 256 partitions in turn",
     WHO(hot), WHO(one_partition), {&small, RUN, 256, HUB}, {RATIO_AT_LEAST(EVENTS, 0.9)}},
    {"partitions-1024", "100 B x 100 to 1,024 partitions in turn",
     WHO(hot), WHO(one_partition), {&small, RUN, 1024, HUB}, {RATIO_AT_LEAST(EVENTS, 0.9)}},

    {"wait", "one event at a time, blocking",
     WHO(waiting), WHO(raw_sync), {&single, 0, 1, HUB}, {RATIO_AT_MOST(P50, 1.3)}},
    {"async", "one event at a time, completion",
     WHO(async), WHO(raw_sync), {&single, 0, 1, HUB}, {RATIO_AT_MOST(P50, 1.8)}},

    {"read-tail", "100 B x 100 from memory, checked",
     WHO(tail_reader), NULL, {&small, 8 * MIB, 1, NULL}, {AT_LEAST(EVENTS, 10e6)}},
    {"read-cold-1", "100 B x 100 from disk, 1 of 1",
     WHO(cold_reader), WHO(raw_read), {&small, RUN, 1, NULL}, {RATIO_AT_LEAST(BYTES, 0.7)}},
    {"read-cold-16", "100 KB batches from disk, 1 of 16",
     WHO(cold_reader), WHO(raw_read), {&kib, 4 * RUN, 16, NULL}, {RATIO_AT_LEAST(BYTES, 0.5)}},
    {"read-cold-256", "1 KiB batches from disk, 1 of 256",
     WHO(cold_reader), NULL, {&single_kib, 4 * RUN, 256, NULL}, {AT_LEAST(BATCHES, 40e3)}},
    {.name = NULL},
};
/* clang-format on */

static void report_case(const struct weir__case *c, struct weir__report *report,
                        const struct weir__bench_pairs *pairs)
{
    struct weir__report_case line = {.name = c->name, .text = c->text, .pairs = pairs};

    if (c->beside) line.reference = c->beside->name;
    for (int i = 0; i < WEIR__CASE_GOALS_MAX; i++)
        if (i == 0 || c->goals[i].kind != WEIR__GOAL_NONE)
            weir__report_line(report, &line, &c->goals[i]);
    weir__report_case_end(report, &line);
}

int weir__case_run(const struct weir__case *c, struct weir__arena *arena,
                   struct weir__report *report, uint32_t rounds, struct weir_error *err)
{
    struct weir__bench_pairs *pairs = calloc(1, sizeof *pairs);
    struct weir__trial ours = {0}, beside = {0};
    struct weir__bench_side our_side = {"ours", c->ours->run, &ours}, other_side = {0};
    int rc = pairs ? 0 : weir__fail(err, WEIR_ENOMEM, "out of memory");

    if (rc == 0) rc = weir__trial_begin(&ours, c->ours, arena, &c->task, "ours", err);
    if (rc == 0 && c->beside) {
        other_side = (struct weir__bench_side){c->beside->name, c->beside->run, &beside};
        rc = weir__trial_begin(&beside, c->beside, arena, &c->task, "beside", err);
    }
    if (rc == 0)
        rc = weir__bench_take_turns(pairs, rounds, &our_side, c->beside ? &other_side : NULL, err);
    if (rc == 0) report_case(c, report, pairs);
    weir__trial_end(&beside);
    weir__trial_end(&ours);
    free(pairs);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", c->name);
}
