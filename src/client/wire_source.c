/* wire_source.c - events of a partition, as they come.
 *
 * The loop copies each message into a row of chunks; the caller's thread reads them there, and finds
 * sequence number, offset, time and key among their annotations. What a caller was given stays until
 * its next call.
 *
 *   chunk: record | record | ...     record: length (4 bytes), message
 *
 * Credit counts messages, memory counts bytes: credit is what fits into bytes_max beside what is
 * held, by a guess at the next messages' size from those before them. The guess may be wrong once,
 * by as much as the credit that was given; it is never more than CREDIT_MAX.
 *
 * When the connection is lost the next one begins behind the last message that came, whether or not
 * it was read: by its sequence number. A source that was stolen from is not attached again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/wire.h"

#define BYTES_MAX_DEFAULT ((size_t)256 << 10)
#define CREDIT_MAX 2000u
#define GUESS_FIRST 4096u /* bytes of a message before one was seen */
#define GUESS_MIN 64u
#define CHUNK_BYTES_MIN 4096u
#define CHUNK_BYTES 65536u
#define RECORD_HEAD 4u
#define NAME_BYTES 256 /* of a receiver's name; a longer one is cut */

struct chunk {
    struct chunk *next;
    size_t cap, len, read;
    uint8_t at[];
};

struct source {
    struct weir__wire_link link;
    struct weir__source base;
    size_t bytes_max;
    bool exclusive;
    int64_t epoch;
    char name[NAME_BYTES];
    char selector[WEIR__WIRE_SELECTOR_BYTES]; /* the first one */

    /* Under the link's lock. */
    struct chunk *first, *tail;
    struct chunk *spare; /* for the next one, while there is traffic */
    size_t held;         /* bytes of records, those included that the caller has */
    size_t given;        /* of them, to the caller, until its next call */
    size_t freed;        /* since credit was last looked at */
    size_t guess;
    size_t newest; /* where in tail the last record begins */
    bool has_last;
    uint64_t last; /* sequence number of the last that was read */
    bool waiting, cancelled;
};

static struct source *of_link(struct weir__wire_link *l)
{
    return (struct source *)((char *)l - offsetof(struct source, link));
}

static struct source *of_base(struct weir__source *b)
{
    return (struct source *)((char *)b - offsetof(struct source, base));
}

/* ---- records ---- */

/* Up to the first that is no digit; offsets of other kinds than ours have no number. */
static uint64_t read_decimal(struct weir__bytes text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(text.at[i] - '0');
    return n;
}

/* What the hub has written among the annotations. false: it did not. */
static bool read_event(struct weir__bytes message, struct weir__event *out)
{
    struct weir__amqp_value map, name, value;
    struct weir__amqp_cursor rest;
    struct weir__amqp_items items;
    struct weir__amqp_message m;
    bool found = false;

    *out = (struct weir__event){.message = message};
    if (weir__amqp_message_scan_until(&m, message, WEIR__AMQP_PROPERTIES, &rest, NULL) != 0)
        return false;
    map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
    weir__amqp_items_init(&items, &map);
    while (weir__amqp_items_pair(&items, &name, &value)) {
        if (name.bytes.len == 21 && memcmp(name.bytes.at, "x-opt-sequence-number", 21) == 0) {
            out->sequence = (uint64_t)value.i;
            found = true;
        } else if (name.bytes.len == 12 && memcmp(name.bytes.at, "x-opt-offset", 12) == 0) {
            out->offset = read_decimal(value.bytes);
        } else if (name.bytes.len == 19 && memcmp(name.bytes.at, "x-opt-enqueued-time", 19) == 0) {
            out->time_ms = value.i;
        }
    }
    return found;
}

static struct weir__bytes record_at(const struct chunk *c, size_t at)
{
    return weir__bytes_of(c->at + at + RECORD_HEAD, weir__load32(c->at + at));
}

