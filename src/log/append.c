/* append.c - taking batches in.
 *
 * The body is checksummed by the caller's thread before the lock is taken; under it the batch gets
 * its place, its sequence numbers and its time, and is copied. A blocking caller with nobody ahead
 * then writes and syncs in its own thread: handing the work to another one and being woken by it
 * would cost as much as a quarter of the sync. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/state.h"

struct incoming {
    const struct weir__log_batch *batch;
    uint32_t body_bytes, body_crc;
    uint64_t bytes; /* in the log */
    weir__log_done_fn done;
    void *user;
    struct weir__log_waiter *waiter;
    struct weir__log_receipt receipt;
    uint64_t ticket; /* its place in the queue */
};

static int measure(const struct weir__log *log, struct incoming *in, struct weir_error *err)
{
    const struct weir__log_batch *b = in->batch;
    uint64_t bytes = 0;

    for (int i = 0; i < WEIR__LOG_BODY_PARTS_MAX; i++) {
        bytes += b->body[i].len;
        if (bytes > log->o.batch_bytes_max)
            return weir__fail(err, WEIR_ETOOBIG, "a batch of more than %u bytes",
                              log->o.batch_bytes_max);
        in->body_crc = weir__crc32c(in->body_crc, b->body[i].at, b->body[i].len);
    }
    if (b->partition >= weir__log_partitions(log))
        return weir__fail(err, WEIR_EINVAL, "partition %u of %u", b->partition,
                          weir__log_partitions(log));
    if (b->count == 0 || b->count > bytes)
        return weir__fail(err, WEIR_EINVAL, "%u events in %" PRIu64 " bytes", b->count, bytes);
    in->body_bytes = (uint32_t)bytes;
    in->bytes = weir__batch_bytes(in->body_bytes);
    return 0;
}

static bool inside_completion(const struct weir__log *log)
{
    return log->completing && pthread_equal(log->completer, pthread_self());
}

/* A place in the queue; it grows up to its limit. */
static bool queue_room(struct weir__log *log)
{
    uint64_t used = log->queue_tail - log->queue_head;
    uint32_t cap = log->queue_cap * 2;
    struct weir__log_pending *queue;

    if (used < log->queue_cap) return true;
    if (cap > WEIR__LOG_PENDING_MAX) return false;
    queue = calloc(cap, sizeof *queue);
    if (!queue) return false;
    for (uint64_t i = log->queue_head; i < log->queue_tail; i++)
        queue[i & (cap - 1)] = log->queue[i & (log->queue_cap - 1)];
    free(log->queue);
    log->queue = queue;
    log->queue_cap = cap;
    return true;
}

/* What a burst made it grow to is not needed for ever. */
void weir__log_shrink_queue(struct weir__log *log)
{
    struct weir__log_pending *queue;

    if (log->queue_cap == WEIR__LOG_QUEUE_FIRST || log->queue_head < log->queue_tail) return;
    queue = calloc(WEIR__LOG_QUEUE_FIRST, sizeof *queue);
    if (!queue) return;
    free(log->queue);
    log->queue = queue;
    log->queue_cap = WEIR__LOG_QUEUE_FIRST;
}

/* 1: there is room. 0: not yet. Negative: there never will be. */
static int try_room(struct weir__log *log, const struct incoming *in, struct weir_error *err)
{
    uint64_t bytes = in->bytes;

    if (log->failed) return weir__log_state_locked(log, err);
    if (log->closing) return weir__fail(err, WEIR_ECLOSED, "the log is closing");
    if (!queue_room(log)) return 0;
    if (!weir__log_fits(log, in->batch->partition, bytes)) {
        log->want_roll = true;
        if (bytes > log->roll_bytes) log->roll_bytes = bytes;
    }
    if (log->want_roll) return 0;
    switch (weir__tail_room(&log->tail, bytes, log->visible)) {
    case WEIR__TAIL_READY: return 1;
    case WEIR__TAIL_NOMEM: return weir__fail(err, WEIR_ENOMEM, "taking a batch in: out of memory");
    case WEIR__TAIL_FULL: break;
    }
    return 0;
}

/* Whether the work must be done here: a completion, of any log, has one of the pool's threads. */
static bool nobody_else(const struct weir__log *log)
{
    return log->o.no_threads || inside_completion(log) || weir__pool_here(log->pool);
}

static int wait_for_room(struct weir__log *log, const struct incoming *in, int64_t deadline_ns,
                         struct weir_error *err)
{
    int rc = try_room(log, in, err);
    bool alone, may_lead;

