/* edges_test.c - numbers at their edge: the last one that is taken, and the first one that is not; and
 * what is said, field by field. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10, .trusted = true};

static struct weir__amqp_link *last_link(void)
{
    return p.side.told[p.side.count - 1].link;
}

/* ---- limits ---- */

/* As engine.h has them. */
static void limits_have_their_defaults(void **state)
{
    static const struct weir__amqp_limits before = {8192, 8192, 2048, 4096, 64, 8, 256};
    static const struct weir__amqp_limits after = {.frame_bytes = 65536,
                                                   .input_bytes = 262144,
                                                   .output_bytes = 1048576,
                                                   .partial_bytes = 16777216,
                                                   .sessions = 2048,
                                                   .links = 4096,
                                                   .unsettled = 8192};

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    assert_memory_equal(&p.side.e->limits, &before, sizeof before);
    weir__amqp_trust(p.side.e);
    assert_memory_equal(&p.side.e->limits, &after, sizeof after);
    peer_fini(&p);
}

/* Where all that there was room for was used, there is twice as much the next time, up to the limit. */
static void the_input_grows_when_it_is_full(void **state)
{
    size_t room, want = 4096;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_tick(p.side.e, 0); /* gives back what there was */
    for (int i = 0; i < 9; i++) {
        uint8_t *to = weir__amqp_input(p.side.e, &room);
        assert_int_equal(room, want);
        for (size_t at = 0; at < room; at += 8)
            weir__amqp_frame_head(to + at, 8, WEIR__AMQP_FRAME_AMQP, 0);
        weir__amqp_received(p.side.e, i == 3 ? room - 8 : room);
        take_events(&p.side);
        if (i != 3 && want < 262144) want *= 2;
    }
    assert_int_equal(want, 262144);
    assert_false(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

/* The peer's last channel can be used; when it is taken, the lowest that is free. */
static void the_peers_last_channel_is_used(void **state)
{
    static const struct {
        uint16_t theirs, ours;
    } rows[] = {{2, 2}, {5, 0}, {2000, 1}};

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 40 60 0002");
    peer_hear_header(&p, 0);
    peer_hear(&p, WEIR__AMQP_OPEN);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        peer_say(&p, rows[i].theirs, SAY_BEGIN);
        assert_int_equal(weir__load_be16(p.heard + p.heard_at + 6), rows[i].ours);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_BEGIN).begin.remote_channel.u, rows[i].theirs);
    }
    peer_say(&p, 3, SAY_BEGIN);
    assert_string_equal(p.side.told[p.side.count - 1].text,
                        "no channel or no memory for a session");
    peer_fini(&p);
}

/* Numbers of the peer's may be behind ours by half of all that there are. */
static void numbers_wrap_at_half(void **state)
{
    static const struct {
        const char *said, *text;
    } rows[] = {
        {"13: 70 80000001 70 00000800 43 43", NULL},
        {"13: 70 80000000 70 00000800 43 43", "flow.next-incoming-id 2147483648, the next is 0"},
        {"13: 43 70 00000800 43 43 52 01 70 80000001 52 09", NULL},
        {"13: 43 70 00000800 43 43 52 01 70 80000000 52 09",
         "flow.delivery-count 2147483648, ours is 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, 0, SAY_RECEIVER);
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        peer_say(&p, 0, rows[i].said);
        if (!rows[i].text) {
            expect(&p.side, WEIR__AMQP_EVENT_FLOW);
        } else {
            assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->text, rows[i].text);
            if (i == 1) expect(&p.side, WEIR__AMQP_EVENT_END);
        }
        expect_nothing(&p.side);
        peer_fini(&p);
    }
}

/* ---- what is remembered, and what is passed over ---- */

