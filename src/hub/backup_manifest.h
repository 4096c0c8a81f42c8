/* backup_manifest.h - what a backup holds. The bytes are drawn in backup_manifest.c. */
#ifndef WEIR_HUB_BACKUP_MANIFEST_H
#define WEIR_HUB_BACKUP_MANIFEST_H

#include "hub/backup.h"
#include "hub/catalog.h"
#include "log/backup.h"

#define WEIR__MANIFEST_VERSION 1u
#define WEIR__MANIFEST_BYTES_MAX (256u << 20)
#define WEIR__DIGEST_BYTES 32u
#define WEIR__MANIFEST_ID_BYTES 33 /* of a folder's id, with its NUL */
#define WEIR__BACKUP_PATH_BYTES (WEIR__CATALOG_DIR_MAX + 96)

/* A segment file of the backup. */
struct weir__manifest_segment {
    uint64_t number; /* 0: it has no readable header */
    uint64_t base, previous_end, end;
    uint64_t epoch;
    uint64_t name; /* the number in its file's name, here */
    struct weir__backup_extent extent;
    uint64_t damaged;                   /* places that could not be read when it was copied */
    uint8_t digest[WEIR__DIGEST_BYTES]; /* SHA-256 of the bytes that count */
    bool fresh;     /* in memory: copied by this run, and its batches not checked yet */
    uint64_t whole; /* in memory: in front of it nothing was damaged when it was copied */
};

/* A file of the hub's folder that is neither a segment nor the control file. It lies in the backup
 * as NNNNNNNN.aux, and beside it under its own name, which follows from the manifest. */
#define WEIR__MANIFEST_NAME_BYTES 40

struct weir__manifest_extra {
    char name[WEIR__MANIFEST_NAME_BYTES]; /* with its NUL */
    uint64_t aux;                         /* NNNNNNNN */
    uint64_t bytes;
    uint8_t digest[WEIR__DIGEST_BYTES];
};

struct weir__manifest_hub {
    uint64_t id;
    uint64_t source_version; /* of the control file that was read */
    uint64_t end;            /* the moment */
    uint64_t events;
    uint64_t next_name;           /* of its files; names are never used twice */
    struct weir__control control; /* for the copy, without a generation; heads are the hub's own */
    struct weir__manifest_segment *segments; /* by number */
    uint32_t segment_count;
    struct weir__manifest_extra *extras;
    uint32_t extra_count;
};

struct weir__manifest {
    uint64_t generation; /* 0: no backup was finished yet */
    int64_t began_ms, moment_ms;
    char id[WEIR__MANIFEST_ID_BYTES]; /* the folder's; empty: it had none */
    struct weir__catalog catalog;
    struct weir__manifest_hub *hubs; /* in the catalogue's order */
    uint32_t hub_count;
    int copy; /* in memory: which of the two it was read from */
};

void weir__manifest_init(struct weir__manifest *);
void weir__manifest_fini(struct weir__manifest *);
void weir__manifest_hub_fini(struct weir__manifest_hub *);

/* NULL: there is none. */
struct weir__manifest_hub *weir__manifest_hub(const struct weir__manifest *, uint64_t id);

/* A copy of its own, but for the segments' `fresh`. */
int weir__manifest_hub_copy(struct weir__manifest_hub *out, const struct weir__manifest_hub *,
                            struct weir_error *);

/* As bytes and back. Any bytes may be given: WEIR_ECORRUPT, WEIR_EVERSION; out is then empty. */
int weir__manifest_encode(const struct weir__manifest *, struct weir__buf *, struct weir_error *);
int weir__manifest_decode(struct weir__manifest *out, struct weir__bytes, struct weir_error *);

/* How the copy stands that was not taken. */
enum weir__manifest_other {
    WEIR__MANIFEST_EQUAL,
    WEIR__MANIFEST_OLDER, /* a run did not get to its end */
    WEIR__MANIFEST_BAD
};

/* The newer good copy. WEIR_ENOTFOUND: there is no manifest. WEIR_ECORRUPT: there is no good one. */
int weir__manifest_load(struct weir__fs *, const char *dir, struct weir__manifest *out,
                        enum weir__manifest_other *out_other, struct weir_error *);

/* Writes one copy durably; `second` the one that the generation does not belong to. WEIR_EUNKNOWN:
 * it may be there or not. Any other error: it is not. */
int weir__manifest_write(struct weir__fs *, const char *dir, const struct weir__manifest *,
                         bool second, struct weir_error *);

/* A running SHA-256. begin fails for want of memory only; end frees. */
struct weir__digest {
    void *state;
};

