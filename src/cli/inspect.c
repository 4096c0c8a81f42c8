/* inspect.c - weir inspect: check every checksum and index of a folder, changing nothing.
 *
 * It reads the catalogue and each hub's log from below, without opening them for use, so that a
 * folder that cannot be opened can still be looked at. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/when.h"
#include "hub/catalog.h"
#include "hub/namespace.h"

#define PATH_BYTES_MAX 4096

struct inspection {
    const char *dir;
    uint64_t segments, damaged, torn, cut, orphans;
};

static const char *const labels[] = {
    [WEIR__LOG_SEGMENT] = "segment", [WEIR__LOG_DAMAGE] = "DAMAGE",
    [WEIR__LOG_COPY] = "DAMAGE",     [WEIR__LOG_TORN] = "torn",
    [WEIR__LOG_INDEX] = "index",     [WEIR__LOG_CUT] = "cut",
    [WEIR__LOG_HEADER] = "DAMAGE",   [WEIR__LOG_CONTROL] = "DAMAGE",
    [WEIR__LOG_IGNORED] = "ignored", [WEIR__LOG_PRODUCERS] = "DAMAGE",
};

#define VERSION_LABEL "VERSION" /* made by another weir: nothing is wrong with it */

static void print_finding(const struct weir__log_finding *f, void *user)
{
    struct inspection *in = user;

    in->segments += f->kind == WEIR__LOG_SEGMENT;
    in->torn += f->kind == WEIR__LOG_TORN;
    in->cut += f->kind == WEIR__LOG_CUT;
    printf("  %-8s %s", labels[f->kind], f->file);
    if (f->kind != WEIR__LOG_SEGMENT && f->len > 0)
        printf(" bytes %" PRIu64 "+%" PRIu64, f->at, f->len);
    if (f->kind != WEIR__LOG_SEGMENT && f->partition >= 0)
        printf(" partition %" PRId64, f->partition);
    if (f->kind != WEIR__LOG_SEGMENT && f->first_sequence <= f->last_sequence)
        printf(" sequence %" PRIu64 " to %" PRIu64, f->first_sequence, f->last_sequence);
    printf(": %s\n", f->text);
}

/* A log that cannot be read at all counts as damage; the other hubs are looked at all the same. */
static void inspect_hub(struct inspection *in, const struct weir__catalog_hub *hub)
{
    char path[PATH_BYTES_MAX], when[WEIR__WHEN_BYTES];
    struct weir__log_options options = {.dir = path,
                                        .hub_id = hub->id,
                                        .partitions = hub->partitions};
    struct weir_error err;
    uint64_t damaged = 0;
    int rc = weir__namespace_hub_dir(in->dir, hub->id, path, sizeof path, &err);

    printf("hub %s: %" PRIu32 " partition%s, %" PRIu32 " group%s, created %s, in %s\n", hub->name,
           hub->partitions, hub->partitions == 1 ? "" : "s", hub->group_count,
           hub->group_count == 1 ? "" : "s", weir__when_text(hub->created_ms, when), path);
    if (rc == 0) rc = weir__log_inspect(&options, print_finding, in, &damaged, &err);
    if (rc != 0)
        printf("  %-8s %s\n", rc == WEIR_EVERSION ? VERSION_LABEL : labels[WEIR__LOG_DAMAGE],
               err.text);
    in->damaged += damaged + (rc != 0);
}

static int print_orphan(const struct weir__orphan *o, void *user)
{
    struct inspection *in = user;

    in->orphans++;
    printf("orphan hub-%016" PRIx64 ": no hub has this folder, and it %s; 'weir hub "
           "adopt %" PRIx64 " NAME' makes\n  a hub of it again, or remove it by hand\n",
           o->id, o->partitions ? "may have events" : "cannot be read", o->id);
    return 0;
}

static int print_result(const struct inspection *in, uint32_t hubs)
{
    printf("%" PRIu32 " hub%s, %" PRIu64 " segment%s: ", hubs, hubs == 1 ? "" : "s", in->segments,
           in->segments == 1 ? "" : "s");
    if (in->damaged > 0)
        printf("%" PRIu64 " damaged, see DAMAGE above; nothing was changed\n", in->damaged);
    else
        printf("no damage\n");
    if (in->orphans > 0)
        printf("%" PRIu64 " orphan%s: folders with events that the catalogue does not know\n",
               in->orphans, in->orphans == 1 ? "" : "s");
    if (in->torn > 0) printf("an unfinished write is at the end: the next open cuts it\n");
    return weir__exit_printed(in->damaged > 0 ? WEIR__EXIT_FAILURE : WEIR__EXIT_OK);
}

/* Somebody who writes now would make an honest folder look torn. */
static int lock_folder(const char *dir, struct weir__namespace_lock *out, struct weir_error *err)
{
    int rc = weir__namespace_lock(out, weir__fs_posix(), dir, err);

    return rc == WEIR_ELOCKED ? rc : 0; /* a folder that cannot be written can be looked at */
}

/* A bad copy of the catalogue: the other one is good. When that one may be older, changes are lost;
 * else a write was cut, and the next open repairs it. */
static void print_warning(enum weir__level level, const char *room, const char *line, void *user)
{
    struct inspection *in = user;

    (void)room;
    in->damaged += level == WEIR__ERROR;
    printf("%s: %s\n", level == WEIR__ERROR ? labels[WEIR__LOG_DAMAGE] : "warning", line);
}

static int load_catalog(struct inspection *in, struct weir__catalog *out, struct weir_error *err)
{
    struct weir__logger logger = {print_warning, in};
    struct weir__catalog_store store;
    int rc;

    weir__catalog_init(out);
    rc = weir__catalog_store_init(&store, weir__fs_posix(), in->dir, &logger, err);
    if (rc == 0) rc = weir__catalog_load(&store, out, err);
    return rc;
}

static int count_orphan(const struct weir__orphan *o, void *user)
{
    struct inspection *in = user;

    (void)o;
    in->orphans++;
    return 0;
}

/* Without a catalogue, a folder with hubs has lost it; one without is none. */
static int fail_catalog(struct inspection *in, int rc, const struct weir_error *err)
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

static int inspect_folder(const char *dir)
{
    struct inspection in = {.dir = dir};
    struct weir__catalog catalog;
    struct weir__namespace_lock lock = {0};
    struct weir_error err;
    int code, rc = load_catalog(&in, &catalog, &err);

    if (rc != 0) return fail_catalog(&in, rc, &err);
    rc = lock_folder(dir, &lock, &err);
    if (rc == 0) {
        for (uint32_t i = 0; i < catalog.hub_count; i++) inspect_hub(&in, &catalog.hubs[i]);
        rc = weir__namespace_find_orphans(weir__fs_posix(), dir, &catalog, print_orphan, &in, &err);
        if (rc != 0) fprintf(stderr, "weir: %s\n", err.text);
        code = print_result(&in, catalog.hub_count);
    } else {
        code = weir__exit_error(rc, &err, "inspect %s", dir);
    }
    weir__catalog_fini(&catalog);
    weir__namespace_unlock(&lock);
    return code;
}

static int run_inspect(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    return inspect_folder(common.words > 0 ? common.word[0] : common.data);
}

const struct weir__command weir__command_inspect = {
    .name = "inspect",
    .words = "[DIR]",
    .summary = "check every checksum and index of a folder",
    .more =
        "Prints what is there, and for damage the file, the bytes and the sequence numbers; the\n"
        "exit code is then 1. Changes nothing.",
    .words_max = 1,
    .run = run_inspect,
};
