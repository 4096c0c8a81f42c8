/* limits_test.c - each limit of a connection at its last good value and at the first bad one, and
 * what may not be said or asked for at the wrong time. */
#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define PUT "PUT / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED PUT "Transfer-Encoding: chunked\r\n\r\n"

static struct weir__http_event event;
static struct weir_error err;

static struct weir__http *new_http(struct weir__http_limits limits)
{
    struct weir__http *h;

    assert_int_equal(weir__http_new(&h, &limits, NULL), 0);
    return h;
}

static void put(struct weir__http *h, const char *text)
{
    size_t len = strlen(text), room;

    while (len) {
        uint8_t *to = weir__http_input(h, &room);
        assert_true(room > 0);
        if (room > len) room = len;
        memcpy(to, text, room);
        weir__http_received(h, room);
        text += room;
        len -= room;
    }
}

static void put_many(struct weir__http *h, char byte, size_t count)
{
    char *text = malloc(count + 1);

    assert_non_null(text);
    memset(text, byte, count);
    text[count] = '\0';
    put(h, text);
    free(text);
}

static void take(struct weir__http *h, enum weir__http_event_type type)
{
    do {
        assert_true(weir__http_next(h, &event));
    } while (event.type != type);
}

static struct weir__bytes text_of(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

static void expect_output(struct weir__http *h, const char *text)
{
    struct weir__bytes out = weir__http_output(h);

    if (out.len != strlen(text) || (out.len && memcmp(out.at, text, out.len) != 0))
        fail_msg("'%.*s' is not '%s'", (int)out.len, out.len ? (const char *)out.at : "", text);
    weir__http_sent(h, out.len);
}

/* The status of a refusal; 0: none. */
static unsigned refusal_of(struct weir__http *h)
{
    unsigned status = 0;

    while (weir__http_next(h, &event))
        if (event.type == WEIR__HTTP_EVENT_REFUSED) status = event.refusal.status;
    weir__http_free(h);
    return status;
}

static unsigned send_filled(struct weir__http_limits limits, const char *begin, size_t count,
                            const char *end)
{
    struct weir__http *h = new_http(limits);

    put(h, begin);
    put_many(h, 'x', count);
    put(h, end);
    return refusal_of(h);
}

static void heads_and_bodies_end_where_they_should(void **state)
{
    const struct weir__http_limits none = {0}, small = {.target_bytes = 50},
                                   ten = {.body_bytes = 10};
    const struct weir__http_limits window = {.window_bytes = 200};
    const size_t head = 16384 - strlen(GET "A: \r\n\r\n"), line = 50 + 32;
    const char *rest = " / HTTP/1.1\r\n"; /* 13 bytes */

    (void)state;
    assert_int_equal(send_filled(none, GET "A: ", head, "\r\n\r\n"), 0);
    assert_int_equal(send_filled(none, GET "A: ", head + 1, "\r\n\r\n"), 431);
    assert_int_equal(send_filled(small, "", line, ""), 0);
    assert_int_equal(send_filled(small, "", line + 1, ""), 414);
    assert_int_equal(send_filled(small, "", line + 1 - 13, rest), 0);
    assert_int_equal(send_filled(small, "", line + 2 - 13, rest), 414);
    assert_int_equal(send_filled(none, PUT "Content-Length: 1048576\r\n\r\n", 0, ""), 0);
    assert_int_equal(send_filled(none, CHUNKED "100000\r\n", 0, ""), 0);
    assert_int_equal(send_filled(ten, CHUNKED "6\r\n", 6, "\r\n4\r\n"), 0);
    assert_int_equal(send_filled(ten, CHUNKED "6\r\n", 6, "\r\n5\r\n"), 413);
    assert_int_equal(send_filled(window, CHUNKED "0\r\nA: ", 100 - 7, "\r\n\r\n"), 0);
    assert_int_equal(send_filled(window, CHUNKED "0\r\nA: ", 101 - 7, "\r\n\r\n"), 431);
}

/* Eight bytes tell a stranger from somebody who speaks HTTP slowly. */
static void strangers_are_known_by_eight_bytes(void **state)
{
    static const struct {
        const char *raw;
        unsigned status;
    } rows[] = {{"GET /abc\x7f", 0},  {"GET /ab\x7f", 400}, {"GET /ab~", 0}, {"GET /ab\x1f", 400},
                {"GET /ab\x80", 400}, {"GET /ab ", 0},      {"~", 0},        {"\x7f", 400}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__http *h = new_http((struct weir__http_limits){0});
        put(h, rows[i].raw);
        if (refusal_of(h) != rows[i].status) fail_msg("row %zu", i);
    }
}

static void each_request_may_have_an_empty_line_before_it(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, "\r\n" GET "\r\n\r\n" GET "\r\n");
    for (int i = 0; i < 2; i++) {
        take(h, WEIR__HTTP_EVENT_END);
        assert_int_equal(weir__http_reply(h, 204, NULL, text_of(""), NULL), 0);
    }
    assert_int_equal(weir__http_rest(h).len, 0);
    assert_null(weir__http_rest(h).at);
    weir__http_free(h);
}