int weir__digest_begin(struct weir__digest *, struct weir_error *);
int weir__digest_add(void *digest, const void *at, size_t len, struct weir_error *);
void weir__digest_end(struct weir__digest *, uint8_t out[WEIR__DIGEST_BYTES]);

/* ---- backup_folder.c ---- */

/* DIR/hub-<id>/NNNNNNNN.seg */
void weir__backup_segment_path(const char *dir, uint64_t hub_id, uint64_t name,
                               char out[WEIR__BACKUP_PATH_BYTES]);

/* Makes a folder, durably. WEIR_EEXIST. */
int weir__backup_make_dir(struct weir__fs *, const char *dir, struct weir_error *);

/* Takes the folder of a backup: made when missing, locked, with a manifest. */
struct weir__backup_folder {
    struct weir__fs *fs;
    const char *dir;
    struct weir__file *lock;
    struct weir__manifest manifest; /* the former one */
    bool made;                      /* by this run */
    bool unfinished;                /* an earlier run did not get to its end */
};

int weir__backup_folder_take(struct weir__backup_folder *, struct weir__fs *, const char *dir,
                             struct weir_error *);
/* undo: what this run left is removed, the folder too when this run made it. */
void weir__backup_folder_leave(struct weir__backup_folder *, bool undo);

/* Removes files of hubs that the manifest does not name. *out_segments counts. */
int weir__backup_sweep(struct weir__fs *, const char *dir, const struct weir__manifest *,
                       uint64_t *out_segments, struct weir_error *);

/* Writes the files that follow from the manifest: control files, catalogue, id, and with `aux` the
 * extra files from their aux files. Control files of hubs that `former` has the same are left alone;
 * NULL: all are written. */
int weir__backup_write_rest(struct weir__fs *, const char *dir, const struct weir__manifest *,
                            const struct weir__manifest *former, bool aux, struct weir_error *);

/* WEIR_ECORRUPT: one of them is not what the manifest says. */
int weir__backup_check_rest(struct weir__fs *, const char *dir, const struct weir__manifest *,
                            struct weir_error *);

/* What the manifest says in sum. */
void weir__manifest_sum(const struct weir__manifest *, struct weir__backup_result *);

/* ---- backup_extra.c ---- */

/* Copies the extra files of a hub into the backup, under names that its next_name gives. Called
 * soon after the moment was taken: what such a file has of later than that, opening the copy
 * leaves out. */
int weir__backup_extras(const struct weir__backup_log *, const char *to,
                        const struct weir__manifest_hub *former, struct weir__manifest_hub *hub,
                        struct weir_error *);

/* Reads them, from NNNNNNNN.aux, or under their own names, and compares; copies them to their own
 * names in another folder when to is given. */
int weir__backup_extras_pass(struct weir__fs *, const char *from, bool aux, const char *to,
                             const struct weir__manifest_hub *, struct weir_error *);

/* Whether a file of a hub's folder in the backup is one of them. */
bool weir__backup_extra_named(const struct weir__manifest_hub *, const char *file);

/* ---- backup_hub.c ---- */

struct weir__backup_job {
    const struct weir__backup_options *options;
    struct weir__backup_log log; /* the hub's, in the folder that is read */
    const char *hub_name;
    const char *to;                          /* the folder of the backup */
    const struct weir__manifest_hub *former; /* NULL: it was not in it */
    struct weir__manifest_hub *pool;         /* what this run copied of it before */
    struct weir__backup_result *result;
    bool at_source; /* after an error: it is the hub in the folder that cannot be backed up */
};

/* Makes the hub's folder, names its files, copies its extra files. */
int weir__backup_hub_begin(struct weir__backup_job *, const struct weir__backup_moment *,
                           struct weir__manifest_hub *out, struct weir_error *);

/* Then copies what is missing of its segments. WEIR_EBUSY: the moment must be taken again. */
int weir__backup_hub(struct weir__backup_job *, const struct weir__backup_moment *,
                     struct weir__manifest_hub *out, struct weir_error *);

/* Whether the backup has a segment whole. Fails with an error that passes, which must not cost a copy. */
int weir__backup_is_good(const struct weir__backup_job *, const struct weir__manifest_segment *,
                         bool *out, struct weir_error *);

/* ---- backup_guard.c ---- */

/* WEIR_ECORRUPT: the hub, whose oldest segment in the folder is `first`, would take the place of a good
 * copy of the former backup that has what it has not. */
int weir__backup_guard(const struct weir__backup_job *, const struct weir__manifest_hub *,
                       uint64_t first, struct weir_error *);

#endif
