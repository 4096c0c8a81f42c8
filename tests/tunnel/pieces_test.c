/* pieces_test.c - a tunnel on a connection that writes as little as the test wants, for an owner that
 * takes as little as the test wants. */
#include "tunnel/tunnel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/websocket.h"
#include "support/allocs.h"

#define HEAD "HTTP/1.1 101 Switching\r\n\r\n"

/* ---- the connection ---- */

static const struct weir__tcp_calls *outer;
static void *outer_owner;
static unsigned flushed, paused, resumed;
static bool ending;

void __wrap_weir__tcp_adopt(struct weir__tcp *, const struct weir__tcp_calls *, void *);
void __wrap_weir__tcp_flush(struct weir__tcp *);
void __wrap_weir__tcp_pause(struct weir__tcp *);
void __wrap_weir__tcp_resume(struct weir__tcp *);
bool __wrap_weir__tcp_ending(const struct weir__tcp *);

void __wrap_weir__tcp_adopt(struct weir__tcp *c, const struct weir__tcp_calls *calls, void *owner)
{
    (void)c;
    outer = calls;
    outer_owner = owner;
}

void __wrap_weir__tcp_flush(struct weir__tcp *c)
{
    (void)c;
    flushed++;
}

void __wrap_weir__tcp_pause(struct weir__tcp *c)
{
    (void)c;
    paused++;
}

void __wrap_weir__tcp_resume(struct weir__tcp *c)
{
    (void)c;
    resumed++;
}

bool __wrap_weir__tcp_ending(const struct weir__tcp *c)
{
    (void)c;
    return ending;
}

/* And one that is opened when the test says so. */
static char aborted[WEIR_ERROR_TEXT_BYTES];
static unsigned stopped; /* clocks */

int __wrap_weir__tcp_connect(struct weir__tcp **, struct weir__loop *,
                             const struct weir__tcp_options *, const struct weir__tcp_calls *,
                             void *, struct weir_error *);
void __wrap_weir__tcp_abort(struct weir__tcp *, const char *);
struct weir__loop *__wrap_weir__tcp_loop(const struct weir__tcp *);
void __wrap_weir__loop_timer_stop(struct weir__loop *, struct weir__timer *);

int __wrap_weir__tcp_connect(struct weir__tcp **out, struct weir__loop *loop,
                             const struct weir__tcp_options *o,
                             const struct weir__tcp_calls *theirs, void *owner,
                             struct weir_error *err)
{
    (void)loop, (void)o, (void)err;
    *out = NULL;
    outer = theirs;
    outer_owner = owner;
    return 0;
}

void __wrap_weir__tcp_abort(struct weir__tcp *c, const char *why)
{
    (void)c;
    snprintf(aborted, sizeof aborted, "%s", why);
}

struct weir__loop *__wrap_weir__tcp_loop(const struct weir__tcp *c)
{
    (void)c;
    return NULL;
}

void __wrap_weir__loop_timer_stop(struct weir__loop *loop, struct weir__timer *timer)
{
    (void)loop, (void)timer;
    stopped++;
}

/* ---- the owner ---- */

struct owner {
    char got[64];
    size_t len, room; /* room is what it takes at once */
    const char *say;
    unsigned ends, closes;
};

static uint8_t *give_room(void *arg, size_t *room)
{
    struct owner *o = arg;

    *room = o->room;
    return (uint8_t *)o->got + o->len;
}

static void received(void *arg, size_t bytes)
{
    ((struct owner *)arg)->len += bytes;
}

static void ended(void *arg)
{
    ((struct owner *)arg)->ends++;
}

static struct weir__bytes output(void *arg)
{
    struct owner *o = arg;

    return weir__bytes_of(o->say, strlen(o->say));
}

static void sent(void *arg, size_t bytes)
{
    ((struct owner *)arg)->say += bytes;
}

static void closed(void *arg, const struct weir_error *why)
{
    (void)why;
    ((struct owner *)arg)->closes++;
}

