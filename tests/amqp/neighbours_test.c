/* Outcomes of ours that share a frame, or must not; and what a receiver that settles second hears. */
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10, .trusted = true};

/* What the next frame must be: an outcome of these deliveries on this channel. */
static struct weir__amqp_composite hear(uint16_t channel, uint32_t first, uint32_t last,
                                        enum weir__amqp_kind outcome, bool settled)
{
    uint16_t heard = weir__load_be16(p.heard + p.heard_at + 6);
    struct weir__amqp_composite c = peer_hear(&p, WEIR__AMQP_DISPOSITION), state;

    assert_int_equal(heard, channel);
    assert_int_equal(c.disposition.role.u, WEIR__AMQP_RECEIVER);
    assert_int_equal(c.disposition.first.u, first);
    assert_int_equal(c.disposition.last.u, last);
    assert_int_equal(c.disposition.settled.u, settled);
    assert_int_equal(weir__amqp_composite_of(&c.disposition.state, WEIR__AMQP_OUTCOMES, &state,
                                             NULL),
                     0);
    assert_int_equal(state.kind, outcome);
    return state;
}

/* A sender of the peer's on this channel and handle, ours settles first or second; it sends messages
 * from this id on. */
static struct weir__amqp_link *open_link(uint16_t channel, unsigned handle, unsigned mode,
                                         unsigned id, unsigned count)
{
    struct weir__amqp_link *l;
    char said[120];

    snprintf(said, sizeof said,
             "12: a1 01 's' 52 %02x 42 50 02 50 %02x 00 53 28 45 00 53 29 45 40 40 43", handle,
             mode);
    peer_say(&p, channel, said);
    l = p.side.told[p.side.count - 1].link;
    for (unsigned i = 0; i < count; i++) {
        snprintf(said, sizeof said, "14: 52 %02x 52 %02x a0 01 'x' 43 42 42 | 'm'", handle, id + i);
        peer_say(&p, channel, said);
    }
    p.heard_at = p.heard_len;
    return l;
}

