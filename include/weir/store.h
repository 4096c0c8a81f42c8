/* store.h - where the copies of a program keep who owns which partition and how far it has come.
 *
 * A store is a handle from weir_store_open, which takes a URL, or from one of the other constructors
 * below, and given to weir_processor_start. It holds, for each scope (namespace, hub, consumer
 * group):
 *
 *   - a member for each running copy, renewed at every beat;
 *   - a record for each partition that was ever owned: owner, epoch, checkpoint.
 *
 * Times are the store's own, so copies need not agree on a clock. Everything that changes a record
 * says which one it means to change and is refused when that is no longer the one: WEIR_EFENCED. So
 * of two copies that want a partition one gets it, and what a copy says about a partition it has
 * lost changes nothing.
 *
 * This is a port: the seven functions are all that a new backend writes, and tests/contract/store_*
 * is what it has to pass. Calls on one handle are made by one thread at a time and return within the
 * handle's own deadline. WEIR_EUNREACHABLE and WEIR_ETIMEDOUT: the store did not answer, and what was
 * asked for may have been done. */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "weir/error.h"
#include "weir/event.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_STORE_VERSION 1
#define WEIR_OWNER_BYTES 129        /* of a copy's name, its NUL included */
#define WEIR_STORE_VERSION_BYTES 72 /* of a record's version, its NUL included */

/* Whose records. Names are compared as bytes: whoever makes a scope has put them in lower case. */
struct weir_scope {
    const char *space; /* the host of the namespace; a folder's id for a folder */
    const char *hub;
    const char *group;
};

/* One running copy. */
struct weir_member {
    char id[WEIR_OWNER_BYTES];
    uint64_t instance; /* which start of it: a restarted copy of the same name is another one */
    uint32_t weight;   /* its share relative to the others'; 0: it is leaving and takes nothing */
    int64_t expire_ms; /* how long it may be silent before the others count it as dead */
    int64_t beat_ms;   /* the store's time of its last beat; given by the store */
};

/* One partition. What it says of owners and what it says of checkpoints change independently.
 *
 * An owner whose instance is 0 is foreign: a copy of a program that is built on another library and
 * shares the partitions by the records alone. It has no member; it lives as long as it renews its
 * records, and looks at modified_ms of ours. */
struct weir_record {
    uint32_t partition;
    int rc; /* WEIR_ECORRUPT: it is there and cannot be understood; nothing else is set. Else 0 */

    char owner[WEIR_OWNER_BYTES]; /* "": nobody */
    uint64_t instance;            /* which start of the owner; 0: a foreign one, see above */
    int64_t epoch;                /* grows by one with each new owner; 0: there was none yet */
    int64_t acquired_ms;          /* since when it is this owner's */
    int64_t modified_ms;          /* last written by anybody; of a foreign one: last renewed */
    char version[WEIR_STORE_VERSION_BYTES]; /* of its owner; "": there is no record yet */

    bool marked;                         /* there is a checkpoint: */
    char offset[WEIR_OFFSET_TEXT_BYTES]; /* done up to and with this event; "": not known */
    uint64_t sequence;                   /* likewise */
    uint64_t rewinds; /* how often it was set by hand: the owner goes on from there when it grows */
};

/* A whole scope at one moment. The arrays are the view's and grow as needed; weir_view_free. */
struct weir_view {
    int64_t now_ms;  /* the store's clock */
    uint64_t change; /* 0, or a number that grows with every claim and set: when it is still what
                        the view holds, read leaves the records as they are, older marks and all */
    struct weir_member *members; /* by id, as bytes; a store forgets one long after it expired */
    size_t member_count, member_cap;
    struct weir_record *records; /* by partition; what has no record is absent */
    size_t record_count, record_cap;
};

WEIR_API void weir_view_free(struct weir_view *); /* what it holds, not the struct */

