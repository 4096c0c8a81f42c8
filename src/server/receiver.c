/* receiver.c - links that receive: the events of one partition, from a position on.
 *
 *   news > weir__receiver_next > composed straight into the engine's output
 *
 * A client that desires stored batches gets them as they lie in the log, one to a transfer.
 *
 * Credit is the link's own. Events are taken from the hub some at a time; those that the output has
 * no room for wait where they lie. Outcomes mean nothing to a stream: events go out settled, whatever
 * the client asked for, and the attach says so. Azure does the same, and go-amqp renews credit for
 * settled deliveries only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "amqp/dialect.h"
#include "hub/receiver.h"
#include "hub/stored.h"
#include "server/selector.h"
#include "server/state.h"

#define TAKE_EVENTS 32u
#define TAKE_BYTES ((size_t)128 << 10)
#define TAKES_PER_PUMP 8              /* then others have their turn */
#define BATCHES_PER_PUMP 256          /* the same; mostly the output is full before */
#define KEEP_BYTES ((size_t)16 << 10) /* of memory, by a receiver that has sent all there is */
#define KEPT_BYTES                                                                                 \
    ((size_t)1 << 20) /* of short memory, by a connection's receivers for its output */
#define METRICS_BYTES 320
#define NO_ROOM 1   /* in the output: whatever is sent makes some */
#define NO_EVENTS 2 /* for now: the log tells of the next ones */
#define PROPERTIES_BYTES 64

struct receiver {
    struct weir__duty duty;
    struct weir__hub *hub;
    struct weir__receiver *in;
    uint32_t partition;
    bool metrics;
    bool over;                          /* detached by us */
    bool stored;                        /* batches are delivered, not events: */
    const struct weir__log_view *batch; /* the next one, or NULL: it is not known yet */
    struct weir__receiver_take take;
    uint32_t at;   /* the first of take that was not sent */
    size_t memory; /* of `in`, as the connection's account has it */
    size_t wanted; /* bytes of a message that found no room; 0: the last one did */
    struct weir__amqp_stamp stamp;
    struct weir__event events[TAKE_EVENTS];
};

/* ---- memory ---- */

/* Books what was read. It is booked at once: the same turn may pump a thousand links. */
static void note_memory(struct receiver *r)
{
    struct weir__connection *c = r->duty.connection;
    size_t now = r->in ? weir__receiver_memory(r->in) : 0;

    if (now == r->memory) return;
    weir__account_set(&c->account, atomic_load(&c->account.bytes) - r->memory + now);
    c->reader_bytes += now - r->memory;
    r->memory = now;
}

static void give_back(struct receiver *r)
{
    if (r->batch) weir__receiver_return_batch(r->in, r->batch);
    r->batch = NULL;
    weir__receiver_return(r->in, r->events + r->at, r->take.count - r->at);
    r->at = r->take.count = 0;
    weir__receiver_rest(r->in);
}

static bool has_unsent(const struct receiver *r)
{
    return r->batch || r->at < r->take.count;
}

/* Whether what was read goes out soon: with the next turn, or when the output has room, for which not all
 * receivers of a connection keep something. What waits for the peer does not. */
static bool is_due(const struct receiver *r, int rc)
{
    const struct weir__amqp_link *link = r->duty.link;

    if (!has_unsent(r) || weir__amqp_waits_for_peer(link)) return false;
    return (rc == 0 && weir__amqp_sendable(link) > 0) ||
           r->duty.connection->reader_bytes - r->memory < KEPT_BYTES;
}

/* What was read stays where it is as long as there is plenty of memory. Else what is not due is read again
 * when it can be sent. */
static void keep_or_rest(struct receiver *r, int rc)
{
    note_memory(r);
    if (r->memory == 0 || !weir__budget_is_tight(&r->duty.connection->server->budget) ||
        is_due(r, rc))
        return;
    give_back(r);
    note_memory(r);
}

/* Whether a message that was given back would find no room again. If so, it need not be read. */
static bool still_finds_no_room(struct receiver *r)
{
    struct weir__account *account = &r->duty.connection->account;
    size_t before = atomic_load(&account->bytes);
    bool room;

    if (!r->wanted || has_unsent(r) || weir__amqp_sendable(r->duty.link) == 0) return false;
    room = weir__amqp_deliver(r->duty.link, r->wanted) != NULL;
    weir__account_set(account, before); /* it is booked again when it is sent */
    return !room;
}

/* At the end of what there is: what was sent needs no memory, but for a little that is used again soon. */
static void rest_at_end(struct receiver *r)
{
    if (weir__receiver_memory(r->in) > KEEP_BYTES) weir__receiver_rest(r->in);
}

