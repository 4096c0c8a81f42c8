/* wire_flight.c - batches on their way to a hub, on the loop.
 *
 * A batch is a flight from the moment it is taken in to its outcome. Flights form one line:
 *
 *   first ... STORED ... SENT ... | unsent: WAITING ...
 *
 * When the connection is lost, flights that were sent have no outcome: WEIR_EUNKNOWN, as for those
 * that are a minute old. Those of an idempotent producer are sent again instead, until they have
 * one or nobody waits any more. The other side tells, when the link is attached again, how far it
 * has come: what lies before its last batch is STORED and waits for that one's acknowledgement; the
 * last one and what lies behind it are sent again. It takes batches in sequence only, so that
 * whatever it accepts, all before it are on disk.
 *
 * An idempotent batch that is rejected for a reason that may pass is sent again in the same way, by
 * attaching the link again. What lies behind it was rejected because of it, and is not asked. But
 * of a producer that it does not know yet, the other side takes whatever comes for the first batch:
 * so nothing is sent behind the very first one before that is accepted.
 *
 * Under the link's lock: the line, its bytes, and what an attach has told. */
#include <assert.h>
#include <stdlib.h>

#include "client/wire_flight.h"

#define MARK_CAPABILITY "com.microsoft:idempotent-producer"

static struct weir__wire_sender *of_link(struct weir__wire_link *l)
{
    return (struct weir__wire_sender *)((char *)l - offsetof(struct weir__wire_sender, link));
}

void weir__wire_flight_out(struct weir__wire_sender *s, struct weir__wire_flight *f)
{
    if (s->unsent == f) s->unsent = f->next;
    if (f->prev)
        f->prev->next = f->next;
    else
        s->first = f->next;
    if (f->next)
        f->next->prev = f->prev;
    else
        s->tail = f->prev;
    s->bytes -= f->len;
    if (s->waiting) weir__cond_broadcast(&s->link.changed);
}

/* ---- outcomes, on the loop ---- */

/* A flight leaves the line and its waiter is told under one lock, so that whoever waits finds it in
 * the line or has its answer. why->code 0: it is stored. */
static void decide(struct weir__wire_sender *s, struct weir__wire_flight *f,
                   const struct weir_error *why)
{
    weir__wire_flight_out(s, f);
    if (!f->waiter) return;
    f->waiter->rc = why->code;
    f->waiter->why = *why;
    f->waiter->done = true;
    weir__cond_signal(&f->waiter->landed);
}

/* Behind the lock. */
static void land(struct weir__wire_flight *f, const struct weir_error *why)
{
    static const struct weir__log_receipt unplaced = {.offset = WEIR_UNPLACED,
                                                      .sequence = WEIR_UNPLACED};

    if (f->done && why->code == 0) f->done(f->user, 0, &unplaced, NULL);
    if (f->done && why->code != 0) f->done(f->user, why->code, NULL, why);
    free(f);
}

#define STATE_SET(state) (1u << (state))
#define ALL_STATES (STATE_SET(WEIR__WIRE_STORED + 1) - 1)

/* Lands the first flight when it is in one of these states and from before until_ms: with `unsent`,
 * or with `sent` when it was. false: it is not. */
static bool land_first(struct weir__wire_sender *s, unsigned states, int64_t until_ms,
                       const struct weir_error *unsent, const struct weir_error *sent)
{
    const struct weir_error *why = NULL;
    struct weir__wire_flight *f;

    weir__mutex_lock(&s->link.lock);
    f = s->first;
    if (f && (states & STATE_SET(f->state)) && f->since_ms <= until_ms) {
        why = f->was_sent ? sent : unsent;
        decide(s, f, why);
    }
    weir__mutex_unlock(&s->link.lock);
    if (why) land(f, why);
    return why != NULL;
}

/* What may have been stored is unknown, whatever went wrong. */
static struct weir_error unknown_for(const struct weir_error *why)
{
    struct weir_error unknown;

    weir__fail(&unknown, WEIR_EUNKNOWN, "no answer to the batch: %s", why->text);
    return unknown;
}

/* Those that are there now: completions may put more behind them. */
static void failed(struct weir__wire_link *l, const struct weir_error *why)
{
    struct weir__wire_sender *s = of_link(l);
    struct weir_error unknown = unknown_for(why);
    size_t count = 0;

    weir__mutex_lock(&l->lock);
    for (struct weir__wire_flight *f = s->first; f; f = f->next) count++;
    weir__mutex_unlock(&l->lock);
    while (count-- > 0 && land_first(s, ALL_STATES, INT64_MAX, why, &unknown)) continue;
}

