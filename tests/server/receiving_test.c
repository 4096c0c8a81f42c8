/* receiving_test.c - links that receive: what they are attached with, what is sent along, and when. */
#include <inttypes.h>

#include "server/links.h"

#define ADDRESS "eh1/ConsumerGroups/$Default/Partitions/1"
#define ENTITY_ERROR "The messaging entity 'localhost:eventhub:eh1|nobody' could not be found."

/* Gives the connection these rights. The hub has "event 0" and on in partition 1. */
static void let_in(struct scene *s, unsigned rights)
{
    struct weir__claim claim = {.rights = rights, .expires_s = INT64_MAX};

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
}

/* Returns the offset of the first. */
static uint64_t publish(struct scene *s, int count)
{
    struct weir__log_receipt receipt;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    assert_int_equal(world_publish(&s->world, hub, 1, "event", count, &receipt), 0);
    weir__hub_release(hub);
    talk(s);
    return receipt.offset;
}

static struct weir__amqp_value value_in(uint8_t *space, size_t room, struct weir__amqp_value name,
                                        struct weir__amqp_value value)
{
    struct weir__amqp_value out;
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&w, space, room);
    mark = weir__amqp_put_open(&w);
    weir__amqp_put(&w, name);
    weir__amqp_put(&w, value);
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2);
    assert_int_equal(weir__amqp_writer_finish(&w, &bytes, NULL), 0);
    at = weir__amqp_cursor_of(bytes);
    assert_true(weir__amqp_read(&at, &out));
    return out;
}

static struct weir__amqp_link *receive(struct scene *s, const char *name, const char *address,
                                       struct weir__amqp_terms terms)
{
    return attach(s, WEIR__AMQP_RECEIVER, name, address, NULL, terms);
}

/* ---- attaching ---- */

static void who_may_not_listen_is_told(void **state)
{
    static const struct {
        unsigned rights;
        const char *address, *condition, *text;
    } rows[] = {
        {WEIR__RIGHT_SEND, ADDRESS, "amqp:unauthorized-access",
         "Unauthorized access. 'Listen' claim(s) are required to perform this operation."},
        {WEIR__RIGHT_LISTEN, "eh1/ConsumerGroups/$Default/Partitions/2",
         "com.microsoft:argument-out-of-range",
         "The specified partition is invalid for an EventHub partition sender or receiver. It "
         "should be between 0 and 1."},
        {WEIR__RIGHT_LISTEN, "eh1/ConsumerGroups/nobody/Partitions/1", "amqp:not-found",
         ENTITY_ERROR},
        {WEIR__RIGHT_LISTEN, "eh1", "amqp:not-found", NULL},
        {WEIR__RIGHT_LISTEN, "eh1/ConsumerGroups/$Default/Partitions",
         "com.microsoft:argument-error",
         "Invalid EventHub address. It must be either of the following. Sender: <EventHubName>. "
         "Partition Sender: <EventHubName>/Partitions/<PartitionNumber>. Partition Receiver: "
         "<EventHubName>/ConsumerGroups/<ConsumerGroupName>/Partitions/<PartitionNumber>."},
    };
    struct scene *s = *state;

    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        let_in(s, rows[i].rights);
        receive(s, "r", rows[i].address, (struct weir__amqp_terms){0});
        assert_int_equal(s->detached, i + 1);
        assert_string_equal(s->condition, rows[i].condition);
        if (rows[i].text) assert_string_equal(s->text, rows[i].text);
        assert_non_null(strstr(s->lines, "link 'r' refused: "));
    }
}

static void a_filter_is_a_text(void **state)
{
    struct scene *s = *state;
    uint8_t space[256];
    struct weir__amqp_terms terms = {.source = value_in(space, sizeof space,
                                                        symbol("apache.org:selector-filter:string"),
                                                        weir__amqp_unsigned(WEIR__AMQP_UINT, 7))};

    let_in(s, WEIR__RIGHT_LISTEN);
    receive(s, "r", ADDRESS, terms);
    assert_int_equal(s->detached, 1);
    assert_string_equal(s->condition, "amqp:not-allowed");
    assert_string_equal(s->text, "The link contains an invalid filter type. Only a selector filter "
                                 "is supported, and it is a string, not a uint.");
}