/* A checkpoint to be written by the owner of a partition. */
struct weir_mark {
    uint32_t partition;
    int64_t epoch;    /* the owner's, as it was claimed */
    uint64_t rewinds; /* of the record the owner started from */
    uint64_t turn;    /* from 1, more with each mark of this owner and epoch, the repeated too */
    char offset[WEIR_OFFSET_TEXT_BYTES];
    uint64_t sequence;
    int rc; /* out: 0, or WEIR_EFENCED: owner, epoch or rewinds are not these any more, or a later
               turn came before it: a call that was given up may still be under way */
};

struct weir_store;

struct weir_store_ops {
    int version; /* WEIR_STORE_VERSION */

    /* Says that a member lives, and makes it when it is new. WEIR_EEXIST: another instance of that
     * id is alive by its own expire_ms; the text says when it was last heard of. WEIR_EFENCED: this
     * very instance has left; it is a call that comes late. */
    int (*beat)(struct weir_store *, const struct weir_scope *, const struct weir_member *,
                struct weir_error *);

    /* Removes a member, if it is still this instance. */
    int (*leave)(struct weir_store *, const struct weir_scope *, const struct weir_member *,
                 struct weir_error *);

    /* Brings a view up to date; when it fails the view is as it was. */
    int (*read)(struct weir_store *, const struct weir_scope *, struct weir_view *,
                struct weir_error *);

    /* Gives a partition to an owner, who need not be the caller, with the next epoch; or to nobody
     * ("", 0), or to whom it has already (a renewal), with the epoch it has. *out is the record as
     * it is then; it may be *expected itself. WEIR_EFENCED: the record is not at the expected
     * version any more, or cannot be understood, and nothing changed. */
    int (*claim)(struct weir_store *, const struct weir_scope *, const struct weir_record *expected,
                 const char *owner, uint64_t instance, struct weir_record *out,
                 struct weir_error *);

    /* Writes checkpoints for their owner, each for itself: 0 when the store answered, and then each
     * mark has its own rc. No partition comes twice. A mark may be lower than the one that is
     * there: the owner knows why. */
    int (*mark)(struct weir_store *, const struct weir_scope *, const char *owner,
                struct weir_mark *marks, size_t count, struct weir_error *);

    /* Sets a checkpoint by hand, or removes it when mark is NULL; epoch and rewinds of the mark are
     * not looked at, nor its turn. The record's own rewinds grows by one, so marks under way are
     * refused. Makes the record when there is none, and anew when it cannot be understood. */
    int (*set)(struct weir_store *, const struct weir_scope *, uint32_t partition,
               const struct weir_mark *mark, struct weir_error *);

    void (*close)(struct weir_store *); /* and frees it; never NULL */
};

/* First member of each backend's own struct. */
struct weir_store {
    const struct weir_store_ops *ops;
};

/* Frees it. NULL is allowed. */
WEIR_API void weir_store_close(struct weir_store *);

struct weir_store_options {
    size_t size;
    int64_t call_ms; /* how long one call may take; 0: 1,000, a third of a copy's usual expiry */
};

/* By a URL: "memory:NAME" or "sqlite:PATH", which are the next two. WEIR_EINVAL: it is no such URL.
 * WEIR_ENOTSUP: it is PostgreSQL's; weir_store_postgres takes it, in a library of its own. No text
 * repeats a password of the URL. */
WEIR_API int weir_store_open(struct weir_store **out, const char *url,
                             const struct weir_store_options *, struct weir_error *);

/* In this process alone; every handle of one name is the same store. Gone when the last is closed. */
WEIR_API int weir_store_memory(struct weir_store **out, const char *name,
                               const struct weir_store_options *, struct weir_error *);

/* One SQLite file for any number of processes of one machine, made when it is missing. */
WEIR_API int weir_store_sqlite(struct weir_store **out, const char *path,
                               const struct weir_store_options *, struct weir_error *);

/* Tables of a PostgreSQL database, made when they are missing; in libweir-postgres. The first call
 * connects, and any later one connects again when it has to. */
WEIR_API int weir_store_postgres(struct weir_store **out, const char *url,
                                 const struct weir_store_options *, struct weir_error *);

#ifdef __cplusplus
}
#endif
#endif
