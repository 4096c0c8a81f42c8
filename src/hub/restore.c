/* restore.c - checking a backup, and making a data folder from it.
 *
 * Every file is compared with the manifest three times: before anything is made, while it is
 * copied, and read again where it came to lie. A file that is made first and removed last keeps
 * everybody from opening a folder whose restore was cut off, also when a catalogue is put into it. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/backup_manifest.h"
#include "hub/namespace.h"
#include "hub/state.h"

/* Ids of idempotent producers that may have been given out after the moment are not given again. */
#define PRODUCERS_SKIPPED (UINT64_C(1) << 20)
#define PRODUCERS_MAX (UINT64_C(1) << 52)

/* ---- one segment ---- */

/* Reads a segment, copies it when to is given, and compares. */
static int pass_segment(struct weir__fs *fs, const char *from, const char *to, uint64_t hub_id,
                        const struct weir__manifest_segment *seg, struct weir_error *err)
{
    char at[WEIR__BACKUP_PATH_BYTES], copy[WEIR__BACKUP_PATH_BYTES];
    uint8_t got[WEIR__DIGEST_BYTES];
    struct weir__digest digest = {0};
    struct weir__backup_sink sink = {weir__digest_add, &digest};
    struct weir__backup_copied copied = {0};
    int rc = weir__digest_begin(&digest, err);

    weir__backup_segment_path(from, hub_id, seg->name, at);
    if (to) weir__backup_segment_path(to, hub_id, seg->name, copy);
    if (rc == 0)
        rc = weir__backup_copy(fs, at, to ? copy : NULL, &seg->extent, &sink, &copied, err);
    weir__digest_end(&digest, got);
    if (rc == WEIR_ENOTFOUND) return weir__wrap(err, WEIR_ECORRUPT, "a file is missing");
    if (rc != 0) return rc;
    if (copied.unreadable > 0)
        return weir__fail(err, WEIR_ECORRUPT, "%s: the disk cannot read all of it", at);
    if (copied.stray > 0 || memcmp(got, seg->digest, sizeof got) != 0)
        return weir__fail(err, WEIR_ECORRUPT, "%s is not what was backed up", at);
    return 0;
}

/* aux: from is a backup, where extra files have other names. */
static int pass_hub(struct weir__fs *fs, const char *from, bool aux, const char *to,
                    const struct weir__manifest_hub *hub, struct weir__backup_result *result,
                    struct weir_error *err)
{
    char dir[WEIR__HUB_PATH_BYTES];
    int rc = 0;

    if (to) {
        weir__namespace_hub_dir(to, hub->id, dir);
        rc = fs->ops->make_dir(fs, dir, err);
    }
    for (uint32_t i = 0; rc == 0 && i < hub->segment_count; i++) {
        const struct weir__manifest_segment *seg = &hub->segments[i];

        rc = pass_segment(fs, from, to, hub->id, seg, err);
        if (rc != 0 || !result) continue;
        result->segments_copied++;
        result->bytes_copied += seg->extent.used + seg->extent.bytes - seg->extent.tail;
        result->damaged += seg->damaged;
    }
    if (rc == 0) rc = weir__backup_extras_pass(fs, from, aux, to, hub, err);
    if (rc == 0 && to) rc = fs->ops->sync_dir(fs, dir, err);
    return rc;
}

static int pass_hubs(struct weir__fs *fs, const char *from, bool aux, const char *to,
                     const struct weir__manifest *m, struct weir__backup_result *result,
                     struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < m->hub_count; i++)
        rc = pass_hub(fs, from, aux, to, &m->hubs[i], result, err);
    return rc;
}

/* ---- the backup ---- */

struct source {
    struct weir__fs *fs;
    const char *dir;
    struct weir__file *lock;
    struct weir__manifest manifest;
    enum weir__manifest_other other;
};

/* A backup on a medium that cannot be written can be read all the same. */
static int lock_source(struct source *s, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    int rc;

    snprintf(path, sizeof path, "%s/" WEIR__NAMESPACE_LOCK, s->dir);
    rc = s->fs->ops->open(s->fs, path, WEIR__FS_LOCK, &s->lock, err);
    return rc == WEIR_ELOCKED ? rc : 0;
}

