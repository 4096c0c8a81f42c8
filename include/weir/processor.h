/* processor.h - many copies of a program share the partitions of a hub.
 *
 * A program gives four callbacks and is started as often as one likes. The copies divide the
 * partitions by themselves, move as few as possible when one comes or goes, and when one dies the
 * others go on from its last checkpoint. Who has what is kept in a store (store.h); the events come
 * from a source (source.h), which is a hub in a folder or behind a connection string.
 *
 *     static int on_events(struct weir_partition *p, const struct weir_event *e, size_t n, void *u)
 *     {
 *         for (size_t i = 0; i < n; i++) use(&e[i]);
 *         return weir_checkpoint(p, NULL);
 *     }
 *     ...
 *     struct weir_processor_options o = {.size = sizeof o, .handler = {.events = on_events}};
 *     weir_processor_start(&processor, source, store, &o, &err);
 *
 * What is promised
 *   - Calls for one partition never overlap and events come in order, without a gap from the
 *     checkpoint on. Each open has exactly one close.
 *   - Every event is given at least once; again only what lies behind the last checkpoint when a copy
 *     died or was frozen. A hand-over between living copies repeats nothing that was marked.
 *   - The processor never checkpoints beyond the program's own mark, and a copy that has lost a
 *     partition cannot move its checkpoint.
 *   - Nothing is passed over in silence. Of events that the hub does not keep any more handler.error
 *     is told how many (WEIR_RECEIVING, WEIR_ENOTFOUND), and the oldest that is there comes next. A
 *     checkpoint beyond the newest event (WEIR_OPENING, WEIR_EINVAL) and a record that cannot be
 *     understood (WEIR_READING_STORE, WEIR_ECORRUPT) keep their own partition from being read until
 *     somebody puts them right, and no other.
 *
 * Threads. Calls for different partitions run at the same time, on up to `threads` threads of the
 * processor: what they share, the program locks itself. The partition's own pointer (made in open)
 * needs none. Handlers may block; a blocked one holds its thread and its partition only. With
 * `threads` of -1 nothing is started and everything runs inside weir_processor_step. The functions
 * below may be called from any thread unless said otherwise; not after fork in the child.
 *
 * The words of Azure's two generations stand beside ours: EPH is the Event Processor Host, EPC the
 * EventProcessorClient. */
#ifndef WEIR_PROCESSOR_H
#define WEIR_PROCESSOR_H

#include "weir/source.h"
#include "weir/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_processor;
struct weir_partition; /* of one open to its close; handlers get it */

enum weir_close_reason {
    WEIR_CLOSED_SHUTDOWN = 1, /* weir_processor_stop */
    WEIR_CLOSED_LOST,         /* another copy has it: marks are refused already */
    WEIR_CLOSED_MOVED,        /* it goes to another copy now: marks are still good */
    WEIR_CLOSED_ERROR,        /* the stream or the policy for failing handlers gave it up */
    WEIR_CLOSED_RELEASED      /* the program asked for it */
};

WEIR_API const char *weir_close_reason_text(enum weir_close_reason);

/* What the processor was doing when something failed. */
enum weir_action {
    WEIR_BEATING = 1,   /* telling the store that it lives (EPH: renewing lease) */
    WEIR_READING_STORE, /* (EPH: downloading leases) */
    WEIR_CLAIMING,      /* (EPH: acquiring, stealing, releasing lease) */
    WEIR_CHECKPOINTING,
    WEIR_OPENING, /* the stream of a partition */
    WEIR_RECEIVING,
    WEIR_HANDLING /* a handler returned an error or took too long */
};

WEIR_API const char *weir_action_text(enum weir_action);

struct weir_handler {
    /* A partition is ours. *state is the program's, NULL at first, and found by weir_partition_state.
     * Other than 0: it is closed again with WEIR_CLOSED_ERROR and tried later. May be NULL. */
    int (*open)(struct weir_partition *, void **state, void *user);

    /* The next events, which live for the call; count is 0 only with invoke_when_idle. Other than 0:
     * it failed, and `failure` says what comes of it. Never NULL. */
    int (*events)(struct weir_partition *, const struct weir_event *events, size_t count,
                  void *user);

