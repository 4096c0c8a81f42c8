/* admin.c - hubs and groups come and go.
 *
 *   create   folder and log, durable > catalogue, durable > known to users
 *   delete   catalogue, durable, with its id among the deleted > unknown to users, receivers told >
 *            (last use) files removed
 *   update   log grown, durable > catalogue, durable > known to users and to the log
 *   adopt    catalogue, durable > known to users; the folder is there
 *
 * A crash between two steps leaves a folder that was never used, or one that the catalogue calls
 * deleted; the next open of the namespace removes it. */
#include <assert.h>
#include <stdlib.h>

#include "hub/state.h"

#define PRODUCERS_RESERVED 1024 /* ids per save of the catalogue; a restart skips what is left */
#define PRODUCER_ID_MAX ((UINT64_C(1) << 53) - 1)

/* ---- hubs ---- */

static int check_config(const struct weir__hub_config *config, struct weir_error *err)
{
    int rc = weir__name_check(WEIR__NAME_HUB, config->name, err);

    if (rc != 0) return rc;
    if (config->partitions == 0 || config->partitions > WEIR__LOG_PARTITIONS_MAX)
        return weir__fail(err, WEIR_EINVAL, "a hub has 1 to %u partitions, not %u",
                          WEIR__LOG_PARTITIONS_MAX, config->partitions);
    for (uint32_t i = 0; rc == 0 && i < config->group_count; i++)
        rc = weir__name_check(WEIR__NAME_GROUP, config->groups[i], err);
    return rc;
}

/* Adds a group to a catalogue's hub; WEIR_EEXIST when it is there. */
static int add_group(struct weir__catalog_hub *hub, const char *name, struct weir_error *err)
{
    if (weir__catalog_group(hub, name))
        return weir__fail(err, WEIR_EEXIST, "consumer group '%s' exists already", name);
    return weir__catalog_add_group(hub, name, err);
}

static int add_hub(struct weir__catalog *next, const struct weir__hub_config *config,
                   int64_t now_ms, struct weir__catalog_hub **out, struct weir_error *err)
{
    struct weir__catalog_hub *hub;
    int rc;

    if (weir__catalog_hub(next, config->name))
        return weir__fail(err, WEIR_EEXIST, "hub '%s' exists already", config->name);
    if (next->next_hub_id > WEIR__HUB_ID_MAX)
        return weir__fail(err, WEIR_ELIMIT, "every hub id has been used");
    rc = weir__catalog_add_hub(next, &hub, err);
    if (rc != 0) return rc;
    hub->id = next->next_hub_id++;
    hub->partitions = config->partitions;
    hub->created_ms = now_ms;
    hub->retain_ms = config->retain_ms;
    hub->retain_bytes = config->retain_bytes;
    memcpy(hub->name, config->name, strlen(config->name) + 1);
    rc = weir__catalog_add_group(hub, WEIR__GROUP_DEFAULT, err);
    for (uint32_t i = 0; rc == 0 && i < config->group_count; i++)
        if (!weir__name_equal(config->groups[i], WEIR__GROUP_DEFAULT))
            rc = add_group(hub, config->groups[i], err);
    *out = hub;
    return rc;
}

/* When it is sure that a hub was not stored its folder goes again, and in case it cannot go now its
 * id is not used again. When that is unknown the folder stays, for the next open to decide. */
static void drop_folder(struct weir__namespace *ns, uint64_t hub_id, const char *path)
{
    weir__log_destroy(ns->options.fs, path, NULL);
    weir__mutex_lock(&ns->lock);
    ns->catalog.next_hub_id = hub_id + 1;
    weir__mutex_unlock(&ns->lock);
}

/* Makes the folder, then saves. */
static int store_hub(struct weir__namespace *ns, struct weir__catalog *next,
                     const struct weir__catalog_hub *hub, struct weir_error *err)
{
    struct weir__log_options options;
    char path[WEIR__HUB_PATH_BYTES];
    uint64_t id = hub->id;
    int rc;

    weir__hub_log_options(ns, hub, path, &options);
    rc = weir__log_create(&options, err);
    if (rc == 0) rc = weir__change_save(ns, next, err);
    if (rc != 0 && rc != WEIR_EUNKNOWN) drop_folder(ns, id, path);
    return rc;
}

static void list_hub(struct weir__namespace *ns, struct weir__hub *hub)
{
    struct weir__hub **end = &ns->hubs;

    weir__mutex_lock(&ns->lock);
    while (*end) end = &(*end)->next;
    *end = hub;
    weir__mutex_unlock(&ns->lock);
}

