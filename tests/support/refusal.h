/* refusal.h - a disk that refuses one call, for every call of a deed.
 *
 * Each deed is done on a copy of a prepared disk, once for every outside call that it makes, and that
 * call fails. The deed must fail and name the cause, or tell it to the logger, or as a finding. How
 * many calls may fail without a word is said with the deed, and how much waits for a sync once it is
 * done. The error is one that nothing takes for a bad sector or a full disk. */
#ifndef WEIR_SUPPORT_REFUSAL_H
#define WEIR_SUPPORT_REFUSAL_H

#include "base/thread.h"
#include "log/backup.h"
#include "log/log.h"
#include "support/simfs.h"

#define REFUSAL_DIR "log"
#define REFUSAL_PARTITIONS 3u
#define REFUSAL_SEGMENT_BYTES 65536u
#define REFUSAL_WAIT weir__deadline_ns(20000)

struct refusal_stage {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options o;
    struct weir__log *log; /* closed at the end, as what follows; or NULL */
    struct weir__log_reader *reader;
    struct weir__backup_log outside;
    struct weir__backup_moment moment;
    bool told; /* the failure, otherwise than by the deed's answer */
};

struct refusal_deed {
    const char *name;
    struct simfs *(*disk)(void);
    void (*begin)(struct refusal_stage *); /* or NULL; nothing is refused yet */
    int (*run)(struct refusal_stage *, struct weir_error *);
    unsigned untold;  /* calls that fail without a word */
    uint64_t waiting; /* for a sync, see simfs_pending */
};

/* False: something is wrong, and out_text says what. */
bool refusal_try(const struct refusal_deed *, char out_text[512]);

/* ---- disks to begin on; all that is on them is synced ---- */

struct simfs *refusal_empty(void);
struct simfs *refusal_filled(void);   /* a closed log of several segments, with producers */
struct simfs *refusal_torn(void);     /* its last write reached the disk in part */
struct simfs *refusal_mixed(void);    /* with files that are none of the log's */
struct simfs *refusal_lost(void);     /* the same, and without its control file */
struct simfs *refusal_headless(void); /* a segment without both of its headers */

/* ---- steps on the way ---- */

void refusal_open(struct refusal_stage *);
struct weir__log_batch refusal_batch(uint32_t number); /* of a producer of its own */
void refusal_append(struct refusal_stage *, uint32_t from, uint32_t count);

#endif
