/* wire_publish.c - publishing: transfers under way up to a number, prepared once, sent to the
 * partitions in turn; and the same with one at a time, where each is timed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/load.h"
#include "bench/wire_bench.h"
#include "bench/wire_client.h"
#include "bench/wire_link.h"

#define IN_FLIGHT_BYTES ((size_t)4 << 20) /* by default; a server reads on to about there */
#define IN_FLIGHT_DEFAULT_MAX 2000u

struct publisher {
    const struct weir__bench_wire_target *target;
    struct weir__bench_wire_client *client;
    struct weir__load *load; /* the transfers */
    struct weir__amqp_link **links;
    uint32_t partitions, attached;
    uint32_t in_flight;
    uint64_t transfers, sent, accepted;
    double *us; /* of each transfer, where they are timed */
    int64_t sent_ns;
};

static int attach(void *mode, struct weir__amqp_session *session, struct weir_error *err)
{
    struct publisher *p = mode;
    int rc = 0;

    for (uint32_t i = 0; i < p->partitions && rc == 0; i++)
        rc = weir__bench_wire_attach_sender(session, p->target, i, &p->links[i], err);
    return rc;
}

static void on_settle(struct publisher *p, const struct weir__amqp_settlement *s)
{
    uint32_t count = s->last - s->first + 1;

    if (s->outcome != WEIR__AMQP_ACCEPTED) {
        weir__bench_wire_client_fail(p->client, WEIR_EIO, "a transfer was not accepted: %.*s",
                                     (int)s->error.description.len,
                                     s->error.description.at ? (const char *)s->error.description.at
                                                             : "");
        return;
    }
    if (p->us && p->accepted < p->transfers)
        p->us[p->accepted] = (double)(weir__mono_ns() - p->sent_ns) / 1e3;
    p->accepted += count;
    if (p->accepted == p->transfers) weir__bench_wire_client_done(p->client);
}

static void on_event(void *mode, const struct weir__amqp_event *ev)
{
    struct publisher *p = mode;

    if (ev->type == WEIR__AMQP_EVENT_ATTACH && ++p->attached == p->partitions)
        weir__bench_wire_client_ready(p->client);
    if (ev->type == WEIR__AMQP_EVENT_SETTLE) on_settle(p, &ev->settle);
}

static void pump(void *mode)
{
    struct publisher *p = mode;

    while (p->sent < p->transfers && p->sent - p->accepted < p->in_flight) {
        const struct weir__parcel *parcel = weir__load_parcel(p->load, p->sent);

        if (p->us) p->sent_ns = weir__mono_ns();
        if (weir__amqp_send(p->links[p->sent % p->partitions], parcel->payload, parcel->format,
                            false, NULL) != 0)
            return;
        p->sent++;
    }
}

static const struct weir__bench_wire_calls calls = {.attach = attach,
                                                    .event = on_event,
                                                    .pump = pump};

static int prepare(struct publisher *p, const struct weir__bench_wire_options *o,
                   struct weir_error *err)
{
    struct weir__load_options load = {.event_bytes = o->size,
                                      .batch_events = o->batch,
                                      .in_flight = 1};
    size_t payload;
    int rc = weir__load_new(&p->load, &load, err);

    if (rc != 0) return rc;
    payload = weir__load_parcel(p->load, 0)->payload.len;
    p->partitions = o->partitions;
    p->transfers = (o->events + o->batch - 1) / o->batch;
    p->in_flight = o->in_flight ? o->in_flight : (uint32_t)(IN_FLIGHT_BYTES / payload) + 1;
    if (!o->in_flight && p->in_flight > IN_FLIGHT_DEFAULT_MAX) p->in_flight = IN_FLIGHT_DEFAULT_MAX;
    p->links = calloc(p->partitions, sizeof(struct weir__amqp_link *));
    return p->links ? 0 : weir__fail(err, WEIR_ENOMEM, "%" PRIu32 " links", p->partitions);
}

static int run(struct publisher *p, const struct weir__bench_wire_options *o,
               struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct weir__loops *loops = NULL;
    struct weir__bench_wire_meter meter;
    int rc = weir__loops_start(&loops, &(struct weir__loops_options){.count = 1}, err);

    if (rc != 0) return rc;
    rc = weir__bench_wire_client_open(&p->client, weir__loops_at(loops, 0), p->target, &calls, p,
                                      err);
    if (rc == 0) {
        weir__bench_wire_meter_begin(&meter, o->server_pid);
        weir__bench_wire_client_go(p->client);
        rc = weir__bench_wire_client_wait(p->client, err);
        weir__bench_wire_meter_end(&meter, row);
    }
    weir__bench_wire_client_close(p->client);
    weir__loops_free(loops);
    row->run.batches = p->transfers;
    row->run.events = p->transfers * o->batch;
    row->run.bytes = row->run.events * o->size;
    return rc;
}

static void free_publisher(struct publisher *p)
{
    weir__load_free(p->load);
    free(p->links);
}

int weir__bench_wire_publish(const struct weir__bench_wire_options *o,
                             const struct weir__bench_wire_target *target,
                             struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct publisher p = {.target = target};
    int rc = prepare(&p, o, err);

    if (rc == 0) rc = run(&p, o, row, err);
    snprintf(row->mode, sizeof row->mode, "pub-b%" PRIu32 "-w%" PRIu32, o->batch, p.in_flight);
    free_publisher(&p);
    return rc;
}

int weir__bench_wire_sync(const struct weir__bench_wire_options *o,
                          const struct weir__bench_wire_target *target,
                          struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct publisher p = {.target = target};
    int rc = prepare(&p, o, err);

    p.in_flight = 1;
    p.us = row->us = calloc(p.transfers, sizeof *row->us);
    row->us_count = p.transfers;
    if (rc == 0 && !p.us)
        rc = weir__fail(err, WEIR_ENOMEM, "room for %" PRIu64 " times", p.transfers);
    if (rc == 0) rc = run(&p, o, row, err);
    snprintf(row->mode, sizeof row->mode, "pub-sync");
    free_publisher(&p);
    return rc;
}
