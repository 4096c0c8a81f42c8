/* What servers say to a client before it is let in, and how they leave it. */
#include "peer.h"

#define SASL(hex) peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0, hex)
#define PLAIN_OFFER "40: a3 05 'PLAIN'"

static struct peer p;
static struct manners manners;

static void come(void)
{
    struct weir__amqp_options o = {.client = true,
                                   .mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                   .user = "u",
                                   .password = "pw",
                                   .hostname = "here"};

    peer_init(&p, &o, &manners);
    peer_listen(&p);
    peer_hear_header(&p, 3);
}

/* The one thing that the owner is told. */
static void expect_close(const char *condition, const char *text)
{
    struct told *told = expect(&p.side, WEIR__AMQP_EVENT_CLOSE);

    assert_string_equal(told->condition, condition);
    assert_string_equal(told->text, text);
    assert_true(told->local);
    expect_nothing(&p.side);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

static void it_says_who_it_is_and_where_to(void **state)
{
    struct weir__amqp_composite c;

    (void)state;
    come();
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    SASL(PLAIN_OFFER);
    c = peer_hear(&p, WEIR__AMQP_SASL_INIT);
    assert_bytes(c.sasl_init.initial_response.bytes, weir__bytes_of("\0u\0pw", 5));
    assert_bytes(c.sasl_init.hostname.bytes, weir__bytes_of("here", 4));
    peer_hear_nothing(&p); /* nothing else before it is let in */
    SASL("44: 50 00");
    peer_hear_header(&p, 0);
    assert_bytes(peer_hear(&p, WEIR__AMQP_OPEN).open.hostname.bytes, weir__bytes_of("here", 4));
    expect_nothing(&p.side);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, SAY_OPEN);
    expect(&p.side, WEIR__AMQP_EVENT_OPEN);
    peer_fini(&p);
}

static void every_code_but_0_refuses(void **state)
{
    char said[16], text[64];

    (void)state;
    for (int code = 1; code <= 4; code++) {
        come();
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        SASL(PLAIN_OFFER);
        peer_hear(&p, WEIR__AMQP_SASL_INIT);
        snprintf(said, sizeof said, "44: 50 %02x", code);
        SASL(said);
        snprintf(text, sizeof text, "not let in by SASL (code %d)", code);
        expect_close(WEIR__AMQP_COND_UNAUTHORIZED, text);
    }
}

static void frames_of_sasl_come_in_order(void **state)
{
    static const struct {
        const char *condition, *text, *said;
    } rows[] = {
        {WEIR__AMQP_COND_INVALID_FIELD, "sasl-outcome does not belong here", "44: 50 00"},
        {WEIR__AMQP_COND_INVALID_FIELD, "sasl-init does not belong here", "41: a3 05 'PLAIN'"},
        {WEIR__AMQP_COND_INVALID_FIELD, "open does not belong here", SAY_OPEN},
        {WEIR__AMQP_COND_INVALID_FIELD, "sasl-mechanisms.sasl-server-mechanisms is missing", "40:"},
        {WEIR__AMQP_COND_DECODE, "a composite must begin with 00", "ff"},
        {WEIR__AMQP_COND_UNAUTHORIZED, "the server does not offer PLAIN", "40: a3 09 'ANONYMOUS'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        come();
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        SASL(rows[i].said);
        expect_close(rows[i].condition, rows[i].text);
    }
    come();
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    SASL(PLAIN_OFFER);
    peer_hear(&p, WEIR__AMQP_SASL_INIT);
    SASL(PLAIN_OFFER); /* once more */
    expect_close(WEIR__AMQP_COND_INVALID_FIELD, "sasl-mechanisms does not belong here");
}

/* A server that leaves SASL out, and one that comes back to it, are not what was asked for. */
static void headers_are_those_that_were_asked_for(void **state)
{
    (void)state;
    come();
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    expect(&p.side, WEIR__AMQP_EVENT_PROTOCOL);
    expect_close(WEIR__AMQP_COND_FRAMING, "not the header of AMQP 1.0");
    come();
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    SASL(PLAIN_OFFER);
    peer_hear(&p, WEIR__AMQP_SASL_INIT);
    SASL("44: 50 00");
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    expect(&p.side, WEIR__AMQP_EVENT_PROTOCOL);
    expect_close(WEIR__AMQP_COND_FRAMING, "not the header of AMQP 1.0");
}

/* An owner that gives up before the server has opened: nothing could be understood there. */
static void it_may_give_up_early(void **state)
{
    (void)state;
    come();
    weir__amqp_close(p.side.e, NULL);
    take_events(&p.side);
    peer_listen(&p);
    expect_close("", "");
}

static void an_open_is_on_channel_0(void **state)
{
    (void)state;
    peer_init(&p, &(struct weir__amqp_options){.client = true}, &manners);
    peer_listen(&p);
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 1, SAY_OPEN);
    peer_hear(&p, WEIR__AMQP_CLOSE);
    expect_close(WEIR__AMQP_COND_FRAMING, "an open on channel 1, not on 0");
}

/* The reason of an end may be no error at all; it is told as one. */
static void an_unreadable_reason_is_told(void **state)
{
    static const char *const said[] = {"17: 00 53 28 45", "17: 00 53 1d 45"};
    struct told *told;

    (void)state;
    for (int i = 0; i < 2; i++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, 0, said[i]);
        told = expect(&p.side, WEIR__AMQP_EVENT_END);
        assert_string_equal(told->condition, WEIR__AMQP_COND_DECODE);
        assert_string_equal(told->text, "an error that could not be read");
        assert_false(told->local);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_who_it_is_and_where_to),
        cmocka_unit_test(every_code_but_0_refuses),
        cmocka_unit_test(frames_of_sasl_come_in_order),
        cmocka_unit_test(headers_are_those_that_were_asked_for),
        cmocka_unit_test(it_may_give_up_early),
        cmocka_unit_test(an_open_is_on_channel_0),
        cmocka_unit_test(an_unreadable_reason_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
