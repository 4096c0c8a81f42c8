/* upkeep.c - what a log does by itself, and the two threads that do it.
 *
 * The flusher commits what nobody waits for in person, and runs all completions. The keeper looks
 * after time: it marks the end of an idle log as durable, rolls a segment that has grown old,
 * prepares the next one, and applies retention (retention.c). */
#include <inttypes.h>
#include <stdlib.h>

#include "log/state.h"

#define STEP_MS 1000          /* how often the keeper looks */
#define ROLLS_PER_RETENTION 8 /* a segment is closed after this part of the retention time */
#define ROLL_MS_MAX (INT64_C(24) * 3600 * 1000)
#define ROLL_MS_MIN 1000

static void *run_flusher(void *arg)
{
    struct weir__log *log = arg;
    struct weir_error err;

    weir__mutex_lock(&log->lock);
    for (;;) {
        if (log->queue_head < log->queue_commit) {
            weir__log_run_completions(log);
        } else if (weir__log_has_work(log) && !log->leading) {
            bool rolls = log->queue_commit == log->queue_tail;
            int rc = weir__log_lead(log, &err);

            if (rc != 0 && rolls && !log->failed) { /* told to whoever appends next */
                log->roll_rc = rc;
                log->roll_err = err;
                if (log->room_waiters) weir__cond_broadcast(&log->room);
            }
        } else if (log->closing && (log->failed || log->queue_commit == log->queue_tail)) {
            break;
        } else {
            log->flusher_idle = true;
            weir__cond_wait(&log->work, &log->lock, INT64_MAX);
            log->flusher_idle = false;
        }
    }
    weir__mutex_unlock(&log->lock);
    return NULL;
}

static void *run_keeper(void *arg)
{
    struct weir__log *log = arg;
    struct weir_error err;

    weir__mutex_lock(&log->lock);
    while (!log->closing) {
        int64_t every = log->o.sync_ms && log->o.sync_ms < STEP_MS ? log->o.sync_ms : STEP_MS;

        weir__cond_wait(&log->upkeep, &log->lock, weir__deadline_ns(every));
        if (log->closing) break;
        weir__mutex_unlock(&log->lock);
        if (weir__log_step(log, &err) != 0)
            weir__log_line(&log->o.logger, WEIR__WARN, "log", "upkeep dir=%s: %s", log->dir,
                           err.text);
        weir__mutex_lock(&log->lock);
    }
    weir__mutex_unlock(&log->lock);
    return NULL;
}

int weir__upkeep_start(struct weir__log *log, struct weir_error *err)
{
    int rc;

    log->keep_mono_ms = log->active_mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    log->written_mono_ms = log->synced_mono_ms = log->keep_mono_ms;
    if (log->o.no_threads) return 0;
    rc = weir__thread_start(&log->flusher, "weir-flush", run_flusher, log, err);
    if (rc == 0) rc = weir__thread_start(&log->keeper, "weir-keep", run_keeper, log, err);
    if (rc == 0) return 0;
    weir__mutex_lock(&log->lock);
    log->closing = true;
    weir__cond_broadcast(&log->work);
    weir__mutex_unlock(&log->lock);
    weir__thread_join(&log->flusher);
    return rc;
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

    if (log->failed || mono_ms - log->written_mono_ms < WEIR__LOG_MARK_MS) return 0;
    weir__log_take_lead(log); /* what the control file says is the leader's to read, too */
    if (!log->failed && !log->headed && log->synced > log->control.watermark)
        rc = write_control(log, err);
    weir__log_give_lead(log);
    return rc;
}

static int roll_by_age(struct weir__log *log, struct weir_error *err)
{
    int64_t age_ms = log->o.retain_ms / ROLLS_PER_RETENTION;

    if (age_ms > ROLL_MS_MAX || log->o.retain_ms < 0) age_ms = ROLL_MS_MAX;
    if (age_ms < ROLL_MS_MIN) age_ms = ROLL_MS_MIN;
    if (log->failed || log->active_since_ms == 0 ||
        log->keep_wall_ms - log->active_since_ms < age_ms)
        return 0;
    log->want_roll = true;
    while (!log->failed && log->want_roll) {
        int rc;

        if (log->leading) {
            weir__log_wait(log, true, INT64_MAX);
            continue;
        }
        rc = weir__log_lead(log, err);
        if (rc == 0) continue;
        if (log->roll_bytes == 0 && !log->headed) { /* nobody needs it: use the room there is */
            log->want_roll = false;
            log->roll_rc = 0;
        }
        return rc;
    }
    return 0;
}

/* A file for the next segment, once the active one is half full or soon will be. */
static int prepare_spare(struct weir__log *log, struct weir_error *err)
{
    struct weir__segment *active = weir__log_active(log), *seg = NULL;
    uint64_t capacity = weir__log_next_capacity(log, 0);
    int rc;

    if (log->failed || log->spare || log->headed ||
        (!log->filling_fast && log->tail.end - active->h.base < active->h.capacity / 2))
        return 0;
    weir__mutex_unlock(&log->lock);
    rc = weir__log_make_segment(log, capacity, &seg, err);
    weir__mutex_lock(&log->lock);
    if (rc != 0) return rc;
    if (!log->spare) {
        log->spare = seg;
        return 0;
    }
    weir__mutex_unlock(&log->lock);
    weir__log_remove_segment(log, seg);
    weir__mutex_lock(&log->lock);
    return 0;
}

int weir__log_step(struct weir__log *log, struct weir_error *err)
{
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    struct weir_error unsaid;
    int rc = 0, first = 0;
    size_t most;

    weir__mutex_lock(&log->lock);
    if (log->o.sync_ms && log->synced < log->visible && !log->failed &&
        mono_ms - log->synced_mono_ms >= log->o.sync_ms)
        first = weir__log_sync_lazily(log, err);
    if (mono_ms - log->keep_mono_ms >= STEP_MS) weir__retention_tick(log, mono_ms);
    if (first == 0) first = mark_end(log, mono_ms, err);
    if (first == 0) first = roll_by_age(log, err);
    most = log->segment_count;
    if (first == 0 || first == WEIR_ENOSPACE) /* on a full disk, this is what makes room */
        while (rc == 0 && most-- > 0 && weir__retention_due(log))
            rc = weir__retention_expire(log, first == 0 ? err : &unsaid);
    if (first == 0) first = rc;
    if (first == 0) first = prepare_spare(log, err);
    weir__log_pass_on(log); /* whoever saw us wait for the lead left the work to us */
    weir__mutex_unlock(&log->lock);
    return first;
}
