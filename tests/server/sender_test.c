/* Events that come one to a transfer: which of them share a batch, and what each is told. A log
 * that flushes when it is told to, the server's side of a connection without a socket, and a
 * client's engine that sends and hears. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/receiver.h"
#include "hub/route.h"
#include "server/state.h"
#include "support/allocs.h"
#include "support/tempdir.h"

#define HEARD_MAX 64
#define PARTITIONS 4
#define TAIL_BYTES ((uint64_t)8 << 20)

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__loops *loops;
    struct weir__server server;
    struct weir__connection c;
    struct weir__hub *hub;
    struct weir__amqp *client;
    struct weir__amqp_session *session;
    struct weir__amqp_link *links[PARTITIONS + 1]; /* the last: to the hub */
    struct weir__amqp_settlement heard[HEARD_MAX];
    char condition[HEARD_MAX][64];
    uint32_t heard_count;
};

/* ---- the scene ---- */

static void hear(struct scene *s, const struct weir__amqp_event *ev)
{
    if (ev->type != WEIR__AMQP_EVENT_SETTLE) return;
    assert_true(s->heard_count < HEARD_MAX);
    s->heard[s->heard_count] = ev->settle;
    snprintf(s->condition[s->heard_count++], 64, "%.*s", (int)ev->settle.error.condition.len,
             (const char *)ev->settle.error.condition.at);
}

static bool carry(struct weir__amqp *from, struct weir__amqp *to)
{
    struct weir__bytes out = weir__amqp_output(from);
    size_t room;
    uint8_t *in = weir__amqp_input(to, &room);
    size_t n = out.len < room ? out.len : room;

    if (n) memcpy(in, out.at, n);
    weir__amqp_received(to, n);
    weir__amqp_sent(from, n);
    return n > 0;
}

/* One read of the server's, and what connection.c does then. */
static bool serve(struct scene *s)
{
    bool moved = carry(s->client, s->c.engine);

    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    if (s->c.run.sender) assert_true(weir__run_end(&s->c));
    return moved;
}

static void talk(struct scene *s)
{
    struct weir__amqp_event ev;
    bool moved = true;

    while (moved) {
        moved = serve(s);
        moved = carry(s->c.engine, s->client) || moved;
        while (weir__amqp_next(s->client, &ev)) hear(s, &ev);
    }
}

static void attach(struct scene *s, uint32_t partition)
{
    struct weir__amqp_terms terms = {.role = WEIR__AMQP_SENDER};
    struct weir__amqp_composite target;
    uint8_t space[128];
    char address[64];
    int len = snprintf(address, sizeof address, "eh1/Partitions/%u", partition);

    if (partition == PARTITIONS) len = snprintf(address, sizeof address, "eh1");
    weir__amqp_composite_init(&target, WEIR__AMQP_TARGET);
    target.target.address = weir__amqp_bytes(WEIR__AMQP_STRING, address, (size_t)len);
    terms.name = weir__bytes_of(address, (size_t)len);
    terms.target = weir__amqp_composite_value(&target, space, sizeof space);
    assert_int_equal(weir__amqp_attach(s->session, &terms, &s->links[partition], NULL), 0);
}

static void no_work(void *arg)
{
    (void)arg; /* the tests take what is done by themselves */
}

