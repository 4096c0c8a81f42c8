/* receiving_batches_test.c - receivers that desire stored batches, and what receivers of both kinds
 * cannot be sent. */
#define _GNU_SOURCE /* memmem */
#include "amqp/state.h"
#include "hub/stored.h"
#include "server/links.h"

#define ADDRESS "eh1/ConsumerGroups/$Default/Partitions/1"

static struct weir__hub *use(struct scene *s)
{
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    return hub;
}

/* Returns the offset of the first. */
static uint64_t publish(struct scene *s, const char *text, int count)
{
    struct weir__hub *hub = use(s);
    struct weir__log_receipt receipt;

    assert_int_equal(world_publish(&s->world, hub, 1, text, count, &receipt), 0);
    weir__hub_release(hub);
    talk(s);
    return receipt.offset;
}

/* An event with a name among its annotations, of which one byte becomes another on the way, and with
 * these attributes added. */
static void publish_changed(struct scene *s, int at, uint8_t byte, uint16_t attrs)
{
    uint8_t event[] = {0, 0x53, 0x72, 0xc1, 5, 2, 0xa3, 1, 'n', 0x41, 0, 0x53, 0x75, 0xa0, 1, 'x'};
    struct weir__hub *hub = use(s);
    struct weir__log_receipt receipt;
    struct weir__batch batch;

    assert_int_equal(weir__batch_of_payload(&batch, 0, weir__bytes_of(event, sizeof event), 0,
                                            NULL),
                     0);
    event[at] = byte;
    batch.attrs |= attrs;
    assert_int_equal(weir__hub_publish_wait(hub, &batch, 1, NULL, INT64_MAX, &receipt, NULL), 0);
    weir__hub_release(hub);
}

static struct weir__amqp_link *receive(struct scene *s, const char *name,
                                       struct weir__amqp_value desired)
{
    struct weir__claim claim = {.rights = WEIR__RIGHT_LISTEN, .expires_s = INT64_MAX};

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
    return attach(s, WEIR__AMQP_RECEIVER, name, ADDRESS, NULL,
                  (struct weir__amqp_terms){.desired_capabilities = desired});
}

static struct weir__amqp_link *receive_batches(struct scene *s)
{
    return receive(s, "r", symbol(WEIR__STORED_CAPABILITY));
}

static struct weir__log_view view(const struct heard *h)
{
    struct weir__bytes payload = weir__bytes_of(h->bytes, h->len);
    struct weir__log_view out;

    assert_true(h->settled);
    assert_int_equal(h->format, WEIR__STORED_FORMAT);
    assert_int_equal(weir__stored_check(payload, NULL), 0);
    weir__stored_view(payload, &out);
    return out;
}

/* ---- batches ---- */

/* A batch takes one credit, however many events it has; a drain is answered when the credit is used
 * up, or when there is nothing more. */
static void a_batch_takes_one_credit(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link = receive_batches(s);
    uint32_t flows;

    for (int i = 1; i <= 4; i++) publish(s, "event", i);
    assert_int_equal(s->heard_count, 0);
    weir__amqp_flow(link, 1, false);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    flows = s->flows;
    weir__amqp_flow(link, 2, true);
    talk(s);
    assert_int_equal(s->heard_count, 3);
    assert_int_equal(s->flows, flows + 1);
    weir__amqp_flow(link, 9, true);
    talk(s);
    assert_int_equal(s->heard_count, 4);
    assert_int_equal(s->flows, flows + 2);
    publish(s, "event", 1); /* the credit was taken back */
    assert_int_equal(s->heard_count, 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(view(&s->heard[i]).count, i + 1);
    assert_int_equal(view(&s->heard[3]).sequence, 6);
}

static void many_batches_come_in_turns(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 300; i++) publish(s, "event", 1);
    weir__amqp_flow(receive_batches(s), 1000, false);
    talk(s);
    assert_int_equal(s->heard_count, 300);
    assert_int_equal(view(&s->heard[299]).sequence, 299);
}

/* After eight takes of 32 events, the last of which goes first in the next turn, or 256 batches, the
 * others have theirs; the link is looked at again by itself. */
