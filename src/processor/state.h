/* state.h - the insides of a processor, which its files share and nobody else sees.
 *
 *   processor.c   the public calls
 *   runner.c      threads, the ring of partitions that have something to do, start and stop
 *   driver.c      the store's calls, one at a time: control's steps, then marks
 *   pump.c        one partition's turn: its stream, its handler
 *   letter.c      what becomes of a poison event
 *
 * There is one lock, the processor's. It is taken under locks of the source (by wake), so nothing of
 * source, store or program is called while it is held. A partition's own members belong to the
 * thread that runs its turn; the others say that the lock guards them. */
#ifndef WEIR_PROCESSOR_STATE_H
#define WEIR_PROCESSOR_STATE_H

#include <stdatomic.h>

#include "base/thread.h"
#include "processor/checkpoint.h"
#include "processor/control.h"
#include "weir/processor.h"

#define WEIR__THREADS_MAX 256
#define WEIR__TELLS_MAX 16  /* errors about no partition that wait to be told; more are dropped */
#define WEIR__MARKS_MAX 256 /* in one call of the store */

#define WEIR__COUNT_BEATS 10 /* between looks at how many partitions there are */
#define WEIR__HUB_BYTES 257
#define WEIR__GROUP_BYTES 64

struct weir_partition {
    struct weir_processor *processor;
    uint32_t id;

    /* Lock: the ring. In it at most once, and not while it runs. */
    struct weir_partition *next_ready;
    bool queued, running, again;
    int64_t due_ms; /* to be put there then; INT64_MAX: only when something happens */

    /* Lock: what it was told. `called` is also looked at without, to end a turn early. */
    atomic_bool called;
    enum weir_close_reason stop; /* 0: none */
    enum weir_close_reason drain;
    bool reopen;  /* at its slot's record */
    bool doubted; /* whether it is ours: waits for stop or reopen */
    bool stolen;  /* which is why */
    bool paused;
    atomic_bool revoked;

    /* Lock: what it has to say to the control. */
    bool tell_drained, tell_doubt;
    int64_t pause_ms;

    /* Lock: how far it is. */
    struct weir__checkpoint checkpoint;
    bool rewound, released; /* by the handler, in this call */
    bool handling;          /* a call of the program is under way: */
    int64_t handling_ms;    /* since then */
    bool overdue;           /* and that was told */

    /* The turn's own. */
    bool shared;  /* its slot's, until an attach with 0 is refused */
    bool opened;  /* the program's open was called */
    bool ended;   /* and its close */
    bool drained; /* the control was told */
    void *state;
    struct weir_stream *stream;
    struct weir_received hand; /* what the stream gave */
    size_t next;               /* of these: not handled yet */
    bool alone;                /* one at a time, to find the one that fails */
    bool poison;               /* the next one goes to the dead letters */
    struct weir_error why;     /* what it failed with */
    uint32_t attempts;         /* that failed, of the handler */
    uint32_t tries;            /* likewise, of the stream */
    uint32_t thefts;           /* of streams that did not last */
    int64_t stream_ms;         /* when the last one was opened */
    int64_t retry_ms;          /* nothing before then */
    int64_t quiet_ms;          /* since when no event came */
    int64_t last_time_ms;      /* enqueued time of the last event handled */
    int64_t epoch;
    uint64_t chatty_rate;
};

struct weir__slot {
    struct weir_partition *live; /* from START to the end of its close */
    bool pending;                /* started again before that */
    struct weir_record record;   /* where it starts, then, or where the live one reopens */
    bool shared;                 /* foreign owners live: its streams are opened with epoch 0 */
};

struct weir__worker {
    struct weir_processor *processor;
    struct weir__thread thread;
    struct weir_partition *at; /* lock; whose turn it runs */
};

struct weir__tell {
    enum weir_action action;
    struct weir_error err;
};

