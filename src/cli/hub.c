/* hub.c - weir hub create, list, update, adopt, delete. Showing one is in hub_show.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/hub_show.h"
#include "cli/json.h"
#include "cli/when.h"

#define GROUPS_MAX 64u
#define GROUPS_BYTES_MAX 4096
#define PARTITIONS_DEFAULT 4

/* ---- create ---- */

struct create_options {
    struct weir__common common;
    struct weir__args_number partitions, retain_age, retain_bytes;
    const char *groups;
};

static const struct weir__args_row create_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"partitions", WEIR__ARGS_NUMBER, offsetof(struct create_options, partitions), "N",
     "1 to 1024 (default 4); 'hub update' can add more"},
    {"groups", WEIR__ARGS_TEXT, offsetof(struct create_options, groups), "A,B",
     "consumer groups besides $Default"},
    {"retention-age", WEIR__ARGS_DURATION, offsetof(struct create_options, retain_age), "AGE",
     "keep events so long at least, like 12h or 30d (default 7d)"},
    {"retention-bytes", WEIR__ARGS_BYTES, offsetof(struct create_options, retain_bytes), "SIZE",
     "drop the oldest when the hub is larger, like 10G (default: no limit)"},
    {0},
};

/* Splits "a,b" in place. false: too many. */
static bool split_groups(char *text, const char **out, uint32_t *out_count)
{
    char *rest = NULL;

    *out_count = 0;
    for (char *g = strtok_r(text, ",", &rest); g; g = strtok_r(NULL, ",", &rest)) {
        if (*out_count == GROUPS_MAX) return false;
        out[(*out_count)++] = g;
    }
    return true;
}

static int create_hub(struct weir__home *h, const char *name, const struct weir_hub_options *hub)
{
    struct weir_error err;
    int rc = weir_hub_create(h->weir, name, hub, &err);

    if (rc != 0) return weir__exit_error(rc, &err, "hub create");
    printf("created hub %s with %" PRIu32 " partition%s\n", name, hub->partitions,
           hub->partitions == 1 ? "" : "s");
    return weir__exit_printed(WEIR__EXIT_OK);
}

static int run_create(const struct weir__command *self, int argc, char **argv)
{
    struct create_options o = {0};
    struct weir_hub_options hub = {.size = sizeof hub};
    const char *groups[GROUPS_MAX];
    char text[GROUPS_BYTES_MAX] = "";
    struct weir__home home;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.partitions.given && (o.partitions.value < 1 || o.partitions.value > WEIR_PARTITIONS_MAX))
        return weir__exit_usage(self->name, "--partitions must be 1 to %d", WEIR_PARTITIONS_MAX);
    if (o.retain_age.given && o.retain_age.value == 0)
        return weir__exit_usage(self->name, "--retention-age must be more than nothing");
    if (o.groups && strlen(o.groups) < sizeof text) memcpy(text, o.groups, strlen(o.groups) + 1);
    if ((o.groups && !*text) || !split_groups(text, groups, &hub.group_count))
        return weir__exit_usage(self->name, "--groups must be up to %u names", GROUPS_MAX);
    hub.groups = groups;
    hub.partitions = o.partitions.given ? (uint32_t)o.partitions.value : PARTITIONS_DEFAULT;
    hub.retain_ms = (int64_t)o.retain_age.value;
    hub.retain_bytes = o.retain_bytes.value;
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_ADMIN | WEIR__HOME_MAKE);
    if (code != 0) return code;
    return weir__home_leave(&home, create_hub(&home, o.common.word[0], &hub));
}

const struct weir__command weir__command_hub_create = {
    .name = "hub create",
    .words = "HUB",
    .summary = "make a hub, and the data folder when it is not there",
    .rows = create_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_create,
};

/* ---- list ---- */

static const struct weir__args_row admin_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {0},
};

struct list_options {
    struct weir__common common;
    bool json;
};

static const struct weir__args_row list_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"json", WEIR__ARGS_FLAG, offsetof(struct list_options, json), NULL,
     "one line of JSON for each hub and each orphan"},
    {0},
};

static int write_hub(const struct weir_hub_info *h, void *user)
{
    char when[WEIR__WHEN_BYTES];

    (void)user;
    printf("{\"name\":");
    weir__json_text(stdout, weir_text(h->name));
    printf(",\"created\":\"%s\",\"partition_count\":%" PRIu32 ",\"group_count\":%" PRIu32
           ",\"retain_ms\":%" PRId64 ",\"retain_bytes\":%" PRIu64 "}\n",
           weir__when_text(h->created_ms, when), h->partitions, h->groups, h->retain_ms,
           h->retain_bytes);
    return 0;
}

static int print_hub(const struct weir_hub_info *h, void *user)
{
    char when[WEIR__WHEN_BYTES];

    (void)user;
    printf("%-24s %4" PRIu32 " partition%s  %" PRIu32 " group%s  created %s  retention ", h->name,
           h->partitions, h->partitions == 1 ? " " : "s", h->groups, h->groups == 1 ? " " : "s",
           weir__when_text(h->created_ms, when));
    weir__hub_print_retention(h);
    putchar('\n');
    return 0;
}

static int print_orphan(const struct weir_orphan *o, void *user)
{
    (void)user;
    printf("%-24s %4" PRIu32 " partition%s  without a hub: 'weir hub adopt %" PRIx64
           " NAME' makes it one again\n",
           "(orphan)", o->partitions, o->partitions == 1 ? " " : "s", o->id);
    return 0;
}

static int write_orphan(const struct weir_orphan *o, void *user)
{
    (void)user;
    printf("{\"orphan\":\"%" PRIx64 "\",\"partition_count\":%" PRIu32 "}\n", o->id, o->partitions);
    return 0;
}

