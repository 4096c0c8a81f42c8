/* stage_world.h - what stage.h stands on: the clock, a source of events in memory, and a store that
 * writes down when it is called. */
#ifndef WEIR_TESTS_PROCESSOR_STAGE_WORLD_H
#define WEIR_TESTS_PROCESSOR_STAGE_WORLD_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/allocs.h"
#include "weir/processor.h"

#define STAGE_BEAT_MS 1000
#define STAGE_PARTITIONS 300
#define STAGE_LOG 8192
#define STAGE_LOOKS_MAX 1000000
#define STAGE_LAST_STEPS 50 /* for what is due at one moment */

struct weir_stream {
    uint32_t partition;
    uint64_t next;
    struct weir_event *hand;
};

static struct stage {
    struct weir_source source;
    struct weir_store *store;
    const struct weir_store_ops *behind; /* the store's own */
    struct weir_store_ops ops;
    struct weir_processor_options options;
    struct weir_processor *processor;
    struct weir_scope scope;
    int64_t now_ns, zero_ms;
    int looks; /* at the clock, since it moved */

    /* The source. */
    uint32_t partitions;
    uint64_t end[STAGE_PARTITIONS]; /* events that are there */
    int count_rc, open_rc, receive_rc;
    uint64_t missed;                   /* before the next events */
    int counts, opens, shuts;          /* calls */
    struct weir_stream_options opened; /* the last */
    void *users[STAGE_PARTITIONS];     /* to be woken */

    /* The program; act may be NULL. */
    int (*act)(struct weir_partition *, const struct weir_event *, size_t);
    int rc, open_handler_rc;
    int letter_refusals;

    /* The store. */
    int store_rc, mark_rc;
    bool corrupt; /* records cannot be understood */

    char log[STAGE_LOG], told[STAGE_LOG], calls[STAGE_LOG];
} s;

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    (void)id;
    if (++s.looks > STAGE_LOOKS_MAX) {
        fputs("it looks at the clock again and again, and does not wait\n", stderr);
        abort();
    }
    out->tv_sec = (time_t)(s.now_ns / 1000000000);
    out->tv_nsec = (long)(s.now_ns % 1000000000);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    int64_t until_ns = (int64_t)until->tv_sec * 1000000000 + until->tv_nsec;

    (void)c, (void)m;
    if (until_ns > s.now_ns) s.now_ns = until_ns;
    s.looks = 0;
    return ETIMEDOUT;
}

static inline int64_t stage_ms(void)
{
    return s.now_ns / 1000000 - s.zero_ms;
}

/* What was written down is forgotten, and it is 0 ms. */
static inline void stage_clear(void)
{
    s.log[0] = s.told[0] = s.calls[0] = '\0';
    s.zero_ms = s.now_ns / 1000000;
}

__attribute__((format(printf, 2, 3))) static inline void stage_note(char *log, const char *fmt, ...)
{
    size_t len = strlen(log);
    va_list args;

    va_start(args, fmt);
    vsnprintf(log + len, STAGE_LOG - len, fmt, args);
    va_end(args);
}

static inline void expect_log(const char *log)
{
    assert_string_equal(s.log, log);
    s.log[0] = '\0';
}

static inline void expect_told(const char *told)
{
    assert_string_equal(s.told, told);
    s.told[0] = '\0';
}

static inline void expect_calls(const char *calls)
{
    assert_string_equal(s.calls, calls);
    s.calls[0] = '\0';
}

/* ---- the source ---- */

static inline int stage_count(struct weir_source *source, uint32_t *out, struct weir_error *err)
{
    (void)source;
    s.counts++;
    if (s.count_rc != 0) return weir__fail(err, s.count_rc, "not counted");
    *out = s.partitions;
    return 0;
}

static inline int stage_open(struct weir_source *source, uint32_t partition,
                             const struct weir_stream_options *o, struct weir_stream **out,
                             struct weir_error *err)
{
    (void)source;
    s.opened = *o;
    s.users[partition] = o->user;
    s.opens++;
    if (s.open_rc != 0) return weir__fail(err, s.open_rc, "not opened");
    allocs_pause(); /* what fails is the copy's */
    *out = calloc(1, sizeof **out);
    allocs_resume();
    assert_non_null(*out);
    (*out)->partition = partition;
    if (o->position.from == WEIR_FROM_SEQUENCE)
        (*out)->next = (uint64_t)o->position.value + (o->position.after ? 1 : 0);
    return 0;
}

