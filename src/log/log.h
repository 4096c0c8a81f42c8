/* log.h - the records of one hub on disk.
 *
 * A log is one row of segment files that all partitions of a hub share, so that one flush commits
 * whatever was appended to any of them. What is appended is a batch: the bytes a producer sent,
 * kept as they came, a unit of checksum, write and index. The log knows no events, only how many a
 * batch holds: they get dense sequence numbers per partition, from 0, and an offset, which is the
 * batch's log position plus the event's place in the batch. Log positions count bytes of the whole
 * hub and start at WEIR__LOG_ORIGIN.
 *
 *   append > memory (the tail) > one write and one sync for a group > completion, in log order
 *   read   < memory when recent, else the segment file; never past what is durable
 *
 * Threads: everything here may be called from any thread. A log has one lock; no call holds it
 * during a disk operation. Completions run on threads of the pool, one at a time, in log order, each
 * exactly once and before weir__log_close returns; they may append, and must not block.
 *
 * Formats are drawn where they are written: batch.c, segment.c, index.c, control.c,
 * producer_file.c. */
#ifndef WEIR_LOG_LOG_H
#define WEIR_LOG_LOG_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/rand.h"
#include "log/fs.h"

#define WEIR__LOG_ORIGIN 1000000000000000u /* 10^15: always 16 digits, far below 2^53 */
#define WEIR__LOG_FORMAT 2u /* the format version that is written; those before it are read */
#define WEIR__LOG_PARTITIONS_MAX 1024u
#define WEIR__LOG_BATCH_BYTES_MAX (20u << 20) /* of a body; the default limit is 1 MiB + 64 KiB */
#define WEIR__LOG_BODY_PARTS_MAX 4
#define WEIR__LOG_SEQUENCE_MAX                                                                     \
    (UINT64_C(1) << 62) /* stored bytes that claim more are not believed */
#define WEIR__LOG_POSITION_MAX (UINT64_C(1) << 62)       /* the same */
#define WEIR__LOG_SEGMENT_NUMBER_MAX (UINT64_C(1) << 62) /* the same */

/* Test-only: each leaves out one thing that a promise rests on. A test that does not notice is
 * itself wrong. */
enum weir__log_sabotage {
    WEIR__LOG_SKIP_SYNC = 1,
    WEIR__LOG_SKIP_DIR_SYNC = 2,
    WEIR__LOG_SKIP_EPOCH = 4,
    WEIR__LOG_COUNT_CAPACITY = 8,    /* retention by bytes counts what is reserved */
    WEIR__LOG_SIZE_BY_DOUBLING = 16, /* every roll doubles the segment, and gives nothing back */
    WEIR__LOG_TRUST_FOUND = 32,      /* a header that was found by searching needs no secret */
    WEIR__LOG_SKIP_BACK = 64         /* damage is told without its range */
};

struct weir__log_pool;

struct weir__log_options {
    struct weir__fs *fs;        /* NULL: the machine's */
    struct weir__clock clock;   /* zero: the machine's */
    struct weir__logger logger; /* zero: silence */
    struct weir__rand rand;     /* zero: the machine's; a new hub's secret comes from it */
    const char *dir;            /* copied */
    uint64_t hub_id;            /* whose bytes these are; part of every checksum */
    uint32_t partitions;        /* of a new log; one that is there knows its own number */
    uint32_t batch_bytes_max;   /* 0: 1 MiB + 64 KiB */
    uint64_t segment_bytes_min; /* 0: 64 KiB, the least; of the first, and of those after a quiet
                                   time. A power of two. On a full disk they can be smaller */
    uint64_t segment_bytes_max; /* 0: 256 MiB; a power of two, at least 64 KiB */
    uint64_t tail_bytes;        /* 0: 16 MiB, or what four of the largest batches need */
    uint32_t sync_ms;           /* 0: acknowledged when on disk. Else acknowledged when written, on
                                   disk every so often: what was acknowledged since can be lost */
    int64_t retain_ms;          /* 0: 7 days; negative: for ever */
    uint64_t retain_bytes;      /* of batches as they are stored; 0: no limit. Whole segments of
                                   all partitions go together, and only when what is left without
                                   the oldest one is as much as this */
    uint32_t producers_max;     /* idempotent ones that are remembered; 0: 1,000,000 */
    uint32_t producers_tidy_blocks; /* for tests: a smaller file of them is left alone; 0: 256 */
    bool no_threads;             /* for tests: the log does nothing by itself; see weir__log_step */
    struct weir__log_pool *pool; /* whose threads it uses (pool.h); NULL: it has its own */
    unsigned sabotage;
};

