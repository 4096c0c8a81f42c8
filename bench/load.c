#include "bench/load.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "amqp/message.h"
#include "base/thread.h"

/* Different batches that are sent in turn. A sender's bytes have just come from a wire, so they
 * should fit into a core's cache, and not be the same few lines all the time. */
#define PARCELS 16u
#define EVENTS_MAX 1024u

/* A data section in front of its bytes: 00 53 75, then a0 and one byte of length or b0 and four. */
#define SHORT_HEAD_BYTES 5u
#define LONG_HEAD_BYTES 8u
#define SHORT_MAX 255u

struct weir__window {
    struct weir__mutex lock; /* guards nothing but the sleep of the sender */
    struct weir__cond woken;
    atomic_uint_fast64_t done;
    atomic_uint_fast64_t wanted; /* the sender sleeps until so many are done; 0: it does not */
    bool timed;                  /* completions note the time; set while nothing is under way */
    atomic_llong done_ns;        /* of the last one */
    atomic_int rc;               /* the first error */
};

struct weir__load {
    struct weir__load_options options;
    struct weir__parcel parcels[PARCELS];
    struct weir_event *events; /* of all parcels */
    uint8_t *memory;           /* their bytes, encoded */
    size_t payload_bytes;
    struct weir__window window;
    double us[WEIR__LOAD_WAITS_MAX];
};

/* ---- what is under way ---- */

void weir__window_done(struct weir__window *w, uint32_t batches, int rc)
{
    uint64_t done, wanted;
    int none = 0;

    if (w->timed) atomic_store(&w->done_ns, weir__mono_ns());
    if (rc != 0) atomic_compare_exchange_strong(&w->rc, &none, rc);
    done = atomic_fetch_add(&w->done, batches) + batches;
    wanted = atomic_load(&w->wanted);
    if (wanted == 0 || done < wanted) return;
    weir__mutex_lock(&w->lock);
    weir__cond_signal(&w->woken);
    weir__mutex_unlock(&w->lock);
}

static void wait_for(struct weir__window *w, uint64_t wanted)
{
    if (atomic_load(&w->done) >= wanted) return;
    weir__mutex_lock(&w->lock);
    atomic_store(&w->wanted, wanted);
    while (atomic_load(&w->done) < wanted) weir__cond_wait(&w->woken, &w->lock, INT64_MAX);
    atomic_store(&w->wanted, 0);
    weir__mutex_unlock(&w->lock);
}

static int window_result(struct weir__window *w, struct weir_error *err)
{
    int rc = atomic_load(&w->rc);

    return rc == 0 ? 0 : weir__fail(err, rc, "a batch came back as %s", weir_error_name(rc));
}

/* ---- what is sent ---- */

static size_t section_bytes(size_t body_bytes)
{
    return body_bytes + (body_bytes <= SHORT_MAX ? SHORT_HEAD_BYTES : LONG_HEAD_BYTES);
}

/* Writes the head of a data section of len bytes; returns where they go. */
static uint8_t *put_section(uint8_t *at, size_t len)
{
    *at++ = 0x00;
    *at++ = 0x53;
    *at++ = 0x75;
    if (len <= SHORT_MAX) {
        *at++ = 0xa0;
        *at++ = (uint8_t)len;
        return at;
    }
    *at++ = 0xb0;
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = (uint8_t)(len >> shift);
    return at;
}

/* A batch is a message whose data sections are messages; a single event is sent as it is. */
static void fill_parcel(struct weir__load *load, uint32_t number)
{
    uint32_t count = load->options.batch_events;
    size_t body_bytes = load->options.event_bytes;
    uint8_t *begin = load->memory + number * load->payload_bytes, *at = begin;
    struct weir_event *events = load->events + (size_t)number * count;

    for (uint32_t i = 0; i < count; i++) {
        if (count > 1) at = put_section(at, section_bytes(body_bytes));
        at = put_section(at, body_bytes);
        for (size_t j = 0; j < body_bytes; j++) at[j] = (uint8_t)(j * 7 + i + number);
        events[i].body = weir_bytes(at, body_bytes);
        at += body_bytes;
    }
    assert((size_t)(at - begin) == load->payload_bytes);
    load->parcels[number] = (struct weir__parcel){
        .payload = {begin, load->payload_bytes},
        .format = count > 1 ? WEIR__AMQP_FORMAT_BATCH : 0,
        .count = count,
        .events = events,
    };
}

int weir__load_new(struct weir__load **out, const struct weir__load_options *options,
                   struct weir_error *err)
{
    struct weir__load *load = calloc(1, sizeof *load);
    size_t message;

