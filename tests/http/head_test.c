/* head_test.c - heads of requests and answers, byte by byte: what may stand where, and every limit just
 * kept and just missed. */
#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static struct weir__http_request request;
static struct weir__http_refusal refusal;

/* The status of a refusal; 0: it was understood. */
static unsigned parse_within(size_t target_bytes, uint64_t body_bytes, const char *text)
{
    const struct weir__http_head_limits limits = {target_bytes, body_bytes};
    static char head[65536]; /* what was understood is borrowed from it */
    size_t len = (size_t)snprintf(head, sizeof head, "%s\r\n\r\n", text);

    refusal = (struct weir__http_refusal){0, ""};
    if (weir__http_head_parse(&request, (const uint8_t *)head, len, &limits, &refusal)) return 0;
    assert_true(refusal.status >= 400);
    return refusal.status;
}

static unsigned parse(const char *fmt, ...)
{
    static char text[65536];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return parse_within(100, 1000, text);
}

static void expect_bytes(struct weir__bytes b, const char *text)
{
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.at, text, b.len);
}

/* Beside letters and digits; by RFC 9110, 5.6.2 and 5.5, and RFC 3986. */
static void each_byte_may_stand_where_it_may(void **state)
{
    static const struct {
        const char *form, *others;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\nx%cy: v", LETTERS "!#$%&'*+-.^_`|~:"}, /* ':' ends it */
        {"GET /a%cbc HTTP/1.1\r\nHost: h", LETTERS "-._~!$&'()*+,;=:@/?%[]"},
        {"GET / HTTP/1.1\r\nHost: a%cb", LETTERS "-._~!$&'()*+,;=:%[]"},
        {"GET http://a%cbc/ HTTP/1.1\r\nHost: h", LETTERS "-._~!$&'()*+,;=:%[]/?"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int c = 1; c < 256; c++)
            if (c != '\r' && c != '\n' &&
                (parse(rows[i].form, c) == 0) != (strchr(rows[i].others, c) != NULL))
                fail_msg("byte 0x%02x in %s", (unsigned)c, rows[i].form);
    for (int c = 1; c < 256; c++)
        if (c != '\r' && c != '\n' &&
            (parse("GET / HTTP/1.1\r\nHost: h\r\nn: v%cw", c) == 0) !=
                (c == '\t' || (c >= ' ' && c != 0x7f)))
            fail_msg("byte 0x%02x in a value", (unsigned)c);
}

static void request_lines(void **state)
{
    static const struct {
        const char *line;
        unsigned status;
    } rows[] = {
        {"GET / HTTP/1.1", 0},
        {"GET / HTTP/1.0", 0},
        {"GET / HTTP/1.2", 505},
        {"GET / HTTP/2.0", 505},
        {"GET / HTTP/0.1", 505},
        {"GET / HTTP/9.9", 505},
        {"GET / HTTP/1.", 400},
        {"GET / HTTP/1.10", 400},
        {"GET / HTTP/1:1", 400},
        {"GET / http/1.1", 400},
        {"GET / HTTP/1./", 400},
        {"GET / HTTP/1.:", 400},
        {"GET / HTTP//.1", 400},
        {"GET / HTTP/:.1", 400},
        {"GET /", 400},
        {"GET  HTTP/1.1", 400},
        {"GET", 400},
        {" / HTTP/1.1", 400},
        {"get / HTTP/1.1", 501},
        {"GETT / HTTP/1.1", 501},
        {"GET a HTTP/1.1", 400},
        {"GET * HTTP/1.1", 400},
        {"OPTIONS * HTTP/1.1", 0},
        {"OPTIONS ** HTTP/1.1", 400},
        {"OPTIONS a HTTP/1.1", 400},
        {"GET /%4 HTTP/1.1", 400},
        {"GET /%4g HTTP/1.1", 400},
        {"GET /%g4 HTTP/1.1", 400},
        {"GET /%aF HTTP/1.1", 0},
        {"GET /%/0 HTTP/1.1", 400},
        {"GET /%@0 HTTP/1.1", 400},
        {"GET /%G0 HTTP/1.1", 400},
        {"GET /%0` HTTP/1.1", 400},
        {"GET http:// HTTP/1.1", 400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (parse("%s\r\nHost: h", rows[i].line) != rows[i].status)
            fail_msg("'%s' gave %u %s", rows[i].line, refusal.status, refusal.text);
}

static void targets_are_taken_apart(void **state)
{
    static const struct {
        const char *target, *host, *path, *query; /* query NULL: none */
    } rows[] = {
        {"/", "h", "/", NULL},
        {"/a/b?c=d?e", "h", "/a/b", "c=d?e"},
        {"/?", "h", "/", ""},
        {"http://x:1/p?q", "x:1", "/p", "q"},
        {"https://x?q/r", "x", "/", "q/r"},
        {"http://x", "x", "/", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse("GET %s HTTP/1.1\r\nhOST: \t h \t", rows[i].target), 0);
        expect_bytes(request.target, rows[i].target);
        expect_bytes(request.host, rows[i].host);
        expect_bytes(request.path, rows[i].path);
        if (rows[i].query)
            expect_bytes(request.query, rows[i].query);
        else
            assert_null(request.query.at);
    }
}

static void limits_are_kept(void **state)
{
    char text[32768] = "GET / HTTP/1.1\r\nHost: h";
    size_t len = strlen(text);

    (void)state;
    assert_int_equal(parse_within(2, 0, "GET /a HTTP/1.1\r\nHost: h"), 0);
    assert_int_equal(parse_within(2, 0, "GET /ab HTTP/1.1\r\nHost: h"), 414);
    assert_int_equal(parse("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000"), 0);
    assert_int_equal(request.length, 1000);
    assert_int_equal(parse("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001"), 413);
    assert_int_equal(parse_within(9, UINT64_MAX,
                                  "PUT / HTTP/1.1\r\nHost: h\r\n"
                                  "Content-Length: 9999999999999999999"),
                     0);
    assert_true(request.length == 9999999999999999999u);
    for (int i = 1; i < WEIR__HTTP_FIELDS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "\r\nf%d: v", i);
    assert_int_equal(parse_within(9, 9, text), 0);
    assert_int_equal(request.field_count, WEIR__HTTP_FIELDS_MAX);
    snprintf(text + len, sizeof text - len, "\r\none: more");
    assert_int_equal(parse_within(9, 9, text), 431);
}

static void fields_that_are_refused(void **state)
{
    static const struct {
        const char *fields;
        unsigned status;
        const char *text;
    } rows[] = {
        {"Host: h\r\nHost: h", 400, "two Host fields"},
        {"X: h", 400, "no Host field"},
        {"Host: h\r\nContent-Length:", 400, "Content-Length is not a number"},
        {"Host: h\r\nContent-Length: 1/", 400, "Content-Length is not a number"},
        {"Host: h\r\nContent-Length: 1:", 400, "Content-Length is not a number"},
        {"Host: h\r\nContent-Length: 00000000000000000001", 400, "Content-Length is not a number"},
        {"Host: h\r\nContent-Length: 1\r\nContent-Length: 1", 400, "two Content-Length fields"},
        {"Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400,
         "two Transfer-Encoding fields"},
        {"Host: h\r\nTransfer-Encoding: gzip", 400, "Transfer-Encoding is not chunked"},
        {"Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 0", 400,
         "Content-Length beside Transfer-Encoding"},
        {"Host: h\r\nExpect: more", 417, "only 100-continue is known"},
        {"Host: h\r\n a: b", 400, "a folded line"},
        {"Host: h\r\n\ta: b", 400, "a folded line"},
        {"Host: h\r\nab", 400, "a field without a colon"},
        {"Host: h\r\n: b", 400, "the name of a field has characters that do not belong there"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse("PUT / HTTP/1.1\r\n%s", rows[i].fields), rows[i].status);
        assert_string_equal(refusal.text, rows[i].text);
    }
    assert_int_equal(parse("PUT / HTTP/1.0\r\nTransfer-Encoding: chunked"), 400);
    assert_string_equal(refusal.text, "Transfer-Encoding in HTTP/1.0");
}

static void who_stays_and_who_waits(void **state)
{
    static const struct {
        int minor;
        const char *connection;
        bool keeps;
    } rows[] = {
        {1, "x", true},
        {1, "close", false},
        {1, "a, Close ,b", false},
        {1, "closed", true},
        {0, "x", false},
        {0, "Keep-Alive", true},
        {0, "keep-alive, close", false},
        {1, "keep-alive", true},
        {1, ",,close", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse("GET / HTTP/1.%d\r\nHost: h\r\nExpect: 100-Continue\r\n"
                               "Connection: %s",
                               rows[i].minor, rows[i].connection),
                         0);
        assert_int_equal(request.keep_alive, rows[i].keeps);
        assert_int_equal(request.expects_continue, rows[i].minor == 1);
        assert_int_equal(request.minor, rows[i].minor);
    }
}

/* The end is found wherever the bytes are cut. */
static void the_end_of_a_head(void **state)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\nbody\r\n";
    size_t whole = strlen("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), len;

    (void)state;
    for (size_t cut = 0; cut < sizeof head - 1; cut++) {
        size_t seen = 0;
        assert_true(weir__http_head_end((const uint8_t *)head, cut, &seen, &len, &refusal));
        assert_int_equal(len, cut < whole ? 0 : whole);
        assert_int_equal(seen, cut);
        if (len) continue;
        assert_true(weir__http_head_end((const uint8_t *)head, whole, &seen, &len, &refusal));
        assert_int_equal(len, whole);
    }
    for (int i = 0; i < 3; i++) {
        const char *bad = i == 0 ? "\n" : i == 1 ? "a\n" : "a\r\n\n";
        size_t seen = 0;
        assert_false(weir__http_head_end((const uint8_t *)bad, strlen(bad), &seen, &len, &refusal));
        assert_string_equal(refusal.text, "a line ends without CR");
    }
}

static void answers_begin_with_a_status(void **state)
{
    static const struct {
        const char *line;
        unsigned status; /* 0: it is none */
    } rows[] = {
        {"HTTP/1.1 101 Switching", 101},
        {"HTTP/1.0 999", 999},
        {"HTTP/1.1 200 ", 200},
        {"HTTP/1.9 200", 200},
        {"HTTP/1.1 20", 0},
        {"HTTP/1.1 2000", 0},
        {"HTTP/1.1 200OK", 0},
        {"HTTP/2.0 200", 0},
        {"HTTP/1.1  20", 0},
        {"HTTP/1.1 /00", 0},
        {"HTTP/1.1 20:", 0},
        {"HTTP/1.1\t200", 0},
    };
    struct weir__http_answer *a = malloc(sizeof *a);
    char text[128];

    (void)state;
    assert_non_null(a);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int len = snprintf(text, sizeof text, "%s\r\nA: 1\r\nb:2\r\n\r\n", rows[i].line);
        bool good = weir__http_answer_parse(a, (const uint8_t *)text, (size_t)len, &refusal);
        if (good != (rows[i].status > 0)) fail_msg("'%s'", rows[i].line);
        if (!good) continue;
        assert_int_equal(a->status, rows[i].status);
        assert_int_equal(a->field_count, 2);
        expect_bytes(weir__http_answer_field(a, "a"), "1");
        expect_bytes(weir__http_answer_field(a, "b"), "2");
        assert_null(weir__http_answer_field(a, "c").at);
    }
    free(a);
}

static void statuses_have_words(void **state)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {404, "Not Found"},
        {507, "Insufficient Storage"},
        {508, "Unknown"},
        {99, "Unknown"},
        {0, "Unknown"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(weir__http_status_text(rows[i].status), rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_may_stand_where_it_may),
        cmocka_unit_test(request_lines),
        cmocka_unit_test(targets_are_taken_apart),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(fields_that_are_refused),
        cmocka_unit_test(who_stays_and_who_waits),
        cmocka_unit_test(the_end_of_a_head),
        cmocka_unit_test(answers_begin_with_a_status),
        cmocka_unit_test(statuses_have_words),
    };

    return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
