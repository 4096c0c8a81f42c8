/* How long a client waits before it attaches a link again, and how long a batch waits for its
 * outcome. */
#include "client/hasty.h"

#include "base/thread.h"

/* ---- links ---- */

static const char *const *refusals; /* of links, one after the other, right behind their attach */

static void refuse(struct moody *by, struct weir__amqp_link *l)
{
    struct weir__amqp_error why;

    if (!refusals[by->attaches - 1]) return;
    why = weir__amqp_error_of(refusals[by->attaches - 1], "not now");
    weir__amqp_detach(l, &why);
}

/* Opens a producer of a server that refuses links in this way. */
static int open_refused(const char *const *why)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true};
    struct weir_producer *p;
    int rc;

    refusals = why;
    m.taken = refuse;
    hasty_open();
    rc = weir_producer_open(&p, w, "h", &o, &err);
    if (rc == 0) close_producer(p);
    hasty_close();
    return rc;
}

/* After pauses that grow; when the other side is busy, after the one that it asks for. */
static void a_link_is_tried_again(void **state)
{
    static const char *const why[] = {"amqp:link:detach-forced", "amqp:link:detach-forced",
                                      "com.microsoft:server-busy", "amqp:internal-error", NULL};

    (void)state;
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    hasty_expect(HASTY_BUSY_MS, HASTY_BUSY_MS);
    hasty_expect(200, 400);
    assert_ok(open_refused(why));
    hasty_assert_passed(4);
    assert_int_equal(m.attaches, 5);
    assert_int_equal(atomic_load(&m.tokens), 1);
    assert_int_equal(hasty_line_count, 0); /* it was never open */
}

/* With a new token, and once. */
static void a_link_that_is_denied_is_tried_once_more(void **state)
{
    static const char denied[] = "amqp:unauthorized-access";
    static const char *const once[] = {denied, NULL}, *const twice[] = {denied, denied, NULL};

    (void)state;
    hasty_expect(50, 100);
    assert_ok(open_refused(once));
    assert_int_equal(m.attaches, 2);
    assert_int_equal(atomic_load(&m.tokens), 2);
    hasty_set_up(NULL);
    hasty_expect(50, 100);
    assert_int_equal(open_refused(twice), WEIR_EDENIED);
    assert_string_equal(err.text, "a link to h/Partitions/0: not now (amqp:unauthorized-access)");
    assert_int_equal(m.attaches, 2);
    assert_int_equal(atomic_load(&m.tokens), 2);
}

static atomic_uint flows; /* that the server has seen */

/* The first three links go as soon as they are open: two are denied, one has no reason. */
static void detach_thrice(struct moody *by, struct weir__amqp_link *l)
{
    struct weir__amqp_error why = weir__amqp_error_of("amqp:unauthorized-access", "anew");

    (void)by;
    if (atomic_fetch_add(&flows, 1) < 3)
        weir__amqp_detach(l, atomic_load(&flows) < 3 ? &why : NULL);
}

/* A link that was open is attached again however often it is denied, and the log tells why. */
static void a_link_that_was_open_is_tried_on(void **state)
{
    struct weir_receiver *r;

    (void)state;
    atomic_store(&flows, 0);
    m.flowed = detach_thrice;
    for (unsigned i = 0; i < 3; i++) hasty_expect(50, 100);
    hasty_open();
    r = hasty_open_on("h");
    hasty_assert_passed(3);
    while (atomic_load(&flows) < 4) sched_yield();
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.attaches, 4);
    assert_int_equal(atomic_load(&m.tokens), 3);
    assert_int_equal(hasty_line_count, 3);
    hasty_assert_line(0, "info client: h/ConsumerGroups/$Default/Partitions/0: anew "
                         "(amqp:unauthorized-access)");
    hasty_assert_line(2, "info client: h/ConsumerGroups/$Default/Partitions/0: closed by the other "
                         "side, which gave no reason");
}

/* Every link, the second one when it is open. */
static void deny(struct moody *by, struct weir__amqp_link *l)
{
    struct weir__amqp_error why = weir__amqp_error_of("amqp:unauthorized-access", "no more");

    if (by->attaches != 2 || weir__amqp_link_credit(l) > 0) weir__amqp_detach(l, &why);
}

/* What happened before it was open does not count, nor that it was ended then. */
static void a_link_that_is_not_let_in_again_fails(void **state)
{
    struct weir_received got;
    struct weir_receiver *r;

    (void)state;
    m.taken = m.flowed = deny;
    hasty_expect(50, 100);
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    hasty_open();
    r = hasty_open_on("h");
    assert_int_equal(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err), WEIR_EDENIED);
    assert_non_null(strstr(err.text, "no more (amqp:unauthorized-access)"));
    hasty_assert_passed(3);
    weir_receiver_close(r);
    hasty_close();
    assert_int_equal(m.attaches, 4);
    assert_int_equal(atomic_load(&m.tokens), 4);
}

