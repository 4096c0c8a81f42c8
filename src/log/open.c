/* open.c - making, opening, closing and removing a log.
 *
 * A folder holds: control (control.c), NNNNNNNN.seg (segment.c), producers-NNNNNNNN.tab
 * (producer_file.c), cut-POSITION-EPOCH.bin (bytes of unfinished writes that an opening cut). */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/state.h"

#define CONTROL_NAME "control"
#define BATCH_BYTES_DEFAULT ((1u << 20) + (64u << 10))
#define SEGMENT_BYTES_DEFAULT (256u << 20)
#define TAIL_BYTES_DEFAULT (16u << 20)

int weir__log_path(const char *dir, const char *name, char out[WEIR__LOG_PATH_BYTES],
                   struct weir_error *err)
{
    int n = snprintf(out, WEIR__LOG_PATH_BYTES, "%s/%s", dir, name);

    if (n < 0 || n >= WEIR__LOG_PATH_BYTES)
        return weir__fail(err, WEIR_EINVAL, "path of %s is too long", name);
    return 0;
}

int weir__log_open_name(struct weir__fs *fs, const char *dir, const char *name, unsigned flags,
                        struct weir__file **out, struct weir_error *err)
{
    char path[WEIR__LOG_PATH_BYTES];
    int rc = weir__log_path(dir, name, path, err);

    return rc != 0 ? rc : fs->ops->open(fs, path, flags, out, err);
}

int weir__log_remove_name(struct weir__fs *fs, const char *dir, const char *name,
                          struct weir_error *err)
{
    char path[WEIR__LOG_PATH_BYTES];
    int rc = weir__log_path(dir, name, path, err);

    return rc != 0 ? rc : fs->ops->remove(fs, path, err);
}

static int settle_options(const struct weir__log_options *in, struct weir__log_options *o,
                          struct weir_error *err)
{
    *o = *in;
    if (!o->fs) o->fs = weir__fs_posix();
    if (!o->clock.wall_ms) o->clock = weir__clock_system();
    if (!o->rand.fill) o->rand = weir__rand_system();
    if (!o->batch_bytes_max) o->batch_bytes_max = BATCH_BYTES_DEFAULT;
    if (!o->segment_bytes_min) o->segment_bytes_min = WEIR__SEGMENT_BYTES_MIN;
    if (!o->segment_bytes_max) o->segment_bytes_max = SEGMENT_BYTES_DEFAULT;
    if (!o->retain_ms) o->retain_ms = WEIR__LOG_RETAIN_MS_DEFAULT;
    if (!o->producers_max) o->producers_max = WEIR__PRODUCERS_MAX;
    if (!o->producers_tidy_blocks) o->producers_tidy_blocks = WEIR__PRODUCERS_TIDY_BLOCKS;
    if (!o->tail_bytes) {
        o->tail_bytes = 4 * (uint64_t)o->batch_bytes_max;
        if (o->tail_bytes < TAIL_BYTES_DEFAULT) o->tail_bytes = TAIL_BYTES_DEFAULT;
    }
    if (o->partitions < 1 || o->partitions > WEIR__LOG_PARTITIONS_MAX)
        return weir__fail(err, WEIR_EINVAL, "%u partitions: 1 to %u are possible", o->partitions,
                          WEIR__LOG_PARTITIONS_MAX);
    if (o->batch_bytes_max > WEIR__LOG_BATCH_BYTES_MAX)
        return weir__fail(err, WEIR_EINVAL, "batches of %u bytes: at most %u are possible",
                          o->batch_bytes_max, WEIR__LOG_BATCH_BYTES_MAX);
    if (o->segment_bytes_max < o->segment_bytes_min ||
        o->segment_bytes_min < WEIR__SEGMENT_BYTES_MIN ||
        (o->segment_bytes_max & (o->segment_bytes_max - 1)) ||
        (o->segment_bytes_min & (o->segment_bytes_min - 1)))
        return weir__fail(err, WEIR_EINVAL,
                          "segments of %" PRIu64 " to %" PRIu64 " bytes: powers of two, at least "
                          "%u, are needed",
                          o->segment_bytes_min, o->segment_bytes_max, WEIR__SEGMENT_BYTES_MIN);
    return 0;
}