    if (rc != 0) return rc < 0 ? rc : 0;
    alone = nobody_else(log);
    may_lead = in->waiter || alone;
    for (; rc == 0; rc = try_room(log, in, err)) {
        bool timed_out = false;

        if (log->want_roll && log->roll_rc != 0 && !log->leading) { /* there may be room by now */
            rc = weir__log_lead(log, err);
            if (rc != 0) return rc;
            continue;
        }
        if (deadline_ns != 0 && may_lead && !log->leading && weir__log_has_work(log)) {
            rc = weir__log_lead(log, err);
            if (rc != 0) return rc;
            continue;
        }
        if (deadline_ns != 0 && log->o.no_threads && !log->completing &&
            log->queue_head < log->queue_commit) {
            weir__log_run_completions(log, UINT64_MAX);
            continue;
        }
        if (deadline_ns == 0 || (alone && !log->leading))
            timed_out = true;
        else
            timed_out = !weir__log_wait(log, may_lead, deadline_ns);
        if (timed_out)
            return weir__fail(err, WEIR_EBUSY,
                              "too much is waiting for the disk: %" PRIu64 " bytes in %" PRIu64
                              " batches",
                              log->tail.end - log->visible, log->queue_tail - log->queue_head);
    }
    return rc < 0 ? rc : 0;
}

static int fail_fenced(uint64_t id, unsigned received, unsigned current, struct weir_error *err)
{
    return weir__fail(err, WEIR_EFENCED,
                      "producer %" PRIu64 ": a newer epoch took over. Received:%u Current:%u", id,
                      received, current);
}

/* The newest epoch of a producer that has begun or has published; 0 when none is known. */
static uint16_t current_epoch(struct weir__log *log, uint32_t partition, uint64_t id)
{
    const struct weir__producer *known = weir__producers_find(&log->producers, partition, id);
    const struct weir__producer *begun = weir__producers_find(&log->begun, partition, id);
    uint16_t epoch = known ? known->epoch : 0;

    return begun && begun->epoch > epoch ? begun->epoch : epoch;
}

/* Checks an idempotent producer's mark. *out_known is what is remembered; when the batch is to be
 * stored, the place for what will be, and *out_before is what has to be put back should it fail. */
static int check_producer(struct weir__log *log, struct incoming *in,
                          struct weir__producer **out_known, struct weir__producer *out_before,
                          struct weir_error *err)
{
    const struct weir__log_batch *b = in->batch;
    int rc;

    if (log->begun.count > 0) {
        uint16_t current = current_epoch(log, b->partition, b->producer.id);

        if (b->producer.epoch < current)
            return fail_fenced(b->producer.id, b->producer.epoch, current, err);
    }
    *out_known = weir__producers_find(&log->producers, b->partition, b->producer.id);
    rc = weir__producer_check(*out_known, &b->producer, b->count, &in->receipt.duplicate, err);
    if (rc != 0 || in->receipt.duplicate) return rc;
    *out_known = weir__producers_use(&log->producers, *out_known, b->partition, b->producer.id,
                                     weir__log_keep_ms(log), out_before);
    return *out_known ? 0 : weir__fail(err, WEIR_ENOMEM, "out of memory");
}

/* before: what was known of its producer; NULL: it has none, or the batch is not stored. */
static void enqueue(struct weir__log *log, struct incoming *in, const struct weir__producer *before)
{
    const struct weir__log_batch *b = in->batch;
    bool stored = !in->receipt.duplicate;
    struct weir__log_pending *p;

    in->ticket = log->queue_tail++;
    p = &log->queue[in->ticket & (log->queue_cap - 1)];
    p->receipt = in->receipt;
    p->end = log->tail.end;
    p->partition = b->partition;
    p->count = stored ? b->count : 0;
    p->body_bytes = stored ? in->body_bytes : 0;
    p->rc = 0;
    p->done = in->done;
    p->user = in->user;
    p->waiter = in->waiter;
    p->producer_id = b->producer.id;
    if (before) p->before = *before;
}