/* ---- sending ---- */

static void put_pair(struct weir__amqp_writer *w, const char *name, struct weir__amqp_value v)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, name, strlen(name)));
    weir__amqp_put(w, v);
}

/* What is newest in the partition, as delivery annotations. */
static struct weir__bytes write_metrics(struct receiver *r, uint8_t to[METRICS_BYTES])
{
    struct weir__clock clock = r->duty.connection->server->clock;
    struct weir__partition_properties p;
    struct weir__bytes out = {0};
    struct weir__amqp_writer w;
    char offset[24];
    size_t mark;
    int len;

    if (weir__hub_partition_properties(r->hub, r->partition, &p, NULL) != 0) return out;
    len = snprintf(offset, sizeof offset, "%" PRId64, p.last_offset);
    weir__amqp_writer_init(&w, to, METRICS_BYTES);
    weir__amqp_put_descriptor(&w, 0x71);
    mark = weir__amqp_put_open(&w);
    put_pair(&w, WEIR__EH_LAST_SEQUENCE_EPOCH,
             weir__amqp_signed(WEIR__AMQP_INT, WEIR__EH_NO_EPOCH));
    put_pair(&w, WEIR__EH_LAST_SEQUENCE, weir__amqp_signed(WEIR__AMQP_LONG, p.last_sequence));
    put_pair(&w, WEIR__EH_LAST_OFFSET, weir__amqp_bytes(WEIR__AMQP_STRING, offset, (size_t)len));
    put_pair(&w, WEIR__EH_LAST_TIME, weir__amqp_signed(WEIR__AMQP_TIMESTAMP, p.last_time_ms));
    put_pair(&w, WEIR__EH_RETRIEVED,
             weir__amqp_signed(WEIR__AMQP_TIMESTAMP, clock.wall_ms(clock.self)));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 10);
    if (weir__amqp_writer_finish(&w, &out, NULL) != 0) out = (struct weir__bytes){0};
    return out;
}

/* The link waits for the peer's answer; the place and the memory do not. */
static void leave(struct weir__duty *duty)
{
    struct receiver *r = (struct receiver *)duty;

    r->over = true;
    r->at = r->take.count = 0;
    r->batch = NULL;
    weir__receiver_close(r->in);
    r->in = NULL;
    note_memory(r);
}

static void detach(struct receiver *r, const struct weir__refusal *why)
{
    struct weir__amqp_error error = weir__errors_say(why);

    leave(&r->duty);
    weir__amqp_detach(r->duty.link, &error);
}

/* One event into the output, or NO_ROOM. */
static int send_event(struct receiver *r, const struct weir__event *e, struct weir__bytes metrics,
                      struct weir_error *err)
{
    struct weir__amqp_stamp *stamp = &r->stamp;
    size_t bound, bytes;
    uint8_t *to;
    int rc;

    stamp->sequence = (int64_t)e->sequence;
    stamp->enqueued_ms = e->time_ms;
    stamp->offset = e->offset;
    stamp->partition_key = e->key;
    stamp->delivery_annotations = metrics;
    bound = weir__amqp_compose_bound(e->message.len, stamp);
    to = weir__amqp_deliver(r->duty.link, bound);
    r->wanted = to ? 0 : bound;
    if (!to) return NO_ROOM;
    rc = weir__amqp_compose(e->message, stamp, to, bound, &bytes, err);
    if (rc == 0) weir__amqp_delivered(r->duty.link, bytes, 0, true);
    return rc;
}

/* An event that cannot be put on the wire is passed over, like a damaged one: a reader that is sent
 * away would come back to it for ever. */
static void pass_event(struct receiver *r, const struct weir_error *err)
{
    struct weir__connection *c = r->duty.connection;

    weir__log_line(&c->server->logger, WEIR__ERROR, "server",
                   "hub '%s', partition %" PRIu32 ": event %" PRIu64 " is passed over: %s",
                   weir__hub_name(r->hub), r->partition, r->events[r->at].sequence, err->text);
}

/* What is left of the take. */
static int send_taken(struct receiver *r, struct weir_error *err)
{
    uint8_t space[METRICS_BYTES];
    struct weir__bytes metrics = {0};
    int rc = 0;

    if (r->metrics && r->at < r->take.count) metrics = write_metrics(r, space);
    while (rc == 0 && r->at < r->take.count) {
        rc = send_event(r, &r->events[r->at], metrics, err);
        if (rc == WEIR_EINVAL) {
            pass_event(r, err);
            rc = 0;
        }
        if (rc == 0) r->at++;
    }
    return rc;
}

