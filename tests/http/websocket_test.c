/* websocket_test.c - the welcome, and frames of every kind, in every cut, for both sides. */
#include "http/websocket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/http.h"

static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};

/* ---- the welcome ---- */

#define START                                                                                      \
    "GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define PROTOCOL "Sec-WebSocket-Protocol: chat, amqp\r\n"

/* 0: welcome. */
static unsigned ask(const char *head, struct weir__websocket_welcome *out)
{
    struct weir__http_refusal refusal = {0};
    struct weir__http_event ev;
    struct weir__http *h;
    size_t room;
    bool welcome;

    assert_int_equal(weir__http_new(&h, NULL, NULL), 0);
    memcpy(weir__http_input(h, &room), head, strlen(head));
    weir__http_received(h, strlen(head));
    assert_true(weir__http_next(h, &ev));
    assert_int_equal(ev.type, WEIR__HTTP_EVENT_REQUEST);
    welcome = weir__websocket_welcome(ev.request, protocols, out, &refusal);
    assert_int_equal(welcome, refusal.status == 0);
    assert_true(welcome || strlen(refusal.text) > 0);
    weir__http_free(h);
    return refusal.status;
}

static void the_welcome_is_that_of_the_rfc(void **state)
{
    struct weir__websocket_welcome w;

    (void)state;
    assert_int_equal(ask(START KEY VERSION PROTOCOL "\r\n", &w), 0);
    assert_string_equal(w.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_string_equal(w.protocol, "amqp");
    assert_int_equal(ask(START KEY VERSION "Sec-WebSocket-Protocol: amqp,AMQPWSB10\r\n\r\n", &w),
                     0);
    assert_string_equal(w.protocol, "AMQPWSB10");
}

static void what_is_no_websocket_is_refused(void **state)
{
    static const struct {
        unsigned status;
        const char *head;
    } rows[] = {
        {426, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"},
        {426, "GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n" KEY VERSION PROTOCOL "\r\n"},
        {426, "GET /x HTTP/1.0\r\nHost: h\r\nUpgrade: websocket\r\nConnection: "
              "Upgrade\r\n" KEY VERSION PROTOCOL "\r\n"},
        {426, START KEY "Sec-WebSocket-Version: 8\r\n" PROTOCOL "\r\n"},
        {426, START KEY PROTOCOL "\r\n"},
        {400, START VERSION PROTOCOL "\r\n"},
        {400, START "Sec-WebSocket-Key: short\r\n" VERSION PROTOCOL "\r\n"},
        {400, START "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=!\r\n" VERSION PROTOCOL "\r\n"},
        {400, START "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQaa\r\n" VERSION PROTOCOL "\r\n"},
        {400, START KEY VERSION "\r\n"},
        {400, START KEY VERSION "Sec-WebSocket-Protocol: mqtt\r\n\r\n"},
        {400, START KEY VERSION "Sec-WebSocket-Protocol: amqps\r\n\r\n"},
    };
    struct weir__websocket_welcome w;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ask(rows[i].head, &w) != rows[i].status) fail_msg("row %zu", i);
}

/* ---- frames ---- */

/* What came of some bytes: payload, then the frames that we sent, and whether it is closed. */
struct story {
    uint8_t payload[131072];
    size_t payload_len;
    uint8_t out[4096];
    size_t out_len;
    bool closed;
};

static void note(struct weir__websocket *w, struct story *s)
{
    struct weir__bytes b = weir__websocket_payload(w);

    assert_true(b.len <= sizeof s->payload - s->payload_len);
    memcpy(s->payload + s->payload_len, b.at, b.len);
    s->payload_len += b.len;
    weir__websocket_taken(w, b.len);
    b = weir__websocket_output(w);
    assert_true(b.len <= sizeof s->out - s->out_len);
    if (b.len) memcpy(s->out + s->out_len, b.at, b.len);
    s->out_len += b.len;
    weir__websocket_sent(w, b.len);
}

/* Masks that are known beforehand. */
static int fill_mask(void *self, void *out, size_t len, struct weir_error *err)
{
    (void)self, (void)err;
    memcpy(out, "\1\2\3\4", len);
    return 0;
}

static const struct weir__rand mask_of_ours = {fill_mask, NULL};

/* piece 0: as much as there is room for. */
static void play(const struct weir__rand *role, const uint8_t *at, size_t len, size_t piece,
                 struct story *s)
{
    struct weir__websocket *w;

    memset(s, 0, sizeof *s);
    assert_int_equal(weir__websocket_new(&w, role, NULL), 0);
    while (len) {
        size_t room, n;
        uint8_t *to = weir__websocket_input(w, &room);
        if (!to) break;
        n = piece && piece < room ? piece : room;
        if (n > len) n = len;
        memcpy(to, at, n);
        weir__websocket_received(w, n);
        at += n;
        len -= n;
        note(w, s);
    }
    s->closed = weir__websocket_closed(w);
    weir__websocket_free(w);
}

static struct story *play_as(const struct weir__rand *role, const uint8_t *at, size_t len)
{
    static const size_t pieces[] = {1, 2, 3, 7, 100};
    static struct story whole, cut;

    play(role, at, len, 0, &whole);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        play(role, at, len, pieces[i], &cut);
        assert_int_equal(cut.payload_len, whole.payload_len);
        assert_memory_equal(cut.payload, whole.payload, whole.payload_len);
        assert_int_equal(cut.out_len, whole.out_len);
        assert_memory_equal(cut.out, whole.out, whole.out_len);
        assert_int_equal(cut.closed, whole.closed);
    }
    return &whole;
}

