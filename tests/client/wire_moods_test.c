/* What becomes of a batch when the other side is in a bad mood: a plain producer is told the truth,
 * and an idempotent one has each batch stored once and in order, whatever was said meanwhile. */
#include "client/contract/place.h"

#include "client/moody.h"
#include "support/dice.h"
#include "support/pace.h"

#define EVENTS 3u /* of a batch */
#define BATCHES 12u
#define ROUNDS (PACE == 1 ? 8 : 3)
#define STEPS 12u

struct tally {
    atomic_uint done, stored;
    int rc[BATCHES]; /* in the order of the completions */
    struct weir_error why;
};

static struct weir *open_moody(const struct moody *m)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS, .idle_ms = 5000};
    char text[256];
    struct weir *w;

    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             m->address);
    assert_ok(weir_open(&w, text, &o, &err));
    return w;
}

static struct weir_producer *open_kind(struct weir *w, bool idempotent)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = idempotent};
    struct weir_producer *p;

    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    return p;
}

static void landed(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    struct tally *t = user;
    unsigned n = atomic_load(&t->done);

    (void)at;
    if (n < BATCHES) t->rc[n] = rc;
    if (rc != 0 && t->why.code == 0) t->why = *why;
    if (rc == 0) atomic_fetch_add(&t->stored, 1);
    atomic_fetch_add(&t->done, 1);
}

static void send_many(struct weir_producer *p, struct tally *t, unsigned count)
{
    struct weir_event events[EVENTS];

    for (unsigned i = 0; i < EVENTS; i++) events[i] = (struct weir_event){.body = weir_text("x")};
    for (unsigned i = 0; i < count; i++)
        assert_ok(weir_producer_send_async(p, events, EVENTS, PATIENCE_MS, landed, t, &err));
}

/* Every batch is told to be stored, and is, once and in order. */
static void assert_all_stored(const struct moody *m, struct tally *t)
{
    if (atomic_load(&t->stored) != BATCHES)
        fail_msg("%u of %u: %s", atomic_load(&t->stored), BATCHES, t->why.text);
    assert_int_equal(m->count, BATCHES);
    for (uint32_t i = 0; i < m->count; i++) assert_int_equal(m->stored[i], 1 + i * EVENTS);
}

/* An idempotent producer's batches against this script. */
static void run_script(struct moody *m)
{
    struct weir_producer *p;
    struct tally t = {0};
    struct weir *w;

    moody_start(m);
    w = open_moody(m);
    p = open_kind(w, true);
    send_many(p, &t, BATCHES);
    close_producer(p);
    assert_ok(weir_close(w, &err));
    moody_stop(m);
    assert_all_stored(m, &t);
}

/* ---- idempotent ---- */

static void what_was_stored_is_not_stored_again(void **state)
{
    static struct moody m;

    (void)state;
    m = (struct moody){.script = {MOODY_STORE, MOODY_STORE_CUT, MOODY_STORE_CUT}, .steps = 3};
    run_script(&m);
    assert_int_equal(m.connections, 3);
}

static void what_failed_is_sent_again(void **state)
{
    static struct moody m;

    (void)state;
    m = (struct moody){.script = {MOODY_FAIL, MOODY_STORE_FAIL, MOODY_RELEASE}, .steps = 3};
    run_script(&m);
    assert_int_equal(m.connections, 1);
    assert_in_range(m.attaches, 2, 4);
}

/* After "server-busy" the service asks for four seconds. */
static void what_was_too_much_is_sent_later(void **state)
{
    static struct moody m;
    time_t since = time(NULL);

    (void)state;
    m = (struct moody){.script = {MOODY_STORE, MOODY_BUSY}, .steps = 2};
    run_script(&m);
    assert_int_equal(m.connections, 1);
    assert_true(time(NULL) - since >= 3);
}

/* The new connection is told how far the hub has come, and then the old one is read. */
static void an_old_connection_may_be_read_last(void **state)
{
    static struct moody m;

    (void)state;
    m = (struct moody){.script = {MOODY_STORE, MOODY_LINGER, MOODY_STORE, MOODY_LINGER},
                       .steps = 4};
    run_script(&m);
    assert_true(m.connections >= 2);
}