/* A connection that nobody needs is not made again before somebody does. */
static void a_connection_without_need_stays_away(void **state)
{
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;

    (void)state;
    hasty_expect(50, 100);
    hasty_open();
    p = open_pinned(w, 0);
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    moody_stop(&m);
    while (hasty_line_count == 0) poll(NULL, 0, 1); /* that it is gone */
    close_producer(p);
    assert_ok(weir_close(w, &err));
    assert_int_equal(atomic_load(&hasty.passed), 0);
}

/* ---- batches ---- */

#define FULL 4u /* batches of the largest size are all that may be on their way */

static char body[1 << 20];

static void told(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    (void)user, (void)rc, (void)at, (void)why;
}

/* Nothing that is sent from here on has an outcome. */
static void open_silent(void)
{
    m.steps = FULL;
    for (unsigned i = 0; i < FULL; i++) m.script[i] = MOODY_KEEP;
    hasty_open();
}

/* After pauses that grow until one is accepted; when the other side is busy, after the one that it
 * asks for. */
static void a_batch_is_sent_again(void **state)
{
    static const enum moody_mood moods[] = {MOODY_FAIL,  MOODY_FAIL, MOODY_BUSY, MOODY_FAIL,
                                            MOODY_STORE, MOODY_FAIL, MOODY_STORE};
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;

    (void)state;
    memcpy(m.script, moods, sizeof moods);
    m.steps = sizeof moods / sizeof moods[0];
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    hasty_expect(HASTY_BUSY_MS, HASTY_BUSY_MS);
    hasty_expect(200, 400);
    hasty_expect(50, 100);
    hasty_open();
    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    for (int i = 0; i < 2; i++) assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    hasty_assert_passed(5);
    close_producer(p);
    hasty_close();
    assert_int_equal(m.count, 2);
    assert_int_equal(m.attaches, 6);
}

/* Out of sequence may be what the next attach explains; a batch that is so again, with nothing before it
 * and nothing new in between, is so. */
static void a_batch_out_of_sequence_is_sent_once_more(void **state)
{
    static const struct {
        enum moody_mood moods[5];
        unsigned steps, good; /* batches that are stored, before another one is not */
        int64_t pauses_ms[4]; /* up to 0: at least, and at most twice as long */
    } cases[] = {
        {{MOODY_DISORDER, MOODY_STORE}, 2, 1, {50}},
        {{MOODY_DISORDER, MOODY_DISORDER}, 2, 0, {50}},
        {{MOODY_STORE, MOODY_DISORDER, MOODY_STORE}, 3, 2, {50}},
        {{MOODY_STORE, MOODY_DISORDER, MOODY_DISORDER, MOODY_STORE}, 4, 2, {50, 100}},
        {{MOODY_STORE, MOODY_DISORDER, MOODY_DISORDER, MOODY_DISORDER}, 4, 1, {50, 100}},
        {{MOODY_DISORDER, MOODY_STORE, MOODY_DISORDER, MOODY_STORE}, 4, 2, {50, 50}},
    };
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned pauses = 0;
        hasty_set_up(NULL);
        memcpy(m.script, cases[i].moods, sizeof cases[i].moods);
        m.steps = cases[i].steps;
        for (; cases[i].pauses_ms[pauses]; pauses++)
            hasty_expect(cases[i].pauses_ms[pauses], 2 * cases[i].pauses_ms[pauses]);
        hasty_open();
        assert_ok(weir_producer_open(&p, w, "h", &o, &err));
        for (unsigned n = 0; n < cases[i].good; n++)
            assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
        if (cases[i].moods[cases[i].steps - 1] == MOODY_DISORDER) {
            assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ESEQUENCE);
            assert_string_equal(err.text, "in no mood (com.microsoft:out-of-order-sequence)");
        }
        close_producer(p);
        hasty_close();
        assert_int_equal(m.count, cases[i].good);
        assert_int_equal(m.attaches, 1 + pauses);
    }
}

/* To the byte. */
static void so_much_is_on_its_way(void **state)
{
    struct weir_event e = {.body = weir_bytes(body, sizeof body - BATCH_OVERHEAD)};
    struct weir_producer *p;
    int64_t since_ns;

    (void)state;
    open_silent();
    p = open_pinned(w, 0);
    for (unsigned i = 0; i < FULL; i++)
        assert_ok(weir_producer_send_async(p, &e, 1, 0, told, NULL, &err));
    e.body.len = 1;
    assert_int_equal(weir_producer_send_async(p, &e, 1, 0, told, NULL, &err), WEIR_EBUSY);
    assert_string_equal(err.text, "4194304 bytes are on their way already");
    since_ns = weir__mono_ns();
    assert_int_equal(weir_producer_send_async(p, &e, 1, 1, told, NULL, &err), WEIR_EBUSY);
    assert_true(weir__mono_ns() - since_ns >= 1000000); /* room is waited for so long */
    since_ns = weir__mono_ns();
    assert_int_equal(weir_producer_send(p, &e, 1, 10, NULL, &err), WEIR_EBUSY);
    assert_true(weir__mono_ns() - since_ns >= 10000000);
    assert_string_equal(err.text, "4194304 bytes are on their way already");
    assert_int_equal(weir_producer_close(p, 0, &err), WEIR_EUNKNOWN);
    hasty_close();
}

