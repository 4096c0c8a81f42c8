#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_MAX_BYTES 8

static int in[2], stop[2];
static struct weir__lines lines;
static struct weir_error err;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
ssize_t __real_read(int fd, void *to, size_t room);
ssize_t __wrap_read(int fd, void *to, size_t room);

static unsigned polls_cut, reads_cut; /* by a signal, still */

static bool is_cut(unsigned *left)
{
    if (*left == 0) return false;
    --*left;
    errno = EINTR;
    return true;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return is_cut(&polls_cut) ? -1 : __real_poll(fds, count, timeout_ms);
}

ssize_t __wrap_read(int fd, void *to, size_t room)
{
    return is_cut(&reads_cut) ? -1 : __real_read(fd, to, room);
}

static int open_pipes(void **state)
{
    (void)state;
    polls_cut = reads_cut = 0;
    if (pipe(in) != 0 || pipe(stop) != 0) return -1;
    weir__lines_init(&lines, in[0], stop[0], LINE_MAX_BYTES);
    return 0;
}

static int close_pipes(void **state)
{
    (void)state;
    weir__lines_fini(&lines);
    close(in[0]);
    if (in[1] >= 0) close(in[1]);
    close(stop[0]);
    close(stop[1]);
    return 0;
}

static void type(const char *text)
{
    assert_int_equal(write(in[1], text, strlen(text)), (ssize_t)strlen(text));
}

static void end_input(void)
{
    close(in[1]);
    in[1] = -1;
}

static void expect_line(const char *text)
{
    struct weir__bytes line;

    assert_true(weir__lines_next(&lines, &line));
    assert_int_equal(line.len, strlen(text));
    assert_memory_equal(line.at, text, line.len);
}

static void expect_none(void)
{
    struct weir__bytes line;

    assert_false(weir__lines_next(&lines, &line));
}

static void fill(void)
{
    assert_int_equal(weir__lines_fill(&lines, &err), 0);
}

static void lines_come_when_they_are_whole(void **state)
{
    (void)state;
    expect_none();
    type("one\n\ntw");
    fill();
    expect_line("one");
    expect_line("");
    expect_none();
    expect_none();
    type("o\nthree\nf");
    fill();
    expect_line("two");
    type("our");
    fill(); /* with a line that was not taken */
    expect_line("three");
    expect_none();
    end_input();
    assert_false(lines.ended);
    fill();
    assert_true(lines.ended);
    expect_line("four");
    expect_none();
    assert_int_equal(lines.count, 5);
}

static void nothing_follows_the_last_newline(void **state)
{
    (void)state;
    type("one\n");
    end_input();
    fill();
    expect_line("one");
    expect_none();
    fill();
    assert_true(lines.ended);
    expect_none();
    assert_int_equal(lines.count, 1);
}

static void a_line_may_be_so_long_and_no_longer(void **state)
{
    (void)state;
    type("12345678\n12345678");
    fill();
    expect_line("12345678");
    expect_none();
    type("9");
    fill();
    expect_none();
    assert_int_equal(weir__lines_fill(&lines, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, "line 2 is longer than 8 bytes");
}

/* Also while there is more to read: whoever stops has enough. */
static void a_stop_ends_the_input(void **state)
{
    (void)state;
    type("one\ntw");
    fill();
    expect_line("one");
    expect_none();
    type("o\n");
    assert_int_equal(write(stop[1], "", 1), 1);
    fill();
    assert_true(lines.ended);
    expect_line("tw");
    expect_none();
}

/* As when the program was stopped and goes on. */
static void an_interruption_does_not_matter(void **state)
{
    (void)state;
    type("one\n");
    polls_cut = reads_cut = 2;
    fill();
    assert_int_equal(polls_cut + reads_cut, 0);
    expect_line("one");
    type("two\n");
    assert_int_equal(write(stop[1], "", 1), 1);
    polls_cut = 2;
    fill();
    assert_true(lines.ended);
    expect_none();
}

static void what_cannot_be_read_is_told(void **state)
{
    struct weir__lines other;
    int fd = open("/", O_RDONLY);

    (void)state;
    weir__lines_init(&other, fd, -1, LINE_MAX_BYTES);
    assert_int_equal(weir__lines_fill(&other, &err), WEIR_EIO);
    assert_string_equal(err.text, "reading the input: Is a directory");
    weir__lines_fini(&other);
    close(fd);
}

#define LINES(f) cmocka_unit_test_setup_teardown(f, open_pipes, close_pipes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINES(lines_come_when_they_are_whole),      LINES(nothing_follows_the_last_newline),
        LINES(a_line_may_be_so_long_and_no_longer), LINES(a_stop_ends_the_input),
        LINES(an_interruption_does_not_matter),     LINES(what_cannot_be_read_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
