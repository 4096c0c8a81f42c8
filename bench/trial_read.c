#include "bench/trial_read.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "bench/progress.h"

#define EVENTS_MAX 1000u     /* of one receive */
#define BYTES_MAX (1u << 20) /* of a receiver: what a program takes that wants much at once */
#define LOOK_MS 100          /* between looks whether to stop, of a reader */
#define LOOK_NS 20000000     /* and of who waits for all of them */
#define PATIENCE_MS 10000    /* without an event */

struct reader {
    struct weir__trial_readers *all;
    struct weir_receiver *receiver;
    struct weir__thread thread;
    uint64_t end;                               /* receive: the sequence number to stop before */
    atomic_uint_fast64_t events, bytes, others; /* written by its thread alone */
    struct weir_error why;                      /* read when it has ended; code 0: none */
    struct weir__histogram times;
};

struct weir__trial_readers {
    struct weir__trial_options o;
    uint64_t run;
    int64_t began_ns;
    atomic_int_fast64_t last_ns; /* when the newest event came */
    atomic_bool stop;
    atomic_uint running;
    uint32_t count;
    struct reader *reader[WEIR__TRIAL_PARTITIONS_MAX];
};

static void add_to(atomic_uint_fast64_t *n, uint64_t more)
{
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* Whether it is ours, and when it was due. */
static bool read_mark(const struct weir_event *e, uint64_t run, uint64_t *due_ns)
{
    if (e->body.len < WEIR__TRIAL_SIZE_MIN || weir__load64(e->body.at) != run) return false;
    *due_ns = weir__load64(e->body.at + 8);
    return true;
}

/* Neighbours mostly were due together. */
static void take_own(struct reader *r, const struct weir_received *got, int64_t now_ns)
{
    uint64_t due_ns, before_ns = 0, same = 0, own = 0, others = 0, bytes = 0;

    for (size_t i = 0; i < got->count; i++) {
        if (!read_mark(&got->events[i], r->all->run, &due_ns)) {
            others++;
            continue;
        }
        if (due_ns == 0) continue; /* sent before the run */
        own++;
        bytes += got->events[i].body.len;
        if (same && due_ns != before_ns) {
            weir__histogram_add(&r->times, (uint64_t)now_ns - before_ns, same);
            same = 0;
        }
        before_ns = due_ns;
        same++;
    }
    if (same) weir__histogram_add(&r->times, (uint64_t)now_ns - before_ns, same);
    add_to(&r->events, own);
    add_to(&r->others, others);
    add_to(&r->bytes, bytes);
}

static void take_all(struct reader *r, const struct weir_received *got, int64_t took_ns)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < got->count; i++) bytes += got->events[i].body.len;
    weir__histogram_add(&r->times, (uint64_t)took_ns, 1);
    add_to(&r->events, got->count);
    add_to(&r->bytes, bytes);
}

static bool is_through(struct reader *r, const struct weir_received *got)
{
    return r->all->o.mode == WEIR__TRIAL_RECEIVE && got->count > 0 &&
           got->events[got->count - 1].sequence + 1 >= r->end;
}

static void *read_partition(void *arg)
{
    struct reader *r = arg;
    struct weir__trial_readers *all = r->all;
    int64_t since_ns = weir__mono_ns(), now_ns;
    struct weir_received got = {0};
    int rc;

    while (!atomic_load(&all->stop) && !is_through(r, &got)) {
        rc = weir_receiver_receive(r->receiver, EVENTS_MAX, LOOK_MS, &got, &r->why);
        if (rc == WEIR_ETIMEDOUT) continue;
        if (rc != 0) break;
        now_ns = weir__mono_ns();
        if (all->o.mode == WEIR__TRIAL_E2E)
            take_own(r, &got, now_ns);
        else
            take_all(r, &got, now_ns - since_ns);
        since_ns = now_ns;
        atomic_store_explicit(&all->last_ns, now_ns, memory_order_relaxed);
    }
    if (r->why.code == WEIR_ETIMEDOUT) r->why.code = 0;
    atomic_fetch_sub(&all->running, 1);
    return NULL;
}

uint64_t weir__trial_readers_count(struct weir__trial_readers *all)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < all->count; i++)
        count += atomic_load_explicit(&all->reader[i]->events, memory_order_relaxed);
    return count;
}

/* ---- the end ---- */

/* In e2e, what was sent is waited for, whatever the time and whoever wants to stop. */
static bool is_enough(struct weir__trial_readers *all, uint64_t expected)
{
    const struct weir__trial_options *o = &all->o;
    bool e2e = o->mode == WEIR__TRIAL_E2E;

    if (atomic_load(&all->running) == 0) return true;
    if ((e2e || expected) && weir__trial_readers_count(all) >= expected) return true;
    if (e2e) return false;
    if (o->stopped && o->stopped(o->user)) return true;
    return o->time_ms && weir__mono_ns() - all->began_ns >= o->time_ms * 1000000;
}

