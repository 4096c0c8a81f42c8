/* What owners and peers may not have too much of. */
#include "peer.h"

/* What an owner may not ask for; the peer has no part in it. */
static void impossible_options_are_refused(void **state)
{
    static const char ring[] = "unsettled must be a power of two from 64 to 32768",
                      number[] = "channel-max or handle-max above 65534";
    static const struct {
        struct weir__amqp_options o;
        const char *text; /* NULL: it is taken */
    } rows[] = {
        {{.after.unsettled = 32}, ring},
        {{.after.unsettled = 63}, ring},
        {{.after.unsettled = 100}, ring},
        {{.before.unsettled = 65536}, ring},
        {{.before.unsettled = 32}, ring},
        {{.before.unsettled = 64, .after.unsettled = 32768}, NULL},
        {{.channel_max = 65535}, number},
        {{.handle_max = 65535}, number},
        {{.channel_max = 65534, .handle_max = 65534}, NULL},
        {{.client = true, .mechanisms = 3}, "a client has one mechanism"},
        {{.client = true, .mechanisms = 12}, "a client has one mechanism"},
        {{.client = true, .mechanisms = 1}, NULL},
        {{.client = true, .mechanisms = 2}, NULL},
        {{.client = true, .mechanisms = 4}, NULL},
        {{.client = true, .mechanisms = 8}, NULL},
        {{.mechanisms = 3}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp *e = NULL;
        struct weir_error err = {0};
        assert_int_equal(weir__amqp_new(&e, &rows[i].o, &err), rows[i].text ? WEIR_EINVAL : 0);
        assert_int_equal(e == NULL, rows[i].text != NULL);
        assert_string_equal(err.text, rows[i].text ? rows[i].text : "");
        weir__amqp_free(e);
    }
}

/* What an engine says of itself when its owner asked for nothing. */
static void what_is_announced_by_itself(void **state)
{
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    for (int trusted = 0; trusted < 2; trusted++) {
        peer_init(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
        if (trusted) weir__amqp_trust(p.side.e);
        peer_say_raw(&p, "'AMQP' 00 01 00 00");
        peer_say(&p, 0, SAY_OPEN);
        peer_say(&p, 7, SAY_BEGIN);
        peer_hear_header(&p, 0);
        c = peer_hear(&p, WEIR__AMQP_OPEN);
        assert_bytes(c.open.container_id.bytes, weir__bytes_of("weir", 4));
        assert_int_equal(c.open.hostname.type, WEIR__AMQP_NULL);
        assert_int_equal(c.open.max_frame_size.u, 65536);
        assert_int_equal(c.open.channel_max.u, 2047);
        assert_int_equal(c.open.idle_time_out.u, 30000);
        c = peer_hear(&p, WEIR__AMQP_BEGIN);
        assert_int_equal(c.begin.remote_channel.u, 7);
        assert_int_equal(c.begin.next_outgoing_id.u, 0);
        assert_int_equal(c.begin.incoming_window.u, trusted ? 8192 : 256);
        assert_int_equal(c.begin.outgoing_window.u, UINT32_MAX);
        assert_int_equal(c.begin.handle_max.u, 255);
        peer_fini(&p);
    }
}

/* Opens, with these fields of the peer's behind its name, and begins a session with these. */
static void open_with(struct peer *p, const struct weir__amqp_options *o, const char *open,
                      const char *begin)
{
    static struct manners manners = {.trusted = true};

    peer_init(p, o, &manners);
    weir__amqp_trust(p->side.e);
    peer_say_raw(p, "'AMQP' 00 01 00 00");
    peer_say(p, 0, open);
    peer_hear_header(p, 0);
    peer_hear(p, WEIR__AMQP_OPEN);
    peer_say(p, 5, begin);
    peer_hear(p, WEIR__AMQP_BEGIN);
    p->side.taken = p->side.count;
}

/* The channel of the frame that is heard next. */
static unsigned next_channel(const struct peer *p)
{
    return weir__load_be16(p->heard + p->heard_at + 6);
}

#define ATTACH(name, handle) "12: a1 01 '" name "' 52 " handle " 42 40 40 00 53 28 45 00 53 29 45"

/* Numbers of ours beyond the peer's last are not used: the lowest free ones are, while there are any.
 * Here the peer's last channel and its last handle are 1. */
static void numbers_of_the_peer_have_a_maximum(void **state)
{
    struct weir__amqp_terms t = {.name = weir__bytes_of("n", 1), .role = WEIR__AMQP_RECEIVER};
    struct weir__amqp_session *s;
    struct weir__amqp_link *l;
    struct weir__amqp_composite c;
    struct weir_error err;
    static struct peer p;

    (void)state;
    open_with(&p, &(struct weir__amqp_options){0}, "10: a1 01 'p' 40 40 60 0001",
              "11: 40 43 70 00000800 70 00000800 52 01");
    peer_say(&p, 5, ATTACH("a", "05"));
    assert_int_equal(next_channel(&p), 0);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_ATTACH).attach.handle.u, 0);
    s = p.side.told[p.side.count - 1].session;
    assert_int_equal(weir__amqp_attach(s, &t, &l, &err), 0);
    peer_listen(&p);
    assert_int_equal(peer_hear(&p, WEIR__AMQP_ATTACH).attach.handle.u, 1);
    assert_int_equal(weir__amqp_attach(s, &t, &l, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "no more than 2 links");
    peer_say(&p, 5, ATTACH("b", "01"));
    c = peer_hear(&p, WEIR__AMQP_END);
    assert_condition(&c.end.error, WEIR__AMQP_COND_LIMIT);
    assert_string_equal(p.side.told[p.side.count - 1].text, "no handle or no memory for a link");
    assert_int_equal(weir__amqp_attach(s, &t, &l, &err), WEIR_ECLOSED);
    assert_string_equal(err.text, "attach");
    assert_int_equal(weir__amqp_begin(p.side.e, &s, &err), 0);
    peer_listen(&p);
    assert_int_equal(next_channel(&p), 1);
    peer_hear(&p, WEIR__AMQP_BEGIN);
    assert_int_equal(weir__amqp_begin(p.side.e, &s, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "no more than 2 sessions");
    peer_say(&p, 6, SAY_BEGIN);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_LIMIT);
    assert_string_equal(p.side.told[p.side.count - 1].text,
                        "no channel or no memory for a session");
    assert_int_equal(weir__amqp_begin(p.side.e, &s, &err), WEIR_ECLOSED);
    assert_string_equal(err.text, "begin");
    peer_fini(&p);
}

/* As many as the owner allows, whoever begins them. */
static void sessions_and_links_have_a_maximum(void **state)
{
    struct weir__amqp_options o = {.after = {.sessions = 2, .links = 2}, .channel_max = 9};
    struct weir__amqp_terms t = {.name = weir__bytes_of("n", 1), .role = WEIR__AMQP_RECEIVER};
    struct weir__amqp_session *s;
    struct weir__amqp_link *l;
    struct weir_error err;
    static struct peer p;

    (void)state;
    open_with(&p, &o, SAY_OPEN, SAY_BEGIN);
    assert_int_equal(weir__amqp_begin(p.side.e, &s, &err), 0);
    assert_int_equal(weir__amqp_attach(s, &t, &l, &err), 0);
    assert_int_equal(weir__amqp_attach(s, &t, &l, &err), 0);
    assert_int_equal(weir__amqp_attach(s, &t, &l, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "no more than 2 links");
    assert_int_equal(weir__amqp_begin(p.side.e, &s, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "no more than 2 sessions");
    peer_say(&p, 5, ATTACH("a", "05"));
    assert_string_equal(p.side.told[p.side.count - 1].text,
                        "more than 2 links, or a name too long");
    peer_say(&p, 6, SAY_BEGIN);
    assert_string_equal(p.side.told[p.side.count - 1].text, "more than 2 sessions");
    peer_fini(&p);
}

/* What has ended leaves its place to the next. */
static void sessions_count_while_they_live(void **state)
{
    struct weir__amqp_options o = {.after.sessions = 2};
    struct manners manners = {.trusted = true};
    static struct peer p;

    (void)state;
    peer_open(&p, &o, &manners);
    for (int i = 0; i < 5; i++) {
        peer_say(&p, 1, SAY_BEGIN);
        peer_hear(&p, WEIR__AMQP_BEGIN);
        peer_say(&p, 1, SAY_END);
        peer_hear(&p, WEIR__AMQP_END);
    }
    peer_hear_nothing(&p);
    assert_false(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

#define SAY_SECOND "12: a1 01 't' 52 01 42 40 40 00 53 28 45 00 53 29 45 40 40 43"

/* A session with two links, that is ended; trust comes between them. */
static void begin_and_end(struct peer *p, bool trusted)
{
    peer_say(p, 1, SAY_BEGIN);
    peer_say(p, 1, SAY_SENDER);
    if (trusted) weir__amqp_trust(p->side.e);
    peer_say(p, 1, SAY_SECOND);
    peer_say(p, 1, SAY_END);
}

/* Also when what it remembers became larger meanwhile. */
static void a_session_leaves_no_memory_behind(void **state)
{
    struct manners manners = {.credit = 10};
    static struct peer p;
    size_t before;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    begin_and_end(&p, false);
    before = weir__amqp_memory(p.side.e);
    begin_and_end(&p, true);
    assert_int_equal(weir__amqp_memory(p.side.e), before);
    begin_and_end(&p, true);
    assert_int_equal(weir__amqp_memory(p.side.e), before);
    peer_fini(&p);
}

/* Before it knows how many the server takes, a client takes its own maximum for it. */
static void a_client_begins_before_it_is_answered(void **state)
{
    struct weir__amqp_options o = {.client = true, .channel_max = 2};
    struct weir__amqp_session *s;
    struct weir__amqp *e;
    struct weir_error err;

    (void)state;
    assert_int_equal(weir__amqp_new(&e, &o, NULL), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(weir__amqp_begin(e, &s, &err), 0);
    assert_int_equal(weir__amqp_begin(e, &s, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "no more than 3 sessions");
    weir__amqp_free(e);
}

/* A sentence is cut to half of the peer's frame, and to a kilobyte. */
static void sentences_have_a_maximum(void **state)
{
    static const struct {
        const char *open;
        size_t most;
    } rows[] = {
        {"10: a1 01 'p' 40 70 00000200", 256},  {"10: a1 01 'p' 40 70 000007fe", 1023},
        {"10: a1 01 'p' 40 70 00000900", 1024}, {"10: a1 01 'p' 40 70 00000c10", 1024},
        {"10: a1 01 'p' 40 70 00010000", 1024},
    };
    struct manners manners = {0};
    struct weir__amqp_error error;
    struct weir__amqp_composite c, inner;
    char text[3000];
    static struct peer p;

    (void)state;
    memset(text, 't', sizeof text);
    text[sizeof text - 1] = '\0';
    error = error_text(WEIR__AMQP_COND_NOT_ALLOWED, text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        peer_init(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say_raw(&p, "'AMQP' 00 01 00 00");
        peer_say(&p, 0, rows[i].open);
        peer_hear_header(&p, 0);
        peer_hear(&p, WEIR__AMQP_OPEN);
        weir__amqp_close(p.side.e, &error);
        peer_listen(&p);
        c = peer_hear(&p, WEIR__AMQP_CLOSE);
        assert_int_equal(weir__amqp_composite_of(&c.close.error,
                                                 WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR), &inner,
                                                 NULL),
                         0);
        assert_int_equal(inner.error.description.bytes.len, rows[i].most);
        peer_fini(&p);
    }
}

/* The peer's last handle is one that may be used, also where it is the first. */
static void the_last_handle_may_be_used(void **state)
{
    struct manners manners = {.trusted = true};
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 1, "11: 40 43 70 00000800 70 00000800 43");
    peer_hear(&p, WEIR__AMQP_BEGIN);
    peer_say(&p, 1, SAY_RECEIVER); /* under its handle 1 */
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_int_equal(c.attach.handle.u, 0);
    peer_say(&p, 1, SAY_SENDER);
    c = peer_hear(&p, WEIR__AMQP_END);
    assert_condition(&c.end.error, WEIR__AMQP_COND_LIMIT);
    peer_fini(&p);
}

static void a_transfer_needs_a_session(void **state)
{
    static const char *const said[] = {
        "14: 43 43 a0 01 'x' 43 42 42 | 'm'",
        "14: 43 43 a0 01 'x' 43 42 42 | 'a message of which there is "
        "more than the head of a frame has room for'"};
    struct manners manners = {.credit = 10};
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, 1, said[i]);
        c = peer_hear(&p, WEIR__AMQP_CLOSE);
        assert_condition(&c.close.error, WEIR__AMQP_COND_NOT_ALLOWED);
        peer_fini(&p);
    }
}

/* Whatever is no performative is told as such, also where there is no session. */
static void bytes_without_meaning_are_told(void **state)
{
    struct manners manners = {0};
    struct weir__amqp_composite c;
    static struct peer p;

    (void)state;
    for (uint16_t channel = 0; channel < 2; channel++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, channel, "40 40 40 40");
        c = peer_hear(&p, WEIR__AMQP_CLOSE);
        assert_condition(&c.close.error, WEIR__AMQP_COND_DECODE);
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
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(what_is_announced_by_itself),
        cmocka_unit_test(numbers_of_the_peer_have_a_maximum),
        cmocka_unit_test(sessions_and_links_have_a_maximum),
        cmocka_unit_test(sessions_count_while_they_live),
        cmocka_unit_test(a_session_leaves_no_memory_behind),
        cmocka_unit_test(a_client_begins_before_it_is_answered),
        cmocka_unit_test(sentences_have_a_maximum),
        cmocka_unit_test(the_last_handle_may_be_used),
        cmocka_unit_test(a_transfer_needs_a_session),
        cmocka_unit_test(bytes_without_meaning_are_told),
        cmocka_unit_test(channels_and_handles_have_a_maximum),
        cmocka_unit_test(before_trust_little_is_allowed),
        cmocka_unit_test(what_is_announced_is_kept),
        cmocka_unit_test(answers_do_not_pile_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
