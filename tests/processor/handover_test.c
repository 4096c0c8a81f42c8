/* handover_test.c - several copies in one process, and what goes wrong among them: handing over
 * under load, handlers that hang, stolen places, a store that does not answer. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processor/fleet.h"

/* A thread that publishes to all partitions, in small batches, until it is told to stop. */
struct load {
    struct fleet *fleet;
    struct weir__thread thread;
    atomic_bool stop;
    uint64_t sent; /* to each partition */
};

static void *publish_on(void *arg)
{
    struct load *l = arg;

    while (!atomic_load(&l->stop) && l->sent + 20 < EVENTS_MAX) {
        publish_all(l->fleet, 20);
        l->sent += 20;
    }
    return NULL;
}

static void load_start(struct load *l, struct fleet *f)
{
    l->fleet = f;
    assert_ok(weir__thread_start(&l->thread, "load", publish_on, l, &err));
}

static void load_stop(struct load *l)
{
    atomic_store(&l->stop, true);
    weir__thread_join(&l->thread);
}

static uint32_t owned(struct copy *c)
{
    struct weir_processor_stats stats;

    weir_processor_stats(c->processor, &stats);
    return stats.owned;
}

static void await_owned(struct fleet *f, struct copy *c, uint32_t count)
{
    fleet_await(f, owned(c) == count);
}

/* Copies come and go while events pour in; every batch is marked. Nothing is given twice, nothing is
 * left out, and never do two copies have a partition open. */
static void hand_overs_repeat_nothing(void **state)
{
    struct fleet *f = fleet_new(4);
    struct copy first = {0};
    struct load load = {0};

    (void)state;
    load_start(&load, f);
    copy_start(&first, f);
    await_owned(f, &first, 4);
    for (int i = 0; i < 5; i++) {
        struct copy other = {0};
        copy_start(&other, f);
        await_owned(f, &other, 2);
        fleet_await(f, other.own_opens == 2 &&
                           f->inside[0] + f->inside[1] + f->inside[2] + f->inside[3] == 4);
        copy_stop(&other);
        await_owned(f, &first, 4);
    }
    load_stop(&load);
    fleet_await(f, f->total >= 4 * load.sent);
    copy_stop(&first);
    for (uint32_t i = 0; i < 4; i++) assert_given(f, i, 0, load.sent, 1);
    assert_int_equal(f->total, 4 * load.sent);
    assert_int_equal(f->reasons[WEIR_CLOSED_MOVED], 10);
    assert_int_equal(f->reasons[WEIR_CLOSED_LOST], 0);
    assert_orderly(f);
    fleet_free(f);
}

/* ---- handlers that hang ---- */

struct hanging {
    atomic_bool go;
    atomic_int inside;
    atomic_int mark; /* what the first mark after it gave; 1: not tried */
    atomic_bool revoked;
    int64_t revoked_ns; /* when it saw that */
};

static int hang(struct copy *c, struct weir_partition *p, const struct weir_event *e, size_t n)
{
    struct hanging *w = c->with;
    int not_tried = 1;

    (void)e, (void)n;
    if (weir_partition_id(p) != 0) return weir_checkpoint(p, NULL);
    atomic_fetch_add(&w->inside, 1);
    fleet_lock(c->fleet);
    while (!atomic_load(&w->go)) {
        weir__cond_wait(&c->fleet->changed, &c->fleet->lock, weir__deadline_ns(1));
        if (weir_partition_revoked(p) && !atomic_load(&w->revoked)) {
            w->revoked_ns = weir__mono_ns();
            atomic_store(&w->revoked, true);
        }
    }
    fleet_unlock(c->fleet);
    atomic_compare_exchange_strong(&w->mark, &not_tried, weir_checkpoint(p, NULL));
    atomic_fetch_sub(&w->inside, 1);
    return 0;
}

static void let_go(struct fleet *f, struct hanging *w)
{
    fleet_lock(f);
    atomic_store(&w->go, true);
    fleet_unlock(f);
}

/* The thread is left behind, its mark is refused, and the rest is closed in order. */
static void stop_with_a_hanging_handler(void)
{
    struct fleet *f = fleet_new(2);
    struct hanging with = {.mark = 1};
    struct copy a = {.act = hang, .with = &with};
    int64_t began_ns;

    publish_all(f, 5);
    copy_start(&a, f);
    fleet_await(f, atomic_load(&with.inside) == 1 && f->next[1] == 5);
    began_ns = weir__mono_ns();
    assert_int_equal(weir_processor_stop(a.processor, 400, &err), WEIR_ETIMEDOUT);
    assert_string_equal(err.text, "1 handler did not return in time");
    assert_in_range((weir__mono_ns() - began_ns) / 1000000, 300, 5000);
    assert_int_equal(f->reasons[WEIR_CLOSED_SHUTDOWN], 1);
    let_go(f, &with);
    fleet_await(f, atomic_load(&with.mark) != 1 && atomic_load(&with.inside) == 0);
    assert_int_equal(atomic_load(&with.mark), WEIR_EFENCED);
    assert_int_equal(f->closes, 1);
    assert_int_equal(weir_close(f->weir, &err), WEIR_EBUSY); /* its receiver is still open */
    copy_close(&a);
    tempdir_remove(f->dir);
}

