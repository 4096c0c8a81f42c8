/* upgrade.c - weir upgrade: bring a folder to the format of this release.
 *
 * Format 1 is the first and only one, so there is nothing to migrate: what this does is to open
 * everything, which refuses an unknown version by name. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"

struct check {
    struct weir *weir;
    struct weir_error err;
    unsigned hubs;
};

static int check_hub(const struct weir_hub_info *hub, void *user)
{
    struct check *c = user;
    struct weir_hub_stats stats;

    c->hubs++;
    return weir_hub_stats(c->weir, hub->name, &stats, &c->err); /* opens its log */
}

static int run_upgrade(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    struct check c = {0};
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    if (common.words > 0) common.data = common.word[0];
    code = weir__home_open(&c.weir, common.data, true);
    if (code != 0) return code;
    rc = weir_hub_list(c.weir, check_hub, &c, &c.err);
    if (rc == 0)
        printf("%s: %u hub%s in format 1, which is the newest: nothing to migrate\n", common.data,
               c.hubs, c.hubs == 1 ? "" : "s");
    else
        code = weir__exit_error(rc, &c.err, "upgrade");
    return weir__exit_printed(weir__home_close(c.weir, code));
}

const struct weir__command weir__command_upgrade = {
    .name = "upgrade",
    .words = "[DIR]",
    .summary = "bring a folder to the newest format",
    .more = "There is one format so far, so this only checks that the folder has it.",
    .words_max = 1,
    .run = run_upgrade,
};
