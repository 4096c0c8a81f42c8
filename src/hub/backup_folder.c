/* backup_folder.c - the folder of a backup.
 *
 *   TO/lock                        held while a run is at it
 *   TO/manifest.0 .1               what is in it: backup_manifest.c
 *   TO/hub-<id>/NNNNNNNN.seg       segments; a name is never used twice
 *   TO/hub-<id>/control            these follow from the manifest
 *   TO/catalog.0 .1, TO/id
 *
 * A first manifest that says "nothing yet" is written before anything else, so that the next run
 * knows the folder for its own however early this one ends. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/backup_manifest.h"
#include "hub/namespace.h"
#include "hub/state.h"

#define CONTROL_NAME "control"
#define CONTROL_COPIES 2

void weir__backup_segment_path(const char *dir, uint64_t hub_id, uint64_t name,
                               char out[WEIR__BACKUP_PATH_BYTES])
{
    char hub[WEIR__HUB_PATH_BYTES];

    weir__namespace_hub_dir(dir, hub_id, hub);
    snprintf(out, WEIR__BACKUP_PATH_BYTES, "%s/%08llu.seg", hub, (unsigned long long)name);
}

static int join(const char *dir, const char *name, char out[WEIR__BACKUP_PATH_BYTES],
                struct weir_error *err)
{
    int n = snprintf(out, WEIR__BACKUP_PATH_BYTES, "%s/%s", dir, name);

    if (n > 0 && n < WEIR__BACKUP_PATH_BYTES) return 0;
    return weir__fail(err, WEIR_ETOOBIG, "the path of %s is too long", name);
}

/* ---- sweeping ---- */

struct sweeping {
    struct weir__fs *fs;
    const char *dir;
    const struct weir__manifest *manifest;
    const struct weir__manifest_hub *hub; /* whose folder is being listed */
    char hub_dir[WEIR__HUB_PATH_BYTES];
    uint64_t segments;
    bool removed;
    struct weir_error *err;
};

static bool is_named(const struct weir__manifest_hub *hub, const char *file)
{
    uint64_t name = strtoull(file, NULL, 10);

    if (strcmp(file, CONTROL_NAME) == 0 || weir__backup_extra_named(hub, file)) return true;
    if (!weir__backup_is_segment(file)) return false;
    for (uint32_t i = 0; i < hub->segment_count; i++)
        if (hub->segments[i].name == name) return true;
    return false;
}

static int sweep_file(const char *name, void *user)
{
    struct sweeping *s = user;
    char path[WEIR__BACKUP_PATH_BYTES];
    int rc;

    if (s->hub && is_named(s->hub, name)) return 0;
    rc = join(s->hub_dir, name, path, s->err);
    if (rc == 0) rc = s->fs->ops->remove(s->fs, path, s->err);
    s->segments += weir__backup_is_segment(name);
    s->removed = true;
    return rc;
}

/* The id in the name of a hub's folder; 0: it is something else, and not ours to remove. */
static uint64_t hub_of_name(const char *name)
{
    const size_t prefix = sizeof WEIR__HUB_PREFIX - 1;

    if (strncmp(name, WEIR__HUB_PREFIX, prefix) != 0) return 0;
    if (strspn(name + prefix, "0123456789abcdef") != WEIR__HUB_ID_DIGITS ||
        name[prefix + WEIR__HUB_ID_DIGITS] != '\0')
        return 0;
    return strtoull(name + prefix, NULL, 16);
}

static int sweep_hub(const char *name, void *user)
{
    struct sweeping *s = user;
    uint64_t id = hub_of_name(name);
    int rc;

    if (id == 0) return 0;
    s->hub = weir__manifest_hub(s->manifest, id);
    s->removed = false;
    weir__namespace_hub_dir(s->dir, id, s->hub_dir);
    rc = s->fs->ops->list(s->fs, s->hub_dir, sweep_file, s, s->err);
    if (rc == 0 && !s->hub) rc = s->fs->ops->remove(s->fs, s->hub_dir, s->err);
    if (rc == 0 && s->hub && s->removed) rc = s->fs->ops->sync_dir(s->fs, s->hub_dir, s->err);
    return rc;
}

int weir__backup_sweep(struct weir__fs *fs, const char *dir, const struct weir__manifest *m,
                       uint64_t *out_segments, struct weir_error *err)
{
    struct sweeping s = {.fs = fs, .dir = dir, .manifest = m, .err = err};
    int rc = fs->ops->list(fs, dir, sweep_hub, &s, err);

    if (out_segments) *out_segments = s.segments;
    return rc == 0 ? 0 : weir__wrap(err, rc, "removing old files from %s", dir);
}

/* ---- taking and leaving ---- */

