/* folder_link.c - senders and sources of the hubs in a folder. */
#include "client/folder.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "hub/receiver.h"

/* ---- senders ---- */

struct folder_sender {
    struct weir__sender base;
    struct weir__hub *hub;
    uint32_t wanted; /* or WEIR__PARTITION_ANY */
};

static struct weir__hub *hub_of(struct weir__sender *s)
{
    return ((struct folder_sender *)s)->hub;
}

static int sender_route(struct weir__sender *s, const struct weir__batch *batch,
                        uint32_t *out_partition, struct weir_error *err)
{
    uint32_t wanted = ((struct folder_sender *)s)->wanted;

    return weir__hub_route(hub_of(s), batch, wanted, out_partition, err);
}

static int sender_publish(struct weir__sender *s, const struct weir__batch *batch,
                          uint32_t partition, const struct weir__log_producer *mark,
                          int64_t deadline_ns, weir__log_done_fn done, void *user,
                          struct weir_error *err)
{
    return weir__hub_publish(hub_of(s), batch, partition, mark, deadline_ns, done, user, err);
}

static int sender_publish_wait(struct weir__sender *s, const struct weir__batch *batch,
                               uint32_t partition, const struct weir__log_producer *mark,
                               int64_t deadline_ns, struct weir__log_receipt *out,
                               struct weir_error *err)
{
    return weir__hub_publish_wait(hub_of(s), batch, partition, mark, deadline_ns, out, err);
}

/* A known id goes on with the hub's sequence number; a higher epoch begins anew at 0. */
static int sender_identify(struct weir__sender *s, struct weir__log_producer *mark,
                           struct weir_error *err)
{
    uint32_t partition = ((struct folder_sender *)s)->wanted;
    struct weir__log_producer known;
    int rc;

    mark->sequence = 0;
    if (mark->id == 0) return weir__hub_producer_new(hub_of(s), &mark->id, err);
    rc = weir__hub_producer_state(hub_of(s), partition, mark->id, &known, err);
    if (rc != 0) return rc;
    if (mark->epoch < known.epoch)
        return weir__fail(err, WEIR_EFENCED, "producer %" PRIu64 " has epoch %u now, not %u",
                          mark->id, known.epoch, mark->epoch);
    if (mark->epoch == known.epoch) mark->sequence = known.sequence;
    return 0;
}

static void sender_close(struct weir__sender *s)
{
    weir__hub_release(hub_of(s));
    free(s);
}

static const struct weir__sender_ops sender_ops = {
    .version = WEIR__BACKEND_VERSION,
    .route = sender_route,
    .publish = sender_publish,
    .publish_wait = sender_publish_wait,
    .identify = sender_identify,
    .close = sender_close,
};

int weir__folder_check_partition(struct weir__hub *hub, uint32_t partition, struct weir_error *err)
{
    uint32_t count = weir__hub_partitions(hub);

    if (partition < count) return 0;
    return weir__fail(err, WEIR_ENOTFOUND, "hub '%s' has partitions 0 to %u, not %u",
                      weir__hub_name(hub), count - 1, partition);
}

int weir__folder_open_sender(struct weir__backend *b, const char *hub,
                             const struct weir_producer_options *o, struct weir__sender **out,
                             struct weir_error *err)
{
    struct folder_sender *s = calloc(1, sizeof *s);
    int rc;

    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory");
    s->base.ops = &sender_ops;
    s->wanted = o->pinned ? o->partition : WEIR__PARTITION_ANY;
    rc = weir__namespace_use(((struct weir__folder *)b)->namespace, hub, &s->hub, err);
    if (rc == 0 && o->pinned) rc = weir__folder_check_partition(s->hub, o->partition, err);
    if (rc != 0) {
        sender_close(&s->base);
        return rc;
    }
    s->base.batch_bytes_max = weir__hub_batch_bytes_max(s->hub);
    *out = &s->base;
    return 0;
}

/* ---- sources ---- */

struct folder_source {
    struct weir__source base;
    _Atomic(struct weir__receiver *) receiver; /* NULL while it is made: wakes may come already */
    void (*wake)(void *user, int over);
    void *user;
    struct weir__hub *hub; /* while the receiver has a use of it */
    uint32_t partition;
};

static struct weir__receiver *receiver_of(struct weir__source *s)
{
    return atomic_load(&((struct folder_source *)s)->receiver);
}

