/* namespace.h - an opened data folder and the hubs in it.
 *
 *   DIR/lock               held while open, as DIR itself is; has our pid
 *   DIR/serving            where the folder is served, by whoever serves it: nothing to us, but what
 *                          is there when we take the lock is of somebody who has left, and goes
 *   DIR/id                 tells this folder from others, once somebody has asked: see identity.c
 *   DIR/owner              the key of whoever may read the folder, once somebody has asked
 *   DIR/catalog.0 .1       hubs, groups, access rules: see catalog.h
 *   DIR/hub-<id>/          the log of a hub; id is 16 hexadecimal digits and never used again
 *
 * Changes are durable when they return. A hub is made folder first, then catalogue; deleted
 * catalogue first, where its id is kept until its folder is gone, then folder, once its last user
 * has let it go. So a crash leaves a hub there or not there, and the next open finishes the job.
 * A folder that the catalogue neither knows nor calls deleted is never removed when there may be
 * events in it: see namespace_folders.c.
 *
 * A hub's log is opened when the hub is first used, so that a folder of many hubs opens at once and
 * an idle hub costs a few hundred bytes; it stays open until the namespace is closed. All logs share
 * the threads of one pool. A hub that
 * cannot be opened keeps its error for whoever uses it; the others are not concerned.
 *
 * Threads: everything here may be called from any thread, close from one when all hubs are
 * released. Lock order: change > lock > a hub's lock > its log's locks > a receiver's lock. `change`
 * is held by one change at a time, disk included; `lock` guards the catalogue and the list of hubs
 * in memory and is never held during a disk operation, so using a hub waits for no other hub. */
#ifndef WEIR_HUB_NAMESPACE_H
#define WEIR_HUB_NAMESPACE_H

#include "base/clock.h"
#include "base/logging.h"
#include "base/rand.h"
#include "hub/catalog.h"
#include "hub/hub.h"

#define WEIR__NAMESPACE_LOCK "lock"
#define WEIR__NAMESPACE_SERVING "serving"

struct weir__namespace_options {
    struct weir__fs *fs;        /* NULL: the machine's */
    struct weir__clock clock;   /* zero: the machine's */
    struct weir__rand rand;     /* zero: the machine's */
    struct weir__logger logger; /* zero: silence */
    bool must_exist;            /* WEIR_ENOTFOUND instead of making a new, empty folder */
    uint32_t batch_bytes_max;   /* of an encoded message; 0: 1 MiB, at most 19 MiB */

    /* Handed to each log; see struct weir__log_options. */
    uint64_t segment_bytes_min, segment_bytes_max;
    uint64_t tail_bytes;
    uint32_t sync_ms;
    bool no_threads;
    unsigned sabotage;
};

struct weir__namespace;

/* Locks, reads the catalogue, removes what a crash left over, tells the orphans. options may be NULL. WEIR_ELOCKED
 * names the process that has the folder. */
int weir__namespace_open(struct weir__namespace **out, const char *dir,
                         const struct weir__namespace_options *, struct weir_error *);

/* Closes every log; the completions that are left run before this returns. All hubs are released
 * and all receivers closed before. The first error is returned; it is closed all the same. */
int weir__namespace_close(struct weir__namespace *, struct weir_error *);

/* Opens the log of every hub, for servers: retention then works on hubs that nobody uses. A hub
 * that fails is logged and keeps its error; *out_failed (may be NULL) counts them. */
void weir__namespace_open_hubs(struct weir__namespace *, uint32_t *out_failed);

/* Keeps every other process, and every other namespace of this one, out of a folder. WEIR_ELOCKED
 * names the process that has it, where that is known. On any other error the lock is taken as far
 * as it could be, and the caller decides: a folder that cannot be written can be looked at. */
struct weir__namespace_lock {
    struct weir__file *folder, *file;
};

int weir__namespace_lock(struct weir__namespace_lock *out, struct weir__fs *, const char *dir,
                         struct weir_error *);
void weir__namespace_unlock(struct weir__namespace_lock *);

/* The folder of a hub's log, in a data folder whose path has at most WEIR__CATALOG_DIR_MAX bytes. */
#define WEIR__HUB_PATH_BYTES (WEIR__CATALOG_DIR_MAX + 32)
void weir__namespace_hub_dir(const char *dir, uint64_t hub_id, char out[WEIR__HUB_PATH_BYTES]);

/* ---- hubs and groups ---- */

struct weir__hub_config {
    const char *name;
    uint32_t partitions;       /* 1 to 1024 */
    int64_t retain_ms;         /* 0: 7 days; negative: for ever */
    uint64_t retain_bytes;     /* 0: no limit */
    const char *const *groups; /* besides $Default, which may be named too */
    uint32_t group_count;
};

int weir__namespace_hub_create(struct weir__namespace *, const struct weir__hub_config *,
                               struct weir_error *);

enum weir__hub_member {
    WEIR__HUB_PARTITIONS = 1,
    WEIR__HUB_RETAIN_MS = 2,
    WEIR__HUB_RETAIN_BYTES = 4
};

struct weir__hub_changes {
    unsigned given;        /* a set of the above; the others stay as they are */
    uint32_t partitions;   /* as many as there are, or more */
    int64_t retain_ms;     /* as above */
    uint64_t retain_bytes; /* as above */
};

/* Changes a hub in use, and at once: what is kept, from the log's next step on; how many partitions
 * there are, for the next event. Events that are there stay where they are, so those of a key may
 * then be in two partitions. WEIR_EINVAL: less partitions than there are, or too many. */
int weir__namespace_hub_update(struct weir__namespace *, const char *name,
                               const struct weir__hub_changes *, struct weir_error *);

