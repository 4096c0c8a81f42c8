/* frames_test.c - a WebSocket whose bytes come and go in parts, at the limits of its buffers, and
 * the reasons why a request does not become one. */
#include "http/websocket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "http/http.h"

static uint8_t data[WEIR__WEBSOCKET_MESSAGE_MAX];

static struct weir__websocket *new_socket(void)
{
    struct weir__websocket *w;

    assert_int_equal(weir__websocket_new(&w, NULL, NULL), 0);
    return w;
}

static void receive(struct weir__websocket *w, const char *at, size_t len)
{
    size_t room;
    uint8_t *to = weir__websocket_input(w, &room);

    assert_true(to && room >= len);
    memcpy(to, at, len);
    weir__websocket_received(w, len);
}

static void send_whole(struct weir__websocket *w, size_t len)
{
    assert_int_equal(weir__websocket_send(w, weir__bytes_of(data, len)), len);
}

static void expect_bytes(struct weir__bytes b, const char *text)
{
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.at, text, b.len);
}

static void messages_follow_one_that_is_half_sent(void **state)
{
    struct weir__websocket *w = new_socket();

    (void)state;
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("hello", 5)), 5);
    weir__websocket_sent(w, 3);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("again", 5)), 5);
    expect_bytes(weir__websocket_output(w), "ello\x82\x05"
                                            "again");
    weir__websocket_sent(w, 5);
    weir__websocket_close(w);
    expect_bytes(weir__websocket_output(w), "\x05"
                                            "again\x88\x02\x03\xe8");
    weir__websocket_sent(w, 10);
    assert_int_equal(weir__websocket_output(w).len, 0);
    weir__websocket_free(w);
    weir__websocket_free(NULL);
}

/* Nothing is read before all of it was taken. */
static void payload_is_taken_in_parts(void **state)
{
    struct weir__websocket *w = new_socket();
    size_t room;

    (void)state;
    receive(w, "\x82\x86\0\0\0\0abcdef", 12);
    expect_bytes(weir__websocket_payload(w), "abcdef");
    weir__websocket_taken(w, 2);
    expect_bytes(weir__websocket_payload(w), "cdef");
    assert_null(weir__websocket_input(w, &room));
    assert_int_equal(room, 0);
    weir__websocket_taken(w, 4);
    assert_int_equal(weir__websocket_payload(w).len, 0);
    receive(w, "\x82\x81\0\0\0\0g", 7);
    expect_bytes(weir__websocket_payload(w), "g");
    weir__websocket_free(w);
}

static void the_largest_frame_passes(void **state)
{
    struct weir__websocket *w = new_socket();

    (void)state;
    receive(w, "\x82\xff\0\0\0\0\4\0\0\0\0\0\0\0first", 19);
    expect_bytes(weir__websocket_payload(w), "first");
    assert_false(weir__websocket_closed(w));
    weir__websocket_free(w);
}

/* A message waits with its head, for which 14 bytes are kept; one of ours has 4 or 10. */
static void output_is_used_to_its_last_byte(void **state)
{
    const size_t rest = WEIR__WEBSOCKET_OUTPUT_MAX - (WEIR__WEBSOCKET_MESSAGE_MAX + 10) - 14;
    struct weir__websocket *w = new_socket();
    size_t room;

    (void)state;
    send_whole(w, WEIR__WEBSOCKET_MESSAGE_MAX);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of(data, rest + 1)), 0);
    send_whole(w, rest);
    assert_int_equal(weir__websocket_output(w).len, WEIR__WEBSOCKET_OUTPUT_MAX - 10);
    weir__websocket_free(w);

    w = new_socket();
    send_whole(w, WEIR__WEBSOCKET_OUTPUT_MAX / 2 - 4);
    assert_non_null(weir__websocket_input(w, &room)); /* half of it: we read on */
    assert_int_equal(room, WEIR__WEBSOCKET_INPUT_BYTES);
    send_whole(w, 1);
    assert_null(weir__websocket_input(w, &room));
    assert_int_equal(room, 0);
    weir__websocket_sent(w, 3);
    assert_non_null(weir__websocket_input(w, &room));
    weir__websocket_free(w);
}

