/* upkeep.c - what a log does by itself, on the threads of its pool.
 *
 * The flush job commits what nobody waits for in person, and runs all completions. The keeper looks
 * after time: it marks the end of an idle log as durable, rolls a segment that has grown old,
 * prepares the next one, applies retention (retention.c), and gives the memory of an idle log back.
 * It looks every WEIR__LOG_STEP_MS while the log is written to, and then when something is due. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/state.h"

#define STEPS_PER_TURN 16 /* groups or completions; then the pool's other logs have their turn */
#define COMPLETIONS_PER_STEP 1024

/* ---- the flush job ---- */

/* False: there is nothing to do, or somebody else does it. */
static bool flush_once(struct weir__log *log)
{
    struct weir_error err;

    if (log->queue_head < log->queue_commit) {
        weir__log_run_completions(log, COMPLETIONS_PER_STEP);
        return true;
    }
    if (!weir__log_has_work(log) || log->leading) return false;
    weir__log_lead(log, &err); /* an append that needs a roll tries again and tells */
    return true;
}

static void run_flush(void *owner)
{
    struct weir__log *log = owner;
    bool more = true;

    weir__mutex_lock(&log->lock);
    log->flush.state = WEIR__JOB_RUNNING;
    for (int i = 0; more && i < STEPS_PER_TURN; i++) more = flush_once(log);
    if (more) {
        weir__pool_put_back(log->pool, &log->flush);
    } else {
        log->flush.state = WEIR__JOB_IDLE;
        if (log->closing) weir__cond_broadcast(&log->room);
    }
    weir__mutex_unlock(&log->lock);
}

/* ---- when the keeper comes ---- */