/* With the numbers of an idempotent producer it is more than there was. */
static void what_grows_too_large_is_refused(void **state)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_bytes(body, sizeof body - BATCH_OVERHEAD)};
    struct weir_producer *p;

    (void)state;
    hasty_open();
    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    assert_int_equal(weir_producer_send_async(p, &e, 1, 0, told, NULL, &err), WEIR_ETOOBIG);
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    e.body.len = 1;
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    close_producer(p);
    hasty_close();
}

/* A minute. */
static void an_outcome_is_waited_for_so_long(void **state)
{
    struct weir_event e = {.body = weir_text("x")};
    char text[WEIR_ERROR_TEXT_BYTES];
    struct weir_producer *p;

    (void)state;
    hasty_expect(60000 - PATIENCE_MS, 60000);
    open_silent();
    p = open_pinned(w, 0);
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EUNKNOWN);
    snprintf(text, sizeof text, "no answer to the batch: no answer from %s within 60000 ms",
             m.address);
    assert_string_equal(err.text, text);
    hasty_assert_passed(1);
    close_producer(p);
    hasty_close();
}

static atomic_bool holds, let_go;
static atomic_uint unknown;

/* Keeps the loop, so that what is sent meanwhile is taken in at once. */
static void hold(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    (void)user, (void)rc, (void)at, (void)why;
    atomic_store(&holds, true);
    while (!atomic_load(&let_go)) sched_yield();
}

static void count_unknown(void *user, int rc, const struct weir_receipt *at,
                          const struct weir_error *why)
{
    (void)user, (void)at, (void)why;
    if (rc == WEIR_EUNKNOWN) atomic_fetch_add(&unknown, 1);
}

/* Each batch its own minute: the clock runs on for the younger when the older is given up. */
static void each_outcome_is_waited_for(void **state)
{
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p, *other;
    int64_t since_ns;

    (void)state;
    m.script[1] = m.script[2] = MOODY_KEEP;
    m.steps = 3;
    hasty_open();
    p = open_pinned(w, 0);
    other = open_pinned(w, 0);
    assert_ok(weir_producer_send_async(other, &e, 1, 0, hold, NULL, &err));
    while (!atomic_load(&holds)) sched_yield();
    hasty_expect(60000 - PATIENCE_MS, 60000);
    assert_ok(weir_producer_send_async(p, &e, 1, 0, count_unknown, NULL, &err));
    since_ns = weir__mono_ns();
    while (weir__mono_ns() - since_ns < 20000000) sched_yield();
    assert_ok(weir_producer_send_async(p, &e, 1, 0, count_unknown, NULL, &err));
    atomic_store(&let_go, true);
    while (atomic_load(&unknown) < 2) sched_yield();
    hasty_assert_passed(1);
    close_producer(p);
    close_producer(other);
    hasty_close();
}

/* A batch with numbers is kept as long as its producer is there; then it has its minute, too, and the
 * link is left. */
static void a_closed_producer_leaves_in_the_end(void **state)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;

    (void)state;
    hasty_expect(60000 - PATIENCE_MS, 60000);
    open_silent();
    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    assert_ok(weir_producer_send_async(p, &e, 1, 0, told, NULL, &err));
    assert_int_equal(weir_producer_flush(p, 20, &err), WEIR_ETIMEDOUT);
    hasty_assert_passed(0);
    hasty_expect(1000, 1000); /* for the answer to the detach */
    assert_int_equal(weir_producer_close(p, 0, &err), WEIR_EUNKNOWN);
    hasty_assert_passed(2);
    hasty_close();
}

/* Of what was sent nobody knows, of what was not everybody does. */
static void deadlines_of_batches(void **state)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;

    (void)state;
    open_silent();
    p = open_pinned(w, 0);
    assert_int_equal(weir_producer_send(p, &e, 1, 500, NULL, &err), WEIR_EUNKNOWN);
    assert_string_equal(err.text, "no answer to the batch before the deadline");
    close_producer(p);
    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    assert_ok(weir_producer_send_async(p, &e, 1, 0, told, NULL, &err));
    assert_int_equal(weir_producer_send(p, &e, 1, 20, NULL, &err), WEIR_EBUSY);
    assert_string_equal(err.text, "the batch could not be sent before the deadline");
    assert_int_equal(weir_producer_close(p, 0, NULL), WEIR_EUNKNOWN);
    hasty_close();
}

#define TEST(name) cmocka_unit_test_setup(name, hasty_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_link_is_tried_again),
        TEST(a_link_that_is_denied_is_tried_once_more),
        TEST(a_link_that_was_open_is_tried_on),
        TEST(a_link_that_is_not_let_in_again_fails),
        TEST(a_connection_without_need_stays_away),
        TEST(a_batch_is_sent_again),
        TEST(a_batch_out_of_sequence_is_sent_once_more),
        TEST(so_much_is_on_its_way),
        TEST(what_grows_too_large_is_refused),
        TEST(an_outcome_is_waited_for_so_long),
        TEST(each_outcome_is_waited_for),
        TEST(a_closed_producer_leaves_in_the_end),
        TEST(deadlines_of_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