/* The next events, at most as many as there is credit for, or NO_EVENTS. */
static int take_events(struct receiver *r, uint32_t credit, struct weir_error *err)
{
    int rc;

    r->at = 0;
    r->take =
        (struct weir__receiver_take){.events_max = credit < TAKE_EVENTS ? credit : TAKE_EVENTS,
                                     .bytes_max = TAKE_BYTES,
                                     .events = r->events};
    rc = weir__receiver_next(r->in, &r->take, err);
    if (rc != 0) r->take.count = 0;
    return rc == 0 && r->take.count == 0 ? NO_EVENTS : rc;
}

/* Damaged events cannot be served: the reader is told by the gap, the operator by the log. */
static int pass_damage(struct receiver *r, const struct weir_error *err)
{
    struct weir__connection *c = r->duty.connection;
    uint64_t first, last;

    weir__receiver_skip(r->in, &first, &last);
    weir__log_line(&c->server->logger, WEIR__ERROR, "server",
                   "hub '%s', partition %" PRIu32 ": events %" PRIu64 " to %" PRIu64
                   " are passed over: %s",
                   weir__hub_name(r->hub), r->partition, first, last, err->text);
    return 0;
}

/* What is newest in the partition, for the head of a batch. */
static bool read_facts(struct receiver *r, struct weir__stored_facts *out)
{
    struct weir__clock clock = r->duty.connection->server->clock;
    struct weir__partition_properties p;

    if (!r->metrics || weir__hub_partition_properties(r->hub, r->partition, &p, NULL) != 0)
        return false;
    *out = (struct weir__stored_facts){.last_sequence = p.last_sequence,
                                       .last_offset = p.last_offset,
                                       .last_time_ms = p.last_time_ms,
                                       .known_ms = clock.wall_ms(clock.self)};
    return true;
}

/* The batch that is next, head and body, or NO_ROOM. */
static int send_batch(struct receiver *r)
{
    struct weir__bytes body = r->batch->body;
    struct weir__stored_facts facts;
    bool told = read_facts(r, &facts);
    size_t bytes = WEIR__STORED_HEAD_BYTES + (told ? WEIR__STORED_FACTS_BYTES : 0) + body.len;
    uint8_t *to = weir__amqp_deliver(r->duty.link, bytes);

    r->wanted = to ? 0 : bytes;
    if (!to) return NO_ROOM;
    to += weir__stored_head(to, r->batch, told ? &facts : NULL);
    memcpy(to, body.at, body.len);
    weir__amqp_delivered(r->duty.link, bytes, WEIR__STORED_FORMAT, true);
    r->batch = NULL;
    return 0;
}

/* One that the format has no word for is passed over, as events are that cannot be sent. */
static void pass_batch(struct receiver *r)
{
    struct weir__connection *c = r->duty.connection;

    weir__log_line(&c->server->logger, WEIR__ERROR, "server",
                   "hub '%s', partition %" PRIu32 ": the batch at %" PRIu64
                   " is passed over: attributes 0x%x",
                   weir__hub_name(r->hub), r->partition, r->batch->sequence, r->batch->attrs);
    r->batch = NULL;
}

/* Finds the next batch, or NO_EVENTS. */
static int take_batch(struct receiver *r, struct weir_error *err)
{
    int rc = weir__receiver_next_batch(r->in, &r->batch, err);

    if (rc == WEIR_ECORRUPT) return pass_damage(r, err);
    if (rc == 0 && !r->batch) return NO_EVENTS;
    if (rc == 0 && !weir__stored_can(r->batch)) pass_batch(r);
    return rc;
}

/* As send_some, which it takes the place of. */
static int send_batches(struct receiver *r, struct weir_error *err)
{
    struct weir__amqp_link *link = r->duty.link;
    int rc = 0;

    for (int i = 0; rc == 0 && i < BATCHES_PER_PUMP; i++) {
        if (weir__amqp_sendable(link) == 0) {
            if (weir__amqp_link_drain(link) && weir__amqp_link_credit(link) == 0)
                weir__amqp_drained(link);
            return 0;
        }
        if (!r->batch) rc = take_batch(r, err);
        if (rc == NO_EVENTS) {
            rest_at_end(r);
            weir__amqp_drained(link);
            return 0;
        }
        if (rc == 0 && r->batch) rc = send_batch(r);
    }
    if (rc == 0) weir__duty_wake(&r->duty);
    return rc;
}

/* 0: all that was there is sent, or all that there was credit for. Or NO_ROOM. WEIR_EBUSY and others:
 * what is there cannot be read now, and nobody would tell when it can. */
