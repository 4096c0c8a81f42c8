/* Batches on their way while a completion holds up those behind it, and receives of many events. On a
 * folder, whose completions run one after the other. */
#include "client/contract/place.h"

#include "support/tempdir.h"

#define BATCHES 5

static char dir[TEMPDIR_BYTES];
static struct weir *w;

static int start(void **state)
{
    (void)state;
    if (tempdir_make(dir) != 0 || weir_open(&w, dir, NULL, &err) != 0) return -1;
    make_hub(w, 1);
    return 0;
}

static int stop(void **state)
{
    int rc = weir_close(w, &err);

    (void)state;
    tempdir_remove(dir);
    return rc;
}

/* ---- a completion that holds up the others ---- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached, open;
    unsigned stored, unknown; /* lock, as all of it */
    int wrong;
};

static void pass(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->reached = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void wait_until_reached(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->reached) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void landed(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    static const char *const closed = "the producer was closed before the disk answered";
    struct gate *g = user;

    if (rc == 0) pass(g);
    pthread_mutex_lock(&g->lock);
    if (rc == 0 && at && !why)
        g->stored++;
    else if (rc == WEIR_EUNKNOWN && !at && strcmp(why->text, closed) == 0)
        g->unknown++;
    else
        g->wrong++;
    pthread_mutex_unlock(&g->lock);
}

#define GATE                                                                                       \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                     \
    }

static void send_one(struct weir_producer *p, weir_done_fn done, void *user)
{
    struct weir_event e = {.body = weir_text("x")};

    assert_ok(weir_producer_send_async(p, &e, 1, PATIENCE_MS, done, user, &err));
}

static void send_some(struct weir_producer *p, struct gate *g)
{
    for (int i = 0; i < BATCHES; i++) send_one(p, landed, g);
    wait_until_reached(g);
}

static void a_flush_has_an_end(void **state)
{
    struct weir_producer *p = open_producer(w);
    struct gate g = GATE;

    (void)state;
    send_some(p, &g);
    for (int64_t ms = 0; ms < 20; ms += 10) {
        assert_int_equal(weir_producer_flush(p, ms, &err), WEIR_ETIMEDOUT);
        assert_string_equal(err.text, "flushing: batches are still on their way");
    }
    open_gate(&g);
    assert_ok(weir_producer_flush(p, PATIENCE_MS, &err));
    assert_int_equal(g.stored, BATCHES);
    assert_int_equal(g.unknown + (unsigned)g.wrong, 0);
    assert_ok(weir_producer_flush(p, 0, &err));
    close_producer(p);
}

struct closer {
    struct weir_producer *producer;
    int rc;
    struct weir_error err;
};

static void *close_at_once(void *arg)
{
    struct closer *c = arg;

    c->rc = weir_producer_close(c->producer, 0, &c->err);
    return NULL;
}

/* Sends until the producer says that it is being closed; how many were taken. */
static unsigned send_until_closed(struct weir_producer *p, struct gate *g)
{
    struct weir_event e = {.body = weir_text("late")};
    unsigned taken = 0;
    int rc;

    do {
        rc = weir_producer_send_async(p, &e, 1, 0, landed, g, &err);
        taken += rc == 0;
    } while (rc == 0 || rc == WEIR_EBUSY);
    assert_int_equal(rc, WEIR_ECLOSED);
    assert_string_equal(err.text, "the producer is being closed");
    return taken;
}

/* From the beginning of its close; and whatever it took before is told, once each. */
static void a_producer_that_closes_takes_nothing_more(void **state)
{
    struct closer c = {.producer = open_producer(w)};
    char text[WEIR_ERROR_TEXT_BYTES];
    struct gate g = GATE;
    pthread_t thread;
    unsigned taken;

    (void)state;
    send_some(c.producer, &g);
    assert_int_equal(pthread_create(&thread, NULL, close_at_once, &c), 0);
    taken = BATCHES + send_until_closed(c.producer, &g); /* it lives as long as the gate is shut */
    open_gate(&g);
    pthread_join(thread, NULL);
    assert_int_equal(g.wrong, 0);
    assert_true(g.stored >= 1);
    assert_int_equal(g.stored + g.unknown, taken);
    assert_int_equal(c.rc, g.unknown ? WEIR_EUNKNOWN : 0);
    snprintf(text, sizeof text, "closing: the outcome of %u batches is unknown", g.unknown);
    if (c.rc != 0) assert_string_equal(c.err.text, text);
}

/* ---- a close that has no time, while another producer's completion holds up ours ---- */

static struct weir_producer *hold_up(struct gate *g)
{
    struct weir_producer *p = open_producer(w);

    send_one(p, landed, g);
    wait_until_reached(g);
    return p;
}

static void assert_given_up(struct weir_producer *p)
{
    assert_int_equal(weir_producer_close(p, 0, &err), WEIR_EUNKNOWN);
    assert_string_equal(err.text, "closing: the outcome of 5 batches is unknown");
}

/* All are in the log, also those whose outcome nobody waited for; and none is told twice. */
static void assert_told_once(const struct gate *g, struct weir_producer *holder, uint64_t events)
{
    send_text(holder, "behind them"); /* they have landed when this one has */
    assert_int_equal(g->unknown, BATCHES);
    assert_int_equal(g->stored + (unsigned)g->wrong, 0);
    assert_int_equal(events_in(w, 0), events + 1);
    close_producer(holder);
}

