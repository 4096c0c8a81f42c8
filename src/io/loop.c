#include "io/loop.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/descriptor.h"
#include "io/descriptors.h"
#include "io/state.h"

#define TIMERS_PER_TURN 1024

struct weir__loops {
    struct weir__loops_options options;
    struct weir__mutex starting; /* held until every thread's fields are written */
    unsigned count;
    unsigned open; /* of them, initialised */
    struct weir__loop loops[];
};

#define LOOP_DESCRIPTORS 8 /* more than libuv opens for one, with those it keeps for all */

static int fail_uv(struct weir_error *err, int rc, const char *what)
{
    return weir__fail(err, rc == UV_ENOMEM ? WEIR_ENOMEM : WEIR_EIO, "%s: %s", what,
                      uv_strerror(rc));
}

static void on_wake(uv_async_t *a)
{
    weir__loop_begin_turn(a->data); /* the mailbox is looked into after every poll */
}

static void on_alarm(uv_timer_t *t)
{
    uv_stop(t->loop); /* it may ring before the poll, which must not wait then */
}

static void begin_stop(void *arg)
{
    ((struct weir__loop *)arg)->stopping = true;
}

bool weir__loop_here(const struct weir__loop *l)
{
    return pthread_equal(l->thread.t, pthread_self());
}

/* When a part of a turn that begins now has to end: with the turn, or a little later. */
static int64_t end_of_part_ns(const struct weir__loop *l)
{
    int64_t ns = weir__loop_turn_ns(l) + WEIR__LOOP_PART_NS;

    return ns > WEIR__LOOP_TURN_NS ? ns : WEIR__LOOP_TURN_NS;
}

static void expire_timers(struct weir__loop *l)
{
    int64_t now = weir__loop_now_ms(l), until_ns = end_of_part_ns(l);
    struct weir__timer *t;

    l->expiring_ms = now;
    for (int i = 0; i < TIMERS_PER_TURN && (t = weir__timers_due(&l->timers, now)); i++) {
        l->active = true;
        t->fn(t->arg);
        if (weir__loop_turn_ns(l) >= until_ns) break;
    }
    l->expiring_ms = INT64_MIN;
}

static void run_mail(struct weir__loop *l)
{
    int64_t until_ns = end_of_part_ns(l);
    struct weir__post *p;

    for (int i = 0; i < WEIR__LOOP_POSTS_PER_TURN && (p = weir__mailbox_take(&l->mail)); i++) {
        l->active = true;
        p->fn(p->arg);
        if (weir__loop_turn_ns(l) >= until_ns) break;
    }
}

/* What waits in a list now, and not what is put there meanwhile. false: the time was over before. */
static bool run_posts(struct weir__loop *l, struct weir__posts *list, int64_t until_ns)
{
    struct weir__post *p;

    for (size_t left = list->count; left && (p = weir__posts_take(list)); left--) {
        p->fn(p->arg);
        if (weir__loop_turn_ns(l) >= until_ns) return false;
    }
    return true;
}

static void run_late(struct weir__loop *l)
{
    if (l->late.first) run_posts(l, &l->late, end_of_part_ns(l));
}

/* Each round runs what waited when it began; what they defer is the next round. */
static void run_deferred(struct weir__loop *l)
{
    int64_t until_ns = l->deferred.first ? end_of_part_ns(l) : 0;

    for (int round = 0; round < WEIR__LOOP_FLUSHES_PER_TURN && l->deferred.first; round++)
        if (!run_posts(l, &l->deferred, until_ns)) return;
}

static void evict_residents(struct weir__loop *l)
{
    struct weir__resident *r, *next;

    for (r = l->residents; r; r = next) {
        next = r->next;
        r->evict(r->arg);
    }
}

static void set_alarm(struct weir__loop *l)
{
    int64_t next = weir__timers_next(&l->timers), now = weir__loop_now_ms(l);

    if (next == l->alarm_ms) return;
    l->alarm_ms = next;
    if (next == INT64_MAX)
        uv_timer_stop(&l->alarm);
    else
        uv_timer_start(&l->alarm, on_alarm, next > now ? (uint64_t)(next - now) : 0, 0);
}

