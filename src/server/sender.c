/* sender.c - links that publish: to a hub, or to one of its partitions.
 *
 *   transfer > weir__batch_of_payload > weir__hub_publish > (on disk) > accepted
 *   transfer > weir__batch_of_payload > the run, with its neighbours > weir__hub_publish ...
 *
 * A batch is not copied on the way but by the log. Small events that come one to a transfer are
 * gathered, because the log's work is by the batch: those that were read from the socket at once,
 * for one partition, with one key, become one. Each was looked at alone before, and has an outcome
 * of its own. Where the hub chooses the partition, it does so for a few of them at a time.
 *
 * An outcome settles its delivery, also for a client that asked to settle second, which Python's does
 * and then waits for nothing else; the attach says so.
 *
 * What is wrong with a message is told as the outcome of its delivery, and the link stays: the
 * JavaScript client would otherwise wait for a minute. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "server/mark.h"
#include "server/state.h"

struct sender {
    struct weir__duty duty;
    struct weir__publish publish;
    struct weir__hub *hub;
    uint32_t partition; /* WEIR__PARTITION_ANY */
    bool marked;        /* an idempotent producer */
};

static void free_sender(struct sender *s)
{
    weir__publish_fini(&s->publish);
    weir__hub_release(s->hub);
    free(s->duty.path);
    free(s);
}

void weir__sender_reject(struct weir__amqp_link *link, uint32_t first, uint32_t last,
                         const struct weir__refusal *r)
{
    struct weir__amqp_error error = weir__errors_say(r);

    weir__amqp_settle(link, first, last, WEIR__AMQP_REJECTED, &error);
}

/* Deliveries that go to the log together. */
struct lot {
    uint32_t first, last;
    size_t bytes;
    bool settled;
};

/* Gives a batch to the log. WEIR_EBUSY: the log takes nothing in now. */
static int give(struct sender *s, const struct weir__batch *batch, uint32_t partition,
                const struct weir__log_producer *producer, const struct lot *lot,
                struct weir_error *err)
{
    int rc;

    if (!weir__publish_put(&s->publish, lot->first, lot->last, lot->bytes, lot->settled))
        return weir__fail(err, WEIR_EBUSY, "too many batches wait for the disk");
    rc = weir__server_publish(s->duty.connection->server, s->hub, batch, partition, producer,
                              weir__publish_done, &s->publish, err);
    if (rc != 0) weir__publish_take_back(&s->publish);
    return rc;
}

/* What came in one transfer goes to the log as it is. */
static int publish(struct sender *s, const struct weir__amqp_delivery *d, struct weir_error *err)
{
    struct weir__log_producer producer = {0};
    struct weir__batch batch;
    uint32_t partition;
    int rc = weir__batch_of_payload(&batch, d->format, d->payload,
                                    weir__hub_batch_bytes_max(s->hub), err);

    if (rc == 0) rc = weir__hub_route(s->hub, &batch, s->partition, &partition, err);
    if (rc == 0 && s->marked) rc = weir__mark_read(d->format, d->payload, &producer, err);
    if (rc != 0) return rc;
    return give(s, &batch, partition, producer.id ? &producer : NULL,
                &(struct lot){d->id, d->id, d->payload.len, d->settled}, err);
}

static int check_size(struct sender *s, const struct weir__amqp_delivery *d, struct weir_error *err)
{
    if (!d->too_large) return 0;
    if (d->size <= weir__amqp_link_max(s->duty.link))
        return weir__fail(err, WEIR_ENOMEM, "no memory for a message of %" PRIu64 " bytes",
                          d->size);
    return weir__fail(err, WEIR_ETOOBIG,
                      "The received message (delivery-id:%" PRIu32 ", size:%" PRIu64
                      " bytes) exceeds the limit (%" PRIu64
                      " bytes) currently allowed on the link.",
                      d->id, d->size, weir__amqp_link_max(s->duty.link));
}

/* Whether the log of this hub has taken nothing for too long, whoever on this connection met it
 * first: else the last of many senders would wait for all of them. */
