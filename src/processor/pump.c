/* pump.c - one partition's turn.
 *
 *   open the program's > open the stream > receive, hand over, receive, ... > close the program's
 *
 * A turn looks first at what the partition was told (stop, drain, go elsewhere), then does one
 * receive and one call of the handler, or a few calls when they are for single events. It waits for
 * nothing: with nothing to read the partition leaves the ring until its stream wakes it.
 *
 * When the handler fails, what it was given and has not marked is given again, after a pause that
 * doubles. With a policy that ends this, the events are then tried one at a time, so that only those
 * that fail alone are taken for poison. */
#include <inttypes.h>
#include <stdio.h>

#include "processor/state.h"

#define TURN_STEPS_MAX 256 /* receives and calls of the handler, in one turn, */
#define TURN_MS 4          /* unless it takes so long: then it is another's */
#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS 30000 /* of a handler, or of what must be mended by somebody */
#define PAUSE_RETRY_MAX_MS 5000
#define STEADY_MS 60000       /* a stream that lasted so long was not taken in a quarrel */
#define RELEASE_PAUSE_MS 5000 /* before what the program gave away may come back */

struct orders {
    enum weir_close_reason stop, drain;
    bool reopen, moved, doubted, stolen, paused, abandoned, shared;
};

static int64_t pause_ms(uint32_t attempts, int64_t max_ms)
{
    uint32_t shift = attempts < 16 ? attempts : 16;
    int64_t pause = (int64_t)PAUSE_FIRST_MS << (shift > 0 ? shift - 1 : 0);

    return pause < max_ms ? pause : max_ms;
}

/* ---- calls of the program ---- */

/* Around each, so that a call that takes too long is noticed, and one that never ends is known. */
static void enter(struct weir_partition *p)
{
    struct weir_processor *x = p->processor;
    int64_t now_ms = weir__now_ms();

    weir__mutex_lock(&x->lock);
    p->handling = true;
    p->handling_ms = now_ms;
    if (x->options.handler_ms > 0) weir__runner_due(x, now_ms + x->options.handler_ms);
    weir__mutex_unlock(&x->lock);
}

/* false: the processor is gone, and nothing of it may be used. */
static bool leave(struct weir_partition *p)
{
    bool abandoned;

    weir__mutex_lock(&p->processor->lock);
    p->handling = p->overdue = false;
    abandoned = p->processor->abandoned;
    weir__mutex_unlock(&p->processor->lock);
    return !abandoned;
}

static bool tell(struct weir_partition *p, enum weir_action action, const struct weir_error *err)
{
    const struct weir_processor_options *o = &p->processor->options;

    if (!o->handler.error) return true;
    enter(p);
    o->handler.error(p, action, err, o->user);
    return leave(p);
}

static void forget_stream(struct weir_partition *p)
{
    p->processor->source->ops->shut(p->stream);
    p->stream = NULL;
    p->hand = (struct weir_received){0};
    p->next = 0;
    p->alone = p->poison = false;
    p->attempts = 0;
}

/* ---- the end ---- */

static bool end(struct weir_partition *p, enum weir_close_reason reason)
{
    struct weir_processor *x = p->processor;
    const struct weir_processor_options *o = &x->options;
    bool going_on = true;

    if (p->ended) return true;
    p->ended = true;
    weir__mutex_lock(&x->lock);
    weir__checkpoint_finish(&p->checkpoint);
    x->stats.closed += p->opened;
    weir__mutex_unlock(&x->lock);
    if (p->opened && o->handler.close) {
        enter(p);
        o->handler.close(p, reason, o->user);
        going_on = leave(p);
    }
    if (going_on) forget_stream(p);
    return going_on;
}

/* Closed, and still ours: until the last mark is stored. */
static enum weir__pump wait_for_marks(struct weir_partition *p)
{
    struct weir_processor *x = p->processor;

