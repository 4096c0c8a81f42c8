/* backup.c - weir backup and weir restore: copies of a folder that may be in use, and back.
 *
 * Both work on files alone: no server is asked, and none has to stop. */
#define _GNU_SOURCE /* realpath */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "cli/amount.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/when.h"
#include "hub/backup.h"

struct options {
    struct weir__common common;
    bool check, no_verify, keep_expired, json;
};

static void print_line(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)level;
    (void)user;
    fprintf(stderr, "%s: %s\n", room, line);
}

static struct weir__backup_options settings(const struct options *o)
{
    return (struct weir__backup_options){.logger = {print_line, NULL},
                                         .no_verify = o->no_verify,
                                         .keep_expired = o->keep_expired};
}

/* ---- what was done ---- */

static void print_json(const struct weir__backup_result *r, int64_t took_ms)
{
    char moment[WEIR__WHEN_BYTES], last[WEIR__WHEN_BYTES];

    printf("{\"hubs\":%" PRIu32 ",\"events\":%" PRIu64 ",\"moment\":\"%s\",\"spread_ms\":%" PRId64,
           r->hubs, r->events, weir__when_text(r->moment_ms, moment), r->spread_ms);
    if (r->last_time_ms > 0)
        printf(",\"last_enqueued_time\":\"%s\"", weir__when_text(r->last_time_ms, last));
    else
        printf(",\"last_enqueued_time\":null");
    printf(",\"segments_copied\":%" PRIu64 ",\"segments_reused\":%" PRIu64
           ",\"segments_removed\":%" PRIu64 ",\"bytes_copied\":%" PRIu64
           ",\"bytes_reused\":%" PRIu64 ",\"damaged\":%" PRIu64 ",\"left_out\":%" PRIu64
           ",\"kept_good\":%" PRIu64 ",\"took_ms\":%" PRId64 "}\n",
           r->segments_copied, r->segments_reused, r->segments_removed, r->bytes_copied,
           r->bytes_reused, r->damaged, r->left_out, r->kept_good, took_ms);
}

static void print_contents(const char *verb, const struct weir__backup_result *r)
{
    char moment[WEIR__WHEN_BYTES], last[WEIR__WHEN_BYTES];

    printf("%s %" PRIu32 " hub%s with %" PRIu64 " event%s, as of %s", verb, r->hubs,
           r->hubs == 1 ? "" : "s", r->events, r->events == 1 ? "" : "s",
           weir__when_text(r->moment_ms, moment));
    if (r->last_time_ms > 0) printf(" (newest event %s)", weir__when_text(r->last_time_ms, last));
    printf("\n");
}

/* Damage of the folder is a failure that scripts must see, also where the backup has what is good. */
static int exit_of(const struct weir__backup_result *r)
{
    bool whole = r->damaged == 0 && r->left_out == 0 && r->kept_good == 0;

    return whole ? WEIR__EXIT_OK : WEIR__EXIT_FAILURE;
}

static void print_damage(const struct weir__backup_result *r)
{
    if (r->kept_good > 0)
        printf("%" PRIu64 " segment%s damaged or lost in the folder, and whole in the backup\n",
               r->kept_good, r->kept_good == 1 ? " is" : "s are");
    if (r->left_out > 0)
        printf("%" PRIu64 " hub%s left out, see above\n", r->left_out,
               r->left_out == 1 ? " is" : "s are");
    if (r->damaged > 0)
        printf("%" PRIu64 " damaged place%s in the backup\n", r->damaged,
               r->damaged == 1 ? "" : "s");
}

static int print_backup(const struct options *o, const struct weir__backup_result *r,
                        int64_t took_ms)
{
    char copied[WEIR__AMOUNT_BYTES], reused[WEIR__AMOUNT_BYTES];

    if (o->json) {
        print_json(r, took_ms);
        return exit_of(r);
    }
    print_contents("backed up", r);
    printf("%" PRIu64 " segment%s copied (%s), %" PRIu64 " reused (%s), %" PRIu64 " removed\n",
           r->segments_copied, r->segments_copied == 1 ? "" : "s",
           weir__amount_size(r->bytes_copied, copied), r->segments_reused,
           weir__amount_size(r->bytes_reused, reused), r->segments_removed);
    print_damage(r);
    return exit_of(r);
}

/* ---- backup ---- */

/* The real path of something that may not exist yet. */
static bool real_path(const char *path, char out[PATH_MAX])
{
    char whole[PATH_MAX], parent[PATH_MAX], *slash;
    size_t len = strlen(path);

    if (realpath(path, out)) return true;
    while (len > 1 && path[len - 1] == '/') len--; /* as mkdir takes it */
    if (len >= sizeof whole) return false;
    snprintf(whole, sizeof whole, "%.*s", (int)len, path);
    slash = strrchr(whole, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - whole) + 1 : 1,
             slash ? whole : ".");
    if (!realpath(parent, out)) return false;
    len = strlen(out);
    return snprintf(out + len, PATH_MAX - len, "/%s", slash ? slash + 1 : whole) <
           (int)(PATH_MAX - len);
}

/* Whether a folder is another one or lies in it. */
static bool lies_in(const char *inner, const char *outer)
{
    char a[PATH_MAX], b[PATH_MAX];
    size_t len;

    if (!real_path(inner, a) || !real_path(outer, b)) return false;
    len = strlen(b);
    return strncmp(a, b, len) == 0 && (a[len] == '/' || a[len] == '\0');
}

