/* main.c - the weir program: a table of commands. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/slip.h"
#include "weir/weir.h"

static int run_version(const struct weir__command *, int argc, char **argv);
static int run_help(const struct weir__command *, int argc, char **argv);
static int say_unknown(int argc, char **argv, bool two);

struct version_options {
    struct weir__common common;
    bool json;
};

static const struct weir__args_row version_rows[] = {
    {"json", WEIR__ARGS_FLAG, offsetof(struct version_options, json), NULL, "one line of JSON"},
    {0},
};

static const struct weir__command command_version = {.name = "version",
                                                     .words = "",
                                                     .summary = "print the version",
                                                     .rows = version_rows,
                                                     .run = run_version};

static const struct weir__command command_help = {.name = "help",
                                                  .words = "[COMMAND]",
                                                  .summary =
                                                      "print this list, or the help of a command",
                                                  .words_max = 2,
                                                  .run = run_help};

static const struct weir__command *const commands[] = {
    &weir__command_serve,
    &weir__command_hub_create,
    &weir__command_hub_list,
    &weir__command_hub_show,
    &weir__command_hub_update,
    &weir__command_hub_delete,
    &weir__command_hub_adopt,
    &weir__command_send,
    &weir__command_tail,
    &weir__command_process,
    &weir__command_group_create,
    &weir__command_group_list,
    &weir__command_group_describe,
    &weir__command_group_delete,
    &weir__command_checkpoint_list,
    &weir__command_checkpoint_set,
    &weir__command_checkpoint_delete,
    &weir__command_key_add,
    &weir__command_key_list,
    &weir__command_key_rotate,
    &weir__command_key_remove,
    &weir__command_trust,
    &weir__command_inspect,
    &weir__command_backup,
    &weir__command_restore,
    &weir__command_upgrade,
    &weir__command_demo,
    &weir__command_bench_send,
    &weir__command_bench_receive,
    &weir__command_bench_e2e,
    &weir__command_bench_wire,
    &weir__command_bench_log,
    &weir__command_sim,
    &command_version,
    &command_help,
};

#define COMMANDS (sizeof commands / sizeof commands[0])
#define LEFT_COLUMNS 27 /* of a command and its words, in a list */

/* How many of the words a command's name takes up: 0 when it is not the one. */
static int match_name(const char *name, int argc, char **argv)
{
    size_t len = argc > 0 ? strlen(argv[0]) : 0;

    if (argc > 0 && strcmp(name, argv[0]) == 0) return 1;
    if (argc < 2 || strncmp(name, argv[0], len) != 0 || name[len] != ' ') return 0;
    return strcmp(name + len + 1, argv[1]) == 0 ? 2 : 0;
}

static const struct weir__command *find_command(int argc, char **argv, int *out_words)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        *out_words = match_name(commands[i]->name, argc, argv);
        if (*out_words > 0) return commands[i];
    }
    return NULL;
}

/* "hub create" is below "hub". */
static bool is_below(const struct weir__command *c, const char *word)
{
    size_t len = strlen(word);

    return strncmp(c->name, word, len) == 0 && c->name[len] == ' ';
}

/* The commands whose name begins with the word, all for "". Returns how many. */
static int list_commands(FILE *to, const char *word)
{
    size_t len = strlen(word);
    int count = 0;

    for (size_t i = 0; i < COMMANDS; i++) {
        const struct weir__command *c = commands[i];
        char left[64];
        if (len > 0 && !is_below(c, word)) continue;
        if (count++ == 0)
            fprintf(to, "usage: weir %s%sCOMMAND [options]\n\n", word, len ? " " : "");
        snprintf(left, sizeof left, "%s %s", c->name, c->words);
        fprintf(to, "  %-*s  %s\n", LEFT_COLUMNS, left, c->summary);
    }
    return count;
}

static void print_overview(void)
{
    list_commands(stdout, "");
    printf(
        "\nEvery command has --help, and --data DIR for the folder of the hubs (or WEIR_DATA;\n"
        "default ./weir-data). hub, group, key, send, tail, process and checkpoint work on a\n"
        "server, too: --connect CONNSTR or HOST:PORT (or WEIR_CONNECT). When nobody says where,\n"
        "the folder and then weir serve on this machine are tried; a folder that weir serve\n"
        "holds is reached through it.\n\n"
        "exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 unreachable (nobody answers, or\n"
        "another process holds the folder), 5 timed out\n");
}

