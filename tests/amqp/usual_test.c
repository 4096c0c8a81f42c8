/* The short way of usual transfers, beside the long way that all others take: whatever a frame is like,
 * both tell and answer the same. A trace makes an engine take the long way. */
#include "peer.h"

#define FRAME_BYTES_MAX 400
#define HEAD_BYTES 64 /* each of the first bytes of a frame is changed */
#define LOG_BYTES 4096

/* An engine, what it told, as text, and what it said. */
struct engine {
    struct weir__amqp *e;
    char told[LOG_BYTES];
    size_t told_len, said_len;
    uint8_t said[LOG_BYTES];
};

static struct engine usual, slow;
static uint64_t largest = 120; /* of messages; 0: any */

static void look_away(void *user_data, bool outgoing, struct weir__bytes frame)
{
    (void)user_data;
    (void)outgoing;
    (void)frame;
}

static void note(struct engine *s, const struct weir__amqp_event *ev)
{
    const struct weir__amqp_delivery *d = &ev->delivery;
    const struct weir__amqp_error *why = &ev->error;
    char *to = s->told + s->told_len;
    size_t room = LOG_BYTES - s->told_len;
    int len;

    if (ev->type == WEIR__AMQP_EVENT_TRANSFER)
        len = snprintf(to, room, "transfer %u %u %d %d %zu %.*s %.*s\n", d->id, d->format,
                       d->settled, d->too_large, (size_t)d->size, (int)d->tag.len,
                       d->tag.len ? (const char *)d->tag.at : "", (int)d->payload.len,
                       d->payload.len ? (const char *)d->payload.at : "");
    else if (ev->type >= WEIR__AMQP_EVENT_DETACH)
        len = snprintf(to, room, "%d %d %.*s\n", ev->type, ev->local, (int)why->description.len,
                       why->description.len ? (const char *)why->description.at : "");
    else
        len = snprintf(to, room, "%d\n", ev->type);
    assert_in_range(len, 1, room - 1);
    s->told_len += (size_t)len;
}

static void answer(struct engine *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms t = {.credit = 4, .max_message_size = largest};

    note(s, ev);
    if (ev->type == WEIR__AMQP_EVENT_ATTACH)
        assert_int_equal(weir__amqp_accept(ev->link, &t, NULL), 0);
}

static void hear(struct engine *s, struct weir__bytes b)
{
    struct weir__amqp_event ev;
    struct weir__bytes out;
    size_t room;
    uint8_t *to = weir__amqp_input(s->e, &room);

    if (weir__amqp_closed(s->e)) return;
    assert_true(b.len <= room);
    memcpy(to, b.at, b.len);
    weir__amqp_received(s->e, b.len);
    while (weir__amqp_next(s->e, &ev)) answer(s, &ev);
    out = weir__amqp_output(s->e);
    assert_true(out.len <= LOG_BYTES - s->said_len);
    if (out.len) memcpy(s->said + s->said_len, out.at, out.len);
    s->said_len += out.len;
    weir__amqp_sent(s->e, out.len);
}

/* A frame with this body; its bytes. */
static size_t frame_of(const char *text, uint8_t *to)
{
    struct weir__bytes body = peer_body(text);
    size_t size = WEIR__AMQP_FRAME_HEAD + body.len;

    assert_true(size <= FRAME_BYTES_MAX);
    weir__amqp_frame_head(to, (uint32_t)size, WEIR__AMQP_FRAME_AMQP, 0);
    memcpy(to + WEIR__AMQP_FRAME_HEAD, body.at, body.len);
    sample_free(body);
    return size;
}

/* Two links, one each way, and a first message. */
static void open_engine(struct engine *s, bool traced)
{
    static const char *const said[] = {SAY_OPEN, SAY_BEGIN, SAY_SENDER, SAY_RECEIVER,
                                       "14: 43 43 a0 01 'x' 43 42 42 | 'm'"};
    struct weir__amqp_options o = {.after.unsettled = 64, .trace = traced ? look_away : NULL};
    uint8_t bytes[8 + 5 * FRAME_BYTES_MAX] = {'A', 'M', 'Q', 'P', 0, 1, 0, 0};
    size_t len = 8;

    s->told_len = s->said_len = 0;
    assert_int_equal(weir__amqp_new(&s->e, &o, NULL), 0);
    weir__amqp_trust(s->e);
    for (size_t i = 0; i < 5; i++) len += frame_of(said[i], bytes + len);
    hear(s, weir__bytes_of(bytes, len));
}