void weir__log_free(struct weir__log *log)
{
    for (size_t i = 0; i < log->segment_count; i++) weir__segment_close(log->segments[i]);
    weir__segment_close(log->spare);
    weir__segment_close(log->headed);
    weir__segment_close(log->doomed);
    weir__file_close(log->control_file);
    weir__file_close(log->folder);
    weir__producers_fini(&log->producers);
    weir__producers_fini(&log->begun);
    weir__producer_file_close(&log->producer_file);
    weir__tail_fini(&log->tail);
    weir__mutex_fini(&log->lock);
    weir__cond_fini(&log->room);
    weir__mutex_fini(&log->watches.lock);
    weir__cond_fini(&log->watches.told);
    if (log->own_pool) weir__log_pool_free(log->pool);
    free(log->segments);
    free(log->heads);
    free(log->durable_heads);
    free(log->start_heads);
    free(log->begin_heads);
    free(log->sure_heads);
    weir__control_fini(&log->control);
    free(log->queue);
    free(log->watches.lists);
    free(log->dir);
    free(log);
}

static bool grow_heads(struct weir__head **heads, uint32_t from, uint32_t to)
{
    struct weir__head *grown = realloc(*heads, to * sizeof *grown);

    if (!grown) return false;
    memset(grown + from, 0, (to - from) * sizeof *grown);
    *heads = grown;
    return true;
}

int weir__log_size(struct weir__log *log, uint32_t partitions, struct weir_error *err)
{
    uint32_t from = log->partitions;
    int rc;

    if (partitions <= from) return 0;
    if (!grow_heads(&log->heads, from, partitions) ||
        !grow_heads(&log->durable_heads, from, partitions) ||
        !grow_heads(&log->start_heads, from, partitions) ||
        !grow_heads(&log->begin_heads, from, partitions) || !weir__watch_size(log, partitions))
        return weir__fail(err, WEIR_ENOMEM, "out of memory for %u partitions", partitions);
    rc = partitions > log->control.partitions ? weir__control_resize(&log->control, partitions, err)
                                              : 0;
    if (rc == 0) __atomic_store_n(&log->partitions, partitions, __ATOMIC_RELAXED);
    return rc;
}

/* Everything in memory, nothing from disk yet; no partitions. */
int weir__log_new(struct weir__log **out, const struct weir__log_options *options,
                  struct weir_error *err)
{
    struct weir__log_options o;
    struct weir__log *log;
    int rc = settle_options(options, &o, err);

    if (rc != 0) return rc;
    log = calloc(1, sizeof *log);
    if (!log) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    weir__mutex_init(&log->lock);
    weir__cond_init(&log->room);
    weir__mutex_init(&log->watches.lock);
    weir__cond_init(&log->watches.told);
    log->o = o;
    log->fs = o.fs;
    log->next_name = 1;
    log->queue_cap = WEIR__LOG_QUEUE_FIRST;
    log->dir = strdup(o.dir);
    log->queue = calloc(log->queue_cap, sizeof *log->queue);
    log->control.hub_id = o.hub_id;
    log->boot = o.clock.boot ? o.clock.boot(o.clock.self) : 0;
    if (!log->dir || !log->queue) rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    if (rc == 0) rc = weir__tail_init(&log->tail, o.tail_bytes, err);
    if (rc != 0) {
        weir__log_free(log);
        return rc;
    }
    log->o.dir = log->dir;
    *out = log;
    return 0;
}

int weir__log_open_control(struct weir__log *log, unsigned flags, struct weir_error *err)
{
    return weir__log_open_name(log->fs, log->dir, CONTROL_NAME, flags, &log->control_file, err);
}

