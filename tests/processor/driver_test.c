/* driver_test.c - marks on a bad line to the store: calls that come late, answers that get lost; and what
 * becomes of a partition that comes back before it was closed. */
#include "processor/fleet.h"
#include "support/calls.h"

/* What becomes of the first writes of marks, one after the other; the rest go through. */
enum fate {
    FATE_LATE,   /* it comes to the store behind the one that follows, and nobody waits for it */
    FATE_PASS,   /* it goes through */
    FATE_UNHEARD /* it is done, and the answer is lost */
};

static const enum fate fates[] = {FATE_LATE, FATE_PASS, FATE_UNHEARD, FATE_PASS,
                                  FATE_LATE, FATE_LATE, FATE_PASS};
#define FATES (int)(sizeof fates / sizeof fates[0])

/* The line; on the driver's thread, but for the counters. */
static struct {
    const struct weir_store_ops *ops; /* of the store behind it */
    struct weir_mark late[FATES];     /* one partition, so one mark each */
    size_t late_count;
    atomic_int calls, refused_late, refused;
} line;

static void deliver_late(struct weir_store *s, const struct weir_scope *scope, const char *owner)
{
    while (line.late_count > 0) {
        struct weir_mark *m = &line.late[--line.late_count];

        line.ops->mark(s, scope, owner, m, 1, NULL);
        atomic_fetch_add(&line.refused_late, m->rc == WEIR_EFENCED);
    }
}

static int line_mark(struct weir_store *s, const struct weir_scope *scope, const char *owner,
                     struct weir_mark *marks, size_t count, struct weir_error *why)
{
    int call = atomic_fetch_add(&line.calls, 1), rc = 0;
    enum fate fate = call < FATES ? fates[call] : FATE_PASS;

    if (fate == FATE_LATE) {
        line.late[line.late_count++] = marks[0];
    } else {
        rc = line.ops->mark(s, scope, owner, marks, count, why);
        atomic_fetch_add(&line.refused, rc != 0 || marks[0].rc != 0);
        deliver_late(s, scope, owner);
    }
    if (fate == FATE_PASS) return rc;
    why->code = WEIR_ETIMEDOUT;
    snprintf(why->text, sizeof why->text, "no answer");
    return WEIR_ETIMEDOUT;
}

/* The store is as it was, but for the way of its marks. */
static void line_put(struct weir_store *s, struct weir_store_ops *patched)
{
    line.ops = s->ops;
    *patched = *s->ops;
    patched->mark = line_mark;
    s->ops = patched;
}

/* None of what comes late sets a checkpoint back, and no mark is refused for the sake of its own
 * first try, which came after all: the copy goes on as if nothing had happened. */
static void late_marks_change_nothing(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {0}, b = {0};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;
    struct weir_store_ops patched;
    struct weir_store *keep;
    uint32_t events = 0;

    (void)state;
    assert_ok(weir_store_memory(&keep, f->name, NULL, &err));
    copy_open(&a, f);
    line_put(a.store, &patched);
    assert_ok(weir_processor_start(&a.processor, a.source, a.store, &o, &err));
    for (int calls = 0; calls <= FATES; calls = atomic_load(&line.calls)) {
        publish(f, 0, 1);
        events++;
        fleet_await(f, f->total == events && atomic_load(&line.calls) > calls);
    }
    weir_processor_stats(a.processor, &stats);
    assert_int_equal(stats.marks_fenced, 0);
    assert_int_equal(f->closes, 0);
    copy_stop(&a);
    assert_int_equal(atomic_load(&line.refused), 0);
    assert_int_equal(atomic_load(&line.refused_late), 3);

    publish(f, 0, 1);
    copy_start(&b, f); /* where the last mark was */
    fleet_await(f, f->total == events + 1);
    copy_stop(&b);
    assert_given(f, 0, 0, events + 1, 1);
    assert_orderly(f);
    weir_store_close(keep);
    fleet_free(f);
}

/* ---- back before it was closed ---- */

/* Whose the only partition became, by claims of the copy. */
static struct {
    const struct weir_store_ops *ops;
    struct weir__mutex lock;
    struct weir_scope scope;
    struct weir_record record; /* as the last of them made it */
    int taken, given;
} desk;

