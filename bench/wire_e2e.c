/* wire_e2e.c - from publishing to receiving: events at a steady rate over one connection, received
 * over another, each of which has a thread.
 *
 * An event carries the time at which it should have been sent. When the publisher is late, because
 * the machine or the server held it up, that counts: what is measured is what somebody would have
 * waited who wanted to send at that rate.
 *
 * The publisher keeps its loop to itself: it sleeps until an event is due, sends what is due, and
 * looks for what came only every few events. Waking it by a timer of the loop would be a
 * millisecond, by a post a thread more. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench/load.h"
#include "bench/wire_bench.h"
#include "bench/wire_client.h"
#include "bench/wire_link.h"

#define CREDIT 8192u
#define SECOND_NS 1000000000
#define STALL_NS 100000 /* between looks, when the server takes nothing */

struct publisher {
    const struct weir__bench_wire_target *target;
    struct weir__bench_wire_client *client;
    struct weir__load *load;
    struct weir__loop *loop;
    struct weir__amqp_link *link;
    struct weir__post pace;
    uint64_t events, sent, accepted;
    uint32_t size, rate;
    int64_t began_ns;
};

struct receiver {
    const struct weir__bench_wire_target *target;
    struct weir__bench_wire_client *client;
    struct weir__amqp_link *link;
    uint64_t events, got;
    uint32_t size;
    double *us;
};

/* ---- publishing ---- */

static int attach_publisher(void *mode, struct weir__amqp_session *session, struct weir_error *err)
{
    struct publisher *p = mode;

    return weir__bench_wire_attach_sender(session, p->target, 0, &p->link, err);
}

static void on_publisher_event(void *mode, const struct weir__amqp_event *ev)
{
    struct publisher *p = mode;

    if (ev->type == WEIR__AMQP_EVENT_ATTACH) weir__bench_wire_client_ready(p->client);
    if (ev->type != WEIR__AMQP_EVENT_SETTLE) return;
    if (ev->settle.outcome != WEIR__AMQP_ACCEPTED)
        weir__bench_wire_client_fail(p->client, WEIR_EIO, "an event was not accepted");
    p->accepted += ev->settle.last - ev->settle.first + 1;
    if (p->accepted == p->events) weir__bench_wire_client_done(p->client);
}

static int64_t due_ns(const struct publisher *p)
{
    return p->began_ns + (int64_t)(p->sent * SECOND_NS / p->rate);
}