static void a_turn_of_a_link_has_an_end(void **state)
{
    static const char *const desired[] = {"x", WEIR__STORED_CAPABILITY};
    struct scene *s = *state;
    struct weir__amqp_event ev;

    for (int i = 0; i < 300; i++) publish(s, "event", 1);
    for (int batches = 0; batches < 2; batches++) {
        struct weir__amqp_link *link = receive(s, batches ? "b" : "e", symbol(desired[batches]));
        s->heard_count = 0;
        weir__amqp_flow(link, 1000, false);
        carry(s->client, s->c.engine);
        while (weir__amqp_next(s->c.engine, &s->c.event))
            assert_true(weir__connection_on_event(&s->c, &s->c.event));
        assert_non_null(s->c.ready);
        while (carry(s->c.engine, s->client))
            while (weir__amqp_next(s->client, &ev)) hear(s, &ev);
        assert_int_equal(s->heard_count, batches ? 256 : 7 * 32);
        talk(s);
        assert_int_equal(s->heard_count, 300);
        assert_null(s->c.ready);
        assert_false(s->c.starved); /* all is sent: no room is waited for */
    }
}

/* Whoever drains while its window is closed has what there is, as far as its credit goes, later. */
static void a_drain_waits_for_the_window(void **state)
{
    static const char *const desired[] = {"x", WEIR__STORED_CAPABILITY};
    struct scene *s = *state;

    publish(s, "event", 1);
    publish(s, "event", 1);
    for (int batches = 0; batches < 2; batches++) {
        struct weir__amqp_link *link = receive(s, batches ? "b" : "e", symbol(desired[batches]));
        s->heard_count = 0;
        weir__amqp_flow(link, 1, true);
        carry(s->client, s->c.engine);
        while (weir__amqp_next(s->c.engine, &s->c.event)) {
            for (struct weir__amqp_session *at = s->c.engine->sessions; at; at = at->next)
                at->remote_window = 0;
            assert_true(weir__connection_on_event(&s->c, &s->c.event));
        }
        assert_true(s->c.starved); /* there is credit, even if only for one */
        s->c.starved = false;
        talk(s);
        assert_int_equal(s->heard_count, 0);
        assert_int_equal(weir__amqp_link_credit(link), 1); /* nothing was taken back */
        weir__amqp_flow(link, 1, true);
        talk(s);
        assert_int_equal(s->heard_count, 1);
        assert_false(s->c.starved);
    }
}

static void what_is_newest_goes_along_when_it_is_desired(void **state)
{
    struct scene *s = *state;
    struct weir__stored_facts facts;
    uint8_t space[128];
    uint64_t offset;

    publish(s, "event", 2);
    offset = publish(s, "event", 3);
    simclock_pass(&s->world.time, 5000);
    weir__amqp_flow(receive(s, "both", symbols(WEIR__STORED_CAPABILITY, WEIR__EH_METRICS, space)),
                    1, false);
    weir__amqp_flow(receive_batches(s), 1, false);
    talk(s);
    assert_int_equal(s->heard_count, 2);
    assert_int_equal(view(&s->heard[0]).count, 2);
    facts = weir__stored_facts(weir__bytes_of(s->heard[0].bytes, s->heard[0].len));
    assert_int_equal(facts.last_sequence, 4);
    assert_int_equal(facts.last_offset, offset + 2);
    assert_true(facts.last_time_ms == 1700000000000);
    assert_true(facts.known_ms == 1700000005000);
    facts = weir__stored_facts(weir__bytes_of(s->heard[1].bytes, s->heard[1].len));
    assert_int_equal(view(&s->heard[1]).count, 2);
    assert_true(facts.known_ms == 0);
}

/* A server that was told so has no batches for anybody, and says so by not offering them. */
static void a_server_for_events_only(void **state)
{
    struct scene *s = *state;

    publish(s, "event", 2);
    s->server.events_only = true;
    weir__amqp_flow(receive_batches(s), 9, false);
    talk(s);
    assert_int_equal(s->heard_count, 2);
    assert_int_equal(s->heard[0].format, 0);
}

/* ---- what cannot be sent ---- */

