/* retention.c - which segments are too old or too many, and letting them go.
 *
 *   by age     the oldest segment goes when the one behind it was begun longer ago than retain_ms,
 *              on retention's own clock (retention_clock.h): then every event in it is older. The
 *              active segment is left when its first event is an eighth of that old: an event
 *              lives at least retain_ms, and at most an eighth and one look longer
 *   by bytes   the oldest segment goes when those between it and the active one hold retain_bytes
 *              of batches. What is reserved or spent on headers and indexes does not count: what is
 *              within the limit stays. The active one is left out so that a segment goes just when
 *              another is begun, and its file can be the next */
#include <stdlib.h>

#include "log/state.h"

#define ROLLS_PER_RETENTION 8 /* a segment is closed after this part of the retention time */
#define ROLL_MS_MIN 1000

static struct weir__machine_time machine_time(const struct weir__log *log)
{
    const struct weir__clock *clock = &log->o.clock;

    return (struct weir__machine_time){
        .wall_ms = clock->wall_ms(clock->self),
        .up_ms = clock->up_ms ? clock->up_ms(clock->self) : clock->mono_ms(clock->self),
        .boot = log->boot,
    };
}

/* The enqueued time of a segment's first batch, which is told and nothing else: when it cannot be
 * read, it is not known. Without lock. */
static void read_first(struct weir__log *log, struct weir__segment *seg)
{
    uint8_t block[WEIR__FS_BLOCK];
    struct weir__batch_header h;
    struct weir__file *f = NULL;
    size_t got = 0;
    int rc;

    if (seg->first_ms != 0 || weir__segment_stored(seg) == 0) return;
    rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &f, NULL);
    if (rc == 0) rc = f->ops->read(f, block, sizeof block, seg->data - seg->h.base, &got, NULL);
    if (rc == 0 && got == sizeof block && weir__batch_decode(block, &seg->stamp, &h) &&
        h.position == seg->data)
        seg->first_ms = h.time_ms;
    weir__file_close(f);
}

/* The oldest segment from this one on that holds anything. A large first batch leaves a small segment
 * empty. The count of segments: none does. */
static size_t first_holding(const struct weir__log *log, size_t from)
{
    while (from < log->segment_count && weir__segment_stored(log->segments[from]) == 0) from++;
    return from;
}

/* So that it can be told since when events are kept. The active one's is known. */
static void read_oldest(struct weir__log *log, size_t from)
{
    size_t i = first_holding(log, from);

    if (i + 1 < log->segment_count && !log->segments[i]->lost) read_first(log, log->segments[i]);
}

/* What lies in front of a segment cannot be younger than what lies behind it. Those of version 1
 * tell an enqueued time instead, which a wrong clock may have given them; lost ones tell nothing. */
static void date_segments(struct weir__log *log)
{
    struct weir__keep_stamp behind = weir__retention_clock_stamp(&log->keep);

    for (size_t i = log->segment_count; i-- > 0;) {
        struct weir__segment *seg = log->segments[i];

        if (seg->lost || seg->headless || seg->h.keep.keep_ms > behind.keep_ms)
            seg->h.keep = behind;
        behind = seg->h.keep;
    }
}

void weir__retention_start(struct weir__log *log)
{
    struct weir__machine_time now = machine_time(log);

    log->keep = weir__retention_clock_start(&log->control.keep, &now);
    date_segments(log);
    if (log->segment_count == 0) return;
    weir__spare_find_holes(log);
    weir__log_active(log)->first_ms = log->active_since_ms;
    log->active_since = weir__log_active(log)->h.keep;
    read_oldest(log, 0);
}

void weir__retention_tick(struct weir__log *log)
{
    struct weir__machine_time now = machine_time(log);

    weir__retention_clock_move(&log->keep, &now);
}

struct weir__keep_time weir__retention_save(struct weir__log *log)
{
    struct weir__machine_time now = machine_time(log);
    struct weir__keep_time save;

