/* roll.c - from one segment to the next, and the control file.
 *
 * A roll happens when everything taken in is durable and nothing more is let in. In order, each
 * step on disk before the next begins:
 *
 *   1  the old segment's index goes behind its batches. Not synced: it can be rebuilt
 *   2  the next segment: the spare, else a new file (made, allocated, synced, its name synced)
 *   3  who published in the old one goes to the file of producers (producer_file.c); synced
 *   4  the next one's header, with the heads of this moment; synced
 *   5  the control file names it as the last; synced
 *
 * When 5 cannot be written, nobody knows which of the two the disk will show. So nothing is taken
 * in until it has been: the segment stays `headed` and the next attempt goes on from there. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/state.h"

#define FAST_MS 1000 /* a segment that was full so soon lets the next one grow faster */

void weir__segment_close(struct weir__segment *seg)
{
    if (!seg) return;
    weir__file_close(seg->file);
    weir__file_close(seg->read);
    weir__index_free(seg->index);
    free(seg->start);
    free(seg);
}

int weir__log_remove_file(struct weir__log *log, const struct weir__segment *seg)
{
    struct weir_error err;
    int rc = weir__log_remove_name(log->fs, log->dir, seg->name, &err);

    if (rc != 0)
        weir__log_line(&log->o.logger, WEIR__WARN, "log", "removing %s: %s", seg->name, err.text);
    return rc;
}

int weir__log_remove_segment(struct weir__log *log, struct weir__segment *seg)
{
    int rc = weir__log_remove_file(log, seg);

    weir__segment_close(seg);
    return rc;
}

int weir__log_push_segment(struct weir__log *log, struct weir__segment *seg, struct weir_error *err)
{
    if (log->segment_count == log->segment_cap) {
        size_t cap = log->segment_cap ? log->segment_cap * 2 : 16;
        struct weir__segment **all = realloc(log->segments, cap * sizeof *all);

        if (!all) return weir__fail(err, WEIR_ENOMEM, "out of memory");
        log->segments = all;
        log->segment_cap = cap;
    }
    log->segments[log->segment_count++] = seg;
    return 0;
}

static int write_control(struct weir__log *log, struct weir_error *err)
{
    struct weir__file *f = log->control_file;

    log->control.keep = weir__retention_save(log);
    memcpy(log->control.heads, log->durable_heads, log->partitions * sizeof *log->heads);
    /* Both, for the one before names another epoch and perhaps another last segment: it could not
     * stand in for this one. */
    for (int copy = 0; copy < 2; copy++) {
        int rc = weir__control_write(f, &log->control, false, err);

        if (rc != 0) return rc;
        if (f->ops->sync(f, err) != 0)
            return weir__wrap(err, WEIR_EFAILED, "syncing the control file");
    }
    return 0;
}

static void say_end(struct weir__control *c, const struct weir__log_end *end)
{
    c->last_segment = end->last_segment;
    c->active = end->active;
    c->watermark = end->watermark;
    c->epoch_start = end->epoch_start;
    c->epoch = end->epoch;
}

struct weir__log_end weir__log_said_end(const struct weir__control *c)
{
    return (struct weir__log_end){c->last_segment, c->active, c->watermark, c->epoch_start,
                                  c->epoch};
}

/* Whether the segment that has to be left first still is the last. */
static bool is_to_be_left(const struct weir__log *log)
{
    return log->roll_first && log->opening == WEIR__LOG_EPOCH_WAITS &&
           log->control.last_segment == log->segments[log->segment_count - 1]->h.number;
}

int weir__log_write_control(struct weir__log *log, struct weir_error *err)
{
    struct weir__control *c = &log->control;
    struct weir__log_end end;
    int rc;

    c->watermark = log->synced;
    end = weir__log_said_end(c);
    if (is_to_be_left(log)) say_end(c, &log->found);
    rc = write_control(log, err);
    say_end(c, &end);
    return rc;
}

