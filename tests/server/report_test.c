/* report_test.c - what the log says of connections: how much of it, and what those are told who came to
 * the wrong port. Time is the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/hurry.h"
#include "server/state.h"

#define PATIENCE_MS 20000
#define PEER "127.0.0.1:49152"
#define MAX WEIR__SERVER_REFUSALS_MAX
#define TIME_MS WEIR__SERVER_REFUSALS_MS

struct scene {
    int64_t now_ms;
    struct weir__server server;
    struct weir__mutex lock; /* for the lines: some are the loop's */
    struct weir__cond changed;
    int lines;
    enum weir__level level;
    char last[2048], room[16];
    uint64_t about;
};

static void keep_line(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;

    weir__mutex_lock(&s->lock);
    s->lines++;
    s->level = level;
    snprintf(s->room, sizeof s->room, "%s", room);
    snprintf(s->last, sizeof s->last, "%s", line);
    weir__cond_signal(&s->changed);
    weir__mutex_unlock(&s->lock);
}

static int64_t tell_time(void *self)
{
    return ((struct scene *)self)->now_ms;
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->server.logger = (struct weir__logger){keep_line, s};
    s->server.clock = (struct weir__clock){.wall_ms = tell_time, .mono_ms = tell_time, .self = s};
    weir__mutex_init(&s->server.lock);
    weir__mutex_init(&s->lock);
    weir__cond_init(&s->changed);
    hurry_watch(0);
    assert_int_equal(weir__loops_start(&s->server.loops, &(struct weir__loops_options){.count = 1},
                                       NULL),
                     0);
    weir__report_init(&s->server);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__loops_free(s->server.loops);
    weir__mutex_fini(&s->server.lock);
    weir__mutex_fini(&s->lock);
    weir__cond_fini(&s->changed);
    free(s);
    return 0;
}

/* ---- lines about a connection ---- */

static void about(enum weir__level level, const char *room, const struct weir__server_about *a,
                  const char *line, void *user)
{
    struct scene *s = user;

    keep_line(level, room, line, user);
    s->about = a->connection;
    assert_string_equal(a->peer, PEER);
}

static void the_peer_is_said_once(void **state)
{
    struct scene *s = *state;

    weir__report(&s->server, WEIR__INFO, "amqp", 7, PEER, "%s: %s", PEER, "reset");
    assert_string_equal(s->last, PEER ": reset");
    assert_string_equal(s->room, "amqp");
    assert_int_equal(s->level, WEIR__INFO);
    weir__report(&s->server, WEIR__DEBUG, "amqp", 7, PEER, "from %s", PEER);
    assert_string_equal(s->last, PEER ": from " PEER);
    s->server.about = about;
    weir__report(&s->server, WEIR__DEBUG, "http", 7, PEER, PEER " a\nb");
    assert_string_equal(s->last, "a\\x0ab");
    assert_string_equal(s->room, "http");
    assert_int_equal(s->level, WEIR__DEBUG);
    assert_int_equal(s->about, 7);
}

/* ---- how much ---- */

static void refuse(struct scene *s, int times)
{
    while (times-- > 0) weir__report_refused(&s->server, "http", 1, PEER, "no");
}

static void refusals_are_logged_up_to_a_limit(void **state)
{
    struct scene *s = *state;

    refuse(s, MAX);
    assert_int_equal(s->lines, MAX);
    assert_string_equal(s->last, PEER ": refused: no");
    assert_int_equal(s->level, WEIR__WARN);
    s->now_ms += TIME_MS - 1;
    refuse(s, 3);
    assert_int_equal(s->lines, MAX);
    s->now_ms++;
    refuse(s, 1);
    assert_int_equal(s->lines, MAX + 2); /* how many there were, and the next one */
    assert_string_equal(s->last, PEER ": refused: no");
    refuse(s, MAX + 1);
    assert_int_equal(s->lines, 2 * MAX + 1);
    weir__report_fini(&s->server);
    assert_int_equal(s->lines, 2 * MAX + 2);
    assert_string_equal(s->last, "2 more logins were refused within 10 s");
    assert_string_equal(s->room, "server");
    assert_int_equal(s->level, WEIR__WARN);
    assert_int_equal(atomic_load(&s->server.logins_refused), 2 * MAX + 5);
}

static void mistakes_of_strangers_have_a_limit_of_their_own(void **state)
{
    struct scene *s = *state;

    refuse(s, MAX);
    for (int i = 0; i < MAX; i++) assert_true(weir__report_allows(&s->server, false));
    for (int i = 0; i < 4; i++) assert_false(weir__report_allows(&s->server, false));
    for (int i = 0; i < MAX; i++) assert_true(weir__report_allows(&s->server, true));
    assert_int_equal(s->lines, MAX);
    weir__report_fini(&s->server);
    assert_int_equal(s->lines, MAX + 1);
    assert_string_equal(s->last,
                        "4 more lines about clients without a login were left out within 10 s");
    assert_int_equal(s->level, WEIR__INFO);
}

/* Waits for the loop's lines. */
static void expect_line(struct scene *s, int number, const char *text)
{
    int64_t deadline = weir__deadline_ns(PATIENCE_MS);

    weir__mutex_lock(&s->lock);
    while (s->lines < number && weir__cond_wait(&s->changed, &s->lock, deadline)) continue;
    assert_int_equal(s->lines, number);
    assert_string_equal(s->last, text);
    weir__mutex_unlock(&s->lock);
}

/* Nobody is refused any more, and what was left out is told all the same, once; then lines are
 * written again. */