    weir__mutex_lock(&log->lock);
    weir__retention_clock_move(&log->keep, &now);
    save = weir__retention_clock_save(&log->keep, &now);
    weir__mutex_unlock(&log->lock);
    return save;
}

struct weir__keep_stamp weir__retention_stamp(struct weir__log *log)
{
    struct weir__keep_stamp stamp;

    weir__mutex_lock(&log->lock);
    weir__retention_tick(log);
    stamp = weir__retention_clock_stamp(&log->keep);
    weir__mutex_unlock(&log->lock);
    return stamp;
}

void weir__retention_begin(struct weir__log *log, int64_t time_ms)
{
    weir__retention_tick(log);
    log->active_since_ms = time_ms;
    log->active_since = weir__retention_clock_stamp(&log->keep);
    weir__log_active(log)->first_ms = time_ms;
}

/* ---- what is due, as at the last tick ---- */

static int64_t roll_age_ms(const struct weir__log *log)
{
    int64_t age_ms = log->o.retain_ms / ROLLS_PER_RETENTION;

    return age_ms < ROLL_MS_MIN ? ROLL_MS_MIN : age_ms;
}

/* A segment can be larger than it may be now when the limit was lowered. */
bool weir__retention_roll_due(const struct weir__log *log)
{
    const struct weir__segment *active = log->segments[log->segment_count - 1];

    if (log->failed) return false;
    if (log->o.retain_bytes && active->h.capacity > weir__capacity_most(log)) return true;
    return log->o.retain_ms > 0 && log->active_since_ms != 0 &&
           weir__retention_clock_age(&log->keep, &log->active_since) >= roll_age_ms(log);
}

static uint64_t counted(const struct weir__log *log, const struct weir__segment *seg)
{
    if (log->o.sabotage & WEIR__LOG_COUNT_CAPACITY) return seg->h.capacity;
    return weir__segment_stored(seg);
}

static bool too_many(const struct weir__log *log)
{
    uint64_t bytes = 0;

    if (log->o.retain_bytes == 0) return false;
    for (size_t i = 1; i + 1 < log->segment_count; i++) bytes += counted(log, log->segments[i]);
    return bytes >= log->o.retain_bytes;
}

bool weir__retention_due(const struct weir__log *log)
{
    if (log->segment_count < 2 || log->failed || log->headed) return false;
    if (log->o.retain_ms > 0 &&
        weir__retention_clock_age(&log->keep, &log->segments[1]->h.keep) > log->o.retain_ms)
        return true;
    return too_many(log);
}

/* How long until this segment and those in front of it can go by age alone; -1: they will not. */
static int64_t expiry_ms(const struct weir__log *log, size_t i)
{
    if (log->o.retain_ms <= 0) return -1;
    if (i + 1 < log->segment_count)
        return weir__retention_clock_until(&log->keep, &log->segments[i + 1]->h.keep,
                                           log->o.retain_ms + 1);
    if (log->active_since_ms == 0) return -1;
    return weir__retention_clock_until(&log->keep, &log->active_since,
                                       roll_age_ms(log) + log->o.retain_ms + 1);
}

int64_t weir__retention_wait_ms(struct weir__log *log)
{
    int64_t wait_ms = INT64_MAX, other_ms;

    weir__retention_tick(log);
    other_ms = expiry_ms(log, 0);
    if (weir__retention_roll_due(log) || weir__retention_due(log)) return 0;
    if (log->o.retain_ms > 0 && log->active_since_ms != 0)
        wait_ms = weir__retention_clock_until(&log->keep, &log->active_since, roll_age_ms(log));
    return other_ms >= 0 && other_ms < wait_ms ? other_ms : wait_ms;
}