    assert(options->batch_events > 0 && options->batch_events <= EVENTS_MAX);
    assert(options->in_flight > 0);
    if (!load) return weir__fail(err, WEIR_ENOMEM, "preparing a load");
    load->options = *options;
    message = section_bytes(options->event_bytes);
    load->payload_bytes =
        options->batch_events > 1 ? options->batch_events * section_bytes(message) : message;
    load->events = calloc((size_t)PARCELS * options->batch_events, sizeof *load->events);
    load->memory = malloc(PARCELS * load->payload_bytes);
    weir__mutex_init(&load->window.lock);
    weir__cond_init(&load->window.woken);
    if (!load->events || !load->memory) {
        weir__load_free(load);
        return weir__fail(err, WEIR_ENOMEM, "preparing a load");
    }
    for (uint32_t i = 0; i < PARCELS; i++) fill_parcel(load, i);
    *out = load;
    return 0;
}

void weir__load_free(struct weir__load *load)
{
    if (!load) return;
    weir__cond_fini(&load->window.woken);
    weir__mutex_fini(&load->window.lock);
    free(load->memory);
    free(load->events);
    free(load);
}

uint64_t weir__load_batches(const struct weir__load *load, uint64_t bytes)
{
    return bytes / load->payload_bytes;
}

const struct weir__parcel *weir__load_parcel(const struct weir__load *load, uint64_t number)
{
    return &load->parcels[number % PARCELS];
}

/* ---- sending ---- */

static void clear_window(struct weir__window *w, bool timed)
{
    w->timed = timed;
    atomic_store(&w->done, 0);
    atomic_store(&w->wanted, 0);
    atomic_store(&w->rc, 0);
}

static void count_run(const struct weir__load *load, uint64_t batches, struct weir__bench_run *run)
{
    run->batches = batches;
    run->events = batches * load->options.batch_events;
    run->bytes = run->events * load->options.event_bytes;
}

int weir__load_flood(struct weir__load *load, struct weir__subject *subject, uint32_t partitions,
                     uint64_t batches, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__window *w = &load->window;
    uint32_t in_flight = load->options.in_flight;
    struct weir__bench_mark mark;
    uint64_t sent = 0;
    int rc = 0;

    clear_window(w, false);
    weir__bench_begin(&mark);
    while (sent < batches) {
        if (sent - atomic_load(&w->done) >= in_flight) wait_for(w, sent - in_flight / 2);
        rc = subject->ops->send(subject, weir__load_parcel(load, sent),
                                (uint32_t)(sent % partitions), w, err);
        if (rc != 0) break;
        sent++;
    }
    wait_for(w, sent);
    weir__bench_end(&mark, run);
    count_run(load, batches, run);
    return rc == 0 ? window_result(w, err) : rc;
}

static void judge_waits(struct weir__load *load, uint32_t batches, struct weir__bench_run *run)
{
    count_run(load, batches, run);
    run->p50_us = weir__bench_percentile(load->us, batches, 0.5);
    run->p99_us = weir__bench_percentile(load->us, batches, 0.99);
}

int weir__load_wait(struct weir__load *load, struct weir__subject *subject, uint32_t batches,
                    struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__bench_mark mark;
    int rc = 0;

    assert(batches > 0 && batches <= WEIR__LOAD_WAITS_MAX);
    weir__bench_begin(&mark);
    for (uint32_t i = 0; i < batches && rc == 0; i++) {
        int64_t began_ns = weir__mono_ns();

        rc = subject->ops->send_wait(subject, weir__load_parcel(load, i), 0, err);
        load->us[i] = (double)(weir__mono_ns() - began_ns) / 1e3;
    }
    weir__bench_end(&mark, run);
    judge_waits(load, batches, run);
    return rc;
}

int weir__load_async(struct weir__load *load, struct weir__subject *subject, uint32_t batches,
                     struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__window *w = &load->window;
    struct weir__bench_mark mark;
    int rc = 0;

    assert(batches > 0 && batches <= WEIR__LOAD_WAITS_MAX);
    clear_window(w, true);
    weir__bench_begin(&mark);
    for (uint32_t i = 0; i < batches; i++) {
        int64_t began_ns = weir__mono_ns();

        rc = subject->ops->send(subject, weir__load_parcel(load, i), 0, w, err);
        if (rc != 0) break;
        wait_for(w, i + 1);
        load->us[i] = (double)(atomic_load(&w->done_ns) - began_ns) / 1e3;
    }
    weir__bench_end(&mark, run);
    judge_waits(load, batches, run);
    return rc == 0 ? window_result(w, err) : rc;
}
