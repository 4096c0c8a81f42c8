/* denied_test.c - WebSockets when memory, or a library, denies something. */
#include "http/websocket.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include <cmocka.h>

#include "http/http.h"

static bool no_context, no_reading, no_digest, no_memory, no_queue;

int __real_wslay_event_context_server_init(wslay_event_context_ptr *,
                                           const struct wslay_event_callbacks *, void *);
int __wrap_wslay_event_context_server_init(wslay_event_context_ptr *,
                                           const struct wslay_event_callbacks *, void *);
int __real_wslay_event_recv(wslay_event_context_ptr);
int __wrap_wslay_event_recv(wslay_event_context_ptr);
int __real_wslay_event_queue_msg(wslay_event_context_ptr, const struct wslay_event_msg *);
int __wrap_wslay_event_queue_msg(wslay_event_context_ptr, const struct wslay_event_msg *);
int __real_EVP_Digest(const void *, size_t, unsigned char *, unsigned *, const EVP_MD *, ENGINE *);
int __wrap_EVP_Digest(const void *, size_t, unsigned char *, unsigned *, const EVP_MD *, ENGINE *);
void *__real_realloc(void *, size_t);
void *__wrap_realloc(void *, size_t);

int __wrap_wslay_event_context_server_init(wslay_event_context_ptr *out,
                                           const struct wslay_event_callbacks *calls, void *user)
{
    if (no_context) return WSLAY_ERR_NOMEM;
    return __real_wslay_event_context_server_init(out, calls, user);
}

int __wrap_wslay_event_recv(wslay_event_context_ptr frames)
{
    return no_reading ? WSLAY_ERR_NOMEM : __real_wslay_event_recv(frames);
}

int __wrap_wslay_event_queue_msg(wslay_event_context_ptr frames, const struct wslay_event_msg *m)
{
    return no_queue ? WSLAY_ERR_NOMEM : __real_wslay_event_queue_msg(frames, m);
}

int __wrap_EVP_Digest(const void *data, size_t count, unsigned char *md, unsigned *size,
                      const EVP_MD *type, ENGINE *impl)
{
    return no_digest ? 0 : __real_EVP_Digest(data, count, md, size, type, impl);
}

void *__wrap_realloc(void *at, size_t len)
{
    return no_memory ? NULL : __real_realloc(at, len);
}

static int set_up(void **state)
{
    (void)state;
    no_context = no_reading = no_digest = no_memory = no_queue = false;
    return 0;
}

static struct weir__websocket *new_websocket(void)
{
    struct weir__websocket *w;

    assert_int_equal(weir__websocket_new(&w, NULL, NULL), 0);
    return w;
}

static void there_is_none_without_memory(void **state)
{
    struct weir__websocket *w = (struct weir__websocket *)state;
    struct weir_error err;

    no_context = true;
    assert_int_equal(weir__websocket_new(&w, NULL, &err), WEIR_ENOMEM);
    assert_string_equal(err.text, "out of memory for a WebSocket");
    assert_null(w);
}

/* What could not be read whole is not read on. */
static void a_failure_to_read_is_the_end(void **state)
{
    struct weir__websocket *w = new_websocket();
    size_t room;

    (void)state;
    assert_non_null(weir__websocket_input(w, &room));
    no_reading = true;
    weir__websocket_received(w, 1);
    assert_true(weir__websocket_closed(w));
    assert_null(weir__websocket_input(w, &room));
    assert_int_equal(room, 0);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("a", 1)), 0);
    weir__websocket_free(w);
}

/* It is sent when there is memory again, once. */
static void output_waits_for_memory(void **state)
{
    struct weir__websocket *w = new_websocket();
    struct weir__bytes out;

    (void)state;
    no_memory = true;
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("abc", 3)), 3);
    assert_false(weir__websocket_closed(w));
    assert_int_equal(weir__websocket_output(w).len, 0);
    assert_false(weir__websocket_closed(w));
    no_memory = false;
    out = weir__websocket_output(w);
    assert_int_equal(out.len, 5);
    assert_memory_equal(out.at,
                        "\x82\x03"
                        "abc",
                        5);
    weir__websocket_free(w);
}

static void what_is_not_taken_may_come_again(void **state)
{
    struct weir__websocket *w = new_websocket();

    (void)state;
    no_queue = true;
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("abc", 3)), 0);
    no_queue = false;
    assert_int_equal(weir__websocket_output(w).len, 0);
    assert_int_equal(weir__websocket_send(w, weir__bytes_of("abc", 3)), 3);
    assert_int_equal(weir__websocket_output(w).len, 5);
    weir__websocket_free(w);
}

static void without_sha1_nobody_is_welcome(void **state)
{
    static const char head[] = "GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                               "Sec-WebSocket-Protocol: amqp\r\n\r\n";
    static const char *const protocols[] = {"amqp", NULL};
    struct weir__websocket_welcome welcome;
    struct weir__http_refusal refusal;
    struct weir__http_event ev;
    struct weir__http *h;
    size_t room;

    (void)state;
    assert_int_equal(weir__http_new(&h, NULL, NULL), 0);
    memcpy(weir__http_input(h, &room), head, sizeof head - 1);
    weir__http_received(h, sizeof head - 1);
    assert_true(weir__http_next(h, &ev));
    no_digest = true;
    assert_false(weir__websocket_welcome(ev.request, protocols, &welcome, &refusal));
    assert_int_equal(refusal.status, 500);
    assert_string_equal(refusal.text, "SHA-1 is not to be had here.");
    no_digest = false;
    assert_true(weir__websocket_welcome(ev.request, protocols, &welcome, &refusal));
    weir__http_free(h);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(there_is_none_without_memory),   TEST(a_failure_to_read_is_the_end),
        TEST(output_waits_for_memory),        TEST(what_is_not_taken_may_come_again),
        TEST(without_sha1_nobody_is_welcome),
    };

    return cmocka_run_group_tests_name("denied", tests, NULL, NULL);
}
