/* state.h - what the files of this room share and nobody else sees: the insides of a namespace and
 * of a hub. Each member says which lock guards it; without a word it is set at birth and stays. */
#ifndef WEIR_HUB_STATE_H
#define WEIR_HUB_STATE_H

#include <stdatomic.h>

#include "base/thread.h"
#include "hub/epoch.h"
#include "hub/namespace.h"
#include "hub/route.h"

#define WEIR__HUB_PREFIX "hub-" /* of its folder's name */
#define WEIR__HUB_ID_DIGITS 16  /* hexadecimal */
#define WEIR__HUB_ID_MAX ((uint64_t)INT64_MAX)

/* A consumer group of a hub that is in use. */
struct weir__group {
    struct weir__group *next;         /* hub lock */
    struct weir__epoch_place *places; /* made for the first receiver; hub lock */
    uint32_t place_count;             /* one per partition, as far as receivers came; hub lock */
    char name[WEIR__GROUP_NAME_MAX + 1];
};

struct weir__hub {
    struct weir__namespace *ns;
    struct weir__hub *next; /* written under both locks of ns, read under either */
    uint64_t id;
    char name[WEIR__HUB_NAME_MAX + 1];
    atomic_uint partitions; /* grows under ns change, after its log has grown */
    int64_t created_ms;

    uint32_t users;         /* ns lock */
    bool deleted;           /* ns lock */
    struct weir__log *log;  /* as next; stays once it is set, so a user need not ask again */
    struct weir_error *bad; /* as next; why it could not be opened, */
    int64_t bad_ms;         /* and until when nobody need try again */

    uint64_t producer_next;  /* ns change: the next id to give out ... */
    uint64_t producer_limit; /* ... and the first that is not reserved */

    struct weir__mutex lock;
    struct weir__group *groups; /* hub lock */

    atomic_bool gone; /* deleted, as publishers and receivers see it */
    struct weir__route_turn turn;
    atomic_uint_fast64_t refused, delivered_events, delivered_bytes;
    uint64_t receivers, receivers_attached, receivers_refused, receivers_displaced; /* hub lock */
};

struct weir__namespace {
    struct weir__namespace_options options; /* with the defaults filled in */
    struct weir__catalog_store store;       /* change */
    struct weir__namespace_lock held;

    struct weir__mutex change; /* one change at a time, its disk operations included */
    bool stopped;              /* change; a save of unknown outcome: no changes until reopened */
    void (*rules_changed)(void *user); /* change */
    void *rules_user;                  /* change */

    struct weir__mutex lock;
    struct weir__catalog catalog; /* written under both locks, read under either; hubs too */
    struct weir__hub *hubs;
    struct weir__rule owner;     /* lock; without a name until it is asked for */
    uint32_t users;              /* lock; of all hubs, deleted ones too */
    struct weir__log_pool *pool; /* change; the threads of all logs, made for the first of them */

    struct weir__orphan *orphans; /* change */
    size_t orphan_count;
    uint64_t *buried; /* lock; deleted hubs whose folders are gone for good: their ids leave the
                         catalogue with the next change */
    size_t buried_count;
};

/* ---- namespace.c ---- */

/* A change: begin gives a copy of the catalogue to work on and holds the lock `change`; save makes
 * it durable and then the namespace's own; end lets go, saved or not. */
int weir__change_begin(struct weir__namespace *, struct weir__catalog *next, struct weir_error *);
int weir__change_save(struct weir__namespace *, struct weir__catalog *next, struct weir_error *);
void weir__change_end(struct weir__namespace *, struct weir__catalog *next);

/* ---- rule.c ---- */

/* Whether a rule of before is gone, or another, in after. */
bool weir__rules_lost(const struct weir__catalog *before, const struct weir__catalog *after);

/* ---- namespace_folders.c ---- */

/* After the catalogue is loaded: removes what may go, notes and tells the orphans, and lets no new
 * hub have an id that any folder has. */
int weir__folders_settle(struct weir__namespace *, struct weir_error *);

/* Whether there is any hub folder that the catalogue does not know. */
int weir__folders_any(struct weir__namespace *, bool *out, struct weir_error *);

/* What a folder holds; *out_used: it may have events. */
int weir__folders_peek(struct weir__namespace *, uint64_t id, struct weir__orphan *out,
                       bool *out_used, struct weir_error *);

/* Removes a hub's folder, durably. */
int weir__folders_remove(struct weir__namespace *, uint64_t id, struct weir_error *);

/* A deleted hub's folder was removed; its id is left out of a catalogue to be saved; it was saved. */
void weir__folders_buried(struct weir__namespace *, uint64_t id);
void weir__folders_forget(struct weir__namespace *, struct weir__catalog *next);
void weir__folders_forgotten(struct weir__namespace *);

/* ---- entity.c ---- */

/* WEIR_ENOTFOUND with Azure's words. */
int weir__hub_missing(const char *name, struct weir_error *);
int weir__group_missing(const char *hub, const char *group, struct weir_error *);
/* The same in the service's words, for those who had it and are told over the wire that it is gone. */
int weir__hub_not_found(const char *name, struct weir_error *);

/* The hub of this name; call under `lock`. NULL: none. */
struct weir__hub *weir__namespace_find(struct weir__namespace *, const char *name);

/* Makes a hub as the catalogue has it, without opening its log; puts it into no list. */
int weir__hub_new(struct weir__hub **out, struct weir__namespace *,
                  const struct weir__catalog_hub *, struct weir_error *);

/* Frees a hub that nobody uses and whose log is closed. */
void weir__hub_free(struct weir__hub *);

/* What its log is opened, made and removed with. path is kept by the options. */
void weir__hub_log_options(struct weir__namespace *, const struct weir__catalog_hub *,
                           char path[WEIR__HUB_PATH_BYTES], struct weir__log_options *out);

/* Opens its log when it is not; call under `change`. */
int weir__hub_open_log(struct weir__hub *, struct weir_error *);

/* One more use of a hub that is in use already. */
void weir__hub_retain(struct weir__hub *);

/* ---- receiver.c ---- */

/* Tells every receiver of a group that it is over; call under the hub's lock. */
void weir__group_dismiss(struct weir__hub *, struct weir__group *, const struct weir_error *why);

#endif
