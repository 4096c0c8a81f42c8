/* catalog.h - what a data folder contains: hubs, their groups, access rules.
 *
 * A catalogue is a value: it is loaded, copied, changed in memory and saved as a whole. On disk it
 * lies twice, in catalog.0 and catalog.1, each with its generation and checksums. Saving writes the
 * worse copy (the older or a bad one) and then the other, so that a crash at any time leaves one
 * good copy, and what was saved survives the loss of either.
 *
 * Version 2 has the ids of deleted hubs whose folders may still be there: only what was recorded so
 * may be removed with events in it. Version 1 is read, and written as version 2 by the next save.
 *
 *   catalog.c        the value          catalog_codec.c   the format, drawn at its head
 *   catalog_file.c   the two copies
 *
 * No locks: namespace.c has them. */
#ifndef WEIR_HUB_CATALOG_H
#define WEIR_HUB_CATALOG_H

#include "base/buf.h"
#include "base/logging.h"
#include "hub/access.h"
#include "hub/name.h"
#include "log/fs.h"

#define WEIR__CATALOG_VERSION 2
#define WEIR__CATALOG_HEADER_BYTES 32u
#define WEIR__CATALOG_BYTES_MAX (16u << 20) /* of a copy without its header */
#define WEIR__CATALOG_HUBS_MAX 1024
#define WEIR__CATALOG_GROUPS_MAX 1000  /* per hub */
#define WEIR__CATALOG_REMOVED_MAX 1024 /* deleted hubs whose folders are still to be removed */

struct weir__catalog_group {
    char name[WEIR__GROUP_NAME_MAX + 1];
};

struct weir__catalog_hub {
    uint64_t id; /* never used twice in a folder; names the log's folder */
    char name[WEIR__HUB_NAME_MAX + 1];
    uint32_t partitions;
    int64_t created_ms;
    int64_t retain_ms;     /* as in struct weir__log_options: 0 is the default, negative for ever */
    uint64_t retain_bytes; /* 0: no limit */
    uint64_t producers;    /* idempotent producer ids up to this one may have been given out */
    struct weir__catalog_group *groups; /* $Default is the first */
    uint32_t group_count;
    struct weir__rule *rules;
    uint32_t rule_count;
};

struct weir__catalog {
    uint32_t version; /* of the copy that was read; what is saved has the newest */
    uint64_t generation;
    uint64_t next_hub_id;
    struct weir__rule *rules; /* of the namespace */
    uint32_t rule_count;
    struct weir__catalog_hub *hubs; /* in the order of their ids */
    uint32_t hub_count;
    uint64_t *removed; /* ids of deleted hubs whose folders may still be there, ascending */
    uint32_t removed_count;
};

/* An empty catalogue is all zeros but for its version and next_hub_id, which begins at 1. */
void weir__catalog_init(struct weir__catalog *);
void weir__catalog_fini(struct weir__catalog *);
int weir__catalog_copy(struct weir__catalog *out, const struct weir__catalog *,
                       struct weir_error *);

/* NULL when there is none. */
struct weir__catalog_hub *weir__catalog_hub(const struct weir__catalog *, const char *name);
struct weir__catalog_group *weir__catalog_group(const struct weir__catalog_hub *, const char *name);
struct weir__rule *weir__catalog_rule(struct weir__rule *, uint32_t count, const char *name);

/* Room for one more, zeroed, at the end. WEIR_ELIMIT, WEIR_ENOMEM. */
int weir__catalog_add_hub(struct weir__catalog *, struct weir__catalog_hub **out,
                          struct weir_error *);
int weir__catalog_add_group(struct weir__catalog_hub *, const char *name, struct weir_error *);
int weir__catalog_add_rule(struct weir__rule **rules, uint32_t *count, const struct weir__rule *,
                           struct weir_error *);

/* Moves the last hub to where its id belongs, and returns it. */
struct weir__catalog_hub *weir__catalog_place_hub(struct weir__catalog *);

