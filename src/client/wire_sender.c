/* wire_sender.c - publishing to a hub, on callers' threads: a batch is written as it will be sent,
 * put in line when there is room, and, by those who wait, awaited. The rest is wire_flight.c. */
#include <stdio.h>
#include <stdlib.h>

#include "client/wire_flight.h"
#include "hub/route.h"

static struct weir__wire_sender *of_base(struct weir__sender *b)
{
    return (struct weir__wire_sender *)((char *)b - offsetof(struct weir__wire_sender, base));
}

/* The lock is held. */
static void append(struct weir__wire_sender *s, struct weir__wire_flight *f)
{
    f->prev = s->tail;
    if (s->tail)
        s->tail->next = f;
    else
        s->first = f;
    s->tail = f;
    if (!s->unsent) s->unsent = f;
    s->bytes += f->len;
}

static int route(struct weir__sender *b, const struct weir__batch *batch, uint32_t *out_partition,
                 struct weir_error *err)
{
    struct weir__wire_sender *s = of_base(b);

    (void)err;
    *out_partition = s->partition;
    if (s->partition == WEIR_PARTITION_UNKNOWN && batch->key.at && s->partitions)
        *out_partition = weir__route_key(batch->key, s->partitions);
    return 0;
}

static int make_flight(struct weir__wire_sender *s, const struct weir__batch *batch,
                       const struct weir__log_producer *mark, struct weir__wire_flight **out,
                       struct weir_error *err)
{
    size_t room = weir__wire_stamp_bound(batch, mark);
    struct weir__wire_flight *f = malloc(sizeof *f + room);
    int rc;

    if (!f) return weir__fail(err, WEIR_ENOMEM, "no memory for a batch of %zu bytes", room);
    *f = (struct weir__wire_flight){.since_ms = weir__mono_ns() / 1000000};
    if (mark) f->last = mark->sequence + batch->count;
    rc = weir__wire_stamp(batch, mark, f->bytes, room, &f->len, err);
    if (rc == 0 && f->len > s->base.batch_bytes_max)
        rc = weir__fail(err, WEIR_ETOOBIG, "the batch has %zu bytes, at most %zu are allowed",
                        f->len, s->base.batch_bytes_max);
    if (rc != 0) {
        free(f);
        return rc;
    }
    *out = f;
    return 0;
}

/* Puts a flight in line as soon as there is room; the lock is held. */
static int line_up(struct weir__wire_sender *s, struct weir__wire_flight *f, int64_t deadline_ns,
                   bool *out_first, struct weir_error *err)
{
    bool in_time = deadline_ns != 0;

    s->waiting++;
    while (s->bytes && s->bytes + f->len > WEIR__WIRE_FLIGHT_BYTES && in_time)
        in_time = weir__cond_wait(&s->link.changed, &s->link.lock, deadline_ns);
    s->waiting--;
    if (s->bytes && s->bytes + f->len > WEIR__WIRE_FLIGHT_BYTES)
        return weir__fail(err, WEIR_EBUSY, "%zu bytes are on their way already", s->bytes);
    *out_first = !s->unsent;
    append(s, f);
    return 0;
}

static int publish(struct weir__sender *b, const struct weir__batch *batch, uint32_t partition,
                   const struct weir__log_producer *mark, int64_t deadline_ns,
                   weir__log_done_fn done, void *user, struct weir_error *err)
{
    struct weir__wire_sender *s = of_base(b);
    struct weir__wire_flight *f;
    bool first;
    int rc = make_flight(s, batch, mark, &f, err);

    (void)partition;
    if (rc != 0) return rc;
    f->done = done;
    f->user = user;
    weir__mutex_lock(&s->link.lock);
    rc = line_up(s, f, deadline_ns, &first, err);
    weir__mutex_unlock(&s->link.lock);
    if (rc != 0)
        free(f);
    else if (first)
        weir__wire_link_visit(&s->link);
    return rc;
}

/* The deadline has passed; the lock is held. */
static int give_up(struct weir__wire_sender *s, struct weir__wire_flight *f, struct weir_error *err)
{
    if (f->was_sent) {
        f->waiter = NULL;
        return weir__fail(err, WEIR_EUNKNOWN, "no answer to the batch before the deadline");
    }
    weir__wire_flight_out(s, f);
    free(f);
    return weir__fail(err, WEIR_EBUSY, "the batch could not be sent before the deadline");
}

