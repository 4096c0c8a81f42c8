/* spare.c - a file that is ready to become the next segment, and space that is given back.
 *
 * While a hub is in use the keeper has one ready before it is needed, or makes one of a segment
 * that has expired, so that a roll needs neither space nor a descriptor. Its header then says that it
 * is a spare: should the control file be lost, no opening takes it for what it was. A hub that nobody
 * uses has none, and an opening removes what was one.
 *
 * What a sealed segment has reserved between its batches and its index is released, and when nothing is
 * appended any more, so is what the active one has reserved: with the next batch that needs it, it is
 * had again before that is taken in, or the log rolls. */
#include <stdlib.h>

#include "log/state.h"

#define IDLE_MS 60000 /* a hub to which nothing was appended for so long needs no spare */
#define RETRY_MS 1000
#define REST_BYTES (256u << 10) /* stay reserved, for those who append little */
#define TAKES_MAX 3             /* that one roll tries again while the keeper makes spares */
#define FAST_BYTES (4u << 20)   /* a flood in smaller segments may be over before the next one */

static bool in_use(const struct weir__log *log)
{
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);

    return log->stats.batches > 0 && mono_ms - log->written_mono_ms < IDLE_MS;
}

/* Once the active segment is half full or soon will be. */
static bool needed_soon(const struct weir__log *log)
{
    const struct weir__segment *active = log->segments[log->segment_count - 1];

    return in_use(log) && ((log->filling_fast && active->h.capacity >= FAST_BYTES) ||
                           log->tail.end - active->h.base >= active->h.capacity / 2);
}

/* From here on, until end_making, the keeper may have space that a roll looks for. The lock is let go of
 * in between. */
static void begin_making(struct weir__log *log)
{
    log->making = true;
    weir__mutex_unlock(&log->lock);
}

static void end_making(struct weir__log *log)
{
    weir__mutex_lock(&log->lock);
    log->making = false;
    log->makings++;
    weir__cond_broadcast(&log->room);
}

/* Becomes the spare, unless there is one. Taken. */
static void put_back(struct weir__log *log, struct weir__segment *seg)
{
    if (!log->spare) {
        log->spare = seg;
        return;
    }
    weir__mutex_unlock(&log->lock);
    weir__log_remove_segment(log, seg);
    weir__mutex_lock(&log->lock);
}

static void drop(struct weir__log *log)
{
    struct weir__segment *seg = log->spare;

    log->spare = NULL;
    weir__mutex_unlock(&log->lock);
    weir__log_remove_segment(log, seg);
    weir__mutex_lock(&log->lock);
}

static int make(struct weir__log *log, struct weir_error *err)
{
    uint64_t capacity = weir__capacity_next(log, true, 0);
    struct weir__segment *seg = NULL;
    int rc;

    begin_making(log);
    rc = weir__log_make_segment(log, capacity, capacity, &seg, err);
    end_making(log);
    if (rc == 0) put_back(log, seg);
    log->spare_refused = rc != 0;
    return rc == WEIR_ENOSPACE ? 0 : rc; /* the roll will tell, if it needs one */
}

int weir__spare_prepare(struct weir__log *log, struct weir_error *err)
{
    if (log->failed || log->headed) return 0;
    if (log->spare && (!in_use(log) || !weir__capacity_suits(log, log->spare->h.capacity)))
        drop(log);
    else if (!log->spare && needed_soon(log))
        return make(log, err);
    return 0;
}

/* With its space reserved and its handle open: a roll onto it needs nothing more. Without lock. */
static int make_ready(struct weir__log *log, struct weir__segment *seg)
{
    int rc = 0;

    if (!seg->file)
        rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_DIRECT, &seg->file, NULL);
    if (rc == 0 && seg->disk_bytes < seg->h.capacity)
        rc = seg->file->ops->allocate(seg->file, seg->h.capacity, NULL);
    if (rc == 0)
        rc = weir__segment_mark_spare(seg->file, seg->h.capacity, log->o.hub_id,
                                      log->control.secret, NULL);
    if (rc == 0) seg->disk_bytes = seg->h.capacity;
    return rc;
}