static int list_orphans(const struct weir__home *h, bool json, struct weir_error *err)
{
    int rc = weir_orphan_list(h->weir, json ? write_orphan : print_orphan, NULL, err);

    return rc == WEIR_ENOTFOUND || rc == WEIR_ENOTSUP ? 0 : rc; /* of an earlier release */
}

static int run_list(const struct weir__command *self, int argc, char **argv)
{
    struct list_options o = {0};
    struct weir__home home;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    rc = weir_hub_list(home.weir, o.json ? write_hub : print_hub, NULL, &err);
    if (rc == 0) rc = list_orphans(&home, o.json, &err);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub list");
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_hub_list = {
    .name = "hub list",
    .words = "",
    .summary = "list the hubs of a folder, or of a server",
    .more = "An orphan is a folder with events that the catalogue does not know, because it was "
            "damaged or\nis an old copy. It is kept until it is adopted or removed by hand.",
    .rows = list_rows,
    .run = run_list,
};

/* ---- update ---- */

struct update_options {
    struct weir__common common;
    struct weir__args_number partitions, retain_age, retain_bytes;
};

static const struct weir__args_row update_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"retention-age", WEIR__ARGS_DURATION, offsetof(struct update_options, retain_age), "AGE",
     "keep events so long at least, like 12h or 30d"},
    {"retention-bytes", WEIR__ARGS_BYTES, offsetof(struct update_options, retain_bytes), "SIZE",
     "drop the oldest when the hub is larger, like 10G; 0: no limit"},
    {"partitions", WEIR__ARGS_NUMBER, offsetof(struct update_options, partitions), "N",
     "as many as there are, or more, up to 1024"},
    {0},
};

static int update_hub(struct weir__home *h, const char *name, const struct weir_hub_changes *c)
{
    struct weir_error err;
    int rc = weir_hub_update(h->weir, name, c, &err);

    if (rc != 0) return weir__exit_error(rc, &err, "hub update");
    printf("changed hub %s\n", name);
    return weir__exit_printed(WEIR__EXIT_OK);
}

static int run_update(const struct weir__command *self, int argc, char **argv)
{
    struct update_options o = {0};
    struct weir_hub_changes c = {.size = sizeof c};
    struct weir__home home;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (!o.partitions.given && !o.retain_age.given && !o.retain_bytes.given)
        return weir__exit_usage(self->name, "there is nothing to change");
    if (o.partitions.given && (o.partitions.value < 1 || o.partitions.value > WEIR_PARTITIONS_MAX))
        return weir__exit_usage(self->name, "--partitions must be 1 to %d", WEIR_PARTITIONS_MAX);
    if (o.retain_age.given && o.retain_age.value == 0)
        return weir__exit_usage(self->name, "--retention-age must be more than nothing");
    c.partitions = (uint32_t)o.partitions.value;
    c.retain_ms = (int64_t)o.retain_age.value;
    c.retain_bytes = o.retain_bytes.value;
    if (o.retain_bytes.given && o.retain_bytes.value == 0) c.retain_bytes = WEIR_RETAIN_ALL;
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    return weir__home_leave(&home, update_hub(&home, o.common.word[0], &c));
}

const struct weir__command weir__command_hub_update = {
    .name = "hub update",
    .words = "HUB",
    .summary = "change what a hub keeps, or give it more partitions",
    .more =
        "What is not named stays as it is. Changes take effect at once, also on a running "
        "server.\n"
        "Events stay in the partition they are in; with more partitions most keys go to another "
        "one\n"
        "from then on, so the order of a key's events across that moment is lost. Receivers of "
        "single\n"
        "partitions, 'weir tail' too, do not read the new ones until they are started again; "
        "'weir\n"
        "process' finds them by itself.",
    .rows = update_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_update,
};

/* ---- adopt ---- */

/* The number of a folder, or its whole name. */
static bool parse_id(const char *text, uint64_t *out)
{
    size_t len;

    if (strlen(text) == sizeof "hub-" - 1 + 16 && strncmp(text, "hub-", 4) == 0) text += 4;
    len = strlen(text);
    *out = strtoull(text, NULL, 16);
    return len > 0 && len <= 16 && strspn(text, "0123456789abcdef") == len;
}

static int run_adopt(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    struct weir__home home;
    struct weir_error err;
    uint64_t id;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    if (!parse_id(common.word[0], &id))
        return weir__exit_usage(self->name, "'%s' is not the id of a folder", common.word[0]);
    code = weir__home_reach(&home, self, &common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    rc = weir_hub_adopt(home.weir, id, common.word[1], &err);
    if (rc == 0) printf("adopted hub %s; its events are kept for ever\n", common.word[1]);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub adopt");
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_hub_adopt = {
    .name = "hub adopt",
    .words = "ID HUB",
    .summary = "make a hub of a folder that the catalogue does not know",
    .more = "'weir hub list' and 'weir inspect' name the ids. Groups, keys and retention are lost "
            "with the\ncatalogue: the hub has $Default, and keeps everything until 'hub update' "
            "says otherwise.",
    .rows = admin_rows,
    .words_min = 2,
    .words_max = 2,
    .run = run_adopt,
};

/* ---- delete ---- */

static int run_delete(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    struct weir__home home;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    code = weir__home_reach(&home, self, &common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    rc = weir_hub_delete(home.weir, common.word[0], &err);
    if (rc == 0) printf("deleted hub %s and its events\n", common.word[0]);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub delete");
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_hub_delete = {
    .name = "hub delete",
    .words = "HUB",
    .summary = "delete a hub and all of its events, without asking",
    .rows = admin_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_delete,
};
