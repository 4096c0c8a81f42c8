/* workload.c - see workload.h. */
#include "support/workload.h"

#include "base/thread.h"
#include "log/state.h"
#include "support/dice.h"

#define PARTITIONS 5u
#define BODY_BYTES_MAX (60u << 10)
#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define WAIT_MS 20000
#define START_MS INT64_C(1700000000000)

void workload_init(struct workload *w, uint64_t seed)
{
    *w = (struct workload){.dice = seed, .clock = {START_MS, 1000, 0}};
    w->disk = simfs_new();
    w->history = history_new(PARTITIONS);
    w->options = (struct weir__log_options){
        .fs = simfs_fs(w->disk),
        .clock = simclock(&w->clock),
        .dir = WORKLOAD_DIR,
        .hub_id = 0x6875625f6f6e65u,
        .partitions = PARTITIONS,
        .batch_bytes_max = 64u << 10,
        .segment_bytes_min = 1u << 20,
        .segment_bytes_max = 1u << 20,
        .retain_ms = -1,
        .producers_tidy_blocks = 2,
        .no_threads = true,
    };
}

void workload_fini(struct workload *w)
{
    workload_close(w);
    simfs_free(w->disk);
    history_free(w->history);
}

/* Nothing may expire that is not as old as the retention by the boldest reading of the clock. */
static void note_time(struct workload *w)
{
    if (w->clock.wall_ms + w->back_ms > w->latest_ms) w->latest_ms = w->clock.wall_ms + w->back_ms;
    w->history->may_expire = w->options.retain_ms >= 0 || w->options.retain_bytes > 0;
    w->history->keep_from_ms =
        w->options.retain_bytes > 0 ? INT64_MAX : w->latest_ms - w->options.retain_ms;
    w->history->repeat_from_ms = w->latest_ms - 6 * DAY_MS; /* of 7: the clocks differ a little */
}

int workload_open(struct workload *w, struct weir_error *err)
{
    int rc = 0;

    w->options.fs = simfs_fs(w->disk);
    w->options.clock = simclock(&w->clock);
    note_time(w);
    if (!w->created) {
        rc = weir__log_create(&w->options, err);
        w->created = rc == 0;
    }
    return rc == 0 ? weir__log_open(&w->log, &w->options, err) : rc;
}

int workload_close(struct workload *w)
{
    struct weir__log *log = w->log;

    w->log = NULL;
    return weir__log_close(log, NULL);
}

/* ---- the things one can do ---- */

static struct history_order make_order(struct workload *w)
{
    struct history_order o = {.partition = (uint32_t)dice_roll(&w->dice, PARTITIONS)};
    uint64_t kind = dice_roll(&w->dice, w->small ? 8 : 16);

    if (w->aligned)
        o.bytes = (1 + (uint32_t)kind % 3) * WEIR__FS_BLOCK - WEIR__BATCH_HEADER_BYTES;
    else if (kind < 4)
        o.bytes = (uint32_t)dice_roll(&w->dice, 200);
    else if (kind < 6)
        o.bytes = 600; /* equal ones, so that ghosts would line up */
    else if (kind < 8)
        o.bytes = (uint32_t)dice_roll(&w->dice, 5000);
    else
        o.bytes = (uint32_t)dice_roll(&w->dice, BODY_BYTES_MAX);
    if (o.bytes < HISTORY_BODY_BYTES_MIN) o.bytes = HISTORY_BODY_BYTES_MIN;
    o.count = 1 + (uint32_t)dice_roll(&w->dice, 16);
    if (dice_roll(&w->dice, 4) == 0) o.producer_id = 1 + dice_roll(&w->dice, WORKLOAD_PRODUCERS);
    return o;
}

static int do_append(struct workload *w)
{
    struct history_order o = make_order(w);
    int rc = history_append(w->history, w->log, &o);

    /* Nobody flushes behind our back: a full queue is emptied by hand. */
    if (rc == WEIR_EBUSY) rc = weir__log_flush(w->log, weir__deadline_ns(WAIT_MS), NULL);
    return rc;
}

