/* measure.c - one copy of a program that shares a hub, for the figures of tests/show.
 *
 *     measure drain WHERE HUB STORE EVENTS    reads them all, marks each batch, and says how fast
 *     measure idle WHERE HUB STORE SECONDS    owns every partition, and says what that costs
 *
 * WHERE is a folder or a connection string, STORE the path of a SQLite file. A line of JSON is
 * printed. drain counts only what comes exactly once, in order, from the first event of a partition
 * on: anything else ends it with 1. The public headers are all it knows; what the processor asks of
 * its store is counted between the two. */
#define _GNU_SOURCE /* clock_gettime, malloc_trim */
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <weir/processor.h>
#include <weir/weir.h>

#define PARTITIONS_MAX 1024
#define PATIENCE_S 120 /* without an event, or without the partitions */
#define SETTLE_S 5     /* from the last opened partition until what it costs is looked at */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_s(double s)
{
    struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

    nanosleep(&t, NULL);
}

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* A line of /proc/self/status, in KiB. */
static long status_kb(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;

    while (f && kb < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0) kb = atol(line + strlen(name));
    if (f) fclose(f);
    return kb;
}

/* ---- a store that counts what it is asked ---- */

enum { BEAT, LEAVE, READ, CLAIM, MARK, SET, KINDS };

struct counting {
    struct weir_store base;
    struct weir_store *inner;
    atomic_uint_fast64_t calls[KINDS];
};

#define INNER(s, kind)                                                                             \
    (atomic_fetch_add(&((struct counting *)(s))->calls[kind], 1), ((struct counting *)(s))->inner)

static int count_beat(struct weir_store *s, const struct weir_scope *scope,
                      const struct weir_member *m, struct weir_error *err)
{
    struct weir_store *inner = INNER(s, BEAT);

    return inner->ops->beat(inner, scope, m, err);
}

static int count_leave(struct weir_store *s, const struct weir_scope *scope,
                       const struct weir_member *m, struct weir_error *err)
{
    struct weir_store *inner = INNER(s, LEAVE);

    return inner->ops->leave(inner, scope, m, err);
}

static int count_read(struct weir_store *s, const struct weir_scope *scope, struct weir_view *v,
                      struct weir_error *err)
{
    struct weir_store *inner = INNER(s, READ);

    return inner->ops->read(inner, scope, v, err);
}

static int count_claim(struct weir_store *s, const struct weir_scope *scope,
                       const struct weir_record *expected, const char *owner, uint64_t instance,
                       struct weir_record *out, struct weir_error *err)
{
    struct weir_store *inner = INNER(s, CLAIM);

    return inner->ops->claim(inner, scope, expected, owner, instance, out, err);
}

static int count_mark(struct weir_store *s, const struct weir_scope *scope, const char *owner,
                      struct weir_mark *marks, size_t count, struct weir_error *err)
{
    struct weir_store *inner = INNER(s, MARK);

    return inner->ops->mark(inner, scope, owner, marks, count, err);
}

static int count_set(struct weir_store *s, const struct weir_scope *scope, uint32_t partition,
                     const struct weir_mark *mark, struct weir_error *err)
{
    struct weir_store *inner = INNER(s, SET);

    return inner->ops->set(inner, scope, partition, mark, err);
}

static void count_close(struct weir_store *s)
{
    weir_store_close(((struct counting *)s)->inner);
}

static const struct weir_store_ops counting_ops = {
    .version = WEIR_STORE_VERSION,
    .beat = count_beat,
    .leave = count_leave,
    .read = count_read,
    .claim = count_claim,
    .mark = count_mark,
    .set = count_set,
    .close = count_close,
};

/* ---- the program ---- */

/* What one partition has given; its own, so nothing is locked. */
struct seen {
    uint64_t events, bytes, sum;
    char room[64]; /* on a cache line of its own */
};

struct program {
    struct seen seen[PARTITIONS_MAX];
    atomic_uint_fast64_t events; /* of all, after each batch */
    atomic_uint_fast64_t opened;
    atomic_uint_fast64_t faults; /* out of order, and errors */
    _Atomic double first_s, last_s;
};

static int on_open(struct weir_partition *p, void **state, void *user)
{
    struct program *x = user;

    *state = &x->seen[weir_partition_id(p) % PARTITIONS_MAX];
    atomic_fetch_add(&x->opened, 1);
    return 0;
}

static int on_events(struct weir_partition *p, const struct weir_event *e, size_t n, void *user)
{
    struct seen *s = weir_partition_state(p);
    struct program *x = user;

    if (atomic_load(&x->first_s) == 0) atomic_store(&x->first_s, now_s());
    for (size_t i = 0; i < n; i++) {
        if (e[i].sequence != s->events) atomic_fetch_add(&x->faults, 1);
        s->events++;
        s->bytes += e[i].body.len;
        s->sum += e[i].sequence;
    }
    atomic_fetch_add(&x->events, n);
    atomic_store(&x->last_s, now_s());
    return weir_checkpoint(p, NULL);
}

static void on_error(struct weir_partition *p, enum weir_action action,
                     const struct weir_error *err, void *user)
{
    struct program *x = user;

    (void)p;
    fprintf(stderr, "while %s: %s\n", weir_action_text(action), err->text);
    atomic_fetch_add(&x->faults, 1);
}

/* ---- drain ---- */

