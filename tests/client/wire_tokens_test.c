/* Tokens: how often and when they are shown, who is told that one was refused, and which are kept. */
#include "client/hasty.h"

#define KEPT 64u /* tokens without a user */

/* A token that the other side could not look at is shown again, after pauses that grow; when it was
 * busy, after the pause that it asks for. */
static void a_token_is_tried_again(void **state)
{
    static const int statuses[] = {500, 500, 503, 500};

    (void)state;
    m.statuses = statuses;
    m.status_count = 4;
    hasty_expect(50, 100);
    hasty_expect(100, 200);
    hasty_expect(HASTY_BUSY_MS, HASTY_BUSY_MS);
    hasty_expect(200, 400);
    hasty_open();
    close_producer(open_pinned(w, 0));
    hasty_assert_passed(4);
    hasty_close();
    assert_int_equal(atomic_load(&m.tokens), 5);
    assert_int_equal(m.connections, 1);
    hasty_assert_line(
        0, "warn client: the token for sb://127.0.0.1/h: closed by the other side, which "
           "gave no reason");
    hasty_assert_line(2, "warn client: the token for sb://127.0.0.1/h: com.microsoft:server-busy");
    assert_int_equal(hasty_line_count, 4);
}

/* Twenty seconds are what an answer may take. */
static void a_token_without_an_answer_ends_the_connection(void **state)
{
    char text[HASTY_LINE_BYTES];

    (void)state;
    m.silent = 1;
    hasty_expect(20000, 20000);
    hasty_open();
    close_producer(open_pinned(w, 0));
    hasty_assert_passed(1);
    hasty_close();
    assert_int_equal(m.connections, 2);
    snprintf(text, sizeof text, "warn client: %s: no answer to a token", m.address);
    hasty_assert_line(0, text);
    assert_int_equal(hasty_line_count, 1);
}

/* Opening a producer is refused with this text. */
static void assert_denied(const char *text)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = 3};
    struct weir_producer *p;

    assert_int_equal(weir_producer_open(&p, w, "h", &o, &err), WEIR_EDENIED);
    assert_string_equal(err.text, text);
    assert_null(p);
}

static const char *signature(void)
{
    static char text[128];

    snprintf(text, sizeof text,
             "SharedAccessSignature=SharedAccessSignature sr=x&sig=x&se=%lld&skn=any",
             (long long)time(NULL) + 3600);
    return text;
}

/* Where there is one: a signature may be anybody's. */
static void a_key_that_is_refused_is_named(void **state)
{
    static const int statuses[] = {401};

    (void)state;
    m.statuses = statuses;
    m.status_count = 1;
    hasty_open();
    assert_denied("a link to h/Partitions/3: the key 'any' was refused: amqp:unauthorized-access");
    close_producer(open_pinned(w, 0)); /* whoever comes next asks again */
    hasty_close();
    assert_int_equal(atomic_load(&m.tokens), 2);
    hasty_set_up(NULL);
    m.statuses = statuses;
    m.status_count = 1;
    hasty_open_with(signature());
    assert_denied("a link to h/Partitions/3: amqp:unauthorized-access");
    hasty_close();
}

#define THREE_QUARTERS 2690000, 2700750 /* of an hour, with up to a second more or ten less */

static void a_token_is_renewed_after_three_quarters(void **state)
{
    struct weir_producer *p;

    (void)state;
    hasty_expect(THREE_QUARTERS);
    hasty_open();
    p = open_pinned(w, 0);
    hasty_assert_passed(1);
    while (atomic_load(&m.tokens) < 2) sched_yield();
    close_producer(p);
    hasty_close();
    assert_int_equal(m.attaches, 1);
    assert_int_equal(hasty_line_count, 0);
}

/* There is no other. */
static void a_signature_is_not_shown_twice(void **state)
{
    struct weir_producer *p;

    (void)state;
    hasty_expect(THREE_QUARTERS);
    hasty_open_with(signature());
    p = open_pinned(w, 0);
    send_text(p, "x");
    hasty_assert_passed(0);
    close_producer(p);
    hasty_close();
    assert_int_equal(atomic_load(&m.tokens), 1);
}

/* Tokens that nobody uses are kept for the next, so many of them, until they would be renewed. */
static void tokens_are_kept_a_while(void **state)
{
    char hub[16];

    (void)state;
    hasty_open();
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < KEPT; i++) {
            snprintf(hub, sizeof hub, "%u", i);
            weir_receiver_close(hasty_open_on(hub));
        }
    assert_int_equal(atomic_load(&m.tokens), KEPT);
    for (unsigned i = 0; i < 2; i++) weir_receiver_close(hasty_open_on("one more"));
    assert_int_equal(atomic_load(&m.tokens), KEPT + 2);
    hasty_close();
}

#define TEST(name) cmocka_unit_test_setup(name, hasty_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_tried_again),         TEST(a_token_without_an_answer_ends_the_connection),
        TEST(a_key_that_is_refused_is_named), TEST(a_token_is_renewed_after_three_quarters),
        TEST(a_signature_is_not_shown_twice), TEST(tokens_are_kept_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
