/* wire_arrival.c - what a source does on the loop: it attaches, takes what comes, and lets more come. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/annotations.h"
#include "client/wire_source.h"

#define CREDIT_MAX 4096u
#define GUESS_MIN 64u
#define METRICS_CAPABILITY "com.microsoft:enable-receiver-runtime-metric"

static struct weir__wire_source *of_link(struct weir__wire_link *l)
{
    return (struct weir__wire_source *)((char *)l - offsetof(struct weir__wire_source, link));
}

void weir__wire_remember(struct weir__wire_source *s, struct weir__bytes message)
{
    struct weir__annotations a = {.has_sequence = false};

    weir__annotations_find(&a, message);
    if (!a.has_sequence) return;
    s->last = a.sequence;
    s->has_last = true;
}

/* ---- arrival ---- */

/* A larger message counts at once, smaller ones little by little. */
static void guess_size(struct weir__wire_source *s, size_t bytes)
{
    if (bytes >= s->guess)
        s->guess = bytes;
    else
        s->guess -= (s->guess - bytes) / 8;
}

/* The first of a turn, and what does not fit into the chunk. */
static bool begin_filling(struct weir__wire_source *s, size_t bytes)
{
    bool ok;

    weir__mutex_lock(&s->link.lock);
    ok = weir__wire_row_begin(&s->row, bytes);
    weir__mutex_unlock(&s->link.lock);
    weir__loop_defer(s->link.wire->loop, &s->link.wake);
    return ok;
}

static int keep(struct weir__wire_source *s, struct weir__wire_item item)
{
    if (!weir__wire_row_fits(&s->row, item.bytes.len) && !begin_filling(s, item.bytes.len))
        return WEIR_ENOMEM;
    weir__wire_row_put(&s->row, item);
    guess_size(s, WEIR__WIRE_LENGTH_BYTES + item.bytes.len);
    return 0;
}

/* What came is kept, and the next attach goes on behind it. */
static void lost(struct weir__wire_link *l)
{
    weir__mutex_lock(&l->lock);
    weir__wire_row_show(&of_link(l)->row);
    weir__mutex_unlock(&l->lock);
}

/* A batch that comes broken is asked for again, as events: as a batch it might come so for ever. */
static void refuse_batch(struct weir__wire_link *l, const struct weir_error *why)
{
    struct weir__wire_source *s = of_link(l);

    weir__wire_log(l->wire, WEIR__WARN, "%s: %s%s", l->address, why->text,
                   s->desires ? "; asking for its events instead" : "");
    lost(l);
    if (s->desires)
        weir__wire_link_again(l, WEIR__WIRE_RETRY_MS);
    else
        weir__wire_link_end(l, why);
    s->desires = false;
}

/* Where the next connection goes on when a batch has come, or a message. */
static void note_came(struct weir__wire_source *s, const struct weir__wire_item *item)
{
    struct weir__log_view view;

    s->has_came = item->stored;
    if (!item->stored) return;
    weir__stored_view(item->bytes, &view);
    s->came = view.sequence + view.count - 1;
}

static void transfer(struct weir__wire_link *l, const struct weir__amqp_delivery *d)
{
    struct weir__wire_item item = {d->payload, d->format == WEIR__STORED_FORMAT};
    struct weir__wire_source *s = of_link(l);
    bool allowed = !s->limits || s->carried < s->allowed;
    struct weir_error why;

    s->carried += d->size;
    if (!d->settled) weir__amqp_settle(l->end.link, d->id, d->id, WEIR__AMQP_ACCEPTED, NULL);
    if (!allowed) {
        weir__fail(&why, WEIR_EIO,
                   "the other side sent %" PRIu64 " bytes, though only %" PRIu64 " were allowed",
                   s->carried, s->allowed);
    } else if (d->too_large) {
        weir__fail(&why, WEIR_ETOOBIG, "a message of %" PRIu64 " bytes cannot be received",
                   d->size);
    } else if (item.stored && weir__stored_check(d->payload, &why) != 0) {
        refuse_batch(l, &why);
        return;
    } else if (d->size == 0) {
        return; /* no message; a limit in bytes would let any number of them come */
    } else if (keep(s, item) != 0) {
        weir__fail(&why, WEIR_ENOMEM, "no memory for a message of %zu bytes", d->payload.len);
    } else {
        note_came(s, &item);
        return;
    }
    lost(l);
    weir__wire_link_end(l, &why); /* or it would be missing in silence */
}

