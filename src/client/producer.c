/* producer.c - publishing: encode, send, and keep account of what is in flight.
 *
 * Every asynchronous batch is a flight, listed from the moment before it is sent until its
 * completion has run. So flushing is waiting until the flights of before have left the list, and
 * closing past its deadline is telling the rest of them WEIR_EUNKNOWN: the memory then stays until
 * the last of them has landed.
 *
 * One lock per producer guards its lists. It is held neither while encoding or sending, nor while
 * the caller's completion runs. An idempotent producer sends one batch at a time, because the
 * numbers it gives out must arrive in order: whose turn it is, is a flag under that lock. */
#include "base/thread.h"
#include "client/encode.h"
#include "client/weir.h"

#include <stdlib.h>

struct flight {
    struct weir_producer *producer;
    struct flight *next, *prev;
    uint64_t ticket;
    weir_done_fn done;
    void *user;
    uint32_t partition;
    bool running; /* its completion, now */
    bool given_up;
    bool landed; /* given up, and the sender has no more to say about it */
};

struct weir_producer {
    struct weir *weir;
    struct weir__sender *sender;
    size_t batch_bytes_max;
    bool pinned;
    bool idempotent;

    struct weir__mutex lock;
    struct weir__cond changed;
    struct flight *oldest, *newest; /* in the order of their tickets */
    struct flight *spare;
    struct weir__encoder *encoders; /* not in use */
    uint64_t tickets;
    bool closing;  /* nothing more is taken in */
    bool telling;  /* given-up flights hear of it: they stay in the list */
    bool orphaned; /* closed; the last flight to land frees */

    bool sending; /* somebody has the turn: idempotent only, as the mark */
    struct weir__log_producer mark;
};

/* ---- the list of flights; the lock is held ---- */

static void list_flight(struct weir_producer *p, struct flight *f)
{
    f->ticket = ++p->tickets;
    f->prev = p->newest;
    f->next = NULL;
    if (p->newest)
        p->newest->next = f;
    else
        p->oldest = f;
    p->newest = f;
}

static void unlist_flight(struct weir_producer *p, struct flight *f)
{
    if (f->prev)
        f->prev->next = f->next;
    else
        p->oldest = f->next;
    if (f->next)
        f->next->prev = f->prev;
    else
        p->newest = f->prev;
    f->next = p->spare;
    p->spare = f;
}

static bool is_listed(const struct weir_producer *p, const struct flight *wanted)
{
    const struct flight *f = p->oldest;

    while (f && f != wanted) f = f->next;
    return f != NULL;
}

static void free_producer(struct weir_producer *p)
{
    while (p->spare) {
        struct flight *next = p->spare->next;
        free(p->spare);
        p->spare = next;
    }
    while (p->encoders) {
        struct weir__encoder *next = p->encoders->next;
        weir__encoder_free(p->encoders);
        p->encoders = next;
    }
    weir__cond_fini(&p->changed);
    weir__mutex_fini(&p->lock);
    free(p);
}

/* ---- before and after a send ---- */

static int take_encoder(struct weir_producer *p, struct weir__encoder **out, struct weir_error *err)
{
    weir__mutex_lock(&p->lock);
    *out = p->encoders;
    if (*out) p->encoders = (*out)->next;
    weir__mutex_unlock(&p->lock);
    return *out ? 0 : weir__encoder_new(out, p->batch_bytes_max, err);
}

static void give_encoder(struct weir_producer *p, struct weir__encoder *enc)
{
    weir__mutex_lock(&p->lock);
    enc->next = p->encoders;
    p->encoders = enc;
    weir__mutex_unlock(&p->lock);
}

