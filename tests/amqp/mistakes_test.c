/* What peers do wrong, and what they hear for it. */
#include "peer.h"

enum level { CLOSES, ENDS, DETACHES, LIVES };

struct mistake {
    enum level level;
    const char *condition;
    const char *frames[4]; /* after open, begin and two links */
};

#define TRANSFER(id) "14: 43 52 " id " a0 01 'x' 43 42 42 | 'payload'"

static const struct mistake mistakes[] = {
    {LIVES, "", {""}}, /* an empty frame */
    {LIVES, "", {TRANSFER("00"), TRANSFER("01")}},
    {CLOSES, WEIR__AMQP_COND_DECODE, {"ff"}},
    {CLOSES, WEIR__AMQP_COND_DECODE, {"00 53 18 c0 01 02"}},
    {CLOSES, WEIR__AMQP_COND_DECODE, {"18: 40 | 40"}}, /* bytes behind */
    {CLOSES, WEIR__AMQP_COND_DECODE, {"00 53 14 c0 05 06 43"}},
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, {"99: 40"}},
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, {"28: 40"}}, /* a source is no frame */
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, {"41: a3 02 'ab'"}},
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, {"13:"}},
    {CLOSES, WEIR__AMQP_COND_INVALID_FIELD, {"14:"}},
    {CLOSES, WEIR__AMQP_COND_ILLEGAL_STATE, {SAY_OPEN}},
    {CLOSES, WEIR__AMQP_COND_ILLEGAL_STATE, {SAY_BEGIN}},
    {CLOSES, WEIR__AMQP_COND_FRAMING, {"12: a1 01 'a' 70 00000100 42"}}, /* a handle of 256 */
    {ENDS, WEIR__AMQP_COND_HANDLE_IN_USE, {"12: a1 01 'a' 43 42"}},
    {ENDS, WEIR__AMQP_COND_INVALID_FIELD, {"12: a1 01 'a' 52 05 42 50 03"}},
    {ENDS, WEIR__AMQP_COND_UNATTACHED, {"16: 52 09"}},
    {ENDS, WEIR__AMQP_COND_UNATTACHED, {"13: 43 43 43 43 52 09"}},
    {ENDS, WEIR__AMQP_COND_UNATTACHED, {"14: 52 09 43 a0 01 'x' 43 42 42"}},
    {ENDS, WEIR__AMQP_COND_NOT_ALLOWED, {"14: 52 01 43 a0 01 'x' 43 42 42"}},
    {ENDS, WEIR__AMQP_COND_INVALID_FIELD, {"14: 43 | 'payload'"}}, /* no id */
    {ENDS, WEIR__AMQP_COND_INVALID_FIELD, {TRANSFER("05"), TRANSFER("07")}},
    {ENDS, WEIR__AMQP_COND_INVALID_FIELD, {TRANSFER("05"), TRANSFER("05")}},
    {ENDS,
     WEIR__AMQP_COND_INVALID_FIELD,
     {"14: 43 52 05 a0 01 'x' 43 42 41", TRANSFER("06")}},      /* within another */
    {ENDS, WEIR__AMQP_COND_INVALID_FIELD, {"15: 41 52 05 43"}}, /* from 5 to 0 */
    {ENDS, WEIR__AMQP_COND_INVALID_FIELD, {"13: 52 09 43 43 43"}},
    {DETACHES,
     WEIR__AMQP_COND_TRANSFER_LIMIT,
     {"13: 43 43 43 43 43 52 02 43", TRANSFER("00"), "14: 43 52 01 a0 01 'x' 43 42 41",
      "14: 43 40 40 40 40 42"}}, /* and more that was on its way */
    {DETACHES,
     WEIR__AMQP_COND_INVALID_FIELD,
     {"13: 43 43 43 43 52 01 52 05 52 09"}}, /* deliveries that never were */
    {DETACHES,
     WEIR__AMQP_COND_INVALID_FIELD,
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
    if (m->level == CLOSES) assert_true(expect(s, WEIR__AMQP_EVENT_CLOSE)->local);
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
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
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
    peer_fini(&p);
}

/* What an owner may not ask for; the peer has no part in it. */
static void impossible_options_are_refused(void **state)
{
    static const struct weir__amqp_options bad[] = {
        {.after.unsettled = 63}, {.after.unsettled = 100}, {.before.unsettled = 65536},
        {.channel_max = 65535},  {.handle_max = 65535},    {.client = true, .mechanisms = 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir__amqp *e = NULL;
        struct weir_error err;
        if (weir__amqp_new(&e, &bad[i], &err) != WEIR_EINVAL) fail_msg("%zu was taken", i);
        assert_null(e);
    }
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
    peer_fini(&p);
}

static void frames_that_cannot_be_read_close(void **state)
{
    static const char *const rows[] = {"00000007 02 00 0000",
                                       "00000000",
                                       "00002001 02 00 0000",
                                       "00000008 01 00 0000",
                                       "0000000c 04 00 0000 00531845",
                                       "0000000c 02 01 0000 00531845",
                                       "0000000c 02 07 0000 00531845"};
    struct manners manners = {0};
    static struct peer p;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_composite c;
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say_raw(&p, rows[i]);
        c = peer_hear(&p, WEIR__AMQP_CLOSE);
        assert_condition(&c.close.error, WEIR__AMQP_COND_FRAMING);
        peer_fini(&p);
    }
}

