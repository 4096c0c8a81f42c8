#include "bench/trial_send.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "bench/progress.h"

#define UNDER_WAY_BYTES ((size_t)4 << 20) /* of bodies, in all */
#define UNDER_WAY_MAX 4096u               /* batches */
#define PATIENCE_MS 60000

/* A batch that is under way. */
struct parcel {
    struct weir__trial_sender *sender;
    struct parcel *next;
    int64_t due_ns;
    uint32_t events;
};

struct weir__trial_sender {
    struct weir__trial_options o;
    struct weir_producer *producer[WEIR__TRIAL_PARTITIONS_MAX];
    struct weir_event *events;
    uint8_t *bodies;
    struct parcel *parcels;
    uint32_t parcel_count;
    clockid_t library_clock; /* CPU of the thread of completions, once it is known */

    struct weir__mutex lock; /* for what follows: completions run elsewhere */
    struct weir__cond landed;
    struct parcel *idle;
    uint32_t under_way;
    uint64_t acknowledged, failed;
    bool clock_known, timed;
    struct weir_error first_error; /* code 0: none */
    struct weir__histogram times;
};

static void land(void *user, int rc, const struct weir_receipt *receipt,
                 const struct weir_error *err)
{
    int64_t now_ns = weir__mono_ns();
    struct parcel *p = user;
    struct weir__trial_sender *s = p->sender;

    (void)receipt;
    weir__mutex_lock(&s->lock);
    if (!s->clock_known)
        s->clock_known = pthread_getcpuclockid(pthread_self(), &s->library_clock) == 0;
    if (rc == 0 && s->timed) weir__histogram_add(&s->times, (uint64_t)(now_ns - p->due_ns), 1);
    if (rc == 0)
        s->acknowledged += p->events;
    else
        s->failed += p->events;
    if (rc != 0 && s->first_error.code == 0) s->first_error = *err;
    p->next = s->idle;
    s->idle = p;
    s->under_way--;
    weir__cond_signal(&s->landed);
    weir__mutex_unlock(&s->lock);
}

/* NULL: something has failed, or nothing lands any more. */
static struct parcel *take_parcel(struct weir__trial_sender *s, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    struct parcel *p = NULL;
    bool in_time = true;

    weir__mutex_lock(&s->lock);
    while (!s->idle && s->first_error.code == 0 && in_time)
        in_time = weir__cond_wait(&s->landed, &s->lock, deadline_ns);
    if (s->first_error.code != 0) {
        *err = s->first_error;
    } else if (!s->idle) {
        weir__fail(err, WEIR_ETIMEDOUT, "no batch was acknowledged for a minute");
    } else {
        p = s->idle;
        s->idle = p->next;
        s->under_way++;
    }
    weir__mutex_unlock(&s->lock);
    return p;
}

static void return_parcel(struct weir__trial_sender *s, struct parcel *p)
{
    weir__mutex_lock(&s->lock);
    p->next = s->idle;
    s->idle = p;
    s->under_way--;
    weir__mutex_unlock(&s->lock);
}

/* Waits for what is under way; the first failure of all. */
static int settle(struct weir__trial_sender *s, struct weir_error *err)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    bool in_time = true;
    int rc = 0;

    weir__mutex_lock(&s->lock);
    while (s->under_way && in_time) in_time = weir__cond_wait(&s->landed, &s->lock, deadline_ns);
    if (s->first_error.code != 0) {
        *err = s->first_error;
        rc = err->code;
    } else if (s->under_way) {
        rc = weir__fail(err, WEIR_ETIMEDOUT, "%" PRIu32 " batches were not acknowledged in time",
                        s->under_way);
    }
    weir__mutex_unlock(&s->lock);
    return rc;
}

static int send_batch(struct weir__trial_sender *s, uint32_t partition, uint32_t events,
                      int64_t due_ns, struct weir_error *err)
{
    struct parcel *p = take_parcel(s, err);
    int rc;

    if (!p) return err->code;
    p->events = events;
    p->due_ns = due_ns ? due_ns : weir__mono_ns();
    if (s->o.mode == WEIR__TRIAL_E2E)
        for (uint32_t i = 0; i < events; i++)
            weir__store64(s->bodies + (size_t)i * s->o.size + 8, (uint64_t)p->due_ns);
    rc = weir_producer_send_async(s->producer[partition], s->events, events, PATIENCE_MS, land, p,
                                  err);
    if (rc != 0) return_parcel(s, p);
    return rc;
}

static void sleep_until(int64_t at_ns)
{
    int64_t left_ns = at_ns - weir__mono_ns();
    struct timespec t = {left_ns / 1000000000, left_ns % 1000000000};

    if (left_ns > 0) nanosleep(&t, NULL); /* woken early, it sends early, which is no harm */
}

