/* fleet.h - copies of a program over a folder's hub and a store in memory, and what they saw.
 *
 * The program of these tests counts every event it is given, by partition and sequence number, and
 * every open and close. What it does besides is up to the test: `act` is called with each batch. */
#ifndef WEIR_TESTS_PROCESSOR_FLEET_H
#define WEIR_TESTS_PROCESSOR_FLEET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/tempdir.h"
#include "weir/processor.h"

#define PATIENCE_MS 30000 /* for what must happen */
#define PARTITIONS_MAX 8
#define EVENTS_MAX 100000 /* of a partition */
#define BEAT_MS 50

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != 0) fail_msg("%s: %s: %s", #call, weir_error_name(rc_), err.text);               \
    } while (0)

static struct weir_error err;

struct fleet {
    char dir[TEMPDIR_BYTES];
    char name[32]; /* of the store */
    struct weir *weir;
    struct weir_producer *producers[PARTITIONS_MAX];
    uint32_t partitions;

    struct weir__mutex lock; /* for what follows */
    struct weir__cond changed;
    uint32_t times[PARTITIONS_MAX][EVENTS_MAX]; /* that each event was given */
    uint64_t next[PARTITIONS_MAX];              /* highest given, and one */
    uint64_t total;                             /* given, all of them */
    uint64_t disorder;                          /* events that did not follow the one before */
    int inside[PARTITIONS_MAX];                 /* copies that have it open */
    int opens, closes, overlaps;
    int unannounced; /* closes of a partition that was not called revoked */
    int reasons[8];
    int errors[8]; /* by action */
    char last_error[WEIR_ERROR_TEXT_BYTES + 32];
    int last_code;
};

/* One copy; user pointer of its handlers. */
struct copy {
    struct fleet *fleet;
    struct weir_source *source;
    struct weir_store *store;
    struct weir_processor *processor;
    /* What to do with a batch; NULL: mark it. */
    int (*act)(struct copy *, struct weir_partition *, const struct weir_event *, size_t);
    uint64_t expected[PARTITIONS_MAX]; /* the next event of what it has open; or none: */
    bool begun[PARTITIONS_MAX];
    int own_opens, own_closes;
    void *with; /* the test's */
};

static inline void fleet_lock(struct fleet *f)
{
    weir__mutex_lock(&f->lock);
}

static inline void fleet_unlock(struct fleet *f)
{
    weir__cond_broadcast(&f->changed);
    weir__mutex_unlock(&f->lock);
}

/* Waits for a condition over the fleet, under its lock; the test fails when it does not come. What
 * nobody signals is looked at now and then. */
#define LOOK_MS 10
#define fleet_await(f, condition)                                                                  \
    do {                                                                                           \
        int64_t deadline_ = weir__deadline_ns(PATIENCE_MS);                                        \
        bool came_;                                                                                \
        weir__mutex_lock(&(f)->lock);                                                              \
        while (!(came_ = (condition)) && weir__mono_ns() < deadline_)                              \
            weir__cond_wait(&(f)->changed, &(f)->lock, weir__deadline_ns(LOOK_MS));                \
        weir__mutex_unlock(&(f)->lock);                                                            \
        if (!came_)                                                                                \
            fail_msg("%s did not come; total %llu, opens %d, closes %d, last error: %s",           \
                     #condition, (unsigned long long)(f)->total, (f)->opens, (f)->closes,          \
                     (f)->last_error);                                                             \
    } while (0)

/* ---- the program ---- */

static inline int on_open(struct weir_partition *p, void **state, void *user)
{
    struct copy *c = user;
    uint32_t id = weir_partition_id(p);

    fleet_lock(c->fleet);
    c->fleet->opens++;
    c->own_opens++;
    c->fleet->overlaps += c->fleet->inside[id]++ != 0;
    c->begun[id] = false;
    fleet_unlock(c->fleet);
    *state = c;
    return 0;
}

static inline void note_events(struct copy *c, uint32_t id, const struct weir_event *e, size_t n)
{
    struct fleet *f = c->fleet;

    for (size_t i = 0; i < n; i++) {
        f->disorder += e[i].partition != id;
        f->disorder += c->begun[id] && e[i].sequence != c->expected[id];
        c->begun[id] = true;
        c->expected[id] = e[i].sequence + 1;
        if (e[i].sequence < EVENTS_MAX) f->times[id][e[i].sequence]++;
        if (e[i].sequence + 1 > f->next[id]) f->next[id] = e[i].sequence + 1;
    }
    f->total += n;
}

static inline int on_events(struct weir_partition *p, const struct weir_event *e, size_t n,
                            void *user)
{
    struct copy *c = user;

    fleet_lock(c->fleet);
    note_events(c, weir_partition_id(p), e, n);
    fleet_unlock(c->fleet);
    return c->act ? c->act(c, p, e, n) : weir_checkpoint(p, NULL);
}