static int desk_claim(struct weir_store *s, const struct weir_scope *scope,
                      const struct weir_record *expected, const char *owner, uint64_t instance,
                      struct weir_record *out, struct weir_error *why)
{
    int rc = desk.ops->claim(s, scope, expected, owner, instance, out, why);

    if (rc != 0) return rc;
    weir__mutex_lock(&desk.lock);
    desk.scope = *scope;
    desk.record = *out;
    desk.taken += *owner != '\0';
    desk.given += *owner == '\0';
    weir__mutex_unlock(&desk.lock);
    return 0;
}

static int desk_count(const int *count)
{
    int now;

    weir__mutex_lock(&desk.lock);
    now = *count;
    weir__mutex_unlock(&desk.lock);
    return now;
}

/* A handler that does not return before it may; under the fleet's lock. */
struct held {
    bool inside, may_go, revoked;
};

static int hold(struct copy *c, struct weir_partition *p, const struct weir_event *e, size_t n)
{
    struct held *h = c->with;

    (void)e, (void)n;
    fleet_lock(c->fleet);
    h->inside = true;
    while (!h->may_go) {
        h->revoked = weir_partition_revoked(p);
        weir__cond_wait(&c->fleet->changed, &c->fleet->lock, weir__deadline_ns(LOOK_MS));
    }
    h->inside = false;
    fleet_unlock(c->fleet);
    return 0;
}

static void *stop_copy(void *arg)
{
    struct copy *c = arg;
    struct weir_error why;
    int rc = weir_processor_stop(c->processor, PATIENCE_MS, &why);

    return rc == 0 ? NULL : arg;
}

/* Its handler still runs when the partition is lost, comes back, and is to be given away: what has not
 * begun has nothing to finish. It is given away at once, and never begins. */
static void what_waits_to_begin_is_given_back_at_once(void **state)
{
    struct fleet *f = fleet_new(1);
    struct held held = {0};
    struct copy a = {.act = hold, .with = &held};
    struct weir_processor_options o = copy_options(&a);
    struct weir_store_ops patched;
    struct weir_store *hand;
    pthread_t stopping;
    void *failed;

    (void)state;
    weir__mutex_init(&desk.lock);
    assert_ok(weir_store_memory(&hand, f->name, NULL, &err));
    copy_open(&a, f);
    desk.ops = a.store->ops;
    patched = *desk.ops;
    patched.claim = desk_claim;
    a.store->ops = &patched;
    publish(f, 0, 1);
    assert_ok(weir_processor_start(&a.processor, a.source, a.store, &o, &err));
    fleet_await(f, held.inside && desk_count(&desk.taken) == 1);

    assert_ok(desk.ops->claim(hand, &desk.scope, &desk.record, "", 0, &desk.record, &err));
    fleet_await(f, held.revoked && desk_count(&desk.taken) == 2);
    assert_int_equal(pthread_create(&stopping, NULL, stop_copy, &a), 0);
    fleet_await(f, desk_count(&desk.given) == 1);
    fleet_lock(f);
    assert_true(held.inside);
    held.may_go = true;
    fleet_unlock(f);
    assert_int_equal(pthread_join(stopping, &failed), 0);
    assert_null(failed);
    copy_close(&a);
    assert_int_equal(f->opens, 1);
    assert_int_equal(f->reasons[WEIR_CLOSED_LOST], 1);
    assert_int_equal(f->total, 1);
    assert_orderly(f);
    weir_store_close(hand);
    weir__mutex_fini(&desk.lock);
    fleet_free(f);
}

/* ---- set by hand while a mark is under way ---- */

/* The store's calls, and a mark that is kept until the partition has begun anew. What the threads of
 * the copy find out is looked at by the test. */
static struct {
    const struct weir_store_ops *ops;
    struct fleet *fleet;
    struct weir_store *hand;
    atomic_int beats, marks;         /* begun */
    atomic_bool set, anew;           /* by hand; it is read from there */
    atomic_bool late, refused, done; /* something did not come, or was not done */
    atomic_bool revoked;             /* after the mark was refused */
} office;

static int office_beat(struct weir_store *s, const struct weir_scope *scope,
                       const struct weir_member *m, struct weir_error *why)
{
    atomic_fetch_add(&office.beats, 1);
    return office.ops->beat(s, scope, m, why);
}

