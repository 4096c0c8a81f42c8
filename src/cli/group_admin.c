/* group_admin.c - weir group create, list, delete. Describing one is in group.c. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/json.h"

struct group_options {
    struct weir__common common;
    bool json;
};

static const struct weir__args_row change_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {0},
};

static const struct weir__args_row list_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"json", WEIR__ARGS_FLAG, offsetof(struct group_options, json), NULL,
     "one line of JSON for each group"},
    {0},
};

/* "HUB/GROUP", as the other commands name a group, or two words. */
static bool split_name(const struct weir__common *c, char hub[WEIR_NAME_BYTES], const char **group)
{
    const char *slash = strchr(c->word[0], '/');
    size_t len = slash ? (size_t)(slash - c->word[0]) : strlen(c->word[0]);

    if ((c->words == 2) == (slash != NULL) || len == 0 || len >= WEIR_NAME_BYTES) return false;
    memcpy(hub, c->word[0], len);
    hub[len] = '\0';
    *group = slash ? slash + 1 : c->word[1];
    return **group != '\0';
}

static int fail(const struct weir__command *self, int rc, const struct weir_error *err)
{
    const char *advice = NULL;

    if (rc == WEIR_ENOTFOUND)
        advice = "'weir hub list' and 'weir group list HUB' show what is there";
    if (rc == WEIR_EEXIST) advice = "choose another name";
    return weir__exit_advise(rc, err, advice, "%s", self->name);
}

static int change(const struct weir__command *self, int argc, char **argv,
                  int (*fn)(struct weir *, const char *, const char *, struct weir_error *),
                  const char *done)
{
    struct weir__common common = {0};
    char hub[WEIR_NAME_BYTES];
    struct weir__home home;
    struct weir_error err;
    const char *group;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    if (!split_name(&common, hub, &group))
        return weir__exit_usage(self->name, "'%.64s' is not HUB/GROUP", common.word[0]);
    code = weir__home_reach(&home, self, &common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    rc = fn(home.weir, hub, group, &err);
    if (rc == 0)
        printf("%s group %s of hub %s\n", done, group, hub);
    else
        code = fail(self, rc, &err);
    return weir__exit_printed(weir__home_leave(&home, code));
}

/* ---- create and delete ---- */

static int run_create(const struct weir__command *self, int argc, char **argv)
{
    return change(self, argc, argv, weir_group_create, "created");
}

const struct weir__command weir__command_group_create = {
    .name = "group create",
    .words = "HUB/GROUP",
    .summary = "make a consumer group",
    .rows = change_rows,
    .words_min = 1,
    .words_max = 2,
    .run = run_create,
};

static int run_delete(const struct weir__command *self, int argc, char **argv)
{
    return change(self, argc, argv, weir_group_delete, "deleted");
}

const struct weir__command weir__command_group_delete = {
    .name = "group delete",
    .words = "HUB/GROUP",
    .summary = "delete a consumer group, without asking",
    .more =
        "Its receivers are told that it is gone. Checkpoints are in the store of its processors,\n"
        "and stay there: 'weir checkpoint delete'. $Default cannot be deleted.",
    .rows = change_rows,
    .words_min = 1,
    .words_max = 2,
    .run = run_delete,
};

/* ---- list ---- */

static int print_group(const char *group, void *user)
{
    (void)user;
    printf("%s\n", group);
    return 0;
}

static int write_group(const char *group, void *user)
{
    printf("{\"hub\":");
    weir__json_text(stdout, weir_text(user));
    printf(",\"name\":");
    weir__json_text(stdout, weir_text(group));
    printf("}\n");
    return 0;
}

static int run_list(const struct weir__command *self, int argc, char **argv)
{
    struct group_options o = {0};
    struct weir__home home;
    struct weir_error err;
    char hub[WEIR_NAME_BYTES];
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    snprintf(hub, sizeof hub, "%s", o.common.word[0]);
    rc =
        weir_group_list(home.weir, o.common.word[0], o.json ? write_group : print_group, hub, &err);
    if (rc != 0) code = fail(self, rc, &err);
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_group_list = {
    .name = "group list",
    .words = "HUB",
    .summary = "list the consumer groups of a hub",
    .rows = list_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_list,
};
