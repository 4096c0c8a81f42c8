/* wire_source.c - events of a partition, as they come: one by one, or a stored batch at a time when
 * the other side can do that. Each delivery says which it is.
 *
 * The loop checks and copies them into a row (wire_row.h); the caller's thread reads them there, and
 * walks the batches.
 *
 * Credit counts deliveries, memory counts bytes: credit is what fits into bytes_max beside what is
 * held, by a guess at the next deliveries' size from those before them. The guess may be wrong once,
 * by as much as the credit that was given; it is never more than CREDIT_MAX, nor, with what is held,
 * than events_max. Of batches what the caller works on does not count: the next one, which may be as
 * large as all that fits, comes meanwhile.
 *
 * When the connection is lost the next one begins behind the last event that came, whether or not
 * it was read: by its sequence number. A source that was stolen from is not attached again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/annotations.h"
#include "client/wire.h"
#include "client/wire_row.h"
#include "hub/stored.h"

#define BYTES_MAX_DEFAULT ((size_t)256 << 10)
#define CREDIT_MAX 4096u
#define GUESS_FIRST 4096u         /* bytes of a message before one was seen */
#define GUESS_FIRST_STORED 16384u /* and of a batch */
#define GUESS_MIN 64u
#define METRICS_CAPABILITY "com.microsoft:enable-receiver-runtime-metric"
#define NAME_BYTES 256 /* of a receiver's name; a longer one is cut */

struct source {
    struct weir__wire_link link;
    struct weir__source base;
    uint32_t events_max;
    bool metrics;
    bool exclusive;
    int64_t epoch;
    char name[NAME_BYTES];
    char selector[WEIR__WIRE_SELECTOR_BYTES]; /* the first one */
    struct weir__wire_row row;

    /* The loop's. */
    size_t guess;
    bool desires; /* stored batches */
    bool has_came;
    uint64_t came; /* sequence number of the last event, when that came in a batch */

    /* The caller's. */
    struct weir__batch_walk walk; /* through `item` while walking */
    struct weir__wire_item item;
    bool walking;
    struct weir__stored_facts facts;

    /* Under the link's lock. */
    size_t freed; /* since credit was last looked at */
    bool low;     /* there was no more than half of what fits at most */
    bool has_last;
    uint64_t last; /* sequence number of the last that was read */
    bool waiting, cancelled;
    bool opened; /* from here on its end is told to wake */
    bool asked;  /* wake is owed for the next delivery */
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

/* The first of a turn, and what does not fit into the chunk. */
static bool begin_filling(struct source *s, size_t bytes)
{
    bool ok;

    weir__mutex_lock(&s->link.lock);
    ok = weir__wire_row_begin(&s->row, bytes);
    weir__mutex_unlock(&s->link.lock);
    weir__loop_defer(s->link.wire->loop, &s->link.wake);
    return ok;
}

static int keep(struct source *s, struct weir__wire_item item)
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
    struct source *s = of_link(l);

    weir__wire_log(l->wire, WEIR__WARN, "%s: %s", l->address, why->text);
    lost(l);
    if (s->desires)
        weir__wire_link_again(l, WEIR__WIRE_RETRY_MS);
    else
        weir__wire_link_end(l, why);
    s->desires = false;
}

/* Where the next connection goes on when a batch has come, or a message. */
static void note_came(struct source *s, const struct weir__wire_item *item)
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
    struct weir_error why;

    if (!d->settled) weir__amqp_settle(l->end.link, d->id, d->id, WEIR__AMQP_ACCEPTED, NULL);
    if (d->too_large) {
        weir__fail(&why, WEIR_ETOOBIG, "a message of %" PRIu64 " bytes cannot be received",
                   d->size);
    } else if (item.stored && weir__stored_check(d->payload, &why) != 0) {
        refuse_batch(l, &why);
        return;
    } else if (keep(of_link(l), item) != 0) {
        weir__fail(&why, WEIR_ENOMEM, "no memory for a message of %zu bytes", d->payload.len);
    } else {
        note_came(of_link(l), &item);
        return;
    }
    lost(l);
    weir__wire_link_end(l, &why); /* or it would be missing in silence */
}

