/* threads_test.c - a log with its own threads, on the machine's file system: appenders that wait
 * and appenders that do not, readers at the tail and from the start, retention underneath. Meant
 * for the thread sanitizer as well. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/dice.h"
#include "support/history.h"
#include "support/simfs.h"
#include "support/tempdir.h"

#define PARTITIONS 6u
#define APPENDERS 4u
#define READERS 3u
#define BATCHES_EACH 400u
#define IN_FLIGHT_MAX 64u
#define BODY_BYTES_MAX 20000u
#define WAIT weir__deadline_ns(30000)

struct gate {
    struct weir__mutex lock;
    struct weir__cond change;
    bool shut;
    int waiting;
};

struct world {
    char root[TEMPDIR_BYTES];
    char dir[TEMPDIR_BYTES + 8];
    struct weir__log_options options;
    struct weir__log *log;
    struct history *history;
    struct weir__mutex lock; /* guards the rest */
    struct weir__cond change;
    uint64_t acked;
    bool done;
    struct simfs *disk; /* of the test that stalls it */
    struct gate gate;
    int failures;
    char first[600];
};

static void fail_world(struct world *w, const char *text, uint64_t n)
{
    weir__mutex_lock(&w->lock);
    if (w->failures++ == 0) snprintf(w->first, sizeof w->first, "%s (%" PRIu64 ")", text, n);
    weir__mutex_unlock(&w->lock);
}

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    if (tempdir_make(w->root) != 0) return -1;
    snprintf(w->dir, sizeof w->dir, "%s/log", w->root);
    w->options = (struct weir__log_options){
        .dir = w->dir,
        .hub_id = 5,
        .partitions = PARTITIONS,
        .batch_bytes_max = 64u << 10,
        .segment_bytes_min = 1u << 20,
        .segment_bytes_max = 1u << 20,
        .tail_bytes = 2u << 20,
        .retain_bytes = 8u << 20,
    };
    w->history = history_new(PARTITIONS);
    w->history->may_expire = true;
    w->history->keep_from_ms = INT64_MAX; /* by bytes, not by age */
    weir__mutex_init(&w->lock);
    weir__cond_init(&w->change);
    weir__mutex_init(&w->gate.lock);
    weir__cond_init(&w->gate.change);
    assert_int_equal(weir__log_create(&w->options, NULL), 0);
    assert_int_equal(weir__log_open(&w->log, &w->options, NULL), 0);
    *state = w;
    return 0;
}

static void swing(struct gate *g, bool shut)
{
    weir__mutex_lock(&g->lock);
    g->shut = shut;
    weir__cond_broadcast(&g->change);
    weir__mutex_unlock(&g->lock);
}

static int tear_down(void **state)
{
    struct world *w = *state;

    swing(&w->gate, false);
    weir__log_close(w->log, NULL);
    simfs_free(w->disk);
    weir__cond_fini(&w->gate.change);
    weir__mutex_fini(&w->gate.lock);
    weir__cond_fini(&w->change);
    weir__mutex_fini(&w->lock);
    history_free(w->history);
    tempdir_remove(w->root);
    test_free(w);
    return 0;
}

/* ---- appenders ---- */

struct appender {
    struct world *w;
    uint32_t number;
    struct weir__thread thread;
    uint64_t sent;
};

static void note_ack(void *user, size_t index, const struct weir__log_receipt *r)
{
    struct world *w = user;

    (void)index;
    (void)r;
    weir__mutex_lock(&w->lock);
    w->acked++;
    weir__cond_broadcast(&w->change);
    weir__mutex_unlock(&w->lock);
}

/* Even ones wait for each batch; odd ones flush when enough is on its way. Each has partitions of
 * its own, so that what it sends there stays in order. */
static void *run_appender(void *arg)
{
    struct appender *a = arg;
    struct world *w = a->w;
    uint64_t dice = a->number;

    for (a->sent = 0; a->sent < BATCHES_EACH; a->sent++) {
        struct history_order o = {
            .partition = a->number == 0 ? 4 + (uint32_t)dice_roll(&dice, 2) : a->number,
            .bytes = HISTORY_BODY_BYTES_MIN + (uint32_t)dice_roll(&dice, BODY_BYTES_MAX),
            .count = 1 + (uint32_t)dice_roll(&dice, 10),
        };
        int rc = a->number % 2 ? history_append(w->history, w->log, &o)
                               : history_append_wait(w->history, w->log, &o);

        if (rc == WEIR_EBUSY || a->sent % IN_FLIGHT_MAX == IN_FLIGHT_MAX - 1)
            rc = weir__log_flush(w->log, WAIT, NULL);
        if (rc != 0) fail_world(w, weir_error_name(rc), a->sent);
    }
    return NULL;
}