#define WANTED "A WebSocket is wanted here: GET with Upgrade: websocket."
#define VERSION "Sec-WebSocket-Version must be 13."
#define KEY "Sec-WebSocket-Key is not 16 bytes in base64."
#define PROTOCOL "Sec-WebSocket-Protocol must have AMQPWSB10 or amqp."
#define GOOD_KEY "dGhlIHNhbXBsZSBub25jZQ=="

/* Each row differs from a good request, the first, in one word. */
static void one_wrong_word_is_enough(void **state)
{
    static const struct {
        const char *method, *minor, *upgrade, *connection, *version, *key, *protocol, *text;
        unsigned status;
    } rows[] = {
        {"GET", "1", "websocket", "upgrade", "13", GOOD_KEY, "amqp", "", 0},
        {"PUT", "1", "websocket", "upgrade", "13", GOOD_KEY, "amqp", WANTED, 426},
        {"GET", "0", "websocket", "upgrade", "13", GOOD_KEY, "amqp", WANTED, 426},
        {"GET", "1", "websockets", "upgrade", "13", GOOD_KEY, "amqp", WANTED, 426},
        {"GET", "1", "websocket", "close", "13", GOOD_KEY, "amqp", WANTED, 426},
        {"GET", "1", "websocket", "upgrade", "14", GOOD_KEY, "amqp", VERSION, 426},
        {"GET", "1", "websocket", "upgrade", "23", GOOD_KEY, "amqp", VERSION, 426},
        {"GET", "1", "websocket", "upgrade", "1", GOOD_KEY, "amqp", VERSION, 426},
        {"GET", "1", "websocket", "upgrade", "133", GOOD_KEY, "amqp", VERSION, 426},
        {"GET", "1", "websocket", "upgrade", "13", GOOD_KEY "=", "amqp", KEY, 400},
        {"GET", "1", "websocket", "upgrade", "13", "dGhlIHNhbXBsZSBub25jZQ=", "amqp", KEY, 400},
        {"GET", "1", "websocket", "upgrade", "13", "dGhlIHNhbXBsZSBub25jZQa=", "amqp", KEY, 400},
        {"GET", "1", "websocket", "upgrade", "13", "dGhlIHNhbXBsZSBub25jZ!==", "amqp", KEY, 400},
        {"GET", "1", "websocket", "upgrade", "13", GOOD_KEY, "mqtt", PROTOCOL, 400},
    };
    static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__http_refusal refusal = {0, ""};
        struct weir__websocket_welcome welcome;
        struct weir__http_event ev;
        struct weir__http *h;
        size_t room;
        int len;

        assert_int_equal(weir__http_new(&h, NULL, NULL), 0);
        len = snprintf((char *)weir__http_input(h, &room), 1024,
                       "%s / HTTP/1.%s\r\nHost: h\r\nUpgrade: %s\r\nConnection: %s\r\n"
                       "Sec-WebSocket-Version: %s\r\nSec-WebSocket-Key: %s\r\n"
                       "Sec-WebSocket-Protocol: %s\r\n\r\n",
                       rows[i].method, rows[i].minor, rows[i].upgrade, rows[i].connection,
                       rows[i].version, rows[i].key, rows[i].protocol);
        weir__http_received(h, (size_t)len);
        assert_true(weir__http_next(h, &ev));
        if (weir__websocket_welcome(ev.request, protocols, &welcome, &refusal) != !rows[i].status)
            fail_msg("row %zu", i);
        assert_int_equal(refusal.status, rows[i].status);
        assert_string_equal(refusal.text, rows[i].text);
        weir__http_free(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_follow_one_that_is_half_sent),
        cmocka_unit_test(payload_is_taken_in_parts),
        cmocka_unit_test(the_largest_frame_passes),
        cmocka_unit_test(output_is_used_to_its_last_byte),
        cmocka_unit_test(one_wrong_word_is_enough),
    };

    return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
