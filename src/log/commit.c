/* commit.c - from memory to disk: one write and one sync for all that is waiting.
 *
 *   what fails                   what becomes of the group          and of the log
 *   write, for want of space     taken back: WEIR_ENOSPACE          goes on under a new epoch
 *     of memory, or for now        WEIR_ENOMEM, WEIR_EBUSY
 *     and the new epoch, too     WEIR_EUNKNOWN                      stops
 *   write, otherwise             WEIR_EUNKNOWN                      stops
 *   sync                         WEIR_EUNKNOWN                      stops: a second sync would lie
 *
 * Nothing behind a write needs memory: the index has room since the batch was taken in, and the
 * control file is written from a buffer that was there at open.
 *
 * Batches that were taken in behind a group that failed are never written: they end with the same
 * error when the group was taken back, and with WEIR_EFAILED when the log stopped. */
#include <assert.h>
#include <inttypes.h>

#include "log/state.h"

#define COMPLETIONS_AT_ONCE 64

static struct weir__log_pending *place(struct weir__log *log, uint64_t i)
{
    return &log->queue[i & (log->queue_cap - 1)];
}

bool weir__log_wait(struct weir__log *log, bool may_lead, int64_t deadline_ns)
{
    bool in_time;

    log->room_waiters++;
    log->lead_waiters += may_lead;
    if (!may_lead) weir__log_pass_on(log);
    in_time = weir__cond_wait(&log->room, &log->lock, deadline_ns);
    log->lead_waiters -= may_lead;
    log->room_waiters--;
    return in_time;
}

void weir__log_take_lead(struct weir__log *log)
{
    while (log->leading) weir__log_wait(log, false, INT64_MAX);
    log->leading = true;
}

bool weir__log_has_work(const struct weir__log *log)
{
    if (log->failed) return false;
    return log->queue_commit < log->queue_tail || (log->want_roll && log->roll_rc == 0);
}

void weir__log_pass_on(struct weir__log *log)
{
    bool to_lead = !log->leading && log->lead_waiters == 0 && weir__log_has_work(log);

    if (log->flush.state == WEIR__JOB_IDLE && (to_lead || log->queue_head < log->queue_commit))
        weir__pool_put(log->pool, &log->flush);
}

void weir__log_give_lead(struct weir__log *log)
{
    log->leading = false;
    if (log->room_waiters) weir__cond_broadcast(&log->room);
    weir__log_pass_on(log);
    weir__watch_tell(log);
}

int weir__log_state_locked(struct weir__log *log, struct weir_error *err)
{
    if (!log->failed) return 0;
    return weir__fail(err, WEIR_EFAILED, "the log stopped and must be opened anew: %s",
                      log->failure.text);
}

static void answer(struct weir__log_pending *p, int rc, const struct weir_error *err)
{
    p->rc = rc;
    if (!p->waiter) return;
    p->waiter->rc = rc;
    if (rc != 0 && err) p->waiter->err = *err;
    p->waiter->done = true;
    p->waiter = NULL;
}

/* Everything that is not durable gets its answer. */
static void answer_all(struct weir__log *log, int rc, const struct weir_error *err)
{
    for (uint64_t i = log->queue_commit; i < log->queue_tail; i++) answer(place(log, i), rc, err);
    log->queue_commit = log->queue_tail;
}

void weir__log_stop(struct weir__log *log, int rc, const struct weir_error *err)
{
    if (log->failed) return;
    log->failed = rc;
    if (err) log->failure = *err;
    log->failure.code = rc;
    weir__log_line(&log->o.logger, WEIR__ERROR, "log", "stopped dir=%s: %s", log->dir,
                   log->failure.text);
    answer_all(log, WEIR_EFAILED, &log->failure);
    weir__watch_note_all(log);
}

static void settle_batch(struct weir__log *log, struct weir__log_pending *p)
{
    struct weir__index_entry e = {p->receipt.offset, p->receipt.sequence, p->receipt.time_ms,
                                  p->count, p->body_bytes};
    bool added = weir__index_add(weir__log_active(log)->index, p->partition, &e);

    assert(added); /* appending reserved the room */
    (void)added;
    log->durable_heads[p->partition] =
        (struct weir__head){p->receipt.sequence + p->count, p->receipt.offset + p->count - 1,
                            p->receipt.time_ms};
    log->stats.batches++;
    log->stats.events += p->count;
    log->stats.bytes += p->body_bytes;
}