/* What a client says to us. */
static struct story *play_all(const uint8_t *at, size_t len)
{
    return play_as(NULL, at, len);
}

/* A frame of a client; of a server, when it is not masked. */
static size_t frame(uint8_t *to, uint8_t first, bool masked, const void *payload, size_t len)
{
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    const uint8_t *from = payload;
    uint8_t *at = to;

    *at++ = first;
    if (len < 126) {
        *at++ = (uint8_t)(len | (masked ? 0x80 : 0));
    } else {
        *at++ = masked ? 0xfe : 126;
        *at++ = (uint8_t)(len >> 8);
        *at++ = (uint8_t)len;
    }
    if (masked) memcpy(at, mask, 4);
    if (masked) at += 4;
    for (size_t i = 0; i < len; i++) *at++ = from[i] ^ (masked ? mask[i & 3] : 0);
    return (size_t)(at - to);
}

#define FIN 0x80
#define CONTINUATION 0
#define TEXT 1
#define BINARY 2
#define CLOSE 8
#define PING 9
#define PONG 10

static void payload_is_a_stream(void **state)
{
    uint8_t wire[70000], data[20000];
    size_t len = 0;
    struct story *s;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
    len += frame(wire + len, FIN | BINARY, true, "abc", 3);
    len += frame(wire + len, FIN | BINARY, true, "", 0);
    len += frame(wire + len, BINARY, true, "de", 2);
    len += frame(wire + len, FIN | PING, true, "hello", 5); /* between the parts of a message */
    len += frame(wire + len, CONTINUATION, true, "f", 1);
    len += frame(wire + len, FIN | PONG, true, "nobody asked", 12);
    len += frame(wire + len, FIN | CONTINUATION, true, "g", 1);
    len += frame(wire + len, FIN | BINARY, true, data, sizeof data);
    s = play_all(wire, len);
    assert_int_equal(s->payload_len, 7 + sizeof data);
    assert_memory_equal(s->payload, "abcdefg", 7);
    assert_memory_equal(s->payload + 7, data, sizeof data);
    assert_int_equal(s->out_len, 7);
    assert_memory_equal(s->out, "\x8a\x05hello", 7);
    assert_false(s->closed);
}

