/* receiver.c - reading: pull stored events and decode them into memory of the receiver's. */
#include "client/decode.h"
#include "client/weir.h"

#include <stdlib.h>

#include "base/thread.h"

#define EVENTS_MAX 4096u /* that one receive gives */
#define ROOM_IDLE 32u    /* events that a receiver keeps room for when nothing comes */
#define AHEAD 8u         /* events that are fetched from memory before they are decoded */
#define DECODED_BYTES_MAX ((size_t)1 << 30)

struct weir_receiver {
    struct weir *weir;
    struct weir__source *source;
    uint32_t partition;
    bool damaged;  /* in front of events that cannot be read */
    bool measures; /* metrics are wanted */
    bool expects;  /* the next event is this one, unless some have expired: */
    uint64_t expected;
    struct weir_receiver_metrics metrics;
    struct weir__event *stored;
    struct weir_event *events;
    uint32_t room;          /* in both */
    uint32_t pulled, given; /* of stored */
    struct weir__arena arena;
};

static int make_room(struct weir_receiver *r, uint32_t want, struct weir_error *err)
{
    struct weir__event *stored;
    struct weir_event *events;

    if (want <= r->room) return 0;
    stored = realloc(r->stored, want * sizeof *stored);
    if (stored) r->stored = stored;
    events = realloc(r->events, want * sizeof *events);
    if (events) r->events = events;
    if (!stored || !events) return weir__fail(err, WEIR_ENOMEM, "no memory for %u events", want);
    r->room = want;
    return 0;
}

/* Of thousands of receivers that are watched most are idle, and cost as little as they can. */
static void shrink(struct weir_receiver *r)
{
    if (r->room <= ROOM_IDLE) return;
    free(r->stored);
    free(r->events);
    r->stored = NULL;
    r->events = NULL;
    r->room = 0;
    weir__arena_fini(&r->arena);
    weir__arena_init(&r->arena, DECODED_BYTES_MAX);
}

/* Pulls when everything of before was given. */
static int pull(struct weir_receiver *r, uint32_t max, int64_t timeout_ms, uint64_t *out_missed,
                struct weir_error *err)
{
    int rc;

    if (r->given < r->pulled) return 0;
    r->given = r->pulled = 0;
    rc = r->source->ops->next(r->source, r->stored, max, weir__deadline_ns(timeout_ms), &r->pulled,
                              out_missed, err);
    r->damaged = rc == WEIR_ECORRUPT;
    if (rc == WEIR_ETIMEDOUT && timeout_ms == 0) shrink(r);
    return rc;
}

/* Another thread has put it there: it is not in this core's cache. */
static void fetch(const struct weir__event *e)
{
    __builtin_prefetch(e->message.at);
    __builtin_prefetch(e->message.at + 64);
    __builtin_prefetch(e->message.at + 128);
}

/* As weir__decode_events, of messages that a hub delivered. */
static uint32_t decode_deliveries(struct weir_receiver *r, const struct weir__event *e,
                                  uint32_t count, struct weir_error *err)
{
    uint32_t done = 0;

    for (; done < count; done++) {
        struct weir_event *out = &r->events[done];
        if (count - done > AHEAD) fetch(&e[done + AHEAD]);
        if (weir__decode_delivery(e[done].message, r->partition, &r->arena, out, err) != 0) break;
        if (out->sequence != r->events[0].sequence + done) break;
    }
    return done;
}

/* Short of memory it gives what it can; the rest waits for the next call, and so does what lies
 * behind a gap: only what is missing in front of a call's events can be told. */
static int decode(struct weir_receiver *r, uint32_t max, struct weir_received *out,
                  struct weir_error *err)
{
    const struct weir__event *e = &r->stored[r->given];
    uint32_t left = r->pulled - r->given, count = left < max ? left : max;

    weir__arena_reset(&r->arena);
    if (r->source->deliveries)
        count = decode_deliveries(r, e, count, err);
    else
        count = weir__decode_events(e, count, r->partition, &r->arena, r->events, err);
    if (count == 0) return WEIR_ENOMEM;
    r->given += count;
    out->events = r->events;
    out->count = count;
    return 0;
}

/* A hub's sequence numbers have no gaps, so what expired, or what a server passed over because it is
 * damaged, is seen on every way to it, whether or not somebody there says so. */
