/* state.h - what the files of this room share: the open log. Nobody outside includes it.
 *
 * One lock. It guards everything below that is not marked otherwise; nobody holds it during a disk
 * operation. Whoever writes to the disk for the log (a group, a new segment, the control file) is
 * the leader, one at a time: `leading` is that role, taken and given back under the lock.
 *
 * Invariants:
 *   control.watermark <= synced <= visible <= tail.end
 *   visible == synced unless sync_ms is set
 *   queue[head..commit) are durable and wait for their completion to run; [commit..tail) are not
 *   heads are as at tail.end, durable_heads as at visible
 *   the last of segments is the active one; only it grows */
#ifndef WEIR_LOG_STATE_H
#define WEIR_LOG_STATE_H

#include "base/thread.h"
#include "log/batch.h"
#include "log/blocks.h"
#include "log/index.h"
#include "log/log.h"
#include "log/pool.h"
#include "log/producer_file.h"
#include "log/retention_clock.h"
#include "log/segment.h"
#include "log/tail.h"

#define WEIR__LOG_GROUP_BYTES_MAX (4u << 20) /* of one write and sync; a larger batch goes alone */
#define WEIR__LOG_PENDING_MAX 65536u         /* batches taken in whose completion has not run */
#define WEIR__LOG_READ_FILES_MAX 64          /* segment files kept open for readers */
#define WEIR__LOG_DAMAGES_MAX 64 /* damaged ranges remembered by place; more are counted */
#define WEIR__LOG_UNREAD_MAX 16  /* batches that could not be read, remembered by place */
#define WEIR__LOG_MARK_MS 1000   /* an idle log's watermark reaches its end after this */
#define WEIR__LOG_STEP_MS 1000   /* how often the keeper looks at a log that is written to */
#define WEIR__LOG_TELL_MS 60000  /* how often it tells of an error that stays the same */
#define WEIR__LOG_REST_MS 60000  /* and at one that is not, when nothing is due earlier */
#define WEIR__LOG_IDLE_MS 5000   /* a log that was not written to for so long gives memory back */
#define WEIR__LOG_RETAIN_MS_DEFAULT (INT64_C(7) * 24 * 3600 * 1000)

#define WEIR__LOG_QUEUE_FIRST 16u /* places of the queue when nothing was taken in yet */
#define WEIR__GUESS_BYTES 160
#define WEIR__WATCH_WORDS (WEIR__LOG_PARTITIONS_MAX / 64)

/* What a thread in weir__log_append_wait waits for; on its stack. */
struct weir__log_waiter {
    bool done;
    int rc;
    struct weir_error err;
};

/* A batch between being taken in and its completion. */
struct weir__log_pending {
    struct weir__log_receipt receipt;
    uint64_t end; /* position behind it */
    uint32_t partition, count, body_bytes;
    int rc;
    weir__log_done_fn done; /* NULL: nobody to call */
    void *user;
    struct weir__log_waiter *waiter;
    uint64_t producer_id;
    struct weir__producer before; /* see weir__producers_use */
};

/* An opening ends with an epoch of its own in the control file. On a full disk that may have no
 * room: then the log is read only, and the first append that finds room ends the opening. */
enum weir__log_opening { WEIR__LOG_EPOCH_WAITS, WEIR__LOG_EPOCH_BEGUN };

/* What a control file says of the end of the log. */
struct weir__log_end {
    uint64_t last_segment;
    struct weir__control_active active;
    uint64_t watermark, epoch_start;
    uint32_t epoch;
};

/* A batch that the disk did not give. */
struct weir__log_unread {
    uint64_t position;
    int64_t since_mono_ms;
};

struct weir__log_damage {
    uint64_t from, to; /* log positions */
    char name[WEIR__SEGMENT_NAME_BYTES];
    uint64_t at; /* in that file */
};

/* Those who watch one partition; see watch.c. */
struct weir__watch_list {
    struct weir__log_watch *waiting, *telling;
    uint32_t count; /* of waiting */
    uint64_t round;
};