/* Not for ever, and nothing behind it is said to be stored. */
static void what_is_meant_is_told(void **state)
{
    static struct moody m;
    struct weir_producer *p;
    struct tally t = {0};
    struct weir *w;

    (void)state;
    m = (struct moody){.script = {MOODY_STORE, MOODY_REFUSE}, .steps = 2};
    moody_start(&m);
    w = open_moody(&m);
    p = open_kind(w, true);
    send_many(p, &t, 4);
    close_producer(p);
    assert_ok(weir_close(w, &err));
    moody_stop(&m);
    assert_int_equal(t.rc[0], 0);
    assert_int_equal(t.rc[1], WEIR_ETOOBIG);
    assert_int_equal(t.rc[2], WEIR_ESEQUENCE);
    assert_int_equal(t.rc[3], WEIR_ESEQUENCE);
    assert_int_equal(m.count, 1);
}

/* Whatever happens in whatever order. */
static void moods_change(void **state)
{
    static struct moody m;
    uint64_t dice = 5;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        m = (struct moody){.steps = STEPS};
        for (unsigned i = 0; i < STEPS; i++)
            m.script[i] = (enum moody_mood)dice_roll(&dice, MOODY_LINGER + 1);
        run_script(&m);
    }
}

/* A caller's deadline ends the wait, not the batch: it is there once, and so is what comes next. */
static void a_deadline_is_kept(void **state)
{
    struct weir_event e = {.body = weir_text("x")};
    static struct moody m;
    struct weir_producer *p;
    struct weir *w;

    (void)state;
    m = (struct moody){.script = {MOODY_FAIL, MOODY_FAIL, MOODY_FAIL, MOODY_FAIL}, .steps = 4};
    moody_start(&m);
    w = open_moody(&m);
    p = open_kind(w, true);
    assert_int_equal(weir_producer_send(p, &e, 1, 120, NULL, &err), WEIR_EUNKNOWN);
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err)); /* the same once more */
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    close_producer(p);
    assert_ok(weir_close(w, &err));
    moody_stop(&m);
    assert_int_equal(m.count, 2);
}

/* ---- plain ---- */

static void a_plain_producer_is_told_the_truth(void **state)
{
    static const struct {
        enum moody_mood mood;
        int rc;
    } cases[] = {
        {MOODY_STORE, 0},
        {MOODY_STORE_CUT, WEIR_EUNKNOWN},
        {MOODY_CUT, WEIR_EUNKNOWN},
        {MOODY_STORE_FAIL, WEIR_EUNKNOWN},
        {MOODY_FAIL, WEIR_EUNKNOWN},
        {MOODY_BUSY, WEIR_EBUSY},
        {MOODY_RELEASE, WEIR_EBUSY},
        {MOODY_REFUSE, WEIR_ETOOBIG},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    struct weir_event e = {.body = weir_text("x")};
    static struct moody m;
    struct weir_producer *p;
    struct weir *w;

    (void)state;
    m = (struct moody){.steps = CASES};
    for (int i = 0; i < CASES; i++) m.script[i] = cases[i].mood;
    moody_start(&m);
    w = open_moody(&m);
    p = open_kind(w, false);
    for (int i = 0; i < CASES; i++)
        assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), cases[i].rc);
    close_producer(p);
    assert_ok(weir_close(w, &err));
    moody_stop(&m);
    assert_int_equal(m.count, 3);
}

/* One word may be for several batches, and not for those behind them. */
static void one_word_may_be_for_several(void **state)
{
    static const enum moody_mood moods[] = {MOODY_STORE, MOODY_KEEP, MOODY_KEEP, MOODY_THIRD,
                                            MOODY_STORE};
    static const int wanted[] = {0, 0, 0, WEIR_ETOOBIG, 0};
    enum { COUNT = sizeof moods / sizeof moods[0] };
    static struct tally t;
    static struct moody m;
    struct weir_producer *p;
    struct weir *w;

    (void)state;
    m.steps = COUNT;
    memcpy(m.script, moods, sizeof moods);
    moody_start(&m);
    w = open_moody(&m);
    p = open_kind(w, false);
    send_many(p, &t, COUNT);
    assert_ok(weir_producer_flush(p, PATIENCE_MS, &err));
    assert_int_equal(atomic_load(&t.done), COUNT);
    for (int i = 0; i < COUNT; i++) assert_int_equal(t.rc[i], wanted[i]);
    close_producer(p);
    assert_ok(weir_close(w, &err));
    moody_stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_stored_is_not_stored_again),
        cmocka_unit_test(what_failed_is_sent_again),
        cmocka_unit_test(what_was_too_much_is_sent_later),
        cmocka_unit_test(an_old_connection_may_be_read_last),
        cmocka_unit_test(what_is_meant_is_told),
        cmocka_unit_test(moods_change),
        cmocka_unit_test(a_deadline_is_kept),
        cmocka_unit_test(a_plain_producer_is_told_the_truth),
        cmocka_unit_test(one_word_may_be_for_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