static const struct weir__tcp_calls calls = {
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

static void start(struct owner *o, const char *head, const char *rest, size_t rest_len)
{
    struct weir__tunnel *t;

    flushed = paused = resumed = 0;
    ending = false;
    assert_int_equal(weir__tunnel_new(&t, NULL, weir__bytes_of(head, strlen(head)),
                                      weir__bytes_of(rest, rest_len), NULL),
                     0);
    weir__tunnel_start(t, NULL, &calls, o);
    assert_ptr_equal(outer_owner, t);
}

static void finish(struct owner *o)
{
    outer->closed(outer_owner, &(struct weir_error){0});
    assert_int_equal(o->closes, 1);
}

/* Writes what there is in pieces, and compares. */
static void write_all(const char *expected, size_t len, size_t piece)
{
    struct weir__bytes out;

    for (size_t at = 0, n; at < len; at += n) {
        out = outer->output(outer_owner);
        assert_in_range(out.len, 1, len - at);
        assert_memory_equal(out.at, expected + at, out.len);
        n = out.len < piece ? out.len : piece;
        outer->sent(outer_owner, n);
    }
    assert_int_equal(outer->output(outer_owner).len, 0);
}

/* ---- tests ---- */

static void what_is_said_goes_out_in_any_pieces(void **state)
{
    static const char wire[] = HEAD "\x82\x05"
                                    "hello";

    (void)state;
    for (size_t piece = 1; piece < sizeof wire; piece++) {
        struct owner o = {.say = "hello"};
        start(&o, HEAD, NULL, 0);
        assert_int_equal(flushed, 1);
        assert_int_equal(outer->output(outer_owner).len, strlen(HEAD)); /* alone, and first */
        assert_string_equal(o.say, "hello");
        write_all(wire, sizeof wire - 1, piece);
        assert_true(resumed >= 1);
        finish(&o);
    }
}

/* Reading is not resumed by the head: pongs could not have stopped it. */
static void a_frame_behind_the_request_is_read_byte_by_byte(void **state)
{
    static const char rest[] = "\x82\x83\0\0\0\0abc\x82\x82\0\0\0\0de";
    size_t room;

    (void)state;
    for (size_t take = 1; take < 8; take++) {
        struct owner o = {.say = "", .room = take};
        start(&o, HEAD, rest, sizeof rest - 1);
        assert_string_equal(o.got, "abcde");
        assert_int_equal(paused, 0);
        assert_non_null(outer->room(outer_owner, &room));
        assert_true(room > 1);
        write_all(HEAD, strlen(HEAD), 1);
        assert_int_equal(resumed, 0);
        finish(&o);
    }
}

static void an_owner_without_room_is_not_read_for(void **state)
{
    static const char rest[] = "\x82\x83\0\0\0\0abc";
    struct owner o = {.say = ""};
    size_t room;

    (void)state;
    start(&o, HEAD, rest, sizeof rest - 1);
    assert_int_equal(paused, 1);
    assert_null(outer->room(outer_owner, &room));
    assert_int_equal(room, 0);
    assert_int_equal(paused, 2);
    assert_int_equal(o.len, 0);
    o.room = sizeof o.got;
    assert_non_null(outer->room(outer_owner, &room));
    assert_string_equal(o.got, "abc");
    assert_int_equal(paused, 2);
    finish(&o);
}

/* The end of the owner is a close, and the peer's close an end that is told once. */
static void both_ends_are_told(void **state)
{
    static const char rest[] = "\x88\x80\0\0\0\0";
    struct owner o = {.say = "ab", .room = 8}, p = {.say = "lost", .room = 8};
    size_t room;

    (void)state;
    start(&o, "", NULL, 0);
    ending = true;
    write_all("\x82\x02"
              "ab\x88\x02\x03\xe8",
              8, 100);
    finish(&o);

    start(&p, "", rest, sizeof rest - 1);
    assert_int_equal(p.ends, 1);
    assert_null(outer->room(outer_owner, &room));
    assert_int_equal(p.ends, 1);
    write_all("\x88\x00", 2, 100);
    assert_string_equal(p.say, ""); /* nobody hears it */
    finish(&p);
}

/* ---- a client's side ---- */

static const struct weir__tunnel_options *to_server(void)
{
    static const char *const protocols[] = {"amqp", NULL};
    static const struct weir__tunnel_options o = {.tcp = {.address = "h:80"},
                                                  .path = "/x",
                                                  .protocols = protocols};

    stopped = 0;
    aborted[0] = '\0';
    return &o;
}

/* The whole request, of which nothing has left yet. */
static size_t knock(struct owner *o, char request[1024])
{
    struct weir__tcp *tcp;
    struct weir__bytes out;

    assert_int_equal(weir__tunnel_connect(&tcp, NULL, to_server(), &calls, o, NULL), 0);
    out = outer->output(outer_owner);
    assert_in_range(out.len, 100, 1023);
    memcpy(request, out.at, out.len);
    request[out.len] = '\0';
    assert_ptr_equal(strstr(request, "GET /x HTTP/1.1\r\nHost: h\r\n"), request);
    return out.len;
}

static void a_request_goes_out_in_any_pieces(void **state)
{
    char request[1024];

    (void)state;
    for (size_t piece = 1; piece < 200; piece += 33) {
        struct owner o = {.say = ""};
        size_t len = knock(&o, request);
        write_all(request, len, piece);
        finish(&o);
        assert_int_equal(stopped, 1);
    }
}

/* That of the server, to the request. */
static size_t agree(const char *request, char answer[512])
{
    const char *key = strstr(request, "Sec-WebSocket-Key: ") + strlen("Sec-WebSocket-Key: ");
    char accept[WEIR__WEBSOCKET_ACCEPT_BYTES];

    assert_true(weir__websocket_accept(weir__bytes_of(key, WEIR__WEBSOCKET_KEY_BYTES), accept));
    return (size_t)snprintf(answer, 512,
                            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                            "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                            "Sec-WebSocket-Protocol: amqp\r\n\r\n",
                            accept);
}

/* Then the connection ends as it does for other reasons, and the owner is told. */
static void no_memory_for_a_tunnel(void **state)
{
    struct owner o = {.say = ""};
    char request[1024], answer[512];
    uint8_t *to;
    size_t room, len;

    (void)state;
    knock(&o, request);
    len = agree(request, answer);
    to = outer->room(outer_owner, &room);
    assert_true(room >= len);
    memcpy(to, answer, len);
    allocs_fail(1);
    outer->received(outer_owner, len);
    assert_true(allocs_failed());
    allocs_fail(0);
    assert_string_equal(aborted, "no memory for a WebSocket");
    assert_int_equal(stopped, 0);
    finish(&o);
    assert_int_equal(stopped, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_goes_out_in_any_pieces),
        cmocka_unit_test(a_frame_behind_the_request_is_read_byte_by_byte),
        cmocka_unit_test(an_owner_without_room_is_not_read_for),
        cmocka_unit_test(both_ends_are_told),
        cmocka_unit_test(a_request_goes_out_in_any_pieces),
        cmocka_unit_test(no_memory_for_a_tunnel),
    };

    return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
