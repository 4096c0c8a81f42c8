#include "processor/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SINGLE_MARKS 1000   /* in a row, one event each, are a habit */
#define SINGLE_RATE_MIN 500 /* in a second: slower ones are batches of one that nobody can help */

static void set_place(struct weir__place *to, uint64_t sequence, const char *offset)
{
    to->known = true;
    to->sequence = sequence;
    snprintf(to->offset, sizeof to->offset, "%s", offset ? offset : "");
}

/* What was given and not handled was not given. */
static void drop_hand(struct weir__checkpoint *c)
{
    const struct weir__place *place = weir__checkpoint_resume(c);

    c->given = place ? *place : (struct weir__place){0};
}

void weir__checkpoint_init(struct weir__checkpoint *c, const struct weir_record *record,
                           const struct weir__checkpoint_policy *policy)
{
    *c = (struct weir__checkpoint){
        .partition = record->partition,
        .epoch = record->epoch,
        .rewinds = record->rewinds,
        .policy = *policy,
    };
    if (record->marked) set_place(&c->stored, record->sequence, record->offset);
    c->given = c->handled = c->marked = c->stored;
}

void weir__checkpoint_reopen(struct weir__checkpoint *c, const struct weir_record *record)
{
    struct weir__checkpoint_policy policy = c->policy;

    if (record->epoch != c->epoch || record->rewinds != c->rewinds) {
        weir__checkpoint_init(c, record, &policy);
        return;
    }
    c->fenced = false;
    drop_hand(c);
}

void weir__checkpoint_give(struct weir__checkpoint *c, uint64_t sequence, const char *offset)
{
    set_place(&c->given, sequence, offset);
}

/* Counts marks that were one event further than the one before. */
static void note_habit(struct weir__checkpoint *c, uint64_t sequence)
{
    bool single = c->marked.known && sequence == c->marked.sequence + 1;

    c->single = single ? c->single + 1 : 0;
}

static void move_mark(struct weir__checkpoint *c, uint64_t sequence, const char *offset)
{
    set_place(&c->marked, sequence, offset);
    c->mark_number++;
    c->unmarked = 0;
}

int weir__checkpoint_mark(struct weir__checkpoint *c, uint32_t partition, uint64_t sequence,
                          const char *offset, struct weir_error *err)
{
    if (c->fenced)
        return weir__fail(err, WEIR_EFENCED, "partition %" PRIu32 " is not ours any more",
                          c->partition);
    if (partition != c->partition)
        return weir__fail(err, WEIR_EINVAL,
                          "an event of partition %" PRIu32 " cannot mark %" PRIu32, partition,
                          c->partition);
    if (!c->given.known || sequence > c->given.sequence)
        return weir__fail(err, WEIR_EINVAL, "event %" PRIu64 " was not given yet", sequence);
    if (c->marked.known && sequence < c->marked.sequence)
        return weir__fail(err, WEIR_EINVAL,
                          "event %" PRIu64 " lies before the mark at %" PRIu64
                          "; weir_checkpoint_rewind goes back",
                          sequence, c->marked.sequence);
    if (c->marked.known && sequence == c->marked.sequence) return 0;
    note_habit(c, sequence);
    move_mark(c, sequence, offset);
    return 0;
}

int weir__checkpoint_mark_given(struct weir__checkpoint *c, struct weir_error *err)
{
    if (!c->given.known && !c->fenced) return 0;
    return weir__checkpoint_mark(c, c->partition, c->given.sequence, c->given.offset, err);
}

/* ---- the policy ---- */

static void mark_handled(struct weir__checkpoint *c)
{
    if (c->fenced) return;
    c->unmarked = 0;
    if (c->handled.known) /* refused when the program was further itself */
        weir__checkpoint_mark(c, c->partition, c->handled.sequence, c->handled.offset, NULL);
}

int64_t weir__checkpoint_due_ms(const struct weir__checkpoint *c)
{
    if (c->policy.ms == 0 || c->unmarked == 0 || c->fenced) return INT64_MAX;
    return c->handled_ms + c->policy.ms;
}

void weir__checkpoint_tick(struct weir__checkpoint *c, int64_t now_ms)
{
    bool many = c->policy.events > 0 && c->unmarked >= c->policy.events;

    if (many || now_ms >= weir__checkpoint_due_ms(c)) mark_handled(c);
}

/* What the program has marked itself during the call needs no policy. */
void weir__checkpoint_handled(struct weir__checkpoint *c, int64_t now_ms, uint64_t events)
{
    c->handled = c->given;
    if (c->marked.known && c->given.known && c->marked.sequence >= c->given.sequence) return;
    if (c->unmarked == 0) c->handled_ms = now_ms;
    c->unmarked += events;
    weir__checkpoint_tick(c, now_ms);
}

void weir__checkpoint_finish(struct weir__checkpoint *c)
{
    if (c->policy.events > 0 || c->policy.ms > 0) mark_handled(c);
    drop_hand(c);
}

const struct weir__place *weir__checkpoint_resume(const struct weir__checkpoint *c)
{
    if (c->marked.known && (!c->handled.known || c->marked.sequence > c->handled.sequence))
        return &c->marked;
    return c->handled.known ? &c->handled : NULL;
}

int weir__checkpoint_rewind(struct weir__checkpoint *c, uint64_t sequence, struct weir_error *err)
{
    if (c->fenced)
        return weir__fail(err, WEIR_EFENCED, "partition %" PRIu32 " is not ours any more",
                          c->partition);
    c->single = 0;
    move_mark(c, sequence, NULL);
    c->given = c->handled = c->marked;
    return 0;
}

/* ---- to the store ---- */

bool weir__checkpoint_dirty(const struct weir__checkpoint *c)
{
    return !c->busy && !c->fenced && c->stored_number != c->mark_number;
}

bool weir__checkpoint_take(struct weir__checkpoint *c, uint64_t turn, struct weir_mark *out)
{
    if (!weir__checkpoint_dirty(c)) return false;
    c->busy = true;
    c->writing = c->marked;
    c->writing_number = c->mark_number;
    *out = (struct weir_mark){
        .partition = c->partition,
        .epoch = c->epoch,
        .rewinds = c->rewinds,
        .turn = turn,
        .sequence = c->writing.sequence,
    };
    memcpy(out->offset, c->writing.offset, sizeof out->offset);
    return true;
}

void weir__checkpoint_answer(struct weir__checkpoint *c, int rc)
{
    if (!c->busy) return; /* it began anew meanwhile */
    c->busy = false;
    if (rc == WEIR_EFENCED) weir__checkpoint_fence(c);
    if (rc != 0) return;
    c->stored = c->writing;
    c->stored_number = c->writing_number;
}

void weir__checkpoint_fence(struct weir__checkpoint *c)
{
    c->fenced = true;
}

bool weir__checkpoint_settled(const struct weir__checkpoint *c)
{
    return !c->busy && (c->fenced || c->stored_number == c->mark_number);
}

bool weir__checkpoint_chatty(struct weir__checkpoint *c, int64_t now_ms, uint64_t *out_rate)
{
    int64_t took_ms = now_ms - c->single_ms;

    if (c->single == 0) c->single_ms = now_ms;
    if (c->single_warned || c->single < SINGLE_MARKS) return false;
    *out_rate = (uint64_t)c->single * 1000 / (uint64_t)(took_ms > 0 ? took_ms : 1);
    c->single_warned = *out_rate >= SINGLE_RATE_MIN;
    c->single = 0;
    c->single_ms = now_ms;
    return c->single_warned;
}
