/* Bytes that a client of Azure's has sent (@azure/event-hubs 6.0.4), and bytes that the engine must
 * always send: the forms that clients in use depend on. */
#include "peer.h"

static struct peer p;

#define UUID_TAIL "11111111-2222-3333-4444-555555555555'"
#define UUID "'" UUID_TAIL

static void accept_all(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms t = {.max_message_size = 1048576, .no_outcomes = true};

    if (ev->type == WEIR__AMQP_EVENT_SASL) weir__amqp_sasl_answer(s->e, true);
    if (ev->type != WEIR__AMQP_EVENT_ATTACH) return;
    if (weir__amqp_link_role(ev->link) == WEIR__AMQP_RECEIVER) t.credit = 1000;
    assert_int_equal(weir__amqp_accept(ev->link, &t, NULL), 0);
}

static void open_as_the_client_does(void)
{
    peer_init(&p, &(struct weir__amqp_options){0}, NULL);
    p.side.on = accept_all;
    peer_say_raw(&p, "41 4d 51 50 03 01 00 00");
    peer_say_raw(&p, "00000046 02 01 0000 005341 d0 00000036 00000003 a309'ANONYMOUS' "
                     "a01a 00'RootManageSharedAccessKey' a109'localhost'");
    expect(&p.side, WEIR__AMQP_EVENT_SASL);
    peer_say_raw(&p, "41 4d 51 50 00 01 00 00");
    peer_say(&p, 0,
             "10; a124" UUID " a109'localhost' 40 40 70 0000ea60 40 40 40 40 d1 00000018 00000004 "
             "a307'product' a103'a b' a301'v' a101'6'");
    expect(&p.side, WEIR__AMQP_EVENT_OPEN);
    peer_hear_header(&p, 3);
    peer_hear(&p, WEIR__AMQP_SASL_MECHANISMS);
    peer_hear(&p, WEIR__AMQP_SASL_OUTCOME);
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
}

static void azures_javascript_client_is_understood(void **state)
{
    struct told *told;

    (void)state;
    open_as_the_client_does();
    peer_say(&p, 0, "005311 d0 00000010 00000004 40 43 70 00000800 70 ffffffff");
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    peer_say(&p, 0,
             "12; a124" UUID
             " 43 42 40 40 005328 45 005329 d0 0000000a 00000001 a104'$cbs' 40 40 43");
    assert_int_equal(weir__amqp_link_role(expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link),
                     WEIR__AMQP_RECEIVER);
    peer_say(&p, 0,
             "12; a128'cbs-" UUID_TAIL
             " 5201 41 40 40 005328 d0 0000000a 00000001 a104'$cbs' 005329 45");
    assert_int_equal(weir__amqp_link_role(expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link),
                     WEIR__AMQP_SENDER);
    peer_say(&p, 0, "13; 43 70 00000800 43 70 ffffffff 5201 43 70 000003e8");
    told = expect(&p.side, WEIR__AMQP_EVENT_FLOW);
    assert_int_equal(weir__amqp_sendable(told->link), 1000);
    peer_say(&p, 0, "14; 43 43 a00130 43 42 42 | 005370 45 005373 45 005377 a103'tok'");
    told = expect(&p.side, WEIR__AMQP_EVENT_TRANSFER);
    assert_int_equal(told->delivery.format, 0);
    assert_int_equal(told->delivery.payload.len, 16);
    peer_say(&p, 0, "14; 43 5201 a00131 70 80013700 42 42 | 005375 a0016d");
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_TRANSFER)->delivery.format,
                     WEIR__AMQP_FORMAT_BATCH);
    peer_say(&p, 0, "005315 d0 0000000c 00000005 41 43 43 41 005324 45");
    expect_nothing(&p.side);
    assert_false(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

/* The attach of a receiver with filter, capabilities and properties, as it lies on the wire. */
static void a_receiver_with_everything_is_understood(void **state)
{
    (void)state;
    open_as_the_client_does();
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0,
             "12; a103'rcv' 43 41 40 40 005328 d0 0000006a 00000008 a103'src' 40 40 40 40 40 40 "
             "d1 00000056 00000002 a321'apache.org:selector-filter:string' 00 80 0000468c00000004 "
             "a123'amqp.annotation.x-opt-offset > ' 27'-1'27 005329 45 40 40 40 40 40 "
             "f0 00000022 00000001 a3 1c'com.microsoft:georeplication' "
             "d1 00000026 00000002 a31b'com.microsoft:receiver-name' a103'abc'");
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* The frames of a first message to a client, byte for byte. */
static void what_is_sent_keeps_its_form(void **state)
{
    static const char want[] =
        /* begin: eight fields */
        "00000021 02 00 0003 005311 c0 14 08 60 0003 43 70 00000100 70 ffffffff 52ff 40 40 40"
        /* attach: fourteen, both ends not null, initial-delivery-count and max-message-size */
        "00000045 02 00 0003 005312 c0 38 0e a10172 5201 42 5002 5000 005328 c0 0c 0b 40 40 40 40 "
        "40 40 40 40 40 40 40 005329 c0 08 07 40 40 40 40 40 40 40 40 40 43 80 0000000000100000 "
        "40 40 40"
        /* transfer: eleven, message-format never null */
        "0000002e 02 00 0003 005314 c0 1d 0b 70 00000001 70 00000000 a0 04 00000000 70 00000000 42 "
        "42 40 40 40 40 42 'data'"
        /* detach: three; end, close: one */
        "00000012 02 00 0003 005316 c0 05 03 5201 41 40"
        "0000000f 02 00 0003 005317 c0 02 01 40"
        "0000000f 02 00 0000 005318 c0 02 01 40";
    struct weir__bytes bytes = sample_hex(want);
    struct weir__amqp_link *l;

    (void)state;
    open_as_the_client_does();
    p.heard_at = p.heard_len;
    peer_say(&p, 3, SAY_BEGIN);
    peer_say(&p, 3, "12: a1 01 'r' 52 01 41"); /* both ends null */
    peer_say(&p, 3, "13: 43 52 10 43 43 52 01 43 52 10");
    l = p.side.told[p.side.count - 1].link;
    assert_int_equal(weir__amqp_send(l, weir__bytes_of("data", 4), 0, false, NULL), 0);
    peer_listen(&p);
    peer_say(&p, 3, "16: 52 01 41");
    peer_say(&p, 3, SAY_END);
    peer_say(&p, 0, SAY_CLOSE);
    assert_bytes(weir__bytes_of(p.heard + p.heard_at, p.heard_len - p.heard_at), bytes);
    sample_free(bytes);
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(azures_javascript_client_is_understood),
        cmocka_unit_test(a_receiver_with_everything_is_understood),
        cmocka_unit_test(what_is_sent_keeps_its_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
