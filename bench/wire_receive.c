/* wire_receive.c - receiving a hub's events from its beginning, each a transfer of its own. What
 * came is settled in ranges, and credit is topped up when half of it is used. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/wire_bench.h"
#include "bench/wire_client.h"
#include "bench/wire_link.h"

#define CREDIT_DEFAULT 8192u
#define SETTLE_EVERY 512u

struct receiver {
    const struct weir__bench_wire_target *target;
    struct weir__bench_wire_client *client;
    struct weir__amqp_link **links;
    uint32_t partitions, attached, credit, size;
    uint64_t wanted, got;
    struct weir__amqp_link *link; /* of what is not settled yet: first to last, count of them */
    uint32_t first, last, count;
};

static int attach(void *mode, struct weir__amqp_session *session, struct weir_error *err)
{
    struct receiver *r = mode;
    int rc = 0;

    for (uint32_t i = 0; i < r->partitions && rc == 0; i++)
        rc = weir__bench_wire_attach_receiver(session, r->target, i, WEIR__BENCH_WIRE_FROM_EARLIEST,
                                              0, &r->links[i], err);
    return rc;
}

/* Nothing may come before go: there is no credit until then. */
static void begin(void *mode)
{
    struct receiver *r = mode;

    for (uint32_t i = 0; i < r->partitions; i++) weir__amqp_flow(r->links[i], r->credit, false);
}

static void settle(struct receiver *r)
{
    if (r->count) weir__amqp_settle(r->link, r->first, r->last, WEIR__AMQP_ACCEPTED, NULL);
    r->count = 0;
}

static void note(struct receiver *r, struct weir__amqp_link *link, uint32_t id)
{
    if (r->count && (r->link != link || id != r->last + 1 || r->count == SETTLE_EVERY)) settle(r);
    if (!r->count) r->first = id;
    r->link = link;
    r->last = id;
    r->count++;
}

static void on_transfer(struct receiver *r, const struct weir__amqp_event *ev)
{
    if (ev->delivery.payload.len < r->size) {
        weir__bench_wire_client_fail(r->client, WEIR_EIO,
                                     "an event of %zu bytes came, none has less than %" PRIu32,
                                     ev->delivery.payload.len, r->size);
        return;
    }
    if (!ev->delivery.settled) note(r, ev->link, ev->delivery.id);
    if (weir__amqp_link_credit(ev->link) <= r->credit / 2)
        weir__amqp_flow(ev->link, r->credit, false);
    if (++r->got == r->wanted) weir__bench_wire_client_done(r->client);
}

static void on_event(void *mode, const struct weir__amqp_event *ev)
{
    struct receiver *r = mode;

    if (ev->type == WEIR__AMQP_EVENT_TRANSFER) on_transfer(r, ev);
    if (ev->type == WEIR__AMQP_EVENT_ATTACH && ++r->attached == r->partitions)
        weir__bench_wire_client_ready(r->client);
}

static const struct weir__bench_wire_calls calls = {.attach = attach,
                                                    .event = on_event,
                                                    .begin = begin};

static int run(struct receiver *r, const struct weir__bench_wire_options *o,
               struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct weir__loops *loops = NULL;
    struct weir__bench_wire_meter meter;
    int rc = weir__loops_start(&loops, &(struct weir__loops_options){.count = 1}, err);

    if (rc != 0) return rc;
    rc = weir__bench_wire_client_open(&r->client, weir__loops_at(loops, 0), r->target, &calls, r,
                                      err);
    if (rc == 0) {
        weir__bench_wire_meter_begin(&meter, o->server_pid);
        weir__bench_wire_client_go(r->client);
        rc = weir__bench_wire_client_wait(r->client, err);
        weir__bench_wire_meter_end(&meter, row);
    }
    weir__bench_wire_client_close(r->client);
    weir__loops_free(loops);
    return rc;
}

int weir__bench_wire_receive(const struct weir__bench_wire_options *o,
                             const struct weir__bench_wire_target *target,
                             struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct receiver r = {.target = target,
                         .partitions = o->partitions,
                         .credit = o->in_flight ? o->in_flight : CREDIT_DEFAULT,
                         .size = o->size,
                         .wanted = o->events};
    int rc;

    r.links = calloc(r.partitions, sizeof(struct weir__amqp_link *));
    if (!r.links) return weir__fail(err, WEIR_ENOMEM, "%" PRIu32 " links", r.partitions);
    rc = run(&r, o, row, err);
    free(r.links);
    row->run.events = row->run.batches = o->events;
    row->run.bytes = o->events * o->size;
    snprintf(row->mode, sizeof row->mode, "consume");
    return rc;
}