/* All that was sent waits again. */
static void rewind_line(struct weir__wire_sender *s)
{
    weir__mutex_lock(&s->link.lock);
    for (struct weir__wire_flight *f = s->first; f; f = f->next) f->state = WEIR__WIRE_WAITING;
    s->unsent = s->first;
    weir__mutex_unlock(&s->link.lock);
}

static void lost(struct weir__wire_link *l)
{
    struct weir__wire_sender *s = of_link(l);
    struct weir_error why;

    if (s->idempotent) {
        rewind_line(s);
        return;
    }
    weir__fail(&why, WEIR_EUNKNOWN, "no answer to the batch: the link was lost");
    while (land_first(s, STATE_SET(WEIR__WIRE_SENT), INT64_MAX, &why, &why)) continue;
}

/* ---- sending, on the loop ---- */

/* The next flight goes out. WEIR_EBUSY, WEIR_ECLOSED: not now; 1: there is none that may. */
static int send_next(struct weir__wire_sender *s)
{
    struct weir__wire_link *l = &s->link;
    struct weir__wire_flight *f;
    struct weir_error why;
    int rc = 1;

    weir__mutex_lock(&l->lock);
    f = s->unsent;
    if (f && f != s->first && s->idempotent && !s->known) f = NULL;
    if (f)
        rc = weir__amqp_send(l->end.link, weir__bytes_of(f->bytes, f->len), WEIR__AMQP_FORMAT_BATCH,
                             false, &f->id);
    if (rc == 0) {
        f->state = WEIR__WIRE_SENT;
        f->was_sent = true;
        s->unsent = f->next;
    } else if (rc < 0 && rc != WEIR_EBUSY && rc != WEIR_ECLOSED) {
        weir__fail(&why, rc, "the batch of %zu bytes cannot be sent", f->len);
        decide(s, f, &why);
    } else {
        f = NULL;
    }
    weir__mutex_unlock(&l->lock);
    if (rc >= 0 || !f) return rc;
    land(f, &why);
    return 0;
}

/* What the other side would not read waits for the next connection. */
static void pump(struct weir__wire_link *l)
{
    int rc = 0;

    if (l->wire->deaf) return;
    while (rc == 0) rc = send_next(of_link(l));
    if (rc == WEIR_EBUSY && weir__amqp_link_credit(l->end.link) > 0) l->wire->starved = true;
    weir__wire_write_soon(l->wire);
}

/* ---- what the other side says to a batch, on the loop ---- */

/* Only the loop takes out what was sent, so this stays in the line meanwhile. */
static struct weir__wire_flight *find_sent(struct weir__wire_sender *s, uint32_t id)
{
    struct weir__wire_flight *f;

    weir__mutex_lock(&s->link.lock);
    f = s->first;
    while (f && (f->state != WEIR__WIRE_SENT || f->id != id)) f = f->next;
    weir__mutex_unlock(&s->link.lock);
    return f;
}

static bool is_first(struct weir__wire_sender *s, const struct weir__wire_flight *f)
{
    bool first;

    weir__mutex_lock(&s->link.lock);
    first = s->first == f;
    weir__mutex_unlock(&s->link.lock);
    return first;
}

static void settle_one(struct weir__wire_sender *s, struct weir__wire_flight *f,
                       const struct weir_error *why)
{
    weir__mutex_lock(&s->link.lock);
    decide(s, f, why);
    weir__mutex_unlock(&s->link.lock);
    land(f, why);
}

static void accept(struct weir__wire_sender *s, struct weir__wire_flight *f)
{
    static const struct weir_error none = {0};

    s->rejections = 0;
    s->known = true;
    while (s->idempotent && !is_first(s, f)) land_first(s, ALL_STATES, INT64_MAX, &none, &none);
    settle_one(s, f, &none);
}

/* The other side expects another batch than this: one before it is not there, as the next outcome
 * tells, or an older connection has brought some while this one was being made. The next attach
 * tells. Only when none is before it and the attach changed nothing is the rejection meant. */
static bool is_out_of_step(struct weir__wire_sender *s, struct weir__wire_flight *f)
{
    bool first, doubtful;

    weir__mutex_lock(&s->link.lock);
    first = !f->prev || f->prev->state == WEIR__WIRE_STORED;
    doubtful = !first || !f->was_doubted || f->doubted != s->mark.sequence;
    if (first) {
        f->was_doubted = true;
        f->doubted = s->mark.sequence;
    }
    weir__mutex_unlock(&s->link.lock);
    return doubtful;
}

