/* Frames of links that may send large ones, beside those of others. */
#include "peer.h"

#define USUAL 65536u
#define HEAD_BYTES 42u
#define BIG 1500000u

static struct pair p;

/* A link from the client, whose own limit is `takes`, to a server that takes frames of `peer_takes`. */
static struct weir__amqp_link *join(uint32_t takes, uint32_t peer_takes)
{
    const struct weir__amqp_options client = {.after.frame_bytes = takes};
    const struct weir__amqp_options server = {.after.frame_bytes = peer_takes};
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER, .name = weir__bytes_of("link", 4)};
    static struct manners m = {.credit = 100};
    struct weir__amqp_session *session;
    struct weir__amqp_link *link;

    pair_init(&p, &client, &server);
    p.server.on = be_kind;
    p.server.user = &m;
    settle_down(&p);
    assert_int_equal(weir__amqp_begin(p.client.e, &session, NULL), 0);
    settle_down(&p);
    assert_int_equal(weir__amqp_attach(session, &t, &link, NULL), 0);
    settle_down(&p);
    p.server.taken = p.server.count;
    return link;
}

/* Sends so many bytes and returns the size of the largest frame that they went in. They arrive. */
static size_t largest_frame(struct weir__amqp_link *link, size_t bytes)
{
    static uint8_t payload[BIG];
    struct weir__bytes message = weir__bytes_of(payload, bytes), out;
    size_t largest = 0, frame;
    struct told *told;

    for (size_t i = 0; i < bytes; i++) payload[i] = (uint8_t)(i * 7 + i / 251);
    assert_int_equal(weir__amqp_send(link, message, 0, true, NULL), 0);
    out = weir__amqp_output(p.client.e);
    for (size_t at = 0; at < out.len; at += frame) {
        frame = weir__load_be32(out.at + at);
        if (frame > largest) largest = frame;
    }
    p.seed = bytes;
    settle_down(&p);
    told = expect(&p.server, WEIR__AMQP_EVENT_TRANSFER);
    assert_int_equal(told->delivery.size, bytes);
    assert_int_equal(told->sum, sum_of(message));
    expect_nothing(&p.server);
    return largest;
}

/* What we take and the peer takes, and how large frames become, usually and by links that may. */
static void frames_are_as_large_as_both_allow(void **state)
{
    static const struct {
        uint32_t takes, peer_takes;
        size_t usual, large;
    } cases[] = {
        {USUAL, USUAL, USUAL, USUAL},
        {USUAL, 100000, USUAL, 100000},
        {USUAL, WEIR__AMQP_FRAME_LARGE, USUAL, WEIR__AMQP_FRAME_LARGE},
        {USUAL, WEIR__AMQP_FRAME_LARGE + 1, USUAL, WEIR__AMQP_FRAME_LARGE},
        {WEIR__AMQP_FRAME_LARGE, WEIR__AMQP_FRAME_LARGE, USUAL, WEIR__AMQP_FRAME_LARGE},
        {USUAL, 512, 512, 512},
        {1024, USUAL, 1024, USUAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__amqp_link *link = join(cases[i].takes, cases[i].peer_takes);

        assert_int_equal(largest_frame(link, BIG), cases[i].usual);
        weir__amqp_large_frames(link);
        assert_int_equal(largest_frame(link, BIG), cases[i].large);
        pair_fini(&p);
    }
}

/* The largest payload of one frame, one byte more, and one that is larger than the input usually is. */
static void a_large_frame_is_taken_whole(void **state)
{
    static const size_t sizes[] = {300000, WEIR__AMQP_FRAME_LARGE - HEAD_BYTES,
                                   WEIR__AMQP_FRAME_LARGE - HEAD_BYTES + 1, 10, USUAL};
    struct weir__amqp_link *link = join(USUAL, WEIR__AMQP_FRAME_LARGE);

    (void)state;
    weir__amqp_large_frames(link);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t whole = sizes[i] + HEAD_BYTES;

        assert_int_equal(largest_frame(link, sizes[i]),
                         whole < WEIR__AMQP_FRAME_LARGE ? whole : WEIR__AMQP_FRAME_LARGE);
    }
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_as_large_as_both_allow),
        cmocka_unit_test(a_large_frame_is_taken_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