static int send_some(struct receiver *r, struct weir_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < TAKES_PER_PUMP; i++) {
        uint32_t credit;
        rc = send_taken(r, err);
        credit = weir__amqp_sendable(r->duty.link);
        if (rc == 0 && credit == 0 && weir__amqp_link_drain(r->duty.link) &&
            weir__amqp_link_credit(r->duty.link) == 0)
            weir__amqp_drained(r->duty.link);
        if (rc != 0 || credit == 0) return rc;
        rc = take_events(r, credit, err);
        if (rc == NO_EVENTS) {
            rest_at_end(r);
            if (weir__amqp_link_drain(r->duty.link)) weir__amqp_drained(r->duty.link);
            return 0;
        }
        if (rc == WEIR_ECORRUPT) rc = pass_damage(r, err);
    }
    if (rc == 0) weir__duty_wake(&r->duty);
    return rc;
}

static void pump(struct weir__duty *duty)
{
    struct receiver *r = (struct receiver *)duty;
    struct weir__refusal why = {{0}, NULL};
    int rc;

    if (r->over) return;
    rc = weir__receiver_over(r->in, &why.why); /* is told whether or not there is credit */
    if (rc == 0 && still_finds_no_room(r))
        rc = NO_ROOM;
    else if (rc == 0)
        rc = r->stored ? send_batches(r, &why.why) : send_some(r, &why.why);
    if (rc < 0) {
        detach(r, &why);
        return;
    }
    keep_or_rest(r, rc);
    if (rc == NO_ROOM ||
        (weir__amqp_link_credit(duty->link) > 0 && weir__amqp_sendable(duty->link) == 0))
        weir__duty_await_room(duty);
}

/* ---- attaching ---- */

static void wake(void *user)
{
    weir__duty_wake(user);
}

static void free_receiver(struct receiver *r)
{
    weir__receiver_close(r->in); /* from here on nobody wakes us */
    weir__duty_unready(&r->duty);
    weir__hub_release(r->hub);
    free(r->duty.path);
    free(r);
}

static void gone(struct weir__duty *duty)
{
    struct receiver *r = (struct receiver *)duty;

    leave(duty);
    weir__duty_end(duty);
    free_receiver(r);
}

static const struct weir__duty_calls calls = {.pump = pump, .leave = leave, .gone = gone};

/* The selector may be described or not; nothing else is understood. */
static int read_filter(const struct weir__amqp_value *filters, struct weir__position *out,
                       struct weir__refusal *r)
{
    struct weir__amqp_value v, descriptor;

    *out = (struct weir__position){.kind = WEIR__FROM_EARLIEST};
    if (!weir__amqp_map_find(filters, WEIR__EH_SELECTOR, &v)) return 0;
    if (v.type == WEIR__AMQP_DESCRIBED) weir__amqp_described(&v, &descriptor, &v);
    if (v.type == WEIR__AMQP_STRING || v.type == WEIR__AMQP_SYMBOL)
        return weir__selector_parse(v.bytes, out, &r->why);
    r->condition = WEIR__AMQP_COND_NOT_ALLOWED;
    return weir__fail(&r->why, WEIR_EINVAL,
                      "The link contains an invalid filter type. Only a selector filter is "
                      "supported, and it is a string, not a %s.",
                      weir__amqp_type_name(v.type));
}

/* In a partition that never had an event the service refuses the number of the first, too; elsewhere
 * the next event to come may be named. */
static void fit_position(const struct receiver *r, struct weir__position *from)
{
    struct weir__partition_properties p;

    if (from->kind == WEIR__FROM_SEQUENCE && from->inclusive &&
        weir__hub_partition_properties(r->hub, r->partition, &p, NULL) == 0 && p.last_sequence < 0)
        from->inclusive = false;
}

static int64_t read_epoch(const struct weir__amqp_value *properties)
{
    struct weir__amqp_value v;

    if (!weir__amqp_map_find(properties, WEIR__EH_EPOCH, &v)) return WEIR__EPOCH_NONE;
    if (v.type >= WEIR__AMQP_BYTE && v.type <= WEIR__AMQP_LONG) return v.i;
    if (v.type >= WEIR__AMQP_UBYTE && v.type <= WEIR__AMQP_ULONG && v.u <= INT64_MAX)
        return (int64_t)v.u;
    return WEIR__EPOCH_NONE;
}

/* For texts only, so a long one is cut. */
static void read_name(const struct weir__amqp_value *properties,
                      char out[WEIR__RECEIVER_NAME_MAX + 1])
{
    struct weir__amqp_value v;
    size_t len = 0;

    if (weir__amqp_map_find(properties, WEIR__EH_RECEIVER_NAME, &v) && v.type == WEIR__AMQP_STRING)
        len = v.bytes.len < WEIR__RECEIVER_NAME_MAX ? v.bytes.len : WEIR__RECEIVER_NAME_MAX;
    if (len) memcpy(out, v.bytes.at, len);
    out[len] = '\0';
}