/* Holds the folder for as long as the log is open. */
static int hold_folder(struct weir__log *log, struct weir_error *err)
{
    return log->fs->ops->open(log->fs, log->dir, WEIR__FS_DIR | WEIR__FS_LOCK, &log->folder, err);
}

int weir__log_sync_names(struct weir__log *log, struct weir_error *err)
{
    if (log->o.sabotage & WEIR__LOG_SKIP_DIR_SYNC) return 0;
    return log->folder->ops->sync(log->folder, err);
}

/* Never 0, which means none. */
static int make_secret(struct weir__log *log, struct weir_error *err)
{
    int rc = 0;

    while (rc == 0 && log->control.secret == 0)
        rc = log->o.rand.fill(log->o.rand.self, &log->control.secret, sizeof log->control.secret,
                              err);
    return rc;
}

/* Both copies of the control file and the first segment, then the folder. */
static int make_files(struct weir__log *log, struct weir_error *err)
{
    struct weir__segment *seg = NULL;
    uint64_t capacity;
    int rc = weir__log_size(log, log->o.partitions, err);

    if (rc == 0) rc = hold_folder(log, err);
    if (rc == 0) rc = make_secret(log, err);
    if (rc == 0) rc = weir__log_open_control(log, WEIR__FS_CREATE, err);
    if (rc != 0) return rc;
    weir__retention_start(log);
    log->control.keep = weir__retention_save(log);
    log->control.first_segment = log->control.last_segment = 1;
    capacity = weir__capacity_next(log, false, 0);
    rc = weir__log_make_segment(log, capacity, capacity, &seg, err);
    if (rc != 0) goto out;
    seg->h.number = 1;
    seg->h.base = seg->h.previous_end = WEIR__LOG_ORIGIN;
    rc = weir__log_head_segment(log, seg, err);
    weir__log_name_active(log, seg);
    log->control.watermark = log->control.epoch_start = seg->data;
    for (int copy = 0; rc == 0 && copy < 2; copy++)
        rc = weir__control_write(log->control_file, &log->control, true, err);
    if (rc == 0) rc = weir__log_sync_names(log, err);
out:
    weir__segment_close(seg);
    return rc;
}

/* The folder's own name, in the folder above it. */
static int sync_parent(struct weir__log *log, struct weir_error *err)
{
    char path[WEIR__LOG_PATH_BYTES];
    size_t len = strlen(log->dir);

    while (len > 1 && log->dir[len - 1] == '/') len--;
    while (len > 0 && log->dir[len - 1] != '/') len--;
    while (len > 1 && log->dir[len - 1] == '/') len--;
    if (len >= sizeof path) return weir__fail(err, WEIR_EINVAL, "path of the log is too long");
    snprintf(path, sizeof path, "%.*s", len > 0 ? (int)len : 1, len > 0 ? log->dir : ".");
    return log->fs->ops->sync_dir(log->fs, path, err);
}

int weir__log_create(const struct weir__log_options *options, struct weir_error *err)
{
    struct weir__log *log = NULL;
    int rc = weir__log_new(&log, options, err);

    if (rc != 0) return rc;
    rc = log->fs->ops->make_dir(log->fs, log->dir, err);
    if (rc == 0) rc = make_files(log, err);
    if (rc == 0) rc = sync_parent(log, err);
    weir__log_free(log);
    return rc == 0 ? 0 : weir__wrap(err, rc, "creating log %s", options->dir);
}