static int run_version(const struct weir__command *self, int argc, char **argv)
{
    struct version_options o = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    printf(o.json ? "{\"version\":\"%s\"}\n" : "weir %s\n", weir_version());
    return weir__exit_printed(WEIR__EXIT_OK);
}

static int run_help(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common options = {0};
    const struct weir__command *c;
    char *help[] = {(char[]){"help"}, (char[]){"--help"}, NULL};
    int code, words;

    if (!weir__args_parse(self, argc, argv, &options, &code)) return code;
    c = find_command(argc, argv, &words);
    if (c) return c->run(c, 1, help + 1);
    if (argc == 0)
        print_overview();
    else if (list_commands(stdout, argv[0]) == 0)
        return say_unknown(argc, argv, false);
    return weir__exit_printed(WEIR__EXIT_OK);
}

/* ---- slips ---- */

/* The command that was meant, by the first word or the first two; NULL: it is like none. */
static const char *guess(int argc, char **argv)
{
    const char *best = NULL;
    char typed[WEIR__SLIP_BYTES];
    unsigned best_distance = WEIR__SLIP_MAX + 1;

    for (size_t i = 0; i < COMMANDS; i++) {
        const char *name = commands[i]->name;
        bool two = strchr(name, ' ') != NULL && argc > 1;
        unsigned d;
        snprintf(typed, sizeof typed, "%s%s%s", argv[0], two ? " " : "", two ? argv[1] : "");
        d = weir__slip_distance(name, typed);
        if (d >= best_distance || d >= strlen(name) - 1) continue;
        best = name;
        best_distance = d;
    }
    return best;
}

static int say_unknown(int argc, char **argv, bool two)
{
    const char *meant = guess(argc, argv), *second = two ? argv[1] : "";

    if (!meant)
        return weir__exit_usage("", "unknown command '%s%s%s'", argv[0], two ? " " : "", second);
    fprintf(stderr, "weir: unknown command '%s%s%s'; did you mean 'weir %s'?\n", argv[0],
            two ? " " : "", second, meant);
    return WEIR__EXIT_USAGE;
}

/* A first word that needs a second: the list of what there is, as a usage error. */
static int list_below(const char *word, const char *second)
{
    if (second) fprintf(stderr, "weir: there is no '%s %s'\n", word, second);
    list_commands(stderr, word);
    return WEIR__EXIT_USAGE;
}

static bool has_below(const char *word)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (is_below(commands[i], word)) return true;
    return false;
}

/* "weir hub", "weir --help", "weir nonsense". */
static int run_other(int argc, char **argv)
{
    const char *word = argc > 0 ? argv[0] : "";
    bool help =
        argc > 0 && (strcmp(argv[argc - 1], "--help") == 0 || strcmp(argv[argc - 1], "-h") == 0);

    if (strcmp(word, "--version") == 0) return run_version(&command_version, argc - 1, argv + 1);
    if (help && argc == 1) {
        print_overview();
        return weir__exit_printed(WEIR__EXIT_OK);
    }
    if (argc == 0) return weir__exit_usage("", "no command");
    if (help && list_commands(stdout, word) > 0) return weir__exit_printed(WEIR__EXIT_OK);
    if (has_below(word) && (argc == 1 || !guess(argc, argv)))
        return list_below(word, argc > 1 ? argv[1] : NULL);
    return say_unknown(argc, argv, has_below(word));
}

/* A command may be started with some of 0, 1 and 2 closed. What it opened next would be taken for
 * them: its words would go into a file of the hubs. A closed standard input has ended. */
static bool fill_standard(void)
{
    int fd;

    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

int main(int argc, char **argv)
{
    const struct weir__command *command;
    int words;

    if (!fill_standard()) return WEIR__EXIT_FAILURE;
    signal(SIGPIPE, SIG_IGN); /* whoever reads us may stop: that is an error of a write */
    command = find_command(argc - 1, argv + 1, &words);
    if (!command) return run_other(argc - 1, argv + 1);
    return command->run(command, argc - 1 - words, argv + 1 + words);
}