int weir__namespace_hub_create(struct weir__namespace *ns, const struct weir__hub_config *config,
                               struct weir_error *err)
{
    int64_t now_ms = ns->options.clock.wall_ms(ns->options.clock.self);
    struct weir__catalog_hub *row = NULL;
    struct weir__hub *hub = NULL;
    struct weir__catalog next;
    int rc = check_config(config, err);

    if (rc == 0) rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    rc = add_hub(&next, config, now_ms, &row, err);
    assert(rc != 0 || row);
    if (rc == 0) rc = weir__hub_new(&hub, ns, row, err);
    if (rc == 0) rc = store_hub(ns, &next, row, err);
    if (rc == 0)
        list_hub(ns, hub);
    else
        weir__hub_free(hub);
    weir__change_end(ns, &next);
    return rc != 0 ? weir__wrap(err, rc, "creating hub '%.64s'", config->name) : 0;
}

/* ---- changing ---- */

static int check_changes(const struct weir__catalog_hub *row, const struct weir__hub_changes *c,
                         struct weir_error *err)
{
    if (!(c->given & WEIR__HUB_PARTITIONS)) return 0;
    if (c->partitions > WEIR__LOG_PARTITIONS_MAX)
        return weir__fail(err, WEIR_EINVAL, "a hub has 1 to %u partitions, not %u",
                          WEIR__LOG_PARTITIONS_MAX, c->partitions);
    if (c->partitions < row->partitions)
        return weir__fail(err, WEIR_EINVAL,
                          "it has %u partitions, which cannot become %u: they can only become more",
                          row->partitions, c->partitions);
    return 0;
}

/* The log first: one with partitions that the catalogue does not know can be opened, and a catalogue
 * with partitions that the log does not have would promise too much. */
static int grow_log(struct weir__hub *hub, uint32_t partitions, struct weir_error *err)
{
    int rc = weir__hub_open_log(hub, err);

    return rc == 0 ? weir__log_grow(hub->log, partitions, err) : rc;
}

static void apply_row(struct weir__catalog_hub *row, const struct weir__hub_changes *c)
{
    if (c->given & WEIR__HUB_PARTITIONS) row->partitions = c->partitions;
    if (c->given & WEIR__HUB_RETAIN_MS) row->retain_ms = c->retain_ms;
    if (c->given & WEIR__HUB_RETAIN_BYTES) row->retain_bytes = c->retain_bytes;
}

static int update(struct weir__namespace *ns, struct weir__catalog *next, struct weir__hub *hub,
                  const struct weir__hub_changes *c, struct weir_error *err)
{
    struct weir__catalog_hub *row = weir__catalog_hub(next, hub->name), now;
    bool grows = c->given & WEIR__HUB_PARTITIONS && c->partitions > row->partitions;
    int rc = check_changes(row, c, err);

    if (rc == 0 && grows) rc = grow_log(hub, c->partitions, err);
    if (rc != 0) return rc;
    apply_row(row, c);
    now = *row;
    rc = weir__change_save(ns, next, err);
    if (rc != 0) return rc;
    atomic_store_explicit(&hub->partitions, now.partitions, memory_order_release);
    if (hub->log) weir__log_set_retention(hub->log, now.retain_ms, now.retain_bytes);
    return 0;
}

int weir__namespace_hub_update(struct weir__namespace *ns, const char *name,
                               const struct weir__hub_changes *changes, struct weir_error *err)
{
    struct weir__catalog next;
    struct weir__hub *hub;
    int rc = weir__change_begin(ns, &next, err);

    if (rc != 0) return rc;
    weir__mutex_lock(&ns->lock);
    hub = weir__namespace_find(ns, name); /* it stays: nothing is deleted under `change` */
    weir__mutex_unlock(&ns->lock);
    rc = hub ? update(ns, &next, hub, changes, err) : weir__hub_missing(name, err);
    weir__change_end(ns, &next);
    return rc != 0 ? weir__wrap(err, rc, "changing hub '%.64s'", name) : 0;
}

/* ---- orphans ---- */

/* The producers that the hub knew before may still send: a new one must not get one of their ids. */
#define ADOPTED_PRODUCERS (UINT64_C(1) << 40)

static struct weir__orphan *find_orphan(struct weir__namespace *ns, uint64_t id)
{
    for (size_t i = 0; i < ns->orphan_count; i++)
        if (ns->orphans[i].id == id) return &ns->orphans[i];
    return NULL;
}

static int check_orphan(struct weir__namespace *ns, uint64_t id, struct weir__orphan *out,
                        struct weir_error *err)
{
    bool used;
    int rc;