/* Room for a record at the end of the row; the lock is held. */
static struct chunk *make_room(struct source *s, size_t bytes)
{
    size_t cap = s->held < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : CHUNK_BYTES;
    struct chunk *c = s->tail;

    if (c && bytes <= c->cap - c->len) return c;
    if (cap < bytes) cap = bytes;
    c = s->spare && s->spare->cap >= cap ? s->spare : malloc(sizeof *c + cap);
    if (!c) return NULL;
    if (c == s->spare) {
        cap = c->cap;
        s->spare = NULL;
    }
    *c = (struct chunk){.cap = cap};
    if (s->tail)
        s->tail->next = c;
    else
        s->first = c;
    s->tail = c;
    return c;
}

/* What the caller had is free; the lock is held. */
static void release_given(struct source *s)
{
    s->held -= s->given;
    s->freed += s->given;
    s->given = 0;
    while (s->first && s->first->read == s->first->len) {
        struct chunk *c = s->first;
        s->first = c->next;
        if (!s->first) s->tail = NULL;
        if (s->spare || c->cap > CHUNK_BYTES)
            free(c);
        else
            s->spare = c;
    }
}

/* The next records, up to max; the lock is held. */
static uint32_t take_records(struct source *s, struct weir__event *out, uint32_t max)
{
    uint32_t count = 0;

    for (struct chunk *c = s->first; c && count < max; c = c->next)
        while (c->read < c->len && count < max) {
            out[count].message = record_at(c, c->read);
            c->read += RECORD_HEAD + out[count].message.len;
            s->given += RECORD_HEAD + out[count].message.len;
            count++;
        }
    return count;
}

/* Where the next connection goes on; the lock is held. */
static void remember(struct source *s, struct weir__bytes message)
{
    struct weir__event e;

    if (!read_event(message, &e)) return;
    s->last = e.sequence;
    s->has_last = true;
}

/* ---- the loop ---- */

/* A larger message counts at once, smaller ones little by little. */
static void guess_size(struct source *s, size_t bytes)
{
    if (bytes >= s->guess)
        s->guess = bytes;
    else
        s->guess -= (s->guess - bytes) / 8;
}

/* Who waits is woken at the end of the turn, when all that came with it is there. */
static int keep(struct source *s, struct weir__bytes message)
{
    size_t bytes = RECORD_HEAD + message.len;
    bool wake = false;
    struct chunk *c;

    weir__mutex_lock(&s->link.lock);
    c = make_room(s, bytes);
    if (c) {
        s->newest = c->len;
        weir__store32(c->at + c->len, (uint32_t)message.len);
        memcpy(c->at + c->len + RECORD_HEAD, message.at, message.len);
        c->len += bytes;
        s->held += bytes;
        guess_size(s, bytes);
        wake = s->waiting;
    }
    weir__mutex_unlock(&s->link.lock);
    if (wake) weir__loop_defer(s->link.wire->loop, &s->link.wake);
    return c ? 0 : WEIR_ENOMEM;
}

static void transfer(struct weir__wire_link *l, const struct weir__amqp_delivery *d)
{
    struct weir_error why;

    if (!d->settled) weir__amqp_settle(l->end.link, d->id, d->id, WEIR__AMQP_ACCEPTED, NULL);
    if (d->too_large)
        weir__fail(&why, WEIR_ETOOBIG, "an event of %" PRIu64 " bytes cannot be received", d->size);
    else if (keep(of_link(l), d->payload) != 0)
        weir__fail(&why, WEIR_ENOMEM, "no memory for an event of %zu bytes", d->payload.len);
    else
        return;
    weir__wire_link_end(l, &why); /* or it would be missing in silence */
}

