/* args_test.c - one table with an option of every kind, from the command line and from the
 * environment. */
#include "cli/args.h"
#include "cli/exit.h"
#include "cli/said.h"
#include "cli/slip.h"

struct options {
    struct weir__common common;
    bool flag;
    const char *text;
    struct weir__args_number number, duration, bytes;
    struct weir__args_list list;
};

static const struct weir__args_row rows[] = {
    {"flag", WEIR__ARGS_FLAG, offsetof(struct options, flag), NULL, "raises it"},
    {"a-text", WEIR__ARGS_TEXT, offsetof(struct options, text), "TEXT", "some text"},
    {"number", WEIR__ARGS_NUMBER, offsetof(struct options, number), "N", "a number"},
    {"duration", WEIR__ARGS_DURATION, offsetof(struct options, duration), "T", "a time"},
    {"bytes", WEIR__ARGS_BYTES, offsetof(struct options, bytes), "SIZE", "a size"},
    {"list", WEIR__ARGS_LIST, offsetof(struct options, list), "X", "many"},
    {"lag", WEIR__ARGS_FLAG, offsetof(struct options, flag), NULL, "short"},
    {"xy", WEIR__ARGS_FLAG, offsetof(struct options, flag), NULL, "shorter"},
    {0},
};

static const struct weir__command command = {.name = "try it",
                                             .words = "ONE [TWO]",
                                             .summary = "tries",
                                             .more = "And more.",
                                             .rows = rows,
                                             .words_min = 1,
                                             .words_max = 2};

static struct options o;
static int code;

/* Words with spaces between. */
static bool parse(const char *line)
{
    static char copy[1024];
    char *argv[256], *rest = NULL;
    int argc = 0;
    bool good;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *t = strtok_r(copy, " ", &rest); t; t = strtok_r(NULL, " ", &rest)) argv[argc++] = t;
    o = (struct options){0};
    code = -1;
    said_begin();
    good = weir__args_parse(&command, argc, argv, &o.common, &code);
    said_end();
    return good;
}

static void expect_parsed(const char *line)
{
    if (!parse(line)) fail_msg("%s: %s", line, said_err);
    assert_string_equal(said_out, "");
    assert_string_equal(said_err, "");
}

static void expect_refused(const char *line, const char *complaint)
{
    char whole[512];

    if (parse(line)) fail_msg("taken: %s", line);
    assert_int_equal(code, WEIR__EXIT_USAGE);
    snprintf(whole, sizeof whole, "weir: try it: %s\n", complaint);
    assert_string_equal(said_err, whole);
    assert_string_equal(said_out, "");
}

static void words_and_options_are_told_apart(void **state)
{
    (void)state;
    expect_parsed("one");
    assert_int_equal(o.common.words, 1);
    assert_string_equal(o.common.word[0], "one");
    assert_false(o.flag || o.number.given || o.duration.given || o.bytes.given);
    assert_null(o.text);
    expect_parsed("--flag one --a-text=b=c - --number 7 --duration 90s --bytes 3K");
    assert_int_equal(o.common.words, 2);
    assert_string_equal(o.common.word[1], "-");
    assert_true(o.flag && o.number.given && o.duration.given && o.bytes.given);
    assert_string_equal(o.text, "b=c");
    assert_int_equal(o.number.value, 7);
    assert_int_equal(o.duration.value, 90000);
    assert_int_equal(o.bytes.value, 3072);
    expect_parsed("--a-text --flag -- --flag --");
    assert_string_equal(o.text, "--flag");
    assert_false(o.flag);
    assert_string_equal(o.common.word[0], "--flag");
    assert_string_equal(o.common.word[1], "--");
    expect_parsed("-- --help");
    expect_parsed("one --a-text=");
    assert_string_equal(o.text, "");
}

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    expect_refused("", "ONE [TWO] is missing; try 'weir try it --help'");
    expect_refused("a b c", "unexpected 'c'; try 'weir try it --help'");
    expect_refused("a -x", "unknown option '-x'; try 'weir try it --help'");
    expect_refused("a --flag=1", "--flag takes no value; try 'weir try it --help'");
    expect_refused("a --number", "--number needs a value; try 'weir try it --help'");
    expect_refused("a --number x",
                   "--number must be a whole number, not 'x'; try 'weir try it --help'");
    expect_refused("a --duration 7", "--duration must be a duration like 250ms, 30s, 10m, 12h or "
                                     "7d, not '7'; try 'weir try it --help'");
    expect_refused("a --bytes 7k", "--bytes must be a size like 4096, 64K, 256M or 10G, not '7k'; "
                                   "try 'weir try it --help'");
    assert_false(parse("a --list"));
}