#define BODY "'a body of which there is more than the head of any usual frame ever has room for'"
#define TAG32 "0123456789abcdef0123456789abcdef"

/* The frame, and behind it one that is right if this one was taken; both at once, or the second piece
 * after the first `cut` bytes. */
static void compare(const uint8_t *frame, size_t size, size_t cut)
{
    uint8_t all[2 * FRAME_BYTES_MAX];
    size_t len = size + frame_of("14: 43 52 02 a0 01 'y' 43 42 42 | " BODY, all + size);

    memcpy(all, frame, size);
    open_engine(&usual, false);
    open_engine(&slow, true);
    if (cut) {
        hear(&usual, weir__bytes_of(all, cut));
        hear(&slow, weir__bytes_of(all, cut));
    }
    hear(&usual, weir__bytes_of(all + cut, len - cut));
    hear(&slow, weir__bytes_of(all + cut, len - cut));
    assert_string_equal(usual.told, slow.told);
    assert_bytes(weir__bytes_of(usual.said, usual.said_len),
                 weir__bytes_of(slow.said, slow.said_len));
    assert_int_equal(weir__amqp_closed(usual.e), weir__amqp_closed(slow.e));
    weir__amqp_free(usual.e);
    weir__amqp_free(slow.e);
}

static const char *const forms[] = {
    "14: 43 52 01 a0 04 '0123' 43 42 42 | " BODY,
    "14: 70 00000000 70 00000001 a0 04 '0123' 70 00000007 41 42 40 40 40 40 41 | " BODY,
    "14; 52 00 52 01 a0 00 52 05 40 42 40 40 | " BODY,
    "14: 43 52 01 a0 20 '" TAG32 "' 43 42 40 40 40 42 42 42 | " BODY,
    "14: 43 52 01 a0 01 'x' 43 42 42 40 40 42 40 | " BODY,
};

#define FORMS (sizeof forms / sizeof forms[0])

/* Each byte of the head, and what it may be instead: its neighbours, and codes that mean something. */
static void every_byte_may_be_another(void **state)
{
    static const uint8_t codes[] = {0x00, 0x01, 0x02, 0x03, 0x14, 0x20, 0x21, 0x40,
                                    0x41, 0x42, 0x43, 0x44, 0x50, 0x52, 0x53, 0x56,
                                    0x70, 0xa0, 0xb0, 0xc0, 0xd0, 0xff};
    uint8_t frame[FRAME_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        size_t size = frame_of(forms[i], frame);
        for (size_t at = 0; at < HEAD_BYTES; at++) {
            uint8_t was = frame[at];
            for (size_t c = 0; c < sizeof codes; c++) {
                frame[at] = codes[c];
                compare(frame, size, 0);
            }
            frame[at] = (uint8_t)(was + 1);
            compare(frame, size, 0);
            frame[at] = (uint8_t)(was - 1);
            compare(frame, size, 0);
            frame[at] = was;
        }
    }
}

static void a_frame_may_come_in_two_pieces(void **state)
{
    uint8_t frame[FRAME_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        size_t size = frame_of(forms[i], frame);
        for (size_t cut = 1; cut <= size; cut++) compare(frame, size, cut);
    }
}

/* What is not a whole message in its usual form, though it is long enough to be one. */
static void near_misses_are_told_alike(void **state)
{
    static const char *const rows[] = {
        "14: 43 52 01 a0 01 'x' 43 42 41 | " BODY,                   /* more */
        "14: 43 52 01 a0 01 'x' 43 41 41 40 40 40 40 | " BODY,       /* more, settled */
        "14: 43 52 01 a0 01 'x' 43 42 42 40 40 40 41 | " BODY,       /* aborted */
        "14: 43 52 01 a0 01 'x' 43 42 42 40 40 41 40 | " BODY,       /* resume */
        "14: 43 52 01 a0 01 'x' 43 42 42 42 40 40 40 | " BODY,       /* a settle mode: false */
        "14: 43 52 01 a0 01 'x' 43 42 42 40 42 40 40 | " BODY,       /* a state: false */
        "14: 43 52 01 a0 01 'x' 43 42 42 50 00 40 40 | " BODY,       /* a settle mode */
        "14: 43 52 01 a0 01 'x' 43 42 42 40 00 53 24 45 40 | " BODY, /* a state */
        "14: 43 52 01 a0 01 'x' 43 42 42 40 40 40 40 56 01 | " BODY, /* a long true */
        "14: 43 52 01 a0 01 'x' 43 56 01 42 | " BODY,                /* a long true as well */
        "14: 43 52 01 a0 01 'x' 43 42 | " BODY,                      /* five fields */
        "14: 43 52 01 a0 01 'x' 43 42 42 40 40 40 40 40 40 | " BODY, /* twelve */
        "14: 43 52 01 a0 21 'x" TAG32 "' 43 42 42 | " BODY,          /* a long tag */
        "14: 43 52 02 a0 01 'x' 43 42 42 | " BODY,                   /* not the next */
        "14: 43 40 a0 01 'x' 43 42 42 | " BODY,                      /* no id */
        "14: 52 01 52 01 a0 01 'x' 43 42 42 | " BODY,                /* does not receive */
        "14: 52 05 52 01 a0 01 'x' 43 42 42 | " BODY,                /* is not there */
        "14: 43 52 01 a0 01 'x' 43 42 42 | " BODY BODY,              /* too large */
    };
    uint8_t frame[FRAME_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = frame_of(rows[i], frame);
        compare(frame, size, 0);
        compare(frame, size, size);
    }
}

