/* inspect.c - weir inspect: check every checksum and index of a folder, changing nothing.
 *
 * It reads the catalogue and each hub's log from below, without opening them for use, so that a
 * folder that cannot be opened can still be looked at. inspect_print.c says what is found. */
#define _GNU_SOURCE /* AT_EACCESS */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/inspect_print.h"
#include "hub/catalog.h"
#include "hub/namespace.h"

static void take_finding(const struct weir__log_finding *f, void *user)
{
    struct weir__inspection *in = user;

    in->segments += f->kind == WEIR__LOG_SEGMENT;
    in->torn += f->kind == WEIR__LOG_TORN;
    weir__inspect_finding(in, f);
}

/* Whether a file of the folder may not be read by this user. */
static bool is_forbidden(const char *dir)
{
    struct dirent *entry;
    bool forbidden = false;
    DIR *d = opendir(dir);

    if (!d) return errno == EACCES;
    while (!forbidden && (entry = readdir(d)))
        forbidden = faccessat(dirfd(d), entry->d_name, R_OK, AT_EACCESS) != 0 && errno == EACCES;
    closedir(d);
    return forbidden;
}

/* A log that cannot be read at all counts as damage, unless it is for lack of descriptors, memory or
 * rights; the other hubs are looked at all the same. */
static void take_unread(struct weir__inspection *in, const char *dir, const struct weir_error *err)
{
    bool damage = weir_error_class(err->code) != WEIR_CLASS_RETRY && !is_forbidden(dir);

    weir__inspect_unread(in, damage, err);
    in->damaged += damage;
    in->unread += !damage;
}

static void inspect_hub(struct weir__inspection *in, const struct weir__catalog_hub *hub)
{
    char path[WEIR__HUB_PATH_BYTES];
    struct weir__log_options options = {.dir = path,
                                        .hub_id = hub->id,
                                        .partitions = hub->partitions};
    struct weir_error err;
    uint64_t damaged = 0;
    int rc;

    weir__namespace_hub_dir(in->dir, hub->id, path);
    in->hub = hub->name;
    weir__inspect_hub(in, hub, path);
    rc = weir__log_inspect(&options, take_finding, in, &damaged, &err);
    if (rc != 0) take_unread(in, path, &err);
    in->damaged += damaged;
    in->hub = NULL;
}

static int take_orphan(const struct weir__orphan *o, void *user)
{
    struct weir__inspection *in = user;

    in->orphans++;
    weir__inspect_orphan(in, o);
    return 0;
}

/* Somebody who writes now would make an honest folder look torn. */
static int lock_folder(const char *dir, struct weir__namespace_lock *out, struct weir_error *err)
{
    int rc = weir__namespace_lock(out, weir__fs_posix(), dir, err);

    return rc == WEIR_ELOCKED ? rc : 0; /* a folder that cannot be written can be looked at */
}

/* A bad copy of the catalogue: the other one is good. When that one may be older, changes are lost;
 * else a write was cut, and the next open repairs it. */
static void take_warning(enum weir__level level, const char *room, const char *line, void *user)
{
    struct weir__inspection *in = user;

    (void)room;
    in->damaged += level == WEIR__ERROR;
    weir__inspect_warning(in, level == WEIR__ERROR, line);
}

static int load_catalog(struct weir__inspection *in, struct weir__catalog *out,
                        struct weir_error *err)
{
    struct weir__logger logger = {take_warning, in};
    struct weir__catalog_store store;
    int rc;

    weir__catalog_init(out);
    rc = weir__catalog_store_init(&store, weir__fs_posix(), in->dir, &logger, err);
    if (rc == 0) rc = weir__catalog_load(&store, out, err);
    return rc;
}

static int count_orphan(const struct weir__orphan *o, void *user)
{
    struct weir__inspection *in = user;

    (void)o;
    in->orphans++;
    return 0;
}

/* Without a catalogue, a folder with hubs has lost it; one without is none. */
static int fail_catalog(struct weir__inspection *in, int rc, const struct weir_error *err)
{
    struct weir__catalog none;
    struct weir_error why;

    weir__catalog_init(&none);
    if (rc == WEIR_ENOTFOUND &&
        weir__namespace_find_orphans(weir__fs_posix(), in->dir, &none, count_orphan, in, &why) ==
            0 &&
        in->orphans > 0)
        rc = WEIR_ECORRUPT;
    if (rc == WEIR_ENOTFOUND) return weir__home_missing(in->dir);
    if (rc != WEIR_ECORRUPT) return weir__exit_error(rc, err, "inspect %s", in->dir);
    why = *err;
    why.code = rc;
    return weir__exit_advise(rc, &why,
                             "the events are in the folders hub-*, and nothing was deleted; a "
                             "backup has a catalogue, see docs/operations.md",
                             "inspect %s", in->dir);
}

static int inspect_folder(const char *dir, bool json)
{
    struct weir__inspection in = {.dir = dir, .json = json};
    struct weir__catalog catalog;
    struct weir__namespace_lock lock = {0};
    struct weir_error err;
    int code, rc = load_catalog(&in, &catalog, &err);

    if (rc != 0) return fail_catalog(&in, rc, &err);
    rc = lock_folder(dir, &lock, &err);
    if (rc == 0) {
        for (uint32_t i = 0; i < catalog.hub_count; i++) inspect_hub(&in, &catalog.hubs[i]);
        rc = weir__namespace_find_orphans(weir__fs_posix(), dir, &catalog, take_orphan, &in, &err);
        if (rc != 0) fprintf(stderr, "weir: %s\n", err.text);
        weir__inspect_result(&in, catalog.hub_count);
        code = weir__exit_printed(in.damaged + in.unread > 0 ? WEIR__EXIT_FAILURE : WEIR__EXIT_OK);
    } else {
        code = weir__exit_error(rc, &err, "inspect %s", dir);
    }
    weir__catalog_fini(&catalog);
    weir__namespace_unlock(&lock);
    return code;
}

struct inspect_options {
    struct weir__common common;
    bool json;
};

static const struct weir__args_row inspect_rows[] = {
    {"json", WEIR__ARGS_FLAG, offsetof(struct inspect_options, json), NULL,
     "one line of JSON for each finding, and one for the sum"},
    {0},
};

static int run_inspect(const struct weir__command *self, int argc, char **argv)
{
    struct inspect_options o = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    return inspect_folder(o.common.words > 0 ? o.common.word[0] : o.common.data, o.json);
}

const struct weir__command weir__command_inspect = {
    .name = "inspect",
    .words = "[DIR]",
    .summary = "check every checksum and index of a folder",
    .more =
        "Prints what is there, and for damage the file, the bytes and the sequence numbers; the\n"
        "exit code is then 1, as when something could not be read. Changes nothing.",
    .rows = inspect_rows,
    .words_max = 1,
    .run = run_inspect,
};