int weir__backup_make_dir(struct weir__fs *fs, const char *dir, struct weir_error *err)
{
    char parent[WEIR__BACKUP_PATH_BYTES];
    size_t len = strlen(dir);
    int rc = fs->ops->make_dir(fs, dir, err);

    if (rc == WEIR_ENOTFOUND)
        return weir__fail(err, WEIR_EINVAL, "%s cannot be made: the folder around it is missing",
                          dir);
    if (rc != 0) return rc;
    while (len > 0 && dir[len - 1] == '/') len--;
    while (len > 0 && dir[len - 1] != '/') len--;
    while (len > 1 && dir[len - 1] == '/') len--; /* a root is its slash */
    if (len >= sizeof parent) return weir__fail(err, WEIR_ETOOBIG, "the path is too long");
    snprintf(parent, sizeof parent, "%.*s", len ? (int)len : 1, len ? dir : ".");
    return fs->ops->sync_dir(fs, parent, err);
}

struct seen {
    bool manifest, catalog, other;
};

static int see_name(const char *name, void *user)
{
    struct seen *seen = user;

    if (strncmp(name, "manifest.", 9) == 0)
        seen->manifest = true;
    else if (strncmp(name, "catalog.", 8) == 0)
        seen->catalog = true;
    else if (strcmp(name, WEIR__NAMESPACE_LOCK) != 0)
        seen->other = true;
    return 0;
}

#define CHOOSE "; choose a new folder, or one that 'weir backup' made"

/* Looks before anything is made in a folder that may be somebody else's. */
static int check_folder(struct weir__backup_folder *f, struct seen *seen, struct weir_error *err)
{
    int rc = f->fs->ops->list(f->fs, f->dir, see_name, seen, err);

    if (rc != 0 || seen->manifest) return rc;
    if (seen->catalog)
        return weir__fail(err, WEIR_EINVAL, "%s is a data folder, not a backup" CHOOSE, f->dir);
    if (seen->other)
        return weir__fail(err, WEIR_EINVAL, "%s is not empty and not a backup" CHOOSE, f->dir);
    return 0;
}

/* The next manifest goes where the older copy lies. Should only the other one be good, it is
 * written there first. */
static int heal(struct weir__backup_folder *f, struct weir_error *err)
{
    bool good = f->manifest.copy == (int)(f->manifest.generation % 2);

    return good ? 0 : weir__manifest_write(f->fs, f->dir, &f->manifest, false, err);
}

static int open_folder(struct weir__backup_folder *f, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct seen seen = {0};
    enum weir__manifest_other other;
    int rc = weir__backup_make_dir(f->fs, f->dir, err);

    f->made = rc == 0;
    if (rc == WEIR_EEXIST) rc = check_folder(f, &seen, err);
    if (rc == 0) rc = join(f->dir, WEIR__NAMESPACE_LOCK, path, err);
    if (rc == 0) rc = f->fs->ops->open(f->fs, path, WEIR__FS_LOCK, &f->lock, err);
    if (rc != 0) return rc;
    rc = weir__manifest_load(f->fs, f->dir, &f->manifest, &other, err);
    f->unfinished = other != WEIR__MANIFEST_EQUAL;
    if (rc == 0) return heal(f, err);
    if (rc != WEIR_ENOTFOUND && rc != WEIR_ECORRUPT) return rc;
    if (seen.catalog || seen.other)
        return weir__wrap(err, WEIR_EINVAL,
                          "the backup is damaged: remove it, or choose a new folder");
    return weir__manifest_write(f->fs, f->dir, &f->manifest, false, err);
}

int weir__backup_folder_take(struct weir__backup_folder *f, struct weir__fs *fs, const char *dir,
                             struct weir_error *err)
{
    int rc;

    *f = (struct weir__backup_folder){.fs = fs, .dir = dir};
    weir__manifest_init(&f->manifest);
    if (strlen(dir) > WEIR__CATALOG_DIR_MAX)
        return weir__fail(err, WEIR_ETOOBIG, "the folder's path is too long");
    rc = open_folder(f, err);
    if (rc == 0) rc = weir__backup_sweep(fs, dir, &f->manifest, NULL, err);
    if (rc != 0) weir__backup_folder_leave(f, f->made);
    return rc;
}

static int remove_name(const char *name, void *user)
{
    const struct weir__backup_folder *f = user;
    char path[WEIR__BACKUP_PATH_BYTES];

    if (join(f->dir, name, path, NULL) == 0) f->fs->ops->remove(f->fs, path, NULL);
    return 0;
}

/* What is in the folder is this run's only while it has the lock: another one may have come between
 * making the folder and locking it. One that is not empty is not removed. */
