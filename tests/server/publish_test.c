/* Batches of a sender on their way to the log and back: a log that is played here, an engine that
 * says the outcomes, and a client's engine that hears them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/state.h"
#include "support/allocs.h"

#define HEARD_MAX 64
#define CROWD 200000u

struct scene {
    struct weir__loops *loops;
    struct weir__server server;
    struct weir__connection c;
    struct weir__duty duty;
    struct weir__publish p;
    struct weir__amqp *client;
    struct weir__amqp_link *link; /* the client's */
    struct weir__amqp_settlement heard[HEARD_MAX];
    char condition[HEARD_MAX][64];
    uint32_t heard_count;
    uint64_t settled; /* deliveries of which an outcome was heard */
};

static void on_event(struct scene *s, const struct weir__amqp_event *ev)
{
    const struct weir__amqp_terms terms = {.credit = 20000};

    if (ev->type == WEIR__AMQP_EVENT_ATTACH && ev->incoming) {
        assert_int_equal(weir__amqp_accept(ev->link, &terms, NULL), 0);
        s->duty.link = ev->link;
    }
    if (ev->type != WEIR__AMQP_EVENT_SETTLE) return;
    s->settled += ev->settle.last - ev->settle.first + 1;
    if (s->heard_count == HEARD_MAX) return;
    s->heard[s->heard_count] = ev->settle;
    snprintf(s->condition[s->heard_count++], 64, "%.*s", (int)ev->settle.error.condition.len,
             (const char *)ev->settle.error.condition.at);
}

static bool carry(struct scene *s, struct weir__amqp *from, struct weir__amqp *to)
{
    struct weir__bytes out = weir__amqp_output(from);
    struct weir__amqp_event ev;
    size_t room;
    uint8_t *in = weir__amqp_input(to, &room);
    size_t n = out.len < room ? out.len : room;

    if (n) memcpy(in, out.at, n);
    weir__amqp_received(to, n);
    weir__amqp_sent(from, n);
    while (weir__amqp_next(to, &ev)) on_event(s, &ev);
    return n > 0;
}

static void talk(struct scene *s)
{
    bool moved = true;

    while (moved) {
        moved = carry(s, s->client, s->c.engine);
        moved = carry(s, s->c.engine, s->client) || moved;
    }
}

static void no_work(void *arg)
{
    (void)arg; /* the tests take what is done by themselves */
}