static void pump(struct weir__wire_link *l)
{
    struct source *s = of_link(l);
    uint32_t credit = weir__amqp_link_credit(l->end.link);
    size_t room, fits;

    weir__mutex_lock(&l->lock);
    room = s->bytes_max > s->held ? s->bytes_max - s->held : 0;
    fits = room / (s->guess < GUESS_MIN ? GUESS_MIN : s->guess);
    if (fits == 0 && s->held == 0) fits = 1;
    s->freed = 0;
    weir__mutex_unlock(&l->lock);
    if (fits > CREDIT_MAX) fits = CREDIT_MAX;
    if (fits == 0 || credit > fits / 2) return;
    weir__amqp_flow(l->end.link, (uint32_t)fits, false);
    weir__wire_write_soon(l->wire);
}

static bool wanted(struct weir__wire_link *l)
{
    bool yes;

    weir__mutex_lock(&l->lock);
    yes = !l->closing && l->why.code == 0;
    weir__mutex_unlock(&l->lock);
    return yes;
}

static void lost(struct weir__wire_link *l)
{
    (void)l; /* what came is kept, and the next attach goes on behind it */
}

static void failed(struct weir__wire_link *l, const struct weir_error *why)
{
    (void)l; /* the link keeps why, for the next call */
    (void)why;
}

static bool idle(struct weir__wire_link *l)
{
    (void)l;
    return true;
}

static struct weir__amqp_value write_properties(const struct source *s, uint8_t *space, size_t room)
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

static void terms(struct weir__wire_link *l, struct weir__amqp_terms *t,
                  uint8_t space[WEIR__WIRE_TERMS_BYTES])
{
    struct weir__amqp_value none = {0};
    char selector[WEIR__WIRE_SELECTOR_BYTES];
    struct source *s = of_link(l);

    weir__mutex_lock(&l->lock);
    if (s->tail && s->tail->read < s->tail->len) remember(s, record_at(s->tail, s->newest));
    memcpy(selector, s->selector, sizeof selector);
    if (s->has_last)
        snprintf(selector, sizeof selector, "amqp.annotation.x-opt-sequence-number > '%" PRIu64 "'",
                 s->last);
    weir__mutex_unlock(&l->lock);
    t->source = weir__wire_terminus(WEIR__AMQP_SOURCE, l->address,
                                    weir__wire_filter(selector, space, 256), space + 256, 768);
    t->target = weir__wire_terminus(WEIR__AMQP_TARGET, l->wire->container, none, space + 1024, 256);
    t->properties = write_properties(s, space + 1280, 512);
    t->snd_settle_mode = WEIR__AMQP_SEND_SETTLED; /* outcomes mean nothing to a stream */
}

static void attached(struct weir__wire_link *l, const struct weir__amqp_composite *fields)
{
    (void)l;
    (void)fields;
}

static void free_source(struct weir__wire_link *l)
{
    struct source *s = of_link(l);

    while (s->first) {
        struct chunk *next_chunk = s->first->next;
        free(s->first);
        s->first = next_chunk;
    }
    free(s->spare);
    weir__wire_link_fini(l);
    free(s);
}

static const struct weir__wire_link_calls link_calls = {
    .terms = terms,
    .wanted = wanted,
    .attached = attached,
    .pump = pump,
    .transfer = transfer,
    .lost = lost,
    .failed = failed,
    .idle = idle,
    .free = free_source,
};

/* ---- callers ---- */

/* Waits for records; the lock is held. 0: count is not 0, or there are some now. */
static int wait_for_records(struct source *s, int64_t deadline_ns, struct weir_error *err)
{
    bool in_time = true;

    for (;;) {
        if (s->cancelled) {
            s->cancelled = false;
            return weir__fail(err, WEIR_ECANCELED, "cancelled");
        }
        if (s->tail && s->tail->read < s->tail->len) return 0;
        if (s->link.why.code != 0) {
            if (err) *err = s->link.why;
            return s->link.why.code;
        }
        if (!in_time) {
            free(s->spare);
            s->spare = NULL;
            return weir__fail(err, WEIR_ETIMEDOUT, "no event came in time");
        }
        if (s->freed > 0) weir__wire_link_visit(&s->link); /* there may be no credit left */
        s->waiting = true;
        in_time = weir__cond_wait(&s->link.changed, &s->link.lock, deadline_ns);
        s->waiting = false;
    }
}

