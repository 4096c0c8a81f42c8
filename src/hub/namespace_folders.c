/* namespace_folders.c - the hub folders that the catalogue does not know.
 *
 * What the catalogue does not know is not for that reason worthless: the catalogue may be an old
 * one. So a folder goes only when it is recorded as deleted, or when it is proven that no event was
 * ever in it (a creation that was cut); never when the catalogue may lack changes. Every other one
 * stays where it is, an orphan: it is told at each opening, its id is never given to another hub,
 * and weir__namespace_adopt makes a hub of it again. */
#include <inttypes.h>
#include <stdlib.h>

#include "hub/state.h"
#include "log/peek.h"

#define STRANGERS_MAX 4096 /* looked at by one opening; the rest waits for the next */

/* The id in a hub folder's name; 0 when it is not one of ours. */
static uint64_t folder_id(const char *name)
{
    const size_t prefix = sizeof WEIR__HUB_PREFIX - 1;
    uint64_t id = 0;

    if (strncmp(name, WEIR__HUB_PREFIX, prefix) != 0) return 0;
    name += prefix;
    if (strlen(name) != WEIR__HUB_ID_DIGITS) return 0;
    for (; *name; name++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, *name);
        if (!at) return 0;
        id = id << 4 | (uint64_t)(at - digits);
    }
    return id <= WEIR__HUB_ID_MAX ? id : 0;
}

/* Folders that no hub owns, and the highest id of any. */
struct strangers {
    const struct weir__catalog *catalog;
    uint64_t *ids;
    size_t count;
    uint64_t id_max;
};

static int note_folder(const char *name, void *user)
{
    struct strangers *s = user;
    uint64_t id = folder_id(name), *ids;

    if (id > s->id_max) s->id_max = id;
    if (id == 0 || s->count == STRANGERS_MAX) return 0;
    for (uint32_t i = 0; i < s->catalog->hub_count; i++)
        if (s->catalog->hubs[i].id == id) return 0;
    ids = realloc(s->ids, (s->count + 1) * sizeof *ids);
    if (!ids) return WEIR_ENOMEM;
    s->ids = ids;
    ids[s->count++] = id;
    return 0;
}