/* Wherever a frame says that it ends, more may have come: it is not read beyond its end. */
static void a_frame_may_end_within_its_head(void **state)
{
    uint8_t frame[FRAME_BYTES_MAX];

    (void)state;
    largest = 0;
    for (size_t i = 0; i < FORMS; i++) {
        size_t size = frame_of(forms[i], frame);
        for (uint8_t said = 0; said < HEAD_BYTES; said++) {
            frame[3] = said;
            compare(frame, size, 0);
        }
    }
    largest = 120;
}

/* What an event points at lies in the input: there is none meanwhile. */
static void nothing_is_received_while_an_event_is_in_use(void **state)
{
    uint8_t frame[FRAME_BYTES_MAX];
    size_t size = frame_of(forms[0], frame), room;
    struct weir__amqp_event ev;

    (void)state;
    for (int traced = 0; traced < 2; traced++) {
        open_engine(&usual, traced);
        memcpy(weir__amqp_input(usual.e, &room), frame, size);
        weir__amqp_received(usual.e, size);
        memset(&ev, 1, sizeof ev);
        assert_true(weir__amqp_next(usual.e, &ev));
        assert_int_equal(ev.type, WEIR__AMQP_EVENT_TRANSFER);
        assert_ptr_equal(ev.session, weir__amqp_link_session(ev.link));
        assert_null(ev.fields);
        room = 1;
        assert_null(weir__amqp_input(usual.e, &room));
        assert_int_equal(room, 0);
        assert_null(weir__amqp_link_user(ev.link));
        weir__amqp_link_set_user(ev.link, &room);
        assert_ptr_equal(weir__amqp_link_user(ev.link), &room);
        assert_false(weir__amqp_next(usual.e, &ev));
        assert_non_null(weir__amqp_input(usual.e, &room));
        assert_true(room > 0);
        weir__amqp_free(usual.e);
    }
}

/* Frames that are never all there, because the next has always begun, are not slow. */
static void each_frame_has_its_own_time(void **state)
{
    uint8_t frames[9 * FRAME_BYTES_MAX];
    size_t size = 0, len = 0, at = 0;
    char text[200];

    (void)state;
    open_engine(&usual, false);
    for (unsigned i = 1; i <= 9; i++) {
        snprintf(text, sizeof text, "14: 43 52 %02x a0 04 '0123' 43 42 42 | " BODY, i);
        size = frame_of(text, frames + len);
        len += size;
    }
    weir__amqp_tick(usual.e, 1000);
    for (int64_t now_ms = 1000; at + size < len; at += size, now_ms += 10000) {
        size_t from = at ? at + 10 : 0; /* one, and the beginning of the next */
        hear(&usual, weir__bytes_of(frames + from, at + size + 10 - from));
        weir__amqp_tick(usual.e, now_ms);
        assert_false(weir__amqp_closed(usual.e));
    }
    assert_non_null(strstr(usual.told, "transfer 8 "));
    weir__amqp_free(usual.e);
}

/* A server that settles late, in ranges of what it has. */
struct tardy {
    struct weir__amqp *e;
    struct weir__amqp_link *link;
    uint32_t next, unsettled; /* deliveries [next, next + unsettled) */
    uint64_t sum;             /* of all that was told */
};

