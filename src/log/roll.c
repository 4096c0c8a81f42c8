/* roll.c - from one segment to the next, and the control file.
 *
 * A roll happens when everything taken in is durable and nothing more is let in. In order, each
 * step on disk before the next begins:
 *
 *   1  the old segment's index goes behind its batches. Not synced: it can be rebuilt
 *   2  the next segment: the spare, else a new file (made, allocated, synced, its name synced)
 *   3  its header, with the heads and producers of this moment; synced
 *   4  the control file names it as the last; synced
 *
 * When 4 cannot be written, nobody knows which of the two the disk will show. So nothing is taken
 * in until it has been: the segment stays `headed` and the next attempt goes on from there. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/state.h"

#define BATCHES_PER_SEGMENT_MIN 8u
#define FRONTS_PER_SEGMENT_MIN 8u
#define GROWTH 2u      /* of one segment to the next, until the largest size */
#define GROWTH_FAST 8u /* the same, when the one before was full within FAST_MS */
#define FAST_MS 1000

uint64_t weir__log_next_capacity(const struct weir__log *log, uint64_t batch_bytes)
{
    uint64_t cap = WEIR__SEGMENT_BYTES_MIN;
    uint32_t heads = weir__segment_heads_bytes(log->partitions, log->producers.count);

    if (log->segment_count) {
        cap = (log->filling_fast ? GROWTH_FAST : GROWTH) *
              log->segments[log->segment_count - 1]->h.capacity;
        if (cap > log->o.segment_bytes_max) cap = log->o.segment_bytes_max;
    }
    while (cap < BATCHES_PER_SEGMENT_MIN * batch_bytes ||
           cap < FRONTS_PER_SEGMENT_MIN * weir__segment_front_bytes(heads))
        cap *= 2;
    return cap;
}

bool weir__log_fits(const struct weir__log *log, uint32_t partition, uint64_t batch_bytes)
{
    const struct weir__segment *seg = log->segments[log->segment_count - 1];
    uint64_t waiting = log->queue_tail - log->queue_commit + 1;
    uint64_t index = weir__index_stored_bytes(seg->index) + waiting * WEIR__INDEX_ENTRY_BYTES_MAX;
    uint64_t limit = seg->h.base + seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes);

    if (partition >= seg->h.partitions) return false; /* made before there was such a partition */
    if (batch_bytes * BATCHES_PER_SEGMENT_MIN > seg->h.capacity) return false;
    return weir__round_up(log->tail.end + batch_bytes, WEIR__FS_BLOCK) +
               weir__round_up(index, WEIR__FS_BLOCK) <=
           limit;
}

void weir__segment_close(struct weir__segment *seg)
{
    if (!seg) return;
    weir__file_close(seg->file);
    weir__file_close(seg->read);
    weir__index_free(seg->index);
    free(seg);
}