static int set_up(void **state)
{
    struct weir__amqp_options o = {.after.unsettled = 32768};
    struct weir__amqp_terms terms = {.name = {(const uint8_t *)"l", 1}, .role = WEIR__AMQP_SENDER};
    struct scene *s = calloc(1, sizeof *s);
    struct weir__amqp_session *session;

    assert_int_equal(weir__loops_start(&s->loops, &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    assert_int_equal(weir__amqp_new(&s->c.engine, &o, NULL), 0);
    o.client = true;
    assert_int_equal(weir__amqp_new(&s->client, &o, NULL), 0);
    weir__amqp_trust(s->c.engine);
    weir__amqp_trust(s->client);
    assert_int_equal(weir__amqp_begin(s->client, &session, NULL), 0);
    assert_int_equal(weir__amqp_attach(session, &terms, &s->link, NULL), 0);
    s->c.server = &s->server;
    s->c.loop = weir__loops_at(s->loops, 0);
    s->c.done_last = &s->c.done;
    atomic_init(&s->c.refs, 1);
    weir__mutex_init(&s->c.lock);
    weir__post_init(&s->c.work, no_work, NULL);
    s->duty.connection = &s->c;
    weir__publish_init(&s->p, &s->duty);
    talk(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__publish_fini(&s->p);
    weir__loops_free(s->loops);
    weir__mutex_fini(&s->c.lock);
    weir__amqp_free(s->c.engine);
    weir__amqp_free(s->client);
    free(s);
    return 0;
}

/* The client sends deliveries, and the log is given a batch for each. */
static void put(struct scene *s, uint32_t count, bool settled)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id;
        assert_int_equal(weir__amqp_send(s->link, weir__bytes_of("m", 1), 0, settled, &id), 0);
        assert_true(weir__publish_put(&s->p, id, id, 100, settled));
    }
    talk(s);
}

static void done(struct scene *s, uint32_t count, int rc)
{
    struct weir_error err = {.code = rc, .text = "no room"};

    while (count--) weir__publish_done(&s->p, rc, NULL, rc ? &err : NULL);
}

static void assert_heard(const struct scene *s, uint32_t i, uint32_t first, uint32_t last,
                         const char *condition)
{
    assert_true(i < s->heard_count);
    assert_int_equal(s->heard[i].first, first);
    assert_int_equal(s->heard[i].last, last);
    assert_string_equal(s->condition[i], condition);
    assert_int_equal(s->heard[i].outcome, *condition ? WEIR__AMQP_REJECTED : WEIR__AMQP_ACCEPTED);
}

static void a_group_has_one_outcome(void **state)
{
    struct scene *s = *state;

    put(s, 1000, false);
    assert_int_equal(s->c.unflushed, 100000);
    assert_int_equal(s->c.batches, 1000);
    assert_int_equal(atomic_load(&s->c.refs), 2);
    assert_true(atomic_load(&s->server.unflushed) > 0);
    done(s, 400, 0);
    assert_false(weir__publish_take_done(&s->c));
    done(s, 600, 0);
    assert_true(weir__publish_take_done(&s->c)); /* and lets go of the reference */
    assert_false(weir__publish_take_done(&s->c));
    talk(s);
    assert_int_equal(s->heard_count, 1); /* the engine joined the two */
    assert_heard(s, 0, 0, 999, "");
    assert_int_equal(s->c.unflushed, 0);
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
}

static void failures_are_told_one_by_one(void **state)
{
    struct scene *s = *state;

    put(s, 10, false);
    done(s, 3, 0);
    done(s, 2, WEIR_ENOSPACE);
    done(s, 1, 0);
    done(s, 1, WEIR_EFENCED);
    done(s, 2, 0);
    assert_false(weir__publish_take_done(&s->c));
    done(s, 1, WEIR_ENOSPACE);
    assert_true(weir__publish_take_done(&s->c));
    talk(s);
    assert_int_equal(s->heard_count, 7);
    assert_heard(s, 0, 0, 2, "");
    assert_heard(s, 1, 3, 3, WEIR__COND_SERVER_BUSY);
    assert_heard(s, 2, 4, 4, WEIR__COND_SERVER_BUSY);
    assert_heard(s, 3, 5, 5, "");
    assert_heard(s, 4, 6, 6, WEIR__COND_EPOCH_STOLEN);
    assert_heard(s, 5, 7, 8, "");
    assert_heard(s, 6, 9, 9, WEIR__COND_SERVER_BUSY);
}

/* A batch may be several deliveries: they have one outcome. */
static void a_batch_of_many(void **state)
{
    static const uint32_t counts[] = {3, 1, 4, 2};
    struct scene *s = *state;
    uint32_t first = 0, id;

    for (int i = 0; i < 10; i++)
        assert_int_equal(weir__amqp_send(s->link, weir__bytes_of("m", 1), 0, false, &id), 0);
    for (int i = 0; i < 4; first += counts[i++])
        assert_true(weir__publish_put(&s->p, first, first + counts[i] - 1, 100, false));
    talk(s);
    done(s, 2, 0);
    done(s, 1, WEIR_ENOSPACE);
    done(s, 1, 0);
    assert_true(weir__publish_take_done(&s->c));
    talk(s);
    assert_int_equal(s->heard_count, 3);
    assert_heard(s, 0, 0, 3, "");
    assert_heard(s, 1, 4, 7, WEIR__COND_SERVER_BUSY);
    assert_heard(s, 2, 8, 9, "");
}

static void the_settled_are_told_nothing(void **state)
{
    struct scene *s = *state;

    put(s, 2, false);
    put(s, 3, true);
    put(s, 2, false);
    done(s, 3, 0);
    done(s, 1, WEIR_ENOSPACE); /* of one that nobody waits for */
    done(s, 3, 0);
    assert_true(weir__publish_take_done(&s->c));
    talk(s);
    assert_int_equal(s->heard_count, 2);
    assert_heard(s, 0, 0, 1, "");
    assert_heard(s, 1, 5, 6, "");
}

/* What the log did not take leaves no trace. */
static void what_was_not_taken_is_taken_back(void **state)
{
    struct scene *s = *state;

    put(s, 1, false);
    assert_true(weir__publish_put(&s->p, 99, 99, 500, false));
    weir__publish_take_back(&s->p);
    assert_int_equal(s->c.unflushed, 100);
    done(s, 1, 0);
    assert_true(weir__publish_take_done(&s->c));
    atomic_fetch_sub(&s->c.refs, 1);
    assert_true(weir__publish_put(&s->p, 99, 99, 500, false));
    weir__publish_take_back(&s->p);
    assert_int_equal(atomic_load(&s->c.refs), 1);
    assert_int_equal(s->c.batches, 0);
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
}

/* A link that has gone waits for nothing, and what is counted is counted. */
static void the_link_has_gone(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link = s->duty.link;

    put(s, 5, false);
    done(s, 2, 0);
    done(s, 1, WEIR_ENOSPACE);
    s->duty.link = NULL;
    assert_false(weir__publish_take_done(&s->c)); /* two are with the log still */
    assert_int_equal(s->c.unflushed, 200);
    s->duty.link = link; /* or the sender would be freed, which is none here */
    done(s, 2, 0);
    assert_true(weir__publish_take_done(&s->c));
    assert_int_equal(s->c.unflushed, 0);
}

static void there_is_a_most(void **state)
{
    struct scene *s = *state;

    for (uint32_t i = 0; i < WEIR__PUBLISH_ITEMS_MAX; i++)
        assert_true(weir__publish_put(&s->p, i, i, 1, true));
    assert_false(weir__publish_put(&s->p, 0, 0, 1, true));
    done(s, WEIR__PUBLISH_ITEMS_MAX, 0);
    assert_true(weir__publish_take_done(&s->c));
    assert_true(weir__publish_put(&s->p, 0, 0, 1, true));
    weir__publish_take_back(&s->p);
}

/* What is remembered has more room when it is needed, wherever the oldest lies by then. */
static void a_ring_that_was_used_grows(void **state)
{
    struct scene *s = *state;

    put(s, 40, false);
    done(s, 40, 0);
    assert_true(weir__publish_take_done(&s->c));
    atomic_fetch_sub(&s->c.refs, 1);
    put(s, 200, false);
    done(s, 100, 0);
    done(s, 1, WEIR_ENOSPACE);
    done(s, 99, 0);
    assert_true(weir__publish_take_done(&s->c));
    talk(s);
    assert_int_equal(s->heard_count, 4);
    assert_heard(s, 0, 0, 39, "");
    assert_heard(s, 1, 40, 139, "");
    assert_heard(s, 2, 140, 140, WEIR__COND_SERVER_BUSY);
    assert_heard(s, 3, 141, 239, "");
}

/* A sender that was told of once is not looked at again because another one is. */
static void only_those_with_news_are_looked_at(void **state)
{
    struct scene *s = *state;
    struct weir__duty duty = {.connection = &s->c, .link = s->duty.link};
    struct weir__publish other;

    weir__publish_init(&other, &duty);
    assert_true(weir__publish_put(&s->p, 0, 0, 1, true));
    assert_true(weir__publish_put(&other, 0, 0, 1, true));
    done(s, 1, 0);
    weir__publish_done(&other, 0, NULL, NULL);
    assert_true(weir__publish_take_done(&s->c));
    weir__publish_fini(&other);
    memset(&other, 0x55, sizeof other);
    assert_true(weir__publish_put(&s->p, 0, 0, 1, true));
    done(s, 1, 0);
    assert_true(weir__publish_take_done(&s->c));
    assert_null(s->c.done);
}

/* Without memory to remember one by, it is not taken; those before are as they were. */
static void no_memory_for_one_more(void **state)
{
    struct scene *s = *state;
    uint32_t count = 0;

    allocs_fail(1);
    assert_false(weir__publish_put(&s->p, 0, 0, 1, true));
    allocs_fail(0);
    assert_int_equal(atomic_load(&s->c.refs), 1);
    do {
        assert_true(weir__publish_put(&s->p, count, count, 1, true));
        allocs_fail(1);
    } while (++count < s->p.items_cap);
    assert_false(weir__publish_put(&s->p, count, count, 1, true));
    allocs_fail(0);
    assert_int_equal(s->c.batches, count);
    assert_int_equal(s->c.unflushed, count);
    done(s, count, 0);
    assert_true(weir__publish_take_done(&s->c));
}

/* The server's sum is told of the first byte and the last, and of many at a time between. */
static void the_sum_is_told_in_steps(void **state)
{
    static const struct {
        size_t bytes, sum;
    } rows[] = {{1, 1}, {65535, 1}, {1, 65537}, {65535, 65537}, {70000, 201072}};
    struct scene *s = *state;

    for (uint32_t i = 0; i < 5; i++) {
        assert_true(weir__publish_put(&s->p, i, i, rows[i].bytes, true));
        assert_int_equal(atomic_load(&s->server.unflushed), rows[i].sum);
    }
    done(s, 2, 0);
    assert_false(weir__publish_take_done(&s->c));
    assert_int_equal(atomic_load(&s->server.unflushed), 135536);
    done(s, 1, 0);
    assert_false(weir__publish_take_done(&s->c));
    assert_int_equal(atomic_load(&s->server.unflushed), 135536);
    done(s, 2, 0);
    assert_true(weir__publish_take_done(&s->c));
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
}

/* A server that stops waits for the last byte, and is told under its lock: else it could just be
 * between looking and waiting. */
static void the_last_byte_is_told_under_the_lock(void **state)
{
    struct scene *s = *state;
    pthread_mutexattr_t strict;

    pthread_mutexattr_init(&strict);
    pthread_mutexattr_settype(&strict, PTHREAD_MUTEX_ERRORCHECK); /* none unlocks what is not its */
    assert_int_equal(pthread_mutex_init(&s->server.lock.m, &strict), 0);
    pthread_mutexattr_destroy(&strict);
    weir__cond_init(&s->server.changed);
    atomic_store(&s->server.stopping, true);
    assert_true(weir__publish_put(&s->p, 0, 0, 1, true));
    done(s, 1, 0);
    assert_true(weir__publish_take_done(&s->c));
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
    assert_int_equal(pthread_mutex_trylock(&s->server.lock.m), 0); /* it was left again */
    weir__mutex_unlock(&s->server.lock);
    weir__cond_fini(&s->server.changed);
    weir__mutex_fini(&s->server.lock);
}

/* Without memory to say why, nothing from there on is called stored. */
static void no_memory_for_a_failure(void **state)
{
    struct scene *s = *state;

    put(s, 5, false);
    done(s, 2, 0);
    allocs_fail(1);
    done(s, 1, WEIR_ENOSPACE);
    done(s, 1, 0);
    allocs_fail(1); /* once more changes nothing */
    done(s, 1, WEIR_ENOSPACE);
    allocs_fail(0);
    assert_true(weir__publish_take_done(&s->c));
    talk(s);
    assert_int_equal(s->heard_count, 4);
    assert_heard(s, 0, 0, 1, "");
    for (uint32_t i = 1; i < 4; i++) assert_heard(s, i, i + 1, i + 1, WEIR__AMQP_COND_INTERNAL);
}

/* The log's thread, which is done with batches as fast as they come. */
struct played_log {
    struct scene *s;
    atomic_uint given;
};

static void *play_log(void *arg)
{
    struct played_log *log = arg;

    for (uint32_t i = 0; i < CROWD;) {
        for (uint32_t end = atomic_load(&log->given); i < end; i++)
            weir__publish_done(&log->s->p, 0, NULL, NULL);
    }
    return NULL;
}

static void none_is_lost_between_threads(void **state)
{
    struct scene *s = *state;
    struct played_log log = {.s = s};
    struct weir__thread thread;
    uint32_t given = 0;

    atomic_init(&log.given, 0);
    assert_int_equal(weir__thread_start(&thread, "log", play_log, &log, NULL), 0);
    while (s->p.settled < CROWD) {
        for (int i = 0; i < 50 && given < CROWD; i++) {
            if (!weir__publish_put(&s->p, given, given, 7, true)) break;
            atomic_store(&log.given, ++given);
        }
        if (weir__publish_take_done(&s->c)) atomic_fetch_sub(&s->c.refs, 1);
    }
    weir__thread_join(&thread);
    assert_int_equal(s->c.batches, 0);
    assert_int_equal(s->c.unflushed, 0);
    assert_int_equal(atomic_load(&s->c.refs), 1);
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_group_has_one_outcome),
        TEST(failures_are_told_one_by_one),
        TEST(a_batch_of_many),
        TEST(the_settled_are_told_nothing),
        TEST(what_was_not_taken_is_taken_back),
        TEST(the_link_has_gone),
        TEST(there_is_a_most),
        TEST(a_ring_that_was_used_grows),
        TEST(only_those_with_news_are_looked_at),
        TEST(no_memory_for_one_more),
        TEST(the_sum_is_told_in_steps),
        TEST(the_last_byte_is_told_under_the_lock),
        TEST(no_memory_for_a_failure),
        TEST(none_is_lost_between_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
