/* Ends: what is said and told of them, in which order, and what may come behind them. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static struct manners manners = {.credit = 10, .trusted = true};

static void open_usual(void)
{
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
}

/* A link that the peer attaches, which is accepted. */
static struct weir__amqp_link *attached(const char *attach)
{
    peer_say(&p, 0, attach);
    p.heard_at = p.heard_len;
    p.side.taken = p.side.count;
    return p.side.told[p.side.count - 1].link;
}

static void keep_quiet(struct side *s, const struct weir__amqp_event *ev)
{
    (void)s;
    (void)ev;
}

/* ---- reasons ---- */

/* Opens for a peer that takes such frames, closes with a reason of so many bytes, and returns what
 * was said. */
static struct weir__amqp_composite close_with(const char *open, size_t condition, size_t text)
{
    static const char letters[2000] = "a";
    struct weir__amqp_error error = {weir__bytes_of(letters, condition),
                                     weir__bytes_of(text ? letters : NULL, text)};
    struct weir__amqp_composite c, out;

    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, open);
    p.heard_at = p.heard_len;
    weir__amqp_close(p.side.e, &error);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_int_equal(weir__amqp_composite_of(&c.close.error, WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR),
                                             &out, NULL),
                     0);
    peer_hear_nothing(&p);
    peer_fini(&p);
    return out;
}