/* The numbers for this batch; *out is NULL for a plain producer. */
static int take_turn(struct weir_producer *p, int64_t deadline_ns,
                     const struct weir__log_producer **out, struct weir_error *err)
{
    bool in_time = true;

    *out = NULL;
    if (!p->idempotent) return 0;
    weir__mutex_lock(&p->lock);
    while (p->sending && in_time) in_time = weir__cond_wait(&p->changed, &p->lock, deadline_ns);
    if (!p->sending) {
        p->sending = true;
        *out = &p->mark;
    }
    weir__mutex_unlock(&p->lock);
    return *out ? 0 : weir__fail(err, WEIR_EBUSY, "another batch of this producer is being sent");
}

/* taken: how many numbers were used up. After WEIR_EUNKNOWN none were: the batch is repeated. */
static void end_turn(struct weir_producer *p, uint32_t taken)
{
    if (!p->idempotent) return;
    weir__mutex_lock(&p->lock);
    p->mark.sequence += taken;
    p->sending = false;
    weir__cond_broadcast(&p->changed);
    weir__mutex_unlock(&p->lock);
}

static void fill_receipt(struct weir_receipt *out, uint32_t partition,
                         const struct weir__log_receipt *at)
{
    *out = (struct weir_receipt){
        .partition = partition,
        .sequence = at->sequence,
        .offset = at->offset,
        .enqueued_time_ms = at->time_ms,
        .duplicate = at->duplicate,
        .placed = at->sequence != WEIR_UNPLACED,
    };
}

/* ---- sending and waiting ---- */

static int send_batch(struct weir_producer *p, const struct weir__batch *batch, int64_t timeout_ms,
                      struct weir_receipt *out, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(timeout_ms);
    const struct weir__log_producer *mark;
    struct weir__log_receipt at;
    uint32_t partition;
    int rc = p->sender->ops->route(p->sender, batch, &partition, err);

    if (rc == 0) rc = take_turn(p, deadline_ns, &mark, err);
    if (rc != 0) return rc;
    rc = p->sender->ops->publish_wait(p->sender, batch, partition, mark, deadline_ns, &at, err);
    end_turn(p, rc == 0 ? batch->count : 0);
    if (rc == 0 && out) fill_receipt(out, partition, &at);
    return rc;
}

int weir_producer_send(struct weir_producer *p, const struct weir_event *events, size_t count,
                       int64_t timeout_ms, struct weir_receipt *out, struct weir_error *err)
{
    struct weir__encoder *enc;
    struct weir__batch batch;
    int rc = weir__completing_refuse("weir_producer_send", err);

    if (rc == 0) rc = take_encoder(p, &enc, err);
    if (rc != 0) return rc;
    rc = weir__encoder_run(enc, events, count, p->pinned, &batch, err);
    if (rc == 0) rc = send_batch(p, &batch, timeout_ms, out, err);
    give_encoder(p, enc);
    return rc;
}

/* ---- sending without waiting ---- */

static int start_flight(struct weir_producer *p, const struct flight *model, struct flight **out,
                        struct weir_error *err)
{
    struct flight *f = NULL;
    bool closing;

    weir__mutex_lock(&p->lock);
    closing = p->closing;
    if (!closing && p->spare) {
        f = p->spare;
        p->spare = f->next;
    } else if (!closing) {
        f = malloc(sizeof *f);
    }
    if (f) {
        *f = *model;
        list_flight(p, f);
    }
    weir__mutex_unlock(&p->lock);
    *out = f;
    if (closing) return weir__fail(err, WEIR_ECLOSED, "the producer is being closed");
    return f ? 0 : weir__fail(err, WEIR_ENOMEM, "no memory for a batch in flight");
}

static void end_flight(struct weir_producer *p, struct flight *f)
{
    weir__mutex_lock(&p->lock);
    unlist_flight(p, f);
    weir__cond_broadcast(&p->changed);
    weir__mutex_unlock(&p->lock);
}

static void run_completion(struct flight *f, int rc, const struct weir__log_receipt *at,
                           const struct weir_error *err)
{
    struct weir_receipt receipt;

    if (rc == 0) fill_receipt(&receipt, f->partition, at);
    weir__completing_begin();
    f->done(f->user, rc, rc == 0 ? &receipt : NULL, rc == 0 ? NULL : err);
    weir__completing_end();
}

