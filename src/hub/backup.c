/* backup.c - the run of a backup.
 *
 *   1  the moments of all hubs, one right after another; when the catalogue changed meanwhile, again
 *   2  hub by hub, what the backup does not have is copied and synced
 *   3  the manifest: one copy, synced. From here on this is the backup
 *   4  what follows from it (control files, catalogue, id), then old files go
 *   5  the manifest's other copy
 *
 * A hub that cannot be read at all must not keep the others from being backed up: it stays in the
 * backup as it was there before, or is left out, and both are told. */
#include "hub/backup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/backup_manifest.h"
#include "hub/namespace.h"
#include "hub/state.h"

#define MOMENTS_TRIES 20
#define RUN_TRIES 5
#define CATALOG_TRIES 50 /* a writer can be at one copy while we read the other */
#define ID_TRIES 50

struct run {
    struct weir__backup_options options; /* with the defaults filled in */
    const char *dir;
    struct weir__backup_folder to;
    struct weir__catalog catalog;
    struct weir__backup_moment *moments; /* one per hub; empty: it cannot be read, */
    struct weir_error *whys;             /* and why */
    uint32_t moment_count;
    uint64_t orphans;      /* of the folder, */
    uint64_t orphan_known; /* and the id of one that the backup has; 0: it has none */
    struct weir__manifest next, pool;
    struct weir__backup_result *result;
};

static int64_t now_ms(const struct run *r)
{
    return r->options.clock.wall_ms(r->options.clock.self);
}

/* ---- reading the folder ---- */

/* A catalogue that may be an old one does not know the newest hubs: the backup would lose them. */
static int try_catalog(struct weir__catalog_store *store, struct weir__catalog *out,
                       struct weir_error *err)
{
    int rc = weir__catalog_load(store, out, err);

    if (rc != 0 || !store->stale) return rc;
    weir__catalog_fini(out);
    weir__catalog_init(out);
    return weir__fail(err, WEIR_ECORRUPT,
                      "a copy of the catalogue in %s is bad, and the other may be older",
                      store->dir);
}

static int load_catalog(struct run *r, struct weir__catalog *out, struct weir_error *err)
{
    struct weir__catalog_store store;
    int rc = weir__catalog_store_init(&store, r->options.fs, r->dir, NULL, err);

    weir__catalog_init(out);
    for (int i = 0; rc == 0 && i < CATALOG_TRIES; i++) {
        rc = try_catalog(&store, out, err);
        if ((rc != WEIR_ECORRUPT && rc != WEIR_ENOTFOUND) || i + 1 == CATALOG_TRIES) break;
        rc = 0;
    }
    return rc;
}

/* Folders with events that the catalogue does not know are not backed up. */
static int note_orphan(const struct weir__orphan *orphan, void *user)
{
    struct run *r = user;

    r->orphans++;
    if (weir__manifest_hub(&r->to.manifest, orphan->id)) r->orphan_known = orphan->id;
    return 0;
}

static int find_orphans(struct run *r, struct weir_error *err)
{
    r->orphans = r->orphan_known = 0;
    return weir__namespace_find_orphans(r->options.fs, r->dir, &r->catalog, note_orphan, r, err);
}

/* Empty when the folder has none yet. */
static int load_id(struct run *r, char out[WEIR__MANIFEST_ID_BYTES], struct weir_error *err)
{
    struct weir__fs *fs = r->options.fs;
    struct weir__file *f = NULL;
    char path[WEIR__BACKUP_PATH_BYTES];
    size_t got = 0;
    int rc;

    memset(out, 0, WEIR__MANIFEST_ID_BYTES);
    snprintf(path, sizeof path, "%s/id", r->dir);
    rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, err);
    if (rc == WEIR_ENOTFOUND) return 0;
    for (int i = 0; rc == 0 && i < ID_TRIES && got < WEIR__MANIFEST_ID_BYTES - 1; i++)
        rc = f->ops->read(f, out, WEIR__MANIFEST_ID_BYTES - 1, 0, &got, err);
    weir__file_close(f);
    if (strspn(out, "0123456789abcdef") != WEIR__MANIFEST_ID_BYTES - 1) out[0] = '\0';
    return rc;
}

static void forget_moments(struct run *r)
{
    for (uint32_t i = 0; i < r->moment_count; i++) weir__backup_moment_fini(&r->moments[i]);
    free(r->moments);
    free(r->whys);
    r->moments = NULL;
    r->whys = NULL;
    r->moment_count = 0;
}