    if (!find_orphan(ns, id))
        return weir__fail(err, WEIR_ENOTFOUND, "there is no orphan " WEIR__HUB_PREFIX "%016llx",
                          (unsigned long long)id);
    rc = weir__folders_peek(ns, id, out, &used, err);
    if (rc == 0 && out->partitions == 0)
        rc = weir__fail(err, WEIR_ECORRUPT,
                        WEIR__HUB_PREFIX "%016llx: its control file cannot be read, or is of "
                                         "another hub",
                        (unsigned long long)id);
    return rc;
}

static int add_orphan(struct weir__catalog *next, const struct weir__orphan *orphan,
                      const char *name, int64_t now_ms, struct weir__catalog_hub **out,
                      struct weir_error *err)
{
    const struct weir__hub_config config = {.name = name,
                                            .partitions = orphan->partitions,
                                            .retain_ms = -1};
    uint64_t next_id = next->next_hub_id;
    int rc = add_hub(next, &config, now_ms, out, err);

    if (rc != 0) return rc;
    next->next_hub_id = next_id;
    (*out)->id = orphan->id;
    (*out)->producers = ADOPTED_PRODUCERS;
    *out = weir__catalog_place_hub(next);
    return 0;
}

static void forget_orphan(struct weir__namespace *ns, uint64_t id)
{
    struct weir__orphan *orphan = find_orphan(ns, id);

    *orphan = ns->orphans[--ns->orphan_count];
}

int weir__namespace_adopt(struct weir__namespace *ns, uint64_t id, const char *name,
                          struct weir_error *err)
{
    int64_t now_ms = ns->options.clock.wall_ms(ns->options.clock.self);
    struct weir__catalog_hub *row = NULL;
    struct weir__hub *hub = NULL;
    struct weir__orphan orphan;
    struct weir__catalog next;
    int rc = weir__name_check(WEIR__NAME_HUB, name, err);

    if (rc == 0) rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    rc = check_orphan(ns, id, &orphan, err);
    if (rc == 0) rc = add_orphan(&next, &orphan, name, now_ms, &row, err);
    assert(rc != 0 || row);
    if (rc == 0) rc = weir__hub_new(&hub, ns, row, err);
    if (rc == 0) rc = weir__change_save(ns, &next, err);
    if (rc == 0) {
        forget_orphan(ns, id);
        list_hub(ns, hub);
    } else {
        weir__hub_free(hub);
    }
    weir__change_end(ns, &next);
    return rc != 0 ? weir__wrap(err, rc, "adopting hub '%.64s'", name) : 0;
}

/* ---- deleting ---- */

/* Out of the list, with a use of our own on it. */
static struct weir__hub *unlist_hub(struct weir__namespace *ns, const char *name)
{
    struct weir__hub **link = &ns->hubs, *hub;

    weir__mutex_lock(&ns->lock);
    while (!weir__name_equal((*link)->name, name)) link = &(*link)->next;
    hub = *link;
    *link = hub->next;
    hub->deleted = true;
    hub->users++;
    ns->users++;
    weir__mutex_unlock(&ns->lock);
    return hub;
}

static void dismiss_receivers(struct weir__hub *hub)
{
    struct weir_error why = {0};

    weir__hub_not_found(hub->name, &why);
    atomic_store(&hub->gone, true);
    weir__mutex_lock(&hub->lock);
    for (struct weir__group *group = hub->groups; group; group = group->next)
        weir__group_dismiss(hub, group, &why);
    weir__mutex_unlock(&hub->lock);
}

int weir__namespace_hub_delete(struct weir__namespace *ns, const char *name, struct weir_error *err)
{
    struct weir__catalog_hub *row;
    struct weir__hub *hub = NULL;
    struct weir__catalog next;
    int rc = weir__change_begin(ns, &next, err);

    if (rc != 0) return rc;
    row = weir__catalog_hub(&next, name);
    if (!row) {
        rc = weir__hub_missing(name, err);
    } else {
        rc = weir__catalog_add_removed(&next, row->id, err);
        weir__catalog_remove_hub(&next, row);
        if (rc == 0) rc = weir__change_save(ns, &next, err);
        if (rc == 0) hub = unlist_hub(ns, name);
    }
    weir__change_end(ns, &next);
    if (rc != 0) return weir__wrap(err, rc, "deleting hub '%.64s'", name);
    assert(hub);
    dismiss_receivers(hub);
    weir__hub_release(hub);
    return 0;
}

/* ---- groups ---- */