/* This opening's own number, on disk before the first batch can carry it. */
static int begin_epoch(struct weir__log *log, struct weir_error *err)
{
    struct weir_error why;
    int rc;

    if (!(log->o.sabotage & WEIR__LOG_SKIP_EPOCH)) {
        log->control.epoch++;
        log->control.epoch_start = log->visible;
    }
    log->epoch = log->control.epoch;
    weir__retention_start(log);
    weir__log_name_active(log, weir__log_active(log));
    log->want_roll = log->must_roll;
    weir__mutex_lock(&log->lock);
    rc = weir__log_finish_opening(log, &why);
    weir__mutex_unlock(&log->lock);
    if (rc == 0) return 0;
    if (rc != WEIR_ENOSPACE) return weir__wrap(err, rc, "%s", why.text);
    weir__log_line(&log->o.logger, WEIR__ERROR, "log",
                   "full dir=%s: there is no room to begin; it can be read, and takes nothing in "
                   "until there is: %s",
                   log->dir, why.text);
    log->want_roll = true; /* so that whoever appends comes by here */
    log->roll_rc = rc;
    return 0;
}

int weir__log_finish_opening(struct weir__log *log, struct weir_error *err)
{
    int rc;

    if (log->roll_first) {
        rc = weir__log_roll(log, err);
        if (rc == 0) log->opening = WEIR__LOG_EPOCH_BEGUN;
        return rc;
    }
    log->leading = true;
    weir__mutex_unlock(&log->lock);
    rc = weir__log_write_control(log, err);
    weir__mutex_lock(&log->lock);
    if (rc == 0) {
        log->opening = WEIR__LOG_EPOCH_BEGUN;
        log->want_roll = log->must_roll || log->roll_bytes > 0;
    }
    log->roll_rc = rc; /* else whoever looks for work would find it again and again */
    if (rc == WEIR_EFAILED) weir__log_stop(log, rc, err);
    weir__log_give_lead(log);
    return rc;
}

int weir__log_load_control(struct weir__log *log, int *out_bad_copies, bool *out_gone,
                           struct weir_error *err)
{
    int rc = WEIR_ECORRUPT;

    if (log->control_file)
        rc = weir__control_read(log->control_file, &log->control, out_bad_copies, err);
    *out_gone = rc == WEIR_ECORRUPT;
    if (rc == 0) return weir__log_size(log, log->control.partitions, err);
    if (rc != WEIR_ECORRUPT) return rc;
    weir__control_fini(&log->control);
    log->control = (struct weir__control){.hub_id = log->o.hub_id};
    return 0;
}

/* *out_gone: it has to be made again. */
static int read_control(struct weir__log *log, bool *out_gone, struct weir_error *err)
{
    int bad_copies = 0, rc = weir__log_open_control(log, 0, err);

    if (rc == WEIR_ENOTFOUND) rc = 0;
    if (rc == 0) rc = weir__log_load_control(log, &bad_copies, out_gone, err);
    if (rc == 0 && bad_copies && !*out_gone)
        weir__log_line(&log->o.logger, WEIR__WARN, "log",
                       "damage file=%s/" CONTROL_NAME ": one copy is bad, the other serves",
                       log->dir);
    return rc;
}

/* A new file for a control that went missing; its name is durable before a batch relies on it. */
static int make_control(struct weir__log *log, struct weir_error *err)
{
    int rc;

    if (log->control_file) return 0;
    rc = weir__log_open_control(log, WEIR__FS_CREATE, err);
    return rc == 0 ? weir__log_sync_names(log, err) : rc;
}

/* Everything that touches the disk. A log of format version 1 gets a secret, and a segment that uses
 * it before anything is appended; its old segments stay as they are, until they expire. */
static int open_files(struct weir__log *log, struct weir_error *err)
{
    bool gone = false, old = false;
    int rc = hold_folder(log, err);

    if (rc == 0) rc = read_control(log, &gone, err);
    if (rc == 0) old = !gone && log->control.version < WEIR__LOG_FORMAT;
    if (rc == 0) rc = weir__log_recover(log, gone, err);
    if (rc == 0) rc = make_control(log, err);
    if (rc == 0) rc = make_secret(log, err);
    if (rc == 0) rc = begin_epoch(log, err);
    if (rc == 0 && old && log->control.version == WEIR__LOG_FORMAT)
        weir__log_line(&log->o.logger, WEIR__INFO, "log",
                       "upgrade dir=%s: from format version 1 to %u, which an older weir refuses",
                       log->dir, WEIR__LOG_FORMAT);
    return rc;
}