/* How often it looks at a log that is written to. */
static int64_t step_ms(const struct weir__log *log)
{
    return log->o.sync_ms && log->o.sync_ms < WEIR__LOG_STEP_MS ? log->o.sync_ms
                                                                : WEIR__LOG_STEP_MS;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool has_idle_memory(const struct weir__log *log)
{
    return log->tail.count || log->tail.idle || log->queue_cap > WEIR__LOG_QUEUE_FIRST;
}

static int64_t until_idle_ms(const struct weir__log *log, int64_t quiet_ms)
{
    if (!has_idle_memory(log)) return INT64_MAX;
    return quiet_ms < WEIR__LOG_IDLE_MS ? WEIR__LOG_IDLE_MS - quiet_ms : 0;
}

int64_t weir__upkeep_wait_ms(struct weir__log *log)
{
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    int64_t quiet_ms = mono_ms - log->written_mono_ms, wait_ms = until_idle_ms(log, quiet_ms);

    if (!log->failed) {
        wait_ms = least(wait_ms, weir__retention_wait_ms(log));
        wait_ms = least(wait_ms, weir__spare_wait_ms(log));
        if (log->roll_rc != 0) wait_ms = least(wait_ms, WEIR__LOG_STEP_MS);
        if (log->synced > log->marked) wait_ms = least(wait_ms, WEIR__LOG_MARK_MS - quiet_ms);
        if (log->synced < log->visible)
            wait_ms = least(wait_ms, log->o.sync_ms - (mono_ms - log->synced_mono_ms));
    }
    return wait_ms > 0 ? wait_ms : 0;
}

/* At most WEIR__LOG_REST_MS, and while the log is written to a step. What is overdue could not be
 * done just now, and is tried again a step later. */
static int64_t until_due_ms(struct weir__log *log)
{
    int64_t quiet_ms = log->o.clock.mono_ms(log->o.clock.self) - log->written_mono_ms;
    int64_t wait_ms = least(weir__upkeep_wait_ms(log), WEIR__LOG_REST_MS);

    if (quiet_ms < WEIR__LOG_STEP_MS) wait_ms = least(wait_ms, WEIR__LOG_STEP_MS);
    return wait_ms > 0 ? wait_ms : step_ms(log);
}

static void tell_well(struct weir__log *log)
{
    if (log->trouble == 0) return;
    log->trouble = 0;
    weir__log_line(&log->o.logger, WEIR__INFO, "log", "upkeep dir=%s: it works again", log->dir);
}

/* On a full disk the same error comes at every step. */
static void tell_trouble(struct weir__log *log, const struct weir_error *err)
{
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    uint32_t trouble = weir__crc32c(0, err->text, strlen(err->text)) | 1;

    if (trouble == log->trouble && mono_ms - log->trouble_mono_ms < WEIR__LOG_TELL_MS) return;
    log->trouble = trouble;
    log->trouble_mono_ms = mono_ms;
    weir__log_line(&log->o.logger, WEIR__WARN, "log", "upkeep dir=%s: %s", log->dir, err->text);
}

static int64_t keep(void *owner)
{
    struct weir__log *log = owner;
    struct weir_error err;
    int64_t wait_ms = INT64_MAX;
    int rc = weir__log_step(log, &err);

    if (rc != 0)
        tell_trouble(log, &err);
    else
        tell_well(log);
    weir__mutex_lock(&log->lock);
    if (!log->closing) wait_ms = rc == 0 ? until_due_ms(log) : step_ms(log);
    log->resting = wait_ms > step_ms(log);
    weir__mutex_unlock(&log->lock);
    return weir__deadline_ns(wait_ms);
}

void weir__upkeep_soon(struct weir__log *log, int64_t after_ms)
{
    log->resting = false;
    if (log->pool)
        weir__pool_due(log->pool, &log->upkeep, weir__deadline_ns(least(after_ms, step_ms(log))));
}

int weir__upkeep_start(struct weir__log *log, struct weir_error *err)
{
    int rc = 0;

    log->active_mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    log->written_mono_ms = log->synced_mono_ms = log->active_mono_ms;
    log->marked = log->control.watermark;
    log->flush = (struct weir__pool_job){.run = run_flush, .owner = log};
    log->upkeep = (struct weir__pool_member){.keep = keep, .owner = log};
    if (!log->o.no_threads) {
        log->pool = log->o.pool;
        log->own_pool = !log->pool;
        if (!log->pool) rc = weir__log_pool_new(&log->pool, 1, err);
        log->flush.state = WEIR__JOB_IDLE;
    }
    weir__watch_start(log);
    if (rc == 0 && log->pool)
        rc = weir__pool_join(log->pool, &log->upkeep, weir__deadline_ns(step_ms(log)), err);
    return rc;
}

void weir__upkeep_stop(struct weir__log *log)
{
    if (log->pool) weir__pool_leave(log->pool, &log->upkeep);
    weir__mutex_lock(&log->lock);
    do {
        weir__log_pass_on(log);
        if (log->flush.state == WEIR__JOB_QUEUED || log->flush.state == WEIR__JOB_RUNNING)
            weir__log_wait(log, false, INT64_MAX);
    } while (log->flush.state == WEIR__JOB_QUEUED || log->flush.state == WEIR__JOB_RUNNING);
    weir__mutex_unlock(&log->lock);
    weir__watch_stop(log);
}

/* ---- the keeper's duties; lock held, let go of during disk operations ---- */

static int write_control(struct weir__log *log, struct weir_error *err)
{
    int rc;

    weir__mutex_unlock(&log->lock);
    rc = weir__log_write_control(log, err);
    weir__mutex_lock(&log->lock);
    if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    return rc;
}

static int mark_end(struct weir__log *log, int64_t mono_ms, struct weir_error *err)
{
    int rc = 0;

    if (log->failed || log->synced <= log->marked ||
        mono_ms - log->written_mono_ms < WEIR__LOG_MARK_MS)
        return 0;
    weir__log_take_lead(log); /* what the control file says is the leader's to read, too */
    if (!log->failed && !log->headed && log->synced > log->control.watermark)
        rc = write_control(log, err);
    if (rc == 0 && !log->headed) log->marked = log->control.watermark;
    weir__log_give_lead(log);
    return rc;
}

bool weir__roll_waits(const struct weir__log *log)
{
    return log->roll_rc != 0 &&
           (log->roll_again > 0 || log->headed || log->opening == WEIR__LOG_EPOCH_WAITS);
}

/* One that failed for somebody is tried again, so that whoever comes next need not. */
static int roll(struct weir__log *log, struct weir_error *err)
{
    bool again = weir__roll_waits(log);

    if (log->failed || (!again && !weir__retention_roll_due(log))) return 0;
    log->want_roll = true;
    if (again && log->roll_bytes < log->roll_again) log->roll_bytes = log->roll_again;
    while (!log->failed && log->want_roll) {
        int rc;

        if (log->leading) {
            weir__log_wait(log, true, INT64_MAX);
            continue;
        }
        rc = weir__log_lead(log, err);
        if (rc != 0) return rc;
    }
    weir__log_pass_on(log); /* whoever saw us wait left the work to us, and we have other things */
    return 0;
}

static int expire(struct weir__log *log, struct weir_error *err)
{
    size_t most = log->segment_count;
    int rc = 0;

    while (rc == 0 && most-- > 0 && weir__retention_due(log)) rc = weir__retention_expire(log, err);
    return rc;
}

/* Lock held throughout: nothing here touches the disk. */
static void give_memory_back(struct weir__log *log, int64_t mono_ms)
{
    if (mono_ms - log->written_mono_ms < WEIR__LOG_IDLE_MS) return;
    weir__tail_trim(&log->tail, log->visible);
    weir__log_shrink_queue(log);
}

int weir__log_step(struct weir__log *log, struct weir_error *err)
{
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    struct weir_error unsaid;
    int rc, first = 0;

    weir__mutex_lock(&log->lock);
    if (log->o.sync_ms && log->synced < log->visible && !log->failed &&
        mono_ms - log->synced_mono_ms >= log->o.sync_ms)
        first = weir__log_sync_lazily(log, err);
    weir__retention_tick(log);
    if (first == 0) first = mark_end(log, mono_ms, err);
    if (first == 0) first = roll(log, err);
    rc = expire(log, first == 0 ? err : &unsaid); /* on a full disk, this is what makes room */
    if (first == 0) first = rc;
    weir__spare_release(log);
    if (first == 0) first = weir__spare_prepare(log, err);
    if (first == 0) first = weir__producer_file_tidy(log, err);
    weir__spare_rest(log);
    give_memory_back(log, mono_ms);
    weir__log_pass_on(log); /* whoever saw us wait for the lead left the work to us */
    weir__mutex_unlock(&log->lock);
    return first;
}
