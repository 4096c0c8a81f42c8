/* What waits to be sent, and what waits to be read: how much of it, and how long. */
#include "peer.h"

static struct peer p;
static const uint8_t zeros[1000];

/* A link of ours to a peer with a window of so many frames of 512 bytes, in hexadecimal. */
static struct weir__amqp_link *open_sender(const char *window)
{
    static struct manners manners = {.trusted = true, .no_outcomes = true};
    char flow[64];

    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 70 00000200");
    peer_say(&p, 0, SAY_BEGIN);
    peer_say(&p, 0, SAY_RECEIVER);
    snprintf(flow, sizeof flow, "13: 43 70 %s 43 43 52 01 43 70 00100000", window);
    peer_say(&p, 0, flow);
    p.heard_at = p.heard_len;
    return p.side.told[2].link;
}

/* A quarter of a mebibyte waits for a peer that does not read; then deliveries wait for it. */
static void only_so_much_waits_for_the_peer(void **state)
{
    struct weir__amqp_link *l = open_sender("00100000");
    size_t each = 400 + 42, waits;

    (void)state;
    while (weir__amqp_send(l, weir__bytes_of(zeros, 400), 0, true, NULL) == 0) continue;
    waits = weir__amqp_output(p.side.e).len;
    assert_in_range(waits, WEIR__AMQP_WAITING_BYTES, WEIR__AMQP_WAITING_BYTES + each - 1);
    assert_int_equal(weir__amqp_sendable(l), 0);
    assert_false(weir__amqp_waits_for_peer(l)); /* it has credit and a window */
    weir__amqp_sent(p.side.e, each);
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(zeros, 400), 0, true, NULL), 0);
    peer_fini(&p);
}

/* The rest of a message that the window has cut goes with its link or session. */
static void the_rest_of_a_message_goes_with_its_link(void **state)
{
    (void)state;
    for (int session = 0; session < 2; session++) {
        struct weir__amqp_link *l = open_sender("00000001");
        assert_int_equal(weir__amqp_send(l, weir__bytes_of(zeros, 1000), 0, true, NULL), 0);
        if (session)
            weir__amqp_end(weir__amqp_link_session(l), NULL);
        else
            weir__amqp_detach(l, NULL);
        peer_listen(&p);
        assert_true(peer_hear(&p, WEIR__AMQP_TRANSFER).transfer.more.u);
        peer_hear(&p, session ? WEIR__AMQP_END : WEIR__AMQP_DETACH);
        peer_say(&p, 0, "13: 52 01 52 09 43 43");
        peer_listen(&p);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

/* Each frame has its own time, from its first bytes on. */
static void a_frame_that_follows_has_its_own_time(void **state)
{
    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){.trusted = true});
    weir__amqp_tick(p.side.e, 1000);
    peer_say_raw(&p, "00000008 02 00");
    weir__amqp_tick(p.side.e, 1000);
    weir__amqp_tick(p.side.e, 20000);
    peer_say_raw(&p, "0000 00000008 02"); /* the rest of it, and some of the next */
    weir__amqp_tick(p.side.e, 20000);
    weir__amqp_tick(p.side.e, 49999);
    take_events(&p.side);
    expect_nothing(&p.side);
    weir__amqp_tick(p.side.e, 50000);
    take_events(&p.side);
    assert_string_equal(p.side.told[p.side.count - 1].text, "a frame took longer than 30000 ms");
    peer_fini(&p);
}

#define LONG_BYTES 1000 /* needs three of the smallest frames */
#define TRANSFER_HEAD 42

/* The payloads of all frames that were heard and not looked at. */
static size_t take_payloads(struct peer *from, uint8_t *to)
{
    size_t len = 0;

    while (from->heard_at < from->heard_len) {
        const uint8_t *frame = from->heard + from->heard_at;
        size_t size = weir__load_be32(frame);
        assert_true(size > TRANSFER_HEAD && size <= 512);
        memcpy(to + len, frame + TRANSFER_HEAD, size - TRANSFER_HEAD);
        len += size - TRANSFER_HEAD;
        from->heard_at += size;
    }
    return len;
}

/* One message after the other that the window takes in two parts: each is sent from its own
 * beginning to its own end. */
static void each_rest_is_its_own(void **state)
{
    struct weir__amqp_link *l = open_sender("00000000");
    uint8_t sent[LONG_BYTES], got[4 * LONG_BYTES];
    char flow[80];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        size_t len;
        for (size_t b = 0; b < sizeof sent; b++) sent[b] = (uint8_t)(b * 7 + i * 31);
        snprintf(flow, sizeof flow, "13: 52 %02x 52 01 43 70 00000800 52 01 52 %02x 52 05", 3 * i,
                 i);
        peer_say(&p, 0, flow);
        assert_int_equal(weir__amqp_send(l, weir__bytes_of(sent, sizeof sent), 0, true, NULL), 0);
        peer_listen(&p);
        len = take_payloads(&p, got);
        assert_int_equal(len, 512 - TRANSFER_HEAD);
        snprintf(flow, sizeof flow, "13: 52 %02x 52 02 43 70 00000800", 3 * i + 1);
        peer_say(&p, 0, flow);
        len += take_payloads(&p, got + len);
        assert_bytes(weir__bytes_of(got, len), weir__bytes_of(sent, sizeof sent));
    }
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_so_much_waits_for_the_peer),
        cmocka_unit_test(the_rest_of_a_message_goes_with_its_link),
        cmocka_unit_test(a_frame_that_follows_has_its_own_time),
        cmocka_unit_test(each_rest_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
