/* What comes behind an end, because its author did not know yet: commands of the owner, messages of the
 * peer. */
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10, .trusted = true};

/* A link of the peer's, which is accepted, and a message by it. */
static struct weir__amqp_link *open_link(void)
{
    struct weir__amqp_link *l;

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_SENDER);
    l = p.side.told[p.side.count - 1].link;
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
    return l;
}

enum ended { DETACHED, FAILED, SESSION_ENDED, CLOSED, ENDED_STATES };

static void bring_to(enum ended state, struct weir__amqp_link *l)
{
    if (state == DETACHED) weir__amqp_detach(l, NULL);
    if (state == FAILED) peer_say(&p, 0, "13: 43 43 43 43 43 52 7f 43"); /* more than the credit */
    if (state == SESSION_ENDED) weir__amqp_end(weir__amqp_link_session(l), NULL);
    if (state == CLOSED) weir__amqp_close(p.side.e, NULL);
    peer_listen(&p);
    p.heard_at = p.heard_len;
}

/* What an owner still asks for, because it does not know yet, is refused or passed over; the peer
 * hears nothing of it. */
static void commands_behind_an_end_do_nothing(void **state)
{
    struct weir__amqp_terms t = {.name = weir__bytes_of("n", 1), .role = WEIR__AMQP_SENDER};

    (void)state;
    for (int s = 0; s < ENDED_STATES; s++) {
        struct weir__amqp_session *session;
        struct weir__amqp_link *l, *other;
        struct weir_error err;
        l = open_link();
        session = weir__amqp_link_session(l);
        bring_to((enum ended)s, l);
        assert_int_equal(weir__amqp_flow(l, 5, false), WEIR_ECLOSED);
        assert_int_equal(weir__amqp_accept(l, &t, &err), WEIR_ECLOSED);
        assert_string_equal(err.text, "accept");
        assert_int_equal(weir__amqp_refuse(l, NULL, WEIR__AMQP_ECHO_NONE, &err), WEIR_ECLOSED);
        assert_string_equal(err.text, "refuse");
        weir__amqp_detach(l, NULL);
        if (s >= SESSION_ENDED) {
            weir__amqp_settle(l, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
            weir__amqp_end(session, NULL);
            assert_int_equal(weir__amqp_attach(session, &t, &other, &err), WEIR_ECLOSED);
        }
        if (s == CLOSED) {
            weir__amqp_close(p.side.e, NULL);
            assert_int_equal(weir__amqp_begin(p.side.e, &session, &err), WEIR_ECLOSED);
        }
        peer_listen(&p);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

#define LONG_BODY "'a message of which there is more than the head of a frame has room for'"

/* The peer goes on: the rest of what it has begun, and more, from this id on. */
static void go_on(bool begun, unsigned id)
{
    static const char *const bodies[] = {LONG_BODY, "'m'", LONG_BODY, LONG_BODY};
    char said[160];

    if (begun) peer_say(&p, 0, "14: 43 40 40 40 40 42 | 'the end of a message'");
    for (unsigned i = 0; i < 4; i++) {
        bool more = i == 2; /* the last is the rest of that */
        snprintf(said, sizeof said, "14: 43 52 %02x a0 01 'x' 43 42 %s | %s", id + i - (i == 3),
                 more ? "41" : "42", bodies[i]);
        peer_say(&p, 0, said);
    }
}

/* Messages that were on their way, short and long and the rest of one that had begun: nobody is told of
 * them, and their link gets no more credit. */
static void messages_behind_an_end_are_dropped(void **state)
{
    (void)state;
    for (int s = 0; s < 2 * ENDED_STATES; s++) {
        struct weir__amqp_link *l = open_link();
        bool begun = s % 2;
        if (begun) peer_say(&p, 0, "14: 43 52 01 a0 01 'x' 43 42 41 | 'the beginning'");
        bring_to((enum ended)(s / 2), l);
        p.side.taken = p.side.count;
        go_on(begun, begun ? 2 : 1);
        expect_nothing(&p.side);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_behind_an_end_do_nothing),
        cmocka_unit_test(messages_behind_an_end_are_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