void weir__log_set_retention(struct weir__log *log, int64_t retain_ms, uint64_t retain_bytes)
{
    weir__mutex_lock(&log->lock);
    log->o.retain_ms = retain_ms ? retain_ms : WEIR__LOG_RETAIN_MS_DEFAULT;
    log->o.retain_bytes = retain_bytes;
    weir__upkeep_soon(log, 0);
    weir__mutex_unlock(&log->lock);
}

/* ---- telling ---- */

/* An empty segment that goes takes no event with it: what goes next is what the oldest that holds
 * something has. */
static void tell_oldest(const struct weir__log *log, struct weir__log_stats *out)
{
    size_t i = first_holding(log, 0);
    const struct weir__segment *oldest = i < log->segment_count ? log->segments[i] : NULL;

    out->next_expiry_ms = -1;
    if (!oldest) return;
    out->begin_time_ms = oldest->first_ms ? oldest->first_ms : oldest->h.time_ms;
    out->next_expiry_ms = i == 0 && weir__retention_due(log) ? 0 : expiry_ms(log, i);
    if (out->next_expiry_ms >= 0 || log->o.retain_bytes)
        out->next_expiry_bytes = weir__segment_stored(oldest);
}

void weir__retention_stats(struct weir__log *log, struct weir__log_stats *out)
{
    weir__retention_tick(log);
    if (log->spare) out->disk_bytes = log->spare->h.capacity;
    for (size_t i = 0; i < log->segment_count; i++) {
        out->stored_bytes += weir__segment_stored(log->segments[i]);
        out->disk_bytes += log->segments[i]->disk_bytes;
    }
    out->disk_bytes_max = weir__log_disk_max(log);
    tell_oldest(log, out);
}

/* ---- letting go ---- */

/* The oldest segment is no longer of the log, durably. The last reader frees it; when there is none
 * it can be used again. */
static struct weir__segment *let_go(struct weir__log *log)
{
    struct weir__segment *seg = log->segments[0];

    memmove(log->segments, log->segments + 1, --log->segment_count * sizeof log->segments[0]);
    if (seg->read) log->read_files--;
    seg->removed = true;
    seg->pins++;
    return seg;
}

/* Steps that can fail leave everything as it was. The leader's; lock held, let go of inside. */
static int forget_oldest(struct weir__log *log, struct weir__head *begin, struct weir_error *err)
{
    struct weir__segment *next = log->segments[1];
    int rc;

    weir__log_pin(next);
    rc = weir__log_heads_of(log, next, begin, err); /* where the partitions will begin */
    weir__mutex_unlock(&log->lock);
    if (rc == 0) {
        read_oldest(log, 1);
        log->control.first_segment = next->h.number;
        rc = weir__log_write_control(log, err);
        if (rc != 0) log->control.first_segment = log->segments[0]->h.number;
    }
    weir__mutex_lock(&log->lock);
    weir__log_unpin(log, next);
    return rc;
}

/* Unfinished writes that were saved aside go with the segments they were found in. */
static void forget_cuts(struct weir__log *log)
{
    uint64_t first = log->segments[0]->h.base;

    weir__mutex_unlock(&log->lock);
    weir__cut_expire(log, first);
    weir__mutex_lock(&log->lock);
}

int weir__retention_expire(struct weir__log *log, struct weir_error *err)
{
    struct weir__head *begin = NULL;
    struct weir__segment *gone = NULL;
    int rc = 0;

    weir__log_take_lead(log);
    if (weir__retention_due(log)) { /* nobody was faster */
        begin = calloc(log->partitions, sizeof *begin);
        if (!begin) rc = weir__fail(err, WEIR_ENOMEM, "retention: out of memory");
    }
    if (begin) {
        rc = forget_oldest(log, begin, err);
        if (rc == 0) memcpy(log->begin_heads, begin, log->partitions * sizeof *begin);
        if (rc == 0) gone = let_go(log);
        if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    }
    weir__log_give_lead(log);
    if (gone) {
        weir__spare_recycle(log, gone);
        forget_cuts(log);
    }
    free(begin);
    return rc;
}
