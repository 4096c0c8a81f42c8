#include "cli/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/exit.h"
#include "cli/slip.h"

#define DEFAULT_DATA "./weir-data"
#define VARIABLE_BYTES 64

static const struct weir__args_row common_rows[] = {
    {"data", WEIR__ARGS_TEXT, offsetof(struct weir__common, data), "DIR",
     "the folder of the hubs (or WEIR_DATA; default " DEFAULT_DATA ")"},
    {0},
};

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit durations[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                                        {"h", 3600000}, {"d", 86400000}, {0}};

static const struct unit sizes[] = {{"", 1},        {"K", 1 << 10},           {"M", 1 << 20},
                                    {"G", 1 << 30}, {"T", (uint64_t)1 << 40}, {0}};

/* Digits, then one of the units and nothing else. */
static bool parse_unit(const char *text, const struct unit *units, uint64_t *out)
{
    char *end;
    uint64_t n;

    if (*text < '0' || *text > '9') return false;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno != 0) return false;
    for (; units->name; units++)
        if (strcmp(end, units->name) == 0)
            return !__builtin_mul_overflow(n, units->factor, out) && *out <= INT64_MAX;
    return false;
}

bool weir__args_number(const char *text, uint64_t *out)
{
    static const struct unit plain[] = {{"", 1}, {0}};

    return parse_unit(text, plain, out);
}

bool weir__args_duration(const char *text, uint64_t *out)
{
    return parse_unit(text, durations, out);
}

/* What a value must look like, for the complaint. */
static const char *const shapes[] = {
    [WEIR__ARGS_FLAG] = "1 or 0, true or false, yes or no, on or off",
    [WEIR__ARGS_NUMBER] = "a whole number",
    [WEIR__ARGS_DURATION] = "a duration like 250ms, 30s, 10m, 12h or 7d",
    [WEIR__ARGS_BYTES] = "a size like 4096, 64K, 256M or 10G",
    [WEIR__ARGS_LIST] = "given at most 64 times",
};

static bool add_to_list(struct weir__args_list *list, const char *text)
{
    if (list->count == WEIR__ARGS_LIST_MAX) return false;
    list->at[list->count++] = text;
    return true;
}

static bool store_value(const struct weir__args_row *row, void *options, const char *text)
{
    char *at = (char *)options + row->at;
    struct weir__args_number *number = (void *)at;

    switch (row->kind) {
    case WEIR__ARGS_FLAG: *(bool *)(void *)at = true; return true;
    case WEIR__ARGS_TEXT: *(const char **)(void *)at = text; return true;
    case WEIR__ARGS_LIST: return add_to_list((void *)at, text);
    case WEIR__ARGS_NUMBER: number->given = true; return weir__args_number(text, &number->value);
    case WEIR__ARGS_DURATION:
        number->given = true;
        return weir__args_duration(text, &number->value);
    case WEIR__ARGS_BYTES: number->given = true; return parse_unit(text, sizes, &number->value);
    }
    return false;
}

static const struct weir__args_row *find_row(const struct weir__args_row *rows, const char *name,
                                             size_t len)
{
    for (; rows && rows->name; rows++)
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0) return rows;
    return NULL;
}

/* The option that was meant; NULL: it is like none. */
static const char *guess_option(const struct weir__args_row *rows, const char *name, size_t len)
{
    char typed[WEIR__SLIP_BYTES] = "";

    if (len < sizeof typed) memcpy(typed, name, len);
    for (unsigned most = 1; most <= WEIR__SLIP_MAX; most++)
        for (const struct weir__args_row *row = rows; row && row->name; row++)
            if (strlen(row->name) > most + 1 && weir__slip_distance(row->name, typed) <= most)
                return row->name;
    return NULL;
}

static void say_unknown(const struct weir__command *cmd, const char *name, size_t len)
{
    const char *meant = guess_option(cmd->rows, name, len);

    if (!meant) meant = guess_option(common_rows, name, len);
    if (meant)
        fprintf(stderr, "weir: %s: unknown option '--%.*s'; did you mean --%s?\n", cmd->name,
                (int)len, name, meant);
    else
        weir__exit_usage(cmd->name, "unknown option '--%.*s'", (int)len, name);
}

/* Takes argv[*i], and the word behind it when that is its value. */
static bool take_option(const struct weir__command *cmd, int argc, char **argv, int *i,
                        struct weir__common *options)
{
    const char *name = argv[*i] + 2;
    size_t len = strcspn(name, "=");
    const char *text = name[len] == '=' ? name + len + 1 : NULL;
    const struct weir__args_row *row = find_row(cmd->rows, name, len);

    if (!row) row = find_row(common_rows, name, len);
    if (!row) {
        say_unknown(cmd, name, len);
        return false;
    }
    if (row->kind == WEIR__ARGS_FLAG) {
        if (text) weir__exit_usage(cmd->name, "--%s takes no value", row->name);
        return !text && store_value(row, options, NULL);
    }
    if (!text && *i + 1 < argc) text = argv[++*i];
    if (!text) {
        weir__exit_usage(cmd->name, "--%s needs a value", row->name);
        return false;
    }
    if (store_value(row, options, text)) return true;
    weir__exit_usage(cmd->name, "--%s must be %s, not '%s'", row->name, shapes[row->kind], text);
    return false;
}

