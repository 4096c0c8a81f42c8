/* Frames of links that may send large ones, beside those of others. */
#include "peer.h"

#include "amqp/state.h"

#define USUAL 65536u
#define HEAD_BYTES 42u
#define BIG 1500000u
#define STOPS_MAX 1000

static struct pair p;

#define HUGE_BYTES ((size_t)17 << 20) /* more than the output and the rests of messages may have */

/* A link from the client, whose own limit is `takes`, to a server that takes frames of `peer_takes`. */
static struct weir__amqp_link *join(uint32_t takes, uint32_t peer_takes, uint32_t window)
{
    const struct weir__amqp_options client = {.after.frame_bytes = takes};
    const struct weir__amqp_options server = {.after.frame_bytes = peer_takes,
                                              .after.partial_bytes = 4 * HUGE_BYTES,
                                              .after.unsettled = window};
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
    static uint8_t payload[HUGE_BYTES];
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
    /* An end that has very much to write reads no further meanwhile. */
    for (int i = 0; i < STOPS_MAX && p.server.taken == p.server.count; i++) settle_down(&p);
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
        struct weir__amqp_link *link = join(cases[i].takes, cases[i].peer_takes, 0);

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
    struct weir__amqp_link *link = join(USUAL, WEIR__AMQP_FRAME_LARGE, 0);

    (void)state;
    weir__amqp_large_frames(link);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t whole = sizes[i] + HEAD_BYTES;

        assert_int_equal(largest_frame(link, sizes[i]),
                         whole < WEIR__AMQP_FRAME_LARGE ? whole : WEIR__AMQP_FRAME_LARGE);
    }
    pair_fini(&p);
}

/* One delivery has its place, whatever is allowed of many: nobody could ever make room for it. */
static void a_huge_message_goes_alone(void **state)
{
    static const struct {
        uint32_t peer_takes, window;
        bool large;
    } cases[] = {{USUAL, 0, false},
                 {WEIR__AMQP_FRAME_LARGE, 0, true},
                 {USUAL, 64, false},
                 {512, 64, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__amqp_link *link = join(USUAL, cases[i].peer_takes, cases[i].window);

        if (cases[i].large) weir__amqp_large_frames(link);
        largest_frame(link, HUGE_BYTES);
        assert_int_equal(largest_frame(link, 10), 10 + HEAD_BYTES); /* and so does the next one */
        pair_fini(&p);
    }
}

static bool refuse(void *refusals, size_t more)
{
    if (more) ++*(int *)refusals;
    return more == 0;
}

/* The rest of one message has its place; whoever wants to keep that of a second asks for it. */
static void a_second_rest_asks_for_memory(void **state)
{
    static const uint8_t payload[60000];
    struct weir__bytes message = weir__bytes_of(payload, sizeof payload);
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER, .name = weir__bytes_of("other", 5)};
    struct weir__amqp_link *first = join(USUAL, 512, 64), *second;
    struct weir__amqp_session *other;
    int refusals = 0;

    (void)state;
    assert_int_equal(weir__amqp_begin(p.client.e, &other, NULL), 0);
    settle_down(&p);
    assert_int_equal(weir__amqp_attach(other, &t, &second, NULL), 0);
    settle_down(&p);
    p.server.taken = p.server.count;
    p.client.e->o.reserve = refuse;
    p.client.e->o.reserve_data = &refusals;
    assert_int_equal(weir__amqp_send(first, message, 0, true, NULL), 0);
    weir__amqp_sent(p.client.e, weir__amqp_output(p.client.e).len); /* and is not answered */
    assert_int_equal(weir__amqp_send(second, message, 0, true, NULL), WEIR_EBUSY);
    assert_int_equal(refusals, 1);
    p.client.e->o.reserve = NULL;
    assert_int_equal(weir__amqp_send(second, message, 0, true, NULL), 0);
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_as_large_as_both_allow),
        cmocka_unit_test(a_large_frame_is_taken_whole),
        cmocka_unit_test(a_huge_message_goes_alone),
        cmocka_unit_test(a_second_rest_asks_for_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