static bool is_curable(struct weir__wire_sender *s, struct weir__wire_flight *f,
                       enum weir__wire_cure cure, int code)
{
    if (!s->idempotent) return false;
    if (code == WEIR_ESEQUENCE) return is_out_of_step(s, f);
    return cure == WEIR__WIRE_AGAIN || cure == WEIR__WIRE_BUSY;
}

static void reject(struct weir__wire_sender *s, struct weir__wire_flight *f,
                   enum weir__wire_cure cure, const struct weir_error *why)
{
    struct weir__wire_link *l = &s->link;
    int64_t pause_ms = WEIR__WIRE_BUSY_MS;
    struct weir_error unknown;

    if (l->again_ms) return; /* it was sent behind one that will be sent again before it */
    if (!is_curable(s, f, cure, why->code)) {
        unknown = unknown_for(why);
        while (land_first(s, STATE_SET(WEIR__WIRE_STORED), INT64_MAX, &unknown, &unknown)) continue;
        settle_one(s, f, why);
        return;
    }
    if (cure != WEIR__WIRE_BUSY) pause_ms = weir__wire_delay_ms(++s->rejections);
    weir__wire_log(l->wire, WEIR__INFO, "%s: sent again: %s", l->address, why->text);
    weir__wire_link_again(l, pause_ms);
}

static void settle(struct weir__wire_link *l, const struct weir__amqp_settlement *st)
{
    struct weir__wire_sender *s = of_link(l);
    enum weir__wire_cure cure = WEIR__WIRE_AGAIN;
    bool was_known = s->known;
    struct weir__wire_flight *f;
    struct weir_error why;

    if (st->role != WEIR__AMQP_RECEIVER) return;
    if (st->outcome != WEIR__AMQP_ACCEPTED) cure = weir__wire_rejection(st, &why);
    for (uint32_t i = 0; i <= st->last - st->first; i++) {
        f = find_sent(s, st->first + i);
        if (f && st->outcome == WEIR__AMQP_ACCEPTED)
            accept(s, f);
        else if (f)
            reject(s, f, cure, &why);
    }
    if (s->known && !was_known && l->state == WEIR__WIRE_LINK_OPEN) pump(l);
}

/* ---- the link's questions ---- */

static bool wanted(struct weir__wire_link *l)
{
    bool yes;

    weir__mutex_lock(&l->lock);
    yes = l->opening || of_link(l)->first != NULL;
    weir__mutex_unlock(&l->lock);
    return yes;
}

/* When the oldest flight was taken in; INT64_MAX: there is none. */
static int64_t oldest_ms(struct weir__wire_sender *s)
{
    int64_t since_ms;

    weir__mutex_lock(&s->link.lock);
    since_ms = s->first ? s->first->since_ms : INT64_MAX;
    weir__mutex_unlock(&s->link.lock);
    return since_ms;
}

static bool idle(struct weir__wire_link *l)
{
    return oldest_ms(of_link(l)) == INT64_MAX;
}

/* Whether batches grow too old. One of an idempotent producer is kept while there is that producer:
 * the next ones can only follow it, and how long to wait is for who calls to say. */
static bool is_limited(struct weir__wire_sender *s)
{
    bool limited;

    weir__mutex_lock(&s->link.lock);
    limited = !s->idempotent || s->link.closing;
    weir__mutex_unlock(&s->link.lock);
    return limited;
}

static void visited(struct weir__wire_link *l)
{
    struct weir__wire_sender *s = of_link(l);
    int64_t since_ms = oldest_ms(s);

    if (!s->patience.running && since_ms != INT64_MAX && is_limited(s))
        weir__loop_timer_start(l->wire->loop, &s->patience, since_ms + WEIR__WIRE_SEND_MS);
}

/* A batch without an outcome is not kept for ever. */
void weir__wire_sender_patience(void *arg)
{
    struct weir__wire_sender *s = arg;
    int64_t until_ms = weir__loop_now_ms(s->link.wire->loop) - WEIR__WIRE_SEND_MS;
    struct weir_error why, unknown;

    weir__wire_late(s->link.wire, WEIR__WIRE_SEND_MS, &why);
    unknown = unknown_for(&why);
    while (land_first(s, ALL_STATES, until_ms, &why, &unknown)) continue;
    weir__wire_link_visit(&s->link);
}