/* Makes the folder and an empty log in it, durably. */
int weir__log_create(const struct weir__log_options *, struct weir_error *);

struct weir__log;

/* Opens, recovers, and makes durable what it found before anything is served. Whatever is damaged
 * or missing, it opens with what can be proven, and tells the rest to the logger. Not so: neither the
 * control file nor any segment's header can be read (WEIR_ECORRUPT), another format version
 * (WEIR_EVERSION), somebody has it open (WEIR_ELOCKED); and errors of the moment. On a full disk it
 * can be read, and appends are WEIR_ENOSPACE until there is room. */
int weir__log_open(struct weir__log **out, const struct weir__log_options *, struct weir_error *);

/* Commits what was appended, runs the completions that are left, frees. NULL is allowed. The first
 * error of that last commit is returned; the log is closed all the same. No reader may be open. */
int weir__log_close(struct weir__log *, struct weir_error *);

/* Removes a closed log's files and folder. Files that are gone already are no error. Where a symbolic
 * link stands in the folder's place, only the link is removed. */
int weir__log_destroy(struct weir__fs *, const char *dir, struct weir_error *);

/* ---- appending ---- */

/* An idempotent producer's mark on a batch. id 0: none. */
struct weir__log_producer {
    uint64_t id;
    uint16_t epoch;
    uint32_t sequence; /* of the first event; the next batch must begin at sequence + count */
};

struct weir__log_batch {
    uint32_t partition;
    uint32_t count; /* events, 1 or more, at most body bytes */
    uint16_t attrs; /* the caller's own, stored with the batch */
    struct weir__log_producer producer;
    struct weir__bytes body[WEIR__LOG_BODY_PARTS_MAX]; /* stored one after another */
};

/* Where a batch came to lie. */
struct weir__log_receipt {
    uint64_t offset;   /* of the first event; the others follow by one */
    uint64_t sequence; /* of the first event */
    int64_t time_ms;   /* enqueued time of all of them; never less than any before it in the hub */
    bool duplicate;    /* the producer's last batch once more: nothing was stored */
};

/* rc 0: durable. WEIR_EUNKNOWN: it may or may not be there after a reopen. Otherwise not stored.
 * receipt and err live for the call. */
typedef void (*weir__log_done_fn)(void *user, int rc, const struct weir__log_receipt *,
                                  const struct weir_error *err);

/* Takes a batch in: its bytes are copied and its place is final when this returns 0, and done
 * fires once it is durable. On error nothing was taken and done never fires.
 * Waits for room until deadline_ns (weir__deadline_ns; 0: not at all), then WEIR_EBUSY: too much is
 * not yet on disk. WEIR_ENOSPACE: no new segment could be made; it works again when there is room.
 * WEIR_ETOOBIG, WEIR_ESEQUENCE, WEIR_EFENCED: the batch's fault. WEIR_EFAILED: see weir__log_state. */
int weir__log_append(struct weir__log *, const struct weir__log_batch *, int64_t deadline_ns,
                     weir__log_done_fn done, void *user, struct weir_error *);

/* The same, and returns when it is durable. With nobody ahead the calling thread does the flush
 * itself. Past the deadline: WEIR_EUNKNOWN. Inside a completion: WEIR_EDEADLOCK. */
int weir__log_append_wait(struct weir__log *, const struct weir__log_batch *, int64_t deadline_ns,
                          struct weir__log_receipt *out, struct weir_error *);

/* Returns when everything appended before the call is durable or has failed (then the error). The
 * last completions may still be running. */
int weir__log_flush(struct weir__log *, int64_t deadline_ns, struct weir_error *);

/* Begins an epoch of a producer in a partition before its first batch: batches of older ones are
 * refused from now on. out_next is as below. WEIR_EFENCED: a newer one has begun. An epoch is
 * remembered over a restart from its first batch on, not from here. */
int weir__log_producer_begin(struct weir__log *, uint32_t partition, uint64_t id, uint16_t epoch,
                             struct weir__log_producer *out_next, struct weir_error *);

/* What a producer's last batch in a partition was; epoch and sequence of what may come next.
 * WEIR_ENOTFOUND when nothing is known. */
int weir__log_producer_state(struct weir__log *, uint32_t partition, uint64_t id,
                             struct weir__log_producer *out_next, struct weir_error *);

/* ---- looking ---- */