static void print_rows(const struct weir__args_row *rows)
{
    char left[64];

    for (; rows && rows->name; rows++) {
        snprintf(left, sizeof left, "--%s%s%s", rows->name, rows->value ? " " : "",
                 rows->value ? rows->value : "");
        printf("  %-26s %s\n", left, rows->help);
    }
}

static void print_help(const struct weir__command *cmd)
{
    printf("usage: weir %s%s%s [options]\n\n%s\n", cmd->name, *cmd->words ? " " : "", cmd->words,
           cmd->summary);
    if (cmd->more) printf("\n%s\n", cmd->more);
    printf("\noptions:\n");
    print_rows(cmd->rows);
    print_rows(common_rows);
    printf("  %-26s %s\n", "--help", "this text");
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static bool take_words(const struct weir__command *cmd, int argc, char **argv,
                       struct weir__common *options)
{
    bool only_words = false;

    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] == '-') {
            if (!take_option(cmd, argc, argv, &i, options)) return false;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            weir__exit_usage(cmd->name, "unknown option '%s'", argv[i]);
            return false;
        } else if (options->words == cmd->words_max) {
            weir__exit_usage(cmd->name, "unexpected '%s'", argv[i]);
            return false;
        } else {
            options->word[options->words++] = argv[i];
        }
    }
    return true;
}

bool weir__args_parse(const struct weir__command *cmd, int argc, char **argv,
                      struct weir__common *options, int *out_exit)
{
    *out_exit = WEIR__EXIT_USAGE;
    if (asks_for_help(argc, argv)) {
        print_help(cmd);
        *out_exit = weir__exit_printed(WEIR__EXIT_OK);
        return false;
    }
    if (!take_words(cmd, argc, argv, options)) return false;
    if (options->words < cmd->words_min) {
        weir__exit_usage(cmd->name, "%s is missing", cmd->words);
        return false;
    }
    options->data_given = options->data != NULL;
    if (!options->data) options->data = getenv("WEIR_DATA");
    options->data_named = options->data && *options->data;
    if (!options->data_named) options->data = DEFAULT_DATA;
    return true;
}

/* ---- the environment ---- */

/* "tls-key" is WEIR_TLS_KEY. */
static void write_variable(const char *name, char out[VARIABLE_BYTES])
{
    snprintf(out, VARIABLE_BYTES, "WEIR_%s", name);
    for (char *c = out; *c; c++) {
        if (*c == '-') *c = '_';
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    }
}

static bool is_given(const struct weir__args_row *row, const void *options)
{
    const char *at = (const char *)options + row->at;

    switch (row->kind) {
    case WEIR__ARGS_FLAG: return *(const bool *)(const void *)at;
    case WEIR__ARGS_TEXT: return *(const char *const *)(const void *)at != NULL;
    case WEIR__ARGS_LIST: return ((const struct weir__args_list *)(const void *)at)->count > 0;
    case WEIR__ARGS_NUMBER:
    case WEIR__ARGS_DURATION:
    case WEIR__ARGS_BYTES: return ((const struct weir__args_number *)(const void *)at)->given;
    }
    return true;
}

static bool split_list(struct weir__args_list *list, const char *text)
{
    char *rest = NULL;

    if (strlen(text) >= sizeof list->split) return false;
    memcpy(list->split, text, strlen(text) + 1);
    for (char *t = strtok_r(list->split, " ", &rest); t; t = strtok_r(NULL, " ", &rest))
        if (!add_to_list(list, t)) return false;
    return true;
}

static bool is_one_of(const char *const words[], const char *text)
{
    while (*words && strcasecmp(*words, text) != 0) words++;
    return *words != NULL;
}

static bool take_variable(const struct weir__args_row *row, void *options, const char *text)
{
    static const char *const on[] = {"1", "true", "yes", "on", NULL};
    static const char *const off[] = {"0", "false", "no", "off", NULL};

    if (row->kind == WEIR__ARGS_FLAG)
        return is_one_of(off, text) || (is_one_of(on, text) && store_value(row, options, NULL));
    if (row->kind == WEIR__ARGS_LIST) return split_list((void *)((char *)options + row->at), text);
    return store_value(row, options, text);
}

bool weir__args_environment(const struct weir__command *cmd, struct weir__common *options,
                            int *out_exit)
{
    for (const struct weir__args_row *row = cmd->rows; row->name; row++) {
        char variable[VARIABLE_BYTES];
        const char *text;

        write_variable(row->name, variable);
        text = getenv(variable);
        if (!text || !*text || is_given(row, options) || take_variable(row, options, text))
            continue;
        *out_exit =
            weir__exit_usage(cmd->name, "%s must be %s, not '%.256s'", variable,
                             row->kind == WEIR__ARGS_LIST ? "shorter" : shapes[row->kind], text);
        return false;
    }
    return true;
}