/* How many deliveries there is room for beside so many bytes and deliveries. */
static uint32_t count_fitting(const struct source *s, size_t held, uint32_t held_count)
{
    size_t room = s->row.bytes_max > held ? s->row.bytes_max - held : 0;
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
    fits = count_fitting(s, s->row.held + weir__wire_row_hidden_bytes(&s->row),
                         s->row.held_count + weir__wire_row_hidden(&s->row));
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

/* Capabilities that the other side does not know it passes over. */
static struct weir__amqp_value write_desires(const struct source *s, uint8_t *space, size_t room)
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
static void write_selector(struct source *s, char out[WEIR__WIRE_SELECTOR_BYTES])
{
    struct weir__wire_item newest;

    if (!s->has_came && weir__wire_row_newest(&s->row, &newest)) remember(s, newest.bytes);
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
    struct source *s = of_link(l);

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

static void attached(struct weir__wire_link *l, const struct weir__amqp_composite *fields)
{
    (void)l;
    (void)fields;
}

static void free_source(struct weir__wire_link *l)
{
    struct source *s = of_link(l);

    weir__wire_row_fini(&s->row);
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

/* Waits for deliveries; the lock is held. 0: there are some now. */
static int wait_for_items(struct source *s, int64_t deadline_ns, struct weir_error *err)
{
    bool in_time = true;

    for (;;) {
        if (s->cancelled) {
            s->cancelled = false;
            return weir__fail(err, WEIR_ECANCELED, "cancelled");
        }
        if (weir__wire_row_look(&s->row)) return 0;
        if (s->link.why.code != 0) {
            if (err) *err = s->link.why;
            return s->link.why.code;
        }
        if (!in_time) {
            weir__wire_row_rest(&s->row);
            s->asked = s->wake != NULL;
            return weir__fail(err, WEIR_ETIMEDOUT, "no event came in time");
        }
        if (s->low && s->freed > 0) weir__wire_link_visit(&s->link);
        s->waiting = true;
        in_time = weir__cond_wait(&s->link.changed, &s->link.lock, deadline_ns);
        s->waiting = false;
    }
}

/* What the caller had is free; the lock is held. */
static void release(struct source *s)
{
    s->freed += s->row.given;
    weir__wire_row_release(&s->row);
}

/* The messages that come next, up to max, as long as there is no batch among them; the lock is
 * held. */
static uint32_t take_messages(struct source *s, struct weir__event *out, uint32_t max)
{
    struct weir__wire_item item;
    uint32_t count = 0;

    while (count < max && weir__wire_row_peek(&s->row, &item) && !item.stored) {
        out[count++].message = item.bytes;
        weir__wire_row_pass(&s->row, &item);
    }
    if (count > 0) remember(s, out[count - 1].message);
    return count;
}

/* The next batch, unless a message comes first. */
static bool begin_batch(struct source *s)
{
    struct weir__log_view view;
    struct weir_error why;

    while (weir__wire_row_peek(&s->row, &s->item) && s->item.stored) {
        weir__stored_view(s->item.bytes, &view);
        s->facts = weir__stored_facts(s->item.bytes);
        s->walking = weir__batch_walk_start(&s->walk, &view, &why) == 0;
        if (s->walking) return true;
        weir__wire_log(s->link.wire, WEIR__ERROR, "%s: %s", s->link.address, why.text);
        weir__wire_row_pass(&s->row, &s->item);
    }
    return false;
}

/* The events of the batches that come next, up to max; what cannot be walked is passed over. */
static uint32_t walk_batches(struct source *s, struct weir__event *out, uint32_t max)
{
    struct weir_error why;
    uint32_t count = 0;

    while (count < max && (s->walking || begin_batch(s))) {
        int rc = weir__batch_walk_next(&s->walk, &out[count], &why);
        if (rc == 1) count++;
        if (rc == 1 && s->walk.left > 0) continue;
        if (rc < 0) weir__wire_log(s->link.wire, WEIR__ERROR, "%s: %s", s->link.address, why.text);
        s->walking = false;
        weir__wire_row_pass(&s->row, &s->item);
    }
    return count;
}

/* Messages are read under the lock, which they need for a moment; batches without. */
static int take(struct source *s, struct weir__event *out, uint32_t max, int64_t deadline_ns,
                uint32_t *out_count, struct weir_error *err)
{
    int rc;

    weir__mutex_lock(&s->link.lock);
    release(s);
    s->asked = false;
    rc = wait_for_items(s, deadline_ns, err);
    if (rc == 0 && s->low && (s->freed > s->row.bytes_max / 4 || s->events_max > 0))
        weir__wire_link_visit(&s->link);
    *out_count = rc == 0 ? take_messages(s, out, max) : 0;
    weir__mutex_unlock(&s->link.lock);
    s->base.deliveries = *out_count > 0;
    if (rc == 0 && *out_count == 0) *out_count = walk_batches(s, out, max);
    return rc;
}

static int next(struct weir__source *b, struct weir__event *out, uint32_t max, int64_t deadline_ns,
                uint32_t *out_count, uint64_t *out_missed, struct weir_error *err)
{
    int rc;

    *out_missed = 0;
    do {
        rc = take(of_base(b), out, max, deadline_ns, out_count, err);
    } while (rc == 0 && *out_count == 0); /* all that was there could not be walked */
    return rc;
}

static void measure(struct weir__source *b, const struct weir__event *e,
                    struct weir_receiver_metrics *out)
{
    const struct source *s = of_base(b);

    if (b->deliveries) {
        weir__wire_measure(e->message, out);
        return;
    }
    if (s->facts.known_ms == 0) return;
    *out = (struct weir_receiver_metrics){
        .last_sequence = (uint64_t)s->facts.last_sequence,
        .last_offset = s->facts.last_offset < 0 ? 0 : (uint64_t)s->facts.last_offset,
        .last_time_ms = s->facts.last_time_ms,
        .retrieved_ms = s->facts.known_ms,
    };
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
    weir__wire_row_init(&s->row, o->bytes_max ? o->bytes_max : BYTES_MAX_DEFAULT);
    s->events_max = o->events_max;
    s->desires = o->events_max == 0; /* events are what it wants counted */
    s->guess = s->desires ? GUESS_FIRST_STORED : GUESS_FIRST;
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