static void office_wait(const atomic_int *calls, int count, const atomic_bool *flag)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);

    weir__mutex_lock(&office.fleet->lock);
    while (!(calls ? atomic_load(calls) >= count : atomic_load(flag))) {
        if (weir__mono_ns() >= deadline_ns) atomic_store(&office.late, true);
        if (atomic_load(&office.late)) break;
        weir__cond_wait(&office.fleet->changed, &office.fleet->lock, weir__deadline_ns(LOOK_MS));
    }
    weir__mutex_unlock(&office.fleet->lock);
}

static int office_mark(struct weir_store *s, const struct weir_scope *scope, const char *owner,
                       struct weir_mark *marks, size_t count, struct weir_error *why)
{
    atomic_fetch_add(&office.marks, 1);
    if (atomic_load(&office.set)) office_wait(NULL, 0, &office.anew);
    return office.ops->mark(s, scope, owner, marks, count, why);
}

/* The copy reads with each beat; what it has read is seen to before the next. */
static void await_beats(void)
{
    office_wait(&office.beats, atomic_load(&office.beats) + 3, NULL);
}

/* Somebody sets it to event 0 while event 1 is handled, whose mark is under way then. */
static int be_rewound(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                      size_t n)
{
    struct weir_scope scope = {c->source->space, "h", "$default"};
    struct weir_mark mark = {0};

    (void)n;
    if (e->sequence == 0) return weir_checkpoint_wait(p, NULL, PATIENCE_MS, NULL);
    if (!atomic_load(&office.set)) {
        if (office.ops->set(office.hand, &scope, 0, &mark, NULL) != 0)
            atomic_store(&office.refused, true);
        await_beats();
        atomic_store(&office.set, true);
        if (weir_checkpoint_wait(p, NULL, 0, NULL) != WEIR_ETIMEDOUT)
            atomic_store(&office.refused, true);
        office_wait(&office.marks, 2, NULL);
        return 0;
    }
    atomic_store(&office.anew, true);
    await_beats();
    atomic_store(&office.revoked, weir_partition_revoked(p));
    atomic_store(&office.done, true);
    return 0;
}

/* A refusal says nothing about what has begun since. */
static void a_refusal_from_before_changes_nothing(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {.act = be_rewound};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;
    struct weir_store_ops patched;

    (void)state;
    assert_ok(weir_store_memory(&office.hand, f->name, NULL, &err));
    copy_open(&a, f);
    office.fleet = f;
    office.ops = a.store->ops;
    patched = *office.ops;
    patched.beat = office_beat;
    patched.mark = office_mark;
    a.store->ops = &patched;
    publish(f, 0, 1);
    assert_ok(weir_processor_start(&a.processor, a.source, a.store, &o, &err));
    fleet_await(f, atomic_load(&office.marks) == 1);
    publish(f, 0, 1);
    fleet_await(f, atomic_load(&office.done));
    weir_processor_stats(a.processor, &stats);
    assert_int_equal(stats.marks_fenced, 1);
    copy_stop(&a);
    assert_false(atomic_load(&office.late) || atomic_load(&office.refused));
    assert_false(atomic_load(&office.revoked));
    assert_given(f, 0, 0, 1, 1);
    assert_given(f, 0, 1, 2, 2);
    weir_store_close(office.hand);
    fleet_free(f);
}

/* ---- threads ---- */

/* Wherever the system has no more of them: it says so, and nothing is left behind. */
static void without_its_threads_nothing_starts(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);
    int left = 0, rc;

    (void)state;
    o.threads = 2; /* and two more */
    copy_open(&a, f);
    do {
        calls_limit_threads(left++);
        rc = weir_processor_start(&a.processor, a.source, a.store, &o, &err);
        calls_limit_threads(-1);
        if (rc != 0) assert_null(a.processor);
        if (rc != 0) assert_non_null(strstr(err.text, "starting a thread"));
    } while (rc != 0);
    assert_int_equal(left, 5);
    copy_stop(&a);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_marks_change_nothing),
        cmocka_unit_test(what_waits_to_begin_is_given_back_at_once),
        cmocka_unit_test(a_refusal_from_before_changes_nothing),
        cmocka_unit_test(without_its_threads_nothing_starts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