/* The nearest is meant; a short name is like none, and neither is a very long one. */
static void an_option_is_guessed(void **state)
{
    char line[128], complaint[256], name[70];

    (void)state;
    expect_refused("a --flga", "unknown option '--flga'; did you mean --flag?");
    expect_refused("a --lags=1", "unknown option '--lags'; did you mean --lag?");
    expect_refused("a --la", "unknown option '--la'; did you mean --lag?");
    expect_refused("a --brtea", "unknown option '--brtea'; did you mean --bytes?");
    expect_refused("a --dta", "unknown option '--dta'; did you mean --data?");
    expect_refused("a --brtexa", "unknown option '--brtexa'; try 'weir try it --help'");
    expect_refused("a --l", "unknown option '--l'; try 'weir try it --help'");
    expect_refused("a --x", "unknown option '--x'; try 'weir try it --help'");
    expect_refused("a --number2", "unknown option '--number2'; did you mean --number?");
    expect_refused("a --numbe=", "unknown option '--numbe'; did you mean --number?");
    for (size_t len = WEIR__SLIP_BYTES - 1; len <= WEIR__SLIP_BYTES + 1; len++) {
        memset(name, 'z', len);
        name[len] = '\0';
        snprintf(line, sizeof line, "a --%s", name);
        snprintf(complaint, sizeof complaint, "unknown option '--%s'; try 'weir try it --help'",
                 name);
        expect_refused(line, complaint);
    }
}

static void help_is_printed(void **state)
{
    const char *text = "usage: weir try it ONE [TWO] [options]\n\ntries\n\nAnd more.\n\noptions:\n"
                       "  --flag                     raises it\n"
                       "  --a-text TEXT              some text\n";

    (void)state;
    assert_false(parse("a b c --nonsense --help"));
    assert_int_equal(code, WEIR__EXIT_OK);
    assert_string_equal(said_err, "");
    assert_memory_equal(said_out, text, strlen(text));
    assert_non_null(strstr(said_out, "\n  --data DIR                 the folder of the hubs"));
    assert_non_null(strstr(said_out, "\n  --help                     this text\n"));
    assert_false(parse("-h"));
    assert_int_equal(code, WEIR__EXIT_OK);
}

/* ---- amounts ---- */

static void amounts_have_their_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } sizes[] = {{"0", 0},
                 {"4096", 4096},
                 {"1K", 1024},
                 {"2M", 2 << 20},
                 {"3G", UINT64_C(3) << 30},
                 {"4T", UINT64_C(4) << 40},
                 {"9223372036854775807", INT64_MAX},
                 {"8388607T", UINT64_C(8388607) << 40}},
      durations[] = {{"250ms", 250},    {"30s", 30000},    {"10m", 600000},
                     {"12h", 43200000}, {"7d", 604800000}, {"0s", 0}};
    char line[64];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(line, sizeof line, "a --bytes %s", sizes[i].text);
        expect_parsed(line);
        assert_true(o.bytes.value == sizes[i].value);
    }
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        snprintf(line, sizeof line, "a --duration %s", durations[i].text);
        expect_parsed(line);
        assert_true(o.duration.value == durations[i].value);
    }
}