/* A deleted hub's folder: to be removed, whether it is to be, removed for good. WEIR_ELIMIT. */
int weir__catalog_add_removed(struct weir__catalog *, uint64_t id, struct weir_error *);
bool weir__catalog_is_removed(const struct weir__catalog *, uint64_t id);
void weir__catalog_drop_removed(struct weir__catalog *, uint64_t id);

/* Each takes out what one of the first three above put in. */
void weir__catalog_remove_hub(struct weir__catalog *, struct weir__catalog_hub *);
void weir__catalog_remove_group(struct weir__catalog_hub *, struct weir__catalog_group *);
void weir__catalog_remove_rule(struct weir__rule *rules, uint32_t *count, struct weir__rule *);

/* One copy as bytes, and back. Any bytes may be given: WEIR_ECORRUPT says what is wrong and where,
 * WEIR_EVERSION names a version that is not ours. On error out is empty. */
int weir__catalog_encode(const struct weir__catalog *, struct weir__buf *buf, struct weir_error *);
int weir__catalog_decode(struct weir__catalog *out, struct weir__bytes, struct weir_error *);

/* The generation that a copy's header names, of any version, however bad the rest is; 0 when no
 * header was ever written. false: the header is bad too. */
bool weir__catalog_generation(struct weir__bytes, uint64_t *out);

#define WEIR__CATALOG_COPIES 2
#define WEIR__CATALOG_DIR_MAX 1024 /* bytes of a data folder's path */
#define WEIR__CATALOG_RESTORING                                                                    \
    "restoring" /* a file of a folder that was not restored to its end */
#define WEIR__CATALOG_RESTORING_TEXT                                                               \
    "it was not restored to its end; remove the folder and restore again"

/* The two files. */
struct weir__catalog_store {
    struct weir__fs *fs;
    struct weir__logger logger;
    char dir[WEIR__CATALOG_DIR_MAX + 1];
    int worse;    /* the copy to be written first */
    bool unequal; /* the copies are not both good and the same */
    bool stale;   /* a bad copy may be newer than the one that was loaded: changes may be missing */
};

/* WEIR_ETOOBIG: the path is too long. */
int weir__catalog_store_init(struct weir__catalog_store *, struct weir__fs *, const char *dir,
                             const struct weir__logger *, struct weir_error *);

/* Reads both copies and gives the newer good one, changing nothing. One bad copy is a warning to
 * the logger, or an error when it may be the newer one (see stale); two are WEIR_ECORRUPT naming
 * both files. A version that is not ours is WEIR_EVERSION, whatever the other copy is, and so is a
 * copy that cannot be read for the moment (too many open files, no memory) that error.
 * WEIR_ENOTFOUND: no copy is good, and not both were ever made. WEIR_ECORRUPT, too: the folder was not
 * restored to its end. */
int weir__catalog_load(struct weir__catalog_store *, struct weir__catalog *out,
                       struct weir_error *);

/* Writes a catalogue whose generation is one more than the last. 0: it is durable. WEIR_EUNKNOWN:
 * a reopen may find it or the one before. Any other error: it was not stored, the one before is
 * good. When only the second copy fails it is stored, and that is a warning. */
int weir__catalog_save(struct weir__catalog_store *, const struct weir__catalog *,
                       struct weir_error *);

/* After loading: makes the worse copy equal to the better one, if it is not. */
int weir__catalog_heal(struct weir__catalog_store *, const struct weir__catalog *,
                       struct weir_error *);

#define WEIR__CATALOG_RETAIN_MS_DEFAULT (INT64_C(7) * 24 * 3600 * 1000) /* the log's, for 0 */

/* What a hub's retain_ms means: never 0, and -1 for ever. */
static inline int64_t weir__catalog_retain_ms(int64_t retain_ms)
{
    if (retain_ms == 0) return WEIR__CATALOG_RETAIN_MS_DEFAULT;
    return retain_ms < 0 ? -1 : retain_ms;
}

#endif