/* A long reason is cut, and never keeps a close from being said. */
static void reasons_are_cut_to_what_fits(void **state)
{
    static const char small[] = "10: a1 01 'p' 40 70 00000200";
    static const struct {
        const char *open;
        size_t condition, text, condition_said, text_said;
    } rows[] = {
        {SAY_OPEN, 128, 1024, 128, 1024}, {SAY_OPEN, 129, 1025, 128, 1024},
        {SAY_OPEN, 127, 1023, 127, 1023}, {SAY_OPEN, 1500, 1500, 128, 1024},
        {small, 128, 256, 128, 256},      {small, 128, 257, 128, 256},
        {small, 1, 255, 1, 255},          {SAY_OPEN, 1, 0, 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_composite c = close_with(rows[i].open, rows[i].condition, rows[i].text);
        assert_int_equal(c.error.condition.bytes.len, rows[i].condition_said);
        assert_int_equal(c.error.description.bytes.len, rows[i].text_said);
        assert_int_equal(c.error.description.type == WEIR__AMQP_NULL, rows[i].text == 0);
    }
}

/* The longest reason, wherever one is said. */
static void every_end_has_room_for_its_reason(void **state)
{
    static const char letters[1024] = "a";
    struct weir__amqp_error error = {weir__bytes_of(letters, 128), weir__bytes_of(letters, 1024)};
    struct weir__amqp_composite c, inner;
    struct weir__amqp_link *l;

    (void)state;
    open_usual();
    l = attached(SAY_SENDER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
    weir__amqp_settle(l, 0, 0, WEIR__AMQP_REJECTED, &error);
    weir__amqp_detach(l, &error);
    weir__amqp_end(p.side.told[1].session, &error);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_DISPOSITION);
    assert_int_equal(weir__amqp_composite_of(&c.disposition.state, WEIR__AMQP_OUTCOMES, &inner,
                                             NULL),
                     0);
    for (int i = 0; i < 3; i++) {
        const struct weir__amqp_value *v = &inner.rejected.error;
        struct weir__amqp_composite read;
        if (i > 0) c = peer_hear(&p, i == 1 ? WEIR__AMQP_DETACH : WEIR__AMQP_END);
        if (i > 0) v = i == 1 ? &c.detach.error : &c.end.error;
        assert_int_equal(weir__amqp_composite_of(v, WEIR__AMQP_KIND_SET(WEIR__AMQP_ERROR), &read,
                                                 NULL),
                         0);
        assert_int_equal(read.error.condition.bytes.len, 128);
        assert_int_equal(read.error.description.bytes.len, 1024);
    }
    peer_hear_nothing(&p);
    peer_fini(&p);
}

static void assert_told(const struct told *t, const char *condition, const char *text, bool local)
{
    assert_string_equal(t->condition, condition);
    assert_string_equal(t->text, text);
    assert_int_equal(t->local, local);
}

/* The first end counts: what happens to the road behind it changes neither its reason nor whose it
 * was. */
static void the_first_reason_is_told(void **state)
{
    struct weir__amqp_event ev;
    struct weir__bytes close = sample_hex("00000018 02 00 0000 00 53 18 c0 0b 01 "
                                          "00 53 1d c0 05 01 a3 02 'x:'");
    size_t room;

    (void)state;
    open_usual();
    memcpy(weir__amqp_input(p.side.e, &room), close.at, close.len);
    weir__amqp_received(p.side.e, close.len);
    assert_true(weir__amqp_next(p.side.e, &ev) && ev.type == WEIR__AMQP_EVENT_END);
    weir__amqp_lost(p.side.e);
    take_events(&p.side);
    assert_told(expect(&p.side, WEIR__AMQP_EVENT_CLOSE), "x:", "", false);
    expect_nothing(&p.side);
    peer_fini(&p);
    sample_free(close);

    open_usual();
    attached(SAY_SENDER);
    peer_say(&p, 0, "16: 52 09"); /* a mistake: the end of the session is ours */
    assert_true(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->local);
    assert_true(expect(&p.side, WEIR__AMQP_EVENT_END)->local);
    weir__amqp_lost(p.side.e); /* the end of the connection is not */
    weir__amqp_lost(p.side.e);
    take_events(&p.side);
    assert_told(expect(&p.side, WEIR__AMQP_EVENT_CLOSE), WEIR__AMQP_COND_FORCED,
                "the connection was lost", false);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* A session of the peer's that ends while others of ours wait is the peer's doing. */
static void an_answered_end_is_ours(void **state)
{
    (void)state;
    open_usual();
    peer_say(&p, 1, SAY_BEGIN);
    expect(&p.side, WEIR__AMQP_EVENT_BEGIN);
    weir__amqp_end(p.side.told[1].session, NULL);
    peer_say(&p, 0, SAY_END);
    assert_told(expect(&p.side, WEIR__AMQP_EVENT_END), "", "", true);
    peer_say(&p, 1, "17: 00 53 1d c0 0a 02 a3 03 'x:y' a1 02 'no'");
    assert_told(expect(&p.side, WEIR__AMQP_EVENT_END), "x:y", "no", false);
    expect_nothing(&p.side);
    peer_fini(&p);
}

/* ---- order ---- */

/* Outcomes that were gathered are said before the end of their session or connection, whoever ends
 * it. */
static void outcomes_are_said_before_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct weir__amqp_link *l;
        struct weir__amqp_composite c;
        open_usual();
        l = attached(SAY_SENDER);
        peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
        weir__amqp_settle(l, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
        if (i == 0) weir__amqp_end(p.side.told[1].session, NULL);
        if (i == 1) weir__amqp_close(p.side.e, NULL);
        if (i == 2) peer_say(&p, 0, SAY_END);
        peer_listen(&p);
        c = peer_hear(&p, WEIR__AMQP_DISPOSITION);
        assert_int_equal(c.disposition.last.u, 0);
        peer_hear(&p, i == 1 ? WEIR__AMQP_CLOSE : WEIR__AMQP_END);
        peer_hear_nothing(&p);
        peer_fini(&p);
    }
}

/* The road is lost in the middle of a disposition that is told run by run, and with outcomes that were
 * not said: neither goes on when the session is gone. */
static void nothing_goes_on_in_a_session_that_is_gone(void **state)
{
    struct weir__amqp_link *in, *out;
    struct weir__amqp_event ev;
    struct weir__bytes all = sample_hex("00000017 02 00 0000 00 53 15 c0 0a 05 "
                                        "41 43 52 02 41 00 53 24 45");
    size_t room;

    (void)state;
    open_usual();
    in = attached(SAY_SENDER);
    out = attached(SAY_RECEIVER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 42 | 'm'");
    peer_say(&p, 0, "13: 43 52 09 43 43 52 01 43 52 09");
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__amqp_send(out, weir__bytes_of("m", 1), 0, i == 1, NULL), 0);
    peer_listen(&p);
    memcpy(weir__amqp_input(p.side.e, &room), all.at, all.len);
    weir__amqp_received(p.side.e, all.len);
    assert_true(weir__amqp_next(p.side.e, &ev) && ev.type == WEIR__AMQP_EVENT_SETTLE);
    assert_int_equal(ev.settle.last, 0); /* and 2 is to come */
    weir__amqp_settle(in, 0, 0, WEIR__AMQP_ACCEPTED, NULL);
    weir__amqp_lost(p.side.e);
    for (int i = 0; i < 4; i++) {
        assert_true(weir__amqp_next(p.side.e, &ev));
        assert_int_equal(ev.type, i < 2    ? WEIR__AMQP_EVENT_DETACH
                                  : i == 2 ? WEIR__AMQP_EVENT_END
                                           : WEIR__AMQP_EVENT_CLOSE);
    }
    assert_null(p.side.e->run_session);
    assert_null(p.side.e->gathered_session);
    assert_false(weir__amqp_next(p.side.e, &ev));
    assert_int_equal(weir__amqp_output(p.side.e).len, 0);
    peer_fini(&p);
    sample_free(all);
}

/* A peer that was silent is told of the end of what it knows of, once: not of a session that it has
 * not answered, nor of links and sessions that have ended. */
static void only_what_is_there_ends(void **state)
{
    static const char third[] = "12: a1 01 't' 52 02 42 40 40 00 53 28 45 00 53 29 45 40 40 43";
    struct weir__amqp_session *ours;
    struct weir__amqp_composite c;

    (void)state;
    open_usual();
    weir__amqp_tick(p.side.e, 1000);
    weir__amqp_detach(attached(third), NULL);
    attached(SAY_RECEIVER);
    p.side.on = keep_quiet;
    attached(SAY_SENDER); /* which the owner has not answered */
    peer_say(&p, 1, SAY_BEGIN);
    weir__amqp_end(p.side.told[p.side.count - 1].session, NULL);
    assert_int_equal(weir__amqp_begin(p.side.e, &ours, NULL), 0);
    peer_listen(&p);
    p.heard_at = p.heard_len;
    weir__amqp_tick(p.side.e, 2000);
    weir__amqp_tick(p.side.e, 2000 + 45000);
    take_events(&p.side);
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_DETACH);
    assert_int_equal(c.detach.handle.u, 1);
    peer_hear(&p, WEIR__AMQP_END);
    peer_hear(&p, WEIR__AMQP_CLOSE);
    peer_hear_nothing(&p);
    peer_fini(&p);
}