static void what_is_no_amount_is_refused(void **state)
{
    static const char *const bad[] = {"a --number +1",
                                      "a --number -1",
                                      "a --number=",
                                      "a --number 1K",
                                      "a --number :",
                                      "a --number /",
                                      "a --number 9223372036854775808",
                                      "a --number 18446744073709551616",
                                      "a --bytes 8388608T",
                                      "a --bytes 16777216T",
                                      "a --bytes 1KB",
                                      "a --bytes K",
                                      "a --duration s",
                                      "a --duration 1S",
                                      "a --duration 106751991168d"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (parse(bad[i])) fail_msg("taken: %s", bad[i]);
}

static void a_list_has_64_at_most(void **state)
{
    char line[1024] = "a";
    size_t len = 1;

    (void)state;
    for (int i = 0; i < WEIR__ARGS_LIST_MAX; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, " --list %d", i);
    expect_parsed(line);
    assert_int_equal(o.list.count, WEIR__ARGS_LIST_MAX);
    assert_string_equal(o.list.at[0], "0");
    assert_string_equal(o.list.at[63], "63");
    snprintf(line + len, sizeof line - len, " --list x");
    expect_refused(line,
                   "--list must be given at most 64 times, not 'x'; try 'weir try it --help'");
}

/* ---- the environment ---- */

static void the_folder_has_three_sources(void **state)
{
    (void)state;
    unsetenv("WEIR_DATA");
    expect_parsed("a");
    assert_string_equal(o.common.data, "./weir-data");
    assert_false(o.common.data_given || o.common.data_named);
    setenv("WEIR_DATA", "", 1);
    expect_parsed("a");
    assert_string_equal(o.common.data, "./weir-data");
    assert_false(o.common.data_named);
    setenv("WEIR_DATA", "there", 1);
    expect_parsed("a");
    assert_string_equal(o.common.data, "there");
    assert_true(o.common.data_named && !o.common.data_given);
    expect_parsed("a --data here");
    assert_string_equal(o.common.data, "here");
    assert_true(o.common.data_named && o.common.data_given);
    unsetenv("WEIR_DATA");
}

static bool environment(const char *line, const char *name, const char *value)
{
    bool good;

    expect_parsed(line);
    setenv(name, value, 1);
    said_begin();
    good = weir__args_environment(&command, &o.common, &code);
    said_end();
    unsetenv(name);
    return good;
}

static void variables_say_what_the_line_does_not(void **state)
{
    static const char *const on[] = {"1", "true", "YES", "On"};
    static const char *const off[] = {"0", "false", "No", "OFF", ""};

    (void)state;
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        assert_true(environment("a", "WEIR_FLAG", on[i]) && o.flag);
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        assert_true(environment("a", "WEIR_FLAG", off[i]) && !o.flag);
    assert_true(environment("a --flag", "WEIR_FLAG", "nonsense") && o.flag);
    assert_true(environment("a", "WEIR_A_TEXT", "t"));
    assert_string_equal(o.text, "t");
    assert_true(environment("a --a-text line", "WEIR_A_TEXT", "t"));
    assert_string_equal(o.text, "line");
    assert_true(environment("a", "WEIR_NUMBER", "7") && o.number.value == 7);
    assert_true(environment("a --number 0", "WEIR_NUMBER", "7") && o.number.value == 0);
    assert_true(environment("a", "WEIR_DURATION", "2s") && o.duration.value == 2000);
    assert_true(environment("a --duration 1s", "WEIR_DURATION", "2s") && o.duration.value == 1000);
    assert_true(environment("a", "WEIR_BYTES", "2K") && o.bytes.value == 2048);
    assert_true(environment("a", "WEIR_LIST", " x  yy ") && o.list.count == 2);
    assert_string_equal(o.list.at[0], "x");
    assert_string_equal(o.list.at[1], "yy");
    assert_true(environment("a --list z", "WEIR_LIST", "x yy") && o.list.count == 1);
}

static void wrong_variables_are_named(void **state)
{
    static char text[WEIR__ARGS_LIST_BYTES_MAX + 1];
    static const char number[] = "weir: try it: WEIR_NUMBER must be a whole number, not '-'; try "
                                 "'weir try it --help'\n";
    static const char list[] = "weir: try it: WEIR_LIST must be shorter, not 'x";

    (void)state;
    assert_false(environment("a", "WEIR_NUMBER", "-"));
    assert_int_equal(code, WEIR__EXIT_USAGE);
    assert_string_equal(said_err, number);
    assert_false(environment("a", "WEIR_FLAG", "2"));
    assert_non_null(strstr(said_err, "1 or 0, true or false, yes or no, on or off, not '2'"));
    memset(text, 'x', sizeof text - 1);
    assert_false(environment("a", "WEIR_LIST", text));
    assert_memory_equal(said_err, list, sizeof list - 1);
    text[sizeof text - 2] = '\0';
    assert_true(environment("a", "WEIR_LIST", text));
    for (size_t i = 1; i < 130; i += 2) text[i] = ' ';
    text[129] = '\0';
    assert_false(environment("a", "WEIR_LIST", text)); /* 65 */
    text[127] = '\0';
    assert_true(environment("a", "WEIR_LIST", text) && o.list.count == 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_options_are_told_apart),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(an_option_is_guessed),
        cmocka_unit_test(help_is_printed),
        cmocka_unit_test(amounts_have_their_units),
        cmocka_unit_test(what_is_no_amount_is_refused),
        cmocka_unit_test(a_list_has_64_at_most),
        cmocka_unit_test(the_folder_has_three_sources),
        cmocka_unit_test(variables_say_what_the_line_does_not),
        cmocka_unit_test(wrong_variables_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
