/* answers_test.c - how much an answer may hold, which answers have no body, and what is said to an
 * owner who asks for what cannot be. */
#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define OUTPUT 1000 /* bytes that may wait */
#define HEAD 256    /* of them, set aside for a head */

static struct weir_error err;
static char many[2 * OUTPUT];

static struct weir__bytes bytes(size_t len)
{
    memset(many, 'x', sizeof many);
    return weir__bytes_of(many, len);
}

/* A connection that has read a request. */
static struct weir__http *asked(const char *line)
{
    struct weir__http_limits limits = {.output_bytes = OUTPUT};
    struct weir__http_event ev;
    struct weir__http *h;
    char raw[128];
    size_t room;
    int len = snprintf(raw, sizeof raw, "%s\r\nHost: a\r\n\r\n", line);

    assert_int_equal(weir__http_new(&h, &limits, NULL), 0);
    memcpy(weir__http_input(h, &room), raw, (size_t)len);
    weir__http_received(h, (size_t)len);
    while (weir__http_next(h, &ev)) continue;
    return h;
}

static void drain(struct weir__http *h)
{
    weir__http_sent(h, weir__http_output(h).len);
}

static void expect_output(struct weir__http *h, const char *text)
{
    struct weir__bytes out = weir__http_output(h);

    if (out.len != strlen(text) || memcmp(out.at, text, out.len) != 0)
        fail_msg("'%.*s' is not '%s'", (int)out.len, (const char *)out.at, text);
    drain(h);
}

static void expect_failure(int rc, int code, const char *text)
{
    assert_int_equal(rc, code);
    assert_int_equal(err.code, code);
    assert_string_equal(err.text, text);
}

static void a_whole_answer_has_a_limit(void **state)
{
    const size_t most = OUTPUT - 2 * HEAD;
    struct weir__http *h = asked("GET / HTTP/1.1");

    (void)state;
    expect_failure(weir__http_reply(h, 200, NULL, bytes(most + 1), &err), WEIR_ETOOBIG,
                   "HTTP: a body of 489 bytes");
    expect_failure(weir__http_reply(h, 200, "a/b", bytes(most - 2), &err), WEIR_ETOOBIG,
                   "HTTP: a body of 486 bytes");
    assert_int_equal(weir__http_reply(h, 200, "a/b", bytes(most - 3), &err), 0);
    weir__http_free(h);
    h = asked("GET / HTTP/1.1");
    assert_int_equal(weir__http_reply(h, 200, NULL, bytes(most), &err), 0);
    weir__http_free(h);
}