/* The group is durable: index, heads, counters, whoever waits. */
static void settle(struct weir__log *log, uint64_t group, uint64_t to)
{
    bool watched = __atomic_load_n(&log->watches.armed, __ATOMIC_RELAXED) > 0;

    for (uint64_t i = log->queue_commit; i < group; i++) {
        struct weir__log_pending *p = place(log, i);

        answer(p, 0, NULL);
        if (p->body_bytes == 0) continue;
        if (log->active_since_ms == 0) weir__retention_begin(log, p->receipt.time_ms);
        settle_batch(log, p);
        if (watched) weir__watch_note(log, p->partition);
    }
    log->visible = to;
    if (!log->o.sync_ms) log->synced = to;
    weir__log_active(log)->end = to;
    log->queue_commit = group;
    while (log->queue_head < log->queue_commit && !place(log, log->queue_head)->done)
        log->queue_head++;
    log->stats.groups++;
    if (log->resting) weir__upkeep_soon(log, WEIR__LOG_STEP_MS);
}

/* Takes back everything that is not durable, for the reason in *err. What the disk may have of it
 * must never come to life: first another epoch has to count. What is taken in while that is being
 * written still carries the old one, and goes the same way. False: it could not be written, *err
 * says why, and nothing was taken back. */
static bool undo(struct weir__log *log, struct weir_error *err)
{
    struct weir_error cause = *err;
    int rc;

    weir__mutex_unlock(&log->lock);
    log->control.epoch++;
    log->control.epoch_start = log->visible;
    rc = weir__log_write_control(log, err);
    weir__mutex_lock(&log->lock);
    if (rc != 0) return false;
    log->epoch = log->control.epoch;
    for (uint64_t i = log->queue_tail; i-- > log->queue_commit;)
        if (place(log, i)->producer_id && place(log, i)->body_bytes)
            weir__producers_undo(&log->producers, place(log, i)->partition,
                                 place(log, i)->producer_id, &place(log, i)->before);
    for (uint64_t i = log->queue_commit; i < log->queue_tail; i++)
        if (place(log, i)->body_bytes)
            weir__index_unreserve(weir__log_active(log)->index, place(log, i)->partition);
    memcpy(log->heads, log->durable_heads, log->partitions * sizeof *log->heads);
    weir__tail_cut(&log->tail, log->visible);
    log->before = (struct weir__batch_before){0};
    log->undone += log->queue_tail - log->queue_commit;
    log->undone_rc = cause.code;
    answer_all(log, cause.code, &cause);
    return true;
}

/* How many of the waiting batches go together. */
static uint64_t choose_group(struct weir__log *log, uint64_t *out_to)
{
    uint64_t i = log->queue_commit, from = log->visible;

    *out_to = from;
    while (i < log->queue_tail &&
           (place(log, i)->end - from <= WEIR__LOG_GROUP_BYTES_MAX || i == log->queue_commit))
        *out_to = place(log, i++)->end;
    return i;
}

static void count_flush(struct weir__log_stats *stats, int64_t took_ns)
{
    unsigned bucket = 0;

    stats->flush_ns += (uint64_t)took_ns;
    for (int64_t us = WEIR__LOG_FLUSH_FIRST_US; took_ns > us * 1000; us *= 2)
        if (++bucket == WEIR__LOG_FLUSH_BUCKETS - 1) break;
    stats->flush_buckets[bucket]++;
}

/* Once: everything works, and is slower than the disk could be. */
static void tell_not_direct(struct weir__log *log)
{
    log->told_not_direct = true;
    weir__log_line(&log->o.logger, WEIR__WARN, "log",
                   "direct=refused dir=%s: the file system refuses direct transfers; its segments "
                   "go through the page cache",
                   log->dir);
}

static int write_group(struct weir__log *log, uint64_t from, uint64_t to, bool *out_written,
                       struct weir_error *err)
{
    struct weir__segment *seg = weir__log_active(log);
    struct weir__bytes parts[WEIR__FS_PARTS_MAX];
    int count = weir__tail_parts(&log->tail, from, to, parts), rc;
    int64_t began_ns = weir__mono_ns(), took_ns;