void weir__backup_folder_leave(struct weir__backup_folder *f, bool undo)
{
    if (undo && f->lock) weir__backup_sweep(f->fs, f->dir, &f->manifest, NULL, NULL);
    if (undo && f->lock && f->made) f->fs->ops->list(f->fs, f->dir, remove_name, f, NULL);
    weir__file_close(f->lock);
    if (undo && f->made) f->fs->ops->remove(f->fs, f->dir, NULL);
    weir__manifest_fini(&f->manifest);
}

/* ---- what follows from the manifest ---- */

static bool same_control(const struct weir__control *a, const struct weir__control *b)
{
    return a->partitions == b->partitions && a->secret == b->secret &&
           a->first_segment == b->first_segment && a->last_segment == b->last_segment &&
           a->watermark == b->watermark && a->epoch_start == b->epoch_start &&
           a->epoch == b->epoch && memcmp(&a->keep, &b->keep, sizeof a->keep) == 0 &&
           memcmp(&a->active, &b->active, sizeof a->active) == 0 &&
           memcmp(a->heads, b->heads, a->partitions * sizeof *a->heads) == 0;
}

/* Both copies of the control file; the generation grows with the manifest's. */
static int write_control(struct weir__fs *fs, const char *dir, const struct weir__manifest *m,
                         const struct weir__manifest_hub *hub, struct weir_error *err)
{
    char hub_dir[WEIR__HUB_PATH_BYTES], path[WEIR__BACKUP_PATH_BYTES];
    struct weir__control c = hub->control;
    struct weir__file *f = NULL;
    bool made = false;
    int rc;

    weir__namespace_hub_dir(dir, hub->id, hub_dir);
    rc = join(hub_dir, CONTROL_NAME, path, err);
    if (rc == 0) rc = fs->ops->open(fs, path, 0, &f, err);
    made = rc == WEIR_ENOTFOUND;
    if (made) rc = fs->ops->open(fs, path, WEIR__FS_CREATE, &f, err);
    c.generation = m->generation * CONTROL_COPIES;
    for (int i = 0; rc == 0 && i < CONTROL_COPIES; i++)
        rc = weir__control_write(f, &c, i + 1 == CONTROL_COPIES, err);
    weir__file_close(f);
    if (rc == 0 && made) rc = fs->ops->sync_dir(fs, hub_dir, err);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%s", hub_dir);
}

static int write_catalog(struct weir__fs *fs, const char *dir, const struct weir__catalog *catalog,
                         struct weir_error *err)
{
    struct weir__catalog_store store;
    int rc = weir__catalog_store_init(&store, fs, dir, NULL, err);

    if (rc == 0) rc = weir__catalog_save(&store, catalog, err);
    return rc == 0 ? weir__catalog_heal(&store, catalog, err) : rc; /* a backup has both copies */
}

static int write_id(struct weir__fs *fs, const char *dir, const char *id, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__bytes part = weir__bytes_of(id, strlen(id));
    struct weir__file *f = NULL;
    int rc = join(dir, "id", path, err);

    if (rc != 0 || part.len == 0) return rc;
    rc = fs->ops->open(fs, path, WEIR__FS_CREATE, &f, err);
    if (rc == WEIR_EEXIST) rc = fs->ops->open(fs, path, 0, &f, err);
    if (rc == 0) rc = f->ops->write(f, &part, 1, 0, err);
    if (rc == 0) rc = f->ops->sync(f, err);
    weir__file_close(f);
    return rc;
}

/* Under their own names, beside the aux files; what is there of an earlier run goes. */
static int write_extras(struct weir__fs *fs, const char *dir, const struct weir__manifest_hub *hub,
                        struct weir_error *err)
{
    char hub_dir[WEIR__HUB_PATH_BYTES], path[WEIR__BACKUP_PATH_BYTES];
    int rc = 0;

    if (hub->extra_count == 0 || weir__backup_extras_pass(fs, dir, false, NULL, hub, NULL) == 0)
        return 0;
    weir__namespace_hub_dir(dir, hub->id, hub_dir);
    for (uint32_t i = 0; rc == 0 && i < hub->extra_count; i++) {
        rc = join(hub_dir, hub->extras[i].name, path, err);
        if (rc == 0) rc = fs->ops->remove(fs, path, err);
        if (rc == WEIR_ENOTFOUND) rc = 0;
    }
    if (rc == 0) rc = weir__backup_extras_pass(fs, dir, true, dir, hub, err);
    return rc == 0 ? fs->ops->sync_dir(fs, hub_dir, err) : rc;
}