struct weir_processor {
    /* Set at birth. */
    struct weir_processor_options options; /* with the defaults filled in */
    char name[WEIR_OWNER_BYTES];
    char hub[WEIR__HUB_BYTES], group[WEIR__GROUP_BYTES];
    char scope_hub[WEIR__HUB_BYTES], scope_group[WEIR__GROUP_BYTES]; /* in lower case */
    char scope_space[WEIR_SPACE_BYTES];
    struct weir_scope scope;
    struct weir_source *source;
    struct weir_store *store;
    size_t stream_bytes;
    uint32_t stream_events;
    uint32_t worker_count; /* 0: weir_processor_step does everything */

    /* The driver's own. */
    struct weir__control *control;
    bool marks_turn;
    int64_t marks_due_ms;
    int64_t told_ms; /* when a failure of the store was last told */
    int told_code;
    struct weir_member self; /* as it was last told to the store */
    uint32_t others;         /* living copies that take partitions */
    bool announced;          /* that we leave */
    int64_t leave_ms;        /* not later than then */
    bool left;               /* the control was told to */
    struct weir_mark *marks;
    uint64_t turns; /* marks ever sent: what is opened again in one epoch goes on with them */

    struct weir__mutex lock; /* guards what follows, and see above */
    struct weir__cond ready; /* for workers */
    struct weir__cond work;  /* for the driver */
    struct weir__cond stored;
    struct weir__cond ended; /* for stop */
    struct weir__cond telling;
    struct weir__slot *slots;
    uint32_t slot_count;
    uint32_t live_count;
    struct weir_partition *ring_first, *ring_last;
    int64_t next_due_ms;  /* of all partitions */
    bool poked;           /* the driver has something to look at */
    bool noted;           /* a partition has to tell something to the control */
    bool marks_wanted;    /* one may have a mark */
    bool marks_urgent;    /* somebody waits for it */
    bool count_wanted;    /* somebody should ask how many partitions there are */
    int64_t count_due_ms; /* or not before then */
    uint32_t counted;     /* the answer */
    struct weir__tell tells[WEIR__TELLS_MAX];
    uint32_t tell_first, tell_count;
    bool leaving, done;   /* stop was called; the control is through */
    int64_t leave_max_ms; /* what stop has for the others to take over */
    bool halted;          /* the driver makes no more calls */
    bool quitting;        /* workers end */
    bool abandoned;       /* handlers did not return: nothing of the program's is touched */
    uint32_t behind;      /* their threads */
    struct weir_processor_stats stats;

    struct weir__thread driver, teller;
    struct weir__worker *workers;
};

/* ---- pump.c ---- */

enum weir__pump { WEIR__PUMP_AGAIN, WEIR__PUMP_WAIT, WEIR__PUMP_GONE, WEIR__PUMP_ABANDONED };

/* One turn; *due_ms: when the next one is due without anything happening, after WAIT. */
enum weir__pump weir__pump_turn(struct weir_partition *, int64_t *due_ms);

/* ---- letter.c ---- */

/* Sends a poison event to the hub of the dead letters, with why. */
int weir__letter_send(struct weir_partition *, const struct weir_event *,
                      const struct weir_error *why, struct weir_error *);

/* ---- driver.c ---- */

/* Does what is due, with at most one call of the store. When to call again, or earlier. */
int64_t weir__driver_step(struct weir_processor *, int64_t now_ms);

/* Writes marks now, if there are any. */
void weir__driver_flush(struct weir_processor *, int64_t now_ms);

/* ---- runner.c ---- */

int64_t weir__now_ms(void);

/* With the lock held. */
void weir__runner_push(struct weir_processor *, struct weir_partition *);
void weir__runner_note(struct weir_processor *);               /* something for the control */
void weir__runner_marks(struct weir_processor *, bool urgent); /* there is a mark to write */
void weir__runner_due(struct weir_processor *, int64_t ms);    /* look at the clocks by then */
int weir__runner_place(struct weir_processor *, const struct weir_record *); /* makes a partition */

/* Without it. An error that is about no partition. */
void weir__runner_tell(struct weir_processor *, enum weir_action, const struct weir_error *);

int weir__runner_start(struct weir_processor *, struct weir_error *);
int weir__runner_stop(struct weir_processor *, int64_t timeout_ms, struct weir_error *);
int weir__runner_step(struct weir_processor *, int64_t wait_ms);

/* ---- processor.c ---- */

void weir__processor_free(struct weir_processor *);

#endif