int weir__log_remove_segment(struct weir__log *log, struct weir__segment *seg)
{
    char path[WEIR__LOG_PATH_BYTES];
    struct weir_error err;
    int rc = weir__log_path(log->dir, seg->name, path, &err);

    if (rc == 0) rc = log->fs->ops->remove(log->fs, path, &err);
    if (rc != 0)
        weir__log_line(&log->o.logger, WEIR__WARN, "log", "removing %s: %s", seg->name, err.text);
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

int weir__log_write_control(struct weir__log *log, struct weir_error *err)
{
    struct weir__file *f = log->control_file;

    log->control.watermark = log->synced;
    log->control.keep = weir__retention_time(log);
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

void weir__log_name_active(struct weir__log *log, const struct weir__segment *seg)
{
    log->control.last_segment = seg->h.number;
    log->control.active = (struct weir__control_active){.base = seg->h.base,
                                                        .capacity = seg->h.capacity,
                                                        .data = seg->data,
                                                        .name = strtoull(seg->name, NULL, 10)};
}

int weir__log_make_segment(struct weir__log *log, uint64_t capacity, struct weir__segment **out,
                           struct weir_error *err)
{
    struct weir__segment *seg = calloc(1, sizeof *seg);
    char path[WEIR__LOG_PATH_BYTES];
    int rc;

    *out = NULL;
    if (!seg) return weir__fail(err, WEIR_ENOMEM, "making a segment: out of memory");
    snprintf(seg->name, sizeof seg->name, "%08" PRIu64 ".seg",
             __atomic_fetch_add(&log->next_name, 1, __ATOMIC_RELAXED));
    seg->h.capacity = capacity;
    rc = weir__log_path(log->dir, seg->name, path, err);
    if (rc == 0)
        rc = log->fs->ops->open(log->fs, path, WEIR__FS_CREATE | WEIR__FS_DIRECT, &seg->file, err);
    if (rc == 0) rc = seg->file->ops->allocate(seg->file, capacity, err);
    if (rc == 0) rc = seg->file->ops->sync(seg->file, err);
    if (rc == 0 && !(log->o.sabotage & WEIR__LOG_SKIP_DIR_SYNC))
        rc = log->fs->ops->sync_dir(log->fs, log->dir, err);
    if (rc != 0) {
        weir__wrap(err, rc, "making segment %s of %" PRIu64 " MiB", seg->name, capacity >> 20);
        weir__log_remove_segment(log, seg);
        return rc;
    }
    *out = seg;
    return 0;
}

int weir__log_head_segment(struct weir__log *log, struct weir__segment *seg, struct weir_error *err)
{
    uint32_t bytes = weir__segment_heads_bytes(log->partitions, log->producers.count);
    uint8_t *heads = malloc(bytes);
    uint8_t *to;
    int rc;

    if (!heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    weir__heads_encode(log->durable_heads, log->partitions, heads);
    to = heads + (size_t)log->partitions * WEIR__HEAD_BYTES;
    for (uint32_t i = 0; i < log->producers.count; i++, to += WEIR__PRODUCER_BYTES)
        weir__producer_encode(&log->producers.at[i], to);
    seg->h.version = WEIR__SEGMENT_VERSION;
    seg->h.partitions = log->partitions;
    seg->h.secret = log->control.secret;
    seg->h.epoch = log->epoch;
    seg->h.heads_bytes = bytes;
    seg->h.time_ms = log->last_time_ms;
    seg->h.keep_ms = __atomic_load_n(&log->keep_wall_ms, __ATOMIC_RELAXED);
    seg->stamp = weir__batch_stamp(log->o.hub_id, seg->h.secret);
    seg->data = seg->end = seg->h.base + weir__segment_front_bytes(bytes);
    rc = weir__segment_write_header(seg->file, &seg->h, log->o.hub_id, heads, err);
    if (rc == 0) rc = seg->file->ops->sync(seg->file, err);
    free(heads);
    return rc == 0 ? 0 : weir__wrap(err, rc, "writing the header of segment %s", seg->name);
}

/* Stores the index and lets go of what only the active segment needs. When storing fails the index
 * stays in memory. The leader's, without the lock. */
static bool seal(struct weir__log *log, struct weir__segment *seg)
{
    uint64_t end = seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes);
    struct weir__index_stamp stamp = {seg->h.number, log->visible, weir__segment_index_seed(seg)};
    struct weir_error err;

    if (weir__index_store(seg->index, seg->file, &stamp, end, &err) == 0) return true;
    weir__log_line(&log->o.logger, WEIR__WARN, "log", "index of segment %s not stored: %s",
                   seg->name, err.text);
    return false;
}

/* The spare; one that is too small makes place for another. The leader's, without the lock. */
static struct weir__segment *take_spare(struct weir__log *log, uint64_t capacity)
{
    struct weir__segment *spare;

    weir__mutex_lock(&log->lock);
    spare = log->spare;
    log->spare = NULL;
    weir__mutex_unlock(&log->lock);
    if (!spare || spare->h.capacity >= capacity) return spare;
    weir__log_remove_segment(log, spare);
    return NULL;
}

/* The spare when it is large enough, else a new file. */
static int next_segment(struct weir__log *log, uint64_t capacity, struct weir__segment **out,
                        struct weir_error *err)
{
    struct weir__segment *spare = take_spare(log, capacity);
    char path[WEIR__LOG_PATH_BYTES];
    int rc;

    if (!spare) return weir__log_make_segment(log, capacity, out, err);
    *out = spare;
    if (spare->file) return 0;
    rc = weir__log_path(log->dir, spare->name, path, err);
    if (rc == 0) rc = log->fs->ops->open(log->fs, path, WEIR__FS_DIRECT, &spare->file, err);
    return rc;
}

/* A file that may bear the next number must be gone for good before another one gets it. */
static int give_up(struct weir__log *log, struct weir__segment *seg, int rc, struct weir_error *err)
{
    if (weir__log_remove_segment(log, seg) == 0 &&
        log->fs->ops->sync_dir(log->fs, log->dir, NULL) == 0)
        return rc;
    return weir__wrap(err, WEIR_EFAILED, "removing the file of a failed roll");
}

/* Steps 2 and 3. */
static int head_next(struct weir__log *log, uint64_t capacity, struct weir__segment **out,
                     struct weir_error *err)
{
    struct weir__segment *old = weir__log_active(log), *seg = NULL;
    int rc = next_segment(log, capacity, &seg, err);

    if (rc == 0 && !seg->index) {
        seg->index = weir__index_new(log->partitions);
        if (!seg->index) rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    }
    if (rc == 0) {
        seg->h.number = old->h.number + 1;
        seg->h.base = old->h.base + old->h.capacity;
        seg->h.previous_end = log->visible;
        rc = weir__log_head_segment(log, seg, err);
    }
    if (rc != 0) return seg ? give_up(log, seg, rc, err) : rc;
    *out = seg;
    return 0;
}

static void activate(struct weir__log *log, struct weir__segment *seg, bool sealed)
{
    struct weir__segment *old = weir__log_active(log);
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);

    log->filling_fast = log->roll_bytes && mono_ms - log->active_mono_ms < FAST_MS;
    log->active_mono_ms = mono_ms;
    old->end = log->visible;
    weir__file_close(old->file);
    old->file = NULL;
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
    log->want_roll = false;
    log->roll_bytes = 0;
    log->roll_rc = 0;
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

    if (f->ops->sync(f, err) != 0)
        return weir__wrap(err, WEIR_EFAILED, "syncing a segment before the next");
    weir__mutex_lock(&log->lock);
    log->synced = log->visible;
    weir__mutex_unlock(&log->lock);
    return 0;
}

int weir__log_roll(struct weir__log *log, struct weir_error *err)
{
    struct weir__segment *seg = log->headed;
    uint64_t capacity = weir__log_next_capacity(log, log->roll_bytes);
    bool sealed = false;
    int rc = reserve_place(log, err);

    if (rc != 0) return rc;
    log->leading = true;
    weir__mutex_unlock(&log->lock);
    sealed = seal(log, weir__log_active(log));
    if (log->o.sync_ms) rc = sync_old(log, err);
    if (rc == 0 && !seg) rc = head_next(log, capacity, &seg, err);
    if (rc == 0) {
        weir__log_name_active(log, seg);
        rc = weir__log_write_control(log, err);
    }
    weir__mutex_lock(&log->lock);
    log->headed = rc == 0 ? NULL : seg;
    if (rc == 0) activate(log, seg, sealed);
    if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    weir__log_give_lead(log);
    return rc;
}
