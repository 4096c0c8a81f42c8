/* hub.h - administration: hubs, consumer groups, partitions and access rules.
 *
 * Names follow Azure's grammar without the slash (letters, digits, '.', '-', '_', beginning and
 * ending with a letter or a digit) and are compared without regard to case. Hubs have at most 256
 * bytes, groups 50. A change is on disk when its call returns. What is not there is WEIR_ENOTFOUND.
 *
 * Over a connection to weir serve all of them work, by its HTTP, with a key that has WEIR_MANAGE;
 * weir_hub_info and weir_partition_info need no HTTP, and any key. A change whose answer is lost is
 * WEIR_EUNKNOWN. To Azure only those two work, the others are WEIR_ENOTSUP: its protocol has no
 * words for them.
 *
 * Any thread may make these calls at any time, but not a completion. Lists are copied before fn is
 * first called, so it may call the library; when fn returns other than 0 the list ends with it. */
#ifndef WEIR_HUB_H
#define WEIR_HUB_H

#include "weir/error.h"
#include "weir/event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir;

#define WEIR_NAME_BYTES 257 /* of any name, its NUL included */
#define WEIR_PARTITIONS_MAX 1024
#define WEIR_DEFAULT_GROUP "$Default" /* every hub has it, and keeps it */

/* ---- hubs ---- */

struct weir_hub_options {
    size_t size;
    uint32_t partitions; /* 0: 4. Later there can be more, never less: weir_hub_update */
    uint32_t group_count;
    const char *const *groups; /* besides $Default */
    int64_t retain_ms;         /* events are kept so long at least; 0: 7 days, negative: for ever */
    uint64_t retain_bytes; /* unless the hub outgrows this; 0: no limit. The oldest events of all
                                  partitions go first, so a loud partition shortens quiet ones */
};

/* WEIR_EEXIST: there is one of that name. */
WEIR_API int weir_hub_create(struct weir *, const char *hub, const struct weir_hub_options *,
                             struct weir_error *);

/* What is zero stays as it is. */
struct weir_hub_changes {
    size_t size;
    uint32_t partitions;   /* as many as there are, or more */
    int64_t retain_ms;     /* negative: for ever */
    uint64_t retain_bytes; /* WEIR_RETAIN_ALL: no limit any more */
};

#define WEIR_RETAIN_ALL UINT64_MAX

/* Changes a hub while it is in use, at once: what its limits do not keep any more goes soon after,
 * and new partitions take events. Events stay in the partition they are in, but a key belongs to one
 * of all partitions: with more of them, most keys go to another one from then on, and the order of a
 * key's events across that moment is lost. Let consumers read what is there first, where that
 * matters. WEIR_EINVAL: less partitions than there are, or more than WEIR_PARTITIONS_MAX. */
WEIR_API int weir_hub_update(struct weir *, const char *hub, const struct weir_hub_changes *,
                             struct weir_error *);

/* Removes the hub and all of its events. From then on its open producers and receivers answer
 * WEIR_ENOTFOUND; the space is free once they are closed. */
WEIR_API int weir_hub_delete(struct weir *, const char *hub, struct weir_error *);

struct weir_hub_info {
    char name[WEIR_NAME_BYTES]; /* as it was created */
    uint32_t partitions;
    uint32_t groups; /* with $Default; Azure does not tell this and the last two: 0 */
    int64_t created_ms;
    int64_t retain_ms;     /* negative: for ever */
    uint64_t retain_bytes; /* 0: no limit */
};

WEIR_API int weir_hub_info(struct weir *, const char *hub, struct weir_hub_info *out,
                           struct weir_error *);

/* In the order of their creation. */
WEIR_API int weir_hub_list(struct weir *, int (*fn)(const struct weir_hub_info *, void *user),
                           void *user, struct weir_error *);

/* Events without a hub: a folder hub-<id> that the catalogue does not know, because it was damaged
 * or restored from an old copy. Nothing removes it; weir_hub_adopt makes a hub of it again. */
struct weir_orphan {
    uint64_t id;
    uint32_t partitions; /* 0: they cannot be read, and it cannot be adopted */
};

/* As of the opening, less those that were adopted. */
WEIR_API int weir_orphan_list(struct weir *, int (*fn)(const struct weir_orphan *, void *user),
                              void *user, struct weir_error *);

/* Gives an orphan a name. Its groups, rules and retention are lost with the catalogue: it has
 * $Default, and keeps everything until weir_hub_update says otherwise. WEIR_ENOTFOUND: there is no
 * such orphan. WEIR_EEXIST: there is a hub of that name. WEIR_ECORRUPT: it cannot be read. */
