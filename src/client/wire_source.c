/* wire_source.c - events of a partition, as they come.
 *
 * The loop copies each message into a row of chunks; the caller's thread reads them there. What a
 * caller was given stays until its next call.
 *
 *   chunk: message | message | ...          ... | length | length (4 bytes each)
 *
 * While the events of one turn of the loop come, the loop fills the last chunk behind the caller's
 * back, and shows what is in it when the turn ends or the chunk is full.
 *
 * Credit counts messages, memory counts bytes: credit is what fits into bytes_max beside what is
 * held, by a guess at the next messages' size from those before them. The guess may be wrong once,
 * by as much as the credit that was given; it is never more than CREDIT_MAX, nor, with what is held,
 * than events_max.
 *
 * When the connection is lost the next one begins behind the last message that came, whether or not
 * it was read: by its sequence number. A source that was stolen from is not attached again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/annotations.h"
#include "client/wire.h"

#define BYTES_MAX_DEFAULT ((size_t)256 << 10)
#define CREDIT_MAX 4096u
#define GUESS_FIRST 4096u /* bytes of a message before one was seen */
#define GUESS_MIN 64u
#define CHUNK_BYTES_MIN 4096u
#define CHUNK_BYTES 65536u
#define LENGTH_BYTES 4u
#define METRICS_CAPABILITY "com.microsoft:enable-receiver-runtime-metric"
#define NAME_BYTES 256 /* of a receiver's name; a longer one is cut */

/* Lengths stand apart, from the end backwards, so that who looks for the next message does not
 * need the one before it in its cache. */
struct chunk {
    struct chunk *next;
    size_t cap, len;      /* bytes; len of messages that the caller may see */
    uint32_t count, read; /* messages likewise, and those of them that it had */
    size_t read_len;      /* bytes of these */
    uint8_t at[];
};

struct source {
    struct weir__wire_link link;
    struct weir__source base;
    size_t bytes_max;
    uint32_t events_max;
    bool metrics;
    bool exclusive;
    int64_t epoch;
    char name[NAME_BYTES];
    char selector[WEIR__WIRE_SELECTOR_BYTES]; /* the first one */

    /* The loop's. */
    size_t filled; /* bytes and messages of `filling`, of which the caller sees len and count */
    uint32_t filled_count;
    size_t guess;

    /* Under the link's lock. */
    struct chunk *first, *tail;
    struct chunk *filling; /* the last one, while the loop is at it */
    struct chunk *spare;   /* for the next ones, while there is traffic */
    size_t spare_bytes;
    size_t held;  /* bytes of messages and lengths, those included that the caller has */
    size_t given; /* of them, to the caller, until its next call */
    uint32_t held_count, given_count; /* likewise, of messages */
    size_t freed;                     /* since credit was last looked at */
    bool low;                         /* there was no more than half of what fits at most */
    bool has_last;
    uint64_t last; /* sequence number of the last that was read */
    bool waiting, cancelled;
    bool opened; /* from here on its end is told to wake */
    bool asked;  /* wake is owed for the next message */
    void (*wake)(void *user, int over);
    void *user;
};

static struct source *of_link(struct weir__wire_link *l)
{
    return (struct source *)((char *)l - offsetof(struct source, link));
}

static struct source *of_base(struct weir__source *b)
{
    return (struct source *)((char *)b - offsetof(struct source, base));
}

/* ---- messages ---- */

/* Where the length of a chunk's i-th message stands. */
static uint8_t *length_at(struct chunk *c, uint32_t i)
{
    return c->at + c->cap - LENGTH_BYTES * ((size_t)i + 1);
}

/* Whether one more message fits behind so many. */
static bool has_room(const struct chunk *c, size_t len, uint32_t count, size_t bytes)
{
    return bytes + LENGTH_BYTES <= c->cap - len - LENGTH_BYTES * (size_t)count;
}

/* One that was used before, or a new one; the lock is held. */
static struct chunk *take_chunk(struct source *s, size_t cap)
{
    struct chunk *c = s->spare;

    if (c && c->cap >= cap) {
        s->spare = c->next;
        s->spare_bytes -= c->cap;
        cap = c->cap;
    } else {
        c = malloc(sizeof *c + cap);
    }
    if (c) *c = (struct chunk){.cap = cap};
    return c;
}

/* A chunk is kept for later as long as all of them together are no more than may be held; the lock is
 * held. */
static void give_chunk(struct source *s, struct chunk *c)
{
    if (c->cap != CHUNK_BYTES || s->held + s->spare_bytes + c->cap > s->bytes_max) {
        free(c);
        return;
    }
    c->next = s->spare;
    s->spare = c;
    s->spare_bytes += c->cap;
}

