/* many_receivers.c - what receivers that wait on one partition cost its publishers.
 *
 *     many_receivers DIR RECEIVERS SECONDS wait|read
 *
 * One thread publishes single events as fast as they are taken, with a window of its own; receivers
 * are woken as a server's are. wait: nobody looks at what they were woken for. read: one thread
 * serves them in turn, as a server's loop does. Prints the rate and the longest time that one call
 * to publish took. */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "hub/namespace.h"
#include "hub/receiver.h"

#define PER_GROUP 5 /* receivers without an epoch */
#define EVENTS_PER_TAKE 32
#define WINDOW 4096

struct waiter {
    struct weir__receiver *in;
    struct desk *desk;
    struct waiter *next;
    bool ready; /* desk lock */
};

/* Where woken receivers wait for the thread that serves them. */
struct desk {
    struct weir__mutex lock;
    struct weir__cond change;
    struct waiter *first, **last;
    bool closing;
    uint64_t wakes, delivered;
};

static atomic_uint_fast64_t acked;

static void check(int rc, const struct weir_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "many_receivers: %s\n", err->text);
    exit(1);
}

static void wake(void *user)
{
    struct waiter *w = user;
    struct desk *d = w->desk;

    weir__mutex_lock(&d->lock);
    d->wakes++;
    if (!w->ready) {
        w->ready = true;
        w->next = NULL;
        *d->last = w;
        d->last = &w->next;
        weir__cond_signal(&d->change);
    }
    weir__mutex_unlock(&d->lock);
}

static struct waiter *take(struct desk *d)
{
    struct waiter *w;

    weir__mutex_lock(&d->lock);
    while (!d->first && !d->closing) weir__cond_wait(&d->change, &d->lock, INT64_MAX);
    w = d->closing ? NULL : d->first;
    if (w) {
        d->first = w->next;
        if (!d->first) d->last = &d->first;
        w->ready = false;
    }
    weir__mutex_unlock(&d->lock);
    return w;
}

static void *run_desk(void *arg)
{
    struct weir__event events[EVENTS_PER_TAKE];
    struct desk *d = arg;
    struct waiter *w;

    while ((w = take(d))) {
        struct weir__receiver_take t = {.events_max = EVENTS_PER_TAKE, .events = events};
        struct weir_error err = {0};

        check(weir__receiver_next(w->in, &t, &err), &err);
        d->delivered += t.count;
        if (t.count > 0) wake(w);
    }
    return NULL;
}

static void done(void *user, int rc, const struct weir__log_receipt *r, const struct weir_error *e)
{
    (void)user, (void)r, (void)e;
    assert(rc == 0);
    atomic_fetch_add(&acked, 1);
}

/* Publishes for a while; *out_stall_ns is the longest call. */
static double publish(struct weir__hub *hub, double seconds, int64_t *out_stall_ns)
{
    static uint8_t message[105] = {0x00, 0x53, 0x75, 0xa0, 100};
    struct weir_error err = {0};
    struct weir__batch batch;
    int64_t began = weir__mono_ns(), now = began, until = began + (int64_t)(seconds * 1e9);
    uint64_t sent = 0;

    check(weir__batch_of_payload(&batch, 0, weir__bytes_of(message, sizeof message), 0, &err),
          &err);
    *out_stall_ns = 0;
    while (now < until) {
        int64_t before = now;

        while (sent - atomic_load(&acked) >= WINDOW) weir__hub_flush(hub, INT64_MAX, NULL);
        before = weir__mono_ns();
        check(weir__hub_publish(hub, &batch, 0, NULL, INT64_MAX, done, NULL, &err), &err);
        now = weir__mono_ns();
        if (now - before > *out_stall_ns) *out_stall_ns = now - before;
        sent++;
    }
    weir__hub_flush(hub, INT64_MAX, NULL);
    return (double)sent / ((double)(weir__mono_ns() - began) / 1e9);
}

static void attach(struct weir__namespace *ns, struct weir__hub *hub, struct waiter *w, unsigned i)
{
    struct weir__receiver_options o = {.from = {.kind = WEIR__FROM_LATEST},
                                       .epoch = WEIR__EPOCH_NONE,
                                       .credit = WEIR__CREDIT_UNLIMITED,
                                       .wake = wake,
                                       .user = w};
    struct weir_error err = {0};
    char group[32];

    snprintf(group, sizeof group, i < PER_GROUP ? WEIR__GROUP_DEFAULT : "group%u", i / PER_GROUP);
    if (i >= PER_GROUP && i % PER_GROUP == 0)
        check(weir__namespace_group_add(ns, "h", group, &err), &err);
    o.group = group;
    check(weir__receiver_attach(&w->in, hub, &o, &err), &err);
}

int main(int argc, char **argv)
{
    struct weir__hub_config config = {.name = "h", .partitions = 4};
    struct desk desk = {.last = &desk.first};
    struct weir__thread server = {0};
    struct weir__namespace *ns;
    struct weir_error err = {0};
    struct weir__hub *hub;
    struct waiter *all;
    int64_t stall_ns;
    unsigned count;
    double rate;

    if (argc != 5) return 2;
    count = (unsigned)atoi(argv[2]);
    all = calloc(count, sizeof *all);
    weir__mutex_init(&desk.lock);
    weir__cond_init(&desk.change);
    check(weir__namespace_open(&ns, argv[1], NULL, &err), &err);
    check(weir__namespace_hub_create(ns, &config, &err), &err);
    check(weir__namespace_use(ns, "h", &hub, &err), &err);
    for (unsigned i = 0; i < count; i++) {
        all[i].desk = &desk;
        attach(ns, hub, &all[i], i);
    }
    if (strcmp(argv[4], "read") == 0)
        check(weir__thread_start(&server, "server", run_desk, &desk, &err), &err);
    rate = publish(hub, atof(argv[3]), &stall_ns);
    weir__mutex_lock(&desk.lock);
    desk.closing = true;
    weir__cond_broadcast(&desk.change);
    weir__mutex_unlock(&desk.lock);
    weir__thread_join(&server);
    printf("rate=%.0f stall_us=%lld wakes=%llu delivered=%llu\n", rate,
           (long long)(stall_ns / 1000), (unsigned long long)desk.wakes,
           (unsigned long long)desk.delivered);
    for (unsigned i = 0; i < count; i++) weir__receiver_close(all[i].in);
    weir__hub_release(hub);
    free(all);
    check(weir__namespace_close(ns, &err), &err);
    return 0;
}