void weir__log_name_active(struct weir__log *log, const struct weir__segment *seg)
{
    log->control.last_segment = seg->h.number;
    log->control.active = (struct weir__control_active){.base = seg->h.base,
                                                        .capacity = seg->h.capacity,
                                                        .data = seg->data,
                                                        .name = strtoull(seg->name, NULL, 10)};
}

/* A number for a file's name, and giving the last one back when it was not used. */
static uint64_t take_name(struct weir__log *log, struct weir__segment *seg)
{
    uint64_t n = __atomic_fetch_add(&log->next_name, 1, __ATOMIC_RELAXED);

    snprintf(seg->name, sizeof seg->name, "%08" PRIu64 ".seg", n);
    return n;
}

static void give_name(struct weir__log *log, uint64_t n)
{
    uint64_t next = n + 1;

    __atomic_compare_exchange_n(&log->next_name, &next, n, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static int allocate(struct weir__segment *seg, uint64_t capacity, uint64_t least,
                    struct weir_error *err)
{
    int rc = seg->file->ops->allocate(seg->file, capacity, err);

    while (rc == WEIR_ENOSPACE && capacity / 2 >= least) {
        capacity /= 2;
        rc = seg->file->ops->allocate(seg->file, capacity, err);
    }
    seg->h.capacity = seg->disk_bytes = capacity;
    return rc;
}

int weir__log_make_segment(struct weir__log *log, uint64_t capacity, uint64_t least,
                           struct weir__segment **out, struct weir_error *err)
{
    struct weir__segment *seg = calloc(1, sizeof *seg);
    uint64_t name;
    int rc;

    *out = NULL;
    if (!seg) return weir__fail(err, WEIR_ENOMEM, "making a segment: out of memory");
    name = take_name(log, seg);
    rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_CREATE | WEIR__FS_DIRECT,
                             &seg->file, err);
    if (rc == 0) rc = allocate(seg, capacity, least, err);
    if (rc == 0) rc = seg->file->ops->sync(seg->file, err);
    if (rc == 0) rc = weir__log_sync_names(log, err);
    if (rc == 0) {
        *out = seg;
        return 0;
    }
    weir__wrap(err, rc, "making segment %s of %" PRIu64 " KiB", seg->name, capacity >> 10);
    if (!seg->file)
        weir__segment_close(seg);
    else if (weir__log_remove_segment(log, seg) != 0)
        return rc;
    give_name(log, name);
    return rc;
}

int weir__log_head_segment(struct weir__log *log, struct weir__segment *seg, struct weir_error *err)
{
    uint32_t bytes = weir__segment_heads_bytes(log->partitions);
    uint8_t *heads;
    int rc = weir__producer_file_append(log, err);

    if (rc != 0) return rc;
    heads = malloc(bytes);
    if (!heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    weir__heads_encode(log->durable_heads, log->partitions, heads);
    seg->h.version = WEIR__SEGMENT_VERSION;
    seg->h.partitions = log->partitions;
    seg->h.secret = log->control.secret;
    seg->h.epoch = log->epoch;
    seg->h.heads_bytes = bytes;
    seg->h.time_ms = log->last_time_ms;
    seg->h.producers = log->producer_file.turn;
    seg->h.keep = weir__retention_stamp(log);
    seg->stamp = weir__batch_stamp(log->o.hub_id, seg->h.secret);
    seg->data = seg->end = seg->h.base + weir__segment_front_bytes(bytes);
    rc = weir__segment_write_header(seg->file, &seg->h, log->o.hub_id, heads, err);
    if (rc == 0) rc = seg->file->ops->sync(seg->file, err);
    free(heads);
    return rc == 0 ? 0 : weir__wrap(err, rc, "writing the header of segment %s", seg->name);
}

/* Stores the index and lets go of what only the active segment needs. When storing fails the index
 * stays in memory; so it does when the segment is not to be written to any more. The leader's,
 * without the lock. */
static bool seal(struct weir__log *log, struct weir__segment *seg)
{
    uint64_t end = weir__segment_limit(seg) - seg->h.base;
    struct weir__index_stamp stamp = {seg->h.number, log->visible, weir__segment_index_seed(seg)};
    struct weir_error err;

    if (seg->lost || seg->headless || seg->spoilt) return false;
    if (weir__index_store(seg->index, seg->file, &stamp, end, &err) == 0) return true;
    weir__log_line(&log->o.logger, WEIR__WARN, "log", "index of segment %s not stored: %s",
                   seg->name, err.text);
    return false;
}

/* A file that may bear the next number must be gone for good before another one gets it. A failed
 * sync leaves open whether it is, and ends the log; anything else may work the next time. */
static int bury(struct weir__log *log, struct weir_error *err)
{
    int rc;

    if (!log->doomed) return 0;
    rc = weir__log_remove_name(log->fs, log->dir, log->doomed->name, err);
    if (rc != 0 && rc != WEIR_ENOTFOUND)
        return weir__wrap(err, rc, "removing the file of a failed roll");
    if (weir__log_sync_names(log, err) != 0)
        return weir__wrap(err, WEIR_EFAILED, "removing the file of a failed roll");
    weir__segment_close(log->doomed);
    log->doomed = NULL;
    return 0;
}

static int give_up(struct weir__log *log, struct weir__segment *seg, int rc, struct weir_error *err)
{
    struct weir_error other;

    log->doomed = seg;
    if (bury(log, &other) != WEIR_EFAILED) return rc;
    if (err) *err = other;
    return WEIR_EFAILED;
}

/* Steps 2 and 3. */
static int head_next(struct weir__log *log, const struct weir__spare_order *order,
                     struct weir__segment **out, struct weir_error *err)
{
    struct weir__segment *old = weir__log_active(log), *seg = NULL;
    struct weir__index *index = weir__index_new(log->partitions);
    int rc = index ? bury(log, err) : weir__fail(err, WEIR_ENOMEM, "out of memory");

    if (rc == 0) rc = weir__spare_take(log, order, &seg, err);
    if (rc != 0) {
        weir__index_free(index);
        return rc;
    }
    seg->index = index;
    seg->h.number = old->h.number + 1;
    seg->h.base = old->h.base + old->h.capacity;
    seg->h.previous_end = log->visible;
    rc = weir__log_head_segment(log, seg, err);
    if (rc != 0) return give_up(log, seg, rc, err);
    *out = seg;
    return 0;
}

/* What lies between the batches and the index of a segment that is left. Its file stays open until
 * upkeep has given that space back. A damaged one keeps all it has: its end is where reading ended. */
static void leave(struct weir__log *log, struct weir__segment *seg, uint64_t index_bytes)
{
    uint64_t at = weir__round_up(seg->end - seg->h.base, WEIR__FS_BLOCK);
    uint64_t to = seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes) - index_bytes;

    if (!seg->lost && !seg->headless && !seg->spoilt && at < to &&
        weir__capacity_worth(log, seg, to - at)) {
        seg->hole_at = at;
        seg->hole_len = to - at;
        return;
    }
    weir__file_close(seg->file);
    seg->file = NULL;
}

static void end_roll(struct weir__log *log)
{
    log->want_roll = log->must_roll = false;
    log->roll_bytes = 0;
    log->roll_rc = 0;
}

static void activate(struct weir__log *log, struct weir__segment *seg, bool sealed)
{
    struct weir__segment *old = weir__log_active(log);
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);

    log->filling_fast = log->roll_bytes && mono_ms - log->active_mono_ms < FAST_MS;
    log->active_mono_ms = mono_ms;
    old->end = log->visible;
    leave(log, old, weir__index_stored_bytes(old->index));
    if (sealed) {
        weir__index_free(old->index);
        old->index = NULL;
    }
    log->segments[log->segment_count++] = seg;
    memcpy(log->start_heads, log->durable_heads, log->partitions * sizeof *log->heads);
    weir__tail_jump(&log->tail, seg->data);
    log->before = (struct weir__batch_before){0};
    log->visible = log->synced = seg->data;
    log->active_since_ms = 0;
    end_roll(log);
    weir__upkeep_soon(log, 0); /* an old segment may go now, and become the one after this */
}