void weir__spare_recycle(struct weir__log *log, struct weir__segment *seg)
{
    bool reuse = seg->pins == 1 && !seg->lost && !seg->headless && !seg->spoilt && !log->spare &&
                 in_use(log) && seg->h.capacity == weir__capacity_next(log, true, 0);
    int rc = 0;

    if (reuse) { /* nobody can find it any more */
        weir__file_close(seg->read);
        weir__index_free(seg->index);
        free(seg->start);
        seg->read = NULL;
        seg->index = NULL;
        seg->start = NULL;
        seg->pins = 0;
        seg->removed = false;
        seg->first_ms = 0;
        seg->hole_len = 0;
    }
    begin_making(log);
    if (reuse) rc = make_ready(log, seg);
    if (!reuse || rc != 0) weir__log_remove_file(log, seg);
    end_making(log);
    if (!reuse)
        weir__log_unpin(log, seg);
    else if (rc != 0)
        weir__segment_close(seg);
    else
        put_back(log, seg);
}

static struct weir__segment *take(struct weir__log *log)
{
    struct weir__segment *spare;

    weir__mutex_lock(&log->lock);
    spare = log->spare;
    log->spare = NULL;
    weir__mutex_unlock(&log->lock);
    return spare;
}

static void give(struct weir__log *log, struct weir__segment *seg)
{
    weir__mutex_lock(&log->lock);
    put_back(log, seg);
    weir__mutex_unlock(&log->lock);
}

static bool suits(const struct weir__segment *seg, const struct weir__spare_order *o)
{
    uint64_t cap = seg->h.capacity;

    if (cap < o->least || cap > o->most) return false;
    return o->full ? cap >= o->enough : cap == o->capacity;
}

static int take_or_make(struct weir__log *log, const struct weir__spare_order *o,
                        struct weir__segment **out, struct weir_error *err)
{
    struct weir__segment *spare = take(log);
    int rc;

    *out = spare;
    if (spare && suits(spare, o)) return 0;
    rc = weir__log_make_segment(log, o->capacity, spare ? o->capacity : o->least, out, err);
    if (!spare) return rc;
    if (rc == WEIR_ENOSPACE && spare->h.capacity >= o->least && spare->h.capacity <= o->most) {
        *out = spare;
        return 0;
    }
    if (rc != WEIR_ENOSPACE) {
        give(log, spare);
        return rc;
    }
    weir__log_remove_segment(log, spare); /* too small: its space is of use elsewhere */
    return weir__log_make_segment(log, o->capacity, o->least, out, err);
}

/* Waits for the end of an attempt of the keeper's. */
static uint64_t wait_for_keeper(struct weir__log *log)
{
    uint64_t makings;

    weir__mutex_lock(&log->lock);
    while (log->making) weir__log_wait(log, false, INT64_MAX);
    makings = log->makings;
    weir__mutex_unlock(&log->lock);
    return makings;
}

static uint64_t count_makings(struct weir__log *log)
{
    uint64_t makings;

    weir__mutex_lock(&log->lock);
    makings = log->makings;
    weir__mutex_unlock(&log->lock);
    return makings;
}

/* Space that is not there may be the keeper's for a moment: it has made a spare of it, or gives back what
 * was too little. So one that was at it meanwhile is waited for. */
int weir__spare_take(struct weir__log *log, const struct weir__spare_order *o,
                     struct weir__segment **out, struct weir_error *err)
{
    uint64_t before = count_makings(log), after;
    int rc = take_or_make(log, o, out, err);

    for (int i = 0; rc == WEIR_ENOSPACE && i < TAKES_MAX; i++) {
        after = wait_for_keeper(log);
        if (after == before) break;
        before = after;
        rc = take_or_make(log, o, out, err);
    }
    return rc;
}

/* ---- giving space back ---- */

static void release_one(struct weir__log *log, struct weir__segment *seg)
{
    struct weir__file *f = seg->file;
    uint64_t at = seg->hole_at, len = seg->hole_len, used = seg->disk_bytes;
    struct weir_error err;
    int rc = 0;

    seg->file = NULL;
    seg->hole_len = 0;
    weir__log_pin(seg);
    weir__mutex_unlock(&log->lock);
    if (!f) rc = weir__log_open_name(log->fs, log->dir, seg->name, 0, &f, &err);
    if (rc == 0) rc = f->ops->release(f, at, len, &err);
    if (rc == 0) rc = f->ops->used(f, &used, &err);
    weir__file_close(f);
    if (rc != 0)
        weir__log_line(&log->o.logger, WEIR__WARN, "log", "space of segment %s not given back: %s",
                       seg->name, err.text);
    weir__mutex_lock(&log->lock);
    seg->disk_bytes = used;
    weir__log_unpin(log, seg);
}

void weir__spare_release(struct weir__log *log)
{
    for (size_t i = 0; i + 1 < log->segment_count; i++) {
        if (log->segments[i]->hole_len == 0) continue;
        release_one(log, log->segments[i]);
        i = SIZE_MAX; /* the row may have moved: from its beginning */
    }
}

