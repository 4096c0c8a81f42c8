#include "bench/trial.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/rand.h"
#include "bench/measure.h"
#include "bench/trial_read.h"
#include "bench/trial_send.h"

#define SIZE 100u
#define BATCH 100u
#define COUNT 1000000u
#define RATED_MS 10000 /* where a rate was given, and neither count nor time */
#define BATCH_BYTES_MAX (1u << 20)

static int check_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                       struct weir_error *err)
{
    if (value >= least && value <= most) return 0;
    return weir__fail(err, WEIR_EINVAL, "--%s must be %" PRIu64 " to %" PRIu64, name, least, most);
}

/* Puts defaults where nothing was said and checks what was. */
static int complete(struct weir__trial_options *o, struct weir_error *err)
{
    struct weir_hub_info info;
    int rc;

    if (!o->size) o->size = SIZE;
    if (!o->batch) o->batch = BATCH;
    if (o->mode != WEIR__TRIAL_RECEIVE && !o->count && !o->time_ms) {
        if (o->rate) o->time_ms = RATED_MS;
        if (!o->rate) o->count = COUNT;
    }
    rc = check_range("size", o->size, WEIR__TRIAL_SIZE_MIN, WEIR__TRIAL_SIZE_MAX, err);
    if (rc == 0) rc = check_range("batch", o->batch, 1, WEIR__TRIAL_BATCH_MAX, err);
    if (rc == 0) rc = check_range("rate", o->rate, 0, WEIR__TRIAL_RATE_MAX, err);
    if (rc == 0 && (uint64_t)o->size * o->batch > BATCH_BYTES_MAX)
        rc = weir__fail(err, WEIR_EINVAL, "--size times --batch must be at most %u bytes",
                        BATCH_BYTES_MAX);
    if (rc == 0)
        rc = weir_hub_info(o->mode == WEIR__TRIAL_RECEIVE ? o->from : o->to, o->hub, &info, err);
    if (rc != 0) return rc;
    if (!o->partitions) o->partitions = info.partitions;
    if (o->partitions > info.partitions)
        return weir__fail(err, WEIR_EINVAL, "--partitions %" PRIu32 ": the hub has %" PRIu32,
                          o->partitions, info.partitions);
    if (o->partitions > WEIR__TRIAL_PARTITIONS_MAX) o->partitions = WEIR__TRIAL_PARTITIONS_MAX;
    return 0;
}

static void keep_cpu(struct weir__trial_side *side, const struct weir__bench_run *run)
{
    side->user_s = run->user_s;
    side->system_s = run->system_s;
    side->cpu_s = run->user_s + run->system_s;
}

static int run_send(struct weir__trial *t, uint64_t run, struct weir_error *err)
{
    struct weir__trial_sender *sender;
    struct weir__bench_mark mark;
    struct weir__bench_run cost;
    int rc = weir__trial_sender_open(&sender, &t->o, run, err);

    if (rc == 0) {
        weir__bench_begin(&mark);
        rc = weir__trial_sender_run(sender, t, true, err);
        weir__bench_end(&mark, &cost);
        keep_cpu(&t->sent, &cost);
    }
    weir__trial_sender_close(sender);
    return rc;
}

/* Reading ahead begins with the opening, and so does the measurement. */
static int run_receive(struct weir__trial *t, uint64_t run, struct weir_error *err)
{
    struct weir__trial_readers *readers;
    struct weir__bench_mark mark;
    struct weir__bench_run cost;
    int rc;

    weir__bench_begin(&mark);
    rc = weir__trial_readers_open(&readers, &t->o, run, err);
    if (rc == 0) rc = weir__trial_readers_start(readers, err);
    if (rc == 0) rc = weir__trial_readers_finish(readers, t->o.count, t, err);
    weir__bench_end(&mark, &cost);
    keep_cpu(&t->received, &cost);
    weir__trial_readers_close(readers);
    return rc;
}

static int run_both(struct weir__trial *t, struct weir__trial_sender *sender,
                    struct weir__trial_readers *readers, struct weir_error *err)
{
    double sender_s = weir__trial_sender_cpu_s(sender);
    struct weir__bench_mark mark;
    struct weir__bench_run cost;
    struct weir_error late;
    int rc, end;

    weir__bench_begin(&mark);
    rc = weir__trial_readers_start(readers, err);
    if (rc == 0) rc = weir__trial_sender_run(sender, t, false, err);
    end = weir__trial_readers_finish(readers, t->sent.events, t, &late);
    if (rc == 0 && end != 0) {
        *err = late;
        rc = end;
    }
    t->sent.cpu_s = weir__trial_sender_cpu_s(sender) - sender_s;
    weir__bench_end(&mark, &cost);
    t->received.cpu_s = cost.user_s + cost.system_s - t->sent.cpu_s;
    if (t->sent.events > t->received.events) t->missing = t->sent.events - t->received.events;
    return rc;
}

/* The receivers stand behind the newest events before anything is sent. */
static int run_e2e(struct weir__trial *t, uint64_t run, struct weir_error *err)
{
    struct weir__trial_readers *readers;
    struct weir__trial_sender *sender = NULL;
    int rc = weir__trial_readers_open(&readers, &t->o, run, err);

    if (rc == 0) rc = weir__trial_sender_open(&sender, &t->o, run, err);
    if (rc == 0) rc = run_both(t, sender, readers, err);
    weir__trial_sender_close(sender);
    weir__trial_readers_close(readers);
    return rc;
}

int weir__trial_run(struct weir__trial *out, const struct weir__trial_options *o,
                    struct weir_error *err)
{
    static int (*const modes[])(struct weir__trial *, uint64_t, struct weir_error *) = {
        [WEIR__TRIAL_SEND] = run_send,
        [WEIR__TRIAL_RECEIVE] = run_receive,
        [WEIR__TRIAL_E2E] = run_e2e,
    };
    struct weir__rand chance = weir__rand_system();
    uint64_t run;
    int rc;

    *out = (struct weir__trial){.o = *o};
    rc = complete(&out->o, err);
    if (rc == 0) rc = chance.fill(chance.self, &run, sizeof run, err);
    return rc == 0 ? modes[o->mode](out, run, err) : rc;
}