/* With a lock of its own, which is taken without the log's or behind it. */
struct weir__watches {
    struct weir__mutex lock;
    struct weir__cond told;         /* the job has ended */
    struct weir__watch_list *lists; /* per partition */
    uint32_t armed;                 /* of all; read atomically without the lock */
    struct weir__pool_job job;
    uint64_t news[WEIR__WATCH_WORDS]; /* partitions whose watchers the job is to tell, */
    uint32_t at;                      /* and the one it is at */
};

struct weir__log {
    /* Set at open, then constant, but for the number of partitions, which can grow. */
    struct weir__log_options o;
    char *dir;
    struct weir__fs *fs;
    struct weir__file *folder;       /* locked: one writer; and names are synced through it */
    struct weir__file *control_file; /* the leader's */
    uint32_t partitions;             /* changed by the leader, under the lock */

    struct weir__mutex lock;
    struct weir__cond room;      /* somebody may append, lead or stop waiting: state has changed */
    struct weir__log_pool *pool; /* NULL: no_threads */
    struct weir__pool_job flush; /* commits for those who do not wait, and all completions */
    struct weir__pool_member upkeep; /* what time brings */
    bool own_pool, closing;
    bool told_not_direct;
    uint32_t trouble;        /* the keeper's: checksum of the error it told last, 0: all is well, */
    int64_t trouble_mono_ms; /* and when it did */
    bool resting; /* the keeper will not look within WEIR__LOG_STEP_MS, unless it is asked to */
    bool leading;
    int room_waiters;    /* threads waiting on room, */
    int lead_waiters;    /* those of them that would lead when they wake up */
    bool completing;     /* a completion runs, */
    pthread_t completer; /* on this thread */
    uint64_t undone;     /* batches that were taken back, e.g. because of a full disk, */
    int undone_rc;       /* and why the last of them */

    struct weir__control control; /* the leader's, with control_file */
    uint32_t epoch;
    enum weir__log_opening opening;
    bool must_roll;  /* nothing more may be written to the active segment */
    bool roll_first; /* it is left before the control file names this opening, which would say that
                        nothing lies behind its end. Until then that file says what it said: */
    struct weir__log_end found;

    struct weir__segment **segments;
    size_t segment_count, segment_cap;
    struct weir__segment *spare;  /* a file ready to become the next segment */
    bool spare_refused;           /* none could be made the last time */
    bool making;                  /* the keeper is reserving space for one, */
    uint64_t makings;             /* and how often it has done so */
    uint64_t next_name;           /* atomic: the leader and the keeper make files */
    int read_files;               /* segments with an open reading handle */
    struct weir__segment *headed; /* a next segment that only the control file does not know yet */
    struct weir__segment *doomed; /* a file that may bear the next number: first it must go */
    bool want_roll;
    uint64_t roll_bytes; /* the largest batch that found no room; 0: it is for the age alone */
    int roll_rc; /* the last roll failed so: the next append that needs it tries again itself, */
    uint64_t roll_again; /* and upkeep does, for a batch of so many bytes */

    struct weir__head *heads, *durable_heads;
    struct weir__head *start_heads; /* before the active segment's first batch */
    struct weir__head *begin_heads; /* before the oldest segment's first batch */
    struct weir__head
        *sure_heads; /* up to here it is known what was in this lost segment; or NULL */
    uint32_t sure_count;
    uint64_t sure_segment; /* its number */
    struct weir__producers producers;
    struct weir__producer_file producer_file;
    struct weir__producers begun; /* epochs, perhaps without a batch yet; never on disk */
    struct weir__tail tail;
    struct weir__batch_before before; /* the last batch in the tail, for the next one's header */
    uint64_t visible, synced;
    int64_t last_time_ms;
    int64_t active_mono_ms;  /* when the active segment became it */
    bool filling_fast;       /* the one before was filled in no time: the next will be, too */
    int64_t active_since_ms; /* enqueued time of the active segment's first batch; 0: none yet */
    struct weir__keep_stamp active_since; /* and when it came on retention's clock */

    struct weir__log_pending *queue; /* ring of queue_cap places, a power of two */
    uint64_t queue_head, queue_commit, queue_tail;
    uint32_t queue_cap;