/* What of the active segment is not needed while little is appended; 0: nothing that is worth it.
 * One that has to be left stays as it is: what is behind its end may be all that is left of it. */
static uint64_t rest_of(const struct weir__log *log, uint64_t *out_at)
{
    const struct weir__segment *seg = log->segments[log->segment_count - 1];
    uint64_t index = weir__index_stored_bytes(seg->index) + 2 * (uint64_t)WEIR__FS_BLOCK;
    uint64_t to = seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes) - index;

    if (!seg->file || log->must_roll || (log->o.sabotage & WEIR__LOG_SIZE_BY_DOUBLING)) return 0;
    *out_at = weir__round_up(log->tail.end - seg->h.base, WEIR__FS_BLOCK) + REST_BYTES;
    return *out_at + REST_BYTES < to ? to - *out_at : 0;
}

void weir__spare_rest(struct weir__log *log)
{
    struct weir__segment *seg = weir__log_active(log);
    uint64_t at, len, used;
    int rc;

    if (log->failed || in_use(log) || seg->hole_len || rest_of(log, &at) == 0) return;
    weir__log_take_lead(log); /* from here on nothing is written behind `at` */
    seg = weir__log_active(log);
    len = rest_of(log, &at);
    if (!log->failed && !log->headed && seg->hole_len == 0 && len > 0) {
        seg->hole_at = at;
        seg->hole_len = len;
        used = seg->disk_bytes;
        weir__mutex_unlock(&log->lock);
        rc = seg->file->ops->release(seg->file, at, len, NULL);
        if (rc == 0) seg->file->ops->used(seg->file, &used, NULL);
        weir__mutex_lock(&log->lock);
        seg->disk_bytes = used;
    }
    weir__log_give_lead(log);
}

/* A sealed segment without one may have been left for its damage: then it keeps all it has. */
static bool has_index(struct weir__log *log, const struct weir__segment *seg)
{
    struct weir__index_source s = {.stamp = weir__segment_stamp(seg),
                                   .end = weir__segment_limit(seg) - seg->h.base,
                                   .partitions = seg->h.partitions};
    uint64_t bytes;
    int rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &s.file, NULL);

    if (rc == 0) rc = weir__index_bytes(&s, &bytes, NULL);
    weir__file_close(s.file);
    return rc == 0;
}

/* The space of the active segment may have gone back, and of a sealed one it may not: the process
 * ended before it came to that. Where its index begins is not known here, only how long it can be.
 */
static void find_hole(struct weir__log *log, struct weir__segment *seg)
{
    bool active = seg == weir__log_active(log);
    uint64_t at = weir__round_up(seg->end - seg->h.base, WEIR__FS_BLOCK);
    uint64_t to = seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes);

    if (!active) to -= weir__capacity_index_max(seg->h.partitions, weir__segment_stored(seg));
    if (seg->lost || seg->spoilt || at >= to || to > seg->h.capacity) return;
    if (active ? seg->disk_bytes >= seg->h.capacity
               : seg->disk_bytes < seg->h.capacity || !weir__capacity_worth(log, seg, to - at) ||
                     !has_index(log, seg))
        return;
    seg->hole_at = at;
    seg->hole_len = to - at;
}

void weir__spare_find_holes(struct weir__log *log)
{
    for (size_t i = 0; i < log->segment_count; i++) find_hole(log, log->segments[i]);
}

bool weir__spare_wake(struct weir__log *log)
{
    struct weir__segment *seg = weir__log_active(log);
    int rc = seg->file->ops->allocate(seg->file, seg->h.capacity, NULL);

    weir__mutex_lock(&log->lock);
    if (rc == 0) {
        seg->hole_len = 0;
        seg->disk_bytes = seg->h.capacity;
    }
    weir__mutex_unlock(&log->lock);
    return rc == 0;
}

int64_t weir__spare_wait_ms(const struct weir__log *log)
{
    const struct weir__segment *active = log->segments[log->segment_count - 1];
    int64_t idle_ms = log->o.clock.mono_ms(log->o.clock.self) - log->written_mono_ms;
    uint64_t at;

    for (size_t i = 0; i + 1 < log->segment_count; i++)
        if (log->segments[i]->hole_len) return 0;
    if (!log->spare && needed_soon(log)) return log->spare_refused ? RETRY_MS : 0;
    if (log->spare || (active->hole_len == 0 && rest_of(log, &at) > 0))
        return in_use(log) ? IDLE_MS - idle_ms : 0;
    return INT64_MAX;
}
