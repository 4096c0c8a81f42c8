/* feeder_test.c - a command that is fed the events of a partition: what it is given, what becomes of
 * what it prints, and how its end is seen. */
#define _GNU_SOURCE
#include "cli/feeder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include "cli/feeding.h"
#include "support/descriptors.h"

static char command[512];
static struct weir__feeder *feeder;
static uint64_t marked;

/* Feeds nothing more until something is marked, or goes wrong. */
static int await(struct weir_partition *p)
{
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    int rc = 0;

    while (rc == 0 && weir__mono_ns() < deadline_ns) {
        poll(NULL, 0, 1);
        rc = weir__feeder_feed(feeder, p, NULL, 0, &marked);
    }
    return rc;
}

static size_t count_lines(void)
{
    FILE *f = fopen(file, "r");
    size_t lines = 0;

    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    return lines;
}

/* ---- what it prints ---- */

#define NONE UINT64_MAX

/* In an order in which no mark goes back. */
static const struct {
    const char *text;
    uint64_t mark; /* of the events 0 to 4 */
} prints[] = {
    {"", NONE},      {"none", NONE}, {"0", 0},
    {"2\\n", 2},     {"2", 2},       {"0\\n1\\n3\\n", 3},
    {"done: 3.", 3}, {"3 /", 3},     {"3:", 3},
    {"4", 4},        {"5", 4},       {"18446744073709551615\\n", 4},
};
static uint64_t last_offset;

static void print_each(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    assert_int_equal(count, 5);
    last_offset = e[4].offset;
    for (size_t i = 0; i < sizeof prints / sizeof prints[0]; i++) {
        uint64_t mark = prints[i].mark;
        int rc;
        snprintf(command, sizeof command, "cat >/dev/null; printf '%s'", prints[i].text);
        assert_ok(weir__feeder_open(&feeder, command, p, &err));
        assert_int_equal(weir__feeder_feed(feeder, p, e, count, &marked), 0);
        rc = weir__feeder_close(feeder, p, &marked);
        if (rc != (mark != NONE) || (rc == 1 && marked != mark))
            fail_msg("%s: %d, %" PRIu64, prints[i].text, rc, marked);
    }
    over = true;
}

static void the_last_number_is_marked(void **state)
{
    struct weir_record r;

    (void)state;
    r = run_with(5, print_each);
    assert_int_equal(r.sequence, 4);
    assert_int_equal(strtoull(r.offset, NULL, 10), last_offset);
}

/* A number that was said before says nothing new. */
static void print_less(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    int rc;

    assert_int_equal(count, 5);
    assert_ok(weir__feeder_open(&feeder, "read -r line; echo 3; cat >/dev/null; echo 1", p, &err));
    rc = weir__feeder_feed(feeder, p, e, count, &marked);
    assert_int_equal(rc == 0 ? await(p) : rc, 1);
    assert_int_equal(marked, 3);
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 0);
    assert_int_equal(marked, 3);
    over = true;
}

static void a_smaller_number_is_not_marked(void **state)
{
    (void)state;
    assert_int_equal(run_with(5, print_less).sequence, 3);
}

/* ---- far apart ---- */

#define MANY 3000 /* more than are kept in mind at first */

static uint64_t fed;

/* The number that it says behind so many events is marked, if they have come by now. */
static void expect_mark(struct weir_partition *p, uint64_t before, uint64_t events, uint64_t number)
{
    if (before >= events || fed < events) return;
    if (marked != number) assert_int_equal(await(p), 1);
    assert_int_equal(marked, number);
}

static void feed_many(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    uint64_t before = fed;

    if (fed == 0)
        assert_ok(weir__feeder_open(&feeder,
                                    "awk 'NR == 600 { print 599; fflush() }"
                                    " NR == 2500 { print 700; fflush() } END { print NR - 2 }'",
                                    p, &err));
    for (size_t i = 0; i < count; i++)
        if (e[i].sequence == MANY - 2) last_offset = e[i].offset;
    assert_true(weir__feeder_feed(feeder, p, e, count, &marked) >= 0);
    fed += count;
    expect_mark(p, before, 600, 599);
    expect_mark(p, before, 2500, 700);
    if (fed < MANY) return;
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 1);
    assert_int_equal(marked, MANY - 2);
    over = true;
}