/* A flight that was given up has landed. */
static void bury_flight(struct weir_producer *p, struct flight *f)
{
    bool last;

    f->landed = true;
    if (!p->telling) unlist_flight(p, f);
    last = p->orphaned && !p->oldest;
    weir__mutex_unlock(&p->lock);
    if (last) free_producer(p);
}

/* The hub's thread, in log order. */
static void land(void *user, int rc, const struct weir__log_receipt *at,
                 const struct weir_error *err)
{
    struct flight *f = user;
    struct weir_producer *p = f->producer;

    weir__mutex_lock(&p->lock);
    if (f->given_up) {
        bury_flight(p, f);
        return;
    }
    f->running = true;
    weir__mutex_unlock(&p->lock);
    run_completion(f, rc, at, err);
    end_flight(p, f);
}

static int launch(struct weir_producer *p, const struct weir__batch *batch, int64_t timeout_ms,
                  weir_done_fn done, void *user, struct weir_error *err)
{
    int64_t deadline_ns = timeout_ms == 0 ? 0 : weir__deadline_ns(timeout_ms);
    const struct weir__log_producer *mark;
    struct flight model = {.producer = p, .done = done, .user = user}, *f = NULL;
    int rc = p->sender->ops->route(p->sender, batch, &model.partition, err);

    if (rc == 0) rc = take_turn(p, deadline_ns, &mark, err);
    if (rc != 0) return rc;
    rc = start_flight(p, &model, &f, err);
    if (rc == 0)
        rc = p->sender->ops->publish(p->sender, batch, model.partition, mark, deadline_ns, land, f,
                                     err);
    if (f && rc != 0) end_flight(p, f);
    end_turn(p, rc == 0 ? batch->count : 0);
    return rc;
}

int weir_producer_send_async(struct weir_producer *p, const struct weir_event *events, size_t count,
                             int64_t timeout_ms, weir_done_fn done, void *user,
                             struct weir_error *err)
{
    struct weir__encoder *enc;
    struct weir__batch batch;
    int rc = timeout_ms == 0 ? 0 : weir__completing_refuse("weir_producer_send_async", err);

    if (rc == 0 && !done) rc = weir__fail(err, WEIR_EINVAL, "sending without a completion");
    if (rc == 0) rc = take_encoder(p, &enc, err);
    if (rc != 0) return rc;
    rc = weir__encoder_run(enc, events, count, p->pinned, &batch, err);
    if (rc == 0) rc = launch(p, &batch, timeout_ms, done, user, err);
    give_encoder(p, enc);
    return rc;
}

/* ---- waiting for all, and the end ---- */

/* Until every flight up to the ticket is gone; the lock is held. */
static bool wait_for(struct weir_producer *p, uint64_t ticket, int64_t deadline_ns)
{
    while (p->oldest && p->oldest->ticket <= ticket)
        if (!weir__cond_wait(&p->changed, &p->lock, deadline_ns))
            return !p->oldest || p->oldest->ticket > ticket;
    return true;
}

int weir_producer_flush(struct weir_producer *p, int64_t timeout_ms, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(timeout_ms);
    bool done;
    int rc = weir__completing_refuse("weir_producer_flush", err);

    if (rc != 0) return rc;
    weir__mutex_lock(&p->lock);
    done = wait_for(p, p->tickets, deadline_ns);
    weir__mutex_unlock(&p->lock);
    return done ? 0 : weir__fail(err, WEIR_ETIMEDOUT, "flushing: batches are still on their way");
}

void weir_producer_identity(struct weir_producer *p, struct weir_producer_identity *out)
{
    weir__mutex_lock(&p->lock);
    *out = (struct weir_producer_identity){.id = p->mark.id,
                                           .epoch = p->mark.epoch,
                                           .next_sequence = p->mark.sequence};
    weir__mutex_unlock(&p->lock);
}

