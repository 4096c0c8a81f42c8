/* wire_source.c - a source's part on callers' threads: opening, waiting, reading. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/wire_source.h"

#define BYTES_MAX_DEFAULT ((size_t)256 << 10)
#define BYTES_MAX (SIZE_MAX / 2) /* sums of it and of what came fit */

static struct weir__wire_source *of_base(struct weir__source *b)
{
    return (struct weir__wire_source *)((char *)b - offsetof(struct weir__wire_source, base));
}

/* Waits for deliveries; the lock is held. 0: there are some now. */
static int wait_for_items(struct weir__wire_source *s, int64_t deadline_ns, struct weir_error *err)
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
        if (!in_time || s->ended) {
            s->asked = s->wake != NULL;
            return weir__fail(err, WEIR_ETIMEDOUT, "no event came in time");
        }
        if (s->low && s->freed > 0) weir__wire_link_visit(&s->link);
        in_time = weir__cond_wait(&s->link.changed, &s->link.lock, deadline_ns);
    }
}

/* What the caller had is free; the lock is held. */
static void release(struct weir__wire_source *s)
{
    s->freed += s->row.given;
    weir__wire_row_release(&s->row);
    atomic_store(&s->taken, 0);
}

/* The messages that come next, up to max, as long as there is no batch among them; the lock is
 * held. */
static uint32_t take_messages(struct weir__wire_source *s, struct weir__event *out, uint32_t max)
{
    struct weir__wire_item item;
    uint32_t count = 0;

    while (count < max && weir__wire_row_peek(&s->row, &item) && !item.stored) {
        out[count++].message = item.bytes;
        weir__wire_row_pass(&s->row, &item);
    }
    if (count > 0) weir__wire_remember(s, out[count - 1].message);
    return count;
}

/* The caller has had so much of late: more may come meanwhile. */
static void note_passed(struct weir__wire_source *s, size_t bytes)
{
    s->passed += bytes;
    atomic_store(&s->taken, s->row.given);
    if (s->passed <= s->row.bytes_max / WEIR__WIRE_PART) return;
    s->passed = 0;
    weir__wire_link_visit(&s->link);
}

static void end_batch(struct weir__wire_source *s)
{
    s->walking = false;
    weir__wire_row_pass(&s->row, &s->item);
    note_passed(s, s->item.bytes.len);
}

/* The next batch, unless a message comes first. */
static bool begin_batch(struct weir__wire_source *s)
{
    struct weir__log_view view;
    struct weir_error why;

    while (weir__wire_row_peek(&s->row, &s->item) && s->item.stored) {
        weir__stored_view(s->item.bytes, &view);
        s->facts = weir__stored_facts(s->item.bytes);
        s->walking = weir__batch_walk_start(&s->walk, &view, &why) == 0;
        if (s->walking) return true;
        weir__wire_log(s->link.wire, WEIR__ERROR, "%s: %s", s->link.address, why.text);
        end_batch(s);
    }
    return false;
}

/* The events of the batches that come next, up to max; what cannot be walked is passed over. */
static uint32_t walk_batches(struct weir__wire_source *s, struct weir__event *out, uint32_t max)
{
    struct weir_error why;
    uint32_t count = 0;

    while (count < max && (s->walking || begin_batch(s))) {
        uint32_t some = weir__batch_walk_some(&s->walk, &out[count], max - count);
        int rc = some > 0 ? 1 : weir__batch_walk_next(&s->walk, &out[count], &why);
        if (rc == 1) count += some > 0 ? some : 1;
        if (rc == 1 && s->walk.left > 0) continue;
        if (rc < 0) weir__wire_log(s->link.wire, WEIR__ERROR, "%s: %s", s->link.address, why.text);
        end_batch(s);
    }
    return count;
}

/* Messages are read under the lock, which they need for a moment; batches without. */
static int take(struct weir__wire_source *s, struct weir__event *out, uint32_t max,
                int64_t deadline_ns, uint32_t *out_count, struct weir_error *err)
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
    if (*out_count > 0) note_passed(s, s->row.given);
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
    const struct weir__wire_source *s = of_base(b);

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

static bool ended(struct weir__source *b)
{
    struct weir__wire_source *s = of_base(b);
    bool yes;

    weir__mutex_lock(&s->link.lock);
    if (!s->ending) weir__wire_link_visit(&s->link);
    s->ending = true;
    yes = s->ended && !weir__wire_row_look(&s->row);
    weir__mutex_unlock(&s->link.lock);
    return yes;
}

static void cancel(struct weir__source *b)
{
    struct weir__wire_source *s = of_base(b);

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
    .ended = ended,
    .cancel = cancel,
    .close = close_source,
};

static void name_link(struct weir__wire_source *s, const char *hub, uint32_t partition,
                      const char *group)
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
    struct weir__wire_source *s;
    int rc = weir__wire_check_hub(w, hub, err);

    if (rc == 0 && strlen(group) > WEIR__GROUP_NAME_MAX)
        rc = weir__fail(err, WEIR_ENOTFOUND, "no group has a name of %zu bytes", strlen(group));
    if (rc == 0) rc = weir__wire_find_latest(b, hub, partition, &position, err);
    if (rc != 0) return rc;
    s = calloc(1, sizeof *s);
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a link");
    s->base = (struct weir__source){.ops = &source_ops, .deliveries = true};
    weir__wire_row_init(&s->row, &w->pool, o->bytes_max ? o->bytes_max : BYTES_MAX_DEFAULT);
    if (s->row.bytes_max > BYTES_MAX) s->row.bytes_max = BYTES_MAX;
    s->events_max = o->events_max;
    s->desires = o->events_max == 0; /* events are what it wants counted */
    s->guess = WEIR__WIRE_GUESS_FIRST;
    s->metrics = o->metrics;
    s->exclusive = o->exclusive;
    s->epoch = o->epoch;
    s->wake = o->wake;
    s->user = o->user;
    if (o->name) snprintf(s->name, sizeof s->name, "%s", o->name);
    weir__wire_selector(&position, s->selector);
    weir__wire_link_init(&s->link, w, &weir__wire_arrival_calls);
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