/* A place in the row, so that activating cannot fail. */
static int reserve_place(struct weir__log *log, struct weir_error *err)
{
    int rc = weir__log_push_segment(log, NULL, err);

    if (rc == 0) log->segment_count--;
    return rc;
}

int weir__log_grow(struct weir__log *log, uint32_t partitions, struct weir_error *err)
{
    bool grows;
    int rc;

    if (partitions > WEIR__LOG_PARTITIONS_MAX)
        return weir__fail(err, WEIR_EINVAL, "%u partitions: 1 to %u are possible", partitions,
                          WEIR__LOG_PARTITIONS_MAX);
    weir__mutex_lock(&log->lock);
    weir__log_take_lead(log);
    rc = weir__log_state_locked(log, err);
    grows = partitions > log->partitions;
    if (rc == 0 && grows) rc = weir__log_size(log, partitions, err);
    if (rc == 0 && grows) {
        weir__mutex_unlock(&log->lock);
        rc = weir__log_write_control(log, err);
        weir__mutex_lock(&log->lock);
        if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    }
    weir__log_give_lead(log);
    weir__mutex_unlock(&log->lock);
    return rc;
}

/* Lazy mode: what was acknowledged reaches the disk before the segment is left. */
static int sync_old(struct weir__log *log, struct weir_error *err)
{
    struct weir__file *f = weir__log_active(log)->file;

    if (f && f->ops->sync(f, err) != 0) /* none: its file is lost */
        return weir__wrap(err, WEIR_EFAILED, "syncing a segment before the next");
    weir__mutex_lock(&log->lock);
    log->synced = log->visible;
    weir__mutex_unlock(&log->lock);
    return 0;
}