/* The next batch, when its time has come; *out_events is 0 when there is none. */
static int send_next(struct weir__trial_sender *s, uint64_t sent, int64_t began_ns,
                     uint32_t *out_events, struct weir_error *err)
{
    const struct weir__trial_options *o = &s->o;
    int64_t due_ns = began_ns + (o->rate ? (int64_t)((double)sent * 1e9 / o->rate) : 0);
    uint64_t left = o->count ? o->count - sent : o->batch;

    *out_events = 0;
    if (!o->rate) due_ns = weir__mono_ns();
    if (left == 0 || (o->time_ms && due_ns - began_ns >= o->time_ms * 1000000)) return 0;
    if (o->stopped && o->stopped(o->user)) return 0;
    if (o->rate) sleep_until(due_ns);
    *out_events = left < o->batch ? (uint32_t)left : o->batch;
    return send_batch(s, (uint32_t)(sent / o->batch % o->partitions), *out_events, due_ns, err);
}

int weir__trial_sender_run(struct weir__trial_sender *s, struct weir__trial *trial, bool timed,
                           struct weir_error *err)
{
    const struct weir__trial_options *o = &s->o;
    struct weir__progress progress;
    struct weir_error late;
    int64_t began_ns = weir__mono_ns();
    uint64_t sent = 0;
    uint32_t events = 1;
    int rc = 0, end;

    s->timed = timed;
    s->acknowledged = 0; /* nothing is under way */
    weir__progress_begin(&progress, o->progress, "sent", o->count, o->time_ms * 1000000);
    while (rc == 0 && events > 0) {
        rc = send_next(s, sent, began_ns, &events, err);
        if (rc == 0) sent += events;
        weir__progress_show(&progress, sent);
    }
    end = settle(s, &late);
    if (rc == 0 && end != 0) {
        *err = late;
        rc = end;
    }
    weir__progress_end(&progress);
    trial->sent.seconds = (double)(weir__mono_ns() - began_ns) / 1e9;
    weir__mutex_lock(&s->lock);
    trial->sent.events = s->acknowledged;
    trial->sent.bytes = s->acknowledged * o->size;
    trial->failed = sent - s->acknowledged;
    if (timed) weir__histogram_merge(&trial->times, &s->times);
    weir__mutex_unlock(&s->lock);
    return rc;
}

static double clock_s(clockid_t clock)
{
    struct timespec t = {0, 0};

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double weir__trial_sender_cpu_s(const struct weir__trial_sender *s)
{
    return clock_s(CLOCK_THREAD_CPUTIME_ID) + (s->clock_known ? clock_s(s->library_clock) : 0);
}

/* ---- birth and death ---- */

static void fill_events(struct weir__trial_sender *s, uint64_t run)
{
    memset(s->bodies, 'w', (size_t)s->o.batch * s->o.size);
    for (uint32_t i = 0; i < s->o.batch; i++) {
        uint8_t *body = s->bodies + (size_t)i * s->o.size;

        weir__store64(body, run);
        weir__store64(body + 8, 0);
        s->events[i].body = weir_bytes(body, s->o.size);
    }
}

static int make_memory(struct weir__trial_sender *s, struct weir_error *err)
{
    size_t parcels = UNDER_WAY_BYTES / ((size_t)s->o.batch * s->o.size) + 2;

    s->parcel_count = parcels < UNDER_WAY_MAX ? (uint32_t)parcels : UNDER_WAY_MAX;
    s->events = calloc(s->o.batch, sizeof *s->events);
    s->bodies = malloc((size_t)s->o.batch * s->o.size);
    s->parcels = calloc(s->parcel_count, sizeof *s->parcels);
    if (!s->events || !s->bodies || !s->parcels)
        return weir__fail(err, WEIR_ENOMEM, "no memory for a batch of %zu bytes",
                          (size_t)s->o.batch * s->o.size);
    for (uint32_t i = 0; i < s->parcel_count; i++) {
        s->parcels[i].sender = s;
        s->parcels[i].next = s->idle;
        s->idle = &s->parcels[i];
    }
    return 0;
}

static int open_producers(struct weir__trial_sender *s, struct weir_error *err)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true};
    int rc = 0;

    for (; o.partition < s->o.partitions && rc == 0; o.partition++)
        rc = weir_producer_open(&s->producer[o.partition], s->o.to, s->o.hub, &o, err);
    return rc;
}

int weir__trial_sender_open(struct weir__trial_sender **out, const struct weir__trial_options *o,
                            uint64_t run, struct weir_error *err)
{
    struct weir__trial_sender *s = calloc(1, sizeof *s);
    int rc;

    *out = s;
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a sender");
    s->o = *o;
    weir__mutex_init(&s->lock);
    weir__cond_init(&s->landed);
    rc = make_memory(s, err);
    if (rc == 0) rc = open_producers(s, err);
    if (rc != 0) return rc;
    fill_events(s, run);
    s->o.mode = WEIR__TRIAL_SEND; /* so that its events stay due at 0 */
    rc = send_batch(s, 0, 1, 0, err);
    s->o.mode = o->mode;
    return rc == 0 ? settle(s, err) : rc;
}

void weir__trial_sender_close(struct weir__trial_sender *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->o.partitions; i++) weir_producer_close(s->producer[i], 0, NULL);
    weir__cond_fini(&s->landed);
    weir__mutex_fini(&s->lock);
    free(s->parcels);
    free(s->bodies);
    free(s->events);
    free(s);
}