static int do_append_many(struct workload *w)
{
    int rc = 0;

    for (uint64_t i = 2 + dice_roll(&w->dice, 4); i > 0 && rc == 0; i--) rc = do_append(w);
    return rc;
}

static int do_append_wait(struct workload *w)
{
    struct history_order o = make_order(w);

    return history_append_wait(w->history, w->log, &o);
}

static int do_flush(struct workload *w)
{
    return weir__log_flush(w->log, weir__deadline_ns(WAIT_MS), NULL);
}

static int do_repeat(struct workload *w)
{
    uint32_t partition = (uint32_t)dice_roll(&w->dice, PARTITIONS);

    return history_repeat(w->history, w->log, partition,
                          1 + dice_roll(&w->dice, WORKLOAD_PRODUCERS));
}

static int do_upkeep(struct workload *w)
{
    simclock_pass(&w->clock, 1 + (int64_t)dice_roll(&w->dice, 3000));
    note_time(w);
    return weir__log_step(w->log, NULL);
}

static int do_long_pause(struct workload *w)
{
    simclock_pass(&w->clock, (int64_t)dice_roll(&w->dice, (uint64_t)(2 * DAY_MS)));
    note_time(w);
    return weir__log_step(w->log, NULL);
}

/* The wall clock alone jumps, either way. */
static int do_clock_jump(struct workload *w)
{
    int64_t jump_ms = (int64_t)dice_roll(&w->dice, (uint64_t)(2 * HOUR_MS)) - HOUR_MS;

    w->clock.wall_ms += jump_ms;
    if (jump_ms < 0) w->back_ms -= jump_ms;
    note_time(w);
    return 0;
}

static int do_reopen(struct workload *w)
{
    int rc = workload_close(w);

    if (rc == 0) rc = workload_open(w, NULL);
    if (rc == 0) history_check(w->history, w->log, true);
    return rc;
}

static int do_read_all(struct workload *w)
{
    history_check(w->history, w->log, false);
    return 0;
}

static const struct {
    int (*run)(struct workload *);
    unsigned weight;
} acts[] = {
    {do_append, 30}, {do_append_many, 16}, {do_append_wait, 16}, {do_flush, 14}, {do_repeat, 4},
    {do_upkeep, 8},  {do_long_pause, 5},   {do_clock_jump, 2},   {do_reopen, 2}, {do_read_all, 2},
};

void workload_roll(struct workload *w)
{
    int rc = 0;

    weir__mutex_lock(&w->log->lock);
    w->log->want_roll = true;
    while (rc == 0 && w->log->want_roll) rc = weir__log_lead(w->log, NULL);
    weir__mutex_unlock(&w->log->lock);
    if (rc != 0) history_violation(w->history, "rolling: %d", rc);
}

int workload_step(struct workload *w)
{
    unsigned total = 0, i = 0;
    uint64_t roll;

    for (size_t k = 0; k < sizeof acts / sizeof acts[0]; k++) total += acts[k].weight;
    roll = dice_roll(&w->dice, total);
    while (roll >= acts[i].weight) roll -= acts[i++].weight;
    return acts[i].run(w);
}

void workload_adopt(struct workload *w, struct simfs *left)
{
    struct weir_error err = {0};

    simfs_hook_copy(left, w->disk);
    simfs_hook(w->disk, NULL, NULL);
    simfs_stop(w->disk, 1);
    workload_close(w);
    simfs_free(w->disk);
    w->disk = left;
    w->history->may_fail = false;
    if (workload_open(w, &err) == 0)
        history_check(w->history, w->log, true);
    else if (!w->history->may_fail) /* which a hook may have changed meanwhile */
        history_violation(w->history, "reopening: %s", err.text);
}

void workload_crash(struct workload *w, enum simfs_keep keep, uint64_t n)
{
    workload_adopt(w, simfs_crash(w->disk, keep, n));
}
