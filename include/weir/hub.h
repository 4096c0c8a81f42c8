/* hub.h - administration: hubs, consumer groups, partitions and access rules.
 *
 * Names follow Azure's grammar without the slash (letters, digits, '.', '-', '_', beginning and
 * ending with a letter or a digit) and are compared without regard to case. Hubs have at most 256
 * bytes, groups 50. A change is on disk when its call returns. What is not there is WEIR_ENOTFOUND.
 *
 * Over a connection only weir_hub_info and weir_partition_info work, the others are WEIR_ENOTSUP:
 * Azure's protocol has no words for them.
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
    uint32_t partitions; /* 0: 4. They cannot be changed later: keys would move */
    uint32_t group_count;
    const char *const *groups; /* besides $Default */
    int64_t retain_ms;         /* events are kept so long at least; 0: 7 days, negative: for ever */
    uint64_t retain_bytes; /* unless the hub outgrows this; 0: no limit. The oldest events of all
                                  partitions go first, so a loud partition shortens quiet ones */
};

/* WEIR_EEXIST: there is one of that name. */
WEIR_API int weir_hub_create(struct weir *, const char *hub, const struct weir_hub_options *,
                             struct weir_error *);

/* Removes the hub and all of its events. From then on its open producers and receivers answer
 * WEIR_ENOTFOUND; the space is free once they are closed. */
WEIR_API int weir_hub_delete(struct weir *, const char *hub, struct weir_error *);

struct weir_hub_info {
    char name[WEIR_NAME_BYTES]; /* as it was created */
    uint32_t partitions;
    uint32_t groups; /* with $Default; over a connection this and the last two are not told: 0 */
    int64_t created_ms;
    int64_t retain_ms;     /* negative: for ever */
    uint64_t retain_bytes; /* 0: no limit */
};

WEIR_API int weir_hub_info(struct weir *, const char *hub, struct weir_hub_info *out,
                           struct weir_error *);

/* In the order of their creation. */
WEIR_API int weir_hub_list(struct weir *, int (*fn)(const struct weir_hub_info *, void *user),
                           void *user, struct weir_error *);

/* Counters, each right for itself; those without a word count from the opening of the hub. */
struct weir_hub_stats {
    uint64_t batches_in, events_in, bytes_in; /* stored */
    uint64_t batches_refused;
    uint64_t events_out, bytes_out; /* given to receivers */
    uint64_t syncs;                 /* waits for the disk, each for many batches */
    uint64_t segments, disk_bytes;  /* now */
    uint64_t receivers;             /* now */
    uint64_t damaged_ranges;        /* found on reading; weir inspect finds all */
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

/* Empty keys are made at random: weir_rule_list shows them. */
WEIR_API int weir_rule_create(struct weir *, const char *hub, const struct weir_rule *,
                              struct weir_error *);
WEIR_API int weir_rule_delete(struct weir *, const char *hub, const char *rule,
                              struct weir_error *);

/* Replaces one key by the text given, or by a random one when that is NULL. */
WEIR_API int weir_rule_rotate(struct weir *, const char *hub, const char *rule, enum weir_key,
                              const char *text, struct weir_error *);

WEIR_API int weir_rule_list(struct weir *, const char *hub,
                            int (*fn)(const struct weir_rule *, void *user), void *user,
                            struct weir_error *);

#ifdef __cplusplus
}
#endif
#endif