static void other_outcomes_have_their_own_frame(void **state)
{
    struct weir__amqp_error error = error_text(WEIR__AMQP_COND_NOT_ALLOWED, "no");
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    l = open_link(0, 0, 0, 0, 8);
    weir__amqp_settle(l, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(l, 1, 1, WEIR__AMQP_RELEASED, NULL);
    weir__amqp_settle(l, 2, 2, WEIR__AMQP_RELEASED, NULL);
    weir__amqp_settle(l, 3, 3, WEIR__AMQP_REJECTED, NULL);
    weir__amqp_settle(l, 4, 4, WEIR__AMQP_REJECTED, &error);
    weir__amqp_settle(l, 5, 5, WEIR__AMQP_REJECTED, NULL);
    weir__amqp_settle(l, 7, 7, WEIR__AMQP_REJECTED, NULL);
    weir__amqp_settle(l, 6, 6, WEIR__AMQP_REJECTED, NULL);
    peer_listen(&p);
    hear(0, 0, 0, WEIR__AMQP_ACCEPTED, true);
    hear(0, 1, 2, WEIR__AMQP_RELEASED, true);
    for (unsigned i = 3; i < 6; i++) {
        struct weir__amqp_composite c = hear(0, i, i, WEIR__AMQP_REJECTED, true);
        assert_condition(&c.rejected.error, i == 4 ? WEIR__AMQP_COND_NOT_ALLOWED : "");
    }
    hear(0, 7, 7, WEIR__AMQP_REJECTED, true);
    hear(0, 6, 6, WEIR__AMQP_REJECTED, true);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* Ids are a session's: links that settle alike share a frame, others do not, nor do sessions. */
static void frames_are_shared_within_a_session(void **state)
{
    struct weir__amqp_link *first, *second, *late, *more, *away;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 1, SAY_BEGIN);
    first = open_link(0, 0, 0, 0, 1);
    second = open_link(0, 1, 0, 1, 1);
    late = open_link(0, 2, 1, 2, 1);
    more = open_link(0, 3, 0, 3, 1);
    away = open_link(1, 0, 0, 0, 4);
    weir__amqp_settle(first, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(second, 1, 1, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(late, 2, 2, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(away, 2, 2, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_settle(more, 3, 3, WEIR__AMQP_ACCEPTED, NULL);
    peer_listen(&p);
    hear(0, 0, 1, WEIR__AMQP_ACCEPTED, true);
    hear(0, 2, 2, WEIR__AMQP_ACCEPTED, false);
    hear(1, 2, 2, WEIR__AMQP_ACCEPTED, true);
    hear(0, 3, 3, WEIR__AMQP_ACCEPTED, true);
    peer_hear_nothing(&p);
    weir__amqp_settle(away, 3, 3, WEIR__AMQP_ACCEPTED, NULL); /* what was said is over */
    peer_listen(&p);
    hear(1, 3, 3, WEIR__AMQP_ACCEPTED, true);
    peer_fini(&p);
}

/* What was said before a message is heard before it. */
static void outcomes_and_messages_keep_their_order(void **state)
{
    struct weir__amqp_link *in, *out;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    in = open_link(0, 0, 0, 0, 2);
    peer_say(&p, 0, SAY_RECEIVER);
    out = p.side.told[p.side.count - 1].link;
    peer_say(&p, 0, "13: 43 52 09 43 43 52 01 43 52 09");
    p.heard_at = p.heard_len;
    weir__amqp_settle(in, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    assert_int_equal(weir__amqp_send(out, weir__bytes_of("m", 1), 0, true, NULL), 0);
    weir__amqp_settle(in, 1, 1, WEIR__AMQP_ACCEPTED, NULL);
    peer_listen(&p);
    hear(0, 0, 0, WEIR__AMQP_ACCEPTED, true);
    peer_hear(&p, WEIR__AMQP_TRANSFER);
    hear(0, 1, 1, WEIR__AMQP_ACCEPTED, true);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* Three messages were sent. Of those that never were, nothing is said; nor is anything, while the
 * receiver has not told an outcome. */
static void second_hears_of_what_was_sent(void **state)
{
    static const struct {
        const char *said;
        unsigned first, last; /* that are answered; first > last: none */
    } rows[] = {
        {"15: 41 43 40 42 00 53 24 45", 0, 0},
        {"15: 41 52 01 52 02 42 00 53 24 45", 1, 2},
        {"15: 41 52 02 52 03 42 00 53 24 45", 2, 2},
        {"15: 41 52 02 52 09 42 00 53 25 45", 2, 2},
        {"15: 41 52 03 52 09 42 00 53 24 45", 1, 0},
        {"15: 41 43 52 02 42", 1, 0},
        {"15: 41 43 52 02 42 00 53 23 c0 03 02 43 44", 1, 0}, /* received, so far */
        {"15: 41 43 52 02 41 00 53 24 45", 1, 0},             /* settled first, after all */
    };
    static const char attach[] = "12: a1 01 'r' 52 01 41 50 00 50 01 00 53 28 45 00 53 29 45";

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *l;
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, 0, attach);
        l = p.side.told[p.side.count - 1].link;
        peer_say(&p, 0, "13: 43 52 09 43 43 52 01 43 52 09");
        for (int n = 0; n < 3; n++)
            assert_int_equal(weir__amqp_send(l, weir__bytes_of("m", 1), 0, false, NULL), 0);
        peer_listen(&p);
        p.heard_at = p.heard_len;
        peer_say(&p, 0, rows[i].said);
        if (rows[i].first <= rows[i].last) {
            struct weir__amqp_composite c = peer_hear(&p, WEIR__AMQP_DISPOSITION);
            assert_int_equal(c.disposition.role.u, WEIR__AMQP_SENDER);
            assert_true(c.disposition.settled.u);
            assert_int_equal(c.disposition.first.u, rows[i].first);
            assert_int_equal(c.disposition.last.u, rows[i].last);
        }
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_outcomes_have_their_own_frame),
        cmocka_unit_test(frames_are_shared_within_a_session),
        cmocka_unit_test(outcomes_and_messages_keep_their_order),
        cmocka_unit_test(second_hears_of_what_was_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