static bool is_stuck(struct weir__connection *c, const struct weir__hub *hub)
{
    int64_t now_ms = weir__loop_now_ms(c->loop);

    if (c->stuck_hub != hub) {
        c->stuck_hub = hub;
        c->stuck_ms = now_ms;
    }
    return now_ms >= c->stuck_ms + WEIR__SERVER_BUSY_MS;
}

/* What became of deliveries first to last, as far as the client is to know now. false: nothing
 * yet, the log is busy. */
static bool tell(struct sender *s, uint32_t first, uint32_t last, bool settled, int rc,
                 const struct weir__refusal *r)
{
    struct weir__connection *c = s->duty.connection;

    if (rc == WEIR_EBUSY && !c->stopping && !is_stuck(c, s->hub)) return false;
    if (rc == 0 && c->stuck_hub == s->hub) c->stuck_hub = NULL;
    if (rc != 0 && !settled) weir__sender_reject(s->duty.link, first, last, r);
    return true;
}

/* ---- runs ---- */

void weir__run_drop(struct weir__run *run)
{
    weir__batch_writer_fini(&run->events);
    run->sender = NULL;
}

bool weir__run_end(struct weir__connection *c)
{
    struct weir__run *run = &c->run;
    struct sender *s = (struct sender *)run->sender;
    struct weir__refusal r;
    struct weir__batch batch;
    int rc = weir__batch_writer_batch(&run->events, &batch, &r.why);

    r.condition = NULL;
    assert(rc == 0); /* it began with an event */
    rc = give(s, &batch, run->partition, NULL,
              &(struct lot){run->first, run->last, run->events.body.len, run->settled}, &r.why);
    if (!tell(s, run->first, run->last, run->settled, rc, &r)) return false;
    weir__run_drop(run);
    return true;
}

/* Whether a message, of which nothing is known yet, may share a batch with others. */
static bool may_join(const struct sender *s, const struct weir__amqp_delivery *d)
{
    return d->format == 0 && !s->marked && !d->too_large && d->payload.len <= WEIR__RUN_EVENT_MAX;
}

static bool is_next(const struct sender *s, const struct weir__run *run,
                    const struct weir__amqp_delivery *d, const struct weir__batch *b)
{
    uint32_t most = s->partition == WEIR__PARTITION_ANY && !b->key.at ? WEIR__RUN_TURN_MAX
                                                                      : WEIR__RUN_EVENTS_MAX;

    return d->id == run->last + 1 && d->settled == run->settled && run->events.count < most &&
           weir__batch_writer_has_key(&run->events, b->key);
}

static int begin_run(struct sender *s, const struct weir__amqp_delivery *d,
                     const struct weir__batch *b, struct weir_error *err)
{
    struct weir__run *run = &s->duty.connection->run;
    int rc = weir__hub_route(s->hub, b, s->partition, &run->partition, err);

    if (rc != 0) return rc;
    weir__batch_writer_init(&run->events, WEIR__RUN_BYTES_MAX);
    if (!weir__buf_room(&run->events.body, WEIR__RUN_BYTES_MAX)) /* once, not bit by bit */
        rc = weir__fail(err, WEIR_ENOMEM, "out of memory for an event");
    if (rc == 0) rc = weir__batch_writer_start(&run->events, b->key, err);
    if (rc == 0) rc = weir__batch_writer_add_message(&run->events, d->payload, err);
    if (rc != 0) {
        weir__run_drop(run);
        return rc;
    }
    run->sender = &s->duty;
    run->first = run->last = d->id;
    run->settled = d->settled;
    return 0;
}

/* Puts a message into the run, or into the next one. WEIR_EBUSY: the last one cannot end yet. */
static int gather(struct sender *s, const struct weir__amqp_delivery *d, struct weir_error *err)
{
    struct weir__connection *c = s->duty.connection;
    struct weir__batch b;
    int rc =
        weir__batch_of_payload(&b, d->format, d->payload, weir__hub_batch_bytes_max(s->hub), err);

    if (rc != 0) return rc;
    if (c->run.sender && is_next(s, &c->run, d, &b) &&
        weir__batch_writer_add_message(&c->run.events, d->payload, NULL) == 0) {
        c->run.last = d->id;
        return 0;
    }
    if (c->run.sender && !weir__run_end(c)) return WEIR_EBUSY;
    return begin_run(s, d, &b, err);
}

