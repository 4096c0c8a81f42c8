/* steps.h - commands on a folder, one after the other, with all that they print. */
#ifndef WEIR_TESTS_CLI_STEPS_H
#define WEIR_TESTS_CLI_STEPS_H

#include "cli/commands.h"
#include "cli/said.h"
#include "support/tempdir.h"

struct step {
    const struct weir__command *command;
    const char *line; /* words with spaces between */
    int code;
    const char *said; /* on standard output, or on standard error when the code is not 0 */
};

static char dir[TEMPDIR_BYTES];

static inline int begin(void **state)
{
    (void)state;
    unsetenv("WEIR_CONNECT");
    unsetenv("WEIR_ADMIN");
    return tempdir_make(dir);
}

static inline int end(void **state)
{
    (void)state;
    tempdir_remove(dir);
    return 0;
}

/* Whether text has the form: 0 is a digit, # one of base64, anything else itself. */
static bool has_form(const char *text, const char *form)
{
    static const char digits[] = "0123456789+/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t i = 0;

    while (form[i] && text[i] &&
           (form[i] == '0'   ? strchr("0123456789", text[i]) != NULL
            : form[i] == '#' ? strchr(digits, text[i]) != NULL
                             : text[i] == form[i]))
        i++;
    return !form[i];
}

/* What is another one each time becomes a word. */
static void mask(char *text)
{
    const struct {
        const char *form, *word;
    } masks[] = {{"0000-00-00T00:00:00.000Z", "TIME"},
                 {"1000000000000000", "OFFSET"},
                 {"###########################################=", "KEY"},
                 {dir, "DIR"}};
    char *to = text, *at = text;

    while (*at) {
        size_t i = 0;
        while (i < 4 && !has_form(at, masks[i].form)) i++;
        if (i == 4) {
            *to++ = *at++;
            continue;
        }
        at += strlen(masks[i].form);
        memcpy(to, masks[i].word, strlen(masks[i].word));
        to += strlen(masks[i].word);
    }
    *to = '\0';
}

static int run(const struct weir__command *command, const char *line)
{
    char copy[8192], *argv[64] = {(char[]){"--data"}, dir}, *rest = NULL;
    int argc = 2, code;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *t = strtok_r(copy, " ", &rest); t; t = strtok_r(NULL, " ", &rest)) argv[argc++] = t;
    said_begin();
    code = command->run(command, argc, argv);
    said_end();
    mask(said_out);
    mask(said_err);
    return code;
}

static inline void take_steps(const struct step *steps, size_t count)
{
    for (const struct step *s = steps; s < steps + count; s++) {
        int code = run(s->command, s->line);
        const char *said = code == 0 ? said_out : said_err,
                   *other = code == 0 ? said_err : said_out;
        if (code != s->code || strcmp(said, s->said) != 0 || *other)
            fail_msg("%s %s: code %d\n%s%s", s->command->name, s->line, code, said_out, said_err);
    }
}

#define TAKE(steps) take_steps(steps, sizeof(steps) / sizeof(steps)[0])

#endif