/* ---- readers ---- */

struct follower {
    struct world *w;
    uint32_t partition;
    struct weir__thread thread;
    uint64_t batches, missed;
};

static void wake_world(void *user)
{
    struct world *w = user;

    weir__mutex_lock(&w->lock);
    weir__cond_broadcast(&w->change);
    weir__mutex_unlock(&w->lock);
}

static void check_view(struct follower *f, const struct weir__log_view *v, uint64_t *next)
{
    uint8_t body[BODY_BYTES_MAX + HISTORY_BODY_BYTES_MIN];

    if (v->sequence != *next) fail_world(f->w, "a sequence out of order", v->sequence);
    *next = v->sequence + v->count;
    if (v->body.len < HISTORY_BODY_BYTES_MIN || v->body.len > sizeof body) {
        fail_world(f->w, "a body of a strange size", v->body.len);
        return;
    }
    history_body(weir__load64(v->body.at), f->partition, body, v->body.len);
    if (memcmp(body, v->body.at, v->body.len) != 0) fail_world(f->w, "other bytes", v->sequence);
    f->batches++;
}

static bool wait_for_more(struct follower *f, uint64_t seen)
{
    struct world *w = f->w;
    bool done;

    weir__mutex_lock(&w->lock);
    while (!w->done && w->acked == seen) weir__cond_wait(&w->change, &w->lock, INT64_MAX);
    done = w->done && w->acked == seen;
    weir__mutex_unlock(&w->lock);
    return !done;
}

static void *run_follower(void *arg)
{
    struct follower *f = arg;
    struct world *w = f->w;
    struct weir__log_watch watch = {.fn = wake_world, .user = w, .partition = f->partition};
    struct weir__log_view v[8];
    struct weir__log_reader *r = NULL;
    uint64_t next = 0, missed = 0, acked = 0;
    uint32_t count = 0;

    weir__log_watch(w->log, &watch);
    if (weir__log_reader_open(&r, w->log, f->partition, 0, 0, NULL) != 0)
        fail_world(w, "no reader", f->partition);
    while (r) {
        struct weir_error err = {0};
        int rc;

        weir__mutex_lock(&w->lock);
        acked = w->acked;
        weir__mutex_unlock(&w->lock);
        rc = weir__log_reader_next(r, v, 8, &count, &missed, &err);
        if (rc != 0) fail_world(w, err.text, next);
        if (rc != 0) break;
        next += missed;
        f->missed += missed;
        for (uint32_t i = 0; i < count; i++) check_view(f, &v[i], &next);
        if (count == 0 && !wait_for_more(f, acked)) break;
    }
    weir__log_reader_close(r);
    weir__log_unwatch(w->log, &watch);
    return NULL;
}

static void appenders_and_readers_side_by_side(void **state)
{
    struct world *w = *state;
    struct appender appenders[APPENDERS];
    struct follower followers[READERS];
    struct weir__log_stats stats;
    uint64_t read = 0;

    w->history->on_ack = note_ack;
    w->history->on_ack_user = w;
    for (uint32_t i = 0; i < READERS; i++) {
        followers[i] = (struct follower){.w = w, .partition = i + 2};
        assert_int_equal(weir__thread_start(&followers[i].thread, "reader", run_follower,
                                            &followers[i], NULL),
                         0);
    }
    for (uint32_t i = 0; i < APPENDERS; i++) {
        appenders[i] = (struct appender){.w = w, .number = i};
        assert_int_equal(weir__thread_start(&appenders[i].thread, "appender", run_appender,
                                            &appenders[i], NULL),
                         0);
    }
    for (uint32_t i = 0; i < APPENDERS; i++) weir__thread_join(&appenders[i].thread);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    weir__mutex_lock(&w->lock);
    w->done = true;
    weir__cond_broadcast(&w->change);
    weir__mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < READERS; i++) {
        weir__thread_join(&followers[i].thread);
        read += followers[i].batches;
    }
    if (w->failures > 0) fail_msg("%d failures, first: %s", w->failures, w->first);
    assert_true(read > 0);
    weir__log_stats(w->log, &stats);
    assert_int_equal(stats.batches, w->history->acked);

    assert_int_equal(weir__log_close(w->log, NULL), 0);
    assert_int_equal(weir__log_open(&w->log, &w->options, NULL), 0);
    history_check(w->history, w->log, true);
    if (w->history->violations > 0) fail_msg("%s", w->history->first);
    assert_int_equal(w->history->completed, w->history->count);
}