static void free_spare(struct source *s)
{
    while (s->spare) {
        struct chunk *next_chunk = s->spare->next;
        free(s->spare);
        s->spare = next_chunk;
    }
    s->spare_bytes = 0;
}

/* Room for a message at the end of the row; the lock is held. */
static struct chunk *make_room(struct source *s, size_t bytes)
{
    size_t cap = s->held < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : CHUNK_BYTES;
    struct chunk *c = s->tail;

    if (c && has_room(c, c->len, c->count, bytes)) return c;
    bytes += LENGTH_BYTES;
    c = take_chunk(s, cap > bytes ? cap : bytes);
    if (!c) return NULL;
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
    s->held_count -= s->given_count;
    s->freed += s->given;
    s->given = s->given_count = 0;
    while (s->first && s->first != s->filling && s->first->read == s->first->count) {
        struct chunk *c = s->first;
        s->first = c->next;
        if (!s->first) s->tail = NULL;
        give_chunk(s, c);
    }
}

/* Whether there is one that the caller did not have yet; the lock is held. */
static bool has_messages(const struct source *s)
{
    const struct chunk *c = s->first;

    while (c && c->read == c->count) c = c->next;
    return c != NULL;
}

/* The next ones, up to max; the lock is held. */
static uint32_t take_messages(struct source *s, struct weir__event *out, uint32_t max)
{
    uint32_t count = 0;

    for (struct chunk *c = s->first; c && count < max; c = c->next)
        for (; c->read < c->count && count < max; count++) {
            uint32_t len = weir__load32(length_at(c, c->read++));
            out[count].message = weir__bytes_of(c->at + c->read_len, len);
            c->read_len += len;
            s->given += LENGTH_BYTES + len;
        }
    s->given_count += count;
    return count;
}