WEIR_API int weir_hub_adopt(struct weir *, uint64_t id, const char *hub, struct weir_error *);

/* Counters, each right for itself; those without a word count from the opening of the hub. */
struct weir_hub_stats {
    uint64_t batches_in, events_in, bytes_in; /* stored */
    uint64_t batches_refused;
    uint64_t events_out, bytes_out; /* given to receivers */
    uint64_t syncs;                 /* waits for the disk, each for many batches */
    uint64_t segments, disk_bytes;  /* now */
    uint64_t receivers;             /* now */
    uint64_t damaged_ranges;        /* found on reading; weir inspect finds all */

    /* What is kept now. */
    uint64_t stored_bytes;        /* of events, as retain_bytes counts them */
    uint64_t disk_bytes_max;      /* the most that disk_bytes may become; 0: there is no limit */
    int64_t begin_time_ms;        /* enqueued time of the oldest event; 0: there is none */
    uint64_t next_expiry_bytes;   /* of stored_bytes, what goes next */
    int64_t next_expiry_ms;       /* in how many milliseconds; -1: nothing is to go */
    uint64_t producers;           /* idempotent ones that are remembered now, per partition */
    uint64_t producers_forgotten; /* too many, or silent for too long: see producer.h */
};

WEIR_API int weir_hub_stats(struct weir *, const char *hub, struct weir_hub_stats *out,
                            struct weir_error *);

/* ---- partitions, numbered from 0 ---- */

struct weir_partition_info {
    uint64_t begin_sequence; /* of the oldest event that is kept */
    uint64_t next_sequence;  /* of the one to come; begin == next: empty now */
    uint64_t last_offset;    /* of the newest event ever; 0 when there never was one */
    int64_t last_time_ms;    /* its enqueued time; 0 likewise */
};

WEIR_API int weir_partition_info(struct weir *, const char *hub, uint32_t partition,
                                 struct weir_partition_info *out, struct weir_error *);

/* Which of so many partitions a key's events go to: Azure's own hash, so clients agree on it. */
WEIR_API uint32_t weir_partition_of_key(struct weir_bytes key, uint32_t partitions);

/* ---- consumer groups ---- */

WEIR_API int weir_group_create(struct weir *, const char *hub, const char *group,
                               struct weir_error *);

/* Its receivers answer WEIR_ENOTFOUND from then on. WEIR_EDENIED: $Default stays. */
WEIR_API int weir_group_delete(struct weir *, const char *hub, const char *group,
                               struct weir_error *);

WEIR_API int weir_group_list(struct weir *, const char *hub,
                             int (*fn)(const char *group, void *user), void *user,
                             struct weir_error *);

/* ---- access rules: who may connect to a server of this folder. The calls of this library on a
 * folder need none. Up to 12 for each hub, and 12 for all (hub NULL) ---- */

enum weir_rights { WEIR_SEND = 1, WEIR_LISTEN = 2, WEIR_MANAGE = 4 /* includes the others */ };

enum weir_key { WEIR_PRIMARY_KEY, WEIR_SECONDARY_KEY };

#define WEIR_KEY_BYTES 65 /* of a key's text, its NUL included */

/* Two keys, so that one can be changed while the other is in use. */
struct weir_rule {
    char name[WEIR_NAME_BYTES];
    unsigned rights; /* of enum weir_rights */
    char key[2][WEIR_KEY_BYTES];
};

/* Empty keys are made at random, and written into *rule with the rights as they are then. Over a
 * connection keys are told by this call and by weir_rule_renew, and never again. */
WEIR_API int weir_rule_create(struct weir *, const char *hub, struct weir_rule *rule,
                              struct weir_error *);
WEIR_API int weir_rule_delete(struct weir *, const char *hub, const char *rule,
                              struct weir_error *);

/* Replaces one key by the text given, or by a random one when that is NULL. */
WEIR_API int weir_rule_rotate(struct weir *, const char *hub, const char *rule, enum weir_key,
                              const char *text, struct weir_error *);

/* The first key becomes the second, so that its users go on, and a new first one is made; *out is
 * the rule with both of them. */
WEIR_API int weir_rule_renew(struct weir *, const char *hub, const char *rule,
                             struct weir_rule *out, struct weir_error *);

/* Over a connection the keys are empty. */
WEIR_API int weir_rule_list(struct weir *, const char *hub,
                            int (*fn)(const struct weir_rule *, void *user), void *user,
                            struct weir_error *);

#ifdef __cplusplus
}
#endif
#endif