static void mistakes_end_it_with_their_code(void **state)
{
    uint8_t long_ping[126] = {0}, wire[512];
    size_t len, head;
    static const struct {
        const char *what;
        uint8_t first;
        bool masked;
        uint8_t payload; /* bytes */
        unsigned code;   /* 0: wslay says none */
    } rows[] = {
        {"no mask", FIN | BINARY, false, 3, 1002},
        {"a reserved bit", FIN | 0x40 | BINARY, true, 3, 1002},
        {"a reserved opcode", FIN | 3, true, 3, 1002},
        {"a reserved control frame", FIN | 11, true, 3, 1002},
        {"a continuation of nothing", FIN | CONTINUATION, true, 3, 1002},
        {"a ping in parts", PING, true, 3, 0},
        {"a ping that is too long", FIN | PING, true, 126, 0},
        {"text", FIN | TEXT, true, 3, 1003},
        {"a close without a mask", FIN | CLOSE, false, 0, 1002},
        {"a close with half a code", FIN | CLOSE, true, 1, 0},
        {"a close with a code that must not be", FIN | CLOSE, true, 2, 1002}, /* 0 */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct story *s;
        unsigned code;
        head = frame(wire, FIN | BINARY, true, "ok", 2);
        len = head + frame(wire + head, rows[i].first, rows[i].masked, long_ping, rows[i].payload);
        len += frame(wire + len, FIN | BINARY, true, "late", 4);
        s = play_all(wire, len);
        code = s->out_len < 4 ? 0 : (unsigned)(s->out[2] << 8 | s->out[3]);
        if (!s->closed || s->payload_len != 2 || s->out[0] != (FIN | CLOSE) || code != rows[i].code)
            fail_msg("%s: closed %d, payload %zu, %02x with code %u", rows[i].what, s->closed,
                     s->payload_len, s->out[0], code);
    }
}

static void a_close_is_answered(void **state)
{
    uint8_t wire[64];
    size_t len = frame(wire, FIN | CLOSE, true,
                       "\x03\xe8"
                       "bye",
                       5);
    struct story *s = play_all(wire, len);

    (void)state;
    assert_true(s->closed);
    assert_true(s->out_len >= 4);
    assert_memory_equal(s->out, "\x88\x05\x03\xe8", 4);
    len = frame(wire, FIN | CLOSE, true, "", 0);
    s = play_all(wire, len);
    assert_true(s->closed && s->out_len >= 2 && s->out[0] == (FIN | CLOSE));
}

static void frames_have_a_limit(void **state)
{
    static const uint8_t wire[] = {FIN | BINARY, 0xff, 0, 0, 0, 0, 4, 0, 0, 1, 1, 2, 3, 4, 9, 9};
    struct story *s = play_all(wire, sizeof wire); /* 64 MiB and one byte */

    (void)state;
    assert_true(s->closed && s->payload_len == 0);
    assert_memory_equal(s->out, "\x88\x02\x03\xf1", 4); /* 1009 */
}

static void messages_are_framed_within_limits(void **state)
{
    static uint8_t data[2 * WEIR__WEBSOCKET_MESSAGE_MAX];
    struct weir__websocket *w;
    struct weir__bytes out;

    (void)state;
    assert_int_equal(weir__websocket_new(&w, NULL, NULL), 0);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of(NULL, 0)), 0);
    assert_int_equal(weir__websocket_output(w).len, 0);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("hi", 2)), 2);
    out = weir__websocket_output(w);
    assert_int_equal(out.len, 4);
    assert_memory_equal(out.at, "\x82\x02hi", 4);
    weir__websocket_sent(w, 1);
    out = weir__websocket_output(w);
    assert_int_equal(out.len, 3);
    weir__websocket_sent(w, 3);
    assert_int_equal(weir__websocket_output(w).len, 0);

    assert_int_equal(weir__websocket_send(w, weir__bytes_of(data, sizeof data)),
                     WEIR__WEBSOCKET_MESSAGE_MAX);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of(data, sizeof data)), 0); /* full */
    out = weir__websocket_output(w);
    assert_int_equal(out.len, WEIR__WEBSOCKET_MESSAGE_MAX + 10);
    assert_memory_equal(out.at, "\x82\x7f\0\0\0\0\0\1\0\0", 10);
    weir__websocket_sent(w, out.len);

    weir__websocket_close(w);
    weir__websocket_close(w);
    assert_true(weir__websocket_closed(w));
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("hi", 2)), 0);
    out = weir__websocket_output(w);
    assert_int_equal(out.len, 4);
    assert_memory_equal(out.at, "\x88\x02\x03\xe8", 4);
    weir__websocket_free(w);
}