static int find_partition(struct receiver *r, const struct weir__address *a,
                          struct weir__refusal *refusal)
{
    r->partition = weir__address_partition(a->partition);
    if (r->partition < weir__hub_partitions(r->hub)) return 0;
    refusal->condition = WEIR__COND_RANGE;
    return weir__fail(&refusal->why, WEIR_EINVAL,
                      "The specified partition is invalid for an EventHub partition sender or "
                      "receiver. It should be between 0 and %" PRIu32 ".",
                      weir__hub_partitions(r->hub) - 1);
}

static int attach(struct receiver *r, const struct weir__amqp_event *ev,
                  const struct weir__address *a, struct weir__refusal *refusal)
{
    const struct weir__amqp_value *properties = &ev->fields->attach.properties;
    struct weir__amqp_composite source;
    struct weir__position from;
    char name[WEIR__RECEIVER_NAME_MAX + 1];
    int rc =
        weir__amqp_composite_of(&ev->fields->attach.source, WEIR__AMQP_KIND_SET(WEIR__AMQP_SOURCE),
                                &source, &refusal->why);

    if (rc == 0) rc = read_filter(&source.source.filter, &from, refusal);
    if (rc != 0) return rc;
    fit_position(r, &from);
    read_name(properties, name);
    r->metrics = weir__duty_desires(ev, WEIR__EH_METRICS);
    r->stored =
        !r->duty.connection->server->events_only && weir__duty_desires(ev, WEIR__STORED_CAPABILITY);
    rc = weir__receiver_attach(&r->in, r->hub,
                               &(struct weir__receiver_options){.group = a->group,
                                                                .partition = r->partition,
                                                                .from = from,
                                                                .epoch = read_epoch(properties),
                                                                .name = name,
                                                                .credit = WEIR__CREDIT_UNLIMITED,
                                                                .batches = r->stored,
                                                                .wake = wake,
                                                                .user = &r->duty},
                               &refusal->why);
    if (rc != WEIR_ENOTFOUND) return rc;
    return weir__fail(&refusal->why, rc,
                      "The messaging entity '%s:eventhub:%.128s|%s' could not be found.",
                      r->duty.connection->host, weir__hub_name(r->hub), a->group);
}

/* The epoch that was asked for is given back, as the service does. */
static struct weir__amqp_value write_properties(int64_t epoch, uint8_t to[PROPERTIES_BYTES])
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    size_t mark;

    if (epoch == WEIR__EPOCH_NONE) return out;
    weir__amqp_writer_init(&w, to, PROPERTIES_BYTES);
    mark = weir__amqp_put_open(&w);
    put_pair(&w, WEIR__EH_EPOCH, weir__amqp_signed(WEIR__AMQP_LONG, epoch));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2);
    if (weir__amqp_writer_finish(&w, &bytes, NULL) != 0) return out;
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

int weir__serve_receiver(struct weir__connection *c, const struct weir__amqp_event *ev,
                         const struct weir__address *a, struct weir__refusal *refusal)
{
    struct weir__amqp_terms terms = {.no_outcomes = true, .settled = true};
    struct receiver *r = calloc(1, sizeof *r);
    uint8_t properties[PROPERTIES_BYTES];
    int rc;

    if (!r) return weir__fail(&refusal->why, WEIR_ENOMEM, "out of memory for a link");
    terms.properties = write_properties(read_epoch(&ev->fields->attach.properties), properties);
    r->duty.connection = c; /* news may come before the link is ours */
    rc = weir__duty_allow(&r->duty, c, a, WEIR__RIGHT_LISTEN, "Listen", refusal);
    if (rc == 0) rc = weir__connection_use(c, a->hub, &r->hub, &refusal->why);
    if (rc == 0) rc = find_partition(r, a, refusal);
    if (rc == 0) rc = attach(r, ev, a, refusal);
    if (r->stored)
        terms.offered_capabilities = weir__amqp_bytes(WEIR__AMQP_SYMBOL, WEIR__STORED_CAPABILITY,
                                                      strlen(WEIR__STORED_CAPABILITY));
    if (rc == 0) rc = weir__amqp_accept(ev->link, &terms, &refusal->why);
    if (rc != 0) {
        free_receiver(r);
        return rc;
    }
    if (r->stored) weir__amqp_large_frames(ev->link);
    weir__duty_start(&r->duty, c, ev->link, &calls);
    return 0;
}
