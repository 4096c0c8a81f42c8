/* entity.c - a hub's life in its namespace: made from the catalogue, opened by the first who uses
 * it, let go by the last. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/state.h"
#include "log/pool.h"

#define OPENING_HELPERS 7  /* threads beside the caller's that open the hubs of a folder */
#define ERROR_KEPT_MS 1000 /* how long a hub that could not be opened is not tried again */
#define BATCH_ROOM_BYTES (64u << 10) /* what the log may need beyond the sender's message */

int weir__hub_missing(const char *name, struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOTFOUND, "there is no hub '%.256s'", name);
}

int weir__group_missing(const char *hub, const char *group, struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOTFOUND, "hub '%.256s' has no consumer group '%.256s'", hub,
                      group);
}

int weir__hub_not_found(const char *name, struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOTFOUND, "The messaging entity '%.256s' could not be found.",
                      name);
}

struct weir__hub *weir__namespace_find(struct weir__namespace *ns, const char *name)
{
    struct weir__hub *hub = ns->hubs;

    while (hub && !weir__name_equal(hub->name, name)) hub = hub->next;
    return hub;
}

static int add_groups(struct weir__hub *hub, const struct weir__catalog_hub *from,
                      struct weir_error *err)
{
    for (uint32_t i = from->group_count; i-- > 0;) {
        struct weir__group *group = calloc(1, sizeof *group);
        if (!group) return weir__fail(err, WEIR_ENOMEM, "out of memory for a hub");
        memcpy(group->name, from->groups[i].name, sizeof group->name);
        group->next = hub->groups;
        hub->groups = group;
    }
    return 0;
}

int weir__hub_new(struct weir__hub **out, struct weir__namespace *ns,
                  const struct weir__catalog_hub *from, struct weir_error *err)
{
    struct weir__hub *hub = calloc(1, sizeof *hub);
    int rc;

    *out = NULL;
    if (!hub) return weir__fail(err, WEIR_ENOMEM, "out of memory for a hub");
    hub->ns = ns;
    hub->id = from->id;
    atomic_init(&hub->partitions, from->partitions);
    hub->created_ms = from->created_ms;
    hub->producer_next = hub->producer_limit = from->producers + 1;
    memcpy(hub->name, from->name, sizeof hub->name);
    weir__mutex_init(&hub->lock);
    rc = add_groups(hub, from, err);
    if (rc != 0)
        weir__hub_free(hub);
    else
        *out = hub;
    return rc;
}

void weir__hub_free(struct weir__hub *hub)
{
    if (!hub) return;
    assert(hub->users == 0 && hub->receivers == 0);
    while (hub->groups) {
        struct weir__group *group = hub->groups;
        hub->groups = group->next;
        free(group->places);
        free(group);
    }
    weir__mutex_fini(&hub->lock);
    free(hub->bad);
    free(hub);
}

void weir__namespace_hub_dir(const char *dir, uint64_t hub_id, char out[WEIR__HUB_PATH_BYTES])
{
    snprintf(out, WEIR__HUB_PATH_BYTES, "%.*s/" WEIR__HUB_PREFIX "%0*llx", WEIR__CATALOG_DIR_MAX,
             dir, WEIR__HUB_ID_DIGITS, (unsigned long long)hub_id);
}

void weir__hub_log_options(struct weir__namespace *ns, const struct weir__catalog_hub *hub,
                           char path[WEIR__HUB_PATH_BYTES], struct weir__log_options *out)
{
    const struct weir__namespace_options *o = &ns->options;

    weir__namespace_hub_dir(ns->store.dir, hub->id, path);
    *out = (struct weir__log_options){
        .fs = o->fs,
        .clock = o->clock,
        .logger = o->logger,
        .dir = path,
        .hub_id = hub->id,
        .partitions = hub->partitions,
        .batch_bytes_max = o->batch_bytes_max + BATCH_ROOM_BYTES,
        .segment_bytes_min = o->segment_bytes_min,
        .segment_bytes_max = o->segment_bytes_max,
        .tail_bytes = o->tail_bytes,
        .sync_ms = o->sync_ms,
        .retain_ms = hub->retain_ms,
        .retain_bytes = hub->retain_bytes,
        .no_threads = o->no_threads,
        .pool = ns->pool,
        .sabotage = o->sabotage,
    };
}