/* As text or as a symbol, described or not. */
static void forms_of_a_filter(void **state)
{
#define SELECTOR "amqp.annotation.x-opt-offset > '@latest'"
    static const uint8_t plain[] = "\xa1\x28" SELECTOR, word[] = "\xa3\x28" SELECTOR,
                         described[] = "\0\xa3\1d\xa1\x28" SELECTOR,
                         described_word[] = "\0\xa3\1d\xa3\x28" SELECTOR;
    const struct weir__bytes forms[] = {weir__bytes_of(plain, sizeof plain - 1),
                                        weir__bytes_of(word, sizeof word - 1),
                                        weir__bytes_of(described, sizeof described - 1),
                                        weir__bytes_of(described_word, sizeof described_word - 1)};
    struct weir__amqp_value filter;
    struct scene *s = *state;
    uint8_t space[256];

    let_in(s, WEIR__RIGHT_LISTEN);
    publish(s, 1);
    for (uint32_t i = 0; i < 4; i++) {
        struct weir__amqp_cursor at = weir__amqp_cursor_of(forms[i]);
        struct weir__amqp_terms terms = {0};
        struct weir__amqp_link *link;
        assert_true(weir__amqp_read(&at, &filter));
        terms.source =
            value_in(space, sizeof space, symbol("apache.org:selector-filter:string"), filter);
        link = receive(s, "r", ADDRESS, terms);
        weir__amqp_flow(link, 10, false);
        talk(s);
        assert_int_equal(s->heard_count, i);
        publish(s, 1);
        assert_int_equal(s->heard_count, i + 1);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

/* It is in the texts, up to 64 bytes of it, when it is one. */
static void a_receiver_has_a_name(void **state)
{
#define SIXTEEN "0123456789abcdef"
#define X64 SIXTEEN SIXTEEN SIXTEEN SIXTEEN
    const struct {
        struct weir__amqp_value given;
        const char *name;
    } rows[] = {
        {text_of("me"), "me"}, {text_of(X64), X64},  {text_of(X64 "x"), X64},
        {symbol("me"), "nil"}, {text_of(""), "nil"},
    };
    struct scene *s = *state;
    uint8_t space[256];
    char text[TEXT_MAX];

    let_in(s, WEIR__RIGHT_LISTEN);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_terms named = {
            .properties = value_in(space, sizeof space, symbol("com.microsoft:receiver-name"),
                                   rows[i].given)};
        uint8_t more[64];
        struct weir__amqp_terms better = {
            .properties = value_in(more, sizeof more, symbol("com.microsoft:epoch"),
                                   weir__amqp_signed(WEIR__AMQP_LONG, 7))};
        struct weir__amqp_link *link;
        receive(s, "old", ADDRESS, named);
        link = receive(s, "new", ADDRESS, better);
        talk(s);
        snprintf(text, sizeof text,
                 "New receiver 'nil' with higher epoch of '7' is created hence current receiver "
                 "'%s' with epoch '' is getting disconnected. If you are recreating the receiver, "
                 "make sure a higher epoch is used.",
                 rows[i].name);
        assert_string_equal(s->text, text);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

/* Any whole number is an epoch, and is given back as a long; nothing else is one. */
static void the_epoch_is_given_back(void **state)
{
    const struct {
        struct weir__amqp_value given;
        int64_t back; /* negative: none */
    } rows[] = {
        {weir__amqp_signed(WEIR__AMQP_LONG, 3), 3},
        {weir__amqp_signed(WEIR__AMQP_BYTE, 4), 4},
        {weir__amqp_unsigned(WEIR__AMQP_UBYTE, 5), 5},
        {weir__amqp_unsigned(WEIR__AMQP_ULONG, INT64_MAX), INT64_MAX},
        {weir__amqp_unsigned(WEIR__AMQP_ULONG, (uint64_t)INT64_MAX + 1), -1},
        {text_of("6"), -1},
    };
    struct scene *s = *state;
    uint8_t space[256];

    let_in(s, WEIR__RIGHT_LISTEN);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_terms terms = {
            .properties =
                value_in(space, sizeof space, symbol("com.microsoft:epoch"), rows[i].given)};
        struct weir__amqp_link *link = receive(s, "r", ADDRESS, terms);
        struct weir__amqp_value back;
        assert_int_equal(s->detached, 0);
        assert_int_equal(weir__amqp_map_find(&s->properties, "com.microsoft:epoch", &back),
                         rows[i].back >= 0);
        if (rows[i].back >= 0) {
            assert_int_equal(back.type, WEIR__AMQP_LONG);
            assert_true(back.i == rows[i].back);
        }
        weir__amqp_detach(link, NULL);
        talk(s);
        s->detached = 0;
    }
}

/* In a partition that never had an event the number of the first cannot be named, too. */
static void a_place_in_an_unused_partition(void **state)
{
    static const char *const from[] = {"amqp.annotation.x-opt-sequence-number >= '0'",
                                       "amqp.annotation.x-opt-sequence-number > '-1'"};
    struct scene *s = *state;
    uint8_t space[256];

    let_in(s, WEIR__RIGHT_LISTEN);
    for (int used = 0; used < 2; used++) {
        for (int i = 0; i < 2; i++) {
            struct weir__amqp_terms terms = {
                .source = value_in(space, sizeof space, symbol("apache.org:selector-filter:string"),
                                   text_of(from[i]))};
            struct weir__amqp_link *link = receive(s, "r", ADDRESS, terms);
            if (s->detached != (i == 0 && !used)) fail_msg("%d %d: %s", used, i, s->text);
            if (!s->detached) weir__amqp_flow(link, 10, false);
            talk(s);
            assert_int_equal(s->heard_count, used);
            if (!s->detached) weir__amqp_detach(link, NULL);
            talk(s);
            s->detached = s->heard_count = 0;
        }
        publish(s, 1);
    }
}

/* ---- events ---- */

static int64_t number_in(struct weir__amqp_value map, const char *name, enum weir__amqp_type type)
{
    struct weir__amqp_value v;

    assert_true(weir__amqp_map_find(&map, name, &v));
    assert_int_equal(v.type, type);
    return v.i;
}

static void what_is_newest_goes_along_when_it_is_desired(void **state)
{
    struct scene *s = *state;
    uint8_t space[2][128];
    const struct weir__amqp_value desired[] = {
        symbol(WEIR__EH_METRICS), symbols("x", WEIR__EH_METRICS, space[0]), symbol("x"),
        symbols("x", "com.microsoft:enable-receiver", space[1])};
    struct weir__amqp_value map, last;
    struct weir__amqp_message m;
    uint64_t offset;
    char text[24];

    let_in(s, WEIR__RIGHT_LISTEN);
    offset = publish(s, 2) + 1;
    snprintf(text, sizeof text, "%" PRIu64, offset);
    simclock_pass(&s->world.time, 5000);
    for (int i = 0; i < 4; i++) {
        struct weir__amqp_terms terms = {.desired_capabilities = desired[i]};
        weir__amqp_flow(receive(s, (char[]){(char)('a' + i), 0}, ADDRESS, terms), 10, false);
        talk(s);
    }
    assert_int_equal(s->heard_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        const struct heard *h = &s->heard[i];
        assert_true(h->settled);
        assert_int_equal(h->format, 0);
        assert_int_equal(weir__amqp_message_scan(&m, weir__bytes_of(h->bytes, h->len),
                                                 WEIR__AMQP_DEEP, NULL),
                         0);
        map = weir__amqp_message_map(&m, WEIR__AMQP_DELIVERY_ANNOTATIONS);
        assert_int_equal(map.count, i < 4 ? 10 : 0);
        if (i >= 4) continue;
        assert_int_equal(number_in(map, WEIR__EH_LAST_SEQUENCE, WEIR__AMQP_LONG), 1);
        assert_int_equal(number_in(map, WEIR__EH_LAST_SEQUENCE_EPOCH, WEIR__AMQP_INT), -1);
        assert_true(number_in(map, WEIR__EH_LAST_TIME, WEIR__AMQP_TIMESTAMP) == 1700000000000);
        assert_true(number_in(map, WEIR__EH_RETRIEVED, WEIR__AMQP_TIMESTAMP) == 1700000005000);
        assert_true(weir__amqp_map_find(&map, WEIR__EH_LAST_OFFSET, &last));
        assert_int_equal(last.type, WEIR__AMQP_STRING);
        assert_int_equal(last.bytes.len, strlen(text));
        assert_memory_equal(last.bytes.at, text, last.bytes.len);
    }
}

static void expect_text(struct weir__amqp_value map, const char *name, const char *text)
{
    struct weir__amqp_value v;

    assert_int_equal(weir__amqp_map_find(&map, name, &v), text != NULL);
    if (!text) return;
    assert_int_equal(v.type, WEIR__AMQP_STRING);
    assert_int_equal(v.bytes.len, strlen(text));
    assert_memory_equal(v.bytes.at, text, v.bytes.len);
}

/* Its place, its time, and the key of its batch, if that has one; each event its own. */
static void each_event_is_stamped(void **state)
{
    static const char *const keys[] = {"one key", NULL};
    static struct payload payload;
    struct weir__log_receipt receipts[2];
    struct scene *s = *state;
    struct weir__batch batch;
    struct weir__hub *hub;
    char text[24];

    let_in(s, WEIR__RIGHT_LISTEN);
    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    for (int i = 0; i < 2; i++) {
        payload_batch(&payload, keys[i], "event", 2);
        assert_int_equal(weir__batch_of_payload(&batch, WEIR__AMQP_FORMAT_BATCH,
                                                payload_bytes(&payload), 0, NULL),
                         0);
        assert_int_equal(weir__hub_publish_wait(hub, &batch, 1, NULL, INT64_MAX, &receipts[i],
                                                NULL),
                         0);
        simclock_pass(&s->world.time, 5000);
    }
    weir__hub_release(hub);
    weir__amqp_flow(receive(s, "r", ADDRESS, (struct weir__amqp_terms){0}), 10, false);
    talk(s);
    assert_int_equal(s->heard_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct weir__amqp_message m;
        struct weir__amqp_value map;
        assert_int_equal(weir__amqp_message_scan(&m,
                                                 weir__bytes_of(s->heard[i].bytes, s->heard[i].len),
                                                 WEIR__AMQP_DEEP, NULL),
                         0);
        map = weir__amqp_message_map(&m, WEIR__AMQP_MESSAGE_ANNOTATIONS);
        assert_int_equal(number_in(map, WEIR__EH_SEQUENCE, WEIR__AMQP_LONG), i);
        assert_true(number_in(map, WEIR__EH_TIME, WEIR__AMQP_TIMESTAMP) == receipts[i / 2].time_ms);
        snprintf(text, sizeof text, "%" PRIu64, receipts[i / 2].offset + i % 2);
        expect_text(map, WEIR__EH_OFFSET, text);
        expect_text(map, WEIR__EH_KEY, keys[i / 2]);
    }
    assert_true(receipts[0].time_ms < receipts[1].time_ms);
}

/* Events go as far as the credit; a drain takes back what nothing was left for, and is answered. */
static void credit_and_drain(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link;
    uint32_t flows;

    let_in(s, WEIR__RIGHT_LISTEN);
    link = receive(s, "r", ADDRESS, (struct weir__amqp_terms){0});
    publish(s, 50);
    assert_int_equal(s->heard_count, 0);
    weir__amqp_flow(link, 40, false);
    talk(s);
    assert_int_equal(s->heard_count, 40);
    flows = s->flows;
    weir__amqp_flow(link, 3, true);
    talk(s);
    assert_int_equal(s->heard_count, 43);
    assert_true(s->flows > flows);
    flows = s->flows;
    weir__amqp_flow(link, 30, true);
    talk(s);
    assert_int_equal(s->heard_count, 50);
    assert_true(s->flows > flows);
    publish(s, 1);
    assert_int_equal(s->heard_count, 50);
    flows = s->flows;
    weir__amqp_flow(link, 5, false);
    talk(s);
    assert_int_equal(s->heard_count, 51);
    assert_int_equal(s->flows, flows);
    publish(s, 1);
    assert_int_equal(s->heard_count, 52);
}

/* More than are sent in one go: the link is looked at again by itself. */
static void many_events_come_in_turns(void **state)
{
    struct scene *s = *state;

    let_in(s, WEIR__RIGHT_LISTEN);
    publish(s, 300);
    weir__amqp_flow(receive(s, "r", ADDRESS, (struct weir__amqp_terms){0}), 1000, false);
    talk(s);
    assert_int_equal(s->heard_count, 300);
}

/* A receiver with an epoch sends away one without, which keeps neither its place nor its events. */
static void an_epoch_takes_the_place(void **state)
{
    struct scene *s = *state;
    uint8_t space[256];
    struct weir__amqp_terms terms = {.properties = value_in(space, sizeof space,
                                                            symbol("com.microsoft:epoch"),
                                                            weir__amqp_signed(WEIR__AMQP_LONG, 1))};

    let_in(s, WEIR__RIGHT_LISTEN);
    weir__amqp_flow(receive(s, "old", ADDRESS, (struct weir__amqp_terms){0}), 10, false);
    publish(s, 1);
    assert_int_equal(s->heard_count, 1);
    receive(s, "new", ADDRESS, terms);
    talk(s);
    assert_int_equal(s->detached, 1);
    assert_string_equal(s->condition, "amqp:link:stolen");
    publish(s, 1);
    assert_int_equal(s->heard_count, 1);
}

/* Until the peer answers, the link is there without a receiver, and nobody asks it for events. */
static void who_lost_its_place_is_left_alone(void **state)
{
    struct scene *s = *state;
    const struct weir__receiver_options better = {.group = "$Default",
                                                  .partition = 1,
                                                  .from = {.kind = WEIR__FROM_EARLIEST},
                                                  .epoch = 1,
                                                  .credit = WEIR__CREDIT_UNLIMITED};
    struct weir__hub_stats stats;
    struct weir__receiver *r;
    struct weir__hub *hub;

    let_in(s, WEIR__RIGHT_LISTEN);
    weir__amqp_flow(receive(s, "r", ADDRESS, (struct weir__amqp_terms){0}), 10, false);
    publish(s, 1);
    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    assert_int_equal(weir__receiver_attach(&r, hub, &better, NULL), 0);
    weir__duty_take_ready(&s->c);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 1);
    weir__duty_pump_all(&s->c);
    weir__receiver_close(r);
    weir__hub_stats(hub, &stats);
    assert_int_equal(stats.receivers, 0);
    weir__hub_release(hub);
    publish(s, 1);
    assert_int_equal(s->detached, 1);
    assert_string_equal(s->condition, "amqp:link:stolen");
    assert_int_equal(s->heard_count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(who_may_not_listen_is_told),
        TEST(a_filter_is_a_text),
        TEST(forms_of_a_filter),
        TEST(a_receiver_has_a_name),
        TEST(the_epoch_is_given_back),
        TEST(a_place_in_an_unused_partition),
        TEST(what_is_newest_goes_along_when_it_is_desired),
        TEST(credit_and_drain),
        TEST(many_events_come_in_turns),
        TEST(an_epoch_takes_the_place),
        TEST(each_event_is_stamped),
        TEST(who_lost_its_place_is_left_alone),
    };

    return cmocka_run_group_tests_name("receiving", tests, NULL, NULL);
}
