/* hasty.h - a client of a moody server that does not wait: its loop's clock stands behind
 * weir__loop_now_ms and weir__loop_timer_start (tests/CMakeLists.txt). A pause that the test expects
 * passes at once, and the clock is put forward by it; any other takes as long as it takes, and the
 * test fails. */
#ifndef WEIR_TESTS_CLIENT_HASTY_H
#define WEIR_TESTS_CLIENT_HASTY_H

#include "client/contract/place.h"

#include <unistd.h>

#include "client/moody.h"
#include "io/loop.h"

#define HASTY_HANG_S 60
#define HASTY_LINES 8
#define HASTY_LINE_BYTES 512
#define HASTY_PAUSES 8
#define HASTY_BUSY_MS 4000 /* that a busy side asks for */

/* ---- the clock ---- */

/* A pause that is expected. */
struct hasty_pause {
    int64_t least_ms, most_ms;
};

static struct {
    struct hasty_pause expected[HASTY_PAUSES];
    atomic_uint count, passed;
    atomic_int_fast64_t ahead_ms; /* of the true time */
} hasty;

int64_t __real_weir__loop_now_ms(const struct weir__loop *);
int64_t __wrap_weir__loop_now_ms(const struct weir__loop *);
void __real_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t);
void __wrap_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t);

int64_t __wrap_weir__loop_now_ms(const struct weir__loop *l)
{
    return __real_weir__loop_now_ms(l) + atomic_load(&hasty.ahead_ms);
}

/* Whether this pause is the next that is expected: then it is over. */
static inline bool hasty_pass(int64_t pause_ms)
{
    unsigned next = atomic_load(&hasty.passed);
    const struct hasty_pause *p = &hasty.expected[next];

    if (next >= atomic_load(&hasty.count)) return false;
    if (pause_ms < p->least_ms || pause_ms > p->most_ms) return false;
    atomic_fetch_add(&hasty.ahead_ms, pause_ms);
    atomic_fetch_add(&hasty.passed, 1);
    return true;
}

void __wrap_weir__loop_timer_start(struct weir__loop *l, struct weir__timer *t, int64_t at_ms)
{
    if (at_ms != INT64_MAX && !hasty_pass(at_ms - __wrap_weir__loop_now_ms(l)))
        at_ms -= atomic_load(&hasty.ahead_ms);
    else if (at_ms != INT64_MAX)
        at_ms = __real_weir__loop_now_ms(l);
    __real_weir__loop_timer_start(l, t, at_ms);
}

static inline void hasty_expect(int64_t least_ms, int64_t most_ms)
{
    unsigned n = atomic_load(&hasty.count);

    assert_true(n < HASTY_PAUSES);
    hasty.expected[n] = (struct hasty_pause){least_ms, most_ms};
    atomic_store(&hasty.count, n + 1);
}

static inline void hasty_assert_passed(unsigned count)
{
    for (int64_t waited = 0; atomic_load(&hasty.passed) < count; waited++) {
        if (waited > PATIENCE_MS) fail_msg("%u of %u", atomic_load(&hasty.passed), count);
        poll(NULL, 0, 1);
    }
    assert_int_equal(atomic_load(&hasty.passed), count);
}

/* ---- a client of a moody server ---- */

static struct moody m;
static struct weir *w;
/* Of the log, from WEIR_INFO on: the loop's until it ends. */
static char hasty_lines[HASTY_LINES][HASTY_LINE_BYTES];
static atomic_uint hasty_line_count;

static inline void hasty_note(enum weir_level level, const char *room, const char *line, void *user)
{
    (void)user;
    if (level >= WEIR_INFO && hasty_line_count < HASTY_LINES)
        snprintf(hasty_lines[hasty_line_count++], HASTY_LINE_BYTES, "%s %s: %s",
                 level == WEIR_INFO ? "info" : "warn", room, line);
}

static inline void hasty_assert_line(unsigned number, const char *text)
{
    assert_true(number < hasty_line_count);
    assert_string_equal(hasty_lines[number], text);
}

static inline int hasty_set_up(void **state)
{
    (void)state;
    alarm(HASTY_HANG_S);
    memset(&m, 0, sizeof m);
    memset(&hasty, 0, sizeof hasty);
    hasty_line_count = 0;
    return 0;
}

static inline void hasty_open_with(const char *access)
{
    struct weir_options o = {.size = sizeof o,
                             .patience_ms = PATIENCE_MS,
                             .idle_ms = 3600000,
                             .log = hasty_note};
    char text[256];

    moody_start(&m);
    snprintf(text, sizeof text, "Endpoint=sb://%s/;%s;UseDevelopmentEmulator=true", m.address,
             access);
    assert_ok(weir_open(&w, text, &o, &err));
}

static inline void hasty_open(void)
{
    hasty_open_with("SharedAccessKeyName=any;SharedAccessKey=any");
}

static inline void hasty_close(void)
{
    assert_ok(weir_close(w, &err));
    moody_stop(&m);
}

static inline struct weir_receiver *hasty_open_on(const char *hub)
{
    struct weir_receiver *r;

    assert_ok(weir_receiver_open(&r, w, hub, 0, NULL, &err));
    return r;
}

#endif