struct weir__log_partition_info {
    uint64_t begin_sequence; /* of the oldest event that is kept */
    uint64_t next_sequence;  /* begin == next: empty now */
    uint64_t last_offset;    /* of the newest event ever; 0 when there never was one */
    int64_t last_time_ms;    /* its enqueued time; 0 likewise */
};

int weir__log_partition_info(struct weir__log *, uint32_t partition,
                             struct weir__log_partition_info *out, struct weir_error *);

enum weir__log_by { WEIR__LOG_BY_OFFSET, WEIR__LOG_BY_SEQUENCE, WEIR__LOG_BY_TIME };

/* The sequence number of the first kept event that lies behind value, or at it when inclusive;
 * next_sequence when there is none yet. Reads the index, never the events. */
int weir__log_find(struct weir__log *, uint32_t partition, enum weir__log_by, int64_t value,
                   bool inclusive, uint64_t *out_sequence, struct weir_error *);

#define WEIR__LOG_FLUSH_BUCKETS 17
#define WEIR__LOG_FLUSH_FIRST_US 64

struct weir__log_stats {
    uint64_t batches, events, bytes; /* appended and durable since open; bytes of bodies */
    uint64_t groups, syncs;          /* commits, and sync calls of the commit path */
    uint64_t unflushed_bytes;        /* appended, not yet durable */
    uint64_t segments, log_bytes;    /* on disk now, with what is only reserved */
    uint64_t stored_bytes;           /* of batches that are kept */
    uint64_t disk_bytes;             /* that segments and the spare take */
    uint64_t disk_bytes_max;         /* never more than this after upkeep; 0: no limit */
    int64_t begin_time_ms;           /* enqueued time of the oldest that is kept; 0: nothing is */
    uint64_t next_expiry_bytes;      /* stored bytes that go next; 0: nothing will */
    int64_t next_expiry_ms;          /* from now, as it is now; -1: time alone expires nothing */
    uint64_t tail_reads, disk_reads; /* reads served from memory and from files */
    uint64_t damaged_ranges;         /* found since open, see inspect */
    uint64_t producers;              /* idempotent ones that are known, per partition */
    uint64_t producers_forgotten;    /* since open: too many or silent for too long */
    int64_t last_time_ms;
    /* How long the disk took for a commit, write and sync: at most WEIR__LOG_FLUSH_FIRST_US << i
     * microseconds and more than the bucket before says; the last has all that took longer. */
    uint64_t flush_buckets[WEIR__LOG_FLUSH_BUCKETS];
    uint64_t flush_ns;
};

void weir__log_stats(struct weir__log *, struct weir__log_stats *out);

/* 0, or the error that stopped the log for good: it takes nothing in until it is opened anew. What
 * was durable before is still served. */
int weir__log_state(struct weir__log *, struct weir_error *);

/* 0: what is appended now is taken in, as far as can be told without trying. Else the error above; or
 * why the last batch that needed a new segment got none, which is tried again by itself every second
 * and is over when it works; or WEIR_ENOSPACE, when a log that was quiet has given its space back
 * and the disk has none. May wait for the disk. */
int weir__log_ready(struct weir__log *, struct weir_error *);

/* ---- reading ---- */

/* A batch in the reader's memory. */
struct weir__log_view {
    uint64_t offset;   /* of the first event of the batch */
    uint64_t sequence; /* of the first event of the batch */
    int64_t time_ms;
    uint32_t count;
    uint32_t skip; /* events at its head that lie before what was asked for */
    uint16_t attrs;
    uint32_t body_crc; /* CRC-32C of the body */
    struct weir__log_producer producer;
    struct weir__bytes body;
};

struct weir__log_reader;

/* A cursor on one partition, beginning at a sequence number. One thread at a time; a log may have
 * any number of them. bytes_max is its memory, 0: 256 KiB; a larger batch is still read, alone. */
int weir__log_reader_open(struct weir__log_reader **out, struct weir__log *, uint32_t partition,
                          uint64_t sequence, size_t bytes_max, struct weir_error *);
void weir__log_reader_close(struct weir__log_reader *);

/* From now on bodies are given unchecked: whoever they are for compares them with body_crc. */
void weir__log_reader_uncheck(struct weir__log_reader *);

/* Gives up to max batches in order, without waiting; *out_count is 0 at the end of what is durable.
 * The views live until the next call on this reader. When what the cursor stood at has expired it
 * goes on at the oldest event and *out_missed says how many events were passed over, else 0.
 * WEIR_ECORRUPT: the bytes of some events are damaged; the text names file and byte, or the segment
 * whose file is lost, and the sequence range, the cursor stays in front of them, and weir__log_reader_damage says what they are.
 * WEIR_EIO: the disk did not give them, twice; the same, but it may give them later. After ten
 * seconds of that it is WEIR_ECORRUPT. */
