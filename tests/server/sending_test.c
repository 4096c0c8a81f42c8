/* sending_test.c - links that send: what they are answered, and messages that are not taken. */
#include "amqp/state.h"
#include "server/links.h"
#include "support/allocs.h"

#define ADDRESS "eh1/Partitions/1"
#define MOST 65536 /* bytes of a batch in this world */

static void let_in(struct scene *s, unsigned rights)
{
    struct weir__claim claim = {.rights = rights, .expires_s = INT64_MAX};

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
}

static struct weir__amqp_link *come(struct scene *s, const char *address)
{
    return attach(s, WEIR__AMQP_SENDER, "s", address, NULL, (struct weir__amqp_terms){0});
}

/* ---- attaching ---- */

/* The smaller of both limits holds. The outcome settles, also for who would settle second. */
static void both_have_a_say_about_the_terms(void **state)
{
    static const struct {
        uint64_t said, told;
    } rows[] = {
        {0, MOST}, {1, 1}, {MOST - 1, MOST - 1}, {MOST, MOST}, {MOST + 1, MOST}, {UINT64_MAX, MOST},
    };
    struct scene *s = *state;

    let_in(s, WEIR__RIGHT_SEND);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_terms terms = {.max_message_size = rows[i].said,
                                         .rcv_settle_mode = i % 2};
        struct weir__amqp_link *link = attach(s, WEIR__AMQP_SENDER, "s", ADDRESS, NULL, terms);
        assert_int_equal(s->detached, 0);
        assert_int_equal(s->most, rows[i].told);
        assert_int_equal(s->rcv_settle_mode, WEIR__AMQP_RECEIVE_FIRST);
        assert_int_equal(weir__amqp_link_credit(link), WEIR__SERVER_CREDIT);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

/* What is sent needs no outcome, whatever the client asks for. */
static void receivers_get_settled_events(void **state)
{
    struct scene *s = *state;

    let_in(s, WEIR__RIGHT_LISTEN);
    for (uint8_t mode = 0; mode < 3; mode++) {
        struct weir__amqp_terms terms = {.snd_settle_mode = mode};
        struct weir__amqp_link *link =
            attach(s, WEIR__AMQP_RECEIVER, "r", "eh1/ConsumerGroups/$Default/Partitions/1", NULL,
                   terms);
        assert_int_equal(s->detached, 0);
        assert_int_equal(s->snd_settle_mode, WEIR__AMQP_SEND_SETTLED);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

static void who_may_not_send_is_told(void **state)
{
#define RANGE                                                                                      \
    "The specified partition is invalid for an EventHub partition sender or receiver. It should "  \
    "be between 0 and 1."
    static const struct {
        unsigned rights;
        const char *address, *condition, *text;
    } rows[] = {
        {WEIR__RIGHT_LISTEN, ADDRESS, "amqp:unauthorized-access",
         "Unauthorized access. 'Send' claim(s) are required to perform this operation."},
        {WEIR__RIGHT_SEND, "eh1/Partitions/2", WEIR__COND_RANGE, RANGE},
        {WEIR__RIGHT_SEND, "eh1/Partitions/x", WEIR__COND_RANGE, RANGE},
        {WEIR__RIGHT_SEND, "eh2/Partitions/1", "amqp:not-found",
         "The messaging entity 'sb://localhost/eh2' could not be found. To know more visit "
         "https://aka.ms/sbResourceMgrExceptions."},
    };
    struct scene *s = *state;

    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        let_in(s, rows[i].rights);
        come(s, rows[i].address);
        assert_int_equal(s->detached, i + 1);
        assert_string_equal(s->condition, rows[i].condition);
        assert_string_equal(s->text, rows[i].text);
        assert_int_equal(atomic_load(&s->server.links), 0);
    }
}

/* ---- messages ---- */

static int64_t events(struct scene *s)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    assert_int_equal(weir__hub_flush(hub, INT64_MAX, NULL), 0);
    assert_int_equal(weir__hub_partition_properties(hub, 1, &p, NULL), 0);
    weir__hub_release(hub);
    if (weir__publish_take_done(&s->c)) weir__connection_let_go(&s->c);
    talk(s);
    return p.last_sequence + 1;
}

/* A message of so many bytes, whose body may be cut short, leaves the client. */
static void post(struct weir__amqp_link *link, size_t bytes, bool broken, uint32_t format)
{
    static uint8_t message[2 * MOST];
    uint32_t body = (uint32_t)bytes - 8 + broken;
    const uint8_t head[] = {0,
                            0x53,
                            0x75,
                            0xb0,
                            (uint8_t)(body >> 24),
                            (uint8_t)(body >> 16),
                            (uint8_t)(body >> 8),
                            (uint8_t)body};

    memcpy(message, head, sizeof head);
    assert_int_equal(weir__amqp_send(link, weir__bytes_of(message, bytes), format, false, NULL), 0);
}

static void broken_messages_are_rejected(void **state)
{
    static const struct {
        size_t bytes;
        uint32_t format;
    } rows[] = {{100, 0},
                {5000, 0},
                {100, WEIR__AMQP_FORMAT_BATCH},
                {5000, WEIR__AMQP_FORMAT_BATCH}};
    struct scene *s = *state;
    struct weir__amqp_link *link;

    let_in(s, WEIR__RIGHT_SEND);
    link = come(s, ADDRESS);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        post(link, rows[i].bytes, true, rows[i].format);
        talk(s);
        assert_int_equal(s->rejected, i + 1);
        assert_string_equal(s->condition, WEIR__COND_ARGUMENT);
        assert_non_null(strstr(s->text, "ends too early"));
        assert_int_equal(events(s), 0);
    }
    post(link, 5000, false, 0);
    talk(s);
    assert_int_equal(events(s), 1);
    assert_int_equal(s->accepted, 1);
    assert_int_equal(s->detached, 0);
}