    weir__mutex_lock(&x->lock);
    if (!p->drained && weir__checkpoint_settled(&p->checkpoint)) {
        p->drained = p->tell_drained = true;
        weir__runner_note(x);
    } else if (!p->drained) {
        weir__runner_marks(x, true);
    }
    weir__mutex_unlock(&x->lock);
    return WEIR__PUMP_WAIT;
}

/* By our own doing, not by the control's. */
static enum weir__pump give_up(struct weir_partition *p, enum weir_close_reason reason,
                               int64_t pause)
{
    struct weir_processor *x = p->processor;

    weir__mutex_lock(&x->lock);
    if (!p->drain) p->drain = reason;
    p->pause_ms = pause;
    atomic_store(&p->revoked, true);
    atomic_store(&p->called, true);
    weir__mutex_unlock(&x->lock);
    return WEIR__PUMP_AGAIN;
}

/* Somebody else reads it: the control finds out whose it is. */
static void doubt_locked(struct weir_partition *p)
{
    p->doubted = p->tell_doubt = true;
    atomic_store(&p->revoked, true);
    atomic_store(&p->called, true);
    weir__runner_note(p->processor);
}

static void doubt(struct weir_partition *p, bool stolen)
{
    struct weir_processor *x = p->processor;

    weir__mutex_lock(&x->lock);
    p->stolen = p->stolen || stolen;
    doubt_locked(p);
    weir__mutex_unlock(&x->lock);
}

/* ---- the beginning ---- */

static enum weir__pump open_partition(struct weir_partition *p)
{
    struct weir_processor *x = p->processor;
    const struct weir_processor_options *o = &x->options;
    struct weir_error err;
    int rc = 0;

    p->opened = true;
    p->quiet_ms = weir__now_ms();
    weir__mutex_lock(&x->lock);
    x->stats.opened++;
    weir__mutex_unlock(&x->lock);
    if (o->handler.open) {
        enter(p);
        rc = o->handler.open(p, &p->state, o->user);
        if (!leave(p)) return WEIR__PUMP_ABANDONED;
    }
    if (rc == 0) return WEIR__PUMP_AGAIN;
    weir__fail(&err, weir__error_known(rc) ? rc : WEIR_EFAILED, "the handler's open returned %d",
               rc);
    if (!tell(p, WEIR_HANDLING, &err)) return WEIR__PUMP_ABANDONED;
    return give_up(p, WEIR_CLOSED_ERROR, PAUSE_RETRY_MAX_MS);
}

/* true: by its checkpoint. */
static bool find_position(struct weir_partition *p, struct weir_position *out)
{
    struct weir_processor *x = p->processor;
    const struct weir__place *place;

    *out = (struct weir_position){.from = WEIR_FROM_EARLIEST};
    weir__mutex_lock(&x->lock);
    place = weir__checkpoint_resume(&p->checkpoint);
    if (place)
        *out = (struct weir_position){.from = WEIR_FROM_SEQUENCE,
                                      .after = true,
                                      .value = (int64_t)place->sequence};
    weir__mutex_unlock(&x->lock);
    if (!place && x->options.initial) x->options.initial(p->id, out, x->options.user);
    return place != NULL;
}

/* From any thread, under the source's locks. */
static void wake(void *user, int over)
{
    struct weir_partition *p = user;
    struct weir_processor *x = p->processor;

    weir__mutex_lock(&x->lock);
    if (over == WEIR_ESTOLEN) {
        p->stolen = true;
        doubt_locked(p);
    }
    weir__runner_push(x, p);
    weir__mutex_unlock(&x->lock);
}

/* A stream that cannot be opened or read is tried again, less and less often. */
static enum weir__pump rest(struct weir_partition *p, enum weir_action action,
                            const struct weir_error *err)
{
    bool retry = weir_error_class(err->code) == WEIR_CLASS_RETRY;

    p->retry_ms = weir__now_ms() + pause_ms(++p->tries, retry ? PAUSE_RETRY_MAX_MS : PAUSE_MAX_MS);
    return tell(p, action, err) ? WEIR__PUMP_AGAIN : WEIR__PUMP_ABANDONED;
}

