/* workload.h - a log on a simulated disk, and a seeded run of everything one can do to it.
 *
 * Appends of all sizes, waited for or not, with and without producers; flushes, upkeep, time that
 * passes and jumps, rolls, retention, recycling, closing and reopening. What came of it stands in the history. Without threads: the same seed makes the same calls. */
#ifndef WEIR_SUPPORT_WORKLOAD_H
#define WEIR_SUPPORT_WORKLOAD_H

#include "support/history.h"
#include "support/simfs.h"

#define WORKLOAD_DIR "log"
#define WORKLOAD_PRODUCERS 3u /* ids from 1 on, in every partition */

struct workload {
    struct simfs *disk;
    struct simclock clock;
    struct weir__log_options options; /* may be changed before workload_start */
    struct weir__log *log;            /* NULL: closed */
    struct history *history;
    uint64_t dice;
    int64_t latest_ms; /* that the wall clock would ever have shown, had it not been set back, */
    int64_t back_ms;   /* which it was by so much */
    bool created;      /* weir__log_create has returned 0 */
    bool small;        /* small batches only: more of them fit, nothing rolls */
    bool aligned;      /* batches of whole blocks: what is written ends where a ghost may begin */
};

/* Sets everything up but does nothing yet. */
void workload_init(struct workload *, uint64_t seed);
void workload_fini(struct workload *); /* closes what is open */

/* Creates the log when it was not, and opens it. */
int workload_open(struct workload *, struct weir_error *);
int workload_close(struct workload *);

/* The active segment is left for the next one, however little is in it. */
void workload_roll(struct workload *);

/* One thing, chosen by the dice. Returns what the log said: not 0 is for the caller to judge. */
int workload_step(struct workload *);

/* The machine loses power and comes up again on what the disk kept; the log is opened and settled
 * with its history. Failure to open is a violation, unless the history allows for failures. The
 * hook goes along. */
void workload_crash(struct workload *, enum simfs_keep, uint64_t n);

/* The same on a disk that a loss of power left earlier; taken. */
void workload_adopt(struct workload *, struct simfs *left);

#endif
