/* request_test.c - raw requests and what becomes of them, in every cut: most of them are of the
 * kind that two programs in a row could read differently. */
#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "raw.h"

#define TALE_BYTES 16384
#define SMALL 65536 /* all memory of a connection that is busy */

/* What happened, as text: "GET /path [body] " for each request that was whole, "400 " for a refusal
 * "open" or "closed" at the end. */
struct tale {
    char text[TALE_BYTES];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void say(struct tale *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(t->text + t->len, sizeof t->text - t->len, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof t->text - t->len);
    t->len += (size_t)n;
}

/* Answers what is whole, and writes down what is said. */
static void serve(struct weir__http *h, struct tale *t)
{
    struct weir__http_event ev;
    struct weir__bytes out;

    while (weir__http_next(h, &ev)) switch (ev.type) {
        case WEIR__HTTP_EVENT_REQUEST:
            say(t, "%s %.*s", weir__http_method_name(ev.request->method), (int)ev.request->path.len,
                (const char *)ev.request->path.at);
            if (ev.request->query.at)
                say(t, "?%.*s", (int)ev.request->query.len, (const char *)ev.request->query.at);
            say(t, " [");
            break;
        case WEIR__HTTP_EVENT_BODY:
            say(t, "%.*s", (int)ev.bytes.len, (const char *)ev.bytes.at);
            break;
        case WEIR__HTTP_EVENT_END:
            say(t, "] ");
            assert_int_equal(weir__http_reply(h, 200, "text/plain", weir__bytes_of("ok", 2), NULL),
                             0);
            break;
        case WEIR__HTTP_EVENT_REFUSED:
            say(t, "%u ", ev.refusal.status);
            assert_true(strlen(ev.refusal.text) > 0);
            break;
        }
    out = weir__http_output(h);
    weir__http_sent(h, out.len);
}

/* Feeds bytes in pieces: the first of `first` bytes, the others of `piece`. */
static void feed(struct weir__http *h, struct tale *t, const char *raw, size_t len, size_t first,
                 size_t piece)
{
    size_t at = 0, next = first ? first : piece;

    while (at < len) {
        size_t room, n;
        uint8_t *to = weir__http_input(h, &room);
        if (!room) break;
        n = next < room ? next : room;
        if (n > len - at) n = len - at;
        memcpy(to, raw + at, n);
        weir__http_received(h, n);
        at += n;
        next = piece;
        serve(h, t);
    }
}

static struct tale tell(const char *raw, size_t len, size_t first, size_t piece)
{
    struct tale t = {.len = 0};
    struct weir__http *h;

    assert_int_equal(weir__http_new(&h, NULL, NULL), 0);
    feed(h, &t, raw, len, first, piece);
    say(&t, "%s", weir__http_closed(h) ? "closed" : "open");
    weir__http_free(h);
    return t;
}

static void check(const struct row *r, size_t len, size_t first, size_t piece)
{
    struct tale t = tell(r->raw, len, first, piece);

    if (strcmp(t.text, r->tale) != 0)
        fail_msg("cut %zu/%zu of\n%s\nis '%s', not '%s'", first, piece, r->raw, t.text, r->tale);
}

/* At once, byte by byte, and in two at every place. */
static void check_every_cut(const struct row *r)
{
    size_t len = strlen(r->raw);

    for (size_t piece = 1; piece < 4; piece++) check(r, len, 0, piece);
    for (size_t first = 0; first < len; first++) check(r, len, first, len);
}

static void good_requests_are_served(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) check_every_cut(&good[i]);
}

static void bad_requests_are_refused_and_closed(void **state)
{
    (void)state;
    assert_true(sizeof bad / sizeof bad[0] >= 100);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) check_every_cut(&bad[i]);
}

/* A NUL anywhere in a head, but where it makes the head end later. */
static void no_byte_of_a_head_may_be_nul(void **state)
{
    static const char raw[] = POST "A: b\r\nContent-Length: 0\r\n\r\n";
    char changed[sizeof raw];

    (void)state;
    for (size_t i = 0; i + 3 < sizeof raw - 1; i++) {
        struct tale t;
        memcpy(changed, raw, sizeof raw);
        changed[i] = '\0';
        t = tell(changed, sizeof raw - 1, 0, sizeof raw);
        if (strcmp(t.text, "400 closed") != 0) fail_msg("NUL at %zu: %s", i, t.text);
    }
}

/* Any single byte changed to any other: refused, or read as one request; never two. */
static void no_changed_byte_makes_two_requests(void **state)
{
    static const char raw[] = POST "Content-Length: 44\r\n\r\nGET /two HTTP/1.1\r\nHost: a\r\n\r\n"
                                   "0123456789abcd";
    char changed[sizeof raw];
    size_t head = strlen(POST "Content-Length: 44\r\n\r\n");

    (void)state;
    assert_int_equal(sizeof raw - 1 - head, 44);
    for (size_t i = 0; i < head; i++)
        for (unsigned byte = 0; byte < 256; byte++) {
            struct tale t;
            /* Another length, another name of it: then it is another, honest message. */
            if (i >= head - 22) break;
            memcpy(changed, raw, sizeof raw);
            changed[i] = (char)byte;
            t = tell(changed, sizeof raw - 1, 0, sizeof raw);
            if (strstr(t.text, "/two [")) fail_msg("byte %u at %zu: %s", byte, i, t.text);
        }
}