static bool take_message(struct weir__duty *duty, const struct weir__amqp_delivery *d)
{
    struct sender *s = (struct sender *)duty;
    struct weir__connection *c = duty->connection;
    struct weir__refusal r; /* whose text is not cleared for every message */
    int rc;

    r.condition = NULL;
    if (may_join(s, d)) {
        rc = gather(s, d, &r.why);
        return rc == 0 || tell(s, d->id, d->id, d->settled, rc, &r);
    }
    if (c->run.sender && !weir__run_end(c)) return false;
    rc = check_size(s, d, &r.why);
    if (rc == 0) rc = publish(s, d, &r.why);
    return tell(s, d->id, d->id, d->settled, rc, &r);
}

void weir__sender_drained(struct weir__duty *duty)
{
    if (!duty->link) free_sender((struct sender *)duty);
}

static void gone(struct weir__duty *duty)
{
    struct sender *s = (struct sender *)duty;

    weir__duty_end(duty);
    if (s->publish.settled == s->publish.put) free_sender(s);
}

static const struct weir__duty_calls calls = {.transfer = take_message, .gone = gone};

/* The partition that the address names, when it names one. */
static int find_partition(struct sender *s, const struct weir__address *a, struct weir__refusal *r)
{
    s->partition = WEIR__PARTITION_ANY;
    if (!*a->partition) return 0;
    s->partition = weir__address_partition(a->partition);
    if (s->partition < weir__hub_partitions(s->hub)) return 0;
    r->condition = WEIR__COND_RANGE;
    return weir__fail(&r->why, WEIR_EINVAL,
                      "The specified partition is invalid for an EventHub partition sender or "
                      "receiver. It should be between 0 and %" PRIu32 ".",
                      weir__hub_partitions(s->hub) - 1);
}

static int accept_link(struct sender *s, const struct weir__amqp_event *ev, struct weir__refusal *r)
{
    const struct weir__amqp_value *theirs = &ev->fields->attach.max_message_size;
    struct weir__amqp_terms terms = {.max_message_size = weir__hub_batch_bytes_max(s->hub),
                                     .credit = WEIR__SERVER_CREDIT,
                                     .settled = true};
    uint8_t properties[WEIR__MARK_BYTES];
    struct weir__mark mark;
    int rc;

    s->marked =
        s->partition != WEIR__PARTITION_ANY && weir__duty_desires(ev, WEIR__MARK_CAPABILITY);
    if (s->marked) {
        rc = weir__mark_open(&mark, &ev->fields->attach.properties, s->hub, s->partition, r);
        if (rc != 0) return rc;
        terms.properties = weir__mark_properties(&mark, properties);
    }
    if (theirs->type == WEIR__AMQP_ULONG && theirs->u && theirs->u < terms.max_message_size)
        terms.max_message_size = theirs->u;
    return weir__amqp_accept(ev->link, &terms, &r->why);
}

int weir__serve_sender(struct weir__connection *c, const struct weir__amqp_event *ev,
                       const struct weir__address *a, struct weir__refusal *r)
{
    struct sender *s = calloc(1, sizeof *s);
    int rc;

    if (!s) return weir__fail(&r->why, WEIR_ENOMEM, "out of memory for a link");
    weir__publish_init(&s->publish, &s->duty);
    s->duty.connection = c;
    rc = weir__duty_allow(&s->duty, c, a, WEIR__RIGHT_SEND, "Send", r);
    if (rc == 0) rc = weir__connection_use(c, a->hub, &s->hub, &r->why);
    if (rc == 0) rc = find_partition(s, a, r);
    if (rc == 0) rc = accept_link(s, ev, r);
    if (rc == 0)
        weir__duty_start(&s->duty, c, ev->link, &calls);
    else
        free_sender(s);
    return rc;
}