static void many_events_may_be_with_it(void **state)
{
    struct weir_record r;

    (void)state;
    fed = marked = 0;
    r = run_with(MANY, feed_many);
    assert_int_equal(r.sequence, MANY - 2);
    assert_int_equal(strtoull(r.offset, NULL, 10), last_offset);
}

/* It prints while it reads, and both are more than a pipe holds. */
static void feed_much(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    snprintf(command, sizeof command, "tee %s | tr 0-9 x", file);
    if (fed == 0) assert_ok(weir__feeder_open(&feeder, command, p, &err));
    assert_int_equal(weir__feeder_feed(feeder, p, e, count, &marked), 0);
    fed += count;
    if (fed < MANY) return;
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 0);
    assert_int_equal(count_lines(), MANY);
    over = true;
}

static void it_may_print_while_it_reads(void **state)
{
    (void)state;
    fed = 0;
    assert_false(run_with(MANY, feed_much).marked);
}

/* ---- how it ends ---- */

static const struct {
    const char *command, *how;
} ends[] = {
    {"read -r line; exit 3", "ended with exit code 3"},
    {"exit 1", "ended with exit code 1"},
    {"kill -KILL $$", "was killed by signal 9"},
    {"kill -TERM $$", "was killed by signal 15"}, /* which is blocked here, */
    {"kill -PIPE $$", "was killed by signal 13"}, /* and that is ignored */
    {"read -r a b c d group rest </proc/$$/stat; [ $group = $$ ] && exit 4",
     "ended with exit code 4"},
    {"[ \"$WEIR_PARTITION $WEIR_HUB $WEIR_GROUP $FEEDER\" = '0 h $Default x' ] && exit 5",
     "ended with exit code 5"},
};

static void fail_in_each_way(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    char how[WEIR__FEEDER_WHY_BYTES];
    unsigned open = descriptors_count();
    int rc;

    (void)count;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        assert_ok(weir__feeder_open(&feeder, ends[i].command, p, &err));
        assert_false(weir__feeder_failed(feeder, how));
        rc = weir__feeder_feed(feeder, p, e, 1, &marked);
        if (rc == 0) rc = await(p);
        assert_int_equal(rc, WEIR_EFAILED);
        assert_true(weir__feeder_failed(feeder, how));
        assert_string_equal(how, ends[i].how);
        assert_int_equal(descriptors_count(), open);
        assert_int_equal(weir__feeder_close(feeder, p, &marked), 0);
    }
    assert_false(weir__feeder_failed(NULL, how));
    assert_int_equal(weir__feeder_close(NULL, p, &marked), 0);
    over = true;
}

static void its_end_is_told(void **state)
{
    sigset_t all, before;

    (void)state;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    setenv("FEEDER", "x", 1);
    assert_false(run_with(1, fail_in_each_way).marked);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* What it said before it failed is done. */
static void fail_after_a_number(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    int rc;

    assert_ok(weir__feeder_open(&feeder, "read -r line; echo 1; exit 3", p, &err));
    rc = weir__feeder_feed(feeder, p, e, count, &marked);
    if (rc >= 0) await(p);
    weir__feeder_close(feeder, p, &marked);
    assert_int_equal(marked, 1);
    over = true;
}

static void a_number_before_a_failure_counts(void **state)
{
    (void)state;
    marked = 0;
    assert_int_equal(run_with(3, fail_after_a_number).sequence, 1);
}

/* One that ended well is started again, by the next event. */
static void end_well(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    unsigned open = descriptors_count();
    char how[WEIR__FEEDER_WHY_BYTES];
    int rc;

    assert_int_equal(count, 2);
    snprintf(command, sizeof command, "echo >>%s; read -r line; echo 9", file);
    assert_ok(weir__feeder_open(&feeder, command, p, &err));
    for (uint64_t i = 0; i < 2; i++) {
        rc = weir__feeder_feed(feeder, p, &e[i], 1, &marked);
        if (rc == 0) rc = await(p);
        assert_int_equal(rc, 1);
        assert_int_equal(marked, i);
        while (descriptors_count() > open) /* its end may come behind its number */
            assert_int_equal(weir__feeder_feed(feeder, p, NULL, 0, &marked), 0);
        assert_false(weir__feeder_failed(feeder, how));
        assert_int_equal(weir__feeder_feed(feeder, p, NULL, 0, &marked), 0);
        assert_int_equal(count_lines(), i + 1);
    }
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 0);
    assert_int_equal(count_lines(), 2);
    over = true;
}