    /* Something went wrong; partition is NULL when it was not about one. The processor goes on. Not
     * called at the same time for one partition, nor for none. May be NULL. */
    void (*error)(struct weir_partition *, enum weir_action, const struct weir_error *, void *user);

    /* The last call for this open. The program frees its state here. May be NULL. */
    void (*close)(struct weir_partition *, enum weir_close_reason, void *user);
};

enum weir_failure {
    WEIR_RETRY_FOREVER, /* the same events again, with growing pauses; but not what it had marked */
    WEIR_DEAD_LETTER,   /* after `attempts` one at a time; one that fails alone to `dead_letter` */
    WEIR_DROP,          /* the same, but it is counted and forgotten */
    WEIR_GIVE_UP /* after `attempts` the partition is closed with WEIR_CLOSED_ERROR and released */
};

/* How fast a copy takes its share. What that is, all agree on, and nothing moves in vain; what the
 * living give away comes as fast as their handlers finish. */
enum weir_strategy {
    WEIR_STICKY,   /* waits at the start until no other copy comes, then takes all at once */
    WEIR_BALANCED, /* the same, but at most one free partition in a beat (EPC Balanced) */
    WEIR_GREEDY /* all at once, without waiting; who starts later is given its share (EPC Greedy) */
};

/* A call that takes too long is told to handler.error, without a partition because its own is busy.
 * RELEASE: the partition is given up under its feet, and what it marks is refused; no other call for
 * it comes here before this one has returned. ABORT: abort() is called. */
enum weir_overdue { WEIR_OVERDUE_WARN, WEIR_OVERDUE_RELEASE, WEIR_OVERDUE_ABORT };

/* Copied at start. Zero is the default everywhere. */
struct weir_processor_options {
    size_t size;
    struct weir_handler handler;
    void *user;

    const char *name; /* of this copy: EPH host name, EPC identifier; NULL: made at random */
    uint32_t weight;  /* its share relative to the others'; 0: 1 */
    int threads;      /* 0: one for each core, at least 2; -1: see weir_processor_step */

    size_t batch_max;      /* events for one call; never waited for. 0: 1,000 (EPH 10, EPC 1) */
    bool one_by_one;       /* each call gets one event */
    size_t prefetch_bytes; /* read ahead, all partitions together. 0: 64 MiB */
    /* Likewise, over a connection; at least batch_max. 0: as many as fit (EPH, EPC: 300 for each
     * partition). */
    size_t prefetch_events;
    int64_t receive_ms;    /* 0: 60,000 (EPH ReceiveTimeout, EPC maxWaitTime): with */
    bool invoke_when_idle; /* a call without events after so long without any */
    bool metrics; /* for weir_partition_lag; over a connection each event is some 150 bytes larger
                     (EPH EnableReceiverRuntimeMetric, EPC trackLastEnqueuedEventProperties) */

    /* Where a partition begins that has no checkpoint; NULL: at its earliest event. */
    void (*initial)(uint32_t partition, struct weir_position *out, void *user);

    enum weir_strategy strategy;
    int64_t beat_ms;   /* 0: 1,000 (EPH RenewInterval 10 s, EPC update interval 10-30 s) */
    int64_t expire_ms; /* 0: 3 x beat_ms (EPH LeaseDuration 30 s, EPC expiry 60-180 s) */
    int64_t
        handover_ms; /* how long a running handler may finish when its partition moves. 0: 10,000 */

    /* Checkpoints besides the program's own marks: of the last batch that was handled well, after so
     * many events or so long. 0: never. */
    uint64_t mark_events;
    int64_t mark_ms;

    enum weir_failure failure;
    uint32_t attempts; /* 0: 5 */
    /* Takes one poison event; other than 0: it is offered again. */
    int (*dead_letter)(struct weir_partition *, const struct weir_event *,
                       const struct weir_error *, void *user);
    /* Or where they are sent, when that is NULL: as they are, with four properties more, what they
     * failed with and where they were: weir-error, weir-hub, weir-partition, weir-sequence. */
    struct weir_producer *dead_letters;

    int64_t handler_ms; /* a call may take so long; 0: as long as it likes. Then: */
    enum weir_overdue overdue;
};