static void tardy_take(struct tardy *s, struct weir__bytes b)
{
    struct weir__amqp_event ev;
    size_t room;
    uint8_t *to = weir__amqp_input(s->e, &room);

    assert_true(b.len <= room);
    if (b.len) memcpy(to, b.at, b.len);
    weir__amqp_received(s->e, b.len);
    while (weir__amqp_next(s->e, &ev)) {
        s->sum = s->sum * 31 + ev.type;
        if (ev.type == WEIR__AMQP_EVENT_ATTACH) {
            s->link = ev.link;
            assert_int_equal(weir__amqp_accept(ev.link, &(struct weir__amqp_terms){.credit = 60},
                                               NULL),
                             0);
        }
        if (ev.type != WEIR__AMQP_EVENT_TRANSFER) continue;
        s->sum = s->sum * 31 + sum_of(ev.delivery.payload) + ev.delivery.id + ev.delivery.settled;
        if (ev.delivery.settled && s->unsettled == 0) s->next = ev.delivery.id + 1;
        if (!ev.delivery.settled || s->unsettled) s->unsettled++;
    }
}

static void tardy_settle(struct tardy *s, uint32_t count)
{
    if (count > s->unsettled) count = s->unsettled;
    if (!count) return;
    weir__amqp_settle(s->link, s->next, s->next + count - 1, WEIR__AMQP_ACCEPTED, NULL);
    s->next += count;
    s->unsettled -= count;
}

/* The short way of usual transfers and the long way, which a trace takes, tell and answer the same,
 * byte by byte, also where window and ring are at their end when credit is topped up. */
static void the_long_way_agrees(void **state)
{
    struct weir__amqp_options o = {.client = true};
    struct weir__amqp_terms t = {.name = weir__bytes_of("link", 4), .role = WEIR__AMQP_SENDER};
    static uint8_t payload[400];

    (void)state;
    for (uint64_t round = 1; round <= 40; round++) {
        struct weir__amqp_options quick = {.after.unsettled = 64, .after.frame_bytes = 512};
        struct weir__amqp_options traced = quick;
        struct tardy a = {0}, b = {0};
        struct weir__amqp_session *session;
        struct weir__amqp_link *l;
        struct weir__amqp *client;
        struct weir__amqp_event ev;
        uint64_t seed = round * 7919;
        unsigned sent = 0;

        traced.trace = look_away;
        assert_int_equal(weir__amqp_new(&client, &o, NULL), 0);
        assert_int_equal(weir__amqp_new(&a.e, &quick, NULL), 0);
        assert_int_equal(weir__amqp_new(&b.e, &traced, NULL), 0);
        weir__amqp_trust(client);
        weir__amqp_trust(a.e);
        weir__amqp_trust(b.e);
        assert_int_equal(weir__amqp_begin(client, &session, NULL), 0);
        assert_int_equal(weir__amqp_attach(session, &t, &l, NULL), 0);
        for (int step = 0; step < 1500; step++) {
            struct weir__bytes out = weir__amqp_output(client), answer;
            size_t n = out.len < 2000 ? out.len : 2000, room;
            uint32_t some = (uint32_t)random_below(&seed, 90);

            tardy_take(&a, weir__bytes_of(out.at, n));
            tardy_take(&b, weir__bytes_of(out.at, n));
            weir__amqp_sent(client, n);
            if (!random_below(&seed, 6)) tardy_settle(&a, some), tardy_settle(&b, some);
            answer = weir__amqp_output(a.e);
            assert_bytes(weir__amqp_output(b.e), answer);
            assert_true(a.sum == b.sum && a.next == b.next && a.unsettled == b.unsettled);
            if (answer.len) memcpy(weir__amqp_input(client, &room), answer.at, answer.len);
            weir__amqp_received(client, answer.len);
            weir__amqp_sent(a.e, answer.len);
            weir__amqp_sent(b.e, answer.len);
            while (weir__amqp_next(client, &ev))
                assert_int_not_equal(ev.type, WEIR__AMQP_EVENT_END);
            for (unsigned i = 0; i < 20; i++) {
                struct weir__bytes m = weir__bytes_of(payload, random_below(&seed, 400));
                sent += weir__amqp_send(l, m, 0, !random_below(&seed, 9), NULL) == 0;
            }
        }
        assert_true(sent > 2000);
        weir__amqp_free(client);
        weir__amqp_free(a.e);
        weir__amqp_free(b.e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_may_be_another),
        cmocka_unit_test(a_frame_may_come_in_two_pieces),
        cmocka_unit_test(near_misses_are_told_alike),
        cmocka_unit_test(a_frame_may_end_within_its_head),
        cmocka_unit_test(nothing_is_received_while_an_event_is_in_use),
        cmocka_unit_test(each_frame_has_its_own_time),
        cmocka_unit_test(the_long_way_agrees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
