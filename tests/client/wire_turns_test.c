/* A producer whose batches have numbers sends one at a time: the others wait for their turn, as long
 * as they are told to, and what was not stored leaves no number out. */
#include "client/contract/place.h"

#include "base/thread.h"
#include "client/blunt.h"

#define WIDE 255 /* handles of a session */
#define HANG_S 60
#define SOON_MS 20
#define TAKEN "another batch of this producer is being sent"

static struct {
    atomic_bool came, answer; /* the first batch has come, and may be answered */
    bool accepts;             /* the first batch is; else it has no outcome */
} scene;

static struct blunt *blunt;
static struct weir *w;
static struct weir_producer *producer;
static const struct weir_event event = {.body = {"x", 1}};

static void await(const atomic_bool *what)
{
    while (!atomic_load(what)) poll(NULL, 0, 1);
}

/* The server's thread. */
static bool take(struct blunt *b, uint16_t channel, const struct weir__amqp_composite *c)
{
    (void)channel, (void)c;
    if (atomic_load(&b->batches) > 1) return false;
    atomic_store(&scene.came, true);
    await(&scene.answer);
    return !scene.accepts;
}

static int start(void **state)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    struct weir_producer_options po = {.size = sizeof po, .pinned = true, .idempotent = true};
    char text[256];

    (void)state;
    alarm(HANG_S);
    memset(&scene, 0, sizeof scene);
    blunt = blunt_start(&(struct blunt_manners){.handle_max = WIDE, .took = take});
    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             blunt->address);
    assert_ok(weir_open(&w, text, &o, &err));
    assert_ok(weir_producer_open(&producer, w, "h", &po, &err));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_ok(weir_close(w, &err));
    blunt_stop(blunt);
    return 0;
}

static void assert_next_sequence(uint64_t sequence)
{
    struct weir_producer_identity identity;

    weir_producer_identity(producer, &identity);
    assert_int_equal(identity.id, 7);
    assert_int_equal(identity.next_sequence, sequence);
}

static void none(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    (void)user, (void)rc, (void)at, (void)why;
}

struct sending {
    pthread_t thread;
    int64_t timeout_ms;
    int rc;
    struct weir_error why;
};

static void *send_two(void *arg)
{
    const struct weir_event events[2] = {event, event};
    struct sending *s = arg;

    s->rc = weir_producer_send(producer, events, 2, s->timeout_ms, NULL, &s->why);
    return NULL;
}

static void begin(struct sending *s, int64_t timeout_ms)
{
    s->timeout_ms = timeout_ms;
    assert_int_equal(pthread_create(&s->thread, NULL, send_two, s), 0);
}

static void end(struct sending *s, int rc)
{
    pthread_join(s->thread, NULL);
    assert_int_equal(s->rc, rc);
}

/* Nobody else sends meanwhile, and who waited for its turn has it at once. */
static void one_batch_at_a_time(void **state)
{
    struct sending first, second;
    int64_t since_ns;

    (void)state;
    scene.accepts = true;
    begin(&first, PATIENCE_MS);
    await(&scene.came);
    assert_int_equal(weir_producer_send_async(producer, &event, 1, 0, none, NULL, &err),
                     WEIR_EBUSY);
    assert_string_equal(err.text, TAKEN);
    since_ns = weir__mono_ns();
    assert_int_equal(weir_producer_send(producer, &event, 1, SOON_MS, NULL, &err), WEIR_EBUSY);
    assert_true(weir__mono_ns() - since_ns >= SOON_MS * 1000000);
    assert_string_equal(err.text, TAKEN);
    assert_int_equal(weir_producer_send_async(producer, &event, 1, SOON_MS, none, NULL, &err),
                     WEIR_EBUSY);
    assert_next_sequence(0);
    begin(&second, PATIENCE_MS);
    poll(NULL, 0, SOON_MS); /* so that it waits, on most days */
    since_ns = weir__mono_ns();
    atomic_store(&scene.answer, true);
    end(&first, 0);
    end(&second, 0);
    assert_true(weir__mono_ns() - since_ns < (PATIENCE_MS / 2) * INT64_C(1000000));
    assert_next_sequence(4);
    assert_int_equal(atomic_load(&blunt->batches), 2);
    close_producer(producer);
}

/* What may be stored or not is sent again by its caller, with the same numbers. A slow machine does
 * not send anything within the first deadlines, and says so. */
static void an_unknown_outcome_takes_no_number(void **state)
{
    int64_t timeout_ms = SOON_MS;
    int rc;

    (void)state;
    do {
        rc = weir_producer_send(producer, &event, 1, timeout_ms, NULL, &err);
        timeout_ms *= 2;
    } while (rc == WEIR_EBUSY);
    assert_int_equal(rc, WEIR_EUNKNOWN);
    assert_string_equal(err.text, "no answer to the batch before the deadline");
    assert_next_sequence(0);
    atomic_store(&scene.answer, true);
    assert_ok(weir_producer_close(producer, 0, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_batch_at_a_time, start, stop),
        cmocka_unit_test_setup_teardown(an_unknown_outcome_takes_no_number, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