/* Starts a copy. source and store stay open until weir_processor_stop has returned; a store handle
 * is this processor's alone meanwhile. WEIR_EEXIST: a living copy of that name is in the group.
 * WEIR_EINVAL: an option; the text says which. A store or hub that cannot be reached is an error
 * here, and later only told to handler.error. */
WEIR_API int weir_processor_start(struct weir_processor **out, struct weir_source *,
                                  struct weir_store *, const struct weir_processor_options *,
                                  struct weir_error *);

/* Lets running handlers finish, stores their last marks, closes every partition and hands it to the
 * other copies; frees the processor in every case. A negative timeout_ms waits for ever.
 * WEIR_ETIMEDOUT: a handler did not return in time; then its thread is left behind, what it marks is
 * refused, its partition has no close, and its stream stays open, so the source's place cannot be
 * closed. WEIR_EUNREACHABLE: the store did not answer: all is closed, and others have the partitions
 * when this copy has expired. NULL is allowed. Not from a handler. */
WEIR_API int weir_processor_stop(struct weir_processor *, int64_t timeout_ms, struct weir_error *);

/* With threads of -1: does what is due, waiting at most wait_ms for it. */
WEIR_API int weir_processor_step(struct weir_processor *, int64_t wait_ms, struct weir_error *);

WEIR_API const char *weir_processor_name(const struct weir_processor *);

/* ---- in and about a partition ---- */

WEIR_API uint32_t weir_partition_id(const struct weir_partition *);
WEIR_API void *weir_partition_state(const struct weir_partition *);
WEIR_API const char *weir_partition_hub(const struct weir_partition *);
WEIR_API const char *weir_partition_group(const struct weir_partition *);
WEIR_API const char *weir_partition_owner(const struct weir_partition *);
WEIR_API int64_t weir_partition_epoch(const struct weir_partition *);

/* Whether it is lost or about to move: a long handler may look at it and return early. */
WEIR_API bool weir_partition_revoked(const struct weir_partition *);

struct weir_partition_lag {
    struct weir_partition_tail end; /* of the partition, when last heard of */
    uint64_t events;                /* behind it */
    int64_t ms; /* between the enqueued times of the last event handled and of the end */
};

WEIR_API void weir_partition_lag(const struct weir_partition *, struct weir_partition_lag *out);

/* Marks everything up to and with an event as done; NULL: the batch in hand, or in close the last one
 * that was handled well. In a handler of this partition only. The mark is stored soon, newest first, at most
 * one write under way for a partition. WEIR_EFENCED: the partition is lost. WEIR_EINVAL: an event of
 * another partition, or one that was not given yet; or one before the last mark: see rewind. */
WEIR_API int weir_checkpoint(struct weir_partition *, const struct weir_event *);

/* The same, and returns when it is stored. WEIR_ETIMEDOUT: not yet. */
WEIR_API int weir_checkpoint_wait(struct weir_partition *, const struct weir_event *,
                                  int64_t timeout_ms, struct weir_error *);

/* Goes back, or on: the next events are those behind this sequence number, and the checkpoint is set
 * there. In a handler of this partition only. */
WEIR_API int weir_checkpoint_rewind(struct weir_partition *, uint64_t sequence);

/* In a handler: this partition is closed after the call and given up for some seconds; whose it is
 * then the copies decide as ever. */
WEIR_API void weir_partition_release(struct weir_partition *);

/* No events until resume. A partition that is not ours: WEIR_ENOTFOUND. */
WEIR_API int weir_processor_pause(struct weir_processor *, uint32_t partition);
WEIR_API int weir_processor_resume(struct weir_processor *, uint32_t partition);

/* ---- looking ---- */

struct weir_processor_stats {
    uint32_t partitions, owned, members;
    uint64_t events, batches, marks_stored, marks_fenced;
    uint64_t handler_failures, dead_letters, dropped, overdue;
    uint64_t opened, closed, handovers, takeovers, lost;
    uint64_t store_calls, store_failures;
    int64_t store_silent_ms; /* it has not answered for so long; 0: it answers */
};

WEIR_API void weir_processor_stats(struct weir_processor *, struct weir_processor_stats *out);

#ifdef __cplusplus
}
#endif
#endif