static int publish_wait(struct weir__sender *b, const struct weir__batch *batch, uint32_t partition,
                        const struct weir__log_producer *mark, int64_t deadline_ns,
                        struct weir__log_receipt *out, struct weir_error *err)
{
    struct weir__wire_sender *s = of_base(b);
    struct weir__wire_waiter waiter = {.done = false};
    struct weir__wire_flight *f;
    bool first, in_time = true;
    int rc = make_flight(s, batch, mark, &f, err);

    (void)partition;
    if (rc != 0) return rc;
    f->waiter = &waiter;
    weir__cond_init(&waiter.landed);
    weir__mutex_lock(&s->link.lock);
    rc = line_up(s, f, deadline_ns, &first, err);
    if (rc != 0) {
        free(f);
    } else {
        if (first) weir__wire_link_visit(&s->link);
        while (!waiter.done && in_time)
            in_time = weir__cond_wait(&waiter.landed, &s->link.lock, deadline_ns);
        rc = waiter.done ? waiter.rc : give_up(s, f, err);
        if (waiter.done && rc != 0 && err) *err = waiter.why;
    }
    weir__mutex_unlock(&s->link.lock);
    weir__cond_fini(&waiter.landed);
    *out = (struct weir__log_receipt){.offset = WEIR_UNPLACED, .sequence = WEIR_UNPLACED};
    return rc;
}

static int identify(struct weir__sender *b, struct weir__log_producer *mark, struct weir_error *err)
{
    struct weir__wire_sender *s = of_base(b);

    weir__mutex_lock(&s->link.lock);
    *mark = s->mark;
    weir__mutex_unlock(&s->link.lock);
    if (mark->id != 0) return 0;
    return weir__fail(err, WEIR_ENOTSUP, "the other side knows no idempotent producers");
}

static void close_sender(struct weir__sender *b)
{
    weir__wire_link_close(&of_base(b)->link, false);
}

static const struct weir__sender_ops sender_ops = {
    .version = WEIR__BACKEND_VERSION,
    .route = route,
    .publish = publish,
    .publish_wait = publish_wait,
    .identify = identify,
    .close = close_sender,
};

static void name_link(struct weir__wire_sender *s, const char *hub,
                      const struct weir_producer_options *o)
{
    struct weir__wire_link *l = &s->link;

    snprintf(l->audience, sizeof l->audience, "sb://%s/%s", l->wire->to.host, hub);
    if (o->pinned)
        snprintf(l->address, sizeof l->address, "%s/Partitions/%u", hub, o->partition);
    else
        snprintf(l->address, sizeof l->address, "%s", hub);
}

int weir__wire_open_sender(struct weir__backend *b, const char *hub,
                           const struct weir_producer_options *o, struct weir__sender **out,
                           struct weir_error *err)
{
    struct weir__wire *w = (struct weir__wire *)b;
    struct weir_hub_info info = {.partitions = 0};
    struct weir__wire_sender *s;
    int rc = weir__wire_check_hub(w, hub, err);

    if (rc == 0 && !o->pinned) rc = weir__wire_hub_info(b, hub, &info, err);
    if (rc != 0) return rc;
    s = calloc(1, sizeof *s);
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a link");
    s->base.ops = &sender_ops;
    s->partition = o->pinned ? o->partition : WEIR_PARTITION_UNKNOWN;
    s->partitions = info.partitions;
    s->idempotent = o->idempotent;
    s->mark = (struct weir__log_producer){.id = o->id, .epoch = o->epoch};
    weir__timer_init(&s->patience, weir__wire_sender_patience, s);
    weir__wire_link_init(&s->link, w, &weir__wire_sender_calls);
    name_link(s, hub, o);
    rc = weir__wire_link_open(&s->link, err);
    if (rc != 0) {
        weir__wrap(err, rc, "a link to %s", s->link.address);
        close_sender(&s->base);
        return rc;
    }
    s->base.batch_bytes_max = s->message_bytes_max;
    if (w->batch_bytes_max && w->batch_bytes_max < s->base.batch_bytes_max)
        s->base.batch_bytes_max = w->batch_bytes_max;
    *out = &s->base;
    return 0;
}