static inline int stage_receive(struct weir_stream *stream, size_t max, struct weir_received *out,
                                struct weir_error *err)
{
    uint64_t left = s.end[stream->partition] - stream->next;

    *out = (struct weir_received){0};
    if (s.receive_rc != 0) return weir__fail(err, s.receive_rc, "not received");
    if (left == 0) return weir__fail(err, WEIR_ETIMEDOUT, "nothing there");
    out->count = left < max ? left : max;
    free(stream->hand);
    allocs_pause();
    out->events = stream->hand = calloc(out->count, sizeof *stream->hand);
    allocs_resume();
    assert_non_null(stream->hand);
    for (size_t i = 0; i < out->count; i++)
        stream->hand[i] =
            (struct weir_event){.partition = stream->partition,
                                .sequence = stream->next + i,
                                .offset = (stream->next + i) * 100,
                                .enqueued_time_ms = 5000 + (int64_t)(stream->next + i)};
    out->missed = s.missed;
    s.missed = 0;
    stream->next += out->count;
    return 0;
}

static inline void stage_tail(struct weir_stream *stream, struct weir_partition_tail *out)
{
    uint64_t last = s.end[stream->partition] - 1;

    *out = (struct weir_partition_tail){.known = s.opened.metrics,
                                        .last_sequence = last,
                                        .last_time_ms = 5000 + (int64_t)last};
}

static inline void stage_shut(struct weir_stream *stream)
{
    if (!stream) return;
    s.shuts++;
    free(stream->hand);
    free(stream);
}

static inline void stage_close_source(struct weir_source *source)
{
    (void)source;
}

/* Events that are there now; the copy is woken as a hub wakes it. */
static inline void stage_publish(uint32_t partition, uint64_t count)
{
    s.end[partition] += count;
    s.opened.wake(s.users[partition], 0);
}

static const struct weir_source_ops stage_source_ops = {
    .version = WEIR_SOURCE_VERSION,
    .count = stage_count,
    .open = stage_open,
    .receive = stage_receive,
    .tail = stage_tail,
    .shut = stage_shut,
    .close = stage_close_source,
};

/* ---- the store ---- */

static inline int stage_call(const char *what, struct weir_error *err)
{
    stage_note(s.calls, "%" PRId64 " %s ", stage_ms(), what);
    return s.store_rc == 0 ? 0 : weir__fail(err, s.store_rc, "nobody answers");
}

static inline int stage_beat(struct weir_store *store, const struct weir_scope *scope,
                             const struct weir_member *m, struct weir_error *err)
{
    int rc = stage_call(m->weight == 0 ? "beat0" : "beat", err);

    s.scope = *scope;
    return rc != 0 ? rc : s.behind->beat(store, scope, m, err);
}

static inline int stage_leave(struct weir_store *store, const struct weir_scope *scope,
                              const struct weir_member *m, struct weir_error *err)
{
    int rc = stage_call("leave", err);

    return rc != 0 ? rc : s.behind->leave(store, scope, m, err);
}

static inline int stage_read(struct weir_store *store, const struct weir_scope *scope,
                             struct weir_view *v, struct weir_error *err)
{
    int rc = stage_call("read", err);

    if (rc == 0) rc = s.behind->read(store, scope, v, err);
    for (size_t i = 0; rc == 0 && i < v->record_count; i++)
        v->records[i].rc = s.corrupt ? WEIR_ECORRUPT : 0;
    return rc;
}

static inline int stage_claim(struct weir_store *store, const struct weir_scope *scope,
                              const struct weir_record *expected, const char *owner,
                              uint64_t instance, struct weir_record *out, struct weir_error *err)
{
    int rc = stage_call("claim", err);

    return rc != 0 ? rc : s.behind->claim(store, scope, expected, owner, instance, out, err);
}

static inline int stage_mark(struct weir_store *store, const struct weir_scope *scope,
                             const char *owner, struct weir_mark *marks, size_t count,
                             struct weir_error *err)
{
    char what[32];
    int rc;

    snprintf(what, sizeof what, "mark%zu", count);
    rc = stage_call(what, err);
    if (rc == 0 && s.mark_rc != 0) rc = weir__fail(err, s.mark_rc, "not marked");
    return rc != 0 ? rc : s.behind->mark(store, scope, owner, marks, count, err);
}

#endif