/* How many deliveries there is room for beside so many bytes and deliveries. */
static uint32_t count_fitting(const struct weir__wire_source *s, size_t held, uint32_t held_count)
{
    size_t room = s->row.bytes_max > held ? s->row.bytes_max - held : 0;
    size_t fits = room / (s->guess < GUESS_MIN ? GUESS_MIN : s->guess);
    uint32_t most = s->events_max > held_count ? s->events_max - held_count : 0;

    if (fits == 0 && held == 0) return 1;
    if (s->events_max == 0 || most > CREDIT_MAX) most = CREDIT_MAX;
    return fits < most ? (uint32_t)fits : most;
}

/* Whether the other side has answered that it has sent all there is. It dropped credit then; an answer
 * that comes because all credit was used up says nothing, nor does a link that is being left. The lock
 * is held. */
static bool note_end(struct weir__wire_source *s)
{
    if (s->drains && s->link.again_ms == 0 && !weir__amqp_link_drain(s->link.end.link)) {
        weir__wire_row_show(&s->row); /* what came in this turn is there before the end is */
        s->ended = true;
        weir__cond_broadcast(&s->link.changed);
    }
    return s->ended;
}

/* Lets as many bytes come as fit beside what waits for the caller. */
static void pump_limit(struct weir__wire_source *s)
{
    struct weir__amqp_link *link = s->link.end.link;
    size_t waiting, most = s->row.bytes_max;
    bool ending, ended;
    uint64_t limit;

    weir__mutex_lock(&s->link.lock);
    ending = s->ending;
    ended = note_end(s);
    waiting = s->row.held + weir__wire_row_hidden_bytes(&s->row) - atomic_load(&s->taken);
    weir__mutex_unlock(&s->link.lock);
    if (ended || (waiting > 0 && waiting >= most))
        return; /* the caller visits when it has made room */
    limit = s->carried + (most - waiting);
    if (limit < s->limit + most / WEIR__WIRE_PART && ending == s->drains &&
        weir__amqp_link_credit(link) > CREDIT_MAX / 2)
        return;
    s->limit = limit;
    if (limit > s->allowed) s->allowed = limit;
    weir__amqp_limit(link, limit);
    s->drains = ending;
    weir__amqp_flow(link, CREDIT_MAX, ending);
    weir__wire_write_soon(s->link.wire);
}

/* Gives credit when half of what fits is used up. What there is no memory for now the caller sees
 * to, when it has made room. */
static void pump_credit(struct weir__wire_link *l)
{
    struct weir__wire_source *s = of_link(l);
    uint32_t credit = weir__amqp_link_credit(l->end.link), fits;
    bool give, ending;

    weir__mutex_lock(&l->lock);
    ending = s->ending && s->tells;
    fits = count_fitting(s, s->row.held + weir__wire_row_hidden_bytes(&s->row),
                         s->row.held_count + weir__wire_row_hidden(&s->row));
    give = !note_end(s) && fits > 0 && (credit <= fits / 2 || ending != s->drains);
    s->low = (give ? fits : credit) <= count_fitting(s, 0, 0) / 2;
    s->freed = 0;
    weir__mutex_unlock(&l->lock);
    if (!give) return;
    if (fits < credit) fits = credit; /* deliveries may be under way for it */
    s->drains = ending;
    weir__amqp_flow(l->end.link, fits, ending);
    weir__wire_write_soon(l->wire);
}

static void pump(struct weir__wire_link *l)
{
    if (of_link(l)->limits)
        pump_limit(of_link(l));
    else
        pump_credit(l);
}

static bool wanted(struct weir__wire_link *l)
{
    bool yes;

    weir__mutex_lock(&l->lock);
    yes = !l->closing && l->why.code == 0;
    weir__mutex_unlock(&l->lock);
    return yes;
}

/* The link keeps why, for the next call. */
static void failed(struct weir__wire_link *l, const struct weir_error *why)
{
    struct weir__wire_source *s = of_link(l);
    bool tell;

    weir__mutex_lock(&l->lock);
    tell = s->wake && s->opened;
    s->asked = false;
    weir__mutex_unlock(&l->lock);
    if (tell) s->wake(s->user, why->code);
}

/* The turn ends: all that came with it is there. */
static void woken(struct weir__wire_link *l)
{
    struct weir__wire_source *s = of_link(l);
    bool tell;

    weir__mutex_lock(&l->lock);
    weir__wire_row_show(&s->row);
    tell = s->asked;
    s->asked = false;
    weir__mutex_unlock(&l->lock);
    if (l->state == WEIR__WIRE_LINK_OPEN && !l->fresh) pump(l);
    if (tell) s->wake(s->user, 0);
}

static bool idle(struct weir__wire_link *l)
{
    (void)l;
    return true;
}