/* Whether the next poll may wait. Nobody has to wake a loop that stays awake. */
static bool may_rest(struct weir__loop *l)
{
    if (l->deferred.first || l->late.first || l->stopping) return false;
    if (l->expected == 1 && l->soon && weir__mono_ns() - l->idle_ns < WEIR__LOOP_AWAKE_NS) {
        sched_yield();
        return false;
    }
    return weir__mailbox_rest(&l->mail);
}

void weir__loop_expect_mail(struct weir__loop *l, int more)
{
    assert(weir__loop_here(l));
    l->expected += more;
}

static void do_turn(struct weir__loop *l)
{
    const struct weir__loops_options *o = &l->all->options;

    l->turn++;
    if (may_rest(l)) {
        uv_run(&l->uv, UV_RUN_ONCE);
        weir__mailbox_wake(&l->mail);
    } else {
        uv_run(&l->uv, UV_RUN_NOWAIT);
    }
    weir__loop_begin_turn(l);
    /* An alarm that rang is not set any more. */
    if (weir__loop_now_ms(l) >= l->alarm_ms) l->alarm_ms = INT64_MIN;
    expire_timers(l);
    run_mail(l);
    run_late(l);
    if (o->turn) o->turn(o->user, l);
    if (l->stopping) evict_residents(l);
    run_deferred(l);
    set_alarm(l);
    weir__loop_end_turn(l);
}

/* Turns go on behind the closed mailbox until the last posts have run, and whatever these brought
 * to life has gone again. */
static void *run_loop(void *arg)
{
    struct weir__loop *l = arg;

    weir__mutex_lock(&l->all->starting);
    weir__mutex_unlock(&l->all->starting);
    while (!l->stopping || l->residents) do_turn(l);
    weir__mailbox_close(&l->mail);
    do {
        do_turn(l);
    } while (l->residents || l->mail.posts.first || l->deferred.first || l->late.first);
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->alarm, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    return NULL;
}

static int open_loop(struct weir__loops *all, unsigned index, struct weir_error *err)
{
    struct weir__loop *l = &all->loops[index];
    struct weir__descriptors_held held;
    int rc;

    if (!weir__descriptors_left(LOOP_DESCRIPTORS)) /* libuv would abort */
        return weir__fail_errno(err, EMFILE, "making a loop");
    weir__descriptors_hold(&held); /* libuv takes what it is given */
    rc = uv_loop_init(&l->uv);
    weir__descriptors_release(&held);
    if (rc != 0) return fail_uv(err, rc, "making a loop");
    rc = uv_async_init(&l->uv, &l->wake, on_wake);
    if (rc != 0) {
        uv_loop_close(&l->uv);
        return fail_uv(err, rc, "making a loop");
    }
    l->wake.data = l;
    uv_timer_init(&l->uv, &l->alarm);
    l->alarm_ms = INT64_MAX;
    l->expiring_ms = INT64_MIN;
    l->all = all;
    l->index = index;
    weir__mailbox_init(&l->mail);
    weir__post_init(&l->stop, begin_stop, l);
    all->open++;
    return 0;
}

/* A loop whose thread never began has only its own two handles to close. */
static void close_loop(struct weir__loop *l)
{
    int rc;

    if (!uv_is_closing((uv_handle_t *)&l->wake)) {
        uv_close((uv_handle_t *)&l->wake, NULL);
        uv_close((uv_handle_t *)&l->alarm, NULL);
        uv_run(&l->uv, UV_RUN_DEFAULT);
    }
    rc = uv_loop_close(&l->uv);
    assert(rc == 0);
    (void)rc;
    weir__mailbox_fini(&l->mail);
}

static int start_threads(struct weir__loops *all, struct weir_error *err)
{
    char name[24];
    int rc = 0;

    weir__mutex_lock(&all->starting);
    for (unsigned i = 0; i < all->count && rc == 0; i++) {
        snprintf(name, sizeof name, "weir-loop-%u", i);
        rc = weir__thread_start(&all->loops[i].thread, name, run_loop, &all->loops[i], err);
    }
    weir__mutex_unlock(&all->starting);
    return rc;
}