static int wait_for_end(struct weir__trial_readers *all, uint64_t expected, struct weir_error *err)
{
    const struct weir__trial_options *o = &all->o;
    struct timespec pause = {0, LOOK_NS};
    struct weir__progress progress;
    int64_t last_ns, waiting_ns = weir__mono_ns();
    int rc = 0;

    weir__progress_begin(&progress, o->progress, "received", expected, o->time_ms * 1000000);
    while (rc == 0 && !is_enough(all, expected)) {
        nanosleep(&pause, NULL);
        weir__progress_show(&progress, weir__trial_readers_count(all));
        last_ns = atomic_load(&all->last_ns);
        if (last_ns < waiting_ns) last_ns = waiting_ns;
        if (weir__mono_ns() - last_ns > (int64_t)PATIENCE_MS * 1000000)
            rc =
                weir__fail(err, WEIR_ETIMEDOUT, "no event came for %d seconds", PATIENCE_MS / 1000);
    }
    weir__progress_end(&progress);
    return rc;
}

static void stop(struct weir__trial_readers *all)
{
    atomic_store(&all->stop, true);
    for (uint32_t i = 0; i < all->count; i++) weir_receiver_cancel(all->reader[i]->receiver);
    for (uint32_t i = 0; i < all->count; i++) {
        struct reader *r = all->reader[i];
        weir__thread_join(&r->thread);
        if (r->why.code == WEIR_ECANCELED) r->why.code = 0;
    }
}

int weir__trial_readers_finish(struct weir__trial_readers *all, uint64_t expected,
                               struct weir__trial *trial, struct weir_error *err)
{
    int rc = wait_for_end(all, expected, err);
    int64_t last_ns;

    stop(all);
    for (uint32_t i = 0; i < all->count; i++) {
        struct reader *r = all->reader[i];
        trial->received.events += atomic_load(&r->events);
        trial->received.bytes += atomic_load(&r->bytes);
        trial->others += atomic_load(&r->others);
        weir__histogram_merge(&trial->times, &r->times);
        if (r->why.code == 0 || (rc != 0 && rc != WEIR_ETIMEDOUT)) continue;
        *err = r->why;
        rc = err->code;
    }
    last_ns = atomic_load(&all->last_ns);
    if (last_ns > all->began_ns) trial->received.seconds = (double)(last_ns - all->began_ns) / 1e9;
    return rc;
}

/* ---- birth and death ---- */

static int open_reader(struct weir__trial_readers *all, uint32_t partition, struct weir_error *err)
{
    bool all_there = all->o.mode == WEIR__TRIAL_RECEIVE;
    struct weir_receiver_options options = {
        .size = sizeof options,
        .group = all->o.group,
        .position.from = all_there ? WEIR_FROM_EARLIEST : WEIR_FROM_LATEST,
        .name = "weir bench",
        .bytes_max = BYTES_MAX,
    };
    struct weir_partition_info info = {0};
    struct reader *r;
    int rc = 0;

    if (all_there) rc = weir_partition_info(all->o.from, all->o.hub, partition, &info, err);
    if (rc != 0 || (all_there && info.begin_sequence == info.next_sequence)) return rc;
    r = calloc(1, sizeof *r);
    if (!r) return weir__fail(err, WEIR_ENOMEM, "no memory for a reader");
    r->all = all;
    r->end = info.next_sequence;
    rc = weir_receiver_open(&r->receiver, all->o.from, all->o.hub, partition, &options, err);
    if (rc != 0)
        free(r);
    else
        all->reader[all->count++] = r;
    return rc;
}

int weir__trial_readers_open(struct weir__trial_readers **out, const struct weir__trial_options *o,
                             uint64_t run, struct weir_error *err)
{
    struct weir__trial_readers *all = calloc(1, sizeof *all);
    int rc = 0;

    *out = all;
    if (!all) return weir__fail(err, WEIR_ENOMEM, "no memory for readers");
    all->o = *o;
    all->run = run;
    for (uint32_t i = 0; i < o->partitions && rc == 0; i++) rc = open_reader(all, i, err);
    return rc;
}

int weir__trial_readers_start(struct weir__trial_readers *all, struct weir_error *err)
{
    int rc = 0;

    all->began_ns = weir__mono_ns();
    for (uint32_t i = 0; i < all->count && rc == 0; i++) {
        atomic_fetch_add(&all->running, 1);
        rc = weir__thread_start(&all->reader[i]->thread, "weir-bench", read_partition,
                                all->reader[i], err);
        if (rc != 0) atomic_fetch_sub(&all->running, 1);
    }
    return rc;
}

void weir__trial_readers_close(struct weir__trial_readers *all)
{
    if (!all) return;
    stop(all);
    for (uint32_t i = 0; i < all->count; i++) {
        weir_receiver_close(all->reader[i]->receiver);
        free(all->reader[i]);
    }
    free(all);
}