static void what_was_left_out_is_told_at_the_end_of_its_time(void **state)
{
    struct scene *s = *state;

    refuse(s, MAX);
    hurry_through(TIME_MS);
    refuse(s, 1);
    expect_line(s, MAX + 1, "1 more logins were refused within 10 s");
    assert_int_equal(atomic_load(&hurry.count), 1);
    hurry_watch(0);
    refuse(s, MAX);
    expect_line(s, 2 * MAX + 1, PEER ": refused: no");
    refuse(s, 2);
    weir__loops_free(s->server.loops);
    s->server.loops = NULL;
    weir__report_fini(&s->server);
    expect_line(s, 2 * MAX + 2, "2 more logins were refused within 10 s");
}

/* ---- the wrong port ---- */

static void expect_answer(struct weir__bytes answer, const char *bytes, size_t len)
{
    assert_int_equal(answer.len, len);
    if (len) assert_memory_equal(answer.at, bytes, len);
}

#define ANSWER(answer, text) expect_answer(answer, text, sizeof text - 1)
#define SAY(s, bytes)                                                                              \
    weir__mistake_plain(&(s)->server, PEER, weir__bytes_of(bytes, sizeof bytes - 1))

/* A server without HTTP and TLS; one with both is in login_test.c. */
static void what_a_port_without_tls_answers(void **state)
{
    struct scene *s = *state;

    weir__mistakes_prepare(&s->server);
    ANSWER(SAY(s, "\x16\3\1"), "\x15\3\1\0\2\2\x28");
    assert_string_equal(s->last, PEER " speaks TLS, and this port has none: put "
                                      "UseDevelopmentEmulator=true into its connection string, or "
                                      "start weir with --amqps");
    ANSWER(SAY(s, "GET / HTTP/1.1"),
           "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
           "Content-Length: 62\r\n\r\nThis port speaks AMQP 1.0, and this server has none for "
           "HTTP.\n");
    assert_string_equal(s->last, PEER " speaks HTTP, and this port AMQP 1.0: HTTP is spoken on "
                                      "another port, see what weir said when it began");
    ANSWER(SAY(s, "\0\0\0\x23\0\x12\0\3"), "AMQP\0\1\0\0");
    assert_string_equal(s->last, PEER " speaks Kafka, and this port AMQP 1.0: Kafka's clients do "
                                      "not work here: use one for Event Hubs");
    ANSWER(SAY(s, "hello"), "AMQP\0\1\0\0");
    assert_string_equal(s->last, PEER " speaks something else, and this port AMQP 1.0: use a "
                                      "client for AMQP 1.0 or Event Hubs");
    ANSWER(SAY(s, "AMQP\0\2\0\0"), ""); /* the engine answers */
    assert_string_equal(s->last, PEER " speaks an unknown AMQP, and this port AMQP 1.0: use a "
                                      "client for AMQP 1.0 or Event Hubs");
    ANSWER(SAY(s, "AMQP\0\0\x9\1"), "");
    assert_string_equal(s->last, PEER " speaks AMQP 0-9-1, and this port AMQP 1.0: RabbitMQ's "
                                      "clients do not work here: use one for AMQP 1.0");
}

static void what_a_port_with_tls_answers(void **state)
{
#define WANTS " without TLS, and this port wants TLS: "
#define TO_PLAIN                                                                                   \
    "send it to the port without, or take UseDevelopmentEmulator=true out of its connection "      \
    "string"
    struct scene *s = *state;

    weir__mistakes_prepare(&s->server);
    ANSWER(weir__mistake_tls(&s->server, PEER, WEIR__SNIFF_AMQP), "AMQP\2\1\0\0");
    assert_string_equal(s->last, PEER " speaks AMQP 1.0" WANTS TO_PLAIN);
    ANSWER(weir__mistake_tls(&s->server, PEER, WEIR__SNIFF_AMQP_SASL), "AMQP\2\1\0\0");
    assert_string_equal(s->last, PEER " speaks AMQP 1.0" WANTS TO_PLAIN);
    ANSWER(weir__mistake_tls(&s->server, PEER, WEIR__SNIFF_UNKNOWN), "AMQP\2\1\0\0");
    assert_string_equal(s->last, PEER " speaks something else" WANTS
                                      "use a client for AMQP 1.0 or Event Hubs");
    ANSWER(weir__mistake_tls(&s->server, PEER, WEIR__SNIFF_HTTP),
           "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
           "Content-Length: 73\r\n\r\nThis port speaks AMQP 1.0 inside TLS, and this server has "
           "none for HTTP.\n");
}

static void a_handshake_that_failed_has_a_guess(void **state)
{
#define TRUST "trust the certificate of this server; weir trust says how it can"
    static const struct {
        struct weir_error why;
        const char *line;
    } rows[] = {
        {{WEIR_EINVAL, "tls: unknown ca"}, PEER ": tls: unknown ca: the client does not " TRUST},
        {{WEIR_EINVAL, "bad certificate"}, PEER ": bad certificate: the client does not " TRUST},
        {{WEIR_EINVAL, PEER ": certificate unknown"},
         PEER ": certificate unknown: the client does not " TRUST},
        {{WEIR_EUNREACHABLE, "reset"}, PEER ": reset: perhaps it does not " TRUST},
        {{WEIR_EINVAL, "no shared cipher"}, PEER ": no shared cipher"},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir__mistake_failed(&s->server, PEER, &rows[i].why);
        assert_string_equal(s->last, rows[i].line);
        assert_int_equal(s->level, WEIR__WARN);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_peer_is_said_once),
        TEST(refusals_are_logged_up_to_a_limit),
        TEST(mistakes_of_strangers_have_a_limit_of_their_own),
        TEST(what_was_left_out_is_told_at_the_end_of_its_time),
        TEST(what_a_port_without_tls_answers),
        TEST(what_a_port_with_tls_answers),
        TEST(a_handshake_that_failed_has_a_guess),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