static bool drain(struct program *x, uint64_t wanted, double began_s, double began_cpu_s)
{
    uint64_t before = 0, sum = 0, right = 0, bytes = 0, events;
    double quiet_s = now_s(), took_s, cpu;

    while ((events = atomic_load(&x->events)) < wanted && now_s() - quiet_s < PATIENCE_S) {
        if (events != before) quiet_s = now_s();
        before = events;
        pause_s(0.005);
    }
    cpu = cpu_s() - began_cpu_s;
    took_s = atomic_load(&x->last_s) - atomic_load(&x->first_s);
    for (int i = 0; i < PARTITIONS_MAX; i++) {
        const struct seen *s = &x->seen[i];
        sum += s->sum;
        bytes += s->bytes;
        if (s->events > 0) right += s->events * (s->events - 1) / 2;
    }
    printf("{\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"sum\":%" PRIu64
           ",\"sum_wanted\":%" PRIu64 ",\"faults\":%" PRIu64
           ",\"seconds\":%.3f,\"events_per_s\":%.0f,\"from_start_s\":%.3f"
           ",\"cpu_ns\":%.1f}\n",
           events, bytes, sum, right, (uint64_t)atomic_load(&x->faults), took_s,
           took_s > 0 ? (double)events / took_s : 0, atomic_load(&x->last_s) - began_s,
           events ? cpu * 1e9 / (double)events : 0);
    return events == wanted && sum == right && atomic_load(&x->faults) == 0;
}

/* ---- idle ---- */

static bool own_all(struct program *x, struct weir_processor *processor)
{
    struct weir_processor_stats stats;
    double until_s = now_s() + PATIENCE_S;

    do {
        pause_s(0.05);
        weir_processor_stats(processor, &stats);
    } while (atomic_load(&x->opened) < stats.partitions && now_s() < until_s);
    return stats.partitions > 0 && atomic_load(&x->opened) == stats.partitions;
}

/* Until no event has come for so long. */
static void settle(struct program *x)
{
    uint64_t before;

    do {
        before = atomic_load(&x->events);
        pause_s(SETTLE_S);
    } while (atomic_load(&x->events) != before);
}

static bool idle(struct program *x, struct counting *store, struct weir_processor *processor,
                 double seconds)
{
    uint64_t calls[KINDS], all = 0;
    struct weir_processor_stats stats;
    double began_s, cpu, took_s;
    long rss_kb;

    if (!own_all(x, processor)) {
        fprintf(stderr, "%" PRIu64 " partitions were opened\n", (uint64_t)atomic_load(&x->opened));
        return false;
    }
    settle(x);
    for (int i = 0; i < KINDS; i++) calls[i] = atomic_load(&store->calls[i]);
    began_s = now_s();
    cpu = cpu_s();
    pause_s(seconds);
    took_s = now_s() - began_s;
    cpu = cpu_s() - cpu;
    for (int i = 0; i < KINDS; i++) all += calls[i] = atomic_load(&store->calls[i]) - calls[i];
    weir_processor_stats(processor, &stats);
    rss_kb = status_kb("VmRSS:");
    malloc_trim(0); /* what is free, and only kept by the C library for later */
    printf("{\"owned\":%" PRIu32 ",\"events\":%" PRIu64 ",\"faults\":%" PRIu64
           ",\"rss_kb\":%ld,\"trimmed_kb\":%ld,\"seconds\":%.1f,\"cpu_percent\":%.3f"
           ",\"beats\":%" PRIu64 ",\"reads\":%" PRIu64 ",\"claims\":%" PRIu64 ",\"marks\":%" PRIu64
           ",\"calls_per_beat\":%.3f}\n",
           stats.owned, (uint64_t)atomic_load(&x->events), (uint64_t)atomic_load(&x->faults),
           rss_kb, status_kb("VmRSS:"), took_s, cpu / took_s * 100, calls[BEAT], calls[READ],
           calls[CLAIM], calls[MARK],
           calls[BEAT] ? (double)all / (double)calls[BEAT] : (double)all);
    return atomic_load(&x->faults) == 0;
}

int main(int argc, char **argv)
{
    static struct program x;
    struct counting counting = {.base.ops = &counting_ops};
    struct weir_processor_options o = {.size = sizeof o,
                                       .handler = {.open = on_open,
                                                   .events = on_events,
                                                   .error = on_error},
                                       .user = &x};
    struct weir_processor *processor = NULL;
    struct weir_source *source = NULL;
    struct weir *weir = NULL;
    struct weir_error err = {0};
    double began_s = now_s(), began_cpu_s = cpu_s();
    bool ok;

    if (argc != 6) return 2;
    ok = weir_open(&weir, argv[2], NULL, &err) == 0 &&
         weir_source_hub(&source, weir, argv[3], NULL, &err) == 0 &&
         weir_store_sqlite(&counting.inner, argv[4], NULL, &err) == 0 &&
         weir_processor_start(&processor, source, &counting.base, &o, &err) == 0;
    if (ok && strcmp(argv[1], "drain") == 0)
        ok = drain(&x, strtoull(argv[5], NULL, 10), began_s, began_cpu_s);
    else if (ok)
        ok = idle(&x, &counting, processor, strtod(argv[5], NULL));
    if (processor && weir_processor_stop(processor, 30000, &err) != 0) ok = false;
    if (!ok) fprintf(stderr, "%s\n", err.text);
    weir_store_close(&counting.base);
    weir_source_close(source);
    return weir_close(weir, NULL) != 0 || !ok;
}