static void copy_batch(struct weir__log *log, const struct incoming *in)
{
    const struct weir__log_batch *b = in->batch;
    struct weir__batch_header h = {
        .position = in->receipt.offset,
        .watermark = log->synced,
        .sequence = in->receipt.sequence,
        .time_ms = in->receipt.time_ms,
        .producer = b->producer,
        .epoch = log->epoch,
        .body_bytes = in->body_bytes,
        .body_crc = in->body_crc,
        .count = b->count,
        .partition = (uint16_t)b->partition,
        .attrs = b->attrs,
        .before = log->before,
    };
    uint8_t *at = weir__tail_at(&log->tail), *end = at + in->bytes;

    weir__batch_encode(&h, &weir__log_active(log)->stamp, at);
    at += WEIR__BATCH_HEADER_BYTES;
    for (int i = 0; i < WEIR__LOG_BODY_PARTS_MAX; i++) {
        if (b->body[i].len == 0) continue;
        memcpy(at, b->body[i].at, b->body[i].len);
        at += b->body[i].len;
    }
    memset(at, 0, (size_t)(end - at));
    weir__tail_advance(&log->tail, in->bytes);
    log->before = (struct weir__batch_before){b->partition, (uint32_t)in->bytes, b->count};
}

static void remember_producer(struct weir__producer *p, const struct incoming *in)
{
    const struct weir__log_batch *b = in->batch;

    p->epoch = b->producer.epoch;
    p->next = b->producer.sequence + b->count;
    p->count = b->count;
    p->sequence = in->receipt.sequence;
    p->offset = in->receipt.offset;
    p->time_ms = in->receipt.time_ms;
}

static int lay_down_again(struct weir__log *log, struct incoming *in,
                          const struct weir__producer *known)
{
    assert(known); /* or what would it be a duplicate of */
    in->receipt.offset = known->offset;
    in->receipt.sequence = known->sequence;
    in->receipt.time_ms = known->time_ms;
    enqueue(log, in, NULL);
    return 0;
}

/* There is room: gives the batch its place and lays it down. From here on it needs no memory. */
static int lay_down(struct weir__log *log, struct incoming *in, struct weir_error *err)
{
    struct weir__head *head = &log->heads[in->batch->partition];
    struct weir__index *index = weir__log_active(log)->index;
    struct weir__producer *known = NULL, before = {0};
    int64_t now_ms = log->o.clock.wall_ms(log->o.clock.self);
    int rc = in->batch->producer.id ? check_producer(log, in, &known, &before, err) : 0;

    if (rc != 0) return rc;
    if (in->receipt.duplicate) return lay_down_again(log, in, known);
    if (!weir__index_reserve(index, in->batch->partition)) {
        if (known)
            weir__producers_undo(&log->producers, in->batch->partition, in->batch->producer.id,
                                 &before);
        return weir__fail(err, WEIR_ENOMEM, "taking a batch in: out of memory");
    }
    if (now_ms > log->last_time_ms) log->last_time_ms = now_ms;
    in->receipt.offset = log->tail.end;
    in->receipt.sequence = head->next_sequence;
    in->receipt.time_ms = log->last_time_ms;
    copy_batch(log, in);
    *head = (struct weir__head){head->next_sequence + in->batch->count,
                                in->receipt.offset + in->batch->count - 1, in->receipt.time_ms};
    if (known) remember_producer(known, in);
    enqueue(log, in, known ? &before : NULL);
    return 0;
}

static int take_in(struct weir__log *log, struct incoming *in, int64_t deadline_ns,
                   struct weir_error *err)
{
    int rc = wait_for_room(log, in, deadline_ns, err);

    return rc != 0 ? rc : lay_down(log, in, err);
}

int weir__log_append(struct weir__log *log, const struct weir__log_batch *batch,
                     int64_t deadline_ns, weir__log_done_fn done, void *user,
                     struct weir_error *err)
{
    struct incoming in = {.batch = batch, .done = done, .user = user};
    int rc = measure(log, &in, err);

    if (rc != 0) return rc;
    weir__mutex_lock(&log->lock);
    rc = take_in(log, &in, deadline_ns, err);
    weir__log_pass_on(log);
    weir__mutex_unlock(&log->lock);
    return rc;
}

/* Leads while nobody else does, waits while somebody does. */
static int wait_for_answer(struct weir__log *log, struct incoming *in, int64_t deadline_ns,
                           struct weir_error *err)
{
    struct weir__log_waiter *w = in->waiter;

    while (!w->done) {
        bool in_time;

        if (!log->leading) {
            weir__log_lead(log, NULL); /* its outcome comes back through the waiter */
            continue;
        }
        in_time = weir__log_wait(log, true, deadline_ns);
        if (in_time || w->done) continue;
        log->queue[in->ticket & (log->queue_cap - 1)].waiter = NULL;
        return weir__fail(err, WEIR_EUNKNOWN,
                          "the deadline passed before the disk answered; the batch may be there");
    }
    if (w->rc != 0 && err) *err = w->err;
    return w->rc == 0 ? 0 : weir__wrap(err, w->rc, "%s", weir_error_text(w->rc));
}