static int by_id(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

static int list_strangers(struct weir__fs *fs, const char *dir, const struct weir__catalog *catalog,
                          struct strangers *out, struct weir_error *err)
{
    int rc;

    *out = (struct strangers){.catalog = catalog};
    rc = fs->ops->list(fs, dir, note_folder, out, err);
    if (out->count) qsort(out->ids, out->count, sizeof out->ids[0], by_id);
    return rc == WEIR_ENOMEM ? weir__fail(err, rc, "out of memory for a list of folders") : rc;
}

int weir__folders_any(struct weir__namespace *ns, bool *out, struct weir_error *err)
{
    struct strangers s;
    int rc = list_strangers(ns->options.fs, ns->store.dir, &ns->catalog, &s, err);

    *out = s.count > 0;
    free(s.ids);
    return rc;
}

/* ---- removing ---- */

int weir__folders_remove(struct weir__namespace *ns, uint64_t id, struct weir_error *err)
{
    struct weir__file *folder = ns->held.folder;
    char path[WEIR__HUB_PATH_BYTES];
    int rc;

    weir__namespace_hub_dir(ns->store.dir, id, path);
    rc = weir__log_destroy(ns->options.fs, path, err);
    return rc == 0 ? folder->ops->sync(folder, err) : rc;
}

static void remove_leftover(struct weir__namespace *ns, uint64_t id, const char *path)
{
    struct weir_error err = {0};

    if (weir__folders_remove(ns, id, &err) == 0) {
        weir__log_line(&ns->options.logger, WEIR__INFO, "hub", "removed %s, left over", path);
        weir__catalog_drop_removed(&ns->catalog, id);
    } else {
        weir__log_line(&ns->options.logger, WEIR__WARN, "hub", "removing what is left over: %s",
                       err.text);
    }
}

/* ---- orphans ---- */

static void tell_orphan(struct weir__namespace *ns, const struct weir__orphan *o, const char *path)
{
    const char *what = o->partitions ? "may have events" : "cannot be read";

    weir__log_line(&ns->options.logger, WEIR__WARN, "hub",
                   "orphan %s: no hub has this folder, and it %s: it is kept; 'weir hub adopt "
                   "%" PRIx64 " NAME' makes a hub of it again, or remove it by hand",
                   path, what, o->id);
}

static int note_orphan(struct weir__namespace *ns, const struct weir__orphan *orphan,
                       struct weir_error *err)
{
    struct weir__orphan *orphans =
        realloc(ns->orphans, (ns->orphan_count + 1) * sizeof *ns->orphans);

    if (!orphans) return weir__fail(err, WEIR_ENOMEM, "out of memory for a list of folders");
    ns->orphans = orphans;
    orphans[ns->orphan_count++] = *orphan;
    return 0;
}

static int peek(struct weir__fs *fs, const char *dir, uint64_t id, struct weir__orphan *out,
                bool *out_used, struct weir_error *err)
{
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__log_peek seen = {0};
    int rc;

    weir__namespace_hub_dir(dir, id, path);
    rc = weir__log_peek(fs, path, &seen, err);
    *out = (struct weir__orphan){id, seen.hub_id == id ? seen.partitions : 0};
    *out_used = rc != 0 || seen.used;
    return rc;
}

int weir__folders_peek(struct weir__namespace *ns, uint64_t id, struct weir__orphan *out,
                       bool *out_used, struct weir_error *err)
{
    return peek(ns->options.fs, ns->store.dir, id, out, out_used, err);
}

int weir__namespace_find_orphans(struct weir__fs *fs, const char *dir,
                                 const struct weir__catalog *catalog, weir__namespace_orphan_fn fn,
                                 void *user, struct weir_error *err)
{
    struct weir__orphan orphan;
    struct strangers s;
    bool used;
    int rc = list_strangers(fs, dir, catalog, &s, err);

    for (size_t i = 0; rc == 0 && i < s.count; i++) {
        if (weir__catalog_is_removed(catalog, s.ids[i])) continue;
        rc = peek(fs, dir, s.ids[i], &orphan, &used, err);
        if (rc != WEIR_ENOMEM) rc = used ? fn(&orphan, user) : 0;
    }
    free(s.ids);
    return rc;
}

/* Decides about one folder. When the catalogue may be an old one, what could go stays until the next
 * opening: it costs nothing but space. */
static int settle(struct weir__namespace *ns, uint64_t id, struct weir_error *err)
{
    bool deleted = weir__catalog_is_removed(&ns->catalog, id), used = false;
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__orphan orphan;
    int rc = 0;

    weir__namespace_hub_dir(ns->store.dir, id, path);
    if (!deleted) rc = weir__folders_peek(ns, id, &orphan, &used, err);
    if (rc == WEIR_ENOMEM) return rc;
    if (!used && ns->store.stale) {
        weir__log_line(&ns->options.logger, WEIR__INFO, "hub", "left over, kept for now: %s", path);
        return 0;
    }
    if (!used) {
        remove_leftover(ns, id, path);
        return 0;
    }
    tell_orphan(ns, &orphan, path);
    return note_orphan(ns, &orphan, err);
}

/* Forgets what was recorded as deleted and is gone. */
static void forget_gone(struct weir__namespace *ns, const struct strangers *s)
{
    struct weir__file *folder = ns->held.folder;

    if (ns->catalog.removed_count == 0 || folder->ops->sync(folder, NULL) != 0) return;
    for (uint32_t i = ns->catalog.removed_count; i-- > 0;) {
        uint64_t id = ns->catalog.removed[i];
        bool there = s->count == STRANGERS_MAX;
        for (size_t k = 0; k < s->count && !there; k++) there = s->ids[k] == id;
        if (!there) weir__catalog_drop_removed(&ns->catalog, id);
    }
}

int weir__folders_settle(struct weir__namespace *ns, struct weir_error *err)
{
    struct strangers s;
    int rc = list_strangers(ns->options.fs, ns->store.dir, &ns->catalog, &s, err);

    if (rc == 0 && s.id_max >= ns->catalog.next_hub_id) ns->catalog.next_hub_id = s.id_max + 1;
    if (rc == 0) forget_gone(ns, &s);
    for (size_t i = 0; rc == 0 && i < s.count; i++) rc = settle(ns, s.ids[i], err);
    free(s.ids);
    return rc;
}

int weir__namespace_orphan_each(struct weir__namespace *ns, weir__namespace_orphan_fn fn,
                                void *user)
{
    int rc = 0;

    weir__mutex_lock(&ns->change);
    for (size_t i = 0; rc == 0 && i < ns->orphan_count; i++) rc = fn(&ns->orphans[i], user);
    weir__mutex_unlock(&ns->change);
    return rc;
}

/* ---- deleted while we were there ---- */

/* Without memory it is forgotten by the next opening instead. */
void weir__folders_buried(struct weir__namespace *ns, uint64_t id)
{
    uint64_t *ids;

    weir__mutex_lock(&ns->lock);
    ids = realloc(ns->buried, (ns->buried_count + 1) * sizeof *ids);
    if (ids) {
        ns->buried = ids;
        ids[ns->buried_count++] = id;
    }
    weir__mutex_unlock(&ns->lock);
}

void weir__folders_forget(struct weir__namespace *ns, struct weir__catalog *next)
{
    weir__mutex_lock(&ns->lock);
    for (size_t i = 0; i < ns->buried_count; i++) weir__catalog_drop_removed(next, ns->buried[i]);
    weir__mutex_unlock(&ns->lock);
}

/* Call under both locks, when the catalogue is the new one. */
void weir__folders_forgotten(struct weir__namespace *ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < ns->buried_count; i++)
        if (weir__catalog_is_removed(&ns->catalog, ns->buried[i]))
            ns->buried[kept++] = ns->buried[i];
    ns->buried_count = kept;
}