int weir__log_open(struct weir__log **out, const struct weir__log_options *options,
                   struct weir_error *err)
{
    struct weir__log *log = NULL;
    int rc;

    *out = NULL;
    rc = weir__log_new(&log, options, err);
    if (rc != 0) return rc;
    rc = open_files(log, err);
    if (rc == 0) rc = weir__upkeep_start(log, err);
    if (rc != 0) {
        weir__log_free(log);
        return weir__wrap(err, rc, "opening log %s", options->dir);
    }
    if (log->o.sync_ms)
        weir__log_line(&log->o.logger, WEIR__WARN, "log",
                       "lazy dir=%s: acknowledged events reach the disk up to %u ms later and can "
                       "be lost until then",
                       log->dir, log->o.sync_ms);
    *out = log;
    return 0;
}

/* Commits what is left; then every completion has its answer. */
static int drain(struct weir__log *log, struct weir_error *err)
{
    int rc = 0;

    while (!log->failed && log->queue_commit < log->queue_tail && rc == 0) {
        if (log->leading)
            weir__log_wait(log, true, INT64_MAX);
        else
            rc = weir__log_lead(log, err);
    }
    if (log->failed) rc = weir__log_state_locked(log, err);
    return rc;
}

int weir__log_close(struct weir__log *log, struct weir_error *err)
{
    int rc, rc2 = 0;

    if (!log) return 0;
    weir__mutex_lock(&log->lock);
    rc = drain(log, err);
    log->closing = true;
    weir__cond_broadcast(&log->room);
    weir__watch_note_all(log);
    weir__watch_tell(log);
    weir__mutex_unlock(&log->lock);
    weir__upkeep_stop(log);
    weir__mutex_lock(&log->lock);
    if (log->o.no_threads) weir__log_run_completions(log, UINT64_MAX);
    if (!log->failed && log->o.sync_ms) rc2 = weir__log_sync_lazily(log, rc == 0 ? err : NULL);
    if (!log->failed && rc2 == 0 && log->opening == WEIR__LOG_EPOCH_BEGUN) {
        weir__log_take_lead(log);
        weir__mutex_unlock(&log->lock);
        rc2 = weir__log_write_control(log, rc == 0 ? err : NULL);
        weir__mutex_lock(&log->lock);
        weir__log_give_lead(log);
    }
    weir__mutex_unlock(&log->lock);
    weir__log_free(log);
    return rc != 0 ? rc : rc2;
}

struct weir__log_destroy {
    struct weir__fs *fs;
    const char *dir;
    struct weir_error *err;
};

static int remove_file(const char *name, void *user)
{
    struct weir__log_destroy *d = user;
    int rc = weir__log_remove_name(d->fs, d->dir, name, d->err);

    return rc == WEIR_ENOTFOUND ? 0 : rc;
}

int weir__log_destroy(struct weir__fs *fs, const char *dir, struct weir_error *err)
{
    struct weir__log_destroy d = {fs ? fs : weir__fs_posix(), dir, err};
    int rc;

    /* A symbolic link goes by itself: what it points to may be anybody's. A folder has files still. */
    if (d.fs->ops->remove(d.fs, dir, NULL) == 0) return 0;
    rc = d.fs->ops->list(d.fs, dir, remove_file, &d, err);
    if (rc == WEIR_ENOTFOUND) return 0;
    if (rc == 0) rc = d.fs->ops->remove(d.fs, dir, err);
    return rc == 0 || rc == WEIR_ENOTFOUND ? 0 : weir__wrap(err, rc, "removing log %s", dir);
}
