/* Flows of links: what is left of credit, limits of bytes, drains, and who is answered. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static struct manners manners = {.trusted = true, .no_outcomes = true};

static void keep_quiet(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    (void)ev;
}

/* Attached by the peer and accepted. */
static struct weir__amqp_link *open_link(const char *attach)
{
    struct weir__amqp_link *l;

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, attach);
    l = expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link;
    p.heard_at = p.heard_len;
    return l;
}

/* Ours, which has sent this many messages of four bytes. */
static struct weir__amqp_link *open_sender(unsigned sent)
{
    struct weir__amqp_link *l = open_link(SAY_RECEIVER);

    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    for (unsigned i = 0; i < sent; i++)
        assert_int_equal(weir__amqp_send(l, weir__bytes_of("four", 4), 0, true, NULL), 0);
    peer_listen(&p);
    p.heard_at = p.heard_len;
    p.side.taken = p.side.count;
    return l;
}

/* Three messages were sent with a credit of 9. The receiver counts from those that it has seen. */
static void credit_is_counted_from_what_was_seen(void **state)
{
    static const struct {
        const char *count_and_credit;
        uint32_t left;
    } rows[] = {
        {"52 03 52 05", 5}, {"52 02 52 05", 4}, {"43 52 05", 2}, {"43 52 04", 1},
        {"43 52 03", 0},    {"43 52 02", 0},    {"52 03 43", 0}, {"40 52 05", 2}, /* none seen */
        {"40 52 03", 0},    {"52 03 40", 6},    {"43 40", 6},                     /* as it was */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *l = open_sender(3);
        char said[80];
        snprintf(said, sizeof said, "13: 43 70 00000800 43 43 52 01 %s", rows[i].count_and_credit);
        peer_say(&p, 0, said);
        assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_FLOW)->link, l);
        assert_int_equal(weir__amqp_link_credit(l), rows[i].left);
        assert_int_equal(weir__amqp_sendable(l), rows[i].left);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

/* A sender that was asked to drain tells how far it has counted, up to all of the credit. */
static void a_sender_counts_up_to_the_credit(void **state)
{
    static const struct {
        const char *count;
        uint32_t left; /* of 2 */
    } rows[] = {{"43", 2}, {"52 01", 1}, {"52 02", 0}, {"40", 2}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *l = open_link(SAY_SENDER);
        char said[80];
        assert_int_equal(weir__amqp_flow(l, 2, true), 0);
        snprintf(said, sizeof said, "13: 43 43 43 43 43 %s 43", rows[i].count);
        peer_say(&p, 0, said);
        assert_int_equal(weir__amqp_link_credit(l), rows[i].left);
        assert_int_equal(weir__amqp_flow(l, 2, false), 0);
        peer_listen(&p);
        peer_hear(&p, WEIR__AMQP_FLOW);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.delivery_count.u, 2 - rows[i].left);
        peer_fini(&p);
    }
}

/* Four bytes were sent, and how many messages may follow: all, or none. */
static void a_limit_is_a_number_of_bytes(void **state)
{
    static const struct {
        const char *properties;
        bool more;
    } rows[] = {
        {"40", true},
        {"c1 15 02 a3 10 'weir:bytes-limit' 53 04", false},
        {"c1 15 02 a3 10 'weir:bytes-limit' 53 05", true},
        {"c1 1c 02 a3 10 'weir:bytes-limit' 80 0000000000000004", false},
        {"c1 14 02 a3 10 'weir:bytes-limit' 44", true},    /* 0: there is none */
        {"c1 15 02 a3 10 'weir:bytes-limit' 52 01", true}, /* an int is no limit */
        {"c1 15 02 a3 10 'weir:bytes-limis' 53 01", true}, /* nor is another name */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *l = open_sender(1);
        char said[160];
        snprintf(said, sizeof said, "13: 43 70 00000800 43 43 52 01 43 52 09 40 42 42 %s",
                 rows[i].properties);
        peer_say(&p, 0, said);
        assert_int_equal(weir__amqp_sendable(l), rows[i].more ? 9 - 1 : 0);
        assert_int_equal(weir__amqp_waits_for_peer(l), !rows[i].more);
        peer_fini(&p);
    }
}