    struct weir__watches watches;
    uint64_t fresh[WEIR__WATCH_WORDS]; /* partitions with news that nobody was told of yet */
    bool any_fresh;

    int failed; /* the error that ended it, else 0 */
    struct weir_error failure;

    struct weir__log_damage damages[WEIR__LOG_DAMAGES_MAX];
    uint32_t damage_count;
    struct weir__log_unread unread[WEIR__LOG_UNREAD_MAX]; /* ring, newest at unread_count - 1 */
    uint32_t unread_count;
    struct weir__log_stats stats;

    int64_t written_mono_ms; /* when the last group was written */
    uint64_t marked;         /* the control file names at least this as its watermark */
    int64_t synced_mono_ms;  /* lazy mode: when it was last synced */
    struct weir__retention_clock keep;
    uint64_t boot; /* which run of the machine this is */
};

/* Retention's clock as it was when it was last moved: a count for the age of other things. */
static inline int64_t weir__log_keep_ms(const struct weir__log *log)
{
    return log->keep.keep_ms + log->keep.off_ms;
}

/* May be asked without the lock: it only grows. */
static inline uint32_t weir__log_partitions(const struct weir__log *log)
{
    return __atomic_load_n(&log->partitions, __ATOMIC_RELAXED);
}

static inline struct weir__segment *weir__log_active(struct weir__log *log)
{
    return log->segments[log->segment_count - 1];
}

static inline uint32_t weir__segment_index_seed(const struct weir__segment *seg)
{
    return seg->h.version == 1 ? 0 : seg->stamp.seed;
}

/* Where the batches of a sealed segment end is known from the segment behind it. When that one's
 * header is gone, `end` is the end of the file, and it is not known. */
static inline bool weir__segment_end_known(const struct weir__segment *seg)
{
    return seg->end < seg->h.base + seg->h.capacity;
}

/* Log position that no batch of it passes. */
static inline uint64_t weir__segment_limit(const struct weir__segment *seg)
{
    return seg->h.base + seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes);
}

/* What the stored index of a sealed segment must bear. */
static inline struct weir__index_stamp weir__segment_stamp(const struct weir__segment *seg)
{
    return (struct weir__index_stamp){seg->h.number, weir__segment_end_known(seg) ? seg->end : 0,
                                      weir__segment_index_seed(seg)};
}

/* "dir/name" into out. */
#define WEIR__LOG_PATH_BYTES 4096
int weir__log_path(const char *dir, const char *name, char out[WEIR__LOG_PATH_BYTES],
                   struct weir_error *);
int weir__log_open_name(struct weir__fs *, const char *dir, const char *name, unsigned flags,
                        struct weir__file **out, struct weir_error *);
int weir__log_remove_name(struct weir__fs *, const char *dir, const char *name,
                          struct weir_error *);

/* open.c */
int weir__log_new(struct weir__log **out, const struct weir__log_options *, struct weir_error *);
void weir__log_free(struct weir__log *);
int weir__log_size(struct weir__log *, uint32_t partitions, struct weir_error *); /* grows */
int weir__log_open_control(struct weir__log *, unsigned flags, struct weir_error *);
/* Makes room for the partitions it knows. *out_gone: there is none, or both copies are bad. */
int weir__log_load_control(struct weir__log *, int *out_bad_copies, bool *out_gone,
                           struct weir_error *);
/* Lock held, let go of inside: what a full disk kept the opening from. See enum weir__log_opening. */
int weir__log_finish_opening(struct weir__log *, struct weir_error *);

/* cut.c; without the lock */
struct weir__scan;
/* Saves what lies behind the end of the active segment, which the next group writes over; end_unknown:
 * it may have been acknowledged. */
int weir__cut_save(struct weir__log *, const struct weir__scan *, uint64_t end, bool end_unknown,
                   struct weir_error *);
/* Removes what was cut at positions below this one, which have expired. */
void weir__cut_expire(struct weir__log *, uint64_t below);

/* recover.c */
/* no_control: there is none, or none that can be read. */
int weir__log_recover(struct weir__log *, bool no_control, struct weir_error *);
void weir__log_note_damage(struct weir__log *, const struct weir__segment *, uint64_t from,
                           uint64_t to);

