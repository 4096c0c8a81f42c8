/* receiver.c - reading: pull stored events and decode them into memory of the receiver's. */
#include "client/decode.h"
#include "client/weir.h"

#include <stdlib.h>

#include "base/thread.h"

#define EVENTS_MAX 4096u /* that one receive gives */
#define DECODED_BYTES_MAX ((size_t)1 << 30)

struct weir_receiver {
    struct weir *weir;
    struct weir__source *source;
    uint32_t partition;
    bool damaged; /* in front of events that cannot be read */
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
    return rc;
}

/* Short of memory it gives what it can; the rest waits for the next call. */
static int decode(struct weir_receiver *r, uint32_t max, struct weir_received *out,
                  struct weir_error *err)
{
    uint32_t count = 0;
    int rc = 0;

    weir__arena_reset(&r->arena);
    for (; count < max && r->given < r->pulled; count++, r->given++) {
        rc = weir__decode_event(&r->stored[r->given], r->partition, &r->arena, &r->events[count],
                                err);
        if (rc != 0) break;
    }
    if (count == 0) return rc;
    out->events = r->events;
    out->count = count;
    return 0;
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
    if (rc != 0) return rc;
    return decode(r, want, out, err);
}

int weir_receiver_skip(struct weir_receiver *r, uint64_t *out_first, uint64_t *out_last,
                       struct weir_error *err)
{
    uint64_t first, last;

    if (!r->damaged) return weir__fail(err, WEIR_EINVAL, "there is no damage to skip here");
    r->source->ops->skip(r->source, &first, &last);
    r->damaged = false;
    if (out_first) *out_first = first;
    if (out_last) *out_last = last;
    return 0;
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