/* A client that does not keep to the limit that it was told: the link stays. */
static void a_message_has_its_largest(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link;

    let_in(s, WEIR__RIGHT_SEND);
    link = attach(s, WEIR__AMQP_SENDER, "s", ADDRESS, NULL,
                  (struct weir__amqp_terms){.max_message_size = 3000});
    for (size_t more = 0; more < 2; more++) {
        post(link, 3000 + more, false, 0);
        talk(s);
        assert_int_equal(events(s), 1);
        assert_int_equal(s->accepted, 1);
        assert_int_equal(s->rejected, more);
    }
    assert_string_equal(s->condition, "amqp:link:message-size-exceeded");
    assert_string_equal(s->text,
                        "The received message (delivery-id:1, size:3001 bytes) exceeds the "
                        "limit (3000 bytes) currently allowed on the link.");
    assert_int_equal(s->detached, 0);
}

/* That there is no memory for it is not the client's fault, and it may come again. */
static void no_memory_for_a_message(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link;

    let_in(s, WEIR__RIGHT_SEND);
    link = come(s, ADDRESS);
    s->client->peer_frame = 512; /* so that it has to be put together */
    s->no_room = true;
    post(link, MOST, false, 0);
    talk(s);
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, WEIR__COND_SERVER_BUSY);
    s->no_room = false;
    post(link, MOST - 1000, false, 0);
    talk(s);
    assert_int_equal(events(s), 1);
    assert_int_equal(s->accepted, 1);
}

static void wait_behind_small_ones(struct scene *s, struct weir__amqp_link *first,
                                   struct weir__amqp_link *second, size_t bytes)
{
    bool taken = true;

    for (int i = 0; i < 3; i++) post(i < 2 ? first : second, i < 2 ? 100 : bytes, false, 0);
    for (uint32_t id = 0; taken && id < 3; id++) {
        while (!weir__amqp_next(s->c.engine, &s->c.event))
            assert_true(carry(s->client, s->c.engine));
        assert_int_equal(s->c.event.type, WEIR__AMQP_EVENT_TRANSFER);
        if (id == 2) allocs_fail(1); /* the log seems to be busy */
        taken = weir__connection_on_event(&s->c, &s->c.event);
    }
    assert_true(allocs_failed());
    allocs_fail(0);
    assert_false(taken);
    assert_int_equal(s->c.run.events.count, 2);
    assert_true(weir__connection_on_event(&s->c, &s->c.event));
    if (s->c.run.sender) assert_true(weir__run_end(&s->c));
    talk(s);
    assert_int_equal(events(s), 3);
    assert_int_equal(s->accepted, 3);
}

/* A large one does not overtake small ones that cannot go yet, and is not lost. */
static void a_large_one_waits_behind_small_ones(void **state)
{
    struct weir__amqp_link *link;

    let_in(*state, WEIR__RIGHT_SEND);
    link = come(*state, ADDRESS);
    wait_behind_small_ones(*state, link, link, 5000);
}

/* Nor does one of another link. */
static void another_link_waits_behind_small_ones(void **state)
{
    struct weir__amqp_link *first, *second;

    let_in(*state, WEIR__RIGHT_SEND);
    first = come(*state, ADDRESS);
    second = attach(*state, WEIR__AMQP_SENDER, "t", ADDRESS, NULL, (struct weir__amqp_terms){0});
    wait_behind_small_ones(*state, first, second, 100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(both_have_a_say_about_the_terms),
        TEST(receivers_get_settled_events),
        TEST(who_may_not_send_is_told),
        TEST(broken_messages_are_rejected),
        TEST(a_message_has_its_largest),
        TEST(no_memory_for_a_message),
        TEST(a_large_one_waits_behind_small_ones),
        TEST(another_link_waits_behind_small_ones),
    };

    return cmocka_run_group_tests_name("sending", tests, NULL, NULL);
}
