/* checkpoint.h - how far one partition has come: places that follow each other.
 *
 *     stored <= writing <= marked <= given        by sequence number, in the absence of a rewind
 *                         handled <= given
 *
 *   given     the last event that the handler was shown
 *   handled   the last event that it is done with, by its own return
 *   marked    up to which the program, or the policy it chose, says it is done
 *   writing   the one mark that is on its way to the store
 *   stored    what the store has said it keeps
 *
 * Marks that come while one is on its way replace each other, so the store sees the newest only.
 * A mark never goes beyond what was given nor back, except by a rewind, which moves the three in
 * memory. The policy marks what was handled, never what is in hand. After fence nothing is marked or written any more.
 *
 * No I/O, no clock, no lock: time is an argument, and whoever shares it among threads locks it. */
#ifndef WEIR_PROCESSOR_CHECKPOINT_H
#define WEIR_PROCESSOR_CHECKPOINT_H

#include <stdbool.h>

#include "base/error.h"
#include "weir/store.h"

/* A place in a partition: done up to and with this event. */
struct weir__place {
    bool known; /* else: at the beginning, nothing is done */
    uint64_t sequence;
    char offset[WEIR_OFFSET_TEXT_BYTES]; /* "": not known */
};

struct weir__checkpoint_policy {
    uint64_t events; /* marks what was handled after so many events; 0: never */
    int64_t ms;      /* or after so long; 0: never */
};

struct weir__checkpoint {
    uint32_t partition;
    int64_t epoch;
    uint64_t rewinds;
    struct weir__checkpoint_policy policy;

    struct weir__place given, handled, marked, writing, stored;
    uint64_t mark_number;    /* counts marks, so that a wait knows its own */
    uint64_t writing_number; /* of the one on its way */
    uint64_t stored_number;  /* of the last that was stored */
    bool busy;               /* one is on its way */
    bool fenced;

    uint64_t unmarked;  /* events handled since the last mark */
    int64_t handled_ms; /* when the first of them was */

    uint32_t single;    /* marks in a row that were one event further each */
    int64_t single_ms;  /* since when */
    bool single_warned; /* once is enough */
};

/* Begins where a record says. */
void weir__checkpoint_init(struct weir__checkpoint *, const struct weir_record *,
                           const struct weir__checkpoint_policy *);

/* The same again, after it was doubted whether the partition is ours. When nobody else had it
 * meanwhile what is marked and handled stays so. */
void weir__checkpoint_reopen(struct weir__checkpoint *, const struct weir_record *);

/* The handler is being shown events up to this one. offset is copied; NULL: not known. */
void weir__checkpoint_give(struct weir__checkpoint *, uint64_t sequence, const char *offset);

/* Marks an event as done, with all before it. WEIR_EFENCED. WEIR_EINVAL: it is another partition's,
 * was not given yet, or lies before the last mark. The mark that is there already is 0. */
int weir__checkpoint_mark(struct weir__checkpoint *, uint32_t partition, uint64_t sequence,
                          const char *offset, struct weir_error *);

/* The same for everything that was given; nothing when nothing was. */
int weir__checkpoint_mark_given(struct weir__checkpoint *, struct weir_error *);

/* The handler has done `events` more, all that were given: marks them when the policy says so. */
void weir__checkpoint_handled(struct weir__checkpoint *, int64_t now_ms, uint64_t events);

/* Time has passed: the same. When it should be called next; INT64_MAX: no need. */
void weir__checkpoint_tick(struct weir__checkpoint *, int64_t now_ms);
int64_t weir__checkpoint_due_ms(const struct weir__checkpoint *);

/* Nothing is in hand any more: what was given and not handled was not given. With a policy what was
 * handled is marked. For the last call of the handler. */
void weir__checkpoint_finish(struct weir__checkpoint *);

/* Where to read on: behind what is handled or marked. NULL: nothing is, yet. */
const struct weir__place *weir__checkpoint_resume(const struct weir__checkpoint *);

/* Goes to a place of the program's choice, back or on: what comes behind it is given next. */
int weir__checkpoint_rewind(struct weir__checkpoint *, uint64_t sequence, struct weir_error *);

/* Whether there is a mark to be written and none on its way. */
bool weir__checkpoint_dirty(const struct weir__checkpoint *);

/* The next mark to be written; false: there is none, or one is on its way. `turn` is to be greater
 * than that of every mark that this copy has sent of the partition, those that were not answered and
 * those of an earlier opening too: by it the store refuses what comes late. */
bool weir__checkpoint_take(struct weir__checkpoint *, uint64_t turn, struct weir_mark *out);

/* What became of it: 0, WEIR_EFENCED (nothing more will be written), or it could not be written and
 * is taken again, unless there is a newer one. */
void weir__checkpoint_answer(struct weir__checkpoint *, int rc);

/* The partition is lost. */
void weir__checkpoint_fence(struct weir__checkpoint *);

/* Nothing is on its way, and nothing is left that could be. */
bool weir__checkpoint_settled(const struct weir__checkpoint *);

/* Whether marks have come event by event and fast, told once, with how many in a second. */
bool weir__checkpoint_chatty(struct weir__checkpoint *, int64_t now_ms, uint64_t *out_rate);

#endif