static struct weir__backup_log log_of(const struct run *r, uint32_t i,
                                      char path[WEIR__HUB_PATH_BYTES])
{
    uint64_t id = r->catalog.hubs[i].id;

    weir__namespace_hub_dir(r->dir, id, path);
    return (struct weir__backup_log){r->options.fs, path, id};
}

static bool is_damage(int rc)
{
    return rc == WEIR_ECORRUPT || rc == WEIR_EIO || rc == WEIR_ENOTFOUND || rc == WEIR_EINVAL ||
           rc == WEIR_EBUSY;
}

/* Its moment stays empty when the hub cannot be read. */
static int take_moment(struct run *r, uint32_t i, struct weir_error *err)
{
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__backup_log log = log_of(r, i, path);
    int rc = weir__backup_moment_take(&log, &r->moments[i], &r->whys[i]);

    if (rc != 0 && !is_damage(rc) && err) *err = r->whys[i];
    return is_damage(rc) ? 0 : rc;
}

static int take_moments(struct run *r, bool *out_same, struct weir_error *err)
{
    struct weir__catalog after;
    int64_t began;
    int rc = load_catalog(r, &r->catalog, err);

    if (rc != 0) return rc;
    began = now_ms(r);
    r->moments = calloc(r->catalog.hub_count + 1, sizeof *r->moments);
    r->whys = calloc(r->catalog.hub_count + 1, sizeof *r->whys);
    if (!r->moments || !r->whys) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    r->moment_count = r->catalog.hub_count;
    for (uint32_t i = 0; rc == 0 && i < r->moment_count; i++) rc = take_moment(r, i, err);
    r->next.moment_ms = now_ms(r);
    r->result->moment_ms = r->next.moment_ms;
    r->result->spread_ms = r->next.moment_ms - began;
    if (rc == 0) rc = find_orphans(r, err); /* a hub that was made meanwhile looks like one */
    if (rc == 0) rc = load_catalog(r, &after, err);
    if (rc != 0) return rc;
    *out_same = after.generation == r->catalog.generation;
    weir__catalog_fini(&after);
    return 0;
}

static int settle_moment(struct run *r, uint32_t i, struct weir_error *err)
{
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__backup_log log = log_of(r, i, path);
    int rc = weir__backup_moment_settle(&log, &r->moments[i], &r->whys[i]);

    if (is_damage(rc)) weir__backup_moment_fini(&r->moments[i]);
    if (rc != 0 && !is_damage(rc) && err) *err = r->whys[i];
    return is_damage(rc) ? 0 : rc;
}

static int settle_moments(struct run *r, struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < r->moment_count; i++)
        if (r->moments[i].heads) rc = settle_moment(r, i, err);
    return rc;
}

static int look(struct run *r, struct weir_error *err)
{
    bool same = false;
    int rc = 0;

    for (int i = 0; rc == 0 && !same && i < MOMENTS_TRIES; i++) {
        forget_moments(r);
        weir__catalog_fini(&r->catalog);
        rc = take_moments(r, &same, err);
    }
    if (rc == 0 && !same)
        rc = weir__fail(err, WEIR_EBUSY, "hubs of %s come and go too fast", r->dir);
    if (rc == 0) rc = load_id(r, r->next.id, err);
    return rc == 0 ? settle_moments(r, err) : rc;
}

/* ---- copying ---- */

/* A backup of one folder must not become one of another: what it has would be removed. */
static int check_source(const struct run *r, struct weir_error *err)
{
    const struct weir__manifest *former = &r->to.manifest;
    bool other = former->id[0] && r->next.id[0] && strcmp(former->id, r->next.id) != 0;

    for (uint32_t i = 0; i < r->moment_count; i++) {
        const struct weir__manifest_hub *hub = weir__manifest_hub(former, r->catalog.hubs[i].id);
        const struct weir__control *now = &r->moments[i].control;

        if (hub && r->moments[i].heads && hub->source_version > 1 && now->version > 1)
            other |= hub->control.secret != now->secret;
    }
    if (!other) return 0;
    return weir__fail(err, WEIR_EINVAL,
                      "%s is a backup of another folder than %s; choose a new one", r->to.dir,
                      r->dir);
}

/* The backup may be the last place that knows the orphan's name and groups: it must not go there as
 * if the hub had been deleted. */
