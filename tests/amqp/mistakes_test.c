/* What peers do wrong, and what they hear for it. */
#include "peer.h"

enum level { CLOSES, ENDS, DETACHES, LIVES };

struct mistake {
    enum level level;
    const char *condition, *text;
    const char *frames[4]; /* after open, begin and two links */
};

#define TRANSFER(id) "14: 43 52 " id " a0 01 'x' 43 42 42 | 'payload'"

static const struct mistake mistakes[] = {
    {LIVES, "", "", {""}}, /* an empty frame */
    {LIVES, "", "", {TRANSFER("00"), TRANSFER("01")}},
    {CLOSES, WEIR__AMQP_COND_DECODE, "a composite must begin with 00", {"ff"}},
    {CLOSES, WEIR__AMQP_COND_DECODE, "byte 5: more items than bytes", {"00 53 18 c0 01 02"}},
    {CLOSES,
     WEIR__AMQP_COND_DECODE,
     "close with bytes behind it",
     {"18: 40 | 40"}}, /* bytes behind */
    {CLOSES,
     WEIR__AMQP_COND_DECODE,
     "byte 4: a size that is beyond the end",
     {"00 53 14 c0 05 06 43"}},
    {CLOSES,
     WEIR__AMQP_COND_INVALID_FIELD,
     "an unknown descriptor does not belong here",
     {"99: 40"}},
    {CLOSES,
     WEIR__AMQP_COND_INVALID_FIELD,
     "source does not belong here",
     {"28: 40"}}, /* a source is no frame */
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, "sasl-init does not belong here", {"41: a3 02 'ab'"}},
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, "flow.incoming-window is missing", {"13:"}},
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, "transfer.handle is missing", {"14:"}},
    {CLOSES,
     WEIR__AMQP_COND_INVALID_FIELD,
     "an unknown descriptor does not belong here",
     {"00 a3 12 'amqp:transfer:lisu' c0 02 01 43"}},
    {CLOSES,
     WEIR__AMQP_COND_INVALID_FIELD,
     "an unknown descriptor does not belong here",
     {"00 a3 11 'amqp:transfer:lis' c0 02 01 43"}},
    {CLOSES,
     WEIR__AMQP_COND_DECODE,
     "byte 1: a value of another type than belongs here",
     {"00 a1 12 'amqp:transfer:list' c0 02 01 43"}},
    {CLOSES, WEIR__AMQP_COND_ILLEGAL_STATE, "open at the wrong time", {SAY_OPEN}},
    {CLOSES, WEIR__AMQP_COND_ILLEGAL_STATE, "channel 0 has a session", {SAY_BEGIN}},
    {CLOSES,
     WEIR__AMQP_COND_FRAMING,
     "handle 256, the last is 255",
     {"12: a1 01 'a' 70 00000100 42"}}, /* a handle of 256 */
    {ENDS, WEIR__AMQP_COND_HANDLE_IN_USE, "handle 0 has a link", {"12: a1 01 'a' 43 42"}},
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "attach with an unknown settle mode",
     {"12: a1 01 'a' 52 05 42 50 03"}},
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "attach with an unknown settle mode",
     {"12: a1 01 'a' 52 05 42 50 02 50 02"}},
    {ENDS, WEIR__AMQP_COND_UNATTACHED, "detach of handle 9", {"16: 52 09"}},
    {ENDS, WEIR__AMQP_COND_UNATTACHED, "flow for handle 9", {"13: 43 43 43 43 52 09"}},
    {ENDS, WEIR__AMQP_COND_UNATTACHED, "transfer to handle 9", {"14: 52 09 43 a0 01 'x' 43 42 42"}},
    {ENDS,
     WEIR__AMQP_COND_NOT_ALLOWED,
     "a transfer to handle 1, which does not receive",
     {"14: 52 01 43 a0 01 'x' 43 42 42"}},
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "the first transfer of a delivery has no delivery-id",
     {"14: 43 | 'payload'"}}, /* no id */
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "transfer.delivery-id 7, the next is 6",
     {TRANSFER("05"), TRANSFER("07")}},
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "transfer.delivery-id 5, the next is 6",
     {TRANSFER("05"), TRANSFER("05")}},
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "delivery 6 within delivery 5",
     {"14: 43 52 05 a0 01 'x' 43 42 41", TRANSFER("06")}}, /* within another */
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "disposition from 5 to 0",
     {"15: 41 52 05 43"}}, /* from 5 to 0 */
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     "flow.next-incoming-id 9, the next is 0",
     {"13: 52 09 43 43 43"}},
    {DETACHES,
     WEIR__AMQP_COND_TRANSFER_LIMIT,
     "a message without credit",
     {"13: 43 43 43 43 43 52 02 43", TRANSFER("00"), "14: 43 52 01 a0 01 'x' 43 42 41",
      "14: 43 40 40 40 40 42"}}, /* and more that was on its way */
    {DETACHES,
     WEIR__AMQP_COND_INVALID_FIELD,
     "flow.delivery-count 5, ours is 0",
     {"13: 43 43 43 43 52 01 52 05 52 09"}}, /* deliveries that never were */
    {DETACHES,
     WEIR__AMQP_COND_INVALID_FIELD,
     "flow.delivery-count 9 with a credit of 2 from 0",
     {"13: 43 43 43 43 43 52 09 43"}}, /* more than the credit */
};