/* Where the next connection goes on; the lock is held. */
static void remember(struct source *s, struct weir__bytes message)
{
    struct weir__annotations a = {.has_sequence = false};

    weir__annotations_find(&a, message);
    if (!a.has_sequence) return;
    s->last = a.sequence;
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

/* Messages that the caller does not see yet. */
static uint32_t count_filled(const struct source *s)
{
    return s->filling ? s->filled_count - s->filling->count : 0;
}

/* And their bytes. */
static size_t size_filled(const struct source *s)
{
    return s->filling ? s->filled - s->filling->len + LENGTH_BYTES * (size_t)count_filled(s) : 0;
}

/* Shows the caller what the loop has filled in; the lock is held. */
static void show_filled(struct source *s)
{
    if (!s->filling) return;
    s->held += size_filled(s);
    s->held_count += count_filled(s);
    s->filling->len = s->filled;
    s->filling->count = s->filled_count;
    s->filling = NULL;
}

/* The first of a turn, and what does not fit into the chunk. */
static bool begin_filling(struct source *s, size_t bytes)
{
    weir__mutex_lock(&s->link.lock);
    show_filled(s);
    s->filling = make_room(s, bytes);
    if (s->filling) {
        s->filled = s->filling->len;
        s->filled_count = s->filling->count;
    }
    weir__mutex_unlock(&s->link.lock);
    weir__loop_defer(s->link.wire->loop, &s->link.wake);
    return s->filling != NULL;
}

static int keep(struct source *s, struct weir__bytes message)
{
    if (!s->filling || !has_room(s->filling, s->filled, s->filled_count, message.len))
        if (!begin_filling(s, message.len)) return WEIR_ENOMEM;
    memcpy(s->filling->at + s->filled, message.at, message.len);
    weir__store32(length_at(s->filling, s->filled_count), (uint32_t)message.len);
    s->filled += message.len;
    s->filled_count++;
    guess_size(s, LENGTH_BYTES + message.len);
    return 0;
}

static struct weir__bytes last_of(struct chunk *c)
{
    uint32_t len = weir__load32(length_at(c, c->count - 1));

    return weir__bytes_of(c->at + c->len - len, len);
}

/* What came is kept, and the next attach goes on behind it. */
static void lost(struct weir__wire_link *l)
{
    weir__mutex_lock(&l->lock);
    show_filled(of_link(l));
    weir__mutex_unlock(&l->lock);
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
    lost(l);
    weir__wire_link_end(l, &why); /* or it would be missing in silence */
}

/* How many messages there is room for beside so many bytes and messages. */
static uint32_t count_fitting(const struct source *s, size_t held, uint32_t held_count)
{
    size_t room = s->bytes_max > held ? s->bytes_max - held : 0;
    size_t fits = room / (s->guess < GUESS_MIN ? GUESS_MIN : s->guess);
    uint32_t most = s->events_max > held_count ? s->events_max - held_count : 0;

    if (fits == 0 && held == 0) return 1;
    if (s->events_max == 0 || most > CREDIT_MAX) most = CREDIT_MAX;
    return fits < most ? (uint32_t)fits : most;
}

/* Gives credit when half of what fits is used up. What there is no memory for now the caller sees
 * to, when it has made room. */
static void pump(struct weir__wire_link *l)
{
    struct source *s = of_link(l);
    uint32_t credit = weir__amqp_link_credit(l->end.link), fits;
    bool give;

    weir__mutex_lock(&l->lock);
    fits = count_fitting(s, s->held + size_filled(s), s->held_count + count_filled(s));
    give = fits > 0 && credit <= fits / 2;
    s->low = (give ? fits : credit) <= count_fitting(s, 0, 0) / 2;
    s->freed = 0;
    weir__mutex_unlock(&l->lock);
    if (!give) return;
    weir__amqp_flow(l->end.link, fits, false);
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

/* The link keeps why, for the next call. */
static void failed(struct weir__wire_link *l, const struct weir_error *why)
{
    struct source *s = of_link(l);
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
    struct source *s = of_link(l);
    bool tell;

    weir__mutex_lock(&l->lock);
    show_filled(s);
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
    if (s->tail && s->tail->read < s->tail->count) remember(s, last_of(s->tail));
    memcpy(selector, s->selector, sizeof selector);
    if (s->has_last)
        snprintf(selector, sizeof selector, "amqp.annotation.x-opt-sequence-number > '%" PRIu64 "'",
                 s->last);
    weir__mutex_unlock(&l->lock);
    t->source = weir__wire_terminus(WEIR__AMQP_SOURCE, l->address,
                                    weir__wire_filter(selector, space, 256), space + 256, 768);
    t->target = weir__wire_terminus(WEIR__AMQP_TARGET, l->wire->container, none, space + 1024, 256);
    t->properties = write_properties(s, space + 1280, 512);
    if (s->metrics)
        t->desired_capabilities =
            weir__amqp_bytes(WEIR__AMQP_SYMBOL, METRICS_CAPABILITY, strlen(METRICS_CAPABILITY));
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
    free_spare(s);
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
    .woken = woken,
    .failed = failed,
    .idle = idle,
    .free = free_source,
};

/* ---- callers ---- */

/* Waits for messages; the lock is held. 0: there are some now. */
static int wait_for_messages(struct source *s, int64_t deadline_ns, struct weir_error *err)
{
    bool in_time = true;

    for (;;) {
        if (s->cancelled) {
            s->cancelled = false;
            return weir__fail(err, WEIR_ECANCELED, "cancelled");
        }
        if (has_messages(s)) return 0;
        if (s->link.why.code != 0) {
            if (err) *err = s->link.why;
            return s->link.why.code;
        }
        if (!in_time) {
            free_spare(s);
            s->asked = s->wake != NULL;
            return weir__fail(err, WEIR_ETIMEDOUT, "no event came in time");
        }
        if (s->low && s->freed > 0) weir__wire_link_visit(&s->link);
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
    s->asked = false;
    rc = wait_for_messages(s, deadline_ns, err);
    if (rc == 0) {
        count = take_messages(s, out, max);
        remember(s, out[count - 1].message);
        if (s->low && (s->freed > s->bytes_max / 4 || s->events_max > 0))
            weir__wire_link_visit(&s->link);
    }
    weir__mutex_unlock(&s->link.lock);
    *out_count = count;
    return rc;
}

static void measure(struct weir__source *b, const struct weir__event *e,
                    struct weir_receiver_metrics *out)
{
    (void)b;
    weir__wire_measure(e->message, out);
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
    .measure = measure,
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
    s->base = (struct weir__source){.ops = &source_ops, .deliveries = true};
    s->bytes_max = o->bytes_max ? o->bytes_max : BYTES_MAX_DEFAULT;
    s->events_max = o->events_max;
    s->guess = GUESS_FIRST;
    s->metrics = o->metrics;
    s->exclusive = o->exclusive;
    s->epoch = o->epoch;
    s->wake = o->wake;
    s->user = o->user;
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
    weir__mutex_lock(&s->link.lock);
    s->opened = true;
    weir__mutex_unlock(&s->link.lock);
    *out = &s->base;
    return 0;
}