/* What the peer gave as a reason is told, and where it gave none there is none. */
static struct {
    int events, reasons;
} reasons_told;

static void note_reason(struct side *s, const struct weir__amqp_event *ev)
{
    be_kind(s, ev);
    if (ev->type != WEIR__AMQP_EVENT_DETACH && ev->type != WEIR__AMQP_EVENT_END &&
        ev->type != WEIR__AMQP_EVENT_CLOSE)
        return;
    reasons_told.events++;
    if (!ev->error.condition.at) return;
    reasons_told.reasons++;
    assert_bytes(ev->error.condition, weir__bytes_of("a:b", 3));
    assert_bytes(ev->error.description, weir__bytes_of("why", 3));
}

static void the_peers_reason_is_told(void **state)
{
    static const char *const said[][2] = {
        {"16: 43 41", "16: 43 41 00 53 1d c0 0b 02 a3 03 'a:b' a1 03 'why'"},
        {"17: 40", "17: 00 53 1d c0 0b 02 a3 03 'a:b' a1 03 'why'"},
        {"18: 40", "18: 00 53 1d c0 0b 02 a3 03 'a:b' a1 03 'why'"},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (int given = 0; given < 2; given++) {
            memset(&reasons_told, 0, sizeof reasons_told);
            peer_open(&p, &(struct weir__amqp_options){0}, &manners);
            peer_say(&p, 0, SAY_SENDER);
            p.side.on = note_reason;
            peer_say(&p, 0, said[i][given]);
            assert_int_equal(reasons_told.events, i + 1);
            assert_int_equal(reasons_told.reasons, given ? i + 1 : 0);
            peer_fini(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_cut_to_what_fits),
        cmocka_unit_test(every_end_has_room_for_its_reason),
        cmocka_unit_test(the_first_reason_is_told),
        cmocka_unit_test(an_answered_end_is_ours),
        cmocka_unit_test(outcomes_are_said_before_the_end),
        cmocka_unit_test(nothing_goes_on_in_a_session_that_is_gone),
        cmocka_unit_test(only_what_is_there_ends),
        cmocka_unit_test(the_peers_reason_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