static void a_client_is_the_other_side(void **state)
{
    static uint8_t data[WEIR__WEBSOCKET_MESSAGE_MAX];
    struct weir__websocket *w;
    struct weir__bytes out;
    uint8_t wire[300];
    struct story *s;
    size_t len;

    (void)state;
    len = frame(wire, FIN | BINARY, false, "abc", 3);
    len += frame(wire + len, FIN | PING, false, "hello", 5);
    len += frame(wire + len, FIN | BINARY, false, data, 200);
    s = play_as(&mask_of_ours, wire, len);
    assert_int_equal(s->payload_len, 203);
    assert_memory_equal(s->payload, "abc", 3);
    assert_int_equal(s->out_len, 11);
    assert_memory_equal(s->out, "\x8a\x85\1\2\3\4\x69\x67\x6f\x68\x6e", 11);
    assert_false(s->closed);

    len = frame(wire, FIN | BINARY, true, "abc", 3); /* a server has no mask */
    s = play_as(&mask_of_ours, wire, len);
    assert_true(s->closed && s->payload_len == 0);
    assert_memory_equal(s->out, "\x88\x82\1\2\3\4\x02\xe8", 8); /* 1002 */

    assert_int_equal(weir__websocket_new(&w, &mask_of_ours, NULL), 0);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("hi", 2)), 2);
    out = weir__websocket_output(w);
    assert_int_equal(out.len, 8);
    assert_memory_equal(out.at, "\x82\x82\1\2\3\4\x69\x6b", 8);
    weir__websocket_sent(w, out.len);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of(data, sizeof data)), sizeof data);
    assert_int_equal(weir__websocket_output(w).len, sizeof data + 14);
    weir__websocket_free(w);
}

static int refuse_mask(void *self, void *out, size_t len, struct weir_error *err)
{
    (void)self, (void)out, (void)len;
    return weir__fail(err, WEIR_EIO, "no chance today");
}

/* A frame without a mask must not leave. */
static void without_chance_a_client_is_silent(void **state)
{
    const struct weir__rand none = {refuse_mask, NULL};
    struct weir__websocket *w;

    (void)state;
    assert_int_equal(weir__websocket_new(&w, &none, NULL), 0);
    weir__websocket_send(w, weir__bytes_of("hi", 2));
    assert_int_equal(weir__websocket_output(w).len, 0);
    assert_true(weir__websocket_closed(w));
    weir__websocket_free(w);
}

static void who_does_not_read_is_not_read(void **state)
{
    uint8_t wire[4096], text[120] = {0};
    struct weir__websocket *w;
    size_t len = 0, came = 0, room;

    (void)state;
    while (len + 126 <= sizeof wire) len += frame(wire + len, FIN | PING, true, text, 120);
    assert_int_equal(weir__websocket_new(&w, NULL, NULL), 0);
    for (uint8_t *to; came < (4 << 20) && (to = weir__websocket_input(w, &room)); came += len) {
        memcpy(to, wire, len);
        weir__websocket_received(w, len);
        weir__websocket_output(w); /* looked at, never written */
    }
    assert_in_range(came, WEIR__WEBSOCKET_OUTPUT_MAX / 2, 2 * WEIR__WEBSOCKET_OUTPUT_MAX);
    while (weir__websocket_output(w).len) weir__websocket_sent(w, weir__websocket_output(w).len);
    assert_non_null(weir__websocket_input(w, &room));
    weir__websocket_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_welcome_is_that_of_the_rfc),
        cmocka_unit_test(what_is_no_websocket_is_refused),
        cmocka_unit_test(payload_is_a_stream),
        cmocka_unit_test(mistakes_end_it_with_their_code),
        cmocka_unit_test(a_close_is_answered),
        cmocka_unit_test(frames_have_a_limit),
        cmocka_unit_test(messages_are_framed_within_limits),
        cmocka_unit_test(a_client_is_the_other_side),
        cmocka_unit_test(without_chance_a_client_is_silent),
        cmocka_unit_test(who_does_not_read_is_not_read),
    };

    return cmocka_run_group_tests_name("websocket", tests, NULL, NULL);
}