static struct weir__amqp_value write_properties(const struct weir__wire_source *s, uint8_t *space,
                                                size_t room)
{
    struct weir__amqp_writer w;
    uint32_t count = 0;
    size_t mark;

    if (!s->exclusive && !*s->name) return (struct weir__amqp_value){0};
    weir__amqp_writer_init(&w, space, room);
    mark = weir__amqp_put_open(&w);
    if (s->exclusive) {
        weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, "com.microsoft:epoch", 19));
        weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_LONG, s->epoch));
        count += 2;
    }
    if (*s->name) {
        weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, "com.microsoft:receiver-name", 27));
        weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_STRING, s->name, strlen(s->name)));
        count += 2;
    }
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, count);
    return weir__wire_written(&w);
}

/* Capabilities that the other side does not know it passes over. */
static struct weir__amqp_value write_desires(const struct weir__wire_source *s, uint8_t *space,
                                             size_t room)
{
    struct weir__bytes names[2];
    struct weir__amqp_writer w;
    uint32_t count = 0;

    if (s->metrics) names[count++] = weir__bytes_of(METRICS_CAPABILITY, strlen(METRICS_CAPABILITY));
    if (s->desires)
        names[count++] = weir__bytes_of(WEIR__STORED_CAPABILITY, strlen(WEIR__STORED_CAPABILITY));
    if (count == 0) return (struct weir__amqp_value){0};
    if (count == 1) return weir__amqp_bytes(WEIR__AMQP_SYMBOL, names[0].at, names[0].len);
    weir__amqp_writer_init(&w, space, room);
    weir__amqp_put_array(&w, WEIR__AMQP_SYMBOL, names, count);
    return weir__wire_written(&w);
}

/* Behind the last event that came; the lock is held. */
static void write_selector(struct weir__wire_source *s, char out[WEIR__WIRE_SELECTOR_BYTES])
{
    struct weir__wire_item newest;

    if (!s->has_came && weir__wire_row_newest(&s->row, &newest))
        weir__wire_remember(s, newest.bytes);
    if (s->has_came) s->last = s->came;
    memcpy(out, s->selector, sizeof s->selector);
    if (s->has_last || s->has_came)
        snprintf(out, WEIR__WIRE_SELECTOR_BYTES,
                 "amqp.annotation.x-opt-sequence-number > '%" PRIu64 "'", s->last);
}

static void terms(struct weir__wire_link *l, struct weir__amqp_terms *t,
                  uint8_t space[WEIR__WIRE_TERMS_BYTES])
{
    struct weir__amqp_value none = {0};
    char selector[WEIR__WIRE_SELECTOR_BYTES];
    struct weir__wire_source *s = of_link(l);

    weir__mutex_lock(&l->lock);
    write_selector(s, selector);
    weir__mutex_unlock(&l->lock);
    t->source = weir__wire_terminus(WEIR__AMQP_SOURCE, l->address,
                                    weir__wire_filter(selector, space, 256), space + 256, 768);
    t->target = weir__wire_terminus(WEIR__AMQP_TARGET, l->wire->container, none, space + 1024, 256);
    t->properties = write_properties(s, space + 1280, 512);
    t->desired_capabilities = write_desires(s, space + 1792, 256);
    t->snd_settle_mode = WEIR__AMQP_SEND_SETTLED; /* outcomes mean nothing to a stream */
}

static bool is_capability(const struct weir__amqp_value *v)
{
    return v->type == WEIR__AMQP_SYMBOL && v->bytes.len == strlen(WEIR__STORED_CAPABILITY) &&
           memcmp(v->bytes.at, WEIR__STORED_CAPABILITY, v->bytes.len) == 0;
}

static bool offers_batches(const struct weir__amqp_value *v)
{
    struct weir__amqp_items items;
    struct weir__amqp_value one;

    if (v->type != WEIR__AMQP_ARRAY) return is_capability(v);
    weir__amqp_items_init(&items, v);
    while (weir__amqp_items_next(&items, &one))
        if (is_capability(&one)) return true;
    return false;
}

static void attached(struct weir__wire_link *l, const struct weir__amqp_composite *fields)
{
    struct weir__wire_source *s = of_link(l);

    s->limits = s->desires && offers_batches(&fields->attach.offered_capabilities);
    s->tells = s->tells || s->limits;
    s->carried = s->limit = s->allowed = 0;
    s->drains = false;
}

static void free_source(struct weir__wire_link *l)
{
    struct weir__wire_source *s = of_link(l);

    weir__wire_row_fini(&s->row);
    weir__wire_link_fini(l);
    free(s);
}

const struct weir__wire_link_calls weir__wire_arrival_calls = {
    .terms = terms,
    .wanted = wanted,
    .attached = attached,
    .pump = pump,
    .transfer = transfer,
    .lost = lost,
    .woken = woken,
    .failed = failed,
    .idle = idle,
    .free = free_source,
};
