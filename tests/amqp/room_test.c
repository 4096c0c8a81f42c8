/* As much as may be, to the byte: frames, messages in several frames, and memory that the owner has. */
#include "amqp/state.h"
#include "peer.h"

static struct peer p;
static const uint8_t zeros[100000];

#define PART_HEAD 22u /* bytes of a part's frame before its payload */

/* As peer_say_bytes, for an engine that may have no room. */
static void say_bytes(struct weir__bytes b)
{
    while (b.len && !weir__amqp_closed(p.side.e)) {
        size_t room, n;
        uint8_t *to = weir__amqp_input(p.side.e, &room);
        n = b.len < room ? b.len : room;
        assert_true(n > 0 || weir__amqp_closed(p.side.e));
        if (n) memcpy(to, b.at, n);
        if (n) weir__amqp_received(p.side.e, n);
        b = weir__bytes_of(b.at + n, b.len - n);
        take_events(&p.side);
        peer_listen(&p);
    }
}

/* The next frame, of so many bytes in all, is a part of message 0 with as much payload as fits. */
static void say_part_of(size_t frame_bytes)
{
    static uint8_t frame[1 << 17];
    struct weir__bytes body = peer_body("14: 43 43 a0 01 'x' 43 42 41");

    assert_int_equal(WEIR__AMQP_FRAME_HEAD + body.len, PART_HEAD);
    assert_in_range(frame_bytes, PART_HEAD, sizeof frame);
    weir__amqp_frame_head(frame, (uint32_t)frame_bytes, WEIR__AMQP_FRAME_AMQP, 0);
    memcpy(frame + WEIR__AMQP_FRAME_HEAD, body.at, body.len);
    say_bytes(weir__bytes_of(frame, frame_bytes));
    sample_free(body);
}

static const char *last_text(void)
{
    return p.side.told[p.side.count - 1].text;
}

/* ---- the output ---- */

/* A frame is taken when there is room for an answer to it, and the owner is told so once. */
static void frames_wait_for_the_output(void **state)
{
    static const uint8_t empty[] = {0, 0, 0, 8, 2, 0, 0, 0};
    const size_t most = 1024 + WEIR__AMQP_ANSWER_BYTES / 2;
    struct weir__amqp_options o = {.after.output_bytes = 1024};
    struct manners m = {.credit = 10, .trusted = true};
    size_t room;

    (void)state;
    peer_open(&p, &o, &m);
    assert_int_equal(weir__amqp_pending_max(p.side.e), most);
    assert_false(weir__amqp_sent(p.side.e, 0));
    assert_true(weir__buf_add(&p.side.e->out, zeros, most + 2));
    assert_false(weir__amqp_choked(p.side.e));
    memcpy(weir__amqp_input(p.side.e, &room), empty, sizeof empty);
    weir__amqp_received(p.side.e, sizeof empty);
    take_events(&p.side);
    assert_int_equal(p.side.e->in_tail - p.side.e->in_head, sizeof empty);
    assert_true(weir__amqp_choked(p.side.e));
    assert_false(weir__amqp_sent(p.side.e, 1));
    assert_true(weir__amqp_choked(p.side.e));
    assert_true(weir__amqp_sent(p.side.e, 1));
    assert_false(weir__amqp_choked(p.side.e));
    assert_false(weir__amqp_sent(p.side.e, 1));
    take_events(&p.side);
    assert_int_equal(p.side.e->in_tail, p.side.e->in_head);
    peer_fini(&p);
}

/* Frames that say nothing are taken, too, but not so many that their owner forgets the time. */
static void many_frames_have_a_pause(void **state)
{
    static const uint8_t empty[] = {0, 0, 0, 8, 2, 0, 0, 0};
    struct manners m = {.credit = 10, .trusted = true};
    struct weir__amqp_event ev;
    uint64_t frames;
    size_t room;
    uint8_t *to;

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &m);
    to = weir__amqp_input(p.side.e, &room);
    assert_true(room >= 300 * sizeof empty);
    for (size_t i = 0; i < 300; i++) memcpy(to + i * sizeof empty, empty, sizeof empty);
    weir__amqp_received(p.side.e, 300 * sizeof empty);
    frames = p.side.e->frames;
    assert_true(weir__amqp_next(p.side.e, &ev));
    assert_int_equal(ev.type, WEIR__AMQP_EVENT_PAUSE);
    assert_null(ev.link);
    assert_int_equal(p.side.e->frames - frames, 256);
    assert_false(weir__amqp_next(p.side.e, &ev));
    assert_int_equal(p.side.e->frames - frames, 300);
    peer_fini(&p);
}

