#include "hub/namespace.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/backup.h"
#include "hub/state.h"
#include "log/pool.h"

#define BATCH_BYTES_CEILING (19u << 20)

int weir__change_begin(struct weir__namespace *ns, struct weir__catalog *next,
                       struct weir_error *err)
{
    int rc = 0;

    weir__catalog_init(next);
    weir__mutex_lock(&ns->change);
    if (ns->stopped)
        rc = weir__fail(err, WEIR_EFAILED,
                        "an earlier change of the catalogue has an unknown outcome: reopen the "
                        "folder before the next one");
    if (rc == 0) rc = weir__catalog_copy(next, &ns->catalog, err);
    if (rc != 0)
        weir__mutex_unlock(&ns->change);
    else
        next->generation++;
    if (rc == 0) weir__folders_forget(ns, next);
    return rc;
}

int weir__change_save(struct weir__namespace *ns, struct weir__catalog *next,
                      struct weir_error *err)
{
    struct weir__catalog old;
    int rc = weir__catalog_save(&ns->store, next, err);

    if (rc == WEIR_EUNKNOWN) ns->stopped = true;
    if (rc != 0) return rc;
    weir__mutex_lock(&ns->lock);
    old = ns->catalog;
    ns->catalog = *next;
    ns->catalog.version = WEIR__CATALOG_VERSION;
    weir__folders_forgotten(ns);
    weir__mutex_unlock(&ns->lock);
    if (ns->rules_changed && weir__rules_lost(&old, &ns->catalog))
        ns->rules_changed(ns->rules_user);
    *next = old; /* freed by change_end */
    return 0;
}

void weir__change_end(struct weir__namespace *ns, struct weir__catalog *next)
{
    weir__mutex_unlock(&ns->change);
    weir__catalog_fini(next);
}

int weir__namespace_space(struct weir__namespace *ns, struct weir__fs_space *out,
                          struct weir_error *err)
{
    return ns->options.fs->ops->space(ns->options.fs, ns->store.dir, out, err);
}

/* ---- opening ---- */

/* A first catalogue, in a folder that holds no hubs. Where there are hubs, one was lost. */
static int start_catalog(struct weir__namespace *ns, struct weir_error *err)
{
    struct weir_error why = {0};
    bool any;
    int rc = weir__folders_any(ns, &any, &why);

    if (rc != 0) {
        if (err) *err = why;
        return rc;
    }
    if (any) return weir__wrap(err, WEIR_ECORRUPT, "there are hubs, but");
    if (ns->options.must_exist) return WEIR_ENOTFOUND;
    return weir__catalog_save(&ns->store, &ns->catalog, err);
}

static int load_catalog(struct weir__namespace *ns, struct weir_error *err)
{
    struct weir_error why = {0};
    int rc = weir__catalog_load(&ns->store, &ns->catalog, err);

    if (rc == WEIR_ENOTFOUND) rc = start_catalog(ns, err);
    if (rc == 0 && weir__catalog_heal(&ns->store, &ns->catalog, &why) != 0)
        weir__log_line(&ns->options.logger, WEIR__WARN, "hub", "%s", why.text);
    return rc;
}

static int make_hubs(struct weir__namespace *ns, struct weir_error *err)
{
    struct weir__hub **end = &ns->hubs;

    for (uint32_t i = 0; i < ns->catalog.hub_count; i++) {
        int rc = weir__hub_new(end, ns, &ns->catalog.hubs[i], err);
        if (rc != 0) return rc;
        end = &(*end)->next;
    }
    return 0;
}

/* Makes the folder durably when it is not there. */
static int make_folder(struct weir__fs *fs, const char *dir, struct weir_error *err)
{
    char parent[WEIR__CATALOG_DIR_MAX + 1];
    size_t len = strlen(dir);
    int rc = fs->ops->make_dir(fs, dir, err);

    if (rc == WEIR_EEXIST) return 0;
    if (rc != 0) return rc;
    while (len > 0 && dir[len - 1] == '/') len--;
    while (len > 0 && dir[len - 1] != '/') len--;
    memcpy(parent, dir, len);
    parent[len] = '\0';
    return fs->ops->sync_dir(fs, len ? parent : ".", err);
}

/* Looks before anything is made, so that a wrong path does not even get a lock file. A folder that
 * lost its catalogue is none of these: loading says what is missing. */
static int check_exists(struct weir__namespace *ns, struct weir_error *err)
{
    struct weir__catalog_store quiet = ns->store;
    struct weir__catalog seen;
    struct weir_error why;
    bool any = false;
    int rc;

    quiet.logger = (struct weir__logger){0};
    rc = weir__catalog_load(&quiet, &seen, err);
    weir__catalog_fini(&seen);
    if (rc == WEIR_ENOTFOUND && weir__folders_any(ns, &any, &why) == 0 && any) return 0;
    return rc == WEIR_ENOTFOUND ? rc : 0;
}