static struct weir__spare_order order_next(const struct weir__log *log)
{
    bool full = log->roll_bytes > 0;

    return (struct weir__spare_order){.full = full,
                                      .capacity = weir__capacity_next(log, full, log->roll_bytes),
                                      .enough = weir__capacity_enough(log),
                                      .least = weir__capacity_least(log, log->roll_bytes),
                                      .most = weir__capacity_most(log)};
}

/* What still fits may go on into the segment there is, unless the next one has begun to exist. */
static void fail_roll(struct weir__log *log, int rc)
{
    log->roll_rc = rc;
    log->roll_again = log->roll_bytes;
    if (log->headed) return;
    log->want_roll = false;
    log->roll_bytes = 0;
}

/* Steps 1 to 4. The leader's, without the lock. */
static int move_on(struct weir__log *log, const struct weir__spare_order *order,
                   struct weir__segment **seg, bool *out_sealed, struct weir_error *err)
{
    int rc = 0;

    *out_sealed = seal(log, weir__log_active(log));
    if (log->o.sync_ms) rc = sync_old(log, err);
    if (rc == 0 && !*seg) rc = head_next(log, order, seg, err);
    if (rc != 0) return rc;
    weir__log_name_active(log, *seg);
    return weir__log_write_control(log, err);
}

/* When the active segment has given space back, that may be all that is needed: then it gets it
 * again, and whoever wanted the roll looks whether there is room. */
int weir__log_roll(struct weir__log *log, struct weir_error *err)
{
    struct weir__segment *seg = log->headed;
    struct weir__spare_order order = order_next(log);
    bool rests = !seg && !log->must_roll && log->roll_bytes && weir__log_active(log)->hole_len;
    bool sealed = false;
    int rc = reserve_place(log, err);

    if (rc != 0) {
        fail_roll(log, rc);
        return rc;
    }
    log->leading = true;
    weir__mutex_unlock(&log->lock);
    rests = rests && weir__spare_wake(log);
    if (!rests) rc = move_on(log, &order, &seg, &sealed, err);
    weir__mutex_lock(&log->lock);
    log->headed = rc == 0 ? NULL : seg;
    if (rests)
        end_roll(log);
    else if (rc == 0)
        activate(log, seg, sealed);
    else
        fail_roll(log, rc);
    if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    weir__log_give_lead(log);
    return rc;
}
