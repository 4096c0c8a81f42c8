/* serve_log_test.c - the lines of weir serve's log: their forms, their limit, and a reader that is
 * away. */
#include "cli/serve_log.h"

#include <fcntl.h>

#include "cli/said.h"

static struct weir__serve_log log_;
static const struct weir__server_about about = {.connection = 17, .peer = "127.0.0.1:4"};

/* The time, after which a line goes on: "2026-11-16T20:01:02.345Z", and nothing else. */
static const char *behind_time(const char *line, const char *before)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    size_t len = strlen(before);

    assert_memory_equal(line, before, len);
    line += len;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? line[i] < '0' || line[i] > '9' : line[i] != form[i])
            fail_msg("no time: %s", line);
    return line + sizeof form - 1;
}

static void expect_line(const char *format, enum weir__level level,
                        const struct weir__server_about *who, const char *before, const char *rest)
{
    assert_true(weir__serve_log_format(&log_, format));
    said_begin();
    if (who)
        weir__serve_log_about(level, "room", who, "a \"b\" \\c", &log_);
    else
        weir__serve_log_line(level, "room", "a \"b\" \\c", &log_);
    said_end();
    assert_string_equal(said_out, "");
    assert_string_equal(behind_time(said_err, before), rest);
}

static void each_form_says_the_same(void **state)
{
    (void)state;
    assert_true(weir__serve_log_level(&log_, "debug"));
    expect_line(NULL, WEIR__INFO, NULL, "", " INFO room: a \"b\" \\c\n");
    expect_line("text", WEIR__WARN, &about, "", " WARN room #17 127.0.0.1:4: a \"b\" \\c\n");
    expect_line("logfmt", WEIR__ERROR, NULL,
                "time=", " level=error room=room message=\"a \\\"b\\\" \\\\c\"\n");
    expect_line("logfmt", WEIR__DEBUG, &about, "time=",
                " level=debug room=room connection=17 peer=127.0.0.1:4 message=\"a \\\"b\\\" "
                "\\\\c\"\n");
    expect_line("json", WEIR__INFO, NULL, "{\"time\":\"",
                "\",\"level\":\"info\",\"room\":\"room\",\"message\":\"a \\\"b\\\" \\\\c\"}\n");
    expect_line("json", WEIR__WARN, &about, "{\"time\":\"",
                "\",\"level\":\"warn\",\"room\":\"room\",\"connection\":17,\"peer\":"
                "\"127.0.0.1:4\",\"message\":\"a \\\"b\\\" \\\\c\"}\n");
    assert_false(weir__serve_log_format(&log_, "xml"));
    assert_false(weir__serve_log_level(&log_, "loud"));
}

static void what_matters_less_is_left_out(void **state)
{
    static const char *const words[] = {"debug", "info", "warn", "error", NULL};
    static const enum weir__level levels[] = {WEIR__DEBUG, WEIR__INFO, WEIR__WARN, WEIR__ERROR,
                                              WEIR__INFO};

    (void)state;
    assert_true(weir__serve_log_format(&log_, "text"));
    for (size_t i = 0; i < 5; i++) {
        assert_true(weir__serve_log_level(&log_, words[i]));
        for (size_t n = 0; n < 4; n++) {
            said_begin();
            weir__serve_log_line(levels[n], "r", "t", &log_);
            said_end();
            assert_int_equal(*said_err != '\0', levels[n] >= levels[i]);
        }
    }
}

/* As long as it may be, it is whole for whoever reads it: at most what a pipe takes at once. */
static void a_long_line_is_cut_and_ended(void **state)
{
    static const char *const formats[] = {"text", "logfmt", "json"}, *const ends[] = {"x\n",
                                                                                      "x\"\n",
                                                                                      "x\"}\n"};
    char text[3971];

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t size = 3950; size < sizeof text; size++) {
        for (size_t i = 0; i < 3; i++) {
            size_t len;
            text[size] = '\0';
            assert_true(weir__serve_log_format(&log_, formats[i]));
            said_begin();
            weir__serve_log_line(WEIR__ERROR, "r", text, &log_);
            said_end();
            text[size] = 'x';
            len = strlen(said_err);
            assert_in_range(len, 3980, 4000);
            assert_string_equal(said_err + len - strlen(ends[i]), ends[i]);
        }
    }
}

/* Else what ends the text would be taken for a part of it. */
static void a_cut_does_not_part_a_backslash(void **state)
{
    char text[6000];

    (void)state;
    assert_true(weir__serve_log_format(&log_, "json"));
    for (size_t i = 0; i < 2; i++) {
        size_t slashes = 0, len;
        memset(text, '"', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        if (i == 1) text[0] = 'x';
        said_begin();
        weir__serve_log_line(WEIR__ERROR, "r", text, &log_);
        said_end();
        len = strlen(said_err);
        assert_in_range(len, 3990, 4000);
        assert_string_equal(said_err + len - 5, "\\\"\"}\n");
        while (said_err[len - 5 - slashes] == '\\') slashes++;
        assert_int_equal(slashes, 1);
    }
}

/* Fills a pipe until it takes no line. */
static void fill(int to)
{
    static const char zeros[4096];

    assert_int_equal(fcntl(to, F_SETFL, O_NONBLOCK), 0);
    while (write(to, zeros, sizeof zeros) > 0) {
    }
    assert_int_equal(fcntl(to, F_SETFL, 0), 0);
}

static void lines_that_nobody_read_are_counted(void **state)
{
    char text[4096];
    int ends[2], kept = dup(STDERR_FILENO);
    ssize_t len;

    (void)state;
    assert_true(weir__serve_log_format(&log_, "text"));
    assert_int_equal(pipe(ends), 0);
    fill(ends[1]);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    for (int i = 0; i < 3; i++) weir__serve_log_line(WEIR__ERROR, "r", "lost", &log_);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (read(ends[0], text, sizeof text) > 0) {
    }
    weir__serve_log_line(WEIR__ERROR, "r", "read", &log_);
    weir__serve_log_line(WEIR__ERROR, "r", "again", &log_);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    len = read(ends[0], text, sizeof text - 1);
    assert_true(len > 0);
    text[len] = '\0';
    assert_non_null(strstr(text, "Z WARN log: 3 lines of this log were lost: nobody read them\n"));
    assert_string_equal(behind_time(strchr(text, '\n') + 1, ""), strstr(text, " ERROR r: read\n"));
    assert_string_equal(strstr(text, " ERROR r: again\n"), " ERROR r: again\n");
    assert_null(strstr(text, "ERROR r: lost"));
    assert_null(strstr(strstr(text, "were lost") + 1, "were lost"));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_says_the_same),
        cmocka_unit_test(what_matters_less_is_left_out),
        cmocka_unit_test(a_long_line_is_cut_and_ended),
        cmocka_unit_test(a_cut_does_not_part_a_backslash),
        cmocka_unit_test(lines_that_nobody_read_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