/* Ours begins at one byte: the first message is always let through. A sender has no limit to tell. */
static void our_own_limit_is_told(void **state)
{
    static const struct {
        uint64_t limit, told;
    } rows[] = {{0, 1}, {1, 1}, {2, 2}, {UINT64_MAX - 1, UINT64_MAX - 1}};
    struct weir__amqp_link *l = open_link(SAY_SENDER);
    struct weir__amqp_composite c;
    struct weir__amqp_value v;

    (void)state;
    assert_int_equal(weir__amqp_flow(l, 5, false), 0);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.properties.type, WEIR__AMQP_NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir__amqp_limit(l, rows[i].limit);
        assert_int_equal(weir__amqp_flow(l, 5, false), 0);
        peer_listen(&p);
        c = peer_hear(&p, WEIR__AMQP_FLOW);
        assert_true(weir__amqp_map_find(&c.flow.properties, "weir:bytes-limit", &v));
        assert_int_equal(v.type, WEIR__AMQP_ULONG);
        assert_true(v.u == rows[i].told);
        assert_int_equal(c.flow.properties.count, 2);
    }
    peer_fini(&p);
    l = open_sender(1);
    weir__amqp_limit(l, 7);
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09 40 41");
    weir__amqp_drained(l);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.properties.type, WEIR__AMQP_NULL);
    peer_fini(&p);
}

#define LONG_BODY "'a message of which there is more than the head of a frame has room for'"

/* Credit that is kept is given back when half of it is used, not before, whichever way messages come. */
static void kept_credit_is_given_back_at_half(void **state)
{
    static const struct {
        uint32_t credit, used; /* used: messages until it is given back */
    } rows[] = {{1, 1}, {2, 1}, {4, 2}, {5, 3}, {10, 5}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] * 2; i++) {
        uint32_t credit = rows[i / 2].credit, used = rows[i / 2].used;
        struct manners m = {.credit = credit, .trusted = true};
        peer_open(&p, &(struct weir__amqp_options){0}, &m);
        peer_say(&p, 0, SAY_SENDER);
        p.heard_at = p.heard_len;
        for (uint32_t n = 0; n < 3 * used; n++) {
            char said[160];
            snprintf(said, sizeof said, "14: 43 70 %08x a0 01 'x' 43 41 42 | %s", n,
                     i % 2 ? LONG_BODY : "'m'");
            peer_say(&p, 0, said);
            if (n % used == used - 1)
                assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.link_credit.u, credit);
            peer_hear_nothing(&p);
        }
        peer_fini(&p);
    }
}

/* A window is opened again when about half of it was used, for the session and for no link. */
static void a_window_is_opened_at_half(void **state)
{
    struct manners m = {.credit = 1000, .trusted = true};
    unsigned since = 0, flows = 0;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){.after.unsettled = 64}, &m);
    peer_say(&p, 0, SAY_SENDER);
    p.heard_at = p.heard_len;
    for (unsigned n = 0; n < 200; n++) {
        char said[160];
        struct weir__amqp_composite c;
        snprintf(said, sizeof said, "14: 43 70 %08x a0 01 'x' 43 41 42 | %s", n,
                 n % 3 ? LONG_BODY : "'m'");
        peer_say(&p, 0, said);
        since++;
        if (p.heard_at == p.heard_len) continue;
        c = peer_hear(&p, WEIR__AMQP_FLOW);
        assert_int_equal(c.flow.incoming_window.u, 64);
        assert_int_equal(c.flow.next_incoming_id.u, n + 1);
        assert_int_equal(c.flow.handle.type, WEIR__AMQP_NULL);
        assert_in_range(since, 32, 33);
        since = 0;
        flows++;
    }
    assert_int_equal(flows, 6);
    peer_fini(&p);
}

/* A link that was not asked to drain says nothing, drains only once, and not as a receiver. */
static void only_who_is_asked_drains(void **state)
{
    struct weir__amqp_link *l = open_sender(1);
    struct weir__amqp_composite c;

    (void)state;
    weir__amqp_drained(l);
    peer_listen(&p);
    peer_hear_nothing(&p);
    assert_int_equal(weir__amqp_link_credit(l), 8);
    assert_int_equal(weir__amqp_flow(l, 5, false), WEIR_EINVAL); /* it gets credit, it gives none */
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 52 01 52 05 40 41");
    assert_true(weir__amqp_link_drain(l));
    weir__amqp_drained(l);
    weir__amqp_drained(l);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.delivery_count.u, 6);
    assert_int_equal(c.flow.link_credit.u, 0);
    assert_true(c.flow.drain.u);
    peer_hear_nothing(&p);
    assert_false(weir__amqp_link_drain(l));
    peer_fini(&p);

    l = open_link(SAY_SENDER);
    assert_int_equal(weir__amqp_flow(l, 5, true), 0);
    weir__amqp_drained(l);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.link_credit.u, 5);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* A message that the window has cut is finished first. */