static enum weir__pump open_stream(struct weir_partition *p)
{
    struct weir_processor *x = p->processor;
    struct weir_stream_options o = {
        .epoch = p->shared ? 0 : p->epoch,
        .owner = x->name,
        .bytes_max = x->stream_bytes,
        .events_max = x->stream_events,
        .metrics = x->options.metrics,
        .wake = wake,
        .user = p,
    };
    struct weir_error err;
    bool marked = find_position(p, &o.position);
    int rc = marked && o.position.value < 0
                 ? weir__fail(&err, WEIR_EINVAL, "no sequence number is that high")
                 : x->source->ops->open(x->source, p->id, &o, &p->stream, &err);

    if (rc == 0) {
        p->tries = 0;
        p->stream_ms = weir__now_ms();
        return WEIR__PUMP_AGAIN;
    }
    if (rc == WEIR_EEPOCH && p->shared) {
        /* Foreign owners have epoch 0: what is in the way is a link of a copy that had it before. */
        p->shared = false;
        return WEIR__PUMP_AGAIN;
    }
    if (rc == WEIR_EEPOCH) doubt(p, false);
    if (rc == WEIR_EINVAL && marked)
        weir__wrap(&err, rc,
                   "the checkpoint at %" PRIu64 " of partition %" PRIu32
                   " is not in the hub (weir checkpoint set, or delete, puts it right)",
                   (uint64_t)o.position.value, p->id);
    return rest(p, WEIR_OPENING, &err);
}

/* ---- events ---- */

/* How the call ended, seen under the lock. */
struct outcome {
    int rc;
    bool rewound, released, told, abandoned;
};

static void hand_over(struct weir_partition *p, const struct weir_event *events, size_t count,
                      struct outcome *out)
{
    struct weir_processor *x = p->processor;
    const struct weir_processor_options *o = &x->options;
    char offset[WEIR_OFFSET_TEXT_BYTES];
    int64_t now_ms = weir__now_ms();

    weir__mutex_lock(&x->lock);
    if (count > 0) {
        snprintf(offset, sizeof offset, "%" PRIu64, events[count - 1].offset);
        weir__checkpoint_give(&p->checkpoint, events[count - 1].sequence, offset);
    }
    p->handling = true;
    p->handling_ms = now_ms;
    if (o->handler_ms > 0) weir__runner_due(x, now_ms + o->handler_ms);
    weir__mutex_unlock(&x->lock);

    out->rc = o->handler.events(p, events, count, o->user);

    p->quiet_ms = weir__now_ms();
    weir__mutex_lock(&x->lock);
    p->handling = p->overdue = false;
    out->rewound = p->rewound;
    out->released = p->released;
    p->rewound = p->released = false;
    out->told = p->stop || p->doubted || p->reopen;
    out->abandoned = x->abandoned;
    x->stats.batches++;
    x->stats.handler_failures += out->rc != 0 && !out->told;
    if (out->rc == 0 && !out->rewound && count > 0) {
        x->stats.events += count;
        weir__checkpoint_handled(&p->checkpoint, p->quiet_ms, count);
    }
    if (weir__checkpoint_dirty(&p->checkpoint)) weir__runner_marks(x, false);
    weir__mutex_unlock(&x->lock);
}

