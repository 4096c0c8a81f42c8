/* limits_test.c - the limits of time of a connection, to the millisecond. It is on no loop: its clock stands
 * where the test puts it, and its timer is looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/state.h"

int64_t __wrap_weir__loop_now_ms(const struct weir__loop *);
void __wrap_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t at_ms);
void __wrap_weir__loop_defer(struct weir__loop *, struct weir__post *);

#define OPEN_MS 1000u
#define IDLE_MS 300u
#define STALL_MS 200u
#define END_MS 50u
#define NEVER INT64_MAX

static int64_t now_ms;
static unsigned starts, visits;

int64_t __wrap_weir__loop_now_ms(const struct weir__loop *l)
{
    (void)l;
    return now_ms;
}

void __wrap_weir__loop_timer_start(struct weir__loop *l, struct weir__timer *t, int64_t at_ms)
{
    (void)l;
    t->running = true;
    t->at_ms = at_ms;
    starts++;
}

void __wrap_weir__loop_defer(struct weir__loop *l, struct weir__post *p)
{
    (void)l, (void)p;
    visits++;
}

static struct weir__tcp *make(struct weir__tcp_limits limits, enum weir__tcp_state state)
{
    struct weir__tcp *c = weir__tcp_new(NULL, -1, state, &limits);

    assert_non_null(c);
    starts = visits = 0;
    return c;
}

static void drop(struct weir__tcp *c)
{
    free(c->why);
    weir__tcp_free(c);
}

static const struct weir__tcp_limits all = {.open_ms = OPEN_MS,
                                            .idle_ms = IDLE_MS,
                                            .stall_ms = STALL_MS,
                                            .end_ms = END_MS};
static const struct weir__tcp_limits none = {.open_ms = WEIR__TCP_NEVER,
                                             .idle_ms = WEIR__TCP_NEVER,
                                             .stall_ms = WEIR__TCP_NEVER,
                                             .end_ms = WEIR__TCP_NEVER};

#define CONNECTING "connecting took too long"
#define GREETING "the TLS handshake took too long"
#define STALLED "the peer does not read"
#define IDLE "nothing came and nothing went"
#define ENDING "the last bytes took too long"

/* Each state has its own; when it is reached, the connection is closed, and not before. */
static void every_state_has_its_limit(void **state)
{
    static const struct {
        enum weir__tcp_state state;
        bool blocked;
        int64_t since_ms, moved_ms, stall_ms, at_ms;
        const char *text;
    } rows[] = {
        {WEIR__TCP_DIALING, false, 10, 500, 500, 10 + OPEN_MS, CONNECTING},
        {WEIR__TCP_HANDSHAKE, false, 10, 500, 500, 10 + OPEN_MS, GREETING},
        {WEIR__TCP_HANDSHAKE, true, 10, 0, 0, 10 + OPEN_MS, GREETING},
        {WEIR__TCP_OPEN, false, 10, 500, 20, 500 + IDLE_MS, IDLE},
        {WEIR__TCP_OPEN, true, 10, 500, 500, 500 + STALL_MS, STALLED},
        {WEIR__TCP_OPEN, true, 10, 500, 599, 599 + STALL_MS, STALLED},
        {WEIR__TCP_OPEN, true, 10, 500, 600, 500 + IDLE_MS, STALLED}, /* both at once */
        {WEIR__TCP_OPEN, true, 10, 500, 601, 500 + IDLE_MS, IDLE},
        {WEIR__TCP_ENDING, true, 10, 500, 0, 10 + END_MS, ENDING},
        {WEIR__TCP_GOODBYE, true, 10, 500, 0, 10 + END_MS, ENDING},
        {WEIR__TCP_DRAINING, false, 10, 500, 0, 10 + END_MS, "the peer does not end"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__tcp *c = make(all, rows[i].state);
        c->blocked = rows[i].blocked;
        c->since_ms = rows[i].since_ms;
        c->moved_ms = rows[i].moved_ms;
        c->stall_ms = rows[i].stall_ms;
        weir__tcp_arm(c);
        assert_int_equal(c->timer.at_ms, rows[i].at_ms);
        now_ms = rows[i].at_ms - 1;
        c->timer.fn(c->timer.arg);
        assert_int_equal(c->state, rows[i].state);
        assert_int_equal(c->timer.at_ms, rows[i].at_ms);
        assert_int_equal(starts, 2);
        assert_int_equal(visits, 0);
        now_ms = rows[i].at_ms;
        c->timer.fn(c->timer.arg);
        assert_int_equal(c->state, WEIR__TCP_CLOSED);
        assert_string_equal(c->why, rows[i].text);
        assert_int_equal(c->code, rows[i].state == WEIR__TCP_DRAINING ? 0 : WEIR_ETIMEDOUT);
        assert_int_equal(starts, 2);
        assert_int_equal(visits, 1);
        drop(c);
    }
}

static void there_need_not_be_any(void **state)
{
    (void)state;
    for (int s = WEIR__TCP_DIALING; s < WEIR__TCP_CLOSED; s++) {
        struct weir__tcp *c = make(none, (enum weir__tcp_state)s);
        c->blocked = true;
        weir__tcp_arm(c);
        assert_true(c->timer.at_ms == NEVER);
        now_ms = NEVER - 1;
        c->timer.fn(c->timer.arg);
        assert_int_equal(c->state, s);
        drop(c);
    }
}

/* A caller that gives none has these. */
static void there_are_usual_ones(void **state)
{
    static const struct {
        enum weir__tcp_state state;
        bool blocked;
        int64_t at_ms;
    } rows[] = {
        {WEIR__TCP_DIALING, false, 10000}, {WEIR__TCP_HANDSHAKE, false, 10000},
        {WEIR__TCP_OPEN, false, NEVER},    {WEIR__TCP_OPEN, true, 60000},
        {WEIR__TCP_ENDING, false, 5000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__tcp *c = make((struct weir__tcp_limits){0}, rows[i].state);
        c->blocked = rows[i].blocked;
        weir__tcp_arm(c);
        assert_true(c->timer.at_ms == rows[i].at_ms);
        assert_int_equal(c->limits.dead_ms, 30000);
        drop(c);
    }
}

/* A timer that rings before looks again by itself, so moving bytes costs none. */
static void only_a_nearer_limit_sets_the_timer(void **state)
{
    static const struct {
        int64_t moved_ms;
        unsigned starts;
    } rows[] = {{500, 1}, {501, 1}, {500, 1}, {499, 2}};
    struct weir__tcp *c = make(all, WEIR__TCP_OPEN);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        c->moved_ms = rows[i].moved_ms;
        weir__tcp_arm(c);
        assert_int_equal(starts, rows[i].starts);
    }
    c->timer.running = false;
    weir__tcp_arm(c);
    assert_int_equal(starts, 3);
    assert_int_equal(c->timer.at_ms, 499 + IDLE_MS);
    drop(c);
}

/* From the wish to end to the last byte of the peer it is one limit; before that each state begins its
 * own. */
static void the_steps_of_the_end_are_one(void **state)
{
    static const struct {
        enum weir__tcp_state state;
        int64_t now_ms, since_ms;
    } rows[] = {
        {WEIR__TCP_HANDSHAKE, 20, 20}, {WEIR__TCP_OPEN, 30, 30},     {WEIR__TCP_ENDING, 40, 40},
        {WEIR__TCP_GOODBYE, 50, 40},   {WEIR__TCP_DRAINING, 60, 40},
    };
    struct weir__tcp *c = make(all, WEIR__TCP_DIALING);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        now_ms = rows[i].now_ms;
        weir__tcp_set_state(c, rows[i].state);
        assert_int_equal(c->state, rows[i].state);
        assert_int_equal(c->since_ms, rows[i].since_ms);
        assert_int_equal(c->moved_ms, rows[i].now_ms);
        assert_true(c->timer.running);
    }
    starts = 0;
    c->timer.running = false;
    weir__tcp_set_state(c, WEIR__TCP_CLOSED);
    assert_int_equal(starts, 0);
    drop(c);
}

static void the_first_reason_counts(void **state)
{
    struct weir_error second = {.code = WEIR_EIO, .text = "second"};
    struct weir__tcp *c = make(all, WEIR__TCP_OPEN);

    (void)state;
    weir__tcp_fail(c, WEIR_EDENIED, "the %s", "first");
    weir__tcp_fail_by(c, &second);
    weir__tcp_fail(c, 0, "third");
    assert_int_equal(c->code, WEIR_EDENIED);
    assert_string_equal(c->why, "the first");
    assert_int_equal(visits, 1);
    drop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_has_its_limit),
        cmocka_unit_test(there_need_not_be_any),
        cmocka_unit_test(there_are_usual_ones),
        cmocka_unit_test(only_a_nearer_limit_sets_the_timer),
        cmocka_unit_test(the_steps_of_the_end_are_one),
        cmocka_unit_test(the_first_reason_counts),
    };

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