static void leave_source(struct source *s)
{
    weir__manifest_fini(&s->manifest);
    weir__file_close(s->lock);
}

static int open_source(struct source *s, struct weir__fs *fs, const char *dir,
                       struct weir_error *err)
{
    int rc;

    *s = (struct source){.fs = fs ? fs : weir__fs_posix(), .dir = dir};
    weir__manifest_init(&s->manifest);
    if (strlen(dir) > WEIR__CATALOG_DIR_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "the folder's path is too long");
    rc = weir__manifest_load(s->fs, dir, &s->manifest, &s->other, err);
    if (rc == WEIR_ENOTFOUND) return weir__fail(err, rc, "%s is not a backup", dir);
    if (rc == 0 && s->manifest.generation == 0)
        rc = weir__fail(err, WEIR_ENOTFOUND, "no backup into %s was ever finished", dir);
    if (rc == 0) { /* again under the lock: a run may just have ended */
        rc = lock_source(s, err);
        weir__manifest_fini(&s->manifest);
        if (rc == 0) rc = weir__manifest_load(s->fs, dir, &s->manifest, &s->other, err);
    }
    if (rc != 0) leave_source(s);
    return rc;
}

/* Neither makes the backup a bad one, and the next run puts both right. */
static void tell_other(const struct source *s, const struct weir__backup_options *options,
                       struct weir__backup_result *out)
{
    if (s->other == WEIR__MANIFEST_OLDER)
        weir__log_line(&options->logger, WEIR__WARN, "backup",
                       "the last run into %s did not get to its end; the next one will tidy up",
                       s->dir);
    if (s->other != WEIR__MANIFEST_BAD) return;
    out->damaged++;
    weir__log_line(&options->logger, WEIR__ERROR, "backup",
                   "damage in %s: manifest.%d is bad, manifest.%d serves; the next run repairs it",
                   s->dir, 1 - s->manifest.copy, s->manifest.copy);
}

int weir__backup_check(const char *from, const struct weir__backup_options *options,
                       struct weir__backup_result *out, struct weir_error *err)
{
    struct source s;
    int rc = open_source(&s, options->fs, from, err);

    *out = (struct weir__backup_result){0};
    if (rc != 0) return rc;
    weir__manifest_sum(&s.manifest, out);
    rc = pass_hubs(s.fs, from, true, NULL, &s.manifest, out, err);
    if (rc == 0 && s.other != WEIR__MANIFEST_OLDER)
        rc = weir__backup_check_rest(s.fs, from, &s.manifest, err);
    tell_other(&s, options, out);
    leave_source(&s);
    return rc;
}

/* ---- restoring ---- */

struct seen {
    bool any, unfinished;
};

static int see_any(const char *name, void *user)
{
    struct seen *seen = user;

    if (strcmp(name, WEIR__NAMESPACE_LOCK) != 0) seen->any = true;
    if (strcmp(name, WEIR__CATALOG_RESTORING) == 0) seen->unfinished = true;
    return 0;
}

/* Missing or empty. */
static int take_target(struct weir__fs *fs, const char *dir, bool *out_made,
                       struct weir__file **out_lock, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct seen seen = {0};
    int rc;

    if (strlen(dir) > WEIR__CATALOG_DIR_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "the folder's path is too long");
    rc = weir__backup_make_dir(fs, dir, err);
    *out_made = rc == 0;
    if (rc == WEIR_EEXIST) rc = fs->ops->list(fs, dir, see_any, &seen, err);
    if (rc == 0 && seen.unfinished)
        rc = weir__fail(err, WEIR_EEXIST, "%s: %s", dir, WEIR__CATALOG_RESTORING_TEXT);
    if (rc == 0 && seen.any)
        rc = weir__fail(err, WEIR_EEXIST, "%s is not empty; restore into a new folder", dir);
    snprintf(path, sizeof path, "%s/" WEIR__NAMESPACE_LOCK, dir);
    if (rc == 0) rc = fs->ops->open(fs, path, WEIR__FS_LOCK, out_lock, err);
    return rc;
}