static void hear_flows(struct peer *p, unsigned count)
{
    while (count--) peer_hear(p, WEIR__AMQP_FLOW);
}

static void commit(struct peer *p, const struct mistake *m)
{
    for (size_t i = 0; i < 4 && m->frames[i]; i++) peer_say(p, 0, m->frames[i]);
}

/* What is said to the peer, and told to the owner: the thing and all that was in it ends. */
static void check_end(struct peer *p, const struct mistake *m)
{
    struct side *s = &p->side;
    struct weir__amqp_composite c;

    if (m->level == CLOSES) {
        c = peer_hear(p, WEIR__AMQP_CLOSE);
        assert_condition(&c.close.error, m->condition);
        assert_true(weir__amqp_closed(s->e));
    } else if (m->level == ENDS) {
        c = peer_hear(p, WEIR__AMQP_END);
        assert_condition(&c.end.error, m->condition);
    } else {
        c = peer_hear(p, WEIR__AMQP_DETACH);
        assert_condition(&c.detach.error, m->condition);
        assert_true(c.detach.closed.u);
    }
    while (s->taken < s->count && s->told[s->taken].type < WEIR__AMQP_EVENT_DETACH) s->taken++;
    if (m->level <= ENDS) expect(s, WEIR__AMQP_EVENT_DETACH);
    assert_string_equal(expect(s, WEIR__AMQP_EVENT_DETACH)->condition, m->condition);
    if (m->level <= ENDS)
        assert_string_equal(expect(s, WEIR__AMQP_EVENT_END)->condition, m->condition);
    assert_string_equal(s->told[s->taken - 1].text, m->text);
    assert_true(s->told[s->taken - 1].local);
    if (m->level == CLOSES) assert_true(expect(s, WEIR__AMQP_EVENT_CLOSE)->local);
}

/* The peer answers, and detaches the other link: the owner hears of that one only. */
static void check_told_once(struct peer *p)
{
    p->side.taken = p->side.count;
    peer_say(p, 0, "16: 43 41");
    peer_say(p, 0, "16: 52 01 41");
    peer_hear(p, WEIR__AMQP_DETACH);
    expect(&p->side, WEIR__AMQP_EVENT_DETACH);
    expect_nothing(&p->side);
}

static void each_mistake_has_its_answer(void **state)
{
    struct manners manners = {.credit = 2, .no_outcomes = true};
    static struct peer p;

    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const struct mistake *m = &mistakes[i];
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        weir__amqp_trust(p.side.e);
        peer_say(&p, 0, SAY_SENDER);
        peer_say(&p, 0, SAY_RECEIVER);
        peer_hear(&p, WEIR__AMQP_ATTACH);
        hear_flows(&p, 1);
        peer_hear(&p, WEIR__AMQP_ATTACH);
        weir__amqp_link_set_user(p.side.told[2].link, &p);
        p.side.user = &(struct manners){0};
        commit(&p, m);
        while (p.heard_at < p.heard_len && p.heard[p.heard_at + 10] == 0x13)
            peer_hear(&p, WEIR__AMQP_FLOW); /* credit that was topped up */
        if (m->level != LIVES) check_end(&p, m);
        if (m->level == DETACHES) check_told_once(&p);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

/* The sentence of the last end that the owner was told of. */
static const char *last_text(const struct peer *p)
{
    return p->side.told[p->side.count - 1].text;
}

static void a_begin_answers_somebody(void **state)
{
    struct manners manners = {0};
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 1, "11: 60 0009 43 43 43"); /* a begin of ours on channel 9 */
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_INVALID_FIELD);
    assert_string_equal(last_text(&p), "begin.remote-channel 9, where no session waits");
    peer_fini(&p);
}

/* After an ending of ours the peer's frames still come; they are not looked at until its own. */
static void what_was_ended_is_deaf(void **state)
{
    struct manners manners = {.credit = 2};
    static struct peer p;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, "16: 52 09"); /* unattached */
    peer_hear(&p, WEIR__AMQP_END);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, TRANSFER("00"));
    peer_say(&p, 0, "15: 41 52 05 43");
    peer_hear_nothing(&p);
    expect(&p.side, WEIR__AMQP_EVENT_END);
    peer_say(&p, 0, SAY_END);
    expect_nothing(&p.side);
    peer_say(&p, 0, SAY_BEGIN); /* the channel is free again */
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    peer_hear(&p, WEIR__AMQP_BEGIN);
    peer_fini(&p);
}

