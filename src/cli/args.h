/* args.h - command lines by table: the same rows parse, check and print the help.
 *
 * A command's options are a struct that begins with struct weir__common; each row says where in it
 * the value goes. Options are written --name VALUE or --name=VALUE, flags --name, and "--" ends
 * them. Whatever is left are the command's words, a hub's name for instance. */
#ifndef WEIR_CLI_ARGS_H
#define WEIR_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR__ARGS_WORDS_MAX 2
#define WEIR__ARGS_LIST_MAX 64
#define WEIR__ARGS_LIST_BYTES_MAX 4096 /* of an environment variable */

struct weir__args_number {
    bool given;
    uint64_t value;
};

struct weir__args_list {
    const char *at[WEIR__ARGS_LIST_MAX];
    uint32_t count;
    char split[WEIR__ARGS_LIST_BYTES_MAX]; /* the texts, when they come from the environment */
};

enum weir__args_kind {
    WEIR__ARGS_FLAG,     /* bool */
    WEIR__ARGS_TEXT,     /* const char * */
    WEIR__ARGS_NUMBER,   /* struct weir__args_number */
    WEIR__ARGS_DURATION, /* the same, in milliseconds: 250ms 30s 10m 12h 7d */
    WEIR__ARGS_BYTES,    /* the same: 4096 64K 256M 10G */
    WEIR__ARGS_LIST      /* struct weir__args_list: may be given many times */
};

struct weir__args_row {
    const char *name; /* without the dashes; NULL ends the table */
    enum weir__args_kind kind;
    size_t at;         /* offsetof in the command's options */
    const char *value; /* how the help calls it */
    const char *help;
};

/* What every command takes. */
struct weir__common {
    const char *data;            /* the folder: --data, else WEIR_DATA, else ./weir-data */
    bool data_given;             /* by --data */
    bool data_named;             /* by --data or by WEIR_DATA */
    const char *connect, *admin; /* of commands with the rows below, */
    bool wait;                   /* and this as well */
    const char *word[WEIR__ARGS_WORDS_MAX];
    int words;
};

/* Rows for commands that work on a server, too: home.h. */
#define WEIR__ARGS_CONNECT                                                                         \
    {"connect", WEIR__ARGS_TEXT, offsetof(struct weir__common, connect), "CONNSTR",                \
     "a server, or Azure, instead of a folder (or WEIR_CONNECT)"},                                 \
    {                                                                                              \
        "wait", WEIR__ARGS_FLAG, offsetof(struct weir__common, wait), NULL,                        \
            "wait for a server that is not there yet, instead of failing at once"                  \
    }
#define WEIR__ARGS_CONNECT_SERVE                                                                   \
    {                                                                                              \
        "connect", WEIR__ARGS_TEXT, offsetof(struct weir__common, connect), "CONNSTR",             \
            "a running weir serve instead of a folder (or WEIR_CONNECT)"                           \
    }
#define WEIR__ARGS_ADMIN                                                                           \
    {                                                                                              \
        "admin", WEIR__ARGS_TEXT, offsetof(struct weir__common, admin), "URL",                     \
            "its HTTP, if not at the usual port of the same host (or WEIR_ADMIN)"                  \
    }

struct weir__command {
    const char *name;    /* "hub create" */
    const char *words;   /* "HUB" */
    const char *summary; /* one line for the list of commands */
    const char *more;    /* paragraphs for its own help; NULL: none */
    const struct weir__args_row *rows;
    int words_min, words_max;

    /* argv begins behind the command's name: argv[-1] is its last word. Returns the exit code. */
    int (*run)(const struct weir__command *, int argc, char **argv);
};

/* Fills options, which are zeroed by the caller. true: go on. false: the command is over, with
 * *out_exit (help was printed, or the command line is wrong and that was said). */
bool weir__args_parse(const struct weir__command *, int argc, char **argv,
                      struct weir__common *options, int *out_exit);

/* After weir__args_parse, for commands that are run by machines: what the command line did not say
 * is taken from the environment, --tls-key from WEIR_TLS_KEY and so on. A flag is 1, true, yes or
 * on, else 0, false, no or off, or empty; a list has spaces between its items. false as above. */
bool weir__args_environment(const struct weir__command *, struct weir__common *options,
                            int *out_exit);

/* A whole unsigned decimal number. */
bool weir__args_number(const char *text, uint64_t *out);
/* 250ms 30s 10m 12h 7d, in milliseconds. */
bool weir__args_duration(const char *text, uint64_t *out);

#endif