/* Marks what is in the air as given up, all but the one whose completion runs now: that one is
 * waited for, since a completion does not block. The lock is held. */
static void give_up(struct weir_producer *p)
{
    struct flight *running = NULL;

    p->telling = true;
    for (struct flight *f = p->oldest; f; f = f->next) {
        f->given_up = !f->running;
        if (f->running) running = f;
    }
    while (running && is_listed(p, running)) weir__cond_wait(&p->changed, &p->lock, INT64_MAX);
}

/* While telling is set nobody else changes the list. */
static int tell_given_up(struct weir_producer *p, struct weir_error *err)
{
    struct weir_error why;
    int count = 0;

    weir__fail(&why, WEIR_EUNKNOWN, "the producer was closed before the disk answered");
    for (struct flight *f = p->oldest; f; f = f->next, count++)
        run_completion(f, WEIR_EUNKNOWN, NULL, &why);
    return weir__fail(err, WEIR_EUNKNOWN, "closing: the outcome of %d batches is unknown", count);
}

/* Frees now, or leaves it to the last flight that lands. */
static void leave(struct weir_producer *p)
{
    struct flight *f, *next;
    bool last;

    weir__mutex_lock(&p->lock);
    for (f = p->oldest; f; f = next) {
        next = f->next;
        if (f->landed) unlist_flight(p, f);
    }
    p->telling = false;
    p->orphaned = true;
    last = !p->oldest;
    weir__mutex_unlock(&p->lock);
    if (last) free_producer(p);
}

int weir_producer_close(struct weir_producer *p, int64_t timeout_ms, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(timeout_ms);
    struct weir__sender *sender;
    struct weir *weir;
    bool done;
    int rc = 0;

    if (!p) return 0;
    rc = weir__completing_refuse("weir_producer_close", err);
    if (rc != 0) return rc;
    sender = p->sender;
    weir = p->weir;
    weir__mutex_lock(&p->lock);
    p->closing = true;
    done = wait_for(p, p->tickets, deadline_ns);
    if (!done) {
        give_up(p);
        done = !p->oldest;
    }
    weir__mutex_unlock(&p->lock);
    if (!done) rc = tell_given_up(p, err);
    leave(p);
    sender->ops->close(sender);
    atomic_fetch_sub(&weir->users, 1);
    return rc;
}

int weir_producer_open(struct weir_producer **out, struct weir *w, const char *hub,
                       const struct weir_producer_options *options, struct weir_error *err)
{
    struct weir_producer_options o;
    struct weir_producer *p;
    int rc = weir__completing_refuse("weir_producer_open", err);

    *out = NULL;
    if (rc == 0) rc = weir__options_copy(&o, sizeof o, options, err);
    if (rc != 0) return rc;
    if (!hub) return weir__fail(err, WEIR_EINVAL, "opening a producer: no hub was named");
    if (o.idempotent && !o.pinned)
        return weir__fail(err, WEIR_EINVAL, "an idempotent producer needs a partition");
    p = calloc(1, sizeof *p);
    if (!p) return weir__fail(err, WEIR_ENOMEM, "no memory for a producer");
    p->weir = w;
    p->pinned = o.pinned;
    p->idempotent = o.idempotent;
    p->mark = (struct weir__log_producer){.id = o.id, .epoch = o.epoch};
    weir__mutex_init(&p->lock);
    weir__cond_init(&p->changed);
    rc = w->backend->ops->open_sender(w->backend, hub, &o, &p->sender, err);
    if (rc == 0 && o.idempotent) rc = p->sender->ops->identify(p->sender, &p->mark, err);
    if (rc != 0) {
        if (p->sender) p->sender->ops->close(p->sender);
        free_producer(p);
        return rc;
    }
    p->batch_bytes_max = p->sender->batch_bytes_max;
    atomic_fetch_add(&w->users, 1);
    *out = p;
    return 0;
}
