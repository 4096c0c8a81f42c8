/* say_test.c - what the program says on standard error, to the letter. */
#include <sys/stat.h>

#include "cli/exit.h"
#include "cli/folder.h"
#include "cli/said.h"
#include "cli/serve_log.h"
#include "cli/warning.h"
#include "support/tempdir.h"

/* ---- how a command ends ---- */

static void every_error_has_its_exit_and_advice(void **state)
{
    static const struct {
        int rc, exit;
        const char *line;
    } cases[] = {
        {WEIR_EINVAL, 2, "weir: x 7: why\n"},
        {WEIR_ENOTFOUND, 3,
         "weir: x 7: why; 'weir hub list' and 'weir hub show HUB' show what is there\n"},
        {WEIR_ETIMEDOUT, 5, "weir: x 7: why; a longer --timeout may help\n"},
        {WEIR_ELOCKED, 4, "weir: x 7: why; stop that process, or name another --data\n"},
        {WEIR_EUNREACHABLE, 4, "weir: x 7: why\n"},
        {WEIR_EEXIST, 1, "weir: x 7: why; choose another name or delete it first\n"},
        {WEIR_ENOSPACE, 1, "weir: x 7: why; make room on the disk and try again\n"},
        {WEIR_ECORRUPT, 1,
         "weir: x 7: why; 'weir inspect' shows the extent; nothing was deleted\n"},
        {WEIR_EVERSION, 1, "weir: x 7: why; use the release that wrote it, or a newer one\n"},
        {WEIR_EFAILED, 1, "weir: x 7: why; check the disk, then start again\n"},
        {WEIR_ENOMEM, 1, "weir: x 7: why\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_error err = {.code = cases[i].rc, .text = "why.."};
        int code;
        said_begin();
        code = weir__exit_error(cases[i].rc, &err, "x %d", 7);
        said_end();
        assert_int_equal(code, cases[i].exit);
        assert_string_equal(said_err, cases[i].line);
    }
}

static void an_error_without_text_has_the_codes(void **state)
{
    struct weir_error other = {.code = WEIR_EIO, .text = "old"}, empty = {.code = WEIR_EIO};
    int code[4];

    (void)state;
    said_begin();
    code[0] = weir__exit_error(WEIR_ENOMEM, NULL, "a");
    code[1] = weir__exit_error(WEIR_ENOMEM, &other, "b");
    code[2] = weir__exit_advise(WEIR_ENOTFOUND, NULL, "look", "c");
    code[3] = weir__exit_advise(WEIR_ETIMEDOUT, NULL, NULL, "d");
    weir__exit_error(WEIR_EIO, &empty, "e");
    said_end();
    assert_string_equal(said_err, "weir: a: out of memory\nweir: b: out of memory\n"
                                  "weir: c: no such thing; look\n"
                                  "weir: d: the deadline passed; a longer --timeout may help\n"
                                  "weir: e: \n");
    assert_int_equal(code[0], 1);
    assert_int_equal(code[1], 1);
    assert_int_equal(code[2], 3);
    assert_int_equal(code[3], 5);
}

/* What was printed before it comes before it, also in one file. */
static void an_error_comes_behind_the_output(void **state)
{
    int kept[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    FILE *both = tmpfile();
    char text[64] = "";

    (void)state;
    assert_non_null(both);
    fflush(stdout);
    dup2(fileno(both), STDOUT_FILENO);
    dup2(fileno(both), STDERR_FILENO);
    printf("output, ");
    weir__exit_error(WEIR_ENOMEM, NULL, "a");
    fflush(stdout);
    dup2(kept[0], STDOUT_FILENO);
    dup2(kept[1], STDERR_FILENO);
    close(kept[0]);
    close(kept[1]);
    rewind(both);
    assert_true(fread(text, 1, sizeof text - 1, both) > 0);
    fclose(both);
    assert_string_equal(text, "output, weir: a: out of memory\n");
}

static void usage_names_the_command(void **state)
{
    int code;

    (void)state;
    said_begin();
    code = weir__exit_usage("hub list", "bad %s", "x");
    weir__exit_usage("", "no command");
    said_end();
    assert_int_equal(code, WEIR__EXIT_USAGE);
    assert_string_equal(said_err, "weir: hub list: bad x; try 'weir hub list --help'\n"
                                  "weir: no command; try 'weir --help'\n");
}

/* ---- warnings ---- */

/* What strangers sent reaches the terminal as text only, and not without end. */
static void a_line_is_only_text(void **state)
{
    static char longest[4096];

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    said_begin();
    weir__print_line("room", "a\033[2J\n\x7f b\xc3\xa9");
    said_end();
    assert_string_equal(said_err, "weir: room: a?[2J?? b\xc3\xa9\n");
    said_begin();
    weir__print_line("r", longest);
    said_end();
    assert_int_equal(strlen(said_err), strlen("weir: r: \n") + 2047);
}

static void count_line(enum weir__level level, const char *room, const char *line, void *user)
{
    assert_int_equal(level, WEIR__WARN);
    assert_string_equal(room, "serve");
    assert_string_equal(line, "warning 16");
    ++*(int *)user;
}

static void the_first_warnings_are_kept(void **state)
{
    static struct weir__warnings w;
    int lines = 0;

    (void)state;
    said_begin();
    for (int i = 0; i < WEIR__WARNINGS_MAX; i++) weir__warn(&w, "warning %d", i);
    said_end();
    assert_int_equal(w.count, WEIR__WARNINGS_MAX);
    assert_string_equal(w.text[0], "warning 0");
    assert_string_equal(w.text[15], "warning 15");
    assert_non_null(strstr(said_err, "weir: serve: warning 15\n"));
    w.logger = (struct weir__logger){count_line, &lines};
    weir__warn(&w, "warning %d", 16);
    assert_int_equal(lines, 1);
    assert_int_equal(w.count, WEIR__WARNINGS_MAX);
}

/* ---- the log of a server ---- */

static struct weir__serve_log server_log;

/* One line, without its time. */
static const char *log_line(const char *format, bool about, const char *text, const char *behind)
{
    struct weir__server_about peer = {17, "127.0.0.1:9"};
    const char *at;

    assert_true(weir__serve_log_format(&server_log, format));
    said_begin();
    weir__serve_log_about(WEIR__WARN, "server", about ? &peer : NULL, text, &server_log);
    said_end();
    at = strstr(said_err, behind);
    assert_non_null(at);
    return at + strlen(behind);
}

static void lines_have_three_forms(void **state)
{
    (void)state;
    assert_true(weir__serve_log_level(&server_log, NULL));
    assert_string_equal(log_line(NULL, false, "a \"b\"", "Z "), "WARN server: a \"b\"\n");
    assert_string_equal(log_line("text", true, "a", "Z "), "WARN server #17 127.0.0.1:9: a\n");
    assert_string_equal(log_line("logfmt", true, "a\\b \"c\"", "Z "),
                        "level=warn room=server connection=17 peer=127.0.0.1:9 "
                        "message=\"a\\\\b \\\"c\\\"\"\n");
    assert_memory_equal(said_err, "time=20", 7);
    assert_string_equal(log_line("json", false, "a", "Z\""),
                        ",\"level\":\"warn\",\"room\":\"server\",\"message\":\"a\"}\n");
    assert_memory_equal(said_err, "{\"time\":\"20", 11);
    assert_string_equal(log_line("json", true, "a", "Z\""),
                        ",\"level\":\"warn\",\"room\":\"server\",\"connection\":17,"
                        "\"peer\":\"127.0.0.1:9\",\"message\":\"a\"}\n");
    assert_false(weir__serve_log_format(&server_log, "xml"));
    assert_false(weir__serve_log_level(&server_log, "loud"));
}

static void a_long_line_is_cut_and_closed(void **state)
{
    static char longest[8192];

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    log_line("json", false, longest, "Z");
    assert_int_equal(strlen(said_err), 4000 - 2);
    assert_string_equal(said_err + strlen(said_err) - 5, "xx\"}\n");
    log_line("text", false, longest, "Z");
    assert_string_equal(said_err + strlen(said_err) - 3, "xx\n");
}

static void lower_levels_are_silent(void **state)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};

    (void)state;
    assert_true(weir__serve_log_format(&server_log, "text"));
    for (int at = 0; at < 4; at++) {
        assert_true(weir__serve_log_level(&server_log, levels[at]));
        for (int level = WEIR__DEBUG; level <= WEIR__ERROR; level++) {
            said_begin();
            weir__serve_log_line((enum weir__level)level, "r", "t", &server_log);
            said_end();
            assert_int_equal(*said_err != '\0', level >= at);
        }
    }
}