/* commit.c; with the lock held, which is let go of during disk operations */
/* Waits for a change; false past the deadline. may_lead: the caller will do work that is left. */
bool weir__log_wait(struct weir__log *, bool may_lead, int64_t deadline_ns);
void weir__log_pass_on(struct weir__log *);   /* to the pool, when work is left for it alone */
void weir__log_take_lead(struct weir__log *); /* waits for the role */
/* Gives the role back, and tells those who watch: the lock is let go of meanwhile. */
void weir__log_give_lead(struct weir__log *);
int weir__log_lead(struct weir__log *, struct weir_error *); /* one group, or the roll */
bool weir__log_has_work(const struct weir__log *);
void weir__log_stop(struct weir__log *, int rc, const struct weir_error *);
int weir__log_state_locked(struct weir__log *, struct weir_error *);
void weir__log_run_completions(struct weir__log *, uint64_t most);
int weir__log_sync_lazily(struct weir__log *, struct weir_error *);

/* upkeep.c: a roll failed that somebody needed, and is tried again; lock held. */
bool weir__roll_waits(const struct weir__log *);

/* roll.c */
int weir__log_roll(struct weir__log *, struct weir_error *); /* lock held, let go of inside */
/* Both copies, one after the other: should either go bad, the other knows the last segment and the
 * epoch, without which acknowledged batches would pass for ghosts. The leader's, without the lock.
 * WEIR_EFAILED: a sync failed, the caller stops the log. */
struct weir__log_end weir__log_said_end(const struct weir__control *);
int weir__log_write_control(struct weir__log *, struct weir_error *);
/* The control file is going to call this segment the active one. */
void weir__log_name_active(struct weir__log *, const struct weir__segment *);
/* When there is no space for it, one of half the size is tried, and so on down to `least`. */
int weir__log_make_segment(struct weir__log *, uint64_t capacity, uint64_t least,
                           struct weir__segment **out, struct weir_error *);
int weir__log_head_segment(struct weir__log *, struct weir__segment *, struct weir_error *);
int weir__log_remove_file(struct weir__log *,
                          const struct weir__segment *);                  /* warns if it cannot */
int weir__log_remove_segment(struct weir__log *, struct weir__segment *); /* and its memory */
int weir__log_push_segment(struct weir__log *, struct weir__segment *, struct weir_error *);
/* Names made or removed in the folder are durable when it returns 0. */
int weir__log_sync_names(struct weir__log *, struct weir_error *);
void weir__segment_close(struct weir__segment *); /* handles, index and memory; takes NULL */

/* append.c */
void weir__log_shrink_queue(struct weir__log *); /* lock held */

/* upkeep.c */
int weir__upkeep_start(struct weir__log *, struct weir_error *); /* threads, unless told not to */
void weir__upkeep_stop(struct weir__log *); /* returns when the pool has left; takes the lock */
void weir__upkeep_soon(struct weir__log *, int64_t after_ms); /* the keeper looks; lock held */
/* In how many milliseconds a step may have something to do; INT64_MAX: nothing is in sight. Lock
 * held. */
int64_t weir__upkeep_wait_ms(struct weir__log *);

/* watch.c */
bool weir__watch_size(struct weir__log *, uint32_t partitions); /* grows; false: out of memory */
void weir__watch_start(struct weir__log *);
void weir__watch_stop(struct weir__log *);     /* without the lock, when no more is committed */
void weir__watch_note_all(struct weir__log *); /* news for all partitions; lock held */
void weir__watch_tell(struct weir__log *);     /* lock held, let go of meanwhile */

/* There is news in a partition; lock held. */
static inline void weir__watch_note(struct weir__log *log, uint32_t partition)
{
    log->fresh[partition / 64] |= UINT64_C(1) << partition % 64;
    log->any_fresh = true;
}