static int check_orphans(struct run *r, struct weir_error *err)
{
    if (r->orphan_known)
        return weir__fail(err, WEIR_EINVAL,
                          "hub-%016" PRIx64 " is an orphan in %s and a hub of the backup, which "
                          "would lose it: adopt it ('weir hub adopt %" PRIx64
                          " NAME'), remove it by hand, or choose a new folder",
                          r->orphan_known, r->dir, r->orphan_known);
    r->result->left_out += r->orphans;
    if (r->orphans > 0)
        weir__log_line(&r->options.logger, WEIR__ERROR, "backup",
                       "orphans of %s are not in the backup; 'weir hub list' shows them", r->dir);
    return 0;
}

/* A hub that cannot be backed up: as the backup has it, or for now without segments. The names that it
 * has used are not given again. */
static int carry_over(struct run *r, uint32_t i, struct weir__manifest_hub *to,
                      struct weir_error *err)
{
    const struct weir__catalog_hub *hub = &r->catalog.hubs[i];
    const struct weir__manifest_hub *former = weir__manifest_hub(&r->to.manifest, hub->id);
    uint64_t next_name = to->next_name;
    int rc = 0;

    r->result->left_out++;
    weir__log_line(&r->options.logger, WEIR__ERROR, "backup", "hub %s cannot be read: %s",
                   hub->name,
                   former ? "the backup keeps what it had of it" : "it is not in the backup");
    weir__log_line(&r->options.logger, WEIR__ERROR, "backup", "hub %s: %s", hub->name,
                   r->whys[i].text);
    weir__manifest_hub_fini(to);
    to->id = hub->id;
    if (former) rc = weir__manifest_hub_copy(to, former, err);
    if (to->next_name < next_name) to->next_name = next_name;
    return rc;
}

/* Hubs of which there is nothing. */
static void drop_empty(struct weir__manifest *m)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < m->hub_count; i++) {
        if (m->hubs[i].segment_count == 0)
            weir__manifest_hub_fini(&m->hubs[i]);
        else
            m->hubs[kept++] = m->hubs[i];
    }
    m->hub_count = kept;
}

static void make_job(struct run *r, uint32_t i, struct weir__backup_job *out)
{
    const struct weir__catalog_hub *hub = &r->catalog.hubs[i];

    *out = (struct weir__backup_job){.options = &r->options,
                                     .hub_name = hub->name,
                                     .to = r->to.dir,
                                     .former = weir__manifest_hub(&r->to.manifest, hub->id),
                                     .pool = weir__manifest_hub(&r->pool, hub->id),
                                     .result = r->result};
}

/* The small files of all hubs come first, close to their moments. */
static int begin_hub(struct run *r, uint32_t i, struct weir_error *err)
{
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__backup_job job;
    int rc;

    if (!r->moments[i].heads) return carry_over(r, i, &r->next.hubs[r->next.hub_count++], err);
    make_job(r, i, &job);
    job.log = log_of(r, i, path);
    rc = weir__backup_hub_begin(&job, &r->moments[i], &r->next.hubs[r->next.hub_count++], err);
    return rc == 0 ? 0 : weir__wrap(err, rc, "hub '%s'", r->catalog.hubs[i].name);
}

static int save_hub(struct run *r, uint32_t i, struct weir_error *err)
{
    struct weir__manifest_hub *hub = weir__manifest_hub(&r->next, r->catalog.hubs[i].id);
    struct weir__backup_result before = *r->result;
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__backup_job job;
    struct weir_error why;
    int rc;

    if (!r->moments[i].heads) return 0;
    make_job(r, i, &job);
    job.log = log_of(r, i, path);
    rc = weir__backup_hub(&job, &r->moments[i], hub, &why);
    if (rc != 0 && err) *err = why;
    if (job.at_source && rc != WEIR_EBUSY && is_damage(rc)) {
        *r->result = before;
        r->whys[i] = why;
        return carry_over(r, i, hub, err);
    }
    return rc == 0 ? 0 : weir__wrap(err, rc, "hub '%s'", r->catalog.hubs[i].name);
}

static int save_hubs(struct run *r, struct weir_error *err)
{
    int rc = 0;

    r->next.hubs = calloc(r->moment_count + 1, sizeof *r->next.hubs);
    if (!r->next.hubs) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < r->moment_count; i++) rc = begin_hub(r, i, err);
    for (uint32_t i = 0; rc == 0 && i < r->moment_count; i++) rc = save_hub(r, i, err);
    return rc;
}