/* One event is done with: dead or dropped, so that the next can come. */
static void pass_poison(struct weir_partition *p, bool dropped)
{
    struct weir_processor *x = p->processor;
    const struct weir_event *e = &p->hand.events[p->next];
    char offset[WEIR_OFFSET_TEXT_BYTES];

    snprintf(offset, sizeof offset, "%" PRIu64, e->offset);
    weir__mutex_lock(&x->lock);
    weir__checkpoint_give(&p->checkpoint, e->sequence, offset);
    weir__checkpoint_handled(&p->checkpoint, weir__now_ms(), 1);
    if (weir__checkpoint_dirty(&p->checkpoint)) weir__runner_marks(x, false);
    if (dropped)
        x->stats.dropped++;
    else
        x->stats.dead_letters++;
    weir__mutex_unlock(&x->lock);
    p->last_time_ms = e->enqueued_time_ms;
    p->next++;
    p->poison = false;
    p->attempts = 0;
    if (p->next == p->hand.count) p->alone = false;
}

/* To the dead letters, or nowhere. */
static enum weir__pump bury(struct weir_partition *p)
{
    const struct weir_processor_options *o = &p->processor->options;
    struct weir_error err;
    int rc;

    if (o->failure == WEIR_DROP) {
        pass_poison(p, true);
        return WEIR__PUMP_AGAIN;
    }
    if (o->dead_letter) {
        enter(p);
        rc = o->dead_letter(p, &p->hand.events[p->next], &p->why, o->user);
        if (!leave(p)) return WEIR__PUMP_ABANDONED;
    } else {
        rc = weir__letter_send(p, &p->hand.events[p->next], &p->why, &err);
        if (rc != 0 && !tell(p, WEIR_HANDLING, &err)) return WEIR__PUMP_ABANDONED;
    }
    if (rc == 0)
        pass_poison(p, false);
    else
        p->retry_ms = weir__now_ms() + pause_ms(++p->attempts, PAUSE_MAX_MS);
    return WEIR__PUMP_AGAIN;
}

/* What the program has marked before it failed is done. */
static void pass_marked(struct weir_partition *p)
{
    struct weir_processor *x = p->processor;
    struct weir__place marked;

    weir__mutex_lock(&x->lock);
    marked = p->checkpoint.marked;
    weir__mutex_unlock(&x->lock);
    while (marked.known && p->next < p->hand.count &&
           p->hand.events[p->next].sequence <= marked.sequence)
        p->next++;
}

static enum weir__pump fail(struct weir_partition *p, int rc, size_t count)
{
    const struct weir_processor_options *o = &p->processor->options;
    bool enough = o->failure != WEIR_RETRY_FOREVER && ++p->attempts >= o->attempts;
    bool ours = weir__error_known(rc);

    if (o->failure == WEIR_RETRY_FOREVER) p->attempts++;
    weir__fail(&p->why, ours ? rc : WEIR_EFAILED,
               "the handler of partition %" PRIu32 " returned %d%s%s", p->id, rc, ours ? ": " : "",
               ours ? weir_error_text(rc) : "");
    if (!tell(p, WEIR_HANDLING, &p->why)) return WEIR__PUMP_ABANDONED;
    if (enough && o->failure == WEIR_GIVE_UP)
        return give_up(p, WEIR_CLOSED_ERROR, PAUSE_RETRY_MAX_MS);
    if (count > 0) pass_marked(p);
    if (p->next == p->hand.count) { /* all of it, or it was an idle call */
        p->attempts = 0;
        return WEIR__PUMP_AGAIN;
    }
    if (p->alone || (enough && count == 1)) {
        p->poison = true;
        p->attempts = 0;
        return WEIR__PUMP_AGAIN;
    }
    if (enough)
        p->alone = true;
    else
        p->retry_ms = weir__now_ms() + pause_ms(p->attempts, PAUSE_MAX_MS);
    return WEIR__PUMP_AGAIN;
}

/* Gives what is in hand, or nothing at all for an idle call. */
static enum weir__pump give(struct weir_partition *p)
{
    bool single = p->processor->options.one_by_one || p->alone;
    size_t left = p->hand.count - p->next;
    size_t count = single && left > 1 ? 1 : left;
    const struct weir_event *events = count > 0 ? &p->hand.events[p->next] : NULL;
    struct outcome got;

