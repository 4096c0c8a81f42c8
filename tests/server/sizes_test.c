/* sizes_test.c - links that publish: where to, and how large a message may be. */
#include "server/links.h"

#define LIMIT 65536u /* bytes of a batch in this world */
#define OVER 8       /* bytes of a message before its body */

static void let_in(struct scene *s)
{
    struct weir__claim claim = {.rights = WEIR__RIGHT_SEND, .expires_s = INT64_MAX};

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
}

static struct weir__amqp_link *open_sender(struct scene *s, const char *address, uint64_t max)
{
    return attach(s, WEIR__AMQP_SENDER, address, address, NULL,
                  (struct weir__amqp_terms){.max_message_size = max});
}

/* A message of so many bytes: one event. */
static void send_bytes(struct scene *s, struct weir__amqp_link *link, size_t bytes, bool settled)
{
    static uint8_t message[2 * LIMIT];
    const size_t body = bytes - OVER;
    const uint8_t head[OVER] = {0,
                                0x53,
                                0x75,
                                0xb0,
                                (uint8_t)(body >> 24),
                                (uint8_t)(body >> 16),
                                (uint8_t)(body >> 8),
                                (uint8_t)body};

    assert_true(bytes >= OVER && bytes <= sizeof message);
    memcpy(message, head, sizeof head);
    assert_int_equal(weir__amqp_send(link, weir__bytes_of(message, bytes), 0, settled, NULL), 0);
    talk(s);
}

/* Makes what was sent durable, so that it has an outcome. */
static void flush(struct scene *s)
{
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    if (s->c.run.sender) assert_true(weir__run_end(&s->c));
    assert_int_equal(weir__hub_flush(hub, INT64_MAX, NULL), 0);
    weir__hub_release(hub);
    if (weir__publish_take_done(&s->c)) atomic_fetch_sub(&s->c.refs, 1);
    talk(s);
}

/* ---- where to ---- */

static void a_partition_has_a_number(void **state)
{
    static const char *const wrong[] = {"eh1/Partitions/2", "eh1/Partitions/10", "eh1/Partitions/x",
                                        "eh1/Partitions/-1"};
    struct scene *s = *state;

    let_in(s);
    open_sender(s, "eh1/Partitions/0", 0);
    open_sender(s, "eh1/Partitions/1", 0);
    open_sender(s, "eh1", 0);
    assert_int_equal(s->detached, 0);
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        open_sender(s, wrong[i], 0);
        assert_int_equal(s->detached, i + 1);
        assert_string_equal(s->condition, WEIR__COND_RANGE);
        assert_string_equal(s->text,
                            "The specified partition is invalid for an EventHub partition sender "
                            "or receiver. It should be between 0 and 1.");
    }
}

/* ---- how large ---- */

/* The client's own limit, where it is the smaller one. */
static void the_smaller_limit_is_agreed_on(void **state)
{
    static const struct {
        uint64_t theirs, agreed;
    } rows[] = {
        {0, LIMIT},         {1, 1}, {LIMIT - 1, LIMIT - 1}, {LIMIT, LIMIT}, {LIMIT + 1, LIMIT},
        {UINT64_MAX, LIMIT}};
    struct scene *s = *state;

    let_in(s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *link = open_sender(s, "eh1", rows[i].theirs);
        assert_int_equal(weir__amqp_link_max(s->c.duties->link), rows[i].agreed);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

/* The link goes on behind it. */
static void what_is_too_large_is_rejected(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link;

    let_in(s);
    link = open_sender(s, "eh1/Partitions/1", 0);
    send_bytes(s, link, LIMIT + 1, true); /* whose sender does not want to know */
    assert_int_equal(s->rejected, 0);
    send_bytes(s, link, LIMIT + 1, false);
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, "amqp:link:message-size-exceeded");
    assert_string_equal(s->text,
                        "The received message (delivery-id:1, size:65537 bytes) exceeds the limit "
                        "(65536 bytes) currently allowed on the link.");
    send_bytes(s, link, 100, false);
    flush(s);
    assert_int_equal(s->rejected, 1);
    assert_int_equal(s->accepted, 1);
    assert_int_equal(s->detached, 0);
}

/* Of the client's own limit, too. */
static void the_largest_is_taken(void **state)
{
    static const uint32_t limits[] = {LIMIT, 1000, WEIR__RUN_EVENT_MAX};
    struct scene *s = *state;

    let_in(s);
    for (uint32_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct weir__amqp_link *link = open_sender(s, "eh1/Partitions/1", limits[i]);
        send_bytes(s, link, limits[i], false);
        flush(s);
        assert_int_equal(s->accepted, i + 1);
        assert_int_equal(s->rejected, i);
        send_bytes(s, link, limits[i] + 1, false);
        assert_int_equal(s->rejected, i + 1);
        assert_string_equal(s->condition, "amqp:link:message-size-exceeded");
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

/* One that is not too large, and for which there is no memory, may come again. */
static void what_there_is_no_memory_for_is_refused_for_now(void **state)
{
    struct weir__amqp_link *first, *second;
    struct scene *s = *state;

    let_in(s);
    first = open_sender(s, "eh1/Partitions/0", 0);
    second = open_sender(s, "eh1/Partitions/1", 0);
    send_bytes(s, first, LIMIT, false); /* whose frames are as large as any */
    flush(s);
    s->no_room = true;
    send_bytes(s, second, LIMIT, false);
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, WEIR__COND_SERVER_BUSY);
    send_bytes(s, second, LIMIT + 1, false);
    assert_int_equal(s->rejected, 2);
    assert_string_equal(s->condition, "amqp:link:message-size-exceeded");
    s->no_room = false;
    send_bytes(s, second, LIMIT, false);
    flush(s);
    assert_int_equal(s->accepted, 2);
}

/* Small ones wait for their neighbours, to the byte; others go to the log as they are. */
static void the_largest_that_is_gathered(void **state)
{
    struct weir__amqp_link *link;
    struct scene *s = *state;

    let_in(s);
    link = open_sender(s, "eh1/Partitions/1", 0);
    send_bytes(s, link, WEIR__RUN_EVENT_MAX, false);
    assert_int_equal(s->c.run.events.count, 1);
    assert_int_equal(s->c.batches, 0);
    send_bytes(s, link, WEIR__RUN_EVENT_MAX + 1, false); /* behind what was gathered */
    assert_null(s->c.run.sender);
    assert_int_equal(s->c.batches, 2);
    flush(s);
    assert_int_equal(s->accepted, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_partition_has_a_number),      TEST(the_smaller_limit_is_agreed_on),
        TEST(what_is_too_large_is_rejected), TEST(the_largest_is_taken),
        TEST(the_largest_that_is_gathered),  TEST(what_there_is_no_memory_for_is_refused_for_now),
    };

    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