static void a_message_under_way_is_not_drained(void **state)
{
    static const uint8_t payload[1000];
    struct weir__amqp_link *l;

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 70 00000200");
    peer_say(&p, 0, "11: 40 43 52 01 70 00000800");
    peer_say(&p, 0, SAY_RECEIVER);
    l = p.side.told[p.side.count - 1].link;
    peer_say(&p, 0, "13: 43 52 01 43 43 52 01 43 52 09 40 41");
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(payload, sizeof payload), 0, true, NULL), 0);
    peer_listen(&p);
    p.heard_at = p.heard_len;
    weir__amqp_drained(l);
    peer_listen(&p);
    peer_hear_nothing(&p);
    peer_say(&p, 0, "13: 52 01 52 09 43 43");
    for (int i = 0; i < 2; i++)
        assert_int_equal(peer_hear(&p, WEIR__AMQP_TRANSFER).transfer.more.u, i == 0);
    weir__amqp_drained(l);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.delivery_count.u, 9);
    peer_fini(&p);
}

/* When half of it is used, a receiver gives it again, and asks for nothing in return. */
static void credit_is_given_again(void **state)
{
    struct manners keeping = {.credit = 10, .trusted = true};
    struct weir__amqp_composite c;
    char said[64];

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &keeping);
    peer_say(&p, 0, SAY_SENDER);
    peer_listen(&p);
    p.heard_at = p.heard_len;
    for (unsigned i = 0; i < 5; i++) {
        peer_hear_nothing(&p);
        snprintf(said, sizeof said, "14: 43 52 %02x a0 01 'x' 43 41 42 | 'm'", i);
        peer_say(&p, 0, said);
    }
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.link_credit.u, 10);
    assert_int_equal(c.flow.delivery_count.u, 5);
    assert_false(c.flow.drain.u || c.flow.echo.u);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* A link that the owner has not answered has no flow to tell; one that was refused for its flow is not
 * spoken of again. */
static void an_echo_speaks_of_links_that_are_there(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    p.side.on = keep_quiet;
    peer_say(&p, 0, SAY_RECEIVER);
    peer_say(&p, 0, "13: 43 43 43 43 52 01 43 52 09 40 42 41");
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.handle.type, WEIR__AMQP_NULL);
    assert_int_equal(c.flow.link_credit.type, WEIR__AMQP_NULL);
    assert_false(c.flow.echo.u);
    peer_hear_nothing(&p);
    peer_fini(&p);

    open_link(SAY_RECEIVER);
    peer_say(&p, 0, "13: 43 43 43 43 52 01 52 05 52 09 40 42 41"); /* deliveries that never were */
    peer_hear(&p, WEIR__AMQP_DETACH);
    peer_hear_nothing(&p);
    peer_say(&p, 0, "13: 43 43 43 43 52 01 43 52 09 40 42 41"); /* it did not know yet */
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.handle.type, WEIR__AMQP_NULL);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* The first credit of a link is to be used as it comes; a drain that was answered is over. */
static void only_a_drain_is_a_drain(void **state)
{
    struct manners giving = {.credit = 10, .trusted = true};
    struct weir__amqp_composite c;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &giving);
    peer_say(&p, 0, SAY_SENDER);
    peer_hear(&p, WEIR__AMQP_ATTACH);
    c = peer_hear(&p, WEIR__AMQP_FLOW);
    assert_int_equal(c.flow.link_credit.u, 10);
    assert_int_equal(c.flow.drain.u, 0);
    assert_int_equal(weir__amqp_flow(p.side.told[2].link, 10, true), 0);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.drain.u, 1);
    peer_say(&p, 0, "13: 43 70 00000800 43 70 00000800 43 52 0a 43 40 41 41");
    c = peer_hear(&p, WEIR__AMQP_FLOW); /* the echo */
    assert_int_equal(c.flow.link_credit.u, 0);
    assert_int_equal(c.flow.delivery_count.u, 10);
    assert_int_equal(c.flow.drain.u, 0);
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_is_counted_from_what_was_seen),
        cmocka_unit_test(a_sender_counts_up_to_the_credit),
        cmocka_unit_test(a_limit_is_a_number_of_bytes),
        cmocka_unit_test(our_own_limit_is_told),
        cmocka_unit_test(kept_credit_is_given_back_at_half),
        cmocka_unit_test(a_window_is_opened_at_half),
        cmocka_unit_test(only_who_is_asked_drains),
        cmocka_unit_test(a_message_under_way_is_not_drained),
        cmocka_unit_test(credit_is_given_again),
        cmocka_unit_test(an_echo_speaks_of_links_that_are_there),
        cmocka_unit_test(only_a_drain_is_a_drain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
