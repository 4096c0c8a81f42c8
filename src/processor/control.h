/* control.h - one copy's part in sharing the partitions: what to do next.
 *
 * No I/O, no clock, no thread: time is an argument (monotonic milliseconds of this machine, used for
 * lengths of time only, best of a clock that goes on while the machine is suspended; who is alive is
 * judged by the store's clock in the view). The driver asks for the next step, does it, and answers;
 * the simulator is such a driver too.
 *
 * What it promises, whatever the answers are:
 *   - A partition is started only after the store said that it is ours, by the answer to a claim or
 *     in a view, and started again only after it was stopped.
 *   - Every START is followed by exactly one STOP. Between a DRAIN and its STOP lies the driver's
 *     weir__control_drained.
 *   - Nobody's partition is taken who was seen alive within its own expire_ms, by the store's clock,
 *     except past the hand-over deadline; and nobody is counted as dead before we ourselves have read
 *     the store without a break for as long and a beat (roster.h). So an outage of the store, or of
 *     this process, moves nothing.
 *   - A record that says somebody else owns a running partition stops it at once: WEIR_CLOSED_LOST.
 *   - While the store does not answer, nothing is started, drained or stopped.
 *   - While foreign owners live (weir/store.h; roster.h says when) each of our records is renewed when
 *     it is renew_ms old, by the store's clock. From one of them no more is taken than we need to
 *     have an equal share, and only what it has above its own; in its name nothing is claimed.
 *     foreign.c says what is done for it. While none lives, nothing is renewed.
 *
 * How it goes: BEAT and READ at each beat. At the start claims wait until the member list has been
 * the same for settle_ms, at most start_ms. Then after each READ: target = weir__balance of the view.
 * Free, dead or formerly our own (same id, other instance): CLAIM, START. Ours, but another's by the
 * target: DRAIN, and once drained CLAIM for that one directly, STOP. Another's, but ours by the
 * target: READ every poll_ms until it is given to us (then START), or claim it after handover_ms; a
 * foreign owner's: CLAIM, START.
 * Leaving: BEAT with weight 0, everything drained and given to whom the target says, or to nobody,
 * LEAVE, DONE. */
#ifndef WEIR_PROCESSOR_CONTROL_H
#define WEIR_PROCESSOR_CONTROL_H

#include <stdbool.h>

#include "weir/processor.h"
#include "weir/store.h"

struct weir__control;

struct weir__control_options {
    const char *id; /* copied */
    uint64_t instance;
    uint32_t weight;
    uint32_t partitions;
    int64_t beat_ms;           /* 1,000 */
    int64_t expire_ms;         /* 3,000 */
    int64_t settle_ms;         /* 300 */
    int64_t start_ms;          /* 2,000 */
    int64_t handover_ms;       /* 10,000 */
    int64_t poll_ms;           /* 50 */
    int64_t foreign_expire_ms; /* 0: 120,000 */
    int64_t renew_ms;          /* 0: 20,000 */
    int64_t take_gap_ms;       /* between two partitions that are claimed for us; 0: none */
    /* Wrong on purpose, for the simulator to be caught with. */
    bool sabotage_local_clock;  /* a member's death is judged by our own clock */
    bool sabotage_steal_unseen; /* the store's outage counts as everybody's death */
};

int weir__control_new(struct weir__control **out, const struct weir__control_options *,
                      struct weir_error *);
void weir__control_free(struct weir__control *);

enum weir__control_do {
    WEIR__CONTROL_WAIT, /* nothing before until_ms, unless something below is called */
    /* to be answered by weir__control_answer before the next step is asked for: */
    WEIR__CONTROL_BEAT,  /* `member` */
    WEIR__CONTROL_READ,  /* into `view` */
    WEIR__CONTROL_CLAIM, /* `record` for `owner`, `instance` */
    WEIR__CONTROL_LEAVE, /* `member` */
    /* told, not answered: */
    WEIR__CONTROL_START, /* `record` is ours: open it at its checkpoint, with its epoch */
    WEIR__CONTROL_DRAIN, /* no new events to the handler; drained() when its last mark is stored */
    WEIR__CONTROL_STOP, /* close with `reason`: it is somebody else's now, or nobody's; RELEASED when
                             drained() came unasked, where the driver may know better */
    WEIR__CONTROL_REWIND, /* the record's checkpoint was set by hand: reopen there */
    WEIR__CONTROL_REPORT, /* `record` cannot be understood: tell the program; once for each */
    WEIR__CONTROL_DONE    /* left; nothing will come any more */
};

struct weir__control_step {
    enum weir__control_do what;
    int64_t until_ms;
    uint32_t partition;
    struct weir_view *view;           /* the control's own */
    const struct weir_member *member; /* likewise; lives until the answer */
    const struct weir_record *record; /* likewise */
    const char *owner;
    uint64_t instance;
    enum weir_close_reason reason;
    bool shared; /* with START and REWIND: foreign owners live, who all attach with epoch 0 */
};

void weir__control_next(struct weir__control *, int64_t now_ms, struct weir__control_step *out);

/* rc of the store's call; record: the one a claim gave, else NULL. A claim that was not answered
 * (WEIR_CLASS_RETRY, WEIR_EUNKNOWN) may have been done: the next READ tells. */
void weir__control_answer(struct weir__control *, int64_t now_ms, int rc,
                          const struct weir_record *record);

/* The partition's handler is idle for good and its last mark is stored, or could not be. Comes from
 * the driver after DRAIN, or unasked when the program releases a partition or its pump gave up:
 * then it is given to the target, or to nobody, and not claimed again for `pause_ms`. Not after STOP:
 * it would be taken for the next START's. */
void weir__control_drained(struct weir__control *, int64_t now_ms, uint32_t partition,
                           int64_t pause_ms);

/* The link was stolen or a mark was fenced: a READ comes at once, and STOP unless the record says
 * that it is still ours (then REWIND: open it again). */
void weir__control_doubt(struct weir__control *, int64_t now_ms, uint32_t partition);

void weir__control_leave(struct weir__control *, int64_t now_ms);

/* The hub has more partitions now. WEIR_ENOMEM. */
int weir__control_grow(struct weir__control *, uint32_t partitions, struct weir_error *);

/* The store has not answered since then; 0: it answers. */
int64_t weir__control_unanswered_since(const struct weir__control *);

struct weir__control_counts {
    uint64_t claims, fenced, starts, handovers, takeovers, steals, lost, renewals;
};
void weir__control_counts(const struct weir__control *, struct weir__control_counts *out);

#endif