static void one_that_ended_well_is_started_again(void **state)
{
    (void)state;
    assert_int_equal(run_with(2, end_well).sequence, 1);
}

/* One that cannot be started again is tried with the next events. */
static void start_again_later(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    unsigned open = descriptors_count();
    struct rlimit before, tight;
    int rc, next = dup(0);

    assert_int_equal(count, 2);
    close(next);
    snprintf(command, sizeof command, "echo >>%s; read -r line", file);
    assert_ok(weir__feeder_open(&feeder, command, p, &err));
    assert_int_equal(weir__feeder_feed(feeder, p, e, 1, &marked), 0);
    while (descriptors_count() > open)
        assert_int_equal(weir__feeder_feed(feeder, p, NULL, 0, &marked), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    rc = weir__feeder_feed(feeder, p, e + 1, 1, &marked);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(rc, WEIR_EBUSY);
    assert_int_equal(descriptors_count(), open);
    assert_int_equal(weir__feeder_feed(feeder, p, NULL, 0, &marked), 0);
    assert_int_equal(count_lines(), 1);
    assert_int_equal(weir__feeder_feed(feeder, p, e + 1, 1, &marked), 0);
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 0);
    assert_int_equal(count_lines(), 2);
    over = true;
}

static void one_that_does_not_start_is_tried_again(void **state)
{
    (void)state;
    assert_false(run_with(2, start_again_later).marked);
}

/* ---- without end ---- */

#define AT_ONCE 4096u

void __real_weir__json_event(FILE *to, const struct weir_event *e);
void __wrap_weir__json_event(FILE *to, const struct weir_event *e);

static bool prints_nothing;

void __wrap_weir__json_event(FILE *to, const struct weir_event *e)
{
    if (!prints_nothing) __real_weir__json_event(to, e);
}

static void feed_too_much(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    static struct weir_event same[AT_ONCE];

    (void)count;
    for (uint32_t i = 0; i < AT_ONCE; i++) same[i] = *e;
    assert_ok(weir__feeder_open(&feeder, "cat >/dev/null; echo 0", p, &err));
    prints_nothing = true;
    for (uint32_t n = 0; n < WEIR__FEEDER_EVENTS_MAX; n += AT_ONCE)
        assert_int_equal(weir__feeder_feed(feeder, p, same, AT_ONCE, &marked), 0);
    assert_int_equal(weir__feeder_feed(feeder, p, same, 1, &marked), WEIR_EBUSY);
    assert_int_equal(weir__feeder_feed(feeder, p, same, 0, &marked), 0);
    prints_nothing = false;
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 1);
    over = true;
}

/* What is with it is limited; it may still say that all of that is done. */
static void no_more_than_so_many_are_with_it(void **state)
{
    (void)state;
    assert_true(run_with(1, feed_too_much).marked);
}

FILE *__real_open_memstream(char **at, size_t *len);
FILE *__wrap_open_memstream(char **at, size_t *len);
int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);

static bool no_lines; /* there is no memory for them */
static FILE *lines;   /* for which it ends when they are whole; NULL: for none */
static bool ends_late;

FILE *__wrap_open_memstream(char **at, size_t *len)
{
    FILE *f = no_lines ? NULL : __real_open_memstream(at, len);

    if (ends_late) lines = f;
    return f;
}

int __wrap_fclose(FILE *f)
{
    bool fails = f == lines && lines;
    int rc = __real_fclose(f);

    if (fails) lines = NULL;
    return fails ? EOF : rc;
}