    hand_over(p, events, count, &got);
    if (got.abandoned) return WEIR__PUMP_ABANDONED;
    if (got.released) return give_up(p, WEIR_CLOSED_RELEASED, RELEASE_PAUSE_MS);
    if (got.told) return WEIR__PUMP_AGAIN;
    if (got.rewound) {
        forget_stream(p);
        return WEIR__PUMP_AGAIN;
    }
    if (got.rc != 0) return fail(p, got.rc, count);
    if (count > 0) p->last_time_ms = events[count - 1].enqueued_time_ms;
    p->next += count;
    p->attempts = 0;
    if (p->next == p->hand.count) p->alone = false;
    return WEIR__PUMP_AGAIN;
}

static enum weir__pump starve(struct weir_partition *p, int64_t *due_ms)
{
    const struct weir_processor_options *o = &p->processor->options;

    if (!o->invoke_when_idle) return WEIR__PUMP_WAIT;
    if (weir__now_ms() >= p->quiet_ms + o->receive_ms) return give(p);
    *due_ms = p->quiet_ms + o->receive_ms;
    return WEIR__PUMP_WAIT;
}

/* Events that nobody can read any more are not passed over in silence. */
static bool tell_missed(struct weir_partition *p)
{
    struct weir_error err;

    if (p->hand.missed == 0) return true;
    weir__fail(&err, WEIR_ENOTFOUND,
               "%" PRIu64 " events of partition %" PRIu32
               " are gone: they expired (a longer retention, or more copies, would have them), or"
               " a server found them damaged, which its log tells; going on at %" PRIu64,
               p->hand.missed, p->id, p->hand.events[0].sequence);
    return tell(p, WEIR_RECEIVING, &err);
}

static enum weir__pump receive(struct weir_partition *p, int64_t *due_ms)
{
    struct weir_processor *x = p->processor;
    struct weir_error err;
    int rc = x->source->ops->receive(p->stream, x->options.batch_max, &p->hand, &err);

    p->next = 0;
    if (rc == WEIR_ETIMEDOUT) return starve(p, due_ms);
    if (rc == 0) return tell_missed(p) ? WEIR__PUMP_AGAIN : WEIR__PUMP_ABANDONED;
    p->hand.count = 0;
    if (rc == WEIR_ECORRUPT) { /* in front of it until somebody sets the checkpoint behind it */
        weir__wrap(&err, rc, "partition %" PRIu32 " (weir checkpoint set goes on behind them)",
                   p->id);
        return rest(p, WEIR_RECEIVING, &err);
    }
    forget_stream(p);
    if (rc != WEIR_ESTOLEN) return rest(p, WEIR_RECEIVING, &err);
    doubt(p, true);
    return WEIR__PUMP_AGAIN;
}

/* The store says that a partition is ours whose stream was stolen. It may have been a mistake once; whoever
 * does it again and again is left more and more time, or both would do nothing else. */
static bool note_theft(struct weir_partition *p)
{
    int64_t now_ms = weir__now_ms();
    struct weir_error err;

    if (now_ms - p->stream_ms > STEADY_MS) p->thefts = 0;
    if (p->thefts++ == 0) return true;
    p->retry_ms = now_ms + pause_ms(p->thefts - 1, PAUSE_MAX_MS);
    if (p->thefts & (p->thefts - 1)) return true; /* said the second, fourth, eighth ... time */
    weir__fail(&err, WEIR_ESTOLEN,
               "another reader took partition %" PRIu32 " %" PRIu32
               " times, though the store says that it is ours: do others read this group with "
               "another store?",
               p->id, p->thefts);
    return tell(p, WEIR_RECEIVING, &err);
}

/* ---- the turn ---- */

