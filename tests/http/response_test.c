#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define H "Host: a\r\n"
#define WHOLE "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "

static struct weir__http *new_http(struct weir__http_limits limits)
{
    struct weir__http *h;

    assert_int_equal(weir__http_new(&h, &limits, NULL), 0);
    return h;
}

static void put(struct weir__http *h, const char *raw)
{
    size_t room, len = strlen(raw);
    uint8_t *to = weir__http_input(h, &room);

    assert_true(room >= len);
    for (size_t i = 0; i < len; i++) to[i] = (uint8_t)raw[i];
    weir__http_received(h, len);
}

/* Takes events up to one of this type. */
static struct weir__http_event take(struct weir__http *h, enum weir__http_event_type type)
{
    struct weir__http_event ev;

    do {
        assert_true(weir__http_next(h, &ev));
    } while (ev.type != type);
    return ev;
}

static void expect_output(struct weir__http *h, const char *text)
{
    struct weir__bytes out = weir__http_output(h);

    if (out.len != strlen(text) || (out.len && memcmp(out.at, text, out.len) != 0))
        fail_msg("'%.*s' is not '%s'", (int)out.len, out.len ? (const char *)out.at : "", text);
    weir__http_sent(h, out.len);
    assert_int_equal(weir__http_output(h).len, 0);
}

static struct weir__bytes text_of(const char *s)
{
    return weir__bytes_of(s, strlen(s));
}

static void reply(struct weir__http *h, unsigned status, const char *body)
{
    assert_int_equal(weir__http_reply(h, status, "text/plain", text_of(body), NULL), 0);
}