int weir__log_reader_next(struct weir__log_reader *, struct weir__log_view *out, uint32_t max,
                          uint32_t *out_count, uint64_t *out_missed, struct weir_error *);

/* Gives the memory of the views back, until the next call needs it again: for one of many that wait
 * at the end. The views are gone. */
void weir__log_reader_rest(struct weir__log_reader *);
/* The memory that rest would give back. */
size_t weir__log_reader_memory(const struct weir__log_reader *);

/* After WEIR_ECORRUPT or WEIR_EIO: the events that cannot be served, first to last; first is where
 * the cursor stands. first > last: there are none. */
void weir__log_reader_damage(const struct weir__log_reader *, uint64_t *out_first,
                             uint64_t *out_last);

/* Where the next call will begin, and moving it there. */
uint64_t weir__log_reader_sequence(const struct weir__log_reader *);
void weir__log_reader_seek(struct weir__log_reader *, uint64_t sequence);

/* Calls fn once: when new events of the partition have become durable, or when the log stops or
 * closes. Watch again to be told again, and look behind that: what was committed before is not told.
 * fn runs on a committing thread or on one of the pool's, under a lock of the watchers: it must only
 * wake somebody up, and not call the log. The struct is the caller's, its other members begin as
 * zeros. When unwatch returns fn does not run and will not. */
struct weir__log_watch {
    void (*fn)(void *user);
    void *user;
    uint32_t partition;
    bool armed; /* the log's, as the rest */
    uint64_t round;
    struct weir__log_watch *next, *prev;
};

void weir__log_watch(struct weir__log *, struct weir__log_watch *); /* nothing when it watches */
void weir__log_unwatch(struct weir__log *, struct weir__log_watch *);

/* ---- keeping ---- */

/* Gives the log more partitions, empty ones behind those it has, durably. It goes on meanwhile, and
 * the events that are there stay where they are. One that has as many, or more, stays as it is.
 * WEIR_EINVAL: more than there can be. */
int weir__log_grow(struct weir__log *, uint32_t partitions, struct weir_error *);

/* Changes both limits at once, as in the options; what is too much goes with the next upkeep. */
void weir__log_set_retention(struct weir__log *, int64_t retain_ms, uint64_t retain_bytes);

/* Rolls by age, prepares the next segment, marks the end of an idle log, applies retention. The
 * keeper thread calls it; with no_threads the caller does. Runs due work only. */
int weir__log_step(struct weir__log *, struct weir_error *);

/* ---- checking a folder ---- */

enum weir__log_finding_kind {
    WEIR__LOG_SEGMENT, /* one per segment: text describes it */
    WEIR__LOG_DAMAGE,  /* below the watermark: events that were acknowledged cannot be served */
    WEIR__LOG_COPY,    /* one of two copies of a header or of the control file; the other serves */
    WEIR__LOG_TORN,    /* above it: an unfinished write that the next open cuts */
    WEIR__LOG_INDEX,   /* an index that disagrees with its batches; rebuilt when needed */
    WEIR__LOG_CUT,     /* a torn tail that an earlier open cut and saved aside */
    WEIR__LOG_PRODUCERS, /* what idempotent producers published last is unreadable in part */
    WEIR__LOG_HEADER, /* both copies of a header, or of the heads behind it; what is in the segment is
                          found without */
    WEIR__LOG_CONTROL, /* a control file that is gone, or contradicts the segments: they are believed */
    WEIR__LOG_IGNORED /* a file that is none of the log's, and that no open removes */
};

struct weir__log_finding {
    enum weir__log_finding_kind kind;
    const char *file;                       /* path */
    uint64_t at, len;                       /* bytes in it */
    int64_t partition;                      /* -1: unknown, or all */
    uint64_t first_sequence, last_sequence; /* of the partition; first > last: unknown */
    const char *text;
};

/* Opens nothing for writing and changes nothing. Checks every checksum and every index; calls fn
 * for each finding, and goes on to the end whatever it meets. Returns 0 also when there is damage:
 * *out_damaged counts DAMAGE, COPY, PRODUCERS, HEADER and CONTROL. */
int weir__log_inspect(const struct weir__log_options *,
                      void (*fn)(const struct weir__log_finding *, void *user), void *user,
                      uint64_t *out_damaged, struct weir_error *);

#endif
