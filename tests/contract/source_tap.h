/* source_tap.h - a stream of a source, and what it says, for tests of sources. */
#ifndef WEIR_TESTS_CONTRACT_SOURCE_TAP_H
#define WEIR_TESTS_CONTRACT_SOURCE_TAP_H

#include "base/thread.h"
#include "client/contract/place.h"
#include "weir/source.h"

/* One stream, and what it was woken with. */
struct tap {
    struct weir_source *source;
    struct weir_stream *stream;
    struct weir__mutex lock;
    struct weir__cond changed;
    int wakes;
    int over; /* as it was told; 0: not yet */
};

static void tap_wake(void *user, int over)
{
    struct tap *t = user;

    weir__mutex_lock(&t->lock);
    t->wakes++;
    if (over != 0) t->over = over;
    weir__cond_broadcast(&t->changed);
    weir__mutex_unlock(&t->lock);
}

static const char *tap_owner = "tester";

static int tap_try(struct tap *t, struct weir_source *s, int64_t epoch, struct weir_position from)
{
    struct weir_stream_options o = {
        .position = from,
        .epoch = epoch,
        .owner = tap_owner,
        .bytes_max = 1 << 16,
        .metrics = true,
        .wake = tap_wake,
        .user = t,
    };

    t->source = s;
    weir__mutex_init(&t->lock);
    weir__cond_init(&t->changed);
    return s->ops->open(s, 0, &o, &t->stream, &err);
}

static void tap_open(struct tap *t, struct weir_source *s, int64_t epoch)
{
    assert_ok(tap_try(t, s, epoch, (struct weir_position){.from = WEIR_FROM_EARLIEST}));
}

static void tap_close(struct tap *t)
{
    t->source->ops->shut(t->stream);
    weir__cond_fini(&t->changed);
    weir__mutex_fini(&t->lock);
}

/* Waits until it was woken more often than that. */
static void tap_wait(struct tap *t, int wakes)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    bool in_time = true;

    weir__mutex_lock(&t->lock);
    while (t->wakes <= wakes && in_time)
        in_time = weir__cond_wait(&t->changed, &t->lock, deadline_ns);
    weir__mutex_unlock(&t->lock);
    if (!in_time) fail_msg("nobody woke the reader");
}

static int tap_wakes(struct tap *t)
{
    int wakes;

    weir__mutex_lock(&t->lock);
    wakes = t->wakes;
    weir__mutex_unlock(&t->lock);
    return wakes;
}

/* What a receive gives when it gives something, woken for it as often as it takes. */
static int tap_receive(struct tap *t, size_t max, struct weir_received *got)
{
    for (;;) {
        int wakes = tap_wakes(t);
        int rc = t->source->ops->receive(t->stream, max, got, &err);
        if (rc != WEIR_ETIMEDOUT) return rc;
        tap_wait(t, wakes);
    }
}

static void assert_tapped(struct tap *t, uint64_t sequence, const char *text)
{
    struct weir_received got;

    assert_ok(tap_receive(t, 1, &got));
    assert_int_equal(got.count, 1);
    assert_int_equal(got.events[0].sequence, sequence);
    assert_text(got.events[0].body, text);
}

static struct weir_source *source_of(struct weir *w)
{
    struct weir_source *s;

    assert_ok(weir_source_hub(&s, w, "h", NULL, &err));
    return s;
}

#endif