/* The hub in use that a row of the catalogue stands for; call under `change`. */
static struct weir__hub *hub_of(struct weir__namespace *ns, const char *name)
{
    struct weir__hub *hub;

    weir__mutex_lock(&ns->lock);
    hub = weir__namespace_find(ns, name);
    weir__mutex_unlock(&ns->lock);
    assert(hub);
    return hub;
}

static void list_group(struct weir__hub *hub, struct weir__group *group)
{
    struct weir__group **end = &hub->groups;

    weir__mutex_lock(&hub->lock);
    while (*end) end = &(*end)->next;
    *end = group;
    weir__mutex_unlock(&hub->lock);
}

int weir__namespace_group_add(struct weir__namespace *ns, const char *hub, const char *group,
                              struct weir_error *err)
{
    struct weir__group *made = NULL;
    struct weir__catalog_hub *row;
    struct weir__catalog next;
    int rc = weir__name_check(WEIR__NAME_GROUP, group, err);

    if (rc == 0) rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    row = weir__catalog_hub(&next, hub);
    rc = row ? add_group(row, group, err) : weir__hub_missing(hub, err);
    if (rc == 0) made = calloc(1, sizeof *made);
    if (rc == 0 && !made) rc = weir__fail(err, WEIR_ENOMEM, "out of memory for a group");
    assert(rc != 0 || made);
    if (rc == 0) rc = weir__change_save(ns, &next, err);
    if (rc == 0) {
        memcpy(made->name, group, strlen(group) + 1);
        list_group(hub_of(ns, hub), made);
    } else {
        free(made);
    }
    weir__change_end(ns, &next);
    return rc;
}

static void unlist_group(struct weir__hub *hub, const char *name)
{
    struct weir__group **link = &hub->groups, *group;
    struct weir_error why = {0};

    weir__hub_not_found(name, &why);
    weir__mutex_lock(&hub->lock);
    while (!weir__name_equal((*link)->name, name)) link = &(*link)->next;
    group = *link;
    *link = group->next;
    weir__group_dismiss(hub, group, &why);
    weir__mutex_unlock(&hub->lock);
    free(group->places);
    free(group);
}

int weir__namespace_group_remove(struct weir__namespace *ns, const char *hub, const char *group,
                                 struct weir_error *err)
{
    struct weir__catalog_group *found;
    struct weir__catalog_hub *row;
    struct weir__catalog next;
    int rc;

    if (weir__name_equal(group, WEIR__GROUP_DEFAULT))
        return weir__fail(err, WEIR_EDENIED, "%s is always there", WEIR__GROUP_DEFAULT);
    rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    row = weir__catalog_hub(&next, hub);
    found = row ? weir__catalog_group(row, group) : NULL;
    if (!found) {
        rc = row ? weir__group_missing(row->name, group, err) : weir__hub_missing(hub, err);
    } else {
        weir__catalog_remove_group(row, found);
        rc = weir__change_save(ns, &next, err);
    }
    if (rc == 0) unlist_group(hub_of(ns, hub), group);
    weir__change_end(ns, &next);
    return rc;
}

/* ---- producer ids ---- */

/* Makes it durable that ids up to a higher one may have been given out. */
static int reserve_producers(struct weir__namespace *ns, struct weir__hub *hub,
                             struct weir__catalog *next, struct weir_error *err)
{
    struct weir__catalog_hub *row = weir__catalog_hub(next, hub->name);
    int rc;

    if (!row || row->id != hub->id) return weir__hub_missing(hub->name, err);
    if (row->producers > PRODUCER_ID_MAX - PRODUCERS_RESERVED)
        return weir__fail(err, WEIR_ELIMIT, "all producer ids of hub '%s' are used", hub->name);
    row->producers += PRODUCERS_RESERVED;
    rc = weir__change_save(ns, next, err);
    if (rc == 0) hub->producer_limit += PRODUCERS_RESERVED;
    return rc;
}

int weir__hub_producer_new(struct weir__hub *hub, uint64_t *out_id, struct weir_error *err)
{
    struct weir__namespace *ns = hub->ns;
    struct weir__catalog next;
    bool given;
    int rc;

    weir__mutex_lock(&ns->change);
    given = hub->producer_next < hub->producer_limit;
    if (given) *out_id = hub->producer_next++;
    weir__mutex_unlock(&ns->change);
    if (given) return 0;
    rc = weir__change_begin(ns, &next, err);
    if (rc != 0) return rc;
    if (hub->producer_next == hub->producer_limit) rc = reserve_producers(ns, hub, &next, err);
    if (rc == 0) *out_id = hub->producer_next++;
    weir__change_end(ns, &next);
    return rc;
}