static void sleep_until(int64_t at_ns)
{
    struct timespec t = {at_ns / SECOND_NS, at_ns % SECOND_NS};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

/* false: the server takes nothing now. */
static bool send_event(struct publisher *p)
{
    struct weir__bytes payload = weir__load_parcel(p->load, p->sent)->payload;
    uint8_t *to = weir__amqp_deliver(p->link, payload.len);

    if (!to) return false;
    memcpy(to, payload.at, payload.len);
    weir__store64(to + payload.len - p->size, (uint64_t)due_ns(p));
    weir__amqp_delivered(p->link, payload.len, 0, false);
    p->sent++;
    return true;
}

/* Deferred, it runs again and again until everything is sent, a few times before each look at the
 * socket. */
static void pace(void *arg)
{
    struct publisher *p = arg;
    bool taken = true;

    if (!weir__bench_wire_client_running(p->client)) return;
    if (!weir__amqp_sendable(p->link))
        sleep_until(weir__mono_ns() + STALL_NS);
    else if (weir__mono_ns() < due_ns(p))
        sleep_until(due_ns(p));
    while (taken && p->sent < p->events && due_ns(p) <= weir__mono_ns()) taken = send_event(p);
    weir__bench_wire_client_tick(p->client);
    weir__bench_wire_client_flush(p->client);
    if (p->sent < p->events) weir__loop_defer(p->loop, &p->pace);
}

static void begin_publishing(void *mode)
{
    struct publisher *p = mode;

    prctl(PR_SET_TIMERSLACK, 1);
    p->began_ns = weir__mono_ns();
    weir__loop_defer(p->loop, &p->pace);
}

static const struct weir__bench_wire_calls publisher_calls = {.attach = attach_publisher,
                                                              .event = on_publisher_event,
                                                              .begin = begin_publishing};

/* ---- receiving ---- */

static int attach_receiver(void *mode, struct weir__amqp_session *session, struct weir_error *err)
{
    struct receiver *r = mode;

    return weir__bench_wire_attach_receiver(session, r->target, 0, WEIR__BENCH_WIRE_FROM_LATEST,
                                            CREDIT, &r->link, err);
}

static void on_receiver_event(void *mode, const struct weir__amqp_event *ev)
{
    const struct weir__amqp_delivery *d = &ev->delivery;
    struct receiver *r = mode;
    int64_t due;

    if (ev->type == WEIR__AMQP_EVENT_ATTACH) weir__bench_wire_client_ready(r->client);
    if (ev->type != WEIR__AMQP_EVENT_TRANSFER) return;
    if (!d->settled) weir__amqp_settle(r->link, d->id, d->id, WEIR__AMQP_ACCEPTED, NULL);
    if (d->payload.len < r->size || r->got == r->events) {
        weir__bench_wire_client_fail(r->client, WEIR_EIO, "somebody else's event came");
        return;
    }
    due = (int64_t)weir__load64(d->payload.at + d->payload.len - r->size);
    r->us[r->got++] = (double)(weir__mono_ns() - due) / 1e3;
    if (r->got == r->events) weir__bench_wire_client_done(r->client);
}

static const struct weir__bench_wire_calls receiver_calls = {.attach = attach_receiver,
                                                             .event = on_receiver_event};

/* ---- both ---- */

static int measure(struct publisher *p, struct receiver *r, int server_pid,
                   struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct weir__bench_wire_meter meter;
    int rc;

    weir__bench_wire_meter_begin(&meter, server_pid);
    weir__bench_wire_client_go(p->client);
    rc = weir__bench_wire_client_wait(p->client, err);
    if (rc == 0) rc = weir__bench_wire_client_wait(r->client, err);
    weir__bench_wire_meter_end(&meter, row);
    return rc;
}

static int run(struct publisher *p, struct receiver *r, int server_pid,
               struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct weir__loops *loops = NULL;
    int rc = weir__loops_start(&loops, &(struct weir__loops_options){.count = 2}, err);

    if (rc != 0) return rc;
    p->loop = weir__loops_at(loops, 0);
    weir__post_init(&p->pace, pace, p);
    rc = weir__bench_wire_client_open(&r->client, weir__loops_at(loops, 1), r->target,
                                      &receiver_calls, r, err);
    if (rc == 0)
        rc = weir__bench_wire_client_open(&p->client, p->loop, p->target, &publisher_calls, p, err);
    if (rc == 0) rc = measure(p, r, server_pid, row, err);
    weir__bench_wire_client_close(p->client);
    weir__bench_wire_client_close(r->client);
    weir__loops_free(loops);
    return rc;
}

int weir__bench_wire_e2e(const struct weir__bench_wire_options *o,
                         const struct weir__bench_wire_target *target,
                         struct weir__bench_wire_row *row, struct weir_error *err)
{
    struct weir__load_options load = {.event_bytes = o->size, .batch_events = 1, .in_flight = 1};
    struct publisher p = {.target = target, .events = o->events, .size = o->size, .rate = o->rate};
    struct receiver r = {.target = target, .events = o->events, .size = o->size};
    int rc = weir__load_new(&p.load, &load, err);

    r.us = row->us = calloc(o->events, sizeof *row->us);
    row->us_count = o->events;
    if (rc == 0 && !r.us)
        rc = weir__fail(err, WEIR_ENOMEM, "room for %" PRIu64 " times", o->events);
    if (rc == 0) rc = run(&p, &r, o->server_pid, row, err);
    weir__load_free(p.load);
    row->run.events = row->run.batches = o->events;
    row->run.bytes = o->events * o->size;
    snprintf(row->mode, sizeof row->mode, "e2e@%" PRIu32, o->rate);
    return rc;
}