static void take_orders(struct weir_partition *p, struct orders *out)
{
    struct weir_processor *x = p->processor;

    weir__mutex_lock(&x->lock);
    atomic_store(&p->called, false);
    *out = (struct orders){.stop = p->stop,
                           .drain = p->drain,
                           .reopen = p->reopen,
                           .doubted = p->doubted,
                           .stolen = p->reopen && p->stolen,
                           .paused = p->paused,
                           .abandoned = x->abandoned,
                           .shared = x->slots[p->id].shared};
    if (p->reopen && !p->stop && !p->ended) {
        out->moved = p->checkpoint.rewinds != x->slots[p->id].record.rewinds;
        weir__checkpoint_reopen(&p->checkpoint, &x->slots[p->id].record);
        atomic_store(&p->revoked, p->drain != 0);
    }
    if (p->reopen) p->stolen = false;
    p->reopen = false;
    weir__checkpoint_tick(&p->checkpoint, weir__now_ms());
    if (weir__checkpoint_dirty(&p->checkpoint)) weir__runner_marks(x, false);
    weir__mutex_unlock(&x->lock);
}

/* The first that is to be done. */
static enum weir__pump step(struct weir_partition *p, const struct orders *o, int64_t *due_ms)
{
    if (o->doubted) return WEIR__PUMP_WAIT;
    if (!p->opened) return open_partition(p);
    if (weir__now_ms() < p->retry_ms) {
        *due_ms = p->retry_ms;
        return WEIR__PUMP_WAIT;
    }
    if (!p->stream) return open_stream(p);
    if (o->paused) return WEIR__PUMP_WAIT;
    if (p->poison) return bury(p);
    if (p->next < p->hand.count) return give(p);
    return receive(p, due_ms);
}

static bool warn_chatty(struct weir_partition *p)
{
    struct weir_processor *x = p->processor;
    struct weir_error err;
    uint64_t rate;

    weir__mutex_lock(&x->lock);
    rate = p->chatty_rate;
    p->chatty_rate = 0;
    weir__mutex_unlock(&x->lock);
    if (rate == 0) return true;
    weir__fail(&err, WEIR_ELIMIT,
               "every event of partition %" PRIu32 " is marked, %" PRIu64
               " a second: mark the last of each batch",
               p->id, rate);
    return tell(p, WEIR_CHECKPOINTING, &err);
}

enum weir__pump weir__pump_turn(struct weir_partition *p, int64_t *due_ms)
{
    enum weir__pump next = WEIR__PUMP_AGAIN;
    int64_t policy_ms, began_ms;
    struct orders o;

    *due_ms = INT64_MAX;
    take_orders(p, &o);
    if (o.abandoned) return WEIR__PUMP_ABANDONED;
    if (o.stop) return end(p, o.stop) ? WEIR__PUMP_GONE : WEIR__PUMP_ABANDONED;
    if (o.drain && !end(p, o.drain)) return WEIR__PUMP_ABANDONED;
    if (p->ended) return wait_for_marks(p);
    if (o.reopen) {
        forget_stream(p);
        p->epoch = p->checkpoint.epoch;
        p->shared = o.shared;
        if (o.moved) p->tries = 0; /* by hand, to where it may work */
        if (p->tries < 2) p->retry_ms = 0;
        if (o.stolen && !note_theft(p)) return WEIR__PUMP_ABANDONED;
    }
    began_ms = weir__now_ms();
    for (int i = 0; i < TURN_STEPS_MAX && next == WEIR__PUMP_AGAIN && !atomic_load(&p->called) &&
                    weir__now_ms() - began_ms < TURN_MS;
         i++)
        next = step(p, &o, due_ms);
    if (next == WEIR__PUMP_ABANDONED || !warn_chatty(p)) return WEIR__PUMP_ABANDONED;
    weir__mutex_lock(&p->processor->lock);
    policy_ms = weir__checkpoint_due_ms(&p->checkpoint);
    weir__mutex_unlock(&p->processor->lock);
    if (policy_ms < *due_ms) *due_ms = policy_ms;
    return next;
}
