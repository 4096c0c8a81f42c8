/* fallen_test.c - a connection that cannot say what its peer must hear. It ends, and so does all that
 * is on it; its owner learns of that once, and of nothing else. */
#include "amqp/state.h"
#include "peer.h"

#define CREDIT 40
#define NO_ROOM ": encoding: the buffer is at its maximum or there is no memory"
#define SAY_FLOW "13: 43 70 00000800 43 43 52 01 43 52 09"

void *__real_realloc(void *at, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);

static struct peer p;
static struct manners manners = {.credit = CREDIT, .trusted = true};
static bool no_memory;

void *__wrap_realloc(void *at, size_t bytes)
{
    return no_memory ? NULL : __real_realloc(at, bytes);
}

static void leave_no_room(void)
{
    p.side.e->out.max = p.side.e->out.len;
}

/* A session with a link each way, of which the second is ours to send. Nobody is at a loss yet. */
static struct weir__amqp_link *open_links(const struct weir__amqp_options *o)
{
    struct weir__amqp_link *ours;

    peer_open(&p, o, &manners);
    peer_say(&p, 0, SAY_SENDER);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    peer_say(&p, 0, SAY_RECEIVER);
    ours = expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link;
    peer_say(&p, 0, SAY_FLOW);
    expect(&p.side, WEIR__AMQP_EVENT_FLOW);
    p.heard_at = p.heard_len;
    return ours;
}

/* Of everything on it the owner is told once; nothing more is said, or waited for. */
static void expect_fall(unsigned links, unsigned sessions, const char *condition, const char *text)
{
    size_t room;

    take_events(&p.side);
    for (unsigned i = 0; i <= links + sessions; i++) {
        const struct told *t = expect(&p.side, i < links              ? WEIR__AMQP_EVENT_DETACH
                                               : i < links + sessions ? WEIR__AMQP_EVENT_END
                                                                      : WEIR__AMQP_EVENT_CLOSE);
        assert_string_equal(t->condition, condition);
        assert_string_equal(t->text, text);
        assert_int_equal(t->local, *condition != '\0');
    }
    expect_nothing(&p.side);
    assert_true(weir__amqp_closed(p.side.e));
    assert_null(weir__amqp_input(p.side.e, &room));
    assert_int_equal(weir__amqp_tick(p.side.e, 1000), INT64_MAX);
    peer_listen(&p);
    peer_hear_nothing(&p);
}

static void what_cannot_be_answered_ends_all(void **state)
{
    static const struct {
        const char *said, *text;
    } rows[] = {
        {SAY_END, "writing end" NO_ROOM},
        {"16: 43 41", "writing detach" NO_ROOM},
        {SAY_FLOW " 40 42 41", "writing flow" NO_ROOM},
        {"15: 41 43 40 42 00 53 24 45", "writing disposition" NO_ROOM},
        {"14: 43 43 a0 01 'x' 43 42 42 | 'y'", "writing end" NO_ROOM},
        {"13: 43 70 00000800 43 43 52 01 52 09 52 09", "writing detach" NO_ROOM},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *ours = open_links(&(struct weir__amqp_options){0});
        assert_int_equal(weir__amqp_send(ours, weir__bytes_of("x", 1), 0, false, NULL), 0);
        peer_listen(&p);
        p.heard_at = p.heard_len;
        if (i == 4)
            p.side.told[1].session->incoming_window = 0; /* that transfer breaks the rules */
        leave_no_room();
        peer_say(&p, 0, rows[i].said);
        expect_fall(2, 1, WEIR__AMQP_COND_INTERNAL, rows[i].text);
        peer_fini(&p);
    }
}

/* A message that comes settled, which is number `id` of its session. */
static void say_message(unsigned id)
{
    char text[64];

    snprintf(text, sizeof text, "14: 43 70 %08x a0 01 'x' 43 41 42 | 'y'", id);
    peer_say(&p, 0, text);
}

/* Credit is given again with one of the messages; where that cannot be said, the message is not told. */
static void a_message_without_the_next_credit_is_not_told(void **state)
{
    unsigned last = 0;

    (void)state;
    open_links(&(struct weir__amqp_options){0});
    while (p.heard_at == p.heard_len) say_message(last++);
    assert_in_range(last, 1, CREDIT);
    peer_fini(&p);

    open_links(&(struct weir__amqp_options){0});
    for (unsigned id = 0; id < last - 1; id++) say_message(id);
    for (unsigned id = 0; id < last - 1; id++) expect(&p.side, WEIR__AMQP_EVENT_TRANSFER);
    leave_no_room();
    say_message(last - 1);
    expect_fall(2, 1, WEIR__AMQP_COND_INTERNAL, "writing flow" NO_ROOM);
    peer_fini(&p);
}