static void nothing_waits_on_a_lost_road(void **state)
{
    struct weir__amqp_options o = {.after.output_bytes = 1024};
    struct manners m = {.credit = 10, .trusted = true};
    size_t room;

    (void)state;
    peer_open(&p, &o, &m);
    assert_true(weir__buf_add(&p.side.e->out, zeros, 8192));
    memcpy(weir__amqp_input(p.side.e, &room), zeros, 1);
    weir__amqp_received(p.side.e, 1);
    assert_true(weir__amqp_choked(p.side.e));
    weir__amqp_lost(p.side.e);
    assert_false(weir__amqp_choked(p.side.e));
    peer_fini(&p);
}

/* ---- the input ---- */

/* Messages of which a part is to come may have so many bytes together, and frames so many, before and
 * after trust. */
static void messages_and_frames_have_their_largest(void **state)
{
    static const struct {
        bool trusted;
        uint32_t frame, message;
        const char *text;
    } rows[] = {
        {false, 8192, 4096, "more than 4096 bytes of messages in several frames"},
        {true, 65536, 16777216, "more than 16777216 bytes of messages in several frames"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct manners m = {.credit = 10, .trusted = rows[i].trusted};
        uint32_t left = rows[i].message;
        peer_open(&p, &(struct weir__amqp_options){0}, &m);
        peer_say(&p, 0, SAY_SENDER);
        while (left) {
            uint32_t most = rows[i].frame - PART_HEAD, bytes = left < most ? left : most;
            say_part_of(bytes + PART_HEAD);
            left -= bytes;
        }
        assert_false(weir__amqp_closed(p.side.e));
        say_part_of(PART_HEAD + 1);
        assert_true(weir__amqp_closed(p.side.e));
        assert_string_equal(last_text(), rows[i].text);
        peer_fini(&p);

        m.credit = 1; /* the largest frame is taken; what is wrong with it comes behind that */
        peer_open(&p, &(struct weir__amqp_options){0}, &m);
        say_part_of(rows[i].frame);
        assert_false(weir__amqp_closed(p.side.e));
        assert_string_equal(last_text(), "transfer to handle 0");
        peer_fini(&p);
    }
}

/* An attach of exactly the peer's largest frame is written, and one byte more is refused by its
 * sizes. */
static void the_largest_frame_of_the_peer_is_used(void **state)
{
    static const char name[WEIR__AMQP_NAME_MAX] = "n";
    struct weir__amqp_terms t = {.role = WEIR__AMQP_SENDER};
    size_t largest = 0;
    struct weir_error err = {0};
    int rc = 0;

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    weir__amqp_trust(p.side.e);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 70 00000200");
    peer_say(&p, 0, SAY_BEGIN);
    for (size_t len = 300; rc == 0; len++) {
        struct weir__amqp_link *l;
        t.name = weir__bytes_of(name, len);
        rc = weir__amqp_attach(p.side.told[1].session, &t, &l, &err);
        largest = rc == 0 ? weir__amqp_output(p.side.e).len : largest;
        peer_listen(&p);
    }
    assert_int_equal(rc, WEIR_ETOOBIG);
    assert_int_equal(largest, 512);
    assert_string_equal(err.text, "attach of 513 bytes, the peer takes frames of 512");
    peer_fini(&p);
}

/* ---- the owner's memory ---- */

struct purse {
    size_t left, asked; /* asked: how often */
};

static bool spend(void *user, size_t more)
{
    struct purse *purse = user;

    purse->asked++;
    if (more > purse->left) return false;
    purse->left -= more;
    return true;
}

/* A frame that there is no memory for ends the connection, and says why. One that just fits goes
 * through, without the room that would only make it faster; small frames always do. */
static void a_frame_needs_memory(void **state)
{
    static const struct {
        size_t left, frame;
        bool taken;
    } rows[] = {
        {0, 4096, true},           {0, 4097, false},    {1, 4097, true},
        {8000 - 4096, 8000, true}, {3903, 8000, false}, {1 << 20, 8000, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct purse purse = {0};
        struct weir__amqp_options o = {.reserve = spend, .reserve_data = &purse};
        char text[64];
        peer_open(&p, &o, &(struct manners){.trusted = true});
        purse.left = rows[i].left;
        say_part_of(rows[i].frame);
        snprintf(text, sizeof text, "no memory for a frame of %zu bytes", rows[i].frame);
        assert_string_equal(last_text(), rows[i].taken ? "transfer to handle 0" : text);
        assert_int_equal(weir__amqp_closed(p.side.e), !rows[i].taken);
        if (!rows[i].taken) {
            struct weir__amqp_composite c = peer_hear(&p, WEIR__AMQP_CLOSE);
            assert_condition(&c.close.error, WEIR__AMQP_COND_LIMIT);
        }
        peer_fini(&p);
    }
}

/* The first delivery has its place, whoever has memory; the next wait until that has gone. */
static void deliveries_behind_the_first_need_memory(void **state)
{
    struct purse purse = {.left = 1 << 20};
    struct weir__amqp_options o = {.reserve = spend, .reserve_data = &purse};
    struct weir__bytes large = weir__bytes_of(zeros, 60000);
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &o, &(struct manners){.trusted = true, .no_outcomes = true});
    peer_say(&p, 0, SAY_RECEIVER);
    peer_say(&p, 0, "13: 43 70 00000800 43 43 52 01 43 52 09");
    l = p.side.told[2].link;
    purse.left = 0;
    assert_int_equal(weir__amqp_send(l, large, 0, true, NULL), 0);
    assert_int_equal(weir__amqp_send(l, large, 0, true, NULL), WEIR_EBUSY);
    assert_int_equal(weir__amqp_link_credit(l), 8);
    purse.left = 1 << 20;
    assert_int_equal(weir__amqp_send(l, large, 0, true, NULL), 0);
    purse.left = 0;
    assert_int_equal(weir__amqp_send(l, large, 0, true, NULL), WEIR_EBUSY);
    peer_listen(&p);
    assert_int_equal(weir__amqp_send(l, large, 0, true, NULL), 0);
    peer_fini(&p);
}

/* A session and our link of it, with a window of so many frames. */
static struct weir__amqp_link *open_narrow(uint16_t channel, unsigned window)
{
    char text[64];
    struct weir__amqp_link *l;

    if (channel) peer_say(&p, channel, SAY_BEGIN);
    peer_say(&p, channel, SAY_RECEIVER);
    l = p.side.told[p.side.count - 1].link;
    snprintf(text, sizeof text, "13: 43 52 %02x 43 43 52 01 43 52 09", window);
    peer_say(&p, channel, text);
    return l;
}

/* What the window does not take waits in memory: of the first message always, of the others as much
 * as the limit leaves, to the byte, and the owner has. */
static void rests_behind_the_first_have_a_limit(void **state)
{
    enum { FRAME = 512, LIMIT = 20000, FIRST = 9000, SENT = FRAME - WEIR__AMQP_TRANSFER_HEAD };
    static const struct {
        size_t first, next, purse;
        bool taken;
    } rows[] = {
        {FIRST, LIMIT - (FIRST - SENT), LIMIT, true},
        {FIRST, LIMIT - (FIRST - SENT) + 1, LIMIT, false},
        {FIRST, 2000, 2000, true},
        {FIRST, 2000, 1999, false},
        {LIMIT + SENT - 1, 1000, LIMIT, false},
        {LIMIT + SENT, 1000, LIMIT, false},
        {LIMIT + SENT + 1, 1000, LIMIT, false},
        {5 * LIMIT, 1000, LIMIT, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct purse purse = {.left = SIZE_MAX};
        struct weir__amqp_options o = {.after.partial_bytes = LIMIT,
                                       .reserve = spend,
                                       .reserve_data = &purse};
        struct weir__amqp_link *one, *two, *three;
        struct weir__bytes next = weir__bytes_of(zeros, rows[i].next);
        peer_open(&p, &o, &(struct manners){.trusted = true, .no_outcomes = true});
        p.side.e->peer_frame = FRAME;
        one = open_narrow(0, 1);
        two = open_narrow(1, 1);
        three = open_narrow(2, 2);
        purse.left = 0; /* which the first does not need */
        assert_int_equal(weir__amqp_send(one, weir__bytes_of(zeros, rows[i].first), 0, true, NULL),
                         0);
        peer_listen(&p);
        purse.left = rows[i].purse;
        assert_int_equal(weir__amqp_send(two, next, 0, true, NULL), rows[i].taken ? 0 : WEIR_EBUSY);
        peer_listen(&p);
        purse.left = 0; /* nor does one that leaves no rest */
        assert_int_equal(weir__amqp_send(three, weir__bytes_of(zeros, 2 * SENT), 0, true, NULL), 0);
        peer_say(&p, 0, "13: 52 01 70 00000800 43 43"); /* the first goes, and leaves its place */
        assert_null(one->buf.at);
        assert_int_equal(p.side.e->partial_bytes, rows[i].taken ? rows[i].next - SENT : 0);
        if (!rows[i].taken)
            assert_int_equal(weir__amqp_send(two, weir__bytes_of(zeros, 5 * LIMIT), 0, true, NULL),
                             0);
        peer_fini(&p);
    }
}

/* ---- time ---- */

static void say_alive(int64_t now_ms)
{
    peer_say_raw(&p, "00000008 02 00 0000");
    weir__amqp_tick(p.side.e, now_ms);
    take_events(&p.side);
    peer_listen(&p);
}

/* Of several messages under way the oldest counts, and none that has ended or whose link has gone; nor
 * does one of ours, which waits for the peer. */
static void the_oldest_message_under_way_counts(void **state)
{
    static const char *const ends[] = {"14: 43 40 40 40 42 42", "16: 43 41"};
    static const char second[] = "12: a1 01 't' 52 02 42 40 40 00 53 28 45 00 53 29 45 40 40 43";

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct manners m = {.credit = 10, .trusted = true, .no_outcomes = true};
        struct weir__amqp_link *ours;
        peer_open(&p, &(struct weir__amqp_options){0}, &m);
        say_alive(1000);
        peer_say(&p, 0, SAY_RECEIVER);
        ours = p.side.told[p.side.count - 1].link;
        peer_say(&p, 0, "13: 43 52 01 43 43 52 01 43 52 09");
        assert_int_equal(weir__amqp_send(ours, weir__bytes_of(zeros, 100000), 0, true, NULL), 0);
        peer_say(&p, 0, SAY_SENDER);
        peer_say(&p, 0, second);
        say_alive(41000);
        say_alive(81000);
        peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one'");
        say_alive(111000);
        peer_say(&p, 0, "14: 52 02 52 01 a0 01 'x' 43 42 41 | 'two'");
        say_alive(140999);
        peer_say(&p, 0, ends[i]);
        say_alive(141000);
        say_alive(170999);
        assert_false(weir__amqp_closed(p.side.e));
        say_alive(171000);
        assert_string_equal(last_text(), "a message took longer than 60000 ms");
        peer_fini(&p);
    }
}

/* When all have ended there is none to wait for. */
static void no_message_under_way_is_not_late(void **state)
{
    struct manners m = {.credit = 10, .trusted = true};

    (void)state;
    peer_open(&p, &(struct weir__amqp_options){0}, &m);
    say_alive(1000);
    peer_say(&p, 0, SAY_SENDER);
    peer_say(&p, 0, "14: 43 43 a0 01 'x' 43 42 41 | 'one'");
    peer_say(&p, 0, "16: 43 41");
    for (int64_t now_ms = 30000; now_ms < 300000; now_ms += 30000) say_alive(now_ms);
    assert_false(weir__amqp_closed(p.side.e));
    peer_fini(&p);
}

/* A peer that does not read finds no signs of life behind what waits for it. */
static void what_waits_is_sign_enough(void **state)
{
    size_t waits;

    (void)state;
    peer_init(&p, &(struct weir__amqp_options){0}, &(struct manners){0});
    weir__amqp_tick(p.side.e, 1000);
    peer_say_raw(&p, "'AMQP' 00 01 00 00");
    peer_say(&p, 0, "10: a1 01 'p' 40 40 40 70 000003e8");
    weir__amqp_close(p.side.e, NULL);
    waits = weir__amqp_output(p.side.e).len;
    weir__amqp_tick(p.side.e, 2000); /* nor behind a close */
    assert_int_equal(weir__amqp_output(p.side.e).len, waits);
    peer_listen(&p);
    weir__amqp_tick(p.side.e, 3000);
    assert_int_equal(weir__amqp_output(p.side.e).len, 0);
    peer_fini(&p);

    peer_open(&p, &(struct weir__amqp_options){0}, &(struct manners){.trusted = true});
    p.side.e->peer_idle_ms = 1000;
    weir__amqp_tick(p.side.e, 1000);
    weir__amqp_end(p.side.told[1].session, NULL);
    waits = weir__amqp_output(p.side.e).len;
    assert_true(waits > 0);
    weir__amqp_tick(p.side.e, 2000);
    assert_int_equal(weir__amqp_output(p.side.e).len, waits);
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_wait_for_the_output),
        cmocka_unit_test(many_frames_have_a_pause),
        cmocka_unit_test(nothing_waits_on_a_lost_road),
        cmocka_unit_test(messages_and_frames_have_their_largest),
        cmocka_unit_test(the_largest_frame_of_the_peer_is_used),
        cmocka_unit_test(a_frame_needs_memory),
        cmocka_unit_test(deliveries_behind_the_first_need_memory),
        cmocka_unit_test(rests_behind_the_first_have_a_limit),
        cmocka_unit_test(the_oldest_message_under_way_counts),
        cmocka_unit_test(no_message_under_way_is_not_late),
        cmocka_unit_test(what_waits_is_sign_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
