/* upgrade.c - a folder of an older format version becomes one of the newest.
 *
 * Each part does that by itself: a log when it is opened, the catalogue when it is saved. So this
 * opens every log and saves the catalogue. Whether a log has become new is read from its folder
 * before and after: one that opens on a full disk has not. */
#include <stdlib.h>

#include "hub/state.h"
#include "log/peek.h"

struct entry {
    uint64_t id;
    char name[WEIR__HUB_NAME_MAX + 1];
};

struct entries {
    struct entry *at;
    uint32_t count;
};

static int note_hub(const struct weir__catalog_hub *hub, void *user)
{
    struct entries *e = user;
    struct entry *at = realloc(e->at, (e->count + 1) * sizeof *at);

    if (!at) return WEIR_ENOMEM;
    e->at = at;
    at[e->count].id = hub->id;
    memcpy(at[e->count++].name, hub->name, sizeof hub->name);
    return 0;
}

static int read_version(struct weir__namespace *ns, uint64_t id, uint32_t *out,
                        struct weir_error *err)
{
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__log_peek seen = {0};
    int rc;

    weir__namespace_hub_dir(ns->store.dir, id, path);
    rc = weir__log_peek(ns->options.fs, path, &seen, err);
    *out = seen.version;
    return rc;
}

static int upgrade_hub(struct weir__namespace *ns, const struct entry *e, struct weir__upgrade *out,
                       struct weir_error *err)
{
    struct weir__hub *hub = NULL;
    uint32_t before, after;
    int rc = read_version(ns, e->id, &before, err);

    if (weir_error_class(rc) == WEIR_CLASS_RETRY) return rc;
    rc = weir__namespace_use(ns, e->name, &hub, err); /* what is damaged is said by its opening */
    if (rc != 0) return rc;
    weir__hub_release(hub);
    rc = read_version(ns, e->id, &after, err);
    if (rc != 0) return rc;
    if (after != WEIR__LOG_FORMAT)
        return weir__fail(err, WEIR_ENOSPACE,
                          "hub '%.64s' is still of format version %u: the disk "
                          "is full",
                          e->name, after);
    out->hubs_upgraded += before != after;
    return 0;
}

static int upgrade_catalog(struct weir__namespace *ns, bool *out_upgraded, struct weir_error *err)
{
    struct weir__catalog next;
    int rc = weir__change_begin(ns, &next, err);

    if (rc != 0) return rc;
    if (ns->catalog.version != WEIR__CATALOG_VERSION) {
        rc = weir__change_save(ns, &next, err);
        *out_upgraded = rc == 0;
    }
    weir__change_end(ns, &next);
    return rc;
}

int weir__namespace_upgrade(struct weir__namespace *ns, struct weir__upgrade *out,
                            struct weir_error *err)
{
    struct entries e = {0};
    int first = weir__namespace_hub_each(ns, note_hub, &e);

    *out = (struct weir__upgrade){0};
    if (first != 0) weir__fail(err, first, "no memory for the names of the hubs");
    for (uint32_t i = 0; first != WEIR_ENOMEM && i < e.count; i++) {
        int rc = upgrade_hub(ns, &e.at[i], out, first ? NULL : err);

        out->hubs++;
        out->hubs_failed += rc != 0;
        if (first == 0) first = rc;
    }
    free(e.at);
    return first == 0 ? upgrade_catalog(ns, &out->catalog_upgraded, err) : first;
}