#define TO_BE_OPENED 1

/* Whether a hub could not be opened a moment ago; call under either lock of the namespace. A disk
 * may be mended and a descriptor freed; a version that is not known here stays so. */
static bool is_known_bad(const struct weir__hub *hub)
{
    const struct weir__clock *clock = &hub->ns->options.clock;

    if (!hub->bad) return false;
    return hub->bad->code == WEIR_EVERSION || clock->mono_ms(clock->self) < hub->bad_ms;
}

/* Takes a use of a hub that is open, or says why there is none. Call under `lock`. */
static int try_use(struct weir__namespace *ns, const char *name, struct weir__hub **out,
                   struct weir_error *err)
{
    struct weir__hub *hub = weir__namespace_find(ns, name);

    if (!hub) return weir__hub_missing(name, err);
    if (!hub->log && is_known_bad(hub)) {
        if (err) *err = *hub->bad;
        return hub->bad->code;
    }
    if (!hub->log) return TO_BE_OPENED;
    *out = hub;
    hub->users++;
    ns->users++;
    return 0;
}

/* Keeps an error for those who come soon after, so that a hub that many want is not opened in vain
 * by each of them; what runs out for a moment is not kept at all. It is told once. Memory may be
 * short: it is then found again. Call under `change`. */
static void keep_error(struct weir__hub *hub, const struct weir_error *why)
{
    const struct weir__clock *clock = &hub->ns->options.clock;
    struct weir_error *bad = hub->bad ? hub->bad : malloc(sizeof *bad);
    bool told = hub->bad && strcmp(hub->bad->text, why->text) == 0;

    if (!told) weir__log_line(&hub->ns->options.logger, WEIR__ERROR, "hub", "%s", why->text);
    if (!bad) return;
    weir__mutex_lock(&hub->ns->lock);
    *bad = *why;
    hub->bad = bad;
    hub->bad_ms = clock->mono_ms(clock->self);
    if (weir_error_class(why->code) != WEIR_CLASS_RETRY) hub->bad_ms += ERROR_KEPT_MS;
    weir__mutex_unlock(&hub->ns->lock);
}

/* Opens a hub's log; call under `change`, which keeps the hub from being deleted meanwhile. */
static int open_log(struct weir__hub *hub, struct weir_error *err)
{
    struct weir__namespace *ns = hub->ns;
    struct weir_error why = {0};
    struct weir__log_options options;
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__log *log = NULL;
    int rc;

    weir__hub_log_options(ns, weir__catalog_hub(&ns->catalog, hub->name), path, &options);
    rc = weir__log_open(&log, &options, &why);
    if (rc == WEIR_ENOTFOUND) rc = WEIR_ECORRUPT; /* the hub is there, its files are not */
    if (rc != 0) {
        weir__wrap(&why, rc, "opening hub '%.64s'", hub->name);
        keep_error(hub, &why);
        if (err) *err = why;
        return rc;
    }
    if (hub->bad)
        weir__log_line(&ns->options.logger, WEIR__WARN, "hub", "hub '%s' is open at last",
                       hub->name);
    weir__mutex_lock(&ns->lock);
    hub->log = log;
    weir__mutex_unlock(&ns->lock);
    return 0;
}

/* The threads that all logs share; call under `change`. */
static int make_pool(struct weir__namespace *ns, struct weir_error *err)
{
    if (ns->pool || ns->options.no_threads) return 0;
    return weir__log_pool_new(&ns->pool, WEIR__LOG_POOL_FLUSHERS, err);
}

int weir__hub_open_log(struct weir__hub *hub, struct weir_error *err)
{
    int rc = hub->log ? 0 : make_pool(hub->ns, err);

    return rc == 0 && !hub->log ? open_log(hub, err) : rc;
}