static void a_broken_event_is_passed_over(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_message m;

    publish(s, "first", 1);
    publish_changed(s, 7, 99, 0); /* the length of the name */
    publish(s, "last", 1);
    weir__amqp_flow(receive(s, "r", (struct weir__amqp_value){0}), 9, false);
    talk(s);
    assert_int_equal(s->heard_count, 2);
    assert_int_equal(weir__amqp_message_scan(&m, weir__bytes_of(s->heard[1].bytes, s->heard[1].len),
                                             WEIR__AMQP_DEEP, NULL),
                     0);
    assert_int_equal(m.data.len, 6);
    assert_memory_equal(m.data.at, "last 0", 6);
    assert_string_equal(s->lines, "hub 'eh1', partition 1: event 1 is passed over: "
                                  "message-annotations, byte 2: ends too early\n");
}

/* One of a later version, whose attributes mean something that is not known here. */
static void an_unknown_batch_is_passed_over(void **state)
{
    struct scene *s = *state;

    publish(s, "first", 1);
    publish_changed(s, 15, 'x', 4);
    publish(s, "last", 1);
    weir__amqp_flow(receive_batches(s), 9, false);
    talk(s);
    assert_int_equal(s->heard_count, 2);
    assert_int_equal(view(&s->heard[1]).sequence, 2);
    assert_string_equal(s->lines, "hub 'eh1', partition 1: the batch at 1 is passed over: "
                                  "attributes 0x4\n");
}

/* A header is larger than what lies between it and the first event. */
#define HEADER_BEFORE 40u

/* Flips a bit of the header of a batch, which begins with this text, while the namespace is closed. */
static void damage(struct scene *s, const char *text)
{
    bool found = false;

    assert_int_equal(world_close(&s->world), 0);
    for (size_t i = 0; !found && simfs_path(s->world.disk, i); i++) {
        const char *path = simfs_path(s->world.disk, i);
        uint64_t size = simfs_size(s->world.disk, path);
        uint8_t *content = malloc(size + 1), *at;
        assert_true(simfs_peek(s->world.disk, path, content, size, 0) == (long)size);
        at = memmem(content, size, text, strlen(text));
        found = at != NULL;
        if (at) simfs_flip(s->world.disk, path, ((uint64_t)(at - content) - HEADER_BEFORE) * 8);
        free(content);
    }
    assert_true(found);
    assert_int_equal(world_open(&s->world), 0);
    s->server.ns = s->world.ns;
}

/* The peer is told by the gap, the operator by the log; of both kinds, and each time it is met. */
static void damaged_events_are_passed_over(void **state)
{
#define PASSED "hub 'eh1', partition 1: events 3 to 6 are passed over: "
    static const char *const desired[] = {"x", WEIR__STORED_CAPABILITY};
    struct scene *s = *state;

    publish(s, "before", 3);
    publish(s, "in the middle", 4);
    publish(s, "after", 5);
    damage(s, "in the middle");
    for (int batches = 0; batches < 2; batches++) {
        s->heard_count = 0;
        s->lines[0] = '\0';
        weir__amqp_flow(receive(s, batches ? "b" : "e", symbol(desired[batches])), 20, false);
        talk(s);
        assert_int_equal(s->detached, 0);
        assert_int_equal(s->heard_count, batches ? 2 : 8);
        assert_int_equal(strncmp(s->lines, PASSED, strlen(PASSED)), 0);
        assert_ptr_equal(strchr(s->lines, '\n'), s->lines + strlen(s->lines) - 1);
    }
    assert_int_equal(view(&s->heard[1]).sequence, 7);
    assert_int_equal(view(&s->heard[1]).count, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_batch_takes_one_credit),
        TEST(many_batches_come_in_turns),
        TEST(a_turn_of_a_link_has_an_end),
        TEST(a_drain_waits_for_the_window),
        TEST(what_is_newest_goes_along_when_it_is_desired),
        TEST(a_server_for_events_only),
        TEST(a_broken_event_is_passed_over),
        TEST(an_unknown_batch_is_passed_over),
        TEST(damaged_events_are_passed_over),
    };

    return cmocka_run_group_tests_name("receiving_batches", tests, NULL, NULL);
}