static void what_was_given_up_lands_later(void **state)
{
    struct gate hold = GATE, g = GATE;
    struct weir_producer *holder = hold_up(&hold), *p = open_producer(w);

    (void)state;
    g.open = true;
    for (int i = 0; i < BATCHES; i++) send_one(p, landed, &g);
    assert_given_up(p);
    open_gate(&hold);
    assert_told_once(&g, holder, BATCHES + 1);
}

struct late {
    struct gate hold, follow, told;
};

/* The first one that is told lets all of them land before it returns. */
static void let_land(void *user, int rc, const struct weir_receipt *at,
                     const struct weir_error *why)
{
    struct late *l = user;

    landed(&l->told, rc, at, why);
    open_gate(&l->hold);
    wait_until_reached(&l->follow);
}

static void what_was_given_up_lands_meanwhile(void **state)
{
    struct late l = {GATE, GATE, GATE};
    struct weir_producer *holder = hold_up(&l.hold), *p = open_producer(w);

    (void)state;
    l.told.open = l.follow.open = true;
    for (int i = 0; i < BATCHES; i++) send_one(p, let_land, &l);
    send_one(holder, landed, &l.follow);
    assert_given_up(p);
    assert_told_once(&l.told, holder, BATCHES + 2);
}

/* A producer that holds up the others and whose next batches are refused: another has its place. */
static struct weir_producer *hold_up_fenced(struct gate *g)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_producer_identity identity;
    struct weir_producer *p, *young;

    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    send_one(p, landed, g);
    wait_until_reached(g);
    weir_producer_identity(p, &identity);
    o.id = identity.id;
    o.epoch = 1;
    assert_ok(weir_producer_open(&young, w, "h", &o, &err));
    send_one(young, landed, g);
    assert_int_equal(weir_producer_close(young, 0, &err), WEIR_EUNKNOWN);
    return p;
}

/* The one whose completion runs is waited for, and is none whose outcome is unknown. */
static void close_in_time(void)
{
    struct weir_event e = {.body = weir_text("late")};
    struct gate g = GATE;
    struct closer c = {.producer = hold_up_fenced(&g)};
    pthread_t thread;
    int rc;

    assert_int_equal(pthread_create(&thread, NULL, close_at_once, &c), 0);
    for (int closing = 0; closing < 100; closing += rc == WEIR_ECLOSED) {
        rc = weir_producer_send_async(c.producer, &e, 1, 0, landed, &g, &err);
        assert_true(rc == WEIR_EFENCED || rc == WEIR_ECLOSED);
        sched_yield(); /* so that it waits for the completion by then */
    }
    open_gate(&g);
    pthread_join(thread, NULL);
    assert_int_equal(c.rc, 0);
    assert_int_equal(g.stored, 1);
    assert_int_equal(g.unknown, 1); /* the young one's */
    assert_int_equal(g.wrong, 0);
}

static void a_close_without_time_may_be_in_time(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) close_in_time();
}

/* ---- many events ---- */

#define MANY 5000u
#define AT_ONCE 4096u /* events that one receive gives */

static void send_many(uint32_t count)
{
    static struct weir_event events[MANY];
    struct weir_producer *p = open_producer(w);

    for (uint32_t i = 0; i < count; i++) events[i].body = weir_text("one of many");
    assert_ok(weir_producer_send(p, events, count, PATIENCE_MS, NULL, &err));
    close_producer(p);
}

/* So many come, the first of which is this one. */
static void assert_come(struct weir_receiver *r, size_t max, uint64_t first, size_t count)
{
    struct weir_received got;

    assert_ok(weir_receiver_receive(r, max, PATIENCE_MS, &got, &err));
    assert_int_equal(got.count, count);
    assert_int_equal(got.missed, 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got.events[i].sequence, first + i);
        assert_text(got.events[i].body, "one of many");
    }
}

/* And who has nothing to read gives back its room, and takes it again. */
static void a_receive_gives_so_many_at_most(void **state)
{
    const struct weir_receiver_options o = {.size = sizeof o, .bytes_max = 16 << 20};
    struct weir_received got;
    struct weir_receiver *r;
    uint64_t first = 0;

    (void)state;
    send_many(MANY);
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    assert_come(r, SIZE_MAX, first, AT_ONCE);
    assert_come(r, AT_ONCE + 1, first + AT_ONCE, MANY - AT_ONCE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_receiver_receive(r, 100, 0, &got, &err), WEIR_ETIMEDOUT);
        assert_int_equal(got.count, 0);
        first = events_in(w, 0);
        send_many(50);
        assert_come(r, 33, first, 33); /* more than what an idle one keeps room for */
        assert_come(r, 10, first + 33, 10);
        assert_come(r, 100, first + 43, 7);
    }
    weir_receiver_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flush_has_an_end, start, stop),
        cmocka_unit_test_setup_teardown(a_producer_that_closes_takes_nothing_more, start, stop),
        cmocka_unit_test_setup_teardown(what_was_given_up_lands_later, start, stop),
        cmocka_unit_test_setup_teardown(what_was_given_up_lands_meanwhile, start, stop),
        cmocka_unit_test_setup_teardown(a_close_without_time_may_be_in_time, start, stop),
        cmocka_unit_test_setup_teardown(a_receive_gives_so_many_at_most, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