/* Closing with much on its way: every completion has run by the time it returns. */
static void close_waits_for_everything(void **state)
{
    struct world *w = *state;
    struct history_order o = {.partition = 1, .bytes = 900, .count = 1};

    for (int round = 0; round < 20; round++) {
        int sent = 0;

        while (sent < 40) sent += history_append(w->history, w->log, &o) == 0;
        assert_int_equal(weir__log_close(w->log, NULL), 0);
        w->log = NULL;
        assert_int_equal(w->history->completed, w->history->count);
        assert_int_equal(weir__log_open(&w->log, &w->options, NULL), 0);
    }
    history_check(w->history, w->log, true);
    if (w->history->violations > 0) fail_msg("%s", w->history->first);
    assert_int_equal(w->history->acked, 800);
}

/* ---- a disk that does not answer ---- */

/* Only a sync that comes behind a write of the same thread is held: a commit, and not the making of
 * a spare segment. */
static void hold_syncs(struct simfs *disk, enum simfs_call kind, bool entering, void *user)
{
    static _Thread_local enum simfs_call last;
    struct gate *g = user;
    bool hold = entering && kind == SIMFS_SYNC && last == SIMFS_WRITE;

    (void)disk;
    last = kind;
    if (!hold) return;
    weir__mutex_lock(&g->lock);
    g->waiting++;
    weir__cond_broadcast(&g->change);
    while (g->shut) weir__cond_wait(&g->change, &g->lock, INT64_MAX);
    g->waiting--;
    weir__mutex_unlock(&g->lock);
}

static void wait_until_held(struct gate *g)
{
    weir__mutex_lock(&g->lock);
    while (g->waiting == 0) weir__cond_wait(&g->change, &g->lock, INT64_MAX);
    weir__mutex_unlock(&g->lock);
}

/* A flush promises that batches are durable; their completions may still be running. */
static void wait_for_acks(struct world *w, uint64_t count)
{
    weir__mutex_lock(&w->lock);
    while (w->acked < count)
        if (!weir__cond_wait(&w->change, &w->lock, WAIT)) break;
    assert_int_equal(w->acked, count);
    weir__mutex_unlock(&w->lock);
}

/* Memory for what is not on disk is bounded: an appender is told to come back, not kept for ever,
 * and one that waits past its deadline learns that the outcome is unknown. */
static void stalled_disk_has_answers(void **state)
{
    struct world *w = *state;
    struct history_order o = {.partition = 1, .bytes = 60000, .count = 1};
    struct history_order patient = {.partition = 1, .bytes = 500, .count = 1, .wait_ms = 20000};
    uint8_t body[64] = {0};
    struct weir__log_batch late = {.count = 1, .body = {weir__bytes_of(body, sizeof body)}};
    int rc = 0, taken = 0;

    assert_int_equal(weir__log_close(w->log, NULL), 0);
    w->log = NULL;
    w->disk = simfs_new();
    w->options.fs = simfs_fs(w->disk);
    w->options.dir = "log";
    assert_int_equal(weir__log_create(&w->options, NULL), 0);
    assert_int_equal(weir__log_open(&w->log, &w->options, NULL), 0);
    w->history->on_ack = note_ack;
    w->history->on_ack_user = w;
    simfs_hook(w->disk, hold_syncs, &w->gate);
    swing(&w->gate, true);
    assert_int_equal(history_append(w->history, w->log, &o), 0);
    wait_until_held(&w->gate);
    while (rc == 0 && taken < 1000) taken += (rc = history_append(w->history, w->log, &o)) == 0;
    assert_int_equal(rc, WEIR_EBUSY);
    assert_in_range(taken, 1, 100);
    assert_int_equal(weir__log_append(w->log, &late, weir__deadline_ns(20), NULL, NULL, NULL),
                     WEIR_EBUSY);
    assert_int_equal(weir__log_flush(w->log, weir__deadline_ns(20), NULL), WEIR_ETIMEDOUT);
    swing(&w->gate, false);
    assert_int_equal(weir__log_flush(w->log, WAIT, NULL), 0);
    wait_for_acks(w, 1 + (uint64_t)taken);

    assert_int_equal(history_append_wait(w->history, w->log, &o), 0); /* there is room again */
    swing(&w->gate, true);
    assert_int_equal(history_append(w->history, w->log, &patient), 0);
    wait_until_held(&w->gate);
    assert_int_equal(weir__log_append_wait(w->log, &late, weir__deadline_ns(20), NULL, NULL),
                     WEIR_EUNKNOWN);
    swing(&w->gate, false);
    assert_int_equal(weir__log_close(w->log, NULL), 0);
    w->log = NULL;
    assert_int_equal(w->history->completed, w->history->count);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(appenders_and_readers_side_by_side),
        CASE(close_waits_for_everything),
        CASE(stalled_disk_has_answers),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