/* retention.c; with the lock held, which is let go of during disk operations, unless it says so */
void weir__retention_start(struct weir__log *); /* needs no lock: once control and row are known */
struct weir__keep_time weir__retention_save(struct weir__log *);   /* takes the lock */
struct weir__keep_stamp weir__retention_stamp(struct weir__log *); /* takes the lock */
void weir__retention_tick(struct weir__log *);                     /* moves retention's clock */
/* The first batch of the active segment is durable. */
void weir__retention_begin(struct weir__log *, int64_t time_ms);
bool weir__retention_roll_due(
    const struct weir__log *);                      /* the active segment is old, or too large */
bool weir__retention_due(const struct weir__log *); /* the oldest segment may go */
int weir__retention_expire(struct weir__log *, struct weir_error *); /* lets it go */
void weir__retention_stats(struct weir__log *, struct weir__log_stats *out);
/* In how many milliseconds a roll by age or an expiry may be due; INT64_MAX: none in sight. */
int64_t weir__retention_wait_ms(struct weir__log *);

static inline uint64_t weir__segment_stored(const struct weir__segment *seg)
{
    return seg->end - seg->data;
}

/* gaps.c: what is known of events that were lost with the last segment, of which those in front of
 * `sure` were stored; begins with a colon. */
void weir__guess_text(char out[WEIR__GUESS_BYTES], uint64_t first, uint64_t sure, uint64_t last);

/* capacity.c; with the lock held */

/* Of a segment, so that a batch of this size fits into it. */
uint64_t weir__capacity_least(const struct weir__log *, uint64_t batch_bytes);
uint64_t weir__capacity_most(const struct weir__log *); /* no segment becomes larger */
/* Of the segment behind the active one, when that one is left because it is full, or old. */
uint64_t weir__capacity_next(const struct weir__log *, bool full, uint64_t batch_bytes);
bool weir__log_fits(const struct weir__log *, uint32_t partition, uint64_t batch_bytes);
uint64_t weir__capacity_enough(const struct weir__log *); /* what will do behind a full one */
bool weir__capacity_suits(const struct weir__log *, uint64_t capacity); /* of a spare */
/* Bytes that segments and the spare may take after upkeep; 0: there is no limit. */
uint64_t weir__log_disk_max(const struct weir__log *);
/* No index of so many stored bytes takes more. */
uint64_t weir__capacity_index_max(uint32_t partitions, uint64_t stored_bytes);
/* Whether it pays to give so much of a segment back. */
bool weir__capacity_worth(const struct weir__log *, const struct weir__segment *, uint64_t bytes);

/* spare.c; with the lock held, which is let go of during disk operations */
int weir__spare_prepare(struct weir__log *, struct weir_error *); /* makes one, or removes it */
/* A segment that has just left the row becomes the spare, or goes. Taken. */
void weir__spare_recycle(struct weir__log *, struct weir__segment *);
/* The file of the next segment: the spare when its size is right, else a new one. Without the lock,
 * by the leader. */
struct weir__spare_order {
    bool full;
    uint64_t capacity;    /* wanted */
    uint64_t enough;      /* of the spare, when full */
    uint64_t least, most; /* what one batch needs; no segment may be larger */
};
int weir__spare_take(struct weir__log *, const struct weir__spare_order *,
                     struct weir__segment **out, struct weir_error *);
/* Space between batches and index goes back; of the active segment when nothing is appended. */
void weir__spare_release(struct weir__log *);
void weir__spare_rest(struct weir__log *);
/* At open: what earlier processes have given back, or had not come to. */
void weir__spare_find_holes(struct weir__log *);
int64_t
weir__spare_wait_ms(const struct weir__log *); /* as weir__upkeep_wait_ms, for all of these */
/* Gets the active segment's space again. False: there is not enough. Without the lock, by the
 * leader. */
bool weir__spare_wake(struct weir__log *);

/* look.c; with the lock held, which is let go of during disk operations */
void weir__log_pin(struct weir__segment *); /* its file and memory stay until unpinned */
void weir__log_unpin(struct weir__log *, struct weir__segment *);
int weir__log_open_read(struct weir__log *, struct weir__segment *, struct weir_error *);
/* The partition's next sequence when the segment began. */
int weir__log_start_sequence(struct weir__log *, struct weir__segment *, uint32_t partition,
                             uint64_t *out, struct weir_error *);