static void feed_without_memory(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    snprintf(command, sizeof command, "cat >%s; echo 0", file);
    assert_ok(weir__feeder_open(&feeder, command, p, &err));
    no_lines = true;
    assert_int_equal(weir__feeder_feed(feeder, p, e, count, &marked), WEIR_EBUSY);
    no_lines = false;
    ends_late = true;
    assert_int_equal(weir__feeder_feed(feeder, p, e, count, &marked), WEIR_EBUSY);
    ends_late = false;
    assert_int_equal(weir__feeder_feed(feeder, p, e, count, &marked), 0);
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 1);
    assert_int_equal(count_lines(), 1);
    over = true;
}

/* Lines that are not whole are not given, and the events come again. */
static void lines_without_memory_are_not_given(void **state)
{
    (void)state;
    assert_true(run_with(1, feed_without_memory).marked);
}

/* A number is about what was given before it. */
static void say_too_much(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    int rc;

    assert_int_equal(count, 2);
    assert_ok(weir__feeder_open(&feeder, "read -r line; echo 9; cat >/dev/null", p, &err));
    rc = weir__feeder_feed(feeder, p, e, 1, &marked);
    assert_int_equal(rc == 0 ? await(p) : rc, 1);
    assert_int_equal(marked, 0);
    assert_int_equal(weir__feeder_feed(feeder, p, e + 1, 1, &marked), 0);
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 0);
    over = true;
}

static void what_comes_later_is_not_done(void **state)
{
    (void)state;
    assert_int_equal(run_with(2, say_too_much).sequence, 0);
}

/* The end of its input comes although another command runs that was started meanwhile. */
static void close_the_first(struct weir_partition *p, const struct weir_event *e, size_t count)
{
    struct weir__feeder *other;

    assert_ok(weir__feeder_open(&feeder, "cat >/dev/null; echo 0", p, &err));
    assert_ok(weir__feeder_open(&other, "cat >/dev/null", p, &err));
    assert_int_equal(weir__feeder_feed(feeder, p, e, count, &marked), 0);
    assert_int_equal(weir__feeder_close(feeder, p, &marked), 1);
    assert_int_equal(weir__feeder_close(other, p, &marked), 0);
    over = true;
}

static void commands_do_not_hold_each_other(void **state)
{
    (void)state;
    assert_true(run_with(1, close_the_first).marked);
}

/* ---- no pipes ---- */

static void without_pipes_nothing_is_closed(void **state)
{
    unsigned open = descriptors_count();
    struct rlimit before, tight;
    int next = dup(0);

    (void)state;
    assert_true(next > 2);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int left = 0; left < 4; left++) { /* two pipes have four ends */
        int rc;
        tight = before;
        tight.rlim_cur = (rlim_t)(next + left);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        rc = weir__feeder_open(&feeder, "cat", NULL, &err);
        setrlimit(RLIMIT_NOFILE, &before);
        assert_int_not_equal(rc, 0);
        assert_null(feeder);
        assert_string_equal(err.text,
                            "a pipe to the command: Too many open files (this process has no "
                            "file descriptor left: raise ulimit -n)");
        for (int fd = 0; fd < 3; fd++) assert_true(fcntl(fd, F_GETFD) >= 0);
        assert_int_equal(descriptors_count(), open);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_smaller_number_is_not_marked),
        cmocka_unit_test(the_last_number_is_marked),
        cmocka_unit_test(many_events_may_be_with_it),
        cmocka_unit_test(it_may_print_while_it_reads),
        cmocka_unit_test(its_end_is_told),
        cmocka_unit_test(a_number_before_a_failure_counts),
        cmocka_unit_test(one_that_ended_well_is_started_again),
        cmocka_unit_test(one_that_does_not_start_is_tried_again),
        cmocka_unit_test(no_more_than_so_many_are_with_it),
        cmocka_unit_test(lines_without_memory_are_not_given),
        cmocka_unit_test(what_comes_later_is_not_done),
        cmocka_unit_test(commands_do_not_hold_each_other),
        cmocka_unit_test(without_pipes_nothing_is_closed),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
