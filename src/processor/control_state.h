/* control_state.h - what control.c (what to do next), answer.c (what answers mean), plan.c (what a
 * new view means) and foreign.c (what it means for foreign owners) share. */
#ifndef WEIR_PROCESSOR_CONTROL_STATE_H
#define WEIR_PROCESSOR_CONTROL_STATE_H

#include "processor/control.h"
#include "processor/roster.h"

#define WEIR__NO_RECORD UINT32_MAX

/* How many partitions may be without a working handler at once because they are moving: each waits
 * for the claims of those before it. Leaving drains everything at once. */
#define WEIR__DRAINING_MAX 64

enum weir__part_state {
    WEIR__PART_IDLE,     /* not started here, whatever the store says */
    WEIR__PART_RUNNING,  /* START was told */
    WEIR__PART_DRAINING, /* DRAIN was told */
    WEIR__PART_DRAINED   /* and was answered: to be given away, then stopped */
};

struct weir__part {
    uint8_t state;
    bool stale;    /* we have claimed it since the view was read: the view does not know */
    bool corrupt;  /* the view has a record of it that cannot be understood */
    bool reported; /* and that was told */
    bool doubted;  /* weir__control_doubt, until the next view */
    bool offered;  /* we tried to give it away and do not know whether we have */
    bool released; /* drained without being asked */
    bool wanted;   /* it is to come to us from a living copy, since wanted_ms */
    bool queued[3];
    uint32_t record;         /* index in the view, or WEIR__NO_RECORD */
    uint32_t target;         /* rank in the roster, or WEIR__NOBODY */
    int64_t epoch;           /* with which it was started */
    uint64_t rewinds;        /* likewise */
    int64_t wanted_ms;       /* of our clock */
    int64_t left_ms;         /* likewise: since when it is left to a foreign owner; 0: it is not */
    int64_t paused_until_ms; /* not claimed or started before */
};

/* What is to be done about a partition now. The order is that of the queues below. */
enum weir__act {
    WEIR__ACT_NONE,
    WEIR__ACT_STOP,
    WEIR__ACT_START,
    WEIR__ACT_REWIND,
    WEIR__ACT_REPORT,
    WEIR__ACT_DRAIN,
    WEIR__ACT_GIVE, /* claim it for its target */
    WEIR__ACT_TAKE  /* claim it for us */
};

enum { WEIR__QUEUE_TELLS, WEIR__QUEUE_DRAINS, WEIR__QUEUE_CALLS, WEIR__QUEUES };

/* Partitions to look at, each at most once; a ring with room for all. */
struct weir__queue {
    uint32_t *at;
    uint32_t head, count;
};

struct weir__control {
    struct weir__control_options options;
    struct weir_member self, said; /* us, and as we told the store last */
    struct weir_view view;
    struct weir__roster roster;
    uint32_t me; /* our rank; WEIR__NOBODY: the store does not count us as alive */

    struct weir__part *parts;
    uint32_t partitions;
    uint32_t *owners, *numbers; /* of the partitions that take part in the balance */
    uint32_t *shares;           /* of the living: what they are to have while foreign owners live */
    uint32_t share_cap;
    struct weir__queue queues[WEIR__QUEUES];
    uint32_t open;     /* partitions that are not idle */
    uint32_t draining; /* of these, draining or drained */
    uint32_t waiting;  /* partitions that are wanted */

    /* What was planned from the last view, and when to plan again. */
    bool dirty;           /* in any case with the next view */
    int64_t look_ms;      /* or with the first one from then on */
    uint64_t change;      /* of the view that was planned from */
    uint64_t print;       /* likewise, of its living members */
    bool planned_leaving; /* it was made without us */
    bool settled;         /* the members have been the same for long enough */
    int64_t stable_ms;    /* since when they are the same */
    int64_t unrest_ms;    /* since when they have not been settled */
    bool started;         /* settled once: partitions may be claimed */
    int64_t progress_ms;  /* when we were last given something */
    int64_t take_due_ms;  /* when we may claim the next one for us */

    /* The driver's call that is under way; WAIT: none. */
    enum weir__control_do asked;
    int64_t asked_ms;
    uint32_t claimed;            /* the partition */
    bool claimed_for_us;         /* or given to its target */
    bool renewing;               /* neither: it is ours and stays so */
    uint64_t *counted;           /* what it is one more of when it succeeds; NULL: of nothing */
    struct weir_record expected; /* of a partition that has no record */

    /* The answer to a claim that is still to be told. */
    struct weir_record given;
    bool to_stop, to_start;

    int64_t beat_due_ms, read_due_ms, leave_due_ms;
    int64_t renew_due_ms;          /* no record of ours is too old before, if foreign owners live */
    uint32_t renew_next;           /* where to look for the next one that is */
    uint32_t failures;             /* calls that were not answered, one after the other */
    int64_t unanswered_since_ms;   /* 0: they are answered */
    bool leaving, announced, done; /* announced: the store knows that we take nothing more */
    uint32_t leave_next;           /* the first partition that was not told to drain yet */
    uint32_t leave_tries;
    struct weir__control_counts counts;
};

/* Reads the store at this time, or sooner when that was due. */
void weir__control_read_soon(struct weir__control *, int64_t at_ms);

/* Nothing more is done of what was planned; the next view makes another. */
void weir__control_drop_plan(struct weir__control *);

/* Makes a plan from the view: targets, and the queues. WEIR_ENOMEM: there is none, and the one
 * before is gone. */
int weir__plan(struct weir__control *, int64_t now_ms);

/* What is to be done about a partition, by the last plan and by what has happened since. */
enum weir__act weir__plan_act(const struct weir__control *, uint32_t partition, int64_t now_ms);

/* Changes targets as foreign owners need it; when some live. WEIR_ENOMEM. */
int weir__plan_foreign(struct weir__control *, int64_t now_ms);

/* Plans again at this time at the latest, if it lies ahead. */
void weir__plan_look(struct weir__control *, int64_t at_ms, int64_t now_ms);

/* Puts it into the queue of that. */
void weir__plan_enqueue(struct weir__control *, uint32_t partition, int64_t now_ms);

/* Its record in the view, or NULL. */
const struct weir_record *weir__plan_record(const struct weir__control *, uint32_t partition);

/* Whether it is ours, by the record; it may be NULL. */
bool weir__plan_ours(const struct weir__control *, const struct weir_record *);

/* Whether anybody may have it, by the record; it may be NULL. */
bool weir__plan_free(const struct weir__control *, const struct weir_record *, int64_t now_ms);

/* Whether its owner, by the record, is one that is not alive any more. */
bool weir__plan_abandoned(const struct weir__control *, const struct weir_record *, int64_t now_ms);

void weir__queue_push(struct weir__control *, int queue, uint32_t partition);
bool weir__queue_pop(struct weir__control *, int queue, uint32_t *out_partition);
void weir__queue_clear(struct weir__control *, int queue);

#endif