static void replies(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, "GET / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    reply(h, 200, "hello");
    expect_output(h,
                  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    put(h, "HEAD / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    reply(h, 404, "hello");
    expect_output(
        h, "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n");
    put(h, "DELETE / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 204, NULL, text_of(""), NULL), 0);
    expect_output(h, "HTTP/1.1 204 No Content\r\n\r\n");
    put(h, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 200, NULL, text_of("x"), NULL), 0);
    expect_output(h, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx");
    assert_false(weir__http_closed(h));
    put(h, "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 200, NULL, text_of("x"), NULL), 0);
    expect_output(h, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
    assert_true(weir__http_closed(h));
    assert_int_equal(weir__http_reply(h, 200, NULL, text_of("x"), NULL), WEIR_ECLOSED);
    weir__http_free(h);
}

static void streams_a_body(void **state)
{
    struct weir__http_field fields[] = {weir__http_field_of("ETag", "\"1\""),
                                        weir__http_field_of("x-ms-version", "2021-12-02")};
    struct weir__http_response r = {.status = 200,
                                    .length = WEIR__HTTP_CHUNKED,
                                    .fields = fields,
                                    .field_count = 2};
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, "GET / HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.0\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    assert_int_equal(weir__http_respond(h, &r, NULL), WEIR_EINVAL);
    assert_int_equal(weir__http_write(h, text_of("hello, world"), NULL), 0);
    assert_int_equal(weir__http_write(h, text_of(""), NULL), 0); /* would be the end */
    assert_int_equal(weir__http_write(h, text_of("!"), NULL), 0);
    assert_int_equal(weir__http_finish(h, NULL), 0);
    expect_output(h, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nx-ms-version: 2021-12-02\r\n"
                     "Transfer-Encoding: chunked\r\n\r\nc\r\nhello, world\r\n1\r\n!\r\n0\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    r.field_count = 0;
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    assert_int_equal(weir__http_write(h, text_of("old"), NULL), 0);
    assert_int_equal(weir__http_finish(h, NULL), 0);
    expect_output(h, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nold");
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

/* Nothing that an owner passes on can split a response. */
static void refuses_bad_responses(void **state)
{
    static const char *const bad[][2] = {
        {"A", "b\r\nC: d"},
        {"A", "b\nC: d"},
        {"A", "b\rC: d"},
        {"A\r\nB", "c"},
        {"A B", "c"},
        {"", "c"},
        {"A:", "c"},
        {"Content-Length", "1"},
        {"CONTENT-LENGTH", "1"},
        {"transfer-encoding", "chunked"},
        {"TRANSFER-ENCODING", "chunked"},
        {"A", "\x7f"},
        {"Connection", "close"},
        {"CONNECTION", "close"},
    };
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_response r = {.status = 200, .length = 3, .field_count = 1};

    (void)state;
    assert_int_equal(weir__http_reply(h, 200, NULL, text_of(""), NULL), WEIR_EINVAL);
    assert_int_equal(weir__http_finish(h, NULL), WEIR_EINVAL);
    put(h, "GET / HTTP/1.1\r\n" H "\r\nGET / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir__http_field f = weir__http_field_of(bad[i][0], bad[i][1]);
        r.fields = &f;
        if (weir__http_respond(h, &r, NULL) != WEIR_EINVAL)
            fail_msg("%s: %s", bad[i][0], bad[i][1]);
    }
    r.field_count = 0;
    r.status = 100;
    assert_int_equal(weir__http_respond(h, &r, NULL), WEIR_EINVAL);
    r.status = 1000;
    assert_int_equal(weir__http_respond(h, &r, NULL), WEIR_EINVAL);
    expect_output(h, "");
    r.status = 200;
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    assert_int_equal(weir__http_write(h, text_of("four"), NULL), WEIR_EINVAL);
    assert_int_equal(weir__http_write(h, text_of("3"), NULL), 0);
    assert_int_equal(weir__http_finish(h, NULL), WEIR_EINVAL); /* too short: closed */
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

static void only_its_own_fields_are_for_the_codec(void **state)
{
    static const char wire[] = "Content-Lengths";
    struct weir__http_field f = {.name = weir__bytes_of(wire, 14), .value = text_of("1")};
    struct weir__http_response r = {.status = 200, .fields = &f, .field_count = 1};
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, "GET / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_respond(h, &r, NULL), WEIR_EINVAL);
    f.name = text_of("Xontent-Length");
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    weir__http_free(h);
}

static void output_has_a_limit(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){.output_bytes = 1000});
    struct weir__http_response r = {.status = 200, .length = 1200};
    static char piece[1001];
    struct weir__bytes part = weir__bytes_of(piece, 400);

    (void)state;
    put(h, "GET / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_reply(h, 200, NULL, weir__bytes_of(piece, 1001), NULL),
                     WEIR_ETOOBIG);
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    assert_int_equal(weir__http_write(h, weir__bytes_of(piece, 1001), NULL), WEIR_ETOOBIG);
    assert_int_equal(weir__http_write(h, part, NULL), 0);
    assert_int_equal(weir__http_write(h, part, NULL), 0);
    assert_int_equal(weir__http_write(h, part, NULL), WEIR_EBUSY);
    weir__http_sent(h, 300); /* a part of it makes room, too */
    assert_int_equal(weir__http_write(h, part, NULL), 0);
    assert_int_equal(weir__http_finish(h, NULL), 0);
    assert_true(weir__http_output(h).len < 1024);
    weir__http_free(h);
}

/* Refused at once, small bodies are skipped; large ones and those of unknown size end the
 * connection. */
static void answers_before_the_body(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){.skip_bytes = 10});
    struct weir__http_event ev;

    (void)state;
    put(h, "POST /1 HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\n01234");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    reply(h, 403, "");
    assert_false(weir__http_next(h, &ev));
    assert_false(weir__http_closed(h));
    put(h, "56789POST /2 HTTP/1.1\r\n" H "Content-Length: 11\r\n\r\n");
    ev = take(h, WEIR__HTTP_EVENT_REQUEST);
    assert_memory_equal(ev.request->path.at, "/2", 2);
    weir__http_sent(h, weir__http_output(h).len);
    reply(h, 403, "");
    expect_output(h, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n"
                     "Connection: close\r\n\r\n");
    assert_true(weir__http_closed(h));
    weir__http_free(h);

    h = new_http((struct weir__http_limits){0});
    put(h, "POST /3 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab");
    take(h, WEIR__HTTP_EVENT_BODY);
    reply(h, 403, ""); /* behind its last byte */
    assert_false(weir__http_next(h, &ev));
    assert_false(weir__http_closed(h));
    put(h, "POST /4 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    reply(h, 403, "");
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

static void says_continue_when_the_body_is_wanted(void **state)
{
    static const char expecting[] =
        "PUT / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev;

    (void)state;
    put(h, expecting);
    take(h, WEIR__HTTP_EVENT_REQUEST);
    expect_output(h, "");
    assert_false(weir__http_next(h, &ev));
    assert_false(weir__http_next(h, &ev)); /* once */
    expect_output(h, "HTTP/1.1 100 Continue\r\n\r\n");
    put(h, "hi");
    take(h, WEIR__HTTP_EVENT_END);
    reply(h, 201, "");
    weir__http_sent(h, weir__http_output(h).len);
    put(h, expecting); /* refused: it may or may not send the body, so that is the end */
    take(h, WEIR__HTTP_EVENT_REQUEST);
    reply(h, 403, "");
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

static void a_refusal_is_readable(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev;
    size_t room;

    (void)state;
    put(h, "GET / HTTP/1.1\r\n\r\n");
    ev = take(h, WEIR__HTTP_EVENT_REFUSED);
    assert_int_equal(ev.refusal.status, 400);
    assert_string_equal(ev.refusal.text, "no Host field");
    expect_output(h,
                  "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n"
                  "Connection: close\r\n\r\nno Host field\n");
    assert_null(weir__http_input(h, &room));
    assert_false(weir__http_next(h, &ev));
    weir__http_free(h);
}

static void a_client_may_end_before_its_answer(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev;

    (void)state;
    put(h, "GET / HTTP/1.1\r\n" H "\r\n");
    weir__http_ended(h);
    take(h, WEIR__HTTP_EVENT_END);
    assert_false(weir__http_next(h, &ev));
    assert_false(weir__http_closed(h));
    reply(h, 200, "here");
    assert_false(weir__http_next(h, &ev));
    assert_true(weir__http_closed(h));
    assert_true(weir__http_output(h).len > 0);
    weir__http_free(h);

    h = new_http((struct weir__http_limits){0});
    put(h, "PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel");
    weir__http_ended(h);
    take(h, WEIR__HTTP_EVENT_BODY);
    assert_false(weir__http_next(h, &ev)); /* never whole */
    assert_true(weir__http_closed(h));
    weir__http_free(h);
}

static void can_become_another_protocol(void **state)
{
    struct weir__http_field fields[] = {weir__http_field_of("Connection", "Upgrade"),
                                        weir__http_field_of("Upgrade", "websocket")};
    struct weir__http_response r = {.status = 101, .fields = fields, .field_count = 2};
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev;

    (void)state;
    put(h, "GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x82\x01x");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    assert_int_equal(weir__http_finish(h, NULL), 0);
    expect_output(h, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                     "Upgrade: websocket\r\n\r\n");
    assert_false(weir__http_next(h, &ev));
    assert_false(weir__http_closed(h));
    assert_int_equal(weir__http_rest(h).len, 3);
    assert_memory_equal(weir__http_rest(h).at, "\x82\x01x", 3);
    assert_int_equal(weir__http_tick(h, 1000000), INT64_MAX);
    weir__http_free(h);
}

static void another_protocol_has_no_body(void **state)
{
    struct weir__http_field fields[] = {weir__http_field_of("Connection", "Upgrade"),
                                        weir__http_field_of("Upgrade", "websocket")};
    static const uint64_t lengths[] = {0, 4, 5, WEIR__HTTP_CHUNKED};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct weir__http_response r = {.status = 101,
                                        .length = lengths[i],
                                        .fields = fields,
                                        .field_count = 2};
        struct weir__http *h = new_http((struct weir__http_limits){0});

        put(h, "GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        take(h, WEIR__HTTP_EVENT_END);
        assert_int_equal(weir__http_respond(h, &r, NULL), 0);
        assert_int_equal(weir__http_write(h, weir__bytes_of("body", 4), NULL),
                         lengths[i] ? 0 : WEIR_EINVAL);
        assert_int_equal(weir__http_finish(h, NULL), 0);
        expect_output(h, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                         "Upgrade: websocket\r\n\r\n");
        assert_true(weir__http_upgraded(h));
        weir__http_free(h);
    }
}

/* What is left of a body would be taken for the other protocol. */
static void another_protocol_waits_for_the_body(void **state)
{
    struct weir__http_response r = {.status = 101};
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, "PUT / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\na");
    take(h, WEIR__HTTP_EVENT_BODY);
    assert_int_equal(weir__http_respond(h, &r, NULL), WEIR_EINVAL);
    put(h, "b");
    take(h, WEIR__HTTP_EVENT_BODY);
    assert_int_equal(weir__http_respond(h, &r, NULL), 0);
    weir__http_free(h);
}

/* However little of it is taken at a time, and whatever comes behind it meanwhile. */
static void output_is_sent_in_pieces(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    char sent[512] = "", whole[512];
    size_t len = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        put(h, "GET / HTTP/1.1\r\n" H "\r\n");
        take(h, WEIR__HTTP_EVENT_END);
        reply(h, 200, i ? "second" : "first");
        for (int n = 0; weir__http_output(h).len > (i ? 0 : 10); n++) {
            struct weir__bytes out = weir__http_output(h);
            size_t piece = out.len < 7 ? out.len : 7;
            assert_true(len + piece < sizeof sent && n < 100);
            memcpy(sent + len, out.at, piece);
            len += piece;
            weir__http_sent(h, piece);
        }
    }
    snprintf(whole, sizeof whole, "%s%zu%s%s%s%zu%s%s", WHOLE, strlen("first"), "\r\n\r\n", "first",
             WHOLE, strlen("second"), "\r\n\r\n", "second");
    assert_string_equal(sent, whole);
    weir__http_free(h);
}

/* Time. */

/* Each request has time for its head, also one that begins in the packet that ends another. */
static void each_head_has_its_own_time(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    put(h, "GET / HTTP/1.1\r\n");
    assert_false(weir__http_next(h, &(struct weir__http_event){0}));
    assert_int_equal(weir__http_tick(h, 1000), 11000);
    put(h, H "\r\nGET / HTT");
    take(h, WEIR__HTTP_EVENT_END);
    reply(h, 200, "x");
    assert_false(weir__http_next(h, &(struct weir__http_event){0}));
    assert_int_equal(weir__http_tick(h, 10000), 20000);
    assert_int_equal(weir__http_tick(h, 19999), 20000);
    assert_false(weir__http_closed(h));
    weir__http_tick(h, 20000);
    take(h, WEIR__HTTP_EVENT_REFUSED);
    weir__http_free(h);
}

static void idle_connections_are_small_then_closed(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});

    (void)state;
    assert_true(weir__http_tick(h, 5000) <= 6000);
    put(h, "GET / HTTP/1.1\r\n" H "\r\n");
    take(h, WEIR__HTTP_EVENT_END);
    assert_int_equal(weir__http_tick(h, 5500), INT64_MAX); /* it is our turn */
    reply(h, 200, "x");
    weir__http_sent(h, weir__http_output(h).len);
    assert_int_equal(weir__http_tick(h, 6000), 7000);
    assert_int_equal(weir__http_tick(h, 7000), 66000);
    assert_true(weir__http_memory(h) < 4096);
    assert_false(weir__http_closed(h));
    weir__http_tick(h, 66000);
    assert_true(weir__http_closed(h));
    expect_output(h, "");
    weir__http_free(h);
}

/* A byte a second is not enough, in the head or in the body. */
static void slow_clients_are_sent_away(void **state)
{
    static const char head[] = "PUT / HTTP/1.1\r\n" H "Content-Length: 1000000\r\n\r\n";
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev, last = {0};
    int64_t now = 0;

    (void)state;
    for (size_t i = 0; !weir__http_closed(h); i++, now += 1000) {
        char byte[2] = {head[i], '\0'};
        assert_true(head[i] != '\0');
        put(h, byte);
        weir__http_next(h, &ev);
        weir__http_tick(h, now);
    }
    assert_int_equal(now, 11000);
    ev = take(h, WEIR__HTTP_EVENT_REFUSED);
    assert_int_equal(ev.refusal.status, 408);
    weir__http_free(h);

    h = new_http((struct weir__http_limits){0});
    put(h, head);
    take(h, WEIR__HTTP_EVENT_REQUEST);
    for (now = 0; !weir__http_closed(h); now += 1000) {
        put(h, "x");
        weir__http_tick(h, now);
        while (weir__http_next(h, &ev)) last = ev;
    }
    assert_int_equal(last.type, WEIR__HTTP_EVENT_REFUSED);
    assert_int_equal(last.refusal.status, 408);
    assert_true(now > 10000 && now < 13000);
    weir__http_free(h);
}

/* A client that keeps to the least rate is never cut off. */
static void steady_clients_are_waited_for(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){.body_rate = 10});
    struct weir__http_event ev;

    (void)state;
    put(h, "PUT / HTTP/1.1\r\n" H "Content-Length: 1000000\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    for (int64_t now = 0; now < 100000; now += 1000) {
        put(h, "ten bytes.");
        while (weir__http_next(h, &ev)) assert_int_equal(ev.type, WEIR__HTTP_EVENT_BODY);
        weir__http_tick(h, now);
        assert_false(weir__http_closed(h));
    }
    weir__http_free(h);
}

/* The owner may be slow: that is not the client's fault. */
static void slow_owners_are_waited_for(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){.window_bytes = 256});
    char body[257];

    (void)state;
    memset(body, 'x', 256);
    body[256] = '\0';
    put(h, "PUT / HTTP/1.1\r\n" H "Content-Length: 1000000\r\n\r\n");
    take(h, WEIR__HTTP_EVENT_REQUEST);
    put(h, body);
    assert_int_equal(weir__http_tick(h, 1000), INT64_MAX);
    assert_int_equal(weir__http_tick(h, 1000000), INT64_MAX);
    assert_false(weir__http_closed(h));
    take(h, WEIR__HTTP_EVENT_BODY);
    assert_int_equal(weir__http_tick(h, 1000000), 1010000);
    weir__http_free(h);
    weir__http_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies),
        cmocka_unit_test(streams_a_body),
        cmocka_unit_test(refuses_bad_responses),
        cmocka_unit_test(only_its_own_fields_are_for_the_codec),
        cmocka_unit_test(output_has_a_limit),
        cmocka_unit_test(answers_before_the_body),
        cmocka_unit_test(says_continue_when_the_body_is_wanted),
        cmocka_unit_test(a_refusal_is_readable),
        cmocka_unit_test(a_client_may_end_before_its_answer),
        cmocka_unit_test(can_become_another_protocol),
        cmocka_unit_test(another_protocol_has_no_body),
        cmocka_unit_test(another_protocol_waits_for_the_body),
        cmocka_unit_test(output_is_sent_in_pieces),
        cmocka_unit_test(each_head_has_its_own_time),
        cmocka_unit_test(idle_connections_are_small_then_closed),
        cmocka_unit_test(slow_clients_are_sent_away),
        cmocka_unit_test(steady_clients_are_waited_for),
        cmocka_unit_test(slow_owners_are_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