/* A session that began before trust remembers more after it, and what it knew. */
static void deliveries_are_known_in_a_larger_ring(void **state)
{
    static const char second[] = "12: a1 01 't' 52 02 42 40 40 00 53 28 45 00 53 29 45 40 40 43";
    const struct told *t;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){.credit = 10});
    peer_say(&p, 0, SAY_SENDER);
    for (unsigned id = 254; id < 259; id++) { /* beyond the end of the smaller ring */
        char text[64];
        snprintf(text, sizeof text, "14: 43 70 %08x a0 01 'x' 43 42 42 | 'y'", id);
        peer_say(&p, 0, text);
    }
    weir__amqp_trust(p.side.e);
    peer_say(&p, 0, second);
    p.side.taken = p.side.count;
    peer_say(&p, 0, "15: 42 70 000000ff 70 00000101 41"); /* it settles three of them */
    t = expect(&p.side, WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(t->settle.first, 255);
    assert_int_equal(t->settle.last, 257);
    assert_int_equal(weir__amqp_link_name(t->link).at[0], 's');
    peer_say(&p, 0, "15: 42 43 70 00001000 41"); /* and the others */
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.first, 254);
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.last, 258);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A receiver that has neither settled nor said what it thinks. */
static void no_outcome_is_no_event(void **state)
{
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    l = last_link();
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    assert_int_equal(weir__amqp_send(l, weir__bytes_of("x", 1), 0, false, NULL), 0);
    peer_listen(&p);
    p.side.taken = p.side.count;
    p.heard_at = p.heard_len;
    peer_say(&p, 0, "15: 41 43 43 42");
    expect_nothing(&p.side);
    peer_hear_nothing(&p);
    peer_say(&p, 0, "15: 41 43 43 41");
    assert_int_equal(expect(&p.side, WEIR__AMQP_EVENT_SETTLE)->settle.outcome, WEIR__AMQP_KINDS);
    peer_fini(&p);
}

/* ---- what is said ---- */

/* Each field with a value of its own. */
static void an_attach_says_its_terms(void **state)
{
    static const uint8_t map[] = {0xa3, 1, 'k', 0x41};
    struct weir__amqp_value properties = weir__amqp_bytes(WEIR__AMQP_MAP, map, sizeof map);
    struct weir__amqp_terms t = {.name = weir__bytes_of("name", 4),
                                 .role = WEIR__AMQP_RECEIVER,
                                 .snd_settle_mode = WEIR__AMQP_SEND_SETTLED,
                                 .rcv_settle_mode = WEIR__AMQP_RECEIVE_SECOND,
                                 .max_message_size = 77,
                                 .offered_capabilities =
                                     weir__amqp_bytes(WEIR__AMQP_SYMBOL, "offer", 5),
                                 .desired_capabilities =
                                     weir__amqp_bytes(WEIR__AMQP_SYMBOL, "desire", 6)};
    struct weir__amqp_composite c;
    struct weir__amqp_link *l;

    (void)state;
    properties.count = 2;
    t.properties = properties;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    assert_int_equal(weir__amqp_attach(p.side.told[1].session, &t, &l, NULL), 0);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_ATTACH);
    assert_bytes(c.attach.name.bytes, t.name);
    assert_true(c.attach.role.u);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_SETTLED);
    assert_int_equal(c.attach.rcv_settle_mode.u, WEIR__AMQP_RECEIVE_SECOND);
    assert_int_equal(c.attach.max_message_size.u, 77);
    assert_bytes(c.attach.offered_capabilities.bytes, weir__bytes_of("offer", 5));
    assert_bytes(c.attach.desired_capabilities.bytes, weir__bytes_of("desire", 6));
    assert_value(&c.attach.properties, &properties);
    weir__amqp_detach(l, NULL);
    peer_listen(&p);
    assert_true(peer_hear(&p, WEIR__AMQP_DETACH).detach.closed.u);
    peer_fini(&p);
}

static void an_open_says_its_properties(void **state)
{
    static const uint8_t map[] = {0xa3, 1, 'k', 0x41};
    struct weir__amqp_options o = {.client = true,
                                   .properties = weir__amqp_bytes(WEIR__AMQP_MAP, map, 4)};
    struct weir__amqp_composite c;

    (void)state;
    o.properties.count = 2;
    peer_init(&p, &o, &manners);
    peer_listen(&p);
    peer_hear_header(&p, 0);
    c = peer_hear(&p, WEIR__AMQP_OPEN);
    assert_value(&c.open.properties, &o.properties);
    peer_fini(&p);
}

static bool deny(void *user, size_t more)
{
    (void)user;
    (void)more;
    return false;
}

/* The frames of a message that waited for the window have what its first one had; and where there is no
 * room for all of them they come little by little. */
static void a_rest_comes_whole(void **state)
{
    static const uint8_t large[100000];
    struct weir__amqp_composite c;
    struct weir__amqp_link *l;
    unsigned frames = 0;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){.reserve = deny}, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    l = last_link();
    peer_say(&p, 0, "13: 43 52 01 43 43 52 01 43 52 09");
    p.heard_at = p.heard_len;
    p.side.e->peer_frame = 512;
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(large, sizeof large), 7, true, NULL), 0);
    peer_listen(&p);
    weir__buf_fini(&p.side.e->out);
    peer_say(&p, 0, "13: 52 01 70 00000800 43 43");
    while (weir__amqp_output(p.side.e).len) peer_listen(&p);
    do {
        c = peer_hear(&p, WEIR__AMQP_TRANSFER);
        assert_int_equal(c.transfer.message_format.u, 7);
        assert_int_equal(c.transfer.delivery_id.u, 0);
        assert_true(c.transfer.settled.u);
        frames++;
    } while (c.transfer.more.u);
    assert_int_equal(frames, (sizeof large + 469) / (512 - WEIR__AMQP_TRANSFER_HEAD));
    peer_hear_nothing(&p);
    assert_int_equal(p.side.e->partial_bytes, 0);
    peer_fini(&p);
}

