/* cut.c - unfinished writes that an opening cut off, in files beside the segments.
 *
 * cut-POSITION-EPOCH.bin holds what lay behind the end of the log at that position: all that one
 * group can have written. It was never acknowledged, unless the disk lost a completed flush, so it
 * is kept for who wants to look, as long as events of that time are; and a full disk does without. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/state.h"

#define NAME_BYTES 64
#define REMOVED_AT_ONCE 64

/* Bytes of the active segment from file offset `at` on, into f. */
static int copy_out(const struct weir__scan *s, uint64_t at, uint64_t len, struct weir__file *f,
                    struct weir_error *err)
{
    uint64_t done = 0;

    while (done < len) {
        uint64_t begin = weir__round_down(at + done, WEIR__FS_BLOCK);
        size_t got = 0, skip = at + done - begin;
        struct weir__bad_blocks bad = {0};
        struct weir__bytes part;
        int rc = weir__blocks_read(s->file, s->window, s->window_cap, begin, &got, &bad, err);

        if (rc != 0 || got <= skip) return rc;
        if (got - skip > len - done) got = skip + (len - done);
        part = weir__bytes_of(s->window + skip, got - skip);
        rc = f->ops->write(f, &part, 1, done, err);
        if (rc != 0) return rc;
        done += part.len;
    }
    return 0;
}

static int write_cut(struct weir__log *log, const struct weir__scan *s, const char *path,
                     uint64_t at, uint64_t len, struct weir_error *err)
{
    struct weir__file *f = NULL;
    int rc = log->fs->ops->open(log->fs, path, WEIR__FS_CREATE, &f, err);

    if (rc == WEIR_EEXIST) /* an opening that did not get to its end began it */
        rc = log->fs->ops->open(log->fs, path, 0, &f, err);
    if (rc == 0) rc = copy_out(s, at, len, f, err);
    if (rc == 0) rc = f->ops->sync(f, err);
    weir__file_close(f);
    if (rc == 0) rc = weir__log_sync_names(log, err);
    if (rc == WEIR_ENOSPACE) log->fs->ops->remove(log->fs, path, NULL);
    return rc;
}

int weir__cut_save(struct weir__log *log, const struct weir__scan *s, uint64_t end,
                   bool end_unknown, struct weir_error *err)
{
    struct weir__segment *seg = weir__log_active(log);
    uint64_t at = end - seg->h.base;
    uint64_t len =
        s->torn_bytes > WEIR__LOG_GROUP_BYTES_MAX ? s->torn_bytes : WEIR__LOG_GROUP_BYTES_MAX;
    char name[NAME_BYTES], path[WEIR__LOG_PATH_BYTES];
    int rc;

    if (len > s->limit - end) len = s->limit - end;
    snprintf(name, sizeof name, "cut-%" PRIu64 "-%u.bin", end, log->control.epoch);
    rc = weir__log_path(log->dir, name, path, err);
    if (rc == 0) rc = write_cut(log, s, path, at, len, err);
    if (rc != 0 && rc != WEIR_ENOSPACE)
        return weir__wrap(err, rc, "saving an unfinished write aside as %s", name);
    weir__log_line(&log->o.logger, WEIR__WARN, "log",
                   "cut file=%s/%s byte=%" PRIu64 ": an unfinished write, %s%s; it %s", log->dir,
                   seg->name, at, rc == 0 ? "saved as " : "not saved: the disk is full",
                   rc == 0 ? name : "",
                   end_unknown
                       ? "may have been acknowledged, for no control file says where the end is"
                       : "can have been acknowledged only if the disk lost a completed "
                         "flush");
    return 0;
}

/* ---- letting go ---- */

struct old_cuts {
    uint64_t below;
    char names[REMOVED_AT_ONCE][NAME_BYTES];
    int count;
};

static int see_name(const char *name, void *user)
{
    struct old_cuts *old = user;
    char *end = NULL;
    uint64_t position;

    if (strncmp(name, "cut-", 4) != 0 || strlen(name) >= NAME_BYTES) return 0;
    position = strtoull(name + 4, &end, 10);
    if (*end != '-' || position >= old->below || old->count == REMOVED_AT_ONCE) return 0;
    snprintf(old->names[old->count++], NAME_BYTES, "%s", name);
    return 0;
}

void weir__cut_expire(struct weir__log *log, uint64_t below)
{
    struct old_cuts old = {.below = below};

    if (log->fs->ops->list(log->fs, log->dir, see_name, &old, NULL) != 0) return;
    for (int i = 0; i < old.count; i++)
        weir__log_remove_name(log->fs, log->dir, old.names[i], NULL);
}