/* Nobody was told of a session whose begin cannot be answered. */
static void a_session_that_cannot_begin_ends_all(void **state)
{
    (void)state;
    open_links(&(struct weir__amqp_options){0});
    leave_no_room();
    peer_say(&p, 1, SAY_BEGIN);
    expect_fall(2, 1, "", "");
    peer_fini(&p);
}

/* Ours: it is refused, leaves nothing behind, and the next one has its channel. */
static void a_session_of_ours_that_cannot_begin(void **state)
{
    struct weir__amqp_session *s;
    size_t before;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    before = weir__amqp_buffered(p.side.e);
    leave_no_room();
    assert_int_equal(weir__amqp_begin(p.side.e, &s, NULL), WEIR_ETOOBIG);
    assert_int_equal(weir__amqp_buffered(p.side.e), before);
    p.side.e->out.max = 4096;
    assert_int_equal(weir__amqp_begin(p.side.e, &s, NULL), 0);
    peer_listen(&p);
    assert_int_equal(p.heard[p.heard_at + 7], 1); /* the channel behind the peer's own */
    peer_hear(&p, WEIR__AMQP_BEGIN);
    peer_say(&p, 1, "11: 60 0001 43 70 00000800 70 00000800");
    assert_ptr_equal(expect(&p.side, WEIR__AMQP_EVENT_BEGIN)->session, s);
    peer_fini(&p);
}

static void refuse_without_room(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_error no = error_text(WEIR__AMQP_COND_NOT_FOUND, "not here");
    struct weir_error why = {0};

    (void)s;
    if (ev->type != WEIR__AMQP_EVENT_ATTACH) return;
    leave_no_room();
    assert_int_equal(weir__amqp_refuse(ev->link, &no, WEIR__AMQP_ECHO_BOTH, &why), WEIR_ETOOBIG);
    assert_string_equal(why.text, "writing attach" NO_ROOM);
}

/* The peer waits for the answer to its attach. */
static void a_refusal_that_cannot_be_said_ends_all(void **state)
{
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    p.side.on = NULL;
    peer_say(&p, 0, SAY_SENDER);
    l = expect(&p.side, WEIR__AMQP_EVENT_ATTACH)->link;
    leave_no_room();
    weir__amqp_detach(l, NULL);
    expect_fall(1, 1, "", "");
    peer_fini(&p);

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    p.side.on = refuse_without_room;
    peer_say(&p, 0, SAY_SENDER);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    expect_fall(1, 1, WEIR__AMQP_COND_INTERNAL, "writing close" NO_ROOM);
    peer_fini(&p);

    peer_open(&p, &(struct weir__amqp_options){0}, &manners);
    p.side.on = NULL;
    peer_say(&p, 0, SAY_SENDER);
    expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
    leave_no_room();
    peer_say(&p, 0, "16: 43 41");
    expect_fall(1, 1, "", "");
    peer_fini(&p);
}

/* Then there is no close to wait for an answer to. */
static void a_close_that_cannot_be_said(void **state)
{
    (void)state;
    open_links(&(struct weir__amqp_options){0});
    leave_no_room();
    weir__amqp_close(p.side.e, NULL);
    expect_fall(2, 1, WEIR__AMQP_COND_INTERNAL, "writing close" NO_ROOM);
    peer_fini(&p);
}

/* ---- before open ---- */

static void a_header_without_an_answer(void **state)
{
    static const char *const headers[] = {"'AMQP' 00 01 00 00", "'AMQP' 03 01 00 00"};

    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        peer_init(&p, &(struct weir__amqp_options){0}, &manners);
        leave_no_room();
        peer_say_raw(&p, headers[i]);
        expect_fall(0, 0, "", "");
        peer_fini(&p);
    }
}

/* There is room for the header, and for nothing behind it. */
static void mechanisms_that_cannot_be_offered(void **state)
{
    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    p.side.e->out.max = 8;
    peer_say_raw(&p, "'AMQP' 03 01 00 00");
    peer_hear_header(&p, 3);
    expect_fall(0, 0, "", "");
    peer_fini(&p);
}