/* ---- windows ---- */

static void say_unsettled(unsigned first, unsigned count)
{
    for (unsigned id = first; id < first + count; id++) {
        char text[64];
        snprintf(text, sizeof text, "14: 43 70 %08x a0 01 'x' 43 42 | 'y'", id);
        peer_say(&p, 0, text);
    }
}

/* A window that was used by more than half opens when there is room for more than half. */
static void a_window_opens_for_more_than_half(void **state)
{
    struct weir__amqp_options o = {.after.unsettled = 64};
    struct weir__amqp_link *l;

    (void)state;
    for (int theirs = 0; theirs < 2; theirs++) { /* by our outcomes, or because they settle */
        peer_open(&p, &o, &(struct manners){.credit = 200, .trusted = true});
        peer_say(&p, 0, SAY_SENDER);
        l = last_link();
        say_unsettled(0, 40);
        p.heard_at = p.heard_len;
        if (theirs)
            peer_say(&p, 0, "15: 42 43 52 07 41");
        else
            weir__amqp_settle(l, 0, 7, WEIR__AMQP_ACCEPTED, NULL);
        peer_listen(&p);
        if (!theirs) peer_hear(&p, WEIR__AMQP_DISPOSITION);
        peer_hear_nothing(&p); /* there are 32 */
        if (theirs)
            peer_say(&p, 0, "15: 42 52 08 52 08 41");
        else
            weir__amqp_settle(l, 8, 8, WEIR__AMQP_ACCEPTED, NULL);
        peer_listen(&p);
        if (!theirs) peer_hear(&p, WEIR__AMQP_DISPOSITION);
        assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.incoming_window.u, 33);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

/* It has its size before there is a link. */
static void a_window_is_known_from_the_beginning(void **state)
{
    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, "13: 43 70 00000800 43 43 40 40 40 40 40 41");
    assert_int_equal(peer_hear(&p, WEIR__AMQP_FLOW).flow.incoming_window.u, 8192);
    peer_fini(&p);
}

static void unsettled_deliveries_have_a_limit(void **state)
{
    struct weir__amqp_options o = {.after.unsettled = 64};

    (void)state;
    peer_open(&p, &o, &(struct manners){.credit = 200, .trusted = true});
    peer_say(&p, 0, SAY_SENDER);
    say_unsettled(0, 64);
    p.side.told[1].session->incoming_window = 1; /* which was not given */
    p.side.taken = p.side.count;
    say_unsettled(64, 1);
    assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->text, "more than 64 unsettled");
    peer_fini(&p);
}

/* Frames are read while the answers have their place, to the byte. */
static void frames_are_read_up_to_a_limit(void **state)
{
    static const uint8_t large[6000];
    struct weir__amqp_link *l;

    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &manners);
        peer_say(&p, 0, SAY_RECEIVER);
        l = last_link();
        peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
        assert_int_equal(weir__amqp_send(l, weir__bytes_of(large, 6000), 0, true, NULL), 0);
        p.side.e->limits.output_bytes =
            6000 + WEIR__AMQP_TRANSFER_HEAD - WEIR__AMQP_ANSWER_BYTES / 2 - more;
        p.side.taken = p.side.count;
        {
            struct weir__bytes body = peer_body(SAY_BEGIN);
            size_t room;
            uint8_t *to = weir__amqp_input(p.side.e, &room);
            weir__amqp_frame_head(to, (uint32_t)(8 + body.len), WEIR__AMQP_FRAME_AMQP, 1);
            memcpy(to + 8, body.at, body.len);
            weir__amqp_received(p.side.e, 8 + body.len);
            sample_free(body);
        }
        take_events(&p.side);
        assert_int_equal(p.side.count - p.side.taken, 1 - more);
        peer_listen(&p);
        take_events(&p.side);
        expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
        peer_fini(&p);
    }
}

/* ---- messages that are too large ---- */