/* The heads as a segment's file has them. WEIR_ECORRUPT: it does not, or not any more. */
int weir__log_stored_heads(struct weir__log *, struct weir__segment *, struct weir__head *out,
                           struct weir_error *);
/* The heads as they were before the segment's first batch, for log->partitions partitions: as stored,
 * else worked out from its own batches and from the segments behind it. Then only next_sequence is
 * set, and may be too high by events that are lost. The caller has pinned the segment, or leads. */
int weir__log_heads_of(struct weir__log *, struct weir__segment *, struct weir__head *out,
                       struct weir_error *);
/* The number of the segment in which the event lies, or would lie. */
int weir__log_segment_of(struct weir__log *, uint32_t partition, uint64_t sequence,
                         uint64_t *out_number, struct weir_error *);
/* NULL when it has expired. */
struct weir__segment *weir__log_segment_numbered(struct weir__log *, uint64_t number);
/* weir__index_find and weir__index_chunk on a pinned segment; a bad stored index is rebuilt. */
int weir__log_index_find(struct weir__log *, struct weir__segment *, uint32_t partition,
                         enum weir__log_by, uint64_t value, struct weir__index_chunk *out,
                         struct weir_error *);
int weir__log_index_chunk(struct weir__log *, struct weir__segment *, uint32_t partition,
                          uint32_t number, struct weir__index_chunk *out, struct weir_error *);

/* scan.c */
struct weir__scan_batch {
    struct weir__batch_header h;
    bool body_good;
};

struct weir__scan {
    struct weir__file *file;
    const struct weir__segment *segment;
    uint64_t limit;       /* log position that no batch may pass */
    uint64_t proof;       /* every position below it is known to have been on disk */
    uint64_t epoch_start; /* batches from here on must be of epoch */
    uint32_t epoch;       /* none is later, */
    uint64_t later_from;  /* but from here on: then the control file is older than the batch */
    uint32_t partitions;
    const struct weir__head *start; /* where the partitions stand before the walk; NULL: unknown */
    int64_t latest_ms; /* no batch of format version 1 is believed to be newer; 0: any */
    const struct weir__batch_stamp *trusted; /* test only: another stamp that passes; else NULL */
    uint64_t torn_bytes;         /* of the batch at a torn end, when its header is good */
    struct weir__bad_blocks bad; /* that were met */
    uint8_t *window;             /* aligned; scan's own */
    size_t window_cap, window_len;
    uint64_t window_at; /* file offset of window[0] */
    uint32_t last_epoch;
    uint32_t found_epoch; /* the latest of all good headers, also of those that prove nothing */
    uint64_t later_at;    /* the first batch of a later epoch; 0: there is none */
    uint64_t *next;       /* per partition: the sequence number behind its last batch; scan's own */
};

enum weir__scan_end {
    WEIR__SCAN_END,  /* nothing begins here, and nothing behind says otherwise */
    WEIR__SCAN_TORN, /* a batch was begun here and not finished */
};

/* Walks the batches from a position: batch() for each good header, damage() for each range that
 * was on disk once and is unreadable now. *out_end is where it stopped and how. A callback's error
 * stops the walk. */
struct weir__scan_calls {
    int (*batch)(void *user, const struct weir__scan_batch *, struct weir_error *);
    int (*damage)(void *user, uint64_t from, uint64_t to, struct weir_error *);
    void *user;
};

/* What is known of a segment before it is walked; the file is left to be set. latest_ms: the newest
 * time that a batch in it can have. unsure: the control file does not know the end of the active
 * one. */
struct weir__scan weir__scan_sealed(const struct weir__segment *, int64_t latest_ms);
struct weir__scan weir__scan_active(struct weir__log *, bool unsure);
int weir__scan_init(struct weir__scan *, struct weir_error *);
void weir__scan_fini(struct weir__scan *);
int weir__scan_run(struct weir__scan *, uint64_t from, const struct weir__scan_calls *,
                   uint64_t *out_end, enum weir__scan_end *out_how, struct weir_error *);
/* Whether there are only zeros from a position on. */
int weir__scan_blank(struct weir__scan *, uint64_t from, bool *out, struct weir_error *);

#endif