/* Opens the log of the hub of this name, unless somebody was faster or it is gone. */
static int open_by_name(struct weir__namespace *ns, const char *name, struct weir_error *err)
{
    struct weir__hub *hub;
    bool closed;
    int rc = 0;

    weir__mutex_lock(&ns->change);
    weir__mutex_lock(&ns->lock);
    hub = weir__namespace_find(ns, name);
    closed = hub && !hub->log && !is_known_bad(hub);
    weir__mutex_unlock(&ns->lock);
    if (closed) rc = make_pool(ns, err);
    if (closed && rc == 0) rc = open_log(hub, err);
    weir__mutex_unlock(&ns->change);
    return rc;
}

int weir__namespace_use(struct weir__namespace *ns, const char *name, struct weir__hub **out,
                        struct weir_error *err)
{
    int rc;

    *out = NULL;
    do {
        weir__mutex_lock(&ns->lock);
        rc = try_use(ns, name, out, err);
        weir__mutex_unlock(&ns->lock);
    } while (rc == TO_BE_OPENED && (rc = open_by_name(ns, name, err)) == 0);
    return rc;
}

/* Hubs that are being opened by several threads: most of the time each waits for the disk. */
struct opening {
    struct weir__mutex lock;
    struct weir__hub *next;
    uint32_t failed;
};

static void *run_opening(void *arg)
{
    struct opening *o = arg;

    weir__mutex_lock(&o->lock);
    while (o->next) {
        struct weir__hub *hub = o->next;
        bool failed;

        o->next = hub->next;
        weir__mutex_unlock(&o->lock);
        failed = !hub->log && (is_known_bad(hub) || open_log(hub, NULL) != 0);
        weir__mutex_lock(&o->lock);
        o->failed += failed;
    }
    weir__mutex_unlock(&o->lock);
    return NULL;
}

void weir__namespace_open_hubs(struct weir__namespace *ns, uint32_t *out_failed)
{
    struct weir__thread helpers[OPENING_HELPERS] = {0};
    struct opening o = {.failed = 0};

    weir__mutex_init(&o.lock);
    weir__mutex_lock(&ns->change); /* so the list stays as it is */
    o.next = ns->hubs;
    if (make_pool(ns, NULL) == 0 && ns->pool && o.next && o.next->next)
        for (int i = 0; i < OPENING_HELPERS; i++)
            weir__thread_start(&helpers[i], "weir-open", run_opening, &o, NULL); /* or we alone */
    run_opening(&o);
    for (int i = 0; i < OPENING_HELPERS; i++) weir__thread_join(&helpers[i]);
    weir__mutex_unlock(&ns->change);
    weir__mutex_fini(&o.lock);
    if (out_failed) *out_failed = o.failed;
}

void weir__hub_retain(struct weir__hub *hub)
{
    weir__mutex_lock(&hub->ns->lock);
    assert(hub->users > 0);
    hub->users++;
    hub->ns->users++;
    weir__mutex_unlock(&hub->ns->lock);
}

/* Closes and removes the files of a deleted hub. What goes wrong is logged: the next open of the
 * namespace removes what is left. */
static void bury(struct weir__hub *hub)
{
    struct weir__namespace *ns = hub->ns;
    struct weir_error err = {0};

    weir__log_close(hub->log, NULL); /* nobody wants to know what could not be saved */
    if (weir__folders_remove(ns, hub->id, &err) == 0)
        weir__folders_buried(ns, hub->id);
    else
        weir__log_line(&ns->options.logger, WEIR__WARN, "hub", "removing deleted hub '%s': %s",
                       hub->name, err.text);
    weir__hub_free(hub);
}

void weir__hub_release(struct weir__hub *hub)
{
    struct weir__namespace *ns;
    bool last;

    if (!hub) return;
    ns = hub->ns;
    weir__mutex_lock(&ns->lock);
    assert(hub->users > 0);
    hub->users--;
    last = hub->users == 0 && hub->deleted;
    weir__mutex_unlock(&ns->lock);
    if (last) bury(hub);
    weir__mutex_lock(&ns->lock);
    ns->users--; /* only now, so that close can be sure that nothing is being buried */
    weir__mutex_unlock(&ns->lock);
}