static inline void on_error(struct weir_partition *p, enum weir_action action,
                            const struct weir_error *why, void *user)
{
    struct copy *c = user;

    (void)p;
    fleet_lock(c->fleet);
    c->fleet->errors[action]++;
    c->fleet->last_code = why->code;
    snprintf(c->fleet->last_error, sizeof c->fleet->last_error, "%s: %s", weir_action_text(action),
             why->text);
    fleet_unlock(c->fleet);
}

static inline void on_close(struct weir_partition *p, enum weir_close_reason reason, void *user)
{
    struct copy *c = user;

    fleet_lock(c->fleet);
    c->fleet->closes++;
    c->own_closes++;
    c->fleet->reasons[reason]++;
    c->fleet->unannounced += !weir_partition_revoked(p);
    c->fleet->inside[weir_partition_id(p)]--;
    fleet_unlock(c->fleet);
}

static inline struct weir_processor_options copy_options(struct copy *c)
{
    return (struct weir_processor_options){
        .size = sizeof(struct weir_processor_options),
        .handler = {on_open, on_events, on_error, on_close},
        .user = c,
        .beat_ms = BEAT_MS,
        .expire_ms = INT64_C(20) * BEAT_MS, /* a loaded machine must not look dead */
    };
}

static inline void copy_open(struct copy *c, struct fleet *f)
{
    c->fleet = f;
    assert_ok(weir_source_hub(&c->source, f->weir, "h", NULL, &err));
    assert_ok(weir_store_memory(&c->store, f->name, NULL, &err));
}

static inline void copy_start_with(struct copy *c, struct fleet *f,
                                   const struct weir_processor_options *o)
{
    copy_open(c, f);
    assert_ok(weir_processor_start(&c->processor, c->source, c->store, o, &err));
}

static inline void copy_start(struct copy *c, struct fleet *f)
{
    struct weir_processor_options o = copy_options(c);

    copy_start_with(c, f, &o);
}

static inline void copy_close(struct copy *c)
{
    weir_store_close(c->store);
    weir_source_close(c->source);
    c->processor = NULL;
}

static inline void copy_stop(struct copy *c)
{
    assert_ok(weir_processor_stop(c->processor, PATIENCE_MS, &err));
    copy_close(c);
    assert_int_equal(c->own_opens, c->own_closes);
}

/* ---- the hub ---- */

static inline struct fleet *fleet_new(uint32_t partitions)
{
    struct weir_hub_options hub = {.size = sizeof hub, .partitions = partitions};
    struct weir_options options = {.size = sizeof options, .sync_ms = 1};
    struct fleet *f = calloc(1, sizeof *f);
    static int number;

    assert_non_null(f);
    weir__mutex_init(&f->lock);
    weir__cond_init(&f->changed);
    f->partitions = partitions;
    snprintf(f->name, sizeof f->name, "fleet-%d", number++);
    assert_int_equal(tempdir_make(f->dir), 0);
    assert_ok(weir_open(&f->weir, f->dir, &options, &err));
    assert_ok(weir_hub_create(f->weir, "h", &hub, &err));
    for (uint32_t i = 0; i < partitions; i++) {
        struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = i};
        assert_ok(weir_producer_open(&f->producers[i], f->weir, "h", &o, &err));
    }
    return f;
}

static inline void fleet_free(struct fleet *f)
{
    assert_int_equal(f->unannounced, 0);
    for (uint32_t i = 0; i < f->partitions; i++)
        assert_ok(weir_producer_close(f->producers[i], PATIENCE_MS, &err));
    assert_ok(weir_close(f->weir, &err));
    tempdir_remove(f->dir);
    weir__cond_fini(&f->changed);
    weir__mutex_fini(&f->lock);
    free(f);
}

/* So many events to one partition, in one batch. */
static inline void publish(struct fleet *f, uint32_t partition, uint32_t count)
{
    struct weir_event *events = calloc(count, sizeof *events);

    assert_non_null(events);
    for (uint32_t i = 0; i < count; i++) events[i].body = weir_text("something happened");
    assert_ok(weir_producer_send(f->producers[partition], events, count, PATIENCE_MS, NULL, &err));
    free(events);
}

static inline void publish_all(struct fleet *f, uint32_t count)
{
    for (uint32_t i = 0; i < f->partitions; i++) publish(f, i, count);
}

/* Every event of 0 to count was given exactly so often. */
static inline void assert_given(struct fleet *f, uint32_t partition, uint64_t first, uint64_t end,
                                uint32_t times)
{
    fleet_lock(f);
    for (uint64_t i = first; i < end; i++)
        if (f->times[partition][i] != times) {
            uint32_t was = f->times[partition][i];
            fleet_unlock(f);
            fail_msg("event %llu of partition %u was given %u times, not %u", (unsigned long long)i,
                     partition, was, times);
        }
    fleet_unlock(f);
}

static inline void assert_orderly(struct fleet *f)
{
    fleet_lock(f);
    assert_int_equal(f->disorder, 0);
    assert_int_equal(f->overlaps, 0);
    assert_int_equal(f->opens, f->closes);
    fleet_unlock(f);
}

#endif
