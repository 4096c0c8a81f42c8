/* knock_test.c - a client asks for a WebSocket: what it says, and what it takes for a yes. */
#include "http/knock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/http.h"

static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};
static const struct weir__knock_options options = {"h:5300", "/$servicebus/websocket", protocols};
static struct weir_error err;

/* The nonce of RFC 6455, 1.3. */
static int fill_sample(void *self, void *out, size_t len, struct weir_error *why)
{
    (void)self, (void)why;
    assert_int_equal(len, 16);
    memcpy(out, "the sample nonce", 16);
    return 0;
}

static const struct weir__rand sample = {fill_sample, NULL};

static void the_request_is_that_of_the_rfc(void **state)
{
    static const char expected[] =
        "GET /$servicebus/websocket HTTP/1.1\r\nHost: h:5300\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: AMQPWSB10, amqp\r\n\r\n";
    struct weir__knock k;
    struct weir__buf out;

    (void)state;
    weir__buf_init(&out, WEIR__KNOCK_REQUEST_MAX);
    assert_int_equal(weir__knock_write(&k, &options, &sample, &out, &err), 0);
    assert_int_equal(out.len, sizeof expected - 1);
    assert_memory_equal(out.at, expected, out.len);
    weir__buf_fini(&out);
}

static int fill_nothing(void *self, void *out, size_t len, struct weir_error *why)
{
    (void)self, (void)out, (void)len;
    return weir__fail(why, WEIR_EIO, "no chance today");
}

static void without_chance_nothing_is_said(void **state)
{
    static const struct weir__rand none = {fill_nothing, NULL};
    struct weir__knock k;
    struct weir__buf out;

    (void)state;
    weir__buf_init(&out, WEIR__KNOCK_REQUEST_MAX);
    assert_int_equal(weir__knock_write(&k, &options, &none, &out, &err), WEIR_EIO);
    assert_int_equal(out.len, 0);
    weir__buf_fini(&out);
}

/* Our own server has nothing against it, and what it answers is a yes. */
static void our_server_lets_us_in(void **state)
{
    struct weir__websocket_welcome welcome;
    struct weir__rand chance = weir__rand_system();
    struct weir__http_refusal refusal;
    struct weir__http_event ev;
    struct weir__knock k;
    struct weir__http *h;
    struct weir__buf out;
    char answer[512];
    size_t room, used;
    int len;

    (void)state;
    weir__buf_init(&out, WEIR__KNOCK_REQUEST_MAX);
    assert_int_equal(weir__knock_write(&k, &options, &chance, &out, &err), 0);
    assert_int_equal(weir__http_new(&h, NULL, NULL), 0);
    memcpy(weir__http_input(h, &room), out.at, out.len);
    weir__http_received(h, out.len);
    assert_true(weir__http_next(h, &ev) && ev.type == WEIR__HTTP_EVENT_REQUEST);
    assert_true(weir__websocket_welcome(ev.request, protocols, &welcome, &refusal));
    len = snprintf(answer, sizeof answer,
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                   "Sec-WebSocket-Protocol: %s\r\n\r\n\x82",
                   welcome.accept, welcome.protocol);
    assert_int_equal(weir__knock_read(&k, weir__bytes_of(answer, (size_t)len), &used, &err), 0);
    assert_int_equal(used, len - 1); /* a frame begins behind it */
    assert_string_equal(k.protocol, "AMQPWSB10");
    weir__http_free(h);
    weir__buf_fini(&out);
}

/* In every cut: 0 and *used, or the code; cut must not matter. */
static int read_answer(const char *text, size_t *used)
{
    static const size_t pieces[] = {1, 3, 50};
    size_t len = strlen(text), first = 0;
    int rc = 0;

    for (size_t i = 0; i <= sizeof pieces / sizeof pieces[0]; i++) {
        size_t piece = i ? pieces[i - 1] : len, there = 0;
        struct weir__knock k;
        struct weir__buf out;
        int now = 0;
        weir__buf_init(&out, WEIR__KNOCK_REQUEST_MAX);
        assert_int_equal(weir__knock_write(&k, &options, &sample, &out, &err), 0);
        weir__buf_fini(&out);
        *used = 0;
        while (now == 0 && *used == 0 && there < len) {
            there = len - there < piece ? len : there + piece;
            now = weir__knock_read(&k, weir__bytes_of(text, there), used, &err);
        }
        if (i > 0 && (now != rc || *used != first)) fail_msg("cut in %zu: %s", piece, text);
        rc = now;
        first = *used;
    }
    return rc;
}