/* What the hanging handler holds is never freed: that is for a process of its own. */
static void stop_does_not_wait_for_ever(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        stop_with_a_hanging_handler();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What was told last is about a handler that runs for longer than `ms`; so it ends. */
static void assert_overdue(struct fleet *f, long long ms, const char *end)
{
    long long running_ms = 0;
    unsigned partition;
    int len = 0;

    fleet_lock(f);
    assert_int_equal(f->last_code, WEIR_ETIMEDOUT);
    sscanf(f->last_error, "handling: the handler of partition %u has been running for %lld ms%n",
           &partition, &running_ms, &len);
    if (len == 0 || strcmp(f->last_error + len, end) != 0) fail_msg("%s", f->last_error);
    assert_in_range(running_ms, ms, PATIENCE_MS);
    fleet_unlock(f);
}

static void a_slow_handler_is_reported(void **state)
{
    struct fleet *f = fleet_new(2);
    struct hanging with = {.mark = 1};
    struct copy a = {.act = hang, .with = &with};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;

    (void)state;
    o.handler_ms = 30;
    publish_all(f, 5);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->errors[WEIR_HANDLING] == 1);
    assert_overdue(f, 30, "");
    let_go(f, &with);
    fleet_await(f, atomic_load(&with.mark) == 0);
    weir_processor_stats(a.processor, &stats);
    assert_int_equal(stats.overdue, 1);
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

static void wait_for_go(struct copy *c)
{
    struct hanging *w = c->with;

    fleet_lock(c->fleet);
    while (!atomic_load(&w->go))
        weir__cond_wait(&c->fleet->changed, &c->fleet->lock, weir__deadline_ns(LOOK_MS));
    fleet_unlock(c->fleet);
}

static int hang_in_open(struct weir_partition *p, void **state, void *user)
{
    wait_for_go(user);
    return on_open(p, state, user);
}

/* Any call of the program, not only one with events. */
static void a_slow_open_is_reported(void **state)
{
    struct fleet *f = fleet_new(1);
    struct hanging with = {.mark = 1};
    struct copy a = {.with = &with};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.handler_ms = 30;
    o.handler.open = hang_in_open;
    publish_all(f, 5);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->errors[WEIR_HANDLING] == 1);
    assert_overdue(f, 30, "");
    let_go(f, &with);
    fleet_await(f, f->next[0] == 5);
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

static void hang_in_close(struct weir_partition *p, enum weir_close_reason reason, void *user)
{
    wait_for_go(user);
    on_close(p, reason, user);
}

static int give_away(struct copy *c, struct weir_partition *p, const struct weir_event *e, size_t n)
{
    (void)c, (void)e, (void)n;
    weir_partition_release(p);
    return 0;
}

static int hang_in_letter(struct weir_partition *p, const struct weir_event *e,
                          const struct weir_error *why, void *user)
{
    (void)p, (void)e, (void)why;
    wait_for_go(user);
    return 0;
}

static int refuse_all(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                      size_t n)
{
    (void)c, (void)p, (void)e, (void)n;
    return -1;
}

static void a_slow_close_is_reported(void **state)
{
    struct fleet *f = fleet_new(1);
    struct hanging with = {.mark = 1};
    struct copy a = {.act = give_away, .with = &with};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.handler_ms = 30;
    o.handler.close = hang_in_close;
    publish_all(f, 1);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->errors[WEIR_HANDLING] == 1);
    assert_overdue(f, 30, "");
    assert_int_equal(f->closes, 0);
    let_go(f, &with);
    fleet_await(f, f->reasons[WEIR_CLOSED_RELEASED] == 1);
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

static void a_slow_dead_letter_is_reported(void **state)
{
    struct fleet *f = fleet_new(1);
    struct hanging with = {.mark = 1};
    struct copy a = {.act = refuse_all, .with = &with};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;

    (void)state;
    o.handler_ms = 30;
    o.failure = WEIR_DEAD_LETTER;
    o.attempts = 1;
    o.dead_letter = hang_in_letter;
    publish_all(f, 1);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->last_code == WEIR_ETIMEDOUT);
    assert_overdue(f, 30, "");
    let_go(f, &with);
    fleet_await(f, (weir_processor_stats(a.processor, &stats), stats.dead_letters == 1));
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

/* By the policy the partition is taken from the handler that hangs. What that marks is refused, and
 * no other call comes before it has returned. */
static void a_slow_handler_loses_its_partition(void **state)
{
    struct fleet *f = fleet_new(2);
    struct hanging with = {.mark = 1};
    struct copy a = {.act = hang, .with = &with};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.handler_ms = 30;
    o.overdue = WEIR_OVERDUE_RELEASE;
    publish_all(f, 5);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->errors[WEIR_HANDLING] == 1 && atomic_load(&with.revoked));
    assert_overdue(f, 30, ": the partition is given away");
    publish(f, 1, 5);
    fleet_await(f, f->next[1] == 10);
    assert_int_equal(f->closes, 0);
    let_go(f, &with);
    fleet_await(f, f->reasons[WEIR_CLOSED_RELEASED] == 1);
    assert_int_equal(atomic_load(&with.mark), WEIR_EFENCED);
    fleet_await(f, f->times[0][4] == 2); /* again, as nothing was marked */
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

/* ---- stolen ---- */

/* Somebody takes the place with a higher epoch while the handler runs: it is told within 50 ms (here
 * with room for a loaded machine), and as the store still says that the partition is ours, it is read
 * on once the thief has gone. */
static void a_stolen_place_is_told_at_once(void **state)
{
    struct fleet *f = fleet_new(1);
    struct hanging with = {.mark = 1};
    struct copy a = {.act = hang, .with = &with};
    struct weir_receiver_options o = {.size = sizeof o, .exclusive = true, .epoch = 1000};
    struct weir_receiver *thief;
    int64_t stolen_ns;

    (void)state;
    publish(f, 0, 5);
    copy_start(&a, f);
    fleet_await(f, atomic_load(&with.inside) == 1);
    stolen_ns = weir__mono_ns();
    assert_ok(weir_receiver_open(&thief, f->weir, "h", 0, &o, &err));
    fleet_await(f, atomic_load(&with.revoked));
    assert_in_range((with.revoked_ns - stolen_ns) / 1000000, 0, 500);
    weir_receiver_close(thief);
    let_go(f, &with);
    publish(f, 0, 5);
    fleet_await(f, f->next[0] == 10);
    copy_stop(&a);
    assert_int_equal(f->opens, 1);
    assert_int_equal(f->reasons[WEIR_CLOSED_SHUTDOWN], 1);
    fleet_free(f);
}

/* ---- a store that does not answer ---- */

/* Stands before another store; while `silent` it fails every call. */
struct wall {
    struct weir_store base;
    struct weir_store *behind;
    atomic_bool silent;
};

static int silence(struct weir_store *s, struct weir_error *why)
{
    if (!atomic_load(&((struct wall *)s)->silent)) return 0;
    why->code = WEIR_EUNREACHABLE;
    snprintf(why->text, sizeof why->text, "nobody answers");
    return WEIR_EUNREACHABLE;
}

#define BEHIND(s) (((struct wall *)(s))->behind)

static int wall_beat(struct weir_store *s, const struct weir_scope *scope,
                     const struct weir_member *m, struct weir_error *why)
{
    int rc = silence(s, why);

    return rc ? rc : BEHIND(s)->ops->beat(BEHIND(s), scope, m, why);
}

static int wall_leave(struct weir_store *s, const struct weir_scope *scope,
                      const struct weir_member *m, struct weir_error *why)
{
    int rc = silence(s, why);

    return rc ? rc : BEHIND(s)->ops->leave(BEHIND(s), scope, m, why);
}

static int wall_read(struct weir_store *s, const struct weir_scope *scope, struct weir_view *v,
                     struct weir_error *why)
{
    int rc = silence(s, why);

    return rc ? rc : BEHIND(s)->ops->read(BEHIND(s), scope, v, why);
}

static int wall_claim(struct weir_store *s, const struct weir_scope *scope,
                      const struct weir_record *expected, const char *owner, uint64_t instance,
                      struct weir_record *out, struct weir_error *why)
{
    int rc = silence(s, why);

    return rc ? rc : BEHIND(s)->ops->claim(BEHIND(s), scope, expected, owner, instance, out, why);
}

static int wall_mark(struct weir_store *s, const struct weir_scope *scope, const char *owner,
                     struct weir_mark *marks, size_t count, struct weir_error *why)
{
    int rc = silence(s, why);

    return rc ? rc : BEHIND(s)->ops->mark(BEHIND(s), scope, owner, marks, count, why);
}

static int wall_set(struct weir_store *s, const struct weir_scope *scope, uint32_t partition,
                    const struct weir_mark *mark, struct weir_error *why)
{
    int rc = silence(s, why);

    return rc ? rc : BEHIND(s)->ops->set(BEHIND(s), scope, partition, mark, why);
}

static void wall_close(struct weir_store *s)
{
    weir_store_close(BEHIND(s));
}

static const struct weir_store_ops wall_ops = {
    .version = WEIR_STORE_VERSION,
    .beat = wall_beat,
    .leave = wall_leave,
    .read = wall_read,
    .claim = wall_claim,
    .mark = wall_mark,
    .set = wall_set,
    .close = wall_close,
};

static void wall_put(struct wall *w, struct copy *c)
{
    w->base.ops = &wall_ops;
    w->behind = c->store;
    c->store = &w->base;
}

/* Nothing moves, reading goes on, marks are held back and caught up with. */
static void a_silent_store_moves_nothing(void **state)
{
    struct fleet *f = fleet_new(4);
    struct copy a = {0}, b = {0};
    struct wall wall_a = {0}, wall_b = {0};
    struct weir_processor_options o = copy_options(&a), o_b = copy_options(&b);
    struct weir_processor_stats stats, was;
    struct weir_store *keep;
    uint64_t through;
    int closes;

    (void)state;
    assert_ok(weir_store_memory(&keep, f->name, NULL, &err));
    copy_open(&a, f);
    copy_open(&b, f);
    wall_put(&wall_a, &a);
    wall_put(&wall_b, &b);
    assert_ok(weir_processor_start(&a.processor, a.source, a.store, &o, &err));
    assert_ok(weir_processor_start(&b.processor, b.source, b.store, &o_b, &err));
    await_owned(f, &a, 2);
    await_owned(f, &b, 2);
    publish_all(f, 10);
    fleet_await(f, f->total == 40);
    weir_processor_stats(a.processor, &was);
    closes = f->closes; /* some, when the second copy was started late */
    atomic_store(&wall_a.silent, true);
    atomic_store(&wall_b.silent, true);
    fleet_await(f, f->errors[WEIR_BEATING] + f->errors[WEIR_READING_STORE] >= 2);
    for (int i = 0; i < 30; i++) { /* longer than anybody may be silent */
        publish_all(f, 1);
        fleet_lock(f);
        weir__cond_wait(&f->changed, &f->lock, weir__deadline_ns(INT64_C(2) * BEAT_MS));
        fleet_unlock(f);
    }
    through = 40 + 4 * 30;
    fleet_await(f, f->total == through);
    weir_processor_stats(a.processor, &stats);
    assert_true(stats.store_silent_ms > 0);
    assert_int_equal(f->closes, closes);
    atomic_store(&wall_a.silent, false);
    atomic_store(&wall_b.silent, false);
    fleet_await(f,
                (weir_processor_stats(a.processor, &stats), stats.marks_stored > was.marks_stored));
    assert_int_equal(f->closes, closes);
    assert_ok(weir_processor_stop(a.processor, PATIENCE_MS, &err));
    assert_ok(weir_processor_stop(b.processor, PATIENCE_MS, &err));
    copy_close(&a);
    copy_close(&b);
    for (uint32_t i = 0; i < 4; i++) assert_given(f, i, 0, 40, 1);
    assert_orderly(f);

    /* And the marks were stored in the end. */
    a = (struct copy){0};
    publish_all(f, 1);
    copy_start(&a, f);
    fleet_await(f, f->total == through + 4);
    copy_stop(&a);
    for (uint32_t i = 0; i < 4; i++) assert_given(f, i, 0, 41, 1);
    weir_store_close(keep);
    fleet_free(f);
}

static void stop_says_that_the_store_is_silent(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {0};
    struct wall wall = {0};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    copy_open(&a, f);
    wall_put(&wall, &a);
    atomic_store(&wall.silent, true);
    assert_int_equal(weir_processor_start(&a.processor, a.source, a.store, &o, &err),
                     WEIR_EUNREACHABLE);
    atomic_store(&wall.silent, false);
    assert_ok(weir_processor_start(&a.processor, a.source, a.store, &o, &err));
    await_owned(f, &a, 2);
    fleet_await(f, f->opens == 2);
    atomic_store(&wall.silent, true);
    assert_int_equal(weir_processor_stop(a.processor, 300, &err), WEIR_EUNREACHABLE);
    copy_close(&a);
    assert_int_equal(f->reasons[WEIR_CLOSED_SHUTDOWN], 2);
    assert_orderly(f);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_overs_repeat_nothing),
        cmocka_unit_test(a_slow_handler_is_reported),
        cmocka_unit_test(a_slow_open_is_reported),
        cmocka_unit_test(a_slow_close_is_reported),
        cmocka_unit_test(a_slow_dead_letter_is_reported),
        cmocka_unit_test(a_slow_handler_loses_its_partition),
        cmocka_unit_test(a_stolen_place_is_told_at_once),
        cmocka_unit_test(a_silent_store_moves_nothing),
        cmocka_unit_test(stop_says_that_the_store_is_silent),
        cmocka_unit_test(stop_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
