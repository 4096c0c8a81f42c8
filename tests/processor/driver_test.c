/* driver_test.c - marks on a bad line to the store: calls that come late, answers that get lost. */
#include "processor/fleet.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(late_marks_change_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