/* A folder hub-<id> that may have events and that no hub owns: the catalogue was lost or is an old
 * one. */
struct weir__orphan {
    uint64_t id;
    uint32_t partitions; /* 0: its control file cannot be read */
};

/* As of the opening, less those that were adopted. fn is called under a lock, as below. */
typedef int (*weir__namespace_orphan_fn)(const struct weir__orphan *, void *user);
int weir__namespace_orphan_each(struct weir__namespace *, weir__namespace_orphan_fn, void *user);

/* The same of a folder that is not open: for inspecting. Changes nothing. */
int weir__namespace_find_orphans(struct weir__fs *, const char *dir, const struct weir__catalog *,
                                 weir__namespace_orphan_fn, void *user, struct weir_error *);

/* Makes a hub of an orphan, with $Default as its one group and no rules. Events are kept for ever,
 * so that none goes before somebody has decided. WEIR_ENOTFOUND: there is no such orphan.
 * WEIR_ECORRUPT: its control file cannot be read, or is of another hub. */
int weir__namespace_adopt(struct weir__namespace *, uint64_t id, const char *name,
                          struct weir_error *);

/* Its receivers are told at once (WEIR_ENOTFOUND). */
int weir__namespace_hub_delete(struct weir__namespace *, const char *name, struct weir_error *);

int weir__namespace_group_add(struct weir__namespace *, const char *hub, const char *group,
                              struct weir_error *);

/* Its receivers are told at once. $Default stays: WEIR_EDENIED. */
int weir__namespace_group_remove(struct weir__namespace *, const char *hub, const char *group,
                                 struct weir_error *);

/* Called under a lock: it must not call the namespace. The hub lives for the call. Not 0 stops. */
typedef int (*weir__namespace_hub_fn)(const struct weir__catalog_hub *, void *user);

/* Every hub in the order of creation; returns what fn returned last. */
int weir__namespace_hub_each(struct weir__namespace *, weir__namespace_hub_fn, void *user);

/* One hub. WEIR_ENOTFOUND. */
int weir__namespace_hub_show(struct weir__namespace *, const char *name, weir__namespace_hub_fn,
                             void *user, struct weir_error *);

/* A hub to work with; weir__hub_release gives it back. Opens its log when it is the first to come.
 * WEIR_ENOTFOUND, or the error that its log cannot be opened with. */
int weir__namespace_use(struct weir__namespace *, const char *name, struct weir__hub **out,
                        struct weir_error *);

/* ---- access; a hub of NULL means the namespace itself ---- */

/* Copied. Empty keys are made. */
int weir__namespace_rule_add(struct weir__namespace *, const char *hub, const struct weir__rule *,
                             struct weir_error *);
int weir__namespace_rule_remove(struct weir__namespace *, const char *hub, const char *name,
                                struct weir_error *);

/* Replaces one key by the one given (copied), or by a new one when it is NULL. */
int weir__namespace_rule_rotate(struct weir__namespace *, const char *hub, const char *name,
                                enum weir__access_which, const char *key, struct weir_error *);

/* Copies up to `room` rules out; *out_count is how many there are. */
int weir__namespace_rules(struct weir__namespace *, const char *hub, struct weir__rule *out,
                          uint32_t room, uint32_t *out_count, struct weir_error *);

/* A rule with every right, for whoever may read the folder anyway: it is in no list, and no other can
 * have its name. The same at every call. Its primary key is kept in the folder, so that programs that
 * have it come in again after a restart; where it cannot be written, it lasts until the close. */
#define WEIR__NAMESPACE_OWNER "$owner"
int weir__namespace_own(struct weir__namespace *, struct weir__rule *out, struct weir_error *);

/* Whether a token is good for a resource, at a time: see weir__access_token_check. resource is an
 * URI or a path as it stands, without escapes. */
int weir__namespace_verify(struct weir__namespace *, struct weir__bytes token,
                           struct weir__bytes resource, int64_t now_s,
                           struct weir__access_grant *out, struct weir_error *);

/* What a grant is worth now, for the path that it was shown for: 0 when its rule, or its key, is
 * gone. */
unsigned weir__namespace_rights(struct weir__namespace *, const struct weir__access_basis *,
                                const struct weir__access_path *);

/* changed is called after each change of a rule that was there, before the change returns, under a
 * lock: it must not call the namespace. One at a time; NULL: nobody. */
void weir__namespace_watch_rules(struct weir__namespace *, void (*changed)(void *user), void *user);

#define WEIR__NAMESPACE_ID_BYTES 33 /* hexadecimal, its NUL included */

/* The folder's id: made at the first call, and the same ever after, wherever the folder goes. */
int weir__namespace_id(struct weir__namespace *, char out[WEIR__NAMESPACE_ID_BYTES],
                       struct weir_error *);

/* Of the disk that the folder lies on. */
int weir__namespace_space(struct weir__namespace *, struct weir__fs_space *out,
                          struct weir_error *);

/* ---- keeping ---- */

struct weir__upgrade {
    uint32_t hubs, hubs_upgraded, hubs_failed;
    bool catalog_upgraded;
};

/* Brings what is of an older format version to the newest, at once: the log of a hub, which its
 * first use would do, and then the catalogue, which its next change would. A hub that fails does not
 * keep the others from it; the first error is returned. */
int weir__namespace_upgrade(struct weir__namespace *, struct weir__upgrade *out,
                            struct weir_error *);

/* With no_threads: weir__hub_step of every open hub; the first error is returned. */
int weir__namespace_step(struct weir__namespace *, struct weir_error *);

#endif