/* In the usual form or another, in one frame or several: too large, or not. */
static void sizes_are_told_in_all_forms(void **state)
{
    static const struct {
        const char *said[2];
        size_t size;
    } rows[] = {
        {{"14: 43 43 a0 01 'x' 43 42 42 | '1234'", NULL}, 4},
        {{"14: 43 43 a0 01 'x' 43 42 | '1234'", NULL}, 4},
        {{"14: 43 43 a0 01 'x' 43 42 42 | '12345'", NULL}, 5},
        {{"14: 43 43 a0 01 'x' 43 42 | '12345'", NULL}, 5},
        {{"14: 43 43 a0 01 'x' 43 42 41 | '12'", "14: 43 40 40 40 42 42 | '34'"}, 4},
        {{"14: 43 43 a0 01 'x' 43 42 41 | '12'", "14: 43 40 40 40 42 42 | '345'"}, 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct told *t;
        peer_open(&p, &(struct weir__amqp_options){0},
                  &(struct manners){.credit = 10, .max_message = 4, .trusted = true});
        peer_say(&p, 0, SAY_SENDER);
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        for (int part = 0; part < 2 && rows[i].said[part]; part++)
            peer_say(&p, 0, rows[i].said[part]);
        t = expect(&p.side, WEIR__AMQP_EVENT_TRANSFER);
        assert_int_equal(t->delivery.too_large, rows[i].size == 5);
        assert_int_equal(t->delivery.size, rows[i].size);
        assert_int_equal(t->delivery.payload.len, rows[i].size == 5 ? 0 : 4);
        if (rows[i].size == 5) assert_int_equal(p.side.e->partial_bytes, 0);
        peer_fini(&p);
    }
}

/* What waits to be sent counts, and the first of it may be more than the limit. */
static void no_room_beside_what_waits(void **state)
{
    static const uint8_t large[100000];
    struct weir__amqp_options o = {.after.partial_bytes = 20000};
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &o, &manners);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, SAY_RECEIVER);
    l = last_link();
    peer_say(&p, 0, "13: 43 52 01 43 43 52 01 43 52 09");
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(large, sizeof large), 0, true, NULL), 0);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one'");
    assert_string_equal(p.side.told[p.side.count - 1].text,
                        "more than 20000 bytes of messages in several frames");
    peer_fini(&p);
}

/* ---- links ---- */

static void leave_attach(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    (void)ev;
}

/* Only a sender that was answered sends, with credit, and on a connection that lives. */
static void who_may_send(void **state)
{
    struct weir__amqp_link *from, *to, *new;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_SENDER);
    from = last_link();
    assert_int_equal(weir__amqp_link_credit(from), 10);
    assert_int_equal(weir__amqp_sendable(from), 0);
    peer_say(&p, 0, SAY_RECEIVER);
    to = last_link();
    assert_true(weir__amqp_waits_for_peer(to));
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    assert_false(weir__amqp_waits_for_peer(to));
    assert_int_equal(weir__amqp_sendable(to), 9);
    p.side.on = leave_attach;
    peer_say(&p, 0, "12: a1 01 'n' 52 02 41 40 40 00 53 28 45 00 53 29 45");
    new = last_link();
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 02 43 52 09");
    assert_int_equal(weir__amqp_link_credit(new), 9);
    assert_int_equal(weir__amqp_sendable(new), 0);
    weir__amqp_close(p.side.e, NULL);
    assert_int_equal(weir__amqp_sendable(to), 0);
    peer_fini(&p);
}

/* A link that has gone leaves its handles, and nothing of it is counted. */
static void a_link_leaves_its_place(void **state)
{
    static const char *const links[] = {SAY_SENDER, SAY_RECEIVER};
    const struct weir__amqp_session *s;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    s = p.side.told[1].session;
    for (int i = 0; i < 6; i++) {
        peer_say(&p, 0, links[i % 2]);
        assert_int_equal(last_link()->handle, i % 2);
        assert_true(s->ours.bytes > s->ours.page_count * sizeof *s->ours.pages);
        peer_say(&p, 0, i % 2 ? "16: 52 01 41" : "16: 43 41");
        assert_int_equal(p.side.told[p.side.count - 1].type, WEIR__AMQP_EVENT_DETACH);
        assert_int_equal(s->ours.used + s->theirs.used, 0);
        assert_int_equal(s->ours.bytes, s->ours.page_count * sizeof *s->ours.pages);
        assert_int_equal(s->rests + p.side.e->rests + p.side.e->partials, 0);
        assert_int_equal(p.side.e->link_count, 0);
    }
    peer_fini(&p);
}

/* ---- the output ---- */