int weir__backup_write_rest(struct weir__fs *fs, const char *dir, const struct weir__manifest *m,
                            const struct weir__manifest *former, bool aux, struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < m->hub_count; i++) {
        const struct weir__manifest_hub *hub = &m->hubs[i];
        const struct weir__manifest_hub *old = former ? weir__manifest_hub(former, hub->id) : NULL;

        if (!old || !same_control(&old->control, &hub->control))
            rc = write_control(fs, dir, m, hub, err);
        if (rc == 0 && aux) rc = write_extras(fs, dir, hub, err);
    }
    if (rc == 0) rc = write_id(fs, dir, m->id, err);
    if (rc == 0) rc = write_catalog(fs, dir, &m->catalog, err);
    if (rc == 0) rc = fs->ops->sync_dir(fs, dir, err);
    return rc;
}

static int check_control(struct weir__fs *fs, const char *dir, const struct weir__manifest_hub *hub,
                         struct weir_error *err)
{
    char hub_dir[WEIR__HUB_PATH_BYTES], path[WEIR__BACKUP_PATH_BYTES];
    struct weir__control c = {.hub_id = hub->id};
    struct weir__file *f = NULL;
    int bad = 0, rc;

    weir__namespace_hub_dir(dir, hub->id, hub_dir);
    rc = join(hub_dir, CONTROL_NAME, path, err);
    if (rc == 0) rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, err);
    if (rc == 0) rc = weir__control_read(f, &c, &bad, err);
    weir__file_close(f);
    if (rc == 0 && (bad > 0 || !same_control(&c, &hub->control)))
        rc = weir__fail(err, WEIR_ECORRUPT, "it is not what was backed up");
    weir__control_fini(&c);
    if (rc == 0) return 0;
    return weir__wrap(err, rc == WEIR_ENOTFOUND ? WEIR_ECORRUPT : rc, "%s", path);
}

static int read_whole(struct weir__fs *fs, const char *path, size_t max, struct weir__buf *out,
                      struct weir_error *err)
{
    struct weir__file *f = NULL;
    size_t got = 0;
    uint64_t bytes = 0;
    int rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, err);

    weir__buf_clear(out);
    if (rc == 0) rc = f->ops->size(f, &bytes, err);
    if (rc == 0 && bytes > max) rc = weir__fail(err, WEIR_ECORRUPT, "%s is too long", path);
    if (rc == 0 && !weir__buf_room(out, bytes))
        rc = weir__fail(err, WEIR_ENOMEM, "reading %s: out of memory", path);
    if (rc == 0) rc = f->ops->read(f, out->at, bytes, 0, &got, err);
    if (rc == 0) out->len = got;
    weir__file_close(f);
    return rc == WEIR_ENOTFOUND ? weir__wrap(err, WEIR_ECORRUPT, "a file is missing") : rc;
}

/* The file begins with these bytes; a catalogue that was longer before leaves some behind them. */
static int check_file(struct weir__fs *fs, const char *dir, const char *name,
                      struct weir__bytes want, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__buf got;
    int rc = join(dir, name, path, err);

    weir__buf_init(&got, 4 * (size_t)WEIR__CATALOG_BYTES_MAX);
    if (rc == 0) rc = read_whole(fs, path, 2 * (size_t)WEIR__CATALOG_BYTES_MAX, &got, err);
    if (rc == 0 && (got.len < want.len || memcmp(got.at, want.at, want.len) != 0))
        rc = weir__fail(err, WEIR_ECORRUPT, "%s is not what was backed up", path);
    weir__buf_fini(&got);
    return rc;
}

int weir__backup_check_rest(struct weir__fs *fs, const char *dir, const struct weir__manifest *m,
                            struct weir_error *err)
{
    struct weir__buf catalog;
    int rc;

    weir__buf_init(&catalog, 2 * (size_t)WEIR__CATALOG_BYTES_MAX);
    rc = weir__catalog_encode(&m->catalog, &catalog, err);
    if (rc == 0) rc = check_file(fs, dir, "catalog.0", weir__buf_bytes(&catalog), err);
    if (rc == 0) rc = check_file(fs, dir, "catalog.1", weir__buf_bytes(&catalog), err);
    weir__buf_fini(&catalog);
    if (rc == 0 && m->id[0])
        rc = check_file(fs, dir, "id", weir__bytes_of(m->id, strlen(m->id)), err);
    for (uint32_t i = 0; rc == 0 && i < m->hub_count; i++) {
        rc = check_control(fs, dir, &m->hubs[i], err);
        if (rc == 0) rc = weir__backup_extras_pass(fs, dir, false, NULL, &m->hubs[i], err);
    }
    return rc;
}

int weir__backup_refuse(struct weir__fs *fs, const char *dir, struct weir_error *err)
{
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__file *f = NULL;

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/manifest.%d", dir, i);
        if (fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, NULL) != 0) continue;
        weir__file_close(f);
        return weir__fail(err, WEIR_EINVAL,
                          "this is a backup, and using it would change it: make a folder of it "
                          "with 'weir restore'");
    }
    return 0;
}