/* Nobody reads; then somebody does. */
static void lines_that_were_lost_are_counted(void **state)
{
    int kept = dup(STDERR_FILENO), ends[2];

    (void)state;
    assert_true(weir__serve_log_level(&server_log, "info"));
    assert_true(weir__serve_log_format(&server_log, "text"));
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    while (atomic_load(&server_log.lost) < 2)
        weir__serve_log_line(WEIR__INFO, "r", "a line", &server_log);
    dup2(kept, STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    close(kept);
    said_begin();
    weir__serve_log_line(WEIR__INFO, "r", "next", &server_log);
    said_end();
    assert_non_null(
        strstr(said_err, "Z WARN log: 2 lines of this log were lost: nobody read them\n"));
    assert_non_null(strstr(said_err, "Z INFO r: next\n"));
    assert_int_equal(atomic_load(&server_log.lost), 0);
}

/* ---- folders ---- */

static char dir[TEMPDIR_BYTES];

static void put(const char *name)
{
    char path[TEMPDIR_BYTES + 64];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void only_files_of_others_make_a_folder_strange(void **state)
{
    static const char *const ours[] = {"lock",      "id",    "owner",        "serving",
                                       ".hidden",   "hub-7", "processor.db", "processor.db-wal",
                                       "lost+found"};
    struct weir_error err;
    char text[1024];

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) put(ours[i]);
    assert_int_equal(weir__folder_check(dir, &err), 0);
    put("locks");
    assert_int_equal(weir__folder_check(dir, &err), WEIR_EINVAL);
    snprintf(text, sizeof text,
             "%s has no hubs, but files of others, like locks: name an empty folder, or one that "
             "is not there yet",
             dir);
    assert_string_equal(err.text, text);
    put("catalog.0");
    assert_int_equal(weir__folder_check(dir, &err), 0);
    tempdir_remove(dir);
    assert_int_equal(weir__folder_check(dir, &err), 0);
}

static void a_folder_that_all_may_change_is_doubted(void **state)
{
    char text[1024];

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    assert_null(weir__folder_doubt(dir));
    assert_int_equal(chmod(dir, 0770), 0);
    assert_null(weir__folder_doubt(dir));
    assert_int_equal(chmod(dir, 0702), 0);
    snprintf(text, sizeof text,
             "anybody on this machine may change or remove what is stored in %s: 'chmod o-w' on it "
             "ends that",
             dir);
    assert_string_equal(weir__folder_doubt(dir), text);
    assert_int_equal(chmod(dir, 0700), 0);
    if (chown(dir, 65534, (gid_t)-1) == 0) { /* which root may, and then it is another's */
        snprintf(text, sizeof text,
                 "%s belongs to another user (65534), who may change or remove what is stored",
                 dir);
        assert_string_equal(weir__folder_doubt(dir), text);
    }
    tempdir_remove(dir);
    assert_null(weir__folder_doubt(dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_exit_and_advice),
        cmocka_unit_test(an_error_without_text_has_the_codes),
        cmocka_unit_test(an_error_comes_behind_the_output),
        cmocka_unit_test(usage_names_the_command),
        cmocka_unit_test(a_line_is_only_text),
        cmocka_unit_test(the_first_warnings_are_kept),
        cmocka_unit_test(lines_have_three_forms),
        cmocka_unit_test(a_long_line_is_cut_and_closed),
        cmocka_unit_test(lower_levels_are_silent),
        cmocka_unit_test(lines_that_were_lost_are_counted),
        cmocka_unit_test(only_files_of_others_make_a_folder_strange),
        cmocka_unit_test(a_folder_that_all_may_change_is_doubted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