/* A link to send on, and so many bytes of output, of which some were sent. */
static struct weir__amqp_link *open_output(size_t bytes, size_t sent)
{
    static const uint8_t zeros[8192];
    struct weir__amqp_link *l;

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    l = last_link();
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    weir__buf_fini(&p.side.e->out);
    bytes -= WEIR__AMQP_TRANSFER_HEAD;
    assert_int_equal(weir__amqp_send(l, weir__bytes_of(zeros, bytes), 0, true, NULL), 0);
    weir__amqp_sent(p.side.e, sent);
    return l;
}

/* What was sent makes way when there is no other place, or when that is less than what was sent. */
static void what_was_sent_makes_way(void **state)
{
    static const struct {
        size_t sent, max, cap;
    } rows[] = {
        {600, 1024, 1024},                      /* at the maximum: it must */
        {400, 1024, 1024},  {600, 65536, 1024}, /* more was sent than waits: it is worth it */
        {500, 65536, 1024}, {499, 65536, 2048}, /* less: the buffer grows instead */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *l = open_output(1000, rows[i].sent);
        assert_int_equal(p.side.e->out.cap, 1024);
        p.side.e->out.max = rows[i].max;
        assert_int_equal(weir__amqp_send(l, weir__bytes_of("a", 1), 0, true, NULL), 0);
        assert_int_equal(p.side.e->out.cap, rows[i].cap);
        assert_int_equal(weir__amqp_output(p.side.e).len,
                         1000 - rows[i].sent + WEIR__AMQP_TRANSFER_HEAD + 1);
        peer_fini(&p);
    }
}

/* ---- SASL ---- */

/* What the client says first, with a name and a password of so many bytes together. */
static struct weir__bytes first_response(size_t bytes)
{
    static char user[1024], password[1024];
    struct weir__amqp_options o = {.client = true,
                                   .mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN),
                                   .user = user,
                                   .password = password};

    memset(user, 'u', 500);
    memset(password, 'p', bytes - 500);
    password[bytes - 500] = '\0';
    peer_init(&p, &o, &manners);
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0, "40: a3 05 'PLAIN'");
    peer_hear_header(&p, 3);
    return peer_hear(&p, WEIR__AMQP_SASL_INIT).sasl_init.initial_response.bytes;
}

/* A longer one is not said, and the server lets nobody in. */
static void a_name_and_a_password_have_1022_bytes(void **state)
{
    struct weir__bytes said = first_response(1022);

    (void)state;
    assert_int_equal(said.len, 1024);
    assert_int_equal(said.at[0], 0);
    assert_int_equal(said.at[1], 'u');
    assert_int_equal(said.at[501], 0);
    assert_int_equal(said.at[502], 'p');
    assert_int_equal(said.at[1023], 'p');
    peer_fini(&p);
    assert_int_equal(first_response(1023).len, 500);
    peer_fini(&p);
}

/* A password may be empty, but the end of the name must be there. */
static void an_empty_password_is_one(void **state)
{
    struct weir__amqp_options o = {.mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN)};

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        peer_init(&p, &o, &manners);
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0,
                       whole ? "41: a3 05 'PLAIN' a0 03 00 'u' 00"
                             : "41: a3 05 'PLAIN' a0 02 00 'u'");
        expect(&p.side, whole ? WEIR__AMQP_EVENT_SASL : WEIR__AMQP_EVENT_CLOSE);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_have_their_defaults),
        cmocka_unit_test(the_input_grows_when_it_is_full),
        cmocka_unit_test(the_peers_last_channel_is_used),
        cmocka_unit_test(numbers_wrap_at_half),
        cmocka_unit_test(deliveries_are_known_in_a_larger_ring),
        cmocka_unit_test(no_outcome_is_no_event),
        cmocka_unit_test(an_attach_says_its_terms),
        cmocka_unit_test(an_open_says_its_properties),
        cmocka_unit_test(a_rest_comes_whole),
        cmocka_unit_test(a_window_opens_for_more_than_half),
        cmocka_unit_test(a_window_is_known_from_the_beginning),
        cmocka_unit_test(unsettled_deliveries_have_a_limit),
        cmocka_unit_test(frames_are_read_up_to_a_limit),
        cmocka_unit_test(sizes_are_told_in_all_forms),
        cmocka_unit_test(no_room_beside_what_waits),
        cmocka_unit_test(who_may_send),
        cmocka_unit_test(a_link_leaves_its_place),
        cmocka_unit_test(what_was_sent_makes_way),
        cmocka_unit_test(a_name_and_a_password_have_1022_bytes),
        cmocka_unit_test(an_empty_password_is_one),
    };

    return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
