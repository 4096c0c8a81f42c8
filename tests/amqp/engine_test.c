/* Two engines talk from the first header to the last close, whatever the pieces of the stream. */
#include "pair.h"

static const struct weir__amqp_options anonymous = {.mechanisms = WEIR__AMQP_MECHANISM_SET(
                                                        WEIR__AMQP_ANONYMOUS),
                                                    .user = "key",
                                                    .hostname = "localhost"};
static const struct weir__amqp_options plain_server = {0};

static struct weir__bytes text(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

static void open_both(struct pair *p, struct manners *m)
{
    p->server.on = be_kind;
    p->server.user = m;
    settle_down(p);
    expect(&p->server, WEIR__AMQP_EVENT_SASL);
    expect(&p->server, WEIR__AMQP_EVENT_OPEN);
    expect(&p->client, WEIR__AMQP_EVENT_OPEN);
}

/* A session with a link of the client's in this role. */
static struct weir__amqp_link *attach_link(struct pair *p, bool role, struct weir__amqp_terms *t)
{
    struct weir__amqp_session *s;
    struct weir__amqp_link *l;

    t->role = role;
    if (!t->name.at) t->name = text("one");
    assert_int_equal(weir__amqp_begin(p->client.e, &s, NULL), 0);
    assert_int_equal(weir__amqp_attach(s, t, &l, NULL), 0);
    settle_down(p);
    expect(&p->server, WEIR__AMQP_EVENT_BEGIN);
    assert_true(expect(&p->server, WEIR__AMQP_EVENT_ATTACH)->incoming);
    expect(&p->client, WEIR__AMQP_EVENT_BEGIN);
    assert_false(expect(&p->client, WEIR__AMQP_EVENT_ATTACH)->incoming);
    return l;
}

/* The whole life of a connection with two links; every event is the same for every split. */
static void live_once(struct pair *p)
{
    struct manners m = {.credit = 100, .max_message = 1 << 20, .accept_deliveries = true};
    struct weir__amqp_terms sender = {.snd_settle_mode = WEIR__AMQP_SEND_MIXED};
    struct weir__amqp_terms receiver = {.name = text("two"), .credit = 10};
    struct weir__amqp_link *out, *in, *serving;
    struct told *t;
    uint32_t id;

    open_both(p, &m);
    out = attach_link(p, WEIR__AMQP_SENDER, &sender);
    expect(&p->client, WEIR__AMQP_EVENT_FLOW);
    assert_int_equal(weir__amqp_sendable(out), 100);
    assert_int_equal(weir__amqp_send(out, text("hello"), 7, false, &id), 0);
    assert_int_equal(weir__amqp_send(out, text("there"), WEIR__AMQP_FORMAT_BATCH, true, NULL), 0);
    settle_down(p);
    t = expect(&p->server, WEIR__AMQP_EVENT_TRANSFER);
    assert_int_equal(t->sum, sum_of(text("hello")));
    assert_int_equal(t->delivery.format, 7);
    assert_false(t->delivery.settled);
    t = expect(&p->server, WEIR__AMQP_EVENT_TRANSFER);
    assert_true(t->delivery.settled && t->delivery.format == WEIR__AMQP_FORMAT_BATCH);
    t = expect(&p->client, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(t->settle.first, id);
    assert_int_equal(t->settle.last, id);
    assert_int_equal(t->settle.outcome, WEIR__AMQP_ACCEPTED);
    assert_ptr_equal(t->link, out);

    in = attach_link(p, WEIR__AMQP_RECEIVER, &receiver);
    serving = expect(&p->server, WEIR__AMQP_EVENT_FLOW)->link;
    assert_int_equal(weir__amqp_send(serving, text("back"), 0, true, NULL), 0);
    settle_down(p);
    t = expect(&p->client, WEIR__AMQP_EVENT_TRANSFER);
    assert_ptr_equal(t->link, in);
    assert_int_equal(t->sum, sum_of(text("back")));

    weir__amqp_detach(in, NULL);
    weir__amqp_end(weir__amqp_link_session(out), NULL);
    settle_down(p);
    assert_string_equal(expect(&p->server, WEIR__AMQP_EVENT_DETACH)->condition, "");
    expect(&p->server, WEIR__AMQP_EVENT_DETACH);
    expect(&p->server, WEIR__AMQP_EVENT_END);
    expect(&p->client, WEIR__AMQP_EVENT_DETACH);
    expect(&p->client, WEIR__AMQP_EVENT_DETACH);
    expect(&p->client, WEIR__AMQP_EVENT_END);
    weir__amqp_close(p->client.e, NULL);
    settle_down(p);
    expect(&p->server, WEIR__AMQP_EVENT_END);
    expect(&p->server, WEIR__AMQP_EVENT_CLOSE);
    expect(&p->client, WEIR__AMQP_EVENT_END);
    expect(&p->client, WEIR__AMQP_EVENT_CLOSE);
    expect_nothing(&p->client);
    expect_nothing(&p->server);
    assert_true(weir__amqp_closed(p->client.e) && weir__amqp_closed(p->server.e));
}

static void a_connection_lives_however_its_bytes_are_cut(void **state)
{
    static struct pair p;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        pair_init(&p, &anonymous, &plain_server);
        p.seed = seed;
        p.piece_max = seed == 1 ? 1 : seed % 3 == 2 ? 7 : 0;
        live_once(&p);
        pair_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_lives_however_its_bytes_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