static int take_folder(struct weir__namespace *ns, struct weir_error *err)
{
    struct weir__fs *fs = ns->options.fs;
    char path[WEIR__HUB_PATH_BYTES];
    int rc = ns->options.must_exist ? check_exists(ns, err) : make_folder(fs, ns->store.dir, err);

    if (rc == 0) rc = weir__backup_refuse(fs, ns->store.dir, err);
    if (rc != 0) return rc;
    rc = weir__namespace_lock(&ns->held, fs, ns->store.dir, err);
    if (rc != 0) return rc;
    snprintf(path, sizeof path, "%s/" WEIR__NAMESPACE_SERVING, ns->store.dir);
    fs->ops->remove(fs, path, NULL); /* hardly ever there */
    return 0;
}

static int set_options(struct weir__namespace *ns, const struct weir__namespace_options *given,
                       struct weir_error *err)
{
    struct weir__namespace_options *o = &ns->options;

    if (given) *o = *given;
    if (!o->fs) o->fs = weir__fs_posix();
    if (!o->clock.wall_ms) o->clock = weir__clock_system();
    if (!o->rand.fill) o->rand = weir__rand_system();
    if (!o->batch_bytes_max) o->batch_bytes_max = WEIR__BATCH_BYTES_MAX;
    if (o->batch_bytes_max > BATCH_BYTES_CEILING)
        return weir__fail(err, WEIR_EINVAL, "batch_bytes_max is %u, the most is %u",
                          o->batch_bytes_max, BATCH_BYTES_CEILING);
    return 0;
}

int weir__namespace_open(struct weir__namespace **out, const char *dir,
                         const struct weir__namespace_options *options, struct weir_error *err)
{
    struct weir__namespace *ns = calloc(1, sizeof *ns);
    int rc;

    *out = NULL;
    if (!ns) return weir__fail(err, WEIR_ENOMEM, "out of memory for a namespace");
    weir__mutex_init(&ns->change);
    weir__mutex_init(&ns->lock);
    weir__catalog_init(&ns->catalog);
    rc = set_options(ns, options, err);
    if (rc == 0)
        rc = weir__catalog_store_init(&ns->store, ns->options.fs, dir, &ns->options.logger, err);
    if (rc == 0) rc = take_folder(ns, err);
    if (rc == 0) rc = load_catalog(ns, err);
    if (rc == 0) rc = weir__folders_settle(ns, err);
    if (rc == 0) rc = make_hubs(ns, err);
    if (rc != 0) {
        weir__namespace_close(ns, NULL);
        return weir__wrap(err, rc, "opening %.256s", dir);
    }
    *out = ns;
    return 0;
}

int weir__namespace_close(struct weir__namespace *ns, struct weir_error *err)
{
    int first = 0;

    if (!ns) return 0;
    assert(ns->users == 0);
    while (ns->hubs) {
        struct weir__hub *hub = ns->hubs;
        int rc = weir__log_close(hub->log, first ? NULL : err);
        if (rc != 0 && first == 0) first = weir__wrap(err, rc, "closing hub '%.64s'", hub->name);
        ns->hubs = hub->next;
        weir__hub_free(hub);
    }
    weir__log_pool_free(ns->pool);
    weir__namespace_unlock(&ns->held);
    weir__catalog_fini(&ns->catalog);
    free(ns->orphans);
    free(ns->buried);
    weir__mutex_fini(&ns->lock);
    weir__mutex_fini(&ns->change);
    free(ns);
    return first;
}

/* ---- looking ---- */

int weir__namespace_hub_each(struct weir__namespace *ns, weir__namespace_hub_fn fn, void *user)
{
    int rc = 0;

    weir__mutex_lock(&ns->change);
    for (uint32_t i = 0; rc == 0 && i < ns->catalog.hub_count; i++)
        rc = fn(&ns->catalog.hubs[i], user);
    weir__mutex_unlock(&ns->change);
    return rc;
}

int weir__namespace_hub_show(struct weir__namespace *ns, const char *name,
                             weir__namespace_hub_fn fn, void *user, struct weir_error *err)
{
    const struct weir__catalog_hub *hub;
    int rc;

    weir__mutex_lock(&ns->change);
    hub = weir__catalog_hub(&ns->catalog, name);
    rc = hub ? fn(hub, user) : weir__hub_missing(name, err);
    weir__mutex_unlock(&ns->change);
    return rc;
}

int weir__namespace_step(struct weir__namespace *ns, struct weir_error *err)
{
    int first = 0;

    weir__mutex_lock(&ns->change);
    for (struct weir__hub *hub = ns->hubs; hub; hub = hub->next) {
        int rc = hub->log ? weir__hub_step(hub, first ? NULL : err) : 0;
        if (first == 0) first = rc;
    }
    weir__mutex_unlock(&ns->change);
    return first;
}