static void a_judgement_that_cannot_be_told(void **state)
{
    (void)state;
    for (int welcome = 0; welcome < 2; welcome++) {
        peer_init(&p, &(struct weir__amqp_options){0}, &manners);
        p.side.on = NULL;
        peer_say_raw(&p, "'AMQP' 03 01 00 00");
        peer_say_typed(&p, WEIR__AMQP_FRAME_SASL, 0, "41: a3 09 'ANONYMOUS'");
        expect(&p.side, WEIR__AMQP_EVENT_SASL);
        p.heard_at = p.heard_len;
        leave_no_room();
        weir__amqp_sasl_answer(p.side.e, welcome);
        expect_fall(0, 0, "", "");
        peer_fini(&p);
    }
}

/* Our own open waits for the peer's. */
static void an_open_that_cannot_be_answered(void **state)
{
    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &manners);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_hear_header(&p, 0);
    leave_no_room();
    peer_say(&p, 0, SAY_OPEN);
    expect_fall(0, 0, "", "");
    peer_fini(&p);
}

/* ---- links that have ended, on a connection that does ---- */

/* The owner was told of it when it failed, and may have forgotten it. */
static void a_link_that_failed_ends_once(void **state)
{
    static const char breach[] = "14: 43 43 a0 01 'x' 43 42 42 | 'y'";

    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){.trusted = true});
        peer_say(&p, 0, SAY_SENDER);
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        peer_say(&p, 0, SAY_RECEIVER);
        expect(&p.side, WEIR__AMQP_EVENT_ATTACH);
        peer_say(&p, 0, breach);
        assert_string_equal(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->condition,
                            WEIR__AMQP_COND_TRANSFER_LIMIT);
        if (lost)
            weir__amqp_lost(p.side.e);
        else
            peer_say(&p, 0, SAY_END);
        take_events(&p.side);
        assert_false(expect(&p.side, WEIR__AMQP_EVENT_DETACH)->local); /* the other one */
        expect(&p.side, WEIR__AMQP_EVENT_END);
        if (lost) expect(&p.side, WEIR__AMQP_EVENT_CLOSE);
        expect_nothing(&p.side);
        peer_fini(&p);
    }
}

/* ---- messages of which the peer takes a part ---- */

/* Half a message cannot be taken back, but the frames before it are whole, and the reason is said. */
static void no_memory_for_the_rest_of_a_message(void **state)
{
    static const uint8_t large[3000];
    struct weir__amqp_composite c;
    struct weir__amqp_link *ours;

    (void)state;
    ours = open_links(&(struct weir__amqp_options){0});
    peer_say(&p, 0, "13: 43 52 02 43 43 52 01 43 52 09"); /* two frames, of 512 bytes */
    p.side.e->peer_frame = 512;
    p.side.taken = p.side.count;
    assert_int_equal(weir__amqp_send(ours, weir__bytes_of("x", 1), 0, true, NULL), 0);
    assert_non_null(weir__amqp_deliver(ours, sizeof large));
    no_memory = true;
    weir__amqp_delivered(ours, sizeof large, 0, true);
    no_memory = false;
    peer_listen(&p);
    c = peer_hear(&p, WEIR__AMQP_TRANSFER);
    assert_false(c.transfer.more.u);
    c = peer_hear(&p, WEIR__AMQP_CLOSE);
    assert_condition(&c.close.error, WEIR__AMQP_COND_INTERNAL);
    expect_fall(2, 1, WEIR__AMQP_COND_INTERNAL, "no memory for the rest of a message");
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_answered_ends_all),
        cmocka_unit_test(a_message_without_the_next_credit_is_not_told),
        cmocka_unit_test(a_session_that_cannot_begin_ends_all),
        cmocka_unit_test(a_session_of_ours_that_cannot_begin),
        cmocka_unit_test(a_refusal_that_cannot_be_said_ends_all),
        cmocka_unit_test(a_close_that_cannot_be_said),
        cmocka_unit_test(a_header_without_an_answer),
        cmocka_unit_test(mechanisms_that_cannot_be_offered),
        cmocka_unit_test(a_judgement_that_cannot_be_told),
        cmocka_unit_test(an_open_that_cannot_be_answered),
        cmocka_unit_test(a_link_that_failed_ends_once),
        cmocka_unit_test(no_memory_for_the_rest_of_a_message),
    };

    return cmocka_run_group_tests_name("fallen", tests, NULL, NULL);
}