int weir__log_append_wait(struct weir__log *log, const struct weir__log_batch *batch,
                          int64_t deadline_ns, struct weir__log_receipt *out,
                          struct weir_error *err)
{
    struct weir__log_waiter waiter = {0};
    struct incoming in = {.batch = batch, .waiter = &waiter};
    int rc = measure(log, &in, err);

    if (rc != 0) return rc;
    weir__mutex_lock(&log->lock);
    if (inside_completion(log)) {
        rc = weir__fail(err, WEIR_EDEADLOCK, "a blocking append inside a completion");
    } else {
        rc = take_in(log, &in, deadline_ns, err);
        if (rc == 0) rc = wait_for_answer(log, &in, deadline_ns, err);
        if (log->o.no_threads) weir__log_run_completions(log, UINT64_MAX);
    }
    weir__log_pass_on(log);
    weir__mutex_unlock(&log->lock);
    if (rc == 0 && out) *out = in.receipt;
    return rc;
}

int weir__log_flush(struct weir__log *log, int64_t deadline_ns, struct weir_error *err)
{
    struct weir_error told;
    uint64_t target, undone;
    bool may_roll = true;
    int rc = 0;

    weir__mutex_lock(&log->lock);
    target = log->queue_tail;
    undone = log->undone;
    if (inside_completion(log)) {
        rc = weir__fail(err, WEIR_EDEADLOCK, "a flush inside a completion");
        target = 0;
    }
    for (;;) {
        bool roll = may_roll && log->want_roll && !log->failed;

        if (log->queue_head >= target && !(log->o.no_threads && roll)) break;
        if ((log->queue_commit < target || roll) && !log->leading) {
            bool rolls = log->queue_commit == log->queue_tail;

            if (weir__log_lead(log, &told) != 0 && rolls) may_roll = false; /* appends will tell */
            continue;
        }
        if (log->o.no_threads && log->queue_head < log->queue_commit) {
            weir__log_run_completions(log, UINT64_MAX);
            continue;
        }
        if (!weir__log_wait(log, true, deadline_ns)) {
            rc = weir__fail(err, WEIR_ETIMEDOUT, "the deadline passed before the disk answered");
            break;
        }
    }
    if (rc == 0) rc = weir__log_state_locked(log, err);
    if (rc == 0 && log->undone != undone)
        rc = weir__fail(err, log->undone_rc, "batches were not stored: %s",
                        weir_error_text(log->undone_rc));
    weir__log_pass_on(log);
    weir__mutex_unlock(&log->lock);
    return rc;
}

int weir__log_producer_begin(struct weir__log *log, uint32_t partition, uint64_t id, uint16_t epoch,
                             struct weir__log_producer *out_next, struct weir_error *err)
{
    struct weir__producer *p, unused;
    uint16_t current;
    int rc = 0;

    weir__mutex_lock(&log->lock);
    current = current_epoch(log, partition, id);
    if (epoch < current) {
        rc = fail_fenced(id, epoch, current, err);
    } else if (epoch > current) {
        p = weir__producers_use(&log->begun, weir__producers_find(&log->begun, partition, id),
                                partition, id, weir__log_keep_ms(log), &unused);
        if (p)
            p->epoch = epoch;
        else
            rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    }
    p = weir__producers_find(&log->producers, partition, id);
    *out_next = (struct weir__log_producer){id, epoch, p ? p->next : 0};
    weir__mutex_unlock(&log->lock);
    return rc;
}

int weir__log_producer_state(struct weir__log *log, uint32_t partition, uint64_t id,
                             struct weir__log_producer *out_next, struct weir_error *err)
{
    const struct weir__producer *known, *begun;
    int rc = 0;

    weir__mutex_lock(&log->lock);
    known = weir__producers_find(&log->producers, partition, id);
    begun = weir__producers_find(&log->begun, partition, id);
    if (known || begun)
        *out_next = (struct weir__log_producer){id, current_epoch(log, partition, id),
                                                known ? known->next : 0};
    else
        rc = weir__fail(err, WEIR_ENOTFOUND, "producer %" PRIu64 " is not known", id);
    weir__mutex_unlock(&log->lock);
    return rc;
}