/* Azure's Python client detaches its links after it has ended their session. */
static void what_the_peer_ended_is_passed_over(void **state)
{
    struct manners manners = {.credit = 2};
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_SENDER);
    peer_hear(&p, WEIR__AMQP_ATTACH);
    peer_hear(&p, WEIR__AMQP_FLOW);
    peer_say(&p, 0, SAY_END);
    peer_hear(&p, WEIR__AMQP_END);
    peer_say(&p, 0, "16: 43 41");
    peer_say(&p, 0, "13: 43 43 43 43 43 43 52 09");
    peer_say(&p, 0, TRANSFER("00"));
    peer_say(&p, 0, "15: 41 43");
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, SAY_END);
    peer_hear_nothing(&p);
    peer_say(&p, 0, SAY_BEGIN); /* another session, whose mistakes count */
    peer_hear(&p, WEIR__AMQP_BEGIN);
    peer_say(&p, 0, "16: 43 41");
    peer_hear(&p, WEIR__AMQP_END);
    peer_say(&p, 1, "16: 43 41"); /* a channel that never had one */
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_NOT_ALLOWED);
    assert_string_equal(last_text(&p), "no session on channel 1");
    peer_fini(&p);
}

#define LAST_CHANNEL 23
#define DETACH "16: 43 41"

/* A detach on channel `on`, when the peer has begun a session on channel 0, and one on `ended`, which
 * it has ended. */
static void detach_behind_end(uint16_t ended, uint16_t on)
{
    struct weir__amqp_options o = {.channel_max = LAST_CHANNEL};
    struct manners manners = {0};
    static struct peer p;

    peer_open(&p, &o, &manners);
    if (ended > 0) {
        peer_say(&p, ended, SAY_BEGIN);
        peer_hear(&p, WEIR__AMQP_BEGIN);
    }
    peer_say(&p, ended, SAY_END);
    peer_hear(&p, WEIR__AMQP_END);
    peer_say(&p, on, DETACH);
    if (on == 0 && ended > 0)
        peer_hear(&p, WEIR__AMQP_END); /* there is no such link */
    else if (on != ended)
        peer_hear(&p, WEIR__AMQP_CLOSE);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* And no other channel is taken for it. */
static void each_ended_channel_is_known(void **state)
{
    (void)state;
    for (uint16_t ended = 0; ended <= LAST_CHANNEL; ended++)
        for (uint16_t on = 0; on <= LAST_CHANNEL + 1; on++) detach_behind_end(ended, on);
}

/* Once for all of them, a bit for each. */
static void ended_channels_have_a_cost(void **state)
{
    struct weir__amqp_options o = {.channel_max = 65534};
    struct manners manners = {0};
    static struct peer p;
    size_t before, after;

    (void)state;
    peer_open(&p, &o, &manners);
    before = weir__amqp_memory(p.side.e);
    peer_say(&p, 1, SAY_BEGIN);
    peer_say(&p, 1, SAY_END);
    after = weir__amqp_memory(p.side.e);
    assert_in_range(after - before, 65535 / 8, 65535 / 8 + 1024);
    peer_say(&p, 1, SAY_BEGIN);
    peer_say(&p, 1, SAY_END);
    assert_int_equal(weir__amqp_memory(p.side.e), after);
    peer_fini(&p);
}

static void frames_that_cannot_be_read_close(void **state)
{
    static const struct {
        const char *said, *text;
    } rows[] = {
        {"00000007 02 00 0000", "a frame smaller than its own header (7 bytes)"},
        {"00000000", "a frame smaller than its own header (0 bytes)"},
        {"00002001 02 00 0000", "a frame larger than allowed (8193 bytes)"},
        {"00000008 01 00 0000", "a frame whose body begins outside of it (8 bytes)"},
        {"0000000c 04 00 0000 00531845", "a frame whose body begins outside of it (12 bytes)"},
        {"0000000c 02 01 0000 00531845", "a frame of type 1"},
        {"0000000c 02 07 0000 00531845", "a frame of type 7"},
    };
    struct manners manners = {0};
    static struct peer p;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_composite c;
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say_raw(&p, rows[i].said);
        c = peer_hear(&p, WEIR__AMQP_CLOSE);
        assert_condition(&c.close.error, WEIR__AMQP_COND_FRAMING);
        assert_string_equal(last_text(&p), rows[i].text);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_has_its_answer),
        cmocka_unit_test(a_begin_answers_somebody),
        cmocka_unit_test(what_was_ended_is_deaf),
        cmocka_unit_test(what_the_peer_ended_is_passed_over),
        cmocka_unit_test(each_ended_channel_is_known),
        cmocka_unit_test(ended_channels_have_a_cost),
        cmocka_unit_test(frames_that_cannot_be_read_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