int weir__loops_start(struct weir__loops **out, const struct weir__loops_options *o,
                      struct weir_error *err)
{
    unsigned count = o && o->count ? o->count : uv_available_parallelism();
    struct weir__loops *all = NULL;
    int rc = WEIR_EINVAL;

    *out = NULL;
    if (count > WEIR__LOOPS_MAX)
        return weir__fail(err, rc, "%u loops, at most %d", count, WEIR__LOOPS_MAX);
    all = calloc(1, sizeof *all + count * sizeof all->loops[0]);
    if (!all) return weir__fail(err, WEIR_ENOMEM, "%u loops: out of memory", count);
    if (o) all->options = *o;
    all->count = count;
    weir__mutex_init(&all->starting);
    for (unsigned i = 0; i < count; i++)
        if ((rc = open_loop(all, i, err)) != 0) goto fail;
    rc = start_threads(all, err);
    if (rc != 0) goto fail;
    *out = all;
    return 0;
fail:
    weir__loops_free(all);
    return rc;
}

void weir__loops_stop(struct weir__loops *all)
{
    for (unsigned i = 0; i < all->open; i++)
        if (all->loops[i].thread.running) weir__loop_post(&all->loops[i], &all->loops[i].stop);
    for (unsigned i = 0; i < all->open; i++) weir__thread_join(&all->loops[i].thread);
}

void weir__loops_free(struct weir__loops *all)
{
    if (!all) return;
    weir__loops_stop(all);
    for (unsigned i = 0; i < all->open; i++) close_loop(&all->loops[i]);
    weir__mutex_fini(&all->starting);
    free(all);
}

unsigned weir__loops_count(const struct weir__loops *all)
{
    return all->count;
}

struct weir__loop *weir__loops_at(struct weir__loops *all, unsigned index)
{
    assert(index < all->count);
    return &all->loops[index];
}

unsigned weir__loop_index(const struct weir__loop *l)
{
    return l->index;
}

int weir__loop_post(struct weir__loop *l, struct weir__post *p)
{
    bool wake = false;
    int rc = weir__mailbox_put(&l->mail, p, &wake);

    if (wake) uv_async_send(&l->wake);
    return rc;
}

void weir__loop_unpost(struct weir__loop *l, struct weir__post *p)
{
    assert(weir__loop_here(l));
    weir__mailbox_drop(&l->mail, p);
}

void weir__loop_defer(struct weir__loop *l, struct weir__post *p)
{
    assert(weir__loop_here(l));
    weir__posts_put(&l->deferred, p);
}

void weir__loop_put_off(struct weir__loop *l, struct weir__post *p)
{
    assert(weir__loop_here(l));
    weir__posts_put(&l->late, p);
}

int64_t weir__loop_now_ms(const struct weir__loop *l)
{
    return (int64_t)uv_now(&l->uv);
}

void weir__loop_timer_start(struct weir__loop *l, struct weir__timer *t, int64_t at_ms)
{
    assert(weir__loop_here(l));
    /* One that is set again for now has its turn after all others. */
    if (at_ms <= l->expiring_ms) at_ms = l->expiring_ms + 1;
    if (at_ms == INT64_MAX)
        weir__timers_stop(&l->timers, t);
    else
        weir__timers_start(&l->timers, t, at_ms);
}

void weir__loop_timer_stop(struct weir__loop *l, struct weir__timer *t)
{
    assert(weir__loop_here(l));
    weir__timers_stop(&l->timers, t);
}

void weir__loop_enter(struct weir__loop *l, struct weir__resident *r)
{
    r->in = true;
    r->prev = NULL;
    r->next = l->residents;
    if (r->next) r->next->prev = r;
    l->residents = r;
}

void weir__loop_leave(struct weir__loop *l, struct weir__resident *r)
{
    if (!r->in) return;
    if (r->prev)
        r->prev->next = r->next;
    else
        l->residents = r->next;
    if (r->next) r->next->prev = r->prev;
    r->in = false;
}
