/* backup.h - copies of a data folder, made while it is in use, and back.
 *
 * A backup is a folder with the layout of a data folder and a manifest (backup_manifest.c). What is
 * in it is one moment of the folder: of each hub the batches in front of one position, all of them.
 * The moments of the hubs are taken one right after another, before anything is copied.
 *
 *   backup.c            the run: moments, copies, commit
 *   backup_hub.c        one hub: which segments are copied, reused, dropped
 *   backup_guard.c      that it does not give up what it alone has
 *   backup_extra.c      its files that are no segments
 *   backup_manifest.c   what a backup holds, on disk in two copies
 *   backup_folder.c     the folder of a backup: taking it, sweeping it
 *   restore.c           checking a backup, and making a data folder from it
 *
 * Until the new manifest is on disk the former one and every file it names are whole; from then on
 * the new one is. Files that no manifest names are removed by the next run. */
#ifndef WEIR_HUB_BACKUP_H
#define WEIR_HUB_BACKUP_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/logging.h"
#include "base/rand.h"
#include "log/fs.h"

struct weir__backup_options {
    struct weir__fs *fs;        /* NULL: the machine's */
    struct weir__clock clock;   /* zero: the machine's */
    struct weir__rand rand;     /* zero: the machine's */
    struct weir__logger logger; /* zero: silence. Each damaged place is a line */
    bool no_verify;             /* do not check the batches of what is copied */
    bool keep_expired;          /* segments that expired in the folder stay in the backup */
};

struct weir__backup_result {
    uint32_t hubs;
    uint64_t events;
    int64_t moment_ms;    /* wall clock when the last hub's end was taken */
    int64_t spread_ms;    /* between the first hub's and the last hub's */
    int64_t last_time_ms; /* enqueued time of the newest event; 0: there is none */
    uint64_t segments_copied, segments_reused, segments_removed;
    uint64_t bytes_copied, bytes_reused; /* of segments, without their holes */
    uint64_t damaged;   /* places that cannot be read, now or when they were copied */
    uint64_t left_out;  /* hubs that could not be read at all, and orphans */
    uint64_t kept_good; /* segments that the folder has damaged or lost, and the backup has whole */
};

/* Backs up the folder dir into the folder to, which is made when it is missing. Reads dir only, and
 * takes no lock on it. Returns 0 also when there is damage: out counts it.
 * WEIR_ENOTFOUND: dir is no data folder. WEIR_EINVAL: `to` holds something else, or a backup of
 * another folder. WEIR_ELOCKED: another process is at `to`. WEIR_EBUSY: the folder changes too fast.
 * After an error `to` is the backup it was before, or is gone when there was none;
 * WEIR_EUNKNOWN: it may also be the new one. */
int weir__backup_run(const char *dir, const char *to, const struct weir__backup_options *,
                     struct weir__backup_result *out, struct weir_error *);

/* Reads every byte of a backup and compares it with the manifest. Damage that the folder had when
 * it was backed up is counted, not an error. WEIR_ECORRUPT: the backup is not what was written.
 * WEIR_ENOTFOUND: not a backup. */
int weir__backup_check(const char *from, const struct weir__backup_options *,
                       struct weir__backup_result *out, struct weir_error *);

/* Makes a data folder from a backup that passes the check; dir must be missing or empty. What was
 * written is read again and compared. After an error dir is as it was. */
int weir__backup_restore(const char *from, const char *dir, const struct weir__backup_options *,
                         struct weir__backup_result *out, struct weir_error *);

/* WEIR_EINVAL when the folder is a backup: it must not be opened for use. */
int weir__backup_refuse(struct weir__fs *, const char *dir, struct weir_error *);

#endif