/* The catalogue of the moment, without hubs of which there is nothing. */
static int save_catalog(struct run *r, struct weir_error *err)
{
    int rc = weir__catalog_copy(&r->next.catalog, &r->catalog, err);

    drop_empty(&r->next);
    for (uint32_t i = r->catalog.hub_count; rc == 0 && i > 0; i--)
        if (!weir__manifest_hub(&r->next, r->catalog.hubs[i - 1].id))
            weir__catalog_remove_hub(&r->next.catalog, &r->next.catalog.hubs[i - 1]);
    return rc;
}

/* Of an attempt before; what it copied stays copied. */
static void forget_counts(struct weir__backup_result *result)
{
    result->segments_reused = result->bytes_reused = 0;
    result->damaged = result->left_out = result->kept_good = 0;
}

static int attempt(struct run *r, struct weir_error *err)
{
    int rc;

    weir__manifest_fini(&r->pool);
    r->pool = r->next;
    weir__manifest_init(&r->next);
    r->next.generation = r->to.manifest.generation + 1;
    r->next.began_ms = now_ms(r);
    forget_counts(r->result);
    rc = look(r, err);
    if (rc == 0) rc = check_source(r, err);
    if (rc == 0) rc = check_orphans(r, err);
    if (rc == 0) rc = save_hubs(r, err);
    if (rc == 0) rc = save_catalog(r, err);
    return rc;
}

/* ---- the end ---- */

static int commit(struct run *r, struct weir_error *err)
{
    struct weir__fs *fs = r->options.fs;
    const struct weir__manifest *former = r->to.unfinished ? NULL : &r->to.manifest;
    int rc = fs->ops->sync_dir(fs, r->to.dir, err);

    if (rc == 0) rc = weir__manifest_write(fs, r->to.dir, &r->next, false, err);
    if (rc != 0) return rc;
    r->to.made = false; /* it is a backup now, whatever happens */
    rc = weir__backup_write_rest(fs, r->to.dir, &r->next, former, true, err);
    if (rc == 0)
        rc = weir__backup_sweep(fs, r->to.dir, &r->next, &r->result->segments_removed, err);
    if (rc == 0) rc = weir__manifest_write(fs, r->to.dir, &r->next, true, err);
    weir__manifest_fini(&r->to.manifest); /* an error leaves the folder to the new one */
    r->to.manifest = r->next;
    weir__manifest_init(&r->next);
    return rc;
}

/* Before anything is made. A folder with hubs and without a catalogue has lost it. */
static int check_folder(struct run *r, struct weir_error *err)
{
    struct weir__catalog seen;
    struct weir_error why;
    int rc = load_catalog(r, &seen, err);

    weir__catalog_fini(&seen);
    if (rc == WEIR_ENOTFOUND && find_orphans(r, &why) == 0 && r->orphans > 0)
        return weir__wrap(err, WEIR_ECORRUPT, "there are hubs, but");
    return rc == 0 ? weir__backup_refuse(r->options.fs, r->dir, err) : rc;
}

int weir__backup_run(const char *dir, const char *to, const struct weir__backup_options *options,
                     struct weir__backup_result *out, struct weir_error *err)
{
    struct run r = {.options = *options, .dir = dir, .result = out};
    int rc;

    *out = (struct weir__backup_result){0};
    if (!r.options.fs) r.options.fs = weir__fs_posix();
    if (!r.options.clock.wall_ms) r.options.clock = weir__clock_system();
    if (!r.options.rand.fill) r.options.rand = weir__rand_system();
    weir__catalog_init(&r.catalog);
    weir__manifest_init(&r.next);
    weir__manifest_init(&r.pool);
    rc = check_folder(&r, err);
    if (rc == 0) rc = weir__backup_folder_take(&r.to, r.options.fs, to, err);
    if (rc != 0) return rc;
    rc = WEIR_EBUSY;
    for (int i = 0; rc == WEIR_EBUSY && i < RUN_TRIES; i++) rc = attempt(&r, err);
    if (rc == 0) weir__manifest_sum(&r.next, out);
    if (rc == 0) rc = commit(&r, err);
    forget_moments(&r);
    weir__catalog_fini(&r.catalog);
    weir__manifest_fini(&r.next);
    weir__manifest_fini(&r.pool);
    weir__backup_folder_leave(&r.to, rc != 0 && rc != WEIR_EUNKNOWN);
    return rc;
}