static void make_connection(struct scene *s)
{
    struct weir__amqp_options o = {.client = true};
    struct weir__claim claim = {.rights = WEIR__RIGHT_SEND, .expires_s = INT64_MAX};

    s->server.clock = weir__clock_system();
    s->c.server = &s->server;
    s->c.loop = weir__loops_at(s->loops, 0);
    s->c.expires_s = INT64_MAX;
    s->c.done_last = &s->c.done;
    atomic_init(&s->c.refs, 1);
    weir__mutex_init(&s->c.lock);
    weir__post_init(&s->c.work, no_work, NULL);
    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
    assert_int_equal(weir__amqp_new(&s->client, &o, NULL), 0);
    o.client = false;
    assert_int_equal(weir__amqp_new(&s->c.engine, &o, NULL), 0);
    weir__amqp_trust(s->c.engine);
    weir__amqp_trust(s->client);
    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    talk(s);
    for (uint32_t i = 0; i <= PARTITIONS; i++) attach(s, i);
    talk(s);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir__hub_config hub = {.name = "eh1", .partitions = PARTITIONS};
    struct weir__namespace_options o = {.no_threads = true,
                                        .segment_bytes_min = 1u << 20,
                                        .tail_bytes = TAIL_BYTES};

    assert_int_equal(tempdir_make(s->dir), 0);
    assert_int_equal(weir__namespace_open(&s->server.ns, s->dir, &o, NULL), 0);
    assert_int_equal(weir__namespace_hub_create(s->server.ns, &hub, NULL), 0);
    assert_int_equal(weir__namespace_use(s->server.ns, "eh1", &s->hub, NULL), 0);
    assert_int_equal(weir__loops_start(&s->loops, &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    make_connection(s);
    *state = s;
    return 0;
}

static void flush(struct scene *s)
{
    assert_int_equal(weir__hub_flush(s->hub, INT64_MAX, NULL), 0);
    if (weir__publish_take_done(&s->c)) atomic_fetch_sub(&s->c.refs, 1);
    talk(s);
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    flush(s);
    weir__amqp_lost(s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_int_equal(atomic_load(&s->c.refs), 1);
    assert_null(s->c.duties);
    weir__amqp_free(s->c.engine);
    weir__amqp_free(s->client);
    weir__claims_fini(&s->c.claims);
    weir__mutex_fini(&s->c.lock);
    weir__loops_free(s->loops);
    weir__hub_release(s->hub);
    assert_int_equal(weir__namespace_close(s->server.ns, NULL), 0);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

/* ---- sending and looking ---- */

/* One event whose body is a number, with a key when there is one; `bytes` at least. */
static void send(struct scene *s, uint32_t link, uint32_t number, const char *key, size_t bytes,
                 bool settled)
{
    struct weir__amqp_pair pair = {weir__bytes_of("x-opt-partition-key", 19), {0}};
    struct weir__amqp_content content = {0};
    struct weir__amqp_writer w;
    struct weir__bytes message;
    uint8_t body[4096] = {0}, space[8192];

    memcpy(body, &number, sizeof number);
    content.data = weir__bytes_of(body, bytes < sizeof number ? sizeof number : bytes);
    if (key) {
        pair.value = weir__amqp_bytes(WEIR__AMQP_STRING, key, strlen(key));
        content.annotations = &pair;
        content.annotation_count = 1;
    }
    weir__amqp_writer_init(&w, space, sizeof space);
    assert_int_equal(weir__amqp_message_write(&w, &content, NULL), 0);
    assert_int_equal(weir__amqp_writer_finish(&w, &message, NULL), 0);
    assert_int_equal(weir__amqp_send(s->links[link], message, 0, settled, NULL), 0);
}

static void send_some(struct scene *s, uint32_t link, uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) send(s, link, from + i, NULL, 4, false);
}

static void send_rubbish(struct scene *s, uint32_t link)
{
    assert_int_equal(weir__amqp_send(s->links[link], weir__bytes_of("\x00\x53\x99", 3), 0, false,
                                     NULL),
                     0);
}

/* The numbers of a partition's events follow one another from `first` by `step`. */
static void assert_numbers(struct scene *s, uint32_t partition, uint32_t first, uint32_t step,
                           uint32_t count)
{
    struct weir__receiver_options o = {.partition = partition,
                                       .from = {.kind = WEIR__FROM_EARLIEST},
                                       .epoch = WEIR__EPOCH_NONE,
                                       .credit = WEIR__CREDIT_UNLIMITED};
    struct weir__event event = {0};
    struct weir__receiver_take take = {.events_max = 1, .events = &event};
    struct weir__receiver *r;

    assert_int_equal(weir__receiver_attach(&r, s->hub, &o, NULL), 0);
    for (uint32_t i = 0; i < count; i++) {
        struct weir__amqp_message m;
        uint32_t number;
        assert_int_equal(weir__receiver_next(r, &take, NULL), 0);
        assert_int_equal(take.count, 1);
        assert_int_equal(event.sequence, i);
        assert_int_equal(weir__amqp_message_scan(&m, event.message, WEIR__AMQP_DEEP, NULL), 0);
        memcpy(&number, m.data.at, sizeof number);
        assert_int_equal(number, first + i * step);
    }
    assert_int_equal(weir__receiver_next(r, &take, NULL), 0);
    assert_int_equal(take.count, 0);
    weir__receiver_close(r);
}

static void assert_stored(struct scene *s, uint64_t batches, uint64_t events)
{
    struct weir__hub_stats stats;

    weir__hub_stats(s->hub, &stats);
    assert_int_equal(stats.log.batches, batches);
    assert_int_equal(stats.log.events, events);
    assert_int_equal(s->c.unflushed, 0);
}

static uint64_t events_in(struct scene *s, uint32_t partition)
{
    struct weir__partition_properties p;

    assert_int_equal(weir__hub_partition_properties(s->hub, partition, &p, NULL), 0);
    return (uint64_t)(p.last_sequence + 1);
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

/* ---- the tests ---- */

static void neighbours_share_a_batch(void **state)
{
    struct scene *s = *state;

    send_some(s, 1, 0, 40);
    talk(s);
    assert_int_equal(s->heard_count, 0); /* not before they are on disk */
    assert_int_equal(s->c.batches, 1);
    flush(s);
    assert_heard(s, 0, 0, 39, "");
    assert_int_equal(s->heard_count, 1);
    assert_stored(s, 1, 40);
    assert_numbers(s, 1, 0, 1, 40);
}

static void what_is_read_later_is_another(void **state)
{
    struct scene *s = *state;

    for (uint32_t i = 0; i < 3; i++) {
        send_some(s, 0, i, 1);
        talk(s);
    }
    flush(s);
    assert_heard(s, 0, 0, 2, "");
    assert_stored(s, 3, 3);
}

/* Large reads come when small ones were full. */
static void make_reads_large(struct scene *s)
{
    for (uint32_t i = 0; i < 100; i++) send(s, 3, i, NULL, 1000, false);
    talk(s);
    flush(s);
}

static void a_run_has_an_end(void **state)
{
    struct scene *s = *state;
    struct weir__hub_stats before, after;

    make_reads_large(s);
    weir__hub_stats(s->hub, &before);
    send_some(s, 0, 0, WEIR__RUN_EVENTS_MAX + 1);                       /* 64, 1 */
    for (uint32_t i = 0; i < 17; i++) send(s, 1, i, NULL, 1000, false); /* 16 KiB, the rest */
    send(s, 1, 17, NULL, WEIR__RUN_EVENT_MAX, false);                   /* alone */
    send(s, 1, 18, NULL, 4, false);
    talk(s);
    flush(s);
    weir__hub_stats(s->hub, &after);
    assert_int_equal(after.log.batches - before.log.batches, 6);
    assert_numbers(s, 0, 0, 1, WEIR__RUN_EVENTS_MAX + 1);
    assert_numbers(s, 1, 0, 1, 19);
}

/* What is wrong with one of them is its own affair. */
static void a_bad_one_is_rejected_alone(void **state)
{
    struct scene *s = *state;

    send_some(s, 2, 0, 3);
    send_rubbish(s, 2);
    send_some(s, 2, 3, 2);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_heard(s, 0, 3, 3, WEIR__COND_ARGUMENT);
    flush(s);
    assert_int_equal(s->heard_count, 3);
    assert_heard(s, 1, 0, 2, "");
    assert_heard(s, 2, 4, 5, "");
    assert_stored(s, 2, 5);
    assert_numbers(s, 2, 0, 1, 5);
}

static void a_key_is_of_one_batch(void **state)
{
    static const char *const keys[] = {NULL, NULL, "a", "a", "b", "a", NULL, ""};
    struct scene *s = *state;

    for (uint32_t i = 0; i < 8; i++) send(s, 0, i, keys[i], 4, false);
    talk(s);
    flush(s);
    assert_stored(s, 6, 8);
    assert_numbers(s, 0, 0, 1, 8);
}

static void a_key_chooses_the_partition(void **state)
{
    struct scene *s = *state;
    uint32_t a = weir__route_key(weir__bytes_of("home-7", 6), PARTITIONS);

    for (uint32_t i = 0; i < 30; i++) send(s, PARTITIONS, i, "home-7", 4, false);
    talk(s);
    flush(s);
    assert_stored(s, 1, 30);
    assert_numbers(s, a, 0, 1, 30);
}

/* Where nobody chose a partition, none gets more than a turn more than another. */
static void the_hub_takes_turns(void **state)
{
    struct scene *s = *state;

    for (uint32_t i = 0; i < 5; i++) {
        send_some(s, PARTITIONS, 0, PARTITIONS * WEIR__RUN_TURN_MAX);
        talk(s);
    }
    flush(s);
    assert_stored(s, PARTITIONS * 5, PARTITIONS * 5 * WEIR__RUN_TURN_MAX);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        assert_int_equal(events_in(s, i), 5 * WEIR__RUN_TURN_MAX);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        send_some(s, PARTITIONS, 0, 1);
        talk(s);
    }
    flush(s);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        assert_int_equal(events_in(s, i), 5 * WEIR__RUN_TURN_MAX + 1);
}

/* Links that take turns keep the order of the connection, and their own outcomes. */
static void another_link_ends_a_run(void **state)
{
    struct scene *s = *state;

    for (uint32_t i = 0; i < 6; i++) send(s, i % 2, i, NULL, 4, false);
    send_some(s, 1, 6, 2);
    talk(s);
    flush(s);
    assert_stored(s, 6, 8);
    assert_numbers(s, 0, 0, 2, 3);
    assert_int_equal(events_in(s, 1), 5);
}

static void the_settled_are_told_nothing(void **state)
{
    struct scene *s = *state;

    send_some(s, 0, 0, 2);
    for (uint32_t i = 2; i < 5; i++) send(s, 0, i, NULL, 4, true);
    send_some(s, 0, 5, 2);
    talk(s);
    flush(s);
    assert_int_equal(s->heard_count, 2);
    assert_heard(s, 0, 0, 1, "");
    assert_heard(s, 1, 5, 6, "");
    assert_stored(s, 3, 7);
    assert_numbers(s, 0, 0, 1, 7);
}

/* A detach comes after what was sent before it. */
static void the_link_ends_behind_its_events(void **state)
{
    struct scene *s = *state;

    send_some(s, 3, 0, 5);
    weir__amqp_detach(s->links[3], NULL);
    talk(s);
    flush(s);
    assert_stored(s, 1, 5);
    assert_numbers(s, 3, 0, 1, 5);
}

static void a_run_is_refused_as_one(void **state)
{
    struct scene *s = *state;

    send_some(s, 0, 0, 3);
    carry(s->client, s->c.engine);
    assert_true(weir__amqp_next(s->c.engine, &s->c.event));
    assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_int_equal(weir__namespace_hub_delete(s->server.ns, "eh1", NULL), 0);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_heard(s, 0, 0, 2, WEIR__AMQP_COND_NOT_FOUND);
}

/* What comes when the server ends is for another time. */
static void a_sealed_server_publishes_nothing(void **state)
{
    struct scene *s = *state;

    atomic_store(&s->server.sealed, true);
    send_some(s, 0, 0, 3);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_heard(s, 0, 0, 2, WEIR__COND_SERVER_BUSY);
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
    assert_stored(s, 0, 0);
}

/* Fills the log until it takes nothing; returns how many large events that took. */
static uint32_t fill_log(struct scene *s)
{
    static const uint8_t body[64 << 10];
    struct weir__batch_writer w;
    struct weir__batch b;
    uint32_t count = 0;

    weir__batch_writer_init(&w, 0);
    weir__batch_writer_start(&w, weir__bytes_of(NULL, 0), NULL);
    weir__batch_writer_add(&w, &(struct weir__amqp_content){.data = {body, sizeof body}}, NULL);
    assert_int_equal(weir__batch_writer_batch(&w, &b, NULL), 0);
    while (weir__hub_publish(s->hub, &b, 3, NULL, 0, NULL, NULL, NULL) == 0) count++;
    weir__batch_writer_fini(&w);
    return count;
}

/* A busy log holds the run, and the event behind it, and neither comes twice. */
static void a_busy_log_is_waited_for(void **state)
{
    struct scene *s = *state;
    uint32_t taken = 0;

    make_reads_large(s);
    assert_true(fill_log(s) > 0);
    send_some(s, 0, 0, WEIR__RUN_EVENTS_MAX + 5);
    carry(s->client, s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event) &&
           weir__connection_on_event(&s->c, &s->c.event))
        taken++;
    assert_int_equal(taken, WEIR__RUN_EVENTS_MAX);
    assert_int_equal(s->c.run.events.count, WEIR__RUN_EVENTS_MAX);
    assert_false(weir__connection_on_event(&s->c, &s->c.event));
    assert_false(weir__run_end(&s->c));
    assert_ptr_equal(s->c.stuck_hub, s->hub);
    assert_int_equal(weir__hub_flush(s->hub, INT64_MAX, NULL), 0);
    assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_null(s->c.stuck_hub);
    assert_int_equal(s->c.run.events.count, 1);
    talk(s);
    flush(s);
    assert_numbers(s, 0, 0, 1, WEIR__RUN_EVENTS_MAX + 5);
}

/* And it holds whatever comes behind the run, which is not lost. */
static void what_follows_a_run_waits_with_it(void **state)
{
    struct scene *s = *state;

    assert_true(fill_log(s) > 0);
    send_some(s, 0, 0, 5);
    weir__amqp_detach(s->links[0], NULL);
    carry(s->client, s->c.engine);
    do {
        assert_true(weir__amqp_next(s->c.engine, &s->c.event));
    } while (weir__connection_on_event(&s->c, &s->c.event));
    assert_int_equal(s->c.event.type, WEIR__AMQP_EVENT_DETACH);
    assert_int_equal(s->c.run.events.count, 5);
    assert_false(weir__connection_on_event(&s->c, &s->c.event));
    assert_int_equal(weir__hub_flush(s->hub, INT64_MAX, NULL), 0);
    assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_null(s->c.run.sender);
    talk(s);
    flush(s);
    assert_numbers(s, 0, 0, 1, 5);
}

/* The time of this hub counts, from when it was met busy, and it has an end. */
static void a_busy_log_has_its_time(void **state)
{
    struct scene *s = *state;

    assert_true(fill_log(s) > 0);
    send_some(s, 0, 0, 5);
    carry(s->client, s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    s->c.stuck_hub = (struct weir__hub *)&s->server; /* another one, long ago */
    s->c.stuck_ms = INT64_MIN / 2;
    assert_false(weir__run_end(&s->c));
    assert_ptr_equal(s->c.stuck_hub, s->hub);
    assert_int_equal(s->c.run.events.count, 5);
    s->c.stuck_ms = weir__loop_now_ms(s->c.loop) - WEIR__SERVER_BUSY_MS;
    assert_true(weir__run_end(&s->c));
    assert_null(s->c.run.sender);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_heard(s, 0, 0, 4, WEIR__COND_SERVER_BUSY);
    flush(s);
    assert_int_equal(events_in(s, 0), 0);
}

/* After a while, or when the server stops, it is refused. */
static void a_busy_log_is_not_waited_for_any_longer(void **state)
{
    struct scene *s = *state;

    assert_true(fill_log(s) > 0);
    send_some(s, 0, 0, 5);
    carry(s->client, s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_false(weir__run_end(&s->c));
    s->c.stopping = true;
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_heard(s, 0, 0, 4, WEIR__COND_SERVER_BUSY);
    flush(s);
    assert_int_equal(events_in(s, 0), 0);
}

/* Without memory for a run, its event is refused, and the next one is taken. */
static void no_memory_for_a_run(void **state)
{
    struct scene *s = *state;

    send_some(s, 0, 0, 2);
    carry(s->client, s->c.engine);
    assert_true(weir__amqp_next(s->c.engine, &s->c.event));
    allocs_fail(1);
    assert_true(weir__connection_on_event(&s->c, &s->c.event));
    allocs_fail(0);
    talk(s);
    flush(s);
    assert_int_equal(s->heard_count, 2);
    assert_heard(s, 0, 0, 0, WEIR__COND_SERVER_BUSY);
    assert_heard(s, 1, 1, 1, "");
    assert_numbers(s, 0, 1, 1, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(neighbours_share_a_batch),
        TEST(what_is_read_later_is_another),
        TEST(a_run_has_an_end),
        TEST(a_bad_one_is_rejected_alone),
        TEST(a_key_is_of_one_batch),
        TEST(a_key_chooses_the_partition),
        TEST(the_hub_takes_turns),
        TEST(another_link_ends_a_run),
        TEST(the_settled_are_told_nothing),
        TEST(the_link_ends_behind_its_events),
        TEST(a_run_is_refused_as_one),
        TEST(a_sealed_server_publishes_nothing),
        TEST(a_busy_log_is_waited_for),
        TEST(what_follows_a_run_waits_with_it),
        TEST(a_busy_log_has_its_time),
        TEST(a_busy_log_is_not_waited_for_any_longer),
        TEST(no_memory_for_a_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
