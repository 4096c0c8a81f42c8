#include "hub/hub.h"

#include "hub/state.h"

const char *weir__hub_name(const struct weir__hub *hub)
{
    return hub->name;
}

uint32_t weir__hub_partitions(const struct weir__hub *hub)
{
    return atomic_load_explicit(&hub->partitions, memory_order_acquire);
}

int64_t weir__hub_created_ms(const struct weir__hub *hub)
{
    return hub->created_ms;
}

size_t weir__hub_batch_bytes_max(const struct weir__hub *hub)
{
    return hub->ns->options.batch_bytes_max;
}

/* Whether the hub is there and has this partition, in Azure's words. */
static int check_partition(const struct weir__hub *hub, uint32_t partition, struct weir_error *err)
{
    uint32_t partitions = weir__hub_partitions(hub);

    if (atomic_load_explicit(&hub->gone, memory_order_acquire))
        return weir__hub_not_found(hub->name, err);
    if (partition >= partitions)
        return weir__fail(err, WEIR_EINVAL,
                          "The specified partition is invalid for an EventHub partition sender or "
                          "receiver. It should be between 0 and %u.",
                          partitions - 1);
    return 0;
}

int weir__hub_route(struct weir__hub *hub, const struct weir__batch *batch, uint32_t wanted,
                    uint32_t *out_partition, struct weir_error *err)
{
    uint32_t partitions = weir__hub_partitions(hub);

    if (wanted != WEIR__PARTITION_ANY)
        *out_partition = wanted;
    else if (batch->key.at)
        *out_partition = weir__route_key(batch->key, partitions);
    else
        *out_partition = weir__route_next(&hub->turn, partitions);
    return check_partition(hub, *out_partition, err);
}

/* The batch as the log takes it. */
static int prepare(const struct weir__hub *hub, const struct weir__batch *batch, uint32_t partition,
                   const struct weir__log_producer *producer, struct weir__log_batch *out,
                   struct weir_error *err)
{
    *out = (struct weir__log_batch){.partition = partition,
                                    .count = batch->count,
                                    .attrs = batch->attrs};
    if (producer) out->producer = *producer;
    for (uint32_t i = 0; i < batch->parts; i++) out->body[i] = batch->body[i];
    return check_partition(hub, partition, err);
}

static int count_refused(struct weir__hub *hub, int rc)
{
    if (rc != 0) atomic_fetch_add_explicit(&hub->refused, 1, memory_order_relaxed);
    return rc;
}

int weir__hub_publish(struct weir__hub *hub, const struct weir__batch *batch, uint32_t partition,
                      const struct weir__log_producer *producer, int64_t deadline_ns,
                      weir__log_done_fn done, void *user, struct weir_error *err)
{
    struct weir__log_batch prepared;
    int rc = prepare(hub, batch, partition, producer, &prepared, err);

    if (rc == 0) rc = weir__log_append(hub->log, &prepared, deadline_ns, done, user, err);
    return count_refused(hub, rc);
}

int weir__hub_publish_wait(struct weir__hub *hub, const struct weir__batch *batch,
                           uint32_t partition, const struct weir__log_producer *producer,
                           int64_t deadline_ns, struct weir__log_receipt *out,
                           struct weir_error *err)
{
    struct weir__log_batch prepared;
    int rc = prepare(hub, batch, partition, producer, &prepared, err);

    if (rc == 0) rc = weir__log_append_wait(hub->log, &prepared, deadline_ns, out, err);
    return count_refused(hub, rc);
}

int weir__hub_flush(struct weir__hub *hub, int64_t deadline_ns, struct weir_error *err)
{
    return weir__log_flush(hub->log, deadline_ns, err);
}

int weir__hub_producer_begin(struct weir__hub *hub, uint32_t partition, uint64_t id, uint16_t epoch,
                             struct weir__log_producer *out_next, struct weir_error *err)
{
    int rc = check_partition(hub, partition, err);

    return rc == 0 ? weir__log_producer_begin(hub->log, partition, id, epoch, out_next, err) : rc;
}

int weir__hub_producer_state(struct weir__hub *hub, uint32_t partition, uint64_t id,
                             struct weir__log_producer *out_next, struct weir_error *err)
{
    int rc = check_partition(hub, partition, err);

    if (rc != 0) return rc;
    rc = weir__log_producer_state(hub->log, partition, id, out_next, err);
    if (rc != WEIR_ENOTFOUND) return rc;
    *out_next = (struct weir__log_producer){.id = id};
    return 0;
}

int weir__hub_partition_properties(struct weir__hub *hub, uint32_t partition,
                                   struct weir__partition_properties *out, struct weir_error *err)
{
    struct weir__log_partition_info info;
    int rc = check_partition(hub, partition, err);

    if (rc == 0) rc = weir__log_partition_info(hub->log, partition, &info, err);
    if (rc != 0) return rc;
    *out = (struct weir__partition_properties){
        .begin_sequence = (int64_t)info.begin_sequence,
        .last_sequence = (int64_t)info.next_sequence - 1,
        .last_offset = info.next_sequence ? (int64_t)info.last_offset : -1,
        .last_time_ms = info.last_time_ms,
        .empty = info.begin_sequence == info.next_sequence,
    };
    return 0;
}

void weir__hub_stats(struct weir__hub *hub, struct weir__hub_stats *out)
{
    weir__log_stats(hub->log, &out->log);
    out->refused = atomic_load_explicit(&hub->refused, memory_order_relaxed);
    out->delivered_events = atomic_load_explicit(&hub->delivered_events, memory_order_relaxed);
    out->delivered_bytes = atomic_load_explicit(&hub->delivered_bytes, memory_order_relaxed);
    weir__mutex_lock(&hub->lock);
    out->receivers = hub->receivers;
    out->receivers_attached = hub->receivers_attached;
    out->receivers_refused = hub->receivers_refused;
    out->receivers_displaced = hub->receivers_displaced;
    weir__mutex_unlock(&hub->lock);
}

int weir__hub_state(struct weir__hub *hub, struct weir_error *err)
{
    return weir__log_state(hub->log, err);
}

int weir__hub_ready(struct weir__hub *hub, struct weir_error *err)
{
    return weir__log_ready(hub->log, err);
}

int weir__hub_step(struct weir__hub *hub, struct weir_error *err)
{
    return weir__log_step(hub->log, err);
}
