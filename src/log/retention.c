/* retention.c - which segments are too old or too many, and letting them go.
 *
 * Retention measures age on a clock of its own, which follows the wall clock but takes no more than
 * KEEP_STEP_MS beyond what the monotonic clock saw pass: one jump forward expires nothing. The
 * control file remembers it; the times of events cannot say it, they may come from such a jump. */
#include <stdlib.h>

#include "log/state.h"

#define KEEP_STEP_MS 60000 /* how much retention's clock may gain on real time in one look */

static int64_t up_ms(const struct weir__clock *clock)
{
    return clock->up_ms ? clock->up_ms(clock->self) : clock->mono_ms(clock->self);
}

struct weir__keep_time weir__retention_time(const struct weir__log *log)
{
    const struct weir__clock *clock = &log->o.clock;

    return (struct weir__keep_time){
        .keep_ms = __atomic_load_n(&log->keep_wall_ms, __ATOMIC_RELAXED),
        .wall_ms = clock->wall_ms(clock->self),
        .up_ms = up_ms(clock),
        .boot = log->boot,
    };
}

void weir__retention_tick(struct weir__log *log, int64_t mono_ms)
{
    int64_t wall_ms = log->o.clock.wall_ms(log->o.clock.self);
    int64_t most = log->keep_wall_ms + (mono_ms - log->keep_mono_ms) + KEEP_STEP_MS;

    log->keep_mono_ms = mono_ms;
    if (wall_ms > most) wall_ms = most;
    if (wall_ms > log->keep_wall_ms)
        __atomic_store_n(&log->keep_wall_ms, wall_ms, __ATOMIC_RELAXED);
}

bool weir__retention_due(const struct weir__log *log)
{
    uint64_t bytes = 0;

    if (log->segment_count < 2 || log->failed || log->headed) return false;
    if (log->o.retain_ms > 0 && log->keep_wall_ms - log->segments[1]->h.time_ms > log->o.retain_ms)
        return true;
    if (log->o.retain_bytes == 0) return false;
    for (size_t i = 1; i < log->segment_count; i++) bytes += log->segments[i]->h.capacity;
    return bytes >= log->o.retain_bytes;
}

/* Where the partitions will begin once the oldest segment is gone. The leader's, without lock. */
static int read_begin(struct weir__log *log, struct weir__segment *next, struct weir__head *out,
                      struct weir_error *err)
{
    struct weir__file *f = NULL;
    char path[WEIR__LOG_PATH_BYTES];
    int rc;

    if (next == weir__log_active(log)) {
        memcpy(out, log->start_heads, log->partitions * sizeof *out);
        return 0;
    }
    rc = weir__log_path(log->dir, next->name, path, err);
    if (rc == 0) rc = log->fs->ops->open(log->fs, path, WEIR__FS_READ_ONLY, &f, err);
    if (rc == 0) rc = weir__segment_read_heads(f, &next->h, log->partitions, out, NULL, err);
    weir__file_close(f);
    return rc;
}

/* The oldest segment is no longer of the log, durably: it becomes the spare when nobody reads it
 * and its size is right. Otherwise it is returned for its file to be removed; the last reader frees
 * what is in memory. */
static struct weir__segment *let_go(struct weir__log *log)
{
    struct weir__segment *seg = log->segments[0];

    memmove(log->segments, log->segments + 1, --log->segment_count * sizeof log->segments[0]);
    if (seg->read) log->read_files--;
    if (seg->pins > 0 || log->spare || seg->lost || seg->h.capacity != log->o.segment_bytes_max) {
        seg->removed = true;
        seg->pins++;
        return seg;
    }
    weir__file_close(seg->read);
    weir__index_free(seg->index);
    seg->read = NULL;
    seg->index = NULL;
    log->spare = seg;
    return NULL;
}

static void remove_file(struct weir__log *log, struct weir__segment *seg)
{
    char path[WEIR__LOG_PATH_BYTES];

    weir__mutex_unlock(&log->lock);
    if (weir__log_path(log->dir, seg->name, path, NULL) == 0)
        log->fs->ops->remove(log->fs, path, NULL);
    weir__mutex_lock(&log->lock);
    weir__log_unpin(log, seg);
}

int weir__retention_expire(struct weir__log *log, struct weir_error *err)
{
    struct weir__head *begin = NULL;
    struct weir__segment *gone = NULL;
    bool readable = false;
    int rc = 0;

    weir__log_take_lead(log);
    if (weir__retention_due(log)) { /* nobody was faster */
        begin = calloc(log->partitions, sizeof *begin);
        if (!begin) rc = weir__fail(err, WEIR_ENOMEM, "retention: out of memory");
    }
    if (!begin) {
        weir__log_give_lead(log);
        return rc;
    }
    weir__mutex_unlock(&log->lock);
    if (!log->segments[1]->lost) {
        rc = read_begin(log, log->segments[1], begin, err);
        readable = rc == 0;
        if (rc == WEIR_ECORRUPT || rc == WEIR_EIO) rc = 0; /* will not get better */
    }
    if (rc == 0) {
        log->control.first_segment = log->segments[1]->h.number;
        rc = weir__log_write_control(log, err);
    }
    weir__mutex_lock(&log->lock);
    if (rc == 0) {
        if (readable) memcpy(log->begin_heads, begin, log->partitions * sizeof *begin);
        gone = let_go(log);
    } else {
        log->control.first_segment = log->segments[0]->h.number;
        if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    }
    weir__log_give_lead(log);
    if (gone) remove_file(log, gone);
    free(begin);
    return rc;
}