static int source_next(struct weir__source *s, struct weir__event *out, uint32_t max,
                       int64_t deadline_ns, uint32_t *out_count, uint64_t *out_missed,
                       struct weir_error *err)
{
    struct weir__receiver_take take = {.events_max = max, .events = out};
    int rc = weir__receiver_pull(receiver_of(s), &take, deadline_ns, err);

    if (rc == WEIR_ETIMEDOUT) weir__receiver_rest(receiver_of(s));
    *out_count = rc == 0 ? take.count : 0;
    *out_missed = take.missed;
    return rc;
}

static void source_measure(struct weir__source *b, const struct weir__event *e,
                           struct weir_receiver_metrics *out)
{
    struct folder_source *s = (struct folder_source *)b;
    struct weir__clock clock = weir__clock_system();
    struct weir__partition_properties p;

    (void)e; /* now, which is when it is given */
    if (weir__hub_partition_properties(s->hub, s->partition, &p, NULL) != 0) return;
    *out = (struct weir_receiver_metrics){
        .last_sequence = (uint64_t)p.last_sequence,
        .last_offset = (uint64_t)p.last_offset,
        .last_time_ms = p.last_time_ms,
        .retrieved_ms = clock.wall_ms(clock.self),
    };
}

static void source_skip(struct weir__source *s, uint64_t *out_first, uint64_t *out_last)
{
    weir__receiver_skip(receiver_of(s), out_first, out_last);
}

/* Nothing is ever under way. */
static bool source_ended(struct weir__source *s)
{
    (void)s;
    return true;
}

static void source_cancel(struct weir__source *s)
{
    weir__receiver_cancel(receiver_of(s));
}

static void source_close(struct weir__source *s)
{
    weir__receiver_close(receiver_of(s));
    free(s);
}

static const struct weir__source_ops source_ops = {
    .version = WEIR__BACKEND_VERSION,
    .next = source_next,
    .measure = source_measure,
    .skip = source_skip,
    .ended = source_ended,
    .cancel = source_cancel,
    .close = source_close,
};

static void source_wake(void *user)
{
    struct folder_source *s = user;
    struct weir__receiver *r = receiver_of(&s->base);

    s->wake(s->user, r ? weir__receiver_over(r, NULL) : 0);
}

static const enum weir__position_kind kinds[] = {
    [WEIR_FROM_EARLIEST] = WEIR__FROM_EARLIEST, [WEIR_FROM_LATEST] = WEIR__FROM_LATEST,
    [WEIR_FROM_OFFSET] = WEIR__FROM_OFFSET,     [WEIR_FROM_SEQUENCE] = WEIR__FROM_SEQUENCE,
    [WEIR_FROM_TIME] = WEIR__FROM_TIME,
};

static int attach(struct folder_source *s, struct weir__hub *hub, uint32_t partition,
                  const struct weir_receiver_options *o, struct weir_error *err)
{
    struct weir__receiver_options options = {
        .group = o->group,
        .partition = partition,
        .from = {.kind = kinds[o->position.from],
                 .inclusive = !o->position.after,
                 .value = o->position.value},
        .epoch = o->exclusive ? o->epoch : WEIR__EPOCH_NONE,
        .name = o->name,
        .credit = WEIR__CREDIT_UNLIMITED,
        .memory_bytes = o->bytes_max,
        .wake = o->wake ? source_wake : NULL,
        .user = s,
    };
    struct weir__receiver *receiver = NULL;
    int rc = weir__folder_check_partition(hub, partition, err);

    if (rc != 0) return rc;
    s->wake = o->wake;
    s->user = o->user;
    rc = weir__receiver_attach(&receiver, hub, &options, err);
    atomic_store(&s->receiver, receiver);
    return rc;
}

int weir__folder_open_source(struct weir__backend *b, const char *hub, uint32_t partition,
                             const struct weir_receiver_options *o, struct weir__source **out,
                             struct weir_error *err)
{
    struct folder_source *s = calloc(1, sizeof *s);
    struct weir__hub *used = NULL;
    int rc;

    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory");
    s->base.ops = &source_ops;
    rc = weir__namespace_use(((struct weir__folder *)b)->namespace, hub, &used, err);
    if (rc == 0) rc = attach(s, used, partition, o, err);
    s->hub = used;
    s->partition = partition;
    weir__hub_release(used); /* the receiver has a use of its own */
    if (rc != 0) {
        free(s);
        return rc;
    }
    *out = &s->base;
    return 0;
}