static struct weir__http *new_http(struct weir__http_limits limits)
{
    struct weir__http *h;

    assert_int_equal(weir__http_new(&h, &limits, NULL), 0);
    return h;
}

static void put(struct weir__http *h, const char *raw)
{
    size_t len = strlen(raw);

    while (len) {
        size_t room, n;
        uint8_t *to = weir__http_input(h, &room);
        assert_true(room > 0);
        n = room < len ? room : len;
        memcpy(to, raw, n);
        weir__http_received(h, n);
        raw += n;
        len -= n;
    }
}

static unsigned refusal_of(const char *begin, char filler, size_t count, const char *end,
                           struct weir__http_limits limits)
{
    size_t len = strlen(begin) + count + strlen(end);
    struct weir__http *h = new_http(limits);
    char *raw = malloc(len + 1), *fill = raw + strlen(begin);
    struct tale t = {.len = 0};
    unsigned status = 0;

    assert_non_null(raw);
    snprintf(raw, len + 1, "%s%*s%s", begin, (int)count, "", end);
    memset(fill, filler, count);
    feed(h, &t, raw, len, 0, 1000);
    if (weir__http_closed(h)) status = (unsigned)strtoul(t.text, NULL, 10);
    weir__http_free(h);
    free(raw);
    return status;
}

static struct tale tell_fields(int count)
{
    char raw[1024];
    int len = snprintf(raw, sizeof raw, "%s", GET H);

    for (int i = 1; i < count; i++)
        len += snprintf(raw + len, sizeof raw - (size_t)len, "A: b\r\n");
    len += snprintf(raw + len, sizeof raw - (size_t)len, END);
    assert_true((size_t)len < sizeof raw);
    return tell(raw, (size_t)len, 0, sizeof raw);
}

static void heads_have_limits(void **state)
{
    static const struct weir__http_limits none;
    struct weir__http_limits small = {.head_bytes = 200, .target_bytes = 50};
    struct tale t;

    (void)state;
    assert_int_equal(refusal_of("GET /", 'x', 8191, " HTTP/1.1\r\n" H END, none), 0);
    assert_int_equal(refusal_of("GET /", 'x', 8192, " HTTP/1.1\r\n" H END, none), 414);
    assert_int_equal(refusal_of("GET /", 'x', 1 << 20, "", none), 414);
    assert_int_equal(refusal_of(GET H "A: ", 'x', 16000, "\r\n\r\n", none), 0);
    assert_int_equal(refusal_of(GET H "A: ", 'x', 16384, "\r\n\r\n", none), 431);
    assert_int_equal(refusal_of(GET H "A: ", 'x', 1 << 20, "", none), 431);
    assert_int_equal(refusal_of("", 'x', 1 << 20, "", none), 414);
    assert_int_equal(refusal_of("GET /", 'x', 49, " HTTP/1.1\r\n" H END, small), 0);
    assert_int_equal(refusal_of("GET /", 'x', 50, " HTTP/1.1\r\n" H END, small), 414);
    assert_int_equal(refusal_of(GET H "A: ", 'x', 200, "\r\n\r\n", small), 431);
    t = tell_fields(WEIR__HTTP_FIELDS_MAX);
    assert_string_equal(t.text, "GET / [] open");
    t = tell_fields(WEIR__HTTP_FIELDS_MAX + 1);
    assert_string_equal(t.text, "431 closed");
}

static void trailers_have_a_limit(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){.window_bytes = 1024});
    struct tale t = {.len = 0};
    char line[] = "A: 0123456789\r\n";

    (void)state;
    put(h, POST "Transfer-Encoding: chunked\r\n\r\n0\r\n");
    for (int i = 0; i < 1000 && !weir__http_closed(h); i++) {
        put(h, line);
        serve(h, &t);
    }
    assert_string_equal(t.text, "POST / [431 ");
    weir__http_free(h);
}

/* A body of any size passes through a small window, and is not kept. */
static void bodies_are_streamed(void **state)
{
    struct weir__http_limits limits = {.window_bytes = 512, .body_bytes = 1 << 20};
    struct weir__http *h = new_http(limits);
    struct weir__http_event ev;
    size_t sum = 0;

    (void)state;
    put(h, "PUT /big HTTP/1.1\r\n" H "Content-Length: 1048576\r\n\r\n");
    assert_true(weir__http_next(h, &ev));
    assert_int_equal(ev.type, WEIR__HTTP_EVENT_REQUEST);
    assert_int_equal(ev.request->length, 1 << 20);
    for (unsigned i = 0; sum < 1 << 20;) {
        size_t room;
        uint8_t *to = weir__http_input(h, &room);
        assert_true(room > 0);
        if (room > (1 << 20) - sum) room = (1 << 20) - sum;
        for (size_t k = 0; k < room; k++) to[k] = (uint8_t)(i++ % 251);
        weir__http_received(h, room);
        while (weir__http_next(h, &ev) && ev.type == WEIR__HTTP_EVENT_BODY)
            for (size_t k = 0; k < ev.bytes.len; k++) assert_int_equal(ev.bytes.at[k], sum++ % 251);
    }
    assert_int_equal(ev.type, WEIR__HTTP_EVENT_END);
    assert_true(weir__http_memory(h) < SMALL);
    weir__http_free(h);
}