    weir__mutex_unlock(&log->lock);
    rc = seg->file->ops->write(seg->file, parts, count,
                               weir__round_down(from, WEIR__FS_BLOCK) - seg->h.base, err);
    *out_written = rc == 0;
    if (rc == 0 && !log->o.sync_ms && !(log->o.sabotage & WEIR__LOG_SKIP_SYNC))
        rc = seg->file->ops->sync(seg->file, err);
    took_ns = weir__mono_ns() - began_ns;
    weir__mutex_lock(&log->lock);
    log->written_mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    if (seg->file->not_direct && !log->told_not_direct) tell_not_direct(log);
    if (!log->o.sync_ms) {
        log->stats.syncs++;
        count_flush(&log->stats, took_ns);
    }
    return rc == 0 ? 0 : weir__wrap(err, rc, "segment %s", seg->name);
}

/* Whether what made a write fail can be over at the next one. */
static bool passes(int rc)
{
    return rc == WEIR_ENOSPACE || rc == WEIR_ENOMEM || rc == WEIR_EBUSY;
}

static int commit_group(struct weir__log *log, struct weir_error *out)
{
    struct weir_error err = {0};
    uint64_t from = log->visible, to, group = choose_group(log, &to);
    bool written = true, undone = false;
    int rc = 0;

    log->leading = true;
    if (to > from) rc = write_group(log, from, to, &written, &err);
    if (rc == 0) settle(log, group, to);
    if (!written && passes(rc)) {
        undone = undo(log, &err);
        rc = err.code;
    }
    if (rc != 0 && !undone) {
        for (uint64_t i = log->queue_commit; i < group; i++)
            answer(place(log, i), WEIR_EUNKNOWN, &err);
        log->queue_commit = group;
        weir__log_stop(log, rc, &err);
    }
    weir__log_give_lead(log);
    if (rc != 0 && out) *out = err;
    return rc;
}

int weir__log_lead(struct weir__log *log, struct weir_error *err)
{
    assert(!log->leading);
    if (log->queue_commit < log->queue_tail) return commit_group(log, err);
    if (log->want_roll && log->opening == WEIR__LOG_EPOCH_WAITS)
        return weir__log_finish_opening(log, err);
    return log->want_roll ? weir__log_roll(log, err) : 0;
}

int weir__log_sync_lazily(struct weir__log *log, struct weir_error *err)
{
    struct weir__file *f;
    uint64_t to;
    int rc;

    weir__log_take_lead(log);
    f = weir__log_active(log)->file;
    to = log->visible;
    weir__mutex_unlock(&log->lock);
    rc = f ? f->ops->sync(f, err) : 0; /* none: its file is lost */
    weir__mutex_lock(&log->lock);
    log->synced_mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    log->stats.syncs++;
    if (rc == 0)
        log->synced = to;
    else
        weir__log_stop(log, rc, err);
    weir__log_give_lead(log);
    return rc;
}

/* What a completion is called with. */
struct completion {
    struct weir__log_receipt receipt;
    weir__log_done_fn done;
    void *user;
    int rc;
};

/* Without the lock. */
static void complete(const struct completion *now, int count)
{
    for (int i = 0; i < count; i++) {
        struct weir_error err;

        if (now[i].rc != 0) weir__fail(&err, now[i].rc, "%s", weir_error_text(now[i].rc));
        now[i].done(now[i].user, now[i].rc, &now[i].receipt, now[i].rc ? &err : NULL);
    }
}

void weir__log_run_completions(struct weir__log *log, uint64_t most)
{
    if (log->completing) return; /* further up on this stack: it goes on there */
    log->completing = true;
    log->completer = pthread_self();
    for (uint64_t done = 0; done < most && log->queue_head < log->queue_commit;) {
        struct completion now[COMPLETIONS_AT_ONCE];
        int count = 0;

        while (count < COMPLETIONS_AT_ONCE && log->queue_head < log->queue_commit) {
            const struct weir__log_pending *p = place(log, log->queue_head++);

            if (p->done) now[count++] = (struct completion){p->receipt, p->done, p->user, p->rc};
        }
        weir__mutex_unlock(&log->lock);
        complete(now, count);
        weir__mutex_lock(&log->lock);
        done += (uint64_t)count;
        if (log->room_waiters) weir__cond_broadcast(&log->room);
    }
    log->completing = false;
    if (log->room_waiters) weir__cond_broadcast(&log->room);
}