static void skip_producers(struct weir__catalog *catalog)
{
    for (uint32_t i = 0; i < catalog->hub_count; i++)
        if (catalog->hubs[i].producers > 0 && catalog->hubs[i].producers < PRODUCERS_MAX)
            catalog->hubs[i].producers += PRODUCERS_SKIPPED;
}

static void marker_path(const char *dir, char out[WEIR__BACKUP_PATH_BYTES])
{
    snprintf(out, WEIR__BACKUP_PATH_BYTES, "%s/" WEIR__CATALOG_RESTORING, dir);
}

static int mark_unfinished(struct weir__fs *fs, const char *dir, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__file *f = NULL;
    int rc;

    marker_path(dir, path);
    rc = fs->ops->open(fs, path, WEIR__FS_CREATE, &f, err);
    weir__file_close(f);
    return rc == 0 ? fs->ops->sync_dir(fs, dir, err) : rc;
}

static int mark_finished(struct weir__fs *fs, const char *dir, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    int rc;

    marker_path(dir, path);
    rc = fs->ops->remove(fs, path, err);
    return rc == 0 ? fs->ops->sync_dir(fs, dir, err) : rc;
}

static int fill_target(struct source *s, const char *dir, struct weir__backup_result *out,
                       struct weir_error *err)
{
    int rc = mark_unfinished(s->fs, dir, err);

    if (rc == 0) rc = pass_hubs(s->fs, s->dir, true, dir, &s->manifest, out, err);
    if (rc == 0) rc = pass_hubs(s->fs, dir, false, NULL, &s->manifest, NULL, err);
    if (rc == 0) rc = s->fs->ops->sync_dir(s->fs, dir, err);
    skip_producers(&s->manifest.catalog);
    if (rc == 0) rc = weir__backup_write_rest(s->fs, dir, &s->manifest, NULL, false, err);
    if (rc == 0) rc = weir__backup_check_rest(s->fs, dir, &s->manifest, err);
    return rc == 0 ? mark_finished(s->fs, dir, err) : rc;
}

static int remove_name(const char *name, void *user)
{
    const struct source *target = user;
    char path[WEIR__BACKUP_PATH_BYTES];

    if (strcmp(name, WEIR__CATALOG_RESTORING) == 0) return 0; /* last of all */
    snprintf(path, sizeof path, "%s/%s", target->dir, name);
    target->fs->ops->remove(target->fs, path, NULL);
    return 0;
}

static void clear_target(struct weir__fs *fs, const char *dir, bool made)
{
    struct weir__manifest nothing;
    struct source target = {.fs = fs, .dir = dir};
    char path[WEIR__BACKUP_PATH_BYTES];

    marker_path(dir, path);
    weir__manifest_init(&nothing);
    weir__backup_sweep(fs, dir, &nothing, NULL, NULL);
    fs->ops->list(fs, dir, remove_name, &target, NULL);
    fs->ops->sync_dir(fs, dir, NULL); /* the marker goes last after a loss of power, too */
    fs->ops->remove(fs, path, NULL);
    if (made) fs->ops->remove(fs, dir, NULL);
}

int weir__backup_restore(const char *from, const char *dir,
                         const struct weir__backup_options *options,
                         struct weir__backup_result *out, struct weir_error *err)
{
    struct source s;
    struct weir__file *lock = NULL;
    bool made = false;
    int rc = open_source(&s, options->fs, from, err);

    *out = (struct weir__backup_result){0};
    if (rc != 0) return rc;
    rc = pass_hubs(s.fs, from, true, NULL, &s.manifest, NULL, err);
    if (rc == 0) rc = take_target(s.fs, dir, &made, &lock, err);
    if (rc == 0) {
        rc = fill_target(&s, dir, out, err);
        weir__file_close(lock);
        if (rc != 0) clear_target(s.fs, dir, made);
    }
    if (rc == 0) weir__manifest_sum(&s.manifest, out);
    leave_source(&s);
    return rc;
}