#define START "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE "Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n"
#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define PROTOCOL "Sec-WebSocket-Protocol: amqp\r\n"

static void only_a_yes_is_a_yes(void **state)
{
    static const struct {
        const char *answer;
        const char *says; /* NULL: yes */
    } rows[] = {
        {START UPGRADE ACCEPT PROTOCOL "\r\n", NULL},
        {"HTTP/1.1 101\r\n" PROTOCOL ACCEPT UPGRADE "\r\n", NULL},
        {"HTTP/1.0 101 \r\nserver: x\r\n" UPGRADE ACCEPT PROTOCOL "\r\n", NULL},
        {"HTTP/1.1 404 Nowhere\r\nContent-Length: 0\r\n\r\n", "404 Not Found"},
        {"HTTP/1.1 401 \r\n\r\n", "401 Unauthorized"},
        {"HTTP/1.1 200 OK\r\n" UPGRADE ACCEPT PROTOCOL "\r\n", "200 OK"},
        {START "Connection: upgrade\r\n" ACCEPT PROTOCOL "\r\n", "Upgrade: websocket"},
        {START "Upgrade: websocket\r\n" ACCEPT PROTOCOL "\r\n", "Connection: Upgrade"},
        {START UPGRADE PROTOCOL "\r\n", "Sec-WebSocket-Accept"},
        {START UPGRADE PROTOCOL "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOO=\r\n\r\n",
         "Sec-WebSocket-Accept"},
        {START UPGRADE PROTOCOL "Sec-WebSocket-Accept:\r\n\r\n", "Sec-WebSocket-Accept"},
        {START UPGRADE ACCEPT "\r\n", "protocols"},
        {START UPGRADE ACCEPT "Sec-WebSocket-Protocol: mqtt\r\n\r\n", "protocols"},
        {START UPGRADE ACCEPT "Sec-WebSocket-Protocol: AMQP\r\n\r\n", "protocols"},
        {START UPGRADE ACCEPT "Sec-WebSocket-Protocol: amqP\r\n\r\n", "protocols"},
        {START UPGRADE ACCEPT "Sec-WebSocket-Protocol: amq\r\n\r\n", "protocols"},
        {START UPGRADE PROTOCOL "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo-\r\n\r\n",
         "Sec-WebSocket-Accept"},
        {START UPGRADE ACCEPT "Sec-WebSocket-Protocol: amqp, AMQPWSB10\r\n\r\n", "protocols"},
        {START UPGRADE ACCEPT PROTOCOL "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
         "extension"},
        {"AMQP\3\1\1\r\n\r\n", "HTTP/1.x"},
        {"\r\n\r\n", "HTTP/1.x"},
        {"HTTP/2.0 101 \r\n\r\n", "HTTP/1.x"},
        {"HTTP/1.1 1x1 \r\n\r\n", "HTTP/1.x"},
        {"HTTP/1.1 1011\r\n\r\n", "HTTP/1.x"},
        {"HTTP/1.1 101 OK\n\n", "without CR"},
        {START " folded\r\n\r\n", "folded"},
        {START "no colon\r\n\r\n", "colon"},
        {START "a\1: b\r\n\r\n", "name"},
        {START "a: b\1\r\n\r\n", "value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t used;
        int rc = read_answer(rows[i].answer, &used);
        if (!rows[i].says && (rc != 0 || used != strlen(rows[i].answer)))
            fail_msg("row %zu: %s", i, err.text);
        if (rows[i].says && (rc != WEIR_EUNREACHABLE || !strstr(err.text, rows[i].says)))
            fail_msg("row %zu: %d %s", i, rc, err.text);
    }
}

static void answers_have_limits(void **state)
{
    static char text[WEIR__KNOCK_ANSWER_MAX + 64];
    struct weir__knock k = {.protocols = protocols};
    size_t used, len;

    (void)state;
    memset(text, 'a', sizeof text - 1);
    memcpy(text, START "a: ", sizeof START + 2);
    assert_int_equal(weir__knock_read(&k, weir__bytes_of(text, WEIR__KNOCK_ANSWER_MAX - 1), &used,
                                      &err),
                     0);
    assert_int_equal(used, 0);
    assert_int_equal(weir__knock_read(&k, weir__bytes_of(text, WEIR__KNOCK_ANSWER_MAX), &used,
                                      &err),
                     WEIR_EUNREACHABLE);
    assert_non_null(strstr(err.text, "too long"));

    k = (struct weir__knock){.protocols = protocols};
    len = sizeof START - 1;
    for (int i = 0; i <= WEIR__HTTP_FIELDS_MAX; i++) {
        memcpy(text + len, "a: b\r\n", 6);
        len += 6;
    }
    memcpy(text + len, "\r\n", 2);
    assert_int_equal(weir__knock_read(&k, weir__bytes_of(text, len + 2), &used, &err),
                     WEIR_EUNREACHABLE);
    assert_non_null(strstr(err.text, "too many fields"));
}

/* An answer may be as long as is said, and what comes with it does not count. */
static void the_longest_answer_is_read(void **state)
{
    static char text[WEIR__KNOCK_ANSWER_MAX + 64];
    const size_t begin = strlen(START UPGRADE ACCEPT PROTOCOL "a: ");

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct weir__knock k;
        struct weir__buf out;
        size_t used, len = WEIR__KNOCK_ANSWER_MAX + more;
        weir__buf_init(&out, WEIR__KNOCK_REQUEST_MAX);
        assert_int_equal(weir__knock_write(&k, &options, &sample, &out, &err), 0);
        weir__buf_fini(&out);
        memset(text, 'a', sizeof text);
        memcpy(text, START UPGRADE ACCEPT PROTOCOL "a: ", begin);
        memcpy(text + len - 4, "\r\n\r\n", 4);
        assert_int_equal(weir__knock_read(&k, weir__bytes_of(text, len + 20), &used, &err),
                         more ? WEIR_EUNREACHABLE : 0);
        assert_int_equal(used, more ? 0 : len);
    }
}