static const char *advice(int rc)
{
    if (rc == WEIR_ELOCKED) return "wait for that process, or choose another folder";
    if (rc == WEIR_EBUSY) return "try again when less is going on";
    if (rc == WEIR_ECORRUPT)
        return "remove that file and back up again, if the folder is still good, or make another "
               "backup";
    if (rc == WEIR_ENOTFOUND) return "'weir backup DIR TO' makes one";
    if (rc == WEIR_EEXIST) return "nothing was changed";
    return NULL;
}

static int run_check(const struct options *o, const char *from)
{
    struct weir__backup_options settled = settings(o);
    struct weir__backup_result result;
    struct weir_error err;
    int64_t began = weir__mono_ns();
    int rc = weir__backup_check(from, &settled, &result, &err);

    if (rc != 0) return weir__exit_advise(rc, &err, advice(rc), "backup --check %s", from);
    if (o->json)
        return weir__exit_printed(print_backup(o, &result, (weir__mono_ns() - began) / 1000000));
    print_contents(result.damaged > 0 ? "as it was made:" : "good:", &result);
    print_damage(&result);
    return weir__exit_printed(exit_of(&result));
}

static int run_copy(const struct options *o, const char *dir, const char *to)
{
    struct weir__backup_options settled = settings(o);
    struct weir__backup_result result;
    struct weir_error err;
    int64_t began = weir__mono_ns();
    int rc;

    if (lies_in(to, dir))
        return weir__exit_usage("backup", "%s lies in %s, the folder to be backed up", to, dir);
    rc = weir__backup_run(dir, to, &settled, &result, &err);
    if (rc == WEIR_ENOTFOUND) return weir__home_missing(dir);
    if (rc == WEIR_ECORRUPT) return weir__exit_error(rc, &err, "backup %s to %s", dir, to);
    if (rc != 0) return weir__exit_advise(rc, &err, advice(rc), "backup %s to %s", dir, to);
    return weir__exit_printed(print_backup(o, &result, (weir__mono_ns() - began) / 1000000));
}

static int run_backup(const struct weir__command *self, int argc, char **argv)
{
    struct options o = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.check && o.common.words == 1) return run_check(&o, o.common.word[0]);
    if (o.check) return weir__exit_usage("backup", "--check takes one folder, the backup");
    if (o.common.words == 2) return run_copy(&o, o.common.word[0], o.common.word[1]);
    return weir__exit_usage("backup", "two folders are needed: what to back up, and where to");
}

static const struct weir__args_row backup_rows[] = {
    {"check", WEIR__ARGS_FLAG, offsetof(struct options, check), NULL,
     "compare every byte of a backup with what was written"},
    {"keep-expired", WEIR__ARGS_FLAG, offsetof(struct options, keep_expired), NULL,
     "keep segments that have expired in the folder"},
    {"no-verify", WEIR__ARGS_FLAG, offsetof(struct options, no_verify), NULL,
     "do not check the batches of what is copied"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct options, json), NULL, "print one line of JSON"},
    {0},
};

const struct weir__command weir__command_backup = {
    .name = "backup",
    .words = "DIR TO",
    .summary = "copy a folder that may be in use",
    .more =
        "Copies the hubs of DIR as they are at one moment into the folder TO. Whoever uses DIR "
        "goes\n"
        "on. Every event that was acknowledged before is in the copy. A second backup to the same\n"
        "TO copies only segments that are new. One that is interrupted leaves the one before.\n"
        "Damage in DIR is told and copied as it is; the exit code is then 1.\n"
        "'weir backup --check TO' reads a backup again, 'weir restore TO DIR' makes a folder of "
        "it.",
    .rows = backup_rows,
    .words_min = 1,
    .words_max = 2,
    .run = run_backup,
};

/* ---- restore ---- */

static int run_restore(const struct weir__command *self, int argc, char **argv)
{
    struct options o = {0};
    struct weir__backup_options settled = {.logger = {print_line, NULL}};
    struct weir__backup_result result;
    struct weir_error err;
    int64_t began = weir__mono_ns();
    const char *from, *dir;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    from = o.common.word[0];
    dir = o.common.word[1];
    if (lies_in(dir, from)) return weir__exit_usage("restore", "%s lies in the backup", dir);
    rc = weir__backup_restore(from, dir, &settled, &result, &err);
    if (rc != 0) return weir__exit_advise(rc, &err, advice(rc), "restore %s to %s", from, dir);
    if (o.json)
        print_json(&result, (weir__mono_ns() - began) / 1000000);
    else
        print_contents("restored", &result);
    if (!o.json && result.damaged > 0)
        printf("%" PRIu64 " damaged place%s in the backup; 'weir inspect %s' shows what is lost\n",
               result.damaged, result.damaged == 1 ? "" : "s", dir);
    return weir__exit_printed(result.damaged > 0 ? WEIR__EXIT_FAILURE : WEIR__EXIT_OK);
}

static const struct weir__args_row restore_rows[] = {
    {"json", WEIR__ARGS_FLAG, offsetof(struct options, json), NULL, "print one line of JSON"},
    {0},
};

const struct weir__command weir__command_restore = {
    .name = "restore",
    .words = "FROM DIR",
    .summary = "make a folder of a backup",
    .more =
        "DIR must be missing or empty. The backup FROM is checked first, and what was written is\n"
        "read again. When it fails, DIR is as it was.",
    .rows = restore_rows,
    .words_min = 2,
    .words_max = 2,
    .run = run_restore,
};