/* Requests that nobody answers yet fill the buffer, and then there is no room. */
static void a_pipeline_waits_for_its_answers(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev;
    size_t room = 1, came = 0, answered = 0;

    (void)state;
    while (weir__http_input(h, &room), room >= strlen(GET H END)) {
        put(h, GET H END);
        came++;
    }
    assert_true(came > 100 && weir__http_memory(h) < SMALL);
    while (weir__http_next(h, &ev)) {
        if (ev.type != WEIR__HTTP_EVENT_END) continue;
        assert_false(weir__http_next(h, &ev)); /* nothing before the answer */
        assert_int_equal(weir__http_reply(h, 204, NULL, weir__bytes_of(NULL, 0), NULL), 0);
        weir__http_sent(h, weir__http_output(h).len);
        answered++;
    }
    assert_int_equal(answered, came);
    assert_false(weir__http_closed(h));
    weir__http_free(h);
}

static void fields_can_be_found(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    struct weir__http_event ev;
    struct weir__bytes v;

    (void)state;
    put(h, "GET http://there/x HTTP/1.1\r\nHost: here\r\nX-Ms-Date: now\r\nA:1\r\nA: 2\r\n\r\n");
    assert_true(weir__http_next(h, &ev));
    v = weir__http_field(ev.request, "x-ms-date");
    assert_int_equal(v.len, 3);
    assert_memory_equal(v.at, "now", 3);
    assert_memory_equal(weir__http_field(ev.request, "a").at, "1", 1);
    assert_null(weir__http_field(ev.request, "b").at);
    assert_int_equal(ev.request->field_count, 4);
    assert_memory_equal(ev.request->host.at, "there", 5);
    assert_true(weir__http_has_token(weir__bytes_of(" a , Upgrade", 12), "upgrade"));
    assert_false(weir__http_has_token(weir__bytes_of("upgraded", 8), "upgrade"));
    assert_false(weir__http_has_token(weir__bytes_of("", 0), "upgrade"));
    assert_true(weir__http_next(h, &ev));
    assert_int_equal(weir__http_reply(h, 200, NULL, weir__bytes_of(NULL, 0), NULL), 0);
    put(h, "GET /y HTTP/1.1\r\nHost: here\r\n\r\n");
    assert_true(weir__http_next(h, &ev));
    assert_null(weir__http_field(ev.request, "x-ms-date").at); /* that was the one before */
    weir__http_free(h);
}

/* Its bytes stay where they are while the body passes by, and names keep their case. */
static void a_request_lives_until_its_answer(void **state)
{
    struct weir__http *h = new_http((struct weir__http_limits){0});
    const struct weir__http_request *q;
    struct weir__http_event ev;
    char body[4096];

    (void)state;
    memset(body, 'x', sizeof body);
    put(h, "POST /eh1 HTTP/1.1\r\nHost: h\r\nWindAlert: strong\r\nContent-Length: 40960\r\n\r\n");
    assert_true(weir__http_next(h, &ev));
    q = ev.request;
    for (int i = 0; i < 10; i++) {
        size_t room;
        uint8_t *to = weir__http_input(h, &room);
        assert_true(to && room >= sizeof body);
        memcpy(to, body, sizeof body);
        weir__http_received(h, sizeof body);
        if (i % 3 != 2) continue; /* the window fills */
        while (weir__http_next(h, &ev)) assert_int_equal(ev.type, WEIR__HTTP_EVENT_BODY);
    }
    while (weir__http_next(h, &ev)) continue;
    assert_int_equal(ev.type, WEIR__HTTP_EVENT_REQUEST); /* what next leaves when there is none */
    assert_memory_equal(q->path.at, "/eh1", 4);
    assert_memory_equal(q->fields[1].name.at, "WindAlert", 9);
    assert_memory_equal(weir__http_field(q, "windalert").at, "strong", 6);
    assert_int_equal(weir__http_reply(h, 201, NULL, weir__bytes_of(NULL, 0), NULL), 0);
    weir__http_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests_are_served),
        cmocka_unit_test(bad_requests_are_refused_and_closed),
        cmocka_unit_test(no_byte_of_a_head_may_be_nul),
        cmocka_unit_test(no_changed_byte_makes_two_requests),
        cmocka_unit_test(heads_have_limits),
        cmocka_unit_test(trailers_have_a_limit),
        cmocka_unit_test(bodies_are_streamed),
        cmocka_unit_test(a_pipeline_waits_for_its_answers),
        cmocka_unit_test(fields_can_be_found),
        cmocka_unit_test(a_request_lives_until_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