static void channels_and_handles_have_a_maximum(void **state)
{
    struct weir__amqp_options o = {.channel_max = 9, .handle_max = 3};
    struct manners manners = {0};
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    peer_open(&p, &o, &manners);
    weir__amqp_trust(p.side.e);
    peer_say(&p, 9, SAY_BEGIN);
    peer_hear(&p, WEIR__AMQP_BEGIN);
    peer_say(&p, 10, SAY_BEGIN);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_FRAMING);
    peer_fini(&p);

    peer_open(&p, &o, &manners);
    peer_say(&p, 5, SAY_END);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_NOT_ALLOWED);
    peer_fini(&p);
}

/* One frame of a message that goes on. */
static void peer_say_part(struct peer *p, uint16_t channel, struct weir__bytes payload)
{
    struct weir__bytes body = peer_body("14: 43 43 a0 01 'x' 43 42 41");
    uint8_t head[WEIR__AMQP_FRAME_HEAD];

    weir__amqp_frame_head(head, (uint32_t)(sizeof head + body.len + payload.len),
                          WEIR__AMQP_FRAME_AMQP, channel);
    peer_say_bytes(p, weir__bytes_of(head, sizeof head));
    peer_say_bytes(p, body);
    peer_say_bytes(p, payload);
    sample_free(body);
}

/* Before trust: as many sessions as a client begins before its token is answered, eight links, small
 * frames, and never more than 32 KiB. */
static void before_trust_little_is_allowed(void **state)
{
    static const uint8_t zeros[9000];
    struct manners manners = {.credit = 100};
    struct weir__amqp_composite c;
    static struct peer p;
    char attach[80];

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    for (int i = 0; i < 9; i++) {
        snprintf(attach, sizeof attach, "12: a1 01 's' 52 %02x 42 40 40 00 53 28 45 00 53 29 45",
                 i);
        peer_say(&p, 0, attach);
        if (i < 8) peer_hear(&p, WEIR__AMQP_ATTACH);
        if (i < 8) peer_hear(&p, WEIR__AMQP_FLOW);
    }
    c = peer_hear(&p, WEIR__AMQP_END);
    assert_condition(&c.end.error, WEIR__AMQP_COND_LIMIT);
    for (uint16_t i = 1; i < 64; i++) {
        peer_say(&p, i, SAY_BEGIN);
        peer_hear(&p, WEIR__AMQP_BEGIN);
    }
    assert_true(weir__amqp_memory(p.side.e) <= 32768);
    peer_say(&p, 64, SAY_BEGIN);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_LIMIT);
    peer_fini(&p);

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 2000, SAY_BEGIN);
    for (int i = 0; i < 2; i++) {
        peer_say(&p, i ? 2000 : 0, SAY_SENDER);
        peer_say_part(&p, i ? 2000 : 0, weir__bytes_of(zeros, 1800));
        assert_true(weir__amqp_memory(p.side.e) <= 32768);
    }
    peer_say_part(&p, 0, weir__bytes_of(zeros, 8100));
    assert_true(weir__amqp_memory(p.side.e) <= 32768);
    assert_true(weir__amqp_closed(p.side.e)); /* more of messages than 4 KiB */
    peer_fini(&p);
}

/* Every channel that was announced may have its session. */
static void what_is_announced_is_kept(void **state)
{
    static const char attach[] = "12: a1 01 's' 43 42 40 40 00 53 28 45 00 53 29 45";
    struct manners manners = {.credit = 1, .trusted = true};
    static struct peer p;
    uint64_t last;

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, SAY_OPEN);
    peer_hear_header(&p, 0);
    last = peer_hear(&p, WEIR__AMQP_OPEN).open.channel_max.u;
    assert_true(last >= 1024 + 2); /* a hub's partitions, $cbs and $management, each its own */
    for (uint64_t i = 0; i <= last; i++) {
        peer_say(&p, (uint16_t)i, SAY_BEGIN);
        peer_hear(&p, WEIR__AMQP_BEGIN);
        peer_say(&p, (uint16_t)i, attach);
        peer_hear(&p, WEIR__AMQP_ATTACH);
        peer_hear(&p, WEIR__AMQP_FLOW);
        p.heard_len = p.heard_at = 0;
    }
    peer_fini(&p);
}

/* A peer that asks and does not listen is not asked for more. */
static void answers_do_not_pile_up(void **state)
{
    struct manners manners = {0};
    static struct peer p;
    struct weir__bytes echo =
        sample_hex("00000018 02 00 0000 00 53 13 c0 0b 0a 40 43 43 43 40 40 40 40 40 41");
    size_t fed = 0;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    for (; fed < 100000; fed++) {
        size_t room;
        uint8_t *to = weir__amqp_input(p.side.e, &room);
        if (room < echo.len) break;
        memcpy(to, echo.at, echo.len);
        weir__amqp_received(p.side.e, echo.len);
        take_events(&p.side);
    }
    assert_true(fed > 100 && fed < 2000);
    assert_true(weir__amqp_memory(p.side.e) <= 32768);
    assert_false(weir__amqp_closed(p.side.e));
    for (int i = 0; i < 100; i++) {
        peer_listen(&p);
        take_events(&p.side);
    }
    while (fed--) peer_hear(&p, WEIR__AMQP_FLOW);
    peer_hear_nothing(&p);
    peer_fini(&p);
    sample_free(echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_has_its_answer),
        cmocka_unit_test(a_begin_answers_somebody),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(what_was_ended_is_deaf),
        cmocka_unit_test(what_the_peer_ended_is_passed_over),
        cmocka_unit_test(frames_that_cannot_be_read_close),
        cmocka_unit_test(channels_and_handles_have_a_maximum),
        cmocka_unit_test(before_trust_little_is_allowed),
        cmocka_unit_test(what_is_announced_is_kept),
        cmocka_unit_test(answers_do_not_pile_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