static void expect(struct weir_receiver *r, struct weir_received *got)
{
    uint64_t first = got->events[0].sequence;

    if (r->expects && first > r->expected) got->missed = first - r->expected;
    r->expects = true;
    r->expected = got->events[got->count - 1].sequence + 1;
}

int weir_receiver_receive(struct weir_receiver *r, size_t max, int64_t timeout_ms,
                          struct weir_received *out, struct weir_error *err)
{
    uint32_t want = max < EVENTS_MAX ? (uint32_t)max : EVENTS_MAX;
    int rc = timeout_ms == 0 ? 0 : weir__completing_refuse("weir_receiver_receive", err);

    *out = (struct weir_received){0};
    if (rc == 0 && max == 0) rc = weir__fail(err, WEIR_EINVAL, "receiving at most 0 events");
    if (rc == 0) rc = make_room(r, want, err);
    if (rc == 0) rc = pull(r, want, timeout_ms, &out->missed, err);
    if (rc == 0) rc = decode(r, want, out, err);
    if (rc == 0) expect(r, out);
    if (rc == 0 && r->measures)
        r->source->ops->measure(r->source, &r->stored[r->given - 1], &r->metrics);
    return rc;
}

int weir_receiver_metrics(const struct weir_receiver *r, struct weir_receiver_metrics *out,
                          struct weir_error *err)
{
    *out = r->metrics;
    if (r->measures) return 0;
    return weir__fail(err, WEIR_EINVAL, "this receiver was opened without metrics");
}

int weir_receiver_skip(struct weir_receiver *r, uint64_t *out_first, uint64_t *out_last,
                       struct weir_error *err)
{
    uint64_t first, last;

    if (!r->damaged) return weir__fail(err, WEIR_EINVAL, "there is no damage to skip here");
    r->source->ops->skip(r->source, &first, &last);
    r->damaged = r->expects = false;
    if (out_first) *out_first = first;
    if (out_last) *out_last = last;
    return 0;
}

bool weir__receiver_ended(struct weir_receiver *r)
{
    return r->source->ops->ended(r->source);
}

void weir_receiver_cancel(struct weir_receiver *r)
{
    r->source->ops->cancel(r->source);
}

void weir_receiver_close(struct weir_receiver *r)
{
    if (!r) return;
    if (r->source) {
        r->source->ops->close(r->source);
        atomic_fetch_sub(&r->weir->users, 1);
    }
    weir__arena_fini(&r->arena);
    free(r->stored);
    free(r->events);
    free(r);
}

static int check_options(const char *hub, const struct weir_receiver_options *o,
                         struct weir_error *err)
{
    if (!hub) return weir__fail(err, WEIR_EINVAL, "opening a receiver: no hub was named");
    if ((unsigned)o->position.from > WEIR_FROM_TIME)
        return weir__fail(err, WEIR_EINVAL, "opening a receiver: unknown kind of position");
    if (o->exclusive && o->epoch < 0)
        return weir__fail(err, WEIR_EINVAL, "opening a receiver: a negative epoch");
    return 0;
}

int weir_receiver_open(struct weir_receiver **out, struct weir *w, const char *hub,
                       uint32_t partition, const struct weir_receiver_options *options,
                       struct weir_error *err)
{
    struct weir_receiver_options o;
    struct weir_receiver *r;
    int rc = weir__completing_refuse("weir_receiver_open", err);

    *out = NULL;
    if (rc == 0) rc = weir__options_copy(&o, sizeof o, options, err);
    if (rc == 0) rc = check_options(hub, &o, err);
    if (rc != 0) return rc;
    r = calloc(1, sizeof *r);
    if (!r) return weir__fail(err, WEIR_ENOMEM, "no memory for a receiver");
    r->weir = w;
    r->partition = partition;
    r->measures = o.metrics;
    r->expects = o.position.from == WEIR_FROM_SEQUENCE && o.position.value >= 0;
    r->expected = (uint64_t)o.position.value + o.position.after;
    weir__arena_init(&r->arena, DECODED_BYTES_MAX);
    rc = w->backend->ops->open_source(w->backend, hub, partition, &o, &r->source, err);
    if (rc != 0) {
        weir_receiver_close(r);
        return rc;
    }
    atomic_fetch_add(&w->users, 1);
    *out = r;
    return 0;
}