/* When nobody has said another. */
static void the_usual_limit(void **state)
{
    const size_t most = 262144 - 2 * HEAD;
    char *body = calloc(1, most + 1);
    struct weir__http_event ev;
    struct weir__http *h;
    size_t room;

    (void)state;
    assert_int_equal(weir__http_new(&h, NULL, &err), 0);
    memcpy(weir__http_input(h, &room), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    weir__http_received(h, 27);
    while (weir__http_next(h, &ev)) continue;
    expect_failure(weir__http_reply(h, 200, NULL, weir__bytes_of(body, most + 1), &err),
                   WEIR_ETOOBIG, "HTTP: a body of 261633 bytes");
    assert_int_equal(weir__http_reply(h, 200, NULL, weir__bytes_of(body, most), &err), 0);
    weir__http_free(h);
    free(body);
}

static void fields_have_a_limit(void **state)
{
    const size_t most = OUTPUT - HEAD - 1 - strlen("A: \r\n");
    struct weir__http_field field = {weir__bytes_of("A", 1), bytes(most + 1)};
    struct weir__http_response r = {.status = 200, .fields = &field, .field_count = 1};
    struct weir__http *h = asked("GET / HTTP/1.1");

    (void)state;
    expect_failure(weir__http_respond(h, &r, &err), WEIR_ETOOBIG, "HTTP: the fields are too long");
    field.value.len = most;
    assert_int_equal(weir__http_respond(h, &r, &err), 0);
    weir__http_free(h);
}

/* A connection with a second request to answer, while so many bytes of the first answer wait. */
static struct weir__http *asked_again(size_t waiting)
{
    struct weir__http *h = asked("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1");
    struct weir__http_response r = {.status = 200, .length = 950};
    struct weir__http_event ev;

    assert_int_equal(weir__http_respond(h, &r, &err), 0);
    drain(h);
    assert_int_equal(weir__http_write(h, bytes(950), &err), 0);
    weir__http_sent(h, 950 - waiting);
    assert_int_equal(weir__http_finish(h, &err), 0);
    while (weir__http_next(h, &ev)) continue;
    return h;
}

/* What waits already counts, to the byte; the answer can be given when it has left. */
static void output_that_waits_counts(void **state)
{
    const struct weir__http_response r = {.status = 200, .length = WEIR__HTTP_CHUNKED};
    struct weir__http *h = asked_again(OUTPUT - HEAD);

    (void)state;
    expect_failure(weir__http_respond(h, &r, &err), WEIR_EBUSY, "HTTP: the output is full");
    weir__http_sent(h, 1);
    assert_int_equal(weir__http_respond(h, &r, &err), 0);
    weir__http_free(h);
    h = asked_again(OUTPUT - 2 * HEAD - 10 + 1);
    expect_failure(weir__http_reply(h, 200, NULL, bytes(10), &err), WEIR_EBUSY,
                   "HTTP: the output is full");
    weir__http_sent(h, 1);
    assert_int_equal(weir__http_reply(h, 200, NULL, bytes(10), &err), 0);
    weir__http_free(h);
}

/* Each piece of an answer in chunks needs 24 bytes more, and one in a single body none. */
static void pieces_have_a_limit(void **state)
{
    struct weir__http_response r = {.status = 200};

    (void)state;
    for (size_t more = 0; more <= 24; more += 24) {
        struct weir__http *h = asked("GET / HTTP/1.1");
        char text[64];
        r.length = more ? WEIR__HTTP_CHUNKED : 2 * OUTPUT;
        assert_int_equal(weir__http_respond(h, &r, &err), 0);
        drain(h);
        snprintf(text, sizeof text, "HTTP: a piece of %zu bytes", OUTPUT - more + 1);
        expect_failure(weir__http_write(h, bytes(OUTPUT - more + 1), &err), WEIR_ETOOBIG, text);
        assert_int_equal(weir__http_write(h, bytes(OUTPUT - more), &err), 0);
        weir__http_sent(h, weir__http_output(h).len - 500);
        expect_failure(weir__http_write(h, bytes(500 - more + 1), &err), WEIR_EBUSY,
                       "HTTP: the output is full");
        assert_int_equal(weir__http_write(h, bytes(500 - more), &err), 0);
        expect_failure(weir__http_write(h, bytes(1), &err), WEIR_EBUSY, "HTTP: the output is full");
        weir__http_free(h);
    }
}

#define OK "HTTP/1.1 200 OK\r\n"

/* Also of a body that has no bytes on the wire every byte is counted. */
static void some_answers_have_no_body(void **state)
{
    static const struct {
        const char *line;
        struct weir__http_response response;
        const char *says;
    } rows[] = {
        {"GET / HTTP/1.1", {.status = 200, .length = 4}, OK "Content-Length: 4\r\n\r\nbody"},
        {"GET / HTTP/1.1",
         {.status = 200, .length = 4, .close = true},
         OK "Content-Length: 4\r\nConnection: close\r\n\r\nbody"},
        {"HEAD / HTTP/1.1", {.status = 200, .length = 4}, OK "Content-Length: 4\r\n\r\n"},
        {"HEAD / HTTP/1.1",
         {.status = 200, .length = WEIR__HTTP_CHUNKED},
         OK "Transfer-Encoding: chunked\r\n\r\n"},
        {"GET / HTTP/1.1", {.status = 204, .length = 4}, "HTTP/1.1 204 No Content\r\n\r\n"},
        {"GET / HTTP/1.1",
         {.status = 304, .length = WEIR__HTTP_CHUNKED},
         "HTTP/1.1 304 Not Modified\r\n\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct weir__http_response *r = &rows[i].response;
        struct weir__http *h = asked(rows[i].line);
        assert_int_equal(weir__http_respond(h, r, &err), 0);
        assert_int_equal(weir__http_write(h, weir__bytes_of("body", 4), &err), 0);
        if (r->length != WEIR__HTTP_CHUNKED)
            expect_failure(weir__http_write(h, weir__bytes_of("y", 1), &err), WEIR_EINVAL,
                           "HTTP: more body than was said");
        assert_int_equal(weir__http_finish(h, &err), 0);
        expect_output(h, rows[i].says);
        assert_int_equal(weir__http_closed(h), r->close);
        weir__http_free(h);
    }
}

/* After HEAD nobody waits for the bytes that are missing. */
static void a_body_that_is_too_short_is_told(void **state)
{
    const struct weir__http_response r = {.status = 200, .length = 4};
    struct weir__http *h = asked("GET / HTTP/1.1");

    (void)state;
    assert_int_equal(weir__http_respond(h, &r, &err), 0);
    expect_failure(weir__http_finish(h, &err), WEIR_EINVAL, "HTTP: less body than was said");
    assert_true(weir__http_closed(h));
    weir__http_free(h);
    h = asked("HEAD / HTTP/1.1");
    assert_int_equal(weir__http_respond(h, &r, &err), 0);
    assert_int_equal(weir__http_finish(h, &err), 0);
    assert_false(weir__http_closed(h));
    weir__http_free(h);
}

static void what_cannot_be_said_is_told(void **state)
{
    static const unsigned statuses[] = {0, 99, 100, 102, 199, 1000};
    struct weir__http_field field = weir__http_field_of("Connectio", "x");
    struct weir__http_response r = {.status = 999, .fields = &field};
    struct weir__http *h = asked("GET / HTTP/1.1");
    char text[64];

    (void)state;
    expect_failure(weir__http_write(h, bytes(0), &err), WEIR_EINVAL,
                   "HTTP: more body than was said");
    expect_failure(weir__http_finish(h, &err), WEIR_EINVAL, "HTTP: no response has begun");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        snprintf(text, sizeof text, "HTTP: status %u is no answer", statuses[i]);
        expect_failure(weir__http_reply(h, statuses[i], NULL, bytes(0), &err), WEIR_EINVAL, text);
    }
    expect_failure(weir__http_reply(h, 200, "a\nb", bytes(0), &err), WEIR_EINVAL,
                   "HTTP: a field that must not be there");
    r.field_count = 1;
    assert_int_equal(weir__http_respond(h, &r, &err), 0); /* nearly the name of another */
    expect_output(h, "HTTP/1.1 999 Unknown\r\nConnectio: x\r\nContent-Length: 0\r\n\r\n");
    expect_failure(weir__http_respond(h, &r, &err), WEIR_EINVAL,
                   "HTTP: there is no request to answer");
    weir__http_free(h);
    h = asked("GET / HTTP/1.1");
    r.status = 101;
    assert_int_equal(weir__http_respond(h, &r, &err), 0);
    assert_int_equal(weir__http_finish(h, &err), 0);
    expect_failure(weir__http_respond(h, &r, &err), WEIR_ECLOSED, "HTTP: the connection is closed");
    weir__http_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_answer_has_a_limit),
        cmocka_unit_test(the_usual_limit),
        cmocka_unit_test(fields_have_a_limit),
        cmocka_unit_test(output_that_waits_counts),
        cmocka_unit_test(pieces_have_a_limit),
        cmocka_unit_test(some_answers_have_no_body),
        cmocka_unit_test(a_body_that_is_too_short_is_told),
        cmocka_unit_test(what_cannot_be_said_is_told),
    };

    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