/* ---- attaching ---- */

static void put_number(struct weir__amqp_writer *w, const char *name, enum weir__amqp_type type,
                       bool known, int64_t value)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, name, strlen(name)));
    weir__amqp_put(w, known ? weir__amqp_signed(type, value) : (struct weir__amqp_value){0});
}

/* Who we are, as far as we know; the rest is the other side's to say. */
static struct weir__amqp_value write_mark(const struct weir__wire_sender *s, uint8_t *space,
                                          size_t room)
{
    struct weir__amqp_writer w;
    size_t mark;

    weir__amqp_writer_init(&w, space, room);
    mark = weir__amqp_put_open(&w);
    put_number(&w, "com.microsoft:producer-id", WEIR__AMQP_LONG, s->mark.id != 0,
               (int64_t)s->mark.id);
    put_number(&w, "com.microsoft:producer-epoch",
               s->mark.epoch > INT16_MAX ? WEIR__AMQP_INT : WEIR__AMQP_SHORT,
               s->mark.id != 0 || s->mark.epoch != 0, s->mark.epoch);
    put_number(&w, "com.microsoft:producer-sequence-number", WEIR__AMQP_INT, false, 0);
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 6);
    return weir__wire_written(&w);
}

static void terms(struct weir__wire_link *l, struct weir__amqp_terms *t,
                  uint8_t space[WEIR__WIRE_TERMS_BYTES])
{
    struct weir__amqp_value none = {0};
    struct weir__wire_sender *s = of_link(l);

    t->source = weir__wire_terminus(WEIR__AMQP_SOURCE, l->wire->container, none, space, 256);
    t->target = weir__wire_terminus(WEIR__AMQP_TARGET, l->address, none, space + 256, 768);
    t->snd_settle_mode = WEIR__AMQP_SEND_UNSETTLED;
    if (!s->idempotent) return;
    t->desired_capabilities =
        weir__amqp_bytes(WEIR__AMQP_SYMBOL, MARK_CAPABILITY, strlen(MARK_CAPABILITY));
    t->properties = write_mark(s, space + 1024, 512);
}

static int64_t number_in(const struct weir__amqp_value *map, const char *name)
{
    struct weir__amqp_value v;

    return weir__amqp_map_find(map, name, &v) && v.i > 0 ? v.i : 0;
}

/* How the line goes on after the other side has told its last sequence number. */
static void resume(struct weir__wire_sender *s)
{
    struct weir__wire_flight *known = NULL;

    for (struct weir__wire_flight *f = s->first; f && f->was_sent; f = f->next)
        if ((int32_t)(s->mark.sequence - f->last) >= 0) known = f;
    if (!known) return;
    for (struct weir__wire_flight *f = s->first; f != known; f = f->next)
        f->state = WEIR__WIRE_STORED;
    s->unsent = known;
}

static void attached(struct weir__wire_link *l, const struct weir__amqp_composite *fields)
{
    const struct weir__amqp_value *properties = &fields->attach.properties;
    uint64_t max = fields->attach.max_message_size.u;
    struct weir__wire_sender *s = of_link(l);

    weir__mutex_lock(&l->lock);
    s->message_bytes_max = max && max < SIZE_MAX ? (size_t)max : WEIR__BATCH_BYTES_MAX;
    if (s->idempotent) {
        s->mark.id = (uint64_t)number_in(properties, "com.microsoft:producer-id");
        s->mark.epoch = (uint16_t)number_in(properties, "com.microsoft:producer-epoch");
        s->mark.sequence =
            (uint32_t)number_in(properties, "com.microsoft:producer-sequence-number");
        s->known = s->mark.sequence != 0;
        resume(s);
    }
    weir__mutex_unlock(&l->lock);
}

static void free_sender(struct weir__wire_link *l)
{
    struct weir__wire_sender *s = of_link(l);

    assert(!s->first);
    weir__loop_timer_stop(l->wire->loop, &s->patience);
    weir__wire_link_fini(l);
    free(s);
}

const struct weir__wire_link_calls weir__wire_sender_calls = {
    .sends = true,
    .wanted = wanted,
    .visited = visited,
    .terms = terms,
    .attached = attached,
    .pump = pump,
    .settle = settle,
    .lost = lost,
    .failed = failed,
    .idle = idle,
    .free = free_sender,
};