static int next(struct weir__source *b, struct weir__event *out, uint32_t max, int64_t deadline_ns,
                uint32_t *out_count, uint64_t *out_missed, struct weir_error *err)
{
    struct source *s = of_base(b);
    uint32_t count = 0;
    int rc;

    *out_missed = 0;
    weir__mutex_lock(&s->link.lock);
    release_given(s);
    rc = wait_for_records(s, deadline_ns, err);
    if (rc == 0) {
        count = take_records(s, out, max);
        remember(s, out[count - 1].message);
        if (s->freed > s->bytes_max / 4) weir__wire_link_visit(&s->link);
    }
    weir__mutex_unlock(&s->link.lock);
    for (uint32_t i = 0; i < count; i++) read_event(out[i].message, &out[i]);
    *out_count = count;
    return rc;
}

static void skip(struct weir__source *b, uint64_t *out_first, uint64_t *out_last)
{
    (void)b;
    *out_first = *out_last = 0; /* damage stays on the other side */
}

static void cancel(struct weir__source *b)
{
    struct source *s = of_base(b);

    weir__mutex_lock(&s->link.lock);
    s->cancelled = true;
    weir__cond_broadcast(&s->link.changed);
    weir__mutex_unlock(&s->link.lock);
}

static void close_source(struct weir__source *b)
{
    weir__wire_link_close(&of_base(b)->link, true);
}

static const struct weir__source_ops source_ops = {
    .version = WEIR__BACKEND_VERSION,
    .next = next,
    .skip = skip,
    .cancel = cancel,
    .close = close_source,
};

static void name_link(struct source *s, const char *hub, uint32_t partition, const char *group)
{
    struct weir__wire_link *l = &s->link;

    snprintf(l->audience, sizeof l->audience, "sb://%s/%s/ConsumerGroups/%s", l->wire->to.host, hub,
             group);
    snprintf(l->address, sizeof l->address, "%s/ConsumerGroups/%s/Partitions/%" PRIu32, hub, group,
             partition);
}

int weir__wire_open_source(struct weir__backend *b, const char *hub, uint32_t partition,
                           const struct weir_receiver_options *o, struct weir__source **out,
                           struct weir_error *err)
{
    const char *group = o->group ? o->group : WEIR_DEFAULT_GROUP;
    struct weir__wire *w = (struct weir__wire *)b;
    struct weir_position position = o->position;
    struct source *s;
    int rc = weir__wire_check_hub(w, hub, err);

    if (rc == 0 && strlen(group) > WEIR__GROUP_NAME_MAX)
        rc = weir__fail(err, WEIR_ENOTFOUND, "no group has a name of %zu bytes", strlen(group));
    if (rc == 0) rc = weir__wire_find_latest(b, hub, partition, &position, err);
    if (rc != 0) return rc;
    s = calloc(1, sizeof *s);
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a link");
    s->base.ops = &source_ops;
    s->bytes_max = o->bytes_max ? o->bytes_max : BYTES_MAX_DEFAULT;
    s->guess = GUESS_FIRST;
    s->exclusive = o->exclusive;
    s->epoch = o->epoch;
    if (o->name) snprintf(s->name, sizeof s->name, "%s", o->name);
    weir__wire_selector(&position, s->selector);
    weir__wire_link_init(&s->link, w, &link_calls);
    name_link(s, hub, partition, group);
    rc = weir__wire_link_open(&s->link, err);
    if (rc != 0) {
        weir__wrap(err, rc, "a link from %s", s->link.address);
        close_source(&s->base);
        return rc;
    }
    *out = &s->base;
    return 0;
}