/* A line behind a body is not the beginning of a head, which would have to come soon. */
static void an_empty_line_alone_is_no_request(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    assert_false(weir__http_next(h, &event));
    put(h, "\r\n");
    assert_false(weir__http_next(h, &event));
    assert_int_equal(weir__http_rest(h).len, 0);
    assert_int_equal(weir__http_tick(h, 0), 1000);
    assert_false(weir__http_next(h, &event));
    put(h, GET "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    weir__http_free(h);
}

static void answer_a_body_of_six(struct weir__http *h)
{
    put(h, PUT "Content-Length: 6\r\n\r\nxxxxxx");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 204, NULL, text_of(""), NULL), 0);
    expect_output(h, "HTTP/1.1 204 No Content\r\n\r\n");
}

/* The limit, the wait for "100 Continue" and the rate all look at how much there was of a body. */
static void each_body_is_counted_from_its_beginning(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){.body_bytes = 10});

    (void)state;
    answer_a_body_of_six(h);
    put(h, CHUNKED "a\r\nxxxxxxxxxx\r\n0\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    weir__http_free(h);

    h = new_http((struct weir__http_limits){0});
    answer_a_body_of_six(h);
    put(h, PUT "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    assert_false(weir__http_next(h, &event));
    expect_output(h, "HTTP/1.1 100 Continue\r\n\r\n");
    weir__http_free(h);

    h = new_http((struct weir__http_limits){.body_rate = 1000});
    answer_a_body_of_six(h);
    put(h, PUT "Content-Length: 4\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    weir__http_tick(h, 0);
    weir__http_tick(h, 10001);
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

/* Small limits of both parts: all of the buffer can be used, and no more. */
static void a_buffer_is_as_large_as_its_limits(void **state)
{
    struct weir__http *h =
        new_http((struct weir__http_limits){.head_bytes = 100, .window_bytes = 60});
    size_t room, before = weir__http_memory(h);

    (void)state;
    assert_int_equal(weir__http_buffered(h), 0);
    put_many(h, 'x', 159);
    assert_non_null(weir__http_input(h, &room));
    assert_int_equal(room, 1);
    put(h, "x");
    assert_null(weir__http_input(h, &room));
    assert_int_equal(room, 0);
    assert_int_equal(weir__http_buffered(h), 160);
    assert_int_equal(weir__http_memory(h), before + 160);
    weir__http_free(h);
    h = new_http((struct weir__http_limits){0});
    assert_non_null(weir__http_input(h, &room));
    assert_true(room >= 4096);
    put(h, GET "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 200, NULL, text_of("ok"), NULL), 0);
    assert_int_equal(weir__http_memory(h), before + weir__http_buffered(h));
    weir__http_ended(h);
    assert_null(weir__http_input(h, &room));
    assert_int_equal(room, 0);
    weir__http_free(h);
}

/* Nobody who has begun to send the body, or to read the answer, waits for "100 Continue". */
static void continue_is_said_when_it_is_waited_for(void **state)
{
    static const struct {
        const char *raw;
        bool answers;
        const char *says;
    } rows[] = {
        {PUT "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n", false,
         "HTTP/1.1 100 Continue\r\n\r\n"},
        {PUT "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", false,
         "HTTP/1.1 100 Continue\r\n\r\n"},
        {PUT "Expect: 100-continue\r\nContent-Length: 4\r\n\r\nhi", false, ""},
        {PUT "Content-Length: 4\r\n\r\n", false, ""},
        {PUT "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n", true,
         "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"},
    };
    const struct weir__http_response r = {.status = 200, .length = 3};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__http *h = new_http((struct weir__http_limits){0});
        put(h, rows[i].raw);
        take(h, WEIR__HTTP_EVENT_REQUEST);
        if (rows[i].answers) assert_int_equal(weir__http_respond(h, &r, NULL), 0);
        while (weir__http_next(h, &event)) assert_int_equal(event.type, WEIR__HTTP_EVENT_BODY);
        expect_output(h, rows[i].says);
        weir__http_free(h);
    }
}

/* A refusal in the middle of an answer, or behind one, would be taken for a part of it. */
static void a_refusal_does_not_mix_with_an_answer(void **state)
{
    const struct weir__http_response r = {.status = 200, .length = 3};
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, CHUNKED "no size");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    take(h, WEIR__HTTP_EVENT_REFUSED);
    expect_output(h, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
    assert_int_equal(weir__http_write(h, text_of("abc"), &err), WEIR_ECLOSED);
    assert_int_equal(weir__http_finish(h, &err), WEIR_ECLOSED);
    assert_string_equal(err.text, "HTTP: the connection is closed");
    weir__http_free(h);

    h = new_http((struct weir__http_limits){.head_ms = 10});
    put(h, PUT "Content-Length: 4\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    assert_int_equal(weir__http_reply(h, 403, NULL, text_of(""), NULL), 0);
    expect_output(h, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(weir__http_reply(h, 403, NULL, text_of(""), &err), WEIR_EINVAL);
    assert_string_equal(err.text, "HTTP: there is no request to answer");
    weir__http_tick(h, 0);
    weir__http_tick(h, 2000);
    take(h, WEIR__HTTP_EVENT_REFUSED);
    assert_int_equal(event.refusal.status, 408);
    expect_output(h, "");
    weir__http_free(h);
}

static void a_body_that_nobody_wants_has_a_limit(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct weir__http *h = new_http((struct weir__http_limits){0});
        char head[128];
        snprintf(head, sizeof head, PUT "Content-Length: %u\r\n\r\n", 65536 + more);
        put(h, head);
        take(h, WEIR__HTTP_EVENT_REQUEST);
        assert_int_equal(weir__http_reply(h, 403, NULL, text_of(""), NULL), 0);
        assert_int_equal(weir__http_closed(h), more);
        weir__http_free(h);
    }
}

/* Time, to the millisecond. */

static void an_idle_connection_keeps_what_it_has_to_say(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, GET "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 204, NULL, text_of(""), NULL), 0);
    assert_int_equal(weir__http_tick(h, 0), 1000);
    assert_int_equal(weir__http_tick(h, 999), 1000);
    assert_true(weir__http_buffered(h) > 4096);
    assert_int_equal(weir__http_tick(h, 1000), 60000);
    assert_true(weir__http_buffered(h) < 4096);
    expect_output(h, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(weir__http_tick(h, 59999), 60000);
    assert_int_equal(weir__http_buffered(h), 0);
    assert_false(weir__http_closed(h));
    assert_int_equal(weir__http_tick(h, 60000), INT64_MAX);
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

/* 1024 bytes last for a second, once the first ten are over. */
static void a_body_has_a_least_rate(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    size_t room;

    (void)state;
    put(h, PUT "Content-Length: 100000\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    put_many(h, 'x', 1024);
    take(h, WEIR__HTTP_EVENT_BODY);
    assert_int_equal(weir__http_tick(h, 500), 10500);
    assert_int_equal(weir__http_tick(h, 10499), 10500);
    assert_int_equal(weir__http_tick(h, 10500), 11500);
    assert_int_equal(weir__http_tick(h, 11500), 12500);
    assert_false(weir__http_closed(h));
    assert_int_equal(weir__http_tick(h, 11501), INT64_MAX);
    assert_null(weir__http_input(h, &room));
    take(h, WEIR__HTTP_EVENT_REFUSED);
    assert_string_equal(event.refusal.text, "the body comes too slowly");
    weir__http_free(h);
}

static void a_full_window_stops_the_clock(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, PUT "Content-Length: 100000\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    put_many(h, 'x', 16383);
    assert_int_equal(weir__http_tick(h, 0), 10000);
    put(h, "x");
    assert_int_equal(weir__http_tick(h, 0), INT64_MAX);
    weir__http_free(h);
}

/* It is the owner who is slow now. */
static void a_whole_body_stops_the_clock(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, PUT "Content-Length: 4\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    assert_int_equal(weir__http_tick(h, 0), 10000);
    put(h, "xxxx");
    take(h, WEIR__HTTP_EVENT_BODY);
    assert_int_equal(weir__http_tick(h, 0), INT64_MAX);
    weir__http_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_bodies_end_where_they_should),
        cmocka_unit_test(strangers_are_known_by_eight_bytes),
        cmocka_unit_test(each_request_may_have_an_empty_line_before_it),
        cmocka_unit_test(an_empty_line_alone_is_no_request),
        cmocka_unit_test(each_body_is_counted_from_its_beginning),
        cmocka_unit_test(a_buffer_is_as_large_as_its_limits),
        cmocka_unit_test(continue_is_said_when_it_is_waited_for),
        cmocka_unit_test(a_refusal_does_not_mix_with_an_answer),
        cmocka_unit_test(a_body_that_nobody_wants_has_a_limit),
        cmocka_unit_test(an_idle_connection_keeps_what_it_has_to_say),
        cmocka_unit_test(a_body_has_a_least_rate),
        cmocka_unit_test(a_full_window_stops_the_clock),
        cmocka_unit_test(a_whole_body_stops_the_clock),
    };

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
