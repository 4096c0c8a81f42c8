/* upgrade.c - weir upgrade: bring a folder to the format of this release, at once.
 *
 * Using a folder upgrades it as well, hub by hub. This does all of it, and says what it did. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "hub/namespace.h"

static void print_line(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)user;
    if (level >= WEIR__WARN) fprintf(stderr, "weir: %s: %s\n", room, line);
}

static void print_result(const char *dir, const struct weir__upgrade *u)
{
    const char *s = u->hubs == 1 ? "" : "s";

    if (u->hubs_upgraded == 0 && u->catalog_upgraded)
        printf("%s: the catalogue upgraded to format version %u; %" PRIu32
               " hub%s already of it; older releases refuse the folder now\n",
               dir, WEIR__CATALOG_VERSION, u->hubs - u->hubs_failed,
               u->hubs - u->hubs_failed == 1 ? " was" : "s were");
    else if (u->hubs_upgraded > 0)
        printf("%s: %" PRIu32 " of %" PRIu32
               " hub%s%s upgraded to format version %u; older releases "
               "refuse %s now\n",
               dir, u->hubs_upgraded, u->hubs, s, u->catalog_upgraded ? " and the catalogue" : "",
               WEIR__LOG_FORMAT, u->catalog_upgraded ? "the folder" : "them");
    else if (u->hubs_failed == 0)
        printf("%s: %" PRIu32 " hub%s of format version %u, which is the newest: nothing to do\n",
               dir, u->hubs, s, WEIR__LOG_FORMAT);
}

static int upgrade_folder(struct weir__namespace *ns, const char *dir)
{
    struct weir__upgrade done;
    struct weir_error err = {0};
    int code = WEIR__EXIT_OK, rc = weir__namespace_upgrade(ns, &done, &err);

    print_result(dir, &done);
    if (rc != 0) code = weir__exit_error(rc, &err, "upgrade");
    rc = weir__namespace_close(ns, &err);
    if (rc != 0 && code == WEIR__EXIT_OK) code = weir__exit_error(rc, &err, "upgrade");
    return weir__exit_printed(code);
}

static int run_upgrade(const struct weir__command *self, int argc, char **argv)
{
    struct weir__namespace_options options = {.must_exist = true, .logger = {print_line, NULL}};
    struct weir__namespace *ns = NULL;
    struct weir__common common = {0};
    struct weir_error err = {0};
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    if (common.words > 0) common.data = common.word[0];
    rc = weir__namespace_open(&ns, common.data, &options, &err);
    if (rc == 0) return upgrade_folder(ns, common.data);
    if (rc == WEIR_ENOTFOUND) return weir__home_missing(common.data);
    return weir__exit_error(rc, &err, "data folder");
}

const struct weir__command weir__command_upgrade = {
    .name = "upgrade",
    .words = "[DIR]",
    .summary = "bring a folder to the newest format",
    .more =
        "Every command that uses a hub upgrades it, and every change the catalogue; this does all\n"
        "of it now. Releases that know only older formats refuse the folder from then on; a\n"
        "'weir backup' of before is the way back. Events are not rewritten: files of an older\n"
        "format are read until they expire.",
    .words_max = 1,
    .run = run_upgrade,
};