static void a_request_has_a_limit(void **state)
{
    static const char *const one[] = {"amqp", NULL};
    static char path[WEIR__KNOCK_REQUEST_MAX];
    struct weir__knock_options o = {"h", path, one};
    struct weir__knock k;
    struct weir__buf out;
    size_t usual;

    (void)state;
    weir__buf_init(&out, 4 * WEIR__KNOCK_REQUEST_MAX);
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), 0);
    usual = out.len;
    memset(path, 'a', WEIR__KNOCK_REQUEST_MAX - usual);
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), 0); /* behind another */
    assert_int_equal(out.len, usual + WEIR__KNOCK_REQUEST_MAX);
    path[WEIR__KNOCK_REQUEST_MAX - usual] = 'a';
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the request for a WebSocket is too long");
    memset(path, 'a', sizeof path - 1);
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), WEIR_EINVAL);
    weir__buf_fini(&out);
    path[0] = '\0';
    weir__buf_init(&out, 2 * usual); /* used to its last byte */
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), 0);
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), 0);
    weir__buf_fini(&out);
    weir__buf_init(&out, usual - 1); /* whose buffer has no room for it */
    assert_int_equal(weir__knock_write(&k, &o, &sample, &out, &err), WEIR_EINVAL);
    weir__buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_is_that_of_the_rfc),
        cmocka_unit_test(without_chance_nothing_is_said),
        cmocka_unit_test(our_server_lets_us_in),
        cmocka_unit_test(only_a_yes_is_a_yes),
        cmocka_unit_test(answers_have_limits),
        cmocka_unit_test(the_longest_answer_is_read),
        cmocka_unit_test(a_request_has_a_limit),
    };

    return cmocka_run_group_tests_name("knock", tests, NULL, NULL);
}
